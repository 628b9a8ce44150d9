"""Standard errors: the one float sum over persons.

In: answers, difficulties, the estimator's scores and its Laplacian. Out: standard errors and,
for up to a few thousand items, the covariance. Confidential side: it reads every person. Its
contract is agreement to 1e-12 between stores and chunk sizes, not equality of bits.

With ``s_l`` the score of person l and ``L`` the Laplacian of the estimator, the covariance is
``pinv(L) (sum_l s_l s_l') pinv(L)``. Each score is divided by one minus the person's leverage,
because residuals at the estimate are smaller than at the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.engines.memory import Weighting
from discreet.errors import NotConverged
from discreet.estimators.blas import one_blas_thread, threads_for
from discreet.estimators.laplacian import Laplacian, factorise, factorise_roughly, invert, solve
from discreet.estimators.scores import (
    PersonScores,
    Scoring,
    chunk_words,
    score_persons,
    score_planes,
    weigh_plan,
)
from discreet.responses.store import AnswerStore, BitPlanes
from discreet.responses.threads import run_tasks, thread_count

__all__ = ["COVARIANCE_LIMIT", "Scoring", "Uncertainty", "measure_uncertainty", "sum_products"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

COVARIANCE_LIMIT = 2000
"""Items up to which the full covariance is kept (32 MB); above, standard errors only."""
EXACT_PERSONS = 5000
"""Persons up to which large problems are solved exactly, one column a person."""
DRAWS = 1000
"""Multiplier draws above that: standard errors then have a relative error of 1/sqrt(2 * DRAWS),
2.2%."""
ITERATIVE_SHARE = 200
"""Conjugate gradients beat a factorisation (m^3 / 3) while 30 rounds a column (2 m^2 each) are
fewer, that is with fewer than one column in about 200 items."""
PROBES = 16
"""Columns on which a factorisation in single precision is checked."""
ROUGH_TOL = 1e-4
"""Relative residual that it may leave: far below the sampling error of a standard error."""
COLUMN_CELLS = 8_000_000
"""Cells of the right-hand sides that are solved for together: 64 MB."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Standard errors of the kept items, their covariance where it is small enough, notes."""

    se: FloatArray
    covariance: FloatArray | None
    notes: tuple[str, ...] = ()


def measure_uncertainty(
    store: AnswerStore,
    laplacian: Laplacian,
    *,
    difficulty: FloatArray,
    kept: IndexArray,
    scoring: Scoring,
    weighting: Weighting | None,
) -> Uncertainty:
    """Compute standard errors with the sandwich formula, one pass over persons."""
    m = len(difficulty)
    if m > COVARIANCE_LIMIT and hasattr(store, "add_up"):
        note = (
            f"no standard errors: above {COVARIANCE_LIMIT} items they need the scores of all "
            "persons at once, and these answers stay on other machines"
        )
        return Uncertainty(np.full(m, np.nan), None, (note,))
    if m > COVARIANCE_LIMIT:
        # In a well linked graph pinv(L) is close to its diagonal part; the factor makes the
        # leverages add up to m - 1, as the exact ones do.
        approximate = (m - 1) / m / laplacian.diagonal
        plan = PersonScores(difficulty, kept, scoring, None, approximate, weighting)
        return _measure_large(store, laplacian, plan)
    with threads_for(m):
        inverse = invert(laplacian)
        spread = inverse.diagonal()
        resistance = spread[:, None] + spread[None, :] - 2 * inverse
        plan = PersonScores(difficulty, kept, scoring, None, resistance, weighting)
        covariance = inverse @ sum_products(store, plan) @ inverse
    covariance = (covariance + covariance.T) / 2
    return Uncertainty(np.sqrt(np.maximum(covariance.diagonal(), 0.0)), covariance)


def sum_products(store: AnswerStore, plan: PersonScores) -> FloatArray:
    """Sum the products of scores of two items over persons.

    Answers on other machines add the sum up there (``add_up``), streams part by part.
    """
    if hasattr(store, "add_up"):
        return np.asarray(store.add_up(partial(sum_products, plan=plan)))
    if hasattr(store, "parts"):
        return _sum_batches(store, plan)
    plan = weigh_plan(store, plan)
    if not isinstance(store, BitPlanes):
        scores = score_persons(store, plan)
        return np.asarray((scores.T @ scores).toarray())
    step = chunk_words(store, plan)
    chunks = range(0, store.right.shape[0] * store.right.shape[2], step)
    share = -(-len(chunks) // thread_count()) or 1

    def add_up(words: range) -> FloatArray:
        total = np.zeros((len(plan.kept), len(plan.kept)))
        for scores in score_planes(store, plan, words):
            total += scores @ scores.T
        return total

    # One sum per thread, added in order: the same machine always gives the same bits.
    tasks = [chunks[start : start + share] for start in range(0, len(chunks), share)]
    with one_blas_thread() if len(chunks) > 1 else nullcontext():
        return np.asarray(sum(run_tasks(add_up, tasks), start=np.zeros(())))


def _sum_batches(store: Any, plan: PersonScores) -> FloatArray:
    """Sum over batches of persons that are never in memory together."""
    total = np.zeros((len(plan.kept), len(plan.kept)))
    start = 0
    for part in store.parts():
        stop = start + part.n_persons
        weights = None if plan.weights is None else plan.weights[start:stop]
        total += sum_products(part, replace(plan, weights=weights))
        start = stop
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
    variance = np.zeros(len(plan.kept))
    size = max(1, COLUMN_CELLS // len(plan.kept))
    solve = _choose_solver(laplacian, columns)
    for start in range(0, columns.shape[0], size):
        variance += (solve(_dense(columns[start : start + size]).T) ** 2).sum(axis=1)
    return Uncertainty(np.sqrt(variance), None, (note,))


def _choose_solver(laplacian: Laplacian, columns: Any) -> Callable[[FloatArray], FloatArray]:
    """Return the cheapest way to solve for many right-hand sides, rows of ``columns``."""
    if columns.shape[0] * ITERATIVE_SHARE < columns.shape[1]:
        return lambda block: np.column_stack([solve(laplacian, column) for column in block.T])
    probe = _dense(columns[: min(PROBES, columns.shape[0])]).T
    try:
        rough = factorise_roughly(laplacian)
    except NotConverged:
        return factorise(laplacian).solve
    found = rough.solve(probe)
    left = np.column_stack([laplacian.apply(column) for column in found.T]) - probe
    scale = 1.0 / np.sqrt(laplacian.diagonal)[:, None]
    if np.linalg.norm(scale * left) <= ROUGH_TOL * np.linalg.norm(scale * probe):
        return rough.solve
    del rough
    return factorise(laplacian).solve


def _dense(rows: Any) -> FloatArray:
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())
