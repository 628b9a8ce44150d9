"""Go through the persons of a source of any size, once or again and again.

In: a path, a pattern, a database, a server or a query. Out: passes over batches of whole persons,
every person in exactly one of them. The first pass takes rows to be in person order, ids to be
whole numbers, text to be UTF-8 and answers to be right or wrong until they turn out not to be: then
it says that all it gave is to be forgotten, and starts anew, with rows distributed into buckets,
ids as text, another encoding, or answers with steps, whose categories are first looked for in all
rows. Later passes see the same rows: they read the buckets, or the source again, and fail if
that was changed in the meantime. A source that need not give the same rows again is copied first.
What was copied or distributed goes when the passes are closed.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from discreet.atomic import make_temporary
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected, join_detected
from discreet.coding.steps import CategoryScale
from discreet.errors import BadUsage
from discreet.jit import load_kernels
from discreet.readers import batches
from discreet.readers.rows import (
    BatchPosition,
    ItemNames,
    LongRows,
    NotNumbers,
    OutOfOrder,
    PersonBatch,
    WideRows,
    open_rows,
    plan_tables,
    warn_alike,
)
from discreet.tables.columns import WidePlan
from discreet.tables.dataset import Dataset, describe_source, open_dataset, settle_reading
from discreet.tables.ids import make_texts
from discreet.tables.inspection.refusals import BadAnswer, settle_after, settle_scale
from discreet.tables.opener import Encodings, Source
from discreet.tables.paths import warn_encoding
from discreet.tables.resources import Progress, Reporter, Resources, run_ahead
from discreet.tables.sources import NotUtf8

T = TypeVar("T")
Total = TypeVar("Total")

#: Rows from which on the compiled loops are worth their loading time at once.
MANY_ROWS = 5_000_000


@dataclass(frozen=True)
class Restart:
    """Word that all batches so far are to be forgotten: the pass starts anew, from a place.

    Attributes
    ----------
    items
        Items known by now, in the order in which the batches will have them.
    position
        Where the pass stands: before all persons.
    """

    items: tuple[str, ...]
    position: BatchPosition
    rows: int = 0


class Passes:
    """The persons of a source, pass after pass.

    Parameters
    ----------
    source
        What the user named.
    reading, resources
        Column names, layout and scoring; memory, and a folder for what does not fit.
    progress
        Called a few times a second, anew for every pass.
    """

    def __init__(
        self,
        source: str | PathLike[str],
        *,
        reading: Reading | None = None,
        resources: Resources | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._resources = resources or Resources()
        self.reading = settle_reading(source, reading or Reading(), self._resources)
        self._source, self._progress = source, progress
        self._encodings: Encodings = {}
        self.dataset = self._open()
        self._identity = _identify(self.dataset)
        self._plans: Any = None
        self._detected: list[Detected] = []
        self._again: Callable[[], Iterator[PersonBatch]] | None = None
        self._folder: Path | None = None
        self._remove: Callable[[], Any] = lambda: None
        self._is_closed = False
        # Whether the source was changed while rows were distributed; None where they were not.
        self._is_torn: bool | None = None
        if self.reading.asked.is_said:
            self._find_steps()

    @property
    def name(self) -> str:
        """What messages call the source: without a password."""
        return describe_source(self._source)

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What the data decided about how it is read, as far as it was read."""
        return join_detected([self._detected, self.reading.detected])

    @property
    def has_ids(self) -> bool:
        """Whether a column has the ids of persons."""
        return self._plan()[0].person is not None

    def close(self) -> None:
        """Delete what was copied; without it that happens when nobody needs the passes."""
        self._remove()
        self.dataset.close()
        self._again, self._is_closed = None, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the first pass ----------------------------------------------------------------------

    def first(
        self,
        position: BatchPosition | None = None,
        items: Sequence[str] = (),
        keep: Path | None = None,
    ) -> Iterator[PersonBatch | Restart]:
        """Yield batches of whole persons, and word when all so far are to be forgotten.

        Parameters
        ----------
        position, items
            Where an earlier pass stood, and the items that it knew.
        keep
            A folder for distributed rows that outlives this pass, so that another can go on.
        """
        self._check_open()
        if self.dataset.rows > MANY_ROWS:
            load_kernels()
        # Going on within a query's rows would need the same rows in the same order again.
        fresh = BatchPosition("ordered" if self.dataset.lasting or keep is None else "buckets")
        position = position or fresh
        report = Reporter(self._progress, self.dataset.rows)
        while True:
            report.rows = position.rows
            try:
                yield from self._try(position, items, keep, report)
                break
            except NotUtf8 as found:
                # Rare: the first megabytes were UTF-8. All is read again, this file otherwise.
                self._encodings[found.path] = warn_encoding(found.path)
                self._plans, position = None, fresh
            except NotNumbers:
                position = BatchPosition(position.phase, as_text=True)
            except OutOfOrder:
                position = BatchPosition("buckets", as_text=position.as_text)
            except BadAnswer as refusal:
                self._find_steps(refusal)
                # Rows that were distributed so far would be there twice.
                for folder in (keep, self._folder and self._folder / "rows"):
                    shutil.rmtree(folder or "", ignore_errors=True)
                position = fresh
            items = ()
            yield Restart((), position)
        report.finish()
        if not self.reading.listed:
            warn_alike("Items", make_texts(self._names.names))

    def _find_steps(self, refusal: BadAnswer | None = None) -> None:
        """Look at all values, and read steps as such; where they are none, refuse as before."""
        settled: Reading | None = None
        if refusal is not None and not self.reading.may_have_steps:
            raise refusal
        if refusal is not None:
            settled = settle_after(refusal, self.reading, self._look)
        elif self.reading.may_have_steps:
            settled = settle_scale(self.reading, self._look)
        if settled is not None and settled.scale is not None:
            self.take_scale(settled.scale)

    def take_scale(self, scale: CategoryScale) -> None:
        """Read steps as this scale says, which was found in all rows, now or by an earlier run."""
        self.reading, self._plans = replace(self.reading, scale=scale), None
        if self.dataset.lasting:
            self.dataset.close()
            self.dataset = self._open()

    def _look(self, take: Callable[[Iterator[Source]], T], reading: Reading) -> T:
        if not self.dataset.lasting:
            return take(shard.open() for shard in self.dataset.shards)
        with closing(self._open(reading)) as dataset:
            return take(shard.open() for shard in dataset.shards)

    def _try(
        self, position: BatchPosition, items: Sequence[str], keep: Path | None, report: Reporter
    ) -> Iterator[PersonBatch | Restart]:
        rows = self._rows(position, items)
        self._detected = rows.detected  # which grows as rows are read
        is_ordered = position.phase == "ordered"
        if is_ordered and not position.row and isinstance(rows, WideRows):
            rows.check_order(self._resources)
        spread = self._spread(rows, position, keep, report)
        steps: Any = _ordered(rows, position) if is_ordered else spread
        with closing(steps):
            for step in steps:
                yield step
                report.add(step.rows)
        if is_ordered and self.dataset.steady:
            begin = BatchPosition(as_text=position.as_text)
            self._again = lambda: _ordered(self._rows(begin), begin)

    def _rows(self, position: BatchPosition, items: Sequence[str] = ()) -> LongRows | WideRows:
        """Return the reader of the rows."""
        plans, shards = self._plan(), self.dataset.shards
        self._names = ItemNames(items)
        is_text = position.as_text or isinstance(plans[0], WidePlan)
        return open_rows(
            lambda: ((shard.open(), plan) for shard, plan in zip(shards, plans, strict=True)),
            plans[0], self.reading, self._names, as_text=is_text,
        )  # fmt: skip

    def _plan(self) -> Any:
        if self._plans is None:
            sources = (shard.open() for shard in self.dataset.shards)
            self._plans = [plan for _, plan in plan_tables(sources, self.reading)]
        return self._plans

    def _spread(
        self,
        rows: LongRows | WideRows,
        position: BatchPosition,
        keep: Path | None,
        report: Reporter,
    ) -> Iterator[PersonBatch | Restart]:
        """Distribute the rows, unless an earlier pass did so, and yield bucket after bucket."""
        folder = keep or self._private_folder() / "rows"
        width = max(len(getattr(plan, "items", "1")) for plan in self._plan())
        cells, bits = self.dataset.rows * width, position.bits
        if not position.sizes:
            bits = batches.choose_bits(cells, self._resources.memory)
        ordered = rows.reading.order_by is not None
        buckets = batches.Buckets(
            folder, bits, as_text=rows.as_text, sizes=position.sizes, ordered=ordered
        )
        if not position.sizes:
            report.total = 2 * cells
            with closing(run_ahead(rows.blocks())) as blocks:
                buckets.fill(blocks, report.add)
            self._is_torn = self._is_changed()
            self._check_unchanged()
            sizes = tuple(buckets.sizes) if buckets.on_disk else ()
            fresh = BatchPosition("buckets", bits=bits, sizes=sizes, as_text=rows.as_text)
            position = replace(fresh, rows=report.rows)
        begin = replace(position, done=(), rows=0)
        self._again = lambda: batches.bucket_batches(buckets, rows, begin)
        if not position.done:
            yield Restart(tuple(rows.items.names), position)
        yield from batches.bucket_batches(buckets, rows, position)

    def _private_folder(self) -> Path:
        """Return a folder that only its owner can open and that goes with the passes."""
        if self._folder is None:
            self._folder = make_temporary(self._resources.folder, "discreet-rows-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    # -- later passes ------------------------------------------------------------------------

    def batches(self) -> Iterator[PersonBatch]:
        """Yield batches of whole persons, the same in every pass.

        The items of a batch are those known so far: a beginning of the final list.
        """
        self._check_open()
        reread = self._again or self._settle()
        self._check_unchanged()
        report = Reporter(self._progress, self.dataset.rows)
        try:
            for batch in reread():
                yield batch
                report.add(batch.rows)
        except (OutOfOrder, NotNumbers, NotUtf8):
            raise self._changed() from None
        self._check_unchanged()
        report.finish()

    def fold(
        self, start: Callable[[], Total], add: Callable[[Total, PersonBatch], object]
    ) -> Total:
        """Add all batches to something that can be begun anew, in the first pass or a later one."""
        if self._again is None:
            self.materialise()
        total = start()
        steps: Any = self.first() if self._again is None else self.batches()
        with closing(steps):
            for step in steps:
                if isinstance(step, Restart):
                    total = start()
                else:
                    add(total, step)
        return total

    def materialise(self) -> None:
        """Copy the rows of a source that need not give them again."""
        if not self.dataset.steady:
            source = self.dataset
            self.dataset = batches.copy_dataset(source, self._plan(), self._private_folder())
            source.close()

    def _settle(self) -> Callable[[], Iterator[PersonBatch]]:
        """Find out how rows are to be read: what is handed out cannot be called back."""
        self.materialise()
        with closing(self.first()) as steps:  # type: ignore[type-var]
            while self._again is None:
                next(steps, None)
        return self._again

    # -- rows that must not change -----------------------------------------------------------

    def _open(self, reading: Reading | None = None) -> Dataset:
        rules = reading or self.reading
        return open_dataset(self._source, self._encodings, self._resources, rules)

    def _is_changed(self) -> bool:
        # A copy does not change: nobody else writes into its folder.
        return self.dataset.lasting and _identify(self._open()) != self._identity

    def _check_unchanged(self) -> None:
        if self._is_changed() if self._is_torn is None else self._is_torn:
            raise self._changed()

    def _changed(self) -> BadUsage:
        return BadUsage(
            f"{self.name} was changed while it was being read, so that one pass over it would not "
            "see what another saw. Wait until nobody writes to it, or copy it, and start anew."
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise BadUsage(f"{self.name} was closed; open it again to go through it.")


def _ordered(rows: LongRows | WideRows, position: BatchPosition) -> Iterator[PersonBatch]:
    return (
        rows.batches(position)
        if isinstance(rows, WideRows)
        else batches.ordered_batches(rows, position)
    )


def _identify(dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    return tuple(shard.identity for shard in dataset.shards)


def as_texts(ids: Any) -> Any:
    """Return the ids of a batch as Arrow strings; None where there are none."""
    if ids is None or isinstance(ids, pa.Array):
        return ids
    if ids.dtype == np.int64:
        return pa.array(ids).cast(pa.string())
    return pa.array(ids, pa.string())
