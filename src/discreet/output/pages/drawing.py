"""A sheet of SVG with two axes.

In: numbers. Out: markup. Knows nothing about items or persons. Colours come from the page's
style, so pictures follow it into dark mode and print, and a report needs no matplotlib: that is
why they are drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from discreet.markup import minus

TICKS = 6
"""About how many labelled ticks an axis gets."""


def round_ticks(low: float, high: float, wanted: int = TICKS) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) within ``[low, high]``."""
    rough = max(high - low, 1e-9) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


@dataclass
class Sheet:
    """A drawing with an x axis below and room on the left; y grows upwards.

    Attributes
    ----------
    x, y
        What the axes span.
    width, height
        Of the whole picture; 480 wide shows its words at 10 pixels on a phone.
    left, right, top, bottom
        Margins.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 480
    height: float = 300
    left: float = 44
    right: float = 14
    top: float = 12
    bottom: float = 42
    marks: list[str] = field(default_factory=list)

    def across(self, value: float) -> float:
        """Where a value of x lies."""
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * (self.width - self.left - self.right)

    def up(self, value: float) -> float:
        """Where a value of y lies."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.height - self.bottom - share * (self.height - self.bottom - self.top)

    def x_axis(
        self, label: str, *, grid: bool = True, ticks: Sequence[float] | None = None
    ) -> None:
        """Draw ticks, their numbers and a label below."""
        foot = self.height - self.bottom
        for tick in round_ticks(*self.x) if ticks is None else ticks:
            place = self.across(tick)
            if grid:
                self.marks.append(_line("grid", place, self.top, place, foot))
            self.text(minus(f"{tick:g}"), place, foot + 16, anchor="middle")
        self.marks.append(_line("axis", self.left, foot, self.width - self.right, foot))
        middle = (self.left + self.width - self.right) / 2
        self.text(label, middle, self.height - 6, anchor="middle", kind="quiet")

    def y_axis(self, label: str = "", *, ticks: Sequence[float] | None = None) -> None:
        """Draw horizontal lines and their numbers; the label stands on top of the axis."""
        for tick in round_ticks(*self.y, wanted=4) if ticks is None else ticks:
            height = self.up(tick)
            self.marks.append(_line("grid", self.left, height, self.width - self.right, height))
            self.text(minus(f"{tick:g}"), self.left - 6, height + 4, anchor="end")
        if label:
            self.text(label, 2, 11, kind="quiet")

    def line(self, kind: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line through points in the units of the axes."""
        path = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in points)
        self.marks.append(f'<polyline class="{kind}" points="{path}"/>')

    def box(
        self, kind: str, x: tuple[float, float], y: tuple[float, float], name: str = ""
    ) -> None:
        """Draw a rectangle in the units of the axes, with a tooltip."""
        left, right, low, high = *map(self.across, x), *map(self.up, y)
        self.marks.append(
            f'<rect class="{kind}" x="{left:.1f}" y="{min(low, high):.1f}" '
            f'width="{right - left:.1f}" height="{abs(low - high):.1f}">{_tip(name)}</rect>'
        )

    def dot(self, kind: str, x: float, y: float, radius: float = 4, name: str = "") -> None:
        """Draw a circle in the units of the axes, with a tooltip."""
        self.marks.append(
            f'<circle class="{kind}" cx="{self.across(x):.1f}" cy="{self.up(y):.1f}" '
            f'r="{radius:.1f}">{_tip(name)}</circle>'
        )

    def text(
        self, words: str, x: float, y: float, *, anchor: str = "start", kind: str = ""
    ) -> None:
        """Write at a place of the sheet (not of the axes)."""
        style = f' class="{kind}"' if kind else ""
        self.marks.append(
            f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def svg(self, description: str) -> str:
        """Return the picture; a screen reader says ``description`` in its place."""
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(description)}">{"".join(self.marks)}</svg>'
        )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _tip(name: str) -> str:
    return f"<title>{escape(name)}</title>" if name else ""
