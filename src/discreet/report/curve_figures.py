"""Curves and thresholds of items on a page.

In: figures (``items/curves.py``). Out: sheets, which a template writes as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.items.curves import ItemCurve, ThresholdRows
from discreet.markup import minus
from discreet.report.svg import NAME_ROOM, PICTURE_ITEMS, Sheet, say_thinned, shorten_label
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
    what = "shares" if binary else "mean scores"
    sheet = _small_sheet(
        curve,
        f"Expected curve of {curve.item} and observed {what} in groups of persons",
        curve.steps,
    )
    sheet.y_axis(ticks=(0, 0.5, 1) if binary else range(curve.steps + 1))
    sheet.x_numbers(162, wanted=5)
    sheet.line("line", curve.ability.tolist(), curve.expected.tolist())
    for at, mean, answers in curve.points:
        said = f"{mean:.0%} of {answers} persons" if binary else f"{mean:.2f}, {answers} persons"
        sheet.dot("flag", at, mean, 3.5, said)
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
    sheet.x_numbers(162, wanted=5)
    chance = curve.expect_categories(curve.ability)
    for category, label in enumerate(curve.labels):
        kind = f"c{category % COLOURS}"
        again = " again" * (category >= COLOURS)
        sheet.line(f"{kind} curve{again}", curve.ability.tolist(), chance[:, category].tolist())
        for (at, _, answers), shares in zip(curve.points, curve.shares, strict=True):
            said = f"category {label}: {shares[category]:.0%} of {answers} persons"
            sheet.dot(f"{kind} share", at, shares[category], 2.5, said)
    for category, label in enumerate(curve.labels):
        peak = int(np.argmax(chance[:, category]))
        place = min(max(sheet.across(curve.ability[peak]), sheet.left + 7), sheet.width - 14)
        height = max(sheet.up(chance[peak, category]) - 4, sheet.top + 12)
        kind = f"name share c{category % COLOURS}"
        sheet.text(str(label), place, height, anchor="middle", kind=kind)
    return sheet


def draw_thresholds(rows: ThresholdRows, tell: Language = ENGLISH) -> Sheet:
    """Draw all thresholds of all items with their intervals; those out of order are flagged."""
    shown = rows
    count = len(rows.items)
    if count > PICTURE_ITEMS:
        keep = np.linspace(0, count - 1, PICTURE_ITEMS).round().astype(np.int64)
        shown, count = rows.take(keep), PICTURE_ITEMS
    low, high = float(np.nanmin(shown.lower)), float(np.nanmax(shown.upper))
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
    for place in range(count):
        _draw_row(sheet, shown, place, tell)
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


def _draw_row(sheet: Sheet, rows: ThresholdRows, place: int, tell: Language) -> None:
    name = rows.items[place]
    sheet.text(shorten_label(name, NAME_ROOM), sheet.left - 8, sheet.up(place) + 4, anchor="end")
    sheet.line("axis", (rows.location[place],) * 2, (place - 0.45, place + 0.45))
    steps = np.flatnonzero(~np.isnan(rows.value[place]))
    heights = place + _stagger([sheet.across(value) for value in rows.value[place, steps]])
    for step, height in zip(steps, heights, strict=True):
        ends = rows.lower[place, step], rows.upper[place, step]
        sheet.line("second" if rows.disordered[place][step] else "bar", ends, (height, height))
    for step, height in zip(steps, heights, strict=True):
        value, wrong = rows.value[place, step], rows.disordered[place][step]
        said = _describe_threshold(rows, place, int(step), tell)
        sheet.dot("node flag" if wrong else "node", value, height, RADIUS, said)
        across, up = sheet.across(value), sheet.up(height) + 4
        sheet.text(str(step + 1), across, up, anchor="middle", kind="step", tip=said)


def _describe_threshold(rows: ThresholdRows, place: int, step: int, tell: Language) -> str:
    below, above = rows.labels[place][step : step + 2]
    values = {
        "name": rows.items[place],
        "below": below,
        "above": above,
        "value": minus(f"{rows.value[place, step]:.2f}"),
    }
    if rows.disordered[place][step]:
        return tell("{name}, from category {below} to {above}: {value}, out of order", **values)
    return tell("{name}, from category {below} to {above}: {value}", **values)


def _stagger(across: Sequence[float]) -> FloatArray:
    """Return by how much circles move up and down in turn where they would cover each other."""
    close = len(across) > 1 and min(np.diff(np.sort(across))) < 2 * RADIUS
    return np.where(np.arange(len(across)) % 2 == 0, -0.2, 0.2) * close
