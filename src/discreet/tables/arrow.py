"""Read tables whose columns have types already: data frames and Parquet files.

In: a frame (pandas, polars, pyarrow, duckdb, and what else Narwhals knows) or a file. Out: a source
of Arrow columns, only those that are needed, a batch of rows at a time. Frames give theirs through
the Arrow C stream where they can.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses, BadUsage
from discreet.tables.ids import plain_column
from discreet.tables.paths import explain_read_errors, is_gzip, open_bytes

_CELLS = 1 << 22
"""Cells of a batch: with few columns many rows, with 10,000 columns some hundred."""


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


class ParquetSource:
    """A Parquet file."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        import pyarrow.parquet as pq  # only here: it takes a while

        self.path = path
        self.name = str(path)
        self._progress = progress
        with explain_read_errors(path), _explain_damage(path):
            self._copy = _unpack(path) if is_gzip(path) else None
            # Read ahead (pre_buffer), Arrow would keep everything it read until the file closes.
            place = self.name if self._copy is None else self._copy
            self._file = pq.ParquetFile(place, pre_buffer=False)
        self.names = [str(name).strip() for name in self._file.schema_arrow.names]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns in their own types; see :class:`discreet.tables.opener.Source`."""
        raw = self._file.schema_arrow.names
        wanted = [raw[number] for number in columns]
        size = self.path.stat().st_size
        n_rows = max(self._file.metadata.num_rows, 1)
        done = 0
        with _explain_damage(self.path):
            batch_size = max(64, min(1 << 17, _CELLS // max(len(wanted), 1)))
            for batch in self._file.iter_batches(batch_size=batch_size, columns=wanted):
                yield [plain_column(batch.column(name)) for name in wanted]
                done += batch.num_rows
                if self._progress is not None:
                    self._progress(size * done // n_rows)
        if self._copy is not None:
            self._copy.close()

    def place(self, row: int) -> str:
        """Return file and row, counted from 1."""
        return f"{self.path}, row {row + 1}"


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise BadResponses(
            f"{path} is damaged or cut off and cannot be read as Parquet: {error}. "
            "Copy or write the file again."
        ) from None


def _unpack(path: Path) -> Any:
    """Return an unpacked copy of a gzipped Parquet file, which must be read out of order."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the ParquetFile)
    with open_bytes(path) as stream:
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.seek(0)
    return copy
