"""From files, data frames and arrays to :class:`discreet.Responses`.

In: a path, a folder, a pattern or a frame, and how to read it; or a matrix. Out: one table. Every
format is opened by :mod:`discreet.tables.opener` and hands its batches to the same two tables, long
and wide; plain number and truth-value columns of a wide frame are packed as they are. In a matrix
(NumPy, masked, scipy sparse, nested lists) only the type decides what is missing: NaN, None, a
mask, -1 where the type has a sign, and every entry that a sparse matrix does not hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers.choices import read_choices
from discreet.answers.intake import RawTable, WideTable, pack_table
from discreet.answers.pack import (
    BadCell,
    Repeated,
    compact,
    missing_cells,
    pack_columns,
    pack_rows,
    store_long,
)
from discreet.answers.planes import BitPlanes, SparseRows
from discreet.answers.responses import Responses
from discreet.answers.select import flip_answers
from discreet.errors import BadResponses
from discreet.log import LOG, log_answers, name_source
from discreet.tables.advice import refuse_wide
from discreet.tables.ids import BadIds, encode_ids, find_numbers, plain_column
from discreet.tables.key import KeyLike, check_named_items, settle_key
from discreet.tables.opener import LongTable, Progress, Source, plan_source, read_tables
from discreet.tables.roles import (
    LongPlan,
    Reading,
    WidePlan,
    make_reading,
    name_items,
    plan_columns,
)
from discreet.tables.sources import FrameSource, as_arrow
from discreet.tables.values import BAD, MISSING, Codes, Scoring, drop_codes, score_value
from discreet.types import Layout, OneMeans, Repeats


def read_responses(
    path: str | os.PathLike[str],
    *,
    layout: Layout | None = None,
    person: str | None = None,
    item: str | None = None,
    response: str | None = None,
    ignore: str | Sequence[str] = (),
    group: str | Sequence[str] | None = None,
    repeats: Repeats = "error",
    one_means: OneMeans = "right",
    at_least: float | None = None,
    missing: Codes = (),
    key: KeyLike = None,
    sheet: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    order_by: str | None = None,
    progress: Progress | None = None,
) -> Responses:
    r"""Read answers from CSV, Parquet, JSON lines, workbooks, SPSS, Stata or SAS, long or wide.

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
        What to do when a person answered an item more than once: "error", "first" or "last", in
        the order of the rows or of ``order_by``.
    one_means
        "right", or "wrong" for files where 1 marks a mistake.
    at_least
        Numbers from here on become 1, smaller ones 0. Without it only 0, 1, true and false
        are accepted.
    missing
        Codes that stand for a missing answer, such as 9 or ``[9, 99]``; compared as text, so
        that 9, 9.0 and "9" are one. By column: ``{"Q1": 9, "Q2": [98, 99]}``, with "*" for all
        the others.
    key
        Which answers are right, where the table holds what was chosen:
        ``{"Q1": "B", "Q2": ["A", "C"]}``, the path of a table with the columns item and answer,
        or letters in the order of the columns, ``"BADC"``. Items that the key does not name must
        be scored already.
    sheet
        The sheet of a workbook; by default the only one that holds data.
    delimiter
        What parts the fields of a text file; by default it is found out.
    header
        False for files whose first row holds no names: columns are then called "1", "2", ...
    order_by
        The column of numbers or dates by which a repeated answer is the first or the last;
        answers of one time are in the order of their rows.
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
        layout, person, item, response, ignore, group, repeats, one_means, at_least, missing,
        key, sheet, delimiter, header, order_by,
    )  # fmt: skip
    LOG.info("reading answers of %s", name_source(path))
    return log_answers(read_planned(path, reading, progress))


def read_planned(
    path: str | os.PathLike[str], reading: Reading | None = None, progress: Progress | None = None
) -> Responses:
    """Do as :func:`read_responses`, with a reading that was made before."""
    said = reading or Reading()
    if said.key_in_order:
        from discreet.tables.dataset import settle_reading

        said = settle_reading(path, said)
    table = read_tables(path, partial(_take, said), reading=said, progress=progress)
    check_named_items(said, table.items)
    return Responses(*table, choices=read_choices(path, said, table))


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
    whole = as_arrow(frame)  # once: a stream of batches is used up by it
    source = FrameSource(whole)
    if not source.names:
        raise BadResponses("The data frame has no columns, so there are no answers in it.")
    plan = plan_columns(source.names, reading, source.name)
    reading = settle_key(reading, name_items(source.names, plan), source.name)
    if source.table.num_rows == 0:
        raise BadResponses("The data frame has columns but no rows, so there are no answers in it.")
    made = _take_frame(source, plan, reading)
    check_named_items(reading, made.items)
    return Responses(*made, choices=read_choices(whole, reading, made))


def _take_frame(source: FrameSource, plan: LongPlan | WidePlan, reading: Reading) -> RawTable:
    if isinstance(plan, WidePlan) and (packed := _pack_whole(source, plan, reading)) is not None:
        return packed
    return _take(reading, iter([source]))


def _pack_whole(source: FrameSource, plan: WidePlan, reading: Reading) -> RawTable | None:
    """Pack columns as they are; None if something needs more care (text, repeats, groups)."""
    table = source.table
    columns = [table.column(number) for number in plan.items]
    scored = reading.by_item or reading.scoring != Scoring()
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
            source.place(bad.row), items, columns, (bad.column, bad.value), reading,
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


Store = BitPlanes | SparseRows

_PACKED_AS_THEY_ARE = frozenset({"bool", "int8", "uint8", "int64", "float32", "float64"})


def store_array(X: Any, items: tuple[str, ...] | None, missing: Codes = ()) -> Store:
    """Return the answers of a matrix in the form that takes less memory."""
    if missing not in ((), [], {}):
        X = drop_codes(X if hasattr(X, "tocoo") else _check_shape(np.ma.asarray(X)), items, missing)
    if hasattr(X, "tocoo"):
        return _store_sparse(X.tocoo(), items)
    try:
        return compact(pack_rows(_as_matrix(X)))
    except BadCell as bad:
        raise BadResponses(explain_cell(bad.row, bad.column, bad.value, items)) from None


def _as_matrix(X: Any) -> npt.NDArray[Any]:
    """Return a 2-d array of a type that can be packed."""
    if isinstance(X, np.ma.MaskedArray):
        return _as_int8(_check_shape(X.data), np.ma.getmaskarray(X))
    try:
        cells = _check_shape(np.asarray(X))
    except ValueError as error:
        if isinstance(error, BadResponses):
            raise
        raise BadResponses(
            "The rows of the answers differ in length, so it is not clear which answer belongs "
            "to which item. Give every person one entry per item, None where there is no answer."
        ) from None
    if cells.dtype.name in _PACKED_AS_THEY_ARE:
        return cells
    return _as_int8(cells, None)


def _check_shape(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise BadResponses(
            "Answers must be a matrix with one row per person and one column per item; found "
            f"an array of shape {cells.shape}."
        )
    return cells


def _as_int8(cells: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
    """Return 1, 0 and -1; what is none of these stays visible as BAD for the caller."""
    if cells.dtype.kind in "OUST":
        codes = _score_objects(cells, mask)
    elif cells.dtype.kind in "buif":
        codes = _score_numbers(cells, mask)
    else:
        raise BadResponses(
            f"Answers must be numbers or truth values; found an array of type {cells.dtype}. "
            "Give 0, 1 and NaN, or an array of booleans."
        )
    if (codes == BAD).any():
        row, column = (int(index) for index in np.argwhere(codes == BAD)[0])
        raise BadCell(row, column, cells[row, column])
    return codes


def _score_objects(
    cells: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.int8]:
    codes = np.empty(cells.shape, dtype=np.int8)
    for row, values in enumerate(cells):
        codes[row] = [_score_object(value) for value in values.tolist()]
    return codes if mask is None else np.where(mask, np.int8(MISSING), codes)


def _score_object(value: object) -> int:
    """Return the code of one entry; a number -1 is missing, as in arrays of numbers."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return MISSING if is_number and value == MISSING else score_value(value, Scoring())


def _score_numbers(
    cells: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.int8]:
    codes = np.full(cells.shape, BAD, dtype=np.int8)
    codes[cells == 1] = 1
    codes[cells == 0] = 0
    codes[missing_cells(cells) if mask is None else mask | missing_cells(cells)] = MISSING
    return codes


def _store_sparse(matrix: Any, items: tuple[str, ...] | None) -> Store:
    n_persons, n_items = matrix.shape
    codes = _score_numbers(np.asarray(matrix.data), None)
    if (codes == BAD).any():
        first = int(np.flatnonzero(codes == BAD)[0])
        value = matrix.data[first].item()
        row, column = int(matrix.row[first]), int(matrix.col[first])
        raise BadResponses(explain_cell(row, column, value, items))
    held = np.flatnonzero(codes >= 0)
    person, item = matrix.row[held].astype(np.int64), matrix.col[held].astype(np.int64)
    try:
        return store_long(person, item, codes[held] == 1, n_persons, n_items)
    except Repeated as repeated:
        row, column = int(person[repeated.first_index]), int(item[repeated.first_index])
        raise BadResponses(
            f"The sparse matrix holds two entries at row {row}, {_column(column, items)}. "
            "One answer per person and item is needed; decide between them before building "
            "the matrix (sum_duplicates would add them up)."
        ) from None


def _column(column: int, items: tuple[str, ...] | None) -> str:
    return f"column {column}" if items is None else f"column {column} ('{items[column]}')"


def explain_cell(row: int, column: int, value: object, items: tuple[str, ...] | None) -> str:
    """Say what is wrong with a cell that is neither right, wrong nor missing."""
    shown = value.item() if isinstance(value, np.generic) else value
    return (
        f"Row {row}, {_column(column, items)} (counted from 0): found {shown!r} where an answer "
        "should be. Answers must be 0, 1, true or false, or missing (NaN, None, masked, or -1 in "
        "arrays of signed numbers), because the model knows only right and wrong. Where a "
        "code stands for a missing answer, name it with missing=code. "
        "Where answers are scores, compare them: np.where(np.isnan(X), np.nan, X >= threshold)."
    )
