"""The ledger: what has been spent on one population, in one SQLite file.

In: spends and keyed fingerprints. Out: a reservation, or a refusal that says what is left. A
release is reserved before its noise is drawn; a reservation counts as spent for ever, whether
the release was completed or not. The ledger never holds an answer, a count or a released value.
Its contents are for the steward's eyes. Rule and proofs: docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import BadUsage, BudgetExceeded, LedgerError
from discreet.privacy.accounting import (
    Allowance,
    BasicAllowance,
    Budget,
    GaussianAllowance,
    Neighbours,
    Spend,
)
from discreet.privacy.accounting.budget import as_neighbours
from discreet.privacy.ledger.entries import Entry, by_population, read_entry
from discreet.privacy.ledger.file import (
    check_whole,
    create_file,
    damaged,
    fingerprint_rows,
    open_file,
    random_bytes,
    seal,
    seal_digest,
)

__all__ = ["EVERYONE", "Digestible", "Ledger"]

EVERYONE = "everyone"
BUSY_SECONDS = 60.0


class Digestible(Protocol):
    """Answers that can be recognised by a ledger."""

    def sum_digests(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and the number of persons."""
        ...


@dataclass(frozen=True)
class Ledger:
    """An open ledger. It holds no connection, so it may cross forks and threads.

    Examples
    --------
    >>> import tempfile
    >>> from discreet.privacy.accounting import calibrate_counts
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/spent.db", epsilon=1.0, delta=1e-6)
    >>> sigma, spend = calibrate_counts(12, Budget(1.0, 1e-6))
    >>> mark = ledger.fingerprint([b"row"])
    >>> reservation = ledger.reserve(spend, fingerprint=mark, description="spring test")
    >>> ledger.complete(reservation)
    >>> ledger.spent()
    (1.0, 1e-06)
    >>> folder.cleanup()
    """

    path: Path
    id: str
    limit: Budget
    rule: str
    set_aside: float
    neighbours: Neighbours | None
    timeout: float = BUSY_SECONDS
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        epsilon: float,
        delta: float = 1e-6,
        *,
        neighbours: str | None = None,
        rule: str = "gaussian",
        set_aside: float = 0.0,
    ) -> Ledger:
        """Make a new ledger with the steward's total limit; an existing file is never touched.

        Parameters
        ----------
        path : path
            The new file; it is readable and writable by its owner only.
        epsilon, delta : float
            What all releases together may spend.
        neighbours : str, optional
            The relation that all releases must use; by default the first release's.
        rule : {"gaussian", "basic"}
            How spends add up; fixed for the ledger's life.
        set_aside : float
            Part of delta kept for shuffled releases after the first (Gaussian rule).
        """
        relation = None if neighbours is None else as_neighbours(neighbours)
        limit = Budget(epsilon, delta)
        _allowance(limit, rule, set_aside)  # refuses what means nothing
        settings = {
            "id": random_bytes(16).hex(),
            "epsilon": limit.epsilon,
            "delta": limit.delta,
            "neighbours": None if relation is None else str(relation),
            "rule": rule,
            "set_aside": set_aside,
            "created_at": _now(),
        }
        create_file(Path(path), json.dumps(settings, sort_keys=True), random_bytes(32))
        return cls.open(path)

    @classmethod
    def open(cls, path: str | PathLike[str], *, timeout: float = BUSY_SECONDS) -> Ledger:
        """Open a ledger and check it whole; a damaged one is refused, never repaired."""
        with open_file(Path(path), timeout) as connection:
            check_whole(connection, Path(path))
            settings, key = connection.execute("SELECT settings, key FROM ledger").fetchone()
            ledger = _from_settings(Path(path), settings, key, timeout)
            ledger._read(connection)
        return ledger

    def fingerprint(self, rows: Iterable[Any]) -> str:
        """Return the fingerprint of a data set: keyed, and the same in any order of its rows.

        Parameters
        ----------
        rows : iterable of bytes-like
            One item per person: bytes or a contiguous array of the person's answers (the items
            in one public order).
        """
        return fingerprint_rows(self.key, rows)

    def recognise(self, answers: Digestible) -> str:
        """Return the fingerprint of answers, wherever they are.

        It is that of every person's answers (1, 0, -1 for missing, as bytes), the items in the
        order of their names; so it is the same from memory, from a stream and from a cluster.
        """
        return seal_digest(self.key, *answers.sum_digests(self.key))

    def reserve(
        self, spend: Spend, *, fingerprint: str, description: str, population: str = EVERYONE
    ) -> str:
        """Charge a release before its noise is drawn, and return the reservation.

        Parameters
        ----------
        spend : Spend
            What the release costs.
        fingerprint : str
            From `fingerprint`; it never leaves the ledger.
        description : str
            A line for the history; public parameters only.
        population : str
            The steward's declaration that the persons in this data are disjoint from those of
            every other population of the ledger. Charges add within one population.

        Raises
        ------
        BudgetExceeded
            When the limit does not allow it; nothing is charged then.
        """
        with open_file(self.path, self.timeout) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                entries = self._read(connection)
                self._check_relation(entries, spend)
                self._check_disjoint(entries, fingerprint, population)
                self._check_room(entries, spend, population)
                reservation = self._insert(connection, spend, fingerprint, description, population)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        return reservation

    def complete(self, reservation: str) -> None:
        """Note that a reserved release was written; it changes nothing about what is spent."""
        with open_file(self.path, self.timeout) as connection:
            changed = connection.execute(
                "UPDATE releases SET completed_at = ? WHERE reservation = ?",
                (_now(), reservation),
            ).rowcount
        if changed != 1:
            raise LedgerError(
                f"{self.path}: no reservation {reservation!r} in this ledger. Complete only what "
                f"this ledger reserved."
            )

    def releases(self) -> tuple[Entry, ...]:
        """Return the history, oldest first."""
        with open_file(self.path, self.timeout) as connection:
            return tuple(self._read(connection))

    def spent(self, population: str | None = None) -> tuple[float, float]:
        """Return (epsilon, delta) spent; by default of the population that spent most."""
        groups = by_population(self.releases())
        chosen = groups.values() if population is None else [groups.get(population, [])]
        allowance = self._allowance
        epsilon = max((allowance.spent(spends) for spends in chosen), default=0.0)
        return epsilon, self.limit.delta if epsilon else 0.0

    def left(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the (epsilon, delta) that one more release of this population may have."""
        spends = by_population(self.releases()).get(population, [])
        epsilon = self._allowance.left(spends)
        return epsilon, self.limit.delta if epsilon else 0.0

    @property
    def _allowance(self) -> Allowance:
        return _allowance(self.limit, self.rule, self.set_aside)

    def _read(self, connection: sqlite3.Connection) -> list[Entry]:
        """Read the history and check the seal that runs through it."""
        try:
            return self._read_sealed(connection)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(self.path, f"an entry cannot be read ({error})") from error

    def _read_sealed(self, connection: sqlite3.Connection) -> list[Entry]:
        settings, head = connection.execute("SELECT settings, head FROM ledger").fetchone()
        tag = seal(self.key, settings)
        entries = []
        for number, body, row_tag, completed_at in connection.execute(
            "SELECT number, body, tag, completed_at FROM releases ORDER BY number"
        ):
            tag = seal(self.key, tag + body)
            if tag != row_tag:
                raise damaged(self.path, f"release {number} does not match its seal")
            entries.append(read_entry(number, json.loads(body), completed_at))
        if tag != head:
            raise damaged(self.path, "its history does not match its seal")
        return entries

    def _insert(
        self,
        connection: sqlite3.Connection,
        spend: Spend,
        fingerprint: str,
        description: str,
        population: str,
    ) -> str:
        reservation = random_bytes(16).hex()
        values = {
            "reservation": reservation,
            "population": population,
            "fingerprint": fingerprint,
            "description": description,
            "spend": spend.to_dict(),
            "reserved_at": _now(),
        }
        body = json.dumps(values, sort_keys=True)
        (head,) = connection.execute("SELECT head FROM ledger").fetchone()
        tag = seal(self.key, head + body)
        connection.execute(
            "INSERT INTO releases (reservation, body, tag) VALUES (?, ?, ?)",
            (reservation, body, tag),
        )
        connection.execute("UPDATE ledger SET head = ?", (tag,))
        return reservation

    def _check_relation(self, entries: Sequence[Entry], spend: Spend) -> None:
        fixed = self.neighbours or (entries[0].spend.neighbours if entries else spend.neighbours)
        if spend.neighbours is not fixed:
            raise LedgerError(
                f"{self.path}: this ledger counts under {fixed}, the release is calibrated under "
                f"{spend.neighbours}. The two do not add; release under {fixed} or make another "
                f"ledger for another population."
            )

    def _check_disjoint(self, entries: Sequence[Entry], fingerprint: str, population: str) -> None:
        for entry in entries:
            if entry.fingerprint == fingerprint and entry.population != population:
                raise LedgerError(
                    f"{self.path}: these very answers were already charged to population "
                    f"{entry.population!r}, so their persons are not disjoint from it as "
                    f"{population!r} would declare. Charge them to {entry.population!r}."
                )

    def _check_room(self, entries: Sequence[Entry], spend: Spend, population: str) -> None:
        spends = by_population(entries).get(population, [])
        allowance = self._allowance
        if allowance.accepts(spends, spend):
            return
        raise BudgetExceeded(
            f"{self.path}: the release asks for epsilon {spend.epsilon:g} with delta "
            f"{spend.delta:g}. The limit is epsilon {self.limit.epsilon:g} with delta "
            f"{self.limit.delta:g}; {len(spends)} releases have spent epsilon "
            f"{allowance.spent(spends):.4g}, and epsilon {allowance.left(spends):.4g} is left "
            f"for one more Gaussian release. Nothing was charged; ask for less."
        )


def _from_settings(path: Path, settings: str, key: bytes, timeout: float) -> Ledger:
    try:
        values = json.loads(settings)
        relation = values["neighbours"]
        return Ledger(
            path=path,
            id=values["id"],
            limit=Budget(values["epsilon"], values["delta"]),
            rule=values["rule"],
            set_aside=values["set_aside"],
            neighbours=None if relation is None else as_neighbours(relation),
            timeout=timeout,
            key=key,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"its settings cannot be read ({error})") from error


def _allowance(limit: Budget, rule: str, set_aside: float) -> Allowance:
    if rule == "gaussian":
        return GaussianAllowance(limit, set_aside)
    if rule == "basic":
        return BasicAllowance(limit)
    raise BadUsage(f"a ledger's rule must be 'gaussian' or 'basic', found {rule!r}.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
