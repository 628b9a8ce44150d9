"""Noise on every pair count: the paper's Algorithm 2 with p0 = 1, and with Laplace noise.

In: public parameters and a budget. Out: the noise law of every pair count.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person moves that many counts by one;
replacing the answers moves at most twice as many, because a count that is in both patterns
does not move. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/test_sensitivity.py`` finds them by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.counts.table import PairCounts
from discreet.privacy.accounting.budget import Budget, Neighbours
from discreet.privacy.accounting.local import calibrate_laplace
from discreet.privacy.accounting.unit_moves import calibrate_counts
from discreet.privacy.protocol import Calibration, NoiseLaw, Public, check_size
from discreet.secure import RandomSource
from discreet.types import Int64Array


def count_moves(touched: int, neighbours: Neighbours) -> int:
    """How many counts one person moves by one, if a pattern touches at most ``touched``."""
    return 2 * touched if neighbours is Neighbours.REPLACE_ONE else touched


@dataclass(frozen=True)
class DensePairs:
    """Noise on every ordered pair of items (Algorithm 2 with p0 = 1).

    Attributes
    ----------
    name
        ``"pairs"`` or ``"laplace-pairs"``.
    family
        Discrete Gaussian noise, or discrete Laplace noise, which is pure epsilon.
    """

    name: str = "pairs"
    family: Literal["gaussian", "laplace"] = "gaussian"

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:  # noqa: ARG002
        check_size(public, self.name)
        moved = count_moves(public.max_answers**2 // 4, public.neighbours)
        scale, spend = CALIBRATE[self.family](moved, budget, mechanism=self.name)
        return Calibration({"right_wrong": NoiseLaw(self.family, scale)}, spend)

    def weighting(self, public: Public, calibration: Calibration) -> None:  # noqa: ARG002
        return None

    def cells(self, counts: PairCounts, calibration: Calibration) -> dict[str, Int64Array]:  # noqa: ARG002
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"right_wrong": counts.dense(f"the mechanism {self.name}")[off_diagonal]}


CALIBRATE = {"gaussian": calibrate_counts, "laplace": calibrate_laplace}
