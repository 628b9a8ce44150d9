"""How far the cells of a sheet reach, found before a reader makes room for all of them.

In: a packed workbook (.xlsx, .xlsm, .xlsb). Out: an :class:`Extent` for each sheet. A sheet is read
as a full rectangle, so that one stray cell in the last row and column asks for half a terabyte.
Most sheets are measured by looking for references such as ``r="AB12"``; where that may mislead
(cells without a reference, comments, far cells that may be blank), the XML is parsed.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from xml.parsers import expat

import numpy as np

from discreet.types import Int64Array

#: Cells of a sheet, empty ones included: each takes 40 bytes while it is read.
MOST_PLACES = 100_000_000
#: A sheet with more places than this is too large where a smaller share of them holds something.
SPARSE_PLACES, LEAST_FILLED = 5_000_000, 0.02
_CHUNK = 1 << 20
_MARK = int.from_bytes(b' r="', "little")
#: Characters of a reference: four letters and eight digits are more than any sheet has.
_LONGEST = 12
_REFERENCE = re.compile(r"([A-Z]{1,4})([0-9]{1,10})")
#: How the tag of a cell begins, with and without a namespace.
_TAGS = [int.from_bytes(tag, "little") for tag in (b"<c", b":c")]
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
    def rows(self) -> int:
        """How many rows the rectangle has."""
        return max(self.bottom - self.top + 1, 0)

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return max(self.right - self.left + 1, 0)

    @property
    def area(self) -> int:
        """How many places it has."""
        return self.rows * self.columns

    @property
    def is_too_large(self) -> bool:
        """Whether memory may not suffice for all places."""
        is_sparse = self.area > SPARSE_PLACES and self.cells < LEAST_FILLED * self.area
        return is_sparse or self.area > MOST_PLACES

    def include(self, row: int, column: int) -> None:
        """Add one cell."""
        self.cells += 1
        self.top, self.bottom = min(self.top, row), max(self.bottom, row)
        self.left, self.right = min(self.left, column), max(self.right, column)


def measure_sheets(packed: zipfile.ZipFile) -> dict[str, Extent]:
    """Return how far the cells of every sheet reach, by the sheet's name."""
    extents = {}
    for name, part in _list_sheets(packed):
        if part.endswith(".bin"):
            extents[name] = _measure_records(packed.read(part))
        else:
            extents[name] = _measure_xml(packed, part)
    return extents


# -- which part is which sheet -----------------------------------------------------------------


def _list_sheets(packed: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the sheets of a workbook, by name and part."""
    parts = set(packed.namelist())
    for book, read in (("xl/workbook.xml", _name_sheets), ("xl/workbook.bin", _name_records)):
        folder, file = PurePosixPath(book).parent, PurePosixPath(book).name
        links = str(folder / "_rels" / f"{file}.rels")
        if book not in parts or links not in parts:
            continue
        targets = _read_links(_read_part(packed, links))
        for name, link in read(_read_part(packed, book)):
            target = targets.get(link, "")
            part = target.lstrip("/") if target.startswith("/") else str(folder / target)
            if part in parts:
                yield name, part


def _read_part(packed: zipfile.ZipFile, part: str) -> bytes:
    with packed.open(part) as stream:
        return stream.read(_MOST_LIST)


def _read_links(content: bytes) -> dict[str, str]:
    targets = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if _local(tag) == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    _parse([content], start)
    return targets


def _name_sheets(content: bytes) -> list[tuple[str, str]]:
    names = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if _local(tag) == "sheet":
            link = next((attributes[key] for key in attributes if key.endswith(":id")), "")
            names.append((attributes.get("name", ""), link))

    _parse([content], start)
    return names


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
        tags += _count_cells(piece)
        is_odd = is_odd or b"<!" in piece
        _include_references(extent, piece)
    if is_odd or tags > extent.cells or extent.is_too_large:
        exact = _parse_cells(_read_pieces(packed, part))
        exact.errors = extent.errors
        return exact
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


def _count_cells(piece: bytes) -> int:
    """Return how many tags of cells there are, or a few more."""
    text, count = np.frombuffer(piece + b"x", dtype=np.uint8), 0
    for shift in range(min(2, len(piece))):
        pairs = np.frombuffer(piece, "<u2", (len(piece) - shift) // 2, shift)
        after = text[np.flatnonzero((pairs == _TAGS[0]) | (pairs == _TAGS[1])) * 2 + shift + 2]
        count += int(((after <= ord(" ")) | (after == ord("/")) | (after == ord(">"))).sum())
    return count


def _include_references(extent: Extent, piece: bytes) -> None:
    """Add the cells that have a reference."""
    row, column = _find_references(piece)
    if len(row):
        extent.cells += len(row)
        extent.top = min(extent.top, int(row.min()))
        extent.bottom = max(extent.bottom, int(row.max()))
        extent.left = min(extent.left, int(column.min()))
        extent.right = max(extent.right, int(column.max()))


def _find_references(piece: bytes) -> tuple[Int64Array, Int64Array]:
    """Return row and column, from 0, of everything that looks like ``r="AB12"``."""
    words = [
        np.frombuffer(piece, "<u4", max(len(piece) - shift, 0) // 4, shift) for shift in range(4)
    ]
    starts = [4 + shift + 4 * np.flatnonzero(word == _MARK) for shift, word in enumerate(words)]
    start = np.concatenate(starts)
    text = np.frombuffer(piece + bytes(_LONGEST), dtype=np.uint8)
    start = start[text[start] - np.uint8(ord("A")) < 26]
    row, column = np.zeros((2, len(start)), dtype=np.int64)
    is_letter, is_inside = np.ones((2, len(start)), dtype=np.bool_)
    for offset in range(_LONGEST):
        sign = text[start + offset]
        letter, digit = sign - np.uint8(ord("A")), sign - np.uint8(ord("0"))
        is_letter &= letter < 26
        np.copyto(column, column * 26 + letter + 1, where=is_letter)
        is_inside &= is_letter | (digit < 10)
        np.copyto(row, row * 10 + digit, where=is_inside & ~is_letter)
        if not is_inside.any():
            break
    return row - 1, column - 1


class _CellReader:
    """Follows the tags of a sheet; a cell counts once it has a value."""

    def __init__(self) -> None:
        self.extent = Extent()
        self._row, self._column, self._counted = -1, -1, True

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take one opening tag."""
        name = _local(tag)
        if name == "row":
            number = attributes.get("r", "")
            self._row = int(number) - 1 if number.isascii() and number.isdigit() else self._row + 1
            self._column = -1
        elif name == "c":
            self._place(attributes.get("r", ""))
        elif name in ("v", "t", "is", "f") and not self._counted:
            self._counted = True
            self.extent.include(self._row, self._column)

    def _place(self, reference: str) -> None:
        match = _REFERENCE.fullmatch(reference)
        self._counted = False
        if match is None:
            self._column += 1
            return
        column = 0
        for letter in match[1]:
            column = column * 26 + ord(letter) - ord("A") + 1
        self._row, self._column = int(match[2]) - 1, column - 1


def _parse_cells(pieces: Iterator[bytes]) -> Extent:
    reader = _CellReader()
    _parse(pieces, reader.start)
    return reader.extent


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
            extent.include(row, *struct.unpack_from("<I", content, start))
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
