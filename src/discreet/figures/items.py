"""Pictures of items: one row per item, pairs, categories, thresholds; what all pictures share.

In: results. Out: matplotlib Axes. The numbers come from ``report/pictures.py`` and
``items/curves.py``; here are only colours, sizes, words and lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.answers.responses import Responses
from discreet.counts import PairCounts
from discreet.errors import MissingExtra
from discreet.items.curves import GROUPS, ThresholdRows, item_curves, threshold_rows
from discreet.items.dif import DifTable
from discreet.persons.scoring import PersonScores
from discreet.report import pictures
from discreet.results.estimate import Estimate
from discreet.results.ranking import Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito (2008), Color Universal Design.
BLUE, ORANGE, VERMILLION, GREEN = "#0072B2", "#E69F00", "#D55E00", "#009E73"
GREY = "#767676"

#: Up to this many items each get their name beside a picture of pairs; more would overlap.
NAMED = 30
#: Characters of a name beside a row; longer ones would leave no room for the picture.
LONGEST_NAME = 36

#: Marker, colour and filling of every rung of a ladder.
RUNG_STYLES = (
    ("o", BLUE, BLUE),
    ("o", BLUE, "white"),
    ("s", VERMILLION, VERMILLION),
    ("x", GREY, GREY),
)
#: Marker, colour, filling and label of every class.
ETS_STYLES = {
    "C": ("s", VERMILLION, VERMILLION, "C: large"),
    "B": ("D", ORANGE, ORANGE, "B: moderate"),
    "A": ("o", BLUE, "white", "A: negligible or not significant"),
}


def new_axes(width: float = 6.5, height: float = 4.0) -> Axes:
    """Return the Axes of a new figure (sizes in inches: a page is 6.5 wide between margins).

    A notebook shows the figures of pyplot below their cell. Elsewhere pyplot has no part in it: it
    would keep every figure until somebody closes it.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("a plot", "report") from error
    make: Callable[..., Figure] = Figure
    if _is_in_notebook():
        from matplotlib import pyplot as plt

        make = plt.figure
    return make(figsize=(width, height), layout="constrained").subplots()


def _is_in_notebook() -> bool:
    """Say whether the kernel of a notebook runs this code."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return hasattr(get_shell(), "kernel")


def clean(axes: Axes, title: str) -> None:
    """Set the title on the left and take away the frame above and on the right."""
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _new_rows(rows: pictures.ItemRows | ThresholdRows, ax: Axes | None) -> Axes:
    """Return Axes that are high enough for one line of text per row, unless some are given."""
    return new_axes(7, max(1.4 + 0.25 * len(rows.items), 2.7)) if ax is None else ax


def label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows, first at the top; long names by their beginning."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    short = [
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names
    ]
    axes.set_yticks(range(len(names)), short)


def _say_hidden(estimate: Estimate, n_drawn: int) -> str:
    """Say how many items a picture leaves out, and which."""
    n_estimated = int(estimate.estimated.sum())
    left_out = len(estimate.items) - n_estimated
    notes = [f"({left_out} without a number, not shown)"] if left_out else []
    if n_drawn < n_estimated:
        notes.append(f"({n_drawn} of {n_estimated:,} items, evenly chosen by rank)")
    return "".join(f"\n{note}" for note in notes)


def _draw_kind(
    axes: Axes,
    rows: pictures.ItemRows,
    kind: str,
    style: tuple[str, str, str, str],
    size: float = 6,
) -> None:
    """Draw the rows of one kind, with a label for the legend; nothing where there are none."""
    marker, colour, face, label = style
    row = np.flatnonzero(np.array(rows.kind, dtype=object) == kind)
    if len(row):
        axes.hlines(row, rows.lower[row], rows.upper[row], color=colour, linewidth=1.2)
        axes.plot(rows.value[row], row, marker, color=colour, label=label, mfc=face, ms=size)


def difficulty_plot(estimate: Estimate, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the items from hardest (top) to easiest with their intervals.

    Items without a number are left out and counted below the picture. Of more than 60 items, 60
    are drawn, evenly chosen by rank.

    Parameters
    ----------
    estimate
        A calibration or the estimate of a release.
    level
        Confidence level of each item's own interval.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> axes = figures.difficulty_plot(discreet.fit(discreet.datasets.lsat()))
    >>> axes.get_title(loc="left")
    'Item difficulties with 95% intervals'
    """
    rows = pictures.thin_rows(pictures.difficulty_rows(estimate, level))
    axes = _new_rows(rows, ax)
    row = np.arange(len(rows.items))
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    axes.hlines(row, rows.lower, rows.upper, color=BLUE, linewidth=1.2, alpha=0.6)
    axes.plot(rows.value, row, "o", color=BLUE, markersize=4)
    label_rows(axes, rows.items)
    clean(axes, f"Item difficulties with {100 * level:g}% intervals")
    hidden = _say_hidden(estimate, len(rows.items))
    axes.set_xlabel(f"difficulty in logits, harder to the right{hidden}")
    return axes


def ladder_plot(
    ranking: Ranking, estimate: Estimate, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw the top items of a ranking, and who else may belong there.

    Filled circles are surely in the top K, open circles are in it but not surely, squares are
    outside but possibly in, crosses are out. The dashed line is the cut after rank K; of more than
    60 such items those around it are drawn.

    Parameters
    ----------
    ranking
        From :func:`discreet.rank`.
    estimate
        The estimate that was ranked.
    level
        Confidence level of each item's own interval, as a visual aid; the sets come from the
        ranking.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> estimate = discreet.fit(discreet.datasets.lsat())
    >>> axes = figures.ladder_plot(discreet.rank(estimate, top=2), estimate)
    >>> axes.get_title(loc="left")
    'The 2 hardest items, and how sure that is'
    """
    rows = pictures.ladder_rows(ranking, estimate, level)
    axes = _new_rows(rows, ax)
    for kind, style in zip(pictures.RUNGS, RUNG_STYLES, strict=True):
        _draw_kind(axes, rows, kind, (*style, kind))
    above = pictures.find_ladder_start(ranking)
    axes.axhline(len(ranking.top) - above - 0.5, color="black", linewidth=0.9, linestyle="--")
    ranked = enumerate(rows.items, start=above + 1)
    label_rows(axes, [f"{name}  (#{rank})" for rank, name in ranked])
    below = int(estimate.estimated.sum()) - above - len(rows.items)
    all_out = ", all out" * ({*ranking.possibly_in} <= {*rows.items, *ranking.top})
    note = f"\n({below:,} more below{all_out}, not shown)" if below else ""
    note = f"\n({above} more above, not shown){note}" if above else note
    axes.set_xlabel(f"difficulty in logits, harder to the right{note}")
    word = "easiest" if ranking.easiest else "hardest"
    clean(axes, f"The {len(ranking.top)} {word} items, and how sure that is")
    axes.legend(loc="best", frameon=False)
    return axes


def dif_plot(table: DifTable, *, focal: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw how much harder items are for one group than its ability explains.

    Items are sorted by the difference, with 95% intervals. Filled squares are class C of ETS
    (large), diamonds B (moderate), open circles A (negligible or not significant). Of more than 60
    items, those with the largest differences are drawn.

    Parameters
    ----------
    table
        From :func:`discreet.items.dif.find_dif`.
    focal
        Which group is compared with the reference; needed when the table has several.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> table = discreet.find_dif(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> axes = figures.dif_plot(table)
    >>> axes.get_title(loc="left")
    'Item functioning: b against a'
    """
    chosen = pictures.choose_focal(table, focal)
    compared = pictures.dif_rows(table, chosen)
    rows = pictures.keep_largest(compared)
    axes = _new_rows(rows, ax)
    axes.axvline(0, color="black", linewidth=0.8)
    for kind, style in ETS_STYLES.items():
        _draw_kind(axes, rows, kind, style, size=5)
    label_rows(axes, rows.items)
    hidden = len(rows.items) < len(compared.items)
    note = f"\n({len(rows.items)} largest differences of {len(compared.items):,})" if hidden else ""
    axes.set_xlabel(f"logits: easier for {chosen} to the left, harder to the right{note}")
    clean(axes, f"Item functioning: {chosen} against {table.reference}")
    axes.legend(frameon=False, loc="best", title="ETS class")
    return axes


def pair_plot(counts: PairCounts, *, ax: Axes | None = None) -> Axes:
    """Draw how many persons disagree on each pair of items: right on one, wrong on the other.

    That number decides how well two items are compared. White: never compared. Items keep the
    order of the counts; the blocks of a booklet design show up as squares.

    Parameters
    ----------
    counts
        From :func:`discreet.count_pairs`. The picture is confidential.
    ax
        Draw here; a new figure when left out. A colour bar is put beside it.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> axes = figures.pair_plot(discreet.count_pairs(discreet.datasets.lsat()))
    >>> len(axes.get_xticks())
    5
    """
    chart = pictures.pair_map(counts)
    axes = new_axes(6.0, 5.2) if ax is None else ax
    image = axes.imshow(chart.persons, cmap="cividis_r", interpolation="nearest", vmin=0)
    m = len(chart.items)
    if m <= NAMED:
        axes.set_xticks(range(m), chart.items, rotation=90, fontsize="small")
        axes.set_yticks(range(m), chart.items, fontsize="small")
    else:
        axes.set_xlabel("item, in the order of the counts")
    clean(axes, f"Persons who compare two items\n({chart.never:,} of {chart.pairs:,} pairs never)")
    axes.figure.colorbar(image, ax=axes, label="persons right on one, wrong on the other")
    return axes


#: Colours and markers of categories; after so many they come again, dashed.
CATEGORY_LINES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "D"), (ORANGE, "^"), ("black", "v"))
#: A marker for every step.
STEP_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">")


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

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> estimate = discreet.fit(discreet.datasets.wellbeing())
    >>> axes = figures.category_plot(estimate, estimate.items[0])
    >>> axes.get_ylabel()
    'probability of the category'
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
    most likely one. A grey line is the item's location. Of more than 60 items, 60 are drawn, evenly
    chosen by rank.

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

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> estimate = discreet.fit(discreet.datasets.wellbeing())
    >>> axes = figures.threshold_plot(estimate)
    >>> axes.get_title(loc="left")
    'Thresholds with 95% intervals'
    """
    rows = pictures.thin_rows(threshold_rows(estimate, level))
    axes = _new_rows(rows, ax)
    row = np.arange(len(rows.items))
    axes.vlines(rows.location, row - 0.4, row + 0.4, color=GREY, linewidth=1)
    for step in range(rows.value.shape[1]):
        _draw_step(axes, rows, step)
    label_rows(axes, rows.items)
    hidden = _say_hidden(estimate, len(rows.items))
    axes.set_xlabel(f"thresholds in logits, harder to the right{hidden}")
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
