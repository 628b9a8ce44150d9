"""``discreet release``, ``verify`` and ``ledger``: what is published, and what that has spent.

What every release is asked for, of answers or of comparisons, stands in two groups of options.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.atomic import check_place
from discreet.cli.answers import (
    AnswersFile,
    Columns,
    Limits,
    Reading,
    check_engine,
    open_answers,
    read_votes,
)
from discreet.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Force,
    Neighbouring,
    Relation,
    argument,
    flag,
    option,
)
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.results.kinds import find_kind
from discreet.types import Design

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.history import History
    from discreet.publishing.bundle import Published


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is released, and what it may cost."""

    items: Annotated[
        Path,
        option(
            "LIST",
            "A file with one item per line, or a table with the columns item and steps, fixed "
            "without looking at the data.",
        ),
    ]
    epsilon: Epsilon
    delta: Delta = 1e-6
    ledger: Annotated[Path, option("FILE", "The ledger to charge (see `discreet ledger create`).")]
    mechanism: Annotated[
        str, option("NAME", "auto (from the list and the cap), or one of those below.")
    ] = "auto"
    neighbours: Neighbouring = "replace-one"
    population: Annotated[
        str,
        option(
            "NAME",
            "Declares that these persons are in no other named population of the ledger; "
            "'everyone' counts against every population, and every population against it.",
        ),
    ] = "everyone"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Where a release goes, and how it is shown."""

    out: Annotated[Path, option("DIR", "The new folder to publish.")]
    force: Force = False
    as_json: AsJson = False


def settle(terms: Terms, delivery: Delivery, kind: str = "answers") -> dict[str, Any]:
    """Refuse what can be refused before the data is read; return what a release takes."""
    check_place(delivery.out, force=delivery.force)
    from discreet.privacy.accounting import Budget
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.mechanisms import check_mechanism
    from discreet.tables.lists import read_items, read_list

    listed = read_items(terms.items) if kind == "answers" else read_list(terms.items)
    budget = Budget(terms.epsilon, terms.delta, terms.neighbours)
    check_mechanism(terms.mechanism, kind)
    return {
        "items": listed,
        "budget": budget,
        "mechanism": terms.mechanism,
        "ledger": Ledger.open(terms.ledger),
        "population": terms.population,
        "out": delivery.out,
        "force": delivery.force,
    }


def release(
    file: AnswersFile,
    *,
    max_answers: Annotated[
        int | None,
        option("Q", "Use at most Q answers of each person. Default: as many as there are items."),
    ] = None,
    persons: Annotated[
        int | None,
        option(
            "N", "The public number of persons, fixed in advance. Default: counted in the data."
        ),
    ] = None,
    forms: Annotated[
        Path | None,
        option("FILE", "A table with the columns form and item: each person was given one form."),
    ] = None,
    design: Annotated[
        Design,
        flag("Who answered what. complete: everybody all items of a form. random: a part that "
             "does not depend on ability."),
    ] = "unknown",
    terms: Terms,
    delivery: Delivery,
    limits: Limits,
    reading: Reading,
) -> None:  # fmt: skip
    """Release item difficulties with a privacy guarantee. Charges the ledger first."""
    check_engine(limits)
    settled = settle(terms, delivery)
    from discreet.publishing.listing import make_listing
    from discreet.publishing.release import release as publish
    from discreet.tables.lists import read_forms

    told = {
        "items": settled.pop("items"),
        "forms": None if forms is None else read_forms(forms),
        "design": design,
        "lowest": reading.lowest or 0,
        "model": reading.model,
    }
    listing, said = make_listing(**told), replace(reading, lowest=None, model="auto")
    with open_answers(file, said, limits, "Releasing", listing.read) as answers:
        released = publish(answers, max_answers=max_answers, persons=persons, **told, **settled)
    show_release(released, delivery)


def show_release(released: Published, delivery: Delivery) -> None:
    """Print a release that was written, and say where."""
    note(released.record["choice"])
    if delivery.as_json:
        print_json(_release_document(released))
    else:
        print_release(released)
    note(f"Wrote {delivery.out} (may be published)")


def _release_document(released: Published) -> dict[str, Any]:
    guarantee = released.guarantee
    return {
        "mechanism": guarantee.mechanism,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "rho": guarantee.rho,
        "neighbours": str(guarantee.neighbours),
        "items": list_rows(_columns(released)),
    }


def print_release(released: Published) -> None:
    """Print the guarantee and the item table."""
    say(f"{released.guarantee.mechanism}: {released.guarantee.summary}")
    say()
    columns = _columns(released)
    print_columns(columns, [*columns])


def _columns(released: Published) -> dict[str, list[Any]]:
    """Return the numbers of each item, but for its status, which is the same for all."""
    columns = released.result.to_dict()
    return {name: columns[name] for name in find_kind(released.record).columns[:-1]}


def verify(bundle: Annotated[Path, argument("DIR", "What `release` wrote.")]) -> None:
    """Say whether a release is whole: nothing missing, nothing changed."""
    from discreet.publishing.verification import NO_CHECKSUMS, check_bundle

    files = check_bundle(bundle).get("files")
    if files is None:
        say(f"{bundle}: {NO_CHECKSUMS}.")
    else:
        say(f"{bundle} is whole: {len(files) + 1} files are as they were written.")


LedgerFile = Annotated[Path, argument("FILE", "The ledger.")]


def create_ledger(
    file: Annotated[Path, argument("FILE", "The new ledger.")],
    *,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    neighbours: Annotated[
        Relation | None,
        flag("The neighbouring relation that every release must use. Default: the first one's."),
    ] = None,
) -> None:
    """Make a ledger with a total limit. All releases about one population share it."""
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.create(file, epsilon, delta, neighbours=neighbours)
    say(
        f"Made {file} with a limit of epsilon {ledger.limit.epsilon:g} at delta "
        f"{ledger.limit.delta:g}. Keep it safe: it is the only record of what is spent."
    )


def show_ledger(file: LedgerFile, *, as_json: AsJson = False) -> None:
    """Show what has been spent and what is left. For the steward's eyes."""
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.open(file)
    history = ledger.history()
    epsilon, delta = history.spent()
    entries = [entry.to_dict() for entry in history.entries]
    if as_json:
        limit = {"epsilon": history.limit.epsilon, "delta": history.limit.delta}
        spent = {"epsilon": epsilon, "delta": delta}
        print_json({"spent": spent, "limit": limit, "releases": entries})
        return
    say(f"Ledger {ledger.id}, rule: {ledger.rule}")
    say(f"Limit  epsilon {ledger.limit.epsilon:.4g} at delta {ledger.limit.delta:g}")
    say(f"Spent  epsilon {epsilon:.4g} at delta {delta:g}")
    for population in history.populations:
        about = "" if len(history.populations) == 1 else f" about {population!r}"
        say(f"Left   epsilon {history.left(population)[0]:.4g} for one more release{about}")
    say()
    _print_history(entries)
    _print_waiting(ledger, history)


def _print_history(entries: list[dict[str, Any]]) -> None:
    if not entries:
        say("No release yet.")
        return
    columns = {name: [entry[name] for entry in entries] for name in entries[0]}
    columns["finished"] = ["yes" if done else "no" for done in columns["completed_at"]]
    columns["delta"] = [f"{value:g}" for value in columns["delta"]]
    names = ("number", "reserved_at", "finished", "mechanism", "epsilon", "delta", "neighbours")
    print_columns(columns, (*names, "population", "description"))


def _print_waiting(ledger: Ledger, history: History) -> None:
    """Name the releases that were paid for and have no bundle, and say how to get them."""
    from discreet.privacy.ledger.file import find_vault
    from discreet.publishing.delivery import explain_resuming

    for entry in history.entries:
        waits = find_vault(ledger.path, entry.reservation).exists()
        if entry.order is not None and (waits or entry.completed_at is None):
            say()
            say(f"Release {entry.number} has no bundle yet. {explain_resuming(ledger, entry)}")


def resume(
    file: LedgerFile,
    release: Annotated[
        str, argument("ID", "The release: its number in `ledger show`, or its reservation.")
    ],
    *,
    answers: Annotated[
        str | None,
        option(
            "FILE",
            "The same answers again, where the release stopped before its values were stored.",
        ),
    ] = None,
    delivery: Delivery,
    limits: Limits,
    columns: Columns,
    reading: Reading,
) -> None:
    """Write a release that was paid for and did not arrive. Charges nothing."""
    check_place(delivery.out, force=delivery.force)
    check_engine(limits)
    from discreet.privacy.ledger import Ledger
    from discreet.publishing.delivery import read_order, resume_release
    from discreet.publishing.listing import list_public

    book = Ledger.open(file)
    order = read_order(book, book.find(release))
    opened: AbstractContextManager[Any] = nullcontext()
    if answers is not None and order.kind == "comparisons":
        opened = nullcontext(read_votes(answers, columns))
    elif answers is not None:
        told = list_public(order.public)
        opened = open_answers(answers, reading, limits, "Releasing", told.read)
    with opened as data:
        released = resume_release(book, release, data, out=delivery.out, force=delivery.force)
    show_release(released, delivery)
