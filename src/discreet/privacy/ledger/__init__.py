"""The ledger: what has been spent on any one person, in one SQLite file.

In: spends, keyed fingerprints, and declarations of who is in several populations at once. Out: a
reservation, or a refusal that says what is left. A
release is reserved before its noise is drawn; a reservation counts as spent for ever, whether
the release was completed or not. The noisy values of a release are committed here before anything
else sees them, and the first to commit decides which they are: noise is drawn once for one charge.
They go when the bundle is written. The ledger never holds an answer or an exact count, and digests
of persons' ids only where it was made to remember them.
Its contents are for the steward's eyes. Rule and proofs: docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from discreet.answers.protocol import Contributions
from discreet.atomic import StagedFolder
from discreet.checking import checked
from discreet.choices import Composition, PlainDict, PlainMapping, Relation
from discreet.errors import LOG, BadUsage, LedgerError
from discreet.privacy.accounting import Budget, Neighbours, as_neighbours
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.ledger.balance import (
    History,
    LedgerEntry,
    check_disjoint,
    check_release,
    make_allowance,
    read_history,
    seal_digest,
    seal_persons,
)
from discreet.privacy.ledger.file import (
    CHARGED,
    COMPLETED,
    STORED,
    VOID,
    MissingLedger,
    add_declaration,
    add_event,
    believe,
    check_whole,
    create_file,
    damaged,
    open_ledger_file,
    random_bytes,
    tell_time,
    transaction,
)
from discreet.privacy.ledger.policy import (
    Approver,
    Board,
    Policy,
    check_approval_count,
    make_policy,
    read_change,
    read_policy,
)
from discreet.privacy.ledger.populations import (
    EVERYONE,
    Declaration,
    Populations,
    check_declaration,
    list_population_names,
    read_declarations,
)
from discreet.privacy.ledger.request import Asked, Request
from discreet.privacy.ledger.values import (
    check_reservation,
    describe_values,
    make_room,
    read_values,
    remove_beside,
    remove_inside,
    settle_draw,
    write_draw,
    write_inside,
)

__all__ = ["EVERYONE", "Ledger", "LedgerEntry", "MissingLedger", "as_ledger"]

BUSY_SECONDS = 60.0
COUNT_DECLARATIONS = "SELECT count(*) FROM declarations"


@dataclass(frozen=True)
class Ledger:
    """An open ledger. It holds no connection, so it may cross forks and threads.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> from discreet.privacy.accounting.additive_noise import calibrate_counts
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/spent.db", epsilon=1.0, delta=1e-6)
    >>> sigma, spend = calibrate_counts(12, Budget(1.0, 1e-6))
    >>> mark = ledger.recognise(discreet.datasets.lsat())
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
    policy: Policy | None = None
    remembers_persons: bool = False
    approvals: int = 0
    timeout: float = BUSY_SECONDS
    key: bytes = field(default=b"", repr=False)

    @classmethod
    @checked
    def create(
        cls,
        path: str | PathLike[str],
        epsilon: float,
        delta: float = 1e-6,
        *,
        neighbours: Relation | None = None,
        rule: Composition = "gaussian",
        set_aside: float = 0.0,
        policy: Policy | PlainMapping | str | PathLike[str] | None = None,
        remember_persons: bool = False,
        approvals: int = 0,
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
        policy : path or mapping, optional
            A TOML file with rules that every release must keep (docs/stewards.md), or the same keys
            and values. They are sealed with the ledger and cannot be changed.
        remember_persons : bool
            Keep keyed digests of the ids of everybody in released data, and refuse a declaration
            or a release that they contradict. Every release must then have ids.
        approvals : int
            How many approvers must have signed a release (`discreet.propose`); with 1 or more the
            ledger takes no other release. Enter their keys with `change_approvers`.
        """
        relation = None if neighbours is None else as_neighbours(neighbours)
        limit = Budget(epsilon, delta)
        make_allowance(limit, rule, set_aside)  # refuses what means nothing
        settings = {
            "id": random_bytes(16).hex(),
            "epsilon": limit.epsilon,
            "delta": limit.delta,
            "neighbours": None if relation is None else str(relation),
            "rule": rule,
            "set_aside": set_aside,
            "created_at": tell_time(),
            "remember_persons": bool(remember_persons),
            "approvals": check_approval_count(approvals),
        }
        if policy is not None:
            settings["policy"] = read_policy(policy).to_dict()
        create_file(Path(path), json.dumps(settings, sort_keys=True), random_bytes(32))
        return cls.open(path)

    @classmethod
    @checked
    def open(cls, path: str | PathLike[str], *, timeout: float = BUSY_SECONDS) -> Ledger:
        """Open a ledger and check it whole; a damaged one is refused, never repaired."""
        path = Path(path)
        with open_ledger_file(path, timeout) as connection, transaction(connection, path):
            check_whole(connection, path)
            settings, key = connection.execute("SELECT settings, key FROM ledger").fetchone()
            with believe(path, "what it says about itself"):
                values = json.loads(settings)
                ledger = cls(
                    path=path,
                    id=values["id"],
                    limit=Budget(values["epsilon"], values["delta"]),
                    rule=values["rule"],
                    set_aside=values["set_aside"],
                    neighbours=values["neighbours"] and as_neighbours(values["neighbours"]),
                    policy=make_policy(values["policy"]) if "policy" in values else None,
                    remembers_persons=values["remember_persons"],
                    approvals=values["approvals"],
                    timeout=timeout,
                    key=key,
                )
            ledger._read(connection)
        return ledger

    def recognise(self, answers: Contributions) -> str:
        """Return the fingerprint of answers, wherever they are.

        It is that of every person's answered items with the answers, in any order; so it is the
        same from memory, from a stream and from a cluster, and neither a column nor a person
        without an answer changes it.
        """
        return seal_digest(self.key, *answers.digest(self.key))

    def remember(self, answers: Contributions) -> bytes | None:
        """Return digests of whom answers are about; None where this ledger remembers nobody."""
        return answers.digest_ids(self.key) if self.remembers_persons else None

    def reserve(
        self,
        spend: Spend,
        *,
        fingerprint: str,
        description: str,
        population: str = EVERYONE,
        persons: int | None = None,
        reservation: str | None = None,
        order: PlainMapping | None = None,
        ids: bytes | None = None,
        request: Request | None = None,
    ) -> str:
        """Charge a release before its noise is drawn, and return the reservation.

        Parameters
        ----------
        spend : Spend
            What the release costs.
        fingerprint : str
            From `recognise`; it never leaves the ledger.
        description : str
            A line for the history; public parameters only.
        population : str
            Whom the data is about: a population that was declared (`declare`), or "everyone", the
            default, which contains them all. Charges add for whoever may be in several of them.
        persons : int
            The number of persons as declared in advance, where the policy needs it.
        reservation : str
            A name for the reservation, from `name_reservation`; by default a new one.
        order : mapping
            What was asked for, as plain values: what `discreet ledger resume` needs to know.
        ids : bytes
            From `remember`; a ledger that remembers persons needs it.
        request : Request
            What was approved, where the ledger asks for approvals; it is good for one charge.

        Raises
        ------
        BudgetExceeded
            When the limit does not allow it; nothing is charged then.
        NotAllowed
            When the policy, or a lack of approvals, does not.
        """
        name = check_reservation(self.name_reservation() if reservation is None else reservation)
        terms = Asked(spend.epsilon, spend.delta, str(spend.neighbours), spend.mechanism, persons)
        if self.policy is not None:
            self.policy.check(terms)
        if (ids is not None) != self.remembers_persons:
            raise BadUsage(
                f"{self.path}: give ids=ledger.remember(answers): digests where the ledger "
                f"remembers persons, and None where it does not."
            )
        with self._change() as (connection, history):
            if any(entry.reservation == name for entry in history.entries):
                raise LedgerError(
                    f"{history.path}: the reservation {name} was charged before. Nothing was "
                    "charged now; resume that release, or take another reservation."
                )
            approved = self._gather(history).check_release(request)
            if request is not None:
                request.check_covers(terms, population, order)
            history.check(spend, fingerprint, population)
            if ids is not None:
                check_release(connection, self.key, history, population, ids)
            values = {
                "population": population,
                "fingerprint": fingerprint,
                "description": description,
                "spend": spend.to_dict(),
                "reserved_at": tell_time(),
                "order": order,
                "declared": connection.execute(COUNT_DECLARATIONS).fetchone()[0],
                "persons": persons,
                "ids": None if ids is None else seal_persons(self.key, ids),
                "request": None if request is None else request.to_dict(),
                "approved_by": [approver.describe() for approver in approved],
            }
            add_event(connection, self.key, CHARGED, name, values)
            if ids is not None:
                row = len(history.entries) + 1, ids
                connection.execute("INSERT INTO persons VALUES (?, ?)", row)
            return name

    def check_asked(self, terms: Asked, population: str) -> None:
        """Refuse what no release of this ledger may ask for, whatever the answers are."""
        self.history().check_known(population)
        if self.policy is not None:
            self.policy.check(terms)

    def check_release(self, request: Request | None) -> list[Approver]:
        """Return who approved a release, or refuse it; no answer is needed for that."""
        return self.board().check_release(request)

    @checked
    def declare(
        self,
        name: str,
        *,
        contains: Iterable[str] = (),
        overlaps: Iterable[str] = (),
        disjoint: Iterable[str] = (),
        correct: bool = False,
    ) -> Populations:
        """Declare a population, or more about one, and return all that is declared.

        Whatever is not declared disjoint counts as overlapping. Disjoint means that nobody is in
        both. Where releases are under replace-one, it also means that whoever replaces a person
        is in the same populations: their guarantee compares data in which nobody changes from
        one population to another.

        Parameters
        ----------
        name : str
            The population; a new name or a declared one.
        contains, overlaps, disjoint : iterables of str
            Declared populations that are parts of it, that may share persons with it, or that
            share nobody with it.
        correct : bool
            Replace what was declared before about ``name`` and these populations.

        Raises
        ------
        BadUsage
            When declarations contradict each other; nothing is declared then.

        Warns
        -----
        UserWarning
            When a correction shows that more was spent on somebody than the limit allows.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/spent.db", epsilon=1.0, delta=1e-6)
        >>> for terms in ({"name": "north"}, {"name": "south", "disjoint": ["north"]}):
        ...     populations = ledger.declare(**terms)
        >>> ledger.declare("nation", contains=["north", "south"]).parts_of("nation")
        ['north', 'south']
        >>> folder.cleanup()
        """
        parts, shared, apart = map(list_population_names, (contains, overlaps, disjoint))
        declaration = Declaration(name, parts, shared, apart, correct)
        with self._change() as (connection, before):
            check_declaration(declaration, before.populations)
            declaration = replace(declaration, after=len(before.entries), declared_at=tell_time())
            populations = read_declarations([*before.declarations, declaration])
            after = replace(before, populations=populations)
            after.check_declared()
            check_disjoint(connection, self.key, before, after)
            if populations != before.populations:
                add_declaration(connection, self.key, declaration.to_dict())
        if correct:
            after.warn_of_excess()
        return populations

    def change_approvers(self, change: Approver | Request) -> Approver:
        """Enter an approver's key, or carry out a request that enters or retires one.

        The first keys, as many as the ledger asks for, are entered as they are; after that only
        by a request (`discreet.privacy.ledger.policy.propose_change`) that approvers signed.
        """
        request = change if isinstance(change, Request) else None
        statement = change if isinstance(change, Approver) else read_change(change)
        with self._change() as (connection, history):
            self._gather(history).check_change(statement, request)
            statement = replace(statement, after=len(history.entries), declared_at=tell_time())
            add_declaration(connection, self.key, statement.to_dict())
        return statement

    def board(self) -> Board:
        """Return who may approve releases now, and how many of them must."""
        return self._gather(self.history())

    def _gather(self, history: History) -> Board:
        requests = [one.request for one in history.approvers]
        requests += [one.request for one in history.entries]
        used = frozenset(one["request"]["nonce"] for one in requests if one is not None)
        return Board(self.id, self.approvals, history.approvers, used)

    def populations(self) -> Populations:
        """Return what is declared about populations now."""
        return self.history().populations

    @staticmethod
    def name_reservation() -> str:
        """Return a random name for a reservation to come."""
        return random_bytes(16).hex()

    def make_room(self, size: int, charge: int = 0) -> None:
        """Make sure of room for a charge and its values, in bytes, before anything is charged."""
        with open_ledger_file(self.path, self.timeout) as connection:
            make_room(connection, self.path, size, charge)

    def store(self, reservation: str, parts: Sequence[bytes]) -> bytes:
        """Commit the noisy values of a charged release, and return those that are committed.

        One draw counts for one charge: the first that can be read. Where another was faster, this
        one is dropped and the committed values are returned. They are read back from the file.
        """
        path, key = write_draw(self.path, reservation, parts)
        with self._change() as (connection, history):
            entry = history.find(reservation)
            facts = entry.stored
            if entry.state == CHARGED:
                settled = settle_draw(self.path, reservation, path, key, parts)
                facts = describe_values(settled)
                write_inside(connection, reservation, facts, settled)
                event = {"at": tell_time(), **facts}
                add_event(connection, self.key, STORED, reservation, event)
        remove_beside(self.path, reservation, keep_readable=not facts["inside"])
        committed = self.fetch(reservation)
        if committed is None:
            raise LedgerError(
                f"{self.path}: release {entry.number} was delivered by another process meanwhile. "
                f"Its values were drawn once; use that bundle."
            )
        return committed

    def fetch(self, reservation: str) -> bytes | None:
        """Return the committed values of a release; None before they are, and once they arrived.

        Where they are missing, or are others than were committed, the release becomes void: its
        charge stays, and noise is never drawn for it again.
        """
        with self._change() as (connection, history):
            entry = history.find(reservation)
            content = None
            if entry.stored and entry.void_at is None:
                content = read_values(connection, self.path, reservation, entry.stored)
            if content is None and entry.state == STORED:
                event = {"at": tell_time(), "reason": "its values are missing, or were changed"}
                add_event(connection, self.key, VOID, reservation, event)
                remove_inside(connection, reservation)
                entry = replace(entry, void_at=event["at"])
        if entry.state == VOID:
            remove_beside(self.path, reservation)
            raise LedgerError(
                f"{self.path}: release {entry.number} is void. Its values were drawn and are lost, "
                f"and noise is drawn once for one charge. The charge of epsilon "
                f"{entry.spend.epsilon:g} stays; another release is a new charge."
            )
        return content

    def complete(self, reservation: str) -> None:
        """Note that a reserved release is delivered; it changes nothing about what is spent."""
        with self._change() as (connection, history):
            if history.find(reservation).completed_at is None:
                add_event(connection, self.key, COMPLETED, reservation, {"at": tell_time()})

    def remove_values(self, reservation: str) -> None:
        """Remove the noisy values of a release whose bundle is written."""
        with self._change() as (connection, _):
            remove_inside(connection, reservation)
        remove_beside(self.path, reservation)

    def describe_charge(self, reservation: str) -> PlainDict:
        """Return what a bundle says about the ledger: what was spent, and the charge itself.

        It counts releases as the steward declared them, and nothing that was found in answers. The
        head of the chain and the digest of the values are keyed hashes (docs/privacy.md).

        Raises
        ------
        LedgerError
            Where the ledger does not hold the release as delivered: what was noted is gone.
        """
        history = self.history()
        entry = history.find(reservation)
        if entry.completed_at is None:
            raise damaged(self.path, f"it has forgotten that release {entry.number} was delivered")
        charge = {"release": entry.number, "head": entry.head, "values": entry.digest}
        return {"account": history.describe_account(entry), "charge": charge}

    @checked
    def find(self, release: int | str) -> LedgerEntry:
        """Return the entry with this number, or whose reservation begins so."""
        entries, name = self.releases(), str(release)
        matches = [entry for entry in entries if str(entry.number) == name]
        matches = matches or [one for one in entries if name and one.reservation.startswith(name)]
        if len(matches) != 1:
            numbers = ", ".join(str(entry.number) for entry in entries) or "none"
            raise BadUsage(
                f"{self.path}: {'several releases are' if matches else 'no release is'} called "
                f"{name!r}; its releases have the numbers {numbers}."
            )
        return matches[0]

    def history(self) -> History:
        """Return everything that is in the ledger now, as of one moment."""
        with (
            open_ledger_file(self.path, self.timeout) as connection,
            transaction(connection, self.path),
        ):
            return self._read(connection)

    def releases(self) -> tuple[LedgerEntry, ...]:
        """Return the history, oldest first."""
        return self.history().entries

    def spent(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the most (epsilon, delta) that was spent on one person of a population."""
        return self.history().spent(population)

    def left(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the (epsilon, delta) that one more release of this population may have."""
        return self.history().left(population)

    @contextmanager
    def _change(self) -> Iterator[tuple[sqlite3.Connection, History]]:
        """Give the open file and what it holds, in one transaction that may write to it."""
        with (
            open_ledger_file(self.path, self.timeout) as connection,
            transaction(connection, self.path, "IMMEDIATE"),
        ):
            yield connection, self._read(connection)

    def _read(self, connection: sqlite3.Connection) -> History:
        """Read everything and check the seals that run through it."""
        allowance = make_allowance(self.limit, self.rule, self.set_aside)
        terms = self.limit, allowance, self.neighbours
        return read_history(connection, self.path, self.key, *terms)


@dataclass(frozen=True)
class LedgerSafe:
    """The safe of one release: makes room, charges the ledger, keeps the values.

    Attributes
    ----------
    book
        The ledger, which keeps the values; ``None`` where there is none.
    folder, room
        Where the bundle shall appear, and the bytes that it needs besides the values; ``None``
        where the caller saves it.
    reservation
        The name of the charge.
    charge
        What the ledger is charged with; ``None`` where that was done before.
    """

    book: Ledger | None
    folder: StagedFolder | None
    room: int
    reservation: str
    charge: PlainMapping | None

    def prepare(self, size: int) -> None:
        """Make sure of room for the values, here and in the bundle, then charge the ledger."""
        if self.folder is not None:
            self.folder.make_room(size + self.room)
        if self.book is None:
            return
        self.book.make_room(size, 0 if self.charge is None else _measure_charge(self.charge))
        if self.charge is not None:
            self.book.reserve(**self.charge, reservation=self.reservation)
            LOG.info("release: charged to the ledger")

    def keep(self, parts: Sequence[bytes]) -> bytes | None:
        """Commit the values, and return those that count; None without a ledger."""
        return None if self.book is None else self.book.store(self.reservation, parts)


def _measure_charge(charge: PlainMapping) -> int:
    """Return how many bytes of a charge depend on the items, the request and the persons."""
    request: Request | None = charge["request"]
    asked = [charge["order"], None if request is None else request.to_dict()]
    return len(json.dumps(asked)) + len(charge["ids"] or b"")


#: A ledger, or its file.
AnyLedger = Ledger | str | PathLike[str]


def as_ledger(source: AnyLedger) -> Ledger:
    """Return a ledger that may be given as its file."""
    return source if isinstance(source, Ledger) else Ledger.open(source)
