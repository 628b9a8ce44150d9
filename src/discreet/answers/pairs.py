"""Count pairs in memory: the reference that every other engine must equal.

In: a store of answers and, if wanted, an integer weight per person. Out: exact int64 sums.
Three ways give the same numbers, and the cheapest is taken: NumPy for small jobs, bit planes
for dense answers, sparse rows for thin ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.counts import matrix
from discreet.counts.bit_planes import (
    count_both,
    count_planes,
    count_planes_weighted,
    count_step_planes,
)
from discreet.counts.matrix import check_room, expect_pairs, fits_dense, prefers_sparse
from discreet.counts.nodes import clear_within
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows
from discreet.counts.sparse_rows import count_compressed, count_rows, list_rows, pack_sparse
from discreet.errors import BadUsage
from discreet.jit import worth_compiling
from discreet.types import Int8Array, Int64Array

Store = BitPlanes | SparseRows
Weighting = Callable[[Int64Array, Int64Array], Int64Array]
"""Integer weight per person from (answered, right); picklable."""

SLAB_PERSONS = 16_384
"""Persons per matrix product: sums of up to 2^14 weights of 2^30 are exact in float64."""

LARGEST_WEIGHT = 1 << 30

PLAIN_PAIR = 1e-10
"""Seconds that NumPy's matrix product needs per person and pair of items."""

SPARSE_SHARE = 0.035
"""Sparse counting wins when its pairs are fewer than this share of the dense words."""

SAMPLES, SAMPLE_PERSONS = 4, 16_384
"""Runs of persons that are looked at to see whether the answers are thin."""

SLICE_BYTES = 1 << 26
"""Bit planes made from sparse rows at one time."""


def count_matrix(store: AnswerStore, weighting: Weighting | None = None, share: float = 1.0) -> Any:
    """Do as :func:`count_store`, but into a sparse array where most pairs were not compared.

    Answers with steps give pairs of nodes, those within an item left out. How many pairs were
    compared is known only afterwards, so this is decided by the pairs of answers, which cannot be
    fewer; :class:`~discreet.counts.PairCounts` settles the form. Above
    20,000 items a dense matrix is not even tried.

    Parameters
    ----------
    store, weighting
        As for :func:`count_store`.
    share
        Of all answers, those in the store: a batch of many tells how many pairs there will be.

    Raises
    ------
    OutOfReach
        If there is not enough memory for what the counts are made for.
    """
    weights = None if weighting is None else weigh_persons(store, weighting)
    return clear_within(_count_nodes(store.nodes, store.steps, weights, share), store.steps)


def _count_nodes(
    store: Store, steps: Sequence[int], weights: Int64Array | None, share: float
) -> Any:
    if store.n_items <= matrix.SPARSE_ITEMS:
        return _count_dense(store, steps, weights)
    answered, right = store.person_totals()
    pairs = int(right @ (answered - right))
    by_item = store.item_totals()
    check_room(steps, expect_pairs(by_item[1], by_item[0] - by_item[1], pairs / share))
    is_filled = store.n_items <= matrix.LARGE_ITEMS and not prefers_sparse(store.n_items, pairs)
    if is_filled and fits_dense(store.n_items):
        return _count_dense(store, steps, weights)
    rows = store if isinstance(store, SparseRows) else list_rows(store)
    return count_compressed(rows, weights, pairs)


def count_store(store: AnswerStore, weighting: Weighting | None = None) -> Int64Array:
    """Sum, for every pair, over the persons with item ``i`` right and item ``j`` wrong.

    The result is a dense matrix, whatever the number of items; with steps, of nodes.

    Parameters
    ----------
    store
        Bit planes or sparse rows.
    weighting
        Integer weight per person; None counts every person once.
    """
    weights = None if weighting is None else weigh_persons(store, weighting)
    return np.asarray(clear_within(_count_dense(store.nodes, store.steps, weights), store.steps))


def _count_dense(store: Store, steps: Sequence[int], weights: Int64Array | None) -> Int64Array:
    if weights is not None and (weights == weights[:1]).all():
        # One weight for all, as where everybody answered everything: the plain kernels are faster.
        return _count_dense(store, steps, None) * (weights[0] if len(weights) else 1)
    if not worth_compiling(PLAIN_PAIR * store.n_persons * store.n_items**2):
        return _count_plain(store, weights)
    if _is_thin(store):
        return count_rows(store if isinstance(store, SparseRows) else list_rows(store), weights)
    total = np.zeros((store.n_items, store.n_items), dtype=np.int64)
    for planes, span in _plane_slices(store):
        if weights is not None:
            total += count_planes_weighted(planes, weights[span])
        elif max(steps, default=1) > 1:
            total += count_step_planes(planes, steps)
        else:
            total += count_planes(planes)
    return total


def weigh_persons(store: AnswerStore, weighting: Weighting) -> Int64Array:
    """Return every person's weight, checked."""
    return check_weights(weighting(*store.person_totals()), store.n_persons)


def check_weights(values: Int64Array, n_persons: int) -> Int64Array:
    """Return weights as 64-bit integers; refuse those whose sums might not be exact."""
    weights = np.asarray(values)
    if weights.shape != (n_persons,) or weights.dtype.kind not in "iu":
        raise BadUsage(
            f"a weighting must return one whole number per person, {n_persons} in all; "
            f"found {weights.dtype} of shape {weights.shape}"
        )
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    if low < 0 or high > LARGEST_WEIGHT or high * n_persons >= 1 << 63:
        raise BadUsage(
            f"weights must lie between 0 and {LARGEST_WEIGHT} (2^30), so that their sums are "
            f"exact 64-bit integers; found {low} to {high} for {n_persons} persons"
        )
    return weights.astype(np.int64)


def _is_thin(store: Store) -> bool:
    """Say whether going from answer to answer is cheaper than going through every word.

    A sample of the persons is enough: the choice changes the time, not the result.
    """
    pairs = persons = 0
    for some in _sample_planes(store) if isinstance(store, BitPlanes) else _sample_rows(store):
        answered, right = some.person_totals()
        pairs += int(right @ (answered - right))
        persons += some.n_persons
    return pairs < SPARSE_SHARE * persons * store.n_items**2 / 64


def _sample_planes(planes: BitPlanes) -> Iterator[BitPlanes]:
    blocks, size = planes.right.shape[0], planes.block_persons
    for block in range(0, blocks, -(-blocks // SAMPLES) or 1):
        part = slice(block, block + 1)
        persons = min(size, planes.n_persons - block * size)
        yield BitPlanes(planes.right[part], planes.wrong[part], persons)


def _sample_rows(rows: SparseRows) -> Iterator[SparseRows]:
    for first in range(0, rows.n_persons, max(SAMPLE_PERSONS, -(-rows.n_persons // SAMPLES))):
        starts = rows.indptr[first : first + SAMPLE_PERSONS + 1]
        part = slice(starts[0], starts[-1])
        yield SparseRows(starts - starts[0], rows.item[part], rows.right[part], rows.n_items)


def _plane_slices(store: Store) -> Iterator[tuple[BitPlanes, slice]]:
    """Yield the answers as bit planes, all at once or, from sparse rows, in slices."""
    if isinstance(store, BitPlanes):
        yield store, slice(None)
        return
    blocks = max(1, 4 * SLICE_BYTES // (SLAB_PERSONS * max(store.n_items, 1)))
    for start in range(0, store.n_persons, blocks * SLAB_PERSONS):
        stop = min(start + blocks * SLAB_PERSONS, store.n_persons)
        yield pack_sparse(store, start, stop), slice(start, stop)


def _count_plain(store: Store, weights: Int64Array | None) -> Int64Array:
    total = np.zeros((store.n_items, store.n_items), dtype=np.int64)
    # Without weights a slab's counts stay below 2^24, where float32 is exact.
    number = np.float32 if weights is None else np.float64
    for start, cells in _slabs(store):
        right, wrong = (cells == 1).astype(number), (cells == 0).astype(number)
        if weights is not None:
            right *= weights[start : start + len(cells), None]
        total += (right.T @ wrong).astype(np.int64)
    return total


def _slabs(store: Store) -> Iterator[tuple[int, Int8Array]]:
    for start in range(0, store.n_persons, SLAB_PERSONS):
        yield start, store.rows(start, start + SLAB_PERSONS)


def count_joint(store: Store) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count pairs that are both right, right and wrong, and both wrong.

    The diagonals of the first and the last are the right and the wrong answers per item.
    """
    if worth_compiling(3 * PLAIN_PAIR * store.n_persons * store.n_items**2):
        parts = [_count_joint_planes(planes) for planes, _ in _plane_slices(store)]
    else:
        parts = [_count_joint_plain(cells) for _, cells in _slabs(store)]
    shape = (3, store.n_items, store.n_items)
    both_right, right_wrong, both_wrong = sum(parts, start=np.zeros(shape, dtype=np.int64))
    return both_right, right_wrong, both_wrong


def _count_joint_planes(planes: BitPlanes) -> Int64Array:
    both_right, both_wrong = (count_both(plane, planes) for plane in (planes.right, planes.wrong))
    return np.stack([both_right, count_planes(planes), both_wrong])


def _count_joint_plain(cells: Int8Array) -> Int64Array:
    right, wrong = (cells == 1).astype(np.float32), (cells == 0).astype(np.float32)
    products = [right.T @ right, right.T @ wrong, wrong.T @ wrong]
    return np.stack(products).astype(np.int64)
