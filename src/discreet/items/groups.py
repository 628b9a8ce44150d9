"""Groups of persons: splitting answers, Andersen's test of equal difficulties, many tests at once.

In: answers and a way to split them (a column, labels, score). Out: one part of the answers for
each group with a warning about persons without a label; one likelihood ratio test for all items;
adjusted p-values. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.opening import load_answers, name_model
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.conditional.estimator import find_maximum
from discreet.models.conditional.maximise import ConditionalFit
from discreet.models.item_parameters import (
    PARTIAL_CREDIT,
    RASCH,
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
from discreet.text import count_of, name_some
from discreet.types import (
    Adjustment,
    BoolArray,
    FloatArray,
    IndexArray,
    Int64Array,
    Model,
    Texts,
)

SCORE_SPLITS = ("mean score", "median score")
LOW_HIGH = ("low score", "high score")
MISSING = ("", "nan", "None", "NaN", "<NA>", "NaT")
"""How missing labels look as text."""
CHUNK_CELLS = 1 << 22
"""Cells looked at together: 4 MB."""


@dataclass(frozen=True, eq=False)
class Split:
    """Answers in groups, labels sorted (low scores first).

    Attributes
    ----------
    labels, parts
        Names of the groups and their answers.
    unlabelled
        Persons who belong to no group.
    warnings
        A sentence about them.
    number
        Per person the position of the group; -1 for those without one.
    """

    labels: tuple[str, ...]
    parts: tuple[Responses, ...]
    unlabelled: int
    warnings: tuple[FitWarning, ...]
    number: IndexArray

    @property
    def pairs(self) -> list[tuple[str, Responses]]:
        """Every group with its answers."""
        return list(zip(self.labels, self.parts, strict=True))

    def select(self, items: Sequence[str]) -> Split:
        """Return the same groups with their answers to some of the items."""
        return replace(self, parts=tuple(part.select(items) for part in self.parts))


def split_groups(responses: Responses, groups: Any) -> Split:
    """Split answers into groups of persons.

    Parameters
    ----------
    responses
        The answers.
    groups
        The name of a group column of the answers; ``"mean score"`` or ``"median score"`` (low:
        at most that; high: above); one label for each person, where None, NaN and "" mean unknown;
        or a mapping from person to label. Where some answers are missing, the score is the mean
        item score: the score as a share of the highest one on the items that the person answered.

    Raises
    ------
    BadUsage
        If there is no such column, the number of labels is wrong, or there is one group only.
    """
    labels = _label_persons(responses, groups)
    labelled = np.array([label not in MISSING for label in labels], dtype=bool)
    levels = {str(label) for label in labels[labelled]}
    by_score = isinstance(groups, str) and groups not in responses.groups
    names = tuple(label for label in LOW_HIGH if label in levels) if by_score else ()
    names = names or tuple(sorted(levels))
    missing = int((~labelled).sum())
    if len(names) < 2:
        raise BadUsage(
            f"comparing groups needs two groups or more, found {len(names)} "
            f"({', '.join(names) or 'no labels at all'}; {missing} of {len(labels)} persons "
            "have no label)"
        )
    sentence = f"{missing} persons without a group label were left out"
    warnings = (FitWarning(WarningKind.NO_LABEL, sentence),) if missing else ()
    number = np.full(len(labels), -1)
    for position, name in enumerate(names):
        number[labels == name] = position
    parts = tuple(take_group(responses, number == position) for position in range(len(names)))
    return Split(names, parts, missing, warnings, number)


def load_grouped(responses: Any, groups: Any, words: ReadingWords) -> Responses:
    """Return answers in memory, with the group column that is asked for."""
    is_column = isinstance(groups, str) and groups not in SCORE_SPLITS
    source = load_answers(responses, words, group=groups if is_column else ())
    refuse_weights(source.sample, "a test of group differences by chi-squared", PSEUDO_LIKELIHOOD)
    return source


def _label_persons(responses: Responses, groups: Any) -> Texts:
    if isinstance(groups, str):
        if groups in responses.groups:
            return np.array([str(label) for label in responses.groups[groups]], dtype=object)
        if groups in SCORE_SPLITS:
            return _label_by_score(responses, groups)
        have = ", ".join(responses.groups) or "none"
        raise BadUsage(
            f"the answers have no group column {groups!r} (they have: {have}); name one when "
            f"reading them, or split by one of: {', '.join(SCORE_SPLITS)}"
        )
    if not isinstance(groups, Iterable):
        raise BadUsage(
            "groups are the name of a column, one label for each person, or a mapping from person "
            f"to label, found {groups!r}"
        )
    if isinstance(groups, Mapping):
        label_of = {str(person): label for person, label in groups.items()}
        unknown = sorted(label_of.keys() - set(map(str, responses.persons)))
        if unknown:
            raise BadUsage(f"the answers have no person {unknown[0]!r}; groups go by person id")
        groups = [label_of.get(str(person)) for person in responses.persons]
    labels = np.array(["" if label is None else str(label) for label in groups], dtype=object)
    if len(labels) != responses.n_persons:
        raise BadUsage(
            f"groups need one label for each of the {responses.n_persons} persons, found "
            f"{len(labels)}"
        )
    return labels


def _label_by_score(responses: Responses, split: str) -> Texts:
    """Label low and high scorers; a person without answers gets no label."""
    value = _mean_item_scores(responses)
    scored = ~np.isnan(value)
    middle = np.mean(value[scored]) if split == SCORE_SPLITS[0] else np.median(value[scored])
    labels = np.array(LOW_HIGH, dtype=object)[(value > middle).astype(np.intp)]
    labels[~scored] = ""
    return labels


def _mean_item_scores(responses: Responses) -> FloatArray:
    """Return every person's score; with gaps, as a share of the points of the answered items.

    Where all items have the same number of steps, that share is the mean item score up to a
    constant. NaN without an answer.
    """
    answered, score = responses.store.person_totals()
    if (answered == responses.n_items).all():
        return score.astype(np.float64)
    steps = np.array(responses.steps)
    points = answered * steps[0] if np.ptp(steps) == 0 else _count_points(responses, steps)
    share = np.full(len(score), np.nan)
    return np.asarray(np.divide(score, points, out=share, where=answered > 0))


def _count_points(responses: Responses, steps: IndexArray) -> Int64Array:
    """Return the highest score that each person could have on the items answered."""
    size = max(1, CHUNK_CELLS // responses.n_items)
    starts = range(0, responses.n_persons, size)
    rows = (responses.rows(start, start + size) >= 0 for start in starts)
    return np.concatenate([answered @ steps for answered in rows])


def take_group(responses: Responses, chosen: BoolArray) -> Responses:
    """Return the answers of some of the persons."""
    store = responses.store.pick(np.flatnonzero(chosen))
    return Responses(responses.items, responses.persons[chosen], store, lowest=responses.lowest)


ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)


def adjust(p_value: npt.ArrayLike, method: Adjustment) -> FloatArray:
    """Adjust p-values for their number.

    Parameters
    ----------
    p_value
        NaN where there was no test; such places do not count.
    method
        ``"benjamini-hochberg"`` bounds the expected share of false alarms among the alarms,
        ``"holm"`` the probability of any false alarm, ``"none"`` changes nothing.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjust([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    if method not in ADJUSTMENTS:
        raise BadUsage(f"adjustment must be one of {', '.join(ADJUSTMENTS)}; found {method!r}")
    p = np.array(p_value, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    if method == "none" or not len(tested):
        return p
    order = tested[np.argsort(p[tested], kind="stable")]
    n = len(order)
    rank = np.arange(1, n + 1)
    if method == "holm":
        p[order] = np.minimum(np.maximum.accumulate(p[order] * (n - rank + 1)), 1.0)
    else:
        scaled = p[order] * n / rank
        p[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return p


@dataclass(frozen=True, eq=False)
class AndersenTest(Tabular):
    """Conditional likelihood of the groups apart against all together. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when the model holds, with ``(groups - 1) (items - 1)`` degrees of freedom;
        with steps there are as many as numbers that are free, in each group but one.
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

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, and its difficulty in each group."""
        columns: dict[str, list[Any]] = {"item": list(self.items)}
        for label, values in zip(self.groups, self.difficulty, strict=True):
            columns[label] = values.tolist()
        return columns


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
    source = load_grouped(responses, groups, name_model(responses, model, reading))
    chosen = choose_model(model, source.steps)
    source = source if chosen == RATING_SCALE else leave_unused(source)
    split = split_groups(source, groups)
    items = _comparable_items(split, source.items, chosen)
    together = find_maximum(_join(source, split, items), chosen)
    apart = [_maximise_group(part.select(items), chosen, label) for label, part in split.pairs]
    statistic = 2 * (sum(fit.log_likelihood for fit in apart) - together.log_likelihood)
    degrees = (len(apart) - 1) * together.free
    excluded = tuple(name for name in source.items if name not in set(items))
    warnings = (*split.warnings, *_exclusion_warning(excluded, chosen))
    warn_of_dropped(warnings)
    return AndersenTest(
        statistic=statistic,
        degrees=degrees,
        p_value=chi_squared_tail(statistic, degrees),
        groups=split.labels,
        persons=tuple(part.n_persons for part in split.parts),
        items=items,
        difficulty=np.stack([fit.location for fit in apart]),
        excluded=excluded,
        log_likelihood=together.log_likelihood,
        log_likelihoods=tuple(fit.log_likelihood for fit in apart),
        warnings=warnings,
        split=groups if isinstance(groups, str) else "given labels",
    )


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
            usable &= _full_items(chosen, model) if has_steps else _linked_items(chosen, label)
        if len(usable) == len(items):
            return items
        items = tuple(name for name in items if name in usable)
        if len(items) < 2:
            raise DisconnectedItems(
                f"only {len(items)} items have right and wrong answers, with steps all categories, "
                f"and are linked to each other in all groups ({', '.join(split.labels)}); use "
                "larger or fewer groups"
            )


def _full_items(part: Responses, model: str) -> set[str]:
    """Items whose steps a group can have: it is in all categories; of a rating scale in two."""
    used = category_totals(part.store) > 0
    inside = np.arange(used.shape[1]) <= np.array(part.steps)[:, None]
    full = used.sum(axis=1) > 1 if model == RATING_SCALE else (used | ~inside).all(axis=1)
    return {part.items[i] for i in np.flatnonzero(full)}


def _linked_items(part: Responses, label: str) -> set[str]:
    from discreet.answers.opening import count_pairs
    from discreet.models.connectivity import classify

    counts = count_pairs(part)
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


def _exclusion_warning(excluded: tuple[str, ...], model: str) -> tuple[FitWarning, ...]:
    if not excluded:
        return ()
    why = {
        RASCH: "have no right or no wrong answer or are not linked to the others",
        PARTIAL_CREDIT: "lack a category",
        RATING_SCALE: "are in one category only",
    }[model]
    sentence = (
        f"Andersen's test left out {count_of(len(excluded))}, because in at least one group these "
        f"{why}: {name_some(list(excluded))}"
    )
    return (FitWarning(WarningKind.NOT_COMPARED, sentence, excluded),)


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """Return how likely chance makes a statistic of this size or larger."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))
