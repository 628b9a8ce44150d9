"""Turn person and item ids into numbers, a batch at a time.

In: Arrow columns of ids, of any type. Out: ids as text, each once, in order of first
appearance, and an int32 code per row. Text stays as written ("007" stays "007") but for blanks
around it, which would make two persons of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.responses.values import MISSING_WORDS, read_integers

__all__ = ["BadIds", "IdCodes", "encode_ids", "plain_column"]

_ENTRIES = 1 << 20
"""Distinct ids that may wait for unification: about 20 MB. Past that, work is done at once."""

_EXACT_FLOAT = float(1 << 53)
"""Up to here every whole number has its own float64, so "7.0" can safely become "7"."""


def _make_texts(words: list[str]) -> Any:
    """Return short texts as Arrow strings without ``pa.array``, which would import pandas."""
    octets = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, octets)], dtype=np.int32)
    buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(octets))
    return pa.StringArray.from_buffers(len(words), *buffers)


_MISSING = _make_texts(sorted(MISSING_WORDS))


class BadIds(Exception):
    """A row of a column of ids holds something that is no text, such as a list."""

    def __init__(self, row: int, value: object) -> None:
        super().__init__(row, value)
        self.row, self.value = row, value


def plain_column(column: Any) -> Any:
    """Return a column without its dictionary, which may hold ids that no row uses."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def encode_ids(column: Any) -> Any:
    """Return ids as a dictionary of distinct texts; rows without an id are null."""
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        written = _as_text(encoded.dictionary)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise _find_bad_id(column) from None
    words = pc.utf8_trim_whitespace(written)
    indices = encoded.indices.cast(pa.int32())
    if _may_repeat(encoded.dictionary, written, words):
        again = words.dictionary_encode()
        words, indices = again.dictionary, pc.take(again.indices, indices)
    missing = _is_missing(words)
    # Only where needed: a scalar of pyarrow imports pandas, which takes a third of a second.
    if pc.any(missing).as_py():
        dropped = pc.fill_null(pc.take(missing, indices), True)
        indices = pc.if_else(dropped, pa.scalar(None, pa.int32()), indices)
        words = pc.fill_null(words, "")
    return pa.DictionaryArray.from_arrays(indices, words)


def _find_bad_id(column: Any) -> BadIds:
    for row, value in enumerate(column.to_pylist()):
        is_text = isinstance(value, bytes) and value.decode(errors="ignore").encode() == value
        if value is not None and not is_text:
            return BadIds(row, value)
    return BadIds(0, column.type)


def _may_repeat(ids: Any, written: Any, words: Any) -> bool:
    """Say whether distinct ids can have become the same word: by blanks, or as 0.0 and -0.0."""
    return pa.types.is_floating(ids.type) or not pc.all(pc.equal(written, words)).as_py()


def _as_text(words: Any) -> Any:
    if not pa.types.is_floating(words.type):
        return words.cast(pa.string())
    # Value by value, so that an id reads the same whatever else its batch holds.
    numbers = pc.if_else(pc.is_nan(words), None, words.cast(pa.float64()))
    whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), _EXACT_FLOAT))
    integers = pc.if_else(whole, numbers, None).cast(pa.int64())
    return pc.coalesce(integers.cast(pa.string()), numbers.cast(pa.string()))


def _is_missing(words: Any) -> Any:
    return pc.or_kleene(pc.is_in(pc.utf8_lower(words), value_set=_MISSING), pc.is_null(words))


class IdCodes:
    """Distinct ids in order of first appearance, and the code of every row added."""

    def __init__(self) -> None:
        self._known = pa.nulls(0, pa.string())
        self._codes: list[npt.NDArray[np.int32]] = []
        self._waiting: list[Any] = []
        self._entries = 0

    def add(self, ids: Any) -> None:
        """Take a batch from :func:`encode_ids`; null rows get the code -1."""
        self._waiting.append(ids)
        self._entries += len(ids.dictionary)
        # Waiting for as many entries as are known already keeps the total work linear.
        if self._entries > max(_ENTRIES, len(self._known)):
            self._unify()

    def _unify(self) -> None:
        known = pa.DictionaryArray.from_arrays(pa.nulls(0, pa.int32()), self._known)
        unified = pa.chunked_array([known, *self._waiting]).unify_dictionaries()
        self._known = unified.chunk(0).dictionary
        for chunk in unified.chunks[1:]:
            codes = pc.fill_null(chunk.indices, -1) if chunk.null_count else chunk.indices
            self._codes.append(read_integers(codes))
        self._waiting, self._entries = [], 0

    def names(self) -> Any:
        """Return the distinct ids as Arrow strings."""
        self._unify()
        return self._known

    def take_codes(self) -> npt.NDArray[np.int32]:
        """Return the codes of all rows, in order, and forget them."""
        self._unify()
        codes, self._codes = self._codes, []
        return np.concatenate(codes) if codes else np.zeros(0, dtype=np.int32)
