"""The high-privacy regime: what can be learnt at epsilon 0.01, and from how many persons.

The paper leaves it open: at epsilon 0.01 all its mechanisms are worse than answering zero for
every item. Noise counts per person, so what a thousand persons give at epsilon 1 a hundred
thousand give at 0.01.

    python -m experiments.high_privacy [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.pictures import STYLES
from experiments.results import read_options, save_figure, write_csv
from experiments.sweeps import draw_sweep, make_panels, run_sweep

NAME = "high_privacy"
ITEMS = 25
PERSONS = (1000, 3000, 10_000, 30_000, 100_000, 300_000)
EPSILONS = (0.01, 0.1)
CURVES = ("published Gauss", "margins", "pairs", "laplace-pairs", "non-private", "all zero")


def persons_for(rows: list[dict[str, Any]], curve: str, epsilon: float, share: float) -> float:
    """Return how many persons bring a curve to a share of the all-zero error.

    NaN if none do, or if the curve was not asked for.
    """
    errors = {(r["curve"], r["persons"]): r["error"] for r in rows if r["epsilon"] == epsilon}
    persons = sorted(number for name, number in errors if name == curve)
    ratio = np.array([errors[curve, n] / errors["all zero", n] for n in persons])
    if not (ratio <= share).any():
        return float("nan")
    first = int(np.argmax(ratio <= share))
    if first == 0:
        return float(persons[0])
    # Between two points the logarithms are nearly on a line.
    low, high = np.log(ratio[first - 1]), np.log(ratio[first])
    part = (low - np.log(share)) / (low - high)
    return float(np.exp(np.interp(part, (0, 1), np.log(persons[first - 1 : first + 1]))))


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draw the sweep, and mark where half of the all-zero error is reached."""
    title = f"How many persons a very small epsilon takes, {ITEMS} items, delta 0.0001"
    figure = draw_sweep(title, f"error over all {ITEMS} items, ‖estimate - truth‖ (logits)", rows)
    zero = np.mean([row["error"] for row in rows if row["curve"] == "all zero"])
    look = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
    colour = STYLES["margins"]["color"]
    for axes, epsilon in zip(figure.axes, EPSILONS, strict=True):
        axes.axhline(zero / 2, color="0.6", linewidth=0.8, zorder=0.5)
        axes.text(
            0.99, zero / 2, "half the error of answering zero", color="0.35", fontsize=8,
            ha="right", va="center", transform=axes.get_yaxis_transform(), bbox=look, zorder=1,
        )  # fmt: skip
        needed = persons_for(rows, "margins", epsilon, 0.5)
        if np.isfinite(needed):
            axes.plot(needed, zero / 2, "*", color=colour, markersize=13)
            axes.axvline(needed, color=colour, linewidth=0.8, ls=":")
            axes.text(
                needed, 0.04, f"  margins: {float(f'{needed:.2g}'):,.0f} persons", fontsize=9,
                color=colour, transform=axes.get_xaxis_transform(), bbox=look,
            )  # fmt: skip
        words = f"one person changes any probability by at most {np.expm1(epsilon):.0%}, and delta"
        axes.set_title(f"epsilon = {epsilon:g}: {words}", loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=30, quick_trials=2)
    persons = PERSONS[:5] if options.quick else PERSONS
    panels = make_panels(ITEMS, persons, curves=CURVES, epsilons=EPSILONS, norm=2)
    rows = run_sweep(NAME, panels, options)
    for epsilon in EPSILONS:
        for curve in CURVES[:4]:
            needed = persons_for(rows, curve, epsilon, 0.5)
            print(f"epsilon {epsilon:g}, {curve}: half the all-zero error at n = {needed:,.0f}")
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
