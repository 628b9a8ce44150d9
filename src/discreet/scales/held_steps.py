"""Anchored calibration of items with steps: all thresholds of an anchor are held.

In: answers with steps and what is known of the anchors. Out: thresholds of the other items on the
scale of the anchors, and how far the location of each anchor would move if it alone were free. A
node is an item's step, and anchors are held node by node, as right/wrong items are. The other items
are partial credit items. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.answers.opening import count_pairs
from discreet.answers.responses import Responses
from discreet.counts import PairCounts
from discreet.counts.folds import PersonWeight
from discreet.counts.nodes import Recoding, item_of_nodes, keep_used
from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.models.automatic import (
    TOO_MUCH_WORK,
    TOOK_CONDITIONAL,
    find_patterns,
    take_refined,
)
from discreet.models.conditional.maximise import Structure, Surface
from discreet.models.connection import tell_unused
from discreet.models.item_parameters import KnownItems
from discreet.models.methods import AUTO
from discreet.models.steps import (
    PARTIAL_CREDIT,
    StepPlan,
    collect_patterns,
    count_reached,
    match_known,
)
from discreet.results.estimate import FitWarning, Solution, Status
from discreet.results.thresholds import Thresholds
from discreet.scales.grounded import (
    GroundedFit,
    explain_unlinked,
    solve_grounded,
    sum_score_products,
)
from discreet.scales.held import HeldFit, climb_held
from discreet.types import BoolArray, Engine, FloatArray, Int64Array


@dataclass(frozen=True, eq=False)
class _Setting:
    """Answers in the categories of the model, and which of their items are held."""

    responses: Responses
    anchors: KnownItems
    counts: PairCounts
    weighting: PersonWeight | None

    @property
    def items(self) -> tuple[str, ...]:
        return self.responses.items

    @property
    def steps(self) -> tuple[int, ...]:
        return self.responses.steps

    @property
    def held(self) -> BoolArray:
        """Which items are anchors."""
        names = set(self.anchors.items)
        return np.array([name in names for name in self.items])

    @property
    def held_nodes(self) -> BoolArray:
        return np.repeat(self.held, self.steps)

    @property
    def value(self) -> FloatArray:
        """Known thresholds of the nodes, NaN where they are not."""
        rows = dict(zip(self.anchors.items, self.anchors.thresholds, strict=True))
        unknown = np.full(max(self.steps), np.nan)
        pairs = zip(self.items, self.steps, strict=True)
        return np.concatenate([rows.get(name, unknown)[:steps] for name, steps in pairs])

    @property
    def plan(self) -> StepPlan:
        every = tuple(tuple(range(step + 1)) for step in self.steps)
        recoding = Recoding(self.steps, every)
        categories, persons = self.counts.categories, self.counts.persons
        return StepPlan(self.items, self.steps, categories, persons, recoding, PARTIAL_CREDIT)

    def places(self, item: str) -> Int64Array:
        """Return the nodes of an item."""
        return np.flatnonzero(item_of_nodes(self.steps) == self.items.index(item))


@dataclass(frozen=True, eq=False)
class _Found:
    """Thresholds of all nodes, and how far each anchor's location would move."""

    method: str
    value: FloatArray
    covariance: FloatArray
    moved: FloatArray
    moved_se: FloatArray
    solution: Solution
    choice: str = ""


@dataclass(frozen=True, eq=False)
class StepsHeld:
    """What was found beside anchors with steps; see :class:`discreet.Anchored`."""

    items: tuple[str, ...]
    status: tuple[Status, ...]
    ladder: Thresholds
    categories: Int64Array
    persons: int
    method: str
    choice: str
    solution: Solution
    anchors: tuple[str, ...]
    moved: FloatArray
    moved_se: FloatArray
    reason: tuple[str, ...]
    warnings: tuple[FitWarning, ...]

    @cached_property
    def location(self) -> FloatArray:
        """The mean of each item's thresholds; NaN where an item has none."""
        has_threshold = self.ladder.known
        total = np.where(has_threshold, self.ladder.value, 0.0).sum(axis=1)
        number = has_threshold.sum(axis=1)
        return np.where(number > 0, total / np.maximum(number, 1), np.nan)

    @cached_property
    def location_covariance(self) -> FloatArray:
        """Of the items that have a location."""
        item = np.nonzero(self.ladder.known)[0]
        chosen = np.unique(item)
        mean = (chosen[:, None] == item) / np.bincount(item)[chosen, None]
        return np.asarray(mean @ self.ladder.covariance @ mean.T)

    @property
    def location_se(self) -> FloatArray:
        se = np.full(len(self.items), np.nan)
        se[np.isfinite(self.location)] = _roots(self.location_covariance)
        return se


def hold_steps(responses: Responses, anchors: KnownItems, engine: Engine, method: str) -> StepsHeld:
    """Estimate the thresholds of the items that are not anchored.

    Parameters
    ----------
    responses
        Answers in their own categories.
    anchors
        The anchors.
    engine
        Which engine counts the pairs.
    method
        ``"auto"``, ``"conditional"`` or ``"refined"``.
    """
    if method == "marginal":
        raise BadUsage(
            "anchors with steps are held by the methods auto, conditional and refined; found "
            "'marginal'"
        )
    recoding = _choose_categories(responses, anchors)
    categories = dict(zip(responses.items, recoding.kept, strict=True))
    matched = match_known(responses, categories)
    setting, fitted = _link(matched, anchors, engine)
    solution = _hold_pairs(setting, fitted)
    if method != "refined":
        solution = _hold_persons(setting, solution, method)
    free = [item for item in responses.items if item not in set(anchors.items)]
    unused = tell_unused(responses.items, recoding, responses.lowest)
    warnings = tuple(warning for warning in unused if set(warning.items) <= set(free))
    return _finish(matched, recoding, setting, solution, warnings)


def _choose_categories(responses: Responses, anchors: KnownItems) -> Recoding:
    """Keep the categories of the anchors, and of the others those that somebody used."""
    anchored = dict(zip(anchors.items, anchors.kept, strict=True))
    used = keep_used(_count_categories(responses), responses.steps)
    pairs = zip(responses.items, used.kept, strict=True)
    codes = tuple(anchored.get(item, categories) for item, categories in pairs)
    steps = tuple(max(most, one[-1]) for most, one in zip(responses.steps, codes, strict=True))
    return Recoding(steps, codes)


def _count_categories(responses: Responses) -> Int64Array:
    store: Any = responses.store
    if hasattr(store, "category_totals"):
        return np.asarray(store.category_totals())
    answers, right = store.item_totals()
    return np.column_stack([answers - right, right])


def _link(matched: Responses, anchors: KnownItems, engine: Engine) -> tuple[_Setting, GroundedFit]:
    """Solve by pairs for the items all of whose steps are linked to the anchors."""
    while True:
        complete = matched.n_answers == matched.n_persons * matched.n_items
        weighting = None if complete else PersonWeight()
        counts = count_pairs(matched, engine=engine, weighting=weighting)
        setting = _Setting(matched, anchors.select(set(matched.items)), counts, weighting)
        fitted = solve_grounded(
            counts.as_nodes().dense("anchoring"), setting.held_nodes, setting.value
        )
        linked = np.zeros(sum(setting.steps), dtype=bool)
        linked[fitted.used] = True
        lost = np.unique(item_of_nodes(setting.steps)[~linked])
        if not len(lost):
            return setting, fitted
        linked_items = [name for i, name in enumerate(matched.items) if i not in set(lost.tolist())]
        if len(linked_items) == int(setting.held.sum()):
            raise DisconnectedItems(explain_unlinked(matched.items, setting.held))
        matched = matched.select(linked_items)


def _hold_pairs(setting: _Setting, fitted: GroundedFit) -> _Found:
    item_of = item_of_nodes(setting.steps)
    products = sum_score_products(setting.responses, fitted, setting.weighting, item_of)
    inverse = fitted.spread_inverse()
    moves = [
        fitted.release_item(setting.places(anchor), products) for anchor in setting.anchors.items
    ]
    moved, moved_se = np.array(moves).T
    solver = "Newton on the pairwise likelihood, anchors held"
    return _Found(
        "refined",
        fitted.difficulty,
        inverse @ products @ inverse,
        moved,
        moved_se,
        Solution(solver, fitted.iterations, fitted.step),
    )


def _hold_persons(setting: _Setting, start: _Found, method: str) -> _Found:
    """Go on from pairs to whole persons, where that is wanted and, for auto, little work."""
    plan = setting.plan
    if method == AUTO:
        patterns = find_patterns(setting.responses, np.arange(len(setting.items)), plan)
        if patterns is None:
            return replace(start, choice=take_refined(TOO_MUCH_WORK))
        answers = count_reached(patterns, plan)
    else:
        answers = collect_patterns(setting.responses, plan)
    surface = Surface(answers.patterns, answers.observed, Structure(answers.used))
    try:
        maximum = climb_held(surface, setting.held_nodes, start.value)
    except NotConverged as error:
        if method != AUTO:
            raise
        return replace(start, choice=take_refined(f"conditional found no maximum ({error})"))
    return _take(setting, start, maximum, TOOK_CONDITIONAL if method == AUTO else "")


def _take(setting: _Setting, start: _Found, maximum: HeldFit, choice: str) -> _Found:
    moved, moved_se = start.moved.copy(), start.moved_se.copy()
    for number, item in enumerate(setting.anchors.items):
        if np.isfinite(moved[number]):  # pairs have shown that it is determined
            moved[number], moved_se[number] = maximum.release(setting.places(item).tolist())
    solver = "Newton on the conditional likelihood, anchors held"
    solution = Solution(solver, maximum.steps, maximum.step)
    return _Found(
        "conditional", maximum.difficulty, maximum.covariance, moved, moved_se, solution, choice
    )


def _finish(
    matched: Responses,
    recoding: Recoding,
    setting: _Setting,
    solution: _Found,
    warnings: tuple[FitWarning, ...],
) -> StepsHeld:
    """Put what was found at the places of all items."""
    steps, held = recoding.new_steps, set(setting.anchors.items)
    categories = _count_categories(matched)
    inside = set(setting.items)
    status = tuple(
        _name_status(name in held, name in inside, counts[: item_steps + 1])
        for name, counts, item_steps in zip(matched.items, categories, steps, strict=True)
    )
    is_linked = np.array([name in inside for name in matched.items])
    within = np.arange(max(steps)) < np.array(steps)[:, None]
    value, se = np.full((2, *within.shape), np.nan)
    value[within & is_linked[:, None]] = solution.value
    se[within & is_linked[:, None]] = _roots(solution.covariance)
    ladder = Thresholds(
        value,
        se,
        tuple((one,) * item_steps for one, item_steps in zip(status, steps, strict=True)),
        (solution.covariance + solution.covariance.T) / 2,
        categories,
        recoding.kept,
        matched.lowest,
    )
    order = [name for name in matched.items if name in held]
    positions = [setting.anchors.items.index(name) for name in order]
    moved = solution.moved[positions]
    return StepsHeld(
        matched.items,
        status,
        ladder,
        categories,
        matched.n_persons,
        solution.method,
        solution.choice,
        solution.solution,
        tuple(order),
        moved,
        solution.moved_se[positions],
        tuple(
            _explain(matched, name, categories, steps, one)
            for name, one in zip(order, moved, strict=True)
        ),
        warnings,
    )


def _roots(covariance: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(covariance.diagonal(), 0.0))


def _name_status(held: bool, linked: bool, categories: Int64Array) -> Status:
    if held:
        return Status.ANCHORED
    if linked:
        return Status.ESTIMATED
    answers = int(categories.sum())
    if not answers:
        return Status.NO_ANSWERS
    if int(categories[-1]) == answers:
        return Status.ALWAYS_RIGHT
    return Status.ALWAYS_WRONG if int(categories[0]) == answers else Status.NOT_CONNECTED


def _explain(
    matched: Responses, name: str, categories: Int64Array, steps: tuple[int, ...], moved: float
) -> str:
    """Say why an anchor has no displacement."""
    if np.isfinite(moved):
        return ""
    index = matched.items.index(name)
    counts = categories[index, : steps[index] + 1]
    if not counts.any():
        return "nobody answered it"
    if not counts.all():
        return "nobody is in some of its categories"
    return "without it nothing links it to the other anchors"
