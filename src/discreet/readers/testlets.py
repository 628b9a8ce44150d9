"""The column of a long table that says which testlet an item belongs to.

In: a table with one row per answer. Out: a mapping from item to testlet.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import BadUsage
from discreet.tables.opener import read_columns


def read_testlets(source: Any, testlet: str, item: str) -> dict[str, str]:
    """Return the testlet of each item that has one, from two columns of a table."""
    rows = zip(*read_columns(source, (item.lower(), testlet.lower()), "testlets"), strict=True)
    label_of: dict[str, str] = {}
    for name, label in rows:
        if label is not None and label_of.setdefault(str(name), str(label)) != str(label):
            raise BadUsage(
                f"item {str(name)!r} belongs to two testlets, {label_of[str(name)]!r} and "
                f"{str(label)!r}; every item has one"
            )
    return label_of
