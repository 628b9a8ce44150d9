"""Compiled loops of the models; imported only where there are many items.

Elimination in a band, where ``band[i, j - i + width]`` is the rate from i to j. Importing this
module loads numba.
"""

from __future__ import annotations

import numpy as np

from discreet.jit import compiled_loop
from discreet.types import Vector

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@compiled_loop
def eliminate_band(band: Vector, width: int) -> None:
    """Eliminate the states from the last to the second, in place.

    Afterwards the column of k above the diagonal holds the expected visits to k between
    visits to lower states.
    """
    for k in range(band.shape[0] - 1, 0, -1):
        low = max(0, k - width)
        source = band[k, low - k + width : width]
        leaving = 0.0
        for rate in source:
            leaving += rate
        for i in range(low, k):
            visits = band[i, k - i + width] / leaving
            band[i, k - i + width] = visits
            if visits > 0.0:
                target = band[i, low - i + width : k - i + width]
                for j in range(len(source)):
                    target[j] += visits * source[j]


@compiled_loop
def substitute_band(band: Vector, width: int, log_weights: Vector) -> None:
    """Fill in the log of the stationary vector, first state first."""
    for k in range(1, band.shape[0]):
        low = max(0, k - width)
        peak = -np.inf
        for i in range(low, k):
            peak = max(peak, log_weights[i])
        total = 0.0
        for i in range(low, k):
            visits = band[i, k - i + width]
            if visits > 0.0:
                total += np.exp(log_weights[i] - peak) * visits
        log_weights[k] = peak + np.log(total)
