"""Martin-Löf's test: whether parts of a test measure the same.

In: answers, and which items make up each part. Out: a statistic with its degrees of freedom and
p-value. It compares one ability with one for each part, of persons who answered every item.
Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.answers.responses import Responses
from discreet.choices import Model, PlainDict
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind, warn_of_dropped
from discreet.items.groups import take_group
from discreet.items.likelihood_ratios import judge_gain, list_excluded, list_full, tell_excluded
from discreet.models.categories import RATING_SCALE, choose_model, leave_unused, weigh_categories
from discreet.models.conditional.estimator import find_maximum
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import name_some
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.models.weighted import WeightedMaximum

#: Splits the items into an easier and a harder half.
MEDIAN = "median difficulty"
EASY_HARD = ("easier", "harder")
#: Persons per degree of freedom below which the chi-squared law is rough.
FEW = 5


@dataclass(frozen=True, eq=False)
class MartinLoefTest(Tabular):
    """One ability for all items against one for each part. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when all parts measure the same, and persons are many against its degrees of
        freedom. Two parts with highest scores m and n have ``m n - 1``; several have the product of
        their highest scores plus 1, less the sum of these scores and the number of parts. With
        weights it tests two numbers of each part instead, corrected for the design; two parts have
        2 degrees of freedom.
    items, part
        Items compared, and to which part each belongs.
    difficulty, apart
        Of each item: all items together (mean zero), and its part alone (mean zero in it); with
        steps its location.
    persons
        How many answered everything.
    excluded
        Items that could not be compared.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> analysis.run_martin_loef(discreet.datasets.lsat()).part
    ('easier', 'easier', 'harder', 'harder', 'harder')
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

    def to_dict(self) -> Columns:
        """One list per column: item, part, difficulty, apart."""
        return {"item": list(self.items), **list_field_columns(self, "part", "difficulty", "apart")}


def run_martin_loef(
    responses: Responses,
    split: str | Sequence[str] | Mapping[str, str] = MEDIAN,
    *,
    model: Model = "auto",
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
    if responses.sample is not None:
        responses = responses.select_persons(responses.sample.in_domain)
    usable = list_full(responses, RATING_SCALE)
    parts = _choose_parts(responses, usable, split)
    chosen = choose_model(model, responses.steps)
    complete = _keep_complete(
        responses, [item for items in parts.values() for item in items], chosen
    )
    answers = [complete.select(items) for items in parts.values()]
    compare = _compare_likelihoods if complete.sample is None else _compare_by_design
    result = compare(answers, complete, chosen)
    excluded = list_excluded(responses, complete.items)
    warnings = _warn(responses, complete, result["degrees"], excluded)
    warn_of_dropped(warnings)
    return MartinLoefTest(
        **result,
        items=complete.items,
        part=tuple(label for label, items in parts.items() for _ in items),
        persons=complete.n_persons,
        excluded=excluded,
        warnings=tuple(warnings),
    )


def _compare_likelihoods(parts: Sequence[Responses], whole: Responses, model: str) -> PlainDict:
    together, apart = find_maximum(whole, model), [find_maximum(part, model) for part in parts]
    # Free numbers of the laws of the scores and of the conditional fits, apart less together.
    highest = [sum(part.steps) for part in parts]
    laws = int(np.prod([score + 1 for score in highest])) - 1 - sum(highest)
    degrees = laws + sum(maximum.free for maximum in apart) - together.free
    scores = [part.store.person_totals()[1] for part in parts]
    gain = sum(maximum.log_likelihood for maximum in apart) - together.log_likelihood
    return {
        **vars(judge_gain(2 * (gain + _score_terms(scores)), degrees)),
        "difficulty": together.location,
        "apart": np.concatenate([maximum.location for maximum in apart]),
    }


def _compare_by_design(parts: Sequence[Responses], whole: Responses, model: str) -> PlainDict:
    """Test that parts measure the same, under the sampling design.

    Notes
    -----
    A likelihood ratio compares persons of one total in every combination of the parts' scores. Few
    clusters cannot tell the covariance of so many numbers. So two numbers of each part are tested,
    those that change first where its ability departs from that of the others: the sum over persons
    of the squared distance of the part's score from its expectation given the total, less its
    variance and what the distance itself says of it (the abilities are not the same); and of the
    distance times the total (the part has another slope). Both are linear in persons.
    """
    from discreet.models.weighted import find_weighted_maximum

    together, *apart = (find_weighted_maximum(answers, model) for answers in (whole, *parts))
    first = np.cumsum([0, *(part.n_items for part in parts)])
    columns = [
        _compare_part(together, slice(*ends), part.store.person_totals()[1], whole)
        for part, *ends in zip(parts, first, first[1:], strict=False)
    ]
    statistic, moves = (np.hstack(arrays) for arrays in zip(*columns, strict=True))
    difficulty, *alone = (np.nanmean(fit.threshold, axis=1) for fit in (together, *apart))
    return {
        **vars(together.sample.test_zero(statistic.sum(axis=0), moves)),
        "difficulty": difficulty,
        "apart": np.concatenate(alone),
    }


def _compare_part(
    together: WeightedMaximum, items: slice, score: Int64Array, whole: Responses
) -> tuple[FloatArray, FloatArray]:
    """Return every person's share in the two numbers of a part, and how it moves them."""
    from discreet.models.weighted import describe_scores

    threshold, weight = together.threshold, together.sample.weight
    is_part = np.zeros(len(threshold), dtype=bool)
    is_part[items] = True
    part, others = (describe_scores(threshold[rows]) for rows in (is_part, ~is_part))
    total = whole.store.person_totals()[1]
    # ``[total, score of the part]``
    left = np.arange(len(part[0]) + len(others[0]) - 1)[:, None] - np.arange(len(part[0]))
    possible = (left >= 0) & (left < len(others[0]))
    left = np.where(possible, left, 0)
    logs = np.where(possible, part[0] + others[0][left], -np.inf)
    chance = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    distance = np.arange(len(part[0])) - (chance @ np.arange(len(part[0])))[:, None]
    second, third = ((chance * distance**power).sum(axis=1, keepdims=True) for power in (2, 3))
    # The spread is free of the mean at every total: a skewed law would mix them.
    skew = np.divide(third, second, out=np.zeros_like(second), where=second > 0)
    spread = distance**2 - skew * distance - second
    table = np.stack([spread, distance * np.arange(len(left))[:, None]], axis=2)
    # The chance to reach the steps, given the part's score and the total.
    nodes = np.isfinite(threshold)
    reached = np.zeros((*chance.shape, int(nodes.sum())))
    in_part = np.repeat(is_part, nodes.sum(axis=1))
    reached[:, :, in_part] = part[1]
    reached[:, :, ~in_part] = others[1][left]
    expected = np.bincount(total, weight, len(left))[:, None] * chance
    slope = np.einsum("ra,rak,ran->nk", expected, table, reached)
    statistic = weight[:, None] * table[total, score]
    return statistic, statistic + together.moves @ slope


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
    weight = None if source.sample is None else source.sample.weight
    totals = weigh_categories(source.store, weight)
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
    constant = sorted(set(full_test.items) - set(list_full(full_test, RATING_SCALE)))
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
    sentence = f"items without a part or with one kind of answer: {name_some(list(excluded))}"
    warnings += tell_excluded(sentence, excluded)
    if complete.n_persons < FEW * degrees:
        sentence = (
            f"the p-value is rough: {complete.n_persons:,} persons are few for {degrees:,} degrees "
            "of freedom; dimensionality is tested by simulation instead"
        )
        warnings.append(FitWarning(WarningKind.ROUGH, sentence))
    return warnings
