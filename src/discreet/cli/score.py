"""``discreet score``: abilities of persons against a calibration that exists."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import staged
from discreet.cli.answers import read_answers
from discreet.cli.calibrations import read_calibration
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

if TYPE_CHECKING:
    from discreet.analysis.persons import PersonScores


ABILITIES_FILE = "abilities.confidential.csv"
TABLE_FILE = "score_table.confidential.csv"
FILES = (ABILITIES_FILE, TABLE_FILE)


class Scoring(StrEnum):
    """How abilities are estimated."""

    WARM = "warm"
    ML = "ml"
    POSTERIOR = "posterior"


With = Annotated[
    Path,
    typer.Option(
        "--with",
        metavar="CALIBRATION",
        help="What `fit --out`, `release` or `bank` wrote (file or folder), or a Winsteps IFILE.",
    ),
]
Method = Annotated[
    Scoring,
    typer.Option(
        help="warm: weighted likelihood. ml: no number for extreme scores. posterior: its mean."
    ),
]


def score(
    file: AnswersFile,
    *,
    calibration: With,
    method: Method = Scoring.WARM,
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Estimate abilities with known difficulties. The results are about persons: confidential."""
    if out is not None:
        check_writable(out, FILES, force=force)
    known = read_calibration(calibration)
    responses = read_answers(file, reading, quiet=shared.quiet)
    from discreet.analysis.persons import score as estimate_abilities

    with working("Estimating abilities", quiet=shared.quiet):
        scores = estimate_abilities(responses, known, method=str(method))
    if out is not None:
        _write(out, scores, known)
    if as_json:
        print_json(_document(scores))
    else:
        _print(scores)
    for warning in scores.warnings:
        note(f"Warning: {warning}", quiet=shared.quiet)
    if out is not None:
        for name in FILES:
            note(f"Wrote {out / name} (confidential)", quiet=shared.quiet)


def _write(folder: Path, scores: PersonScores, known: Any) -> None:
    from discreet.analysis.persons import tabulate_scores
    from discreet.output.formats import write_csv

    columns = scores.to_dict()
    columns["access"] = ["confidential"] * len(scores.persons)
    table = tabulate_scores(known, method=scores.method, prior=scores.prior)
    with staged(folder, FILES) as stage:
        write_csv(stage / ABILITIES_FILE, columns)
        write_csv(stage / TABLE_FILE, table.to_dict())


def _document(scores: PersonScores) -> dict[str, Any]:
    prior = scores.prior
    return {
        "method": scores.method,
        "items": list(scores.items),
        "prior": None if prior is None else {"mean": prior.mean, "sd": prior.sd},
        "persons": list_rows(scores.to_dict()),
    }


def _print(scores: PersonScores) -> None:
    columns = scores.to_dict()
    say(f"{len(scores.persons):,} persons, {len(scores.items):,} items, {scores.method}")
    if scores.prior is not None:
        say(f"Abilities: normal, mean {scores.prior.mean:.3f}, SD {scores.prior.sd:.3f}")
    say()
    print_columns(columns, ("person", "ability", "se", "score", "answered", "status"))


def add_to(app: typer.Typer) -> None:
    """Make ``score`` a command of ``app``."""
    command(app, "score")(score)
