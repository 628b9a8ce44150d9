"""What counts as right, wrong and missing.

In: one value, or an Arrow column of values, as a file or data frame holds them. Out: small
codes: 1 right, 0 wrong (with steps, categories from 0), -1 missing, -2 none of these. Nothing here
knows rows, names or files; the caller says where a bad value was.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.choices import PlainMapping
from discreet.errors import BadUsage

MISSING = -1
BAD = -2

#: Spellings of "no answer", in lower case and without blanks around them.
MISSING_WORDS = frozenset({"", "na", "nan", ".", "null"})

ANSWERS = {"true": 1, "false": 0}
_TRUTH = {word: str(answer) for word, answer in ANSWERS.items()}
#: What is right and wrong. Nothing is rounded: 0.99999999999999999 is not 1.
_SCORES = {"0": 0, "1": 1}

# ASCII digits only, and exponents that Decimal can hold; float() would also take "1_0" and "nan".
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,6})?", re.IGNORECASE)
#: Digits before or behind the point up to which a number has one spelling, and bits of a number
#: up to which Python writes it in digits.
_DIGITS, _MOST_BITS = 60, 10_000
#: A decimal comma. With three digits behind it, it could as well part the thousands.
_COMMA = re.compile(r"[+-]?[0-9]+,([0-9]{1,2}|[0-9]{4,})")

# pandas' own marks for "no value", recognised by name so that pandas is not imported.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})

LARGEST = float_info.max


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


@dataclass(frozen=True)
class ValueScoring:
    """How values become answers.

    Attributes
    ----------
    at_least
        None for answers that are 0 and 1 already; otherwise numbers from here on are right
        and smaller numbers wrong. Truth values are then refused: "true" is not a number.
    missing
        Codes that stand for a missing answer, as :func:`spell` writes them.
    right
        The right answers of an item with a key, as :func:`spell` writes them in lower case; every
        other answer is wrong. None where answers are scored already.
    codes
        The category of every value of an item with steps, as :func:`spell` writes them; any other
        value is none. None for right and wrong.
    otherwise
        The code of a value that is no answer.
    blank
        The code of a blank cell.
    """

    at_least: float | None = None
    missing: tuple[str, ...] = ()
    right: frozenset[str] | None = None
    codes: Mapping[str, int] | None = None
    otherwise: int = BAD
    blank: int = MISSING


#: One code for a missing answer, or several; or codes by column, with "*" for all columns.
Codes = str | float | Iterable[str | float] | PlainMapping

#: Stands for all columns where codes are given by column.
EVERYWHERE = "*"


def make_scoring(at_least: float | None, missing: Codes) -> ValueScoring:
    """Check how values are to become answers.

    Examples
    --------
    >>> make_scoring(None, [9, "99"])
    ValueScoring(at_least=None, missing=('9', '99'), right=None, codes=None, otherwise=-2, blank=-1)
    """
    is_number = isinstance(at_least, int | float) and not isinstance(at_least, bool)
    if at_least is not None and not (is_number and abs(at_least) <= LARGEST):
        raise BadUsage(f"at_least must be a finite number; found {at_least!r}.")
    if isinstance(missing, Mapping):
        raise BadUsage(
            "missing= names codes by column here, where columns have no names; give codes that "
            "hold for all of them, such as missing=[9, 99]."
        )
    codes = _spell_codes(missing, scored=at_least is not None)
    return ValueScoring(None if at_least is None else float(at_least), codes)


def split_missing(
    missing: Codes, at_least: float | None, *, any_code: bool = False
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the codes for all columns, and those for single ones.

    ``any_code`` lets 0 and 1 stand for a missing answer, where answers start above them.

    Examples
    --------
    >>> split_missing({"*": 9, "Q1": [98, 99]}, None)
    (('9',), {'Q1': ('98', '99')})
    """
    scored = any_code or at_least is not None
    if not isinstance(missing, Mapping):
        return _spell_codes(missing, scored=scored), {}
    by_column = {str(name): _spell_codes(codes, scored=scored) for name, codes in missing.items()}
    return by_column.pop(EVERYWHERE, ()), by_column


def _spell_codes(missing: Any, *, scored: bool) -> tuple[str, ...]:
    codes_given = [missing] if isinstance(missing, (str, int, float)) else missing
    codes = tuple(spell(code).lower() for code in codes_given)
    if not scored and not {"0", "1", *ANSWERS}.isdisjoint(codes):
        raise BadUsage(
            f"missing={missing!r} (--missing) names an answer: 0, 1, true and false are wrong and "
            "right, and all of one kind would be dropped. Name only codes that stand for no answer."
        )
    return codes


def spell(value: object) -> str:
    """Return a value as it is compared: numbers in one spelling, texts without blanks around them.

    Examples
    --------
    >>> [spell(value) for value in (9.0, "9,0", "+9", "0.50", ".5", "5e-1", "1,000", " B ")]
    ['9', '9', '9', '0.5', '0.5', '0.5', '1,000', 'B']
    """
    return _settle(str(value).strip())


@lru_cache(maxsize=4096)
def _settle(word: str) -> str:
    if _COMMA.fullmatch(word):
        word = word.replace(",", ".")
    return spell_number(Decimal(word)) or word if _NUMBER.fullmatch(word) else word


def spell_number(number: Decimal) -> str:
    """Return the one spelling of a number; nothing where it would have too many digits.

    Examples
    --------
    >>> [spell_number(Decimal(word)) for word in ("7.0", "-0", "0.50", "1E+2", "1E+900000")]
    ['7', '0', '0.5', '100', '']
    """
    if not number.is_finite() or abs(number.adjusted()) > _DIGITS:
        return ""
    is_whole = number == number.to_integral_value()
    return str(int(number)) if is_whole else f"{number:f}".rstrip("0")


def score_value(value: object, scoring: ValueScoring) -> int:
    """Return the code of one Python value: text, a number, a truth value or None.

    Examples
    --------
    >>> texts = ("1", " FALSE", "0.0", "NA", "2", "+1", "1e0")
    >>> [score_value(text, ValueScoring()) for text in texts]
    [1, 0, 0, -1, -2, 1, 1]
    >>> [score_value(text, ValueScoring(3, ("9",))) for text in ("2", "3,5", "true", "9.0")]
    [0, 1, -2, -1]
    >>> [score_value(text, ValueScoring(right=frozenset({"b"}))) for text in ("A", "b ", "", "1")]
    [0, 1, -1, 0]
    """
    word = spell(write_cell(value) or "").lower()
    if not word:
        return scoring.blank
    if word in MISSING_WORDS or word in scoring.missing:
        return MISSING
    if scoring.right is not None:
        return int(word in scoring.right)
    if scoring.at_least is None:
        codes = _SCORES if scoring.codes is None else scoring.codes
        return codes.get(word, codes.get(_TRUTH.get(word, word), scoring.otherwise))
    is_number = _NUMBER.fullmatch(word) is not None
    return int(Decimal(word) >= Decimal(repr(scoring.at_least))) if is_number else scoring.otherwise


def drop_codes(X: Any, items: Sequence[str] | None, missing: Codes) -> Any:
    """Return a matrix without the entries that are codes for a missing answer.

    Parameters
    ----------
    X
        A matrix ``[person, item]``: an array, masked or not, nested lists, or scipy's sparse.
    items
        Names of the columns; None calls them "0", "1", ...
    missing
        Codes for all items, or by item.
    """
    everywhere, by_item = split_missing(missing, None)
    sparse = X.tocoo() if hasattr(X, "tocoo") else None
    cells = np.ma.getdata(X) if sparse is None else sparse.data
    names = list(items or map(str, range((X if sparse is None else sparse).shape[1])))
    unknown = [name for name in by_item if name not in names]
    if unknown:
        raise BadUsage(
            f"missing= names codes for item '{unknown[0]}', which is none of the {len(names)} "
            f"items ('{names[0]}', ...). Write items as items= does."
        )
    codes = {names.index(name): words for name, words in by_item.items()}
    if sparse is not None:
        is_answer = ~_are_codes(cells, everywhere)
        for column, words in codes.items():
            is_answer &= (sparse.col != column) | ~_are_codes(cells, words)
        places = (sparse.row[is_answer], sparse.col[is_answer])
        return type(sparse)((cells[is_answer], places), shape=sparse.shape)
    mask = np.ma.getmaskarray(X) | _are_codes(cells, everywhere)
    for column, words in codes.items():
        mask[:, column] |= _are_codes(cells[:, column], words)
    return np.ma.MaskedArray(cells, mask)


def _are_codes(cells: npt.NDArray[Any], codes: Sequence[str]) -> npt.NDArray[np.bool_]:
    if cells.dtype.kind in "buif":
        numbers = [float(number) for code in codes if (number := as_number(code)) is not None]
        return np.asarray(np.isin(cells, numbers))
    same = [spell(value).lower() in codes for value in cells.ravel().tolist()]
    return np.array(same, dtype=np.bool_).reshape(cells.shape)


def show(value: object) -> str:
    """Return a value as messages show it: never long."""
    return _SHORT.repr(value)


def as_number(value: object) -> Decimal | None:
    """Return the number that a value is or spells; None where it is none, or not finite."""
    text = spell(value)
    return Decimal(text) if _NUMBER.fullmatch(text) else None


#: Up to here every whole number has its own float64, so that 7.0 can safely become "7".
_EXACT = float(1 << 53)


def write_cell(cell: object) -> str | None:
    """Return one cell as text, as a CSV file would have it; None stays None.

    Examples
    --------
    >>> [write_cell(cell) for cell in (7.0, 0.5, False, date(2024, 5, 1), "x", None)]
    ['7', '0.5', 'false', '2024-05-01', 'x', None]
    >>> [write_cell(cell) for cell in (Decimal("7.50"), np.float32(0.1), np.datetime64("NaT"))]
    ['7.5', '0.1', None]
    """
    kind = type(cell)
    if kind.__name__ in _MISSING_TYPES:
        return None
    return next(_WRITERS[base] for base in kind.__mro__ if base in _WRITERS)(cell)


def _write_float(cell: float) -> str | None:
    if cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    # As a column of numbers would be spelt, which is how Python spells most numbers.
    is_short = 1e-4 <= abs(cell) < 1e9
    return str(cell) if is_short else str(pa.array([cell]).cast(pa.string())[0].as_py())


#: How cells are written, by their type or the next one that it is made of.
_WRITERS: Mapping[type, Callable[[Any], str | None]] = {
    type(None): lambda _: None,
    str: str,
    bool: lambda cell: str(cell).lower(),
    int: lambda cell: str(cell) if cell.bit_length() < _MOST_BITS else hex(cell),
    float: _write_float,
    complex: lambda cell: str(cell) if cell.imag else write_cell(cell.real),
    Decimal: lambda cell: spell_number(cell) or str(cell),
    bytes: lambda cell: cell.decode(errors="backslashreplace"),
    date: date.isoformat,
    datetime: datetime.isoformat,
    time: time.isoformat,
    np.floating: lambda cell: _write_float(float(str(cell))),
    np.generic: lambda cell: write_cell(cell.item()),
    object: str,
}
