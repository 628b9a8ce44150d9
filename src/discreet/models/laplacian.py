"""Weighted graph Laplacians: the system matrix of both estimators.

In: symmetric non-negative weights between items (dense or CSR). Out: solutions of
``L x = y`` with mean zero. The weights come from counts; nothing here sees a person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import NotConverged
from discreet.models.stationary.hierarchy import Hierarchy
from discreet.types import FloatArray

CG_TOL = 1e-6
"""Relative residual of a conjugate gradient solve; Newton's outer loop corrects the rest."""
CG_ROUNDS = 2000
FEW_ROUNDS = 100
"""Rounds with diagonal scaling that well linked items need at most; they cost less than a dense
factorisation above ``CG_ITEMS``, and about as much as making groups of sparse items."""
CG_ITEMS = 2000
"""Items up to which a dense matrix is always factorised."""
BLOCK_COLUMNS = 256
"""Columns of a large matrix changed together, to keep temporary arrays small."""
PLAIN_ITEMS = 200
"""Up to here NumPy solves within a millisecond; scipy.linalg takes 0.2 s to import."""
ROUNDING = 1e-14
"""Relative size of rounding errors in sums of counts."""


@dataclass(frozen=True, eq=False)
class Laplacian:
    """``diag(row sums) - weights``; its null space is the constant vector.

    Dense weights are symmetric; of sparse (CSR) weights only the upper triangle is held.
    """

    weights: Any
    diagonal: FloatArray

    def apply(self, vectors: FloatArray) -> FloatArray:
        """Multiply a vector, or columns, by the Laplacian."""
        own = (self.diagonal if vectors.ndim == 1 else self.diagonal[:, None]) * vectors
        own -= self.weights @ vectors
        if not isinstance(self.weights, np.ndarray):
            own -= self.weights.T @ vectors
        return np.asarray(own)

    def lower_triangle(self) -> FloatArray:
        """Return a fresh column-major array whose lower triangle holds the weights."""
        if isinstance(self.weights, np.ndarray):
            return np.array(self.weights, order="F")
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


class Factor(Protocol):
    """A factorised Laplacian plus a multiple of the all-ones matrix."""

    def solve(self, rhs: FloatArray) -> FloatArray:
        """Solve for a right-hand side whose columns have mean zero."""
        ...


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """Cholesky factor, for many items."""

    factor: tuple[FloatArray, bool]

    def solve(self, rhs: FloatArray) -> FloatArray:
        from scipy.linalg import cho_solve

        solution = cho_solve(self.factor, rhs, check_finite=False)
        return np.asarray(solution - solution.mean(axis=0))


@dataclass(frozen=True, eq=False)
class SingleFactor:
    """Cholesky factor of the scaled matrix in single precision, for very many items."""

    factor: tuple[npt.NDArray[np.float32], bool]
    scale: FloatArray

    def solve(self, rhs: FloatArray) -> FloatArray:
        from scipy.linalg import cho_solve

        scaled = np.asarray(rhs * self.scale[:, None], dtype=np.float32, order="F")
        solution = cho_solve(self.factor, scaled, overwrite_b=True, check_finite=False)
        found = solution * self.scale[:, None]
        return np.asarray(found - found.mean(axis=0))


@dataclass(frozen=True, eq=False)
class PlainFactor:
    """The matrix itself, for so few items that loading scipy would take longer."""

    matrix: FloatArray

    def solve(self, rhs: FloatArray) -> FloatArray:
        solution = np.linalg.solve(self.matrix, rhs)
        return np.asarray(solution - solution.mean(axis=0))


def build_laplacian(weights: Any) -> Laplacian:
    """Make the Laplacian of weights: symmetric and dense, or a CSR upper triangle."""
    diagonal = np.asarray(weights.sum(axis=1)).ravel()
    if not isinstance(weights, np.ndarray):
        diagonal = diagonal + np.asarray(weights.sum(axis=0)).ravel()
    return Laplacian(weights, diagonal)


def factorise(laplacian: Laplacian) -> Factor:
    """Factorise a dense copy of the Laplacian."""
    m = len(laplacian.diagonal)
    # The all-ones direction is the null space; giving it the mean diagonal makes the matrix
    # positive definite without touching solutions of mean zero.
    # Only the lower triangle is read (of dense weights all is there), and the array is
    # reused: one matrix in memory.
    matrix = laplacian.lower_triangle()
    np.subtract(laplacian.diagonal.mean() / m, matrix, out=matrix)
    np.einsum("ii->i", matrix)[:] += laplacian.diagonal
    try:
        if m <= PLAIN_ITEMS and isinstance(laplacian.weights, np.ndarray):
            return _factorise_few(matrix)
        return _factorise_many(matrix)
    except np.linalg.LinAlgError as error:
        raise NotConverged(
            f"the links between the {m} items are too uneven for double precision ({error}); "
            "some items hang on the others by far too few answers: remove them, or use "
            "method='spectral', which has no such limit"
        ) from error


def _factorise_few(matrix: FloatArray) -> PlainFactor:
    np.linalg.cholesky(matrix)  # raises where the matrix is not safely positive definite
    return PlainFactor(matrix)


def _factorise_many(matrix: FloatArray) -> CholeskyFactor:
    from scipy.linalg import cho_factor

    return CholeskyFactor(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False))


def factorise_roughly(laplacian: Laplacian) -> SingleFactor:
    """Factorise in single precision: half the memory and time, about six digits.

    Scaled to a unit diagonal first, so that only the links limit the accuracy, not how
    differently often items were answered. The caller checks a solution.
    """
    from scipy.linalg import cho_factor

    scale = 1.0 / np.sqrt(laplacian.diagonal)
    # The scaled null space; giving it the eigenvalue 1 makes the matrix positive definite.
    null = np.sqrt(laplacian.diagonal / laplacian.diagonal.sum()).astype(np.float32)
    matrix = laplacian.scaled_triangle(scale)
    for start in range(0, len(null), BLOCK_COLUMNS):
        block = matrix[:, start : start + BLOCK_COLUMNS]
        np.subtract(np.outer(null, null[start : start + BLOCK_COLUMNS]), block, out=block)
    np.einsum("ii->i", matrix)[:] += 1.0
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as error:
        raise NotConverged(f"the links are too uneven for single precision ({error})") from error
    return SingleFactor(factor, scale)


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
        if self._groups is None:
            try:
                return _iterate(laplacian, rhs, lambda v: v / laplacian.diagonal, FEW_ROUNDS)
            except NotConverged:
                self._groups = Hierarchy(laplacian.weights)
                return _iterate(laplacian, rhs, self._groups.apply, CG_ROUNDS)
        try:
            return _iterate(laplacian, rhs, self._groups.apply, FEW_ROUNDS)
        except NotConverged:
            # The weights have changed since the groups were made.
            self._groups = Hierarchy(laplacian.weights)
            return _iterate(laplacian, rhs, self._groups.apply, CG_ROUNDS)


def _solve_dense(laplacian: Laplacian, rhs: FloatArray) -> FloatArray:
    if len(rhs) <= CG_ITEMS:
        return factorise(laplacian).solve(rhs)
    try:
        return _iterate(laplacian, rhs, lambda v: v / laplacian.diagonal, FEW_ROUNDS)
    except NotConverged:
        return factorise(laplacian).solve(rhs)


def _iterate(
    laplacian: Laplacian,
    rhs: FloatArray,
    approximate: Callable[[FloatArray], FloatArray],
    rounds: int,
) -> FloatArray:
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
    return np.asarray(solution - solution.mean())


def invert(laplacian: Laplacian) -> FloatArray:
    """Return the pseudo-inverse of a Laplacian as a dense matrix."""
    m = len(laplacian.diagonal)
    centring = np.eye(m) - 1.0 / m
    inverse = factorise(laplacian).solve(centring)
    return np.asarray((inverse + inverse.T) / 2)
