"""The ledger's files: made whole or not at all, opened with checks, closed after every use.

SQLite does the locking and the recovery after a crash; what goes wrong becomes a `LedgerError`
that says what to do. The seal (a keyed hash that runs through the history) finds damage that
SQLite cannot see, such as a flipped digit; it is no defence against someone who can read the
key, nor against an old copy of the file put back in its place.

Beside the ledger lies a vault for each release under way: a private file that one process at a time
holds, with the noisy values, safe on disk before anything else sees them. Room for them is taken
before the ledger is charged. They end with their hash, so that half of them are as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.answers.select import SUM_BYTES, digest_rows
from discreet.atomic import create_private, fill_with_zeros, hold_lock, make_folder, sync_folder
from discreet.errors import BadUsage, LedgerError
from discreet.privacy.ledger.populations import EVERYONE, Declaration
from discreet.secure import SystemSource

APPLICATION_ID = 0x44495343  # "DISC", so that another program's database is not taken for ours
SCHEMA_VERSION = 3

DECLARATIONS = """
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    tag TEXT NOT NULL
)
"""
PERSONS = "CREATE TABLE persons (release INTEGER PRIMARY KEY, digests BLOB NOT NULL)"
SCHEMA = f"""
CREATE TABLE ledger (settings TEXT NOT NULL, key BLOB NOT NULL, head TEXT NOT NULL, declared TEXT);
CREATE TABLE releases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    tag TEXT NOT NULL,
    stored_at TEXT,
    completed_at TEXT
);
{DECLARATIONS};
{PERSONS};
"""


class MissingLedger(BadUsage, LedgerError):
    """The ledger file is not there: a wrong path, so the exit code of wrong usage."""


def random_bytes(count: int) -> bytes:
    """Return a multiple of eight secure random bytes, for ids and keys."""
    return SystemSource().words(count // 8).tobytes()


def seal(key: bytes, text: str) -> str:
    """Return the keyed hash of a text."""
    return hashlib.blake2b(text.encode(), key=key, digest_size=32, person=b"seal").hexdigest()


def seal_digest(key: bytes, total: int, count: int) -> str:
    """Return the fingerprint of a data set from the digests of its rows, all added up.

    See :func:`discreet.answers.select.digest_rows`. The number of rows is sealed in as well,
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


def _damaged(path: Path, what: str) -> LedgerError:
    """Return the error for a ledger whose contents cannot be believed."""
    return LedgerError(
        f"{path}: the ledger is damaged: {what}. What was spent is not certain any more, so no "
        f"release may be charged to it. Restore the latest backup and add what was released since."
    )


def create_file(path: Path, settings: str, key: bytes) -> None:
    """Write a new ledger beside its place, then link it into place: whole or not at all."""
    if path.exists():
        raise BadUsage(
            f"{path} exists already, and a ledger is never overwritten: that would forget what "
            f"was spent. Choose another name."
        )
    part = path.with_name(f".{path.name}.{random_bytes(8).hex()}.part")
    try:
        # SQLite keeps the mode of an existing file; owner-only from the first byte.
        create_private(part)
        try:
            _fill(part, settings, key)
            os.link(part, path)
        finally:
            part.unlink()
        sync_folder(path.parent)
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
        heads = seal(key, settings), start_declarations(key, settings)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (settings, key, *heads))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


@contextmanager
def open_file(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Give a connection to a ledger file; what SQLite refuses becomes a clear `LedgerError`.

    One connection per use: nothing is shared across forks or threads, and no lock is left over.
    """
    _check_place(path)
    try:
        # mode=rw: never make a file; a journal left by a killed process is rolled back.
        address = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
        with closing(
            sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
        ) as connection:
            # EXTRA: the commit of a reservation survives a power cut right after it.
            connection.execute("PRAGMA synchronous = EXTRA")
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

    Every entry stays as it was sealed. Keys that the bodies of older schemas do not have get their
    defaults where they are read.
    """
    with transaction(connection, "IMMEDIATE"):
        check_whole(connection, path)
        # Another process may have been faster.
        while _version(connection) in MIGRATIONS:
            version = _version(connection)
            MIGRATIONS[version](connection, path)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def _store_progress(connection: sqlite3.Connection, _path: Path) -> None:
    connection.execute("ALTER TABLE releases ADD COLUMN stored_at TEXT")


def _declare_disjoint(connection: sqlite3.Connection, path: Path) -> None:
    """Declare every named population as what it was: disjoint from all others with a name."""
    (key,) = connection.execute("SELECT key FROM ledger").fetchone()
    bodies = read_bodies(connection, path, key)
    with believe(path, "an entry"):
        charged = [json.loads(body)["population"] for _, body, *_ in bodies]
    connection.execute(DECLARATIONS)
    connection.execute(PERSONS)
    connection.execute("ALTER TABLE ledger ADD COLUMN declared TEXT")
    (settings,) = connection.execute("SELECT settings FROM ledger").fetchone()
    connection.execute("UPDATE ledger SET declared = ?", (start_declarations(key, settings),))
    names = [name for name in dict.fromkeys(charged) if name != EVERYONE]
    for place, name in enumerate(names):
        said = Declaration(name, disjoint=tuple(names[:place]), after=len(bodies))
        add_declaration(connection, key, said.to_dict())


MIGRATIONS = {1: _store_progress, 2: _declare_disjoint}


def start_declarations(key: bytes, settings: str) -> str:
    """Return the seal before the first declaration, which is another than that of the history."""
    return seal(key, f"populations {settings}")


def add_declaration(connection: sqlite3.Connection, key: bytes, said: Mapping[str, Any]) -> None:
    """Append a declaration and carry the seal on."""
    body = json.dumps(said, sort_keys=True)
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
def believe(path: Path, what: str) -> Iterator[None]:
    """Call a ledger damaged where its contents are not what they must be."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"{what} cannot be read ({error})") from error


def read_bodies(
    connection: sqlite3.Connection, path: Path, key: bytes
) -> list[tuple[int, str, str | None, str | None]]:
    """Return number, body and times of progress of each entry, checked against the seal."""
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
            bodies.append((number, body, *times))
    if tag != head:
        raise _damaged(path, "its history does not match its seal")
    return bodies


def read_said(connection: sqlite3.Connection, path: Path, key: bytes) -> list[dict[str, Any]]:
    """Return what was declared, oldest first, checked against its seal."""
    with believe(path, "a declaration"):
        settings, head = connection.execute("SELECT settings, declared FROM ledger").fetchone()
        tag = start_declarations(key, settings)
        said = []
        for number, body, row_tag in connection.execute(
            "SELECT number, body, tag FROM declarations ORDER BY number"
        ):
            tag = seal(key, tag + body)
            if tag != row_tag:
                raise _damaged(path, f"declaration {number} does not match its seal")
            said.append(json.loads(body))
    if tag != head:
        raise _damaged(path, "what is declared in it does not match its seal")
    return said


def check_order(path: Path, declared: Sequence[int], after: Sequence[int]) -> None:
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


MAGIC = b"discreet values\n"
SIZE_BYTES, HASH_BYTES = 8, 32
HEAD = len(MAGIC) + SIZE_BYTES + HASH_BYTES


@dataclass(frozen=True)
class Vault:
    """An open vault, held by this process alone."""

    path: Path
    handle: int

    def make_room(self, size: int) -> None:
        """Take room on the disk for so many bytes of values."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        fill_with_zeros(self.handle, HEAD + size)
        sync_folder(self.path.parent)

    def keep(self, parts: Sequence[bytes]) -> None:
        """Write the values; when this returns, they survive a power cut."""
        mark = hashlib.blake2b(digest_size=HASH_BYTES)
        for part in parts:
            mark.update(part)
        size = sum(len(part) for part in parts)
        os.lseek(self.handle, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self.handle), "wb") as file:
            file.write(MAGIC + size.to_bytes(SIZE_BYTES, "little") + mark.digest())
            for part in parts:
                file.write(part)
        os.fsync(self.handle)

    def read(self) -> bytes | None:
        """Return the values, or None where none were kept whole."""
        return _read(self.path)


def find_vault(ledger: Path, reservation: str) -> Path:
    """Return where the values of a release wait for their bundle."""
    return ledger.with_name(f"{ledger.name}.recovery") / reservation


def has_values(path: Path) -> bool:
    """Say whether a vault holds values."""
    return path.exists() and _read(path) is not None


def remove_vault(path: Path) -> None:
    """Remove a vault whose values have arrived, and the folder with the last one."""
    path.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:
        return  # others wait there


@contextmanager
def open_vault(ledger: Path, reservation: str) -> Iterator[Vault]:
    """Hold the vault of a reservation while the block runs."""
    path = find_vault(ledger, reservation)
    busy = LedgerError(
        f"{ledger}: another process is just finishing this release. Wait for it, and look at "
        f"'discreet ledger show {ledger}'."
    )
    with ExitStack() as stack:
        handle = None
        while handle is None:
            make_folder(path.parent)
            # Another release that arrives may remove the folder between our two steps.
            with suppress(FileNotFoundError):
                handle = stack.enter_context(hold_lock(path, busy))
        try:
            yield Vault(path, handle)
        finally:
            if not os.fstat(handle).st_size:
                remove_vault(path)


def _read(path: Path) -> bytes | None:
    content = path.read_bytes()
    start = len(MAGIC) + SIZE_BYTES
    size = int.from_bytes(content[len(MAGIC) : start], "little")
    values = content[HEAD : HEAD + size]
    mark = hashlib.blake2b(values, digest_size=HASH_BYTES).digest()
    is_whole = content.startswith(MAGIC) and len(values) == size and content[start:HEAD] == mark
    return values if is_whole else None
