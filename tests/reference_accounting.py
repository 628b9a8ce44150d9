"""Other ways to the accountant's numbers, which releases do not use: checks on those they do.

Zero-concentrated privacy (rho) and what it says about epsilon and delta; the coarser bound for one
move that needs no kernel; the epsilon of shuffled rows, in closed form and numerically.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.errors import BadBudget
from discreet.privacy.accounting import check_epsilon
from discreet.privacy.accounting.additive_noise import _check_sigmas as check_sigmas
from discreet.privacy.accounting.amplification import CLONES_LOST, shuffled_delta
from discreet.privacy.accounting.amplification import _check_shuffled as check_shuffled
from discreet.privacy.accounting.spend import GaussianBound

GOLDEN = (math.sqrt(5) - 1) / 2


# Rounding of a handful of terms of moderate size; added so that the result stays an upper bound.
ROUNDING = 1e-12


def _smallest(value: Callable[[float], float]) -> float:
    """Minimise a unimodal function of alpha - 1 over [1e-9, 1e9], on a log scale."""
    low, high = math.log(1e-9), math.log(1e9)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(math.exp(left)), value(math.exp(right))
    for _ in range(100):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(math.exp(right))
    return min(at_left, at_right)


def rho_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon that rho-zero-concentrated privacy implies at `delta`.

    Canonne, Kamath and Steinke (2020), Corollary 13; any order alpha > 1 gives a valid bound, so a
    search that stops early is only less tight.

    Examples
    --------
    >>> round(rho_epsilon(0.0493, 1e-4), 2)
    1.11
    """
    if not 0 < delta < 1 or not rho >= 0:
        raise BadBudget(
            f"the conversion needs rho >= 0 and delta between 0 and 1, found rho {rho!r} and "
            f"delta {delta!r}: pure epsilon does not follow from rho."
        )
    if rho == 0:
        return 0.0

    def at(above_one: float) -> float:
        alpha = 1 + above_one
        logs = -math.log(alpha) - math.log(delta)
        return alpha * rho + logs / above_one - math.log1p(1 / above_one)

    best = _smallest(at)
    return max(0.0, best + ROUNDING * (1 + abs(best)))


def rho_delta(rho: float, epsilon: float) -> float:
    """Return a delta that rho-zero-concentrated privacy implies at `epsilon`."""

    def log_at(above_one: float) -> float:
        alpha = 1 + above_one
        shrink = -alpha * math.log1p(1 / above_one)
        return above_one * (alpha * rho - epsilon) - math.log(above_one) + shrink

    best = _smallest(log_at)
    return min(1.0, math.exp(min(0.0, best + ROUNDING * (1 + abs(best)))))


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho (to 1e-12) that implies (epsilon, delta).

    Examples
    --------
    >>> rho = largest_rho(1.0, 1e-4)
    >>> round((1 / (2 * rho)) ** 0.5, 3)
    3.508
    """
    low, high = 0.0, epsilon  # rho = epsilon converts to more than epsilon at every delta < 1/4
    while rho_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if rho_epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def bound_rounded_move(move: Sequence[int], sigmas: Sequence[Fraction]) -> GaussianBound:
    """Return the coarser bound for one move that needs no kernel (section 5).

    eta = sum |a_i| / (2 sigma_i^2) and exponent = sum 1 / (24 sigma_i^2) over the coordinates
    that move. It is an independent check on `bound_sensitivity`, whose slack is far smaller.

    Proof. The discrete mass at k is at most phi(k). A rounded Gaussian has mass at k of at least
    phi(k) exp(-1 / (24 sigma^2)), by Jensen. Rounding moves each coordinate by at most 1/2, so it
    moves the loss, linear with slope a_i / sigma_i^2, by at most eta.
    """
    check_sigmas(sigmas)
    moved = [(abs(a), sigma * sigma) for a, sigma in zip(move, sigmas, strict=True) if a]
    return GaussianBound(
        sum((Fraction(a * a) / square for a, square in moved), Fraction(0)),
        eta=sum((Fraction(a) / (2 * square) for a, square in moved), Fraction(0)),
        exponent=sum((1 / (24 * square) for _, square in moved), Fraction(0)),
    )


def shuffled_epsilon_closed_form(local: float, persons: int, delta: float) -> float:
    """Return epsilon after shuffling by the closed form, never more than `local`.

    log(1 + tanh(local/2) (8 sqrt(e^local ln(4/delta)) / sqrt n + 8 e^local / n)), valid for
    local <= ln(n / (16 ln(2/delta))); beyond, no amplification is claimed.
    """
    check_shuffled(persons, delta)
    check_epsilon(local, name="the epsilon of one row")
    reach = persons / (16 * math.log(2 / delta))
    if reach <= 1 or local > math.log(reach) * (1 - 1e-12):
        return local
    growth = math.exp(local)
    clones = 8 * math.sqrt(growth * math.log(4 / delta) / persons) + 8 * growth / persons
    return min(local, math.log1p(math.tanh(local / 2) * clones) * (1 + 1e-12))


def shuffled_epsilon(local: float, persons: int, delta: float) -> float:
    """Return epsilon after shuffling, numerically; never more than `local`.

    Examples
    --------
    >>> shuffled_epsilon(1.0, 10_000, 1e-6) < shuffled_epsilon_closed_form(1.0, 10_000, 1e-6) / 3
    True
    """
    check_shuffled(persons, delta)
    check_epsilon(local, name="the epsilon of one row")
    lost = CLONES_LOST * delta

    def passes(epsilon: float) -> bool:
        return shuffled_delta(local, persons, epsilon, lost=lost) <= delta

    return _smallest_passing(passes, local, 1e-6)


def _smallest_passing(passes: Callable[[float], bool], high: float, tol: float) -> float:
    low = 0.0
    while high - low > tol * high:
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
