"""Compiled loops over long rows; imported only where there are many.

Nothing here raises: a loop reports that something is not as expected, and the caller takes the
slower way, which explains it. No branch depends on an answer, because a branch that nobody can
predict costs more than all the rest.
"""

from __future__ import annotations

import numpy as np

from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"


@compiled_loop
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


@compiled_loop
def look_up(ids, table, codes):
    """Set ``codes = table[ids]``; return False if an id has no code."""
    low, high = np.int64(0), np.int64(-1)
    for row in range(len(ids)):
        low = min(low, np.int64(ids[row]))
        high = max(high, np.int64(ids[row]))
    if low < 0 or high >= len(table):
        return False
    lowest = np.int32(0)
    for row in range(len(ids)):
        code = table[np.uint64(ids[row])]
        codes[row] = code
        lowest = min(lowest, code)
    return lowest >= 0


@compiled_loop
def look_up_answers(values, item, table, codes):
    """Set ``codes = table[item, values]``; return False if a value has no code there.

    The table is as wide as a power of two.
    """
    width = np.uint64(table.shape[1])
    used_bits, lowest = np.uint64(0), np.int8(0)
    for row in range(len(values)):
        value = np.uint64(values[row])
        used_bits |= value
        code = table[np.uint64(item[row]), value & (width - np.uint64(1))]
        codes[row] = code
        lowest = min(lowest, code)
    return used_bits < width and lowest >= -1


@compiled_loop
def mark_answers(person, item, value, right, wrong, shift, mask):
    """Set the bit of every answer (1, 0; -1 sets none); return whether one was set before.

    ``word >> shift`` is the block of a word of 64 persons and ``word & mask`` its place there:
    a division would take as long as all the rest.
    """
    repeated = np.uint64(0)
    for row in range(len(person)):
        person_code = np.uint64(person[row])
        which = np.uint64(item[row])
        word = person_code >> np.uint64(6)
        block, at = word >> shift, word & mask
        bit = person_code & np.uint64(63)
        is_right = np.uint64(value[row] == 1) << bit
        is_wrong = np.uint64(value[row] == 0) << bit
        old_right, old_wrong = right[block, which, at], wrong[block, which, at]
        repeated |= (old_right | old_wrong) & (is_right | is_wrong)
        right[block, which, at] = old_right | is_right
        wrong[block, which, at] = old_wrong | is_wrong
    return repeated != 0


@compiled_loop
def mark_categories(person, item, value, first, planes, shift, mask):
    """Set the bit of every category (-1 sets none) in the plane ``first[item] + category``."""
    for row in range(len(person)):
        person_code = np.uint64(person[row])
        word = person_code >> np.uint64(6)
        bit = np.uint64(value[row] >= 0) << (person_code & np.uint64(63))
        plane = first[np.uint64(item[row])] + np.uint64(max(value[row], 0))
        planes[word >> shift, plane, word & mask] |= bit
