"""The pictures of the pages, drawn as marks on a sheet.

In: figures (``report/pictures.py``). Out: sheets, which a template writes as SVG. A report needs
no matplotlib: that is why its pictures are drawn here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, floor, log10

import numpy as np

from discreet.items.distractors import OptionMap
from discreet.items.residuals import InformationCurve
from discreet.items.scalogram import Scalogram
from discreet.planning.plan import Plan
from discreet.report.pictures import ContrastMap, FitMap, GroupRows, ItemRows
from discreet.text import count_of, minus, name_some
from discreet.words import ENGLISH, KINDS, Language, ReleaseKind

PICTURE_ITEMS = 60
"""More items than this would make the picture longer than anyone scrolls."""
NAMED_DOTS = 12
"""Outliers whose names a picture writes; more would cover each other."""
MANY_DOTS = 100
"""More dots than this are drawn small, or they hide each other."""
LINE = 13
"""Height of a line of text."""
OTHER = ("other", "mute")
"""Line and dots of a wrong option that nothing is wrong with."""
NAME_ROOM = 104
"""Room for a name beside a dot or an axis."""


def _thin(rows: ItemRows) -> ItemRows:
    """Keep at most so many rows as a picture can hold, evenly chosen by rank."""
    if len(rows.items) <= PICTURE_ITEMS:
        return rows
    keep = np.linspace(0, len(rows.items) - 1, PICTURE_ITEMS).round().astype(int)
    names = tuple(rows.items[row] for row in keep)
    return ItemRows(names, rows.value[keep], rows.lower[keep], rows.upper[keep])


def draw_difficulties(
    rows: ItemRows, kind: ReleaseKind = KINDS["answers"], tell: Language = ENGLISH
) -> Sheet:
    """Draw items in order of difficulty (or objects, of strength) with their intervals."""
    has_width = bool((rows.upper > rows.lower).any())
    return _draw_rows(
        rows,
        tell.of(kind, "{title} with 95% intervals; the table has the numbers")
        if has_width
        else tell.of(kind, "{title}; the table has the numbers"),
        tell.of(kind, "{number} in logits, {scale} to the right"),
        say_thinned(len(rows.items), kind, tell),
    )


def say_thinned(count: int, kind: ReleaseKind = KINDS["answers"], tell: Language = ENGLISH) -> str:
    """Say that a picture does not show all; nothing where it does."""
    if count <= PICTURE_ITEMS:
        return ""
    return tell.of(
        kind,
        "{shown} of {count} {items}, evenly chosen by rank.",
        shown=PICTURE_ITEMS,
        count=count,
    )


def draw_differences(chart: GroupRows) -> Sheet:
    """Draw how much harder items are for a group than its ability explains; 0 is no difference."""
    return _draw_rows(
        chart.rows,
        f"Differences between {chart.focal} and {chart.reference} with 95% intervals; the table "
        "has the numbers",
        f"logits harder for {shorten_label(chart.focal, NAME_ROOM)}",
        say_thinned(len(chart.rows.items)),
        zero=True,
    )


def _draw_rows(
    rows: ItemRows, description: str, label: str, note: str, *, zero: bool = False
) -> Sheet:
    chart = _thin(rows)
    ends = [0.0] if zero else []
    low, high = (
        float(end([*side, *ends])) for end, side in ((min, chart.lower), (max, chart.upper))
    )
    pad = 0.05 * max(high - low, 0.5)
    count = len(chart.items)
    sheet = Sheet(
        x=(low - pad, high + pad),
        y=(count - 0.5, -0.5),  # rows count downwards from the hardest
        description=description,
        height=60 + 18 * count,
        left=116,
        note=note,
    )
    sheet.x_axis(label)
    if zero:
        sheet.line("axis", (0, 0), sheet.y)
    for index, name in enumerate(chart.items):
        sheet.text(
            shorten_label(name, NAME_ROOM), sheet.left - 8, sheet.up(index) + 4, anchor="end"
        )
        sheet.line("bar", (chart.lower[index], chart.upper[index]), (index, index))
        sheet.dot("dot", chart.value[index], index, tip=name)
    return sheet


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


def draw_fit(chart: FitMap) -> Sheet:
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


def _draw_ranges(sheet: Sheet, chart: FitMap) -> None:
    """Draw a bar behind every circle; one band where all have the same limits."""
    if np.ptp(chart.low) == 0 and np.ptp(chart.high) == 0:
        sheet.box("band", sheet.x, (float(chart.low[0]), float(chart.high[0])))
        return
    half = 0.006 * (sheet.x[1] - sheet.x[0])
    for difficulty, low, high in zip(chart.difficulty, chart.low, chart.high, strict=True):
        if np.isfinite(low + high):
            sheet.box("band", (difficulty - half, difficulty + half), (low, high))
    sheet.line("axis", sheet.x, (1, 1))


def draw_scalogram(chart: Scalogram) -> Sheet:
    """Draw answers in order: full cells are right, empty ones wrong, surprises flagged."""
    rows, items = len(chart.persons), len(chart.items)
    sheet = Sheet(
        x=(-0.5, items - 0.5),
        y=(rows - 0.5, -0.5),  # rows count downwards from the ablest
        description=f"Answers of {sum(chart.persons)} persons to {items} items, the ablest "
        f"persons on top, the easiest items to the left; reproducibility "
        f"{chart.reproducibility:.2f}",
        height=46 + 13 * rows,
        left=64,
        top=26,
        bottom=20,
    )
    sheet.text("persons", 2, 18, kind="quiet")
    sheet.text("easiest item", sheet.left, 18, kind="quiet")
    sheet.text("hardest", sheet.width - sheet.right, 18, anchor="end", kind="quiet")
    for row, number in enumerate(chart.persons):
        sheet.text(f"{number:,}", sheet.left - 8, sheet.up(row) + 4, anchor="end")
        for item, answer in enumerate(chart.answers[row]):
            if answer >= 0:
                _draw_cell(sheet, chart, row, item)
    return sheet


def _draw_cell(sheet: Sheet, chart: Scalogram, row: int, item: int) -> None:
    right, odd = chart.answers[row][item] == 1, chart.surprising[row][item]
    kind = f"cell{' right' if right else ''}{' odd' if odd else ''}"
    words = f"{chart.items[item]}: {'right' if right else 'wrong'}{', a surprise' if odd else ''}"
    sheet.box(kind, (item - 0.42, item + 0.42), (row - 0.4, row + 0.4), words)


def _describe_fit(chart: FitMap) -> str:
    high = int((chart.outside & (chart.value > 1)).sum())
    low = int(chart.outside.sum()) - high
    worst = f"; furthest out: {name_some([chart.items[i] for i in chart.worst])}" * (high + low > 0)
    return (
        f"{chart.statistic.capitalize()} mean squares of {count_of(len(chart.items))} against "
        f"{chart.number}: {high:,} above and {low:,} below their limits{worst}"
    )


def draw_contrast(chart: ContrastMap) -> Sheet:
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
    sheet = Sheet(
        x=chart.span,
        y=(0, 1),
        description=f"Shares of the options of {chart.item} in groups of persons of rising ability",
        width=240,
        height=170,
        left=34,
        right=44,
        top=8,
        bottom=24,
    )
    sheet.y_axis(ticks=(0, 0.5, 1))
    sheet.x_numbers(162, count=5)
    ends: list[tuple[float, str]] = []
    rows = zip(chart.options, chart.right, chart.flagged, chart.shares, strict=True)
    for name, right, flagged, points in rows:
        kind, dots = ("line", "dot") if right else ("second", "flag") if flagged else OTHER
        sheet.line(kind, [point[0] for point in points], [point[1] for point in points])
        for at, share, persons in points:
            sheet.dot(dots, at, share, 2.5, f"{name}: {share:.0%} of {persons} persons")
        ends += [(sheet.up(points[-1][1]) + 4, f"{name}{' ✓' * right}")] * bool(points)
    _name_ends(sheet, ends)
    return sheet


def _name_ends(sheet: Sheet, ends: list[tuple[float, str]]) -> None:
    """Write names beside the last points, moved up where they would cover each other."""
    below = sheet.foot + 4 + LINE
    for height, name in sorted(ends, reverse=True):
        below = min(height, below - LINE)
        sheet.text(shorten_label(name, sheet.right - 8), sheet.width - sheet.right + 6, below)


EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Those of the picture, beside the plan's own: few, because exact noise takes its time."""


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


TICKS = 6
"""About how many labelled ticks an axis gets."""

THIN, BROAD = frozenset("iljtfrI.,:;|!'()[]/· "), frozenset("MWmw@%…—")
"""Letters that are much thinner and much broader than others."""


def text_width(words: str) -> float:
    """Return the room that words take, in pixels of a sheet, in the broadest of usual fonts."""
    return sum(map(_sign_width, words))


def _sign_width(sign: str) -> float:
    kind = unicodedata.category(sign)
    if kind in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(sign) in "WF":
        return 15.0
    if sign in THIN:
        return 5.5
    if sign in BROAD:
        return 13.0
    return {"Sm": 11.0, "Lu": 9.3}.get(kind, 8.4)


def shorten_label(name: str, room: float) -> str:
    """Return a name, or as much of its beginning as fits with three dots behind it."""
    if text_width(name) <= room:
        return name
    start = name
    while start and text_width(start) + text_width("…") > room:
        start = start[:-1]
    return start.rstrip("\N{ZERO WIDTH JOINER} ") + "…"


def round_ticks(low: float, high: float, count: int = TICKS) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) within ``[low, high]``."""
    rough = max(high - low, 1e-9) / count
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


@dataclass(frozen=True)
class MarkRun:
    """Marks of one shape that follow each other: what they share, and the values of each."""

    tag: str
    names: tuple[str, ...]
    words: bool
    tip: bool
    values: list[tuple[str, ...]]


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
    def runs(self) -> list[MarkRun]:
        """The marks in their order, with those of one shape gathered: there are very many."""
        shapes = groupby(
            self.marks, lambda m: (m.tag, tuple(m.attributes), bool(m.words), bool(m.tip))
        )
        return [
            MarkRun(
                *shape, [(*m.attributes.values(), *filter(None, (m.words, m.tip))) for m in marks]
            )
            for shape, marks in shapes
        ]

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

    def x_axis(
        self, label: str, *, grid: bool = True, ticks: Mapping[float, str] | None = None
    ) -> None:
        """Draw ticks, their numbers (or the words that are given for them) and a label below."""
        numbers = {tick: minus(f"{tick:g}") for tick in round_ticks(*self.x)}
        for tick, words in (numbers if ticks is None else ticks).items():
            if grid:
                self._rule("grid", (self.across(tick),) * 2, (self.top, self.foot))
            self.text(words, self.across(tick), self.foot + 16, anchor="middle")
        self._rule("axis", (self.left, self.width - self.right), (self.foot,) * 2)
        self.x_label(label)

    def x_numbers(self, height: float, count: int = TICKS) -> None:
        """Write the round numbers of x at a height of the sheet."""
        for tick in round_ticks(*self.x, count=count):
            self.text(minus(f"{tick:g}"), self.across(tick), height, anchor="middle")

    def x_label(self, label: str) -> None:
        """Write what x is, at the lower end."""
        middle = (self.left + self.width - self.right) / 2
        self.text(label, middle, self.height - 6, anchor="middle", kind="quiet")

    def y_axis(self, label: str = "", *, ticks: Sequence[float] | None = None) -> None:
        """Draw horizontal lines and their numbers; the label stands on top of the axis."""
        for tick in round_ticks(*self.y, count=4) if ticks is None else ticks:
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
        frame = {"x": left, "y": min(low, high), "width": right - left, "height": abs(low - high)}
        self._shape("rect", kind, frame, tip)

    def dot(self, kind: str, x: float, y: float, radius: float = 4, tip: str = "") -> None:
        """Draw a circle in the units of the axes, with a tooltip."""
        self.circle(kind, self.across(x), self.up(y), radius, tip)

    def circle(self, kind: str, x: float, y: float, radius: float, tip: str) -> None:
        """Draw a circle at a place of the sheet (not of the axes), with a tooltip."""
        self._shape("circle", kind, {"cx": x, "cy": y, "r": radius}, tip)

    def arrow(self, kind: str, x: float, y: float, size: float, tip: str) -> None:
        """Draw a triangle that points at a place of the axes, from the right (or the left)."""
        across, up, half = self.across(x), self.up(y), abs(size) * 0.6
        base = f"{across + size:.1f}"
        points = f"{across:.1f},{up:.1f} {base},{up - half:.1f} {base},{up + half:.1f}"
        self.marks.append(Mark("polygon", {"class": kind, "points": points}, tip=tip))

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        anchor: str = "start",
        kind: str = "",
        tip: str = "",
    ) -> None:
        """Write at a place of the sheet (not of the axes)."""
        point = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
        self.marks.append(Mark("text", {"class": kind} | point if kind else point, words, tip))

    def _rule(self, kind: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._shape("line", kind, {"x1": x[0], "y1": y[0], "x2": x[1], "y2": y[1]})

    def _shape(self, tag: str, kind: str, geometry: dict[str, float], tip: str = "") -> None:
        numbers = {name: f"{value:.1f}" for name, value in geometry.items()}
        self.marks.append(Mark(tag, {"class": kind, **numbers}, tip=tip))
