"""What a ledger's file holds, as one value: read with every seal checked, and added to.

In: an open file and its key. Out: a :class:`History` as of one moment. Damage is named, never
repaired.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import Allowance
from discreet.privacy.ledger.approvers import Approver
from discreet.privacy.ledger.file import believe, check_order, read_bodies, read_said, seal
from discreet.privacy.ledger.history import History, read_entry
from discreet.privacy.ledger.persons import check_remembered
from discreet.privacy.ledger.populations import Declaration, read_declarations


def read_history(
    connection: sqlite3.Connection,
    path: Path,
    key: bytes,
    limit: Budget,
    allowance: Allowance,
    neighbours: Neighbours | None,
) -> History:
    """Read entries, declarations and approvers, and check the seals that run through them."""
    bodies = read_bodies(connection, path, key)
    with believe(path, "an entry"):
        entries = tuple(
            read_entry(number, json.loads(body), *times) for number, body, *times in bodies
        )
    said = read_said(connection, path, key)
    with believe(path, "what is declared in it"):
        check_order(path, [one.declared for one in entries], [one["after"] for one in said])
        about = tuple(Declaration.from_dict(one) for one in said if "approver" not in one)
        approvers = tuple(Approver.from_dict(one) for one in said if "approver" in one)
        known = read_declarations(about)
    history = History(path, entries, limit, allowance, neighbours, known, about, approvers)
    check_remembered(connection, path, history)
    return history


def add_entry(connection: sqlite3.Connection, key: bytes, values: Mapping[str, Any]) -> str:
    """Append a release, carry the seal on, and return its reservation."""
    body = json.dumps(values, sort_keys=True)
    (head,) = connection.execute("SELECT head FROM ledger").fetchone()
    tag = seal(key, head + body)
    connection.execute(
        "INSERT INTO releases (reservation, body, tag) VALUES (?, ?, ?)",
        (values["reservation"], body, tag),
    )
    connection.execute("UPDATE ledger SET head = ?", (tag,))
    return str(values["reservation"])
