"""``read_responses``: from files to :class:`discreet.Responses`.

In: a path, a folder or a pattern, and how to read it. Out: one table. Every format hands its
batches to the same two tables, long and wide.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from discreet.answers.responses import Responses
from discreet.errors import BadResponses
from discreet.tables.delimited import DelimitedSource, NotUtf8
from discreet.tables.jsonl import JsonLinesSource
from discreet.tables.long import LongTable
from discreet.tables.paths import find_files, read_head, sniff, warn_encoding
from discreet.tables.roles import LongPlan, Reading, WidePlan, make_reading, plan_columns
from discreet.tables.source import Parts
from discreet.tables.values import Codes
from discreet.tables.wide import WideTable

Progress = Callable[[int], None]


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
    files = find_files(path)
    encodings: dict[Path, str] = {}
    while True:
        try:
            return Responses(*_read(files, reading, encodings, progress))
        except NotUtf8 as found:
            # Rare: the first megabytes were UTF-8. Everything is read again, this file otherwise.
            encodings[found.path] = warn_encoding(found.path)


class _Tables:
    """The long and the wide table of one reading, of which only one may be used."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._long: LongTable | None = None
        self._wide: WideTable | None = None
        self._first = ""

    def long(self, name: str) -> LongTable:
        self._refuse_mixture(name, self._wide, "wide", "long")
        self._long = self._long or LongTable(self._reading)
        return self._long

    def wide(self, name: str) -> WideTable:
        self._refuse_mixture(name, self._long, "long", "wide")
        self._wide = self._wide or WideTable(self._reading)
        return self._wide

    def _refuse_mixture(self, name: str, other: object, theirs: str, ours: str) -> None:
        if other is not None:
            raise BadResponses(
                f"{name} is a {ours} table but {self._first} is a {theirs} one. Read them one by "
                "one, or say layout='long' or layout='wide' (--layout) if this is a mistake."
            )
        self._first = self._first or name

    def finish(self) -> Parts:
        table = self._long or self._wide
        if table is None:
            raise BadResponses("No file was read.")
        return table.finish()

    @property
    def n_rows(self) -> int:
        table = self._long or self._wide
        return 0 if table is None else table.n_rows


def _read(
    files: list[Path], reading: Reading, encodings: dict[Path, str], progress: Progress | None
) -> Parts:
    tables = _Tables(reading)
    done = 0
    for file in files:
        before = tables.n_rows
        _read_file(file, tables, reading, encodings.get(file), _shifted(progress, done), len(files))
        if tables.n_rows == before:
            raise BadResponses(
                f"{file} has column names but no rows below them, so there are no answers to read. "
                "Check that the file was written completely."
            )
        done += file.stat().st_size
        if progress is not None:
            progress(done)
    return tables.finish()


def _shifted(progress: Progress | None, done: int) -> Progress | None:
    return None if progress is None else lambda read: progress(done + read)


def _read_file(
    file: Path, tables: _Tables, reading: Reading, encoding: str | None,
    progress: Progress | None, files: int,
) -> None:  # fmt: skip
    head = read_head(file)
    kind = sniff(file, head)
    if kind == "jsonl":
        records = JsonLinesSource(file, reading, progress)
        records.check_alone(files)
        tables.long(records.name).add_source(records, records.plan)
        return
    if kind == "parquet":
        # Only here, because importing Arrow's Parquet reader takes a while.
        from discreet.tables.parquet import ParquetSource

        source: DelimitedSource | ParquetSource = ParquetSource(file, progress)
    else:
        source = DelimitedSource(file, head, encoding, progress)
    plan: LongPlan | WidePlan = plan_columns(source.names, reading, source.name)
    if isinstance(plan, LongPlan):
        tables.long(source.name).add_source(source, plan)
    else:
        tables.wide(source.name).add_source(source, plan)
