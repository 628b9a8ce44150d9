"""``discreet bank``: item banks that grow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.calibrations import KnownCalibration, name_calibration, read_calibration
from discreet.cli.link import FlagAt, link_document, print_link
from discreet.cli.options import AsJson, Force, Shared, command, spread
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.cli.writing import check_writable

if TYPE_CHECKING:
    from discreet.analysis.bank import Bank
    from discreet.analysis.equate import Link


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


def describe(shared: Shared) -> None:
    """Keep difficulties from many calibrations on one scale."""
    del shared


def add_to(app: typer.Typer) -> None:
    """Make ``bank`` a family of commands of ``app``."""
    family = typer.Typer(name="bank", no_args_is_help=True, rich_markup_mode=None)
    family.callback()(spread(describe))
    command(family, "create")(create)
    command(family, "add")(add)
    command(family, "show")(show)
    app.add_typer(family)
