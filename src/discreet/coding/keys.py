"""Right answers: by item, or in the order of the columns.

In: a mapping, letters, or the path of a table. Out: a :class:`Key`, spelt as answers are compared
("b", "B " and "B" are one), or a :class:`KeyFile`, which whoever reads tables opens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.choices import PlainMapping
from discreet.coding.values import MISSING_WORDS, spell
from discreet.errors import BadUsage

Words = tuple[str, ...]

_LETTERS = re.compile(r"[A-Za-z0-9]+|[^\w\s./\\]+")
_ALWAYS, _BETWEEN_LETTERS = re.compile(r"[|;]"), re.compile(r"[,/]")

#: What messages say of it.
HOW_KEYS = (
    "A key is a table with the columns item and answer (a row per right answer), or the right "
    "answers in the order of the columns, such as ABDCA"
)


@dataclass(frozen=True)
class Key:
    """Right answers, by item or in the order of the columns."""

    by_item: Mapping[str, Words] = field(default_factory=dict)
    in_order: tuple[Words, ...] = ()

    @property
    def given(self) -> bool:
        """Whether there is a key at all."""
        return bool(self.by_item or self.in_order)


@dataclass(frozen=True)
class KeyFile:
    """A key in a file, which :func:`discreet.tables.lists.state_reading` reads."""

    path: Path
    given = True

    @property
    def by_item(self) -> Mapping[str, Words]:
        """The right answers, which nobody knows yet."""
        raise BadUsage(
            f"the key in '{self.path}' is read with the answers; give the reading to read_responses"
        )

    @property
    def in_order(self) -> tuple[Words, ...]:
        """The right answers, which nobody knows yet."""
        return tuple(self.by_item.values())


#: What users give for a key.
KeyLike = str | os.PathLike[str] | PlainMapping | Key | KeyFile | None


def make_key(source: object) -> Key | KeyFile:
    """Return a key from whatever a user gives for one.

    Examples
    --------
    >>> make_key({"Q1": "B", "Q2": ["A", "C"]}).by_item
    {'Q1': ('b',), 'Q2': ('a', 'c')}
    >>> make_key("ABDC").in_order
    (('a',), ('b',), ('d',), ('c',))
    """
    if isinstance(source, Key | KeyFile):
        return source
    if source is None:
        return Key()
    if isinstance(source, Mapping):
        return check_key(Key({str(item): _spell_all(words) for item, words in source.items()}))
    if isinstance(source, os.PathLike):
        return KeyFile(Path(source))
    if not isinstance(source, str):
        raise BadUsage(
            f"key must be a mapping from items to right answers, a path or letters; found "
            f"{type(source).__name__}."
        )
    if Path(source).is_file() or not _is_row(source):
        return KeyFile(Path(source))
    pieces: Iterable[str] = source.split(",") if "," in source else source.strip()
    return check_key(Key(in_order=tuple(split_key_cell(piece) for piece in pieces)))


def _is_row(text: str) -> bool:
    """Say whether a text is answers in order rather than the name of a file."""
    parts = text.strip().split(",")
    return all(_LETTERS.fullmatch(part.strip().replace("|", "")) for part in parts)


def _spell_all(words: Any) -> Words:
    answers = [words] if isinstance(words, (str, int, float)) else list(words)
    return tuple(dict.fromkeys(spell(word).lower() for word in answers))


def split_key_cell(text: str) -> Words:
    """Return the right answers that one cell names: "A|C", and among letters also "A,C"."""
    pieces = _ALWAYS.split(text)
    if len(pieces) == 1:
        letters = _BETWEEN_LETTERS.split(text)
        pieces = letters if all(len(piece.strip()) == 1 for piece in letters) else pieces
    return _spell_all([piece for piece in pieces if piece.strip()])


def check_key(key: Key, source: str = "The key") -> Key:
    """Return a key that has a right answer for every item that it names."""
    item_words = [*key.by_item.items(), *((str(n), w) for n, w in enumerate(key.in_order, start=1))]
    for item, words in item_words:
        if not words or any(word in MISSING_WORDS for word in words):
            raise BadUsage(
                f"{source} has no right answer for item '{item}'. Give one, or leave the item out "
                "of the key and of the analysis with ignore= (--ignore)."
            )
    if not item_words:
        raise BadUsage(f"{source} names no item. {HOW_KEYS}.")
    return key
