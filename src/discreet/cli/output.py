"""What a command shows and writes: results on standard output, the rest on standard error.

On a terminal tables are drawn by Rich and cut at a sensible length; through a pipe or into a
file they are plain aligned text with every row. Progress appears on a terminal only, and only
for work that lasts longer than a second. Where files could not be written is found out first.

Names, titles and paths come from files of others. Whatever is printed passes through
:func:`~discreet.errors.escape_controls` here, so that no file can steer the terminal.

From an exception to what the user reads and the exit code the shell gets:

::

    0    done                     5    the answers do not determine what was asked
    1    anything else            129  the terminal was closed (SIGHUP)
    2    wrong usage, no file     130  interrupted
    3    bad data                 143  ended from outside (SIGTERM)
    4    the privacy budget would be exceeded

A user's mistake never shows a traceback. Set ``DISCREET_DEBUG=1`` to see one.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from discreet.atomic import staged
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import (
    BadUsage,
    DiscreetError,
    escape_controls,
    saying_it_otherwise,
    write_line,
)
from discreet.tabular import Columns
from discreet.text import json_text

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.status import Status
    from rich.text import Text

    from discreet.tables.resources import Progress as Rows


#: Rows of a table on a terminal: more scroll away before anyone can read them.
TERMINAL_ROWS = 50

#: Work shorter than this shows no progress.
PATIENCE_SECONDS = 1.0

#: Whether this command line was asked for results and errors only.
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: its title and how its values are written."""

    title: str
    values: Sequence[object]
    digits: int | None = None

    @property
    def is_text(self) -> bool:
        """Whether the values are words (aligned left) rather than numbers."""
        return any(isinstance(value, str) for value in self.values)

    def cells(self, limit: int | None = None) -> list[str]:
        """Return the first values as text."""
        return [self._write(value) for value in self.values[:limit]]

    def _write(self, value: object) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "-"
        if self.digits is not None:
            return f"{value:.{self.digits}f}"
        if isinstance(value, int):
            return f"{value:,}"
        return escape_controls(str(value))


def say(line: str = "") -> None:
    """Print one line of the result."""
    print(escape_controls(line))


def say_lines(text: str) -> None:
    """Print a text of several lines, whose own writer has seen to names with line breaks."""
    for line in text.rstrip().split("\n"):
        say(line)


#: Width of the names of fields, with the blank behind them.
FIELD = 13


def say_field(name: str, values: Iterable[str]) -> None:
    """Print a field: its name, and its values below each other.

    Values are broken at the width of the terminal, and what follows a break is set back. So no
    value can be mistaken for another field, however long it is.
    """
    width = shutil.get_terminal_size().columns - FIELD
    for number, value in enumerate(values):
        first, *continuation = fold_line(escape_controls(value), max(width, FIELD))
        say(f"{'' if number else name:{FIELD}}{first}")
        for line in continuation:
            say(f"{'':{FIELD}}  {line}")


def fold_line(line: str, width: int) -> list[str]:
    """Break a line at blanks where it can be, so that no part takes more than ``width`` columns.

    Characters beyond ASCII count twice, as wide as the widest of them are.
    """
    parts: list[str] = []
    start = blank = used = 0
    for index, sign in enumerate(line):
        wide = 1 if sign.isascii() else 2
        if used + wide > width - 2 * bool(parts):
            end = blank if blank > start else index
            parts.append(line[start:end])
            start, used = end, sum(1 if letter.isascii() else 2 for letter in line[end:index])
        used += wide
        if sign == " ":
            blank = index + 1
    return [*parts, line[start:]]


def note(line: str) -> None:
    """Print a remark on standard error."""
    if not _quiet.get():
        print(write_line(line), file=sys.stderr)


def note_choice(choice: str) -> None:
    """Say what was chosen for the user, and why; nothing where the user chose."""
    if choice:
        note(choice)


def conclude(cautions: Iterable[str], written: Iterable[Path] = (), *, choice: str = "") -> None:
    """Say what to know about a result, and which confidential files hold it."""
    note_choice(choice)
    for caution in cautions:
        note(f"Warning: {caution}")
    for path in written:
        note(f"Wrote {path} (confidential)")


def be_quiet() -> None:
    """Say nothing but results and errors from here on, until the command line ends."""
    _quiet.set(True)
    warnings.simplefilter("ignore")


@contextmanager
def speaking() -> Iterator[None]:
    """While a command line runs, show Python's warnings as sentences, without their origin."""
    before = _quiet.set(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: note(f"Warning: {message}")
            with saying_it_otherwise():
                yield
    finally:
        _quiet.reset(before)


def print_json(document: PlainMapping) -> None:
    """Print one JSON document; numbers that do not exist become null."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    print(json_text(document, ascii_only=encoding != "utf8"))


def show_result(document: PlainMapping, show: Callable[[], None], *, as_json: bool) -> None:
    """Print a result: a JSON document, or for readers."""
    if as_json:
        print_json(document)
    else:
        show()


def print_table(columns: Sequence[TableColumn]) -> None:
    """Print a table: drawn on a terminal, plain and complete everywhere else."""
    if sys.stdout.isatty():
        _draw_table(columns)
    else:
        texts = []
        for column in columns:
            cells = [escape_controls(column.title), *column.cells()]
            width = max(len(cell) for cell in cells)
            align = str.ljust if column.is_text else str.rjust
            texts.append([align(cell, width) for cell in cells])
        lines = ("  ".join(row).rstrip() for row in zip(*texts, strict=True))
        sys.stdout.write("\n".join(lines) + "\n")


NUMBERS = (
    "difficulty location strength ability se lower upper drift difference anchor displacement "
    "statistic coefficient discrimination change measure accuracy mean spread"
)
#: Digits of the columns that are no whole numbers.
DIGITS = dict.fromkeys(NUMBERS.split(), 3) | {"z": 2, "standard error": 3, "before": 3}
PROBABILITIES = ["p_value", "p_adjusted", "p_item", "probability"]
DIGITS |= dict.fromkeys([*PROBABILITIES, "epsilon", "spent", "left"], 4)
#: What columns are called on paper, where they have another name in files.
TITLES = {"lower": "95% from", "upper": "to", "focal": "group", "reason": "why not"}
TITLES |= {"p_value": "p", "p_adjusted": "adjusted", "p_item": "p of item", "ets": "ETS"}
TITLES |= {"number": "release", "reserved_at": "reserved at"}
TITLES |= {"name": "test", "degrees": "df"}
TITLES |= {f"threshold_{step}": f"threshold {step}" for step in range(1, 10)}
TITLES |= {"scaled_difficulty": "scaled", "scaled_ability": "scaled", "scaled_se": "scaled se"}


def print_columns(
    columns: Mapping[str, Sequence[object]],
    names: Sequence[str],
    scaled_digits: int = 3,
    *,
    titles: Mapping[str, str] | None = None,
) -> None:
    """Print these columns of a result in this order; those that it does not have are left out."""
    called = {**TITLES, **(titles or {})}
    digits = DIGITS | dict.fromkeys((n for n in names if n.startswith("scaled_")), scaled_digits)
    digits |= dict.fromkeys((n for n in names if n.startswith(("threshold", "pass@"))), 3)
    print_table(
        [
            TableColumn(called.get(name, name), columns[name], digits.get(name))
            for name in names
            if name in columns
        ]
    )


def list_rows(columns: Mapping[str, Sequence[object]]) -> list[PlainDict]:
    """Return columns as rows, as JSON documents have them."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def confidential(columns: Columns) -> Columns:
    """Return a table with a column that says what it is."""
    # A column rather than a comment line: every program reads it, and it survives a join.
    rows = len(next(iter(columns.values())))
    return {**columns, "access": ["confidential"] * rows}


def write_tables(folder: Path, tables: Mapping[str, Columns]) -> list[Path]:
    """Write confidential tables as CSV, all or none, and return where they are."""
    from discreet.report.formats import write_csv

    with staged(folder, [*tables]) as stage:
        for name, columns in tables.items():
            write_csv(stage / name, columns)
    return [folder / name for name in tables]


def check_writable(folder: Path | None, names: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, what could not be written afterwards; None is nothing."""
    if folder is None:
        return
    taken = [name for name in names if (folder / name).exists()]
    if taken and not force:
        raise BadUsage(
            f"{folder / taken[0]} exists already and would be overwritten. "
            "Choose another --out, or add --force to replace it."
        )
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryDirectory(dir=existing, prefix=".discreet-"):
            return
    except OSError as error:
        raise BadUsage(
            f"nothing can be written into {folder}: {error.strerror or error}. "
            "Choose another --out, or make the folder writable."
        ) from error


def _draw_table(columns: Sequence[TableColumn]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = len(columns[0].values)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            Text(escape_controls(column.title)),
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


def _wants_progress() -> bool:
    return not _quiet.get() and sys.stderr.isatty()


@contextmanager
def working(label: str) -> Iterator[None]:
    """Show that something is going on, once it has gone on for a second."""
    if not _wants_progress():
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
    with _show_status(label):
        done.wait()


def _show_status(label: str) -> Status:
    """Return a spinner; as text, because Rich would take brackets in a name for markup."""
    from rich.console import Console

    return Console(stderr=True).status(_plain(label))


def _plain(label: str) -> Text:
    from rich.text import Text

    return Text(escape_controls(label))


@contextmanager
def counting_rows(label: str) -> Iterator[Callable[[Rows], None] | None]:
    """Yield a callback that shows rows, rate and time left on a terminal; None elsewhere."""
    if not _wants_progress():
        yield None
        return
    with _show_status(label) as status:
        yield lambda now: status.update(_plain(_describe_rows(label, now)))


def _describe_rows(label: str, now: Rows) -> str:
    if now.rows >= now.total:
        return label  # what follows is another pass, or no reading at all
    left = "" if now.seconds_left == float("inf") else f", about {now.seconds_left:,.0f} s left"
    return f"{label}: {now.rows:,} of {now.total:,} rows, {now.rate:,.0f} a second{left}"


@contextmanager
def counting_bytes(label: str, measure: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """Yield a callback that moves a bar to the bytes read so far, once reading takes a second."""
    shows_progress, started = _wants_progress(), time.monotonic()
    bars: list[Progress] = []

    def move(done: int) -> None:
        if shows_progress and not bars and time.monotonic() - started >= PATIENCE_SECONDS:
            bars.append(_start_bar(label, measure()))
        for bar in bars:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield move
    finally:
        for bar in bars:
            bar.stop()


def _start_bar(label: str, total: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    words = TextColumn("{task.description}", markup=False)
    bar = Progress(words, *columns, console=console, transient=True)
    bar.add_task(escape_controls(label), total=total)
    bar.start()
    return bar


USAGE = 2
INTERRUPTED = 130
#: A program that a signal ended has this code plus the signal's number, as in a shell.
BY_SIGNAL = 128

#: Characters that a message shows on either side of a damaged one.
NEAR = 20

# Paths that the user can put right by typing another one.
_WRONG_PATH = {
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder, a file was expected",
    errno.ENOTDIR: "part of the path is a file, a folder was expected",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EEXIST: "it exists already",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many symbolic links",
}


@contextmanager
def heeding_signals() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP unwind the program as Ctrl-C does; yield those that came.

    What whoever started the program decided about a signal (``nohup``) stays.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    signals = (signal.SIGTERM, getattr(signal, "SIGHUP", None))  # Windows has no SIGHUP
    heeded = [kind for kind in signals if kind and signal.getsignal(kind) is signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        came.append(number)
        # Often both come, one after the other; the second must not interrupt the cleaning up.
        if len(came) == 1:
            raise KeyboardInterrupt

    for heeded_signal in heeded:
        signal.signal(heeded_signal, end)
    try:
        yield came
    finally:
        for heeded_signal in heeded:
            signal.signal(heeded_signal, signal.SIG_DFL)


@contextmanager
def guard() -> Iterator[None]:
    """Turn whatever a command raises into a message on standard error and an exit code."""
    try:
        yield
        # A full disk or a closed pipe behind standard output shows up here, not at exit.
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough: that is its right, not an error.
        drop_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt as error:
        _say("Interrupted. No output file was left half-written.", *_list_notes(error))
        raise typer.Exit(INTERRUPTED) from None
    except (DiscreetError, OSError, MemoryError, UnicodeEncodeError) as error:
        code, message = describe(error)
        _report(f"Error: {message}", error)
        raise typer.Exit(code) from None
    except Exception as error:
        # The parser's own exceptions (Exit, usage errors) live in modules that differ between
        # versions of typer; all of them carry an exit code, and typer prints them itself.
        if hasattr(error, "exit_code"):
            raise
        _report(
            f"Error: something went wrong inside discreet ({type(error).__name__}: {error}). "
            "This is a fault of the program, not yours. Run the command again with "
            "DISCREET_DEBUG=1 in front of it to see where, and report that (without data).",
            error,
        )
        raise typer.Exit(1) from None


def _list_notes(error: BaseException) -> list[str]:
    """Return what was added to an error on its way: above all, what was spent."""
    return [*getattr(error, "__notes__", ())]


def describe(error: DiscreetError | OSError | MemoryError | UnicodeEncodeError) -> tuple[int, str]:
    """Return the exit code and the sentence for an error that users can meet."""
    if isinstance(error, DiscreetError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return 1, (
            "the computer ran out of memory. Close other programs, use a machine with more "
            "memory, or give fewer answers at a time."
        )
    if isinstance(error, UnicodeEncodeError):
        near = error.object[max(error.start - NEAR, 0) : error.end + NEAR]
        return USAGE, (
            f"a text that was given holds bytes that are not UTF-8 and cannot be written (in "
            f"{near!r}). Type it again, in a terminal that uses UTF-8."
        )
    file = error.filename if error.filename is not None else "standard output or a file"
    if error.errno in _WRONG_PATH:
        return USAGE, f"{file}: {_WRONG_PATH[error.errno]}. Check the path and try again."
    if error.errno == errno.ENOSPC:
        drop_output()
        # Where the result cannot be shown, the work is done: doing it again may cost again.
        is_undone = error.filename is not None and not hasattr(error, "__notes__")
        advice = " and run the command again" if is_undone else ""
        return 1, f"{file}: the disk is full. Nothing was left half-written; make room{advice}."
    drop_output()
    return 1, f"{file}: {error.strerror}" if error.strerror else str(error)


def drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail on exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _report(message: str, error: BaseException) -> None:
    if os.environ.get("DISCREET_DEBUG", "") not in ("", "0"):
        _say(*traceback.format_exc().split("\n"))
    _say(message, *_list_notes(error))


def _say(*lines: str) -> None:
    try:
        for line in lines:
            print(write_line(line), file=sys.stderr, flush=True)
    except OSError:
        # Standard error is gone too; the exit code is all that is left to say.
        return
