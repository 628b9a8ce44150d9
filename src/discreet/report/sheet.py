"""A drawing as marks that a template writes as SVG.

In: values in the units of axes. Out: a :class:`Sheet`. A report needs no matplotlib: that is why
its pictures are drawn on sheets (:mod:`discreet.report.drawings`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, floor, log10

from discreet.text import minus

#: Room for a name beside a dot or an axis.
NAME_ROOM = 104


#: About how many labelled ticks an axis gets.
TICKS = 6


#: Letters that are much thinner and much broader than others.
THIN, BROAD = frozenset("iljtfrI.,:;|!'()[]/· "), frozenset("MWmw@%…—")


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
        """Return the horizontal position of a value."""
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
