"""Start: drop a file, name one, take an example, or go on with recent work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.html import Sheet
from discreet.items.curves import BIN
from discreet.report.drawings import draw_wright
from discreet.report.pictures import WrightMap
from discreet.studio.forms import find_path, receive_form
from discreet.studio.frame import Secrecy, go, session_of, show
from discreet.studio.jobs import JobState
from discreet.studio.kept_files import EXAMPLES, write_example
from discreet.studio.session import Work
from discreet.tables.paths import find_files
from discreet.text import count_of

EXAMPLE_ITEMS = ("Fractions", "Ratios", "Percent", "Decimals", "Rounding", "Adding")
EXAMPLE_LOGITS = (1.3, 0.7, 0.2, -0.3, -0.8, -1.6)
EXAMPLE_PERSONS = (1, 3, 4, 7, 9, 12, 10, 8, 5, 4, 2, 1)


def welcome(request: Request, problem: str = "") -> Response:
    """Show the ways in."""
    session = session_of(request)
    entries = session.recent.entries()
    return show(
        "start.html",
        {
            "problem": problem,
            "examples": EXAMPLES.values(),
            "works": [(work, _say_state(work)) for work in session.works.values()],
            "recent": [
                (one.get("path") or one["name"], "path" in one, _say_kept(one)) for one in entries
            ],
            "kept_in": session.recent.place,
            "most": f"{session.most_bytes / 1e9:g}",
            "picture": draw_example(),
        },
        title="What would you like to calibrate?",
        secrecy=Secrecy.OWN if entries or session.works else Secrecy.PUBLIC,
        status=400 if problem else 200,
    )


@cache
def draw_example() -> Sheet:
    """Draw a Wright map of invented numbers, to show what one gets."""
    counts = np.array(EXAMPLE_PERSONS)
    difficulty = np.array(EXAMPLE_LOGITS)
    return draw_wright(
        WrightMap(
            starts=np.array([BIN * n - 1.75 for n in range(len(counts))]),
            counts=counts,
            persons=int(counts.sum()),
            mean=0.0,
            items=EXAMPLE_ITEMS,
            difficulty=difficulty,
            centre=(np.floor(difficulty / BIN) + 0.5) * BIN,
            level=np.ones(len(difficulty), dtype=np.int64),
            reach=(-2.0, 2.0),
            steps=(),
        )
    )


def _say_state(work: Work) -> str:
    """Say how far the work on a file is."""
    if any(run.job.state is JobState.RUNNING for run in work.runs):
        return "is being calibrated"
    if any(run.is_done for run in work.runs):
        return f"calibrated {count_of(len(work.runs), 'time')}"
    if work.reading is None:
        return "nobody has looked at it here"
    return {"done": "read"}.get(work.reading.state, work.reading.state)


def _say_kept(entry: Mapping[str, Any]) -> str:
    """Say what is kept of a file."""
    options, runs = entry.get("options") or {}, entry.get("runs") or ()
    words = ["its answer key"] if "key" in options else ["how it is read"] if options else []
    words += [count_of(len(runs), "calibration")] if runs else []
    summary = f"kept: {', '.join(words)}" if words else ""
    remark = "" if "path" in entry else "send the file again to go on"
    return "; ".join(filter(None, (summary, remark)))


async def upload(request: Request) -> Response:
    """Take the file that a browser sends."""
    session = session_of(request)
    try:
        sent = await receive_form(request, session.folder, session.most_bytes)
        if sent.file is None:
            raise BadUsage("No file was chosen. Choose one, and send it again.")
    except BadUsage as error:
        return welcome(request, str(error))
    return _show_data(session.open(sent.file, sent.file.name))


async def open_path(request: Request) -> Response:
    """Read a file of this machine where it is."""
    session, form = session_of(request), await request.form()
    try:
        path = _find(str(form.get("path", "")))
    except BadUsage as error:
        return welcome(request, str(error))
    session.recent.add(path)
    return _show_data(session.open(path))


def _find(text: str) -> Path:
    """Return the file that somebody names, also in the quotes that file managers add."""
    if not text.strip():
        raise BadUsage("No path was given. Type where the file is, such as /home/ann/answers.xlsx.")
    path = find_path(text)
    find_files(path)
    return path


async def take_example(request: Request) -> Response:
    """Work on bundled answers."""
    session, form = session_of(request), await request.form()
    example = EXAMPLES.get(str(form.get("name", "")))
    if example is None:
        return welcome(request, "There is no such example.")
    path = write_example(example, session.folder)
    return _show_data(session.open(path, example.name, example.options))


async def forget(request: Request) -> Response:
    """Take one path or all of them off the list."""
    form = await request.form()
    session_of(request).recent.forget(str(form.get("path", "")))
    return go("/")


def _show_data(work: Work) -> Response:
    return go(f"/data/{work.name}")


ROUTES = (
    Route("/", welcome),
    Route("/upload", upload, methods=["POST"]),
    Route("/open", open_path, methods=["POST"]),
    Route("/example", take_example, methods=["POST"]),
    Route("/forget", forget, methods=["POST"]),
)
