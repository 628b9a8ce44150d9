"""Pictures of items: difficulties with intervals, and the ladder of a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.estimate import Estimate
from discreet.plots.style import BLUE, GREY, VERMILLION, name_rows, new_rows

if TYPE_CHECKING:
    from discreet.topk import Ranking

__all__ = ["CONTEXT", "difficulty_plot", "hardest_first", "ladder_plot"]

CONTEXT = 5
"""Items shown below the last one that is possibly in the top."""

IntArray = npt.NDArray[np.int64]


def difficulty_plot(estimate: Estimate, *, level: float = 0.95, axes: Any = None) -> Any:
    """Draw the items from hardest (top) to easiest with their intervals.

    Items without a number are left out and counted below the picture.

    Parameters
    ----------
    estimate
        A calibration or the estimate of a release.
    level
        Confidence level of each item's own interval.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    order = hardest_first(estimate)
    axes = new_rows(len(order)) if axes is None else axes
    interval = estimate.interval(level)
    place = np.arange(len(order))
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    axes.hlines(place, interval[order, 0], interval[order, 1], color=BLUE, linewidth=1.2, alpha=0.6)
    axes.plot(estimate.difficulty[order], place, "o", color=BLUE, markersize=4)
    name_rows(axes, [estimate.items[i] for i in order])
    axes.set_title(f"Item difficulties with {100 * level:g}% intervals", loc="left")
    left_out = len(estimate.items) - len(order)
    note = f"\n({left_out} without a number, not shown)" if left_out else ""
    axes.set_xlabel(f"difficulty in logits, harder to the right{note}")
    return axes


def ladder_plot(
    ranking: Ranking, estimate: Estimate, *, level: float = 0.95, axes: Any = None
) -> Any:
    """Draw the top items of a ranking, and who else may belong there.

    Filled circles are surely in the top K, open circles are in it but not surely, squares are
    outside but possibly in, crosses are out. The dashed line is the cut after rank K.

    Parameters
    ----------
    ranking
        From :func:`discreet.rank`.
    estimate
        The estimate that was ranked.
    level
        Confidence level of each item's own interval, as a visual aid; the sets come from the
        ranking.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    order = _ladder_order(ranking, estimate)
    axes = new_rows(len(order)) if axes is None else axes
    interval = estimate.interval(level)
    for label, marker, colour, fill, members in _rungs(ranking, estimate, order):
        item = order[members]
        axes.hlines(members, interval[item, 0], interval[item, 1], color=colour, linewidth=1.2)
        face = colour if fill else "white"
        axes.plot(estimate.difficulty[item], members, marker, color=colour, label=label, mfc=face)
    axes.axhline(len(ranking.top) - 0.5, color="black", linewidth=0.9, linestyle="--")
    name_rows(axes, [f"{estimate.items[i]}  (#{place})" for place, i in enumerate(order, start=1)])
    below = int(estimate.estimated.sum()) - len(order)
    note = f"\n({below} more below, all out, not shown)" if below else ""
    axes.set_xlabel(f"difficulty in logits, harder to the right{note}")
    word = "easiest" if ranking.easiest else "hardest"
    axes.set_title(f"The {len(ranking.top)} {word} items, and how sure that is", loc="left")
    axes.legend(loc="best", frameon=False)
    return axes


def _ladder_order(ranking: Ranking, estimate: Estimate) -> IntArray:
    """Return the items to show: everything possibly in the top, and a few below it."""
    order = hardest_first(estimate)
    if ranking.easiest:
        shown = np.flatnonzero(estimate.estimated)
        order = shown[np.argsort(estimate.difficulty[shown], kind="stable")]
    named = set(ranking.top) | set(ranking.possibly_in)
    last = max((rank for rank, i in enumerate(order) if estimate.items[i] in named), default=-1)
    return order[: last + 1 + CONTEXT]


def _rungs(
    ranking: Ranking, estimate: Estimate, order: IntArray
) -> list[tuple[str, str, str, bool, IntArray]]:
    """Group the shown ranks: label, marker, colour, filled or not, ranks; empty groups go."""
    names = np.array([estimate.items[i] for i in order], dtype=object)
    top = np.array([name in set(ranking.top) for name in names], dtype=bool)
    sure = np.array([name in set(ranking.surely_in) for name in names], dtype=bool)
    possible = np.array([name in set(ranking.possibly_in) for name in names], dtype=bool)
    groups = [
        ("surely in", "o", BLUE, True, top & sure),
        ("in, not surely", "o", BLUE, False, top & ~sure),
        ("outside, possibly in", "s", VERMILLION, True, ~top & possible),
        ("out", "x", GREY, True, ~top & ~possible),
    ]
    return [(*group[:-1], np.flatnonzero(group[-1])) for group in groups if group[-1].any()]


def hardest_first(estimate: Estimate) -> IntArray:
    """Items with a number, hardest first; ties stay in the order of the input."""
    shown = np.flatnonzero(estimate.estimated)
    if not len(shown):
        raise BadUsage("no item of this estimate has a number, so there is nothing to draw")
    return shown[np.argsort(-estimate.difficulty[shown], kind="stable")]
