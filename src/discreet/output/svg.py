"""The pictures of the pages: a sheet with two axes, and the figures drawn on it.

In: figures (``analysis/figures.py``). Out: sheets of marks, which a template writes as SVG.
Colours come from the page's style, so pictures follow it into dark mode and print, and a report
needs no matplotlib: that is why they are drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

import numpy as np

from discreet.analysis.diagnostics import BIN
from discreet.analysis.figures import ContrastMap, FitMap, ItemCurve, ItemRows, WrightMap
from discreet.analysis.residuals import InformationCurve
from discreet.analysis.rules import FIT_HIGH, FIT_LOW
from discreet.markup import minus
from discreet.results.kinds import KINDS, Kind

TICKS = 6
"""About how many labelled ticks an axis gets."""
PICTURE_ITEMS = 60
"""More items than this would make the picture longer than anyone scrolls."""
NAME_LENGTH = 16
"""Signs of an item's name that fit beside the axis."""


def round_ticks(low: float, high: float, wanted: int = TICKS) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) within ``[low, high]``."""
    rough = max(high - low, 1e-9) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


@dataclass(frozen=True)
class Mark:
    """One element of a picture: its tag, attributes, and the words in it or its tooltip."""

    tag: str
    attributes: dict[str, str]
    words: str = ""
    tip: str = ""


@dataclass
class Sheet:
    """A drawing with an x axis below and room on the left; y grows upwards.

    Attributes
    ----------
    x, y
        What the axes span.
    description
        What a screen reader says in place of the picture.
    width, height
        Of the whole picture; 480 wide shows its words at 10 pixels on a phone.
    left, right, top, bottom
        Margins.
    note
        A sentence above the picture.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    description: str
    width: float = 480
    height: float = 300
    left: float = 44
    right: float = 14
    top: float = 12
    bottom: float = 42
    note: str = ""
    marks: list[Mark] = field(default_factory=list)

    @property
    def foot(self) -> float:
        """Where the x axis lies."""
        return self.height - self.bottom

    def across(self, value: float) -> float:
        """Where a value of x lies."""
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * (self.width - self.left - self.right)

    def up(self, value: float) -> float:
        """Where a value of y lies."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.foot - share * (self.foot - self.top)

    def x_axis(self, label: str, *, grid: bool = True) -> None:
        """Draw ticks, their numbers and a label below."""
        for tick in round_ticks(*self.x) if grid else ():
            self._rule("grid", (self.across(tick),) * 2, (self.top, self.foot))
        self.x_numbers(self.foot + 16)
        self._rule("axis", (self.left, self.width - self.right), (self.foot,) * 2)
        self.x_label(label)

    def x_numbers(self, height: float, wanted: int = TICKS) -> None:
        """Write the round numbers of x at a height of the sheet."""
        for tick in round_ticks(*self.x, wanted=wanted):
            self.text(minus(f"{tick:g}"), self.across(tick), height, anchor="middle")

    def x_label(self, label: str) -> None:
        """Write what x is, at the lower end."""
        middle = (self.left + self.width - self.right) / 2
        self.text(label, middle, self.height - 6, anchor="middle", kind="quiet")

    def y_axis(self, label: str = "", *, ticks: Sequence[float] | None = None) -> None:
        """Draw horizontal lines and their numbers; the label stands on top of the axis."""
        for tick in round_ticks(*self.y, wanted=4) if ticks is None else ticks:
            height = self.up(tick)
            self._rule("grid", (self.left, self.width - self.right), (height, height))
            self.text(minus(f"{tick:g}"), self.left - 6, height + 4, anchor="end")
        if label:
            self.text(label, 2, 11, kind="quiet")

    def line(self, kind: str, x: Sequence[float], y: Sequence[float]) -> None:
        """Draw a line through points in the units of the axes."""
        path = " ".join(f"{self.across(a):.1f},{self.up(b):.1f}" for a, b in zip(x, y, strict=True))
        self.marks.append(Mark("polyline", {"class": kind, "points": path}))

    def box(self, kind: str, x: tuple[float, float], y: tuple[float, float], tip: str = "") -> None:
        """Draw a rectangle in the units of the axes, with a tooltip."""
        left, right, low, high = *map(self.across, x), *map(self.up, y)
        place = {"x": left, "y": min(low, high), "width": right - left, "height": abs(low - high)}
        self._shape("rect", kind, place, tip)

    def dot(self, kind: str, x: float, y: float, radius: float = 4, tip: str = "") -> None:
        """Draw a circle in the units of the axes, with a tooltip."""
        self.circle(kind, self.across(x), self.up(y), radius, tip)

    def circle(self, kind: str, x: float, y: float, radius: float, tip: str) -> None:
        """Draw a circle at a place of the sheet (not of the axes), with a tooltip."""
        self._shape("circle", kind, {"cx": x, "cy": y, "r": radius}, tip)

    def text(
        self, words: str, x: float, y: float, *, anchor: str = "start", kind: str = ""
    ) -> None:
        """Write at a place of the sheet (not of the axes)."""
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
        self.marks.append(Mark("text", {"class": kind} | place if kind else place, words))

    def _rule(self, kind: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._shape("line", kind, {"x1": x[0], "y1": y[0], "x2": x[1], "y2": y[1]})

    def _shape(self, tag: str, kind: str, place: dict[str, float], tip: str = "") -> None:
        numbers = {name: f"{value:.1f}" for name, value in place.items()}
        self.marks.append(Mark(tag, {"class": kind, **numbers}, tip=tip))


def _thin(rows: ItemRows) -> ItemRows:
    """Keep at most so many rows as a picture can hold, evenly chosen by rank."""
    if len(rows.items) <= PICTURE_ITEMS:
        return rows
    keep = np.linspace(0, len(rows.items) - 1, PICTURE_ITEMS).round().astype(int)
    names = tuple(rows.items[row] for row in keep)
    return ItemRows(names, rows.value[keep], rows.lower[keep], rows.upper[keep])


def draw_difficulties(rows: ItemRows, kind: Kind = KINDS["answers"]) -> Sheet:
    """Draw items in order of difficulty (or objects, of strength) with their intervals."""
    shown = _thin(rows)
    low, high = float(np.min(shown.lower)), float(np.max(shown.upper))
    pad = 0.05 * max(high - low, 0.5)
    count = len(shown.items)
    sheet = Sheet(
        x=(low - pad, high + pad),
        y=(count - 0.5, -0.5),  # rows count downwards from the hardest
        description=f"{kind.title} with 95% intervals; the table has the numbers",
        height=60 + 18 * count,
        left=116,
    )
    if shown is not rows:
        sheet.note = f"{count} of {len(rows.items)} {kind.items}, evenly chosen by rank."
    sheet.x_axis(f"{kind.number} in logits, {kind.scale} to the right")
    for place, name in enumerate(shown.items):
        cut = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
        sheet.text(cut, sheet.left - 8, sheet.up(place) + 4, anchor="end")
        sheet.line("bar", (shown.lower[place], shown.upper[place]), (place, place))
        sheet.dot("dot", shown.value[place], place, tip=name)
    return sheet


def draw_wright(shown: WrightMap) -> Sheet:
    """Draw abilities above and difficulties below one common scale."""
    low, high = shown.reach[0] - 0.1, shown.reach[1] + 0.1
    deepest = int(shown.level.max())
    dot = min(5.0, 110 / deepest, (480 - 58) * BIN / (high - low) / 2)
    below = 2 * dot * deepest + 8
    sheet = Sheet(
        x=(low, high),
        y=(0, int(shown.counts.max()) or 1),
        description=f"Wright map: abilities of {shown.persons} persons with mean {shown.mean:.2f} "
        f"above, {len(shown.items)} item difficulties below",
        height=170 + 40 + below + 20,
        bottom=40 + below + 20,
    )
    for start, count in zip(shown.starts, shown.counts, strict=True):
        if count:
            sheet.box("box", (start, start + BIN), (0, count), f"{count} persons at {start:g}")
    sheet.text("persons", 2, 14, kind="quiet")
    sheet.text("items", 2, sheet.foot + 40, kind="quiet")
    sheet.x_numbers(sheet.foot + 16)
    sheet.line("axis", (low, high), (0, 0))
    columns = (shown.items, shown.difficulty, shown.centre, shown.level)
    for name, difficulty, centre, level in zip(*columns, strict=True):
        height = sheet.foot + 26 + dot * (2 * level - 1)
        tip = f"{name}: {difficulty:.2f}"
        sheet.circle("dot", sheet.across(centre), height, dot * 0.85, tip)
    sheet.x_label("logits: abler and harder to the right")
    return sheet


def draw_information(curve: InformationCurve, most: float) -> Sheet:
    """Draw the standard error of an ability if a person answers every item, up to ``most``."""
    ability, error = curve.ability, curve.se
    best, top = int(np.argmin(error)), ceil(10 * most) / 10
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


def draw_fit(shown: FitMap) -> Sheet:
    """Draw a fit mean square against difficulty; larger circles are less sure."""
    b, value = shown.difficulty, shown.value
    pad = 0.08 * max(float(np.ptp(b)), 1.0)
    x = (float(b.min()) - pad, float(b.max()) + pad)
    sheet = Sheet(
        x=x,
        y=(min(0.4, float(value.min()) - 0.1), max(1.6, float(value.max()) + 0.1)),
        description=f"{shown.statistic} mean squares of {len(shown.items)} items against "
        "difficulty",
        top=24,
    )
    sheet.box("band", x, (FIT_LOW, FIT_HIGH))
    sheet.x_axis("difficulty in logits", grid=False)
    sheet.y_axis(f"{shown.statistic} mean square (1 is expected)")
    columns = (shown.items, b, value, shown.unsure, shown.outside)
    for name, difficulty, height, unsure, outside in zip(*columns, strict=True):
        tip = f"{name}: {shown.statistic} {height:.2f}"
        sheet.dot("ring flag" if outside else "ring", difficulty, height, 3 + 5 * unsure, tip)
    _name_dots(sheet, [(shown.items[i], b[i], value[i]) for i in shown.worst])
    return sheet


def draw_contrast(shown: ContrastMap) -> Sheet:
    """Draw loadings on the first component of the residuals against difficulty."""
    b, value = shown.difficulty, shown.loading
    pad = 0.08 * max(float(np.ptp(b)), 1.0)
    reach = max(0.5, 1.1 * float(np.abs(value).max()))
    sheet = Sheet(
        x=(float(b.min()) - pad, float(b.max()) + pad),
        y=(-reach, reach),
        description=f"Loadings of {len(shown.items)} items on the first component of the "
        f"residuals, which is worth {shown.eigenvalue:.1f} items, {shown.expected:.1f} by chance",
        top=24,
    )
    sheet.x_axis("difficulty in logits", grid=False)
    sheet.y_axis("loading on the first contrast")
    sheet.line("axis", sheet.x, (0, 0))
    for name, difficulty, height in zip(shown.items, b, value, strict=True):
        kind = "ring flag" if height > 0 else "ring"
        sheet.dot(kind, difficulty, height, 4, f"{name}: loading {height:.2f}")
    _name_dots(sheet, [(shown.items[i], b[i], value[i]) for i in shown.ends])
    return sheet


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


def draw_curve(curve: ItemCurve) -> Sheet:
    """Draw one item's expected curve with the observed shares of right answers."""
    sheet = Sheet(
        x=(float(curve.ability[0]), float(curve.ability[-1])),
        y=(0, 1),
        description=f"Expected curve of {curve.item} and observed shares in groups of persons",
        width=240,
        height=170,
        left=34,
        right=8,
        top=8,
        bottom=24,
    )
    sheet.y_axis(ticks=(0, 0.5, 1))
    sheet.x_numbers(162, wanted=5)
    sheet.line("line", curve.ability.tolist(), curve.expected.tolist())
    for at, share, answers in curve.points:
        sheet.dot("flag", at, share, 3.5, f"{share:.0%} of {answers} persons")
    return sheet
