"""The fit of noisy pair counts: `pairs`, `sparse-pairs`, `laplace-pairs`, debiased answers.

In: noisy counts ``Y[i, j]`` (i right, j wrong) and the variance of their noise. Out: a
`NoiseFit`.

The difference ``Y_ij - Y_ji`` has mean ``D_ij tanh((b_j - b_i) / 2)`` and the sum ``Y_ij + Y_ji``
is a noisy ``D_ij``; their noises are uncorrelated. Nothing is clipped: a pair with few
disagreements simply weighs little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from discreet.models.noisy import LinearView, NoiseFit, laplacian, tanh_differences
from discreet.models.noisy.disagreements import Disagreements, PairLayout
from discreet.models.noisy.fit import check_matrix_shape, fit_observation
from discreet.models.noisy.iterate import Around
from discreet.types import FloatArray

#: The least count that the chain takes, as printed in the paper.
FLOOR = 1.0


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Released counts of ordered pairs.

    Attributes
    ----------
    noisy
        ``[i, j]``: i right and j wrong, with noise; zero where a pair was not counted.
    counted
        Which ordered pairs were counted; symmetric, no diagonal.
    """

    noisy: FloatArray
    counted: npt.NDArray[np.bool_]

    @property
    def floored(self) -> FloatArray:
        """The counts as the chain takes them: at least one where a pair was counted."""
        return np.where(self.counted, np.maximum(FLOOR, self.noisy), 0.0)

    @property
    def raised(self) -> int:
        """How many counts the floor raised."""
        return int((self.noisy[self.counted] < FLOOR).sum())


@dataclass(frozen=True, eq=False)
class PairsObservation:
    """Noisy differences and sums of the two directions of each pair."""

    difference: FloatArray
    disagreement: FloatArray
    layout: PairLayout
    answers: float

    def view(
        self, difficulty: FloatArray, disagreements: Disagreements, around: Around
    ) -> LinearView:
        """Return the normal equations with one equation per pair."""
        stretch = around.stretch
        values, tanh = disagreements.values, tanh_differences(difficulty / stretch)
        counted = self.layout.counted
        slope = values * (1 - tanh**2) / (2 * stretch)
        share = min(1.0, disagreements.freedom / self.layout.pairs)
        left = (share + disagreements.trust) * tanh**2
        private = self.layout.sigma**2 * (1 + left)
        # One person is in many pairs, so sampling does not average out over the pairs of an
        # item: it is as large as if every pair carried half an answer set. With it, the
        # weights go to those of the refined estimate as the noise goes to zero.
        variance = private + self.answers * slope
        weight = counted * slope / variance
        # Without the sampling variance the same equations count for more against the prior.
        more = (weight * slope).sum() / max((weight * slope * private / variance).sum(), 1e-300)
        weight *= around.sampling + (1 - around.sampling) * more
        precision = laplacian(weight * slope)
        surprise = self.difference - values * tanh
        target = precision @ difficulty - (weight * surprise).sum(axis=1)
        return LinearView(precision, target)

    def redraw(self, difficulty: FloatArray, mean: FloatArray, rng: np.random.Generator) -> Self:
        """Draw counts as if these were the truth."""
        m = len(difficulty)
        tanh = tanh_differences(difficulty)
        counted = self.layout.counted
        # Sampling moves whole rows: independent draws per pair, scaled to the row's variance.
        sampling = np.sqrt(self.answers / 2 * mean * (1 - tanh**2))
        spread = np.sqrt(self.layout.sigma**2 + sampling**2)
        skew = np.triu(spread * rng.standard_normal((m, m)), 1)
        even = np.triu(self.layout.sigma * rng.standard_normal((m, m)), 1)
        return replace(
            self,
            difference=(mean * tanh + skew - skew.T) * counted,
            disagreement=(mean + even + even.T) * counted,
        )


def fit_noisy_pairs(
    right_wrong_noisy: FloatArray,
    *,
    variance: float,
    mask: npt.NDArray[np.bool_] | None = None,
    answers: float | None = None,
    persons: int | None = None,
    standard_errors: bool = True,
) -> NoiseFit:
    """Fit difficulties to noisy pair counts.

    Parameters
    ----------
    right_wrong_noisy
        ``Y[i, j]`` with noise: how many persons were right on i and wrong on j.
    variance
        Of the noise on each count, whatever its distribution.
    mask
        Which pairs were counted (symmetric); by default all.
    answers
        Typical number of answers per person, for the sampling part; by default all items.
    persons
        How many persons, where that is public.
    standard_errors
        Whether to bootstrap them, from a fixed public seed; the difficulties are the same bit for
        bit without.

    Examples
    --------
    >>> odds = np.exp([-0.6, 0.2, 0.4])
    >>> counts = 1000 * odds[None] / (odds[None] + odds[:, None])
    >>> fit_noisy_pairs(counts, variance=4.0).difficulty.round(1)
    array([-0.6,  0.2,  0.4])
    """
    m = len(right_wrong_noisy)
    check_matrix_shape(right_wrong_noisy, m)
    counted = np.ones((m, m)) if mask is None else np.asarray(mask, dtype=np.float64)
    counted = np.maximum(counted, counted.T)
    np.fill_diagonal(counted, 0.0)
    typical = float(m if answers is None else answers)
    ceiling = None if persons is None else persons * typical**2 / 4 * counted.mean()
    observation = PairsObservation(
        difference=(right_wrong_noisy - right_wrong_noisy.T) * counted,
        disagreement=(right_wrong_noisy + right_wrong_noisy.T) * counted,
        layout=PairLayout(counted, float(np.sqrt(2 * variance)), ceiling, weight=1.0),
        answers=typical * float(counted.sum()) / (m * (m - 1)),
    )
    return fit_observation(observation, m, standard_errors=standard_errors)
