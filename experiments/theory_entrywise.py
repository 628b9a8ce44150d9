"""The entrywise rate: the worst item's error falls like 1 / sqrt(n p).

The paper promises ``max error <= C sqrt(log m / (n p))``, and no estimator beats
``1 / sqrt(n p)``. So on a log-log plot of the largest error against n p the slope is -1/2, and
the largest error exceeds the typical one by no more than a constant times ``sqrt(log m)``.

    python -m experiments.theory_entrywise [--quick] [--trials N]
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from discreet.api.calibrating import fit
from discreet.simulation import simulate
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

ITEMS = (50, 100, 200)
SHARES = (0.25, 0.5, 1.0)
NAME = "theory_entrywise"
TICKS = (250, 1000, 4000, 16000)
HEADINGS = {
    "items": "m",
    "answered": "p",
    "persons": "n",
    "max_error": "max",
    "rms_error": "rms",
    "worst_ratio_over_sqrt_log_m": "ratio",
    "slope_of_line": "slope",
}


def one_error(n: int, m: int, p: float, rng: np.random.Generator) -> tuple[float, float]:
    """Largest error, and root mean square error, of one spectral calibration."""
    simulation = simulate(n, m, p, rng=rng)
    estimate = fit(simulation.responses, method="spectral", standard_errors=False)
    error = estimate.difficulty - simulation.difficulty
    if np.isnan(error).any():
        raise SystemExit(f"n={n}, m={m}, p={p}: an item has no number; the grid starts too low")
    return float(np.abs(error).max()), float(np.sqrt(np.mean(error**2)))


def run_cell(n: int, m: int, p: float, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    errors = np.array([one_error(n, m, p, rng) for _ in range(trials)])
    largest, typical = errors.mean(axis=0)
    ratio = float((errors[:, 0] / errors[:, 1]).max())
    return {
        "items": m,
        "answered": p,
        "persons": n,
        "n_p": n * p,
        "max_error": float(largest),
        "rms_error": float(typical),
        "worst_ratio": ratio,
        "worst_ratio_over_sqrt_log_m": ratio / float(np.sqrt(np.log(m))),
    }


def fit_lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to every row the slope of its own line (same m and p)."""
    out = []
    for m, p in sorted({(row["items"], row["answered"]) for row in rows}):
        line = [row for row in rows if (row["items"], row["answered"]) == (m, p)]
        x = [row["n_p"] for row in line]
        slope = fit_slope(x, [row["max_error"] for row in line])[0]
        out += [{**row, "slope_of_line": slope} for row in line]
    return out


def draw(rows: list[dict[str, Any]], trials: int) -> Figure:
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    rate, ratio = figure.subplots(1, 2, width_ratios=(3, 2))
    for colour, m in zip(COLOURS, sorted({row["items"] for row in rows}), strict=False):
        for marker, p in zip(MARKERS, SHARES, strict=False):
            line = [row for row in rows if (row["items"], row["answered"]) == (m, p)]
            label = f"m={m}, p={p:g}: slope {line[0]['slope_of_line']:.2f}"
            x = [row["n_p"] for row in line]
            rate.loglog(
                x, [row["max_error"] for row in line], marker, color=colour, ls="-", label=label,
                markersize=5, linewidth=1,
            )  # fmt: skip
            ratio.plot(
                x, [row["worst_ratio_over_sqrt_log_m"] for row in line], marker, color=colour,
                markersize=5,
            )  # fmt: skip
    guide = np.array([min(row["n_p"] for row in rows), max(row["n_p"] for row in rows)])
    scale = 1.35 * max(row["max_error"] * np.sqrt(row["n_p"]) for row in rows)
    rate.loglog(guide, scale / np.sqrt(guide), "k--", linewidth=1, label="slope -1/2")
    style(
        rate, f"The worst item's error falls like 1/√(n p)  ({trials} trials)",
        "answers per item, n p", "largest error of any item (logits)",
    )  # fmt: skip
    rate.legend(fontsize=8, frameon=False, ncols=2)
    ratio.set_xscale("log")
    ratio.set_ylim(0, 1.25 * max(row["worst_ratio_over_sqrt_log_m"] for row in rows))
    style(
        ratio, "... and stays near the typical error",
        "answers per item, n p", "largest ÷ root mean square error, ÷ √log m  (worst trial)",
    )  # fmt: skip
    for axes in (rate, ratio):
        plain_ticks(axes.xaxis, [n for n in TICKS if guide[0] <= n <= guide[1]])
    plain_ticks(rate.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5])
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=50, quick_trials=15)
    rng = np.random.default_rng(options.seed)
    items = ITEMS[:2] if options.quick else ITEMS
    doublings = 4 if options.quick else 6
    persons = [1000 * 2**k for k in range(doublings)]
    cells = list(product(persons, items, SHARES))
    rows = fit_lines([run_cell(n, m, p, options.trials, rng) for n, m, p in cells])
    print_table("Entrywise rate: largest error against n p", rows, HEADINGS)
    slopes = {row["slope_of_line"] for row in rows}
    print(f"slopes from {min(slopes):.3f} to {max(slopes):.3f}; the theory says -0.5")
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows, options.trials), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
