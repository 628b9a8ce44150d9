"""Ledgers: what was spent, for whom, what is left; make one, open one, declare whom it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from shlex import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import DiscreetError
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.balance import History
from discreet.privacy.ledger.policy import Approver
from discreet.privacy.ledger.populations import (
    Declaration,
    Populations,
    check_declaration,
    read_declarations,
)
from discreet.privacy.ledger.request import find_public, write_key
from discreet.publishing.delivery import explain_resuming, list_waiting
from discreet.report.spending import (
    describe_spending,
    list_spending_values,
    write_spending_page,
    write_spending_text,
)
from discreet.studio.forms import (
    LIST,
    NUMBER,
    WHOLE,
    check_needed,
    find_path,
    load_fields,
    read_fields,
    taking_form,
    write_fields,
)
from discreet.studio.frame import Same, Secrecy, go, own_page, send_text, session_of, show
from discreet.studio.language import not_found, tell
from discreet.studio.session import StudioSession

#: What can be said about a new ledger.
FIELDS = load_fields("ledger", epsilon=NUMBER, delta=NUMBER, populations=LIST, approvals=WHOLE)

#: Who approves, and a key to sign with.
APPROVER, KEY_FIELDS = load_fields("approver"), load_fields("signing_key")

#: What can be said about a population.
DECLARED = load_fields("population", contains=LIST, disjoint=LIST)

USUAL = {"delta": "1e-6"}


@dataclass(frozen=True)
class ListedLedger:
    """A ledger on the list: what is known of it, or why nothing is."""

    name: str
    path: Path
    ledger: Ledger | None = None
    history: History | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        """What it is called."""
        return self.path.stem


def look_up(name: str, path: Path) -> ListedLedger:
    """Open a ledger, or say why it cannot be opened."""
    try:
        ledger = Ledger.open(path)
        return ListedLedger(name, path, ledger, ledger.history())
    except DiscreetError as error:
        return ListedLedger(name, path, problem=str(error))


def list_ledgers(session: StudioSession) -> list[ListedLedger]:
    """Return all ledgers that this machine knows of."""
    return [look_up(name, path) for name, path in session.list_ledgers().items()]


def show_ledgers(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Show which ledgers there are, and how to make or open one."""
    session = session_of(request)
    values = {
        "problem": problem,
        "listed": list_ledgers(session),
        "place": session.home.ledgers,
        "fields": FIELDS,
        "said": {**write_fields(FIELDS, {}), **USUAL, **(form_values or {})},
        "opened": session.books.paths(),
        "back": own_page((form_values or request.query_params).get("back", "")),
    }
    return show("ledgers.html", values, Secrecy.LEDGER)


def create(request: Request, sent: dict[str, str]) -> Response:
    """Make a ledger in the folder that stays."""
    session = session_of(request)
    path = _create(session, read_fields(FIELDS, sent))
    back = own_page(sent.get("back", ""))
    return go(f"/ledgers/{session.know_ledger(path)}{back and f'?back={back}'}")


def _create(session: StudioSession, keywords: PlainDict) -> Path:
    words = tell("this field is blank, and a ledger needs it.")
    check_needed(FIELDS, ("name", "epsilon", "delta"), keywords, words)
    populations = _declare(keywords.pop("populations", []), apart=keywords.pop("apart", "") == "no")
    if "policy" in keywords:
        keywords["policy"] = find_path(keywords["policy"])
    path = session.home.place_ledger(keywords.pop("name"))
    ledger = Ledger.create(path, **keywords)
    for declaration in populations:
        ledger.declare(declaration.name, disjoint=declaration.disjoint)
    return path


def _declare(names: list[str], *, apart: bool) -> list[Declaration]:
    """Return what is to be declared; refused as a whole before there is a ledger."""
    declarations: list[Declaration] = []
    populations = Populations()
    for name in dict.fromkeys(names):
        declarations.append(Declaration(name, disjoint=populations.names if apart else ()))
        check_declaration(declarations[-1], populations)
        populations = read_declarations(declarations)
    return declarations


def open_path(request: Request, sent: dict[str, str]) -> Response:
    """Open a ledger that lies elsewhere, and remember where."""
    session = session_of(request)
    path = find_path(sent.get("path", ""))
    Ledger.open(path)
    session.books.add(path)
    return go(f"/ledgers/{session.know_ledger(path)}")


def forget(request: Request, sent: dict[str, str]) -> Response:
    """Take a ledger that lies elsewhere off the list."""
    session_of(request).forget_ledger(sent.get("ledger", ""))
    return go("/ledgers")


# -- one ledger ------------------------------------------------------------------------------


def path_of(request: Request) -> Path:
    """Return the file of the ledger that an address names."""
    path = session_of(request).list_ledgers().get(request.path_params["ledger"])
    if path is None:
        raise not_found("There is no such ledger here; the studio was restarted.")
    return path


def show_ledger(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Show what was spent, for whom, and what is left."""
    listed = look_up(request.path_params["ledger"], path_of(request))
    if listed.ledger is None or listed.history is None:
        return show_ledgers(request, listed.problem)
    ledger, path, waiting = listed.ledger, str(listed.path), list_waiting(listed.history)
    spending = describe_spending(ledger, listed.history, tell.language)
    python = f"import discreet\n\nledger = discreet.Ledger.open({path!r})\n"
    python += "print(ledger.spent(), ledger.left())\n"
    values = {
        **list_spending_values(spending),
        "title": listed.title,
        "tell": tell,
        "layout": "studio/frame.html",
        "problem": problem,
        "back": own_page(request.query_params.get("back", "")),
        "listed": listed,
        "policy": [] if ledger.policy is None else ledger.policy.describe(),
        "waiting_for": [(entry, explain_resuming(ledger, entry)) for entry in waiting],
        "fields": DECLARED,
        "board": ledger.board(),
        "approver": APPROVER,
        "key_fields": KEY_FIELDS,
        "said": {**write_fields((*DECLARED, *APPROVER), {}), **(form_values or {})},
        "same": Same(python, f"discreet ledger show {quote(path)}"),
    }
    return show("ledger.html", values, Secrecy.LEDGER)


def declare(request: Request, sent: dict[str, str]) -> Response:
    """Declare a population, or more about one."""
    keywords = read_fields(DECLARED, sent)
    words = tell("this field is blank. Type whom the data is about.")
    check_needed(DECLARED, ("population",), keywords, words)
    Ledger.open(path_of(request)).declare(keywords.pop("population"), **keywords)
    return go(f"/ledgers/{request.path_params['ledger']}")


def enter_approver(request: Request, sent: dict[str, str]) -> Response:
    """Enter somebody who signs releases, while there are fewer than the ledger asks for."""
    words = read_fields(APPROVER, sent)
    check_needed(APPROVER, ("name", "public_key"), words, tell("this field is blank."))
    approver = Approver(words["name"], find_public(words["public_key"]))
    Ledger.open(path_of(request)).change_approvers(approver)
    return go(f"/ledgers/{request.path_params['ledger']}")


def make_key(request: Request, sent: dict[str, str]) -> Response:
    """Make a signing key; its public half stands in the form of an approver then."""
    words = read_fields(KEY_FIELDS, sent)
    public = write_key(find_path(words.get("path", "")), words.get("passphrase"))
    return show_ledger(request, "", {"public_key": public})


#: What a spending report can be written as, by its ending.
REPORTS: Mapping[str, tuple[str, Callable[[PlainMapping], str]]] = {
    "html": ("text/html", write_spending_page),
    "md": ("text/markdown", write_spending_text),
    "json": ("application/json", lambda facts: dumps(facts, indent=2, ensure_ascii=False) + "\n"),
}


def send_report(request: Request) -> Response:
    """Send the spending report, which may be published."""
    kind = request.path_params["kind"]
    if kind not in REPORTS:
        raise not_found("There is no such report.")
    listed = look_up(request.path_params["ledger"], path_of(request))
    if listed.ledger is None or listed.history is None:
        raise HTTPException(400, listed.problem)
    media, write = REPORTS[kind]
    language = "en" if kind == "json" else tell.language  # a program knows one
    spending = describe_spending(listed.ledger, listed.history, language)
    return send_text(write(spending), f"spending.{kind}", media)


ROUTES = (
    Route("/ledgers", show_ledgers),
    Route("/ledgers", taking_form(create, show_ledgers), methods=["POST"]),
    Route("/ledgers/open", taking_form(open_path, show_ledgers), methods=["POST"]),
    Route("/ledgers/forget", taking_form(forget, show_ledgers), methods=["POST"]),
    Route("/ledgers/{ledger}", show_ledger),
    Route("/ledgers/{ledger}", taking_form(declare, show_ledger), methods=["POST"]),
    Route("/ledgers/{ledger}/approver", taking_form(enter_approver, show_ledger), methods=["POST"]),
    Route("/ledgers/{ledger}/key", taking_form(make_key, show_ledger), methods=["POST"]),
    Route("/ledgers/{ledger}/spending.{kind}", send_report),
)
