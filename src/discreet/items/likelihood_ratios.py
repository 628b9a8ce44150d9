"""Likelihood ratio tests of the model: Andersen, Martin-Löf, partial credit against rating scale.

In: answers, and a way to split the persons or the items. Out: a statistic by conditional likelihood
with its degrees of freedom and p-value. Andersen's test compares groups of persons; Martin-Löf's
one ability with one for each part of the items, of persons who answered every item; the third asks
whether all items share the distances between their steps. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import load_answers, name_model
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind, warn_of_dropped
from discreet.items.group_differences import (
    compare_parts,
    compare_step_distances,
    compare_thresholds,
    judge_gain,
)
from discreet.items.groups import Split, load_grouped, split_groups, take_group
from discreet.models.conditional.estimator import find_maximum
from discreet.models.conditional.maximise import ConditionalFit
from discreet.models.connectivity import classify
from discreet.models.item_parameters import (
    PARTIAL_CREDIT,
    RASCH,
    RATING_SCALE,
    category_totals,
    choose_model,
    leave_unused,
    weigh_categories,
)
from discreet.tables.reading import FitWords, ReadingWords
from discreet.tabular import Tabular, list_field_columns
from discreet.text import count_of, name_some
from discreet.types import FloatArray, Int64Array, Model


@dataclass(frozen=True, eq=False)
class AndersenTest(Tabular):
    """Conditional likelihood of the groups apart against all together. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when the model holds, with ``(groups - 1) (items - 1)`` degrees of freedom;
        with steps there are as many as numbers that are free, in each group but one. With weights
        the thresholds are compared instead of likelihoods, with Rao and Scott's correction for the
        design; log-likelihoods are then NaN.
    groups, persons
        Labels and sizes of the groups.
    split
        How persons were split: ``"mean score"``, ``"median score"``, the name of a column, or
        ``"given labels"``.
    items, difficulty
        Items compared, and their difficulties ``[group, item]``, mean zero in each group; with
        steps their locations.
    excluded
        Items that could not be compared: without a right or a wrong answer, or not linked to
        the others, in at least one group; with steps those that lack a category in one.
    log_likelihood, log_likelihoods
        Of all persons together and of each group.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> analysis.run_andersen(discreet.datasets.lsat()).groups
    ('low score', 'high score')
    """

    statistic: float
    degrees: int
    p_value: float
    groups: tuple[str, ...]
    persons: tuple[int, ...]
    items: tuple[str, ...]
    difficulty: FloatArray
    excluded: tuple[str, ...]
    log_likelihood: float
    log_likelihoods: tuple[float, ...]
    warnings: tuple[FitWarning, ...] = ()
    split: str = ""

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, and its difficulty in each group."""
        difficulties = zip(self.groups, self.difficulty.tolist(), strict=True)
        return {"item": list(self.items), **dict(difficulties)}


def run_andersen(
    responses: Any,
    groups: Any = "mean score",
    *,
    model: Model = "auto",
    **reading: Unpack[FitWords],
) -> AndersenTest:
    """Test whether the items have the same difficulties in all groups. Confidential.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`.
    groups
        ``"mean score"`` or ``"median score"``, the name of a group column, or one label for
        each person.
    model
        For items with steps: ``"partial-credit"`` (what ``"auto"`` takes) or ``"rating-scale"``.

    Raises
    ------
    DisconnectedItems
        If fewer than two items can be compared in all groups.

    References
    ----------
    Andersen, E. B. (1973). A goodness of fit test for the Rasch model. Psychometrika 38(1),
    123-140.

    Examples
    --------
    >>> import discreet
    >>> test = run_andersen(discreet.datasets.lsat())
    >>> round(test.statistic, 4), test.degrees
    (0.1681, 4)
    """
    source = load_grouped(responses, groups, reading, model)
    chosen = choose_model(model, source.steps)
    source = source if chosen == RATING_SCALE else leave_unused(source)
    split = split_groups(source, groups)
    items = _comparable_items(split, source.items, chosen)
    answers = split.select(items)
    if source.sample is None:
        parts = _compare_likelihoods(_join(source, split, items), answers, chosen)
    else:
        parts = compare_thresholds(answers, chosen)
    excluded = _list_excluded(source, items)
    warnings = (*split.warnings, *_tell_not_compared(excluded, chosen))
    warn_of_dropped(warnings)
    return AndersenTest(
        **parts,
        groups=split.labels,
        persons=tuple(part.n_persons for part in split.parts),
        items=items,
        excluded=excluded,
        warnings=warnings,
        split=groups if isinstance(groups, str) else "given labels",
    )


def _compare_likelihoods(everybody: Responses, split: Split, model: str) -> dict[str, Any]:
    together = find_maximum(everybody, model)
    apart = [_maximise_group(part, model, label) for label, part in split.pairs]
    statistic = 2 * (sum(fit.log_likelihood for fit in apart) - together.log_likelihood)
    degrees = (len(apart) - 1) * together.free
    return {
        **vars(judge_gain(statistic, degrees)),
        "difficulty": np.stack([fit.location for fit in apart]),
        "log_likelihood": together.log_likelihood,
        "log_likelihoods": tuple(fit.log_likelihood for fit in apart),
    }


def _maximise_group(part: Responses, model: str, label: str) -> ConditionalFit:
    try:
        return find_maximum(part, model)
    except DisconnectedItems as error:
        raise DisconnectedItems(
            f"in the group {label!r} ({part.n_persons} persons) {error}; or use larger or fewer "
            "groups"
        ) from None


def _comparable_items(split: Split, items: tuple[str, ...], model: str) -> tuple[str, ...]:
    """Items linked in every group; dropping one can unlink another, so repeat."""
    while True:
        usable = set(items)
        for label, part in split.pairs:
            chosen = part.select(items)
            has_steps = max(chosen.steps) > 1
            usable &= set(_list_full(chosen, model)) if has_steps else _linked_items(chosen, label)
        if len(usable) == len(items):
            return items
        items = tuple(name for name in items if name in usable)
        if len(items) < 2:
            raise DisconnectedItems(
                f"only {len(items)} items have right and wrong answers, with steps all categories, "
                f"and are linked to each other in all groups ({', '.join(split.labels)}); use "
                "larger or fewer groups"
            )


def _list_full(answers: Responses, model: str) -> tuple[str, ...]:
    """Items whose steps answers can tell: all categories are used; of a rating scale two."""
    used = category_totals(answers.store) > 0
    inside = np.arange(used.shape[1]) <= np.array(answers.steps)[:, None]
    full = used.sum(axis=1) > 1 if model == RATING_SCALE else (used | ~inside).all(axis=1)
    return tuple(answers.items[i] for i in np.flatnonzero(full))


def _linked_items(part: Responses, label: str) -> set[str]:
    counts = part.count()
    _, linked, _ = classify(counts)
    if len(linked) < 2:
        raise DisconnectedItems(
            f"in the group {label!r} ({part.n_persons} persons) no two items are linked by the "
            "answers, so that it has no difficulties to compare; use larger or fewer groups"
        )
    return {counts.items[i] for i in linked}


def _join(source: Responses, split: Split, items: tuple[str, ...]) -> Responses:
    """All persons with a label, on the compared items."""
    chosen = source.select(items)
    if not split.unlabelled:
        return chosen
    labelled = {person for part in split.parts for person in part.persons}
    return take_group(chosen, np.array([person in labelled for person in source.persons]))


def _list_excluded(source: Responses, items: Sequence[str]) -> tuple[str, ...]:
    """Return the items that a test does not compare."""
    return tuple(name for name in source.items if name not in set(items))


def _tell_excluded(sentence: str, items: tuple[str, ...]) -> tuple[FitWarning, ...]:
    """Warn of items that a test does not compare, where there are some."""
    return (FitWarning(WarningKind.NOT_COMPARED, sentence, items),) if items else ()


def _tell_not_compared(excluded: tuple[str, ...], model: str) -> tuple[FitWarning, ...]:
    why = {
        RASCH: "have no right or no wrong answer or are not linked to the others",
        PARTIAL_CREDIT: "lack a category",
        RATING_SCALE: "are in one category only",
    }[model]
    sentence = (
        f"Andersen's test left out {count_of(len(excluded))}, because in at least one group these "
        f"{why}: {name_some(list(excluded))}"
    )
    return _tell_excluded(sentence, excluded)


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
        weights it is the score form of the test, with Rao and Scott's correction for the design.
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

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, part, difficulty, apart."""
        return {"item": list(self.items), **list_field_columns(self, "part", "difficulty", "apart")}


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
    if source.sample is not None:
        source = source.select_persons(source.sample.in_domain)
    usable = _list_full(source, RATING_SCALE)
    parts = _choose_parts(source, usable, split)
    chosen = choose_model(model, source.steps)
    complete = _keep_complete(source, [item for items in parts.values() for item in items], chosen)
    answers = [complete.select(items) for items in parts.values()]
    together = find_maximum(complete, chosen)
    apart = [find_maximum(part, chosen) for part in answers]
    # Free numbers of the laws of the scores and of the conditional fits, apart less together.
    highest = [sum(part.steps) for part in answers]
    laws = int(np.prod([score + 1 for score in highest])) - 1 - sum(highest)
    degrees = laws + sum(maximum.free for maximum in apart) - together.free
    excluded = _list_excluded(source, complete.items)
    warnings = _warn(source, complete, degrees, excluded)
    warn_of_dropped(warnings)
    if complete.sample is not None:
        test = compare_parts(answers, complete, chosen, degrees)
    else:
        test = _compare_part_likelihoods(answers, together, apart, degrees)
    return MartinLoefTest(
        **test,
        items=complete.items,
        part=tuple(label for label, items in parts.items() for _ in items),
        persons=complete.n_persons,
        excluded=excluded,
        warnings=tuple(warnings),
    )


def _compare_part_likelihoods(
    answers: Sequence[Responses],
    together: ConditionalFit,
    apart: Sequence[ConditionalFit],
    degrees: int,
) -> dict[str, Any]:
    scores = [part.store.person_totals()[1] for part in answers]
    gain = sum(maximum.log_likelihood for maximum in apart) - together.log_likelihood
    statistic = 2 * (gain + _score_terms(scores))
    return {
        **vars(judge_gain(statistic, degrees)),
        "difficulty": together.location,
        "apart": np.concatenate([maximum.location for maximum in apart]),
    }


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
    constant = sorted(set(full_test.items) - set(_list_full(full_test, RATING_SCALE)))
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
    warnings += _tell_excluded(sentence, excluded)
    if complete.n_persons < FEW * degrees:
        sentence = (
            f"the p-value is rough: {complete.n_persons:,} persons are few for {degrees:,} degrees "
            "of freedom; dimensionality is tested by simulation instead"
        )
        warnings.append(FitWarning(WarningKind.ROUGH, sentence))
    return warnings


@dataclass(frozen=True, eq=False)
class StepModelTest(Tabular):
    """The rating scale model within the partial credit model. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when the rating scale model holds, with as many degrees of freedom as partial
        credit has more free numbers. With weights the distances of steps are compared, with Rao and
        Scott's correction for the design; log-likelihoods are then NaN.
    models, log_likelihoods, free
        Partial credit, then rating scale: their conditional log-likelihoods, and how many numbers
        are free in each.
    items, excluded
        Items compared, and those that are not, because nobody is in one of their categories.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.wellbeing()
    >>> analysis.compare_step_models(answers).models
    ('partial-credit', 'rating-scale')
    """

    statistic: float
    degrees: int
    p_value: float
    models: tuple[str, ...]
    log_likelihoods: tuple[float, ...]
    free: tuple[int, ...]
    items: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    warnings: tuple[FitWarning, ...] = ()

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per model: model, log_likelihood, free, aic."""
        pairs = zip(self.log_likelihoods, self.free, strict=True)
        return {
            "model": list(self.models),
            "log_likelihood": list(self.log_likelihoods),
            "free": list(self.free),
            "aic": [2 * (free - value) for value, free in pairs],
        }


def compare_step_models(responses: Any, **reading: Unpack[ReadingWords]) -> StepModelTest:
    """Test whether a rating scale describes answers as well as partial credit. Confidential.

    In a rating scale the distances between the steps are the same for all items. Items with a
    category that nobody is in are left out: partial credit cannot have it, a rating scale has.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`.

    Raises
    ------
    BadUsage
        If answers are right and wrong, or items differ in their steps.
    DisconnectedItems
        If fewer than two items have answers in all categories.

    References
    ----------
    Andrich, D. (1978). A rating formulation for ordered response categories. Psychometrika 43(4),
    561-573. Masters, G. N. (1982). A Rasch model for partial credit scoring. Psychometrika 47(2),
    149-174.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.wellbeing()
    >>> test = analysis.compare_step_models(answers)
    >>> test.degrees == test.free[0] - test.free[1]
    True
    """
    source = load_answers(responses, reading)
    if source.sample is not None:
        source = source.select_persons(source.sample.in_domain)
    if max(source.steps) == 1:
        raise BadUsage(
            "partial credit and rating scale are models of answers with steps; of right and wrong "
            "answers both are the Rasch model"
        )
    items = _list_full(source, PARTIAL_CREDIT)
    if len(items) < 2:
        raise DisconnectedItems(
            f"partial credit and rating scale are compared on items with answers in all of their "
            f"categories, found {len(items)} of {source.n_items}; merge rare categories"
        )
    chosen = source.select(items)
    excluded = _list_excluded(source, items)
    models = (PARTIAL_CREDIT, RATING_SCALE)
    if chosen.sample is not None and len(set(chosen.steps)) == 1:
        parts = compare_step_distances(chosen)
    else:
        parts = _compare_step_likelihoods(chosen, models)
    sentence = (
        f"{len(excluded)} items were not compared, because nobody is in one of their categories: "
        f"{name_some(list(excluded))}"
    )
    warnings = _tell_excluded(sentence, excluded)
    warn_of_dropped(warnings)
    return StepModelTest(**parts, models=models, items=items, excluded=excluded, warnings=warnings)


def _compare_step_likelihoods(answers: Responses, models: Sequence[str]) -> dict[str, Any]:
    fits = [find_maximum(answers, model) for model in models]
    statistic = 2 * (fits[0].log_likelihood - fits[1].log_likelihood)
    degrees = fits[0].free - fits[1].free
    return {
        **vars(judge_gain(statistic, degrees)),
        "log_likelihoods": tuple(fit.log_likelihood for fit in fits),
        "free": tuple(fit.free for fit in fits),
    }
