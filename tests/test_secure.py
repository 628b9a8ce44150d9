"""Randomness: exact uniform draws, and sources that fork and thread safely."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import BadUsage
from discreet.secure import (
    LazyUniform,
    RandomSource,
    SeededSource,
    SystemSource,
    coins_below,
    enclose_ratio,
    random_ranks,
)
from refusals import refused


class ScriptedSource:
    """Hands out given words, so that a test knows what must come of them."""

    is_private = False

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def words(self, n: int, /) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        if len(taken) < n:
            raise LookupError("the script has no words left")
        return np.array(taken, dtype=np.uint64)


def evenness(counts: NDArray[np.int64]) -> float:
    """The chi-square p-value of "all equally likely"."""
    return float(stats.chisquare(counts).pvalue)


def bernoulli(source: RandomSource, a: int, b: int, size: int) -> NDArray[np.bool_]:
    return coins_below(source, enclose_ratio(a, b), size)


def shuffle(source: RandomSource, n: int) -> list[int]:
    """The order of one group's entries."""
    return np.argsort(random_ranks(source, [0, n])).tolist()


# ------------------------------------------------------------------ sources


def test_the_system_source_is_private_and_never_repeats() -> None:
    source = SystemSource()
    assert source.is_private
    words = np.concatenate([source.words(1000) for _ in range(20)])
    assert np.unique(words).size == words.size


def test_long_requests_are_filled_to_the_last_word() -> None:
    words = SystemSource().words((1 << 18) + 3)
    assert words.dtype == np.uint64
    assert words.shape == ((1 << 18) + 3,)
    assert np.unique(words).size == words.size  # a piece left unfilled would repeat


def test_the_seeded_source_repeats_itself_and_is_marked_not_private() -> None:
    one, two, other = SeededSource(7), SeededSource(7), SeededSource(8)
    first = one.words(100)
    assert not one.is_private
    assert np.array_equal(first, two.words(100))
    assert not np.array_equal(first, one.words(100))
    assert not np.array_equal(first, other.words(100))


def test_every_bit_of_the_seeded_stream_is_fair() -> None:
    bits = np.unpackbits(SeededSource(3).words(200_000).view(np.uint8)).reshape(-1, 64)
    z = (bits.sum(axis=0, dtype=np.int64) - 100_000) / np.sqrt(50_000)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(5)], ids=["system", "seeded"])
def test_threads_never_get_the_same_words(source: RandomSource) -> None:
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(source.words, [500] * 200))
    words = np.concatenate(parts)
    assert np.unique(words).size == words.size


FORKING = """
import os, sys
import numpy as np
from discreet.secure import SystemSource

class Buffered:
    def __init__(self):
        self.buffer = SystemSource().words(64)
    def words(self, n):
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

source = {"system": SystemSource, "buffered": Buffered}[sys.argv[1]]()
source.words(2)
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.write(1, f"{source.words(1)[0]}\\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
os.write(1, f"{source.words(1)[0]}\\n".encode())
"""


def _words_after_fork(kind: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", FORKING, kind], capture_output=True, text=True, check=True
    )
    return run.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_children_draw_different_words() -> None:
    assert len(set(_words_after_fork("system"))) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_the_fork_check_catches_a_source_with_a_buffer() -> None:
    assert len(set(_words_after_fork("buffered"))) == 1


# ------------------------------------------------------------------ coins


@given(
    st.integers(0, 2**70), st.integers(1, 2**70), st.lists(st.integers(0, 2**64 - 1), min_size=4)
)
def test_a_lazy_number_compares_as_its_bits_say(a: int, b: int, words: list[int]) -> None:
    numerator, denominator = min(a, b), max(a, b, 1)
    number = 0
    for word in words[:4]:
        number = (number << 64) | word
    source = ScriptedSource(words[:4])
    bound = enclose_ratio(numerator, denominator)
    try:
        below = LazyUniform(source).is_below(bound)
    except LookupError:  # 256 bits agree with the threshold
        assert number == (numerator << 256) // denominator
    else:
        assert below == (number * denominator < numerator << 256)


def test_a_coin_that_its_first_digit_leaves_open_draws_more_bits() -> None:
    third = 0x5555_5555  # the first 32 bits of 1/3
    tie = third | (third << 32)
    open_coins = bernoulli(ScriptedSource([tie, 0x5555_5555_5555_5554, 2**64 - 1]), 1, 3, 2)
    assert open_coins.tolist() == [True, False]


def test_coins_decided_by_the_first_digit_draw_no_more() -> None:
    below, above = 0x5555_5554, 0x5555_5556
    assert bernoulli(ScriptedSource([below | (below << 32)]), 1, 3, 2).tolist() == [True, True]
    assert bernoulli(ScriptedSource([above | (above << 32)]), 1, 3, 2).tolist() == [False, False]


@pytest.mark.parametrize(("a", "b"), [(1, 2), (1, 3), (2, 7), (999, 1000), (1, 10**12)])
def test_coins_fall_as_often_as_their_ratio_says(a: int, b: int) -> None:
    n = 400_000
    heads = int(bernoulli(SeededSource(a + b), a, b, n).sum())
    assert stats.binomtest(heads, n, a / b).pvalue > 1e-4


def test_certain_and_impossible_coins_are_certain_and_impossible() -> None:
    zeros, ones = [0] * 8, [2**64 - 1] * 8
    for words in (zeros, ones):
        assert not bernoulli(ScriptedSource(words), 0, 5, 3).any()
        assert bernoulli(ScriptedSource(words), 5, 5, 3).all()


def test_coins_are_filled_beyond_one_chunk() -> None:
    coins = coins_below(SeededSource(1), enclose_ratio(1, 2), 600_001)
    assert abs(int(coins[-100_000:].sum()) - 50_000) < 800


def test_a_negative_number_of_draws_is_refused() -> None:
    with refused(BadUsage, "number_draws_must_not_negative"):
        bernoulli(SystemSource(), 1, 2, -1)


# ------------------------------------------------------------------ orders


def test_all_orders_of_four_are_equally_likely() -> None:
    source = SeededSource(2)
    place = {order: at for at, order in enumerate(permutations(range(4)))}
    seen = [place[tuple(shuffle(source, 4))] for _ in range(12_000)]
    assert evenness(np.bincount(seen, minlength=24)) > 1e-3


@given(st.integers(0, 50))
def test_an_order_holds_everything_once(n: int) -> None:
    assert sorted(shuffle(SystemSource(), n)) == list(range(n))


def test_equal_keys_are_drawn_again() -> None:
    tied, clear = [5, 9, 5], [3, 1, 2]
    assert shuffle(ScriptedSource(tied + clear), 3) == [1, 2, 0]


def test_equal_keys_in_different_groups_do_no_harm() -> None:
    source = ScriptedSource([5, 5, 5, 1])
    assert random_ranks(source, [0, 1, 2, 4]).tolist() == [0, 0, 1, 0]
    assert not source.left


@given(st.lists(st.integers(0, 6), max_size=8))
def test_ranks_number_each_group_from_zero(sizes: list[int]) -> None:
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ranks = random_ranks(SystemSource(), starts)
    for first, last in pairwise(starts):
        assert sorted(ranks[first:last].tolist()) == list(range(last - first))


def test_a_cap_keeps_every_subset_of_a_group_equally_often_and_independently() -> None:
    groups = 40_000
    ranks = random_ranks(SeededSource(4), np.arange(groups + 1) * 4).reshape(groups, 4)
    subset = (ranks < 2) @ np.array([1, 2, 4, 8])
    counts = np.bincount(subset, minlength=16)[[3, 5, 6, 9, 10, 12]]
    assert counts.sum() == groups
    assert evenness(counts) > 1e-3
    neighbours = np.bincount((ranks[:-1, 0] * 4 + ranks[1:, 0]).ravel(), minlength=16)
    assert evenness(neighbours) > 1e-3


@pytest.mark.parametrize("starts", [[], [1, 2], [0, 3, 2], [[0, 1]]])
def test_group_starts_that_make_no_groups_are_refused(starts: list[int]) -> None:
    with refused(BadUsage, "group_starts_must_one"):
        random_ranks(SystemSource(), starts)
