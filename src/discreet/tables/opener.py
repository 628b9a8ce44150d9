"""Open any table as columns in batches.

In: a file, a folder, a pattern or a data frame. Out: what the caller makes of its tables, each a
:class:`Source`. Answers, comparisons, anchors and lists all come through here, so that
compressions, encodings, delimiters and messages are the same for all of them. Databases, servers
and queries are opened by :mod:`discreet.tables.dataset`, files by these functions there too.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.coding.keys import Key, split_key_cell
from discreet.coding.reading import Form, Reading
from discreet.coding.remedies import Detected, make_remedy, refuse_detected
from discreet.coding.values import MISSING_WORDS, spell, write_cell
from discreet.errors import BadResponses, BadUsage, DiscreetWarning
from discreet.tables.cells import label_columns, match_cells
from discreet.tables.columns import (
    LongPlan,
    WidePlan,
    find_role_names,
    plan_columns,
    refuse_answers_as_names,
)
from discreet.tables.formats.jsonl import LOGS, EvaluationSource, JsonLinesSource, name_score
from discreet.tables.ids import IdCodes, plain_column
from discreet.tables.paths import find_files, find_partitions, read_head, sniff, warn_encoding
from discreet.tables.sources import (
    STORED,
    AddedColumns,
    DelimitedSource,
    FrameSource,
    NotUtf8,
    ParquetSource,
    StoredTable,
    as_arrow,
)
from discreet.types import BoolArray, Int64Array, Texts


class Source(Protocol):
    """A file or a data frame."""

    @property
    def name(self) -> str:
        """Name in messages."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Column names in order."""
        ...

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield these columns as Arrow arrays, some rows at a time, in row order."""
        ...

    def place(self, row: int) -> str:
        """Say where a row is, as a person would look for it; rows count from 0."""
        ...

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return what was detected in the data so far to read these columns of answers.

        ``has_ids`` says whether another column holds the ids of persons.
        """
        ...


class RowPlaces:
    """Where the rows of several sources, counted through, are to be found."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._starts: list[int] = []
        self.n_rows = 0

    def begin(self, source: Source) -> None:
        """Say that the rows from here on belong to this source."""
        self._sources.append(source)
        self._starts.append(self.n_rows)

    def number_sources(self) -> Int64Array:
        """Return the number of every row's source."""
        ends = np.array([*self._starts[1:], self.n_rows])
        return np.repeat(np.arange(len(ends)), ends - np.array(self._starts))

    def place(self, row: int) -> str:
        """Return file and line of a row."""
        number = bisect_right(self._starts, row) - 1
        # Sources without rows share their start with the next one, which bisect passes over.
        return self._sources[number].place(row - self._starts[number])


Made = TypeVar("Made")
#: Of files that are not UTF-8, as far as known.
Encodings = dict[Path, str]
Progress = Callable[[int], None]


def read_tables(
    source: object,
    take: Callable[[Iterator[Source]], Made],
    *,
    reading: Reading | None = None,
    form: Form | None = None,
    progress: Progress | None = None,
) -> Made:
    """Return what ``take`` makes of the tables of a source, which are opened one by one.

    Parameters
    ----------
    source
        A path, a folder, a pattern, or a data frame.
    take
        Reads the tables. It is called again where a file that seemed to be UTF-8 was not.
    reading
        How the tables are read as answers; without it JSON lines are refused.
    form
        Sheet, delimiter and header; by default those of ``reading``.
    progress
        Called now and then with the bytes of all files read so far.
    """
    if not isinstance(source, str | PathLike):
        return take(iter([FrameSource(as_arrow(source))]))
    files = find_files(source)
    return retry_encodings(lambda codecs: take(_open_files(files, codecs, reading, form, progress)))


def retry_encodings(read: Callable[[Encodings], Made]) -> Made:
    """Call ``read`` until every file is read in its own encoding.

    Rarely more than once: the first megabytes of a file show its encoding, nearly always.
    """
    encodings: Encodings = {}
    while True:
        try:
            return read(encodings)
        except NotUtf8 as found:
            encodings[found.path] = warn_encoding(found.path)


def _open_files(
    files: Sequence[Path],
    encodings: Encodings,
    reading: Reading | None,
    form: Form | None,
    progress: Progress | None,
) -> Iterator[Source]:
    done, silent = 0, list[str]()
    for file in files:
        shifted = None if progress is None else lambda read, done=done: progress(done + read)
        source = open_table_file(
            file, encodings.get(file), reading=reading, form=form, progress=shifted
        )
        if isinstance(source, JsonLinesSource):
            source.check_alone(len(files))
        if isinstance(source, EvaluationSource):
            silent += source.silent
            source.silent = silent  # and those of the logs behind it
        if isinstance(source, EvaluationSource) and source.is_empty:
            warnings.warn(
                f"{file} holds no samples (a failed run): its model is a person without answers.",
                DiscreetWarning,
                stacklevel=2,
            )
            continue
        yield source
        done += file.stat().st_size
        if progress is not None:
            progress(done)


def open_table_file(
    file: Path,
    encoding: str | None = None,
    *,
    reading: Reading | None = None,
    form: Form | None = None,
    progress: Progress | None = None,
) -> Source:
    """Open a file by what it holds, whatever its name; the keywords are those of `read_tables`."""
    head = read_head(file)
    kind = sniff(file, head)
    table_form = form or (Form() if reading is None else reading.form)
    refuse_form(table_form, kind, file)
    if kind in ("jsonl", *LOGS):
        if reading is None:
            description = "JSON lines" if kind == "jsonl" else "a log of an evaluation"
            raise BadResponses(
                f"{file} looks like {description}, which is read for answers only. Write it as CSV "
                "or Parquet."
            )
        if kind == "jsonl":
            return JsonLinesSource(file, reading, progress)
        return EvaluationSource(file, kind, reading, progress)
    if kind == "parquet":
        return add_partitions(ParquetSource(file, progress), file)
    if kind in STORED:
        return add_partitions(StoredTable(file, kind), file)
    if kind == "winsteps":
        from discreet.tables.formats.labelled import WinstepsSource

        return WinstepsSource(file, progress)
    if kind not in ("text", "workbook"):
        from discreet.tables.formats.labelled import LabelledSource

        return LabelledSource(file, kind, reading, progress)
    source = (
        _open_workbook(file, table_form, progress)
        if kind == "workbook"
        else DelimitedSource(
            file, head, encoding, progress, table_form,
            skips_short=bool(reading and SHORT in reading.rows_aside),
        )
    )  # fmt: skip
    if reading is not None and table_form.header:
        refuse_answers_as_names(source.names, reading.layout, source.name)
    if reading is None:
        return source
    cast("list[str]", source.names)[:] = name_stated(source.names, reading)
    is_whole = bool(reading.listed) or not reading.rows_aside
    return add_partitions(source if is_whole else TrimmedSource(source, reading), file)


def add_partitions(source: Source, file: Path) -> Source:
    """Return a source with the columns that its folders name, as in ``year=2024/part.csv``."""
    added = find_partitions(file)
    return AddedColumns(source, added) if added else source


def name_stated(names: Sequence[str], reading: Reading) -> list[str]:
    """Return names of columns, some by their letter where a reading names them so."""
    stated = {*reading.ignore, *reading.group, *reading.keep, reading.person}
    labels = zip(names, label_columns(names), strict=True)
    return [label if label in stated else name for name, label in labels]


def _open_workbook(file: Path, form: Form, progress: Progress | None) -> Source:
    from discreet.tables.formats.workbook import JoinedSheets, WorkbookSource

    def open_sheet(name: str | None) -> WorkbookSource:
        return WorkbookSource(
            file, name, header=form.header, skip_rows=form.skip_rows,
            header_rows=form.header_rows, progress=progress,
        )  # fmt: skip

    if form.sheet is None or isinstance(form.sheet, str):
        return open_sheet(form.sheet)
    return JoinedSheets([open_sheet(name) for name in form.sheet])


def refuse_form(form: Form, kind: str, file: Path) -> None:
    """Refuse words about a file that mean nothing for its kind: somebody expects another one."""
    if form.sheet is not None and kind != "workbook":
        raise BadUsage(
            f"{file} is no workbook, so it has no sheet '{form.sheet}'. Leave out sheet= (--sheet)."
        )
    if form.delimiter is not None and kind != "text":
        raise BadUsage(
            f"{file} is no text file, so nothing parts its fields. Leave out delimiter= "
            "(--delimiter)."
        )
    if (form.skip_rows or not form.header) and kind not in ("text", "workbook"):
        raise BadUsage(
            f"{file} names its columns by itself. Leave out header=False (--no-header) and "
            "skip_rows= (--skip-rows)."
        )


def read_columns(
    source: object, columns: Sequence[str], subject: str, *, numbers: Sequence[str] = ()
) -> list[list[Any]]:
    """Return these columns of a small table, which may stand in any order and among others.

    Parameters
    ----------
    source
        As for `read_tables`.
    columns
        Their names, in lower case; the table may write them otherwise.
    subject
        What the rows are, for messages.
    numbers
        Those of the columns whose commas part decimals, where nothing else needs commas.
    """

    def take(tables: Iterator[Source]) -> list[list[Any]]:
        values_by_column: list[list[Any]] = [[] for _ in columns]
        for table in tables:
            for batch in table.batches(_find(table, columns, subject)):
                for name, values, part in zip(columns, values_by_column, batch, strict=True):
                    comma = name in numbers and getattr(table, "decimal_comma", False)
                    values += [
                        cell.replace(",", ".")
                        if comma and isinstance(cell, str) and cell.count(",") == 1
                        else cell
                        for cell in part.to_pylist()
                    ]
        return values_by_column

    return read_tables(source, take)


def _find(table: Source, columns: Sequence[str], subject: str) -> list[int]:
    names = [name.lower() for name in table.names]
    wrong = [name for name in columns if names.count(name) != 1]
    if wrong:
        column_names = f"{', '.join(map(repr, columns[:-1]))} and {columns[-1]!r}"
        raise BadUsage(
            f"{table.name} has {'several columns' if wrong[0] in names else 'no column'} "
            f"{wrong[0]!r}: {subject} need the columns {column_names}, each once; found "
            f"{', '.join(table.names) or 'none'}."
        )
    return [names.index(name) for name in columns]


def read_rows(path: object, form: Form | None = None) -> tuple[list[str], list[list[str | None]]]:
    """Return the names and the rows, as text, of a small table."""

    def take(tables: Iterator[Source]) -> tuple[list[str], list[list[str | None]]]:
        rows: list[list[str | None]] = []
        names: list[str] = []
        for table in tables:
            names = list(table.names)
            for batch in table.batches(range(len(names))):
                columns = [[write_cell(cell) for cell in part.to_pylist()] for part in batch]
                rows += [list(row) for row in zip(*columns, strict=True)]
        return names, rows

    return read_tables(path, take, form=form)


def plan_source(source: Source, reading: Reading) -> LongPlan | WidePlan:
    """Find the columns of a source; JSON lines know theirs."""
    if isinstance(source, JsonLinesSource):
        return source.plan
    if isinstance(source, EvaluationSource):
        reading = name_score(reading, source.names)
    if isinstance(source, AddedColumns):  # what a path says is no item of a wide table
        named = {reading.person, reading.item, reading.response, *reading.group, *reading.keep}
        named |= {
            name for names in find_role_names(source.names, reading).values() for name in names
        }
        aside = [name for name in source.added if name not in named]
        reading = replace(reading, ignore=(*reading.ignore, *aside))
    return plan_columns(source.names, reading, source.name)


def refuse_no_rows(source: Source) -> None:
    """Refuse a table that ends below its head, but for logs of tasks that are left out."""
    if not getattr(source, "is_left_out", False):
        raise BadResponses(
            f"{source.name} has column names but no rows below them, so there are no answers to "
            "read. Check that it was written completely."
        )


def detect_reading(
    source: Source, plan: LongPlan | WidePlan, reading: Reading
) -> tuple[Detected, ...]:
    """Return what was detected in a source about how to read its answers; a release refuses it.

    Some of it is known once all rows were read. Whether the number of persons is stated is known
    to the release.
    """
    columns = (plan.response,) if isinstance(plan, LongPlan) else plan.items
    detected = source.detect(columns, has_ids=plan.person is not None)
    if reading.listed:
        refuse_detected(detected, is_counted=True)
    return detected


def name_groups(
    groups: dict[str, IdCodes], source: Source, plan: LongPlan | WidePlan
) -> dict[str, IdCodes]:
    """Return the group columns of a source, which those before it have too."""
    names = [source.names[number] for number in plan.groups]
    if groups and names != list(groups):
        raise BadResponses(
            f"{source.name} has other group columns ({', '.join(names)}) than the files before it "
            f"({', '.join(groups)}). Give all files the same ones."
        )
    return groups or {name: IdCodes() for name in names}


def assign_groups(
    name: str, person: npt.NDArray[Any], codes: IdCodes, persons: Any, locate: Any
) -> Texts:
    """Return each person's value of a group column; two different ones are refused."""
    words, value = codes.names().to_pylist(), codes.take_codes()
    group = np.full(len(persons), -1, dtype=np.int64)
    stated = np.flatnonzero(value >= 0)
    group[person[stated][::-1]] = value[stated][::-1]  # backwards, so that the first row stays
    clash = stated[group[person[stated]] != value[stated]]
    if clash.size:
        row = int(clash[0])
        raise BadResponses(
            f"{locate(row)}, column '{name}': person '{persons[int(person[row])]}' belongs to "
            f"group '{words[value[row]]}' here but to '{words[group[person[row]]]}' before. "
            "A person can be in one group only. Correct the column, or leave it out with "
            f"ignore=['{name}'] (--ignore)."
        ).offering(make_remedy("leave it out:", {"ignore": [name]}))
    groups = np.empty(len(persons), dtype=object)
    groups[:] = [words[code] if code >= 0 else "" for code in group.tolist()]
    return groups


# -- rows that are no persons ----------------------------------------------------------------

#: The words for rows without any entry, and for those with fewer fields than names.
BLANK, SHORT = "blank", "short"
#: Rows up to which a table may be made by hand.
MOST_BY_HAND = 20_000


class TrimmedSource:
    """A source without the rows that a reading drops; see :mod:`discreet.tables.opener`."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self._source, self.name, self.names = source, source.name, source.names
        self.detect = source.detect
        self._rows = reading.rows_aside
        self._kept: list[int] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns without the rows that are dropped."""
        before, every = 0, range(len(self.names))
        for batch in self._source.batches(every):
            keeps = ~match_rows(batch, self._rows, before)
            before += len(keeps)
            yield [_keep(batch[number], keeps) for number in columns]

    def place(self, row: int) -> str:
        """Say where a row is in the whole table."""
        if self._kept is None:
            self._kept, before = [], 0
            for batch in self._source.batches(range(len(self.names))):
                keeps = ~match_rows(batch, self._rows, before)
                self._kept += (before + np.flatnonzero(keeps)).tolist()
                before += len(keeps)
        return self._source.place(self._kept[row])


def _keep(column: pa.Array, keeps: BoolArray) -> Any:
    """Return the kept cells; a dictionary would still hold the ids of rows that are gone."""
    return column if keeps.all() else plain_column(column.filter(pa.array(keeps)))


def match_rows(batch: Sequence[Any], rows: Sequence[int | str], before: int = 0) -> BoolArray:
    """Say which rows of a batch are named by number, by the text of a cell, or as blank.

    Parameters
    ----------
    batch
        All columns.
    rows
        What names them.
    before
        Rows before this batch.
    """
    hits = np.zeros(len(batch[0]), dtype=np.bool_)
    labels = {str(row).casefold() for row in rows if not isinstance(row, int)} - {BLANK, SHORT}
    for row in rows:
        if isinstance(row, int) and before < row <= before + len(hits):
            hits[row - before - 1] = True
    if labels:
        for column in batch:
            hits |= _match(column, labels)
    if BLANK in rows:
        hits |= np.logical_and.reduce([_match(column, {""}) for column in batch])
    return hits


def _match(column: pa.Array, words: set[str]) -> BoolArray:
    """Say which cells hold one of these texts; nulls hold the empty one."""
    return match_cells(column, lambda value: _text(value) in words, nulls="" in words)


def _text(value: object) -> str:
    return "" if value is None else spell(value).casefold()


def settle_key_row(reading: Reading, source: Source) -> Reading:
    """Return a reading with the key that a row of the table holds."""
    row = reading.key_row
    if row is None or reading.right:
        return reading
    plan = plan_columns(source.names, reading, source.name)
    before = 0
    for batch in source.batches(range(len(source.names))):
        hits = np.flatnonzero(match_rows(batch, (row,), before))
        if hits.size and isinstance(plan, WidePlan):
            cells = {source.names[n]: _text(batch[n][int(hits[0])].as_py()) for n in plan.items}
            right = {
                item: split_key_cell(cell)
                for item, cell in cells.items()
                if cell not in MISSING_WORDS
            }
            return replace(reading, key=Key(right))
        before += len(batch[0])
    raise BadResponses(
        f"{source.name} has no row {row!r}, from which key_row= (--key-row) takes the right "
        "answers. Name it by the text of one of its cells, or by its number below the names."
    )


def trim_table(table: Any, reading: Reading) -> Any:
    """Return an Arrow table without the rows that a reading drops."""
    columns = [column.combine_chunks() for column in table.columns]
    return table.filter(pa.array(~match_rows(columns, reading.rows_aside)))
