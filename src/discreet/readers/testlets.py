"""The column of a long table that says which testlet an item belongs to.

In: a table with one row per answer. Out: a mapping from item to testlet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet.coding.reading import Reading
from discreet.errors import BadUsage
from discreet.tables.columns import LongPlan
from discreet.tables.opener import Source, plan_source, read_columns, read_tables


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


def name_item_column(source: Any, reading: Reading) -> str:
    """Return what the column of items of a long table is called."""

    def take(tables: Iterator[Source]) -> str:
        table = next(tables)
        plan = plan_source(table, reading)
        if not isinstance(plan, LongPlan):
            raise BadUsage(
                f"{table.name} has a column for each question, so that no column can say where a "
                "question belongs. Give a mapping from question to cluster (cluster={...}), or a "
                "long table"
            )
        return table.names[plan.item]

    return str(read_tables(source, take, reading=reading))
