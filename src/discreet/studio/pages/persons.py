"""Persons: abilities, scaled scores, what a raw score is worth, and whose answers are odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.report.page import MISFIT_COLUMNS, SCORE_COLUMNS, list_html_columns
from discreet.report.tables import AnalysisTable
from discreet.studio.calibration import CalibrationSummary
from discreet.studio.commands import Same
from discreet.studio.frame import Secrecy, show, work_of
from discreet.studio.pages.calibrate import write_run
from discreet.studio.pages.report import done_run

MOST_ROWS = 1000
"""Persons on the page; the file has all of them."""

PERSON_COLUMNS = (*MISFIT_COLUMNS, "flag")
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
    first_rows = table.take(MOST_ROWS)
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


ROUTES = (Route("/persons/{work}/{run}", show_persons),)
