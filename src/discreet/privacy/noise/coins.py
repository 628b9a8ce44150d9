"""Coins whose probability is an exponential, thrown exactly and many at a time.

In: rational exponents and a source of random bits. Out: True or False with exactly the
probability named. No float is used; sixteen random bits decide most coins, and where they do not,
more are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadUsage
from discreet.privacy.noise.enclosures import enclose_lie
from discreet.secure import LazyUniform, RandomSource, coins_below, enclose_ratio

__all__ = [
    "DIGIT_BITS",
    "Digits",
    "as_fraction",
    "check_coin",
    "draw_digits",
    "exponential_coins",
    "flip_coins",
]

DIGIT_BITS = 16  # of a uniform number drawn at first; one exponential coin in 2^15 needs more
Digits: TypeAlias = NDArray[np.uint16]


def flip_coins(epsilon: Fraction, size: int, source: RandomSource) -> NDArray[np.bool_]:
    """Draw coins that are True ("lie") with probability exactly 1 / (1 + e^epsilon).

    Parameters
    ----------
    epsilon : Fraction
        The budget of one answer in randomized response, a rational >= 0.
    size : int
        How many.
    source : RandomSource
        Where the bits come from.
    """
    return coins_below(source, partial(enclose_lie, check_coin(epsilon)), size)


def check_coin(epsilon: Fraction) -> Fraction:
    """Return the epsilon of one answer, or refuse one that no coin has."""
    budget = as_fraction(epsilon, "epsilon")
    if not 0 <= budget <= 10_000:
        raise BadUsage(
            f"Randomized response needs epsilon from 0 to 10000; found {float(budget):g}. "
            "Below 0 it would lie more often than not."
        )
    return budget


def exponential_coins(
    digits: Digits, exact: Callable[[int], tuple[int, int]], source: RandomSource
) -> NDArray[np.bool_]:
    """Return coins that are True with probability exp(-g), for each g in [0, 1].

    Throw coins of probability g/1, g/2, g/3, ... until one fails. At least n succeed with
    probability g^n / n!, so the first to fail has an odd number with probability
    1 - g + g^2/2! - ... = exp(-g) (von Neumann; Forsythe; Canonne, Kamath and Steinke 2020).

    Coin n is "U < g/n". With `digits` d <= 2^16 g < d + 2, floor(2^16 g / n) is d // n or one
    more; so the first 16 bits u of U decide unless u - d // n is 0 or 1 (in wrapping 16-bit
    arithmetic, where a needless doubt does no harm), and then `exact(at)`, g as numerator and
    denominator, decides with as many further bits as it takes.
    """
    verdict = np.ones(digits.size, dtype=np.bool_)
    alive = np.arange(digits.size)
    n = 1
    while alive.size:
        thrown = draw_digits(alive.size, source)
        limit = digits if n == 1 else digits // np.uint16(n)
        success = thrown < limit
        for at in np.flatnonzero(thrown - limit <= 1):
            numerator, denominator = exact(int(alive[at]))
            number = LazyUniform(source, int(thrown[at]), DIGIT_BITS)
            success[at] = number.is_below(enclose_ratio(numerator, denominator * n))
        if n % 2 == 0:
            verdict[alive[~success]] = False
        on = np.flatnonzero(success)
        alive, digits, n = alive[on], digits[on], n + 1
    return verdict


def draw_digits(n: int, source: RandomSource) -> Digits:
    """Return n independent uniform 16-bit digits."""
    return source.words((n + 3) // 4).view(np.uint16)[:n]


def as_fraction(value: Fraction, name: str) -> Fraction:
    """Return an exact number as a Fraction; refuse floats, whose digits nobody chose."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise BadUsage(
            f"{name} must be a Fraction or an int; found {type(value).__name__}. The accountant "
            "and the sampler must see the same exact number: round up to a Fraction first."
        )
    return Fraction(value)
