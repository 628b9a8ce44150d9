"""The fit for the `margins` mechanism: totals against takers' averages, and disagreements.

In: the released totals T and disagreements D, their noise, public parameters. Out: a `NoiseFit`.

With person weights w the totals are ``T_i = sum_l w_l (r_l X_li - k_l)`` over the takers l of
item i, who answered r_l items, k_l of them right; ``D_ij`` is the sum of w_l over persons who
answered both items differently. ``E[T_i - sum_j D_ij tanh((b_j - b_i) / 2)] = 0`` for every
ability distribution (docs/margins.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.models.noisy import LinearView, NoiseFit, laplacian, tanh_differences
from discreet.models.noisy.disagreements import Disagreements, PairLayout
from discreet.models.noisy.fit import check_matrix_shape, fit_observation
from discreet.models.noisy.iterate import Around
from discreet.types import FloatArray


@dataclass(frozen=True)
class MarginsNoise:
    """What is public about a `margins` release, in units where a person's weight is 1 / answered.

    Attributes
    ----------
    sigma_total, sigma_disagreement
        Standard deviations of the noise.
    longest
        Largest Euclidean length of one person's contribution to the totals.
    persons
        How many persons; ``None`` where that is not public (add-remove).
    max_answers
        The cap on answers per person.
    """

    sigma_total: float
    sigma_disagreement: float
    longest: float
    persons: int | None
    max_answers: int

    @property
    def ceiling(self) -> float | None:
        """Largest possible sum of the disagreements over pairs."""
        if self.persons is None:
            return None
        # sum over pairs of one person = w k (r - k) = length * sqrt(k (r - k) / r)
        root = np.sqrt(self.max_answers) / 2
        return float(self.persons * min(self.longest, root) * root)

    @property
    def weight(self) -> float:
        """Weight of a person with the most answers, half of them right."""
        return min(1.0, 2 * self.longest / float(np.sqrt(self.max_answers))) / self.max_answers

    def sampling_ratio(self, disagreements: FloatArray) -> float:
        """Return the sampling variance of the totals over their slope, 1 for weights 1 / answered.

        The trace of the sampling variance is at most persons * longest^2, that of the slope is
        the sum of the disagreements over pairs, both shrunk alike by the spread of difficulties.
        """
        if self.persons is None:
            return 1.0
        total = max(float(disagreements.sum()) / 2, 1e-300)
        return float(min(1.0, self.persons * self.longest**2 / total))


@dataclass(frozen=True, eq=False)
class MarginsObservation:
    """Released totals and disagreements."""

    total: FloatArray
    disagreement: FloatArray
    layout: PairLayout
    noise: MarginsNoise

    def view(
        self, difficulty: FloatArray, disagreements: Disagreements, around: Around
    ) -> LinearView:
        """Return the normal equations of ``T = sum_j D_ij tanh((b_j - b_i) / 2) + noise``."""
        stretch = around.stretch
        values, tanh = disagreements.values, tanh_differences(difficulty / stretch)
        slope = -laplacian(values * (1 - tanh**2) / (2 * stretch))
        # Noise that is left in the disagreements: the kept degrees of freedom, spread evenly,
        # and each raw value by its weight.
        share = min(1.0, disagreements.freedom / self.layout.pairs)
        left = (tanh**2 * (share + disagreements.trust)).sum(axis=1)
        left *= self.noise.sigma_disagreement**2
        left += around.sampling * disagreements.unexplained
        variance = np.diag(self.noise.sigma_total**2 + left)
        variance -= around.sampling * self.noise.sampling_ratio(values) * slope
        factor = cho_factor(variance)
        surprise = self.total - (values * tanh).sum(axis=1) + slope @ difficulty
        precision = slope @ cho_solve(factor, slope)
        return LinearView((precision + precision.T) / 2, slope @ cho_solve(factor, surprise))

    def redraw(self, difficulty: FloatArray, mean: FloatArray, rng: np.random.Generator) -> Self:
        """Draw totals and disagreements as if these were the truth."""
        m = len(difficulty)
        tanh = tanh_differences(difficulty)
        ratio = self.noise.sampling_ratio(mean)
        # Independent differences per pair with these variances have exactly the covariance
        # ratio * Laplacian(...) that the totals have by sampling.
        pair = np.triu(np.sqrt(ratio * mean * (1 - tanh**2) / 2) * rng.standard_normal((m, m)), 1)
        total = (mean * tanh).sum(axis=1) + (pair - pair.T).sum(axis=1)
        total += self.noise.sigma_total * rng.standard_normal(m)
        noise = np.triu(self.noise.sigma_disagreement * rng.standard_normal((m, m)), 1)
        counted = self.layout.counted
        return replace(self, total=total, disagreement=(mean + noise + noise.T) * counted)


def fit_margins(
    total_noisy: FloatArray,
    disagreement_noisy: FloatArray,
    *,
    noise: MarginsNoise,
    design: FloatArray | None = None,
    standard_errors: bool = True,
) -> NoiseFit:
    """Fit difficulties to a `margins` release.

    Parameters
    ----------
    total_noisy
        Released totals, one per item.
    disagreement_noisy
        Released disagreements, symmetric; the diagonal is ignored.
    noise
        The noise and the public parameters, in the same units.
    design
        Optional public knowledge: how often two items were offered together, up to a factor.
    standard_errors
        Whether to bootstrap them, from a fixed public seed; the difficulties are the same bit for
        bit without.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> disagreement = np.full((4, 4), 100.0)
    >>> truth = np.array([-0.9, -0.3, 0.3, 0.9])
    >>> total = (disagreement * np.tanh((truth[None] - truth[:, None]) / 2)).sum(axis=1)
    >>> noise = MarginsNoise(1.0, 0.5, 1.0, persons=1600, max_answers=4)
    >>> fit_margins(total, disagreement, noise=noise).difficulty.round(1)
    array([-0.9, -0.3,  0.3,  0.9])
    """
    m = len(total_noisy)
    check_matrix_shape(disagreement_noisy, m)
    offered = np.ones((m, m)) if design is None else np.array(design, dtype=np.float64)
    check_matrix_shape(offered, m)
    np.fill_diagonal(offered, 0.0)
    noisy = np.array(disagreement_noisy, dtype=np.float64)
    np.fill_diagonal(noisy, 0.0)
    layout = PairLayout(offered, noise.sigma_disagreement, noise.ceiling, noise.weight)
    total = np.asarray(total_noisy, dtype=np.float64)
    observation = MarginsObservation(total, noisy * layout.counted, layout, noise)
    return fit_observation(observation, m, standard_errors=standard_errors)
