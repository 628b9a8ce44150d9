"""A matrix of counts that is a NumPy array or, where most cells are empty, a sparse one.

In: int64 counts in either form. Out: the same numbers in the form that the rule asks for. The
rule looks at the number of items and of compared pairs only, so that the same answers give the
same form from every engine, merged or counted at once. scipy.sparse is imported only where
there are many items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["add_into", "add_matrices", "grow_matrix", "is_sparse", "move_cells", "prefers_sparse",
           "settle_matrix"]  # fmt: skip

Int64Array = npt.NDArray[np.int64]
PairMatrix = Any
"""``int64[m, m]``, or the same as a scipy.sparse.csr_array with sorted columns and no zeros."""

SPARSE_ITEMS = 2000
"""Items above which counts may be sparse; a dense matrix is 32 MB here."""
SPARSE_FILL = 0.15
"""Share of cells with a count below which sparse counts are smaller and faster to solve."""
LARGE_ITEMS = 20_000
"""Items above which memory decides (a dense matrix is 3.2 GB): a sparse cell takes 12 bytes
instead of 8, so that sparse counts are smaller up to two thirds of the cells."""
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
    known, items = old >= 0, len(old)
    if not is_sparse(matrix) and items <= SPARSE_ITEMS:
        moved = np.zeros((items, items), dtype=np.int64)
        moved[np.ix_(known, known)] = matrix[np.ix_(old[known], old[known])]
        return moved
    from scipy.sparse import coo_array, csr_array

    cells = coo_array(matrix)
    new = np.full(matrix.shape[0], -1, dtype=np.int32)
    new[old[known]] = np.flatnonzero(known)
    # Items that are left out have no counts: nobody answered them.
    place = (new[cells.row], new[cells.col])
    return settle_matrix(csr_array((cells.data, place), shape=(items, items)))
