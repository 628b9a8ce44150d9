"""Read data frames: pandas, polars, pyarrow, duckdb, and what else Narwhals knows.

In: a frame. Out: the parts of a table. Frames give their columns through the Arrow C stream
where they can; plain number and truth-value columns of a wide frame are packed as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import BadResponses, BadUsage
from discreet.store.pack_numpy import BadCell, pack_columns
from discreet.store.select import flip_answers
from discreet.tables.arrays import compact
from discreet.tables.ids import BadIds, encode_ids, plain_column
from discreet.tables.long import LongTable
from discreet.tables.roles import LongPlan, Reading, WidePlan, plan_columns
from discreet.tables.source import RawTable
from discreet.tables.values import Scoring, explain_bad_answer
from discreet.tables.wide import WideTable

_CELLS = 1 << 22
"""Cells of a batch."""


def read_frame(frame: Any, reading: Reading) -> RawTable:
    """Return the answers of a long or wide frame."""
    source = FrameSource(as_arrow(frame))
    if not source.names:
        raise BadResponses("The data frame has no columns, so there are no answers in it.")
    plan = plan_columns(source.names, reading, source.name)
    if source.table.num_rows == 0:
        raise BadResponses("The data frame has columns but no rows, so there are no answers in it.")
    if isinstance(plan, LongPlan):
        table = LongTable(reading)
        table.add_source(source, plan)
        return table.finish()
    packed = _pack_whole(source, plan, reading)
    if packed is not None:
        return packed
    wide = WideTable(reading)
    wide.add_source(source, plan)
    return wide.finish()


class FrameSource:
    """A frame as an Arrow table; rows count from 0, as frames count them."""

    name = "The data frame"

    def __init__(self, table: Any) -> None:
        self.table = table
        self.names = [name.strip() for name in table.column_names]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        step = max(64, _CELLS // max(len(columns), 1))
        for start in range(0, self.table.num_rows, step):
            part = [self.table.column(number).slice(start, step) for number in columns]
            yield [plain_column(column) for column in part]

    def place(self, row: int) -> str:
        return f"{self.name}, row {row} (counted from 0)"


def is_frame(source: Any) -> bool:
    """Say whether a source is a data frame that keeps its rows in memory."""
    return hasattr(source, "iloc") or hasattr(source, "__arrow_c_stream__")


def as_arrow(frame: Any) -> Any:
    """Return a data frame of any kind as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "iloc") and hasattr(frame, "index"):
        return _pandas_to_arrow(frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        frame = _through_narwhals(frame)
    return pa.RecordBatchReader.from_stream(frame).read_all()


def _through_narwhals(frame: Any) -> Any:
    import narwhals as nw

    try:
        known = nw.from_native(frame)
    except TypeError:
        raise BadUsage(
            f"A data frame is needed (pandas, polars, pyarrow, duckdb, ...); found "
            f"{type(frame).__name__}. Use Responses.from_array for arrays and lists."
        ) from None
    eager = known.collect("pyarrow") if isinstance(known, nw.LazyFrame) else known
    return eager.to_arrow()


def _pandas_to_arrow(frame: Any) -> Any:
    """Return a pandas frame as an Arrow table, an index with labels of its own included."""
    columns = {number: frame.iloc[:, number] for number in range(frame.shape[1])}
    names = [str(name) for name in frame.columns]
    arrays = [_pandas_column(column) for column in columns.values()]
    index = frame.index
    counts_rows = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if not (counts_rows and index.name is None) and index.nlevels == 1:
        names.insert(0, "" if index.name is None else str(index.name))
        arrays.insert(0, _pandas_column(index))
    return pa.Table.from_arrays(arrays, names=names)


def _pandas_column(column: Any) -> Any:
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize >= 4:
        # NaN stays NaN, which is missing all the same; finding it would cost a copy.
        return pa.array(column.to_numpy(), from_pandas=False)
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Mixed types: as text, so that the one value that is no answer can be named.
        empty = column.isna()
        texts = [None if e else str(v) for v, e in zip(column, empty, strict=True)]
        return pa.array(texts, type=pa.string())


def _pack_whole(source: FrameSource, plan: WidePlan, reading: Reading) -> RawTable | None:
    """Pack columns as they are; None if something needs more care (text, repeats, groups)."""
    table = source.table
    columns = [table.column(number) for number in plan.items]
    if reading.scoring != Scoring() or plan.groups or not all(map(_is_plain, columns)):
        return None
    persons = None
    if plan.person is not None:
        try:
            ids = encode_ids(plain_column(table.column(plan.person)))
        except BadIds:
            return None
        if ids.indices.null_count or len(ids.dictionary) != len(ids):
            return None
        persons = ids.dictionary_decode()
    try:
        planes = pack_columns(columns)
    except BadCell as bad:
        name = source.names[plan.items[bad.column]]
        where = source.place(bad.row)
        message = explain_bad_answer(where, name, bad.value, reading.scoring, wide=True)
        raise BadResponses(message) from None
    store = compact(planes)
    items = tuple(source.names[number] for number in plan.items)
    return RawTable(
        items, persons, flip_answers(store) if reading.one_means == "wrong" else store, {}
    )


def _is_plain(column: Any) -> bool:
    """Say whether a column can be packed as it is.

    Packing takes -1 for missing, as arrays have it; in tables -1 is refused, as in files.
    """
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return True
    if not (pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)):
        return False
    if not pa.types.is_signed_integer(kind) and not pa.types.is_floating(kind):
        return True
    return not any(_has_negative(chunk) for chunk in column.chunks)


def _has_negative(chunk: Any) -> bool:
    if chunk.null_count:  # what lies under a null may be anything
        low = pc.min_max(chunk)["min"].as_py()
        return low is not None and low < 0
    values = chunk.to_numpy(zero_copy_only=True)
    # The sign bit of the smallest value; NaN compares as neither.
    return bool(values.size and np.fmin.reduce(values) < 0)
