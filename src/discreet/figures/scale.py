"""Pictures with a scale of logits or epsilon: Wright map, fit, item curves, information, privacy.

In: results. Out: matplotlib Axes. The numbers come from ``report/pictures.py``; here are only
colours, sizes, words and lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.figures.items import BLUE, GREEN, GREY, ORANGE, VERMILLION, clean, new_axes
from discreet.items.curves import BIN, GROUPS, bin_abilities, item_curves
from discreet.items.cutoffs import FitCutoffs
from discreet.items.dimensionality import Dimensionality
from discreet.items.distractors import Distractors, option_map
from discreet.items.fit import FitStatistics
from discreet.items.residuals import trace_information
from discreet.persons.scoring import PersonScores
from discreet.report import pictures
from discreet.results.estimate import Estimate
from discreet.results.limits import FIT_HIGH, FIT_LOW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to this many items the Wright map writes names; more are drawn as dots.
LABELLED = 50
#: Distance of two items and room for all of them, in widths of the persons' half.
DOT_STEP, ITEMS_WIDTH = 0.05, 1.35
#: Height of a line of small text.
LINE_INCHES = 0.14
#: Signs of item names that fit on one line of the map.
NAMES_WIDTH = 44
#: How many misfitting items are named.
OUTLIERS = 12
#: Wrong options that nothing is wrong with.
WRONG_LINES = ((GREY, "D-."), (ORANGE, "^:"), (GREEN, "v-"), ("black", "P--"))
#: Colours and markers: one kind of line for each mechanism or item.
LINES = ((BLUE, "o-"), (VERMILLION, "s--"), (GREEN, "D-."), (ORANGE, "^:"), ("black", "v-"))


def wright_plot(estimate: Estimate, scores: PersonScores, *, ax: Axes | None = None) -> Axes:
    """Draw the Wright map: abilities to the left, items to the right of one vertical scale.

    An item with steps stands at each of its thresholds, as its name and the step.

    Parameters
    ----------
    estimate
        The calibration.
    scores
        From :func:`discreet.score` with that calibration. The picture is confidential.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> axes = figures.wright_plot(estimate, discreet.score(answers, estimate))
    >>> axes.get_title(loc="left")
    '1,000 persons and 5 items on one scale'
    """
    ability = scores.ability[np.isfinite(scores.ability)]
    if not len(ability):
        raise BadUsage("no person has an ability, so there is no Wright map to draw")
    starts, counts = bin_abilities(ability)
    chart = pictures.wright_map(
        estimate, starts, counts, persons=len(ability), mean=float(ability.mean())
    )
    axes = new_axes(6.5, 6.5) if ax is None else ax
    largest = float(chart.counts.max())
    axes.barh(
        chart.starts,
        -chart.counts,
        height=BIN,
        align="edge",
        color=BLUE,
        alpha=0.55,
        edgecolor="white",
    )
    _draw_items(axes, chart, largest)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.plot([-largest * 0.03], [chart.mean], ">", color=VERMILLION, clip_on=False, zorder=5)
    axes.plot([largest * 0.03], [0], "<", color=VERMILLION, zorder=5)
    axes.set_xlim(-largest * 1.08, largest * 1.5)
    axes.set_ylim(chart.reach[0] - BIN, chart.reach[1] + BIN)
    right_label = "thresholds" if chart.steps else "items"
    axes.set_xticks([-largest * 0.54, largest * 0.75], ["persons", right_label])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("logits (abler, harder upwards)")
    clean(axes, f"{chart.persons:,} persons and {chart.count} on one scale")
    axes.set_xlabel("red triangles: the two means", color=GREY, fontsize="small")
    return axes


def contrast_plot(dimensionality: Dimensionality, *, ax: Axes | None = None) -> Axes:
    """Draw loadings on the first component of the residuals against difficulty.

    Filled circles are the items with positive loadings; the outermost items are named.

    Parameters
    ----------
    dimensionality
        From :func:`discreet.items.dimensionality.find_dimensions`.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis, figures
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> axes = figures.contrast_plot(analysis.find_dimensions(answers, estimate))
    >>> axes.get_ylabel()
    'loading on the first contrast'
    """
    chart = pictures.contrast_map(dimensionality)
    axes = new_axes() if ax is None else ax
    axes.axhline(0, color="black", linewidth=0.8)
    ends = ((chart.loading > 0, VERMILLION, VERMILLION), (chart.loading <= 0, BLUE, "white"))
    for mine, colour, face in ends:
        x, y = chart.difficulty[mine], chart.loading[mine]
        axes.plot(x, y, "o", color=colour, mfc=face, markersize=5)
    points = [(float(chart.difficulty[i]), float(chart.loading[i])) for i in chart.ends]
    _name_points(axes, [chart.items[i] for i in chart.ends], points)
    axes.set_xlabel("difficulty in logits")
    axes.set_ylabel("loading on the first contrast")
    worth = f"{chart.eigenvalue:.1f} items, {chart.expected:.1f} by chance"
    clean(axes, f"First contrast of the residuals: worth {worth}")
    return axes


def _name_points(axes: Axes, names: Sequence[str], points: Sequence[tuple[float, float]]) -> None:
    """Write names beside points, the first ones first, where they cover no other name."""
    axes.autoscale_view()
    height = axes.figure.dpi * LINE_INCHES
    taken: list[tuple[float, float, float]] = []
    for name, point in zip(names, points, strict=True):
        x, y = axes.transData.transform(point)
        width = height * 0.6 * len(name)
        if all(abs(y - b) > height or x + width < a or a + w < x for a, b, w in taken):
            taken.append((x, y, width))
            axes.annotate(name, point, (6, 3), textcoords="offset points", fontsize="small")


def _draw_items(axes: Axes, chart: pictures.WrightMap, largest: float) -> None:
    """Put items into the bins of their difficulty, side by side: names, dots, or for many bars."""
    highest = int(chart.level.max())
    step = largest * min(DOT_STEP, ITEMS_WIDTH / highest)
    for height in np.unique(chart.centre):
        mine = np.flatnonzero(chart.centre == height)
        if len(chart.items) <= LABELLED:
            text = _join_names([chart.names[i] for i in mine])
            axes.text(largest * 0.08, height, text, va="center", fontsize="small")
        elif highest * DOT_STEP > ITEMS_WIDTH:
            left, width = largest * 0.02, step * len(mine)
            axes.barh(height, width, BIN, left=left, color=ORANGE, alpha=0.55, edgecolor="white")
        else:
            x = largest * 0.08 + step * (chart.level[mine] - 1)
            y = chart.centre[mine]
            axes.plot(x, y, "o", color=ORANGE, markersize=4, mec="black", markeredgewidth=0.3)


def _join_names(names: list[str]) -> str:
    """Write as many names as fit beside the scale, and how many more there are."""
    line = ""
    for number, name in enumerate(names):
        if len(line) + len(name) > NAMES_WIDTH:
            short = names[0][: NAMES_WIDTH - 1] + "…" if not line else line.rstrip()
            hidden = len(names) - max(number, 1)
            return f"{short}  +{hidden}" if hidden else short
        line += f"{name}  "
    return line.rstrip()


def fit_plot(
    estimate: Estimate,
    fit: FitStatistics,
    *,
    statistic: str = "infit",
    cutoffs: FitCutoffs | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the fit of items as bubbles: mean square across, difficulty up, size the error.

    Parameters
    ----------
    estimate
        The calibration.
    fit
        From :func:`discreet.items.fit.measure_fit` with that calibration.
    statistic
        ``"infit"`` or ``"outfit"``.
    cutoffs
        From :func:`discreet.analysis.simulate_cutoffs`: a bar behind every bubble shows where it
        lies when the model holds. Without them a band shows the rule of thumb, 0.7 to 1.3.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis, figures
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> axes = figures.fit_plot(estimate, analysis.measure_fit(answers, estimate))
    >>> axes.get_title(loc="left")
    'Fit of 5 items (larger: less sure)'
    """
    if statistic not in ("infit", "outfit"):
        raise BadUsage(f"statistic must be 'infit' or 'outfit', found {statistic!r}")
    column = getattr(fit.items.align(estimate.items), f"conditional_{statistic}")
    limits = None
    if cutoffs is not None:
        limits = getattr(cutoffs.align(estimate.items), statistic).T
    chart = pictures.fit_map(estimate, column, statistic, limits)
    axes = new_axes(6.5, 4.8) if ax is None else ax
    if limits is None:
        axes.axvspan(FIT_LOW, FIT_HIGH, color=GREY, alpha=0.12, linewidth=0)
    else:
        axes.hlines(chart.difficulty, chart.low, chart.high, color=GREY, alpha=0.3, linewidth=4)
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    # Many bubbles are drawn small, or they hide each other.
    largest = min(250.0, 25_000 / len(chart.items))
    groups = ((~chart.outside, BLUE, "as expected"), (chart.outside, VERMILLION, "misfit"))
    for mask, colour, label in groups:
        if mask.any():
            axes.scatter(
                chart.value[mask],
                chart.difficulty[mask],
                s=largest * chart.unsure[mask] ** 2,
                color=colour,
                alpha=0.45,
                edgecolor=colour,
                label=label,
            )
    axes.set_xlabel(f"{statistic} mean square: predictable left, noisy right of 1")
    axes.set_ylabel(f"{chart.number} in logits")
    axes.margins(x=0.12)
    worst = chart.worst[:OUTLIERS]
    points = [(float(chart.value[i]), float(chart.difficulty[i])) for i in worst]
    _name_points(axes, [chart.items[i] for i in worst], points)
    clean(axes, f"Fit of {len(chart.items):,} items (larger: less sure)")
    return axes


def curve_plot(
    estimate: Estimate,
    items: str | list[str] | tuple[str, ...],
    *,
    responses: Responses | None = None,
    scores: PersonScores | None = None,
    groups: int = GROUPS,
    ax: Axes | None = None,
) -> Axes:
    """Draw the expected curves of up to five items, with the observed shares beside them.

    Of items with steps, the expected score and the observed means.

    Parameters
    ----------
    estimate
        The calibration.
    items
        One name or several.
    responses, scores
        The answers and the abilities (:func:`discreet.score`) behind the observed points: the
        share right in equally large groups of persons (without those who had everything right or
        wrong), with 95% intervals; with steps, the mean score. Left out: curves only. With them
        the picture is confidential.
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
    >>> estimate = discreet.fit(discreet.datasets.lsat())
    >>> axes = figures.curve_plot(estimate, ["Item1", "Item3"])
    >>> axes.get_title(loc="left")
    'Expected curves'
    """
    names = [items] if isinstance(items, str) else list(items)
    curves = item_curves(estimate, names, responses, scores, groups)
    axes = new_axes() if ax is None else ax
    b = [limit for curve in curves for limit in curve.thresholds]
    ability = np.linspace(min(b) - 4, max(b) + 4, 161)
    highest = max(curve.steps for curve in curves)
    for curve, (colour, style) in zip(curves, LINES, strict=False):
        label = f"{curve.item} ({curve.difficulty:+.2f})"
        axes.plot(ability, curve.expect(ability), color=colour, label=label)
        if curve.points:
            x, share, low, high = curve.observe()
            axes.vlines(x, low, high, color=colour, linewidth=1, alpha=0.7)
            axes.plot(x, share, style[0], color=colour, markersize=5)
    axes.set_xlabel("ability in logits")
    number, noun = ("difficulty", "shares") if highest == 1 else ("location", "mean scores")
    axes.set_ylabel("share of right answers" if highest == 1 else "expected score")
    axes.set_ylim(-0.03 * highest, 1.03 * highest)
    clean(axes, "Expected curves" if scores is None else f"Expected curves and observed {noun}")
    axes.legend(title=f"item ({number})", frameon=False, loc="upper left")
    return axes


def option_plot(distractors: Distractors, item: str, *, ax: Axes | None = None) -> Axes:
    """Draw the shares of an item's options in groups of persons of rising ability. Confidential.

    A sound item: the line of the right answer rises, those of wrong ones fall.

    Parameters
    ----------
    distractors
        From :func:`discreet.analysis.analyse_distractors`.
    item
        Which one.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet import analysis, figures
    >>> from discreet.answers.responses import Responses
    >>> table = pa.table({"Q1": ["A", "A", "B", "A"], "Q2": ["C", "D", "C", "C"]})
    >>> chosen = analysis.analyse_distractors(Responses.from_dataframe(table, key="AC"))
    >>> axes = figures.option_plot(chosen, "Q1")
    >>> axes.get_title(loc="left")
    'Options of Q1'
    """
    chart = option_map(distractors, item)
    axes = new_axes() if ax is None else ax
    rows = zip(chart.options, chart.right, chart.flagged, chart.shares, strict=True)
    styles = cycle(WRONG_LINES)
    for name, right, flagged, points in rows:
        colour, style = (BLUE, "o-") if right else (VERMILLION, "s--") if flagged else next(styles)
        words = " (right)" if right else " (attracts abler persons)" if flagged else ""
        ability, share, _ = np.array(points, dtype=np.float64).reshape(-1, 3).T
        width = 2.2 if right or flagged else 1.2
        axes.plot(
            ability, share, style, color=colour, linewidth=width, label=f"{name}{words}", ms=5
        )
    axes.set_xlabel("ability in logits")
    axes.set_ylabel("share of the persons who answered")
    axes.set_ylim(-0.03, 1.03)
    clean(axes, f"Options of {item}")
    axes.legend(title="option", frameon=False, loc="best")
    return axes


def information_plot(estimate: Estimate, *, ax: Axes | None = None) -> Axes:
    """Draw test information and the standard error of an ability, if all items are answered.

    Parameters
    ----------
    estimate
        A calibration or the estimate of a release.
    ax
        Draw here; a new figure when left out. The standard error gets an axis on the right.

    Returns
    -------
    matplotlib.axes.Axes
        The one with the information.

    Examples
    --------
    >>> import discreet
    >>> from discreet import figures
    >>> axes = figures.information_plot(discreet.fit(discreet.datasets.lsat()))
    >>> axes.get_ylabel()
    'information'
    """
    curve = trace_information(estimate)
    axes = new_axes() if ax is None else ax
    (information,) = axes.plot(curve.ability, curve.information, color=BLUE, linewidth=2)
    axes.set_xlabel("ability in logits")
    axes.set_ylabel("information", color=BLUE)
    axes.set_ylim(0)
    right = axes.twinx()
    (error,) = right.plot(curve.ability, curve.se, color=VERMILLION, linewidth=2, linestyle="--")
    right.set_ylabel("standard error in logits", color=VERMILLION)
    right.set_ylim(0, pictures.error_ceiling(curve))
    clean(axes, "What the whole test tells at each ability")
    right.spines["top"].set_visible(False)
    axes.legend(
        [information, error], ["information", "standard error"], frameon=False, loc="lower center"
    )
    return axes


def privacy_plot(
    epsilon: Sequence[float],
    error: Sequence[float] | Mapping[str, Sequence[float]],
    *,
    without_privacy: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the error of the difficulties against epsilon, on logarithmic axes.

    Parameters
    ----------
    epsilon
        The budgets.
    error
        Root mean square error in logits for each budget; or one such list per mechanism.
    without_privacy
        The error that sampling persons leaves anyway, as a line.
    ax
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from discreet import figures
    >>> axes = figures.privacy_plot([0.5, 1.0, 2.0], [0.4, 0.3, 0.2])
    >>> axes.get_title(loc="left")
    'What privacy costs'
    """
    curves = dict(error) if isinstance(error, Mapping) else {"": error}
    _check_curves(epsilon, curves)
    axes = new_axes() if ax is None else ax
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


def _label_decades(axes: Axes, values: Sequence[float], floor: float | None) -> None:
    """Mark 1, 2 and 5 times powers of ten within the errors; a plain log axis shows too few."""
    errors = [*values, *([] if floor is None else [floor])]
    low, high = 0.8 * min(errors), 1.25 * max(errors)
    axes.set_ylim(low, high)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
