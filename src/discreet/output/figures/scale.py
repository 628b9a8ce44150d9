"""Persons and items on one scale: the Wright map, item curves, information."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.analysis.binning import GROUPS, bin_answers
from discreet.analysis.persons import PersonScores
from discreet.analysis.residuals import trace_information
from discreet.errors import BadUsage
from discreet.output.figures.items import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    clean,
    hardest_first,
    new_axes,
)
from discreet.results.estimate import Estimate
from discreet.types import FloatArray

if TYPE_CHECKING:
    from discreet.answers.responses import Responses


BIN = 0.25
"""Width in logits of a bar of abilities."""
LABELLED = 45
"""Up to this many items the Wright map writes names; more are drawn as dots."""
NAMES_WIDTH = 44
"""Signs of item names that fit on one line of the map."""
CURVES = 5
"""Item curves that one picture can hold and still be read."""
MARKERS = "osD^v"


def wright_plot(estimate: Estimate, scores: PersonScores, *, axes: Any = None) -> Any:
    """Draw the Wright map: abilities to the left, items to the right of one vertical scale.

    Parameters
    ----------
    estimate
        The calibration.
    scores
        From :func:`discreet.score` with that calibration. The picture is confidential.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    order = hardest_first(estimate)
    axes = new_axes(6.5, 6.5) if axes is None else axes
    ability = scores.ability[np.isfinite(scores.ability)]
    if not len(ability):
        raise BadUsage("no person has an ability, so there is no Wright map to draw")
    largest = _draw_persons(axes, ability)
    _draw_items(axes, estimate, order, largest)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.plot([-largest * 0.03], [ability.mean()], ">", color=VERMILLION, clip_on=False, zorder=5)
    axes.plot([largest * 0.03], [0], "<", color=VERMILLION, zorder=5)
    axes.set_xlim(-largest * 1.08, largest * 1.5)
    axes.set_xticks([-largest * 0.54, largest * 0.75], ["persons", "items"])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("logits (abler, harder upwards)")
    clean(axes, f"{len(ability):,} persons and {len(order):,} items on one scale")
    axes.set_xlabel("red triangles: the two means", color=GREY, fontsize="small")
    return axes


def _draw_persons(axes: Any, ability: FloatArray) -> float:
    edges = np.arange(np.floor(ability.min()), np.ceil(ability.max()) + BIN, BIN)
    count, edges = np.histogram(ability, edges)
    axes.barh(
        edges[:-1], -count, height=BIN, align="edge", color=BLUE, alpha=0.55, edgecolor="white"
    )
    return float(count.max())


def _draw_items(
    axes: Any, estimate: Estimate, order: npt.NDArray[np.int64], largest: float
) -> None:
    """Put items into the bins of their difficulty, side by side, as names or as dots."""
    named = len(order) <= LABELLED
    columns = np.floor(estimate.difficulty[order] / BIN).astype(int)
    for column in np.unique(columns):
        mine = order[columns == column]
        height = (column + 0.5) * BIN
        if named:
            text = _join_names([estimate.items[i] for i in mine])
            axes.text(largest * 0.08, height, text, va="center", fontsize="small")
        else:
            step = largest * min(0.05, 1.35 / len(mine))
            across = largest * 0.08 + step * np.arange(len(mine))
            axes.plot(
                across,
                np.full(len(mine), height),
                "o",
                color=ORANGE,
                markersize=4,
                markeredgecolor="black",
                markeredgewidth=0.3,
            )
    low, high = axes.get_ylim()
    extremes = estimate.difficulty[order]
    axes.set_ylim(min(low, extremes.min() - BIN), max(high, extremes.max() + BIN))
    axes.margins(y=0.02)


def _join_names(names: list[str]) -> str:
    """Write as many names as fit beside the scale, and how many more there are."""
    shown = ""
    for place, name in enumerate(names):
        if len(shown) + len(name) > NAMES_WIDTH:
            short = names[0][: NAMES_WIDTH - 1] + "…" if not shown else shown.rstrip()
            rest = len(names) - max(place, 1)
            return f"{short}  +{rest}" if rest else short
        shown += f"{name}  "
    return shown.rstrip()


def curve_plot(
    estimate: Estimate,
    items: str | list[str] | tuple[str, ...],
    *,
    responses: Responses | None = None,
    scores: PersonScores | None = None,
    groups: int = GROUPS,
    axes: Any = None,
) -> Any:
    """Draw the expected curves of up to five items, with the observed shares beside them.

    Parameters
    ----------
    estimate
        The calibration.
    items
        One name or several.
    responses, scores
        The answers and the abilities (:func:`discreet.score`) behind the observed points: the
        share right in equally large groups of persons (without those who had everything right or
        wrong), with 95% intervals. Left out: curves only. With them the picture is confidential.
    groups
        How many groups of persons.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names = [items] if isinstance(items, str) else list(items)
    where = _find_items(estimate, names)
    if (responses is None) != (scores is None):
        raise BadUsage("observed points need both responses= and scores=, found one of them")
    axes = new_axes() if axes is None else axes
    b = estimate.difficulty[where]
    ability = np.linspace(b.min() - 4, b.max() + 4, 161)
    binned = None
    if responses is not None and scores is not None:
        # All right or all wrong: by construction such points lie at 0% or 100%.
        ability_known = np.where(scores.extreme, np.nan, scores.ability)
        binned = bin_answers(responses.select(names), ability_known, groups)
    for place, name in enumerate(names):
        colour = (BLUE, VERMILLION, GREEN, ORANGE, "black")[place]
        label = f"{name} ({b[place]:+.2f})"
        axes.plot(ability, 1 / (1 + np.exp(b[place] - ability)), color=colour, label=label)
        if binned is not None:
            _draw_observed(axes, binned, place, colour)
    axes.set_xlabel("ability in logits")
    axes.set_ylabel("share of right answers")
    axes.set_ylim(-0.03, 1.03)
    title = "Expected curves" if binned is None else "Expected curves and observed shares"
    clean(axes, title)
    axes.legend(title="item (difficulty)", frameon=False, loc="upper left")
    return axes


def _find_items(estimate: Estimate, names: list[str]) -> npt.NDArray[np.intp]:
    if not 1 <= len(names) <= CURVES:
        raise BadUsage(f"one picture holds 1 to {CURVES} item curves, found {len(names)} items")
    place = {name: i for i, name in enumerate(estimate.items)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise BadUsage(f"there is no item {unknown[0]!r} in this estimate; items go by name")
    where = np.array([place[name] for name in names])
    for i in where[~estimate.estimated[where]]:
        raise BadUsage(
            f"item {estimate.items[i]!r} has no difficulty ({estimate.status[i]}), so no curve"
        )
    return where


def _draw_observed(axes: Any, binned: Any, place: int, colour: str) -> None:
    known = binned.answers[:, place] > 0
    n = binned.answers[known, place]
    share = binned.right[known, place] / n
    # Agresti and Coull (1998): the plain interval has no width at 0% and 100%.
    centre = (binned.right[known, place] + 2) / (n + 4)
    half = 1.96 * np.sqrt(centre * (1 - centre) / (n + 4))
    low, high = np.maximum(centre - half, 0), np.minimum(centre + half, 1)
    x = binned.ability[known, place]
    axes.vlines(x, low, high, color=colour, linewidth=1, alpha=0.7)
    axes.plot(x, share, MARKERS[place], color=colour, markersize=5)


def information_plot(estimate: Estimate, *, axes: Any = None) -> Any:
    """Draw test information and the standard error of an ability, if all items are answered.

    Parameters
    ----------
    estimate
        A calibration or the estimate of a release.
    axes
        Draw here; a new figure when left out. The standard error gets an axis on the right.

    Returns
    -------
    matplotlib.axes.Axes
        The one with the information.
    """
    curve = trace_information(estimate)
    axes = new_axes() if axes is None else axes
    (information,) = axes.plot(curve.ability, curve.information, color=BLUE, linewidth=2)
    axes.set_xlabel("ability in logits")
    axes.set_ylabel("information", color=BLUE)
    axes.set_ylim(0)
    right = axes.twinx()
    (error,) = right.plot(curve.ability, curve.se, color=VERMILLION, linewidth=2, linestyle="--")
    right.set_ylabel("standard error in logits", color=VERMILLION)
    # The tails shoot up and would flatten what matters.
    right.set_ylim(0, min(float(curve.se.max()), 4 * float(curve.se.min())))
    clean(axes, "What the whole test tells at each ability")
    right.spines["top"].set_visible(False)
    axes.legend(
        [information, error], ["information", "standard error"], frameon=False, loc="lower center"
    )
    return axes
