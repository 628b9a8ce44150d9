"""Pack answers with NumPy alone: no compiler, for small inputs and as the reference.

In: arrays of 0, 1 and missing. Out: bit planes or sparse rows. Columns take this way at
every size where their answers are already bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.responses.store import SparseRows, UInt64Array, block_shape

__all__ = [
    "BadCell",
    "Repeated",
    "empty_planes",
    "find_repeated",
    "pack_cells",
    "pack_row_block",
    "sort_rows",
]

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
