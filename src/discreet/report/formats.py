"""Files: any table, workbooks, the Item Response Warehouse, py-irt, a calibration as plain rows.

In: results with columns, or answers, or their files. Out: the file, which only its owner may
read, or answers and difficulties. Answers are confidential.

A table as CSV has empty cells where there is no number and no formulas, as Parquet it has nulls.
A workbook (extra ``files``) has a sheet for each table. Words are cells of text whatever they look
like, so that no name is run as a formula and "007" stays a name.
The warehouse has one answer per row in the columns id, item, resp; the further columns of its
standard (datapages.github.io/irw/standard.html), such as ``rt`` and ``date``, are not read. py-irt
trains on lines ``{"subject_id": ..., "responses": {item: answer}}`` (py_irt/dataset.py) and saves
``diff`` in the order of ``item_ids`` (py_irt/training.py).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from math import isfinite, isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from discreet import __version__
from discreet.answers.reading import read_responses
from discreet.answers.responses import Responses
from discreet.atomic import staged
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.results.estimate import Estimate
from discreet.scales.reported import Scale
from discreet.tables.reading import StepWords
from discreet.tables.values import Codes
from discreet.tabular import AnalysisTable, Tabular
from discreet.text import spreadsheet_cell
from discreet.types import Repeats

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


def write_csv(target: Path, columns: dict[str, list[Any]]) -> None:
    """Write columns, usually on a stage; what is NaN or None becomes an empty cell."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(
                "" if value is None or _is_nan(value) else spreadsheet_cell(value) for value in row
            )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


#: Cells turned into rows at a time: some tens of megabytes.
CHUNK_CELLS = 1 << 22


def read_warehouse(
    path: str | PathLike[str],
    *,
    at_least: float | None = None,
    missing: Codes = (),
    repeats: Repeats = "error",
    **steps: Unpack[StepWords],
) -> Responses:
    """Read a table of the Item Response Warehouse (CSV or Parquet).

    Parameters
    ----------
    path
        The file.
    at_least
        Many tables have ratings; from here on they count as 1. Without it, whole numbers are read
        as steps.
    missing
        Codes that stand for a missing answer.
    repeats
        What to do with a second answer of one id to one item.
    steps
        ``model=``, ``steps=``, ``lowest=``, ``reverse=`` and ``merge=``, as for
        :func:`discreet.read_responses`.
    """
    return read_responses(
        path,
        layout="long",
        person="id",
        item="item",
        response="resp",
        at_least=at_least,
        missing=missing,
        repeats=repeats,
        **steps,
    )


def write_warehouse(path: str | PathLike[str], responses: Responses) -> None:
    """Write answers as ``id, item, resp``; the ending ``.csv`` or ``.parquet`` says how."""
    target = _check_ending(path)
    with (
        staged(target.parent, [target.name]) as stage,
        (stage / target.name).open("wb") as file,  # Windows moves no file that is open
        _open_writer(file, target.suffix) as writer,
    ):
        for batch in list_long_batches(responses, _schema()):
            writer.write_batch(batch)


def _check_ending(path: str | PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise BadUsage(f"{target}: the ending says how to write it; use .csv or .parquet")
    return target


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.string()), ("item", pa.string()), ("resp", pa.int8())])


def list_long_batches(responses: Responses, schema: Any) -> Iterator[Any]:
    """Yield a row for every answer: the person, the item and the answer, called as here."""
    import pyarrow as pa

    persons, items = pa.array([str(name) for name in responses.persons]), pa.array(responses.items)
    step = max(CHUNK_CELLS // max(responses.n_items, 1), 1)
    for start in range(0, responses.n_persons, step):
        rows = responses.rows(start, min(start + step, responses.n_persons))
        person, item = np.nonzero(rows >= 0)
        columns = [
            persons.take(pa.array(person + start)),
            items.take(pa.array(item)),
            pa.array(rows[person, item]),
        ]
        yield pa.record_batch(columns, schema=schema)


def _open_writer(file: Any, ending: str) -> Any:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, _schema(), compression="zstd")
    from pyarrow import csv

    options = csv.WriteOptions(quoting_style="needed")
    return csv.CSVWriter(file, _schema(), write_options=options)


CHUNK_PERSONS = 4096


def write_jsonl(path: str | PathLike[str], responses: Responses) -> None:
    """Write answers as py-irt's JSON lines; missing answers are left out."""
    items, persons = responses.items, responses.persons
    target = Path(path)
    with (
        staged(target.parent, [target.name]) as stage,
        (stage / target.name).open("w", encoding="utf-8", newline="\n") as file,
    ):
        for start in range(0, responses.n_persons, CHUNK_PERSONS):
            rows = responses.rows(start, min(start + CHUNK_PERSONS, responses.n_persons))
            for number, row in enumerate(rows.tolist()):
                answers = {
                    name: answer for name, answer in zip(items, row, strict=True) if answer >= 0
                }
                line = {"subject_id": str(persons[start + number]), "responses": answers}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_parameters(path: str | PathLike[str]) -> dict[str, float]:
    """Read the difficulties that py-irt saved: a mapping that ``score`` and anchors take.

    Only the one-parameter model is on the scale of the Rasch model; others are refused.
    """
    try:
        saved: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        model, difficulty, names = saved["irt_model"], saved["diff"], saved["item_ids"]
        values = {str(names[str(i)]): float(value) for i, value in enumerate(difficulty)}
    except (ValueError, KeyError, TypeError) as error:
        raise BadResponses(
            f"{path} is not a parameter file of py-irt: it must have 'irt_model', 'diff' and "
            f"'item_ids' ({type(error).__name__}: {error})"
        ) from error
    if "1pl" not in str(model).lower():
        raise BadUsage(
            f"{path} holds a {model} model; only the one-parameter model (1pl) has difficulties on "
            "the scale of the Rasch model"
        )
    return values


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


def _width(name: str, values: Sequence[Any]) -> int:
    words = [len(value) for value in values[:LOOKED_AT] if isinstance(value, str)]
    return min(max(len(name) + 3, 8, *(words or [0])), WIDEST)


def list_calibration(estimate: Estimate, scale: Scale | None = None) -> dict[str, Any]:
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


def list_thresholds(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the thresholds of every item and their standard errors."""
    rows = zip(estimate.steps, estimate.thresholds, estimate.threshold_se, strict=True)
    return [
        {"thresholds": value[:most].tolist(), "threshold_se": se[:most].tolist()}
        for most, value, se in rows
    ]
