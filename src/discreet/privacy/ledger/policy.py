"""A ledger's policy: ceilings on what a release may ask for, from public parameters alone.

In: a small TOML file, once, when a ledger is made. Out: a :class:`Policy` that is sealed with the
ledger, and refusals. No rule can depend on an answer: a refusal is visible, and one that came from
the answers would tell something about them. So the number of persons that rules need is declared
in advance, never counted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from discreet.errors import BadUsage, NotAllowed
from discreet.privacy.accounting import Neighbours
from discreet.types import ComparisonMechanism, NamedMechanism

AUTO = "auto"
RELATIONS = tuple(map(str, Neighbours))
MECHANISMS = (*get_args(NamedMechanism), *get_args(ComparisonMechanism))
"""Every name that a rule about mechanisms may have; "auto" is no mechanism."""


@dataclass(frozen=True)
class Asked:
    """What a policy looks at. ``persons`` is the number declared in advance, or None."""

    epsilon: float
    delta: float
    neighbours: str
    mechanism: str
    persons: int | None


@dataclass(frozen=True)
class Policy:
    """Rules that every release of a ledger must keep; what is None is free.

    Attributes
    ----------
    max_epsilon
        The largest epsilon of one release.
    max_delta_share
        The largest delta of one release, as a share of 1 over the declared number of persons: with
        0.01 and 10,000 persons, 1e-6.
    min_persons
        The smallest declared number of persons (or judges).
    relations, mechanisms
        Those that are allowed.
    about
        Who decided this and why, for whoever reads the ledger; no rule.

    Examples
    --------
    >>> policy = Policy(max_epsilon=1.0, max_delta_share=0.01)
    >>> policy.check(Asked(1.0, 1e-3, "replace-one", "pairs", 10_000))
    Traceback (most recent call last):
    ...
    discreet.errors.NotAllowed: the ledger's policy allows a delta of 0.01 / 10,000 persons = ...
    """

    max_epsilon: float | None = None
    max_delta_share: float | None = None
    min_persons: int | None = None
    relations: tuple[str, ...] | None = None
    mechanisms: tuple[str, ...] | None = None
    about: str = ""

    def __post_init__(self) -> None:
        _check_number("max_epsilon", self.max_epsilon)
        _check_number("max_delta_share", self.max_delta_share)
        _check_number("min_persons", self.min_persons, int)
        for name, choices in (("relations", RELATIONS), ("mechanisms", MECHANISMS)):
            object.__setattr__(self, name, _check_names(name, getattr(self, name), choices))
        if not isinstance(self.about, str):
            raise BadUsage(f"about must be text, found {self.about!r}")
        if not self.rules:
            raise BadUsage(f"a policy must have a rule at least; rules are: {', '.join(RULES)}")

    @property
    def rules(self) -> dict[str, Any]:
        """The rules that are not free."""
        return {name: rule for name in RULES if (rule := getattr(self, name)) is not None}

    @property
    def needs_persons(self) -> bool:
        """Whether a release must declare its number of persons."""
        return self.max_delta_share is not None or self.min_persons is not None

    def check(self, terms: Asked) -> None:
        """Refuse what a rule does not allow."""
        if self.max_epsilon is not None and _exact(terms.epsilon) > _exact(self.max_epsilon):
            raise NotAllowed(
                f"the ledger's policy allows an epsilon of {self.max_epsilon:g} per release, found "
                f"{terms.epsilon:g}. Ask for less"
            )
        _check_allowed("relation", terms.neighbours, self.relations)
        _check_allowed("mechanism", terms.mechanism, self.mechanisms)
        if self.needs_persons:
            self._check_persons(terms, self._declared(terms))

    def _declared(self, terms: Asked) -> int:
        if terms.persons is None:
            raise NotAllowed(
                "the ledger's policy needs the number of persons, declared in advance, because no "
                "rule may depend on the data: give --persons (of comparisons --judges), in Python "
                "persons= (judges=). Under add-remove it is used for the policy alone"
            )
        return terms.persons

    def _check_persons(self, terms: Asked, persons: int) -> None:
        if self.min_persons is not None and persons < self.min_persons:
            raise NotAllowed(
                f"the ledger's policy allows releases about {self.min_persons:,} persons or more, "
                f"and {persons:,} were declared"
            )
        share = self.max_delta_share
        if share is not None and _exact(terms.delta) * persons > _exact(share):
            raise NotAllowed(
                f"the ledger's policy allows a delta of {share:g} / {persons:,} persons = "
                f"{share / persons:.4g}, found {terms.delta:g}. Ask for less"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the rules that are not free, and what it is about."""
        return {**self.rules, **({"about": self.about} if self.about else {})}

    def describe(self) -> list[str]:
        """Return a line for each rule."""
        words = {
            "max_epsilon": "epsilon per release at most {:g}",
            "max_delta_share": "delta per release at most {:g} / declared persons",
            "min_persons": "declared persons at least {:,}",
        }
        lists = {name: name + ": {}" for name in ("relations", "mechanisms")}
        return [
            {**words, **lists}[name].format(", ".join(one) if isinstance(one, tuple) else one)
            for name, one in self.rules.items()
        ]


RULES = tuple(field.name for field in fields(Policy) if field.name != "about")


def _exact(number: float) -> Fraction:
    """Return the number as it is written: 1e-6 for 10,000 persons is a share of 0.01, not above."""
    return Fraction(repr(number))


def _check_number(name: str, value: Any, kind: type = float) -> None:
    if value is None:
        return
    is_number = isinstance(value, int) or (kind is float and isinstance(value, float))
    if isinstance(value, bool) or not is_number or not isfinite(value) or value <= 0:
        noun = "a whole number" if kind is int else "a number"
        raise BadUsage(f"{name} must be {noun} above 0, found {value!r}")


def _check_names(name: str, values: Any, choices: Sequence[str]) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise BadUsage(f"{name} must be a list of names, found {values!r}")
    for value in values:
        if value not in choices or value == AUTO:
            names = ", ".join(dict.fromkeys(word for word in choices if word != AUTO))
            raise BadUsage(f"{name} names {value!r}, which is none of: {names}")
    return tuple(values)


def _check_allowed(kind: str, choice: str, allowed: Sequence[str] | None) -> None:
    if allowed is not None and choice not in allowed:
        raise NotAllowed(
            f"the ledger's policy does not allow the {kind} {choice!r}. Allowed: "
            f"{', '.join(allowed)}"
        )


def make_policy(values: Mapping[str, Any]) -> Policy:
    """Return a policy from plain values; what is no rule is refused."""
    rule_names = (*RULES, "about")
    for name in values:
        if name not in rule_names:
            alike = get_close_matches(str(name), rule_names, 1)
            hint = f"did you mean {alike[0]!r}?" if alike else f"there are: {', '.join(rule_names)}"
            raise BadUsage(f"a policy has no rule {name!r}; {hint}")
    return Policy(**values)


def read_policy(source: Policy | Mapping[str, Any] | str | PathLike[str]) -> Policy:
    """Return a policy from a TOML file, or from the same keys and values."""
    if isinstance(source, Policy):
        return source
    if isinstance(source, Mapping):
        return make_policy(source)
    path = Path(source)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or error
        raise BadUsage(f"{path}: the policy cannot be read ({why}).") from None
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{path} is not a TOML file: {error}.") from None
    try:
        return make_policy(values)
    except BadUsage as error:
        raise BadUsage(f"{path}: {error}.") from None
