"""The two forms of held answers agree with the plain matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers.pack import build_rows, pack_rows
from discreet.counts import planes as store
from discreet.counts.planes import SparseRows, block_shape, prefers_planes


def make_both(answers):
    person, item = np.nonzero(answers >= 0)
    right = answers[person, item] == 1
    return pack_rows(answers), build_rows(person, item, right, *answers.shape)


@pytest.fixture(params=["NumPy", "compiled"])
def way(request, monkeypatch):
    """Count totals both ways."""
    monkeypatch.setattr(store, "worth_compiling", lambda _: request.param == "compiled")


def test_totals_and_rows_agree_with_the_matrix(way):
    @settings(max_examples=30, deadline=None)
    @given(persons=st.integers(0, 200), items=st.integers(1, 40), seed=st.integers(0, 99))
    def check(persons, items, seed):
        rng = np.random.default_rng(seed)
        answers = rng.integers(-1, 2, size=(persons, items)).astype(np.int8)
        given_, right = answers >= 0, answers == 1
        for held in make_both(answers):
            assert (held.n_persons, held.n_items) == (persons, items)
            assert held.n_answers == given_.sum()
            for axis, totals in ((0, held.item_totals()), (1, held.person_totals())):
                assert np.array_equal(totals[0], given_.sum(axis=axis))
                assert np.array_equal(totals[1], right.sum(axis=axis))
            assert np.array_equal(held.rows(3, 150), answers[3:150])
            assert held.rows(5, 5).shape == (0, items)

    check()


def test_persons_beyond_one_block_keep_their_place(way):
    answers = np.random.default_rng(0).integers(-1, 2, size=(40_000, 300)).astype(np.int8)
    planes = pack_rows(answers)
    assert planes.right.shape == (3, 300, 256)
    assert np.array_equal(planes.rows(16_380, 32_770), answers[16_380:32_770])
    assert np.array_equal(planes.person_totals()[0], (answers >= 0).sum(axis=1))
    assert np.array_equal(planes.person_totals()[1], (answers == 1).sum(axis=1))


def test_held_answers_cannot_be_changed():
    planes, rows = make_both(np.eye(3, dtype=np.int8))
    for array in (planes.right, planes.wrong, rows.indptr, rows.item, rows.right):
        assert not array.flags.writeable


def test_more_than_65536_items_are_numbered_in_32_bits():
    item = np.array([70_000, 3], dtype=np.int32)
    rows = build_rows(np.zeros(2, np.int32), item, np.array([True, False]), 1, 70_001)
    assert isinstance(rows, SparseRows)
    assert rows.item.dtype == np.int32
    assert rows.item.tolist() == [3, 70_000]


def test_blocks_hold_16384_persons():
    assert block_shape(0) == (0, 1)
    assert block_shape(65) == (1, 2)
    assert block_shape(16_384) == (1, 256)
    assert block_shape(16_385) == (2, 256)


def test_planes_are_preferred_where_a_sixteenth_is_answered():
    assert prefers_planes(100, 16, 100)
    assert not prefers_planes(100, 16, 99)
