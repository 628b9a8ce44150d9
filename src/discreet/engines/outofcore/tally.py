"""Add counts of batches up while new items still appear.

In: batches of whole persons. Out: :class:`~discreet.counts.PairCounts`. Items only ever join
at the end of the list, so the matrix grows and nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts, is_sparse, name_weighting
from discreet.counts.matrix import add_into, add_matrices, grow_matrix, settle_matrix
from discreet.engines.memory import Weighting, count_matrix
from discreet.responses.store import BitPlanes, SparseRows

__all__ = ["Tally"]

Int64Array = npt.NDArray[np.int64]


class Tally:
    """Counts so far."""

    def __init__(self, start: PairCounts | None = None) -> None:
        empty = np.zeros(0, dtype=np.int64)
        self._pairs = _Pairs(np.zeros((0, 0), dtype=np.int64))
        if start is not None:
            self._pairs = _Pairs(start.right_wrong.copy())
        self._answers = empty if start is None else start.answers.copy()
        self._right = empty if start is None else start.right.copy()
        self._items: tuple[str, ...] = () if start is None else start.items
        self._weighting = "none" if start is None else start.weighting
        self.persons = 0 if start is None else start.persons

    def add(
        self, items: tuple[str, ...], store: BitPlanes | SparseRows, weighting: Weighting | None
    ) -> None:
        """Count one batch."""
        answers, right = store.item_totals()
        self._grow(items)
        self._pairs.add(count_matrix(store, weighting))
        self._answers += answers
        self._right += right
        self._weighting = name_weighting(weighting)
        self.persons += store.n_persons

    def _grow(self, items: tuple[str, ...]) -> None:
        more = len(items) - len(self._items)
        if more:
            self._pairs.grow(len(items))
            self._answers = np.pad(self._answers, (0, more))
            self._right = np.pad(self._right, (0, more))
        self._items = items

    def counts(self, items: Sequence[str] | None = None) -> PairCounts:
        """Return the counts so far, also for listed items that nobody answered."""
        self._grow(self._items if items is None else tuple(items))
        total = self._pairs.total()
        return PairCounts(
            items=self._items,
            # Only an array is added to in place.
            right_wrong=total if is_sparse(total) else total.copy(),
            answers=self._answers.copy(),
            right=self._right.copy(),
            persons=self.persons,
            weighting=self._weighting,
        )


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
