"""``read_responses``: from files and data frames to :class:`discreet.Responses`.

In: a path, a folder, a pattern or a frame, and how to read it. Out: one table. Every format is
opened by :mod:`discreet.tables.opener` and hands its batches to the same two tables, long and wide;
plain number and truth-value columns of a wide frame are packed as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers.intake import RawTable, WideTable, pack_table
from discreet.answers.pack import BadCell, compact, pack_columns
from discreet.answers.responses import Responses
from discreet.answers.select import flip_answers
from discreet.errors import BadResponses
from discreet.tables.arrow import FrameSource, as_arrow
from discreet.tables.ids import BadIds, encode_ids, plain_column
from discreet.tables.opener import LongTable, Progress, Source, plan_source, read_tables
from discreet.tables.roles import LongPlan, Reading, WidePlan, make_reading, plan_columns
from discreet.tables.values import Codes, Scoring, explain_bad_answer


def read_responses(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    person: str | None = None,
    item: str | None = None,
    response: str | None = None,
    ignore: str | Sequence[str] = (),
    group: str | Sequence[str] | None = None,
    repeats: str = "error",
    one_means: str = "right",
    at_least: float | None = None,
    missing: Codes = (),
    progress: Progress | None = None,
) -> Responses:
    r"""Read answers from CSV, TSV, Parquet or JSON lines, gzipped or not, long or wide.

    Parameters
    ----------
    path
        A file, a folder or a pattern such as ``"logs/*.csv.gz"``. Several files are read in
        sorted order as one table; a person may continue from one file to the next.
    layout
        "long" (one row per answer) or "wide" (one row per person, one column per item).
        By default the column names decide; where they leave a doubt, an error says so.
    person, item, response
        Column names of a long table; ``person`` also of a wide one.
    ignore
        Columns to leave out.
    group
        Columns that describe persons; they become ``groups`` and are not items.
    repeats
        What to do when a person answered an item more than once: "error", "first" or "last".
    one_means
        "right", or "wrong" for files where 1 marks a mistake.
    at_least
        Numbers from here on become 1, smaller ones 0. Without it only 0, 1, true and false
        are accepted.
    missing
        Codes that stand for a missing answer, such as 9 or ``[9, 99]``; compared as text, so
        that 9, 9.0 and "9" are one.
    progress
        Called now and then with the bytes read so far.

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
    reading = make_reading(
        layout, person, item, response, ignore, group, repeats, one_means, at_least, missing
    )
    return read_planned(path, reading, progress)


def read_planned(
    path: str | os.PathLike[str], reading: Reading | None = None, progress: Progress | None = None
) -> Responses:
    """Do as :func:`read_responses`, with a reading that was made before."""
    said = reading or Reading()
    return Responses(*read_tables(path, partial(_take, said), reading=said, progress=progress))


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


def read_frame(frame: Any, reading: Reading) -> RawTable:
    """Return the answers of a long or wide frame."""
    source = FrameSource(as_arrow(frame))
    if not source.names:
        raise BadResponses("The data frame has no columns, so there are no answers in it.")
    plan = plan_columns(source.names, reading, source.name)
    if source.table.num_rows == 0:
        raise BadResponses("The data frame has columns but no rows, so there are no answers in it.")
    if isinstance(plan, WidePlan) and (packed := _pack_whole(source, plan, reading)) is not None:
        return packed
    return _take(reading, iter([source]))


def _pack_whole(source: FrameSource, plan: WidePlan, reading: Reading) -> RawTable | None:
    """Pack columns as they are; None if something needs more care (text, repeats, groups)."""
    table = source.table
    columns = [table.column(number) for number in plan.items]
    if reading.scoring != Scoring() or plan.groups or not all(map(_is_plain, columns)):
        return None
    persons = None
    if plan.person is not None:
        try:
            ids = encode_ids(plain_column(table.column(plan.person)))
        except BadIds:
            return None
        if ids.indices.null_count or len(ids.dictionary) != len(ids):
            return None
        persons = ids.dictionary_decode()
    try:
        planes = pack_columns(columns)
    except BadCell as bad:
        name = source.names[plan.items[bad.column]]
        where = source.place(bad.row)
        message = explain_bad_answer(where, name, bad.value, reading.scoring, wide=True)
        raise BadResponses(message) from None
    store = compact(planes)
    items = tuple(source.names[number] for number in plan.items)
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
