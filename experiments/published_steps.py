"""The published spectral method for several categories, for comparison with one chain on nodes.

Nguyen and Zhang (Novel Spectral Algorithms for the Partial Credit Model, ICML 2024) find thresholds
in two phases. First one chain for each level k: from item i to item j at the rate at which persons
are in category k of i and in k - 1 of j; its stationary vector gives the k-th thresholds of all
items up to a constant. Then the constant of every level, against the first one:

    exp(shift_k) = sum e^{d_i1} #{X_i = 1, X_j = k - 1} / sum e^{d_jk} #{X_i = 0, X_j = k},

over all pairs of different items. Of the counts between nodes (item, step) this uses the blocks of
one level, and those between the first level and another for a single number; the rest, pairs of
other levels, it leaves alone. Replaced, because it changes no curve: the power iteration; the
stationary vector is found by elimination here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.models.spectral import solve_stationary

FloatArray = npt.NDArray[np.float64]

REGULARISATION = 0.1
"""Added to both directions of every compared pair of a level, as in the authors' code."""


def fit_levels(right_wrong: npt.NDArray[np.int64], steps: int) -> FloatArray:
    """Return thresholds ``[item, step]`` with mean zero.

    Parameters
    ----------
    right_wrong
        Counts between nodes, item after item and step after step; every item has all the steps.
    steps
        How many steps an item has.
    """
    items = len(right_wrong) // steps
    blocks = right_wrong.reshape(items, steps, items, steps).astype(np.float64)
    levels = [_solve_level(blocks[:, k, :, k]) for k in range(steps)]
    moved = [level + _find_shift(levels[0], level, blocks, k) for k, level in enumerate(levels)]
    thresholds = np.stack(moved, axis=1)
    return np.asarray(thresholds - thresholds.mean())


def _solve_level(counts: FloatArray) -> FloatArray:
    """Thresholds of one level, with mean zero."""
    compared = (counts + counts.T) > 0
    found, _ = solve_stationary(np.where(compared, counts + REGULARISATION, 0.0))
    return np.asarray(found - found.mean())


def _find_shift(first: FloatArray, level: FloatArray, blocks: FloatArray, k: int) -> float:
    """Find how far a level lies above the first one."""
    if k == 0:
        return 0.0
    up = np.exp(first) @ blocks[:, 0, :, k]  # i in category 1, j one below the step
    down = np.exp(level) @ blocks[:, k, :, 0]  # j at the step, i in category 0
    return float(np.log(up.sum() / down.sum()))
