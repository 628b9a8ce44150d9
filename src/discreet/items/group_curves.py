"""Non-uniform differences between groups: an item whose curve is steeper in one group than another.

In: answers, their calibration, a column of groups. Out: :class:`GroupCurves`, for every item the
mean score of each group in classes of like ability, and a test whether what groups differ by
depends on the class. Confidential.

The test is an analysis of variance of the standardised residuals by class and group: how the
difference of the groups goes with the mean ability of a class, beyond class and group. A difference
that is the same at all abilities is in the other tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.items.groups import adjust, split_groups
from discreet.items.residuals import prepare
from discreet.results.estimate import Estimate
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import FloatArray, Int64Array

#: Persons of a class and group on average, and classes at most.
IN_CLASS, MOST_CLASSES = 30, 8


@dataclass(frozen=True, eq=False)
class GroupCurves(Tabular):
    """Curves of the items in groups, and a test of their interaction with ability. Confidential.

    Attributes
    ----------
    item, statistic, degrees, error_degrees, p_value, p_adjusted
        F values of group times ability, and their p-values; adjusted for the number of items
        (Benjamini-Hochberg). NaN where a group is in too few classes.
    groups
        Labels.
    ability, observed
        Mean ability and mean score (less the lowest) by ``[group, class, item]``; NaN where nobody
        answered.

    References
    ----------
    Andrich, D. and Marais, I. (2019). A course in Rasch measurement theory. Springer, chapter 16.
    """

    item: tuple[str, ...]
    statistic: FloatArray
    degrees: Int64Array
    error_degrees: Int64Array
    p_value: FloatArray
    p_adjusted: FloatArray
    groups: tuple[str, ...]
    ability: FloatArray
    observed: FloatArray

    def to_dict(self) -> Columns:
        """One row per item: item, statistic, degrees, error_degrees, p_value, p_adjusted."""
        names = ("statistic", "degrees", "error_degrees", "p_value", "p_adjusted")
        return {"item": list(self.item), **list_field_columns(self, *names)}


def trace_groups(responses: Responses, estimate: Estimate, column: str) -> GroupCurves:
    """Compare the curves of groups of persons.

    Raises
    ------
    BadUsage
        With weights, for which this analysis of variance has no law.
    """
    from scipy.special import fdtrc

    prepared = prepare(responses, estimate, "ml")
    prepared.refuse_weights("an analysis of variance of residuals")
    refuse_routing(responses.routing, "an analysis of variance of residuals")
    split, used = split_groups(responses, column), prepared.used
    ability = prepared.scores.ability
    kept, groups = used & (split.number >= 0), len(split.labels)
    classes = int(np.clip(kept.sum() // (IN_CLASS * groups), 2, MOST_CLASSES))
    cuts = np.quantile(ability[kept], np.arange(1, classes) / classes)
    cell = split.number * classes + np.searchsorted(cuts, np.where(used, ability, 0.0))
    sums = np.zeros((5, groups * classes, len(prepared.thresholds)))
    for chunk in prepared.chunks():
        answered = chunk.answered & kept[chunk.persons, None]
        scale = np.sqrt(np.where(answered, chunk.variance, 1.0))
        z = np.where(answered, chunk.residual / scale, 0.0)
        theta = np.where(used, ability, 0.0)[chunk.persons, None] * answered
        parts = (answered, z, z**2, np.where(answered, chunk.code, 0), theta)
        for total, part in zip(sums, parts, strict=True):
            np.add.at(total, np.where(kept, cell, 0)[chunk.persons], part)
    tests = [measure_interaction(columns, groups) for columns in sums.transpose(2, 0, 1)]
    statistic, free, left = np.array(tests).T
    p_value = fdtrc(free, left, statistic)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sums[3:] / sums[0])[::-1].reshape(2, groups, classes, -1)
    degrees = free.astype(np.int64), left.astype(np.int64)
    adjusted = adjust(p_value, "benjamini-hochberg")
    return GroupCurves(
        prepared.scores.items, statistic, *degrees, p_value, adjusted, split.labels, *means
    )


def measure_interaction(sums: FloatArray, groups: int) -> tuple[float, int, int]:
    """Return F of group times ability, and its degrees.

    ``sums`` are of the cells of group and class: answers, residuals, their squares, scores,
    abilities.
    """
    cells = np.flatnonzero(sums[0] > 0)
    count, total, square = sums[:3, cells]
    classes = sums.shape[1] // groups
    of_class = sums[[0, 4]].reshape(2, groups, classes).sum(axis=1)
    middle = (of_class[1] / np.maximum(of_class[0], 1))[cells % classes]
    group, level = np.eye(groups)[cells // classes], np.eye(classes)[cells % classes]
    additive = np.hstack([group, level])
    root, mean = np.sqrt(count), total / count
    spread, rank = [], []
    for design in (additive, np.hstack([additive, group * middle[:, None]])):
        fitted, _, own, _ = np.linalg.lstsq(design * root[:, None], mean * root, rcond=None)
        spread.append(float((count * (mean - design @ fitted) ** 2).sum()))
        rank.append(int(own))
    free, left = rank[1] - rank[0], int(count.sum()) - rank[1]
    within = float(square.sum() - (count * mean**2).sum()) + spread[1]
    if free < 1 or left < 1 or within <= 0:
        return float("nan"), max(free, 0), max(left, 0)
    return (spread[0] - spread[1]) / free / (within / left), free, left
