"""Read Parquet files, a batch of rows at a time, only the columns that are needed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import BadResponses
from discreet.tables.ids import plain_column
from discreet.tables.paths import explain_read_errors, is_gzip, open_bytes

_CELLS = 1 << 22
"""Cells of a batch: with few columns many rows, with 10,000 columns some hundred."""


class ParquetSource:
    """A Parquet file."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
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
