"""Count pairs on bit planes: a word holds 64 persons, a pair costs one AND and one count.

In: bit planes. Out: exact int64 sums. Weights: :mod:`discreet.counts.bit_planes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt

from discreet.answers.planes import BitPlanes
from discreet.jit import map_tasks, thread_count
from discreet.types import Int64Array, UInt64Array

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
        from discreet.counts.kernels import copy_planes

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
    from discreet.counts.kernels import count_complete, count_cross, is_complete

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
    from discreet.counts.kernels import count_complete

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

    list(map_tasks(work, _tasks(planes)))
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


# Count pairs on bit planes with an integer weight per person.
#
# In: bit planes and weights. Out: exact int64 sums. The persons are first brought into an order
# in which the 64 persons of a word have the same weight (:mod:`discreet.counts.kernels`); then
# a pair still costs one AND, one count and one product per word.

CHUNK_BYTES = 1 << 26
"""Rows of bits made at one time. The more persons, the fuller the words."""

SPAN_WORDS = 504
"""Words counted at a time: as many as in cache, and 63 cache lines, because rows that are a
multiple of 64 lines apart would compete for the same places in the cache."""

_WeightedTask = tuple[range, range]


@dataclass(frozen=True)
class _Chunk:
    """Rows of bits of some persons, and the words that they are grouped into."""

    rows: UInt64Array
    person: npt.NDArray[np.int32]
    weight: npt.NDArray[np.uint32]
    n_items: int
    complete: bool

    def gather(self, first: int, stop: int, room: UInt64Array) -> UInt64Array:
        """Return ``[plane, item, word]`` of these words: right answers, and wrong if needed."""
        from discreet.answers.row_kernels import turn_back

        words = -(-(stop - first) // 8) * 8
        shape = (1 if self.complete else 2, padded_items(self.n_items), words)
        out = room[: math.prod(shape)].reshape(shape)
        out[:, :, stop - first :] = 0
        out[:, self.n_items :] = 0
        turn_back(self.rows, self.person[64 * first : 64 * stop], self.n_items, out)
        return out

    def weights(self, first: int, stop: int) -> npt.NDArray[np.uint32]:
        """Return the weights of these words, up to a whole vector of 8."""
        out = np.zeros(-(-(stop - first) // 8) * 8, dtype=np.uint32)
        out[: stop - first] = self.weight[first:stop]
        return out


def count_planes_weighted(planes: BitPlanes, weights: Int64Array) -> Int64Array:
    """Sum the weights of the persons with item ``i`` right and item ``j`` wrong."""
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    if len(weights) and low == high:
        return count_planes(planes) * high
    total = np.zeros((planes.n_items, planes.n_items), dtype=np.int64)
    for first, stop in _chunks(planes):
        chunk = _make_chunk(planes, weights, first, stop)
        total += _count_complete(chunk) if chunk.complete else _count_cross(chunk)
    return total


def _chunks(planes: BitPlanes) -> Iterator[tuple[int, int]]:
    """Cut the blocks into chunks of bounded size."""
    blocks = planes.right.shape[0]
    block_bytes = 16 * planes.block_persons * -(-planes.n_items // 64)
    size = max(1, CHUNK_BYTES // max(block_bytes, 1))
    return pairwise([*range(0, blocks, size), blocks])


def _make_chunk(planes: BitPlanes, weights: Int64Array, first: int, stop: int) -> _Chunk:
    from discreet.answers.row_kernels import turn_plane
    from discreet.counts.kernels import group_persons, is_complete

    size = planes.block_persons
    own = weights[first * size : stop * size]
    complete = is_complete(planes.right, planes.wrong, first, stop, planes.n_persons)
    sides = (planes.right,) if complete else (planes.right, planes.wrong)
    columns = -(-planes.n_items // 64)
    rows = np.empty((len(own), columns * len(sides)), dtype=np.uint64)

    def turn(block: int) -> None:
        start = (block - first) * size
        for side, plane in enumerate(sides):
            turn_plane(plane[block], rows[start : start + size], side * columns)

    list(map_tasks(turn, range(first, stop)))
    return _Chunk(rows, *group_persons(own), planes.n_items, complete)


def _count_cross(chunk: _Chunk) -> Int64Array:
    from discreet.counts.kernels import weigh_cross

    total = np.zeros((chunk.n_items, chunk.n_items), dtype=np.int64)
    lock = Lock()

    def work(task: _WeightedTask) -> None:
        rows, words = task
        room = _make_room(chunk)
        panel = np.zeros((padded_items(len(rows)), padded_items(chunk.n_items)), dtype=np.int64)
        for first, stop in _spans(words):
            right, wrong = chunk.gather(first, stop, room)
            own = right[rows.start : rows.start + len(panel)]
            weigh_cross(own, wrong, chunk.weights(first, stop), panel)
        with lock:
            total[rows.start : rows.stop] += panel[: len(rows), : chunk.n_items]

    list(map_tasks(work, _weighted_tasks(chunk)))
    return total


def _count_complete(chunk: _Chunk) -> Int64Array:
    """Count half: with everybody answering everything, right i wrong j is right i less both."""
    from discreet.counts.kernels import weigh_complete

    both = np.zeros((chunk.n_items, chunk.n_items), dtype=np.int64)
    lock = Lock()

    def work(task: _WeightedTask) -> None:
        rows, words = task
        room = _make_room(chunk)
        panel = np.zeros((padded_items(len(rows)), padded_items(chunk.n_items)), dtype=np.int64)
        for first, stop in _spans(words):
            (right,) = chunk.gather(first, stop, room)
            own = right[rows.start : rows.start + len(panel)]
            weigh_complete(own, rows.start, right, chunk.weights(first, stop), panel)
        with lock:
            both[rows.start : rows.stop] += panel[: len(rows), : chunk.n_items]

    list(map_tasks(work, _weighted_tasks(chunk)))
    mirror(both)
    return np.subtract(both.diagonal().copy()[:, None], both, out=both)


def _make_room(chunk: _Chunk) -> UInt64Array:
    return np.empty(2 * padded_items(chunk.n_items) * SPAN_WORDS, dtype=np.uint64)


def _spans(words: range) -> Iterator[tuple[int, int]]:
    return pairwise([*range(words.start, words.stop, SPAN_WORDS), words.stop])


def _weighted_tasks(chunk: _Chunk) -> Iterator[_WeightedTask]:
    """Split by rows of the matrix and, for few rows, by words."""
    words = len(chunk.weight)
    panels = range(0, chunk.n_items, PANEL_ROWS)
    pieces = max(1, min(-(-words // SPAN_WORDS), -(-thread_count() // max(len(panels), 1))))
    edges = [words * k // pieces for k in range(pieces + 1)]
    for first in panels:
        rows = range(first, min(first + PANEL_ROWS, chunk.n_items))
        for start, stop in pairwise(edges):
            if stop > start:
                yield rows, range(start, stop)
