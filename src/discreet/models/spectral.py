"""The spectral estimate: the paper's Algorithm 1.

In: pair counts among linked items. Out: difficulties and how they were found. The chain moves
from i to j with probability ``Y[i, j] / d``; its stationary vector is proportional to exp(b).
The number d makes the rows of M sum to at most one and cancels in ``pi / d`` (step 3), so the
solver works on the counts themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.models.laplacian import Laplacian, build_laplacian
from discreet.models.stationary.hierarchy import upper_triangle
from discreet.models.stationary.solving import solve_stationary
from discreet.results.estimate import Solution
from discreet.types import FloatArray


@dataclass(frozen=True)
class SpectralScoring:
    """What a pair (first right, second wrong) adds to the balance equations of the chain.

    The stationary vector makes the flow ``exp(b_i) Y[i, j]`` out of each item equal the flow
    into it. ``top`` is subtracted from difficulties to keep exp in the range of doubles.
    """

    top: float

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Flow from the item that was right to the item that was wrong."""
        return np.broadcast_to(
            np.exp(right - self.top), np.broadcast_shapes(right.shape, wrong.shape)
        )

    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Half the flow: the pair's share of the symmetrised Laplacian."""
        return self.residual(right, wrong) / 2


def solve_spectral(rates: Any) -> tuple[FloatArray, Solution]:
    """Return the centred log of the stationary vector of the chain with these rates."""
    return solve_stationary(rates)


def balance(rates: Any, difficulty: FloatArray) -> Laplacian:
    """Laplacian of the symmetrised flow: the derivative of the balance equations."""
    weight = np.exp(difficulty - difficulty.max())
    if isinstance(rates, np.ndarray):
        flow = rates * weight[:, None]
        flow = (flow + flow.T) / 2
        np.fill_diagonal(flow, 0.0)
    else:
        data = rates.data * np.repeat(weight / 2, np.diff(rates.indptr))
        flow = upper_triangle(type(rates)((data, rates.indices, rates.indptr), shape=rates.shape))
    return build_laplacian(flow)
