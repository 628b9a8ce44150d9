"""What a ledger holds at one moment, and what its limit still allows.

In: entries and the rule by which they add up. Out: what is spent and left, or a refusal. A named
population's persons are in no other named population; "everyone" may be anybody, so its charges
count against every population and theirs against it. Proof: docs/privacy-accounting.md, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from discreet.errors import BudgetExceeded, LedgerError
from discreet.privacy.accounting import Allowance, Budget, Neighbours, Spend
from discreet.privacy.ledger.entries import Entry

__all__ = ["EVERYONE", "History"]

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
