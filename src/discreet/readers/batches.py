"""From rows to whole persons, in batches: the second half of every reader.

In: blocks of rows. Out: stored answers of whole persons. In memory and in a task of a cluster all
rows make one batch (:func:`gather_blocks`). Out of memory there are two ways, one result: rows in
person order are cut where the person changes, as long as ids only ever ascend (:class:`OutOfOrder`
at the first one that does not, because then a person might come back later); others are first
distributed into buckets by a hash of the person. All of them are stored by one function
(:func:`store_rows`), which also settles a person's second answer to an item. Every batch says how
far the pass has come, so that another one can go on from there.

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
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers import pack
from discreet.answers.pack import Repeated
from discreet.answers.select import flip_answers
from discreet.atomic import create_private, make_folder, naming
from discreet.coding.ids import no_order
from discreet.coding.reading import Reading
from discreet.coding.remedies import make_remedy
from discreet.counts.matrix import item_of_nodes
from discreet.counts.planes import (
    AnswerStore,
    BitPlanes,
    Nodes,
    as_codes,
    empty_planes,
    find_words,
    join_rows,
    mark_planes,
    prefers_planes,
    read_only,
    step_store,
)
from discreet.errors import BadResponses, BadUsage, Remedy
from discreet.jit import worth_compiling
from discreet.readers.rows import (
    BatchPosition,
    LongRows,
    OutOfOrder,
    PersonBatch,
    RowBlock,
    Slab,
    WideRows,
    list_column_numbers,
)
from discreet.tables.cells import read_integers
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.dataset import Dataset, Shard
from discreet.tables.findings import DeclaredSource
from discreet.tables.ids import IdCodes, encode_ids
from discreet.tables.resources import load_duckdb, run_ahead
from discreet.types import FloatArray, Int8Array, Int32Array, Int64Array


class Gathered(NamedTuple):
    """Rows as codes: who, which item, which category, in which order; the ids behind the codes.

    ``rows`` are the numbers of the rows where these are not 0, 1, 2, ...
    """

    person: Int32Array
    item: Int32Array
    value: Int8Array
    when: FloatArray
    ids: Any
    rows: Int64Array | None = None

    def keep(self, chosen: Any) -> Gathered:
        """Return some of the rows; they no longer know their numbers."""
        person, item, value, when, ids, _ = self
        return Gathered(person[chosen], item[chosen], value[chosen], when[chosen], ids)


def gather_blocks(rows: LongRows | WideRows, blocks: Iterable[RowBlock]) -> Gathered:
    """Return all rows as one batch, with the ids of persons without rows too."""
    texts, numbers, coded, places = IdCodes(), list[Any](), list[Any](), list[Any]()
    for block in blocks:
        if isinstance(block.person, np.ndarray):
            numbers.append(block.person)
        else:
            texts.add(block.person, block.kind)
        coded.append((block.item, block.value, block.when))
        places += [] if block.rows is None else [block.rows]
    if rows.silent:
        texts.add(encode_ids(pa.array(rows.silent))[:0])
    person, ids = texts.take_codes(), texts.ids()
    if numbers:
        encoded = pa.array(np.concatenate(numbers)).dictionary_encode()
        person, ids = read_integers(encoded.indices), encoded.dictionary
    nothing = np.zeros(0, dtype=np.int8), no_order(0)
    coded = coded or [(person[:0], *nothing)]
    item, value, when = (np.concatenate(part) for part in zip(*coded, strict=True))
    return Gathered(person, item, value, when, ids, np.concatenate(places) if places else None)


def join_slabs(slabs: Sequence[Slab]) -> AnswerStore:
    """Return the answers of slabs of the same items, behind each other."""
    stores = [slab.store for slab in slabs]
    if len(stores) == 1:
        return stores[0]
    nodes = [store.nodes for store in stores]
    n_persons = sum(part.n_persons for part in nodes)
    n_answers = sum(part.n_answers for part in nodes)
    if not prefers_planes(n_persons, nodes[0].n_items, n_answers):
        joined: Nodes = join_rows([part.take(np.arange(part.n_persons)) for part in nodes])
    else:
        planes = [
            part if isinstance(part, BitPlanes) else pack.pack_rows(part.rows(0, part.n_persons))
            for part in nodes
        ]
        sides = empty_planes(n_persons, nodes[0].n_items)
        for side, plane in zip(("right", "wrong"), sides, strict=True):
            for item in range(nodes[0].n_items):
                words = [(getattr(part, side)[:, item], part.n_persons) for part in planes]
                bits = [(word.ravel().view(np.uint8)[: -(-n // 8)], n) for word, n in words]
                pack.pack_bits(pack.join_bits(bits), plane[:, item])
        joined = BitPlanes(*sides, n_persons)
    return step_store(joined, stores[0].steps)


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
    bits = 0
    while rows * BYTES_A_ROW / (1 << bits) > memory / 3 and bits < MOST_BITS:
        bits += 1
    return bits


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

    def fill(self, blocks: Iterable[RowBlock], rows_done: Callable[[int], None]) -> None:
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

    def read(self, bucket: int) -> Gathered:
        """Return the rows of a bucket."""
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
        return Gathered(read_integers(person.indices), packed >> 4, value, when, ids)

    def _read_table(self, bucket: int) -> Any:
        if not self.on_disk:
            return pa.Table.from_batches(self._held, self._schema)
        cause: Exception | None = None
        try:
            with pa.memory_map(os.fsencode(self._path(bucket))) as file:
                table = pa.ipc.open_stream(file).read_all()
            if table.num_rows == self.sizes[bucket]:
                return table
        except (OSError, pa.ArrowException) as error:
            cause = error
        raise BadUsage(
            f"{self._path(bucket)} does not hold the {self.sizes[bucket]:,} rows that were written "
            "to it: it was changed, or lost when the machine stopped. Delete the checkpoint and "
            "start anew."
        ) from cause

    def _path(self, bucket: int) -> Path:
        return self.folder / f"bucket-{bucket:04}.arrows"

    def _open(self, bucket: int, files: ExitStack) -> Any:
        path = self._path(bucket)
        path.unlink(missing_ok=True)
        create_private(path)
        file = files.enter_context(pa.OSFile(os.fsencode(path), "wb"))
        return files.enter_context(pa.ipc.new_stream(file, self._schema))

    def _add(self, block: RowBlock) -> None:
        packed = (block.item << 4) | (block.value + np.int8(1))
        person = block.person
        if isinstance(person, np.ndarray):
            plain = pa.array(person, pa.int64())
        else:
            plain = person.dictionary.take(person.indices)
        if not self.on_disk:
            self._held.append(self._batch(plain, packed.astype(np.int32), block.when))
            return
        self._slab.append((plain, packed, self._spread(person), block.when))
        if sum(len(packed) for _, packed, *_ in self._slab) >= SLAB_ROWS:
            self._flush()

    def _batch(self, person: object, packed: object, when: FloatArray) -> Any:
        order = [pa.array(column) for column in when.T]
        return pa.record_batch([person, pa.array(packed, pa.int32()), *order], schema=self._schema)

    def _spread(self, person: Any) -> npt.NDArray[np.uint16]:
        """Return the bucket of every row."""
        shift = np.uint64(64 - self.bits)
        if isinstance(person, np.ndarray):
            return ((person.view(np.uint64) * _ODD) >> shift).astype(np.uint16)
        if self._hash is None:
            self._hash = load_duckdb().connect()
        table = self._hash.from_arrow(pa.table({"word": person.dictionary}))
        hashes = np.asarray(table.project("hash(word) AS number").fetchnumpy()["number"])
        return np.asarray((hashes >> shift).astype(np.uint16)[read_integers(person.indices)])

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


def copy_dataset(dataset: Dataset, plans: Sequence[LongPlan | WidePlan], folder: Path) -> Dataset:
    """Copy all shards into a folder; the result reads the copies, under the shards' names."""
    shards = [
        _copy_shard(shard, list_column_numbers(plan), folder / f"shard-{number:04}.arrow")
        for number, (shard, plan) in enumerate(zip(dataset.shards, plans, strict=True))
    ]
    return Dataset(tuple(shards), steady=True, lasting=False)


def _copy_shard(shard: Shard, columns: list[int], path: Path) -> Shard:
    source, rows = shard.open(), 0
    names = [str(number) for number in columns]  # a query's own names may be there twice
    with ExitStack() as files:
        for batch in source.batches(columns):
            table = pa.record_batch(batch, names=names)
            if not path.exists():
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                create_private(path)
                writer = pa.ipc.new_file(str(path), table.schema, options=options)
                files.callback(writer.close)
            writer.write_batch(table)
            rows += table.num_rows
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


def ordered_batches(rows: LongRows, position: BatchPosition) -> Iterator[PersonBatch]:
    """Yield batches as long as ids ascend; raises ``OutOfOrder`` where they do not."""
    waiting = _Waiting(rows, position)
    with closing(run_ahead(rows.blocks(position.row, position.finished))) as blocks:
        for block in blocks:
            waiting.add(block)
            if waiting.n_rows >= TARGET_ROWS and waiting.n_persons > 1:
                yield waiting.take(keep_last=True)
    if waiting.n_rows:
        yield waiting.take(keep_last=False)


class _Waiting:
    """Rows that wait to be cut: codes of persons that ascend, items, answers and their order."""

    def __init__(self, rows: LongRows, position: BatchPosition) -> None:
        self._rows, self._position = rows, position
        self._coded: list[tuple[Int32Array, Int32Array, Int8Array, FloatArray]] = []
        self._ids: list[Any] = []
        self.n_rows = self.n_persons = 0

    def add(self, block: RowBlock) -> None:
        codes, ids = _find_runs(block.person)
        if self.n_persons:
            last = self._ids[-1][-1]
            if ids[0] == last:
                codes, ids = codes - np.int32(1), ids[1:]
            elif ids[0] < last:
                raise OutOfOrder
        elif self._position.last is not None and ids[0] <= self._position.last:
            raise OutOfOrder
        at = codes + np.int32(self.n_persons)
        self._coded.append((at, block.item, block.value, block.when))
        if len(ids):
            self._ids.append(ids)
        self.n_rows += len(codes)
        self.n_persons += len(ids)
        self._block = block

    def take(self, *, keep_last: bool) -> PersonBatch:
        """Return the answers of all persons, or of all but the last, who may go on."""
        parts = zip(*self._coded, strict=True)
        person, item, value, when = (np.concatenate(part) for part in parts)
        ids, cut = np.concatenate(self._ids), self.n_rows
        block, place = self._block, self._rows.places
        if keep_last:
            cut = int(np.searchsorted(person, np.int32(self.n_persons - 1)))
            ids, self._ids = ids[:-1], [ids[-1:]]
        start, last = block.start + len(block.value) - self.n_rows, ids[-1]
        self._coded = [(np.zeros_like(person[cut:]), item[cut:], value[cut:], when[cut:])]
        self.n_rows, self.n_persons = len(person) - cut, 1
        self._position = replace(
            self._position,
            row=start + cut,
            finished=block.finished,
            last=str(last) if isinstance(last, str) else int(last),
            rows=self._position.rows + cut,
        )
        items, reading = tuple(self._rows.items.names[: block.n_items]), self._rows.reading
        rows = Gathered(person, item, value, when, ids).keep(slice(cut))
        store = store_rows(rows, items, reading, lambda row: place.place(start + row))
        return PersonBatch(items, ids, store, cut, self._position)


def _find_runs(person: Any) -> tuple[Int32Array, Any]:
    """Return ascending codes per row and the ids behind them, as an array of numbers or texts."""
    if isinstance(person, np.ndarray):
        if worth_compiling(PLAIN_RUN * len(person)):
            from discreet.counts.pack_kernels import number_runs

            codes, starts = np.empty((2, len(person)), dtype=np.int32)
            runs = number_runs(person, codes, starts)
            if runs < 0:
                raise OutOfOrder
            return codes, person[starts[:runs]]
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


def bucket_batches(
    buckets: Buckets, rows: LongRows | WideRows, position: BatchPosition
) -> Iterator[PersonBatch]:
    """Yield one batch per bucket that is not done."""
    items = tuple(rows.items.names)
    left = [bucket for bucket in range(1 << buckets.bits) if bucket not in position.done]
    with closing(run_ahead(map(buckets.read, left), ahead=1)) as tables:
        for bucket, table in zip(left, tables, strict=True):
            store = store_rows(table, items, rows.reading, partial(_find_again, rows, table))
            count, done = len(table.person), (*position.done, bucket)
            position = replace(position, done=done, rows=position.rows + count)
            yield PersonBatch(items, table.ids, store, count, position)


def _find_again(rows: LongRows | WideRows, table: Gathered, row: int) -> str:
    """Find the place of a row by reading everything again: only for a message."""
    person, item, value, _, ids, _ = table
    before = slice(0, row + 1)
    same = (person[before] == person[row]) & (item[before] == item[row]) & (value[before] >= 0)
    name = rows.items.names[item[row]]
    return rows.find_answer(str(ids[int(person[row])]), name, int(same.sum()))


def store_rows(
    rows: Gathered,
    items: Sequence[str],
    reading: Reading,
    locate: Callable[[int], str],
    column: str | None = None,
) -> AnswerStore:
    """Store answers; a person's second answer to an item is settled as the user said.

    ``locate`` says where a row stands, ``column`` names the column of persons of a wide table, in
    which two persons may have one name.
    """
    person, item, value, when, ids, _ = rows
    steps = reading.steps_of(items)
    is_binary, is_right = all(step == 1 for step in steps), reading.one_means == "right"
    n_entries = len(person) if is_binary else 2 * len(person)
    is_dense = prefers_planes(len(ids), sum(steps), n_entries)
    if is_dense and worth_compiling(PLAIN_STORE * len(person)):
        # In one pass, unless somebody answered an item twice.
        if is_binary:
            planes = mark_planes(person, item, value, len(ids), len(items))
            if planes is not None:
                return planes if is_right else flip_answers(planes)
        elif (stepped := _mark_steps(person, item, value, len(ids), steps)) is not None:
            return stepped
    answered = None
    if value.min(initial=0) < 0:
        answered = np.flatnonzero(value >= 0)
        person, item, value, when, *_ = rows.keep(answered)
    try:
        store = pack.store_steps(person, item, value, len(ids), steps)
    except Repeated as again:
        if reading.repeats == "error":
            first, second = again.first_index, again.second_index
            names = str(ids[int(person[first])]), items[int(item[first])]
            if answered is not None:
                first, second = int(answered[first]), int(answered[second])
            numbering = [] if column is None else [number_rows(column, reading)]
            raise _refuse_repeated(*names, locate(first), locate(second), numbering) from None
        keys = person.astype(np.int64) * len(items) + item
        counting = pack.keep_one(keys, reading.repeats, when)
        store = pack.store_steps(person[counting], item[counting], value[counting], len(ids), steps)
    return store if is_right else flip_answers(cast(Nodes, store))


def _refuse_repeated(
    person: str, item: str, first: str, second: str, numbering: Sequence[Remedy]
) -> BadResponses:
    return BadResponses(
        f"Person '{person}' answered item '{item}' more than once: {first} and {second}. "
        "Only one answer can count. "
        f"{''.join(f'{remedy.words}. ' for remedy in numbering)}"
        "Remove one, or keep the first or the last of them "
        "with repeats='first' or repeats='last' (--repeats first, --repeats last)."
    ).offering(
        *numbering,
        make_remedy("keep the first answer:", {"repeats": "first"}),
        make_remedy("keep the last answer:", {"repeats": "last"}),
    )


def number_rows(column: str, reading: Reading) -> Remedy:
    """Return how two persons with one name are kept apart: every row is another person."""
    remedy = make_remedy("If these are two persons, number the rows with", {"ignore": [column]})
    if reading.person is None:
        return remedy
    words, options = f"{remedy.words} instead of person=", {**remedy.options, "person": None}
    return replace(remedy, words=words, options=options)


def _mark_steps(
    person: Any, item: Any, value: Any, n_persons: int, steps: tuple[int, ...]
) -> AnswerStore | None:
    """Fill bit planes of nodes in one pass; None where somebody answered an item twice."""
    from discreet.counts.pack_kernels import mark_categories

    categories = np.array(steps, dtype=np.uint64) + np.uint64(1)
    first = np.cumsum(categories) - categories
    planes, _ = empty_planes(n_persons, int(categories.sum()))
    coded = as_codes(person), as_codes(item), read_only(value)
    mark_categories(*coded, first, planes, *find_words(planes))
    answered = np.bitwise_or.reduceat(planes, first.astype(np.intp), axis=1)
    if np.bitwise_count(answered).sum() < (value >= 0).sum():
        return None
    # Nodes of planes of categories: right in one, wrong in the one below.
    below = np.arange(sum(steps)) + item_of_nodes(steps)
    right, wrong = (np.take(planes, index, axis=1) for index in (below + 1, below))
    return step_store(BitPlanes(right, wrong, n_persons), steps)
