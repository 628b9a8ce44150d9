"""Calibrations that exist already: what `fit`, `release` or `bank` wrote, or Winsteps.

In: a path. Out: an estimate, a release or a bank, whichever it holds.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.calibration import CALIBRATION_FILE
from discreet.errors import BadResponses, BadUsage
from discreet.markup import read_cell

if TYPE_CHECKING:
    from discreet.estimate import Estimate

__all__ = ["KnownCalibration", "name_calibration", "read_anchors", "read_calibration"]

KnownCalibration = Annotated[
    Path,
    typer.Argument(
        metavar="CALIBRATION",
        help="What `fit --out`, `release` or `bank` wrote (file or folder), or a Winsteps IFILE.",
    ),
]

PRIVACY_FILE = "privacy.json"
FORMAT, VERSION = "discreet-calibration", 1


def read_calibration(path: Path) -> Any:
    """Return the estimate, the release or the bank at ``path``."""
    if path.is_dir():
        return _read_folder(path)
    from discreet.linking.bank import is_bank, read_bank

    if is_bank(path):
        return read_bank(path)
    start = _first_line(path)
    if start.startswith("{"):
        return _read_document(path)
    if start.lstrip('; "').upper().startswith(("ENTRY", "ITEM")) and "difficulty" not in start:
        from discreet.formats.winsteps import read_item_file

        return read_item_file(path)
    raise BadUsage(
        f"{path} is no calibration: give {CALIBRATION_FILE} (written by `discreet fit --out`), a "
        "folder with it, a release, an item bank, or an item file (IFILE=) of Winsteps."
    )


def name_calibration(path: Path) -> str:
    """Return a short name: the folder that holds a calibration, or the file without its ending."""
    place = path.resolve()
    if place.name == CALIBRATION_FILE:
        place = place.parent
    return place.name.split(".")[0] or place.name


def read_anchors(path: Path) -> Any:
    """Return anchors: a calibration, or the pairs of a CSV file with item and difficulty."""
    if path.is_dir() or path.suffix.lower() != ".csv":
        return read_calibration(path)
    from discreet.linking.bank import is_bank

    if is_bank(path):
        return read_calibration(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or []
        if "item" not in names or "difficulty" not in names:
            raise BadUsage(
                f"{path}: anchors need the columns 'item' and 'difficulty', found "
                f"{', '.join(names) or 'none'}."
            )
        try:
            rows = list(reader)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadResponses(f"{path} cannot be read as CSV: {error}.") from error
    return [(read_cell(row["item"]), row["difficulty"]) for row in rows if row["difficulty"]]


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.readline(4096).strip()


def _read_folder(folder: Path) -> Any:
    if (folder / CALIBRATION_FILE).exists():
        return _read_document(folder / CALIBRATION_FILE)
    if (folder / PRIVACY_FILE).exists():
        from discreet.publish import read_release

        return read_release(folder)
    raise BadUsage(
        f"{folder} holds neither a calibration ({CALIBRATION_FILE}) nor a release "
        f"({PRIVACY_FILE}); make one with `discreet fit FILE --out DIR` or `discreet release`."
    )


def _read_document(path: Path) -> Estimate:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadResponses(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadUsage(f"{path} is no calibration of `discreet fit --out`: its format is not ours.")
    if document.get("version") != VERSION:
        raise BadUsage(
            f"{path} has version {document.get('version')}; this version of discreet reads "
            f"{VERSION}."
        )
    try:
        return _build_estimate(document)
    except (KeyError, TypeError, ValueError) as error:
        raise BadResponses(
            f"{path} is damaged ({type(error).__name__}: {error}); write it again with "
            "`discreet fit --out`."
        ) from error


def _build_estimate(document: dict[str, Any]) -> Estimate:
    import numpy as np

    from discreet.estimate import Estimate, Solution, Status

    rows = document["items"]

    def numbers(name: str) -> Any:
        return np.array([np.nan if row[name] is None else float(row[name]) for row in rows])

    def counts(name: str) -> Any:
        if not all(isinstance(row.get(name), int) for row in rows):
            return None
        return np.array([row[name] for row in rows], dtype=np.int64)

    return Estimate(
        items=tuple(str(row["item"]) for row in rows),
        difficulty=numbers("difficulty"),
        se=numbers("se"),
        status=tuple(Status(row["status"]) for row in rows),
        method=str(document["method"]),
        solution=Solution("read from a calibration file", 0, 0.0),
        answers=counts("answers"),
        right=counts("right"),
        persons=document.get("persons"),
    )
