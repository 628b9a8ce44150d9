"""The specification of a release: everything that is settled before anybody looks at the data.

In: public parameters as they were asked for: items, steps, forms, budget, mechanism, and how the
file will be read. Out: the same as :class:`Public` once the number of persons is known, or a
refusal by the ledger's policy. Nothing here opens a file of answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import index
from typing import Any, SupportsIndex, cast, get_args

from discreet.answers.judges import Comparisons
from discreet.answers.opening import opened
from discreet.answers.protocol import Contributions
from discreet.answers.read_judges import open_comparisons, read_comparisons
from discreet.answers.responses import Responses
from discreet.answers.sample import RAKED, refuse_weights
from discreet.errors import BadResponses, BadUsage, NotAllowed
from discreet.models.noisy.released import check_estimator
from discreet.names import name_id
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.policy import Asked
from discreet.privacy.ledger.request import Request, pack, unpack
from discreet.privacy.mechanisms import AUTO, MECHANISMS, check_mechanism, choose_mechanism
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.protocol import NOISE_AWARE, PUBLIC, Public
from discreet.tables.columns import refuse_misspelt
from discreet.tables.key import Key, make_key
from discreet.tables.reading import READING_DEFAULTS, ListedWords, Reading
from discreet.tables.remedies import refuse_detected
from discreet.tables.scales import list_scale
from discreet.types import MODELS, Chooser, Design, Estimator, ScaleModel


@dataclass(frozen=True)
class ReleaseSpec:
    """What shall be released: everything that is public but the number of persons in the data.

    Attributes
    ----------
    kind
        ``"answers"`` or ``"comparisons"``.
    budget
        Epsilon, delta and the neighbouring relation.
    listing
        What is public about the items.
    cap
        Answers (or comparisons) per person at most; None for as many as there are items.
    people
        The number of persons fixed in advance, or their ids; None where nobody said.
    mechanism
        A name, or a mechanism with settings of its own.
    expected
        The number declared for the ledger's policy alone, where it is not to be published.
    chosen_by
        Who chose the mechanism, where a request names it; None where it is chosen here.
    estimator
        How the released values become difficulties.
    """

    kind: str
    budget: Budget
    listing: Listing
    cap: int | None
    people: int | Iterable[object] | None
    mechanism: str | CompleteMechanism
    expected: int | None = None
    chosen_by: Chooser | None = None
    estimator: Estimator = NOISE_AWARE

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise BadUsage(
                f"a release needs a budget, such as Budget(epsilon=1.0), found {self.budget!r}"
            )
        if isinstance(self.mechanism, str):
            check_mechanism(self.mechanism, self.kind)
        if isinstance(self.people, Iterable) and not isinstance(self.people, str):
            object.__setattr__(self, "people", list(self.people))  # it is gone through twice
        if self.estimator != NOISE_AWARE:
            public = self.make_public(self.declared)
            chosen, _ = choose_mechanism(self.mechanism, public, self.kind)
            check_estimator(chosen.name, self.estimator)

    @property
    def chooser(self) -> Chooser:
        """Who chose the mechanism."""
        return self.chosen_by or ("auto" if self.mechanism == AUTO else "steward")

    @property
    def declared(self) -> int | None:
        """The number of persons that was declared in advance."""
        if isinstance(self.people, list):
            return len(self.people)
        return index(self.people) if isinstance(self.people, SupportsIndex) else self.expected

    def make_public(self, persons: int | None) -> Public:
        """Return the public parameters with this number of persons."""
        return PUBLIC[self.kind](
            max_answers=len(self.listing.items) if self.cap is None else self.cap,
            neighbours=self.budget.neighbours,
            persons=persons,
            is_fixed=self.people is not None,
            **vars(self.listing),
        )


def check_allowed(
    book: Ledger | None, spec: ReleaseSpec, population: str, request: Request | None
) -> ReleaseSpec:
    """Refuse what the ledger does not allow, or not without approvals, whatever the answers are."""
    if book is not None:
        book.board().check_release(request)
    return check_wanted(book, spec, population)


def check_wanted(book: Ledger | None, spec: ReleaseSpec, population: str) -> ReleaseSpec:
    """Refuse what the ledger does not allow, whatever the answers are; return what is left to do.

    Under add-remove the number of persons is not published; where the policy needs one, it serves
    the policy alone.
    """
    if book is None:
        return spec
    book.history().check_known(population)
    policy, budget = book.policy, spec.budget
    if policy is None:
        return spec
    chosen, _ = choose_mechanism(spec.mechanism, spec.make_public(spec.declared), spec.kind)
    if policy.mechanisms is not None:
        _check_own(chosen)
    book.check_policy(
        Asked(budget.epsilon, budget.delta, str(budget.neighbours), chosen.name, spec.declared)
    )
    if budget.neighbours is Neighbours.ADD_REMOVE and policy.needs_persons:
        return replace(spec, people=None, expected=spec.declared)
    return spec


def _check_own(mechanism: CompleteMechanism) -> None:
    """Refuse a mechanism of somebody else's making that has the name of one of the library's."""
    entry = MECHANISMS.get(mechanism.name)
    if entry is not None and type(entry()) is not type(mechanism):
        raise NotAllowed(
            f"the ledger's policy allows the library's own mechanisms, and this {mechanism.name!r} "
            f"is another, {type(mechanism).__name__}"
        )


Items = Sequence[str] | Mapping[str, int]
"""A list of items, or each with its number of steps."""
Forms = Mapping[str, Sequence[str]] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Listing:
    """What a release was told about its items; the attributes are those of ``Public``."""

    items: tuple[str, ...]
    steps: tuple[int, ...] = ()
    forms: tuple[tuple[str, ...], ...] = ()
    design: Design = "unknown"
    lowest: int = 0
    model: ScaleModel = "partial-credit"

    @property
    def is_binary(self) -> bool:
        """Whether answers are 0 and 1, or whatever else stands for right and wrong."""
        return not self.lowest and all(step == 1 for step in self.steps)

    def read(self, reading: Reading) -> Reading:
        """Return how to read answers of this release: as told, without looking at the values.

        Columns and rows outside the item list are ignored.
        """
        coding, listed = reading.asked, frozenset(self.items)
        if coding.steps or coding.merge or coding.lowest is not None or coding.model is not None:
            raise BadUsage(
                "a release is told about the steps of its items and never looks for them: steps "
                "stand in the item list (items={'Q1': 4}, in a file the columns item and steps), "
                "and the lowest category is lowest= (--lowest). Merge categories before"
            )
        if self.is_binary:
            if coding.reverse:
                raise BadUsage("reverse= (--reverse) is for items with steps, and these have none")
            is_coded = reading.at_least is None
            return replace(reading, model="rasch" if is_coded else None, listed=listed)
        if reading.at_least is not None or reading.one_means == "wrong":
            raise BadUsage(
                "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
                "and the item list names steps. Leave out one or the other"
            )
        steps = dict(zip(self.items, self.steps, strict=True))
        unlisted = [item for item in coding.reverse if item not in steps]
        if unlisted:
            raise BadUsage(f"reverse= (--reverse) names {unlisted[0]!r}, which is not on the list")
        scale = list_scale(steps, self.lowest, coding.reverse)
        return replace(reading, reverse=(), scale=scale, listed=listed)

    def admit(self, answers: Contributions) -> Contributions:
        """Return the listed part of answers; refuse them where the data decided on their reading.

        The part is taken person by person: nobody else's answers change it, and whoever has no
        listed answer stays a person.
        """
        refuse_detected(answers.detected)
        self.check_lowest(answers)
        self._check_names(answers.items)
        return answers.select(self.items)

    def _check_names(self, names: Sequence[str]) -> None:
        listed = frozenset(self.items)
        if listed.isdisjoint(names):
            raise BadResponses(
                f"none of the listed items is in the data: the list begins with {self.items[0]!r}, "
                f"the data with {names[0]!r}. Write items as the data does"
                if names
                else "there is no item in the data"
            )
        refuse_misspelt(listed, names, "these answers")

    def check_lowest(self, answers: Contributions) -> None:
        """Refuse answers that were read with another lowest category than the release was told.

        Where nobody says which it is, readers take 0, or 1 if no 0 occurs: then one person's 0
        decides how everybody else's answers are read, and no noise would hide that.
        """
        if answers.lowest != self.lowest:
            raise BadResponses(
                f"these answers were read with {answers.lowest} as the lowest category, and the "
                f"release was told {self.lowest}. It must not be looked up in the data: say what "
                "the questionnaire has with lowest= (--lowest)"
            )


@contextmanager
def open_listed(
    source: Any, engine: str, words: ListedWords | None, listing: Listing
) -> Iterator[Contributions]:
    """Give the answers of a release: read as it was told, and only what is listed."""
    if words and "weight" in words:
        raise BadUsage(f"a release is refused where persons have weights: {RAKED}")
    with opened(source, engine, words, listing.read) as answers:
        if isinstance(answers, Responses):
            refuse_weights(answers.sample, "a release", RAKED)
        yield listing.admit(answers)


@contextmanager
def open_listed_comparisons(
    source: Any, _engine: str, words: ListedWords | None, listing: Listing
) -> Iterator[Comparisons]:
    """Give the comparisons of a release: of listed objects."""
    comparisons = open_comparisons(source, words)
    refuse_detected(comparisons.detected)
    yield comparisons.keep(listing.items)


def make_listing(
    items: Any,
    forms: Any = None,
    design: str = "unknown",
    lowest: int = 0,
    model: str = "auto",
) -> Listing:
    """Check what was said about items."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        type_name = "one string" if isinstance(items, str) else type(items).__name__
        raise BadUsage(f"items must be a list of item names, found {type_name}")
    names = tuple(map(name_id, items))
    steps = tuple(items.values()) if isinstance(items, Mapping) else (1,) * len(names)
    for item, step in zip(names, steps, strict=True):
        if not isinstance(step, int) or isinstance(step, bool):
            raise BadUsage(f"the steps of item {item!r} must be a whole number, found {step!r}")
    if isinstance(lowest, bool) or not isinstance(lowest, int):
        raise BadUsage(f"lowest must be a whole number, found {lowest!r}")
    chosen = _check_model(model, has_steps=any(step > 1 for step in steps))
    return Listing(names, steps, _list_forms(forms), cast(Design, design), lowest, chosen)


def _check_model(model: str, *, has_steps: bool) -> ScaleModel:
    if model not in ("auto", *MODELS):
        models = ", ".join(("auto", *MODELS))
        raise BadUsage(f"there is no model called {model!r}; choose one of: {models}")
    if has_steps and model == "rasch":
        raise BadUsage("model='rasch' is for right and wrong answers, and the list names steps")
    if not has_steps and model in get_args(ScaleModel):
        raise BadUsage(
            f"the model {model!r} is for items with steps, and the list names none. Name them with "
            "the list: in Python items={'Q1': 4}, in a file the columns item and steps"
        )
    return "rating-scale" if model == "rating-scale" else "partial-credit"


def _list_forms(forms: Any) -> tuple[tuple[str, ...], ...]:
    if forms is None:
        return ()
    if isinstance(forms, str) or not isinstance(forms, Iterable):
        raise BadUsage("forms must be lists of items, or lists of items by the name of the form")
    listed = forms.values() if isinstance(forms, Mapping) else forms
    if any(isinstance(form, str) for form in listed):
        raise BadUsage("a form must be a list of items, found one string")
    return tuple(tuple(map(name_id, form)) for form in listed)


def read_public_listing(public: Public) -> Listing:
    """Return what a release was told, from its public parameters."""
    return Listing(
        public.items, public.steps, public.forms, public.design, public.lowest, public.model
    )


Words = Mapping[str, Any]

_DEFAULTS: dict[str, dict[str, Any]] = {
    "answers": dict(READING_DEFAULTS),
    "comparisons": {
        name: one.default
        for name, one in inspect.signature(read_comparisons).parameters.items()
        if one.default is not inspect.Parameter.empty
    },
}
"""What every keyword is where nobody says it."""


def pack_reading(kind: str, words: Words, listing: Listing) -> dict[str, Any]:
    """Return the keywords as they stand in a request."""
    _check_names(kind, words)
    keywords = {name: value for name, value in words.items() if not _is_default(kind, name, value)}
    if kind == "answers":
        plan = listing.read(Reading(**keywords))
        keywords |= {"missing": plan.codes} if "missing" in keywords else {}
        keywords |= {"key": vars(make_key(keywords["key"]))} if "key" in keywords else {}
    return dict(pack(keywords))


def unpack_reading(body: Words) -> dict[str, Any]:
    """Return the keywords of a request, for the reader of its kind."""
    kind, words = body["kind"], unpack(body["reading"])
    _check_names(kind, words)
    if "key" in words:
        words["key"] = _read_key(words["key"])
    return dict(words)


def _check_names(kind: str, words: Words) -> None:
    for name in words:
        if name not in _DEFAULTS[kind]:
            raise BadUsage(f"a request for {kind} does not say how they are read with {name!r}")


def _is_default(kind: str, name: str, value: Any) -> bool:
    return value is None or value == _DEFAULTS[kind][name] or (value in ("", [], {}, ()))


def _read_key(packed: Any) -> Key:
    """Return a key that a request holds; words come back as the tuples that they were."""
    try:
        by_item = {str(item): tuple(map(str, words)) for item, words in packed["by_item"].items()}
        return Key(by_item, tuple(tuple(map(str, words)) for words in packed["in_order"]))
    except (AttributeError, KeyError, TypeError):
        raise BadUsage("the request holds no key of right answers") from None
