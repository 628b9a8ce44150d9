"""Read the rows of tables, checked and turned into numbers: the first half of every reader.

In: tables, all long or all wide, one after the other. Out: of long tables, blocks of person ids,
item codes and answers in the order of the rows; of wide tables, slabs of packed rows, which become
such blocks where persons come back or tables have different items. What is made of them, one batch
in memory, batches on disk or the persons of a task, is for :mod:`discreet.readers.batches`.

Whole-number ids may stay numbers, because comparing and hashing them is ten times faster than text;
"007" or "a7" makes the whole run fall back to text (:class:`NotNumbers`). Every row of a wide table
is a whole person unless ids come back further down; out of memory DuckDB finds that out on the id
column alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers import pack
from discreet.answers.pack import BadCell
from discreet.answers.select import flip_answers, number_items, select_columns
from discreet.coding.ids import no_order, spell_ids
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.coding.values import BAD, MISSING, ValueScoring, score_value
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage, DiscreetError, DiscreetWarning
from discreet.jit import worth_compiling
from discreet.tables.cells import read_integers, score_array, score_long
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.ids import IdCodes, OrderKeys, count_alike, encode_ids, find_numbers, read_ids
from discreet.tables.inspection.refusals import refuse_long, refuse_wide
from discreet.tables.opener import (
    RowPlaces,
    Source,
    detect_reading,
    name_groups,
    plan_source,
    refuse_no_rows,
)
from discreet.tables.resources import Resources, explain_query, run_ahead
from discreet.types import FloatArray, Int8Array, Int32Array, Int64Array


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
#: Rows from which on slabs are cut where a word of bits ends: those of less are fast to join.
_WHOLE_WORDS = 1 << 12


class NotNumbers(Exception):
    """An id turned out not to be a whole number: read everything again as text."""


@dataclass(frozen=True)
class RowBlock:
    """Some rows, one for each answer.

    Attributes
    ----------
    person, kind
        int64 ids, or a dictionary of texts; the type of the column that these come from.
    item, value
        Code of the item; the category, or -1 for a missing answer.
    n_items
        Items known after this block.
    start, rows
        Number of the first row, counted over all tables; the number of each where these are not
        the next ones.
    finished
        Rows of each table that ended before this block.
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
    kind: pa.DataType
    rows: Int64Array | None = None

    def number_rows(self) -> Int64Array:
        """Return the number of every row."""
        return (
            np.arange(self.start, self.start + len(self.item)) if self.rows is None else self.rows
        )


class Slab(NamedTuple):
    """Some rows of a wide table, packed.

    ``persons`` holds a dictionary of ids for each batch that the rows came in, none where rows are
    numbered; ``n_items``, ``start``, ``finished``, ``when`` and ``kind`` are as in a block.
    """

    items: tuple[str, ...]
    store: AnswerStore
    persons: list[Any]
    kind: pa.DataType
    n_items: int
    start: int
    finished: tuple[int, ...]
    when: FloatArray

    def encode_persons(self) -> tuple[Int32Array, pa.Array]:
        """Return the code of the person of every row, and the ids behind the codes."""
        codes = IdCodes()
        for ids in self.persons:
            codes.add(ids, self.kind)
        return codes.take_codes(), codes.names()


Plan = TypeVar("Plan", LongPlan, WidePlan)


def plan_tables(
    sources: Iterable[Source], reading: Reading
) -> Iterator[tuple[Source, LongPlan | WidePlan]]:
    """Yield tables with their columns; long and wide tables together are refused."""
    first: tuple[str, type] | None = None
    for source in sources:
        plan = plan_source(source, reading)
        if first is not None and type(plan) is not first[1]:
            ours, theirs = ("long", "wide") if isinstance(plan, LongPlan) else ("wide", "long")
            raise BadResponses(
                f"{source.name} is a {ours} table but {first[0]} is a {theirs} one. Read them one "
                "by one, or say layout='long' or layout='wide' (--layout) if this is a mistake."
            )
        first = first or (source.name, type(plan))
        detect_reading(source, plan, reading)
        yield source, plan


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


class TableRows(Generic[Plan]):
    """The rows of long or of wide tables of any size.

    Parameters
    ----------
    tables
        Opens the tables, one after the other.
    reading
        How answers are scored.
    items
        Item names; new ones are added as they appear.
    as_text
        Whether ids are kept as text although they may be numbers.
    with_groups
        Whether the group columns are read too, into ``groups``.

    Attributes
    ----------
    places, detected, silent
        Where the rows of the last pass stand, what was detected in it, persons without rows.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[tuple[Source, Any]]],
        reading: Reading,
        items: ItemNames | None = None,
        *,
        as_text: bool = True,
        with_groups: bool = False,
    ) -> None:
        self._tables, self._with_groups = tables, with_groups
        self.rules, self.items, self.as_text = reading, items or ItemNames(), as_text
        self.places = RowPlaces()
        self.groups: dict[str, IdCodes] = {}
        self._order = OrderKeys()
        self.detected: list[Detected] = []
        self.silent: list[str] = []

    @property
    def reading(self) -> Reading:
        """How the answers of blocks are to be read."""
        return self.rules

    def _open(
        self, skip: int = 0, finished: Sequence[int] = ()
    ) -> Iterator[tuple[Source, Plan, tuple[int, ...]]]:
        """Yield table after table, and how many rows those before it had.

        ``finished`` are the rows of tables of which those that lie wholly before row ``skip`` are
        not read.
        """
        done = lie_before(skip, finished)
        self.places, n_done = RowPlaces(), len(done)
        for number, (source, plan) in enumerate(self._tables()):
            self.places.begin(source)
            if number < n_done:
                self.places.n_rows += done[number]
                continue
            if self._with_groups:
                self.groups = name_groups(self.groups, source, plan)
            before = self.places.n_rows
            yield source, plan, tuple(done)
            done.append(self.places.n_rows - before)
            if not done[-1]:
                refuse_no_rows(source)
            self.silent = getattr(source, "silent", self.silent)
            self.detected += detect_reading(source, plan, self.reading)

    def _list_columns(self, plan: Plan) -> list[int]:
        """Return the columns of persons, answers and their order, then those of groups."""
        return [*list_column_numbers(plan), *(plan.groups if self._with_groups else ())]

    def _read_facts(self, columns: Sequence[Any], names: Sequence[str], rows: int) -> FloatArray:
        """Read what stands behind the answers of a batch; return what the rows are in order of."""
        when, last = no_order(rows), len(columns) - len(self.groups)
        for column, codes, name in zip(
            columns[last:], self.groups.values(), names[last:], strict=True
        ):
            codes.add(read_ids(column, name, "group", self.places))
        for column, name in zip(columns[:last], names, strict=False):
            when = self._order.read(column, name, self.places)
        self.places.n_rows += rows
        return when

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows, one for each answer."""
        raise NotImplementedError

    def find_answer(self, person: str, item: str, number: int) -> str:
        """Return the place of a person's first, second, ... answer to an item, for a message."""
        code = self.items.names.index(item)
        for block in self.blocks():
            hits = np.flatnonzero((block.item == code) & (block.value >= 0))
            ids = block.person[hits] if isinstance(block.person, np.ndarray) else None
            if ids is None:
                ids = np.array(block.person.take(pa.array(hits)).to_pylist(), dtype=object)
            hits = hits[ids.astype(str) == person]
            if len(hits) >= number:
                return self.places.place(int(block.number_rows()[hits[number - 1]]))
            number -= len(hits)
        return "a row that is no longer there"


class LongRows(TableRows[LongPlan]):
    """The rows of long tables."""

    def blocks(self, skip: int = 0, finished: Sequence[int] = ()) -> Iterator[RowBlock]:
        """Yield all rows from number ``skip`` on."""
        self._numbers = np.zeros(0, dtype=np.int32)
        self._codes = AnswerCodes(self.reading)
        self._ignored = np.zeros(0, dtype=np.bool_)
        for source, plan, done in self._open(skip, finished):
            columns = self._list_columns(plan)
            names = [source.names[number] for number in columns]
            for batch in source.batches(columns):
                drop = min(max(skip - self.places.n_rows, 0), len(batch[0]))
                self.places.n_rows += drop
                unread = [column.slice(drop) for column in batch] if drop else batch
                if len(unread[0]):
                    yield self._read_batch(unread, names, done)

    def _read_batch(
        self, batch: Sequence[Any], names: Sequence[str], finished: tuple[int, ...]
    ) -> RowBlock:
        person = self._read_persons(batch[0], names[0])
        item = self._read_items(batch[1], names[1])
        value, start = self._read_answers(batch, item, names), self.places.n_rows
        when = self._read_facts(batch[3:], names[3:], len(value))
        n_items, kind = len(self.items.names), batch[0].type
        return RowBlock(person, item, value, n_items, start, finished, when, kind)

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


def warn_alike(role: str, ids: object) -> None:
    """Warn of ids that people take for one."""
    n_alike = 0 if ids is None else count_alike(ids)
    if n_alike:
        warnings.warn(
            f"{role} whose ids differ only by a final .0, an invisible sign or the way an accent "
            f"is written count apart, {n_alike:,} of them. Write each id in one way.",
            DiscreetWarning,
            stacklevel=5,
        )


#: Cells packed together: 16 MB before packing.
CELLS = 1 << 24


class WideRows(TableRows[WidePlan]):
    """The rows of wide tables; those of blocks and slabs are turned round where a 1 is wrong."""

    #: Whether no column names the persons; the column that does, of the last table.
    is_numbered: bool | None = None
    column: str | None = None

    @cached_property
    def reading(self) -> Reading:
        """How the answers of blocks and slabs are to be read, which are turned round already."""
        return replace(self.rules, one_means="right")

    def slabs(self, position: BatchPosition | None = None) -> Iterator[Slab]:
        """Yield the rows from a place on, which lies between two slabs."""
        position = position or BatchPosition()
        for source, plan, done in self._open(position.row, position.finished):
            self._check_numbering(source, plan)
            columns = self._list_columns(plan)
            names = [source.names[number] for number in columns]
            first = int(plan.person is not None)
            last = first + len(plan.items)
            items = tuple(names[first:last])
            self.items.encode(items)
            for held in _gather(source.batches(columns), CELLS // len(columns)):
                start, rows = self.places.n_rows, sum(len(batch[0]) for batch in held)
                if start + rows <= position.row:
                    self.places.n_rows += rows
                    continue
                persons, when = [], []
                for batch in held:
                    if first:
                        persons.append(read_ids(batch[0], names[0], "person", self.places))
                    when.append(self._read_facts(batch[last:], names[last:], len(batch[0])))
                store = self._pack(items, [batch[first:last] for batch in held], start)
                n_items, kind = len(self.items.names), held[0][0].type
                yield Slab(items, store, persons, kind, n_items, start, done, np.concatenate(when))

    def _check_numbering(self, source: Source, plan: WidePlan) -> None:
        """Refuse a table with a column of persons behind others without one, or the reverse."""
        is_numbered = plan.person is None
        if self.is_numbered not in (None, is_numbered):
            raise BadResponses(
                f"{source.name} has {'no' if is_numbered else 'a'} person column, but the files "
                f"before it have {'none' if self.is_numbered else 'one'}. Give all files a person "
                "column, or none."
            )
        self.is_numbered = is_numbered
        self.column = None if plan.person is None else source.names[plan.person]

    def _pack(
        self, items: tuple[str, ...], batches: Sequence[Sequence[Any]], start: int
    ) -> AnswerStore:
        """Pack answers: columns as they are where they need no scoring."""
        rules = self.rules
        columns = [pa.chunked_array(column) for column in zip(*batches, strict=True)]
        store: AnswerStore | None = None
        if not rules.by_item and rules.scoring == ValueScoring() and all(map(_is_plain, columns)):
            with suppress(BadCell):  # which scoring refuses, with its place
                store = pack.compact(pack.pack_columns(columns))
        if store is None:
            store = self._score(items, columns, start)
        return store if rules.one_means == "right" else flip_answers(store.nodes)

    def _score(self, items: tuple[str, ...], columns: Sequence[Any], start: int) -> AnswerStore:
        rules, values = self.rules, list[Int8Array]()
        for item, column in zip(items, columns, strict=True):
            scoring = rules.scoring_of(item)
            values.append(np.concatenate([score_array(chunk, scoring) for chunk in column.chunks]))
        bad = [(int(np.argmax(v == BAD)), j) for j, v in enumerate(values) if v.min() == BAD]
        if bad:
            place, is_named = self.places.place(start + min(bad)[0]), not self.is_numbered
            raise refuse_wide(place, items, columns, min(bad), rules, has_person=is_named)
        steps = rules.steps_of(items)
        if all(step == 1 for step in steps):
            return pack.compact(pack.pack_columns(values))
        return pack.store_codes(np.stack(values).T, steps)

    def check_order(self, resources: Resources) -> None:
        """Raise ``OutOfOrder`` where an id stands in more than one row."""
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
        try:
            for source, plan, _ in self._open():
                self._check_numbering(source, plan)
                if plan.person is None:
                    break
                for (column,) in source.batches((plan.person,)):
                    ids = read_ids(column, source.names[plan.person], "person", self.places)
                    self.places.n_rows += len(ids)
                    yield pa.record_batch([ids.dictionary.take(ids.indices)], schema=schema)
        except Exception as error:
            failures.append(error)
            raise

    def batches(self, position: BatchPosition) -> Iterator[PersonBatch]:
        """Yield the rows from a place on, each of them a whole person."""
        with closing(run_ahead(self.slabs(position))) as slabs:
            for slab in slabs:
                items, n_rows = tuple(self.items.names[: slab.n_items]), slab.store.n_persons
                row, rows = slab.start + n_rows, position.rows + n_rows
                position = replace(position, row=row, finished=slab.finished, rows=rows)
                store = slab.store
                if slab.items != items:
                    store = select_columns(store, number_items(items, slab.items))
                persons = None if self.is_numbered else slab.encode_persons()[1]
                yield PersonBatch(items, persons, store, n_rows, position)

    def blocks(self, slabs: Iterable[Slab] | None = None) -> Iterator[RowBlock]:
        """Yield all rows as long ones: every answer, and one row for who has none."""
        for slab in self.slabs() if slabs is None else slabs:
            cells = slab.store.rows(0, slab.store.n_persons)
            cells[(cells < 0).all(axis=1), 0] = -3
            row, column = np.nonzero(cells != -1)
            value = np.maximum(cells[row, column], -1).astype(np.int8)
            rows, item = slab.start + row, self.items.encode(slab.items)[column]
            person: Any = rows
            if not self.is_numbered:
                codes, names = slab.encode_persons()
                person = pa.DictionaryArray.from_arrays(pa.array(codes[row]), names)
            about = slab.n_items, slab.start, slab.finished, slab.when[row], slab.kind, rows
            yield RowBlock(person, item, value, *about)


def _is_plain(column: pa.ChunkedArray) -> bool:
    """Say whether a column can be packed as it is.

    Packing takes -1 for missing, as arrays have it; in tables -1 is refused, as in files.
    """
    kind, types = column.type, pa.types
    if types.is_boolean(kind) or types.is_null(kind) or types.is_unsigned_integer(kind):
        return True
    if not (types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind)):
        return False
    for chunk in column.chunks:
        if chunk.null_count:  # what lies under a null may be anything
            low = pc.min_max(chunk)["min"].as_py()
        else:
            low = np.fmin.reduce(chunk.to_numpy(zero_copy_only=True), initial=0)
        if low is not None and low < 0:
            return False
    return True


def _gather(batches: Iterable[list[Any]], size: int) -> Iterator[list[list[Any]]]:
    """Yield batches, several small ones together; long runs are cut where a word of bits ends."""
    held, rows = list[list[Any]](), 0
    for batch in batches:
        held.append(batch)
        rows += len(batch[0])
        spare = rows % 64 if rows >= _WHOLE_WORDS else 0
        if rows >= max(1, size) and spare <= len(batch[0]):
            end = len(batch[0]) - spare
            held[-1] = [column.slice(0, end) for column in batch]
            yield held
            held = [[column.slice(end) for column in batch]] if spare else []
            rows = spare
    if rows:
        yield held


def open_rows(
    tables: Callable[[], Iterable[tuple[Source, Any]]],
    plan: LongPlan | WidePlan,
    *about: Any,
    **options: Any,
) -> LongRows | WideRows:
    """Return the rows of tables that are long or wide as this plan is."""
    return (LongRows if isinstance(plan, LongPlan) else WideRows)(tables, *about, **options)
