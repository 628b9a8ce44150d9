"""Requests: releases that colleagues have to sign. Propose one, show all of it, sign, deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import Route

from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.request import Request, approve, make_fingerprint
from discreet.publishing.delivery import propose_spec
from discreet.publishing.requests import describe_request
from discreet.publishing.spec import ReleaseSpec
from discreet.studio.forms import find_path, load_fields, read_fields, taking_form, write_fields
from discreet.studio.frame import Secrecy, go, send_text, session_of, show
from discreet.studio.language import not_found, refuse
from discreet.studio.pages.ledgers import ListedLedger, list_ledgers
from discreet.studio.pages.release import show_unspent, ticket_of
from discreet.studio.releasing import ReleaseForm
from discreet.studio.session import StudioSession, Ticket
from discreet.tables.paths import find_files

SIGNING = load_fields("signing")
#: Persons for whom the cost of a signed release is predicted, where their number is counted.
EXPECTED = 1000


@dataclass(frozen=True)
class Proposed:
    """A request that lies here, and its ledger if that is here too."""

    name: str
    path: Path
    request: Request
    listed: ListedLedger | None

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that it is for, where it is known here."""
        return self.listed.ledger if self.listed else None

    @property
    def title(self) -> str:
        """What the release is called."""
        identity = self.request.body.get("about", {}).get("identity", {})
        return str(identity.get("title") or self.name)

    @property
    def signers(self) -> list[str]:
        """Who has signed it: approvers by name, others by their keys."""
        approvers = self.ledger.board().approvers if self.ledger else ()
        name_of = {one.public_key: one.name for one in approvers}
        keys = [one.public_key for one in self.request.signatures]
        return [name_of.get(key) or make_fingerprint(key) for key in keys]

    @property
    def needed(self) -> int:
        """How many signatures are missing still."""
        approvals = self.ledger.approvals if self.ledger else 0
        return max(0, approvals - len(self.request.signatures))

    @property
    def is_done(self) -> bool:
        """Whether it was carried out."""
        used = self.ledger.board().used if self.ledger else ()
        return self.request.body["nonce"] in used


def list_proposed(session: StudioSession) -> list[Proposed]:
    """Return the requests that lie here."""
    ledgers = {one.ledger.id: one for one in list_ledgers(session) if one.ledger}
    requests = {path: Request.load(path) for path in session.home.list_requests().values()}
    return [
        Proposed(path.stem, path, request, ledgers.get(request.body["ledger"]))
        for path, request in requests.items()
        if request.body["purpose"] == "release"
    ]


def proposed_of(request: WebRequest) -> Proposed:
    """Return the request that an address names."""
    proposed = {one.name: one for one in list_proposed(session_of(request))}
    if request.path_params["name"] not in proposed:
        raise not_found("There is no such request here.")
    return proposed[request.path_params["name"]]


def propose(request: WebRequest, _: Mapping[str, str]) -> Response:
    """Write down what shall be released, for others to sign; nothing is spent."""
    terms = ticket_of(request).terms
    if terms is None:
        raise not_found("There is nothing to review here.")
    name = session_of(request).home.keep_request(propose_spec(terms.spec, terms.ledger))
    return go(f"/requests/{name}")


def show_request(
    request: WebRequest, problem: str = "", sent: Mapping[str, str] | None = None
) -> Response:
    """Show everything that is signed, who has signed, and what comes next."""
    proposed = proposed_of(request)
    works = [*session_of(request).works.values()]
    values = {
        "problem": problem,
        "proposed": proposed,
        "told": describe_request(proposed.request),
        "fields": SIGNING,
        "said": {**write_fields(SIGNING, {}), **(sent or {}), "passphrase": ""},
        "source": str(works[-1].source) if works else "",
    }
    return show("request.html", values, Secrecy.OWN)


def sign(request: WebRequest, sent: Mapping[str, str]) -> Response:
    """Sign a request with a key of one's own."""
    proposed, words = proposed_of(request), read_fields(SIGNING, sent)
    approve(proposed.path, find_path(words.get("key", "")), passphrase=words.get("passphrase"))
    return go(f"/requests/{proposed.name}")


def deliver(request: WebRequest, sent: Mapping[str, str]) -> Response:
    """Lead to the release that was signed; it is spent there."""
    session, proposed = session_of(request), proposed_of(request)
    if proposed.listed is None:
        raise refuse("The ledger of this request is not here. Open it on the page Ledgers.")
    source, spec = find_path(sent.get("path", "")), ReleaseSpec.from_dict(proposed.request.body)
    find_files(source)
    same = (one for one in session.works.values() if one.source == source)
    work = next(same, None) or session.open(source)
    expected = spec.public.persons or EXPECTED
    terms = ReleaseForm(spec, proposed.listed.path, expected, proposed.name, proposed.path)
    name = Ledger.name_reservation()
    folder = session.home.place_release(spec.identity.title, name)
    session.note_seen(Ticket(name, work, terms, terms.ledger, folder))
    return go(f"/releases/{name}")


def send_request(request: WebRequest) -> Response:
    """Send a request, to be handed to another approver."""
    proposed = proposed_of(request)
    text = proposed.path.read_text("utf-8")
    return send_text(text, f"request-{proposed.name}.json", "application/json")


ROUTES = (
    Route("/releases/{ticket}/propose", taking_form(propose, show_unspent), methods=["POST"]),
    Route("/requests/{name}", show_request),
    Route("/requests/{name}/sign", taking_form(sign, show_request), methods=["POST"]),
    Route("/requests/{name}/deliver", taking_form(deliver, show_request), methods=["POST"]),
    Route("/requests/{name}/request.json", send_request),
)
