"""Who gets which items, and how they answer them: one function for each design.

In: the abilities of a few persons, all items, how many of them each person gets. Out: their
answers, sorted by person and then item. An item with several steps stands where its location is.
To add a design: a function here and a line in ``DESIGNS``.

Items are drawn here too, with known thresholds. One random number is drawn for each answer,
whatever the steps: who draws a low one takes many of them. A right/wrong item is one with one step.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from scipy.special import expit, log_expit

from discreet.choices import MODELS, Model
from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadUsage
from discreet.hints import check_choice_name
from discreet.types import FloatArray, Int8Array, Int64Array

Steps: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None

#: Logits between neighbouring thresholds of a drawn item, on average: with so much, each category
#: is the most likely one somewhere.
APART = 0.8
#: Standard deviation of a drawn partial credit threshold around its place.
UNEVEN = 0.3


@dataclass(frozen=True, eq=False)
class Items:
    """Items with known thresholds.

    Attributes
    ----------
    location
        The mean of each item's thresholds; of one step the difficulty.
    thresholds
        ``[item, step]``, NaN beyond an item's steps.
    """

    location: FloatArray
    thresholds: FloatArray

    def __len__(self) -> int:
        return len(self.location)

    @cached_property
    def steps(self) -> Int64Array:
        """Per item, its highest category."""
        return np.asarray((~np.isnan(self.thresholds)).sum(axis=1))

    @property
    def is_binary(self) -> bool:
        """Whether all items are right/wrong."""
        return bool(self.thresholds.shape[1] == 1)

    def answer(self, ability: FloatArray, item: IntArray, rng: np.random.Generator) -> Int8Array:
        """Draw an answer of each ability to each item, which are of one shape."""
        lot = rng.random(item.shape)
        if self.is_binary:
            return np.asarray(lot < expit(ability - self.location[item]), dtype=np.int8)
        return np.asarray((lot[..., None] < self._reach(ability, item)).sum(axis=-1), np.int8)

    def _reach(self, ability: FloatArray, item: IntArray) -> FloatArray:
        """Return the chance of each step or a higher one, in a further axis."""
        share = np.exp(_log_shares(ability[..., None], self.thresholds[item]))
        return np.asarray(np.cumsum(share[..., :0:-1], axis=-1)[..., ::-1])

    def log_chances(self, abilities: FloatArray) -> FloatArray:
        """Return the log of the chance of every answer, ``[item, category, ability]``."""
        if self.is_binary:
            difference = abilities - self.location[:, None]
            return np.stack([log_expit(-difference), log_expit(difference)], axis=1)
        shares = _log_shares(abilities[:, None], self.thresholds[:, None, :])
        return np.asarray(shares.swapaxes(1, 2))

    def split(self, answers: SimulatedAnswers) -> SimulatedAnswers:
        """Return answers to nodes, 1 where right; a right/wrong item is its own node.

        A node is an item's step (:mod:`discreet.counts.planes`).
        """
        if self.is_binary:
            return answers
        item, score, n_persons = answers.item, answers.score, len(answers.per_person)
        first = np.cumsum(self.steps) - self.steps
        taken = np.stack([score > 0, score < self.steps[item]], axis=1)
        node = (first[item] + score)[:, None] - np.array([1, 0])
        right = np.broadcast_to(np.array([1, 0], dtype=np.int8), taken.shape)
        person = np.repeat(np.arange(n_persons), answers.per_person)
        each = np.bincount(person[np.nonzero(taken)[0]], minlength=n_persons)
        return SimulatedAnswers(each, node[taken], right[taken])


def _log_shares(ability: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return logs of the chances of all categories in the last axis."""
    above = np.cumsum(np.where(np.isnan(thresholds), -np.inf, ability - thresholds), axis=-1)
    odds = np.concatenate([np.zeros((*above.shape[:-1], 1)), above], axis=-1)
    odds -= odds.max(axis=-1, keepdims=True)
    return np.asarray(odds - np.log(np.exp(odds).sum(axis=-1, keepdims=True)))


def place_items(
    location: FloatArray, steps: tuple[int, ...], model: str, rng: np.random.Generator
) -> Items:
    """Draw thresholds around locations: evenly apart, and for partial credit not quite so."""
    thresholds = np.full((len(location), max(steps)), np.nan)
    for item, n_steps in enumerate(steps):
        offsets = APART * (np.arange(n_steps) - (n_steps - 1) / 2)
        if model == "partial-credit" and n_steps > 1:
            uneven = rng.normal(0, UNEVEN, n_steps)
            offsets = offsets + uneven - uneven.mean()
        thresholds[item, :n_steps] = location[item] + offsets
    return Items(location, thresholds)


def accept_steps(steps: Steps, items: int) -> tuple[int, ...]:
    """Return the steps of every item: one number for all, or one for each."""
    if steps is None:
        return (1,) * items
    try:
        each = [steps] * items if isinstance(steps, SupportsIndex) else list(steps)
        item_steps = tuple(operator.index(step) for step in each)
    except TypeError:
        item_steps = (0,)
    if len(item_steps) != items or not all(1 <= step <= MOST_STEPS for step in item_steps):
        raise BadUsage(
            f"steps must be a whole number from 1 to {MOST_STEPS}, or {items} of them (one for "
            f"each item), found {steps!r}; 4 steps make the answers 0, 1, 2, 3 and 4"
        )
    return item_steps


def accept_model(model: Model, steps: tuple[int, ...]) -> str:
    """Return the model that draws thresholds, or explain why it cannot."""
    stepped = max(steps) > 1
    if model == "auto":
        return "partial-credit" if stepped else "rasch"
    check_choice_name("model", model, ("auto", *MODELS))
    if model == "rasch" and stepped:
        raise BadUsage(
            f"the model 'rasch' is of right and wrong answers, but items have up to {max(steps)} "
            "steps; choose partial-credit or rating-scale, or leave steps out"
        )
    if model == "rating-scale" and len(set(steps)) > 1:
        raise BadUsage(
            f"in a rating scale all items have the same steps, found {min(steps)} to {max(steps)}; "
            "give one number of steps, or choose partial-credit"
        )
    return model


def accept_thresholds(thresholds: Any, items: int, steps: Steps) -> Items:
    """Return items with these thresholds, NaN or nothing beyond an item's steps."""
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in thresholds]
    except (TypeError, ValueError) as error:
        raise BadUsage(f"thresholds must hold a row of numbers for each item: {error}") from error
    if len(rows) != items or any(row.ndim != 1 for row in rows):
        raise BadUsage(
            f"thresholds must hold a row of numbers for each of {items} items, found {len(rows)}"
        )
    given_rows = [row[~np.isnan(row)] for row in rows]
    bad = [
        i
        for i, row in enumerate(given_rows)
        if not (1 <= len(row) <= MOST_STEPS and np.isfinite(rows[i][: len(row)]).all())
    ]
    if bad:
        raise BadUsage(
            f"thresholds[{bad[0]}] is {rows[bad[0]].tolist()}; an item has 1 to {MOST_STEPS} "
            "finite thresholds, and blanks (NaN) only after them"
        )
    item_steps = tuple(len(row) for row in given_rows)
    if steps is not None and accept_steps(steps, items) != item_steps:
        raise BadUsage("thresholds have other steps than steps= says; leave steps out")
    matrix = np.full((items, max(item_steps)), np.nan)
    for item, row in enumerate(given_rows):
        matrix[item, : len(row)] = row
    return Items(np.array([row.mean() for row in given_rows]), matrix)


def nodes_per_answer(steps: tuple[int, ...]) -> float:
    """Return how many nodes an answer is an answer to: one at either end, two between."""
    return float(np.mean([2 * step / (step + 1) for step in steps]))


IntArray: TypeAlias = Int64Array

#: Logits; how far from the person's ability a targeted item typically lies.
TARGET_WIDTH = 0.75

#: Abilities for the running posterior mean of an adaptive test; steps of a quarter logit are
#: far below its standard error after 20 items (about half a logit).
GRID = np.linspace(-5.0, 5.0, 41)

#: An adaptive test draws among this many best items, the usual guard against giving everyone
#: the same test.
EXPOSURE = 5


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

#: Who gets which items, by name. To add one: a function above and a line here.
DESIGNS: dict[str, Design] = {
    "uniform": _uniform,
    "booklets": _booklets,
    "targeted": _targeted,
    "adaptive": _adaptive,
    "two-stage": _two_stage,
}


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
