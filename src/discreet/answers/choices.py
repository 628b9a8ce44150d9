"""Chosen options of multiple-choice items, beside a key of the right answers.

In: what :mod:`discreet.readers.choices` takes from tables. Out: :class:`Choices`, one byte for each
person and item. Scores say whether somebody was right; choices
say what attracted those who were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import BadResponses
from discreet.types import Int8Array

#: Stands for no answer.
NONE = -1
#: Stands for the answers beyond the first hundred of an item: those are texts, not options.
OTHER = "(other)"
MOST_OPTIONS = 100


@dataclass(frozen=True, eq=False)
class Choices:
    """What each person chose of each item with a key.

    Attributes
    ----------
    items
        Items that the key names, in the order of the answers.
    options
        Per item what was chosen by anybody, and the right answers, in order.
    right
        Per item and option whether it is right.
    chosen
        ``[person, item]``: the number of the option, -1 without an answer.
    """

    items: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    right: tuple[tuple[bool, ...], ...]
    chosen: Int8Array

    def select(self, items: Sequence[str]) -> Choices | None:
        """Return these items, those of them that have a key; None if none has."""
        columns = [self.items.index(name) for name in items if name in self.items]
        if not columns:
            return None
        names = tuple(self.items[i] for i in columns)
        options = tuple(self.options[i] for i in columns)
        right = tuple(self.right[i] for i in columns)
        return Choices(names, options, right, self.chosen[:, columns])


def join_choices(parts: Sequence[tuple[Choices | None, int]]) -> Choices | None:
    """Return the choices of several sets of persons behind each other.

    Parameters
    ----------
    parts
        The choices of each set, None of answers without a key, and how many persons it has.

    Raises
    ------
    BadResponses
        If an answer is right by one key and wrong by another.
    """
    keyed = [part for part, _ in parts if part is not None]
    items = tuple(dict.fromkeys(item for part in keyed for item in part.items))
    if not items:
        return None
    keys = [_join_options(item, [part for part in keyed if item in part.items]) for item in items]
    chosen = np.concatenate([_renumber(part, persons, items, keys) for part, persons in parts])
    options, right = tuple(map(tuple, keys)), tuple(tuple(key.values()) for key in keys)
    return Choices(items, options, right, chosen)


def _join_options(item: str, parts: Sequence[Choices]) -> dict[str, bool]:
    """Return all options of an item in order, and which are right."""
    spelt: dict[str, str] = {}
    key: dict[str, bool] = {}
    for part in parts:
        index = part.items.index(item)
        for option, right in zip(part.options[index], part.right[index], strict=True):
            first = spelt.setdefault(option.lower(), option)
            if key.setdefault(first, right) != right:
                raise BadResponses(
                    f"The keys of the parts disagree: the answer '{option}' to item '{item}' is "
                    "right in one and wrong in another. Read all parts with the same key."
                )
    if len(key) > MOST_OPTIONS:
        wrong = [option for option, right in key.items() if not right]
        listed = set(wrong[: MOST_OPTIONS - (len(key) - len(wrong))])
        key = {name: right for name, right in key.items() if right or name in listed}
        key.setdefault(OTHER, False)
    return {option: key[option] for option in sorted(key, key=rank_option)}


def _renumber(
    part: Choices | None, persons: int, items: Sequence[str], keys: Sequence[dict[str, bool]]
) -> Int8Array:
    """Return a set's choices by the numbers that the options have in all sets together."""
    table = np.full((persons, len(items)), NONE, dtype=np.int8)
    for column, (item, options) in enumerate(zip(items, keys, strict=True)):
        if part is None or item not in part.items:
            continue
        number = {option.lower(): code for code, option in enumerate(options)}
        index = part.items.index(item)
        codes = [number.get(word.lower(), number.get(OTHER, NONE)) for word in part.options[index]]
        table[:, column] = np.array([*codes, NONE], dtype=np.int8)[part.chosen[:, index]]
    return table


def rank_option(name: str) -> tuple[bool, float, str]:
    """Put numbers by size before words."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name.lower()
