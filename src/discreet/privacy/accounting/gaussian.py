"""The Gaussian privacy curve, what it says about one person, and rounding with a direction.

In: mu (shift over standard deviation), with epsilon or delta. Out: the other one, rounded to the
side that costs privacy nothing (noise and spends up, what is left down); and how sure somebody can
become of a fact about one person, in one sentence for statements and pages. The curve is that of
Balle and Wang, an upper bound in floating point. Proofs: docs/privacy-accounting.md, sections 1 and
2; docs/privacy.md, "What epsilon means".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from fractions import Fraction
from operator import add

from scipy.special import erfcx, log_ndtr, ndtri_exp

from discreet.errors import BadBudget
from discreet.privacy.accounting import Guarantee, Neighbours
from discreet.words import ENGLISH, Language, ReleaseKind, mark_of


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
    point, reach = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if point < -8:  # 1 - delta is below 1e-14 here
        return 1.0
    log_density = -point * point / 2 - math.log(2 * math.pi) / 2
    log_density += (1 + abs(point) * reach) * OPERATION_ERROR
    upper = _mills(point)
    slope = 1 + abs(point) * upper  # bounds the derivative of the Mills ratio
    slack = ERFCX_ERROR * upper + slope * reach * OPERATION_ERROR
    value = math.exp(log_density) * (upper - _mills(reach) + slack) * (1 + 1e-12)
    return min(1.0, max(value, SMALLEST_REPORTED))


def bisect_down(
    passes: Callable[[float], bool], low: float, high: float, within: float = 1e-14
) -> float:
    """Return a number that passes, as near to the edge; `high` passes, `low` does not."""
    while high - low > within * high:
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
    mu = 1 / bisect_down(passes, low, high)
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
        return GaussianBound(*map(add, astuple(self), astuple(other)))

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
        return bisect_down(passes, 0.0, high)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return an upper bound on the epsilon of the Gaussian mechanism at `delta`."""
    return GaussianBound(Fraction(mu) ** 2).epsilon(delta)


# Granted to the logarithms of scipy's normal distribution (tests compare with mpmath).
LOG_ERROR = 1e-11


def _steps(neighbours: Neighbours) -> int:
    """How many neighbouring data sets lie between two sets of answers of one person."""
    return 2 if neighbours is Neighbours.ADD_REMOVE else 1


def surest_belief(epsilon: float, neighbours: Neighbours) -> float:
    """Return how likely somebody can hold a fact about answers that was as likely as not.

    Without an exception for pure epsilon; otherwise see :func:`tail_probability`.

    Examples
    --------
    >>> round(surest_belief(1.0, Neighbours.REPLACE_ONE), 2)
    0.73
    >>> round(surest_belief(1.0, Neighbours.ADD_REMOVE), 2)
    0.88
    """
    return 1 / (1 + math.exp(-_steps(neighbours) * epsilon))


def best_guess(epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """Return the largest probability of guessing right what was as likely as not.

    It holds for every (epsilon, delta) guarantee: (e^epsilon + delta) / (1 + e^epsilon), under
    add-remove with 2 epsilon and (1 + e^epsilon) delta.
    """
    steps = _steps(neighbours)
    # Divided by e^(steps epsilon), so that nothing overflows.
    shares = delta * sum(math.exp(-step * epsilon) for step in range(1, steps + 1))
    return min(1.0, (1 + shares) / (1 + math.exp(-steps * epsilon)))


def tail_probability(bound: GaussianBound, epsilon: float, neighbours: Neighbours) -> float:
    """Bound the probability of becoming surer of a fact than epsilon allows.

    The largest p with p <= T(p e^-epsilon), T the trade-off of the Gaussian curve `bound`:
    Phi(Phi^-1(x) + mu) but for its slack. Under add-remove T is applied twice, to p e^(-2 epsilon).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from discreet.privacy.accounting.gaussian import largest_mu
    >>> bound = GaussianBound(Fraction(largest_mu(1.0, 1e-6)) ** 2)
    >>> round(1e6 * tail_probability(bound, 1.0, Neighbours.REPLACE_ONE))
    52
    """
    steps = _steps(neighbours)

    def holds(log_chance: float) -> bool:
        """Say whether no p from here on solves the inequality: T is concave."""
        reached = log_chance - steps * epsilon
        for _ in range(steps):
            reached = _log_trade_off(bound, reached)
        return reached <= log_chance

    low, high = math.log(SMALLEST_REPORTED), 0.0
    while high - low > LOG_ERROR:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return min(1.0, math.exp(high) * (1 + LOG_ERROR))


def _log_trade_off(bound: GaussianBound, log_chance: float) -> float:
    """Bound ln P(S) by ln Q(S) for every set S of releases.

    P <= e^exponent P' and Q' <= e^(eta - exponent) Q with a Gaussian pair P', Q' (section 4).
    """
    exponent = float_up(bound.exponent)
    log_mass = min(0.0, log_chance + float_up(bound.eta - bound.exponent))
    moved = float(ndtri_exp(log_mass)) + sqrt_up(bound.mu_squared)
    reached = math.exp(float(log_ndtr(moved)) + exponent + LOG_ERROR)
    return math.log(min(1.0, max(reached + float_up(bound.extra_delta), SMALLEST_REPORTED)))


GUESSED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, guesses it right with a probability of {right} after reading "
    "this release."
)
BELIEVED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, can become {sure} sure of it by reading this release."
)
MOSTLY_BELIEVED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, can become {sure} sure of it by reading this release, except "
    "with probability at most {beyond}."
)


def explain_belief(guarantee: Guarantee, kind: ReleaseKind, tell: Language = ENGLISH) -> str:
    """Say in one sentence what somebody can learn about one person from a release."""
    if guarantee.tail is None:
        right = best_guess(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
        return tell.of(kind, GUESSED, right=show_probability_bound(right, tell))
    sure = show_probability_bound(surest_belief(guarantee.epsilon, guarantee.neighbours), tell)
    if not guarantee.tail:
        return tell.of(kind, BELIEVED, sure=sure)
    return tell.of(kind, MOSTLY_BELIEVED, sure=sure, beyond=show_chance(guarantee.tail))


def show_probability_bound(share: float, tell: Language = ENGLISH) -> str:
    """Return a probability that bounds another, as a percentage."""
    if share > 0.999:
        return tell("more than 99.9%")
    # Nobody is to read 100%: that would be no bound.
    percent = f"{100 * share:.0f}" if share < 0.99 else f"{math.ceil(1000 * share) / 10:.1f}"
    return tell("at most about {percent}%", percent=percent)


def show_chance(chance: float) -> str:
    """Return two digits of a small probability, rounded up.

    Examples
    --------
    >>> show_chance(0.0000512)
    '5.2e-05'
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    return f"{min(1.0, math.ceil(chance / scale - 1e-9) * scale):.2g}"
