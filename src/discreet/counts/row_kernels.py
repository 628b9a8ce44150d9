"""Compiled loops that turn bit planes into rows of bits, one row a person, and back.

In: planes ``[item, word of persons]``. Out: rows ``[person, word of items]``. A square of
64 x 64 bits is turned in six rounds, each of which exchanges halves of ever smaller squares
(the recursive transposition); eight squares go side by side in a vector.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"
# ruff: noqa: ARG001 - numba reads the arguments of an intrinsic from its signature


#: Squares that are turned together: a vector of eight words.
LANES = 8

SIDE = 64

WORD = ir.IntType(64)
VECTOR = ir.VectorType(WORD, LANES)


@intrinsic
def ones_in(_typing, word):
    """Return how many bits of a word are set."""

    def generate(context, builder, _signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _vector_at(context, builder, kind, value, offset):
    """Return a pointer to the eight words from a flat offset of an array on."""
    array = context.make_array(kind)(context, builder, value)
    return builder.bitcast(builder.gep(array.data, [offset]), VECTOR.as_pointer())


@intrinsic
def _copy_eight(_typing, source, offset, target, target_offset):
    """Copy eight words between flat offsets of two arrays without gaps."""

    def generate(context, builder, signature, args):
        kinds = signature.args
        words = builder.load(_vector_at(context, builder, kinds[0], args[0], args[1]), align=8)
        address = _vector_at(context, builder, kinds[2], args[2], args[3])
        builder.store(words, address, align=8)
        return context.get_dummy_value()

    if source.layout != "C" or target.layout != "C":
        return None
    return types.void(source, types.int64, target, types.int64), generate


def _exchange(builder, first, second, width):
    """Exchange the upper bits of the first words with the lower bits of the second ones.

    A word is cut into pieces of ``width`` bits; every other piece moves.
    """
    pieces = sum(((1 << width) - 1) << bit for bit in range(0, SIDE, 2 * width))
    mask, shift = (ir.Constant(VECTOR, [value] * LANES) for value in (pieces, width))
    differ = builder.and_(builder.xor(builder.lshr(first, shift), second), mask)
    return builder.xor(first, builder.shl(differ, shift)), builder.xor(second, differ)


def _three_rounds(stride):
    """Make the instruction for three of the six rounds, on eight rows that lie a stride apart."""

    @intrinsic
    def exchange_rows(_typing, squares, base):
        def generate(context, builder, signature, args):
            pointers = []
            for k in range(8):
                row = builder.add(args[1], ir.Constant(WORD, k * stride))
                offset = builder.mul(row, ir.Constant(WORD, LANES))
                pointers.append(_vector_at(context, builder, signature.args[0], args[0], offset))
            rows = [builder.load(pointer, align=8) for pointer in pointers]
            for apart in (4, 2, 1):
                for low in (k for k in range(8) if not k & apart):
                    high = low + apart
                    rows[low], rows[high] = _exchange(
                        builder, rows[low], rows[high], apart * stride
                    )
            for row, pointer in zip(rows, pointers, strict=True):
                builder.store(row, pointer, align=8)
            return context.get_dummy_value()

        return types.void(squares, types.int64), generate

    return exchange_rows


_exchange_far, _exchange_near = _three_rounds(8), _three_rounds(1)


@compiled_loop
def turn_squares(squares):
    """Turn eight squares of bits in place: ``squares[64, 8]``, one square a column."""
    for base in range(8):
        _exchange_far(squares, base)
    for base in range(0, SIDE, 8):
        _exchange_near(squares, base)


@compiled_loop
def turn_plane(plane, rows, column):
    """Write the bits of ``plane[item, word]`` to ``rows[person, column:]``."""
    items, words = plane.shape
    squares = np.zeros((SIDE, LANES), dtype=np.uint64)
    for start in range(0, words, LANES):
        lanes = min(LANES, words - start)
        for first in range(0, items, SIDE):
            filled = min(SIDE, items - first)
            for k in range(filled):
                if lanes == LANES:
                    _copy_eight(plane, (first + k) * words + start, squares, LANES * k)
                else:
                    for lane in range(lanes):
                        squares[k, lane] = plane[first + k, start + lane]
            for k in range(filled, SIDE):
                for lane in range(LANES):
                    squares[k, lane] = 0
            turn_squares(squares)
            for lane in range(lanes):
                person = SIDE * (start + lane)
                for k in range(min(SIDE, len(rows) - person)):
                    rows[person + k, column + first // SIDE] = squares[k, lane]


@compiled_loop
def turn_back(rows, person, items, out):
    """Write the rows of the listed persons to ``out[plane, item, word]``, 64 persons a word.

    The columns of ``rows`` are shared equally by the planes; person -1 is nobody.
    """
    width = rows.shape[1]
    columns = width // len(out)
    squares = np.zeros((SIDE, LANES), dtype=np.uint64)
    for first in range(0, width, LANES):
        lanes = min(LANES, width - first)
        for word in range(len(person) // SIDE):
            for k in range(SIDE):
                person_code = person[SIDE * word + k]
                if person_code < 0:
                    for lane in range(LANES):
                        squares[k, lane] = 0
                elif lanes == LANES:
                    _copy_eight(rows, width * person_code + first, squares, LANES * k)
                else:
                    for lane in range(lanes):
                        squares[k, lane] = rows[person_code, first + lane]
            turn_squares(squares)
            for lane in range(lanes):
                plane, item = divmod(first + lane, columns)
                target = out[plane, SIDE * item :]
                for k in range(min(SIDE, items - SIDE * item)):
                    target[k, word] = squares[k, lane]


# Compiled loops that keep the answers with the smallest random keys, person by person.
#
# In: a random key for each answer of each listed person. Out: which answers stay, and the
# persons whose keys do not decide, because the last to stay and the first to go are equal.

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


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
