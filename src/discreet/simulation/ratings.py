"""Simulated ratings: persons whom several raters score on several items.

In: how many persons, items, raters and ratings, and a random source. Out: ratings and the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.answers.ratings import Ratings
from discreet.errors import BadUsage
from discreet.types import FloatArray

_AT_ONCE = 20_000
"""Persons drawn together, so that many of them do not fill the memory."""
_FEW_RATERS = 1000
"""Up to here the raters of a person are all different."""


@dataclass(frozen=True, eq=False)
class SimulatedRatings:
    """Ratings and what they were drawn from.

    Attributes
    ----------
    ratings
        The facet is called "rater".
    thresholds
        ``[item, step]``, with mean zero.
    severity
        Of the raters, with mean zero.
    """

    ratings: Ratings
    thresholds: FloatArray
    severity: FloatArray


def simulate_ratings(
    persons: int,
    items: int,
    raters: int,
    *,
    rng: np.random.Generator,
    steps: int = 3,
    marks: int = 2,
    answered: int | None = None,
    severity_sd: float = 0.5,
    effect_sd: float = 0.0,
) -> SimulatedRatings:
    """Draw ratings from the facets model with normal abilities.

    Parameters
    ----------
    persons, items, raters
        How many.
    rng
        Source of randomness.
    steps
        Steps of every item: 3 for scores from 0 to 3.
    marks
        Raters of each person, chosen at random; they rate all of the person's items.
    answered
        Items per person, chosen at random; by default all.
    severity_sd
        Standard deviation of the severities.
    effect_sd
        Standard deviation of persons' strengths at single items (a person x item effect).

    Examples
    --------
    >>> study = simulate_ratings(50, 3, 6, rng=np.random.default_rng(0))
    >>> study.ratings
    <Ratings: 300 ratings of 50 persons on 3 items; rater: 6 levels>
    """
    if marks > raters:
        raise BadUsage(f"marks={marks} raters per person need as many raters; found {raters}.")
    spacing = np.sort(rng.normal(0, 1.2, (items, steps)), axis=1)
    location, severity = rng.normal(0, 0.7, items), rng.normal(0, severity_sd, raters)
    spacing += (location - location.mean())[:, None] - spacing.mean(axis=1, keepdims=True)
    severity -= severity.mean()
    parts = []
    for low in range(0, persons, _AT_ONCE):
        n = min(_AT_ONCE, persons - low)
        item = _choose(rng, n, items, answered or items)
        rater = _choose(rng, n, raters, marks)
        level = rng.normal(size=(n, 1)) + effect_sd * rng.normal(size=item.shape)
        logits = (
            level[:, :, None, None] - spacing[item][:, :, None] - severity[rater][:, None, :, None]
        )
        draws = rng.gumbel(size=(*logits.shape[:3], steps + 1))
        draws[..., 1:] += np.cumsum(logits, axis=3)
        person = np.arange(low, low + n)[:, None, None]
        columns = person, item[:, :, None], rater[:, None, :]
        cells = np.broadcast_arrays(*columns, draws.argmax(axis=3))
        parts.append(np.stack([cell.ravel().astype(np.int32) for cell in cells]))
    person, item, rater, score = np.concatenate(parts, axis=1)
    names = {"rater": [f"R{number + 1:0{len(str(raters))}}" for number in range(raters)]}
    facets = {"rater": rater} if raters > 1 else {}
    ratings = Ratings.from_codes(
        person, item, score, facets=facets,
        items=[f"I{number + 1}" for number in range(items)], levels=names,
    )  # fmt: skip
    return SimulatedRatings(ratings, spacing, severity)


def _choose(rng: np.random.Generator, persons: int, size: int, count: int) -> Any:
    """Return ``count`` of ``size`` numbers for each person, different where they are few."""
    if count == size:
        return np.tile(np.arange(size), (persons, 1))
    if size > _FEW_RATERS and count > 1:
        return rng.integers(0, size, (persons, count))
    return np.argpartition(rng.random((persons, size)), count - 1, axis=1)[:, :count]
