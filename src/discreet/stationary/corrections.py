"""Corrections of a stationary vector with the help of groups of items, from two starts.

In: sparse rates and a rough answer. Out: the log of the stationary vector, and how far two starts
ended apart. With x the answer so far, the flow ``x_i rates_ij`` is nearly symmetric (the model
says that it is, up to chance), so that the Laplacian of its symmetric part, solved roughly by a
:class:`~discreet.stationary.hierarchy.Hierarchy`, is a good preconditioner for the balance
equations, however slowly the chain itself mixes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.stationary.hierarchy import Hierarchy, upper_triangle
from discreet.stationary.jumps import START_SPREAD, draw_slow_direction
from discreet.stationary.solution import Solution

__all__ = ["correct_from_two_starts"]

FloatArray = npt.NDArray[np.float64]

CORRECTIONS = 30
INNER_TOL = 1e-6
"""Relative residual of one correction; the next one corrects the rest."""
RESTART, RESTARTS = 40, 5
"""Vectors that GMRES keeps, and how often it starts again within a correction."""
SMALL_STEP = 1e-12
ROUNDING_STEP = 1e-7
"""A step below this (logits) that no longer shrinks is rounding."""
SMALLEST_FACTOR = 0.1
"""A correction may be too long while the answer is rough; no weight may become negative."""
REBUILD_STEP = 0.2
"""After a correction as large as this the flow is another one, and so are the groups."""


def correct_from_two_starts(rates: Any, rough: FloatArray) -> tuple[FloatArray, Solution]:
    """Correct a rough answer, and once more from elsewhere; the residual is their difference."""
    leaving = np.asarray(rates.sum(axis=1)).ravel()
    start = rough if np.isfinite(rough).all() else np.zeros(len(rough))
    first, done = _correct(rates, leaving, start)
    # The second start differs along the directions in which a solver could go wrong unseen.
    away = START_SPREAD * draw_slow_direction(rates, leaving)
    second, more = _correct(rates, leaving, first + away)
    gap = first - second
    name = "corrections with groups of items, from two starts"
    return first, Solution(name, done + more, float(gap.max() - gap.min()))


def _correct(rates: Any, leaving: FloatArray, start: FloatArray) -> tuple[FloatArray, int]:
    log_weights, size, inner = start - start.mean(), np.inf, 0
    hierarchy: Hierarchy | None = None
    for _ in range(CORRECTIONS):
        weights = np.exp(log_weights - log_weights.max())
        if hierarchy is None or size > REBUILD_STEP:
            hierarchy = Hierarchy(_symmetrise(rates, weights))
        step, rounds = _solve_balance(rates, leaving * weights, weights, hierarchy)
        before, size = size, float(np.abs(step).max())
        inner += rounds
        if not np.isfinite(size):
            break
        log_weights = log_weights + np.log(np.maximum(1.0 + step, SMALLEST_FACTOR))
        log_weights -= log_weights.mean()
        if size <= SMALL_STEP or (size <= ROUNDING_STEP and size > before / 2):
            break
    return log_weights, inner


def _symmetrise(rates: Any, weights: FloatArray) -> Any:
    """Upper triangle of the mean of the flow in both directions."""
    data = rates.data * np.repeat(weights / 2, np.diff(rates.indptr))
    return upper_triangle(type(rates)((data, rates.indices, rates.indptr), shape=rates.shape))


def _solve_balance(
    rates: Any, outflow: FloatArray, weights: FloatArray, hierarchy: Hierarchy
) -> tuple[FloatArray, int]:
    """Return relative corrections of the weights that make inflow and outflow equal."""
    from scipy.sparse.linalg import LinearOperator, gmres

    m, rounds = len(weights), 0

    def apply(vector: FloatArray) -> FloatArray:
        nonlocal rounds
        rounds += 1
        return np.asarray(outflow * vector - rates.T @ (weights * vector))

    left = rates.T @ weights - outflow
    balance = LinearOperator((m, m), matvec=apply, dtype=np.float64)
    groups = LinearOperator((m, m), matvec=hierarchy.apply, dtype=np.float64)
    options = {"rtol": INNER_TOL, "restart": RESTART, "maxiter": RESTARTS}
    step, _ = gmres(balance, left - left.mean(), M=groups, **options)
    return step - np.average(step, weights=outflow), rounds
