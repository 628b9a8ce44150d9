"""Tables of items and difficulties, as calibrations and as anchors.

In: any data frame, or a Series of pandas. Out: an :class:`~discreet.Estimate`, or anchors by item.
A frame is one that :meth:`~discreet.Estimate.to_dataframe` made, or any other with the columns item
and difficulty, or with a row for every step and the columns item, step and threshold.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import count
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadUsage
from discreet.results.calibrated import list_numbers, make_estimate
from discreet.results.estimate import Estimate, Status
from discreet.results.thresholds import CATEGORIES, Thresholds, pad_steps
from discreet.tables.opener import read_columns
from discreet.tables.sources import as_arrow, is_data_frame
from discreet.text import read_cell
from discreet.types import FloatArray

#: Columns that say what was answered; a calibration need not have them.
TOTALS = ("answers", "right")


def read_calibration(source: Any) -> Any:
    """Return a data frame of items and difficulties as an estimate; others stay as they are."""
    if isinstance(source, Estimate):
        return source
    if is_series(source):
        return dict(zip(source.index.tolist(), source.tolist(), strict=True))
    if not is_data_frame(source):
        return source
    table = as_arrow(source)
    columns = {name.strip().lower() for name in table.column_names}
    if {"step", "threshold"} <= columns:
        return _stack(table, has_errors="se" in columns)
    names = ("item", "difficulty", "se") if "se" in columns else ("item", "difficulty")
    items, difficulty, *errors = read_columns(table, names, "calibrations", numbers=names[1:])
    estimate = make_estimate(items, difficulty, errors[0] if errors else [None] * len(items))
    if set(TOTALS) <= columns:
        estimate = _add_totals(estimate, table)
    return _widen(estimate, table, columns) if "threshold_1" in columns else estimate


def _add_totals(estimate: Estimate, table: pa.Table) -> Estimate:
    """Add how many persons answered each item, and how many right, where all are numbers."""
    cells = read_columns(table, TOTALS, "calibrations", numbers=TOTALS)
    totals = [list_numbers(own, name) for own, name in zip(cells, TOTALS, strict=True)]
    if not np.isfinite(totals).all():
        return estimate
    answers, right = (own.astype(np.int64) for own in totals)
    return replace(estimate, answers=answers, right=right)


def is_series(source: object) -> bool:
    """Say whether something is a Series of pandas, which may go from items to difficulties."""
    return hasattr(source, "iloc") and hasattr(source, "index") and not hasattr(source, "columns")


def read_ladders(
    table: pa.Table, row_name: str, *, has_errors: bool = False
) -> dict[str, list[list[float]]]:
    """Return ``[threshold, se]`` of every step of every item, from a table with a row for each.

    Steps stand in any order; ``row_name`` is what messages call the rows. A blank is NaN.
    """
    names = ("item", "step", "threshold", "se")[: 4 if has_errors else 3]
    rows = zip(*read_columns(table, names, row_name, numbers=names[1:]), strict=True)
    ladders: dict[str, dict[float, list[float]]] = {}
    for item, *cells in rows:
        name = read_cell(item) if isinstance(item, str) else str(item)
        ladder = ladders.setdefault(name, {})
        step, *values = _read_row(cells, f"the {row_name} of item '{name}'")
        if step in ladder:
            raise BadUsage(
                f"the {row_name} have step {step:g} of item '{name}' twice; keep one row"
            )
        ladder[step] = values
    for name, ladder in ladders.items():
        if sorted(ladder) != list(range(1, len(ladder) + 1)):
            listed = ", ".join(f"{step:g}" for step in sorted(ladder))
            raise BadUsage(
                f"the {row_name} of item '{name}' have the steps {listed}; all of its steps from 1 "
                "on are needed"
            )
    return {name: [ladder[step] for step in sorted(ladder)] for name, ladder in ladders.items()}


def _read_row(cells: Sequence[object], subject: str) -> list[float]:
    try:
        return list(map(float, list_numbers(cells, "threshold")))
    except BadUsage:
        raise BadUsage(
            f"{subject} have the step {cells[0]!r} and the threshold {cells[1]!r}; both must be "
            "numbers. Leave the item out where it has none"
        ) from None


def _stack(table: pa.Table, *, has_errors: bool) -> Estimate:
    """Return the estimate of a table with a row for every step."""
    ladders = read_ladders(table, "calibrations", has_errors=has_errors)
    values = [[step[0] for step in own] for own in ladders.values()]
    errors = [[step[1] if has_errors else np.nan for step in own] for own in ladders.values()]
    estimate = make_estimate(ladders, [np.mean(own) for own in values], [None] * len(ladders))
    categories = [tuple(range(len(own) + 1)) for own in values]
    return _add_ladder(estimate, pad_steps(values), pad_steps(errors), categories)


def _widen(estimate: Estimate, table: pa.Table, columns: Container[str]) -> Estimate:
    """Add the columns of thresholds, as :meth:`Thresholds.to_columns` names them."""
    most_steps = next(step for step in count(1) if f"threshold_{step + 1}" not in columns)
    names = [f"threshold_{step}{kind}" for kind in ("", "_se") for step in range(1, most_steps + 1)]
    categories, *cells = read_columns(table, (CATEGORIES, *names), "calibrations", numbers=names)
    numbers = [list_numbers(own, name) for own, name in zip(cells, names, strict=True)]
    value, error = np.stack(numbers[:most_steps], axis=1), np.stack(numbers[most_steps:], axis=1)
    try:
        kept_categories = [tuple(map(int, own.split())) for own in categories]
    except (AttributeError, ValueError):
        raise BadUsage(
            f"the column '{CATEGORIES}' of a calibration must hold the categories of an item that "
            "its steps lie between, as in '0 1 2'"
        ) from None
    return _add_ladder(estimate, value, error, kept_categories)


def _add_ladder(
    estimate: Estimate, value: FloatArray, error: FloatArray, categories: Sequence[tuple[int, ...]]
) -> Estimate:
    """Return the estimate with thresholds; an item that lacks one has no difficulty."""
    steps = [len(own) - 1 for own in categories]
    status = [
        tuple(Status.NO_ANSWERS if np.isnan(one) else Status.ESTIMATED for one in own[:most])
        for own, most in zip(value, steps, strict=True)
    ]
    if all(most == 1 for most in steps):
        return estimate
    ladder = Thresholds(value, error, tuple(status), kept=tuple(categories))
    return replace(estimate, steps=tuple(steps), model="partial-credit", ladder=ladder)


def read_anchors(anchors: object, *, has_steps: bool) -> Any:
    """Return the anchors of a table (a file, a data frame); others stay as they are.

    A table has the columns item and difficulty; for answers with steps item, step and threshold.
    """
    if is_series(anchors):
        return read_calibration(anchors)
    if isinstance(anchors, str | PathLike) or is_data_frame(anchors):
        return _read_steps(anchors) if has_steps else _read_pairs(anchors)
    return anchors


def _read_pairs(table: pa.Table) -> list[tuple[str, Any]]:
    """Return the items and difficulties of a table (a file, a data frame); blanks are left out."""
    columns = read_columns(table, ("item", "difficulty"), "anchors", numbers=("difficulty",))
    rows = zip(*columns, strict=True)
    # NaN, which differs from itself, is how data frames leave a cell blank.
    filled = [(item, value) for item, value in rows if value not in (None, "") and value == value]
    return [(read_cell(item) if isinstance(item, str) else item, value) for item, value in filled]


def _read_steps(table: pa.Table) -> dict[str, list[float]]:
    """Return the thresholds of a table with a row for every step, steps in any order."""
    read = read_ladders(table, "anchors")
    thresholds = {name: [own[0] for own in steps] for name, steps in read.items()}
    blank = [name for name, own in thresholds.items() if not np.isfinite(own).all()]
    if blank:
        raise BadUsage(
            f"the anchors of item '{blank[0]}' lack a threshold; all thresholds of an anchored "
            "item are held. Leave the item out to have it estimated"
        )
    return thresholds
