"""Compiled loops of the models; imported only where there are many items or answers.

Symmetric functions, one pattern after the other: the same sums as the array code in
:mod:`discreet.models.symmetric`, which is the reference. Elimination in a band, where
``band[i, j - i + width]`` is the rate from i to j. Importing this module loads numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.jit import compiled_loop


@compiled_loop
def add_near(
    items: Any, right: Any, wrong: Any, mass: Any, counts: Any, expected: Any, information: Any
) -> None:
    """Add expected right answers, and minus the links, of all patterns to the sums."""
    k = items.shape[1]
    others, both = np.zeros((k, k)), np.zeros((k, k))
    back, before = np.zeros((k + 1, k + 2)), np.zeros(k + 1)
    for g in range(items.shape[0]):
        p, q = right[g], wrong[g]
        for r in range(k + 1):
            back[k, r] = counts[g, r] / mass[g, r] if counts[g, r] > 0 else 0.0
        for j in range(k - 1, -1, -1):
            for t in range(k + 1):
                back[j, t] = q[j] * back[j + 1, t] + p[j] * back[j + 1, t + 1]
        before[:] = 0.0
        before[0] = 1.0
        for j in range(k):
            for i in range(j):
                row, later = others[i], back[j + 1]
                meet = 0.0
                for t in range(j):
                    meet += row[t] * later[t + 2]
                both[i, j] = meet * p[i] * p[j]
                row[j] = row[j - 1] * p[j]
                for t in range(j - 1, 0, -1):
                    row[t] = row[t] * q[j] + row[t - 1] * p[j]
                row[0] *= q[j]
            for t in range(j + 1):
                others[j, t] = before[t]
            before[j + 1] = before[j] * p[j]
            for t in range(j, 0, -1):
                before[t] = before[t] * q[j] + before[t - 1] * p[j]
            before[0] *= q[j]
        for r in range(1, k):
            if counts[g, r] > 0:
                weight = counts[g, r] / mass[g, r]
                for j in range(k):
                    share = p[j] * others[j, r - 1]
                    expected[items[g, j]] += weight * share
                    for i in range(j):
                        product = p[i] * others[i, r - 1] * share
                        both[i, j] -= weight * product / mass[g, r]
        for j in range(k):
            for i in range(j):
                information[items[g, i], items[g, j]] += both[i, j]
                information[items[g, j], items[g, i]] += both[i, j]


# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@compiled_loop
def eliminate_band(band, width):
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
def substitute_band(band, width, log_weights):
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
