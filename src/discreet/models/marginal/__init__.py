"""Marginal maximum likelihood: abilities are drawn from a distribution and integrated out.

The likelihood of answers when abilities come from a distribution on a grid.

In: grouped answers, difficulties, nodes and weights. Out: posteriors, gradients and second
derivatives (Louis 1982: information of the complete data less what is missing).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from discreet.models.conditional import Patterns
from discreet.models.structure import Structure
from discreet.results.chances import log_weights
from discreet.results.estimate import Solution
from discreet.types import FloatArray, IndexArray, Int64Array

#: Numbers per work array: 16 MB.
CHUNK_CELLS = 1 << 21
#: Share of answered items below which sparse products beat dense ones (about 1/400 pairs).
SPARSE_FILL = 0.05
#: Nodes with less than this share of all persons are left out of second derivatives.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class Mixture:
    """Answers, and the parameters of difficulties and abilities.

    Abilities are ``sd * nodes`` with probabilities ``exp(log_weights)``. Every step counts as an
    item of the patterns, ``right`` is how many persons reached it, ``difficulty`` its threshold,
    and ``item_of`` says which item it belongs to, counted from 0.
    """

    patterns: Patterns
    right: Int64Array
    difficulty: FloatArray
    sd: float
    nodes: FloatArray
    log_weights: FloatArray
    item_of: IndexArray

    @property
    def most(self) -> int:
        """Four times the most information that one person's answers can have."""
        highest = self.patterns.highest(np.bincount(self.item_of)[self.item_of])
        return int(highest.max(initial=1))

    @property
    def level(self) -> float:
        """The mean of the items' locations."""
        total = np.bincount(self.item_of, self.difficulty)
        return float((total / np.bincount(self.item_of)).mean())

    def reach(self) -> tuple[FloatArray, FloatArray]:
        """Return the chance of every step, and what adds up to the load, ``[step, node]``."""
        return find_chances(self.abilities, self.difficulty, self.item_of)

    @property
    def abilities(self) -> FloatArray:
        """The nodes on the scale of the difficulties."""
        return self.sd * self.nodes

    @property
    def answered(self) -> Any:
        """Patterns as a sparse matrix of zeros and ones, ``[pattern, item]``."""
        from scipy.sparse import csr_array

        patterns = self.patterns
        ones = np.ones(len(patterns.item))
        shape = (len(patterns.indptr) - 1, patterns.n_items)
        return csr_array((ones, patterns.item, patterns.indptr), shape=shape)


@dataclass(frozen=True, eq=False)
class Sums:
    """What one look at all answers gives.

    Attributes
    ----------
    posterior
        ``[entry, node]`` of the entries of the patterns.
    likelihood
        The same before weighting, each row scaled to a largest value of one.
    by_pattern
        Persons by node, ``[pattern, node]``.
    gradient, gradient_sd
        Of the log-likelihood.
    complete
        Information if abilities were known, difficulties and then standard deviation.
    """

    log_likelihood: float
    posterior: FloatArray
    likelihood: FloatArray
    by_pattern: FloatArray
    chance: FloatArray
    expected_score: FloatArray
    gradient: FloatArray
    gradient_sd: float
    by_item: FloatArray
    nodes: FloatArray
    item_of: IndexArray

    @cached_property
    def complete(self) -> FloatArray:
        # Steps of one item vary together.
        row, column = np.nonzero(self.item_of[:, None] == self.item_of)
        joint = self.chance[np.maximum(row, column)]
        spread = self.by_item[row] * (joint - self.chance[row] * self.chance[column])
        m = len(self.item_of)
        matrix = np.zeros((m + 1, m + 1))
        matrix[row, column] = spread.sum(axis=1)
        matrix[:m, m] = matrix[m, :m] = -np.bincount(row, spread @ self.nodes, minlength=m)
        # A small ridge keeps it invertible where the spread of abilities is zero.
        matrix[m, m] = spread.sum(axis=0) @ self.nodes**2 * (1 + 1e-9) + 1e-9
        return matrix

    def cross_weights(self, mixture: Mixture) -> FloatArray:
        """Information between difficulties and log weights, with the sign of a covariance."""
        patterns, answered = mixture.patterns, mixture.answered
        first = self.by_item * self.chance
        second = np.zeros_like(first)
        for part in _entry_chunks(patterns):
            mean = _mean_chance(self, answered, patterns, part)
            second += (mean * patterns.persons[part, None]).T @ self.posterior[part]
        return np.asarray(first - second)


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """A maximum of the marginal likelihood.

    Attributes
    ----------
    difficulty, covariance
        With mean zero; with steps those of the thresholds, item after item.
    nodes, weights
        The ability distribution on the scale of ``difficulty``.
    mean, sd
        Of the ability distribution.
    log_likelihood
        Of all answers.
    release
        Finds difficulties under another structure, with an anchor free, and their covariance.
    influence
        Finds from ``[person, node]``, which steps persons reached, how each moves the difficulties:
        its scores by all parameters, times the inverse of the information. None of empirical ones.
    """

    difficulty: FloatArray
    covariance: FloatArray
    nodes: FloatArray
    weights: FloatArray
    mean: float
    sd: float
    log_likelihood: float
    solution: Solution
    release: Callable[[Structure], tuple[FloatArray, FloatArray]]
    influence: Callable[[FloatArray], FloatArray] | None = None


def find_chances(
    abilities: FloatArray, difficulty: FloatArray, item_of: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Return the chance of every step, and what adds up to the load, ``[step, node]``.

    With steps the chance is that of this step or a higher one, and the load of an item stands at
    its first step.

    Parameters
    ----------
    abilities
        ``[node]``, or ``[item, node]`` where items have slopes: slope times ability.
    difficulty
        ``[step]``.
    item_of
        The item of each step, counted from 0.
    """
    steps = np.bincount(item_of)
    if steps.max() == 1:  # four times as fast
        logit = abilities - difficulty[:, None]
        return expit(logit), np.logaddexp(0.0, logit)
    first = np.cumsum(steps) - steps
    cell = item_of, np.arange(len(item_of)) - first[item_of]
    thresholds = np.full((len(steps), 1, 1, int(steps.max())), np.nan)
    thresholds[cell[0], 0, 0, cell[1]] = difficulty
    item_abilities = np.broadcast_to(abilities, (len(steps), abilities.shape[-1]))
    weight = log_weights(item_abilities, thresholds)[:, :, 0]
    total = np.logaddexp.reduce(weight, axis=-1)
    chance = np.exp(weight - total[..., None])
    above = np.cumsum(chance[..., :0:-1], axis=-1)[..., ::-1]
    load = np.zeros((len(item_of), abilities.shape[-1]))
    load[first] = total
    return np.ascontiguousarray(above[cell[0], :, cell[1]]), load


def evaluate_mixture(mixture: Mixture) -> Sums:
    """Posterior of each kind of person, log-likelihood and gradient."""
    patterns, theta = mixture.patterns, mixture.abilities
    chance, loads = mixture.reach()
    answered = mixture.answered
    load = answered @ loads
    log_like = patterns.score[:, None] * theta - load[patterns.pattern]
    top = log_like.max(axis=1, keepdims=True)
    likelihood = np.exp(log_like - top)
    weighted = likelihood * np.exp(mixture.log_weights)
    total = weighted.sum(axis=1, keepdims=True)
    posterior = weighted / total
    persons = patterns.persons.astype(np.float64)
    value = persons @ (np.log(total) + top)[:, 0] - mixture.right @ mixture.difficulty
    by_pattern = _sum_by_pattern(posterior * persons[:, None], patterns)
    by_item = answered.T @ by_pattern
    expected = answered @ chance
    surprise = patterns.score[:, None] - expected[patterns.pattern]
    slope = persons @ ((posterior * surprise) @ mixture.nodes)
    return Sums(
        log_likelihood=float(value),
        posterior=posterior,
        likelihood=likelihood,
        by_pattern=by_pattern,
        chance=chance,
        expected_score=expected,
        gradient=(by_item * chance).sum(axis=1) - mixture.right,
        gradient_sd=float(slope),
        by_item=by_item,
        nodes=mixture.nodes,
        item_of=mixture.item_of,
    )


def information_about_difficulty(mixture: Mixture, sums: Sums) -> FloatArray:
    """Observed information about difficulties and the standard deviation (last)."""
    patterns, answered = mixture.patterns, mixture.answered
    m = patterns.n_items
    missing = np.zeros((m + 1, m + 1))
    missing[:m, :m] = _second_moments(sums, answered)
    surprise = patterns.score[:, None] - sums.expected_score[patterns.pattern]
    pull = surprise * mixture.nodes
    persons = patterns.persons.astype(np.float64)
    weighted = sums.posterior * persons[:, None]
    mean_pull = (sums.posterior * pull).sum(axis=1)
    cross = answered.T @ _sum_by_pattern(weighted * pull, patterns)
    missing[:m, m] = (cross * sums.chance).sum(axis=1)
    missing[m, m] = float((weighted * pull**2).sum() - persons @ mean_pull**2)
    for part in _entry_chunks(patterns):
        mean = _mean_chance(sums, answered, patterns, part)
        scaled = mean * persons[part, None]
        missing[:m, :m] -= scaled.T @ mean
        missing[:m, m] -= scaled.T @ mean_pull[part]
    missing[m, :m] = missing[:m, m]
    return np.asarray(sums.complete - missing)


def score_difficulty(mixture: Mixture, sums: Sums, reached: FloatArray) -> FloatArray:
    """Return ``[person, node]``: how everybody's log-likelihood grows with the difficulties."""
    patterns, answered = mixture.patterns, mixture.answered
    parts = [_mean_chance(sums, answered, patterns, part) for part in _entry_chunks(patterns)]
    return np.asarray(np.concatenate(parts)[patterns.entry] - reached)


def score_spread(mixture: Mixture, sums: Sums) -> FloatArray:
    """Return per person how the log-likelihood grows with the standard deviation."""
    patterns = mixture.patterns
    surprise = patterns.score[:, None] - sums.expected_score[patterns.pattern]
    return np.asarray(((sums.posterior * surprise) @ mixture.nodes)[patterns.entry])


def _second_moments(sums: Sums, answered: Any) -> FloatArray:
    """Sum over persons and nodes of the products of two items' chances."""
    patterns, m = answered.shape
    if patterns == 1 and answered.nnz == m:
        return np.asarray((sums.chance * sums.by_pattern[0]) @ sums.chance.T)
    total = np.zeros((m, m))
    share = sums.by_pattern.sum(axis=0)
    used = np.flatnonzero(share > NEGLIGIBLE * share.sum())
    if answered.nnz < SPARSE_FILL * patterns * m:
        for node in used:
            joint = answered.T @ answered.multiply(sums.by_pattern[:, node, None])
            chance = sums.chance[:, node]
            total += joint.toarray() * chance[:, None] * chance
        return total
    size = max(1, CHUNK_CELLS // m)
    for start in range(0, patterns, size):
        dense = answered[start : start + size].toarray()
        for node in used:
            weighted = dense * sums.by_pattern[start : start + size, node, None]
            chance = sums.chance[:, node]
            total += (weighted.T @ dense) * chance[:, None] * chance
    return total


def _entry_chunks(patterns: Patterns) -> list[slice]:
    size = max(1, CHUNK_CELLS // max(patterns.n_items, 1))
    return [slice(start, start + size) for start in range(0, len(patterns.pattern), size)]


def _mean_chance(sums: Sums, answered: Any, patterns: Patterns, part: slice) -> FloatArray:
    """Posterior mean chance of each answered item, zero elsewhere, ``[entry, item]``."""
    mean = sums.posterior[part] @ sums.chance.T
    return np.asarray(mean * answered[patterns.pattern[part]].toarray())


def _sum_by_pattern(values: FloatArray, patterns: Patterns) -> FloatArray:
    """Add the entries of each pattern (entries are sorted by pattern)."""
    if not len(values):
        return values
    starts = np.searchsorted(patterns.pattern, np.arange(len(patterns.indptr) - 1))
    return np.add.reduceat(values, starts, axis=0)
