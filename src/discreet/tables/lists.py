"""Lists that people write beside a table: keys, the items of a release with their steps, forms.

In: a small file, a mapping or letters in the order of the columns. Out: right answers by item,
spelt as answers are compared ("b", "B " and "B" are one); names and numbers, checked line by line.
The items and forms of a release are public, and so is every message about them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from discreet.choices import PlainMapping
from discreet.coding.keys import HOW_KEYS, Key, KeyFile, Words, check_key, split_key_cell
from discreet.coding.reading import Form, Reading, join_words
from discreet.coding.values import EVERYWHERE, as_number, write_cell
from discreet.errors import BadUsage, DiscreetWarning

_ITEM = ("item", "question", "problem", "aufgabe", "frage")
_RIGHT = (
    "key", "answer", "right", "correct", "solution", "right answer", "correct answer", "response",
    "lösung", "richtig", "antwort", "schlüssel",
)  # fmt: skip
_WITH_STEPS = re.compile(r"\W*(items?\W+steps?|steps?\W+items?)\W*", re.IGNORECASE)
_SHOWN = 6


def state_reading(words: PlainMapping) -> Reading:
    """Return the reading that keywords state, with the key that its file holds."""
    reading = join_words(words)
    if not isinstance(reading.key, KeyFile):
        return reading
    return replace(reading, key=_read_key(reading.key.path))


def _read_key(path: Path) -> Key:
    from discreet.tables.opener import read_rows

    if not path.exists():
        raise BadUsage(f"There is no file '{path}' for the key. {HOW_KEYS}.")
    names, rows = read_rows(path)
    return find_key(names, rows, str(path))


def find_key(names: Sequence[str], rows: Sequence[Sequence[str | None]], source: str) -> Key:
    """Return the key that a table holds: a row for each right answer, or one row of them all."""
    plain = [name.lower() for name in names]
    item = next((plain.index(word) for word in _ITEM if word in plain), None)
    right = next((plain.index(word) for word in _RIGHT if word in plain), None)
    if item is not None and right is not None:
        return check_key(_from_rows(source, [(row[item], row[right]) for row in rows]), source)
    if len(names) == 2:
        # Without names in its first row, that is an item like the others.
        return check_key(_from_rows(source, [(names[0], names[1]), *rows]), source)
    if len(rows) == 1:
        cells = zip(names, rows[0], strict=True)
        return check_key(
            Key({name: split_key_cell(cell or "") for name, cell in cells if name}), source
        )
    raise BadUsage(
        f"{source} cannot be read as a key: its columns are {', '.join(names)}. {HOW_KEYS}."
    )


def _from_rows(source: str, rows: Sequence[Sequence[str | None]]) -> Key:
    by_item: dict[str, Words] = {}
    for number, (item, answer) in enumerate(rows, start=1):
        if not (item or "").strip():
            raise BadUsage(f"{source}, entry {number} of the key names no item.")
        name = str(item).strip()
        by_item[name] = tuple(
            dict.fromkeys((*by_item.get(name, ()), *split_key_cell(answer or "")))
        )
    return Key(by_item)


# -- fitting a key to a table ------------------------------------------------------------------


def settle_key(reading: Reading, items: Sequence[str] | None, location: str) -> Reading:
    """Return a reading whose key is by item; ``items`` is None for tables without item columns."""
    letters = reading.right_in_order
    if not letters:
        return reading
    if items is None:
        raise BadUsage(
            f"{location} is a long table, whose items have no order that answers could follow. "
            "Give the key as a table with the columns item and answer (--key key.csv)."
        )
    if len(letters) != len(items):
        raise BadUsage(
            f"The key has {len(letters)} answers, but {location} has {len(items)} item columns "
            f"({_shorten(items)}). Give one letter per item, or name items in a table with the "
            "columns item and answer (--key key.csv). Leave out columns that are no items "
            "(--ignore)."
        )
    return replace(reading, key=Key(dict(zip(items, letters, strict=True))))


def check_named_items(reading: Reading, items: Sequence[str]) -> None:
    """Refuse a key or codes that fit none of the items; say which of them fit nothing."""
    if reading.carried:
        return
    item_names = reading.listed.union(items)
    unknown = [name for name in reading.codes if name not in item_names | {EVERYWHERE}]
    if unknown:
        raise BadUsage(
            f"missing= (--missing) names codes for {_shorten(unknown)}, but the items are "
            f"{_shorten(items)}. Write columns as the table does."
        )
    strange = [name for name in reading.right if name not in item_names]
    if strange and len(strange) == len(reading.right):
        raise BadUsage(
            f"None of the items of the key ({_shorten(strange)}) is among the answers, whose items "
            f"are {_shorten(items)}. Write items as the table does."
        )
    if strange and not reading.listed:
        warnings.warn(
            f"The key names {_shorten(strange)}, which nobody answered here; the rest of it is "
            "used.",
            DiscreetWarning,
            stacklevel=2,
        )


def _shorten(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    listed = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return f"{listed} and {more:,} more" if more > 0 else listed


# -- lists of a release ------------------------------------------------------------------------


def read_items(path: Path) -> list[str] | dict[str, int]:
    """Return the items of a file with one item per line, or by item the steps of a table.

    A first line that says ``item,steps`` makes it a table.
    """
    from discreet.tables.opener import read_columns

    if not _WITH_STEPS.fullmatch(",".join(next(iter(_list_rows(path)), ()))):
        return read_list(path)
    steps: dict[str, int] = {}
    columns = read_columns(path, ("item", "steps"), "lists of items with steps")
    for number, (item, step) in enumerate(zip(*columns, strict=True), start=2):
        name, n_steps = (write_cell(item) or "").strip(), as_number(step)
        if not name:
            raise BadUsage(f"{path}, line {number}: there is no item.")
        if name in steps:
            raise BadUsage(f"{path}, line {number}: item '{name}' is on the list already.")
        if n_steps is None or n_steps != int(n_steps):
            raise BadUsage(
                f"{path}, line {number}: item '{name}' has the steps {step!r}; it must be a whole "
                "number, the highest category less the lowest, which is 1 for right and wrong."
            )
        steps[name] = int(n_steps)
    if not steps:
        raise BadUsage(f"{path} names no item below its first line.")
    return steps


def read_form_list(path: Path) -> dict[str, list[str]]:
    """Return the items of each form, from a table with the columns form and item."""
    from discreet.tables.opener import read_columns

    forms: dict[str, list[str]] = {}
    columns = read_columns(path, ("form", "item"), "lists of forms")
    for number, (form, item) in enumerate(zip(*columns, strict=True), start=2):
        name, inside = ((write_cell(cell) or "").strip() for cell in (form, item))
        if not name or not inside:
            raise BadUsage(f"{path}, line {number}: a form or an item has no name.")
        forms.setdefault(name, []).append(inside)
    return forms


def _list_rows(path: Path) -> list[list[str]]:
    """Return the lines of a text file, or the rows of a workbook, header or not."""
    from discreet.tables.opener import read_rows
    from discreet.tables.paths import peek, read_text, sniff

    if sniff(path, peek(path)) != "workbook":
        return [[line] for line in read_text(path).splitlines()]
    _, rows = read_rows(path, Form(header=False))
    return [[cell or "" for cell in row] for row in rows]


def read_list(path: Path) -> list[str]:
    """Return the names in a file with one item per line; empty lines do not count.

    Of a workbook the first column is read.
    """
    first_seen: dict[str, int] = {}
    for number, row in enumerate(_list_rows(path), start=1):
        name = row[0].strip()
        if name in first_seen:
            raise BadUsage(
                f"{path}, line {number}: item '{name}' is on the list already, in line "
                f"{first_seen[name]}; each item has one line."
            )
        if name:
            first_seen[name] = number
    if not first_seen:
        raise BadUsage(f"{path} names no item; it must have one item per line.")
    return list(first_seen)
