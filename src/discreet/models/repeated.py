"""Fits of counts: c right of n samples in each cell, and scores in [0, 1].

In: ``[unit, object]`` sums of answers and their number; objects get a measure, and answers of one
unit are compared. Out: an :class:`~discreet.Estimate`. Given a unit, the samples of two objects are
independent, so that the share right of one times the share wrong of the other has the mean ``p_i
(1 - p_j)``, and the ratio of both ways round is ``exp(d_j - d_i)``, whatever the unit: the pair
methods hold for counts, and for scores whose mean follows the logistic curve. Nothing else of the
model is used. Standard errors come from the sums of the scores of units, or of clusters of units,
so that they hold where an object differs by unit, however many samples there are. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.repeated import SampleCounts
from discreet.counts.matrix import PairMatrix
from discreet.errors import BadUsage, FitWarning
from discreet.models.connectivity import Chain, build_chain
from discreet.models.laplacian import invert
from discreet.models.methods import PAIR_METHODS, Method
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.models.weak_links import FEWEST, suggest_parts, warn_of_links
from discreet.results.estimate import Estimate
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array


@dataclass(frozen=True, eq=False)
class PairSums:
    """The pairs of some counts."""

    items: tuple[str, ...]
    right_wrong: PairMatrix
    answers: Int64Array
    right: FloatArray
    persons: int


def fit_counts(counts: SampleCounts, method_name: str = "refined") -> Estimate:
    """Estimate difficulties of objects from counts by a pair method.

    Parameters
    ----------
    counts
        The counts; units with the weight that the method gives a person with so many answers.
    method_name
        ``"refined"`` or ``"spectral"``.
    """
    if len(counts.items) > COVARIANCE_LIMIT:
        raise BadUsage(
            f"standard errors need a matrix between all that is compared, which is not made of "
            f"more than {COVARIANCE_LIMIT:,}, found {len(counts.items):,}. Fit a part of them"
        )
    method = PAIR_METHODS[method_name]
    weight = np.ones(len(counts.units))
    if method.weighting is not None:
        weight /= np.maximum(counts.tried.sum(axis=1), 1)
    rates = (weight[:, None] * counts.success).T @ counts.failure
    np.fill_diagonal(rates, 0.0)
    answers, persons = counts.tried.sum(axis=0), len(counts.units)
    sums = PairSums(counts.items, rates, answers, counts.success.sum(axis=0), persons)
    chain = build_chain(sums)
    value, solution = method.solve(chain.rates)
    moves = _find_moves(counts, weight, method, chain, value)
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
        persons=persons,
        degrees=degrees,
        warnings=(*chain.warnings, *warnings),
    )


def _find_moves(
    counts: SampleCounts, weight: FloatArray, method: Method, chain: Chain, value: FloatArray
) -> FloatArray:
    """Return by how much every unit moves the estimates, ``[unit, object]``."""
    success, failure = counts.success[:, chain.linked], counts.failure[:, chain.linked]
    residual = method.scoring(value).residual(value[:, None], value[None, :])
    scores = failure * (success @ residual) - success * (failure @ residual.T)
    inverse = invert(method.laplacian(chain.rates, value))
    return np.asarray((weight[:, None] * scores) @ inverse)


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
    few, noun = [len(holders[n]) for n in weak], "question" if clusters == len(total) else "cluster"
    return lost, (warn_of_links(names, few, "model", noun),)
