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
    known: KnownItems
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
        names = set(self.known.items)
        return np.array([name in names for name in self.items])

    @property
    def held_nodes(self) -> BoolArray:
        return np.repeat(self.held, self.steps)

    @property
    def value(self) -> FloatArray:
        """Known thresholds of the nodes, NaN where they are not."""
        rows = dict(zip(self.known.items, self.known.thresholds, strict=True))
        unknown = np.full(max(self.steps), np.nan)
        pairs = zip(self.items, self.steps, strict=True)
        return np.concatenate([rows.get(name, unknown)[:most] for name, most in pairs])

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
        known = self.ladder.known
        total = np.where(known, self.ladder.value, 0.0).sum(axis=1)
        number = known.sum(axis=1)
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


def hold_steps(responses: Responses, known: KnownItems, engine: Engine, method: str) -> StepsHeld:
    """Estimate the thresholds of the items that are not anchored.

    Parameters
    ----------
    responses
        Answers in their own categories.
    known
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
    recoding = _choose_categories(responses, known)
    categories = dict(zip(responses.items, recoding.kept, strict=True))
    matched = match_known(responses, categories)
    setting, fitted = _link(matched, known, engine)
    found = _hold_pairs(setting, fitted)
    if method != "refined":
        found = _hold_persons(setting, found, method)
    free = [item for item in responses.items if item not in set(known.items)]
    unused = tell_unused(responses.items, recoding, responses.lowest)
    warnings = tuple(one for one in unused if set(one.items) <= set(free))
    return _finish(matched, recoding, setting, found, warnings)


def _choose_categories(responses: Responses, known: KnownItems) -> Recoding:
    """Keep the categories of the anchors, and of the others those that somebody used."""
    own = dict(zip(known.items, known.kept, strict=True))
    used = keep_used(_count_categories(responses), responses.steps)
    pairs = zip(responses.items, used.kept, strict=True)
    kept = tuple(own.get(item, categories) for item, categories in pairs)
    steps = tuple(max(most, one[-1]) for most, one in zip(responses.steps, kept, strict=True))
    return Recoding(steps, kept)


def _count_categories(responses: Responses) -> Int64Array:
    store: Any = responses.store
    if hasattr(store, "category_totals"):
        return np.asarray(store.category_totals())
    answers, right = store.item_totals()
    return np.column_stack([answers - right, right])


def _link(matched: Responses, known: KnownItems, engine: Engine) -> tuple[_Setting, GroundedFit]:
    """Solve by pairs for the items all of whose steps are linked to the anchors."""
    while True:
        complete = matched.n_answers == matched.n_persons * matched.n_items
        weighting = None if complete else PersonWeight()
        counts = count_pairs(matched, engine=engine, weighting=weighting)
        setting = _Setting(matched, known.select(set(matched.items)), counts, weighting)
        fitted = solve_grounded(
            counts.as_nodes().dense("anchoring"), setting.held_nodes, setting.value
        )
        linked = np.zeros(sum(setting.steps), dtype=bool)
        linked[fitted.used] = True
        lost = np.unique(item_of_nodes(setting.steps)[~linked])
        if not len(lost):
            return setting, fitted
        rest = [name for i, name in enumerate(matched.items) if i not in set(lost.tolist())]
        if len(rest) == int(setting.held.sum()):
            raise DisconnectedItems(explain_unlinked(matched.items, setting.held))
        matched = matched.select(rest)


def _hold_pairs(setting: _Setting, fitted: GroundedFit) -> _Found:
    item_of = item_of_nodes(setting.steps)
    products = sum_score_products(setting.responses, fitted, setting.weighting, item_of)
    inverse = fitted.spread_inverse()
    moves = [fitted.release_item(setting.places(one), products) for one in setting.known.items]
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
        found = climb_held(surface, setting.held_nodes, start.value)
    except NotConverged as error:
        if method != AUTO:
            raise
        return replace(start, choice=take_refined(f"conditional found no maximum ({error})"))
    return _take(setting, start, found, TOOK_CONDITIONAL if method == AUTO else "")


def _take(setting: _Setting, start: _Found, found: HeldFit, choice: str) -> _Found:
    moved, moved_se = start.moved.copy(), start.moved_se.copy()
    for number, item in enumerate(setting.known.items):
        if np.isfinite(moved[number]):  # pairs have shown that it is determined
            moved[number], moved_se[number] = found.release(setting.places(item).tolist())
    solver = "Newton on the conditional likelihood, anchors held"
    solution = Solution(solver, found.steps, found.step)
    return _Found(
        "conditional", found.difficulty, found.covariance, moved, moved_se, solution, choice
    )


def _finish(
    matched: Responses,
    recoding: Recoding,
    setting: _Setting,
    found: _Found,
    warnings: tuple[FitWarning, ...],
) -> StepsHeld:
    """Put what was found at the places of all items."""
    steps, held = recoding.new_steps, set(setting.known.items)
    categories = _count_categories(matched)
    inside = set(setting.items)
    status = tuple(
        _name_status(name in held, name in inside, own[: most + 1])
        for name, own, most in zip(matched.items, categories, steps, strict=True)
    )
    there = np.array([name in inside for name in matched.items])
    within = np.arange(max(steps)) < np.array(steps)[:, None]
    value, se = np.full((2, *within.shape), np.nan)
    value[within & there[:, None]] = found.value
    se[within & there[:, None]] = _roots(found.covariance)
    ladder = Thresholds(
        value,
        se,
        tuple((one,) * most for one, most in zip(status, steps, strict=True)),
        (found.covariance + found.covariance.T) / 2,
        categories,
        recoding.kept,
        matched.lowest,
    )
    order = [name for name in matched.items if name in held]
    place = [setting.known.items.index(name) for name in order]
    moved = found.moved[place]
    return StepsHeld(
        matched.items,
        status,
        ladder,
        categories,
        matched.n_persons,
        found.method,
        found.choice,
        found.solution,
        tuple(order),
        moved,
        found.moved_se[place],
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
    place = matched.items.index(name)
    own = categories[place, : steps[place] + 1]
    if not own.any():
        return "nobody answered it"
    if not own.all():
        return "nobody is in some of its categories"
    return "without it nothing links it to the other anchors"
