"""The Wright map of a page: persons to the left, items with their names to the right.

In: a :class:`WrightMap`. Out: a sheet. One row is one bin of the scale; a row whose names have no
room writes the first ones and how many more there are, and its tooltip has them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.items.curves import BIN
from discreet.markup import count_of, isolate, minus
from discreet.report.pictures import WrightMap
from discreet.report.svg import Sheet, shorten_label, text_width

SCALE, ITEMS, NAMES, WIDTH = 124.0, 158.0, 206.0, 480.0
"""Where bars of persons end, bars of items begin, their names begin, and the map ends."""
MOST_ROWS = 40
"""Rows of the height of a line of text; more of them are a little lower."""
BETWEEN = " · "
"""Stands between names: it is rare within them."""


def draw_wright(shown: WrightMap) -> Sheet:
    """Draw abilities to the left of one upright scale, difficulties and names to the right."""
    low, high = shown.reach
    rows = round((high - low) / BIN)
    sheet = Sheet(
        x=(0, WIDTH),
        y=(low, high),
        description=_describe(shown),
        width=WIDTH,
        height=26 + rows * (16 if rows <= MOST_ROWS else 13.5) + 26,
        left=0,
        right=0,
        top=26,
        bottom=26,
    )
    _draw_scale(sheet, shown)
    _draw_persons(sheet, shown)
    _draw_items(sheet, shown)
    return sheet


def _describe(shown: WrightMap) -> str:
    hardest, easiest = shown.names[0], shown.names[-1]
    numbers = "thresholds" if shown.steps else "difficulties"
    return (
        f"Wright map. Abilities of {count_of(shown.persons, 'person')}, mean {shown.mean:.2f}; "
        f"{numbers} of {count_of(shown.n_items)} from {easiest} ({shown.difficulty[-1]:.2f}) "
        f"to {hardest} ({shown.difficulty[0]:.2f}), in logits. The table has the numbers."
    )


def _draw_scale(sheet: Sheet, shown: WrightMap) -> None:
    middle = (SCALE + ITEMS) / 2
    sheet.text(count_of(shown.persons, "person"), SCALE, 12, anchor="end", kind="quiet")
    sheet.text(shown.count, ITEMS, 12, kind="quiet")
    for tick in range(int(sheet.y[0]), int(sheet.y[1]) + 1):
        sheet.line("grid", (0, SCALE), (tick, tick))
        sheet.line("grid", (ITEMS, WIDTH), (tick, tick))
        sheet.text(minus(str(tick)), middle, sheet.up(tick) + 4, anchor="middle")
    for place in (SCALE, ITEMS):
        sheet.line("axis", (place, place), sheet.y)
    sheet.text(
        "logits: abler and harder upwards", middle, sheet.height - 6, anchor="middle", kind="quiet"
    )


def _draw_persons(sheet: Sheet, shown: WrightMap) -> None:
    unit = (SCALE - 6) / max(int(shown.counts.max()), 1)
    for start, count in zip(shown.starts.tolist(), shown.counts.tolist(), strict=True):
        if count:
            tip = f"{count_of(count, 'person')} from {start:g} to {start + BIN:g}"
            sheet.box("box", (SCALE - unit * count, SCALE), (start, start + BIN), minus(tip))
    sheet.arrow("flag", SCALE + 1, shown.mean, 7, f"mean ability {shown.mean:.2f}")


def _draw_items(sheet: Sheet, shown: WrightMap) -> None:
    unit = min(9.0, (NAMES - 8 - ITEMS) / int(shown.level.max()))
    for centre in np.unique(shown.centre).tolist():
        mine = np.flatnonzero(shown.centre == centre)
        ends = (centre - BIN / 2, centre + BIN / 2)
        tip = "\n".join(f"{shown.names[i]}: {minus(f'{shown.difficulty[i]:.2f}')}" for i in mine)
        sheet.box("box", (ITEMS, ITEMS + unit * len(mine)), ends, tip)
        names = _join_names(shown, mine.tolist(), WIDTH - NAMES)
        sheet.text(names, NAMES, sheet.up(centre) + 4, tip=tip)
    mean = float(shown.difficulty.mean())
    sheet.arrow("flag", ITEMS - 1, mean, -7, minus(f"mean {shown.number} {mean:.2f}"))


def _join_names(shown: WrightMap, entries: Sequence[int], room: float) -> str:
    """Write as many names as fit on a line, and how many more there are."""
    # One long name would leave no room for the others.
    own = room / 2.5 if len(entries) > 1 else room
    names = [_shorten(shown.items[i], shown.marks[i], own) for i in entries]
    kept = max(_count_fitting(names, room), 1)
    rest = len(names) - kept
    return BETWEEN.join(map(isolate, names[:kept])) + (f" +{rest}" if rest else "")


def _shorten(item: str, mark: str, room: float) -> str:
    """Shorten a name before the step that it ends with, which tells it from its neighbours."""
    return shorten_label(item, room - text_width(mark)) + mark


def _count_fitting(names: Sequence[str], room: float) -> int:
    used = -text_width(BETWEEN)
    for kept, name in enumerate(names):
        used += text_width(BETWEEN + name)
        rest = len(names) - kept - 1
        if used + (text_width(f" +{rest}") if rest else 0) > room:
            return kept
    return len(names)
