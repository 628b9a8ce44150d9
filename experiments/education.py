"""What the three figures on education data share: a bundled data set, its non-private estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet import datasets
from experiments import published
from experiments.curves import Scene, Setting
from experiments.panels import Panel, choose_curves

# As in the authors' script for real data: m (m - 1) pairs. There is no sparse curve: a sparse graph
# of five items is not connected.
SETTING = Setting(published.Pairs.ORDERED, edge_factor=2.0)


@dataclass(frozen=True)
class Bundled:
    """A data set that comes with the library; the same in every trial."""

    name: str

    def __call__(self, rng: np.random.Generator) -> Scene:  # noqa: ARG002
        responses = getattr(datasets, self.name)()
        answers = responses.store.rows(0, responses.n_persons)
        return Scene(answers, published.spectral(published.count(answers)))


def make_panel(name: str, title: str) -> Panel:
    # The non-private estimate is the reference here, so its own error is zero.
    curves = choose_curves(sparse=False, without=["non-private"])
    return Panel(name, title, Bundled(name), SETTING, curves)


PANELS = {
    "lsat": "5 items, 1000 persons",
    "three_grades": "3 marks, 649 pupils",
    "uci_student": "4 results, 131 students",
}
"""Data sets with the titles of their panels."""


def make_panels() -> list[Panel]:
    """Return the three panels of Figure 2."""
    return [make_panel(name, title) for name, title in PANELS.items()]
