"""Who took an item: how much abler its takers are; and how far items and steps differ.

In: released standings of the takers of each item, and what the model expects. Out: a shift of
ability for each item. The shifts follow the difficulties by a common slope, which is likely to be
exactly zero, and each has a deviation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.logistic import logistic
from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.moments import ExpectedMoments, Ladders, Numbers
from discreet.types import FloatArray, IndexArray

#: Standard deviation of the slope on difficulty, where there is one.
SLAB = 0.4
LARGEST_SLOPE = 0.85
#: For intervals: a standard deviation that leaves slopes open up to the widest, and a factor for
#: the variance of what is seen, because the difficulties that it is a slope on are estimates too.
HONEST_SLAB, WIDEST_SLOPE, SLOPE_VARIANCE_FACTOR = 1.0, 0.9, 2.0
#: Share by which a line stretches or shrinks all locations for each unit of slope: where takers get
#: abler with difficulty they also get more alike, and closer to the middle.
STRETCH_SPREAD = 0.35
LARGEST_SHIFT = 2.5
#: A standing is thought to rise by this share of the best score per logit, at least.
SMALLEST_RISE = 0.03
#: Of one answer around its expectation, in shares of the best score: between one step (.25 at
#: most) and many.
STANDING_VARIANCE = 0.06
OWN_SPREADS = np.exp(np.linspace(np.log(0.01), np.log(2.0), 33))
#: Spreads of what an item's shift is beside the line, and the mean of their prior: where persons
#: choose by difficulty, or are given items by it, hardly anything is left.
USUAL_OWN_SPREAD = 0.07
RELAXATION = 0.7
#: Where items follow abilities by this slope, skewness and kurtosis can hardly be told any more.
SHAPE_BLUR = 0.12


@dataclass(frozen=True, eq=False)
class Slope:
    """By how many logits takers get abler with each logit of difficulty.

    ``observed`` is what the standings alone say, with its ``variance``; ``value`` is what is
    taken for likely.
    """

    value: float
    observed: float
    variance: float

    def stretch_locations(self) -> tuple[float, float]:
        """Return by how much the squares of errors and of locations are to be widened.

        With another slope all locations would be farther apart or closer together: what is seen of
        a location is what its takers do not make up for. Mean square of that ratio over likely
        slopes, and mean square of what it differs from one.
        """
        slopes = np.linspace(-WIDEST_SLOPE, WIDEST_SLOPE, 73)
        variance = SLOPE_VARIANCE_FACTOR * self.variance
        log = -0.5 * ((slopes - self.observed) ** 2 / variance + (slopes / HONEST_SLAB) ** 2)
        weight = np.exp(log - log.max())
        ratio = (1 - self.value) / (1 - slopes)
        square = (ratio - 1) ** 2 + (STRETCH_SPREAD * slopes) ** 2
        return float(weight @ ratio**2 / weight.sum()), float(weight @ square / weight.sum())


NO_SLOPE = Slope(0.0, 0.0, 1e12)


@dataclass(frozen=True, eq=False)
class Shifts:
    """By how much the takers of each item are abler than all, and the common slope."""

    value: FloatArray
    slope: Slope = NO_SLOPE

    @property
    def tightness(self) -> float:
        """Factor for the spread of skewness and kurtosis."""
        return float(1 / (1 + (self.slope.value / SHAPE_BLUR) ** 4))


def expected_standing(
    expected: ExpectedMoments, numbers: Numbers, steps: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Mean standing of the takers of each item, and how it rises with their ability."""
    share = expected.score / steps[:, None]
    mass = expected.takers[:, None] * expected.weight
    sums, everybody = (mass * share).sum(axis=0), mass.sum(axis=0) + 1e-300
    own_share = 1 / max(numbers.answers, 2.0)
    others = (sums - mass * share) / np.maximum(everybody - mass, 1e-300)
    standing = (expected.weight * (own_share * share + (1 - own_share) * others)).sum(axis=1) - 0.5
    rise = expected.weight @ np.gradient(sums / everybody, expected.ability)
    return standing, np.asarray(np.maximum(rise, SMALLEST_RISE) * (1 - own_share))


def shift_takers(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    steps: IndexArray,
    location: FloatArray,
    old: Shifts,
) -> Shifts:
    """Move the shifts towards what the released standings say."""
    if form.takers is None:
        return old
    standing, rise = expected_standing(expected, numbers, steps)
    answers = max(numbers.answers, 2.0)
    variance = form.takers_noise / expected.takers**2
    variance = (variance + STANDING_VARIANCE / answers / expected.takers) / rise**2
    raw = old.value + (form.takers / expected.takers - standing) / rise
    raw = raw - np.average(raw, weights=1 / variance)
    slope = _common_slope(raw, variance, location - location.mean())
    # Shrink each item's deviation from the line, averaged over how far deviations spread.
    line = slope.value * location
    deviation = raw - line
    total = OWN_SPREADS[:, None] ** 2 + variance
    log = -0.5 * (np.log(total) + deviation**2 / total).sum(axis=1) - OWN_SPREADS / USUAL_OWN_SPREAD
    weight = np.exp(log - log.max())
    trust = (weight / weight.sum()) @ (OWN_SPREADS[:, None] ** 2 / total)
    target = np.asarray(line + deviation * trust)
    target = target - np.average(target, weights=expected.takers)
    target = np.clip(target, -LARGEST_SHIFT, LARGEST_SHIFT)
    return Shifts(old.value + RELAXATION * (target - old.value), slope)


def _common_slope(raw: FloatArray, variance: FloatArray, location: FloatArray) -> Slope:
    """Slope of the shifts on difficulty: zero, or normal, whichever explains them better."""
    slope_variance = 1 / max(float((location**2 / variance).sum()), 1e-12)
    observed = float((raw * location / variance).sum()) * slope_variance
    trust = SLAB**2 / (SLAB**2 + slope_variance)
    odds = (
        0.5 * np.log(slope_variance / (slope_variance + SLAB**2))
        + 0.5 * observed**2 / slope_variance * trust
    )
    chance = logistic(odds)
    value = float(np.clip(observed * trust * chance, -LARGEST_SLOPE, LARGEST_SLOPE))
    return Slope(value, observed, slope_variance)


LOCATION_SPREADS = np.exp(np.linspace(np.log(0.05), np.log(6.0), 41))
STEP_SPREADS = np.exp(np.linspace(np.log(0.01), np.log(3.0), 37))
#: What stands for none at all in a rating scale.
NO_STEP_SPREAD = 1e-3

USUAL_LOCATION, LOCATION_LOG_SPREAD = 0.9, 0.5
#: Where the spreads are thought to be, and how sure that is: log-normal priors.
USUAL_STEP, STEP_LOG_SPREAD = 0.25, 0.7


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of locations, and of steps around their common pattern."""

    location: float
    step: float


def learn_spreads(
    ladders: Ladders, information: FloatArray, target: FloatArray, *, rating_scale: bool
) -> Spreads:
    """Return the spreads that explain the equations best.

    ``target`` is what the equations say about the thresholds less the common pattern:
    ``information @ deviation = target`` without a prior.
    """
    steps = np.array([NO_STEP_SPREAD]) if rating_scale else STEP_SPREADS
    likelihood = np.zeros((len(LOCATION_SPREADS), len(steps)))
    for count in np.unique(ladders.steps):
        items = np.flatnonzero(ladders.steps == count)
        likelihood += _likelihood(information[items], target[items], int(count), steps)
    likelihood -= (
        0.5 * (np.log(LOCATION_SPREADS / USUAL_LOCATION) / LOCATION_LOG_SPREAD)[:, None] ** 2
    )
    if not rating_scale:
        likelihood -= 0.5 * (np.log(steps / USUAL_STEP) / STEP_LOG_SPREAD) ** 2
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    location = float(np.exp(weight.sum(axis=1) @ np.log(LOCATION_SPREADS)))
    return Spreads(location, float(np.exp(weight.sum(axis=0) @ np.log(steps))))


def _likelihood(
    information: FloatArray, target: FloatArray, count: int, steps: FloatArray
) -> FloatArray:
    """Log marginal likelihood ``[location spread, step spread]`` of items with so many steps.

    With the steps turned into their mean and contrasts, the prior is diagonal, and with the
    contrasts turned once more so is their information: then the location is all that is left.
    """
    turn = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, : count - 1]]))[0]
    turned = turn.T @ information[:, :count, :count] @ turn
    score = target[:, :count] @ turn
    values, vectors = np.linalg.eigh(turned[:, 1:, 1:])
    values = np.maximum(values, 0.0)[:, :, None]
    link = np.einsum("ij,ijk->ik", turned[:, 0, 1:], vectors)[:, :, None]
    inner = np.einsum("ij,ijk->ik", score[:, 1:], vectors)[:, :, None]
    left = 1 / (values + 1 / steps**2)
    alone = np.maximum(turned[:, 0, 0, None] - (link**2 * left).sum(axis=1), 0.0)
    pull = score[:, 0, None] - (link * inner * left).sum(axis=1)
    contrasts = (inner**2 * left - np.log1p(values * steps**2)).sum(axis=(0, 1)) / 2
    variance = count * LOCATION_SPREADS[:, None, None] ** 2
    means = pull**2 / (alone + 1 / variance) - np.log1p(variance * alone)
    return np.asarray(contrasts + means.sum(axis=1) / 2)
