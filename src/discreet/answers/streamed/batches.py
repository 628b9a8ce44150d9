"""Long rows of any size as batches of whole persons.

Two ways, one result: rows in person order are cut where the person changes; others are first
distributed into buckets by a hash of the person. Answers are stored by the same function as in
memory, which also refuses a person's second answer to an item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.streamed.blocks import ItemNames, LongRows
from discreet.answers.streamed.grouping import Buckets, Span, cut_persons, unpack
from discreet.jit import worth_compiling
from discreet.store.pack_numpy import empty_planes
from discreet.store.planes import BitPlanes, SparseRows, prefers_planes
from discreet.store.select import flip_answers
from discreet.tables.long import store_answers
from discreet.tables.resources import run_ahead
from discreet.tables.roles import Reading
from discreet.tables.values import read_integers

PLAIN_ROW = 2e-8
"""Seconds that NumPy needs to store a row."""


class Rows(Protocol):
    """What long and wide tables share once their rows are distributed."""

    items: ItemNames

    def find_answer(self, person: str, item: str, number: int) -> str: ...


TARGET_ROWS = 1 << 20
"""Rows of a batch in person order: enough to make counting efficient, some 20 MB."""


@dataclass(frozen=True)
class Batch:
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
    stop, finished
        In person order: the first row after the batch, and the rows of finished shards.
    bucket
        Otherwise: the number of the bucket.
    """

    items: tuple[str, ...]
    persons: Any
    store: BitPlanes | SparseRows
    rows: int
    stop: int = 0
    finished: tuple[int, ...] = ()
    bucket: int = -1


def ordered_batches(
    rows: LongRows,
    reading: Reading,
    skip: int = 0,
    finished: Sequence[int] = (),
    after: int | str | None = None,
) -> Iterator[Batch]:
    """Yield batches as long as ids ascend; raises ``OutOfOrder`` where they do not."""
    with closing(run_ahead(rows.blocks(skip, finished))) as blocks:
        for span in cut_persons(blocks, TARGET_ROWS, after):
            items = tuple(rows.items.names[: span.n_items])
            store = _store_span(span, items, rows, reading)
            count = span.stop - span.start
            yield Batch(items, span.ids, store, count, span.stop, span.finished)


def _store_span(
    span: Span, items: tuple[str, ...], rows: LongRows, reading: Reading
) -> BitPlanes | SparseRows:
    kept = answered_rows(span.value)

    def place(index: int) -> str:
        return rows.places.place(span.start + (index if kept is None else int(kept[index])))

    return store_rows(span.person, span.item, span.value, kept, span.ids, items, reading, place)


def bucket_batches(
    buckets: Buckets, rows: Rows, reading: Reading, wanted: Sequence[int]
) -> Iterator[Batch]:
    """Yield one batch per bucket."""
    items = tuple(rows.items.names)
    with closing(run_ahead(_read_buckets(buckets, wanted), ahead=1)) as tables:
        for bucket, codes, ids, packed in tables:
            item, value = unpack(packed)
            kept = answered_rows(value)
            place = _Lookup(rows, ids, items, codes, item, kept)
            store = store_rows(codes, item, value, kept, ids, items, reading, place)
            yield Batch(items, ids, store, len(codes), bucket=bucket)


def _read_buckets(
    buckets: Buckets, wanted: Sequence[int]
) -> Iterator[tuple[int, npt.NDArray[np.int32], Any, npt.NDArray[np.int32]]]:
    for bucket in wanted:
        table = buckets.read(bucket)
        person = table.column("person").combine_chunks().dictionary_encode()
        codes = read_integers(person.indices)
        ids = person.dictionary
        if pa.types.is_integer(ids.type):
            ids = read_integers(ids)
        packed = [read_integers(chunk) for chunk in table.column("answer").chunks]
        empty = np.zeros(0, dtype=np.int32)
        yield bucket, codes, ids, np.concatenate([empty, *packed])


def answered_rows(value: npt.NDArray[np.int8]) -> npt.NDArray[np.intp] | None:
    """Return the rows that hold an answer; None for all."""
    return np.flatnonzero(value >= 0) if value.min(initial=0) < 0 else None


def store_rows(
    person: Any, item: Any, value: Any, kept: Any, ids: Any,
    items: Sequence[str], reading: Reading, place: Any,
) -> BitPlanes | SparseRows:  # fmt: skip
    """Store coded rows, of which ``kept`` (None for all) hold an answer.

    Does what :func:`discreet.tables.long.store_answers` does, in one pass where it can.
    """
    planes = _mark_planes(person, item, value, len(ids), len(items))
    if planes is not None:
        return planes if reading.one_means == "right" else flip_answers(planes)
    if kept is not None:
        person, item, value = person[kept], item[kept], value[kept]
    return store_answers(person, item, value == 1, ids, items, reading, place)


def _mark_planes(
    person: Any, item: Any, value: Any, n_persons: int, n_items: int
) -> BitPlanes | None:
    """Fill bit planes in one pass; None where rows are better, few or repeated."""
    if not prefers_planes(n_persons, n_items, len(person)):
        return None
    if not worth_compiling(PLAIN_ROW * len(person)):
        return None
    from discreet.answers.streamed.kernels import mark_answers

    planes = empty_planes(n_persons, n_items)
    n_blocks, _, words = planes[0].shape
    # Only the last block is not full, so several blocks have a power of two of words.
    shift = 63 if n_blocks == 1 else words.bit_length() - 1
    mask = np.uint64((1 << shift) - 1)
    again = mark_answers(person, item, value, *planes, np.uint64(shift), mask)
    return None if again else BitPlanes(*planes, n_persons)


class _Lookup:
    """Find the row of an answer by reading everything again: only for a message."""

    def __init__(
        self, rows: Rows, ids: Any, items: Sequence[str], codes: Any, item: Any, kept: Any
    ) -> None:
        self._rows, self._ids, self._items = rows, ids, items
        self._codes, self._item, self._kept = codes, item, kept

    def __call__(self, index: int) -> str:
        row = index if self._kept is None else int(self._kept[index])
        code, item = self._codes[row], self._item[row]
        before = slice(0, row + 1) if self._kept is None else self._kept[: index + 1]
        same = (self._codes[before] == code) & (self._item[before] == item)
        return self._rows.find_answer(str(self._ids[int(code)]), self._items[item], int(same.sum()))
