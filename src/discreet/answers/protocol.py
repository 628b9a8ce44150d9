"""The one seam: what all answers can be asked, wherever they are.

In memory, on disk, in a database, in a cluster or on a graphics processor: whoever holds answers
asks them, and nobody asks what they are. Pairs are counted by a method of their own, because they
have their own kernels; everything else that looks at persons is a :class:`Job`, which the answers
fold over blocks of whole persons wherever these are. Whoever implements this promises that every
person is whole and counts once, and that a cap is drawn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np

from discreet.answers.select import CELLS, digest_ids, stand_for, thin_persons
from discreet.answers.steps import join_sparse
from discreet.counts.planes import AnswerStore
from discreet.errors import OutOfReach
from discreet.secure import RandomSource
from discreet.tables.remedies import Detected
from discreet.tables.survey import SurveyDesign
from discreet.types import IndexArray, Int64Array

if TYPE_CHECKING:
    from discreet.answers.pairs import Weighting
    from discreet.counts import PairCounts
    from discreet.counts.folds import Tally

T = TypeVar("T")

RUNS = 8
"""Runs of neighbouring persons that make a sample: from all over, because files are sorted."""


class Job(Generic[T]):
    """A fold over blocks of whole persons; the value of each block is added to the others'.

    It is sent to where the answers are, so it must be picklable unless it does not travel.

    Attributes
    ----------
    sample
        About how many persons are enough, which then come as one block; None for all persons.
    every
        Per item, of how many of its takers one is enough, who is drawn by a fixed hash of the id
        (:mod:`discreet.answers.select`); None for all persons. Where persons have no ids that
        could be found again, everybody comes, and the job is told so (:meth:`of_everybody`).
    travels
        Whether other machines may do it. What draws random numbers, or whose value grows with the
        persons, is done here.
    is_sum
        Whether values are arrays of one shape that are added number by number.
    needs
        A sentence for whoever cannot have it: what needs which answers.
    """

    sample: int | None = None
    every: Int64Array | None = None
    travels: bool = True
    is_sum: bool = False
    needs: str = "this computation needs the answers of all persons here"

    def block(self, store: AnswerStore) -> T:
        """Return the value of some persons."""
        raise NotImplementedError

    def add(self, left: T, right: T) -> T:
        """Return the value of the persons of both, those of ``left`` first."""
        raise NotImplementedError

    def stand(self, store: AnswerStore) -> Int64Array:
        """Return how many persons each of these stands for, if drawn; one where nobody is."""
        if self.every is None:
            return np.ones(store.n_persons, dtype=np.int64)
        return stand_for(store, self.every)

    def of_everybody(self) -> Job[T]:
        """Return the same job for all persons, none of whom stands for others."""
        return self


class SumJob(Job[Any]):
    """A job whose values are arrays of one shape, added number by number."""

    is_sum = True

    def add(self, left: Any, right: Any) -> Any:
        """Add two arrays."""
        return left + right


class ItemTotals(SumJob):
    """Per item, how many persons answered it and how many had it right; below, the persons."""

    def block(self, store: AnswerStore) -> Int64Array:
        """Return ``[2, item]``, and one more column with the number of persons."""
        persons = [[store.n_persons], [0]]
        return np.concatenate([np.stack(store.item_totals()), persons], axis=1)


class PersonTotals(Job[Int64Array]):
    """Per person, how many items were answered and how many right: ``[2, person]``.

    Persons of a cluster come in no order.
    """

    def block(self, store: AnswerStore) -> Int64Array:
        """Return the totals of some persons."""
        return np.stack(store.person_totals())

    def add(self, left: Int64Array, right: Int64Array) -> Int64Array:
        """Put the persons of both behind each other."""
        return np.concatenate([left, right], axis=1)


class Contributions(Protocol):
    """What a release asks of whole persons' answers, or of whole judges' comparisons."""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items, in column order."""
        ...

    @property
    def steps(self) -> tuple[int, ...]:
        """Per item, how many steps it has: 1 for right and wrong."""
        ...

    @property
    def lowest(self) -> int:
        """The value that category 0 had where the answers were read."""
        ...

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What the data decided about how they were read; a release refuses it."""
        ...

    @property
    def n_persons(self) -> int:
        """Number of persons, those without any answer included."""
        ...

    def select(self, items: Sequence[str], /) -> Self:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        ...

    def cap(self, limit: int, source: RandomSource, /) -> Self:
        """Return answers of which each person keeps at most so many, a uniformly random part.

        What a person keeps is drawn once: whatever is counted from the result comes from one
        and the same draw.
        """
        ...

    def count(self, weighting: Weighting | None = None) -> Any:
        """Count pairs in one pass, each person with an integer weight of (answered, right)."""
        ...

    def digest(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added.

        See :mod:`discreet.answers.select` for the rules.
        """
        ...

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of the persons' ids; see :func:`discreet.answers.select.digest_ids`.

        Raises
        ------
        BadUsage
            If persons have no ids.
        OutOfReach
            If ids are not asked of answers where these are.
        """
        ...


class Answers(Contributions, Protocol):
    """Answers of whole persons."""

    @property
    def n_answers(self) -> int:
        """Number of answers that were given."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether persons can be gone through again; those of a query come once."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether all persons are in the memory of this process, so that passes cost little."""
        ...

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count pairs in one pass, each person with an integer weight of (answered, right).

        ``tally`` says what else to keep of the persons: folds of them, a sketch of their ids.
        """
        ...

    def reduce(self, job: Job[T], /) -> T:
        """Fold a job over blocks of whole persons, wherever they are.

        Raises
        ------
        OutOfReach
            If it cannot be done where these answers are; the message says what to do.
        """
        ...

    def reduce_all(self, jobs: Sequence[Job[Any]], /) -> list[Any]:
        """Fold several jobs, in one pass where persons are read one after the other."""
        ...

    def admit(self, job: Job[Any], /) -> None:
        """Raise the error of :meth:`reduce` now, before anything is done."""
        ...

    def close(self) -> None:
        """Delete what was copied."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class AnswerSource:
    """What places have in common: answers that can be closed and do every job."""

    __slots__ = ()

    lasts = True
    in_memory = False

    @property
    def lowest(self) -> int:
        """The value that category 0 had where the answers were read."""
        return 0

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What the data decided about how they were read: every place must say."""
        raise NotImplementedError

    @property
    def sample(self) -> SurveyDesign | None:
        """Weights and sampling design of the persons, which only answers in memory have."""
        return None

    def reduce(self, job: Job[T]) -> T:
        """Fold a job over blocks of whole persons."""
        return cast(T, self.reduce_all([job])[0])

    def reduce_all(self, jobs: Sequence[Job[Any]]) -> list[Any]:
        """Fold several jobs in one pass."""
        raise NotImplementedError

    def admit(self, job: Job[Any]) -> None:
        """Refuse a job that cannot be done here: none."""

    def close(self) -> None:
        """Nothing was copied, so there is nothing to delete."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def digest(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added."""
        raise NotImplementedError

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of ids that are in memory; others are not asked for."""
        if self.in_memory:
            return digest_ids(key, [cast(Any, self).person_ids])
        raise OutOfReach(
            "this ledger remembers persons by their ids, and those of answers on other machines "
            "stay there. Write the answers to Parquet files and give those, or charge a ledger "
            "that was made without --remember-persons"
        )


def fold_blocks(
    blocks: Iterable[tuple[AnswerStore, Any]], n_persons: int, jobs: Sequence[Job[Any]]
) -> list[Any]:
    """Go through blocks of whole persons, with their ids, once for all jobs; at least one block.

    A sample is gathered on the way and handed over as one block. Ids may be None where persons
    are numbered, or no job asks for them.
    """
    chosen = [None if job.sample is None else choose_persons(n_persons, job.sample) for job in jobs]
    totals: list[Any] = [None] * len(jobs)
    first = 0
    for store, ids in blocks:
        for index, (job, sample) in enumerate(zip(jobs, chosen, strict=True)):
            if sample is None:
                job_store = store
                if job.every is not None:
                    job_store = thin_persons(store, ids, first, job.stand(store))
                value = job.block(job_store)
                totals[index] = value if first == 0 else job.add(totals[index], value)
            else:
                inside = sample[np.searchsorted(sample, first) :] - first
                some = store.take(inside[inside < store.n_persons])
                totals[index] = some if first == 0 else join_sparse([totals[index], some])
        first += store.n_persons
    return [
        total if sample is None else job.block(total)
        for job, sample, total in zip(jobs, chosen, totals, strict=True)
    ]


def choose_persons(n_persons: int, sample: int) -> IndexArray:
    """Take a few runs of persons from all over the data, in order; everybody of few."""
    if n_persons <= sample:
        return np.arange(n_persons)
    run = sample // RUNS
    starts = np.linspace(0, n_persons - run, RUNS).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(run))


def refuse_travel(job: Job[Any]) -> None:
    """Refuse a job that cannot be done on other machines."""
    if not job.travels:
        raise OutOfReach(
            f"{job.needs}, and these answers stay where they are, on other machines. Write them to "
            "Parquet files and give those: they are read in batches, whatever their size"
        )
