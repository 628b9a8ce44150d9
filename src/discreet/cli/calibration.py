"""A calibration as a table, as JSON, as notes and as files; all of it confidential."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.atomic import staged
from discreet.cli.output import Column, json_text, note, print_table
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.estimate import Estimate
    from discreet.report.diagnostics import Diagnostics
    from discreet.responses import Responses

__all__ = [
    "CALIBRATION_FILE",
    "CALIBRATION_FILES",
    "REPORT_FILE",
    "calibration_document",
    "check_calibration_folder",
    "check_method",
    "diagnose_answers",
    "explain_calibration",
    "print_calibration",
    "write_calibration",
]

# The word is part of the names: a file that leaves its folder still says what it is.
ITEMS_FILE = "items.confidential.csv"
CALIBRATION_FILE = "calibration.confidential.json"
REPORT_FILE = "report.confidential.html"
CALIBRATION_FILES = (ITEMS_FILE, CALIBRATION_FILE, REPORT_FILE)

CONFIDENTIAL = (
    "confidential: computed from persons' answers without privacy protection; "
    "do not publish, use `discreet release` for that"
)


def print_calibration(estimate: Estimate) -> None:
    """Print the item table."""
    columns = estimate.to_dict()
    shown = [
        Column("item", columns["item"]),
        Column("difficulty", columns["difficulty"], digits=3),
        Column("se", columns["se"], digits=3),
        Column("95% from", columns["lower"], digits=3),
        Column("to", columns["upper"], digits=3),
        Column("status", columns["status"]),
    ]
    for name in ("answers", "right"):
        if name in columns:
            shown.insert(-1, Column(name, columns[name]))
    print_table(shown)


def explain_calibration(estimate: Estimate, *, quiet: bool) -> None:
    """Say what the user should know: items without a number and why, other warnings."""
    for warning in estimate.warnings:
        note(f"Warning: {warning}", quiet=quiet)


def check_method(name: str) -> None:
    """Refuse an unknown method before a large file is read for nothing."""
    from discreet.calibrate import METHODS

    if name not in METHODS:
        raise BadUsage(
            f"--method {name}: there is no such method; choose one of: {', '.join(METHODS)}."
        )


def calibration_document(estimate: Estimate) -> dict[str, Any]:
    """Return what ``discreet fit --json`` prints."""
    columns = estimate.to_dict()
    names = ("item", "difficulty", "se", "status", "answers", "right")
    columns = {name: columns[name] for name in names if name in columns}
    return {
        "persons": estimate.persons,
        "method": estimate.method,
        "items": [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
    }


def check_calibration_folder(folder: Path | None, *, force: bool) -> None:
    """Refuse a folder that could not be written later; ``None`` means no files."""
    if folder is not None:
        check_writable(folder, CALIBRATION_FILES, force=force)


def write_calibration(
    folder: Path, estimate: Estimate, responses: Responses | None = None, *, name: str = ""
) -> list[Path]:
    """Write the item table, the calibration and its report; return where they are.

    Parameters
    ----------
    folder
        Where they go.
    estimate
        The calibration.
    responses
        The answers behind it; without them the report says nothing about persons and fit.
    name
        What was calibrated, for the title of the report.
    """
    from discreet.report.steward import write_steward_page

    diagnostics = None if responses is None else diagnose_answers(responses, estimate)
    with staged(folder, CALIBRATION_FILES) as stage:
        _write_items(stage / ITEMS_FILE, estimate)
        _write_document(stage / CALIBRATION_FILE, estimate, diagnostics)
        page = write_steward_page(estimate, diagnostics, name=name)
        (stage / REPORT_FILE).write_text(page, encoding="utf-8", newline="\n")
    return [folder / name for name in CALIBRATION_FILES]


def diagnose_answers(responses: Responses, estimate: Estimate) -> Diagnostics | None:
    """Return the diagnostics of a calibration, or ``None`` where the answers allow none."""
    from discreet.report.diagnostics import diagnose

    try:
        return diagnose(responses, estimate)
    except BadUsage as error:
        note(f"Warning: the report is without abilities and fit: {error}")
        return None


def _write_items(path: Path, estimate: Estimate) -> None:
    from discreet.formats.tables import write_csv

    columns = estimate.to_dict()
    # A column rather than a comment line: every program reads it, and it survives a join.
    columns["access"] = ["confidential"] * len(estimate.items)
    write_csv(path, columns)


def _write_document(path: Path, estimate: Estimate, diagnostics: Diagnostics | None) -> None:
    from discreet import __version__

    document = {
        "format": "discreet-calibration",
        "version": 1,
        "access": CONFIDENTIAL,
        "discreet": __version__,
        **calibration_document(estimate),
        "solution": {
            "solver": estimate.solution.solver,
            "iterations": estimate.solution.iterations,
            "residual": estimate.solution.residual,
            "notes": estimate.solution.notes,
        },
        "warnings": estimate.warnings,
        "diagnostics": None if diagnostics is None else diagnostics.to_dict(),
    }
    path.write_text(json_text(document) + "\n", encoding="utf-8")
