"""``discreet ledger``: whom releases are about, what they have spent, what is left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import discreet
from discreet.atomic import check_place, write_text
from discreet.choices import PlainDict, PlainMapping, Relation
from discreet.cli.answers import (
    Columns,
    Limits,
    ReadingOptions,
    check_engine,
    open_source,
    split_names,
)
from discreet.cli.approvals import print_approvers
from discreet.cli.options import Language
from discreet.cli.output import (
    check_writable,
    list_rows,
    note,
    print_columns,
    print_json,
    say,
    say_lines,
)
from discreet.cli.release import DeliveryOptions, state_reading
from discreet.errors import BadUsage
from discreet.text import json_text

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.balance import History


@dataclass(frozen=True)
class LedgerTerms:
    """What a ledger is made with: keywords of :meth:`discreet.Ledger.create`."""

    epsilon: float
    delta: float = 1e-6
    neighbours: Relation | None = None
    policy: Path | None = None
    remember_persons: bool = False
    approvals: int = 0


def create_ledger(file: Path, *, terms: LedgerTerms) -> None:
    """Make a ledger with a total limit. All releases about one population share it."""
    ledger = discreet.Ledger.create(file, **vars(terms))
    say(
        f"Made {file} with a limit of epsilon {ledger.limit.epsilon:g} at delta "
        f"{ledger.limit.delta:g}. Keep it safe: it is the only record of what is spent."
    )
    if ledger.remembers_persons:
        say(
            "It remembers persons by keyed digests of their ids. So keep it confidential: the file "
            "shows whether an id is in it."
        )
    _print_policy(ledger)
    if ledger.approvals:
        say(f"It takes only releases that {ledger.approvals} approvers signed. Enter their keys:")
        say(f"discreet ledger approver {file} NAME --public-key KEY")


def _print_policy(ledger: Ledger) -> None:
    if ledger.policy is not None:
        say(f"Policy {'; '.join(ledger.policy.describe())}")
        if ledger.policy.about:
            say(f"       {ledger.policy.about}")


def declare_population(
    file: Path,
    name: str,
    *,
    contains: str = "",
    overlaps: str = "",
    disjoint: str = "",
    correct: bool = False,
) -> None:
    """Declare whom data is about. What is not declared disjoint counts as overlapping."""
    from discreet.report.spending import explain_relations

    ledger = discreet.Ledger.open(file)
    populations = ledger.declare(
        name,
        contains=split_names(contains),
        overlaps=split_names(overlaps),
        disjoint=split_names(disjoint),
        correct=correct,
    )
    history = ledger.history()
    standing = history.standing(name)
    say(f"{name}: {explain_relations(populations, name)}.")
    say(f"Spent on one person of {name}: epsilon {standing.epsilon:.4g}; left {standing.left:.4g}.")
    if disjoint and str(history.relation) != "add-remove":
        say(
            "Disjoint means that nobody is in both and, under replace-one, that the one who "
            "replaces a person is in the same populations."
        )


def show_ledger(file: Path, *, as_json: bool = False) -> None:
    """Show what has been spent and what is left. For the steward only."""
    from discreet.report.spending import describe_largest, explain_relations, list_populations

    ledger = discreet.Ledger.open(file)
    history = ledger.history()
    limit, largest, rows = history.limit, describe_largest(history), list_populations(history)
    entries = [entry.to_dict() for entry in history.entries]
    if as_json:
        print_json(
            {
                "spent": {"epsilon": largest["epsilon"], "delta": largest["delta"]},
                "limit": {"epsilon": limit.epsilon, "delta": limit.delta},
                "largest": largest,
                "populations": rows,
                "releases": entries,
                "policy": None if ledger.policy is None else ledger.policy.to_dict(),
                "approvals": ledger.approvals,
                "approvers": [one.describe() for one in ledger.board().approvers],
            }
        )
        return
    say(f"Ledger {ledger.id}, rule: {ledger.rule}")
    say(f"Limit  epsilon {limit.epsilon:.4g} at delta {limit.delta:g}")
    _print_policy(ledger)
    print_approvers(ledger)
    # The most exposed person, and in which populations that person is.
    bound = "" if largest["is_exact"] else "at most "
    whose = f", in {' and '.join(largest['populations'])}" if largest["populations"] else ""
    spent = f"epsilon {largest['epsilon']:.4g} at delta {largest['delta']:g}"
    say(f"Spent  {bound}{spent} on one person{whose}")
    say()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    relations = [explain_relations(history.populations, row["population"]) for row in rows]
    columns["declared"] = relations
    print_columns(columns, ("population", "spent", "left", "releases", "declared"))
    say()
    _print_history(entries)
    _print_waiting(ledger, history)


def report_spending(
    file: Path,
    *,
    out: Path | None = None,
    language: Language = "en",
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Report what was spent, for publication. Prints Markdown without --out."""
    from discreet.report.spending import describe_spending, write_spending_page, write_spending_text

    ways: dict[str, Callable[[PlainMapping], str]]
    ways = {".html": write_spending_page, ".md": write_spending_text, ".json": json_text}
    if out is not None:
        if out.suffix not in ways:
            raise BadUsage(f"{out}: a spending report is written as .html, .md or .json; name one.")
        check_writable(out.parent, [out.name], force=force)
    ledger = discreet.Ledger.open(file)
    spending = describe_spending(ledger, ledger.history(), language)
    if as_json:
        print_json(spending)
    elif out is None:
        say_lines(write_spending_text(spending))
    if out is not None:
        write_text(out, ways[out.suffix](spending), private=False)
        note(f"Wrote {out} (may be published)")


FINISHED = {"completed": "yes", "void": "void"}


def _print_history(entries: list[PlainDict]) -> None:
    if not entries:
        say("No release yet.")
        return
    columns = {name: [entry[name] for entry in entries] for name in entries[0]}
    columns["finished"] = [FINISHED.get(state, "no") for state in columns["state"]]
    columns["delta"] = [f"{value:g}" for value in columns["delta"]]
    names = ("number", "reserved_at", "finished", "mechanism", "epsilon", "delta", "neighbours")
    print_columns(columns, (*names, "population", "description"))


def _print_waiting(ledger: Ledger, history: History) -> None:
    """Name the releases that were paid for and have no bundle, and say how to get them."""
    from discreet.publishing.delivery import explain_resuming, list_waiting

    for entry in list_waiting(history):
        say()
        say(f"Release {entry.number} has no bundle yet. {explain_resuming(ledger, entry)}")


def check_ledger(file: Path, *, bundles: Path, as_json: bool = False) -> None:
    """Check that the ledger knows every published bundle. Finds copied and restored ledgers."""
    ledger = discreet.Ledger.open(file)
    checked = discreet.check_ledger(ledger, bundles)
    checked_releases = {bundle.release for bundle in checked}
    missing = [
        entry.number
        for entry in ledger.releases()
        if entry.completed_at is not None and entry.number not in checked_releases
    ]
    rows: dict[str, list[object]] = {
        "bundle": [str(bundle.path) for bundle in checked],
        "release": [bundle.release for bundle in checked],
        "finding": [bundle.finding for bundle in checked],
    }
    if as_json:
        print_json({"bundles": list_rows(rows), "without_bundle": missing})
        return
    print_columns(rows, [*rows])
    say(f"{file} has forgotten nothing that these bundles show.")
    if missing:
        say(f"Releases without a bundle here: {', '.join(map(str, missing))}.")


def resume(
    file: Path,
    release: str,
    *,
    answers: str | None = None,
    delivery: DeliveryOptions,
    limits: Limits,
    columns: Columns,
    reading: ReadingOptions,
) -> None:
    """Finish a release that was charged but not written. Charges nothing."""
    check_place(delivery.out, force=delivery.force)
    check_engine(limits)
    from discreet.publishing.delivery import find_paid, resume_release

    book, order = find_paid(file, release)
    is_ranking = order.public.kind == "comparisons"
    words = state_reading(columns if is_ranking else reading).get("reading", {})
    opened: AbstractContextManager[Any] = nullcontext()
    if answers is not None:
        opened = open_source(answers, limits)
    with delivery.showing() as show, opened as source:
        show(resume_release(book, release, source, **delivery.place, **words))
