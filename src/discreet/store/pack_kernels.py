"""Compiled loops that pack answers; imported only where the input is large.

In: blocks of answers in the layout they came in. Out: words of bit planes. Nothing here
raises: a loop reports that something is wrong, and the caller finds the place with NumPy.
Arrays that are only read are passed read-only, so that each loop is compiled once a type.
"""

from __future__ import annotations

import numpy as np

from discreet.jit import compiled_loop
from discreet.store.pack_simd import LANES, LINE, ones_in, pack_strip, pack_vector, write_lines

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


DIGITS = 32
"""Binary digits of a number of items."""


@compiled_loop
def pack_words(cells, words, at, right, wrong, aligned):
    """Pack ``words`` times 64 persons into the planes from word ``at`` on.

    Reads up to 63 cells past the last person, which must exist. Returns non-zero if a cell
    is not 0, 1 or missing. ``aligned``: every 8 words of a plane are one cache line.
    """
    items = cells.shape[1]
    width = (items + LANES - 1) // LANES * LANES
    lines_right = np.empty((LINE, width), dtype=np.uint64)
    lines_wrong = np.empty((LINE, width), dtype=np.uint64)
    bad = np.uint64(0)
    for start in range(0, words, LINE):
        stop = min(start + LINE, words)
        for word in range(start, stop):
            for item in range(0, items, LANES):
                bad |= pack_strip(
                    cells,
                    LANES * word * items + item,
                    lines_right[word - start, item:],
                    lines_wrong[word - start, item:],
                )
        whole = items // LINE * LINE if aligned and stop - start == LINE else 0
        for item in range(0, whole, LINE):
            write_lines(lines_right, item, right, at + start)
            write_lines(lines_wrong, item, wrong, at + start)
        for item in range(whole, items):
            for word in range(start, stop):
                right[item, at + word] = lines_right[word - start, item]
                wrong[item, at + word] = lines_wrong[word - start, item]
    return bad


@compiled_loop
def pack_values(values, right, wrong, bad):
    """Pack whole words of 64 values of one column."""
    for word in range(len(right)):
        right[word], wrong[word], bad[word] = pack_vector(values, LANES * word)


@compiled_loop
def fill_planes(person, item, is_right, right, wrong):
    """Set the bit of every long row; return the index of the first repeated one, or -1."""
    words = right.shape[2]
    for row in range(len(person)):
        word = person[row] // 64
        block = word // words
        bit = np.uint64(1) << np.uint64(person[row] % 64)
        old = right[block, item[row], word % words] | wrong[block, item[row], word % words]
        if old & bit:
            return row
        if is_right[row]:
            right[block, item[row], word % words] |= bit
        else:
            wrong[block, item[row], word % words] |= bit
    return -1


@compiled_loop
def order_rows(person, item, is_right, place, items_out, right_out):
    """Sort long rows by person, then item; return whether a pair occurs twice.

    ``place`` holds the start of every person and ends holding the start of the next one.
    """
    for row in range(len(person)):
        spot = place[person[row]]
        items_out[spot] = item[row]
        right_out[spot] = is_right[row]
        place[person[row]] = spot + 1
    start = 0
    for stop in place[:-1]:
        for spot in range(start + 1, stop):
            key, flag, back = items_out[spot], right_out[spot], spot
            while back > start and items_out[back - 1] > key:
                items_out[back] = items_out[back - 1]
                right_out[back] = right_out[back - 1]
                back -= 1
            items_out[back] = key
            right_out[back] = flag
            if back > start and items_out[back - 1] == key:
                return True
        start = stop
    return False


@compiled_loop
def count_ones(plane, total):
    """Add the bits that are set in ``plane[item, word]`` to ``total[item]``."""
    for item in range(plane.shape[0]):
        found = np.uint64(0)
        for word in range(plane.shape[1]):
            found += ones_in(plane[item, word])
        total[item] += found


@compiled_loop
def _add_three(one, two, three):
    """Add three bits in all 64 positions: sum and carry, as in hardware."""
    either = one ^ two
    return either ^ three, (one & two) | (either & three)


@compiled_loop
def count_persons(plane, total):
    """Set ``total[person]`` to the number of bits of a person in ``plane[item, word]``.

    Eight items are added at a time to binary digits that are kept for 64 persons a word; what
    comes out of the third digit goes on to the higher ones.
    """
    items, words = plane.shape
    digits = np.zeros((DIGITS, words), dtype=np.uint64)
    carry = np.empty(words, dtype=np.uint64)
    for first in range(0, items - items % 8, 8):
        eight = plane[first : first + 8]
        for word in range(words):
            ones, a = _add_three(digits[0, word], eight[0, word], eight[1, word])
            ones, b = _add_three(ones, eight[2, word], eight[3, word])
            twos, c = _add_three(digits[1, word], a, b)
            ones, a = _add_three(ones, eight[4, word], eight[5, word])
            ones, b = _add_three(ones, eight[6, word], eight[7, word])
            twos, d = _add_three(twos, a, b)
            digits[0, word], digits[1, word] = ones, twos
            digits[2, word], carry[word] = _add_three(digits[2, word], c, d)
        _add_carry(digits, 3, first // 8, carry)
    for item in range(items - items % 8, items):
        carry[:] = plane[item]
        _add_carry(digits, 0, item, carry)
    _read_digits(digits, items, total)


@compiled_loop
def _add_carry(digits, lowest, before, carry):
    """Add one bit to the digits from ``lowest`` on, which so far hold at most ``before``."""
    digit = lowest
    while before:
        _half_add(digits[digit], carry)
        digit += 1
        before >>= 1
    digits[digit] |= carry


@compiled_loop
def _half_add(digit, carry):
    for word in range(len(digit)):
        both = digit[word] & carry[word]
        digit[word] ^= carry[word]
        carry[word] = both


@compiled_loop
def _read_digits(digits, largest, total):
    """Write the numbers that the binary digits stand for."""
    for word in range(digits.shape[1]):
        start = 64 * word
        for bit in range(min(64, len(total) - start)):
            total[start + bit] = 0
        digit = 0
        while largest >> digit:
            bits = digits[digit, word]
            for bit in range(min(64, len(total) - start)):
                total[start + bit] += np.int64((bits >> np.uint64(bit)) & np.uint64(1)) << digit
            digit += 1
