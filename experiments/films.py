"""Figure 3: film ratings of 610 persons turned into answers; 25, 50, 100 or 200 random films.

The ratings are MovieLens latest-small, which may not be redistributed: get your own copy from
grouplens.org/datasets/movielens and pass it on. The error is the distance to the spectral
estimate without privacy.

The paper estimates every person's score of every film and gives no method. Here it is done with the
settings of the authors' script: 30 sparse non-negative factors of the ratings, a missing rating
being 0 (Kim and Park 2007; 30 rounds, ridge 1, sparseness 1e-4, a start from means of random
columns). Their script sets no seed for that start; here it is always the same.

    python -m experiments.films --ratings ml-latest-small.zip [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from experiments import published
from experiments.curves import FloatArray, Scene, Setting
from experiments.panels import Panel, choose_curves, draw_figure
from experiments.results import read_options

NAME = "films"
ITEMS = (25, 50, 100, 200)

# As in the authors' script for real data: m (m - 1) pairs, p0 = 2 log2(m) / m.
SETTING = Setting(published.Pairs.ORDERED, edge_factor=2.0)

FACTORS, ROUNDS, RIDGE, SPARSENESS = 30, 30, 1.0, 1e-4

BESIDE = Path("..", "shared", "data", "ml_latest_small_long.csv.gz")
"""Looked for when no path is given: a copy in a folder beside the repository."""


@dataclass(frozen=True)
class Films:
    """As many random films as `items`, drawn anew in every trial."""

    items: int
    ratings: Path = field(repr=False)

    def __call__(self, rng: np.random.Generator) -> Scene:
        answers = load(self.ratings)
        chosen = answers[:, rng.choice(answers.shape[1], self.items, replace=False)]
        return Scene(chosen, published.spectral(published.count(chosen)))


@cache
def load(path: Path) -> npt.NDArray[np.int8]:
    """Return the answers of the file's persons to all its films."""
    return binarise(read_ratings(path))


def read_ratings(path: Path) -> FloatArray:
    """Return ``[person, film]``, 0 where there is no rating, from the archive or its file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("ratings.csv"))
            frame = pd.read_csv(archive.open(name), dtype=str)
    else:
        frame = pd.read_csv(path, dtype=str)
    person, film, rating = frame.columns[:3]
    table = frame.astype({rating: float}).pivot(index=person, columns=film, values=rating)
    return table.fillna(0.0).to_numpy()


def binarise(table: FloatArray) -> npt.NDArray[np.int8]:
    """Answer 1 where a person's estimated score is not above the mean of that person's scores."""
    scores = estimate_scores(table, min(FACTORS, *table.shape), np.random.default_rng(0))
    return (scores <= scores.mean(axis=1, keepdims=True)).astype(np.int8)


def estimate_scores(table: FloatArray, factors: int, rng: np.random.Generator) -> FloatArray:
    """Return the product of sparse non-negative factors of a table."""
    drawn = rng.integers(table.shape[1], size=(factors, -(-table.shape[1] // 5)))
    left = np.column_stack([table[:, columns].mean(axis=1) for columns in drawn])
    left /= np.linalg.norm(left, axis=0)
    for _ in range(ROUNDS):
        right = solve_nonnegative(left.T @ left + SPARSENESS, left.T @ table)
        left = solve_nonnegative(right @ right.T + RIDGE * np.eye(factors), right @ table.T).T
    return np.asarray(left @ right)


def solve_nonnegative(gram: FloatArray, moments: FloatArray) -> FloatArray:
    """Solve one least squares problem a column, no coefficient below zero."""
    root = np.linalg.cholesky(gram)
    targets = solve_triangular(root, moments, lower=True)
    return np.column_stack([nnls(root.T, target)[0] for target in targets.T])


def make_panel(m: int, ratings: Path, prefix: str = "") -> Panel:
    # The non-private estimate is the reference here, so its own error is zero.
    curves = choose_curves(without=["non-private"])
    name = f"{prefix}m={m}"
    return Panel(name, f"{m} films, 610 persons", Films(m, ratings), SETTING, curves)


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=3)
    ratings = options.ratings or BESIDE
    if not ratings.exists():
        print("skipped: no ratings. Pass a copy of MovieLens latest-small with --ratings PATH.")
        return
    panels = [make_panel(m, ratings) for m in ITEMS]
    title = "Film ratings (MovieLens latest-small): distance to the non-private estimate"
    draw_figure(NAME, title, panels, options)


if __name__ == "__main__":
    main()
