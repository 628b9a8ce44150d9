"""Noise on every pair count: the paper's Algorithm 2 with p0 = 1, and with Laplace noise.

In: public parameters and a budget. Out: the noise law of every pair count; and after the wall
difficulties.

One person with k right and r - k wrong answers is in exactly k (r - k) <= floor(r^2 / 4) of
the counts, once in each. Adding or removing the person moves that many counts by one;
replacing the answers moves at most twice as many, because a count that is in both patterns
does not move. Both bounds are attained (all wrong answers become right and the other way
round), and ``tests/test_sensitivity.py`` finds them by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.counts.table import PairCounts
from discreet.models.noisefit.pairs import fit_noisy_pairs
from discreet.models.noisefit.solve import NoiseFit
from discreet.privacy.accounting.budget import Budget, Neighbours
from discreet.privacy.accounting.local import calibrate_laplace
from discreet.privacy.accounting.unit_moves import calibrate_counts
from discreet.privacy.mechanisms.base import (
    LEAST_VARIANCE,
    AdditiveMechanism,
    Forecast,
    Study,
    fill_matrix,
)
from discreet.privacy.protocol import Calibration, NoiseLaw, Public, check_size
from discreet.privacy.wall import Release
from discreet.secure import RandomSource
from discreet.types import FloatArray, Int64Array


def count_moves(touched: int, neighbours: Neighbours) -> int:
    """How many counts one person moves by one, if a pattern touches at most ``touched``."""
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

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_size(public, self.name)
        moved = count_moves(public.max_answers**2 // 4, public.neighbours)
        scale, spend = CALIBRATE[self.family](moved, budget, mechanism=self.name)
        return Calibration({"right_wrong": NoiseLaw(self.family, scale)}, spend)

    def cells(self, counts: PairCounts, calibration: Calibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the counts of all ordered pairs, exact. Confidential."""
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"right_wrong": counts.dense(f"the mechanism {self.name}")[off_diagonal]}

    def fit(self, release: Release, standard_errors: bool) -> NoiseFit:
        """Fit difficulties to the noisy counts of every ordered pair."""
        noisy = fill_matrix(release.values["right_wrong"], len(release.public.items))
        return fit_counts(release, noisy, None, standard_errors)

    def forecast(self, study: Study, calibration: Calibration) -> Forecast:
        """Every pair's difference and sum have the noise of two counts."""
        return forecast_counts(study, calibration)


laplace_pairs = partial(DensePairs, "laplace-pairs", "laplace")

CALIBRATE = {"gaussian": calibrate_counts, "laplace": calibrate_laplace}


def fit_counts(
    release: Release,
    noisy: FloatArray,
    mask: npt.NDArray[np.bool_] | None,
    standard_errors: bool,
) -> NoiseFit:
    """Fit difficulties to noisy pair counts, on all pairs or on those of a mask."""
    return fit_noisy_pairs(
        noisy,
        variance=max(release.laws["right_wrong"].variance, LEAST_VARIANCE),
        mask=mask,
        answers=release.public.max_answers,
        persons=release.public.persons,
        standard_errors=standard_errors,
    )


def forecast_counts(study: Study, calibration: Calibration, density: float = 1.0) -> Forecast:
    """Forecast noise on the counts of pairs, of which a share is counted."""
    sigma = sqrt(2 * calibration.laws["right_wrong"].variance)
    return Forecast(sigma, sigma, np.ones(study.answers + 1), "pairs", density)
