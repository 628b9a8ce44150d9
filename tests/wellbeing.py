"""Make the bundled questionnaire: answers simulated from the partial credit model.

In: nothing. Out: ``src/discreet/data/wellbeing.csv``, always the same.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from discreet.datasets import WELLBEING_TEXTS
from discreet.simulation import simulate

TABLE = Path(__file__).parents[1] / "src" / "discreet" / "data" / "wellbeing.csv"
PERSONS = 600
LOCATION = (-0.5, 0.1, 0.3, 0.7, -0.2, -0.6, -0.7, -0.3, -0.4, 0.5, 0.2, 0.9)
SCALE = np.array([-1.7, -0.7, 0.5, 1.9])
"""Distances of the thresholds from an item's location."""
PROUD = np.array([0.6, -1.8, 0.2, 1.0])
"""Those of an item that hardly anybody answers with 1."""
YOUNGER = -0.9
"""How much easier "exercised" is for persons below 40."""
MISSING = 0.03


def draw_table() -> list[list[str]]:
    """Return the rows of the table: person, age, and a score for each item."""
    rng = np.random.default_rng(2024)
    items = list(WELLBEING_TEXTS)
    thresholds = np.array(LOCATION)[:, None] + SCALE + rng.normal(0, 0.15, (len(items), 4))
    thresholds[items.index("proud")] = LOCATION[items.index("proud")] + PROUD
    ability = rng.normal(0.4, 1.1, PERSONS)
    young = rng.random(PERSONS) < 0.45
    shift = np.zeros((len(items), 1))
    shift[items.index("exercised")] = YOUNGER
    codes = np.empty((PERSONS, len(items)), dtype=int)
    for group, moved in ((young, shift), (~young, 0.0)):
        drawn = simulate(
            int(group.sum()),
            len(items),
            thresholds=thresholds + moved,
            ability=ability[group],
            rng=rng,
        )
        codes[group] = drawn.responses.to_array()
    missing = rng.random(codes.shape) < MISSING
    cells = np.where(missing, "", codes.astype(str))
    ages = np.where(young, "below 40", "40 and above")
    return [[f"p{n + 1:03}", str(ages[n]), *map(str, cells[n])] for n in range(PERSONS)]


def main() -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", "age", *WELLBEING_TEXTS])
        writer.writerows(draw_table())


if __name__ == "__main__":
    main()
