"""Count a source of any size: the engine behind ``engine="disk"``.

In: a path, a pattern, a database, a query, or batches of whole persons. Out: exactly the counts
that the memory engine gives. New items only ever join at the end of the list, so arrays grow and
nothing moves. Partial counts can be kept on disk, so that a run that was killed can go on: a
checkpoint is a folder with one file of counts that also says which rows or buckets are in them.
The file is replaced in one step: whatever happens, what is in the counts and what is said to be in
them agree, so nobody is counted twice. A fingerprint of the source, of the options and of the
weighting guards against going on with other data. Confidential, like all counts.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.select import number_items
from discreet.atomic import hold_lock, make_folder
from discreet.coding.reading import Reading
from discreet.coding.steps import CategoryScale
from discreet.counts import PairCounts, name_weighting
from discreet.counts import matrix as form
from discreet.counts.folds import FoldSums, Tally
from discreet.counts.pairs import Weighting, count_matrix
from discreet.errors import BadUsage
from discreet.names import settle_names
from discreet.readers.rows import BatchPosition
from discreet.readers.streamed.passes import Passes, Restart
from discreet.schema import SchemaError, read_fields
from discreet.tables.resources import Progress, Resources
from discreet.types import Int64Array

#: Seconds between two checkpoints: a crash costs no more work than that.
INTERVAL = 5.0

#: A save that takes longer than this many seconds (very many items) happens less often, so that
#: saving takes at most a tenth of the time.
SLOW_SAVE, SHARE = 0.5, 10.0

STATE_VERSION = 2
#: What a file of partial counts says beside them.
NOTE = {"fingerprint": str, "state": BatchPosition, "scale": CategoryScale | None}

_NONE = np.zeros(0, dtype=np.int64)


def count_source(
    source: str | PathLike[str],
    *,
    weighting: Weighting | None = None,
    tally: Tally | None = None,
    reading: Reading | None = None,
    resources: Resources | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PairCounts:
    """Count pairs of a table of any size with bounded memory.

    Parameters
    ----------
    source
        A file, folder or pattern (CSV, TSV, Parquet, JSON lines; also gzipped), a DuckDB
        database (``"file.duckdb"`` or ``"file.duckdb::table"``), a PostgreSQL database
        (``"postgresql://user@host/database::table"``), or a query in DuckDB's SQL.
    weighting
        Integer weight per person, as in :func:`discreet.count_pairs`.
    tally
        What else to keep of the persons: folds of them, a sketch of their ids.
    reading
        Column names, layout and scoring, from
        :class:`discreet.coding.reading.Reading`.
    resources
        Memory, and a folder for what does not fit.
    checkpoint
        A folder for partial counts. If a run is killed, the same call goes on from there; a
        run that ends well deletes it.
    progress
        Called a few times a second with a :class:`Progress`.

    Examples
    --------
    >>> count_source("SELECT * FROM (VALUES ('ann', 'q1', 1), ('ann', 'q2', 0)) "
    ...              "AS answers(person, item, response)").right_wrong
    array([[0, 1],
           [0, 0]])
    """
    with Passes(source, reading=reading, resources=resources, progress=progress) as passes:
        return count_passes(passes, weighting, tally, checkpoint)


def count_passes(
    passes: Passes,
    weighting: Weighting | None = None,
    tally: Tally | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> PairCounts:
    """Count in the first pass over a source; see :func:`count_source`."""
    if checkpoint is None:
        return _count(passes, weighting, tally, None)
    keeper = Checkpoint(checkpoint, _fingerprint(passes, weighting, tally))
    with keeper.lock():
        return _count(passes, weighting, tally, keeper)


def _count(
    passes: Passes, weighting: Weighting | None, tally: Tally | None, keeper: Checkpoint | None
) -> PairCounts:
    start, position, scale = (keeper and keeper.load()) or (None, None, None)
    if scale is not None:
        passes.take_scale(scale)
    rows = passes.dataset.rows
    sums = Accumulator(weighting, tally, start, rows=rows)
    for step in passes.first(position, sums.totals.items, keeper.rows if keeper else None):
        if isinstance(step, Restart):
            n_steps = passes.reading.steps_of(step.items)
            sums = Accumulator(weighting, tally, items=step.items, steps=n_steps, rows=rows)
        else:
            sums.add(step.items, step.store, step.persons, step.rows)
        if keeper and keeper.is_due(step.position):
            keeper.save(sums.counts(), step.position, passes.reading.scale)
    counts = sums.counts()
    if keeper:
        keeper.remove()
    return counts


def _fingerprint(passes: Passes, weighting: Weighting | None, tally: Tally | None) -> str:
    """Return a digest of everything that decides about the counts."""
    try:
        weights = pickle.dumps(weighting if tally is None else (weighting, tally))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadUsage(
            "a weighting must be picklable when a checkpoint is kept, so that going on with "
            f"another one is noticed; found {weighting!r} ({error})"
        ) from None
    identity = [shard.identity for shard in passes.dataset.shards]
    facts = [identity, asdict(passes.reading), STATE_VERSION]
    description = json.dumps(facts, default=sorted)  # sets have no order of their own
    return hashlib.sha256(description.encode() + weights).hexdigest()


class Checkpoint:
    """A folder with partial counts and, where rows had to be distributed, the rows.

    Parameters
    ----------
    folder
        Made if it is not there.
    fingerprint
        Of this run; a checkpoint with another one is refused.
    """

    def __init__(self, folder: str | PathLike[str], fingerprint: str) -> None:
        self.folder = Path(folder)
        self.rows = self.folder / "rows"
        self._file = self.folder / "counts.npz"
        self._fingerprint = fingerprint
        self._saved, self._pause = time.monotonic(), INTERVAL
        make_folder(self.folder)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out: two runs would overwrite each other's counts.

        At the end the folder is removed if nothing is in it.
        """
        busy = BadUsage(
            f"the checkpoint in '{self.folder}' is in use by another process, and two would "
            "overwrite each other's counts. Wait until it ends, or name another folder."
        )
        try:
            with hold_lock(self.folder / ".lock", busy, remove=True):
                yield
        finally:
            with suppress(OSError):  # a checkpoint, or another process, is there
                self.folder.rmdir()

    def load(self) -> tuple[PairCounts, BatchPosition, CategoryScale | None] | None:
        """Return counts, place and steps of an earlier run; None if there was none."""
        if not self._file.exists():
            # Rows that were being distributed when an earlier run was killed.
            shutil.rmtree(self.rows, ignore_errors=True)
            return None
        counts = PairCounts.load(self._file)
        note = counts.note
        if note.get("fingerprint") != self._fingerprint:
            raise BadUsage(
                f"the checkpoint in '{self.folder}' belongs to other data or other options (a file "
                "may have changed since). Going on would mix the two. Delete the folder to start "
                "anew, or name another one."
            )
        try:
            fields = read_fields(NOTE, note, "its note", optional=("scale",))
        except SchemaError as error:
            raise BadUsage(
                f"the checkpoint in '{self.folder}' is damaged: {error}. Delete the folder to "
                "start anew, or name another one."
            ) from None
        return counts, fields["state"], fields.get("scale")

    def is_due(self, position: BatchPosition) -> bool:
        """Say whether to save: now and then, and when all rows have been distributed to disk."""
        if position.sizes and not position.done:
            return True
        is_time = time.monotonic() - self._saved >= self._pause
        return is_time and bool(position.row or position.sizes)

    def save(
        self, counts: PairCounts, position: BatchPosition, scale: CategoryScale | None
    ) -> None:
        """Write counts and place in one step, and which steps were found in all rows."""
        # What was detected matters to a release, and none is made of counts.
        fields = None if scale is None else asdict(replace(scale, detected=()))
        note = {"fingerprint": self._fingerprint, "state": asdict(position), "scale": fields}
        began = time.monotonic()
        counts.save(self._file, note=note)
        self._saved = time.monotonic()
        took = self._saved - began
        self._pause = INTERVAL if took <= SLOW_SAVE else SHARE * took

    def remove(self) -> None:
        """Delete the checkpoint of a run that is done; other files in the folder stay."""
        shutil.rmtree(self.rows, ignore_errors=True)
        self._file.unlink(missing_ok=True)


@dataclass
class StreamedItemTotals:
    """Items, how often each was answered and answered right, and how many persons there are.

    With steps, answers and right ones are those to nodes (see :mod:`discreet.answers.pack`).
    """

    items: tuple[str, ...] = ()
    answers: Int64Array = field(default_factory=_NONE.copy)
    right: Int64Array = field(default_factory=_NONE.copy)
    persons: int = 0
    steps: tuple[int, ...] = ()

    @property
    def n_answers(self) -> int:
        """How many answers were given to all items."""
        first = np.cumsum(self.steps, dtype=np.int64) - np.array(self.steps, dtype=np.int64)
        return int(self.right.sum() + (self.answers - self.right)[first].sum())

    def add(self, items: tuple[str, ...], store: Any) -> None:
        """Add more persons, who may bring new items."""
        answers, right = store.nodes.item_totals()
        self.grow(items, store.steps)
        self.answers, self.right = self.answers + answers, self.right + right
        self.persons += store.n_persons

    def grow(self, items: tuple[str, ...], steps: tuple[int, ...]) -> None:
        """Make room for a list of items that begins with these."""
        more = (0, sum(steps) - len(self.answers))
        self.answers, self.right = np.pad(self.answers, more), np.pad(self.right, more)
        self.items, self.steps = items, steps

    def select(self, items: tuple[str, ...]) -> StreamedItemTotals:
        """Return the totals of these items; zero for items that nobody answered."""
        nodes, steps = form.nodes_of(number_items(items, self.items), self.steps)
        answers, right = (np.append(values, 0)[nodes] for values in (self.answers, self.right))
        return StreamedItemTotals(items, answers, right, self.persons, steps)


def find_totals(passes: Passes) -> StreamedItemTotals:
    """Go through all persons once."""
    totals = passes.fold(StreamedItemTotals, lambda sums, batch: sums.add(batch.items, batch.store))
    return replace(totals, items=settle_names(totals.items))


def total_counts(counts: PairCounts) -> StreamedItemTotals:
    """Return the totals that pair counts know."""
    about = counts.items, counts.answers, counts.right, counts.persons
    return StreamedItemTotals(*about, counts.steps)


class Accumulator:
    """Counts so far.

    Parameters
    ----------
    weighting, tally
        How persons are weighted, and what else is kept of them.
    start
        Counts to go on from.
    items, steps
        Items that are known already.
    rows
        About how many rows will come; 0 where that is not known.
    """

    def __init__(
        self,
        weighting: Weighting | None = None,
        tally: Tally | None = None,
        start: PairCounts | None = None,
        items: tuple[str, ...] = (),
        steps: tuple[int, ...] = (),
        rows: int = 0,
    ) -> None:
        self._weighting, self._rows = weighting, rows
        self._persons = None if tally is None else FoldSums(tally, start)
        self.totals = StreamedItemTotals() if start is None else total_counts(start)
        empty = np.zeros((0, 0), dtype=np.int64)
        self._pairs = _Pairs(empty if start is None else start.right_wrong.copy())
        self._grow(items, steps)

    def add(self, items: tuple[str, ...], store: Any, persons: Any, rows: int = 0) -> None:
        """Count one batch of so many rows; ``persons`` are ids, or None where there are none."""
        self._grow(items, store.steps)
        share = min(rows / self._rows, 1.0) if rows and self._rows else 1.0
        self._pairs.add(count_matrix(store, self._weighting, share))
        if self._persons is not None:
            self._persons.add(store, persons, self.totals.persons)
        self.totals.add(items, store)

    def _grow(self, items: tuple[str, ...], steps: tuple[int, ...]) -> None:
        if len(items) > len(self.totals.items):
            self._pairs.grow(sum(steps))
            self.totals.grow(items, steps)

    def counts(self, items: Sequence[str] = ()) -> PairCounts:
        """Return the counts so far, also for listed items that nobody answered."""
        self._grow(tuple(items), (*self.totals.steps, *[1] * (len(items) - len(self.totals.items))))
        total, sums = self._pairs.total(), self.totals
        # Only an array is added to in place.
        pairs = total if form.is_sparse(total) else total.copy()
        about = {} if self._persons is None else self._persons.finish(len(sums.answers))
        name = name_weighting(self._weighting)
        numbers = (sums.answers, sums.right, sums.persons, name)
        return PairCounts(sums.items, pairs, *numbers, steps=sums.steps, **about)


def count_stream(
    batches: Iterable[Responses],
    *,
    items: Sequence[str] | None = None,
    weighting: Weighting | None = None,
    tally: Tally | None = None,
) -> PairCounts:
    """Add up the counts of batches of whole persons, each with the items of the one before."""
    sums = Accumulator(weighting, tally)
    for batch in batches:
        sums.add(batch.items, batch.store, batch.person_ids)
    return sums.counts(items or ())


class _Pairs:
    """A sum of matrices: one array or, with many items, a few sparse ones.

    Adding a small sparse matrix to a large one costs as much as going through the large one.
    So partial sums are kept, each at most half as large as the one before, like the digits of
    a binary number: every pair is then moved a few times in all, and all of them together are
    at most twice as large as the largest.
    """

    def __init__(self, start: object) -> None:
        self._parts: list[Any] = [start]

    def grow(self, items: int) -> None:
        """Make room for new items."""
        self._parts = [form.grow_matrix(part, items) for part in self._parts]

    def add(self, matrix: Any) -> None:
        """Add the counts of a batch."""
        if not form.is_sparse(self._parts[0]):
            form.add_into(self._parts[0], matrix)
            return
        self._parts.append(matrix)
        while len(self._parts) > 1:
            before, after = self._parts[-2:]
            if form.is_sparse(after) and before.nnz > 2 * after.nnz:
                break
            self._carry()

    def total(self) -> Any:
        """Return the sum of everything so far."""
        while len(self._parts) > 1:
            self._carry()
        return self._parts[0]

    def _carry(self) -> None:
        last = self._parts.pop()
        self._parts[-1] = form.settle_matrix(form.add_matrices(self._parts[-1], last))
        if not form.is_sparse(self._parts[-1]):
            # So many pairs by now that everything goes into one array.
            total, *others = reversed(self._parts)
            for part in others:
                form.add_into(total, part)
            self._parts = [total]
