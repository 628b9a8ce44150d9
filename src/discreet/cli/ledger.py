"""``discreet ledger``: whom releases are about, what they have spent, what is left."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.atomic import check_place
from discreet.cli.answers import (
    Columns,
    Limits,
    Reading,
    check_engine,
    open_answers,
    read_votes,
)
from discreet.cli.options import AsJson, Delta, Epsilon, Relation, argument, flag, option
from discreet.cli.output import print_columns, print_json, say
from discreet.cli.release import Delivery, show_release

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.history import History, Standing
    from discreet.privacy.ledger.populations import Populations

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


def declare_population(
    file: LedgerFile,
    name: Annotated[str, argument("NAME", "The population: a new name or a declared one.")],
    *,
    contains: Annotated[str, option("A,B", "Declared populations that are parts of it.")] = "",
    overlaps: Annotated[
        str, option("A,B", "Declared populations that may share persons with it.")
    ] = "",
    disjoint: Annotated[str, option("A,B", "Declared populations that share nobody with it.")] = "",
    correct: Annotated[
        bool, flag("Replace what was declared before about NAME and these.", "--correct")
    ] = False,
) -> None:
    """Declare whom data is about. What is not declared disjoint counts as overlapping."""
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.open(file)
    known = ledger.declare(
        name,
        contains=_split_names(contains),
        overlaps=_split_names(overlaps),
        disjoint=_split_names(disjoint),
        correct=correct,
    )
    history = ledger.history()
    standing = history.standing(name)
    say(f"{name}: {_describe_relations(known, name)}.")
    say(f"Spent on one person of {name}: epsilon {standing.epsilon:.4g}; left {standing.left:.4g}.")
    if disjoint and str(history.relation) != "add-remove":
        say(
            "Disjoint means that nobody is in both and, under replace-one, that whoever replaces a "
            "person is in the same populations."
        )


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _describe_relations(known: Populations, name: str) -> str:
    """Say what is declared about a population, with what follows from it."""
    if name == "everyone":
        return "contains all"
    parts, others = known.parts_of(name), known.apart_from(name)
    said = [f"contains {', '.join(parts)}"] if parts else []
    said += [f"disjoint from {', '.join(others)}"] if others else []
    return "; ".join([*said, "may overlap with all others" if said else "may overlap with all"])


def show_ledger(file: LedgerFile, *, as_json: AsJson = False) -> None:
    """Show what has been spent and what is left. For the steward's eyes."""
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.open(file)
    history = ledger.history()
    standings = history.standings()
    entries = [entry.to_dict() for entry in history.entries]
    if as_json:
        print_json(_ledger_document(history, standings, entries))
        return
    say(f"Ledger {ledger.id}, rule: {ledger.rule}")
    say(f"Limit  epsilon {ledger.limit.epsilon:.4g} at delta {ledger.limit.delta:g}")
    say(f"Spent  {_describe_largest(history, standings[0])}")
    say()
    _print_standings(history.populations, standings)
    say()
    _print_history(entries)
    _print_waiting(ledger, history)


def _ledger_document(
    history: History, standings: list[Standing], entries: list[dict[str, Any]]
) -> dict[str, Any]:
    delta = history.limit.delta
    return {
        "spent": dict(zip(("epsilon", "delta"), history.spent(), strict=True)),
        "limit": {"epsilon": history.limit.epsilon, "delta": delta},
        "largest": {
            "epsilon": standings[0].epsilon,
            "populations": standings[0].together,
            "is_exact": standings[0].is_exact,
        },
        "populations": [
            {
                "population": one.population,
                "spent": one.epsilon,
                "left": one.left,
                "releases": one.releases,
                "contains": history.populations.parts_of(one.population),
                "disjoint": history.populations.apart_from(one.population),
            }
            for one in standings
        ],
        "releases": entries,
    }


def _describe_largest(history: History, standing: Standing) -> str:
    """Say what the most exposed person has spent, and in which populations that person is."""
    bound = "" if standing.is_exact else "at most "
    delta = history.spent()[1]
    whose = f", in {' and '.join(standing.together)}" if standing.together else ""
    return f"{bound}epsilon {standing.epsilon:.4g} at delta {delta:g} on one person{whose}"


def _print_standings(known: Populations, standings: list[Standing]) -> None:
    columns: dict[str, list[Any]] = {
        "population": [one.population for one in standings],
        "spent": [one.epsilon for one in standings],
        "left": [one.left for one in standings],
        "releases": [one.releases for one in standings],
        "declared": [_describe_relations(known, one.population) for one in standings],
    }
    print_columns(columns, [*columns])


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
