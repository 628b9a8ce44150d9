"""A cap keeps the smallest keys of each person, in both ways, and never lets a tie decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers import select as subsets
from discreet.answers.pack import build_rows, pack_rows
from discreet.secure import SeededSource


def draw(persons, items, missing, seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 2, size=(persons, items)).astype(np.int8)
    answers[rng.random(answers.shape) < missing] = -1
    return answers


def make_both(answers):
    person, item = np.nonzero(answers >= 0)
    right = answers[person, item] == 1
    return pack_rows(answers), build_rows(person, item, right, *answers.shape)


def cap_both_ways(held, most, seed):
    capped = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsets, "_CELLS", 4000)
        for compiled in (False, True):
            patch.setattr(subsets, "worth_compiling", lambda _, way=compiled: way)
            kept = subsets.cap_answers(held, most, SeededSource(seed))
            capped.append(kept.rows(0, held.n_persons))
    return capped


@settings(max_examples=30, deadline=None)
@given(
    persons=st.integers(0, 1300),
    items=st.integers(1, 150),
    missing=st.sampled_from([0.0, 0.5, 0.95]),
    most=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_both_ways_keep_the_same_answers(persons, items, missing, most, seed):
    answers = draw(persons, items, missing, seed)
    given_ = answers >= 0
    for held in make_both(answers):
        plain, compiled = cap_both_ways(held, most, seed)
        assert np.array_equal(plain, compiled)
        assert np.array_equal((plain >= 0).sum(axis=1), np.minimum(given_.sum(axis=1), most))
        assert np.array_equal(plain[plain >= 0], answers[plain >= 0])


def count_pairs_kept(form, compiled, keys, monkeypatch):
    """Keep 2 of 5 answers of 20,000 persons; return how often each pair was kept."""
    monkeypatch.setattr(subsets, "worth_compiling", lambda _: compiled)
    monkeypatch.setattr(subsets, "draw_keys", keys)
    held = make_both(np.ones((20_000, 5), dtype=np.int8))[form == "rows"]
    kept = subsets.cap_answers(held, 2, SeededSource(3)).rows(0, 20_000) >= 0
    pairs = np.bincount(kept @ (1 << np.arange(5)), minlength=32)
    return pairs[[sum(pair) for pair in ((1, 2), (1, 16), (8, 16))]], int((pairs > 0).sum())


def coarse_keys(source, count):
    """Return keys from 0 to 3 only: among 5 answers ties are everywhere."""
    return (source.words(count) & np.uint64(3)).astype(np.uint32)


@pytest.mark.parametrize("form", ["planes", "rows"])
@pytest.mark.parametrize("compiled", [False, True])
def test_ties_are_drawn_again_so_that_coarse_keys_stay_fair(form, compiled, monkeypatch):
    some, kinds = count_pairs_kept(form, compiled, coarse_keys, monkeypatch)
    assert kinds == 10
    assert np.abs(some - 2000).max() < 212  # 5 standard deviations


@pytest.mark.parametrize("form", ["planes", "rows"])
@pytest.mark.parametrize("compiled", [False, True])
def test_ties_broken_by_position_would_be_noticed(form, compiled, monkeypatch):
    def by_position(source, count):
        return coarse_keys(source, count) * np.uint32(8) + np.arange(count, dtype=np.uint32) % 5

    some, _ = count_pairs_kept(form, compiled, by_position, monkeypatch)
    assert np.abs(some - 2000).max() > 212


@pytest.mark.parametrize("compiled", [False, True])
def test_only_persons_with_too_many_answers_draw_and_only_undecided_ones_again(
    compiled, monkeypatch
):
    wanted = []

    def keys(source, count):
        wanted.append(count)
        own = np.arange(count, dtype=np.uint32)
        if len(wanted) == 1:
            own[:4] = [7, 7, 0xFFFFFFFF, 0]  # the first person: 0 stays, then 7 or 7
        return own

    monkeypatch.setattr(subsets, "worth_compiling", lambda _: compiled)
    monkeypatch.setattr(subsets, "draw_keys", keys)
    answers = np.ones((3, 5), dtype=np.int8)
    answers[0, 4] = answers[1, :3] = -1
    capped = subsets.cap_answers(pack_rows(answers), 2, SeededSource(0)).rows(0, 3)
    assert wanted == [4 + 5, 4]
    assert (capped >= 0).tolist() == [
        [True, True, False, False, False],
        [False, False, False, True, True],
        [True, True, False, False, False],
    ]


@pytest.mark.parametrize("key", [0, 0xFFFFFFFF])
def test_equal_keys_at_either_end_do_not_decide(key):
    from discreet.counts.cap_kernels import _split_keys

    keys = np.full(3, key, dtype=np.uint32)
    assert _split_keys(keys, 2) == -1
    keys[1] = 5
    assert (_split_keys(keys, 2) >= 0) == (key == 0)
