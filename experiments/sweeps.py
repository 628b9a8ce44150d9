"""Figures with the number of persons on the axis, for a few fixed epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from experiments.curves import Setting
from experiments.panels import Panel, describe_trials, run_panels, summarise
from experiments.pictures import LABELS, STYLES
from experiments.published import Pairs
from experiments.results import Options, plain_ticks, print_table, style
from experiments.synthetic import Simulated

SETTING = Setting(Pairs.UNORDERED, edge_factor=1.1)


def make_panels(
    items: int,
    persons: Sequence[int],
    *,
    curves: tuple[str, ...],
    epsilons: tuple[float, ...],
    norm: float,
) -> list[Panel]:
    """One panel for each number of persons."""
    return [
        Panel(f"n={n}", f"{n} persons", Simulated(items, n), SETTING, curves, epsilons, norm)
        for n in persons
    ]


def run_sweep(figure: str, panels: Sequence[Panel], options: Options) -> list[dict[str, Any]]:
    """Run, print, and return a row for each number of persons, epsilon and curve."""
    rows = summarise(run_panels(figure, panels, options), panels)
    rows = [{"persons": int(row.pop("panel")[2:]), **row} for row in rows]
    headings = {name: name for name in ("persons", "epsilon", "curve", "error", "trials")}
    print_table(f"{figure}: error against the number of persons", rows, headings)
    return rows


def draw_sweep(title: str, ylabel: str, rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw one set of axes for each epsilon."""
    epsilons = sorted({row["epsilon"] for row in rows})
    figure = Figure(figsize=(5.6 * len(epsilons) + 1.5, 5.4), layout="constrained")
    grid = figure.subplots(1, len(epsilons), sharey=True, squeeze=False).ravel()
    for axes, epsilon in zip(grid, epsilons, strict=True):
        here = [row for row in rows if row["epsilon"] == epsilon]
        for curve in dict.fromkeys(row["curve"] for row in here):
            line = sorted((r for r in here if r["curve"] == curve), key=lambda r: r["persons"])
            look = {"linewidth": 1.5, "markersize": 5, **STYLES[curve]}
            x, y = [r["persons"] for r in line], [r["error"] for r in line]
            axes.loglog(x, y, label=LABELS[curve].replace("*", " (not private)"), **look)
        persons = sorted({row["persons"] for row in here})
        plain_ticks(axes.xaxis, persons[::2])
        plain_ticks(axes.yaxis, _ticks(here))
        style(axes, f"epsilon = {epsilon:g}", "persons, n", ylabel)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8.5,
                  frameon=False)  # fmt: skip
    title = f"{title}  ({describe_trials(rows)})"
    figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    return figure


def _ticks(rows: Sequence[dict[str, Any]]) -> list[float]:
    errors = [row["error"] for row in rows]
    steps = [base * 10**power for power in (-2, -1, 0, 1) for base in (1, 2, 5)]
    return [step for step in steps if min(errors) / 1.5 < step < max(errors) * 1.5]
