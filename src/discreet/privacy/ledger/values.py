"""Noisy values on their way to a bundle: in the ledger, or beside it where they are large.

In: the parts of one draw. Out: facts for the event that commits them (digest, size), and the same
bytes again, or None where they are missing or different. Nothing here decides whose draw counts:
the event does. Values are removed once their bundle is written; the digest stays in the event.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.atomic import create_private, make_folder, naming, sync_file, sync_folder
from discreet.errors import BadUsage

NOISY = "CREATE TABLE noisy (reservation TEXT PRIMARY KEY, content BLOB NOT NULL)"
#: Values up to this size are kept in the ledger itself, larger ones in a file of their own.
INSIDE_BYTES = 64 << 20

#: Stands in the place of a reservation; none has a blank in its name.
ROOM = "room for values"

_RESERVATION = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]{0,63}")

#: What an event says about values: ``sha256``, ``size``, and whether they are ``inside``.
Facts = Mapping[str, Any]


def check_reservation(name: object) -> str:
    """Return the name of a charge, or refuse one that could be taken for a path or an option."""
    if not isinstance(name, str) or not _RESERVATION.fullmatch(name):
        raise BadUsage(
            "a reservation is named with 1 to 64 letters, digits, underscores and hyphens, and "
            f"does not begin with a hyphen; found {name!r}. Take one from "
            "Ledger.name_reservation()."
        )
    return name


def make_room(connection: sqlite3.Connection, ledger: Path, size: int) -> None:
    """Make sure that the disk has room for values, before anything is charged.

    What is written and removed again, in two transactions, stays part of the ledger's file: free
    pages, which the values fill later.
    """
    if size > INSIDE_BYTES:
        if shutil.disk_usage(ledger.parent).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(_folder(ledger)))
        return
    connection.execute("INSERT OR REPLACE INTO noisy VALUES (?, zeroblob(?))", (ROOM, size))
    remove_inside(connection, ROOM)


def describe_values(parts: Sequence[bytes]) -> dict[str, Any]:
    """Return the digest and the size of values, and whether the ledger itself holds them."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    size = sum(map(len, parts))
    return {"sha256": digest.hexdigest(), "size": size, "inside": size <= INSIDE_BYTES}


def _folder(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.values")


def _mark(reservation: str) -> str:
    """Return how the files of a reservation begin; old ledgers may hold a path as its name."""
    return hashlib.sha256(reservation.encode()).hexdigest()[:32]


def _find_file(ledger: Path, reservation: str, facts: Facts) -> Path:
    return _folder(ledger) / f"{_mark(reservation)}.{facts['sha256']}"


def write_beside(ledger: Path, reservation: str, facts: Facts, parts: Sequence[bytes]) -> None:
    """Write large values to a private file that survives a power cut when this returns."""
    path = _find_file(ledger, reservation, facts)
    if facts["inside"] or _read_file(path, facts) is not None:
        return
    _create_file(path)
    try:
        with naming(path), path.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            sync_file(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    with suppress(FileNotFoundError):  # another draw was committed and delivered meanwhile
        sync_folder(path.parent)


def _create_file(path: Path) -> None:
    """Make an empty private file in place of one that a process which died left behind."""
    is_made = False
    while not is_made:
        make_folder(path.parent)
        # Another release that arrives may remove the folder between our two steps.
        with suppress(FileNotFoundError):
            path.unlink(missing_ok=True)
            create_private(path)
            is_made = True


def write_inside(
    connection: sqlite3.Connection, reservation: str, facts: Facts, parts: Sequence[bytes]
) -> None:
    """Put other values into the ledger, in the transaction that adds their event."""
    if facts["inside"]:
        row = reservation, b"".join(parts)
        connection.execute("INSERT OR REPLACE INTO noisy VALUES (?, ?)", row)


def read_values(
    connection: sqlite3.Connection, ledger: Path, reservation: str, facts: Facts
) -> bytes | None:
    """Return committed values; None where they are gone, or are others than the event says."""
    if not facts["inside"]:
        return _read_file(_find_file(ledger, reservation, facts), facts)
    question = "SELECT content FROM noisy WHERE reservation = ?"
    row = connection.execute(question, (reservation,)).fetchone()
    return None if row is None else _check_content(bytes(row[0]), facts)


def _read_file(path: Path, facts: Facts) -> bytes | None:
    try:
        return _check_content(path.read_bytes(), facts)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_content(content: bytes, facts: Facts) -> bytes | None:
    """Return values if they are those of the digest."""
    is_whole = describe_values([content])["sha256"] == facts["sha256"]
    return content if is_whole else None


def is_kept(inside: frozenset[str], ledger: Path, reservation: str, facts: Facts) -> bool:
    """Say whether values wait; ``inside`` are the reservations with values in the ledger."""
    if facts["inside"]:
        return reservation in inside
    return _find_file(ledger, reservation, facts).is_file()


def list_inside(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the reservations whose values are in the ledger itself."""
    return frozenset(name for (name,) in connection.execute("SELECT reservation FROM noisy"))


def remove_inside(connection: sqlite3.Connection, reservation: str) -> None:
    """Remove values from the ledger, in the transaction that notes why."""
    connection.execute("DELETE FROM noisy WHERE reservation = ?", (reservation,))


def remove_beside(ledger: Path, reservation: str, *, but: Facts | None = None) -> None:
    """Remove the files of a release, also of draws that were never committed.

    Those that ``but`` describes, the committed values, stay.
    """
    committed = None if but is None else _find_file(ledger, reservation, but)
    for path in _folder(ledger).glob(f"{_mark(reservation)}.*"):
        if path != committed:
            path.unlink(missing_ok=True)
    with suppress(OSError):  # others wait there
        _folder(ledger).rmdir()


# --- recovery files of ledgers of schema 3, read once, when the ledger is migrated ---------------

_MAGIC = b"discreet values\n"
_SIZE_BYTES, _HASH_BYTES = 8, 32


def _recovery(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.recovery")


def read_recovery(ledger: Path, reservation: str) -> bytes | None:
    """Return the values in a recovery file, or None where none were stored whole."""
    if not _RESERVATION.fullmatch(reservation):
        return None  # a path out of the folder
    try:
        content = (_recovery(ledger) / reservation).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    start = len(_MAGIC) + _SIZE_BYTES
    end = start + _HASH_BYTES
    size = int.from_bytes(content[len(_MAGIC) : start], "little")
    values = content[end : end + size]
    mark = hashlib.blake2b(values, digest_size=_HASH_BYTES).digest()
    is_whole = content.startswith(_MAGIC) and len(values) == size and content[start:end] == mark
    return values if is_whole else None


def remove_recovery(ledger: Path) -> None:
    """Remove the recovery files of a ledger that was migrated."""
    folder = _recovery(ledger)
    with suppress(OSError):  # what cannot be removed is not read any more either
        for path in folder.iterdir():
            if _RESERVATION.fullmatch(path.name) and path.is_file():
                path.unlink()
        folder.rmdir()
