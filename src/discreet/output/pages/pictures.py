"""The pictures of the reports, as SVG within the page.

In: an estimate and, for the confidential report, diagnostics. Out: markup. Every number comes
from there; only binning happens here.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from discreet.analysis.diagnostics import BIN, Curve, Diagnostics
from discreet.analysis.finding import FIT_HIGH, FIT_LOW
from discreet.analysis.residuals import trace_information
from discreet.markup import minus
from discreet.output.pages.drawing import Sheet, round_ticks
from discreet.results.estimate import Estimate
from discreet.results.kinds import KINDS, Kind

PICTURE_ITEMS = 60
"""More items than this would make the picture longer than anyone scrolls."""
NAME_LENGTH = 16
"""Signs of an item's name that fit beside the axis."""
CURVE_REACH = 3.5
"""Logits from the mean that every item curve shows at least, so that curves compare."""


def difficulty_picture(estimate: Estimate, kind: Kind = KINDS["answers"]) -> str:
    """Draw items in order of difficulty (or objects, of strength) with their intervals."""
    known = np.flatnonzero(estimate.estimated)
    if not known.size:
        return ""
    order = known[np.argsort(-estimate.difficulty[known], kind="stable")]
    note = ""
    if order.size > PICTURE_ITEMS:
        keep = np.linspace(0, order.size - 1, PICTURE_ITEMS).round().astype(int)
        shown = f"{PICTURE_ITEMS} of {order.size} {kind.items}, evenly chosen by rank."
        note = f'<p class="note">{shown}</p>'
        order = order[keep]
    return note + _draw_intervals(estimate, order, kind)


def _draw_intervals(estimate: Estimate, order: npt.NDArray[np.int64], kind: Kind) -> str:
    interval = np.where(
        np.isnan(estimate.se)[:, None], estimate.difficulty[:, None], estimate.interval()
    )[order]
    low, high = float(np.min(interval)), float(np.max(interval))
    pad = 0.05 * max(high - low, 0.5)
    sheet = Sheet(
        x=(low - pad, high + pad),
        y=(len(order) - 0.5, -0.5),  # rows count downwards from the hardest
        height=60 + 18 * len(order),
        left=116,
    )
    sheet.x_axis(f"{kind.number} in logits, {kind.scale} to the right")
    for place, index in enumerate(order):
        name = estimate.items[index]
        shown = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
        ends = [(float(end), float(place)) for end in interval[place]]
        sheet.text(shown, sheet.left - 8, sheet.up(place) + 4, anchor="end")
        sheet.line("bar", ends)
        sheet.dot("dot", float(estimate.difficulty[index]), place, name=name)
    return sheet.svg(f"{kind.title} with 95% intervals; the table has the numbers")


def wright_picture(estimate: Estimate, diagnostics: Diagnostics) -> str:
    """Draw abilities above and difficulties below one common scale."""
    items = _stack(estimate)
    deepest = max((level for _, _, level in items), default=1)
    x = _common_range(estimate, diagnostics)
    persons = max(diagnostics.ability_counts, default=0) or 1
    dot = min(5.0, 110 / deepest, (480 - 58) * BIN / (x[1] - x[0]) / 2)
    below = 2 * dot * deepest + 8
    sheet = Sheet(x=x, y=(0, persons), height=170 + 40 + below + 20, bottom=40 + below + 20)
    for start, count in zip(diagnostics.ability_starts, diagnostics.ability_counts, strict=True):
        if count:
            sheet.box("box", (start, start + BIN), (0, count), f"{count} persons at {start:g}")
    base = sheet.height - sheet.bottom
    sheet.text("persons", 2, 14, kind="quiet")
    sheet.text("items", 2, base + 40, kind="quiet")
    for tick in round_ticks(*x):
        sheet.text(
            minus(f"{tick:g}"),
            sheet.across(tick),
            base + 16,
            anchor="middle",
        )
    sheet.line("axis", [(x[0], 0), (x[1], 0)])
    for index, centre, level in items:
        place = sheet.across(centre)
        name = f"{estimate.items[index]}: {estimate.difficulty[index]:.2f}"
        height = base + 26 + dot * (2 * level - 1)
        sheet.marks.append(
            f'<circle class="dot" cx="{place:.1f}" cy="{height:.1f}" r="{dot * 0.85:.1f}">'
            f"<title>{escape(name)}</title></circle>"
        )
    middle = (sheet.left + sheet.width - sheet.right) / 2
    sheet.text(
        "logits: abler and harder to the right",
        middle,
        sheet.height - 6,
        anchor="middle",
        kind="quiet",
    )
    return sheet.svg(
        f"Wright map: abilities of {diagnostics.measured} persons with mean "
        f"{diagnostics.ability_mean:.2f} above, {len(items)} item difficulties below"
    )


def _stack(estimate: Estimate) -> list[tuple[int, float, int]]:
    """Give every item with a number a column and a level: (item, centre of its bin, level)."""
    filled: dict[int, int] = {}
    placed = []
    for index in np.flatnonzero(estimate.estimated):
        column = int(np.floor(estimate.difficulty[index] / BIN))
        filled[column] = filled.get(column, 0) + 1
        placed.append((int(index), (column + 0.5) * BIN, filled[column]))
    return placed


def _common_range(estimate: Estimate, diagnostics: Diagnostics) -> tuple[float, float]:
    starts = [
        s for s, n in zip(diagnostics.ability_starts, diagnostics.ability_counts, strict=True) if n
    ]
    values = [*starts, *estimate.difficulty[estimate.estimated].tolist()]
    return float(np.floor(min(values)) - 0.1), float(np.ceil(max(values) + BIN) + 0.1)


def information_picture(estimate: Estimate) -> str:
    """Draw the standard error of an ability if a person answers every item."""
    curve = trace_information(estimate)
    ability, error = curve.ability, curve.se
    low, high = float(ability[0]), float(ability[-1])
    top = float(np.ceil(10 * min(error.max(), 4 * error.min())) / 10)
    sheet = Sheet(x=(low, high), y=(0, top), top=24)
    sheet.x_axis("ability in logits")
    sheet.y_axis("standard error in logits")
    shown = [(float(x), float(y)) for x, y in zip(ability, error, strict=True) if y <= top]
    sheet.line("line", shown)
    best = float(ability[int(np.argmin(error))])
    return sheet.svg(
        f"Standard error of an ability; smallest, {error.min():.2f}, at ability {best:.1f}"
    )


def fit_picture(estimate: Estimate, mean_square: Sequence[float | None], kind: str) -> str:
    """Draw a fit mean square against difficulty; larger circles are less sure."""
    values = np.asarray(mean_square, dtype=np.float64)
    known = np.flatnonzero(estimate.estimated & np.isfinite(values))
    b, se = estimate.difficulty[known], np.nan_to_num(estimate.se[known], nan=0.1)
    low, high = float(b.min()), float(b.max())
    pad = 0.08 * max(high - low, 1.0)
    y = (min(0.4, float(values[known].min()) - 0.1), max(1.6, float(values[known].max()) + 0.1))
    sheet = Sheet(x=(low - pad, high + pad), y=y, top=24)
    sheet.box("band", (low - pad, high + pad), (FIT_LOW, FIT_HIGH))
    sheet.x_axis("difficulty in logits", grid=False)
    sheet.y_axis(f"{kind} mean square (1 is expected)")
    size = 3 + 5 * se / max(float(se.max()), 1e-9)
    radius = dict(zip(known.tolist(), size.tolist(), strict=True))
    for index in known:
        height = float(values[index])
        style = "ring" if FIT_LOW <= height <= FIT_HIGH else "ring flag"
        name = f"{estimate.items[index]}: {kind} {height:.2f}"
        sheet.dot(style, float(estimate.difficulty[index]), height, radius[int(index)], name)
    outside = known[(values[known] < FIT_LOW) | (values[known] > FIT_HIGH)]
    worst = outside[np.argsort(-np.abs(np.log(values[outside])), kind="stable")]
    _name_dots(sheet, [(estimate.items[i], estimate.difficulty[i], values[i]) for i in worst])
    return sheet.svg(f"{kind} mean squares of {len(known)} items against difficulty")


def _name_dots(sheet: Sheet, dots: Sequence[tuple[str, float, float]]) -> None:
    """Write names beside dots, the first ones first, where there is room for them."""
    taken: list[tuple[float, float, float]] = []
    for name, x, y in dots:
        shown = name[:NAME_LENGTH]
        width, across, up = 8.0 * len(shown), sheet.across(x), sheet.up(y) + 4
        right = across + width + 12 < sheet.width
        start = across + 10 if right else across - 10 - width
        if any(abs(up - u) < 13 and start < e and s < start + width for s, e, u in taken):
            continue
        taken.append((start, start + width, up))
        sheet.text(shown, across + (10 if right else -10), up, anchor="start" if right else "end")


def curve_picture(name: str, difficulty: float, curve: Curve) -> str:
    """Draw one item's expected curve with the observed shares of right answers."""
    low = min(-CURVE_REACH, difficulty - 1, *(point[0] for point in curve))
    high = max(CURVE_REACH, difficulty + 1, *(point[0] for point in curve))
    sheet = Sheet(
        x=(low, high), y=(0, 1), width=240, height=170, left=34, right=8, top=8, bottom=24
    )
    sheet.y_axis(ticks=(0, 0.5, 1))
    for tick in round_ticks(low, high, wanted=5):
        sheet.text(minus(f"{tick:g}"), sheet.across(tick), 162, anchor="middle")
    expected = [(float(a), float(1 / (1 + np.exp(difficulty - a)))) for a in np.linspace(low, high)]
    sheet.line("line", expected)
    for ability, share, answers in curve:
        sheet.dot("flag", ability, share, 3.5, f"{share:.0%} of {answers} persons")
    return sheet.svg(f"Expected curve of {name} and observed shares in groups of persons")
