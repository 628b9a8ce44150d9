"""Start and Data: bring a file; see what it holds as it was understood, and change that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.report.plain import AnsweredItem
from discreet.studio.forms import find_path, read_index, receive_form, taking_form, write_fields
from discreet.studio.frame import (
    KEY_FILE,
    Secrecy,
    go,
    send_table,
    session_of,
    show,
    show_job,
    work_of,
    write_same,
)
from discreet.studio.inspecting import (
    FIELDS,
    ITEM,
    LEFT_OUT,
    REVERSED,
    ROLES,
    ROWS,
    AnswersSummary,
    Look,
    look,
    state_reading,
)
from discreet.studio.jobs import JobState, StudioJob
from discreet.studio.kept_files import EXAMPLES, key_of, write_example
from discreet.studio.labels import SmallBar, draw_bars, shorten, tell_bars
from discreet.studio.language import refuse, say_plainly, tell
from discreet.studio.session import StudioSession, Work
from discreet.tables.inspection import simplify
from discreet.tables.paths import find_files
from discreet.text import spreadsheet_cell
from discreet.words import mark

# -- bringing a file -------------------------------------------------------------------------


def welcome(request: Request, problem: str = "", _: Mapping[str, str] | None = None) -> Response:
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
        "works": [(one, _say_state(one), session.owns(one)) for one in session.works.values()],
        "recent": recent,
        "kept_in": session.recent.place,
        "most": f"{session.most_bytes / 1e9:g}",
    }
    return show("start.html", values, Secrecy.OWN if entries or session.works else Secrecy.PUBLIC)


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


def _say_kept(entry: PlainMapping) -> str:
    """Say what is kept of a file."""
    options, runs = entry.get("options") or {}, entry.get("runs") or ()
    words = [tell("its answer key")] if "key" in options else []
    words += [tell("how it is read")] if options and not words else []
    if runs:
        words.append(tell.count(len(runs), "{number} calibration", "{number} calibrations"))
    said = [tell("kept: {what}", what=", ".join(words))] if words else []
    return "; ".join([*said, *([] if "path" in entry else [tell("send the file again to go on")])])


def _name_sent(path: Path) -> str:
    """Return what the user calls a file that was sent, or several that are read together."""
    if path.is_file():
        return path.name
    first, *others = sorted(one.name for one in path.iterdir())
    return f"{first} + {len(others)}"


async def upload(request: Request) -> Response:
    """Take the file that a browser sends."""
    session = session_of(request)
    try:
        sent = await receive_form(request, session.folder, session.most_bytes)
        if sent.file is None:
            raise refuse("No file was chosen. Choose one, and send it again.")
    except BadUsage as error:
        return welcome(request, str(error))
    work = await run_in_threadpool(session.open, sent.file, _name_sent(sent.file))
    return go(f"/data/{work.name}")


def open_path(request: Request, sent: dict[str, str]) -> Response:
    """Read a file of this machine where it is."""
    session, text = session_of(request), sent.get("path", "")
    if not text.strip():
        raise refuse(
            "No path was given. Type where the file is, such as {path}.",
            path="/home/ann/answers.xlsx",
        )
    path = find_path(text)
    find_files(path)
    session.recent.add(path)
    return go(f"/data/{session.open(path).name}")


def take_example(request: Request, sent: dict[str, str]) -> Response:
    """Work on bundled answers."""
    session, example = session_of(request), EXAMPLES.get(sent.get("name", ""))
    if example is None:
        raise refuse("There is no such example.")
    path = write_example(example, session.folder)
    return go(f"/data/{session.open(path, example.name, example.options).name}")


def forget(request: Request, sent: dict[str, str]) -> Response:
    """Take one file or all of them off the list."""
    session_of(request).recent.forget(sent.get("path", ""))
    return go("/")


async def close(request: Request) -> Response:
    """Close a file, and delete its copy and what was made of it."""
    session = session_of(request)
    await run_in_threadpool(session.close, work_of(request))
    return go("/")


# -- what a file holds -----------------------------------------------------------------------

LETTERS = "ABCDEFGH"


def show_data(
    request: Request, problem: str = "", sent: Mapping[str, str] | None = None
) -> Response:
    """Show what was found in the file; begin to read it where nobody has."""
    work, job = begin_reading(session_of(request), work_of(request))
    values = {**show_job(job), "view": None, "problem": problem, "sent": sent or {}}
    values["is_copy"] = session_of(request).owns(work)
    if job.state is JobState.DONE:
        values |= _describe(work, job)
        if work.options:
            session_of(request).keep(work)
    return show("data.html", values, Secrecy.CONFIDENTIAL, work)


def begin_reading(session: StudioSession, work: Work) -> tuple[Work, StudioJob]:
    """Return the work with the job that reads it; a second tab starts no second one."""

    def begin(now: Work) -> PlainDict:
        if now.reading is not None:
            return {}
        arguments = {"source": now.source, "name": now.shown, "options": dict(now.options)}
        job = session.jobs.start(mark("Reading {file}"), look, **arguments)
        return {"reading": job, "jobs": (*now.jobs, job)}

    work = session.change(work.name, begin)
    return work, cast("StudioJob", work.reading)


def find_look(work: Work) -> Look | None:
    """Return what was found in a file, once it was looked at."""
    job = work.reading
    view: Look | None = job.outcome.value if job and job.state is JobState.DONE else None
    return view


def say_sizes(summary: AnswersSummary) -> str:
    """Say how many persons and items there are."""
    persons = tell.count(summary.persons, "{number} person", "{number} persons")
    return f"{persons}, {tell.count(len(summary.items), '{number} item', '{number} items')}"


def say_kind(summary: AnswersSummary) -> str:
    """Say what the answers are."""
    if summary.raters:
        raters = tell.count(summary.raters, "{number} rater", "{number} raters")
        scores = tell.count(summary.steps + 1, "{number} category", "{number} categories")
        return tell("ratings by {raters}, {scores}", raters=raters, scores=scores)
    if summary.keyed:
        return tell("right and wrong by the key")
    if summary.steps == 1:
        return tell("right and wrong")
    return tell.count(summary.steps + 1, "{number} category", "{number} categories")


@dataclass(frozen=True)
class ColumnCard:
    """A column, or an item of a long table: its label, its use, and what stands in it.

    ``number`` is its place among the columns, None where it is no column; ``told`` says what its
    ``bars`` show.
    """

    name: str
    label: str
    role: str
    number: int | None = None
    bars: tuple[SmallBar, ...] = ()
    told: str = ""
    missing: float = 0.0
    values: str = ""


#: Columns that are shown before the others are folded.
MOST_CARDS = 60
#: Values of a column that are named where no answers were counted.
MOST_VALUES = 4


def list_cards(view: Look) -> dict[str, list[ColumnCard]]:
    """Return the items with their answers, the other columns, and those that are left out."""
    summary = view.summary
    counted = {one.name: one for one in summary.items} if summary else {}
    preview = view.inspection.preview if view.inspection else None
    names = [*counted] if view.is_long else view.items
    short = dict(zip(names, shorten(names), strict=True))
    cards: dict[str, list[ColumnCard]] = {"items": [], "others": [], "aside": []}
    for number, (name, role) in enumerate(view.columns):
        is_item = role in (ITEM, REVERSED) and not view.is_long
        rows = preview.rows if preview else ()
        values = [*dict.fromkeys(row[number] for row in rows if row[number])]
        card = ColumnCard(name, short.get(name, name), role, number)
        if name in counted and is_item:
            card = _draw_answers(card, counted[name], summary.persons if summary else 0)
        else:
            card = replace(card, values=", ".join(values[:MOST_VALUES]))
        place = "items" if is_item else "aside" if role == LEFT_OUT else "others"
        cards[place].append(card)
    if view.is_long and summary:
        items = [ColumnCard(one.name, short[one.name], ITEM) for one in summary.items]
        cards["items"] = [_draw_answers(one, counted[one.name], summary.persons) for one in items]
    return cards


def _draw_answers(card: ColumnCard, item: AnsweredItem, persons: int) -> ColumnCard:
    """Return a card with a bar for each answer."""
    missing = 100 * (1 - item.answers / (persons or 1))
    return replace(card, bars=draw_bars(item), told=tell_bars(item), missing=missing)


def _name_block(view: Look) -> str:
    """Name the items that were found, and the answers that they have."""
    if view.summary is None or not view.summary.items:
        return ""
    items = view.summary.items
    labels = [bar.label for one in items for bar in one.bars if bar.times]
    numbers = sorted({int(label) for label in labels if re.fullmatch(r"-?\d+", label)})
    seen = [*dict.fromkeys(labels)]
    if len(numbers) == len(seen) > 1:
        answers = tell("{low} to {high}", low=numbers[0], high=numbers[-1])
    else:
        answers = ", ".join(seen[:6]) + (", …" if len(seen) > 6 else "")
    names = {"first": items[0].name, "last": items[-1].name, "answers": answers}
    return tell("The items are “{first}” to “{last}”, with the answers {answers}.", **names)


def _describe(work: Work, job: StudioJob) -> PlainDict:
    view: Look = job.outcome.value
    questions = [(n, finding) for n, finding in enumerate(view.findings) if finding.is_open]
    asking = [one.answers for _, one in questions if one.answers and one.answers[0].asks]
    asked = {remedy.asks for answers in asking for remedy in answers}
    asked |= {"key"} & view.shown.keys() if view.summary is None else set()
    proposed = {k: v for answers in asking for k, v in answers[0].options.items()}
    roles = [role for role in ROLES[view.is_long] if role != REVERSED or _has_steps(view)]
    values = {"sizes": "", "kind": ""}
    if view.summary is not None:
        missing = view.summary.missing
        cells = tell.count(missing, "{number} cell missing", "{number} cells missing")
        sizes = say_sizes(view.summary) + (f", {cells}" if missing >= 0 else "")
        values = {"sizes": sizes, "kind": say_kind(view.summary)}
    return values | {
        "view": view,
        "preview": view.inspection and view.inspection.preview,
        "cards": list_cards(view),
        "most_cards": MOST_CARDS,
        "block": _name_block(view),
        "blocks": [(n, one) for n, one in enumerate(view.blocks) if len(one) > 1],
        "questions": questions,
        "answerable": any(finding.answers for _, finding in questions),
        "notes": [(n, finding) for n, finding in enumerate(view.findings) if not finding.is_open],
        "say_plainly": say_plainly,
        "warnings": [text.replace(str(work.source), work.shown) for text in job.outcome.warnings],
        "roles": roles,
        "row_roles": ROWS,
        "asked": [part for part in FIELDS if part.name in asked],
        "fields": [part for part in FIELDS if part.name not in asked],
        "said": write_fields(FIELDS, {**proposed, **view.shown}),
        "key": view.shown.get("key") if isinstance(view.shown.get("key"), Mapping) else {},
        "letters": _list_letters(view) if "key" in asked else "",
        "same": None if view.rated else write_same("fit", work.shown, view.shown, view.items),
    }


def _has_steps(view: Look) -> bool:
    has_steps = view.summary is not None and view.summary.steps > 1
    return has_steps or bool(view.shown.keys() & {"reverse", "categories", "lowest"})


def _list_letters(view: Look) -> str:
    """Return the options of a multiple-choice test in order, as far as the first rows have them."""
    rows = view.inspection.preview.rows if view.inspection else ()
    cells = {cell.strip().upper() for row in rows for cell in row}
    return LETTERS[: max([4, *(LETTERS.index(cell) + 1 for cell in cells & {*LETTERS})])]


def change_reading(request: Request, sent: dict[str, str]) -> Response:
    """Read the file as the form says; a script that asks is told by which job."""
    session, work = session_of(request), work_of(request)
    job = session.jobs.find(sent.get("look", ""))
    if job is None or job.state is not JobState.DONE:
        return go(f"/data/{work.name}")
    is_live = sent.pop("live", "") == "yes"
    try:
        options = _choose_options(job.outcome.value, sent)
    except BadUsage as error:
        if is_live:
            return JSONResponse({"problem": str(error)})
        raise
    work = session.change(work.name, lambda now: _start_again(now, options))
    if not options:  # others are kept once the file was read by them
        session.keep(work)
    if is_live:
        return JSONResponse({"job": begin_reading(session, work)[1].name})
    return go(f"/data/{work.name}")


def _choose_options(view: Look, sent: dict[str, str]) -> PlainDict:
    """Return what is stated from now on: nothing, another block, or what the form says."""
    if "forget" in sent:
        return {}
    number = read_index(sent.get("block", ""), len(view.blocks))
    if number is not None and view.inspection is not None:
        return simplify(view.inspection.blocks[number].stated)
    touched = sent.pop("touched", None)
    return state_reading(view, sent, None if touched is None else touched.split("\n"))


def _start_again(work: Work, options: PlainDict) -> PlainDict:
    """Return what changes where a file is read otherwise; nothing where it is read so already."""
    job = work.reading
    if job is not None and options == work.options and job.state is not JobState.CANCELLED:
        return {}
    if job is not None:
        job.cancel()
    return {"options": options, "reading": None}


async def read_again(request: Request) -> Response:
    """Read a file again after it was cancelled; after a failure as if nothing were stated."""
    work = work_of(request)
    failed = work.reading is not None and work.reading.state is JobState.FAILED
    changed = {"reading": None, "options": {} if failed else work.options}
    session_of(request).change(work.name, lambda _: changed)
    return go(f"/data/{work.name}")


def send_key(request: Request) -> Response:
    """Send the key as the table that the command line takes."""
    key = work_of(request).options.get("key")
    rows = key.items() if isinstance(key, Mapping) else ()
    cells = [[spreadsheet_cell(name), word] for name, word in rows]
    return send_table([["item", "answer"], *cells], KEY_FILE)


ROUTES = (
    Route("/", welcome),
    Route("/upload", upload, methods=["POST"]),
    Route("/open", taking_form(open_path, welcome), methods=["POST"]),
    Route("/example", taking_form(take_example, welcome), methods=["POST"]),
    Route("/forget", taking_form(forget, welcome), methods=["POST"]),
    Route("/data/{work}", show_data),
    Route("/data/{work}", taking_form(change_reading, show_data), methods=["POST"]),
    Route("/data/{work}/again", read_again, methods=["POST"]),
    Route("/data/{work}/close", close, methods=["POST"]),
    Route(f"/data/{{work}}/{KEY_FILE}", send_key),
)
