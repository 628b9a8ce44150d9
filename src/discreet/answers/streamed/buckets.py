"""Rows of a source on disk: distributed into buckets of whole persons, or copied.

Rows that are in no order are distributed. In: blocks of rows. Out: per bucket, person ids, item
codes and answers in the order of the rows. A person's bucket is a hash of the id, so all rows of a
person meet in one bucket, which fits into memory.

A query may give other rows the second time, so its rows are copied where several passes are needed
(the number of persons, the ledger's fingerprint and the counts of one release must be those of the
same rows). Only the columns that hold answers are copied, into a folder that only its owner can
open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.streamed.blocks import Block, list_column_numbers
from discreet.atomic import create_private, make_folder, naming
from discreet.errors import BadResponses, BadUsage
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Dataset, Shard
from discreet.tables.remedies import DeclaredSource
from discreet.tables.resources import load_duckdb
from discreet.tables.separators import no_order
from discreet.tables.values import read_integers
from discreet.types import FloatArray, Int8Array, Int32Array

BYTES_A_ROW = 64
"""Memory that a row of a bucket takes at most while it is counted (measured, text ids)."""
MOST_BITS = 9
"""512 buckets: half as many files as a process may usually have open."""
SLAB_ROWS = 1 << 20
"""Rows distributed together, so that a bucket's share is worth a write."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiplying by it spreads neighbouring ids evenly."""


WHEN = ("when", "rest")
"""Columns of what repeated answers are in order of; see :mod:`discreet.tables.separators`."""


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
