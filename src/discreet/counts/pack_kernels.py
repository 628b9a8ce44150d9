"""Compiled loops that pack and cap answers; imported only where the input is large.

In: blocks of answers in the layout they came in. Out: words of bit planes. Nothing here
raises: a loop reports that something is wrong, and the caller finds the place with NumPy.
Arrays that are only read are passed read-only, so that each loop is compiled once a type.

The vector instructions, 64 answers at a time, are written as LLVM code: left to itself the
compiler uses half-width vectors and falls back to single cells at the end of every row; spelled
out, packing runs at the speed of memory. LLVM turns these vectors into whatever the processor
has, so nothing here depends on AVX-512.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"
# ruff: noqa: ARG001 - numba reads the arguments of an intrinsic from its signature


LANES = 64
LINE = 8  # words of 8 bytes in a cache line

OCTET, WORD, INDEX = ir.IntType(8), ir.IntType(64), ir.IntType(32)


@intrinsic
def ones_in(_typing, word):
    """Return how many bits of a word are set."""

    def generate(context, builder, _signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _splat(element, value):
    return ir.Constant(ir.VectorType(element, LANES), [value] * LANES)


def _load(builder, base, offset, element, lanes=LANES):
    vector = ir.VectorType(element, lanes)
    pointer = builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = 1
    return loaded


def _array(context, builder, array_type, value):
    return context.make_array(array_type)(context, builder, value)


def _weave(builder, low, high):
    """Take the lanes of two vectors in turn."""
    lanes = low.type.count
    order = [k // 2 + (lanes if k % 2 else 0) for k in range(2 * lanes)]
    picks = ir.Constant(ir.VectorType(INDEX, 2 * lanes), order)
    return builder.shuffle_vector(low, high, picks)


def _compare(builder, cells, number):
    """Return masks: the cell is 1, it is 0, and it is neither of them nor missing."""
    element = cells.type.element
    if isinstance(number, types.Float):
        right = builder.fcmp_ordered("==", cells, _splat(element, 1.0))
        wrong = builder.fcmp_ordered("==", cells, _splat(element, 0.0))
        minus = builder.fcmp_ordered("==", cells, _splat(element, -1.0))
        missing = builder.or_(minus, builder.fcmp_unordered("uno", cells, cells))
        fine = builder.or_(missing, builder.or_(right, wrong))
        return right, wrong, builder.not_(fine)
    right = builder.icmp_unsigned("==", cells, _splat(element, 1))
    wrong = builder.icmp_unsigned("==", cells, _splat(element, 0))
    # -1, 0 and 1 become 0, 1 and 2; everything else is larger as an unsigned number.
    shift = 1 if number.signed else 0
    moved = builder.add(cells, _splat(element, shift))
    return right, wrong, builder.icmp_unsigned(">", moved, _splat(element, 1 + shift))


def _pack_eight_rows(builder, base, offsets, number, element):
    """Return bytes of 8 persons for 64 items, right and wrong, and a mask of bad items."""
    right = wrong = _splat(OCTET, 0)
    bad = _splat(ir.IntType(1), 0)
    for k, offset in enumerate(offsets):
        masks = _compare(builder, _load(builder, base, offset, element), number)
        bit = _splat(OCTET, 1 << k if k < 7 else -128)
        zero = _splat(OCTET, 0)
        right = builder.or_(right, builder.select(masks[0], bit, zero))
        wrong = builder.or_(wrong, builder.select(masks[1], bit, zero))
        bad = builder.or_(bad, masks[2])
    return right, wrong, bad


def _join_octets(builder, octets):
    """Turn 8 vectors of bytes into one vector of words."""
    while len(octets) > 1:
        joined = []
        for k in range(0, len(octets), 2):
            wide = ir.IntType(2 * octets[k].type.element.width)
            woven = _weave(builder, octets[k], octets[k + 1])
            joined.append(builder.bitcast(woven, ir.VectorType(wide, LANES)))
        octets = joined
    return octets[0]


@intrinsic
def pack_strip(_typing, cells, first, right, wrong):
    """Pack 64 persons x 64 items from flat index ``first``; return a mask of bad items."""

    def generate(context, builder, signature, args):
        number = signature.args[0].dtype
        element = context.get_data_type(number)
        source = _array(context, builder, signature.args[0], args[0])
        stride = builder.extract_value(source.shape, 1)
        offset, bad = args[1], _splat(ir.IntType(1), 0)
        octets: tuple[list[ir.Value], list[ir.Value]] = ([], [])
        for _ in range(8):
            offsets = []
            for _ in range(8):
                offsets.append(offset)
                offset = builder.add(offset, stride)
            *packed, odd = _pack_eight_rows(builder, source.data, offsets, number, element)
            bad = builder.or_(bad, odd)
            octets[0].append(packed[0])
            octets[1].append(packed[1])
        for k in range(2):
            target = _array(context, builder, signature.args[2 + k], args[2 + k])
            words = _join_octets(builder, octets[k])
            stored = builder.store(words, builder.bitcast(target.data, words.type.as_pointer()))
            stored.align = 8
        return builder.bitcast(bad, WORD)

    return types.uint64(cells, types.int64, right, wrong), generate


@intrinsic
def pack_vector(_typing, values, first):
    """Pack 64 consecutive values; return the words of right, wrong and bad ones."""

    def generate(context, builder, signature, args):
        number = signature.args[0].dtype
        source = _array(context, builder, signature.args[0], args[0])
        cells = _load(builder, source.data, args[1], context.get_data_type(number))
        words = [builder.bitcast(mask, WORD) for mask in _compare(builder, cells, number)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 3)(values, types.int64), generate


@intrinsic
def write_lines(_typing, lines, item, plane, word):
    """Turn 8 words x 8 items around and write one cache line per item, past the cache.

    A plain store would first read the line that it is about to overwrite.
    """

    def generate(context, builder, signature, args):
        source = _array(context, builder, signature.args[0], args[0])
        target = _array(context, builder, signature.args[2], args[2])
        width = builder.extract_value(source.shape, 1)
        words = builder.extract_value(target.shape, 1)
        rows = [builder.add(builder.mul(width, ir.Constant(WORD, k)), args[1]) for k in range(LINE)]
        parts = [_load(builder, source.data, row, WORD, LINE) for row in rows]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [_weave(builder, parts[k], parts[k + half]) for k in range(half)]
        past_cache = builder.module.add_metadata([ir.Constant(INDEX, 1)])
        for k in range(LINE):
            picks = ir.Constant(ir.VectorType(INDEX, LINE), [LINE * k + q for q in range(LINE)])
            line = builder.shuffle_vector(parts[0], parts[0], picks)
            row = builder.mul(builder.add(args[1], ir.Constant(WORD, k)), words)
            address = builder.gep(target.data, [builder.add(row, args[3])])
            stored = builder.store(line, builder.bitcast(address, line.type.as_pointer()))
            stored.align = 64
            stored.set_metadata("nontemporal", past_cache)
        return context.get_dummy_value()

    return types.void(lines, types.int64, plane, types.int64), generate


#: Binary digits of a number of items.
DIGITS = 32


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
        line_items = items // LINE * LINE if aligned and stop - start == LINE else 0
        for item in range(0, line_items, LINE):
            write_lines(lines_right, item, right, at + start)
            write_lines(lines_wrong, item, wrong, at + start)
        for item in range(line_items, items):
            for word in range(start, stop):
                right[item, at + word] = lines_right[word - start, item]
                wrong[item, at + word] = lines_wrong[word - start, item]
    return bad


@compiled_loop
def pack_numbers(values, right, wrong, bad):
    """Pack whole words of 64 values of one column."""
    for word in range(len(right)):
        right[word], wrong[word], bad[word] = pack_vector(values, LANES * word)


@compiled_loop
def order_rows(person, item, is_right, next_entry, items_out, right_out):
    """Sort long rows by person, then item; return whether a pair occurs twice.

    ``next_entry`` holds the start of every person and ends holding the start of the next one.
    """
    for row in range(len(person)):
        spot = next_entry[person[row]]
        items_out[spot] = item[row]
        right_out[spot] = is_right[row]
        next_entry[person[row]] = spot + 1
    start = 0
    for stop in next_entry[:-1]:
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
        n_ones = np.uint64(0)
        for word in range(plane.shape[1]):
            n_ones += ones_in(plane[item, word])
        total[item] += n_ones


@compiled_loop
def _add_three(first, second, third):
    """Add three bits in all 64 positions: sum and carry, as in hardware."""
    either = first ^ second
    return either ^ third, (first & second) | (either & third)


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
        for word in range(words):
            ones, a = _add_three(digits[0, word], plane[first, word], plane[first + 1, word])
            ones, b = _add_three(ones, plane[first + 2, word], plane[first + 3, word])
            twos, c = _add_three(digits[1, word], a, b)
            ones, a = _add_three(ones, plane[first + 4, word], plane[first + 5, word])
            ones, b = _add_three(ones, plane[first + 6, word], plane[first + 7, word])
            twos, d = _add_three(twos, a, b)
            digits[0, word], digits[1, word] = ones, twos
            digits[2, word], carry[word] = _add_three(digits[2, word], c, d)
        _add_carry(digits, np.int64(3), first // 8, carry)
    for item in range(items - items % 8, items):
        for word in range(words):
            carry[word] = plane[item, word]
        _add_carry(digits, np.int64(0), item, carry)
    _read_digits(digits, items, total)


@compiled_loop
def _add_carry(digits, digit, before, carry):
    """Add one bit to the digits from ``digit`` on, which so far hold at most ``before``."""
    while before:
        for word in range(len(carry)):
            old = digits[digit, word]
            digits[digit, word] = old ^ carry[word]
            carry[word] &= old
        digit += 1
        before >>= 1
    for word in range(len(carry)):
        digits[digit, word] |= carry[word]


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


@compiled_loop
def add_values(plane, rows, values, total):
    """Set ``total`` to the sum of the values of the persons whose bits are set in some rows.

    ``plane[row, word]``; ``values[person]``; ``total[k]`` is for ``rows[k]``.
    """
    for index in range(len(rows)):
        row = plane[rows[index]]
        row_sum = 0
        for word in range(len(row)):
            left = row[word]
            while left:
                others = left & (left - np.uint64(1))
                row_sum += values[64 * word + np.int64(ones_in((left ^ others) - np.uint64(1)))]
                left = others
        total[index] = row_sum


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
