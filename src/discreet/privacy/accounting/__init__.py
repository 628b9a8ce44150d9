"""Privacy accounting: budgets, guarantees and neighbouring relations.

Public parameters in, noise scales and promises out; nothing in this package ever sees an answer or
a count. Every rounding goes to the side that promises less. Proofs: docs/privacy-accounting.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadBudget
from discreet.words import mark

if TYPE_CHECKING:
    from discreet.choices import Relation

UNIT = mark("one person's whole set of answers")
NO_LEDGER = mark(
    "No ledger kept track of this release: other releases about the same persons add to it, "
    "and nothing here counts them."
)
CHARGED = mark("Charged to ledger {ledger}.")
NOISE = mark("exact integer noise from the operating system's secure generator")
SEEDED_NOISE = mark("not private: the noise came from a seeded source, which exists for tests only")

# Below this the tail arithmetic would come near the smallest floats; no release needs it.
SMALLEST_DELTA = 1e-200
#: Below this the noise is a billion times the counts, and ratios of it leave the floats.
SMALLEST_EPSILON = 1e-9


class Neighbours(StrEnum):
    """Which two data sets count as neighbours."""

    REPLACE_ONE = mark("replace-one")
    ADD_REMOVE = mark("add-remove")

    @property
    def steps(self) -> int:
        """How many neighbouring data sets lie between two sets of answers of one person."""
        return 2 if self is Neighbours.ADD_REMOVE else 1


def as_neighbours(value: str) -> Neighbours:
    """Return the relation of that name, or refuse an unknown one."""
    try:
        return Neighbours(value)
    except ValueError:
        choices = ", ".join(repr(str(relation)) for relation in Neighbours)
        raise BadBudget(
            f"neighbours must be one of {choices}, found {value!r}. The relation says which "
            "data sets count as neighbours: replace one person, or add or remove one."
        ) from None


def check_epsilon(epsilon: float, *, name: str = "epsilon") -> float:
    """Return `epsilon` as a float, or refuse it."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        try:
            epsilon = float(epsilon)
        except (TypeError, ValueError):
            raise BadBudget(f"{name} must be a number above 0, found {epsilon!r}.") from None
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BadBudget(
            f"{name} must be a finite number above 0, found {epsilon!r}. At 0 nothing can be "
            f"released and at infinity nothing is protected; values from 0.1 to 5 are usual."
        )
    if epsilon < SMALLEST_EPSILON:
        raise BadBudget(
            f"{name} must be at least {SMALLEST_EPSILON:g}, found {epsilon!r}. Below that a "
            f"release is nothing but noise; values from 0.1 to 5 are usual."
        )
    return float(epsilon)


def _check_delta(delta: float) -> float:
    try:
        number = float(delta)
    except (TypeError, ValueError):
        raise BadBudget(f"delta must be a number from 0 to below 1, found {delta!r}.") from None
    if not 0 <= number < 1 or 0 < number < SMALLEST_DELTA:
        raise BadBudget(
            f"delta must be 0 or lie between {SMALLEST_DELTA:g} and 1 (1 excluded), found "
            f"{delta!r}. Publishing one person's answers with that probability would be allowed; "
            f"choose it well below one divided by the number of persons."
        )
    return number


@dataclass(frozen=True)
class Budget:
    """Privacy budget of a release: epsilon, delta and the neighbouring relation.

    Parameters
    ----------
    epsilon : float
        One person changes the probability of any set of results by a factor of at most e^epsilon;
        finite and above 0.
    delta : float
        And by delta beyond that; in [0, 1). 0 suits pure mechanisms only.
    neighbours : Neighbours or str
        "replace-one" or "add-remove".

    Examples
    --------
    >>> Budget(epsilon=1.0).delta
    1e-06
    """

    epsilon: float
    delta: float = 1e-6
    neighbours: Neighbours = Neighbours.REPLACE_ONE

    if TYPE_CHECKING:  # the relation may be given by its name

        def __init__(
            self, epsilon: float, delta: float = ..., neighbours: Neighbours | Relation = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", _check_delta(self.delta))
        object.__setattr__(self, "neighbours", as_neighbours(self.neighbours))

    def require_delta(self, mechanism: str) -> float:
        """Return delta, or refuse a delta of 0 for a mechanism that cannot be pure."""
        if self.delta == 0:
            raise BadBudget(
                f"delta is 0, but {mechanism} has no pure guarantee: no amount of its noise "
                f"reaches delta 0. Give a delta above 0, for example 1e-6, or choose a pure "
                f"mechanism such as laplace-pairs."
            )
        return self.delta


@dataclass(frozen=True)
class Guarantee:
    """What a release promises, in the words and numbers that go into `privacy.json`.

    `rho` is None where the mechanism has no zero-concentrated guarantee (shuffling); `ledger` is
    the id of the ledger that was charged, or None, and then `ledger_note` says so. `tail` bounds
    the probability that somebody becomes surer of a fact about a person than epsilon allows: 0
    for pure epsilon, None where no bound is known (random graphs, shuffling).

    Examples
    --------
    >>> promise = Guarantee(1.0, 1e-6, 0.02, "replace-one", "pairs")
    >>> promise.summary
    "epsilon 1, delta 1e-06, replace-one; protects one person's whole set of answers"
    """

    epsilon: float
    delta: float
    rho: float | None
    neighbours: Neighbours
    mechanism: str
    unit: str = UNIT
    ledger: str | None = None
    is_private: bool = True
    conditions: tuple[str, ...] = ()
    tail: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", as_neighbours(self.neighbours))
        object.__setattr__(self, "conditions", tuple(self.conditions))

    @property
    def noise(self) -> str:
        """Say where the noise came from."""
        return NOISE if self.is_private else SEEDED_NOISE

    @property
    def ledger_note(self) -> str:
        """Say which ledger was charged, or that none was."""
        return NO_LEDGER if self.ledger is None else CHARGED.format(ledger=self.ledger)

    @property
    def summary(self) -> str:
        """The promise in one line, with what it depends on."""
        if not self.is_private:
            return SEEDED_NOISE
        promise = (
            f"epsilon {self.epsilon:g}, delta {self.delta:g}, {self.neighbours}; "
            f"protects {self.unit}"
        )
        return f"{promise}. {' '.join(self.conditions)}" if self.conditions else promise

    def to_dict(self) -> PlainDict:
        """Return plain values for JSON."""
        plain = asdict(self)
        plain["neighbours"] = str(self.neighbours)
        plain["conditions"] = list(self.conditions)
        return {**plain, "noise": self.noise, "ledger_note": self.ledger_note}

    @classmethod
    def from_dict(cls, values: PlainMapping) -> Guarantee:
        """Rebuild a guarantee from `to_dict`; the sentences are made anew, never believed."""
        derived = {"noise", "ledger_note"}
        try:
            return cls(**{name: value for name, value in values.items() if name not in derived})
        except TypeError as error:
            raise BadBudget(
                f"this is not a guarantee as this version writes it ({error}). Read it with the "
                f"version that wrote it."
            ) from None


def surest_belief(epsilon: float, neighbours: Neighbours) -> float:
    """Return how likely somebody can hold a fact about answers that was as likely as not.

    Without an exception for pure epsilon; otherwise see ``tail_probability``.

    Examples
    --------
    >>> round(surest_belief(1.0, Neighbours.REPLACE_ONE), 2)
    0.73
    >>> round(surest_belief(1.0, Neighbours.ADD_REMOVE), 2)
    0.88
    """
    return 1 / (1 + math.exp(-neighbours.steps * epsilon))


def best_guess(epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """Return the largest probability of guessing right what was as likely as not.

    It holds for every (epsilon, delta) guarantee: (e^epsilon + delta) / (1 + e^epsilon), under
    add-remove with 2 epsilon and (1 + e^epsilon) delta.
    """
    steps = neighbours.steps
    # Divided by e^(steps epsilon), so that nothing overflows.
    shares = delta * sum(math.exp(-step * epsilon) for step in range(1, steps + 1))
    return min(1.0, (1 + shares) / (1 + math.exp(-steps * epsilon)))


def bound_group(epsilon: float, delta: float, members: int) -> tuple[float, float]:
    """Return epsilon and delta of a guarantee for so many persons together, delta rounded up.

    One person after the other is replaced: k epsilon, and delta times the sum of e^(i epsilon) for
    i from 0 to k - 1 (docs/privacy.md, "Groups"). It holds for every (epsilon, delta) guarantee.

    Examples
    --------
    >>> epsilon, delta = bound_group(1.0, 1e-6, 2)
    >>> epsilon, round(delta, 8)
    (2.0, 3.72e-06)
    """
    if not delta:
        return members * epsilon, 0.0
    try:
        total = math.fsum(math.exp(step * epsilon) for step in range(members))
    except OverflowError:
        total = math.inf
    return members * epsilon, min(1.0, delta * total * (1 + 1e-9))
