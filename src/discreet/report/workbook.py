"""One workbook with all tables of an analysis, a sheet for each (extra ``files``).

In: tables. Out: an Excel file on a stage. Words are cells of text whatever they look like, so that
no name is run as a formula and "007" stays a name; what does not exist is an empty cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.errors import MissingExtra
from discreet.report.tables import AnalysisTable
from discreet.text import spreadsheet_cell

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

MOST_ROWS = 1_048_575
"""Rows of a sheet below its heading; what is beyond stands in the CSV file alone."""
LONGEST = 32_767
"""Characters that a cell can hold."""
WIDEST = 60
"""Characters that a column is wide at most."""
LOOKED_AT = 200
"""Rows by which the width of a column is chosen."""


def can_write_workbooks() -> bool:
    """Say whether the extra is installed."""
    return find_spec("xlsxwriter") is not None


def write_workbook(path: Path, tables: Sequence[AnalysisTable], *, warning: str) -> None:
    """Write tables, a sheet for each, behind a sheet that says what they are.

    Parameters
    ----------
    path
        The file, usually on a stage.
    tables
        What goes in, in this order.
    warning
        Who may see it, as the first line.

    Raises
    ------
    MissingExtra
        Without the extra ``files``.
    """
    if not can_write_workbooks():
        raise MissingExtra("writing a workbook", "files")
    import xlsxwriter

    # In memory: otherwise parts of it would pass through the folder for temporary files.
    with xlsxwriter.Workbook(str(path), {"in_memory": True}) as book:
        book.set_properties({"comments": warning})
        heading = book.add_format({"bold": True, "bottom": 1})
        # Excel's own sign for "this is text", which stays when the cell is edited.
        guarded = book.add_format({"quote_prefix": True})
        _write_sheet(book.add_worksheet("about"), _describe(tables, warning), heading, guarded)
        for table in tables:
            _write_sheet(book.add_worksheet(table.name[:31]), table, heading, guarded)


def _describe(tables: Sequence[AnalysisTable], warning: str) -> AnalysisTable:
    rows = [("", warning), ("", f"discreet {__version__}")]
    for table in tables:
        cut = f" The first {MOST_ROWS:,} of {table.rows:,} rows." if table.rows > MOST_ROWS else ""
        rows.append((table.name, f"{table.title}. {table.about}{cut}"))
    sheets, contents = (list(column) for column in zip(*rows, strict=True))
    return AnalysisTable("about", "About", "", {"sheet": sheets, "contents": contents})


def _write_sheet(sheet: Worksheet, table: AnalysisTable, heading: Format, guarded: Format) -> None:
    for column, (name, values) in enumerate(table.columns.items()):
        sheet.write_string(0, column, name, heading)
        for row, value in enumerate(values[:MOST_ROWS], start=1):
            _write_cell(sheet, row, column, value, guarded)
        sheet.set_column(column, column, _width(name, values))
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, min(table.rows, MOST_ROWS), len(table.columns) - 1)


def _write_cell(sheet: Worksheet, row: int, column: int, value: Any, guarded: Format) -> None:
    if isinstance(value, str):
        risky = spreadsheet_cell(value) != value
        sheet.write_string(row, column, value[:LONGEST], guarded if risky else None)
    elif isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif value is not None and isfinite(value):
        sheet.write_number(row, column, value)


def _width(name: str, values: Sequence[Any]) -> int:
    words = [len(value) for value in values[:LOOKED_AT] if isinstance(value, str)]
    return min(max(len(name) + 3, 8, *(words or [0])), WIDEST)
