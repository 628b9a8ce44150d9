"""Rows of a wide table that are no persons: left out, taken as the key, or warned about.

In: a source and how it is read. Out: a source without these rows, the right answers that one of
them holds, or sentences that name rows which are hardly persons. Rows are named by the text of one
of their cells, by their number below the names, or by the word "blank". A release reads every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses
from discreet.tables.columns import LongPlan, WidePlan, plan_columns
from discreet.tables.ids import plain_column
from discreet.tables.lists import Key, split_key_cell
from discreet.tables.reading import Reading
from discreet.tables.remedies import Detected
from discreet.tables.values import MISSING_WORDS, plain_dictionary, read_integers, spell
from discreet.tables.vocabulary import is_label
from discreet.types import BoolArray

if TYPE_CHECKING:
    from discreet.tables.opener import Source

BLANK = "blank"
"""The word for rows without any entry."""
MOST_BY_HAND = 20_000
"""Rows up to which a table may be made by hand."""
_FEW = 2
"""Rows that may have the same label: a class or a group is no key and no total."""
_SHOWN = 5


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


# -- rows that are hardly persons ----------------------------------------------------------------


def find_labels(columns: Iterable[Sequence[str | None]]) -> dict[int, str]:
    """Return, by row, what says beside the answers that it is a key or totals."""
    labels: dict[int, str] = {}
    for column in columns:
        for row, word in enumerate(column):
            if word is not None and is_label(word) and column.count(word) <= _FEW:
                labels.setdefault(row, word)
    return dict(sorted(labels.items()))


def tell_odd_rows(
    reading: Reading, is_empty: BoolArray | None, sources: Iterator[Source]
) -> list[str]:
    """Tell of blank rows, and of rows with the label of a key or of totals.

    Parameters
    ----------
    reading
        How the tables were read.
    is_empty
        By row of all tables, whether it has no answer; None where rows have ids.
    sources
        The tables.
    """
    blank: list[str] = []
    labelled: list[str] = []
    for source in sources:
        plan, texts = (
            plan_columns(source.names, reading, source.name),
            list[tuple[str | None, ...]](),
        )
        if isinstance(plan, LongPlan):
            return []
        for batch in source.batches(range(len(source.names))):
            columns = [
                [None if cell is None else spell(cell) or None for cell in part.to_pylist()]
                for part in batch
            ]
            texts += zip(*columns, strict=True)
        items = {*plan.items, *plan.order}
        turned = enumerate(zip(*texts, strict=True))
        beside = (list(column) for number, column in turned if number not in items)
        labelled += [f"{source.place(row)} ('{word}')" for row, word in find_labels(beside).items()]
        if is_empty is not None and is_empty.any():
            blank += [source.place(n) for n, row in enumerate(texts) if not any(row)]
    return [*_tell(blank, _BLANK_ROWS), *_tell(labelled, _LABELLED_ROWS)]


_BLANK_ROWS = "Rows without any entry count", "Delete them if nobody belongs to them."
_LABELLED_ROWS = (
    "Rows that look like a key or like totals count",
    "Delete them if they are no persons; a key goes into key= (--key).",
)


def _tell(places: Sequence[str], words: tuple[str, str]) -> list[str]:
    if not places:
        return []
    more = len(places) - _SHOWN
    listed = "; ".join(places[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return [f"{words[0]} as persons, {len(places)} of them: {listed}. {words[1]}"]
