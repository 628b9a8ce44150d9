"""Wide tables of any size as batches of whole persons.

Every row is a whole person unless ids come back further down; DuckDB finds that out on the id
column alone, out of core. Persons who do come back are taken apart into long rows, which then
go the way of long tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.answers.responses import Responses
from discreet.answers.streamed.batches import Batch
from discreet.answers.streamed.blocks import Block, ItemNames
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.tables.dataset import Shard, no_rows
from discreet.tables.long import read_ids
from discreet.tables.resources import Resources, explain_query, run_ahead
from discreet.tables.roles import Reading, WidePlan
from discreet.tables.source import RowPlaces, Source
from discreet.tables.wide import WideTable

CELLS = 1 << 24
"""Cells packed together: 16 MB before packing."""


class WideRows:
    """The rows of a wide table of any size; the counterpart of ``LongRows``."""

    def __init__(
        self, shards: Sequence[Shard], plans: Sequence[WidePlan], reading: Reading, items: ItemNames
    ) -> None:
        self._shards, self._plans, self._reading = shards, plans, reading
        self.items = items
        for shard, plan in zip(shards, plans, strict=True):
            names = shard.open().names
            items.encode([names[number] for number in plan.items])
        self._check_numbering()

    def _check_numbering(self) -> None:
        numbered = [plan.person is None for plan in self._plans]
        for shard, other in zip(self._shards, numbered, strict=True):
            if other != numbered[0]:
                raise BadResponses(
                    f"{shard.name} has {'no' if other else 'a'} person column, but the files "
                    f"before it have {'one' if other else 'none'}. Give all files a person "
                    "column, or none."
                )

    # -- persons who come back ---------------------------------------------------------------

    def persons_come_back(self, resources: Resources) -> bool:
        """Say whether an id stands in more than one row."""
        if self._plans[0].person is None:
            return False
        schema = pa.schema([("person", pa.string())])
        failures: list[Exception] = []
        ids = _keep_failure(self._ids(schema), failures)
        connection = resources.connect(None)
        try:
            with closing(connection), explain_query("the search for persons who come back"):
                connection.register("ids", pa.RecordBatchReader.from_batches(schema, ids))
                again = connection.execute(
                    "SELECT 1 FROM ids GROUP BY person HAVING count(*) > 1 LIMIT 1"
                ).fetchall()
        except BadUsage as error:
            lost = DiscreetError(f"the persons of a wide table could not be compared: {error}")
            raise (failures[0] if failures else lost) from None
        return bool(again)

    def _ids(self, schema: Any) -> Iterator[Any]:
        places = RowPlaces()
        for shard, plan in zip(self._shards, self._plans, strict=True):
            source = shard.open()
            places.begin(source)
            for (column,) in source.batches((plan.person or 0,)):
                ids = read_ids(column, source.names[plan.person or 0], "person", places)
                places.n_rows += len(ids)
                yield pa.record_batch([ids.dictionary.take(ids.indices)], schema=schema)

    # -- batches -----------------------------------------------------------------------------

    def batches(self, skip: int = 0, finished: Sequence[int] = ()) -> Iterator[Batch]:
        """Yield the rows from number ``skip`` on, each of them a whole person."""
        items = tuple(self.items.names)
        with closing(run_ahead(self._slabs(skip, finished))) as slabs:
            for slab in slabs:
                table = slab.answers if slab.answers.items == items else slab.answers.select(items)
                persons = None if slab.numbered else slab.answers.persons
                store: Any = table.store
                yield Batch(items, persons, store, slab.rows, slab.stop, slab.finished)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows as long ones: every answer, and one row for who has none."""
        for slab in self._slabs(0, ()):
            cells = slab.answers.select(self.items.names).to_array()
            cells[(cells < 0).all(axis=1), 0] = -3
            row, item = np.nonzero(cells != -1)
            value = np.maximum(cells[row, item], -1).astype(np.int8)
            ids = pa.DictionaryArray.from_arrays(
                pa.array(row, pa.int32()), pa.array(slab.answers.persons, pa.string())
            )
            start = slab.stop - slab.rows
            yield Block(ids, item.astype(np.int32), value, len(self.items.names), start, ())

    def _slabs(self, skip: int, finished: Sequence[int]) -> Iterator[_Slab]:
        done = list(finished)
        while done and sum(done) > skip:
            done.pop()
        at = sum(done)
        for shard, plan in zip(self._shards[len(done) :], self._plans[len(done) :], strict=True):
            source, first = shard.open(), at
            for batch, n_rows in _gather(source, plan):
                at += n_rows
                if at > skip:
                    # A checkpoint lies between two slabs, and slabs fall the same way again.
                    yield self._pack(source, plan, batch, n_rows, at, at - first, tuple(done))
            done.append(at - first)
            if at == first:
                raise no_rows(shard)

    def _pack(
        self, source: Source, plan: WidePlan, batch: list[list[Any]], n_rows: int,
        at: int, in_shard: int, finished: tuple[int, ...],
    ) -> _Slab:  # fmt: skip
        columns = _columns(plan)
        local = WidePlan(
            None if plan.person is None else columns.index(plan.person),
            tuple(columns.index(number) for number in plan.items),
            (),
        )
        table = WideTable(self._reading)
        table.add_source(_Rows(source, columns, batch, in_shard - n_rows), local)
        answers = Responses(*table.finish())
        return _Slab(answers, plan.person is None, n_rows, at, finished)

    def find_answer(self, person: str, item: str, number: int) -> str:
        """Return the place of a person's first, second, ... answer to an item, for a message."""
        for shard, plan in zip(self._shards, self._plans, strict=True):
            source, rows = shard.open(), 0
            for batch, n_rows in _gather(source, plan):
                slab = self._pack(source, plan, batch, n_rows, 0, rows + n_rows, ())
                cells = slab.answers.select([item]).to_array()[:, 0]
                hits = np.flatnonzero((slab.answers.persons == person) & (cells >= 0))
                if len(hits) >= number:
                    # Rows that were joined into one person no longer stand at their own number.
                    joined = slab.answers.n_persons < n_rows
                    return source.name if joined else source.place(rows + int(hits[number - 1]))
                number -= len(hits)
                rows += n_rows
        return "a row that is no longer there"


@dataclass(frozen=True)
class _Slab:
    answers: Responses
    numbered: bool
    rows: int
    stop: int
    finished: tuple[int, ...]


def _keep_failure(batches: Iterator[Any], failures: list[Exception]) -> Iterator[Any]:
    """Yield on, and note what goes wrong, of which DuckDB would pass on the words only."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


def _columns(plan: WidePlan) -> list[int]:
    person = [] if plan.person is None else [plan.person]
    return [*person, *plan.items]


def _gather(source: Source, plan: WidePlan) -> Iterator[tuple[list[list[Any]], int]]:
    """Yield a source's batches, several small ones together."""
    columns = _columns(plan)
    target = max(1, CELLS // len(columns))
    held: list[list[Any]] = []
    rows = 0
    for batch in source.batches(columns):
        held.append(batch)
        rows += len(batch[0])
        if rows >= target:
            yield held, rows
            held, rows = [], 0
    if rows:
        yield held, rows


@dataclass(frozen=True)
class _Rows:
    """Some batches of a source, as a source of their own; rows keep their places."""

    whole: Source
    columns: list[int]
    held: list[list[Any]]
    offset: int

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def names(self) -> list[str]:
        return [self.whole.names[number] for number in self.columns]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        for batch in self.held:
            yield [batch[number] for number in columns]

    def place(self, row: int) -> str:
        return self.whole.place(self.offset + row)
