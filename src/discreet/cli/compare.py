"""``discreet compare``: rank objects from pairwise comparisons, or release the ranking."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.answers import name_answers
from discreet.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Force,
    Neighbouring,
    Relation,
    Repeats,
    Shared,
    add_family,
    name_mechanisms,
)
from discreet.cli.output import list_rows, note, print_columns, print_json, say, working
from discreet.cli.release import (
    Bundle,
    LedgerFile,
    Population,
    show_release,
)
from discreet.place import check_place

if TYPE_CHECKING:
    from discreet.answers.judges import Comparisons


class Ties(StrEnum):
    """What to do with a tie."""

    ERROR = "error"
    DROP = "drop"


class RankMethod(StrEnum):
    """How to estimate strengths."""

    REFINED = "refined"
    SPECTRAL = "spectral"


def _column(what: str) -> Any:
    return typer.Option(metavar="COL", help=f"The column with the {what}.")


@dataclass(frozen=True)
class ColumnNames:
    """Where the comparisons stand in a file."""

    judge: Annotated[str | None, _column("judge ids")] = None
    winner: Annotated[str | None, _column("preferred object")] = None
    loser: Annotated[str | None, _column("other object")] = None
    left: Annotated[str | None, _column("first object")] = None
    right: Annotated[str | None, _column("second object")] = None
    outcome: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The column that says which one was preferred."),
    ] = None
    ties: Annotated[Ties, typer.Option(help="When neither was preferred: stop, or leave out.")] = (
        Ties.ERROR
    )


@dataclass(frozen=True)
class Columns(ColumnNames):
    """How to read a file of comparisons."""

    repeats: Annotated[
        Repeats,
        typer.Option(help="When a judge compared a pair more than once: stop, or which counts."),
    ] = Repeats.ERROR


ComparisonsFile = Annotated[
    str, typer.Argument(metavar="FILE", help="The comparisons: CSV, TSV or Parquet, also .gz.")
]
Method = Annotated[
    RankMethod,
    typer.Option(help="refined: Bradley-Terry likelihood. spectral: rank centrality."),
]
Count = Annotated[
    int, typer.Option("-k", "--count", metavar="K", min=0, help="Say who is in the top K.")
]
ItemsFile = Annotated[
    Path,
    typer.Option(
        "--items",
        metavar="LIST",
        help="A file with one object per line, fixed without looking at the comparisons.",
    ),
]
MaxComparisons = Annotated[
    int,
    typer.Option(
        "--max-comparisons", metavar="C", min=1, help="Use at most C comparisons of each judge."
    ),
]
Judges = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The public number of judges, fixed in advance. Default: counted in the data.",
    ),
]
MechanismName = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help=f"auto (from the list and the cap), {name_mechanisms('comparisons')}.",
    ),
]


def rank(
    file: ComparisonsFile,
    *,
    k: Count = 1,
    method: Method = RankMethod.REFINED,
    as_json: AsJson = False,
    reading: Columns,
    shared: Shared,
) -> None:
    """Estimate strengths, without privacy, and name the strongest objects. Confidential."""
    data = read_votes(file, reading, quiet=shared.quiet)
    from discreet.models.compared import rank_comparisons

    with working("Estimating strengths", quiet=shared.quiet):
        found = rank_comparisons(data, method=str(method))
        ranking = found.rank(min(k, int(found.estimate.estimated.sum())))
    columns = found.to_dict()
    for sentence in found.warnings:
        note(sentence, quiet=shared.quiet)
    sure = {"surely_in": list(ranking.surely_in), "possibly_in": list(ranking.possibly_in)}
    if as_json:
        top = {"top": list(ranking.top), **sure}
        print_json(
            {"judges": found.judges, "method": found.method, **top, "items": list_rows(columns)}
        )
        return
    say(f"{found.judges:,} judges, {data.n_comparisons:,} comparisons, {found.method}")
    say()
    _print_strengths(columns)
    say()
    say(f"Top {len(ranking.top)}: {', '.join(ranking.top)}")
    say(f"Surely in (95%): {', '.join(ranking.surely_in) or 'none'}")
    say(f"Possibly in:     {', '.join(ranking.possibly_in)}")


def release(
    file: ComparisonsFile,
    *,
    items: ItemsFile,
    max_comparisons: MaxComparisons,
    judges: Judges = None,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    ledger: LedgerFile,
    out: Bundle,
    mechanism: MechanismName = "auto",
    neighbours: Neighbouring = Relation.REPLACE_ONE,
    population: Population = "everyone",
    force: Force = False,
    as_json: AsJson = False,
    reading: Columns,
    shared: Shared,
) -> None:
    """Release strengths with a privacy guarantee for each judge. Charges the ledger first."""
    check_place(out, force=force)
    from discreet.privacy.accounting.budget import Budget, Neighbours
    from discreet.privacy.ledger.book import Ledger
    from discreet.tables.opener import read_list

    listed = read_list(items)
    budget = Budget(epsilon, delta, Neighbours(neighbours))
    book = Ledger.open(ledger)
    data = read_votes(file, reading, quiet=shared.quiet)
    from discreet.publishing.release import release_comparisons

    with working("Releasing", quiet=shared.quiet):
        released = release_comparisons(
            data,
            budget,
            items=listed,
            max_comparisons=max_comparisons,
            judges=judges,
            mechanism=mechanism,
            ledger=book,
            population=population,
            out=out,
            force=force,
        )
    show_release(released, out, as_json=as_json, quiet=shared.quiet)


def read_votes(file: str, columns: Columns, *, quiet: bool) -> Comparisons:
    """Return the comparisons in a file."""
    from discreet.answers.read_judges import read_comparisons

    with working(f"Reading {name_answers(file)}", quiet=quiet):
        options = {name: value for name, value in asdict(columns).items() if value is not None}
        options |= {"repeats": str(columns.repeats), "ties": str(columns.ties)}
        return read_comparisons(file, **options)


def _print_strengths(columns: dict[str, list[Any]]) -> None:
    names = ["item", "strength", "se", "lower", "upper", "compared", "won"]
    if set(columns["status"]) != {"estimated"}:
        names.append("status")
    print_columns(columns, names)


def add_to(app: typer.Typer) -> None:
    """Make ``compare`` a family of commands of ``app``."""
    add_family(app, "compare", "Rank objects from pairwise comparisons by judges.", rank, release)
