"""Compiled loops over long rows; imported only where there are many.

Nothing here raises: a loop reports that something is not as expected, and the caller takes the
slower way, which explains it. No branch depends on an answer, because a branch that nobody can
predict costs more than all the rest.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["look_up", "mark_answers", "number_runs"]


@njit(nogil=True, cache=True)
def number_runs(person, codes, starts):
    """Give the runs of equal ids numbers from 0; return how many, or -1 if an id is smaller."""
    runs = 1
    codes[0] = 0
    starts[0] = 0
    for row in range(1, len(person)):
        if person[row] != person[row - 1]:
            if person[row] < person[row - 1]:
                return -1
            starts[runs] = row
            runs += 1
        codes[row] = runs - 1
    return runs


@njit(nogil=True, cache=True)
def look_up(ids, table, codes):
    """Set ``codes = table[ids]``; return False at an id without a code."""
    lowest = np.int32(0)
    for row in range(len(ids)):
        number = np.int64(ids[row])
        if number < 0 or number >= len(table):
            return False
        codes[row] = table[number]
        lowest = min(lowest, codes[row])
    return lowest >= 0


@njit(nogil=True, cache=True)
def mark_answers(person, item, value, right, wrong):
    """Set the bit of every answer (1, 0; -1 sets none); return whether one was set before."""
    words = right.shape[2]
    again = np.uint64(0)
    for row in range(len(person)):
        word = person[row] // 64
        block, at = word // words, word % words
        shift = np.uint64(person[row] % 64)
        is_right = np.uint64(value[row] == 1) << shift
        is_wrong = np.uint64(value[row] == 0) << shift
        old_right, old_wrong = right[block, item[row], at], wrong[block, item[row], at]
        again |= (old_right | old_wrong) & (is_right | is_wrong)
        right[block, item[row], at] = old_right | is_right
        wrong[block, item[row], at] = old_wrong | is_wrong
    return again != 0
