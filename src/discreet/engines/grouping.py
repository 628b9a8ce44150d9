"""Put persons of equal weight into the same words, so that a word has one weight.

In: an integer weight per person. Out: for every word its 64 persons and its weight. Persons
of a class that would leave a word nearly empty are taken by binary digits instead: they stand
in one word for every digit of their weight, with others that have that digit.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.responses.loops import compiled_loop
from discreet.responses.packing_vectors import ones_in

__all__ = ["group_persons"]

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
