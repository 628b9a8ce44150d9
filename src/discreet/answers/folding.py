"""Count persons in folds, wherever they are, and sketch their ids.

In: stores of whole persons with their ids, batch after batch. Out: the
:class:`~discreet.counts.folds.FoldCounts` and the sketch of all of them. Items only ever join at
the end of the list; folds that no longer fit into memory are put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.answers.pack import pack_rows
from discreet.answers.pairs import SLICE_BYTES, count_store
from discreet.answers.steps import StepStore
from discreet.counts import PairCounts, name_weighting
from discreet.counts.folds import (
    FoldCounts,
    Tally,
    afford_folds,
    deal_persons,
    hash_persons,
    join_sketches,
    sketch_persons,
)
from discreet.counts.planes import AnswerStore, SparseRows
from discreet.types import IndexArray, UInt64Array


class FoldSums:
    """What is kept of the persons so far.

    Parameters
    ----------
    tally
        What is to be kept.
    start
        Counts to go on from.
    """

    def __init__(self, tally: Tally, start: PairCounts | None = None) -> None:
        self._tally = tally
        self.sketch: UInt64Array | None = np.zeros(0, np.uint64)
        self.folds: FoldCounts | None = empty_folds(tally, 0) if tally.folds else None
        if start is not None:
            self.sketch, self.folds = start.sketch, start.folds

    def add(self, store: AnswerStore, ids: Any, before: int) -> None:
        """Add some persons: ``ids`` are theirs, or None where only their numbers are known."""
        hashes = hash_persons(np.arange(before, before + store.n_persons) if ids is None else ids)
        if ids is None or self.sketch is None:
            # A number is no id: tomorrow's first person is another one.
            self.sketch = None
        else:
            self.sketch = join_sketches([self.sketch, sketch_persons(hashes)])
        self._grow(store.nodes.n_items)
        if self.folds is not None:
            self.folds = self.folds + count_folds(store, hashes, self._tally, self.folds.number)

    def _grow(self, items: int) -> None:
        if self.folds is not None and items > (n_items := self.folds.answers.shape[1]):
            old = np.arange(items)
            old[n_items:] = -1
            self.folds = self.folds.select(old)

    def finish(self, items: int) -> dict[str, Any]:
        """Return what was kept, for the counts of so many items."""
        self._grow(items)
        return {"folds": self.folds, "sketch": self.sketch}


def empty_folds(tally: Tally, items: int) -> FoldCounts | None:
    """Return the folds of nobody; None where so many items do not fit into memory."""
    number = afford_folds(tally.folds, items)
    if not number:
        return None
    return FoldCounts(
        asked=tally.folds,
        right_wrong=np.zeros((number, items, items), dtype=np.int64),
        answers=np.zeros((number, items), dtype=np.int64),
        persons=np.zeros(number, dtype=np.int64),
        weighting=name_weighting(tally.weighting),
    )


def count_folds(store: AnswerStore, hashes: UInt64Array, tally: Tally, number: int) -> FoldCounts:
    """Count the pairs of every fold, of which there are ``number``."""
    m = store.nodes.n_items
    right_wrong = np.zeros((number, m, m), dtype=np.int64)
    answers, persons = np.zeros((number, m), dtype=np.int64), np.zeros(number, dtype=np.int64)
    for fold, part in split_folds(store, deal_persons(hashes, tally.folds) % number):
        right_wrong[fold] += count_store(part, tally.weighting)
        answers[fold] += part.nodes.item_totals()[0]
        persons[fold] += part.n_persons
    return FoldCounts(tally.folds, right_wrong, answers, persons, name_weighting(tally.weighting))


def split_folds(store: AnswerStore, fold: IndexArray) -> Iterator[tuple[int, AnswerStore]]:
    """Yield the persons of every fold; dense answers in slices, so that memory stays small."""
    if isinstance(store, StepStore):
        parts = split_folds(store.nodes, fold)
        yield from ((number, StepStore(part.nodes, store.steps)) for number, part in parts)
        return
    step = store.n_persons
    if not isinstance(store, SparseRows):
        step = max(1, SLICE_BYTES // max(store.n_items, 1))
    for start in range(0, store.n_persons, max(step, 1)):
        some = fold[start : start + step]
        cells = None if isinstance(store, SparseRows) else store.rows(start, start + step)
        for number in np.unique(some).tolist():
            chosen = np.flatnonzero(some == number)
            yield number, store.take(chosen) if cells is None else pack_rows(cells[chosen])
