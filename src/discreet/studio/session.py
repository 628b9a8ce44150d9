"""What one run of the studio knows: the files that are being worked on, and their jobs.

In: the private folder. Out: :class:`StudioSession`, one for each run and its one user. A
:class:`Work` is one file, how it is to be read, and what was made of it; it has an address of its
own, so that two tabs may hold two of them.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from discreet.choices import PlainMapping
from discreet.studio.jobs import JobState, JobTable, StudioJob
from discreet.studio.kept_files import EXAMPLES_FOLDER, Home, Recent, digest_file, find_place
from discreet.studio.releasing import ListedItems, ReleaseForm

#: Calibrations of earlier runs whose settings are kept.
MOST_RUNS = 8
#: How large a file may be that a browser sends; larger ones are read where they are.
MOST_BYTES = 2_000_000_000


@dataclass(frozen=True)
class CalibrationRun:
    """One calibration.

    Attributes
    ----------
    job
        That computes it.
    settings
        What was asked of it.
    options, shown
        What was stated about the reading of its answers, and all that a program must state.
    answers
        The folder of the job that read them.
    """

    job: StudioJob
    settings: PlainMapping
    options: PlainMapping
    shown: PlainMapping
    answers: Path

    @property
    def name(self) -> str:
        """Part of addresses."""
        return self.job.name

    @property
    def is_done(self) -> bool:
        """Whether it came to a result."""
        return self.job.state is JobState.DONE


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
    digest
        Of the content of a file that a browser sent: by it the file is known again.
    options
        How it is read: keywords of :func:`discreet.read_responses`.
    reading
        The job that reads it so.
    runs
        Its calibrations, the latest last.
    was_seen
        Whether somebody looked at it in an earlier run of the studio.
    earlier
        The settings of calibrations of earlier runs.
    jobs
        All that were begun for it.
    """

    name: str
    source: Path
    shown: str
    digest: str = ""
    options: PlainMapping = field(default_factory=dict)
    reading: StudioJob | None = None
    runs: tuple[CalibrationRun, ...] = ()
    was_seen: bool = False
    earlier: tuple[PlainMapping, ...] = ()
    jobs: tuple[StudioJob, ...] = ()

    def find_run(self, name: str) -> CalibrationRun | None:
        """Return a calibration by its name."""
        return next((run for run in self.runs if run.name == name), None)

    @property
    def title(self) -> str:
        """The file's name."""
        return Path(self.shown).name


@dataclass(frozen=True)
class Ticket:
    """One release that was asked for, and is made once.

    Attributes
    ----------
    name
        Part of addresses, and the name of the charge in the ledger: nobody can guess it, and no
        ledger is charged twice under it.
    work
        The answers and how they are read, as they were when it was asked for; ``None`` where a
        release that was paid for needs no answers.
    terms
        What was asked for; ``None`` where the ledger knows it.
    ledger, place
        Which ledger is charged, and the folder in which the release will be.
    job
        That makes it, once somebody has confirmed.
    """

    name: str
    work: Work | None
    terms: ReleaseForm | None
    ledger: Path
    place: Path
    job: StudioJob | None = None

    @property
    def is_used(self) -> bool:
        """Whether it is being carried out, or was."""
        return self.job is not None and self.job.state in (JobState.RUNNING, JobState.DONE)

    def asks_the_same(self, ticket: Ticket) -> bool:
        """Say whether another ticket is for the very same release, which is made once."""
        if self.name == ticket.name:
            return True
        asked = [
            (one.work.source, one.work.options, one.terms.set_looked(looked=False))
            for one in (self, ticket)
            if one.work and one.terms
        ]
        return len(asked) == 2 and asked[0] == asked[1]


@dataclass
class StudioSession:
    """One run of the studio.

    ``folder`` goes when it ends, ``home`` stays; ``books`` are the paths of ledgers elsewhere;
    ``drafts`` are release forms as they were last sent, by the name of their work.
    """

    folder: Path
    recent: Recent = field(default_factory=Recent)
    home: Home = field(default_factory=Home)
    books: Recent = field(default_factory=lambda: Recent(find_place("ledgers.json")))
    memory: int | None = None
    most_bytes: int = MOST_BYTES
    works: dict[str, Work] = field(default_factory=dict)
    ledgers: dict[str, Path] = field(default_factory=dict)
    lists: dict[str, ListedItems] = field(default_factory=dict)
    tickets: dict[str, Ticket] = field(default_factory=dict)
    drafts: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def jobs(self) -> JobTable:
        """All jobs."""
        return JobTable(self.folder, self.memory)

    def open(
        self, source: Path, source_name: str = "", options: PlainMapping | None = None
    ) -> Work:
        """Begin work on a file, as it was read before where something is kept of it."""
        digest = digest_file(source) if source_name and options is None else ""
        kept = self.recent.recall(digest or str(source)) if options is None else {}
        stated = kept.get("options")
        with self._lock:
            name = f"work-{len(self.works) + 1}"
            work = self.works[name] = Work(
                name,
                source,
                source_name or str(source),
                digest,
                options or (dict(stated) if isinstance(stated, Mapping) else {}),
                was_seen=bool(kept.get("seen")),
                earlier=tuple(one for one in kept.get("runs", ()) if isinstance(one, Mapping)),
            )
        return work

    def keep(self, work: Work) -> None:
        """Keep how a file is read and calibrated, beyond this run; nothing of an example."""
        if work.source.parent == self.folder / EXAMPLES_FOLDER:
            return
        runs = [*work.earlier, *(dict(run.settings) for run in work.runs)]
        different = [run for n, run in enumerate(runs) if run not in runs[:n]]
        kept = {"options": dict(work.options), "runs": different[-MOST_RUNS:], "seen": True}
        self.recent.add(work.shown, digest=work.digest, **kept)

    def owns(self, work: Work) -> bool:
        """Say whether a file is a copy of ours, which goes when it is closed."""
        return self.folder in work.source.parents

    def close(self, work: Work) -> None:
        """Forget a file, and remove its copy and all that was made of it here."""
        with self._lock:
            self.works.pop(work.name, None)
            self.drafts.pop(work.name, None)
        for job in work.jobs:
            job.cancel()
            shutil.rmtree(job.folder, ignore_errors=True)
        self.recent.forget(work.digest or work.shown)
        if self.owns(work) and work.source.parent != self.folder / EXAMPLES_FOLDER:
            part = work.source.relative_to(self.folder).parts[0]
            shutil.rmtree(self.folder / part, ignore_errors=True)

    def change(self, name: str, change: Callable[[Work], PlainMapping]) -> Work:
        """Change fields of a work; two requests at a time do it one after the other."""
        with self._lock:
            work = self.works[name]
            changed = self.works[name] = replace(work, **change(work))
        return changed

    def keep_list(self, listed: ListedItems) -> str:
        """Keep a list of items for the next look at a form; return its name."""
        with self._lock:
            names = [name for name, kept_list in self.lists.items() if kept_list == listed]
            name = names[0] if names else f"list-{len(self.lists) + 1}"
            self.lists[name] = listed
        return name

    def issue(self, ticket: Ticket) -> None:
        """Keep a ticket, unless the release is being made under it already."""
        with self._lock:
            earlier_ticket = self.tickets.get(ticket.name)
            if earlier_ticket is None or not earlier_ticket.is_used:
                self.tickets[ticket.name] = ticket

    def find_same(self, ticket: Ticket) -> Ticket | None:
        """Return the ticket under which the same release is being made, or was."""
        same = (one for one in list(self.tickets.values()) if one.asks_the_same(ticket))
        return next((one for one in same if one.is_used), None)

    def was_refused(self, work: Work) -> bool:
        """Say whether a release of these answers failed, and by its message told about them."""
        return any(
            one.work and one.work.name == work.name and one.job and one.job.state is JobState.FAILED
            for one in list(self.tickets.values())
        )

    def find_seen(self, work: Work) -> Work | None:
        """Return the work under which the same file was looked at in this studio, if any."""
        looked_at = (
            earlier
            for earlier in (work, *self.works.values())
            if (earlier.source == work.source or (work.digest and earlier.digest == work.digest))
            and (earlier.reading is not None or earlier.runs or earlier.was_seen)
        )
        return next(looked_at, None)

    def note_seen(self, ticket: Ticket) -> Ticket:
        """Keep a ticket; its terms say whether somebody looked, or was told by a refusal."""
        work, terms = ticket.work, ticket.terms
        if work and terms and (self.find_seen(work) or self.was_refused(work)):
            ticket = replace(ticket, terms=terms.set_looked(looked=True))
        self.issue(ticket)
        return self.tickets[ticket.name]

    def begin(self, name: str, start: Callable[[Ticket], StudioJob]) -> Ticket:
        """Carry a ticket out, once, however many tabs ask for it; return who does."""
        with self._lock:
            ticket = self.tickets[name]
            used = self.find_same(ticket)
            if used is not None:
                return used
            self.tickets[name] = replace(ticket, job=start(ticket))
            return self.tickets[name]

    def know_ledger(self, path: Path) -> str:
        """Return the name in addresses of a ledger's file."""
        with self._lock:
            names = {ledger_path: name for name, ledger_path in self.ledgers.items()}
            name = names.get(path) or f"ledger-{next(self._numbers)}"
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
