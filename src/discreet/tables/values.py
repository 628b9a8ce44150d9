"""What counts as right, wrong and missing.

In: one value, or an Arrow column of values, as a file or data frame holds them. Out: small
codes: 1 right, 0 wrong, -1 missing, -2 none of these. Nothing here knows rows, names or files;
the caller says where a bad value was.
"""

from __future__ import annotations

import re
import reprlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.types import Int8Array

MISSING = -1
BAD = -2

MISSING_WORDS = frozenset({"", "na", "nan", ".", "null"})
"""Spellings of "no answer", in lower case and without blanks around them."""

_ANSWERS = {"true": 1, "false": 0}
_ANSWER = re.compile(r"[01](\.0+)?")
"""How 0 and 1 are spelt. Nothing is rounded: 0.99999999999999999 is not 1."""

# ASCII digits only, and exponents that Decimal can hold; float() would also take "1_0" and "nan".
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,6})?", re.IGNORECASE)
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")

# pandas' own marks for "no value", recognised by name so that pandas is not imported.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})

LARGEST = float_info.max
_CODE = 12
"""Characters that a code for a missing answer may have, to be suggested as one."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60

_ACCEPTED = (
    "Answers must be 0, 1, true or false, or missing (blank, NA, NaN, '.' or null), "
    "because the model knows only right and wrong."
)


@dataclass(frozen=True)
class Scoring:
    """How values become answers.

    Attributes
    ----------
    at_least
        None for answers that are 0 and 1 already; otherwise numbers from here on are right
        and smaller numbers wrong. Truth values are then refused: "true" is not a number.
    missing
        Codes that stand for a missing answer, as :func:`_spell` writes them.
    """

    at_least: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def threshold(self) -> Decimal | None:
        """``at_least`` as it was written, to compare with decimals exactly."""
        return None if self.at_least is None else Decimal(repr(self.at_least))


Codes = str | float | Iterable[str | float]
"""One code for a missing answer, or several."""


def make_scoring(at_least: float | None, missing: Codes) -> Scoring:
    """Check how values are to become answers.

    Examples
    --------
    >>> make_scoring(None, [9, "99"])
    Scoring(at_least=None, missing=('9', '99'))
    """
    if at_least is not None and not _is_finite(at_least):
        raise BadUsage(f"at_least must be a finite number; found {at_least!r}.")
    given = [missing] if isinstance(missing, (str, int, float)) else missing
    codes = tuple(_spell(code).lower() for code in given)
    if at_least is None and not {"0", "1", *_ANSWERS}.isdisjoint(codes):
        raise BadUsage(
            f"missing={missing!r} (--missing) names an answer: 0, 1, true and false are wrong and "
            "right, and all of one kind would be dropped. Name only codes that stand for no answer."
        )
    return Scoring(None if at_least is None else float(at_least), codes)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _spell(value: object) -> str:
    """Return a code as text, so that 9, 9.0 and " 9" are one."""
    word = str(value).strip()
    return _WHOLE.sub(r"\1", word) if _WHOLE.fullmatch(word) else word


def score_value(value: object, scoring: Scoring) -> int:
    """Return the code of one Python value: text, a number, a truth value or None.

    Examples
    --------
    >>> [score_value(text, Scoring()) for text in ("1", " FALSE", "0.0", "NA", "2", "+1", "1e0")]
    [1, 0, 0, -1, -2, -2, -2]
    >>> [score_value(text, Scoring(3, ("9",))) for text in ("2", "3.5", "true", "9.0")]
    [0, 1, -2, -1]
    """
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return MISSING
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    word = _spell(value).lower()
    if word in MISSING_WORDS or word in scoring.missing:
        return MISSING
    if isinstance(value, str):
        return _score_text(word, scoring)
    if isinstance(value, (bool, np.bool_)):
        return BAD if scoring.at_least is not None else int(value)
    number = _as_number(value)
    return BAD if number is None else _score_number(number, scoring)


def _score_text(word: str, scoring: Scoring) -> int:
    if scoring.at_least is None:
        return int(word[0]) if _ANSWER.fullmatch(word) else _ANSWERS.get(word, BAD)
    return _score_number(Decimal(word), scoring) if _NUMBER.fullmatch(word) else BAD


def _score_number(number: float | Decimal, scoring: Scoring) -> int:
    if scoring.at_least is None:
        return int(number) if number in (0, 1) else BAD
    if number in (inf, -inf):
        return BAD
    exact = isinstance(number, Decimal)
    return int(number >= (scoring.threshold if exact else scoring.at_least))  # type: ignore[operator]


def score_array(array: Any, scoring: Scoring) -> Int8Array:
    """Return the codes of an Arrow array of any type; nulls are missing."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _score_dictionary(array, scoring)
    if pa.types.is_boolean(kind) and scoring.at_least is None:
        return np.asarray(array.cast(pa.int8()).fill_null(MISSING).to_numpy(zero_copy_only=False))
    if not scoring.missing and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _score_numbers(array, scoring.at_least)
    # Few distinct values, each looked at once: text, decimals, and types that are no answers.
    return _score_dictionary(_encode(array), scoring)


def _encode(array: Any) -> Any:
    import pyarrow as pa

    try:
        return array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if v is None else repr(v) for v in array.to_pylist()]).cast(
            pa.dictionary(pa.int32(), pa.string())
        )


def _score_dictionary(array: Any, scoring: Scoring) -> Int8Array:
    words = array.dictionary.to_pylist()
    codes = np.array([*(score_value(word, scoring) for word in words), MISSING], dtype=np.int8)
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
    empty = np.asarray(array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    numbers = np.asarray(array.to_numpy(zero_copy_only=False))
    if at_least is None:
        codes = np.where(numbers == 1, 1, np.where(numbers == 0, 0, BAD))
    else:
        codes = np.where(np.isfinite(numbers), numbers >= at_least, BAD)
    return np.where(empty, MISSING, codes).astype(np.int8)


def show(value: object) -> str:
    """Return a value as messages show it: never long."""
    return _SHORT.repr(value)


def explain_bad_answer(
    where: str, column: str, value: object, scoring: Scoring, *, wide: bool
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
    scoring
        What was asked for.
    wide
        Whether the column was taken for an item, so that it may not be one.
    """
    found = f"{where}, column '{column}': found {show(value)} where an answer should be."
    if scoring.at_least is not None:
        return (
            f"{found} With at_least={scoring.at_least:g} every answer must be a number or missing "
            f"(blank, NA, NaN, '.' or null). Correct the cell{_advise_missing(value)}."
        )
    return f"{found} {_ACCEPTED} {_advise(column, value, wide)}"


def _advise(column: str, value: object, wide: bool) -> str:
    # Never a threshold made of the value found: a code for "missing" would become the key.
    if _as_number(value) is None:
        advice = f"Correct the cell, or leave it blank{_advise_missing(value)}."
    else:
        advice = (
            f"Correct the cell{_advise_missing(value)}; if answers are scores, say from which "
            "score on they count as right with at_least=SCORE (--at-least SCORE)."
        )
    if wide:
        advice += (
            f" If '{column}' is not an item, leave it out with ignore=['{column}'] "
            f"(--ignore {column})."
        )
    return advice


def _advise_missing(value: object) -> str:
    word = _spell(value)
    is_whole = _WHOLE.fullmatch(f"{word}.0") is not None
    is_text = isinstance(value, str) and _as_number(word) is None and word.lower() not in _ANSWERS
    if not (is_whole or is_text) or len(word) > _CODE or "," in word:
        return ""
    code = word if is_whole else repr(word)
    return (
        f"; if {word} stands for a missing answer, say so with missing=[{code}] "
        f"(--missing {shlex.quote(word)})"
    )


def _as_number(value: object) -> float | Decimal | None:
    """Return the number that a value is or spells; None where it is none, or not finite."""
    if isinstance(value, str):
        text = value.strip()
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, Decimal):
        return value
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number
