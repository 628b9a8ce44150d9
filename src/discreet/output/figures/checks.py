"""Pictures of checks: fit of items, differential item functioning, who answered what together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.counts.table import PairCounts
from discreet.errors import BadUsage
from discreet.output.figures.items import (
    BLUE,
    GREY,
    NAMED,
    ORANGE,
    VERMILLION,
    clean,
    name_rows,
    new_axes,
    new_rows,
)
from discreet.results.estimate import Estimate

if TYPE_CHECKING:
    from discreet.analysis.dif import DifTable
    from discreet.analysis.item_fit import FitStatistics


RANGE = (0.7, 1.3)
"""Mean squares of ordinary tests (Wright and Linacre 1994, Reasonable mean-square fit values)."""
OUTLIERS = 12
"""How many misfitting items are named."""


def fit_plot(
    estimate: Estimate, fit: FitStatistics, *, statistic: str = "infit", axes: Any = None
) -> Any:
    """Draw the fit of items as bubbles: mean square across, difficulty up, size the error.

    Parameters
    ----------
    estimate
        The calibration.
    fit
        From :func:`discreet.analysis.item_fit.measure_fit` with that calibration.
    statistic
        ``"infit"`` or ``"outfit"``.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if statistic not in ("infit", "outfit"):
        raise BadUsage(f"statistic must be 'infit' or 'outfit', found {statistic!r}")
    column = dict(zip(fit.items.items, getattr(fit.items, statistic), strict=True))
    value = np.array([column.get(name, np.nan) for name in estimate.items])
    known = np.flatnonzero(estimate.estimated & np.isfinite(value))
    if not len(known):
        raise BadUsage("no item has a fit statistic, so there is nothing to draw")
    axes = new_axes(6.5, 4.8) if axes is None else axes
    outside = (value[known] < RANGE[0]) | (value[known] > RANGE[1])
    error = np.nan_to_num(estimate.se[known], nan=float(np.nanmedian(estimate.se[known])))
    size = 250 * (error / max(float(error.max()), 1e-9)) ** 2
    axes.axvspan(*RANGE, color=GREY, alpha=0.12, linewidth=0)
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    for mask, colour, label in ((~outside, BLUE, "as expected"), (outside, VERMILLION, "misfit")):
        if mask.any():
            axes.scatter(
                value[known[mask]],
                estimate.difficulty[known[mask]],
                s=size[mask],
                color=colour,
                alpha=0.45,
                edgecolor=colour,
                label=label,
            )
    worst = known[outside][np.argsort(-np.abs(np.log(value[known[outside]])))][:OUTLIERS]
    for i in worst:
        axes.annotate(
            estimate.items[i],
            (value[i], estimate.difficulty[i]),
            xytext=(7, 3),
            textcoords="offset points",
            fontsize="small",
        )
    axes.set_xlabel(f"{statistic} mean square: predictable left, noisy right of 1")
    axes.set_ylabel("difficulty in logits")
    axes.margins(x=0.12)
    clean(axes, f"Fit of {len(known):,} items (larger: less sure)")
    return axes


def dif_plot(table: DifTable, *, focal: str | None = None, axes: Any = None) -> Any:
    """Draw how much harder items are for one group than its ability explains.

    Items are sorted by the difference, with 95% intervals. Filled squares are class C of ETS
    (large), diamonds B (moderate), open circles A (negligible or not significant).

    Parameters
    ----------
    table
        From :func:`discreet.analysis.dif.find_dif`.
    focal
        Which group is compared with the reference; needed when the table has several.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    chosen = _choose_focal(table, focal)
    mine = np.array([name == chosen for name in table.focal]) & np.isfinite(table.difference)
    rows = np.flatnonzero(mine)
    if not len(rows):
        raise BadUsage(f"no item could be compared for the group {chosen!r}; see table.status")
    rows = rows[np.argsort(-table.difference[rows], kind="stable")]
    axes = new_rows(len(rows)) if axes is None else axes
    axes.axvline(0, color="black", linewidth=0.8)
    letters = np.array(table.ets, dtype=object)[rows]
    kinds = (
        ("C", "s", VERMILLION, "C: large"),
        ("B", "D", ORANGE, "B: moderate"),
        ("A", "o", BLUE, "A: negligible or not significant"),
    )
    for letter, marker, colour, label in kinds:
        place = np.flatnonzero(letters == letter)
        if len(place):
            x, half = table.difference[rows[place]], 1.96 * table.se[rows[place]]
            axes.hlines(place, x - half, x + half, color=colour, linewidth=1.2)
            face = "white" if letter == "A" else colour
            axes.plot(x, place, marker, color=colour, label=label, markersize=5, mfc=face)
    name_rows(axes, [table.item[row] for row in rows])
    axes.set_xlabel(f"logits: easier for {chosen} to the left, harder to the right")
    clean(axes, f"Item functioning: {chosen} against {table.reference}")
    axes.legend(frameon=False, loc="best", title="ETS class")
    return axes


def _choose_focal(table: DifTable, focal: str | None) -> str:
    groups = sorted(set(table.focal))
    if focal is None and len(groups) == 1:
        return groups[0]
    if focal not in groups:
        raise BadUsage(
            f"the table compares {', '.join(groups)} with {table.reference}; choose one of them "
            f"as focal, found {focal!r}"
        )
    return focal


def pair_plot(counts: PairCounts, *, axes: Any = None) -> Any:
    """Draw how many persons disagree on each pair of items: right on one, wrong on the other.

    That number decides how well two items are compared. White: never compared. Items keep the
    order of the counts; the blocks of a booklet design show up as squares.

    Parameters
    ----------
    counts
        From :func:`discreet.count_pairs`. The picture is confidential.
    axes
        Draw here; a new figure when left out. A colour bar is put beside it.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(6.0, 5.2) if axes is None else axes
    right_wrong = counts.dense("a picture of all pairs")
    either = (right_wrong + right_wrong.T).astype(np.float64)
    either[either == 0] = np.nan
    image = axes.imshow(either, cmap="cividis_r", interpolation="nearest", vmin=0)
    m = len(counts.items)
    # Names of more than this many items would overlap below a picture six inches wide.
    if m <= NAMED // 2:
        axes.set_xticks(range(m), counts.items, rotation=90, fontsize="small")
        axes.set_yticks(range(m), counts.items, fontsize="small")
    else:
        axes.set_xlabel("item, in the order of the counts")
    never = int(np.isnan(either).sum() - m) // 2
    clean(axes, f"Persons who compare two items ({never:,} of {m * (m - 1) // 2:,} pairs never)")
    axes.figure.colorbar(image, ax=axes, label="persons right on one, wrong on the other")
    return axes
