"""Solve one sparse Laplacian for many right-hand sides, within a few digits.

In: a Laplacian with sparse weights, columns with mean zero. Out: columns. No matrix between all
items is built: all columns go through conjugate gradients together, so that the weights are read
from memory once a round, with groups of items where the links are bad.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.errors import NotConverged
from discreet.models.laplacian import Hierarchy, Laplacian
from discreet.models.standard_errors import multiply_columns
from discreet.types import FloatArray

#: Energy of an error relative to that of its solution, as the approximate inverse measures it:
#: far below the sampling error of a standard error.
COLUMN_TOL = 1e-4


#: Rounds with diagonal scaling that well linked items need at most.
FEW_ROUNDS = 40


MANY_ROUNDS = 1000


TINY = float(np.finfo(np.float64).tiny)


class ColumnSolver:
    """Conjugate gradients over columns; groups of items are made when they are first needed."""

    def __init__(self, laplacian: Laplacian) -> None:
        self._laplacian = laplacian
        self._groups: Hierarchy | None = None

    def solve(self, columns: FloatArray) -> FloatArray:
        """Solve ``L x = column`` with mean zero for every column."""
        if self._groups is None:
            scale = 1.0 / self._laplacian.diagonal[:, None]
            solved = self._iterate(columns, lambda residual: scale * residual, FEW_ROUNDS)
            if solved is not None:
                return solved
            self._groups = Hierarchy(self._laplacian.weights)
        solved = self._iterate(columns, self._groups.apply, MANY_ROUNDS)
        if solved is None:
            raise NotConverged(
                f"conjugate gradients over {len(columns)} items stopped after {MANY_ROUNDS} "
                "rounds; some items hang on the others by very few answers: remove them"
            )
        return solved

    def _iterate(
        self, columns: FloatArray, approximate: Callable[[FloatArray], FloatArray], rounds: int
    ) -> FloatArray | None:
        residual = columns - columns.mean(axis=0)
        solution = np.zeros_like(residual)
        move = approximate(residual)
        energy = multiply_columns(residual, move)
        enough = COLUMN_TOL**2 * energy
        for _ in range(rounds):
            flow = self._laplacian.apply(move)
            length = energy / np.maximum(multiply_columns(move, flow), TINY)
            solution += length * move
            residual -= length * flow
            scaled = approximate(residual)
            before, energy = energy, multiply_columns(residual, scaled)
            if (energy <= enough).all():
                return np.asarray(solution - solution.mean(axis=0))
            move = scaled + energy / np.maximum(before, TINY) * move
        return None
