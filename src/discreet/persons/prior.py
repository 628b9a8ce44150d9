"""Posterior mean abilities: a normal distribution of abilities, given or estimated.

In: grouped answers and difficulties. Out: mean and standard deviation of each posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.estimators.patterns import Patterns

__all__ = ["NormalPrior", "estimate_prior", "posterior_moments"]

FloatArray = npt.NDArray[np.float64]

GRID = np.linspace(-6.5, 6.5, 131)
"""In standard deviations of the prior; posteriors down to a tenth of its width are resolved."""
ROUNDS = 1000
TOL = 1e-7
SMALLEST_SD = 1e-3


@dataclass(frozen=True)
class NormalPrior:
    """Abilities before any answer: normal with this mean and standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and np.isfinite(self.sd) and self.sd > 0):
            raise BadUsage(
                f"a prior needs a finite mean and a positive SD, found {self.mean} and {self.sd}"
            )


def posterior_moments(
    patterns: Patterns, b: FloatArray, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and standard deviation of each entry of the patterns."""
    nodes = prior.mean + prior.sd * GRID
    away = nodes - b[:, None]
    softplus = np.concatenate(
        [np.zeros((1, len(GRID))), np.cumsum(np.logaddexp(0, away)[patterns.item], axis=0)]
    )
    load = softplus[patterns.indptr[1:]] - softplus[patterns.indptr[:-1]]
    log_post = patterns.score[:, None] * nodes - load[patterns.pattern] - GRID**2 / 2
    post = np.exp(log_post - log_post.max(axis=1, keepdims=True))
    post /= post.sum(axis=1, keepdims=True)
    mean = post @ nodes
    spread = (post * (nodes - mean[:, None]) ** 2).sum(axis=1)
    return mean, np.sqrt(spread)


def estimate_prior(patterns: Patterns, b: FloatArray) -> NormalPrior:
    """Maximum likelihood mean and standard deviation, by EM with the difficulties fixed."""
    answered = patterns.lengths[patterns.pattern] > 0
    persons = patterns.persons * answered
    prior = NormalPrior(0.0, 1.0)
    for _ in range(ROUNDS):
        mean, sd = posterior_moments(patterns, b, prior)
        centre = float(persons @ mean / persons.sum())
        width = float(persons @ (sd**2 + (mean - centre) ** 2) / persons.sum())
        new = NormalPrior(centre, max(float(np.sqrt(width)), SMALLEST_SD))
        change = max(abs(new.mean - prior.mean), abs(new.sd - prior.sd))
        prior = new
        if change < TOL:
            break
    return prior
