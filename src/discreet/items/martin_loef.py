"""Parts of a test: whether they measure the same (Martin-Löf), and how they hang together.

In: answers and a way to split the items. Out: a likelihood ratio test of one ability against one
for each part; and Cronbach's alpha, which for right and wrong answers is KR-20. Both need persons
who answered every item. Items may have steps. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import load_answers, name_model
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.groups import chi_squared_tail, take_group
from discreet.models.conditional.estimator import find_maximum
from discreet.models.item_parameters import (
    RATING_SCALE,
    category_totals,
    choose_model,
    leave_unused,
)
from discreet.results.dropped import warn_of_dropped
from discreet.results.estimate import FitWarning, WarningKind
from discreet.tables.reading import FitWords, ReadingWords
from discreet.tables.survey import PSEUDO_LIKELIHOOD, refuse_weights
from discreet.tabular import Tabular, brief_repr
from discreet.text import name_some
from discreet.types import FloatArray, Int64Array, Model

MEDIAN = "median difficulty"
"""Splits the items into an easier and a harder half."""
EASY_HARD = ("easier", "harder")
FEW = 5
"""Persons per degree of freedom below which the chi-squared law is rough."""


@dataclass(frozen=True, eq=False)
class MartinLoefTest(Tabular):
    """One ability for all items against one for each part. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when all parts measure the same, and persons are many against its degrees of
        freedom. Two parts with highest scores m and n have ``m n - 1``; several have the product of
        their highest scores plus 1, less the sum of these scores and the number of parts.
    items, part
        Items compared, and to which part each belongs.
    difficulty, apart
        Of each item: all items together (mean zero), and its part alone (mean zero in it); with
        steps its location.
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
    responses: Any,
    split: str | Sequence[str] | Mapping[str, str] = MEDIAN,
    *,
    model: Model = "auto",
    **reading: Unpack[FitWords],
) -> MartinLoefTest:
    """Test whether parts of a test measure the same. Confidential.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`. Only persons who answered every compared
        item count.
    split
        ``"median difficulty"``: the easier against the harder half. Or the names of the items
        of one part, against all others. Or a mapping from item to part, for two parts or more;
        items that it does not name are left out. Parts that were chosen by looking at these answers
        (the ends of a contrast) give too many alarms.
    model
        For items with steps: ``"partial-credit"`` (what ``"auto"`` takes) or ``"rating-scale"``.

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
    source = load_answers(responses, name_model(responses, model, reading))
    refuse_weights(source.sample, "Martin-Löf's test", PSEUDO_LIKELIHOOD)
    usable = _usable_items(source)
    parts = _choose_parts(source, usable, split)
    chosen = choose_model(model, source.steps)
    complete = _keep_complete(source, [item for items in parts.values() for item in items], chosen)
    answers = [complete.select(items) for items in parts.values()]
    together = find_maximum(complete, chosen)
    apart = [find_maximum(part, chosen) for part in answers]
    scores = [part.store.person_totals()[1] for part in answers]
    gain = sum(maximum.log_likelihood for maximum in apart) - together.log_likelihood
    statistic = 2 * (gain + _score_terms(scores))
    # Free numbers of the laws of the scores and of the conditional fits, apart less together.
    highest = [sum(part.steps) for part in answers]
    laws = int(np.prod([score + 1 for score in highest])) - 1 - sum(highest)
    degrees = laws + sum(maximum.free for maximum in apart) - together.free
    excluded = tuple(item for item in source.items if item not in set(complete.items))
    warnings = _warn(source, complete, degrees, excluded)
    warn_of_dropped(warnings)
    return MartinLoefTest(
        statistic=statistic,
        degrees=degrees,
        p_value=chi_squared_tail(statistic, degrees),
        items=complete.items,
        part=tuple(label for label, items in parts.items() for _ in items),
        difficulty=together.location,
        apart=np.concatenate([maximum.location for maximum in apart]),
        persons=complete.n_persons,
        excluded=excluded,
        warnings=tuple(warnings),
    )


def _usable_items(source: Responses) -> tuple[str, ...]:
    """Return the items that are answered in two categories or more."""
    used = (category_totals(source.store) > 0).sum(axis=1)
    return tuple(item for item, count in zip(source.items, used.tolist(), strict=True) if count > 1)


def _choose_parts(
    source: Responses, usable: tuple[str, ...], split: str | Sequence[str] | Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the items of every part, in the order of the answers."""
    if isinstance(split, str):
        if split != MEDIAN:
            raise BadUsage(
                f"a split is {MEDIAN!r}, the names of the items of one part or a mapping from item "
                f"to part, found {split!r}"
            )
        easy = set(_list_easy(source.select(usable)))
        label_of = {item: EASY_HARD[item not in easy] for item in usable}
    elif isinstance(split, Mapping):
        label_of = {str(item): str(label) for item, label in split.items()}
    else:
        label_of = dict.fromkeys(map(str, usable), "others") | dict.fromkeys(split, "named")
    unknown = [item for item in label_of if item not in set(source.items)]
    if unknown:
        raise BadUsage(f"the answers have no item {unknown[0]!r}; items go by name")
    order = EASY_HARD if split == MEDIAN else dict.fromkeys(["named", *label_of.values()])
    parts = {label: tuple(i for i in usable if label_of.get(i) == label) for label in order}
    parts = {label: items for label, items in parts.items() if label in label_of.values()}
    sizes = [len(items) for items in parts.values()]
    if len(parts) < 2 or min(sizes) < 2:
        raise BadUsage(
            f"two parts need two items each that have right and wrong answers, found "
            f"{' and '.join(map(str, sizes if len(sizes) > 1 else [*sizes, 0]))}"
        )
    return parts


def _list_easy(source: Responses) -> list[str]:
    """Return the easier half of the items, by their mean scores as shares of the highest."""
    totals = category_totals(source.store)
    points = totals @ np.arange(totals.shape[1]) / totals.sum(axis=1) / np.array(source.steps)
    order = np.argsort(-points, kind="stable")
    return [source.items[i] for i in order[: source.n_items // 2]]


def _keep_complete(source: Responses, items: Sequence[str], model: str) -> Responses:
    """Return the answers of persons who answered all of these items."""
    chosen = source.select(items)
    answered = chosen.store.person_totals()[0]
    complete = answered == chosen.n_items
    if complete.sum() < 2:
        raise BadUsage(
            f"{int(complete.sum())} of {source.n_persons} persons answered all {chosen.n_items} "
            "items, and this test compares scores on all of them; give items that the same "
            "persons answered"
        )
    full_test = take_group(chosen, complete)
    constant = sorted(set(full_test.items) - set(_usable_items(full_test)))
    if constant:
        raise DisconnectedItems(
            f"among the {full_test.n_persons} persons who answered everything, "
            f"{name_some(constant)} have one kind of answer only; leave them out"
        )
    return full_test if model == RATING_SCALE else leave_unused(full_test)


def _score_terms(scores: Sequence[Int64Array]) -> float:
    """Return the log-likelihood of the scores of all parts less that of their sums."""
    together = np.unique(np.stack(scores), axis=1, return_counts=True)[1]
    sums = np.unique(np.sum(scores, axis=0), return_counts=True)[1]
    return float((together * np.log(together)).sum() - (sums * np.log(sums)).sum())


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
        sentence = f"items without a part or with one kind of answer: {name_some(list(excluded))}"
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
