"""Count pairs on sparse rows: each person adds to the pairs of their right and wrong items.

In: sparse rows, and if wanted an integer weight per person. Out: exact int64 sums, as an array or,
for many items of which few are compared, as a scipy.sparse.csr_array with sorted columns and no
zeros (Gustavson's sparse product, blocked).
"""

from __future__ import annotations

from itertools import pairwise
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.counts.planes import BitPlanes, SparseRows, empty_planes, narrow_items
from discreet.jit import map_tasks, worth_compiling
from discreet.types import Int64Array

STRIP_CELLS = 1 << 20
"""Cells of the matrix in a strip, 4 MB of 32-bit counts. Narrower strips fit the second-level
cache, but then the wrong answers of each person are fetched more often: 2^18 was no faster."""
BLOCK_PAIRS = 1 << 22
"""Cells that a block of rows may fill: 48 MB until it is known how many it does fill."""
PLAIN_PAIR = 3e-8
"""Seconds that scipy's sparse product needs per pair of a right and a wrong answer."""

Cells = tuple[npt.NDArray[np.int32], Int64Array]
"""Columns and values of some rows of a sparse matrix."""


def count_rows(rows: SparseRows, weights: Int64Array | None = None) -> Int64Array:
    """Sum, for every pair, over the persons with item ``i`` right and item ``j`` wrong.

    The right answers are first sorted into strips of items in person order, so that the part of
    the matrix that is being added to stays in cache, and so that no two threads write to the same
    rows.
    """
    from discreet.counts.kernels import count_strip

    m = rows.n_items
    shift = max(3, (STRIP_CELLS // max(m, 1)).bit_length() - 1)
    strip = 1 << shift
    starts, person, item, wrong_ptr, wrong = _split(rows, shift)
    total = np.empty((m, m), dtype=np.int64)
    # A count of persons fits in 32 bits, which halves the cache that a strip needs.
    weight: npt.NDArray[np.int32] | Int64Array = (
        np.ones(rows.n_persons, dtype=np.int32) if weights is None else weights
    )

    def count(number: int) -> None:
        first = number * strip
        span = slice(starts[number], starts[number + 1])
        panel = np.zeros((min(strip, m - first), m), dtype=weight.dtype)
        count_strip(person[span], item[span], first, wrong_ptr, wrong, weight, panel)
        total[first : first + strip] = panel

    list(map_tasks(count, range(len(starts) - 1)))
    return total


def _split(rows: SparseRows, shift: int) -> tuple[Any, Any, Any, Any, Any]:
    """Sort right answers into strips of ``2^shift`` items, in person order; collect wrong ones.

    Returns where strips start, persons and items of right answers, where persons start, and the
    items of wrong answers.
    """
    from discreet.counts.kernels import count_right, split_answers

    starts = np.zeros(-(-rows.n_items // (1 << shift)) + 1, dtype=np.int64)
    count_right(rows.item, rows.right, shift, starts[1:])
    np.cumsum(starts, out=starts)
    person, item = (np.empty(int(starts[-1]), dtype=kind) for kind in (np.int32, rows.item.dtype))
    wrong_ptr = np.zeros(rows.n_persons + 1, dtype=np.int64)
    wrong = np.empty(rows.n_answers - len(item), dtype=rows.item.dtype)
    split_answers(
        rows.indptr, rows.item, rows.right, shift, starts.copy(), person, item, wrong_ptr, wrong
    )
    return starts, person, item, wrong_ptr, wrong


def list_rows(planes: BitPlanes) -> SparseRows:
    """Turn bit planes into sparse rows."""
    from discreet.counts.kernels import write_sparse_rows

    answered, _ = planes.person_totals()
    indptr = np.zeros(planes.n_persons + 1, dtype=np.int64)
    np.cumsum(answered, out=indptr[1:])
    item = narrow_items(np.empty(int(indptr[-1]), dtype=np.int32), planes.n_items)
    right = np.empty(int(indptr[-1]), dtype=np.bool_)
    size = planes.block_persons

    def write(block: int) -> None:
        next_entry = indptr[block * size : (block + 1) * size].copy()
        write_sparse_rows(planes.right[block], planes.wrong[block], next_entry, item, right)

    list(map_tasks(write, range(planes.right.shape[0])))
    return SparseRows(indptr, item, right, planes.n_items)


def pack_sparse(rows: SparseRows, start: int, stop: int) -> BitPlanes:
    """Turn the sparse rows of some persons into bit planes."""
    from discreet.counts.pack_kernels import fill_planes

    stop = min(stop, rows.n_persons)
    span = slice(rows.indptr[start], rows.indptr[stop])
    lengths = np.diff(rows.indptr[start : stop + 1])
    person = np.repeat(np.arange(stop - start, dtype=np.int32), lengths)
    item = rows.item[span].astype(np.int32)
    for codes in (person, item):
        codes.setflags(write=False)
    planes = empty_planes(stop - start, rows.n_items)
    fill_planes(person, item, rows.right[span], *planes)
    return BitPlanes(*planes, stop - start)


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
    """Gather each row from the wrong answers of the persons who had that item right.

    They are added up in one array over all items, and a bitmap says which of its places to
    collect, already in order.
    """
    from discreet.counts.kernels import bound_rows, gather_rows

    m = rows.n_items
    starts, person, item, wrong_ptr, wrong = _split(rows, 0)
    del item  # of right answers: the same for a whole row
    row_limits = np.empty(m, dtype=np.int64)
    bound_rows(starts, person, wrong_ptr, row_limits)
    lengths = np.zeros(m, dtype=np.int64)

    blocks = _cut_rows(row_limits)
    largest = max((int(row_limits[first:stop].sum()) for first, stop in blocks), default=0)
    desks = local()

    def count(block: tuple[int, int]) -> Cells:
        if not hasattr(desks, "work"):
            desks.work = _make_desk(m, largest)
        args = (starts, person, wrong_ptr, wrong, weights, *desks.work, lengths)
        filled = gather_rows(*block, *args)
        column, value = (array[:filled].copy() for array in desks.work[2:])
        return column, value

    return _join(list(map_tasks(count, blocks)), lengths)


def _make_desk(items: int, cells: int) -> tuple[npt.NDArray[Any], ...]:
    """Return what one thread works on: sums and marks of a row, columns and values of a block."""
    sums, marks = np.zeros(items, dtype=np.int64), np.zeros(-(-items // 64), dtype=np.uint64)
    return sums, marks, np.empty(cells, dtype=np.int32), np.empty(cells, dtype=np.int64)


def _cut_rows(row_limits: Int64Array) -> list[tuple[int, int]]:
    """Cut the rows into blocks that fill about as many cells each."""
    running = np.cumsum(row_limits)
    marks = np.arange(BLOCK_PAIRS, int(running[-1]) if len(running) else 0, BLOCK_PAIRS)
    ends = np.unique([0, *np.searchsorted(running, marks), len(row_limits)])
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
