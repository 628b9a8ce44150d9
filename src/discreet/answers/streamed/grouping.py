"""Cut rows that are in person order into batches of whole persons.

In: blocks of rows. Out: batches in which every person is whole, as long as ids only ever
ascend; :class:`OutOfOrder` at the first one that does not, because then a person might come
back later. Nothing is sorted and nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.streamed.blocks import Block
from discreet.atomic import create_private, make_folder, naming
from discreet.errors import BadUsage
from discreet.jit import worth_compiling
from discreet.tables.values import read_integers
from discreet.types import Int8Array, Int32Array

PLAIN_ROW = 1e-8
"""Seconds that NumPy needs per row."""


class OutOfOrder(Exception):
    """An id was followed by a smaller one."""


@dataclass(frozen=True)
class Span:
    """Rows ``start`` to ``stop``: all rows of ``n_persons`` persons.

    ``person`` are codes from 0 that ascend, ``ids`` the ids behind them.
    """

    person: Int32Array
    ids: Any
    item: Int32Array
    value: Int8Array
    n_items: int
    start: int
    stop: int
    finished: tuple[int, ...]


def cut_persons(
    blocks: Iterable[Block], target_rows: int, after: int | str | None = None
) -> Iterator[Span]:
    """Yield spans of about ``target_rows`` rows; every id must be greater than ``after``."""
    gathered = _Gathered(after=after)
    for block in blocks:
        gathered.add(block)
        if gathered.rows >= target_rows and gathered.n_persons > 1:
            yield gathered.take(keep_last=True)
    if gathered.rows:
        yield gathered.take(keep_last=False)


def check_order(persons: Iterable[Any]) -> None:
    """Raise ``OutOfOrder`` unless these columns of ids, one after the other, ascend."""
    last: Any = None
    for person in persons:
        ids = _find_runs(person)[1]
        if last is not None and ids[0] < last:
            raise OutOfOrder
        last = ids[-1]


@dataclass
class _Gathered:
    """Rows that wait to be cut."""

    after: int | str | None = None
    person: list[Int32Array] = field(default_factory=list)
    item: list[Int32Array] = field(default_factory=list)
    value: list[Int8Array] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    rows: int = 0
    n_persons: int = 0
    start: int = -1
    n_items: int = 0
    finished: tuple[int, ...] = ()

    def add(self, block: Block) -> None:
        codes, ids = _find_runs(block.person)
        if self.n_persons:
            last = self.ids[-1][-1]
            if ids[0] == last:
                codes, ids = codes - np.int32(1), ids[1:]
            elif ids[0] < last:
                raise OutOfOrder
        elif self.after is not None and ids[0] <= self.after:
            raise OutOfOrder
        if self.start < 0:
            self.start = block.start
        self.person.append(codes + np.int32(self.n_persons))
        self.item.append(block.item)
        self.value.append(block.value)
        if len(ids):
            self.ids.append(ids)
        self.rows += len(codes)
        self.n_persons += len(ids)
        self.n_items, self.finished = block.n_items, block.finished

    def take(self, *, keep_last: bool) -> Span:
        """Return the rows of all persons, or of all but the last, who may go on."""
        person, item = np.concatenate(self.person), np.concatenate(self.item)
        value = np.concatenate(self.value)
        ids = np.concatenate(self.ids)
        stop = self.rows
        if keep_last:
            stop = int(np.searchsorted(person, np.int32(self.n_persons - 1)))
        span = Span(
            person[:stop], ids[:-1] if keep_last else ids, item[:stop], value[:stop],
            self.n_items, self.start, self.start + stop, self.finished,
        )  # fmt: skip
        rest = np.zeros(len(person) - stop, dtype=np.int32)
        self.person, self.item, self.value = [rest], [item[stop:]], [value[stop:]]
        self.ids = [ids[-1:]]
        self.rows, self.n_persons, self.start = len(rest), 1, self.start + stop
        return span


def _find_runs(person: Any) -> tuple[Int32Array, Any]:
    """Return ascending codes per row and the ids behind them, as an array of numbers or texts."""
    if isinstance(person, np.ndarray):
        if worth_compiling(PLAIN_ROW * len(person)):
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


# Distribute rows that are in no order into buckets of whole persons, on disk if need be.
#
# In: blocks of rows. Out: per bucket, a table of person ids and packed answers in the order of
# the rows. A person's bucket is a hash of the id, so all rows of a person meet in one bucket,
# which fits into memory.

BYTES_A_ROW = 64
"""Memory that a row of a bucket takes at most while it is counted (measured, text ids)."""
MOST_BITS = 9
"""512 buckets: half as many files as a process may usually have open."""
SLAB_ROWS = 1 << 20
"""Rows distributed together, so that a bucket's share is worth a write."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiplying by it spreads neighbouring ids evenly."""


def choose_bits(rows: int, memory: int) -> int:
    """Return the power of two of buckets that makes each fit into a third of the memory."""
    buckets = 1
    while rows * BYTES_A_ROW / buckets > memory / 3 and buckets < 1 << MOST_BITS:
        buckets *= 2
    return buckets.bit_length() - 1


def unpack(packed: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8]]:
    """Return item codes and answers of packed rows."""
    return packed >> 2, ((packed & 3) - 1).astype(np.int8)


class Buckets:
    """2^bits files of rows in a folder, or one table in memory when there is one bucket."""

    def __init__(self, folder: Path, bits: int, *, as_text: bool) -> None:
        self.folder, self.bits = folder, bits
        self._schema = pa.schema(
            [("person", pa.string() if as_text else pa.int64()), ("answer", pa.int32())]
        )
        self._held: list[Any] = []
        self._writers: list[Any] = []
        self._files: list[Any] = []
        self._slab: list[tuple[Any, Any, Any]] = []
        self._waiting = 0
        self._hash: Any = None
        self.sizes: list[int] = [0] * (1 << bits)

    @property
    def on_disk(self) -> bool:
        """Whether rows are written to files."""
        return self.bits > 0

    def fill(self, blocks: Iterable[Block], rows_done: Any) -> None:
        """Take in all rows; on any failure the files are closed."""
        try:
            self._open()
            for block in blocks:
                with naming(self.folder):
                    self._add(block)
                rows_done(len(block.value))
            with naming(self.folder):
                self._flush()
        finally:
            self._close()

    def read(self, bucket: int) -> Any:
        """Return the rows of one bucket as a table."""
        if not self.on_disk:
            return pa.Table.from_batches(self._held, self._schema)
        try:
            with pa.memory_map(str(self._path(bucket))) as file:
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

    def remove(self, bucket: int) -> None:
        """Delete the rows of a bucket that is done."""
        if self.on_disk:
            self._path(bucket).unlink(missing_ok=True)
        self._held = []

    def _path(self, bucket: int) -> Path:
        return self.folder / f"bucket-{bucket:04}.arrows"

    def _open(self) -> None:
        if self.on_disk:
            make_folder(self.folder)
            for bucket in range(1 << self.bits):
                self._path(bucket).unlink(missing_ok=True)
                create_private(self._path(bucket))
                self._files.append(pa.OSFile(str(self._path(bucket)), "wb"))
                self._writers.append(pa.ipc.new_stream(self._files[-1], self._schema))

    def _close(self) -> None:
        for stream in (*self._writers, *self._files):
            stream.close()
        self._writers, self._files = [], []

    def _add(self, block: Block) -> None:
        packed = (block.item << 2) | (block.value + np.int8(1))
        if not self.on_disk:
            self._held.append(self._batch(_plain(block.person), packed.astype(np.int32)))
            return
        self._slab.append((_plain(block.person), packed, self._spread(block.person)))
        self._waiting += len(packed)
        if self._waiting >= SLAB_ROWS:
            self._flush()

    def _batch(self, person: Any, packed: Any) -> Any:
        return pa.record_batch([person, pa.array(packed, pa.int32())], schema=self._schema)

    def _spread(self, person: Any) -> npt.NDArray[np.uint16]:
        """Return the bucket of every row."""
        shift = np.uint64(64 - self.bits)
        if isinstance(person, np.ndarray):
            return ((person.view(np.uint64) * _ODD) >> shift).astype(np.uint16)
        words = (self._hash_words(person.dictionary) >> shift).astype(np.uint16)
        return np.asarray(words[read_integers(person.indices)])

    def _hash_words(self, words: Any) -> npt.NDArray[np.uint64]:
        if self._hash is None:
            import duckdb

            self._hash = duckdb.connect()
        table = self._hash.from_arrow(pa.table({"word": words}))
        return np.asarray(table.project("hash(word) AS number").fetchnumpy()["number"])

    def _flush(self) -> None:
        if not self._slab:
            return
        persons, packed, bucket = zip(*self._slab, strict=True)
        self._slab, self._waiting = [], 0
        target = np.concatenate(bucket)
        # Stable, so that a bucket keeps the order of the rows: "first" and "last" depend on it.
        order = np.argsort(target, kind="stable")
        taken = pa.concat_arrays(persons).take(pa.array(order))
        batch = self._batch(taken, np.concatenate(packed)[order])
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
