"""Power: what mistakes of a test prove, and the smallest fault that they could have shown.

In: an attack, the number of runs. Out: factors by which noise is, or could have been seen to be,
too small. The number of mistakes in both data sets together is a sum of independent coins. Its
lower tail is at most that of the binomial distribution with their mean rate (Hoeffding 1956),
so the promise's rate gives a test that holds whatever the fault is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from discreet.privacy.audit.attacks import Attack
from discreet.privacy.audit.statistics import MATTERS

MISTAKES = 0.001
"""How often an honest mechanism may be refuted: in one of a thousand audits."""

LARGEST_FACTOR = 64.0
FEWEST_RUNS, MOST_RUNS = 200, 20_000


def prove_factor(attack: Attack, mistakes: int, runs: int, chance: float) -> float:
    """Return the factor by which noise is surely too small; below 1 it proves nothing.

    Parameters
    ----------
    mistakes
        Of the test, in ``runs`` runs of each data set.
    chance
        Probability with which the factor may be too large.
    """
    seen = -2 * float(ndtri(highest_rate(mistakes, 2 * runs, chance)))
    return 0.0 if seen <= 0 else _first(lambda factor: attack.permitted(factor) >= seen, 0.0)


def find_detectable(attack: Attack, runs: int, power: float, chance: float) -> float:
    """Return the smallest factor that the attack shows with the wanted power; infinite if none."""
    permitted = float(ndtr(-attack.permitted(1.0) / 2))
    most = int(binom.ppf(chance, 2 * runs, permitted)) - 1  # mistakes that still refute

    def is_seen(factor: float) -> bool:
        rate = float(ndtr(-attack.statistic.separation(factor) / 2))
        return most >= 0 and float(binom.cdf(most, 2 * runs, rate)) >= power

    return _first(is_seen, 1.0) if is_seen(LARGEST_FACTOR) else inf


def choose_runs(attack: Attack, power: float, chance: float) -> int:
    """Return the fewest runs that show a fault that matters with the wanted power, or the most."""
    runs = FEWEST_RUNS
    while runs < MOST_RUNS and find_detectable(attack, runs, power, chance) > MATTERS:
        runs = min(MOST_RUNS, runs + runs // 10)
    return runs


def _first(holds: Callable[[float], bool], low: float) -> float:
    """Bisect for the smallest factor at which something holds; the largest if it never does."""
    high = LARGEST_FACTOR
    if holds(low):
        return low
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def highest_rate(successes: int, runs: int, mistakes: float) -> float:
    """Upper Clopper-Pearson limit of a rate."""
    if successes >= runs:
        return 1.0
    return float(betaincinv(successes + 1, runs - successes, 1 - mistakes))
