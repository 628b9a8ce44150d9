"""Read long rows block by block, checked and turned into numbers.

In: the shards of a dataset. Out: blocks of person ids, item codes and answers in the order of
the rows. The rules and the messages are those of the readers in :mod:`discreet.answers.responses`.
Whole-number ids stay numbers, because comparing and hashing them is ten times faster than text;
"007" or "a7" makes the whole run fall back to text (:class:`NotNumbers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import BadResponses
from discreet.jit import worth_compiling
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Shard, no_rows
from discreet.tables.ids import encode_ids, find_numbers, read_ids, spell_ids
from discreet.tables.inspection.refusals import refuse_long
from discreet.tables.opener import RowPlaces, Source, detect_reading, plan_source
from discreet.tables.reading import Reading
from discreet.tables.remedies import Detected, join_detected
from discreet.tables.separators import OrderKeys, no_order
from discreet.tables.values import BAD, MISSING, read_integers, score_value
from discreet.types import FloatArray, Int8Array, Int32Array

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""Texts that are one-to-one with 64-bit numbers: no leading zeros, no plus sign."""


LOOKUP_SIZE = 1 << 18
"""Items that are numbers below this are looked up in a table of one megabyte, not hashed."""
SMALL_NUMBERS = 16
"""Answers that are numbers below this are looked up as well: a power of two above 10 categories."""
PLAIN_ROW = 1e-8
"""Seconds that hashing an item takes per row."""


class NotNumbers(Exception):
    """An id turned out not to be a whole number: read everything again as text."""


@dataclass(frozen=True)
class Block:
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


def plan_shards(
    shards: Sequence[Shard], reading: Reading
) -> tuple[list[LongPlan] | list[WidePlan], tuple[Detected, ...]]:
    """Find the columns of every shard; long and wide shards together are refused.

    Beside the plans stands what the data decided about how the shards are read.
    """
    plans: list[Any] = []
    detected: tuple[Detected, ...] = ()
    for shard in shards:
        source = shard.open()
        plan = plan_source(source, reading)
        if plans and type(plan) is not type(plans[0]):
            ours, theirs = ("long", "wide") if isinstance(plan, LongPlan) else ("wide", "long")
            raise BadResponses(
                f"{shard.name} is a {ours} table but {shards[0].name} is a {theirs} one. Read them "
                "one by one, or say layout='long' or layout='wide' (--layout) if this is a mistake."
            )
        plans.append(plan)
        detected = join_detected([detected, detect_reading(source, plan, reading)])
    return plans, detected


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
                self._refuse_if_closed(word)
                code_of[word] = len(self.names)
                self.names.append(word)
        return np.array([code_of[word] for word in words], dtype=np.int32)

    def _refuse_if_closed(self, word: str) -> None:
        if self._closed:
            raise BadResponses(
                f"the data has an item {word!r} that is not on the item list. Add it to the list, "
                "or take its rows or column out of the data first."
            )


class AnswerCodes:
    """What small whole numbers mean as answers to items that are scored each in its own way."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._table = np.zeros((0, SMALL_NUMBERS), dtype=np.int8)

    def look_up(self, column: Any, item: Int32Array, names: Sequence[str]) -> Int8Array | None:
        """Return the codes of answers to the items ``names[item]``; None if one has no code."""
        if not pa.types.is_integer(column.type) or column.null_count:
            return None
        if not worth_compiling(PLAIN_ROW * len(column)):
            return None
        from discreet.answers.streamed.kernels import look_up_answers

        self._learn(names[len(self._table) :])
        codes = np.empty(len(item), dtype=np.int8)
        are_known_values = look_up_answers(read_integers(column), item, self._table, codes)
        return codes if are_known_values else None

    def _learn(self, names: Sequence[str]) -> None:
        """Score every number for items that are new."""
        if names:
            scorings = [self._reading.scoring_of(name) for name in names]
            rows = [[score_value(k, scoring) for k in range(SMALL_NUMBERS)] for scoring in scorings]
            self._table = np.concatenate([self._table, np.array(rows, dtype=np.int8)])


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

    def blocks(self, skip: int = 0, finished: Sequence[int] = ()) -> Iterator[Block]:
        """Yield all rows from number ``skip`` on.

        Parameters
        ----------
        skip
            Rows that were read before.
        finished
            Rows of the shards that lie wholly before ``skip``: they are not opened.
        """
        done = lie_before(skip, finished)
        for shard, rows in zip(self._shards, done, strict=False):
            self.places.begin(shard.open())
            self.places.n_rows += rows
        first = len(done)
        for shard, plan in zip(self._shards[first:], self._plans[first:], strict=True):
            before = self.places.n_rows
            yield from self._read_shard(shard.open(), plan, skip, tuple(done))
            done.append(self.places.n_rows - before)
            if not done[-1]:
                raise no_rows(shard)

    def _read_shard(
        self, source: Source, plan: LongPlan, skip: int, finished: tuple[int, ...]
    ) -> Iterator[Block]:
        columns = list_column_numbers(plan)
        names = [source.names[number] for number in columns]
        self.places.begin(source)
        for batch in source.batches(columns):
            drop = min(max(skip - self.places.n_rows, 0), len(batch[0]))
            self.places.n_rows += drop
            unread = [column.slice(drop) for column in batch] if drop else batch
            if len(unread[0]):
                yield self._read_batch(unread, names, finished)

    def _read_batch(
        self, batch: Sequence[Any], names: Sequence[str], finished: tuple[int, ...]
    ) -> Block:
        person = self._read_persons(batch[0], names[0])
        item = self._read_items(batch[1], names[1])
        value = self._read_answers(batch, item, names)
        when = no_order(len(value))
        for column, name in zip(batch[3:], names[3:], strict=True):
            when = self._order.read(column, name, self.places)
        start = self.places.n_rows
        self.places.n_rows += len(value)
        return Block(person, item, value, len(self.items.names), start, finished, when)

    def _read_persons(self, column: Any, name: str) -> Any:
        is_integer = pa.types.is_signed_integer(column.type) and not column.null_count
        if is_integer and not self.as_text:
            return read_integers(column).astype(np.int64, copy=False)
        ids = read_ids(column, name, "person", self.places)
        if self.as_text:
            return ids
        if not pc.all(pc.match_substring_regex(ids.dictionary, _WHOLE)).as_py():
            raise NotNumbers
        return read_integers(ids.dictionary.cast(pa.int64()))[read_integers(ids.indices)]

    def _read_items(self, column: Any, name: str) -> Int32Array:
        if pa.types.is_integer(column.type) and not column.null_count:
            item_codes = self._look_up_items(read_integers(column))
            if item_codes is not None:
                return item_codes
        ids = read_ids(column, name, "item", self.places)
        words = spell_ids(find_numbers(ids.dictionary, column.type))
        codes = self.items.encode(words)
        if pa.types.is_integer(column.type):
            self._note_numbers(words, codes)
        return np.asarray(codes[read_integers(ids.indices)])

    def _look_up_items(self, numbers: npt.NDArray[Any]) -> Int32Array | None:
        """Return the codes of items that are known small numbers; None if one is not."""
        if not worth_compiling(PLAIN_ROW * len(numbers)):
            return None
        from discreet.answers.streamed.kernels import look_up

        codes = np.empty(len(numbers), dtype=np.int32)
        return codes if look_up(numbers, self._numbers, codes) else None

    def _note_numbers(self, words: Sequence[str], codes: Int32Array) -> None:
        numbers = np.array([int(word) for word in words])
        small = (numbers >= 0) & (numbers < LOOKUP_SIZE)
        table = np.full(LOOKUP_SIZE, -1, dtype=np.int32)
        table[: len(self._numbers)] = self._numbers
        table[numbers[small]] = codes[small]
        self._numbers = table[: np.flatnonzero(table >= 0).max(initial=-1) + 1]

    def _read_answers(
        self, batch: Sequence[Any], item: Int32Array, names: Sequence[str]
    ) -> Int8Array:
        column, rules = batch[2], self.reading
        answer_codes = self._look_up_answers(column, item)
        if answer_codes is not None:
            return self._drop_ignored(answer_codes, item)
        values = self._score(batch)
        if not (values == BAD).any():
            return values
        items, before = read_ids(batch[1], names[1], "item", self.places), self.places.n_rows
        locate = self.places.place
        raise refuse_long(values, column, items, names[2], rules, lambda row: locate(before + row))

    def _look_up_answers(self, column: Any, item: Int32Array) -> Int8Array | None:
        """Return the codes of answers that are small numbers; None where one has no code."""
        rules = self.reading
        if rules.by_item:
            return self._codes.look_up(column, item, self.items.names)
        if column.type != pa.int8() or column.null_count or rules.at_least is not None:
            return None
        values = read_integers(column)
        return values if int(values.view(np.uint8).max(initial=0)) <= 1 else None

    def _drop_ignored(self, values: Int8Array, item: Int32Array) -> Int8Array:
        """Return a missing answer to every item that is not on the public list."""
        rules = self.reading
        if not rules.listed:
            return values
        more = [rules.ignores(name) for name in self.items.names[len(self._ignored) :]]
        self._ignored = np.concatenate([self._ignored, np.array(more, dtype=np.bool_)])
        if not self._ignored.any():
            return values
        return np.where(self._ignored[item], np.int8(MISSING), values)

    def _score(self, batch: Sequence[Any]) -> Int8Array:
        rules = self.reading
        items = encode_ids(batch[1]) if rules.by_item or rules.listed else None
        return rules.score_long(batch[2], items)

    def find_answer(self, person: str, item: str, number: int) -> str:
        """Return the place of a person's first, second, ... answer to an item, for a message."""
        rows = 0
        for shard, plan in zip(self._shards, self._plans, strict=True):
            source, before = shard.open(), rows
            for batch in source.batches(list_column_numbers(plan)):
                values = self._score(batch)
                hit = _equals(batch[0], person) & _equals(batch[1], item) & (values >= 0)
                rows_found = np.flatnonzero(hit)
                if len(rows_found) >= number:
                    return source.place(rows - before + int(rows_found[number - 1]))
                number -= len(rows_found)
                rows += len(values)
        return "a row that is no longer there"


def _equals(column: Any, text: str) -> npt.NDArray[np.bool_]:
    """Say which rows of a column hold this id."""
    ids = encode_ids(column)
    same = np.array([name == text for name in ids.dictionary.to_pylist()], dtype=np.bool_)
    return np.asarray(same[read_integers(ids.indices)])
