"""``discreet fit``: difficulties from a file of answers, without privacy."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.answers import read_answers
from discreet.cli.calibration import (
    calibration_document,
    check_calibration_folder,
    check_method,
    explain_calibration,
    print_calibration,
    write_calibration,
)
from discreet.cli.options import AnswersFile, AsJson, Force, OutFolder, Reading, Shared, command
from discreet.cli.output import note, print_json, say, working

__all__ = ["Method", "Regularisation", "add_to"]

Method = Annotated[
    str, typer.Option(metavar="NAME", help="refined (the default) or spectral (the paper's).")
]
Regularisation = Annotated[
    float,
    typer.Option(
        metavar="A",
        min=0.0,
        help="Add A persons to both directions of every compared pair. Pulls items together.",
    ),
]


def fit(
    file: AnswersFile,
    *,
    method: Method = "refined",
    regularisation: Regularisation = 0.0,
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Estimate item difficulties from answers. The results are confidential."""
    check_calibration_folder(out, force=force)
    check_method(method)
    responses = read_answers(file, reading, quiet=shared.quiet)
    from discreet.calibrate import fit as calibrate

    with working("Estimating difficulties", quiet=shared.quiet):
        estimate = calibrate(responses, method=method, regularisation=regularisation)
    written = [] if out is None else write_calibration(out, estimate)
    if as_json:
        print_json(calibration_document(estimate))
    else:
        say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
        say()
        print_calibration(estimate)
    explain_calibration(estimate, quiet=shared.quiet)
    for path in written:
        note(f"Wrote {path} (confidential)", quiet=shared.quiet)


def add_to(app: typer.Typer) -> None:
    """Make ``fit`` a command of ``app``."""
    command(app, "fit")(fit)
