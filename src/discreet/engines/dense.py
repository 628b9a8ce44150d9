"""Count pairs on bit planes: a word holds 64 persons, a pair costs one AND and one count.

In: bit planes, and if wanted an integer weight per person. Out: exact int64 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Lock

import numpy as np

from discreet.responses.store import BitPlanes, Int64Array, UInt64Array
from discreet.responses.threads import run_tasks, thread_count

__all__ = ["count_both", "count_planes", "count_planes_weighted"]

SPAN_BLOCKS = 2
"""Blocks counted at a time: fewer passes over the matrix, and still in cache."""

PANEL_ROWS = 1008
"""Rows of the count matrix that one task owns (a multiple of the padding), so that a
thread's own copy stays small when there are thousands of items."""

PAD = 12
"""Items are padded with empty ones to a multiple of both sides of a tile (4 x 6)."""

Task = tuple[range, range]
Span = tuple[int, int]
CountSpan = Callable[[Span, range, list[Int64Array]], None]


def count_planes(planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons with item ``i`` right and item ``j`` wrong.

    Blocks in which everybody answered everything cost half: there
    ``right_wrong[i, j] = right[i] - right_right[i, j]``, and ``right_right`` is symmetric.
    """
    from discreet.engines.kernels import copy_planes, count_complete, count_cross, is_complete

    def count(span: Span, rows: range, panels: list[Int64Array]) -> None:
        left = _scratch(planes)
        copy_planes(planes.right, *span, left)
        mine = left[rows.start : rows.start + len(panels[0])]
        if is_complete(planes.right, planes.wrong, *span, planes.n_persons):
            count_complete(mine, rows.start, left, panels[1])
            return
        other = _scratch(planes)
        copy_planes(planes.wrong, *span, other)
        count_cross(mine, other, panels[0])

    cross, both = _add_up(planes, count, 2)
    _mirror(both)
    cross += both.diagonal()[:, None]
    cross -= both
    return cross


def count_both(plane: UInt64Array, planes: BitPlanes) -> Int64Array:
    """Count, for every pair, the persons whose bit in one plane is set for both items."""
    from discreet.engines.kernels import copy_planes, count_complete

    def count(span: Span, rows: range, panels: list[Int64Array]) -> None:
        left = _scratch(planes)
        copy_planes(plane, *span, left)
        mine = left[rows.start : rows.start + len(panels[0])]
        count_complete(mine, rows.start, left, panels[0])

    (both,) = _add_up(planes, count, 1)
    _mirror(both)
    return both


def count_planes_weighted(planes: BitPlanes, weights: Int64Array) -> Int64Array:
    """Sum the weights of the persons with item ``i`` right and item ``j`` wrong.

    The weights are taken bit by bit: a sum of weights is a sum of powers of two, each times
    a count of the persons whose weight has that bit.
    """
    from discreet.engines.kernels import copy_planes, count_cross

    bits = int(weights.max(initial=0)).bit_length()
    masks = {bit: _mask(planes, (weights >> bit) & 1) for bit in range(bits)}

    def count(span: Span, rows: range, panels: list[Int64Array]) -> None:
        left, other = _scratch(planes), _scratch(planes)
        copy_planes(planes.right, *span, left)
        copy_planes(planes.wrong, *span, other)
        mine = left[rows.start : rows.start + len(panels[0])]
        for bit, mask in masks.items():
            words = np.zeros(left.shape[1], dtype=np.uint64)
            words[: mask[slice(*span)].size] = mask[slice(*span)].ravel()
            part = np.zeros_like(panels[0])
            count_cross(mine & words, other, part)
            panels[0] += part << bit

    (total,) = _add_up(planes, count, 1)
    return total


def _mask(planes: BitPlanes, chosen: Int64Array) -> UInt64Array:
    """Return words ``[block, word]`` with the bits of the chosen persons."""
    blocks, _, words = planes.right.shape
    octets = np.zeros(blocks * words * 8, dtype=np.uint8)
    packed = np.packbits(chosen.astype(np.bool_), bitorder="little")
    octets[: len(packed)] = packed
    return octets.view(np.uint64).reshape(blocks, words)


def _scratch(planes: BitPlanes) -> UInt64Array:
    """Return room for the words of a span, with empty items and words up to whole tiles."""
    blocks, items, words = planes.right.shape
    width = min(SPAN_BLOCKS, blocks) * words
    return np.zeros((-(-items // PAD) * PAD, -(-width // 8) * 8), dtype=np.uint64)


def _add_up(planes: BitPlanes, count: CountSpan, results: int) -> list[Int64Array]:
    """Run ``count`` over all spans of blocks and all rows, and add up its panels."""
    m = planes.n_items
    totals = [np.zeros((m, m), dtype=np.int64) for _ in range(results)]
    lock = Lock()

    def work(task: Task) -> None:
        rows, blocks = task
        shape = (-(-len(rows) // PAD) * PAD, -(-m // PAD) * PAD)
        panels = [np.zeros(shape, dtype=np.int64) for _ in range(results)]
        for first in range(blocks.start, blocks.stop, SPAN_BLOCKS):
            count((first, min(first + SPAN_BLOCKS, blocks.stop)), rows, panels)
        with lock:
            for total, panel in zip(totals, panels, strict=True):
                total[rows.start : rows.stop] += panel[: len(rows), :m]

    run_tasks(work, _tasks(planes))
    return totals


def _tasks(planes: BitPlanes) -> Iterator[Task]:
    """Split the work by rows of the matrix and, for few rows, by blocks of persons."""
    blocks = planes.right.shape[0]
    panels = range(0, planes.n_items, PANEL_ROWS)
    pieces = max(1, min(-(-blocks // SPAN_BLOCKS), -(-2 * thread_count() // max(len(panels), 1))))
    edges = [blocks * k // pieces for k in range(pieces + 1)]
    for first in panels:
        rows = range(first, min(first + PANEL_ROWS, planes.n_items))
        for start, stop in pairwise(edges):
            yield rows, range(start, stop)


def _mirror(counts: Int64Array) -> None:
    """Copy what is above the diagonal below it, a strip of rows at a time."""
    for first in range(0, len(counts), PANEL_ROWS):
        stop = first + PANEL_ROWS
        counts[first:stop, :first] = counts[:first, first:stop].T
        corner = counts[first:stop, first:stop]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
