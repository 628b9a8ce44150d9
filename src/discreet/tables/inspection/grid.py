"""The first rows of a table as they stand there, before anything is decided about them.

In: a file, folder or frame, and what the user states about it. Out: a :class:`CellGrid` for each
table that could be meant: the sheets of a workbook, or one.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.errors import BadResponses
from discreet.tables.formats.evaluations import KINDS as LOGS
from discreet.tables.opener import Source, open_table_file
from discreet.tables.paths import decode, find_encoding, find_files, read_head, sniff
from discreet.tables.reading import Reading
from discreet.tables.separators import declared_delimiter, find_delimiter, is_sep_line
from discreet.tables.sources import FrameSource, as_arrow
from discreet.tables.values import write_cell

_MOST_LOGS = 20
"""Logs of evaluations that are looked at."""
MOST_ROWS, MOST_CELLS, LEAST_ROWS = 3_000, 300_000, 40
"""Rows and cells that are looked at; of very wide tables a few rows."""

Row = list[str | None]


@dataclass(frozen=True)
class CellGrid:
    """Rows of one table, as text.

    Attributes
    ----------
    name
        What messages call the table.
    rows
        The first rows; with ``names`` those below the names.
    names
        Names of the columns, where the format declares them.
    options
        What of a reading makes this the table: sheet, delimiter.
    is_whole
        Whether these are all rows.
    labels
        By column, the labels that the file gives to values.
    kind
        What the file holds; see :func:`discreet.tables.paths.sniff`.
    """

    name: str
    rows: list[Row]
    names: list[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    is_whole: bool = True
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kind: str = "text"


def open_grids(source: Any, reading: Reading) -> list[CellGrid]:
    """Return the tables of a source; of several files the first."""
    if not isinstance(source, str | PathLike):
        return [_grid_of(FrameSource(as_arrow(source)), "frame")]
    files = find_files(source)
    file, head = files[0], read_head(files[0])
    kind = sniff(file, head)
    if kind == "text":
        grid = _read_text(file, head, reading)
        return [grid if len(files) == 1 else _shorten(grid)]
    if kind == "workbook":
        grids = list(_read_sheets(file, reading))
        return grids or [_grid_of(open_table_file(file, reading=reading), kind)]
    if kind in LOGS:
        return [_read_logs(files, kind, reading)]
    return [_grid_of(open_table_file(file, reading=reading), kind)]


def _read_logs(files: Sequence[Path], kind: str, reading: Reading) -> CellGrid:
    """Return the logs of the first model, all tasks in one table."""
    folder = [file for file in files if file.parent == files[0].parent][:_MOST_LOGS]
    grids = [_grid_of(open_table_file(file, reading=reading), kind) for file in folder]
    filled = [grid for grid in grids if grid.rows] or grids
    names = list(dict.fromkeys(name for grid in filled for name in grid.names or ()))
    rows = [
        [dict(zip(grid.names or (), row, strict=True)).get(name) for name in names]
        for grid in filled
        for row in grid.rows
    ]
    return CellGrid(filled[0].name, rows, names, {}, False, kind=kind)


def _shorten(grid: CellGrid) -> CellGrid:
    """Return the table of one of several files."""
    return CellGrid(grid.name, grid.rows, grid.names, grid.options, False, grid.labels, grid.kind)


def _grid_of(source: Source, kind: str) -> CellGrid:
    """Return the first rows of a source whose format names the columns."""
    rows: list[Row] = []
    is_whole, most = False, limit_rows(len(source.names))
    batches = source.batches(range(len(source.names)))
    for batch in batches:
        room = most + 1 - len(rows)
        cells = [[_text(cell) for cell in part.slice(0, room).to_pylist()] for part in batch]
        rows += [list(row) for row in zip(*cells, strict=True)]
        if len(rows) > most:
            break
    else:
        is_whole = True
    labels = getattr(source, "value_labels", {})
    return CellGrid(source.name, rows[:most], list(source.names), {}, is_whole, labels, kind)


def _text(cell: Any) -> str | None:
    text = write_cell(cell)
    return None if text is None or not text.strip() else text.strip()


# -- text files ------------------------------------------------------------------------------


def _read_text(path: Path, head: bytes, reading: Reading) -> CellGrid:
    text = decode(path, head, find_encoding(path, head))
    is_whole = len(head) >= path.stat().st_size
    delimiter = reading.delimiter or _agree_on_delimiter(text) or find_delimiter(text, path)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        records = list(islice(lines, LEAST_ROWS))
        most = limit_rows(max(map(len, records), default=1))
        records += islice(lines, max(0, most + 1 - len(records)))
    except csv.Error as error:
        raise BadResponses(f"{path} cannot be read as a table: {error}.") from None
    if not is_whole and len(records) <= most:
        records = records[:-1]  # the last one may be cut off
    rows = [[cell.strip() or None for cell in record] for record in records if not _is_sep(record)]
    options = {} if delimiter == declared_delimiter(text, path) else {"delimiter": delimiter}
    return CellGrid(str(path), rows[:most], None, options, is_whole and len(rows) <= most)


def limit_rows(width: int) -> int:
    """Return how many rows of so many columns are looked at."""
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // max(width, 1)))


def _is_sep(record: Sequence[str]) -> bool:
    return bool(record) and is_sep_line(record)


def _agree_on_delimiter(text: str) -> str | None:
    """Return the sign that gives most lines the same number of fields, at least two."""
    best: tuple[float, int, str] | None = None
    sample = "".join(islice(io.StringIO(text, newline=""), 60))
    for sign in (",", "\t", ";", "|"):
        try:
            records = [row for row in csv.reader(io.StringIO(sample), delimiter=sign) if row]
        except csv.Error:
            continue
        counts = Counter(len(row) for row in records)
        width, times = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
        if width > 1 and (best is None or (times / len(records), width) > best[:2]):
            best = times / len(records), width, sign
    return None if best is None or best[0] < 0.5 else best[2]


# -- workbooks -------------------------------------------------------------------------------


def _read_sheets(path: Path, reading: Reading) -> Iterator[CellGrid]:
    from discreet.tables.formats.workbook import list_sheets

    stated = (reading.sheet,) if isinstance(reading.sheet, str) else reading.sheet
    for name, rows in list_sheets(path, stated):
        texts = [[_text(cell) for cell in row] for row in rows[:MOST_ROWS]]
        where = f"{path}, sheet '{name}'"
        yield CellGrid(where, texts, None, {"sheet": name}, len(rows) <= MOST_ROWS, kind="workbook")
