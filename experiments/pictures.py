"""Pictures of error against epsilon. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.panels import Panel, describe_trials
from experiments.results import COLOURS, plain_ticks, style

BLUE, RED, GREEN, PINK, YELLOW, _ = COLOURS

STYLES: dict[str, dict[str, Any]] = {
    "published Gauss": {"color": BLUE, "ls": "--", "marker": "o", "mfc": "white"},
    "published sparse": {"color": GREEN, "ls": "--", "marker": "^", "mfc": "white"},
    "published Laplace": {"color": PINK, "ls": "--", "marker": "D", "mfc": "white"},
    "published response": {"color": YELLOW, "ls": "--", "marker": "v", "mfc": "white"},
    "margins": {"color": RED, "ls": "-", "marker": "s", "linewidth": 2.4},
    "pairs": {"color": BLUE, "ls": "-", "marker": "o"},
    "sparse-pairs": {"color": GREEN, "ls": "-", "marker": "^"},
    "laplace-pairs": {"color": PINK, "ls": "-", "marker": "D"},
    "randomized-response": {"color": YELLOW, "ls": "-", "marker": "v"},
    "non-private": {"color": "0.45", "ls": "-.", "linewidth": 1.2},
    "refined": {"color": RED, "ls": "-.", "linewidth": 1.2},
    "all zero": {"color": "black", "ls": ":", "linewidth": 1.6},
    "leak closed": {"color": "0.35", "ls": "-", "marker": "x"},
    "exact sensitivity": {"color": PINK, "ls": "-", "marker": "D"},
    "exact delta": {"color": YELLOW, "ls": "-", "marker": "v"},
    "exact chain": {"color": YELLOW, "ls": "-.", "marker": "v"},
    "exact sparse chain": {"color": GREEN, "ls": "-.", "marker": "^", "mfc": "white"},
}
"""Dashed and hollow: as published. Solid: the library. One colour for one idea."""

LABELS = {
    "published Gauss": "Gauss on all pairs, as published*",
    "published sparse": "Gauss on a sparse graph, as published*",
    "published Laplace": "Laplace, as published*",
    "published response": "randomized response, as published*",
    "margins": "discreet: margins",
    "pairs": "discreet: pairs",
    "sparse-pairs": "discreet: sparse-pairs",
    "laplace-pairs": "discreet: laplace-pairs",
    "randomized-response": "discreet: randomized-response",
    "non-private": "spectral estimate without privacy",
    "refined": "discreet: refined estimate without privacy",
    "all zero": "answering zero for every item",
    "leak closed": "leak closed",
    "exact sensitivity": "exact sensitivity",
    "exact delta": "exact delta(epsilon)",
    "exact chain": "exact chain: estimator spectral",
    "exact sparse chain": "the same on a sparse graph",
}

NOTE = (
    "*as published: the paper's calibration and clipping. Not private, because pairs with a zero "
    "count get no noise.  Solid lines keep the (epsilon, delta = 0.0001) on the axis."
)

HEADROOM = 4.6
"""The axis ends here at the latest, in units of the all-zero error."""


def draw_panels(title: str, panels: Sequence[Panel], rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw one set of axes for each panel, with one legend below."""
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(6.2 * across + (2 if across == 1 else 0), 3.9 * down + 1.5),
                    layout="constrained")  # fmt: skip
    grid = np.atleast_1d(figure.subplots(down, across)).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        draw_panel(axes, panel, [row for row in rows if row["panel"] == panel.name])
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    figure.legend(handles, labels, loc="outside lower center", ncols=2 + (across > 1),
                  fontsize=8.5, frameon=False, title=_wrapped(across), title_fontsize=8,
                  )  # fmt: skip
    return figure


def draw_panel(axes: Any, panel: Panel, rows: Sequence[dict[str, Any]]) -> None:
    """Draw mean error against epsilon, with a band of two standard errors."""
    epsilons = sorted({row["epsilon"] for row in rows})
    drawn: list[dict[str, Any]] = []
    for name in panel.curves:
        line = _steady([row for row in rows if row["curve"] == name])
        drawn += line
        x = np.array([row["epsilon"] for row in line])
        y = np.array([row["error"] for row in line])
        band = 2 * np.array([row["standard_error"] for row in line])
        look = {"linewidth": 1.5, "markersize": 4.5, **STYLES[name]}
        axes.plot(x, y, label=LABELS[name], **look)
        axes.fill_between(x, y - band, y + band, color=look["color"], alpha=0.12, linewidth=0)
    zero = max(row["error"] for row in rows if row["curve"] == "all zero")
    # The published sparse curve starts so high that the others would be squeezed: it may leave.
    highest = max(row["error"] for row in rows if row["curve"] != "published sparse")
    axes.set_ylim(0, min(1.08 * highest, HEADROOM * zero))
    axes.set_xscale("log")
    plain_ticks(axes.xaxis, [e for e in (0.01, 0.1, 1.0, 2.0, 5.0) if e in epsilons])
    style(
        axes, f"{panel.title}  ({describe_trials(drawn)})",
        "epsilon (smaller = more private)", "‖estimate - b‖ over all items (logits)",
    )  # fmt: skip


def _steady(line: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out points of an unfinished run, which would zigzag between finished ones."""
    most = max((row["trials"] for row in line), default=0)
    kept = [row for row in line if row["trials"] >= most / 3]
    return sorted(kept, key=lambda row: row["epsilon"])


def _wrapped(across: int) -> str:
    return NOTE if across > 1 else NOTE.replace(". Not private", ".\nNot private")
