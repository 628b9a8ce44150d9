"""The top-K transition: one S-curve for every number of items.

The K hardest items are told apart once ``n p >= C log m / gap^2``, and no method manages with
less, up to the constant. So the chance of finding exactly the right K, drawn against
``n p gap^2 / log m``, is one S-curve whatever m and the gap are.

The K hardest items share one difficulty and the others another, a gap below: the case with the
most items at the border. Two choices of K: the top 5, whose curves fall on each other already
for small tests; and the top m / 4, where the largest of K errors counts too and its growth
with K reaches the law's sqrt(2 log K) only slowly, so the curves still drift to the right.

    python -m experiments.theory_topk [--quick] [--trials N]
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import curve_fit
from scipy.special import expit

from discreet.api.calibrating import fit
from discreet.simulation import simulate
from experiments.results import (
    COLOURS,
    MARKERS,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

ITEMS = (25, 50, 100, 200)
GAPS = (0.5, 1.0)
TOPS = ("5", "m/4")
SHARE = 0.5
EFFORT = (2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0)
NAME = "theory_topk"
HEADINGS = {
    "top": "K",
    "items": "m",
    "gap": "gap",
    "middle": "half success at",
    "steepness": "steepness",
}


def found_exactly(n: int, m: int, top: int, gap: float, rng: np.random.Generator) -> bool:
    """Say whether the K items with the largest estimates are the K hardest."""
    difficulty = np.where(np.arange(m) < top, gap, 0.0)
    simulation = simulate(n, m, SHARE, difficulty=difficulty - difficulty.mean(), rng=rng)
    estimate = fit(simulation.responses, method="spectral", standard_errors=False)
    value = estimate.difficulty
    # An item without a number (too few persons to link it) is a failure: it cannot be ranked.
    return bool(value[:top].min() > value[top:].max())


def run_cell(
    effort: float, m: int, top: str, gap: float, trials: int, rng: np.random.Generator
) -> dict[str, Any]:
    n = round(effort * np.log(m) / (SHARE * gap**2))
    count = m // 4 if top == "m/4" else int(top)
    hits = sum(found_exactly(n, m, count, gap, rng) for _ in range(trials))
    return {
        "top": top,
        "items": m,
        "gap": gap,
        "persons": n,
        "effort": n * SHARE * gap**2 / float(np.log(m)),
        "success": hits / trials,
    }


def s_curve(x: Any, middle: float, steepness: float) -> Any:
    return expit(steepness * (np.log(x) - np.log(middle)))


def pick(rows: list[dict[str, Any]], top: str, m: int, gap: float) -> list[dict[str, Any]]:
    return [row for row in rows if (row["top"], row["items"], row["gap"]) == (top, m, gap)]


def fit_curve(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Middle and steepness of the S-curve through these points, by least squares."""
    x = [row["effort"] for row in rows]
    y = [row["success"] for row in rows]
    bounds = ([1.0, 0.1], [500.0, 100.0])
    (middle, steepness), _ = curve_fit(s_curve, x, y, p0=(12.0, 5.0), bounds=bounds)
    return float(middle), float(steepness)


def fit_curves(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to every row the middle and the log-slope of its own S-curve (same K, m and gap)."""
    out = []
    for top, m, gap in sorted({(row["top"], row["items"], row["gap"]) for row in rows}):
        curve = pick(rows, top, m, gap)
        middle, steepness = fit_curve(curve)
        out += [{**row, "middle": middle, "steepness": steepness} for row in curve]
    return out


def draw_curves(axes: Any, rows: list[dict[str, Any]], top: str, x: str) -> None:
    items = sorted({row["items"] for row in rows})
    for (colour, m), (marker, gap) in product(
        zip(COLOURS, items, strict=False), zip(MARKERS, GAPS, strict=False)
    ):
        curve = pick(rows, top, m, gap)
        axes.semilogx(
            [row[x] for row in curve],
            [row["success"] for row in curve],
            marker,
            color=colour,
            linestyle="-" if gap == GAPS[0] else ":",
            markersize=4.5,
            linewidth=1.1,
            label=f"m={m}, gap {gap:g}",
        )


def draw(rows: list[dict[str, Any]], trials: int) -> Figure:
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    raw, scaled, many = figure.subplots(1, 3, sharey=True)
    draw_curves(raw, rows, "5", "persons")
    draw_curves(scaled, rows, "5", "effort")
    draw_curves(many, rows, "m/4", "effort")
    style(raw, "Finding exactly the top 5", "persons n", f"share of {trials} trials that succeed")
    style(scaled, "The same, on the scale of the theory", "n p gap² / log m", "")
    style(many, "The top m/4: a slow drift remains", "n p gap² / log m", "")
    for axes, top in ((scaled, "5"), (many, "m/4")):
        middle, steepness = fit_curve([row for row in rows if row["top"] == top])
        fine = np.geomspace(2.5, 60, 200)
        label = f"one curve for all, half at {middle:.1f}"
        grey = axes.semilogx(
            fine, s_curve(fine, middle, steepness), color="#999999", lw=6, alpha=0.5, zorder=0
        )
        axes.legend(grey, [label], fontsize=8, frameon=False, loc="upper left")
        plain_ticks(axes.xaxis, [2.5, 5, 10, 20, 40])
    raw.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=40)
    rng = np.random.default_rng(options.seed)
    items = (25, 50, 100) if options.quick else ITEMS
    effort = EFFORT[1::2] if options.quick else EFFORT
    cells = list(product(effort, items, TOPS, GAPS))
    rows = fit_curves([run_cell(*cell, options.trials, rng) for cell in cells])
    summary = list({(row["top"], row["items"], row["gap"]): row for row in rows}.values())
    print_table("Top-K transition, in n p gap^2 / log m", summary, HEADINGS)
    for top in TOPS:
        middles = [row["middle"] for row in summary if row["top"] == top]
        print(f"K={top}: half success at {min(middles):.1f} to {max(middles):.1f}")
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows, options.trials), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
