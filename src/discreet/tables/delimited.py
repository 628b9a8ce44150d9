"""Read CSV and TSV files, a block at a time.

In: a path. Out: a source whose columns are dictionary-encoded text exactly as written. A file
of any length needs a few blocks of memory. Only when a row is to be named in a message is the
file looked at a second time, to count lines as an editor does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from discreet.errors import BadResponses
from discreet.tables.paths import (
    bad_encoding,
    decode,
    explain_read_errors,
    find_encoding,
    is_gzip,
    limit_lines,
    open_bytes,
    open_text,
)

_TEXT = pa.dictionary(pa.int32(), pa.string())
_BLOCK_BYTES = (1 << 21, 1 << 25)
"""Smallest and largest block: 2 MB, which stays in cache, for few columns, up to 32 MB so that a
block of a table with 10,000 columns has a thousand rows and a column's overhead is paid rarely.
"""


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
    """

    def __init__(
        self,
        path: Path,
        head: bytes,
        encoding: str | None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._encoding = encoding or find_encoding(path, head)
        self._progress = progress
        text = decode(path, head, self._encoding)
        self._delimiter = _find_delimiter(text, path)
        with explain_read_errors(path), open_text(path, self._encoding) as lines:
            header, self._header_lines = _read_header(lines, self._delimiter, path)
        self.names = [name.strip() for name in header]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns as text; see :class:`discreet.tables.opener.Source`."""
        wanted = [str(number) for number in columns]
        with explain_read_errors(self.path), pa.OSFile(self.name, "rb") as raw:
            stream = pa.CompressedInputStream(raw, "gzip") if is_gzip(self.path) else raw
            try:
                for batch in self._open(stream, wanted):
                    yield [batch.column(name) for name in wanted]
                    if self._progress is not None:
                        self._progress(raw.tell())
            except pa.ArrowInvalid as error:
                self._explain(error)
            except UnicodeDecodeError:
                raise BadResponses(bad_encoding(self.path)) from None

    def _open(self, stream: Any, wanted: list[str]) -> Iterator[Any]:
        n_columns = len(self.names)
        block = min(max(n_columns * 8192, _BLOCK_BYTES[0]), _BLOCK_BYTES[1])
        # Arrow skips no header that is longer than a block; four bytes a character are enough.
        block = max(block, 4 * sum(len(name) + 3 for name in self.names))
        names = [str(number) for number in range(n_columns)]
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
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(wanted, _TEXT),
                include_columns=wanted,
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
            if fields and len(fields) != len(self.names):
                found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                open_quote = any("\n" in text for text in fields)
                raise BadResponses(
                    f"{self.path}, line {line}: found {found}, but the first row has "
                    f"{len(self.names)} column names, so it is not clear which answer is which. "
                    f"Correct the line (the delimiter is {_NAMES[self._delimiter]})."
                    + (
                        " A quotation mark that is opened and not closed can cause this."
                        if open_quote
                        else ""
                    )
                ) from None
        raise BadResponses(f"{self.path} cannot be read as a table: {text}.") from None

    def place(self, row: int) -> str:
        """Return file and line of a row, counted as an editor counts lines."""
        if self._lines_are_rows():
            return f"{self.path}, line {self._header_lines + 1 + row}"
        skip_empty = len(self.names) > 1
        rows = ((f, line) for f, line in self._records() if f or not skip_empty)
        for number, (_, line) in enumerate(rows):
            if number == row:
                return f"{self.path}, line {line}"
        return f"{self.path}, row {row + 1}"

    def _lines_are_rows(self) -> bool:
        """Say whether every line after the header is one row: no quotes, no empty lines."""
        if self._encoding == "utf-16":
            return False
        with open_bytes(self.path) as stream:
            last = b"\n"
            while chunk := stream.read(1 << 22):
                text = (last + chunk).replace(b"\r\n", b"\n")
                if b'"' in text or b"\n\n" in text or b"\r" in text[:-1]:
                    return False
                last = chunk[-2:]
        return True

    def _records(self) -> Iterator[tuple[list[str], int]]:
        """Yield the fields of each record after the header and the line it begins on."""
        with open_text(self.path, self._encoding) as text:
            reader = csv.reader(limit_lines(self.path, text), delimiter=self._delimiter)
            line = 1
            try:
                for fields in reader:
                    if line > self._header_lines:
                        yield fields, line
                    line = reader.line_num + 1
            except csv.Error:  # a field beyond all measure, usually an open quotation mark
                yield ["\n"], line


_NAMES = {",": "a comma", "\t": "a tab", ";": "a semicolon"}


def _read_header(lines: Any, delimiter: str, path: Path) -> tuple[list[str], int]:
    """Return the fields of the first record and the number of lines up to its end."""
    reader = csv.reader(limit_lines(path, lines), delimiter=delimiter)
    try:
        return next(record for record in reader if record), reader.line_num
    except csv.Error as error:
        raise BadResponses(
            f"{path}: the first row cannot be read as column names ({error}). It should hold one "
            "name per column, with a comma, tab or semicolon between them."
        ) from None


def _find_delimiter(text: str, path: Path) -> str:
    """Return the most frequent of comma, tab and semicolon in the first row, outside quotes."""
    if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    first = next(line for line in io.StringIO(text, newline="") if line.strip())
    bare = "".join(first.split('"')[::2])
    return max(_NAMES, key=bare.count)
