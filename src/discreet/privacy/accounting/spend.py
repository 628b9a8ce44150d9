"""Spend: what one release costs, and whether one more may follow those that were made.

Mechanisms return spends, a ledger stores them and adds them up by one rule, fixed when it is
created. Each rule is a filter: a set of caps fixed in advance, so it stays valid when later
releases, and how much they spend, are chosen after looking at earlier ones. Public parameters only.
Proofs: docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from fractions import Fraction
from functools import cached_property
from operator import le
from typing import Any, Protocol

from discreet.errors import BadBudget
from discreet.privacy.accounting import Budget, Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import (
    GaussianBound,
    float_down,
    float_up,
    largest_mu,
    round_up,
    tail_probability,
)

# Stored fractions keep this many bits, rounded up: a millionth of a millionth too much.
STORED_BITS = 60


def check_promise(delta: float, budget: Budget, subject: str) -> None:
    """Refuse noise that does not keep the budget: the last check before noise is drawn."""
    if not delta <= budget.delta:
        raise BadBudget(
            f"{subject} gives delta {delta:.6g} at epsilon {budget.epsilon:g}, above the promised "
            f"{budget.delta:.6g}. A release with it would break its own guarantee; calibrate the "
            f"noise for this budget."
        )


@dataclass(frozen=True)
class Spend:
    """What a release costs.

    Parameters
    ----------
    mechanism : str
        Its name.
    neighbours : Neighbours
        The relation that the numbers are for.
    epsilon, delta : float
        The guarantee of this release alone. A first release is judged by it.
    bound : GaussianBound
        The Gaussian curve that dominates it; composition adds these. Rounded up when made.
    rho : Fraction or None
        Zero-concentrated guarantee, where there is one. Rounded up when made.
    is_average : bool
        Whether the release keeps delta on an average that lies below `bound` (random graphs,
        shuffled rows), so that `bound` says little about this release alone.
    """

    mechanism: str
    neighbours: Neighbours
    epsilon: float
    delta: float
    bound: GaussianBound
    rho: Fraction | None = None
    is_average: bool = False

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta, self.neighbours)  # refuses what means nothing
        parts = astuple(self.bound)
        if min(parts) < 0 or (self.rho is not None and self.rho < 0):
            raise BadBudget("a spend cannot be negative: it would give budget back.")
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        object.__setattr__(
            self, "bound", GaussianBound(*(round_up(part, STORED_BITS) for part in parts))
        )
        if self.rho is not None:
            object.__setattr__(self, "rho", round_up(self.rho, STORED_BITS))

    @classmethod
    def of(
        cls,
        budget: Budget,
        mechanism: str,
        bound: GaussianBound,
        rho: Fraction | None = None,
        *,
        is_average: bool = False,
    ) -> Spend:
        """Return the spend of a release that uses up its budget."""
        return cls(
            mechanism, budget.neighbours, budget.epsilon, budget.delta, bound, rho, is_average
        )

    @property
    def is_pure(self) -> bool:
        """Say whether the guarantee has delta 0."""
        return self.delta == 0

    @property
    def tail(self) -> float | None:
        """Return the probability of becoming surer of a fact than epsilon allows, if known."""
        if self.is_average:
            return None
        return 0.0 if self.is_pure else tail_probability(self.bound, self.epsilon, self.neighbours)

    def guarantee(
        self, *, is_private: bool, ledger: str | None = None, conditions: tuple[str, ...] = ()
    ) -> Guarantee:
        """Return the promise that goes with this spend.

        `is_private` is the noise source's own word (False for a seeded one); `ledger` the id of
        the ledger that was charged.
        """
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=None if self.rho is None else float_up(self.rho),
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            ledger=ledger,
            is_private=is_private,
            conditions=conditions,
            tail=self.tail,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; fractions as text, exact."""
        return {
            "mechanism": self.mechanism,
            "neighbours": str(self.neighbours),
            "epsilon": self.epsilon,
            "delta": self.delta,
            **{part: str(number) for part, number in asdict(self.bound).items()},
            "rho": None if self.rho is None else str(self.rho),
            "is_average": self.is_average,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spend:
        """Rebuild a spend from `to_dict`."""
        rho = values["rho"]
        return cls(
            mechanism=values["mechanism"],
            neighbours=Neighbours(values["neighbours"]),
            epsilon=values["epsilon"],
            delta=values["delta"],
            bound=GaussianBound(*(Fraction(values[part.name]) for part in fields(GaussianBound))),
            rho=None if rho is None else Fraction(rho),
            is_average=values.get("is_average", False),
        )


# Room for the tiny eta and exponent of discrete noise: thousands of releases fit, and the limit
# on mu shrinks by about a hundred-millionth for it.
SLACK = Fraction(1, 10**8)
# Part of the limit's delta kept for graphs that touch more of a person's pairs than expected
# (a ten-thousandth of a release's delta each); the limit on mu shrinks by less than 0.01% for it.
SPARE = Fraction(1, 1000)


class Allowance(Protocol):
    """The caps of one rule."""

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the totals that have caps; each of them is a sum over the spends."""

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far, at the limit's delta."""

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that one more release at the limit's delta may have, or 0."""


def _fits_alone(limit: Budget, spends: Sequence[Spend], new: Spend) -> bool:
    """Say whether `new` is the first release and keeps the limit by its own guarantee.

    Nothing was released before it, so choosing this way of counting reveals nothing.
    """
    return not spends and new.epsilon <= limit.epsilon and new.delta <= limit.delta


def _single_epsilon(limit: Budget, spends: Sequence[Spend]) -> float:
    """Return a single release's own epsilon where it holds at the limit's delta."""
    if len(spends) == 1 and spends[0].delta <= limit.delta:
        return spends[0].epsilon
    return math.inf


def _total(spends: Sequence[Spend]) -> GaussianBound:
    return sum((spend.bound for spend in spends), GaussianBound(Fraction(0)))


@dataclass(frozen=True)
class GaussianAllowance:
    """The default rule: Gaussian curves add, within caps on each of their four numbers.

    Parameters
    ----------
    limit : Budget
        What all releases together may spend.
    set_aside : float
        The part of the limit's delta kept for releases that add a delta of their own
        (shuffled ones); fixed in advance, 0 unless the steward plans for such releases.
    """

    limit: Budget
    set_aside: float = 0.0

    def __post_init__(self) -> None:
        self.limit.require_delta("a ledger with the Gaussian rule")
        if not 0 <= self.set_aside < self.limit.delta:
            raise BadBudget(
                f"the delta set aside must be at least 0 and below the limit's "
                f"{self.limit.delta:g}, found {self.set_aside!r}."
            )

    @cached_property
    def cap(self) -> GaussianBound:
        """Return the caps: with all of them reached, the limit just holds."""
        eta = SLACK * min(Fraction(1), Fraction(self.limit.epsilon))
        epsilon = float_down(Fraction(self.limit.epsilon) - eta)
        left = Fraction(self.limit.delta) - Fraction(self.set_aside)
        mu = largest_mu(epsilon, float_down(left * (1 - SPARE) * (1 - 2 * SLACK)))
        extra = Fraction(self.set_aside) + left * SPARE
        return GaussianBound(Fraction(mu) ** 2, eta, SLACK, extra)

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the four numbers of the Gaussian curve of all spends together."""
        return astuple(_total(spends))

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""
        return _fits_alone(self.limit, spends, new) or self._within(_total([*spends, new]))

    def _within(self, total: GaussianBound) -> bool:
        return all(map(le, astuple(total), astuple(self.cap)))

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far, at the limit's delta."""
        if not spends:
            return 0.0
        composed = _total(spends).epsilon(self.limit.delta)
        return min(composed, _single_epsilon(self.limit, spends))

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that a Gaussian release at the limit's delta may still have.

        Rounded down to what any calibration can use: a thousandth of mu^2 is kept back.
        """
        if not spends:
            return self.limit.epsilon
        total = _total(spends)
        room = (self.cap.mu_squared - total.mu_squared) * Fraction(999, 1000)
        if room <= 0 or not self._within(total):
            return 0.0
        return min(self.limit.epsilon, GaussianBound(room).epsilon(self.limit.delta))


@dataclass(frozen=True)
class BasicAllowance:
    """The plain rule: epsilons add, deltas add. Better for a few pure releases."""

    limit: Budget

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the sums of the epsilons and of the deltas."""
        epsilon = sum((Fraction(spend.epsilon) for spend in spends), Fraction(0))
        return epsilon, sum((Fraction(spend.delta) for spend in spends), Fraction(0))

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""
        epsilon, delta = self.weigh([*spends, new])
        return epsilon <= Fraction(self.limit.epsilon) and delta <= Fraction(self.limit.delta)

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far."""
        return float_up(self.weigh(spends)[0])

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that is left."""
        return max(0.0, self.limit.epsilon - self.spent(spends))


def compose_guarantees(first: Guarantee | None, second: Guarantee | None) -> Guarantee | None:
    """Return what holds for numbers that come from two releases together, or None for nothing.

    Basic composition: epsilons add, deltas add, for a person who is in both. There is no promise
    where one side is no release, and none known where the two protect different things.
    """
    if first is None or second is None:
        return None
    if (first.neighbours, first.unit) != (second.neighbours, second.unit):
        return None
    rhos = (first.rho, second.rho)
    return Guarantee(
        epsilon=_add_up(first.epsilon, second.epsilon),
        delta=_add_up(first.delta, second.delta),
        rho=None if rhos[0] is None or rhos[1] is None else _add_up(rhos[0], rhos[1]),
        neighbours=first.neighbours,
        mechanism=" and ".join(dict.fromkeys((first.mechanism, second.mechanism))),
        unit=first.unit,
        ledger=first.ledger if first.ledger == second.ledger else None,
        is_private=first.is_private and second.is_private,
        conditions=tuple(dict.fromkeys(first.conditions + second.conditions)),
    )


def _add_up(first: float, second: float) -> float:
    return float_up(Fraction(first) + Fraction(second))
