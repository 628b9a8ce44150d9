"""Bands for the sizes of tests, on both sides: with too few false alarms power is lost."""

import numpy as np
from scipy import stats

#: Probability that a sound test falls out of its band.
MISSED = 0.001


def is_chance(alarms, studies, level=0.05):
    """Tell whether so many alarms in independent studies are what the level makes of them."""
    low, high = stats.binom.ppf([MISSED / 2, 1 - MISSED / 2], studies, level)
    assert low > 0, "so few studies do not tell a size from zero"
    return bool(low <= alarms <= high)


def is_chance_by_study(shares, level=0.05):
    """Tell whether the mean share of alarms is the level; tests of one study may depend."""
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    assert 3 * error < level, "so few studies do not tell a size from zero"
    return bool(abs(np.mean(shares) - level) <= stats.norm.isf(MISSED / 2) * error)
