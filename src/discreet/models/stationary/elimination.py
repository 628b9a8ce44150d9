"""Elimination without subtractions (Grassmann, Taksar and Heyman 1985), on a dense matrix.

Only additions, multiplications and divisions of non-negative numbers are used, so that no
cancellation can spoil an entry however badly the chain is linked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import NotConverged
from discreet.results.estimate import Solution
from discreet.types import FloatArray

PLAIN_LIMIT = 500
"""Up to here elimination is faster than anything that must be checked."""
PANEL = 64
"""States eliminated together; the trailing update is then one matrix product."""


def solve_by_elimination(rates: FloatArray) -> tuple[FloatArray, Solution]:
    """Eliminate one state after the other (GTH), in panels above a few hundred states."""
    work = np.array(rates, dtype=np.float64, order="C")
    np.fill_diagonal(work, 0.0)
    # A common scale keeps products of counts inside the range of doubles.
    work /= work.max()
    if work.shape[0] <= PLAIN_LIMIT:
        name = "elimination (GTH)"
        _eliminate_plain(work)
    else:
        name = f"elimination (GTH) in panels of {PANEL}"
        _eliminate_panels(work)
    log_weights = _substitute(work)
    if not np.isfinite(log_weights).all():
        raise NotConverged(
            f"the stationary vector over {len(work)} items leaves the range of doubles: the "
            "links between some items are weaker than 1e-300 of others; remove those items"
        )
    return log_weights - log_weights.mean(), Solution(name, len(work), 0.0)


def _eliminate_plain(work: FloatArray, lowest: int = 1) -> None:
    """Eliminate the states from the last down to ``lowest``, in place.

    Afterwards ``work[:k, k]`` holds the expected visits to k between visits to lower states.
    """
    for k in range(work.shape[0] - 1, lowest - 1, -1):
        leaving = work[k, :k].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            work[:k, k] /= leaving
        work[:k, :k] += work[:k, k, None] * work[k, :k]


def _eliminate_panels(work: FloatArray) -> None:
    """Eliminate as :func:`_eliminate_plain` does, with the trailing updates as matrix products.

    Inside a panel each row and column receives the updates of the states eliminated before it
    only when its turn comes, as a product of non-negative numbers; no subtraction anywhere.
    """
    top = work.shape[0]
    while top > PLAIN_LIMIT // 2:
        low = top - PANEL
        for k in range(top - 1, low - 1, -1):
            work[k, :k] += work[k, k + 1 : top] @ work[k + 1 : top, :k]
            work[:k, k] += work[:k, k + 1 : top] @ work[k + 1 : top, k]
            with np.errstate(divide="ignore", invalid="ignore"):
                work[:k, k] /= work[k, :k].sum()
        work[:low, :low] += work[:low, low:top] @ work[low:top, :low]
        # The diagonal collects returns to the same state, which elimination never reads.
        top = low
    _eliminate_plain(work[:top, :top])


def _substitute(work: FloatArray) -> FloatArray:
    """Log of the stationary vector from the eliminated matrix, first state first."""
    m = work.shape[0]
    weights = np.ones(m)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, m):
            weights[k] = weights[:k] @ work[:k, k]
    extreme = not (np.isfinite(weights).all() and weights.min() > np.finfo(float).tiny)
    return _substitute_logs(work) if extreme else np.log(weights)


def _substitute_logs(work: FloatArray) -> FloatArray:
    """Do the same in logarithms, for weights further apart than doubles can hold."""
    m = work.shape[0]
    log_weights = np.zeros(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(1, m):
            terms = log_weights[:k] + np.log(work[:k, k])
            peak = terms.max()
            log_weights[k] = peak + np.log(np.exp(terms - peak).sum())
    return log_weights


# Elimination in a narrow band: the exact answer where items are compared with near ones only.
#
# In: sparse rates. Out: the log of the stationary vector, accurate in every entry, or None where no
# order of the items makes the band narrow. Items that are answered together with neighbours in some
# order (grades, chapters, a growing bank) give such bands, and mix slowly. The elimination is that
# above; everything that it fills in stays inside the band.

BAND_CELLS = 125_000_000
"""Cells of a band that may be built: 1 GB."""
BAND_STEPS = 2e11
"""Multiplications, items times the square of the width, that may be made: about two minutes."""


def solve_in_band(rates: Any) -> tuple[FloatArray, Solution] | None:
    """Eliminate item by item in an order that keeps linked items near each other."""
    from discreet.models.stationary.kernels import eliminate_band, substitute_band

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
