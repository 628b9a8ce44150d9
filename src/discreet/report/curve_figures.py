"""Curves and thresholds of items on a page.

In: figures (``items/curves.py``). Out: sheets, which a template writes as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.items.curves import ItemCurve, ThresholdRows
from discreet.report.svg import NAME_ROOM, PICTURE_ITEMS, Sheet, say_thinned, shorten_label
from discreet.text import minus
from discreet.types import FloatArray
from discreet.words import ENGLISH, Language

COLOURS = 5
"""Colours of categories; after so many they come again."""
ROW = 28
"""Height of an item's row with a circle for each threshold."""
RADIUS = 7.5
"""Of such a circle."""


def _small_sheet(curve: ItemCurve, description: str, top: float) -> Sheet:
    return Sheet(
        x=(float(curve.ability[0]), float(curve.ability[-1])),
        y=(0, top),
        description=description,
        width=240,
        height=170,
        left=34,
        right=8,
        top=8,
        bottom=24,
    )


def draw_curve(curve: ItemCurve) -> Sheet:
    """Draw one item's expected score with the observed means; of right/wrong items, shares."""
    binary = curve.steps == 1
    noun = "shares" if binary else "mean scores"
    sheet = _small_sheet(
        curve,
        f"Expected curve of {curve.item} and observed {noun} in groups of persons",
        curve.steps,
    )
    sheet.y_axis(ticks=(0, 0.5, 1) if binary else range(curve.steps + 1))
    sheet.x_numbers(162, count=5)
    sheet.line("line", curve.ability.tolist(), curve.expected.tolist())
    for at, mean, answers in curve.points:
        tip = f"{mean:.0%} of {answers} persons" if binary else f"{mean:.2f}, {answers} persons"
        sheet.dot("flag", at, mean, 3.5, tip)
    return sheet


def draw_categories(curve: ItemCurve) -> Sheet:
    """Draw how likely each category is, with the observed shares; a label stands at its peak."""
    sheet = _small_sheet(
        curve,
        f"How likely each category of {curve.item} is at each ability, and observed shares in "
        "groups of persons",
        1,
    )
    sheet.y_axis(ticks=(0, 0.5, 1))
    sheet.x_numbers(162, count=5)
    chance = curve.expect_categories(curve.ability)
    for category, label in enumerate(curve.labels):
        kind = f"c{category % COLOURS}"
        suffix = " again" * (category >= COLOURS)
        sheet.line(f"{kind} curve{suffix}", curve.ability.tolist(), chance[:, category].tolist())
        for (at, _, answers), shares in zip(curve.points, curve.shares, strict=True):
            tip = f"category {label}: {shares[category]:.0%} of {answers} persons"
            sheet.dot(f"{kind} share", at, shares[category], 2.5, tip)
    for category, label in enumerate(curve.labels):
        peak = int(np.argmax(chance[:, category]))
        left = min(max(sheet.across(curve.ability[peak]), sheet.left + 7), sheet.width - 14)
        height = max(sheet.up(chance[peak, category]) - 4, sheet.top + 12)
        kind = f"name share c{category % COLOURS}"
        sheet.text(str(label), left, height, anchor="middle", kind=kind)
    return sheet


def draw_thresholds(rows: ThresholdRows, tell: Language = ENGLISH) -> Sheet:
    """Draw all thresholds of all items with their intervals; those out of order are flagged."""
    visible = rows
    count = len(rows.items)
    if count > PICTURE_ITEMS:
        keep = np.linspace(0, count - 1, PICTURE_ITEMS).round().astype(np.int64)
        visible, count = rows.take(keep), PICTURE_ITEMS
    low, high = float(np.nanmin(visible.lower)), float(np.nanmax(visible.upper))
    pad = 0.05 * max(high - low, 0.5)
    sheet = Sheet(
        x=(low - pad, high + pad),
        y=(count - 0.5, -0.5),  # rows count downwards from the hardest
        description=_describe(rows, tell),
        height=60 + ROW * count,
        left=116,
        note=say_thinned(len(rows.items), tell=tell),
    )
    sheet.x_axis(tell("thresholds in logits, harder to the right"))
    for row in range(count):
        _draw_row(sheet, visible, row, tell)
    return sheet


def _describe(rows: ThresholdRows, tell: Language) -> str:
    return tell.count(
        sum(map(any, rows.disordered)),
        "Thresholds of {count} items with 95% intervals; {number} item has thresholds in the wrong "
        "order. The table has the numbers",
        "Thresholds of {count} items with 95% intervals; {number} items have thresholds in the "
        "wrong order. The table has the numbers",
        count=len(rows.items),
    )


def _draw_row(sheet: Sheet, rows: ThresholdRows, row: int, tell: Language) -> None:
    name = rows.items[row]
    sheet.text(shorten_label(name, NAME_ROOM), sheet.left - 8, sheet.up(row) + 4, anchor="end")
    sheet.line("axis", (rows.location[row],) * 2, (row - 0.45, row + 0.45))
    steps = np.flatnonzero(~np.isnan(rows.value[row]))
    heights = row + _stagger([sheet.across(value) for value in rows.value[row, steps]])
    for step, height in zip(steps, heights, strict=True):
        ends = rows.lower[row, step], rows.upper[row, step]
        sheet.line("second" if rows.disordered[row][step] else "bar", ends, (height, height))
    for step, height in zip(steps, heights, strict=True):
        value, wrong = rows.value[row, step], rows.disordered[row][step]
        tip = _describe_threshold(rows, row, int(step), tell)
        sheet.dot("node flag" if wrong else "node", value, height, RADIUS, tip)
        across, up = sheet.across(value), sheet.up(height) + 4
        sheet.text(str(step + 1), across, up, anchor="middle", kind="step", tip=tip)


def _describe_threshold(rows: ThresholdRows, row: int, step: int, tell: Language) -> str:
    below, above = rows.labels[row][step : step + 2]
    values = {
        "name": rows.items[row],
        "below": below,
        "above": above,
        "value": minus(f"{rows.value[row, step]:.2f}"),
    }
    if rows.disordered[row][step]:
        return tell("{name}, from category {below} to {above}: {value}, out of order", **values)
    return tell("{name}, from category {below} to {above}: {value}", **values)


def _stagger(across: Sequence[float]) -> FloatArray:
    """Return by how much circles move up and down in turn where they would cover each other."""
    close = len(across) > 1 and min(np.diff(np.sort(across))) < 2 * RADIUS
    return np.where(np.arange(len(across)) % 2 == 0, -0.2, 0.2) * close
