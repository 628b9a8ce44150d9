"""The document of a calibration: what ``fit --json`` prints and ``fit --out`` keeps.

In: an estimate. Out: plain values, or a file, which
:mod:`discreet.report.calibration_file` reads back. Confidential.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.output import json_text, list_rows
from discreet.cli.scaling import add_scaled, name_scale

if TYPE_CHECKING:
    from discreet.report.summary import Diagnostics
    from discreet.results.estimate import Estimate
    from discreet.scales.reported import Scale
    from discreet.types import FloatArray

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
        rows = [
            {**row, **thresholds}
            for row, thresholds in zip(rows, list_thresholds(estimate), strict=True)
        ]
    field_names = ("persons", "method", "choice", "model", "se_method")
    about = {name: getattr(estimate, name) for name in field_names}
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
    from discreet.report.calibration_file import FORMAT, VERSION

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
