"""The registry of mechanisms: one line each, and everything else in the module it names.

A mechanism's module holds what it counts, its exact sensitivity with the reference of its proof,
its noise, and the attack on it for the audit
(:class:`discreet.privacy.mechanisms.base.CompleteMechanism`). How released values become
difficulties is in :data:`discreet.models.noisy.released.FITS`, what plans expect of the noise in
:data:`discreet.planning.study.FORECASTS`. The command line's choices, the audit and the documents
are read off ``MECHANISMS``; a release resolves its entry before the ledger is charged. The modules
are loaded when a mechanism is made, so that names and help cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, cast

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.privacy.accounting import Budget
    from discreet.privacy.mechanisms.base import CompleteMechanism
    from discreet.privacy.protocol import Order, Public
    from discreet.secure import RandomSource


@dataclass(frozen=True)
class MechanismEntry:
    """One mechanism.

    Attributes
    ----------
    kind
        The data it releases: ``"answers"`` or ``"comparisons"``; or ``"groups"``, for answers of
        which no difficulties are released.
    home
        Module in this package, and what makes the mechanism with its default settings there.
    help
        What it does, in one sentence.
    """

    kind: str
    home: str
    help: str

    def __call__(self) -> CompleteMechanism:
        """Make the mechanism with its default settings."""
        module, _, maker = self.home.partition(".")
        mechanism: CompleteMechanism = getattr(import_module(f"{__name__}.{module}"), maker)()
        return mechanism


#: Every mechanism by its name.
MECHANISMS: dict[str, MechanismEntry] = {
    "margins": MechanismEntry(
        "answers", "margins.Margins", "Noise on each item's total and on the pairs that disagree."
    ),
    "laplace-margins": MechanismEntry(
        "answers", "margins.laplace_margins", "The same with Laplace noise: delta is 0."
    ),
    "pairs": MechanismEntry("answers", "pairs.DensePairs", "Noise on every pair of items."),
    "sparse-pairs": MechanismEntry(
        "answers", "pairs.SparsePairs", "Noise on the pairs of a random graph."
    ),
    "laplace-pairs": MechanismEntry(
        "answers", "pairs.laplace_pairs", "Laplace noise on every pair of items: delta is 0."
    ),
    "randomized-response": MechanismEntry(
        "answers",
        "response.RandomizedResponse",
        "Every answer is flipped by its own coin; which items were answered is not protected.",
    ),
    "totals": MechanismEntry(
        "answers",
        "totals.Totals",
        "Noise on how often each category was chosen and on how scores spread; items with steps.",
    ),
    "residuals": MechanismEntry(
        "answers",
        "residuals.Residuals",
        "Noise on how items did around rough difficulties, found in a first round or public.",
    ),
    "group-means": MechanismEntry(
        "groups",
        "group_means.GroupScores",
        "Noise on how stated groups did on forms whose difficulties are public.",
    ),
    "net-wins": MechanismEntry(
        "comparisons",
        "comparisons.NetWins",
        "Noise on each object's net wins and on how often two were compared.",
    ),
    "win-pairs": MechanismEntry(
        "comparisons", "comparisons.WinPairs", "Noise on the wins of every pair of objects."
    ),
}

AUTO = "auto"

#: Up to this many items, all of which a person may answer, ``pairs`` is 0 to 8% more accurate than
#: ``margins`` on complete data; from 100 items on it is 3 to 5% less accurate, and with missing
#: answers far less (docs/decisions/0005-margins.md).
AUTO_PAIRS = 60


#: With fewer takers of an item ``residuals`` says no more than others (docs/residuals.md).
AUTO_TAKERS = 500


def mechanisms_for(kind: str) -> dict[str, MechanismEntry]:
    """Return the mechanisms for one kind of data."""
    return {name: entry for name, entry in MECHANISMS.items() if entry.kind == kind}


def check_mechanism(name: str, kind: str = "answers") -> None:
    """Refuse a name that no mechanism for this kind of data has."""
    names = [AUTO, *mechanisms_for(kind)]
    if name not in names:
        noun = "mechanism" if kind == "answers" else f"mechanism for {kind}"
        raise BadUsage(f"there is no {noun} called {name!r}; choose one of: {', '.join(names)}")


def find_mechanism(name: str) -> CompleteMechanism:
    """Return the mechanism of that name, for whatever data, with its default settings."""
    if name not in MECHANISMS:
        names, problem = ", ".join(MECHANISMS), f"there is no mechanism called {name!r}"
        if name == AUTO:
            problem = "'auto' needs public parameters, the list and the cap"
        raise BadUsage(f"{problem}; choose one of: {names}")
    return MECHANISMS[name]()


#: Settings with the typical number of what a person contributes.
TYPICAL = ("answers", "comparisons")


def set_typical(mechanism: CompleteMechanism, typical: float | None) -> CompleteMechanism:
    """Return a mechanism that weights persons by a typical number of answers; None changes none."""
    if typical is None:
        return mechanism
    for name in TYPICAL:
        if is_dataclass(mechanism) and name in {one.name for one in fields(mechanism)}:
            return replace(mechanism, **{name: typical})
    raise BadUsage(
        f"the mechanism {mechanism.name} gives every person the same weight and uses no "
        "typical number of answers; leave that out"
    )


def choose_mechanism(public: Public) -> tuple[CompleteMechanism, str]:
    """Return the mechanism of a release; say who chose it, and why."""
    choice = public.mechanism
    if isinstance(choice, str):
        check_mechanism(choice, public.kind)
    if choice == AUTO:
        return _pick_mechanism(public)
    named = find_mechanism(choice) if isinstance(choice, str) else cast("CompleteMechanism", choice)
    check_steps_taken(named, public)
    if (public.centre or public.groups) and not named.takes_centre:
        raise BadUsage(
            f"the mechanism {named.name} does not use public difficulties or groups; leave centre= "
            "(--centre) and groups= (--dif) out, or take mechanism='residuals' (--mechanism "
            "residuals)"
        )
    return named, describe_choice(replace(public, mechanism=named.name))


def make_order(
    public: Public, budget: Budget, source: RandomSource, about: PlainMapping, *, looked: bool
) -> Order:
    """Settle everything that is public, the number of persons included: mechanism and noise."""
    from discreet.privacy.protocol import Order

    chosen, choice = choose_mechanism(public)
    return Order(
        public=replace(public, mechanism=chosen.name, chosen_by=public.chooser),
        calibration=chosen.calibrate(public, budget, source),
        mechanism=chosen,
        choice=choice,
        about=about,
        looked=looked,
    )


def _pick_mechanism(public: Public) -> tuple[CompleteMechanism, str]:
    if public.kind == "answers":
        return pick_mechanism(public)
    from discreet.privacy.mechanisms.comparisons import pick_comparison_mechanism

    return pick_comparison_mechanism(public)


def describe_choice(public: Public) -> str:
    """Say who chose a mechanism by its name; why is found anew, never read."""
    name = public.mechanism
    if public.chooser == "steward":
        return f"{name}: named by the steward"
    picked, choice = _pick_mechanism(public)
    return choice if picked.name == name else f"auto: {name}, chosen by an earlier version"


def check_steps_taken(mechanism: CompleteMechanism, public: Public) -> None:
    """Refuse a mechanism for right and wrong answers where items have more steps."""
    if public.has_steps and not mechanism.takes_steps:
        raise BadUsage(
            f"the mechanism {mechanism.name} is for right and wrong answers, and some listed items "
            "have more than one step; take mechanism='totals' (--mechanism totals)"
        )


def pick_mechanism(public: Public) -> tuple[CompleteMechanism, str]:
    """Choose the more accurate mechanism for answers from public parameters alone; say why.

    Totals of categories serve where only they do, and for few persons where the design lets them
    do better than ``margins``: with persons who each got another part of the items at random, or
    one of several forms (docs/decisions/0014-totals.md). For more, and wherever the centre is
    public, residuals are more accurate if it is stated who answered what (docs/residuals.md).
    """
    items, cap = len(public.items), public.max_answers
    is_many = public.persons is None or public.persons * cap >= AUTO_TAKERS * items
    if public.has_steps:
        name, why = "totals", "some items have more than one step"
    elif public.centre:
        name, why = "residuals", "difficulties around which to look are public already"
    elif public.groups:
        name, why = "residuals", "groups are compared"
    elif public.design != "unknown" and is_many:
        name, why = "residuals", f"the design is stated as {public.design}"
    elif public.forms and public.design != "unknown":
        name, why = "totals", f"it is public which of {len(public.forms)} forms there are"
    elif public.design == "random" and cap < items:
        name = "totals"
        why = f"a person answers at most {cap} of {items} items, given out at random"
    elif items > AUTO_PAIRS:
        name, why = "margins", f"there are more than {AUTO_PAIRS} items"
    elif cap < items:
        name, why = "margins", f"a person may answer only {cap} of {items} items"
    else:
        name = "pairs"
        why = f"a person may answer all of the {items} items, which are at most {AUTO_PAIRS}"
    return find_mechanism(name), f"auto: {name}, because {why}"


def remake_mechanism(name: str, class_name: str, settings: PlainDict) -> CompleteMechanism | None:
    """Make a mechanism again that a ledger knows; None where it is not one of the registry."""
    own = type(MECHANISMS[name]()) if name in MECHANISMS else None
    return None if own is None or own.__name__ != class_name else own(**settings)
