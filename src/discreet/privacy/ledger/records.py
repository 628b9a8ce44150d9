"""What a ledger's file holds, read as one value with every seal checked.

In: an open file and its key. Out: a :class:`History` as of one moment. Damage is named, never
repaired. A ledger may remember persons by keyed digests of their ids, release by release; then the
same person in the data of two populations that are declared disjoint is a refusal. Digests stay in
the ledger: nothing that is shown depends on them. The seal of each release covers its digests.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from discreet.answers.protocol import ID_BYTES
from discreet.errors import BadUsage, LedgerError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import Allowance
from discreet.privacy.ledger.approvers import Approver
from discreet.privacy.ledger.balance import History, LedgerEntry, read_entry
from discreet.privacy.ledger.file import (
    CHARGED,
    COMPLETED,
    STORED,
    VOID,
    Event,
    believe,
    check_history_end,
    publish_digest,
    publish_head,
    read_events,
    read_said,
)
from discreet.privacy.ledger.populations import Declaration, read_declarations
from discreet.privacy.ledger.values import is_kept, list_inside


def read_history(
    connection: sqlite3.Connection,
    path: Path,
    key: bytes,
    limit: Budget,
    allowance: Allowance,
    neighbours: Neighbours | None,
) -> History:
    """Read entries, declarations and approvers, and check the seals that run through them."""
    events, inside = read_events(connection, path, key), list_inside(connection)
    with believe(path, "an entry"):
        entries = tuple(_read_entries(events, path, key, inside))
    declarations = read_said(connection, path, key)
    with believe(path, "what is declared in it"):
        check_history_end(
            path, [one.declared for one in entries], [one["after"] for one in declarations]
        )
        about = tuple(Declaration.from_dict(one) for one in declarations if "approver" not in one)
        approvers = tuple(Approver.from_dict(one) for one in declarations if "approver" in one)
        populations = read_declarations(about)
    history = History(path, entries, limit, allowance, neighbours, populations, about, approvers)
    check_remembered(connection, path, history)
    return history


def _read_entries(
    events: Sequence[Event], path: Path, key: bytes, inside: frozenset[str]
) -> Iterator[LedgerEntry]:
    """Yield every charge with what has happened to it since."""
    kinds: dict[str, dict[str, Event]] = {}
    for event in events:
        if event.kind != CHARGED and event.reservation not in kinds:
            raise ValueError(f"{event.reservation} was {event.kind} before it was charged")
        kinds.setdefault(event.reservation, {})[event.kind] = event
    for number, progress in enumerate(kinds.values(), start=1):
        entry = read_entry(number, progress[CHARGED].facts)
        times = {kind: event.facts["at"] for kind, event in progress.items() if kind != CHARGED}
        entry = replace(
            entry,
            stored_at=times.get(STORED),
            completed_at=times.get(COMPLETED),
            void_at=times.get(VOID),
        )
        if STORED in progress:
            entry = _add_stored(entry, progress[STORED], path, key, inside)
        yield entry


def _add_stored(
    entry: LedgerEntry, event: Event, path: Path, key: bytes, inside: frozenset[str]
) -> LedgerEntry:
    """Return an entry with what is known of its values, and what its bundle shows of them."""
    facts = event.facts
    if facts["sha256"] is None:  # of an older schema, which kept no digest
        return entry
    return replace(
        entry,
        stored=facts,
        has_values=is_kept(inside, path, entry.reservation, facts),
        head=publish_head(key, event.tag),
        digest=publish_digest(key, facts["sha256"]),
    )


# --- remembered persons --------------------------------------------------------------------------


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
