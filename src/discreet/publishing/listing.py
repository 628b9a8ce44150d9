"""What is public about the items of a release: their steps, forms, and who was given what.

In: what the steward says. Out: a :class:`Listing`, which tells readers of answers which values are
which categories, so that nothing is looked for in the data: a reader that guesses would let one
person's answer decide how everybody else's are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from discreet.answers.judges import Comparisons
from discreet.answers.opening import opened
from discreet.answers.protocol import Contributions
from discreet.answers.read_judges import open_comparisons
from discreet.errors import BadResponses, BadUsage
from discreet.names import name_id
from discreet.privacy.protocol import Public
from discreet.tables.detected import refuse_detected
from discreet.tables.roles import Reading, refuse_misspelt
from discreet.tables.scales import AskedSteps, list_scale
from discreet.tables.words import ListedWords
from discreet.types import MODELS, Design, ScaleModel

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
        asked, listed = reading.asked, frozenset(self.items)
        if asked.steps or asked.merge or asked.lowest is not None or asked.model is not None:
            raise BadUsage(
                "a release is told about the steps of its items and never looks for them: steps "
                "stand in the item list (items={'Q1': 4}, in a file the columns item and steps), "
                "and the lowest category is lowest= (--lowest). Merge categories before"
            )
        if self.is_binary:
            if asked.reverse:
                raise BadUsage("reverse= (--reverse) is for items with steps, and these have none")
            binary = None if reading.at_least is not None else "rasch"
            return replace(reading, asked=AskedSteps(binary), listed=listed)
        if reading.at_least is not None or reading.one_means == "wrong":
            raise BadUsage(
                "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
                "and the item list names steps. Leave out one or the other"
            )
        steps = dict(zip(self.items, self.steps, strict=True))
        unlisted = [item for item in asked.reverse if item not in steps]
        if unlisted:
            raise BadUsage(f"reverse= (--reverse) names {unlisted[0]!r}, which is not on the list")
        scale = list_scale(steps, self.lowest, asked.reverse)
        return replace(reading, asked=AskedSteps(), scale=scale, listed=listed)

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
    with opened(source, engine, words, listing.read) as answers:
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
        found = "one string" if isinstance(items, str) else type(items).__name__
        raise BadUsage(f"items must be a list of item names, found {found}")
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
        known = ", ".join(("auto", *MODELS))
        raise BadUsage(f"there is no model called {model!r}; choose one of: {known}")
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
