"""What an out-of-core run may use, and what it says on its way."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from discreet.atomic import make_temporary
from discreet.errors import BadUsage, OutOfReach
from discreet.jit import can_start_threads, thread_count
from discreet.names import spell_path

GIBIBYTE = 1 << 30
LEAST_MEMORY, MOST_MEMORY = 1 << 24, 1 << 60
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


def available_memory() -> int:
    """Return the bytes of memory that this process can still use without swapping.

    Limits of the process (``ulimit -v``) and of its container count.
    """
    return max(0, min(_free_memory(), _left_of_process(), _left_of_container()))


def _free_memory() -> int:
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(kilobytes)
    return machine_memory()


def machine_memory() -> int:
    """Return the bytes of memory that the machine has; 8 GiB where nothing tells."""
    if hasattr(os, "sysconf"):
        with suppress(ValueError, OSError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(AttributeError, OSError):
        kilobytes = ctypes.c_ulonglong()
        windows = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
        if windows.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            return 1024 * kilobytes.value
    return 8 * GIBIBYTE


def _left_of_process() -> int:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            return limit - pages * resource.getpagesize()
    return MOST_MEMORY


#: Where Linux says what a container may use and does use, in both versions of control groups.
CONTAINERS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def _left_of_container() -> int:
    for folder, limit_file, used in CONTAINERS:
        try:
            limit, current = (int((folder / name).read_text()) for name in (limit_file, used))
            lines = (folder / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):  # "max" where there is no limit
            continue
        cached = [int(line.split()[1]) for line in lines if line.startswith("inactive_file ")]
        return limit - current + sum(cached)
    return MOST_MEMORY


#: Address space of a buffer for each thread, in NumPy's linear algebra and in SciPy's.
BUFFER_BYTES = 32 << 20
#: What a process with a limit of its own (``ulimit -v``) keeps for whatever is loaded on the way.
SPARE_BYTES = 128 << 20
#: A matrix that is large enough for all threads.
BLAS_ITEMS = 512


def secure_memory(needed: int) -> None:
    """Refuse a release that would not fit into memory, before it is paid for."""
    if _left_of_process() < MOST_MEMORY:
        needed += SPARE_BYTES
    if needed > (free := available_memory()):
        raise OutOfReach(
            f"a release needs about {needed / 1e6:,.0f} MB of memory here, and only "
            f"{free / 1e6:,.0f} MB are left: it could stop after it was paid for. Nothing was "
            "charged. Raise the limit (ulimit -v, the memory of the batch job), or use fewer "
            "threads (--threads 1)."
        )


def take_buffers() -> None:
    """Let linear algebra take its buffers while there is room for them.

    OpenBLAS asks for ever for a buffer that it does not get, and the process cannot even be ended.
    """
    import numpy as np
    from scipy.linalg import cho_factor

    secure_memory(2 * BUFFER_BYTES * thread_count())
    square = np.eye(BLAS_ITEMS)
    cho_factor(square @ square)


Step = TypeVar("Step")

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
