"""The loop of the fit: denoise the disagreements, move the difficulties, repeat.

In: an observation (released values that know their own noise). Out: a posterior and the
disagreements it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from discreet.models.noisy import (
    HONEST_SPREAD,
    PRIOR_SPREAD,
    DifficultyPosterior,
    LinearView,
    mean_variance,
    posterior_spread,
    solve_posterior,
    step_fixed_prior,
)
from discreet.models.noisy.disagreements import Disagreements, PairLayout, denoise_disagreements
from discreet.types import FloatArray

#: From here on four rounds instead of eight: with 500 items no difficulty moved by more than a
#: tenth of its standard error after the fourth, and the error not at all.
MANY_ITEMS = 400

#: Difficulties and posterior mean differ in size by a tenth at most while the loop contracts.
#:
#: Where noise hides the disagreements the loop can feed on itself (one release in 50 with 200
#: items, 200 persons and epsilon .1); then the posterior mean, which counts sampling in full,
#: stands.
RUNAWAY = 1.3

#: The loop rests when no difficulty moves by more than 2% of its standard error, or .001.
SETTLED, SMALLEST_CHANGE = 0.02, 1e-3

#: No difficulty moves by more than this in one step: tanh is linear about that far.
LONGEST_STEP = 1.0


@dataclass(frozen=True)
class Around:
    """How to linearise.

    Attributes
    ----------
    sampling
        Share of the sampling variance in the weights, 0 or 1. The estimate leaves it out, so
        that without noise it is the non-private estimate; the spread keeps it in.
    variance
        Mean variance that the noise leaves in a difficulty. The slope is averaged over it: far
        from the estimate tanh is flatter than at it.
    """

    sampling: float
    variance: float

    @property
    def stretch(self) -> float:
        """Return the factor by which averaging stretches a logistic curve.

        For a normal difference with variance v it is close to sqrt(1 + pi v / 8).
        """
        return float(np.sqrt(1 + np.pi * 2 * self.variance / 8))


class Observation(Protocol):
    """Released values that can be linearised and drawn again."""

    @property
    def disagreement(self) -> FloatArray:
        """Noisy disagreements."""
        ...

    @property
    def layout(self) -> PairLayout:
        """What is public about the pairs."""
        ...

    def view(
        self, difficulty: FloatArray, disagreements: Disagreements, around: Around
    ) -> LinearView:
        """Return the normal equations around the given difficulties."""
        ...

    def redraw(self, difficulty: FloatArray, mean: FloatArray, rng: np.random.Generator) -> Self:
        """Draw what would be released if these were the truth; ``mean``: disagreements."""
        ...


@dataclass(frozen=True, eq=False)
class Settled:
    """Where the loop came to rest."""

    difficulty: FloatArray
    disagreements: Disagreements
    variance: float
    rounds: int


@dataclass(frozen=True, eq=False)
class PosteriorState:
    """The posterior at the difficulties where the loop came to rest."""

    posterior: DifficultyPosterior
    disagreements: Disagreements
    variance: float
    rounds: int


def settle_fit(
    observation: Observation,
    start: FloatArray,
    *,
    rounds: int = 8,
    steps: int = 3,
    ability_guess: tuple[float, float] | None = None,
    start_variance: float | None = None,
) -> Settled:
    """Alternate between disagreements and difficulties until they settle.

    The map has no guarantee to contract at tiny epsilon, where the answer is near zero anyway;
    so the number of rounds is bounded and the last round stands.
    """
    difficulty, variance = start, PRIOR_SPREAD**2 if start_variance is None else start_variance
    done = 0
    while True:
        done += 1
        disagreements = denoise_disagreements(
            observation.disagreement, difficulty, observation.layout, ability_guess
        )
        ability_guess = (disagreements.ability_mean, disagreements.ability_spread)
        around = Around(1.0, variance)
        spread = posterior_spread(observation.view(difficulty, disagreements, around))
        moved, around = difficulty, Around(0.0, variance)
        for _ in range(steps):
            view = observation.view(moved, disagreements, around)
            new = step_fixed_prior(view, spread)
            step = new - moved
            longest = float(np.abs(step).max())
            moved = moved + step * min(1.0, LONGEST_STEP / max(longest, 1e-300))
        # Bounded, because a wider curve asks for a wider spread, which asks for a wider curve.
        variance = min(mean_variance(view, spread), PRIOR_SPREAD**2)
        change = float(np.abs(moved - difficulty).max())
        difficulty = moved
        if done >= rounds or change < max(SMALLEST_CHANGE, SETTLED * np.sqrt(variance)):
            return Settled(difficulty, disagreements, variance, done)


def iterate_fit(observation: Observation, start: FloatArray) -> PosteriorState:
    """Settle, and take the posterior there."""
    settled = settle_fit(observation, start, rounds=8 if len(start) < MANY_ITEMS else 4)
    around = Around(1.0, settled.variance)
    final = solve_posterior(observation.view(settled.difficulty, settled.disagreements, around))
    ran_away = _size(settled.difficulty) > RUNAWAY * _size(final.mean)
    mean = final.mean if ran_away else settled.difficulty
    posterior = DifficultyPosterior(mean, final.covariance, final.spread)
    return PosteriorState(posterior, settled.disagreements, settled.variance, settled.rounds)


def _size(difficulty: FloatArray) -> float:
    return float(np.sqrt(np.mean(difficulty**2)))


# How far the fit really scatters: a small bootstrap from released values only.
#
# In: an observation and its fit. Out: the factor by which each variance has to be multiplied.
#
# The covariance of the last linear step ignores that the disagreements were chosen with the same
# noise. So: draw difficulties from the posterior (which keeps the shrinkage honest: truths that
# were drawn are wider than the estimate), draw what would be released, fit again, and compare the
# errors with the covariance. Errors are pooled over items as a smooth function of the difficulty,
# so a few draws are enough.

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
