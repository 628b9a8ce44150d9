"""Compiled loops for symmetric functions, one pattern after the other.

In: probabilities and weights of patterns of equal length. Out: the same sums as the array code in
:mod:`discreet.models.symmetric`, which is the reference. Importing this module loads numba.
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
