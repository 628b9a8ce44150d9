"""Releases: those that are made, those that were paid for and have not arrived, and their files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from discreet.atomic import RELEASE_FILES
from discreet.choices import PlainMapping
from discreet.errors import DiscreetError
from discreet.html import HtmlColumn
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.balance import LedgerEntry
from discreet.privacy.ledger.request import Request as Proposal
from discreet.publishing.delivery import list_waiting
from discreet.publishing.identity import Identity
from discreet.publishing.requests import describe_request
from discreet.publishing.verification import check_bundle, read_published
from discreet.report.drawings import draw_difficulties
from discreet.report.pictures import difficulty_rows
from discreet.report.statement import make_statement
from discreet.results.estimate import Estimate
from discreet.studio.forms import find_path, taking_form
from discreet.studio.frame import Same, Secrecy, go, send_bytes, session_of, show
from discreet.studio.jobs import JobState
from discreet.studio.language import not_found, tell
from discreet.studio.pages.ledgers import ListedLedger, list_ledgers, path_of
from discreet.studio.pages.release import list_versions, say_versions, start_release, write_release
from discreet.studio.pages.requests import list_proposed
from discreet.studio.safety import SANDBOX
from discreet.studio.session import StudioSession, Ticket
from discreet.tables.paths import find_files
from discreet.words import find_kind, speak

PAGE = "report.html"


@dataclass(frozen=True)
class Made:
    """A release that lies here: its record, or why it cannot be shown.

    ``chain`` says which version it is, which one it replaces, and which one replaces it.
    """

    path: Path
    record: PlainMapping = field(default_factory=dict)
    problem: str = ""
    chain: str = ""

    @property
    def title(self) -> str:
        """What it calls itself, or where it lies."""
        return self.identity.title or self.path.name

    @property
    def identity(self) -> Identity:
        """Who it is."""
        return Identity(**self.record.get("identity", {}))


def look_up(path: Path) -> Made:
    """Read the record of a release, and check that it is whole."""
    try:
        return Made(path, check_bundle(path))
    except (DiscreetError, OSError) as error:
        return Made(path, problem=str(error))


def chain_up(session: StudioSession, made: Made) -> Made:
    """Return a release with its place among the versions of its title."""
    versions = list_versions(session, made.identity.title)
    return replace(made, chain=say_versions(made.identity, versions))


def find_waiting(session: StudioSession) -> list[tuple[ListedLedger, LedgerEntry]]:
    """Return what was paid for and is neither here nor being made, with its ledger."""
    running = {name for name, one in list(session.tickets.items()) if _is_running(one)}
    return [
        (one, entry)
        for one in list_ledgers(session)
        if one.history is not None
        for entry in list_waiting(one.history)
        if entry.reservation not in running
    ]


def _is_running(ticket: Ticket) -> bool:
    return ticket.job is not None and ticket.job.state is JobState.RUNNING


def show_releases(
    request: Request, problem: str = "", _: Mapping[str, str] | None = None
) -> Response:
    """Show all releases of this machine."""
    session = session_of(request)
    values = {
        "problem": problem,
        "running": [one for one in session.tickets.values() if _is_running(one)],
        "waiting_for": find_waiting(session),
        "made": [
            chain_up(session, look_up(path)) for path in session.home.list_releases().values()
        ],
        "proposed": list_proposed(session),
        "home": session.home.releases,
        "put_away": session.home.put_away,
        "works": list(session.works.values()),
    }
    return show("releases.html", values, Secrecy.OWN)


def open_unseen(request: Request, sent: dict[str, str]) -> Response:
    """Begin a release of answers that nobody has looked at here."""
    session = session_of(request)
    path = find_path(sent.get("path", ""))
    find_files(path)
    session.recent.add(path)
    correct = sent.get("correct", "")
    return go(f"/release/{session.open(path).name}{correct and f'?correct={correct}'}")


def bring_request(request: Request, sent: dict[str, str]) -> Response:
    """Take a request that a colleague sent, or the same one with more signatures."""
    brought = Proposal.load(find_path(sent.get("path", "")))
    describe_request(brought)  # refuses what cannot be shown completely
    return go(f"/requests/{session_of(request).home.keep_request(brought)}")


def resume(request: Request, sent: dict[str, str]) -> Response:
    """Fetch a release that was paid for; nothing is charged."""
    session, path = session_of(request), path_of(request)
    entry = Ledger.open(path).find(sent.get("number", ""))
    title = str(((entry.order or {}).get("about") or {}).get("identity", {}).get("title", ""))
    folder = session.home.place_release(title, entry.reservation)
    work = session.works.get(sent.get("work", ""))
    session.issue(Ticket(entry.reservation, work, None, path, folder))
    used = session.begin(entry.reservation, partial(start_release, session))
    return go(f"/releases/{used.name}")


# -- one release -----------------------------------------------------------------------------


def folder_of(request: Request) -> Path:
    """Return the folder of the release that an address names; names lead nowhere else."""
    home = session_of(request).home
    folder = home.list_releases().get(request.path_params["bundle"])
    if folder is None:
        raise not_found("There is no such release here. Look into {folder}.", folder=home.put_away)
    return folder


def _checked(request: Request) -> Path:
    """Return the folder of a release that is whole; another one is neither shown nor sent."""
    path = folder_of(request)
    if problem := look_up(path).problem:
        raise HTTPException(400, problem)
    return path


def show_bundle(request: Request) -> Response:
    """Show a release."""
    path = folder_of(request)
    bundle = chain_up(session_of(request), look_up(path))
    if bundle.problem:
        return show_releases(request, bundle.problem)
    published = read_published(path)
    columns, kind = published.result.to_dict(), find_kind(bundle.record)
    called = {kind.number: tell.about(kind).of("{number}")}
    ticket = _find_ticket(session_of(request), path)
    outcome = ticket.job.outcome if ticket and ticket.job else None
    result, picture = published.result, None
    if isinstance(result, Estimate) and result.estimated.any():
        picture = draw_difficulties(difficulty_rows(result), tell.about(kind))
    values = {
        "title": bundle.title,
        "made": bundle,
        "statement": make_statement(bundle.record),
        "language": speak(bundle.record).language,
        "columns": [
            HtmlColumn(called.get(name) or tell.term(name), columns[name])
            for name in kind.columns[:-1]
        ],
        "picture": picture,
        "warnings": outcome.warnings if outcome else (),
        "ticket": ticket,
        "same": (ticket and write_release(ticket)) or _write_same(path),
    }
    return show("bundle.html", values, Secrecy.RELEASED, ticket.work if ticket else None)


def _find_ticket(session: StudioSession, path: Path) -> Ticket | None:
    """Return the ticket under which a release was made in this studio."""
    tickets = list(session.tickets.values())
    return next((one for one in tickets if one.place == path and one.is_used), None)


def _write_same(path: Path) -> Same:
    code = f"import discreet\n\npublished = discreet.read_release({str(path)!r})\n"
    code += "print(published.guarantee.summary)\n"
    return Same(code, f"discreet verify {quote(str(path))}")


def send_page(request: Request) -> Response:
    """Show the page of a release as its readers will see it."""
    page = (_checked(request) / PAGE).read_text("utf-8")
    return HTMLResponse(page, headers=SANDBOX)


def send_zip(request: Request) -> Response:
    """Send a release as one file."""
    path = _checked(request)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(RELEASE_FILES):
            if (path / name).is_file():
                archive.writestr(f"{path.name}/{name}", (path / name).read_bytes())
    return send_bytes(packed.getvalue(), f"{path.name}.zip", "application/zip")


def put_away(request: Request, _: dict[str, str]) -> Response:
    """Take a release off the list."""
    session_of(request).home.put_release_away(request.path_params["bundle"])
    return go("/releases")


ROUTES = (
    Route("/releases", show_releases),
    Route("/releases/unseen", taking_form(open_unseen, show_releases), methods=["POST"]),
    Route("/requests", taking_form(bring_request, show_releases), methods=["POST"]),
    Route("/ledgers/{ledger}/resume", taking_form(resume, show_releases), methods=["POST"]),
    Route("/bundles/{bundle}", show_bundle),
    Route("/bundles/{bundle}/page", send_page),
    Route("/bundles/{bundle}/zip", send_zip),
    Route("/bundles/{bundle}/away", taking_form(put_away, show_releases), methods=["POST"]),
)
