"""Count pairs on sparse rows into a sparse matrix, for many items of which few are compared.

In: sparse rows, and if wanted an integer weight per person. Out: exact int64 sums as a
scipy.sparse.csr_array with sorted columns and no zeros; its size is the number of compared
pairs. Each row of the matrix is gathered from the wrong answers of the persons who had that item
right (Gustavson's sparse product): they are added up in one array over all items, and a bitmap
says which of its places to collect, already in order.
"""

from __future__ import annotations

from itertools import pairwise
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.responses.compiling import worth_compiling
from discreet.responses.store import Int64Array, SparseRows
from discreet.responses.threads import run_tasks

__all__ = ["count_compressed"]

Cells = tuple[npt.NDArray[np.int32], Int64Array]

BLOCK_PAIRS = 1 << 22
"""Cells that a block of rows may fill: 48 MB until it is known how many it does fill."""
PLAIN_PAIR = 3e-8
"""Seconds that scipy's sparse product needs per pair of a right and a wrong answer."""


def count_compressed(rows: SparseRows, weights: Int64Array | None, pairs: int) -> Any:
    """Sum, for every pair, over the persons with item ``i`` right and item ``j`` wrong.

    Parameters
    ----------
    rows
        The answers.
    weights
        Of the persons; None counts each once.
    pairs
        Right times wrong answers, summed over persons: how much work it is.
    """
    if weights is None:
        weights = np.ones(rows.n_persons, dtype=np.int64)
    if worth_compiling(PLAIN_PAIR * pairs):
        return _gather(rows, weights)
    return _multiply(rows, weights)


def _multiply(rows: SparseRows, weights: Int64Array) -> Any:
    """Do it with scipy's product: slower, but nothing has to be compiled."""
    from scipy.sparse import csr_array

    # 32-bit positions halve what the sparse arrays take.
    person = np.repeat(np.arange(rows.n_persons, dtype=np.int32), np.diff(rows.indptr))
    item, good = rows.item.astype(np.int32), rows.right
    shape = (rows.n_items, rows.n_persons)
    rights = csr_array((weights[person[good]], (item[good], person[good])), shape)
    ones = np.ones(int((~good).sum()), dtype=np.int64)
    total = rights @ csr_array((ones, (item[~good], person[~good])), shape).T
    total.sum_duplicates()
    total.eliminate_zeros()
    return total


def _gather(rows: SparseRows, weights: Int64Array) -> Any:
    from discreet.engines.kernels import bound_rows, count_right, gather_rows, split_answers

    m = rows.n_items
    starts = np.zeros(m + 1, dtype=np.int64)
    count_right(rows.item, rows.right, 0, starts[1:])
    np.cumsum(starts, out=starts)
    person, item = (np.empty(int(starts[-1]), dtype=kind) for kind in (np.int32, rows.item.dtype))
    wrong_ptr = np.zeros(rows.n_persons + 1, dtype=np.int64)
    wrong = np.empty(rows.n_answers - len(person), dtype=rows.item.dtype)
    split_answers(
        rows.indptr, rows.item, rows.right, 0, starts.copy(), person, item, wrong_ptr, wrong
    )
    del item  # of right answers: the same for a whole row
    most = np.empty(m, dtype=np.int64)
    bound_rows(starts, person, wrong_ptr, most)
    lengths = np.zeros(m, dtype=np.int64)

    blocks = _cut_rows(most)
    largest = max((int(most[first:stop].sum()) for first, stop in blocks), default=0)
    desks = local()

    def count(block: tuple[int, int]) -> Cells:
        if not hasattr(desks, "work"):
            desks.work = _make_desk(m, largest)
        args = (starts, person, wrong_ptr, wrong, weights, *desks.work, lengths)
        filled = gather_rows(*block, *args)
        column, value = (array[:filled].copy() for array in desks.work[2:])
        return column, value

    return _join(run_tasks(count, blocks), lengths)


def _make_desk(items: int, cells: int) -> tuple[npt.NDArray[Any], ...]:
    """Return what one thread works on: sums and marks of a row, columns and values of a block."""
    sums, marks = np.zeros(items, dtype=np.int64), np.zeros(-(-items // 64), dtype=np.uint64)
    return sums, marks, np.empty(cells, dtype=np.int32), np.empty(cells, dtype=np.int64)


def _cut_rows(most: Int64Array) -> list[tuple[int, int]]:
    """Cut the rows into blocks that fill about as many cells each."""
    running = np.cumsum(most)
    marks = np.arange(BLOCK_PAIRS, int(running[-1]) if len(running) else 0, BLOCK_PAIRS)
    ends = np.unique([0, *np.searchsorted(running, marks), len(most)])
    return [(int(first), int(stop)) for first, stop in pairwise(ends)]


def _join(blocks: list[Cells], lengths: Int64Array) -> Any:
    """Put the blocks of rows together, letting go of each once it is copied."""
    from scipy.sparse import csr_array

    m, size = len(lengths), int(lengths.sum())
    indptr = np.zeros(m + 1, dtype=np.int64 if size >= 1 << 31 else np.int32)
    np.cumsum(lengths, out=indptr[1:])
    column, value = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    spot = size
    while blocks:
        some, values = blocks.pop()
        spot -= len(some)
        column[spot : spot + len(some)], value[spot : spot + len(some)] = some, values
    return csr_array((value, column, indptr), shape=(m, m))
