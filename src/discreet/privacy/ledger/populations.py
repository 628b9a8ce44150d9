"""Declared populations of a ledger, and in which of them one person may be at once.

In: what a steward declared, oldest first. Out: which populations can share a person, and the sets
of populations that one person may be in. Whatever is not declared disjoint counts as overlapping,
so forgetting to declare costs budget and never privacy. docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage

EVERYONE = "everyone"

#: Steps after which the search for all sets of populations gives way to a bound.
STEPS = 4096

#: What a declaration may say of other populations.
RELATED = ("contains", "overlaps", "disjoint")

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

    def to_dict(self) -> PlainDict:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: PlainMapping) -> Declaration:
        """Rebuild a declaration from `to_dict`."""
        fields: PlainDict = dict(values)
        return cls(**fields | {name: tuple(fields[name]) for name in RELATED})


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
        meeting = (names for names in map(sorted, self.disjoint) if self._shared(*names))
        for pair in sorted(meeting):
            self._refuse_shared(*pair)
        for first, second in sorted(map(sorted, self.overlaps)):
            if second in self._apart[first]:
                raise BadUsage(
                    f"{first!r} and {second!r} are declared to overlap, and to be (parts of) "
                    f"disjoint populations. Nobody can be in both then. {CORRECTING}"
                )

    def _shared(self, first: str, second: str) -> Names:
        return self._parts[first] & self._parts[second]

    def _refuse_shared(self, first: str, second: str) -> None:
        shared = self._shared(first, second)
        for container, part in ((first, second), (second, first)):
            if part in shared:
                raise BadUsage(
                    f"{container!r} contains {part!r}, and the two are declared disjoint. "
                    f"{CORRECTING}"
                )
        name = min(shared)
        raise BadUsage(
            f"{first!r} and {second!r} are declared disjoint, and both contain {name!r}. Nobody "
            f"could be in {name!r} then. {CORRECTING}"
        )

    @cached_property
    def _within(self) -> dict[str, Names]:
        """Return, for each population, all that contain it, directly or not."""
        above: dict[str, set[str]] = {name: set() for name in self.names}
        for container, part in self.contains:
            above[part].add(container)
        containers = {}
        for name in self.names:
            reached: set[str] = set()
            waiting = [*above[name]]
            while waiting:
                container = waiting.pop()
                if container not in reached:
                    reached.add(container)
                    waiting += above[container]
            containers[name] = frozenset(reached)
        return containers

    @cached_property
    def _parts(self) -> dict[str, Names]:
        """Return, for each population, itself and all that it contains, directly or not."""
        parts = {name: {name} for name in self.names}
        for name in self.names:
            for container in self._within[name]:
                parts[container].add(name)
        return {name: frozenset(found) for name, found in parts.items()}

    @cached_property
    def _apart(self) -> dict[str, Names]:
        """Return, for each population, all that share nobody with it."""
        foes: dict[str, set[str]] = {name: set() for name in self.names}
        for first, second in map(tuple, self.disjoint):
            for part in self._parts[first]:
                foes[part] |= self._parts[second]
            for part in self._parts[second]:
                foes[part] |= self._parts[first]
        return {name: frozenset(found) for name, found in foes.items()}

    def knows(self, name: str) -> bool:
        """Say whether a release may be charged to a population of this name."""
        return name == EVERYONE or name in self._within

    def are_disjoint(self, first: str, second: str) -> bool:
        """Say whether the declarations exclude a person who is in both."""
        return second in self._apart.get(first, ())

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
        cliques = _largest_cliques({one: friends[one] - always for one in friends.keys() - always})
        return None if cliques is None else [one | always for one in cliques]

    def groups_with(self, member: str, names: Iterable[str]) -> list[list[str]]:
        """Put these populations into groups, of each of which a person of ``member`` is in one.

        At most one: those in a group are mutually disjoint.
        """
        groups: list[list[str]] = []
        for name in self._friends(member, names):
            fitting = (group for group in groups if self._apart[name].issuperset(group))
            fitting_group = next(fitting, None)
            if fitting_group is None:
                groups.append([name])
            else:
                fitting_group.append(name)
        return groups

    def _friends(self, member: str, names: Iterable[str]) -> dict[str, Names]:
        """Return, for each population that can share a person with ``member``, all others."""
        neighbours = [name for name in dict.fromkeys(names) if not self.are_disjoint(member, name)]
        every = frozenset(neighbours)
        return {name: every - self._apart[name] - {name} for name in neighbours}


CORRECTING = (
    "Declare one of the two, or take back what was wrong: --correct (in Python correct=True) "
    "replaces what was declared before about the two populations that it names."
)


def check_declaration(declaration: Declaration, populations: Populations) -> None:
    """Refuse names that cannot be, and what is said about populations that nobody declared."""
    if not populations.knows(declaration.name):
        _check_name(declaration.name)
    if EVERYONE in (declaration.name, *declaration.others):
        raise BadUsage(
            f"{EVERYONE!r} contains every population and is disjoint from none; there is nothing "
            f"to declare about it."
        )
    if declaration.name in declaration.others:
        raise BadUsage(f"{declaration.name!r} cannot be declared to be related to itself.")
    missing = [other for other in declaration.others if not populations.knows(other)]
    if missing:
        names = ", ".join(map(repr, populations.names)) or "none"
        raise BadUsage(
            f"the population {missing[0]!r} is not declared (declared: {names}). Declare it first, "
            f"then say how {declaration.name!r} is related to it."
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


def read_declarations(declarations: Iterable[Declaration]) -> Populations:
    """Return the structure that declarations make, oldest first; it must not contradict itself."""
    names: dict[str, None] = {}
    contains: set[tuple[str, str]] = set()
    overlaps: set[Names] = set()
    disjoint: set[Names] = set()
    for declaration in declarations:
        names[declaration.name] = None
        if declaration.corrects:
            for population in declaration.others:
                contains -= {(declaration.name, population), (population, declaration.name)}
                overlaps.discard(frozenset((declaration.name, population)))
                disjoint.discard(frozenset((declaration.name, population)))
        contains |= {(declaration.name, part) for part in declaration.contains}
        overlaps |= {
            frozenset((declaration.name, population)) for population in declaration.overlaps
        }
        disjoint |= {
            frozenset((declaration.name, population)) for population in declaration.disjoint
        }
    facts = frozenset(contains), frozenset(overlaps), frozenset(disjoint)
    populations = Populations(tuple(names), *facts)
    populations.check()
    return populations


def _largest_cliques(friends: Mapping[str, Names]) -> list[Names] | None:
    """Return all largest sets of mutual friends (Bron and Kerbosch), or None after many steps."""
    cliques: list[Names] = []
    waiting: list[tuple[Names, Names, Names]] = [(frozenset(), frozenset(friends), frozenset())]
    for _ in range(STEPS):
        if not waiting:
            return cliques
        taken, may_join, were_tried = waiting.pop()
        if not may_join | were_tried:
            cliques.append(taken)
            continue
        # A set that can grow no more holds this one or somebody who is not its friend.
        best = max(may_join | were_tried, key=lambda member: len(friends[member] & may_join))
        for name in sorted(may_join - friends[best]):
            name_friends = friends[name]
            waiting.append((taken | {name}, may_join & name_friends, were_tried & name_friends))
            may_join, were_tried = may_join - {name}, were_tried | {name}
    return None if waiting else cliques
