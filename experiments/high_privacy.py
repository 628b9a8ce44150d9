"""The high-privacy regime: what can be learnt at epsilon 0.01, and from how many persons.

The paper leaves it open: at epsilon 0.01 all its mechanisms are worse than answering zero for
every item. Noise counts per person, so what a thousand persons give at epsilon 1 a hundred
thousand give at 0.01.

    python -m experiments.high_privacy [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.results import read_options, save_figure, write_csv
from experiments.sweeps import draw_sweep, make_panels, run_sweep

NAME = "high_privacy"
ITEMS = 25
PERSONS = (1000, 3000, 10_000, 30_000, 100_000, 300_000)
EPSILONS = (0.01, 0.1)
CURVES = ("published Gauss", "margins", "pairs", "laplace-pairs", "non-private", "all zero")


def persons_for(rows: list[dict[str, Any]], curve: str, epsilon: float, share: float) -> float:
    """Return how many persons bring a curve to a share of the all-zero error; NaN if none do."""
    errors: dict[int, dict[str, float]] = {}
    for row in rows:
        if row["epsilon"] == epsilon:
            errors.setdefault(row["persons"], {})[row["curve"]] = row["error"]
    persons = sorted(errors)
    ratio = np.array([errors[n][curve] / errors[n]["all zero"] for n in persons])
    if ratio.min() > share:
        return float("nan")
    first = int(np.argmax(ratio <= share))
    if first == 0:
        return float(persons[0])
    # Between two points the logarithms are nearly on a line.
    low, high = np.log(ratio[first - 1]), np.log(ratio[first])
    part = (low - np.log(share)) / (low - high)
    return float(np.exp(np.interp(part, (0, 1), np.log(persons[first - 1 : first + 1]))))


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
    title = f"Very high privacy: error against the number of persons, {ITEMS} items"
    save_figure(draw_sweep(title, "‖estimate - b‖ (logits)", rows), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
