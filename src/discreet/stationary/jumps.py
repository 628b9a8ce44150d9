"""The jump chain from two starts: fast where the chain mixes, and honest where it does not.

In: rates, dense or CSR. Out: the log of the stationary vector, and how far the two starts are
apart: the error that is still in at least one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.stationary.solution import Solution

__all__ = ["AGREEMENT", "draw_slow_direction", "iterate_jump_chain", "without_diagonal"]

FloatArray = npt.NDArray[np.float64]

AGREEMENT = 1e-11
"""Largest difference in logits between the two starts of the jump chain."""
CHECK_EVERY = 4
"""Rounds between two comparisons of the starts."""
START_SPREAD = 3.0
"""How far, in logits, the second start goes up and down from the uniform one."""
SMOOTHING_ROUNDS = 8
"""Enough to make a random vector nearly constant inside each well linked group."""


def iterate_jump_chain(rates: Any, *, rounds: int) -> tuple[FloatArray, Solution]:
    """Iterate ``pi_j <- sum_i pi_i rates_ij / R_j`` from two starts until they agree.

    ``R_j`` is the sum of row j. The residual of the solution is the largest difference in
    logits between the two starts: the error that is still in at least one of them. A small
    change from round to round would prove nothing; agreement from different starts does.
    """
    moves = without_diagonal(rates)
    leaving = np.asarray(moves.sum(axis=1)).ravel()
    second = np.exp(START_SPREAD * draw_slow_direction(moves, leaving))
    pair = np.column_stack([np.ones(len(leaving)), second])
    scale = 1.0 / leaving[:, None]
    gap, done = np.inf, 0
    for done in range(1, rounds + 1):
        pair = (moves.T @ pair) * scale
        pair /= pair.mean(axis=0)
        if done % CHECK_EVERY == 0:
            before, gap = gap, _disagreement(pair)
            if gap <= AGREEMENT or _is_hopeless(before, gap, rounds - done):
                break
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.log(pair[:, 0])
        log_weights -= log_weights.mean()
    return log_weights, Solution("jump chain from two starts", done, gap)


def draw_slow_direction(moves: Any, leaving: FloatArray) -> FloatArray:
    """Return a vector between -1 and 1 that tells badly linked groups of items apart.

    Averaging a random vector over each item's successors leaves the directions in which the
    chain mixes slowly. A second start along them has another share of the mass in every such
    group than the uniform start; an unstructured random start has nearly the same share.
    """
    vector = np.random.default_rng(len(leaving)).standard_normal(len(leaving))
    for _ in range(SMOOTHING_ROUNDS):
        vector = (moves @ vector) / leaving
        vector -= (vector.max() + vector.min()) / 2
        vector /= max(float(vector.max()), np.finfo(float).tiny)
    return vector


def _is_hopeless(before: float, gap: float, rounds_left: int) -> bool:
    """Whether the gap, shrinking as it did last, would still be too large at the end.

    A factor of two in the rate is granted, because the first rounds can be slower.
    """
    if not (np.isfinite(before) and gap > 0):
        return False
    if gap >= before:
        return True
    checks = np.log(gap / AGREEMENT) / np.log(before / gap)
    return bool(checks * CHECK_EVERY > 2 * rounds_left + 20)


def _disagreement(pair: FloatArray) -> float:
    """Largest difference in logits between two positive vectors, each up to a factor."""
    if not (np.isfinite(pair).all() and pair.min() > 0):
        return float("inf")
    ratio = np.log(pair[:, 0] / pair[:, 1])
    return float(ratio.max() - ratio.min())


def without_diagonal(rates: Any) -> Any:
    """Return rates as float64 with nothing on the diagonal, without a copy where that is so."""
    if isinstance(rates, np.ndarray):
        out = np.array(rates, dtype=np.float64)
        np.fill_diagonal(out, 0.0)
        return out
    if not rates.diagonal().any():
        return rates.astype(np.float64, copy=False)
    out = rates.astype(np.float64)
    out.setdiag(0.0)
    out.eliminate_zeros()
    return out
