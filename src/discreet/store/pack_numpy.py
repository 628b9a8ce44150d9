"""Pack answers with NumPy alone: no compiler, for small inputs and as the reference.

In: arrays of 0, 1 and missing. Out: bit planes or sparse rows. Columns take this way at
every size where their answers are already bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.jit import run_tasks, worth_compiling
from discreet.store.planes import BitPlanes, SparseRows, block_shape
from discreet.types import UInt64Array

Bits = npt.NDArray[np.uint8]


class BadCell(Exception):
    """A cell that is neither 0, 1 nor missing. The caller knows the names and tells the user."""

    def __init__(self, row: int, column: int, value: Any) -> None:
        super().__init__(f"row {row}, column {column}: {value!r}")
        self.row = row
        self.column = column
        self.value = value


class Repeated(Exception):
    """Two long rows with the same person and item; the indices are the earliest such pair."""

    def __init__(self, first_index: int, second_index: int) -> None:
        super().__init__(f"rows {first_index} and {second_index}")
        self.first_index = first_index
        self.second_index = second_index


def empty_planes(n_persons: int, n_items: int) -> tuple[UInt64Array, UInt64Array]:
    """Return two planes with nobody's answers, each starting on a cache line."""
    blocks, words = block_shape(n_persons)
    return _aligned_zeros((blocks, n_items, words)), _aligned_zeros((blocks, n_items, words))


def _aligned_zeros(shape: tuple[int, int, int]) -> UInt64Array:
    size = math.prod(shape)
    room = np.zeros(size + 7, dtype=np.uint64)
    skip = -(room.ctypes.data // 8) % 8
    return room[skip : skip + size].reshape(shape)


def pack_row_block(
    cells: npt.NDArray[Any], first_row: int, right: UInt64Array, wrong: UInt64Array
) -> None:
    """Pack the persons of one block, ``cells[person, item]``, into ``[item, word]`` planes."""
    is_right, is_wrong = cells == 1, cells == 0
    _refuse_bad_cells(cells, is_right | is_wrong, first_row)
    for plane, bits in ((right, is_right), (wrong, is_wrong)):
        octets = np.packbits(bits.T, axis=1, bitorder="little")
        plane.view(np.uint8)[:, : octets.shape[1]] = octets


def missing_cells(cells: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say which cells mean "no answer": NaN, and -1 in types that have a sign."""
    if cells.dtype.kind == "f":
        return np.asarray(np.isnan(cells) | (cells == -1))
    if cells.dtype.kind == "i":
        return np.asarray(cells == -1)
    return np.zeros(cells.shape, dtype=np.bool_)


def _refuse_bad_cells(
    cells: npt.NDArray[Any], answered: npt.NDArray[np.bool_], first_row: int
) -> None:
    bad = ~(answered | missing_cells(cells))
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        raise BadCell(first_row + row, column, cells[row, column].item())


def pack_cells(values: npt.NDArray[Any]) -> tuple[Bits, Bits, Bits]:
    """Pack one column into bits: right, wrong, and neither although nothing says missing."""
    is_right, is_wrong = values == 1, values == 0
    right, wrong = (np.packbits(bits, bitorder="little") for bits in (is_right, is_wrong))
    answered = is_right | is_wrong
    if answered.all():
        return right, wrong, np.zeros_like(right)
    bad = ~(answered | missing_cells(values))
    return right, wrong, np.packbits(bad, bitorder="little")


def find_repeated(keys: npt.NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the first index whose key was seen before, with the index that it repeats."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not again.size:
        return None
    nearest = again[np.argmin(order[again + 1])]
    return int(order[nearest]), int(order[nearest + 1])


def sort_rows(
    person: npt.NDArray[Any],
    item: npt.NDArray[Any],
    right: npt.NDArray[np.bool_],
    n_persons: int,
    n_items: int,
) -> SparseRows:
    """Order long rows by person and item; :class:`Repeated` if a pair occurs twice."""
    keys = person.astype(np.int64) * max(n_items, 1) + item
    repeated = find_repeated(keys)
    if repeated is not None:
        raise Repeated(*repeated)
    order = np.argsort(keys, kind="stable")
    indptr = np.zeros(n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=n_persons), out=indptr[1:])
    return SparseRows(indptr, narrow_items(item[order], n_items), right[order], n_items)


def narrow_items(
    item: npt.NDArray[Any], n_items: int
) -> npt.NDArray[np.uint16] | npt.NDArray[np.int32]:
    """Return item codes in the narrowest type of :class:`SparseRows`."""
    return item.astype(np.uint16) if n_items <= 1 << 16 else item.astype(np.int32)


# Pack answers that come column by column: Arrow arrays, or NumPy arrays in column order.
#
# In: one column per item. Out: bit planes. Arrow booleans are bitmaps already, so they are
# copied; numbers are compared and packed while a column is in cache.

PLAIN_CELL = 2e-9
"""Seconds that NumPy needs to pack one number of a column."""

COMPILED_TYPES = {np.dtype(kind).str for kind in "?bBqfd"}
"""Types with a compiled loop; other integers are rare and take the NumPy path."""

_NONE: Bits = np.empty(0, dtype=np.uint8)
"""No bad cells, and none possible."""


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
        run_tasks(lambda j: _pack_column(columns[j], j, right, wrong), range(len(columns)))
    return BitPlanes(right, wrong, n_persons)


def _pack_column(column: Any, number: int, right: UInt64Array, wrong: UInt64Array) -> None:
    is_right, is_wrong, bad = _column_bits(column)
    if bad.any():
        row = int(np.flatnonzero(np.unpackbits(bad, bitorder="little"))[0])
        raise BadCell(row, number, _scalar(column[row]))
    for plane, bits in ((right, is_right), (wrong, is_wrong)):
        _write_bits(bits, plane[:, number, :])


def _write_bits(bits: Bits, words: UInt64Array) -> None:
    """Write the bits of a column to its words ``[block, word]``, whole blocks at once."""
    size = 8 * words.shape[1]
    whole = len(bits) // size
    words[:whole] = bits[: whole * size].view(np.uint64).reshape(whole, words.shape[1])
    if len(bits) % size:
        last = np.zeros(size, dtype=np.uint8)
        last[: len(bits) % size] = bits[whole * size :]
        words[whole] = last.view(np.uint64)


def _scalar(cell: Any) -> Any:
    return cell.as_py() if hasattr(cell, "as_py") else cell.item()


def _column_bits(column: Any) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of one whole column."""
    if isinstance(column, np.ndarray):
        return _number_bits(column)
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    parts = [(_arrow_bits(chunk), len(chunk)) for chunk in chunks if len(chunk)]
    if len(parts) == 1:
        return parts[0][0]
    right, wrong = (_join_bits([(bits[k], n) for bits, n in parts]) for k in range(2))
    bad = _NONE
    if any(len(bits[2]) for bits, _ in parts):
        bad = _join_bits([(_or_zeros(bits[2], n), n) for bits, n in parts])
    return right, wrong, bad


def _or_zeros(bits: Bits, length: int) -> Bits:
    return bits if len(bits) else np.zeros(-(-length // 8), dtype=np.uint8)


def _join_bits(parts: list[tuple[Bits, int]]) -> Bits:
    """Put bit strings one after the other; whole bytes are copied, others are shifted."""
    if all(length % 8 == 0 for _, length in parts[:-1]):
        return np.concatenate([bits for bits, _ in parts])
    loose = [np.unpackbits(bits, count=length, bitorder="little") for bits, length in parts]
    return np.packbits(np.concatenate(loose), bitorder="little")


def _arrow_bits(chunk: Any) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of one Arrow array."""
    import pyarrow as pa

    length, offset = len(chunk), chunk.offset
    if pa.types.is_null(chunk.type):
        none = np.zeros(-(-length // 8), dtype=np.uint8)
        return none, none, none
    validity, data = chunk.buffers()
    valid = _full(length) if validity is None else _bit_slice(validity, offset, length)
    if pa.types.is_boolean(chunk.type):
        right = _bit_slice(data, offset, length) & valid
        return right, right ^ valid, _NONE
    dtype = np.dtype(chunk.type.to_pandas_dtype())
    numbers = np.frombuffer(data, dtype=dtype, count=offset + length)[offset:]
    right, wrong, bad = _number_bits(numbers)
    return right & valid, wrong & valid, bad & valid


def _number_bits(values: npt.NDArray[Any]) -> tuple[Bits, Bits, Bits]:
    """Return right, wrong and bad bits of a vector of numbers."""
    if values.dtype.str not in COMPILED_TYPES or not worth_compiling(PLAIN_CELL * len(values)):
        return pack_cells(values)
    from discreet.store.pack_kernels import pack_values

    numbers = np.ascontiguousarray(values.view(np.uint8) if values.dtype == np.bool_ else values)
    numbers = numbers.view()
    numbers.setflags(write=False)
    words = len(numbers) // 64
    bits = [np.empty(words, dtype=np.uint64) for _ in range(3)]
    pack_values(numbers, *bits)
    ends = pack_cells(numbers[64 * words :])
    right, wrong, bad = (
        np.concatenate([body.view(np.uint8), end]) for body, end in zip(bits, ends, strict=True)
    )
    return right, wrong, bad


def _full(length: int) -> Bits:
    bits = np.full(-(-length // 8), 255, dtype=np.uint8)
    if length % 8:
        bits[-1] = (1 << length % 8) - 1
    return bits


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
