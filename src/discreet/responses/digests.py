"""Keyed digests of persons' answers, as sums that add up over batches.

In: a key and answers. Out: the sum of the persons' keyed hashes, and how many were added. The
sum is the same in any order of the persons and over any batches of them, so every place that
holds a part of the persons computes its part. Without the key nobody can test a guess of the
answers against it. The ledger seals the whole sum into a fingerprint.

Two rules. By ``cells`` a person is the names of the answered items with the answers, and a person
without answers adds nothing: columns and rows that hold no answer change nothing. By ``rows``,
the rule of ledgers of schema 1, a person is the answers as ``int8`` (1, 0, -1 for missing) in the
order of the items' names; it is there to recognise what such a ledger was charged for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.responses.store import AnswerStore

__all__ = ["CELLS", "ROWS", "SUM_BYTES", "add_digests", "digest_rows", "digest_store"]

CELLS = "cells"
ROWS = "rows"

SUM_BYTES = 64

BLOCK = 1 << 20
"""Cells looked at together: at most about 30 MB."""


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
    total = count = 0
    for row in rows:
        digest = hashlib.blake2b(row, key=key, digest_size=SUM_BYTES, person=b"row").digest()
        total += int.from_bytes(digest, "little")
        count += 1
    return total % (1 << (8 * SUM_BYTES)), count


def digest_store(
    key: bytes, items: Sequence[str], store: AnswerStore, rule: str = CELLS
) -> tuple[int, int]:
    """Return the digest of every person in a store, whose items are in the order of names."""
    step = max(1, BLOCK // max(store.n_items, 1))
    blocks = (store.rows(start, start + step) for start in range(0, store.n_persons, step))
    if rule == ROWS:
        return add_digests(digest_rows(key, block) for block in blocks)
    codes = _cell_codes(key, items)
    return add_digests(digest_rows(key, _answered_cells(block, codes)) for block in blocks)


def _cell_codes(key: bytes, items: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return ``[item, answer]``: eight keyed bytes that stand for an item's name with an answer."""
    codes = [
        hashlib.blake2b(f"{answer}{name}".encode(), key=key, digest_size=8, person=b"cell").digest()
        for name in items
        for answer in (0, 1)
    ]
    return np.frombuffer(b"".join(codes), dtype=np.uint64).reshape(-1, 2)


def _answered_cells(
    block: npt.NDArray[np.int8], codes: npt.NDArray[np.uint64]
) -> Iterator[npt.NDArray[np.uint64]]:
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
