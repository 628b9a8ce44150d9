"""Fits of counts: c right of n samples in each cell, and scores in [0, 1].

In: ``[unit, item]`` sums of answers and their number; answers of one unit are compared. Out: an
:class:`~discreet.Estimate`. Given a unit, the samples of two items are independent, so that the
share right of one times the share wrong of the other has the mean ``p_i (1 - p_j)``, and the ratio
of both ways round is ``exp(d_j - d_i)``, whatever the unit: the pair methods hold for counts, and
for scores whose mean follows the logistic curve. Nothing else of the model is used. Conditional
likelihood is that of every sample as an item, those of one item with one difficulty. Standard
errors come from the sums of the scores of units, or of clusters of units, so that they hold where
an item differs by unit, however many samples there are. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.repeated import SampleCounts
from discreet.choices import CountMethod
from discreet.counts.matrix import PairMatrix
from discreet.errors import BadUsage, FitWarning, WarningKind
from discreet.models.conditional import group_counts
from discreet.models.conditional.automatic import (
    TOO_MUCH_WORK,
    TOOK_CONDITIONAL,
    WORK_SECONDS,
    take_refined,
)
from discreet.models.conditional.batches import conditional_work, expect_entries
from discreet.models.conditional.estimator import StepPatterns, maximise_conditional
from discreet.models.connectivity import Chain, build_chain
from discreet.models.laplacian import invert
from discreet.models.methods import AUTO, PAIR_METHODS, Method
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.models.weak_links import FEWEST, suggest_parts, warn_of_links
from discreet.results.estimate import Estimate, Solution
from discreet.text import count_of
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: With fewer clusters standard errors, and so ranks, are rough.
FEW_CLUSTERS = 10

#: Values of the linked items, by how much every unit moves them, ``[unit, item]``, and how they
#: were found.
UnitFit = tuple[FloatArray, FloatArray, Solution]


@dataclass(frozen=True, eq=False)
class PairSums:
    """The pairs of some counts."""

    items: tuple[str, ...]
    right_wrong: PairMatrix
    answers: Int64Array
    right: FloatArray
    persons: int


def fit_counts(counts: SampleCounts, method_name: CountMethod = "refined") -> Estimate:
    """Estimate difficulties of items from counts.

    Parameters
    ----------
    counts
        The counts; pair methods weigh units as they weigh a person with so many answers.
    method_name
        ``"refined"``, ``"spectral"``, ``"conditional"``, or ``"auto"`` for the last where that is
        little work.
    """
    if len(counts.items) > COVARIANCE_LIMIT:
        raise BadUsage(
            f"standard errors need a matrix between all that is compared, which is not made of "
            f"more than {COVARIANCE_LIMIT:,}, found {len(counts.items):,}. Fit a part of them"
        )
    method = PAIR_METHODS.get(method_name, PAIR_METHODS["refined"])
    weight = np.ones(len(counts.units))
    if method.weighting is not None:
        weight /= np.maximum(counts.tried.sum(axis=1), 1)
    rates = (weight[:, None] * counts.success).T @ counts.failure
    np.fill_diagonal(rates, 0.0)
    answers, persons = counts.tried.sum(axis=0), len(counts.units)
    sums = PairSums(counts.items, rates, answers, counts.success.sum(axis=0), persons)
    chain, choice, fitted = build_chain(sums), "", None
    if method_name not in PAIR_METHODS:
        fitted, choice = _fit_given_totals(counts.select(chain.linked), method_name)
        method_name = "conditional" if fitted else "refined"
    value, moves, solution = fitted or _fit_pairs(counts, weight, method, chain)
    covariance, degrees = sum_clusters(moves, counts.cluster)
    lost, warnings = _find_weak(counts, chain, weight)
    se = np.where(lost, np.nan, np.sqrt(covariance.diagonal()))
    return Estimate(
        items=counts.items,
        difficulty=chain.spread(value),
        se=chain.spread(se),
        status=chain.status,
        method=method_name,
        solution=solution,
        covariance=None if lost.any() else covariance,
        answers=answers,
        right=sums.right.astype(np.int64) if counts.is_whole else None,
        persons=persons,
        degrees=degrees,
        choice=choice,
        se_method=tell_clusters(counts, degrees + 1),
        reading=counts.reading,
        warnings=(*chain.warnings, *warnings, *_doubt_errors(counts.nouns, degrees + 1)),
    )


def _doubt_errors(nouns: tuple[str, str], clusters: int) -> list[FitWarning]:
    """Warn of few clusters."""
    if clusters >= FEW_CLUSTERS:
        return []
    sentence = (
        f"only {count_of(clusters, nouns[0])}, or clusters of them, may differ from each other: "
        f"standard errors and ranks are rough with fewer than {FEW_CLUSTERS}. Collect more"
    )
    return [FitWarning(WarningKind.ROUGH, sentence, ())]


def _fit_given_totals(counts: SampleCounts, method_name: str) -> tuple[UnitFit | None, str]:
    """Fit by conditional likelihood, unless a method shall be chosen and it is much work.

    Given how many answers of a unit are right, c of n samples of an item have the probability of n
    items of one difficulty: C(n, c) exp(-c d), over the sum for all counts with this total.
    """
    if not counts.is_whole and method_name == AUTO:
        return None, take_refined("scores between 0 and 1 have no number of right ones")
    if not counts.is_whole:
        raise BadUsage(
            "the method 'conditional' is given how many answers are right, and scores between 0 "
            "and 1 have no such number. Take method='refined' or 'spectral', which need only that "
            "mean scores follow the logistic curve"
        )
    right = counts.success.astype(np.int64)
    patterns = group_counts(counts.tried, right)
    if method_name == AUTO and conditional_work(patterns) > WORK_SECONDS:
        return None, take_refined(TOO_MUCH_WORK)
    single = np.ones(len(counts.items), dtype=np.int64)
    table = StepPatterns(patterns, single, right.sum(axis=0)[:, None], counts.items)
    fitted = maximise_conditional(table)
    expected = expect_entries(patterns, fitted.threshold)[patterns.entry, :, 0]
    moves = np.asarray((expected - right) @ fitted.covariance)
    choice = TOOK_CONDITIONAL if method_name == AUTO else ""
    return (fitted.node, moves, fitted.solution), choice


def _fit_pairs(counts: SampleCounts, weight: FloatArray, method: Method, chain: Chain) -> UnitFit:
    """Fit by a pair method."""
    value, solution = method.solve(chain.rates)
    residual = method.scoring(value).residual(value[:, None], value[None, :])
    linked = counts.select(chain.linked)
    success, failure = linked.success, linked.failure
    scores = failure * (success @ residual) - success * (failure @ residual.T)
    inverse = invert(method.laplacian(chain.rates, value))
    return value, np.asarray((weight[:, None] * scores) @ inverse), solution


def tell_clusters(counts: SampleCounts, clusters: int) -> str:
    """Say over what standard errors add up."""
    units = count_of(len(counts.units), counts.nouns[0])
    within = "" if clusters == len(counts.units) else f" in {count_of(clusters, 'cluster')}"
    return f"Standard errors add up over {units}{within}, whatever the samples of one share."


def sum_clusters(moves: FloatArray, cluster: IndexArray) -> tuple[FloatArray, int]:
    """Return the covariance of estimates that clusters of units move, and its degrees of freedom.

    The units of a cluster may depend on each other in any way.
    """
    number, own = np.unique(cluster, return_inverse=True)
    total = np.zeros((len(number), moves.shape[1]))
    np.add.at(total, own, moves)
    degrees = max(len(number) - 1, 1)
    return np.asarray(total.T @ total) * (len(number) / degrees), degrees


def _find_weak(
    counts: SampleCounts, chain: Chain, weight: FloatArray
) -> tuple[BoolArray, tuple[FitWarning, ...]]:
    """Say which objects few units link to the others, so that their errors are not known."""
    tried, linked = counts.tried[:, chain.linked], np.arange(len(chain.linked))
    total, most = tried.sum(axis=1), int(tried.max(initial=1))
    pair, whole = most**2 * weight.max(initial=0.0), most * (weight * total).max(initial=0.0)
    parts = suggest_parts(chain.rates, linked, float(pair), float(whole))
    inside = [tried[:, part].sum(axis=1) for part in parts]
    holders = [np.unique(counts.cluster[(own > 0) & (own < total)]) for own in inside]
    clusters = len(np.unique(counts.cluster))
    weak = [n for n, some in enumerate(holders) if len(some) < min(FEWEST, clusters)]
    if not weak:
        return np.zeros(len(linked), dtype=np.bool_), ()
    lost = np.asarray(parts[weak].any(axis=0))
    names = [chain.items[i] for i in chain.linked[lost]]
    unit, item = counts.nouns
    noun = unit if clusters == len(total) else "cluster"
    return lost, (warn_of_links(names, [len(holders[n]) for n in weak], item, noun),)
