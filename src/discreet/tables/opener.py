"""The one opener: from whatever is tabular to columns in batches.

In: a file, a folder, a pattern or a data frame. Out: what the caller makes of its tables, each a
:class:`~discreet.tables.opener.Source`. Answers, comparisons, anchors and lists all come through
here, so that compressions, encodings, delimiters and messages are the same for all of them.
Databases, servers and queries are opened by :mod:`discreet.tables.dataset`, files by these
functions there too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

from discreet.errors import BadResponses, BadUsage
from discreet.tables.delimited import DelimitedSource, NotUtf8
from discreet.tables.jsonl import JsonLinesSource
from discreet.tables.paths import find_files, read_head, read_text, sniff, warn_encoding
from discreet.tables.roles import Reading


class Source(Protocol):
    """A file or a data frame."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Column names in order."""
        ...

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield these columns as Arrow arrays, some rows at a time, in row order."""
        ...

    def place(self, row: int) -> str:
        """Say where a row is, as a person would look for it; rows count from 0."""
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

    def place(self, row: int) -> str:
        """Return file and line of a row."""
        number = bisect_right(self._starts, row) - 1
        # Sources without rows share their start with the next one, which bisect passes over.
        return self._sources[number].place(row - self._starts[number])


Made = TypeVar("Made")
Encodings = dict[Path, str]
"""Of files that are not UTF-8, as far as known."""
Progress = Callable[[int], None]


def read_tables(
    source: Any,
    take: Callable[[Iterator[Source]], Made],
    *,
    reading: Reading | None = None,
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
        How records of JSON lines are read as answers; without it they are refused.
    progress
        Called now and then with the bytes of all files read so far.
    """
    if not isinstance(source, str | PathLike):
        from discreet.tables.frames import FrameSource, as_arrow

        return take(iter([FrameSource(as_arrow(source))]))
    files = find_files(source)
    return retry_encodings(lambda known: take(_open_files(files, known, reading, progress)))


def retry_encodings(read: Callable[[Encodings], Made]) -> Made:
    """Call ``read`` until every file is read in its own encoding.

    Rarely more than once: the first megabytes of a file show its encoding, nearly always.
    """
    known: Encodings = {}
    while True:
        try:
            return read(known)
        except NotUtf8 as found:
            known[found.path] = warn_encoding(found.path)


def _open_files(
    files: Sequence[Path], known: Encodings, reading: Reading | None, progress: Progress | None
) -> Iterator[Source]:
    done = 0
    for file in files:
        shifted = None if progress is None else lambda read, done=done: progress(done + read)
        source = open_file(file, known.get(file), reading=reading, progress=shifted)
        if isinstance(source, JsonLinesSource):
            source.check_alone(len(files))
        yield source
        done += file.stat().st_size
        if progress is not None:
            progress(done)


def open_file(
    file: Path,
    encoding: str | None = None,
    *,
    reading: Reading | None = None,
    progress: Progress | None = None,
) -> Source:
    """Open a file by what it holds, whatever its name; the keywords are those of `read_tables`."""
    head = read_head(file)
    kind = sniff(file, head)
    if kind == "jsonl":
        if reading is None:
            raise BadResponses(
                f"{file} looks like JSON lines, which is read for answers only. Write it as CSV or "
                "Parquet."
            )
        return JsonLinesSource(file, reading, progress)
    if kind == "parquet":
        # Only here, because importing Arrow's Parquet reader takes a while.
        from discreet.tables.parquet import ParquetSource

        return ParquetSource(file, progress)
    return DelimitedSource(file, head, encoding, progress)


def read_columns(source: Any, columns: Sequence[str], what: str) -> list[list[Any]]:
    """Return these columns of a small table, which may stand in any order and among others.

    Parameters
    ----------
    source
        As for `read_tables`.
    columns
        Their names, in lower case; the table may write them otherwise.
    what
        What the rows are, for messages.
    """

    def take(tables: Iterator[Source]) -> list[list[Any]]:
        whole: list[list[Any]] = [[] for _ in columns]
        for table in tables:
            for batch in table.batches(_find(table, columns, what)):
                for values, part in zip(whole, batch, strict=True):
                    values += part.to_pylist()
        return whole

    return read_tables(source, take)


def _find(table: Source, columns: Sequence[str], what: str) -> list[int]:
    names = [name.lower() for name in table.names]
    wrong = [name for name in columns if names.count(name) != 1]
    if wrong:
        wanted = f"{', '.join(map(repr, columns[:-1]))} and {columns[-1]!r}"
        raise BadUsage(
            f"{table.name} has {'several columns' if wrong[0] in names else 'no column'} "
            f"{wrong[0]!r}: {what} need the columns {wanted}, each once; found "
            f"{', '.join(table.names) or 'none'}."
        )
    return [names.index(name) for name in columns]


def read_list(path: Path) -> list[str]:
    """Return the names in a file with one item per line; empty lines do not count."""
    first_seen: dict[str, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        name = line.strip()
        if name in first_seen:
            raise BadUsage(
                f"{path}, line {number}: item '{name}' is on the list already, in line "
                f"{first_seen[name]}; each item has one line."
            )
        if name:
            first_seen[name] = number
    if not first_seen:
        raise BadUsage(f"{path} names no item; it must have one item per line.")
    return list(first_seen)
