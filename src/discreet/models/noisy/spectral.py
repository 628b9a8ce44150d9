"""The paper's Algorithm 2 on released counts: floor, Markov chain, stationary vector.

In: noisy counts of ordered pairs, the law of their noise, public parameters. Out: a
`SpectralFit`. Every counted pair got noise, zero or not, so whatever happens here is
post-processing.

The floor ``max(1, .)`` keeps the chain positive. Where it raises many counts it pulls all
difficulties together. Which share it raised is read off the released counts; above `FLOOR_LIMIT`
there are no standard errors. Below, they come from simulated releases: difficulties and persons
drawn from the noise-aware fit, noise added, counts floored, the chain solved again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.errors import FitWarning, WarningKind
from discreet.models.noisy import NoiseFit
from discreet.models.noisy.disagreements import right_wrong_probability
from discreet.models.noisy.fit import PUBLIC_SEED
from discreet.models.noisy.pairs import PairMatrix
from discreet.models.spectral import solve_stationary
from discreet.results.estimate import Solution
from discreet.types import FloatArray

#: Largest share of raised counts with standard errors (docs/paper.md has coverage by share).
FLOOR_LIMIT = 0.02

#: Simulated releases: a standard error is then good to 5%.
DRAWS = 200

#: Simulated persons; the deviations of more are scaled up from those of so many.
MOST_PERSONS = 1_000

#: Rounds of the fixed point that splits an item's counts into factors.
MATCH_ROUNDS = 20

DrawNoise = Callable[[int, np.random.Generator], FloatArray]


SIMULATED = (
    "Standard errors come from simulated releases: difficulties and persons drawn from the "
    "noise-aware fit, noise added, counts floored, the chain solved again."
)


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """Difficulties from the stationary vector of the noisy chain.

    Attributes
    ----------
    difficulty
        One per item, mean zero, harder is larger.
    covariance
        From simulated releases, bias included; ``None`` where none were asked for, or where the
        floor raised more than `FLOOR_LIMIT` of the counts.
    raised, counts
        How many released counts the floor raised, and how many there are.
    solution
        How the stationary vector was found.
    """

    difficulty: FloatArray
    covariance: FloatArray | None
    raised: int
    counts: int
    solution: Solution

    @property
    def se(self) -> FloatArray:
        """Standard error of each difficulty; NaN where there are none."""
        if self.covariance is None:
            return np.full(len(self.difficulty), np.nan)
        return np.sqrt(np.diag(self.covariance))


def has_room(raised: int, counts: int) -> bool:
    """Say whether the floor raised so few counts that standard errors mean something."""
    return raised <= FLOOR_LIMIT * counts


def fit_spectral(pairs: PairMatrix) -> SpectralFit:
    """Read difficulties off the stationary vector of the chain on floored counts.

    The diagonal of the chain and the number that its rows are divided by cancel in the
    stationary vector (step 3 of the paper's Algorithm 1), so the solver takes the counts.

    Examples
    --------
    >>> odds = np.exp([-0.6, 0.2, 0.4])
    >>> counts = 1000 * odds[None] / (odds[None] + odds[:, None])
    >>> fit_spectral(PairMatrix(counts, ~np.eye(3, dtype=bool))).difficulty.round(1)
    array([-0.6,  0.2,  0.4])
    """
    difficulty, solution = solve_stationary(pairs.floored)
    return SpectralFit(difficulty, None, pairs.raised, int(pairs.counted.sum()), solution)


def simulate_covariance(
    pairs: PairMatrix, fit: NoiseFit, *, draw_noise: DrawNoise, persons: int | None, answers: int
) -> FloatArray:
    """Mean square error matrix of the spectral estimate over simulated releases.

    Parameters
    ----------
    pairs
        The released counts; only which pairs were counted is used.
    fit
        The noise-aware fit of the same counts, with its covariance: what may be the truth.
    draw_noise
        Draws so many noises of the release's law.
    persons
        How many persons, where that is public.
    answers
        The cap on answers per person, which is what they give where their number is not public.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    counted = pairs.counted
    crowd = FittedCrowd.of(fit, counted, persons=persons, answers=answers)
    errors = np.empty((DRAWS, len(fit.difficulty)))
    for draw in range(DRAWS):
        truth = replace(crowd, difficulty=_draw_difficulty(fit, rng))
        # The counts to expect: the fitted disagreements, moved to these difficulties.
        then, now = crowd.one_way, truth.one_way
        total = np.maximum(then + then.T, 1e-300)
        # Draw how far the counts of ordered pairs are from their mean, from whole persons.
        n_drawn = int(min(truth.persons, MOST_PERSONS))
        ability = truth.ability_mean + truth.ability_spread * rng.standard_normal((n_drawn, 1))
        shape = n_drawn, len(truth.difficulty)
        answered = rng.random(shape) < truth.chance
        correct = rng.random(shape) < 1 / (1 + np.exp(truth.difficulty - ability))
        right = (answered & correct).astype(np.float32)
        wrong = (answered & ~correct).astype(np.float32)
        expected = n_drawn * truth.one_way * truth.chance[:, None] * truth.chance
        deviation = np.sqrt(truth.persons / n_drawn) * (right.T @ wrong - expected)
        counts = crowd.disagreement * now / total + deviation
        noisy = np.zeros_like(counts)
        noisy[counted] = counts[counted].round() + draw_noise(int(counted.sum()), rng)
        errors[draw] = fit_spectral(PairMatrix(noisy, counted)).difficulty - truth.difficulty
    return _steady(errors)


def _draw_difficulty(fit: NoiseFit, rng: np.random.Generator) -> FloatArray:
    """Draw difficulties that the released counts leave possible: wider than the estimate."""
    if fit.covariance is None:
        return fit.difficulty
    values, vectors = np.linalg.eigh(fit.covariance)
    error = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal(len(values))
    return np.asarray(fit.difficulty + error - error.mean())


def _steady(errors: FloatArray) -> FloatArray:
    """Mean products of errors, their correlations pulled towards none where items are many."""
    draws, m = errors.shape
    products = errors.T @ errors / draws
    alone = np.diag(np.diag(products))
    weight = m / (m + draws)
    return np.asarray((1 - weight) * products + weight * alone)


@dataclass(frozen=True, eq=False)
class FittedCrowd:
    """Persons as the noise-aware fit describes them.

    Attributes
    ----------
    difficulty
        Of the items.
    chance
        Of each item to be answered by a person.
    disagreement
        Of pairs of items, as fitted to the released counts.
    ability_mean, ability_spread
        Of normal abilities.
    persons
        How many.
    """

    difficulty: FloatArray
    chance: FloatArray
    disagreement: FloatArray
    ability_mean: float
    ability_spread: float
    persons: float

    @classmethod
    def of(
        cls, fit: NoiseFit, counted: npt.NDArray[np.bool_], *, persons: int | None, answers: int
    ) -> FittedCrowd:
        """Read off the disagreements of counted pairs how often items were answered.

        Two items were answered together by as many persons as their disagreements ask for. With
        independent gaps that is ``persons * chance_i * chance_j``.
        """
        right = right_wrong_probability(fit.difficulty, fit.ability_mean, fit.ability_spread)
        # Factors whose products times the shape are nearest to the values.
        shape = np.where(counted, right + right.T, 0.0)
        rate = np.full(
            len(fit.disagreement), np.sqrt(max(float(fit.disagreement.sum() / shape.sum()), 1e-12))
        )
        for _ in range(MATCH_ROUNDS):
            weighted = shape * rate
            square = np.maximum((weighted**2).sum(axis=1), 1e-300)
            target = np.maximum((fit.disagreement * weighted).sum(axis=1) / square, 1e-9)
            rate = np.sqrt(rate * target)
        if persons is None:
            persons = max(1, round((float(rate.sum()) / answers) ** 2))
        chance = np.clip(rate / np.sqrt(persons), 1e-6, 1.0)
        ability = fit.ability_mean, fit.ability_spread
        return cls(fit.difficulty, chance, fit.disagreement, *ability, float(persons))

    @property
    def one_way(self) -> FloatArray:
        """Probability of ``[i, j]``, i right and j wrong, where a person answers both."""
        return right_wrong_probability(self.difficulty, self.ability_mean, self.ability_spread)


def warn_floored(raised: int, counts: int) -> tuple[FitWarning, ...]:
    """Say that there are no standard errors, where the floor raised too many counts."""
    if has_room(raised, counts):
        return ()
    sentence = (
        f"no standard errors: the spectral estimator raised {raised} of {counts} released counts "
        f"to 1, more than {FLOOR_LIMIT:.0%}, which pulls the difficulties together; the estimator "
        "'noise-aware' has standard errors for the same values"
    )
    return (FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence),)
