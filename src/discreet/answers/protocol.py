"""The protocol of answers: what all of them can compute, in memory, on disk or in a cluster.

In memory, on disk, in a database or in a cluster: whoever holds answers asks them, and nobody asks
what they are. Pairs are counted by a method of their own, because they have their own kernels;
everything else that looks at persons is a :class:`Job`, which the answers fold over blocks of whole
persons wherever these are. Whoever implements this promises that every person is whole and counts
once, and that a cap is drawn once.

Persons are recognised by keyed digests of their answers, as sums that add up over batches, and
drawn into samples by a fixed hash of their ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.survey import SurveyDesign
from discreet.coding.reading import PLAIN, Reading
from discreet.coding.remedies import Detected
from discreet.counts.planes import AnswerStore, BitPlanes, join_sparse
from discreet.errors import BadUsage, OutOfReach
from discreet.types import BoolArray, IndexArray, Int8Array, Int64Array, UInt64Array

if TYPE_CHECKING:
    from discreet.counts import PairCounts
    from discreet.counts.folds import Tally
    from discreet.counts.pairs import Weighting
    from discreet.secure import RandomSource

SUM_BYTES = 64

#: Cells looked at together: at most about 30 MB.
BLOCK = 1 << 20


def digest_rows(key: bytes, rows: Iterable[Any]) -> tuple[int, int]:
    """Return the sum modulo 2^512 of the keyed hashes of rows, and the number of rows.

    Parameters
    ----------
    key
        At most 64 bytes.
    rows
        One per person: bytes, or a contiguous array of the person's answers.

    Examples
    --------
    >>> whole, count = digest_rows(b"k", [b"a", b"b", b"a"])
    >>> parts = [digest_rows(b"k", [b"a"]), digest_rows(b"k", [b"b", b"a"])]
    >>> add_digests(parts) == (whole, count)
    True
    """
    hashes = (hashlib.blake2b(row, key=key, digest_size=SUM_BYTES, person=b"row") for row in rows)
    return add_digests((int.from_bytes(each.digest(), "little"), 1) for each in hashes)


ID_BYTES = 16


def digest_ids(key: bytes, batches: Iterable[Iterable[object] | None]) -> bytes:
    """Return keyed digests of persons' ids, sorted, each once, one behind the other.

    A batch is None where persons have no ids; that is refused.

    Examples
    --------
    >>> digest_ids(b"k", [["ann"], ["bob"]]) == digest_ids(b"k", [["bob", "ann", "bob"]])
    True
    """
    digests = bytearray()
    for batch in batches:
        if batch is None:
            raise BadUsage(
                "this ledger remembers persons by their ids, and these answers have none: row 1 of "
                "another file is another person. Name the column of ids (--person COL, in "
                "Python person=; of an array, persons=), or charge a ledger that was made without "
                "--remember-persons."
            )
        for name in map(str, batch):
            digest = hashlib.blake2b(name.encode(), key=key, digest_size=ID_BYTES, person=b"id")
            digests += digest.digest()
    return np.unique(np.frombuffer(bytes(digests), dtype=f"S{ID_BYTES}")).tobytes()


def digest_store(key: bytes, items: Sequence[str], store: AnswerStore) -> tuple[int, int]:
    """Return the digest of every person in a store, whose items are in the order of names."""
    step = max(1, BLOCK // max(store.n_items, 1))
    blocks = (store.rows(start, start + step) for start in range(0, store.n_persons, step))
    codes = _cell_codes(key, items, max(store.steps, default=1))
    return add_digests(digest_rows(key, _answered_cells(block, codes)) for block in blocks)


def _cell_codes(key: bytes, items: Sequence[str], highest: int) -> UInt64Array:
    """Return ``[item, answer]``: eight keyed bytes that stand for an item's name with an answer."""
    codes = [
        hashlib.blake2b(f"{answer}{name}".encode(), key=key, digest_size=8, person=b"cell").digest()
        for name in items
        for answer in range(highest + 1)
    ]
    return np.frombuffer(b"".join(codes), dtype=np.uint64).reshape(-1, highest + 1)


def _answered_cells(block: Int8Array, codes: UInt64Array) -> Iterator[UInt64Array]:
    """Yield the codes of each person's answered cells; nothing for a person without any."""
    person, item = np.nonzero(block >= 0)
    cells = codes[item, block[person, item]]
    starts = np.flatnonzero(np.diff(person, prepend=-1))
    for low, high in pairwise([*starts.tolist(), len(cells)]):
        yield cells[low:high]


def add_digests(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the digest of all rows from those of disjoint parts of them."""
    total = count = 0
    for part_total, part_count in parts:
        total += part_total
        count += part_count
    return total % (1 << (8 * SUM_BYTES)), count


Store = TypeVar("Store", bound=AnswerStore)

_START, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)

_MIX = np.uint64(0x9E3779B97F4A7C15)


def thin_persons(store: Store, ids: object, first: int, stands: Int64Array) -> Store:
    """Return the persons who are drawn.

    Parameters
    ----------
    store
        Answers of some persons.
    ids
        Their ids: numbers, texts, or None where they are numbered from ``first`` on.
    stands
        How many persons each of them stands for, if drawn; see :func:`stand_for`.
    """
    person_ids = np.arange(first, first + store.n_persons) if ids is None else ids
    chosen = np.flatnonzero(draw_persons(hash_texts(person_ids), stands))
    return cast(Store, store.pick(chosen))


def stand_for(store: AnswerStore, every: Int64Array) -> Int64Array:
    """Return how many persons everybody stands for, if drawn: the least of the answered items.

    Of persons without answers the most of all items. With steps ``every`` is about nodes, so that
    of a category that few are in everybody is drawn.
    """
    weights = np.full(store.n_persons, every.max(initial=1), dtype=np.int64)
    nodes = store.nodes
    if isinstance(nodes, BitPlanes):
        # Common items first: what a rarer one says is written over it.
        for number in np.unique(every)[-2::-1]:
            words = np.zeros((nodes.right.shape[0], nodes.right.shape[2]), dtype=np.uint64)
            for item in np.flatnonzero(every == number):
                words |= nodes.right[:, item] | nodes.wrong[:, item]
            bits = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(-1)
            weights[bits[: nodes.n_persons].view(bool)] = number
        return weights
    some = np.diff(nodes.indptr) > 0
    if some.any():
        weights[some] = np.minimum.reduceat(every[nodes.item], nodes.indptr[:-1][some])
    return weights


def draw_persons(hashes: UInt64Array, stands: Int64Array) -> BoolArray:
    """Say who is drawn: one of as many as a person would stand for, by the hash's upper half.

    Examples
    --------
    >>> hashes = hash_texts(np.arange(30_000))
    >>> int(draw_persons(hashes, np.full(30_000, 10)).sum())
    2911
    """
    upper = hashes >> np.uint64(32)
    return np.asarray(upper * stands.astype(np.uint64) < np.uint64(1 << 32))


def hash_texts(ids: object) -> UInt64Array:
    """Return a number of 64 bits for each id's text, the same on every machine.

    Examples
    --------
    >>> [hex(one) for one in hash_texts(np.array(["ann", "7"], dtype=object)).tolist()]
    ['0x49f3d787c1a15f7', '0xd9464becc83af5b2']
    >>> bool(hash_texts(np.array([7]))[0] == hash_texts(np.array(["7"], dtype=object))[0])
    True
    """
    starts, octets = _spell(ids)
    # Long texts first, so that those that go on are always the first ones.
    lengths = np.diff(starts)
    order = np.argsort(-lengths, kind="stable")
    at = starts[:-1][order]
    going_on = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)))
    state = np.full(len(order), _START)
    for offset, number in enumerate(going_on):
        some = state[:number]
        some ^= octets[at[:number] + offset]
        some *= _FACTOR
    # The last byte reached the lower digits only.
    state ^= state >> np.uint64(32)
    state *= _MIX
    state ^= state >> np.uint64(29)
    hashes = np.empty_like(state)
    hashes[order] = state
    return hashes


def _spell(ids: Any) -> tuple[Int64Array, npt.NDArray[np.uint8]]:
    """Return where each id's text starts, and the bytes of all texts."""
    import pyarrow as pa

    if isinstance(ids, np.ndarray):
        is_integer = ids.dtype.kind in "iu"
        ids = pa.array(ids) if is_integer else pa.array([str(value) for value in ids], pa.string())
    texts = ids.cast(pa.large_string())
    _, places, content = texts.buffers()
    starts = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    empty = np.zeros(0, dtype=np.uint8)
    return starts, empty if content is None else np.frombuffer(content, dtype=np.uint8)


T = TypeVar("T")

#: Runs of neighbouring persons that make a sample: from all over, because files are sorted.
RUNS = 8


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

    __slots__ = ()

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

    @property
    def has_ids(self) -> bool:
        """Whether a person is an id, and not a row; a table's columns decide it, never its rows."""
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

    def digest(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added."""
        ...

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of the persons' ids; see :func:`digest_ids`.

        Raises
        ------
        BadUsage
            If persons have no ids.
        OutOfReach
            If ids are not asked of answers where these are.
        """
        ...


class Answers(Contributions):
    """Answers of whole persons: what every place has in common, and what it must say itself."""

    __slots__ = ()

    #: Whether persons can be gone through again; those of a query come once.
    lasts = True

    #: Whether all persons are in the memory of this process, so that passes cost little.
    in_memory = False

    @property
    def reading(self) -> Reading:
        """How values became answers; the columns of their table are no part of it."""
        return PLAIN

    @property
    def lowest(self) -> int:
        """The value that category 0 had where the answers were read."""
        return self.reading.lowest or 0

    @property
    def n_answers(self) -> int:
        """Number of answers that were given."""
        raise NotImplementedError

    @property
    def sample(self) -> SurveyDesign | None:
        """Weights and sampling design of the persons, which only answers in memory have."""
        return None

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count pairs in one pass, each person with an integer weight of (answered, right).

        ``tally`` says what else to keep of the persons: folds of them, a sketch of their ids.
        """
        raise NotImplementedError

    def reduce(self, job: Job[T], /) -> T:
        """Fold a job over blocks of whole persons, wherever they are.

        Raises
        ------
        OutOfReach
            If it cannot be done where these answers are; the message says what to do.
        """
        return cast(T, self.reduce_all([job])[0])

    def reduce_all(self, jobs: Sequence[Job[Any]], /) -> list[Any]:
        """Fold several jobs, in one pass where persons are read one after the other."""
        raise NotImplementedError

    def admit(self, job: Job[Any], /) -> None:
        """Raise the error of :meth:`reduce` now, before anything is done; here there is none."""

    def close(self) -> None:
        """Delete what was copied; by default nothing was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of ids that are in memory; others are not asked for."""
        if self.in_memory:
            return digest_ids(key, [cast(Any, self).person_ids])
        raise OutOfReach(
            "this ledger remembers persons by their ids, and ids are not fetched from other "
            "machines. Write the answers to Parquet files and give those, or charge a ledger that "
            "was made without --remember-persons"
        )


def fold_blocks(
    blocks: Iterable[tuple[AnswerStore, object]], n_persons: int, jobs: Sequence[Job[Any]]
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
                is_drawn = job.every is not None
                some = thin_persons(store, ids, first, job.stand(store)) if is_drawn else store
                value = job.block(some)
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
