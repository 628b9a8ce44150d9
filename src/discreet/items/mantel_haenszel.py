"""Mantel-Haenszel statistics: answers of groups to one item, at equal total scores.

In: counts ``[stratum, group, category]``, where a stratum is everybody who answered the same items
with the same total score, the item included. Out: the common log odds ratio of two groups with its
error, Mantel's test, and the generalised test of all groups and categories. Confidential.

With steps the odds ratio is that of neighbouring categories: in the partial credit model it is the
same at every step where the item's thresholds are all shifted alike. With one step everything here
is the statistic for two by two tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.responses import Responses
from discreet.models.conditional.patterns import group_patterns
from discreet.types import FloatArray, IndexArray


@dataclass(frozen=True)
class CommonOdds:
    """The log odds ratio of two groups over all strata: positive where harder for the second.

    ``statistic`` is Mantel's chi-squared with one degree of freedom. NaN where no stratum compares
    the groups.
    """

    log_odds: float
    se: float
    statistic: float


def count_strata(responses: Responses, group: IndexArray, anchors: IndexArray) -> list[FloatArray]:
    """Return for every item the counts ``[stratum, group, category]``.

    Parameters
    ----------
    responses
        The answers.
    group
        Number of each person's group; below 0 for persons without one.
    anchors
        Items whose sum is the score; the item itself is always among them.
    """
    cells = responses.rows(0, responses.n_persons)
    tables = []
    for item in range(responses.n_items):
        matched = np.union1d(anchors, [item])
        entry = group_patterns(responses.store, matched).entry
        chosen = np.flatnonzero((cells[:, item] >= 0) & (group >= 0))
        stratum = np.unique(entry[chosen], return_inverse=True)[1].reshape(-1)
        shape = int(stratum.max(initial=-1)) + 1, int(group.max()) + 1, responses.steps[item] + 1
        position = np.ravel_multi_index((stratum, group[chosen], cells[chosen, item]), shape)
        tables.append(np.bincount(position, minlength=np.prod(shape)).reshape(shape).astype(float))
    return tables


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
    below, above = np.pad(second, ((0, 0), (1, 1)))[:, :-2], np.pad(second, ((0, 0), (1, 1)))[:, 2:]
    lower, higher = np.pad(first, ((0, 0), (1, 1)))[:, :-2], np.pad(first, ((0, 0), (1, 1)))[:, 2:]
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


def compare_all(table: FloatArray) -> tuple[float, int]:
    """Return the generalised chi-squared of ``[stratum, group, category]``, and its degrees.

    Categories are not ordered here: any difference between groups counts.

    References
    ----------
    Landis, J. R., Heyman, E. R. and Koch, G. G. (1978). Average partial association in three-way
    contingency tables. International Statistical Review 46, 237-254. Somes, G. W. (1986). The
    generalized Mantel-Haenszel statistic. The American Statistician 40, 106-108.
    """
    total = table.sum(axis=(1, 2))
    table, total = table[total > 1], total[total > 1]
    sizes, margins = table.sum(axis=2), table.sum(axis=1)
    distance = (table - sizes[:, :, None] * margins[:, None, :] / total[:, None, None]).sum(axis=0)
    rows, columns = (
        total[:, None, None] * (part[:, :, None] * np.eye(part.shape[1]))
        - part[:, :, None] * part[:, None, :]
        for part in (sizes, margins)
    )
    scale = 1 / (total**2 * (total - 1))
    covariance = np.einsum("s,sgh,scd->gchd", scale, rows, columns)
    # The last group and the last category follow from the others.
    cells = distance[:-1, :-1]
    matrix = covariance[:-1, :-1, :-1, :-1].reshape(cells.size, cells.size)
    degrees = int(np.linalg.matrix_rank(matrix, hermitian=True))
    if not degrees:
        return float("nan"), 0
    inverse = np.linalg.pinv(matrix, hermitian=True)
    return float(cells.ravel() @ inverse @ cells.ravel()), degrees
