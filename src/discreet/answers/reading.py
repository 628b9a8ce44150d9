"""From files, data frames and arrays to :class:`discreet.Responses`.

In: a path, a folder, a pattern or a frame, and how to read it. Out: one table. Every
format is opened by :mod:`discreet.tables.opener` and hands its batches to the same two tables, long
and wide; plain number and truth-value columns of a wide frame are packed as they are.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers.choices import Choices, read_choices
from discreet.answers.intake import RawTable, WideTable, pack_table
from discreet.answers.pack import (
    BadCell,
    compact,
    pack_columns,
)
from discreet.answers.responses import Responses
from discreet.answers.select import flip_answers
from discreet.errors import BadResponses
from discreet.log import LOG, log_answers, name_source
from discreet.tables.columns import LongPlan, WidePlan, name_items, plan_columns
from discreet.tables.ids import BadIds, encode_ids, find_numbers, plain_column
from discreet.tables.inspection import refer_to_proposal
from discreet.tables.inspection.refusals import BadAnswer, refuse_wide
from discreet.tables.lists import check_named_items, settle_key
from discreet.tables.opener import LongTable, Progress, Source, plan_source, read_tables
from discreet.tables.reading import Reading, ReadingWords, check_words, join_words
from discreet.tables.remedies import join_detected
from discreet.tables.rows import MOST_BY_HAND, settle_key_row, tell_odd_rows, trim_table
from discreet.tables.sources import FrameSource, as_arrow
from discreet.tables.tally import settle_after, settle_scale
from discreet.tables.values import ValueScoring
from discreet.tables.vocabulary import is_label


def read_responses(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **words: Unpack[ReadingWords],
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
    reading = join_words(words)
    LOG.info("reading answers of %s", name_source(path))
    try:
        return log_answers(read_planned(path, reading, progress))
    except BadResponses as refusal:
        raise refer_to_proposal(refusal, path, words) from None


def read_planned(
    path: str | os.PathLike[str], reading: Reading | None = None, progress: Progress | None = None
) -> Responses:
    """Do as :func:`read_responses`, with a reading that was made before."""
    rules = reading or Reading()
    if rules.right_in_order or rules.key_row is not None:
        from discreet.tables.dataset import settle_reading

        rules = settle_reading(path, rules)

    def read(take: Any, reading: Reading) -> Any:
        return read_tables(path, take, reading=reading, progress=progress)

    rules, table = read_steps(rules, lambda reading: read(partial(_take, reading), reading), read)
    check_named_items(rules, table.items)
    _check_rows(table, rules, read)
    return name_answers(table, rules, read_choices(path, rules, table))


def _check_rows(table: RawTable, reading: Reading, read: Callable[[Any, Reading], Any]) -> None:
    """Warn about rows of a small wide file that are hardly persons; a release says nothing."""
    if reading.listed or table.store.n_persons > MOST_BY_HAND:
        return
    sentences = [table.joined] if table.joined else []
    is_empty = table.store.person_totals()[0] == 0 if table.persons is None else None
    if is_empty is None:
        is_odd = any(map(is_label, table.persons.to_pylist()))
    else:
        is_odd = bool(reading.ignore or reading.group or is_empty.any())
    if is_odd:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all else was said when the answers were read
            sentences += read(partial(tell_odd_rows, reading, is_empty), reading)
    for sentence in sentences:
        warnings.warn(sentence, UserWarning, stacklevel=4)


def name_answers(table: RawTable, reading: Reading, choices: Choices | None) -> Responses:
    """Return a table as answers, which remember what the data decided about their reading."""
    about = choices, reading.lowest_category, join_detected([table.detected, reading.detected])
    return Responses(table.items, table.persons, table.store, table.groups, *about)


def read_steps(
    reading: Reading, make: Callable[[Reading], RawTable], read: Callable[[Any, Reading], Any]
) -> tuple[Reading, RawTable]:
    """Read right and wrong answers; where a value is neither, look whether all of them are steps.

    Parameters
    ----------
    reading
        What the user said.
    make
        Reads the answers.
    read
        Goes through the tables; see :func:`discreet.tables.tally.settle_scale`.
    """
    if not reading.may_have_steps:
        return reading, make(reading)
    if not reading.asked.is_said:
        try:
            return reading, make(reading)
        except BadAnswer as refusal:
            settled = settle_after(refusal, reading, read)
        return settled, make(settled)
    settled = settle_scale(reading, read) or reading
    return settled, make(settled)


def _take(reading: Reading, sources: Iterator[Source]) -> RawTable:
    """Put the tables together that are all long or all wide."""
    table: LongTable | WideTable | None = None
    first = ""
    for source in sources:
        plan = plan_source(source, reading)
        kind = LongTable if isinstance(plan, LongPlan) else WideTable
        if table is not None and not isinstance(table, kind):
            ours, theirs = ("long", "wide") if kind is LongTable else ("wide", "long")
            raise BadResponses(
                f"{source.name} is a {ours} table but {first} is a {theirs} one. Read them one by "
                "one, or say layout='long' or layout='wide' (--layout) if this is a mistake."
            )
        table, first = table or kind(reading), first or source.name
        before = table.n_rows
        table.add_source(source, plan)  # type: ignore[arg-type]
        if table.n_rows == before:
            raise BadResponses(
                f"{source.name} has column names but no rows below them, so there are no answers "
                "to read. Check that the file was written completely."
            )
    if table is None:
        raise BadResponses("No file was read.")
    return pack_table(table, reading)


def read_frame(frame: Any, reading: Reading) -> Responses:
    """Return the answers of a long or wide frame."""
    table = as_arrow(frame)  # once: a stream of batches is used up by it
    source = FrameSource(table)
    if not source.names:
        raise BadResponses("The data frame has no columns, so there are no answers in it.")
    plan = plan_columns(source.names, reading, source.name)
    reading = settle_key(reading, name_items(source.names, plan), source.name)
    reading = settle_key_row(reading, source)
    if reading.rows_aside:
        table = trim_table(table, reading)
        source = FrameSource(table)
    if source.table.num_rows == 0:
        raise BadResponses("The data frame has columns but no rows, so there are no answers in it.")
    reading, raw = read_steps(
        reading,
        lambda rules: _take_frame(source, plan, rules),
        lambda take, rules: take(iter([source])),  # noqa: ARG005
    )
    check_named_items(reading, raw.items)
    return name_answers(raw, reading, read_choices(table, reading, raw))


def _take_frame(source: FrameSource, plan: LongPlan | WidePlan, reading: Reading) -> RawTable:
    if isinstance(plan, WidePlan) and (packed := _pack_whole(source, plan, reading)) is not None:
        return packed
    return _take(reading, iter([source]))


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
        if ids.indices.null_count or len(ids.dictionary) != len(ids):
            return None
        persons = find_numbers(ids.dictionary_decode(), column.type)
    items = tuple(source.names[number] for number in plan.items)
    try:
        planes = pack_columns(columns)
    except BadCell as bad:
        raise refuse_wide(
            source.place(bad.row), items, columns, (bad.row, bad.column), reading,
            has_person=persons is not None,
        ) from None  # fmt: skip
    store = compact(planes)
    return RawTable(
        items, persons, flip_answers(store) if reading.one_means == "wrong" else store, {}
    )


def _is_plain(column: Any) -> bool:
    """Say whether a column can be packed as it is.

    Packing takes -1 for missing, as arrays have it; in tables -1 is refused, as in files.
    """
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return True
    if not (pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)):
        return False
    if not pa.types.is_signed_integer(kind) and not pa.types.is_floating(kind):
        return True
    return not any(_has_negative(chunk) for chunk in column.chunks)


def _has_negative(chunk: Any) -> bool:
    if chunk.null_count:  # what lies under a null may be anything
        low = pc.min_max(chunk)["min"].as_py()
        return low is not None and low < 0
    values = chunk.to_numpy(zero_copy_only=True)
    # The sign bit of the smallest value; NaN compares as neither.
    return bool(values.size and np.fmin.reduce(values) < 0)
