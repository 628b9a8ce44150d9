"""Columns of odd types end alike wherever they are: the same counts, or the same error."""

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from odd_columns import COLUMNS, end, make_odd


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COLUMNS)
def test_an_odd_column_ends_alike_in_every_engine(name, tmp_path):
    table, path = make_odd(name), tmp_path / "answers.parquet"
    pq.write_table(table, path)
    expected = end(table)
    assert end(path, "memory") == end(path, "disk") == expected
    assert end(f"FROM '{path}'", "memory") == expected
    assert end(f"FROM '{path}'", "disk") == expected
    assert end(duckdb.from_arrow(table)) == expected
    assert end(table.to_pandas()) == end(pl.from_arrow(table)) == expected
