"""From a chain to its stationary vector: accurate in every entry, or an error with a name.

In: a matrix of non-negative rates, strongly connected. Out: the centred logarithm of the
stationary vector and how it was found. No answers, no persons, no privacy.

Only additions, multiplications and divisions of non-negative numbers are used (Grassmann,
Taksar and Heyman 1985), so that no cancellation can spoil an entry however badly the chain
is linked. There is no power iteration on M: it can stop far from the answer in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.chain import is_strongly_connected
from discreet.errors import DisconnectedItems, NotConverged

__all__ = ["Solution", "iterate_jump_chain", "solve_by_elimination", "solve_stationary"]

FloatArray = npt.NDArray[np.float64]

PLAIN_LIMIT = 500
"""Up to here elimination is faster than anything that must be checked."""
PANEL = 64
"""States eliminated together; the trailing update is then one matrix product."""
DENSE_LIMIT = 20_000
"""Largest dense matrix that elimination may build from sparse rates (3.2 GB)."""
AGREEMENT = 1e-11
"""Largest difference in logits between the two starts of the jump chain."""
DENSE_ROUNDS = 100
"""Rounds that cost about as much as elimination at 1000 items."""
SPARSE_ROUNDS = 3000
"""Sparse rounds cost little, and elimination fills the matrix; so try longer."""
CHECK_EVERY = 4
"""Rounds between two comparisons of the starts."""
START_SPREAD = 3.0
"""How far, in logits, the second start goes up and down from the uniform one."""
SMOOTHING_ROUNDS = 8
"""Enough to make a random vector nearly constant inside each well linked group."""


@dataclass(frozen=True)
class Solution:
    """How the numbers were found: the solver, its accuracy, what it took."""

    solver: str
    iterations: int
    residual: float
    notes: tuple[str, ...] = ()


def solve_stationary(rates: Any) -> tuple[FloatArray, Solution]:
    """Find the stationary vector of the chain with the given off-diagonal rates.

    Parameters
    ----------
    rates
        ``rates[i, j] >= 0``, proportional to the probability of a move from i to j; the
        diagonal is ignored. A dense array or a scipy sparse CSR array.

    Returns
    -------
    tuple
        The logarithm of the stationary vector, mean zero, and a :class:`Solution`.

    Raises
    ------
    DisconnectedItems
        If the chain is not strongly connected: it has no single stationary vector.
    NotConverged
        If no method here can vouch for its answer.

    Examples
    --------
    >>> import numpy as np
    >>> log_weights, solution = solve_stationary(np.array([[0.0, 1.0], [3.0, 0.0]]))
    >>> float(np.round(log_weights[0] - log_weights[1], 12)) == round(float(np.log(3)), 12)
    True
    """
    if rates.shape[0] < 2 or not is_strongly_connected(rates):
        raise DisconnectedItems(
            f"the chain over {rates.shape[0]} items is not strongly connected, so it has no "
            "single stationary vector; restrict it to one connected set (build_chain does)"
        )
    dense = isinstance(rates, np.ndarray)
    if dense and rates.shape[0] <= PLAIN_LIMIT:
        return solve_by_elimination(rates)
    log_weights, solution = iterate_jump_chain(
        rates, rounds=DENSE_ROUNDS if dense else SPARSE_ROUNDS
    )
    if solution.residual <= AGREEMENT:
        return log_weights, solution
    if not dense:
        rates = _densify(rates, solution)
    return solve_by_elimination(rates)


def iterate_jump_chain(rates: Any, *, rounds: int) -> tuple[FloatArray, Solution]:
    """Iterate ``pi_j <- sum_i pi_i rates_ij / R_j`` from two starts until they agree.

    ``R_j`` is the sum of row j. The residual of the solution is the largest difference in
    logits between the two starts: the error that is still in at least one of them. A small
    change from round to round would prove nothing; agreement from different starts does.
    """
    moves = _without_diagonal(rates)
    leaving = np.asarray(moves.sum(axis=1)).ravel()
    second = np.exp(START_SPREAD * _slow_direction(moves, leaving))
    pair = np.column_stack([np.ones(len(leaving)), second])
    scale = 1.0 / leaving[:, None]
    transposed = moves.T if _is_dense(rates) else moves.T.tocsr()
    gap, done = np.inf, 0
    for done in range(1, rounds + 1):
        pair = (transposed @ pair) * scale
        pair /= pair.mean(axis=0)
        if done % CHECK_EVERY == 0:
            before, gap = gap, _disagreement(pair)
            if gap <= AGREEMENT or _is_hopeless(before, gap, rounds - done):
                break
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.log(pair[:, 0])
        log_weights -= log_weights.mean()
    return log_weights, Solution("jump chain from two starts", done, gap)


def _slow_direction(moves: Any, leaving: FloatArray) -> FloatArray:
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


def solve_by_elimination(rates: FloatArray) -> tuple[FloatArray, Solution]:
    """Eliminate one state after the other (GTH), in panels above a few hundred states."""
    work = np.array(rates, dtype=np.float64, order="C")
    np.fill_diagonal(work, 0.0)
    # A common scale keeps products of counts inside the range of doubles.
    work /= work.max()
    if work.shape[0] <= PLAIN_LIMIT:
        name = "elimination (GTH)"
        _eliminate_plain(work)
    else:
        name = f"elimination (GTH) in panels of {PANEL}"
        _eliminate_panels(work)
    log_weights = _substitute(work)
    if not np.isfinite(log_weights).all():
        raise NotConverged(
            f"the stationary vector over {len(work)} items leaves the range of doubles: the "
            "links between some items are weaker than 1e-300 of others; remove those items"
        )
    return log_weights - log_weights.mean(), Solution(name, len(work), 0.0)


def _eliminate_plain(work: FloatArray, lowest: int = 1) -> None:
    """Eliminate the states from the last down to ``lowest``, in place.

    Afterwards ``work[:k, k]`` holds the expected visits to k between visits to lower states.
    """
    for k in range(work.shape[0] - 1, lowest - 1, -1):
        leaving = work[k, :k].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            work[:k, k] /= leaving
        work[:k, :k] += work[:k, k, None] * work[k, :k]


def _eliminate_panels(work: FloatArray) -> None:
    """Eliminate as :func:`_eliminate_plain` does, with the trailing updates as matrix products.

    Inside a panel each row and column receives the updates of the states eliminated before it
    only when its turn comes, as a product of non-negative numbers; no subtraction anywhere.
    """
    top = work.shape[0]
    while top > PLAIN_LIMIT // 2:
        low = top - PANEL
        for k in range(top - 1, low - 1, -1):
            work[k, :k] += work[k, k + 1 : top] @ work[k + 1 : top, :k]
            work[:k, k] += work[:k, k + 1 : top] @ work[k + 1 : top, k]
            with np.errstate(divide="ignore", invalid="ignore"):
                work[:k, k] /= work[k, :k].sum()
        work[:low, :low] += work[:low, low:top] @ work[low:top, :low]
        # The diagonal collects returns to the same state, which elimination never reads.
        top = low
    _eliminate_plain(work[:top, :top])


def _substitute(work: FloatArray) -> FloatArray:
    """Log of the stationary vector from the eliminated matrix, first state first."""
    m = work.shape[0]
    weights = np.ones(m)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, m):
            weights[k] = weights[:k] @ work[:k, k]
    extreme = not (np.isfinite(weights).all() and weights.min() > np.finfo(float).tiny)
    return _substitute_logs(work) if extreme else np.log(weights)


def _substitute_logs(work: FloatArray) -> FloatArray:
    """Do the same in logarithms, for weights further apart than doubles can hold."""
    m = work.shape[0]
    log_weights = np.zeros(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(1, m):
            terms = log_weights[:k] + np.log(work[:k, k])
            peak = terms.max()
            log_weights[k] = peak + np.log(np.exp(terms - peak).sum())
    return log_weights


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


def _densify(rates: Any, tried: Solution) -> FloatArray:
    if rates.shape[0] > DENSE_LIMIT:
        raise NotConverged(
            f"after {tried.iterations} rounds over {rates.shape[0]} items the two starts of the "
            f"jump chain still differ by {tried.residual:.1e} logits, and the matrix is too large "
            f"for elimination (limit {DENSE_LIMIT} items); use method='refined', or drop items "
            "with very few answers"
        )
    return np.asarray(rates.toarray(), dtype=np.float64)


def _without_diagonal(rates: Any) -> Any:
    if _is_dense(rates):
        out = np.array(rates, dtype=np.float64)
        np.fill_diagonal(out, 0.0)
        return out
    out = rates.astype(np.float64)
    if out.diagonal().any():
        out.setdiag(0.0)
        out.eliminate_zeros()
    return out


def _is_dense(rates: Any) -> bool:
    return isinstance(rates, np.ndarray)
