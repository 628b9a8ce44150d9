"""Counts of repeated and of graded answers, of whatever holds them.

In: a path, a frame, an array, answers. Out: :class:`~discreet.answers.repeated.SampleCounts` with
persons as units; the clusters of persons or items, from a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np

from discreet.answers.matrices import is_matrix
from discreet.answers.protocol import Answers
from discreet.answers.repeated import SampleCounts, sum_graded, sum_samples
from discreet.coding.reading import Reading, ReadingWords
from discreet.coding.values import MISSING_WORDS, as_number, write_cell
from discreet.errors import BadResponses, BadUsage
from discreet.readers.opening import load_answers, open_memory, plan_words
from discreet.readers.testlets import read_testlets
from discreet.tables.columns import LongPlan, find_role_names
from discreet.tables.dataset import is_query, names_database
from discreet.tables.lists import state_reading
from discreet.tables.opener import Source, plan_source, read_tables
from discreet.tables.sources import has_head

#: A person, an item and a score, NaN for missing.
Cell = tuple[object, object, float]

#: What says how a score would become an answer.
_SCORING = ("at_least", "key", "model", "steps", "lowest", "reverse", "categories", "merge")


def read_counts(source: Any, words: ReadingWords, *, graded: bool = False) -> SampleCounts:
    """Read answers, of which there may be several of a person to an item, or scores from 0 to 1."""
    if graded:
        return _read_scores(source, words)
    if words.get("repeats") != "sum":
        return sum_samples(load_answers(source, words))
    if isinstance(source, Answers) or is_matrix(source):
        raise BadUsage(
            f"repeats='sum' counts the repeated rows of a table, and {type(source).__name__} has "
            "one answer of a person to an item. Give the table itself, or leave repeats= out"
        )
    # Whoever says which answer counts is not asked which one shall.
    stated: ReadingWords = {**words, "repeats": "first"}
    plan = plan_words(source, stated, is_inspected=True) or Reading()
    rules = replace(plan, repeats="error", order_by=None, sums=True)
    return sum_samples(open_memory(source, rules))


def refuse_turned(source: Any, words: ReadingWords) -> None:
    """Refuse a table with a row for each question and models in columns, where rows are models."""
    is_file = isinstance(source, str | PathLike) and not (
        is_query(source) or names_database(source)
    )
    if not (is_file or has_head(source)) or words.keys() & {"layout", "person"}:
        return
    rules = state_reading({**words, "repeats": "first"})
    names = read_tables(source, lambda tables: next(tables).names, reading=rules)
    roles = find_role_names(names, Reading())
    if roles.keys() == {"item"}:
        column = roles["item"][0]
        raise BadUsage(
            f"column '{column}' says that each row is a question, with models in columns, and a "
            "leaderboard needs a row for each model. Say layout='transposed' (--layout "
            f"transposed), or person='{column}' (--person) if these are the models"
        )


def read_clusters(
    source: Any, column: str, words: ReadingWords, of: Literal["person", "item"]
) -> dict[str, str]:
    """Return the cluster of each person or item, from a column of the table of the answers."""
    has_columns = isinstance(source, str | PathLike) or hasattr(source, "columns")
    if isinstance(source, Answers) or is_matrix(source) or not has_columns:
        raise BadUsage(
            f"cluster='{column}' names a column, and {type(source).__name__} has none. Give a "
            "mapping to clusters, or a long table"
        )
    rules = state_reading({**words, "repeats": "first"})
    name = read_tables(source, partial(_name_column, rules, of == "item"), reading=rules)
    noun = "question" if of == "item" else "person"
    return read_testlets(source, column, name, nouns=(noun, "cluster"))


def _name_column(reading: Reading, is_item: bool, tables: Iterator[Source]) -> str:
    """Return what the column of persons or items of a long table is called."""
    table = next(tables)
    plan = plan_source(table, reading)
    number = plan.person if not is_item else plan.item if isinstance(plan, LongPlan) else None
    if number is None:
        raise BadUsage(
            f"{table.name} has a column for each question, so that no column can say where a "
            "question belongs. Give a long table, with a row for each answer, or a mapping from "
            "question to cluster (cluster={...})"
        )
    return table.names[number]


def _read_scores(source: Any, words: ReadingWords) -> SampleCounts:
    """Read scores from 0 to 1, of a table of any layout or a matrix."""
    if stated := [word for word in _SCORING if words.get(word)]:
        raise BadUsage(
            f"graded scores count as they are, and {stated[0]}= says how values become answers. "
            f"Leave out {stated[0]}=, or graded=True (--graded)"
        )
    if isinstance(source, Answers):
        return sum_samples(load_answers(source, words))
    if is_matrix(source):
        return sum_graded(_list_matrix(source))
    rules = state_reading({**words, "repeats": "first"})
    if rules.layout == "transposed":
        from discreet.tables.dataset import turn_round

        source, rules = turn_round(source, rules)
    return sum_graded(read_tables(source, partial(_list_tables, rules), reading=rules))


def _list_matrix(source: Any) -> Iterator[Cell]:
    """List the cells of a matrix; -1 is missing, as everywhere in arrays."""
    cells = source.tocoo() if hasattr(source, "tocoo") else None
    if cells is not None:
        rows, columns, score = cells.row, cells.col, cells.data.astype(np.float64)
    else:
        filled = np.ma.filled(np.ma.asarray(source, dtype=np.float64), np.nan)
        if filled.ndim != 2:
            raise BadUsage(f"scores need an array [person, item], found {filled.ndim} dimensions")
        rows, columns = np.indices(filled.shape).reshape(2, -1)
        score = filled.ravel()
    score = np.where(score == -1, np.nan, score)
    return zip(rows.tolist(), columns.tolist(), score.tolist(), strict=True)


def _list_tables(reading: Reading, tables: Iterator[Source]) -> list[Cell]:
    """List the cells of tables, all long or all wide."""
    return [cell for table in tables for cell in _list_table(reading, table)]


def _list_table(reading: Reading, table: Source) -> Iterator[Cell]:
    plan, row = plan_source(table, reading), 0
    is_long = isinstance(plan, LongPlan)
    shown = (plan.item, plan.response) if isinstance(plan, LongPlan) else plan.items
    columns = [*shown] if plan.person is None else [*shown, plan.person]
    for batch in table.batches(columns):
        cells = [[write_cell(cell) for cell in part.to_pylist()] for part in batch]
        after = row + len(cells[0])
        ids = map(str, range(row, after)) if plan.person is None else cells.pop()
        for number, person, *values in zip(range(row, after), ids, *cells, strict=True):
            names = values[:1] if is_long else [table.names[column] for column in shown]
            for item, value in zip(names, values[is_long:], strict=True):
                yield person, item, _read_score(table, reading, (number, str(item), value))
        row = after


def _read_score(table: Source, reading: Reading, cell: tuple[int, str, str | None]) -> float:
    row, item, value = cell
    text = (value or "").strip()
    codes = (*reading.codes.get("*", ()), *reading.codes.get(item, ()))
    if text.lower() in MISSING_WORDS or text in codes:
        return float("nan")
    has_comma = getattr(table, "decimal_comma", False) and text.count(",") == 1
    number = as_number(text.replace(",", ".") if has_comma else text)
    if number is None:
        raise BadResponses(
            f"{table.place(row)}: found {text!r} as the score of {item!r}, where graded scores are "
            "numbers from 0 to 1. Name the columns (person=, item=, response=), leave out what is "
            "no score (ignore=, --ignore), or state the code (missing=, --missing)"
        )
    return float(number)
