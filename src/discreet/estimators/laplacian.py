"""Weighted graph Laplacians: the system matrix of both estimators.

In: symmetric non-negative weights between items (dense or CSR). Out: solutions of
``L x = y`` with mean zero. The weights come from counts; nothing here sees a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import NotConverged

__all__ = ["Factor", "Laplacian", "build_laplacian", "factorise", "invert", "solve"]

FloatArray = npt.NDArray[np.float64]

CG_TOL = 1e-6
"""Relative residual of a conjugate gradient solve; Newton's outer loop corrects the rest."""
CG_ROUNDS = 2000
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

    def apply(self, vector: FloatArray) -> FloatArray:
        """Multiply a vector by the Laplacian."""
        if isinstance(self.weights, np.ndarray):
            return np.asarray(self.diagonal * vector - self.weights @ vector)
        flow = self.weights @ vector + self.weights.T @ vector
        return np.asarray(self.diagonal * vector - flow)

    def lower_triangle(self) -> FloatArray:
        """Return a fresh column-major array whose lower triangle holds the weights."""
        if isinstance(self.weights, np.ndarray):
            return np.array(self.weights, order="F")
        return np.asarray(self.weights.T.toarray(order="F"))


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
    # Only the lower triangle is read, and the array is reused: one matrix in memory.
    matrix = laplacian.lower_triangle()
    np.subtract(laplacian.diagonal.mean() / m, matrix, out=matrix)
    matrix[np.diag_indices(m)] += laplacian.diagonal
    try:
        return _factorise_few(matrix) if m <= PLAIN_ITEMS else _factorise_many(matrix)
    except np.linalg.LinAlgError as error:
        raise NotConverged(
            f"the links between the {m} items are too uneven for double precision ({error}); "
            "some items hang on the others by far too few answers: remove them, or use "
            "method='spectral', which has no such limit"
        ) from error


def _factorise_few(matrix: FloatArray) -> PlainFactor:
    np.linalg.cholesky(matrix)  # raises where the matrix is not safely positive definite
    matrix += np.tril(matrix, -1).T - np.triu(matrix, 1)
    return PlainFactor(matrix)


def _factorise_many(matrix: FloatArray) -> CholeskyFactor:
    from scipy.linalg import cho_factor

    return CholeskyFactor(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False))


def solve(laplacian: Laplacian, rhs: FloatArray) -> FloatArray:
    """Solve ``L x = rhs`` with mean zero, by Cholesky (dense) or conjugate gradients (CSR)."""
    if isinstance(laplacian.weights, np.ndarray):
        return factorise(laplacian).solve(rhs)
    from scipy.sparse.linalg import LinearOperator, cg

    m = len(laplacian.diagonal)
    operator = LinearOperator((m, m), matvec=laplacian.apply, dtype=np.float64)
    scaling = LinearOperator((m, m), matvec=lambda v: v / laplacian.diagonal, dtype=np.float64)
    # The part of the right-hand side along the null space is rounding, and so is anything
    # below the absolute tolerance; neither can be solved for.
    rhs = rhs - rhs.mean()
    floor = ROUNDING * float(np.linalg.norm(laplacian.diagonal))
    solution, failed = cg(operator, rhs, rtol=CG_TOL, atol=floor, maxiter=CG_ROUNDS, M=scaling)
    if failed:
        raise NotConverged(
            f"conjugate gradients over {m} items stopped after {CG_ROUNDS} rounds; "
            "some items hang on the others by very few answers: remove them"
        )
    return np.asarray(solution - solution.mean())


def invert(laplacian: Laplacian) -> FloatArray:
    """Return the pseudo-inverse of a Laplacian as a dense matrix."""
    m = len(laplacian.diagonal)
    centring = np.eye(m) - 1.0 / m
    inverse = factorise(laplacian).solve(centring)
    return np.asarray((inverse + inverse.T) / 2)
