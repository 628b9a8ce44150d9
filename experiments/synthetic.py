"""Figure 1: simulated answers, 25 or 200 items, 200 or 1000 persons; the truth is known.

python -m experiments.synthetic [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.simulation import simulate
from experiments.curves import Scene, Setting
from experiments.panels import Panel, choose_curves, draw_figure
from experiments.published import Pairs
from experiments.results import read_options

NAME = "synthetic"
SHAPES = ((25, 200), (200, 200), (25, 1000), (200, 1000))

# As in the authors' script for synthetic data: m (m - 1) / 2 pairs, p0 = 1.1 log2(m) / m.
SETTING = Setting(Pairs.UNORDERED, edge_factor=1.1)


@dataclass(frozen=True)
class Simulated:
    """Difficulties and abilities from N(0, 1); everyone answers everything."""

    items: int
    persons: int

    def __call__(self, rng: np.random.Generator) -> Scene:
        simulation = simulate(self.persons, self.items, rng=rng)
        answers = simulation.responses.store.rows(0, self.persons)
        return Scene(answers, simulation.difficulty)


def make_panel(m: int, n: int) -> Panel:
    title = f"{m} items, {n} persons"
    return Panel(
        f"m={m}, n={n}", title, Simulated(m, n), SETTING, choose_curves(without=["refined"])
    )


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=4)
    panels = [make_panel(m, n) for m, n in SHAPES]
    draw_figure(NAME, "Simulated answers: error against the true difficulties", panels, options)


if __name__ == "__main__":
    main()
