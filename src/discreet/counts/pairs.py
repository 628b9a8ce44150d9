"""Count pairs in memory: the reference that every other engine must equal.

In: a store of answers and, if wanted, an integer weight per person. Out: exact int64 sums. Three
ways give the same numbers, and the cheapest is taken: NumPy for small jobs, bit planes for dense
answers, sparse rows for thin ones, where each person adds to the pairs of their right and wrong
items. For many items of which few are compared the sums are a scipy.sparse.csr_array with sorted
columns and no zeros (Gustavson's sparse product, blocked).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from threading import local
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.counts import bit_planes, matrix
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows, mark_planes, narrow_items
from discreet.errors import BadUsage
from discreet.jit import worth_compiling
from discreet.threads import map_tasks
from discreet.types import Int32Array, Int64Array

Store = BitPlanes | SparseRows
Bits = npt.NDArray[np.uint8]
#: Integer weight per person from (answered, right); picklable.
Weighting = Callable[[Int64Array, Int64Array], Int64Array]

#: Persons per matrix product: sums of up to 2^14 weights of 2^30 are exact in float64.
SLAB_PERSONS = 16_384

LARGEST_WEIGHT = 1 << 30

#: Seconds that NumPy's matrix product needs per person and pair of items.
PLAIN_PAIR = 1e-10

#: Sparse counting wins when its pairs are fewer than this share of the dense words.
SPARSE_SHARE = 0.035

#: Runs of persons that are looked at to see whether the answers are thin, and words of 64 persons.
SAMPLES, SAMPLE_PERSONS, SAMPLE_WORDS = 4, 16_384, 16

#: Bit planes made from sparse rows at one time.
SLICE_BYTES = 1 << 26


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
    return matrix.clear_within(_count_nodes(store.nodes, store.steps, weights, share), store.steps)


def _count_nodes(
    store: Store, steps: Sequence[int], weights: Int64Array | None, share: float
) -> Any:
    if store.n_items <= matrix.SPARSE_ITEMS:
        return _count_dense(store, steps, weights)
    answered, right = store.person_totals()
    pairs = int(right @ (answered - right))
    by_item = store.item_totals()
    matrix.check_room(
        steps, matrix.expect_pairs(by_item[1], by_item[0] - by_item[1], pairs / share)
    )
    is_filled = store.n_items <= matrix.LARGE_ITEMS and not matrix.prefers_sparse(
        store.n_items, pairs
    )
    if is_filled and matrix.fits_dense(store.n_items):
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
    return np.asarray(
        matrix.clear_within(_count_dense(store.nodes, store.steps, weights), store.steps)
    )


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
            total += bit_planes.count_planes_weighted(planes, weights[span])
        elif max(steps, default=1) > 1:
            total += bit_planes.count_step_planes(planes, steps)
        else:
            total += bit_planes.count_planes(planes)
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
    for some in _sample(store):
        answered, right = some.person_totals()
        pairs += int(right @ (answered - right))
        persons += some.n_persons
    return pairs < SPARSE_SHARE * persons * store.n_items**2 / 64


def _sample(store: Store) -> Iterator[Store]:
    """Yield a few runs of persons."""
    if isinstance(store, BitPlanes):
        blocks, size = store.right.shape[0], store.block_persons
        for block in range(0, blocks, -(-blocks // SAMPLES) or 1):
            some = slice(block, block + 1), slice(None), slice(SAMPLE_WORDS)
            persons = min(size, 64 * SAMPLE_WORDS, store.n_persons - block * size)
            yield BitPlanes(store.right[some], store.wrong[some], persons)
        return
    for first in range(0, store.n_persons, max(SAMPLE_PERSONS, -(-store.n_persons // SAMPLES))):
        starts = store.indptr[first : first + SAMPLE_PERSONS + 1]
        part = slice(starts[0], starts[-1])
        yield SparseRows(starts - starts[0], store.item[part], store.right[part], store.n_items)


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
    number: Any = np.float32 if weights is None else np.float64
    for start, right, wrong in _slabs(store):
        is_right = right.astype(number)
        if weights is not None:
            is_right *= weights[start : start + right.shape[1]]
        elif sum(np.count_nonzero(bits.view(np.bool_)) for bits in (right, wrong)) == right.size:
            # A product with itself is symmetric, and costs half.
            both_right = (is_right @ is_right.T).astype(np.int64)
            total += both_right.diagonal()[:, None] - both_right
            continue
        total += (is_right @ wrong.astype(number).T).astype(np.int64)
    return total


def _slabs(store: Store) -> Iterator[tuple[int, Bits, Bits]]:
    """Yield the first person, and who is right and wrong as 0 and 1, ``[item, person]``."""
    if isinstance(store, BitPlanes):
        for block in range(store.right.shape[0]):
            start = block * store.block_persons
            persons = min(store.block_persons, store.n_persons - start)
            octets = (plane[block].view(np.uint8) for plane in (store.right, store.wrong))
            right, wrong = (np.unpackbits(some, 1, persons, "little") for some in octets)
            yield start, right, wrong
        return
    for start in range(0, store.n_persons, SLAB_PERSONS):
        cells = store.rows(start, start + SLAB_PERSONS).T
        yield start, (cells == 1).view(np.uint8), (cells == 0).view(np.uint8)


def count_joint(store: Store) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count pairs that are both right, right and wrong, and both wrong.

    The diagonals of the first and the last are the right and the wrong answers per item.
    """
    total = np.zeros((3, store.n_items, store.n_items), dtype=np.int64)
    if worth_compiling(3 * PLAIN_PAIR * store.n_persons * store.n_items**2):
        for planes, _ in _plane_slices(store):
            total[0] += bit_planes.count_both(planes.right, planes)
            total[1] += bit_planes.count_planes(planes)
            total[2] += bit_planes.count_both(planes.wrong, planes)
    else:
        for _, *slab in _slabs(store):
            right, wrong = (plane.astype(np.float32) for plane in slab)
            products = np.stack([right @ right.T, right @ wrong.T, wrong @ wrong.T])
            total += products.astype(np.int64)
    both_right, right_wrong, both_wrong = total
    return both_right, right_wrong, both_wrong


#: Cells of the matrix in a strip, 4 MB of 32-bit counts. Narrower strips fit the second-level
#: cache, but then the wrong answers of each person are fetched more often: 2^18 was no faster.
STRIP_CELLS = 1 << 20
#: Cells that a block of rows may fill: 48 MB until it is known how many it does fill.
BLOCK_PAIRS = 1 << 22
#: Seconds that scipy's sparse product needs per pair of a right and a wrong answer.
PLAIN_PRODUCT = 3e-8

#: Columns and values of some rows of a sparse matrix.
Cells = tuple[Int32Array, Int64Array]


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
    weight: Int32Array | Int64Array = (
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
    indptr = np.concatenate([[0], np.cumsum(answered)])
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
    stop = min(stop, rows.n_persons)
    span = slice(rows.indptr[start], rows.indptr[stop])
    lengths = np.diff(rows.indptr[start : stop + 1])
    person = np.repeat(np.arange(stop - start, dtype=np.int32), lengths)
    answers = rows.item[span], rows.right[span].view(np.int8)
    return cast(BitPlanes, mark_planes(person, *answers, stop - start, rows.n_items))


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
    each = np.ones(rows.n_persons, dtype=np.int64) if weights is None else weights
    return (_gather if worth_compiling(PLAIN_PRODUCT * pairs) else _multiply)(rows, each)


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
            # What one thread works on: sums and marks of a row, columns and values of a block.
            sums, marks = np.zeros(m, dtype=np.int64), np.zeros(-(-m // 64), dtype=np.uint64)
            room = np.empty(largest, dtype=np.int32), np.empty(largest, dtype=np.int64)
            desks.work = (sums, marks, *room)
        args = (starts, person, wrong_ptr, wrong, weights, *desks.work, lengths)
        filled = gather_rows(*block, *args)
        column, value = (array[:filled].copy() for array in desks.work[2:])
        return column, value

    return _join(list(map_tasks(count, blocks)), lengths)


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
