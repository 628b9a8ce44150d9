"""Keep a part of the answers: some items, or at most so many answers of each person.

In: a store. Out: a new store of the same form; nothing is changed in place. The cap draws from
the secure source only, because it is a step of a private release.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.responses.packing import pack_rows
from discreet.responses.store import AnswerStore, BitPlanes, SparseRows
from discreet.secure import RandomSource, random_ranks

__all__ = ["ABSENT", "cap_answers", "flip_answers", "number_items", "select_columns"]

_CELLS = 1 << 22
"""Cells looked at together when planes are capped: a few tens of megabytes of random ranks."""

ABSENT = -1


def select_columns(store: AnswerStore, columns: npt.NDArray[np.int64]) -> AnswerStore:
    """Return the store with these columns in this order; column -1 is one nobody answered."""
    if isinstance(store, BitPlanes):
        return _select_planes(store, columns)
    if isinstance(store, SparseRows):
        return _select_rows(store, columns)
    raise TypeError(f"Unknown answer store {type(store).__name__}.")


def _select_planes(store: BitPlanes, columns: npt.NDArray[np.int64]) -> BitPlanes:
    right, wrong = store.right[:, columns, :], store.wrong[:, columns, :]
    right[:, columns == ABSENT, :] = 0
    wrong[:, columns == ABSENT, :] = 0
    return BitPlanes(right, wrong, store.n_persons)


def _select_rows(store: SparseRows, columns: npt.NDArray[np.int64]) -> SparseRows:
    new_column = np.full(store.n_items, ABSENT, dtype=np.int64)
    present = columns != ABSENT
    new_column[columns[present]] = np.flatnonzero(present)
    item = new_column[store.item]
    kept = np.flatnonzero(item != ABSENT)
    person = _person_of_answers(store)[kept]
    item = item[kept]
    if (np.diff(new_column[new_column != ABSENT]) < 0).any():
        order = np.argsort(person * max(len(columns), 1) + item, kind="stable")
        item, kept = item[order], kept[order]
    indptr = _row_starts(person, store.n_persons)
    return SparseRows(indptr, number_items(item, len(columns)), store.right[kept], len(columns))


def cap_answers(store: AnswerStore, max_answers: int, source: RandomSource) -> AnswerStore:
    """Keep a uniformly random ``max_answers`` of the answers of each person with more."""
    if isinstance(store, BitPlanes):
        return _cap_planes(store, max_answers, source)
    if isinstance(store, SparseRows):
        return _cap_rows(store, max_answers, source)
    raise TypeError(f"Unknown answer store {type(store).__name__}.")


def _cap_rows(store: SparseRows, max_answers: int, source: RandomSource) -> SparseRows:
    keep = np.ones(store.n_answers, dtype=np.bool_)
    starts = store.indptr
    # Whole persons, about _CELLS answers at a time, so that the ranks stay small.
    edges = np.searchsorted(starts, np.arange(0, store.n_answers + _CELLS, _CELLS))
    edges = np.unique(np.minimum(edges, store.n_persons))
    for first, last in itertools.pairwise(edges.tolist()):
        ranks = random_ranks(source, starts[first : last + 1] - starts[first])
        keep[starts[first] : starts[last]] = ranks < max_answers
    indptr = _row_starts(_person_of_answers(store)[keep], store.n_persons)
    return SparseRows(indptr, store.item[keep], store.right[keep], store.n_items)


def _cap_planes(store: BitPlanes, max_answers: int, source: RandomSource) -> BitPlanes:
    right, wrong = np.zeros_like(store.right), np.zeros_like(store.wrong)
    size = store.block_persons
    # Whole words of 64 persons, so that each part fills its own words.
    step = min(size, max(64, _CELLS // max(store.n_items, 1) // 64 * 64))
    for block in range(store.right.shape[0]):
        for first in range(0, size, step):
            start = block * size + first
            cells = store.rows(start, min(start + step, block * size + size))
            if len(cells):
                part = pack_rows(_cap_cells(cells, max_answers, source))
                words = slice(first // 64, first // 64 + part.right.shape[2])
                right[block, :, words] = part.right[0]
                wrong[block, :, words] = part.wrong[0]
    return BitPlanes(right, wrong, store.n_persons)


def _cap_cells(
    cells: npt.NDArray[np.int8], max_answers: int, source: RandomSource
) -> npt.NDArray[np.int8]:
    person, item = np.nonzero(cells >= 0)
    ranks = random_ranks(source, _row_starts(person, len(cells)))
    dropped = ranks >= max_answers
    cells[person[dropped], item[dropped]] = -1
    return cells


def flip_answers(store: BitPlanes | SparseRows) -> BitPlanes | SparseRows:
    """Exchange right and wrong."""
    if isinstance(store, BitPlanes):
        return BitPlanes(store.wrong, store.right, store.n_persons)
    return SparseRows(store.indptr, store.item, ~store.right, store.n_items)


def number_items(
    item: npt.NDArray[Any], n_items: int
) -> npt.NDArray[np.uint16] | npt.NDArray[np.int32]:
    """Return column numbers in the narrowest type that :class:`SparseRows` has for them."""
    return item.astype(np.uint16) if n_items <= 1 << 16 else item.astype(np.int32)


def _person_of_answers(store: SparseRows) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(store.n_persons), np.diff(store.indptr))


def _row_starts(person: npt.NDArray[np.int64], n_persons: int) -> npt.NDArray[np.int64]:
    starts = np.zeros(n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=n_persons), out=starts[1:])
    return starts
