"""Testlets: which items of a long table belong together.

In: a table with one row per answer. Out: a mapping from item to testlet.
"""

from __future__ import annotations

from typing import Any

from discreet.coding.values import write_cell
from discreet.errors import BadUsage
from discreet.tables.opener import read_columns


def read_testlets(
    source: Any, testlet: str, item: str, *, nouns: tuple[str, str] = ("item", "testlet")
) -> dict[str, str]:
    """Return the testlet of each item that has one, from two columns of a table.

    ``nouns`` are what messages call an item and a testlet.
    """
    rows = zip(*read_columns(source, (item.lower(), testlet.lower()), f"{nouns[1]}s"), strict=True)
    label_of: dict[str | None, str | None] = {}
    for name, label in (map(write_cell, row) for row in rows):
        if label is not None and label_of.setdefault(name, label) != label:
            raise BadUsage(
                f"{nouns[0]} {name!r} belongs to two {nouns[1]}s, {label_of[name]!r} and "
                f"{label!r}; every {nouns[0]} has one"
            )
    return {str(name): str(label) for name, label in label_of.items()}
