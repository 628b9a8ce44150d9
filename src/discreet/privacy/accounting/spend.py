"""Spend: what one release costs, in the form in which a ledger adds it up.

Mechanisms return it; the ledger stores it. Public parameters only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import BadBudget
from discreet.privacy.accounting.belief import tail_probability
from discreet.privacy.accounting.budget import Budget, Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import GaussianBound
from discreet.privacy.accounting.rounding import float_up, round_up

__all__ = ["Spend", "check_promise"]

# Stored fractions keep this many bits, rounded up: a millionth of a millionth too much.
STORED_BITS = 60


def check_promise(delta: float, budget: Budget, what: str) -> None:
    """Refuse noise that does not keep the budget: the last check before noise is drawn."""
    if not delta <= budget.delta:
        raise BadBudget(
            f"{what} gives delta {delta:.6g} at epsilon {budget.epsilon:g}, above the promised "
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
        parts = (
            self.bound.mu_squared,
            self.bound.eta,
            self.bound.exponent,
            self.bound.extra_delta,
        )
        if min(parts) < 0 or (self.rho is not None and self.rho < 0):
            raise BadBudget("a spend cannot be negative: it would give budget back.")
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        object.__setattr__(
            self, "bound", GaussianBound(*(round_up(part, STORED_BITS) for part in parts))
        )
        if self.rho is not None:
            object.__setattr__(self, "rho", round_up(self.rho, STORED_BITS))

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
        self,
        *,
        is_private: bool,
        ledger: str | None = None,
        mechanism: str | None = None,
        conditions: tuple[str, ...] = (),
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
            mechanism=mechanism or self.mechanism,
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
            "mu_squared": str(self.bound.mu_squared),
            "eta": str(self.bound.eta),
            "exponent": str(self.bound.exponent),
            "extra_delta": str(self.bound.extra_delta),
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
            bound=GaussianBound(
                Fraction(values["mu_squared"]),
                Fraction(values["eta"]),
                Fraction(values["exponent"]),
                Fraction(values["extra_delta"]),
            ),
            rho=None if rho is None else Fraction(rho),
            is_average=values.get("is_average", False),
        )
