"""Noise on the counts of every pair of items, the paper's Algorithm 2 with p0 = 1.

In: public parameters and a budget. Out: the noise law of the counts.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person changes that many counts by one;
replacing the answers changes at most twice as many, because a count that is in both patterns
does not change. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/privacy/test_sensitivity.py`` finds them by brute force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.counts import PairCounts
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.gaussian_noise import calibrate_counts
from discreet.privacy.accounting.local import calibrate_laplace
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public, check_pair_matrix_size
from discreet.secure import RandomSource
from discreet.types import Int64Array

if TYPE_CHECKING:
    pass


def count_sensitivity(touched: int, neighbours: Neighbours) -> int:
    """Return how many counts one person changes by one, if a pattern touches ``touched``."""
    return 2 * touched if neighbours is Neighbours.REPLACE_ONE else touched


@dataclass(frozen=True)
class DensePairs(AdditiveMechanism):
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

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_pair_matrix_size(public, self.name)
        sensitivity = count_sensitivity(public.max_answers**2 // 4, public.neighbours)
        scale, spend = CALIBRATE[self.family](sensitivity, budget, mechanism=self.name)
        return NoiseCalibration({"right_wrong": NoiseLaw(self.family, scale)}, spend)

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the counts of all ordered pairs, exact. Confidential."""
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"right_wrong": counts.dense(f"the mechanism {self.name}")[off_diagonal]}


laplace_pairs = partial(DensePairs, "laplace-pairs", "laplace")

CALIBRATE: dict[str, Callable[..., tuple[Fraction, Spend]]] = {
    "gaussian": calibrate_counts,
    "laplace": calibrate_laplace,
}
