"""Conditional maximum likelihood: exact, for any pattern of missing answers.

In: answers. Out: difficulties, the information matrix and the log-likelihood. Given the items
that a person answered and the score, the Rasch model says how likely the answers are without
knowing the ability (Andersen 1970):

    log P = -sum_i b_i x_i - log gamma_score(exp(-b) of the answered items).

The maximum exists and is unique on the same linked set of items as for pair counts (Fischer
1981). Persons with everything right or everything wrong carry no information. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import BadUsage, NotConverged
from discreet.models.connection import Chain, build_chain
from discreet.models.patterns import GroupPatterns, Patterns
from discreet.models.refined import solve_refined
from discreet.models.symmetric import ConditionalSums, add_patterns
from discreet.results.estimate import Estimate, Solution
from discreet.types import FloatArray, Int64Array

STEP_TOL = 1e-9
"""Logits; Newton's method squares the error, so the last step overstates it by far."""
STEPS = 50
"""From the refined estimate 3 to 4 steps are taken; 50 means that something is wrong."""
ITEM_LIMIT = 10_000
"""The information matrix is dense: 800 MB here."""
WORK_LIMIT = 2e13
"""Operations of one step, about an hour with compiled loops."""


@dataclass(frozen=True, eq=False)
class ConditionalFit:
    """A maximum of the conditional likelihood, among linked items.

    Attributes
    ----------
    difficulty
        Mean zero.
    information
        Second derivatives of minus the log-likelihood; rows sum to zero.
    log_likelihood
        Persons with everything right or wrong add zero.
    """

    difficulty: FloatArray
    information: FloatArray
    log_likelihood: float
    solution: Solution

    @property
    def covariance(self) -> FloatArray:
        """Of the difficulties with mean zero."""
        return centred_covariance(self.information)


def fit_conditional(responses: Answers) -> Estimate:
    """Estimate difficulties by conditional maximum likelihood.

    Parameters
    ----------
    responses
        The answers; any may be missing, as long as that does not depend on the person's other
        answers.

    Raises
    ------
    DisconnectedItems
        If fewer than two items are linked by the answers.
    BadUsage
        If there are more items than a dense matrix can hold.
    """
    return _assemble(*find_maximum(responses))


def find_maximum(responses: Answers) -> tuple[PairCounts, Chain, ConditionalFit]:
    """Find which items are linked, and the maximum of the likelihood among them."""
    counts = responses.count()
    chain = build_chain(counts)
    start, _ = solve_refined(chain.rates)
    job = GroupPatterns(chain.kept)
    patterns = job.collect(responses.reduce(job))
    return counts, chain, maximise_conditional(patterns, counts.right[chain.kept], start)


def maximise_conditional(
    patterns: Patterns, right: Int64Array, start: FloatArray
) -> ConditionalFit:
    """Climb to the maximum with Newton's method.

    Parameters
    ----------
    patterns
        The persons' answered items and scores, among linked items only.
    right
        Right answers per item, all persons.
    start
        Difficulties to start from.
    """
    _check_size(patterns)
    observed = right - patterns.item_sums(patterns.perfect)
    b = start - start.mean()
    sums = evaluate(patterns, b)
    value = _log_likelihood(sums, observed, b)
    for step in range(1, STEPS + 1):
        move = _newton_step(sums, observed)
        length = float(np.abs(move).max())
        b, sums, value = _climb(patterns, observed, b, move, value)
        if length < STEP_TOL:
            residual = float(np.abs(sums.expected - observed).max())
            solution = Solution("conditional likelihood, Newton steps", step, residual)
            return ConditionalFit(b, _information(sums), value, solution)
    raise NotConverged(
        f"conditional likelihood: the last of {STEPS} Newton steps still moved a difficulty by "
        f"{length:.1e} logits; look for items that hang together by very few persons, or use "
        "the method 'refined'"
    )


def evaluate(patterns: Patterns, b: FloatArray) -> ConditionalSums:
    """Sum the normalising part, its gradient and its second derivatives over all persons."""
    sums = ConditionalSums.zeros(patterns.n_items)
    informative = patterns.informative
    lengths = patterns.lengths
    used = np.zeros(len(lengths), dtype=bool)
    used[patterns.pattern[informative]] = True
    for length in np.unique(lengths[used]):
        items, which = patterns.table(int(length))
        counts = patterns.counts(informative, int(length))
        add_patterns(sums, items[used[which]], counts[used[which]], b)
    return sums


def centred_covariance(information: FloatArray) -> FloatArray:
    """Invert an information matrix whose rows sum to zero, for values with mean zero."""
    m = len(information)
    lift = information.diagonal().mean() / m
    return np.asarray(np.linalg.inv(information + lift) - 1.0 / (lift * m * m))


def _information(sums: ConditionalSums) -> FloatArray:
    if sums.information is None:
        raise BadUsage("the second derivatives were not asked for")
    matrix = sums.information.copy()
    np.fill_diagonal(matrix, 0.0)
    # Rows sum to zero: a shift of all difficulties changes nothing.
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def _newton_step(sums: ConditionalSums, observed: Int64Array) -> FloatArray:
    matrix = _information(sums)
    matrix += matrix.diagonal().mean() / len(matrix)
    move = np.linalg.solve(matrix, sums.expected - observed)
    return np.asarray(move - move.mean())


def _climb(
    patterns: Patterns, observed: Int64Array, b: FloatArray, move: FloatArray, value: float
) -> tuple[FloatArray, ConditionalSums, float]:
    """Take the step, halved until the likelihood does not fall (it is concave)."""
    slack = 1e-12 * abs(value)
    for _ in range(STEPS):
        sums = evaluate(patterns, b + move)
        new = _log_likelihood(sums, observed, b + move)
        if new >= value - slack:
            return b + move, sums, new
        move = move / 2
    raise NotConverged(
        "conditional likelihood: no step increases it, although the gradient is not zero; "
        "use the method 'refined'"
    )


def _log_likelihood(sums: ConditionalSums, observed: Int64Array, b: FloatArray) -> float:
    return float(-(observed @ b) - sums.log_norm)


def _check_size(patterns: Patterns) -> None:
    if patterns.n_items > ITEM_LIMIT:
        raise BadUsage(
            f"conditional likelihood holds a dense matrix of items x items and stops at "
            f"{ITEM_LIMIT} items, found {patterns.n_items}; the method 'refined' has no limit"
        )
    work = float((patterns.lengths.astype(np.float64) ** 3).sum())
    if work > WORK_LIMIT:
        raise BadUsage(
            f"conditional likelihood takes about (answers of a person)^3 operations for every "
            f"different set of answered items, {work:.1e} a step here; the method 'refined' "
            "gives nearly the same numbers at a small part of the cost"
        )


def _assemble(counts: PairCounts, chain: Chain, found: ConditionalFit) -> Estimate:
    covariance = found.covariance
    return Estimate(
        items=counts.items,
        difficulty=chain.spread(found.difficulty),
        se=chain.spread(np.sqrt(covariance.diagonal())),
        status=chain.status,
        method="conditional",
        solution=found.solution,
        covariance=covariance,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=chain.warnings,
    )
