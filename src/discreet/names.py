"""Ids as text that remember that they were whole numbers.

Items and persons are named by text, everywhere. But a table that is joined with another one needs
its ids in the type that they came in. So the text of a number carries that it was one, through
every result; only tables (:class:`~discreet.tabular.Tabular`) and files of results ask.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from os import PathLike
from typing import Any

#: Texts that are one-to-one with whole numbers: no leading zeros, no plus sign.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_LARGEST = (1 << 63) - 1


class NumberName(str):
    """The text of an id that was a whole number of 64 bits.

    Examples
    --------
    >>> NumberName(7), NumberName(7) == "7", type(str(NumberName(7))).__name__
    ('7', True, 'NumberName')
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self  # so that making texts of names does not forget it


def name_id(value: object) -> str:
    """Return the name of an item or a person, whatever it was given as."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    is_small = is_number and -_LARGEST - 1 <= value <= _LARGEST  # type: ignore[operator]
    return NumberName(value) if is_small else str(value)


def spell_path(path: str | PathLike[str]) -> str:
    r"""Return the name of a file as text that any document can hold.

    Examples
    --------
    >>> spell_path("caf\udce9.csv")
    'caf\\xe9.csv'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def read_names(words: Iterable[str]) -> tuple[str, ...]:
    """Return names as a text file spells them: numbers where every one is a whole number.

    Examples
    --------
    >>> [isinstance(one, NumberName) for one in (*read_names(["7", "12"]), *read_names(["007"]))]
    [True, True, False]
    """
    names = tuple(words)
    if all(_WHOLE.fullmatch(name) and abs(int(name)) <= _LARGEST for name in names):
        return tuple(map(NumberName, names))
    return names


def settle_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names that are numbers all of them, or none."""
    listed = tuple(names)
    if are_numbers(listed) or not any(isinstance(name, NumberName) for name in listed):
        return listed
    return tuple(str.__str__(name) for name in listed)


def are_numbers(cells: Sequence[object]) -> bool:
    """Say whether these are names, and all of them were numbers."""
    return len(cells) > 0 and all(isinstance(cell, NumberName) for cell in cells)


def restore_ids(cells: list[Any]) -> list[Any]:
    """Return a column of a table, names that were numbers as numbers again."""
    return [int(cell) for cell in cells] if are_numbers(cells) else cells
