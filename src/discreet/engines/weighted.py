"""Count pairs on bit planes with an integer weight per person.

In: bit planes and weights. Out: exact int64 sums. The persons are first brought into an order
in which the 64 persons of a word have the same weight (:mod:`discreet.engines.grouping`); then
a pair still costs one AND, one count and one product per word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt

from discreet.engines.dense import PANEL_ROWS, count_planes, mirror, padded_items
from discreet.responses.store import BitPlanes, Int64Array, UInt64Array
from discreet.responses.threads import run_tasks, thread_count

__all__ = ["count_planes_weighted"]

CHUNK_BYTES = 1 << 26
"""Rows of bits made at one time. The more persons, the fuller the words."""

SPAN_WORDS = 504
"""Words counted at a time: as many as in cache, and 63 cache lines, because rows that are a
multiple of 64 lines apart would compete for the same places in the cache."""

Task = tuple[range, range]


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
        from discreet.responses.turning import turn_back

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
    from discreet.engines.grouping import group_persons
    from discreet.engines.kernels import is_complete
    from discreet.responses.turning import turn_plane

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

    run_tasks(turn, range(first, stop))
    return _Chunk(rows, *group_persons(own), planes.n_items, complete)


def _count_cross(chunk: _Chunk) -> Int64Array:
    from discreet.engines.kernels import weigh_cross

    total = np.zeros((chunk.n_items, chunk.n_items), dtype=np.int64)
    lock = Lock()

    def work(task: Task) -> None:
        rows, words = task
        room = _make_room(chunk)
        panel = np.zeros((padded_items(len(rows)), padded_items(chunk.n_items)), dtype=np.int64)
        for first, stop in _spans(words):
            right, wrong = chunk.gather(first, stop, room)
            own = right[rows.start : rows.start + len(panel)]
            weigh_cross(own, wrong, chunk.weights(first, stop), panel)
        with lock:
            total[rows.start : rows.stop] += panel[: len(rows), : chunk.n_items]

    run_tasks(work, _tasks(chunk))
    return total


def _count_complete(chunk: _Chunk) -> Int64Array:
    """Count half: with everybody answering everything, right i wrong j is right i less both."""
    from discreet.engines.kernels import weigh_complete

    both = np.zeros((chunk.n_items, chunk.n_items), dtype=np.int64)
    lock = Lock()

    def work(task: Task) -> None:
        rows, words = task
        room = _make_room(chunk)
        panel = np.zeros((padded_items(len(rows)), padded_items(chunk.n_items)), dtype=np.int64)
        for first, stop in _spans(words):
            (right,) = chunk.gather(first, stop, room)
            own = right[rows.start : rows.start + len(panel)]
            weigh_complete(own, rows.start, right, chunk.weights(first, stop), panel)
        with lock:
            both[rows.start : rows.stop] += panel[: len(rows), : chunk.n_items]

    run_tasks(work, _tasks(chunk))
    mirror(both)
    return np.subtract(both.diagonal().copy()[:, None], both, out=both)


def _make_room(chunk: _Chunk) -> UInt64Array:
    return np.empty(2 * padded_items(chunk.n_items) * SPAN_WORDS, dtype=np.uint64)


def _spans(words: range) -> Iterator[tuple[int, int]]:
    return pairwise([*range(words.start, words.stop, SPAN_WORDS), words.stop])


def _tasks(chunk: _Chunk) -> Iterator[Task]:
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
