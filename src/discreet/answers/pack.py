"""Turn answers as they come into bit planes or sparse rows.

In: arrays, Arrow columns or long rows with 0, 1 and missing. Out: a store. Each layout is
taken as it is: columns are never turned into a row-major matrix, floats are never copied to
integers first. Small inputs are packed by NumPy, large ones by compiled loops; both give the
same store. Columns whose answers are already bits, as Arrow's booleans are, are copied at every
size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.coding.ids import sort_keys
from discreet.counts.planes import (
    AnswerStore,
    BitPlanes,
    SparseRows,
    as_codes,
    empty_planes,
    mark_planes,
    narrow_items,
    prefers_planes,
    read_only,
    row_starts,
    step_store,
)
from discreet.jit import worth_compiling
from discreet.threads import map_tasks
from discreet.types import (
    BoolArray,
    FloatArray,
    IndexArray,
    Int8Array,
    Int32Array,
    Int64Array,
    UInt64Array,
    Vector,
)

#: Seconds that NumPy needs to pack one cell.
PLAIN_CELL = 1e-9

#: Seconds that a compiled loop needs to pack one byte of cells.
COMPILED_BYTE = 1e-10

#: Seconds that NumPy needs to sort one long row.
PLAIN_ROW = 2e-7

#: Answers of one person up to which insertion is the fastest way to sort them.
INSERTION_LIMIT = 256

Codes = Int32Array | Int64Array


def pack_rows(array: Vector) -> BitPlanes:
    """Pack a matrix ``[person, item]`` of 0, 1 and missing (NaN, or -1).

    Raises
    ------
    BadCell
        At the first cell that is anything else.
    """
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return pack_columns(list(array.T))
    n_persons, n_items = array.shape
    right, wrong = empty_planes(n_persons, n_items)
    compiled = array.dtype.str in COMPILED_TYPES and worth_compiling(PLAIN_CELL * array.size)
    pack = _pack_row_block if compiled else pack_row_block
    size = 64 * right.shape[2]

    def pack_one(block: int) -> None:
        first = block * size
        pack(array[first : first + size], first, right[block], wrong[block])

    seconds = COMPILED_BYTE * array.nbytes if compiled else PLAIN_CELL * array.size
    list(map_tasks(pack_one, range(right.shape[0]), seconds))
    return BitPlanes(right, wrong, n_persons)


def _pack_row_block(cells: Vector, first_row: int, right: UInt64Array, wrong: UInt64Array) -> None:
    """Pack one block with the compiled loop, which may read 63 cells past a word's end."""
    from discreet.counts.pack_kernels import pack_words

    number = cells.view(np.uint8) if cells.dtype == np.bool_ else cells
    number = read_only(np.ascontiguousarray(number))
    persons, items = number.shape
    beyond = -items % 64
    words = max(0, (persons * items - beyond) // (64 * items))
    aligned = right.shape[1] % 8 == 0 and (right.ctypes.data | wrong.ctypes.data) % 64 == 0
    bad = pack_words(number, words, 0, right, wrong, aligned)
    last_rows = number[64 * words :]
    if len(last_rows):
        last = -(-len(last_rows) // 64)
        padded = np.zeros((64 * last + beyond, items), dtype=number.dtype)
        padded[: len(last_rows)] = last_rows
        bad |= pack_words(read_only(padded), last, words, right, wrong, False)
        if persons % 64:  # clear the bits after the last person
            for plane in (right, wrong):
                plane[:, persons // 64] &= np.uint64((1 << persons % 64) - 1)
    if bad:
        pack_row_block(cells, first_row, right, wrong)


def pack_long(
    person: Codes, item: Codes, right: BoolArray, n_persons: int, n_items: int
) -> BitPlanes:
    """Pack long rows of person and item codes straight into bit planes.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    plain_seconds = PLAIN_CELL * n_persons * n_items + PLAIN_ROW * len(person)
    if worth_compiling(plain_seconds):
        planes = mark_planes(person, item, right.view(np.int8), n_persons, n_items)
        if planes is not None:
            return planes
    _refuse_repeated(person, item, n_items)
    cells = np.full((n_persons, n_items), -1, dtype=np.int8)
    cells[person, item] = right
    return pack_rows(cells)


def _refuse_repeated(person: Codes, item: Codes, n_items: int) -> None:
    repeated = find_repeated(person.astype(np.int64) * max(n_items, 1) + item)
    if repeated is not None:
        raise Repeated(*repeated)


def build_rows(
    person: Codes, item: Codes, right: BoolArray, n_persons: int, n_items: int
) -> SparseRows:
    """Sort long rows of person and item codes into sparse rows.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    indptr = row_starts(person, n_persons)
    if not worth_compiling(PLAIN_ROW * len(person)):
        _refuse_repeated(person, item, n_items)
        order = np.argsort(person.astype(np.int64) * max(n_items, 1) + item, kind="stable")
        return SparseRows(indptr, narrow_items(item[order], n_items), right[order], n_items)
    from discreet.counts.pack_kernels import order_rows

    if np.diff(indptr).max(initial=0) > INSERTION_LIMIT:
        order = np.argsort(item, kind="stable")
        person, item, right = person[order], item[order], right[order]
    items_out = narrow_items(np.empty(len(item), dtype=np.int32), n_items)
    right_out = np.empty(len(item), dtype=np.bool_)
    codes = as_codes(person), as_codes(item), read_only(right)
    if order_rows(*codes, indptr.copy(), items_out, right_out):
        _refuse_repeated(person, item, n_items)
    return SparseRows(indptr, items_out, right_out, n_items)


def store_long(
    person: Codes, item: Codes, right: BoolArray, n_persons: int, n_items: int
) -> BitPlanes | SparseRows:
    """Hold long rows in whichever form takes less memory."""
    if prefers_planes(n_persons, n_items, len(person)):
        return pack_long(person, item, right, n_persons, n_items)
    return build_rows(person, item, right, n_persons, n_items)


def compact(planes: BitPlanes) -> BitPlanes | SparseRows:
    """Return bit planes, or sparse rows where those take less memory."""
    is_dense = prefers_planes(planes.n_persons, planes.n_items, planes.n_answers)
    return planes if is_dense else planes.take(np.arange(planes.n_persons))


Bits = npt.NDArray[np.uint8]


class BadCell(Exception):
    """A cell that is neither 0, 1 nor missing. The caller knows the names and tells the user."""

    def __init__(self, row: int, column: int, value: object) -> None:
        super().__init__(f"row {row}, column {column}: {value!r}")
        self.row, self.column, self.value = row, column, value


class Repeated(Exception):
    """Two long rows with the same person and item; the indices are the earliest such pair."""

    def __init__(self, first_index: int, second_index: int) -> None:
        super().__init__(f"rows {first_index} and {second_index}")
        self.first_index, self.second_index = first_index, second_index


def pack_row_block(cells: Vector, first_row: int, right: UInt64Array, wrong: UInt64Array) -> None:
    """Pack the persons of one block, ``cells[person, item]``, into ``[item, word]`` planes."""
    # Turned round first, because bits of neighbours in memory are packed five times as fast.
    columns = np.ascontiguousarray(cells.T)
    is_right, is_wrong = columns == 1, columns == 0
    answered = is_right | is_wrong
    bad = None if answered.all() else ~(answered | missing_cells(columns))
    if bad is not None and bad.any():
        row = int(np.argmax(bad.any(axis=0)))
        column = int(np.argmax(bad[:, row]))
        raise BadCell(first_row + row, column, cells[row, column].item())
    for plane, bits in ((right, is_right), (wrong, is_wrong)):
        octets = np.packbits(bits, axis=1, bitorder="little")
        plane.view(np.uint8)[:, : octets.shape[1]] = octets


def missing_cells(cells: Vector) -> BoolArray:
    """Say which cells mean "no answer": NaN, and -1 in types that have a sign."""
    if cells.dtype.kind not in "fi":
        return np.zeros(cells.shape, dtype=np.bool_)
    return np.asarray((cells == -1) | np.isnan(cells) if cells.dtype.kind == "f" else cells == -1)


def pack_cells(values: Vector) -> tuple[Bits, Bits, Bits]:
    """Pack one column into bits: right, wrong, and neither although nothing says missing."""
    is_right, is_wrong = values == 1, values == 0
    right, wrong = (np.packbits(bits, bitorder="little") for bits in (is_right, is_wrong))
    answered = is_right | is_wrong
    if answered.all():
        return right, wrong, np.zeros_like(right)
    bad = ~(answered | missing_cells(values))
    return right, wrong, np.packbits(bad, bitorder="little")


def find_repeated(keys: Int64Array) -> tuple[int, int] | None:
    """Return the first index whose key was seen before, with the index that it repeats."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not repeats.size:
        return None
    nearest = repeats[np.argmin(order[repeats + 1])]
    return int(order[nearest]), int(order[nearest + 1])


#: Seconds that NumPy needs to pack one number of a column.
COLUMN_CELL = 2e-9

#: Types with a compiled loop; other integers are rare and take the NumPy path.
COMPILED_TYPES = {np.dtype(kind).str for kind in "?bBqfd"}

#: No bad cells, and none possible.
_NONE: Bits = np.empty(0, dtype=np.uint8)


def pack_columns(columns: Sequence[Any]) -> BitPlanes:
    """Pack one column per item: NumPy vectors, or Arrow arrays (chunked or not) with nulls.

    Raises
    ------
    BadCell
        At the first cell, in the first column that has one, that is not 0, 1 or missing.
    """
    n_persons = len(columns[0]) if columns else 0
    right, wrong = empty_planes(n_persons, len(columns))
    if n_persons:
        numbers, seconds = range(len(columns)), COLUMN_CELL * n_persons * len(columns)
        list(map_tasks(lambda j: _pack_column(columns[j], j, right, wrong), numbers, seconds))
    return BitPlanes(right, wrong, n_persons)


def _pack_column(column: Any, number: int, right: UInt64Array, wrong: UInt64Array) -> None:
    is_right, is_wrong, bad = _column_bits(column)
    if bad.any():
        row = int(np.flatnonzero(np.unpackbits(bad, bitorder="little"))[0])
        cell = column[row]
        raise BadCell(row, number, cell.as_py() if hasattr(cell, "as_py") else cell.item())
    for plane, bits in ((right, is_right), (wrong, is_wrong)):
        pack_bits(bits, plane[:, number, :])


def pack_bits(bits: Bits, words: UInt64Array) -> None:
    """Write the bits of a column to its words ``[block, word]``, whole blocks at once."""
    size = 8 * words.shape[1]
    n_blocks = len(bits) // size
    words[:n_blocks] = bits[: n_blocks * size].view(np.uint64).reshape(n_blocks, words.shape[1])
    if len(bits) % size:
        last = np.zeros(size, dtype=np.uint8)
        last[: len(bits) % size] = bits[n_blocks * size :]
        words[n_blocks] = last.view(np.uint64)


def _column_bits(column: Any) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of one whole column."""
    if isinstance(column, np.ndarray):
        return _number_bits(column)
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    parts = [(_arrow_bits(chunk), len(chunk)) for chunk in chunks if len(chunk)]
    if len(parts) == 1:
        return parts[0][0]
    # Truth values have no bad ones; a column has one type.
    right, wrong, bad = (join_bits([(bits[k], n) for bits, n in parts]) for k in range(3))
    return right, wrong, bad


def join_bits(parts: list[tuple[Bits, int]]) -> Bits:
    """Put bit strings one after the other; whole bytes are copied, others are shifted."""
    if parts[0][0] is _NONE:
        return _NONE
    if all(length % 8 == 0 for _, length in parts[:-1]):
        return np.concatenate([bits for bits, _ in parts])
    loose = [np.unpackbits(bits, count=length, bitorder="little") for bits, length in parts]
    return np.packbits(np.concatenate(loose), bitorder="little")


def _arrow_bits(chunk: Any) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of one Arrow array."""
    import pyarrow as pa

    length, offset, first = len(chunk), chunk.offset, chunk.offset
    if pa.types.is_null(chunk.type):
        none = np.zeros(-(-length // 8), dtype=np.uint8)
        return none, none, none
    validity, data = chunk.buffers()
    if validity is None:
        validity, first = np.full(-(-length // 8), 255, dtype=np.uint8), 0
    valid = _bit_slice(validity, first, length)
    if pa.types.is_boolean(chunk.type):
        right = _bit_slice(data, offset, length) & valid
        return right, right ^ valid, _NONE
    dtype = np.dtype(chunk.type.to_pandas_dtype())
    numbers = np.frombuffer(data, dtype=dtype, count=offset + length)[offset:]
    right, wrong, bad = _number_bits(numbers)
    return right & valid, wrong & valid, bad & valid


def _number_bits(values: Vector) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of a vector of numbers."""
    if values.dtype.str not in COMPILED_TYPES or not worth_compiling(COLUMN_CELL * len(values)):
        return pack_cells(values)
    from discreet.counts.pack_kernels import pack_numbers

    numbers = np.ascontiguousarray(values.view(np.uint8) if values.dtype == np.bool_ else values)
    numbers = read_only(numbers)
    words = len(numbers) // 64
    bits = [np.empty(words, dtype=np.uint64) for _ in range(3)]
    pack_numbers(numbers, *bits)
    ends = pack_cells(numbers[64 * words :])
    right, wrong, bad = (
        np.concatenate([body.view(np.uint8), end]) for body, end in zip(bits, ends, strict=True)
    )
    return right, wrong, bad


def _bit_slice(buffer: Any, offset: int, length: int) -> Bits:
    """Return ``length`` bits from ``offset`` on, the bits past the end cleared."""
    first, last = offset // 8, -(-(offset + length) // 8)
    octets: Bits = np.frombuffer(buffer, dtype=np.uint8)[first:last]
    shift = offset % 8
    if shift:
        above = np.append(octets[1:], np.uint8(0))
        octets = (octets >> np.uint8(shift)) | (above << np.uint8(8 - shift))
        octets = octets[: -(-length // 8)]
    if length % 8:
        octets = octets.copy()
        octets[-1] &= (1 << length % 8) - 1
    return octets


def store_codes(codes: Vector, steps: Sequence[int]) -> AnswerStore:
    """Store a matrix ``[person, item]`` of whole numbers from 0; below 0 is missing."""
    n_persons = len(codes)
    right, wrong = empty_planes(n_persons, sum(steps))
    first = np.concatenate([[0], np.cumsum(steps)])

    def pack(item: int) -> None:
        column = np.ascontiguousarray(codes[:, item])
        for category in range(steps[item] + 1):
            bits = np.packbits(column == category, bitorder="little")
            if category:
                pack_bits(bits, right[:, first[item] + category - 1, :])
            if category < steps[item]:
                pack_bits(bits, wrong[:, first[item] + category, :])

    if n_persons:
        seconds = PLAIN_CELL / 4 * n_persons * (len(steps) + sum(steps))
        list(map_tasks(pack, range(len(steps)), seconds))
    return step_store(compact(BitPlanes(right, wrong, n_persons)), steps)


def store_steps(
    person: Vector, item: Vector, code: Vector, n_persons: int, steps: Sequence[int]
) -> AnswerStore:
    """Hold long rows of categories from 0 in whichever form takes less memory.

    Where every item has one step they are right and wrong.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    if all(step == 1 for step in steps):
        return store_long(person, item, code == 1, n_persons, len(steps))
    _refuse_repeated(person, item, len(steps))
    n_steps = np.asarray(steps, dtype=np.int64)
    node = (np.cumsum(n_steps) - n_steps)[item] + code
    above, below = code > 0, code < n_steps[item]
    nodes = store_long(
        np.concatenate([person[above], person[below]]),
        np.concatenate([node[above] - 1, node[below]]),
        np.repeat([True, False], [int(above.sum()), int(below.sum())]),
        n_persons,
        int(n_steps.sum()),
    )
    return step_store(nodes, steps)


def list_category_answers(store: AnswerStore) -> tuple[IndexArray, IndexArray, Int8Array]:
    """Return one entry per answer: person, item, category."""
    if isinstance(store, SparseRows):
        return store.person, store.item.astype(np.intp), store.right.astype(np.int8)
    cells = store.rows(0, store.n_persons)
    person, item = np.nonzero(cells >= 0)
    return person, item, cells[person, item]


def keep_one(keys: Int64Array, which: str, when: FloatArray | None = None) -> Int64Array:
    """Return the entries to keep, in order: the first or last of each key."""
    order = sort_keys(keys, when)
    differs = np.diff(keys[order]) != 0
    edge = np.ones(min(1, len(keys)), dtype=np.bool_)
    chosen = np.concatenate([edge, differs] if which == "first" else [differs, edge])
    return np.sort(order[chosen])
