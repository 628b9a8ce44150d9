"""``discreet link``: one calibration on another's scale. ``discreet bank``: banks that grow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import staged
from discreet.cli.calibrations import (
    CALIBRATION_FILES,
    KnownCalibration,
    name_calibration,
    read_calibration,
    write_calibration,
)
from discreet.cli.options import AsJson, Force, OutFolder, Shared, add_family, command
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.cli.writing import check_writable

if TYPE_CHECKING:
    from discreet.analysis.bank import Bank
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
    from discreet.output.formats import write_csv

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


# -- banks -----------------------------------------------------------------------------------

BankFile = Annotated[Path, typer.Argument(metavar="BANK", help="The bank file.")]
NewBankFile = Annotated[Path, typer.Argument(metavar="BANK", help="The new bank file.")]
ScaleName = Annotated[
    str, typer.Option("--scale", metavar="NAME", help="A name for the scale of the bank.")
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="A name for the calibration. Default: the name of its file or folder.",
    ),
]


def create(
    file: NewBankFile,
    calibration: KnownCalibration,
    *,
    scale: ScaleName,
    source: SourceName = None,
    force: Force = False,
    shared: Shared,
) -> None:
    """Start a bank with the items of a calibration, whose scale becomes that of the bank."""
    check_writable(file.parent, [file.name], force=force)
    from discreet.analysis.bank import create_bank, write_bank

    known = read_calibration(calibration)
    bank = create_bank(known, scale=scale, source=source or name_calibration(calibration))
    write_bank(file, bank)
    say(f"Made {file} with {len(bank.items):,} items ({bank.access})")
    left = len(getattr(known, "estimate", known).items) - len(bank.items)
    if left:
        note(f"Warning: {left} items have no difficulty and were left out", quiet=shared.quiet)


def add(
    file: BankFile,
    calibration: KnownCalibration,
    *,
    source: SourceName = None,
    flag_at: FlagAt = 2.7,
    as_json: AsJson = False,
    shared: Shared,
) -> None:
    """Link a calibration to a bank and add its new items. Values in the bank do not change."""
    from discreet.analysis.bank import grow_bank, read_bank, write_bank

    bank = read_bank(file)
    known = read_calibration(calibration)
    name = source or name_calibration(calibration)
    grown, link = grow_bank(bank, known, source=name, flag_at=flag_at)
    write_bank(file, grown)
    added = grown.items[len(bank.items) :]
    if as_json:
        print_json({"added": list(added), "items": len(grown.items), "link": link_document(link)})
    else:
        _print_added(file, grown, added, link)
    for warning in link.warnings:
        note(f"Warning: {warning}", quiet=shared.quiet)


def _print_added(file: Path, bank: Bank, added: tuple[str, ...], link: Link) -> None:
    print_link(link)
    say()
    noun = "item" if len(added) == 1 else "items"
    say(f"Added {len(added):,} {noun} to {file}: {len(bank.items):,} now ({bank.access})")


def show(file: BankFile, *, as_json: AsJson = False, shared: Shared) -> None:
    """Show the items of a bank."""
    del shared
    from discreet.analysis.bank import read_bank

    bank = read_bank(file)
    if as_json:
        print_json(_document(bank))
        return
    sources = len(set(bank.source))
    noun = "calibration" if sources == 1 else "calibrations"
    say(f"{bank.scale}: {len(bank.items):,} items from {sources} {noun} ({bank.access})")
    say()
    print_columns(bank.to_dict(), ("item", "difficulty", "se", "n", "source", "status"))


def _document(bank: Bank) -> dict[str, Any]:
    return {
        "scale": bank.scale,
        "unit": "logit",
        "access": bank.access,
        "items": list_rows(bank.to_dict()),
    }


def add_to(app: typer.Typer) -> None:
    """Make ``link`` a command and ``bank`` a family of commands of ``app``."""
    command(app, "link")(link)
    add_family(
        app, "bank", "Keep difficulties from many calibrations on one scale.", create, add, show
    )
