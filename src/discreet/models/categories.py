"""How likely each category of an item is for somebody of a given ability.

In: abilities and thresholds. Out: probabilities of the categories, and mean, variance and further
moments of scores. Of one step they are those of the Rasch model. About items only: no answers.

Thresholds are ``[item, step]``, NaN beyond an item's steps; an item whose thresholds are all NaN
has no numbers. Where every person has items of their own, they are ``[person, item, step]``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.types import FloatArray


def category_chances(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the probability of every category, ``[person, item, category]``.

    Zero beyond an item's steps. Any ability will do: what is exponentiated is never positive.

    Examples
    --------
    >>> category_chances([0.0], [[0.0, np.nan], [-1.0, 1.0]]).round(3).tolist()
    [[[0.5, 0.5, 0.0], [0.212, 0.576, 0.212]]]
    """
    weight = _log_weights(ability, thresholds)
    chance: FloatArray = np.exp(weight - weight.max(axis=-1, keepdims=True))
    chance /= chance.sum(axis=-1, keepdims=True)
    return chance


def _log_weights(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return ``x theta - d_1 - ... - d_x`` of every category x; -inf beyond the steps."""
    theta = np.asarray(ability, dtype=np.float64)[..., None, None]
    threshold = np.asarray(thresholds, dtype=np.float64)
    step = theta - threshold
    beyond = np.broadcast_to(np.isnan(threshold), step.shape)
    weight = np.zeros((*step.shape[:-1], step.shape[-1] + 1))
    np.cumsum(step, axis=-1, out=weight[..., 1:])
    weight[..., 1:][beyond] = -np.inf
    weight[..., 0][beyond.all(axis=-1)] = np.nan
    return weight


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
    chance = category_chances(ability, thresholds)
    category = np.arange(chance.shape[-1], dtype=np.float64)
    mean = chance @ category
    away = category - mean[..., None]
    square = away * away
    weighted = chance * square
    return ScoreMoments(
        mean,
        weighted.sum(axis=-1),
        (weighted * away).sum(axis=-1),
        (weighted * square).sum(axis=-1),
    )


def expected_scores(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the mean score on every item, ``[person, item]``.

    Examples
    --------
    >>> expected_scores([0.0, 1.0], [[0.0, np.nan], [-1.0, 1.0]]).round(3).tolist()
    [[0.5, 1.0], [0.731, 1.405]]
    """
    chance = category_chances(ability, thresholds)
    return np.asarray(chance @ np.arange(chance.shape[-1], dtype=np.float64))


def score_variances(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the variance of the score on every item, ``[person, item]``."""
    return score_moments(ability, thresholds).variance


def information(ability: npt.ArrayLike, thresholds: npt.ArrayLike) -> FloatArray:
    """Return what all items together tell about each ability, ``[person]``: Fisher information.

    It is the variance of the total score; items without numbers tell nothing.
    """
    return np.asarray(np.nansum(score_variances(ability, thresholds), axis=-1))
