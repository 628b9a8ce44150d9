"""The document of a calibration: what ``fit --json`` prints and ``fit --out`` keeps, and back.

In: an estimate, or a file. Out: plain values, or an estimate. Confidential.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.output import json_text, list_rows
from discreet.cli.scaling import add_scaled, name_scale
from discreet.errors import BadResponses, BadUsage

if TYPE_CHECKING:
    from discreet.analysis.diagnostics import Diagnostics
    from discreet.analysis.scale import Scale
    from discreet.results.estimate import Estimate
    from discreet.results.thresholds import Thresholds
    from discreet.types import FloatArray

FORMAT, VERSION = "discreet-calibration", 3
READ_VERSIONS = (1, 2, 3)
"""Version 1 has no model, choice of the method, steps, thresholds and covariance, version 2 no
``reading``: how the answers were stated to be read."""
COVARIANCE_ITEMS = 100
"""Items, or thresholds, up to which the covariance is kept: below 200 kB."""

CONFIDENTIAL = (
    "confidential: computed from persons' answers without privacy protection; "
    "do not publish, use `discreet release` for that"
)


def calibration_document(estimate: Estimate, scale: Scale | None = None) -> dict[str, Any]:
    """Return what ``discreet fit --json`` prints."""
    columns = add_scaled(estimate.to_dict(), scale)
    scaled = ("scaled_difficulty", "scaled_se")
    names = ("item", "difficulty", "se", *scaled, "status", "answers", "right")
    rows = list_rows({name: columns[name] for name in names if name in columns})
    if estimate.ladder is not None:
        rows = [{**row, **own} for row, own in zip(rows, list_thresholds(estimate), strict=True)]
    shown = ("persons", "method", "choice", "model", "se_method")
    about = {name: getattr(estimate, name) for name in shown}
    return {**about, **name_scale(scale), "items": rows}


def list_thresholds(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the thresholds of every item and their standard errors."""
    rows = zip(estimate.steps, estimate.thresholds, estimate.threshold_se, strict=True)
    return [
        {"thresholds": value[:most].tolist(), "threshold_se": se[:most].tolist()}
        for most, value, se in rows
    ]


def write_document(
    path: Path,
    estimate: Estimate,
    diagnostics: Diagnostics | None,
    heading: dict[str, str],
    scale: Scale | None,
) -> None:
    """Write the file that a report can be made from again, and persons scored with."""
    from discreet import __version__

    steps = {} if estimate.ladder is None else {
        "threshold_covariance": _keep_covariance(estimate.threshold_covariance)
    }  # fmt: skip
    document = {
        "format": FORMAT,
        "version": VERSION,
        "access": CONFIDENTIAL,
        "discreet": __version__,
        **heading,
        **calibration_document(estimate),
        **name_scale(scale),
        "degrees": estimate.degrees,
        "reading": {},
        "items": _list_items(estimate),
        "covariance": _keep_covariance(estimate.covariance),
        **steps,
        "solution": vars(estimate.solution),
        "warnings": estimate.warnings,
        "warning_kinds": [one.kind for one in estimate.warnings],
        "diagnostics": None if diagnostics is None else diagnostics.to_dict(),
    }
    path.write_text(json_text(document) + "\n", encoding="utf-8")


def _keep_covariance(covariance: FloatArray | None) -> list[list[float]] | None:
    small = covariance is not None and len(covariance) <= COVARIANCE_ITEMS
    return covariance.tolist() if small else None  # type: ignore[union-attr]


def _list_items(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the rows of the items, each with a threshold for every step."""
    parts = (
        calibration_document(estimate)["items"],
        [{"steps": steps} for steps in estimate.steps],
        list_thresholds(estimate),
        _list_ladder(estimate),
    )
    return [{**row, **steps, **own, **more} for row, steps, own, more in zip(*parts, strict=True)]


def _list_ladder(estimate: Estimate) -> list[dict[str, Any]]:
    """Return what else is known of every item with steps: statuses, categories, who is in them."""
    ladder = estimate.ladder
    if ladder is None:
        return [{}] * len(estimate.items)
    lowest: dict[str, Any] = {"lowest": ladder.lowest} if ladder.lowest else {}
    rows = [{"threshold_status": own, "categories": kept, **lowest}
            for own, kept in zip(ladder.status, ladder.kept, strict=True)]  # fmt: skip
    if ladder.categories is None:
        return rows
    counts = zip(rows, ladder.categories.tolist(), strict=True)
    return [{**row, "category_answers": own[: len(row["categories"])]} for row, own in counts]


def read_document(path: Path) -> dict[str, Any]:
    """Return a calibration as it stands in its file; refuse another file or version."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadResponses(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadUsage(f"{path} is no calibration of `discreet fit --out`: its format is not ours.")
    if document.get("version") not in READ_VERSIONS:
        raise BadUsage(
            f"{path} has version {document.get('version')}; this version of discreet reads "
            f"{READ_VERSIONS[0]} to {READ_VERSIONS[-1]}."
        )
    from discreet.types import MODELS

    if document.get("model", "rasch") not in MODELS:
        raise BadUsage(
            f"{path} is a calibration of the model {document['model']}, but this version of "
            f"discreet reads those of {', '.join(MODELS)}; use the version that wrote it."
        )
    return document


@contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    """Say that a calibration is damaged where something in it is missing or of the wrong kind."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise BadResponses(
            f"{path} is damaged ({type(error).__name__}: {error}); write it again with "
            "`discreet fit --out`."
        ) from error


def _read_covariance(document: dict[str, Any], name: str = "covariance") -> Any:
    import numpy as np

    stored = document.get(name)
    return None if stored is None else np.array(stored, dtype=np.float64)


def _read_ladder(document: dict[str, Any]) -> Thresholds | None:
    """Return the thresholds of items with steps; None of right and wrong answers."""
    import numpy as np

    from discreet.results.estimate import Status
    from discreet.results.thresholds import Thresholds

    rows = document["items"]
    if document.get("model", "rasch") == "rasch":
        return None

    def spread(name: str, beyond: float, dtype: Any = np.float64) -> Any:
        """Put lists of unequal length below each other."""
        out = np.full((len(rows), max(len(row[name]) for row in rows)), beyond, dtype=dtype)
        for own, row in zip(out, rows, strict=True):
            own[: len(row[name])] = [np.nan if value is None else value for value in row[name]]
        return out

    counted = all("category_answers" in row for row in rows)
    return Thresholds(
        value=spread("thresholds", np.nan),
        se=spread("threshold_se", np.nan),
        status=tuple(tuple(map(Status, row["threshold_status"])) for row in rows),
        covariance=_read_covariance(document, "threshold_covariance"),
        categories=spread("category_answers", 0, np.int64) if counted else None,
        kept=tuple(tuple(row["categories"]) for row in rows),
        lowest=rows[0].get("lowest", 0),
    )


def build_estimate(document: dict[str, Any]) -> Estimate:
    """Return the estimate in a calibration; how it was found stays behind."""
    import numpy as np

    from discreet.results.estimate import Estimate, Solution, Status

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
        choice=str(document.get("choice", "")),
        model=str(document.get("model", "rasch")),
        covariance=_read_covariance(document),
        solution=Solution("read from a calibration file", 0, 0.0),
        answers=counts("answers"),
        right=counts("right"),
        persons=document.get("persons"),
        degrees=document.get("degrees"),
        se_method=str(document.get("se_method", "")),
        steps=tuple(int(row.get("steps", 1)) for row in rows),
        ladder=_read_ladder(document),
    )
