"""Noise on pair counts, the paper's Algorithm 2: on every pair, or on those of a random graph.

In: public parameters and a budget. Out: the noise law of the counts, and a fresh graph where there
is one.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person changes that many counts by one;
replacing the answers changes at most twice as many, because a count that is in both patterns
does not change. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/privacy/test_sensitivity.py`` finds them by brute force.

The graph of `sparse-pairs` is drawn for each release anew, without the answers. So the answers meet
an average graph: each of the pairs that a set of answers touches is an edge with probability p0,
and delta is an average over their number (docs/privacy-accounting.md, section 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from math import log2, sqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.gaussian_noise import calibrate_counts
from discreet.privacy.accounting.local import calibrate_laplace
from discreet.privacy.accounting.random_graph import (
    GraphSensitivity,
    calibrate_graph,
    graph_epsilon,
    graph_spend,
)
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.mechanisms.graphs import (
    connection_probability,
    cut_bound,
    draw_connected_graph,
    round_probability,
)
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

CALIBRATE = {"gaussian": calibrate_counts, "laplace": calibrate_laplace}


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
        probability = self._share(m)
        edges = draw_connected_graph(m, probability, source)
        sensitivity = count_sensitivity(cut_bound(edges, m, public.max_answers), public.neighbours)
        if self.noise_for == "the drawn graph":
            sigma, spend = calibrate_counts(sensitivity, budget, mechanism=self.name)
            conditions: tuple[str, ...] = ()
        else:
            sigma, spend = self._calibrate_average(public, budget, probability, sensitivity)
            conditions = (FRESH_GRAPH_CONDITION,)
        return NoiseCalibration(
            {"right_wrong": NoiseLaw("gaussian", sigma)},
            spend,
            settings={
                "edge_probability": probability,
                "edges": edges.tolist(),
                "noise_for": self.noise_for,
            },
            conditions=conditions,
        )

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

    def _share(self, items: int) -> float:
        return self.edge_probability or min(1.0, 1.1 * log2(items) / items)

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:
        """Return the counts on the edges, one direction after the other, exact. Confidential."""
        first, second = np.asarray(calibration.settings["edges"], dtype=np.int64).T
        right, wrong = np.concatenate([first, second]), np.concatenate([second, first])
        cells = counts.right_wrong[right, wrong]
        # Newer versions of scipy pick a sparse vector from sparse counts. It holds no zeros, and
        # a zero gets noise like any other number.
        return {"right_wrong": cells.toarray() if hasattr(cells, "toarray") else cells}

    def attack_cells(
        self, person: Any, public: Public, calibration: NoiseCalibration
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
    accepted = _accepted(len(public.items), coin)
    if accepted == 0:
        raise BadUsage(
            f"a random graph of {len(public.items)} items with edge probability {probability:.3g} "
            "may hardly ever be connected, so that the average over connected ones is not known; "
            f"use at least {min(1.0, log2(len(public.items)) / len(public.items)):.2g}, or "
            "noise_for='the drawn graph'"
        )
    return GraphSensitivity(public.max_answers**2 // 4, step, coin, accepted)


@lru_cache(maxsize=64)
def _accepted(items: int, coin: Fraction) -> float:
    return connection_probability(items, coin)


GRAPHS = 1000
SMALLEST_SIGMA = 2
"""The accountant knows no curve of counts below; the epsilon at 2 is then a smaller bound."""


def _edge_cells(calibration: NoiseCalibration, items: int) -> npt.NDArray[np.int64]:
    """Where the edges' counts are among all ordered pairs; both directions one after the other."""
    first, second = np.asarray(calibration.settings["edges"]).T
    right, wrong = np.concatenate([first, second]), np.concatenate([second, first])
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
