"""Noise on counts of pairs of items: of every pair, or of those of a random graph.

In: public parameters, a budget, secure randomness. Out: the noise law of the counts; for
`sparse-pairs` also the edges of a fresh graph, and bounds on how many edges one person can cut,
whatever the answers. This is the paper's Algorithm 2 with p0 = 1, or with p0 < 1.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person changes that many counts by one;
replacing the answers changes at most twice as many, because a count that is in both patterns
does not change. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/privacy/test_sensitivity.py`` finds them by brute force.

A graph is drawn for each release anew, without the answers. So the answers meet an average graph:
each of the pairs that a set of answers touches is an edge with probability p0, and delta is an
average over their number (docs/privacy-accounting.md, section 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import combinations
from math import comb, floor, log1p, log2, sqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_counts, calibrate_laplace
from discreet.privacy.accounting.amplification import (
    GraphSensitivity,
    calibrate_graph,
    graph_epsilon,
    graph_spend,
)
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public, check_pair_matrix_size
from discreet.secure import RandomSource, SeededSource
from discreet.types import FloatArray, Int64Array
from discreet.words import mark

if TYPE_CHECKING:
    from discreet.privacy.attack_statistics import NeighbourCells, Statistic, Values


def count_sensitivity(touched: int, neighbours: Neighbours) -> int:
    """Return how many counts one person changes by one, if a pattern touches ``touched``."""
    return 2 * touched if neighbours is Neighbours.REPLACE_ONE else touched


@dataclass(frozen=True)
class DensePairs(AdditiveMechanism):
    """Noise on every ordered pair of items (Algorithm 2 with p0 = 1).

    Attributes
    ----------
    name
        ``"pairs"`` or ``"laplace-pairs"``.
    family
        Discrete Gaussian noise, or discrete Laplace noise, which is pure epsilon.
    """

    name: str = "pairs"
    family: Literal["gaussian", "laplace"] = "gaussian"

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_pair_matrix_size(public, self.name)
        sensitivity = count_sensitivity(public.max_answers**2 // 4, public.neighbours)
        scale, spend = CALIBRATE[self.family](sensitivity, budget, mechanism=self.name)
        return NoiseCalibration({"right_wrong": NoiseLaw(self.family, scale)}, spend)

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the counts of all ordered pairs, exact. Confidential."""
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"right_wrong": counts.dense(f"the mechanism {self.name}")[off_diagonal]}


laplace_pairs = partial(DensePairs, "laplace-pairs", "laplace")

CALIBRATE: dict[str, Callable[..., tuple[Fraction, Spend]]] = {
    "gaussian": calibrate_counts,
    "laplace": calibrate_laplace,
}


# --- sparse-pairs ---------------------------------------------------------------------------------

NoiseFor = Literal["a random graph", "the drawn graph"]

FRESH_GRAPH_CONDITION = mark(
    "Epsilon and delta hold for the release as a whole, including the random choice of the "
    "compared pairs, which was made for this release alone, after the answers were given and "
    "without looking at them; rho holds given the pairs that were chosen."
)


@dataclass(frozen=True)
class SparsePairs(AdditiveMechanism):
    """Discrete Gaussian noise on the pairs of a random graph drawn without the data.

    Attributes
    ----------
    edge_probability
        ``p0`` of the paper; by default 1.1 log2(m) / m, which its figures use (the
        supplement's log n / n is a slip: the graph has to connect the m items).
    noise_for
        ``"a random graph"``: the noise keeps the budget on average over graphs, which is what
        (epsilon, delta) asks of a release that draws its own graph. ``"the drawn graph"``: it
        keeps the budget given the graph, whatever that is. That takes 1.4 times the noise, with
        a cap up to 7 times, but counts for less where a ledger adds up several releases.
    """

    edge_probability: float | None = None
    name: str = "sparse-pairs"
    noise_for: NoiseFor = "a random graph"

    def __post_init__(self) -> None:
        if self.edge_probability is not None and not 0 < self.edge_probability <= 1:
            raise BadUsage(
                f"edge_probability must lie in (0, 1], found {self.edge_probability}; "
                "1 compares every pair"
            )
        if self.noise_for not in get_args(NoiseFor):
            choices = " or ".join(repr(word) for word in get_args(NoiseFor))
            raise BadUsage(f"noise_for must be {choices}, found {self.noise_for!r}")

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:
        """Draw a graph, and find the least noise that keeps the budget."""
        check_pair_matrix_size(public, self.name)
        m = len(public.items)
        probability = self.edge_probability or min(1.0, 1.1 * log2(m) / m)
        edges = draw_connected_graph(m, probability, source)
        sensitivity = count_sensitivity(cut_bound(edges, m, public.max_answers), public.neighbours)
        shape = {"edge_probability": probability, "edges": edges.tolist()}
        settings = {**shape, "noise_for": self.noise_for}
        if self.noise_for == "the drawn graph":
            sigma, spend = calibrate_counts(sensitivity, budget, mechanism=self.name)
            return NoiseCalibration({"right_wrong": NoiseLaw("gaussian", sigma)}, spend, settings)
        sigma, spend = self._calibrate_average(public, budget, probability, sensitivity)
        laws = {"right_wrong": NoiseLaw("gaussian", sigma)}
        return NoiseCalibration(laws, spend, settings, (FRESH_GRAPH_CONDITION,))

    def _calibrate_average(
        self, public: Public, budget: Budget, probability: float, sensitivity: int
    ) -> tuple[Fraction, Spend]:
        """Noise for an average graph; ``sensitivity``, of the drawn graph, enters rho alone."""
        delta = budget.require_delta(self.name)
        average = graph_sensitivity(public, probability)
        sigma = calibrate_graph(average, budget.epsilon, delta)
        rho = Fraction(sensitivity) / (2 * sigma * sigma)
        return sigma, graph_spend(average, sigma, budget, mechanism=self.name, rho=rho)

    def redraw(
        self, public: Public, calibration: NoiseCalibration, source: RandomSource
    ) -> NoiseCalibration:
        """Return the same noise with a fresh graph, as in another release; for the audit."""
        probability = calibration.settings["edge_probability"]
        edges = draw_connected_graph(len(public.items), probability, source)
        return replace(calibration, settings={**calibration.settings, "edges": edges.tolist()})

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:
        """Return the counts on the edges, one direction after the other, exact. Confidential."""
        right, wrong = _list_directions(calibration)
        cells = counts.right_wrong[right, wrong]
        # Newer versions of scipy pick a sparse vector from sparse counts. It holds no zeros, and
        # a zero gets noise like any other number.
        return {"right_wrong": cells.toarray() if hasattr(cells, "toarray") else cells}

    def attack_cells(
        self, person: object, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return one made-up person's counts on all pairs: the edges are yet to be drawn."""
        return DensePairs().attack_cells(person, public, calibration)

    def statistic(
        self, public: Public, calibration: NoiseCalibration, cells: NeighbourCells, group: int
    ) -> Statistic:
        """Return the log likelihood ratio on the edges of a graph, which every run may draw anew.

        An attack that knew the graph would refute a promise that was never made, so the cells are
        on all pairs. Whatever the test, the rate of its mistakes is at least the mean over graphs
        of Phi(-sqrt(K) / (2 sigma)), where K counts change on a graph.
        """
        from scipy.special import ndtr, ndtri

        from discreet.privacy.attack_statistics import Statistic, gaussian_claim

        law, spend = calibration.laws["right_wrong"], calibration.spend
        first, second = cells["right_wrong"]
        middle, direction = group * (first + second) / 2, first - second
        items, averages = len(public.items), self.noise_for == "a random graph"
        sigma = float(law.scale)

        def count_changed(calibration: NoiseCalibration) -> float:
            return float(np.abs(direction)[_edge_cells(calibration, items)].sum())

        def redraw(source: RandomSource) -> NoiseCalibration:
            """Draw a graph on which something changes: the rate is known given any graph."""
            if not averages:
                return calibration
            graph = self.redraw(public, calibration, source)
            while not count_changed(graph):
                graph = self.redraw(public, calibration, source)
            return graph

        def score(values: Values, calibration: NoiseCalibration) -> float:
            released = _on_all_pairs(values["right_wrong"], calibration, items)
            return float(np.nansum((released - middle) * direction))

        @cache
        def lengths() -> FloatArray:
            source, graphs = SeededSource(0), [calibration]
            if averages:
                graphs = [self.redraw(public, calibration, source) for _ in range(GRAPHS)]
            return np.sqrt([count_changed(drawn) for drawn in graphs])

        def separation(factor: float) -> float:
            moving = lengths()[lengths() > 0] * (group / sigma)
            return float(-2 * ndtri(np.mean(ndtr(-factor * moving / 2))))

        def ceiling(factor: float) -> float:
            # The rate is convex in the length, so its mean is at least the rate at the mean length.
            claim = float(np.mean(lengths())) / sigma if averages else sqrt(spend.bound.mu_squared)
            return factor * group * claim

        def arrange(values: Values, calibration: NoiseCalibration) -> FloatArray:
            tables = [_on_all_pairs(values[name], calibration, items) for name in sorted(values)]
            return np.nan_to_num(np.concatenate(tables))

        share = calibration.settings["edge_probability"]
        changed = share * float(np.abs(direction).sum()) if averages else count_changed(calibration)
        return Statistic(
            reach=sqrt(changed) / sigma,
            score=score,
            separation=separation,
            permitted=separation,
            ceiling=ceiling,
            epsilon=_graph_epsilon(public, calibration)
            if averages
            else gaussian_claim(calibration, sqrt(float(spend.bound.mu_squared))),
            arrange=arrange,
            redraw=redraw,
        )


def graph_sensitivity(public: Public, probability: float) -> GraphSensitivity:
    """Return the sensitivity of the counts on a random graph that is redrawn until connected."""
    coin = round_probability(probability)
    step = 2 if public.neighbours is Neighbours.REPLACE_ONE else 1
    accepted = connection_probability(len(public.items), coin)
    if accepted == 0:
        raise BadUsage(
            f"a random graph of {len(public.items)} items with edge probability {probability:.3g} "
            "may hardly ever be connected, so that the average over connected ones is not known; "
            f"use at least {min(1.0, log2(len(public.items)) / len(public.items)):.2g}, or "
            "noise_for='the drawn graph'"
        )
    return GraphSensitivity(public.max_answers**2 // 4, step, coin, accepted)


GRAPHS = 1000
#: The accountant knows no curve of counts below; the epsilon at 2 is then a smaller bound.
SMALLEST_SIGMA = 2


def _list_directions(calibration: NoiseCalibration) -> Int64Array:
    """Return the right and the wrong item of every count: both directions one after the other."""
    edges = np.asarray(calibration.settings["edges"], dtype=np.int64).T
    return np.concatenate([edges, edges[::-1]], axis=1)


def _edge_cells(calibration: NoiseCalibration, items: int) -> npt.NDArray[np.int64]:
    """Where the edges' counts are among all ordered pairs; both directions one after the other."""
    right, wrong = _list_directions(calibration)
    # The diagonal is left out: one cell less for every row, and one more after it in each.
    return np.asarray(right * (items - 1) + wrong - (wrong > right))


def _on_all_pairs(
    values: npt.NDArray[Any], calibration: NoiseCalibration, items: int
) -> FloatArray:
    """Put released numbers where their pair belongs; NaN where the graph has no edge."""
    table = np.full(items * (items - 1), np.nan)
    table[_edge_cells(calibration, items)] = values
    return table


def _graph_epsilon(public: Public, calibration: NoiseCalibration) -> Callable[[float], float]:
    spend, sigma = calibration.spend, calibration.laws["right_wrong"].scale
    average = graph_sensitivity(public, calibration.settings["edge_probability"])

    def epsilon_at(scale: Fraction) -> float:
        return graph_epsilon(average, max(scale, Fraction(SMALLEST_SIGMA)), spend.delta)

    def epsilon(factor: float) -> float:
        if factor == 0:
            return 0.0
        changed = epsilon_at((sigma / Fraction(factor)).limit_denominator(10**6))
        return spend.epsilon * changed / epsilon_at(sigma)

    return epsilon


# --- random graphs: drawn without any answer, and how many edges one person can cut ---------------

COIN_BITS = 32


def round_probability(probability: float) -> Fraction:
    """Return the probability of the coin that is tossed for an edge: k / 2^32.

    The edge probability is a public design choice, so rounding it is harmless, as long as the
    accountant and the coin see the same number.
    """
    return Fraction(max(1, round(probability * 2**COIN_BITS)), 2**COIN_BITS)


def draw_connected_graph(m: int, probability: float, source: RandomSource) -> Int64Array:
    """Draw an Erdos-Renyi graph until it is connected; ``int64[edge, 2]`` with i < j.

    The graph never sees the data, so drawing again costs no privacy given the graph; an average
    over graphs has to allow for it (`connection_probability`).
    """
    first, second = np.triu_indices(m, 1)
    limit = int(round_probability(probability) * 2**COIN_BITS)
    for _ in range(1000):
        chosen = (source.words(len(first)) >> np.uint64(64 - COIN_BITS)) < np.uint64(limit)
        edges = np.column_stack([first[chosen], second[chosen]])
        if is_connected(edges, m):
            return edges.astype(np.int64)
    raise BadUsage(
        f"a random graph of {m} items with edge probability {probability:.3g} was not connected "
        f"in 1000 tries; use at least {min(1.0, log2(m) / m):.2g}"
    )


#: Up to this many items the probability of a connected graph is computed in fractions.
EXACT_ITEMS = 24


@lru_cache(maxsize=64)
def connection_probability(m: int, probability: Fraction) -> float:
    """Return a lower bound on the probability that a random graph of m items is connected.

    A graph that is not has a set of k <= m/2 items without an edge to the others, which happens
    with probability (1-p)^(k (m-k)) for each of the C(m, k) sets; the sum bounds the probability
    of any. Up to 24 items, where that bound loses something, the exact value is used.

    Examples
    --------
    >>> round(connection_probability(3, Fraction(1, 2)), 6)
    0.5
    """
    if probability == 1:
        return 1.0
    if m <= EXACT_ITEMS:
        return float(_connect_exactly(m, probability)) * (1 - 1e-12)
    k = np.arange(1, m // 2 + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])
    ways = log_factorial[m] - log_factorial[k] - log_factorial[m - k]
    chances = ways + k * (m - k) * log1p(-float(probability))
    if chances.max() > 0:
        return 0.0
    # Logarithms up to 1e6 are good to 1e-9.
    return max(0.0, 1 - float(np.exp(chances).sum()) * (1 + 1e-8))


def _connect_exactly(m: int, probability: Fraction) -> Fraction:
    """Return the probability that a random graph is connected.

    The component of item 1 has k items with probability C(n-1, k-1) P_k (1-p)^(k (n-k)), where
    P_k is the probability that k items are connected; all k together give 1 (Gilbert 1959). In
    floating point the small P_k of sparse graphs would be rounding errors, which grow.
    """
    connected = [Fraction(1), Fraction(1)]
    for n in range(2, m + 1):
        parts = (
            comb(n - 1, k - 1) * connected[k] * (1 - probability) ** (k * (n - k))
            for k in range(1, n)
        )
        connected.append(1 - sum(parts, start=Fraction(0)))
    return connected[m]


#: Up to here walking a dense table is faster than setting up scipy's sparse graph.
FEW_ITEMS = 64


def _reaches_all(edges: npt.NDArray[Any], m: int) -> bool:
    linked = np.eye(m, dtype=bool)
    linked[edges[:, 0], edges[:, 1]] = linked[edges[:, 1], edges[:, 0]] = True
    reached = linked[0]
    while True:
        wider = linked[reached].any(axis=0)
        if wider.sum() == reached.sum():
            return bool(wider.all())
        reached = wider


def is_connected(edges: npt.NDArray[Any], m: int) -> bool:
    """Say whether the edges link all m items."""
    if len(edges) < m - 1:
        return False
    if m <= FEW_ITEMS:
        return _reaches_all(edges, m)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges), dtype=np.int8)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(m, m))
    return bool(connected_components(graph, directed=False)[0] == 1)


#: Up to this many items the largest cut is found by trying every pattern (2^11 of them).
EXACT_CUT_ITEMS = 12


def cut_bound(edges: Int64Array, m: int, max_answers: int) -> int:
    """Bound how many edges one person's right/wrong pattern can cut.

    Each edge is cut in at most one direction. Three bounds hold at once: the number of edges,
    floor(q^2 / 4), and the largest cut of the graph, which is at most m / 4 times the largest
    eigenvalue of its Laplacian (Mohar and Poljak 1990). Small graphs are tried out.
    """
    simple = min(len(edges), max_answers**2 // 4)
    if m <= EXACT_CUT_ITEMS:
        return min(simple, _largest_cut(edges, m, max_answers))
    if m > 2000:  # a dense eigenvalue problem would take longer than the release
        return simple
    laplacian = np.zeros((m, m))
    np.add.at(laplacian, (edges[:, 0], edges[:, 1]), -1.0)
    laplacian += laplacian.T
    laplacian[np.diag_indices(m)] = -laplacian.sum(axis=1)
    largest = float(np.linalg.eigvalsh(laplacian)[-1])
    # The eigenvalue of a small integer matrix is good to 1e-12 of its norm; 1e-9 is ample.
    return min(simple, floor(m / 4 * largest * (1 + 1e-9)))


def _largest_cut(edges: Int64Array, m: int, max_answers: int) -> int:
    """Largest number of edges cut by a pattern of at most ``max_answers`` answers."""
    best = 0
    for answered in combinations(range(m), min(max_answers, m)):
        inside = np.zeros(m, dtype=bool)
        inside[list(answered)] = True
        inner_edges = edges[inside[edges].all(axis=1)]
        position = np.zeros(m, dtype=np.int64)
        position[list(answered)] = np.arange(len(answered))
        patterns = np.arange(2 ** (len(answered) - 1))[:, None]
        right = (patterns >> position[inner_edges[:, 0]]) & 1 != (
            patterns >> position[inner_edges[:, 1]]
        ) & 1
        best = max(best, int(right.sum(axis=1).max(initial=0)))
    return best
