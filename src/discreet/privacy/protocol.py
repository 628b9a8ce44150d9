"""What the wall and a mechanism say to each other, and what was asked for.

In: what everybody may know (items, cap, number of people), and a budget. Out: the noise that a
mechanism needs, what it spends, and, once the data is counted, values that wait to be drawn. An
order is all of that but the data and the noise, as plain values for the ledger: from it a release
that was paid for and did not arrive can be made without paying again. A mechanism never holds
answers. The mechanisms themselves, with the attacks on them, are in
:mod:`discreet.privacy.mechanisms`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from fractions import Fraction
from math import exp
from typing import Any, Literal, Protocol, get_args

from discreet.answers.protocol import Contributions
from discreet.answers.steps import MOST_STEPS
from discreet.counts.matrix import LARGE_ITEMS
from discreet.errors import BadBudget, BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Guarantee, Neighbours
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.noise import Noise
from discreet.secure import RandomSource
from discreet.types import Chooser, Design, Estimator, Int64Array, ScaleModel


@dataclass(frozen=True)
class Public:
    """What everybody may know before the release; none of it may be learnt from the answers.

    Attributes
    ----------
    items
        The item list, in the order of the release.
    max_answers
        The cap on answers per person.
    neighbours
        The relation that the guarantee is about.
    persons
        How many persons; public under replace-one, ``None`` under add-remove.
    is_fixed
        Whether that number was fixed in advance; otherwise it was counted in the data.
    steps
        Per item, its highest category; 1 for right and wrong, which is what no steps mean.
    forms
        The sets of items of which each person was given one; none where all were given one list.
    design
        Who answered what: everybody everything in a form (``"complete"``), a part that does not
        depend on ability (``"random"``), or a part of which that is not known (``"unknown"``).
    lowest
        The value of the lowest category in the data. It is told, never looked for.
    model
        What is fitted to released values of items with steps.
    """

    items: tuple[str, ...]
    max_answers: int
    neighbours: Neighbours
    persons: int | None
    is_fixed: bool = False
    steps: tuple[int, ...] = ()
    forms: tuple[tuple[str, ...], ...] = ()
    design: Design = "unknown"
    lowest: int = 0
    model: ScaleModel = "partial-credit"

    def __post_init__(self) -> None:
        check_item_list(self.items)
        object.__setattr__(self, "steps", self.steps or (1,) * len(self.items))
        check_steps(self.items, self.steps)
        check_forms(self.items, self.forms)
        _check_choice("design", self.design, get_args(Design))
        _check_choice("model", self.model, get_args(ScaleModel))
        if self.max_answers < 2:
            raise BadBudget(
                f"max_answers must be at least 2, found {self.max_answers}: "
                "one answer alone compares no two items"
            )
        longest = max(map(len, self.forms), default=len(self.items))
        object.__setattr__(self, "max_answers", min(self.max_answers, longest))

    @property
    def has_steps(self) -> bool:
        """Whether some item has more than one step."""
        return any(step > 1 for step in self.steps)


@dataclass(frozen=True)
class ComparedPublic(Public):
    """What everybody may know before a release of comparisons.

    ``max_answers`` is the cap on comparisons per judge, ``persons`` the number of judges. Judges
    may compare more pairs than there are objects, and one comparison already says something.
    """

    def __post_init__(self) -> None:
        check_item_list(self.items)
        object.__setattr__(self, "steps", (1,) * len(self.items))
        if self.max_answers < 1:
            raise BadBudget(
                f"max_comparisons must be at least 1, found {self.max_answers}: without a "
                "comparison there is nothing to release"
            )
        n_pairs = len(self.items) * (len(self.items) - 1) // 2
        object.__setattr__(self, "max_answers", min(self.max_answers, n_pairs))


def check_item_list(items: tuple[str, ...]) -> None:
    """Refuse a list with fewer than two items, or with one of them twice."""
    if len(items) < 2:
        raise BadUsage(
            f"the item list must name at least 2 items, found {len(items)}: "
            "difficulties are relative to each other"
        )
    if len(set(items)) < len(items):
        twice = next(item for item in items if items.count(item) > 1)
        raise BadUsage(f"the item list names {twice!r} more than once; list each item once")


def check_steps(items: tuple[str, ...], steps: tuple[int, ...]) -> None:
    """Refuse numbers of steps that no item has."""
    if len(steps) != len(items):
        raise BadUsage(f"{len(items)} items need {len(items)} numbers of steps, found {len(steps)}")
    for item, step in zip(items, steps, strict=True):
        if not 1 <= step <= MOST_STEPS:
            raise BadUsage(
                f"item {item!r} was said to have {step} steps; it must be from 1 (right and wrong) "
                f"to {MOST_STEPS}"
            )


def check_forms(items: tuple[str, ...], forms: tuple[tuple[str, ...], ...]) -> None:
    """Refuse forms that are no sets of listed items, or of which some item is in none."""
    for form in forms:
        unknown = [item for item in form if item not in items]
        if unknown:
            raise BadUsage(f"a form names {unknown[0]!r}, which is not on the item list")
        if len(form) < 2 or len(set(form)) < len(form):
            raise BadUsage("a form must name at least 2 items, each of them once")
    missed = set(items).difference(*forms) if forms else set()
    if missed:
        raise BadUsage(
            f"{len(missed)} listed items are in no form, for example {min(missed)!r}: every item "
            "must be in one form at least"
        )


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise BadUsage(f"{name} must be one of {', '.join(choices)}, found {value!r}")


def check_pair_matrix_size(public: Public, mechanism: str) -> None:
    """Refuse more items than a mechanism with a matrix of all their pairs can hold.

    The length of the list is public, so the refusal is too; and it comes before the ledger is
    charged.
    """
    if len(public.items) > LARGE_ITEMS:
        raise BadUsage(
            f"the mechanism {mechanism} goes through every pair of items, and the list names "
            f"{len(public.items):,}; the limit is {LARGE_ITEMS:,} items (3.2 GB). Release parts of "
            "the list"
        )


@dataclass(frozen=True)
class NoiseLaw:
    """The distribution of one cell's noise, with its exact parameter.

    ``scale`` is the sigma of the discrete Gaussian or the t of the discrete Laplace.
    """

    family: Literal["gaussian", "laplace"]
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise, for estimators.

        The discrete Gaussian's is below sigma squared by less than 1e-15 of it for sigma >= 2.
        """
        scale = float(self.scale)
        if self.family == "gaussian":
            return scale * scale
        ratio = exp(-1 / scale)
        return 2 * ratio / (1 - ratio) ** 2


@dataclass(frozen=True)
class NoiseCalibration:
    """The noise that a mechanism needs at a budget, and what it spends.

    Attributes
    ----------
    laws
        Noise law of each named array of cells.
    spend
        What enters the ledger.
    settings
        Further public values of the mechanism (a graph, a grid, a flip probability).
    conditions
        Sentences that restrict the guarantee; they go into every artefact.
    """

    laws: Mapping[str, NoiseLaw]
    spend: Spend
    settings: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


PUBLIC: dict[str, type[Public]] = {"answers": Public, "comparisons": ComparedPublic}
"""What everybody may know before a release, by the kind of data."""


@dataclass(frozen=True)
class NoiselessValues:
    """Values that wait for their noise. Confidential until it is drawn.

    Attributes
    ----------
    persons
        How many were counted; the wall compares them with those that it was given.
    shapes
        Of each named array of values; they follow from public parameters alone.
    draw
        Draws the values; called once, after the ledger was charged.
    """

    persons: int
    shapes: Mapping[str, tuple[int, ...]]
    draw: Callable[[Noise], dict[str, Int64Array]]


class Mechanism(Protocol):
    """A way to turn answers into values that may be published, as the wall sees it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:
        """Find the least noise that keeps the budget; public parameters only."""

    def check_answers(self, answers: Any, persons: int | None) -> None:
        """Refuse answers that this mechanism cannot release."""

    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Count what is needed; whatever can go wrong does so here, before the charge."""


def number_people(
    data: Contributions, budget: Budget, people: int | Iterable[object] | None, word: str
) -> int | None:
    """Return the public number of persons or judges: as given in advance, or as in the data.

    ``word`` is how the data calls them, and the attribute with their ids.
    """
    if budget.neighbours is Neighbours.ADD_REMOVE:
        if people is not None:
            raise BadUsage(
                f"{word} are named for replace-one only: under add-remove their number is not "
                f"published. Leave {word} out"
            )
        return None
    if people is None:
        return data.n_persons
    if isinstance(people, Iterable) and not isinstance(people, str):
        return _count_ids(data, [str(one) for one in people], word)
    try:
        return operator.index(people)  # type: ignore[arg-type]
    except TypeError:
        raise BadUsage(
            f"{word} must be a whole number or a list of ids, found {people!r}"
        ) from None


def _count_ids(data: Contributions, ids: Sequence[str], word: str) -> int:
    """Return the length of a public list of ids, of which the data may hold no other."""
    data_ids = getattr(data, word, None)
    if data_ids is None:
        raise BadUsage(
            f"a list of {word} can be compared with answers in memory only, and these are read "
            f"where they are. Give the number of {word}, or engine='memory'"
        )
    if len(set(ids)) < len(ids):
        twice = next(one for one, times in Counter(ids).items() if times > 1)
        raise BadUsage(f"the list of {word} names {twice!r} more than once; list each id once")
    others = sorted(set(map(str, data_ids)).difference(ids))
    if others:
        raise BadResponses(
            f"the data has {len(others):,} {word} that are not on the list, for example "
            f"{others[0]!r}. Add them to the list, or take them out of the data first"
        )
    return len(ids)


NOISE_AWARE: Estimator = "noise-aware"
"""The estimator of every mechanism, unless another was asked for."""


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
        Who chose the mechanism, and why, in words.
    unit
        What is protected; None for one person's whole set of answers.
    about
        What the release says about itself: title, version, what it supersedes; an audit's result.
    chosen_by
        Who chose the mechanism.
    looked
        Whether somebody looked at the answers before the public parameters were set.
    reading
        How the data was stated to be read: keywords of the reader.
    estimator
        How the released values become difficulties; it costs nothing.
    """

    kind: str
    name: str
    mechanism: Mechanism | None
    public: Public
    calibration: NoiseCalibration
    choice: str
    unit: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    chosen_by: Chooser = "steward"
    looked: bool = False
    reading: Mapping[str, Any] = field(default_factory=dict)
    estimator: Estimator = NOISE_AWARE

    def promise(self, *, ledger: str | None, is_private: bool) -> Guarantee:
        """Return what the release promises."""
        guarantee = self.calibration.spend.guarantee(
            ledger=ledger, is_private=is_private, conditions=self.calibration.conditions
        )
        return guarantee if self.unit is None else replace(guarantee, unit=self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the spend is not among them, the ledger has it."""
        mechanism, noise = self.mechanism, self.calibration
        settings: dict[str, Any] = (
            asdict(mechanism) if is_dataclass(mechanism) and not isinstance(mechanism, type) else {}
        )
        return {
            "kind": self.kind,
            "name": self.name,
            "class": type(mechanism).__name__,
            "mechanism": {name: pack_value(value) for name, value in settings.items()},
            "items": list(self.public.items),
            "max_answers": self.public.max_answers,
            "persons": self.public.persons,
            "is_fixed": self.public.is_fixed,
            "steps": list(self.public.steps),
            "forms": [list(form) for form in self.public.forms],
            "design": self.public.design,
            "lowest": self.public.lowest,
            "model": self.public.model,
            "laws": {name: [law.family, str(law.scale)] for name, law in noise.laws.items()},
            "settings": {name: pack_value(value) for name, value in noise.settings.items()},
            "conditions": list(noise.conditions),
            "choice": self.choice,
            "unit": self.unit,
            "about": dict(self.about),
            "chosen_by": self.chosen_by,
            "looked": self.looked,
            "reading": dict(self.reading),
            "estimator": self.estimator,
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
        settings = {
            name: freeze_value(unpack_value(value)) for name, value in values["mechanism"].items()
        }
        public = PUBLIC[values["kind"]](
            items=tuple(values["items"]),
            max_answers=values["max_answers"],
            neighbours=Neighbours(spend.neighbours),
            persons=values["persons"],
            is_fixed=values["is_fixed"],
            steps=tuple(values.get("steps", ())),
            forms=tuple(map(tuple, values.get("forms", ()))),
            design=values.get("design", "unknown"),
            lowest=values.get("lowest", 0),
            model=values.get("model", "partial-credit"),
        )
        calibration = NoiseCalibration(
            laws={
                name: NoiseLaw(family, Fraction(scale))
                for name, (family, scale) in values["laws"].items()
            },
            spend=spend,
            settings={name: unpack_value(value) for name, value in values["settings"].items()},
            conditions=tuple(values["conditions"]),
        )
        return cls(
            kind=values["kind"],
            name=values["name"],
            mechanism=make(values["name"], values["class"], settings),
            public=public,
            calibration=calibration,
            choice=values["choice"],
            unit=values["unit"],
            about=values.get("about", {}),
            chosen_by=values.get("chosen_by", "steward"),
            looked=values.get("looked", False),
            reading=values.get("reading", {}),
            estimator=values.get("estimator", NOISE_AWARE),
        )

    def require_mechanism(self) -> Mechanism:
        """Return the mechanism, or say why it is not there."""
        if self.mechanism is None:
            raise BadUsage(
                f"the mechanism {self.name!r} of this release is not one of the library's, so it "
                "cannot be made again from the ledger alone."
            )
        return self.mechanism


def pack_value(value: Any) -> Any:
    """Return a value as JSON has it; fractions stay exact."""
    return {"fraction": str(value)} if isinstance(value, Fraction) else value


def unpack_value(value: Any) -> Any:
    """Return what `pack_value` was given."""
    return Fraction(value["fraction"]) if isinstance(value, dict) else value


def freeze_value(value: Any) -> Any:
    """Return lists as tuples, which JSON does not have."""
    return tuple(freeze_value(one) for one in value) if isinstance(value, list) else value
