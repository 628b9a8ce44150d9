"""Calibrate: from answers or counts to an estimate of every item's difficulty.

In: answers, a file of them, or pair counts. Out: an :class:`~discreet.Estimate` in
which every item has a number or a status that says why not. The methods are listed in
:mod:`discreet.models.methods`. The estimate is confidential: nothing here protects the
persons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.answers.opening import count_pairs, open_source
from discreet.counts.table import PairCounts, name_weighting
from discreet.errors import BadUsage
from discreet.models.connection import Chain, build_chain
from discreet.models.methods import ANSWER_METHODS, METHODS, PAIR_METHODS
from discreet.models.refined import PersonWeight
from discreet.models.uncertainty import (
    COVARIANCE_LIMIT,
    Uncertainty,
    measure_uncertainty,
    simulate_uncertainty,
)
from discreet.results.estimate import Estimate, Solution
from discreet.results.warnings import Kind, Notice
from discreet.store.planes import AnswerStore
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.answers.responses import Responses


MATRIX_ITEMS = 20_000
"""Items up to which the answer methods may build a matrix between all items (3.2 GB)."""


@dataclass(frozen=True)
class _Request:
    """What the caller asked for."""

    method: str
    engine: str
    standard_errors: bool
    regularisation: float
    ability: str


def fit(
    data: Responses | PairCounts | npt.NDArray[Any] | str | PathLike[str],
    *,
    method: str = "refined",
    engine: str = "auto",
    standard_errors: bool = True,
    regularisation: float = 0.0,
    ability: str = "normal",
) -> Estimate:
    """Estimate the difficulty of every item.

    Parameters
    ----------
    data
        Answers (:class:`Responses`, an array ``[person, item]`` with NaN or -1 for missing,
        or the path of a file), or :class:`PairCounts`.
    method
        ``"refined"`` (pairwise conditional likelihood), ``"spectral"`` (the paper's Algorithm
        1), ``"conditional"`` (exact conditional likelihood: about as precise, and the one that
        other programs report) or ``"marginal"`` (for adaptive and routed tests, where the
        others are biased).
    engine
        Which engine counts the pairs; the numbers do not depend on it.
    standard_errors
        Whether to make the second pass over persons that standard errors need. It also looks
        for signs that the test was routed by the answers, and warns.
    regularisation
        Added to both directions of every compared pair, in persons. The default, none, leaves
        items without a number where the answers do not determine one. Pair methods only.
    ability
        What ``"marginal"`` assumes about the abilities: ``"normal"`` or ``"empirical"``.

    Returns
    -------
    Estimate
        Difficulties in logits with mean zero, standard errors, a status for every item, and
        warnings about every item that was left out.

    Raises
    ------
    DisconnectedItems
        If fewer than two items are linked by the answers. That includes a single item: a
        difficulty is relative to other items.
    NotConverged
        If a solver cannot vouch for its answer.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> estimate = fit(answers)
    >>> float(np.round(estimate.difficulty[1] - estimate.difficulty[0], 6))
    0.693147
    """
    _check_method(method, ability)
    request = _Request(method, engine, standard_errors, regularisation, ability)
    source = open_source(data, engine)
    try:
        return _fit_source(source, request)
    finally:
        # What was opened here is closed here: a server keeps a transaction for it until then.
        if source is not data and hasattr(source, "close"):
            source.close()


def _fit_source(source: Any, request: _Request) -> Estimate:
    if request.method in ANSWER_METHODS:
        found = _fit_answers(source, request)
    elif isinstance(source, PairCounts):
        return _fit_counts(source, request)
    else:
        found = _fit_pairs(source, request)
    return _warn_if_routed(found, source) if request.standard_errors else found


def _fit_pairs(source: Any, request: _Request) -> Estimate:
    """Fit by pairs of answers, whose persons are there to be weighted and scored."""
    method = PAIR_METHODS[request.method]
    weighting = None if _is_complete(source.store) else method.weighting
    counts = count_pairs(source, engine=request.engine, weighting=weighting)
    chain = build_chain(counts, regularisation=request.regularisation * _unit(weighting, counts))
    facts = _Facts(counts.items, counts.answers, counts.right, counts.persons)
    del counts  # with many items the pairs are most of the memory, and the chain has them
    difficulty, solution = method.solve(chain.rates)
    if not request.standard_errors:
        uncertainty = _unknown(chain, "standard errors were not asked for")
    else:
        uncertainty = measure_uncertainty(
            source.store,
            method.laplacian(chain.rates, difficulty),
            difficulty=difficulty,
            kept=chain.kept,
            scoring=method.scoring(difficulty),
            weighting=weighting,
        )
    return _assemble(facts, chain, request, difficulty, solution, uncertainty)


def _warn_if_routed(estimate: Estimate, source: Responses) -> Estimate:
    """Add a warning where earlier answers seem to have chosen later items."""
    if estimate.method == "marginal" or _is_complete(source.store):
        return estimate
    from discreet.models.routing import look_for_routing

    kept = np.flatnonzero(estimate.estimated)
    routing = look_for_routing(source.store, kept, estimate.difficulty[kept])
    if not routing.looks_routed:
        return estimate
    return replace(estimate, warnings=(*estimate.warnings, *routing.warnings))


def _fit_answers(source: Any, request: _Request) -> Estimate:
    """Fit by a likelihood of whole persons, which pair counts do not hold."""
    name = request.method
    if isinstance(source, PairCounts):
        raise BadUsage(
            f"the method {name!r} needs the answers themselves, found pair counts, which do not "
            "say which answers belong to the same person; use 'refined' or 'spectral'"
        )
    if not hasattr(source.store, "rows"):
        raise BadUsage(
            f"the method {name!r} needs the answers of all persons here, found answers that stay "
            "where they are; use 'refined' or 'spectral', or read the answers into memory"
        )
    if request.regularisation != 0:
        raise BadUsage(
            f"regularisation belongs to the methods {', '.join(PAIR_METHODS)}; {name!r} has none"
        )
    m = len(source.items)
    if m > MATRIX_ITEMS:
        raise BadUsage(
            f"the method {name!r} works with a matrix between all items, found {m:,} items "
            f"({8 * m * m / 1e9:,.0f} GB; the limit is {MATRIX_ITEMS:,} items); use 'refined' or "
            "'spectral', whose memory follows the pairs that were compared"
        )
    return ANSWER_METHODS[name](source, engine=request.engine, ability=request.ability)


def _fit_counts(counts: PairCounts, request: _Request) -> Estimate:
    """Fit counts without the answers behind them: no sandwich."""
    method = PAIR_METHODS[request.method]
    weighted = counts.weighting == name_weighting(method.weighting)
    unit = _unit(method.weighting, counts) if weighted else 1.0
    chain = build_chain(counts, regularisation=request.regularisation * unit)
    difficulty, solution = method.solve(chain.rates)
    complete = bool((counts.answers == counts.persons).all())
    if not (weighted or complete):
        note = f"from counts alone: persons are not weighted as {request.method!r} does"
        solution = replace(solution, notes=(note,))
    if not request.standard_errors:
        uncertainty = _unknown(chain, "standard errors were not asked for")
    elif complete and len(chain.kept) == len(counts.items) <= COVARIANCE_LIMIT:
        laplacian = method.laplacian(chain.rates, difficulty)
        scoring = method.scoring(difficulty)
        uncertainty = simulate_uncertainty(counts, laplacian, difficulty, scoring)
    else:
        reason = (
            "no standard errors: pair counts do not say which items were answered by the same "
            "person, so they need the answers themselves (or counts of complete answers to at "
            f"most {COVARIANCE_LIMIT} items)"
        )
        uncertainty = _unknown(chain, Notice(Kind.NO_STANDARD_ERRORS, reason))
    facts = _Facts(counts.items, counts.answers, counts.right, counts.persons)
    return _assemble(facts, chain, request, difficulty, solution, uncertainty)


@dataclass(frozen=True, eq=False)
class _Facts:
    """What an estimate says about the counts behind it."""

    items: tuple[str, ...]
    answers: Int64Array
    right: Int64Array
    persons: int


def _assemble(
    facts: _Facts,
    chain: Chain,
    request: _Request,
    difficulty: FloatArray,
    solution: Solution,
    uncertainty: Uncertainty,
) -> Estimate:
    warnings = list(chain.warnings)
    amount = request.regularisation
    if amount > 0:
        sentence = (
            f"regularised with {amount:g} in both directions of every compared pair: "
            "difficulties are pulled together, most of all those of items with few answers"
        )
        warnings.append(Notice(Kind.REGULARISED, sentence))
    warnings += [note for note in uncertainty.notes if isinstance(note, Notice)]
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
        warnings=tuple(warnings),
    )


def _unknown(chain: Chain, reason: str) -> Uncertainty:
    return Uncertainty(np.full(len(chain.kept), np.nan), None, (reason,))


def _check_method(name: str, ability: str) -> None:
    if name not in METHODS:
        raise BadUsage(f"there is no method called {name!r}; choose one of: {', '.join(METHODS)}")
    if ability != "normal" and name in PAIR_METHODS:
        raise BadUsage(f"ability is an option of the method 'marginal' only, found {name!r}")


def _is_complete(store: AnswerStore) -> bool:
    """Whether everybody answered everything, so that a weight per person changes nothing."""
    return store.n_answers == store.n_persons * store.n_items


def _unit(weighting: PersonWeight | None, counts: PairCounts) -> float:
    """Weight of a person with the mean number of answers: the unit of regularisation."""
    if weighting is None:
        return 1.0
    return weighting.scale * counts.persons / max(int(counts.answers.sum()), 1)
