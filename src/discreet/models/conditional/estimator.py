"""Conditional maximum likelihood: exact, for any pattern of missing answers.

In: answers, or the items that persons answered, their total scores and how many reached each step.
Out: thresholds, their covariance and the log-likelihood. Given the items that a person answered and
the total score, the answers do not depend on the ability (Andersen 1970, 1977, Masters 1982):

    log P = -sum_i sum_{k <= x_i} d_ik - log gamma_score,

with gamma the coefficients of prod_i sum_x t^x exp(-sum_{k <= x} d_ik). Right and wrong is the case
of one step. Persons with the lowest or the highest score carry no information. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from discreet.answers.protocol import Answers
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.errors import BadUsage, DisconnectedItems, FitWarning
from discreet.models.anchors import Released, add_displacements, explain_untied
from discreet.models.conditional import Patterns
from discreet.models.conditional.batches import conditional_work, plan_batches
from discreet.models.conditional.maximise import ConditionalFit, Surface, Undetermined, maximise
from discreet.models.connectivity import Chain, count_among
from discreet.models.item_parameters import KnownItems
from discreet.models.methods import GIVEN_PATHS, PAIR_METHODS
from discreet.models.step_plan import StepPlan, plan_steps
from discreet.models.structure import Structure
from discreet.models.weak_links import WeakLinks, find_weak_links
from discreet.results.estimate import Estimate, Status
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: The information matrix is dense: 800 MB here.
NODE_LIMIT = 10_000
#: Seconds.
WORK_LIMIT = 3600.0


@dataclass(frozen=True, eq=False)
class StepPatterns:
    """All that conditional likelihood needs of answers.

    Attributes
    ----------
    patterns
        Sets of answered items, and how many persons have which total score on them.
    steps
        Per item, its highest category.
    reached
        ``[item, step]``: persons in the category k or a higher one, k = 1, 2, ...; zero beyond
        an item's steps.
    items
        What messages call the items; by default by their numbers.
    """

    patterns: Patterns
    steps: Int64Array
    reached: Int64Array
    items: tuple[str, ...] = ()

    def name(self, item: int) -> str:
        """Return what messages call an item."""
        return f"item '{self.items[item]}'" if self.items else f"item {item + 1}"

    @property
    def used(self) -> BoolArray:
        """Which steps there are, ``[item, step]``."""
        return np.asarray(np.arange(1, self.reached.shape[1] + 1) <= self.steps[:, None])

    @property
    def observed(self) -> Int64Array:
        """Reached steps of all persons but those with the highest score on all they answered.

        Given paths, where the highest score of a module may be one of several, of all persons.
        """
        patterns = self.patterns
        if patterns.is_routed:
            return np.asarray(self.reached * self.used)
        perfect = patterns.score == patterns.highest(self.steps)[patterns.pattern]
        return np.asarray((self.reached - patterns.item_sums(perfect)[:, None]) * self.used)

    @property
    def categories(self) -> Int64Array:
        """Persons in each category, ``[item, category]``; zero beyond an item's steps."""
        answers = self.patterns.item_sums(np.ones(len(self.patterns.score), dtype=bool))
        above = np.column_stack([answers, self.reached, np.zeros_like(answers)])
        return np.asarray(above[:, :-1] - above[:, 1:])


def maximise_conditional(
    answers: StepPatterns,
    *,
    shares_steps: bool = False,
    held: FloatArray | None = None,
    start: FloatArray | None = None,
    unused: BoolArray | None = None,
) -> ConditionalFit:
    """Estimate thresholds by conditional maximum likelihood.

    Parameters
    ----------
    answers
        Answered items, total scores and reached steps.
    shares_steps
        Whether thresholds are an item's location plus a distance that is the same for all items
        (rating scale); otherwise every threshold is free (partial credit).
    held
        Thresholds of the nodes that are held, NaN where they are free.
    start
        Thresholds of the nodes to start from; by default from the categories' frequencies.
    unused
        Which nodes lead into a category that is kept although nobody is in it.

    Raises
    ------
    DisconnectedItems
        If the answers do not determine the thresholds: an unused category, or items that hang
        together by too few persons.
    BadUsage
        If items of a rating scale differ in their steps, or if there are too many steps.
    """
    check_conditional_size(answers.patterns, answers.used.shape[1])
    structure = Structure(np.nonzero(answers.used)[0], shares_steps, held, unused)
    if shares_steps:
        most_steps = int(answers.steps.max(initial=0))
        if (answers.steps != most_steps).any():
            short = [answers.name(i) for i in np.flatnonzero(answers.steps != most_steps).tolist()]
            raise BadUsage(
                f"a rating scale has the same categories for all items; {len(short)} of "
                f"{len(answers.steps)} items have fewer than {most_steps} steps "
                f"({name_some(short)}); use the partial credit model, or say that these items "
                "have more categories than were used"
            )
        total = answers.categories.sum(axis=0)
        if (total == 0).any():
            raise DisconnectedItems(
                f"nobody is in category {int(np.argmin(total))} of any item, so that the steps "
                "around it are not determined; merge it with a neighbour"
            )
    else:
        _check_categories(answers, structure)
    nodes = start if start is not None else _frequencies(answers)[answers.used]
    surface = Surface(answers.patterns, answers.observed, structure)
    try:
        return maximise(surface, structure.fit(nodes))
    except Undetermined as error:
        raise DisconnectedItems(_explain_open(answers, error.direction)) from None


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


def _check_categories(answers: StepPatterns, structure: Structure) -> None:
    """Refuse free steps around a category that nobody is in."""
    free = np.zeros(len(answers.steps), dtype=bool)
    free[structure.item[structure.free]] = True
    inside = np.column_stack([answers.steps > 0, answers.used]) & free[:, None]
    if structure.unused is not None:
        inside[:, 1:][answers.used] &= ~structure.unused
    empty = np.argwhere(inside & (answers.categories == 0))
    if len(empty) or (answers.steps == 0).any():
        alone = np.flatnonzero(answers.steps == 0).tolist()
        labels = [f"{answers.name(i)} category {k}" for i, k in empty]
        labels += [f"{answers.name(i)} (one category only)" for i in alone]
        raise DisconnectedItems(
            f"nobody is in {name_some(labels)}: the steps around an unused category are not "
            "determined; drop or merge it for this item, or use the rating scale model"
        )


def _frequencies(answers: StepPatterns) -> FloatArray:
    """Logarithms of quotients of neighbouring categories, half an answer added to each."""
    count = answers.categories + 0.5
    return np.asarray(np.log(count[:, :-1] / count[:, 1:]))


def _explain_open(answers: StepPatterns, direction: FloatArray) -> str:
    """Name the thresholds on the smaller side of an open direction."""
    middle = (np.nanmin(direction) + np.nanmax(direction)) / 2
    sides = [np.argwhere(direction < middle), np.argwhere(direction > middle)]
    moved = min(sides, key=len)
    thresholds = name_some([f"{answers.name(i)} step {k + 1}" for i, k in moved])
    return (
        f"the answers do not determine the thresholds of {thresholds} relative to the others: the "
        "likelihood does not fall, however far they are moved. Leave these items out, merge their "
        "categories, or collect more answers"
    )


# -- from answers to an estimate ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConditionalTask:
    """Which items of a plan conditional likelihood is about, and where it starts.

    Attributes
    ----------
    plan
        The categories of the items, and the model.
    chain
        The nodes that pairs of answers link; None where the likelihood itself shall say which are
        determined: it exists under weaker conditions.
    start
        Thresholds of the linked nodes; None to start from frequencies.
    links
        Parts that few persons link to the others.
    """

    plan: StepPlan
    chain: Chain | None = None
    start: FloatArray | None = None
    links: WeakLinks | None = None

    @cached_property
    def items(self) -> IndexArray:
        """Positions of the items, all of whose steps are looked at."""
        if self.chain is None:
            return np.arange(len(self.plan.items))
        return self.plan.find_whole(self.chain.linked)

    @cached_property
    def nodes(self) -> IndexArray:
        """Positions of the nodes of these items."""
        return np.flatnonzero(np.isin(self.plan.item_of, self.items))

    @property
    def status(self) -> tuple[Status, ...]:
        """One status per node."""
        return self.plan.all_estimated if self.chain is None else self.chain.status

    @property
    def warnings(self) -> tuple[FitWarning, ...]:
        """What the links leave out, and which are weak."""
        weak = () if self.links is None else (self.links.warning,)
        return weak if self.chain is None else (*self.chain.warnings, *weak)

    def collect(self, answers: Answers, sample: int | None = None) -> Patterns:
        """Group persons by which of the items they answered and their score on them."""
        if isinstance(answers, Responses) and answers.routing is not None:
            from discreet.models.conditional.routed import group_routes  # loads SciPy

            return group_routes(answers.to_array(), answers.routing, answers.items, answers.steps)
        return self.plan.collect(answers, self.items, sample)

    def count(self, patterns: Patterns) -> StepPatterns:
        """Add to the patterns how many persons reached each step."""
        plan = self.plan
        steps = np.array(plan.steps, dtype=np.int64)[self.items]
        reached = plan.reached[self.items, : int(steps.max(initial=1))]
        return StepPatterns(patterns, steps, reached, tuple(plan.items[i] for i in self.items))

    def maximise(self, patterns: Patterns) -> ConditionalFit:
        """Climb to the maximum."""
        plan, start = self.plan, self.start
        if start is not None and self.chain is not None:
            start = start[np.isin(self.chain.linked, self.nodes)]
        return maximise_conditional(
            self.count(patterns),
            shares_steps=plan.shares_steps,
            held=None if plan.held is None else plan.held[self.nodes],
            start=start,
            unused=None if plan.unused is None else plan.unused[self.nodes],
        )

    def assemble(self, fitted: ConditionalFit, patterns: Patterns) -> Estimate:
        """Return the estimate of all items, those that are not linked without a number."""
        chain, plan = self.chain, self.plan
        estimate = plan.assemble(
            self.nodes,
            fitted.node,
            fitted.covariance,
            status=self.status,
            warnings=self.warnings,
            method=GIVEN_PATHS if patterns.is_routed else "conditional",
            solution=fitted.solution,
        )
        if plan.held is None or chain is None:
            return estimate
        release = partial(self._release, fitted, self.count(patterns))
        return add_displacements(estimate, plan, release, explain_untied(plan, chain))

    def _release(
        self, fitted: ConditionalFit, answers: StepPatterns, item: int
    ) -> tuple[float, float]:
        position = int(np.searchsorted(self.items, item))
        structure = fitted.structure.release(position)
        surface = Surface(answers.patterns, answers.observed, structure)
        batches = plan_batches(answers.patterns, surface.spread(structure.fit(fitted.node)))

        def solve() -> FloatArray:
            return maximise(surface, structure.fit(fitted.node)).node

        return Released(
            structure,
            position,
            fitted.node,
            fitted.information,
            lambda parameter: surface.gradient(surface.look(parameter, batches)),
            solve,
        ).displace()


def fit_conditional(
    answers: Answers,
    model_name: str = "auto",
    anchors: KnownItems | None = None,
    *,
    keep_categories: bool = False,
) -> Estimate:
    """Estimate thresholds by conditional maximum likelihood.

    Parameters
    ----------
    answers
        The answers; any may be missing, as long as that does not depend on the person's other
        answers.
    model_name
        A model, or "auto".
    anchors
        Items whose thresholds are held.
    keep_categories
        Whether categories between used ones stay although nobody is in them.

    Raises
    ------
    DisconnectedItems
        If fewer than two items are linked by the answers; with steps, if the answers do not
        determine all thresholds.
    BadUsage
        If there are more items than a dense matrix can hold.
    """
    task = _choose_task(answers, model_name, anchors, keep_categories)
    patterns = task.collect(answers)
    return task.assemble(task.maximise(patterns), patterns)


def find_maximum(
    answers: Answers, model_name: str = "auto", keep_categories: bool = False
) -> ConditionalFit:
    """Find the maximum of the likelihood, of right/wrong items among those that are linked."""
    task = _choose_task(answers, model_name, None, keep_categories)
    return task.maximise(task.collect(answers))


def _choose_task(
    answers: Answers, model_name: str, anchors: KnownItems | None, keep_categories: bool = False
) -> ConditionalTask:
    counts, plan = plan_steps(answers.count(), model_name, anchors, keep_categories)
    routing = answers.routing if isinstance(answers, Responses) else None
    if plan.held is not None:
        refuse_routing(routing, "anchoring by conditional likelihood")
    if plan.recoding.changes:
        refuse_routing(routing, "leaving out a category that nobody is in")
    if routing is not None or not plan.needs_links:
        every = count_among(counts.as_nodes(), np.arange(len(plan.item_of)))
        return ConditionalTask(plan, links=find_weak_links(answers, plan, every))
    chain = plan.link(counts)
    structure = plan.build_structure(chain.linked)
    start, _ = PAIR_METHODS["refined"].find_solution(chain.rates, structure)
    return ConditionalTask(plan, chain, start, find_weak_links(answers, plan, chain))
