"""Cells of a column: as answers, as texts, as numbers.

In: Arrow columns and Python values. Out: codes of answers, or one column of one type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.coding.reading import Reading
from discreet.coding.values import BAD, MISSING, ValueScoring, score_value, write_cell
from discreet.types import Int8Array

#: Pairs of items and values that are looked up in a table, however few rows there are.
_TABLE = 1 << 16


def score_array(array: pa.Array, scoring: ValueScoring) -> Int8Array:
    """Return the codes of an Arrow array of any type; nulls are missing."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _score_dictionary(array, scoring)
    plain = scoring == ValueScoring(scoring.at_least)
    if pa.types.is_boolean(kind) and plain and scoring.at_least is None:
        return np.asarray(array.cast(pa.int8()).fill_null(MISSING).to_numpy(zero_copy_only=False))
    if plain and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _score_numbers(array, scoring.at_least)
    # Few distinct values, each looked at once: text, decimals, and types that are no answers.
    return _score_dictionary(_encode(array), scoring)


def score_by_item(
    array: pa.Array, items: pa.Array, scoring_of: Callable[[str], ValueScoring]
) -> Int8Array:
    """Return the codes of answers to different items, each scored as its item is.

    Parameters
    ----------
    array
        The answers, of any type.
    items
        The item of each, as a dictionary without nulls.
    scoring_of
        From an item's name to how it is scored.
    """
    (words, answer), names = code_column(array), items.dictionary.to_pylist()
    n_words = len(words) + 1
    pair_code = read_integers(items.indices).astype(np.int64) * n_words + answer
    if n_words * len(names) <= max(len(pair_code), _TABLE):
        size = n_words * len(names)
        pairs = np.flatnonzero(np.bincount(pair_code, minlength=size))
    else:
        pairs, pair_code = np.unique(pair_code, return_inverse=True)
        size = len(pairs)
    words.append(None)
    scorings = [scoring_of(name) for name in names]
    codes = [score_value(words[pair % n_words], scorings[pair // n_words]) for pair in pairs]
    table = np.zeros(size, dtype=np.int8)
    table[pairs if size > len(pairs) else slice(None)] = codes
    return np.asarray(table[pair_code])


def drop_ignored(codes: Int8Array, items: pa.Array, ignores: Callable[[str], bool]) -> Int8Array:
    """Return codes with a missing answer, whatever was answered, to items that are ignored."""
    ignored = np.array([ignores(name) for name in items.dictionary.to_pylist()], dtype=np.bool_)
    if not ignored.any():
        return codes
    return np.where(ignored[read_integers(items.indices)], np.int8(MISSING), codes)


def score_long(reading: Reading, column: pa.Array, items: pa.Array) -> Int8Array:
    """Return the codes of the answers of a long table; ``items`` is a dictionary beside."""
    codes = (
        score_by_item(column, items, reading.scoring_of)
        if reading.by_item
        else score_array(column, reading.scoring)
    )
    return drop_ignored(codes, items, reading.ignores) if reading.listed else codes


def plain_dictionary(array: pa.Array) -> pa.Array:
    """Return an Arrow array as codes and distinct values."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array if pa.types.is_dictionary(array.type) else _encode(array)


def code_column(column: pa.Array) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return the distinct values of a column, and which of them each cell has; nulls come last."""
    coded = plain_dictionary(column)
    words = coded.dictionary.to_pylist()
    return words, read_integers(coded.indices.cast("int64").fill_null(len(words)))


def match_cells(
    column: pa.Array, is_match: Callable[[Any], bool], *, nulls: bool = False
) -> npt.NDArray[np.bool_]:
    """Say which cells hold a value that passes a test; ``nulls`` says whether nulls do."""
    words, code = code_column(column)
    return np.array([*map(is_match, words), nulls], dtype=np.bool_)[code]


def _encode(array: pa.Array) -> pa.Array:
    try:
        return array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if v is None else repr(v) for v in array.to_pylist()]).cast(
            pa.dictionary(pa.int32(), pa.string())
        )


def _score_dictionary(array: pa.Array, scoring: ValueScoring) -> Int8Array:
    words = array.dictionary.to_pylist()
    codes = np.array([score_value(word, scoring) for word in [*words, None]], dtype=np.int8)
    indices = array.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(len(words))
    return np.asarray(codes[read_integers(indices)])


def read_integers(array: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, not copied.

    Unlike ``to_numpy`` this does not import pandas, which takes a third of a second.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(array.buffers()[1], dtype=dtype)[array.offset : array.offset + len(array)]


def _score_numbers(array: pa.Array, at_least: float | None) -> Int8Array:
    empty = np.asarray(array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    numbers = np.asarray(array.to_numpy(zero_copy_only=False))
    if at_least is None:
        codes = np.where(numbers == 1, 1, np.where(numbers == 0, 0, BAD))
    else:
        least = at_least if numbers.dtype.kind == "f" else ceil(at_least)  # exact for large numbers
        codes = np.where(np.isfinite(numbers), numbers >= least, BAD)
    return np.where(empty, MISSING, codes).astype(np.int8)


def make_column(cells: Sequence[object]) -> pa.Array:
    """Return cells of no declared type as a column: numbers of one type, or texts.

    Each cell is written by itself: what a text says is never decided by the cells beside it, and a
    column of numbers is read as their texts would be.

    Examples
    --------
    >>> make_column([1.0, None, 0.0]).to_pylist(), make_column(["a", 7.0, True]).to_pylist()
    ([1.0, None, 0.0], ['a', '7', 'true'])
    """
    kinds = {*map(type, cells)} - {type(None)}
    if len(kinds) == 1 and (kind := _TYPES.get(*kinds)) is not None:
        with suppress(OverflowError, UnicodeEncodeError):
            return pa.array(cells, kind)
    words = [write_cell(cell) for cell in cells]
    return pa.array(
        [w and w.encode(errors="backslashreplace").decode() for w in words], pa.string()
    )


_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string()}


def clean_cell(cell: object) -> Any:
    """Return a cell, with None for one that holds nothing or only blanks."""
    return None if isinstance(cell, str) and not cell.strip() else cell


def letter_column(number: int) -> str:
    """Return what spreadsheets call a column, numbered from 0.

    Examples
    --------
    >>> letter_column(0), letter_column(25), letter_column(26), letter_column(702)
    ('A', 'Z', 'AA', 'AAA')
    """
    letters, number = "", number + 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def label_columns(names: Sequence[str]) -> list[str]:
    """Return names that tell columns apart: those without a name, or with one again, by letter.

    Examples
    --------
    >>> label_columns(["1", "", "1"])
    ['1', 'column B', '1 (column C)']
    """
    labels, known_names = [], set[str]()
    for number, name in enumerate(names):
        letter = f"column {letter_column(number)}"
        labels.append(letter if not name else f"{name} ({letter})" if name in known_names else name)
        known_names.add(name)
    return labels
