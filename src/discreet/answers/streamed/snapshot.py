"""One view of a source that every pass sees alike: the same rows, whole persons, each once.

In: a source of any size. Out: as many passes over batches of whole persons as are wanted. Rows
in person order are read where they are, and a pass fails if they were changed in the meantime.
Others are distributed into buckets once, and every pass reads the buckets. A query is run once
and its rows are copied. What was copied or distributed goes when the snapshot is closed.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.streamed.batches import Batch, bucket_batches, ordered_batches
from discreet.answers.streamed.blocks import LongRows, NotNumbers, plan_shards
from discreet.answers.streamed.counting import Job
from discreet.answers.streamed.grouping import Buckets, OutOfOrder, check_order, choose_bits
from discreet.answers.streamed.materialise import copy_dataset
from discreet.answers.streamed.wide import WideRows
from discreet.atomic import make_temporary
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.secure import RandomSource
from discreet.tables.delimited import NotUtf8
from discreet.tables.dataset import Dataset
from discreet.tables.paths import warn_encoding
from discreet.tables.resources import Progress, Reporter, run_ahead
from discreet.tables.roles import LongPlan, WidePlan
from discreet.types import Int64Array

Pass = Callable[[], Iterator[Batch]]
Total = TypeVar("Total")


class Passes(Protocol):
    """Something whose persons can be gone through again and again."""

    def batches(self) -> Iterator[Batch]:
        """Yield batches of whole persons; every person is in exactly one of them."""
        ...


class Closable:
    """Something that deletes what it copied when a ``with`` statement ends."""

    def close(self) -> None:
        """Delete what was copied."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Snapshot(Closable):
    """The rows of a source, held still.

    Parameters
    ----------
    job
        What is to be read, and how.
    progress
        Called a few times a second, anew for every pass.
    """

    def __init__(self, job: Job, progress: Callable[[Progress], None] | None = None) -> None:
        self._job, self._progress = job, progress
        self._folder: Path | None = None
        self._remove: Callable[[], Any] = lambda: None
        self._dataset = job.open()
        self._identity = _identify(self._dataset)
        self._plans: Any = plan_shards(self._dataset.shards, job.reading)
        self._is_copy = self._is_closed = False
        self._is_known = False  # whether the order and the kind of ids have been seen
        self._pass: Pass | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the source itself gives the same rows again; a query need not."""
        return self._dataset.steady

    def close(self) -> None:
        """Delete what was copied; without it that happens when nobody needs the snapshot."""
        self._remove()
        self._job.close()
        self._pass, self._is_closed = None, True

    def batches(self) -> Iterator[Batch]:
        """Yield batches of whole persons; every person is in exactly one of them.

        The items of a batch are those known so far: a beginning of the final list.
        """
        if self._is_closed:
            raise BadUsage(f"{self._job.name} was closed; open it again to go through it.")
        if self._pass is None:
            self._pass = self._prepare()
        report = Reporter(self._progress, self._dataset.rows)
        for batch in self._pass():
            yield batch
            report.add(batch.rows)
        report.finish()

    def fold(self, start: Callable[[], Total], add: Callable[[Total, Batch], None]) -> Total:
        """Add all batches to something that can be begun anew.

        The first pass then needs no look at the ids before it: rows are taken to be in person
        order, and where they are not everything is begun anew with rows that are distributed.
        """
        as_text = is_bucketed = False
        while True:
            total = start()
            try:
                if self._pass is None:
                    self._pass = self._attempt(as_text=as_text, is_bucketed=is_bucketed)
                for batch in self.batches():
                    add(total, batch)
            except NotNumbers:
                as_text, self._pass = True, None
            except OutOfOrder:
                is_bucketed, self._pass = True, None
            except NotUtf8 as found:
                # Rare: the first megabytes were UTF-8. All is read again, this file otherwise.
                self._job.encodings[found.path] = warn_encoding(found.path)
                self._pass = None
            else:
                self._is_known = True
                return total

    # -- how passes are made -----------------------------------------------------------------

    def _prepare(self) -> Pass:
        self._hold_still()
        if isinstance(self._plans[0], WidePlan):
            return self._prepare_wide(self._plans)
        in_order, as_text = self._look_at_ids(self._plans)
        self._is_known = True
        return self._prepare_long(self._plans, in_order=in_order, as_text=as_text)

    def _attempt(self, *, as_text: bool, is_bucketed: bool) -> Pass:
        """Return a first pass over long rows that were not looked at; see :meth:`fold`."""
        self._hold_still()
        if isinstance(self._plans[0], WidePlan):
            return self._prepare_wide(self._plans)
        return self._prepare_long(self._plans, in_order=not is_bucketed, as_text=as_text)

    def _hold_still(self) -> None:
        if not self._dataset.steady and not self._is_copy:
            self._dataset = copy_dataset(self._dataset, self._plans, self._private_folder())
            self._is_copy = True

    def _prepare_wide(self, plans: list[WidePlan]) -> Pass:
        job = self._job
        rows = WideRows(self._dataset.shards, plans, job.reading, job.item_names())
        if not rows.persons_come_back(job.resources):
            return lambda: self._read_again(rows.batches())
        cells = self._dataset.rows * max(len(plan.items) for plan in plans)
        buckets = self._distribute(rows.blocks(), cells, as_text=True)
        # A wide table has turned right and wrong around already where that was asked for.
        reading = replace(job.reading, one_means="right")
        return lambda: bucket_batches(buckets, rows, reading, range(1 << buckets.bits))

    def _prepare_long(self, plans: list[LongPlan], *, in_order: bool, as_text: bool) -> Pass:
        reading = self._job.reading
        if in_order:
            return lambda: self._read_again(
                ordered_batches(self._long_rows(plans, as_text=as_text), reading)
            )
        rows = self._long_rows(plans, as_text=as_text)
        buckets = self._distribute(rows.blocks(), self._dataset.rows, as_text=as_text)
        return lambda: bucket_batches(buckets, rows, reading, range(1 << buckets.bits))

    def _long_rows(self, plans: list[LongPlan], *, as_text: bool) -> LongRows:
        return self._job.long_rows(self._dataset, plans, self._job.item_names(), as_text=as_text)

    def _look_at_ids(self, plans: list[LongPlan]) -> tuple[bool, bool]:
        """Return whether ids ascend, and whether they must be kept as text."""
        as_text = False
        while True:
            try:
                return self._check_ids(plans, as_text=as_text), as_text
            except NotNumbers:
                as_text = True
            except NotUtf8 as found:
                self._job.encodings[found.path] = warn_encoding(found.path)

    def _check_ids(self, plans: list[LongPlan], *, as_text: bool) -> bool:
        persons = self._long_rows(plans, as_text=as_text).persons()
        try:
            check_order(persons)
        except OutOfOrder:
            # The rest is looked at too: one id that is no number decides about all of them.
            for _ in persons:
                pass
            return False
        return True

    def _distribute(self, blocks: Any, cells: int, *, as_text: bool) -> Buckets:
        bits = choose_bits(cells, self._job.resources.memory)
        folder = self._private_folder() / "rows"
        shutil.rmtree(folder, ignore_errors=True)  # of an attempt that found other ids
        buckets = Buckets(folder, bits, as_text=as_text)
        report = Reporter(self._progress, cells)
        try:
            with closing(run_ahead(blocks)) as ahead:
                buckets.fill(ahead, report.add)
        except NotNumbers:
            if not self._is_known:
                raise
            raise self._changed() from None
        self._check_unchanged()
        return buckets

    def _private_folder(self) -> Path:
        """Return a folder that only its owner can open and that goes with the snapshot."""
        if self._folder is None:
            self._folder = make_temporary(self._job.resources.folder, "discreet-rows-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    # -- rows that are read where they are -----------------------------------------------------

    def _read_again(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches, and fail if they are not those of the first pass."""
        self._check_unchanged()
        try:
            yield from batches
        except (OutOfOrder, NotNumbers):
            if not self._is_known:
                raise
            raise self._changed() from None
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        # A copy does not change: nobody else writes into its folder.
        if not self._is_copy and _identify(self._job.open()) != self._identity:
            raise self._changed()

    def _changed(self) -> BadUsage:
        return BadUsage(
            f"{self._job.name} was changed while it was being read, so that one pass over it "
            "would not see what another saw. Wait until nobody writes to it, or copy it, and "
            "start anew."
        )


def _identify(dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    return tuple(shard.identity for shard in dataset.shards)


@contextmanager
def explain_encoding() -> Iterator[None]:
    """Turn text that stops being UTF-8 in the middle of a pass into words."""
    try:
        yield
    except NotUtf8 as found:
        raise BadResponses(
            f"{found.path} begins as UTF-8 text but is not UTF-8 further down, where names can no "
            "longer be read. Save it as UTF-8."
        ) from None


# What can be asked of a stream of persons before it is read: totals, other items, a cap.
#
# In: batches of whole persons. Out: per item totals of a first pass, and steps that every batch of
# a later pass goes through. A cap is good for one pass only, because a second one would be another
# draw.


@dataclass(frozen=True)
class ItemTotals:
    """Items, how often each was answered and answered right, and how many persons there are."""

    items: tuple[str, ...]
    answers: Int64Array
    right: Int64Array
    persons: int

    def select(self, items: tuple[str, ...]) -> ItemTotals:
        """Return the totals of these items; zero for items that nobody answered."""
        place = {name: number for number, name in enumerate(self.items)}
        columns = [place.get(name, len(self.items)) for name in items]
        answers, right = (np.append(values, 0)[columns] for values in (self.answers, self.right))
        return ItemTotals(items, answers, right, self.persons)


def find_totals(snapshot: Snapshot) -> ItemTotals:
    """Go through all persons once."""
    found = snapshot.fold(_Totals, _Totals.add)
    return ItemTotals(found.items, found.answers, found.right, found.persons)


class _Totals:
    """Totals so far, while new items still appear."""

    def __init__(self) -> None:
        self.items: tuple[str, ...] = ()
        self.answers = self.right = np.zeros(0, dtype=np.int64)
        self.persons = 0

    def add(self, batch: Batch) -> None:
        """Add the persons of a batch."""
        more = len(batch.items) - len(self.items)
        answers, right = batch.store.item_totals()
        self.answers = np.pad(self.answers, (0, more)) + answers
        self.right = np.pad(self.right, (0, more)) + right
        self.persons += batch.store.n_persons
        self.items = batch.items


class Selection:
    """Leave items out, bring them into another order, or add unanswered ones."""

    def __init__(self, items: tuple[str, ...]) -> None:
        self._items = items

    def begin(self) -> None:
        """Get ready for a pass."""

    def apply(self, batch: Responses) -> Responses:
        """Return the items of one batch."""
        return batch if batch.items == self._items else batch.select(self._items)


class Cap:
    """Keep a random part of every person's answers; drawn once, so good for one pass only."""

    def __init__(self, most: int, source: RandomSource) -> None:
        self._most, self._source = most, source
        self._is_drawn = False

    def begin(self) -> None:
        """Get ready for the pass, or refuse: a second one would be another draw."""
        if self._is_drawn:
            raise DiscreetError(
                "the cap on answers of a stream is drawn while the stream is read, so capped "
                "answers can be gone through once: a second pass would keep other answers. Count "
                "all that is needed in one pass, or cap anew"
            )
        self._is_drawn = True

    def apply(self, batch: Responses) -> Responses:
        """Return what the persons of one batch keep."""
        return batch.cap(self._most, self._source)
