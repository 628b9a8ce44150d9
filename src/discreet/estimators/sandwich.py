"""Standard errors: the one float sum over persons.

In: answers, difficulties, the estimator's scores and its Laplacian. Out: standard errors and,
for up to a few thousand items, the covariance. Confidential side: it reads every person. Its
contract is agreement to 1e-12 between stores and chunk sizes, not equality of bits.

With ``s_l`` the score of person l and ``L`` the Laplacian of the estimator, the covariance is
``pinv(L) (sum_l s_l s_l') pinv(L)``. Each score is divided by one minus the person's leverage
(see :func:`_correction`), because residuals at the estimate are smaller than at the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.estimators.laplacian import Laplacian, factorise, invert
from discreet.responses.store import AnswerStore, SparseRows

__all__ = [
    "COVARIANCE_LIMIT",
    "PersonScores",
    "Scoring",
    "Uncertainty",
    "measure_uncertainty",
    "score_persons",
]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]

COVARIANCE_LIMIT = 2000
"""Items up to which the full covariance is kept (32 MB); above, standard errors only."""
CHUNK_CELLS = 2_000_000
"""Cells of a chunk of persons: 16 MB an array."""
EXACT_PERSONS = 5000
"""Persons up to which large problems are solved exactly, one column a person."""
DRAWS = 1000
"""Multiplier draws above that: standard errors then have a relative error of 1/sqrt(2 * DRAWS),
2.2%."""
MAX_LEVERAGE = 0.5
"""A person who is nearly the only link of an item would otherwise get an unbounded factor."""


class Scoring(Protocol):
    """An estimator's contribution of one pair: first item right, second wrong."""

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...
    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Standard errors of the kept items, their covariance where it is small enough, notes."""

    se: FloatArray
    covariance: FloatArray | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PersonScores:
    """What is needed to score persons.

    Attributes
    ----------
    difficulty, kept
        Difficulties of the kept items and their positions among all items.
    scoring
        The estimator's pair contributions.
    weights
        One weight per person, as used in the counts; None for one each.
    resistance
        Variance of each difference under ``pinv(L)``: a matrix, or one number per item whose
        pairwise sums stand in for it.
    """

    difficulty: FloatArray
    kept: IndexArray
    scoring: Scoring
    weights: FloatArray | None
    resistance: FloatArray


def measure_uncertainty(
    store: AnswerStore,
    laplacian: Laplacian,
    *,
    difficulty: FloatArray,
    kept: IndexArray,
    scoring: Scoring,
    weights: FloatArray | None,
) -> Uncertainty:
    """Compute standard errors with the sandwich formula, one pass over persons."""
    m = len(difficulty)
    if m > COVARIANCE_LIMIT:
        # In a well linked graph pinv(L) is close to its diagonal part; the factor makes the
        # leverages add up to m - 1, as the exact ones do.
        approximate = (m - 1) / m / laplacian.diagonal
        plan = PersonScores(difficulty, kept, scoring, weights, approximate)
        return _measure_large(store, laplacian, plan)
    inverse = invert(laplacian)
    spread = inverse.diagonal()
    resistance = spread[:, None] + spread[None, :] - 2 * inverse
    products = _sum_products(store, PersonScores(difficulty, kept, scoring, weights, resistance))
    covariance = inverse @ products @ inverse
    covariance = (covariance + covariance.T) / 2
    return Uncertainty(np.sqrt(np.maximum(covariance.diagonal(), 0.0)), covariance)


def score_persons(store: AnswerStore, plan: PersonScores) -> Any:
    """Return the corrected scores of all persons, ``[person, kept item]``, as a CSR array."""
    from scipy.sparse import csr_array, vstack

    if isinstance(store, SparseRows):
        return _score_rows(store, plan)
    chunks = [csr_array(chunk) for chunk in _score_chunks(store, plan)]
    return vstack(chunks, format="csr") if chunks else csr_array((0, len(plan.kept)))


def _sum_products(store: AnswerStore, plan: PersonScores) -> FloatArray:
    m = len(plan.kept)
    if isinstance(store, SparseRows):
        scores = _score_rows(store, plan)
        return np.asarray((scores.T @ scores).toarray())
    total = np.zeros((m, m))
    for scores in _score_chunks(store, plan):
        total += scores.T @ scores
    return total


def _measure_large(store: AnswerStore, laplacian: Laplacian, plan: PersonScores) -> Uncertainty:
    """Solve for persons (or random mixtures of them) instead of forming a covariance."""
    scores = score_persons(store, plan)
    note = f"no covariance above {COVARIANCE_LIMIT} items: standard errors only"
    columns = scores
    if scores.shape[0] > EXACT_PERSONS:
        mixing = np.random.default_rng(0).standard_normal((DRAWS, scores.shape[0]))
        columns = (scores.T @ mixing.T).T / np.sqrt(DRAWS)
        note += f", from {DRAWS} multiplier draws (relative error 2%)"
    factor = factorise(laplacian)
    variance = np.zeros(len(plan.kept))
    size = max(1, 4 * CHUNK_CELLS // len(plan.kept))
    for start in range(0, columns.shape[0], size):
        block = columns[start : start + size]
        dense = block if isinstance(block, np.ndarray) else block.toarray()
        variance += (factor.solve(dense.T) ** 2).sum(axis=1)
    return Uncertainty(np.sqrt(variance), None, (note,))


def _score_chunks(store: AnswerStore, plan: PersonScores) -> Any:
    """Yield dense scores of a chunk of persons after the other."""
    b = plan.difficulty
    surprise = np.ascontiguousarray(plan.scoring.residual(b[:, None], b[None, :]))
    pull = plan.scoring.curvature(b[:, None], b[None, :]) * _resistance_table(plan.resistance)
    everything = len(plan.kept) == store.n_items
    size = max(64, CHUNK_CELLS // max(store.n_items, 1))
    for start in range(0, store.n_persons, size):
        cells = store.rows(start, start + size)
        cells = cells if everything else cells[:, plan.kept]
        right, wrong = (cells == 1).astype(np.float64), (cells == 0).astype(np.float64)
        scores = right * (wrong @ surprise.T) - wrong * (right @ surprise)
        trace = ((right @ pull) * wrong).sum(axis=1)
        weights = 1.0 if plan.weights is None else plan.weights[start : start + len(cells)]
        answered = (cells >= 0).sum(axis=1)
        scores *= (weights * _correction(weights * trace, answered))[:, None]
        yield scores


def _score_rows(store: SparseRows, plan: PersonScores) -> Any:
    """Score persons held as sparse rows, all persons with as many answers together."""
    from scipy.sparse import csr_array

    indptr, item, right = _restrict_rows(store, plan.kept)
    values = np.zeros(len(item))
    answered = np.diff(indptr)
    for length in np.unique(answered[answered > 1]):
        same = np.flatnonzero(answered == length)
        size = max(1, CHUNK_CELLS // int(length) ** 2)
        for start in range(0, len(same), size):
            who = same[start : start + size]
            cell = indptr[who, None] + np.arange(length)
            weights = None if plan.weights is None else plan.weights[who]
            values[cell] = _score_group(item[cell], right[cell], weights, plan)
    return csr_array((values, item, indptr), shape=(len(answered), len(plan.kept)))


def _score_group(
    item: IndexArray, right: npt.NDArray[np.bool_], weights: FloatArray | None, plan: PersonScores
) -> FloatArray:
    """Scores of persons with the same number of answers, ``[person, answer]``."""
    b = plan.difficulty[item]
    first, second = b[:, :, None], b[:, None, :]
    discordant = right[:, :, None] & ~right[:, None, :]
    surprise = np.where(discordant, plan.scoring.residual(first, second), 0.0)
    scores = surprise.sum(axis=2) - surprise.sum(axis=1)
    if plan.resistance.ndim == 1:
        one = plan.resistance[item]
        resistance = one[:, :, None] + one[:, None, :]
    else:
        resistance = plan.resistance[item[:, :, None], item[:, None, :]]
    pull = np.where(discordant, plan.scoring.curvature(first, second) * resistance, 0.0)
    factor = 1.0 if weights is None else weights
    answered = np.full(len(item), item.shape[1])
    correction = _correction(factor * pull.sum(axis=(1, 2)), answered)
    return np.asarray(scores * (factor * correction)[:, None])


def _restrict_rows(
    store: SparseRows, kept: IndexArray
) -> tuple[Int64Array, IndexArray, npt.NDArray[np.bool_]]:
    """Rows with the kept items only, renumbered."""
    place = np.full(store.n_items, -1, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    item = place[store.item]
    inside = item >= 0
    running = np.concatenate([[0], np.cumsum(inside)])
    indptr = running[store.indptr].astype(np.int64)
    return indptr, item[inside], store.right[inside]


def _resistance_table(resistance: FloatArray) -> FloatArray:
    if resistance.ndim == 2:
        return resistance
    return resistance[:, None] + resistance[None, :]


def _correction(trace: FloatArray, answered: Int64Array) -> FloatArray:
    """Return one over (1 - leverage), the small-sample correction of a person's score.

    The trace of a person's share of the Laplacian times ``pinv(L)``, spread over the
    ``answered - 1`` directions the person informs, says how much the estimate bends towards
    this person. Dividing by one minus it approximates leaving the person out (a jackknife).
    """
    leverage = trace / np.maximum(answered - 1, 1)
    return np.asarray(1.0 / (1.0 - np.minimum(leverage, MAX_LEVERAGE)))
