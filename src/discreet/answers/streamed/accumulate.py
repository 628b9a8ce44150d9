"""Add answers of batches up while new items still appear.

In: batches of whole persons. Out: totals of items, and :class:`~discreet.counts.PairCounts`. Items
only ever join at the end of the list, so arrays grow and nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.answers.pairs import Weighting, count_matrix
from discreet.answers.responses import Responses
from discreet.answers.streamed.passes import Passes
from discreet.counts.matrix import add_into, add_matrices, grow_matrix, is_sparse, settle_matrix
from discreet.counts.table import PairCounts, name_weighting
from discreet.types import Int64Array

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class ItemTotals:
    """Items, how often each was answered and answered right, and how many persons there are."""

    items: tuple[str, ...] = ()
    answers: Int64Array = field(default_factory=_NONE.copy)
    right: Int64Array = field(default_factory=_NONE.copy)
    persons: int = 0

    def add(self, items: tuple[str, ...], store: Any) -> None:
        """Add more persons, who may bring new items."""
        answers, right = store.item_totals()
        self.grow(items)
        self.answers, self.right = self.answers + answers, self.right + right
        self.persons += store.n_persons

    def grow(self, items: tuple[str, ...]) -> None:
        """Make room for a list of items that begins with these."""
        more = (0, len(items) - len(self.items))
        self.answers, self.right = np.pad(self.answers, more), np.pad(self.right, more)
        self.items = items

    def select(self, items: tuple[str, ...]) -> ItemTotals:
        """Return the totals of these items; zero for items that nobody answered."""
        place = {name: number for number, name in enumerate(self.items)}
        columns = [place.get(name, len(self.items)) for name in items]
        answers, right = (np.append(values, 0)[columns] for values in (self.answers, self.right))
        return ItemTotals(items, answers, right, self.persons)


def find_totals(passes: Passes) -> ItemTotals:
    """Go through all persons once."""
    return passes.fold(ItemTotals, lambda totals, batch: totals.add(batch.items, batch.store))


class Accumulator:
    """Counts so far."""

    def __init__(self, start: PairCounts | None = None, items: tuple[str, ...] = ()) -> None:
        self.totals = ItemTotals()
        self._pairs = _Pairs(np.zeros((0, 0), dtype=np.int64))
        self._weighting = "none"
        if start is not None:
            self.totals = ItemTotals(start.items, start.answers, start.right, start.persons)
            self._pairs = _Pairs(start.right_wrong.copy())
            self._weighting = start.weighting
        self._grow(items)

    @property
    def persons(self) -> int:
        """Persons so far."""
        return self.totals.persons

    def add(self, items: tuple[str, ...], store: Any, weighting: Weighting | None) -> None:
        """Count one batch."""
        self._grow(items)
        self._pairs.add(count_matrix(store, weighting))
        self.totals.add(items, store)
        self._weighting = name_weighting(weighting)

    def _grow(self, items: tuple[str, ...]) -> None:
        if len(items) > len(self.totals.items):
            self._pairs.grow(len(items))
            self.totals.grow(items)

    def counts(self, items: Sequence[str] = ()) -> PairCounts:
        """Return the counts so far, also for listed items that nobody answered."""
        self._grow(tuple(items))
        total = self._pairs.total()
        return PairCounts(
            items=self.totals.items,
            # Only an array is added to in place.
            right_wrong=total if is_sparse(total) else total.copy(),
            answers=self.totals.answers,
            right=self.totals.right,
            persons=self.totals.persons,
            weighting=self._weighting,
        )


def count_stream(
    batches: Iterable[Responses],
    *,
    items: Sequence[str] | None = None,
    weighting: Weighting | None = None,
) -> PairCounts:
    """Add up the counts of batches of whole persons, each with the items of the one before."""
    sums = Accumulator()
    for batch in batches:
        sums.add(batch.items, batch.store, weighting)
    return sums.counts(items or ())


class _Pairs:
    """A sum of matrices: one array or, with many items, a few sparse ones.

    Adding a small sparse matrix to a large one costs as much as going through the large one.
    So partial sums are kept, each at most half as large as the one before, like the digits of
    a binary number: every pair is then moved a few times in all, and all of them together are
    at most twice as large as the largest.
    """

    def __init__(self, start: Any) -> None:
        self._parts: list[Any] = [start]

    def grow(self, items: int) -> None:
        """Make room for new items."""
        self._parts = [grow_matrix(part, items) for part in self._parts]

    def add(self, matrix: Any) -> None:
        """Add the counts of a batch."""
        if not is_sparse(self._parts[0]):
            add_into(self._parts[0], matrix)
            return
        self._parts.append(matrix)
        while len(self._parts) > 1 and _is_light(self._parts[-2], self._parts[-1]):
            self._carry()

    def total(self) -> Any:
        """Return the sum of everything so far."""
        while len(self._parts) > 1:
            self._carry()
        return self._parts[0]

    def _carry(self) -> None:
        last = self._parts.pop()
        self._parts[-1] = settle_matrix(add_matrices(self._parts[-1], last))
        if not is_sparse(self._parts[-1]):
            # So many pairs by now that everything goes into one array.
            total, *others = reversed(self._parts)
            for part in others:
                add_into(total, part)
            self._parts = [total]


def _is_light(before: Any, after: Any) -> bool:
    return is_sparse(after) is False or before.nnz <= 2 * after.nnz
