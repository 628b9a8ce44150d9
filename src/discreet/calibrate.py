"""Calibrate: from answers or counts to an estimate of every item's difficulty.

In: answers, a file of them, or pair counts. Out: an :class:`~discreet.estimate.Estimate` in
which every item has a number or a status that says why not. Adding a method is one line in
``PAIR_METHODS`` or ``ANSWER_METHODS``. The estimate is confidential: nothing here protects the
persons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.chain import Chain, PairTable, build_chain
from discreet.counts import PairCounts
from discreet.engines import count_pairs, open_source
from discreet.errors import BadUsage
from discreet.estimate import Estimate
from discreet.estimators.laplacian import Laplacian
from discreet.estimators.modelbased import simulate_uncertainty
from discreet.estimators.refined import PersonWeight, RefinedScoring, curvature, solve_refined
from discreet.estimators.sandwich import Scoring, Uncertainty, measure_uncertainty
from discreet.estimators.spectral import SpectralScoring, balance, solve_spectral
from discreet.responses.store import AnswerStore, SparseRows
from discreet.stationary import Solution

if TYPE_CHECKING:
    from discreet.responses import Responses

__all__ = ["ANSWER_METHODS", "METHODS", "PAIR_METHODS", "AnswerMethod", "Method", "fit"]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

SPARSE_ITEMS = 2000
"""Items above which pair counts may be held sparse; a dense matrix is 32 MB here."""
SPARSE_FILL = 0.15
"""Pairs of answers per cell of the matrix below which sparse counts are smaller and faster."""


@dataclass(frozen=True)
class Method:
    """An estimator: how to solve it, its Laplacian and its scores for standard errors."""

    solve: Callable[[Any], tuple[FloatArray, Solution]]
    laplacian: Callable[[Any, FloatArray], Laplacian]
    scoring: Callable[[FloatArray], Scoring]
    weighting: PersonWeight | None


PAIR_METHODS: dict[str, Method] = {
    "refined": Method(solve_refined, curvature, lambda _: RefinedScoring(), PersonWeight()),
    "spectral": Method(solve_spectral, balance, lambda b: SpectralScoring(float(b.max())), None),
}


class AnswerMethod(Protocol):
    """An estimator that needs the answers themselves and has its own standard errors."""

    def __call__(self, responses: Responses, *, engine: str, ability: str) -> Estimate: ...


def _conditional(responses: Responses, *, engine: str, ability: str) -> Estimate:
    if ability != "normal":
        raise BadUsage(
            "the method 'conditional' assumes nothing about abilities; leave ability out"
        )
    from discreet.estimators.conditional import fit_conditional

    return fit_conditional(responses, engine=engine)


def _marginal(responses: Responses, *, engine: str, ability: str) -> Estimate:
    from discreet.estimators.marginal import fit_marginal

    return fit_marginal(responses, ability=ability, engine=engine)


ANSWER_METHODS: dict[str, AnswerMethod] = {"conditional": _conditional, "marginal": _marginal}

METHODS: dict[str, Method | AnswerMethod] = {**PAIR_METHODS, **ANSWER_METHODS}
"""Every method by name."""


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Pair counts as a CSR array, for many items of which few are answered together."""

    items: tuple[str, ...]
    right_wrong: Any
    answers: Int64Array
    right: Int64Array
    persons: int


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
    _check_method(method)
    source = open_source(data, engine)
    if method in ANSWER_METHODS:
        found = _fit_answers(source, method, engine, regularisation, ability)
        return _warn_if_routed(found, source) if standard_errors else found
    if ability != "normal":
        raise BadUsage(f"ability is an option of the method 'marginal' only, found {method!r}")
    chosen = PAIR_METHODS[method]
    if isinstance(source, PairCounts):
        return _fit_counts(source, method, regularisation, standard_errors=standard_errors)
    weighting = None if _is_complete(source.store) else chosen.weighting
    counts = _count(source, engine, weighting)
    unit = 1.0 if weighting is None else _mean_weight(weighting, counts)
    chain = build_chain(counts, regularisation=regularisation * unit)
    difficulty, solution = chosen.solve(chain.rates)
    uncertainty = _unknown(chain, "standard errors were not asked for")
    if standard_errors:
        uncertainty = measure_uncertainty(
            source.store,
            chosen.laplacian(chain.rates, difficulty),
            difficulty=difficulty,
            kept=chain.kept,
            scoring=chosen.scoring(difficulty),
            weighting=weighting,
        )
    found = _assemble(counts, chain, method, difficulty, solution, uncertainty, regularisation)
    return _warn_if_routed(found, source) if standard_errors else found


def _warn_if_routed(estimate: Estimate, source: Responses) -> Estimate:
    """Add a warning where earlier answers seem to have chosen later items."""
    if estimate.method == "marginal" or _is_complete(source.store):
        return estimate
    from discreet.estimators.routing import look_for_routing

    kept = np.flatnonzero(estimate.estimated)
    routing = look_for_routing(source.store, kept, estimate.difficulty[kept])
    if not routing.looks_routed:
        return estimate
    return replace(estimate, warnings=(*estimate.warnings, *routing.warnings))


def _fit_answers(
    source: Any, name: str, engine: str, regularisation: float, ability: str
) -> Estimate:
    """Fit by a likelihood of whole persons, which pair counts do not hold."""
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
    if regularisation != 0:
        raise BadUsage(
            f"regularisation belongs to the methods {', '.join(PAIR_METHODS)}; {name!r} has none"
        )
    return ANSWER_METHODS[name](source, engine=engine, ability=ability)


def _fit_counts(
    counts: PairCounts, name: str, regularisation: float, *, standard_errors: bool
) -> Estimate:
    """Fit counts without the answers behind them: no weights, no sandwich."""
    method = PAIR_METHODS[name]
    chain = build_chain(counts, regularisation=regularisation)
    difficulty, solution = method.solve(chain.rates)
    if method.weighting is not None and not _counts_complete(counts):
        note = "from counts alone: persons are not weighted by their number of answers"
        solution = Solution(solution.solver, solution.iterations, solution.residual, (note,))
    if not standard_errors:
        uncertainty = _unknown(chain, "standard errors were not asked for")
    elif _counts_complete(counts) and len(chain.kept) == len(counts.items):
        laplacian = method.laplacian(chain.rates, difficulty)
        scoring = method.scoring(difficulty)
        uncertainty = simulate_uncertainty(counts, laplacian, difficulty, scoring)
    else:
        uncertainty = _unknown(
            chain,
            "no standard errors: pair counts do not say which items were answered by the same "
            "person, so they need the answers themselves (or counts of complete answers)",
        )
    return _assemble(counts, chain, name, difficulty, solution, uncertainty, regularisation)


def _assemble(
    counts: PairTable,
    chain: Chain,
    method: str,
    difficulty: FloatArray,
    solution: Solution,
    uncertainty: Uncertainty,
    regularisation: float,
) -> Estimate:
    warnings = list(chain.warnings)
    if regularisation > 0:
        warnings.append(
            f"regularised with {regularisation:g} in both directions of every compared pair: "
            "difficulties are pulled together, most of all those of items with few answers"
        )
    if np.isnan(uncertainty.se).any() and uncertainty.notes[0].startswith("no standard errors"):
        warnings.extend(uncertainty.notes)
    return Estimate(
        items=counts.items,
        difficulty=chain.spread(difficulty),
        se=chain.spread(uncertainty.se),
        status=chain.status,
        method=method,
        solution=Solution(
            solution.solver,
            solution.iterations,
            solution.residual,
            (*solution.notes, *uncertainty.notes),
        ),
        covariance=uncertainty.covariance,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=tuple(warnings),
    )


def _unknown(chain: Chain, reason: str) -> Uncertainty:
    return Uncertainty(np.full(len(chain.kept), np.nan), None, (reason,))


def _check_method(name: str) -> None:
    if name not in METHODS:
        raise BadUsage(f"there is no method called {name!r}; choose one of: {', '.join(METHODS)}")


def _is_complete(store: AnswerStore) -> bool:
    """Whether everybody answered everything, so that a weight per person changes nothing."""
    return store.n_answers == store.n_persons * store.n_items


def _counts_complete(counts: PairCounts) -> bool:
    return bool((counts.answers == counts.persons).all())


def _count(source: Responses, engine: str, weighting: PersonWeight | None) -> PairTable:
    store = source.store
    if isinstance(store, SparseRows) and store.n_items > SPARSE_ITEMS:
        answered, right = store.person_totals()
        if (right * (answered - right)).sum() < SPARSE_FILL * store.n_items**2:
            return _count_sparse(source, store, weighting)
    return count_pairs(source, engine=engine, weighting=weighting)


def _count_sparse(
    source: Responses, store: SparseRows, weighting: PersonWeight | None
) -> SparseCounts:
    """Count pairs into a CSR array: the exact integers of the engines, without the zeros."""
    from scipy.sparse import csr_array

    answered, right = store.person_totals()
    weights = np.ones_like(answered) if weighting is None else weighting(answered, right)
    # 32-bit positions halve what the sparse arrays take.
    person = np.repeat(np.arange(store.n_persons, dtype=np.int32), answered)
    item = store.item.astype(np.int32)
    shape = (store.n_items, store.n_persons)
    good = store.right
    rights = csr_array((weights[person[good]], (item[good], person[good])), shape)
    wrongs = csr_array(
        (np.ones(int((~good).sum()), dtype=np.int64), (item[~good], person[~good])), shape
    )
    totals = store.item_totals()
    return SparseCounts(source.items, (rights @ wrongs.T).tocsr(), *totals, source.n_persons)


def _mean_weight(weighting: PersonWeight, counts: PairTable) -> float:
    """Weight of a person with the mean number of answers: the unit of regularisation."""
    return weighting.scale * counts.persons / max(int(counts.answers.sum()), 1)
