"""The loop of the fit: denoise the disagreements, move the difficulties, repeat.

In: an observation (released values that know their own noise). Out: a posterior and the
disagreements it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from discreet.models.noisy import (
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
