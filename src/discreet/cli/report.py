"""``discreet report``: a page to read, from answers, a calibration or a release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import staged, write_text
from discreet.cli.answers import read_answers
from discreet.cli.calibrations import (
    CALIBRATION_FILE,
    REPORT_FILE,
    check_method,
    diagnose_answers,
    read_calibration,
)
from discreet.cli.fit import Method
from discreet.cli.options import Force, Reading, Shared, command
from discreet.cli.output import note, say, working
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.analysis.diagnostics import Diagnostics
    from discreet.results.estimate import Estimate


PUBLIC_FILE, PRIVACY_FILE = "report.html", "privacy.json"

Source = Annotated[
    str,
    typer.Argument(
        metavar="DIR_OR_FILE",
        help="A release, a folder of `fit --out`, or answers (which are calibrated first).",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where the page goes: by default the given folder, for answers the current one.",
    ),
]


def report(
    source: Source,
    *,
    method: Method = "refined",
    out: Out = None,
    force: Force = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Write the HTML report: public for a release, confidential for a calibration."""
    check_method(method)
    place = Path(source)
    if place.is_dir() and (place / PRIVACY_FILE).exists():
        _report_release(place, out, force=force)
    elif _is_calibration(place):
        _report_calibration(place, out, force=force)
    else:
        _report_answers(source, method, out or Path(), reading, force=force, quiet=shared.quiet)


def _is_calibration(place: Path) -> bool:
    return place.name == CALIBRATION_FILE or (place / CALIBRATION_FILE).is_file()


def _report_release(bundle: Path, out: Path | None, *, force: bool) -> None:
    from discreet.output.pages import write_public_page
    from discreet.publishing.bundle import hash_text, seal_record
    from discreet.publishing.verification import read_published

    _check_place(bundle, out, PUBLIC_FILE, force=force)
    published = read_published(bundle)
    record = published.record
    texts = {PUBLIC_FILE: write_public_page(published.estimate, record)}
    if out is None and "files" in record:  # a later version may write another page
        files = {**record["files"], PUBLIC_FILE: hash_text(texts[PUBLIC_FILE])}
        texts[PRIVACY_FILE] = seal_record(record, files)
    path = (out or bundle) / PUBLIC_FILE
    with staged(path.parent, [*texts], private=False) as stage:
        for name, text in texts.items():
            (stage / name).write_text(text, encoding="utf-8", newline="")
    private = record["guarantee"]["is_private"]
    say(f"Wrote {path} ({'may be published' if private else 'not private: noise for tests only'})")


def _report_calibration(place: Path, out: Path | None, *, force: bool) -> None:
    file = place if place.is_file() else place / CALIBRATION_FILE
    _check_place(file.parent, out, REPORT_FILE, force=force)
    estimate, diagnostics = _restore(file)
    if diagnostics is None:
        note("The calibration was written without the answers: no abilities and no fit.")
    _finish(estimate, diagnostics, out or file.parent, file.resolve().parent.name)


def _report_answers(
    source: str, method: str, out: Path, reading: Reading, *, force: bool, quiet: bool
) -> None:
    check_writable(out, [REPORT_FILE], force=force)
    responses = read_answers(source, reading, quiet=quiet)
    from discreet.models.calibrate import fit

    with working("Estimating difficulties", quiet=quiet):
        estimate = fit(responses, method=method)
        diagnostics = diagnose_answers(responses, estimate)
    _finish(estimate, diagnostics, out, Path(source).name)


def _restore(file: Path) -> tuple[Estimate, Diagnostics | None]:
    """Read a calibration with what only its report needs: how it was solved, diagnostics."""
    from discreet.analysis.diagnostics import Diagnostics
    from discreet.results.estimate import Solution

    estimate: Estimate = read_calibration(file)
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    try:
        solved = document["solution"]
        notes, warnings = tuple(solved["notes"]), tuple(document["warnings"])
        solution = Solution(solved["solver"], solved["iterations"], solved["residual"], notes)
        stored = document.get("diagnostics")
        diagnostics = None if stored is None else Diagnostics.from_dict(stored)
    except (KeyError, TypeError) as error:
        raise BadUsage(
            f"{file} is damaged ({type(error).__name__}: {error}); write it again with "
            "`discreet fit --out`."
        ) from error
    return replace(estimate, solution=solution, warnings=warnings), diagnostics


def _finish(estimate: Estimate, diagnostics: Diagnostics | None, out: Path, name: str) -> None:
    from discreet.analysis.findings import find_problems
    from discreet.output.steward import judge, write_steward_page

    path = out / REPORT_FILE
    write_text(path, write_steward_page(estimate, diagnostics, name=name))
    findings, _ = find_problems(estimate, diagnostics)
    say(f"{judge(findings)}{':' if findings else '.'}")
    for finding in findings:
        say(f"- {finding.title}")
    say(f"Wrote {path} (confidential)")


def _check_place(given: Path, out: Path | None, name: str, *, force: bool) -> None:
    """Refuse to overwrite, except a report of ours beside the result that it is about."""
    from discreet.markup import GENERATOR

    path = given / name
    if out is None and path.is_file():
        head = path.read_text(encoding="utf-8", errors="replace")[:2000]
        force = force or GENERATOR in head
    check_writable(out or given, [name], force=force)


def add_to(app: typer.Typer) -> None:
    """Make ``report`` a command of ``app``."""
    command(app, "report")(report)
