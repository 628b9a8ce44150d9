"""Add partial sums on executors, so that only the sum reaches the driver.

In: in every task a vector (a matrix of counts, say). Out: on the driver, the sum over tasks. A
vector travels as blocks of numbers in binary rows ``(part, block, payload)``; blocks of the same
number are added by the tasks of later stages, two levels of them where there are many parts. A
task that finds something wrong sends words instead, under a block number of their own, and all
else is dropped: raising in the task would make Spark try the same rows four times.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.types import Vector

SCHEMA = "part int, block int, payload binary"
_ARROW = pa.schema([("part", pa.int32()), ("block", pa.int32()), ("payload", pa.binary())])

BLOCK = 1 << 16
"""Numbers in a block: half a megabyte at most, so that a batch of blocks stays small."""
FAN = 32
"""Parts that are added directly. With more, they are first added in so many groups."""
REDUCERS = 64
"""Tasks that add, at most; each block is added by one of them."""
FAILURE = -1
RESULT = -2


def encode_vector(part: int, vector: Vector) -> Iterator[Any]:
    """Yield the blocks of a vector; blocks of zeros are left out."""
    for number, start in enumerate(range(0, len(vector), BLOCK)):
        block = vector[start : start + BLOCK]
        if block.any():
            yield _row(part, number, _pack(block))


def encode_failure(part: int, failure: DiscreetError) -> Any:
    """Return the row that tells the driver what is wrong with the answers."""
    return _row(part, FAILURE, f"{type(failure).__name__}\n{failure}".encode())


def encode_result(part: int, result: object) -> Any:
    """Return a row with any result that is not added."""
    return _row(part, RESULT, pickle.dumps(result))


def _row(part: int, block: int, payload: bytes) -> Any:
    columns = [
        pa.array([part], pa.int32()),
        pa.array([block], pa.int32()),
        pa.array([payload], pa.binary()),
    ]
    return pa.record_batch(columns, schema=_ARROW)


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
            elif (part, block) in sums:
                sums[part, block] += _unpack(payload)
            else:
                sums[part, block] = _unpack(payload).copy()
    if words is not None:
        yield _row(0, FAILURE, words)
        return
    for (part, block), total in sums.items():
        yield _row(part, block, _pack(total))


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


def read_one(parts: Any) -> list[Any]:
    """Return the results that tasks have sent, of all parts in order."""
    found = sorted(_fetch(parts))
    return [pickle.loads(payload) for _, block, payload in found if block == RESULT]  # noqa: S301


def _fetch(parts: Any) -> list[tuple[int, int, bytes]]:
    """Fetch rows to the driver; words about wrong answers are raised."""
    rows = [(int(part), int(block), bytes(payload)) for part, block, payload in _collect(parts)]
    failures = sorted(payload for _, block, payload in rows if block == FAILURE)
    if failures:
        name, words = failures[0].decode().split("\n", 1)
        kinds: dict[str, type[DiscreetError]] = {"BadUsage": BadUsage, "BadResponses": BadResponses}
        raise kinds.get(name, DiscreetError)(words)
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
