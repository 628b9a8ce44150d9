"""Secure randomness from the operating system, and exact draws from it.

In: how many random 64-bit words, ranks or coins are wanted. Out: words; ranks within groups; coins,
also those whose probability is an exponential. No draw may touch a floating-point number,
``numpy.random`` or the answers, and each has exactly the distribution it names: where a fixed
number of random bits cannot decide, more bits are drawn. They are compared with integers
(low, high), low <= 2^bits value <= high, that lie a few units apart at any number of bits: Python's
integers are unlimited, and every rounding goes in the direction that keeps the bound true, so what
the bounds decide is decided correctly.

`SystemSource` is for releases. `SeededSource` is for tests; whatever is made from it is marked by
``is_private = False`` and must never be called private.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import BadUsage

# How a real number in [0, 1] is known exactly: asked for b bits, it answers integers
# (low, high) with low <= 2^b value <= high that stay within a few units for every b.
Enclosure: TypeAlias = Callable[[int], tuple[int, int]]

_CHUNK_WORDS = 1 << 17  # 1 MiB a call: past this a longer call to the system gains no speed
_WORD_BITS = 64
_COIN_BITS = 32  # the first digit of a coin; one coin in 2^32 needs more than it


class RandomSource(Protocol):
    """Where random bits come from, and whether what is made of them may be called private."""

    @property
    def is_private(self) -> bool:
        """True only for randomness that nobody can predict or repeat."""

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """Return n independent uniform 64-bit words (the array may be read-only)."""


class SystemSource:
    """The operating system's secure generator.

    It keeps no buffer and no state: each call asks the system again. So a forked child cannot
    repeat its parent's bits and threads cannot share them.

    Examples
    --------
    >>> SystemSource().words(3).shape
    (3,)
    """

    is_private = True

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """Return n words from ``os.urandom``, asked for in bounded pieces."""
        if n <= _CHUNK_WORDS:
            return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        out = np.empty(n, dtype=np.uint64)
        for start in range(0, n, _CHUNK_WORDS):
            piece = out[start : start + _CHUNK_WORDS]
            piece[:] = np.frombuffer(os.urandom(piece.nbytes), dtype=np.uint64)
        return out


class SeededSource:
    """A repeatable stream for tests: SHAKE-256 of the seed and a call counter.

    Not private: whoever knows the seed can subtract the noise.

    Parameters
    ----------
    seed : int
        Any integer; equal seeds asked for equal numbers of words give equal words.

    Examples
    --------
    >>> bool((SeededSource(1).words(4) == SeededSource(1).words(4)).all())
    True
    """

    is_private = False

    def __init__(self, seed: int) -> None:
        self._key = str(operator.index(seed)).encode()
        self._calls = 0
        self._lock = threading.Lock()

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """Return the next n words; concurrent callers get different ones."""
        with self._lock:
            call, self._calls = self._calls, self._calls + 1
        stream = hashlib.shake_256(b"discreet test stream %s %d" % (self._key, call))
        return np.frombuffer(stream.digest(8 * n), dtype="<u8").astype(np.uint64, copy=False)


class KeyedSource:
    """A stream that a drawn key determines: SHAKE-256 of the key and a call counter.

    Without the key nobody can tell it from random. Two of one key give the same words.

    Parameters
    ----------
    key : bytes
        32 secret bytes, from :func:`draw_key`.
    is_private : bool
        Whether nobody can predict or repeat the key.
    """

    def __init__(self, key: bytes, *, is_private: bool) -> None:
        self.is_private, self._key, self._calls = is_private, key, 0

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """Return the next n words."""
        call, self._calls = self._calls, self._calls + 1
        stream = hashlib.shake_256(b"discreet stream" + self._key + call.to_bytes(8, "little"))
        return np.frombuffer(stream.digest(8 * n), dtype="<u8").astype(np.uint64, copy=False)


def draw_key(source: RandomSource) -> bytes:
    """Draw 32 bytes."""
    return source.words(4).tobytes()


class LazyUniform:
    """A uniform real number in [0, 1) whose bits are drawn only when a question needs them.

    Parameters
    ----------
    source : RandomSource
        Where further bits come from.
    prefix, bits : int
        The bits drawn so far: the number lies in [prefix, prefix + 1) / 2^bits.
    """

    def __init__(self, source: RandomSource, prefix: int = 0, bits: int = 0) -> None:
        self._source = source
        self._prefix = prefix
        self._bits = bits

    def is_below(self, threshold: Enclosure) -> bool:
        """Say whether the number is below the threshold, drawing bits until that is certain.

        Each further word leaves it open with a probability of a few times 2^-64.
        """
        while True:
            low, high = threshold(self._bits)
            if self._prefix + 1 <= low:
                return True
            if self._prefix >= high:
                return False
            self._prefix = (self._prefix << _WORD_BITS) | int(self._source.words(1)[0])
            self._bits += _WORD_BITS


def enclose_ratio(numerator: int, denominator: int) -> Enclosure:
    """Return the enclosure of a ratio of integers: its digits rounded down and up."""

    def enclose(bits: int) -> tuple[int, int]:
        low, remainder = divmod(numerator << bits, denominator)
        return low, low + (remainder > 0)

    return enclose


def coins_below(source: RandomSource, threshold: Enclosure, size: int) -> NDArray[np.bool_]:
    """Return independent coins that are True with exactly the probability `threshold`.

    A coin is True when a uniform number falls below the threshold. Its first 32 bits decide
    for the whole array at once, unless they equal the threshold's own; then one coin at a time
    draws further bits.
    """
    size = _checked_size(size)
    low, high = threshold(_COIN_BITS)
    coins = np.empty(size, dtype=np.bool_)
    for start in range(0, size, 2 * _CHUNK_WORDS):
        piece = coins[start : start + 2 * _CHUNK_WORDS]
        digits = source.words((piece.size + 1) // 2).view(np.uint32)[: piece.size]
        np.less(digits, low, out=piece)
        for at in np.flatnonzero((digits >= low) & (digits < high)):
            number = LazyUniform(source, int(digits[at]), _COIN_BITS)
            piece[at] = number.is_below(threshold)
    return coins


def random_ranks(source: RandomSource, starts: ArrayLike) -> NDArray[np.int64]:
    """Return each entry's rank in a uniformly random order of its own group.

    Keeping the entries with rank below q keeps a uniformly random q of each group, chosen
    independently between groups: the contribution cap.

    Parameters
    ----------
    source : RandomSource
        Where the words come from.
    starts : array of int, length groups + 1
        Group g holds the entries starts[g], ..., starts[g + 1] - 1; starts[0] is 0.

    Examples
    --------
    >>> ranks = random_ranks(SystemSource(), [0, 3, 3, 5])
    >>> sorted(ranks[:3].tolist()), sorted(ranks[3:].tolist())
    ([0, 1, 2], [0, 1])
    """
    edges = np.asarray(starts, dtype=np.int64)
    if edges.ndim != 1 or not edges.size or edges[0] != 0 or (np.diff(edges) < 0).any():
        raise BadUsage(
            "Group starts must be one row of whole numbers that begins with 0 and never falls, "
            f"with the number of entries at its end; found shape {edges.shape}."
        )
    groups = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    order, sorted_groups = _random_order(source, groups)
    ranks = np.empty(groups.size, dtype=np.int64)
    ranks[order] = np.arange(groups.size) - edges[sorted_groups]
    return ranks


def _random_order(
    source: RandomSource, groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order entries by group and, within a group, by an independent random 64-bit key.

    Equal keys in a group would favour the earlier entry, so all keys are then drawn again.
    "No equal keys" does not change when a group's keys are swapped, hence given it every order
    within every group is equally likely, independently of the other groups.
    """
    while True:
        keys = source.words(groups.size)
        order = np.lexsort((keys, groups))
        keys, sorted_groups = keys[order], groups[order]
        if not ((keys[1:] == keys[:-1]) & (sorted_groups[1:] == sorted_groups[:-1])).any():
            return order, sorted_groups


def _checked_size(size: int) -> int:
    count = operator.index(size)
    if count < 0:
        raise BadUsage(f"The number of draws must not be negative; found {count}.")
    return count


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
    unit = 1 << work
    return (low << bits) // (unit + low), _ceil_div(high << bits, unit + high)
