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
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from discreet.atomic import appearing
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, LedgerError
from discreet.secure import SystemSource

APPLICATION_ID = 0x44495343  # "DISC", so that another program's database is not taken for ours
SCHEMA_VERSION = 1
#: All that a ledger has: another table, a trigger or a view is refused.
SCHEMA = """
CREATE TABLE ledger (
    settings TEXT NOT NULL,
    key BLOB NOT NULL,
    head TEXT NOT NULL,
    declared TEXT NOT NULL
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    UNIQUE (reservation, kind)
);
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    tag TEXT NOT NULL
);
CREATE TABLE persons (release INTEGER PRIMARY KEY, digests BLOB NOT NULL);
CREATE TABLE noisy (reservation TEXT PRIMARY KEY, content BLOB NOT NULL);
"""
#: What happens to a release, each at most once; void if its values were lost.
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


def start_events(key: bytes, settings: str) -> str:
    """Return the seal before the first event."""
    return seal(key, f"events {settings}")


def seal_head(key: bytes, tag: str) -> str:
    """Return what the ledger keeps of its last seal; without the key no shorter chain has one."""
    return seal(key, f"head {tag}")


def start_declarations(key: bytes, settings: str) -> str:
    """Return the seal before the first declaration, which is another than that of the history."""
    return seal(key, f"populations {settings}")


def damaged(path: Path, damage: str) -> LedgerError:
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
    heads = seal_head(key, start_events(key, settings)), start_declarations(key, settings)
    try:
        with (
            appearing(path) as part,
            closing(sqlite3.connect(part, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.executescript(SCHEMA)
            connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (settings, key, *heads))
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    except FileExistsError:
        raise BadUsage(f"{path} was made by someone else just now; open that one.") from None
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"{path}: the ledger cannot be made ({error}). Its folder must exist and be writable, "
            f"with room on the disk."
        ) from error


@contextmanager
def open_ledger_file(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Give a connection to a ledger file; what SQLite refuses becomes a clear `LedgerError`.

    One connection per use: nothing is shared across forks or threads, and no lock is left over.
    """
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
            _restrain(connection)
            _check_kind(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise _explain(error, path, timeout) from error
    except UnicodeDecodeError as error:  # SQLite quotes damaged bytes in its own messages
        raise damaged(path, "it holds text that is no text") from error


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    if kind != APPLICATION_ID:
        raise LedgerError(
            f"{path} is not a ledger of this library. Point to the file that "
            f"'discreet ledger create' made."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"{path} has ledger schema version {version}, this version of the library reads "
            f"{SCHEMA_VERSION}. Use the version that wrote it."
        )


def _restrain(connection: sqlite3.Connection) -> None:
    """Let nothing that is stored in a file run when the file is used."""
    connection.execute("PRAGMA trusted_schema = OFF")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _list_schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return {*connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")}


@cache
def _expect_schema() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _list_schema(connection)


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose tables are not those of a ledger, word for word.

    A trigger could take a charge back whenever one is made, and no seal would show it.
    """
    for kind, name, *_ in sorted(_list_schema(connection) ^ _expect_schema(), key=str):
        raise damaged(path, f"its {kind} {name!r} is not as this library makes ledgers")


class SealChain(NamedTuple):
    """A chain of sealed rows: what it is called, where its end is kept, its first and last seal.

    ``rows`` asks for the body, the seal and the name of each row, and for more.
    """

    part: str
    end: str
    start: Callable[[bytes, str], str]
    finish: Callable[[bytes, str], str]
    rows: str


HEAD = "SELECT settings, head FROM ledger"
EVENT_CHAIN = SealChain(
    "its history", HEAD, start_events, seal_head,
    "SELECT body, tag, 'an event of ' || reservation, kind, reservation FROM events "
    "ORDER BY number",
)  # fmt: skip
DECLARATION_CHAIN = SealChain(
    "what is declared in it", "SELECT settings, declared FROM ledger",
    start_declarations, lambda _, tag: tag,
    "SELECT body, tag, 'declaration ' || number FROM declarations ORDER BY number",
)  # fmt: skip


def _follow(
    connection: sqlite3.Connection, path: Path, key: bytes, chain: SealChain
) -> list[tuple[str, ...]]:
    """Return the rows of a chain, oldest first, every seal checked."""
    links = []
    with believe(path, chain.part):
        settings, head = connection.execute(chain.end).fetchone()
        tag = chain.start(key, settings)
        for body, row_tag, name, *more in connection.execute(chain.rows):
            tag = seal(key, tag + body)
            if tag != row_tag:
                raise damaged(path, f"{name} does not match its seal")
            links.append((body, tag, name, *more))
    if chain.finish(key, tag) != head:
        raise damaged(path, f"{chain.part} does not match its seal")
    return links


@dataclass(frozen=True)
class Event:
    """One line of the chain: what happened to which release, and the seal after it."""

    kind: str
    reservation: str
    facts: PlainMapping
    tag: str


def add_event(
    connection: sqlite3.Connection, key: bytes, kind: str, reservation: str, facts: PlainMapping
) -> None:
    """Append an event and carry the seal on; an event that was there before is refused."""
    body = json.dumps({"event": kind, "reservation": reservation, **facts}, sort_keys=True)
    (settings,) = connection.execute("SELECT settings FROM ledger").fetchone()
    last = connection.execute("SELECT tag FROM events ORDER BY number DESC LIMIT 1").fetchone()
    tag = seal(key, (last[0] if last else start_events(key, settings)) + body)
    connection.execute(
        "INSERT INTO events (reservation, kind, body, tag) VALUES (?, ?, ?, ?)",
        (reservation, kind, body, tag),
    )
    connection.execute("UPDATE ledger SET head = ?", (seal_head(key, tag),))


def read_events(connection: sqlite3.Connection, path: Path, key: bytes) -> list[Event]:
    """Return the history, oldest first, every seal checked."""
    events = []
    links = _follow(connection, path, key, EVENT_CHAIN)
    with believe(path, EVENT_CHAIN.part):
        for body, tag, name, kind, reservation in links:
            facts = json.loads(body)
            if (facts["event"], facts["reservation"]) != (kind, reservation):
                raise ValueError(f"{name} says that it is another")
            events.append(Event(kind, reservation, facts, tag))
    return events


def add_declaration(connection: sqlite3.Connection, key: bytes, declaration: PlainMapping) -> None:
    """Append a declaration and carry the seal on."""
    body = json.dumps(declaration, sort_keys=True)
    (head,) = connection.execute("SELECT declared FROM ledger").fetchone()
    tag = seal(key, head + body)
    connection.execute("INSERT INTO declarations (body, tag) VALUES (?, ?)", (body, tag))
    connection.execute("UPDATE ledger SET declared = ?", (tag,))


@contextmanager
def transaction(
    connection: sqlite3.Connection, path: Path, kind: str = "DEFERRED"
) -> Iterator[None]:
    """Do all of it or nothing, in a file that is as it must be for as long as this takes."""
    connection.execute(f"BEGIN {kind}")
    try:
        check_schema(connection, path)
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
        raise damaged(path, str(verdict))
    (rows,) = connection.execute("SELECT count(*) FROM ledger").fetchone()
    if rows != 1:
        raise damaged(path, f"it has {rows} rows of settings instead of one")


@contextmanager
def believe(path: Path, part: str) -> Iterator[None]:
    """Call a ledger damaged where its contents are not what they must be."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"{part} cannot be read ({error})") from error


def read_said(connection: sqlite3.Connection, path: Path, key: bytes) -> list[PlainDict]:
    """Return what was declared, oldest first, checked against its seal."""
    links = _follow(connection, path, key, DECLARATION_CHAIN)
    with believe(path, DECLARATION_CHAIN.part):
        return [json.loads(body) for body, *_ in links]


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
    return damaged(path, str(error))
