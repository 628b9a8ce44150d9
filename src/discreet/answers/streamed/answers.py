"""Answers that stay on disk but can be looked at again, for what needs persons twice.

In: a source of any size. Out: something that :func:`discreet.fit` and :func:`discreet.release`
can treat like :class:`~discreet.Responses`: it knows its totals, counts with any
weighting, leaves items out, caps answers, and hands out rows as long as they are asked for in
ascending order. Going back starts a new pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, cast

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.streamed.accumulate import Tally
from discreet.answers.streamed.counting import Job, count_job, count_source
from discreet.answers.streamed.snapshot import (
    Cap,
    Closable,
    ItemTotals,
    Passes,
    Selection,
    Snapshot,
    explain_encoding,
    find_totals,
)
from discreet.counts.memory import Weighting, count_responses
from discreet.counts.table import PairCounts
from discreet.errors import BadUsage, DiscreetError
from discreet.secure import RandomSource
from discreet.store.select import CELLS, add_digests, check_cap, digest_store
from discreet.tables.delimited import NotUtf8
from discreet.tables.ids import check_items
from discreet.tables.paths import warn_encoding
from discreet.tables.resources import Progress, Resources
from discreet.tables.roles import Reading
from discreet.types import Int8Array, Int64Array


def count_anything(
    source: Responses | StreamedAnswers | str | PathLike[str], weighting: Weighting | None
) -> PairCounts:
    """Count with the default settings; answers that are in memory already stay there."""
    if isinstance(source, (str, PathLike)):
        return count_source(source, weighting=weighting)
    if isinstance(source, StreamedAnswers):
        return source.count(weighting)
    return count_responses(source, weighting)


def open_answers(
    source: str | PathLike[str],
    resources: Resources | None = None,
    *,
    reading: Reading | None = None,
) -> StreamedAnswers | PairCounts:
    """Count a source, and return it as answers that can be looked at again, for ``fit``.

    A query may give other rows, or the same in another order, the second time: then only the
    counts are returned.
    """
    job = Job(source, None, reading or Reading(), resources or Resources())
    try:
        counts = count_job(job)
        snapshot = Snapshot(job)
    except BaseException:
        job.close()
        raise
    if not snapshot.is_steady:
        snapshot.close()
        return counts
    totals = ItemTotals(counts.items, counts.answers, counts.right, counts.persons)
    return StreamedAnswers(snapshot, totals, counts=counts)


def open_persons(
    source: str | PathLike[str],
    *,
    reading: Reading | None = None,
    resources: Resources | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> StreamedAnswers:
    """Return a source of any size as answers of whole persons, for ``release``.

    It is gone through once to find its items and its persons. A query is run once, and its rows
    are copied. Close the result, or use it in a ``with`` statement: then what was copied or
    distributed is deleted at once.

    Parameters
    ----------
    source, reading, resources
        As in :func:`discreet.answers.streamed.counting.count_source`.
    progress
        Called a few times a second with a :class:`Progress`, anew for every pass.

    Examples
    --------
    >>> query = ("SELECT * FROM (VALUES ('ann', 'q1', 1), ('bob', 'q1', 0), ('ann', 'q2', 0)) "
    ...          "AS answers(person, item, response)")
    >>> with open_persons(query) as answers:
    ...     answers.items, answers.n_persons, answers.n_answers
    (('q1', 'q2'), 2, 3)
    """
    job = Job(source, None, reading or Reading(), resources or Resources())
    while True:
        snapshot = Snapshot(job, progress)
        try:
            return StreamedAnswers(snapshot, find_totals(snapshot))
        except NotUtf8 as found:
            # Rare: the first megabytes were UTF-8. Everything is read again, this file otherwise.
            snapshot.close()
            job.encodings[found.path] = warn_encoding(found.path)
        except BaseException:
            snapshot.close()
            raise


class StreamedAnswers(Closable):
    """A source that can be gone through again and again, person by person.

    It is made by :func:`open_persons` and :func:`open_answers`. `select` and `cap` read
    nothing; what they ask for happens in the next pass.
    """

    engine = "duckdb"

    def __init__(
        self,
        passes: Passes,
        totals: ItemTotals,
        *,
        counts: PairCounts | None = None,
        steps: tuple[Selection | Cap, ...] = (),
    ) -> None:
        self._passes, self._totals, self._counts, self._steps = passes, totals, counts, steps
        self.items = totals.items
        self.n_persons = totals.persons
        self.store = StreamedStore(self)

    def close(self) -> None:
        """Delete what was copied from the source."""
        if isinstance(self._passes, Snapshot):
            self._passes.close()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_answers(self) -> int:
        """Number of answers that were given."""
        return self.store.n_answers

    @property
    def totals(self) -> ItemTotals:
        """Totals of every item; not known of capped answers before they are drawn."""
        if self._is_capped:
            raise DiscreetError(
                "how many answers a cap keeps is known when it is drawn: count the answers, and "
                "take the totals of the counts"
            )
        return self._totals

    @property
    def _is_capped(self) -> bool:
        return any(isinstance(step, Cap) for step in self._steps)

    def select(self, items: Sequence[object]) -> StreamedAnswers:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        names = check_items(items, len(items))
        steps = (*self._steps, Selection(names))
        return StreamedAnswers(self._passes, self._totals.select(names), steps=steps)

    def cap(self, max_answers: int, source: RandomSource) -> StreamedAnswers:
        """Let each person keep a uniformly random ``max_answers`` of more answers.

        The persons are whole, each is in one batch, and what each keeps is drawn when the
        stream is read. The result can be gone through once.
        """
        most = check_cap(max_answers)
        if most >= self.n_items:
            return self
        steps = (*self._steps, Cap(most, source))
        return StreamedAnswers(self._passes, self._totals, steps=steps)

    def batches(self) -> Iterator[Responses]:
        """Yield batches of whole persons, all with the same items."""
        for step in self._steps:
            step.begin()
        last = Selection(self.items)
        with explain_encoding():
            for batch in self._passes.batches():
                answers = Responses(batch.items, None, batch.store)
                for step in self._steps:
                    answers = step.apply(answers)
                yield last.apply(answers)

    def count(self, weighting: Weighting | None) -> PairCounts:
        """Count pairs in one pass; where that was done already, return it."""
        if weighting is None and self._counts is not None:
            return self._counts
        tally = Tally()
        for batch in self.batches():
            tally.add(batch.items, cast(Any, batch.store), weighting)
        self._check_persons(tally.persons)
        return tally.counts(self.items)

    def sum_digests(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests and their number, for the ledger.

        Capped answers are refused before anything is drawn: the digest would use their one pass
        up, and the ledger knows data by what it was before the cap.
        """
        if self._is_capped:
            raise BadUsage(
                "these answers were capped already, and the ledger recognises data by all answers. "
                "Give release the answers without a cap: it draws the cap itself, from max_answers"
            )
        ordered = self.select(sorted(self.items))
        persons, parts = 0, []
        for one in ordered.batches():
            persons += one.n_persons
            parts.append(digest_store(key, one.items, one.store, rule))
        self._check_persons(persons)
        return add_digests(parts)

    def _check_persons(self, found: int) -> None:
        if found != self.n_persons:
            raise _other_persons(self.n_persons, found)


def _other_persons(first: int, now: int) -> BadUsage:
    return BadUsage(
        f"the answers had {first:,} persons at first and {now:,} now: they were changed while they "
        "were being read. Wait until nobody writes to them, or copy them, and start anew."
    )


class StreamedStore:
    """Rows of persons from a stream; see :class:`discreet.store.planes.AnswerStore`.

    Persons are numbered in the order of the stream, which is the same in every pass.
    """

    def __init__(self, answers: StreamedAnswers) -> None:
        self._answers = answers
        self._stream: Iterator[Responses] = iter(())
        self._batch: Any = None
        self._first = self._stop = -1
        self._person_totals: tuple[Int64Array, Int64Array] | None = None

    @property
    def n_persons(self) -> int:
        """Number of persons."""
        return self._answers.n_persons

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self._answers.n_items

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return int(self._answers.totals.answers.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the batch that is held."""
        return 0 if self._batch is None else int(self._batch.store.nbytes)

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        totals = self._answers.totals
        return totals.answers.copy(), totals.right.copy()

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per person, how many items were answered and how many of them right."""
        if self._person_totals is None:
            parts = [part.person_totals() for part in self.parts()]
            answered, right = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._person_totals = answered, right
        return self._person_totals

    def parts(self) -> Iterator[Any]:
        """Yield the stores of one batch of persons after the other."""
        for batch in self._answers.batches():
            yield batch.store

    def rows(self, start: int, stop: int) -> Int8Array:
        """Answers of the persons ``start`` to ``stop`` as a dense matrix."""
        stop = min(stop, self.n_persons)
        parts = [np.zeros((0, self.n_items), dtype=np.int8)]
        while start < stop:
            self._go_to(start)
            end = min(stop, self._stop)
            parts.append(self._batch.rows(start - self._first, end - self._first))
            start = end
        return np.concatenate(parts)

    def _go_to(self, person: int) -> None:
        """Hold the batch with this person."""
        if self._first < 0 or person < self._first:
            self._stream, self._first, self._stop = self._answers.batches(), 0, 0
        while person >= self._stop:
            self._batch = next(self._stream, None)
            if self._batch is None:
                raise _other_persons(self.n_persons, self._stop)
            self._first, self._stop = self._stop, self._stop + self._batch.n_persons
