"""Compiled loops that count pairs; imported only where the answers are many.

In: bit planes or sorted rows. Out: counts added to a matrix that the caller owns. The loops
release the interpreter lock; no two calls write to the same matrix.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.answers.row_kernels import ones_in
from discreet.counts.popcount_tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    count_tile,
    lowest_bit,
    weigh_tile,
)
from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment"


CACHED_ROWS = 48
"""Items whose words stay in the second-level cache while the columns pass by."""


@compiled_loop
def copy_planes(plane, first, stop, out):
    """Put the words of several blocks side by side, ``out[item, word]``, zeros after them."""
    words = plane.shape[2]
    width = out.shape[1]
    for item in range(plane.shape[1]):
        for block in range(first, stop):
            start = (block - first) * words
            for word in range(min(words, width - start)):
                out[item, start + word] = plane[block, item, word]
        for word in range((stop - first) * words, width):
            out[item, word] = 0
    out[plane.shape[1] :] = 0


@compiled_loop
def is_complete(right, wrong, first, stop, persons):
    """Say whether every person of these blocks answered every item."""
    words = right.shape[2]
    for block in range(first, stop):
        whole = min(words, persons // 64 - block * words)
        for item in range(right.shape[1]):
            common = ~np.uint64(0)
            for word in range(whole):
                common &= right[block, item, word] | wrong[block, item, word]
            if common != ~np.uint64(0):
                return False
            if whole < words and persons % 64:
                ends = right[block, item, whole] | wrong[block, item, whole]
                if ends != (np.uint64(1) << np.uint64(persons % 64)) - np.uint64(1):
                    return False
    return True


@compiled_loop
def count_cross(left, right, total):
    """Add ``|left[i] & right[j]|`` to ``total[i, j]`` for every row and column."""
    for start in range(0, left.shape[0], CACHED_ROWS):
        for j in range(0, right.shape[0], TILE_COLUMNS):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                count_tile(left, i, right, j, total)


@compiled_loop
def count_complete(left, first, right, total):
    """Do the same where ``left`` is ``right`` from row ``first`` on, above the diagonal only.

    Tiles that touch the diagonal are counted whole, so a few pairs below it come along.
    """
    for start in range(0, left.shape[0], CACHED_ROWS):
        for j in range(
            (first + start) // TILE_COLUMNS * TILE_COLUMNS, right.shape[0], TILE_COLUMNS
        ):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                if j + TILE_COLUMNS > first + i:
                    count_tile(left, i, right, j, total)


@compiled_loop
def weigh_cross(left, right, weights, total):
    """Do as :func:`count_cross`, the ones of each word times the weight of the word."""
    for start in range(0, left.shape[0], CACHED_ROWS):
        for j in range(0, right.shape[0], TILE_COLUMNS):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                weigh_tile(left, i, right, j, total, weights)


@compiled_loop
def weigh_complete(left, first, right, weights, total):
    """Do as :func:`count_complete`, the ones of each word times the weight of the word."""
    for start in range(0, left.shape[0], CACHED_ROWS):
        for j in range(
            (first + start) // TILE_COLUMNS * TILE_COLUMNS, right.shape[0], TILE_COLUMNS
        ):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                if j + TILE_COLUMNS > first + i:
                    weigh_tile(left, i, right, j, total, weights)


@compiled_loop
def count_right(item, is_right, shift, total):
    """Count the right answers in each strip of ``2^shift`` items."""
    for entry in range(len(item)):
        total[item[entry] >> shift] += is_right[entry]


@compiled_loop
def split_answers(indptr, item, is_right, shift, starts, person_out, item_out, wrong_ptr, wrong):
    """Sort right answers into strips of items, in person order, and collect wrong ones.

    ``starts`` holds where each strip begins and ends holding where the next one begins.
    """
    spot = 0
    for person in range(len(indptr) - 1):
        for entry in range(indptr[person], indptr[person + 1]):
            if is_right[entry]:
                bucket = item[entry] >> shift
                person_out[starts[bucket]] = person
                item_out[starts[bucket]] = item[entry]
                starts[bucket] += 1
            else:
                wrong[spot] = item[entry]
                spot += 1
        wrong_ptr[person + 1] = spot


@compiled_loop
def count_strip(person, item, first, wrong_ptr, wrong, weight, panel):
    """Add every person's weight to the pairs of a right item of this strip and a wrong one."""
    for entry in range(len(person)):
        who = person[entry]
        row = panel[item[entry] - first]
        add = weight[who]
        for spot in range(wrong_ptr[who], wrong_ptr[who + 1]):
            row[wrong[spot]] += add


@compiled_loop
def bound_rows(starts, person, wrong_ptr, most):
    """Bound the cells of each row of the matrix: pairs of answers, and items."""
    for item in range(len(most)):
        pairs = 0
        for entry in range(starts[item], starts[item + 1]):
            who = person[entry]
            pairs += wrong_ptr[who + 1] - wrong_ptr[who]
        most[item] = min(pairs, len(most))


@compiled_loop
def gather_rows(
    first, stop, starts, person, wrong_ptr, wrong, weight, total, seen, column, value, lengths
):
    """Write rows ``first`` to ``stop`` of the matrix, columns in order; return how many cells.

    ``total`` and ``seen`` (a bit per item) are zero before and after.
    """
    spot = 0
    for item in range(first, stop):
        begin, low, high = spot, len(seen), 0
        for entry in range(starts[item], starts[item + 1]):
            who = person[entry]
            add = weight[who]
            here, end = wrong_ptr[who], wrong_ptr[who + 1]
            if add == 0 or here == end:
                continue
            # Items ascend within a person.
            low = min(low, np.int64(wrong[here]) >> 6)
            high = max(high, (np.int64(wrong[end - 1]) >> 6) + 1)
            for place in range(here, end):
                other = np.int64(wrong[place])
                seen[other >> 6] |= np.uint64(1) << np.uint64(other & 63)
                total[other] += add
        for word in range(low, high):
            left = seen[word]
            seen[word] = 0
            while left:
                other = 64 * word + lowest_bit(left)
                column[spot] = other
                value[spot] = total[other]
                total[other] = 0
                spot += 1
                left &= left - np.uint64(1)
        lengths[item] = spot - begin
    return spot


@compiled_loop
def list_answers(right, wrong, place, item_out, right_out):
    """Write the answers of one block as sparse rows; ``place`` is where each person starts."""
    for item in range(right.shape[0]):
        for word in range(right.shape[1]):
            ones = right[item, word]
            left = ones | wrong[item, word]
            while left:
                bit = lowest_bit(left)
                spot = place[64 * word + bit]
                item_out[spot] = item
                right_out[spot] = (ones >> np.uint64(bit)) & np.uint64(1)
                place[64 * word + bit] = spot + 1
                left &= left - np.uint64(1)


# Put persons of equal weight into the same words, so that a word has one weight.
#
# In: an integer weight per person. Out: for every word its 64 persons and its weight. Persons
# of a class that would leave a word nearly empty are taken by binary digits instead: they stand
# in one word for every digit of their weight, with others that have that digit.

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


SIDE = 64
DIGITS = 32
FIRST_ROOM = 1 << 12
"""Places in the first table of weights; a table that fills up is made again, larger."""


def group_persons(
    weights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]:
    """Return ``person[64 * words]`` (-1 is nobody) and ``weight[words]``.

    The weights of a person's words add up to the person's weight.
    """
    room = FIRST_ROOM
    of_person = np.empty(len(weights), dtype=np.int32)
    while (classes := _number_classes(weights, room, of_person)) is None:
        room *= 16
    person, weight = _fill_words(of_person, classes)
    return person, weight


@compiled_loop
def _number_classes(weights, room, of_person):
    """Give each distinct weight a number, in order of appearance; None if there is no room."""
    table = np.full(room, -1, dtype=np.int32)
    found = np.empty(room // 2, dtype=np.int64)
    count = 0
    last_weight, last_class = np.int64(-1), np.int32(-1)
    for person in range(len(weights)):
        weight = weights[person]
        if weight != last_weight:
            # Multiplying by an odd constant near 2^64 over the golden ratio spreads the keys.
            mixed = np.uint64(weight) * np.uint64(0x9E3779B97F4A7C15)
            place = np.int64(mixed >> np.uint64(32)) & (room - 1)
            while table[place] >= 0 and found[table[place]] != weight:
                place = (place + 1) & (room - 1)
            if table[place] < 0:
                if count == len(found):
                    return None
                table[place] = count
                found[count] = weight
                count += 1
            last_weight, last_class = weight, table[place]
        of_person[person] = last_class
    return found[:count].copy()


@compiled_loop
def _fill_words(of_person, classes):
    """Say who stands in which word, and with which weight."""
    members = np.zeros(len(classes), dtype=np.int64)
    for number in of_person:
        members[number] += 1
    # How many members of a class go into words of its own, and where these words begin.
    own = np.empty(len(classes), dtype=np.int64)
    place = np.empty(len(classes), dtype=np.int64)
    by_digit = np.zeros(DIGITS, dtype=np.int64)
    words = 0
    for number in range(len(classes)):
        weight = classes[number]
        own[number] = members[number] if weight else 0
        rest = own[number] % SIDE
        if rest * ones_in(np.uint64(weight)) < SIDE:
            own[number] -= rest
            for digit in range(DIGITS):
                by_digit[digit] += rest * ((weight >> digit) & 1)
        place[number] = SIDE * words
        words += (own[number] + SIDE - 1) // SIDE
    digit_place = np.empty(DIGITS, dtype=np.int64)
    for digit in range(DIGITS):
        digit_place[digit] = SIDE * words
        words += (by_digit[digit] + SIDE - 1) // SIDE
    person = np.full(SIDE * words, -1, dtype=np.int32)
    word_weight = np.zeros(words, dtype=np.uint32)
    for who in range(len(of_person)):
        number = of_person[who]
        weight = classes[number]
        if own[number] > 0:
            own[number] -= 1
            person[place[number]] = who
            word_weight[place[number] // SIDE] = weight
            place[number] += 1
        else:
            for digit in range(DIGITS):
                if (weight >> digit) & 1:
                    person[digit_place[digit]] = who
                    word_weight[digit_place[digit] // SIDE] = 1 << digit
                    digit_place[digit] += 1
    return person, word_weight
