"""A matrix of counts that is a NumPy array or, where most cells are empty, a sparse one.

In: int64 counts in either form. Out: the same numbers in the form that the rule asks for. The
rule looks at the number of items and of compared pairs only, so that the same answers give the
same form from every engine, merged or counted at once. scipy.sparse is imported only where
there are many items. What would not fit into memory is refused before it is counted.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from discreet.atomic import staged
from discreet.errors import BadUsage, OutOfReach
from discreet.resources import available_memory
from discreet.schema import Along, Count, Distinct, SchemaError, Within, read_as
from discreet.types import Int64Array

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


def settle_matrix(matrix: PairMatrix) -> PairMatrix:
    """Return counts in the form that :func:`prefers_sparse` asks for."""
    items = matrix.shape[0]
    if not is_sparse(matrix):
        if items <= SPARSE_ITEMS or not prefers_sparse(items, int(np.count_nonzero(matrix))):
            return matrix
        return _tidy(matrix)
    matrix = _tidy(matrix)
    return matrix if prefers_sparse(items, matrix.nnz) else matrix.toarray()


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
    total = dense.copy()
    add_into(total, sparse)
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
        if items <= SPARSE_ITEMS or not prefers_sparse(items, int(np.count_nonzero(matrix))):
            return np.pad(matrix, ((0, more), (0, more)))
        matrix = _tidy(matrix)
    indptr = np.pad(matrix.indptr, (0, more), mode="edge")
    return type(matrix)((matrix.data, matrix.indices, indptr), shape=(items, items))


def move_cells(matrix: PairMatrix, old: npt.NDArray[np.int64]) -> PairMatrix:
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
        raise NoRoom(_explain_room(use, steps, pairs, needed, free))


def _explain_room(
    use: MatrixUse, steps: Sequence[int], pairs: int, needed: float, free: float
) -> str:
    nodes, items = sum(steps), len(steps)
    size = f"{items:,} items" if nodes == items else f"{items:,} items with {nodes:,} steps in all"
    helps = _list_remedies(use, steps, pairs, needed) if nodes > items else []
    helps = helps or ["take fewer items"]
    return (
        f"{size} make {nodes:,} x {nodes:,} pairs. {use.name} needs about {_show_size(needed)} of "
        f"memory, and {_show_size(free)} are free here. What helps: {'; '.join(helps)}; or a "
        f"machine with {_name_machine(needed)} of memory"
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


def _name_machine(needed: float) -> str:
    """Return the next size of a machine that leaves a quarter for everything else."""
    size = 8
    while 0.75e9 * size < needed:
        size *= 2
    return f"{size:,} GB"


# Files of pair counts: one NumPy archive, confidential, whole or not at all.
#
# In: a header and arrays, or a path. Out: the same. Version 2 may hold sparse counts and says how
# persons were weighted; version 3 may hold folds and a sketch of persons. All are read.

FORMAT = "discreet-pair-counts"
FORMAT_VERSION = 3
READABLE = (1, 2, 3)
SPARSE_PARTS = ("indptr", "indices", "data")
FOLD_ARRAYS = ("fold_right_wrong", "fold_answers", "fold_persons")
#: Of the arrays that are more than a list.
DIMENSIONS = {"right_wrong": 2, "fold_right_wrong": 3, "fold_answers": 2}
#: Compression level: higher ones took several times as long for a tenth less on counts.
QUICK = 1

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: Path, header: Mapping[str, Any], right_wrong: Any, arrays: Mapping[str, Any]
) -> None:
    """Write a file that only its owner may read; it replaces what is there in one step."""
    parts = {"header": np.array(json.dumps({**_SIGNS, **header})), **arrays}
    if is_sparse(right_wrong):
        parts |= {name: _narrow(getattr(right_wrong, name)) for name in SPARSE_PARTS}
    else:
        parts["right_wrong"] = right_wrong
    parts |= {name: _narrow(parts[name]) for name in FOLD_ARRAYS if name in parts}
    with staged(path.parent, [path.name]) as stage:
        _write_parts(stage / path.name, parts)


_SIGNS = {
    "format": FORMAT,
    "version": FORMAT_VERSION,
    "confidential": "exact counts about persons; do not publish",
}


def _write_parts(file: Path, parts: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write what ``numpy.savez_compressed`` writes, array by array and quickly."""
    options: dict[str, Any] = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": QUICK}
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, array in parts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers in the smallest type that holds them; most counts are small."""
    if array.min(initial=0) < 0 or array.dtype.kind not in "iu":
        return array
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def is_archive(path: Path) -> bool:
    """Say whether a file is one of pair counts, whatever its name."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("header.npy") as member:
            return FORMAT in str(np.lib.format.read_array(member, allow_pickle=False))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return False


@dataclass(frozen=True)
class FoldsHeader:
    """What a file says of its folds of persons."""

    asked: Annotated[int, Within(1, 1 << 20)]
    weighting: str


@dataclass(frozen=True)
class CountsHeader:
    """What a file of counts says beside its arrays; older versions have fewer fields."""

    format: str
    version: int
    items: Annotated[tuple[str | int, ...], Distinct()]
    persons: Count
    confidential: str = ""
    weighting: str = "unknown"
    note: Mapping[str, Any] = field(default_factory=dict)
    repeated: Count = 0
    steps: Annotated[
        tuple[Annotated[int, Within(1, 99)], ...], Along("items", may_be_empty=True)
    ] = ()
    folds: FoldsHeader | None = None

    @property
    def nodes(self) -> int:
        """Rows of the matrix: steps of items."""
        return sum(self.steps) or len(self.items)


def read_archive(path: Path) -> tuple[CountsHeader, Arrays]:
    """Return the header and the arrays of a file, each of its declared type."""
    if not path.exists():
        raise BadUsage(f"There is no file '{path}'. Check the path and the folder you are in.")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in file.files if name != "header"}
    except _UNREADABLE as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
    is_ours = isinstance(header, dict) and header.get("format") == FORMAT
    if not is_ours or header.get("version") not in READABLE:
        raise BadUsage(
            f"{path} is not a file of pair counts in version {READABLE[0]} to {READABLE[-1]}; "
            "write it again with this version of discreet"
        )
    try:
        checked = read_as(CountsHeader, header, "the header")
        return checked, _join_parts(checked, arrays)
    except (SchemaError, TypeError, ValueError) as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error


_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, RecursionError),
    *(zipfile.BadZipFile, zlib.error),
)


def _join_parts(header: CountsHeader, arrays: Arrays) -> Arrays:
    """Check the arrays, and put the parts of sparse counts together again."""
    matrix_parts = ("right_wrong",) if "right_wrong" in arrays else SPARSE_PARTS
    folds = FOLD_ARRAYS if header.folds else ()
    if set(arrays) - {"sketch"} != {"answers", "right", *matrix_parts, *folds}:
        names = ", ".join(sorted(arrays)) or "nothing"
        raise SchemaError(f"it holds {names}")
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" or array.ndim != DIMENSIONS.get(name, 1):
            raise SchemaError(f"{name} is no array of whole numbers of the right shape")
    if "sketch" in arrays:
        arrays["sketch"] = arrays["sketch"].astype(np.uint64)
    if "right_wrong" in arrays:
        return arrays
    from scipy.sparse import csr_array

    data = arrays["data"].astype(np.int64, casting="same_kind")
    shape = (header.nodes, header.nodes)
    matrix = csr_array((data, arrays["indices"], arrays["indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    others = {name: array for name, array in arrays.items() if name not in SPARSE_PARTS}
    return {"right_wrong": matrix, **others}
