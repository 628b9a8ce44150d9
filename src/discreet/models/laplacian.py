"""Weighted graph Laplacians: the system matrix of both estimators.

In: symmetric non-negative weights between items (dense, or the upper triangle of a CSR array).
Out: solutions of ``L x = y`` with mean zero. The weights come from counts; nothing here sees a
person. Where items are badly linked, groups of items, groups of groups and so on give an
approximate inverse (:class:`Hierarchy`) for conjugate gradients and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.counts.matrix import PairMatrix
from discreet.errors import NotConverged
from discreet.types import FloatArray

LabelArray = npt.NDArray[np.int32]
#: From right-hand sides to solutions.
Solve = Callable[[FloatArray], FloatArray]

#: Relative residual of a conjugate gradient solve; Newton's outer loop corrects the rest.
CG_TOL = 1e-6
CG_ROUNDS = 2000
#: Rounds with diagonal scaling that well linked items need at most; they cost less than a dense
#: factorisation above ``CG_ITEMS``, and about as much as making groups of sparse items.
FEW_ROUNDS = 100
#: Items up to which a dense matrix is always factorised.
CG_ITEMS = 2000
#: Columns of a large matrix changed together, to keep temporary arrays small.
BLOCK_COLUMNS = 256
#: Up to here NumPy solves within a millisecond; scipy.linalg takes 0.2 s to import.
PLAIN_ITEMS = 200
#: Relative size of rounding errors in sums of counts.
ROUNDING = 1e-14
#: Groups that are few enough to be solved for directly.
COARSEST = 1000
#: Groups that are still solved for directly where they cannot be joined any further.
DIRECT_LIMIT = 3000


@dataclass(frozen=True, eq=False)
class Laplacian:
    """``diag(row sums) - weights``; its null space is the constant vector.

    Dense weights are symmetric; of sparse (CSR) weights only the upper triangle is held.
    """

    weights: PairMatrix
    diagonal: FloatArray

    def apply(self, vectors: FloatArray) -> FloatArray:
        """Multiply a vector, or columns, by the Laplacian."""
        product = (self.diagonal if vectors.ndim == 1 else self.diagonal[:, None]) * vectors
        product -= self.weights @ vectors
        if not isinstance(self.weights, np.ndarray):
            product -= self.weights.T @ vectors
        return np.asarray(product)

    def to_dense(self) -> FloatArray:
        """Return the matrix itself."""
        weights = self.weights if isinstance(self.weights, np.ndarray) else self.weights.toarray()
        upper = not isinstance(self.weights, np.ndarray)
        return np.diag(self.diagonal) - (weights + weights.T if upper else weights)

    def rescale(self, vector: FloatArray) -> FloatArray:
        """Divide by the diagonal: the roughest of inverses."""
        return vector / self.diagonal

    def lower_triangle(self) -> FloatArray:
        """Return a fresh column-major array whose lower triangle holds the weights."""
        if isinstance(self.weights, np.ndarray):
            return np.array(self.weights.T, order="F")  # symmetric: no turning
        return np.asarray(self.weights.T.toarray(order="F"))

    def scaled_triangle(self, scale: FloatArray) -> npt.NDArray[np.float32]:
        """Return ``scale_i scale_j weights`` in single precision, as in ``lower_triangle``."""
        if isinstance(self.weights, np.ndarray):
            out = np.empty(self.weights.shape, dtype=np.float32, order="F")
            for start in range(0, len(scale), BLOCK_COLUMNS):
                span = slice(start, start + BLOCK_COLUMNS)
                out[:, span] = self.weights[:, span] * scale[:, None] * scale[span]
            return out
        row = np.repeat(scale, np.diff(self.weights.indptr))
        data = (self.weights.data * row * scale[self.weights.indices]).astype(np.float32)
        kind, parts = type(self.weights), (data, self.weights.indices, self.weights.indptr)
        return np.asarray(kind(parts, shape=self.weights.shape).T.toarray(order="F"))


def build_laplacian(weights: PairMatrix) -> Laplacian:
    """Make the Laplacian of weights: symmetric and dense, or a CSR upper triangle."""
    dense = isinstance(weights, np.ndarray)
    return Laplacian(weights, weights.sum(axis=1) if dense else sum_weights(weights))


def factorise(laplacian: Laplacian) -> Solve:
    """Factorise a dense copy of the Laplacian; solves columns of mean zero."""
    matrix = _lift(laplacian)
    with _explaining_links(len(matrix)):
        if _is_small(laplacian):
            np.linalg.cholesky(matrix)  # raises where it is not safely positive definite
            return lambda rhs: _centre(np.linalg.solve(matrix, rhs))
        find = _cholesky(matrix, lower=True)
        return lambda rhs: _centre(find(rhs))


def _is_small(laplacian: Laplacian) -> bool:
    dense = isinstance(laplacian.weights, np.ndarray)
    return dense and len(laplacian.diagonal) <= PLAIN_ITEMS


def _lift(laplacian: Laplacian) -> FloatArray:
    """Return a fresh array whose lower triangle is that of a positive definite matrix.

    The all-ones direction is the null space; it gets the mean diagonal, which touches no
    solution of mean zero. The array is reused: one matrix in memory.
    """
    matrix = laplacian.lower_triangle()
    np.subtract(laplacian.diagonal.sum() / len(matrix) ** 2, matrix, out=matrix)
    np.einsum("ii->i", matrix)[:] += laplacian.diagonal
    return matrix


@contextmanager
def _explaining_links(items: int) -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise NotConverged(
            f"the links between the {items} items are too uneven for double precision ({error}); "
            "some items hang on the others by far too few answers: remove them, or use "
            "method='spectral', which has no such limit"
        ) from error


def factorise_roughly(laplacian: Laplacian) -> Solve:
    """Factorise in single precision: half the memory and time, about six digits.

    Scaled to a unit diagonal first, so that only the links limit the accuracy, not how
    differently often items were answered. The caller checks a solution.
    """
    scale = 1.0 / np.sqrt(laplacian.diagonal)
    # The scaled null space; giving it the eigenvalue 1 makes the matrix positive definite.
    null = np.sqrt(laplacian.diagonal / laplacian.diagonal.sum()).astype(np.float32)
    matrix = laplacian.scaled_triangle(scale)
    for start in range(0, len(null), BLOCK_COLUMNS):
        block = matrix[:, start : start + BLOCK_COLUMNS]
        np.subtract(np.outer(null, null[start : start + BLOCK_COLUMNS]), block, out=block)
    np.einsum("ii->i", matrix)[:] += 1.0
    try:
        find = _cholesky(matrix, lower=True)
    except np.linalg.LinAlgError as error:
        raise NotConverged(f"the links are too uneven for single precision ({error})") from error

    def solve_columns(rhs: FloatArray) -> FloatArray:
        scaled = np.asarray(rhs * scale[:, None], dtype=np.float32, order="F")
        return _centre(find(scaled, overwrite_b=True) * scale[:, None])

    return solve_columns


def _cholesky(matrix: npt.NDArray[Any], *, lower: bool = False) -> Any:
    """Factorise in place; return the function that solves for right-hand sides."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(matrix, lower=lower, overwrite_a=True, check_finite=False)
    return partial(cho_solve, factor, check_finite=False)


def _centre(columns: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(columns - columns.sum(axis=0) / len(columns))


def centre_covariance(covariance: FloatArray) -> FloatArray:
    """Return the covariance of values less their mean."""
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def solve(laplacian: Laplacian, rhs: FloatArray) -> FloatArray:
    """Solve ``L x = rhs`` with mean zero, by Cholesky (few items) or conjugate gradients."""
    return LaplacianSolver().solve(laplacian, rhs)


class LaplacianSolver:
    """Solve one Laplacian after the other; remembers whether groups of items were needed."""

    def __init__(self) -> None:
        self._groups: Hierarchy | None = None

    def solve(self, laplacian: Laplacian, rhs: FloatArray) -> FloatArray:
        """Solve ``L x = rhs`` with mean zero."""
        if isinstance(laplacian.weights, np.ndarray):
            return _solve_dense(laplacian, rhs)
        approximate = laplacian.rescale if self._groups is None else self._groups.apply
        try:
            return _iterate(laplacian, rhs, approximate, FEW_ROUNDS)
        except NotConverged:
            # Items are badly linked, or weights have changed since the groups were made.
            self._groups = Hierarchy(laplacian.weights)
            return _iterate(laplacian, rhs, self._groups.apply, CG_ROUNDS)


def _solve_dense(laplacian: Laplacian, rhs: FloatArray) -> FloatArray:
    if len(rhs) > CG_ITEMS:
        with suppress(NotConverged):
            return _iterate(laplacian, rhs, laplacian.rescale, FEW_ROUNDS)
    return factorise(laplacian)(rhs)


def _iterate(laplacian: Laplacian, rhs: FloatArray, approximate: Solve, rounds: int) -> FloatArray:
    """Solve by conjugate gradients with an approximate inverse."""
    from scipy.sparse.linalg import LinearOperator, cg

    m = len(laplacian.diagonal)
    operator = LinearOperator((m, m), matvec=laplacian.apply, dtype=np.float64)
    inverse = LinearOperator((m, m), matvec=approximate, dtype=np.float64)
    # The part of the right-hand side along the null space is rounding, and so is anything
    # below the absolute tolerance; neither can be solved for.
    rhs = rhs - rhs.mean()
    floor = ROUNDING * float(np.linalg.norm(laplacian.diagonal))
    solution, failed = cg(operator, rhs, rtol=CG_TOL, atol=floor, maxiter=rounds, M=inverse)
    if failed:
        raise NotConverged(
            f"conjugate gradients over {m} items stopped after {rounds} rounds; "
            "some items hang on the others by very few answers: remove them"
        )
    return _centre(solution)


def invert(laplacian: Laplacian) -> FloatArray:
    """Return the pseudo-inverse of a Laplacian as a dense matrix."""
    m = len(laplacian.diagonal)
    if _is_small(laplacian):
        inverse = factorise(laplacian)(np.eye(m) - 1.0 / m)
        return np.asarray((inverse + inverse.T) / 2)
    from scipy.linalg import cho_factor
    from scipy.linalg.lapack import dpotri

    with _explaining_links(m):
        factor, _ = cho_factor(_lift(laplacian), lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = dpotri(factor, lower=True, overwrite_c=True)
    inverse -= 1.0 / (m * laplacian.diagonal.mean())  # the lifted direction
    for start in range(0, m, BLOCK_COLUMNS):  # only the lower triangle is the inverse
        span = slice(start, start + BLOCK_COLUMNS)
        inverse[span, span] = np.tril(inverse[span, span]) + np.tril(inverse[span, span], -1).T
        inverse[span, span.stop :] = inverse[span.stop :, span].T
    return np.asarray(inverse)


def invert_within(laplacian: Laplacian, basis: FloatArray) -> FloatArray:
    """Return the generalised inverse among the combinations of a basis' columns."""
    return np.asarray(basis @ invert_parameters(laplacian, basis) @ basis.T)


def invert_parameters(laplacian: Laplacian, basis: FloatArray) -> FloatArray:
    """Return the generalised inverse between the parameters of a basis, one a column."""
    within = basis.T @ laplacian.apply(basis)
    return np.asarray(np.linalg.pinv(within, rcond=1e-12, hermitian=True))


class Hierarchy:
    """Additive multilevel preconditioner: diagonal scaling on every level, Cholesky on the last.

    Differences inside a group are left to the items, differences between groups to a much smaller
    problem of the same kind, and the last one is solved exactly. Every item joins the one that it
    is linked to most strongly, so that weak links are bridged only between groups, where they are
    the problem.

    Parameters
    ----------
    weights
        Upper triangle, CSR, of a connected graph.
    """

    def __init__(self, weights: PairMatrix) -> None:
        self._diagonals = [sum_weights(weights)]
        self._labels: list[LabelArray] = []
        self._gathers: list[Any] = []
        while weights.shape[0] > COARSEST:
            count, label = join_strongest(weights, self._diagonals[-1])
            if not 1 < count < weights.shape[0]:
                break
            weights = join_weights(weights, label, count)
            self._labels.append(label)
            self._gathers.append(_gather_groups(label, count))
            self._diagonals.append(sum_weights(weights))
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
        solution = sums[-1] / scale[-1] if self._last is None else self._last(sums[-1])
        for label, diagonal, part in zip(
            reversed(self._labels), scale[-2::-1], sums[-2::-1], strict=True
        ):
            solution = solution[label] + part / diagonal
        return np.asarray(solution)


def symmetrise_flow(rates: PairMatrix, weights: FloatArray) -> PairMatrix:
    """Upper triangle of the mean, over both directions, of the flow ``weights_i rates_ij``."""
    data = rates.data * np.repeat(weights / 2, np.diff(rates.indptr))
    return upper_triangle(type(rates)((data, rates.indices, rates.indptr), shape=rates.shape))


def upper_triangle(rates: PairMatrix) -> PairMatrix:
    """Return ``rates + rates.T`` above the diagonal as a CSR array, without building the rest."""
    row, column = _rows(rates), rates.indices
    above = row < column
    upper = _keep_cells(rates, above)
    lower = _keep_cells(rates, row > column)
    del row, above
    return upper + lower.T.tocsr()


def _keep_cells(rates: PairMatrix, mask: npt.NDArray[np.bool_]) -> PairMatrix:
    running = np.concatenate([[0], np.cumsum(mask)])
    indptr = running[rates.indptr].astype(rates.indptr.dtype)
    parts = rates.data[mask], rates.indices[mask], indptr
    return type(rates)(parts, shape=rates.shape)


def _gather_groups(label: LabelArray, count: int) -> PairMatrix:
    """Return the matrix that adds up the members of every group."""
    from scipy.sparse import csr_array

    order = np.argsort(label, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    return csr_array(
        (np.ones(len(label)), order, starts.astype(np.int32)), shape=(count, len(label))
    )


def sum_weights(weights: PairMatrix) -> FloatArray:
    """Add up the weights of every item, from their upper triangle."""
    sums = weights.sum(axis=1) + weights.sum(axis=0)
    return np.asarray(sums).ravel()


def _rows(weights: PairMatrix) -> LabelArray:
    return np.repeat(np.arange(weights.shape[0], dtype=np.int32), np.diff(weights.indptr))


def join_strongest(weights: PairMatrix, diagonal: FloatArray) -> tuple[int, LabelArray]:
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
    for source, target in ((row, column), (column, row)):
        chosen = strength >= best[source]
        partner[source[chosen]] = target[chosen]
    links = csr_array((np.ones(m, dtype=np.int8), (np.arange(m), partner)), shape=(m, m))
    count, label = connected_components(links, directed=False)
    return int(count), label


def join_weights(weights: PairMatrix, label: LabelArray, count: int) -> PairMatrix:
    """Add up the weights between groups, again as an upper triangle."""
    from scipy.sparse import csr_array

    row, column = label[_rows(weights)], label[weights.indices]
    between = row != column
    row, column = row[between], column[between]
    cells = np.minimum(row, column), np.maximum(row, column)
    return csr_array((weights.data[between], cells), shape=(count, count))


def _factorise(weights: PairMatrix) -> Any:
    matrix = -weights.toarray()
    matrix += matrix.T
    diagonal = -matrix.sum(axis=1)
    np.einsum("ii->i", matrix)[:] += diagonal
    # The null space gets the mean diagonal; sums of residuals over all items are zero.
    matrix += diagonal.mean() / len(matrix)
    return _cholesky(matrix)
