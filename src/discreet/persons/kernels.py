"""Compiled loops over the answers of very many persons: abilities, and sums of residuals.

Right and wrong answers only. They compute what :mod:`discreet.persons.measures` and
:mod:`discreet.items.fit` compute, answer by answer instead of table by table. Importing
this module loads numba.
"""

from __future__ import annotations

import numpy as np

from discreet.jit import compiled_loop
from discreet.results.limits import FIT_BOUND

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@compiled_loop
def solve_rows(first, stop, indptr, item, b, score, correction, plan, ability, se):
    """Solve for the abilities of the persons ``first`` to ``stop``; the rest stay as they are.

    ``plan`` holds the steps in all, the first and the last of Newton's method, and the tolerance.
    Returns whether all of them settled.
    """
    odds = np.exp(b)
    for person in range(first, stop):
        begin, end = indptr[person], indptr[person + 1]
        answered, right = end - begin, score[person]
        if answered == 0 or (correction == 0.0 and (right == 0 or right == answered)):
            continue
        low, high = b[item[begin]], b[item[begin]]
        for cell in range(begin, end):
            low, high = min(low, b[item[cell]]), max(high, b[item[cell]])
        reach = np.log(2.0 * answered) + 5.0
        low, high = low - reach, high + reach
        theta = (low + high) / 2
        step, settled = 0, False
        while not settled:
            if step >= plan[0]:
                return False
            expected, information, skew, curve = _add_up_chances(
                np.exp(theta), begin, end, item, odds, correction
            )
            value = right - expected + correction * skew / 2
            slope = -information + correction * (curve - skew * skew) / 2
            if value > 0:
                low = theta
            if value < 0:
                high = theta
            moved = theta - value / (slope if slope < 0 else -1.0)
            if not (slope < 0 and low < moved < high and plan[1] <= step < plan[2]):
                moved = (low + high) / 2
            if value == 0:
                moved = theta
            settled = abs(moved - theta) < plan[3]
            theta = moved
            step += 1
        ability[person] = theta
        _, information, _, _ = _add_up_chances(np.exp(theta), begin, end, item, odds, 0.0)
        se[person] = 1 / np.sqrt(information)
    return True


@compiled_loop
def _add_up_chances(own, begin, end, item, odds, correction):
    """Return sums of chances and variances, and Warm's two quotients where they are asked for."""
    expected, information, skew, curve = 0.0, 0.0, 0.0, 0.0
    if correction == 0.0:
        for cell in range(begin, end):
            chance = own / (own + odds[item[cell]])
            expected += chance
            information += chance * (1 - chance)
        return expected, information, skew, curve
    for cell in range(begin, end):
        chance = own / (own + odds[item[cell]])
        variance = chance * (1 - chance)
        expected += chance
        information += variance
        skew += variance * (1 - 2 * chance)
        curve += variance * (1 - 6 * variance)
    return expected, information, skew / information, curve / information


@compiled_loop
def sum_residuals(first, stop, indptr, item, right, b, ability, used, centre, by_item, by_person):
    """Add up residuals of the persons ``first`` to ``stop`` who are used.

    ``by_item[item, 19]`` and ``by_person[6, person]`` get the sums in the order of ``_Sums``, the
    former also those of ``_Moments`` and ``_BoundedSums`` of :mod:`discreet.items.fit`.
    """
    odds = np.exp(b)
    for person in range(first, stop):
        if not used[person]:
            continue
        own, from_centre = np.exp(ability[person]), ability[person] - centre
        for cell in range(indptr[person], indptr[person + 1]):
            column = item[cell]
            both = own + odds[column]
            chance = own / both
            variance = chance * (odds[column] / both)
            is_right = 1.0 if right[cell] else 0.0
            residual = is_right - chance
            square = residual * residual
            away = ability[person] - b[column]
            parts = (1.0, square, square / variance, variance, (1 - 3 * variance) / variance,
                     variance * (1 - 4 * variance))  # fmt: skip
            sums = by_item[column]
            for place in range(6):
                sums[place] += parts[place]
                by_person[place, person] += parts[place]
            sums[6] += from_centre
            sums[7] += from_centre * from_centre
            sums[8] += is_right
            sums[9] += from_centre * is_right
            sums[10] += chance
            sums[11] += chance * chance
            sums[12] += from_centre * chance
            sums[13] += residual * away
            sums[14] += variance * away * away
            if_right = min((1 - chance) / chance, FIT_BOUND)
            if_wrong = min(chance / (1 - chance), FIT_BOUND)
            expected = chance * if_right + (1 - chance) * if_wrong
            mean_square = chance * if_right * if_right + (1 - chance) * if_wrong * if_wrong
            sums[15] += min(parts[2], FIT_BOUND)
            sums[16] += expected
            sums[17] += mean_square - expected * expected
            sums[18] = max(sums[18], parts[2])
