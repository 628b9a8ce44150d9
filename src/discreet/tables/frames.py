"""Read data frames: pandas, polars, pyarrow, duckdb, and what else Narwhals knows.

In: a frame. Out: the parts of a table. Frames give their columns through the Arrow C stream
where they can; plain number and truth-value columns of a wide frame are packed as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadUsage
from discreet.tables.ids import plain_column

_CELLS = 1 << 22
"""Cells of a batch."""


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
