"""Coverage of the private spectral estimate, and what its floor costs.

Run ``python -m experiments.calibration.spectral [--runs 100] [--seed 1] [--setting 0]`` with one
BLAS thread. Difficulties and abilities are drawn anew from N(0, 1) in every run, delta is 0.0001,
replace-one. Columns: the mean share of released counts that the floor raised, and the share of runs
with at most 2% of them (only those have intervals); coverage of 95% intervals in those runs; slope
of the estimate on the truth; root mean square error of the spectral estimate over that of the
noise-aware fit of the same values; mean standard error over the true error. The last two columns
are coverage without the limit of 2%, and in how many of the runs above it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass

import numpy as np

from discreet import Budget, release, simulate
from discreet.models.noisy import released
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

QUANTILE = 1.959964


@dataclass(frozen=True)
class Setting:
    """One design and its release."""

    persons: int
    item_count: int
    answered: float
    epsilon: float
    mechanism: str = "pairs"
    neighbours: str = "replace-one"


SETTINGS = (
    Setting(1000, 5, 1.0, 1.0),
    Setting(1000, 10, 1.0, 1.0),
    Setting(1200, 25, 1.0, 1.0),
    Setting(5000, 25, 1.0, 1.0),
    Setting(5000, 25, 1.0, 3.0),
    Setting(2000, 12, 1.0, 1.0, neighbours="add-remove"),
    Setting(5000, 12, 0.5, 1.0),
    Setting(2500, 12, 0.5, 1.0),
    Setting(9000, 25, 0.5, 1.0),
    Setting(5000, 20, 0.7, 2.0),
    Setting(2000, 12, 1.0, 2.0, "sparse-pairs"),
    Setting(5000, 8, 1.0, 2.0, "laplace-pairs"),
    Setting(1000, 25, 1.0, 0.5),
    Setting(1000, 12, 0.5, 1.0),
)
"""The last two have more noise than the floor can bear; 2 and 7 are near the limit."""


def run_once(setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Release once, and compare both estimates of the same values with the truth."""
    drawn = simulate(setting.persons, setting.item_count, setting.answered, rng=rng)
    listed = [str(number) for number in range(setting.item_count)]
    published = release(
        drawn.responses,
        Budget(setting.epsilon, 1e-4, setting.neighbours),
        items=listed,
        mechanism=setting.mechanism,
        noise=ExactNoise(SeededSource(int(rng.integers(2**62)))),
    )
    assert published.noisy is not None
    estimate = released.estimate_release(published.noisy, estimator="spectral")
    floor = released.count_raised(published.noisy)
    truth = drawn.difficulty
    error = estimate.difficulty - truth
    aware = published.estimate.difficulty - truth
    return {
        "share": floor["raised"] / floor["counts"],
        "inside": float((np.abs(error) <= QUANTILE * estimate.se).mean()),
        "slope": float(estimate.difficulty @ truth / (truth @ truth)),
        "square": float((error**2).mean()),
        "variance": float((estimate.se**2).mean()),
        "aware": float((aware**2).mean()),
    }


def summarise(setting: Setting, rows: list[dict[str, float]], limit: float) -> dict[str, object]:
    """One line of the table."""
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    kept = column["share"] <= limit
    inside = column["inside"]

    def cover(mask: np.ndarray) -> str:
        if not mask.any():
            return ""
        spread = inside[mask].std(ddof=1) / np.sqrt(mask.sum()) if mask.sum() > 1 else np.nan
        return f"{inside[mask].mean():.3f} +- {spread:.3f}"

    true = column["square"][kept].mean() if kept.any() else np.nan
    said = column["variance"][kept].mean() if kept.any() else np.nan
    return {
        **vars(setting),
        "runs": len(rows),
        "raised": f"{column['share'].mean():.3f}",
        "kept": f"{kept.mean():.2f}",
        "coverage": cover(kept),
        "slope": f"{column['slope'].mean():.2f}",
        "over_noise_aware": f"{np.sqrt(column['square'].mean() / column['aware'].mean()):.2f}",
        "se_over_error": f"{np.sqrt(said / true):.2f}",
        "coverage_all": cover(np.ones(len(rows), dtype=bool)),
        "coverage_above": cover(~kept),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--setting", type=int, action="append", help="only these, from 0")
    given = parser.parse_args()
    limit, released.FLOOR_LIMIT = (released.FLOOR_LIMIT, 1.0)  # to see what the limit is there for
    writer: csv.DictWriter[str] | None = None
    for number, setting in enumerate(SETTINGS):
        if given.setting and number not in given.setting:
            continue
        started = time.monotonic()
        rng = np.random.default_rng([given.seed, number])
        line = summarise(setting, [run_once(setting, rng) for _ in range(given.runs)], limit)
        line["seconds"] = f"{time.monotonic() - started:.0f}"
        if writer is None:
            writer = csv.DictWriter(sys.stdout, fieldnames=list(line))
            writer.writeheader()
        writer.writerow(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
