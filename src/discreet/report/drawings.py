"""The pictures of the pages, drawn as marks on a sheet.

In: figures (``report/pictures.py``, ``items/curves.py``). Out: sheets, which a template writes as
SVG.

The Wright map has persons to the left, items with their names to the right. One row is one bin of
the scale; a row whose names have no room writes the first ones and how many more there are, and its
tooltip has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10

import numpy as np

from discreet.items.curves import BIN, ItemCurve, ThresholdRows
from discreet.items.distractors import OptionMap
from discreet.items.group_curves import GroupCurves
from discreet.items.residuals import InformationCurve
from discreet.planning.plan import Plan
from discreet.report import pictures
from discreet.report.sheet import NAME_ROOM, Sheet, shorten_label, text_width
from discreet.text import count_of, isolate, minus, name_some
from discreet.types import FloatArray
from discreet.words import ENGLISH, Language

#: Outliers whose names a picture writes; more would cover each other.
NAMED_DOTS = 12
#: More dots than this are drawn small, or they hide each other.
MANY_DOTS = 100
#: Height of a line of text.
LINE = 13
#: Room to the left of rows with names.
NAMES_LEFT = 116
#: Line and dots of a wrong option that nothing is wrong with.
OTHER = ("other", "mute")


def draw_difficulties(rows: pictures.ItemRows, tell: Language = ENGLISH) -> Sheet:
    """Draw items in order of difficulty (or objects, of strength) with their intervals."""
    has_width = bool((rows.upper > rows.lower).any())
    return draw_rows(
        pictures.thin_rows(rows),
        tell.of("{title} with 95% intervals; the table has the numbers")
        if has_width
        else tell.of("{title}; the table has the numbers"),
        tell.of("{number} in logits, {scale} to the right"),
        say_thinned(len(rows.items), tell),
    )


def say_thinned(count: int, tell: Language = ENGLISH) -> str:
    """Say that a picture does not show all; nothing where it does."""
    if count <= (most := pictures.PICTURE_ITEMS):
        return ""
    return tell.of("{shown} of {count} {items}, evenly chosen by rank.", shown=most, count=count)


def draw_differences(chart: pictures.GroupRows) -> Sheet:
    """Draw how much harder items are for a group than its ability explains; 0 is no difference."""
    count, most = len(chart.rows.items), pictures.PICTURE_ITEMS
    return draw_rows(
        pictures.keep_largest(chart.rows),
        f"Differences between {chart.focal} and {chart.reference} with 95% intervals; the table "
        "has the numbers",
        f"logits harder for {shorten_label(chart.focal, NAME_ROOM)}",
        f"The {most} largest differences of {count} items." * (count > most),
        zero=True,
    )


def draw_rows(
    rows: pictures.ItemRows,
    description: str,
    label: str,
    note: str,
    *,
    zero: bool = False,
    left: float = NAMES_LEFT,
) -> Sheet:
    """Draw rows with their intervals, and names on the left."""
    sheet = _lay_rows(rows, description, note, 18, [0.0] if zero else [], left=left)
    sheet.x_axis(label)
    if zero:
        sheet.line("axis", (0, 0), sheet.y)
    for index, name in enumerate(rows.items):
        _name_row(sheet, name, index)
        sheet.line("bar", (rows.lower[index], rows.upper[index]), (index, index))
        values = (f"{v:.2f}" for v in (rows.value[index], rows.lower[index], rows.upper[index]))
        tip = "{}: {} [{}; {}]" if rows.upper[index] > rows.lower[index] else "{}: {}"
        sheet.dot("dot", rows.value[index], index, tip=minus(tip.format(name, *values)))
    return sheet


def _lay_rows(
    rows: pictures.ItemRows | ThresholdRows,
    description: str,
    note: str,
    height: float,
    ends: Sequence[float] = (),
    *,
    left: float = NAMES_LEFT,
) -> Sheet:
    """Return a sheet with a row of some height for each item, and room for all intervals."""
    low = float(min([np.nanmin(rows.lower), *ends]))
    high = float(max([np.nanmax(rows.upper), *ends]))
    pad = 0.05 * max(high - low, 0.5)
    count = len(rows.items)
    return Sheet(
        x=(low - pad, high + pad),
        y=(count - 0.5, -0.5),  # rows count downwards from the hardest
        description=description,
        height=60 + height * count,
        left=left,
        note=note,
    )


def _name_row(sheet: Sheet, name: str, row: float) -> None:
    label = shorten_label(name, sheet.left - NAMES_LEFT + NAME_ROOM)
    sheet.text(label, sheet.left - 8, sheet.up(row) + 4, anchor="end")


def draw_information(curve: InformationCurve, limit: float) -> Sheet:
    """Draw the standard error of an ability if a person answers every item, up to ``limit``."""
    ability, error = curve.ability, curve.se
    best, top = int(np.argmin(error)), ceil(10 * limit) / 10
    sheet = Sheet(
        x=(float(ability[0]), float(ability[-1])),
        y=(0, top),
        description=f"Standard error of an ability; smallest, {error[best]:.2f}, at ability "
        f"{ability[best]:.1f}",
        top=24,
    )
    sheet.x_axis("ability in logits")
    sheet.y_axis("standard error in logits")
    sheet.line("line", ability[error <= top].tolist(), error[error <= top].tolist())
    return sheet


def draw_fit(chart: pictures.FitMap) -> Sheet:
    """Draw a fit mean square against difficulty, with its range by chance behind it."""
    b, value = chart.difficulty, chart.value
    ends = np.concatenate([value, chart.low, chart.high])
    pad = 0.08 * max(float(np.ptp(b)), 1.0)
    x = (float(b.min()) - pad, float(b.max()) + pad)
    sheet = Sheet(
        x=x,
        y=(min(0.4, float(np.nanmin(ends)) - 0.1), max(1.6, float(np.nanmax(ends)) + 0.1)),
        description=_describe_fit(chart),
        top=24,
    )
    _draw_ranges(sheet, chart)
    sheet.x_axis(f"{chart.number} in logits", grid=False)
    sheet.y_axis(f"{chart.statistic} mean square (1 is expected)")
    smallest, growth = (3, 5) if len(b) <= MANY_DOTS else (2, 2)
    columns = (chart.items, b, value, chart.unsure, chart.outside)
    for name, difficulty, height, unsure, outside in zip(*columns, strict=True):
        tip = f"{name}: {chart.statistic} {height:.2f}"
        radius = smallest + growth * unsure
        sheet.dot("ring flag" if outside else "ring", difficulty, height, radius, tip)
    _name_dots(sheet, [(chart.items[i], b[i], value[i]) for i in chart.worst[:NAMED_DOTS]])
    return sheet


def _draw_ranges(sheet: Sheet, chart: pictures.FitMap) -> None:
    """Draw a bar behind every circle; one band where all have the same limits."""
    if np.ptp(chart.low) == 0 and np.ptp(chart.high) == 0:
        sheet.box("band", sheet.x, (float(chart.low[0]), float(chart.high[0])))
        return
    half = 0.006 * (sheet.x[1] - sheet.x[0])
    for difficulty, low, high in zip(chart.difficulty, chart.low, chart.high, strict=True):
        if np.isfinite(low + high):
            sheet.box("band", (difficulty - half, difficulty + half), (low, high))
    sheet.line("axis", sheet.x, (1, 1))


def _describe_fit(chart: pictures.FitMap) -> str:
    high = int((chart.outside & (chart.value > 1)).sum())
    low = int(chart.outside.sum()) - high
    worst = f"; furthest out: {name_some([chart.items[i] for i in chart.worst])}" * (high + low > 0)
    return (
        f"{chart.statistic.capitalize()} mean squares of {count_of(len(chart.items))} against "
        f"{chart.number}: {high:,} above and {low:,} below their limits{worst}"
    )


def draw_contrast(chart: pictures.ContrastMap) -> Sheet:
    """Draw loadings on the first component of the residuals against difficulty."""
    b, value = chart.difficulty, chart.loading
    pad = 0.08 * max(float(np.ptp(b)), 1.0)
    reach = max(0.5, 1.1 * float(np.abs(value).max()))
    sheet = Sheet(
        x=(float(b.min()) - pad, float(b.max()) + pad),
        y=(-reach, reach),
        description=f"Loadings of {len(chart.items)} items on the first component of the "
        f"residuals, which is worth {chart.eigenvalue:.1f} items, {chart.expected:.1f} by chance",
        top=24,
    )
    sheet.x_axis(f"{chart.number} in logits", grid=False)
    sheet.y_axis("loading on the first contrast")
    sheet.line("axis", sheet.x, (0, 0))
    radius = 4 if len(b) <= MANY_DOTS else 2.5
    for name, difficulty, height in zip(chart.items, b, value, strict=True):
        kind = "ring flag" if height > 0 else "ring"
        sheet.dot(kind, difficulty, height, radius, f"{name}: loading {height:.2f}")
    _name_dots(sheet, [(chart.items[i], b[i], value[i]) for i in chart.ends])
    return sheet


def _name_dots(sheet: Sheet, dots: Sequence[tuple[str, float, float]]) -> None:
    """Write names beside dots, the first ones first, where there is room for them."""
    taken: list[tuple[float, float, float]] = []
    for name, x, y in dots:
        words = shorten_label(name, NAME_ROOM)
        width, across = text_width(words), sheet.across(x)
        right = across + width + 12 < sheet.width
        start = across + 10 if right else across - 10 - width
        free = [
            height
            for height in (sheet.up(y) + shift for shift in (4, -9, 17))
            if sheet.top <= height <= sheet.foot - 4
            and not any(
                abs(height - h) < LINE and start < e and s < start + width for s, e, h in taken
            )
        ]
        if free:
            taken.append((start, start + width, free[0]))
            left = across + (10 if right else -10)
            sheet.text(words, left, free[0], anchor="start" if right else "end", kind="name")


def draw_options(chart: OptionMap) -> Sheet:
    """Draw the shares of an item's options over ability: right ones thick, flagged ones dashed."""
    description = f"Shares of the options of {chart.item} in groups of persons of rising ability"
    sheet = _lay_small(chart.span, description, (0, 0.5, 1), "share of persons", right=44)
    ends: list[tuple[float, str]] = []
    rows = zip(chart.options, chart.right, chart.flagged, chart.shares, strict=True)
    for name, right, flagged, points in rows:
        kind, dots = ("line", "dot") if right else ("second", "flag") if flagged else OTHER
        sheet.line(kind, [point[0] for point in points], [point[1] for point in points])
        for at, share, persons in points:
            sheet.dot(dots, at, share, 2.5, f"{name}: {share:.0%} of {persons} persons")
        ends += [(sheet.up(points[-1][1]) + 4, f"{name}{' ✓' * right}")] * bool(points)
    # Names stand beside the last points, moved up where they would cover each other.
    below = sheet.foot + 4 + LINE
    for height, name in sorted(ends, reverse=True):
        below = min(height, below - LINE)
        sheet.text(shorten_label(name, sheet.right - 8), sheet.width - sheet.right + 6, below)
    return sheet


#: Those of the picture, beside the plan's own: few, because exact noise takes its time.
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def draw_epsilons(plan: Plan) -> Sheet:
    """Draw the error against epsilon, with the plan's own as a dot; dashed without privacy."""
    others = plan.curve("epsilon", sorted({*EPSILONS, plan.epsilon}))
    x = [log10(variant.epsilon) for variant in others]
    y = [variant.rmse for variant in others]
    sheet = Sheet(
        x=(x[0], x[-1]),
        y=(0, 1.05 * max(y)),
        description=f"Typical error by epsilon: {y[0]:.2f} logits at epsilon "
        f"{others[0].epsilon:.2g}, {y[-1]:.2f} at {others[-1].epsilon:.2g}; without privacy "
        f"{plan.rmse_without_privacy:.2f}",
        top=24,
    )
    sheet.x_axis("epsilon, in equal ratios", ticks={log10(e): f"{e:g}" for e in EPSILONS})
    sheet.y_axis("typical error in logits")
    sheet.line("second", sheet.x, (plan.rmse_without_privacy,) * 2)
    sheet.line("line", x, y)
    chosen = f"epsilon {plan.epsilon:g}: {plan.rmse:.3f} logits"
    sheet.dot("dot", log10(plan.epsilon), plan.rmse, 6, chosen)
    return sheet


#: Where bars of persons end, bars of items begin, their names begin, and the map ends.
SCALE, ITEMS, NAMES, WIDTH = 124.0, 158.0, 206.0, 480.0
#: Where a wide map begins and ends, in the same units.
WIDER = (-260.0, 840.0)
#: Rows of the height of a line of text; more of them are a little lower.
MOST_ROWS = 40
#: Stands between names: it is rare within them.
BETWEEN = " · "


def draw_wright(chart: pictures.WrightMap, *, wide: bool = False) -> Sheet:
    """Draw abilities to the left of one upright scale, difficulties and names to the right."""
    ends = WIDER if wide else (0.0, WIDTH)
    low, high = chart.reach
    rows = round((high - low) / BIN)
    sheet = Sheet(
        x=ends,
        y=(low, high),
        description=_describe_wright(chart),
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


def _describe_wright(chart: pictures.WrightMap) -> str:
    hardest, easiest = chart.names[0], chart.names[-1]
    numbers = "thresholds" if chart.steps else "difficulties"
    return (
        f"Wright map. Abilities of {count_of(chart.persons, 'person')}, mean {chart.mean:.2f}; "
        f"{numbers} of {count_of(chart.n_items)} from {easiest} ({chart.difficulty[-1]:.2f}) "
        f"to {hardest} ({chart.difficulty[0]:.2f}), in logits. The table has the numbers."
    )


def _draw_scale(sheet: Sheet, chart: pictures.WrightMap) -> None:
    middle = sheet.across((SCALE + ITEMS) / 2)
    persons = count_of(chart.persons, "person")
    sheet.text(persons, sheet.across(SCALE), 12, anchor="end", kind="quiet")
    sheet.text(chart.count, sheet.across(ITEMS), 12, kind="quiet")
    for tick in range(int(sheet.y[0]), int(sheet.y[1]) + 1):
        sheet.line("grid", (sheet.x[0], SCALE), (tick, tick))
        sheet.line("grid", (ITEMS, sheet.x[1]), (tick, tick))
        sheet.text(minus(str(tick)), middle, sheet.up(tick) + 4, anchor="middle")
    for edge in (SCALE, ITEMS):
        sheet.line("axis", (edge, edge), sheet.y)
    upwards = "higher" if chart.steps else "abler and harder"
    words = f"logits: {upwards} upwards"
    sheet.text(words, middle, sheet.height - 6, anchor="middle", kind="quiet")


def _draw_persons(sheet: Sheet, chart: pictures.WrightMap) -> None:
    unit = (SCALE - sheet.x[0] - 6) / max(int(chart.counts.max()), 1)
    for start, count in zip(chart.starts.tolist(), chart.counts.tolist(), strict=True):
        if count:
            tip = f"{count_of(count, 'person')} from {start:g} to {start + BIN:g}"
            sheet.box("box", (SCALE - unit * count, SCALE), (start, start + BIN), minus(tip))
    sheet.arrow("flag", SCALE + 1, chart.mean, 7, f"mean ability {chart.mean:.2f}")


def _draw_items(sheet: Sheet, chart: pictures.WrightMap) -> None:
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


def _join_names(chart: pictures.WrightMap, entries: Sequence[int], room: float) -> str:
    """Write as many names as fit on a line, and how many more there are."""
    # One long name would leave no room for the others.
    name_room = room / 2.5 if len(entries) > 1 else room
    # A name is shortened before the step that it ends with, which tells it from its neighbours.
    pairs = [(chart.items[i], chart.marks[i]) for i in entries]
    names = [shorten_label(item, name_room - text_width(mark)) + mark for item, mark in pairs]
    count = max(_count_fitting(names, room), 1)
    hidden = len(names) - count
    return BETWEEN.join(map(isolate, names[:count])) + (f" +{hidden}" if hidden else "")


def _count_fitting(names: Sequence[str], room: float) -> int:
    used = -text_width(BETWEEN)
    for count, name in enumerate(names):
        used += text_width(BETWEEN + name)
        hidden = len(names) - count - 1
        if used + (text_width(f" +{hidden}") if hidden else 0) > room:
            return count
    return len(names)


#: Colours of categories; after so many they come again.
COLOURS = 5
#: Height of an item's row with a circle for each threshold.
ROW = 28
#: Of such a circle.
RADIUS = 7.5


def _lay_small(
    x: Sequence[float] | FloatArray,
    description: str,
    ticks: Sequence[float],
    label: str,
    right: float = 8,
) -> Sheet:
    """Return a small sheet with ability along its lower end, and what ``label`` says upwards."""
    sheet = Sheet(
        x=(float(x[0]), float(x[-1])),
        y=(ticks[0], ticks[-1]),
        description=description,
        width=240,
        height=200,
        left=34,
        right=right,
        top=22,
        bottom=38,
    )
    sheet.y_axis(label, ticks=ticks)
    sheet.x_numbers(178, count=5)
    sheet.x_label("ability in logits")
    return sheet


def draw_curve(curve: ItemCurve) -> Sheet:
    """Draw one item's expected score with the observed means; of right/wrong items, shares."""
    noun = "shares" if len(curve.thresholds) == 1 else "mean scores"
    description = f"Expected curve of {curve.item} and observed {noun} in groups of persons"
    sheet, first = _lay_curve(curve, description)
    for at, share, answers in curve.points:
        number = (
            f"{share:.0%} of {answers}" if noun == "shares" else f"{share + first:.2f}, {answers}"
        )
        sheet.dot("flag", at, share + first, 3.5, f"{number} persons")
    return sheet


def _lay_curve(curve: ItemCurve, description: str) -> tuple[Sheet, int]:
    """Return a sheet with the expected curve, and what the lowest score is called on it."""
    steps, first = len(curve.thresholds), curve.labels[0]
    if steps == 1 or curve.labels[-1] - first > steps:  # closed up: the data have no such scores
        first = 0
    ticks = (0, 0.5, 1) if steps == 1 else range(first, first + steps + 1)
    label = "share right" if steps == 1 else "mean score"
    sheet = _lay_small(curve.ability, description, ticks, label)
    sheet.line("line", curve.ability.tolist(), (curve.expected + first).tolist())
    return sheet, first


def draw_group_curve(curve: ItemCurve, groups: GroupCurves, place: int) -> Sheet:
    """Draw one item's expected score with the mean scores of groups in classes of like ability."""
    description = f"Expected curve of {curve.item} and mean scores of {', '.join(groups.groups)}"
    sheet, first = _lay_curve(curve, description)
    rows = zip(groups.groups, groups.ability, groups.observed + first, strict=True)
    for number, (name, ability, mean) in enumerate(rows):
        points = np.column_stack([ability[:, place], mean[:, place]])
        points = points[np.isfinite(points).all(axis=1)]
        kind = f"c{number % COLOURS}"
        sheet.line(f"{kind} curve", points[:, 0].tolist(), points[:, 1].tolist())
        for at, value in points.tolist():
            sheet.dot(f"{kind} share", at, value, 2.5, f"{name}: {value:.2f}")
        height = sheet.top + 10 + LINE * number
        sheet.text(shorten_label(name, 110), sheet.left + 4, height, kind=f"name share {kind}")
    return sheet


def draw_categories(curve: ItemCurve) -> Sheet:
    """Draw how likely each category is, with the observed shares; a label stands at its peak."""
    description = (
        f"How likely each category of {curve.item} is at each ability, and observed shares in "
        "groups of persons"
    )
    sheet = _lay_small(curve.ability, description, (0, 0.5, 1), "share of persons")
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
    visible, description = pictures.thin_rows(rows), _describe_thresholds(rows, tell)
    sheet = _lay_rows(visible, description, say_thinned(len(rows.items), tell), ROW)
    sheet.x_axis(tell("thresholds in logits, harder to the right"))
    for row in range(len(visible.items)):
        _draw_threshold_row(sheet, visible, row, tell)
    return sheet


def _describe_thresholds(rows: ThresholdRows, tell: Language) -> str:
    return tell.count(
        sum(map(any, rows.disordered)),
        "Thresholds of {count} items with 95% intervals; {number} item has thresholds in the wrong "
        "order. The table has the numbers",
        "Thresholds of {count} items with 95% intervals; {number} items have thresholds in the "
        "wrong order. The table has the numbers",
        count=len(rows.items),
    )


def _draw_threshold_row(sheet: Sheet, rows: ThresholdRows, row: int, tell: Language) -> None:
    _name_row(sheet, rows.items[row], row)
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
