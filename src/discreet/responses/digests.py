"""Keyed digests of persons' answers, as sums that add up over batches.

In: a key and rows. Out: the sum of the rows' keyed hashes, and how many rows there were. The
sum is the same in any order of the rows and over any batches of them, so every place that
holds a part of the persons computes its part. Without the key nobody can test a guess of the
answers against it. The ledger seals the whole sum into a fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from discreet.responses.store import AnswerStore

__all__ = ["SUM_BYTES", "add_digests", "digest_rows", "digest_store"]

SUM_BYTES = 64

CELLS = 1 << 24
"""Cells looked at together: 16 MB."""


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


def digest_store(key: bytes, store: AnswerStore) -> tuple[int, int]:
    """Return the digest of every person in a store, whose items are in the order of names."""
    step = max(1, CELLS // max(store.n_items, 1))
    starts = range(0, store.n_persons, step)
    return add_digests(digest_rows(key, store.rows(start, start + step)) for start in starts)


def add_digests(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the digest of all rows from those of disjoint parts of them."""
    total = count = 0
    for part_total, part_count in parts:
        total += part_total
        count += part_count
    return total % (1 << (8 * SUM_BYTES)), count
