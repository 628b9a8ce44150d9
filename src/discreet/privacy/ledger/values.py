"""Noisy values on their way to a bundle: one draw for one charge, whatever dies on the way.

In: the values that a process drew. Out: the values that count, kept in the ledger itself or, where
they are large, in a file beside it. A draw is first written to a file of its own, enciphered, with
an empty place for its key: nobody can read it, and if its process dies, nobody ever will. Then the
key is put there, in one write of 32 bytes while the ledger is locked. By this write the draw can be
read, and by the same write it is the one that counts: whoever comes later finds the key and takes
that draw. Only then the ledger's transaction notes it. docs/privacy.md, "One charge, one draw".
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from discreet.atomic import create_private, make_folder, naming, sync_file, sync_folder
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.privacy.ledger.file import random_bytes, transaction

#: Values up to this size are kept in the ledger itself, larger ones in a file of their own.
INSIDE_BYTES = 64 << 20
#: The events of a release without what was asked for: three, on pages of 4 kB with their indexes.
EVENT_BYTES = 64 << 10
#: Room for a key, which comes before the values, and for what is enciphered at once.
KEY_BYTES, BLOCK = 32, 1 << 20

_RESERVATION = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]{0,63}")

Facts = PlainMapping  # of values: ``sha256``, ``size``, whether they are ``inside``


def check_reservation(name: object) -> str:
    """Return the name of a charge, or refuse one that could be taken for a path or an option."""
    if not isinstance(name, str) or not _RESERVATION.fullmatch(name):
        raise BadUsage(
            "a reservation is named with 1 to 64 letters, digits, underscores and hyphens, and "
            f"does not begin with a hyphen; found {name!r}. Take one from "
            "Ledger.name_reservation()."
        )
    return name


def make_room(connection: sqlite3.Connection, ledger: Path, size: int, charge: int = 0) -> None:
    """Make sure that the disk has room for a charge and its values, before anything is charged.

    What is written and removed again, in two transactions, stays part of the ledger's file: free
    pages, which events and values fill later. The rest stays free: for the draw, and for the pages
    that SQLite keeps a copy of until a transaction ends.
    """
    room = "room for values"  # in the place of a reservation, of which none has a blank
    taken = EVENT_BYTES + charge + (size if size <= INSIDE_BYTES else 0)
    with transaction(connection, ledger, "IMMEDIATE"):
        connection.execute("INSERT OR REPLACE INTO noisy VALUES (?, zeroblob(?))", (room, taken))
    with transaction(connection, ledger, "IMMEDIATE"):
        remove_inside(connection, room)
    if shutil.disk_usage(ledger.parent).free < EVENT_BYTES + KEY_BYTES + size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(_folder(ledger)))


def describe_values(parts: Sequence[bytes]) -> PlainDict:
    """Return the digest and the size of values, and whether the ledger itself holds them."""
    digest, size = hashlib.sha256(), sum(map(len, parts))
    for part in parts:
        digest.update(part)
    return {"sha256": digest.hexdigest(), "size": size, "inside": size <= INSIDE_BYTES}


# --- a draw: enciphered until its key stands before it --------------------------------------------


def write_draw(ledger: Path, reservation: str, parts: Sequence[bytes]) -> tuple[Path, bytes]:
    """Write a draw that nobody can read to a file that survives a power cut; return its key too."""
    key = random_bytes(KEY_BYTES)
    path = _folder(ledger) / f"{_mark(reservation)}.{_seal_draw(key, parts)}"
    _create_file(path)
    try:
        with naming(path), path.open("wb") as file:
            file.write(bytes(KEY_BYTES))
            file.writelines(_encipher(key, parts))
            file.flush()
            sync_file(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    with suppress(FileNotFoundError):  # another draw was committed and delivered meanwhile
        sync_folder(path.parent)
    return path, key


def settle_draw(
    ledger: Path, reservation: str, path: Path, key: bytes, parts: Sequence[bytes]
) -> Sequence[bytes]:
    """Return the draw that counts for a charge: this one, unless another has its key already.

    The caller holds the ledger's lock, and the charge has no committed values.
    """
    earlier = read_draw(ledger, reservation)
    if earlier is not None:
        return [earlier]
    _write_key(path, key)
    return parts


def read_draw(ledger: Path, reservation: str) -> bytes | None:
    """Return the draw whose key stands before it; None where there is none."""
    found = map(_open_draw, _list_draws(ledger, reservation))
    return next((values for values in found if values is not None), None)


def _open_draw(path: Path) -> bytes | None:
    with suppress(FileNotFoundError), path.open("rb") as file:
        key = file.read(KEY_BYTES)
        if any(key):
            values = b"".join(_encipher(key, iter(partial(file.read, BLOCK), b"")))
            return values if path.name.endswith(f".{_seal_draw(key, [values])}") else None
    return None


def _has_key(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return any(file.read(KEY_BYTES))
    return False


def _write_key(path: Path, key: bytes) -> None:
    """Write a key to its place, in one write to a sector that the file has already."""
    with naming(path), path.open("r+b", buffering=0) as file:
        file.write(key)
        sync_file(file.fileno())


def _encipher(key: bytes, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield bytes with a keystream added bit by bit; adding it again gives them back.

    Each key is drawn for one draw and used for nothing else.
    """
    for number, block in enumerate(_cut(parts)):
        stream = hashlib.shake_256(key + number.to_bytes(8, "little")).digest(len(block))
        yield (np.frombuffer(block, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()


def _cut(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks of one size, of which the last may be smaller."""
    block = bytearray()
    for part in parts:
        for start in range(0, len(part), BLOCK):
            block += part[start : start + BLOCK]
            if len(block) >= BLOCK:
                yield bytes(block[:BLOCK])
                del block[:BLOCK]
    yield bytes(block)


def _seal_draw(key: bytes, parts: Sequence[bytes]) -> str:
    """Return the keyed hash by which a file is known to be whole, and its key to be the right one.

    Without the key it tells nothing about the values, of which some could be guessed.
    """
    digest = hashlib.blake2b(key=key, digest_size=32, person=b"draw")
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _folder(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.values")


def _mark(reservation: str) -> str:
    """Return how the files of a reservation begin, on disks that do not tell a from A too."""
    return hashlib.sha256(reservation.encode()).hexdigest()[:32]


def _list_draws(ledger: Path, reservation: str) -> list[Path]:
    return sorted(_folder(ledger).glob(f"{_mark(reservation)}.*"))


def _create_file(path: Path) -> None:
    while True:
        make_folder(path.parent)
        # Another release that arrives may remove the folder between our two steps.
        with suppress(FileNotFoundError):
            create_private(path)
            return


def remove_beside(ledger: Path, reservation: str, *, keep_readable: bool = False) -> None:
    """Remove the files of a release; with ``keep_readable`` those of draws that do not count."""
    for path in _list_draws(ledger, reservation):
        if _has_key(path):
            if keep_readable:
                continue
            with suppress(FileNotFoundError):
                _write_key(path, bytes(KEY_BYTES))
        path.unlink(missing_ok=True)
    with suppress(OSError):  # others wait there
        _folder(ledger).rmdir()


# --- committed values -----------------------------------------------------------------------------


def write_inside(
    connection: sqlite3.Connection, reservation: str, facts: Facts, parts: Sequence[bytes]
) -> None:
    """Put values that are not large into the ledger, in the transaction that adds their event."""
    if facts["inside"]:
        row = reservation, b"".join(parts)
        connection.execute("INSERT OR REPLACE INTO noisy VALUES (?, ?)", row)


def read_values(
    connection: sqlite3.Connection, ledger: Path, reservation: str, facts: Facts
) -> bytes | None:
    """Return committed values; None where they are gone, or are others than the event says."""
    if not facts["inside"]:
        content = read_draw(ledger, reservation)
    else:
        question = "SELECT content FROM noisy WHERE reservation = ?"
        row = connection.execute(question, (reservation,)).fetchone()
        content = None if row is None else bytes(row[0])
    is_whole = content is not None and hashlib.sha256(content).hexdigest() == facts["sha256"]
    return content if is_whole else None


def is_kept(inside: frozenset[str], ledger: Path, reservation: str, facts: Facts) -> bool:
    """Say whether values wait; ``inside`` are the reservations with values in the ledger."""
    if facts["inside"]:
        return reservation in inside
    return any(map(_has_key, _list_draws(ledger, reservation)))


def list_inside(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the reservations whose values are in the ledger itself."""
    return frozenset(name for (name,) in connection.execute("SELECT reservation FROM noisy"))


def remove_inside(connection: sqlite3.Connection, reservation: str) -> None:
    """Remove values from the ledger, in the transaction that notes why."""
    connection.execute("DELETE FROM noisy WHERE reservation = ?", (reservation,))
