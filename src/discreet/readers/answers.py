"""From files, data frames and arrays to :class:`discreet.Responses`.

In: a path, a folder, a pattern or a frame, and how to read it. Out: one table: one batch of all
rows (:mod:`discreet.readers.rows`, :mod:`discreet.readers.batches`), with groups and choices. Rows
of wide tables stay packed where each is a person.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Unpack

import numpy as np

from discreet.answers.repeated import number_samples
from discreet.answers.responses import Responses
from discreet.coding.reading import Reading, ReadingWords, check_words
from discreet.coding.remedies import Detected, join_detected
from discreet.counts.planes import AnswerStore
from discreet.errors import LOG, BadResponses, log_answers, name_source
from discreet.readers.batches import Gathered, gather_blocks, join_slabs, number_rows, store_rows
from discreet.readers.choices import take_choices
from discreet.readers.rows import LongRows, Slab, WideRows, open_rows, plan_tables, warn_alike
from discreet.tables import opener
from discreet.tables.columns import name_items, plan_columns
from discreet.tables.ids import IdCodes, make_texts
from discreet.tables.inspection import decide_reading, refer_to_proposal
from discreet.tables.inspection.refusals import BadAnswer, settle_after, settle_scale
from discreet.tables.inspection.rows import tell_odd_rows
from discreet.tables.lists import check_named_items, settle_key, state_reading
from discreet.tables.opener import Progress, Source
from discreet.tables.resources import Resources
from discreet.tables.sources import FrameSource, as_arrow
from discreet.tables.vocabulary import is_label
from discreet.types import Texts, Vector


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


_SHOWN = 5


def take_tables(reading: Reading, sources: Iterator[Source]) -> RawTable:
    """Put the tables together that are all long or all wide."""
    tables = plan_tables(sources, reading)
    first = next(tables, None)
    if first is None:
        raise BadResponses("No file was read.")
    rows = open_rows(lambda: chain([first], tables), first[1], reading, with_groups=True)
    if isinstance(rows, LongRows):
        table = gather_blocks(rows, rows.blocks())
        groups = _assign_groups(rows, table.person, table.ids)
        items, store = _store(table, rows)
        return RawTable(items, table.ids, store, groups, tuple(rows.detected))
    slabs = list(rows.slabs())
    person, ids = _number_persons(rows, slabs)
    groups = _assign_groups(rows, person, ids)
    items, joined = tuple(rows.items.names), ""
    if len({slab.items for slab in slabs}) == 1 and len(ids) == len(person):
        store = join_slabs(slabs)
    else:
        table = gather_blocks(rows, rows.blocks(slabs))
        items, store = _store(table, rows, rows.column)
        if store.n_answers < (table.value >= 0).sum() and reading.order_by is None:
            joined = _tell_joined(rows, person, ids)
    persons = None if rows.is_numbered else ids
    return RawTable(items, persons, store, groups, tuple(rows.detected), joined)


def _number_persons(rows: WideRows, slabs: Sequence[Slab]) -> tuple[Vector, Any]:
    """Return the person of every row, and the ids of persons."""
    if rows.is_numbered:
        return (numbers := np.arange(rows.places.n_rows)), numbers
    persons = IdCodes()
    for slab in slabs:
        for ids in slab.persons:
            persons.add(ids, slab.kind)
    return persons.take_codes(), persons.ids()


def _assign_groups(rows: LongRows | WideRows, person: Vector, ids: Any) -> dict[str, Texts]:
    return {
        name: opener.assign_groups(name, person, codes, ids, rows.places.place)
        for name, codes in rows.groups.items()
    }


def _store(
    table: Gathered, rows: LongRows | WideRows, column: str | None = None
) -> tuple[tuple[str, ...], AnswerStore]:
    """Return the items, which may be more where samples are summed, and the answers."""
    items, numbers = tuple(rows.items.names), table.rows
    if rows.reading.sums:
        table = table.keep(np.flatnonzero(table.value >= 0))
        item, items = number_samples(table.person, table.item, items)
        table = table._replace(item=item)

    def place(row: int) -> str:
        return rows.places.place(row if numbers is None else int(numbers[row]))

    return items, store_rows(table, items, rows.reading, place, column)


def _tell_joined(rows: WideRows, person: Vector, ids: Any) -> str:
    """Tell who stands in several rows of one table."""
    keys = rows.places.number_sources() * len(ids) + person
    _, first, code, times = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    joined = np.flatnonzero(times > 1)
    if rows.column is None or not joined.size:
        return ""
    listed = []
    for key in joined[np.argsort(first[joined])][:_SHOWN].tolist():
        numbers = np.flatnonzero(code == key)[:_SHOWN].tolist()
        places = " and ".join(map(rows.places.place, numbers))
        listed.append(f"'{ids[int(person[first[key]])]}' ({places})")
    return (
        "Persons with one id count as one, and their repeated answers were left out, "
        f"{joined.size} of them: {'; '.join(listed)}. "
        f"{number_rows(rows.column, rows.rules).words}."
    )


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

    rules, table = read_steps(settle_reading(path, reading), take_tables, read)
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
        warn_alike("Persons", table.persons)
        warn_alike("Items", make_texts(table.items))
    about = choices, reading.about_values, join_detected([table.detected, reading.detected])
    return Responses(table.items, table.persons, table.store, table.groups, *about)


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

    rules, raw = read_steps(reading, take_tables, read)
    return _name_answers(raw, rules, read)
