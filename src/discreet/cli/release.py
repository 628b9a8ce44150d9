"""``discreet release``: a bundle to publish. ``discreet verify``: whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.answers import check_engine, open_answers
from discreet.cli.options import (
    MECHANISM_NAMES,
    AnswersFile,
    AsJson,
    Delta,
    Epsilon,
    Force,
    Limits,
    Neighbouring,
    Reading,
    Relation,
    Shared,
    command,
    explain_mechanisms,
)
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.place import check_place
from discreet.results.kinds import find_kind

if TYPE_CHECKING:
    from discreet.publishing.bundle import Published


ItemsFile = Annotated[
    Path,
    typer.Option(
        "--items",
        metavar="LIST",
        help="A file with one item per line, fixed without looking at the answers.",
    ),
]
MaxAnswers = Annotated[
    int | None,
    typer.Option(
        "--max-answers",
        metavar="Q",
        help="Use at most Q answers of each person. Default: as many as there are items.",
    ),
]
LedgerFile = Annotated[
    Path,
    typer.Option(
        "--ledger", metavar="FILE", help="The ledger to charge (see `discreet ledger create`)."
    ),
]
Bundle = Annotated[Path, typer.Option("--out", metavar="DIR", help="The new folder to publish.")]
MechanismName = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="auto (from the list and the cap), " + MECHANISM_NAMES,
    ),
]
Persons = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The public number of persons, fixed in advance. Default: counted in the data.",
    ),
]

Population = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Declares that these persons are in no other named population of the ledger; "
        "'everyone' counts against every population, and every population against it.",
    ),
]


def release(
    file: AnswersFile,
    *,
    items: ItemsFile,
    max_answers: MaxAnswers = None,
    persons: Persons = None,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    ledger: LedgerFile,
    out: Bundle,
    mechanism: MechanismName = "auto",
    neighbours: Neighbouring = Relation.REPLACE_ONE,
    population: Population = "everyone",
    limits: Limits,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Release item difficulties with a privacy guarantee. Charges the ledger first."""
    check_place(out, force=force)
    check_engine(limits)
    from discreet.privacy.accounting.budget import Budget, Neighbours
    from discreet.privacy.ledger.book import Ledger
    from discreet.privacy.mechanisms import check_mechanism
    from discreet.tables.opener import read_list

    listed = read_list(items)
    budget = Budget(epsilon, delta, Neighbours(neighbours))
    check_mechanism(mechanism)
    book = Ledger.open(ledger)
    opened = open_answers(file, reading, limits, label="Releasing", quiet=shared.quiet)
    with opened as answers:
        from discreet.publishing.release import release as publish

        released = publish(
            answers,
            budget,
            items=listed,
            max_answers=max_answers,
            persons=persons,
            mechanism=mechanism,
            ledger=book,
            population=population,
            out=out,
            force=force,
        )
    show_release(released, out, as_json=as_json, quiet=shared.quiet)


def show_release(released: Published, out: Path, *, as_json: bool, quiet: bool) -> None:
    """Print a release that was written, and say where."""
    note(released.record["choice"], quiet=quiet)
    if as_json:
        print_json(release_document(released))
    else:
        print_release(released)
    note(f"Wrote {out} (may be published)", quiet=quiet)


def release_document(released: Published) -> dict[str, Any]:
    """Return what ``discreet release --json`` prints, also of comparisons."""
    guarantee, columns = released.guarantee, _columns(released)
    return {
        "mechanism": guarantee.mechanism,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "rho": guarantee.rho,
        "neighbours": str(guarantee.neighbours),
        "items": list_rows(columns),
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


Verified = Annotated[Path, typer.Argument(metavar="DIR", help="What `release` wrote.")]


def verify(bundle: Verified, *, shared: Shared) -> None:
    """Say whether a release is whole: nothing missing, nothing changed."""
    del shared
    from discreet.publishing.verification import NO_CHECKSUMS, check_bundle

    files = check_bundle(bundle).get("files")
    if files is None:
        say(f"{bundle}: {NO_CHECKSUMS}.")
    else:
        say(f"{bundle} is whole: {len(files) + 1} files are as they were written.")


def add_to(app: typer.Typer) -> None:
    """Make ``release`` and ``verify`` commands of ``app``."""
    command(app, "release", epilog=explain_mechanisms("answers"))(release)
    command(app, "verify")(verify)
