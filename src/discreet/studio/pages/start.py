"""Start: drop a file, name one, take an example, or go on with recent work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.items.curves import BIN
from discreet.report.drawings import draw_wright
from discreet.report.pictures import WrightMap
from discreet.report.svg import Sheet
from discreet.studio.forms import find_path, receive_form, taking_form
from discreet.studio.frame import Secrecy, go, session_of, show
from discreet.studio.jobs import JobState
from discreet.studio.kept_files import EXAMPLES, key_of, write_example
from discreet.studio.language import refuse, tell
from discreet.studio.session import Work
from discreet.tables.paths import find_files
from discreet.words import mark

EXAMPLE_ITEMS = ("Fractions", "Ratios", "Percent", "Decimals", "Rounding", "Adding")
EXAMPLE_LOGITS = (1.3, 0.7, 0.2, -0.3, -0.8, -1.6)
EXAMPLE_PERSONS = (1, 3, 4, 7, 9, 12, 10, 8, 5, 4, 2, 1)


def welcome(request: Request, problem: str = "") -> Response:
    """Show the ways in."""
    session = session_of(request)
    entries = session.recent.entries()
    recent = [
        (key_of(one), one.get("path") or one.get("name"), "path" in one, _say_kept(one))
        for one in entries
    ]
    values = {
        "problem": problem,
        "examples": EXAMPLES.values(),
        "works": [(work, _say_state(work)) for work in session.works.values()],
        "recent": recent,
        "kept_in": session.recent.place,
        "most": f"{session.most_bytes / 1e9:g}",
        "picture": draw_example(),
    }
    return show("start.html", values, Secrecy.OWN if entries or session.works else Secrecy.PUBLIC)


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


#: What is said of a file by the state of the job that reads it.
READING = {
    JobState.DONE: mark("read"),
    JobState.RUNNING: mark("is being read"),
    JobState.FAILED: mark("could not be read"),
    JobState.CANCELLED: mark("reading was cancelled"),
}


def _say_state(work: Work) -> str:
    """Say how far the work on a file is."""
    if any(run.job.state is JobState.RUNNING for run in work.runs):
        return tell("is being calibrated")
    if any(run.is_done for run in work.runs):
        return tell.count(len(work.runs), "calibrated {number} time", "calibrated {number} times")
    if work.reading is None:
        return tell("nobody has looked at it here")
    return tell.term(READING[work.reading.state])


def _say_kept(entry: Mapping[str, Any]) -> str:
    """Say what is kept of a file."""
    options, runs = entry.get("options") or {}, entry.get("runs") or ()
    words = [tell("its answer key")] if "key" in options else []
    words += [tell("how it is read")] if options and not words else []
    if runs:
        words.append(tell.count(len(runs), "{number} calibration", "{number} calibrations"))
    said = [tell("kept: {what}", what=", ".join(words))] if words else []
    return "; ".join([*said, *([] if "path" in entry else [tell("send the file again to go on")])])


async def upload(request: Request) -> Response:
    """Take the file that a browser sends."""
    session = session_of(request)
    try:
        sent = await receive_form(request, session.folder, session.most_bytes)
        if sent.file is None:
            raise refuse("No file was chosen. Choose one, and send it again.")
    except BadUsage as error:
        return welcome(request, str(error))
    work = await run_in_threadpool(session.open, sent.file, sent.file.name)
    return go(f"/data/{work.name}")


def open_path(request: Request, sent: dict[str, str]) -> Response:
    """Read a file of this machine where it is."""
    session, text = session_of(request), sent.get("path", "")
    try:
        if not text.strip():
            raise refuse(
                "No path was given. Type where the file is, such as {path}.",
                path="/home/ann/answers.xlsx",
            )
        path = find_path(text)
        find_files(path)
    except BadUsage as error:
        return welcome(request, str(error))
    session.recent.add(path)
    return go(f"/data/{session.open(path).name}")


def take_example(request: Request, sent: dict[str, str]) -> Response:
    """Work on bundled answers."""
    session, example = session_of(request), EXAMPLES.get(sent.get("name", ""))
    if example is None:
        return welcome(request, tell("There is no such example."))
    path = write_example(example, session.folder)
    return go(f"/data/{session.open(path, example.name, example.options).name}")


def forget(request: Request, sent: dict[str, str]) -> Response:
    """Take one file or all of them off the list."""
    session_of(request).recent.forget(sent.get("path", ""))
    return go("/")


ROUTES = (
    Route("/", welcome),
    Route("/upload", upload, methods=["POST"]),
    Route("/open", taking_form(open_path), methods=["POST"]),
    Route("/example", taking_form(take_example), methods=["POST"]),
    Route("/forget", taking_form(forget), methods=["POST"]),
)
