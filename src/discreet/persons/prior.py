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
CHUNK_PATTERNS = 10_000
"""Sets of items worked on at a time: about 10 MB for each array."""
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
    softplus = np.logaddexp(0.0, nodes - b[:, None])
    mean, sd = (np.zeros(len(patterns.pattern)) for _ in range(2))
    for start in range(0, len(patterns.indptr) - 1, CHUNK_PATTERNS):
        stop = min(start + CHUNK_PATTERNS, len(patterns.indptr) - 1)
        part = slice(*np.searchsorted(patterns.pattern, [start, stop]))
        load = _sum_rows(patterns, start, stop, softplus)[patterns.pattern[part] - start]
        log_post = patterns.score[part, None] * nodes - load - GRID**2 / 2
        post = np.exp(log_post - log_post.max(axis=1, keepdims=True, initial=-np.inf))
        post /= post.sum(axis=1, keepdims=True)
        mean[part] = post @ nodes
        sd[part] = np.sqrt((post * (nodes - mean[part, None]) ** 2).sum(axis=1))
    return mean, sd


def _sum_rows(patterns: Patterns, start: int, stop: int, table: FloatArray) -> FloatArray:
    """Add up the rows of a table over the items of each pattern."""
    from scipy.sparse import csr_array

    indptr = patterns.indptr[start : stop + 1]
    item = patterns.item[indptr[0] : indptr[-1]]
    shape = (stop - start, patterns.n_items)
    return np.asarray(csr_array((np.ones(len(item)), item, indptr - indptr[0]), shape) @ table)


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
