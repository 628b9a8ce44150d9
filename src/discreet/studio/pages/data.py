"""Data: what a file holds, as it was understood."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.studio.frame import Secrecy, session_of, show, work_of
from discreet.studio.jobs import State
from discreet.studio.session import Session, Work
from discreet.studio.tasks import look


def show_data(request: Request) -> Response:
    """Show what was found in the file; begin to read it where nobody has."""
    session, work = session_of(request), work_of(request)
    work = _read(session, work)
    job = work.reading
    assert job is not None  # noqa: S101 - begun above
    state = job.state
    return show(
        "data.html",
        {
            "job": job,
            "waiting": state is State.RUNNING,
            "state": state.value,
            "progress": job.progress,
            "failure": job.failure if state is State.FAILED else None,
            "look": job.outcome.value if state is State.DONE else None,
        },
        title=work.title,
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        here="data",
    )


def _read(session: Session, work: Work) -> Work:
    def begin(found: Work) -> dict[str, object]:
        if found.reading is not None:
            return {}
        title = f"Reading {found.title}"
        return {"reading": session.jobs.start(title, look, source=found.source,
                                              options=dict(found.options))}  # fmt: skip

    return session.change(work.name, begin)


ROUTES = (Route("/data/{work}", show_data),)
