"""Nodes: the steps of items, item after item, step after step; and wins among compared objects.

In: how many steps each item has. Out: which nodes belong to which item, and their names. Pairs of
answers compare nodes of different items; a node of an item with one step is the item itself. An
item's location is the mean of its nodes' thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import BadResponses, BadUsage
from discreet.tabular import brief_repr
from discreet.types import FloatArray, IndexArray, Int64Array


def item_of_nodes(steps: Sequence[int]) -> IndexArray:
    """Return the item of every node."""
    return np.repeat(np.arange(len(steps)), steps)


def nodes_of(columns: Int64Array, steps: Sequence[int]) -> tuple[Int64Array, tuple[int, ...]]:
    """Return the nodes of these items, and their steps; -1 is an item of one step, and a node."""
    first = np.concatenate([[0], np.cumsum(steps)])
    spans = [np.arange(first[i], first[i + 1]) if i >= 0 else np.array([-1]) for i in columns]
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *spans]), tuple(len(span) for span in spans)


def name_nodes(items: Sequence[str], steps: Sequence[int]) -> tuple[str, ...]:
    """Return a name for every node, for messages.

    Examples
    --------
    >>> name_nodes(["a", "b"], [1, 2])
    ('a', 'b step 1', 'b step 2')
    """
    return tuple(
        item if n_steps == 1 else f"{item} step {step}"
        for item, n_steps in zip(items, steps, strict=True)
        for step in range(1, n_steps + 1)
    )


def clear_within(right_wrong: Any, steps: Sequence[int]) -> Any:
    """Return counts of pairs of nodes without those of one item, which depend on the ability.

    An array is changed in place: with many steps a second one would fill the memory.
    """
    if all(step == 1 for step in steps):
        return right_wrong
    item = item_of_nodes(steps)
    if isinstance(right_wrong, np.ndarray):
        for end, step in zip(np.cumsum(steps).tolist(), steps, strict=True):
            right_wrong[end - step : end, end - step : end] = 0
        return right_wrong
    entries = right_wrong.tocoo()
    entries.data[item[entries.row] == item[entries.col]] = 0
    cleared = entries.tocsr()
    cleared.eliminate_zeros()
    return cleared


def check_same_steps(items: Sequence[str], ours: Sequence[int], theirs: Sequence[int]) -> None:
    """Refuse to add counts of items that have other categories here than there."""
    pairs = zip(items, ours, theirs, strict=True)
    differ = [(item, first, second) for item, first, second in pairs if first != second]
    if differ:
        item, first, second = differ[0]
        raise BadResponses(
            f"item '{item}' has the categories 0 to {first} in some of these counts and 0 to "
            f"{second} in others ({len(differ)} of {len(items)} items are like this), so that "
            "their pairs are about different steps. Count all of them with the same highest "
            "categories: steps= (--steps)"
        )


@dataclass(frozen=True)
class Recoding:
    """Categories that somebody used, per item; those above an unused one move down.

    Attributes
    ----------
    steps
        Per item, its highest category before.
    kept
        Per item, the categories that stay, at least two, ascending.
    """

    steps: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]

    @property
    def changes(self) -> bool:
        """Whether any category is left out."""
        return any(len(used) <= top for used, top in zip(self.kept, self.steps, strict=True))

    @property
    def new_steps(self) -> tuple[int, ...]:
        """Per item, its highest category afterwards."""
        return tuple(len(used) - 1 for used in self.kept)

    @property
    def right(self) -> IndexArray:
        """The old node that is right where a new one is: both stand for the same category."""
        first = np.cumsum(self.steps) - self.steps
        return np.array([first[i] + k - 1 for i, used in enumerate(self.kept) for k in used[1:]])

    @property
    def wrong(self) -> IndexArray:
        """The old node that is wrong where a new one is."""
        first = np.cumsum(self.steps) - self.steps
        return np.array([first[i] + k for i, used in enumerate(self.kept) for k in used[:-1]])

    def codes(self) -> Int64Array:
        """Return ``[item, old category]``: the new category; -1 where it was left out."""
        table = np.full((len(self.steps), max(self.steps) + 1), -1, dtype=np.int64)
        for item, used in enumerate(self.kept):
            table[item, list(used)] = np.arange(len(used))
        return table


def keep_used(categories: Int64Array, steps: Sequence[int]) -> Recoding:
    """Keep the categories that somebody used; where there is one, a neighbour of it too.

    Parameters
    ----------
    categories
        ``[item, category]``: persons in each.
    steps
        Per item, its highest category.
    """
    kept_categories = []
    for totals, n_steps in zip(categories.tolist(), steps, strict=True):
        used = [category for category in range(n_steps + 1) if totals[category]]
        if len(used) < 2:
            lower = max((used or [0])[0] - 1, 0)
            used = [lower, lower + 1]
        kept_categories.append(tuple(used))
    return Recoding(tuple(steps), tuple(kept_categories))


@dataclass(frozen=True, eq=False)
class Locations:
    """The linear map from thresholds of nodes to locations of items.

    A location is the mean of an item's thresholds; the locations of all items have mean zero.

    Attributes
    ----------
    item
        The item of every node that has a number, in ascending order.
    steps
        Per item, how many steps it has.
    centred
        Whether the mean of the locations is zero; anchors keep their own.

    Examples
    --------
    >>> Locations(np.array([0, 1, 1]), (1, 2)).find(np.array([1.0, 2.0, 4.0])).tolist()
    [-1.0, 1.0]
    """

    item: IndexArray
    steps: tuple[int, ...]
    centred: bool = True

    @cached_property
    def whole(self) -> IndexArray:
        """The items all of whose steps have a number: the others have no location."""
        n_known = np.bincount(self.item, minlength=len(self.steps))
        return np.flatnonzero(n_known == np.array(self.steps))

    def average(self, values: FloatArray) -> FloatArray:
        """Return the mean over the steps of every whole item; nodes are the first axis."""
        present, first = np.unique(self.item, return_index=True)
        sums = np.add.reduceat(values, first, axis=0)[np.isin(present, self.whole)]
        steps = np.array(self.steps, dtype=np.float64)[self.whole]
        return np.asarray(sums / steps.reshape(-1, *[1] * (values.ndim - 1)))

    def centre(self, values: FloatArray) -> FloatArray:
        """Return values of nodes with the mean location at zero."""
        if not self.centred:
            return values
        return np.asarray(values - self.average(values).mean(axis=0))

    def find(self, values: FloatArray) -> FloatArray:
        """Return the locations of the whole items, with mean zero."""
        means = self.average(values)
        return np.asarray(means - means.mean(axis=0)) if self.centred else means

    def as_columns(self) -> FloatArray:
        """Return the map itself, ``[node, whole item]``: every location as a sum over nodes."""
        share = np.equal(self.item[:, None], self.whole) / np.array(self.steps)[self.whole]
        share -= share.mean(axis=1, keepdims=True)
        return np.asarray(share)


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """How often one object was preferred to another: all that both estimators need to know.

    An object that is hard to beat is like an item that is hard to answer: where i loses to j, i is
    the item that is right and j the one that is wrong. So ``right_wrong[i, j]`` is "i lost to j",
    and the difficulty that the estimators find is the strength. A type of its own, and not
    :class:`discreet.PairCounts`: there the pairs of one person belong together through the
    person's ability, and standard errors are made for that.

    Attributes
    ----------
    items
        Names of the objects, in the order of rows and columns.
    wins
        ``wins[i, j]``: comparisons (or the sum of their judges' integer weights) in which i beat
        j. The diagonal is zero.
    compared, won
        Per object, in how many comparisons it was and how many it won; never weighted.
    judges
        How many judges were counted.
    """

    items: tuple[str, ...]
    wins: Int64Array
    compared: Int64Array
    won: Int64Array
    judges: int

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.wins.shape != (m, m) or self.compared.shape != (m,) or self.won.shape != (m,):
            raise BadUsage(
                f"wins among {m} objects must be a {m} x {m} matrix, found {self.wins.shape}"
            )
        for array in (self.wins, self.compared, self.won):
            array.setflags(write=False)

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        if self.items != other.items:
            raise BadResponses(
                "these counts are about different objects, or the same in another order; bring "
                "both to one list with Comparisons.select before counting"
            )
        return ComparisonCounts(
            self.items,
            self.wins + other.wins,
            self.compared + other.compared,
            self.won + other.won,
            self.judges + other.judges,
        )

    # The names under which the chain, the estimators and the mechanisms look for the same.

    @property
    def right_wrong(self) -> Int64Array:
        """Losses: ``right_wrong[i, j]`` is how often i lost to j."""
        return self.wins.T

    @property
    def answers(self) -> Int64Array:
        """How often each object was compared."""
        return self.compared

    @property
    def right(self) -> Int64Array:
        """How often each object lost."""
        return self.compared - self.won

    @property
    def persons(self) -> int:
        """How many judges."""
        return self.judges
