"""What else a long table says: the testlets of items, and scores that are neither right nor wrong.

In: a table with one row per answer. Out: a mapping from item to testlet; sums of scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from discreet.answers.repeated import SampleCounts
from discreet.coding.reading import Reading
from discreet.errors import BadResponses, BadUsage
from discreet.results.calibrated import list_numbers
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


def name_long_columns(source: Any, reading: Reading) -> tuple[str, str, str]:
    """Return what the columns of persons, items and answers of a long table are called."""

    def take(tables: Iterator[Source]) -> tuple[str, str, str]:
        table = next(tables)
        plan = plan_source(table, reading)
        if not isinstance(plan, LongPlan):
            raise BadUsage(
                f"{table.name} has a column for each question, so that no column can say where a "
                "question belongs, nor hold all scores. Give a long table, with a row for each "
                "answer; of clusters a mapping serves too (cluster={...})"
            )
        return table.names[plan.person], table.names[plan.item], table.names[plan.response]

    return read_tables(source, take, reading=reading)


def read_scores(source: Any, reading: Reading) -> SampleCounts:
    """Return the scores from 0 to 1 of a long table, added up; persons are the objects."""
    names = [name.lower() for name in name_long_columns(source, reading)]
    person, item, cells = read_columns(source, names, "scores", numbers=names[2:])
    score = list_numbers(cells, names[2])
    if not ((score >= 0) & (score <= 1) | np.isnan(score)).all():
        raise BadResponses(
            f"column '{names[2]}' has scores from {np.nanmin(score):g} to {np.nanmax(score):g}; "
            "graded scores are shares of right, from 0 to 1. Divide them by the highest that there "
            "can be"
        )
    given = ~np.isnan(score)
    (rows, units), (columns, objects) = _number(item), _number(person)
    success, tried = np.zeros((2, len(units), len(objects)))
    place = rows, columns
    np.add.at(success, place, np.nan_to_num(score))
    np.add.at(tried, place, given)
    return SampleCounts(units, objects, success, tried.astype(np.int64), np.arange(len(units)))


def _number(names: Iterable[object]) -> tuple[list[int], tuple[str, ...]]:
    """Return the numbers of names in the order in which they first occur, and these names."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(str(name), len(known)) for name in names]
    return numbers, tuple(known)
