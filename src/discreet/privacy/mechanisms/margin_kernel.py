"""The compiled loop over all pairs of persons; imported only where it is needed.

In: integer weights by (answered, right). Out: the longest moves by the length of their totals.
The formulas are those of `margin_moves`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.types import Int64Array


@njit(cache=True)  # type: ignore[untyped-decorator]
def paired_moves(table: Int64Array, bins: int, symmetric: bool) -> tuple[Int64Array, Int64Array]:
    """Largest moves over all pairs of persons and corners, one per bin of the totals' length.

    ``symmetric``: weights do not change when right and wrong are exchanged; then exchanging them
    in both persons gives the same moves, and half of the pairs can be left out. So can the
    corner x = y = 0, which the corner y = 0 exceeds.
    """
    cap = table.shape[0] - 1
    longest = 1
    for r in range(2, cap + 1):
        for k in range(1, r):
            longest = max(longest, 4 * table[r, k] ** 2 * k * (r - k) * r)
    shift = 0
    while longest >> shift >= bins:
        shift += 1
    totals = np.zeros(bins, np.int64)
    disagreements = np.zeros(bins, np.int64)
    for r in range(2, cap + 1):
        for k in range(1, r // 2 + 1 if symmetric else r):
            w = table[r, k]
            d = w * w * k * (r - k)
            for s in range(2, r + 1):
                for right in range(1, s):
                    v = table[s, right]
                    e = v * v * right * (s - right)
                    x = min(k, s - right)
                    y = min(r - k, right)
                    for corner in range(1, 4):
                        a = x * (corner & 1)
                        b = y * (corner >> 1)
                        t = d * r + e * s
                        t += 2 * w * v * (a * (r - k) * right + b * k * (s - right))
                        f = d + e - 2 * w * v * a * b
                        place = t >> shift
                        totals[place] = max(totals[place], t)
                        disagreements[place] = max(disagreements[place], f)
    return totals, disagreements
