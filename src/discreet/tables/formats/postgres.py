"""Answers in a PostgreSQL database, streamed through ADBC.

In: an address such as ``"postgresql://user@host/database::table"``. Out: a dataset whose every
pass is one binary COPY that is read as it arrives, so that memory does not grow with the table.
Other programs may write to the table meanwhile: all passes read one snapshot of the database,
in transactions that are not allowed to write. Nothing that is shown or kept holds the password.
"""

from __future__ import annotations

import importlib
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import current_thread, main_thread
from typing import Any
from urllib.parse import unquote

from discreet.errors import BadUsage, DiscreetError, MissingExtra
from discreet.tables.dataset import Dataset, Shard, is_query, quote_name
from discreet.tables.findings import DeclaredSource

# In brackets stands an IPv6 address, full of colons; elsewhere a colon stands before a port.
_HOST = r"(?:\[[^\]\s]*\]|[^\[\]:/?@,\s]*)(?::\d+)?"
# No @ behind the host: there it would be the end of a password with a / or ? that is not encoded,
# and what stands before it must not be taken for a host and shown.
_ADDRESS = re.compile(
    r"\s*(?P<scheme>postgres(?:ql)?)://"
    r"(?:(?P<user>[^/?#@:\s]*)(?::(?P<password>[^/?#@\s]*))?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)"
    r"(?P<path>/(?:(?!::)[^?@\s])*)?"
    r"(?:\?(?P<options>(?:(?!::)[^@\s])*))?"
    r"(?:::(?P<wanted>.*))?",
    re.DOTALL,
)
_HIDDEN = "***"

_BATCH_OPTION = "adbc.postgresql.batch_size_hint_bytes"
#: Bytes of a batch as the server sends them: some 100,000 rows of a long table.
BATCH_BYTES = 1 << 22

_TABLES = """
SELECT n.nspname, c.relname, c.relkind::text, pg_catalog.pg_table_is_visible(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2
"""
#: Tables, partitioned tables and materialized views; views and foreign tables are queries.
_STORED = ("r", "p", "m")

# Rows of a stored table then come as they lie in it, pass after pass. Otherwise a scan may begin
# where another program's scan is at the moment, several processes may share the work in any
# order, and a pass over the ids alone may follow an index instead.
_AS_STORED = (
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL enable_indexscan = off",
    "SET LOCAL enable_indexonlyscan = off",
    "SET LOCAL enable_bitmapscan = off",
)


@dataclass(frozen=True)
class Address:
    """Where a server is, and which of its tables is meant.

    Attributes
    ----------
    uri
        What the driver wants; confidential.
    place
        The same without passwords, for messages and checkpoints.
    wanted
        A table or a query; empty for the only table.
    secrets
        Passwords, as written and as meant.
    """

    uri: str = field(repr=False)
    place: str
    wanted: str
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The whole address without passwords."""
        return f"{self.place}::{self.wanted}" if self.wanted else self.place

    def hide(self, text: str) -> str:
        """Return a message of the driver or the server without passwords."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def parse_address(text: str) -> Address:
    """Take an address apart.

    Examples
    --------
    >>> address = parse_address("postgresql://ann:secret@[::1]:5433/school::answers")
    >>> address.place, address.wanted
    ('postgresql://ann@[::1]:5433/school', 'answers')
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise BadUsage(
            "The address of a PostgreSQL server cannot be understood (it is not repeated here, "
            "because it may hold a password). It looks like "
            "'postgresql://user@host:5432/database::table', with '::SELECT ...' for a query; signs "
            "such as blanks, '@', '/' and '#' in a user or password are written %20, %40, %2F, %23."
        )
    parts = {name: value or "" for name, value in match.groupdict().items()}
    options = parts["options"].split("&") if parts["options"] else []
    hidden = [option for option in options if re.match(r"[^=]*(password|secret)", option, re.I)]
    secrets = [parts["password"], *(option.partition("=")[2] for option in hidden)]
    secret_words = {word for secret in secrets for word in (secret, unquote(secret)) if word}
    user = f"{parts['user']}@" if parts["user"] else ""
    visible_options = [
        f"{option.partition('=')[0]}={_HIDDEN}" if option in hidden else option
        for option in options
    ]
    display = f"{parts['scheme']}://{user}{parts['host']}{parts['path']}"
    return Address(
        uri=text[: match.start("wanted") - 2] if match["wanted"] is not None else text,
        place=f"{display}?{'&'.join(visible_options)}" if visible_options else display,
        wanted=parts["wanted"].strip(),
        secrets=tuple(sorted(secret_words, key=len, reverse=True)),
    )


def open_server(text: str) -> Dataset:
    """Open a table or a query on a server; the snapshot lives until the dataset is closed."""
    address = parse_address(text)
    snapshot = _Snapshot(address)
    try:
        return _open_rows(snapshot, address)
    except BaseException:
        snapshot.close()
        raise


def _open_rows(snapshot: _Snapshot, address: Address) -> Dataset:
    if is_query(address.wanted):
        query = address.wanted.rstrip().rstrip(";")
        # The line ends keep a comment at the end of the query from going on.
        rows, name, stored = f"(\n{query}\n)", f"the query on {address.place}", False
    else:
        rows, stored = _find_table(snapshot, address)
        name = f"{address.place}, {rows}"
    source = ServerSource(snapshot, rows, name, stored=stored)
    count = int(snapshot.fetch(f"SELECT count(*) FROM {rows} AS discreet_rows", name)[0][0])  # noqa: S608
    identity = ("postgresql", address.place, rows, *source.names)
    shard = Shard(name, lambda: source, count, identity)
    return Dataset((shard,), steady=stored, lasting=False, close=snapshot.close)


def _find_table(snapshot: _Snapshot, address: Address) -> tuple[str, bool]:
    """Return the quoted name of the table, and whether its rows are stored."""
    rows = snapshot.fetch(_TABLES, "the list of tables")
    matches: list[tuple[str, str, bool]] = []
    for schema, table, kind, is_visible in rows:
        quoted = f"{quote_name(schema)}.{quote_name(table)}"
        alone = (table, quote_name(table)) if is_visible else ()
        spellings = {f"{schema}.{table}", quoted, *alone}
        if address.wanted in spellings or (not address.wanted and len(rows) == 1):
            matches.append((f"{schema}.{table}", quoted, kind in _STORED))
    if len(matches) == 1:
        return matches[0][1:]
    listed = [table if visible else f"{schema}.{table}" for schema, table, _, visible in rows]
    names = ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "") or "none"
    if not address.wanted:
        raise BadUsage(
            f"{address.place} has {len(rows)} tables ({names}). Say which one holds the answers, "
            f"as in '{address.place}::{listed[0] if listed else 'table'}'."
        )
    if matches:
        choices = " and ".join(quoted for _, quoted, _ in matches)
        raise BadUsage(
            f"'{address.wanted}' can mean {choices}. Write the one that is meant like that."
        )
    raise BadUsage(
        f"{address.place} has no table '{address.wanted}' for this user. Its tables are: {names}. "
        "Write names as they are stored, with a dot between schema and table."
    )


class ServerSource(DeclaredSource):
    """A table or the result of a query; see :class:`discreet.tables.opener.Source`."""

    def __init__(self, snapshot: _Snapshot, rows: str, name: str, *, stored: bool) -> None:
        self._snapshot, self.name = snapshot, name
        self._settings = _AS_STORED if stored else ()
        schema = snapshot.describe(f"SELECT * FROM {rows} AS discreet_rows", name)  # noqa: S608
        if not len(schema):
            raise BadUsage(f"{name} has no columns, so there are no answers to read.")
        self.names = [column.name.strip() for column in schema]
        # By number, because the columns of a query may have the same name twice.
        numbers = ", ".join(f"c{number}" for number in range(len(schema)))
        self._rows = f"{rows} AS discreet_rows({numbers})"
        self._columns = [_spell(f"c{number}", column) for number, column in enumerate(schema)]

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns in their own types, or as text."""
        selection = ", ".join(self._columns[number] for number in columns)
        query = f"SELECT {selection} FROM {self._rows}"  # noqa: S608 (quoted or the user's own)
        for batch in self._snapshot.stream(query, self.name, self._settings):
            yield list(batch.columns)

    def place(self, row: int) -> str:
        """Return the row, counted from 1."""
        return f"{self.name}, row {row + 1} of its result"


def _spell(name: str, column: Any) -> str:
    """Return how to ask for a column so that it comes in a type that every reader knows."""
    import pyarrow as pa

    kind = (column.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if kind == "numeric":
        # 7 and 7.0 are equal there, so they must be one person here.
        return f"trim_scale({name})::text"
    plain = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    # An oid is unsigned there and signed here.
    is_known = kind != "oid" and any(is_kind(column.type) for is_kind in plain)
    return name if is_known else f"{name}::text"


class _Snapshot:
    """The database as it was at one moment, for as many connections as there are passes."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._keeper = _Session(address)
        # Its transaction keeps the snapshot. Without a call, it ends when nobody needs it.
        self.close = weakref.finalize(self, self._keeper.close)
        try:
            with _explain(address, "a snapshot"):
                # The server may otherwise end a transaction that waits for the passes of others.
                self._keeper.run("SET LOCAL idle_in_transaction_session_timeout = 0")
                exported = self._keeper.fetch("SELECT pg_catalog.pg_export_snapshot()")
        except BaseException:
            self.close()
            raise
        self._name = str(exported[0][0])

    def fetch(self, query: str, name: str) -> list[tuple[Any, ...]]:
        """Return all rows of a small result."""
        with _explain(self._address, name):
            return self._keeper.fetch(query)

    def describe(self, query: str, name: str) -> Any:
        """Return the columns of a query as an Arrow schema, without running it."""
        with _explain(self._address, name):
            return self._keeper.describe(query)

    def stream(self, query: str, name: str, settings: Sequence[str]) -> Iterator[Any]:
        """Yield the result of a query as Arrow record batches, as they arrive."""
        session = _Session(self._address)
        try:
            with _explain(self._address, name):
                # The name is the server's own: three hexadecimal numbers.
                session.run(f"SET TRANSACTION SNAPSHOT '{self._name}'")
                for setting in settings:
                    session.run(setting)
                yield from session.stream(query)
        finally:
            session.close()


class _Session:
    """One connection with one transaction that sees one snapshot and cannot write."""

    def __init__(self, address: Address) -> None:
        driver = _load_driver()
        try:
            self._connection = driver.connect(address.uri, autocommit=True)
        except driver.Error as error:
            raise BadUsage(
                f"PostgreSQL does not let us in at {address.place}: {_shorten(address, error)} "
                "Check host, port, database, user and password (which may also stand in PGPASSWORD "
                "or in ~/.pgpass)."
            ) from None
        try:
            with _explain(address, "the beginning of a transaction"):
                self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except DiscreetError:
            self.close()
            raise

    def run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def describe(self, query: str) -> Any:
        with self._connection.cursor() as cursor:
            return cursor.adbc_execute_schema(query)

    def stream(self, query: str) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{_BATCH_OPTION: str(BATCH_BYTES)})
            cursor.execute(query)
            yield from cursor.fetch_record_batch()

    def close(self) -> None:
        self._connection.close()


def _load_driver() -> Any:
    try:
        return importlib.import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        raise MissingExtra("Reading from PostgreSQL", "postgres") from None


@contextmanager
def _explain(address: Address, name: str) -> Iterator[None]:
    """Turn what the driver raises into errors that say what to do, without passwords."""
    driver = _load_driver()
    try:
        yield
    except (driver.Error, OSError) as error:
        words = _shorten(address, error)
        if "due to user request" in words and current_thread() is main_thread():
            # The driver turns Ctrl-C into this, and keeps the interrupt for itself.
            raise KeyboardInterrupt from None
        if _is_lost(error):
            raise DiscreetError(
                f"The connection to {address.place} was lost: {words} There is no result; start "
                "again when the server is back (a checkpoint continues where it stopped)."
            ) from None
        raise BadUsage(f"PostgreSQL cannot read {name}: {words}") from None


def _shorten(address: Address, error: Exception) -> str:
    """Return what the server said, in one line, without the query and the driver's preamble."""
    text = str(error).partition("\nQuery was:")[0].partition(". SQLSTATE")[0]
    text = text.partition("\nLINE ")[0]
    text = re.sub(r"^.*?(ERROR|FATAL|Failed to connect): *", "", text, flags=re.DOTALL)
    text = " ".join(address.hide(text).split())
    return text if text.endswith((".", "?")) else f"{text}."


def _is_lost(error: Exception) -> bool:
    """Say whether the server went away rather than refused: no fault of the query."""
    state = str(getattr(error, "sqlstate", None) or "")
    # 57P01 to 57P05: stopped by an administrator, crashed, timed out. 08: no connection.
    if state:
        return state.startswith(("57P", "08"))
    lost = r"terminating connection|closed the connection|no connection|not open|SSL SYSCALL|reset"
    return bool(re.search(lost, str(error), re.I))
