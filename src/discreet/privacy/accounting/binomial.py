"""Binomial weights as upper bounds: where the mass lies, and how much lies there.

Used where a privacy curve is an average over something random that has nothing to do with the
answers: how many others' rows look alike (shuffling), how many of a person's pairs are counted
(random graphs).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHT_ERROR", "binomial_tail", "binomial_weights", "binomial_window"]

# Relative error granted to the accumulated logarithms of a window of up to a million weights.
WEIGHT_ERROR = 1e-6


def binomial_window(trials: int, chance: float, lost: float) -> tuple[int, int]:
    """Return a range outside which less than `lost` of a binomial's probability lies.

    Bernstein's inequality, solved for the distance from the mean.
    """
    mean, spread = trials * chance, trials * chance * (1 - chance)
    log_lost = math.log(2 / lost)
    half = log_lost / 3 + math.sqrt((log_lost / 3) ** 2 + 2 * spread * log_lost)
    return max(0, math.floor(mean - half)), min(trials, math.ceil(mean + half))


def binomial_weights(trials: int, odds: float, low: int, high: int) -> NDArray[np.float64]:
    """Return upper bounds on Pr[B = b] for low <= b <= high, up to `WEIGHT_ERROR`.

    Ratios of neighbours are exact and the window's own sum is at most the whole sum, so dividing
    by it errs upward only.
    """
    if low == high:
        return np.ones(1)
    counts = np.arange(low, high, dtype=np.float64)
    logs = np.concatenate(
        ([0.0], np.cumsum(np.log((trials - counts) / (counts + 1)) + math.log(odds)))
    )
    weights = np.exp(logs - logs.max())
    bounds: NDArray[np.float64] = weights / weights.sum()
    return bounds


def binomial_tail(trials: int, chance: float, least: float) -> float:
    """Return Chernoff's bound exp(-trials KL(least / trials, chance)) on Pr[B >= least].

    It holds for every variable whose exponential moments are at most the binomial's, which need
    not be an integer; neither need `least`.

    Examples
    --------
    >>> round(binomial_tail(100, 0.5, 75), 8)
    2.08e-06
    """
    share = least / trials
    if share <= chance:
        return 1.0
    if share >= 1:
        return 0.0 if least > trials else math.exp(trials * math.log(chance) * (1 - 1e-12))
    distance = share * math.log(share / chance)
    distance += (1 - share) * (math.log1p(-share) - math.log1p(-chance))
    # Two terms of opposite sign: what rounding can take away stays below 1e-13 of the larger.
    slack = 1e-13 * abs(share * math.log(share / chance))
    return math.exp(min(0.0, -trials * (distance - slack)))
