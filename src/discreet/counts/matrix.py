"""Matrices of counts over the nodes of items: NumPy arrays or, where most cells are empty, sparse.

In: int64 counts in either form, and how many steps each item has. Out: the same numbers in the form
that the rule asks for. The rule looks at the number of items and of compared pairs only, so that
the same answers give the same form from every engine, merged or counted at once. scipy.sparse is
imported only where there are many items. What would not fit into memory is refused before it is
counted. Wins among compared objects are such a matrix too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import BadResponses, BadUsage, OutOfReach
from discreet.resources import available_memory
from discreet.tabular import brief_repr
from discreet.types import FloatArray, IndexArray, Int64Array

#: ``int64[m, m]``, or the same as a scipy.sparse.csr_array with sorted columns and no zeros.
PairMatrix = Any

#: Items above which counts may be sparse; a dense matrix is 32 MB here.
SPARSE_ITEMS = 2000
#: Share of cells with a count below which sparse counts are smaller and faster to solve.
SPARSE_FILL = 0.15
#: Items above which memory decides (a dense matrix is 3.2 GB): a sparse cell takes 12 bytes
#: instead of 8, so that sparse counts are smaller up to two thirds of the cells.
LARGE_ITEMS = 20_000
LARGE_FILL = 0.6


def prefers_sparse(items: int, pairs: int) -> bool:
    """Say whether counts over so many items, of which so many pairs differ from zero, are sparse.

    Examples
    --------
    >>> prefers_sparse(1_000, 0), prefers_sparse(50_000, 25_000_000)
    (False, True)
    """
    if items <= SPARSE_ITEMS:
        return False
    return pairs < (SPARSE_FILL if items <= LARGE_ITEMS else LARGE_FILL) * items**2


def is_sparse(matrix: PairMatrix) -> bool:
    """Say whether a matrix of counts is sparse."""
    return not isinstance(matrix, np.ndarray)


def is_same_matrix(ours: PairMatrix, theirs: PairMatrix) -> bool:
    """Say whether two matrices have the same form and the same counts."""
    if is_sparse(ours) != is_sparse(theirs) or ours.shape != theirs.shape:
        return False
    return not (ours != theirs).sum()


def settle_matrix(matrix: PairMatrix) -> PairMatrix:
    """Return counts in the form that :func:`prefers_sparse` asks for."""
    items = matrix.shape[0]
    if is_sparse(matrix):
        matrix = _tidy(matrix)
        return matrix if prefers_sparse(items, matrix.nnz) else matrix.toarray()
    return _tidy(matrix) if _is_thin(matrix, items) else matrix


def _is_thin(matrix: Int64Array, items: int) -> bool:
    """Say whether an array is better held as a sparse one, over so many items."""
    return items > SPARSE_ITEMS and prefers_sparse(items, int(np.count_nonzero(matrix)))


def _tidy(matrix: Any) -> Any:
    """Return a CSR array with sorted columns, each once, and without zeros."""
    from scipy.sparse import csr_array

    if not isinstance(matrix, csr_array):
        matrix = csr_array(matrix)
    if matrix.has_canonical_format and matrix.data.all():
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def add_matrices(ours: PairMatrix, theirs: PairMatrix) -> PairMatrix:
    """Add counts over the same items; the caller settles the form."""
    if is_sparse(ours) == is_sparse(theirs):
        return ours + theirs
    dense, sparse = (theirs, ours) if is_sparse(ours) else (ours, theirs)
    add_into(total := dense.copy(), sparse)
    return total


def add_into(total: Int64Array, matrix: PairMatrix) -> None:
    """Add counts to a dense matrix of the same items, in place."""
    if not is_sparse(matrix):
        total += matrix
        return
    row = np.repeat(np.arange(len(total)), np.diff(matrix.indptr))
    total[row, matrix.indices] += matrix.data


def grow_matrix(matrix: PairMatrix, items: int) -> PairMatrix:
    """Add items that nobody answered at the end of the list."""
    more = items - matrix.shape[0]
    if more == 0:
        return matrix
    if not is_sparse(matrix):
        if not _is_thin(matrix, items):
            return np.pad(matrix, ((0, more), (0, more)))
        matrix = _tidy(matrix)
    indptr = np.pad(matrix.indptr, (0, more), mode="edge")
    return type(matrix)((matrix.data, matrix.indices, indptr), shape=(items, items))


def move_cells(matrix: PairMatrix, old: Int64Array) -> PairMatrix:
    """Return counts over other items; ``old[k]`` is where item k was, or -1 for a new one."""
    is_old, items = old >= 0, len(old)
    if not is_sparse(matrix) and items <= SPARSE_ITEMS:
        moved = np.zeros((items, items), dtype=np.int64)
        moved[np.ix_(is_old, is_old)] = matrix[np.ix_(old[is_old], old[is_old])]
        return moved
    from scipy.sparse import coo_array, csr_array

    cells = coo_array(matrix)
    new = np.full(matrix.shape[0], -1, dtype=np.int32)
    new[old[is_old]] = np.flatnonzero(is_old)
    # Items that are left out have no counts: nobody answered them.
    coordinates = (new[cells.row], new[cells.col])
    return settle_matrix(csr_array((cells.data, coordinates), shape=(items, items)))


# -- memory --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixUse:
    """What counts are made for, and the memory that it takes.

    Attributes
    ----------
    name
        What messages call it.
    arrays
        Arrays of 8 bytes a cell that are there at one time, where counts are dense.
    pair
        Bytes for each compared pair, where counts are sparse.
    cell
        Bytes for each cell, where counts of up to 20,000 items are sparse: standard errors
        factorise a matrix in single precision.
    is_dense
        Whether counts become an array in any case.
    """

    name: str
    arrays: float
    pair: int
    cell: int = 0
    is_dense: bool = False

    def find_bytes(self, nodes: int, pairs: int) -> float:
        """Return the memory for so many items (with steps, steps) and compared pairs."""
        if self.is_dense or not prefers_sparse(nodes, pairs):
            return 8 * self.arrays * nodes**2
        return self.pair * pairs + (self.cell * nodes**2 if nodes <= LARGE_ITEMS else 0)


COUNTING = MatrixUse("Counting them", arrays=4, pair=20)
FITTING = MatrixUse("The fit", arrays=7, pair=60, cell=4)
DENSE_FITTING = MatrixUse("The fit", arrays=7, pair=60, is_dense=True)
#: Measured with 4,000 items and steps: 3.6 arrays for counting, 6.4 for a fit; docs/scale.md has
#: the bytes of sparse counts. A release is refused by the number of items alone, which is public.
RELEASING = MatrixUse("A release", arrays=4, pair=20, is_dense=True)

_use: ContextVar[MatrixUse] = ContextVar("use", default=COUNTING)


@contextmanager
def planning(use: MatrixUse) -> Iterator[None]:
    """Let counts be refused inside where there is not enough memory for what follows."""
    before = _use.set(use)
    try:
        yield
    finally:
        _use.reset(before)


SAMPLED_NODES = 1000


def expect_pairs(right: Int64Array, wrong: Int64Array, pairs: float) -> int:
    """Return about how many cells will hold a count, before anything is counted.

    Parameters
    ----------
    right, wrong
        Per item (with steps, per step), how many persons had it right and wrong.
    pairs
        Right times wrong answers, summed over persons. They fall on the cells in proportion to
        how often items were right and wrong.

    Examples
    --------
    >>> ones = np.ones(3000, dtype=np.int64)
    >>> expect_pairs(ones, ones, 1000), expect_pairs(ones, ones, 1e9)
    (999, 9000000)
    """
    n_cells = int(len(right) * len(wrong))
    if not (right.any() and wrong.any()):
        return 0
    rows, columns = (
        np.sort(totals)[np.linspace(0, len(totals) - 1, SAMPLED_NODES).astype(np.intp)]
        for totals in (right, wrong)
    )
    expected = pairs / (float(right.sum()) * float(wrong.sum())) * np.outer(rows, columns)
    return int(n_cells * -np.expm1(-expected).mean())


def fits_dense(nodes: int) -> bool:
    """Say whether there is enough memory to count pairs in an array."""
    return 8 * COUNTING.arrays * nodes**2 <= available_memory()


class NoRoom(OutOfReach):
    """Pairs of all items would not fit into memory."""


def check_room(steps: Sequence[int], pairs: int, held: int = 0) -> None:
    """Refuse counts that would not fit into memory.

    Parameters
    ----------
    steps
        Per item, how many steps it has.
    pairs
        How many cells will hold a count.
    held
        Bytes of counts that are in memory already.

    Raises
    ------
    NoRoom
        If what the counts are for needs more memory than there is.
    """
    nodes, use = sum(steps), _use.get()
    if nodes <= SPARSE_ITEMS:
        return
    needed, free = use.find_bytes(nodes, pairs), available_memory() + held
    if needed > free:
        items = len(steps)
        more = f" with {nodes:,} steps in all" if nodes > items else ""
        helps = _list_remedies(use, steps, pairs, needed) if nodes > items else []
        # The next size of a machine that leaves a quarter for everything else.
        machine = 1 << max(3, math.ceil(math.log2(needed / 0.75e9)))
        raise NoRoom(
            f"{items:,} items{more} make {nodes:,} x {nodes:,} pairs. {use.name} needs about "
            f"{_show_size(needed)} of memory, and {_show_size(free)} are free here. What helps: "
            f"{'; '.join(helps or ['take fewer items'])}; or a machine with {machine:,} GB of "
            "memory"
        )


def _list_remedies(use: MatrixUse, steps: Sequence[int], pairs: int, needed: float) -> list[str]:
    """Return which ways to fewer steps need less memory, and how much."""
    halves = sum((step + 1) // 2 for step in steps)
    remedies = [
        ("count answers from some score on as right, with at_least= (--at-least)", len(steps), ""),
        ("merge categories, with merge= (--merge)", halves, " with half of the steps"),
    ]
    sizes = [use.find_bytes(nodes, min(pairs, nodes**2)) for _, nodes, _ in remedies]
    return [
        f"{remedy}: about {_show_size(size)}{which}"
        for (remedy, _, which), size in zip(remedies, sizes, strict=True)
        if size < needed
    ]


def _show_size(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


# -- nodes: the steps of items, item after item, step after step ----------------------------------
#
# Pairs of answers compare nodes of different items; a node of an item with one step is the item
# itself. An item's location is the mean of its nodes' thresholds.


def item_of_nodes(steps: Sequence[int]) -> IndexArray:
    """Return the item of every node."""
    return np.repeat(np.arange(len(steps)), steps)


def nodes_of(columns: Int64Array, steps: Sequence[int]) -> tuple[Int64Array, tuple[int, ...]]:
    """Return the nodes of these items, and their steps; -1 is an item of one step, and a node."""
    first = np.concatenate([[0], np.cumsum(steps)])
    spans = [np.arange(first[i], first[i + 1]) if i >= 0 else np.array([-1]) for i in columns]
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *spans]), tuple(len(span) for span in spans)


def name_nodes(items: Sequence[str], steps: Sequence[int]) -> tuple[str, ...]:
    """Return a name for every node, for messages.

    Examples
    --------
    >>> name_nodes(["a", "b"], [1, 2])
    ('a', 'b step 1', 'b step 2')
    """
    return tuple(
        item if n_steps == 1 else f"{item} step {step}"
        for item, n_steps in zip(items, steps, strict=True)
        for step in range(1, n_steps + 1)
    )


def clear_within(right_wrong: Any, steps: Sequence[int]) -> Any:
    """Return counts of pairs of nodes without those of one item, which depend on the ability.

    An array is changed in place: with many steps a second one would fill the memory.
    """
    if all(step == 1 for step in steps):
        return right_wrong
    item = item_of_nodes(steps)
    if isinstance(right_wrong, np.ndarray):
        for end, step in zip(np.cumsum(steps).tolist(), steps, strict=True):
            right_wrong[end - step : end, end - step : end] = 0
        return right_wrong
    entries = right_wrong.tocoo()
    entries.data[item[entries.row] == item[entries.col]] = 0
    cleared = entries.tocsr()
    cleared.eliminate_zeros()
    return cleared


def check_same_steps(items: Sequence[str], ours: Sequence[int], theirs: Sequence[int]) -> None:
    """Refuse to add counts of items that have other categories here than there."""
    pairs = zip(items, ours, theirs, strict=True)
    differ = [(item, first, second) for item, first, second in pairs if first != second]
    if differ:
        item, first, second = differ[0]
        raise BadResponses(
            f"item '{item}' has the categories 0 to {first} in some of these counts and 0 to "
            f"{second} in others ({len(differ)} of {len(items)} items are like this), so that "
            "their pairs are about different steps. Count all of them with the same highest "
            "categories: steps= (--steps)"
        )


@dataclass(frozen=True)
class Recoding:
    """Categories that somebody used, per item; those above an unused one move down.

    Attributes
    ----------
    steps
        Per item, its highest category before.
    kept
        Per item, the categories that stay, at least two, ascending.
    """

    steps: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]

    @property
    def changes(self) -> bool:
        """Whether any category is left out."""
        return any(len(used) <= top for used, top in zip(self.kept, self.steps, strict=True))

    @property
    def new_steps(self) -> tuple[int, ...]:
        """Per item, its highest category afterwards."""
        return tuple(len(used) - 1 for used in self.kept)

    @property
    def right(self) -> IndexArray:
        """The old node that is right where a new one is: both stand for the same category."""
        first = np.cumsum(self.steps) - self.steps
        return np.array([first[i] + k - 1 for i, used in enumerate(self.kept) for k in used[1:]])

    @property
    def wrong(self) -> IndexArray:
        """The old node that is wrong where a new one is."""
        first = np.cumsum(self.steps) - self.steps
        return np.array([first[i] + k for i, used in enumerate(self.kept) for k in used[:-1]])

    def fill_gaps(self) -> Recoding:
        """Return a recoding that keeps the categories between used ones too."""
        kept = tuple(tuple(range(used[0], used[-1] + 1)) for used in self.kept)
        return Recoding(self.steps, kept)

    def codes(self) -> Int64Array:
        """Return ``[item, old category]``: the new category; -1 where it was left out."""
        table = np.full((len(self.steps), max(self.steps) + 1), -1, dtype=np.int64)
        for item, used in enumerate(self.kept):
            table[item, list(used)] = np.arange(len(used))
        return table


def keep_used(categories: Int64Array, steps: Sequence[int]) -> Recoding:
    """Keep the categories that somebody used; where there is one, a neighbour of it too.

    Parameters
    ----------
    categories
        ``[item, category]``: persons in each.
    steps
        Per item, its highest category.
    """
    kept_categories = []
    for totals, n_steps in zip(categories.tolist(), steps, strict=True):
        used = [category for category in range(n_steps + 1) if totals[category]]
        if len(used) < 2:
            lower = max((used or [0])[0] - 1, 0)
            used = [lower, lower + 1]
        kept_categories.append(tuple(used))
    return Recoding(tuple(steps), tuple(kept_categories))


@dataclass(frozen=True, eq=False)
class Locations:
    """The linear map from thresholds of nodes to locations of items.

    A location is the mean of an item's thresholds; the locations of all items have mean zero.

    Attributes
    ----------
    item
        The item of every node that has a number, in ascending order.
    steps
        Per item, how many steps it has.
    centred
        Whether the mean of the locations is zero; anchors keep their own.

    Examples
    --------
    >>> Locations(np.array([0, 1, 1]), (1, 2)).find(np.array([1.0, 2.0, 4.0])).tolist()
    [-1.0, 1.0]
    """

    item: IndexArray
    steps: tuple[int, ...]
    centred: bool = True

    @cached_property
    def whole(self) -> IndexArray:
        """The items all of whose steps have a number: the others have no location."""
        n_known = np.bincount(self.item, minlength=len(self.steps))
        return np.flatnonzero(n_known == np.array(self.steps))

    def average(self, values: FloatArray) -> FloatArray:
        """Return the mean over the steps of every whole item; nodes are the first axis."""
        present, first = np.unique(self.item, return_index=True)
        sums = np.add.reduceat(values, first, axis=0)[np.isin(present, self.whole)]
        steps = np.array(self.steps, dtype=np.float64)[self.whole]
        return np.asarray(sums / steps.reshape(-1, *[1] * (values.ndim - 1)))

    def centre(self, values: FloatArray) -> FloatArray:
        """Return values of nodes with the mean location at zero."""
        if not self.centred:
            return values
        return np.asarray(values - self.average(values).mean(axis=0))

    def find(self, values: FloatArray) -> FloatArray:
        """Return the locations of the whole items, with mean zero."""
        means = self.average(values)
        return np.asarray(means - means.mean(axis=0)) if self.centred else means

    def as_columns(self) -> FloatArray:
        """Return the map itself, ``[node, whole item]``: every location as a sum over nodes."""
        share = np.equal(self.item[:, None], self.whole) / np.array(self.steps)[self.whole]
        share -= share.mean(axis=1, keepdims=True)
        return np.asarray(share)


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """How often one object was preferred to another: all that both estimators need to know.

    An object that is hard to beat is like an item that is hard to answer: where i loses to j, i is
    the item that is right and j the one that is wrong. So ``right_wrong[i, j]`` is "i lost to j",
    and the difficulty that the estimators find is the strength. A type of its own, and not
    :class:`discreet.PairCounts`: there the pairs of one person belong together through the
    person's ability, and standard errors are made for that.

    Attributes
    ----------
    items
        Names of the objects, in the order of rows and columns.
    wins
        ``wins[i, j]``: comparisons (or the sum of their judges' integer weights) in which i beat
        j. The diagonal is zero.
    compared, won
        Per object, in how many comparisons it was and how many it won; never weighted.
    judges
        How many judges were counted.
    """

    items: tuple[str, ...]
    wins: Int64Array
    compared: Int64Array
    won: Int64Array
    judges: int

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.wins.shape != (m, m) or self.compared.shape != (m,) or self.won.shape != (m,):
            raise BadUsage(
                f"wins among {m} objects must be a {m} x {m} matrix, found {self.wins.shape}"
            )
        for array in (self.wins, self.compared, self.won):
            array.setflags(write=False)

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        if self.items != other.items:
            raise BadResponses(
                "these counts are about different objects, or the same in another order; bring "
                "both to one list with Comparisons.select before counting"
            )
        totals = (self.wins + other.wins, self.compared + other.compared, self.won + other.won)
        return ComparisonCounts(self.items, *totals, self.judges + other.judges)

    # The names under which the chain, the estimators and the mechanisms look for the same.

    @property
    def right_wrong(self) -> Int64Array:
        """Losses: ``right_wrong[i, j]`` is how often i lost to j."""
        return self.wins.T

    @property
    def answers(self) -> Int64Array:
        """How often each object was compared."""
        return self.compared

    @property
    def right(self) -> Int64Array:
        """How often each object lost."""
        return self.compared - self.won

    @property
    def persons(self) -> int:
        """How many judges."""
        return self.judges
