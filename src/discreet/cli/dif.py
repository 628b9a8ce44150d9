"""``discreet dif``: items that are harder for a group than its ability explains."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import staged
from discreet.cli.answers import read_answers
from discreet.cli.calibrations import check_method
from discreet.cli.options import (
    AnswersFile,
    AsJson,
    Force,
    OutFolder,
    Reading,
    Shared,
    command,
)
from discreet.cli.output import list_rows, note, print_columns, print_json, say, working
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.analysis.dif import DifTable


DIF_FILE = "dif.confidential.csv"


class Adjustment(StrEnum):
    """How p-values allow for the number of items."""

    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    HOLM = "holm"
    NONE = "none"


Reference = Annotated[
    str | None,
    typer.Option(metavar="GROUP", help="Compare the others with this one. Default: the largest."),
]
Adjusted = Annotated[Adjustment, typer.Option(help="How p-values allow for the number of items.")]
Level = Annotated[
    float, typer.Option(metavar="P", help="Flag items with a p-value below P, 0 to 1.")
]
Method = Annotated[
    str,
    typer.Option(metavar="NAME", help="conditional (the default), refined, spectral or marginal."),
]


def dif(
    file: AnswersFile,
    *,
    reference: Reference = None,
    adjustment: Adjusted = Adjustment.BENJAMINI_HOCHBERG,
    level: Level = 0.05,
    method: Method = "conditional",
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Compare groups of persons item by item. Needs one --group. Confidential."""
    group = _one_group(reading)
    check_method(method)
    if out is not None:
        check_writable(out, [DIF_FILE], force=force)
    responses = read_answers(file, reading, quiet=shared.quiet)
    from discreet.analysis.dif import find_dif

    with working("Comparing groups", quiet=shared.quiet):
        table = find_dif(
            responses,
            group,
            reference=reference,
            adjustment=str(adjustment),
            level=level,
            method=method,
        )
    if out is not None:
        from discreet.output.formats import write_csv

        columns = table.to_dict()
        columns["access"] = ["confidential"] * len(table.item)
        with staged(out, [DIF_FILE]) as stage:
            write_csv(stage / DIF_FILE, columns)
    if as_json:
        print_json(_document(group, table))
    else:
        _print(group, table)
    for warning in table.warnings:
        note(f"Warning: {warning}", quiet=shared.quiet)
    if out is not None:
        note(f"Wrote {out / DIF_FILE} (confidential)", quiet=shared.quiet)


def _one_group(reading: Reading) -> str:
    asked = reading.group or []
    if len(asked) != 1:
        raise BadUsage(
            f"dif needs exactly one --group COL, the column with the groups, found {len(asked)}."
        )
    return asked[0]


def _document(group: str, table: DifTable) -> dict[str, Any]:
    return {
        "group": group,
        "reference": table.reference,
        "persons": table.persons,
        "adjustment": table.adjustment,
        "level": table.level,
        "items": list_rows(table.to_dict()),
    }


def _print(group: str, table: DifTable) -> None:
    sizes = ", ".join(f"{label} {number:,}" for label, number in table.persons.items())
    say(f"{group}: {sizes}; compared with {table.reference}")
    say("Positive: harder for the group than its ability explains. ETS class A small, C large.")
    say()
    columns = {**table.to_dict(), "flag": _flags(table)}
    names = ("item", "focal", "difference", "se", "z", "p_value", "p_adjusted", "ets", "flag")
    print_columns(columns, (*names, "status"))


def _flags(table: DifTable) -> list[str]:
    return [
        "confirmed" if sure else "look" if seen else ""
        for seen, sure in zip(table.flagged.tolist(), table.confirmed.tolist(), strict=True)
    ]


def add_to(app: typer.Typer) -> None:
    """Make ``dif`` a command of ``app``."""
    command(app, "dif")(dif)
