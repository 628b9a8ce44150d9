"""Compiled loops over persons and their answers, for the residuals beside this module.

In: answers of whole persons, row after row, and integer tables. Out: integers. A person is one
turn of the outer loop, which reads the own answers and the tables and nothing else.
"""

from __future__ import annotations

from math import sqrt

from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

#: As in the module beside: parts of an answer, bits of a factor, steps of a length.
ANSWER_BITS, FACTOR_BITS, LENGTH_BITS = 14, 10, 20


@compiled_loop
def add_residuals(indptr, item, right, expected, factor, longest, gap, share):
    """Fill in what every answer adds, and what is left of every person's residual.

    Both are 0 for persons with no answer right, or with all of them.
    """
    whole = expected.sum(axis=1)  # of persons with all items
    for person in range(len(indptr) - 1):
        start, stop = indptr[person], indptr[person + 1]
        target = 0
        for answer in range(start, stop):
            target += right[answer]
        if target == 0 or target == stop - start:
            continue
        target <<= ANSWER_BITS
        # The first ability at which as many right answers are expected: sums rise with it.
        place, high = 0, len(expected) - 1
        while place < high:
            middle = (place + high) >> 1
            reached = 0
            if stop - start == len(factor):
                reached = whole[middle]
            else:
                for answer in range(start, stop):
                    reached += expected[middle, item[answer]]
            if reached >= target:
                high = middle
            else:
                place = middle + 1
        square = 0
        for answer in range(start, stop):
            of_item = item[answer]
            off = (right[answer] << ANSWER_BITS) - expected[place, of_item]
            gap[answer] = (off * factor[of_item]) >> FACTOR_BITS
            square += gap[answer] * gap[answer]
        # Slightly less than the quotient, so that rounding never makes a vector too long.
        part = longest * (1 - 2.0**-40) / sqrt(max(square, 1))
        left = int(min(part, 1.0) * 2**LENGTH_BITS)
        square = 0
        for answer in range(start, stop):
            size = (abs(gap[answer]) * left) >> LENGTH_BITS
            gap[answer] = size if gap[answer] > 0 else -size
            square += size * size
        if square > longest * longest:
            left = 0
            for answer in range(start, stop):
                gap[answer] = 0
        share[person] = left


@compiled_loop
def sum_items(indptr, item, gap, fits, cap, answered, residual):
    """Add up by item: answers of persons who fit with no more than the cap, and all they add."""
    for person in range(len(indptr) - 1):
        start, stop = indptr[person], indptr[person + 1]
        if not fits[person]:
            continue
        for answer in range(start, stop):
            residual[item[answer]] += gap[answer]
            answered[item[answer]] += stop - start <= cap
