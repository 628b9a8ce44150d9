"""Answers in a cluster: Spark DataFrames and tables, counted where they are.

In: a DataFrame or the name of a table. Out: :class:`SparkAnswers`, on which ``count_pairs``,
``fit`` and ``release`` can work, as :class:`discreet.answers.protocol.Answers`. Every question is
a job over the frame, and its answer is a sum: persons stay where they are. Opening counts nothing.
A frame that is dear to compute should be cached by the caller, because several jobs read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers import protocol
from discreet.answers.protocol import Answers, ItemTotals, Job
from discreet.answers.select import check_cap, number_items
from discreet.choices import PlainDict
from discreet.coding.ids import check_items
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.counts import PairCounts, name_weighting
from discreet.counts.folds import FoldCounts, Tally, afford_folds, join_sketches
from discreet.counts.matrix import check_room
from discreet.counts.pairs import Weighting
from discreet.counts.planes import AnswerStore, SparseRows, narrow_items, step_store
from discreet.errors import BadResponses, BadUsage
from discreet.readers.spark import tasks
from discreet.readers.spark.rows import NAME, FrameRows, Persons, find_frame, plan_frame
from discreet.secure import RandomSource
from discreet.types import Int64Array, Vector


def open_frame(source: object, *, reading: Reading | None = None) -> SparkAnswers:
    """Return a Spark DataFrame or table as answers of whole persons.

    Parameters
    ----------
    source
        A DataFrame (classic or of Spark Connect), long or wide, or the name of a table. Items of
        a wide frame come in the order of the columns, as in memory. In a long frame nothing
        appears first, so there they are in natural order ("q2" before "q10").
    reading
        Column names, layout and scoring, from
        :class:`discreet.coding.reading.Reading`. Of repeated answers "first" and "last"
        have a meaning only with ``order_by``, because rows of a DataFrame have no order.
    """
    rules = reading or Reading()
    if rules.rows_aside:
        raise BadUsage(
            "drop_rows= and key_row= name rows of a file, and rows of a Spark data frame have no "
            "order. Filter the frame, and give the key as key=."
        )
    if rules.repeats != "error" and rules.order_by is None:
        raise BadResponses(
            f"repeats={rules.repeats!r} asks for an order of rows, and rows of a Spark data frame "
            "have none. Name a column of times or numbers with order_by=, or remove repeated "
            "answers first, for example with dropDuplicates."
        )
    frame = find_frame(source)
    tasks.check_workers(frame)
    rows = plan_frame(frame, rules)
    return SparkAnswers(rows, rows.layout.items)


class SparkAnswers(Answers):
    """A DataFrame that is asked where it is."""

    items: tuple[str, ...] = ()

    def __init__(
        self, rows: FrameRows, items: tuple[str, ...], transforms: tuple[tasks.Step, ...] = ()
    ) -> None:
        self._rows, self.items = rows, items
        self._view = tasks.View(rows.layout, transforms)

    def __repr__(self) -> str:
        return f"<SparkAnswers: {len(self.items)} items>"

    @property
    def steps(self) -> tuple[int, ...]:
        """Per item, how many steps it has: 1 for right and wrong."""
        return self._rows.layout.reading.steps_of(self.items)

    @property
    def reading(self) -> Reading:
        """How values become answers."""
        return self._rows.layout.reading.about_values

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What the data decided about how they are read; a frame declares its columns."""
        return self._rows.layout.reading.detected

    @cached_property
    def _totals(self) -> Int64Array:
        return np.asarray(self._add_up(ItemTotals()))

    @cached_property
    def n_persons(self) -> int:
        """Number of persons, of whom the first pass that counts them decides."""
        return int(self._totals[0, -1])

    @cached_property
    def n_answers(self) -> int:
        """Number of answers."""
        return int(self._totals[0, :-1].sum())

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count pairs with the kernel in every task; the weighting is sent to executors."""
        counts = self._count(weighting)
        self._check_persons(counts.persons)
        self.n_answers = int(counts.categories.sum())
        return counts if tally is None else replace(counts, **self._keep(tally))

    def _count(self, weighting: Weighting | None) -> PairCounts:
        m = sum(self.steps)
        check_room(self.steps, m * m)
        function = partial(tasks.ask_store, partial(tasks.count_vector, weighting=weighting))
        total = self._sum_up(function, m * m + 2 * m + 1, np.int64)
        pairs, answers, right = np.split(total[:-1], [m * m, m * m + m])
        numbers = (answers.copy(), right.copy(), int(total[-1]), name_weighting(weighting))
        return PairCounts(self.items, pairs.reshape(m, m), *numbers, steps=self.steps)

    def _keep(self, tally: Tally) -> PlainDict:
        """Return folds and the sketch of the persons: a job for each."""
        if not self._rows.has_ids:
            if tally.folds:
                raise BadUsage(
                    f"{NAME} has no column of person ids, and its rows have no order: which fold a "
                    "person is in could not be said twice. Add a column of ids, or count without "
                    "folds"
                )
            return {"sketch": None}
        sketches = self._ask_each(tasks.sketch_ids)
        return {"folds": self._count_folds(tally), "sketch": join_sketches(sketches)}

    def _count_folds(self, tally: Tally) -> FoldCounts | None:
        m = sum(self.steps)
        number = afford_folds(tally.folds, m)
        if not number:
            return None
        function = partial(tasks.count_fold_vector, tally=tally, number=number)
        total = self._sum_up(function, number * (m * m + m + 1), np.int64)
        pairs, answers, persons = np.split(total, [number * m * m, number * m * (m + 1)])
        name = name_weighting(tally.weighting)
        matrices = pairs.reshape(number, m, m)
        self._check_persons(int(persons.sum()))
        return FoldCounts(tally.folds, matrices, answers.reshape(number, m), persons, name)

    def _check_persons(self, n_persons: int) -> None:
        """Refuse a frame that has other persons than when it was first asked."""
        first = self.__dict__.setdefault("n_persons", n_persons)
        if n_persons != first:
            raise BadResponses(
                f"{NAME} had {first:,} persons when it was opened and has {n_persons:,} now. "
                "All passes must see the same rows: name a version of the table, cache the "
                "frame, or write it to a table first."
            )

    def admit(self, job: Job[Any]) -> None:
        """Refuse a job that cannot be done on other machines."""
        protocol.refuse_travel(job)

    def reduce_all(self, jobs: Sequence[Job[Any]]) -> list[Any]:
        """Let the executors do every job: sums are added there, samples looked at in one task."""
        for job in jobs:
            self.admit(job)
        # Rows without ids have nothing to be drawn by.
        return [self._reduce(job if self._rows.has_ids else job.of_everybody()) for job in jobs]

    def _reduce(self, job: Job[Any]) -> Any:
        if job.sample is not None:
            # All of a sample is in one task, also of rows that are whole persons.
            view = replace(self._view, layout=replace(self._rows.layout, whole_rows=False))
            some = self._rows.sample(job.sample, self.n_persons)
            task = tasks.AskEach(view, partial(tasks.ask_store, job.block))
            parts = tasks.read_one(some.mapInArrow(task, tasks.SCHEMA))
        elif job.is_sum:
            return self._add_up(job)
        else:
            parts = self._ask_each(self._asking(job))
        return reduce(job.add, parts or [job.block(self._nobody)])

    @property
    def _nobody(self) -> AnswerStore:
        nothing, nodes = np.zeros(0, dtype=np.int64), sum(self.steps)
        rows = SparseRows(np.zeros(1, np.int64), narrow_items(nothing, nodes), nothing == 1, nodes)
        return step_store(rows, self.steps)

    def _add_up(self, job: Job[Any]) -> Any:
        shape = np.asarray(job.block(self._nobody))
        return self._sum_up(self._asking(job), shape.size, shape.dtype).reshape(shape.shape)

    def _asking(self, job: Job[Any]) -> Callable[[Persons], Any]:
        """Return what a task does for a job."""
        is_drawn = job.every is not None
        return partial(tasks.ask_drawn, job) if is_drawn else partial(tasks.ask_store, job.block)

    def _sum_up(
        self, function: Callable[[Persons], Vector], length: int, dtype: npt.DTypeLike
    ) -> Vector:
        """Sum a function of persons over all tasks."""
        frame, n_tasks = self._deal()
        parts = frame.mapInArrow(tasks.SumUp(self._view, function), tasks.SCHEMA)
        return tasks.collect_sum(parts, length, dtype, n_tasks)

    def _ask_each(self, function: Callable[[Persons], Any]) -> list[Any]:
        """Return a function of the persons of every task; for small results."""
        frame, _ = self._deal()
        task = tasks.AskEach(self._view, function)
        return tasks.read_one(frame.mapInArrow(task, tasks.SCHEMA))

    def _deal(self) -> tuple[Any, int]:
        capped = any(isinstance(step, tasks.CapAnswers) for step in self._view.steps)
        return self._rows.deal(by_content=capped and not self._rows.has_ids)

    def select(self, items: Sequence[str]) -> SparkAnswers:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        names = check_items(items, len(items))
        if names == self.items:
            return self
        return self._derive(tasks.SelectItems(number_items(names, self.items)), names)

    def _derive(self, step: tasks.Step, items: tuple[str, ...]) -> SparkAnswers:
        """Return other answers of the same persons."""
        derived = SparkAnswers(self._rows, items, (*self._view.steps, step))
        if "n_persons" in self.__dict__:
            derived.n_persons = self.n_persons
        return derived

    def cap(self, max_answers: int, source: RandomSource) -> SparkAnswers:
        """Return answers of which each person keeps at most so many, a uniformly random part.

        One key is drawn here and sent to the executors with the tasks; see
        :mod:`discreet.readers.spark.tasks`.
        """
        limit = check_cap(max_answers)
        if limit >= len(self.items):
            return self
        return self._derive(tasks.CapAnswers(tasks.draw_cap(limit, source)), self.items)

    @property
    def has_ids(self) -> bool:
        """Whether persons have ids; otherwise rows are persons."""
        return self._rows.has_ids

    def digest(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added.

        Digests are computed on executors, so the ledger's key is sent there with the tasks:
        whoever runs the cluster could test guesses of answers against a fingerprint. They hold
        the answers themselves anyway.
        """
        ordered = self.select(sorted(self.items))
        digests = ordered._ask_each(partial(tasks.ask_store, partial(_digest, key, ordered.items)))
        self._check_persons(sum(persons for persons, _ in digests))
        return protocol.add_digests(part for _, part in digests)


def _digest(key: bytes, items: tuple[str, ...], store: AnswerStore) -> tuple[int, tuple[int, int]]:
    """Return how many persons a store has, and their digest."""
    return store.n_persons, protocol.digest_store(key, items, store)
