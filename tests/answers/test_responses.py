"""The Responses type, and what it takes from arrays and data frames."""

from __future__ import annotations

import pickle

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import Reading
from discreet.answers.responses import Responses
from discreet.counts.planes import BitPlanes, SparseRows
from discreet.errors import BadResponses, BadUsage
from discreet.secure import SeededSource
from refusals import refused

CELLS = hnp.arrays(
    np.int8,
    st.tuples(st.integers(1, 150), st.integers(1, 6)),
    elements=st.sampled_from([1, 0, -1]),
    fill=st.nothing(),
)
SPARSE_CELLS = np.full((200, 40), -1, dtype=np.int8)
SPARSE_CELLS[np.arange(200), np.arange(200) % 40] = np.arange(200) % 2
SPARSE_CELLS[:3, :9] = 1


# -- arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float64, object])
def test_signed_arrays_hold_right_wrong_and_missing(dtype):
    answers = Responses.from_array(np.array([[1, 0], [-1, 1]], dtype=dtype))
    assert answers.to_array().tolist() == [[1, 0], [-1, 1]]
    assert answers.items == ("0", "1")
    assert answers.persons.tolist() == ["0", "1"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_nan_is_missing(dtype):
    X = np.array([[1, np.nan], [0, 1]], dtype=dtype)
    assert Responses.from_array(X).to_array().tolist() == [[1, -1], [0, 1]]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.uint16, np.uint64])
def test_unsigned_arrays_are_complete(dtype):
    assert Responses.from_array(np.array([[1, 0]], dtype=dtype)).n_answers == 2


def test_none_and_masked_entries_are_missing():
    lists = Responses.from_array([[1, None], [False, "0"], ["NA", True]])
    assert lists.to_array().tolist() == [[1, -1], [0, 0], [-1, 1]]
    for dtype in (np.int64, np.uint8, np.float64, bool):
        masked = np.ma.array(np.array([[1, 0], [0, 1]], dtype=dtype), mask=[[0, 1], [0, 0]])
        assert Responses.from_array(masked).to_array().tolist() == [[1, -1], [0, 1]]


def test_sparse_matrices_hold_wrong_answers_as_explicit_zeros():
    matrix = sp.csr_array((np.array([1, 0, 1]), ([0, 0, 2], [0, 1, 1])), shape=(3, 2))
    expected = [[1, 0], [-1, -1], [-1, 1]]
    for form in (matrix, matrix.tocsc(), matrix.tocoo(), sp.csr_matrix(matrix)):
        assert Responses.from_array(form).to_array().tolist() == expected


def test_two_entries_of_a_sparse_matrix_at_one_place_are_refused():
    matrix = sp.coo_array((np.array([1, 0]), ([1, 1], [0, 0])), shape=(3, 2))
    with refused(BadResponses, "sparse_matrix_holds_two", row="1", items="column 0"):
        Responses.from_array(matrix)


@pytest.mark.parametrize(
    ("X", "found"),
    [
        (np.array([[1, 1], [1, 2]]), "2"),
        (np.array([[1, 0], [0, 255]], dtype=np.uint8), "255"),
        (np.array([[1, 0], [0, 7]], dtype=np.int16), "7"),
        (np.array([[1, 0], [0, 0.5]]), "0.5"),
        (np.array([[1, 0], [0, np.inf]]), "inf"),
        ([[1, 0], [None, "yes"]], "'yes'"),
        (sp.csr_array(np.array([[1, 0], [0, 3]])), "3"),
    ],
)
def test_a_cell_that_is_no_answer_is_named(X, found):
    with pytest.raises(BadResponses, match=rf"^Row 1, column 1 \('b'\) .* found {found} where"):
        Responses.from_array(X, items=["a", "b"])


@pytest.mark.parametrize(
    ("X", "code", "facts"),
    [
        ([1, 0], "answers_must_matrix_one", {"kind": "an array", "shape": "(2,)"}),
        ([[1], [1, 0]], "rows_answers_differ_length", {}),
        (np.array([[1j]]), "answers_must_numbers_truth", {"dtype": "complex128"}),
    ],
)
def test_what_is_no_matrix_of_answers_is_refused(X, code, facts):
    with refused(BadResponses, code, **facts):
        Responses.from_array(X)


def test_names_must_fit():
    X = np.ones((2, 2), dtype=np.int8)
    with refused(BadUsage, "item_names_given_columns", n_names="1", n_items="2"):
        Responses.from_array(X, items=["a"])
    with refused(
        BadResponses, "occurs_twice_positions_counted", role="Item", name="a", places="0 and 1"
    ):
        Responses.from_array(X, items=["a", "a"])
    with refused(BadUsage, "person_ids_given_rows", n_persons="1", n_persons_2="2"):
        Responses.from_array(X, persons=["p"])
    with refused(
        BadResponses, "occurs_twice_positions_counted", role="Person", name="p", places="0 and 1"
    ):
        Responses.from_array(X, persons=["p", "p"])


# -- the type --------------------------------------------------------------------------------


def test_nothing_can_be_changed():
    answers = Responses.from_array([[1, 0]])
    with pytest.raises(AttributeError):
        answers.items = ("x",)
    with pytest.raises(AttributeError):
        del answers._store
    assert not answers.persons.flags.writeable
    assert not answers.store.right.flags.writeable


def test_equal_content_is_equal_whatever_holds_it():
    cells = np.array([[1, -1], [0, 1]])
    answers = Responses.from_array(cells)
    assert answers == Responses.from_array(cells.astype(float))
    person, item = np.nonzero(cells >= 0)
    rows = SparseRows(np.array([0, 1, 3]), item.astype(np.uint16), cells[person, item] == 1, 2)
    assert answers == Responses.from_store(rows)
    assert answers != Responses.from_array(cells, persons=["a", "b"])
    assert answers != Responses.from_array(1 - cells % 2)
    assert answers != "answers"


def test_a_copy_through_pickle_is_equal():
    answers = Responses(["a"], ["p", "q"], Responses.from_array([[1], [0]]).store, {"g": ["x", ""]})
    again = pickle.loads(pickle.dumps(answers))  # noqa: S301
    assert again == answers
    assert again.groups["g"].tolist() == ["x", ""]


def test_it_describes_itself():
    answers = Responses.from_array(np.ones((1200, 3)), items=["<a>", "b", "c"])
    assert repr(answers) == "<Responses: 1,200 persons, 3 items, 3,600 answers (100% filled)>"
    assert "&lt;a&gt;, b, c" in answers._repr_html_()


def test_sparse_answers_are_held_in_few_bytes():
    dense = Responses.from_array(np.ones((6400, 50), dtype=np.int8))
    assert isinstance(dense.store, BitPlanes)
    assert dense.nbytes == dense.n_answers / 4
    sparse = Responses.from_array(SPARSE_CELLS)
    assert isinstance(sparse.store, SparseRows)
    assert np.array_equal(sparse.to_array(), SPARSE_CELLS)


@settings(deadline=None, max_examples=40)
@given(CELLS, st.data())
def test_select_gives_exactly_these_items_in_this_order(cells, data):
    names = [f"i{j}" for j in range(cells.shape[1])]
    wanted = data.draw(st.lists(st.sampled_from([*names, "new"]), min_size=1, unique=True))
    padded = np.column_stack([cells, np.full(len(cells), -1, dtype=np.int8)])
    expected = padded[:, [[*names, "new"].index(name) for name in wanted]]
    answers = Responses.from_array(cells, items=names)
    person, item = np.nonzero(cells >= 0)
    indptr = np.concatenate([[0], np.cumsum((cells >= 0).sum(axis=1))])
    rows = SparseRows(indptr, item.astype(np.uint16), cells[person, item] == 1, len(names))
    for one in (answers, Responses.from_store(rows, names)):
        chosen = one.select(wanted)
        assert chosen.items == tuple(wanted)
        assert np.array_equal(chosen.to_array(), expected)


@settings(deadline=None, max_examples=40)
@given(CELLS, st.integers(1, 7), st.integers(0, 10))
def test_a_cap_keeps_part_of_the_answers_and_changes_none(cells, most, seed):
    answers = Responses.from_array(cells)
    capped = answers.cap(most, SeededSource(seed)).to_array()
    given, kept = cells >= 0, capped >= 0
    assert np.array_equal(kept.sum(axis=1), np.minimum(given.sum(axis=1), most))
    assert np.array_equal(capped[kept], cells[kept])


def fair(kept):
    """Say whether 2 of 5 answers were kept fairly: all pairs alike, each person on its own."""
    n, m = kept.shape
    pairs = np.bincount(kept @ (1 << np.arange(m)), minlength=1 << m)
    # 10 pairs of 20,000 persons: 2000 each expected, and 5 standard deviations are 212.
    alike = (pairs > 0).sum() == 10 and np.abs(pairs[pairs > 0] - n / 10).max() < 212
    # Neighbours agree as often as strangers: one time in ten.
    same = (kept[1:] == kept[:-1]).all(axis=1).mean()
    return bool(alike and abs(same - 0.1) < 0.012)


def complete(form):
    n, m = 20_000, 5
    if form == "planes":
        return Responses.from_array(np.ones((n, m), dtype=np.int8))
    starts = np.arange(n + 1, dtype=np.int64) * m
    items = np.tile(np.arange(m, dtype=np.uint16), n)
    return Responses.from_store(SparseRows(starts, items, np.ones(n * m, dtype=bool), m))


@pytest.fixture(params=["NumPy", "compiled"])
def capping(request, monkeypatch):
    """Cap in one of the two ways that must agree."""
    compiled = request.param == "compiled"
    monkeypatch.setattr("discreet.answers.select.worth_compiling", lambda _: compiled)


@pytest.mark.parametrize("form", ["planes", "rows"])
def test_a_cap_keeps_every_answer_equally_often_and_each_person_on_its_own(form, capping):
    assert fair(complete(form).cap(2, SeededSource(1)).to_array() >= 0)


@pytest.mark.parametrize("form", ["planes", "rows"])
@pytest.mark.parametrize("fault", ["the first two", "one draw for all", "one draw for 64"])
def test_an_unfair_cap_would_be_noticed(form, fault, capping, monkeypatch):
    def keys(source, count):
        if fault == "the first two":
            return (np.arange(count) % 5).astype(np.uint32)
        draws = source.words(count).view(np.uint32)[:count].reshape(-1, 5)
        repeats = len(draws) if fault == "one draw for all" else 64
        return np.repeat(draws[::repeats], repeats, axis=0)[: len(draws)].ravel()

    monkeypatch.setattr("discreet.answers.select.draw_keys", keys)
    assert not fair(complete(form).cap(2, SeededSource(1)).to_array() >= 0)


def test_a_cap_needs_a_whole_number():
    answers = Responses.from_array([[1, 0]])
    for wrong in (0, -1, 1.5, "2"):
        with refused(BadUsage, "must_whole_number_least", name="max_answers", max_answers=wrong):
            answers.cap(wrong, SeededSource(0))


# -- data frames -----------------------------------------------------------------------------

WIDE = {"id": ["a", "b", "c"], "q1": [1, 0, None], "q2": [True, None, False]}
LONG = {
    "student": ["a", "b", "a", "b", "c", "c"],
    "item": ["q1", "q1", "q2", "q2", "q1", "q2"],
    "correct": [1, 0, 1, None, None, 0],
}
MAKERS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas arrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda table: duckdb.connect().from_arrow(pa.table(table)),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("table", [WIDE, LONG], ids=["wide", "long"])
def test_every_data_frame_is_read(maker, table):
    answers = Responses.from_dataframe(MAKERS[maker](table))
    assert (answers.items, answers.persons.tolist()) == (("q1", "q2"), ["a", "b", "c"])
    assert answers.to_array().tolist() == [[1, 1], [0, -1], [-1, 0]]


def test_categories_and_text_are_read():
    frame = pd.DataFrame(LONG)
    frame["item"] = frame["item"].astype(pd.CategoricalDtype(["unused", "q2", "q1"]))
    frame["correct"] = ["yes", "0", "1", "NA", None, "0"]
    frame.loc[0, "correct"] = "TRUE"
    answers = Responses.from_dataframe(frame)
    assert answers.items == ("q1", "q2")
    assert answers.to_array().tolist() == [[1, 1], [0, -1], [-1, 0]]


def test_an_index_with_names_of_its_own_holds_the_persons():
    frame = pd.DataFrame({"q1": [1, 0]}, index=["x", "y"])
    assert Responses.from_dataframe(frame).persons.tolist() == ["x", "y"]
    frame.index.name = "student"
    assert Responses.from_dataframe(frame).persons.tolist() == ["x", "y"]
    assert Responses.from_dataframe(pd.DataFrame({0: [1], 1: [0]})).items == ("0", "1")


def test_number_ids_become_text():
    frame = pa.table({"id": [7.0, 8.0], "q1": [1, 0]})
    assert Responses.from_dataframe(frame).persons.tolist() == ["7", "8"]
    frame = pa.table({"id": [7.5, 8.0], "q1": [1, 0]})
    assert Responses.from_dataframe(frame).persons.tolist() == ["7.5", "8"]
    frame = pa.table({"id": [7.5, 1e15], "q1": [1, 0]})
    assert Responses.from_dataframe(frame).persons.tolist() == ["7.5", "1000000000000000"]


def test_the_keywords_of_files_work_for_frames():
    frame = pl.DataFrame({"id": ["a", "b", "a"], "q1": [3, 2, 5], "sex": ["F", "M", "F"]})
    answers = Responses.from_dataframe(frame, group="sex", at_least=3, repeats="first")
    assert answers.to_array().tolist() == [[1], [0]]
    assert answers.groups["sex"].tolist() == ["F", "M"]
    flipped = Responses.from_dataframe(pl.DataFrame(WIDE), one_means="wrong")
    assert flipped.to_array().tolist() == [[0, 0], [1, -1], [-1, 1]]


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array([1, 2]), "2"),
        (pa.array([1, -1]), "-1"),
        (pa.array([1.0, 0.5]), "0.5"),
        (pa.array(["1", "x"]), "'x'"),
        (pa.array([None, [1]]), "[1]"),
    ],
)
def test_a_bad_value_in_a_frame_is_named(column, found):
    frame = pa.table({"id": ["a", "b"], "q1": column})
    stated = {"reading": Reading(person="id")}
    where = "The data frame, row 1 (counted from 0)"
    with refused(BadResponses, "bad_answer", where=where, column="q1", value=found):
        Responses.from_dataframe(frame, **stated)


def test_mixed_types_are_read_or_refused_value_by_value():
    frame = pd.DataFrame({"q1": [1, "0", None, True]})
    assert Responses.from_dataframe(frame).to_array().tolist() == [[1], [0], [-1], [1]]
    frame = pd.DataFrame({"q1": [1, "never", None]})
    stated = {"reading": Reading(layout="wide")}
    with refused(
        BadResponses,
        "bad_answer",
        where="The data frame, row 1 (counted from 0)",
        column="q1",
        value="'never'",
    ):
        Responses.from_dataframe(frame, **stated)


def test_what_is_no_frame_is_wrong_usage():
    with refused(BadUsage, "data_frame_needed_pandas", name="list"):
        Responses.from_dataframe([[1, 0]])
    with refused(BadResponses, "data_frame_columns_no"):
        Responses.from_dataframe(pd.DataFrame({"q1": []}))
    with refused(BadResponses, "data_frame_no_columns"):
        Responses.from_dataframe(pd.DataFrame())


@settings(deadline=None, max_examples=40)
@given(CELLS)
def test_arrays_and_frames_say_the_same(cells):
    names = [f"i{j}" for j in range(cells.shape[1])]
    floats = np.where(cells < 0, np.nan, cells.astype(float))
    expected = Responses.from_array(cells, items=names)
    assert Responses.from_array(floats, items=names) == expected
    assert Responses.from_dataframe(pd.DataFrame(floats, columns=names)) == expected


@pytest.mark.parametrize("ids", [["a", "a ", "b"], [0.0, -0.0, 1.0]])
def test_spellings_of_one_id_are_one_person_in_a_wide_frame_too(ids):
    frame = pd.DataFrame({"person": ids, "q1": [1, None, 0], "q2": [None, 0, 1]})
    found = Responses.from_dataframe(frame, reading=Reading(person="person"))
    assert found.n_persons == 2
    assert found.store.rows(0, 2).tolist() == [[1, 0], [0, 1]]
