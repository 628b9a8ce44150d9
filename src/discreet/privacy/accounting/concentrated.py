"""Zero-concentrated privacy (rho) and what it says about epsilon and delta.

The fallback that is always reported beside the exact numbers. Conversion: Canonne, Kamath and
Steinke (2020), Corollary 13; any order alpha > 1 gives a valid bound, so a search that stops
early is only less tight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.errors import BadBudget

__all__ = ["largest_rho", "rho_delta", "rho_epsilon"]

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
