"""What the three figures on education data share: a bundled data set, its non-private estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet import datasets
from experiments import published
from experiments.curves import Scene, Setting
from experiments.panels import Panel, choose_curves

# The printed curves fit m (m - 1) pairs. There is no sparse curve: a sparse graph of five items
# is not connected.
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
