"""Calibrate: from answers or counts to an estimate of every item's difficulty.

In: answers, a file of them, or pair counts. Out: an :class:`~discreet.Estimate` in
which every item has a number or a status that says why not. The methods are listed in
:mod:`discreet.models.methods`. The estimate is confidential: nothing here protects the
persons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.protocol import Answers, Job
from discreet.answers.responses import Responses
from discreet.choices import Ability, Method, Model
from discreet.counts import PairCounts, name_weighting
from discreet.counts.folds import FoldCounts, PersonWeight, Tally, explain_folds
from discreet.counts.matrix import DENSE_FITTING, FITTING, Recoding, planning
from discreet.errors import (
    LOG,
    BadUsage,
    FitWarning,
    OutOfReach,
    WarningKind,
    warn_of_dropped,
    warn_of_missing_errors,
)
from discreet.models.anchors import Released, accept_anchors, add_displacements, explain_untied
from discreet.models.categories import RATING_SCALE, call_categories
from discreet.models.conditional import GroupPatterns
from discreet.models.connectivity import Chain, ItemFacts, warn_of_shape
from discreet.models.methods import (
    ANSWER_METHODS,
    AUTO,
    METHOD_WORDS,
    PAIR_METHODS,
    FitRequest,
    check_method_name,
    choose_keeping,
    choose_routed,
    fit_by_likelihood,
)
from discreet.models.methods import Method as PairEstimator
from discreet.models.standard_errors import Uncertainty
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT, Sandwich, plan_sandwich
from discreet.models.step_plan import StepPlan, plan_steps
from discreet.models.structure import Structure
from discreet.models.weak_links import find_weak_links
from discreet.results.estimate import Estimate, Solution
from discreet.text import count_of
from discreet.types import FloatArray

OF_LINKING = "Where few persons link parts of the items, the model says how their answers vary."

#: Items up to which the answer methods may build a matrix between all items (3.2 GB).
MATRIX_ITEMS = 20_000

#: Folds of persons who can be gone through only once.
FOLDS = 32

NEEDS_PERSONS = (
    "the method {!r} needs the answers of all persons here ('refined' and 'spectral' do not)"
)


NO_FOLDS = (
    "pair counts do not say which items were answered by the same person, so they need the answers "
    "themselves, counts with folds for this method (count_pairs(..., folds=32) or discreet table "
    "counts --folds 32; for 'spectral' with the weighting 'none'), or counts of complete answers "
    f"to at most {COVARIANCE_LIMIT:,} right/wrong items"
)
NO_FOLDS_LEFT = (
    "the rows of a query are read only once, and {}. Write the rows to a file and fit that: "
    "COPY (SELECT ...) TO 'answers.parquet'"
)


def calibrate(
    data: Answers | PairCounts,
    *,
    method: Method = "auto",
    model: Model = "auto",
    standard_errors: bool = True,
    regularisation: float = 0.0,
    ability: Ability = "normal",
    anchors: object = None,
    keep_categories: bool = False,
) -> Estimate:
    """Estimate the difficulty of every item, of answers or counts that are open.

    What can be asked for is said at :func:`discreet.fit`. Answers with a sampling design are
    weighted.

    Examples
    --------
    >>> from discreet.answers.responses import Responses
    >>> answers = Responses.from_array(np.array([[1, 0], [1, 0], [0, 1], [1, 1]]))
    >>> estimate = calibrate(answers)
    >>> float(np.round(estimate.difficulty[1] - estimate.difficulty[0], 6))
    0.693147
    """
    check_method_name(method, ability)
    request = FitRequest(method, standard_errors, regularisation, ability, model)
    request = choose_keeping(request, anchors is not None) if keep_categories else request
    if isinstance(data, Responses) and data.routing is not None:
        request = choose_routed(request)
    if anchors is not None:
        data, request = _hold(data, anchors, request)
    estimate = _fit(data, request)
    numbers = int(estimate.estimated.sum()), len(estimate.items), estimate.persons
    LOG.info("fitted %d of %d items, %d persons, method %s", *numbers, estimate.method)
    warn_of_dropped(estimate.warnings)
    return estimate if model != "auto" else replace(estimate, choice=_tell_model(estimate))


def _hold(
    data: Answers | PairCounts, anchors: object, request: FitRequest
) -> tuple[Responses, FitRequest]:
    """Return answers in the categories of the anchors, and a request with the anchors."""
    if isinstance(data, PairCounts):
        raise BadUsage(
            "anchors need the answers themselves, found pair counts; fit the answers with anchors, "
            "or fit the counts and link them to the known scale (link_calibrations)"
        )
    if not isinstance(data, Responses):
        raise OutOfReach(
            "anchors look at single persons and need the answers in memory; give the file, frame "
            "or query that they come from, or a part of it"
        )
    held = accept_anchors(anchors, data.items)
    return held.match(data), replace(request, anchors=held)


def _tell_model(estimate: Estimate) -> str:
    """Say why this model, where it was left to the library, before why this method."""
    if estimate.model == "rasch":
        return estimate.choice
    steps = count_of(max(estimate.steps), "step")
    return f"The model is {estimate.model}: answers have up to {steps}. {estimate.choice}".rstrip()


def _fit(data: Answers | PairCounts, request: FitRequest) -> Estimate:
    """Fit counts, or answers wherever they are."""
    with planning(DENSE_FITTING if request.model == RATING_SCALE else FITTING):
        if isinstance(data, PairCounts):
            return _fit_counts(data, _decide(request, data))
        if isinstance(data, Responses) and data.sample is not None:
            from discreet.models.weighted import fit_weighted  # loads SciPy

            return fit_weighted(data, request).estimate
        request = _decide(request, data)
        way = _fit_pairs if data.lasts else _fit_once
        estimate = (_fit_answers if request.method in ANSWER_METHODS else way)(data, request)
        warn_of_missing_errors(estimate.warnings)
        return call_categories(estimate, data)


def _decide(request: FitRequest, data: Answers | PairCounts) -> FitRequest:
    """Put a method in the place of "auto": refined, after which conditional may be tried."""
    if request.method != AUTO:
        return request
    from discreet.models.conditional.automatic import find_obstacle, take_refined

    request = replace(request, method="refined")
    obstacle = find_obstacle(data, request.regularisation)
    if obstacle:
        return replace(request, choice=take_refined(obstacle))
    return replace(request, undecided=True)


def _fit_pairs(answers: Answers, request: FitRequest) -> Estimate:
    """Fit by pairs of answers, whose persons are there to be weighted and scored.

    Two passes over persons at most: one counts, one sums what standard errors need and looks for
    routing.
    """
    method = PAIR_METHODS[request.method]
    counts, weighting = _count_weighted(answers, method.weighting)
    counts.check_room()
    counts, plan = plan_steps(counts, request.model, request.anchors)
    chain = plan.link(counts, request.regularisation * _unit(weighting, counts))
    nodes = counts.as_nodes()
    facts = ItemFacts(nodes.items, nodes.answers, nodes.right, nodes.persons)
    del counts, nodes  # with many items the pairs are most of the memory, and the chain has them
    structure = plan.build_structure(chain.linked)
    difficulty, solution = method.find_solution(chain.rates, structure)
    links = find_weak_links(answers, plan, chain, weighting)
    if request.undecided:
        from discreet.models.conditional.automatic import attempt_conditional

        exact, choice = attempt_conditional(answers, plan, chain, difficulty, links)
        request = replace(request, choice=choice)
        if exact is not None:
            return _finish_answers(answers, exact, request)
    routing: tuple[FitWarning, ...] = ()
    uncertainty = _unknown(chain, "standard errors were not asked for")
    if request.standard_errors:
        sandwich = plan_sandwich(
            method.laplacian(chain.rates, difficulty),
            difficulty=difficulty,
            columns=chain.linked,
            scoring=method.scoring(difficulty),
            weighting=weighting,
            answers=facts.answers,
            n_persons=facts.persons,
            structure=structure,
            locations=plan.locate(chain.linked),
            links=links,
            is_complete=plan.is_complete,
        )
        sandwich = replace(sandwich, job=plan.wrap(sandwich.job))
        uncertainty, routing = _go_through(answers, plan, sandwich, chain, difficulty)
    if links is not None:
        routing = (links.warning, *routing)
        if uncertainty.se_method:
            uncertainty = replace(uncertainty, se_method=f"{uncertainty.se_method} {OF_LINKING}")
    estimate = _assemble(facts, chain, request, difficulty, solution, uncertainty, routing)
    estimate = plan.fold(estimate, uncertainty.locations)
    if plan.held is None:
        return estimate
    release = _PairRelease(method, structure, chain, difficulty, uncertainty, plan.persons)
    return add_displacements(estimate, plan, release, explain_untied(plan, chain))


@dataclass(frozen=True, eq=False)
class _PairRelease:
    """Frees one anchor of a fit by pairs."""

    method: PairEstimator
    structure: Structure
    chain: Chain
    difficulty: FloatArray
    uncertainty: Uncertainty
    persons: int

    def __call__(self, item: int) -> tuple[float, float]:
        """Return how far the item's location moves, and its standard error."""
        method, rates = self.method, self.chain.rates
        scoring, released = method.scoring(self.difficulty), self.structure.release(item)

        def gradient(parameter: FloatArray) -> FloatArray:
            return released.project(method.score(rates, scoring, released.spread(parameter)))

        products = self.uncertainty.products
        if products is not None:
            # At the solution the scores of free items add up to zero; those of anchors do not, and
            # their variance is about their mean.
            pull = method.score(rates, scoring, self.difficulty) / np.sqrt(max(self.persons, 1))
            products = products - np.outer(pull, pull)
        moved, se = Released(
            released,
            item,
            self.difficulty,
            method.laplacian(rates, self.difficulty).to_dense(),
            gradient,
            lambda: method.solve_within(rates, released)[0],
            products,
        ).displace()
        return moved, se if products is not None else float("nan")


def _fit_once(answers: Answers, request: FitRequest) -> Estimate:
    """Fit answers that come only once: one pass counts, and standard errors come from folds."""
    tally = Tally(FOLDS, PAIR_METHODS[request.method].weighting)
    counts = answers.count(tally=tally if request.standard_errors else None)
    return _fit_counts(counts, request, NO_FOLDS_LEFT.format(explain_folds(FOLDS, 0, counts.steps)))


def _count_weighted(
    answers: Answers, weighting: PersonWeight | None
) -> tuple[PairCounts, PersonWeight | None]:
    """Count in one pass; where everybody answered everything, a weight changes nothing."""
    if isinstance(answers, Responses) and set(answers.steps) == {1}:
        is_complete = answers.n_answers == answers.n_persons * answers.n_items
        weighting = None if is_complete else weighting
    counts = answers.count(weighting)
    weight = _common_weight(counts, weighting)
    return (counts, weighting) if weight == 1 else (counts.divide(weight), None)


def _go_through(
    answers: Answers, plan: StepPlan, sandwich: Sandwich, chain: Chain, difficulty: FloatArray
) -> tuple[Uncertainty, tuple[FitWarning, ...]]:
    """Make the second pass over persons; return warnings about routing too."""
    jobs: list[Job[Any]] = []
    if not plan.is_complete:
        from discreet.models.routing import LookForRouting, may_be_routed  # loads SciPy

        if may_be_routed(int(plan.categories.sum()), plan.persons * len(plan.items)):
            items, thresholds = plan.spread_items(chain.linked, difficulty)
            jobs.append(plan.wrap(LookForRouting(items, thresholds)))
    try:
        answers.admit(sandwich.job)
    except OutOfReach as reason:
        routings = answers.reduce_all(jobs)
        notice = FitWarning(WarningKind.NO_STANDARD_ERRORS, f"no standard errors: {reason}")
        uncertainty = _unknown(chain, notice)
    else:
        products, *routings = answers.reduce_all([sandwich.job, *jobs])
        uncertainty = sandwich.finish(products)
    return uncertainty, routings[0].warnings if routings else ()


def _fit_answers(answers: Answers, request: FitRequest) -> Estimate:
    """Fit by a likelihood of whole persons, which pair counts do not hold."""
    name = request.method
    if not answers.lasts:
        raise _needs_answers(name)
    answers.admit(GroupPatterns(np.zeros(0, np.intp), needs=NEEDS_PERSONS.format(name)))
    if request.regularisation != 0:
        raise BadUsage(
            f"regularisation belongs to the methods {', '.join(PAIR_METHODS)}; {name!r} has none"
        )
    m = len(answers.items)
    if m > MATRIX_ITEMS:
        raise BadUsage(
            f"the method {name!r} works with a matrix between all items, found {m:,} items "
            f"({8 * m * m / 1e9:,.0f} GB; the limit is {MATRIX_ITEMS:,} items); use 'refined' or "
            "'spectral', whose memory follows the pairs that were compared"
        )
    return _finish_answers(answers, fit_by_likelihood(answers, request), request)


def _finish_answers(answers: Answers, estimate: Estimate, request: FitRequest) -> Estimate:
    """Say why this method, and warn of routing where it matters."""
    warnings = (*estimate.warnings, *warn_of_shape(estimate.items, answers.n_persons))
    se_method = f"{METHOD_WORDS[estimate.method].errors}."
    estimate = replace(estimate, choice=request.choice, warnings=warnings, se_method=se_method)
    complete = answers.n_answers == answers.n_persons * len(answers.items)
    is_stated = isinstance(answers, Responses) and answers.routing is not None
    unasked = is_stated or estimate.method == "marginal" or not request.standard_errors
    if complete or unasked:
        return estimate
    from discreet.models.routing import look_for_routing  # loads SciPy

    items, steps = np.flatnonzero(estimate.estimated), tuple(answers.steps)
    recoding = Recoding(steps, estimate.ladder.kept) if estimate.steps != steps else None
    routing = look_for_routing(answers, items, estimate.thresholds[items], recoding=recoding)
    return replace(estimate, warnings=(*estimate.warnings, *routing.warnings))


def _needs_answers(name: str) -> BadUsage:
    return BadUsage(
        f"the method {name!r} needs the answers themselves, found pair counts, which do not "
        "say which answers belong to the same person; use 'refined' or 'spectral'"
    )


def _fit_counts(counts: PairCounts, request: FitRequest, advice: str = NO_FOLDS) -> Estimate:
    """Fit counts without the answers behind them: standard errors come from their folds.

    ``advice`` says what to do where there are none.
    """
    if request.method in ANSWER_METHODS:
        raise _needs_answers(request.method)
    method = PAIR_METHODS[request.method]
    counts.check_room()
    folds = _usable_folds(counts, method.weighting)
    if folds is not None:
        # The integers of a fit of the answers, and so its difficulties to the last bit.
        total = folds.right_wrong.sum(axis=0)
        counts = replace(counts, right_wrong=total, weighting=folds.weighting)
    weighted = counts.weighting == name_weighting(method.weighting)
    weight = _common_weight(counts, method.weighting) if weighted else 1
    counts, plan = plan_steps(counts.divide(weight), request.model)
    folds = folds and counts.folds
    unit = _unit(method.weighting, counts) / weight if weighted else 1.0
    chain = plan.link(counts, request.regularisation * unit)
    structure = plan.build_structure(chain.linked)
    difficulty, solution = method.find_solution(chain.rates, structure)
    complete = plan.is_binary and _is_complete(counts)
    if not (weighted or complete):
        note = f"from counts alone: persons are not weighted as {request.method!r} does"
        solution = replace(solution, notes=(note,))
    if not request.standard_errors:
        uncertainty = _unknown(chain, "standard errors were not asked for")
    elif folds is not None:
        from discreet.models.standard_errors.folds import leave_folds_out

        uncertainty = leave_folds_out(folds, chain, method, difficulty, plan, weight=weight)
    elif complete and len(chain.linked) == len(counts.items) <= COVARIANCE_LIMIT:
        from discreet.models.standard_errors.complete import simulate_uncertainty

        laplacian = method.laplacian(chain.rates, difficulty)
        scoring = method.scoring(difficulty)
        uncertainty = simulate_uncertainty(counts, laplacian, difficulty, scoring)
    else:
        notice = FitWarning(WarningKind.NO_STANDARD_ERRORS, f"no standard errors: {advice}")
        uncertainty = _unknown(chain, notice)
    facts = ItemFacts(chain.items, counts.answers, counts.right, counts.persons)
    repeated = _warn_of_repeated(counts)
    estimate = _assemble(facts, chain, request, difficulty, solution, uncertainty, repeated)
    return plan.fold(estimate, uncertainty.locations)


def _usable_folds(counts: PairCounts, weighting: PersonWeight | None) -> FoldCounts | None:
    """Return the folds, if there are some and they are weighted as the method weights persons."""
    if counts.folds is None or counts.folds.weighting != name_weighting(weighting):
        return None
    return counts.folds


def _assemble(
    facts: ItemFacts,
    chain: Chain,
    request: FitRequest,
    difficulty: FloatArray,
    solution: Solution,
    uncertainty: Uncertainty,
    further: tuple[FitWarning, ...],
) -> Estimate:
    warnings = [*chain.warnings, *warn_of_shape(facts.items, facts.persons)]
    amount = request.regularisation
    if amount > 0:
        sentence = (
            f"regularised with {amount:g} in both directions of every compared pair: "
            "difficulties are pulled together, most of all those of items with few answers"
        )
        warnings.append(FitWarning(WarningKind.REGULARISED, sentence))
    warnings += [note for note in uncertainty.notes if isinstance(note, FitWarning)]
    return Estimate(
        items=facts.items,
        difficulty=chain.spread(difficulty),
        se=chain.spread(uncertainty.se),
        status=chain.status,
        method=request.method,
        solution=replace(solution, notes=(*solution.notes, *uncertainty.notes)),
        covariance=uncertainty.covariance,
        answers=facts.answers,
        right=facts.right,
        persons=facts.persons,
        warnings=(*warnings, *further),
        choice=request.choice,
        degrees=uncertainty.degrees,
        se_method=uncertainty.se_method,
    )


def _unknown(chain: Chain, reason: str) -> Uncertainty:
    return Uncertainty(np.full(len(chain.linked), np.nan), None, (reason,))


def _is_complete(counts: PairCounts) -> bool:
    """Whether everybody answered everything."""
    return bool((counts.answers == counts.persons).all())


def _common_weight(counts: PairCounts, weighting: PersonWeight | None) -> int:
    """Return the weight of everybody where all answered everything, else 1."""
    if weighting is None or not _is_complete(counts):
        return 1
    m = np.array([len(counts.items)])
    return int(weighting(m, m)[0])


def _unit(weighting: PersonWeight | None, counts: PairCounts) -> float:
    """Weight of a person with the mean number of answers: the unit of regularisation."""
    if weighting is None:
        return 1.0
    return weighting.scale * counts.persons / max(int(counts.answers.sum()), 1)


def _warn_of_repeated(counts: PairCounts) -> tuple[FitWarning, ...]:
    """Warn where counts that were added have persons in common."""
    if not counts.repeated:
        return ()
    sentence = (
        f"about {counts.repeated:,} of the {counts.persons:,} persons were counted before, in "
        "another of the counts that were added: pairs of their answers here and there are not "
        "counted, and answers that are in both count twice. Count such answers together"
    )
    return (FitWarning(WarningKind.COUNTED_TWICE, sentence),)
