"""One line of a ledger's history: what was charged, when, to which population."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.privacy.accounting import Spend
from discreet.responses.digests import ROWS

__all__ = ["Entry", "read_entry"]


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
