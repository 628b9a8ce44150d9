"""`residuals` beside `margins`, `totals` and the paper's mechanisms, on the same answers.

``python -m experiments.calibration.residuals`` writes ``residuals.csv``. The cells below were
written down before any of them was run. Every release goes through the real wall, with seeded
noise: not private, and repeatable. ``margins`` is told nothing of the design, which it does not
use; ``totals`` and ``residuals`` are told what is stated. ``paper_dense`` and ``paper_sparse`` are
the paper's Algorithm 2 on ``pairs`` and ``sparse-pairs``, with noise for the same exact epsilon.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.models.noisy.released import estimate_release
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource

OUT = Path(__file__).with_suffix(".csv")
DELTA = 1e-4
#: So many runs of what is slow, or much worse.
FEW_RUNS = {"totals": 8, "pairs": 4, "sparse-pairs": 4}


@dataclass(frozen=True)
class Cell:
    """One setting: ``design`` is what is stated, ``kind`` how answers come about."""

    name: str
    persons: int
    items: int
    cap: int
    design: str
    epsilons: tuple[float, ...] = (1.0,)
    runs: int = 64
    answered: float = 1.0
    kind: str = "uniform"


#: Difficulties are uniform within 2 logits and abilities standard normal, unless ``kind`` says
#: otherwise. ``auto`` takes `residuals` in all but the last three.
CELLS = (
    Cell("complete", 1000, 50, 50, "complete", (0.3, 1.0, 3.0), 112),
    Cell("30% at random", 5000, 100, 40, "random", (0.3, 1.0, 3.0), 54, 0.3),
    Cell("10% at random", 20_000, 200, 30, "random", (1.0,), 24, 0.1),
    Cell("10% of 100 at random", 5000, 100, 18, "random", (1.0,), 42, 0.1),
    Cell("few persons", 300, 20, 20, "complete", (0.3, 1.0, 3.0), 220),
    Cell("difficulties N(0, 1.5)", 1000, 50, 50, "complete", (1.0,), 124, kind="wide"),
    Cell("skewed abilities", 1000, 50, 50, "complete", (1.0,), 72, kind="skewed"),
    Cell("two groups of abilities", 1000, 50, 50, "complete", (1.0,), 72, kind="two groups"),
    Cell("unequal slopes", 1000, 50, 50, "complete", (1.0,), kind="slopes"),
    Cell("seven forms", 3000, 70, 20, "complete", (0.3, 1.0, 3.0), 192, kind="forms"),
    Cell("forms by ability", 3000, 70, 20, "complete", (1.0,), 124, kind="graded forms"),
    Cell("centre off by .3", 1000, 50, 50, "complete", (1.0,), 88, kind="centre"),
    Cell("complete, not stated", 1000, 50, 50, "unknown", (1.0,), 96),
    Cell("30% at random, not stated", 5000, 100, 40, "unknown", (1.0,), 32, 0.3),
    Cell("very few persons", 100, 20, 20, "complete", (1.0,), 200),
)


@dataclass(frozen=True, eq=False)
class Study:
    """Answers, their truth, and what is public about them."""

    truth: np.ndarray
    answers: Responses
    forms: tuple[tuple[str, ...], ...]
    centre: tuple[int, ...]


def draw_study(cell: Cell, rng: np.random.Generator) -> Study:
    """Draw one study of a cell."""
    n, m = cell.persons, cell.items
    truth = rng.normal(0, 1.5, m) if cell.kind == "wide" else rng.uniform(-2, 2, m)
    truth -= truth.mean()
    ability = rng.standard_normal(n)
    if cell.kind == "skewed":
        ability = rng.exponential(size=n) - 1
    if cell.kind == "two groups":
        ability = rng.choice([-1.2, 1.2], n) + 0.5 * ability
    slope = np.exp(rng.normal(0, 0.3, m)) if cell.kind == "slopes" else np.ones(m)
    seen, forms = rng.random((n, m)) < cell.answered, ()
    if "forms" in cell.kind:
        block, form = np.arange(m) % 7, rng.integers(7, size=n)
        if cell.kind == "graded forms":
            form = np.argsort(np.argsort(ability + 0.7 * rng.standard_normal(n))) * 7 // n
        inside = [(block == number) | (block == (number + 1) % 7) for number in range(7)]
        seen = np.array(inside)[form]
        forms = tuple(tuple(str(item) for item in np.flatnonzero(one)) for one in inside)
    right = rng.random((n, m)) < 1 / (1 + np.exp(slope * (truth - ability[:, None])))
    order = np.argsort(np.where(seen, rng.random((n, m)), 2.0), axis=1)
    seen &= np.argsort(order, axis=1) < cell.cap
    codes = np.where(seen, right, -1).astype(np.int8)
    responses = Responses.from_store(store_codes(codes, (1,) * m), tuple(map(str, range(m))))
    off = truth + 0.3 * rng.standard_normal(m)
    centre = tuple(round(1024 * one) for one in off) if cell.kind == "centre" else ()
    return Study(truth, responses, forms, centre)


@lru_cache(maxsize=64)
def calibrate(name: str, public: Public, epsilon: float):
    """Return a mechanism with its noise."""
    mechanism = find_mechanism(name)
    return mechanism, mechanism.calibrate(public, Budget(epsilon, DELTA), SeededSource(0))


def release(study: Study, cell: Cell, name: str, epsilon: float, seed: int) -> tuple[float, float]:
    """Return root mean square error and coverage of one release."""
    told = name in ("totals", "residuals")
    public = Public(
        study.answers.items, cell.cap, Neighbours.REPLACE_ONE, cell.persons,
        forms=study.forms if told else (), design=cell.design if told else "unknown",
    )  # fmt: skip
    mechanism, calibration = calibrate(name, public, epsilon)
    if name == "residuals" and study.centre:
        public = Public(**{**vars(public), "centre": study.centre})
        calibration = mechanism.calibrate(public, Budget(epsilon, DELTA), SeededSource(0))
    released = release_statistics(
        study.answers,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(is_private=False),
        noise=ExactNoise(SeededSource(seed)),
    )
    estimate = estimate_release(
        released, estimator="spectral" if "pairs" in name else "noise-aware"
    )
    error = estimate.difficulty - study.truth
    return float(np.sqrt(np.mean(error**2))), float(np.mean(np.abs(error) < 1.96 * estimate.se))


def compare(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return the ratio of the mean errors, and its standard error over paired runs."""
    ratio = second.mean() / first.mean()
    return ratio, float(np.std(second - ratio * first, ddof=1) / len(first) ** 0.5 / first.mean())


def run_cell(cell: Cell, epsilon: float, share: float) -> dict[str, object]:
    """Run one cell at one epsilon."""
    found: dict[str, list[tuple[float, float]]]
    found = {name: [] for name in ("margins", "residuals", *FEW_RUNS)}
    for run in range(max(4, round(cell.runs * share))):
        study = draw_study(cell, np.random.default_rng([run, 46]))
        for name, results in found.items():
            if run < FEW_RUNS.get(name, cell.runs):
                results.append(release(study, cell, name, epsilon, 1000 + run))
    error = {name: np.array(results)[:, 0] for name, results in found.items()}
    ratio, off = compare(error["margins"], error["residuals"])
    beside, beside_off = compare(error["totals"], error["residuals"][: len(error["totals"])])
    return {
        "cell": cell.name, "persons": cell.persons, "items": cell.items, "cap": cell.cap,
        "design": cell.design, "epsilon": epsilon, "runs": len(error["margins"]),
        "margins": error["margins"].mean(), "totals": error["totals"].mean(),
        "residuals": error["residuals"].mean(), "ratio": ratio, "ratio_se": off,
        "ratio_to_totals": beside, "ratio_to_totals_se": beside_off,
        "coverage_margins": np.mean([one for _, one in found["margins"]]),
        "coverage_residuals": np.mean([one for _, one in found["residuals"]]),
        "paper_dense": error["pairs"].mean(), "paper_sparse": error["sparse-pairs"].mean(),
    }  # fmt: skip


def run_cells(share: float, only: str) -> Iterator[dict[str, object]]:
    """Run all cells whose name holds a text."""
    for cell in CELLS:
        for epsilon in cell.epsilons if only in cell.name else ():
            row = run_cell(cell, epsilon, share)
            yield {n: round(v, 4) if isinstance(v, float) else v for n, v in row.items()}


def main() -> None:
    """Write the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="Share of the runs.")
    parser.add_argument("--only", default="", help="Cells whose name holds this.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with options.out.open("w", newline="") as file:
        writer = None
        for row in run_cells(options.share, options.only):
            writer = writer or csv.DictWriter(file, list(row), lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
