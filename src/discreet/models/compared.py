"""Rank objects from comparisons, without privacy.

In: comparisons or counts of wins. Out: :class:`Strengths` with standard errors. ``spectral`` is
rank centrality (the stationary vector of the chain from losers to winners, Negahban, Oh and Shah
2017, with counts for fractions), ``refined`` is the maximum of the Bradley-Terry likelihood: both
are the estimators of the Rasch model on another table of counts. The result is confidential:
nothing here protects the judges.
"""

from __future__ import annotations

import numpy as np

from discreet.answers.comparisons import Comparisons
from discreet.choices import PairMethod
from discreet.counts import ComparisonCounts
from discreet.errors import (
    DisconnectedItems,
    FitWarning,
    WarningKind,
    warn_of_dropped,
    warn_of_missing_errors,
)
from discreet.hints import check_choice_name
from discreet.models.connectivity import Chain, build_chain
from discreet.models.laplacian import Laplacian, invert
from discreet.models.methods import PAIR_METHODS, Method
from discreet.models.standard_errors import Uncertainty
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.models.weak_links import FEWEST, suggest_parts, warn_of_links
from discreet.results.estimate import Estimate, Solution
from discreet.results.ranking import STATUS_WORDS, Strengths, explain_left_out
from discreet.types import BoolArray, FloatArray, IndexArray

#: A judge without whom an object would hang in the air has leverage one; the correction for
#: small samples stops here.
LARGEST_LEVERAGE = 0.9

INDEPENDENT = (
    "standard errors take all comparisons as independent: counts do not say which ones are by "
    "the same judge"
)


def estimate_strengths(
    data: Comparisons | ComparisonCounts,
    *,
    method: PairMethod = "refined",
    regularisation: float = 0.0,
) -> Strengths:
    """Estimate the strength of every object; see :func:`discreet.rank_comparisons`."""
    check_choice_name("method", method, PAIR_METHODS)
    counts = data if isinstance(data, ComparisonCounts) else data.count()
    chain = _build_chain(counts, regularisation)
    chosen = PAIR_METHODS[method]
    strength, solution = chosen.solve(chain.rates)
    laplacian = chosen.laplacian(chain.rates, strength)
    if isinstance(data, ComparisonCounts):
        uncertainty = _independent_errors(chain, chosen, laplacian, strength)
    else:
        uncertainty = _judge_errors(data, chain, chosen, laplacian, strength)
    estimate = _assemble(counts, chain, method, strength, solution, uncertainty)
    warn_of_dropped(estimate.warnings)
    warn_of_missing_errors(estimate.warnings)
    return estimate


def _build_chain(counts: ComparisonCounts, regularisation: float) -> Chain:
    try:
        return build_chain(counts, regularisation=regularisation)
    except DisconnectedItems:
        raise DisconnectedItems(
            f"no two of the {len(counts.items)} objects are linked in both directions "
            f"({counts.judges} judges), so no strength is determined. Objects are linked when "
            "each has beaten the other, directly or through a circle of others; collect more "
            "comparisons, or ask for regularisation"
        ) from None


def _judge_errors(
    data: Comparisons, chain: Chain, method: Method, laplacian: Laplacian, strength: FloatArray
) -> Uncertainty:
    """Sandwich over judges: ``pinv(L) (sum over judges of s s') pinv(L)``.

    A comparison adds its residual to the loser's score and takes it from the winner's. As for
    persons (:mod:`discreet.models.standard_errors.sandwich`), a judge's score is divided by one
    minus the judge's leverage, because residuals at the estimate are smaller than at the truth.
    Comparisons of judges who hold weak links count as independent, with the model's variance.
    """
    from scipy.sparse import csr_array

    m = len(strength)
    if m > COVARIANCE_LIMIT:
        return _too_many(m)
    position = np.full(data.n_items, -1)
    position[chain.linked] = np.arange(m)
    winner, loser = position[data.winner], position[data.loser]
    inside = (winner >= 0) & (loser >= 0)
    winner, loser, judge = winner[inside], loser[inside], data.judge[inside]
    scoring = method.scoring(strength)
    residual = scoring.residual(strength[loser], strength[winner])
    turned = scoring.residual(strength[winner], strength[loser])
    inverse = invert(laplacian)
    spread = inverse.diagonal()
    apart = spread[winner] + spread[loser] - 2 * inverse[winner, loser]
    curvature = scoring.curvature(strength[loser], strength[winner])
    leverage = np.bincount(judge, weights=curvature * apart, minlength=data.n_judges)
    value = residual / (1 - np.minimum(leverage, LARGEST_LEVERAGE))[judge]
    few, warnings = _find_few(chain, judge, winner, loser)
    value = np.where(few, np.sqrt(curvature * (residual + turned)), value)
    row = np.where(few, data.n_judges + np.arange(len(judge)), judge)
    entries = np.concatenate([-value, value])
    cells = np.concatenate([row, row]), np.concatenate([winner, loser])
    scores = csr_array((entries, cells), shape=(data.n_judges + len(judge), m))
    products = np.asarray((scores.T @ scores).toarray())
    return _covariance(inverse @ products @ inverse, *warnings)


def _find_few(
    chain: Chain, judge: IndexArray, winner: IndexArray, loser: IndexArray
) -> tuple[BoolArray, tuple[FitWarning, ...]]:
    """Say which comparisons are by judges who hold a weak link, and warn of it."""
    m = len(chain.linked)
    parts = suggest_parts(chain.rates, np.arange(m), 1, m)  # a judge compares two objects once
    holders = [np.unique(judge[part[winner] != part[loser]]) for part in parts]
    weak = [number for number, some in enumerate(holders) if len(some) < FEWEST]
    if not weak:
        return np.zeros(len(judge), dtype=np.bool_), ()
    names = [chain.items[i] for i in chain.linked[parts[weak].any(axis=0)]]
    few = [holders[number] for number in weak]
    warning = warn_of_links(names, [len(some) for some in few], "object", "judge")
    return np.isin(judge, np.concatenate(few)), (warning,)


def _independent_errors(
    chain: Chain, method: Method, laplacian: Laplacian, strength: FloatArray
) -> Uncertainty:
    """Sandwich in which every comparison is a judge of its own, from counts alone."""
    m = len(strength)
    if m > COVARIANCE_LIMIT:
        return _too_many(m)
    residual = method.scoring(strength).residual(strength[:, None], strength[None, :])
    weight = np.asarray(chain.rates) * residual**2
    weight = weight + weight.T
    products = np.diag(weight.sum(axis=1)) - weight
    inverse = invert(laplacian)
    return _covariance(inverse @ products @ inverse, INDEPENDENT)


def _covariance(covariance: FloatArray, *notes: str) -> Uncertainty:
    covariance = (covariance + covariance.T) / 2
    return Uncertainty(np.sqrt(np.maximum(covariance.diagonal(), 0.0)), covariance, notes)


def _too_many(m: int) -> Uncertainty:
    sentence = (
        f"no standard errors: {m:,} objects, and a matrix between all of more than "
        f"{COVARIANCE_LIMIT:,} is not made. Compare a part of the objects, such as the strongest"
    )
    notice = FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence)
    return Uncertainty(np.full(m, np.nan), None, (notice,))


def _assemble(
    counts: ComparisonCounts,
    chain: Chain,
    method: str,
    strength: FloatArray,
    solution: Solution,
    uncertainty: Uncertainty,
) -> Strengths:
    notes = (*solution.notes, *uncertainty.notes)
    estimate = Estimate(
        items=counts.items,
        difficulty=chain.spread(strength),
        se=chain.spread(uncertainty.se),
        status=chain.status,
        method=method,
        solution=Solution(solution.solver, solution.iterations, solution.residual, notes),
        covariance=uncertainty.covariance,
        answers=np.array(counts.compared),
        right=np.array(counts.right),
        persons=counts.judges,
    )
    status = tuple(STATUS_WORDS[one] for one in chain.status)
    missing = [note for note in uncertainty.notes if isinstance(note, FitWarning)]
    return Strengths(estimate, (*explain_left_out(counts.items, status), *missing))
