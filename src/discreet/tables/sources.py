"""Sources of columns: CSV and TSV files, Parquet files, data frames.

In: a path, or a frame (pandas, polars, pyarrow, duckdb, and what else Narwhals knows). Out: a
:class:`~discreet.tables.opener.Source`: only the columns that are needed, a batch of rows at a
time. The columns of a text file are dictionary-encoded text exactly as written; a file of any
length needs a few blocks of memory, and only when a row is to be named in a message is it looked
at a second time, to count lines as an editor does. Parquet files and frames give columns in their
own types, frames through the Arrow C stream where they can.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from discreet.answers.matrices import is_records
from discreet.coding.reading import Form, Reading
from discreet.coding.remedies import DELIMITER_WORDS, Detected
from discreet.errors import BadResponses, BadUsage, DiscreetError, OutOfReach, Remedy
from discreet.names import NumberName, name_id
from discreet.tables.cells import make_column
from discreet.tables.columns import find_role_names, has_row_names, join_names
from discreet.tables.findings import DeclaredSource, detect_encoding, miscount, state_option
from discreet.tables.ids import plain_column
from discreet.tables.paths import (
    bad_encoding,
    declared_delimiter,
    decode,
    explain_read_errors,
    find_delimiter,
    find_encoding,
    find_packing,
    is_sep_line,
    limit_lines,
    name_delimiter,
    open_bytes,
    open_text,
    refuse_versioned,
)
from discreet.tabular import Tabular
from discreet.text import name_some

_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Smallest and largest block: 2 MB, which stays in cache, for few columns, up to 32 MB so that a
#: block of a table with 10,000 columns has a thousand rows and a column's overhead is paid rarely.
_BLOCK_BYTES = (1 << 21, 1 << 25)


#: Stands behind the last line, where no quoted text may reach.
_END = "\x1fend of the file"

#: To see whether rows have a name more than the header has.
_ROWS_LOOKED_AT = 5


class NotUtf8(Exception):
    """Bytes far into a file turned out not to be UTF-8; the file must be read again."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class DelimitedSource:
    """A file with one record per line and a delimiter between its fields.

    Parameters
    ----------
    path
        The file, gzipped or not.
    head
        Its first bytes, unpacked.
    encoding
        None to find it out.
    progress
        Called with the bytes of the file read so far.
    form
        What the user said about delimiter and header.
    skips_short
        Whether rows with fewer fields than names, such as notes, are left out.

    Attributes
    ----------
    decimal_comma
        Whether a comma can only part decimals, because something else parts the fields.
    """

    def __init__(
        self,
        path: Path,
        head: bytes,
        encoding: str | None,
        progress: Callable[[int], None] | None = None,
        form: Form | None = None,
        *,
        skips_short: bool = False,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._skips_short = skips_short
        self._has_long_rows = self._has_blank_lines = False
        self._encoding = encoding or find_encoding(path, head)
        self._progress = progress
        shape = form or Form()
        text = decode(path, head, self._encoding)
        rows = "".join(islice(io.StringIO(text, newline=""), shape.skip_rows, None))
        self._delimiter = shape.delimiter or find_delimiter(rows, path)
        self._is_declared = self._delimiter in (shape.delimiter, declared_delimiter(text, path))
        self.decimal_comma = self._delimiter != ","
        with explain_read_errors(path), open_text(path, self._encoding) as lines:
            skipped = sum(1 for _ in islice(lines, shape.skip_rows))
            header, self._header_lines = _read_header(lines, self._delimiter, path, shape.header)
            self._header_lines += skipped
            for _ in range(1, shape.header_rows):
                below, lines_below = _read_header(lines, self._delimiter, path, shape.header)
                header, self._header_lines = (
                    join_names(header, below),
                    self._header_lines + lines_below,
                )
        if shape.header:
            self.names = [name.strip() for name in header]
            records = [fields for fields, _ in islice(self._records(), _ROWS_LOOKED_AT)]
            if has_row_names(self.names, records):
                self.names = ["", *self.names]
        else:
            self._header_lines -= 1 + sum(name.count("\n") for name in header)
            self.names = [str(number) for number in range(1, len(header) + 1)]

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return whether rows decided on delimiter, encoding, or what a row is, as far as read."""
        del columns
        detected = []
        if not self._is_declared:
            sentence = (
                f"{self.path}: the first lines have {name_delimiter(self._delimiter)} between "
                "their fields, where a comma is the rule."
            )
            options = {"delimiter": DELIMITER_WORDS.get(self._delimiter, self._delimiter)}
            detected.append(state_option("delimiter", sentence, options))
        if self._has_long_rows:
            long = (line for fields, line in self._records() if any("\n" in one for one in fields))
            sentence = f"{self.path}, line {next(long, '?')}: the row and its line differ."
            remedy = Remedy("write every row in one line: take line ends out of cells")
            detected.append(Detected("lines", sentence, remedy))
        if self._has_blank_lines and len(self.names) > 1 and not has_ids:
            detected.append(miscount(self.name, "it has blank lines"))
        return (*detected, *detect_encoding(self.path, self._encoding))

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns as text; see :class:`discreet.tables.opener.Source`."""
        names = [str(number) for number in columns]
        with explain_read_errors(self.path), open_arrow(self.path) as raw:
            packing = find_packing(self.path)
            stream = raw if packing is None else pa.CompressedInputStream(raw, packing)
            n_rows = 0
            try:
                for batch in self._open(stream, names):
                    yield [batch.column(name) for name in names]
                    n_rows += batch.num_rows
                    if self._progress is not None:
                        self._progress(raw.tell())
                self._check_lines(n_rows)
            except pa.ArrowInvalid as error:
                self._explain(error)
            except UnicodeDecodeError:
                raise BadResponses(bad_encoding(self.path)) from None

    def _open(self, stream: Any, selection: list[str]) -> Iterator[Any]:
        n_columns = len(self.names)
        block = min(max(n_columns * 8192, _BLOCK_BYTES[0]), _BLOCK_BYTES[1])
        # Arrow skips no header that is longer than a block; four bytes a character are enough.
        block = max(block, 4 * sum(len(name) + 3 for name in self.names))
        names = [str(number) for number in range(n_columns)]

        def judge_row(row: Any) -> str:
            is_short = row.actual_columns < row.expected_columns
            return "skip" if self._skips_short and is_short else "error"

        reader = pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(
                column_names=names,
                skip_rows=self._header_lines,
                block_size=block,
                encoding="utf8" if self._encoding == "utf-8" else self._encoding,
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                # In a table of one column an empty line is a person without an answer.
                ignore_empty_lines=n_columns > 1,
                invalid_row_handler=judge_row,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(selection, _TEXT),
                include_columns=selection,
                strings_can_be_null=False,
            ),
        )
        yield from reader

    def _explain(self, error: Exception) -> None:
        """Raise what an error of the CSV reader means; return where it means "no rows"."""
        text = str(error)
        if "Could not skip initial" in text or "Empty CSV" in text:
            return
        if "UTF8" in text and self._encoding == "utf-8":
            raise NotUtf8(self.path) from None
        for fields, line in self._records():
            if fields and len(fields) != len(self.names) and not self._is_skipped(fields):
                n_fields = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                open_quote = any("\n" in text for text in fields)
                raise BadResponses(
                    f"{self.path}, line {line}: found {n_fields}, but the first row has "
                    f"{len(self.names)} column names, so it is not clear which answer is which. "
                    f"Correct the line (the delimiter is {name_delimiter(self._delimiter)})."
                    + (
                        " A quotation mark that is opened and not closed can cause this."
                        if open_quote
                        else ""
                    )
                ) from None
        raise BadResponses(f"{self.path} cannot be read as a table: {text}.") from None

    def _check_lines(self, n_rows: int) -> None:
        """Refuse a quotation mark that is never closed; note whether each line is one row."""
        quotes, last = 0, ""
        with open_text(self.path, self._encoding) as stream:
            while chunk := stream.read(1 << 22):
                text, quotes = last + chunk, quotes + chunk.count('"')
                n_returns = text.count("\r") - text.endswith("\r")
                self._has_long_rows |= n_returns > text.count("\r\n")
                self._has_blank_lines |= "\n\n" in text or "\n\r\n" in text
                last = text[-2:]
        if quotes % 2:
            self._check_quotes()
        if quotes and not self._skips_short:
            self._has_long_rows |= n_rows < self._count_lines()

    def _count_lines(self) -> int:
        """Return how many lines below the header may be rows."""
        blank = ("\n", "\r\n") if len(self.names) > 1 else ()
        with open_text(self.path, self._encoding) as text:
            return sum(line not in blank for line in islice(text, self._header_lines, None))

    def _check_quotes(self) -> None:
        for fields, line in self._records([_END]):
            if fields and (fields == ["\n"] or (_END in fields[-1] and fields != [_END])):
                raise BadResponses(
                    f"{self.path}, line {line}: a quotation mark is not closed in its line, so "
                    "that the rows below it may be lost. Close it, or remove it."
                )

    def place(self, row: int) -> str:
        """Return file and line of a row, counted as an editor counts lines."""
        skip_empty = len(self.names) > 1
        records = self._records()
        rows = (
            (f, line) for f, line in records if (f or not skip_empty) and not self._is_skipped(f)
        )
        for number, (_, line) in enumerate(rows):
            if number == row:
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _is_skipped(self, fields: Sequence[str]) -> bool:
        return self._skips_short and len(fields) < len(self.names)

    def _records(self, end: Sequence[str] = ()) -> Iterator[tuple[list[str], int]]:
        """Yield the fields of each record after the header and the line it begins on."""
        with open_text(self.path, self._encoding) as text:
            lines = chain(limit_lines(self.path, text), end)
            reader = csv.reader(lines, delimiter=self._delimiter)
            line = 1
            try:
                for fields in reader:
                    if line > self._header_lines:
                        yield fields, line
                    line = reader.line_num + 1
            except csv.Error:  # a field beyond all measure, usually an open quotation mark
                yield ["\n"], line


def _read_header(lines: Any, delimiter: str, path: Path, has_names: bool) -> tuple[list[str], int]:
    """Return the fields of the first record and the number of lines up to its end.

    Without names the first record is a row, whatever it holds.
    """
    reader = csv.reader(limit_lines(path, lines), delimiter=delimiter)
    try:
        first = next(one for one in reader if one and not (has_names and is_sep_line(one)))
        return first, reader.line_num
    except csv.Error as error:
        raise BadResponses(
            f"{path}: the first row cannot be read as column names ({error}). It should hold one "
            "name per column, with a comma, tab or semicolon between them."
        ) from None
    except StopIteration:
        raise BadResponses(f"{path} has no row of column names.") from None


#: Cells of a batch: with few columns many rows, with 10,000 columns some hundred.
_CELLS = 1 << 22


class FrameSource(DeclaredSource):
    """A frame as an Arrow table; rows count from 0, as frames count them."""

    name = "The data frame"

    def __init__(self, table: Any) -> None:
        self.table = table
        self.names = [
            NumberName(field.name) if field.metadata == _NUMBER else str(field.name.strip())
            for field in table.schema
        ]

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        step = max(64, _CELLS // max(len(columns), 1))
        for start in range(0, self.table.num_rows, step):
            part = [self.table.column(number).slice(start, step) for number in columns]
            yield [plain_column(column) for column in part]

    def place(self, row: int) -> str:
        return f"{self.name}, row {row} (counted from 0)"


#: Marks columns of a pandas frame whose labels are numbers; Arrow knows names only.
_NUMBER = {b"discreet": b"number"}


def is_data_frame(source: object) -> bool:
    """Say whether a source is a data frame that keeps its rows in memory."""
    is_result = isinstance(source, Tabular)
    return hasattr(source, "iloc") or (hasattr(source, "__arrow_c_stream__") and not is_result)


def as_arrow(frame: Any) -> Any:
    """Return a data frame of any kind as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    refuse_spark(frame)
    if is_records(frame):
        return _records_to_arrow(frame)
    if isinstance(frame, Mapping):
        return _columns_to_arrow(frame)
    if hasattr(frame, "iloc") and hasattr(frame, "index"):
        return _pandas_to_arrow(frame if hasattr(frame, "columns") else _unfold_series(frame))
    if any(str(column.dtype) == "Object" for column in getattr(frame, "get_columns", list)()):
        return _columns_to_arrow(frame.to_dict(as_series=False))  # of polars: Arrow has pointers
    if not hasattr(frame, "__arrow_c_stream__"):
        frame = _through_narwhals(frame)
    try:
        table = pa.RecordBatchReader.from_stream(frame).read_all()
    except pa.ArrowInvalid:  # a column, not a table
        raise _refuse_column(frame) from None
    # Arrow cannot take rows of the texts of polars.
    texts = [one.with_type(pa.large_string()) if one.type == pa.string_view() else one
             for one in table.schema]  # fmt: skip
    return table.cast(pa.schema(texts))


def has_head(source: object) -> bool:
    """Say whether a source is a frame whose first rows can be looked at, and then read again."""
    if isinstance(source, pa.Table | Mapping) or is_records(source):
        return True
    kind = type(source)  # of a lazy frame the columns themselves would be computed
    is_frame = hasattr(kind, "columns") and (hasattr(kind, "head") or hasattr(kind, "limit"))
    return is_frame and not is_spark(source)


def take_head(frame: Any, rows: int) -> Any:
    """Return the first rows of a frame, if it says how many it has or can be cut."""
    if isinstance(frame, pa.Table):
        return frame.slice(0, rows)
    if isinstance(frame, Mapping):
        is_cut = all(hasattr(cells, "__getitem__") for cells in frame.values())
        return {name: cells[:rows] for name, cells in frame.items()} if is_cut else frame
    if is_records(frame):
        return frame[:rows]
    cut = getattr(frame, "head", None) or getattr(frame, "limit", None)
    return frame if cut is None else cut(rows)


def is_spark(source: object) -> bool:
    """Say whether something comes from Spark, without importing Spark."""
    return type(source).__module__.startswith("pyspark.")


def refuse_spark(frame: object) -> None:
    """Refuse a frame of a cluster where answers must be in memory."""
    if is_spark(frame):
        raise OutOfReach(
            "a Spark data frame stays in its cluster, and here the answers must be in memory. "
            "fit, count_pairs and release take it as it is; otherwise give frame.toPandas(), of "
            "a part of it if need be."
        )


def _records_to_arrow(records: Sequence[Mapping[Any, Any]]) -> Any:
    """Return rows that name their columns as an Arrow table; a row may lack some of them."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return _columns_to_arrow({name: [record.get(name) for record in records] for name in names})


def _columns_to_arrow(columns: Mapping[object, object]) -> Any:
    """Return named columns of cells as an Arrow table."""
    try:
        arrays = [_take_column(cells) for cells in columns.values()]
        return pa.Table.from_arrays(arrays, names=[str(name) for name in columns])
    except (TypeError, pa.ArrowInvalid):
        raise BadUsage(
            "a dict is a table whose keys name columns, each with a list of as many cells: "
            '{"Q1": [1, 0], "Q2": [0, 1]}. For single rows give a list of dicts.'
        ) from None


def _take_column(cells: Any) -> Any:
    """Return a column in its own type where it has one; otherwise each cell becomes text."""
    has_type = isinstance(cells, np.ndarray) and cells.dtype.kind in "biufmM"
    return pa.array(cells) if has_type else make_column([*cells])


def _unfold_series(series: Any) -> Any:
    """Return a pandas Series of answers by person and item as a long frame."""
    if series.index.nlevels < 2:
        raise _refuse_column(series)
    return series.to_frame("response" if series.name is None else series.name)


def _refuse_column(column: pa.Array) -> BadUsage:
    return BadUsage(
        f"a table is needed, found a single column ({type(column).__name__}), which does not say "
        "who gave which answer. Give the data frame; or, in pandas, a Series with an index of "
        "person and item."
    )


def _through_narwhals(frame: Any) -> Any:
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError:
        raise BadUsage(
            f"A data frame is needed (pandas, polars, pyarrow, duckdb, ...); found "
            f"{type(frame).__name__}. Use Responses.from_array for arrays and lists, and the path "
            "of a file instead of the opened file."
        ) from None
    eager = table.collect("pyarrow") if isinstance(table, nw.LazyFrame) else table
    return eager.to_arrow()


def _pandas_to_arrow(frame: Any) -> Any:
    """Return a pandas frame as an Arrow table, an index with labels of its own included."""
    names = [name_id(name) for name in frame.columns]
    arrays = [_pandas_column(column) for _, column in frame.items()]
    index = frame.index
    counts_rows = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if index.nlevels == 1 and index.name is None and index.dtype.kind in "iu":
        # Rows were filtered or sorted; where a column names the persons, they keep their numbers.
        counts_rows |= "person" in find_role_names([*map(str, names)], Reading())
    if index.nlevels > 1:
        levels = [_name_level(index, number) for number in range(index.nlevels)]
        parts = [_pandas_column(index.get_level_values(n)) for n in range(index.nlevels)]
        names, arrays = [*levels, *names], [*parts, *arrays]
    elif not (counts_rows and index.name is None):
        names.insert(0, "" if index.name is None else str(index.name))
        arrays.insert(0, _pandas_column(index))
    fields = [
        pa.field(name, array.type, metadata=_NUMBER if isinstance(name, NumberName) else None)
        for name, array in zip(names, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _name_level(index: Any, number: int) -> str:
    if index.names[number] is None:
        raise BadUsage(
            f"the data frame has an index of {index.nlevels} levels, and level {number} has no "
            "name, so it is not clear whether it holds persons or items. Name the levels with "
            "frame.rename_axis(['person', 'item']), or drop them with "
            "frame.reset_index(drop=True)."
        )
    return str(index.names[number])


def _pandas_column(column: pa.Array) -> Any:
    dtype = column.dtype
    is_number = isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    if is_number and not (dtype.kind == "f" and dtype.itemsize < 4):
        # NaN stays NaN, which is missing all the same; finding it would cost a copy.
        return pa.array(column.to_numpy(), from_pandas=False)
    if object in (dtype, getattr(getattr(dtype, "categories", None), "dtype", None)):
        return make_column([*column])
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError):  # a type that only pandas has
        return make_column([*column])


def open_arrow(path: Path) -> Any:
    """Open a file for Arrow, which takes names that are not UTF-8 as bytes only."""
    return pa.OSFile(os.fsencode(path), "rb")


class ParquetSource(DeclaredSource):
    """A Parquet file."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        import pyarrow.parquet as pq  # only here: it takes a while

        refuse_versioned(path)
        self.path = path
        self.name = str(path)
        self._progress = progress
        with explain_read_errors(path), _explain_damage(path):
            self._copy = None if find_packing(path) is None else _unpack(path)
            # Read ahead (pre_buffer), Arrow would keep everything it read until the file closes.
            stream = open_arrow(path) if self._copy is None else self._copy
            self._file = pq.ParquetFile(stream, pre_buffer=False)
        self.names = [str(name).strip() for name in self._file.schema_arrow.names]

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns in their own types; see :class:`discreet.tables.opener.Source`."""
        raw = self._file.schema_arrow.names
        names = [raw[number] for number in columns]
        size = self.path.stat().st_size
        n_rows = max(self._file.metadata.num_rows, 1)
        done = 0
        with _explain_damage(self.path):
            batch_size = max(64, min(1 << 17, _CELLS // max(len(names), 1)))
            for batch in self._file.iter_batches(batch_size=batch_size, columns=names):
                yield [plain_column(batch.column(name)) for name in names]
                done += batch.num_rows
                if self._progress is not None:
                    self._progress(size * done // n_rows)
        if self._copy is not None:
            self._copy.close()

    def place(self, row: int) -> str:
        """Return file and row, counted from 1."""
        return f"{self.path}, row {row + 1}"


@contextmanager
def _explain_damage(path: Path, kind: str = "Parquet") -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, sqlite3.DatabaseError, ValueError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise BadResponses(
            f"{path} is damaged or cut off and cannot be read as {kind}: {error}. "
            "Copy or write the file again."
        ) from None


class StoredTable(FrameSource):
    """A table of a file that is read as a whole: Arrow's, SQLite's, or a list of records."""

    def __init__(self, path: Path, kind: str) -> None:
        self.name = str(path)
        name, read = STORED[kind]
        with explain_read_errors(path), _explain_damage(path, name):
            super().__init__(read(path))

    def place(self, row: int) -> str:
        """Return file and row, counted from 1."""
        return f"{self.name}, row {row + 1}"


def _read_arrow(path: Path) -> Any:
    with open_bytes(path) as stream:
        data = pa.py_buffer(stream.read())
    is_file = data[:6].to_pybytes() == b"ARROW1"
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(data).read_all()


def _read_list(path: Path) -> Any:
    with open_bytes(path) as stream:
        records = json.loads(stream.read(), parse_float=str)
    if not all(isinstance(record, dict) for record in records):
        raise BadResponses(f"{path} is no list of records, each with a value for every column.")
    return _records_to_arrow(records)


def _read_sqlite(path: Path) -> Any:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
        listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        tables = [name for (name,) in file.execute(listed) if not name.startswith("sqlite_")]
        if len(tables) != 1:
            raise BadUsage(
                f"{path} has {len(tables)} tables ({name_some(tables)}), and one is read. Read the "
                "one with the answers as a data frame (pandas.read_sql)."
            )
        quoted = tables[0].replace('"', '""')
        rows = file.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 (a name of the file's own)
        names = [column[0] for column in rows.description]
        return _records_to_arrow([dict(zip(names, row, strict=True)) for row in rows])


#: What the formats are called, and how they are read.
STORED: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    "arrow": ("Arrow", _read_arrow),
    "records": ("JSON", _read_list),
    "sqlite": ("SQLite", _read_sqlite),
}


class AddedColumns:
    """A source with columns that are the same in every row: its sheet, or parts of its path."""

    def __init__(self, source: Any, added: Mapping[str, str | None]) -> None:
        self._source, self.name = source, source.name
        self.place, self.detect = source.place, source.detect
        self.added = {key: word for key, word in added.items() if key not in source.names}
        self.names = [*source.names, *self.added]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns, those of the source and those added."""
        width, words = len(self._source.names), list(self.added.values())
        own = [number for number in columns if number < width]
        for batch in self._source.batches(own or [0]):
            parts = iter(batch)
            yield [
                next(parts)
                if number < width
                else pa.array([words[number - width]] * len(batch[0]), pa.string())
                for number in columns
            ]


def _unpack(path: Path) -> Any:
    """Return an unpacked copy of a packed Parquet file, which must be read out of order."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the ParquetFile)
    with open_bytes(path) as stream:
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.seek(0)
    return copy
