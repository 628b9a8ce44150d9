"""``discreet ledger``: a steward's limit, and what has been spent of it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.answers import check_engine, open_answers
from discreet.cli.compare import ColumnNames, Columns, read_votes
from discreet.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Force,
    Limits,
    Reading,
    Relation,
    Shared,
    add_family,
)
from discreet.cli.output import Column, print_json, print_table, say
from discreet.cli.release import Bundle, show_release
from discreet.place import check_place

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Ledger
    from discreet.privacy.ledger.history import History


LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]
NewLedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="The new ledger.")]
ReleaseName = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The release: its number in `ledger show`, or its reservation."
    ),
]
AnswersAgain = Annotated[
    str | None,
    typer.Option(
        "--answers",
        metavar="FILE",
        help="The same answers again, where the release stopped before its values were stored.",
    ),
]
FixedRelation = Annotated[
    Relation | None,
    typer.Option(
        help="The neighbouring relation that every release must use. Default: the first one's."
    ),
]


def create(
    file: NewLedgerFile,
    *,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    neighbours: FixedRelation = None,
    shared: Shared,
) -> None:
    """Make a ledger with a total limit. All releases about one population share it."""
    del shared
    from discreet.privacy.ledger.book import Ledger

    ledger = Ledger.create(file, epsilon, delta, neighbours=neighbours)
    say(
        f"Made {file} with a limit of epsilon {ledger.limit.epsilon:g} at delta "
        f"{ledger.limit.delta:g}. Keep it safe: it is the only record of what is spent."
    )


def show(file: LedgerFile, *, as_json: AsJson = False, shared: Shared) -> None:
    """Show what has been spent and what is left. For the steward's eyes."""
    del shared
    from discreet.privacy.ledger.book import Ledger

    ledger = Ledger.open(file)
    history = ledger.history()
    if as_json:
        print_json(_document(history))
        return
    epsilon, delta = history.spent()
    say(f"Ledger {ledger.id}, rule: {ledger.rule}")
    say(f"Limit  epsilon {ledger.limit.epsilon:.4g} at delta {ledger.limit.delta:g}")
    say(f"Spent  epsilon {epsilon:.4g} at delta {delta:g}")
    for population in history.populations:
        about = "" if len(history.populations) == 1 else f" about {population!r}"
        say(f"Left   epsilon {history.left(population)[0]:.4g} for one more release{about}")
    say()
    _print_history([entry.to_dict() for entry in history.entries])
    _print_waiting(ledger, history)


def _print_waiting(ledger: Ledger, history: History) -> None:
    """Name the releases that were paid for and have no bundle, and say how to get them."""
    from discreet.privacy.ledger.vault import find_vault
    from discreet.publishing.delivery import explain_resuming

    for entry in history.entries:
        waits = find_vault(ledger.path, entry.reservation).exists()
        if entry.order is not None and (waits or entry.completed_at is None):
            say()
            say(f"Release {entry.number} has no bundle yet. {explain_resuming(ledger, entry)}")


def resume(
    file: LedgerFile,
    release: ReleaseName,
    *,
    out: Bundle,
    answers: AnswersAgain = None,
    force: Force = False,
    as_json: AsJson = False,
    limits: Limits,
    names: ColumnNames,
    reading: Reading,
    shared: Shared,
) -> None:
    """Write a release that was paid for and did not arrive. Charges nothing."""
    check_place(out, force=force)
    check_engine(limits)
    from discreet.privacy.ledger.book import Ledger
    from discreet.publishing.delivery import resume_release

    book = Ledger.open(file)
    order = book.find(release).order
    opened: AbstractContextManager[Any] = nullcontext()
    if answers is not None and order is not None and order["kind"] == "comparisons":
        columns = Columns(**asdict(names), repeats=reading.repeats)
        opened = nullcontext(read_votes(answers, columns, quiet=shared.quiet))
    elif answers is not None:
        opened = open_answers(answers, reading, limits, label="Releasing", quiet=shared.quiet)
    with opened as data:
        released = resume_release(book, release, data, out=out, force=force)
    show_release(released, out, as_json=as_json, quiet=shared.quiet)


def _document(history: History) -> dict[str, Any]:
    spent = history.spent()
    return {
        "spent": {"epsilon": spent[0], "delta": spent[1]},
        "limit": {"epsilon": history.limit.epsilon, "delta": history.limit.delta},
        "releases": [entry.to_dict() for entry in history.entries],
    }


def _print_history(entries: list[dict[str, Any]]) -> None:
    if not entries:
        say("No release yet.")
        return

    def values(name: str) -> list[Any]:
        return [entry[name] for entry in entries]

    print_table(
        [
            Column("release", values("number")),
            Column("reserved at", values("reserved_at")),
            Column("finished", ["yes" if done else "no" for done in values("completed_at")]),
            Column("mechanism", values("mechanism")),
            Column("epsilon", values("epsilon"), digits=4),
            Column("delta", [f"{value:g}" for value in values("delta")]),
            Column("neighbours", values("neighbours")),
            Column("population", values("population")),
            Column("description", values("description")),
        ]
    )


def add_to(app: typer.Typer) -> None:
    """Make ``ledger`` a family of commands of ``app``."""
    add_family(app, "ledger", "Keep account of the privacy budget.", create, show, resume)
