"""Difficulties given denoised disagreements: weighted least squares with a learnt prior.

In: a linear view of the released values around current difficulties. Out: the posterior mean
and covariance of the difficulties under a normal prior whose spread is integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.estimators.noisefit.result import FloatArray

__all__ = [
    "LinearView",
    "Posterior",
    "laplacian",
    "mean_variance",
    "solve_posterior",
    "step_fixed_prior",
    "tanh_differences",
]

SPREADS = np.exp(np.linspace(np.log(0.02), np.log(8), 61))

# Prior for the spread of the difficulties: as if 8 items with spread .9 had been seen. Weak
# against 25 items or more; with three or four it keeps the answer below the all-zero error.
PRIOR_ITEMS = 8.0
PRIOR_SPREAD = 0.9

# Intervals never assume a spread below this one: where the noise drowns everything, shrinking the
# estimate costs nothing, but a short interval around it would be a claim.
HONEST_SPREAD = 1.05


@dataclass(frozen=True, eq=False)
class LinearView:
    """Normal equations ``precision b = target`` of the data alone, without the prior."""

    precision: FloatArray
    target: FloatArray


@dataclass(frozen=True, eq=False)
class Posterior:
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


def solve_posterior(view: LinearView) -> Posterior:
    """Posterior of the difficulties, averaged over the spread of their prior."""
    values, vectors = np.linalg.eigh(view.precision)
    # The first eigenvector is the constant one, which the data do not determine.
    values, vectors = np.maximum(values[1:], 0.0), vectors[:, 1:]
    score = vectors.T @ view.target
    weights = _spread_weights(values, score)
    shrinkage = 1 / (values[:, None] + 1 / SPREADS**2)
    mean = shrinkage @ weights
    between = np.maximum((shrinkage**2) @ weights - mean**2, 0.0) * score**2
    honest = (1 / (values[:, None] + 1 / np.maximum(SPREADS, HONEST_SPREAD) ** 2)) @ weights
    difficulty = vectors @ (mean * score)
    covariance = (vectors * (honest + between)) @ vectors.T
    return Posterior(
        difficulty - difficulty.mean(), _centre(covariance), float(np.sqrt(weights @ SPREADS**2))
    )


def _spread_weights(values: FloatArray, score: FloatArray) -> FloatArray:
    """Posterior weight of each prior spread: score_k ~ N(0, value_k + value_k^2 spread^2)."""
    seen = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    variance = 1 + values[seen, None] * SPREADS**2
    fit = score[seen, None] ** 2 / values[seen, None] / variance
    log_weight = -0.5 * (np.log(variance) + fit).sum(axis=0)
    log_weight -= PRIOR_ITEMS / 2 * (np.log(SPREADS**2) + PRIOR_SPREAD**2 / SPREADS**2)
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def step_fixed_prior(view: LinearView, spread: float) -> FloatArray:
    """Posterior mean for a known prior spread: one solve instead of an eigenvalue problem."""
    m = len(view.target)
    factor = cho_factor(view.precision + np.eye(m) / spread**2)
    mean = cho_solve(factor, view.target)
    return np.asarray(mean - mean.mean())


def mean_variance(view: LinearView, spread: float) -> float:
    """Mean posterior variance of a difficulty for a known prior spread."""
    values = np.maximum(np.linalg.eigvalsh(view.precision)[1:], 0.0)
    return float(np.mean(1 / (values + 1 / spread**2)))


def _centre(covariance: FloatArray) -> FloatArray:
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))
