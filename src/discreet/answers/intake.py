"""Pack tables of answers, long ones from their codes, wide ones batch by batch.

In: the rows of a long table, or batches of a wide one, from as many sources as there are. Out: the
parts of one table. The columns of a wide table (one row per person, one column per item) are packed
to 2 bits a cell, 16,384 persons at a time, so that a file of any length needs little memory. Where
persons come back or files have different items, the packed answers are put together as long rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import Repeated, pack_rows
from discreet.answers.select import flip_answers
from discreet.answers.steps import Nodes, list_category_answers, pack_steps, step_store, store_steps
from discreet.counts.planes import (
    BLOCK_WORDS,
    AnswerStore,
    BitPlanes,
    SparseRows,
    join_rows,
    prefers_planes,
)
from discreet.errors import BadResponses, Remedy
from discreet.tables.columns import WidePlan
from discreet.tables.ids import IdCodes, read_ids
from discreet.tables.inspection.refusals import refuse_wide
from discreet.tables.opener import (
    LongTable,
    RowPlaces,
    Source,
    assign_groups,
    detect_reading,
    name_groups,
)
from discreet.tables.reading import Reading
from discreet.tables.remedies import Detected, join_detected, make_remedy
from discreet.tables.separators import OrderKeys, sort_keys
from discreet.tables.values import BAD, score_array
from discreet.types import FloatArray, Int8Array

Codes = npt.NDArray[np.int32]


class RawTable(NamedTuple):
    """Items, persons (Arrow ids, or None for those in order), answers, groups.

    ``detected`` is what the data decided about how they are read, ``joined`` a sentence about
    persons who stand in several rows of a wide table and lost answers by that.
    """

    items: tuple[str, ...]
    persons: Any
    store: AnswerStore
    groups: dict[str, npt.NDArray[np.object_]]
    detected: tuple[Detected, ...] = ()
    joined: str = ""


def pack_table(table: LongTable | WideTable, reading: Reading) -> RawTable:
    """Return the parts of a table that is read to its end."""
    if isinstance(table, WideTable):
        return table.finish()
    rows = table.finish()
    coded = rows.person, rows.item, rows.code
    store = store_answers(*coded, rows.persons, rows.items, reading, rows.place, rows.when)
    return RawTable(rows.items, rows.persons, store, rows.groups, rows.detected)


def store_answers(
    person: Codes,
    item: Codes,
    code: Int8Array,
    persons: Any,
    items: Sequence[str],
    reading: Reading,
    locate: Any,
    when: FloatArray | None = None,
    column: str | None = None,
) -> AnswerStore:
    """Store answers; a person's second answer to an item is settled as the user said.

    Parameters
    ----------
    person, item, code
        One entry per answer: who, to what, the category.
    persons, items
        The names behind the codes.
    reading
        Gives ``repeats``, ``one_means`` and the items' steps.
    locate
        From the number of an entry to the words for its row.
    when
        What says which of repeated answers is the last; by default their order here.
    column
        The column of persons of a wide table, in which two persons may have one name.
    """
    try:
        store = store_steps(person, item, code, len(persons), reading.steps_of(items))
    except Repeated as again:
        if reading.repeats == "error":
            first, second = again.first_index, again.second_index
            numbering = [] if column is None else [number_rows(column, reading)]
            raise BadResponses(
                f"Person '{persons[int(person[first])]}' answered item "
                f"'{items[int(item[first])]}' more than once: {locate(first)} and "
                f"{locate(second)}. Only one answer can count. "
                f"{''.join(f'{remedy.words}. ' for remedy in numbering)}"
                "Remove one, or keep the first or the last of them "
                "with repeats='first' or repeats='last' (--repeats first, --repeats last)."
            ).offering(
                *numbering,
                make_remedy("keep the first answer:", {"repeats": "first"}),
                make_remedy("keep the last answer:", {"repeats": "last"}),
            ) from None
        kept_rows = keep_one(person.astype(np.int64) * len(items) + item, reading.repeats, when)
        answers = person[kept_rows], item[kept_rows], code[kept_rows]
        store = store_steps(*answers, len(persons), reading.steps_of(items))
    return store if reading.one_means == "right" else flip_answers(cast(Nodes, store))


def number_rows(column: str, reading: Reading) -> Remedy:
    """Return how two persons with one name are kept apart: every row is another person."""
    remedy = make_remedy("If these are two persons, number the rows with", {"ignore": [column]})
    if reading.person is None:
        return remedy
    return Remedy(f"{remedy.words} instead of person=", {**remedy.options, "person": None})


def keep_one(
    keys: npt.NDArray[np.int64], which: str, when: FloatArray | None = None
) -> npt.NDArray[np.int64]:
    """Return the entries to keep, in order: the first or last of each key."""
    order = sort_keys(keys, when)
    differs = np.diff(keys[order]) != 0
    edge = np.ones(min(1, len(keys)), dtype=np.bool_)
    chosen = np.concatenate([edge, differs] if which == "first" else [differs, edge])
    return np.sort(order[chosen])


_BLOCK = 64 * BLOCK_WORDS
_SHOWN = 5


@dataclass
class _Segment:
    """Rows that share their item columns."""

    items: tuple[str, ...]
    blocks: list[AnswerStore] = field(default_factory=list)


class WideTable:
    """Wide rows as they come in; :meth:`finish` makes the parts of them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._rows = RowPlaces()
        self._persons = IdCodes()
        self._column: str | None = None
        self._numbered = True
        self._groups: dict[str, IdCodes] = {}
        self._order = OrderKeys()
        self._segments: list[_Segment] = []
        self._buffer = np.zeros((0, 0), dtype=np.int8)
        self._used = 0
        self._detected: tuple[Detected, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows taken in so far."""
        return self._rows.n_rows

    def add_source(self, source: Source, plan: WidePlan) -> None:
        """Take in all rows of a source."""
        self._rows.begin(source)
        detected = detect_reading(source, plan, self._reading)
        self._detected = join_detected([self._detected, detected])
        self._check_numbering(source, plan)
        self._groups = name_groups(self._groups, source, plan)
        items = tuple(source.names[number] for number in plan.items)
        if not self._segments or self._segments[-1].items != items:
            self._flush()
            self._segments.append(_Segment(items))
            self._buffer = np.empty((len(items), _BLOCK), dtype=np.int8)
        person = () if plan.person is None else (plan.person,)
        facts = (*person, *plan.groups, *plan.order)
        for batch in source.batches((*facts, *plan.items)):
            if person:
                self._column = name = source.names[person[0]]
                self._persons.add(read_ids(batch[0], name, "person", self._rows), batch[0].type)
            groups = batch[len(person) : len(person) + len(plan.groups)]
            for (name, codes), column in zip(self._groups.items(), groups, strict=True):
                codes.add(read_ids(column, name, "group", self._rows))
            order = batch[len(facts) - len(plan.order) : len(facts)]
            for number, column in zip(plan.order, order, strict=True):
                self._order.add(column, source.names[number], self._rows)
            self._add_answers(batch[len(facts) :], items)

    def _check_numbering(self, source: Source, plan: WidePlan) -> None:
        numbered = plan.person is None
        if self._segments and numbered != self._numbered:
            raise BadResponses(
                f"{source.name} has {'no' if numbered else 'a'} person column, but the files "
                f"before it have {'one' if numbered else 'none'}. Give all files a person column, "
                "or none."
            )
        self._numbered = numbered

    def _add_answers(self, columns: Sequence[Any], items: tuple[str, ...]) -> None:
        n_rows = len(columns[0])
        if not n_rows:
            return
        scorings = [self._reading.scoring_of(item) for item in items]
        values = [score_array(*pair) for pair in zip(columns, scorings, strict=True)]
        self._refuse_bad(values, columns, items)
        done = 0
        while done < n_rows:
            part = min(n_rows - done, _BLOCK - self._used)
            for line, column in zip(self._buffer, values, strict=True):
                line[self._used : self._used + part] = column[done : done + part]
            self._used += part
            done += part
            if self._used == _BLOCK:
                self._flush()
        self._rows.n_rows += n_rows

    def _refuse_bad(
        self, values: list[npt.NDArray[np.int8]], columns: Sequence[Any], items: tuple[str, ...]
    ) -> None:
        bad = [(int(np.argmax(v == BAD)), j) for j, v in enumerate(values) if v.min() == BAD]
        if bad:
            row, j = min(bad)
            location = self._rows.place(self._rows.n_rows + row)
            raise refuse_wide(
                location, items, columns, (row, j), self._reading,
                has_person=not self._numbered,
            )  # fmt: skip

    def _flush(self) -> None:
        if self._used:
            cells = self._buffer[:, : self._used]
            steps = self._reading.steps_of(self._segments[-1].items)
            self._segments[-1].blocks.append(pack_steps(list(cells), steps))
            self._used = 0

    def finish(self) -> RawTable:
        """Return the parts of the table."""
        self._flush()
        self._buffer = np.zeros((0, 0), dtype=np.int8)
        person, names = self._person_codes()
        groups = {
            name: assign_groups(name, person, codes, names, self._rows.place)
            for name, codes in self._groups.items()
        }
        person_ids = None if self._numbered else names
        if len(self._segments) == 1 and len(names) == len(person):
            segment = self._segments[0]
            steps = self._reading.steps_of(segment.items)
            store = step_store(_join_blocks([block.nodes for block in segment.blocks]), steps)
            if self._reading.one_means == "wrong":
                store = flip_answers(store.nodes)
            return RawTable(segment.items, person_ids, store, groups, self._detected)
        items = tuple(dict.fromkeys(name for segment in self._segments for name in segment.items))
        store, joined = self._store_long(person, names, items)
        return RawTable(items, person_ids, store, groups, self._detected, joined)

    def _person_codes(self) -> tuple[npt.NDArray[Any], Any]:
        if self._numbered:
            return np.arange(self._rows.n_rows), _Numbers(self._rows.n_rows)
        return self._persons.take_codes(), self._persons.ids()

    def _store_long(
        self, person: npt.NDArray[Any], names: Any, items: tuple[str, ...]
    ) -> tuple[AnswerStore, str]:
        number = {name: code for code, name in enumerate(items)}
        parts, first = [], 0
        for segment in self._segments:
            codes = np.array([number[name] for name in segment.items], dtype=np.int32)
            for block in segment.blocks:
                row, column, code = list_category_answers(block)
                parts.append((first + row, codes[column], code))
                first += block.n_persons
        row, item, code = (np.concatenate(column) for column in zip(*parts, strict=True))
        when = self._order.finish()
        store = store_answers(
            person[row], item, code, names, items, self._reading,
            lambda index: self._rows.place(int(row[index])), None if when is None else when[row],
            self._column,
        )  # fmt: skip
        lost = store.n_answers < len(row) and when is None
        return store, self._tell_joined(person, names) if lost else ""

    def _tell_joined(self, person: npt.NDArray[Any], names: Any) -> str:
        """Tell who stands in several rows of one table."""
        keys = self._rows.number_sources() * len(names) + person
        _, first, code, times = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        joined = np.flatnonzero(times > 1)
        if self._column is None or not joined.size:
            return ""
        listed = []
        for key in joined[np.argsort(first[joined])][:_SHOWN].tolist():
            rows = [self._rows.place(row) for row in np.flatnonzero(code == key)[:_SHOWN].tolist()]
            listed.append(f"'{names[int(person[first[key]])]}' ({' and '.join(rows)})")
        return (
            "Persons with one id count as one, and their repeated answers were left out, "
            f"{joined.size} of them: {'; '.join(listed)}. "
            f"{number_rows(self._column, self._reading).words}."
        )


class _Numbers:
    """The ids "0", "1", ... without making them."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> str:
        return str(number)


def _join_blocks(blocks: list[Nodes]) -> Nodes:
    """Return one store of blocks of 16,384 persons, the last one shorter."""
    n_items = blocks[0].n_items
    n_persons = sum(block.n_persons for block in blocks)
    n_answers = sum(block.n_answers for block in blocks)
    if prefers_planes(n_persons, n_items, n_answers):
        planes = [_as_planes(block) for block in blocks]
        right = _stack([block.right for block in planes])
        return BitPlanes(right, _stack([block.wrong for block in planes]), n_persons)
    return join_rows([_as_rows(block) for block in blocks])


def _as_planes(block: Nodes) -> BitPlanes:
    return block if isinstance(block, BitPlanes) else pack_rows(block.rows(0, block.n_persons))


def _as_rows(block: Nodes) -> SparseRows:
    return block if isinstance(block, SparseRows) else block.take(np.arange(block.n_persons))


def _stack(planes: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    """Put blocks one after the other; the last is filled up with words without persons."""
    if len(planes) == 1:
        return planes[0]
    missing = BLOCK_WORDS - planes[-1].shape[2]
    planes[-1] = np.pad(planes[-1], ((0, 0), (0, 0), (0, missing)))
    return np.concatenate(planes)
