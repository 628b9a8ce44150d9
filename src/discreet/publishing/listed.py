"""The listed part of the data: read as a release was told, and nothing else of it.

In: a source, and public parameters. Out: contributions of whole persons to the listed items. What
the data looks like never decides how it is read, and what is not on the list is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from discreet.answers.judges import Comparisons, open_comparisons
from discreet.answers.opening import opened
from discreet.answers.protocol import Contributions
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.protocol import Public
from discreet.tables.columns import refuse_misspelt
from discreet.tables.reading import DESIGN_WORDS, ListedWords, Reading
from discreet.tables.remedies import refuse_detected
from discreet.tables.resources import Progress, Resources
from discreet.tables.scales import list_scale
from discreet.tables.survey import RAKED, refuse_weights


def restrict_reading(public: Public, reading: Reading) -> Reading:
    """Return how to read answers of a release: as told, without looking at the values.

    Columns and rows outside the item list are ignored.
    """
    coding, listed = reading.asked, frozenset(public.items)
    if coding.steps or coding.merge or coding.lowest is not None or coding.model is not None:
        raise BadUsage(
            "a release is told about the steps of its items and never looks for them: steps "
            "stand in the item list (items={'Q1': 4}, in a file the columns item and steps), "
            "and the lowest category is lowest= (--lowest). Merge categories before"
        )
    if not public.lowest and not public.has_steps:
        if coding.reverse:
            raise BadUsage("reverse= (--reverse) is for items with steps, and these have none")
        is_coded = reading.at_least is None
        return replace(reading, model="rasch" if is_coded else None, listed=listed)
    if reading.at_least is not None or reading.one_means == "wrong":
        raise BadUsage(
            "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
            "and the item list names steps. Leave out one or the other"
        )
    steps = dict(zip(public.items, public.steps, strict=True))
    unlisted = [item for item in coding.reverse if item not in steps]
    if unlisted:
        raise BadUsage(f"reverse= (--reverse) names {unlisted[0]!r}, which is not on the list")
    scale = list_scale(steps, public.lowest, coding.reverse)
    return replace(reading, reverse=(), scale=scale, listed=listed)


@dataclass(frozen=True)
class DataSource:
    """Where the data of a release is.

    Attributes
    ----------
    data
        Answers or comparisons, or where they are.
    engine, resources, progress
        Where answers are counted, what that may use, and who is told how far it is.
    """

    data: Any
    engine: str = "auto"
    resources: Resources | None = None
    progress: Callable[[Progress], None] | None = None


@contextmanager
def open_listed(
    source: DataSource, words: ListedWords | None, public: Public
) -> Iterator[Contributions]:
    """Give the answers of a release: read as it was told, and only what is listed.

    The part is taken person by person: nobody else's answers change it, and whoever has no listed
    answer stays a person.
    """
    if DESIGN_WORDS.intersection(words or ()):
        raise BadUsage(f"a release is refused where persons have weights: {RAKED}")
    with opened(
        source.data,
        source.engine,
        words,
        partial(restrict_reading, public),
        resources=source.resources,
        progress=source.progress,
    ) as answers:
        if isinstance(answers, Responses):
            refuse_weights(answers.sample, "a release", RAKED)
        refuse_detected(answers.detected)
        check_lowest(public, answers)
        _check_item_names(public, answers.items)
        yield answers.select(public.items)


@contextmanager
def open_listed_comparisons(
    source: DataSource, words: ListedWords | None, public: Public
) -> Iterator[Comparisons]:
    """Give the comparisons of a release: of listed objects."""
    comparisons = open_comparisons(source.data, words)
    refuse_detected(comparisons.detected)
    yield comparisons.keep(public.items)


ListedOpener = Callable[
    [DataSource, ListedWords | None, Public], AbstractContextManager[Contributions]
]
OPENERS: dict[str, ListedOpener] = {
    "answers": open_listed,
    "comparisons": open_listed_comparisons,
}
"""Opens what whole persons contribute to a release of each kind."""


def check_lowest(public: Public, answers: Contributions) -> None:
    """Refuse answers that were read with another lowest category than the release was told.

    Where nobody says which it is, readers take 0, or 1 if no 0 occurs: then one person's 0 decides
    how everybody else's answers are read, and no noise would hide that.
    """
    if answers.lowest != public.lowest:
        raise BadResponses(
            f"these answers were read with {answers.lowest} as the lowest category, and the "
            f"release was told {public.lowest}. It must not be looked up in the data: say what "
            "the questionnaire has with lowest= (--lowest)"
        )


def _check_item_names(public: Public, names: Sequence[str]) -> None:
    listed = frozenset(public.items)
    if listed.isdisjoint(names):
        raise BadResponses(
            f"none of the listed items is in the data: the list begins with {public.items[0]!r}, "
            f"the data with {names[0]!r}. Write items as the data does"
            if names
            else "there is no item in the data"
        )
    refuse_misspelt(listed, names, "these answers")
