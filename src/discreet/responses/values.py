"""What counts as right, wrong and missing.

In: one value, or an Arrow column of values, as a file or data frame holds them. Out: small
codes: 1 right, 0 wrong, -1 missing, -2 none of these. Nothing here knows rows, names or files;
the caller says where a bad value was.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "BAD",
    "MISSING",
    "MISSING_WORDS",
    "explain_bad_answer",
    "read_integers",
    "score_array",
    "score_value",
]

Int8Array = npt.NDArray[np.int8]

MISSING = -1
BAD = -2

MISSING_WORDS = frozenset({"", "na", "nan", ".", "null"})
"""Spellings of "no answer", in lower case and without blanks around them."""

# Plain decimal numbers only: Python's own float() would also take "1_0", "infinity" and "nan".
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

# pandas' own marks for "no value", recognised by name so that pandas is not imported.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})

_ACCEPTED = (
    "Answers must be 0, 1, true or false, or missing (blank, NA, NaN, '.' or null), "
    "because the model knows only right and wrong."
)


def score_value(value: object, at_least: float | None) -> int:
    """Return the code of one Python value.

    Parameters
    ----------
    value
        Text, a number, a truth value or None.
    at_least
        None for answers that are 0 and 1 already; otherwise numbers from here on are right
        and smaller numbers wrong. Truth values are then refused: "true" is not a number.

    Examples
    --------
    >>> [score_value(text, None) for text in ("1", " FALSE", "0.0", "NA", "2")]
    [1, 0, 0, -1, -2]
    >>> [score_value(text, 3) for text in ("2", "3.5", "true")]
    [0, 1, -2]
    """
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return MISSING
    if isinstance(value, str):
        return _score_text(value, at_least)
    if isinstance(value, (bool, np.bool_)):
        return BAD if at_least is not None else int(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return BAD
    return _score_number(number, at_least)


def _score_text(text: str, at_least: float | None) -> int:
    word = text.strip().lower()
    if word in MISSING_WORDS:
        return MISSING
    if word in ("true", "false"):
        return BAD if at_least is not None else int(word == "true")
    if not _NUMBER.fullmatch(word):
        return BAD
    return _score_number(float(word), at_least)


def _score_number(number: float, at_least: float | None) -> int:
    if math.isnan(number):
        return MISSING
    if at_least is not None:
        return int(number >= at_least) if math.isfinite(number) else BAD
    return int(number) if number in (0.0, 1.0) else BAD


def score_array(array: Any, at_least: float | None) -> Int8Array:
    """Return the codes of an Arrow array of any type; nulls are missing."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _score_dictionary(array, at_least)
    if pa.types.is_boolean(kind) and at_least is None:
        return np.asarray(array.cast(pa.int8()).fill_null(MISSING).to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _score_numbers(array, at_least)
    # Text, and every type that cannot be an answer: few distinct values, each looked at once.
    return _score_dictionary(_encode(array), at_least)


def _encode(array: Any) -> Any:
    import pyarrow as pa

    try:
        return array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if v is None else repr(v) for v in array.to_pylist()]).cast(
            pa.dictionary(pa.int32(), pa.string())
        )


def _score_dictionary(array: Any, at_least: float | None) -> Int8Array:
    words = array.dictionary.to_pylist()
    codes = np.array([*(score_value(word, at_least) for word in words), MISSING], dtype=np.int8)
    indices = array.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(len(words))
    return np.asarray(codes[read_integers(indices)])


def read_integers(array: Any) -> npt.NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, not copied.

    Unlike ``to_numpy`` this does not import pandas, which takes a third of a second.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(array.buffers()[1], dtype=dtype)[array.offset : array.offset + len(array)]


def _score_numbers(array: Any, at_least: float | None) -> Int8Array:
    import pyarrow as pa

    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    empty = np.asarray(array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    numbers = np.asarray(array.to_numpy(zero_copy_only=False))
    if at_least is None:
        codes = np.where(numbers == 1, 1, np.where(numbers == 0, 0, BAD))
    else:
        codes = np.where(np.isfinite(numbers), numbers >= at_least, BAD)
    return np.where(empty, MISSING, codes).astype(np.int8)


def explain_bad_answer(
    where: str, column: str, value: object, at_least: float | None, *, wide: bool
) -> str:
    """Return the message for a value that is no answer.

    Parameters
    ----------
    where
        File and row, as a person would look for them.
    column
        The column's name.
    value
        What stood there.
    at_least
        The threshold in force.
    wide
        Whether the column was taken for an item, so that it may not be one.
    """
    found = f"{where}, column '{column}': found {_show(value)} where an answer should be."
    if at_least is not None:
        return (
            f"{found} With at_least={at_least:g} every answer must be a number or missing "
            "(blank, NA, NaN, '.' or null). Correct the cell."
        )
    return f"{found} {_ACCEPTED} {_advice(column, value, wide)}"


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _advice(column: str, value: object, wide: bool) -> str:
    number = _as_number(value)
    if number is not None and number < 0:
        advice = "If this number stands for a missing answer, leave the cell blank."
    elif number is not None:
        threshold = f"{number:g}"
        advice = (
            f"Correct the cell, or say from which value on an answer counts as right, for example "
            f"at_least={threshold} (--at-least {threshold})."
        )
    else:
        advice = "Correct the cell, or leave it blank."
    if wide:
        advice += (
            f" If '{column}' is not an item, leave it out with ignore=['{column}'] "
            f"(--ignore {column})."
        )
    return advice


def _as_number(value: object) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _NUMBER.fullmatch(text) else None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
