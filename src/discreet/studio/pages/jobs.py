"""Jobs as a page's script asks for them: where one is, and its end."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.studio.frame import go, job_of

OWN_PAGE = re.compile(r"(/[\w-]+)+")
"""Addresses of our own pages: "//elsewhere" would be another machine's."""


def tell(request: Request) -> Response:
    """Say where a job is."""
    return JSONResponse(job_of(request).progress)


async def cancel(request: Request) -> Response:
    """End a job, and go back to the page that showed it."""
    job_of(request).cancel()
    form = await request.form()
    back = str(form.get("back", "/"))
    return go(back if OWN_PAGE.fullmatch(back) else "/")


ROUTES = (
    Route("/jobs/{job}", tell),
    Route("/jobs/{job}/cancel", cancel, methods=["POST"]),
)
