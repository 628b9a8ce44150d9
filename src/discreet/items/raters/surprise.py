"""How surprising the ratings of a level are: minus the log of their chance given the others.

In: ratings of persons with the cells (item and levels) that they fall into, and the log chance of
every score in every cell at abilities on a grid. Out: of each level the mean surprise of its
ratings given the other ratings of the same persons. Confidential.

The ratings of a rater who marks at random are not foretold by those of others. Abilities are
normal, with a mean for the persons of each rater, so that raters may mark better and worse persons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import fdtrc

from discreet.jit import compiled_loop
from discreet.types import FloatArray, Int32Array, Int64Array

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

#: Standard deviations that nodes of abilities go out to, and logits between them before the law of
#: abilities is known.
FAR, APART = 4.5, 0.3
#: Chance of such different means of abilities below which the levels of a facet have effects.
SURE = 0.01
#: Ratings that leave nothing of an effect; a variance that is none.
NONE, TINY = 1e12, 1e-300


@compiled_loop
def add_surprises(start, places, table, law, posterior, surprise) -> None:
    """Write mean and mean square of each person's ability given all ratings; add surprises.

    Parameters
    ----------
    start
        Where the ratings of each person begin, and the end.
    places
        The cell and the score of every rating, and its levels ``[rating, facet]``, numbered
        through; of no facets nothing is added.
    table
        Log chances, ``[cell, score, node]``.
    law
        The nodes; the mean of each person's normal law of abilities, and its variance.
    posterior
        ``[person, 2]``.
    surprise
        By level.
    """
    cell, score, codes = places
    node, mean, variance = law
    whole, others = np.zeros(len(node)), np.zeros(len(node))
    for p in range(len(start) - 1):
        low, high = start[p], start[p + 1]
        for n in range(len(node)):
            whole[n] = -((node[n] - mean[p]) ** 2) / (2 * variance)
        for o in range(low, high):
            chance = table[cell[o], score[o]]
            for n in range(len(node)):
                whole[n] += chance[n]
        peak, total, first, second = whole.max(), 0.0, 0.0, 0.0
        for n in range(len(node)):
            weight = np.exp(whole[n] - peak)
            total += weight
            first += weight * node[n]
            second += weight * node[n] * node[n]
        posterior[p, 0], posterior[p, 1] = first / total, second / total
        likelihood = peak + np.log(total)
        for t in range(codes.shape[1]):
            for o in range(low, high):
                is_new = True
                for q in range(low, o):
                    is_new = is_new and codes[q, t] != codes[o, t]
                if not is_new:
                    continue
                others[:] = whole
                for q in range(o, high):
                    if codes[q, t] == codes[o, t]:
                        chance = table[cell[q], score[q]]
                        for n in range(len(node)):
                            others[n] -= chance[n]
                peak, total = others.max(), 0.0
                for n in range(len(node)):
                    total += np.exp(others[n] - peak)
                surprise[codes[o, t]] += peak + np.log(total) - likelihood


@dataclass(frozen=True, eq=False)
class AbilityLaw:
    """Normal laws of abilities.

    ``mean`` is of each person: the mean over the ratings of the effects of their levels; ``effect``
    is of each level, and lies about ``centre``.
    """

    mean: FloatArray
    effect: FloatArray
    variance: float
    centre: float


@dataclass(frozen=True, eq=False)
class Surprise:
    """Measures the surprise of all levels.

    ``start``, ``cell`` and ``codes`` are those of :func:`add_surprises`; ``person`` is that of each
    rating, ``counts`` has the ratings of each level, and ``node`` the abilities. ``error`` is the
    smallest one of any person's ability; ``shrinkages`` are those of the effects of each facet.
    """

    start: Int64Array
    person: Int64Array
    cell: Int64Array
    codes: Int32Array
    counts: FloatArray
    node: FloatArray
    error: float
    shrinkages: tuple[float, ...]

    @classmethod
    def of(
        cls,
        start: Int64Array,
        cell: Int64Array,
        codes: Int32Array,
        size: int,
        ability: FloatArray,
        error: float,
    ) -> Surprise:
        """Set up nodes as far out as the abilities, for errors that are not below this one."""
        person = np.repeat(np.arange(len(start) - 1), np.diff(start))
        ends = ability.mean() + np.array([-1, 1]) * FAR * (ability.std() + 0.5)
        counts = np.bincount(codes.ravel(), minlength=size).astype(float)
        node = _space(ends, min(APART, error))
        shrinkages = tuple(find_shrinkage(one, ability[person]) for one in codes.T)
        return cls(start, person, cell, codes, counts, node, error, shrinkages)

    def narrow(self, law: AbilityLaw) -> Surprise:
        """Return the same with nodes for this law: no more than its integrals need."""
        ends = np.array([law.mean.min(), law.mean.max()])
        ends += np.array([-FAR, FAR]) * law.variance**0.5
        apart = (1 / law.variance + 1 / self.error**2) ** -0.5
        return replace(self, node=_space(ends, apart))

    def begin_law(self) -> AbilityLaw:
        """Return the law that a fit starts from."""
        centre = float(self.node.mean())
        persons, levels = np.full(len(self.start) - 1, centre), np.full(len(self.counts), centre)
        return AbilityLaw(persons, levels, 1.0, centre)

    def fit_law(self, score: Any, table: FloatArray, law: AbilityLaw, rounds: int) -> AbilityLaw:
        """Return a likelier law: after many rounds (of the EM algorithm) the likeliest."""
        nobody = np.zeros((len(score), 0), np.int32)
        for _ in range(rounds):
            posterior = self._add(score, table, law, nobody)[1]
            moved = (posterior[:, 0] - law.mean)[self.person]
            effect = law.effect.copy()
            for codes, shrinkage in zip(self.codes.T, self.shrinkages, strict=True):
                counts = np.bincount(codes, minlength=len(effect))
                moves = np.bincount(codes, moved, len(effect)) - shrinkage * (effect - law.centre)
                effect += np.where(counts > 0, moves, 0.0) / (counts + shrinkage)
            centre = law.centre + moved.mean()
            mean = np.bincount(self.person, effect[self.codes].mean(axis=1)) / np.diff(self.start)
            squares = posterior[:, 1] - 2 * mean * posterior[:, 0] + mean**2
            # Nodes cannot tell smaller variances apart.
            least = (self.node[1] - self.node[0]) ** 2
            law = AbilityLaw(mean, effect, float(max(squares.mean(), least)), centre)
        return law

    def measure(self, score: Any, table: FloatArray, law: AbilityLaw) -> FloatArray:
        """Return the surprise of all levels for each of their ratings; NaN without ratings."""
        with np.errstate(invalid="ignore"):
            return self._add(score, table, law, self.codes)[0] / self.counts

    def _add(
        self, score: Any, table: FloatArray, law: AbilityLaw, codes: Int32Array
    ) -> tuple[FloatArray, FloatArray]:
        surprise, posterior = np.zeros(len(self.counts)), np.zeros((len(law.mean), 2))
        places, laws = (self.cell, score, codes), (self.node, law.mean, law.variance)
        add_surprises(self.start, places, table, laws, posterior, surprise)
        return surprise, posterior


def find_shrinkage(code: Int32Array, ability: FloatArray) -> float:
    """Return the ratings that draw the effect of a level to the mean, like so many of its own.

    That is the variance of abilities within levels over that between levels. Where means differ by
    no more than chance, all levels share the mean: effects of noise would make the variance of
    abilities too small.
    """
    number = np.unique(code, return_inverse=True)[1]
    counts = np.bincount(number)
    means = np.bincount(number, ability) / counts
    between = float(counts @ (means - ability.mean()) ** 2) / max(len(counts) - 1, 1)
    free = len(ability) - len(counts)
    within = float(((ability - means[number]) ** 2).sum()) / max(free, 1)
    if free < 1 or not fdtrc(max(len(counts) - 1, 1), free, between / max(within, TINY)) < SURE:
        return NONE
    return within * float(counts.mean()) / (between - within)


def _space(ends: FloatArray, apart: float) -> FloatArray:
    """Return nodes from end to end, so far apart at most."""
    return np.linspace(ends[0], ends[1], int(np.ceil((ends[1] - ends[0]) / apart)) + 1)


def tabulate_chances(threshold: FloatArray, node: FloatArray) -> FloatArray:
    """Return log chances ``[cell, score, node]`` at thresholds ``[cell, step]``, NaN beyond."""
    steps = node - np.where(np.isnan(threshold), np.inf, threshold)[:, :, None]
    logits = np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0), (0, 0)))
    peak = logits.max(axis=1, keepdims=True)
    return np.asarray(logits - peak - np.log(np.exp(logits - peak).sum(axis=1, keepdims=True)))
