"""Compiled loops that keep the answers with the smallest random keys, person by person.

In: a random key for each answer of each listed person. Out: which answers stay, and the
persons whose keys do not decide, because the last to stay and the first to go are equal.
"""

from __future__ import annotations

import numpy as np

from discreet.counts.pack_kernels import ones_in
from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"


@compiled_loop
def _split_keys(keys, n_kept):
    """Return a number that exactly ``n_kept`` keys do not exceed, or -1 if there is none.

    There is none only if keys are equal. The number is found by halving the range.
    """
    low, high = np.int64(0), np.int64(0xFFFFFFFF)
    while low <= high:
        middle = (low + high) // 2
        limit = np.uint32(middle)
        below = np.uint32(0)
        for key in keys:
            below += np.uint32(key <= limit)
        if below == n_kept:
            return middle
        if below < n_kept:
            low = middle + 1
        else:
            high = middle - 1
    return np.int64(-1)


@compiled_loop
def cap_entries(starts, persons, keys, n_kept, keep):
    """Clear ``keep`` for the entries of the listed persons that go; return the undecided."""
    undecided = np.empty(len(persons), dtype=np.int64)
    count = used = 0
    for person in persons:
        first, stop = starts[person], starts[person + 1]
        person_keys = keys[used : used + stop - first]
        used += stop - first
        limit = _split_keys(person_keys, n_kept)
        if limit < 0:
            undecided[count] = person
            count += 1
        else:
            for entry in range(stop - first):
                keep[first + entry] = person_keys[entry] <= limit
    return undecided[:count]


@compiled_loop
def cap_bits(rows, persons, keys, n_kept):
    """Clear in ``rows[person, word]`` the bits that go; return the undecided persons."""
    undecided = np.empty(len(persons), dtype=np.int64)
    count = used = 0
    for person in persons:
        row = rows[person]
        answered = 0
        for bits in row:
            answered += ones_in(bits)
        person_keys = keys[used : used + answered]
        used += answered
        limit = _split_keys(person_keys, n_kept)
        if limit < 0:
            undecided[count] = person
            count += 1
        else:
            _clear_bits(row, person_keys, limit)
    return undecided[:count]


@compiled_loop
def _clear_bits(row, keys, limit):
    at = 0
    for word in range(len(row)):
        left = row[word]
        kept_bits = np.uint64(0)
        while left:
            others = left & (left - np.uint64(1))
            kept_bits |= (left ^ others) * np.uint64(keys[at] <= limit)
            at += 1
            left = others
        row[word] = kept_bits
