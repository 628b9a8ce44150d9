"""What a ledger holds at one moment: its entries, what they spent, what its limit still allows.

In: an open file and its key; the rule by which spends add up. Out: a :class:`History` with every
seal checked; what is spent and left, or a refusal. Damage is named, never repaired. A person may be
in several populations at once, so what counts is the largest total over all sets of populations
that can share a person. docs/privacy-accounting.md, section 6.

A ledger may remember persons by keyed digests of their ids, release by release; then the same
person in the data of two populations that are declared disjoint is a refusal. Digests stay in the
ledger: nothing that is shown depends on them. The seal of each release covers its digests.
"""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from operator import le
from pathlib import Path
from shlex import quote

import numpy as np

from discreet.answers.protocol import ID_BYTES, SUM_BYTES
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, BudgetExceeded, LedgerError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import Allowance, BasicAllowance, GaussianAllowance, Spend
from discreet.privacy.ledger.file import (
    CHARGED,
    COMPLETED,
    STORED,
    VOID,
    Event,
    believe,
    damaged,
    read_events,
    read_said,
    seal,
)
from discreet.privacy.ledger.policy import Approver
from discreet.privacy.ledger.populations import (
    EVERYONE,
    Declaration,
    Populations,
    read_declarations,
)
from discreet.privacy.ledger.values import is_kept, list_inside


@dataclass(frozen=True)
class LedgerEntry:
    """One release of the history: its charge, and what has happened to it since.

    ``stored_at`` says when the noisy values were committed, ``completed_at`` when the release was
    delivered, ``void_at`` when its values were found to be lost. ``has_values`` says whether the
    values still wait for a bundle. ``order`` is what was asked for, from which a release that was
    paid for can be made; None where it was charged without. ``declared`` is the number of
    declarations at that time. ``request`` is what was approved, with its signatures, and
    ``approved_by`` whose they are. ``head`` and ``digest`` are what its bundle shows of the
    ledger's chain and of the values.
    """

    number: int
    reservation: str
    population: str
    description: str
    spend: Spend
    reserved_at: str
    fingerprint: str = field(repr=False)  # for the steward's ledger only, never printed
    order: PlainMapping | None = field(default=None, repr=False)
    declared: int = 0
    ids: str | None = field(default=None, repr=False)  # a seal on digests, never printed
    request: PlainMapping | None = field(default=None, repr=False)
    approved_by: tuple[Mapping[str, str], ...] = ()
    stored_at: str | None = None
    completed_at: str | None = None
    void_at: str | None = None
    stored: PlainMapping = field(default_factory=dict, repr=False)
    has_values: bool = False
    head: str | None = None
    digest: str | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the release was paid for, can be delivered, and has no bundle yet."""
        can_be_made = self.order is not None and self.void_at is None
        return can_be_made and (self.completed_at is None or self.has_values)

    @property
    def state(self) -> str:
        """What has happened to it, in a word: the last of its events."""
        times = {COMPLETED: self.completed_at, VOID: self.void_at, STORED: self.stored_at}
        return next((kind for kind, time in times.items() if time is not None), CHARGED)

    def to_dict(self) -> PlainDict:
        """Return plain values for `discreet ledger show --json`."""
        spend = self.spend
        return {
            **{name: getattr(self, name) for name in ("number", "population", "description")},
            **{name: getattr(spend, name) for name in ("mechanism", "epsilon", "delta")},
            "rho": None if spend.rho is None else float(spend.rho),
            "neighbours": str(spend.neighbours),
            **{name: getattr(self, name) for name in ("reserved_at", "completed_at", "state")},
            "approved_by": [dict(one) for one in self.approved_by],
        }


@dataclass(frozen=True)
class PopulationBalance:
    """What was spent on one person of a population, at most, and what is left.

    ``together`` names charged populations that a person with that spend is in. Where there are too
    many sets of populations to look at each, ``epsilon`` and ``left`` are bounds on the safe side,
    and nobody is named.
    """

    population: str
    epsilon: float
    left: float
    releases: int
    together: tuple[str, ...]
    is_exact: bool


@dataclass(frozen=True)
class History:
    """The entries of a ledger, oldest first, and whom they are about, all read at one moment."""

    path: Path
    entries: tuple[LedgerEntry, ...]
    limit: Budget
    allowance: Allowance
    neighbours: Neighbours | None
    populations: Populations
    declarations: tuple[Declaration, ...] = ()
    approvers: tuple[Approver, ...] = ()

    def find(self, reservation: str) -> LedgerEntry:
        """Return the entry of a reservation."""
        for entry in self.entries:
            if entry.reservation == reservation:
                return entry
        raise LedgerError(
            f"{self.path}: no reservation {reservation!r} in this ledger. Complete only what this "
            f"ledger reserved."
        )

    @property
    def relation(self) -> Neighbours | None:
        """Return the relation that all releases use; None before the first where none is fixed."""
        first = self.entries[0].spend.neighbours if self.entries else None
        return self.neighbours or first

    def spent(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the most (epsilon, delta) that was spent on one person of a population."""
        epsilon = max(self.allowance.spent(spends) for spends in self.charges(population))
        return epsilon, self.limit.delta if epsilon else 0.0

    def left(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the (epsilon, delta) that one more release of a population may have."""
        epsilon = min(self.allowance.left(spends) for spends in self.charges(population))
        return epsilon, self.limit.delta if epsilon else 0.0

    def keeps_limit(self) -> bool:
        """Say whether nobody has more spent on them than the limit allows.

        Only a corrected declaration can show that somebody has.
        """
        every = [spends for spends in self.charges(EVERYONE) if spends]
        return all(self.allowance.accepts(spends[:-1], spends[-1]) for spends in every)

    def warn_of_excess(self) -> None:
        """Say, after a correction, that it has shown one; what was released stays released."""
        if self.keeps_limit():
            return
        standing = self.standing()
        warnings.warn(
            f"{self.path}: with this correction, epsilon {standing.epsilon:.4g} was spent on a "
            f"person of {' and '.join(map(repr, standing.together)) or 'several populations'}, "
            f"above the limit of epsilon {self.limit.epsilon:g}. The correction is kept, because "
            f"what was released cannot be taken back; no further release about such persons is "
            f"accepted",
            stacklevel=3,
        )

    def check(self, spend: Spend, fingerprint: str, population: str) -> None:
        """Refuse a release that this ledger cannot be charged with."""
        self.check_known(population)
        fixed = self.relation or spend.neighbours
        if spend.neighbours is not fixed:
            raise LedgerError(
                f"{self.path}: this ledger counts under {fixed}, the release is calibrated under "
                f"{spend.neighbours}. The two do not add; release under {fixed} or make another "
                f"ledger for another population."
            )
        self._check_disjoint(fingerprint, population)
        self._check_room(spend, population)

    def check_known(self, population: str) -> None:
        """Refuse a population of which nobody said with whom it shares persons."""
        if self.populations.knows(population):
            return
        declared = ", ".join(map(repr, self.populations.names)) or "none"
        command = f"discreet ledger population {quote(str(self.path))} {quote(population)}"
        raise BadUsage(
            f"{self.path}: the population {population!r} is not declared, so the ledger does not "
            f"know whose budget it spends (declared: {declared}). Declare it first: '{command}' "
            f"where its persons may be in any other population too, with '--disjoint A,B' where "
            f"nobody is in A or B as well, with '--contains A,B' where A and B are parts of it; "
            f"in Python ledger.declare({population!r}, ...)."
        )

    def charges(self, population: str) -> list[list[Spend]]:
        """Return, for each kind of person in a population, all spends on such a person.

        A kind is a largest set of populations that one person may be in. Where there are too many
        of them, one list is returned that weighs at least as much as each.
        """
        self.check_known(population)
        return [self._list_spends(kind) for kind in self._kinds(population)[0]]

    def _kinds(self, population: str) -> tuple[list[frozenset[str]], bool]:
        """Return sets of charged populations, and whether each is a kind of person."""
        weights = self._weights
        names = [name for name in weights if name != EVERYONE]
        kinds = self.populations.sets_with(population, names)
        if kinds is not None:
            return self._drop_lighter(kinds), True
        groups = self.populations.groups_with(population, names)
        # Of each group those whose totals reach the largest of the group, each of them.
        heaviest = (
            max(group, key=lambda name: weights[name][total])
            for group in groups
            for total in range(len(weights[group[0]]))
        )
        return [frozenset(heaviest)], False

    def _drop_lighter(self, kinds: list[frozenset[str]]) -> list[frozenset[str]]:
        """Leave out kinds that decide nothing, because another weighs as much in every total.

        A single release also counts by its own guarantee, so it stands for its equals only.
        """
        spends = {kind: self._list_spends(kind) for kind in kinds}
        weights = {kind: self.allowance.weigh(own) for kind, own in spends.items()}
        heaviest: list[frozenset[str]] = []
        for kind in sorted(weights, key=weights.__getitem__, reverse=True):
            if not any(
                (len(spends[rival]) > 1 or spends[rival] == spends[kind])
                and all(map(le, weights[kind], weights[rival]))
                for rival in heaviest
            ):
                heaviest.append(kind)
        return heaviest

    def _list_spends(self, kind: frozenset[str]) -> list[Spend]:
        """Return all spends on a person of some populations, and of "everyone"."""
        names = sorted({EVERYONE, *kind})
        return [spend for name in names for spend in self._spends.get(name, ())]

    @cached_property
    def _weights(self) -> dict[str, tuple[Fraction, ...]]:
        """Return what was charged to each population, the heaviest first."""
        weighed = [(self.allowance.weigh(spends), name) for name, spends in self._spends.items()]
        return {name: weight for weight, name in sorted(weighed, reverse=True)}

    @cached_property
    def _spends(self) -> dict[str, list[Spend]]:
        spends: dict[str, list[Spend]] = {}
        for entry in self.entries:
            spends.setdefault(entry.population, []).append(entry.spend)
        return spends

    def _check_disjoint(self, fingerprint: str, population: str) -> None:
        for entry in self.entries:
            if not self.populations.are_disjoint(population, entry.population):
                continue  # the charges add, whoever the persons are
            if entry.fingerprint == fingerprint:
                raise LedgerError(
                    f"{self.path}: these very answers were already charged to population "
                    f"{entry.population!r}, from which {population!r} is declared disjoint. Charge "
                    f"them to {entry.population!r}, or correct the declaration."
                )

    def check_declared(self) -> None:
        """Refuse a structure in which the same answers were charged to disjoint populations."""
        entries_of: dict[str, list[LedgerEntry]] = {}
        for entry in self.entries:
            before = entries_of.setdefault(entry.fingerprint, [])
            for earlier in before:
                if self.populations.are_disjoint(entry.population, earlier.population):
                    raise LedgerError(
                        f"{self.path}: {earlier.population!r} and {entry.population!r} would be "
                        f"disjoint, and the very same answers were charged to both (releases "
                        f"{earlier.number} and {entry.number}). Nothing was declared."
                    )
            before.append(entry)

    def _check_room(self, spend: Spend, population: str) -> None:
        if all(self.allowance.accepts(spends, spend) for spends in self.charges(population)):
            return
        raise BudgetExceeded(
            f"{self.path}: the release asks for epsilon {spend.epsilon:g} with delta "
            f"{spend.delta:g}. The limit is epsilon {self.limit.epsilon:g} with delta "
            f"{self.limit.delta:g}; releases that may be about the same persons have spent epsilon "
            f"{self.spent(population)[0]:.4g} (whatever is not declared disjoint from "
            f"{population!r} counts), and epsilon {self.left(population)[0]:.4g} "
            f"is left for one more Gaussian release. Nothing was charged; ask for less."
        )

    def standing(self, population: str = EVERYONE) -> PopulationBalance:
        """Return what is spent on a population, what is left, and who has spent the most."""
        kinds, is_exact = self._kinds(population)
        spent = [self.allowance.spent(spends) for spends in self.charges(population)]
        heaviest = kinds[spent.index(max(spent))] if is_exact else ()
        return PopulationBalance(
            population,
            epsilon=max(spent),
            left=self.left(population)[0],
            releases=sum(entry.population == population for entry in self.entries),
            together=tuple(name for name in self.populations.names if name in heaviest),
            is_exact=is_exact,
        )

    def describe_account(self, entry: LedgerEntry) -> PlainDict:
        """Return what was spent on an entry's population up to and with it, and by how many."""
        before = tuple(one for one in self.entries if one.number <= entry.number)
        epsilon, delta = replace(self, entries=before).spent(entry.population)
        apart = self.populations.are_disjoint
        return {
            "population": entry.population,
            "epsilon": epsilon,
            "delta": delta,
            "limit": self.limit.epsilon,
            "releases": sum(not apart(one.population, entry.population) for one in before),
        }

    def standings(self) -> list[PopulationBalance]:
        """Return what is spent on "everyone" and on each declared population."""
        return [self.standing(name) for name in (EVERYONE, *self.populations.names)]


def make_allowance(limit: Budget, rule: str, set_aside: float) -> Allowance:
    """Return how spends add up, and what they may come to."""
    if rule == "gaussian":
        return GaussianAllowance(limit, set_aside)
    if rule == "basic":
        return BasicAllowance(limit)
    raise BadUsage(f"a ledger's rule must be 'gaussian' or 'basic', found {rule!r}.")


# --- read from the file, every seal checked -------------------------------------------------------


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
        declared = max((one.declared for one in entries), default=0)
        after = max((one["after"] for one in declarations), default=0)
        # Each of the two says how long the other was when it grew.
        if declared > len(declarations) or after > len(entries):
            raise damaged(path, "its history and its declarations are not of the same time")
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
        charge = progress[CHARGED].facts
        facts: PlainDict = {name: charge[name] for name in CHARGE_FACTS}
        facts["spend"] = Spend.from_dict(facts["spend"])
        facts["approved_by"] = tuple(facts["approved_by"])
        for kind, time in ((STORED, "stored_at"), (COMPLETED, "completed_at"), (VOID, "void_at")):
            facts[time] = progress[kind].facts["at"] if kind in progress else None
        stored = progress.get(STORED)
        if stored is not None:
            facts["stored"] = stored.facts
            facts["has_values"] = is_kept(inside, path, stored.reservation, stored.facts)
            facts["head"] = publish_head(key, stored.tag)
            facts["digest"] = publish_digest(key, stored.facts["sha256"])
        yield LedgerEntry(number, **facts)


#: What an entry has of its charge.
CHARGE_FACTS = (
    *("reservation", "population", "description", "spend", "reserved_at", "fingerprint"),
    *("order", "declared", "ids", "request", "approved_by"),
)


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


def seal_digest(key: bytes, total: int, count: int) -> str:
    """Return the fingerprint of a data set from the digests of its rows, all added up.

    See :func:`discreet.answers.protocol.digest_rows`. The number of rows is sealed in as well,
    because a sum of hashes alone could be met by another number of them. Without the key nobody
    can test a guess of the data against the result.
    """
    body = total.to_bytes(SUM_BYTES, "little") + count.to_bytes(8, "little")
    return hashlib.blake2b(body, key=key, digest_size=32, person=b"rows").hexdigest()


# --- remembered persons --------------------------------------------------------------------------


def seal_persons(key: bytes, digests: bytes) -> str:
    """Return what the entry of a release says about its persons' digests."""
    return hashlib.blake2b(digests, key=key, digest_size=32, person=b"persons").hexdigest()


def check_remembered(connection: sqlite3.Connection, path: Path, history: History) -> None:
    """Refuse a ledger that has lost the persons of a release, or has those of another."""
    releases = {number for (number,) in connection.execute("SELECT release FROM persons")}
    with believe(path, "whom its releases are about"):
        if releases != {entry.number for entry in history.entries if entry.ids is not None}:
            raise ValueError("the digests of a release are gone, or too many")


def check_release(
    connection: sqlite3.Connection, key: bytes, history: History, population: str, digests: bytes
) -> None:
    """Refuse a release about somebody who is in the data of a disjoint population."""
    for entry in history.entries:
        is_apart = history.populations.are_disjoint(population, entry.population)
        if is_apart and _share_person(
            digests, read_person_digests(connection, history.path, key, entry)
        ):
            raise LedgerError(
                f"{history.path}: {population!r} is declared disjoint from {entry.population!r}, "
                f"and somebody in this data is also in data that was charged to "
                f"{entry.population!r} (release {entry.number}). Nothing was charged; correct the "
                f"declaration or the data."
            )


def check_disjoint(
    connection: sqlite3.Connection, key: bytes, before: History, after: History
) -> None:
    """Refuse a declaration by which populations become disjoint whose data share somebody."""
    for first, second in combinations(after.entries, 2):
        names = first.population, second.population
        if not after.populations.are_disjoint(*names) or before.populations.are_disjoint(*names):
            continue
        if _share_person(
            read_person_digests(connection, after.path, key, first),
            read_person_digests(connection, after.path, key, second),
        ):
            raise LedgerError(
                f"{after.path}: {first.population!r} and {second.population!r} would be disjoint, "
                f"and somebody is in the data of both (releases {first.number} and "
                f"{second.number}). Nothing was declared."
            )


def read_person_digests(
    connection: sqlite3.Connection, path: Path, key: bytes, entry: LedgerEntry
) -> bytes:
    """Return the digests of a release, checked against its seal; none where none were kept."""
    if entry.ids is None:
        return b""
    with believe(path, f"whom release {entry.number} is about"):
        ((digests,),) = connection.execute(
            "SELECT digests FROM persons WHERE release = ?", (entry.number,)
        )
        if seal_persons(key, digests) != entry.ids:
            raise ValueError("its digests do not match their seal")
    return bytes(digests)


def _share_person(left_digests: bytes, right_digests: bytes) -> bool:
    first, second = (
        np.frombuffer(some, dtype=f"S{ID_BYTES}") for some in (left_digests, right_digests)
    )
    return bool(np.intersect1d(first, second, assume_unique=True).size)
