"""Private means of groups: errors beside those without privacy, and coverage.

``python -m experiments.calibration.private_means`` writes ``private_means.csv``. 20 items with
difficulties from -2 to 2, which are known; means of groups from -1 to 1 in equal steps, abilities
normal in a group, or skewed. Noise is seeded: repeatable, and not private. The error without
privacy is that of the same fit at epsilon 50.
"""

import argparse
import csv
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import discreet
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

OUT = Path(__file__).with_suffix(".csv")
TRUTH = np.linspace(-2, 2, 20)
ITEMS = [f"i{number:02}" for number in range(20)]


@dataclass(frozen=True)
class Cell:
    """So many groups of so many persons."""

    groups: int
    each: int
    epsilon: float = 1.0
    delta: float = 1e-4
    abilities: str = "normal"
    runs: int = 60


#: Written down before the run.
CELLS = (
    Cell(8, 500),
    Cell(8, 500, delta=1e-6),
    Cell(8, 500, epsilon=0.5),
    Cell(8, 500, abilities="skewed"),
    Cell(8, 100),
    Cell(3, 2000),
)


def run(cell: Cell, seed: int) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Return errors and standard errors of one study, with privacy and without."""
    rng = np.random.default_rng([seed, 77])
    mean, group = np.linspace(-1, 1, cell.groups), np.repeat(np.arange(cell.groups), cell.each)
    own = rng.standard_normal(len(group))
    if cell.abilities == "skewed":
        own = rng.exponential(size=len(group)) - 1
    chance = 1 / (1 + np.exp(TRUTH - (mean[group] + own)[:, None]))
    codes = (rng.random(chance.shape) < chance).astype(np.int8)
    names = [f"group {k}" for k in range(cell.groups)]
    store = store_codes(codes, (1,) * len(ITEMS))
    answers = Responses(tuple(ITEMS), None, store, {"group": np.array(names)[group]})
    found = {}
    for epsilon in (cell.epsilon, 50.0):
        made = discreet.release_means(
            answers, dict(zip(ITEMS, TRUTH.tolist(), strict=True)), epsilon=epsilon,
            delta=cell.delta, groups={"group": names}, least=1,
            noise=ExactNoise(SeededSource(seed)),
        )  # fmt: skip
        found[epsilon] = made.mean - mean, made.se
    return found


def run_cell(cell: Cell) -> dict[str, object]:
    """Return errors and coverage of a cell."""
    studies = [run(cell, seed) for seed in range(cell.runs)]
    error, se = (np.array([one[cell.epsilon][k] for one in studies]) for k in (0, 1))
    plain = np.array([one[50.0][0] for one in studies])
    rmse, least = (np.sqrt(np.mean(one**2)) for one in (error, plain))
    return {
        **asdict(cell), "rmse": rmse, "rmse_without": least, "ratio": rmse / least,
        "se": se.mean(), "rms_z": np.sqrt(np.mean((error / se) ** 2)),
        "coverage": np.mean(np.abs(error) < 1.96 * se),
    }  # fmt: skip


def main() -> None:
    """Write the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with options.out.open("w", newline="") as file:
        for number, cell in enumerate(CELLS):
            row = {
                n: round(float(v), 9) if isinstance(v, float) else v
                for n, v in run_cell(cell).items()
            }
            row |= {n: round(row[n], 4) for n in [*row][6:]}
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if not number:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
