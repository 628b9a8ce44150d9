"""Chosen options of multiple-choice items, read beside a key of the right answers.

In: the tables that answers were read from, once more, and the persons and items they became. Out:
:class:`~discreet.answers.choices.Choices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.coding.ids import no_order, sort_keys, spell_ids
from discreet.coding.reading import Reading
from discreet.coding.values import MISSING, ValueScoring, score_value, spell
from discreet.tables.cells import plain_dictionary, read_integers
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.ids import OrderKeys, encode_ids
from discreet.tables.opener import RowPlaces, Source, plan_source
from discreet.types import FloatArray, Int8Array, Int64Array

if TYPE_CHECKING:
    from discreet.readers.answers import RawTable
from discreet.answers.choices import MOST_OPTIONS, NONE, OTHER, Choices, rank_option


def take_choices(reading: Reading, table: RawTable, sources: Iterator[Source]) -> Choices:
    """Go through tables that were read before, with no mistake in them."""
    taken = _Taken(reading, [name for name in table.items if name in reading.right], table)
    for source in sources:
        plan = plan_source(source, reading)
        if isinstance(plan, LongPlan):
            taken.add_long(source, plan)
        else:
            taken.add_wide(source, plan)
    return taken.finish()


class _Taken:
    """Choices as they come in."""

    def __init__(self, reading: Reading, items: list[str], table: RawTable) -> None:
        self._reading, self._items = reading, items
        self._columns = {name: number for number, name in enumerate(items)}
        self._known: list[dict[str, int]] = [{} for _ in items]
        self._names: list[list[str]] = [[] for _ in items]
        self._chosen = np.full((table.store.n_persons, len(items)), NONE, dtype=np.int8)
        ids = None if table.persons is None else spell_ids(table.persons)
        self._person = None if ids is None else {name: row for row, name in enumerate(ids)}
        self._rows = 0
        self._order = OrderKeys()
        self._waiting: list[tuple[Int64Array, int, Int8Array, FloatArray]] = []

    def add_wide(self, source: Source, plan: WidePlan) -> None:
        """Take in a table with a column for each item."""
        keyed = [number for number in plan.items if source.names[number] in self._columns]
        person = () if plan.person is None else (plan.person,)
        for batch in source.batches((*plan.order, *person, *keyed)):
            when = self._read_order(batch[: len(plan.order)], len(batch[0]))
            batch = batch[len(plan.order) :]
            rows = self._find_rows(batch[0] if person else None, len(batch[0]))
            for number, column in zip(keyed, batch[len(person) :], strict=True):
                item = self._columns[source.names[number]]
                self._put(rows, item, self._encode(item, column), when)

    def add_long(self, source: Source, plan: LongPlan) -> None:
        """Take in a table with a row for each answer."""
        for batch in source.batches((plan.person, plan.item, plan.response, *plan.order)):
            when = self._read_order(batch[3:], len(batch[0]))
            rows = self._find_rows(batch[0], len(batch[0]))
            items = encode_ids(batch[1])
            codes = read_integers(items.indices)
            for code, name in enumerate(items.dictionary.to_pylist()):
                if (item := self._columns.get(name)) is not None:
                    here = np.flatnonzero(codes == code)
                    self._put(rows[here], item, self._encode(item, batch[2].take(here)), when[here])

    def _read_order(self, columns: Sequence[object], rows: int) -> FloatArray:
        # No row is wrong here, so that none needs a place.
        keys = [self._order.read(column, "", RowPlaces()) for column in columns]
        return keys[0] if keys else no_order(rows)

    def _find_rows(self, column: pa.Array, count: int) -> Int64Array:
        if column is None or self._person is None:
            self._rows += count
            return np.arange(self._rows - count, self._rows)
        ids = encode_ids(column)
        rows = np.array([self._person[name] for name in ids.dictionary.to_pylist()], dtype=np.intp)
        return np.asarray(rows[read_integers(ids.indices)])

    def _encode(self, item: int, column: pa.Array) -> Int8Array:
        """Return the numbers of options; new ones get the next number."""
        answers = plain_dictionary(column)
        scoring = self._reading.scoring_of(self._items[item])
        codes = [self._number(item, word, scoring) for word in answers.dictionary.to_pylist()]
        index = answers.indices.cast("int64").fill_null(len(codes))
        return np.asarray(np.array([*codes, NONE], dtype=np.int8)[read_integers(index)])

    def _number(self, item: int, word: object, scoring: ValueScoring) -> int:
        if score_value(word, scoring) == MISSING:
            return NONE
        option = spell(word)
        numbers, names = self._known[item], self._names[item]
        if len(names) >= MOST_OPTIONS and option.lower() not in numbers:
            option = OTHER
        if option.lower() not in numbers:
            numbers[option.lower()] = len(names)
            names.append(option.upper() if len(option) == 1 else option)
        return numbers[option.lower()]

    def _put(self, rows: Int64Array, item: int, codes: Int8Array, when: FloatArray) -> None:
        answered = np.flatnonzero(codes != NONE)
        if when.shape[1]:
            self._waiting.append((rows[answered], item, codes[answered], when[answered]))
            return
        if self._reading.repeats == "first":
            answered = answered[self._chosen[rows[answered], item] == NONE][::-1]
        self._chosen[rows[answered], item] = codes[answered]

    def _put_in_order(self, item: int) -> None:
        """Write the choices one over the other, the one that counts at the end."""
        parts = [(r, c, w) for r, item_code, c, w in self._waiting if item_code == item]
        if parts:
            rows, codes, when = (np.concatenate(part) for part in zip(*parts, strict=True))
            order = sort_keys(np.zeros(len(rows), dtype=np.int64), when)
            order = order[::-1] if self._reading.repeats == "first" else order
            self._chosen[rows[order], item] = codes[order]

    def finish(self) -> Choices:
        """Return the choices, options in order."""
        options, right = [], []
        for item, name in enumerate(self._items):
            self._put_in_order(item)
            keyed = self._reading.right[name]
            for word in keyed:
                self._number(item, word, ValueScoring())
            names = self._names[item]
            order = sorted(range(len(names)), key=lambda number: rank_option(names[number]))
            new_codes = np.array([*np.argsort(order), NONE], dtype=np.int8)
            self._chosen[:, item] = new_codes[self._chosen[:, item]]
            options.append(tuple(names[number] for number in order))
            right.append(tuple(names[number].lower() in keyed for number in order))
        return Choices(tuple(self._items), tuple(options), tuple(right), self._chosen)
