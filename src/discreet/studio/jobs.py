"""Jobs: a task in a process of its own, within its memory, and what became of it as files.

In: a task (a function that is told how to say where it is) and its arguments. Out: a
:class:`StudioJob`, whose state a page asks for; in its folder ``progress.json`` while it runs, then
``result`` or ``failure``. A bad file may take a worker down, and nothing else with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from json import dumps, loads
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from discreet.atomic import create_private, replace_file
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import DiscreetError, saying_it_otherwise
from discreet.resources import machine_memory
from discreet.studio.language import refuse, speak_language, tell
from discreet.words import mark

PROGRESS, RESULT, FAILURE = "progress.json", "result", "failure"
#: Made once, by whoever comes first: a task that may no longer be cancelled, or its end.
CLAIM = "claimed"

#: Seconds between two notes of progress.
_OFTEN = 0.1


@dataclass(frozen=True)
class Outcome:
    """What a task returned, and the warnings on the way."""

    value: Any
    warnings: tuple[str, ...] = ()


@dataclass
class TaskProgress:
    """Where a task says what it is doing; a page reads it."""

    folder: Path
    label: str = ""
    _written: float = field(default=0.0, repr=False)

    def begin(self, label: str) -> None:
        """Say what is being done from here on."""
        self.label = label
        self._write(0, 0)

    def count(self, done: int, total: int) -> None:
        """Say how much of it is done; most calls are not worth a file."""
        if time.monotonic() - self._written > _OFTEN:
            self._write(done, total)

    def commit(self) -> None:
        """Say that from here on the task must not be ended, neither by a click nor by Ctrl-C."""
        if not claim(self.folder):
            raise refuse("This was cancelled before anything was spent.")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _write(self, done: int, total: int) -> None:
        self._written = time.monotonic()
        progress = {"label": self.label, "done": done, "total": total}
        _replace(self.folder / PROGRESS, dumps(progress).encode())


def claim(folder: Path) -> bool:
    """Take the one claim of a task; say whether nobody had."""
    try:
        create_private(folder / CLAIM)
    except FileExistsError:
        return False
    return True


#: Called with a :class:`TaskProgress` and its own keywords.
Task = Callable[..., Any]


def run_task(
    folder: Path,
    task: Task,
    arguments: PlainMapping,
    memory: int | None,
    language: str | None = None,
) -> None:
    """Do a task and leave what became of it in its folder; the target of a new process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if language:
        speak_language(language)
    try:
        limit_memory(memory)
        with warnings.catch_warnings(record=True) as caught, saying_it_otherwise():
            warnings.simplefilter("default", UserWarning)
            value = task(TaskProgress(folder), **arguments)
        messages = dict.fromkeys(str(warning.message) for warning in caught)
        keep(folder / RESULT, Outcome(value, tuple(messages)))
    except Exception as error:
        keep(folder / FAILURE, explain(error))


def limit_memory(byte_limit: int | None) -> None:
    """Let this process have so many bytes and no more, where the system can limit it."""
    with suppress(ImportError):
        import resource

        if byte_limit is None:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        least = byte_limit if hard == resource.RLIM_INFINITY else min(byte_limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))


def explain(error: Exception) -> str:
    """Return what a page says of an error, with what was added on its way: above all, spends."""
    if isinstance(error, DiscreetError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = tell.term(OUT_OF_MEMORY)
    elif isinstance(error, OSError):
        prefix = "" if error.filename is None else f"{error.filename}: "
        reason = f"{prefix}{error.strerror or error}"
        message = tell("{reason}. Check the file and try again.", reason=reason)
    else:
        message = tell(
            "Something went wrong inside discreet ({error}). This is a fault of the program, not "
            "yours; please report it (without data).",
            error=f"{type(error).__name__}: {error}",
        )
    return " ".join([message, *getattr(error, "__notes__", ())])


OUT_OF_MEMORY = mark(
    "There was not enough memory for this. Close other programs, use a machine with more memory, "
    "or give fewer answers at a time."
)


def load_kept(path: Path) -> Any:
    """Return what a worker left; the folder is our own, and nobody else can write there."""
    return pickle.loads(path.read_bytes())  # noqa: S301


def keep(path: Path, value: object) -> None:
    """Write a value that :func:`load_kept` reads."""
    _replace(path, pickle.dumps(value))


def _replace(path: Path, data: bytes) -> None:
    """Write a file that is whole whenever it is read."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    create_private(part)
    part.write_bytes(data)
    replace_file(part, path)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


#: Bytes of addresses below which the libraries do not even load.
_LEAST_MEMORY = 4 << 30


class JobState(StrEnum):
    """Where a job is."""

    RUNNING = mark("running")
    DONE = mark("done")
    FAILED = mark("failed")
    CANCELLED = mark("cancelled")


@dataclass
class StudioJob:
    """One piece of work.

    Attributes
    ----------
    name
        Part of addresses.
    title
        What it is, in words of the catalogue; ``{file}`` stands for the file that it is about.
    folder
        Where its progress and its result are.
    process
        That does it.
    """

    name: str
    title: str
    folder: Path
    process: BaseProcess
    cancelled: bool = False

    @property
    def state(self) -> JobState:
        """Where it is now."""
        if self.cancelled:
            return JobState.CANCELLED
        # Asked first: a process that has just ended has left its files.
        ended = self.process.exitcode is not None
        if (self.folder / RESULT).exists():
            return JobState.DONE
        return JobState.FAILED if ended or (self.folder / FAILURE).exists() else JobState.RUNNING

    @cached_property
    def outcome(self) -> Outcome:
        """What it came to, once it is done."""
        outcome: Outcome = load_kept(self.folder / RESULT)
        return outcome

    @property
    def failure(self) -> str:
        """Why it failed: what was found, why it matters, what to do."""
        if (self.folder / FAILURE).exists():
            return str(load_kept(self.folder / FAILURE))
        # Libraries below Python end a process that gets no memory, without a word.
        return f"{tell('The work ended suddenly.')} {tell.term(OUT_OF_MEMORY)}"

    @property
    def progress(self) -> PlainDict:
        """What is being done, and how much of it."""
        path = self.folder / PROGRESS
        report = loads(path.read_text()) if path.exists() else {"label": mark("Starting")}
        fixed = {"state": self.state.value, "committed": self.is_committed}
        return {"done": 0, "total": 0, **report, **fixed}

    @property
    def is_committed(self) -> bool:
        """Whether it is too late to cancel it."""
        return not self.cancelled and (self.folder / CLAIM).exists()

    def cancel(self) -> None:
        """End it at once; one that is done stays done, and one that has committed goes on."""
        if self.state is JobState.RUNNING and claim(self.folder):
            self.cancelled = True
            self.process.kill()
            self.process.join()


@dataclass
class JobTable:
    """All jobs of a session."""

    folder: Path
    memory: int | None = None
    _jobs: dict[str, StudioJob] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, title: str, task: Task, /, **arguments: object) -> StudioJob:
        """Begin a task in a new process."""
        with self._lock:
            name = f"job-{len(self._jobs) + 1}"
            folder = self.folder / name
            folder.mkdir(mode=0o700)
            given = (folder, task, arguments, self.memory, tell.language)
            process = get_context("spawn").Process(target=run_task, args=given, daemon=True)
            process.start()
            job = self._jobs[name] = StudioJob(name, title, folder, process)
        return job

    def find(self, name: str) -> StudioJob | None:
        """Return a job by its name."""
        return self._jobs.get(name)

    def __iter__(self) -> Iterator[StudioJob]:
        return iter(list(self._jobs.values()))

    def end(self) -> None:
        """Cancel whatever still runs; wait for what must not be cancelled."""
        for job in self:
            job.cancel()
        for job in self:
            if job.is_committed:
                job.process.join()


def usual_memory() -> int:
    """Return how many bytes a worker may have: three quarters of what the machine has."""
    return max(_LEAST_MEMORY, machine_memory() * 3 // 4)
