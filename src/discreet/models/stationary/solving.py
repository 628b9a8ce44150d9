"""Corrections of a stationary vector with the help of groups of items, from two starts.

In: sparse rates and a rough answer. Out: the log of the stationary vector, and how far two starts
ended apart. With x the answer so far, the flow ``x_i rates_ij`` is nearly symmetric (the model
says that it is, up to chance), so that the Laplacian of its symmetric part, solved roughly by a
:class:`~discreet.models.stationary.hierarchy.Hierarchy`, is a good preconditioner for the balance
equations, however slowly the chain itself mixes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.connection import is_strongly_connected
from discreet.models.stationary import elimination
from discreet.models.stationary.elimination import solve_by_elimination, solve_in_band
from discreet.models.stationary.hierarchy import Hierarchy, upper_triangle
from discreet.results.estimate import Solution
from discreet.types import FloatArray

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


# The jump chain from two starts: fast where the chain mixes, and honest where it does not.
#
# In: rates, dense or CSR. Out: the log of the stationary vector, and how far the two starts are
# apart: the error that is still in at least one of them.

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


# The solver of the stationary vector: the cheapest way whose answer can be vouched for.
#
# There is no power iteration on M: it can stop far from the answer in silence.

SMALL_SPARSE = 2000
"""Items up to which sparse rates that mix slowly become dense at once (32 MB)."""
DENSE_LIMIT = 20_000
"""Largest dense matrix that elimination may build from sparse rates (3.2 GB)."""
DENSE_ROUNDS = 100
"""Rounds that cost about as much as elimination at 1000 items."""
SPARSE_ROUNDS = 500
"""Sparse rounds cost little, so they are tried for longer; what is slower is solved otherwise."""
CORRECTED_AGREEMENT = 1e-7
"""Largest difference in logits between two starts that were corrected: far below any standard
error, and above the rounding that badly linked items leave in the balance equations."""


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
    if dense and rates.shape[0] <= elimination.PLAIN_LIMIT:
        return solve_by_elimination(rates)
    log_weights, solution = iterate_jump_chain(
        rates, rounds=DENSE_ROUNDS if dense else SPARSE_ROUNDS
    )
    if solution.residual <= AGREEMENT:
        return log_weights, solution
    return solve_by_elimination(rates) if dense else _solve_slow(rates, log_weights)


def _solve_slow(rates: Any, rough: FloatArray) -> tuple[FloatArray, Solution]:
    """Solve sparse rates that mix slowly."""
    m = rates.shape[0]
    if m <= SMALL_SPARSE:
        return solve_by_elimination(rates.toarray())
    moves = without_diagonal(rates)
    exact = solve_in_band(moves)
    if exact is not None:
        return exact
    log_weights, solution = correct_from_two_starts(moves, rough)
    if solution.residual <= CORRECTED_AGREEMENT:
        return log_weights, solution
    if m <= DENSE_LIMIT:
        return solve_by_elimination(rates.toarray())
    raise NotConverged(
        f"after {solution.iterations} rounds over {m} items two starts still differ by "
        f"{solution.residual:.1e} logits, the links have no narrow order, and the matrix is too "
        f"large for elimination (limit {DENSE_LIMIT} items); use method='refined', or drop items "
        "with very few answers"
    )
