"""Read workbooks: Excel (.xlsx, .xlsm, .xlsb, .xls) and OpenDocument (.ods).

In: a path and, where there are several, the name of a sheet. Out: a source whose rows are those
below the header. Titles above the header are found and said; a merged cell among the answers is
refused, because only one of the cells that it covers has a value. A sheet is read as a full
rectangle, so that one stray cell in the last row and column asks for half a terabyte: how far the
cells reach (:class:`Extent`) is found before. Most sheets are measured by looking for references
such as ``r="AB12"``; where that may mislead (no reference, comments, blank cells), XML is parsed.
"""

from __future__ import annotations

import io
import re
import shlex
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from discreet.coding.reading import SHEET
from discreet.coding.remedies import Detected, join_detected, make_remedy
from discreet.coding.values import write_cell
from discreet.errors import (
    BadResponses,
    BadUsage,
    DiscreetError,
    DiscreetWarning,
    MissingExtra,
    Remedy,
)
from discreet.tables.cells import letter_column, make_column
from discreet.tables.columns import join_names
from discreet.tables.findings import DeclaredSource, miscount
from discreet.tables.paths import explain_read_errors, open_bytes
from discreet.tables.sources import AddedColumns
from discreet.text import name_some

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
    """One sheet of a workbook; see :class:`discreet.tables.opener.Source`.

    Parameters
    ----------
    path
        The file, gzipped or not.
    sheet
        Its name; None takes the only one that holds anything.
    header
        Whether the first row holds names; without them columns are called "1", "2", ... from
        column A of the sheet on, whatever it holds.
    skip_rows
        Rows above the row of names that are left out; without them titles are found.
    header_rows
        Rows of names, which are joined; their cells may be merged.
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
        header_rows: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        with explain_read_errors(path), _explain_damage(path):
            table = _choose(path, sheet)
            self.sheet = str(table.name)
            self.name = f"{path}, sheet '{self.sheet}'"
            rows = _list_rows(table)
            merged = table.merged_cell_ranges or []
        if not any(map(_filled, rows[skip_rows:])):
            raise BadUsage(
                f"{self.name} holds nothing below its first {skip_rows} rows; say less with "
                "skip_rows= (--skip-rows)."
            )
        first = skip_rows + _first_filled(rows[skip_rows:])
        if header and not skip_rows:
            first = self._find_header(rows, merged if header_rows == 1 else ())
        self._refuse_merged(merged, first, first + header_rows - 1)
        names = rows[first]
        for row in rows[first + 1 : first + header_rows]:
            names = join_names(
                [write_cell(cell) for cell in names], [write_cell(one) for one in row]
            )
        self._first_row = first + header_rows if header else first
        last = max((n for n, row in enumerate(rows) if _filled(row)), default=-1)
        self._rows = rows[self._first_row : last + 1]
        self._has_titles = not skip_rows and first > _first_filled(rows)
        columns = enumerate(zip(*rows[first:], strict=True))
        used = [number for number, cells in columns if _filled(cells)]
        # Columns with names begin where the table does, numbered ones in column A.
        self._left = used[0] if header else 0
        self.names = (
            [(write_cell(cell) or "").strip() for cell in names[self._left : used[-1] + 1]]
            if header
            else [str(number) for number in range(1, used[-1] + 2)]
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
            sentence = f"{self.name}: row {self._first_row} was read as the names of the columns."
            remedy = Remedy("delete the rows above the names")
            detected.append(Detected("header", sentence, remedy))
        if not has_ids:
            detected.append(miscount(self.name, "a sheet does not show blank rows at its end"))
        return tuple(detected)

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns of numbers, or of text."""
        places = [self._left + number for number in columns]
        sheet_columns = [make_column([row[place] for row in self._rows]) for place in places]
        for start in range(0, len(self._rows), _ROWS):
            yield [column.slice(start, _ROWS) for column in sheet_columns]

    def place(self, row: int) -> str:
        """Return sheet and row, numbered as the spreadsheet numbers them."""
        return f"{self.name}, row {self._first_row + row + 1}"

    def _find_header(self, rows: list[Row], merged: Sequence[Any]) -> int:
        """Return the number of the row of names; say which titles stand above it.

        A title is an empty row or one cell, with a fuller row somewhere below it.
        """
        first = _first_filled(rows)
        spanned = {row for (row, left), (last, right) in merged for row in range(row, last + 1)
                   if right > left}  # fmt: skip
        header = first
        while header + 1 < len(rows) and (_filled(rows[header]) < 2 or header in spanned):
            if all(_filled(row) <= max(_filled(rows[header]), 1) for row in rows[header + 1 :]):
                break
            header += 1
        if header == first:
            return first
        titles = [str(cell) for row in rows[first:header] for cell in row if cell is not None]
        listed = ", ".join(f"'{title}'" for title in titles[:_SHOWN])
        warnings.warn(
            f"{self.name}: above the column names in row {header + 1} stands {listed}, which "
            "looks like a title and was not read.",
            DiscreetWarning,
            stacklevel=4,
        )
        return header

    def _refuse_merged(self, merged: Sequence[Any], first: int, last: int) -> None:
        """Refuse merged cells among the answers, or in the row of names if it is the only one."""
        for (top, left), (bottom, right) in merged:
            is_joined = first <= top and bottom <= last > first
            if bottom >= first and not is_joined:
                raise BadResponses(
                    f"{self.name}: the cells {letter_column(left)}{top + 1} to "
                    f"{letter_column(right)}{bottom + 1} are "
                    "merged. Only the first of them has a value, so the others would pass for "
                    "missing answers. Split them in the spreadsheet and fill each one in."
                )


class JoinedSheets(DeclaredSource):
    """Several sheets of one workbook as one table, with the sheet of every row as a last column."""

    def __init__(self, sheets: Sequence[WorkbookSource]) -> None:
        self._sheets, self.name = sheets, str(sheets[0].path)
        self.names = [*sheets[0].names, SHEET]
        for sheet in sheets[1:]:
            if sorted(sheet.names) != sorted(sheets[0].names):
                raise BadUsage(
                    f"{sheet.name} has other columns than {sheets[0].name}, so they are not one "
                    "table. Give them the same row of names, or read one of them with sheet= "
                    "(--sheet)."
                )

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns, one sheet after the other."""
        for sheet in self._sheets:
            named = AddedColumns(sheet, {SHEET: sheet.sheet})
            yield from named.batches([named.names.index(self.names[n]) for n in columns])

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


def _list_rows(table: Any) -> list[Row]:
    """Return the rows of a sheet, from row 1 and from column A on."""
    left = [None] * table.start[1]
    return [[*left, *(None if cell == "" else cell for cell in row)] for row in table.iter_rows()]


def _filled(row: Sequence[object]) -> int:
    return sum(cell is not None for cell in row)


def _first_filled(rows: list[Row]) -> int:
    return next(number for number, row in enumerate(rows) if _filled(row))


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


def _open_sheets(path: Path, sheets: Sequence[str] | None) -> tuple[list[Any], str]:
    """Return sheets that hold something: these, or those not hidden; and the names of all.

    Sheets are parsed once, which takes most of the time.
    """
    book, extents = _open(path)
    every = list(book.sheet_names)
    visible = [table.name for table in book.sheets_metadata if "Hidden" not in str(table.visible)]
    chosen = [name for name in sheets or visible or every if name in every]
    for name in chosen:
        extent = extents.get(name, Extent())
        if extent.is_too_large:
            rows, columns = extent.shape
            raise BadResponses(
                f"{path}, sheet '{name}': its cells reach to {letter_column(extent.right)}"
                f"{extent.bottom + 1}, which makes {rows:,} rows of {columns:,} cells; "
                f"{extent.cells:,} of them hold something. Memory would not suffice for so many. "
                "Delete the rows and columns beyond the answers in the spreadsheet, or save the "
                "sheet as CSV."
            )
    filled = [table for table in map(book.get_sheet_by_name, chosen) if table.height * table.width]
    return filled, ", ".join(f"'{name}'" for name in every)


def _choose(path: Path, sheet: str | None) -> Any:
    """Return the sheet that is meant."""
    filled, listed = _open_sheets(path, None if sheet is None else [sheet])
    if sheet is not None and f"'{sheet}'" not in listed:
        raise BadUsage(f"{path} has no sheet '{sheet}'. Its sheets are {listed}.")
    if sheet is not None and not filled:
        raise BadResponses(f"{path}, sheet '{sheet}' is empty. Its sheets are {listed}.")
    if not filled:
        raise BadResponses(f"{path} holds no data: its sheets ({listed}) are empty.")
    if len(filled) > 1:
        first, names = filled[0].name, [table.name for table in filled]
        sizes = [f"'{table.name}' ({table.height:,} x {table.width:,})" for table in filled]
        raise BadUsage(
            f"{path} has {len(filled)} sheets with data: {name_some(sizes, _SHOWN)}. Say which one "
            f"holds the answers with sheet='{first}' (--sheet {shlex.quote(first)})."
        ).offering(*(make_remedy(f"sheet '{name}':", {"sheet": name}) for name in names[:_SHOWN]))
    return filled[0]


def list_sheets(path: Path, names: Sequence[str] | None = None) -> list[tuple[str, list[Row]]]:
    """Return the rows of these sheets, or of all that are not hidden and hold something."""
    with explain_read_errors(path), _explain_damage(path):
        tables, _ = _open_sheets(path, names)
        return [(str(table.name), _list_rows(table)) for table in tables]


# -- how far cells reach -----------------------------------------------------------------------

#: Cells of a sheet, empty ones included: each takes 40 bytes while it is read.
MOST_PLACES = 100_000_000
#: A sheet with more places than this is too large where a smaller share of them holds something.
SPARSE_PLACES, LEAST_FILLED = 5_000_000, 0.02
_CHUNK = 1 << 20
_REFERENCE = re.compile(r"([A-Z]{1,4})([0-9]{1,10})")
_CELL = re.compile(rb' r="([A-Z]{1,4})([0-9]{1,10})"')
#: A cell, with and without a namespace, or something a little like it.
_CELL_TAG = re.compile(rb"[<:]c[ \t\r\n/>]")
#: How a cell with #N/A or #DIV/0! is marked; the reader hands it over as an empty one.
_ERROR = b' t="e"'
#: Bytes of the list of sheets.
_MOST_LIST = 1 << 24


@dataclass
class Extent:
    """The rectangle of the cells of a sheet, numbered from 0, and how many there are."""

    cells: int = 0
    top: int = 1 << 40
    bottom: int = -1
    left: int = 1 << 40
    right: int = -1
    errors: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns the rectangle has."""
        return max(self.bottom - self.top + 1, 0), max(self.right - self.left + 1, 0)

    @property
    def is_too_large(self) -> bool:
        """Whether memory may not suffice for all places."""
        area = self.shape[0] * self.shape[1]
        return area > MOST_PLACES or self.cells < LEAST_FILLED * area > LEAST_FILLED * SPARSE_PLACES

    def include(self, cells: int, rows: set[int], columns: set[int]) -> None:
        """Add cells, which stand in these rows and columns."""
        self.cells += cells
        self.top, self.bottom = min(rows | {self.top}), max(rows | {self.bottom})
        self.left, self.right = min(columns | {self.left}), max(columns | {self.right})


def measure_sheets(packed: zipfile.ZipFile) -> dict[str, Extent]:
    """Return how far the cells of every sheet reach, by the sheet's name."""
    return {
        name: _measure_records(packed.read(part))
        if part.endswith(".bin")
        else _measure_xml(packed, part)
        for name, part in _list_sheets(packed)
    }


# -- which part is which sheet -----------------------------------------------------------------


def _list_sheets(packed: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the sheets of a workbook, by name and part."""
    parts = set(packed.namelist())
    for book in ("xl/workbook.xml", "xl/workbook.bin"):
        folder, file = PurePosixPath(book).parent, PurePosixPath(book).name
        links = str(folder / "_rels" / f"{file}.rels")
        if book not in parts or links not in parts:
            continue
        with packed.open(links) as stream, packed.open(book) as sheets:
            tags = _list_tags(stream.read(_MOST_LIST), "Relationship")
            content = sheets.read(_MOST_LIST)
        targets = {tag.get("Id", ""): tag.get("Target", "") for tag in tags}
        names = (
            _name_records(content)
            if book.endswith(".bin")
            else [(tag.get("name", ""), tag.get("id", "")) for tag in _list_tags(content, "sheet")]
        )
        for name, link in names:
            target = targets.get(link, "")
            part = target.lstrip("/") if target.startswith("/") else str(folder / target)
            if part in parts:
                yield name, part


def _list_tags(content: bytes, name: str) -> list[dict[str, str]]:
    """Return the attributes of every tag of this name, their own names without a namespace."""
    tags: list[dict[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if _local(tag) == name:
            tags.append({_local(key): value for key, value in attributes.items()})

    _parse([content], start)
    return tags


def _parse(chunks: Any, start: Callable[[str, dict[str, str]], None]) -> None:
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ValueError(f"its XML is damaged ({error})") from None


def _local(tag: str) -> str:
    return tag.rpartition(":")[2]


# -- sheets as XML -----------------------------------------------------------------------------


def _measure_xml(packed: zipfile.ZipFile, part: str) -> Extent:
    extent, tags, is_odd = Extent(), 0, False
    for piece in _read_pieces(packed, part):
        extent.errors += piece.count(_ERROR)
        tags += len(_CELL_TAG.findall(piece))
        is_odd = is_odd or b"<!" in piece
        places = _CELL.findall(piece)
        letters, rows = {column for column, _ in places}, {row for _, row in places}
        extent.include(len(places), {int(row) - 1 for row in rows}, {*map(_number, letters)})
    if is_odd or tags > extent.cells or extent.is_too_large:
        reader = _CellReader()
        _parse(_read_pieces(packed, part), reader.start)
        return replace(reader.extent, errors=extent.errors)
    return extent


def _read_pieces(packed: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """Yield the XML of a sheet in pieces that end between two tags."""
    remainder = b""
    with packed.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            chunk = remainder + chunk
            end = max(chunk.rfind(b"<"), 0)
            remainder = chunk[end:]
            if end:
                yield chunk[:end]
    yield remainder


def _number(letters: bytes) -> int:
    """Return the number, from 0, of a column that spreadsheets call by letters."""
    return reduce(lambda number, letter: 26 * number + letter - ord("A") + 1, letters, 0) - 1


class _CellReader:
    """Follows the tags of a sheet; a cell counts once it has a value."""

    def __init__(self) -> None:
        self.extent = Extent()
        self._row, self._column, self._counted = -1, -1, True

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take one opening tag."""
        name, reference = _local(tag), attributes.get("r", "")
        if name == "row":
            is_number = reference.isascii() and reference.isdigit()
            self._row, self._column = int(reference) - 1 if is_number else self._row + 1, -1
        elif name == "c":
            match, self._counted = _REFERENCE.fullmatch(reference), False
            self._column += 1
            if match is not None:
                self._row, self._column = int(match[2]) - 1, _number(match[1].encode())
        elif name in ("v", "t", "is", "f") and not self._counted:
            self._counted = True
            self.extent.include(1, {self._row}, {self._column})


# -- sheets as records (.xlsb) -----------------------------------------------------------------

#: Records that begin a row, and those that hold a cell with a value.
_ROW, _FIRST_VALUE, _LAST_VALUE = 0, 2, 11
#: The record of a sheet in the workbook.
_BUNDLE = 156


def _list_records(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield kind, start and size of each record."""
    position = 0
    while position < len(content):
        kind, position = _read_number(content, position, 2)
        size, position = _read_number(content, position, 4)
        yield kind, position, size
        position += size


def _read_number(content: bytes, position: int, n_bytes: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and where it ends."""
    number = 0
    for step in range(n_bytes):
        byte = content[position + step] if position + step < len(content) else 0
        number |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return number, position + step + 1
    return number, position + n_bytes


def _measure_records(content: bytes) -> Extent:
    extent, row = Extent(), 0
    for kind, start, size in _list_records(content):
        if kind == _ROW and size >= 4:
            (row,) = struct.unpack_from("<I", content, start)
        elif _FIRST_VALUE <= kind <= _LAST_VALUE and size >= 4:
            extent.include(1, {row}, {*struct.unpack_from("<I", content, start)})
    return extent


def _name_records(content: bytes) -> list[tuple[str, str]]:
    """Return the sheets of a workbook of records: their names, and the links to their parts."""
    names = []
    for kind, start, size in _list_records(content):
        if kind == _BUNDLE:
            record = content[start : start + size]
            link, end = _read_text(record, 8)
            names.append((_read_text(record, end)[0], link))
    return names


def _read_text(record: bytes, position: int) -> tuple[str, int]:
    (letters,) = struct.unpack_from("<I", record, position)
    end = position + 4 + 2 * letters
    return record[position + 4 : end].decode("utf-16-le", "replace"), end
