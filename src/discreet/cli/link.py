"""``discreet link``: put one calibration on the scale of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import staged
from discreet.cli.calibrations import CALIBRATION_FILES, read_calibration, write_calibration
from discreet.cli.options import AsJson, Force, OutFolder, Shared, command
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.cli.writing import check_writable

if TYPE_CHECKING:
    from discreet.analysis.equate import Link


LINK_FILE = "link.confidential.csv"

Base = Annotated[Path, typer.Argument(metavar="A", help="The calibration whose scale stays.")]
New = Annotated[Path, typer.Argument(metavar="B", help="The calibration to put on that scale.")]
FlagAt = Annotated[
    float,
    typer.Option(
        "--flag-at", metavar="Z", help="Leave out items that drift by more than Z SDs (2.7)."
    ),
]


def link(
    base: Base,
    new: New,
    *,
    flag_at: FlagAt = 2.7,
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    shared: Shared,
) -> None:
    """Link calibration B to calibration A through their common items, and check the link."""
    if out is not None:
        check_writable(out, (*CALIBRATION_FILES, LINK_FILE), force=force)
    first, second = read_calibration(base), read_calibration(new)
    from discreet.analysis.equate import link_calibrations

    found = link_calibrations(first, second, flag_at=flag_at)
    written = [] if out is None else _write(out, found, second)
    if as_json:
        print_json(link_document(found))
    else:
        print_link(found)
    for warning in found.warnings:
        note(f"Warning: {warning}", quiet=shared.quiet)
    for path in written:
        note(f"Wrote {path} (confidential)", quiet=shared.quiet)


def _write(folder: Path, found: Link, second: Any) -> list[Path]:
    from discreet.output.formats.tables import write_csv

    written = write_calibration(folder, found.move(second))
    with staged(folder, [LINK_FILE]) as stage:
        write_csv(stage / LINK_FILE, found.to_dict())
    return [*written, folder / LINK_FILE]


def link_document(found: Link) -> dict[str, Any]:
    """Return what ``discreet link --json`` prints."""
    return {
        "shift": found.shift,
        "se": found.se,
        "shift_all": found.shift_all,
        "se_all": found.se_all,
        "scatter": found.scatter,
        "correlation": found.correlation,
        "spread_ratio": found.spread_ratio,
        "items": list_rows(found.to_dict()),
    }


def print_link(found: Link) -> None:
    """Print the shift and the table of common items."""
    kept = int((~found.flagged).sum())
    say(f"Add {found.shift:+.3f} logits (se {found.se:.3f}), from {kept} common items")
    if found.flagged.any():
        say(
            f"From all {len(found.items)} common items it would be {found.shift_all:+.3f} "
            f"(se {found.se_all:.3f})"
        )
    say()
    columns = found.to_dict()
    columns["link"] = ["left out" if one else "used" for one in columns["flagged"]]
    print_columns(columns, ("item", "drift", "se", "z", "link"))


def add_to(app: typer.Typer) -> None:
    """Make ``link`` a command of ``app``."""
    command(app, "link")(link)
