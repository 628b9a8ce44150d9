"""The query for warehouses: the integers of the memory engine, from nothing but SQL."""

from __future__ import annotations

import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers.opening import count_pairs
from discreet.answers.responses import Responses
from discreet.counts.sql import DIALECTS, read_counts, write_query
from discreet.errors import BadResponses, BadUsage

ODD = 'odd "name`; DROP TABLE x; --'


def make_rows(cells, values):
    return [(f"p{p}", f"q{i}", value) for (p, i), value in zip(cells, values, strict=False)]


@st.composite
def tables(draw):
    cells = [(p, i) for p in range(8) for i in range(5)]
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=40, unique=True))
    values = draw(st.lists(st.sampled_from([0, 1, None]), min_size=40, max_size=40))
    return make_rows(chosen, values)


def expect(rows):
    person, item, value = zip(*rows, strict=True)
    table = {"person": person, "item": item, "response": pa.array(value, pa.int8())}
    return count_pairs(Responses.from_dataframe(pa.table(table)))


def run_duckdb(rows, **words):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE answers (person TEXT, item TEXT, response TINYINT)")
        connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
        return connection.sql(write_query("answers", **words)).to_arrow_table()


def run_sqlite(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE answers (person TEXT, item TEXT, response INTEGER)")
    connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
    try:
        return connection.execute(write_query("answers", dialect="postgresql")).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("run", [run_duckdb, run_sqlite])
def test_counts_equal_the_memory_engine(run):
    @settings(max_examples=12, deadline=None)
    @given(rows=tables())
    def check(rows):
        expected = expect(rows)
        found = read_counts(run(rows), items=expected.items)
        assert found.persons == expected.persons
        assert np.array_equal(found.right_wrong, expected.right_wrong)
        assert np.array_equal(found.answers, expected.answers)
        assert np.array_equal(found.right, expected.right)

    check()


def same_folds(ours, theirs):
    assert np.array_equal(ours.sketch, theirs.sketch)
    for name in ("right_wrong", "answers", "persons"):
        assert np.array_equal(getattr(ours.folds, name), getattr(theirs.folds, name)), name
    return (ours.folds.asked, ours.folds.weighting) == (theirs.folds.asked, theirs.folds.weighting)


def test_folds_and_the_sketch_equal_the_memory_engine():
    @settings(max_examples=12, deadline=None)
    @given(rows=tables())
    def check(rows):
        person, item, value = zip(*rows, strict=True)
        table = {"person": person, "item": item, "response": pa.array(value, pa.int8())}
        expected = count_pairs(Responses.from_dataframe(pa.table(table)), folds=8)
        found = read_counts(run_duckdb(rows, folds=8), items=expected.items)
        assert same_folds(found, expected)
        assert np.array_equal(found.right_wrong, expected.right_wrong)

    check()


def test_long_records_have_the_weights_of_the_memory_engine():
    rows = [(f"p{p}", f"q{i}", (p + i) % 2) for p in range(40) for i in range(p + 1)]
    person, item, value = zip(*rows, strict=True)
    table = pa.table({"person": person, "item": item, "response": value})
    expected = count_pairs(Responses.from_dataframe(table), folds=32)
    assert same_folds(read_counts(run_duckdb(rows, folds=32), items=expected.items), expected)


def test_numbers_as_persons_and_items_fall_into_folds_too():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS person, 1 AS item, 1 AS response")
        connection.execute("INSERT INTO t VALUES (7, 2, 0), (12, 1, 0), (12, 2, 1)")
        found = read_counts(connection.sql(write_query("t", folds=8)).to_arrow_table())
    cells = np.array([[1, 0], [0, 1]])
    expected = count_pairs(Responses.from_array(cells, ["1", "2"], ["7", "12"]), folds=8)
    assert same_folds(found, expected)


def test_every_dialect_has_the_hash_by_its_own_name():
    for dialect in DIALECTS:
        query = write_query("answers", dialect=dialect, folds=32)
        assert ("TO_HEX(MD5(" in query) == (dialect == "bigquery")
        assert ("STRPOS(" in query) == (dialect == "bigquery")
    with pytest.raises(BadUsage, match="folds"):
        write_query("answers", folds=3)


ROWS = make_rows([(0, 0), (0, 1), (1, 0), (1, 1)], [1, 0, 0, None])


@pytest.mark.parametrize("run", [run_duckdb, run_sqlite])
@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("p0", "q1", 1), "1 persons answered item 'q1' more than once"),
        (("p9", "q1", 5), "1 answers to item 'q1' are neither 0 nor 1"),
        ((None, "q1", 0), "1 rows have no person"),
        (("p9", None, None), "1 rows have no person or no item"),
    ],
)
def test_what_other_engines_refuse_is_refused(run, row, words):
    with pytest.raises(BadResponses, match=words):
        read_counts(run([*ROWS, row]))


def test_results_are_read_from_files_frames_and_rows(tmp_path):
    expected = expect(ROWS)
    table = run_duckdb(ROWS)
    pq.write_table(table, tmp_path / "result.parquet")
    pacsv.write_csv(table, tmp_path / "result.csv")
    upper = table.rename_columns([name.upper() for name in table.column_names])
    sources = [tmp_path / "result.parquet", str(tmp_path / "result.csv"), upper, table.to_pandas()]
    for source in sources:
        counts = read_counts(source)
        assert counts.items == ("q0", "q1")
        assert np.array_equal(counts.right_wrong, expected.right_wrong)
        assert np.array_equal(counts.answers, expected.answers)


def test_truth_values_and_numbers_as_items_are_counted():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS who, 7 AS what, true AS ok")
        connection.execute("INSERT INTO t VALUES (1, 8, false), (2, 7, NULL)")
        words = {"person": "who", "item": "what", "response": "ok", "truth_values": True}
        counts = read_counts(connection.sql(write_query("t", **words)).to_arrow_table())
    assert counts.items == ("7", "8")
    assert counts.right_wrong.tolist() == [[0, 1], [0, 0]]
    assert (counts.answers.tolist(), counts.persons) == ([1, 1], 2)


def test_names_are_quoted_so_that_they_stay_names():
    with duckdb.connect() as connection:
        quoted = '"' + ODD.replace('"', '""') + '"'
        connection.execute(f"CREATE SCHEMA {quoted}")
        connection.execute(
            f"CREATE TABLE {quoted}.{quoted} AS SELECT 'a' AS {quoted}, 'q' AS item, 1 AS response"
        )
        query = write_query([ODD, ODD], person=ODD)
        assert read_counts(connection.sql(query).to_arrow_table()).persons == 1


@pytest.mark.parametrize(
    ("dialect", "quoted"),
    [
        ("duckdb", '"a""b`c\\d"'),
        ("postgresql", '"a""b`c\\d"'),
        ("snowflake", '"a""b`c\\d"'),
        ("spark", '`a"b``c\\d`'),
        ("bigquery", '`a"b\\`c\\\\d`'),
    ],
)
def test_every_dialect_escapes_its_own_quotes(dialect, quoted):
    query = write_query(['a"b`c\\d'], dialect=dialect)
    assert f"FROM {quoted}\n" in query


def test_every_dialect_is_tested_above():
    assert set(DIALECTS) == {"duckdb", "postgresql", "snowflake", "spark", "bigquery"}


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b"])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(BadUsage, match="cannot be the name"):
        write_query("answers", person=name)


def test_an_unknown_dialect_and_other_tables_are_refused(tmp_path):
    with pytest.raises(BadUsage, match="no dialect called 'oracle'"):
        write_query("answers", dialect="oracle")
    with pytest.raises(BadUsage, match="no column 'kind'"):
        read_counts(pa.table({"a": [1]}))
    with pytest.raises(BadUsage, match="not a whole result"):
        read_counts(run_duckdb(ROWS).slice(0, 1))
    with pytest.raises(BadUsage, match="There is no file"):
        read_counts(tmp_path / "nothing.csv")
