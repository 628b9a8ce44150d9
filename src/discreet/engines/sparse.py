"""Count pairs on sparse rows: each person adds to the pairs of their right and wrong items.

In: sparse rows, and if wanted an integer weight per person. Out: exact int64 sums. The right
answers are first sorted into strips of items in person order, so that the part of the matrix
that is being added to stays in cache, and so that no two threads write to the same rows
(Gustavson's sparse product, blocked).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.responses.packing_plain import empty_planes, narrow_items
from discreet.responses.store import BitPlanes, Int64Array, SparseRows
from discreet.responses.threads import run_tasks

__all__ = ["count_rows", "list_rows", "pack_sparse"]

STRIP_CELLS = 1 << 20
"""Cells of the matrix in a strip, 4 MB of 32-bit counts. Narrower strips fit the second-level
cache, but then the wrong answers of each person are fetched more often: 2^18 was no faster."""


def count_rows(rows: SparseRows, weights: Int64Array | None = None) -> Int64Array:
    """Sum, for every pair, over the persons with item ``i`` right and item ``j`` wrong."""
    from discreet.engines.kernels import count_right, count_strip, split_answers

    m = rows.n_items
    shift = max(3, (STRIP_CELLS // max(m, 1)).bit_length() - 1)
    strip = 1 << shift
    starts = np.zeros(-(-m // strip) + 1, dtype=np.int64)
    count_right(rows.item, rows.right, shift, starts[1:])
    np.cumsum(starts, out=starts)
    person = np.empty(int(starts[-1]), dtype=np.int32)
    item = np.empty(int(starts[-1]), dtype=rows.item.dtype)
    wrong_ptr = np.zeros(rows.n_persons + 1, dtype=np.int64)
    wrong = np.empty(rows.n_answers - len(item), dtype=rows.item.dtype)
    split_answers(
        rows.indptr, rows.item, rows.right, shift, starts.copy(), person, item, wrong_ptr, wrong
    )
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

    run_tasks(count, range(len(starts) - 1))
    return total


def list_rows(planes: BitPlanes) -> SparseRows:
    """Turn bit planes into sparse rows."""
    from discreet.engines.kernels import list_answers

    answered, _ = planes.person_totals()
    indptr = np.zeros(planes.n_persons + 1, dtype=np.int64)
    np.cumsum(answered, out=indptr[1:])
    item = narrow_items(np.empty(int(indptr[-1]), dtype=np.int32), planes.n_items)
    right = np.empty(int(indptr[-1]), dtype=np.bool_)
    size = planes.block_persons

    def write(block: int) -> None:
        place = indptr[block * size : (block + 1) * size].copy()
        list_answers(planes.right[block], planes.wrong[block], place, item, right)

    run_tasks(write, range(planes.right.shape[0]))
    return SparseRows(indptr, item, right, planes.n_items)


def pack_sparse(rows: SparseRows, start: int, stop: int) -> BitPlanes:
    """Turn the sparse rows of some persons into bit planes."""
    from discreet.responses.packing_kernels import fill_planes

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
