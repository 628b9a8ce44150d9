"""Difficulties from noisy summaries: a fit that knows how much noise it was given.

In: released values and their noise. Out: a :class:`NoiseFit`, which holds nothing confidential as
long as the fit was given released values only. Here stand the result and the step that all fits
share: difficulties given denoised disagreements, by weighted least squares under a normal prior
whose spread is learnt and integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigvalsh_tridiagonal
from scipy.linalg.lapack import dormqr, dptsv, dsytrd, dsytrd_lwork, dtrtri

from discreet.models.laplacian import centre_covariance
from discreet.types import FloatArray

SPREADS = np.exp(np.linspace(np.log(0.02), np.log(8), 61))

# Prior for the spread of the difficulties: as if 8 items with spread .9 had been seen. Weak
# against 25 items or more; with three or four it keeps the answer below the all-zero error.
PRIOR_ITEMS = 8.0
PRIOR_SPREAD = 0.9

# Intervals never assume a spread below this one: where the noise drowns everything, shrinking the
# estimate costs nothing, but a short interval around it would be a claim.
HONEST_SPREAD = 1.05

#: From here on a tridiagonal form is cheaper than all eigenvectors.
TRIDIAGONAL_ITEMS = 200

#: Beyond this the term that all spreads share hides their differences by rounding (2e-9 of
#: the spread at this limit).
LARGEST_EXPLAINED = 1e10


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """Difficulties in logits with mean zero, and how sure they are.

    Attributes
    ----------
    difficulty
        One per item, harder is larger.
    covariance
        Of the difficulties; includes sampling, privacy noise, shrinkage and the uncertainty of
        the disagreements. ``None`` where standard errors were not asked for.
    prior_spread
        Standard deviation of the difficulties that the fit settled on.
    disagreement
        The denoised disagreements, symmetric with a zero diagonal.
    ability_mean, ability_spread
        The normal ability distribution that fits the disagreements best. A rough by-product.
    freedom
        How many degrees of freedom of the noisy disagreements were taken at face value.
    inflation
        Mean ratio of the bootstrap variance to the variance of the last linear step; NaN
        without standard errors.
    rounds
        Outer iterations done.
    """

    difficulty: FloatArray
    covariance: FloatArray | None
    prior_spread: float
    disagreement: FloatArray
    ability_mean: float
    ability_spread: float
    freedom: float
    inflation: float
    rounds: int

    @property
    def se(self) -> FloatArray:
        """Standard error of each difficulty; NaN where they were not asked for."""
        if self.covariance is None:
            return np.full(len(self.difficulty), np.nan)
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, eq=False)
class LinearView:
    """Normal equations ``precision b = target`` of the data alone, without the prior."""

    precision: FloatArray
    target: FloatArray


@dataclass(frozen=True, eq=False)
class DifficultyPosterior:
    """Posterior mean and covariance, both centred, and the spread of the prior."""

    mean: FloatArray
    covariance: FloatArray
    spread: float


def tanh_differences(difficulty: FloatArray) -> FloatArray:
    """``tanh((b_j - b_i) / 2)``: how a disagreement between i and j is expected to fall."""
    return np.asarray(np.tanh((difficulty[None, :] - difficulty[:, None]) / 2))


def laplacian(weights: FloatArray) -> FloatArray:
    """Graph Laplacian of symmetric weights with a zero diagonal."""
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def solve_posterior(view: LinearView) -> DifficultyPosterior:
    """Posterior of the difficulties, averaged over the spread of their prior."""
    values, vectors = np.linalg.eigh(view.precision)
    # The first eigenvector is the constant one, which the data do not determine.
    values, vectors = np.maximum(values[1:], 0.0), vectors[:, 1:]
    score = vectors.T @ view.target
    # Posterior weight of each prior spread: score_k ~ N(0, value_k + value_k^2 spread^2).
    nonzero = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    variance = 1 + values[nonzero, None] * SPREADS**2
    fit = score[nonzero, None] ** 2 / values[nonzero, None] / variance
    weights = _normalise(-0.5 * (np.log(variance) + fit).sum(axis=0))
    shrinkage = 1 / (values[:, None] + 1 / SPREADS**2)
    mean = shrinkage @ weights
    between = np.maximum((shrinkage**2) @ weights - mean**2, 0.0) * score**2
    honest = (1 / (values[:, None] + 1 / np.maximum(SPREADS, HONEST_SPREAD) ** 2)) @ weights
    difficulty = vectors @ (mean * score)
    covariance = (vectors * (honest + between)) @ vectors.T
    return DifficultyPosterior(
        difficulty - difficulty.mean(),
        centre_covariance(covariance),
        float(np.sqrt(weights @ SPREADS**2)),
    )


def _normalise(log_likelihood: FloatArray) -> FloatArray:
    """Weights that sum to one, from the likelihood of each spread and the prior."""
    log_weight = log_likelihood - PRIOR_ITEMS / 2 * (
        np.log(SPREADS**2) + PRIOR_SPREAD**2 / SPREADS**2
    )
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def posterior_spread(view: LinearView) -> float:
    """Return the spread of the prior that `solve_posterior` finds, without eigenvectors.

    ``1 / (v (1 + v s^2))`` is ``1 / v - s^2 / (1 + v s^2)``, whose first term is the same for
    every spread s. So the weights need the eigenvalues and ``target' (P + I / s^2)^-1 target``,
    which a tridiagonal form gives at two fifths of the cost of all eigenvectors.
    """
    if len(view.target) < TRIDIAGONAL_ITEMS:
        return solve_posterior(view).spread
    # Diagonal and off-diagonal of ``Q' precision Q``, and ``Q' target``.
    work = int(dsytrd_lwork(len(view.target), lower=1)[0])
    reflectors, diagonal, off, factors, _ = dsytrd(view.precision, lower=1, lwork=work)
    score = (view.target - view.target.mean())[:, None]
    # Q leaves the first place alone and is a product of reflections of the others.
    turned, _, _ = dormqr("L", "T", reflectors[1:, :-1], factors, score[1:], lwork=64)
    score = np.concatenate([score[:1, 0], turned[:, 0]])
    values = np.maximum(eigvalsh_tridiagonal(diagonal, off)[1:], 0.0)
    likelihood = np.zeros(len(SPREADS))
    for index, spread in enumerate(SPREADS):
        _, _, solved, broken = dptsv(diagonal + 1 / spread**2, off, score)
        explained = float(score @ solved)
        if broken or explained > LARGEST_EXPLAINED:
            return solve_posterior(view).spread
        likelihood[index] = (explained - float(np.log1p(values * spread**2).sum())) / 2
    return float(np.sqrt(_normalise(likelihood) @ SPREADS**2))


def step_fixed_prior(view: LinearView, spread: float) -> FloatArray:
    """Posterior mean for a known prior spread: one solve instead of an eigenvalue problem."""
    m = len(view.target)
    factor = cho_factor(view.precision + np.eye(m) / spread**2)
    mean = cho_solve(factor, view.target)
    return np.asarray(mean - mean.mean())


def mean_variance(view: LinearView, spread: float) -> float:
    """Mean posterior variance of a difficulty for a known prior spread.

    It is the trace of ``(P + I / spread^2)^-1`` without the constant direction, and the trace of
    an inverse is the sum of squares of the inverse of a triangular factor.
    """
    m = len(view.target)
    # A weight on the constant direction keeps its variance from hiding the others' by rounding.
    constant = float(np.trace(view.precision)) / m
    factor, _ = cho_factor(view.precision + np.eye(m) / spread**2 + constant / m, lower=True)
    inverse = np.tril(dtrtri(factor, lower=1)[0])
    return (float(np.vdot(inverse, inverse)) - 1 / (constant + 1 / spread**2)) / (m - 1)
