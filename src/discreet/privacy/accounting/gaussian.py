"""The Gaussian privacy curve of Balle and Wang, as an upper bound in floating point.

In: mu (shift over standard deviation) and epsilon, or delta. Out: the other one, rounded to the
side that promises less. Proofs: docs/privacy-accounting.md, sections 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import erfcx

from discreet.errors import BadBudget
from discreet.privacy.accounting.rounding import float_down, float_up, sqrt_up

__all__ = ["GaussianBound", "gaussian_delta", "gaussian_epsilon", "largest_mu"]

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
