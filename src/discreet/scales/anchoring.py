"""Anchored calibration: some difficulties are known and held, the others estimated beside them.

In: answers and anchors. Out: an estimate on the scale of the anchors, and for every anchor how
far it would move if it were free. Confidential: it reads the answers.

The conditional or marginal likelihood, or the pairwise one of the refined method, is maximised over
the items that are not anchored. Standard errors are those of this step: the anchors count as
exactly known. Of an anchored item with steps all thresholds are held; the other items are partial
credit items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack, get_args

import numpy as np

from discreet.answers.opening import count_pairs, load_answers
from discreet.answers.responses import Responses
from discreet.counts import PairCounts
from discreet.counts.folds import PersonWeight
from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.models.automatic import (
    TOO_MUCH_WORK,
    TOOK_CONDITIONAL,
    find_patterns,
    take_refined,
)
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.methods import AUTO
from discreet.results.dropped import warn_of_dropped
from discreet.results.estimate import Estimate, FitWarning, Solution, Status, WarningKind
from discreet.scales.anchors import accept_anchors, accept_ladders, has_step_anchors
from discreet.scales.grounded import (
    GroundedFit,
    explain_unlinked,
    solve_grounded,
    sum_score_products,
)
from discreet.scales.held import AnchoredSolution, hold_marginal, maximise_held
from discreet.scales.held_steps import StepsHeld, hold_steps
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, brief_repr
from discreet.text import name_some
from discreet.types import AnchorMethod, BoolArray, Engine, FloatArray, IndexArray, Int64Array

METHODS_WITH_ANCHORS = get_args(AnchorMethod)
LARGE_DISPLACEMENT = 0.5
"""Logits beyond which a displacement is worth a warning, as Winsteps users know it."""
LARGE_Z = 2.7
"""And standard errors; 99.3% of sound anchors stay below."""


@dataclass(frozen=True, eq=False)
class Anchored(Tabular):
    """A calibration on the scale of its anchors.

    Attributes
    ----------
    estimate
        Difficulties of all items. Anchored items have the status ``anchored``, their own
        value and a standard error of zero.
    anchors
        The anchored items, in the order of the answers.
    displacement, displacement_se
        What each anchor would be if only this one were free, minus its anchored value. NaN
        where that is not determined; ``reason`` says why. Of an item with steps, its location's.
    reason
        One text per anchor; empty where there is a displacement.
    """

    estimate: Estimate
    anchors: tuple[str, ...]
    displacement: FloatArray
    displacement_se: FloatArray
    reason: tuple[str, ...]

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, anchor, displacement, se, reason."""
        index_of = {name: i for i, name in enumerate(self.estimate.items)}
        return {
            "item": list(self.anchors),
            "anchor": [float(self.estimate.difficulty[index_of[name]]) for name in self.anchors],
            "displacement": self.displacement.tolist(),
            "se": self.displacement_se.tolist(),
            "reason": list(self.reason),
        }


def fit_anchored(
    data: Any,
    anchors: Any,
    *,
    engine: Engine = "auto",
    method: AnchorMethod = "auto",
    **reading: Unpack[ReadingWords],
) -> Anchored:
    """Estimate difficulties on the scale of items whose difficulties are known.

    Parameters
    ----------
    data, reading
        Answers and how to read them, as for :func:`discreet.score`.
    anchors
        A mapping from item to difficulty, or a table with these two columns (a file or a data
        frame), whose items must all occur in the answers; or a calibration, a release or a bank,
        of which the items that occur are used. Answers with steps need all thresholds of an
        anchor: a mapping to lists, a table with the columns item, step and threshold, or a
        calibration.
    engine
        Which engine counts the pairs.
    method
        ``"auto"``, ``"conditional"``, ``"marginal"`` (normal abilities, with the mean and spread
        that fit the anchors) or ``"refined"``, as in :func:`discreet.fit`. Anchored to its own
        values by the same method, a test has displacements of zero.

    Raises
    ------
    BadUsage
        If the anchors cannot be used; see `accept_anchors`.
    DisconnectedItems
        If the answers link no other item to the anchors.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> anchored = fit_anchored(answers, {"0": 2.0})
    >>> float(np.round(anchored.estimate.difficulty[1], 6)), anchored.estimate.status[0].value
    (2.693147, 'anchored')
    """
    if method not in METHODS_WITH_ANCHORS:
        raise BadUsage(
            f"anchors are held by the methods {', '.join(METHODS_WITH_ANCHORS)}, found {method!r}; "
            "choose one of these"
        )
    refuse_rating_scale(reading.get("model"))
    responses = load_answers(data, reading)
    if max(responses.steps, default=1) > 1 or has_step_anchors(anchors):
        held_items = hold_steps(responses, accept_ladders(anchors, responses.items), engine, method)
        return _assemble_steps(held_items)
    anchor_values = accept_anchors(anchors, responses.items)
    held = np.array([name in anchor_values for name in responses.items])
    value = np.array([anchor_values.get(name, np.nan) for name in responses.items])
    complete = responses.n_answers == responses.n_persons * responses.n_items
    weighting = None if complete else PersonWeight()
    counts = count_pairs(responses, engine=engine, weighting=weighting)
    fitted = solve_grounded(counts.dense("anchoring"), held, value)
    if method == "marginal":
        solution = hold_marginal(responses, counts, fitted)
    elif not fitted.free.size and not held.all():
        raise DisconnectedItems(explain_unlinked(counts.items, held))
    else:
        by_pairs = _hold_pairs(responses, fitted, weighting)
        solution = _hold_persons(responses, counts, by_pairs, method)
    anchored = _assemble(counts, held, solution)
    warn_of_dropped(anchored.estimate.warnings)
    return anchored


def refuse_rating_scale(model: str | None) -> None:
    """Refuse a model whose items share what anchors hold for themselves."""
    if model == "rating-scale":
        raise BadUsage(
            "with anchors every other item has thresholds of its own (partial-credit), found the "
            "model 'rating-scale'; leave out model= (--model), or the anchors"
        )


def _hold_pairs(
    responses: Responses, fitted: GroundedFit, weighting: PersonWeight | None
) -> AnchoredSolution:
    inverse, products = fitted.spread_inverse(), sum_score_products(responses, fitted, weighting)
    solver = "Newton on the pairwise likelihood, anchors held"
    return AnchoredSolution(
        fitted.used,
        fitted.anchored,
        "refined",
        fitted.difficulty,
        inverse @ products @ inverse,
        *fitted.release_anchors(products),
        Solution(solver, fitted.iterations, fitted.step),
    )


def _hold_persons(
    responses: Responses, counts: PairCounts, start: AnchoredSolution, method: str
) -> AnchoredSolution:
    """Go on from pairs to whole persons, where that is wanted and, for auto, little work."""
    if method == "refined":
        return start
    used, job = start.used, GroupPatterns(start.used)
    if method == AUTO:
        patterns = find_patterns(responses, used)
        if patterns is None:
            return replace(start, choice=take_refined(TOO_MUCH_WORK))
    else:
        patterns = job.collect(responses.reduce(job))
    try:
        solution = _climb_held(patterns, counts.right[used], start)
    except NotConverged as error:
        if method != AUTO:
            raise
        return replace(start, choice=take_refined(f"conditional found no maximum ({error})"))
    return replace(solution, choice=TOOK_CONDITIONAL if method == AUTO else "")


def _climb_held(patterns: Patterns, right: Int64Array, start: AnchoredSolution) -> AnchoredSolution:
    anchored = start.anchored
    maximum = maximise_held(patterns, right, anchored, start.difficulty)
    moved, moved_se = start.moved.copy(), start.moved_se.copy()
    for number, index in enumerate(np.flatnonzero(anchored)):
        if np.isfinite(moved[number]):  # pairs have shown that it is determined
            moved[number], moved_se[number] = maximum.release([int(index)])
    solver = "Newton on the conditional likelihood, anchors held"
    return replace(
        start,
        method="conditional",
        difficulty=maximum.difficulty,
        covariance=maximum.covariance,
        moved=moved,
        moved_se=moved_se,
        solution=Solution(solver, maximum.steps, maximum.step),
    )


def _assemble(counts: PairCounts, held: BoolArray, solution: AnchoredSolution) -> Anchored:
    covariance, moved, moved_se = solution.covariance, solution.moved, solution.moved_se
    status = _statuses(counts, held, solution)
    difficulty, se = (np.full(len(counts.items), np.nan) for _ in range(2))
    difficulty[solution.used] = solution.difficulty
    se[solution.used] = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    anchors = tuple(name for name, is_anchor in zip(counts.items, held, strict=True) if is_anchor)
    reason = _reasons(counts, np.flatnonzero(held), moved)
    estimate = Estimate(
        items=counts.items,
        difficulty=difficulty,
        se=se,
        status=status,
        method=solution.method,
        choice=solution.choice,
        solution=solution.solution,
        covariance=(covariance + covariance.T) / 2,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=(
            *solution.warnings,
            *_left_out(counts.items, status),
            *_displaced(anchors, moved, moved_se),
        ),
    )
    return Anchored(estimate, anchors, moved, moved_se, reason)


def _assemble_steps(solution: StepsHeld) -> Anchored:
    status = solution.status
    estimate = Estimate(
        items=solution.items,
        difficulty=solution.location,
        se=solution.location_se,
        status=status,
        method=solution.method,
        choice=solution.choice,
        solution=solution.solution,
        covariance=solution.location_covariance,
        answers=solution.categories.sum(axis=1),
        right=solution.categories @ np.arange(solution.categories.shape[1]),
        persons=solution.persons,
        warnings=(
            *solution.warnings,
            *_left_out(solution.items, status),
            *_displaced(solution.anchors, solution.moved, solution.moved_se),
        ),
        steps=solution.ladder.steps,
        model="partial-credit",
        ladder=solution.ladder,
    )
    return Anchored(estimate, solution.anchors, solution.moved, solution.moved_se, solution.reason)


def _statuses(counts: PairCounts, held: BoolArray, fitted: AnchoredSolution) -> tuple[Status, ...]:
    codes = np.full(len(counts.items), Status.NOT_CONNECTED, dtype=object)
    codes[counts.right == counts.answers] = Status.ALWAYS_RIGHT
    codes[counts.right == 0] = Status.ALWAYS_WRONG
    codes[counts.answers == 0] = Status.NO_ANSWERS
    codes[fitted.free] = Status.ESTIMATED
    codes[held] = Status.ANCHORED
    return tuple(codes)


def _reasons(counts: PairCounts, anchors: IndexArray, moved: FloatArray) -> tuple[str, ...]:
    """Why an anchor has no displacement."""
    reasons = []
    for index, shift in zip(anchors, moved, strict=True):
        if np.isfinite(shift):
            reasons.append("")
        elif counts.answers[index] == 0:
            reasons.append("nobody answered it")
        elif counts.right[index] in (0, counts.answers[index]):
            reasons.append("everybody had it " + ("right" if counts.right[index] else "wrong"))
        elif len(anchors) == 1:
            reasons.append("it is the only anchor")
        else:
            reasons.append("without it nothing links it to the other anchors")
    return tuple(reasons)


def _left_out(items: tuple[str, ...], status: tuple[Status, ...]) -> list[FitWarning]:
    left = {
        name: f"{name} ({code})"
        for name, code in zip(items, status, strict=True)
        if code not in (Status.ESTIMATED, Status.ANCHORED)
    }
    if not left:
        return []
    noun = "item" if len(left) == 1 else "items"
    sentence = (
        f"no difficulty for {len(left)} {noun} that the answers do not link to the anchors: "
        f"{name_some(list(left.values()))}"
    )
    return [FitWarning(WarningKind.NOT_LINKED, sentence, left)]


def _displaced(anchors: tuple[str, ...], moved: FloatArray, se: FloatArray) -> list[FitWarning]:
    with np.errstate(invalid="ignore"):
        large = (np.abs(moved) > LARGE_DISPLACEMENT) & (np.abs(moved) > LARGE_Z * se)
    displaced = np.flatnonzero(large)
    names = [f"{anchors[i]} ({moved[i]:+.2f})" for i in displaced]
    if not names:
        return []
    verb = "an anchor no longer fits" if len(names) == 1 else f"{len(names)} anchors no longer fit"
    sentence = (
        f"{verb} these answers (displacement in logits): {name_some(names)}. Consider estimating "
        "them instead: a wrong anchor moves every other item"
    )
    return [FitWarning(WarningKind.DISPLACED, sentence, [anchors[i] for i in displaced])]
