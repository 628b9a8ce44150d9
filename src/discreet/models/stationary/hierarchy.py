"""Groups of items, groups of groups and so on: what makes badly linked items solvable.

In: symmetric non-negative weights between items, as the upper triangle of a CSR array. Out: an
approximate inverse of their Laplacian, for conjugate gradients and the like. Differences inside a
group are left to the items, differences between groups to a much smaller problem of the same
kind, and the last one is solved exactly. Every item joins the one that it is linked to most
strongly, so that weak links are bridged only between groups, where they are the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.types import FloatArray

LabelArray = npt.NDArray[np.int32]

COARSEST = 1000
"""Groups that are few enough to be solved for directly."""
DIRECT_LIMIT = 3000
"""Groups that are still solved for directly where they cannot be joined any further."""


class Hierarchy:
    """Additive multilevel preconditioner: diagonal scaling on every level, Cholesky on the last.

    Parameters
    ----------
    weights
        Upper triangle, CSR, of a connected graph.
    """

    def __init__(self, weights: Any) -> None:
        self._diagonals = [_sum_weights(weights)]
        self._labels: list[LabelArray] = []
        self._gathers: list[Any] = []
        while weights.shape[0] > COARSEST:
            count, label = _join_strongest(weights, self._diagonals[-1])
            if not 1 < count < weights.shape[0]:
                break
            weights = _join_weights(weights, label, count)
            self._labels.append(label)
            self._gathers.append(_gather_groups(label, count))
            self._diagonals.append(_sum_weights(weights))
        self._last = None if weights.shape[0] > DIRECT_LIMIT else _factorise(weights)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of items, of groups, of groups of groups and so on."""
        return tuple(len(diagonal) for diagonal in self._diagonals)

    def apply(self, vectors: FloatArray) -> FloatArray:
        """Multiply a vector, or columns, with mean zero by the approximate inverse."""
        sums = [vectors - vectors.mean(axis=0)]
        for gather in self._gathers:
            sums.append(gather @ sums[-1])
        scale = [d if vectors.ndim == 1 else d[:, None] for d in self._diagonals]
        found = sums[-1] / scale[-1] if self._last is None else self._solve(sums[-1])
        for label, diagonal, part in zip(
            reversed(self._labels), scale[-2::-1], sums[-2::-1], strict=True
        ):
            found = np.asarray(found[label] + part / diagonal)
        return found

    def _solve(self, rhs: FloatArray) -> FloatArray:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._last, rhs, check_finite=False))


def upper_triangle(rates: Any) -> Any:
    """Return ``rates + rates.T`` above the diagonal as a CSR array, without building the rest."""
    row, column = _rows(rates), rates.indices
    above = row < column
    upper = _keep_cells(rates, above)
    lower = _keep_cells(rates, row > column)
    del row, above
    return upper + lower.T.tocsr()


def _keep_cells(rates: Any, kept: npt.NDArray[np.bool_]) -> Any:
    running = np.concatenate([[0], np.cumsum(kept)])
    indptr = running[rates.indptr].astype(rates.indptr.dtype)
    parts = rates.data[kept], rates.indices[kept], indptr
    return type(rates)(parts, shape=rates.shape)


def _gather_groups(label: LabelArray, count: int) -> Any:
    """Return the matrix that adds up the members of every group."""
    from scipy.sparse import csr_array

    order = np.argsort(label, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    return csr_array(
        (np.ones(len(label)), order, starts.astype(np.int32)), shape=(count, len(label))
    )


def _sum_weights(weights: Any) -> FloatArray:
    both = weights.sum(axis=1) + weights.sum(axis=0)
    return np.asarray(both).ravel()


def _rows(weights: Any) -> LabelArray:
    return np.repeat(np.arange(weights.shape[0], dtype=np.int32), np.diff(weights.indptr))


def _join_strongest(weights: Any, diagonal: FloatArray) -> tuple[int, LabelArray]:
    """Join every item to the one that it shares the largest part of its weight with."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    m, row, column = len(diagonal), _rows(weights), weights.indices
    scale = 1.0 / np.sqrt(diagonal)
    strength = weights.data * scale[row] * scale[column]
    best = np.zeros(m)
    np.maximum.at(best, row, strength)
    np.maximum.at(best, column, strength)
    partner = np.arange(m)
    for one, other in ((row, column), (column, row)):
        chosen = strength >= best[one]
        partner[one[chosen]] = other[chosen]
    links = csr_array((np.ones(m, dtype=np.int8), (np.arange(m), partner)), shape=(m, m))
    count, label = connected_components(links, directed=False)
    return int(count), label


def _join_weights(weights: Any, label: LabelArray, count: int) -> Any:
    """Add up the weights between groups, again as an upper triangle."""
    from scipy.sparse import csr_array

    row, column = label[_rows(weights)], label[weights.indices]
    between = row != column
    row, column = row[between], column[between]
    cells = np.minimum(row, column), np.maximum(row, column)
    return csr_array((weights.data[between], cells), shape=(count, count))


def _factorise(weights: Any) -> Any:
    from scipy.linalg import cho_factor

    matrix = -weights.toarray()
    matrix += matrix.T
    diagonal = -matrix.sum(axis=1)
    np.einsum("ii->i", matrix)[:] += diagonal
    # The null space gets the mean diagonal; sums of residuals over all items are zero.
    matrix += diagonal.mean() / len(matrix)
    return cho_factor(matrix, overwrite_a=True, check_finite=False)
