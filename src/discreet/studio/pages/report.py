"""Report: the calibration live, items and persons by a click, and files to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.html import HtmlColumn
from discreet.items.curves import observed_curve
from discreet.items.distractors import option_map
from discreet.report.drawings import draw_categories, draw_curve, draw_options
from discreet.report.model_findings import words_for
from discreet.report.page import (
    SCORE_COLUMNS,
    SHOWN,
    list_html_columns,
    show_options,
)
from discreet.report.tables import AnalysisTable
from discreet.results.thresholds import THRESHOLD_COLUMNS
from discreet.scales.reported import Scale
from discreet.studio.calibration import CalibrationSummary
from discreet.studio.forms import read_index
from discreet.studio.frame import Same, Secrecy, run_of, send_bytes, show, show_job, work_of
from discreet.studio.jobs import JobState
from discreet.studio.pages.calibrate import describe, write_run
from discreet.studio.session import CalibrationRun

KINDS = {".html": "text/html", ".csv": "text/csv", ".xlsx": "application/vnd.ms-excel"}

PAIR_COLUMNS = ("item", "other", "q3", "excess", "persons")
MOST_ROWS = 12
"""Rows of a table about one item: pairs come in order, the most remarkable first."""


def show_report(request: Request) -> Response:
    """Show progress, then the report of a calibration."""
    work, run = work_of(request), run_of(request)
    frame = {"work": work, "run": run, "here": "report", "secrecy": Secrecy.CONFIDENTIAL}
    if run.job.state is not JobState.DONE:
        values = {**show_job(run.job), "asked": describe(run)}
        return show("running.html", values, title=run.job.title, **frame)  # type: ignore[arg-type]
    summary: CalibrationSummary = run.job.outcome.value
    start = f"/report/{work.name}/{run.name}"
    values = {
        **summary.values,
        "layout": "studio/frame.html",
        "start": start,
        "asked": describe(run),
        "warnings": run.job.outcome.warnings,
        "files": summary.files,
        "links": [f"{start}/items/{number}" for number in range(len(summary.estimate.items))],
        "same": write_run(work, run),
    }
    return show("report.html", values, title=run.job.title, **frame)  # type: ignore[arg-type]


def done_run(request: Request) -> tuple[CalibrationRun, CalibrationSummary]:
    """Return a calibration that is done, with what it came to."""
    run = run_of(request)
    if run.job.state is not JobState.DONE:
        raise HTTPException(404, "This calibration is not done.")
    return run, run.job.outcome.value


def show_item(request: Request) -> Response:
    """Show one item: its curve, its options, its fit, and how groups differ."""
    work, (run, summary) = work_of(request), done_run(request)
    items = summary.estimate.items
    number = read_index(request.path_params["number"], len(items))
    if number is None:
        raise HTTPException(404, "There is no such item.")
    start = f"/report/{work.name}/{run.name}"
    return show(
        "item.html",
        {
            "start": start,
            "before": f"{start}/items/{number - 1}" if number else "",
            "after": f"{start}/items/{number + 1}" if number + 1 < len(items) else "",
            "facts": _list_facts(summary, number),
            "remarks": summary.test.remarks[number],
            "figures": list(_draw(summary, number)),
            "tables": list(_list_tables(summary, items[number])),
            "same": write_run(work, run),
        },
        title=items[number],
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        run=run,
        here="report",
    )


ITEM_FACTS = (
    *("difficulty", "se", "lower", "upper", "scaled_difficulty", "scaled_se", "answers"),
    *("infit", "outfit", "point_measure", "point_measure_expected", "status"),
)


def _list_facts(summary: CalibrationSummary, number: int) -> dict[str, str]:
    """Return the row of the item in the table of items, as pairs of a title and what it shows."""
    columns = list_html_columns(summary.tables["items"], ITEM_FACTS, summary.scale)
    called = {"difficulty": words_for(summary.estimate).number}
    return {called.get(column.title, column.title): column.show(number) for column in columns}


def _draw(summary: CalibrationSummary, number: int) -> Any:
    test = summary.test
    name = summary.estimate.items[number]
    if test.statistics is None or not test.known[number]:
        return
    curve = observed_curve(summary.estimate, test.statistics, number)
    yield "Expected and observed", "The line is what the model expects, points are groups of " \
        "persons of similar ability.", draw_curve(curve)  # fmt: skip
    if curve.shares:
        yield "Categories", "How likely each category is against ability.", draw_categories(curve)
    chosen = test.statistics.distractors
    if chosen is not None and name in chosen.item:
        yield "What was chosen", "Share of each option against ability; ✓ is right, a dashed " \
            "line attracts abler persons.", draw_options(option_map(chosen, name))  # fmt: skip


def _list_tables(summary: CalibrationSummary, item: str) -> Any:
    """Yield the rows of other tables that are about the item."""
    chosen = summary.test.statistics and summary.test.statistics.distractors
    if chosen and item in chosen.item:
        rows = [row for row, name in enumerate(chosen.item) if name == item]
        options = summary.tables["options"]
        yield options.title, options.about, show_options(chosen, rows)[1:]
    for part, columns in (
        ("thresholds", THRESHOLD_COLUMNS[1:]),
        ("categories", SHOWN["categories"][1:]),
        ("groups", SHOWN["groups"][1:]),
        ("pairs", PAIR_COLUMNS),
    ):
        table = summary.tables.get(part)
        if table is not None and (rows := _find_rows(table, item)[:MOST_ROWS]):
            yield table.title, table.about, _show_rows(table, rows, columns, summary.scale)


def _find_rows(table: AnalysisTable, item: str) -> list[int]:
    name_columns = [table.columns[name] for name in ("item", "other") if name in table.columns]
    return [row for row in range(table.rows) if any(names[row] == item for names in name_columns)]


def _show_rows(
    table: AnalysisTable, rows: Sequence[int], names: Sequence[str], scale: Scale | None
) -> list[HtmlColumn]:
    chosen: Mapping[str, list[Any]] = {
        name: [values[row] for row in rows] for name, values in table.columns.items()
    }
    part = AnalysisTable(table.name, table.title, table.about, chosen)
    return list_html_columns(part, names, scale)


def send_file(request: Request) -> Response:
    """Send one of the files of a calibration."""
    run, summary = done_run(request)
    name = request.path_params["name"]
    if name not in summary.files:
        raise HTTPException(404, "There is no such file.")
    kind = KINDS[f".{name.rpartition('.')[2]}"]
    return send_bytes((run.job.folder / name).read_bytes(), name, kind)


# -- persons -----


MOST_PERSONS = 1000
"""Persons on the page; the file has all of them."""

PERSON_COLUMNS = (*SHOWN["misfits"], "flag")
FLAGS = {"unexpected answers": "odd", "too predictable": "flat"}
"""What the filter of the table calls a flag."""


def show_persons(request: Request) -> Response:
    """Show what is known about persons."""
    work, (run, summary) = work_of(request), done_run(request)
    start = f"/report/{work.name}/{run.name}"
    return show(
        "persons.html",
        {
            "start": start,
            "files": summary.files,
            "scale": summary.scale,
            **_show_table(summary),
            "scores": _show(summary, "raw_scores", SCORE_COLUMNS),
            "facts": _count(summary),
            "same": _write_same(write_run(work, run)),
        },
        title=f"Persons of {work.title}",
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        run=run,
        here="persons",
    )


def _show_table(summary: CalibrationSummary) -> Mapping[str, Any]:
    table = summary.persons
    if table is None:
        return {"table": None, "columns": [], "tags": [], "kinds": {}}
    first_rows = table.take(MOST_PERSONS)
    flags = first_rows.columns["flag"]
    used = {FLAGS[flag]: flag for flag in dict.fromkeys(flags) if flag}
    return {
        "table": table,
        "columns": list_html_columns(first_rows, PERSON_COLUMNS, summary.scale),
        "tags": [FLAGS.get(flag, "fine") for flag in flags],
        "kinds": used,
    }


def _count(summary: CalibrationSummary) -> dict[str, str]:
    """Return how many persons there are, and how many have a flag."""
    table = summary.persons
    if table is None:
        return {}
    flags = table.columns["flag"]
    counts = {word: flags.count(word) for word in FLAGS}
    return {"persons": f"{table.rows:,}", **{word: f"{times:,}" for word, times in counts.items()}}


def _show(
    summary: CalibrationSummary, name: str, names: tuple[str, ...]
) -> tuple[AnalysisTable, Any] | None:
    table = summary.tables.get(name)
    return None if table is None else (table, list_html_columns(table, names, summary.scale))


def _write_same(same: Same) -> Same:
    python = same.python.replace(
        "print(calibration.summary())", "print(discreet.score(answers, calibration).summary())"
    )
    return Same(python, same.command, same.needs_key)


ROUTES = (
    Route("/report/{work}/{run}", show_report),
    Route("/report/{work}/{run}/items/{number}", show_item),
    Route("/report/{work}/{run}/files/{name}", send_file),
    Route("/persons/{work}/{run}", show_persons),
)
