"""What totals and moments say about thresholds and abilities, linearised.

In: released values of one form, thresholds, a shape of abilities. Out: what the model expects of
them, and the normal equations of weighted least squares around them. Abilities stand on a grid;
their distribution has a mean, a scale, a skewness and an excess kurtosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.types import BoolArray, FloatArray, IndexArray

#: Standardised abilities: ability = mean + scale * node.
NODES = np.linspace(-5.0, 5.0, 41)

#: How much of the squared skewness is taken from the kurtosis: without it the density of skewed
#: abilities climbs again at an end of the grid.
TIE = 0.4

#: From one threshold of an item to the next: categories are meant to come in order.
USUAL_GAP = 0.5

#: Numbers that describe abilities: mean, logarithm of the scale, skewness, excess kurtosis.
SHAPE_SIZE = 4


@dataclass(frozen=True, eq=False)
class Ladders:
    """What is public about the items.

    Attributes
    ----------
    steps
        Per item, its highest category.
    open
        ``[item, step]``: which steps an item has.
    pattern
        ``[item, step, coefficient]``: contrasts of steps that all items with as many steps share.
    usual
        The coefficients of steps that rise by the usual gap.
    location, contrast
        ``[item, step, step]``: prior precision of the thresholds of an item whose location, or
        whose steps around the pattern, have spread 1.
    """

    steps: IndexArray
    open: BoolArray
    pattern: FloatArray
    usual: FloatArray
    location: FloatArray
    contrast: FloatArray

    def precision(self, location_spread: float, step_spread: float) -> FloatArray:
        """Return the prior precision of the thresholds of each item."""
        return np.asarray(self.location / location_spread**2 + self.contrast / step_spread**2)

    @property
    def beyond(self) -> FloatArray:
        """A precision for steps that an item does not have, ``[item, step, step]``."""
        return np.asarray((~self.open)[:, :, None] * np.eye(self.open.shape[1]))

    def centre(self, thresholds: FloatArray) -> tuple[FloatArray, float]:
        """Return thresholds whose mean location is zero, and how far they moved."""
        shift = float((thresholds.sum(axis=1) / self.steps).mean())
        return np.where(self.open, thresholds - shift, 0.0), shift


def describe_items(steps: Sequence[int]) -> Ladders:
    """Gather what the numbers of steps say.

    Examples
    --------
    >>> describe_items([1, 2]).pattern[1].round(2).tolist()
    [[-0.71], [0.71]]
    """
    count = np.asarray(steps, dtype=np.intp)
    widest = int(count.max())
    is_open = np.arange(widest) < count[:, None]
    columns = [_contrasts(int(many), widest) for many in np.unique(count)]
    blocks = [
        (count == many)[:, None, None] * block
        for many, block in zip(np.unique(count), columns, strict=True)
    ]
    usual = np.concatenate([USUAL_GAP * np.arange(widest) @ block for block in columns])
    open_pairs = is_open[:, :, None] & is_open[:, None, :]
    mean = open_pairs / count[:, None, None] ** 2
    contrast = open_pairs * np.eye(widest) - mean * count[:, None, None]
    return Ladders(count, is_open, np.concatenate(blocks, axis=2), usual, mean, contrast)


def _contrasts(steps: int, widest: int) -> FloatArray:
    """Orthonormal contrasts of so many steps, the first of them linear, ``[step, contrast]``."""
    powers = np.vander(np.linspace(-1, 1, steps) if steps > 1 else np.zeros(1), steps)[:, ::-1]
    basis = np.linalg.qr(powers)[0][:, 1:]
    basis = basis * np.sign(basis[-1:] + 1e-12)
    return np.pad(basis, ((0, widest - steps), (0, 0)))


def category_node_probabilities(
    thresholds: FloatArray, is_open: BoolArray, ability: FloatArray
) -> FloatArray:
    """Probabilities ``[item, category, node]`` of the categories at the given abilities."""
    climbed = np.pad(np.cumsum(np.where(is_open, thresholds, 0.0), axis=1), ((0, 0), (1, 0)))
    has_category = np.pad(is_open, ((0, 0), (1, 0)), constant_values=True)
    logit = np.arange(has_category.shape[1])[:, None] * ability - climbed[:, :, None]
    logit = np.where(has_category[:, :, None], logit, -np.inf)
    chance = np.exp(logit - logit.max(axis=1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def skewness_slope(shape: FloatArray, node: FloatArray) -> FloatArray:
    """How the log density moves with the skewness."""
    return np.asarray(_third(node) - 2 * TIE * shape[2] * _fourth(node))


def _third(node: FloatArray) -> FloatArray:
    return np.asarray((node**3 - 3 * node) / 6)


def _fourth(node: FloatArray) -> FloatArray:
    return np.asarray((node**4 - 6 * node**2 + 3) / 24)


THIRD, FOURTH = _third(NODES), _fourth(NODES)


def ability_density(shape: FloatArray, shift: FloatArray | None = None) -> FloatArray:
    """Weights of the nodes that sum to one, ``[1 or item, node]``.

    ``shape`` holds mean, log scale, skewness and excess kurtosis. ``shift``: by how much, in
    logits, those who took an item are abler than all.

    Examples
    --------
    >>> weights = ability_density(np.zeros(4))[0]
    >>> round(float(weights @ NODES**2), 3)
    1.0
    """
    moved = np.zeros(1) if shift is None else shift / np.exp(shape[1])
    node = np.clip(NODES - moved[:, None], NODES[0], NODES[-1])
    kurtosis = shape[3] - TIE * shape[2] ** 2
    log = -(node**2) / 2 + shape[2] * _third(node) + kurtosis * _fourth(node)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


# --- totals of categories ------------------------------------------------------------------------


#: No item is thought to have fewer takers than this share of the mean number.
FEWEST_TAKERS = 0.1

#: No fewer persons than this share are thought to enter the moments.
FEWEST_CONTRIBUTING = 0.05

#: Density of the share of answers by persons with too few for the moments: even up to a half.
MOST_SHORT = 2.0


@dataclass(frozen=True, eq=False)
class ExpectedMoments:
    """What the model says about one form, at the nodes.

    Attributes
    ----------
    chance
        ``[own item, category, node]``.
    weight
        ``[own item, node]``: abilities of those who took the item.
    overall
        ``[node]``: abilities of all, weighted by answers.
    score, variance
        ``[own item, node]``: mean and variance of the category.
    takers
        Weighted number of answers of each item.
    ability, scale
        Logits at the nodes, and by how many they move from one unit to the next.
    """

    chance: FloatArray
    weight: FloatArray
    overall: FloatArray
    score: FloatArray
    variance: FloatArray
    takers: FloatArray
    ability: FloatArray
    scale: float


@dataclass(frozen=True, eq=False)
class TotalsView:
    """Normal equations of the totals of one form.

    Attributes
    ----------
    information, score
        ``[own item, step, step]`` and ``[own item, step]``: of the thresholds.
    cross
        ``[own item, step, 4]``: thresholds with the shape of abilities.
    shape_information, shape_score
        Of the shape.
    """

    information: FloatArray
    score: FloatArray
    cross: FloatArray
    shape_information: FloatArray
    shape_score: FloatArray


@dataclass(frozen=True, eq=False)
class Numbers:
    """How many took the items of a form, before the model is looked at.

    ``usual`` is the mean over items, ``variance`` what is left of their scatter without the noise:
    zero where everybody took everything. ``answers`` is the mean number per person, ``damping`` the
    weight of such a person, by which sampling is less than that of as many whole persons.
    ``contributing`` is the sum of units of those who enter the moments, with the variance
    ``contributing_variance``.
    """

    usual: float
    variance: float
    persons: float
    answers: float
    damping: float
    contributing: float
    contributing_variance: float


def count_takers(form: FormTotals) -> Numbers:
    """Learn from the totals how many took the items."""
    totals = form.category.sum(axis=1)
    noise = form.category_noise.sum(axis=(1, 2))
    if form.complete:
        persons = _pool_persons(form, totals, noise)
        return Numbers(persons, 0.0, persons, float(len(totals)), 1.0, persons, 0.0)
    max_persons = max(form.persons, 1.0)
    ceiling = max_persons * form.max_answers / len(totals)
    usual = float(np.clip(totals.mean(), 0.05 * ceiling, ceiling))
    scatter = float(totals.var() - noise.mean()) if len(totals) > 2 else 0.0
    weighted = usual * len(totals) / max_persons
    answers = weighted if weighted <= form.typical else weighted**2 / form.typical
    answers = float(np.clip(answers, min(2.0, form.max_answers), form.max_answers))
    damping = min(1.0, float(np.sqrt(form.typical / answers)))
    contributing, pooled_variance = _pool_contributing(
        form, float(totals.sum()), float(noise.sum()), max_persons
    )
    variance = max(scatter, (0.02 * usual) ** 2)
    return Numbers(usual, variance, max_persons, answers, damping, contributing, pooled_variance)


def _pool_contributing(
    form: FormTotals, answers: float, noise: float, persons: float
) -> tuple[float, float]:
    """Pool the released sum of units with what the totals say, where they agree.

    Both are the same unless persons with few answers add to the totals only. Either nobody does,
    or any share up to a half, alike likely; weighted by how well each explains the difference.
    """
    units = form.max_answers * min(1.0, np.sqrt(form.typical / form.max_answers))
    from_totals, vague = answers / units, noise / units**2
    released_variance = max(form.contributing_noise, 1e-9)
    misfit = (from_totals - form.contributing) ** 2 / (released_variance + vague)
    same = np.exp(-misfit / 2) / np.sqrt(2 * np.pi * (released_variance + vague))
    chance = float(same / (same + MOST_SHORT / max(from_totals, 1.0)))
    trust = chance * released_variance / (released_variance + vague)
    value = form.contributing + trust * (from_totals - form.contributing)
    variance = (
        released_variance * (1 - trust)
        + chance * (1 - chance) * (trust * (from_totals - value)) ** 2
    )
    least, largest = FEWEST_CONTRIBUTING * persons, persons
    return float(np.clip(value, least, largest)), variance


def _pool_persons(form: FormTotals, totals: FloatArray, noise: FloatArray) -> float:
    """Pool the number of persons from a noisy count and from the totals, which all say the same."""
    if form.persons_noise <= 0:
        return max(form.persons, 1.0)
    weight = 1 / np.maximum(noise, 1e-9)
    sums = form.persons / form.persons_noise + float(weight @ totals)
    return max(sums / (1 / form.persons_noise + float(weight.sum())), 1.0)


def expect_form(
    form: FormTotals,
    numbers: Numbers,
    ladders: Ladders,
    thresholds: FloatArray,
    shape: FloatArray,
    shift: FloatArray | None,
) -> ExpectedMoments:
    """Evaluate the model at the nodes; ``thresholds`` and ``ladders`` are those of all items."""
    scale = float(np.exp(shape[1]))
    ability = shape[0] + scale * NODES
    is_open = ladders.open[form.columns]
    chance = category_node_probabilities(thresholds[form.columns], is_open, ability)
    category = np.arange(chance.shape[1])
    score = np.tensordot(chance, category, axes=(1, 0))
    square = np.tensordot(chance, category**2, axes=(1, 0))
    weight = np.broadcast_to(ability_density(shape, shift), score.shape)
    takers = _estimate_takers(form, numbers, chance, weight)
    overall = takers @ weight / takers.sum()
    variance = np.maximum(square - score**2, 1e-9)
    return ExpectedMoments(chance, weight, overall, score, variance, takers, ability, scale)


def _estimate_takers(
    form: FormTotals, numbers: Numbers, chance: FloatArray, weight: FloatArray
) -> FloatArray:
    """Estimate the takers of each item: its totals against the shares that the model expects."""
    if form.complete:
        return np.full(len(weight), numbers.usual)
    mean, sampling = _sampling(chance, weight)
    spread = numbers.usual * numbers.damping * sampling + form.category_noise
    spread = spread + 1e-3 * numbers.usual * np.eye(mean.shape[1])
    solved = np.linalg.solve(spread, mean[:, :, None])[:, :, 0]
    takers = (solved * form.category).sum(axis=1) + numbers.usual / numbers.variance
    takers = takers / ((solved * mean).sum(axis=1) + 1 / numbers.variance)
    return np.asarray(np.clip(takers, FEWEST_TAKERS * numbers.usual, numbers.persons))


def _sampling(chance: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares of the categories, and the covariance of one answer given its ability."""
    weighted = chance * weight[:, None, :]
    mean = weighted.sum(axis=2)
    covariance = -weighted @ chance.transpose(0, 2, 1)
    places = np.arange(mean.shape[1])
    covariance[:, places, places] += mean
    return mean, covariance


def view_totals(
    form: FormTotals, numbers: Numbers, expected: ExpectedMoments, shape: FloatArray
) -> TotalsView:
    """Linearise the totals of one form."""
    mean, sampling = _sampling(expected.chance, expected.weight)
    weights = _weigh_residuals(form, numbers, expected, mean, sampling)
    residual = form.category - expected.takers[:, None] * mean
    # How the mean shares move with the thresholds, ``[own item, category, step]``.
    weighted = expected.chance * expected.weight[:, None, :]
    reached = np.cumsum(expected.chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
    passed = np.tri(mean.shape[1], mean.shape[1] - 1, -1)
    slope = weighted @ reached.transpose(0, 2, 1) - mean[:, :, None] * passed
    slope = slope * expected.takers[:, None, None]
    shape_slope = _shape_slopes(expected, mean, shape) * expected.takers[:, None, None]
    gain, shape_gain = weights @ slope, weights @ shape_slope
    return TotalsView(
        slope.transpose(0, 2, 1) @ gain,
        np.einsum("ika,ik->ia", gain, residual),
        gain.transpose(0, 2, 1) @ shape_slope,
        np.einsum("ika,ikb->ab", shape_slope, shape_gain),
        np.einsum("ika,ik->a", shape_gain, residual),
    )


def _weigh_residuals(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    mean: FloatArray,
    sampling: FloatArray,
) -> FloatArray:
    """Inverse covariance of the residuals; the number of takers is integrated out."""
    takers = expected.takers[:, None, None]
    floor = 1e-6 * numbers.usual * np.eye(mean.shape[1])
    inverse = np.linalg.inv(takers * numbers.damping * sampling + form.category_noise + floor)
    if form.complete:
        return np.asarray(inverse)
    solved = (inverse @ mean[:, :, None])[:, :, 0]
    lost = (solved * mean).sum(axis=1) + 1 / numbers.variance
    return np.asarray(inverse - solved[:, :, None] * solved[:, None, :] / lost[:, None, None])


def _shape_slopes(expected: ExpectedMoments, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """How the mean shares move with the shape of abilities, ``[own item, category, 4]``."""
    category = np.arange(mean.shape[1])
    weighted = expected.chance * expected.weight[:, None, :]
    rising = weighted * (category[:, None] - expected.score[:, None, :])
    skewness = skewness_slope(shape, NODES)
    tilt = np.stack([skewness, FOURTH], axis=1)
    centred = weighted @ tilt - mean[:, :, None] * (expected.weight @ tilt)[:, None, :]
    along = np.stack([np.ones(len(NODES)), expected.scale * NODES], axis=1)
    return np.concatenate([rising @ along, centred], axis=2)


# --- moments of scores ---------------------------------------------------------------------------


POLYNOMIALS = np.array([[0.0, 2.0, 0.0, 0.0], [-3.0, 0.0, 4.0, 0.0], [0.0, -8.0, 0.0, 8.0]])
#: T2, T3 and T4 as sums of h1 to h4 and a constant.
CONSTANTS = np.array([-1.0, 0.0, 1.0])

#: Part that an item keeps among persons of any ability, against that of a mean item. Where takers
#: differ much, the most able may have been given a single item, and products of four have no mean.
LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class MomentsView:
    """Moments of one form, per person.

    Attributes
    ----------
    mean
        Expected.
    surprise
        Released less expected.
    by_threshold
        ``[moment, own item, step]``.
    by_shape
        ``[moment, 4]``.
    noise
        Covariance: privacy noise and answers given abilities.
    """

    mean: FloatArray
    surprise: FloatArray
    by_threshold: FloatArray
    by_shape: FloatArray
    noise: FloatArray


def view_moments(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    steps: IndexArray,
    shape: FloatArray,
) -> MomentsView:
    """Linearise the moments of one form; ``steps`` are those of its items."""
    size = len(form.moment)
    basis, constants = POLYNOMIALS[:size, : size + 1], CONSTANTS[:size]
    means, by_threshold, by_shape = _means_and_slopes(expected, steps, shape, size + 1)
    released, noise = _mean_moments(form, numbers)
    # Covariance of h1 .. h_order over persons, given their abilities.
    # For q independent values with mean u and variance v, h_r and h_s have the covariance ``sum_j
    # C(r, j) C(s, j) / C(q, j) v^j u^(r + s - 2 j)``.
    order = size + 1
    centre = (2 * expected.score / steps[:, None] - 1).mean(axis=0)
    spread = (4 * expected.variance / steps[:, None] ** 2).mean(axis=0)
    answers = max(numbers.answers, float(order))
    out = np.zeros((order, order))
    ways = 1.0
    for j in range(1, order + 1):
        ways *= (answers - j + 1) / j
        rows = np.array([comb(r, j) * centre ** max(r - j, 0) for r in range(1, order + 1)])
        out += (rows * (expected.overall * spread**j)) @ rows.T / ways
    sampling = basis @ (out / numbers.persons) @ basis.T
    mean = basis @ means + constants
    return MomentsView(
        mean,
        released - mean,
        np.tensordot(basis, by_threshold, axes=(1, 0)),
        basis @ by_shape,
        noise + sampling,
    )


def _mean_moments(form: FormTotals, numbers: Numbers) -> tuple[FloatArray, FloatArray]:
    """Released moments of a mean person, and the covariance of their noise."""
    contributing, variance = numbers.contributing, numbers.contributing_variance
    mean = np.clip(form.moment / contributing, -1.0, 1.0)
    noise = np.diag(form.moment_noise) + variance * np.outer(mean, mean)
    return mean, np.asarray(noise / contributing**2 + 1e-12 * np.eye(len(mean)))


def elementary_sums(values: FloatArray, order: int) -> list[FloatArray]:
    """Return sums over all sets of 0, 1, .. order rows of the product of their values.

    Examples
    --------
    >>> [float(one) for one in elementary_sums(np.array([1.0, 2.0, 3.0]), 3)]
    [1.0, 6.0, 11.0, 6.0]
    """
    powers = [(values**k).sum(axis=0) for k in range(1, order + 1)]
    sums = [np.ones(values.shape[1:])]
    for r in range(1, order + 1):
        terms = [(-1) ** k * sums[r - 1 - k] * powers[k] for k in range(r)]
        sums.append(np.asarray(sum(terms) / r))
    return sums


def _means_and_slopes(
    expected: ExpectedMoments, steps: IndexArray, shape: FloatArray, order: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """h1 .. h_order, and how they move with the thresholds and with the shape."""
    overall = expected.overall
    share = expected.weight * (expected.takers / expected.takers.mean())[:, None]
    share = np.maximum(share / np.maximum(overall, 1e-12), LEAST_SHARE)
    value = share * (2 * expected.score / steps[:, None] - 1)
    sums, ways = elementary_sums(value, order), elementary_sums(share, order)
    # How ``z`` moves with the thresholds, ``[own item, step, node]``.
    category = np.arange(expected.chance.shape[1])[:, None]
    above = np.cumsum((expected.chance * category)[:, ::-1], axis=1)[:, ::-1][:, 1:]
    reached = np.cumsum(expected.chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
    covariance = above - expected.score[:, None, :] * reached
    falling = np.asarray(covariance * (-2 / steps[:, None, None]))
    rising = 2 * expected.variance / steps[:, None]
    skewness = skewness_slope(shape, NODES)
    tilts = [overall * (tilt - overall @ tilt) for tilt in (skewness, FOURTH)]
    means, by_threshold, by_shape = [], [], []
    without = np.ones_like(value)
    for r in range(1, order + 1):
        mean = sums[r] / ways[r]
        slope = share * without / ways[r]
        climb = (slope * rising).sum(axis=0) * overall
        means.append(mean @ overall)
        by_threshold.append(np.einsum("it,ijt->ij", slope * overall, falling))
        along = [climb.sum(), climb @ (expected.scale * NODES), *(mean @ tilt for tilt in tilts)]
        by_shape.append(np.array(along))
        without = sums[r] - value * without
    return np.array(means), np.array(by_threshold), np.array(by_shape)
