"""How one person's scores spread, in whole numbers.

In: how many answers a person gave in each category. Out: the person's contribution to sums of
moments, on an integer grid. With ``z = 2 x / steps - 1`` and ``h_r`` the mean over all sets of r
answers of the product of z, the moments are

    T2 = 2 h2 - 1        T3 = 4 h3 - 3 h1        T4 = 8 h4 - 8 h2 + 1

Their expectation given the ability does not depend on how many answers there are. They are
polynomials in the means a, b, c, d of z, z^2, z^3 and z^4, so a person's contribution is a sum of
twelve products of these with factors that depend on the number of answers alone.

Everything is 64-bit integers, the same for a person whoever else is in the data: means and
products are multiples of 2^-30, factors are rounded once and for all from exact fractions, and
:func:`bound_rounding` says how far all of that can be from the exact number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.types import Int64Array

ONE_BITS = 30
ONE = 1 << ONE_BITS
"""What stands for 1 in means and products: two of them can be multiplied in 64 bits."""

FACTOR_BITS = 6
"""Further bits of a factor, so that twelve rounded ones stay far below half a grid step."""

PRODUCTS = ("1", "a", "b", "c", "d", "aa", "ab", "ac", "bb", "aaa", "aab", "aaaa")
PRODUCT_ERRORS = (0, 1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 7)
"""How far each product can be off, in units of 2^-30 (docs/privacy.md)."""

MOMENTS = 3


def power_table(groups: Sequence[tuple[int, int]]) -> Int64Array:
    """Return z, z^2, z^3, z^4 of each (steps, category), as multiples of 2^-30.

    Examples
    --------
    >>> (power_table([(2, 0), (2, 1), (4, 3)]) / ONE).tolist()
    [[-1.0, 0.0, 0.5], [1.0, 0.0, 0.25], [-1.0, 0.0, 0.125], [1.0, 0.0, 0.0625]]
    """
    scores = [Fraction(2 * category - steps, steps) for steps, category in groups]
    return np.array([[round(ONE * z**power) for z in scores] for power in range(1, 5)], np.int64)


def multiply_means(counts: Int64Array, powers: Int64Array) -> Int64Array:
    """Return the twelve products of each person, ``[product, person]``.

    Parameters
    ----------
    counts
        ``[group, person]``: answers of a person in each (steps, category).
    powers
        Of the same groups, from :func:`power_table`.
    """
    answered = np.maximum(counts.sum(axis=0), 1)
    a, b, c, d = (_divide(power @ counts, answered) for power in powers)
    aa, ab, ac, bb = _multiply(a, a), _multiply(a, b), _multiply(a, c), _multiply(b, b)
    longer = _multiply(aa, a), _multiply(aa, b), _multiply(aa, aa)
    return np.stack([np.full_like(a, ONE), a, b, c, d, aa, ab, ac, bb, *longer])


def _divide(total: Int64Array, number: Int64Array) -> Int64Array:
    """Round a quotient to the nearest whole number."""
    return np.asarray((2 * total + number) // (2 * number))


def _multiply(one: Int64Array, other: Int64Array) -> Int64Array:
    return np.asarray((one * other + (ONE >> 1)) >> ONE_BITS)


def list_factors(answered: int) -> list[dict[str, Fraction]]:
    """Return, for each moment, what the products are multiplied with; fewer of few answers.

    Examples
    --------
    >>> {name: str(factor) for name, factor in list_factors(2)[0].items()}
    {'1': '-1', 'aa': '4', 'b': '-2'}
    """
    q, first, second, third = (Fraction(answered - less) for less in range(4))
    found = []
    if answered >= 2:
        h2 = {"aa": q / first, "b": -1 / first}
        found.append({"1": Fraction(-1), **_times(2, h2)})
    if answered >= 3:
        below = first * second
        h3 = {"aaa": q * q / below, "ab": -3 * q / below, "c": 2 / below}
        found.append({"a": Fraction(-3), **_times(4, h3)})
    if answered >= 4:
        below = first * second * third
        h4 = {"aaaa": q**3 / below, "aab": -6 * q * q / below, "bb": 3 * q / below}
        h4 |= {"ac": 8 * q / below, "d": -6 / below}
        found.append({"1": Fraction(1), **_times(8, h4), **_times(-8, h2)})
    return found


def _times(number: int, parts: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: number * part for name, part in parts.items()}


def round_factors(answered: int, scales: Sequence[Fraction]) -> Int64Array:
    """Return the factors of each moment times its scale, ``[moment, product]``, as integers."""
    table = np.zeros((len(scales), len(PRODUCTS)), dtype=np.int64)
    for row, scale, parts in zip(table, scales, list_factors(answered), strict=False):
        for name, part in parts.items():
            row[PRODUCTS.index(name)] = round(part * scale * 2**FACTOR_BITS)
    return table


def contribute(factors: Int64Array, answered: Int64Array, products: Int64Array) -> Int64Array:
    """Return each person's moments on the grid, ``[moment, person]``.

    ``factors`` is ``[answered, moment, product]``, and ``products`` those of persons who answered
    so many.
    """
    found = np.full((factors.shape[1], len(answered)), 1 << (ONE_BITS + FACTOR_BITS - 1))
    for moment, product in np.argwhere(factors.any(axis=0)):
        found[moment] += factors[:, moment, product][answered] * products[product]
    return np.asarray(found >> (ONE_BITS + FACTOR_BITS))


def bound_rounding(factors: Int64Array) -> list[Fraction]:
    """Say how far each moment of a person with these rounded factors is from exact, at most.

    In grid steps: products that are off, factors that are off by half a unit while a product is
    at most 1, and half a step of the last rounding. ``factors`` is ``[moment, product]``.
    """
    found = []
    for row in factors.tolist():
        if sum(map(abs, row)) >= 1 << (62 - ONE_BITS):
            raise OverflowError("the factors of a moment leave no room in 64 bits")
        products = sum(
            abs(factor) * error for factor, error in zip(row, PRODUCT_ERRORS, strict=True)
        )
        rounded = Fraction(len(row), 2) * ONE
        off = (products + rounded) / (1 << (ONE_BITS + FACTOR_BITS))
        found.append(off + Fraction(1, 2))
    return found
