"""What may stand for a calibration: an estimate, what holds one, a bank, a data frame.

In: whatever a caller has. Out: an :class:`~discreet.Estimate`. A frame is one that
:meth:`~discreet.Estimate.to_dataframe` made, or any other with the columns item and difficulty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.errors import BadUsage
from discreet.results.estimate import Estimate, Solution, Status
from discreet.tables.ids import check_items
from discreet.tables.opener import read_columns
from discreet.tables.sources import as_arrow, is_frame
from discreet.types import FloatArray


def as_estimate(calibration: Any, purpose: str) -> Estimate:
    """Return a calibration as an estimate, or say what is needed for the purpose."""
    found = read_calibration(getattr(calibration, "estimate", calibration))
    if isinstance(found, Estimate):
        return found
    if isinstance(found, Mapping):
        return _make(found.keys(), list(found.values()), [None] * len(found))
    if all(hasattr(found, name) for name in ("items", "difficulty", "se")):
        return _make(found.items, found.difficulty, found.se)
    raise BadUsage(
        f"{purpose} needs a calibration: the result of fit, a release, a bank, or a data frame "
        f"with the columns item, difficulty and se; found {type(calibration).__name__}. Fit "
        "answers first, as in fit(answers)."
    )


def read_calibration(source: Any) -> Any:
    """Return a data frame of items and difficulties as an estimate; others stay as they are."""
    if is_series(source):
        return dict(zip(source.index.tolist(), source.tolist(), strict=True))
    if not is_frame(source):
        return source
    table = as_arrow(source)
    has_errors = "se" in [name.strip().lower() for name in table.column_names]
    names = ("item", "difficulty", "se") if has_errors else ("item", "difficulty")
    items, difficulty, *errors = read_columns(table, names, "calibrations", numbers=names[1:])
    return _make(items, difficulty, errors[0] if errors else [None] * len(items))


def is_series(source: Any) -> bool:
    """Say whether something is a Series of pandas, which may go from items to difficulties."""
    return hasattr(source, "iloc") and hasattr(source, "index") and not hasattr(source, "columns")


def _make(items: Any, difficulty: Any, se: Any) -> Estimate:
    names = check_items(list(items), len(items))
    values = _read_numbers(difficulty, "difficulty")
    return Estimate(
        items=names,
        difficulty=values,
        se=_read_numbers(se, "se"),
        status=tuple(Status.NO_ANSWERS if np.isnan(one) else Status.ESTIMATED for one in values),
        method="given",
        solution=Solution(solver="given by the caller", iterations=0, residual=0.0),
    )


def _read_numbers(cells: Any, what: str) -> FloatArray:
    blank = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in blank])
    except (TypeError, ValueError):
        raise BadUsage(
            f"the column '{what}' of a calibration holds something that is no number; leave cells "
            "blank where an item has none"
        ) from None
