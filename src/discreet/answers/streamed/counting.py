"""Count a source of any size: the engine behind ``engine="duckdb"``.

In: a path, a pattern, a database or a query. Out: exactly the counts that the memory engine
gives. Rows in person order are counted as they are read; the first row out of order discards
what was counted so far and starts anew with buckets.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from discreet.answers.streamed.accumulate import Accumulator, Checkpoint, State, fingerprint_run
from discreet.answers.streamed.batches import Batch, Rows, bucket_batches, ordered_batches
from discreet.answers.streamed.blocks import Block, ItemNames, LongRows, NotNumbers, plan_shards
from discreet.answers.streamed.grouping import Buckets, OutOfOrder, choose_bits
from discreet.answers.streamed.wide import WideRows
from discreet.atomic import make_temporary
from discreet.counts.memory import Weighting
from discreet.counts.table import PairCounts
from discreet.jit import load_kernels
from discreet.tables.dataset import Dataset, Encodings, describe_source, open_dataset
from discreet.tables.delimited import NotUtf8
from discreet.tables.ids import check_items
from discreet.tables.paths import warn_encoding
from discreet.tables.resources import Progress, Reporter, Resources, run_ahead
from discreet.tables.roles import LongPlan, Reading, WidePlan

MANY_ROWS = 5_000_000
"""Rows from which on the compiled loops are worth their loading time at once."""


def count_source(
    source: str | PathLike[str],
    *,
    weighting: Weighting | None = None,
    items: Sequence[str] | None = None,
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
    items
        The item list and its order; an item that is not on it is refused. By default items
        come in order of first appearance, as in memory.
    reading
        Column names, layout and scoring, from
        :func:`discreet.tables.roles.make_reading`.
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
    job = Job(
        source,
        None if items is None else check_items(items, len(items)),
        reading or Reading(),
        resources or Resources(),
    )
    try:
        return count_job(job, weighting, checkpoint=checkpoint, progress=progress)
    finally:
        job.close()


def count_job(
    job: Job,
    weighting: Weighting | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PairCounts:
    """Count what a job reads; see :func:`count_source`."""
    while True:
        try:
            return _Run(job, weighting, checkpoint, progress).count()
        except NotUtf8 as found:
            # Rare: the first megabytes were UTF-8. Everything is read again, this file otherwise.
            job.encodings[found.path] = warn_encoding(found.path)


@dataclass
class Job:
    """What is to be read, and how."""

    source: str | PathLike[str]
    items: tuple[str, ...] | None
    reading: Reading
    resources: Resources

    def __post_init__(self) -> None:
        self.encodings: Encodings = {}
        self._kept: Dataset | None = None

    @property
    def name(self) -> str:
        """What messages call the source: without a password."""
        return describe_source(self.source)

    def open(self) -> Dataset:
        """Find the shards of the source: anew, unless that would be other rows."""
        if self._kept is not None:
            return self._kept
        dataset = open_dataset(self.source, self.encodings, self.resources, self.reading)
        if not dataset.lasting:
            self._kept = dataset
        return dataset

    def close(self) -> None:
        """Give back what a server or a query holds for this job."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def item_names(self, known: Sequence[str] = ()) -> ItemNames:
        """Return the item list, closed if the caller gave one."""
        return ItemNames(self.items or known, closed=self.items is not None)

    def long_rows(
        self, dataset: Dataset, plans: list[LongPlan], names: ItemNames, *, as_text: bool
    ) -> LongRows:
        """Return the reader of long rows."""
        return LongRows(dataset.shards, plans, self.reading, names, as_text=as_text)


class _Run:
    """One attempt at counting, with its checkpoint and its progress."""

    def __init__(
        self,
        job: Job,
        weighting: Weighting | None,
        checkpoint: str | PathLike[str] | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._job, self._weighting = job, weighting
        self._dataset = job.open()
        self._plans = plan_shards(self._dataset.shards, job.reading)
        fingerprint = ""
        if checkpoint is not None:
            fingerprint = fingerprint_run(self._dataset, job.reading, weighting, job.items)
        self._checkpoint = Checkpoint(checkpoint, fingerprint)
        self._report = Reporter(progress, self._dataset.rows)
        if self._dataset.rows > MANY_ROWS:
            load_kernels()
        # Going on within a query's rows would need the same rows in the same order again.
        same_again = self._dataset.lasting or checkpoint is None
        self._fresh = State("ordered" if same_again else "buckets")

    def count(self) -> PairCounts:
        with self._checkpoint.lock():
            return self._count()

    def _count(self) -> PairCounts:
        saved = self._checkpoint.load()
        start, state = saved or (None, self._fresh)
        while True:
            try:
                counts = self._count_from(start, state)
            except NotNumbers:
                start, state = None, replace(self._fresh, phase=state.phase, as_text=True)
            except OutOfOrder:
                start, state = None, State("buckets", as_text=state.as_text)
            else:
                self._checkpoint.remove()
                self._report.finish()
                return counts
            self._report.rows = 0

    def _count_from(self, start: PairCounts | None, state: State) -> PairCounts:
        names = self._job.item_names(() if start is None else start.items)
        tally = Accumulator(start)
        self._report.rows = state.rows
        if isinstance(self._plans[0], WidePlan):
            self._count_wide(tally, state, names)
        else:
            rows = self._job.long_rows(self._dataset, self._plans, names, as_text=state.as_text)
            if state.phase == "ordered":
                reading, place = self._job.reading, (state.row, state.finished, state.last)
                self._count_ordered(tally, state, ordered_batches(rows, reading, *place))
            else:
                self._count_buckets(tally, state, rows, rows.blocks(), self._job.reading)
        return tally.counts(names.names)

    def _count_wide(self, tally: Accumulator, state: State, names: ItemNames) -> None:
        plans = cast(list[WidePlan], self._plans)
        rows = WideRows(self._dataset.shards, plans, self._job.reading, names)
        begun = state.phase == "ordered" and state.row > 0
        if begun or (state.phase == "ordered" and not rows.persons_come_back(self._job.resources)):
            self._count_ordered(tally, state, rows.batches(state.row, state.finished))
            return
        state = replace(state, phase="buckets", as_text=True)
        # A wide table has turned right and wrong around already where that was asked for.
        reading = replace(self._job.reading, one_means="right")
        self._count_buckets(tally, state, rows, rows.blocks(), reading)

    def _count_ordered(self, tally: Accumulator, state: State, batches: Iterator[Batch]) -> None:
        rows = state.rows
        with closing(batches):  # type: ignore[type-var]
            for batch in batches:
                tally.add(batch.items, batch.store, self._weighting)
                rows += batch.rows
                if self._checkpoint.is_due():
                    last = None if batch.persons is None else _plain_id(batch.persons[-1])
                    done = replace(
                        state, row=batch.stop, finished=batch.finished, last=last, rows=rows
                    )
                    self._checkpoint.save(tally.counts(), done)
                self._report.add(batch.rows)

    def _count_buckets(
        self,
        tally: Accumulator,
        state: State,
        rows: Rows,
        blocks: Iterable[Block],
        reading: Reading,
    ) -> None:
        keeps = self._checkpoint.folder is not None
        with _BucketFolder(self._checkpoint, self._job.resources) as folder:
            if state.sizes:
                buckets = Buckets(folder, state.bits, as_text=state.as_text)
                buckets.sizes = list(state.sizes)
            else:
                buckets, state = self._distribute(folder, state, blocks)
                if keeps and buckets.on_disk:
                    self._checkpoint.save(tally.counts(rows.items.names), state)
            left = [b for b in range(1 << buckets.bits) if b not in state.done]
            done, counted = list(state.done), state.rows
            for batch in bucket_batches(buckets, rows, reading, left):
                tally.add(batch.items, batch.store, self._weighting)
                done.append(batch.bucket)
                counted += batch.rows
                if not keeps:
                    buckets.remove(batch.bucket)
                elif buckets.on_disk and self._checkpoint.is_due():
                    state = replace(state, done=tuple(done), rows=counted)
                    self._checkpoint.save(tally.counts(), state)
                self._report.add(batch.rows)

    def _distribute(
        self, folder: Path, state: State, blocks: Iterable[Block]
    ) -> tuple[Buckets, State]:
        cells = self._dataset.rows
        if isinstance(self._plans[0], WidePlan):
            cells *= max(len(plan.items) for plan in self._plans)
        self._report.total = 2 * cells
        bits = choose_bits(cells, self._job.resources.memory)
        buckets = Buckets(folder, bits, as_text=state.as_text)
        with closing(run_ahead(iter(blocks))) as ahead:
            buckets.fill(ahead, self._report.add)
        sizes = tuple(buckets.sizes) if buckets.on_disk else ()
        return buckets, replace(state, bits=bits, sizes=sizes, rows=self._report.rows)


class _BucketFolder:
    """Where distributed rows go: into the checkpoint, or into a folder that is deleted."""

    def __init__(self, checkpoint: Checkpoint, resources: Resources) -> None:
        self._kept = checkpoint.bucket_folder if checkpoint.folder is not None else None
        self._resources = resources
        self._made: Path | None = None

    def __enter__(self) -> Path:
        if self._kept is not None:
            return self._kept
        self._made = make_temporary(self._resources.folder, "discreet-rows-")
        return self._made

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)


def _plain_id(value: Any) -> int | str:
    return str(value) if isinstance(value, str) else int(value)
