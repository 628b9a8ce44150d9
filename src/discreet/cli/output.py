"""What a command shows: tables and JSON on standard output, the rest on standard error.

On a terminal tables are drawn by Rich and cut at a sensible length; through a pipe or into a
file they are plain aligned text with every row. Progress appears on a terminal only, and only
for work that lasts longer than a second.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from discreet.errors import hide_passwords

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from discreet.tables.resources import Progress as Rows


TERMINAL_ROWS = 50
"""Rows of a table on a terminal: more scroll away before anyone can read them."""

PATIENCE_SECONDS = 1.0
"""Work shorter than this shows no progress."""


@dataclass(frozen=True)
class Column:
    """One column of a table: its title and how its values are written."""

    title: str
    values: Sequence[Any]
    digits: int | None = None

    @property
    def is_text(self) -> bool:
        """Whether the values are words (aligned left) rather than numbers."""
        return any(isinstance(value, str) for value in self.values)

    def cells(self, limit: int | None = None) -> list[str]:
        """Return the first values as text."""
        return [self._write(value) for value in self.values[:limit]]

    def _write(self, value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "-"
        if self.digits is not None:
            return f"{value:.{self.digits}f}"
        if isinstance(value, int):
            return f"{value:,}"
        # A line break or a tab in a name would tear the table apart.
        return "".join(sign if sign.isprintable() else " " for sign in str(value))


def say(text: str = "") -> None:
    """Print a line of the result."""
    print(text)


def note(text: str, *, quiet: bool = False) -> None:
    """Print a remark on standard error."""
    if not quiet:
        print(hide_passwords(text), file=sys.stderr)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a Python warning as one sentence, without the place in the code it came from."""
    del category, filename, lineno, file, line
    note(f"Warning: {message}")


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document; numbers that do not exist become null."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    print(json_text(document, ascii_only=encoding != "utf8"))


def json_text(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return a JSON document with one line for each key and for each entry of a list.

    The entries themselves stay on one line: easy to read, and several times faster than the
    indentation of the standard library, which is pure Python.
    """

    def dump(value: Any) -> str:
        try:
            return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
        except ValueError:
            return json.dumps(without_nan(value), ensure_ascii=ascii_only, allow_nan=False)

    def lines(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n    " + ",\n    ".join(map(dump, value)) + "\n  ]"
        return dump(value)

    body = ",\n".join(f"  {dump(key)}: {lines(value)}" for key, value in document.items())
    return f"{{\n{body}\n}}"


def without_nan(value: Any) -> Any:
    """Return a copy in which numbers that are not finite are ``None``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return value


def print_table(columns: Sequence[Column]) -> None:
    """Print a table: drawn on a terminal, plain and complete everywhere else."""
    if sys.stdout.isatty():
        _draw_table(columns)
    else:
        _write_table(columns)


NUMBERS = ("difficulty", "strength", "ability", "se", "lower", "upper", "drift", "difference")
DIGITS = dict.fromkeys((*NUMBERS, "anchor", "displacement"), 3) | {"z": 2}
DIGITS |= dict.fromkeys(("p_value", "p_adjusted"), 4)
"""Digits of the columns that are no whole numbers."""
TITLES = {"lower": "95% from", "upper": "to", "focal": "group", "reason": "why not"}
TITLES |= {"p_value": "p", "p_adjusted": "adjusted", "ets": "ETS"}
"""What columns are called on paper, where they have another name in files."""


def print_columns(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> None:
    """Print these columns of a result in this order; those that it does not have are left out."""
    print_table(
        [
            Column(TITLES.get(name, name), columns[name], DIGITS.get(name))
            for name in names
            if name in columns
        ]
    )


def list_rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return columns as rows, as JSON documents have them."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _write_table(columns: Sequence[Column]) -> None:
    texts = []
    for column in columns:
        cells = [column.title, *column.cells()]
        width = max(len(cell) for cell in cells)
        align = str.ljust if column.is_text else str.rjust
        texts.append([align(cell, width) for cell in cells])
    lines = ("  ".join(row).rstrip() for row in zip(*texts, strict=True))
    sys.stdout.write("\n".join(lines) + "\n")


def _draw_table(columns: Sequence[Column]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = len(columns[0].values)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="left" if column.is_text else "right",
            overflow="fold",
            no_wrap=not column.is_text,
        )
    cells = [column.cells(TERMINAL_ROWS) for column in columns]
    for row in zip(*cells, strict=True):
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
    if rows > TERMINAL_ROWS:
        say(
            f"... and {rows - TERMINAL_ROWS:,} more of {rows:,} rows. "
            "All of them: add `| less`, --json or --out DIR."
        )


def _wants_progress(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty()


@contextmanager
def working(label: str, *, quiet: bool = False) -> Iterator[None]:
    """Show that something is going on, once it has gone on for a second."""
    if not _wants_progress(quiet):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_spin, args=(label, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _spin(label: str, done: threading.Event) -> None:
    if done.wait(PATIENCE_SECONDS):
        return
    from rich.console import Console

    with Console(stderr=True).status(label):
        done.wait()


@contextmanager
def counting_rows(label: str, *, quiet: bool = False) -> Iterator[Callable[[Rows], None] | None]:
    """Yield a callback that shows rows, rate and time left on a terminal; None elsewhere."""
    if not _wants_progress(quiet):
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(label) as status:
        yield lambda now: status.update(_describe_rows(label, now))


def _describe_rows(label: str, now: Rows) -> str:
    if now.rows >= now.total:
        return label  # what follows is another pass, or no reading at all
    left = "" if now.seconds_left == float("inf") else f", about {now.seconds_left:,.0f} s left"
    return f"{label}: {now.rows:,} of {now.total:,} rows, {now.rate:,.0f} a second{left}"


class ReadingBar:
    """A bar for bytes read so far; a context manager whose value is called with that number."""

    def __init__(self, label: str, total: int | None, *, quiet: bool = False) -> None:
        self._label = label
        self._total = total
        self._wanted = _wants_progress(quiet)
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int) -> None:
        """Move the bar to ``done`` bytes."""
        if not self._wanted or time.monotonic() - self._started < PATIENCE_SECONDS:
            return
        if self._bar is None:
            self._start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.start()
