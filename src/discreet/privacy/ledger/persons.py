"""Persons whom a ledger remembers, if it was made so: keyed digests of ids, release by release.

In: digests, and declared populations. Out: a refusal where the same person is in the data of two
populations that are declared disjoint. Digests stay in the ledger: nothing that is shown depends
on them. The seal of each release covers its digests.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from discreet.answers.select import ID_BYTES
from discreet.errors import BadUsage, LedgerError
from discreet.privacy.ledger.file import believe
from discreet.privacy.ledger.history import History, LedgerEntry


def check_given(path: Path, digests: bytes | None, *, needed: bool) -> None:
    """Refuse a release without digests where they are kept, or with them where they are not."""
    if (digests is not None) != needed:
        raise BadUsage(
            f"{path}: give ids=ledger.remember(answers): digests where the ledger remembers "
            f"persons, and None where it does not."
        )


def seal_persons(key: bytes, digests: bytes) -> str:
    """Return what the entry of a release says about its persons' digests."""
    return hashlib.blake2b(digests, key=key, digest_size=32, person=b"persons").hexdigest()


def keep_persons(connection: sqlite3.Connection, number: int, digests: bytes) -> None:
    """Store the digests of a release that is being charged."""
    connection.execute("INSERT INTO persons VALUES (?, ?)", (number, digests))


def check_remembered(connection: sqlite3.Connection, path: Path, history: History) -> None:
    """Refuse a ledger that has lost the persons of a release, or has those of another."""
    releases = {number for (number,) in connection.execute("SELECT release FROM persons")}
    with believe(path, "whom its releases are about"):
        if releases != {entry.number for entry in history.entries if entry.ids is not None}:
            raise ValueError("the digests of a release are gone, or too many")


def check_release(
    connection: sqlite3.Connection, key: bytes, history: History, population: str, digests: bytes
) -> None:
    """Refuse a release about somebody who is in the data of a disjoint population."""
    for entry in history.entries:
        if history.populations.are_disjoint(population, entry.population):
            _refuse_shared(
                digests, read_person_digests(connection, history.path, key, entry),
                f"{history.path}: {population!r} is declared disjoint from {entry.population!r}, "
                f"and somebody in this data is also in data that was charged to "
                f"{entry.population!r} (release {entry.number}). Nothing was charged; correct the "
                f"declaration or the data.",
            )  # fmt: skip


def check_disjoint(
    connection: sqlite3.Connection, key: bytes, before: History, after: History
) -> None:
    """Refuse a declaration by which populations become disjoint whose data share somebody."""
    for first, second in _newly_apart(before, after):
        _refuse_shared(
            read_person_digests(connection, after.path, key, first),
            read_person_digests(connection, after.path, key, second),
            f"{after.path}: {first.population!r} and {second.population!r} would be disjoint, and "
            f"somebody is in the data of both (releases {first.number} and {second.number}). "
            f"Nothing was declared.",
        )


def _newly_apart(before: History, after: History) -> Iterator[tuple[LedgerEntry, LedgerEntry]]:
    for first, second in combinations(after.entries, 2):
        names = first.population, second.population
        if after.populations.are_disjoint(*names) and not before.populations.are_disjoint(*names):
            yield first, second


def read_person_digests(
    connection: sqlite3.Connection, path: Path, key: bytes, entry: LedgerEntry
) -> bytes:
    """Return the digests of a release, checked against its seal; none where none were kept."""
    if entry.ids is None:
        return b""
    with believe(path, f"whom release {entry.number} is about"):
        ((digests,),) = connection.execute(
            "SELECT digests FROM persons WHERE release = ?", (entry.number,)
        )
        if seal_persons(key, digests) != entry.ids:
            raise ValueError("its digests do not match their seal")
    return bytes(digests)


def _refuse_shared(left_digests: bytes, right_digests: bytes, message: str) -> None:
    first, second = (
        np.frombuffer(some, dtype=f"S{ID_BYTES}") for some in (left_digests, right_digests)
    )
    if np.intersect1d(first, second, assume_unique=True).size:
        raise LedgerError(message)
