"""The fit of any observation, and how far it really scatters: a small bootstrap of released values.

In: an observation. Out: a `NoiseFit`, whose covariance is multiplied by a factor per variance.

The covariance of the last linear step ignores that the disagreements were chosen with the same
noise. So: draw difficulties from the posterior (which keeps the shrinkage honest: truths that
were drawn are wider than the estimate), draw what would be released, fit again, and compare the
errors with the covariance. Errors are pooled over items as a smooth function of the difficulty,
so a few draws are enough.
"""

from __future__ import annotations

import numpy as np

from discreet.errors import BadUsage
from discreet.models.noisy import HONEST_SPREAD, NoiseFit
from discreet.models.noisy.disagreements import PairLayout
from discreet.models.noisy.iterate import Observation, PosteriorState, iterate_fit, settle_fit
from discreet.types import FloatArray

#: Post-processing is reproducible: this seed is public and has nothing to do with any noise.
PUBLIC_SEED = 20240229


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


#: Squared errors to pool: the ratio is then good to about 8%.
POOLED_ERRORS = 500

FEWEST_DRAWS, MOST_DRAWS = 1, 25
SMALLEST_RATIO, LARGEST_RATIO = 0.5, 9.0


def bootstrap_ratios(
    observation: Observation, state: PosteriorState, rng: np.random.Generator
) -> FloatArray:
    """Ratio of the bootstrap variance to the variance of the last linear step, per item."""
    posterior = state.posterior
    m = len(posterior.mean)
    draws = int(np.clip(np.ceil(POOLED_ERRORS / m), FEWEST_DRAWS, MOST_DRAWS))
    variance = np.maximum(np.diag(posterior.covariance), 1e-300)
    values, vectors = np.linalg.eigh(posterior.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    ability_guess = (state.disagreements.ability_mean, state.disagreements.ability_spread)
    truth, ratio = [], []
    for _ in range(draws):
        difficulty = posterior.mean + root @ rng.standard_normal(m)
        mean = state.disagreements.redraw(difficulty, observation.layout)
        simulated = observation.redraw(difficulty, mean, rng)
        refit = settle_fit(
            simulated,
            posterior.mean,
            rounds=2,
            steps=2,
            ability_guess=ability_guess,
            start_variance=state.variance,
        )
        truth.append(difficulty)
        ratio.append((refit.difficulty - difficulty) ** 2 / variance)
    return smooth_ratio(np.concatenate(truth), np.concatenate(ratio), posterior.mean)


def smooth_ratio(truth: FloatArray, ratio: FloatArray, at: FloatArray) -> FloatArray:
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


def unresolved_variance(state: PosteriorState, layout: PairLayout) -> float:
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


def check_matrix_shape(matrix: FloatArray, m: int) -> None:
    """Refuse a matrix that is not square, or of another number of items."""
    if matrix.shape != (m, m):
        raise BadUsage(
            f"a matrix of {m} x {m} was expected for {m} items, found "
            f"{' x '.join(map(str, matrix.shape))}"
        )
