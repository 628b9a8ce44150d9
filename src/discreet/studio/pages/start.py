"""Start: drop a file, name one, take an example, or go on with recent work."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.studio.forms import find_path, receive_form
from discreet.studio.frame import Secrecy, go, session_of, show
from discreet.studio.kept_files import EXAMPLES, write_example
from discreet.studio.session import Work
from discreet.tables.paths import find_files


def welcome(request: Request, problem: str = "") -> Response:
    """Show the ways in."""
    session = session_of(request)
    paths = session.recent.paths()
    return show(
        "start.html",
        {
            "problem": problem,
            "examples": EXAMPLES.values(),
            "works": list(session.works.values()),
            "recent": paths,
            "kept_in": session.recent.place,
            "most": f"{session.most_bytes / 1e9:g}",
        },
        title="What would you like to calibrate?",
        secrecy=Secrecy.OWN if paths or session.works else Secrecy.PUBLIC,
        status=400 if problem else 200,
    )


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
