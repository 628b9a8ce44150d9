"""How far the fit really scatters: a small bootstrap from released values only.

In: an observation and its fit. Out: the factor by which each variance has to be multiplied.

The covariance of the last linear step ignores that the disagreements were chosen with the same
noise. So: draw difficulties from the posterior (which keeps the shrinkage honest: truths that
were drawn are wider than the estimate), draw what would be released, fit again, and compare the
errors with the covariance. Errors are pooled over items as a smooth function of the difficulty,
so a few draws are enough.
"""

from __future__ import annotations

import numpy as np

from discreet.estimators.noisefit.disagreements import Layout
from discreet.estimators.noisefit.iterate import Observation, State, settle_fit
from discreet.estimators.noisefit.result import FloatArray
from discreet.estimators.noisefit.solve import HONEST_SPREAD

__all__ = ["bootstrap_ratios", "temper_ratios", "unresolved_variance"]

POOLED_ERRORS = 500
"""Squared errors to pool: the ratio is then good to about 8%."""

FEWEST_DRAWS, MOST_DRAWS = 1, 25
SMALLEST_RATIO, LARGEST_RATIO = 0.5, 9.0


def bootstrap_ratios(
    observation: Observation, state: State, rng: np.random.Generator
) -> FloatArray:
    """Ratio of the bootstrap variance to the variance of the last linear step, per item."""
    posterior = state.posterior
    m = len(posterior.mean)
    draws = int(np.clip(np.ceil(POOLED_ERRORS / m), FEWEST_DRAWS, MOST_DRAWS))
    variance = np.maximum(np.diag(posterior.covariance), 1e-300)
    values, vectors = np.linalg.eigh(posterior.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    near = (state.disagreements.ability_mean, state.disagreements.ability_spread)
    truth, ratio = [], []
    for _ in range(draws):
        difficulty = posterior.mean + root @ rng.standard_normal(m)
        mean = state.disagreements.redraw(difficulty, observation.layout)
        drawn = observation.redraw(difficulty, mean, rng)
        again = settle_fit(
            drawn, posterior.mean, rounds=2, steps=2, near=near, start_variance=state.variance
        )
        truth.append(difficulty)
        ratio.append((again.difficulty - difficulty) ** 2 / variance)
    return _smooth_ratio(np.concatenate(truth), np.concatenate(ratio), posterior.mean)


def _smooth_ratio(truth: FloatArray, ratio: FloatArray, at: FloatArray) -> FloatArray:
    """Mean ratio as a constant plus a slope in the squared difficulty."""
    overall = float(np.clip(ratio.mean(), SMALLEST_RATIO, LARGEST_RATIO))
    square = truth**2
    centred = square - square.mean()
    slope = float((centred * ratio).sum() / max((centred**2).sum(), 1e-300))
    fitted = overall + slope * (at**2 - (at**2).mean())
    return np.asarray(np.clip(fitted, 0.6 * overall, 2.0 * overall))


def temper_ratios(ratio: FloatArray, reliability: float) -> FloatArray:
    """Go at most a third of the way (in logarithms) where the bootstrap promises less.

    The bootstrap world obeys the model of the disagreements exactly, the real one does not; and
    where the prior decides, the drawn truths come from that very prior.
    """
    return np.asarray(np.where(ratio < 1, ratio ** (reliability / 3), ratio))


def unresolved_variance(state: State, layout: Layout) -> float:
    """Variance for structure in the disagreements that the noise hides.

    Where strong persons get hard items the totals say less about the difficulties than the model
    believes, and the spread of the difficulties looks too small. Unless the disagreements are
    clear enough to show it, the missing spread goes into the intervals. A twelfth of the sum
    of one item's disagreements is about the size of such a pattern's coefficient.
    """
    item_sum = float(state.disagreements.values.sum()) / len(state.posterior.mean)
    clarity = item_sum / (12 * layout.sigma)
    missing = max(0.0, HONEST_SPREAD**2 - state.posterior.spread**2)
    return missing / (1 + clarity**2)
