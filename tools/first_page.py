"""Draw the pictures of the first page: a questionnaire, its private release, the paper's Figure 1.

In: ``datasets.wellbeing()``, and ``experiments/tables.md``. Out: figures that can be read when they
are 400 pixels wide, with the numbers that they show. `tools.pictures` writes them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import discreet
from discreet import figures
from discreet.datasets import WELLBEING_ANSWERS, WELLBEING_TEXTS
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

__all__ = [
    "PANELS",
    "Drawing",
    "Numbers",
    "draw_figure_one",
    "draw_private",
    "draw_wellbeing",
    "list_difficulties",
    "read_curves",
]

Numbers = dict[str, list[float]]
Drawing = tuple[Figure, Numbers]

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.35"
TABLES = Path(__file__).parents[1] / "experiments" / "tables.md"
PANELS = {"figure-1-few": (25, 1000), "figure-1-many": (200, 1000)}
"""Items and persons of the panels of Figure 1 that the first page shows."""
CURVES = {
    "all zero": ("answering zero for every item", "black", ":"),
    "published sparse": ("the paper, sparse graph", GREEN, "--^"),
    "published Gauss": ("the paper, all pairs", BLUE, "--o"),
    "margins": ("discreet", VERMILLION, "-s"),
    "non-private": ("without privacy", GREY, "-."),
}


def new_axes(height: float) -> Any:
    """Return axes for a picture of 4 inches, which a page shows 400 pixels wide."""
    with mpl.rc_context({"font.size": 9}):
        return Figure(figsize=(4.0, height), layout="constrained").subplots()


def finish(axes: Any, title: str, x_label: str) -> Figure:
    """Write title and legend, and return the figure."""
    figure: Figure = axes.figure
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    axes.set_title(title, loc="left", fontsize="large")
    axes.set_xlabel(x_label)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_wellbeing() -> Drawing:
    """Draw persons and thresholds of the bundled questionnaire on one scale."""
    answers = discreet.datasets.wellbeing()
    estimate = discreet.fit(answers)
    scores = discreet.score(answers, estimate)
    with mpl.rc_context({"font.size": 9}):
        axes = figures.wright_plot(estimate, scores, ax=new_axes(4.8))
    left, right = axes.get_xlim()
    axes.set_xlim(left, 1.5 * right)  # room for names
    axes.set_ylim(np.min(estimate.thresholds) - 0.4, scores.ability.max() + 0.4)
    title = f"{answers.n_persons} persons, {answers.n_items} items"
    axes.set_title(title, loc="left", fontsize="large")
    return axes.figure, list_difficulties(estimate)


def draw_private() -> Drawing:
    """Draw its difficulties twice, exact and released at epsilon 1, with 95% intervals."""
    answers = discreet.datasets.wellbeing()
    exact = discreet.fit(answers)
    released = discreet.release(
        answers,
        epsilon=1.0,
        delta=1e-6,
        items=dict.fromkeys(WELLBEING_TEXTS, len(WELLBEING_ANSWERS) - 1),
        design="random",
        looked=True,
        noise=ExactNoise(SeededSource(1)),
    ).estimate
    axes, order = new_axes(4.8), np.argsort(exact.difficulty)
    row, look = np.arange(len(order)), {"ms": 4.5, "lw": 1.4}
    for estimate, label, colour, sign, up in (
        (exact, "exact, confidential", BLUE, "o", 0.17),
        (released, "private, epsilon 1", VERMILLION, "s", -0.17),
    ):
        value, reach = estimate.difficulty[order], 1.96 * estimate.se[order]
        axes.errorbar(value, row + up, xerr=reach, fmt=sign, color=colour, label=label, **look)
    axes.set_yticks(row, [exact.items[i] for i in order])
    private = {f"{item}, released": row for item, row in list_difficulties(released).items()}
    figure = finish(axes, "Exact and private", "difficulty in logits, 95% intervals")
    return figure, list_difficulties(exact) | private


def list_difficulties(estimate: discreet.Estimate) -> Numbers:
    """Return difficulty and standard error of every item."""
    rows = zip(estimate.items, estimate.difficulty, estimate.se, strict=True)
    return {item: [round(float(b), 3), round(float(se), 3)] for item, b, se in rows}


def read_curves(items: int, persons: int) -> Numbers:
    """Return the curves of a panel: epsilons, then the typical error of one item at each."""
    text = TABLES.read_text(encoding="utf-8").partition("## Simulated answers\n")[2]
    rows = re.findall(r"^\| (.+) \|$", text.partition("\n## ")[0], re.M)
    cells = [row.split(" | ") for row in rows]
    curves = {"epsilon": [float(cell) for cell in cells[0][2:]]}
    for panel, curve, *errors in cells:
        if panel == f"simulated, m={items}, n={persons}" and curve in CURVES:
            curves[curve] = [round(float(error) / items**0.5, 3) for error in errors]
    return curves


def draw_figure_one(name: str) -> Drawing:
    """Draw one panel of the paper's Figure 1 with the curves that matter."""
    items, persons = PANELS[name]
    curves, axes = read_curves(items, persons), new_axes(3.6)
    epsilon = curves["epsilon"]
    for curve, (label, colour, style) in CURVES.items():
        axes.plot(epsilon, curves[curve], style, color=colour, label=label, ms=4.5)
    axes.set_xscale("log")
    axes.set_xticks(epsilon, [f"{one:g}" for one in epsilon])
    axes.minorticks_off()
    axes.set_ylim(0, 1.3)
    axes.set_ylabel("typical error of an item, logits")
    title = f"{items} items, {persons:,} persons"
    return finish(axes, title, "epsilon (smaller is more private)"), curves
