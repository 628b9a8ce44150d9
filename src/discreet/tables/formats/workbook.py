"""Read workbooks: Excel (.xlsx, .xlsm, .xlsb, .xls) and OpenDocument (.ods).

In: a path and, where there are several, the name of a sheet. Out: a source whose rows are those
below the header. Titles above the header are found and said; a merged cell among the answers is
refused, because only one of the cells that it covers has a value.
"""

from __future__ import annotations

import io
import shlex
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.errors import (
    BadResponses,
    BadUsage,
    DiscreetError,
    DiscreetWarning,
    MissingExtra,
    Remedy,
)
from discreet.tables.formats.sheet_extents import Extent, measure_sheets
from discreet.tables.paths import explain_read_errors, open_bytes
from discreet.tables.reading import SHEET
from discreet.tables.remedies import DeclaredSource, Detected, join_detected, make_remedy
from discreet.tables.values import letter_column, make_column, write_cell

#: Bytes of XML in a workbook: more than the largest sheet that Excel can hold with 0 and 1.
MOST_UNPACKED = 1 << 32
_ROWS = 1 << 16
#: The stream in which Excel keeps a workbook that has a password.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
#: What the standard library says of a packed file whose parts do not match their checksums.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)
_SHOWN = 8

Row = list[Any]


class WorkbookSource:
    """One sheet of a workbook; see :class:`discreet.tables.source.Source`.

    Parameters
    ----------
    path
        The file, gzipped or not.
    sheet
        Its name; None takes the only one that holds anything.
    header
        Whether the first row holds names; without them columns are called "1", "2", ...
    skip_rows
        Rows above the row of names that are left out; without them titles are found.
    progress
        Called with the bytes of the file once it is read.
    """

    def __init__(
        self,
        path: Path,
        sheet: str | None = None,
        *,
        header: bool = True,
        skip_rows: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        with explain_read_errors(path), _explain_damage(path):
            book, extents = _open(path)
            table = _choose(path, book, sheet, extents)
            self.sheet = str(table.name)
            rows = [[None if cell == "" else cell for cell in row] for row in table.iter_rows()]
            merged = table.merged_cell_ranges or []
        self.name = f"{path}, sheet '{self.sheet}'"
        first = skip_rows + _first_filled(rows[skip_rows:])
        if header and not skip_rows:
            first = self._find_header(rows, merged)
        self._refuse_merged(merged, first)
        self._first_row = first + header
        self._rows = _drop_empty_end(rows[self._first_row :])
        self._has_titles = not skip_rows and first > _first_filled(rows)
        self._has_blank_ends = len(self._rows) < len(rows) - self._first_row
        self._has_blank_ends |= not header and first > 0
        width = _width(rows[first:])
        self.names = (
            [(write_cell(cell) or "").strip() for cell in rows[first][:width]]
            if header
            else [str(number) for number in range(1, width + 1)]
        )
        if progress is not None:
            progress(path.stat().st_size)

    @property
    def n_rows(self) -> int:
        """Rows below the header."""
        return len(self._rows)

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return whether cells decided which row holds the names, or how many persons there are."""
        del columns
        detected = []
        if self._has_titles:
            sentence = f"{self.name}: row {self._first_row} was taken for the names of the columns."
            remedy = Remedy("delete the rows above the names")
            detected.append(Detected("header", sentence, remedy))
        if self._has_blank_ends and not has_ids:
            sentence = f"{self.name}: every row is a person; blank rows at the end were dropped."
            remedy = Remedy("delete the blank rows, or give every person an id and state person=")
            detected.append(Detected("person", sentence, remedy))
        return tuple(detected)

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns of numbers, or of text."""
        sheet_columns = [make_column([row[number] for row in self._rows]) for number in columns]
        for start in range(0, len(self._rows), _ROWS):
            yield [column.slice(start, _ROWS) for column in sheet_columns]

    def place(self, row: int) -> str:
        """Return sheet and row, numbered as the spreadsheet numbers them."""
        return f"{self.name}, row {self._first_row + row + 1}"

    def _find_header(self, rows: list[Row], merged: Sequence[Any]) -> int:
        """Return the number of the row of names; say which titles stand above it."""
        first = _first_filled(rows)
        spanned = {row for (row, left), (last, right) in merged for row in range(row, last + 1)
                   if right > left}  # fmt: skip
        header = first
        while _is_title(rows, header, spanned):
            header += 1
        if header == first:
            return first
        titles = [str(cell) for row in rows[first:header] for cell in row if cell is not None]
        listed = ", ".join(f"'{title}'" for title in titles[:_SHOWN])
        warnings.warn(
            f"{self.name}: above the column names in row {header + 1} stands {listed}, which is "
            "taken for a title and not read.",
            DiscreetWarning,
            stacklevel=4,
        )
        return header

    def _refuse_merged(self, merged: Sequence[Any], header: int) -> None:
        for (top, left), (bottom, right) in merged:
            if bottom > header or (top <= header <= bottom):
                raise BadResponses(
                    f"{self.name}: the cells {_cell(top, left)} to {_cell(bottom, right)} are "
                    "merged. Only the first of them has a value, so the others would pass for "
                    "missing answers. Split them in the spreadsheet and fill each one in."
                )


class JoinedSheets(DeclaredSource):
    """Several sheets of one workbook as one table, with the sheet of every row as a last column."""

    def __init__(self, sheets: Sequence[WorkbookSource]) -> None:
        self._sheets, self.name = sheets, str(sheets[0].path)
        self.names = [*sheets[0].names, SHEET]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns, one sheet after the other."""
        last = len(self.names) - 1
        for sheet in self._sheets:
            numbers = [sheet.names.index(self.names[n]) for n in columns if n != last]
            for batch in sheet.batches(numbers or [0]):
                texts = pa.array([sheet.sheet] * len(batch[0]), pa.string())
                parts = iter(batch)
                yield [texts if n == last else next(parts) for n in columns]

    def place(self, row: int) -> str:
        """Return sheet and row."""
        for sheet in self._sheets:
            if row < sheet.n_rows:
                return sheet.place(row)
            row -= sheet.n_rows
        return f"{self.name}, row {row + 1}"

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return what was detected in any of the sheets."""
        return join_detected(sheet.detect(columns, has_ids=has_ids) for sheet in self._sheets)


def join_sheets(sheets: Sequence[WorkbookSource]) -> JoinedSheets:
    """Return sheets as one table; refuse those whose columns differ."""
    for sheet in sheets[1:]:
        if sorted(sheet.names) != sorted(sheets[0].names):
            raise BadUsage(
                f"{sheet.name} has other columns than {sheets[0].name}, so they are not one table. "
                "Give them the same row of names, or read one of them with sheet= (--sheet)."
            )
    return JoinedSheets(sheets)


def _is_title(rows: list[Row], number: int, spanned: set[int]) -> bool:
    """Say whether a row is empty or a title, with a fuller row somewhere below it."""
    if number + 1 >= len(rows):
        return False
    filled = _filled(rows[number])
    if filled > 1 and number not in spanned:
        return False
    return any(_filled(row) > max(filled, 1) for row in rows[number + 1 :])


def _filled(row: Row) -> int:
    return sum(cell is not None for cell in row)


def _first_filled(rows: list[Row]) -> int:
    return next(number for number, row in enumerate(rows) if _filled(row))


def _width(rows: list[Row]) -> int:
    """Return the number of columns, without empty ones at the right."""
    width = len(rows[0])
    while all(row[width - 1] is None for row in rows):
        width -= 1
    return width


def _drop_empty_end(rows: list[Row]) -> list[Row]:
    last = len(rows)
    while last and not _filled(rows[last - 1]):
        last -= 1
    return rows[:last]


def _cell(row: int, column: int) -> str:
    return f"{letter_column(column)}{row + 1}"


# -- opening -------------------------------------------------------------------------------


def _open(path: Path) -> tuple[Any, Mapping[str, Extent]]:
    """Return the workbook, and how far the cells of its sheets reach."""
    try:
        import python_calamine
    except ImportError:
        raise MissingExtra(f"{path} is a workbook; reading it", "files") from None
    with open_bytes(path) as stream:
        content = io.BytesIO(stream.read())
    if content.getvalue().startswith(b"\xd0\xcf\x11\xe0") and _ENCRYPTED in content.getvalue():
        raise BadResponses(_protected(path))
    extents = _look_through(path, content)
    content.seek(0)
    return python_calamine.CalamineWorkbook.from_filelike(content), extents


def _protected(path: Path) -> str:
    return (
        f"{path} is protected by a password, so it cannot be read. Open it in the spreadsheet "
        "program and save a copy without a password, or as CSV."
    )


def _look_through(path: Path, file: io.BytesIO) -> dict[str, Extent]:
    """Refuse a workbook that would fill the memory, as a zip file can make of a few kilobytes."""
    if not zipfile.is_zipfile(file):
        return {}
    with zipfile.ZipFile(file) as packed:
        parts = packed.infolist()
        unpacked = sum(part.file_size for part in parts)
        if unpacked > MOST_UNPACKED:
            raise BadResponses(
                f"{path} unpacks to {unpacked / 1e9:.1f} GB, which no sheet of answers needs. "
                "Check that the file is what its name says; save large tables as CSV or Parquet."
            )
        extents = measure_sheets(packed)
    broken = sum(extent.errors for extent in extents.values())
    if broken:
        warnings.warn(
            f"{path}: cells with an error such as #N/A or #DIV/0! are read as missing; it has "
            f"{broken:,}.",
            DiscreetWarning,
            stacklevel=5,
        )
    return extents


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        # Calamine is written in Rust, whose panics are no `Exception`.
        kind = type(error)
        ours = isinstance(error, _DAMAGE) and not isinstance(error, DiscreetError)
        if not ours and kind.__module__ != "python_calamine" and kind.__name__ != "PanicException":
            raise
        if kind.__name__ == "PasswordError":
            raise BadResponses(_protected(path)) from None
        if "Cell limit exceeded" in str(error):
            raise BadResponses(
                f"{path}: the cells of a sheet reach so far that memory would not suffice for all "
                "places between them. Delete the rows and columns beyond the answers in the "
                "spreadsheet, or save the sheet as CSV."
            ) from None
        raise BadResponses(
            f"{path} is damaged or cut off and cannot be read as a workbook: {error}. Copy it "
            "again, or open it in the spreadsheet program and save it as CSV."
        ) from None


def _choose(path: Path, book: Any, sheet: str | None, extents: Mapping[str, Extent]) -> Any:
    """Return the sheet that is meant; sheets are parsed once, which takes most of the time."""
    names = list(book.sheet_names)
    if sheet is not None and sheet not in names:
        raise BadUsage(f"{path} has no sheet '{sheet}'. Its sheets are {_list(names)}.")
    visible = [table.name for table in book.sheets_metadata if "Hidden" not in str(table.visible)]
    chosen = [sheet] if sheet is not None else visible or names
    for name in chosen:
        _check_extent(f"{path}, sheet '{name}'", extents.get(name, Extent()))
    filled = [table for table in map(book.get_sheet_by_name, chosen) if table.height * table.width]
    if sheet is not None and not filled:
        raise BadResponses(f"{path}, sheet '{sheet}' is empty. Its sheets are {_list(names)}.")
    if not filled:
        raise BadResponses(f"{path} holds no data: its sheets ({_list(names)}) are empty.")
    if len(filled) > 1:
        first = filled[0].name
        raise BadUsage(
            f"{path} has {len(filled)} sheets with data: {_describe(filled)}. Say which one "
            f"holds the answers with sheet='{first}' (--sheet {shlex.quote(first)})."
        ).offering(
            *(
                make_remedy(f"sheet '{table.name}':", {"sheet": table.name})
                for table in filled[:_SHOWN]
            )
        )
    return filled[0]


def list_sheets(path: Path, names: Sequence[str] | None = None) -> list[tuple[str, list[Row]]]:
    """Return the rows of these sheets, or of all that are not hidden and hold something."""
    with explain_read_errors(path), _explain_damage(path):
        book, extents = _open(path)
        visible = [one.name for one in book.sheets_metadata if "Hidden" not in str(one.visible)]
        chosen = [name for name in names or visible or book.sheet_names if name in book.sheet_names]
        for name in chosen:
            _check_extent(f"{path}, sheet '{name}'", extents.get(name, Extent()))
        tables = [book.get_sheet_by_name(name) for name in chosen]
        return [
            (str(table.name), [list(row) for row in table.iter_rows()])
            for table in tables
            if table.height * table.width
        ]


def _check_extent(name: str, extent: Extent) -> None:
    """Refuse a sheet of which an empty cell for every place would fill the memory."""
    if extent.is_too_large:
        raise BadResponses(
            f"{name}: its cells reach to {_cell(extent.bottom, extent.right)}, which makes "
            f"{extent.rows:,} rows of {extent.columns:,} cells, and {extent.cells:,} of them hold "
            "something. Memory would not suffice for so many. Delete the rows and columns beyond "
            "the answers in the spreadsheet, or save the sheet as CSV."
        )


def _describe(tables: Sequence[Any]) -> str:
    listed = ", ".join(
        f"'{table.name}' ({table.height:,} x {table.width:,})" for table in tables[:_SHOWN]
    )
    more = len(tables) - _SHOWN
    return f"{listed} and {more:,} more" if more > 0 else listed


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
