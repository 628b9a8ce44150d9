"""What a ledger holds at one moment: its entries, what they spent, what its limit still allows.

In: entries and the rule by which they add up. Out: what is spent and left, or a refusal. A named
population's persons are in no other named population; "everyone" may be anybody, so its charges
count against every population and theirs against it. docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.answers.select import ROWS
from discreet.errors import BudgetExceeded, LedgerError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import Allowance, Spend


@dataclass(frozen=True)
class Entry:
    """One line of the history.

    ``stored_at`` says when the noisy values were safe on disk, ``completed_at`` when the release
    was finished. ``order`` is what was asked for, from which a release that was paid for can be
    made; None in entries of schema 1.
    """

    number: int
    reservation: str
    population: str
    description: str
    spend: Spend
    reserved_at: str
    completed_at: str | None
    fingerprint: str = field(repr=False)  # for the steward's ledger only, never printed
    recognised_by: str = ROWS
    stored_at: str | None = None
    order: Mapping[str, Any] | None = field(default=None, repr=False)

    def is_about(self, fingerprint: str, former: str | None) -> bool:
        """Say whether this entry has the same answers, by the rule of its own time.

        ``former`` is the fingerprint of those answers by the rule of schema 1.
        """
        return self.fingerprint == (former if self.recognised_by == ROWS else fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `discreet ledger show --json`."""
        return {
            "number": self.number,
            "population": self.population,
            "description": self.description,
            "mechanism": self.spend.mechanism,
            "epsilon": self.spend.epsilon,
            "delta": self.spend.delta,
            "rho": None if self.spend.rho is None else float(self.spend.rho),
            "neighbours": str(self.spend.neighbours),
            "reserved_at": self.reserved_at,
            "completed_at": self.completed_at,
        }


def read_entry(
    number: int, values: dict[str, Any], stored_at: str | None, completed_at: str | None
) -> Entry:
    """Rebuild an entry from its stored values; those of schema 1 hold fewer."""
    return Entry(
        number=number,
        reservation=values["reservation"],
        population=values["population"],
        description=values["description"],
        spend=Spend.from_dict(values["spend"]),
        reserved_at=values["reserved_at"],
        completed_at=completed_at,
        fingerprint=values["fingerprint"],
        recognised_by=values.get("recognised_by", ROWS),
        stored_at=stored_at,
        order=values.get("order"),
    )


EVERYONE = "everyone"


@dataclass(frozen=True)
class History:
    """The entries of a ledger, oldest first, all read at one moment."""

    path: Path
    entries: tuple[Entry, ...]
    limit: Budget
    allowance: Allowance
    neighbours: Neighbours | None

    @property
    def populations(self) -> tuple[str, ...]:
        """Return "everyone" and the named populations, in the order of their first charge."""
        return tuple(dict.fromkeys([EVERYONE, *(entry.population for entry in self.entries)]))

    def spent(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the most (epsilon, delta) that was spent on one person of a population."""
        epsilon = max(self.allowance.spent(spends) for spends in self._charges(population))
        return epsilon, self.limit.delta if epsilon else 0.0

    def left(self, population: str = EVERYONE) -> tuple[float, float]:
        """Return the (epsilon, delta) that one more release of a population may have."""
        epsilon = min(self.allowance.left(spends) for spends in self._charges(population))
        return epsilon, self.limit.delta if epsilon else 0.0

    def check(self, spend: Spend, fingerprint: str, former: str | None, population: str) -> None:
        """Refuse a release that this ledger cannot be charged with."""
        self._check_relation(spend)
        self._check_disjoint(fingerprint, former, population)
        self._check_room(spend, population)

    def _charges(self, population: str) -> list[list[Spend]]:
        """Return, for each kind of person in a population, all spends on such a person."""
        # Somebody in "everyone" may be in any one named population, or in none of them.
        kinds = self.populations if population == EVERYONE else (population,)
        return [
            [entry.spend for entry in self.entries if entry.population in (EVERYONE, kind)]
            for kind in kinds
        ]

    def _check_relation(self, spend: Spend) -> None:
        first = self.entries[0].spend if self.entries else spend
        fixed = self.neighbours or first.neighbours
        if spend.neighbours is not fixed:
            raise LedgerError(
                f"{self.path}: this ledger counts under {fixed}, the release is calibrated under "
                f"{spend.neighbours}. The two do not add; release under {fixed} or make another "
                f"ledger for another population."
            )

    def _check_disjoint(self, fingerprint: str, former: str | None, population: str) -> None:
        for entry in self.entries:
            if {population, entry.population} & {EVERYONE} or population == entry.population:
                continue  # the charges add, whoever the persons are
            if entry.is_about(fingerprint, former):
                raise LedgerError(
                    f"{self.path}: these very answers were already charged to population "
                    f"{entry.population!r}, so their persons are not disjoint from it as "
                    f"{population!r} would declare. Charge them to {entry.population!r}."
                )

    def _check_room(self, spend: Spend, population: str) -> None:
        if all(self.allowance.accepts(spends, spend) for spends in self._charges(population)):
            return
        raise BudgetExceeded(
            f"{self.path}: the release asks for epsilon {spend.epsilon:g} with delta "
            f"{spend.delta:g}. The limit is epsilon {self.limit.epsilon:g} with delta "
            f"{self.limit.delta:g}; releases that may be about the same persons have spent epsilon "
            f"{self.spent(population)[0]:.4g} ({EVERYONE!r} counts against every population, and "
            f"every population against {EVERYONE!r}), and epsilon {self.left(population)[0]:.4g} "
            f"is left for one more Gaussian release. Nothing was charged; ask for less."
        )
