"""Rank objects from comparisons, without privacy.

In: comparisons or counts of wins. Out: :class:`Strengths` with standard errors. ``spectral`` is
rank centrality (the stationary vector of the chain from losers to winners, Negahban, Oh and Shah
2017, with counts for fractions), ``refined`` is the maximum of the Bradley-Terry likelihood: both
are the estimators of the Rasch model on another table of counts. The result is confidential:
nothing here protects the judges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.answers.comparisons import Comparisons
from discreet.choices import PairMethod
from discreet.counts import ComparisonCounts
from discreet.errors import (
    BadUsage,
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
from discreet.models.standard_errors import PairContribution, Uncertainty
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.models.votes import Votes, VoteTerms, solve_votes
from discreet.models.weak_links import FEWEST, suggest_parts, warn_of_links
from discreet.results.estimate import Estimate, Solution, explain_left_out
from discreet.results.ranking import REASONS, STATUS_WORDS, Effects, Strengths
from discreet.types import BoolArray, FloatArray, IndexArray

#: A judge without whom an object would hang in the air has leverage one; the correction for
#: small samples stops here.
LARGEST_LEVERAGE = 0.9

#: Notes of a solution.
OWN_JUDGES = (
    "the votes name no judges, so each counts as a judge of its own: standard errors take all "
    "votes as independent, and are too small where a person gave several"
)
DAVIDSON = "ties count by Davidson's model; the effect 'tie' is the logarithm of its parameter"
SHRUNK = (
    "a tie counts as half a win for each: strengths are nearer to each other than those of "
    "Bradley and Terry's model, which dropping ties estimates"
)
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
    if isinstance(data, Comparisons):
        data = data.drop_ties() if data.ties == "drop" else data
        if data.covariates or data.tied.any():
            return _warn(_estimate_votes(data, method, regularisation))
    counts = data if isinstance(data, ComparisonCounts) else data.count()
    chain = _build_chain(counts, regularisation)
    chosen = PAIR_METHODS[method]
    strength, solution = chosen.solve(chain.rates)
    laplacian = chosen.laplacian(chain.rates, strength)
    if isinstance(data, ComparisonCounts):
        uncertainty = _independent_errors(chain, chosen, laplacian, strength)
    elif len(strength) > COVARIANCE_LIMIT:
        uncertainty = _too_many(len(strength))
    else:
        votes = _link_votes(data, chain)
        terms = _take_terms(votes, chosen.scoring(strength), strength)
        covariance, links = _judge_errors(votes, chain, terms, invert(laplacian))
        uncertainty = _covariance(covariance, *links, *_say_unit(data))
    return _warn(_assemble(counts, chain, method, strength, solution, uncertainty))


def _warn(strengths: Strengths) -> Strengths:
    warn_of_dropped(strengths.warnings)
    warn_of_missing_errors(strengths.warnings)
    return strengths


def _estimate_votes(data: Comparisons, method: str, regularisation: float) -> Strengths:
    """Fit votes with ties that count, or with covariates, vote by vote."""
    if method != "refined" or regularisation:
        raise BadUsage(
            "covariates and ties that count need the likelihood of every vote: leave method= and "
            "regularisation= out, or drop ties and covariates"
        )
    counts = data.count()
    chain = _build_chain(_halve_ties(data, counts), 0.0)
    start, _ = PAIR_METHODS[method].solve(chain.rates)
    m = len(start)
    if m > COVARIANCE_LIMIT:
        raise BadUsage(
            f"covariates and ties that count need a matrix between all objects, which is not made "
            f"of more than {COVARIANCE_LIMIT:,}, found {m:,}. Compare a part of the objects"
        )
    votes = _link_votes(data, chain)
    scale = np.sqrt(np.maximum((votes.covariate**2).mean(axis=0), 1e-300))
    votes = replace(votes, covariate=votes.covariate / scale)
    parameter, inverse, done, size = solve_votes(votes, data.covariates, start)
    covariance, links = _judge_errors(votes, chain, votes.evaluate(parameter), inverse)
    scales = np.append(scale, np.ones(int(votes.has_tau)))
    effects = Effects(
        (*data.covariates, *(["tie"] if votes.has_tau else [])),
        parameter[m:] / scales,
        np.sqrt(np.maximum(covariance.diagonal()[m:], 0.0)) / scales,
    )
    notes = (*links, *_say_unit(data))
    if votes.tied.any():
        notes = (*notes, DAVIDSON if votes.has_tau else SHRUNK)
    solution = Solution("Newton on the likelihood of all votes", done, size)
    uncertainty = _covariance(covariance[:m, :m], *notes)
    found = _assemble(counts, chain, method, parameter[:m], solution, uncertainty)
    return replace(found, effects=effects)


def _halve_ties(data: Comparisons, counts: ComparisonCounts) -> ComparisonCounts:
    """Return twice the counts, with a tie as one win of each: what links objects."""
    ties, sides = np.zeros_like(counts.wins), (data.winner[data.tied], data.loser[data.tied])
    np.add.at(ties, sides, 1)
    ties = ties + ties.T
    tied = ties.sum(axis=1)
    compared, won = 2 * counts.compared + 2 * tied, 2 * counts.won + tied
    return ComparisonCounts(counts.items, 2 * counts.wins + ties, compared, won, counts.judges)


def _link_votes(data: Comparisons, chain: Chain) -> Votes:
    """Return the votes between linked objects."""
    position = np.full(data.n_items, -1)
    position[chain.linked] = np.arange(len(chain.linked))
    winner, loser = position[data.winner], position[data.loser]
    inside = (winner >= 0) & (loser >= 0)
    tied, covariate = data.tied[inside], data.covariate[inside]
    rows = winner[inside], loser[inside], tied, data.judge[inside], covariate
    return Votes(*rows, len(chain.linked), data.ties == "davidson" and bool(tied.any()))


def _take_terms(votes: Votes, scoring: PairContribution, strength: FloatArray) -> VoteTerms:
    """Return what votes add to the score of a method that needs counts only."""
    above, below = strength[votes.winner], strength[votes.loser]
    residual, turned = scoring.residual(below, above), scoring.residual(above, below)
    curvature, nothing = scoring.curvature(below, above), np.zeros(1)
    variance = curvature * (residual + turned)
    return VoteTerms(residual, curvature, variance, nothing, nothing, nothing, 0.0)


def _say_unit(data: Comparisons) -> tuple[str, ...]:
    return (OWN_JUDGES,) if data.unit == "vote" else ()


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
    votes: Votes, chain: Chain, terms: VoteTerms, inverse: FloatArray
) -> tuple[FloatArray, tuple[FitWarning, ...]]:
    """Sandwich over judges: ``pinv(L) (sum over judges of s s') pinv(L)``.

    A vote adds its residual to the winner's score and takes it from the loser's. As for persons
    (:mod:`discreet.models.standard_errors.sandwich`), a judge's score is divided by one minus the
    judge's leverage, because residuals at the estimate are smaller than at the truth. Votes of
    judges who hold weak links count as independent, with the model's variance.
    """
    from scipy.sparse import csr_array

    m, n, winner, loser = votes.n_objects, len(votes.judge), votes.winner, votes.loser
    last = m + votes.covariate.shape[1]
    among = inverse[m:last, m:last]
    spread, crossed = inverse.diagonal(), inverse[:m, m:last]
    apart = spread[winner] + spread[loser] - 2 * inverse[winner, loser]
    for number, column in enumerate(votes.covariate.T):
        beside = crossed[winner, number] - crossed[loser, number]
        apart = apart + column * (2 * beside + votes.covariate @ among[number])
    n_judges = int(votes.judge.max(initial=-1)) + 1
    leverage = np.bincount(votes.judge, weights=terms.weight * apart, minlength=n_judges)
    shrinking = (1 - np.minimum(leverage, LARGEST_LEVERAGE))[votes.judge]
    few, warnings = _find_few(chain, votes.judge, winner, loser)
    value = np.where(few, np.sqrt(terms.variance), terms.residual / shrinking)
    row = np.where(few, n_judges + np.arange(n), votes.judge)
    columns = [*votes.covariate.T * value]
    if votes.has_tau:
        columns.append(terms.tie_residual / shrinking)
    entries = np.concatenate([value, -value, *columns])
    effects = [np.full(n, number) for number in range(m, m + len(columns))]
    cells = np.tile(row, 2 + len(columns)), np.concatenate([winner, loser, *effects])
    scores = csr_array((entries, cells), shape=(n_judges + n, m + len(columns)))
    products = np.asarray((scores.T @ scores).toarray())
    return inverse @ products @ inverse, warnings


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
    left_out = explain_left_out(("strength", "object"), counts.items, status, REASONS)
    missing = [note for note in uncertainty.notes if isinstance(note, FitWarning)]
    return Strengths(estimate, (*left_out, *missing))
