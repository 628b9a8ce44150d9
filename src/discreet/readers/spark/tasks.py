"""What runs inside a task: read, select, cap, one function of the stored answers, and addition.

Objects of this module are sent to the executors, where this package must be installed. What a
task returns depends on its rows, and not on their order, nor on which attempt it is.

Partial sums are added on executors, so that only the sum reaches the driver. A vector (a matrix of
counts, say) travels as blocks of numbers in binary rows ``(part, block, payload)``; blocks of the
same number are added by the tasks of later stages, two levels of them where there are many parts. A
task that finds something wrong sends words instead, under a block number of their own, and all
else is dropped: raising in the task would make Spark try the same rows four times.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.answers.protocol import Job, thin_persons
from discreet.answers.select import keep_entries, select_columns
from discreet.counts.folds import Tally, count_folds, hash_persons, sketch_persons
from discreet.counts.pairs import Weighting, count_store, list_rows
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows, StepStore
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.jit import load_kernels, worth_compiling
from discreet.readers.spark.rows import Persons, RowLayout, read_task_persons
from discreet.secure import RandomSource
from discreet.tables.inspection.refusals import BadAnswer
from discreet.threads import set_threads
from discreet.types import Int64Array, UInt64Array, Vector

SAY_STEPS = " If these are steps, name the model: model='partial-credit' or model='rating-scale'."
KEY_BYTES = 32
#: Seconds that NumPy needs to list one cell of bit planes.
PLAIN_CELL = 1e-8

SCHEMA = "part int, block int, payload binary"
_ARROW = pa.schema([("part", pa.int32()), ("block", pa.int32()), ("payload", pa.binary())])

#: Numbers in a block: half a megabyte at most, so that a batch of blocks stays small.
BLOCK = 1 << 16
#: Parts that are added directly. With more, they are first added in so many groups.
FAN = 32
#: Tasks that add, at most; each block is added by one of them.
REDUCERS = 64
FAILURE = -1
RESULT = -2


class Step(Protocol):
    """Something that is done to the answers before they are counted."""

    def open(self) -> Callable[[Persons], Persons]:
        """Start a task; the result is applied to all of its persons, batch after batch."""
        ...


@dataclass(frozen=True, eq=False)
class SelectItems:
    """Keep these columns in this order; -1 is one that nobody answered."""

    columns: Int64Array

    def open(self) -> Callable[[Persons], Persons]:
        return lambda persons: replace(persons, store=select_columns(persons.store, self.columns))


@dataclass(frozen=True)
class CapAnswers:
    """Keep a random part of the answers of persons with many."""

    cap: SparkCap

    def open(self) -> Callable[[Persons], Persons]:
        n_seen: dict[bytes, int] = {}

        def apply(persons: Persons) -> Persons:
            names = persons.names() or make_row_names(persons.store, persons.marks, n_seen)
            return replace(persons, store=cap_store(persons.store, names, self.cap))

        return apply


@dataclass(frozen=True)
class View:
    """How rows become stored answers."""

    layout: RowLayout
    steps: tuple[Step, ...] = ()

    def persons(self, batches: Iterator[object]) -> Iterator[Persons]:
        """Yield the persons of one task."""
        # Spark runs a task on each core already.
        set_threads(1)
        if self.layout.many:
            load_kernels()
        steps = [step.open() for step in self.steps]
        for persons in read_task_persons(batches, self.layout):
            changed = persons
            for step in steps:
                changed = step(changed)
            yield changed


@dataclass(frozen=True)
class SumUp:
    """A task that sends the sum of a function of persons."""

    view: View
    function: Callable[[Persons], Vector]

    def __call__(self, batches: Iterator[object]) -> Iterator[Any]:
        total: Vector | None = None
        try:
            for persons in self.view.persons(batches):
                more = np.asarray(self.function(persons)).ravel()
                total = more if total is None else total + more
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        else:
            if total is not None:
                yield from encode_vector(_part_number(), total)
        _drain(batches)


@dataclass(frozen=True)
class AskEach:
    """A task that sends the results of a function of persons, one by one."""

    view: View
    function: Callable[[Persons], Any]

    def __call__(self, batches: Iterator[object]) -> Iterator[Any]:
        try:
            for persons in self.view.persons(batches):
                yield _row(_part_number(), RESULT, pickle.dumps(self.function(persons)))
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        _drain(batches)


def ask_store(function: Callable[[AnswerStore], Any], persons: Persons) -> Any:
    """Return a function of the answers of persons, whoever they are."""
    return function(persons.store)


def ask_drawn(job: Job[Any], persons: Persons) -> Any:
    """Return the value of those persons who are drawn by their ids."""
    return job.block(thin_persons(persons.store, persons.ids, 0, job.stand(persons.store)))


def count_vector(store: AnswerStore, weighting: Weighting | None) -> Int64Array:
    """Return the pair counts, answers and right answers per node, and the number of persons."""
    answers, right = store.nodes.item_totals()
    pairs = count_store(store, weighting)
    return np.concatenate([pairs.ravel(), answers, right, [store.n_persons]])


def count_fold_vector(persons: Persons, tally: Tally, number: int) -> Int64Array:
    """Return pair counts, answers and the number of persons of every fold."""
    counts = count_folds(persons.store, hash_persons(persons.ids), tally, number)
    return np.concatenate([counts.right_wrong.ravel(), counts.answers.ravel(), counts.persons])


def sketch_ids(persons: Persons) -> UInt64Array:
    """Return the sketch of some persons."""
    return sketch_persons(hash_persons(persons.ids))


def _part_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _drain(batches: Iterator[object]) -> None:
    """Take what is left, because Spark waits until its rows are taken."""
    for _ in batches:
        pass


@dataclass(frozen=True)
class SparkCap:
    """The most answers that a person keeps, and the secret that says which."""

    limit: int
    key: bytes = field(repr=False)


def draw_cap(limit: int, source: RandomSource) -> SparkCap:
    """Draw the key of a cap: once, on the driver."""
    return SparkCap(limit, source.words(KEY_BYTES // 8).tobytes())


def cap_store(store: AnswerStore, persons: Sequence[bytes], cap: SparkCap) -> AnswerStore:
    """Keep a uniformly random ``cap.limit`` of the answers of each person with more.

    By a keyed function: random to everyone, the same every time. Executors must not simply draw
    random numbers, because Spark runs a task again when its executor dies, when a shuffle block is
    lost, or when it seems slow, possibly after some of its output was used. One person's answers
    may then be counted under one cap by one stage and under another cap by the next, so that more
    answers than the cap have an influence on one release. The noise is calibrated to the cap, so
    the promise of privacy would be void. Hence one key is drawn from the operating system on the
    driver, and what a person keeps is a function of the key, the person and the person's answers:
    no attempt, no order of rows and no other person changes it. Without the key it cannot be told
    from random, as with every secure generator. The key travels to the executors with the task,
    and is forgotten with it.

    Parameters
    ----------
    store
        Answers, items in an order that is the same in every task.
    persons
        The id of every person, all different.
    cap
        How many, and the key.
    """
    if isinstance(store, StepStore):
        sparse = StepStore(_as_rows(store.nodes), store.steps)
        return sparse.keep(cast(SparseRows, cap_store(sparse.answered(), persons, cap)))
    rows = _as_rows(store)
    starts = rows.indptr
    answered = np.diff(starts)
    tries = np.zeros(len(answered), dtype=np.int64)

    def draw(listed: Int64Array) -> npt.NDArray[np.uint32]:
        keys = [
            _expand(cap.key, int(tries[person]), persons[person], 4 * int(answered[person]))
            for person in listed.tolist()
        ]
        tries[listed] += 1
        return np.frombuffer(b"".join(keys), dtype="<u4")

    keep = keep_entries(starts, cap.limit, draw)
    return rows.keep(keep)


def _expand(key: bytes, attempt: int, person: bytes, size: int) -> bytes:
    """Return as many bytes as wanted from a keyed function of the person.

    SHAKE-256 of a secret prefix of fixed length is a pseudorandom function with output of any
    length: a sponge, unlike older hashes, lets nobody go on from its output. One call serves
    all answers of a person. The attempt is counted up where 32 bits do not decide between two
    answers (see :func:`discreet.answers.select.keep_entries`).
    """
    text = b"discreet cap" + key + attempt.to_bytes(4, "little") + person
    return hashlib.shake_256(text).digest(size)


def make_row_names(
    store: AnswerStore, marks: Int64Array | None, n_seen: dict[bytes, int]
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
    n_seen
        How many rows of each content had a name before; counted up.
    """
    names = []
    step = max(1, (1 << 22) // max(store.n_items, 1))
    prefix = np.zeros(store.n_persons, dtype=np.int64) if marks is None else marks
    for start in range(0, store.n_persons, step):
        rows = store.rows(start, start + step)
        for row, mark in zip(rows, prefix[start : start + step].tolist(), strict=True):
            content = mark.to_bytes(8, "little", signed=True) + row.tobytes()
            number = n_seen.get(content, 0)
            n_seen[content] = number + 1
            names.append(number.to_bytes(8, "little") + content)
    return names


def _as_rows(store: AnswerStore) -> SparseRows:
    if isinstance(store, SparseRows):
        return store
    if worth_compiling(PLAIN_CELL * store.n_persons * store.n_items):
        return list_rows(cast(BitPlanes, store))
    return cast(SparseRows, store.take(np.arange(store.n_persons)))


def encode_vector(part: int, vector: Vector) -> Iterator[Any]:
    """Yield the blocks of a vector; blocks of zeros are left out."""
    for number, start in enumerate(range(0, len(vector), BLOCK)):
        block = vector[start : start + BLOCK]
        if block.any():
            yield _row(part, number, _pack(block))


def encode_failure(part: int, failure: DiscreetError) -> Any:
    """Return the row that tells the driver what is wrong with the answers."""
    words = f"{type(failure).__name__}\n{' '.join(failure.places)}\n{failure}"
    return _row(part, FAILURE, words.encode())


def _row(part: int, block: int, payload: bytes) -> Any:
    columns = zip(([part], [block], [payload]), _ARROW.types, strict=True)
    return pa.record_batch([pa.array(*column) for column in columns], schema=_ARROW)


def _pack(block: Vector) -> bytes:
    """Return numbers in the narrowest type that holds them, behind the name of that type."""
    if block.dtype.kind == "i" and block.min() >= 0:
        block = block.astype(np.min_scalar_type(int(block.max())))
    little = block.astype(block.dtype.newbyteorder("<"), copy=False)
    return little.dtype.str.encode() + little.tobytes()


def _unpack(payload: bytes) -> Vector:
    kind = np.dtype(payload[:3].decode())
    numbers = np.frombuffer(payload, dtype=kind, offset=3)
    return numbers if kind.kind == "f" else numbers.astype(np.int64)


def _add_blocks(batches: Iterator[Any]) -> Iterator[Any]:
    """Add the blocks of one number, in a task of its own."""
    sums: dict[tuple[int, int], Vector] = {}
    words: bytes | None = None
    for batch in batches:
        for part, block, payload in zip(*(column.to_pylist() for column in batch), strict=True):
            if block == FAILURE:
                # Always the same words, whichever task came first.
                words = payload if words is None else min(words, payload)
            else:
                sums[part, block] = sums.get((part, block), 0) + _unpack(payload)
    if words is None:
        for (part, block), total in sums.items():
            yield _row(part, block, _pack(total))
    else:
        yield _row(0, FAILURE, words)


def collect_sum(parts: Any, length: int, dtype: npt.DTypeLike, n_parts: int) -> Vector:
    """Add up on executors, and return the sum.

    Parameters
    ----------
    parts
        DataFrame of the rows that tasks have made, in :data:`SCHEMA`.
    length, dtype
        Of the vector.
    n_parts
        Number of tasks, as far as it is known: it decides how to add, not what.
    """
    blocks = -(-length // BLOCK)
    if n_parts > FAN:
        grouped = parts.selectExpr(f"part % {FAN} AS part", "block", "payload")
        parts = _reduce(grouped, min(FAN * blocks, REDUCERS))
    if n_parts != 1:
        parts = _reduce(parts.selectExpr("0 AS part", "block", "payload"), min(blocks, REDUCERS))
    total = np.zeros(length, dtype=dtype)
    for _, block, payload in _fetch(parts):
        numbers = _unpack(payload)
        total[block * BLOCK : block * BLOCK + len(numbers)] += numbers
    return total


def _reduce(parts: Any, tasks: int) -> Any:
    return parts.repartition(tasks, "part", "block").mapInArrow(_add_blocks, SCHEMA)


def read_one(parts: object) -> list[Any]:
    """Return the results that tasks have sent, of all parts in order."""
    payloads = sorted(_fetch(parts))
    return [pickle.loads(payload) for _, block, payload in payloads if block == RESULT]  # noqa: S301


def _fetch(parts: object) -> list[tuple[int, int, bytes]]:
    """Fetch rows to the driver; words about wrong answers are raised."""
    rows = [(int(part), int(block), bytes(payload)) for part, block, payload in _collect(parts)]
    failures = sorted(payload for _, block, payload in rows if block == FAILURE)
    if failures:
        name, places, words = failures[0].decode().split("\n", 2)
        kinds = {"BadResponses": BadResponses, "BadAnswer": BadAnswer}
        failure = kinds.get(name, BadUsage)(words + SAY_STEPS * (name == "BadAnswer"))
        failure.places = tuple(places.split())  # so that the error has the code of its statement
        raise failure
    return rows


def _collect(parts: Any) -> list[Any]:
    try:
        return list(parts.collect())
    except Exception as error:  # classic and Connect sessions raise different classes
        missing = re.search(r"No module named '([^']+)'", str(error))
        if missing is None:
            raise
        raise BadUsage(
            f"Spark's executors cannot import {missing[1]!r}. Tasks count with this package and "
            "with what a weighting uses, so both must be installed where tasks run: as libraries "
            "of the cluster, or in an environment that travels with the job (spark.archives)"
        ) from error


_ASK = "import sys, pyarrow, discreet; print(*sys.version_info[:2], sep='.')"
_SECONDS = 60


def check_workers(frame: object) -> None:
    """Refuse a local session whose tasks would run a Python without this package."""
    context = getattr(getattr(frame, "sparkSession", None), "_sc", None)
    if context is None or not str(getattr(context, "master", "")).startswith("local"):
        return
    command = str(getattr(context, "pythonExec", "")) or "python3"
    wrong = _find_fault(command, sys.executable)
    if wrong:
        raise BadUsage(
            f"this Spark session would run its tasks with {command!r}, which {wrong}. Set the "
            f"environment variable PYSPARK_PYTHON to {sys.executable!r} before the session starts, "
            "as in os.environ['PYSPARK_PYTHON'] = sys.executable."
        )


@functools.cache
def _find_fault(command: str, python: str) -> str:
    """Say what is wrong with the Python behind a command; nothing where it serves."""
    path = shutil.which(command)
    if path is None:
        return "is not there"
    # Not resolved: an environment's Python is a link to one without its packages.
    if Path(path).absolute() == Path(python).absolute():
        return ""
    try:
        answer = subprocess.run(  # noqa: S603 (the command that the session itself will start)
            [path, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "does not start"
    if answer.returncode:
        return "cannot import discreet and pyarrow"
    version, ours = answer.stdout.strip(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    return "" if version == ours else f"is Python {version}, not {ours}"
