"""Add counts of batches up while new items still appear.

In: batches of whole persons. Out: :class:`~discreet.counts.PairCounts`. Items only ever join
at the end of the list, so the matrix grows and nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.engines.memory import Weighting, count_store
from discreet.responses.store import BitPlanes, SparseRows

__all__ = ["Tally"]

Int64Array = npt.NDArray[np.int64]


class Tally:
    """Counts so far."""

    def __init__(self, start: PairCounts | None = None) -> None:
        empty = np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._pairs = empty[0] if start is None else start.right_wrong.copy()
        self._answers = empty[1] if start is None else start.answers.copy()
        self._right = empty[1] if start is None else start.right.copy()
        self._items: tuple[str, ...] = () if start is None else start.items
        self.persons = 0 if start is None else start.persons

    def add(
        self, items: tuple[str, ...], store: BitPlanes | SparseRows, weighting: Weighting | None
    ) -> None:
        """Count one batch."""
        answers, right = store.item_totals()
        self._grow(items)
        self._pairs += count_store(store, weighting)
        self._answers += answers
        self._right += right
        self.persons += store.n_persons

    def _grow(self, items: tuple[str, ...]) -> None:
        more = len(items) - len(self._items)
        if more:
            self._pairs = np.pad(self._pairs, ((0, more), (0, more)))
            self._answers = np.pad(self._answers, (0, more))
            self._right = np.pad(self._right, (0, more))
        self._items = items

    def counts(self, items: Sequence[str] | None = None) -> PairCounts:
        """Return the counts so far, also for listed items that nobody answered."""
        self._grow(self._items if items is None else tuple(items))
        return PairCounts(
            items=self._items,
            right_wrong=self._pairs.copy(),
            answers=self._answers.copy(),
            right=self._right.copy(),
            persons=self.persons,
        )
