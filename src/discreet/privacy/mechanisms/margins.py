"""`margins`: how each item did against its own takers, and how often two items disagree.

In: public parameters and a budget. Out: integer person weights, the noise of both summaries,
what that spends. Both summaries come from one matrix, the weighted pair counts ``Yw``:
``T = row sums - column sums`` and ``D = Yw + Yw'``. Derivation and proof: docs/margins.md.

Sensitivity: a person with r answers, k of them right, and weight w adds w (r - k) to the total of
each right item and -w k to that of each wrong one, and w to each of the k (r - k) disagreements. So
the squared lengths are ``w^2 k (r - k) r`` and ``w^2 k (r - k)``.

Replacing a person by another one (weight v, s answers, l right), let x be the number of items
right before and wrong after, y the number wrong before and right after. Items that are right
in both, or wrong in both, only bring the two closer. The squared lengths are then

    totals         w^2 k (r-k) r + v^2 l (s-l) s + 2 w v [x (r-k) l + y k (s-l)]
    disagreements  w^2 k (r-k)   + v^2 l (s-l)   - 2 w v x y

with x <= min(k, s-l), y <= min(r-k, l). Any sum of the two with positive weights is linear in x
for fixed y and the other way round, so it is largest at one of the four corners. When both
persons cannot avoid common items (r + s > m) the corners may not be attained: the bound stays
valid, and for short lists (``EXACT_ITEMS``) every overlap is tried instead, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from math import ceil, inf, sqrt
from typing import Any, Literal

import numpy as np

from discreet.choices import PlainDict
from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.jit import compiled_loop
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import (
    calibrate_blocks,
    calibrate_laplace,
    round_ratio,
)
from discreet.privacy.mechanisms.base import AdditiveMechanism, sum_margins
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public, check_pair_matrix_size
from discreet.secure import RandomSource
from discreet.types import Int64Array

Norm = Literal["euclidean", "absolute"]

#: Grid steps per unit of a total. Weights are rounded to it, contributions never are.
GRID = 2**20

#: Longest contribution, as a share of that of a person with half of ``answers`` right.
#:
#: Below it everybody weighs 1 / answered, which is best without noise; above it weights shrink so
#: that contributions have equal length, which is best with noise. Between .6 and .8 no error in
#: docs/decisions/0005-margins.md changes by more than 3%; 1 costs up to 20%.
CLIP = 0.7

#: Variance ratio of a total to a disagreement, per answer, at epsilon 1.
#:
#: Joint differences make .15 free. It goes with the root of epsilon, from half to twice this value:
#: the less noise there is, the less a model of the disagreements has to add to their raw values.
SHARE = 0.3

FULL_ANSWERS = 0.8
#: Where people answer at least .8 of the list, answered numbers vary little, so clipping gains
#: little, and every pair is answered together, so that the share need not grow with epsilon.
FULL_CLIP, FULL_SHARE = 0.85, 0.35

SHORT_LIST = 10
#: With up to ten items too little is left to learn a model from: more for the raw values; with
#: three, where clipping gains nothing, as much as is free when all answer (ratio 1).
SHORT_CLIP, SHORT_SHARE = 0.85, 0.6


@dataclass(frozen=True)
class PersonWeights:
    """Integer weight of a person by (answered, right): 1 / answered, or less where that is long.

    Any function of (answered, right) leaves the fit unbiased (docs/margins.md), so shortening
    by weight clips without bias.

    Attributes
    ----------
    grid
        Steps per unit.
    longest
        Largest length of one person's contribution to the totals, in units.
    norm
        The length that is limited: Euclidean, or half the sum of absolute values.

    Examples
    --------
    >>> weights = PersonWeights(grid=1000, longest=1.0)
    >>> weights(np.array([4, 4, 2]), np.array([2, 1, 2]))
    array([250, 250,   0])
    """

    grid: int
    longest: float
    norm: Norm = "euclidean"

    def __call__(self, answered: Int64Array, right: Int64Array) -> Int64Array:
        """Return the weights; zero for a person who compares no two items."""
        pairs = right * (answered - right)
        real = pairs > 0
        safe = np.where(real, pairs, 1).astype(np.float64)
        number = np.where(real, answered, 1).astype(np.float64)
        length = np.sqrt(safe / number) if self.norm == "euclidean" else safe / number
        weight = self.grid / number * np.minimum(1.0, self.longest / length)
        return np.where(real, np.rint(weight), 0.0).astype(np.int64)


@dataclass(frozen=True)
class Margins(AdditiveMechanism):
    """Noise on the totals and the disagreements of weighted answers.

    Attributes
    ----------
    name
        ``"margins"``, or ``"laplace-margins"`` for pure epsilon.
    family
        Discrete Gaussian noise, or discrete Laplace noise.
    answers
        Typical number of answers per person, known in advance; by default the cap. A cap far
        above it costs little: long contributions are shortened by weight.
    clip, share
        See ``CLIP`` and ``SHARE``; by default chosen from the number of items and epsilon.
    booklets
        Public knowledge of the design: the sets of items that were offered together, each to
        about as many persons. It changes no noise, only how the disagreements are denoised.
    """

    name: str = "margins"
    family: Literal["gaussian", "laplace"] = "gaussian"
    answers: float | None = None
    clip: float | None = None
    share: float | None = None
    booklets: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("clip", self.clip), ("share", self.share)):
            if value is not None and not value > 0:
                raise BadUsage(f"{name} must be positive, found {value}")
        if self.answers is not None and not 2 <= self.answers < inf:
            raise BadUsage(
                f"answers, the typical number of answers per person, must be at least 2, "
                f"found {self.answers}"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_pair_matrix_size(public, self.name)
        unknown = {item for one in self.booklets for item in one} - set(public.items)
        if unknown:
            raise BadUsage(f"the booklets name {min(unknown)!r}, which is not on the item list")
        typical = min(self.answers or public.max_answers, public.max_answers)
        if self.family == "laplace":
            return self._calibrate_laplace(public, budget, typical)
        clip, share = self._shape(len(public.items), typical, budget.epsilon)
        weights = PersonWeights(GRID, clip * sqrt(typical) / 2)
        sensitivities = margins_l2_sensitivity(
            weights,
            items=len(public.items),
            max_answers=public.max_answers,
            neighbours=public.neighbours,
        )
        ratio = round_ratio(1 / sqrt(share * typical))
        cells = len(public.items) * (len(public.items) + 1) // 2
        scale, spend = calibrate_blocks(
            sensitivities, (Fraction(1), ratio), budget, coordinates=cells, mechanism=self.name
        )
        return NoiseCalibration(self._laws(scale, ratio), spend, settings=self._settings(weights))

    def _calibrate_laplace(
        self, public: Public, budget: Budget, typical: float
    ) -> NoiseCalibration:
        # The sum over pairs of one person is at most answers / 4 (half right): limit that.
        clip, share = self._shape(len(public.items), typical, budget.epsilon)
        weights = PersonWeights(GRID, clip * typical / 4, norm="absolute")
        totals, disagreements = margins_l1_sensitivity(weights, max_answers=public.max_answers)
        persons = 2 if public.neighbours is Neighbours.REPLACE_ONE else 1
        ratio = round_ratio(1 / sqrt(share * typical))
        length = ceil(persons * (totals + disagreements / ratio))
        scale, spend = calibrate_laplace(length, budget, mechanism=self.name)
        return NoiseCalibration(self._laws(scale, ratio), spend, settings=self._settings(weights))

    def _shape(self, items: int, typical: float, epsilon: float) -> tuple[float, float]:
        """Return clip and share: the user's, or those for these public parameters."""
        clip, share = CLIP, SHARE * sqrt(min(max(epsilon, 0.25), 4.0))
        if items <= SHORT_LIST:
            clip, share = (1.0, 1.0) if items <= 3 else (SHORT_CLIP, SHORT_SHARE)
        elif typical >= FULL_ANSWERS * items:
            clip, share = FULL_CLIP, FULL_SHARE
        return self.clip or clip, self.share or share

    def _laws(self, scale: Fraction, ratio: Fraction) -> dict[str, NoiseLaw]:
        return {
            "total": NoiseLaw(self.family, scale),
            "disagreement": NoiseLaw(self.family, scale * ratio),
        }

    def _settings(self, weights: PersonWeights) -> PlainDict:
        shape = {"grid": weights.grid, "longest": weights.longest, "norm": weights.norm}
        return {**shape, "booklets": [list(one) for one in self.booklets]}

    def weighting(self, public: Public, calibration: NoiseCalibration) -> PersonWeights:  # noqa: ARG002
        """Return the integer weights that the noise was calibrated for."""
        settings = calibration.settings
        return PersonWeights(settings["grid"], settings["longest"], settings["norm"])

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the totals and the upper triangle of the disagreements, exact. Confidential."""
        totals, disagreements = sum_margins(counts.dense(f"the mechanism {self.name}"))
        return {"total": totals, "disagreement": disagreements}


laplace_margins = partial(Margins, "laplace-margins", "laplace")


# --- sensitivity ---------------------------------------------------------------------------------


Weighting = Callable[[Int64Array, Int64Array], Int64Array]
SquaredLengths = list[tuple[int, int]]

#: Up to this many items every overlap of two persons is tried: a second at most.
EXACT_ITEMS = 10

#: Up to this cap every two kinds of persons are compared: 10^8 pairs, about a second.
LARGEST_PAIRED_CAP = 200

#: Up to this cap NumPy compares every two kinds of persons: a twentieth of a second, where the
#: compiled loop has to be loaded first (half a second) or even compiled (seconds).
PLAIN_CAP = 40

#: Differences are kept by the length of their totals, to 1/8192 of the longest; rounded up.
BINS = 16384


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
    if items <= EXACT_ITEMS:
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
