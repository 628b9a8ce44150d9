"""The ledger's file: made whole or not at all, opened with checks, closed after every use.

SQLite does the locking and the recovery after a crash; what goes wrong becomes a `LedgerError`
that says what to do. The history is a chain of sealed events: each seal is a keyed hash of the
event and of the seal before it. It finds damage that SQLite cannot see, such as a flipped digit or
a deleted row; it is no defence against someone who can read the key and seals a forged history,
nor against an old copy of the file put back in its place.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.answers.protocol import SUM_BYTES, digest_rows
from discreet.atomic import appearing
from discreet.errors import BadUsage, LedgerError
from discreet.privacy.ledger.populations import EVERYONE, Declaration
from discreet.privacy.ledger.values import (
    NOISY,
    describe_values,
    read_recovery,
    remove_recovery,
    write_beside,
    write_inside,
)
from discreet.secure import SystemSource

APPLICATION_ID = 0x44495343  # "DISC", so that another program's database is not taken for ours
SCHEMA_VERSION = 4

DECLARATIONS = """
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    tag TEXT NOT NULL
)
"""
PERSONS = "CREATE TABLE persons (release INTEGER PRIMARY KEY, digests BLOB NOT NULL)"
EVENTS = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    UNIQUE (reservation, kind)
)
"""
SCHEMA = f"""
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL, declared TEXT);
{EVENTS};
{DECLARATIONS};
{PERSONS};
{NOISY};
"""
#: What happens to a release, each at most once: the ledger is charged, the noisy values are
#: committed, the release is delivered; or its values were lost, and it never will be.
CHARGED, STORED, COMPLETED, VOID = "charged", "stored", "completed", "void"


class MissingLedger(BadUsage, LedgerError):
    """The ledger file is not there: a wrong path, so the exit code of wrong usage."""


def tell_time() -> str:
    """Return the present time as entries have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def random_bytes(count: int) -> bytes:
    """Return a multiple of eight secure random bytes, for ids and keys."""
    return SystemSource().words(count // 8).tobytes()


def seal(key: bytes, text: str) -> str:
    """Return the keyed hash of a text."""
    return hashlib.blake2b(text.encode(), key=key, digest_size=32, person=b"seal").hexdigest()


def seal_digest(key: bytes, total: int, count: int) -> str:
    """Return the fingerprint of a data set from the digests of its rows, all added up.

    See :func:`discreet.answers.protocol.digest_rows`. The number of rows is sealed in as well,
    because a sum of hashes alone could be met by another number of them.
    """
    body = total.to_bytes(SUM_BYTES, "little") + count.to_bytes(8, "little")
    return hashlib.blake2b(body, key=key, digest_size=32, person=b"rows").hexdigest()


def fingerprint_rows(key: bytes, rows: Iterable[Any]) -> str:
    """Return a keyed fingerprint of a multiset of rows: order does not matter, repeats do.

    Each row is hashed with the key and the hashes are added modulo 2^512, so memory stays
    bounded; without the key nobody can test a guess of the data against the result.

    Examples
    --------
    >>> fingerprint_rows(b"k", [b"a", b"b"]) == fingerprint_rows(b"k", [b"b", b"a"])
    True
    """
    return seal_digest(key, *digest_rows(key, rows))


def _damaged(path: Path, damage: str) -> LedgerError:
    """Return the error for a ledger whose contents cannot be believed."""
    return LedgerError(
        f"{path}: the ledger is damaged: {damage}. What was spent is not certain any more, so no "
        f"release may be charged to it. Restore the latest backup and add what was released since."
    )


def create_file(path: Path, settings: str, key: bytes) -> None:
    """Write a new ledger beside its place, then link it into place: whole or not at all."""
    if path.exists():
        raise BadUsage(
            f"{path} exists already, and a ledger is never overwritten: that would forget what "
            f"was spent. Choose another name."
        )
    try:
        with appearing(path) as part:
            _fill(part, settings, key)
    except FileExistsError:
        raise BadUsage(f"{path} was made by someone else just now; open that one.") from None
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"{path}: the ledger cannot be made ({error}). Its folder must exist and be writable, "
            f"with room on the disk."
        ) from error


def _fill(part: Path, settings: str, key: bytes) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.executescript(SCHEMA)
        heads = seal_head(key, start_events(key, settings)), start_declarations(key, settings)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (settings, key, *heads))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


@contextmanager
def open_ledger_file(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Give a connection to a ledger file; what SQLite refuses becomes a clear `LedgerError`.

    One connection per use: nothing is shared across forks or threads, and no lock is left over.
    """
    _check_place(path)
    try:
        # mode=rw: never make a file; a journal left by a killed process is rolled back.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
        ) as connection:
            # EXTRA: the commit of a reservation survives a power cut right after it.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS; no effect elsewhere
            # Values that were delivered are overwritten, not only taken off the list.
            connection.execute("PRAGMA secure_delete = ON")
            _check_kind(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise _explain(error, path, timeout) from error
    except UnicodeDecodeError as error:  # SQLite quotes damaged bytes in its own messages
        raise _damaged(path, "it holds text that is no text") from error


def _check_place(path: Path) -> None:
    try:
        if not path.exists():
            raise MissingLedger(
                f"{path}: there is no ledger here. Make one with "
                f"'discreet ledger create {path} --epsilon E --delta D'."
            )
        if not path.is_file():
            raise LedgerError(f"{path} is not a file, so it cannot be a ledger.")
    except OSError as error:
        raise LedgerError(f"{path}: the ledger cannot be opened or written ({error}).") from error


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    if kind != APPLICATION_ID:
        raise LedgerError(
            f"{path} is not a ledger of this library. Point to the file that "
            f"'discreet ledger create' made."
        )
    if _version(connection) in MIGRATIONS:
        _take_over(connection, path)
    if _version(connection) != SCHEMA_VERSION:
        raise LedgerError(
            f"{path} has ledger schema version {_version(connection)}, this version of the library "
            f"reads {SCHEMA_VERSION}. Use the version that wrote it."
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _take_over(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an older ledger up to date in one transaction; a damaged one stays as it is.

    Every entry keeps its text. Keys that the bodies of older schemas do not have get their
    defaults where they are read.
    """
    with transaction(connection, "IMMEDIATE"):
        check_whole(connection, path)
        # Another process may have been faster.
        while _version(connection) in MIGRATIONS:
            version = _version(connection)
            MIGRATIONS[version](connection, path)
            connection.execute(f"PRAGMA user_version = {version + 1}")
    remove_recovery(path)


def _store_progress(connection: sqlite3.Connection, _path: Path) -> None:
    connection.execute("ALTER TABLE releases ADD COLUMN stored_at TEXT")


def _declare_disjoint(connection: sqlite3.Connection, path: Path) -> None:
    """Declare every named population as what it was: disjoint from all others with a name."""
    (key,) = connection.execute("SELECT key FROM ledger").fetchone()
    bodies = _read_releases(connection, path, key)
    with believe(path, "an entry"):
        charged = [json.loads(body)["population"] for body, *_ in bodies]
    connection.execute(DECLARATIONS)
    connection.execute(PERSONS)
    connection.execute("ALTER TABLE ledger ADD COLUMN declared TEXT")
    (settings,) = connection.execute("SELECT settings FROM ledger").fetchone()
    connection.execute("UPDATE ledger SET declared = ?", (start_declarations(key, settings),))
    names = [name for name in dict.fromkeys(charged) if name != EVERYONE]
    for index, name in enumerate(names):
        declaration = Declaration(name, disjoint=tuple(names[:index]), after=len(bodies))
        add_declaration(connection, key, declaration.to_dict())


def _chain_events(connection: sqlite3.Connection, path: Path) -> None:
    """Put the progress of releases, which no seal covered, into the chain with their charges.

    Noisy values that wait in a recovery file are taken in; this is the only time that it is read.
    """
    settings, key = connection.execute("SELECT settings, key FROM ledger").fetchone()
    releases = _read_releases(connection, path, key)
    connection.execute(EVENTS)
    connection.execute(NOISY)
    head = seal_head(key, start_events(key, settings))
    connection.execute("UPDATE ledger SET head = ?", (head,))
    with believe(path, "an entry"):
        names = [json.loads(body)["reservation"] for body, *_ in releases]
    for name, (body, *_) in zip(names, releases, strict=True):
        _append(connection, key, CHARGED, name, body)
    for name, (_, stored_at, completed_at) in zip(names, releases, strict=True):
        values = read_recovery(path, name)
        if values is not None:
            facts = {**describe_values([values]), "migrated": True}
            write_beside(path, name, facts, [values])
            write_inside(connection, name, facts, [values])
            add_event(connection, key, STORED, name, {"at": stored_at or tell_time(), **facts})
        elif stored_at is not None:
            add_event(connection, key, STORED, name, {"at": stored_at, "sha256": None})
        if completed_at is not None:
            add_event(connection, key, COMPLETED, name, {"at": completed_at})
        elif values is None and stored_at is not None:
            add_event(connection, key, VOID, name, {"at": tell_time(), "reason": NO_RECOVERY})
    connection.execute("DROP TABLE releases")


NO_RECOVERY = "its recovery file was gone when the ledger was migrated"


def _read_releases(
    connection: sqlite3.Connection, path: Path, key: bytes
) -> list[tuple[str, str | None, str | None]]:
    """Return body and times of progress of each release of schema 1 to 3, its seal checked."""
    with believe(path, "its history"):
        settings, head = connection.execute("SELECT settings, head FROM ledger").fetchone()
        tag = seal(key, settings)
        bodies = []
        for number, body, row_tag, *times in connection.execute(
            "SELECT number, body, tag, stored_at, completed_at FROM releases ORDER BY number"
        ):
            tag = seal(key, tag + body)
            if tag != row_tag:
                raise _damaged(path, f"release {number} does not match its seal")
            bodies.append((body, *times))
    if tag != head:
        raise _damaged(path, "its history does not match its seal")
    return bodies


MIGRATIONS = {1: _store_progress, 2: _declare_disjoint, 3: _chain_events}


def start_events(key: bytes, settings: str) -> str:
    """Return the seal before the first event."""
    return seal(key, f"events {settings}")


def seal_head(key: bytes, tag: str) -> str:
    """Return what the ledger keeps of its last seal; without the key no shorter chain has one."""
    return seal(key, f"head {tag}")


def publish_head(key: bytes, tag: str) -> str:
    """Return what a bundle shows of the chain up to an event.

    It is a keyed hash of the seal, so that nobody without the ledger learns anything from it, and
    nobody can use it to shorten a chain.
    """
    return seal(key, f"published {tag}")


def publish_digest(key: bytes, digest: str) -> str:
    """Return what a bundle shows of the digest of its noisy values.

    Keyed too: some values are not published, and a plain digest would let anybody test a guess.
    """
    return seal(key, f"values {digest}")


@dataclass(frozen=True)
class Event:
    """One line of the chain: what happened to which release, and the seal after it."""

    kind: str
    reservation: str
    facts: Mapping[str, Any]
    tag: str


def add_event(
    connection: sqlite3.Connection,
    key: bytes,
    kind: str,
    reservation: str,
    facts: Mapping[str, Any],
) -> None:
    """Append an event and carry the seal on; an event that was there before is refused."""
    body = {"event": kind, "reservation": reservation, **facts}
    _append(connection, key, kind, reservation, json.dumps(body, sort_keys=True))


def _append(
    connection: sqlite3.Connection, key: bytes, kind: str, reservation: str, body: str
) -> None:
    (settings,) = connection.execute("SELECT settings FROM ledger").fetchone()
    last = connection.execute("SELECT tag FROM events ORDER BY number DESC LIMIT 1").fetchone()
    tag = seal(key, (last[0] if last else start_events(key, settings)) + body)
    connection.execute(
        "INSERT INTO events (reservation, kind, body, tag) VALUES (?, ?, ?, ?)",
        (reservation, kind, body, tag),
    )
    connection.execute("UPDATE ledger SET head = ?", (seal_head(key, tag),))


def read_events(connection: sqlite3.Connection, path: Path, key: bytes) -> list[Event]:
    """Return the chain, oldest first, every seal checked."""
    with believe(path, "its history"):
        settings, head = connection.execute("SELECT settings, head FROM ledger").fetchone()
        tag = start_events(key, settings)
        events = []
        for reservation, kind, body, row_tag in connection.execute(
            "SELECT reservation, kind, body, tag FROM events ORDER BY number"
        ):
            tag, facts = seal(key, tag + body), json.loads(body)
            # The charges of older schemas do not say what they are.
            if (facts.get("event", CHARGED), facts["reservation"]) != (kind, reservation):
                raise ValueError(f"an event of {reservation} says that it is another")
            if tag != row_tag:
                raise _damaged(path, f"an event of the release {reservation} was changed")
            events.append(Event(kind, reservation, facts, tag))
    if seal_head(key, tag) != head:
        raise _damaged(path, "its history does not match its seal")
    return events


def start_declarations(key: bytes, settings: str) -> str:
    """Return the seal before the first declaration, which is another than that of the history."""
    return seal(key, f"populations {settings}")


def add_declaration(
    connection: sqlite3.Connection, key: bytes, declaration: Mapping[str, Any]
) -> None:
    """Append a declaration and carry the seal on."""
    body = json.dumps(declaration, sort_keys=True)
    (head,) = connection.execute("SELECT declared FROM ledger").fetchone()
    tag = seal(key, head + body)
    connection.execute("INSERT INTO declarations (body, tag) VALUES (?, ?)", (body, tag))
    connection.execute("UPDATE ledger SET declared = ?", (tag,))


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "DEFERRED") -> Iterator[None]:
    """Do all of it or nothing; what is read in it is of one moment."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that SQLite itself finds damaged, or whose one settings row is gone."""
    (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
    if verdict != "ok":
        raise _damaged(path, str(verdict))
    (rows,) = connection.execute("SELECT count(*) FROM ledger").fetchone()
    if rows != 1:
        raise _damaged(path, f"it has {rows} rows of settings instead of one")


@contextmanager
def believe(path: Path, part: str) -> Iterator[None]:
    """Call a ledger damaged where its contents are not what they must be."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"{part} cannot be read ({error})") from error


def read_said(connection: sqlite3.Connection, path: Path, key: bytes) -> list[dict[str, Any]]:
    """Return what was declared, oldest first, checked against its seal."""
    with believe(path, "a declaration"):
        settings, head = connection.execute("SELECT settings, declared FROM ledger").fetchone()
        tag = start_declarations(key, settings)
        declarations = []
        for number, body, row_tag in connection.execute(
            "SELECT number, body, tag FROM declarations ORDER BY number"
        ):
            tag = seal(key, tag + body)
            if tag != row_tag:
                raise _damaged(path, f"declaration {number} does not match its seal")
            declarations.append(json.loads(body))
    if tag != head:
        raise _damaged(path, "what is declared in it does not match its seal")
    return declarations


def check_history_end(path: Path, declared: Sequence[int], after: Sequence[int]) -> None:
    """Refuse a ledger that has lost the end of its history, or of its declarations.

    Each of the two says how long the other was when it grew: ``declared`` by the releases,
    ``after`` by the declarations.
    """
    if max(declared, default=0) > len(after) or max(after, default=0) > len(declared):
        raise _damaged(path, "its history and its declarations are not of the same time")


def _explain(error: sqlite3.Error, path: Path, timeout: float) -> LedgerError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerError(
            f"{path}: the ledger stayed locked by another process for {timeout:g} s. Nothing was "
            f"charged. Wait for the other release, then try again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return LedgerError(
            f"{path}: the ledger cannot be opened or written ({error}). Nothing was charged. "
            f"The file and its folder must be writable by you."
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return LedgerError(
            f"{path}: the disk refused to keep the ledger's entry ({error}). Nothing may be "
            f"released. Make room on the disk, then try again."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerError(f"{path} is not a ledger of this library, or it is damaged ({error}).")
    return _damaged(path, str(error))
