"""The application and its server: on the loopback address, for as long as the program runs.

In: a file or nothing, a port. Out: an address, printed once it answers. A browser is given it in a
file that only the owner can read, because everybody on the machine can see what programs are
started with. When the server ends, its workers end, and what browsers sent is removed; ledgers and
releases stay.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.atomic import write_text
from discreet.errors import BadUsage
from discreet.html import TEMPLATES, render
from discreet.studio.frame import Secrecy, go, own_page, session_of, show
from discreet.studio.jobs import StudioJob, explain, usual_memory
from discreet.studio.kept_files import Home, private_folder
from discreet.studio.language import not_found, tell
from discreet.studio.pages import (
    calibrate,
    data,
    ledgers,
    persons,
    plan,
    release,
    releases,
    report,
    requests,
)
from discreet.studio.safety import LOOPBACK, Guard, Keys
from discreet.studio.session import StudioSession
from discreet.tables.paths import settle_path

#: A page is a module with ``ROUTES``; another one is added here.
PAGES = (data, calibrate, report, persons, plan, ledgers, releases, release, requests)

#: Files that pages load; nothing else is served by its name.
FILES = {
    "style.css": "text/css",
    "steps.css": "text/css",
    "table.js": "text/javascript",
    "picture.js": "text/javascript",
    "studio/studio.css": "text/css",
    "studio/studio.js": "text/javascript",
    "studio/live.js": "text/javascript",
}


def build_app(session: StudioSession, keys: Keys) -> ASGIApp:
    """Return the application of a session, behind its guard."""
    routes = [route for page in PAGES for route in page.ROUTES]
    app = Starlette(
        routes=[*routes, *ROUTES],
        exception_handlers={HTTPException: show_refusal, Exception: show_fault},
    )
    app.state.session = session
    return Guard(app, keys)


def show_refusal(request: Request, error: Exception) -> Response:
    """Say in the frame of all pages why there is no page; a tab may outlive its studio."""
    refused = error if isinstance(error, HTTPException) else HTTPException(500)
    if refused.status_code == HTTPStatus.METHOD_NOT_ALLOWED and request.method == "GET":
        return go(request.url.path.rpartition("/")[0] or "/")  # the page whose form leads here
    is_unknown = refused.detail == HTTPStatus(refused.status_code).phrase
    words = tell("There is nothing at this address.") if is_unknown else refused.detail
    return show("refusal.html", {"problem": words}, Secrecy.PUBLIC, status=refused.status_code)


def show_fault(_: Request, error: Exception) -> Response:
    """Say in the frame of all pages that the program is at fault."""
    values = {"problem": explain(error)}
    return show("refusal.html", values, Secrecy.CONFIDENTIAL, status=500)


def send_file(request: Request) -> Response:
    """Send a style or a script."""
    name = request.path_params["name"]
    if name not in FILES:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response((TEMPLATES / name).read_text("utf-8"), media_type=FILES[name])


def find_job(request: Request) -> StudioJob:
    """Return the job that an address names."""
    job = session_of(request).jobs.find(request.path_params["job"])
    if job is None:
        raise not_found("There is no such job here; the studio was restarted.")
    return job


def say_progress(request: Request) -> Response:
    """Say where a job is."""
    progress = find_job(request).progress
    return JSONResponse({**progress, "label": tell.term(progress["label"])})


async def cancel(request: Request) -> Response:
    """End a job, and go back to the page that showed it."""
    find_job(request).cancel()
    form = await request.form()
    return go(own_page(str(form.get("back", ""))) or "/")


ROUTES = (
    Route("/static/{name:path}", send_file),
    Route("/jobs/{job}", say_progress),
    Route("/jobs/{job}/cancel", cancel, methods=["POST"]),
)


_BACKLOG = 64


def run_studio(
    file: Path | None,
    port: int,
    announce: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    browser: bool = True,
    keep: Path | None = None,
) -> None:
    """Serve until somebody ends the program.

    Parameters
    ----------
    file
        Opened at once.
    port
        Where to listen; 0 takes a free one.
    announce
        Called with the first address, once it answers, and with every new one.
    warn
        Called with what the owner has to know.
    browser
        Whether to open it.
    keep
        The folder for what stays: ledgers, and releases that were paid for.
    """
    home = Home() if keep is None else Home(settle_path(keep))
    with listen(port) as door, private_folder() as folder:
        session = StudioSession(folder, memory=usual_memory(), home=home)
        if file is not None:
            session.open(settle_path(file))
            session.recent.add(settle_path(file))
        note = folder / "enter.html"
        keys = Keys(
            door.getsockname()[1],
            on_entry=lambda: note.unlink(missing_ok=True),
            on_reuse=lambda: warn(REUSED),
        )
        announce(keys.address)
        if browser:
            open_browser(note, keys.address)
        hear_enter(lambda: announce(keys.renew()))
        try:
            make_server(build_app(session, keys)).run(sockets=[door])
        finally:
            session.jobs.end()


REUSED = (
    "Warning: an address of the studio was opened that had been used already, and was refused. If "
    "that was not you, somebody else has read it. Press Enter here for a new address."
)


def open_browser(note: Path, address: str) -> None:
    """Lead the browser to an address by a file that only its owner can read."""
    write_text(note, render("studio/enter.html", {"address": address}))
    threading.Thread(target=webbrowser.open, args=(note.as_uri(),), daemon=True).start()


def hear_enter(act: Callable[[], None]) -> None:
    """Call a function whenever somebody presses Enter in the terminal, where there is one."""
    if sys.stdin is None or not sys.stdin.isatty():
        return
    # In the background, reading is an error then, and no reason to stop the program.
    if hasattr(signal, "SIGTTIN") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def listen_to_keys(terminal: int) -> None:
        while True:
            try:
                if not os.read(terminal, 1024):
                    return
            except OSError:
                time.sleep(1)
                continue
            act()

    threading.Thread(target=listen_to_keys, args=(sys.stdin.fileno(),), daemon=True).start()


def listen(port: int) -> socket.socket:
    """Return a socket that listens on the loopback address alone."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((LOOPBACK, port))
    except OSError as error:
        door.close()
        raise BadUsage(
            f"port {port} cannot be used ({error.strerror}): another program may listen there. "
            "Choose another with --port, or leave it out to take a free one."
        ) from None
    door.listen(_BACKLOG)
    return door


def make_server(app: object) -> uvicorn.Server:
    """Return a server that says nothing and keeps no log."""
    return uvicorn.Server(
        uvicorn.Config(
            app,  # type: ignore[arg-type]
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
    )
