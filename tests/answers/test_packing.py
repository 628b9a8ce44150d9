"""Every layout and both ways of packing give the same store."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers import pack as packing
from discreet.answers.pack import BadCell, Repeated
from discreet.counts import planes as store

EDGES = [0, 1, 63, 64, 65, 127, 200, 513, 600]


@pytest.fixture(params=["NumPy", "compiled"], autouse=True)
def way(request, monkeypatch):
    """Run every test on both ways, with blocks so small that there are several."""
    monkeypatch.setattr(store, "BLOCK_WORDS", 8)
    monkeypatch.setattr(packing, "worth_compiling", lambda _: request.param == "compiled")
    return request.param


def make_answers(persons, items, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, size=(persons, items)).astype(np.int8)


def with_nan(answers, kind):
    return np.where(answers < 0, np.nan, answers).astype(kind)


def arrow_columns(answers, kind):
    return [
        pa.array([None if cell < 0 else kind_of(cell, kind) for cell in column], kind)
        for column in answers.T
    ]


def kind_of(cell, kind):
    return bool(cell) if pa.types.is_boolean(kind) else int(cell)


@pytest.mark.parametrize("persons", EDGES)
@pytest.mark.parametrize("items", [1, 7, 64, 70])
def test_row_major_answers_come_back_as_they_went_in(persons, items):
    answers = make_answers(persons, items)
    assert np.array_equal(packing.pack_rows(answers).rows(0, persons), answers)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_nan_is_missing_in_either_order(kind, order):
    answers = make_answers(601, 13)
    floats = np.asarray(with_nan(answers, kind), order=order)
    assert np.array_equal(packing.pack_rows(floats).rows(0, 601), answers)


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int16, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integers_and_booleans_pack_alike(kind, order):
    answers = np.abs(make_answers(300, 9))
    packed = packing.pack_rows(np.asarray(answers.astype(kind), order=order))
    assert np.array_equal(packed.rows(0, 300), answers)


def test_a_view_with_gaps_and_a_read_only_array_pack_alike():
    answers = make_answers(300, 20)
    answers.setflags(write=False)
    assert np.array_equal(packing.pack_rows(answers[::2, ::3]).rows(0, 150), answers[::2, ::3])
    assert np.array_equal(packing.pack_rows(answers).rows(0, 300), answers)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.int64(), pa.float64()])
@pytest.mark.parametrize("skip", [0, 3, 8])
def test_arrow_columns_pack_as_they_are(kind, skip):
    answers = make_answers(601, 5)
    columns = [column[skip:] for column in arrow_columns(answers, kind)]
    assert np.array_equal(packing.pack_columns(columns).rows(0, 601), answers[skip:])


@pytest.mark.parametrize("cut", [64, 33])
def test_chunked_arrow_columns_pack_as_one(cut):
    answers = make_answers(150, 4)
    columns = [
        pa.chunked_array([column[:cut], column[cut:cut], column[cut:]])
        for column in arrow_columns(answers, pa.bool_())
    ]
    assert np.array_equal(packing.pack_columns(columns).rows(0, 150), answers)


def test_a_column_without_any_value_is_all_missing():
    packed = packing.pack_columns([pa.nulls(70), pa.array([True] * 70)])
    assert np.array_equal(packed.item_totals()[0], [0, 70])


@pytest.mark.parametrize("bad", [2, -2, 127])
@pytest.mark.parametrize("order", ["C", "F"])
def test_another_number_is_refused_where_it_stands(bad, order):
    answers = np.asarray(make_answers(1200, 70), order=order)
    answers[1111, 66] = bad
    with pytest.raises(BadCell) as caught:
        packing.pack_rows(answers)
    assert (caught.value.row, caught.value.column, caught.value.value) == (1111, 66, bad)


@pytest.mark.parametrize("bad", [0.5, np.inf, -0.25])
def test_a_fraction_is_refused_where_it_stands(bad):
    floats = with_nan(make_answers(130, 3), np.float64)
    floats[129, 1] = bad
    with pytest.raises(BadCell) as caught:
        packing.pack_rows(floats)
    assert (caught.value.row, caught.value.column, caught.value.value) == (129, 1, bad)


def test_255_is_not_missing_in_unsigned_answers():
    answers = np.zeros((70, 2), dtype=np.uint8)
    answers[3, 1] = 255
    with pytest.raises(BadCell) as caught:
        packing.pack_rows(answers)
    assert (caught.value.row, caught.value.column) == (3, 1)


def test_a_bad_cell_under_an_arrow_null_is_missing():
    column = pa.array(np.array([1, 7, 0], dtype=np.int8), mask=np.array([False, True, False]))
    assert packing.pack_columns([column]).rows(0, 3).tolist() == [[1], [-1], [0]]


LONG = st.lists(
    st.tuples(st.integers(0, 699), st.integers(0, 4), st.booleans()),
    max_size=120,
    unique_by=lambda row: row[:2],
)


def long_arrays(rows):
    person, item, right = (np.array([row[k] for row in rows]) for k in range(3))
    return person.astype(np.int64), item.astype(np.int32), right.astype(np.bool_)


@settings(max_examples=40, deadline=None)
@given(rows=LONG)
def test_long_rows_give_the_same_answers_in_both_forms(rows):
    person, item, right = long_arrays(rows)
    expected = np.full((700, 5), -1, dtype=np.int8)
    expected[person, item] = right
    for build in (packing.pack_long, packing.build_rows, packing.store_long):
        built = build(person, item, right, 700, 5)
        assert np.array_equal(built.rows(0, 700), expected)
        assert built.n_answers == len(rows)


def test_a_person_with_many_answers_is_sorted_too():
    item = np.random.default_rng(0).permutation(900).astype(np.int32)
    person = np.zeros(900, dtype=np.int32)
    rows = packing.build_rows(person, item, item % 2 == 0, 2, 900)
    assert np.array_equal(rows.item, np.arange(900))
    assert np.array_equal(rows.right, np.arange(900) % 2 == 0)


@pytest.mark.parametrize("build", [packing.pack_long, packing.build_rows])
def test_a_repeated_pair_is_reported_with_both_rows(build):
    person = np.array([5, 1, 2, 1, 5, 2], dtype=np.int32)
    item = np.array([0, 1, 2, 1, 0, 2], dtype=np.int32)
    with pytest.raises(Repeated) as caught:
        build(person, item, np.ones(6, dtype=np.bool_), 6, 3)
    assert (caught.value.first_index, caught.value.second_index) == (1, 3)


def test_a_small_matrix_is_packed_without_loading_the_compiler():
    code = (
        "import sys, numpy as np\n"
        "from discreet.answers.pack import pack_rows\n"
        "from discreet.counts.pairs import count_store\n"
        "count_store(pack_rows(np.eye(500, 40, dtype=np.int8)))\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_a_folder_for_its_cache_a_loop_is_still_compiled(monkeypatch):
    from numba.core.caching import CompileResultCacheImpl
    from numba.core.dispatcher import FunctionCache

    from discreet.jit import _State, compiled_loop

    def add_one(number):
        return number + 1

    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError):
        FunctionCache(add_one)
    monkeypatch.setattr(_State, "warned", False)
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR to a folder that can"):
        assert compiled_loop(add_one)(2) == 3
    assert compiled_loop(add_one)(3) == 4  # said once
