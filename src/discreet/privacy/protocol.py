"""Interface between the wall and a mechanism, and the public parameters of a release.

In: what everybody may know (items, cap, number of people), and a budget. Out: the noise that a
mechanism needs, what it spends, and, once the data is counted, values that wait to be drawn. An
order is all of that but the data and the noise, as plain values for the ledger: from it a release
that was paid for and did not arrive can be made without paying again. A mechanism never holds
answers. The mechanisms themselves, with the attacks on them, are in
:mod:`discreet.privacy.mechanisms`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from fractions import Fraction
from math import exp
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

from discreet.answers.protocol import Contributions
from discreet.choices import Chooser, Design, Estimator, PlainDict, PlainMapping, ScaleModel
from discreet.counts.matrix import LARGE_ITEMS
from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadBudget, BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Guarantee, Neighbours
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.noise import Noise
from discreet.secure import RandomSource
from discreet.types import Int64Array
from discreet.words import KINDS, VOTE_UNIT

#: The estimator of every mechanism, unless another was asked for.
NOISE_AWARE: Estimator = "noise-aware"


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
    mechanism
        Its name, ``"auto"``, or a mechanism with settings of its own.
    estimator
        How the released values become difficulties; it costs nothing.
    chosen_by
        Who chose the mechanism; None where its name says so.
    centre
        Difficulties that were public before, in 1 / 1024 logits, for mechanisms that look at
        answers around them; none where the release finds its own.
    centre_from
        What that centre is, in words.
    group_column, groups
        The column that says of which group a person is, and the groups that are compared, the
        reference first; none where groups are not.
    roster
        The ids of all who may be in the data, where they were listed in advance. It is compared
        with the data and goes no further.
    """

    kind: ClassVar[str] = "answers"

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
    mechanism: str | Mechanism = "auto"
    estimator: Estimator = NOISE_AWARE
    chosen_by: Chooser | None = None
    centre: tuple[int, ...] = ()
    centre_from: str = ""
    group_column: str = ""
    groups: tuple[str, ...] = ()
    roster: tuple[str, ...] = field(default=(), repr=False)

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

    @property
    def chooser(self) -> Chooser:
        """Who chose the mechanism."""
        return self.chosen_by or ("auto" if self.mechanism == "auto" else "steward")

    def to_dict(self) -> PlainDict:
        """Return plain values of what is public about the data, as archives and ledgers hold it."""
        plain = {name: getattr(self, name) for name in DATA_FIELDS}
        return {
            **plain,
            "neighbours": str(self.neighbours),
            "items": list(self.items),
            "steps": list(self.steps),
            "forms": [list(form) for form in self.forms],
            "centre": list(self.centre),
            "groups": list(self.groups),
        }

    @classmethod
    def from_dict(cls, values: PlainMapping, **more: object) -> Self:
        """Rebuild public parameters from `to_dict`."""
        plain = {name: freeze_value(values[name]) for name in DATA_FIELDS}
        return cls(**{**plain, "neighbours": Neighbours(values["neighbours"]), **more})


#: What is public about the data itself; mechanism and estimator are written elsewhere.
DATA_FIELDS = (
    *("items", "max_answers", "neighbours", "persons", "is_fixed"),
    *("steps", "forms", "design", "lowest", "model"),
    *("centre", "centre_from", "group_column", "groups"),
)


#: What a record says about the items and who answered them.
ABOUT_ITEMS = (
    *("steps", "lowest", "forms", "design"),
    *("centre", "centre_from", "group_column", "groups"),
)


@dataclass(frozen=True)
class ComparedPublic(Public):
    """What everybody may know before a release of comparisons.

    ``max_answers`` is the cap on comparisons per judge, ``persons`` the number of judges. Judges
    may compare more pairs than there are objects, and one comparison already says something.
    """

    kind: ClassVar[str] = "comparisons"

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
    settings: PlainMapping = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


#: What everybody may know before a release, by the kind of data.
PUBLIC: dict[str, type[Public]] = {"answers": Public, "comparisons": ComparedPublic}


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


def settle_persons(data: Contributions, public: Public) -> Public:
    """Return public parameters with the number that is published: as stated, or as in the data.

    Under add-remove the number is not published.
    """
    if public.neighbours is Neighbours.ADD_REMOVE:
        return replace(public, persons=None, is_fixed=False, roster=())
    if public.roster:
        _check_ids(data, public.roster, KINDS[public.kind].persons)
    persons = data.n_persons if public.persons is None else public.persons
    return replace(public, persons=persons, roster=())


def _check_ids(data: Contributions, ids: Sequence[str], word: str) -> None:
    """Refuse data with persons who are not on a public list of ids.

    ``word`` is how the data calls persons, and the attribute with their ids.
    """
    data_ids = getattr(data, word, None)
    if data_ids is None:
        raise BadUsage(
            f"a list of {word} needs answers in memory, and these stay in their files or database. "
            f"Give the number of {word}, or engine='memory'"
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


@dataclass(frozen=True)
class Order:
    """One release as it was asked for.

    Attributes
    ----------
    public, calibration
        Public parameters with the mechanism's name, and the noise that they need.
    mechanism
        The mechanism itself; None where it is not one of the library's and was read back.
    choice
        Who chose the mechanism, and why, in words.
    about
        What the release says about itself: title, version, what it supersedes; an audit's result.
    looked
        Whether somebody looked at the answers before the public parameters were set.
    """

    public: Public
    calibration: NoiseCalibration
    mechanism: Mechanism | None
    choice: str
    about: PlainMapping = field(default_factory=dict)
    looked: bool = False

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return str(self.public.mechanism)

    def promise(self, *, ledger: str | None, is_private: bool) -> Guarantee:
        """Return what the release promises."""
        guarantee = self.calibration.spend.guarantee(
            ledger=ledger, is_private=is_private, conditions=self.calibration.conditions
        )
        return guarantee if self.unit is None else replace(guarantee, unit=self.unit)

    @property
    def unit(self) -> str | None:
        """What is protected; None for one person's whole set of answers."""
        is_vote = self.about.get("person_is") == "vote"
        return VOTE_UNIT if is_vote else KINDS[self.public.kind].unit

    def describe(self, guarantee: Guarantee) -> PlainDict:
        """Return the public facts of the release that are known before its noise is drawn."""
        public, kind = self.public, KINDS[self.public.kind]
        settings = self.calibration.settings.items()
        plain = public.to_dict()
        about_items = {name: plain[name] for name in ABOUT_ITEMS}
        model = public.model if public.has_steps else "rasch"
        return {
            "kind": public.kind,
            "mechanism": self.name,
            "choice": self.choice,
            "chosen_by": public.chooser,
            "looked": self.looked,
            "guarantee": guarantee.to_dict(),
            "settings": {n: str(v) if isinstance(v, Fraction) else v for n, v in settings},
            "items": plain["items"],
            kind.cap: public.max_answers,
            kind.persons: public.persons,
            "number_fixed": public.is_fixed,
            **({**about_items, "model": model} if public.kind == "answers" else {}),
        }

    def to_dict(self) -> PlainDict:
        """Return plain values; the spend is not among them, the ledger has it."""
        mechanism, noise = self.mechanism, self.calibration
        is_plain = is_dataclass(mechanism) and not isinstance(mechanism, type)
        settings: PlainDict = asdict(mechanism) if is_plain else {}  # type: ignore[call-overload]
        public = self.public.to_dict()
        del public["neighbours"]
        return {
            "kind": self.public.kind,
            "name": self.name,
            "class": type(mechanism).__name__,
            "mechanism": pack_values(settings),
            **public,
            "laws": pack_laws(noise.laws),
            "settings": pack_values(noise.settings),
            "conditions": list(noise.conditions),
            "choice": self.choice,
            "unit": self.unit,
            "about": dict(self.about),
            "chosen_by": self.public.chooser,
            "looked": self.looked,
            "estimator": self.public.estimator,
        }

    @classmethod
    def from_dict(
        cls,
        values: PlainMapping,
        spend: Spend,
        make: Callable[[str, str, PlainDict], Mechanism | None],
    ) -> Order:
        """Rebuild an order from `to_dict`.

        ``make`` turns a mechanism's name, its class's name and its settings into the mechanism:
        :func:`discreet.privacy.mechanisms.remake_mechanism`.
        """
        settings = unpack_values(values["mechanism"])
        settings = {name: freeze_value(value) for name, value in settings.items()}
        public = PUBLIC[values["kind"]].from_dict(
            {**values, "neighbours": spend.neighbours},
            mechanism=values["name"],
            estimator=values["estimator"],
            chosen_by=values["chosen_by"],
        )
        laws, conditions = unpack_laws(values["laws"]), tuple(values["conditions"])
        calibration = NoiseCalibration(laws, spend, unpack_values(values["settings"]), conditions)
        mechanism = make(values["name"], values["class"], settings)
        more = (values[name] for name in ("choice", "about", "looked"))
        return cls(public, calibration, mechanism, *more)

    def require_mechanism(self) -> Mechanism:
        """Return the mechanism, or say why it is not there."""
        if self.mechanism is None:
            raise BadUsage(
                f"the mechanism {self.name!r} of this release is not one of the library's, so it "
                "cannot be made again from the ledger alone."
            )
        return self.mechanism


def pack_values(values: PlainMapping) -> PlainDict:
    """Return values as JSON has them; fractions stay exact."""
    return {
        name: {"fraction": str(value)} if isinstance(value, Fraction) else value
        for name, value in values.items()
    }


def unpack_values(packed: PlainMapping) -> PlainDict:
    """Return what `pack_values` was given."""
    return {
        name: Fraction(value["fraction"]) if isinstance(value, dict) else value
        for name, value in packed.items()
    }


def pack_laws(laws: Mapping[str, NoiseLaw]) -> dict[str, list[str]]:
    """Return family and exact scale of each law, as JSON has them."""
    return {name: [law.family, str(law.scale)] for name, law in laws.items()}


def unpack_laws(packed: PlainMapping) -> dict[str, NoiseLaw]:
    """Return what `pack_laws` was given."""
    return {name: NoiseLaw(family, Fraction(scale)) for name, (family, scale) in packed.items()}


def freeze_value(value: object) -> Any:
    """Return lists as tuples, which JSON does not have."""
    return tuple(freeze_value(one) for one in value) if isinstance(value, list) else value
