"""From a matrix to a store of answers.

In: a matrix ``[person, item]`` (NumPy, masked, scipy sparse, nested lists). Out: a store. Only the
type decides what is missing: NaN, None, a mask, -1 where the type has a sign, and every entry that
a sparse matrix does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from discreet.answers import pack
from discreet.answers.pack import BadCell, Repeated
from discreet.answers.responses import Responses
from discreet.coding.reading import Reading
from discreet.coding.steps import (
    AskedSteps,
    BadScale,
    CategoryScale,
    Tally,
    UnlistedValue,
    find_scale,
)
from discreet.coding.values import (
    ANSWERS,
    BAD,
    MISSING,
    MISSING_WORDS,
    Codes,
    as_number,
    drop_codes,
    spell,
    write_cell,
)
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows
from discreet.errors import BadResponses, BadUsage
from discreet.types import BoolArray, Int8Array, Vector

Store = BitPlanes | SparseRows

Matrix = TypeVar("Matrix", bound=Any)

#: Words about answers that need no names of columns.
MATRIX_WORDS = {"missing", "model", "steps", "lowest", "reverse", "merge"}

#: DLPack's number for it.
MAIN_MEMORY = 1

#: Whole numbers up to here are counted item by item; no scale has more.
LARGEST_CODE = 99

_PACKED_AS_THEY_ARE = frozenset({"bool", "int8", "uint8", "int64", "float32", "float64"})


def store_array(
    X: object,
    items: tuple[str, ...] | None,
    missing: Codes = (),
    options: AskedSteps | None = None,
    scale: CategoryScale | None = None,
) -> tuple[AnswerStore, CategoryScale | None]:
    """Return the answers of a matrix in the form that takes less memory, and the scale of steps.

    Where the scale is known, nothing is looked for, and every entry must be a number.
    """
    if missing not in ((), [], {}):
        X = drop_codes(X if hasattr(X, "tocoo") else check_shape(np.ma.asarray(X)), items, missing)
    asked = options or AskedSteps()
    is_stated = asked.is_said or scale is not None
    if is_stated and (stepped := _store_categories(X, items, asked, scale)) is not None:
        return stepped
    try:
        if hasattr(X, "tocoo"):
            return _store_sparse(X.tocoo(), items), None
        if isinstance(X, np.ma.MaskedArray):
            cells = _as_int8(check_shape(X.data), np.ma.getmaskarray(X))
        else:
            cells = check_shape(_as_array(X))
            cells = cells if cells.dtype.name in _PACKED_AS_THEY_ARE else _as_int8(cells, None)
        return pack.compact(pack.pack_rows(cells)), None
    except BadCell as bad:
        try:
            is_tried = not (asked.is_binary or asked.is_said)
            stepped = _store_categories(X, items, asked) if is_tried else None
        except BadScale as reason:
            words = f"{str(reason)[0].upper()}{str(reason)[1:]}"
            cell = _locate_cell(X, items, reason.cells)
            raise BadResponses(f"{_name_cell(*cell, items)} {words}") from None
        if stepped is None:
            raise BadResponses(explain_cell(bad.row, bad.column, bad.value, items)) from None
        return stepped


def is_matrix(source: object) -> bool:
    """Say whether a source is a matrix ``[person, item]``, which has no names."""
    if isinstance(source, list | tuple):
        return not is_records(source)
    return hasattr(source, "tocoo") or hasattr(source, "__dlpack_device__")


def is_records(source: object) -> bool:
    """Say whether a source is a list of rows that name their columns."""
    return isinstance(source, list | tuple) and bool(source) and isinstance(source[0], Mapping)


def read_matrix(source: object, reading: Reading) -> Responses:
    """Return the answers of a matrix: an array, nested lists, scipy's sparse, a tensor."""
    # Lists stay, whose rows may differ in length.
    is_tensor = hasattr(source, "__dlpack_device__") and not isinstance(source, np.ndarray)
    matrix, names = _keep_listed(_copy_tensor(source) if is_tensor else source, reading)
    store, scale = store_array(matrix, names, reading.codes, reading.asked, reading.scale)
    return Responses.from_store(store, names, reading=replace(reading, scale=scale))


def _copy_tensor(tensor: Any) -> Any:
    """Return a tensor as an array; refuse one that does not lie in main memory."""
    if int(tensor.__dlpack_device__()[0]) != MAIN_MEMORY:
        raise BadUsage(
            "found a tensor outside the main memory. Answers are counted there: copy it first, "
            "with .cpu() or its like"
        )
    return np.asarray(tensor)


def _keep_listed(X: Any, reading: Reading) -> tuple[Any, tuple[str, ...] | None]:
    """Return the columns of a matrix that are on the public item list, and their names.

    Columns are called "0", "1", ...; None where all of them stay.
    """
    if not reading.listed:
        return X, None
    cells = X.tocsc() if hasattr(X, "tocoo") else check_shape(np.ma.asanyarray(_as_array(X)))
    names = tuple(map(str, range(cells.shape[1])))
    columns = [number for number, name in enumerate(names) if not reading.ignores(name)]
    if not columns:
        raise BadResponses(
            f"The columns of a matrix are called '0' to '{names[-1]}', and the item list names "
            "none of them. Name the columns as the list does, with Responses.from_array(X, items), "
            "or give a data frame."
        )
    return cells[:, columns], tuple(names[number] for number in columns)


def _locate_cell(
    X: object, items: tuple[str, ...] | None, cells: Mapping[str, frozenset[int]]
) -> tuple[int, int, Any]:
    """Return row, column and value of the first entry that holds one of these values, by item."""
    person, item, values, (_, n_items) = _list_entries(X)
    names = items or tuple(map(str, range(n_items)))
    hit = np.zeros(len(values), dtype=np.bool_)
    for column, name in enumerate(names):
        if cells.get(name):
            hit |= (item == column) & np.isin(values, list(cells[name]))
    first = min(np.flatnonzero(hit).tolist(), key=lambda entry: (person[entry], item[entry]))
    return int(person[first]), int(item[first]), values[first]


def _store_categories(
    X: Any, items: tuple[str, ...] | None, options: AskedSteps, scale: CategoryScale | None = None
) -> tuple[AnswerStore, CategoryScale] | None:
    """Return answers with steps and their scale; None where the entries are no steps."""
    small_numbers = _as_columns(X)
    if small_numbers is not None:
        return _store_columns(small_numbers, items, options, scale)
    person, item, values, (n_persons, n_items) = _list_entries(X)
    is_number = values.dtype.kind in "buif"
    texts = np.flatnonzero(~np.isfinite(values)) if is_number else values[:0]
    if len(texts) and scale is not None:
        row, column = int(person[texts[0]]), int(item[texts[0]])
        cell = values[texts[0]] if hasattr(X, "tocoo") else X[row, column]
        raise BadResponses(explain_cell(row, column, cell, items))
    if len(texts) or not is_number:
        return None
    names = items or tuple(map(str, range(n_items)))
    ends = np.cumsum(np.bincount(item, minlength=n_items))
    columns = np.split(np.argsort(item, kind="stable"), ends)
    tally = {name: _tally(values[rows]) for name, rows in zip(names, columns, strict=False)}
    coding = find_scale(tally, options) if scale is None else _check_listed(tally, scale)
    if coding is None:
        return None
    code = np.zeros(len(values), dtype=np.int8)
    for name, rows in zip(names, columns, strict=False):
        if len(rows):
            table = {float(word): category for word, category in coding.codes[name].items()}
            used, index = np.unique(values[rows], return_inverse=True)
            code[rows] = np.array([table[float(value)] for value in used], dtype=np.int8)[index]
    store = pack.store_steps(person, item, code, n_persons, coding.steps_of(names))
    return store, coding


def _as_columns(X: object) -> Int8Array | None:
    """Return ``[item, person]``, -1 where missing, of an array of whole numbers from 0 to 99.

    None of anything else.
    """
    if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
        return None
    cells = check_shape(X)
    if cells.dtype.kind not in "uif" or not cells.size:
        return None
    missing = pack.missing_cells(cells)
    numbers = np.where(missing, -1, cells) if missing.any() else cells
    if numbers.min() < -1 or numbers.max() > LARGEST_CODE:
        return None
    codes = numbers.astype(np.int8)
    if cells.dtype.kind == "f" and not np.array_equal(codes, numbers):
        return None
    return np.ascontiguousarray(codes.T)


def _store_columns(
    columns: Int8Array,
    items: tuple[str, ...] | None,
    options: AskedSteps,
    scale: CategoryScale | None,
) -> tuple[AnswerStore, CategoryScale] | None:
    """Do as :func:`_store_categories` with one row of small whole numbers per item."""
    values = range(int(columns.max()) + 1)
    names = items or tuple(map(str, range(len(columns))))
    tally: dict[str, dict[str, int]] = {}
    for name, column in zip(names, columns, strict=True):
        times = {str(value): int(np.count_nonzero(column == value)) for value in values}
        tally[name] = {word: number for word, number in times.items() if number}
    coding = find_scale(tally, options) if scale is None else _check_listed(tally, scale)
    if coding is None:
        return None
    codes = np.empty_like(columns)
    for name, column, code in zip(names, columns, codes, strict=True):
        table = np.full(LARGEST_CODE + 2, -1, dtype=np.int8)
        for word in tally[name]:
            table[int(word)] = coding.codes[name][word]
        np.take(table, column, out=code, mode="wrap")
    if coding.is_binary:
        return pack.compact(pack.pack_columns(list(codes))), coding
    return pack.store_codes(codes.T, coding.steps_of(names)), coding


def _check_listed(tally: Tally, scale: CategoryScale) -> CategoryScale:
    """Return a scale that was told, if it has all values."""
    for item, used in tally.items():
        if used and item not in scale.codes:
            raise BadResponses(f"column {item!r} is not on the item list")
        unlisted = [value for value in used if value not in scale.codes.get(item, {})]
        if unlisted:
            raise UnlistedValue(item, unlisted[0], scale.codes[item], tally)
    return scale


def _list_entries(X: object) -> tuple[Any, Any, Any, tuple[int, int]]:
    """Return person, item and value of every answer, and the size of the matrix."""
    if hasattr(X, "tocoo"):
        sparse = X.tocoo()
        held = ~pack.missing_cells(sparse.data)
        return sparse.row[held], sparse.col[held], sparse.data[held], sparse.shape
    cells = check_shape(np.asanyarray(X))
    numbers = np.ma.getdata(cells)
    if numbers.dtype.kind in "OUST":
        numbers = _read_numbers(numbers)
    person, item = np.nonzero(~(np.ma.getmaskarray(cells) | pack.missing_cells(numbers)))
    return person, item, numbers[person, item], cells.shape


def _read_numbers(cells: Vector) -> Vector:
    """Return objects and texts as numbers: NaN where missing, infinite where one is none."""
    numbers = [_read_number(cell) for cell in cells.ravel().tolist()]
    return np.array(numbers, np.float64).reshape(cells.shape)


def _read_number(cell: object) -> float:
    word = spell(write_cell(cell) or "").lower()
    if word in MISSING_WORDS:
        return np.nan
    number = ANSWERS.get(word, as_number(word))
    # A text "-1" is refused, as in files; a number -1 is missing, as in arrays.
    is_refused = number is None or (isinstance(cell, str | bytes) and number == MISSING)
    return np.inf if is_refused else float(number)  # type: ignore[arg-type]


def _tally(values: Vector) -> dict[str, int]:
    used, times = np.unique(values, return_counts=True)
    return {spell(cell): count for cell, count in zip(used.tolist(), times.tolist(), strict=True)}


def _as_array(X: object) -> Vector:
    try:
        return np.asanyarray(X)
    except ValueError:
        raise BadResponses(
            "The rows of the answers differ in length, so it is not clear which answer belongs "
            "to which item. Give every person one entry per item, None where there is no answer."
        ) from None


def check_shape(cells: Matrix, kind: str = "an array") -> Matrix:
    """Return a matrix ``[person, item]``, an array or a tensor; refuse other shapes."""
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise BadResponses(
            "Answers must be a matrix with one row per person and one column per item; found "
            f"{kind} of shape {tuple(cells.shape)}. Give the answers of one person as [[1, 0, 1]], "
            "and several files as a pattern, such as 'answers/*.csv'."
        )
    return cells


def _as_int8(cells: Vector, mask: BoolArray | None) -> Vector:
    """Return 1, 0 and -1; what is none of these stays visible as BAD for the caller."""
    if cells.dtype.kind in "OUST":
        codes = _score_numbers(_read_numbers(cells))
    elif cells.dtype.kind in "buif":
        codes = _score_numbers(cells)
    else:
        raise BadResponses(
            f"Answers must be numbers or truth values; found an array of type {cells.dtype}. "
            "Give 0, 1 and NaN, or an array of booleans."
        )
    if mask is not None:
        codes[mask] = MISSING
    if (codes == BAD).any():
        row, column = (int(index) for index in np.argwhere(codes == BAD)[0])
        raise BadCell(row, column, cells[row, column])
    return codes


def _score_numbers(cells: Vector) -> Int8Array:
    codes = np.full(cells.shape, BAD, dtype=np.int8)
    codes[cells == 1] = 1
    codes[cells == 0] = 0
    codes[pack.missing_cells(cells)] = MISSING
    return codes


def _store_sparse(matrix: Any, items: tuple[str, ...] | None) -> Store:
    n_persons, n_items = matrix.shape
    codes = _score_numbers(np.asarray(matrix.data))
    if (codes == BAD).any():
        first = int(np.flatnonzero(codes == BAD)[0])
        value = matrix.data[first].item()
        raise BadCell(int(matrix.row[first]), int(matrix.col[first]), value)
    held = np.flatnonzero(codes >= 0)
    person, item = matrix.row[held].astype(np.int64), matrix.col[held].astype(np.int64)
    try:
        return pack.store_long(person, item, codes[held] == 1, n_persons, n_items)
    except Repeated as repeated:
        row, column = int(person[repeated.first_index]), int(item[repeated.first_index])
        raise BadResponses(
            f"The sparse matrix holds two entries at row {row}, {_column(column, items)}. "
            "One answer per person and item is needed; decide between them before building "
            "the matrix (sum_duplicates would add them up)."
        ) from None


def _column(column: int, items: tuple[str, ...] | None) -> str:
    return f"column {column}" if items is None else f"column {column} ('{items[column]}')"


def explain_cell(row: int, column: int, value: object, items: tuple[str, ...] | None) -> str:
    """Say what is wrong with a cell that is neither right, wrong, a step nor missing."""
    return (
        f"{_name_cell(row, column, value, items)} Answers must be 0, 1, true or false, steps "
        "(whole numbers from 0 or 1 with at most eleven categories and no gap), or missing (NaN, "
        "None, masked, or -1 in arrays of signed numbers). Where a code stands for a missing "
        "answer, name it with missing=code. "
        "Where answers are scores, compare them: np.where(np.isnan(X), np.nan, X >= threshold)."
    )


def _name_cell(row: int, column: int, value: object, items: tuple[str, ...] | None) -> str:
    plain_value = value.item() if isinstance(value, np.generic) else value
    return (
        f"Row {row}, {_column(column, items)} (counted from 0): found {plain_value!r} where an "
        "answer should be."
    )
