"""Answers in a cluster that ``count_pairs``, ``fit`` and ``release`` can work on.

In: a DataFrame or the name of a table. Out: counts, or :class:`SparkAnswers`, which fulfil
:class:`discreet.answers.opening.Answers`. Every question is a job over the frame, and its answer
is a sum: persons stay where they are. A frame that is dear to compute should be cached by the
caller, because several jobs read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.answers.spark.addition import SCHEMA, collect_sum, read_one
from discreet.answers.spark.layout import NAME, FrameRows, plan_frame
from discreet.answers.spark.reading import find_frame
from discreet.answers.spark.tasks import (
    AskEach,
    CapAnswers,
    SelectItems,
    Step,
    Store,
    SumUp,
    View,
    count_vector,
    draw_cap,
)
from discreet.counts.memory import Weighting, count_responses
from discreet.counts.table import PairCounts, name_weighting
from discreet.errors import BadResponses
from discreet.secure import RandomSource
from discreet.store.planes import SparseRows
from discreet.store.select import ABSENT, CELLS, add_digests, check_cap, digest_store, number_items
from discreet.tables.ids import check_items
from discreet.tables.roles import Reading
from discreet.types import Int64Array, Vector


def count_frame(
    source: Any, weighting: Weighting | None = None, *, reading: Reading | None = None
) -> PairCounts:
    """Count pairs of a Spark DataFrame or table, exactly as the memory engine would.

    Parameters
    ----------
    source
        A DataFrame (classic or of Spark Connect), long or wide, or the name of a table. Answers
        that are in memory already are counted there.
    weighting
        Integer weight per person, as in :func:`discreet.count_pairs`; it is sent to executors.
    reading
        Column names, layout and scoring, from
        :func:`discreet.tables.roles.make_reading`. Of repeated answers "first" and "last"
        have no meaning, because rows of a DataFrame have no order.

    Returns
    -------
    PairCounts
        Items of a wide frame come in the order of the columns, as in memory. In a long frame
        nothing appears first, so there they are in natural order ("q2" before "q10").
    """
    if isinstance(source, SparkAnswers):
        return source.count(weighting)
    if isinstance(source, Responses):
        return count_responses(source, weighting)
    rows = _plan(source, reading)
    return _Job(rows).count(rows.layout.items, weighting)


def open_frame(source: Any, *, reading: Reading | None = None) -> SparkAnswers:
    """Count a DataFrame or table, and return it as answers that can be asked again.

    Parameters
    ----------
    source, reading
        As in :func:`count_frame`.
    """
    rows = _plan(source, reading)
    items, job = rows.layout.items, _Job(rows)
    counts = job.count(items, None)
    return SparkAnswers(job, items, counts.persons, counts)


def _plan(source: Any, reading: Reading | None) -> FrameRows:
    said = reading or Reading()
    if said.repeats != "error":
        raise BadResponses(
            f"repeats={said.repeats!r} asks for an order of rows, and rows of a Spark data frame "
            "have none. Remove repeated answers first, for example with dropDuplicates, or with "
            "row_number over a window in the order of time."
        )
    return plan_frame(find_frame(source), said)


@dataclass(frozen=True)
class _Job:
    """Rows of a frame, and what is done to them before they are looked at."""

    rows: FrameRows
    steps: tuple[Step, ...] = ()

    @property
    def view(self) -> View:
        return View(self.rows.layout, self.steps)

    def count(self, items: tuple[str, ...], weighting: Weighting | None) -> PairCounts:
        """Count pairs with the kernel in every task, and add up on executors."""
        m = len(items)
        function = partial(count_vector, weighting=weighting)
        total = self.sum_up(function, m * m + 2 * m + 1, np.int64)
        return PairCounts(
            items=items,
            right_wrong=total[: m * m].reshape(m, m),
            answers=total[m * m : m * m + m].copy(),
            right=total[m * m + m : -1].copy(),
            persons=int(total[-1]),
            weighting=name_weighting(weighting),
        )

    def sum_up(
        self, function: Callable[[Store], Vector], length: int, dtype: npt.DTypeLike
    ) -> Vector:
        """Sum a function of the stored answers over all tasks."""
        frame, tasks = self._deal()
        parts = frame.mapInArrow(SumUp(self.view, function), SCHEMA)
        return collect_sum(parts, length, dtype, tasks)

    def ask_each(self, function: Callable[[Store], Any]) -> list[Any]:
        """Return a function of the stored answers of every task; for small results."""
        frame, _ = self._deal()
        return read_one(frame.mapInArrow(AskEach(self.view, function), SCHEMA))

    def ask_sample(
        self, function: Callable[[Store], Any], persons: int, n_persons: int
    ) -> list[Any]:
        """Return a function of the stored answers of some persons, computed in one task."""
        # All of a sample is in one task, also of rows that are whole persons.
        view = replace(self.view, layout=replace(self.rows.layout, whole_rows=False))
        some = self.rows.sample(persons, n_persons)
        return read_one(some.mapInArrow(AskEach(view, function), SCHEMA))

    def _deal(self) -> tuple[Any, int]:
        capped = any(isinstance(step, CapAnswers) for step in self.steps)
        return self.rows.deal(by_content=capped and not self.rows.has_ids)


class SparkAnswers:
    """A DataFrame whose answers were counted once and can be asked again."""

    engine = "spark"

    def __init__(
        self, job: _Job, items: tuple[str, ...], n_persons: int, counts: PairCounts | None
    ) -> None:
        self._job, self._counts = job, counts
        self.items = items
        self.n_persons = n_persons
        self.store = SparkStore(self, job)

    def __repr__(self) -> str:
        return f"<SparkAnswers: {self.n_persons} persons, {len(self.items)} items>"

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return self.store.n_answers

    def count(self, weighting: Weighting | None = None) -> PairCounts:
        """Count pairs; without weights that is done once only."""
        if weighting is not None:
            return self._check(self._job.count(self.items, weighting))
        if self._counts is None:
            self._counts = self._check(self._job.count(self.items, None))
        return self._counts

    def _check(self, counts: PairCounts) -> PairCounts:
        self.check_persons(counts.persons)
        return counts

    def check_persons(self, found: int) -> None:
        """Refuse a frame that has other persons than when it was opened."""
        if found != self.n_persons:
            raise BadResponses(
                f"{NAME} had {self.n_persons:,} persons when it was opened and has {found:,} now. "
                "All passes must see the same rows: name a version of the table, cache the "
                "frame, or write it to a table first."
            )

    def select(self, items: Sequence[str]) -> SparkAnswers:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        names = check_items(items, len(items))
        if names == self.items:
            return self
        place = {name: number for number, name in enumerate(self.items)}
        columns = np.array([place.get(name, ABSENT) for name in names], dtype=np.int64)
        job = replace(self._job, steps=(*self._job.steps, SelectItems(columns)))
        return SparkAnswers(job, names, self.n_persons, _select_counts(self._counts, names))

    def cap(self, max_answers: int, source: RandomSource) -> SparkAnswers:
        """Return answers of which each person keeps at most so many, a uniformly random part.

        One key is drawn here and sent to the executors with the tasks; see
        :mod:`discreet.answers.spark.tasks`.
        """
        most = check_cap(max_answers)
        if most >= len(self.items):
            return self
        step = CapAnswers(draw_cap(most, source))
        job = replace(self._job, steps=(*self._job.steps, step))
        return SparkAnswers(job, self.items, self.n_persons, None)

    def sum_digests(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added.

        Digests are computed on executors, so the ledger's key is sent there with the tasks:
        whoever runs the cluster could test guesses of answers against a fingerprint. They hold
        the answers themselves anyway.
        """
        ordered = self.select(sorted(self.items))
        found = ordered._job.ask_each(partial(_digest, key, ordered.items, rule))
        self.check_persons(sum(persons for persons, _ in found))
        return add_digests(part for _, part in found)


class SparkStore:
    """Totals of answers in a cluster, and sums over them that are computed there."""

    def __init__(self, answers: SparkAnswers, job: _Job) -> None:
        self._answers, self._job = answers, job

    @property
    def n_persons(self) -> int:
        """Number of persons."""
        return self._answers.n_persons

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._answers.items)

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return int(self._answers.count().answers.sum())

    @property
    def nbytes(self) -> int:
        """Bytes held here: none."""
        return 0

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        counts = self._answers.count()
        return counts.answers.copy(), counts.right.copy()

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per person, how many items were answered and how many of them right.

        Two numbers of every person come to the driver, sorted, because persons of a frame have
        no order. `fit` and `release` do without.
        """
        parts = [np.stack(totals) for totals in self._job.ask_each(_person_totals)]
        answered, right = np.concatenate([np.zeros((2, 0), dtype=np.int64), *parts], axis=1)
        self._answers.check_persons(len(answered))
        order = np.lexsort((right, answered))
        return answered[order], right[order]

    def add_up(self, function: Callable[[Store], Vector]) -> Vector:
        """Sum a function of the stored answers over parts of the persons, on the executors.

        Parameters
        ----------
        function
            From a store of some persons to an array whose shape depends on the items only;
            picklable.
        """
        empty = SparseRows(
            np.zeros(1, dtype=np.int64),
            number_items(np.zeros(0, dtype=np.int64), self.n_items),
            np.zeros(0, dtype=np.bool_),
            self.n_items,
        )
        shape = np.asarray(function(empty))
        total = self._job.sum_up(function, shape.size, shape.dtype)
        return total.reshape(shape.shape)

    def ask_sample(self, function: Callable[[Store], Any], persons: int) -> Any:
        """Return a function of the stored answers of about so many persons.

        It is computed in one task; always the same persons of a frame with ids are taken. None
        if nobody was.
        """
        found = self._job.ask_sample(function, persons, self.n_persons)
        return found[0] if found else None


def _digest(
    key: bytes, items: tuple[str, ...], rule: str, store: Store
) -> tuple[int, tuple[int, int]]:
    """Return how many persons a store has, and their digest."""
    return store.n_persons, digest_store(key, items, store, rule)


def _person_totals(store: Store) -> tuple[Int64Array, Int64Array]:
    return store.person_totals()


def _select_counts(counts: PairCounts | None, names: tuple[str, ...]) -> PairCounts | None:
    """Return counts of persons over fewer or other items; None to count again."""
    if counts is None or counts.is_sparse:
        return None
    place = {name: number for number, name in enumerate(counts.items)}
    known = np.array([name in place for name in names], dtype=np.bool_)
    old = np.array([place[name] for name in names if name in place], dtype=np.intp)
    m = len(names)
    pairs = np.zeros((m, m), dtype=np.int64)
    pairs[np.ix_(known, known)] = np.asarray(counts.right_wrong)[np.ix_(old, old)]
    answers, right = np.zeros((2, m), dtype=np.int64)
    answers[known], right[known] = counts.answers[old], counts.right[old]
    return PairCounts(names, pairs, answers, right, counts.persons, counts.weighting)
