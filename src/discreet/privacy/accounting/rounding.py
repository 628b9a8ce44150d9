"""Rounding with a direction: exact fractions in, floats and short fractions out.

Every number that an accountant passes on is rounded toward the side that costs privacy nothing:
noise up, spends up, what is left down.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["float_down", "float_up", "grid_step", "round_up", "sqrt_up"]


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
