"""Leaderboards: standard errors of measures, ranks that hold, how wide they are.

::

    python -m experiments.calibration.leaderboards --commit `git log -1 --format=%h`

That takes 6 minutes of one core. Rows that stand in ``leaderboards.csv`` beside this file already
are not computed again. Questions have difficulties from N(0, 1) and are drawn anew in every set;
models have measures from -1.5 to 1.5 ("spread"), all the same ("tied") or some of both ("pairs").
``passage`` and ``effect`` are standard deviations: of what a model is better at in a passage, and
at a question, whatever the sample. Columns:

- ``ratio``: root mean square standard error of the measures over the standard deviation of the
  estimates, and its Monte Carlo error;
- ``inside``: share of the sets in which all true ranks are in their ranges (a model's true ranks
  run from one more than the number of better models to the number of those at least as good); of
  tied models, the share in which no pair is told apart;
- ``width``: ranks that a model may have, on average over the first 50 sets, by steps down over all
  orders of two models (Mogstad, Romano, Shaikh and Wilhelm 2024); ``single``: without steps down;
  ``twosided``: by steps that drop both orders of a pair once one of them is claimed, for up to 20
  models. Those are narrower, but nothing proves that their claims about directions hold together.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from discreet.answers.repeated import SampleCounts
from discreet.results.differences import Bars, Differences, count_sure, find_differences
from discreet.results.estimate import draw_errors
from discreet.scales.leaderboard import Leaderboard, make_leaderboard

FILE = Path(__file__).with_suffix(".csv")
SEED = 4800
DRAWS = 1_000
COMPARED = 50
LEVEL = 0.95


@dataclass(frozen=True)
class Setting:
    """What is simulated; ``clusters`` 0 is every question alone, ``samples`` "2-6" is uneven."""

    truth: str
    models: int
    questions: int
    clusters: int = 0
    samples: str = "1"
    passage: float = 0.0
    effect: float = 0.0
    method: str = "refined"
    sets: int = 400

    def list_measures(self) -> np.ndarray:
        """Return the true measures."""
        spread = np.linspace(-1.5, 1.5, self.models)
        if self.truth == "tied":
            return 0 * spread
        return spread if self.truth == "spread" else np.round(spread * 2) / 2

    def draw(self, rng: np.random.Generator) -> SampleCounts:
        """Return counts of one set."""
        shape, number = (self.questions, self.models), np.arange(self.questions)
        cluster = number * self.clusters // self.questions if self.clusters else number
        eta = self.list_measures() - rng.normal(size=(self.questions, 1))
        eta = eta + rng.normal(0, self.passage, (cluster.max() + 1, self.models))[cluster]
        eta += rng.normal(0, self.effect, shape)
        low, _, high = self.samples.partition("-")
        tried = rng.integers(int(low), int(high or low) + 1, shape)
        success = rng.binomial(tried, 1 / (1 + np.exp(-eta))).astype(float)
        units, names = map(str, range(self.questions)), map(str, range(self.models))
        return SampleCounts(tuple(units), tuple(names), success, tried, cluster)


PASSAGES = {"questions": 200, "clusters": 40, "passage": 1.2}
SETTINGS = (
    Setting("tied", 20, 500),
    Setting("tied", 100, 1000),
    Setting("tied", 50, 300, samples="5", effect=1.5),
    Setting("tied", 20, **PASSAGES),
    Setting("tied", 60, **PASSAGES),
    Setting("tied", 20, 150, 15, passage=1.2),
    Setting("spread", 20, 500),
    Setting("pairs", 20, 500),
    Setting("pairs", 60, 500),
    Setting("pairs", 16, **PASSAGES),
    Setting("pairs", 16, 150, samples="5", effect=1.5),
    Setting("spread", 16, **PASSAGES),
    Setting("spread", 16, method="spectral", **PASSAGES),
    *(
        Setting("spread", 16, 150, samples=samples, effect=effect)
        for samples in ("1", "5", "16", "2-6")
        for effect in (0.0, 1.5)
    ),
    *(
        Setting("spread", 16, 150, samples=samples, effect=effect, method="conditional")
        for samples in ("5", "16", "2-6")
        for effect in (0.0, 1.5)
    ),
    Setting("spread", 16, method="conditional", **PASSAGES),
    Setting("tied", 20, 500, method="conditional"),
)  # fmt: skip


def count_two_sided(differences: Differences) -> float:
    """Return the mean width of rank ranges by steps that drop a pair once it is claimed."""
    covariance = differences.covariance
    errors = draw_errors(covariance, np.random.default_rng(1), n_draws=DRAWS)
    scale = differences.errors()
    np.fill_diagonal(scale, np.inf)
    largest = np.abs(errors[:, :, None] - errors[:, None, :]) / scale
    apart = (differences.value[:, None] - differences.value) / scale
    left = ~np.eye(len(scale), dtype=bool)
    while True:
        bar = np.quantile(np.where(left, largest, 0).max(axis=(1, 2)), LEVEL)
        still = np.abs(apart) <= bar
        if (left <= still).all():
            return float((1 + (left.sum(axis=1))).mean())
        left &= still


def study(setting: Setting) -> dict[str, float]:
    """Return the numbers of one setting."""
    rng = np.random.default_rng(SEED)
    truth, estimates, errors, inside, widths = setting.list_measures(), [], [], 0, []
    for number in range(setting.sets):
        board = make_leaderboard(setting.draw(rng), method=setting.method)
        order = np.array([int(name) for name in board.models])
        back = np.argsort(order)
        estimates.append(board.measure[back])
        errors.append(board.se[back])
        own = truth[order]
        best, worst = 1 + (own > own[:, None]).sum(1), (own >= own[:, None]).sum(1)
        inside += bool((board.rank_low <= best).all() and (board.rank_high >= worst).all())
        if number < COMPARED:
            widths.append(find_widths(board))
    sd = np.std(estimates, axis=0, ddof=1)
    return {
        "ratio": np.sqrt(np.mean(np.square(errors)) / np.mean(sd**2)),
        "ratio_error": np.sqrt(0.5 / (setting.sets * (setting.models - 1))),
        "inside": inside / setting.sets,
        "inside_error": np.sqrt(LEVEL * (1 - LEVEL) / setting.sets),
        **dict(zip(("width", "single", "twosided"), np.mean(widths, axis=0), strict=True)),
    }


def find_widths(board: Leaderboard) -> tuple[float, float, float]:
    """Return mean widths: as the library says, without steps down, by two-sided steps."""
    differences = find_differences(board.estimate)
    above, below, _ = count_sure(differences, Bars(differences, LEVEL).interval)
    single = len(above) - np.mean(above + below)
    width = np.mean(board.rank_high - board.rank_low + 1)
    many = len(above) > 20 or board.clusters < 30
    return float(width), float(single), np.nan if many else count_two_sided(differences)


def read_done() -> list[dict[str, str]]:
    """Return the rows that are there."""
    if not FILE.exists():
        return []
    with FILE.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def list_rows(commit: str) -> Iterator[dict[str, object]]:
    """Compute what is missing."""
    done = [tuple(row[name] for name in asdict(SETTINGS[0])) for row in read_done()]
    for setting in SETTINGS:
        about = asdict(setting)
        if tuple(map(str, about.values())) not in done:
            numbers = {n: f"{value:.4f}" for n, value in study(setting).items()}
            yield {**about, **numbers, "seed": SEED, "commit": commit}


def main() -> None:
    """Write the rows, each as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", required=True)
    for row in list_rows(parser.parse_args().commit):
        is_new = not FILE.exists()
        with FILE.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, row, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
