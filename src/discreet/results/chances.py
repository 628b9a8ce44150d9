"""How likely each category of an item is for somebody of a given ability.

In: abilities and thresholds. Out: probabilities of the categories, and mean, variance and further
moments of scores. Of one step they are those of the Rasch model. About items only: no answers.

Thresholds are ``[item, step]``, NaN beyond an item's steps; an item whose thresholds are all NaN
has no numbers. Where every person has items of their own, they are ``[person, item, step]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.types import FloatArray, Int64Array


def as_thresholds(difficulty: npt.ArrayLike) -> FloatArray:
    """Return thresholds ``[item, step]``, also of difficulties, which are of one step."""
    value = np.asarray(difficulty, dtype=np.float64)
    return value[:, None] if value.ndim == 1 else value


def count_item_steps(thresholds: FloatArray) -> Int64Array:
    """Return how many steps each item has, ``[item]``."""
    return np.asarray((~np.isnan(thresholds)).sum(axis=-1))


def category_chances(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the probability of every category, ``[person, item, category]``.

    Zero beyond an item's steps. Any ability will do: what is exponentiated is never positive.

    Examples
    --------
    >>> category_chances([0.0], [[0.0, np.nan], [-1.0, 1.0]]).round(3).tolist()
    [[[0.5, 0.5, 0.0], [0.212, 0.576, 0.212]]]
    """
    weight = log_weights(ability, thresholds)
    chance: FloatArray = np.exp(weight - weight.max(axis=-1, keepdims=True))
    chance /= chance.sum(axis=-1, keepdims=True)
    return chance


def log_weights(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return ``x theta - d_1 - ... - d_x`` of every category x; -inf beyond the steps."""
    theta = np.asarray(ability, dtype=np.float64)[..., None]
    threshold = np.moveaxis(np.asarray(thresholds, dtype=np.float64), -1, 0)
    shape = np.broadcast_shapes(theta.shape, threshold.shape[1:])
    weight = np.zeros((len(threshold) + 1, *shape))
    for category, step in enumerate(threshold, 1):
        weight[category] = weight[category - 1] + np.where(np.isnan(step), -np.inf, theta - step)
    weight[0, np.broadcast_to(np.isnan(threshold[0]), shape)] = np.nan
    return np.moveaxis(weight, 0, -1)


def log_totals(ability: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of all categories' weights, ``[item, ability]``.

    A person with score r on some items has, but for a constant, the log-likelihood ``r theta``
    less the sum of these over the items.
    """
    if thresholds.shape[-1] == 1:
        return np.asarray(np.logaddexp(0.0, ability - thresholds))
    return np.asarray(np.logaddexp.reduce(log_weights(ability, thresholds), axis=-1).T)


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """Of the score on every item, ``[person, item]``: the mean and central moments."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    fourth: FloatArray


def score_moments(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> ScoreMoments:
    """Return mean, variance, third and fourth central moment of the scores.

    Moments are taken around the mean, so that the variance is exact where it is tiny.
    """
    threshold = np.asarray(thresholds, dtype=np.float64)
    if threshold.shape[-1] == 1:
        return _binary_moments(np.asarray(ability)[..., None] - threshold[..., 0])
    # One category after the other: sums over a short last axis are several times slower.
    weight = np.moveaxis(log_weights(ability, threshold), -1, 0)
    chance = np.exp(weight - weight.max(axis=0))
    chance /= chance.sum(axis=0)
    mean = sum(category * share for category, share in enumerate(chance))
    variance, third, fourth = np.zeros((3, *chance.shape[1:]))
    for category, share in enumerate(chance):
        deviation = category - mean
        square = deviation * deviation
        weighted = share * square
        variance += weighted
        third += weighted * deviation
        fourth += weighted * square
    return ScoreMoments(np.asarray(mean), variance, third, fourth)


def _binary_moments(logit: FloatArray) -> ScoreMoments:
    """Return the same for right and wrong answers, from ability less difficulty."""
    # One exponential serves both, and the variance keeps its digits where it is tiny.
    small = np.exp(-np.abs(logit))
    larger_chance = 1.0 / (1.0 + small)
    chance = np.where(logit >= 0, larger_chance, small * larger_chance)
    spread = small * larger_chance * larger_chance
    third = spread * (1 - 2 * chance)
    return ScoreMoments(chance, spread, third, spread * (1 - 3 * spread))


def expected_scores(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the mean score on every item, ``[person, item]``.

    Examples
    --------
    >>> expected_scores([0.0, 1.0], [[0.0, np.nan], [-1.0, 1.0]]).round(3).tolist()
    [[0.5, 1.0], [0.731, 1.405]]
    """
    return score_moments(ability, thresholds).mean


def score_variances(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the variance of the score on every item, ``[person, item]``."""
    return score_moments(ability, thresholds).variance


def slope_terms(
    ability: FloatArray, thresholds: FloatArray, code: npt.NDArray[np.integer[Any]]
) -> tuple[FloatArray, FloatArray]:
    """Return how answers pull at an item's slope and what they tell of it, ``[person, item]``.

    Derivatives at 1, by a slope that multiplies ability less thresholds.

    Parameters
    ----------
    ability, thresholds
        As above.
    code
        Categories ``[person, item]``; any number where an answer is missing.
    """
    if thresholds.shape[-1] == 1:
        logit = ability[:, None] - thresholds[:, 0]
        moments = _binary_moments(logit)
        return (code - moments.mean) * logit, moments.variance * logit**2
    weight = log_weights(ability, thresholds)
    chance = category_chances(ability, thresholds)
    finite = np.where(np.isfinite(weight), weight, 0.0)
    mean = (chance * finite).sum(axis=-1)
    spread = (chance * (finite - mean[..., None]) ** 2).sum(axis=-1)
    observed_weight = np.take_along_axis(
        finite, np.maximum(code, 0)[..., None].astype(np.intp), axis=-1
    )
    return observed_weight[..., 0] - mean, spread
