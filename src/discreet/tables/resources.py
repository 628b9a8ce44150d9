"""What a reader may use, and its reports of progress.

In: limits of memory and disk. Out: a connection of DuckDB within them; rows read so far.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from discreet.atomic import make_temporary
from discreet.errors import BadUsage
from discreet.names import spell_path
from discreet.resources import GIBIBYTE, MOST_MEMORY
from discreet.threads import can_start_threads

Step = TypeVar("Step")

LEAST_MEMORY = 1 << 24


#: Seconds between two reports: as often as a person can read them.
REPORT_INTERVAL = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes
    ----------
    rows, total
        Rows done, and how many there are by estimate. Where rows are first distributed to
        disk, every row counts twice in both.
    seconds
        Since the run began.
    """

    rows: int
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows per second so far."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds left at this rate; infinite while nothing is known."""
        return max(self.total - self.rows, 0) / self.rate if self.rate > 0 else float("inf")


@dataclass(frozen=True)
class Resources:
    """Memory and disk that an out-of-core run may use.

    Attributes
    ----------
    memory
        Bytes that answers may take at one time. The interpreter and its libraries, about
        300 MB, and the matrix of counts come on top.
    spill
        Folder for what does not fit; by default the system's folder for temporary files.
        It needs about 12 bytes a row (with text ids, their length more), only where rows are
        not in person order.
    """

    memory: int = GIBIBYTE
    spill: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        if not LEAST_MEMORY <= self.memory <= MOST_MEMORY:
            raise BadUsage(
                f"memory must be at least {LEAST_MEMORY:,} bytes (16 MB) and less than there is in "
                f"the world, found {self.memory:g}"
            )
        if self.spill is not None and spell_path(self.spill) != os.fspath(self.spill):
            raise BadUsage(
                f"the folder {spell_path(self.spill)} cannot hold what does not fit into memory: "
                "its name is not UTF-8, and DuckDB opens no others. Name another one (--spill)."
            )

    @property
    def folder(self) -> Path:
        """Where to write what does not fit."""
        return Path(tempfile.gettempdir() if self.spill is None else self.spill)

    def connect(self, database: Path | None) -> Any:
        """Open DuckDB, on a database file (read only) or without one, with these limits."""
        duckdb = load_duckdb()
        location = ":memory:" if database is None else str(database)
        try:
            connection = duckdb.connect(location, read_only=database is not None)
        except duckdb.Error as error:
            raise BadUsage(f"{database} cannot be opened as a DuckDB database: {error}") from None
        connection.execute("SET memory_limit = ?", [f"{max(self.memory // 2, 1 << 27)}B"])
        # DuckDB lets everybody read what it spills, so it does so in a folder that nobody else
        # can open.
        private = make_temporary(self.folder, "discreet-duckdb-")
        weakref.finalize(connection, _remove_spilled, private)
        connection.execute("SET temp_directory = ?", [str(private / "spilled")])
        return connection


def _remove_spilled(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # Windows removes no open file; at the end all of them are closed
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def load_duckdb() -> Any:
    """Return the module, or say what cannot be done without it."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise BadUsage(
            "Queries, databases and answers larger than memory need the package duckdb, which is "
            "not installed here. Install it, or give a file or a data frame that fits into memory."
        ) from None
    return duckdb


@contextmanager
def explain_query(name: str) -> Iterator[None]:
    """Turn what DuckDB raises into an error about a query, or into the interrupt that it hides."""
    duckdb = load_duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise BadUsage(f"DuckDB cannot run {name}: {error}") from None
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


@dataclass
class Reporter:
    """Tells a callback about progress, not more often than it can be read."""

    callback: Callable[[Progress], None] | None
    total: int
    rows: int = 0
    _began: float = field(default_factory=time.monotonic)
    _told: float = 0.0

    def add(self, rows: int) -> None:
        """Note rows that are done."""
        self.rows += rows
        now = time.monotonic()
        if self.callback is not None and now - self._told >= REPORT_INTERVAL:
            self._told = now
            self.callback(Progress(self.rows, max(self.total, self.rows), now - self._began))

    def finish(self) -> None:
        """Say that all is done."""
        if self.callback is not None:
            self.callback(Progress(self.rows, self.rows, time.monotonic() - self._began))


#: Enough to smooth out a slow step, few enough to bound memory.
STEPS_AHEAD = 3


def run_ahead(steps: Iterator[Step], ahead: int = STEPS_AHEAD) -> Generator[Step, None, None]:
    """Yield what ``steps`` yields, computed in a thread of its own up to ``ahead`` steps early.

    Reading and counting then overlap. Closing this generator (an error, Ctrl-C, a caller who has
    enough) stops the thread before the next step.

    Examples
    --------
    >>> list(run_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    if not can_start_threads():
        yield from steps
        return
    end: Any = object()
    worker = ThreadPoolExecutor(1)
    waiting = deque(worker.submit(next, steps, end) for _ in range(ahead))
    try:
        while (step := waiting.popleft().result()) is not end:
            waiting.append(worker.submit(next, steps, end))
            yield step
    finally:
        worker.shutdown(cancel_futures=True)
        if hasattr(steps, "close"):
            steps.close()
