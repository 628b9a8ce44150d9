"""The supplement's remark on time: Gaussian noise costs O(m^2), randomized response O(n m).

Timed is what each mechanism adds to the non-private estimate: the noise on all pair counts, or
the flips of all answers, both exact and from the operating system's randomness. Beside it the
non-private estimate itself: counting the pairs, and the printed power iteration. Times are of the
processor, which other programs on the machine disturb less than the clock.

    python -m experiments.time_complexity [--quick] [--trials N]
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from discreet.privacy.mechanisms.response import randomize_answers
from discreet.privacy.noise import discrete_gaussian
from discreet.secure import SystemSource
from experiments import published
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

NAME = "time_complexity"
PERSONS = (10_000, 20_000, 40_000, 80_000, 160_000)
ITEMS = (100, 200, 400, 800, 1600)
FIXED_ITEMS, FIXED_PERSONS = 200, 10_000
LABELS = {
    "gauss": "noise on all pair counts",
    "response": "flipping all answers",
    "spectral": "non-private estimate",
}


def best_time(task: Callable[[], object], trials: int) -> float:
    """Return the shortest of some runs: others can only have been disturbed."""
    times = []
    for _ in range(trials):
        started = process_time()
        task()
        times.append(process_time() - started)
    return min(times)


def time_cell(n: int, m: int, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    rows = rng.integers(0, 2, (n, m), dtype=np.int8)
    source = SystemSource()
    # Scales as for epsilon 1; the time does not depend on them.
    sigma, share = Fraction(3 * m), Fraction(1, m)
    tasks = {
        "gauss": lambda: discrete_gaussian(sigma, m * (m - 1), source),
        "response": lambda: randomize_answers(rows, share, source),
        "spectral": lambda: published.spectral(published.count(rows)),
    }
    return {"persons": n, "items": m, **{k: best_time(task, trials) for k, task in tasks.items()}}


def slopes(rows: list[dict[str, Any]], axis: str) -> dict[str, float]:
    x = [row[axis] for row in rows]
    return {name: fit_slope(x, [row[name] for row in rows])[0] for name in LABELS}


def draw(parts: dict[str, list[dict[str, Any]]]) -> Figure:
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    fixed = {"items": f"{FIXED_PERSONS:,} persons", "persons": f"{FIXED_ITEMS} items"}
    for axes, (axis, rows) in zip(figure.subplots(1, 2, sharey=True), parts.items(), strict=True):
        found = slopes(rows, axis)
        for colour, marker, name in zip(COLOURS, MARKERS, LABELS, strict=False):
            axes.loglog(
                [row[axis] for row in rows], [1000 * row[name] for row in rows], marker, ls="-",
                color=colour, label=f"{LABELS[name]}: slope {found[name]:.2f}",
            )  # fmt: skip
        plain_ticks(axes.xaxis, [row[axis] for row in rows])
        plain_ticks(axes.yaxis, (1, 10, 100, 1000, 10_000))
        style(axes, f"{fixed[axis]}", axis, "processor time (milliseconds)")
        axes.legend(fontsize=8.5, frameon=False)
    figure.suptitle("What privacy costs in time", x=0.01, ha="left", fontsize=13)
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=9, quick_trials=3)
    rng = np.random.default_rng(options.seed)
    keep = 4 if options.quick else 5
    time_cell(1000, 64, 1, rng)  # compile first
    parts = {
        "items": [time_cell(FIXED_PERSONS, m, options.trials, rng) for m in ITEMS[:keep]],
        "persons": [time_cell(n, FIXED_ITEMS, options.trials, rng) for n in PERSONS[:keep]],
    }
    rows = [{"axis": axis, **row} for axis, part in parts.items() for row in part]
    headings = {"axis": "axis", "persons": "n", "items": "m", **{k: f"{k} (s)" for k in LABELS}}
    print_table("Processor seconds", rows, headings)
    for axis, part in parts.items():
        found = ", ".join(f"{name} {slope:.2f}" for name, slope in slopes(part, axis).items())
        print(f"slope in the number of {axis}: {found}")
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(parts), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
