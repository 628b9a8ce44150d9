"""The table of jobs: started, looked at, cancelled; each in a process of its own.

In: a task and its arguments. Out: a :class:`StudioJob`, whose state a page asks for. Its result
is on disk in the private folder, so that closing a tab loses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from json import loads
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from discreet.studio.worker import (
    CLAIM,
    FAILURE,
    OUT_OF_MEMORY,
    PROGRESS,
    RESULT,
    Failure,
    Outcome,
    Task,
    claim,
    load_kept,
    run_task,
)
from discreet.tables.resources import machine_memory

_LEAST_MEMORY = 4 << 30
"""Bytes of addresses below which the libraries do not even load."""


class JobState(StrEnum):
    """Where a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass
class StudioJob:
    """One piece of work.

    Attributes
    ----------
    name
        Part of addresses.
    title
        What it is, in words.
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
    def failure(self) -> Failure:
        """Why it failed."""
        if (self.folder / FAILURE).exists():
            failure: Failure = load_kept(self.folder / FAILURE)
            return failure
        # Libraries below Python end a process that gets no memory, without a word.
        return Failure(f"The work ended suddenly. {OUT_OF_MEMORY}")

    @property
    def progress(self) -> dict[str, Any]:
        """What is being done, and how much of it."""
        path = self.folder / PROGRESS
        report = loads(path.read_text()) if path.exists() else {"label": "Starting"}
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

    def start(self, title: str, task: Task, /, **arguments: Any) -> StudioJob:
        """Begin a task in a new process."""
        with self._lock:
            name = f"job-{len(self._jobs) + 1}"
            folder = self.folder / name
            folder.mkdir(mode=0o700)
            process = get_context("spawn").Process(
                target=run_task, args=(folder, task, arguments, self.memory), daemon=True
            )
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
