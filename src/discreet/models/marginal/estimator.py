"""Marginal maximum likelihood: abilities are drawn from a distribution and integrated out.

In: answers. Out: difficulties with standard errors, and the ability distribution. Right where
the next item depends on the answers so far (adaptive and routed tests), because such a design
cancels from the likelihood of all answers; wrong where items were chosen by something else that
is known about the person (targeting), and where the distribution is not the assumed one. Pair
counts and conditional likelihood are the other way round. Confidential.

The ability distribution is normal, on a grid that moves with its standard deviation, or
empirical: free weights on a fixed grid. On complete answers the latter reproduces conditional
likelihood (de Leeuw and Verhelst 1986).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, NotConverged, WarningKind
from discreet.models.anchors import add_displacements
from discreet.models.conditional import Patterns
from discreet.models.connectivity import build_chain, classify, count_among, find_statuses
from discreet.models.item_parameters import KnownItems
from discreet.models.marginal import MarginalFit
from discreet.models.marginal.maximise import SMALL_SD, maximise_marginal
from discreet.models.refined import solve_refined, solve_within
from discreet.models.step_plan import StepPlan, plan_steps
from discreet.models.structure import Structure
from discreet.models.weak_links import find_weak_links
from discreet.results.estimate import Estimate, Status
from discreet.text import name_some
from discreet.types import FloatArray, IndexArray, Int64Array

DISTRIBUTIONS = ("normal", "empirical")
#: The information matrix is dense, and is built once for every node of the grid.
ITEM_LIMIT = 5000


def fit_marginal(
    answers: Answers,
    model_name: str = "auto",
    *,
    ability: str = "normal",
    anchors: KnownItems | None = None,
) -> Estimate:
    """Estimate thresholds by marginal maximum likelihood.

    Parameters
    ----------
    answers
        The answers.
    model_name
        A model, or "auto".
    ability
        ``"normal"`` or ``"empirical"``: what is assumed about the abilities.
    anchors
        Items whose thresholds are held; the abilities then have the mean that fits them.

    Raises
    ------
    DisconnectedItems
        If fewer than two items have answers in two categories, or nobody answered two of them; or
        if the anchors have no right or no wrong answers, so that nothing says where abilities are.
    """
    if ability not in DISTRIBUTIONS:
        raise BadUsage(f"ability must be one of {', '.join(DISTRIBUTIONS)}; found {ability!r}")
    counts, plan = plan_steps(answers.count(), model_name, anchors)
    task = MarginalTask(plan, counts.as_nodes())
    patterns = plan.collect(answers, task.items)
    check_patterns(patterns, counts)
    try:
        marginal_fit = task.maximise(patterns, ability)
    except NotConverged:
        if anchors is None and not plan.shares_steps:
            build_chain(task.counts)  # says so where the answers link nothing: then that is why
        raise
    estimate = task.assemble(marginal_fit)
    links = find_weak_links(answers, plan, count_among(task.counts, task.nodes))
    if links is None:
        return estimate
    return replace(estimate, warnings=(*estimate.warnings, links.warning))


@dataclass(frozen=True, eq=False)
class MarginalTask:
    """Which nodes marginal likelihood is about, and where it starts.

    Attributes
    ----------
    plan
        The categories of the items, and the model.
    counts
        Pairs of its nodes.
    """

    plan: StepPlan
    counts: PairCounts

    def __post_init__(self) -> None:
        anchors = self.plan.anchored
        if len(anchors) and not self._says_level(anchors):
            totals = self.plan.categories[anchors] @ np.arange(self.plan.categories.shape[1])
            names = [self.plan.items[i] for i in anchors]
            raise DisconnectedItems(
                f"the anchors ({name_some(names)}) have {int(totals.sum())} right among "
                f"{int(self.plan.categories[anchors].sum())} answers, so nothing says where the "
                "abilities are on their scale; anchor items that some persons had right and some "
                "wrong"
            )

    @cached_property
    def items(self) -> IndexArray:
        """Positions of the anchors and of the items with answers in two categories."""
        mixed = np.flatnonzero((self.plan.categories > 0).sum(axis=1) > 1)
        return np.union1d(self.plan.anchored, mixed).astype(np.intp)

    @cached_property
    def nodes(self) -> IndexArray:
        """Positions of the nodes of these items."""
        return np.flatnonzero(np.isin(self.plan.item_of, self.items))

    @cached_property
    def structure(self) -> Structure:
        """How their thresholds follow from parameters."""
        return self.plan.build_structure(self.nodes)

    @cached_property
    def linked(self) -> IndexArray:
        """Positions of the nodes that pairs of answers link."""
        if self.plan.held is None:
            return classify(self.counts)[1]
        try:
            return self.plan.link(self.counts).linked
        except DisconnectedItems:
            return np.flatnonzero(~np.isnan(self.plan.held))

    def maximise(self, patterns: Patterns, ability: str) -> MarginalFit:
        """Climb to the maximum of the likelihood of these patterns."""
        steps = np.array(self.plan.steps, dtype=np.int64)[self.items]
        inside = np.arange(self.plan.reached.shape[1]) < np.array(self.plan.steps)[:, None]
        return maximise_marginal(
            expand_patterns(patterns, steps),
            self.plan.reached[inside][self.nodes],
            start=self.find_start(),
            ability=ability,
            structure=self.structure,
        )

    def find_start(self) -> FloatArray:
        """Start where pairs say; elsewhere at the logits of neighbouring categories."""
        nodes, structure = self.nodes, self.structure
        # Half an answer more: an anchor or a rating scale may have a category that nobody is in.
        more = 0.0 if structure.is_identity else 0.5
        answers, right = self.counts.answers[nodes] + 2 * more, self.counts.right[nodes] + more
        rough = np.log((answers - right) / right)
        if structure.shares_steps:
            level = np.nanmean(structure.held - rough) if structure.held is not None else 0.0
            return structure.spread(structure.fit(rough + level))
        positions = np.searchsorted(nodes, self.linked)
        if not len(positions):
            return np.asarray(rough)
        by_pairs = self._solve_pairs(rough[positions])
        start = rough + (by_pairs - rough[positions]).mean()
        start[positions] = by_pairs
        return np.asarray(start)

    def _solve_pairs(self, rough: FloatArray) -> FloatArray:
        """Return the refined estimate of the linked nodes; free ones keep the level of a start."""
        if self.plan.held is None:
            return np.asarray(solve_refined(build_chain(self.counts).rates)[0] + rough.mean())
        if len(self.linked) == int((~np.isnan(self.plan.held)).sum()):
            return self.plan.held[self.linked]
        structure = self.plan.build_structure(self.linked)
        return solve_within(self.plan.link(self.counts).rates, structure)[0]

    def assemble(self, fitted: MarginalFit) -> Estimate:
        """Return the estimate of all items; those that pairs do not link, linked by assumption."""
        estimate = self.plan.assemble(
            self.nodes,
            fitted.difficulty,
            fitted.covariance,
            status=self.find_codes(),
            warnings=(*self.tell_links(), *warn_flat(fitted.sd)),
            method="marginal",
            solution=fitted.solution,
        )
        if self.plan.held is None:
            return estimate
        return add_displacements(estimate, self.plan, partial(self._release, fitted), self._explain)

    def find_codes(self) -> tuple[Status, ...]:
        """Return a status per node."""
        codes = find_statuses(self.counts)
        codes[self.nodes] = Status.ESTIMATED
        if self.plan.held is not None:
            codes[~np.isnan(self.plan.held)] = Status.ANCHORED
        return tuple(codes)

    def tell_links(self) -> list[FitWarning]:
        """Warn of items without a number, and of those that only the distribution compares."""
        warnings = []
        if self.plan.held is None:
            linking = (WarningKind.NOT_LINKED, WarningKind.SEVERAL_SETS)
            notices = classify(self.counts)[2]
            warnings = [notice for notice in notices if notice.kind not in linking]
        apart = [self.counts.items[i] for i in np.setdiff1d(self.nodes, self.linked)]
        if not apart:
            return warnings
        others = f"the other {len(self.linked)}" if self.plan.held is None else "the anchors"
        sentence = (
            f"the answers themselves do not link {len(apart)} of {len(self.nodes)} items to "
            f"{others}: {name_some(apart)}; marginal likelihood compares them only by "
            "assuming that all persons come from one ability distribution"
        )
        return [*warnings, FitWarning(WarningKind.LINKED_BY_ASSUMPTION, sentence, apart)]

    def _explain(self, item: int) -> str:
        """Say why an anchor has no displacement; empty if it has."""
        if self._says_level(np.setdiff1d(self.plan.anchored, item)):
            return ""
        return "without it nothing links it to the other anchors"

    def _release(self, fitted: MarginalFit, item: int) -> tuple[float, float]:
        """Free one anchor: how far its location moves, and the standard error."""
        released = self.structure.release(item)
        places = released.item == item
        difficulty, covariance = fitted.release(released)
        moved = float((difficulty - fitted.difficulty)[places].mean())
        mean = places / places.sum()
        return moved, float(np.sqrt(mean @ covariance @ mean))

    def _says_level(self, anchors: IndexArray) -> bool:
        """Whether answers to these items are neither all lowest nor all highest."""
        categories = self.plan.categories[anchors]
        total = int((categories @ np.arange(categories.shape[1])).sum())
        highest = int((categories.sum(axis=1) * np.array(self.plan.steps)[anchors]).sum())
        return 0 < total < highest


def check_patterns(patterns: Patterns, counts: PairCounts) -> None:
    """Refuse what has too many items, or too few to tell abilities apart."""
    if patterns.n_items > ITEM_LIMIT:
        raise BadUsage(
            f"marginal likelihood holds dense matrices of items x items and stops at "
            f"{ITEM_LIMIT} items, found {patterns.n_items}; the method 'refined' has no limit"
        )
    if patterns.n_items < 2 or patterns.lengths.max(initial=0) < 2:
        raise DisconnectedItems(
            f"{patterns.n_items} of the {len(counts.items)} items have right and wrong answers, "
            f"and one person answered at most {int(patterns.lengths.max(initial=0))} of them; "
            "how far abilities differ shows only where persons answer two such items or more"
        )


def warn_flat(sd: float) -> tuple[FitWarning, ...]:
    """Say so where persons hardly differ."""
    if sd >= SMALL_SD:
        return ()
    sentence = (
        "the answers do not tell persons apart: the estimated spread of abilities is near "
        "zero, so that these are logits of the share of wrong answers"
    )
    return (FitWarning(WarningKind.FLAT_ABILITIES, sentence),)


def expand_patterns(patterns: Patterns, steps: Int64Array) -> Patterns:
    """Return patterns of steps instead of items; scores stay."""
    if (steps == 1).all():
        return patterns
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
