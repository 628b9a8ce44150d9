"""`margins`: how each item did against its own takers, and how often two items disagree.

In: public parameters and a budget. Out: integer person weights, the noise of both summaries,
what that spends. Both summaries come from one matrix, the weighted
pair counts ``Yw``: ``T = row sums - column sums`` and ``D = Yw + Yw'``. Derivation and proof:
docs/margins.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, inf, sqrt
from typing import Any, Literal

import numpy as np

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.gaussian_noise import calibrate_blocks, round_ratio
from discreet.privacy.accounting.local import calibrate_laplace
from discreet.privacy.mechanisms.base import AdditiveMechanism, sum_margins
from discreet.privacy.mechanisms.margins_sensitivity import (
    margins_l1_sensitivity,
    margins_l2_sensitivity,
)
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public, check_pair_matrix_size
from discreet.secure import RandomSource
from discreet.types import Int64Array

Norm = Literal["euclidean", "absolute"]

GRID = 2**20
"""Grid steps per unit of a total. Weights are rounded to it, contributions never are."""

CLIP = 0.7
"""Longest contribution, as a share of that of a person with half of ``answers`` right.

Below it everybody weighs 1 / answered, which is best without noise; above it weights shrink so
that contributions have equal length, which is best with noise. Between .6 and .8 no error in
docs/decisions/0005-margins.md changes by more than 3%; 1 costs up to 20%.
"""

SHARE = 0.3
"""Variance ratio of a total to a disagreement, per answer, at epsilon 1.

Joint differences make .15 free. It goes with the root of epsilon, from half to twice this value:
the less noise there is, the less a model of the disagreements has to add to their raw values.
"""

FULL_ANSWERS = 0.8
FULL_CLIP, FULL_SHARE = 0.85, 0.35
"""Where people answer at least .8 of the list, answered numbers vary little, so clipping gains
little, and every pair is answered together, so that the share need not grow with epsilon."""

SHORT_LIST = 10
SHORT_CLIP, SHORT_SHARE = 0.85, 0.6
"""With up to ten items too little is left to learn a model from: more for the raw values; with
three, where clipping gains nothing, as much as is free when all answer (ratio 1)."""


@dataclass(frozen=True)
class PersonWeights:
    """Integer weight of a person by (answered, right): 1 / answered, or less where that is long.

    Any function of (answered, right) leaves the fit unbiased (docs/margins.md), so shortening
    by weight clips without bias.

    Attributes
    ----------
    grid
        Steps per unit.
    longest
        Largest length of one person's contribution to the totals, in units.
    norm
        The length that is limited: Euclidean, or half the sum of absolute values.

    Examples
    --------
    >>> weights = PersonWeights(grid=1000, longest=1.0)
    >>> weights(np.array([4, 4, 2]), np.array([2, 1, 2]))
    array([250, 250,   0])
    """

    grid: int
    longest: float
    norm: Norm = "euclidean"

    def __call__(self, answered: Int64Array, right: Int64Array) -> Int64Array:
        """Return the weights; zero for a person who compares no two items."""
        pairs = right * (answered - right)
        real = pairs > 0
        safe = np.where(real, pairs, 1).astype(np.float64)
        number = np.where(real, answered, 1).astype(np.float64)
        length = np.sqrt(safe / number) if self.norm == "euclidean" else safe / number
        weight = self.grid / number * np.minimum(1.0, self.longest / length)
        return np.where(real, np.rint(weight), 0.0).astype(np.int64)


@dataclass(frozen=True)
class Margins(AdditiveMechanism):
    """Noise on the totals and the disagreements of weighted answers.

    Attributes
    ----------
    name
        ``"margins"``, or ``"laplace-margins"`` for pure epsilon.
    family
        Discrete Gaussian noise, or discrete Laplace noise.
    answers
        Typical number of answers per person, known in advance; by default the cap. A cap far
        above it costs little: long contributions are shortened by weight.
    clip, share
        See ``CLIP`` and ``SHARE``; by default chosen from the number of items and epsilon.
    booklets
        Public knowledge of the design: the sets of items that were offered together, each to
        about as many persons. It changes no noise, only how the disagreements are denoised.
    """

    name: str = "margins"
    family: Literal["gaussian", "laplace"] = "gaussian"
    answers: float | None = None
    clip: float | None = None
    share: float | None = None
    booklets: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("clip", self.clip), ("share", self.share)):
            if value is not None and not value > 0:
                raise BadUsage(f"{name} must be positive, found {value}")
        if self.answers is not None and not 2 <= self.answers < inf:
            raise BadUsage(
                f"answers, the typical number of answers per person, must be at least 2, "
                f"found {self.answers}"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_pair_matrix_size(public, self.name)
        unknown = {item for one in self.booklets for item in one} - set(public.items)
        if unknown:
            raise BadUsage(f"the booklets name {min(unknown)!r}, which is not on the item list")
        typical = min(self.answers or public.max_answers, public.max_answers)
        if self.family == "laplace":
            return self._calibrate_laplace(public, budget, typical)
        clip, share = self._shape(len(public.items), typical, budget.epsilon)
        weights = PersonWeights(GRID, clip * sqrt(typical) / 2)
        sensitivities = margins_l2_sensitivity(
            weights,
            items=len(public.items),
            max_answers=public.max_answers,
            neighbours=public.neighbours,
        )
        ratio = round_ratio(1 / sqrt(share * typical))
        cells = len(public.items) * (len(public.items) + 1) // 2
        scale, spend = calibrate_blocks(
            sensitivities, (Fraction(1), ratio), budget, coordinates=cells, mechanism=self.name
        )
        return NoiseCalibration(self._laws(scale, ratio), spend, settings=self._settings(weights))

    def _calibrate_laplace(
        self, public: Public, budget: Budget, typical: float
    ) -> NoiseCalibration:
        # The sum over pairs of one person is at most answers / 4 (half right): limit that.
        clip, share = self._shape(len(public.items), typical, budget.epsilon)
        weights = PersonWeights(GRID, clip * typical / 4, norm="absolute")
        totals, disagreements = margins_l1_sensitivity(weights, max_answers=public.max_answers)
        persons = 2 if public.neighbours is Neighbours.REPLACE_ONE else 1
        ratio = round_ratio(1 / sqrt(share * typical))
        length = ceil(persons * (totals + disagreements / ratio))
        scale, spend = calibrate_laplace(length, budget, mechanism=self.name)
        return NoiseCalibration(self._laws(scale, ratio), spend, settings=self._settings(weights))

    def _shape(self, items: int, typical: float, epsilon: float) -> tuple[float, float]:
        """Return clip and share: the user's, or those for these public parameters."""
        clip, share = CLIP, SHARE * sqrt(min(max(epsilon, 0.25), 4.0))
        if items <= SHORT_LIST:
            clip, share = (1.0, 1.0) if items <= 3 else (SHORT_CLIP, SHORT_SHARE)
        elif typical >= FULL_ANSWERS * items:
            clip, share = FULL_CLIP, FULL_SHARE
        return self.clip or clip, self.share or share

    def _laws(self, scale: Fraction, ratio: Fraction) -> dict[str, NoiseLaw]:
        return {
            "total": NoiseLaw(self.family, scale),
            "disagreement": NoiseLaw(self.family, scale * ratio),
        }

    def _settings(self, weights: PersonWeights) -> dict[str, Any]:
        shape = {"grid": weights.grid, "longest": weights.longest, "norm": weights.norm}
        return {**shape, "booklets": [list(one) for one in self.booklets]}

    def weighting(self, public: Public, calibration: NoiseCalibration) -> PersonWeights:  # noqa: ARG002
        """Return the integer weights that the noise was calibrated for."""
        settings = calibration.settings
        return PersonWeights(settings["grid"], settings["longest"], settings["norm"])

    def cells(self, counts: PairCounts, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the totals and the upper triangle of the disagreements, exact. Confidential."""
        totals, disagreements = sum_margins(counts.dense(f"the mechanism {self.name}"))
        return {"total": totals, "disagreement": disagreements}


laplace_margins = partial(Margins, "laplace-margins", "laplace")
