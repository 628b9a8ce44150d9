"""The operating system's randomness: the one door to it.

In: how many random 64-bit words are wanted. Out: words, and the exact uniform draws made of them:
ranks within groups, and coins. Nothing here may touch a floating-point number, ``numpy.random`` or
the answers, and every draw has exactly the distribution it names: where a fixed number of random
bits cannot decide, more bits are drawn.

`SystemSource` is for releases. `SeededSource` is for tests; whatever is made from it is marked by
``is_private = False`` and must never be called private.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import BadUsage

# How a real number in [0, 1] is known exactly: asked for b bits, it answers integers
# (low, high) with low <= 2^b value <= high that stay within a few units for every b.
Enclosure: TypeAlias = Callable[[int], tuple[int, int]]

_CHUNK_WORDS = 1 << 17  # 1 MiB a call: past this a longer call to the system gains no speed
_WORD_BITS = 64
_DIGIT_BITS = 32  # the first digit of a coin; one coin in 2^32 needs more than it


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
        low, rest = divmod(numerator << bits, denominator)
        return low, low + (rest > 0)

    return enclose


def coins_below(source: RandomSource, threshold: Enclosure, size: int) -> NDArray[np.bool_]:
    """Return independent coins that are True with exactly the probability `threshold`.

    A coin is True when a uniform number falls below the threshold. Its first 32 bits decide
    for the whole array at once, unless they equal the threshold's own; then one coin at a time
    draws further bits.
    """
    size = _checked_size(size)
    low, high = threshold(_DIGIT_BITS)
    coins = np.empty(size, dtype=np.bool_)
    for start in range(0, size, 2 * _CHUNK_WORDS):
        piece = coins[start : start + 2 * _CHUNK_WORDS]
        digits = source.words((piece.size + 1) // 2).view(np.uint32)[: piece.size]
        np.less(digits, low, out=piece)
        for at in np.flatnonzero((digits >= low) & (digits < high)):
            number = LazyUniform(source, int(digits[at]), _DIGIT_BITS)
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
