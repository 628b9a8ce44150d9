"""Read the column that says which of a person's answers to an item came first.

In: batches of a column of numbers, times or dates. Out: one row of two numbers an entry, which
compare as the entries do: the nearest double, and what is left of a whole number beyond 2^53. Text
is read as numbers or as ISO dates; other text has no order that everybody would agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import BadResponses
from discreet.tables.values import show
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.tables.opener import RowPlaces

_STAMP = pa.timestamp("us")
_ZONED = pa.timestamp("us", "UTC")


class OrderKeys:
    """The keys of a column as it comes in: all of them numbers, or all of them dates."""

    def __init__(self) -> None:
        self._kind = ""
        self._keys: list[FloatArray] = []

    def add(self, column: Any, name: str, rows: RowPlaces) -> None:
        """Take a batch; stop at the first row that has no place in the order."""
        self._keys.append(self.read(column, name, rows))

    def read(self, column: Any, name: str, rows: RowPlaces) -> FloatArray:
        """Return the keys of a batch."""
        values = _undress(column)
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


def sort_keys(keys: Int64Array, when: FloatArray | None) -> Int64Array:
    """Return the entries by key, and of equal keys by time, those of one time as they came."""
    if when is None or not when.shape[1]:
        return np.argsort(keys, kind="stable")
    return np.lexsort((when[:, 1], when[:, 0], keys))


def no_order(entries: int) -> FloatArray:
    """Return the keys of entries that have none but their place."""
    return np.zeros((entries, 0))


def _undress(column: Any) -> Any:
    """Return a column without its dictionary, in text without blanks around it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        return pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return column


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _find_keys(values: Any) -> tuple[str, FloatArray]:
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


def _parse(words: Any) -> tuple[str, FloatArray]:
    for kind in (pa.int64(), pa.float64(), _STAMP, _ZONED):
        try:
            what, keys = _find_keys(words.cast(kind))
        except pa.ArrowInvalid:
            continue
        if kind == pa.float64():
            _split_texts(words, keys)
        return what, keys
    return "", np.full((len(words), 2), np.nan)


def _widen(values: Any) -> FloatArray:
    near = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.stack([near, np.zeros(len(near))], axis=1)


def _split_whole(values: Any) -> FloatArray:
    """Return whole numbers as the nearest double and the rest, which no two of them share."""
    keys = _widen(values)
    if np.nanmax(np.abs(keys[:, 0]), initial=0.0) > 2.0**53:
        whole = values.fill_null(0).to_pylist()
        near = np.nan_to_num(keys[:, 0]).tolist()
        keys[:, 1] = [one - int(double) for one, double in zip(whole, near, strict=True)]
    return keys


def _split_texts(words: Any, keys: FloatArray) -> None:
    """Keep whole numbers beyond 2^53 exact beside others: one decimal changes no other order."""
    large = np.isfinite(keys[:, 0]) & (np.abs(keys[:, 0]) > 2.0**53)
    for row in np.flatnonzero(large).tolist():
        text = words[row].as_py()
        if text.lstrip("+-").isdigit():
            keys[row, 1] = int(text) - int(keys[row, 0])


def _find_odd(values: Any) -> int:
    """Return the first row that is neither a number nor a date."""
    kinds: Sequence[str] = [_find_keys(values.slice(row, 1))[0] for row in range(len(values))]
    return next((row for row, kind in enumerate(kinds) if not kind or kind != kinds[0]), 0)


def _refuse(place: str, name: str, value: object) -> BadResponses:
    found = "nothing" if value is None else show(value)
    return BadResponses(
        f"{place}, column '{name}': found {found}, which has no place in an order. order_by= "
        "(--order-by) needs numbers in every row, or dates and times as 2024-05-31 or "
        "2024-05-31T09:30:00."
    )
