"""Release: the terms, what they cost and what readers will see, and the one click that spends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, DiscreetError
from discreet.html import HtmlColumn
from discreet.planning.plan import Plan, make_plan, plan, plannable
from discreet.planning.study import Setting
from discreet.privacy.accounting import Neighbours
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.balance import LedgerEntry
from discreet.privacy.ledger.request import as_request
from discreet.privacy.protocol import Order
from discreet.publishing.delivery import find_charged
from discreet.publishing.identity import Identity
from discreet.publishing.verification import read_published
from discreet.report.statement import list_nist_points, make_statement, name_population
from discreet.studio.forms import (
    Problem,
    Upload,
    end_sentence,
    find_path,
    read_number,
    receive_form,
    refuse_fields,
    taking_form,
    write_fields,
)
from discreet.studio.frame import (
    Same,
    Secrecy,
    go,
    send_table,
    send_text,
    session_of,
    show,
    show_job,
    work_of,
    write_call,
    write_same,
)
from discreet.studio.jobs import JobState
from discreet.studio.language import not_found, refuse, say_plainly, tell
from discreet.studio.pages.data import find_look
from discreet.studio.pages.ledgers import ListedLedger, list_ledgers, look_up
from discreet.studio.releasing import (
    ABOUT,
    ACCOUNT,
    ASKED,
    CORRECTION,
    COUNTED,
    EDITION,
    FIELDS,
    FILE,
    FIXED,
    KIND,
    NOT_RELEASED,
    PERSON_FIELD,
    PROTECTION,
    STEPS,
    STUDY,
    WRITTEN,
    ListedItems,
    ReleaseForm,
    check_columns,
    finish,
    list_words,
    make,
    read_form,
    read_listed,
    show_words,
    write_form,
)
from discreet.studio.session import StudioSession, Ticket, Work
from discreet.text import name_some, show_predicted_share
from discreet.words import mark, speak

ITEMS_FILE = "items.csv"
#: What the form holds beside its fields.
BESIDE = {"account": "", "items_path": "", "kept": "", "kind": "right", "edition": "new"}
USUAL = {"delta": "1e-6", "neighbours": "replace-one"}
SECTIONS = (
    (mark("How it protects"), PROTECTION),
    (mark("What is public about the study"), STUDY),
    (mark("What readers call it"), ABOUT),
)


# -- the terms -------------------------------------------------------------------------------


def show_form(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Ask for the terms of a release."""
    session, work = session_of(request), work_of(request)
    ledgers = list_ledgers(session)
    accounts = _list_accounts(ledgers)
    changed = form_values or _say_before(session, work, request.query_params)
    view = find_look(work)
    found = show_words(view.shown if view else work.options)
    values = {
        "problem": problem,
        "seen": session.find_seen(work),
        "was_refused": session.was_refused(work),
        "first": (KIND, EDITION),
        "person": PERSON_FIELD,
        "written": WRITTEN,
        "found": dict.fromkeys((one.name for one in (*FIELDS, *FILE)), "") | found,
        "sections": SECTIONS,
        "marks": {name: kind for kind, names in ASKED.items() for name in names},
        "account": replace(ACCOUNT, choices={name: one[2] for name, one in accounts.items()}),
        "said": {**write_fields((*FIELDS, *FILE), {}), **BESIDE, **changed},
        "kept": session.lists.get(changed.get("kept", "")),
    }
    return show("release.html", values, Secrecy.OWN, work)


def _list_accounts(ledgers: list[ListedLedger]) -> dict[str, tuple[Path, str, str]]:
    """Return ledgers with each population, by what stands for them in the form, and in words."""
    accounts = {}
    for listed in ledgers:
        if listed.ledger is None or listed.history is None:
            continue
        for name in (EVERYONE, *listed.history.populations.names):
            left, limit = listed.history.left(name)[0], listed.ledger.limit.epsilon
            amount = {"left": f"{left:.3g}", "limit": f"{limit:g}"}
            words = tell("(epsilon {left} left of {limit})", **amount)
            whom = name_population(name, tell)
            account = listed.path, name, f"{listed.title}: {whom} {words}"
            accounts[f"{listed.name}/{name}"] = account
    return accounts


def _say_before(session: StudioSession, work: Work, query: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the form begins with: a ticket to be changed, a draft, or what a plan says."""
    if corrected := session.home.list_releases().get(query.get("correct", "")):
        return {**USUAL, **_correct(session, read_published(corrected).record)}
    ticket = session.tickets.get(query.get("from", ""))
    if ticket is None or ticket.terms is None:
        planned = {part.name: query[part.name] for part in FIELDS if part.name in query}
        return {**USUAL, **session.drafts.get(work.name, {}), **planned}
    terms = ticket.terms
    return {
        **write_form(terms),
        "account": f"{session.know_ledger(terms.ledger)}/{terms.spec.identity.population}",
        "kept": session.keep_list(ListedItems(terms.items, terms.listed_in)),
    }


def _correct(session: StudioSession, record: PlainMapping) -> dict[str, str]:
    """Return what the form of a correction begins with: all that the release says of itself."""
    identity, guarantee = record.get("identity", {}), record["guarantee"]
    version = str(identity.get("version", ""))
    steps = dict(zip(record["items"], record["steps"], strict=True))
    items = steps if max(steps.values()) > 1 else [*steps]
    design = record["design"]
    stated = {
        **record.get("reading", {}),
        **{name: identity.get(name, "") for name in ("title", "language")},
        "version": str(int(version) + 1) if version.isdigit() else "",
        "supersedes": version,
        **{name: guarantee[name] for name in ("epsilon", "delta", "neighbours")},
        "persons": record["persons"] or "",
        "number": FIXED if record["number_fixed"] else COUNTED,
        "max_answers": record["max_answers"] if record["max_answers"] < len(steps) else "",
        "design": "" if design == "unknown" else design,
        "mechanism": "" if record["chosen_by"] == "auto" else record["mechanism"],
        "lowest": record["lowest"] or "",
    }
    fields = (*FIELDS, *FILE)
    return {
        **{one.name: one.write(stated[one.name]) for one in fields if stated.get(one.name)},
        "kind": STEPS if isinstance(items, dict) else "right",
        "edition": CORRECTION,
        "kept": session.keep_list(ListedItems(items, identity.get("title", ""))),
        "account": next(
            (
                f"{one.name}/{record['account']['population']}"
                for one in list_ledgers(session)
                if one.ledger and one.ledger.id == guarantee.get("ledger")
            ),
            "",
        ),
    }


async def take_terms(request: Request) -> Response:
    """Take the terms, and lead on to what they cost."""
    session = session_of(request)
    try:
        sent = await receive_form(request, session.folder, session.most_bytes)
    except BadUsage as error:
        return show_form(request, Problem.of(error))
    return await run_in_threadpool(_take, request, sent)


def _take(request: Request, sent: Upload) -> Response:
    session, work = session_of(request), work_of(request)
    form_values = dict(sent.fields)
    ledgers = list_ledgers(session)
    accounts = {name: account[:2] for name, account in _list_accounts(ledgers).items()}
    session.drafts[work.name] = form_values
    try:
        listed = _find_items(session, work, sent)
        form_values["kept"] = session.keep_list(listed)
        words = list_words(work.options, form_values)
        terms = read_form(form_values, listed, accounts, words)
        check_columns(work.source, terms)
        _check_correction(session, terms)
        terms.preview()
    except DiscreetError as error:
        return show_form(request, Problem.of(error), form_values)
    name = Ledger.name_reservation()
    folder = session.home.place_release(terms.spec.identity.title, name)
    session.note_seen(Ticket(name, work, terms, terms.ledger, folder))
    return go(f"/releases/{name}")


def _find_items(session: StudioSession, work: Work, sent: Upload) -> ListedItems:
    """Return the list that was brought: as a file, by its path, or the time before."""
    if sent.file is not None:
        return read_listed(sent.file, sent.file.name, work.source)
    if typed := sent.fields.get("items_path", "").strip():
        path = find_path(typed)
        if not path.is_file():
            words = tell("there is no such file. Check where the list of items is.")
            raise refuse_fields({"items_path": f"{path}: {words}"})
        return read_listed(path, str(path), work.source)
    listed_items = session.lists.get(sent.fields.get("kept", ""))
    if listed_items is None:
        words = tell("There is no list of items. Choose a file with one item in each line.")
        raise refuse_fields({"file": words})
    return listed_items


def list_versions(session: StudioSession, title: str) -> list[Identity]:
    """Return who the releases of a title are, of all ledgers and of those that lie here."""
    orders = (
        (entry.order or {}).get("about", {}).get("identity", {})
        for one in list_ledgers(session)
        for entry in (one.history.entries if one.history else ())
    )
    known = [Identity(**identity) for identity in orders if identity.get("title") == title]
    return [*{one.version: one for one in known}.values()]


def say_versions(identity: Identity, versions: Iterable[Identity]) -> str:
    """Say which version a release is, which one it replaces, and which one replaces it."""
    words = [tell("version {version}", version=identity.version)] if identity.version else []
    if identity.supersedes:
        words.append(tell("takes the place of version {version}", version=identity.supersedes))
    later = [
        one.version for one in versions if one.supersedes and one.supersedes == identity.version
    ]
    if later:
        words.append(tell("replaced by version {version}", version=later[-1]))
    return ", ".join(words)


def _check_correction(session: StudioSession, terms: ReleaseForm) -> None:
    """Refuse a correction of a version that there is not."""
    identity = terms.spec.identity
    if not identity.supersedes:
        return
    versions = [one.version for one in list_versions(session, identity.title)]
    if identity.supersedes not in versions:
        words = tell(
            "There is no version “{version}” of “{title}” in the ledgers here. There are: "
            "{versions}.",
            version=identity.supersedes,
            title=identity.title,
            versions=", ".join(versions) or tell("none"),
        )
        raise refuse_fields({"supersedes": words})


# -- a ticket: what it costs, and making it --------------------------------------------------


def ticket_of(request: Request) -> Ticket:
    """Return the ticket that an address names."""
    ticket = session_of(request).tickets.get(request.path_params["ticket"])
    if ticket is None:
        raise not_found(
            "There is no such release here; the studio was restarted. The page Releases has "
            "all that was paid for."
        )
    return ticket


def show_ticket(request: Request) -> Response:
    """Show what a release will cost and say, then its progress, then lead to it."""
    ticket = ticket_of(request)
    job = ticket.job
    if job is None:
        return _show_review(request, ticket, "")
    if job.state is JobState.DONE:
        return go(f"/bundles/{ticket.place.name}")
    if job.state is JobState.RUNNING:
        return _show_page("ticket.html", ticket, {**show_job(job), "paid": False})
    # Show a release that stopped: paid for, or to be begun again.
    words = tell("It was cancelled.")
    if ticket.job is not None and ticket.job.state is JobState.FAILED:
        words = end_sentence(ticket.job.failure)
    if ticket.work is not None:
        words = say_plainly(words.replace(str(ticket.work.source), ticket.work.shown))
    try:
        paid = _is_paid(ticket)
    except DiscreetError as error:
        values = {"failure": f"{words} {error}", "paid": False}
        return _show_page("ticket.html", ticket, values, 400)
    if paid:
        return _show_page("ticket.html", ticket, {"failure": words, "paid": True})
    return _show_review(request, ticket, f"{words} {tell('Nothing was spent.')}")


def _is_paid(ticket: Ticket) -> bool:
    """Say whether the ledger was charged, so that nothing more can be; the ledger must open."""
    return ticket.terms is None or bool(find_charged(Ledger.open(ticket.ledger), ticket.name))


def _show_page(template: str, ticket: Ticket, values: PlainMapping, status: int = 0) -> Response:
    tells = values.get("failure") or values.get("problem")
    values = {"ticket": ticket, "home": ticket.place.parent, **values}
    secrecy = Secrecy.CONFIDENTIAL if tells else Secrecy.OWN
    return show(template, values, secrecy, ticket.work, status=status)


def _show_review(request: Request, ticket: Ticket, problem: str) -> Response:
    session = session_of(request)
    ticket = session.note_seen(ticket)
    if ticket.terms is None or ticket.work is None:
        raise not_found("There is nothing to review here.")
    try:
        values = {"refused": False, **_review(ticket.terms)}
    except DiscreetError as error:
        values, problem = {"refused": True}, problem or str(error)
    work = session.works.get(ticket.work.name, ticket.work)
    values |= {"seen": session.find_seen(work), "was_refused": session.was_refused(work)}
    ledger = None if ticket.terms.request else look_up("", ticket.ledger).ledger
    approvals = ledger.approvals if ledger else 0
    values |= {
        "approvals": approvals,
        "problem": problem,
        "twin": session.find_same(ticket),
        "terms": ticket.terms,
    }
    return _show_page("review.html", ticket, {**values, "same": write_release(ticket)})


def _review(terms: ReleaseForm) -> PlainDict:
    """Return what a release will cost and say."""
    preview, population = terms.preview(), terms.spec.identity.population
    study, names = predict(terms, preview.order), preview.order.public.items
    forecast = (
        {}
        if study is None
        else {
            "costs": list_costs(study),
            "share": show_predicted_share(study.order_probability),
            "plan": f"/plan?{urlencode(_list_sizes(study))}",
        }
    )
    return forecast | {
        "study": study,
        "budget": terms.spec.budget,
        "before": Ledger.open(terms.ledger).history().left(population)[0],
        "preview": preview,
        "account": f"{terms.ledger.stem}, {name_population(population, tell)}",
        "names": name_some(names, 12, tell),
        "reading": _list_reading(terms),
        "alike": _list_alike(terms, preview.order),
        "statement": make_statement(preview.record),
        "language": speak(preview.record).language,
        "points": list_nist_points(preview.record),
    }


def _list_reading(terms: ReleaseForm) -> dict[str, str]:
    """Return all that will be used to read the answers, by the labels of the form."""
    public = terms.spec.public
    lowest = {"lowest": public.lowest} if public.has_steps else {}
    shown = show_words({**terms.spec.reading, **lowest})
    return {one.label: shown[one.name] for one in (*FILE, *FIELDS) if one.name in shown}


#: By these a release of an earlier day is recognised: public parameters, and never the answers.
ALIKE = ("name", "items", "steps", "max_answers", "lowest", "model")


def _list_alike(terms: ReleaseForm, order: Order) -> list[LedgerEntry]:
    """Return what the ledger was charged for before on the same terms; one may be forgotten."""
    order_fields, spend = order.to_dict(), order.calibration.spend
    population = terms.spec.identity.population
    return [
        entry
        for entry in Ledger.open(terms.ledger).releases()
        if entry.order is not None
        and (entry.population, entry.spend.epsilon) == (population, spend.epsilon)
        and all(entry.order.get(name) == order_fields[name] for name in ALIKE)
    ]


def _list_sizes(study: Plan) -> PlainDict:
    """Return what the page Plan is told to begin where this release is."""
    sizes = {name: getattr(study, name) for name in ("persons", "items", "answers", "epsilon")}
    sizes |= {"delta": study.delta, "mechanism": study.mechanism}
    if study.neighbours is Neighbours.ADD_REMOVE:
        sizes["neighbours"] = str(study.neighbours)
    return sizes | ({"steps": study.steps} if study.steps > 1 else {})


def start_release(session: StudioSession, ticket: Ticket) -> Any:
    """Begin the job of a ticket."""
    arguments = {"reservation": ticket.name, "ledger": ticket.ledger, "out": ticket.place}
    work, terms = ticket.work, ticket.terms
    stated = terms.spec.reading if terms else work.options if work else {}
    words = {name: value for name, value in stated.items() if name not in NOT_RELEASED}
    arguments |= {"source": work and work.source, "options": words}
    if terms is None:
        title = mark("Fetching a release that was paid for")
        return session.jobs.start(title, finish, **arguments)
    return session.jobs.start(mark("Making the release"), make, **arguments, terms=terms)


def confirm(request: Request, sent: dict[str, str]) -> Response:
    """Make the release, once, if somebody typed what it costs."""
    session, ticket = session_of(request), ticket_of(request)
    if ticket.is_used:
        return go(f"/releases/{ticket.name}")
    if ticket.terms and not _is_paid(ticket):
        _check_typed(sent.get("epsilon", ""), ticket.terms.spec.budget.epsilon)
        signed = ticket.terms.request
        Ledger.open(ticket.ledger).check_release(as_request(signed) if signed else None)
    session.note_seen(ticket)
    used = session.begin(ticket.name, partial(start_release, session))
    return go(f"/releases/{used.name}")


def show_unspent(request: Request, problem: str, _: Mapping[str, str]) -> Response:
    """Show what a release will cost again, and why it was not made."""
    words = f"{end_sentence(problem)} {tell('Nothing was spent.')}"
    return _show_review(request, ticket_of(request), words)


def _check_typed(text: str, epsilon: float) -> None:
    """Refuse to spend where somebody has not typed what it costs."""
    typed = read_number(text.strip() or "nothing")
    if typed != epsilon:
        numbers = {"typed": f"{typed:g}", "epsilon": f"{epsilon:g}"}
        raise refuse("You typed {typed}, and this release has epsilon {epsilon}.", **numbers)


# -- the same elsewhere ----------------------------------------------------------------------

#: What the command line calls a part of who a release is.
CALLED = {"version": "edition", "reason": "because"}


def write_release(ticket: Ticket) -> Same | None:
    """Return what does the same as a release; nothing of one that was only fetched."""
    work, terms = ticket.work, ticket.terms
    if work is None or terms is None:
        return None
    words, budget = dict(terms.spec.reading), terms.spec.budget
    keywords = terms.list_keywords()
    del keywords["items"]
    about = {CALLED.get(k, k): v for k, v in keywords.pop("about", {}).items()}
    relation = {"neighbours": str(budget.neighbours)}
    public = {"epsilon": budget.epsilon, "delta": budget.delta, **relation}
    destination = {"ledger": str(terms.ledger), "out": ticket.place.name}
    more = {"items": ITEMS_FILE, **public, **keywords, **about, **destination}
    view = find_look(work)
    command = write_same("release", work.shown, words, view.items if view else [], more=more)
    python = _write_python(work, terms, {**words, **destination})
    typed = f"{command.command} --looked" if terms.spec.identity.looked else command.command
    return replace(command, command=typed, python=python)


def _write_python(work: Work, terms: ReleaseForm, more_keywords: PlainMapping) -> str:
    budget = terms.spec.budget
    numbers = (budget.epsilon, budget.delta, str(budget.neighbours))
    flag = {"looked": True} if terms.spec.identity.looked else {}
    call = write_call(
        "discreet.release",
        repr(work.shown),
        write_call("discreet.Budget", *map(repr, numbers)),
        **{**terms.list_keywords(), **more_keywords, **flag},
    )
    return f"import discreet\n\npublished = {call}\nprint(published.guarantee.summary)\n"


def send_items(request: Request) -> Response:
    """Send the list of items as the file that the command line takes."""
    terms = ticket_of(request).terms
    if terms is None:
        raise not_found("There is no list here.")
    if isinstance(terms.items, Mapping):
        return send_table([("item", "steps"), *terms.items.items()], ITEMS_FILE)
    return send_text("".join(f"{name}\n" for name in terms.items), ITEMS_FILE)


OTHER = {
    Neighbours.REPLACE_ONE: (Neighbours.ADD_REMOVE, mark("hide whether somebody took part")),
    Neighbours.ADD_REMOVE: (Neighbours.REPLACE_ONE, mark("hide what somebody answered")),
}


def predict(terms: ReleaseForm, order: Order) -> Plan | None:
    """Return the forecast for a release; ``None`` where its mechanism has none."""
    public, steps = order.public, max(order.public.steps)
    if order.name not in plannable(public.neighbours, steps):
        return None
    try:
        return plan(
            terms.expected,
            len(public.items),
            public.max_answers,
            terms.spec.budget.epsilon,
            terms.spec.budget.delta,
            steps=steps,
            mechanism=order.name,  # type: ignore[arg-type]
            neighbours=str(public.neighbours),  # type: ignore[arg-type]
        )
    except DiscreetError:
        return None


def list_costs(study: Plan) -> list[HtmlColumn]:
    """Return predicted errors: of the release, and of what it would be with one thing changed."""
    rows = [(tell("this release"), study.epsilon, study.rmse)]
    for name, setting in _vary(study.setting):
        try:
            rows.append((name, setting.epsilon, make_plan(setting).rmse))
        except DiscreetError:
            continue  # what cannot be had is not offered
    return [
        HtmlColumn(tell("what"), [row[0] for row in rows]),
        HtmlColumn(tell("epsilon"), [f"{row[1]:g}" for row in rows]),
        HtmlColumn(tell("typical error, logits"), [row[2] for row in rows]),
    ]


def _vary(setting: Setting) -> Iterator[tuple[str, Setting]]:
    yield tell("half of the epsilon"), replace(setting, epsilon=setting.epsilon / 2)
    yield tell("twice the epsilon"), replace(setting, epsilon=setting.epsilon * 2)
    if setting.answers >= 4:
        cap = setting.answers // 2
        words = tell("at most {cap} answers of each person", cap=cap)
        yield words, replace(setting, answers=cap)
    yield tell("twice as many persons"), replace(setting, persons=2 * setting.persons)
    relation, words = OTHER[setting.neighbours]
    yield tell.term(words), replace(setting, neighbours=relation)


ROUTES = (
    Route("/release/{work}", show_form),
    Route("/release/{work}", take_terms, methods=["POST"]),
    Route("/releases/{ticket}", show_ticket),
    Route("/releases/{ticket}", taking_form(confirm, show_unspent), methods=["POST"]),
    Route(f"/releases/{{ticket}}/{ITEMS_FILE}", send_items),
)
