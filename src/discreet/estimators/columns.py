"""Solve one sparse Laplacian for many right-hand sides, within a few digits.

In: a Laplacian with sparse weights, columns with mean zero. Out: columns. No matrix between all
items is built: all columns go through conjugate gradients together, so that the weights are read
from memory once a round, with groups of items where the links are bad.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.errors import NotConverged
from discreet.estimators.laplacian import Laplacian
from discreet.stationary.hierarchy import Hierarchy

__all__ = ["ColumnSolver"]

FloatArray = npt.NDArray[np.float64]

COLUMN_TOL = 1e-4
"""Energy of an error relative to that of its solution, as the approximate inverse measures it:
far below the sampling error of a standard error."""
FEW_ROUNDS = 40
"""Rounds with diagonal scaling that well linked items need at most."""
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
            found = self._iterate(columns, lambda rest: scale * rest, FEW_ROUNDS)
            if found is not None:
                return found
            self._groups = Hierarchy(self._laplacian.weights)
        found = self._iterate(columns, self._groups.apply, MANY_ROUNDS)
        if found is None:
            raise NotConverged(
                f"conjugate gradients over {len(columns)} items stopped after {MANY_ROUNDS} "
                "rounds; some items hang on the others by very few answers: remove them"
            )
        return found

    def _iterate(
        self, columns: FloatArray, approximate: Callable[[FloatArray], FloatArray], rounds: int
    ) -> FloatArray | None:
        rest = columns - columns.mean(axis=0)
        found = np.zeros_like(rest)
        move = approximate(rest)
        energy = _inner(rest, move)
        enough = COLUMN_TOL**2 * energy
        for _ in range(rounds):
            flow = self._laplacian.apply(move)
            length = energy / np.maximum(_inner(move, flow), TINY)
            found += length * move
            rest -= length * flow
            scaled = approximate(rest)
            before, energy = energy, _inner(rest, scaled)
            if (energy <= enough).all():
                return np.asarray(found - found.mean(axis=0))
            move = scaled + energy / np.maximum(before, TINY) * move
        return None


def _inner(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", one, other))
