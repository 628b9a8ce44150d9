"""Calibrate items with steps: partial credit and rating scale.

In: answers with steps, or counts of pairs of their nodes. Out: an :class:`~discreet.Estimate` with
thresholds. A node is an item's step; for nodes of different items the quotient

    P(X_i = k, X_j = l - 1) / P(X_i = k - 1, X_j = l) = exp(d_jl - d_ik)

does not depend on the ability, as for two right/wrong items. So the pair methods find thresholds as
they find difficulties, on nodes instead of items, with pairs inside an item left out. The rating
scale model is a linear structure on the thresholds. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.protocol import Answers, Job
from discreet.answers.reshaping import join_stores
from discreet.answers.responses import Responses
from discreet.answers.steps import StepStore
from discreet.counts import PairCounts
from discreet.counts.nodes import Locations, Recoding, item_of_nodes, keep_used
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage, DisconnectedItems
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.conditional.steps import (
    StepFit,
    StepModel,
    StepPatterns,
    maximise_steps,
    rating_basis,
)
from discreet.models.connection import Chain, build_chain, regularise, tell_unused
from discreet.models.methods import Method
from discreet.models.standard_errors.sandwich import Uncertainty
from discreet.results.estimate import Estimate, FitWarning, Solution, Status
from discreet.results.thresholds import Thresholds
from discreet.text import count_of, name_some
from discreet.types import MODELS, FloatArray, IndexArray, Int64Array

RASCH, PARTIAL_CREDIT, RATING_SCALE = MODELS


def choose_model(model_name: str, steps: Sequence[int]) -> str:
    """Return the model: what was asked for, or what the answers ask for.

    Parameters
    ----------
    model_name
        A model, or "auto".
    steps
        Per item, its highest category.
    """
    binary = all(step == 1 for step in steps)
    if model_name == "auto":
        return RASCH if binary else PARTIAL_CREDIT
    if model_name not in MODELS:
        choices = ", ".join(["auto", *MODELS])
        raise BadUsage(f"there is no model called {model_name!r}; choose one of: {choices}")
    if model_name == RASCH and not binary:
        raise BadUsage(
            "the model 'rasch' is for right and wrong answers, found answers with up to "
            f"{max(steps)} steps; use 'partial-credit', or say from which score on answers count "
            "as right with at_least= (--at-least)"
        )
    return RASCH if binary else model_name


def refuse_steps(feature: str, steps: Sequence[int]) -> None:
    """Refuse what is there for right and wrong answers only."""
    if max(steps, default=1) > 1:
        raise BadUsage(
            f"{feature} is for right and wrong answers, found answers with up to {max(steps)} "
            "steps; say from which score on answers count as right with at_least= (--at-least)"
        )


# -- categories that nobody used -------------------------------------------------------------


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
        One of :data:`discreet.types.MODELS`.
    warnings
        What became of categories that nobody used.
    """

    items: tuple[str, ...]
    steps: tuple[int, ...]
    categories: Int64Array
    persons: int
    recoding: Recoding
    model: str
    warnings: tuple[FitWarning, ...] = ()

    @property
    def is_binary(self) -> bool:
        """Whether items are their own nodes."""
        return self.model == RASCH

    @property
    def item_of(self) -> IndexArray | None:
        """The item of every node; None where items are their own."""
        return None if self.is_binary else item_of_nodes(self.steps)

    @property
    def basis(self) -> FloatArray | None:
        """The structure of a rating scale, ``[node, parameter]``; None where all nodes are free."""
        if self.model != RATING_SCALE:
            return None
        return rating_basis(len(self.items), max(self.steps))

    def wrap(self, job: Job[Any]) -> Job[Any]:
        """Return the job on answers in the categories of the model."""
        return Recoded(job, self.recoding) if self.recoding.changes else job

    def link(self, counts: PairCounts, regularisation: float) -> Chain:
        """Return the nodes that the answers link; a rating scale links all that were answered."""
        nodes = counts.as_nodes()
        if self.model != RATING_SCALE:
            return build_chain(nodes, regularisation=regularisation)
        status = (Status.ESTIMATED,) * len(nodes.items)
        rates = regularise(nodes.dense("a rating scale").astype(np.float64), regularisation)
        return Chain(nodes.items, np.arange(len(nodes.items)), rates, status, ())

    def solve(self, method: Method, chain: Chain) -> tuple[FloatArray, Solution]:
        """Find the difficulties of the linked nodes."""
        if self.basis is None:
            return method.solve(chain.rates)
        return method.solve_within(chain.rates, self.basis)

    def locate(self, nodes: IndexArray) -> Locations | None:
        """Return how the linked nodes make items; None where items are their own nodes.

        Raises
        ------
        DisconnectedItems
            If no item has all of its steps among these nodes.
        """
        if self.item_of is None:
            return None
        locations = Locations(self.item_of[nodes], self.steps)
        if not len(locations.whole):
            raise DisconnectedItems(
                f"none of the {count_of(len(self.items))} has all of its thresholds: the answers "
                f"link {len(nodes):,} of {sum(self.steps):,} steps. Merge categories that few "
                "persons chose, or collect more answers"
            )
        return locations

    def fold(self, nodes: Estimate, errors: Uncertainty | None = None) -> Estimate:
        """Put the nodes of an estimate together to items.

        ``errors`` are those of the locations, where the nodes have no covariance.
        """
        locations = self.locate(np.flatnonzero(nodes.estimated))
        return nodes if locations is None else fold_nodes(nodes, self, locations, errors)


def plan_steps(counts: PairCounts, model_name: str) -> tuple[PairCounts, StepPlan]:
    """Decide on the categories; return the counts in these, and the plan.

    Unused categories of partial credit items are left out; a rating scale keeps them.

    Raises
    ------
    DisconnectedItems
        If nobody is in some category of a rating scale, whatever the item.
    """
    model = choose_model(model_name, counts.steps)
    every = Recoding(counts.steps, _all_categories(counts.steps))
    if model == RATING_SCALE:
        _check_scale(counts)
    recoding = keep_used(counts.categories, counts.steps) if model == PARTIAL_CREDIT else every
    warnings = tell_unused(counts.items, recoding)
    counts = counts.recode(recoding)
    about = counts.items, counts.steps, counts.categories, counts.persons
    return counts, StepPlan(*about, recoding, model, warnings)


def _all_categories(steps: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(range(step + 1)) for step in steps)


def _check_scale(counts: PairCounts) -> None:
    most_steps = max(counts.steps)
    short = [
        item for item, step in zip(counts.items, counts.steps, strict=True) if step < most_steps
    ]
    if short:
        raise BadUsage(
            f"in a rating scale all items have the same categories; {len(short)} of "
            f"{len(counts.items)} items have fewer than {most_steps} steps ({name_some(short)}). "
            f"If they share the scale and nobody chose the top, say steps={most_steps} "
            f"(--steps {most_steps}); otherwise use the model 'partial-credit'"
        )
    total = counts.categories.sum(axis=0)
    if (total == 0).any():
        raise DisconnectedItems(
            f"nobody is in category {int(np.argmin(total))} of any item, so that the steps around "
            "it are not determined; merge it with a neighbour"
        )


class Recoded(Job[Any]):
    """A job on answers without unused categories; of itself it says what the job says."""

    def __init__(self, job: Job[Any], recoding: Recoding) -> None:
        self._job, self._recoding = job, recoding
        self.sample, self.travels = job.sample, job.travels
        self.is_sum, self.needs = job.is_sum, job.needs
        self.every = job.every

    def block(self, store: AnswerStore) -> Any:
        """Return the value of some persons."""
        return self._job.block(recode_store(store, self._recoding))

    def stand(self, store: AnswerStore) -> Int64Array:
        """Return how many persons everybody stands for, if drawn."""
        return self._job.stand(recode_store(store, self._recoding))

    def of_everybody(self) -> Recoded:
        """Return the same job for all persons."""
        return Recoded(self._job.of_everybody(), self._recoding)

    def add(self, first: Any, second: Any) -> Any:
        """Return the value of the persons of both."""
        return self._job.add(first, second)


def recode_store(store: AnswerStore, recoding: Recoding) -> AnswerStore:
    """Return answers without the categories that nobody used."""
    if not recoding.changes or not isinstance(store, StepStore):
        return store
    return store.recode(recoding)


def match_categories(responses: Responses, estimate: Any) -> Responses:
    """Return answers in the categories that an estimate has, to be read with its thresholds.

    A category that nobody used when the estimate was made is not in its model, and the numbers of
    those above it changed; the same is done to these answers. Right and wrong answers are returned
    as they are, and so are those to items that the estimate does not have.

    Raises
    ------
    BadResponses
        If somebody is in a category that the estimate knows nothing about.
    """
    ladder = estimate.ladder
    every = ((0, 1),) * len(estimate.items) if ladder is None else ladder.kept
    return match_known(responses, dict(zip(estimate.items, every, strict=True)))


def match_known(responses: Responses, categories_of: Mapping[str, tuple[int, ...]]) -> Responses:
    """Return answers in the known categories of their items, as :func:`match_categories` does."""
    if (
        max(map(len, categories_of.values()), default=2) == 2
        and max(responses.steps, default=1) == 1
    ):
        return responses
    pairs = list(zip(responses.items, responses.steps, strict=True))
    kept_categories = tuple(categories_of.get(item, tuple(range(most + 1))) for item, most in pairs)
    steps = tuple(max(most, own[-1]) for (_, most), own in zip(pairs, kept_categories, strict=True))
    store, recoding = responses.store, Recoding(steps, kept_categories)
    if steps != responses.steps:
        store = join_stores([responses], dict(zip(responses.items, steps, strict=True)))
    _check_categories(store, responses.items, recoding, responses.lowest)
    store = recode_store(store, recoding)
    if store is responses.store:
        return responses
    return Responses(
        responses.items, responses.person_ids, store, responses.groups, lowest=responses.lowest
    )


def category_totals(store: AnswerStore) -> Int64Array:
    """Per item, how many persons are in each category; zero beyond an item's steps."""
    if isinstance(store, StepStore):
        return store.category_totals()
    answers, right = store.item_totals()
    return np.stack([answers - right, right], axis=1)


def leave_unused(responses: Responses) -> Responses:
    """Return answers without the categories that nobody is in."""
    used = keep_used(category_totals(responses.store), responses.steps)
    if not used.changes:
        return responses
    return match_known(responses, dict(zip(responses.items, used.kept, strict=True)))


def _check_categories(
    store: AnswerStore, items: Sequence[str], recoding: Recoding, lowest: int
) -> None:
    """Refuse answers in categories that are left out."""
    if not recoding.changes:
        return
    totals = category_totals(store)
    lost = np.argwhere((totals > 0) & (recoding.codes() < 0))
    if len(lost):
        item, category = lost[0].tolist()
        categories = ", ".join(str(lowest + one) for one in recoding.kept[item])
        raise BadResponses(
            f"item '{items[item]}' has {count_of(int(totals[item, category]), 'answer')} in "
            f"category {lowest + category}, but the calibration knows its categories {categories} "
            "only, so that nothing says what such an answer is worth. Count these answers as "
            "missing, merge the category with a neighbour, or calibrate anew with these answers "
            "included"
        )


# -- from nodes to items ---------------------------------------------------------------------


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
    ladder = Thresholds(*thresholds, status, covariance, plan.categories, plan.recoding.kept)
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
    ends = np.cumsum(steps)
    return tuple(tuple(status[end - step : end]) for end, step in zip(ends, steps, strict=True))


def _sum_up(status: Sequence[Status]) -> Status:
    """Return why an item has a location, or none: the first reason among its steps."""
    return next((one for one in status if one != Status.ESTIMATED), Status.ESTIMATED)


# -- conditional likelihood ------------------------------------------------------------------


def collect_patterns(answers: Answers, plan: StepPlan, **options: Any) -> StepPatterns:
    """Group persons by the items they answered and their total score.

    ``options`` are those of :class:`~discreet.models.conditional.patterns.GroupPatterns`.
    """
    job = GroupPatterns(np.arange(len(plan.items)), **options)
    return count_reached(job.collect(answers.reduce(plan.wrap(job))), plan)


def count_reached(patterns: Patterns, plan: StepPlan) -> StepPatterns:
    """Add to patterns of all items how many persons reached each step."""
    reached = np.cumsum(plan.categories[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return StepPatterns(patterns, np.array(plan.steps, dtype=np.int64), reached, plan.items)


def fit_conditional_steps(answers: Answers, model_name: str) -> Estimate:
    """Estimate thresholds by conditional maximum likelihood."""
    return assemble_steps(*find_step_maximum(answers, model_name))


def find_step_maximum(answers: Answers, model_name: str) -> tuple[StepFit, StepPlan]:
    """Find the maximum of the conditional likelihood, and the categories that it is about.

    Right and wrong answers are partial credit with one step.
    """
    _, plan = plan_steps(answers.count(), model_name)
    model = StepModel(PARTIAL_CREDIT if plan.model == RASCH else plan.model)
    return maximise_steps(collect_patterns(answers, plan), model), plan


def assemble_steps(step_fit: StepFit, plan: StepPlan) -> Estimate:
    """Return the estimate of a conditional fit of all items."""
    status = tuple((Status.ESTIMATED,) * step for step in plan.steps)
    covariance, kept_categories = step_fit.location_covariance, plan.recoding.kept
    categories = plan.categories
    return Estimate(
        items=plan.items,
        difficulty=step_fit.location,
        se=np.sqrt(covariance.diagonal()),
        status=(Status.ESTIMATED,) * len(plan.items),
        method="conditional",
        solution=step_fit.solution,
        covariance=covariance,
        answers=categories.sum(axis=1),
        right=categories @ np.arange(categories.shape[1]),
        persons=plan.persons,
        warnings=plan.warnings,
        steps=plan.steps,
        model=plan.model,
        ladder=Thresholds(
            step_fit.threshold,
            step_fit.se,
            status,
            step_fit.covariance,
            categories,
            kept_categories,
        ),
    )
