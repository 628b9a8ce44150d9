"""What all pictures share: colours, a new Axes of a size that fits a report, named rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import MissingExtra

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "NAMED",
    "ORANGE",
    "VERMILLION",
    "clean",
    "name_rows",
    "new_axes",
    "new_rows",
]

BLUE, ORANGE, VERMILLION, GREEN = "#0072B2", "#E69F00", "#D55E00", "#009E73"
"""Okabe and Ito (2008), Color Universal Design."""
GREY = "#767676"

NAMED = 60
"""Up to this many items each get their name on the axis; more would overlap."""


def new_axes(width: float = 6.5, height: float = 4.0) -> Any:
    """Return the Axes of a new figure (sizes in inches: a page is 6.5 wide between margins)."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("a plot", "report") from error
    return Figure(figsize=(width, height), layout="constrained").subplots()


def new_rows(rows: int) -> Any:
    """Return new Axes that are high enough for one line of text per row."""
    return new_axes(7, max(1.4 + 0.24 * min(rows, NAMED), 2.6))


def clean(axes: Any, title: str) -> None:
    """Set the title on the left and take away the frame above and on the right."""
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Label the rows, first at the top; many items get a plain rank axis instead."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    if len(names) <= NAMED:
        axes.set_yticks(range(len(names)), names)
    else:
        axes.set_ylabel("rank")
