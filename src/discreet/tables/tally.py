"""How often every value of every item occurs: a look at all answers before they are read.

In: tables, and how to read them. Out: a tally, from which :mod:`discreet.tables.scales` sees which
values are steps. Only columns of items and answers are read; no person is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses
from discreet.tables.columns import LongPlan
from discreet.tables.ids import encode_ids
from discreet.tables.inspection.refusals import BadAnswer, RefusedCell, refuse_cell
from discreet.tables.opener import Source, plan_source
from discreet.tables.reading import Reading
from discreet.tables.scales import (
    AskedSteps,
    BadScale,
    CategoryScale,
    Tally,
    find_scale,
    find_without_words,
)
from discreet.tables.values import (
    ANSWERS,
    MISSING_WORDS,
    as_number,
    plain_dictionary,
    read_integers,
    spell,
)
from discreet.types import BoolArray, Int64Array

_TRUTH = {word: str(answer) for word, answer in ANSWERS.items()}

SMALL_ITEMS, SMALL_VALUES = 1 << 14, 16
"""Items and answers that are numbers below these are counted in a table, without making words."""
TABLE = 1 << 16
"""Pairs of items and values that are counted in a table, however few rows there are."""
MOST_VALUES = 50
"""Different values of an item from which on it is no scale, and nobody counts them."""


class Tallied:
    """Values of items as they come in."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._small = np.zeros(0, dtype=np.int64)
        self.by_item: dict[str, dict[str, int]] = {}

    def take(self, sources: Iterator[Source]) -> dict[str, dict[str, int]]:
        """Go through all tables."""
        for source in sources:
            plan = plan_source(source, self._reading)
            if isinstance(plan, LongPlan):
                for items, answers in source.batches((plan.item, plan.response)):
                    self.add_long(items, answers)
            else:
                for batch in source.batches(plan.items):
                    for number, column in zip(plan.items, batch, strict=True):
                        self.add(source.names[number], column)
        for code in np.flatnonzero(self._small).tolist():
            item, value = divmod(code, SMALL_VALUES)
            self._count(str(item), value, int(self._small[code]))
        return self.by_item

    def add_long(self, items: Any, answers: Any) -> None:
        """Add the answers of a long table."""
        if self._add_numbers(items, answers):
            return
        names, words = encode_ids(items), plain_dictionary(answers)
        known_words = words.dictionary.to_pylist()
        item = read_integers(names.indices.fill_null(len(names.dictionary)))
        answer = read_integers(words.indices.cast("int64").fill_null(len(known_words)))
        width = len(known_words) + 1
        listed = names.dictionary.to_pylist()
        pairs, times = _count_codes(item.astype(np.int64) * width + answer, width * len(listed))
        for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
            if pair // width < len(listed) and pair % width < len(known_words):
                self._count(listed[pair // width], known_words[pair % width], count)

    def _add_numbers(self, items: Any, answers: Any) -> bool:
        """Add answers that are small numbers to items that are numbers; say whether they are."""
        if not (_is_whole(items) and _is_whole(answers)):
            return False
        item, value = read_integers(items), read_integers(answers)
        if item.min(initial=0) < 0 or item.max(initial=0) >= SMALL_ITEMS:
            return False
        if value.min(initial=0) < 0 or value.max(initial=0) >= SMALL_VALUES:
            return False
        code = item.astype(np.int64) * SMALL_VALUES
        code += value.astype(np.int64, copy=False)
        times = np.bincount(code, minlength=len(self._small))
        times[: len(self._small)] += self._small
        self._small = times
        return True

    def add_counted(self, items: Any, answers: Any, times: Any) -> None:
        """Add values that were counted elsewhere; ``items`` is a dictionary of names."""
        names = items.dictionary.take(items.indices).to_pylist()
        counted = zip(names, answers.to_pylist(), times.to_pylist(), strict=True)
        for item, value, count in counted:
            self._count(str(item), value, count)

    def add(self, item: str, column: Any) -> None:
        """Add the answers to one item."""
        words = plain_dictionary(column)
        known_words = words.dictionary.to_pylist()
        answer = read_integers(words.indices.cast("int64").fill_null(len(known_words)))
        times = np.bincount(answer, minlength=len(known_words) + 1)
        for word, count in zip(known_words, times.tolist(), strict=False):
            self._count(item, word, count)

    def _count(self, item: str, value: Any, times: int) -> None:
        scoring = self._reading.scoring_of(item)
        word_counts = self.by_item.setdefault(item, {})
        word = spell(value).lower()
        no_answer = value is None or word in MISSING_WORDS or word in scoring.missing
        if no_answer or not times or scoring.right is not None or len(word_counts) > MOST_VALUES:
            return
        word_counts[word] = word_counts.get(word, 0) + times


def _is_whole(column: Any) -> bool:
    return bool(pa.types.is_integer(column.type)) and not column.null_count


def _count_codes(codes: Int64Array, size: int) -> tuple[Int64Array, Int64Array]:
    """Return the different codes, ascending, and how often each occurs."""
    if size > max(len(codes), TABLE):
        return np.unique(codes, return_counts=True)
    times = np.bincount(codes, minlength=size)
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]


def locate_cell(
    reading: Reading, cells: Mapping[str, frozenset[int]], sources: Iterator[Source]
) -> RefusedCell | None:
    """Return the first cell of the tables that holds one of these values, by item."""
    for source in sources:
        plan, before = plan_source(source, reading), 0
        long = isinstance(plan, LongPlan)
        columns = (plan.response, plan.item) if isinstance(plan, LongPlan) else plan.items
        for batch in source.batches(columns):
            names = [source.names[number] for number in columns]
            position = _find_long(batch, cells) if long else _find_wide(batch, names, cells)
            if position is not None:
                row, index = position
                value, where = batch[index][row].as_py(), source.place(before + row)
                return RefusedCell(where, names[index], value, is_wide=not long)
            before += len(batch[0])
    return None


def _find_wide(
    batch: Sequence[Any], names: Sequence[str], cells: Mapping[str, frozenset[int]]
) -> tuple[int, int] | None:
    """Return row and column of the first cell of a batch."""
    hits = [
        (int(rows[0]), index)
        for index, (name, column) in enumerate(zip(names, batch, strict=True))
        if name in cells and len(rows := np.flatnonzero(_hold(column, cells[name])))
    ]
    return min(hits, default=None)


def _find_long(batch: Sequence[Any], cells: Mapping[str, frozenset[int]]) -> tuple[int, int] | None:
    items = encode_ids(batch[1])
    code, hit = read_integers(items.indices), np.zeros(len(batch[0]), dtype=np.bool_)
    for number, name in enumerate(items.dictionary.to_pylist()):
        if cells.get(name):
            hit |= (code == number) & _hold(batch[0], cells[name])
    return (int(np.argmax(hit)), 0) if hit.any() else None


def _hold(column: Any, values: frozenset[int]) -> BoolArray:
    """Say which cells of a column hold one of these numbers."""
    words = plain_dictionary(column)
    is_match = [_spells(word, values) for word in words.dictionary.to_pylist()]
    answer = read_integers(words.indices.cast("int64").fill_null(len(is_match)))
    return np.asarray(np.array([*is_match, False])[answer])


def _spells(word: Any, values: frozenset[int]) -> bool:
    number = None if word is None else as_number(_TRUTH.get(spell(word).lower(), spell(word)))
    return number is not None and number in values


def settle_after(refusal: BadAnswer, reading: Reading, read: Any) -> Reading:
    """Return the reading with the scale of answers of which one was refused, or refuse it still.

    Where some values are no numbers, the scale is that of the others: the reader then stops at the
    first of those values.
    """
    settled = settle_scale(reading, read, find_without_words)
    if settled is None:
        raise refusal
    return settled


def settle_scale(
    reading: Reading,
    read: Any,
    otherwise: Callable[[Tally, AskedSteps], CategoryScale | None] | None = None,
    *,
    has_rows: bool = True,
) -> Reading | None:
    """Return the reading with the scale of the answers; None where they are no steps.

    Parameters
    ----------
    reading
        What the user said.
    read
        Called with a function of tables and a reading; goes through the tables with both.
    otherwise
        Finds a scale where not all values are steps.
    has_rows
        Whether tables have rows that can be named.
    """
    looking = replace(reading, looking=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say is said when answers are read
        tally = read(Tallied(looking).take, looking)
    try:
        scale = find_scale(tally, reading.asked)
        if scale is None and otherwise is not None:
            scale = otherwise(tally, reading.asked)
    except BadScale as reason:
        if has_rows and reason.cells:
            raise _point_at(reason, looking, read) from None
        raise
    return None if scale is None else replace(reading, scale=scale)


def _point_at(reason: BadScale, looking: Reading, read: Any) -> BadResponses:
    """Return a refusal that begins with the first cell that it is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cell = read(partial(locate_cell, looking, reason.cells), looking)
    return reason if cell is None else refuse_cell(cell, reason.reason, reason.remedies)
