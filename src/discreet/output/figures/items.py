"""What all pictures share: colours, a new Axes of a size that fits a report, named rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage, MissingExtra
from discreet.results.estimate import Estimate

if TYPE_CHECKING:
    from discreet.results.ranking import Ranking


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


# Pictures of items: difficulties with intervals, and the ladder of a ranking.

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


# What privacy costs: the error of difficulties against epsilon.

LINES = ((BLUE, "o-"), (VERMILLION, "s--"), (GREEN, "D-."), (ORANGE, "^:"), ("black", "v-"))
"""Colours and markers: one kind of line for each mechanism."""


def privacy_plot(
    epsilon: Sequence[float],
    error: Sequence[float] | Mapping[str, Sequence[float]],
    *,
    without_privacy: float | None = None,
    axes: Any = None,
) -> Any:
    """Draw the error of the difficulties against epsilon, on logarithmic axes.

    Parameters
    ----------
    epsilon
        The budgets.
    error
        Root mean square error in logits for each budget; or one such list per mechanism.
    without_privacy
        The error that sampling persons leaves anyway, as a line.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    curves = dict(error) if isinstance(error, Mapping) else {"": error}
    _check_curves(epsilon, curves)
    axes = new_axes() if axes is None else axes
    for (name, values), (colour, style) in zip(curves.items(), LINES, strict=False):
        axes.loglog(epsilon, values, style, color=colour, label=name or "with privacy")
    if without_privacy is not None:
        axes.axhline(without_privacy, color=GREY, linestyle=":", label="without privacy")
    axes.set_xlabel("epsilon (less privacy to the right)")
    axes.set_ylabel("error of a difficulty in logits")
    axes.set_xticks(list(epsilon), [f"{value:g}" for value in epsilon])
    _label_decades(axes, [v for values in curves.values() for v in values], without_privacy)
    axes.minorticks_off()
    axes.grid(visible=True, color=GREY, alpha=0.2)
    clean(axes, "What privacy costs")
    axes.legend(frameon=False)
    return axes


def _check_curves(epsilon: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    if len(curves) > len(LINES):
        raise BadUsage(f"one picture holds up to {len(LINES)} curves, found {len(curves)}")
    for name, values in curves.items():
        if len(values) != len(epsilon):
            raise BadUsage(
                f"the curve {name!r} has {len(values)} errors for {len(epsilon)} values of epsilon"
            )
    numbers = np.concatenate(
        [np.asarray(list(epsilon), dtype=float), *map(np.asarray, curves.values())]
    )
    if not (numbers.size and (numbers > 0).all()):
        raise BadUsage("epsilon and errors must be above zero to be drawn on logarithmic axes")


def _label_decades(axes: Any, values: Sequence[float], floor: float | None) -> None:
    """Mark 1, 2 and 5 times powers of ten within the errors; a plain log axis shows too few."""
    shown = [*values, *([] if floor is None else [floor])]
    low, high = 0.8 * min(shown), 1.25 * max(shown)
    axes.set_ylim(low, high)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
