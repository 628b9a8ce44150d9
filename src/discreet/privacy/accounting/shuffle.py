"""What shuffling adds to local randomisation: hiding among the clones.

In: the epsilon of one whole row before shuffling, the number of rows, delta. Out: the epsilon
after shuffling. Valid only when all rows come from one randomiser, that is, when everyone
answers the same public items. Feldman, McMillan and Talwar (2021): Theorem III.1 (closed form)
and Theorem III.2 (the pair of distributions that is evaluated here). Proofs of the numerical
steps: docs/privacy-accounting.md, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from discreet.errors import BadBudget
from discreet.privacy.accounting.binomial import (
    WEIGHT_ERROR,
    binomial_weights,
    binomial_window,
)
from discreet.privacy.accounting.budget import SMALLEST_DELTA, check_epsilon

__all__ = [
    "largest_local_epsilon",
    "shuffled_delta",
    "shuffled_epsilon",
    "shuffled_epsilon_closed_form",
]

# No number of rows hides a row that is this exposed.
LARGEST_LOCAL = 500.0
# More rows than this amplify more, but are counted as this many: the window stays below 2e6.
MOST_PERSONS = 10**9
# Relative error granted to scipy's betainc (tests compare with mpmath).
BETAINC_ERROR = 1e-9
# The number of clones outside a window of this probability is given up as lost.
WINDOW_SHARE = 1e-4


def _check(persons: int, delta: float) -> None:
    if persons < 1:
        raise BadBudget(f"the number of persons must be at least 1, found {persons}.")
    if not SMALLEST_DELTA <= delta < 1:
        raise BadBudget(
            f"shuffling amplifies only with a delta between 0 and 1, found {delta!r}. Give a "
            f"delta, or use randomized response without a shuffler."
        )


def shuffled_epsilon_closed_form(local: float, persons: int, delta: float) -> float:
    """Return epsilon after shuffling by the closed form, never more than `local`.

    log(1 + tanh(local/2) (8 sqrt(e^local ln(4/delta)) / sqrt n + 8 e^local / n)), valid for
    local <= ln(n / (16 ln(2/delta))); beyond, no amplification is claimed.
    """
    _check(persons, delta)
    check_epsilon(local, name="the epsilon of one row")
    reach = persons / (16 * math.log(2 / delta))
    if reach <= 1 or local > math.log(reach) * (1 - 1e-12):
        return local
    growth = math.exp(local)
    clones = 8 * math.sqrt(growth * math.log(4 / delta) / persons) + 8 * growth / persons
    return min(local, math.log1p(math.tanh(local / 2) * clones) * (1 + 1e-12))


def _clone_deltas(counts: NDArray[np.float64], local: float, epsilon: float) -> NDArray[np.float64]:
    """Return delta at `epsilon` given the number of clones.

    Given c clones the pair is (A + D, c - A + 1 - D) against the same with 1 - D, A binomial
    (c, 1/2) and D a coin of bias p = e^local/(1 + e^local); its likelihood ratio grows with the
    first number, so the best event is a tail.
    """
    truth = 1 / (1 + math.exp(-local))
    lie = math.exp(-local) * truth
    growth = math.exp(epsilon)
    gain, loss = truth - growth * lie, growth * truth - lie
    first = np.floor((counts + 1) * (loss / (gain + loss))) + 1  # smallest favourable value
    above, beyond = _half_tail(counts, first - 1), _half_tail(counts, first)
    values = gain * above * (1 + BETAINC_ERROR) - loss * beyond * (1 - BETAINC_ERROR)
    result: NDArray[np.float64] = np.clip(values, 0.0, 1.0)
    return result


def _half_tail(counts: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[binomial(counts, 1/2) >= least]."""
    inside = (least > 0) & (least <= counts)
    tail = np.where(least <= 0, 1.0, 0.0)
    tail[inside] = betainc(least[inside], counts[inside] - least[inside] + 1, 0.5)
    result: NDArray[np.float64] = tail
    return result


def shuffled_delta(local: float, persons: int, epsilon: float, *, lost: float) -> float:
    """Return an upper bound on delta at `epsilon` after shuffling.

    Parameters
    ----------
    local : float
        Epsilon of one whole row.
    persons : int
        Rows that are shuffled together.
    epsilon : float
        Where to evaluate the curve.
    lost : float
        Probability that may be given up for a bounded computation; it is part of the result.
    """
    if epsilon >= local:
        return 0.0
    if local > LARGEST_LOCAL:
        return 1.0
    persons = min(persons, MOST_PERSONS)
    low, high = binomial_window(persons - 1, math.exp(-local), lost)
    counts = np.arange(low, high + 1, dtype=np.float64)
    weights = binomial_weights(persons - 1, 1 / math.expm1(local), low, high)
    inside = float(weights @ _clone_deltas(counts, local, epsilon))
    return min(1.0, inside * (1 + WEIGHT_ERROR) + lost)


def _smallest_passing(passes: Callable[[float], bool], high: float, tol: float) -> float:
    low = 0.0
    while high - low > tol * high:
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def shuffled_epsilon(local: float, persons: int, delta: float) -> float:
    """Return epsilon after shuffling, numerically; never more than `local`.

    Examples
    --------
    >>> shuffled_epsilon(1.0, 10_000, 1e-6) < shuffled_epsilon_closed_form(1.0, 10_000, 1e-6) / 3
    True
    """
    _check(persons, delta)
    check_epsilon(local, name="the epsilon of one row")
    lost = WINDOW_SHARE * delta

    def passes(epsilon: float) -> bool:
        return shuffled_delta(local, persons, epsilon, lost=lost) <= delta

    return _smallest_passing(passes, local, 1e-6)


def largest_local_epsilon(epsilon: float, persons: int, delta: float) -> float:
    """Return the largest epsilon of one row that shuffling brings down to `epsilon`.

    Never less than `epsilon`: without amplification a row may spend all of it.
    """
    _check(persons, delta)
    low = check_epsilon(epsilon)
    lost = WINDOW_SHARE * delta

    def passes(local: float) -> bool:
        return shuffled_delta(local, persons, epsilon, lost=lost) <= delta

    high = low + 1.0
    while passes(high):
        low, high = high, high + 1.0
    while high - low > 1e-6 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
