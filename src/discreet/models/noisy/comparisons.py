"""The fit of comparisons: every comparison is a disagreement.

In: noisy wins, or noisy net wins and numbers of comparisons, and their noise. Out: a `NoiseFit`
whose difficulties are the strengths: an object that is hard to beat is difficult.

Given who was compared with whom, ``losses_ij - losses_ji`` has mean
``D_ij tanh((b_j - b_i) / 2)``, as for answers. Three things differ. How often two objects are
compared does not depend on any ability, so the model of D is the design times one factor an
object. The comparisons of one judge are independent given the strengths, so a difference has the
sampling variance
``D_ij (1 - tanh^2)``, twice its slope, where the pairs of one person hang together. And a judge's
weight is one, or less where the noise asked for it, so twice the slope is an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.models.noisy import HONEST_SPREAD, NoiseFit, laplacian, tanh_differences
from discreet.models.noisy.disagreements import PairLayout
from discreet.models.noisy.fit import check_matrix_shape, fit_observation
from discreet.models.noisy.margins import MarginsNoise, MarginsObservation
from discreet.models.noisy.pairs import PairsObservation
from discreet.types import FloatArray

#: Sampling variance of a comparison's outcome over the slope of its mean.
SAMPLING_RATIO = 2.0

#: Smallest eigenvalue of the normalised Laplacian of the comparisons: 1 for random pairs, also
#: where some objects are drawn more often (.88 to 1.03 on average over releases with 20 or 50
#: objects and epsilon 1 or 3); .35 to .5 where only objects of like strength meet and the noise
#: lets it show.
WEAK_LINK, FIRM_LINK = 0.5, 0.8

#: With fewer the eigenvalues of random pairs spread too far to tell a design from chance.
FEWEST_OBJECTS = 8


@dataclass(frozen=True, eq=False)
class ComparedLayout(PairLayout):
    """What is public about the pairs: no ability stands behind how often they were compared."""

    def shape(self, difficulty: FloatArray, mean: float, spread: float) -> FloatArray:  # noqa: ARG002
        """Return the design, whatever the strengths are."""
        return self.design


@dataclass(frozen=True)
class NetWinsNoise(MarginsNoise):
    """Noise of net wins and of comparisons."""

    def sampling_ratio(self, disagreements: FloatArray) -> float:  # noqa: ARG002
        """Return the sampling variance of net wins over their slope."""
        return SAMPLING_RATIO


def fit_net_wins(
    net_wins: FloatArray,
    compared: FloatArray,
    *,
    sigma_net_wins: float,
    sigma_compared: float,
    ceiling: float | None = None,
    standard_errors: bool = True,
) -> NoiseFit:
    """Fit strengths to noisy net wins and numbers of comparisons.

    Parameters
    ----------
    net_wins
        Wins minus losses of each object, with noise.
    compared
        How often two objects were compared, with noise; symmetric, zero diagonal.
    sigma_net_wins, sigma_compared
        Standard deviations of the noise.
    ceiling
        Largest possible number of comparisons, where it is public.
    standard_errors
        Whether to compute them.

    Examples
    --------
    >>> strength = np.array([0.9, 0.3, -0.3, -0.9])
    >>> compared = 200.0 * (1 - np.eye(4))
    >>> wins = (compared * np.tanh((strength[:, None] - strength) / 2)).sum(axis=1)
    >>> fit = fit_net_wins(wins, compared, sigma_net_wins=2.0, sigma_compared=2.0)
    >>> fit.difficulty.round(1)
    array([ 0.9,  0.3, -0.3, -0.9])
    """
    m = len(net_wins)
    check_matrix_shape(compared, m)
    noise = NetWinsNoise(sigma_net_wins, sigma_compared, 1.0, None, 1)
    layout = ComparedLayout(1.0 - np.eye(m), sigma_compared, ceiling, weight=1.0)
    observation = MarginsObservation(-net_wins, compared * layout.counted, layout, noise)
    fit = fit_observation(observation, m, standard_errors=standard_errors)
    slope = laplacian(_slopes(fit))
    noisy = sigma_net_wins**2 * np.eye(m) + SAMPLING_RATIO * slope
    return _admit_weak_links(fit, slope @ np.linalg.solve(noisy, slope))


def fit_win_pairs(
    wins: FloatArray, *, variance: float, ceiling: float | None = None, standard_errors: bool = True
) -> NoiseFit:
    """Fit strengths to noisy wins ``wins[i, j]``: i beat j.

    The parameters are those of :func:`fit_net_wins`; ``variance`` is that of the noise on each
    count.
    """
    m = len(wins)
    check_matrix_shape(wins, m)
    layout = ComparedLayout(1.0 - np.eye(m), float(np.sqrt(2 * variance)), ceiling, weight=1.0)
    observation = PairsObservation(
        difference=(wins.T - wins) * layout.counted,
        disagreement=(wins + wins.T) * layout.counted,
        layout=layout,
        answers=SAMPLING_RATIO,
    )
    fit = fit_observation(observation, m, standard_errors=standard_errors)
    slope = _slopes(fit)
    weights = slope**2 / (2 * variance + SAMPLING_RATIO * slope)
    return _admit_weak_links(fit, laplacian(weights))


def _slopes(fit: NoiseFit) -> FloatArray:
    """How fast the expected difference of each pair moves with their strengths."""
    return fit.disagreement * (1 - tanh_differences(fit.difficulty) ** 2) / 2


def _admit_weak_links(fit: NoiseFit, precision: FloatArray) -> NoiseFit:
    """Widen the intervals along the direction that the fewest comparisons hold together.

    The prior takes strengths as independent of who was compared with whom: along any one
    direction they then differ by about one spread, and shrinking costs no more than that. Where
    objects of like strength are compared, the weakest link runs between the strong and the weak
    half, and along it all m strengths add up, sqrt(m) spreads. What shrinking can take away there
    is added to the covariance. Random pairs have no weak link.
    """
    m = len(fit.difficulty)
    if fit.covariance is None or m < FEWEST_OBJECTS:
        return fit
    links = laplacian(fit.disagreement)
    scale = 1 / np.sqrt(np.maximum(np.diag(links), 1e-300))
    firmness, vectors = np.linalg.eigh(links * scale[:, None] * scale)
    weakness = float(np.clip((FIRM_LINK - firmness[1]) / (FIRM_LINK - WEAK_LINK), 0, 1))
    direction = scale * vectors[:, 1]
    direction = direction - direction.mean()
    direction /= max(float(np.linalg.norm(direction)), 1e-300)
    shrunk = 1 / (1 + fit.prior_spread**2 * float(direction @ precision @ direction))
    lost = shrunk * max(fit.prior_spread, HONEST_SPREAD)
    covariance = fit.covariance + weakness * m * lost**2 * np.outer(direction, direction)
    return replace(fit, covariance=covariance)
