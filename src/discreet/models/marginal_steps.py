"""Marginal maximum likelihood of items with steps: partial credit and rating scale.

In: answers with steps. Out: an :class:`~discreet.Estimate` with thresholds. Every step counts as an
item whose right answers are the persons who reached it; what differs is that steps of one item vary
together. A rating scale is a linear structure on the thresholds. Confidential.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.counts.nodes import item_of_nodes
from discreet.errors import BadUsage
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.conditional.steps import rating_basis
from discreet.models.marginal import (
    DISTRIBUTIONS,
    check_patterns,
    explain_marginal,
    maximise_marginal,
    start_marginal,
)
from discreet.models.steps import StepPlan, plan_steps
from discreet.results.estimate import Estimate
from discreet.types import FloatArray, IndexArray, Int64Array


def fit_marginal_steps(responses: Answers, asked: str, *, ability: str = "normal") -> Estimate:
    """Estimate thresholds by marginal maximum likelihood.

    Parameters
    ----------
    responses
        The answers.
    asked
        A model, or "auto".
    ability
        ``"normal"`` or ``"empirical"``: what is assumed about the abilities.

    Raises
    ------
    DisconnectedItems
        If fewer than two items have answers in two categories, or nobody answered two of them.
    """
    if ability not in DISTRIBUTIONS:
        raise BadUsage(f"ability must be one of {', '.join(DISTRIBUTIONS)}; found {ability!r}")
    counts, plan = plan_steps(responses.count(), asked)
    items = np.flatnonzero((plan.categories > 0).sum(axis=1) > 1)
    steps = np.array(plan.steps, dtype=np.int64)
    kept = np.flatnonzero(np.isin(item_of_nodes(plan.steps), items))
    job = GroupPatterns(items)
    patterns = job.collect(responses.reduce(plan.wrap(job)))
    check_patterns(patterns, counts)
    nodes = counts.as_nodes()
    basis = None if plan.basis is None else rating_basis(len(items), int(steps.max()))
    found = maximise_marginal(
        expand_patterns(patterns, steps[items]),
        _count_reached(plan)[kept],
        start=_start(nodes, kept, basis),
        ability=ability,
        item_of=item_of_nodes(steps[items].tolist()),
        basis=basis,
    )
    status, warnings = explain_marginal(nodes, kept, found)
    value, se = (np.full(len(nodes.items), np.nan) for _ in range(2))
    value[kept], se[kept] = found.difficulty, np.sqrt(found.covariance.diagonal())
    by_node = Estimate(
        items=nodes.items,
        difficulty=value,
        se=se,
        status=status,
        method="marginal",
        solution=found.solution,
        covariance=found.covariance,
        persons=plan.persons,
        warnings=warnings,
    )
    return plan.fold(by_node)


def _count_reached(plan: StepPlan) -> Int64Array:
    """Return how many persons reached each step, or a higher one, node by node."""
    reached = np.cumsum(plan.categories[:, ::-1], axis=1)[:, ::-1][:, 1:]
    inside = np.arange(reached.shape[1]) < np.array(plan.steps)[:, None]
    return np.asarray(reached[inside])


def _start(nodes: PairCounts, kept: IndexArray, basis: FloatArray | None) -> FloatArray:
    """Start where pairs say; a rating scale, at the logits of neighbouring categories."""
    if basis is None:
        return start_marginal(nodes, kept)
    # Half an answer more: a rating scale may have items with a category that nobody is in.
    answers, right = nodes.answers[kept] + 1.0, nodes.right[kept] + 0.5
    start = np.log((answers - right) / right)
    return np.asarray(basis @ np.linalg.lstsq(basis, start)[0])


def expand_patterns(patterns: Patterns, steps: Int64Array) -> Patterns:
    """Return patterns of steps instead of items; scores stay."""
    length = steps[patterns.item]
    ends = np.cumsum(length)
    first = (np.cumsum(steps) - steps)[patterns.item]
    inside = np.arange(int(length.sum())) - np.repeat(ends - length, length)
    return replace(
        patterns,
        indptr=np.concatenate([[0], ends])[patterns.indptr],
        item=np.repeat(first, length) + inside,
        n_items=int(steps.sum()),
    )
