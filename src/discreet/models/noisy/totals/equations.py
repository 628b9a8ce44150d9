"""Totals of categories, linearised: what they say about thresholds and abilities.

In: released totals of one form, thresholds, a shape of abilities. Out: the normal equations of
weighted least squares around them. Given the abilities, answers are independent, so every item has
a block of its own; what all items share are the four numbers of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.model import (
    FOURTH,
    NODES,
    Ladders,
    ability_density,
    category_node_probabilities,
    lean_slope,
)
from discreet.types import FloatArray

FEWEST_TAKERS = 0.1
"""No item is thought to have fewer takers than this share of the mean number."""

FEWEST_CONTRIBUTING = 0.05
"""No fewer persons than this share are thought to enter the moments."""

MOST_SHORT = 2.0
"""Density of the share of answers by persons with too few for the moments: even up to a half."""


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
    ``contributing`` is the sum of units of those who enter the moments, ``doubt`` its variance.
    """

    usual: float
    variance: float
    persons: float
    answers: float
    damping: float
    contributing: float
    doubt: float


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
    contributing, doubt = _pool_contributing(
        form, float(totals.sum()), float(noise.sum()), max_persons
    )
    variance = max(scatter, (0.02 * usual) ** 2)
    return Numbers(usual, variance, max_persons, answers, damping, contributing, doubt)


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
    slope = _threshold_slopes(expected, mean) * expected.takers[:, None, None]
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


def _threshold_slopes(expected: ExpectedMoments, mean: FloatArray) -> FloatArray:
    """How the mean shares move with the thresholds, ``[own item, category, step]``."""
    weighted = expected.chance * expected.weight[:, None, :]
    reached = np.cumsum(expected.chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
    passed = np.tri(mean.shape[1], mean.shape[1] - 1, -1)
    return np.asarray(weighted @ reached.transpose(0, 2, 1) - mean[:, :, None] * passed)


def _shape_slopes(expected: ExpectedMoments, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """How the mean shares move with the shape of abilities, ``[own item, category, 4]``."""
    category = np.arange(mean.shape[1])
    weighted = expected.chance * expected.weight[:, None, :]
    rising = weighted * (category[:, None] - expected.score[:, None, :])
    lean = lean_slope(shape, NODES)
    tilt = np.stack([lean, FOURTH], axis=1)
    centred = weighted @ tilt - mean[:, :, None] * (expected.weight @ tilt)[:, None, :]
    along = np.stack([np.ones(len(NODES)), expected.scale * NODES], axis=1)
    return np.concatenate([rising @ along, centred], axis=2)
