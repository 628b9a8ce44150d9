"""Whom a ledger is about: declared populations, and in which of them one person may be at once.

In: what a steward declared, oldest first. Out: which populations can share a person, and the sets
of populations that one person may be in. Whatever is not declared disjoint counts as overlapping,
so forgetting to declare costs budget and never privacy. docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from discreet.errors import BadUsage

EVERYONE = "everyone"

STEPS = 4096
"""Steps after which the search for all sets of populations gives way to a bound."""

Names = frozenset[str]


@dataclass(frozen=True)
class Declaration:
    """What a steward said about one population at one time.

    ``corrects`` says that what was declared before about ``name`` and these others was wrong;
    ``after`` is the number of releases in the ledger at that time.
    """

    name: str
    contains: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()
    corrects: bool = False
    after: int = 0
    declared_at: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """Return all populations to which this one is related here."""
        return (*self.contains, *self.overlaps, *self.disjoint)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Declaration:
        """Rebuild a declaration from `to_dict`."""
        return cls(
            name=values["name"],
            contains=tuple(values["contains"]),
            overlaps=tuple(values["overlaps"]),
            disjoint=tuple(values["disjoint"]),
            corrects=values["corrects"],
            after=values["after"],
            declared_at=values["declared_at"],
        )


@dataclass(frozen=True)
class Populations:
    """The declared structure: names in the order of their declaration, and what holds of pairs.

    ``contains`` has pairs (whole, part). "everyone", which contains all, is not among the names.

    Examples
    --------
    >>> north, south = Declaration("north"), Declaration("south", disjoint=("north",))
    >>> known = read_declarations([north, south, Declaration("nation", contains=("north",))])
    >>> sorted(map(sorted, known.sets_with("nation", ["north", "south", "nation"])))
    [['nation', 'north'], ['nation', 'south']]
    """

    names: tuple[str, ...] = ()
    contains: frozenset[tuple[str, str]] = frozenset()
    overlaps: frozenset[Names] = frozenset()
    disjoint: frozenset[Names] = frozenset()

    def check(self) -> None:
        """Refuse a structure that contradicts itself."""
        for name in self.names:
            if name in self._within[name]:
                raise BadUsage(
                    f"{name!r} would contain itself. Populations that contain each other are one "
                    f"and the same: give it one name. {CORRECTING}"
                )
        meeting = (one for one in map(sorted, self.disjoint) if self._shared(*one))
        for pair in sorted(meeting):
            self._refuse_shared(*pair)
        for one, other in sorted(map(sorted, self.overlaps)):
            if other in self._apart[one]:
                raise BadUsage(
                    f"{one!r} and {other!r} are declared to overlap, and to be (parts of) disjoint "
                    f"populations. Nobody can be in both then. {CORRECTING}"
                )

    def _shared(self, one: str, other: str) -> Names:
        return self._parts[one] & self._parts[other]

    def _refuse_shared(self, one: str, other: str) -> None:
        shared = self._shared(one, other)
        for whole, part in ((one, other), (other, one)):
            if part in shared:
                raise BadUsage(
                    f"{whole!r} contains {part!r}, and the two are declared disjoint. {CORRECTING}"
                )
        name = min(shared)
        raise BadUsage(
            f"{one!r} and {other!r} are declared disjoint, and both contain {name!r}. Nobody could "
            f"be in {name!r} then. {CORRECTING}"
        )

    @cached_property
    def _within(self) -> dict[str, Names]:
        """Return, for each population, all that contain it, directly or not."""
        above: dict[str, set[str]] = {name: set() for name in self.names}
        for whole, part in self.contains:
            above[part].add(whole)
        found = {}
        for name in self.names:
            reached: set[str] = set()
            waiting = [*above[name]]
            while waiting:
                whole = waiting.pop()
                if whole not in reached:
                    reached.add(whole)
                    waiting += above[whole]
            found[name] = frozenset(reached)
        return found

    @cached_property
    def _parts(self) -> dict[str, Names]:
        """Return, for each population, itself and all that it contains, directly or not."""
        parts = {name: {name} for name in self.names}
        for name in self.names:
            for whole in self._within[name]:
                parts[whole].add(name)
        return {name: frozenset(found) for name, found in parts.items()}

    @cached_property
    def _apart(self) -> dict[str, Names]:
        """Return, for each population, all that share nobody with it."""
        foes: dict[str, set[str]] = {name: set() for name in self.names}
        for one, other in map(tuple, self.disjoint):
            for part in self._parts[one]:
                foes[part] |= self._parts[other]
            for part in self._parts[other]:
                foes[part] |= self._parts[one]
        return {name: frozenset(found) for name, found in foes.items()}

    def knows(self, name: str) -> bool:
        """Say whether a release may be charged to a population of this name."""
        return name == EVERYONE or name in self._within

    def are_disjoint(self, one: str, other: str) -> bool:
        """Say whether the declarations exclude a person who is in both."""
        return other in self._apart.get(one, ())

    def parts_of(self, name: str) -> list[str]:
        """Return all populations that a population contains, directly or not."""
        return [part for part in self.names if name in {EVERYONE, *self._within[part]}]

    def apart_from(self, name: str) -> list[str]:
        """Return all populations that share nobody with this one."""
        return [other for other in self.names if self.are_disjoint(name, other)]

    def sets_with(self, member: str, names: Iterable[str]) -> list[Names] | None:
        """Return the largest sets of these populations in which a person of ``member`` may be.

        None where finding them all would take long.
        """
        friends = self._friends(member, names)
        always = frozenset(one for one in friends if len(friends[one]) == len(friends) - 1)
        found = _largest_cliques({one: friends[one] - always for one in friends.keys() - always})
        return None if found is None else [one | always for one in found]

    def groups_with(self, member: str, names: Iterable[str]) -> list[list[str]]:
        """Put these populations into groups, of each of which a person of ``member`` is in one.

        At most one: those in a group are mutually disjoint.
        """
        groups: list[list[str]] = []
        for name in self._friends(member, names):
            fitting = (group for group in groups if self._apart[name].issuperset(group))
            place = next(fitting, None)
            if place is None:
                groups.append([name])
            else:
                place.append(name)
        return groups

    def _friends(self, member: str, names: Iterable[str]) -> dict[str, Names]:
        """Return, for each population that can share a person with ``member``, all others."""
        near = [one for one in dict.fromkeys(names) if not self.are_disjoint(member, one)]
        every = frozenset(near)
        return {one: every - self._apart[one] - {one} for one in near}


CORRECTING = (
    "Declare one of the two, or take back what was wrong: --correct (in Python correct=True) "
    "replaces what was declared before about the two populations that it names."
)


def check_declaration(said: Declaration, known: Populations) -> None:
    """Refuse names that cannot be, and what is said about populations that nobody declared."""
    if not known.knows(said.name):
        _check_name(said.name)
    if EVERYONE in (said.name, *said.others):
        raise BadUsage(
            f"{EVERYONE!r} contains every population and is disjoint from none; there is nothing "
            f"to declare about it."
        )
    if said.name in said.others:
        raise BadUsage(f"{said.name!r} cannot be declared to be related to itself.")
    missing = [other for other in said.others if not known.knows(other)]
    if missing:
        names = ", ".join(map(repr, known.names)) or "none"
        raise BadUsage(
            f"the population {missing[0]!r} is not declared (declared: {names}). Declare it first, "
            f"then say how {said.name!r} is related to it."
        )


def list_population_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of populations, each once; one string is no list of them."""
    if isinstance(names, str):
        raise BadUsage(f"populations are given as a list of names, found one string, {names!r}.")
    return tuple(dict.fromkeys(names))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise BadUsage(f"a population needs a name of printable text, found {name!r}.")
    if "," in name or name.startswith("-"):
        raise BadUsage(
            f"the name of a population has no comma, which separates names, and does not begin "
            f"with a hyphen, which begins options; found {name!r}."
        )


def read_declarations(said: Iterable[Declaration]) -> Populations:
    """Return the structure that declarations make, oldest first; it must not contradict itself."""
    names: dict[str, None] = {}
    contains: set[tuple[str, str]] = set()
    overlaps: set[Names] = set()
    disjoint: set[Names] = set()
    for one in said:
        names[one.name] = None
        if one.corrects:
            for other in one.others:
                contains -= {(one.name, other), (other, one.name)}
                overlaps.discard(frozenset((one.name, other)))
                disjoint.discard(frozenset((one.name, other)))
        contains |= {(one.name, part) for part in one.contains}
        overlaps |= {frozenset((one.name, other)) for other in one.overlaps}
        disjoint |= {frozenset((one.name, other)) for other in one.disjoint}
    facts = frozenset(contains), frozenset(overlaps), frozenset(disjoint)
    known = Populations(tuple(names), *facts)
    known.check()
    return known


def _largest_cliques(friends: Mapping[str, Names]) -> list[Names] | None:
    """Return all largest sets of mutual friends (Bron and Kerbosch), or None after many steps."""
    found: list[Names] = []
    waiting: list[tuple[Names, Names, Names]] = [(frozenset(), frozenset(friends), frozenset())]
    for _ in range(STEPS):
        if not waiting:
            return found
        taken, may_join, were_tried = waiting.pop()
        if not may_join | were_tried:
            found.append(taken)
            continue
        # A set that can grow no more holds this one or somebody who is not its friend.
        best = max(may_join | were_tried, key=lambda one: len(friends[one] & may_join))
        for name in sorted(may_join - friends[best]):
            near = friends[name]
            waiting.append((taken | {name}, may_join & near, were_tried & near))
            may_join, were_tried = may_join - {name}, were_tried | {name}
    return None if waiting else found
