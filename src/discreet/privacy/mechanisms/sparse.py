"""Noise on the pairs of a random graph: the paper's Algorithm 2 with p0 below 1.

In: public parameters and a budget. Out: a fresh graph, and the noise law of the counts on it.

The graph is drawn for each release anew, without the answers. So the answers meet an average
graph: one set of answers touches floor(q^2 / 4) pairs, of which each is an edge with
probability p0, and delta is an average over that number (docs/privacy-accounting.md, section 10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import log2
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import (
    Budget,
    GraphMoves,
    Neighbours,
    Spend,
    calibrate_counts,
    calibrate_graph,
    graph_spend,
)
from discreet.privacy.mechanisms.graphs import (
    connection_probability,
    cut_bound,
    draw_connected_graph,
    round_probability,
)
from discreet.privacy.mechanisms.pairs import count_moves
from discreet.privacy.mechanisms.protocol import Calibration, NoiseLaw, Public, check_size
from discreet.secure import RandomSource

__all__ = ["FRESH_GRAPH_CONDITION", "NoiseFor", "SparsePairs"]

Int64Array = npt.NDArray[np.int64]
NoiseFor = Literal["a random graph", "the drawn graph"]

FRESH_GRAPH_CONDITION = (
    "Epsilon and delta hold for the release as a whole, including the random choice of the "
    "compared pairs, which was made for this release alone, after the answers were given and "
    "without looking at them; rho holds given the pairs that were chosen."
)


@dataclass(frozen=True)
class SparsePairs:
    """Discrete Gaussian noise on the pairs of a random graph drawn without the data.

    Attributes
    ----------
    edge_probability
        ``p0`` of the paper; by default 1.1 log2(m) / m, which its figures use (the
        supplement's log n / n is a slip: the graph has to connect the m items).
    noise_for
        ``"a random graph"``: the noise keeps the budget on average over graphs, which is what
        (epsilon, delta) asks of a release that draws its own graph. ``"the drawn graph"``: it
        keeps the budget given the graph, whatever that is. That takes 1.4 times the noise, with
        a cap up to 7 times, but counts for less where a ledger adds up several releases.
    """

    edge_probability: float | None = None
    name: str = "sparse-pairs"
    noise_for: NoiseFor = "a random graph"

    def __post_init__(self) -> None:
        if self.edge_probability is not None and not 0 < self.edge_probability <= 1:
            raise BadUsage(
                f"edge_probability must lie in (0, 1], found {self.edge_probability}; "
                "1 compares every pair"
            )
        if self.noise_for not in get_args(NoiseFor):
            known = " or ".join(repr(word) for word in get_args(NoiseFor))
            raise BadUsage(f"noise_for must be {known}, found {self.noise_for!r}")

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:
        check_size(public, self.name)
        m = len(public.items)
        probability = self.edge_probability or min(1.0, 1.1 * log2(m) / m)
        edges = draw_connected_graph(m, probability, source)
        moved = count_moves(cut_bound(edges, m, public.max_answers), public.neighbours)
        if self.noise_for == "the drawn graph":
            sigma, spend = calibrate_counts(moved, budget, mechanism=self.name)
            conditions: tuple[str, ...] = ()
        else:
            sigma, spend = self._calibrate_average(public, budget, probability, moved)
            conditions = (FRESH_GRAPH_CONDITION,)
        return Calibration(
            {"right_wrong": NoiseLaw("gaussian", sigma)},
            spend,
            settings={
                "edge_probability": probability,
                "edges": edges.tolist(),
                "noise_for": self.noise_for,
            },
            conditions=conditions,
        )

    def _calibrate_average(
        self, public: Public, budget: Budget, probability: float, moved: int
    ) -> tuple[Fraction, Spend]:
        """Noise for an average graph; ``moved``, of the drawn graph, enters rho alone."""
        delta = budget.require_delta(self.name)
        moves = graph_moves(public, probability)
        sigma = calibrate_graph(moves, budget.epsilon, delta)
        rho = Fraction(moved) / (2 * sigma * sigma)
        return sigma, graph_spend(moves, sigma, budget, mechanism=self.name, rho=rho)

    def redraw(self, public: Public, calibration: Calibration, source: RandomSource) -> Calibration:
        """Return the same noise with a fresh graph, as in another release; for the audit."""
        probability = calibration.settings["edge_probability"]
        edges = draw_connected_graph(len(public.items), probability, source)
        return replace(calibration, settings={**calibration.settings, "edges": edges.tolist()})

    def weighting(self, public: Public, calibration: Calibration) -> None:  # noqa: ARG002
        return None

    def cells(self, counts: PairCounts, calibration: Calibration) -> dict[str, Int64Array]:
        first, second = np.asarray(calibration.settings["edges"], dtype=np.int64).T
        right, wrong = np.concatenate([first, second]), np.concatenate([second, first])
        cells = counts.right_wrong[right, wrong]
        # Newer versions of scipy pick a sparse vector from sparse counts. It holds no zeros, and
        # a zero gets noise like any other number.
        return {"right_wrong": cells.toarray() if hasattr(cells, "toarray") else cells}


def graph_moves(public: Public, probability: float) -> GraphMoves:
    """How one person moves the counts on a random graph that is redrawn until connected."""
    coin = round_probability(probability)
    step = 2 if public.neighbours is Neighbours.REPLACE_ONE else 1
    accepted = _accepted(len(public.items), coin)
    if accepted == 0:
        raise BadUsage(
            f"a random graph of {len(public.items)} items with edge probability {probability:.3g} "
            "may hardly ever be connected, so that the average over connected ones is not known; "
            f"use at least {min(1.0, log2(len(public.items)) / len(public.items)):.2g}, or "
            "noise_for='the drawn graph'"
        )
    return GraphMoves(public.max_answers**2 // 4, step, coin, accepted)


@lru_cache(maxsize=64)
def _accepted(items: int, coin: Fraction) -> float:
    return connection_probability(items, coin)
