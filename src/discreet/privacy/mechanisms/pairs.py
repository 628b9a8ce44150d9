"""Noise on pair counts: the paper's Algorithm 2, dense, on a sparse graph, and with Laplace noise.

In: public parameters and a budget. Out: the noise law of every pair count.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person moves that many counts by one;
replacing the answers moves at most twice as many, because a count that is in both patterns
does not move. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/test_sensitivity.py`` finds them by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import floor, log2
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import (
    Budget,
    Neighbours,
    calibrate_counts,
    calibrate_laplace,
)
from discreet.privacy.mechanisms.protocol import Calibration, NoiseLaw, Public
from discreet.secure import RandomSource

__all__ = ["DensePairs", "SparsePairs", "count_moves", "cut_bound"]

Int64Array = npt.NDArray[np.int64]


def count_moves(touched: int, neighbours: Neighbours) -> int:
    """How many counts one person moves by one, if a pattern touches at most ``touched``."""
    return 2 * touched if neighbours is Neighbours.REPLACE_ONE else touched


@dataclass(frozen=True)
class DensePairs:
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

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:  # noqa: ARG002
        moved = count_moves(public.max_answers**2 // 4, public.neighbours)
        scale, spend = CALIBRATE[self.family](moved, budget, mechanism=self.name)
        return Calibration({"right_wrong": NoiseLaw(self.family, scale)}, spend)

    def weighting(self, public: Public, calibration: Calibration) -> None:  # noqa: ARG002
        return None

    def cells(self, counts: PairCounts, calibration: Calibration) -> dict[str, Int64Array]:  # noqa: ARG002
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"right_wrong": counts.dense(f"the mechanism {self.name}")[off_diagonal]}


CALIBRATE = {"gaussian": calibrate_counts, "laplace": calibrate_laplace}


@dataclass(frozen=True)
class SparsePairs:
    """Discrete Gaussian noise on the pairs of a random graph drawn without the data.

    Attributes
    ----------
    edge_probability
        ``p0`` of the paper; by default 1.1 log2(m) / m, which its figures use (the
        supplement's log n / n is a slip: the graph has to connect the m items).
    """

    edge_probability: float | None = None
    name: str = "sparse-pairs"

    def __post_init__(self) -> None:
        if self.edge_probability is not None and not 0 < self.edge_probability <= 1:
            raise BadUsage(
                f"edge_probability must lie in (0, 1], found {self.edge_probability}; "
                "1 compares every pair"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:
        m = len(public.items)
        probability = self.edge_probability or min(1.0, 1.1 * log2(m) / m)
        edges = draw_connected_graph(m, probability, source)
        touched = cut_bound(edges, m, public.max_answers)
        moved = count_moves(touched, public.neighbours)
        sigma, spend = calibrate_counts(moved, budget, mechanism=self.name)
        return Calibration(
            {"right_wrong": NoiseLaw("gaussian", sigma)},
            spend,
            settings={"edge_probability": probability, "edges": edges.tolist()},
        )

    def weighting(self, public: Public, calibration: Calibration) -> None:  # noqa: ARG002
        return None

    def cells(self, counts: PairCounts, calibration: Calibration) -> dict[str, Int64Array]:
        first, second = np.asarray(calibration.settings["edges"], dtype=np.int64).T
        right, wrong = np.concatenate([first, second]), np.concatenate([second, first])
        cells = counts.right_wrong[right, wrong]
        # Newer versions of scipy pick a sparse vector from sparse counts. It holds no zeros, and
        # a zero gets noise like any other number.
        return {"right_wrong": cells.toarray() if hasattr(cells, "toarray") else cells}


def draw_connected_graph(m: int, probability: float, source: RandomSource) -> Int64Array:
    """Draw an Erdos-Renyi graph until it is connected; ``int64[edge, 2]`` with i < j.

    The graph never sees the data, so drawing again costs no privacy.
    """
    first, second = np.triu_indices(m, 1)
    # A coin with probability k / 2^32: the edge probability is a public design choice, so
    # rounding it to 32 bits is harmless.
    limit = max(1, round(probability * 2**32))
    for _ in range(1000):
        chosen = (source.words(len(first)) >> np.uint64(32)) < np.uint64(limit)
        edges = np.column_stack([first[chosen], second[chosen]])
        if is_connected(edges, m):
            return edges.astype(np.int64)
    raise BadUsage(
        f"a random graph of {m} items with edge probability {probability:.3g} was not connected "
        f"in 1000 tries; use at least {min(1.0, log2(m) / m):.2g}"
    )


def is_connected(edges: npt.NDArray[Any], m: int) -> bool:
    """Say whether the edges link all m items."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges), dtype=np.int8)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(m, m))
    return bool(connected_components(graph, directed=False)[0] == 1)


EXACT_CUT_ITEMS = 12
"""Up to this many items the largest cut is found by trying every pattern (2^11 of them)."""


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
        kept = edges[inside[edges].all(axis=1)]
        place = np.zeros(m, dtype=np.int64)
        place[list(answered)] = np.arange(len(answered))
        patterns = np.arange(2 ** (len(answered) - 1))[:, None]
        right = (patterns >> place[kept[:, 0]]) & 1 != (patterns >> place[kept[:, 1]]) & 1
        best = max(best, int(right.sum(axis=1).max(initial=0)))
    return best
