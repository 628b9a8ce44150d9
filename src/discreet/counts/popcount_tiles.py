"""The inner loop of counting, written as LLVM code: a tile of 4 x 6 pairs of items.

Every word that is loaded is used 4 or 6 times while it is in a register. Left to itself the
compiler uses half-width vectors on processors that have AVX-512, a third slower.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"
# ruff: noqa: ARG001 - numba reads the arguments of an intrinsic from its signature


LANES = 8
TILE_ROWS, TILE_COLUMNS = 4, 6

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
        place = builder.gep(targets[a], [builder.add(args[3], ir.Constant(WORD, b))])
        summed = builder.add(builder.load(place), builder.call(add_lanes, [vector]))
        builder.store(summed, place)
    return context.get_dummy_value()


@intrinsic
def count_tile(_typing, left, i, right, j, total):
    """Add the ones in ``left[i + a] & right[j + b]`` to ``total[i + a, j + b]``.

    The number of words must be a positive multiple of 8.
    """

    def generate(context, builder, signature, args):
        return _add_tile(context, builder, signature.args, args)

    return types.void(left, types.int64, right, types.int64, total), generate


@intrinsic
def weigh_tile(_typing, left, i, right, j, total, weights):
    """Do the same with the ones of word ``k`` times ``weights[k]`` (unsigned, 32 bits)."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[5])(context, builder, args[5])
        return _add_tile(context, builder, signature.args, args, array.data)

    return types.void(left, types.int64, right, types.int64, total, weights), generate


@intrinsic
def lowest_bit(_typing, word):
    """Return the number of the lowest bit that is set; the word must not be zero."""

    def generate(context, builder, _signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
