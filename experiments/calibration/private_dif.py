"""Private differential functioning: errors, false alarms and power over simulated studies.

``python -m experiments.calibration.private_dif`` writes ``private_dif.csv``. 20 items with uniform
difficulties within 2 logits; every second group is half a logit weaker; one item of the second
group is harder by ``effect``. Noise is seeded: repeatable, and not private.
"""

import argparse
import csv
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import discreet
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

OUT = Path(__file__).with_suffix(".csv")
ITEMS = 20


@dataclass(frozen=True)
class Cell:
    """So many groups of so many persons, and by how much one item differs."""

    groups: int
    each: int
    effect: float
    runs: int
    epsilon: float = 1.0
    delta: float = 1e-6


#: Written down before the run.
CELLS = (
    Cell(2, 2500, 0.4, 60),
    Cell(2, 2500, 0.0, 200),
    Cell(5, 1000, 0.7, 160, delta=1e-4),
    Cell(5, 1000, 0.0, 200, delta=1e-4),
    Cell(5, 1000, 0.7, 40),
)


def run(cell: Cell, seed: int) -> tuple[discreet.PrivateDif, np.ndarray]:
    """Return one comparison and the true differences, with the mean zero."""
    rng = np.random.default_rng([seed, 10])
    difficulty = np.tile(rng.uniform(-2, 2, ITEMS), (cell.groups, 1))
    difficulty[1, ITEMS // 2] += cell.effect
    group = np.repeat(np.arange(cell.groups), cell.each)
    ability = rng.standard_normal(len(group)) - 0.5 * (group % 2)
    chance = 1 / (1 + np.exp(difficulty[group] - ability[:, None]))
    codes = (rng.random(chance.shape) < chance).astype(np.int8)
    items, names = tuple(map(str, range(ITEMS))), [f"group {k}" for k in range(cell.groups)]
    persons, store = [str(k) for k in range(len(group))], store_codes(codes, (1,) * ITEMS)
    dif = discreet.release_dif(
        Responses(items, persons, store, {"group": np.array(names)[group]}),
        epsilon=cell.epsilon, delta=cell.delta, items=items, groups={"group": names},
        design="complete", noise=ExactNoise(SeededSource(seed)),
    )  # fmt: skip
    truth = (difficulty[1:] - difficulty[0]).T
    return dif, truth - truth.mean(axis=0)


def run_cell(cell: Cell) -> dict[str, float]:
    """Return errors, shares of alarms, and how often the item that differs was found."""
    alarms, of_items, omnibus, found, se, z = [], [], [], [], [], []
    own = np.arange(ITEMS) == ITEMS // 2
    for seed in range(cell.runs):
        dif, truth = run(cell, seed)
        significant, differs = dif.p_adjusted < 0.05, dif.p_item < 0.05
        others = np.ones(ITEMS, bool) if not cell.effect else ~own
        alarms.append(significant[others].any())
        of_items.append(differs[others].any())
        omnibus.append(dif.p_omnibus < 0.05)
        found.append((significant[own, 0].any(), differs[own].any()))
        se.append(dif.se.mean())
        z.append((dif.difference - truth) / dif.se)
    error = np.array(z)
    return {
        **asdict(cell), "se": np.mean(se), "rms_z": np.sqrt(np.mean(error**2)),
        "coverage": np.mean(np.abs(error) < 1.96), "false_alarms": np.mean(alarms),
        "false_alarms_items": np.mean(of_items), "omnibus": np.mean(omnibus),
        "found": np.mean(found, axis=0)[0], "found_items": np.mean(found, axis=0)[1],
    }  # fmt: skip


def main() -> None:
    """Write the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with options.out.open("w", newline="") as file:
        for number, cell in enumerate(CELLS):
            row = {n: round(float(value), 9) for n, value in run_cell(cell).items()}
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if not number:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
