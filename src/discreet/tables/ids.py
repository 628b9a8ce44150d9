"""Turn person and item ids into numbers, a batch at a time.

In: Arrow columns of ids, of any type. Out: ids as text, each once, in order of first
appearance, and an int32 code per row. Text stays as written ("007" stays "007") but for blanks
around it, which would make two persons of one. Columns of numbers or dates give the order of
repeated answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.coding.values import MISSING_WORDS, show, write_cell
from discreet.errors import BadResponses
from discreet.tables.cells import read_integers
from discreet.types import FloatArray

if TYPE_CHECKING:
    from discreet.tables.opener import RowPlaces

#: Distinct ids that may wait for unification: about 20 MB. Past that, work is done at once.
_ENTRIES = 1 << 20

#: Up to here every whole number has its own float, so "7.0" can safely become "7".
_EXACT_UP_TO = {pa.float16(): 2.0**11, pa.float32(): 2.0**24, pa.float64(): 2.0**53}
#: How programs write numbers that were rounded into text files. R writes 100000 as 1e+05, which is
#: exact; Excel shows 12 digits as 1.23457E+11; pandas writes floats below 1e16 with a point.
_ROUNDED = r"(?i)^-?([0-9](\.[0-9]+)?e\+(1[1-9]|[2-9][0-9]|[0-9]{3,})|(9[0-9]{15}|[0-9]{17,})\.0+)$"

_TEXT = pa.string()
#: What people do not see of an id, or read as the same number.
_UNSEEN = r"\.0+$|[\x{200b}-\x{200d}\x{2060}\x{feff}]"
#: Texts that are one-to-one with whole numbers: no leading zeros, no plus sign.
_WHOLE = r"^(0|-?[1-9][0-9]{0,18})$"


def make_texts(words: Sequence[str]) -> pa.Array:
    """Return short texts as Arrow strings without ``pa.array``, which would import pandas."""
    octets = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, octets)], dtype=np.int32)
    buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(octets))
    return pa.StringArray.from_buffers(len(words), *buffers)


_MISSING = make_texts(sorted(MISSING_WORDS))


class BadIds(Exception):
    """A row of a column of ids holds something that is no text, such as a list."""

    def __init__(self, row: int, value: object) -> None:
        super().__init__(row, value)
        self.row, self.value = row, value


def plain_column(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, which may hold ids that no row uses."""
    if isinstance(column, pa.ChunkedArray):
        # Putting one chunk together would copy it.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        words = column.dictionary
        if pa.types.is_string_view(words.type):  # of polars; they cannot be taken from
            words = words.cast(pa.large_string())
            column = pa.DictionaryArray.from_arrays(column.indices, words)
        return column.dictionary_decode()
    if column.type != pa.uuid():
        return column
    return pa.array([None if value is None else str(value) for value in column.to_pylist()])


def encode_ids(column: pa.Array) -> pa.Array:
    """Return ids as a dictionary of distinct texts; rows without an id are null."""
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        written = _as_text(encoded.dictionary)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        for row, value in enumerate(column.to_pylist()):
            is_text = isinstance(value, bytes) and value.decode(errors="ignore").encode() == value
            if value is not None and not is_text:
                raise BadIds(row, value) from None
        raise BadIds(0, column.type) from None
    words = pc.utf8_trim_whitespace(written)
    indices = encoded.indices.cast(pa.int32())
    # By blanks, or as 0.0 and -0.0, distinct ids can become the same word.
    is_float = pa.types.is_floating(encoded.dictionary.type)
    if is_float or not pc.all(pc.equal(written, words)).as_py():
        distinct = words.dictionary_encode()
        words, indices = distinct.dictionary, pc.take(distinct.indices, indices)
    is_word = pc.is_in(pc.utf8_lower(words), value_set=_MISSING)
    missing = pc.or_kleene(is_word, pc.is_null(words))
    # Only where needed: a scalar of pyarrow imports pandas, which takes a third of a second.
    if pc.any(missing).as_py():
        dropped = pc.fill_null(pc.take(missing, indices), True)
        indices = pc.if_else(dropped, pa.scalar(None, pa.int32()), indices)
        words = pc.fill_null(words, "")
    return pa.DictionaryArray.from_arrays(indices, words)


def _as_text(words: pa.Array) -> pa.Array:
    if pa.types.is_decimal(words.type):  # 7.00 is 7, however many digits the column declares
        return pa.array(map(write_cell, words.to_pylist()), pa.string())
    if not pa.types.is_floating(words.type):
        return words.cast(pa.string())
    # Value by value, so that an id reads the same whatever else its batch holds.
    numbers = pc.if_else(pc.is_nan(words), None, words.cast(pa.float64()))
    exact = pc.and_(
        pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), _EXACT_UP_TO[pa.float64()])
    )
    integers = pc.if_else(exact, numbers, None).cast(pa.int64())
    return pc.coalesce(integers.cast(pa.string()), numbers.cast(pa.string()))


def read_ids(column: pa.Array, name: str, role: str, rows: RowPlaces) -> pa.Array:
    """Return a column of ids as texts; stop at the first row without one (but for groups)."""
    try:
        ids = encode_ids(column)
    except BadIds as bad:
        raise BadResponses(
            f"{rows.place(rows.n_rows + bad.row)}, column '{name}': found {show(bad.value)}, which "
            f"cannot be the {role} id: ids are text (UTF-8) or numbers. Write the column as text."
        ) from None
    rounded = None if role == "group" else find_rounded(column, ids)
    if rounded is not None:
        raise BadResponses(
            f"{rows.place(rows.n_rows + rounded)}, column '{name}': found {column[rounded]}, so "
            f"large that it was rounded: several {role}s may have become one. Cast ids to whole "
            "numbers before the merge that made floats of them, or read ids as text."
        )
    if ids.indices.null_count == 0 or role == "group":
        return ids
    row = int(np.flatnonzero(ids.indices.is_null().to_numpy(zero_copy_only=False))[0])
    raise BadResponses(
        f"{rows.place(rows.n_rows + row)}, column '{name}': the {role} id is missing. Without it "
        f"the row belongs to no {role}. Fill it in, or remove the row."
    )


def find_rounded(column: pa.Array, ids: pa.Array) -> int | None:
    """Return the first row with an id that was a float beyond the last exact whole number."""
    is_rounded = pc.take(pc.match_substring_regex(ids.dictionary, _ROUNDED), ids.indices)
    if column.type in _EXACT_UP_TO:
        numbers = pc.abs(column.cast(pa.float64()))
        is_rounded = pc.greater_equal(numbers, _EXACT_UP_TO[column.type])
    # Only where needed: a scalar of pyarrow imports pandas.
    return pc.index(is_rounded, True).as_py() if pc.any(is_rounded).as_py() else None


def count_alike(ids: pa.Array) -> int:
    """Return how many ids are others but for composed letters, a final .0, or invisible signs.

    Examples
    --------
    >>> count_alike(pa.array(["é", "e\u0301", "7", "7.0", "z", "z\u200b", "y"]))
    3
    """
    if not pa.types.is_string(ids.type):
        return 0
    if not pc.any(pc.match_substring_regex(ids, r"[^\x00-\x7f]|\.0+$")).as_py():
        return 0
    plain = pc.replace_substring_regex(pc.utf8_normalize(ids, "NFC"), _UNSEEN, "")
    return len(ids) - int(pc.count_distinct(plain).as_py())


def is_rounded(word: str | None) -> bool:
    """Say whether an id that was written as text had been rounded before."""
    return word is not None and re.search(_ROUNDED, word) is not None


def find_numbers(words: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return ids as 64-bit numbers where they were whole numbers, else as texts.

    Parameters
    ----------
    words
        Their texts.
    kind
        The type of the column that they come from. Numbers say what they are; so does text of a
        type of its own. Only the cells of a text file (:mod:`discreet.tables.sources` encodes
        them) have no type: they are numbers where all of them read as whole numbers, and none as
        "007" or "+7".
    """
    if not may_be_numbers(kind) or not pc.all(pc.match_substring_regex(words, _WHOLE)).as_py():
        return words
    try:
        return words.cast(pa.int64())
    except pa.ArrowInvalid:  # more than 64 bits
        return words


def may_be_numbers(kind: pa.DataType) -> bool:
    """Say whether a column of this type can hold numbers: not if it is a type of text."""
    kinds = pa.types
    is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)
    return bool(is_number or kinds.is_dictionary(kind))


class IdCodes:
    """Distinct ids in order of first appearance, and the code of every row added."""

    def __init__(self) -> None:
        self._numbers = True
        self._known = pa.nulls(0, pa.string())
        self._codes: list[npt.NDArray[np.int32]] = []
        self._waiting: list[pa.Array] = []
        self._entries = 0

    def add(self, ids: pa.Array, kind: pa.DataType = _TEXT) -> None:
        """Take a batch from :func:`encode_ids`; null rows get the code -1.

        ``kind`` is the type of its column; where one has text, all ids are text.
        """
        self._numbers = self._numbers and may_be_numbers(kind)
        self._waiting.append(ids)
        self._entries += len(ids.dictionary)
        # Waiting for as many entries as are known already keeps the total work linear.
        if self._entries > max(_ENTRIES, len(self._known)):
            self._unify()

    def _unify(self) -> None:
        known_ids = pa.DictionaryArray.from_arrays(pa.nulls(0, pa.int32()), self._known)
        unified = pa.chunked_array([known_ids, *self._waiting]).unify_dictionaries()
        self._known = unified.chunk(0).dictionary
        for chunk in unified.chunks[1:]:
            codes = pc.fill_null(chunk.indices, -1) if chunk.null_count else chunk.indices
            self._codes.append(read_integers(codes))
        self._waiting, self._entries = [], 0

    def names(self) -> pa.Array:
        """Return the distinct ids as Arrow strings."""
        self._unify()
        return self._known

    def ids(self) -> pa.Array:
        """Return the distinct ids as Arrow numbers or strings; see :func:`find_numbers`."""
        return find_numbers(self.names(), pa.int64() if self._numbers else _TEXT)

    def take_codes(self) -> npt.NDArray[np.int32]:
        """Return the codes of all rows, in order, and forget them."""
        self._unify()
        codes, self._codes = self._codes, []
        return np.concatenate(codes) if codes else np.zeros(0, dtype=np.int32)


# -- the order of repeated answers -------------------------------------------------------------

_PARSED = (pa.int64(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


class OrderKeys:
    """The keys of a column as it comes in: all of them numbers, or all of them dates."""

    def __init__(self) -> None:
        self._kind = ""
        self._keys: list[FloatArray] = []

    def add(self, column: pa.Array, name: str, rows: RowPlaces) -> None:
        """Take a batch; stop at the first row that has no place in the order."""
        self._keys.append(self.read(column, name, rows))

    def read(self, column: pa.Array, name: str, rows: RowPlaces) -> FloatArray:
        """Return the keys of a batch."""
        values = _decode_dictionary(column)
        kind, keys = _find_keys(values)
        bad = np.isnan(keys[:, 0])
        if not kind or bad.any():
            row = int(np.argmax(bad)) if kind else _find_odd(values)
            raise _refuse(rows.place(rows.n_rows + row), name, values[row].as_py())
        if self._kind not in ("", kind):
            raise BadResponses(
                f"{rows.place(rows.n_rows)}, column '{name}': found {kind} after {self._kind}, so "
                "it is not clear which answer is the last. Write the column in one way."
            )
        self._kind = kind
        return keys

    def finish(self) -> FloatArray | None:
        """Return the keys of all rows; None where no column was read."""
        return np.concatenate(self._keys) if self._keys else None


def _decode_dictionary(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, in text without blanks around it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        return pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return column


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _find_keys(values: pa.Array) -> tuple[str, FloatArray]:
    """Return what the values are, and their keys; no word where they have no order."""
    kind = values.type
    if pa.types.is_integer(kind):
        return "numbers", _split_whole(values)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers", _widen(values)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        stamps = values.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return "dates", _widen(stamps.cast(pa.int64()))
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "times", _widen(values.cast(pa.int64()))
    return _parse(values) if _is_text(kind) else ("", np.full((len(values), 2), np.nan))


def _parse(words: pa.Array) -> tuple[str, FloatArray]:
    for kind in _PARSED:
        try:
            kind_name, keys = _find_keys(words.cast(kind))
        except pa.ArrowInvalid:
            continue
        if kind == pa.float64():
            _split_texts(words, keys)
        return kind_name, keys
    return "", np.full((len(words), 2), np.nan)


def _widen(values: pa.Array) -> FloatArray:
    doubles = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.stack([doubles, np.zeros(len(doubles))], axis=1)


def _split_whole(values: pa.Array) -> FloatArray:
    """Return whole numbers as the nearest double and the rest, which no two of them share."""
    keys = _widen(values)
    if np.nanmax(np.abs(keys[:, 0]), initial=0.0) > 2.0**53:
        exact = values.fill_null(0).to_pylist()
        floats = np.nan_to_num(keys[:, 0]).tolist()
        keys[:, 1] = [number - int(double) for number, double in zip(exact, floats, strict=True)]
    return keys


def _split_texts(words: pa.Array, keys: FloatArray) -> None:
    """Keep whole numbers beyond 2^53 exact beside others: one decimal changes no other order."""
    large = np.isfinite(keys[:, 0]) & (np.abs(keys[:, 0]) > 2.0**53)
    for row in np.flatnonzero(large).tolist():
        text = words[row].as_py()
        if text.lstrip("+-").isdigit():
            keys[row, 1] = int(text) - int(keys[row, 0])


def _find_odd(values: pa.Array) -> int:
    """Return the first row that is neither a number nor a date."""
    kinds: Sequence[str] = [_find_keys(values.slice(row, 1))[0] for row in range(len(values))]
    return next((row for row, kind in enumerate(kinds) if not kind or kind != kinds[0]), 0)


def _refuse(location: str, name: str, value: object) -> BadResponses:
    spelling = "nothing" if value is None else show(value)
    return BadResponses(
        f"{location}, column '{name}': found {spelling}, which has no place in an order. order_by= "
        "(--order-by) needs numbers in every row, or dates and times as 2024-05-31 or "
        "2024-05-31T09:30:00."
    )
