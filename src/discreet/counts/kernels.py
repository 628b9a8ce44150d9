"""Compiled loops that count pairs, and turn bit planes around; imported where answers are many.

In: bit planes or sorted rows. Out: counts added to a matrix that the caller owns. The loops
release the interpreter lock; no two calls write to the same matrix.

The inner loop is written as LLVM code: a tile of 4 x 6 pairs of items. Every word that is loaded is
used 4 or 6 times while it is in a register. Left to itself the compiler uses half-width vectors on
processors that have AVX-512, a third slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from discreet.counts.pack_kernels import ones_in
from discreet.jit import compiled_loop
from discreet.types import Int32Array, Int64Array

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"
# mypy: disable-error-code="assignment"
# ruff: noqa: ARG001 - numba reads the arguments of an intrinsic from its signature


#: Items whose words stay in the second-level cache while the columns pass by.
CACHED_ROWS = 48
DIGITS = 32
#: Places in the first table of weights; a table that fills up is made again, larger.
FIRST_ROOM = 1 << 12
TILE_ROWS, TILE_COLUMNS = 4, 6

#: Words of a vector; squares of bits that are turned together.
LANES = 8
SIDE = 64

WORD = ir.IntType(64)
VECTOR = ir.VectorType(WORD, LANES)


def _function(builder, name, returned):
    signature = ir.FunctionType(returned, [VECTOR])
    return cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{LANES}i64")


def _row_pointers(context, builder, array_type, value, first, count):
    array = context.make_array(array_type)(context, builder, value)
    width = builder.extract_value(array.shape, 1)
    rows = [builder.add(first, ir.Constant(WORD, k)) for k in range(count)]
    return [builder.gep(array.data, [builder.mul(row, width)]) for row in rows], width


def _load(builder, row, word):
    loaded = builder.load(builder.bitcast(builder.gep(row, [word]), VECTOR.as_pointer()))
    loaded.align = 8
    return loaded


def _load_weights(builder, weights, word):
    """Load one weight a word; the narrow type lets LLVM choose the fast 32-bit product."""
    narrow = ir.VectorType(ir.IntType(32), LANES)
    loaded = builder.load(builder.bitcast(builder.gep(weights, [word]), narrow.as_pointer()))
    loaded.align = 4
    return builder.zext(loaded, VECTOR)


def _sum_words(builder, left, right, words, weights=None):
    """Emit the loop over words; return a vector of counts for every pair of the tile."""
    count_ones = _function(builder, "ctpop", VECTOR)
    zero = ir.Constant(VECTOR, [0] * LANES)
    before = builder.block
    loop, after = (builder.append_basic_block(name) for name in ("tile.loop", "tile.after"))
    builder.branch(loop)
    builder.position_at_end(loop)
    word = builder.phi(WORD)
    word.add_incoming(ir.Constant(WORD, 0), before)
    pairs = [(i, j) for j in range(len(right)) for i in range(len(left))]
    sums = {pair: builder.phi(VECTOR) for pair in pairs}
    left_words = [_load(builder, row, word) for row in left]
    right_words = [_load(builder, row, word) for row in right]
    factor = None if weights is None else _load_weights(builder, weights, word)
    results = {}
    for i, j in pairs:
        ones = builder.call(count_ones, [builder.and_(left_words[i], right_words[j])])
        if factor is not None:
            ones = builder.mul(ones, factor)
        results[i, j] = builder.add(sums[i, j], ones)
        sums[i, j].add_incoming(zero, before)
        sums[i, j].add_incoming(results[i, j], loop)
    following = builder.add(word, ir.Constant(WORD, LANES))
    word.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, words), loop, after)
    builder.position_at_end(after)
    return results


def _add_tile(context, builder, kinds, args, weights=None):
    """Emit a whole tile: ``args`` are left, i, right, j and total."""
    left_rows, words = _row_pointers(context, builder, kinds[0], args[0], args[1], TILE_ROWS)
    right_rows, _ = _row_pointers(context, builder, kinds[2], args[2], args[3], TILE_COLUMNS)
    counts = _sum_words(builder, left_rows, right_rows, words, weights)
    targets, _ = _row_pointers(context, builder, kinds[4], args[4], args[1], TILE_ROWS)
    add_lanes = _function(builder, "vector.reduce.add", WORD)
    for (a, b), vector in counts.items():
        target = builder.gep(targets[a], [builder.add(args[3], ir.Constant(WORD, b))])
        summed = builder.add(builder.load(target), builder.call(add_lanes, [vector]))
        builder.store(summed, target)
    return context.get_dummy_value()


@intrinsic
def count_tile(_typing, left, i, right, j, total, weights):
    """Add the ones in ``left[i + a] & right[j + b]`` to ``total[i + a, j + b]``.

    The number of words must be a positive multiple of 8. With weights (unsigned, 32 bits; None:
    without) the ones of word ``k`` count ``weights[k]`` times.
    """

    def generate(context, builder, signature, args):
        factors = None
        if not isinstance(weights, types.NoneType):
            factors = context.make_array(weights)(context, builder, args[5]).data
        return _add_tile(context, builder, signature.args, args, factors)

    return types.void(left, types.int64, right, types.int64, total, weights), generate


@intrinsic
def lowest_bit(_typing, word):
    """Return the number of the lowest bit that is set; the word must not be zero."""

    def generate(context, builder, _signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


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
        full_words = min(words, persons // 64 - block * words)
        for item in range(right.shape[1]):
            common = ~np.uint64(0)
            for word in range(full_words):
                common &= right[block, item, word] | wrong[block, item, word]
            if common != ~np.uint64(0):
                return False
            if full_words < words and persons % 64:
                ends = right[block, item, full_words] | wrong[block, item, full_words]
                if ends != (np.uint64(1) << np.uint64(persons % 64)) - np.uint64(1):
                    return False
    return True


@compiled_loop
def count_cross(left, right, total, weights):
    """Add ``|left[i] & right[j]|`` to ``total[i, j]`` for every row and column.

    With weights (None: without) the ones of each word count times the weight of the word.
    """
    for start in range(0, left.shape[0], CACHED_ROWS):
        for j in range(0, right.shape[0], TILE_COLUMNS):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                count_tile(left, i, right, j, total, weights)


@compiled_loop
def count_complete(left, first, right, total, weights):
    """Do the same where ``left`` is ``right`` from row ``first`` on, above the diagonal only.

    Tiles that touch the diagonal are counted whole, so a few pairs below it come along.
    """
    for start in range(0, left.shape[0], CACHED_ROWS):
        above = (first + start) // TILE_COLUMNS * TILE_COLUMNS
        for j in range(above, right.shape[0], TILE_COLUMNS):
            for i in range(start, min(start + CACHED_ROWS, left.shape[0]), TILE_ROWS):
                if j + TILE_COLUMNS > first + i:
                    count_tile(left, i, right, j, total, weights)


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
        person_code = person[entry]
        row = panel[item[entry] - first]
        add = weight[person_code]
        for spot in range(wrong_ptr[person_code], wrong_ptr[person_code + 1]):
            row[wrong[spot]] += add


@compiled_loop
def bound_rows(starts, person, wrong_ptr, limits):
    """Bound the cells of each row of the matrix: pairs of answers, and items."""
    for item in range(len(limits)):
        pairs = 0
        for entry in range(starts[item], starts[item + 1]):
            person_code = person[entry]
            pairs += wrong_ptr[person_code + 1] - wrong_ptr[person_code]
        limits[item] = min(pairs, len(limits))


@compiled_loop
def gather_rows(
    first, stop, starts, person, wrong_ptr, wrong, weight, total, used_bits, column, value, lengths
):
    """Write rows ``first`` to ``stop`` of the matrix, columns in order; return how many cells.

    ``total`` and ``used_bits`` (a bit per item) are zero before and after.
    """
    spot = 0
    for item in range(first, stop):
        begin, low, high = spot, len(used_bits), 0
        for entry in range(starts[item], starts[item + 1]):
            person_code = person[entry]
            add = weight[person_code]
            here, end = wrong_ptr[person_code], wrong_ptr[person_code + 1]
            if add == 0 or here == end:
                continue
            # Items ascend within a person.
            low = min(low, np.int64(wrong[here]) >> 6)
            high = max(high, (np.int64(wrong[end - 1]) >> 6) + 1)
            for position in range(here, end):
                wrong_item = np.int64(wrong[position])
                used_bits[wrong_item >> 6] |= np.uint64(1) << np.uint64(wrong_item & 63)
                total[wrong_item] += add
        for word in range(low, high):
            left = used_bits[word]
            used_bits[word] = 0
            while left:
                wrong_item = 64 * word + lowest_bit(left)
                column[spot] = wrong_item
                value[spot] = total[wrong_item]
                total[wrong_item] = 0
                spot += 1
                left &= left - np.uint64(1)
        lengths[item] = spot - begin
    return spot


@compiled_loop
def write_sparse_rows(right, wrong, next_entry, item_out, right_out):
    """Write the answers of one block as sparse rows; ``next_entry`` is where each person starts."""
    for item in range(right.shape[0]):
        for word in range(right.shape[1]):
            ones = right[item, word]
            left = ones | wrong[item, word]
            while left:
                bit = lowest_bit(left)
                spot = next_entry[64 * word + bit]
                item_out[spot] = item
                right_out[spot] = (ones >> np.uint64(bit)) & np.uint64(1)
                next_entry[64 * word + bit] = spot + 1
                left &= left - np.uint64(1)


def group_persons(weights: Int64Array) -> tuple[Int32Array, npt.NDArray[np.uint32]]:
    """Put persons of equal weight into the same words, so that a word has one weight.

    Returns ``person[64 * words]`` (-1 is nobody) and ``weight[words]``. Persons of a class that
    would leave a word nearly empty are taken by binary digits instead: they stand in one word for
    every digit of their weight, with others that have that digit. The weights of a person's words
    add up to the person's weight.
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
    distinct = np.empty(room // 2, dtype=np.int64)
    count = 0
    last_weight, last_class = np.int64(-1), np.int32(-1)
    for person in range(len(weights)):
        weight = weights[person]
        if weight != last_weight:
            # Multiplying by an odd constant near 2^64 over the golden ratio spreads the keys.
            mixed = np.uint64(weight) * np.uint64(0x9E3779B97F4A7C15)
            slot = np.int64(mixed >> np.uint64(32)) & (room - 1)
            while table[slot] >= 0 and distinct[table[slot]] != weight:
                slot = (slot + 1) & (room - 1)
            if table[slot] < 0:
                if count == len(distinct):
                    return None
                table[slot] = count
                distinct[count] = weight
                count += 1
            last_weight, last_class = weight, table[slot]
        of_person[person] = last_class
    return distinct[:count].copy()


@compiled_loop
def _fill_words(of_person, classes):
    """Say who stands in which word, and with which weight."""
    members = np.zeros(len(classes), dtype=np.int64)
    for number in of_person:
        members[number] += 1
    # How many members of a class go into words of its own, and where these words begin.
    n_own = np.empty(len(classes), dtype=np.int64)
    next_slot = np.empty(len(classes), dtype=np.int64)
    by_digit = np.zeros(DIGITS, dtype=np.int64)
    words = 0
    for number in range(len(classes)):
        weight = classes[number]
        n_own[number] = members[number] if weight else 0
        remainder = n_own[number] % SIDE
        if remainder * ones_in(np.uint64(weight)) < SIDE:
            n_own[number] -= remainder
            for digit in range(DIGITS):
                by_digit[digit] += remainder * ((weight >> digit) & 1)
        next_slot[number] = SIDE * words
        words += (n_own[number] + SIDE - 1) // SIDE
    digit_place = np.empty(DIGITS, dtype=np.int64)
    for digit in range(DIGITS):
        digit_place[digit] = SIDE * words
        words += (by_digit[digit] + SIDE - 1) // SIDE
    person = np.full(SIDE * words, -1, dtype=np.int32)
    word_weight = np.zeros(words, dtype=np.uint32)
    for person_code in range(len(of_person)):
        number = of_person[person_code]
        weight = classes[number]
        if n_own[number] > 0:
            n_own[number] -= 1
            person[next_slot[number]] = person_code
            word_weight[next_slot[number] // SIDE] = weight
            next_slot[number] += 1
        else:
            for digit in range(DIGITS):
                if (weight >> digit) & 1:
                    person[digit_place[digit]] = person_code
                    word_weight[digit_place[digit] // SIDE] = 1 << digit
                    digit_place[digit] += 1
    return person, word_weight


# Bit planes ``[item, word of persons]`` turned into rows of bits, ``[person, word of items]``, and
# back. A square of 64 x 64 bits is turned in six rounds, each of which exchanges halves of ever
# smaller squares (the recursive transposition); eight squares go side by side in a vector.


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
