"""Items between groups of persons with equal scores: Mantel-Haenszel statistics.

In: answers and the group of each person. Out: a log odds ratio of two groups for every item, and a
test of all groups together. Confidential.

Statistics come from counts ``[stratum,
group, category]``, where a stratum is everybody who answered the same items with the same total
score, the item included. With sampling weights a count is a sum of weights, and errors come from
the design: how every person moves the statistic. With steps the odds ratio is that of neighbouring
categories: in the partial credit model it is the same at every step where the item's thresholds are
all shifted alike. With one step everything here is the statistic for two by two tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.special import stdtr

from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.answers.survey import SurveyDesign, apply_rao_scott
from discreet.errors import BadUsage
from discreet.items.groups import chi_squared_tail
from discreet.models.conditional import group_patterns
from discreet.types import FloatArray, IndexArray

#: In the place of the size of an empty stratum.
SMALLEST = 1e-12


@dataclass(frozen=True)
class CommonOdds:
    """The log odds ratio of two groups over all strata: positive where harder for the second.

    ``statistic`` is Mantel's chi-squared with one degree of freedom. NaN where no stratum compares
    the groups.
    """

    log_odds: float
    se: float
    statistic: float


@dataclass(frozen=True, eq=False)
class MatchedAnswers:
    """Answers to an item by persons of equal scores.

    Attributes
    ----------
    table
        ``[stratum, group, category]``: how many persons, with weights their sum.
    cell
        Per person who answered, the stratum, the group and the category.
    sample
        The sampling design of these persons; None without weights.
    """

    table: FloatArray
    cell: tuple[IndexArray, IndexArray, IndexArray]
    sample: SurveyDesign | None

    def compare(self, pair: Sequence[int]) -> tuple[float, float, float]:
        """Return the log odds ratio of two groups, its error and its p-value.

        With weights the error is that of the design, and the p-value is Student's.
        """
        odds = compare_two(self.table[:, pair])
        if self.sample is None:
            return odds.log_odds, odds.se, chi_squared_tail(odds.statistic, 1)
        influence = np.zeros_like(self.table)
        influence[:, pair] = _find_influence(self.table[:, pair])
        se = float(np.linalg.norm(self._deviate(influence)))
        degrees = max(self.sample.degrees, 1)
        return odds.log_odds, se, float(2 * stdtr(degrees, -abs(odds.log_odds) / se))

    def compare_all(self) -> tuple[float, int, float]:
        """Return the test of all groups: statistic, degrees of freedom and p-value.

        With weights it has Rao and Scott's correction for the design.
        """
        if self.sample is None:
            statistic, number = compare_all(self.table)
            return statistic, number, chi_squared_tail(statistic, number) if number else np.nan
        distance, working = _measure_association(self.table, correction=0.0)
        total = self.table.sum(axis=(1, 2))[:, None, None]
        shares = [self.table.sum(axis=axis)[:, None] / total for axis in (2, 1)]
        group, category = (np.eye(share.shape[2]) - share for share in shares)
        influence = np.einsum("sag,sbc->sabgc", group[..., :-1], category[..., :-1])
        degrees = max(self.sample.degrees, 1)
        test = apply_rao_scott(distance, self._deviate(influence), working, degrees)
        return astuple(test)

    def _deviate(self, influence: FloatArray) -> FloatArray:
        """Return what the covariance is made of, from ``[stratum, group, category, ...]``."""
        if self.sample is None:
            raise BadUsage("these answers have no design")
        person_influence = influence[self.cell].reshape(len(self.cell[0]), -1)
        return self.sample.deviate(self.sample.weight[:, None] * person_influence)


def match_scores(
    responses: Responses, group: IndexArray, anchors: IndexArray
) -> Iterator[MatchedAnswers]:
    """Yield for every item the answers of persons with equal scores.

    Parameters
    ----------
    responses
        The answers.
    group
        Number of each person's group; below 0 for persons without one.
    anchors
        Items whose sum is the score; the item itself is always among them.
    """
    refuse_routing(responses.routing, "the test 'mantel-haenszel'")
    cells = responses.rows(0, responses.n_persons)
    together = group_patterns(responses.store, anchors)
    is_anchor = np.isin(np.arange(responses.n_items), anchors)
    for item in range(responses.n_items):
        entry = together.entry
        if not is_anchor[item]:
            entry = group_patterns(responses.store, np.union1d(anchors, [item])).entry
        chosen = np.flatnonzero((cells[:, item] >= 0) & (group >= 0))
        stratum = np.unique(entry[chosen], return_inverse=True)[1].reshape(-1)
        cell = stratum, group[chosen], cells[chosen, item].astype(np.intp)
        shape = int(stratum.max(initial=-1)) + 1, int(group.max()) + 1, responses.steps[item] + 1
        sample = None if responses.sample is None else responses.sample.take(chosen)
        weight = None if sample is None else sample.weight
        position = np.ravel_multi_index(cell, shape)
        table = np.bincount(position, weight, np.prod(shape)).reshape(shape).astype(float)
        yield MatchedAnswers(table, cell, sample)


def compare_two(table: FloatArray) -> CommonOdds:
    """Compare the first group of ``[stratum, 2, category]`` with the second.

    References
    ----------
    Mantel, N. and Haenszel, W. (1959). Statistical aspects of the analysis of data from
    retrospective studies of disease. Journal of the National Cancer Institute 22, 719-748. Mantel,
    N. (1963). Chi-square tests with one degree of freedom: extensions of the Mantel-Haenszel
    procedure. Journal of the American Statistical Association 58, 690-700. Robins, J., Breslow, N.
    and Greenland, S. (1986). Estimators of the Mantel-Haenszel variance consistent in both sparse
    data and large-strata limiting models. Biometrics 42, 311-323.
    """
    table = table[(table.sum(axis=2) > 0).all(axis=1)]
    total = table.sum(axis=(1, 2))
    first, second = table[:, 0], table[:, 1]
    up = (first[:, 1:] * second[:, :-1]).sum(axis=1) / total
    down = (first[:, :-1] * second[:, 1:]).sum(axis=1) / total
    if not (up.sum() > 0 and down.sum() > 0):
        return CommonOdds(float("nan"), float("nan"), float("nan"))
    odds = float(up.sum() / down.sum())
    error = _one_step_variance if table.shape[2] == 2 else _step_variance
    variance = error(first, second, odds) / up.sum() ** 2
    return CommonOdds(float(np.log(odds)), float(np.sqrt(variance)), _mantel(table))


def _shift(counts: FloatArray, by: int) -> FloatArray:
    """Return the counts of the category so many lower, ``[stratum, category]``."""
    return np.pad(counts, ((0, 0), (1, 1)))[:, 1 - by : 1 - by + counts.shape[1]]


def _find_influence(table: FloatArray) -> FloatArray:
    """Return how the log odds ratio moves with the weight of a cell, ``[stratum, 2, category]``."""
    first, second = table[:, 0], table[:, 1]
    total = np.maximum(table.sum(axis=(1, 2)), SMALLEST)[:, None, None]
    influence = np.zeros_like(table)
    for sign in (1, -1):
        # What a person adds to the sum over pairs, by its category: of the first group, the second.
        partners = np.stack([_shift(second, sign), _shift(first, -sign)], axis=1) / total
        pairs = (partners[:, 0] * first).sum(axis=1)
        influence += sign * (partners - pairs[:, None, None] / total) / pairs.sum()
    return influence


def _one_step_variance(first: FloatArray, second: FloatArray, odds: float) -> float:
    """Robins, Breslow and Greenland's variance of ``up - odds * down``, of right and wrong."""
    total = (first + second).sum(axis=1)
    up, down = first[:, 1] * second[:, 0] / total, first[:, 0] * second[:, 1] / total
    agree, differ = (first[:, 1] + second[:, 0]) / total, (first[:, 0] + second[:, 1]) / total
    return float(((up + odds * down) * (agree + odds * differ)).sum() / 2)


def _step_variance(first: FloatArray, second: FloatArray, odds: float) -> float:
    """Return the variance of ``up - odds * down`` with several steps.

    It is a sum over pairs of persons of both groups, whose terms have mean zero under the model: 1
    where the first one's category is the next higher, -odds where it is the next lower. Pairs that
    share a person are correlated, so that with row sums, column sums and single terms ``h`` the
    variance is that of ``sum_a h_a.^2 + sum_b h_.b^2 - sum_ab h_ab^2``, without bias in strata of
    any size.
    """
    below, above = _shift(second, 1), _shift(second, -1)
    lower, higher = _shift(first, 1), _shift(first, -1)
    rows = (first * (below - odds * above) ** 2).sum(axis=1)
    columns = (second * (higher - odds * lower) ** 2).sum(axis=1)
    single = (first * (below + odds**2 * above)).sum(axis=1)
    total = (first + second).sum(axis=1)
    return float(((rows + columns - single) / total**2).sum())


def _mantel(table: FloatArray) -> float:
    """Return Mantel's chi-squared; of right and wrong answers with the continuity correction."""
    category = np.arange(table.shape[2])
    total, sizes = table.sum(axis=(1, 2)), table.sum(axis=2)
    margin = table.sum(axis=1)
    mean, square = margin @ category / total, margin @ category**2 / total
    expected = (sizes[:, 0] * mean).sum()
    spread = np.maximum(square - mean**2, 0.0) * total / np.maximum(total - 1, 1)
    variance = (sizes[:, 0] * sizes[:, 1] / total * spread).sum()
    distance = abs(float((table[:, 0] @ category).sum() - expected))
    if table.shape[2] == 2:
        distance = max(distance - 0.5, 0.0)
    return distance**2 / variance if variance > 0 else float("nan")


def _measure_association(
    table: FloatArray, correction: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return the sums over strata of observed less expected counts, and their covariance.

    The last group and the last category follow from the others and are left out. ``correction`` is
    taken from the size of a stratum; sums of weights are no sizes and have none.
    """
    total = table.sum(axis=(1, 2))
    sizes, margins = table.sum(axis=2)[:, :-1], table.sum(axis=1)[:, :-1]
    expected = sizes[:, :, None] * margins[:, None, :] / total[:, None, None]
    distance = (table[:, :-1, :-1] - expected).sum(axis=0).ravel()
    rows, columns = (
        total[:, None, None] * (part[:, :, None] * np.eye(part.shape[1]))
        - part[:, :, None] * part[:, None, :]
        for part in (sizes, margins)
    )
    inside = total > correction
    scale = inside / (total**2 * np.where(inside, total - correction, 1.0))
    covariance = np.einsum("s,sgh,scd->gchd", scale, rows, columns)
    return distance, covariance.reshape(len(distance), len(distance))


def compare_all(table: FloatArray) -> tuple[float, int]:
    """Return the generalised chi-squared of ``[stratum, group, category]``, and its degrees.

    Categories are not ordered here: any difference between groups counts.

    References
    ----------
    Landis, J. R., Heyman, E. R. and Koch, G. G. (1978). Average partial association in three-way
    contingency tables. International Statistical Review 46, 237-254. Somes, G. W. (1986). The
    generalized Mantel-Haenszel statistic. The American Statistician 40, 106-108.
    """
    distance, covariance = _measure_association(table)
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True))
    if not degrees:
        return float("nan"), 0
    return float(distance @ np.linalg.pinv(covariance, hermitian=True) @ distance), degrees
