"""The application: its pages, its few files, and the guard before them."""

from __future__ import annotations

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.html import TEMPLATES
from discreet.studio.frame import Secrecy, show
from discreet.studio.pages import (
    calibrate,
    data,
    jobs,
    ledgers,
    persons,
    plan,
    release,
    releases,
    report,
    start,
)
from discreet.studio.safety import Guard, Keys
from discreet.studio.session import StudioSession
from discreet.studio.worker import explain

PAGES = (start, jobs, data, calibrate, report, persons, plan, ledgers, releases, release)
"""A page is a module with ``ROUTES``; another one is added here."""

FILES = {
    "style.css": "text/css",
    "steps.css": "text/css",
    "table.js": "text/javascript",
    "studio/studio.css": "text/css",
    "studio/studio.js": "text/javascript",
    "studio/live.js": "text/javascript",
}
"""Files that pages load; nothing else is served by its name."""


def build_app(session: StudioSession, keys: Keys) -> ASGIApp:
    """Return the application of a session, behind its guard."""
    routes = [route for page in PAGES for route in page.ROUTES]
    app = Starlette(
        routes=[*routes, Route("/static/{name:path}", send_file)],
        exception_handlers={HTTPException: show_refusal, Exception: show_fault},
    )
    app.state.session = session
    return Guard(app, keys)


def show_refusal(_: Request, error: Exception) -> Response:
    """Say in the frame of all pages why there is no page; a tab may outlive its studio."""
    refused = error if isinstance(error, HTTPException) else HTTPException(500)
    unknown = refused.detail == HTTPStatus(refused.status_code).phrase
    return show(
        "refusal.html",
        {"problem": "There is nothing at this address." if unknown else refused.detail},
        title="This page cannot be shown",
        secrecy=Secrecy.PUBLIC,
        here="nowhere",
        status=refused.status_code,
    )


def show_fault(_: Request, error: Exception) -> Response:
    """Say in the frame of all pages that the program is at fault."""
    return show(
        "refusal.html",
        {"problem": explain(error).message},
        title="This page cannot be shown",
        secrecy=Secrecy.CONFIDENTIAL,
        here="nowhere",
        status=500,
    )


def send_file(request: Request) -> Response:
    """Send a style or a script."""
    name = request.path_params["name"]
    if name not in FILES:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response((TEMPLATES / name).read_text("utf-8"), media_type=FILES[name])
