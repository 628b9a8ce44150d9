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
from discreet.errors import BadUsage
from discreet.models.conditional.groups import conditional_work
from discreet.models.conditional.maximise import Structure, Surface, maximise
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.connection import Chain, ItemFacts, build_chain
from discreet.models.refined import solve_refined
from discreet.results.estimate import Estimate, Solution
from discreet.types import FloatArray, Int64Array

NODE_LIMIT = 10_000
"""The information matrix is dense: 800 MB here."""
WORK_LIMIT = 3600.0
"""Seconds."""


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
    return assemble_conditional(*find_maximum(responses))


def find_maximum(responses: Answers) -> tuple[PairCounts, Chain, ConditionalFit]:
    """Find which items are linked, and the maximum of the likelihood among them."""
    counts = responses.count()
    chain = build_chain(counts)
    start, _ = solve_refined(chain.rates)
    job = GroupPatterns(chain.linked)
    patterns = job.collect(responses.reduce(job))
    return counts, chain, maximise_conditional(patterns, counts.right[chain.linked], start)


def maximise_conditional(
    patterns: Patterns, right: Int64Array, start: FloatArray
) -> ConditionalFit:
    """Climb to the maximum.

    Parameters
    ----------
    patterns
        The persons' answered items and scores, among linked items only.
    right
        Right answers per item, all persons.
    start
        Difficulties to start from.
    """
    check_conditional_size(patterns)
    observed = right - patterns.item_sums(patterns.perfect)
    structure = Structure(np.ones((patterns.n_items, 1), dtype=bool))
    maximum = maximise(Surface(patterns, observed[:, None], structure), start)
    return ConditionalFit(
        maximum.parameter, maximum.information, maximum.log_likelihood, maximum.solution
    )


def centred_covariance(information: FloatArray) -> FloatArray:
    """Invert an information matrix whose rows sum to zero, for values with mean zero."""
    m = len(information)
    lift = information.diagonal().mean() / m
    return np.asarray(np.linalg.inv(information + lift) - 1.0 / (lift * m * m))


def check_conditional_size(patterns: Patterns, steps: int = 1) -> None:
    """Refuse what would take too much memory or time, before it begins.

    Parameters
    ----------
    patterns
        The persons' answered items and scores.
    steps
        Most steps of an item.
    """
    nodes = patterns.n_items * steps
    if nodes > NODE_LIMIT:
        size = f"{patterns.n_items} items" if steps == 1 else f"{nodes} steps of items"
        raise BadUsage(
            f"conditional likelihood holds a dense matrix over all items and their steps and "
            f"stops at {NODE_LIMIT} rows, found {size}; the method 'refined' has no limit"
        )
    work = conditional_work(patterns, steps)
    if work > WORK_LIMIT:
        raise BadUsage(
            f"conditional likelihood would take about {work / 3600:.0f} hours for "
            f"{len(patterns.score)} different combinations of answered items and score; the "
            "method 'refined' gives nearly the same numbers at a small part of the cost"
        )


def assemble_conditional(
    counts: PairCounts | ItemFacts, chain: Chain, conditional_fit: ConditionalFit
) -> Estimate:
    """Return the estimate of all items, those that are not linked without a number."""
    covariance = conditional_fit.covariance
    return Estimate(
        items=counts.items,
        difficulty=chain.spread(conditional_fit.difficulty),
        se=chain.spread(np.sqrt(covariance.diagonal())),
        status=chain.status,
        method="conditional",
        solution=conditional_fit.solution,
        covariance=covariance,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=chain.warnings,
    )
