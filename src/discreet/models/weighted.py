"""Fits with sampling weights: the census fit, estimated from a sample, and its standard errors.

In: answers with a :class:`~discreet.answers.survey.SurveyDesign`. Out: an estimate by any method,
whose standard errors know the design. Every method solves ``sum of scores of persons = 0``; with
weights it solves ``sum of weight times score = 0``, which estimates what a fit of the whole
population would give (Binder 1983), whether or not the model is exactly true. A weighted likelihood
is no likelihood: its curvature is not its variance. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.survey import SurveyDesign
from discreet.counts import PairCounts
from discreet.counts.planes import AnswerStore
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, NotConverged, WarningKind
from discreet.models.anchors import add_displacements
from discreet.models.categories import call_categories, recode_store, weigh_categories
from discreet.models.conditional import Patterns
from discreet.models.conditional.automatic import TOO_MUCH_WORK, find_patterns, take_refined
from discreet.models.conditional.batches import expect_entries
from discreet.models.conditional.estimator import ConditionalTask, check_conditional_size
from discreet.models.connectivity import Chain, count_among
from discreet.models.marginal.estimator import MarginalTask, check_patterns
from discreet.models.methods import PAIR_METHODS, FitRequest, Method
from discreet.models.standard_errors import ScorePlan, score_persons
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.models.step_plan import StepPlan, plan_steps
from discreet.models.structure import Structure
from discreet.models.weak_links import FEWEST, MANY_LOST, WeakLinks, find_weak_links
from discreet.results.estimate import Estimate, Solution, Status
from discreet.text import count_of
from discreet.types import FloatArray, IndexArray

#: Persons whose answers are looked at together.
PERSONS_AT_ONCE = 1 << 14
#: Warn where persons are so many times as many as the effective sample size.
UNEQUAL = 10

LINEARISED = (
    "Standard errors are linearised under the sampling design ({units} in {strata}; {degrees} "
    "degrees of freedom)."
)
REPLICATED = (
    "Standard errors come from {replicates} replicate weights ({method}; {degrees} degrees of "
    "freedom)."
)


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """Thresholds under weights, and how every person moves them.

    Attributes
    ----------
    value
        Thresholds of the nodes that have a number.
    moves
        ``[person, node]``: the weight times the person's influence.
    solution
        How they were found.
    """

    value: FloatArray
    moves: FloatArray
    solution: Solution


@dataclass(frozen=True, eq=False)
class WeightedTask:
    """A method, ready to fit the same answers with any weights.

    Attributes
    ----------
    nodes
        Positions of the nodes that get a number.
    status, warnings
        One status per node, and what was left out.
    fit
        Fits with a weight per person.
    links
        Parts that few persons link to the others.
    """

    nodes: IndexArray
    status: tuple[Status, ...]
    warnings: tuple[FitWarning, ...]
    fit: Callable[[FloatArray], WeightedFit]
    links: WeakLinks | None = None


@dataclass(frozen=True, eq=False)
class DesignFit:
    """An estimate, and how persons move it.

    Attributes
    ----------
    estimate
        With standard errors of the design.
    sample
        Weights and design of the persons in the domain.
    location, threshold
        ``[person, item]`` and ``[person, node]``: the weight times the person's influence on
        the locations and the thresholds that have a number.
    """

    estimate: Estimate
    sample: SurveyDesign
    location: FloatArray
    threshold: FloatArray


def fit_weighted(answers: Responses, request: FitRequest, *, displaces: bool = True) -> DesignFit:
    """Fit with weights.

    Parameters
    ----------
    answers
        The answers, with weights; persons with the weight zero are outside the domain and count
        only as members of their PSU.
    request
        Method, model and anchors.
    displaces
        Whether the displacements of anchors are wanted too: another fit for each of them.
    """
    weights, plan, (method, choice, task) = _prepare(answers, request)
    unequal = _warn_of_weights(weights)
    try:
        fitted = task.fit(weights.weight)
    except (DisconnectedItems, NotConverged, np.linalg.LinAlgError) as error:
        if not unequal:
            raise
        raise NotConverged(f"{unequal[0]}. Nothing is estimated: {error}") from error
    if weights.replicates is None:
        covariance = weights.linearise(fitted.moves)
    else:
        covariance = weights.replicate(fitted.value, lambda weight: task.fit(weight).value)
    estimate = plan.assemble(
        task.nodes,
        fitted.value,
        covariance,
        status=task.status,
        warnings=(*task.warnings, *unequal),
        method=method,
        solution=fitted.solution,
        choice=choice,
        degrees=max(weights.degrees, 1),
    )
    items, location, threshold = _locate(plan, task.nodes, fitted.moves)
    effect = _find_design_effect(estimate, weights, items, location)
    estimate = replace(estimate, se_method=tell_design(weights), design_effect=effect)
    # Marginal likelihood also links by the distribution of abilities that all persons share.
    links = None if method == "marginal" else task.links
    if links is not None or weights.effective < FEWEST:
        estimate = _withhold_errors(estimate, links)
    if displaces and plan.anchored.size:
        estimate = _displace_anchors(answers, replace(request, method=method), plan, estimate)
    named = call_categories(estimate, answers)
    return DesignFit(named, weights, location, threshold)


def _warn_of_weights(weights: SurveyDesign) -> tuple[FitWarning, ...]:
    """Warn where the weights of few persons outweigh those of all others."""
    persons, largest = len(weights.weight), weights.weight.max() / weights.weight.mean()
    if weights.effective * UNEQUAL >= persons:
        return ()
    sentence = (
        f"the weights of {persons:,} persons are very unequal: the effective sample size (Kish "
        f"1965) is {weights.effective:,.1f}, and the largest weight is {largest:,.0f} times their "
        "mean. Check the column of weights"
    )
    return (FitWarning(WarningKind.UNEQUAL_WEIGHTS, sentence),)


def _withhold_errors(estimate: Estimate, links: WeakLinks | None) -> Estimate:
    """Return the estimate without standard errors that rest on few persons.

    Those of the items that few persons link; where these items are many, or few persons have
    nearly all of the weight, all of them, since the mean of all items is then little known too.
    """
    lost = np.isin(estimate.items, () if links is None else links.warning.items)
    if links is None or lost.mean() > MANY_LOST:
        lost[:] = True
    ladder = estimate.ladder
    steps = replace(ladder, se=np.where(lost[:, None], np.nan, ladder.se), covariance=None)
    se = np.where(lost, np.nan, estimate.se)
    return replace(estimate, se=se, covariance=None, ladder=steps)


def _displace_anchors(
    answers: Responses, request: FitRequest, plan: StepPlan, estimate: Estimate
) -> Estimate:
    """Return the estimate with displacements: of fits in which one anchor is free."""
    anchors = plan.anchors

    @cache
    def free(item: int) -> Estimate:
        others = None if anchors is None else anchors.select({*anchors.items} - {plan.items[item]})
        return fit_weighted(answers, replace(request, anchors=others), displaces=False).estimate

    def explain(item: int) -> str:
        if answers.sample is not None and answers.sample.replicates is not None:
            return "not computed with replicate weights"
        is_linked = free(item).estimated[item]
        return "" if is_linked else "without it nothing links it to the other anchors"

    def displace(item: int) -> tuple[float, float]:
        moved = free(item).difficulty[item] - estimate.difficulty[item]
        return float(moved), float(free(item).se[item])

    return add_displacements(estimate, plan, displace, explain)


@dataclass(frozen=True, eq=False)
class WeightedMaximum:
    """Thresholds of all items by conditional likelihood, and how persons move them.

    Attributes
    ----------
    threshold
        ``[item, step]``, NaN beyond an item's steps.
    value, moves
        The same node by node, and ``[person, node]``: the weight times the person's influence.
    sample
        Weights and design of the persons in the domain.
    """

    threshold: FloatArray
    value: FloatArray
    moves: FloatArray
    sample: SurveyDesign


def find_weighted_maximum(
    answers: Responses, model: str, keep_categories: bool = False
) -> WeightedMaximum:
    """Find the maximum of the weighted likelihood.

    Raises
    ------
    DisconnectedItems
        If the answers do not link all items.
    """
    request = FitRequest("conditional", model=model, keep_categories=keep_categories)
    weights, plan, (_, _, task) = _prepare(answers, request)
    fitted = task.fit(weights.weight)
    if len(task.nodes) < len(plan.item_of):
        raise DisconnectedItems("the answers do not link all items")
    _, threshold = plan.spread_items(task.nodes, fitted.value)
    return WeightedMaximum(threshold, fitted.value, fitted.moves, weights)


def _prepare(
    answers: Responses, request: FitRequest
) -> tuple[SurveyDesign, StepPlan, tuple[str, str, WeightedTask]]:
    """Return the design of the persons in the domain, the categories, and the task."""
    sample = answers.sample
    if sample is None or request.regularisation != 0:
        raise BadUsage("regularisation adds whole persons; with weights leave it out")
    chosen = sample.in_domain
    domain, weights = answers.select_persons(chosen), sample.take(chosen)
    about = request.model, request.anchors, request.keep_categories
    counts, plan = plan_steps(domain.count(), *about)
    if len(plan.item_of) > COVARIANCE_LIMIT:
        raise BadUsage(
            f"fits with weights keep the covariance of all thresholds and stop at "
            f"{COVARIANCE_LIMIT:,}, found {len(plan.item_of):,}; fit a part of the items"
        )
    method, choice, task = _choose_task(domain, counts, plan, request)
    links = find_weak_links(domain, plan, count_among(counts.as_nodes(), task.nodes))
    if links is not None:
        task = replace(task, warnings=(*task.warnings, links.warning), links=links)
    return weights, plan, (method, choice, task)


def tell_design(sample: SurveyDesign) -> str:
    """Say how standard errors follow from the design."""
    degrees = sample.degrees
    if sample.replicates is not None and sample.replication is not None:
        number = sample.replicates.shape[1]
        return REPLICATED.format(replicates=number, method=sample.replication.name, degrees=degrees)
    units = count_of(len(sample.stratum_of), "primary sampling unit")
    strata = len(np.unique(sample.stratum_of))
    return LINEARISED.format(
        units=units, strata="1 stratum" if strata == 1 else f"{strata} strata", degrees=degrees
    )


def _locate(
    plan: StepPlan, nodes: IndexArray, moves: FloatArray
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the items that have a location, and how persons move these and the thresholds."""
    locations = plan.locate(nodes)
    if locations is None:
        return nodes, moves, moves
    return locations.whole, locations.find(moves.T).T, locations.centre(moves.T).T


def _find_design_effect(
    estimate: Estimate, sample: SurveyDesign, items: IndexArray, moves: FloatArray
) -> FloatArray:
    """Return the variance of each location over that of a simple random sample."""
    simple = np.full(len(estimate.items), np.nan)
    simple[items] = (sample.take_as_simple(moves) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(simple > 0, estimate.se**2 / simple, np.nan))


def _choose_task(
    domain: Responses, counts: PairCounts, plan: StepPlan, request: FitRequest
) -> tuple[str, str, WeightedTask]:
    """Return the method's name, why it was chosen if it was, and the task."""
    store = recode_store(domain.store, plan.recoding)
    if request.method == "marginal":
        marginal = MarginalTask(plan, counts.as_nodes())
        patterns = plan.collect(domain, marginal.items)
        check_patterns(patterns, counts)
        fit = partial(_fit_marginal, marginal, patterns, store, request.ability)
        about = marginal.nodes, marginal.find_codes(), tuple(marginal.tell_links())
        return "marginal", "", WeightedTask(*about, fit)
    name, choice = request.method, ""
    if name in ("auto", "conditional"):
        task = ConditionalTask(plan, plan.link(counts) if plan.needs_links else None)
        fast = find_patterns(domain, task) if name == "auto" else task.collect(domain)
        if fast is not None:
            check_conditional_size(fast, max(plan.steps))
            fit = partial(_fit_conditional, task, fast, store)
            return "conditional", "", WeightedTask(task.nodes, task.status, task.warnings, fit)
        name, choice = "refined", take_refined(TOO_MUCH_WORK)
    chain = plan.link(counts)
    pairs = _WeightedPairs(PAIR_METHODS[name], plan, chain, store)
    return name, choice, WeightedTask(chain.linked, chain.status, chain.warnings, pairs.fit)


# -- pairs -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _WeightedPairs:
    """Methods that need pairs of answers."""

    method: Method
    plan: StepPlan
    chain: Chain
    store: AnswerStore

    @property
    def nodes(self) -> IndexArray:
        return self.chain.linked

    @cached_property
    def structure(self) -> Structure:
        return self.plan.build_structure(self.nodes)

    @cached_property
    def per_answer(self) -> FloatArray:
        """The weight that the method itself gives every person."""
        if self.method.weighting is None:
            return np.ones(self.store.n_persons)
        totals = self.store.person_totals()
        return self.method.weighting(*totals) / self.method.weighting.scale

    def fit(self, weight: FloatArray) -> WeightedFit:
        total = weight * self.per_answer
        # ``rates[i, j]``: the weights of persons with node i right and node j wrong.
        rates = np.zeros((len(self.nodes), len(self.nodes)))
        for start in range(0, len(total), PERSONS_AT_ONCE):
            span = slice(start, start + PERSONS_AT_ONCE)
            cells = self.store.nodes.rows(start, span.stop)[:, self.nodes]
            rates += ((cells == 1) * total[span, None]).T @ (cells == 0).astype(np.float64)
        item = self.structure.item
        rates[item[:, None] == item] = 0.0
        difficulty, solution = self.method.find_solution(rates, self.structure)
        inverse = self._invert(rates, difficulty)
        item_of = None if self.plan.is_binary else self.structure.item
        # Without a resistance nobody has leverage: the design corrects for small samples.
        plan = ScorePlan(
            difficulty, self.nodes, self.method.scoring(difficulty), np.zeros(len(difficulty)),
            item_of=item_of,
        )  # fmt: skip
        weights = np.stack([total, np.ones(len(total))])
        scores = score_persons(self.store.nodes, plan, weights)
        return WeightedFit(difficulty, np.asarray(scores @ inverse.T), solution)

    def _invert(self, rates: FloatArray, difficulty: FloatArray) -> FloatArray:
        """Return what turns scores into moves of the thresholds.

        The Laplacian of the spectral method is symmetric only if the model is exactly true; the
        census fit needs the derivative of the balance equations themselves. For a rating scale,
        which is a projection of the chain, the Laplacian stands in for it.
        """
        structure = self.structure
        if self.method is not PAIR_METHODS["spectral"] or structure.shares_steps:
            return structure.invert(self.method.laplacian(rates, difficulty))
        flow = rates * np.exp(difficulty - difficulty.max())[:, None]
        matrix = np.diag(flow.sum(axis=1)) - flow.T
        if structure.is_anchored:
            inverse = np.linalg.inv(structure.project_matrix(matrix))
            return structure.expand(np.asarray(inverse, dtype=np.float64))
        return np.asarray(np.linalg.pinv(matrix))


# -- likelihoods of whole persons --------------------------------------------------------------


def mark_reached(store: AnswerStore, items: IndexArray, steps: tuple[int, ...]) -> FloatArray:
    """Return ``[person, node]``: one where a person reached the step of an item, else zero."""
    cells = store.rows(0, store.n_persons)[:, items]
    number = np.array(steps)[items]
    columns = [cells[:, [i]] >= np.arange(1, n + 1) for i, n in enumerate(number)]
    return np.hstack(columns).astype(np.float64)


def _weigh_plan(plan: StepPlan, store: AnswerStore, weight: FloatArray) -> StepPlan:
    """Return the plan with sums of weights in the place of persons in each category."""
    return replace(plan, categories=weigh_categories(store, weight))


def _fit_conditional(
    task: ConditionalTask, patterns: Patterns, store: AnswerStore, weight: FloatArray
) -> WeightedFit:
    """Fit by conditional likelihood."""
    task = replace(task, plan=_weigh_plan(task.plan, store, weight))
    patterns = patterns.weigh(weight)
    fitted = task.maximise(patterns)
    expected = expect_entries(patterns, fitted.threshold)[:, fitted.structure.used]
    reached = mark_reached(store, task.items, task.plan.steps)
    scores = (expected[patterns.entry] - reached) * weight[:, None]
    return WeightedFit(fitted.node, scores @ fitted.covariance, fitted.solution)


def weigh_totals(threshold: FloatArray, patterns: Patterns) -> FloatArray:
    """Return ``[pattern, score]``: the logarithm of the sum over all ways to reach a score."""
    pattern = np.arange(len(patterns.indptr) - 1)
    answered = patterns.answered_by(pattern)
    points = np.full((len(pattern), int(patterns.score.max(initial=0)) + 1), -np.inf)
    points[:, 0] = 0.0
    for item, row in enumerate(_weigh_points(threshold)):
        points = np.where(answered[:, [item]], _add_points(points, row), points)
    return points


def _weigh_points(threshold: FloatArray) -> FloatArray:
    """Return ``[item, category]``: minus the sums of the thresholds up to a category."""
    weight = np.hstack([np.zeros((len(threshold), 1)), -np.cumsum(threshold, axis=1)])
    return np.where(np.isnan(weight), -np.inf, weight)


def describe_scores(threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Describe every score of persons who answered all items.

    Returns
    -------
    weight
        The logarithm of each score's weight, the sum over all ways to reach it.
    reached
        ``[score, node]``: the chance to reach a step, given the score.
    """
    items, used = len(threshold), np.isfinite(threshold)
    score = np.arange(used.sum() + 1)
    every = np.arange(items)
    entry = np.zeros_like(score)
    patterns = Patterns(np.array([0, items]), every, entry, score, entry + 1, score, items)
    weight = weigh_totals(threshold, patterns)[0]
    return weight, expect_entries(patterns, threshold)[:, used]


def _add_points(points: FloatArray, weight: FloatArray) -> FloatArray:
    """Add an item's points to those of others; logarithms."""
    total = points + weight[0]
    for category in range(1, min(len(weight), points.shape[1])):
        term = np.full_like(points, -np.inf)
        term[:, category:] = points[:, :-category] + weight[category]
        total = np.logaddexp(total, term)
    return np.asarray(total)


def _fit_marginal(
    task: MarginalTask, patterns: Patterns, store: AnswerStore, ability: str, weight: FloatArray
) -> WeightedFit:
    """Fit by marginal likelihood."""
    task = replace(task, plan=_weigh_plan(task.plan, store, weight))
    fitted = task.maximise(patterns.weigh(weight), ability)
    if fitted.influence is None:
        raise BadUsage(
            "with weights the abilities of 'marginal' are normal: linearised standard errors "
            "with an empirical distribution are not known here. Leave ability= out, or take "
            "method='conditional', which assumes nothing about abilities"
        )
    moves = fitted.influence(mark_reached(store, task.items, task.plan.steps))
    return WeightedFit(fitted.difficulty, moves * weight[:, None], fitted.solution)
