"""Exponentials known exactly: integer bounds that tighten to any number of bits.

In: a rational. Out: integers (low, high) with low <= 2^bits value <= high, a few units apart.
Only Python's unlimited integers are used, and every rounding goes in the direction that keeps the
bound true, so a comparison with random bits that these bounds decide is decided correctly.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

__all__ = ["enclose_exponential", "enclose_gaussian_block", "enclose_laplace_block", "enclose_lie"]


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
