"""Long rows of any size as batches of whole persons.

Two ways, one result: rows in person order are cut where the person changes, as long as ids only
ever ascend (:class:`OutOfOrder` at the first one that does not, because then a person might come
back later); others are first distributed into buckets by a hash of the person. Answers are stored
by the same function as in memory, which also refuses a person's second answer to an item. Every
batch says how far the pass has come, so that another one can go on from there.

A person's bucket is a hash of the id, so all rows of a person meet in one bucket, which fits into
memory. A query may give other rows the second time, so its rows are copied where several passes are
needed (the number of persons, the ledger's fingerprint and the counts of one release must be those
of the same rows). Only the columns that hold answers are copied, into a folder that only its owner
can open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.reading import store_answers
from discreet.answers.select import flip_answers
from discreet.answers.streamed.rows import (
    BatchPosition,
    Block,
    ItemNames,
    LongRows,
    OutOfOrder,
    PersonBatch,
    list_column_numbers,
)
from discreet.atomic import create_private, make_folder, naming
from discreet.counts.matrix import item_of_nodes
from discreet.counts.planes import (
    AnswerStore,
    BitPlanes,
    as_codes,
    empty_planes,
    find_words,
    mark_planes,
    prefers_planes,
    read_only,
    step_store,
)
from discreet.errors import BadResponses, BadUsage
from discreet.jit import worth_compiling
from discreet.resources import load_duckdb, run_ahead
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Dataset, Shard
from discreet.tables.ids import no_order
from discreet.tables.reading import Reading
from discreet.tables.remedies import DeclaredSource
from discreet.tables.values import read_integers
from discreet.types import FloatArray, Int8Array, Int32Array, UInt64Array

#: Memory that a row of a bucket takes at most while it is counted (measured, text ids).
BYTES_A_ROW = 64
#: 512 buckets: half as many files as a process may usually have open.
MOST_BITS = 9
#: Rows distributed together, so that a bucket's share is worth a write.
SLAB_ROWS = 1 << 20
#: 2^64 divided by the golden ratio: multiplying by it spreads neighbouring ids evenly.
_ODD = np.uint64(0x9E3779B97F4A7C15)


#: Columns of what repeated answers are in order of; see :mod:`discreet.tables.ids`.
WHEN = ("when", "rest")


def choose_bits(rows: int, memory: int) -> int:
    """Return the power of two of buckets that makes each fit into a third of the memory."""
    buckets = 1
    while rows * BYTES_A_ROW / buckets > memory / 3 and buckets < 1 << MOST_BITS:
        buckets *= 2
    return buckets.bit_length() - 1


class Buckets:
    """2^bits files of rows in a folder, or one table in memory when there is one bucket.

    Parameters
    ----------
    folder, bits
        Where the files are, and how many.
    as_text
        Whether ids are texts.
    sizes
        Rows of each bucket that was filled before.
    ordered
        Whether rows carry what repeated answers are in order of.
    """

    def __init__(
        self,
        folder: Path,
        bits: int,
        *,
        as_text: bool,
        sizes: Sequence[int] = (),
        ordered: bool = False,
    ) -> None:
        self.folder, self.bits = folder, bits
        self.sizes = list(sizes) or [0] * (1 << bits)
        self._schema = pa.schema(
            [("person", pa.string() if as_text else pa.int64()), ("answer", pa.int32())]
            + [(name, pa.float64()) for name in WHEN if ordered]
        )
        self._held: list[Any] = []
        self._writers: list[Any] = []
        self._slab: list[tuple[Any, Any, Any, Any]] = []
        self._hash: Any = None

    @property
    def on_disk(self) -> bool:
        """Whether rows are written to files."""
        return self.bits > 0

    def fill(self, blocks: Iterable[Block], rows_done: Callable[[int], None]) -> None:
        """Take in all rows; on any failure the files are closed."""
        with ExitStack() as files:
            if self.on_disk:
                make_folder(self.folder)
                self._writers = [self._open(bucket, files) for bucket in range(1 << self.bits)]
            for block in blocks:
                with naming(self.folder):
                    self._add(block)
                rows_done(len(block.value))
            with naming(self.folder):
                self._flush()

    def read(self, bucket: int) -> tuple[tuple[Int32Array, Int32Array, Int8Array, FloatArray], Any]:
        """Return person codes, item codes, answers and their order, and the persons' ids."""
        table = self._read_table(bucket)
        person = table.column("person").combine_chunks().dictionary_encode()
        ids = person.dictionary
        if pa.types.is_integer(ids.type):
            ids = read_integers(ids)
        packed = np.concatenate(
            [np.zeros(0, np.int32), *map(read_integers, table.column("answer").chunks)]
        )
        names = [name for name in WHEN if name in table.column_names]
        order = [table.column(name).to_numpy() for name in names]
        when = np.stack(order, axis=1) if order else no_order(len(packed))
        value = ((packed & 15) - 1).astype(np.int8)
        return (read_integers(person.indices), packed >> 4, value, when), ids

    def _read_table(self, bucket: int) -> Any:
        if not self.on_disk:
            return pa.Table.from_batches(self._held, self._schema)
        try:
            with pa.memory_map(os.fsencode(self._path(bucket))) as file:
                table = pa.ipc.open_stream(file).read_all()
        except (OSError, pa.ArrowException) as error:
            raise BadUsage(self._damaged(bucket)) from error
        if table.num_rows != self.sizes[bucket]:
            raise BadUsage(self._damaged(bucket))
        return table

    def _damaged(self, bucket: int) -> str:
        return (
            f"{self._path(bucket)} does not hold the {self.sizes[bucket]:,} rows that were written "
            "to it: it was changed, or lost when the machine stopped. Delete the checkpoint and "
            "start anew."
        )

    def _path(self, bucket: int) -> Path:
        return self.folder / f"bucket-{bucket:04}.arrows"

    def _open(self, bucket: int, files: ExitStack) -> Any:
        path = self._path(bucket)
        path.unlink(missing_ok=True)
        create_private(path)
        file = files.enter_context(pa.OSFile(os.fsencode(path), "wb"))
        return files.enter_context(pa.ipc.new_stream(file, self._schema))

    def _add(self, block: Block) -> None:
        packed = (block.item << 4) | (block.value + np.int8(1))
        if not self.on_disk:
            batch = self._batch(_plain(block.person), packed.astype(np.int32), block.when)
            self._held.append(batch)
            return
        spread = self._spread(block.person)
        self._slab.append((_plain(block.person), packed, spread, block.when))
        if sum(len(packed) for _, packed, *_ in self._slab) >= SLAB_ROWS:
            self._flush()

    def _batch(self, person: Any, packed: Any, when: FloatArray) -> Any:
        order = [pa.array(column) for column in when.T]
        return pa.record_batch([person, pa.array(packed, pa.int32()), *order], schema=self._schema)

    def _spread(self, person: Any) -> npt.NDArray[np.uint16]:
        """Return the bucket of every row."""
        shift = np.uint64(64 - self.bits)
        if isinstance(person, np.ndarray):
            return ((person.view(np.uint64) * _ODD) >> shift).astype(np.uint16)
        words = (self._hash_words(person.dictionary) >> shift).astype(np.uint16)
        return np.asarray(words[read_integers(person.indices)])

    def _hash_words(self, words: Any) -> npt.NDArray[np.uint64]:
        if self._hash is None:
            self._hash = load_duckdb().connect()
        table = self._hash.from_arrow(pa.table({"word": words}))
        return np.asarray(table.project("hash(word) AS number").fetchnumpy()["number"])

    def _flush(self) -> None:
        if not self._slab:
            return
        persons, packed, bucket, when = zip(*self._slab, strict=True)
        self._slab = []
        target = np.concatenate(bucket)
        # Stable, so that a bucket keeps the order of the rows: "first" and "last" depend on it.
        order = np.argsort(target, kind="stable")
        taken = pa.concat_arrays(persons).take(pa.array(order))
        batch = self._batch(taken, np.concatenate(packed)[order], np.concatenate(when)[order])
        edges = np.searchsorted(target[order], np.arange((1 << self.bits) + 1))
        for number, writer in enumerate(self._writers):
            start, stop = int(edges[number]), int(edges[number + 1])
            if stop > start:
                self.sizes[number] += stop - start
                writer.write_batch(batch.slice(start, stop - start))


def _plain(person: Any) -> Any:
    if isinstance(person, np.ndarray):
        return pa.array(person, pa.int64())
    return person.dictionary.take(person.indices)


def copy_dataset(dataset: Dataset, plans: Sequence[LongPlan | WidePlan], folder: Path) -> Dataset:
    """Copy all shards into a folder; the result reads the copies, under the shards' names."""
    shards = [
        _copy_shard(shard, list_column_numbers(plan), folder / f"shard-{number:04}.arrow")
        for number, (shard, plan) in enumerate(zip(dataset.shards, plans, strict=True))
    ]
    return Dataset(tuple(shards), steady=True, lasting=False)


def _copy_shard(shard: Shard, columns: list[int], path: Path) -> Shard:
    source = shard.open()
    rows, writer = 0, None
    names = [str(number) for number in columns]  # a query's own names may be there twice
    try:
        for batch in source.batches(columns):
            table = pa.record_batch(batch, names=names)
            if writer is None:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                create_private(path)
                writer = pa.ipc.new_file(str(path), table.schema, options=options)
            writer.write_batch(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    copy = _Copy(source.name, tuple(source.names), tuple(columns), path, rows)
    return Shard(shard.name, lambda: copy, rows, (*shard.identity, str(path)))


@dataclass(frozen=True)
class _Copy(DeclaredSource):
    """Copied rows of a source; see :class:`discreet.tables.opener.Source`."""

    name: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    path: Path
    rows: int

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns in the types that the query gave them."""
        if not self.rows:
            return
        places = [self.columns.index(number) for number in columns]
        # Arrow wants them in ascending order and hands them out in that order.
        selection = sorted(set(places))
        options = pa.ipc.IpcReadOptions(included_fields=selection)
        try:
            with pa.ipc.open_file(str(self.path), options=options) as file:
                for number in range(file.num_record_batches):
                    batch = file.get_batch(number)
                    yield [batch.column(selection.index(position)) for position in places]
        except (pa.ArrowException, OSError) as error:
            raise BadResponses(
                f"the copy of {self.name} in {self.path} can no longer be read ({error}). Start "
                "anew, with a folder for temporary files that nobody cleans up."
            ) from None

    def place(self, row: int) -> str:
        """Return the row, counted from 1."""
        return f"{self.name}, row {row + 1} of its result"


#: Rows of a batch in person order: enough to make counting efficient, some 20 MB.
TARGET_ROWS = 1 << 20

#: Seconds that NumPy needs per row to find persons, and to store answers.
PLAIN_RUN, PLAIN_STORE = 1e-8, 2e-8


class Rows(Protocol):
    """What long and wide tables share once their rows are distributed."""

    items: ItemNames
    reading: Reading

    def find_answer(self, person: str, item: str, number: int) -> str: ...


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
    from discreet.counts.pack_kernels import number_runs

    codes, starts = np.empty((2, len(person)), dtype=np.int32)
    runs = number_runs(person, codes, starts)
    if runs < 0:
        raise OutOfOrder
    return codes, person[starts[:runs]]


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


def store_rows(
    person: Any, item: Any, value: Any, ids: Any,
    items: Sequence[str], reading: Reading, locate: Callable[[int], str],
    when: FloatArray | None = None,
) -> AnswerStore:  # fmt: skip
    """Store coded rows, of which those with the value -1 hold no answer.

    Does what :func:`discreet.answers.reading.store_answers` does, in one pass where it can.
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
    return mark_planes(person, item, value, n_persons, n_items)


def _mark_steps(
    person: Any, item: Any, value: Any, n_persons: int, steps: tuple[int, ...]
) -> AnswerStore | None:
    """Do the same for answers with steps."""
    if not prefers_planes(n_persons, sum(steps), 2 * len(person)):
        return None
    if not worth_compiling(PLAIN_STORE * len(person)):
        return None
    from discreet.counts.pack_kernels import mark_categories

    categories = np.array(steps, dtype=np.uint64) + np.uint64(1)
    first = np.cumsum(categories) - categories
    planes, _ = empty_planes(n_persons, int(categories.sum()))
    coded = as_codes(person), as_codes(item), read_only(value)
    mark_categories(*coded, first, planes, *find_words(planes))
    answered = np.bitwise_or.reduceat(planes, first.astype(np.intp), axis=1)
    if np.bitwise_count(answered).sum() < (value >= 0).sum():
        return None  # somebody answered an item twice
    return step_store(_find_nodes(planes, steps, n_persons), steps)


def _find_nodes(planes: UInt64Array, steps: tuple[int, ...], n_persons: int) -> BitPlanes:
    """Return the nodes of planes of categories: right in one, wrong in the one below."""
    below = np.arange(sum(steps)) + item_of_nodes(steps)
    return BitPlanes(np.take(planes, below + 1, axis=1), np.take(planes, below, axis=1), n_persons)
