"""Pack answers that come column by column: Arrow arrays, or NumPy arrays in column order.

In: one column per item. Out: bit planes. Arrow booleans are bitmaps already, so they are
copied; numbers are compared and packed while a column is in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.responses.compiling import worth_compiling
from discreet.responses.packing_plain import BadCell, Bits, empty_planes, pack_cells
from discreet.responses.store import BitPlanes, UInt64Array
from discreet.responses.threads import run_tasks

__all__ = ["pack_columns"]

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
    from discreet.responses.packing_kernels import pack_values

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
