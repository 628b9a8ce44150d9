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

from discreet.responses.packing_columns import pack_columns
from discreet.responses.packing_plain import (
    BadCell,
    Repeated,
    empty_planes,
    find_repeated,
    pack_row_block,
    sort_rows,
)
from discreet.responses.store import BitPlanes, SparseRows, prefers_planes

__all__ = [
    "BadCell",
    "Repeated",
    "build_rows",
    "pack_columns",
    "pack_long",
    "pack_rows",
    "store_long",
]

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
    size = 64 * right.shape[2]
    for block in range(right.shape[0]):
        first = block * size
        pack_row_block(array[first : first + size], first, right[block], wrong[block])
    return BitPlanes(right, wrong, n_persons)


def pack_long(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> BitPlanes:
    """Pack long rows of person and item codes straight into bit planes."""
    keys = person.astype(np.int64) * max(n_items, 1) + item
    repeated = find_repeated(keys)
    if repeated is not None:
        raise Repeated(*repeated)
    cells = np.full((n_persons, n_items), -1, dtype=np.int8)
    cells[person, item] = right
    return pack_rows(cells)


def build_rows(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> SparseRows:
    """Sort long rows of person and item codes into sparse rows."""
    return sort_rows(person, item, right, n_persons, n_items)


def store_long(
    person: Codes, item: Codes, right: npt.NDArray[np.bool_], n_persons: int, n_items: int
) -> BitPlanes | SparseRows:
    """Hold long rows in whichever form takes less memory."""
    if prefers_planes(n_persons, n_items, len(person)):
        return pack_long(person, item, right, n_persons, n_items)
    return build_rows(person, item, right, n_persons, n_items)
