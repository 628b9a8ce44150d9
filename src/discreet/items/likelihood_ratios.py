"""Likelihood ratio tests: Andersen, an item split by groups, partial credit against rating scale.

In: answers, and groups of persons. Out: a statistic by conditional likelihood with its degrees of
freedom and p-value. Andersen's test compares groups on all items; a split item has a column for
each group, empty for the others, while all other items hold the scale; the third test asks whether
all items share the distances between their steps. With weights there is no likelihood: the same
thresholds are compared, with Rao and Scott's correction for the design. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.answers.survey import DesignTest, apply_rao_scott
from discreet.choices import Model, PlainDict
from discreet.errors import (
    BadUsage,
    DisconnectedItems,
    FitWarning,
    NotConverged,
    WarningKind,
    warn_of_dropped,
)
from discreet.items.groups import Split, chi_squared_tail, split_groups, take_group
from discreet.models.categories import (
    PARTIAL_CREDIT,
    RASCH,
    RATING_SCALE,
    category_totals,
    choose_model,
    leave_unused,
)
from discreet.models.conditional.estimator import find_maximum
from discreet.models.conditional.maximise import ConditionalFit
from discreet.models.connectivity import classify
from discreet.tabular import Columns, Tabular
from discreet.text import count_of, name_some
from discreet.types import BoolArray, FloatArray, IndexArray


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

    def to_dict(self) -> Columns:
        """One list per column: item, and its difficulty in each group."""
        difficulties = zip(self.groups, self.difficulty.tolist(), strict=True)
        return {"item": list(self.items), **dict(difficulties)}


def run_andersen(
    responses: Responses,
    groups: object = "mean score",
    *,
    model: Model = "auto",
    keep_categories: bool = False,
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
    keep_categories
        As in :func:`discreet.fit`: categories that nobody is in keep their scores.

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
    chosen = choose_model(model, responses.steps)
    responses = responses if chosen == RATING_SCALE else leave_unused(responses, keep_categories)
    split = split_groups(responses, groups)
    items = _comparable_items(split, responses, chosen)
    answers = split.select(items)
    if responses.sample is None:
        everybody = take_group(responses.select(items), split.number >= 0)
        parts = _compare_likelihoods(everybody, answers, chosen, keep_categories)
    else:
        parts = _compare_thresholds(answers, chosen, keep_categories)
    excluded = list_excluded(responses, items)
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


def _compare_likelihoods(everybody: Responses, split: Split, model: str, keep: bool) -> PlainDict:
    together = find_maximum(everybody, model, keep)
    apart = []
    for label, part in split.pairs:
        try:
            apart.append(find_maximum(part, model, keep))
        except DisconnectedItems as error:
            raise DisconnectedItems(
                f"in the group {label!r} ({part.n_persons} persons) {error}; or use larger or "
                "fewer groups"
            ) from None
    statistic = 2 * (sum(fit.log_likelihood for fit in apart) - together.log_likelihood)
    degrees = (len(apart) - 1) * together.free
    return {
        **vars(judge_gain(statistic, degrees)),
        "difficulty": np.stack([fit.location for fit in apart]),
        "log_likelihood": together.log_likelihood,
        "log_likelihoods": tuple(fit.log_likelihood for fit in apart),
    }


def judge_gain(statistic: float, degrees: int) -> DesignTest:
    """Return the test of twice the gain of a likelihood."""
    return DesignTest(statistic, degrees, chi_squared_tail(statistic, degrees))


def _compare_thresholds(split: Split, model: str, keep: bool) -> PlainDict:
    """Test that all groups have the same thresholds, under the sampling design."""
    from discreet.models.weighted import find_weighted_maximum

    fits = [find_weighted_maximum(part, model, keep) for part in split.parts]
    deviation = [fit.sample.deviate(fit.moves) for fit in fits]
    scores = [fit.moves / np.sqrt(fit.sample.weight)[:, None] for fit in fits]
    first, *others = [score.T @ score for score in scores]
    test = apply_rao_scott(
        np.concatenate([fit.value - fits[0].value for fit in fits[1:]]),
        np.hstack([part - deviation[0] for part in deviation[1:]]),
        np.tile(first, (len(others), len(others))) + block_diag(*others),
        max(fits[0].sample.degrees, 1),
    )
    nothing = float("nan")
    likelihoods = {"log_likelihood": nothing, "log_likelihoods": (nothing,) * len(fits)}
    difficulty = np.stack([np.nanmean(fit.threshold, axis=1) for fit in fits])
    return {**vars(test), **likelihoods, "difficulty": difficulty}


def _comparable_items(split: Split, source: Responses, model: str) -> tuple[str, ...]:
    """Items linked in every group; dropping one can unlink another, so repeat."""
    items = source.items
    while True:
        usable = set(items)
        for label, part in split.pairs:
            chosen = part.select(items)
            has_steps = max(chosen.steps) > 1
            usable &= (
                set(list_full(chosen, model, source.select(items)))
                if has_steps
                else _linked_items(chosen, label)
            )
        if len(usable) == len(items):
            return items
        items = tuple(name for name in items if name in usable)
        if len(items) < 2:
            raise DisconnectedItems(
                f"only {len(items)} items have right and wrong answers, with steps all categories, "
                f"and are linked to each other in all groups ({', '.join(split.labels)}); use "
                "larger or fewer groups"
            )


def list_full(
    answers: Responses, model: str, everybody: Responses | None = None
) -> tuple[str, ...]:
    """Items whose steps answers can tell: all categories are used; of a rating scale two.

    Of a group, those categories count that ``everybody`` uses.
    """
    used = category_totals(answers.store) > 0
    needed = np.arange(used.shape[1]) <= np.array(answers.steps)[:, None]
    if everybody is not None:
        needed &= category_totals(everybody.store) > 0
    full = used.sum(axis=1) > 1 if model == RATING_SCALE else (used | ~needed).all(axis=1)
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


def list_excluded(source: Responses, items: Sequence[str]) -> tuple[str, ...]:
    """Return the items that a test does not compare."""
    return tuple(name for name in source.items if name not in set(items))


def tell_excluded(sentence: str, items: tuple[str, ...]) -> tuple[FitWarning, ...]:
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
    return tell_excluded(sentence, excluded)


@dataclass(frozen=True, eq=False)
class ItemSplit:
    """One item with thresholds of its own in every group.

    ``location`` has one number per group, ``covariance`` is theirs, and ``test`` is of equal
    thresholds in all groups.
    """

    location: FloatArray
    covariance: FloatArray
    test: DesignTest


def split_item(
    responses: Responses,
    group: IndexArray,
    item: int,
    *,
    free: BoolArray,
    model: str,
    keep: bool = False,
) -> ItemSplit | str:
    """Test one item for equal thresholds in all groups; return why not where it is impossible.

    Parameters
    ----------
    responses, group
        Answers, and the number of each person's group.
    item
        Its position.
    free
        Which other items are split too, on both sides of the test: those that are no anchors.
    model, keep
        As for :func:`discreet.fit`; whether categories that nobody is in keep their scores.

    References
    ----------
    Andersen, E. B. (1973). A goodness of fit test for the Rasch model. Psychometrika 38(1),
    123-140. Thissen, D., Steinberg, L. and Wainer, H. (1993). Detection of differential item
    functioning using the parameters of item response models. In P. W. Holland and H. Wainer (eds.),
    Differential item functioning. Erlbaum.
    """
    groups = int(group.max()) + 1
    others = free.copy()
    others[item] = False
    lacking = _name_unused_category(responses, group, item)
    if lacking:
        return lacking
    split = _split_columns(responses, group, [*np.flatnonzero(others), item])
    try:
        if responses.sample is not None:
            return _compare_columns(split, groups, model, keep)
        apart = _maximise_split(split, model, keep)
        unsplit = _split_columns(responses, group, list(np.flatnonzero(others)))
        together = _maximise_split(unsplit, model, keep)
    except (DisconnectedItems, NotConverged) as error:
        return f"not determined: {error}"
    last = slice(len(apart.location) - groups, None)
    statistic = 2 * (apart.log_likelihood - together.log_likelihood)
    test = judge_gain(statistic, apart.free - together.free)
    return ItemSplit(apart.location[last], _location_covariance(apart)[last, last], test)


def _name_unused_category(responses: Responses, group: IndexArray, item: int) -> str:
    """Say which category of an item some group does not use, although others do."""
    cells = responses.rows(0, responses.n_persons)[:, item]
    used = [set(cells[(group == label) & (cells >= 0)].tolist()) for label in np.unique(group)]
    for categories in used:
        missing = sorted(set().union(*used) - categories)
        if missing:
            return f"no answers in category {' or '.join(map(str, missing))} in one group"
    return ""


def _split_columns(responses: Responses, group: IndexArray, items: list[int]) -> Responses:
    """Split some items; the columns of each stand together, the last item's last."""
    refuse_routing(responses.routing, "splitting an item")
    cells = responses.rows(0, responses.n_persons)
    common = [column for column in range(responses.n_items) if column not in set(items)]
    parts, steps = [cells[:, common]], [responses.steps[column] for column in common]
    groups = int(group.max()) + 1
    for item in items:
        column = np.where(group[:, None] == np.arange(groups), cells[:, [item]], -1)
        parts.append(column)
        steps += [responses.steps[item]] * groups
    names, store = map(str, range(len(steps))), store_codes(np.concatenate(parts, axis=1), steps)
    return Responses(tuple(names), None, store, sample=responses.sample)


def _maximise_split(split: Responses, model: str, keep: bool) -> ConditionalFit:
    maximum = find_maximum(split, model, keep)
    if len(maximum.location) < split.n_items:
        raise DisconnectedItems("the answers of the groups do not link all items")
    return maximum


def _compare_columns(split: Responses, groups: int, model: str, keep: bool) -> ItemSplit:
    """Compare the thresholds of the last columns under the sampling design."""
    from discreet.models.weighted import find_weighted_maximum

    fitted = find_weighted_maximum(split, model, keep)
    last = slice(len(fitted.value) - groups * split.steps[-1], None)
    value = fitted.value[last].reshape(groups, -1)
    moves = fitted.moves[:, last].reshape(len(fitted.moves), groups, -1)
    test = fitted.sample.test_zero(
        (value[1:] - value[0]).ravel(), (moves[:, 1:] - moves[:, :1]).reshape(len(moves), -1)
    )
    return ItemSplit(value.mean(axis=1), fitted.sample.linearise(moves.mean(axis=2)), test)


def _location_covariance(maximum: ConditionalFit) -> FloatArray:
    """Return the covariance of the means of the items' thresholds."""
    used = np.isfinite(maximum.threshold)
    mine = np.arange(len(used))[:, None] == np.nonzero(used)[0]
    weight = mine / used.sum(axis=1, keepdims=True)
    return np.asarray(weight @ maximum.covariance @ weight.T)


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

    def to_dict(self) -> Columns:
        """One row per model: model, log_likelihood, free, aic."""
        pairs = zip(self.log_likelihoods, self.free, strict=True)
        return {
            "model": list(self.models),
            "log_likelihood": list(self.log_likelihoods),
            "free": list(self.free),
            "aic": [2 * (free - value) for value, free in pairs],
        }


def compare_step_models(responses: Responses) -> StepModelTest:
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
    if responses.sample is not None:
        responses = responses.select_persons(responses.sample.in_domain)
    if max(responses.steps) == 1:
        raise BadUsage(
            "partial credit and rating scale are models of answers with steps; of right and wrong "
            "answers both are the Rasch model"
        )
    items = list_full(responses, PARTIAL_CREDIT)
    if len(items) < 2:
        raise DisconnectedItems(
            f"partial credit and rating scale are compared on items with answers in all of their "
            f"categories, found {len(items)} of {responses.n_items}; merge rare categories"
        )
    chosen = responses.select(items)
    excluded = list_excluded(responses, items)
    models = (PARTIAL_CREDIT, RATING_SCALE)
    if chosen.sample is not None and len(set(chosen.steps)) == 1:
        parts = _compare_step_distances(chosen)
    else:
        parts = _compare_step_likelihoods(chosen, models)
    sentence = (
        f"{len(excluded)} items were not compared, because nobody is in one of their categories: "
        f"{name_some(list(excluded))}"
    )
    warnings = tell_excluded(sentence, excluded)
    warn_of_dropped(warnings)
    return StepModelTest(**parts, models=models, items=items, excluded=excluded, warnings=warnings)


def _compare_step_likelihoods(answers: Responses, models: Sequence[str]) -> PlainDict:
    fits = [find_maximum(answers, model) for model in models]
    statistic = 2 * (fits[0].log_likelihood - fits[1].log_likelihood)
    degrees = fits[0].free - fits[1].free
    return {
        **vars(judge_gain(statistic, degrees)),
        "log_likelihoods": tuple(fit.log_likelihood for fit in fits),
        "free": tuple(fit.free for fit in fits),
    }


def _compare_step_distances(answers: Responses) -> PlainDict:
    """Test that all items have the same distances of steps, under the sampling design."""
    from discreet.models.weighted import find_weighted_maximum

    fitted = find_weighted_maximum(answers, PARTIAL_CREDIT)
    items, steps = answers.n_items, answers.steps[0]

    def leave_distances(nodes: FloatArray) -> FloatArray:
        table = nodes.reshape(-1, items, steps)
        table = table - table.mean(axis=2, keepdims=True)
        return np.asarray(table - table.mean(axis=1, keepdims=True)).reshape(len(table), -1)

    test = fitted.sample.test_zero(leave_distances(fitted.value)[0], leave_distances(fitted.moves))
    free = items * steps - 1, items - 1 + steps - 1
    return {**vars(test), "log_likelihoods": (float("nan"),) * 2, "free": free}
