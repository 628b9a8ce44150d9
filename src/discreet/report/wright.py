"""The Wright map of a page: persons to the left, items with their names to the right.

In: a :class:`WrightMap`. Out: a sheet. One row is one bin of the scale; a row whose names have no
room writes the first ones and how many more there are, and its tooltip has them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.items.curves import BIN
from discreet.report.pictures import WrightMap
from discreet.report.svg import Sheet, shorten_label, text_width
from discreet.text import count_of, isolate, minus

SCALE, ITEMS, NAMES, WIDTH = 124.0, 158.0, 206.0, 480.0
"""Where bars of persons end, bars of items begin, their names begin, and the map ends."""
WIDER = (-260.0, 840.0)
"""Where a wide map begins and ends, in the same units."""
MOST_ROWS = 40
"""Rows of the height of a line of text; more of them are a little lower."""
BETWEEN = " · "
"""Stands between names: it is rare within them."""


def draw_wright(chart: WrightMap, *, wide: bool = False) -> Sheet:
    """Draw abilities to the left of one upright scale, difficulties and names to the right."""
    ends = WIDER if wide else (0.0, WIDTH)
    low, high = chart.reach
    rows = round((high - low) / BIN)
    sheet = Sheet(
        x=ends,
        y=(low, high),
        description=_describe(chart),
        width=ends[1] - ends[0],
        height=26 + rows * (16 if rows <= MOST_ROWS else 13.5) + 26,
        left=0,
        right=0,
        top=26,
        bottom=26,
    )
    _draw_scale(sheet, chart)
    _draw_persons(sheet, chart)
    _draw_items(sheet, chart)
    return sheet


def _describe(chart: WrightMap) -> str:
    hardest, easiest = chart.names[0], chart.names[-1]
    numbers = "thresholds" if chart.steps else "difficulties"
    return (
        f"Wright map. Abilities of {count_of(chart.persons, 'person')}, mean {chart.mean:.2f}; "
        f"{numbers} of {count_of(chart.n_items)} from {easiest} ({chart.difficulty[-1]:.2f}) "
        f"to {hardest} ({chart.difficulty[0]:.2f}), in logits. The table has the numbers."
    )


def _draw_scale(sheet: Sheet, chart: WrightMap) -> None:
    middle = sheet.across((SCALE + ITEMS) / 2)
    sheet.text(
        count_of(chart.persons, "person"), sheet.across(SCALE), 12, anchor="end", kind="quiet"
    )
    sheet.text(chart.count, sheet.across(ITEMS), 12, kind="quiet")
    for tick in range(int(sheet.y[0]), int(sheet.y[1]) + 1):
        sheet.line("grid", (sheet.x[0], SCALE), (tick, tick))
        sheet.line("grid", (ITEMS, sheet.x[1]), (tick, tick))
        sheet.text(minus(str(tick)), middle, sheet.up(tick) + 4, anchor="middle")
    for edge in (SCALE, ITEMS):
        sheet.line("axis", (edge, edge), sheet.y)
    sheet.text(
        "logits: abler and harder upwards", middle, sheet.height - 6, anchor="middle", kind="quiet"
    )


def _draw_persons(sheet: Sheet, chart: WrightMap) -> None:
    unit = (SCALE - sheet.x[0] - 6) / max(int(chart.counts.max()), 1)
    for start, count in zip(chart.starts.tolist(), chart.counts.tolist(), strict=True):
        if count:
            tip = f"{count_of(count, 'person')} from {start:g} to {start + BIN:g}"
            sheet.box("box", (SCALE - unit * count, SCALE), (start, start + BIN), minus(tip))
    sheet.arrow("flag", SCALE + 1, chart.mean, 7, f"mean ability {chart.mean:.2f}")


def _draw_items(sheet: Sheet, chart: WrightMap) -> None:
    unit = min(9.0, (NAMES - 8 - ITEMS) / int(chart.level.max()))
    for centre in np.unique(chart.centre).tolist():
        mine = np.flatnonzero(chart.centre == centre)
        ends = (centre - BIN / 2, centre + BIN / 2)
        tip = "\n".join(f"{chart.names[i]}: {minus(f'{chart.difficulty[i]:.2f}')}" for i in mine)
        sheet.box("box", (ITEMS, ITEMS + unit * len(mine)), ends, tip)
        names = _join_names(chart, mine.tolist(), sheet.x[1] - NAMES)
        sheet.text(names, sheet.across(NAMES), sheet.up(centre) + 4, tip=tip)
    mean = float(chart.difficulty.mean())
    sheet.arrow("flag", ITEMS - 1, mean, -7, minus(f"mean {chart.number} {mean:.2f}"))


def _join_names(chart: WrightMap, entries: Sequence[int], room: float) -> str:
    """Write as many names as fit on a line, and how many more there are."""
    # One long name would leave no room for the others.
    name_room = room / 2.5 if len(entries) > 1 else room
    names = [_shorten(chart.items[i], chart.marks[i], name_room) for i in entries]
    count = max(_count_fitting(names, room), 1)
    hidden = len(names) - count
    return BETWEEN.join(map(isolate, names[:count])) + (f" +{hidden}" if hidden else "")


def _shorten(item: str, mark: str, room: float) -> str:
    """Shorten a name before the step that it ends with, which tells it from its neighbours."""
    return shorten_label(item, room - text_width(mark)) + mark


def _count_fitting(names: Sequence[str], room: float) -> int:
    used = -text_width(BETWEEN)
    for count, name in enumerate(names):
        used += text_width(BETWEEN + name)
        hidden = len(names) - count - 1
        if used + (text_width(f" +{hidden}") if hidden else 0) > room:
            return count
    return len(names)
