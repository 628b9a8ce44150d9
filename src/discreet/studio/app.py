"""The application: its pages, its few files, and the guard before them."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.markup import TEMPLATES
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
from discreet.studio.session import Session

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


def build_app(session: Session, keys: Keys) -> ASGIApp:
    """Return the application of a session, behind its guard."""
    routes = [route for page in PAGES for route in page.ROUTES]
    app = Starlette(routes=[*routes, Route("/static/{name:path}", send_file)])
    app.state.session = session
    return Guard(app, keys)


def send_file(request: Request) -> Response:
    """Send a style or a script."""
    name = request.path_params["name"]
    if name not in FILES:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response((TEMPLATES / name).read_text("utf-8"), media_type=FILES[name])
