"""What runs inside a task: read, select, cap, and then one function of the stored answers.

Objects of this module are sent to the executors, where this package must be installed. What a
task returns depends on its rows, and not on their order, nor on which attempt it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.answers.pairs import Weighting, count_store
from discreet.answers.planes import BitPlanes, SparseRows, narrow_items
from discreet.answers.select import keep_entries, select_columns
from discreet.answers.spark.addition import encode_failure, encode_result, encode_vector
from discreet.answers.spark.layout import Layout
from discreet.answers.spark.reading import Persons, read_persons
from discreet.counts.sparse_rows import list_rows
from discreet.errors import BadResponses, BadUsage
from discreet.jit import load_kernels, set_threads, worth_compiling
from discreet.secure import RandomSource
from discreet.types import Int64Array, Vector

Store = BitPlanes | SparseRows


class Step(Protocol):
    """Something that is done to the answers before they are counted."""

    def open(self) -> Callable[[Persons], Persons]:
        """Start a task; the result is applied to all of its persons, batch after batch."""
        ...


@dataclass(frozen=True, eq=False)
class SelectItems:
    """Keep these columns in this order; -1 is one that nobody answered."""

    columns: npt.NDArray[np.int64]

    def open(self) -> Callable[[Persons], Persons]:
        return lambda persons: replace(persons, store=_select(persons.store, self.columns))


@dataclass(frozen=True)
class CapAnswers:
    """Keep a random part of the answers of persons with many."""

    cap: Cap

    def open(self) -> Callable[[Persons], Persons]:
        seen: dict[bytes, int] = {}

        def apply(persons: Persons) -> Persons:
            names = persons.names() or name_rows(persons.store, persons.marks, seen)
            return replace(persons, store=cap_store(persons.store, names, self.cap))

        return apply


def _select(store: Store, columns: npt.NDArray[np.int64]) -> Store:
    selected: Any = select_columns(store, columns)
    return selected  # type: ignore[no-any-return]


@dataclass(frozen=True)
class View:
    """How rows become stored answers."""

    layout: Layout
    steps: tuple[Step, ...] = ()

    def stores(self, batches: Iterator[Any]) -> Iterator[Store]:
        """Yield the answers of one task."""
        # Spark runs a task on each core already.
        set_threads(1)
        if self.layout.many:
            load_kernels()
        steps = [step.open() for step in self.steps]
        for persons in read_persons(batches, self.layout):
            found = persons
            for step in steps:
                found = step(found)
            yield found.store


@dataclass(frozen=True)
class SumUp:
    """A task that sends the sum of a function of the stored answers."""

    view: View
    function: Callable[[Store], Vector]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        total: Vector | None = None
        try:
            for store in self.view.stores(batches):
                more = np.asarray(self.function(store)).ravel()
                total = more if total is None else total + more
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        else:
            if total is not None:
                yield from encode_vector(_part_number(), total)
        _drain(batches)


@dataclass(frozen=True)
class AskEach:
    """A task that sends the results of a function of the stored answers, one by one."""

    view: View
    function: Callable[[Store], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for store in self.view.stores(batches):
                yield encode_result(_part_number(), self.function(store))
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        _drain(batches)


def count_vector(store: Store, weighting: Weighting | None) -> npt.NDArray[np.int64]:
    """Return the pair counts, answers and right answers per item, and the number of persons."""
    answers, right = store.item_totals()
    pairs = count_store(store, weighting)
    return np.concatenate([pairs.ravel(), answers, right, [store.n_persons]])


def _part_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _drain(batches: Iterator[Any]) -> None:
    """Take what is left, because Spark waits until its rows are taken."""
    for _ in batches:
        pass


# Cap each person's answers by a keyed function: random to everyone, the same every time.
#
# In: answers of whole persons, their ids and a secret key. Out: the answers that stay, for each
# person a uniformly random part.
#
# Why executors must not simply draw random numbers: Spark runs a task again when its executor
# dies, when a shuffle block is lost, or when it seems slow, possibly after some of its output was
# used. One person's answers may then be counted under one cap by one stage and under another cap
# by the next, so that more answers than the cap have an influence on one release. The noise is
# calibrated to the cap, so the promise of privacy would be void. Hence one key is drawn from the
# operating system on the driver, and what a person keeps is a function of the key, the person and
# the person's answers: no attempt, no order of rows and no other person changes it. Without the
# key it cannot be told from random, as with every secure generator. The key travels to the
# executors with the task, and is forgotten with it.

KEY_BYTES = 32
PLAIN_CELL = 1e-8
"""Seconds that NumPy needs to list one cell of bit planes."""


@dataclass(frozen=True)
class Cap:
    """The most answers that a person keeps, and the secret that says which."""

    most: int
    key: bytes = field(repr=False)


def draw_cap(most: int, source: RandomSource) -> Cap:
    """Draw the key of a cap: once, on the driver."""
    return Cap(most, source.words(KEY_BYTES // 8).tobytes())


def cap_store(store: BitPlanes | SparseRows, persons: Sequence[bytes], cap: Cap) -> SparseRows:
    """Keep a uniformly random ``cap.most`` of the answers of each person with more.

    Parameters
    ----------
    store
        Answers, items in an order that is the same in every task.
    persons
        The id of every person, all different.
    cap
        How many, and the key.
    """
    rows = _as_rows(store)
    starts = rows.indptr
    answered = np.diff(starts)
    tries = np.zeros(len(answered), dtype=np.int64)

    def draw(listed: Int64Array) -> npt.NDArray[np.uint32]:
        drawn = [
            _expand(cap.key, int(tries[person]), persons[person], 4 * int(answered[person]))
            for person in listed.tolist()
        ]
        tries[listed] += 1
        return np.frombuffer(b"".join(drawn), dtype="<u4")

    keep = keep_entries(starts, cap.most, draw)
    kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
    return SparseRows(kept[starts], rows.item[keep], rows.right[keep], rows.n_items)


def _expand(key: bytes, attempt: int, person: bytes, size: int) -> bytes:
    """Return as many bytes as wanted from a keyed function of the person.

    SHAKE-256 of a secret prefix of fixed length is a pseudorandom function with output of any
    length: a sponge, unlike older hashes, lets nobody go on from its output. One call serves
    all answers of a person. The attempt is counted up where 32 bits do not decide between two
    answers (see :func:`discreet.answers.select.keep_entries`).
    """
    text = b"discreet cap" + key + attempt.to_bytes(4, "little") + person
    return hashlib.shake_256(text).digest(size)


def name_rows(
    store: BitPlanes | SparseRows, marks: Int64Array | None, seen: dict[bytes, int]
) -> list[bytes]:
    """Give rows without ids names that any attempt finds again: what they hold, and a number.

    Positions of rows change when a task runs again, contents do not. The k-th row with the same
    content is named (content, k). Rows with the same content are in one task, so which of them
    is the k-th does not matter: they are equal. Another person in the place of one, one more or
    one less changes one name in the set of all names, so that everybody else's cap stays as it
    was.

    Parameters
    ----------
    store
        The answers.
    marks
        Hashes by which rows were dealt to tasks. Rows that hold the same answers in different
        spellings may be in one task or in two, depending on the number of tasks and so on the
        number of persons; with the mark in the name that makes no difference.
    seen
        How many rows of each content had a name before; counted up.
    """
    names = []
    step = max(1, (1 << 22) // max(store.n_items, 1))
    prefix = np.zeros(store.n_persons, dtype=np.int64) if marks is None else marks
    for start in range(0, store.n_persons, step):
        rows = store.rows(start, start + step)
        for row, mark in zip(rows, prefix[start : start + step].tolist(), strict=True):
            content = mark.to_bytes(8, "little", signed=True) + row.tobytes()
            number = seen.get(content, 0)
            seen[content] = number + 1
            names.append(number.to_bytes(8, "little") + content)
    return names


def _as_rows(store: BitPlanes | SparseRows) -> SparseRows:
    if isinstance(store, SparseRows):
        return store
    if worth_compiling(PLAIN_CELL * store.n_persons * store.n_items):
        return list_rows(store)
    cells = store.rows(0, store.n_persons)
    person, item = np.nonzero(cells >= 0)
    starts = np.zeros(store.n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=store.n_persons), out=starts[1:])
    columns = narrow_items(item, store.n_items)
    return SparseRows(starts, columns, cells[person, item] == 1, store.n_items)
