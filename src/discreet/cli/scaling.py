"""``--scale``: reported numbers beside logits, in tables, JSON documents and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.cli.options import option

if TYPE_CHECKING:
    from discreet.scales.reported import Scale, ScaleTarget


ScaleText = Annotated[
    str | None,
    option(
        "SCALE",
        "Also on this scale: mean and SD of the persons (500,100) or two points (0=500,1=600).",
        "--scale",
    ),
]


def read_wanted(text: str | None) -> Scale | ScaleTarget | None:
    """Return the scale that was typed, or refuse it before anything else is done."""
    if text is None:
        return None
    from discreet.scales.reported import parse_scale

    return parse_scale(text)


def needs_persons(target: Scale | ScaleTarget | None) -> bool:
    """Say whether abilities must be known before the scale is."""
    if target is None:
        return False
    from discreet.scales.reported import ScaleTarget  # loads SciPy

    return isinstance(target, ScaleTarget)


def settle_scale(
    target: Scale | ScaleTarget | None, responses: Any, calibration: Any
) -> Scale | None:
    """Return the scale; abilities are estimated where it depends on the persons."""
    if target is None:
        return None
    if not needs_persons(target):
        return target.settle(())
    from discreet.persons.scoring import score

    return target.settle(score(responses, calibration).ability)


def stored_scale(calibration: Path) -> Scale | None:
    """Return the scale of a calibration of ``fit --out --scale``; other ones have none."""
    from discreet.cli.calibrations import CALIBRATION_FILE, is_saved_result
    from discreet.report.calibration_file import read_document

    file = calibration / CALIBRATION_FILE if calibration.is_dir() else calibration
    if file.suffix != ".json" or not file.is_file() or is_saved_result(file):
        return None
    return read_document(file).scale


def add_scaled(columns: Mapping[str, list[Any]], scale: Scale | None) -> dict[str, list[Any]]:
    """Return a table with its columns on the scale too, where there is one."""
    return {**columns} if scale is None else scale.add_to(columns)


def name_scale(scale: Scale | None) -> dict[str, Any]:
    """Return what JSON documents say of the scale: nothing where there is none."""
    return {} if scale is None else {"scale": vars(scale)}
