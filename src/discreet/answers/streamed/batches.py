"""Long rows of any size as batches of whole persons.

Two ways, one result: rows in person order are cut where the person changes, as long as ids only
ever ascend (:class:`OutOfOrder` at the first one that does not, because then a person might come
back later); others are first distributed into buckets by a hash of the person. Answers are stored
by the same function as in memory, which also refuses a person's second answer to an item. Every
batch says how far the pass has come, so that another one can go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.answers.intake import store_answers
from discreet.answers.select import flip_answers
from discreet.answers.steps import step_store
from discreet.answers.streamed.blocks import Block, ItemNames, LongRows
from discreet.answers.streamed.buckets import Buckets
from discreet.counts.nodes import item_of_nodes
from discreet.counts.planes import AnswerStore, BitPlanes, empty_planes, prefers_planes
from discreet.jit import worth_compiling
from discreet.tables.reading import Reading
from discreet.tables.resources import run_ahead
from discreet.tables.values import read_integers
from discreet.types import FloatArray, Int8Array, Int32Array, UInt64Array

TARGET_ROWS = 1 << 20
"""Rows of a batch in person order: enough to make counting efficient, some 20 MB."""
PLAIN_RUN, PLAIN_STORE = 1e-8, 2e-8
"""Seconds that NumPy needs per row to find persons, and to store answers."""


class OutOfOrder(Exception):
    """An id was followed by a smaller one."""


@dataclass(frozen=True)
class BatchPosition:
    """How far a pass has come: what the batches so far hold.

    Attributes
    ----------
    phase
        "ordered": the rows before ``row``. "buckets": the buckets in ``done``.
    row, finished, last
        First row that is still to come; rows of finished shards; the last person so far.
    bits, sizes, done, as_text
        How many buckets there are (a power of two), their rows, which of them are done; the kind
        of ids. Sizes are kept of buckets on disk only: others cannot be come back to.
    rows
        Rows done so far, for progress.
    """

    phase: str = "ordered"
    row: int = 0
    finished: tuple[int, ...] = ()
    last: int | str | None = None
    bits: int = 0
    sizes: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    as_text: bool = False
    rows: int = 0


@dataclass(frozen=True)
class PersonBatch:
    """Whole persons.

    Attributes
    ----------
    items
        Items known so far: a beginning of the final list.
    persons
        Ids, as numbers or texts; None where rows are numbered.
    store
        The answers.
    rows
        Rows behind the batch.
    position
        Where the pass stands behind this batch.
    """

    items: tuple[str, ...]
    persons: Any
    store: AnswerStore
    rows: int
    position: BatchPosition = BatchPosition()


class Rows(Protocol):
    """What long and wide tables share once their rows are distributed."""

    items: ItemNames
    reading: Reading

    def find_answer(self, person: str, item: str, number: int) -> str: ...


# -- rows in person order ----------------------------------------------------------------------


def ordered_batches(rows: LongRows, position: BatchPosition) -> Iterator[PersonBatch]:
    """Yield batches as long as ids ascend; raises ``OutOfOrder`` where they do not."""
    with closing(run_ahead(rows.blocks(position.row, position.finished))) as blocks:
        for span in cut_persons(blocks, TARGET_ROWS, position.last):
            items = tuple(rows.items.names[: span.n_items])
            count = span.stop - span.start
            last = span.ids[-1]
            position = replace(
                position,
                row=span.stop,
                finished=span.finished,
                last=str(last) if isinstance(last, str) else int(last),
                rows=position.rows + count,
            )
            find = partial(_find_row, rows, span.start)
            store = store_rows(*span.coded[:3], span.ids, items, rows.reading, find, span.coded[3])
            yield PersonBatch(items, span.ids, store, count, position)


def _find_row(rows: LongRows, start: int, row: int) -> str:
    return rows.places.place(start + row)


Coded = tuple[Int32Array, Int32Array, Int8Array, FloatArray]


@dataclass(frozen=True)
class Span:
    """Rows ``start`` to ``stop``: all rows of some persons.

    ``coded`` are person codes from 0 that ascend, item codes, answers and what these are in order
    of; ``ids`` the ids behind the person codes.
    """

    coded: Coded
    ids: Any
    n_items: int
    start: int
    stop: int
    finished: tuple[int, ...]


def cut_persons(
    blocks: Iterable[Block], target_rows: int, after: int | str | None = None
) -> Iterator[Span]:
    """Yield spans of about ``target_rows`` rows; every id must be greater than ``after``."""
    gathered = _Gathered(after)
    for block in blocks:
        gathered.add(block)
        if gathered.rows >= target_rows and gathered.n_persons > 1:
            yield gathered.take(keep_last=True)
    if gathered.rows:
        yield gathered.take(keep_last=False)


class _Gathered:
    """Rows that wait to be cut."""

    def __init__(self, after: int | str | None) -> None:
        self._after = after
        self._coded: list[Coded] = []
        self._ids: list[Any] = []
        self.rows = self.n_persons = 0

    def add(self, block: Block) -> None:
        codes, ids = _find_runs(block.person)
        if self.n_persons:
            last = self._ids[-1][-1]
            if ids[0] == last:
                codes, ids = codes - np.int32(1), ids[1:]
            elif ids[0] < last:
                raise OutOfOrder
        elif self._after is not None and ids[0] <= self._after:
            raise OutOfOrder
        at = codes + np.int32(self.n_persons)
        self._coded.append((at, block.item, block.value, block.when))
        if len(ids):
            self._ids.append(ids)
        self.rows += len(codes)
        self.n_persons += len(ids)
        self._block = block

    def take(self, *, keep_last: bool) -> Span:
        """Return the rows of all persons, or of all but the last, who may go on."""
        person, *others = (np.concatenate(parts) for parts in zip(*self._coded, strict=True))
        item, value, when = others
        ids, cut = np.concatenate(self._ids), self.rows
        if keep_last:
            cut = int(np.searchsorted(person, np.int32(self.n_persons - 1)))
        end = self._block.start + len(self._block.value)
        span = Span(
            (person[:cut], item[:cut], value[:cut], when[:cut]), ids[:-1] if keep_last else ids,
            self._block.n_items, end - self.rows, end - self.rows + cut, self._block.finished,
        )  # fmt: skip
        last_person = np.zeros(len(person) - cut, dtype=np.int32)
        self._coded, self._ids = [(last_person, item[cut:], value[cut:], when[cut:])], [ids[-1:]]
        self.rows, self.n_persons = len(last_person), 1
        return span


def _find_runs(person: Any) -> tuple[Int32Array, Any]:
    """Return ascending codes per row and the ids behind them, as an array of numbers or texts."""
    if isinstance(person, np.ndarray):
        if worth_compiling(PLAIN_RUN * len(person)):
            return _find_runs_compiled(person)
        changed = person[1:] != person[:-1]
        if (person[1:] < person[:-1]).any():
            raise OutOfOrder
        codes = np.zeros(len(person), dtype=np.int32)
        np.cumsum(changed, out=codes[1:])
        starts = np.concatenate([[0], np.flatnonzero(changed) + 1])
        return codes, person[starts]
    codes, words = read_integers(person.indices), person.dictionary
    steps = np.diff(codes)
    # First appearances are numbered 0, 1, ...: a step of 0 or 1 means that nobody came back.
    if codes[0] != 0 or codes[-1] != len(words) - 1 or ((steps < 0) | (steps > 1)).any():
        raise OutOfOrder
    texts = np.array(words.to_pylist(), dtype=object)
    if (texts[1:] <= texts[:-1]).any():
        raise OutOfOrder
    return codes, texts


def _find_runs_compiled(person: npt.NDArray[np.int64]) -> tuple[Int32Array, Any]:
    from discreet.answers.streamed.kernels import number_runs

    codes, starts = np.empty((2, len(person)), dtype=np.int32)
    runs = number_runs(person, codes, starts)
    if runs < 0:
        raise OutOfOrder
    return codes, person[starts[:runs]]


# -- rows in buckets ---------------------------------------------------------------------------


def bucket_batches(buckets: Buckets, rows: Rows, position: BatchPosition) -> Iterator[PersonBatch]:
    """Yield one batch per bucket that is not done."""
    items = tuple(rows.items.names)
    left = [bucket for bucket in range(1 << buckets.bits) if bucket not in position.done]
    with closing(run_ahead(map(buckets.read, left), ahead=1)) as tables:
        for bucket, (coded, ids) in zip(left, tables, strict=True):
            find = partial(_find_again, rows, ids, items, *coded[:3])
            store = store_rows(*coded[:3], ids, items, rows.reading, find, coded[3])
            count = len(coded[0])
            position = replace(position, done=(*position.done, bucket), rows=position.rows + count)
            yield PersonBatch(items, ids, store, count, position)


def _find_again(
    rows: Rows, ids: Any, items: Sequence[str], person: Any, item: Any, value: Any, row: int
) -> str:
    """Find the place of a row by reading everything again: only for a message."""
    before = slice(0, row + 1)
    same = (person[before] == person[row]) & (item[before] == item[row]) & (value[before] >= 0)
    return rows.find_answer(str(ids[int(person[row])]), items[item[row]], int(same.sum()))


# -- storing -----------------------------------------------------------------------------------


def store_rows(
    person: Any, item: Any, value: Any, ids: Any,
    items: Sequence[str], reading: Reading, locate: Callable[[int], str],
    when: FloatArray | None = None,
) -> AnswerStore:  # fmt: skip
    """Store coded rows, of which those with the value -1 hold no answer.

    Does what :func:`discreet.answers.intake.store_answers` does, in one pass where it can.
    ``locate`` says where a row stands, ``when`` what repeated answers are in order of.
    """
    if reading.scale is None:
        planes = _mark_planes(person, item, value, len(ids), len(items))
        if planes is not None:
            return planes if reading.one_means == "right" else flip_answers(planes)
    else:
        stepped = _mark_steps(person, item, value, len(ids), reading.steps_of(items))
        if stepped is not None:
            return stepped
    if value.min(initial=0) >= 0:
        return store_answers(person, item, value, ids, items, reading, locate, when)
    rows = np.flatnonzero(value >= 0)
    coded = person[rows], item[rows], value[rows]
    order = None if when is None else when[rows]
    return store_answers(*coded, ids, items, reading, lambda index: locate(int(rows[index])), order)


def _mark_planes(
    person: Any, item: Any, value: Any, n_persons: int, n_items: int
) -> BitPlanes | None:
    """Fill bit planes in one pass; None where rows are better, few or repeated."""
    if not prefers_planes(n_persons, n_items, len(person)):
        return None
    if not worth_compiling(PLAIN_STORE * len(person)):
        return None
    from discreet.answers.streamed.kernels import mark_answers

    planes = empty_planes(n_persons, n_items)
    is_repeated = mark_answers(person, item, value, *planes, *_find_words(planes[0]))
    return None if is_repeated else BitPlanes(*planes, n_persons)


def _find_words(plane: UInt64Array) -> tuple[np.uint64, np.uint64]:
    """Return by how much a word's number is shifted for its block, and what masks its place."""
    n_blocks, _, words = plane.shape
    # Only the last block is not full, so several blocks have a power of two of words.
    shift = 63 if n_blocks == 1 else words.bit_length() - 1
    return np.uint64(shift), np.uint64((1 << shift) - 1)


def _mark_steps(
    person: Any, item: Any, value: Any, n_persons: int, steps: tuple[int, ...]
) -> AnswerStore | None:
    """Do the same for answers with steps."""
    if not prefers_planes(n_persons, sum(steps), 2 * len(person)):
        return None
    if not worth_compiling(PLAIN_STORE * len(person)):
        return None
    from discreet.answers.streamed.kernels import mark_categories

    categories = np.array(steps, dtype=np.uint64) + np.uint64(1)
    first = np.cumsum(categories) - categories
    planes, _ = empty_planes(n_persons, int(categories.sum()))
    mark_categories(person, item, value, first, planes, *_find_words(planes))
    answered = np.bitwise_or.reduceat(planes, first.astype(np.intp), axis=1)
    if np.bitwise_count(answered).sum() < (value >= 0).sum():
        return None  # somebody answered an item twice
    return step_store(_find_nodes(planes, steps, n_persons), steps)


def _find_nodes(planes: UInt64Array, steps: tuple[int, ...], n_persons: int) -> BitPlanes:
    """Return the nodes of planes of categories: right in one, wrong in the one below."""
    below = np.arange(sum(steps)) + item_of_nodes(steps)
    return BitPlanes(np.take(planes, below + 1, axis=1), np.take(planes, below, axis=1), n_persons)
