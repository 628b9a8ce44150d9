"""Who gets which items, and how they answer them: one function for each design.

In: the abilities of a few persons, all items, how many of them each person gets. Out: their
answers, sorted by person and then item. An item with several steps stands where its location is.
To add a design: a function here and a line in ``DESIGNS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.simulation.items import Items
from discreet.types import FloatArray, Int8Array

IntArray: TypeAlias = npt.NDArray[np.int64]

TARGET_WIDTH = 0.75
"""Logits; how far from the person's ability a targeted item typically lies."""

GRID = np.linspace(-5.0, 5.0, 41)
"""Abilities for the running posterior mean of an adaptive test; steps of a quarter logit are
far below its standard error after 20 items (about half a logit)."""

EXPOSURE = 5
"""An adaptive test draws among this many best items, the usual guard against giving everyone
the same test."""


@dataclass(frozen=True, eq=False)
class SimulatedAnswers:
    """Answers of a few persons: sorted by person, then item."""

    per_person: IntArray
    item: IntArray
    score: Int8Array


def _uniform(
    ability: FloatArray, items: Items, each: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """Every cell on its own, with the same probability."""
    n, m = len(ability), len(items)
    cell = _scattered(n * m, each / m, rng)
    person, item = np.divmod(cell, m)
    score = items.answer(ability[person], item, rng)
    return SimulatedAnswers(np.bincount(person, minlength=n), item, score)


def _scattered(cells: int, probability: float, rng: np.random.Generator) -> IntArray:
    """Draw the indices of independent successes, at a cost of the successes only."""
    if probability >= 1:
        return np.arange(cells)
    indices, last = [np.zeros(0, dtype=np.int64)], -1
    while last < cells:
        # Gaps between successes are geometric. Asking for five standard deviations more than
        # expected makes a second round rare; the loop makes it harmless.
        expected = (cells - last) * probability
        gaps = rng.geometric(probability, int(expected + 5 * np.sqrt(expected) + 5))
        # A gap beyond the last cell is as good as any; sums of larger ones would overflow.
        indices.append(last + np.cumsum(np.minimum(gaps, cells + 1)))
        last = int(indices[-1][-1])
    index = np.concatenate(indices)
    return index[index < cells]


def _booklets(
    ability: FloatArray, items: Items, each: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """Two neighbouring blocks of items each, so that a block links two booklets."""
    n, m, k = len(ability), len(items), int(each)
    block = max(k // 2, 1)
    first = block * rng.integers(-(-m // block), size=n)
    return _answer((first[:, None] + np.arange(k)) % m, ability, items, rng)


def _targeted(
    ability: FloatArray, items: Items, each: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """Items near the person's ability: known beforehand, say from last year's grade."""
    k = int(each)
    # The k largest of log weight + Gumbel noise are a draw without replacement in proportion
    # to the weights (here a normal curve around the ability).
    distance = (items.location - ability[:, None]) / TARGET_WIDTH
    key = rng.gumbel(size=distance.shape) - 0.5 * distance**2
    return _answer(_largest(key, k), ability, items, rng)


def _adaptive(
    ability: FloatArray, items: Items, each: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """Each next item near the posterior mean of the answers so far."""
    n, m, k = len(ability), len(items), int(each)
    log_chance = items.log_chances(GRID)
    posterior = np.tile(-0.5 * GRID**2, (n, 1))
    person = np.arange(n)
    taken = np.zeros((n, m), dtype=bool)
    score = np.zeros((n, m), dtype=np.int8)
    for step in range(k):
        weight = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        guess = weight @ GRID / weight.sum(axis=1)
        nearness = np.where(taken, -np.inf, -np.abs(items.location - guess[:, None]))
        best = _largest(nearness, min(EXPOSURE, m - step))
        item = best[person, rng.integers(best.shape[1], size=n)]
        answer = items.answer(ability, item, rng)
        posterior += log_chance[item, answer]
        taken[person, item] = True
        score[person, item] = answer
    return SimulatedAnswers(np.full(n, k), np.nonzero(taken)[1], score[taken])


def _two_stage(
    ability: FloatArray, items: Items, each: float, rng: np.random.Generator
) -> SimulatedAnswers:
    """Half the test for everyone, then an easy or a hard half by the score on the first."""
    n, m, k = len(ability), len(items), int(each)
    order = np.argsort(items.location)
    first = order[np.linspace(0, m - 1, k // 2).round().astype(np.int64)]
    others = order[~np.isin(order, first)]
    second = k - len(first)
    pool = max(second, (len(others) + 1) // 2)
    routing = _answer_each(np.tile(first, (n, 1)), ability, items, rng)
    hard = 2 * routing.sum(axis=1) >= items.steps[first].sum()
    pick = _largest(rng.random((n, pool)), second)
    later = np.where(hard[:, None], others[len(others) - pool :][pick], others[:pool][pick])
    stage = _answer_each(later, ability, items, rng)
    item = np.concatenate([np.tile(first, (n, 1)), later], axis=1)
    return _sorted(item, np.concatenate([routing, stage], axis=1))


Design: TypeAlias = Callable[[FloatArray, Items, float, np.random.Generator], SimulatedAnswers]

DESIGNS: dict[str, Design] = {
    "uniform": _uniform,
    "booklets": _booklets,
    "targeted": _targeted,
    "adaptive": _adaptive,
    "two-stage": _two_stage,
}
"""Who gets which items, by name. To add one: a function above and a line here."""


def _largest(key: FloatArray, k: int) -> IntArray:
    """Columns of the k largest keys in each row, in no particular order."""
    m = key.shape[1]
    if k == m:
        return np.tile(np.arange(m), (len(key), 1))
    return np.argpartition(key, m - k, axis=1)[:, m - k :]


def _answer(
    item: IntArray, ability: FloatArray, items: Items, rng: np.random.Generator
) -> SimulatedAnswers:
    """Let each person answer a row of items."""
    return _sorted(item, _answer_each(item, ability, items, rng))


def _answer_each(
    item: IntArray, ability: FloatArray, items: Items, rng: np.random.Generator
) -> Int8Array:
    return items.answer(np.broadcast_to(ability[:, None], item.shape), item, rng)


def _sorted(item: IntArray, score: Int8Array) -> SimulatedAnswers:
    """Put the items of each row in increasing order, as the stores hold them."""
    order = np.argsort(item, axis=1)
    return SimulatedAnswers(
        np.full(len(item), item.shape[1]),
        np.take_along_axis(item, order, axis=1).ravel(),
        np.take_along_axis(score, order, axis=1).ravel(),
    )
