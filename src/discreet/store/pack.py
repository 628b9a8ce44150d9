"""Turn answers as they come into bit planes or sparse rows.

In: arrays, Arrow columns or long rows with 0, 1 and missing. Out: a store. Each layout is
taken as it is: columns are never turned into a row-major matrix, floats are never copied to
integers first. Small inputs are packed by NumPy, large ones by compiled loops; both give the
same store.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.jit import run_tasks, worth_compiling
from discreet.store.pack_numpy import (
    COMPILED_TYPES,
    Repeated,
    empty_planes,
    find_repeated,
    narrow_items,
    pack_columns,
    pack_row_block,
    sort_rows,
)
from discreet.store.planes import BitPlanes, SparseRows, prefers_planes
from discreet.types import UInt64Array

PLAIN_CELL = 5e-9
"""Seconds that NumPy needs to pack one cell."""

PLAIN_ROW = 2e-7
"""Seconds that NumPy needs to sort one long row."""

INSERTION_LIMIT = 256
"""Answers of one person up to which insertion is the fastest way to sort them."""

Codes = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def pack_rows(array: npt.NDArray[Any]) -> BitPlanes:
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

    run_tasks(pack_one, range(right.shape[0]))
    return BitPlanes(right, wrong, n_persons)


def _pack_row_block(
    cells: npt.NDArray[Any], first_row: int, right: UInt64Array, wrong: UInt64Array
) -> None:
    """Pack one block with the compiled loop, which may read 63 cells past a word's end."""
    from discreet.store.pack_kernels import pack_words

    number = cells.view(np.uint8) if cells.dtype == np.bool_ else cells
    number = _read_only(np.ascontiguousarray(number))
    persons, items = number.shape
    beyond = -items % 64
    words = max(0, (persons * items - beyond) // (64 * items))
    aligned = right.shape[1] % 8 == 0 and (right.ctypes.data | wrong.ctypes.data) % 64 == 0
    bad = pack_words(number, words, 0, right, wrong, aligned)
    rest = number[64 * words :]
    if len(rest):
        last = -(-len(rest) // 64)
        padded = np.zeros((64 * last + beyond, items), dtype=number.dtype)
        padded[: len(rest)] = rest
        bad |= pack_words(_read_only(padded), last, words, right, wrong, False)
        _clear_after(persons, right, wrong)
    if bad:
        pack_row_block(cells, first_row, right, wrong)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view


def _clear_after(persons: int, right: UInt64Array, wrong: UInt64Array) -> None:
    """Clear the bits of a block after its last person."""
    if persons % 64:
        mask = np.uint64((1 << persons % 64) - 1)
        right[:, persons // 64] &= mask
        wrong[:, persons // 64] &= mask


def pack_long(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> BitPlanes:
    """Pack long rows of person and item codes straight into bit planes.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    plain_seconds = PLAIN_CELL * n_persons * n_items + PLAIN_ROW * len(person)
    if worth_compiling(plain_seconds):
        return _fill_planes(person, item, right, n_persons, n_items)
    _refuse_repeated(person, item, n_items)
    cells = np.full((n_persons, n_items), -1, dtype=np.int8)
    cells[person, item] = right
    return pack_rows(cells)


def _fill_planes(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> BitPlanes:
    from discreet.store.pack_kernels import fill_planes

    planes = empty_planes(n_persons, n_items)
    if fill_planes(_codes(person), _codes(item), _read_only(right), *planes) >= 0:
        _refuse_repeated(person, item, n_items)
    return BitPlanes(*planes, n_persons)


def _codes(codes: Codes) -> Codes:
    """Return codes in the one form that the loops are compiled for."""
    return _read_only(np.ascontiguousarray(codes, dtype=np.int32))


def _refuse_repeated(person: Codes, item: Codes, n_items: int) -> None:
    repeated = find_repeated(person.astype(np.int64) * max(n_items, 1) + item)
    if repeated is not None:
        raise Repeated(*repeated)


def build_rows(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> SparseRows:
    """Sort long rows of person and item codes into sparse rows.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    if not worth_compiling(PLAIN_ROW * len(person)):
        return sort_rows(person, item, right, n_persons, n_items)
    from discreet.store.pack_kernels import order_rows

    indptr = np.zeros(n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=n_persons), out=indptr[1:])
    if np.diff(indptr).max(initial=0) > INSERTION_LIMIT:
        order = np.argsort(item, kind="stable")
        person, item, right = person[order], item[order], right[order]
    items_out = narrow_items(np.empty(len(item), dtype=np.int32), n_items)
    right_out = np.empty(len(item), dtype=np.bool_)
    codes = _codes(person), _codes(item), _read_only(right)
    if order_rows(*codes, indptr.copy(), items_out, right_out):
        _refuse_repeated(person, item, n_items)
    return SparseRows(indptr, items_out, right_out, n_items)


def store_long(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> BitPlanes | SparseRows:
    """Hold long rows in whichever form takes less memory."""
    if prefers_planes(n_persons, n_items, len(person)):
        return pack_long(person, item, right, n_persons, n_items)
    return build_rows(person, item, right, n_persons, n_items)
