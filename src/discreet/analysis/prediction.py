"""How well difficulties predict answers: each answer from the other answers of its person.

In: answers, difficulties, and the ability distribution of the persons behind them. Out: for every
person and item the probability of a right answer, given what else the person answered. New persons
are predicted like old ones: nothing about them is known but their other answers. Confidential.

With the posterior of a person's ability given all answers, the probability of a right answer given
the others is ``1 / (1 + exp(b) E[exp(-ability)])``, that of a wrong one
``1 / (1 + exp(-b) E[exp(ability)])``: one posterior serves all items that the person answered.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from discreet.analysis.abilities import GRID, NormalPrior, estimate_prior
from discreet.answers.responses import Responses
from discreet.models.patterns import GroupPatterns
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

    Of more than :data:`PRIOR_PERSONS`, so many are taken from all over. Without an answer to an
    item that has a difficulty there is nothing to go by, and abilities are standard normal.
    """
    known = np.flatnonzero(np.isfinite(difficulty))
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


def log_likelihood(codes: Codes, chance: FloatArray) -> tuple[float, int]:
    """Return the sum of the log probabilities of all answers, and how many there are."""
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
