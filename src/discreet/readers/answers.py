"""From files, data frames and arrays to :class:`discreet.Responses`.

In: a path, a folder, a pattern or a frame, and how to read it. Out: one table. Every format is
opened by :mod:`discreet.tables.opener` and hands its batches to the same two tables, long and wide.
Wide tables are packed to 2 bits a cell, 16,384 persons at a time; where persons come back or files
have different items, the packed answers are put together as long rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers import pack
from discreet.answers.pack import BadCell, Repeated
from discreet.answers.repeated import number_samples
from discreet.answers.responses import Responses
from discreet.answers.select import flip_answers
from discreet.coding.reading import Reading, ReadingWords, check_words
from discreet.coding.remedies import Detected, join_detected, make_remedy
from discreet.coding.values import BAD, ValueScoring
from discreet.counts.planes import (
    BLOCK_WORDS,
    AnswerStore,
    BitPlanes,
    Nodes,
    join_rows,
    prefers_planes,
    step_store,
)
from discreet.errors import LOG, BadResponses, DiscreetWarning, Remedy, log_answers, name_source
from discreet.readers.choices import take_choices
from discreet.tables import opener
from discreet.tables.cells import score_array
from discreet.tables.columns import LongPlan, WidePlan, name_items, plan_columns
from discreet.tables.ids import (
    BadIds,
    IdCodes,
    OrderKeys,
    count_alike,
    encode_ids,
    find_numbers,
    find_rounded,
    make_texts,
    plain_column,
    read_ids,
)
from discreet.tables.inspection import decide_reading, refer_to_proposal
from discreet.tables.inspection.refusals import BadAnswer, refuse_wide, settle_after, settle_scale
from discreet.tables.inspection.rows import tell_odd_rows
from discreet.tables.lists import check_named_items, settle_key, state_reading
from discreet.tables.opener import LongTable, Progress, RowPlaces, Source
from discreet.tables.resources import Resources
from discreet.tables.sources import FrameSource, as_arrow
from discreet.tables.vocabulary import is_label
from discreet.types import FloatArray, Int8Array, Int32Array, Texts, UInt64Array, Vector

Codes = Int32Array


class RawTable(NamedTuple):
    """Items, persons (Arrow ids, or None for those in order), answers, groups, what was detected.

    ``joined`` is a sentence about persons who lost answers by standing in several rows.
    """

    items: tuple[str, ...]
    persons: Any
    store: AnswerStore
    groups: dict[str, Texts]
    detected: tuple[Detected, ...] = ()
    joined: str = ""


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
    person, item, code, persons, items
        One entry per answer: who, to what, the category; and the names behind the codes.
    locate, when, column
        From an entry's number to its row's words; what repeated answers are in order of; the
        column of persons of a wide table, in which two persons may have one name.
    """
    try:
        store = pack.store_steps(person, item, code, len(persons), reading.steps_of(items))
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
        kept_rows = pack.keep_one(
            person.astype(np.int64) * len(items) + item, reading.repeats, when
        )
        answers = person[kept_rows], item[kept_rows], code[kept_rows]
        store = pack.store_steps(*answers, len(persons), reading.steps_of(items))
    return store if reading.one_means == "right" else flip_answers(cast(Nodes, store))


def number_rows(column: str, reading: Reading) -> Remedy:
    """Return how two persons with one name are kept apart: every row is another person."""
    remedy = make_remedy("If these are two persons, number the rows with", {"ignore": [column]})
    if reading.person is None:
        return remedy
    return replace(
        remedy,
        words=f"{remedy.words} instead of person=",
        options={**remedy.options, "person": None},
    )


_BLOCK = 64 * BLOCK_WORDS
_SHOWN = 5


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
        # Rows that share their item columns.
        self._segments: list[tuple[tuple[str, ...], list[AnswerStore]]] = []
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
        opener.detect_reading(source, plan, self._reading)
        if self._segments and (plan.person is None) != self._numbered:
            raise refuse_numbering(source.name, not self._numbered)
        self._numbered = plan.person is None
        self._groups = opener.name_groups(self._groups, source, plan)
        items = tuple(source.names[number] for number in plan.items)
        if not self._segments or self._segments[-1][0] != items:
            self._flush()
            self._segments.append((items, []))
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
        self._detected += opener.detect_reading(source, plan, self._reading)

    def _add_answers(self, columns: Sequence[Any], items: tuple[str, ...]) -> None:
        n_rows = len(columns[0])
        if not n_rows:
            return
        scorings = [self._reading.scoring_of(item) for item in items]
        values = [score_array(*pair) for pair in zip(columns, scorings, strict=True)]
        bad = [(int(np.argmax(v == BAD)), j) for j, v in enumerate(values) if v.min() == BAD]
        if bad:
            location = self._rows.place(self._rows.n_rows + min(bad)[0])
            raise refuse_wide(
                location, items, columns, min(bad), self._reading, has_person=not self._numbered
            )
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

    def _flush(self) -> None:
        if self._used:
            cells, (items, blocks) = self._buffer[:, : self._used], self._segments[-1]
            steps = self._reading.steps_of(items)
            is_binary = all(step == 1 for step in steps)
            blocks.append(
                pack.compact(pack.pack_columns(list(cells)))
                if is_binary
                else pack.store_codes(cells.T, steps)
            )
            self._used = 0

    def finish(self) -> RawTable:
        """Return the parts of the table."""
        self._flush()
        self._buffer = np.zeros((0, 0), dtype=np.int8)
        person: Any = np.arange(self._rows.n_rows)
        names: Any = person
        if not self._numbered:
            person, names = self._persons.take_codes(), self._persons.ids()
        groups = {
            name: opener.assign_groups(name, person, codes, names, self._rows.place)
            for name, codes in self._groups.items()
        }
        person_ids = None if self._numbered else names
        if len(self._segments) == 1 and len(names) == len(person):
            ((items, blocks),) = self._segments
            nodes = _join_blocks([block.nodes for block in blocks])
            store = step_store(nodes, self._reading.steps_of(items))
            if self._reading.one_means == "wrong":
                store = flip_answers(nodes)
            return RawTable(items, person_ids, store, groups, self._detected)
        items = tuple(
            dict.fromkeys(name for names_here, _ in self._segments for name in names_here)
        )
        items, store, joined = self._store_long(person, names, items)
        return RawTable(items, person_ids, store, groups, self._detected, joined)

    def _store_long(
        self, person: Vector, names: Any, items: tuple[str, ...]
    ) -> tuple[tuple[str, ...], AnswerStore, str]:
        number = {name: code for code, name in enumerate(items)}
        parts, first = [], 0
        for columns, blocks in self._segments:
            codes = np.array([number[name] for name in columns], dtype=np.int32)
            for block in blocks:
                row, column, code = pack.list_category_answers(block)
                parts.append((first + row, codes[column], code))
                first += block.n_persons
        row, item, code = (np.concatenate(column) for column in zip(*parts, strict=True))
        when = self._order.finish()
        if self._reading.sums:
            item, items = number_samples(person[row], item, items)
        store = store_answers(
            person[row], item, code, names, items, self._reading,
            lambda index: self._rows.place(int(row[index])), None if when is None else when[row],
            self._column,
        )  # fmt: skip
        lost = store.n_answers < len(row) and when is None
        return items, store, self._tell_joined(person, names) if lost else ""

    def _tell_joined(self, person: Vector, names: Any) -> str:
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


def _join_blocks(blocks: list[Nodes]) -> Nodes:
    """Return one store of blocks of 16,384 persons, the last one shorter."""
    n_persons = sum(block.n_persons for block in blocks)
    n_answers = sum(block.n_answers for block in blocks)
    if prefers_planes(n_persons, blocks[0].n_items, n_answers):
        planes = [
            block
            if isinstance(block, BitPlanes)
            else pack.pack_rows(block.rows(0, block.n_persons))
            for block in blocks
        ]
        right = _stack([block.right for block in planes])
        return BitPlanes(right, _stack([block.wrong for block in planes]), n_persons)
    return join_rows([block.take(np.arange(block.n_persons)) for block in blocks])


def _stack(planes: list[UInt64Array]) -> UInt64Array:
    """Put blocks one after the other; the last is filled up with words without persons."""
    missing = 0 if len(planes) == 1 else BLOCK_WORDS - planes[-1].shape[2]
    last = np.pad(planes[-1], ((0, 0), (0, 0), (0, missing)))
    return np.concatenate([*planes[:-1], last])


def read_responses(
    path: str | os.PathLike[str], *, progress: Progress | None = None, **words: Unpack[ReadingWords]
) -> Responses:
    r"""Read answers from CSV, Parquet, JSON lines, workbooks, SPSS, Stata or SAS, long or wide.

    Parameters
    ----------
    path
        A file, a folder or a pattern such as ``"logs/*.csv.gz"``. Several files are read in
        sorted order as one table; a person may continue from one file to the next.
    progress
        Called now and then with the bytes read so far.
    words
        The fields of :class:`discreet.Reading`, each as a keyword (``person="Name"``,
        ``missing=[9, 99]``, ``key="BADC"``), or all of them as ``reading=``.

    Raises
    ------
    BadUsage
        A file or column that was asked for is not there.
    BadResponses
        The file cannot be read as answers; the message says where and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "answers.csv")
    ...     _ = file.write_text("person,item,response\nann,q1,1\nann,q2,0\nbob,q1,NA\n")
    ...     read_responses(file)
    <Responses: 2 persons, 2 items, 2 answers (50% filled)>
    """
    check_words(words)
    reading = state_reading(words)
    LOG.info("reading answers of %s", name_source(path))
    try:
        return log_answers(_read_all(path, reading, progress, is_file=True))
    except BadResponses as refusal:
        raise refer_to_proposal(refusal, path, words) from None


#: Goes through the tables: hands their sources to a function, and returns what it returns.
Read = Callable[[Callable[[Iterator[Source]], Any], Reading], Any]


def read_planned(
    path: str | os.PathLike[str], reading: Reading | None = None, progress: Progress | None = None
) -> Responses:
    """Do as :func:`read_responses` with a reading that was made before, for databases too."""
    from discreet.tables.dataset import is_query, names_database

    is_file = not (is_query(path) or names_database(path))
    return _read_all(path, reading or Reading(), progress, is_file=is_file)


def _read_all(
    path: str | os.PathLike[str], reading: Reading, progress: Progress | None, *, is_file: bool
) -> Responses:
    from discreet.tables.dataset import open_dataset, settle_reading

    reading.refuse_unclear(path)
    if reading.layout == "transposed":
        return read_frame(path, reading)

    def read(take: Callable[[Iterator[Source]], Any], rules: Reading) -> Any:
        if is_file:
            return opener.read_tables(path, take, reading=rules, progress=progress)
        with closing(open_dataset(path, {}, Resources(), rules)) as dataset:
            return take(shard.open() for shard in dataset.shards)

    rules, table = read_steps(settle_reading(path, reading), _take, read)
    if is_file:
        _check_rows(table, rules, read)
    return _name_answers(table, rules, read)


def _check_rows(table: RawTable, reading: Reading, read: Read) -> None:
    """Warn about rows of a small wide file that are hardly persons; a release says nothing."""
    if reading.listed or table.store.n_persons > opener.MOST_BY_HAND:
        return
    sentences = [table.joined] if table.joined else []
    if table.persons is None:
        is_empty = table.store.person_totals()[0] == 0
        is_odd = bool(reading.ignore or reading.group or is_empty.any())
    else:
        is_empty, is_odd = None, any(map(is_label, table.persons.to_pylist()))
    if is_odd:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all else was said when the answers were read
            sentences += read(partial(tell_odd_rows, reading, is_empty), reading)
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=4)


def _name_answers(table: RawTable, reading: Reading, read: Read) -> Responses:
    """Return a table as answers, which remember what the data decided about their reading."""
    choices = None
    if reading.right:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all of it was said when the answers were read
            choices = read(partial(take_choices, reading, table), reading)
    if not reading.listed:
        _warn_alike("Persons", table.persons)
        _warn_alike("Items", make_texts(table.items))
    about = choices, reading.about_values, join_detected([table.detected, reading.detected])
    return Responses(table.items, table.persons, table.store, table.groups, *about)


def _warn_alike(role: str, ids: Any) -> None:
    """Warn of ids that people take for one."""
    n_alike = 0 if ids is None else count_alike(ids)
    if n_alike:
        warnings.warn(
            f"{role} whose ids differ only by a final .0, an invisible sign or the way an accent "
            f"is written count apart, {n_alike:,} of them. Write each id in one way.",
            DiscreetWarning,
            stacklevel=5,
        )


def read_steps(
    reading: Reading, take: Callable[[Reading, Iterator[Source]], RawTable], read: Read
) -> tuple[Reading, RawTable]:
    """Read right and wrong answers; where a value is neither, look whether all of them are steps.

    ``take`` makes the answers of the tables that ``read`` goes through.
    """

    def make(rules: Reading) -> tuple[Reading, RawTable]:
        table = read(partial(take, rules), rules)
        check_named_items(rules, table.items)
        return rules, table

    if reading.may_have_steps and reading.asked.is_said:
        return make(settle_scale(reading, read) or reading)
    try:
        return make(reading)
    except BadAnswer as refusal:
        if not reading.may_have_steps:
            raise
        settled = settle_after(refusal, reading, read)
    return make(settled)


def _take(reading: Reading, sources: Iterator[Source]) -> RawTable:
    """Put the tables together that are all long or all wide."""
    table: LongTable | WideTable | None = None
    first = ""
    for source in sources:
        plan = opener.plan_source(source, reading)
        kind = LongTable if isinstance(plan, LongPlan) else WideTable
        if table is not None and not isinstance(table, kind):
            raise refuse_mixture(source.name, first, plan)
        table, first = table or kind(reading), first or source.name
        before = table.n_rows
        table.add_source(source, plan)  # type: ignore[arg-type]
        if table.n_rows == before:
            opener.refuse_no_rows(source)
    if table is None:
        raise BadResponses("No file was read.")
    if isinstance(table, WideTable):
        return table.finish()
    rows = table.finish()
    if reading.sums:
        item, items = number_samples(rows.person, rows.item, rows.items)
        rows = rows._replace(item=item, items=items)
    coded = rows.person, rows.item, rows.code
    store = store_answers(*coded, rows.persons, rows.items, reading, rows.place, rows.when)
    return RawTable(rows.items, rows.persons, store, rows.groups, rows.detected)


def refuse_numbering(name: str, is_numbered: bool) -> BadResponses:
    """Return the refusal of a table with a person column after others without, or the reverse."""
    return BadResponses(
        f"{name} has {'no' if is_numbered else 'a'} person column, but the files before it have "
        f"{'one' if is_numbered else 'none'}. Give all files a person column, or none."
    )


def refuse_mixture(name: str, first: str, plan: LongPlan | WidePlan) -> BadResponses:
    """Return the refusal of a table that is long where the first is wide, or the other way."""
    ours, theirs = ("long", "wide") if isinstance(plan, LongPlan) else ("wide", "long")
    return BadResponses(
        f"{name} is a {ours} table but {first} is a {theirs} one. Read them one by one, or say "
        "layout='long' or layout='wide' (--layout) if this is a mistake."
    )


def read_frame_words(frame: Any, words: ReadingWords) -> Responses:
    """Return the answers of a frame, read as keywords say."""
    check_words(words)
    return read_frame(frame, decide_reading(frame, words))


def read_frame(frame: Any, reading: Reading) -> Responses:
    """Return the answers of a frame."""
    if reading.layout == "transposed":
        from discreet.tables.dataset import turn_round

        frame, reading = turn_round(frame, reading)
    table = as_arrow(frame)  # once: a stream of batches is used up by it
    source = FrameSource(table)
    if not source.names:
        raise BadResponses("The data frame has no columns, so there are no answers in it.")
    plan = plan_columns(source.names, reading, source.name)
    reading = settle_key(reading, name_items(source.names, plan), source.name)
    reading = opener.settle_key_row(reading, source)
    if reading.rows_aside:
        table = opener.trim_table(table, reading)
        source = FrameSource(table)
    if source.table.num_rows == 0:
        raise BadResponses("The data frame has columns but no rows, so there are no answers in it.")

    def read(take: Callable[[Iterator[Source]], Any], _: Reading) -> Any:
        return take(iter([source]))

    def take_frame(rules: Reading, sources: Iterator[Source]) -> RawTable:
        packed = _pack_whole(source, plan, rules) if isinstance(plan, WidePlan) else None
        return _take(rules, sources) if packed is None else packed

    reading, raw = read_steps(reading, take_frame, read)
    return _name_answers(raw, reading, read)


def _pack_whole(source: FrameSource, plan: WidePlan, reading: Reading) -> RawTable | None:
    """Pack columns as they are; None if something needs more care (text, repeats, groups)."""
    table = source.table
    columns = [table.column(number) for number in plan.items]
    scored = reading.by_item or reading.scoring != ValueScoring()
    if scored or plan.groups or not all(map(_is_plain, columns)):
        return None
    persons = None
    if plan.person is not None:
        try:
            column = plain_column(table.column(plan.person))
            ids = encode_ids(column)
        except BadIds:
            return None
        is_odd = ids.indices.null_count or find_rounded(column, ids) is not None
        if is_odd or len(ids.dictionary) != len(ids):
            return None
        persons = find_numbers(ids.dictionary_decode(), column.type)
    items = tuple(source.names[number] for number in plan.items)
    try:
        planes = pack.pack_columns(columns)
    except BadCell as bad:
        raise refuse_wide(
            source.place(bad.row), items, columns, (bad.row, bad.column), reading,
            has_person=persons is not None,
        ) from None  # fmt: skip
    store = pack.compact(planes)
    return RawTable(
        items, persons, store if reading.one_means == "right" else flip_answers(store), {}
    )


def _is_plain(column: pa.Array) -> bool:
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
