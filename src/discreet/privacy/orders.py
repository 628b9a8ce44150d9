"""What was asked for: everything about a release but the data and the noise.

In: public parameters, a mechanism, its calibration. Out: plain values for the ledger, from which
a release that was paid for and did not arrive can be made without paying again; and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import BadUsage
from discreet.privacy.accounting.budget import Guarantee, Neighbours
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.protocol import PUBLIC, Calibration, Mechanism, NoiseLaw, Public


@dataclass(frozen=True)
class Order:
    """One release as it was asked for.

    Attributes
    ----------
    kind
        ``"answers"`` or ``"comparisons"``.
    name
        The mechanism's name.
    mechanism
        The mechanism itself; None where it is not one of the library's and was read back.
    public, calibration
        Public parameters, and the noise that they need.
    choice
        Who chose the mechanism, and why.
    unit
        What is protected; None for one person's whole set of answers.
    """

    kind: str
    name: str
    mechanism: Mechanism | None
    public: Public
    calibration: Calibration
    choice: str
    unit: str | None = None

    def promise(self, *, ledger: str | None, is_private: bool) -> Guarantee:
        """Return what the release promises."""
        found = self.calibration.spend.guarantee(
            ledger=ledger, is_private=is_private, conditions=self.calibration.conditions
        )
        return found if self.unit is None else replace(found, unit=self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the spend is not among them, the ledger has it."""
        made, noise = self.mechanism, self.calibration
        settings: dict[str, Any] = (
            asdict(made) if is_dataclass(made) and not isinstance(made, type) else {}
        )
        return {
            "kind": self.kind,
            "name": self.name,
            "class": type(made).__name__,
            "mechanism": {name: _pack(value) for name, value in settings.items()},
            "items": list(self.public.items),
            "max_answers": self.public.max_answers,
            "persons": self.public.persons,
            "is_fixed": self.public.is_fixed,
            "laws": {name: [law.family, str(law.scale)] for name, law in noise.laws.items()},
            "settings": {name: _pack(value) for name, value in noise.settings.items()},
            "conditions": list(noise.conditions),
            "choice": self.choice,
            "unit": self.unit,
        }

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        spend: Spend,
        make: Callable[[str, str, dict[str, Any]], Mechanism | None],
    ) -> Order:
        """Rebuild an order from `to_dict`.

        ``make`` turns a mechanism's name, its class's name and its settings into the mechanism:
        :func:`discreet.privacy.mechanisms.remake_mechanism`.
        """
        given = {name: _freeze(_unpack(value)) for name, value in values["mechanism"].items()}
        public = PUBLIC[values["kind"]](
            items=tuple(values["items"]),
            max_answers=values["max_answers"],
            neighbours=Neighbours(spend.neighbours),
            persons=values["persons"],
            is_fixed=values["is_fixed"],
        )
        calibration = Calibration(
            laws={
                name: NoiseLaw(family, Fraction(scale))
                for name, (family, scale) in values["laws"].items()
            },
            spend=spend,
            settings={name: _unpack(value) for name, value in values["settings"].items()},
            conditions=tuple(values["conditions"]),
        )
        return cls(
            kind=values["kind"],
            name=values["name"],
            mechanism=make(values["name"], values["class"], given),
            public=public,
            calibration=calibration,
            choice=values["choice"],
            unit=values["unit"],
        )

    def require_mechanism(self) -> Mechanism:
        """Return the mechanism, or say why it is not there."""
        if self.mechanism is None:
            raise BadUsage(
                f"the mechanism {self.name!r} of this release is not one of the library's, so it "
                "cannot be made again from the ledger alone."
            )
        return self.mechanism


def _pack(value: Any) -> Any:
    return {"fraction": str(value)} if isinstance(value, Fraction) else value


def _unpack(value: Any) -> Any:
    return Fraction(value["fraction"]) if isinstance(value, dict) else value


def _freeze(value: Any) -> Any:
    return tuple(_freeze(one) for one in value) if isinstance(value, list) else value
