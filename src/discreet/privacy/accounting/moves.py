"""General integer moves under discrete Gaussian noise, possibly of several scales.

In: the extreme moves of one person and the sigmas. Out: a Gaussian curve that dominates the
release, a calibrated scale, or the spend. Proofs: docs/privacy-accounting.md, sections 4 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from discreet.errors import BadBudget
from discreet.privacy.accounting.budget import Budget
from discreet.privacy.accounting.gaussian import GaussianBound, grid_step, round_up
from discreet.privacy.accounting.spend import Spend, check_promise
from discreet.privacy.accounting.unit_moves import PRECISION_BITS, SMALLEST_SIGMA

# Variance lent to the rounding kernel, and its error per coordinate, 5 e^(-6 pi^2) < 1e-24:
# small enough for a million coordinates, and nothing against scales of a fine grid.
KERNEL_VARIANCE = Fraction(3)
KERNEL_ERROR = Fraction(1, 10**24)

Blocks = Sequence[tuple[int, Fraction]]


def bound_moves(moves: Iterable[Blocks], *, coordinates: int) -> GaussianBound:
    """Return the Gaussian curve that dominates a release, over all its extreme moves.

    Parameters
    ----------
    moves : iterable of sequences of (squared_length, sigma)
        One entry per extreme move; in it, one pair per block of coordinates that share a sigma:
        the squared Euclidean length (an integer) of the move within the block, and sigma.
    coordinates : int
        How many noisy numbers the release holds.

    Examples
    --------
    >>> bound = bound_moves([[(5000, Fraction(225))]], coordinates=9900)
    >>> round(float(bound.mu_squared), 5)
    0.09877
    """
    worst = Fraction(0)
    for blocks in moves:
        _check_sigmas([sigma for _, sigma in blocks])
        mu_squared = sum(
            (Fraction(squared) / (sigma * sigma - KERNEL_VARIANCE) for squared, sigma in blocks),
            Fraction(0),
        )
        worst = max(worst, mu_squared)
    error = coordinates * KERNEL_ERROR
    return GaussianBound(worst, eta=2 * error, exponent=error)


def bound_rounded_move(move: Sequence[int], sigmas: Sequence[Fraction]) -> GaussianBound:
    """Return the coarser bound for one move that needs no kernel (section 5).

    eta = sum |a_i| / (2 sigma_i^2) and exponent = sum 1 / (24 sigma_i^2) over the coordinates
    that move. It is an independent check on `bound_moves`, whose slack is far smaller.
    """
    _check_sigmas(sigmas)
    moved = [(abs(a), sigma * sigma) for a, sigma in zip(move, sigmas, strict=True) if a]
    return GaussianBound(
        sum((Fraction(a * a) / square for a, square in moved), Fraction(0)),
        eta=sum((Fraction(a) / (2 * square) for a, square in moved), Fraction(0)),
        exponent=sum((1 / (24 * square) for _, square in moved), Fraction(0)),
    )


def moves_rho(moves: Iterable[Blocks]) -> Fraction:
    """Return the zero-concentrated rho: the largest half squared length over sigma squared."""
    return max(
        sum((Fraction(squared) / (2 * sigma * sigma) for squared, sigma in blocks), Fraction(0))
        for blocks in moves
    )


def calibrate_scale(
    bound_at: Callable[[Fraction], GaussianBound],
    budget: Budget,
    *,
    smallest: Fraction = SMALLEST_SIGMA,
    bits: int = PRECISION_BITS,
) -> Fraction:
    """Return the smallest scale on the grid whose curve keeps the budget.

    `bound_at` maps a scale to the curve that dominates the release at that scale; more scale
    must mean less spent. Only the returned fraction's own curve is trusted.

    Examples
    --------
    >>> def bound_at(scale):
    ...     return bound_moves([[(5000, scale)]], coordinates=9900)
    >>> float(calibrate_scale(bound_at, Budget(1.0, 1e-4)))
    225.28125
    """
    delta = budget.require_delta("discrete Gaussian noise")

    def keeps(scale: Fraction) -> bool:
        return bound_at(scale).delta(budget.epsilon) <= delta

    promise = f"epsilon {budget.epsilon:g} with delta {delta:g}"
    return search_scale(keeps, promise, smallest=smallest, bits=bits)


def search_scale(
    keeps: Callable[[Fraction], bool],
    promise: str,
    *,
    smallest: Fraction = SMALLEST_SIGMA,
    bits: int = PRECISION_BITS,
) -> Fraction:
    """Return the smallest scale on the grid that keeps a promise; larger ones must keep it too."""
    if keeps(smallest):
        return smallest
    low, high = smallest, 2 * smallest
    while not keeps(high):
        low, high = high, 2 * high
        if high > 2**200:
            raise BadBudget(
                f"no scale keeps {promise}: the bound does not fall as the noise grows."
            )
    step = grid_step(low, bits)
    while high - low > step:
        middle = low + step * math.ceil((high - low) / (2 * step))
        if middle >= high:
            break
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return round_up(high, bits) if keeps(round_up(high, bits)) else high


def moves_spend(bound: GaussianBound, *, rho: Fraction, budget: Budget, mechanism: str) -> Spend:
    """Return the spend of a release with this curve, or refuse one that breaks the budget."""
    budget.require_delta(mechanism)
    check_promise(
        bound.delta(budget.epsilon), budget, f"noise with mu^2 = {float(bound.mu_squared):.6g}"
    )
    return Spend(
        mechanism=mechanism,
        neighbours=budget.neighbours,
        epsilon=budget.epsilon,
        delta=budget.delta,
        bound=bound,
        rho=rho,
    )


def _check_sigmas(sigmas: Sequence[Fraction]) -> None:
    for sigma in sigmas:
        if sigma < SMALLEST_SIGMA:
            raise BadBudget(
                f"sigma must be at least {SMALLEST_SIGMA}, found {float(sigma):g}: the bound for "
                f"general moves does not hold below. Use a finer grid or 2."
            )
