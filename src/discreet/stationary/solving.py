"""The solver of the stationary vector: the cheapest way whose answer can be vouched for.

There is no power iteration on M: it can stop far from the answer in silence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.chain import is_strongly_connected
from discreet.errors import DisconnectedItems, NotConverged
from discreet.stationary import elimination
from discreet.stationary.banded import solve_in_band
from discreet.stationary.corrections import correct_from_two_starts
from discreet.stationary.elimination import solve_by_elimination
from discreet.stationary.jumps import AGREEMENT, iterate_jump_chain, without_diagonal
from discreet.stationary.solution import Solution

__all__ = ["solve_stationary"]

FloatArray = npt.NDArray[np.float64]

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
