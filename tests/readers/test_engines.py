"""All ways of counting give the same integers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import jit as compiling
from discreet import threads
from discreet.answers.pack import build_rows, pack_rows
from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts
from discreet.counts import bit_planes as dense
from discreet.counts import bit_planes as weighted
from discreet.counts import pairs as memory
from discreet.counts import pairs as sparse
from discreet.counts import planes as store
from discreet.counts.kernels import group_persons
from discreet.errors import BadUsage
from refusals import refused


@pytest.fixture(params=["NumPy", "planes", "rows"])
def way(request, monkeypatch):
    """Force one way of counting, in small blocks, panels and strips so that there are many."""
    monkeypatch.setattr(store, "BLOCK_WORDS", 2)
    monkeypatch.setattr(dense, "PANEL_ROWS", 12)
    monkeypatch.setattr(weighted, "PANEL_ROWS", 12)
    monkeypatch.setattr(weighted, "SPAN_WORDS", 8)
    monkeypatch.setattr(weighted, "CHUNK_BYTES", 5000)
    monkeypatch.setattr(sparse, "STRIP_CELLS", 20)
    monkeypatch.setattr(memory, "SLICE_BYTES", 1)
    monkeypatch.setattr(memory, "SLAB_PERSONS", 192)
    monkeypatch.setattr(memory, "worth_compiling", lambda _: request.param != "NumPy")
    monkeypatch.setattr(memory, "_is_thin", lambda _: request.param == "rows")
    return request.param


def weigh(answered, right):
    return (1 << 30) - 7 * answered * right - answered


def make_both(answers):
    person, item = np.nonzero(answers >= 0)
    right = answers[person, item] == 1
    return pack_rows(answers), build_rows(person, item, right, *answers.shape)


def multiply(answers, weights):
    """Count with Python's own whole numbers."""
    right = ((answers == 1) * weights[:, None]).astype(object)
    return (right.T @ (answers == 0).astype(object)).astype(np.int64)


def draw(persons, items, missing, seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 2, size=(persons, items)).astype(np.int8)
    answers[rng.random(answers.shape) < missing] = -1
    return answers


CASES = st.tuples(
    st.integers(0, 700),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.4, 0.95, 1.0]),
    st.integers(0, 9),
)


def test_counts_equal_the_plain_product(way):
    @settings(max_examples=25, deadline=None)
    @given(case=CASES)
    def check(case):
        answers = draw(*case)
        expected = multiply(answers, np.ones(len(answers), dtype=np.int64))
        for held in make_both(answers):
            assert np.array_equal(memory.count_store(held), expected)

    check()


class Uneven:
    """Weights with few values, or nearly as many as persons, or one value for all."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, answered, right):
        if self.kind == "all different":
            return np.random.default_rng(1).integers(0, (1 << 30) + 1, size=len(answered))
        if self.kind == "one value":
            return np.full_like(answered, 1 << 30)
        return weigh(answered, right) * (answered % 3 > 0)


@pytest.mark.parametrize("kind", ["by totals", "all different", "one value"])
def test_weighted_counts_equal_the_plain_product(way, kind):
    weighting = Uneven(kind)

    @settings(max_examples=15, deadline=None)
    @given(case=CASES)
    def check(case):
        answers = draw(*case)
        weights = weighting((answers >= 0).sum(axis=1), (answers == 1).sum(axis=1))
        for held in make_both(answers):
            assert np.array_equal(memory.count_store(held, weighting), multiply(answers, weights))

    check()


def test_weighted_counts_of_many_items_fill_several_vectors(way):
    answers = draw(1500, 700, 0.5, 7)
    weights = np.random.default_rng(2).integers(0, 40, size=1500)
    for part in (answers, np.maximum(answers, 0)):
        expected = ((part == 1) * weights[:, None]).T.astype(float) @ (part == 0)
        counted = memory.count_store(pack_rows(part), lambda answered, right: weights)
        assert np.array_equal(counted, expected)


@settings(max_examples=50, deadline=None)
@given(
    classes=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=9),
    persons=st.integers(0, 1000),
    seed=st.integers(0, 99),
)
def test_the_words_of_a_person_carry_the_whole_weight(classes, persons, seed):
    weights = np.random.default_rng(seed).choice(np.array(classes), size=persons)
    person, weight = group_persons(weights)
    carried = np.zeros(persons + 1, dtype=np.int64)
    np.add.at(carried, person, np.repeat(weight, 64))
    assert np.array_equal(carried[:-1], weights)
    assert len(weight) <= persons // 64 + len(classes) + 30


def test_more_weights_than_the_first_table_holds_are_told_apart():
    weights = np.arange(5000) * 1000
    person, weight = group_persons(weights)
    carried = np.zeros(5001, dtype=np.int64)
    np.add.at(carried, person, np.repeat(weight, 64))
    assert np.array_equal(carried[:-1], weights)
    assert len(weight) < 5000  # by digits, not one word a weight


def test_joint_counts_equal_the_plain_products(way):
    answers = draw(500, 17, 0.3, 1)
    right, wrong = (answers == 1).astype(np.int64), (answers == 0).astype(np.int64)
    expected = [right.T @ right, right.T @ wrong, wrong.T @ wrong]
    for held in make_both(answers):
        assert np.array_equal(memory.count_joint(held), expected)


def test_blocks_with_and_without_gaps_mix(way):
    answers = draw(128 * 6, 14, 0.0, 2)
    answers[128 * 4 + 5, 3] = -1
    for held in make_both(answers):
        expected = multiply(answers, np.ones(len(answers), dtype=np.int64))
        assert np.array_equal(memory.count_store(held), expected)


def test_batches_of_persons_add_up(way):
    answers = draw(600, 8, 0.2, 3)
    names = tuple("abcdefgh")

    def count(part):
        return count_pairs(Responses.from_store(pack_rows(part), names))

    whole, halves = count(answers), count(answers[:250]) + count(answers[250:])
    assert isinstance(whole, PairCounts)
    assert np.array_equal(whole.right_wrong, halves.right_wrong)
    assert np.array_equal(whole.answers, halves.answers)
    assert whole.persons == halves.persons == 600


def test_planes_listed_as_rows_are_the_rows(way):
    planes, rows = make_both(draw(300, 20, 0.9, 4))
    listed = sparse.list_rows(planes)
    for name in ("indptr", "item", "right"):
        assert np.array_equal(getattr(listed, name), getattr(rows, name))


def test_thin_answers_go_sparse_and_full_ones_do_not():
    thin, full = draw(2000, 200, 0.99, 5), draw(2000, 200, 0.0, 5)
    for held in make_both(thin):
        assert memory._is_thin(held)
    for held in make_both(full):
        assert not memory._is_thin(held)


@pytest.mark.parametrize("bad", [-1, (1 << 30) + 1])
def test_a_weight_out_of_range_is_refused(bad):
    planes = pack_rows(draw(10, 3, 0.0, 6))
    with refused(BadUsage, "weights_must_lie_between"):
        memory.count_store(planes, lambda answered, right: np.full_like(answered, bad))


def test_a_weight_that_is_not_whole_is_refused():
    planes = pack_rows(draw(10, 3, 0.0, 6))
    with refused(BadUsage, "weighting_must_return_one"):
        memory.count_store(planes, lambda answered, right: answered / 2)


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with refused(BadUsage, "no_engine_called_choose", engines="auto, memory, disk, spark"):
        count_pairs(SimpleNamespace(), engine="abacus")


def test_loading_waits_until_numpy_has_cost_as_much(monkeypatch):
    monkeypatch.setattr(compiling._State, "loaded", False)
    monkeypatch.setattr(compiling._State, "spent", 0.0)
    monkeypatch.setattr(compiling, "has_kept_loops", lambda: True)
    price = compiling.LOADING_SECONDS
    assert not compiling.worth_compiling(0.6 * price)
    assert compiling.worth_compiling(0.6 * price)
    assert compiling.worth_compiling(0.01 * price)
    assert not compiling.worth_compiling(1e-6)


def test_where_loops_cannot_be_kept_numpy_does_more(monkeypatch):
    monkeypatch.setattr(compiling, "can_keep_loops", lambda: False)
    monkeypatch.setattr(compiling._State, "loaded", False)
    monkeypatch.setattr(compiling._State, "spent", 0.0)
    assert not compiling.worth_compiling(0.9 * compiling.COMPILING_SECONDS)
    assert compiling.worth_compiling(0.2 * compiling.COMPILING_SECONDS)


def test_a_folder_for_loops_is_found_without_numba(monkeypatch, tmp_path):
    find = compiling.can_keep_loops.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert find()  # the package's own folder, or that of the user
    monkeypatch.setattr(compiling.os, "access", lambda place, _: tmp_path in place.parents)
    assert not find()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept" / "new"))
    assert not find()
    (tmp_path / "kept").mkdir()
    assert find()
    (tmp_path / "kept" / "new").touch()  # a file is no folder
    assert not find()


def test_threads_come_from_the_call_then_the_environment(monkeypatch):
    monkeypatch.setenv("DISCREET_THREADS", "3")
    assert threads.thread_count() == 3
    threads.set_threads(1)
    try:
        assert threads.thread_count() == 1
    finally:
        threads.set_threads(None)
    monkeypatch.setenv("DISCREET_THREADS", "many")
    with refused(BadUsage, "environment_variable_must_whole", variable="DISCREET_THREADS"):
        threads.thread_count()
    with refused(BadUsage, "number_threads_must_found", most_threads="4096", count="0"):
        threads.set_threads(0)


def test_weights_count_after_a_selection_of_items_over_several_blocks(monkeypatch):
    """Planes of a selection lay across blocks, which the compiled loops could not read."""
    rng = np.random.default_rng(5)
    cells = rng.integers(-1, 2, (20_000, 7)).astype(np.int8)
    selected = Responses.from_array(cells).select(["6", "0", "absent", "3"])
    monkeypatch.setattr(memory, "worth_compiling", lambda _: True)
    monkeypatch.setattr(memory, "_is_thin", lambda _: False)
    found = count_pairs(selected, weighting=weigh).right_wrong
    expected = np.full((20_000, 4), -1, dtype=np.int8)
    expected[:, [0, 1, 3]] = cells[:, [6, 0, 3]]
    again = count_pairs(Responses.from_array(expected), weighting=weigh).right_wrong
    np.testing.assert_array_equal(found, again)
