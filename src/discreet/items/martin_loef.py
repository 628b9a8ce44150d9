"""Two parts of a test: whether they measure the same (Martin-Löf), and how they hang together.

In: answers and a way to split the items. Out: a likelihood ratio test of one ability against one
for each part; and Cronbach's alpha, which for right and wrong answers is KR-20. Both need persons
who answered every item. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import load_answers
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.groups import chi_squared_tail, take_group
from discreet.models.conditional.estimator import find_maximum
from discreet.models.steps import category_totals, refuse_steps
from discreet.results.dropped import warn_of_dropped
from discreet.results.estimate import FitWarning, WarningKind
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, brief_repr
from discreet.text import name_some
from discreet.types import FloatArray, Int64Array

MEDIAN = "median difficulty"
"""Splits the items into an easier and a harder half."""
EASY_HARD = ("easier", "harder")
FEW = 5
"""Persons per degree of freedom below which the chi-squared law is rough."""


@dataclass(frozen=True, eq=False)
class MartinLoefTest(Tabular):
    """One ability for all items against one for each of two parts. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared with ``items * other items - 1`` degrees of freedom when both parts measure
        the same, and persons are many against that number.
    items, part
        Items compared, and to which part each belongs.
    difficulty, apart
        Of each item: all items together (mean zero), and its part alone (mean zero in it).
    persons
        How many answered everything.
    excluded
        Items that could not be compared.
    """

    statistic: float
    degrees: int
    p_value: float
    items: tuple[str, ...]
    part: tuple[str, ...]
    difficulty: FloatArray
    apart: FloatArray
    persons: int
    excluded: tuple[str, ...]
    warnings: tuple[FitWarning, ...] = ()

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, part, difficulty, apart."""
        return {
            "item": list(self.items),
            "part": list(self.part),
            "difficulty": self.difficulty.tolist(),
            "apart": self.apart.tolist(),
        }


def run_martin_loef(
    responses: Any, split: str | Sequence[str] = MEDIAN, **reading: Unpack[ReadingWords]
) -> MartinLoefTest:
    """Test whether two parts of a test measure the same. Confidential.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`. Only persons who answered every compared
        item count.
    split
        ``"median difficulty"``: the easier against the harder half. Or the names of the items
        of one part, against all others. Parts that were chosen by looking at these answers (the
        ends of a contrast) give too many alarms.

    Raises
    ------
    BadUsage
        If a part has fewer than two items, or nobody answered everything.
    DisconnectedItems
        If the answers to a part determine no difficulties.

    References
    ----------
    Martin-Löf, P. (1973). Statistiska modeller. Institutet för Försäkringsmatematik och Matematisk
    Statistik vid Stockholms Universitet. Christensen, K. B., Bjorner, J. B., Kreiner, S. and
    Petersen, J. H. (2002). Testing unidimensionality in polytomous Rasch models. Psychometrika
    67(4), 563-574.

    Examples
    --------
    >>> import discreet
    >>> test = run_martin_loef(discreet.datasets.lsat(), ["Item1", "Item2"])
    >>> test.degrees, test.persons
    (5, 1000)
    """
    source = load_answers(responses, reading)
    refuse_steps("Martin-Löf's test", source.steps)
    usable = _usable_items(source)
    first = _choose_part(source, usable, split)
    second = tuple(item for item in usable if item not in set(first))
    parts, complete = _keep_complete(source, first, second)
    together = find_maximum(complete)
    apart = [find_maximum(part) for part in parts]
    scores = [part.store.person_totals()[1] for part in parts]
    gain = sum(maximum.log_likelihood for maximum in apart) - together.log_likelihood
    statistic = 2 * (gain + _score_terms(*scores))
    degrees = len(first) * len(second) - 1
    excluded = tuple(item for item in source.items if item not in set(usable))
    words = EASY_HARD if split == MEDIAN else ("named", "others")
    warnings = _warn(source, complete, degrees, excluded)
    warn_of_dropped(warnings)
    return MartinLoefTest(
        statistic=statistic,
        degrees=degrees,
        p_value=chi_squared_tail(statistic, degrees),
        items=(*first, *second),
        part=(words[0],) * len(first) + (words[1],) * len(second),
        difficulty=together.location,
        apart=np.concatenate([maximum.location for maximum in apart]),
        persons=complete.n_persons,
        excluded=excluded,
        warnings=tuple(warnings),
    )


def _usable_items(source: Responses) -> tuple[str, ...]:
    answers, right = source.store.item_totals()
    return tuple(
        item
        for item, some, good in zip(source.items, answers, right, strict=True)
        if 0 < good < some
    )


def _choose_part(
    source: Responses, usable: tuple[str, ...], split: str | Sequence[str]
) -> tuple[str, ...]:
    """Return the items of the first part, in the order of the answers."""
    if isinstance(split, str):
        if split != MEDIAN:
            raise BadUsage(
                f"a split is {MEDIAN!r} or the names of the items of one part, found {split!r}"
            )
        answers, right = source.select(usable).store.item_totals()
        order = np.argsort(-right / answers, kind="stable")
        chosen = {usable[i] for i in order[: len(usable) // 2]}
    else:
        unknown = [item for item in split if item not in set(source.items)]
        if unknown:
            raise BadUsage(f"the answers have no item {unknown[0]!r}; items go by name")
        chosen = set(split)
    first = tuple(item for item in usable if item in chosen)
    if min(len(first), len(usable) - len(first)) < 2:
        raise BadUsage(
            f"two parts need two items each that have right and wrong answers, found {len(first)} "
            f"and {len(usable) - len(first)}"
        )
    return first


def _keep_complete(
    source: Responses, first: tuple[str, ...], second: tuple[str, ...]
) -> tuple[list[Responses], Responses]:
    """Return both parts and the whole, for the persons who answered all of it."""
    chosen = source.select((*first, *second))
    answered = chosen.store.person_totals()[0]
    complete = answered == chosen.n_items
    if complete.sum() < 2:
        raise BadUsage(
            f"{int(complete.sum())} of {source.n_persons} persons answered all {chosen.n_items} "
            "items, and this test compares scores on all of them; give items that the same "
            "persons answered"
        )
    full_test = take_group(chosen, complete)
    parts = [full_test.select(first), full_test.select(second)]
    for part in (full_test, *parts):
        if len(_usable_items(part)) < part.n_items:
            left = sorted(set(part.items) - set(_usable_items(part)))
            raise DisconnectedItems(
                f"among the {full_test.n_persons} persons who answered everything, "
                f"{name_some(left)} have no right or no wrong answer; leave them out"
            )
    return parts, full_test


def _score_terms(first: Int64Array, second: Int64Array) -> float:
    """Return the log-likelihood of pairs of scores less that of their sums."""
    width = int(second.max()) + 1
    pairs = np.unique(first * width + second, return_counts=True)[1]
    sums = np.unique(first + second, return_counts=True)[1]
    return float((pairs * np.log(pairs)).sum() - (sums * np.log(sums)).sum())


def _warn(
    source: Responses, complete: Responses, degrees: int, excluded: tuple[str, ...]
) -> list[FitWarning]:
    warnings = []
    left = source.n_persons - complete.n_persons
    if left:
        sentence = (
            f"{left:,} of {source.n_persons:,} persons did not answer everything and were left out"
        )
        warnings.append(FitWarning(WarningKind.INCOMPLETE, sentence))
    if excluded:
        sentence = f"items always or never right were left out: {name_some(list(excluded))}"
        warnings.append(FitWarning(WarningKind.NOT_COMPARED, sentence, excluded))
    if complete.n_persons < FEW * degrees:
        sentence = (
            f"the p-value is rough: {complete.n_persons:,} persons are few for {degrees:,} degrees "
            "of freedom; dimensionality is tested by simulation instead"
        )
        warnings.append(FitWarning(WarningKind.ROUGH, sentence))
    return warnings


@dataclass(frozen=True)
class Alpha(Tabular):
    """Cronbach's alpha of raw scores; for right and wrong answers it is KR-20. Confidential.

    ``alpha = k / (k - 1) (1 - sum of the items' variances / variance of the score)``, from persons
    who answered all ``k`` items. NaN where there are fewer than two of either, or no spread.
    """

    alpha: float
    persons: int
    items: int

    def to_dict(self) -> dict[str, float]:
        """Alpha, and of how many persons and items it is."""
        return {"alpha": self.alpha, "persons": self.persons, "items": self.items}


def measure_alpha(responses: Any, **reading: Unpack[ReadingWords]) -> Alpha:
    """Return Cronbach's alpha of the raw score, KR-20 of right and wrong answers. Confidential.

    Examples
    --------
    >>> import discreet
    >>> round(measure_alpha(discreet.datasets.lsat()).alpha, 3)
    0.295
    """
    source = load_answers(responses, reading)
    answered, right = source.store.person_totals()
    complete = answered == source.n_items
    n, k = int(complete.sum()), source.n_items
    if n < 2 or k < 2 or right[complete].var() == 0:
        return Alpha(float("nan"), n, k)
    inside = float(_item_variances(take_group(source, complete)).sum() / right[complete].var())
    return Alpha(k / (k - 1) * (1 - inside), n, k)


def _item_variances(complete: Responses) -> FloatArray:
    """Variances of the answers to every item, of persons who answered all of them."""
    share = category_totals(complete.store) / complete.n_persons
    category = np.arange(share.shape[1])
    return np.asarray(share @ category**2 - (share @ category) ** 2)
