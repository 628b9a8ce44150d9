"""From counts of nodes to items: the categories, the structure, and the estimate of a fit.

In: counts, the model, anchors. Out: a plan that every estimator follows: which categories the
items have, which nodes the answers link, how thresholds depend on parameters, and how numbers of
nodes become an :class:`~discreet.Estimate` of items. A node is an item's step; for nodes of
different items the quotient

    P(X_i = k, X_j = l - 1) / P(X_i = k - 1, X_j = l) = exp(d_jl - d_ik)

does not depend on the ability, as for two right/wrong items. So the pair methods find thresholds
as they find difficulties, on nodes instead of items, with pairs inside an item left out.
Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.answers.protocol import Answers, Job
from discreet.counts import PairCounts
from discreet.counts.matrix import Locations, Recoding, item_of_nodes, keep_used, name_nodes
from discreet.errors import DisconnectedItems, FitWarning
from discreet.models.categories import (
    PARTIAL_CREDIT,
    RASCH,
    RATING_SCALE,
    Recoded,
    check_rating_scale,
    choose_model,
    tell_kept,
    tell_unused,
)
from discreet.models.conditional import GroupPatterns, Patterns
from discreet.models.connectivity import (
    Chain,
    build_chain,
    find_statuses,
    find_tied,
    refuse_unlinked,
    regularise,
)
from discreet.models.item_parameters import KnownItems
from discreet.results.estimate import Estimate, Status
from discreet.results.thresholds import Thresholds
from discreet.text import count_of
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

if TYPE_CHECKING:
    from discreet.models.standard_errors import Uncertainty
from discreet.models.structure import Structure


@dataclass(frozen=True, eq=False)
class StepPlan:
    """The items' categories, decided once on all data, and how nodes make items.

    Attributes
    ----------
    items, steps
        Names of the items, and per item the highest category of the model.
    categories
        ``[item, category]``: persons in each category of the model.
    persons
        How many persons were counted.
    recoding
        From the categories of the answers to those of the model.
    model
        One of :data:`discreet.choices.MODELS`.
    warnings
        What became of categories that nobody used.
    anchors
        Items whose thresholds are held; None without anchors.
    keeps_unused
        Whether categories between others stay although nobody is in them.
    """

    items: tuple[str, ...]
    steps: tuple[int, ...]
    categories: Int64Array
    persons: int
    recoding: Recoding
    model: str
    warnings: tuple[FitWarning, ...] = ()
    anchors: KnownItems | None = None
    keeps_unused: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether items are their own nodes."""
        return self.model == RASCH

    @property
    def is_complete(self) -> bool:
        """Whether everybody answered every item."""
        return int(self.categories.sum()) == self.persons * len(self.items)

    @property
    def needs_links(self) -> bool:
        """Whether pairs of answers, not the likelihood itself, say which nodes are determined."""
        return self.is_binary or self.held is not None

    @property
    def shares_steps(self) -> bool:
        """Whether all items share the distances between steps."""
        return self.model == RATING_SCALE

    @cached_property
    def item_of(self) -> IndexArray:
        """The item of every node."""
        return item_of_nodes(self.steps)

    @property
    def reached(self) -> Int64Array:
        """``[item, step]``: how many persons reached each step, or a higher one."""
        return np.asarray(np.cumsum(self.categories[:, ::-1], axis=1)[:, ::-1][:, 1:])

    @cached_property
    def anchored(self) -> IndexArray:
        """Positions of the anchored items."""
        names = set() if self.anchors is None else set(self.anchors.items)
        return np.flatnonzero([name in names for name in self.items])

    @cached_property
    def held(self) -> FloatArray | None:
        """Thresholds of the held nodes, NaN where they are free; None without anchors."""
        if self.anchors is None:
            return None
        row_of = {name: row for row, name in enumerate(self.anchors.items)}
        value = np.full(len(self.item_of), np.nan)
        for item in self.anchored.tolist():
            row = self.anchors.thresholds[row_of[self.items[item]]]
            value[self.item_of == item] = row[: self.steps[item]]
        return value

    @property
    def kept(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the categories of the answers that the model has."""
        if self.anchors is None:
            return self.recoding.kept
        known = dict(zip(self.anchors.items, self.anchors.kept, strict=True))
        pairs = zip(self.items, self.recoding.kept, strict=True)
        return tuple(known.get(name, categories) for name, categories in pairs)

    @cached_property
    def unused(self) -> BoolArray | None:
        """Whether a node leads into a category that nobody is in, although the model has it."""
        if self.model != PARTIAL_CREDIT or not self.keeps_unused:
            return None
        step = np.concatenate([np.arange(1, steps + 1) for steps in self.steps])
        empty = self.categories[self.item_of, step] == 0
        empty &= ~np.isin(self.item_of, self.anchored)
        return empty if empty.any() else None

    def build_structure(self, nodes: IndexArray) -> Structure:
        """Return how the thresholds of some nodes follow from parameters."""
        held = None if self.held is None else self.held[nodes]
        unused = None if self.unused is None else self.unused[nodes]
        return Structure(self.item_of[nodes], self.shares_steps, held, unused)

    def wrap(self, job: Job[Any]) -> Job[Any]:
        """Return the job on answers in the categories of the model."""
        return Recoded(job, self.recoding) if self.recoding.changes else job

    def collect(self, answers: Answers, items: IndexArray, sample: int | None = None) -> Patterns:
        """Group persons by which of some items they answered and their score on them."""
        job = GroupPatterns(items, sample=sample)
        return job.collect(answers.reduce(self.wrap(job)))

    def link(self, counts: PairCounts, regularisation: float = 0.0) -> Chain:
        """Return the nodes that the answers link; a rating scale links all that were answered."""
        nodes = counts.as_nodes()
        if self.held is not None:
            return self._link_anchors(nodes, self.held, regularisation)
        if not self.shares_steps:
            return build_chain(nodes, regularisation=regularisation)
        rates = regularise(nodes.dense("a rating scale").astype(np.float64), regularisation)
        return Chain(nodes.items, np.arange(len(nodes.items)), rates, self.all_estimated, ())

    def _link_anchors(self, nodes: PairCounts, held: FloatArray, regularisation: float) -> Chain:
        """Return the anchors and the nodes that are linked to them."""
        rates = regularise(nodes.dense("anchoring").astype(np.float64), regularisation)
        is_held = ~np.isnan(held)
        linked = is_held | find_tied(self.find_links(rates), is_held)
        if linked.sum() == is_held.sum() < len(is_held):
            raise refuse_unlinked(self.items, self.anchored)
        codes = find_statuses(nodes)
        codes[linked], codes[is_held] = Status.ESTIMATED, Status.ANCHORED
        chosen = np.flatnonzero(linked)
        return Chain(nodes.items, chosen, rates[np.ix_(chosen, chosen)], tuple(codes), ())

    def find_links(self, rates: FloatArray, nodes: IndexArray | None = None) -> BoolArray:
        """Say which nodes answers, or the steps that items share, link directly."""
        links = rates > 0
        if self.shares_steps:
            item = self.item_of if nodes is None else self.item_of[nodes]
            links |= item[:, None] == item
        return np.asarray(links)

    @property
    def all_estimated(self) -> tuple[Status, ...]:
        """Statuses of nodes that all have a number."""
        return (Status.ESTIMATED,) * len(self.item_of)

    def locate(self, nodes: IndexArray) -> Locations | None:
        """Return how the linked nodes make items; None where items are their own nodes.

        Raises
        ------
        DisconnectedItems
            If no item has all of its steps among these nodes.
        """
        if self.is_binary:
            return None
        locations = Locations(self.item_of[nodes], self.steps, centred=self.anchors is None)
        if not len(locations.whole):
            raise DisconnectedItems(
                f"none of the {count_of(len(self.items))} has all of its thresholds: the answers "
                f"link {len(nodes):,} of {sum(self.steps):,} steps. Merge categories that few "
                "persons chose, or collect more answers"
            )
        return locations

    def find_whole(self, nodes: IndexArray) -> IndexArray:
        """Return the items all of whose steps are among these nodes."""
        present = np.bincount(self.item_of[nodes], minlength=len(self.items))
        return np.flatnonzero(present == np.array(self.steps))

    def spread_items(self, nodes: IndexArray, value: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Return the items all of whose steps are among the nodes, and their values by step."""
        node = np.full(len(self.item_of), np.nan)
        node[nodes] = value
        items = self.find_whole(nodes)
        return items, _spread(node, self.steps)[items]

    def fold(self, nodes: Estimate, errors: Uncertainty | None = None) -> Estimate:
        """Put the nodes of an estimate together to items.

        ``errors`` are those of the locations, where the nodes have no covariance.
        """
        locations = self.locate(np.flatnonzero(nodes.estimated))
        return nodes if locations is None else fold_nodes(nodes, self, locations, errors)

    def assemble(
        self,
        nodes: IndexArray,
        value: FloatArray,
        covariance: FloatArray,
        *,
        status: Sequence[Status],
        **parts: Any,
    ) -> Estimate:
        """Return the estimate of a likelihood that gave some nodes a number.

        ``parts`` are further fields of the estimate.
        """
        difficulty, se = np.full((2, len(self.item_of)), np.nan)
        difficulty[nodes], se[nodes] = value, np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        # A step that is linked, of an item that is not whole, has no number here.
        lost = np.isnan(difficulty) & np.equal(np.array(status, dtype=object), Status.ESTIMATED)
        codes = np.where(lost, Status.NOT_CONNECTED, np.array(status, dtype=object))
        by_node = Estimate(
            items=name_nodes(self.items, self.steps),
            difficulty=difficulty,
            se=se,
            status=tuple(codes),
            covariance=(covariance + covariance.T) / 2,
            answers=self.categories.sum(axis=1) if self.is_binary else None,
            right=self.reached[:, 0] if self.is_binary else None,
            persons=self.persons,
            **parts,
        )
        return self._mark_unused(self.fold(by_node))

    def _mark_unused(self, estimate: Estimate) -> Estimate:
        """Say of the steps around a category that nobody is in that only their sum is known."""
        if self.unused is None:
            return estimate
        around = self.unused | np.append(False, self.unused[:-1])
        nodes = zip(chain.from_iterable(estimate.ladder.status), around, strict=True)
        status = [Status.UNUSED if mark else Status(code) for code, mark in nodes]
        ladder = replace(estimate.ladder, status=_gather_status(status, self.steps))
        return replace(estimate, ladder=ladder)


def plan_steps(
    counts: PairCounts,
    model_name: str,
    anchors: KnownItems | None = None,
    keep_categories: bool = False,
) -> tuple[PairCounts, StepPlan]:
    """Decide on the categories; return the counts in these, and the plan.

    Unused categories of partial credit items are left out; a rating scale keeps them, and so does
    an anchor. With ``keep_categories`` those between used ones stay.

    Raises
    ------
    DisconnectedItems
        If nobody is in some category of a rating scale, whatever the item.
    """
    model = choose_model(model_name, counts.steps)
    every = Recoding(counts.steps, tuple(tuple(range(step + 1)) for step in counts.steps))
    if model == RATING_SCALE:
        check_rating_scale(counts)
    recoding = every
    if model == PARTIAL_CREDIT:
        used = keep_used(counts.categories, counts.steps)
        kept = (used.fill_gaps() if keep_categories else used).kept
        held = set(anchors.items if anchors else ())
        columns = zip(counts.items, kept, every.kept, strict=True)
        recoding = replace(every, kept=tuple(b if name in held else a for name, a, b in columns))
    warnings = tell_unused(counts.items, recoding) if recoding.changes else ()
    counts = counts.recode(recoding)
    about = counts.items, counts.steps, counts.categories, counts.persons
    plan = StepPlan(*about, recoding, model, warnings, anchors, keep_categories)
    if plan.unused is None:
        return counts, plan
    lacking = [plan.items[i] for i in dict.fromkeys(plan.item_of[plan.unused].tolist())]
    return counts, replace(plan, warnings=(*warnings, tell_kept(lacking)))


def fold_nodes(
    nodes: Estimate, plan: StepPlan, locations: Locations, errors: Uncertainty | None = None
) -> Estimate:
    """Put the nodes of an estimate, which are its items, together to the items of a plan."""
    steps, estimated = plan.steps, nodes.estimated
    location_se, location_covariance = _find_location_errors(nodes, locations, errors)
    covariance, node_se = nodes.covariance, nodes.se.copy()
    if covariance is not None:
        covariance = locations.centre(locations.centre(covariance).T)
        node_se[estimated] = np.sqrt(covariance.diagonal())
    value = nodes.difficulty.copy()
    value[estimated] = locations.centre(value[estimated])
    location, se = np.full((2, len(steps)), np.nan)
    location[locations.whole] = locations.average(value[estimated])
    se[locations.whole] = location_se
    status = _gather_status(nodes.status, steps)
    thresholds = _spread(value, steps), _spread(node_se, steps)
    ladder = Thresholds(*thresholds, status, covariance, plan.categories, plan.kept)
    return replace(
        nodes,
        items=plan.items,
        difficulty=location,
        se=se,
        status=tuple(_sum_up(own) for own in status),
        covariance=location_covariance,
        answers=plan.categories.sum(axis=1),
        right=plan.categories @ np.arange(plan.categories.shape[1]),
        warnings=(*plan.warnings, *nodes.warnings),
        steps=steps,
        model=plan.model,
        ladder=ladder,
    )


def _find_location_errors(
    nodes: Estimate, locations: Locations, errors: Uncertainty | None
) -> tuple[FloatArray, FloatArray | None]:
    """Return standard errors of the locations, and their covariance where it is known."""
    if nodes.covariance is not None:
        covariance = locations.find(locations.find(nodes.covariance).T)
        return np.sqrt(covariance.diagonal()), covariance
    if errors is not None:
        return errors.se, errors.covariance
    return np.full(len(locations.whole), np.nan), None


def _spread(node: FloatArray, steps: Sequence[int]) -> FloatArray:
    """Put values of nodes at their places, ``[item, step]``."""
    out = np.full((len(steps), max(steps)), np.nan)
    item = item_of_nodes(steps)
    first = np.cumsum(steps) - steps
    out[item, np.arange(len(item)) - first[item]] = node
    return out


def _gather_status(
    status: Sequence[Status], steps: Sequence[int]
) -> tuple[tuple[Status, ...], ...]:
    ends = np.cumsum(steps).tolist()
    return tuple(tuple(status[end - step : end]) for end, step in zip(ends, steps, strict=True))


def _sum_up(status: Sequence[Status]) -> Status:
    """Return why an item has a location, or none: the first reason among its steps."""
    return next((one for one in status if one != Status.ESTIMATED), Status.ESTIMATED)
