"""Pictures of items with steps: categories of an item, thresholds of all items.

In: results. Out: matplotlib Axes. The numbers come from ``items/curves.py``; here are only
colours, sizes, words and lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.figures.items import (
    BLUE,
    GREEN,
    GREY,
    NAMED,
    ORANGE,
    VERMILLION,
    clean,
    label_rows,
    new_axes,
)
from discreet.items.curves import GROUPS, ThresholdRows, item_curves, threshold_rows
from discreet.persons.scoring import PersonScores
from discreet.results.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.answers.responses import Responses

CATEGORY_LINES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "D"), (ORANGE, "^"), ("black", "v"))
"""Colours and markers of categories; after so many they come again, dashed."""
STEP_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">")
"""A marker for every step."""


def category_plot(
    estimate: Estimate,
    item: str,
    *,
    responses: Responses | None = None,
    scores: PersonScores | None = None,
    groups: int = GROUPS,
    ax: Axes | None = None,
) -> Axes:
    """Draw how likely each category of an item is, with the observed shares beside it.

    Curves of neighbouring categories cross at the thresholds. A category whose curve is nowhere
    the highest lies between thresholds in the wrong order.

    Parameters
    ----------
    estimate
        The calibration.
    item
        Which item, by name.
    responses, scores
        The answers and the abilities (:func:`discreet.score`) behind the observed points: shares
        in equally large groups of persons, without those who have the lowest or the highest
        score. Left out: curves only. With them the picture is confidential.
    groups
        How many groups of persons.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    (curve,) = item_curves(estimate, [item], responses, scores, groups)
    axes = new_axes() if ax is None else ax
    chance = curve.expect_categories(curve.ability)
    ability = [point[0] for point in curve.points]
    for category, label in enumerate(curve.labels):
        colour, marker = CATEGORY_LINES[category % len(CATEGORY_LINES)]
        style = "-" if category < len(CATEGORY_LINES) else "--"
        axes.plot(curve.ability, chance[:, category], style, color=colour, label=str(label))
        shares = [point[category] for point in curve.shares]
        if shares:
            axes.plot(ability, shares, marker, color=colour, markersize=5)
        peak = int(np.argmax(chance[:, category]))
        summit = float(curve.ability[peak]), float(chance[peak, category])
        axes.annotate(
            str(label), summit, (0, 3), textcoords="offset points", ha="center", color=colour
        )
    axes.set_xlabel("ability in logits")
    axes.set_ylabel("probability of the category")
    axes.set_ylim(-0.03, 1.08)
    clean(axes, f"Categories of {item}" + (" and observed shares" if curve.points else ""))
    axes.legend(title="category", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return axes


def threshold_plot(estimate: Estimate, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the thresholds of all items, from the hardest item (top) to the easiest.

    Filled red markers are thresholds in the wrong order: the category between them is nowhere the
    most likely one. A grey line is the item's location.

    Parameters
    ----------
    estimate
        A calibration or the estimate of a release.
    level
        Confidence level of each threshold's own interval.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    rows = threshold_rows(estimate, level)
    axes = new_axes(7, max(1.4 + 0.27 * min(len(rows.items), NAMED), 2.8)) if ax is None else ax
    row = np.arange(len(rows.items))
    axes.vlines(rows.location, row - 0.4, row + 0.4, color=GREY, linewidth=1)
    for step in range(rows.value.shape[1]):
        _draw_step(axes, rows, step)
    label_rows(axes, rows.items)
    left_out = len(estimate.items) - len(rows.items)
    note = f"\n({left_out} without a number, not shown)" if left_out else ""
    axes.set_xlabel(f"thresholds in logits, harder to the right{note}")
    clean(axes, f"Thresholds with {100 * level:g}% intervals")
    axes.legend(title="step", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return axes


def _draw_step(axes: Axes, rows: ThresholdRows, step: int) -> None:
    """Draw one threshold of every item that has it."""
    wrong = np.array([step < len(marks) and marks[step] for marks in rows.disordered])
    valid = ~np.isnan(rows.value[:, step])
    marker, label = STEP_MARKERS[step], str(step + 1)
    for mine, colour, face in ((valid & ~wrong, BLUE, "white"), (valid & wrong, VERMILLION, None)):
        row = np.flatnonzero(mine)
        x, lower, upper = (column[row, step] for column in (rows.value, rows.lower, rows.upper))
        axes.hlines(row, lower, upper, color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(x, row, marker, color=colour, mfc=face or colour, ms=6, label=label)
        label = "_again"  # one entry of the legend for each step
