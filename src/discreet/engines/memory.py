"""Count pairs in memory: the reference that every other engine must equal.

In: a store of answers and, if wanted, an integer weight per person. Out: exact int64 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from discreet.counts import PairCounts
from discreet.responses.store import AnswerStore, Int8Array, Int64Array

if TYPE_CHECKING:
    from discreet.responses import Responses

__all__ = ["Weighting", "count_joint", "count_responses", "count_store"]

Weighting = Callable[[Int64Array, Int64Array], Int64Array]
"""Integer weight per person from (answered, right); picklable."""

SLAB_PERSONS = 16_384


def count_responses(
    source: Responses | str | PathLike[str], weighting: Weighting | None
) -> PairCounts:
    """Count the pairs of answers that are, or can be read, into memory."""
    if isinstance(source, str | PathLike):
        from discreet.responses import read_responses

        return count_responses(read_responses(source), weighting)
    answers, right = source.store.item_totals()
    return PairCounts(
        items=source.items,
        right_wrong=count_store(source.store, weighting),
        answers=answers,
        right=right,
        persons=source.n_persons,
    )


def count_store(store: AnswerStore, weighting: Weighting | None = None) -> Int64Array:
    """Count, for every pair, the persons with item ``i`` right and item ``j`` wrong."""
    total = np.zeros((store.n_items, store.n_items), dtype=np.int64)
    for cells in _slabs(store):
        right = (cells == 1).astype(np.float64)
        wrong = (cells == 0).astype(np.float64)
        if weighting is not None:
            answered = np.count_nonzero(cells >= 0, axis=1).astype(np.int64)
            weights = weighting(answered, np.count_nonzero(cells == 1, axis=1).astype(np.int64))
            right *= weights[:, None]
        total += (right.T @ wrong).astype(np.int64)
    return total


def _slabs(store: AnswerStore) -> Iterator[Int8Array]:
    for start in range(0, store.n_persons, SLAB_PERSONS):
        yield store.rows(start, start + SLAB_PERSONS)


def count_joint(store: AnswerStore) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count pairs that are both right, right and wrong, and both wrong."""
    shape = (store.n_items, store.n_items)
    both_right, right_wrong, both_wrong = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for cells in _slabs(store):
        right = (cells == 1).astype(np.float64)
        wrong = (cells == 0).astype(np.float64)
        both_right += (right.T @ right).astype(np.int64)
        right_wrong += (right.T @ wrong).astype(np.int64)
        both_wrong += (wrong.T @ wrong).astype(np.int64)
    return both_right, right_wrong, both_wrong
