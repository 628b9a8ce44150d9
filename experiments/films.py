"""Figure 3: film ratings of 610 persons turned into answers; 25, 50, 100 or 200 random films.

The ratings are MovieLens latest-small, which may not be redistributed: get your own copy from
grouplens.org/datasets/movielens and pass it on. The error is the distance to the spectral
estimate without privacy.

    python -m experiments.films --ratings ml-latest-small.zip [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from discreet.answers.responses import Responses
from discreet.datasets import binarise_ratings, movielens
from experiments import published
from experiments.curves import Scene, Setting
from experiments.panels import Panel, choose_curves, draw_figure
from experiments.results import read_options

NAME = "films"
ITEMS = (25, 50, 100, 200)

# As in the authors' script for real data: m (m - 1) pairs, p0 = 2 log2(m) / m.
SETTING = Setting(published.Pairs.ORDERED, edge_factor=2.0)

BESIDE = Path("..", "shared", "data", "ml_latest_small_long.csv.gz")
"""Looked for when no path is given: a copy in a folder beside the repository."""


@dataclass(frozen=True)
class Films:
    """As many random films as `items`, drawn anew in every trial."""

    items: int
    ratings: Path = field(repr=False)

    def __call__(self, rng: np.random.Generator) -> Scene:
        responses = load(self.ratings)
        answers = responses.store.rows(0, responses.n_persons)
        chosen = answers[:, rng.choice(responses.n_items, self.items, replace=False)]
        return Scene(chosen, published.spectral(published.count(chosen)))


@cache
def load(path: Path) -> Responses:
    return binarise_ratings(movielens(path))


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
