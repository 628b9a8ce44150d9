"""Files: any table, workbooks, a calibration as plain rows.

In: results with columns. Out: the file, which only its owner may read.

A table as CSV has empty cells where there is no number and no formulas, as Parquet it has nulls.
A workbook (extra ``files``) has a sheet for each table. Words are cells of text whatever they look
like, so that no name is run as a formula and "007" stays a name.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from math import isfinite, isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import __version__
from discreet.atomic import staged
from discreet.choices import PlainDict
from discreet.errors import BadUsage, MissingExtra
from discreet.results.estimate import Estimate
from discreet.scales.reported import Scale
from discreet.tabular import AnalysisTable, Columns, Tabular
from discreet.text import spreadsheet_cell

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


def write_table(path: str | PathLike[str], result: Tabular) -> None:
    """Write the columns of a result; the ending ``.csv`` or ``.parquet`` says how."""
    target = _check_ending(path)
    columns = {
        name: [None if _is_nan(value) else value for value in values]
        for name, values in result.to_dict().items()
    }
    with staged(target.parent, [target.name]) as stage:
        if target.suffix == ".csv":
            write_csv(stage / target.name, columns)
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), stage / target.name)


def write_csv(target: Path, columns: Columns) -> None:
    """Write columns, usually on a stage; what is NaN or None becomes an empty cell."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(
                "" if value is None or _is_nan(value) else spreadsheet_cell(value) for value in row
            )


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and isnan(value)


def _check_ending(path: str | PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise BadUsage(f"{target}: the ending says how to write it; use .csv or .parquet")
    return target


#: Rows of a sheet below its heading; what is beyond stands in the CSV file alone.
MOST_ROWS = 1_048_575
#: Characters that a cell can hold.
LONGEST = 32_767
#: Characters that a column is wide at most.
WIDEST = 60
#: Rows by which the width of a column is chosen.
LOOKED_AT = 200


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

    # In memory: otherwise parts of it would pass through the folder for temporary files, and a full
    # disk would be an error of that package.
    content = BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        book.set_properties({"comments": warning})
        heading = book.add_format({"bold": True, "bottom": 1})
        # Excel's own sign for "this is text", which stays when the cell is edited.
        guarded = book.add_format({"quote_prefix": True})
        _write_sheet(book.add_worksheet("about"), _describe(tables, warning), heading, guarded)
        for table in tables:
            _write_sheet(book.add_worksheet(table.name[:31]), table, heading, guarded)
    path.write_bytes(content.getvalue())


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
            if isinstance(value, str):
                risky = spreadsheet_cell(value) != value
                sheet.write_string(row, column, value[:LONGEST], guarded if risky else None)
            elif isinstance(value, bool):
                sheet.write_boolean(row, column, value)
            elif value is not None and isfinite(value):
                sheet.write_number(row, column, value)
        sheet.set_column(column, column, _width(name, values))
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, min(table.rows, MOST_ROWS), len(table.columns) - 1)


def _width(name: str, values: Sequence[object]) -> int:
    words = [len(value) for value in values[:LOOKED_AT] if isinstance(value, str)]
    return min(max(len(name) + 3, 8, *(words or [0])), WIDEST)


def list_calibration(estimate: Estimate, scale: Scale | None = None) -> PlainDict:
    """Return what ``discreet fit --json`` prints."""
    columns = estimate.to_dict() if scale is None else scale.add_to(estimate.to_dict())
    scaled = ("scaled_difficulty", "scaled_se")
    names = ("item", "difficulty", "se", *scaled, "status", "answers", "right")
    chosen = {name: columns[name] for name in names if name in columns}
    rows = [dict(zip(chosen, row, strict=True)) for row in zip(*chosen.values(), strict=True)]
    for row, thresholds in zip(rows, list_thresholds(estimate) * estimate.has_steps, strict=False):
        row |= thresholds
    about = ("persons", "method", "choice", "model", "se_method")
    return {
        **{name: getattr(estimate, name) for name in about},
        **({} if scale is None else {"scale": vars(scale)}),
        "items": rows,
    }


def list_thresholds(estimate: Estimate) -> list[PlainDict]:
    """Return the thresholds of every item and their standard errors."""
    rows = zip(estimate.steps, estimate.thresholds, estimate.threshold_se, strict=True)
    return [
        {"thresholds": value[:most].tolist(), "threshold_se": se[:most].tolist()}
        for most, value, se in rows
    ]
