"""Wide tables of any size as batches of whole persons.

Every row is a whole person unless ids come back further down; DuckDB finds that out on the id
column alone, out of core. Persons who do come back are taken apart into long rows, which then
go the way of long tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.answers.intake import WideTable
from discreet.answers.responses import Responses
from discreet.answers.streamed.batches import BatchPosition, OutOfOrder, PersonBatch
from discreet.answers.streamed.blocks import Block, ItemNames, lie_before, list_column_numbers
from discreet.errors import BadResponses, BadUsage, DiscreetError, OutOfReach
from discreet.tables.columns import WidePlan
from discreet.tables.dataset import Shard, no_rows
from discreet.tables.ids import read_ids
from discreet.tables.opener import RowPlaces, Source
from discreet.tables.reading import Reading
from discreet.tables.remedies import DeclaredSource
from discreet.tables.resources import Resources, explain_query, run_ahead
from discreet.tables.separators import no_order

CELLS = 1 << 24
"""Cells packed together: 16 MB before packing."""


class WideRows:
    """The rows of a wide table of any size; the counterpart of ``LongRows``."""

    as_text = True

    def __init__(
        self, shards: Sequence[Shard], plans: Sequence[WidePlan], reading: Reading, items: ItemNames
    ) -> None:
        self._shards, self._plans, self._reading = shards, plans, reading
        self.items, self._is_numbered = items, plans[0].person is None
        # The rows that `blocks` yields have turned right and wrong around where that was asked for.
        self.reading = replace(reading, one_means="right")
        self.width = max(len(plan.items) for plan in plans)
        for shard, plan in zip(shards, plans, strict=True):
            names = shard.open().names
            items.encode([names[number] for number in plan.items])
        self._check_numbering()

    def _check_numbering(self) -> None:
        for shard, plan in zip(self._shards, self._plans, strict=True):
            is_numbered = plan.person is None
            if is_numbered != self._is_numbered:
                raise BadResponses(
                    f"{shard.name} has {'no' if is_numbered else 'a'} person column, but the files "
                    f"before it have {'one' if is_numbered else 'none'}. Give all files a person "
                    "column, or none."
                )

    # -- persons who come back ---------------------------------------------------------------

    def check_order(self, resources: Resources) -> None:
        """Raise ``OutOfOrder`` where an id stands in more than one row."""
        if self._is_numbered:
            return
        schema = pa.schema([("person", pa.string())])
        failures: list[Exception] = []
        ids = _keep_failure(self._ids(schema), failures)
        connection = resources.connect(None)
        try:
            with closing(connection), explain_query("the search for persons who come back"):
                connection.register("ids", pa.RecordBatchReader.from_batches(schema, ids))
                repeated = connection.execute(
                    "SELECT 1 FROM ids GROUP BY person HAVING count(*) > 1 LIMIT 1"
                ).fetchall()
        except BadUsage as error:
            lost = DiscreetError(f"the persons of a wide table could not be compared: {error}")
            raise (failures[0] if failures else lost) from None
        if repeated:
            raise OutOfOrder

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

    def batches(self, position: BatchPosition) -> Iterator[PersonBatch]:
        """Yield the rows from a place on, each of them a whole person."""
        items = tuple(self.items.names)
        with closing(run_ahead(self._slabs(position))) as slabs:
            for answers, behind in slabs:
                table = answers if answers.items == items else answers.select(items)
                persons = None if self._is_numbered else answers.persons
                store: Any = table.store
                yield PersonBatch(items, persons, store, behind.rows - position.rows, behind)
                position = behind

    def blocks(self) -> Iterator[Block]:
        """Yield all rows as long ones: every answer, and one row for who has none."""
        if self.reading.order_by is not None:
            raise OutOfReach(
                "a wide table in which persons come back cannot be put in the order of a column "
                "out of memory: which of their rows comes last is known of whole rows only. Read "
                "it in memory (engine='memory'), or write it as a long table."
            )
        for answers, position in self._slabs(BatchPosition()):
            cells = answers.select(self.items.names).to_array()
            cells[(cells < 0).all(axis=1), 0] = -3
            row, item = np.nonzero(cells != -1)
            value = np.maximum(cells[row, item], -1).astype(np.int8)
            ids = pa.DictionaryArray.from_arrays(
                pa.array(row, pa.int32()), pa.array(answers.persons, pa.string())
            )
            yield Block(
                ids, item.astype(np.int32), value, len(self.items.names), position.row, (),
                no_order(len(value)),
            )  # fmt: skip

    def _slabs(self, position: BatchPosition) -> Iterator[tuple[Responses, BatchPosition]]:
        """Yield some rows, and the place behind them."""
        done = lie_before(position.row, position.finished)
        at = sum(done)
        left = zip(self._shards[len(done) :], self._plans[len(done) :], strict=True)
        for shard, plan in left:
            source, first = shard.open(), at
            for batch, n_rows in _gather(source, plan):
                at += n_rows
                if at > position.row:
                    # A checkpoint lies between two slabs, and slabs fall the same way again.
                    answers = self._pack(source, plan, batch, at - n_rows - first)
                    position = replace(
                        position, row=at, finished=tuple(done), rows=position.rows + n_rows
                    )
                    yield answers, position
            done.append(at - first)
            if at == first:
                raise no_rows(shard)

    def _pack(self, source: Source, plan: WidePlan, batch: list[list[Any]], at: int) -> Responses:
        columns = list_column_numbers(plan)
        local = WidePlan(
            None if plan.person is None else columns.index(plan.person),
            tuple(columns.index(number) for number in plan.items),
            (),
            tuple(columns.index(number) for number in plan.order),
        )
        table = WideTable(self._reading)
        table.add_source(_Rows(source, columns, batch, at), local)
        raw = table.finish()
        return Responses(raw.items, raw.persons, raw.store, raw.groups)

    def find_answer(self, person: str, item: str, number: int) -> str:
        """Return the place of a person's first, second, ... answer to an item, for a message."""
        for shard, plan in zip(self._shards, self._plans, strict=True):
            source, rows = shard.open(), 0
            for batch, n_rows in _gather(source, plan):
                answers = self._pack(source, plan, batch, rows)
                cells = answers.select([item]).to_array()[:, 0]
                hits = np.flatnonzero((answers.persons == person) & (cells >= 0))
                if len(hits) >= number:
                    # Rows that were joined into one person no longer stand at their own number.
                    joined = answers.n_persons < n_rows
                    return source.name if joined else source.place(rows + int(hits[number - 1]))
                number -= len(hits)
                rows += n_rows
        return "a row that is no longer there"


def _keep_failure(batches: Iterator[Any], failures: list[Exception]) -> Iterator[Any]:
    """Yield on, and note what goes wrong, of which DuckDB would pass on the words only."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


def _gather(source: Source, plan: WidePlan) -> Iterator[tuple[list[list[Any]], int]]:
    """Yield a source's batches, several small ones together."""
    columns = list_column_numbers(plan)
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
class _Rows(DeclaredSource):
    """Some batches of a source, as a source of their own; rows keep their places.

    What was detected is said by the whole source.
    """

    source: Source
    columns: list[int]
    held: list[list[Any]]
    offset: int

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def names(self) -> list[str]:
        return [self.source.names[number] for number in self.columns]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        for batch in self.held:
            yield [batch[number] for number in columns]

    def place(self, row: int) -> str:
        return self.source.place(self.offset + row)
