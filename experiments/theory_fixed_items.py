"""A fixed test, ever more persons: pairs are consistent, joint maximum likelihood is not.

For two items joint maximum likelihood converges to twice the truth; for m items it stretches
the scale by about m / (m - 1), however many persons answer. The spectral estimate's error goes
on falling like 1 / sqrt(n).

    python -m experiments.theory_fixed_items [--quick] [--trials N]
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from discreet.api.calibrating import fit
from discreet.simulation import simulate
from experiments.joint_ml import joint_ml
from experiments.results import (
    COLOURS,
    fit_slope,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

ITEMS = (2, 3, 5, 10, 20, 50, 100)
PERSONS = (250, 1000, 4000, 16000, 64000)
NAME = "theory_fixed_items"
HEADINGS = {
    "items": "m",
    "persons": "n",
    "spectral_error": "spectral",
    "joint_error": "joint",
    "spectral_scale": "scale",
    "joint_scale": "j.scale",
    "joint_coverage": "j.cover",
    "spectral_slope": "slope",
    "joint_slope": "j.slope",
}


def compare(n: int, m: int, rng: np.random.Generator) -> dict[str, float]:
    """Root mean square error, slope on the truth and coverage, spectral and joint ML."""
    truth = np.linspace(-0.5, 0.5, m) * (1.0 if m == 2 else 2.0)
    responses = simulate(n, m, difficulty=truth, rng=rng).responses
    spectral = fit(responses, method="spectral")
    joint = joint_ml(responses.store.rows(0, n))
    # The scatter of joint estimates is that of the spectral ones on their stretched scale.
    estimates = {
        "spectral": (spectral.difficulty, spectral.se),
        "joint": (joint, spectral.se * m / (m - 1)),
    }
    found = {}
    for name, (difficulty, se) in estimates.items():
        error = difficulty - truth
        found[f"{name}_error"] = float(np.sqrt(np.mean(error**2)))
        found[f"{name}_scale"] = float(difficulty @ truth / (truth @ truth))
        found[f"{name}_coverage"] = float(np.mean(np.abs(error) <= 1.96 * se))
    return found


def run_cell(n: int, m: int, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    drawn = [compare(n, m, rng) for _ in range(trials)]
    means = {name: float(np.mean([one[name] for one in drawn])) for name in drawn[0]}
    return {"items": m, "persons": n, **means, "m_over_m_minus_1": m / (m - 1)}


def fit_lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to every row the log-log slopes of error against n for its number of items."""
    out = []
    for m in sorted({row["items"] for row in rows}):
        line = [row for row in rows if row["items"] == m]
        n = [row["persons"] for row in line]
        slopes = {
            f"{name}_slope": fit_slope(n, [row[f"{name}_error"] for row in line])[0]
            for name in ("spectral", "joint")
        }
        out += [{**row, **slopes} for row in line]
    return out


def draw(rows: list[dict[str, Any]], trials: int) -> Figure:
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    error, scale = figure.subplots(1, 2)
    blue, red = COLOURS[:2]
    for m, marker in ((2, "o"), (5, "s"), (20, "^")):
        line = [row for row in rows if row["items"] == m]
        n = [row["persons"] for row in line]
        for name, word, colour in (("joint", "joint ML", red), ("spectral", "spectral", blue)):
            label = f"{word}, m={m}: slope {line[0][f'{name}_slope']:.2f}"
            y = [row[f"{name}_error"] for row in line]
            error.loglog(n, y, marker, color=colour, ls="-", linewidth=1.1, label=label)
    style(
        error, f"More persons do not help joint ML  ({trials} trials)",
        "persons n", "root mean square error (logits)",
    )  # fmt: skip
    error.legend(fontsize=8, frameon=False)
    most = max(row["persons"] for row in rows)
    last = [row for row in rows if row["persons"] == most]
    m = [row["items"] for row in last]
    fine = np.geomspace(2, max(m), 100)
    scale.semilogx(fine, fine / (fine - 1), "k--", linewidth=1, label="m / (m - 1)")
    scale.semilogx(m, [row["joint_scale"] for row in last], "s", color=red, label="joint ML")
    scale.semilogx(m, [row["spectral_scale"] for row in last], "o", color=blue, label="spectral")
    scale.axhline(1, color="#767676", linewidth=0.8, linestyle=":")
    scale.set_xticks(m, [str(count) for count in m])
    scale.minorticks_off()
    style(
        scale, f"It stretches the scale  (n = {most:,})",
        "items m", "slope of estimate on truth",
    )  # fmt: skip
    scale.legend(fontsize=9, frameon=False)
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=40)
    rng = np.random.default_rng(options.seed)
    cells = list(product(PERSONS[:4] if options.quick else PERSONS, ITEMS))
    rows = fit_lines([run_cell(n, m, options.trials, rng) for n, m in cells])
    print_table("Fixed items: spectral against joint maximum likelihood", rows, HEADINGS)
    two = max((row for row in rows if row["items"] == 2), key=lambda row: row["persons"])
    print(
        f"two items, n={two['persons']}: joint ML gives {two['joint_scale']:.3f} times the truth, "
        f"spectral {two['spectral_scale']:.3f} times"
    )
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows, options.trials), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
