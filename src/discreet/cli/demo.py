"""``discreet demo``: the bundled LSAT answers, from the raw patterns to an item table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.calibration import (
    check_calibration_folder,
    explain_calibration,
    print_calibration,
    write_calibration,
)
from discreet.cli.options import Force, Shared, command
from discreet.cli.output import say

__all__ = ["add_to"]

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")]


def demo(*, out: Out = Path("demo"), force: Force = False, shared: Shared) -> None:
    """Calibrate the bundled LSAT answers. Five items, a thousand persons, published in 1970."""
    check_calibration_folder(out, force=force)
    from discreet.calibrate import fit
    from discreet.datasets import citation, lsat

    estimate = fit(lsat())
    say("LSAT, section 6: 5 items answered by 1,000 persons in the 1960s")
    say(citation("lsat"))
    say()
    print_calibration(estimate)
    explain_calibration(estimate, quiet=shared.quiet)
    say()
    for path in write_calibration(out, estimate):
        say(f"Wrote {path} (confidential)")


def add_to(app: typer.Typer) -> None:
    """Make ``demo`` a command of ``app``."""
    command(app, "demo")(demo)
