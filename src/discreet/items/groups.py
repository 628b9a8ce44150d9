"""Groups of persons: splitting answers, mean abilities, and p-values of many tests at once.

In: answers and a way to split them (a column, labels, score). Out: one part of the answers for
each group with a warning about persons without a label; mean abilities with errors of the sampling
design; adjusted p-values. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.answers.survey import DesignTest, SurveyDesign, apply_rao_scott
from discreet.choices import Adjustment
from discreet.errors import BadResponses, BadUsage, FitWarning, WarningKind
from discreet.persons.scoring import score
from discreet.results.calibrated import Calibration
from discreet.results.estimate import two_sided_quantile
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array, Texts

SCORE_SPLITS = ("mean score", "median score")
LOW_HIGH = ("low score", "high score")
#: How missing labels look as text.
MISSING = ("", "nan", "None", "NaN", "<NA>", "NaT")
#: Cells looked at together: 4 MB.
CHUNK_CELLS = 1 << 22


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


def split_groups(responses: Responses, groups: object) -> Split:
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
        Persons of a routed test are split path by path.

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
    if responses.sample is not None:
        number[responses.sample.weight == 0] = -1  # outside the domain
    parts = tuple(take_group(responses, number == position) for position in range(len(names)))
    return Split(names, parts, missing, warnings, number)


def _label_persons(responses: Responses, groups: object) -> Texts:
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
    if not scored.any():
        raise BadResponses(
            f"none of the {len(value)} persons has an answer, so there is no {split} to split by"
        )
    sample = responses.sample
    weight = np.ones(len(value)) if sample is None else sample.weight
    find_middle = np.average if split == SCORE_SPLITS[0] else _find_median
    routing, middle = responses.routing, np.empty(len(value))
    path = np.zeros(len(value), np.intp) if routing is None else routing.path
    for own in np.unique(path[scored]):
        chosen = scored & (path == own)
        middle[path == own] = find_middle(value[chosen], weights=weight[chosen])
    labels = np.array(LOW_HIGH, dtype=object)[(value > middle).astype(np.intp)]
    labels[~scored] = ""
    return labels


def _find_median(value: FloatArray, *, weights: FloatArray) -> float:
    """Return the middle of some numbers, each of which counts as often as its weight says."""
    order = np.argsort(value)
    below = np.cumsum(weights[order])
    ends = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(value[order][np.minimum(ends, len(value) - 1)].mean())


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
    positions = np.flatnonzero(chosen)
    store = responses.store.pick(positions)
    sample = None if responses.sample is None else responses.sample.take(positions)
    persons, reading = responses.persons[chosen], responses.reading
    routing = None if responses.routing is None else responses.routing.take(positions)
    return Responses(
        responses.items, persons, store, reading=reading, sample=sample, routing=routing
    )


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


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """Return how likely chance makes a statistic of this size or larger."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))


#: A group of fewer is warned about: the standard error of a difficulty is then 0.4 or more.
FEW_PERSONS = 30


def warn_of_small_groups(split: Split) -> tuple[FitWarning, ...]:
    """Warn about groups whose difficulties are known too poorly to be compared."""
    sizes = [(label, part.n_persons) for label, part in zip(split.labels, split.parts, strict=True)]
    small = [f"{label} ({persons})" for label, persons in sizes if persons < FEW_PERSONS]
    if not small:
        return ()
    sentence = (
        f"fewer than {FEW_PERSONS} persons in {', '.join(small)}: differences between such groups "
        "are mostly chance, and large ones are missed; join groups, or collect more answers"
    )
    return (FitWarning(WarningKind.SMALL_GROUP, sentence),)


MEAN_COLUMNS = ("group", "persons", "share", "mean", "se", "lower", "upper", "sd")


@dataclass(frozen=True, eq=False)
class GroupMeans(Tabular):
    """Mean abilities of groups. Confidential.

    Attributes
    ----------
    group, persons
        Labels, and how many persons have an ability.
    share
        Share of the population, by the weights; of the sample without weights.
    mean, se, lower, upper
        In logits, with 95% intervals by Student's distribution.
    sd
        Of the estimated abilities; their errors of measurement are in it.
    covariance, degrees
        Of the means, and its degrees of freedom. Groups of one sample share primary sampling units,
        so that their means are correlated.
    test
        Of equal means of all groups, with Rao and Scott's correction for the design.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> means = find_group_means(answers, discreet.fit(answers), ["a", "b"] * 500)
    >>> means.mean.round(2).tolist()
    [1.33, 1.34]
    """

    group: tuple[str, ...]
    persons: Int64Array
    share: FloatArray
    mean: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    sd: FloatArray
    covariance: FloatArray
    degrees: int
    test: DesignTest
    warnings: tuple[FitWarning, ...] = ()

    def to_dict(self) -> Columns:
        """One list per column."""
        return {"group": list(self.group), **list_field_columns(self, *MEAN_COLUMNS[1:])}

    def compare(self, first: str, second: str) -> tuple[float, float, float]:
        """Return the second mean less the first, its error and its p-value."""
        from scipy.special import stdtr

        for label in (first, second):
            if label not in self.group:
                raise BadUsage(f"there is no group {label!r}; choose among {', '.join(self.group)}")
        sign = np.array([(label == second) * 1.0 - (label == first) for label in self.group])
        difference = float(sign @ self.mean)
        se = float(np.sqrt(sign @ self.covariance @ sign))
        return difference, se, float(2 * stdtr(self.degrees, -abs(difference / se)))


def find_group_means(responses: Responses, calibration: Calibration, groups: object) -> GroupMeans:
    """Estimate the mean ability of every group. Confidential.

    Abilities are weighted likelihood estimates (Warm 1989), nearly unbiased for every person, and
    so are their means. Difficulties are taken as known. With weights the means are those of the
    population (:meth:`discreet.Responses.weigh`), and errors come from the design; without, persons
    are a simple random sample.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    groups
        The name of a group column, one label for each person, or a mapping from person to label.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> means = find_group_means(answers, discreet.fit(answers), ["a", "b"] * 500)
    >>> means.persons.tolist()
    [500, 500]
    """
    split = split_groups(responses, groups)
    ability = score(responses, calibration, method="warm").ability
    sample = responses.sample or SurveyDesign.simple(responses.n_persons)
    number = np.where(np.isfinite(ability), split.number, -1)
    inside = number[:, None] == np.arange(len(split.labels))
    persons = inside.sum(axis=0)
    if (persons < 2).any():
        lacking = split.labels[int(np.argmin(persons))]
        raise BadUsage(
            f"the group {lacking!r} has {persons.min()} persons with an ability; a mean with its "
            "error needs two. Join it with another group, or leave its labels blank"
        )
    weight = inside * sample.weight[:, None]
    total = weight.sum(axis=0)
    known = np.where(np.isfinite(ability), ability, 0.0)
    mean = known @ weight / total
    moves = weight * (known[:, None] - mean) / total
    variance = (moves * (known[:, None] - mean)).sum(axis=0) * persons / (persons - 1)
    deviation = sample.deviate(moves)
    covariance = deviation.T @ deviation
    degrees = max(sample.degrees, 1)
    se = np.sqrt(covariance.diagonal())
    half = two_sided_quantile(0.05, degrees) * se
    spread = variance / persons
    test = apply_rao_scott(
        mean[1:] - mean[0],
        deviation[:, 1:] - deviation[:, [0]],
        np.diag(spread[1:]) + spread[0],
        degrees,
    )
    about = split.labels, persons, total / total.sum(), mean, se, mean - half, mean + half
    return GroupMeans(*about, np.sqrt(variance), covariance, degrees, test, split.warnings)
