"""Data: what a file holds as it was understood, and the form that changes it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.studio.forms import taking_form, write_fields
from discreet.studio.frame import (
    KEY_FILE,
    Secrecy,
    go,
    send_text,
    session_of,
    show,
    show_job,
    work_of,
    write_same,
)
from discreet.studio.inspecting import (
    FIELDS,
    REVERSED,
    ROLES,
    ROWS,
    Look,
    look,
    say_answer,
    say_finding,
    state_reading,
)
from discreet.studio.jobs import JobState, StudioJob
from discreet.studio.session import StudioSession, Work
from discreet.text import spreadsheet_cell

LETTERS = "ABCDEFGH"


def show_data(
    request: Request, problem: str = "", sent: Mapping[str, str] | None = None
) -> Response:
    """Show what was found in the file; begin to read it where nobody has."""
    session = session_of(request)
    work = begin_reading(session, work_of(request))
    job = reading_of(work)
    values: Mapping[str, Any] = {}
    if job.state is JobState.DONE:
        values = _describe(work, job)
    return show(
        "data.html",
        {**show_job(job), "view": None, "refused": problem, "sent": sent or {}, **values},
        title=work.title,
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        here="data",
        status=400 if problem else 200,
    )


def begin_reading(session: StudioSession, work: Work) -> Work:
    """Return the work with a job that reads it; a second tab starts no second one."""

    def begin(now: Work) -> dict[str, Any]:
        if now.reading is not None:
            return {}
        arguments = {"source": now.source, "name": now.shown, "options": dict(now.options)}
        return {"reading": session.jobs.start(f"Reading {now.title}", look, **arguments)}

    return session.change(work.name, begin)


def reading_of(work: Work) -> StudioJob:
    """Return the job that reads a work."""
    if work.reading is None:
        raise BadUsage("Nobody has begun to read this file.")
    return work.reading


def find_look(work: Work) -> Look | None:
    """Return what was found in a file, once it was looked at."""
    job = work.reading
    view: Look | None = job.outcome.value if job and job.state is JobState.DONE else None
    return view


def _describe(work: Work, job: StudioJob) -> Mapping[str, Any]:
    view: Look = job.outcome.value
    questions = [(n, finding) for n, finding in enumerate(view.findings) if finding.is_open]
    asked = {remedy.asks for _, finding in questions for remedy in finding.answers if remedy.asks}
    roles = [role for role in ROLES[view.is_long] if role != REVERSED or _has_steps(view)]
    return {
        "view": view,
        "preview": view.inspection and view.inspection.preview,
        "questions": questions,
        "answerable": any(finding.answers for _, finding in questions),
        "notes": [(n, finding) for n, finding in enumerate(view.findings) if not finding.is_open],
        "say_answer": say_answer,
        "say_finding": say_finding,
        "warnings": [text.replace(str(work.source), work.shown) for text in job.outcome.warnings],
        "roles": roles,
        "row_roles": ROWS,
        "asked": [part for part in FIELDS if part.name in asked],
        "fields": [part for part in FIELDS if part.name not in asked],
        "said": write_fields(FIELDS, view.shown),
        "key": view.shown.get("key") if isinstance(view.shown.get("key"), Mapping) else {},
        "letters": _list_letters(view) if "key" in asked else "",
        "same": write_same("fit", work.shown, view.shown, view.items),
    }


def _has_steps(view: Look) -> bool:
    has_steps = view.summary is not None and view.summary.steps > 1
    return has_steps or bool(view.shown.keys() & {"reverse", "categories", "lowest"})


def _list_letters(view: Look) -> str:
    """Return the options of a multiple-choice test in order, as far as the first rows have them."""
    rows = view.inspection.preview.rows if view.inspection else ()
    cells = {cell.strip().upper() for row in rows for cell in row}
    last = max(
        (LETTERS.index(cell) for cell in cells if len(cell) == 1 and cell in LETTERS), default=3
    )
    return LETTERS[: max(3, last) + 1]


def change_reading(request: Request, sent: dict[str, str]) -> Response:
    """Read the file as the form says; a script that asks is told by which job."""
    session, work = session_of(request), work_of(request)
    job = session.jobs.find(sent.get("look", ""))
    if job is None or job.state is not JobState.DONE:
        return go(f"/data/{work.name}")
    is_live = sent.pop("live", "") == "yes"
    try:
        options = {} if "forget" in sent else state_reading(job.outcome.value, sent)
    except BadUsage as error:
        if is_live:
            return JSONResponse({"problem": str(error)})
        return show_data(request, str(error), sent)
    work = session.change(work.name, lambda now: _start_again(now, options))
    session.keep(work)
    if is_live:
        return JSONResponse({"job": reading_of(begin_reading(session, work)).name})
    return go(f"/data/{work.name}")


def _start_again(work: Work, options: dict[str, Any]) -> dict[str, Any]:
    """Return what changes where a file is read otherwise; nothing where it is read so already."""
    job = work.reading
    if job is not None and options == work.options and job.state is not JobState.CANCELLED:
        return {}
    if job is not None:
        job.cancel()
    return {"options": options, "reading": None}


async def read_again(request: Request) -> Response:
    """Read a file again after it was cancelled."""
    work = work_of(request)
    session_of(request).change(work.name, lambda _: {"reading": None})
    return go(f"/data/{work.name}")


def send_key(request: Request) -> Response:
    """Send the key as the table that the command line takes."""
    key = work_of(request).options.get("key")
    rows = key.items() if isinstance(key, Mapping) else ()
    file = io.StringIO()
    write = csv.writer(file, lineterminator="\n")
    write.writerow(["item", "answer"])
    write.writerows([spreadsheet_cell(name), word] for name, word in rows)
    return send_text(file.getvalue(), KEY_FILE)


ROUTES = (
    Route("/data/{work}", show_data),
    Route("/data/{work}", taking_form(change_reading), methods=["POST"]),
    Route("/data/{work}/again", read_again, methods=["POST"]),
    Route(f"/data/{{work}}/{KEY_FILE}", send_key),
)
