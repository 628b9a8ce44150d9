"""Data: what a file holds as it was understood, and how to have it understood otherwise."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.studio.forms import read_fields, read_index, write_fields
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
from discreet.studio.jobs import JobState, StudioJob
from discreet.studio.look import ITEM, MOST_WORDS, Look, look
from discreet.studio.options import (
    FIELDS,
    ROLES,
    apply_remedy,
    change_roles,
    choose_key,
    toggle_missing,
)
from discreet.studio.session import StudioSession, Work
from discreet.text import spreadsheet_cell

MOST_VALUES = 40
"""Values of all items that can be clicked on."""

Options = dict[str, Any]


def show_data(request: Request, problem: str = "") -> Response:
    """Show what was found in the file; begin to read it where nobody has."""
    session = session_of(request)
    work = begin_reading(session, work_of(request))
    job = reading_of(work)
    values: Mapping[str, Any] = {}
    if job.state is JobState.DONE:
        values = _describe(work, job)
    return show(
        "data.html",
        {**show_job(job), "found": None, "refused": problem, **values},
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
    inspection: Look | None = job.outcome.value if job and job.state is JobState.DONE else None
    return inspection


def _describe(work: Work, job: StudioJob) -> Mapping[str, Any]:
    inspection: Look = job.outcome.value
    items = [one.name for one in inspection.columns if one.role == ITEM]
    key = work.options.get("key")
    remedies = inspection.problem.remedies if inspection.problem else ()
    return {
        "found": inspection,
        "warnings": [one.replace(str(work.source), work.shown) for one in job.outcome.warnings],
        "roles": ROLES[inspection.is_long],
        "values": _list_values(inspection),
        "missing": [str(one) for one in work.options.get("missing", [])],
        "key": key if isinstance(key, Mapping) else {},
        "fields": FIELDS,
        "said": write_fields(FIELDS, _without_key(work.options)),
        "remedies": [(one, _preview(work, one, items)) for one in remedies],
        "choosing": bool(key) or any(one.asks == "key" for one in remedies),
        "same": write_same("fit", work.shown, work.options, items),
    }


def _without_key(options: Mapping[str, Any]) -> Options:
    """Leave out a key that was chosen item by item: it was not typed."""
    return {k: v for k, v in options.items() if k != "key" or isinstance(v, str)}


def _preview(work: Work, remedy: Any, items: list[str]) -> str:
    """Return the command line that a remedy leads to."""
    return write_same("fit", work.shown, apply_remedy(work.options, remedy), items).command


def _list_values(inspection: Look) -> list[tuple[str, int]]:
    """Return the values of all items, but for right and wrong, the most frequent first."""
    counted: dict[str, int] = {}
    for column in inspection.items or inspection.columns:
        # A column of names or numbers of persons says nothing about answers.
        word_counts = column.words if len(column.words) <= MOST_WORDS else {}
        for word, times in word_counts.items():
            counted[word] = counted.get(word, 0) + times
    others = [(word, times) for word, times in counted.items() if word not in ("0", "1")]
    return sorted(others, key=lambda pair: -pair[1])[:MOST_VALUES]


async def change(request: Request) -> Response:
    """Read the file again, otherwise."""
    work, form = work_of(request), await request.form()
    sent = {name: str(value) for name, value in form.items()}
    action = CHANGES.get(sent.get("change", ""))
    inspection = find_look(work)
    if action is None or inspection is None:
        return go(f"/data/{work.name}")
    try:
        options = action(work.options, inspection, sent)
    except BadUsage as error:
        return show_data(request, str(error))
    session_of(request).change(work.name, lambda now: _start_again(now, options))
    return go(f"/data/{work.name}")


def _start_again(work: Work, options: Options) -> dict[str, Any]:
    if work.reading is not None:
        work.reading.cancel()
    return {"options": options, "reading": None}


def _take_remedy(options: Mapping[str, Any], inspection: Look, sent: Mapping[str, str]) -> Options:
    remedies = inspection.problem.remedies if inspection.problem else ()
    number = read_index(sent.get("number", ""), len(remedies))
    if number is None:
        raise BadUsage("This remedy belongs to an earlier look at the file.")
    return apply_remedy(options, remedies[number], sent.get("value", ""))


def _take_code(options: Mapping[str, Any], _: Look, sent: Mapping[str, str]) -> Options:
    return toggle_missing(options, sent.get("code", ""))


def _take_roles(options: Mapping[str, Any], inspection: Look, sent: Mapping[str, str]) -> Options:
    return change_roles(options, inspection, _strip(sent, "role:"))


def _take_key(options: Mapping[str, Any], inspection: Look, sent: Mapping[str, str]) -> Options:
    changed = change_roles(options, inspection, _strip(sent, "role:"))
    return choose_key(changed, inspection, _strip(sent, "key:"))


def _take_settings(options: Mapping[str, Any], _: Look, sent: Mapping[str, str]) -> Options:
    settings = {form_field.name for form_field in FIELDS}
    other_options = {name: value for name, value in options.items() if name not in settings}
    chosen = {} if "key" in sent and sent["key"].strip() else _chosen_key(options)
    return {**other_options, **chosen, **read_fields(FIELDS, sent)}


def _chosen_key(options: Mapping[str, Any]) -> Options:
    return {"key": options["key"]} if isinstance(options.get("key"), Mapping) else {}


def _strip(sent: Mapping[str, str], start: str) -> dict[str, str]:
    return {name.removeprefix(start): one for name, one in sent.items() if name.startswith(start)}


CHANGES: Mapping[str, Callable[[Mapping[str, Any], Look, Mapping[str, str]], Options]] = {
    "remedy": _take_remedy,
    "code": _take_code,
    "roles": _take_roles,
    "key": _take_key,
    "settings": _take_settings,
    "nothing": lambda *_: {},
}
"""What a button of the page asks for, by its value."""


async def read_again(request: Request) -> Response:
    """Read a file again after it was cancelled."""
    work = work_of(request)
    session_of(request).change(work.name, lambda now: _start_again(now, dict(now.options)))
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
    Route("/data/{work}", change, methods=["POST"]),
    Route("/data/{work}/again", read_again, methods=["POST"]),
    Route(f"/data/{{work}}/{KEY_FILE}", send_key),
)
