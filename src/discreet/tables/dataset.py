"""Find out what a source is: files, a database, a server or a query, and open it shard by shard.

In: what the user named. Out: shards that can be opened again and again, each a
:class:`~discreet.tables.opener.Source`, with an estimate of its rows and an identity that
changes when the data changes. Files are read by the same readers as in memory, so that every
rule about names, blanks and encodings is the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.errors import BadResponses, BadUsage, DiscreetError, Remedy
from discreet.resources import available_memory
from discreet.tables.columns import LongPlan, check_column, name_items
from discreet.tables.findings import DeclaredSource
from discreet.tables.formats.jsonl import JsonLinesSource
from discreet.tables.lists import settle_key
from discreet.tables.opener import (
    Encodings,
    Source,
    open_table_file,
    plan_source,
    read_rows,
    settle_key_row,
)
from discreet.tables.paths import (
    find_files,
    names_server,
    read_head,
    settle_path,
    sniff,
    unpacked_size,
)
from discreet.tables.resources import Resources, explain_query, load_duckdb
from discreet.tables.sources import open_arrow

_QUERY = re.compile(r"\s*(select|with|from|values|table)\s", re.IGNORECASE)
#: Bytes 8 to 12 of every DuckDB database file.
_MAGIC = b"DUCK"
_BATCH_ROWS = 1 << 17

#: Bytes in memory of a row of a long table, of a person's id, and of a cell of a wide table.
LONG_ROW, WIDE_ROW, WIDE_CELL = 9, 40, 0.25
#: Bytes of a row in a workbook or a file of a statistical program, roughly.
_PACKED_ROW = 100
#: Bytes of files that are never looked into: even at a byte a row they make 300 MB.
SURELY_SMALL = 1 << 25


@dataclass(frozen=True)
class Shard:
    """One file, table or query."""

    name: str
    open: Callable[[], Source]
    rows: int
    identity: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    """Everything that is read as one table.

    Attributes
    ----------
    shards
        In the order in which they are read.
    steady
        Whether reading these shards again gives the same rows in the same order: true of files
        and stored tables, not promised for a query.
    lasting
        Whether another program would find the same rows again: not on a server, where tables
        change, and not promised for a query.
    close
        Gives back what the shards hold on to; afterwards they cannot be read.
    """

    shards: tuple[Shard, ...]
    steady: bool
    lasting: bool = True
    close: Callable[[], object] = lambda: None

    @property
    def rows(self) -> int:
        """Estimated number of rows."""
        return sum(shard.rows for shard in self.shards)


def is_query(source: object) -> bool:
    """Say whether a source is SQL rather than a path."""
    return isinstance(source, str) and bool(_QUERY.match(source)) and not os.path.lexists(source)


def names_database(source: object) -> bool:
    """Say whether a source is a server, or a DuckDB file, alone or with ``::table`` behind it."""
    if is_query(source) or not isinstance(source, (str, os.PathLike)):
        return False
    if names_server(source):
        return True
    path = Path(os.fspath(source).partition("::")[0])
    try:
        if not path.is_file():  # opening a pipe would wait for somebody who writes to it
            return False
        with path.open("rb") as file:
            return file.read(12)[8:] == _MAGIC
    except OSError:
        return False


def describe_source(source: str | os.PathLike[str]) -> str:
    """Return what messages call a source: never with a password."""
    text = os.fspath(source)
    if is_query(text) or not names_server(text):
        return text
    from discreet.tables.formats.postgres import parse_address

    return parse_address(text).name


def open_dataset(
    source: str | os.PathLike[str],
    encodings: Encodings,
    resources: Resources,
    reading: Reading | None = None,
) -> Dataset:
    """Return the shards of a path, folder, pattern, database, server or query.

    Parameters
    ----------
    source
        What the user named.
    encodings
        Of files that are not UTF-8, as far as known.
    resources
        For DuckDB.
    reading
        Needed for JSON lines, whose keys are looked up while records are read.
    """
    if is_query(source):
        return _open_query(str(source), resources)
    if names_server(source):
        from discreet.tables.formats.postgres import open_server

        return open_server(os.fspath(source))
    if names_database(source):
        return _open_database(os.fspath(source), resources)
    files = find_files(source)
    rules = reading or Reading()
    shards = tuple(_open_file(file, encodings, rules, len(files)) for file in files)
    return Dataset(shards, steady=True)


def settle_reading(
    source: str | os.PathLike[str], reading: Reading, resources: Resources | None = None
) -> Reading:
    """Return a reading whose key is by item, from letters in order or from a row of the table."""
    if not reading.right_in_order and reading.key_row is None:
        return reading
    whole = replace(reading, drop_rows=(), key_row=None)
    with closing(open_dataset(source, {}, resources or Resources(), whole)) as dataset:
        first = dataset.shards[0].open()
        reading = settle_key_row(reading, first)
        return settle_key(reading, name_items(first.names, plan_source(first, reading)), first.name)


def _open_file(path: Path, encodings: Encodings, reading: Reading, files: int) -> Shard:
    head = read_head(path)
    kind = sniff(path, head)
    status = path.stat()
    identity = (str(settle_path(path)), str(status.st_size), str(status.st_mtime_ns))
    if kind == "parquet":
        rows = _parquet_rows(path)
    elif kind not in ("text", "jsonl", "harness"):
        rows = max(status.st_size // _PACKED_ROW, 1)
    else:
        mark = b"\n"
        if kind == "jsonl":
            records = JsonLinesSource(path, reading)
            records.check_alone(files)
            # A record with several answers has at most as many as colons.
            mark = b":" if records.has_several_answers else mark
        rows = max(unpacked_size(path) * max(head.count(mark), 1) // len(head), 1)

    def open_again() -> Source:
        return open_table_file(path, encodings.get(path), reading=reading)

    return Shard(str(path), open_again, rows, identity)


def _parquet_rows(path: Path) -> int:
    import pyarrow.parquet as pq

    try:
        with open_arrow(path) as file:
            return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError):
        # Gzipped as a whole, or damaged: the reader says so; this is only an estimate.
        return path.stat().st_size


# -- size ----------------------------------------------------------------------------------


def is_too_large(source: str | os.PathLike[str], reading: Reading | None = None) -> bool:
    """Say whether ``engine="auto"`` should leave a source where it is.

    Queries and databases stay there. Files are read into memory unless their answers would take
    more than half of the memory that is free. Sources that cannot be read are left to the reader,
    which says what is wrong with them.
    """
    if is_query(source) or names_database(source):
        return True
    try:
        files = find_files(source)
        if sum(unpacked_size(file) for file in files) < SURELY_SMALL:
            return False
        shards = open_dataset(source, {}, Resources(), reading).shards
        needed = sum(_bytes_needed(shard, reading or Reading()) for shard in shards)
    except (DiscreetError, OSError):
        return False
    return needed > available_memory() / 2


def _bytes_needed(shard: Shard, reading: Reading) -> float:
    plan = plan_source(shard.open(), reading)
    if isinstance(plan, LongPlan):
        return shard.rows * LONG_ROW
    return shard.rows * (WIDE_ROW + WIDE_CELL * len(plan.items))


# -- DuckDB --------------------------------------------------------------------------------


def _open_query(query: str, resources: Resources) -> Dataset:
    text = query.strip().rstrip(";")
    shard = _query_shard(resources.connect(None), text, "the query", (text,))
    return Dataset((shard,), steady=False, lasting=False)


def _open_database(source: str, resources: Resources) -> Dataset:
    file, _, target = source.partition("::")
    path = Path(file)
    connection = resources.connect(path)
    status = path.stat()
    identity = (str(settle_path(path)), str(status.st_size), str(status.st_mtime_ns), target)
    if is_query(target):
        text = target.strip().rstrip(";")
        shard = _query_shard(connection, text, "the query", identity)
        return Dataset((shard,), steady=False, lasting=False)
    table, is_stored = _find_table(connection, path, target)
    text = f"SELECT * FROM {table}"  # noqa: S608 (quoted by _find_table)
    shard = _query_shard(connection, text, f"{path}, {table}", identity)
    return Dataset((shard,), steady=is_stored, lasting=is_stored)


def _find_table(connection: Any, path: Path, table: str) -> tuple[str, bool]:
    """Return the quoted name of a table, and whether it is stored: a view is a query."""
    rows = connection.execute(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY 1, 2"
    ).fetchall()
    plain = [name if schema == "main" else f"{schema}.{name}" for schema, name, _ in rows]
    if table in plain or (not table and len(rows) == 1):
        schema, name, kind = rows[plain.index(table) if table else 0]
        path_in_file = (name,) if schema == "main" else (schema, name)
        return ".".join(map(quote_name, path_in_file)), kind == "BASE TABLE"
    listed = ", ".join(plain) or "none"
    if table:
        raise BadUsage(f"{path} has no table '{table}'. Its tables are: {listed}.")
    raise BadUsage(
        f"{path} has {len(rows)} tables ({listed}). Say which one holds the answers, as in "
        f"'{path}::{plain[0] if plain else 'table'}'."
    )


def quote_name(name: str) -> str:
    """Return a name as SQL takes it, whatever signs it has."""
    return '"' + name.replace('"', '""') + '"'


def _query_shard(connection: Any, text: str, name: str, identity: tuple[str, ...]) -> Shard:
    with explain_query(name):
        relation = connection.sql(text)
        if relation is None:
            raise BadUsage(f"{name} returns no table; a SELECT is needed, found: {text}")
        rows = int(connection.execute(f"SELECT count(*) FROM ({text})").fetchone()[0])  # noqa: S608
    names = tuple(str(column) for column in relation.columns)
    identity = (*identity, load_duckdb().__version__)
    return Shard(name, lambda: QuerySource(connection, text, name, names), rows, identity)


class QuerySource(DeclaredSource):
    """The result of a query, streamed; see :class:`discreet.tables.opener.Source`."""

    def __init__(self, connection: Any, text: str, name: str, names: tuple[str, ...]) -> None:
        self._connection = connection
        self._text = text
        self.name = name
        self._raw = names
        self.names = [column.strip() for column in names]

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns in their own types."""
        from discreet.tables.ids import plain_column

        selection = ", ".join(quote_name(self._raw[number]) for number in columns)
        # A cursor of its own, so that two passes can be under way at the same time.
        cursor = self._connection.cursor()
        with closing(cursor), explain_query(self.name):
            result = cursor.sql(f"SELECT {selection} FROM ({self._text})")  # noqa: S608
            for batch in result.to_arrow_reader(_BATCH_ROWS):
                yield [plain_column(column) for column in batch.columns]

    def place(self, row: int) -> str:
        """Return the row, counted from 1."""
        return f"{self.name}, row {row + 1} of its result"


# -- items in rows --------------------------------------------------------------------------


def turn_round(source: Any, reading: Reading) -> tuple[Any, Reading]:
    """Return a table with items in rows as one with a row for each person, and how to read that.

    Its first column is called "person". Columns that the reading ignores are left out before.
    """
    names, rows = read_rows(source, reading.form)
    check_column(names, "item", reading.item, str(source))
    number = names.index(reading.item) if reading.item else 0
    items, persons = turn_rows(names, rows, number, reading.ignore)
    if twice := [name for name in items if items.count(name) > 1]:
        raise BadResponses(f"{source}: two rows are called '{twice[0]}'. Name each item otherwise.")
    beside = tuple(name for name in reading.ignore if name not in names)
    rules = replace(
        reading, layout="wide", item=None, ignore=beside, assumed=(*reading.assumed, _TURNED),
        sheet=None, delimiter=None, header=True, skip_rows=0, header_rows=1,
    )  # fmt: skip
    columns = [pa.array(cells, pa.string()) for cells in zip(*persons, strict=True)]
    return pa.table(columns, names=items), rules


def turn_rows(
    names: Sequence[str], rows: Sequence[Sequence[str | None]], item: int, ignore: Collection[str]
) -> tuple[list[str], list[list[str | None]]]:
    """Return names and rows of a table the other way round; a column names its rows.

    The first column is called "person"; rows without a name are left out.
    """
    persons = [n for n, name in enumerate(names) if n != item and name not in ignore]
    items = [row for row in rows if item < len(row) and (row[item] or "").strip()]
    turned = [[names[n], *(row[n] if n < len(row) else None for row in items)] for n in persons]
    return ["person", *((row[item] or "").strip() for row in items)], turned


_TURNED = Detected(
    "layout",
    "The table had a row for each item and was turned round.",
    Remedy("write a table with a row for each person"),
)
