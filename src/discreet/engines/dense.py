"""Count pairs on bit planes: a word holds 64 persons, a pair costs one AND and one count.

In: bit planes. Out: exact int64 sums. Weights: :mod:`discreet.engines.weighted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np

from discreet.responses.store import BitPlanes, Int64Array, UInt64Array
from discreet.responses.threads import run_tasks, thread_count

__all__ = ["count_both", "count_planes", "mirror", "padded_items"]

SPAN_BLOCKS = 2
"""Blocks counted at a time: fewer passes over the matrix, and still in cache."""

PANEL_ROWS = 1008
"""Rows of the count matrix that one task owns (a multiple of the padding), so that a
thread's own copy stays small when there are thousands of items."""

MIRROR_ROWS = 64
"""Rows mirrored at a time, so that the columns that are read stay in cache."""

PAD = 12
"""Items are padded with empty ones to a multiple of both sides of a tile (4 x 6)."""

Task = tuple[range, range]


@dataclass(frozen=True)
class _Span:
    """Some neighbouring blocks, the rows of the matrix to count, and room to work in."""

    planes: BitPlanes
    first: int
    stop: int
    rows: range
    room: tuple[UInt64Array, UInt64Array]

    @property
    def words(self) -> int:
        """Words that hold persons, up to a whole vector of 8."""
        start = self.first * self.planes.block_persons
        persons = min(self.stop * self.planes.block_persons, self.planes.n_persons) - start
        return -(-persons // 512) * 8

    def gather(self, plane: UInt64Array, room: int) -> UInt64Array:
        """Put the words of the blocks side by side, with empty items up to whole tiles."""
        from discreet.engines.kernels import copy_planes

        items = padded_items(self.planes.n_items)
        gathered = self.room[room][: items * self.words].reshape(items, self.words)
        copy_planes(plane, self.first, self.stop, gathered)
        return gathered

    def own_rows(self, gathered: UInt64Array) -> UInt64Array:
        """Return the rows of this task, up to whole tiles."""
        return gathered[self.rows.start : self.rows.start + padded_items(len(self.rows))]


CountSpan = Callable[[_Span, list[Int64Array]], int]
"""Adds the counts of a span to one of the panels, and says to which."""


def count_planes(planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons with item ``i`` right and item ``j`` wrong.

    Blocks in which everybody answered everything cost half: there
    ``right_wrong[i, j] = right[i] - right_right[i, j]``, and ``right_right`` is symmetric.
    """
    from discreet.engines.kernels import count_complete, count_cross, is_complete

    def count(span: _Span, panels: list[Int64Array]) -> int:
        right = span.gather(planes.right, 0)
        if is_complete(planes.right, planes.wrong, span.first, span.stop, planes.n_persons):
            count_complete(span.own_rows(right), span.rows.start, right, panels[1])
            return 1
        count_cross(span.own_rows(right), span.gather(planes.wrong, 1), panels[0])
        return 0

    (cross, both), used = _add_up(planes, count, 2)
    if 1 not in used:
        return cross
    mirror(both)
    np.subtract(both.diagonal().copy()[:, None], both, out=both)
    return both + cross if 0 in used else both


def count_both(plane: UInt64Array, planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons whose bit in one plane is set for both items."""
    from discreet.engines.kernels import count_complete

    def count(span: _Span, panels: list[Int64Array]) -> int:
        gathered = span.gather(plane, 0)
        count_complete(span.own_rows(gathered), span.rows.start, gathered, panels[0])
        return 0

    (both,), _ = _add_up(planes, count, 1)
    mirror(both)
    return both


def padded_items(items: int) -> int:
    """Return the number of items up to whole tiles."""
    return -(-items // PAD) * PAD


def _add_up(planes: BitPlanes, count: CountSpan, results: int) -> tuple[list[Int64Array], set[int]]:
    """Run ``count`` over all spans and rows; return the sums, and which were added to."""
    m = planes.n_items
    totals = [np.zeros((m, m), dtype=np.int64) for _ in range(results)]
    used: set[int] = set()
    lock = Lock()
    size = padded_items(m) * (-(-SPAN_BLOCKS * planes.right.shape[2] // 8) * 8)

    def work(task: Task) -> None:
        rows, blocks = task
        room = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
        shape = (padded_items(len(rows)), padded_items(m))
        panels = [np.zeros(shape, dtype=np.int64) for _ in range(results)]
        touched = set()
        for first in range(blocks.start, blocks.stop, SPAN_BLOCKS):
            stop = min(first + SPAN_BLOCKS, blocks.stop)
            touched.add(count(_Span(planes, first, stop, rows, room), panels))
        with lock:
            used.update(touched)
            for k in touched:
                totals[k][rows.start : rows.stop] += panels[k][: len(rows), :m]

    run_tasks(work, _tasks(planes))
    return totals, used


def _tasks(planes: BitPlanes) -> Iterator[Task]:
    """Split the work by rows of the matrix and, for few rows, by blocks of persons."""
    blocks = planes.right.shape[0]
    panels = range(0, planes.n_items, PANEL_ROWS)
    pieces = max(1, min(-(-blocks // SPAN_BLOCKS), -(-thread_count() // max(len(panels), 1))))
    edges = [blocks * k // pieces for k in range(pieces + 1)]
    for first in panels:
        rows = range(first, min(first + PANEL_ROWS, planes.n_items))
        for start, stop in pairwise(edges):
            yield rows, range(start, stop)


def mirror(counts: Int64Array) -> None:
    """Copy what is above the diagonal below it, a strip of rows at a time."""
    for first in range(0, len(counts), MIRROR_ROWS):
        stop = first + MIRROR_ROWS
        counts[first:stop, :first] = counts[:first, first:stop].T
        corner = counts[first:stop, first:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
