"""Count pairs on bit planes: a word holds 64 persons, a pair costs one AND and one count.

In: bit planes and, if wanted, an integer weight per person. Out: exact int64 sums. With weights the
persons are first brought into an order in which the 64 persons of a word have the same weight
(:func:`discreet.counts.kernels.group_persons`); then a pair costs one product per word more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt

from discreet.counts.planes import BitPlanes
from discreet.threads import map_tasks, thread_count
from discreet.types import IndexArray, Int32Array, Int64Array, UInt64Array

#: Blocks counted at a time: fewer passes over the matrix, and still in cache.
SPAN_BLOCKS = 2

#: Rows of the count matrix that one task owns (a multiple of the padding), so that a
#: thread's own copy stays small when there are thousands of items.
PANEL_ROWS = 1008

#: Seconds that one pair of items costs per word.
PAIR_WORD = 1e-10

#: Rows mirrored at a time, so that the columns that are read stay in cache.
MIRROR_ROWS = 64

#: Items are padded with empty ones to a multiple of both sides of a tile (4 x 6).
PAD = 12

#: Rows of bits made at one time. The more persons, the fuller the words.
CHUNK_BYTES = 1 << 26

#: Words counted at a time: as many as in cache, and 63 cache lines, because rows that are a
#: multiple of 64 lines apart would compete for the same places in the cache.
SPAN_WORDS = 504

#: Rows of the count matrix, and the blocks or words to count.
Task = tuple[range, range]


@dataclass(frozen=True)
class _Span:
    """Some neighbouring blocks, the rows of the matrix to count, and room to work in."""

    planes: BitPlanes
    first: int
    stop: int
    rows: range
    room: tuple[UInt64Array, UInt64Array]

    def gather(self, plane: UInt64Array, room: int) -> UInt64Array:
        """Put the words of the blocks side by side, with empty items up to whole tiles."""
        from discreet.counts.kernels import copy_planes

        size = self.planes.block_persons
        persons = min(self.stop * size, self.planes.n_persons) - self.first * size
        # Words that hold persons, up to a whole vector of 8.
        items, words = padded_items(plane.shape[1]), -(-persons // 512) * 8
        gathered = self.room[room][: items * words].reshape(items, words)
        copy_planes(plane, self.first, self.stop, gathered)
        return gathered

    def own_rows(self, gathered: UInt64Array) -> UInt64Array:
        """Return the rows of this task, up to whole tiles."""
        return gathered[self.rows.start : self.rows.start + padded_items(len(self.rows))]


#: Adds the counts of a span to one of the panels, and says to which.
CountSpan = Callable[[_Span, list[Int64Array]], int]


def count_planes(planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons with item ``i`` right and item ``j`` wrong.

    Blocks in which everybody answered everything cost half: there
    ``right_wrong[i, j] = right[i] - right_right[i, j]``, and ``right_right`` is symmetric.
    """
    from discreet.counts.kernels import count_complete, count_cross, is_complete

    def count(span: _Span, panels: list[Int64Array]) -> int:
        right = span.gather(planes.right, 0)
        if is_complete(planes.right, planes.wrong, span.first, span.stop, planes.n_persons):
            count_complete(span.own_rows(right), span.rows.start, right, panels[1], None)
            return 1
        count_cross(span.own_rows(right), span.gather(planes.wrong, 1), panels[0], None)
        return 0

    (cross, both_right), used = _add_up(planes, count, 2)
    if 1 not in used:
        return cross
    _take_from_right(both_right)
    return both_right + cross if 0 in used else both_right


def count_both(plane: UInt64Array, planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons whose bit in one plane is set for both items."""
    from discreet.counts.kernels import count_complete

    def count(span: _Span, panels: list[Int64Array]) -> int:
        gathered = span.gather(plane, 0)
        count_complete(span.own_rows(gathered), span.rows.start, gathered, panels[0], None)
        return 0

    (both_set,), _ = _add_up(planes, count, 1)
    mirror(both_set)
    return both_set


def count_step_planes(planes: BitPlanes, steps: Sequence[int]) -> Int64Array:
    """Do as :func:`count_planes` with nodes (:mod:`discreet.counts.nodes`) of these steps.

    Whoever is just below a step is at the one before it, so that half of a symmetric matrix says
    nearly all: it is to be counted besides who is in the lowest category. Pairs within an item
    mean nothing.
    """
    first = np.cumsum(steps) - np.array(steps, dtype=np.int64)
    both_right = count_both(planes.right, planes)
    counts = np.empty_like(both_right)
    counts[:, 1:] = both_right[:, :-1]
    counts[:, first] = _count_lowest(planes, first, both_right)
    return counts


def _count_lowest(planes: BitPlanes, first: IndexArray, joint: Int64Array) -> Int64Array:
    """Count who is at a node and below the first step of an item: if all answered, the others."""
    from discreet.counts.kernels import count_cross, is_complete

    above = np.bitwise_or.reduceat(planes.right, first, axis=1)
    split = BitPlanes(above, np.take(planes.wrong, first, axis=1), planes.n_persons)
    if is_complete(split.right, split.wrong, 0, len(above), planes.n_persons):
        return np.asarray(joint.diagonal()[:, None] - np.add.reduceat(joint, first, axis=1))

    def count(span: _Span, panels: list[Int64Array]) -> int:
        right, wrong = span.gather(planes.right, 0), span.gather(split.wrong, 1)
        count_cross(span.own_rows(right), wrong, panels[0], None)
        return 0

    (crossed,), _ = _add_up(planes, count, 1, len(first))
    return crossed


def padded_items(items: int) -> int:
    """Return the number of items up to whole tiles."""
    return -(-items // PAD) * PAD


def _add_up(
    planes: BitPlanes, count: CountSpan, results: int, columns: int | None = None
) -> tuple[list[Int64Array], set[int]]:
    """Run ``count`` over all spans and rows; return the sums, and which were added to."""
    m, width = planes.n_items, planes.n_items if columns is None else columns
    totals = [np.zeros((m, width), dtype=np.int64) for _ in range(results)]
    used: set[int] = set()
    lock = Lock()
    size = padded_items(m) * (-(-SPAN_BLOCKS * planes.right.shape[2] // 8) * 8)

    def work(task: Task) -> None:
        rows, blocks = task
        room = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
        shape = (padded_items(len(rows)), padded_items(width))
        panels = [np.zeros(shape, dtype=np.int64) for _ in range(results)]
        touched = set()
        for first in range(blocks.start, blocks.stop, SPAN_BLOCKS):
            stop = min(first + SPAN_BLOCKS, blocks.stop)
            touched.add(count(_Span(planes, first, stop, rows, room), panels))
        with lock:
            used.update(touched)
            for k in touched:
                totals[k][rows.start : rows.stop] += panels[k][: len(rows), :width]

    seconds = PAIR_WORD * m * planes.right.size
    list(map_tasks(work, _tasks(m, planes.right.shape[0], SPAN_BLOCKS), seconds))
    return totals, used


def _tasks(items: int, length: int, span: int) -> Iterator[Task]:
    """Split by rows of the matrix and, for few rows, by blocks of persons or words."""
    panels = range(0, items, PANEL_ROWS)
    pieces = max(1, min(-(-length // span), -(-thread_count() // max(len(panels), 1))))
    edges = [length * k // pieces for k in range(pieces + 1)]
    for first in panels:
        rows = range(first, min(first + PANEL_ROWS, items))
        for start, stop in pairwise(edges):
            if stop > start:
                yield rows, range(start, stop)


def mirror(counts: Int64Array) -> None:
    """Copy what is above the diagonal below it, a strip of rows at a time."""
    for first in range(0, len(counts), MIRROR_ROWS):
        stop = first + MIRROR_ROWS
        counts[first:stop, :first] = counts[:first, first:stop].T
        corner = counts[first:stop, first:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T


def _take_from_right(both_right: Int64Array) -> None:
    """Turn what is above the diagonal of "both right" into "right and wrong", of everybody."""
    mirror(both_right)
    np.subtract(both_right.diagonal().copy()[:, None], both_right, out=both_right)


@dataclass(frozen=True)
class _Chunk:
    """Rows of bits of some persons, and the words that they are grouped into."""

    rows: UInt64Array
    person: Int32Array
    weight: npt.NDArray[np.uint32]
    n_items: int
    complete: bool

    def gather(self, first: int, stop: int, room: UInt64Array) -> UInt64Array:
        """Return ``[plane, item, word]`` of these words: right answers, and wrong if needed."""
        from discreet.counts.kernels import turn_back

        words = -(-(stop - first) // 8) * 8
        shape = (1 if self.complete else 2, padded_items(self.n_items), words)
        out = room[: math.prod(shape)].reshape(shape)
        out[:, :, stop - first :] = 0
        out[:, self.n_items :] = 0
        turn_back(self.rows, self.person[64 * first : 64 * stop], self.n_items, out)
        return out


def count_planes_weighted(planes: BitPlanes, weights: Int64Array) -> Int64Array:
    """Sum the weights of the persons with item ``i`` right and item ``j`` wrong."""
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    if len(weights) and low == high:
        return count_planes(planes) * high
    total = np.zeros((planes.n_items, planes.n_items), dtype=np.int64)
    blocks = planes.right.shape[0]
    block_bytes = 16 * planes.block_persons * -(-planes.n_items // 64)
    size = max(1, CHUNK_BYTES // max(block_bytes, 1))
    for first, stop in pairwise([*range(0, blocks, size), blocks]):
        total += _count_chunk(_make_chunk(planes, weights, first, stop))
    return total


def _make_chunk(planes: BitPlanes, weights: Int64Array, first: int, stop: int) -> _Chunk:
    from discreet.counts.kernels import group_persons, is_complete, turn_plane

    size = planes.block_persons
    chunk_weights = weights[first * size : stop * size]
    complete = is_complete(planes.right, planes.wrong, first, stop, planes.n_persons)
    sides = (planes.right,) if complete else (planes.right, planes.wrong)
    columns = -(-planes.n_items // 64)
    rows = np.empty((len(chunk_weights), columns * len(sides)), dtype=np.uint64)

    def turn(block: int) -> None:
        start = (block - first) * size
        for side, plane in enumerate(sides):
            turn_plane(plane[block], rows[start : start + size], side * columns)

    list(map_tasks(turn, range(first, stop)))
    return _Chunk(rows, *group_persons(chunk_weights), planes.n_items, complete)


def _count_chunk(chunk: _Chunk) -> Int64Array:
    """Count cross products, or half as many pairs where everybody answered everything."""
    from discreet.counts.kernels import count_complete, count_cross

    m = chunk.n_items
    total = np.zeros((m, m), dtype=np.int64)
    lock = Lock()

    def work(task: Task) -> None:
        rows, words = task
        room = np.empty(2 * padded_items(m) * SPAN_WORDS, dtype=np.uint64)
        panel = np.zeros((padded_items(len(rows)), padded_items(m)), dtype=np.int64)
        for first, stop in pairwise([*range(words.start, words.stop, SPAN_WORDS), words.stop]):
            right, *wrong = chunk.gather(first, stop, room)
            strip = right[rows.start : rows.start + len(panel)]
            # The weights of these words, up to a whole vector of 8.
            weights = np.pad(chunk.weight[first:stop], (0, (first - stop) % 8))
            if chunk.complete:
                count_complete(strip, rows.start, right, panel, weights)
            else:
                count_cross(strip, wrong[0], panel, weights)
        with lock:
            total[rows.start : rows.stop] += panel[: len(rows), :m]

    list(map_tasks(work, _tasks(m, len(chunk.weight), SPAN_WORDS)))
    if chunk.complete:
        _take_from_right(total)
    return total
