"""How well difficulties predict answers: each answer from the other answers of its person.

In: answers, difficulties, and the ability distribution of the persons behind them. Out: for every
person and item the probability of a right answer, given what else the person answered. New persons
are predicted like old ones: nothing about them is known but their other answers. Confidential.

With the posterior of a person's ability given all answers, the probability of a right answer given
the others is ``1 / (1 + exp(b) E[exp(-ability)])``, that of a wrong one
``1 / (1 + exp(-b) E[exp(ability)])``: one posterior serves all items that the person answered. With
steps, the chance of category k where x was answered is proportional to
``E[exp((k - x) ability)] exp(-d_1 - ... - d_k)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from discreet.answers.responses import Responses
from discreet.models.categories import category_chances, log_totals
from discreet.models.conditional.patterns import GroupPatterns
from discreet.persons.measures import GRID, NormalPrior, estimate_prior
from discreet.types import FloatArray

Codes = npt.NDArray[np.int8]
"""Answers ``[person, item]``: 1 right, 0 wrong, -1 missing."""

PRIOR_PERSONS = 4000
"""Persons from whom mean and SD of abilities are estimated: the SD is then known to 1 or 2%, and
predictions depend on it only by the square of that."""

BLOCK_CELLS = 1 << 20
"""Cells predicted at a time: 8 MB of float64."""


def describe_persons(responses: Responses, difficulty: FloatArray) -> NormalPrior:
    """Return mean and SD of the abilities of these persons, by marginal maximum likelihood.

    ``difficulty`` may be thresholds ``[item, step]``; answers are then in their categories. Of more
    than :data:`PRIOR_PERSONS`, so many are taken from all over. Without an answer to an item that
    has a difficulty there is nothing to go by, and abilities are standard normal.
    """
    known = np.flatnonzero(np.isfinite(difficulty if difficulty.ndim == 1 else difficulty[:, 0]))
    job = GroupPatterns(known, sample=PRIOR_PERSONS)
    patterns = job.collect(responses.reduce(job))
    if not patterns.lengths.any():
        return NormalPrior(0.0, 1.0)
    return estimate_prior(patterns, difficulty[known])


def predict_answers(
    codes: Codes, difficulty: FloatArray, prior: NormalPrior, share: FloatArray
) -> FloatArray:
    """Return the probability of a right answer, given the other answers of the person.

    Parameters
    ----------
    codes
        ``[person, item]``: 1 right, 0 wrong, -1 missing.
    difficulty
        NaN where an item has none.
    prior
        Abilities of the persons that the difficulties come from.
    share
        Probability of a right answer to an item without a difficulty, whoever answers.
    """
    known = np.flatnonzero(np.isfinite(difficulty))
    chance = np.repeat(share[None, :], len(codes), axis=0)
    size = max(1, BLOCK_CELLS // max(len(known), len(GRID)))
    for start in range(0, len(codes), size):
        part = codes[start : start + size][:, known]
        chance[start : start + size, known] = _predict(part, difficulty[known], prior)
    return chance


def _predict(codes: Codes, b: FloatArray, prior: NormalPrior) -> FloatArray:
    """Probability of a right answer to every item, all of which have a difficulty."""
    nodes = prior.mean + prior.sd * GRID
    load = (codes >= 0).astype(np.float64) @ np.logaddexp(0.0, nodes - b[:, None])
    scores = (codes == 1).sum(axis=1)
    post = scores[:, None] * nodes - load - GRID**2 / 2
    post -= logsumexp(post, axis=1, keepdims=True)
    below, above = (logsumexp(post + sign * nodes, axis=1, keepdims=True) for sign in (-1, 1))
    unseen = np.exp(post) @ expit(nodes[:, None] - b)
    answered = np.where(codes == 1, expit(-b - below), expit(above - b))
    return np.asarray(np.where(codes < 0, unseen, answered))


def predict_categories(
    codes: Codes, thresholds: FloatArray, prior: NormalPrior, share: FloatArray
) -> FloatArray:
    """Return the chance of every category, ``[person, item, category]``, as `predict_answers` does.

    Parameters
    ----------
    codes
        ``[person, item]``: categories, -1 missing.
    thresholds
        ``[item, step]``, NaN beyond an item's steps, and all NaN where an item has none.
    prior
        Abilities of the persons that the thresholds come from.
    share
        ``[item, category]``: the chances of an item without thresholds, whoever answers.
    """
    known = np.flatnonzero(np.isfinite(thresholds[:, 0]))
    chance = np.repeat(share[None], len(codes), axis=0)
    size = max(1, BLOCK_CELLS // max(share.size, len(GRID)))
    for start in range(0, len(codes), size):
        part = codes[start : start + size][:, known]
        chance[start : start + size, known] = _predict_steps(part, thresholds[known], prior)
    return chance


def _predict_steps(codes: Codes, thresholds: FloatArray, prior: NormalPrior) -> FloatArray:
    nodes, most = prior.mean + prior.sd * GRID, thresholds.shape[1]
    load = (codes >= 0).astype(np.float64) @ log_totals(nodes, thresholds)
    post = np.maximum(codes, 0).sum(axis=1)[:, None] * nodes - load - GRID**2 / 2
    post -= logsumexp(post, axis=1, keepdims=True)
    # How much likelier a person is to be so many categories higher than answered.
    higher = np.stack(
        [logsumexp(post + away * nodes, axis=1) for away in range(-most, most + 1)], axis=1
    )
    place = np.arange(most + 1) - np.maximum(codes, 0)[:, :, None] + most
    gain = np.take_along_axis(higher[:, None, :], place, axis=2)
    step = np.where(np.isnan(thresholds), np.inf, thresholds)
    load_of = np.concatenate([np.zeros((len(step), 1)), np.cumsum(step, axis=1)], axis=1)
    answered = np.exp(gain - load_of - logsumexp(gain - load_of, axis=2, keepdims=True))
    unseen = np.einsum("pg,gik->pik", np.exp(post), category_chances(nodes, thresholds))
    return np.asarray(np.where(codes[:, :, None] < 0, unseen, answered))


def log_likelihood(codes: Codes, chance: FloatArray) -> tuple[float, int]:
    """Return the sum of the log probabilities of all answers, and how many there are.

    ``chance`` is that of a right answer, ``[person, item]``, or of every category.
    """
    if chance.ndim == 3:
        own = np.maximum(codes, 0)[:, :, None].astype(np.intp)
        given = np.take_along_axis(chance, own, axis=2)[:, :, 0][codes >= 0]
    else:
        given = np.where(codes == 1, chance, 1 - chance)[codes >= 0]
    with np.errstate(divide="ignore"):
        return float(np.log(given).sum()), len(given)


def smooth_shares(
    right: npt.NDArray[np.int64] | None, answers: npt.NDArray[np.int64] | None, items: int
) -> FloatArray:
    """Return the share of right answers per item, half an answer of each kind added.

    1/2 where the answers are not known, as in a release.
    """
    if right is None or answers is None:
        return np.full(items, 0.5)
    return np.asarray((right + 0.5) / (answers + 1.0))


def smooth_categories(categories: npt.NDArray[np.int64], steps: npt.ArrayLike) -> FloatArray:
    """Return the share of every category, ``[item, category]``, half an answer added to each."""
    inside = np.arange(categories.shape[1]) <= np.asarray(steps)[:, None]
    count = np.where(inside, categories + 0.5, 0.0)
    return np.asarray(count / count.sum(axis=1, keepdims=True))
