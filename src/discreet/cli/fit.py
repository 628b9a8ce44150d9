"""``discreet fit``: difficulties from a file of answers, without privacy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.answers import name_answers, open_answers
from discreet.cli.calibrations import (
    calibration_document,
    check_calibration_folder,
    check_method,
    explain_calibration,
    print_calibration,
    read_anchors,
    write_calibration,
)
from discreet.cli.options import (
    AnswersFile,
    AsJson,
    Force,
    Limits,
    OutFolder,
    Reading,
    Shared,
    command,
)
from discreet.cli.output import Column, note, print_json, print_table, say, working
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.analysis.anchoring import Anchored
    from discreet.answers.responses import Responses


Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="refined (the default), spectral (the paper's), conditional or marginal.",
    ),
]
Regularisation = Annotated[
    float,
    typer.Option(
        metavar="A",
        min=0.0,
        help="Add A persons to both directions of every compared pair. Pulls items together.",
    ),
]

Anchors = Annotated[
    Path | None,
    typer.Option(
        "--anchors",
        metavar="FILE",
        help="Hold these difficulties: a CSV with item and difficulty, a calibration or a bank.",
    ),
]


def fit(
    file: AnswersFile,
    *,
    method: Method = "refined",
    regularisation: Regularisation = 0.0,
    anchors: Anchors = None,
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Estimate item difficulties from answers. The results are confidential."""
    check_calibration_folder(out, force=force)
    check_method(method)
    _check_anchors(anchors, method, regularisation)
    # Diagnostics and anchors need all answers in memory; difficulties alone do not.
    limits = Limits() if out is None and anchors is None else Limits(engine="memory")
    label = "Estimating difficulties"
    with open_answers(file, reading, limits, label=label, quiet=shared.quiet) as answers:
        from discreet.models.calibrate import fit as calibrate

        responses: Any = answers
        anchored = None if anchors is None else _hold(anchors, responses)
        estimate = (
            calibrate(responses, method=method, regularisation=regularisation)
            if anchored is None
            else anchored.estimate
        )
    written = []
    if out is not None:
        with working("Writing the report", quiet=shared.quiet):
            written = write_calibration(out, estimate, responses, name=name_answers(file))
    if as_json:
        document = calibration_document(estimate)
        print_json(document | ({} if anchored is None else _anchor_document(anchored)))
    else:
        say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
        say()
        print_calibration(estimate)
        if anchored is not None:
            _print_anchors(anchored)
    explain_calibration(estimate, quiet=shared.quiet)
    for path in written:
        note(f"Wrote {path} (confidential)", quiet=shared.quiet)


def _check_anchors(anchors: Path | None, method: str, regularisation: float) -> None:
    if anchors is not None and (method != "refined" or regularisation != 0):
        raise BadUsage(
            "--anchors works with the method refined and without regularisation; leave out "
            "--method and --regularisation."
        )


def _hold(anchors: Path, responses: Responses) -> Anchored:
    from discreet.analysis.anchoring import fit_anchored

    return fit_anchored(responses, read_anchors(anchors))


def _anchor_document(anchored: Anchored) -> dict[str, object]:
    columns = anchored.to_dict()
    rows = zip(*columns.values(), strict=True)
    return {"anchors": [dict(zip(columns, row, strict=True)) for row in rows]}


def _print_anchors(anchored: Anchored) -> None:
    columns = anchored.to_dict()
    say()
    say("Anchors: how far each would move if it were free")
    say()
    print_table(
        [
            Column("item", columns["item"]),
            Column("anchor", columns["anchor"], digits=3),
            Column("displacement", columns["displacement"], digits=3),
            Column("se", columns["se"], digits=3),
            Column("why not", columns["reason"]),
        ]
    )


def add_to(app: typer.Typer) -> None:
    """Make ``fit`` a command of ``app``."""
    command(app, "fit")(fit)
