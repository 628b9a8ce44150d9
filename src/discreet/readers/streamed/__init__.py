"""Answers that do not fit into memory: files, databases and queries of any size.

In: a source of any size. Out: :class:`StreamedAnswers`, which stay where they are, are gone through
in batches of whole persons, and fulfil :class:`discreet.answers.protocol.Answers`. Opening reads
nothing. The first question goes through the source and learns its items and totals on the way,
whatever it asks; `select` and `cap` read nothing either, and what they ask for happens in the next
pass. What needs all answers at once reads them into memory
(:func:`discreet.readers.answers.read_planned`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from discreet.answers import protocol
from discreet.answers.protocol import Answers, Job
from discreet.answers.responses import Responses
from discreet.answers.select import check_cap
from discreet.coding.ids import check_items
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.counts import PairCounts
from discreet.counts.folds import Tally
from discreet.counts.pairs import Weighting
from discreet.errors import BadUsage, DiscreetError
from discreet.readers.streamed import counting
from discreet.readers.streamed.passes import Passes, as_texts
from discreet.secure import KeyedSource, RandomSource, draw_key
from discreet.tables.resources import Progress, Resources

T = TypeVar("T")

#: Rows of a query that are copied, so that persons can be gone through again.
COPIED_ROWS = 1_000_000


def open_stream(
    source: str | PathLike[str],
    *,
    reading: Reading | None = None,
    resources: Resources | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> StreamedAnswers:
    """Return a source of any size as answers of whole persons.

    A query is run once for a release, and its rows are copied. Close the result, or use it in a
    ``with`` statement: then what was copied or distributed is deleted at once.

    Parameters
    ----------
    source, reading, resources
        As in :func:`discreet.readers.streamed.counting.count_source`.
    progress
        Called a few times a second with a :class:`Progress`, anew for every pass.

    Examples
    --------
    >>> query = ("SELECT * FROM (VALUES ('ann', 'q1', 1), ('bob', 'q1', 0), ('ann', 'q2', 0)) "
    ...          "AS answers(person, item, response)")
    >>> with open_stream(query) as answers:
    ...     answers.items, answers.n_persons, answers.n_answers
    (('q1', 'q2'), 2, 3)
    """
    passes = Passes(source, reading=reading, resources=resources, progress=progress)
    return StreamedAnswers(_Source(passes))


# -- transforms: what every batch of a later pass goes through ------------------------------------


def _select(items: tuple[str, ...], batch: Responses) -> Responses:
    """Leave items out, bring them into another order, or add unanswered ones."""
    return batch if batch.items == items else batch.select(items)


class StreamedCap:
    """Keep a random part of every person's answers: the same part in every pass."""

    def __init__(self, limit: int, source: RandomSource) -> None:
        self._limit, self._key, self._is_private = limit, draw_key(source), source.is_private

    def begin(self) -> Callable[[Responses], Responses]:
        """Return what a pass does to its batches, which come in the same order in each."""
        source = KeyedSource(self._key, is_private=self._is_private)
        return lambda batch: batch.cap(self._limit, source)


#: What a batch goes through; a cap is told when a pass begins.
Transform = Callable[[Responses], Responses] | StreamedCap


# -- answers -----------------------------------------------------------------------------------


class _Source:
    """A source, and what the passes over it have taught."""

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self._totals: counting.StreamedItemTotals | None = None

    @property
    def lasts(self) -> bool:
        """Whether it gives the same rows again, or so few that they are copied."""
        dataset = self.passes.dataset
        return dataset.steady or dataset.rows <= COPIED_ROWS

    @property
    def totals(self) -> counting.StreamedItemTotals:
        """Items, their totals and the number of persons: learnt by a pass if need be."""
        if self._totals is None:
            self._totals = counting.find_totals(self.passes)
        return self._totals

    def count(self, weighting: Weighting | None, tally: Tally | None) -> PairCounts:
        """Count pairs in one pass, and learn the totals."""
        if self._totals is None and not self.lasts:
            # A query that nobody has asked before is counted as it comes, without a copy.
            return counting.count_passes(self.passes, weighting, tally)
        sums = self.passes.fold(
            lambda: counting.Accumulator(weighting, tally, rows=self.passes.dataset.rows),
            lambda sums, batch: sums.add(batch.items, batch.store, batch.persons, batch.rows),
        )
        counts = sums.counts()
        self.learn(counting.total_counts(counts))
        return counts

    def learn(self, totals: counting.StreamedItemTotals) -> None:
        """Keep what a pass found, or refuse other persons than an earlier one saw."""
        if self._totals is not None:
            self.check_persons(totals.persons)
        self._totals = totals

    def check_persons(self, n_persons: int) -> None:
        """Refuse a pass that saw other persons than the first."""
        first = self.totals.persons
        if n_persons != first:
            raise BadUsage(
                f"the answers had {first:,} persons at first and {n_persons:,} now: they were "
                "changed while they were being read. Wait until nobody writes to them, or copy "
                "them, and start anew."
            )


class StreamedAnswers(Answers):
    """A source that can be gone through again and again, person by person.

    It is made by :func:`open_stream`. Persons come in the same order in every pass.
    """

    def __init__(
        self,
        source: _Source,
        items: tuple[str, ...] | None = None,
        transforms: tuple[Transform, ...] = (),
    ) -> None:
        self._source, self._items, self._transforms = source, items, transforms
        self._caps = [each for each in transforms if isinstance(each, StreamedCap)]

    def close(self) -> None:
        """Delete what was copied from the source."""
        self._source.passes.close()

    @property
    def lasts(self) -> bool:  # type: ignore[override]
        """Whether persons can be gone through again; the many rows of a query come once."""
        return self._source.lasts

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items, in the order in which they appear."""
        return self._source.totals.items if self._items is None else self._items

    @property
    def steps(self) -> tuple[int, ...]:
        """Per item, how many steps it has: 1 for right and wrong."""
        return self._source.passes.reading.steps_of(self.items)

    @property
    def reading(self) -> Reading:
        """How values become answers."""
        return self._source.passes.reading.about_values

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What the data decided about how they are read; known after a pass."""
        _ = self._source.totals
        return self._source.passes.detected

    @property
    def n_persons(self) -> int:
        """Number of persons."""
        return self._source.totals.persons

    @property
    def has_ids(self) -> bool:
        """Whether persons have ids; otherwise rows are numbered."""
        return self._source.passes.has_ids

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_answers(self) -> int:
        """Number of answers that were given."""
        return self.totals.n_answers

    @property
    def totals(self) -> counting.StreamedItemTotals:
        """Totals of every item; not known of capped answers before they are drawn."""
        if self._caps:
            raise DiscreetError(
                "how many answers a cap keeps is known when it is drawn: count the answers, and "
                "take the totals of the counts"
            )
        return self._source.totals.select(self.items)

    def select(self, items: Sequence[object]) -> StreamedAnswers:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        names = check_items(items, len(items))
        return StreamedAnswers(self._source, names, (*self._transforms, partial(_select, names)))

    def cap(self, max_answers: int, source: RandomSource) -> StreamedAnswers:
        """Let each person keep a uniformly random ``max_answers`` of more answers.

        The persons are whole, each is in one batch, and what each keeps is drawn when the
        stream is read, from a key that is drawn now: every pass keeps the same answers.
        """
        limit = check_cap(max_answers)
        if limit >= self.n_items:
            return self
        steps = *self._transforms, StreamedCap(limit, source)
        return StreamedAnswers(self._source, self._items, steps)

    def batches(self, *, with_ids: bool = False) -> Iterator[Responses]:
        """Yield batches of whole persons, all with the same items, and with their ids if asked."""
        steps = [one.begin() if isinstance(one, StreamedCap) else one for one in self._transforms]
        items, n_persons = self.items, 0
        for batch in self._source.passes.batches():
            persons = as_texts(batch.persons) if with_ids else None
            answers = Responses(batch.items, persons, batch.store)
            for step in steps:
                answers = step(answers)
            n_persons += answers.n_persons
            yield _select(items, answers)
        self._source.check_persons(n_persons)

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count pairs in one pass."""
        if not self._transforms:
            return self._source.count(weighting, tally)
        batches = self.batches(with_ids=tally is not None)
        return counting.count_stream(batches, items=self.items, weighting=weighting, tally=tally)

    def reduce_all(self, jobs: Sequence[Job[Any]]) -> list[Any]:
        """Fold jobs over batches of persons, all of them in one pass."""
        batches = self.batches(with_ids=any(job.every is not None for job in jobs))
        blocks = ((batch.store, batch.person_ids) for batch in batches)
        return protocol.fold_blocks(blocks, self.n_persons, jobs)

    def digest(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests and their number, for the ledger.

        Capped answers are refused: the ledger knows data by what it was before the cap.
        """
        self._refuse_cap()
        ordered = self.select(sorted(self.items))
        return protocol.add_digests(
            protocol.digest_store(key, batch.items, batch.store) for batch in ordered.batches()
        )

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of the persons' ids, in one pass."""
        self._refuse_cap()
        return protocol.digest_ids(key, (batch.person_ids for batch in self.batches(with_ids=True)))

    def _refuse_cap(self) -> None:
        if self._caps:
            raise BadUsage(
                "these answers were capped already, and the ledger recognises data by all answers. "
                "Give release the answers without a cap: it draws the cap itself, from max_answers"
            )
