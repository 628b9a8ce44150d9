"""What one run of the studio knows: the files that are being worked on, and their jobs.

In: the private folder. Out: :class:`Session`, one for each run and its one user. A
:class:`Work` is one file, how it is to be read, and what was made of it; it has an address of its
own, so that two tabs may hold two of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from discreet.studio.home import Home
from discreet.studio.jobs import Job, JobTable
from discreet.studio.recent import Recent, find_place

MOST_BYTES = 2_000_000_000
"""How large a file may be that a browser sends; larger ones are read where they are."""


@dataclass(frozen=True)
class Run:
    """One calibration: its job, what was asked of it, and how its answers were read."""

    job: Job
    settings: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Part of addresses."""
        return self.job.name


@dataclass(frozen=True)
class Work:
    """One file of answers.

    Attributes
    ----------
    name
        Part of addresses.
    source
        Where the answers are.
    shown
        What the user calls the file: its path, or its name where a browser sent it.
    options
        How it is read: keywords of :func:`discreet.read_responses`.
    reading
        The job that reads it so.
    runs
        Its calibrations, the latest last.
    """

    name: str
    source: Path
    shown: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Job | None = None
    runs: tuple[Run, ...] = ()

    def find_run(self, name: str) -> Run | None:
        """Return a calibration by its name."""
        return next((run for run in self.runs if run.name == name), None)

    @property
    def title(self) -> str:
        """The file's name."""
        return Path(self.shown).name


@dataclass
class Session:
    """One run of the studio.

    ``folder`` goes when it ends, ``home`` stays; ``books`` are the paths of ledgers elsewhere.
    """

    folder: Path
    recent: Recent = field(default_factory=Recent)
    home: Home = field(default_factory=Home)
    books: Recent = field(default_factory=lambda: Recent(find_place("ledgers.json")))
    memory: int | None = None
    most_bytes: int = MOST_BYTES
    works: dict[str, Work] = field(default_factory=dict)
    ledgers: dict[str, Path] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def jobs(self) -> JobTable:
        """All jobs."""
        return JobTable(self.folder, self.memory)

    def open(self, source: Path, shown: str = "", options: Mapping[str, Any] | None = None) -> Work:
        """Begin work on a file."""
        with self._lock:
            name = f"work-{len(self.works) + 1}"
            work = Work(name, source, shown or str(source), options or {})
            self.works[name] = work
        return work

    def change(self, name: str, change: Callable[[Work], Mapping[str, Any]]) -> Work:
        """Change fields of a work; two requests at a time do it one after the other."""
        with self._lock:
            work = self.works[name]
            changed = self.works[name] = replace(work, **change(work))
        return changed

    def know_ledger(self, path: Path) -> str:
        """Return the name in addresses of a ledger's file."""
        with self._lock:
            known = {found: name for name, found in self.ledgers.items()}
            name = known.get(path) or f"ledger-{next(self._numbers)}"
            self.ledgers[name] = path
        return name

    def list_ledgers(self) -> dict[str, Path]:
        """Return all ledgers that this machine knows of, by their names in addresses."""
        for path in (*self.home.list_ledgers(), *map(Path, self.books.paths())):
            self.know_ledger(path)
        return dict(self.ledgers)

    def forget_ledger(self, name: str) -> None:
        """Take a ledger off the list; the file stays where it is."""
        with self._lock:
            path = self.ledgers.pop(name, None)
        if path is not None:
            self.books.forget(str(path))
