"""Random graphs of compared pairs: how they are drawn, and how many edges one person can cut.

In: the number of items, an edge probability, secure randomness. Out: edges, and bounds that hold
for every set of answers. Nothing here sees an answer.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, floor, log1p, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.secure import RandomSource
from discreet.types import Int64Array

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


EXACT_ITEMS = 24
"""Up to this many items the probability of a connected graph is computed in fractions."""


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


FEW_ITEMS = 64
"""Up to here walking a dense table is faster than setting up scipy's sparse graph."""


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
        inner_edges = edges[inside[edges].all(axis=1)]
        position = np.zeros(m, dtype=np.int64)
        position[list(answered)] = np.arange(len(answered))
        patterns = np.arange(2 ** (len(answered) - 1))[:, None]
        right = (patterns >> position[inner_edges[:, 0]]) & 1 != (
            patterns >> position[inner_edges[:, 1]]
        ) & 1
        best = max(best, int(right.sum(axis=1).max(initial=0)))
    return best
