"""In a task: turn Arrow batches into stored answers of whole persons.

In: the batches of one task and their layout. Out: persons with their answers, all at once, or
some at a time where every row is a whole person. Values, ids and mistakes are read by the same
code as from files, and mistakes are told in the same words, but rows of a DataFrame have no
numbers, so person and item say where.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.intake import WideTable
from discreet.answers.spark.layout import NAME, RowLayout
from discreet.answers.streamed.batches import store_rows
from discreet.answers.streamed.blocks import ItemNames, LongRows
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Shard
from discreet.tables.ids import IdCodes, plain_column, spell_ids
from discreet.tables.remedies import DeclaredSource
from discreet.tables.separators import sort_keys
from discreet.tables.values import read_integers
from discreet.types import FloatArray

GATHER_CELLS = 1 << 20
"""Cells read together: Spark's own batches of 10,000 rows would cost more in calls than in work."""
SLAB_CELLS = 1 << 24
"""Cells of whole rows that are counted together: 16 MB before packing."""


@dataclass(frozen=True)
class Persons:
    """Whole persons: their answers, and their ids (numbers, texts, or None for rows).

    ``marks`` are hashes of what rows without ids hold, if rows were dealt by them.
    """

    store: AnswerStore
    ids: Any
    marks: npt.NDArray[np.int64] | None = None

    def names(self) -> list[bytes] | None:
        """Return the ids as bytes, as text has them."""
        if self.ids is None:
            return None
        return [str(name).encode() for name in self.ids.tolist()]


def read_task_persons(batches: Iterator[Any], layout: RowLayout) -> Iterator[Persons]:
    """Read the rows of one task; a task without rows has no persons."""
    size = GATHER_CELLS if not layout.whole_rows else SLAB_CELLS
    tables = _gather(batches, max(1, size // len(layout.names)))
    if isinstance(layout.plan, LongPlan):
        yield from _read_long(tables, layout, layout.plan)
    elif layout.whole_rows:
        for table in tables:
            persons = _read_wide(iter([table]), layout, layout.plan)
            yield replace(persons, marks=_find_marks(table, layout))
    else:
        first = next(tables, None)
        if first is not None:
            yield _read_wide(chain([first], tables), layout, layout.plan)


def _find_marks(table: Any, layout: RowLayout) -> npt.NDArray[np.int64] | None:
    if table.num_columns == len(layout.names):
        return None
    return read_integers(plain_column(table.column(table.num_columns - 1)))


def _gather(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Put small batches together."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(table.num_rows for table in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if sum(table.num_rows for table in held):
        yield pa.Table.from_batches(held)


class _Rows(DeclaredSource):
    """The rows of a task; see :class:`discreet.tables.opener.Source`."""

    name = NAME

    def __init__(self, tables: Iterator[Any], layout: RowLayout) -> None:
        self.names = layout.names
        self._tables, self._plan = tables, layout.plan
        self._table: Any = None
        self._start = self._stop = 0

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns, and remember the rows until the next."""
        for table in self._tables:
            self._start, self._stop = self._stop, self._stop + table.num_rows
            self._table = table
            yield [plain_column(table.column(number)) for number in columns]

    def place(self, row: int) -> str:
        """Say whose row this is, if it is among the last that were read."""
        at = row - self._start
        if self._table is None or not 0 <= at < self._table.num_rows or self._plan.person is None:
            return NAME
        person = self._table.column(self._plan.person)[at].as_py()
        if isinstance(self._plan, WidePlan):
            return f"{NAME}, the row of person {person!r}"
        item = self._table.column(self._plan.item)[at].as_py()
        return f"{NAME}, the row of person {person!r} and item {item!r}"


def _read_long(tables: Iterator[Any], layout: RowLayout, plan: LongPlan) -> Iterator[Persons]:
    first = next(tables, None)
    if first is None:
        return
    source = _Rows(chain([first], tables), layout)
    shard = Shard(NAME, lambda: source, 0, ())
    names = ItemNames(layout.items, closed=True)
    rows = LongRows([shard], [plan], layout.reading, names, as_text=layout.as_text)
    texts, numbers = IdCodes(), list[Any]()
    blocks = []
    for block in rows.blocks():
        (texts.add if layout.as_text else numbers.append)(block.person)
        blocks.append((block.item, block.value, block.when))
    codes, ids = _encode_texts(texts) if layout.as_text else _encode_numbers(numbers)
    items, values, when = (np.concatenate(part) for part in zip(*blocks, strict=True))

    def place(row: int) -> str:
        return f"a row of {NAME[0].lower()}{NAME[1:]} with answer {values[row]}"

    if plan.order:
        _refuse_ties(codes, items, values, when, ids, layout)
    try:
        store = store_rows(codes, items, values, ids, layout.items, layout.reading, place, when)
    except BadResponses as again:
        raise _without_order(again) from None
    yield Persons(store, ids)


def _refuse_ties(
    person: Any, item: Any, value: Any, when: FloatArray, ids: Any, layout: RowLayout
) -> None:
    """Refuse different answers of one time: rows come in any order, so none would be the last."""
    rows = np.flatnonzero(value >= 0)
    keys = person[rows].astype(np.int64) * len(layout.items) + item[rows]
    row = rows[sort_keys(keys, when[rows])]
    keyed = np.column_stack([person, item, when])[row]
    tied = np.flatnonzero((keyed[1:] == keyed[:-1]).all(axis=1) & (np.diff(value[row]) != 0))
    if tied.size:
        first = row[tied[0]]
        raise BadResponses(
            f"{NAME}: person '{ids[person[first]]}' answered item '{layout.items[item[first]]}' "
            f"differently at one and the same time (column '{layout.names[-1]}'), so that no "
            "answer is the last. Name a column that tells them apart, or remove one of them."
        )


def _without_order(error: BadResponses) -> BadResponses:
    """Give other advice on a repeated answer: here no row is the first or the last."""
    message, _, _ = str(error).partition(" Remove one")
    return BadResponses(
        f"{message} Remove one of them, for example with dropDuplicates, or keep the last with "
        "repeats='last' and order_by= a column of times or numbers."
    )


def _encode_numbers(parts: Sequence[Any]) -> tuple[Any, Any]:
    encoded = pa.array(np.concatenate(parts)).dictionary_encode()
    return read_integers(encoded.indices), read_integers(encoded.dictionary)


def _encode_texts(codes: IdCodes) -> tuple[Any, Any]:
    names = np.array(codes.names().to_pylist(), dtype=object)
    return codes.take_codes(), names


def _read_wide(tables: Iterator[Any], layout: RowLayout, plan: WidePlan) -> Persons:
    table = WideTable(layout.reading)
    table.add_source(_Rows(tables, layout), plan)
    try:
        parts = table.finish()
    except BadResponses as again:
        raise _without_order(again) from None
    ids = None if parts.persons is None else np.array(spell_ids(parts.persons), dtype=object)
    return Persons(parts.store, ids)


def is_spark_frame(source: object) -> bool:
    """Say whether something is a Spark DataFrame, without importing Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(source).__mro__
    )


def find_frame(source: Any) -> Any:
    """Return a DataFrame, classic or of Spark Connect, as it is, and that of a table by its name.

    PySpark is imported only to look up a table: whoever has a DataFrame has PySpark already.
    """
    if is_spark_frame(source):
        return source
    if isinstance(source, str):
        return _active_session().table(source)
    if type(source).__module__.startswith("pyspark.pandas"):
        raise BadUsage(
            "engine='spark' takes a Spark DataFrame, found a pandas-on-Spark one; "
            "pass frame.to_spark()"
        )
    raise BadUsage(
        "engine='spark' takes a Spark DataFrame or the name of a table such as "
        f"'catalog.schema.table', found {type(source).__name__}; for files, read them with "
        "spark.read first, or leave the engine to 'auto'"
    )


def _active_session() -> Any:
    """Return the session of this thread: classic, or of Spark Connect."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("engine='spark'", "spark") from None
    session = SparkSession.getActiveSession()
    if session is None:
        session = _connect_session()
    if session is None:
        raise BadUsage(
            "engine='spark' was asked for a table by its name, but there is no active Spark "
            "session to look it up in; start one, or pass spark.table(name)"
        )
    return session


def _connect_session() -> Any:
    """Return the active session of Spark Connect; whoever has one has loaded its module.

    Importing it here would end the process where the packages that it needs are missing and
    Python runs neither a file nor a prompt: PySpark then calls ``sys.exit``.
    """
    module = sys.modules.get("pyspark.sql.connect.session")
    return None if module is None else module.SparkSession.getActiveSession()
