"""Differences between items, all of them at once.

In: numbers of items with their standard errors and, where it is known, their covariance. Out: how
many standard errors a difference must have before it counts, so that with the wanted probability
not one of the statements that are made is wrong.

The largest error of many differences has a law of its own, which draws with the covariance show
(max-t). Statements about the order of items need less: of two items only one order can be wrongly
claimed, and what has been claimed need not be claimed again. So the comparisons that are left set
the bar anew, until nothing is added (Romano and Wolf 2005, Journal of the American Statistical
Association 100, 94-108; Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91,
476-518). Without a covariance errors count as independent between two items and Holm's inequality
takes the place of the draws. Nothing here needs answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import erfc, sqrt

import numpy as np

from discreet.results.calibrated import CalibrationOrScores, Scored, as_estimate, make_estimate
from discreet.results.estimate import ERROR_DRAWS, Estimate, draw_errors, two_sided_quantile
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array, Vector

#: Differences looked at together: 32 MB.
BLOCK_CELLS = 4_000_000


#: Items up to which the law of the largest error comes from draws, and claims set the bar anew.
EXACT_ITEMS = 2_000


DRAWN_CELLS = 5_000_000


#: Above 500 items there are fewer draws, in the same memory. The largest of more errors varies
#: less, so that its quantile is as sure.
FEWEST_DRAWS = 2_000


PILOT_DRAWS = 100


#: Below so many degrees of freedom a covariance says too little about the largest of many errors:
#: Holm's inequality takes the place of the draws.
FEWEST_DEGREES = 30


#: Share of two variances below which that of their difference is rounding.
SAME = 1e-8


@dataclass(frozen=True, eq=False)
class Differences:
    """The numbers of items, largest first, and how sure their differences are.

    Attributes
    ----------
    value
        In falling order; equal ones as they stood.
    order
        Where each of them stands in the estimate.
    variance
        Of each, as differences need it.
    covariance
        Of all of them, or None.
    degrees
        Of freedom of the standard errors, or None.
    """

    value: FloatArray
    order: IndexArray
    variance: FloatArray
    covariance: FloatArray | None
    degrees: int | None

    def errors(self, rows: slice = slice(None)) -> FloatArray:
        """Return standard errors of the differences between some items and all.

        Infinite where nothing is known.
        """
        variance = self.variance[rows, None] + self.variance[None, :]
        if self.covariance is not None:
            variance = variance - 2 * self.covariance[rows]
        error = np.sqrt(np.maximum(variance, 0.0))
        return np.where(np.isnan(error), np.inf, error)

    def blocks(self) -> Iterator[slice]:
        """Give some items at a time: a matrix between all of many would fill the memory."""
        size = max(1, BLOCK_CELLS // max(len(self.value), 1))
        for start in range(0, len(self.value), size):
            yield slice(start, start + size)

    def surely_above(self, rows: slice, bar: float) -> BoolArray:
        """Say which items lie surely below each of some, at so many standard errors."""
        return self.value[rows, None] - self.value[None, :] > bar * self.errors(rows)

    def exceeded(self, outside: float) -> float:
        """Return how many standard errors one difference exceeds upwards with a probability."""
        return two_sided_quantile(min(2 * outside, 1.0), self.degrees)


def as_ranked(ranked: CalibrationOrScores, purpose: str) -> tuple[Estimate, str]:
    """Return what has an order as an estimate, and the noun for what it is about.

    Given the difficulties, the errors of persons are independent of each other.
    """
    if not isinstance(ranked, Scored):
        noun = str(getattr(ranked, "noun", "item"))
        source = ranked if noun == "item" else getattr(ranked, "estimate", ranked)
        return as_estimate(source, purpose), noun
    scores = make_estimate(list(ranked.persons), ranked.ability, ranked.se)
    variance = scores.se[scores.estimated] ** 2
    is_small = len(variance) <= EXACT_ITEMS
    return replace(scores, covariance=np.diag(variance) if is_small else None), "person"


def find_differences(estimate: Estimate, *, easiest: bool = False) -> Differences:
    """Put the items of an estimate in their order."""
    positions = np.flatnonzero(estimate.estimated)
    value = estimate.difficulty[positions] * (-1.0 if easiest else 1.0)
    order = np.argsort(-value, kind="stable")
    covariance = estimate.covariance
    if covariance is None:
        # Difficulties with mean zero are slightly negatively correlated: m / (m - 1).
        m = len(positions)
        variance = estimate.se[positions][order] ** 2 * (m / max(m - 1, 1))
    else:
        covariance = covariance[np.ix_(order, order)]
        variance = covariance.diagonal()
    return Differences(value[order], positions[order], variance, covariance, estimate.degrees)


def name_without_error(estimate: Estimate) -> tuple[str, ...]:
    """Return the items that have a difficulty and no standard error."""
    missing = estimate.estimated & ~np.isfinite(estimate.se)
    return tuple(estimate.items[place] for place in np.flatnonzero(missing))


@dataclass(frozen=True, eq=False)
class Law:
    """Draws of the errors of all items, from which the largest difference is read.

    Attributes
    ----------
    errors
        ``float32[draw, item]``; of ``drawn`` draws those in which some difference is large.
    scale
        One over the standard error of each difference; zero where it is none.
    reach
        Per item. A difference of c standard errors has an item on one side or the other whose
        own error is c times its reach or more: only such items need be compared with others.
    floor
        Below so many standard errors nothing is looked at.
    """

    errors: Vector
    scale: Vector
    reach: FloatArray
    floor: float
    n_draws: int

    def largest(self, counted: BoolArray | None = None) -> FloatArray:
        """Return the largest difference of each draw and of its mirror image, in standard errors.

        Exact where it reaches the floor. ``counted[j, i]`` says whether it counts that j comes out
        above i; None counts everything.
        """
        largest = np.zeros((2, len(self.errors)))
        draw, item = np.nonzero(np.abs(self.errors) > self.floor * self.reach)
        size = max(1, BLOCK_CELLS // (4 * len(self.reach)))
        for start in range(0, len(draw), size):
            draws, items = draw[start : start + size], item[start : start + size]
            # How much further up every item comes out than the own one.
            rows = (self.errors[draws] - self.errors[draws, items, None]) * self.scale[items]
            highest = _find_largest(rows, items, counted)
            for side, high in zip(largest, highest, strict=True):
                np.maximum.at(side, draws, high)
        return largest

    def critical(self, level: float, counted: BoolArray | None = None) -> float:
        """Return what the largest difference stays below with a probability, or the floor."""
        largest = np.sort(self.largest(counted).ravel())
        allowed = int((1 - level) * 2 * self.n_draws + 1e-9)
        return (
            max(self.floor, float(largest[-1 - allowed])) if allowed < len(largest) else self.floor
        )


def _find_largest(
    rows: Vector, items: IndexArray, counted: BoolArray | None
) -> tuple[Vector, Vector]:
    """Return the largest that counts of each row, and of each row turned round."""
    if counted is None:
        high = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        return high, high
    above, below = np.where(counted.T[items], rows, 0.0), np.where(counted[items], rows, 0.0)
    return (
        np.maximum(above.max(axis=1), -below.min(axis=1)),
        np.maximum(below.max(axis=1), -above.min(axis=1)),
    )


def draw_law(
    differences: Differences, covariance: FloatArray, rng: np.random.Generator | None
) -> Law:
    """Draw the errors of items with a covariance; without a source always the same draws."""
    items, variance = len(differences.value), np.nan_to_num(differences.variance)
    n_draws = min(ERROR_DRAWS, max(FEWEST_DRAWS, DRAWN_CELLS // items))
    has_variance = np.isfinite(differences.variance)
    errors = np.zeros((n_draws, items), dtype=np.float32)
    errors[:, has_variance] = draw_errors(
        covariance[np.ix_(has_variance, has_variance)], rng, n_draws=n_draws
    )
    error, variance_sum = differences.errors(), variance[:, None] + variance[None, :]
    counts = np.isfinite(error) & (error**2 > SAME * variance_sum)
    scale = np.divide(1.0, error, out=np.zeros_like(error), where=counts)
    # |z_i - z_j| <= sqrt(a_i^2 + a_j^2) sqrt(v_i + v_j) for z = a sqrt(v), by Cauchy and Schwarz.
    share = np.divide(error**2, variance_sum, out=np.ones_like(error), where=counts).min(axis=1)
    return Law(errors, scale.astype(np.float32), np.sqrt(share * variance / 2), 0.0, n_draws)


@dataclass(frozen=True, eq=False)
class Bars:
    """How many standard errors a difference needs, for statements that hold together.

    Attributes
    ----------
    differences
        What is compared.
    level
        With which probability all statements of one kind hold.
    rng
        Source of the draws, or None for a public seed.
    """

    differences: Differences
    level: float
    rng: np.random.Generator | None = None

    @cached_property
    def _law(self) -> Law | None:
        """Keep the draws that can matter for claims about the order of two items.

        A family that has one order of every pair exceeds a bar at least half as often as all of
        them do, because an error and its mirror image are equally likely.
        """
        covariance, degrees = self.differences.covariance, self.differences.degrees
        is_rough = degrees is not None and degrees < FEWEST_DEGREES
        if covariance is None or is_rough or not 2 <= len(self.differences.value) <= EXACT_ITEMS:
            return None
        law = draw_law(self.differences, covariance, self.rng)
        least = max(1 - 2 * (1 - self.level), 0.0)
        some = replace(law, errors=law.errors[:PILOT_DRAWS]).largest()[0]
        floor = float(np.quantile(some, max(least - 0.2, 0.0))) if least else 0.0
        largest = replace(law, floor=floor).largest()[0]
        lowest = float(np.quantile(largest, least))
        if lowest <= floor:  # a pilot of few draws may lie
            return law
        return replace(law, errors=law.errors[largest >= lowest], floor=lowest)

    def _bar(self, counted: BoolArray | None = None) -> float:
        """Return the bar for statements about these orders of two items, or about all of them.

        Every difference has a standard error of its own. Where these are estimates, the bar is that
        of Student's law which one difference exceeds as rarely as the normal one: draws of a common
        error of all standard errors would make the largest of many differences too small.
        """
        degrees = self.differences.degrees
        if self._law is not None:
            bar = self._law.critical(self.level, counted)
            return bar if degrees is None else two_sided_quantile(erfc(bar / sqrt(2)), degrees)
        items = len(self.differences.value)
        number = items * (items - 1) if counted is None else int(counted.sum())
        return self.differences.exceeded((1 - self.level) / max(number, 1))

    @cached_property
    def interval(self) -> float:
        """For intervals of all differences at once."""
        return self._bar()

    @cached_property
    def order(self) -> float:
        """For the order of all items: what is surely above what."""
        counted = ~np.eye(min(len(self.differences.value), EXACT_ITEMS), dtype=bool)
        if len(self.differences.value) > len(counted):
            return self.interval
        # Claim what is sure, and set the bar anew for what is left, until nothing is added.
        while True:
            bar = self._bar(counted)
            left = counted & ~self.differences.surely_above(slice(None), bar)
            if (left == counted).all():
                return bar
            counted = left

    def top(self, count: int) -> float:
        """For which items are among the ``count`` largest.

        A wrong statement about that puts an item that is not among them above one that is. Only
        these comparisons can go wrong, and whichever items they are, their number is known: the
        probabilities of their errors are added up. (Draws would lower the sum by no more than
        a percent or two: an item with a small error is passed by all others independently.)
        """
        across = count * (len(self.differences.value) - count)
        bar = self.differences.exceeded((1 - self.level) / max(across, 1))
        return min(bar, self.interval)


def sort_out(differences: Differences, bar: float, count: int) -> tuple[BoolArray, BoolArray]:
    """Which items are surely, and which possibly, among the ``count`` largest."""
    above, below, _ = count_sure(differences, bar)
    m = len(differences.value)
    return (below >= m - count) & (count > 0), above < count


def count_sure(differences: Differences, bar: float) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count the items that are surely above and below each, and find the first one below."""
    m = len(differences.value)
    above, below = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    first = np.full(m, m, dtype=np.int64)
    for rows in differences.blocks():
        sure = differences.surely_above(rows, bar)
        above += sure.sum(axis=0)
        below[rows] = sure.sum(axis=1)
        first[rows] = np.where(sure.any(axis=1), sure.argmax(axis=1), m)
    return above, below, first
