"""Rounding with a direction: exact fractions in, floats and short fractions out.

Every number that an accountant passes on is rounded toward the side that costs privacy nothing:
noise up, spends up, what is left down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import erfcx

from discreet.errors import BadBudget


def float_up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`.

    Examples
    --------
    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float that is not above `value`."""
    return -float_up(-value)


def sqrt_up(value: Fraction) -> float:
    """Return a float that is not below the square root of `value`."""
    if value == 0:
        return 0.0
    # math.sqrt rounds correctly, so one step up from the root of a number >= value suffices.
    return math.nextafter(math.sqrt(float_up(value)), math.inf)


def grid_step(value: Fraction, bits: int) -> Fraction:
    """Return the power of two that cuts `value` into 2**bits to 2**(bits + 1) steps."""
    numerator, denominator = value.numerator, value.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    return Fraction(2) ** (exponent - bits)


def round_up(value: Fraction, bits: int) -> Fraction:
    """Return the smallest multiple of the value's own grid step that is not below `value`.

    The result costs at most a factor 1 + 2**-bits, and its numerator and denominator stay short:
    that is what an exact sampler needs of a scale, and a long history of a sum.

    Examples
    --------
    >>> round_up(Fraction(10, 3), 4)
    Fraction(27, 8)
    """
    if value <= 0:
        return Fraction(0)
    step = grid_step(value, bits)
    return math.ceil(value / step) * step


# The Gaussian privacy curve of Balle and Wang, as an upper bound in floating point.
#
# In: mu (shift over standard deviation) and epsilon, or delta. Out: the other one, rounded to the
# side that promises less. Proofs: docs/privacy-accounting.md, sections 1 and 2.

# Relative error granted to scipy's erfcx (its source claims about 1e-15; tests compare with
# mpmath) and to one rounded operation (a few units in the last place, taken generously).
ERFCX_ERROR = 1e-13
OPERATION_ERROR = 2.0**-50
# Nothing smaller is ever reported: it keeps underflow from reading as perfect privacy.
SMALLEST_REPORTED = 1e-300


def _mills(x: float) -> float:
    """Return the upper tail of the normal distribution over its density."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return an upper bound on the delta of the Gaussian mechanism at `epsilon`.

    Balle and Wang (2018, Theorem 8): Phi(-a) - e^epsilon Phi(-b) with a = epsilon/mu - mu/2 and
    b = epsilon/mu + mu/2. Since phi(a) = e^epsilon phi(b), this is phi(a) times a difference of
    two Mills ratios, which neither overflows nor cancels at tiny delta; what rounding can take
    away is added back.

    Examples
    --------
    >>> 0.99e-4 < gaussian_delta(1 / 3.186, 1.0) < 1.01e-4
    True
    """
    if epsilon < 0:  # the curve of a symmetric pair: delta(e) = 1 - e^e + e^e delta(-e)
        mirrored = -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)
        return min(1.0, mirrored * (1 + 1e-12))
    if mu == 0:
        return SMALLEST_REPORTED
    near, reach = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near < -8:  # 1 - delta is below 1e-14 here
        return 1.0
    log_density = -near * near / 2 - math.log(2 * math.pi) / 2
    log_density += (1 + abs(near) * reach) * OPERATION_ERROR
    upper = _mills(near)
    slope = 1 + abs(near) * upper  # bounds the derivative of the Mills ratio
    slack = ERFCX_ERROR * upper + slope * reach * OPERATION_ERROR
    value = math.exp(log_density) * (upper - _mills(reach) + slack) * (1 + 1e-12)
    return min(1.0, max(value, SMALLEST_REPORTED))


def _bisect_down(passes: Callable[[float], bool], low: float, high: float) -> float:
    """Return a number that passes, within 1e-14 of the edge; `high` passes, `low` does not."""
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu (to 1e-14) whose curve stays at or below delta at `epsilon`.

    Examples
    --------
    >>> round(1 / largest_mu(1.0, 1e-4), 3)
    3.186
    """

    def passes(sigma: float) -> bool:
        return gaussian_delta(1 / sigma, epsilon) <= delta

    high = 1.0
    while not passes(high):
        high *= 2
        if high > 2.0**200:
            raise BadBudget(
                f"no Gaussian noise reaches epsilon {epsilon:g} with delta {delta:g} in floating "
                f"point. Ask for a larger epsilon or delta."
            )
    low = high / 2
    while passes(low):
        low, high = low / 2, low
    mu = 1 / _bisect_down(passes, low, high)
    while gaussian_delta(mu, epsilon) > delta:  # the slack is not monotone to the last digit
        mu *= 1 - 1e-13
    return mu


@dataclass(frozen=True)
class GaussianBound:
    """The curve e^exponent * BW(sqrt(mu_squared), epsilon - eta) + extra_delta.

    It bounds a mechanism, or a whole history of them: the four numbers add under composition
    (docs/privacy-accounting.md, section 6).
    """

    mu_squared: Fraction
    eta: Fraction = Fraction(0)
    exponent: Fraction = Fraction(0)
    extra_delta: Fraction = Fraction(0)

    def __add__(self, other: GaussianBound) -> GaussianBound:
        return GaussianBound(
            self.mu_squared + other.mu_squared,
            self.eta + other.eta,
            self.exponent + other.exponent,
            self.extra_delta + other.extra_delta,
        )

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at `epsilon`."""
        shifted = float_down(Fraction(epsilon) - self.eta)
        factor = math.exp(float_up(self.exponent)) * (1 + 1e-15)
        value = factor * gaussian_delta(sqrt_up(self.mu_squared), shifted)
        return min(1.0, (value + float_up(self.extra_delta)) * (1 + 1e-15))

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on epsilon at `delta`; infinite when there is none."""
        if delta <= float_up(self.extra_delta):
            return math.inf

        def passes(epsilon: float) -> bool:
            return self.delta(epsilon) <= delta

        if passes(0.0):
            return 0.0
        high = 1.0
        while not passes(high):
            high *= 2
            if high > 2.0**100:
                return math.inf
        return _bisect_down(passes, 0.0, high)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return an upper bound on the epsilon of the Gaussian mechanism at `delta`."""
    return GaussianBound(Fraction(mu) ** 2).epsilon(delta)


# Zero-concentrated privacy (rho) and what it says about epsilon and delta.
#
# The fallback that is always reported beside the exact numbers. Conversion: Canonne, Kamath and
# Steinke (2020), Corollary 13; any order alpha > 1 gives a valid bound, so a search that stops
# early is only less tight.

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
