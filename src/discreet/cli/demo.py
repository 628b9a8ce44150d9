"""``discreet demo``: the bundled LSAT answers, calibrated and then released privately."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.calibrations import (
    check_calibration_folder,
    explain_calibration,
    print_calibration,
    write_calibration,
)
from discreet.cli.options import Force, Shared, command
from discreet.cli.output import say, working
from discreet.cli.release import print_release
from discreet.cli.writing import check_writable
from discreet.place import check_place

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")]

# A name that no steward gives to a real ledger, because the demo replaces it.
LEDGER_FILE = "demo-ledger.db"

EPSILON, DELTA = 1.0, 1e-6

# The public item list: from the test, not from the answers.
ITEMS = ("Item1", "Item2", "Item3", "Item4", "Item5")

# With as few as five items this one has the smallest error.
MECHANISM = "pairs"


def demo(*, out: Out = Path("demo"), force: Force = False, shared: Shared) -> None:
    """Calibrate and privately release the bundled LSAT answers. Takes a few seconds."""
    bundle = out / "release"
    check_calibration_folder(out, force=force)
    check_writable(out, [LEDGER_FILE], force=force)
    check_place(bundle, force=force)
    _calibrate(out, quiet=shared.quiet)
    say()
    # The answers were printed in 1970, so nothing is lost with the ledger of an earlier demo.
    (out / LEDGER_FILE).unlink(missing_ok=True)
    _release(out / LEDGER_FILE, bundle, quiet=shared.quiet)


def _calibrate(out: Path, *, quiet: bool) -> None:
    from discreet.datasets import citation
    from discreet.datasets.education import lsat
    from discreet.models.calibrate import fit

    answers = lsat()
    estimate = fit(answers)
    say("LSAT, section 6: 5 items answered by 1,000 persons")
    say(citation("lsat"))
    say()
    say("1. Without privacy, for the steward only")
    say()
    print_calibration(estimate)
    explain_calibration(estimate, quiet=quiet)
    say()
    for path in write_calibration(out, estimate, answers, name="LSAT, section 6"):
        say(f"Wrote {path} (confidential)")


def _release(ledger: Path, bundle: Path, *, quiet: bool) -> None:
    from discreet.datasets.education import lsat
    from discreet.privacy.accounting.budget import Budget
    from discreet.privacy.ledger.book import Ledger
    from discreet.publishing.release import release

    responses = lsat()
    book = Ledger.create(ledger, EPSILON, DELTA)
    with working("Releasing", quiet=quiet):
        released = release(
            responses,
            Budget(EPSILON, DELTA),
            items=ITEMS,
            mechanism=MECHANISM,
            ledger=book,
            out=bundle,
            force=True,
        )
    say("2. With privacy, for everyone (the noise is new every time)")
    say()
    print_release(released)
    say()
    for path in sorted(bundle.iterdir()):
        say(f"Wrote {path}")
    say(f"Wrote {ledger} (what was spent; see `discreet ledger show {ledger}`)")


def add_to(app: typer.Typer) -> None:
    """Make ``demo`` a command of ``app``."""
    command(app, "demo")(demo)
