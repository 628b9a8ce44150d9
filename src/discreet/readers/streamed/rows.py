"""Read the rows of tables of any size, checked and turned into numbers.

In: the shards of a dataset. Out: of long tables, blocks of person ids, item codes and answers in
the order of the rows; of wide tables, batches of whole persons. The rules and the messages are
those of the readers in :mod:`discreet.readers.answers`.

Whole-number ids stay numbers, because comparing and hashing them is ten times faster than text;
"007" or "a7" makes the whole run fall back to text (:class:`NotNumbers`). Every row of a wide table
is a whole person unless ids come back further down; DuckDB finds that out on the id column alone,
out of core. Persons who do come back are taken apart into long rows, which then go the way of long
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers.responses import Responses
from discreet.coding.ids import no_order, spell_ids
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.coding.values import BAD, MISSING, score_value
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage, DiscreetError, OutOfReach
from discreet.jit import worth_compiling
from discreet.readers.answers import WideTable, refuse_mixture, refuse_numbering
from discreet.tables.cells import read_integers, score_long
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Shard
from discreet.tables.findings import DeclaredSource
from discreet.tables.ids import OrderKeys, encode_ids, find_numbers, read_ids
from discreet.tables.inspection.refusals import refuse_long
from discreet.tables.opener import RowPlaces, Source, detect_reading, plan_source, refuse_no_rows
from discreet.tables.resources import Resources, explain_query, run_ahead
from discreet.types import FloatArray, Int8Array, Int32Array


class OutOfOrder(Exception):
    """An id was followed by a smaller one."""


@dataclass(frozen=True)
class BatchPosition:
    """How far a pass has come: what the batches so far hold.

    Attributes
    ----------
    phase
        "ordered": the rows before ``row``. "buckets": the buckets in ``done``.
    row, finished, last
        First row that is still to come; rows of finished shards; the last person so far.
    bits, sizes, done, as_text
        How many buckets there are (a power of two), their rows, which of them are done; the kind
        of ids. Sizes are kept of buckets on disk only: others cannot be come back to.
    rows
        Rows done so far, for progress.
    """

    phase: str = "ordered"
    row: int = 0
    finished: tuple[int, ...] = ()
    last: int | str | None = None
    bits: int = 0
    sizes: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    as_text: bool = False
    rows: int = 0


@dataclass(frozen=True)
class PersonBatch:
    """Whole persons.

    Attributes
    ----------
    items
        Items known so far: a beginning of the final list.
    persons
        Ids, as numbers or texts; None where rows are numbered.
    store
        The answers.
    rows
        Rows behind the batch.
    position
        Where the pass stands behind this batch.
    """

    items: tuple[str, ...]
    persons: Any
    store: AnswerStore
    rows: int
    position: BatchPosition = BatchPosition()


#: Texts that are one-to-one with 64-bit numbers: no leading zeros, no plus sign.
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


#: Items that are numbers below this are looked up in a table of one megabyte, not hashed.
LOOKUP_SIZE = 1 << 18
#: Answers that are numbers below this are looked up as well: a power of two above the categories.
SMALL_NUMBERS = 16
#: Seconds that hashing an item takes per row.
PLAIN_ROW = 1e-8


class NotNumbers(Exception):
    """An id turned out not to be a whole number: read everything again as text."""


@dataclass(frozen=True)
class RowBlock:
    """Some rows.

    Attributes
    ----------
    person
        int64 ids, or a dictionary of texts.
    item, value
        Code of the item; 1, 0 or -1 for a missing answer.
    n_items
        Items known after this block.
    start
        Number of the first row, counted over all shards.
    finished
        Rows of each shard that ended before this block.
    when
        What repeated answers are in order of; no columns where that is the order of the rows.
    """

    person: Any
    item: Int32Array
    value: Int8Array
    n_items: int
    start: int
    finished: tuple[int, ...]
    when: FloatArray


def plan_shards(shards: Sequence[Shard], reading: Reading) -> list[LongPlan] | list[WidePlan]:
    """Find the columns of every shard; long and wide shards together are refused."""
    plans: list[Any] = []
    for shard in shards:
        source = shard.open()
        plan = plan_source(source, reading)
        if plans and type(plan) is not type(plans[0]):
            raise refuse_mixture(shard.name, shards[0].name, plan)
        plans.append(plan)
        detect_reading(source, plan, reading)
    return plans


def list_column_numbers(plan: LongPlan | WidePlan) -> list[int]:
    """Return the numbers of the columns that hold persons and answers."""
    if isinstance(plan, LongPlan):
        return [plan.person, plan.item, plan.response, *plan.order]
    return [*([] if plan.person is None else [plan.person]), *plan.items, *plan.order]


def lie_before(row: int, finished: Sequence[int]) -> list[int]:
    """Return the rows of those finished shards that lie wholly before a row."""
    done = list(finished)
    while done and sum(done) > row:
        done.pop()
    return done


class ItemNames:
    """Item names in order of first appearance, or a closed list of them."""

    def __init__(self, names: Sequence[str] = (), *, closed: bool = False) -> None:
        self.names = list(names)
        self._code = {name: code for code, name in enumerate(self.names)}
        self._closed = closed

    def encode(self, words: Sequence[str]) -> Int32Array:
        """Return the code of every word, new ones at the end."""
        code_of = self._code
        for word in words:
            if word not in code_of:
                if self._closed:
                    raise BadResponses(
                        f"the data has an item {word!r} that is not on the item list. Add it to "
                        "the list, or take its rows or column out of the data first."
                    )
                code_of[word] = len(self.names)
                self.names.append(word)
        return np.array([code_of[word] for word in words], dtype=np.int32)


class AnswerCodes:
    """What small whole numbers mean as answers to items that are scored each in its own way."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._table = np.zeros((0, SMALL_NUMBERS), dtype=np.int8)

    def look_up(self, column: pa.Array, item: Int32Array, names: Sequence[str]) -> Int8Array | None:
        """Return the codes of answers to the items ``names[item]``; None if one has no code."""
        if not pa.types.is_integer(column.type) or column.null_count:
            return None
        if not worth_compiling(PLAIN_ROW * len(column)):
            return None
        from discreet.counts.pack_kernels import look_up_answers

        # Every number is scored once for items that are new.
        scorings = [self._reading.scoring_of(name) for name in names[len(self._table) :]]
        rows = [[score_value(k, scoring) for k in range(SMALL_NUMBERS)] for scoring in scorings]
        if rows:
            self._table = np.concatenate([self._table, np.array(rows, dtype=np.int8)])
        codes = np.empty(len(item), dtype=np.int8)
        are_known_values = look_up_answers(read_integers(column), item, self._table, codes)
        return codes if are_known_values else None


class LongRows:
    """The rows of a long table of any size.

    Parameters
    ----------
    shards, plans
        Where rows are, and which columns.
    reading
        How answers are scored.
    items
        Item names; new ones are added as they appear.
    as_text
        Whether ids are kept as text although they may be numbers.
    """

    width = 1

    def __init__(
        self,
        shards: Sequence[Shard],
        plans: Sequence[LongPlan],
        reading: Reading,
        items: ItemNames,
        *,
        as_text: bool,
    ) -> None:
        self._shards, self._plans = shards, plans
        self.reading, self.items, self.as_text = reading, items, as_text
        self._numbers = np.zeros(0, dtype=np.int32)
        self.places = RowPlaces()
        self._order = OrderKeys()
        self._codes = AnswerCodes(reading)
        self._ignored = np.zeros(0, dtype=np.bool_)
        self.detected: list[Detected] = []

    def blocks(self, skip: int = 0, finished: Sequence[int] = ()) -> Iterator[RowBlock]:
        """Yield all rows from number ``skip`` on.

        ``finished`` are the rows of the shards that lie wholly before it: they are not opened.
        """
        done = lie_before(skip, finished)
        for shard, rows in zip(self._shards, done, strict=False):
            self.places.begin(shard.open())
            self.places.n_rows += rows
        first = len(done)
        for shard, plan in zip(self._shards[first:], self._plans[first:], strict=True):
            source, columns, before = shard.open(), list_column_numbers(plan), self.places.n_rows
            names = [source.names[number] for number in columns]
            self.places.begin(source)
            for batch in source.batches(columns):
                drop = min(max(skip - self.places.n_rows, 0), len(batch[0]))
                self.places.n_rows += drop
                unread = [column.slice(drop) for column in batch] if drop else batch
                if len(unread[0]):
                    yield self._read_batch(unread, names, tuple(done))
            done.append(self.places.n_rows - before)
            if not done[-1]:
                refuse_no_rows(source)
            self.detected += detect_reading(source, plan, self.reading)

    def _read_batch(
        self, batch: Sequence[Any], names: Sequence[str], finished: tuple[int, ...]
    ) -> RowBlock:
        person = self._read_persons(batch[0], names[0])
        item = self._read_items(batch[1], names[1])
        value = self._read_answers(batch, item, names)
        when = no_order(len(value))
        for column, name in zip(batch[3:], names[3:], strict=True):
            when = self._order.read(column, name, self.places)
        start = self.places.n_rows
        self.places.n_rows += len(value)
        return RowBlock(person, item, value, len(self.items.names), start, finished, when)

    def _read_persons(self, column: pa.Array, name: str) -> Any:
        is_integer = pa.types.is_signed_integer(column.type) and not column.null_count
        if is_integer and not self.as_text:
            return read_integers(column).astype(np.int64, copy=False)
        ids = read_ids(column, name, "person", self.places)
        if self.as_text:
            return ids
        if not pc.all(pc.match_substring_regex(ids.dictionary, _WHOLE)).as_py():
            raise NotNumbers
        return read_integers(ids.dictionary.cast(pa.int64()))[read_integers(ids.indices)]

    def _read_items(self, column: pa.Array, name: str) -> Int32Array:
        is_integer = pa.types.is_integer(column.type)
        if is_integer and not column.null_count and worth_compiling(PLAIN_ROW * len(column)):
            from discreet.counts.pack_kernels import look_up

            known = np.empty(len(column), dtype=np.int32)
            if look_up(read_integers(column), self._numbers, known):
                return known
        ids = read_ids(column, name, "item", self.places)
        words = spell_ids(find_numbers(ids.dictionary, column.type))
        codes = self.items.encode(words)
        if is_integer:
            numbers = np.array([int(word) for word in words])
            small = (numbers >= 0) & (numbers < LOOKUP_SIZE)
            table = np.full(LOOKUP_SIZE, -1, dtype=np.int32)
            table[: len(self._numbers)] = self._numbers
            table[numbers[small]] = codes[small]
            self._numbers = table[: np.flatnonzero(table >= 0).max(initial=-1) + 1]
        return np.asarray(codes[read_integers(ids.indices)])

    def _read_answers(
        self, batch: Sequence[Any], item: Int32Array, names: Sequence[str]
    ) -> Int8Array:
        column, rules = batch[2], self.reading
        codes = self._look_up_answers(column, item)
        if codes is not None and rules.listed:
            # Answers to items that are not on the public list are missing.
            more = [rules.ignores(name) for name in self.items.names[len(self._ignored) :]]
            self._ignored = np.concatenate([self._ignored, np.array(more, dtype=np.bool_)])
            if self._ignored.any():
                codes = np.where(self._ignored[item], np.int8(MISSING), codes)
        values = self._score(batch) if codes is None else codes
        if codes is not None or not (values == BAD).any():
            return values
        items, before = read_ids(batch[1], names[1], "item", self.places), self.places.n_rows
        locate = self.places.place
        raise refuse_long(values, column, items, names[2], rules, lambda row: locate(before + row))

    def _look_up_answers(self, column: pa.Array, item: Int32Array) -> Int8Array | None:
        """Return the codes of answers that are small numbers; None where one has no code."""
        rules = self.reading
        if rules.by_item:
            return self._codes.look_up(column, item, self.items.names)
        if column.type != pa.int8() or column.null_count or rules.at_least is not None:
            return None
        values = read_integers(column)
        return values if int(values.view(np.uint8).max(initial=0)) <= 1 else None

    def _score(self, batch: Sequence[Any]) -> Int8Array:
        rules = self.reading
        items = encode_ids(batch[1]) if rules.by_item or rules.listed else None
        return score_long(rules, batch[2], items)

    def find_answer(self, person: str, item: str, number: int) -> str:
        """Return the place of a person's first, second, ... answer to an item, for a message."""
        for shard, plan in zip(self._shards, self._plans, strict=True):
            source, rows = shard.open(), 0
            for batch in source.batches(list_column_numbers(plan)):
                hit = self._score(batch) >= 0
                for column, text in zip(batch, (person, item), strict=False):
                    ids = encode_ids(column)
                    same = [name == text for name in ids.dictionary.to_pylist()]
                    hit &= np.array(same, dtype=np.bool_)[read_integers(ids.indices)]
                hits = np.flatnonzero(hit)
                if len(hits) >= number:
                    return source.place(rows + int(hits[number - 1]))
                number -= len(hits)
                rows += len(hit)
        return "a row that is no longer there"


#: Cells packed together: 16 MB before packing.
CELLS = 1 << 24


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
        self.detected: list[Detected] = []
        for shard, plan in zip(shards, plans, strict=True):
            names = shard.open().names
            items.encode([names[number] for number in plan.items])
            if (plan.person is None) != self._is_numbered:
                raise refuse_numbering(shard.name, not self._is_numbered)

    def check_order(self, resources: Resources) -> None:
        """Raise ``OutOfOrder`` where an id stands in more than one row."""
        if self._is_numbered:
            return
        schema = pa.schema([("person", pa.string())])
        failures: list[Exception] = []
        ids = self._ids(schema, failures)
        connection = resources.connect(None)
        query = "SELECT 1 FROM ids GROUP BY person HAVING count(*) > 1 LIMIT 1"
        try:
            with closing(connection), explain_query("the search for persons who come back"):
                connection.register("ids", pa.RecordBatchReader.from_batches(schema, ids))
                repeated = connection.execute(query).fetchall()
        except BadUsage as error:
            lost = DiscreetError(f"the persons of a wide table could not be compared: {error}")
            raise (failures[0] if failures else lost) from None
        if repeated:
            raise OutOfOrder

    def _ids(self, schema: Any, failures: list[Exception]) -> Iterator[Any]:
        """Yield ids, and note what goes wrong, of which DuckDB would pass on the words only."""
        places = RowPlaces()
        try:
            for shard, plan in zip(self._shards, self._plans, strict=True):
                source = shard.open()
                places.begin(source)
                for (column,) in source.batches((plan.person or 0,)):
                    ids = read_ids(column, source.names[plan.person or 0], "person", places)
                    places.n_rows += len(ids)
                    yield pa.record_batch([ids.dictionary.take(ids.indices)], schema=schema)
        except Exception as error:
            failures.append(error)
            raise

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

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows as long ones: every answer, and one row for who has none."""
        if self.reading.order_by is not None:
            raise OutOfReach(
                "order_by (--order-by) does not work out of memory for a wide table with several "
                "rows of one person. Read it in memory (engine='memory'), or write it as a long "
                "table."
            )
        for answers, position in self._slabs(BatchPosition()):
            cells = answers.select(self.items.names).to_array()
            cells[(cells < 0).all(axis=1), 0] = -3
            row, item = np.nonzero(cells != -1)
            value = np.maximum(cells[row, item], -1).astype(np.int8)
            ids = pa.DictionaryArray.from_arrays(
                pa.array(row, pa.int32()), pa.array(answers.persons, pa.string())
            )
            n_items, when = len(self.items.names), no_order(len(value))
            yield RowBlock(ids, item.astype(np.int32), value, n_items, position.row, (), when)

    def _slabs(self, position: BatchPosition) -> Iterator[tuple[Responses, BatchPosition]]:
        """Yield some rows, and the place behind them."""
        done = lie_before(position.row, position.finished)
        at, skipped = sum(done), len(done)
        for shard, plan in zip(self._shards[skipped:], self._plans[skipped:], strict=True):
            source, first = shard.open(), at
            for batch, n_rows in _gather(source, plan):
                at += n_rows
                if at > position.row:
                    # A checkpoint lies between two slabs, and slabs fall the same way again.
                    rows = position.rows + n_rows
                    position = replace(position, row=at, finished=tuple(done), rows=rows)
                    yield self._pack(source, plan, batch, at - n_rows - first), position
            done.append(at - first)
            if at == first:
                refuse_no_rows(source)
            self.detected += detect_reading(source, plan, self.reading)

    def _pack(self, source: Source, plan: WidePlan, batch: list[list[Any]], at: int) -> Responses:
        columns = list_column_numbers(plan)
        items, order = (tuple(map(columns.index, part)) for part in (plan.items, plan.order))
        person = None if plan.person is None else columns.index(plan.person)
        local = WidePlan(person, items, (), order)
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


def _gather(source: Source, plan: WidePlan) -> Iterator[tuple[list[list[Any]], int]]:
    """Yield a source's batches, several small ones together."""
    columns = list_column_numbers(plan)
    held, rows = list[list[Any]](), 0
    for batch in source.batches(columns):
        held.append(batch)
        rows += len(batch[0])
        if rows >= max(1, CELLS // len(columns)):
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
