"""Coins whose probability is an exponential, thrown exactly and many at a time.

In: rational exponents and a source of random bits. Out: True or False with exactly the
probability named. No float is used; sixteen random bits decide most coins, and where they do not,
more are drawn. They are compared with integers (low, high), low <= 2^bits value <= high, that lie
a few units apart at any number of bits: Python's integers are unlimited, and every rounding goes in
the direction that keeps the bound true, so what the bounds decide is decided correctly.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadUsage
from discreet.secure import LazyUniform, RandomSource, coins_below, enclose_ratio

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


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


@lru_cache(maxsize=1024)
def enclose_exponential(rate: Fraction, bits: int) -> tuple[int, int]:
    """Bound 2^bits exp(-rate) for a rational rate >= 0.

    exp(-rate) = exp(-y)^(2^s) with y = rate / 2^s <= 1, where the series alternates with falling
    terms. Each squaring at most doubles the error and adds one unit of the working precision;
    2 s + 16 further bits leave less than one unit of the bits asked for.
    """
    squarings = (rate.numerator // rate.denominator).bit_length()
    work = bits + 2 * squarings + 16
    low, high = _alternating_series(rate / (1 << squarings), work)
    for _ in range(squarings):
        low = (low * low) >> work
        high = _ceil_div(high * high, 1 << work)
    return low >> (work - bits), _ceil_div(high, 1 << (work - bits))


def _alternating_series(y: Fraction, work: int) -> tuple[int, int]:
    """Bound 2^work exp(-y) for 0 <= y <= 1 by sum of (-y)^n / n!."""
    term_low = term_high = low = high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = term_low * y.numerator // (y.denominator * n)
        term_high = _ceil_div(term_high * y.numerator, y.denominator * n)
        if n % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # What was left out has the size of at most the last term used.
    return max(low - term_high, 0), high + term_high


@lru_cache(maxsize=64)
def _gaussian_sums(bits: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, int]]:
    """Bound sum over j <= k of exp(-j^2/2), for each k that matters at these bits, and for all k.

    It stops at the first J with exp(-J^2/2) below one unit; what follows sums to less than
    2 exp(-J^2/2), hence to at most two units.
    """
    sums: list[tuple[int, int]] = []
    low = high = 0
    while True:
        weight = enclose_exponential(Fraction(len(sums) ** 2, 2), bits)
        low, high = low + weight[0], high + weight[1]
        sums.append((low, high))
        if weight[1] <= 1:
            return tuple(sums), (low, high + 2)


def enclose_gaussian_block(k: int, bits: int) -> tuple[int, int]:
    """Bound 2^bits P[K <= k] where P[K = k] is proportional to exp(-k^2/2), k = 0, 1, ..."""
    work = bits + 16  # the sums' errors of some 20 units shrink below one unit
    sums, (total_low, total_high) = _gaussian_sums(work)
    low, high = sums[k] if k < len(sums) else (sums[-1][0], total_high)
    return (low << bits) // total_high, min(_ceil_div(high << bits, total_low), 1 << bits)


def enclose_laplace_block(k: int, bits: int) -> tuple[int, int]:
    """Bound 2^bits P[K <= k] where P[K = k] is proportional to exp(-k): 1 - exp(-(k + 1))."""
    low, high = enclose_exponential(Fraction(k + 1), bits)
    return max((1 << bits) - high, 0), (1 << bits) - low


def enclose_lie(epsilon: Fraction, bits: int) -> tuple[int, int]:
    """Bound 2^bits / (1 + exp(epsilon)) = 2^bits e / (1 + e) with e = exp(-epsilon)."""
    work = bits + 8
    low, high = enclose_exponential(epsilon, work)
    one = 1 << work
    return (low << bits) // (one + low), _ceil_div(high << bits, one + high)
