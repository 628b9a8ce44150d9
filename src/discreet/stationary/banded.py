"""Elimination in a narrow band: the exact answer where items are compared with near ones only.

In: sparse rates. Out: the log of the stationary vector, accurate in every entry, or None where no
order of the items makes the band narrow. Items that are answered together with neighbours in some
order (grades, chapters, a growing bank) give such bands, and mix slowly. The elimination is that
of :mod:`discreet.stationary.elimination`; everything that it fills in stays inside the band.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.stationary.solution import Solution

__all__ = ["solve_in_band"]

FloatArray = npt.NDArray[np.float64]

BAND_CELLS = 125_000_000
"""Cells of a band that may be built: 1 GB."""
BAND_STEPS = 2e11
"""Multiplications, items times the square of the width, that may be made: about two minutes."""


def solve_in_band(rates: Any) -> tuple[FloatArray, Solution] | None:
    """Eliminate item by item in an order that keeps linked items near each other."""
    from discreet.stationary.loops import eliminate_band, substitute_band

    order, width = _order_items(rates)
    m = rates.shape[0]
    if m * (2 * width + 1) > BAND_CELLS or m * float(width) ** 2 > BAND_STEPS:
        return None
    place = np.empty(m, dtype=np.int64)
    place[order] = np.arange(m)
    row = place[np.repeat(np.arange(m), np.diff(rates.indptr))]
    column = place[rates.indices]
    band = np.zeros((m, 2 * width + 1))
    off = row != column
    # A common scale keeps products of counts inside the range of doubles.
    band[row[off], (column - row + width)[off]] = rates.data[off] / rates.data.max()
    eliminate_band(band, width)
    ordered = np.zeros(m)
    substitute_band(band, width, ordered)
    if not np.isfinite(ordered).all():
        return None
    log_weights = ordered[place]
    name = f"elimination (GTH) in a band of {width} items"
    return log_weights - log_weights.mean(), Solution(name, m, 0.0)


def _order_items(rates: Any) -> tuple[npt.NDArray[np.int32], int]:
    """Return an order of the items (Cuthill and McKee), and how far apart linked items are."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = type(rates)(
        (np.ones(rates.nnz, dtype=np.int8), rates.indices, rates.indptr), shape=rates.shape
    )
    order = reverse_cuthill_mckee((pattern + pattern.T).tocsr(), symmetric_mode=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    distance = np.abs(np.repeat(place, np.diff(rates.indptr)) - place[rates.indices])
    return order, int(distance.max(initial=1))
