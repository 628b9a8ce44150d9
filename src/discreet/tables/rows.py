"""Rows of a wide table that are no persons: left out, or taken as the key.

In: a source and how it is read. Out: a source without these rows, or the right answers that one of
them holds. Rows are named by the text of one of their cells, by their number below the names, or
by the word "blank". A release reads every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses
from discreet.tables.columns import WidePlan, plan_columns
from discreet.tables.ids import plain_column
from discreet.tables.key import Key, split_key_cell
from discreet.tables.reading import Reading
from discreet.tables.remedies import Detected
from discreet.tables.values import MISSING_WORDS, plain_dictionary, read_integers, spell
from discreet.types import BoolArray

if TYPE_CHECKING:
    from discreet.tables.opener import Source

BLANK = "blank"
"""The word for rows without any entry."""


class TrimmedSource:
    """A source without the rows that a reading drops; see :mod:`discreet.tables.opener`."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self._source, self.name, self.names = source, source.name, source.names
        self._rows = reading.rows_aside
        self._kept: list[int] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns without the rows that are dropped."""
        before, every = 0, range(len(self.names))
        for batch in self._source.batches(every):
            keeps = ~match_rows(batch, self._rows, before)
            before += len(keeps)
            yield [_keep(batch[number], keeps) for number in columns]

    def place(self, row: int) -> str:
        """Say where a row is in the whole table."""
        if self._kept is None:
            self._kept, before = [], 0
            for batch in self._source.batches(range(len(self.names))):
                keeps = ~match_rows(batch, self._rows, before)
                self._kept += (before + np.flatnonzero(keeps)).tolist()
                before += len(keeps)
        return self._source.place(self._kept[row])

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return what the source itself detected."""
        return self._source.detect(columns, has_ids=has_ids)


def _keep(column: Any, keeps: BoolArray) -> Any:
    """Return the kept cells; a dictionary would still hold the ids of rows that are gone."""
    return column if keeps.all() else plain_column(column.filter(pa.array(keeps)))


def match_rows(batch: Sequence[Any], rows: Sequence[int | str], before: int = 0) -> BoolArray:
    """Say which rows of a batch are named by number, by the text of a cell, or as blank.

    Parameters
    ----------
    batch
        All columns.
    rows
        What names them.
    before
        Rows before this batch.
    """
    hits = np.zeros(len(batch[0]), dtype=np.bool_)
    labels = {str(row).casefold() for row in rows if not isinstance(row, int)} - {BLANK}
    for row in rows:
        if isinstance(row, int) and before < row <= before + len(hits):
            hits[row - before - 1] = True
    if labels:
        for column in batch:
            hits |= _match(column, labels)
    if BLANK in rows:
        hits |= np.logical_and.reduce([_match(column, {""}) for column in batch])
    return hits


def _match(column: Any, words: set[str]) -> BoolArray:
    """Say which cells hold one of these texts; nulls hold the empty one."""
    coded = plain_dictionary(column)
    is_match = [_text(value) in words for value in coded.dictionary.to_pylist()]
    index = read_integers(coded.indices.cast("int64").fill_null(len(is_match)))
    return np.asarray(np.array([*is_match, "" in words])[index])


def _text(value: Any) -> str:
    return "" if value is None else spell(value).casefold()


def settle_key_row(reading: Reading, source: Source) -> Reading:
    """Return a reading with the key that a row of the table holds."""
    row = reading.key_row
    if row is None or reading.right:
        return reading
    plan = plan_columns(source.names, reading, source.name)
    before = 0
    for batch in source.batches(range(len(source.names))):
        hits = np.flatnonzero(match_rows(batch, (row,), before))
        if hits.size and isinstance(plan, WidePlan):
            cells = {source.names[n]: _text(batch[n][int(hits[0])].as_py()) for n in plan.items}
            right = {
                item: split_key_cell(cell)
                for item, cell in cells.items()
                if cell not in MISSING_WORDS
            }
            return replace(reading, key=Key(right))
        before += len(batch[0])
    raise BadResponses(
        f"{source.name} has no row {row!r}, from which key_row= (--key-row) takes the right "
        "answers. Name it by the text of one of its cells, or by its number below the names."
    )


def trim_table(table: Any, reading: Reading) -> Any:
    """Return an Arrow table without the rows that a reading drops."""
    columns = [column.combine_chunks() for column in table.columns]
    return table.filter(pa.array(~match_rows(columns, reading.rows_aside)))
