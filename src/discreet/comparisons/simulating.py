"""Comparisons from known strengths, for examples, plans and tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.comparisons.table import Comparisons
from discreet.errors import BadUsage
from discreet.markup import brief_repr

__all__ = ["SimulatedComparisons", "simulate_comparisons"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SimulatedComparisons:
    """Comparisons, and the strengths that made them."""

    comparisons: Comparisons
    strength: FloatArray

    __repr__ = brief_repr


def simulate_comparisons(
    judges: int,
    items: int,
    comparisons: int,
    *,
    strength: npt.ArrayLike | None = None,
    taste: float = 0.0,
    rng: np.random.Generator,
) -> SimulatedComparisons:
    """Let every judge compare so many different random pairs.

    Parameters
    ----------
    judges, items, comparisons
        How many judges, objects, and comparisons of each judge.
    strength
        By default drawn from N(0, 1) and centred.
    taste
        Standard deviation of each judge's own liking of each object, on top of its strength.
        Zero is the Bradley-Terry model.
    rng
        Source of all draws.

    Examples
    --------
    >>> made = simulate_comparisons(3, 4, 2, rng=np.random.default_rng(1))
    >>> made.comparisons
    <Comparisons: 3 judges, 4 objects, 6 comparisons>
    """
    first, second = np.triu_indices(items, 1)
    if not 0 <= comparisons <= len(first):
        raise BadUsage(
            f"a judge can compare 0 to {len(first)} different pairs of {items} objects, found "
            f"{comparisons}"
        )
    truth = rng.standard_normal(items) if strength is None else np.asarray(strength, dtype=float)
    truth = truth - truth.mean()
    pairs = np.concatenate(
        [np.zeros(0, dtype=np.int64)]
        + [rng.choice(len(first), comparisons, replace=False) for _ in range(judges)]
    )
    judge = np.repeat(np.arange(judges), comparisons)
    one, other = first[pairs], second[pairs]
    apart = truth[one] - truth[other]
    if taste:
        liking = taste * rng.standard_normal((judges, items))
        apart = apart + liking[judge, one] - liking[judge, other]
    won = rng.random(len(pairs)) < 1 / (1 + np.exp(-apart))
    data = Comparisons.from_codes(
        judge,
        np.where(won, one, other),
        np.where(won, other, one),
        items=[f"object {number}" for number in range(items)],
        judges=judges,
    )
    return SimulatedComparisons(data, truth)
