"""L2 sensitivity of the margins mechanism: totals and disagreements together.

In: the integer weight of a person by (answered, right), the cap, the item list's length. Out: the
extreme differences, as pairs (squared length in the totals, squared length in the disagreements).

A person with r answers, k of them right, and weight w adds w (r - k) to the total of each right
item and -w k to that of each wrong one, and w to each of the k (r - k) disagreements. So the
squared lengths are ``w^2 k (r - k) r`` and ``w^2 k (r - k)``.

Replacing a person by another one (weight v, s answers, l right), let x be the number of items
right before and wrong after, y the number wrong before and right after. Items that are right
in both, or wrong in both, only bring the two closer. The squared lengths are then

    totals         w^2 k (r-k) r + v^2 l (s-l) s + 2 w v [x (r-k) l + y k (s-l)]
    disagreements  w^2 k (r-k)   + v^2 l (s-l)   - 2 w v x y

with x <= min(k, s-l), y <= min(r-k, l). Any sum of the two with positive weights is linear in x
for fixed y and the other way round, so it is largest at one of the four corners. When both
persons cannot avoid common items (r + s > m) the corners may not be attained: the bound stays
valid, and for short lists (``SHORT_LIST``) every overlap is tried instead, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from discreet.jit import compiled_loop
from discreet.privacy.accounting import Neighbours
from discreet.types import Int64Array

Weighting = Callable[[Int64Array, Int64Array], Int64Array]
SquaredLengths = list[tuple[int, int]]

SHORT_LIST = 10
"""Up to this many items every overlap of two persons is tried: a second at most."""

LARGEST_PAIRED_CAP = 200
"""Up to this cap every two kinds of persons are compared: 10^8 pairs, about a second."""

PLAIN_CAP = 40
"""Up to this cap NumPy compares every two kinds of persons: a twentieth of a second, where the
compiled loop has to be loaded first (half a second) or even compiled (seconds)."""

BINS = 16384
"""Differences are kept by the length of their totals, to 1/8192 of the longest; rounded up."""


def margins_l2_sensitivity(
    weighting: Weighting, *, items: int, max_answers: int, neighbours: Neighbours
) -> SquaredLengths:
    """Return squared lengths (totals, disagreements) that no difference of one person exceeds.

    For any two positive noise variances, the largest ``totals / var + disagreements / var`` over
    this list bounds that of every pair of neighbouring data sets.

    Examples
    --------
    >>> def one(answered, right):
    ...     return np.ones_like(answered)
    >>> margins_l2_sensitivity(one, items=3, max_answers=3, neighbours=Neighbours.ADD_REMOVE)
    [(6, 2)]
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return list(_single_hull(weighting, max_answers, (1, 1)))
    if items <= SHORT_LIST:
        return _upper_hull(*_all_overlaps(_weight_table(weighting, max_answers), items))
    if max_answers <= LARGEST_PAIRED_CAP:
        return list(_paired_hull(weighting, max_answers))
    # |t - t'|^2 <= 2 |t|^2 + 2 |t'|^2; disagreements are not negative, so
    # |d - d'|^2 <= |d|^2 + |d'|^2; a sum over two persons is at most twice the larger one.
    return list(_single_hull(weighting, max_answers, (4, 2)))


# A plan asks for the same differences at many values of epsilon, so the two long searches remember.
@lru_cache(maxsize=64)
def _single_hull(
    weighting: Weighting, max_answers: int, times: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    totals, disagreements = _single_differences(_weight_table(weighting, max_answers))
    return tuple(_upper_hull(times[0] * totals, times[1] * disagreements))


@lru_cache(maxsize=64)
def _paired_hull(weighting: Weighting, max_answers: int) -> tuple[tuple[int, int], ...]:
    table = _weight_table(weighting, max_answers)
    find = plain_paired_differences if max_answers <= PLAIN_CAP else compiled_paired_differences()
    return tuple(_upper_hull(*find(table, BINS, _is_symmetric(table))))


@cache
def compiled_paired_differences() -> Any:
    """Return the loop below, compiled: it is loaded only where it is needed."""
    return compiled_loop(paired_differences)


def paired_differences(
    table: Int64Array, bins: int, symmetric: bool
) -> tuple[Int64Array, Int64Array]:
    """Largest differences over all pairs of persons and corners, one per bin of the totals' length.

    ``symmetric``: weights do not change when right and wrong are exchanged; then exchanging them
    in both persons gives the same differences, and half of the pairs can be left out. So can the
    corner x = y = 0, which the corner y = 0 exceeds.
    """
    cap = table.shape[0] - 1
    longest = 1
    for r in range(2, cap + 1):
        for k in range(1, r):
            longest = max(longest, 4 * table[r, k] ** 2 * k * (r - k) * r)
    shift = 0
    while longest >> shift >= bins:
        shift += 1
    totals = np.zeros(bins, np.int64)
    disagreements = np.zeros(bins, np.int64)
    for r in range(2, cap + 1):
        for k in range(1, r // 2 + 1 if symmetric else r):
            w = table[r, k]
            d = w * w * k * (r - k)
            for s in range(2, r + 1):
                for right in range(1, s):
                    v = table[s, right]
                    e = v * v * right * (s - right)
                    x = min(k, s - right)
                    y = min(r - k, right)
                    for corner in range(1, 4):
                        a = x * (corner & 1)
                        b = y * (corner >> 1)
                        t = d * r + e * s
                        t += 2 * w * v * (a * (r - k) * right + b * k * (s - right))
                        f = d + e - 2 * w * v * a * b
                        index = t >> shift
                        totals[index] = max(totals[index], t)
                        disagreements[index] = max(disagreements[index], f)
    return totals, disagreements


def plain_paired_differences(
    table: Int64Array, bins: int, symmetric: bool
) -> tuple[Int64Array, Int64Array]:
    """Return what ``paired_differences`` returns, one first person at a time."""
    cap = len(table) - 1
    s, good = np.nonzero(np.tri(cap + 1, k=-1, dtype=bool)[:, :])
    s, good = s[good >= 1], good[good >= 1]
    v = table[s, good]
    bad = s - good
    length = v * v * good * bad
    longest = max(1, int((4 * length * s).max(initial=0)))
    shift = max(0, longest.bit_length() - (bins.bit_length() - 1))
    totals, disagreements = np.zeros(bins, np.int64), np.zeros(bins, np.int64)
    for r in range(2, cap + 1):
        upto = slice(0, r * (r - 1) // 2)  # kinds are sorted by the number of answers
        for k in range(1, r // 2 + 1 if symmetric else r):
            w = int(table[r, k])
            d = w * w * k * (r - k)
            cross = 2 * w * v[upto]
            x, y = np.minimum(k, bad[upto]), np.minimum(r - k, good[upto])
            base = d * r + length[upto] * s[upto]
            only_x = base + cross * x * (r - k) * good[upto]
            only_y = cross * y * k * bad[upto]
            apart = d + length[upto]
            t = np.concatenate([only_x, base + only_y, only_x + only_y])
            f = np.concatenate([apart, apart, apart - cross * x * y])
            np.maximum.at(totals, t >> shift, t)
            np.maximum.at(disagreements, t >> shift, f)
    return totals, disagreements


def margins_l1_sensitivity(weighting: Weighting, *, max_answers: int) -> tuple[int, int]:
    """Return the largest L1 length of one person in the totals and in the disagreements."""
    table = _weight_table(weighting, max_answers)
    answered, right = np.indices(table.shape)
    pairs = table * right * np.maximum(answered - right, 0)
    largest = int(pairs.max())
    return 2 * largest, largest


def _weight_table(weighting: Weighting, max_answers: int) -> Int64Array:
    """``table[answered, right]``, zero where there is no pair."""
    answered, right = np.indices((max_answers + 1, max_answers + 1))
    table = np.zeros_like(answered)
    real = (right >= 1) & (right < answered)
    table[real] = weighting(answered[real], right[real])
    return np.asarray(table, dtype=np.int64)


def _is_symmetric(table: Int64Array) -> bool:
    """Say whether weights stay when right and wrong answers are exchanged."""
    answered, right = np.indices(table.shape)
    return bool(np.array_equal(table, table[answered, np.maximum(answered - right, 0)]))


def _single_differences(table: Int64Array) -> tuple[Int64Array, Int64Array]:
    answered, right = np.indices(table.shape)
    disagreements = table**2 * right * np.maximum(answered - right, 0)
    return (disagreements * answered).ravel(), disagreements.ravel()


def _all_overlaps(table: Int64Array, items: int) -> tuple[Int64Array, Int64Array]:
    """Every pair of persons with every number of items in common, exactly."""
    cap = len(table) - 1
    pairs: set[tuple[int, int]] = {(0, 0)}
    kinds = [(r, k) for r in range(2, cap + 1) for k in range(1, r)]
    for r, k in kinds:
        w = int(table[r, k])
        pairs.add((w * w * k * (r - k) * r, w * w * k * (r - k)))
        for s, right in kinds:
            v = int(table[s, right])
            if (s, right) <= (r, k):
                pairs |= _overlaps(w, r, k, v, s, right, items)
    lengths = np.array(sorted(pairs), dtype=np.int64)
    return lengths[:, 0], lengths[:, 1]


def _overlaps(
    w: int, r: int, k: int, v: int, s: int, right: int, items: int
) -> set[tuple[int, int]]:
    """Return differences of (r answers, k right) and (s, right), over all ways to share items."""
    pairs = set()
    for shared_right in range(min(k, right) + 1):
        for x in range(min(k - shared_right, s - right) + 1):
            for y in range(min(r - k, right - shared_right) + 1):
                fewest = max(0, r + s - items - shared_right - x - y)
                largest = min(r - k - y, s - right - x)
                if fewest <= largest:
                    # Sharing another wrong item only brings the two persons closer.
                    inner = shared_right * (r - k) * (s - right) + fewest * k * right
                    inner -= x * (r - k) * right + y * k * (s - right)
                    t = w * w * k * (r - k) * r + v * v * right * (s - right) * s
                    d = w * w * k * (r - k) + v * v * right * (s - right)
                    common = shared_right * fewest + x * y
                    pairs.add((t - 2 * w * v * inner, d - 2 * w * v * common))
    return pairs


def _upper_hull(totals: Int64Array, disagreements: Int64Array) -> SquaredLengths:
    """Keep the points that are largest for some positive weights."""
    order = np.lexsort((disagreements, totals))[::-1]  # from the longest totals down
    t, d = totals[order], disagreements[order]
    better = np.concatenate([[True], d[1:] > np.maximum.accumulate(d)[:-1]])
    hull: SquaredLengths = []
    for point in zip(t[better].tolist(), d[better].tolist(), strict=True):
        while len(hull) >= 2 and _is_below(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _is_below(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    """Say whether the middle point lies on or inside the chord from first to last."""
    along = (middle[0] - first[0]) * (last[1] - first[1])
    across = (middle[1] - first[1]) * (last[0] - first[0])
    return across - along >= 0
