"""Vector instructions for packing, written as LLVM code: 64 answers at a time.

Left to itself the compiler uses half-width vectors and falls back to single cells at the
end of every row; spelled out, packing runs at the speed of memory. LLVM turns these vectors
into whatever the processor has, so nothing here depends on AVX-512.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped"
# ruff: noqa: ARG001 - numba reads the arguments of an intrinsic from its signature


LANES = 64
LINE = 8  # words of 8 bytes in a cache line

OCTET, WORD, INDEX = ir.IntType(8), ir.IntType(64), ir.IntType(32)


def _splat(element, value, lanes=LANES):
    return ir.Constant(ir.VectorType(element, lanes), [value] * lanes)


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
            place = builder.gep(target.data, [builder.add(row, args[3])])
            stored = builder.store(line, builder.bitcast(place, line.type.as_pointer()))
            stored.align = 64
            stored.set_metadata("nontemporal", past_cache)
        return context.get_dummy_value()

    return types.void(lines, types.int64, plane, types.int64), generate


@intrinsic
def ones_in(_typing, word):
    """Return how many bits of a word are set."""

    def generate(context, builder, _signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate
