"""Exact integer noise, the only source of noise.

In: a rational scale, a number of draws, a source of random bits. Out: int64 draws with exactly the
named distribution, discrete Gaussian or discrete Laplace, and whether they may be called private.
No float lies between a random bit and a draw, and nothing here sees the answers.

Write scale = p/q. Every integer i >= 0 lies in exactly one block k = floor(i / scale), at the
place x = i / scale - k in [0, 1) (after Karney 2016, "Sampling exactly from the normal
distribution", algorithm D). One candidate is made in five independent steps:

1. k with probability proportional to exp(-k^2/2) (Gaussian) or exp(-k) (Laplace);
2. j uniform on 0, ..., ceil(scale) - 1, so i = ceil(k scale) + j is uniform on the block's
   integers and up to one more, which x >= 1 betrays and which is rejected;
3. kept with probability exp(-k x) exp(-x^2/2) (Gaussian) or exp(-x) (Laplace);
4. a fair sign; 5. "minus zero" rejected, so that zero is not counted twice.

Steps 1 and 3 multiply to exp(-(k + x)^2/2) = exp(-i^2 / (2 scale^2)), or to exp(-(k + x)) =
exp(-i / scale), times a constant that is the same for all i: kept candidates have exactly the
distribution wanted. How each step is exact is said at its function;
`docs/decisions/0003-noise.md` has the whole argument.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import count
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadUsage
from discreet.secure import (
    DIGIT_BITS,
    Digits,
    LazyUniform,
    RandomSource,
    SystemSource,
    as_fraction,
    draw_digits,
    enclose_gaussian_block,
    enclose_laplace_block,
    exponential_coins,
)

# int64 cannot hold every integer. Blocks up to 255 of scales up to 2^54 fit: 256 * 2^54 < 2^63. A
# draw in a later block has probability exp(-256) < 2^-369 (Laplace) or below exp(-32768)
# (Gaussian); `_draw_blocks` then raises rather than wraps.
LARGEST_SCALE = 2**54
_LAST_BLOCK = 255
# Numerator and denominator below 2^62 keep j q + (ceil(k scale) q - k p) < 2 (p + q) in 64 bits.
_LARGEST_PART = 2**62

_CHUNK = 1 << 15  # candidates at a time: their arrays stay in a core's cache
_UNDECIDED = 255
_PLACE_BITS = 28  # of x kept for a coin's first digit: X^2 and (p << 28) fit into 64 bits

Blocks = Callable[[int, int], tuple[int, int]]
Words = NDArray[np.uint64]


def discrete_gaussian(sigma: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw integers with P[i] proportional to exp(-i^2 / (2 sigma^2)), exactly.

    Parameters
    ----------
    sigma : Fraction
        The scale itself (not its square), a positive rational up to 2^54 whose numerator and
        denominator are below 2^62. Every double from 2^-9 to 2^54 is such a rational.
    size : int
        How many.
    source : RandomSource
        Where the bits come from; the draws are private only if ``source.is_private``.

    Returns
    -------
    array of int64
        Independent draws. Memory beyond this array is a few megabytes for any size.

    Examples
    --------
    >>> from discreet.secure import SystemSource
    >>> discrete_gaussian(Fraction(5, 2), 1000, SystemSource()).dtype
    dtype('int64')
    """
    return _draw(
        _Shape(check_scale(sigma, "sigma"), enclose_gaussian_block, _keep_gaussian), size, source
    )


def discrete_laplace(scale: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw integers with P[i] proportional to exp(-abs(i) / scale), exactly.

    Parameters and range as for `discrete_gaussian`.
    """
    return _draw(
        _Shape(check_scale(scale, "scale"), enclose_laplace_block, _keep_laplace), size, source
    )


def check_scale(scale: Fraction, name: str) -> Fraction:
    """Return the scale as a Fraction in lowest terms, or refuse what cannot be drawn exactly."""
    value = as_fraction(scale, name)
    if not 0 < value <= LARGEST_SCALE or max(value.as_integer_ratio()) >= _LARGEST_PART:
        raise BadUsage(
            f"{name} must be a rational above 0 and at most 2^54 with numerator and denominator "
            f"below 2^62, so that exact draws fit into 64 bits; found {value}. Round it up to a "
            "rational with a smaller denominator, or use a coarser grid."
        )
    return value


@dataclass(frozen=True)
class _Candidates:
    """Candidates of step 1 and 2: block, offset in it, and x = above / p, exactly."""

    k: NDArray[np.uint8]
    offset: Words
    above: Words
    p: int


@dataclass(frozen=True)
class _Shape:
    """A distribution: its scale, the law of its blocks, and how a candidate is kept."""

    scale: Fraction
    blocks: Blocks
    keep: Callable[[_Candidates, RandomSource], NDArray[np.bool_]]


def _draw(shape: _Shape, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Fill an array with kept candidates, a chunk at a time.

    Candidates are independent and each is kept or not by itself, so the kept ones in order are
    independent draws; those beyond `size` are dropped whatever their value.
    """
    size = operator.index(size)
    if size < 0:
        raise BadUsage(f"The number of draws must not be negative; found {size}.")
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        # Some 71% are kept (63% for Laplace), so half as many again mostly finish in one round.
        draws = _kept(shape, min(_CHUNK, (size - filled) * 3 // 2 + 16), source)[: size - filled]
        out[filled : filled + draws.size] = draws
        filled += draws.size
    return out


def _kept(shape: _Shape, n: int, source: RandomSource) -> NDArray[np.int64]:
    """Make n candidates and return those that are kept, signed."""
    p, q = shape.scale.as_integer_ratio()
    k = _draw_blocks(shape.blocks, n, source)
    offset = _draw_offsets(-(-p // q), n, source)
    starts, beyond = _block_starts(p, q, int(k.max()))
    # x = (ceil(k p / q) + j) q / p - k, so p x = j q + (ceil(k p / q) q - k p).
    above = offset if q == 1 else offset * np.uint64(q) + beyond[k]
    inside = np.flatnonzero(above < p)
    candidates = _Candidates(k[inside], offset[inside], above[inside], p)
    chosen = np.flatnonzero(shape.keep(candidates, source))
    size = starts[candidates.k[chosen]] + candidates.offset[chosen].astype(np.int64)
    minus = _draw_bits(size.size, source)
    minus_zero = minus & (size == 0)
    draws: NDArray[np.int64] = np.where(minus, -size, size)[~minus_zero]
    return draws


def _block_starts(p: int, q: int, last: int) -> tuple[NDArray[np.int64], Words]:
    """Return ceil(k p / q), and how far it lies beyond k p in units of 1 / q, for k <= last."""
    starts = [-(-k * p // q) for k in range(last + 1)]
    beyond = [start * q - k * p for k, start in enumerate(starts)]
    return np.array(starts, dtype=np.int64), np.array(beyond, dtype=np.uint64)


def _draw_blocks(blocks: Blocks, n: int, source: RandomSource) -> NDArray[np.uint8]:
    """Step 1: k = the first block whose cumulative probability exceeds a uniform number.

    Sixteen bits of the number decide by a table, except in the few cells of 2^-16 that hold a
    boundary; there further bits are drawn and compared with ever tighter integer bounds.
    """
    digits = draw_digits(n, source)
    k = _block_table(blocks)[digits]
    for at in np.flatnonzero(k == _UNDECIDED):
        number = LazyUniform(source, int(digits[at]), DIGIT_BITS)
        block = next(b for b in count() if number.is_below(partial(blocks, b)))
        if block > _LAST_BLOCK:
            raise OverflowError(f"A draw fell into block {block}, beyond what 64 bits are sure of.")
        k[at] = block
    return k


@cache
def _block_table(blocks: Blocks) -> NDArray[np.uint8]:
    """Return for each 16-bit prefix the block it lies in whole, or that it is undecided."""
    table = np.full(1 << DIGIT_BITS, _UNDECIDED, dtype=np.uint8)
    first = k = 0
    while first < table.size:
        low, high = blocks(k, DIGIT_BITS)
        table[first:low] = k
        first, k = high, k + 1
    table.flags.writeable = False
    return table


def _draw_offsets(bound: int, n: int, source: RandomSource) -> Words:
    """Step 2: j uniform on 0, ..., bound - 1, or rarely a larger number, to be rejected.

    The 2^w words are cut into blocks of floor(2^w / bound): every j below the bound owns equally
    many. What lies past the last block gives j >= bound, hence x >= 1, and is rejected there.
    """
    if bound == 1:
        return np.zeros(n, dtype=np.uint64)
    if bound <= 1 << 20:
        halves = source.words((n + 1) // 2).view(np.uint32)[:n]
        return (halves // np.uint32(2**32 // bound)).astype(np.uint64)
    return source.words(n) // np.uint64(2**64 // bound)


def _draw_bits(n: int, source: RandomSource) -> NDArray[np.bool_]:
    octets = source.words((n + 63) // 64).view(np.uint8)
    return np.unpackbits(octets, count=n).view(np.bool_)


def _places(candidates: _Candidates) -> Words:
    """Return X with X <= 2^28 x < X + 5/4.

    When p needs more than 32 bits, both parts of x = a / p are cut to a', p' of p's top 32 bits:
    a' / (p' + 1) < x < (a' + 1) / p', and these differ by at most 2 / p' <= 2^-30.
    """
    cut = max(candidates.p.bit_length() - 32, 0)
    divisor = (candidates.p >> cut) + (1 if cut else 0)
    return ((candidates.above >> np.uint64(cut)) << np.uint64(_PLACE_BITS)) // np.uint64(divisor)


def _keep_gaussian(candidates: _Candidates, source: RandomSource) -> NDArray[np.bool_]:
    """Step 3: keep with probability exp(-x^2/2), then exp(-x) once for each of k blocks."""
    position, above, p = _places(candidates), candidates.above, candidates.p
    # 2^16 x^2/2 lies between X^2 / 2^41 and (X + 5/4)^2 / 2^41, which is less than 1 more.
    keep = exponential_coins(
        (position * position >> np.uint64(41)).astype(np.uint16),
        lambda at: (int(above[at]) ** 2, 2 * p * p),
        source,
    )
    alive = np.flatnonzero(keep)
    owner = np.repeat(alive, candidates.k[alive])
    passed = exponential_coins(
        _place_digits(position[owner]), lambda at: (int(above[owner[at]]), p), source
    )
    keep[owner[~passed]] = False
    return keep


def _keep_laplace(candidates: _Candidates, source: RandomSource) -> NDArray[np.bool_]:
    """Step 3: keep with probability exp(-x)."""
    above, p = candidates.above, candidates.p
    return exponential_coins(
        _place_digits(_places(candidates)), lambda at: (int(above[at]), p), source
    )


def _place_digits(position: Words) -> Digits:
    return (position >> np.uint64(_PLACE_BITS - DIGIT_BITS)).astype(np.uint16)


@runtime_checkable
class Noise(Protocol):
    """What a mechanism asks of a noise back end."""

    @property
    def name(self) -> str:
        """What the release's papers call it."""

    @property
    def is_private(self) -> bool:
        """Whether the randomness behind it is secret."""

    @property
    def source(self) -> RandomSource:
        """Where coins and contribution caps of the same release come from."""

    def gaussian(self, sigma: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussians."""

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace variables."""


@dataclass(frozen=True)
class ExactNoise:
    """The samplers of this library, by default on the operating system's randomness.

    Examples
    --------
    >>> noise = ExactNoise()
    >>> noise.is_private, noise.gaussian(Fraction(10), 3).shape
    (True, (3,))
    """

    source: RandomSource = field(default_factory=SystemSource)
    name: str = field(default="discreet", init=False)

    @property
    def is_private(self) -> bool:
        """Whether the randomness behind it is secret."""
        return self.source.is_private

    def gaussian(self, sigma: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussians; see `discrete_gaussian`."""
        return discrete_gaussian(sigma, size, self.source)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace variables; see `discrete_laplace`."""
        return discrete_laplace(scale, size, self.source)
