"""Solve the estimating equations of pairs: Newton steps with a sparse or a dense matrix.

In: pairs, and a linear structure ``thresholds = offset + B phi`` with its constraints. Out: phi
where the gradient is zero, and the solver of the last matrix for standard errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as linalg
import scipy.sparse as sparse

from discreet.errors import LOG, NotConverged
from discreet.models.facets.pairs import RatingPairs
from discreet.types import FloatArray

#: Parameters, and columns, up to which the matrix is factorised: a second at most.
DENSE_PARAMETERS, DENSE_COLUMNS = 1500, 3000


#: Columns of the block that preconditions conjugate gradients: steps, where they are so few.
BLOCK_COLUMNS = 2000


NEWTON_STEPS = 60


#: Logits; a longer Newton step is shortened.
LONGEST_STEP = 3.0


#: Logits that the last step may move any parameter; of many parameters ``LARGE_TOLERANCE``.
TOLERANCE = 1e-9


LARGE_TOLERANCE = 1e-7


#: Logits from zero at which a parameter counts as running away: far beyond what ratings tell.
FARTHEST = 25.0


#: Relative accuracy of conjugate gradients: the first steps are far off anyway.
ROUGH, FINE = 0.1, 1e-4


@dataclass(frozen=True, eq=False)
class LinearStructure:
    """Thresholds of all columns as ``offset + basis @ parameters``.

    Attributes
    ----------
    basis
        ``[column, parameter]``.
    offset
        What is held fixed.
    gauges
        ``[constraint, parameter]``: sums that the ratings do not determine, held at zero.
    block, n_nodes
        How many of the first parameters meet most others, and in how many of the first columns:
        they get a dense block.
    """

    basis: sparse.csr_array
    offset: FloatArray
    gauges: sparse.csr_array
    block: int
    n_nodes: int

    def thresholds(self, parameters: FloatArray) -> FloatArray:
        """Return the thresholds of all columns."""
        return np.asarray(self.offset + self.basis @ parameters)


class SecondDerivatives:
    """Minus the second derivatives at some thresholds.

    Attributes
    ----------
    matrix
        Between the first ``size`` columns; None where these are too many for a matrix.
    """

    def __init__(self, batches: Iterable[RatingPairs], thresholds: FloatArray, size: int) -> None:
        self._batches, self._thresholds = batches, thresholds
        self.matrix: Any = None
        if 0 < size <= DENSE_COLUMNS:
            self.matrix = sum(pairs.second_derivatives(thresholds, size) for pairs in batches)

    def multiply(self, vectors: FloatArray) -> FloatArray:
        """Return the product with vectors ``[column, vector]``."""
        if self.matrix is not None and len(self.matrix) == len(vectors):
            return np.asarray(self.matrix @ vectors)
        return np.asarray(sum(p.multiply(self._thresholds, vectors) for p in self._batches))

    def diagonal(self) -> FloatArray:
        """Return the diagonal, of all columns."""
        return np.asarray(sum(pairs.diagonal(self._thresholds) for pairs in self._batches))


class NormalEquations:
    """Solves ``(B'HB + G'G) x = y``: by factors where small, else by conjugate gradients.

    Attributes
    ----------
    is_dense
        Whether the matrix is factorised.
    information
        The diagonal of ``B'HB``; nearly, where it is not factorised and B adds columns up.
    """

    def __init__(
        self, batches: Iterable[RatingPairs], thresholds: FloatArray, structure: LinearStructure
    ) -> None:
        self._basis = basis = structure.basis
        size = basis.shape[1]
        touched = int(np.flatnonzero(np.diff(basis.indptr)).max(initial=-1)) + 1
        self.is_dense = size <= DENSE_PARAMETERS and touched <= DENSE_COLUMNS
        has_block = max(structure.block, structure.n_nodes) <= BLOCK_COLUMNS
        self._block = size if self.is_dense else structure.block * has_block
        n_columns = touched if self.is_dense else structure.n_nodes * has_block
        self._curvature = SecondDerivatives(batches, thresholds, n_columns)
        leading = basis[:n_columns, : self._block]
        full = np.asarray(leading.T @ (self._curvature.matrix @ leading)) if self._block else None
        if full is not None and self.is_dense:
            information = full.diagonal()
        else:
            information = (basis**2).T @ self._curvature.diagonal()
        scale = max(float(information.mean()) if size else 1.0, 1e-300)
        self.information = np.maximum(information, 1e-12 * scale)
        norms = np.sqrt(np.asarray((structure.gauges**2).sum(axis=1)).ravel())
        self._gauges = sparse.diags_array(np.sqrt(scale) / norms) @ structure.gauges
        if full is not None:
            gauges = self._gauges[:, : self._block]
            full = full + (gauges.T @ gauges).toarray()
            ridge = 1e-13 * full.diagonal().max() if self.is_dense else 1e-9 * full.diagonal()
            self._factor = linalg.cho_factor(full + np.diag(ridge + np.zeros(self._block)))

    def solve(self, vectors: FloatArray, tolerance: float = 1e-8) -> FloatArray:
        """Return the solution for vectors ``[parameter, vector]``."""
        if self.is_dense:
            return np.asarray(linalg.cho_solve(self._factor, vectors)) if self._block else vectors
        # Solve for several right-hand sides at once, each with its own step lengths.
        solution, residual = np.zeros_like(vectors), vectors.copy()
        direction = self._precondition(residual)
        product = (residual * direction).sum(0)
        goal = tolerance * np.sqrt((vectors**2).sum(0)) + 1e-300
        for _ in range(2000):
            image = self._multiply(direction)
            step = product / ((direction * image).sum(0) + 1e-300)
            solution += step * direction
            residual -= step * image
            if (np.sqrt((residual**2).sum(0)) <= goal).all():
                return solution
            ready = self._precondition(residual)
            product, before = (residual * ready).sum(0), product
            direction = ready + product / (before + 1e-300) * direction
        raise NotConverged(
            f"conjugate gradients did not solve the equations of {len(vectors):,} parameters in "
            "2,000 steps. The ratings hardly link some raters or items; leave those out and fit "
            "again."
        )

    def violate(self, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the squared constraints, which inexact steps violate a little."""
        return np.asarray(self._gauges.T @ (self._gauges @ parameters))

    def _multiply(self, vectors: FloatArray) -> FloatArray:
        product = self._basis.T @ self._curvature.multiply(self._basis @ vectors)
        return np.asarray(product + self.violate(vectors))

    def _precondition(self, vectors: FloatArray) -> FloatArray:
        out = vectors / self.information[:, None]
        if self._block:
            out[: self._block] = linalg.cho_solve(self._factor, vectors[: self._block])
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class PairSolution:
    """Where the gradient is zero."""

    thresholds: FloatArray
    equations: NormalEquations
    likelihood: float
    gradient: float
    steps: int


class RunningAway(NotConverged):
    """The ratings do not bound some parameter; ``thresholds`` are the last ones."""

    def __init__(self, message: str, thresholds: FloatArray) -> None:
        super().__init__(message)
        self.thresholds = thresholds


def maximise_pairs(batches: Iterable[Any], structure: LinearStructure) -> PairSolution:
    """Find the parameters at which the gradient of the likelihood is zero.

    ``batches`` are :class:`RatingPairs`, or what else has its scores and second derivatives.
    """
    parameters = np.zeros(structure.basis.shape[1])
    thresholds = structure.thresholds(parameters)
    likelihood, gradient = _score(batches, structure, thresholds)
    length = np.inf
    for number in range(NEWTON_STEPS):
        equations = NormalEquations(batches, thresholds, structure)
        accuracy = 1e-8 if equations.is_dense else min(max(length / 10, FINE), ROUGH)
        target = gradient - equations.violate(parameters)
        step = equations.solve(target[:, None], accuracy)[:, 0]
        length = float(np.abs(step).max(initial=0.0))
        LOG.debug("step %d: likelihood %.6f, longest move %.2e", number, likelihood, length)
        # The next step would move about the square of this one, and what this one leaves.
        left = length if equations.is_dense else length * max(length, accuracy)
        if left < (TOLERANCE if equations.is_dense else LARGE_TOLERANCE):
            thresholds = structure.thresholds(parameters + step)
            likelihood, gradient = _score(batches, structure, thresholds)
            size = float(np.abs(gradient).max(initial=0.0))
            return PairSolution(thresholds, equations, likelihood, size, number + 1)
        step *= min(1.0, LONGEST_STEP / length)
        before = likelihood - 1e-9 * abs(likelihood)
        likelihood = -np.inf
        while not likelihood >= before and np.abs(step).max() > 1e-12:
            thresholds = structure.thresholds(parameters + step)
            likelihood, gradient = _score(batches, structure, thresholds)
            accepted, step = step, step / 2
        parameters = parameters + accepted
        if np.abs(parameters).max(initial=0.0) > FARTHEST:
            break
    raise RunningAway(
        f"after {number + 1} steps some parameter still moved by {length:.2g} logits: the "
        "ratings do not determine a finite value. Look for raters or steps with very few ratings.",
        thresholds,
    )


def _score(
    batches: Iterable[RatingPairs], structure: LinearStructure, thresholds: FloatArray
) -> tuple[float, FloatArray]:
    """Return log-likelihood and gradient of the parameters, over all batches."""
    parts = [pairs.score(thresholds) for pairs in batches]
    gradient = np.sum([part[1] for part in parts], axis=0)
    return sum(part[0] for part in parts), np.asarray(structure.basis.T @ gradient)
