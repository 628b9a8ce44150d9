"""Items with steps: error against the number of persons, ours beside the published method.

One chain on all nodes (item, step) uses every pair of answers to two items; the published method
(`published_steps.py`) solves one chain for each level and then shifts the levels. Conditional
maximum likelihood is what a full likelihood reaches.

    python -m experiments.steps [--quick] [--trials N]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import discreet
from discreet.simulation import simulate
from experiments.published_steps import fit_levels
from experiments.results import (
    COLOURS,
    MARKERS,
    fit_slope,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

PANELS = {
    "20 items, 4 steps, everybody answers everything": (20, 4, 1.0),
    "40 items, 3 steps, 30% of the answers given": (40, 3, 0.3),
}
PERSONS = (500, 1000, 2000, 4000, 8000)
CURVES = ("published", "spectral", "refined", "conditional")
NAME = "steps"
HEADINGS = {
    "panel": "panel",
    "persons": "n",
    **{curve: curve for curve in CURVES},
    "published_over_spectral": "published / spectral",
    "refined_over_conditional": "refined / conditional",
    "redrawn": "redrawn",
}


def draw_answers(
    n: int, items: int, steps: int, given: float, rng: np.random.Generator
) -> tuple[discreet.Responses, Any]:
    """Answers of standard normal abilities, and the thresholds behind them, of mean zero."""
    spread = np.linspace(-1, 1, steps) + rng.normal(0, 0.2, (items, steps))
    truth = rng.uniform(-1.5, 1.5, (items, 1)) + spread
    truth -= truth.mean()
    return simulate(n, items, given, thresholds=truth, rng=rng).responses, truth


def estimate(answers: discreet.Responses, steps: int) -> dict[str, Any] | None:
    """Thresholds by every method; None where some threshold cannot be had by all of them."""
    found = {"published": fit_levels(answers.count().right_wrong, steps)}
    for method in CURVES[1:]:
        fitted = discreet.fit(answers, method=method, standard_errors=False)
        if set(fitted.steps) != {steps} or np.isnan(fitted.thresholds).any():
            return None
        found[method] = fitted.thresholds
    return found


def run_cell(panel: str, n: int, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    items, steps, given = PANELS[panel]
    squares: dict[str, list[float]] = {curve: [] for curve in CURVES}
    redrawn = 0
    while len(squares["published"]) < trials:
        answers, truth = draw_answers(n, items, steps, given, rng)
        found = estimate(answers, steps)
        if found is None:
            redrawn += 1
            continue
        for curve in CURVES:
            squares[curve].append(float(np.mean((found[curve] - truth) ** 2)))
    error = {curve: float(np.sqrt(np.mean(squares[curve]))) for curve in CURVES}
    loose = {
        f"{curve}_mc": float(np.std(squares[curve]) / np.sqrt(trials) / 2 / error[curve])
        for curve in CURVES
    }
    return {
        "panel": panel,
        "persons": n,
        **error,
        **loose,
        "published_over_spectral": error["published"] / error["spectral"],
        "refined_over_conditional": error["refined"] / error["conditional"],
        "redrawn": redrawn,
    }


def draw(rows: list[dict[str, Any]], trials: int) -> Figure:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, 2, sharey=True), PANELS, strict=True):
        line = [row for row in rows if row["panel"] == panel]
        n = [row["persons"] for row in line]
        for curve, colour, marker in zip(CURVES, COLOURS, MARKERS, strict=False):
            y = [row[curve] for row in line]
            label = f"{curve}: slope {fit_slope(n, y)[0]:.2f}"
            dash = "--" if curve == "published" else "-"
            face = "none" if curve == "published" else colour
            axes.loglog(n, y, marker + dash, color=colour, markerfacecolor=face, label=label)
        plain_ticks(axes.xaxis, n)
        style(axes, f"{panel}  ({trials} trials)", "persons n", "root mean square error (logits)")
        axes.legend(fontsize=8, frameon=False)
        plain_ticks(axes.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5])
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=10)
    rng = np.random.default_rng(options.seed)
    persons = PERSONS[:3] if options.quick else PERSONS
    rows = [run_cell(panel, n, options.trials, rng) for panel in PANELS for n in persons]
    print_table("Thresholds of items with steps: root mean square error", rows, HEADINGS)
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows, options.trials), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
