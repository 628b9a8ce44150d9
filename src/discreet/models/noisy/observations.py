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
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from discreet.errors import BadUsage
from discreet.models.noisy import HONEST_SPREAD, LinearView, NoiseFit, laplacian, tanh_differences
from discreet.models.noisy.disagreements import Disagreements, PairLayout
from discreet.models.noisy.iterate import (
    Around,
    Observation,
    PosteriorState,
    bootstrap_ratios,
    iterate_fit,
    temper_ratios,
    unresolved_variance,
)
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


def fit_observation(observation: Observation, m: int, *, standard_errors: bool) -> NoiseFit:
    """Fit any observation and, where asked, attach bootstrapped variances."""
    state = iterate_fit(observation, np.zeros(m))
    covariance, inflation = None, float("nan")
    if standard_errors:
        covariance, inflation = _bootstrap_covariance(observation, state)
    return NoiseFit(
        difficulty=state.posterior.mean,
        covariance=covariance,
        prior_spread=state.posterior.spread,
        disagreement=state.disagreements.values,
        ability_mean=state.disagreements.ability_mean,
        ability_spread=state.disagreements.ability_spread,
        freedom=state.disagreements.freedom,
        inflation=inflation,
        rounds=state.rounds,
    )


def _bootstrap_covariance(
    observation: Observation, state: PosteriorState
) -> tuple[FloatArray, float]:
    """Stretch the covariance of the last linear step to what a bootstrap shows."""
    rng = np.random.default_rng(PUBLIC_SEED)
    m = len(state.posterior.mean)
    variance = np.diag(state.posterior.covariance)
    reliability = float(np.clip(1 - variance.mean() / HONEST_SPREAD**2, 0.0, 1.0))
    ratio = temper_ratios(bootstrap_ratios(observation, state, rng), reliability)
    scale = np.sqrt(ratio)
    covariance = state.posterior.covariance * scale[:, None] * scale
    covariance += unresolved_variance(state, observation.layout) * (np.eye(m) - 1 / m)
    return covariance, float(ratio.mean())


#: Post-processing is reproducible: this seed is public and has nothing to do with any noise.
PUBLIC_SEED = 20240229


def check_matrix_shape(matrix: FloatArray, m: int) -> None:
    """Refuse a matrix that is not square, or of another number of items."""
    if matrix.shape != (m, m):
        raise BadUsage(
            f"a matrix of {m} x {m} was expected for {m} items, found "
            f"{' x '.join(map(str, matrix.shape))}"
        )


# The same fit for noisy pair counts: `pairs`, `sparse-pairs`, `laplace-pairs`, debiased answers.
#
# In: noisy counts ``Y[i, j]`` (i right, j wrong) and the variance of their noise. Out: a
# `NoiseFit`.
#
# The difference ``Y_ij - Y_ji`` has mean ``D_ij tanh((b_j - b_i) / 2)`` and the sum ``Y_ij + Y_ji``
# is a noisy ``D_ij``; their noises are uncorrelated. Nothing is clipped: a pair with few
# disagreements simply weighs little.


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


# The same fit for comparisons: every comparison is a disagreement.
#
# In: noisy wins, or noisy net wins and numbers of comparisons, and their noise. Out: a `NoiseFit`
# whose difficulties are the strengths: an object that is hard to beat is difficult.
#
# Given who was compared with whom, ``losses_ij - losses_ji`` has mean
# ``D_ij tanh((b_j - b_i) / 2)``, as for answers. Three things differ. How often two objects are
# compared does not depend on any ability, so the model of D is the design times one factor an
# object. The comparisons of one judge are independent given the strengths, so a difference has the
# sampling variance
# ``D_ij (1 - tanh^2)``, twice its slope, where the pairs of one person hang together. And a judge's
# weight is one, or less where the noise asked for it, so twice the slope is an upper bound.

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
