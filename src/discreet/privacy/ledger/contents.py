"""What a ledger's file holds, as one value: read with every seal checked.

In: an open file and its key. Out: a :class:`History` as of one moment. Damage is named, never
repaired.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import Allowance
from discreet.privacy.ledger.approvers import Approver
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
from discreet.privacy.ledger.history import History, LedgerEntry, read_entry
from discreet.privacy.ledger.persons import check_remembered
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
