"""Calibrations of several periods on one scale, and a test of every item for drift.

In: calibrations with standard errors. Out: difficulties on the scale of the items without drift,
the mean ability of each period, and p-values. Nothing here sees a person.

Where items have unequal slopes, an item's difficulty in the Rasch model changes with the cohort:
about linearly in its mean ability, by another rate for every item. The rates have mean zero and
standard deviation tau, which is estimated from their robust spread beyond sampling error. An item's
difficulties then have their own variances, and tau^2 c c' for the cohort means c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import DisconnectedItems
from discreet.models.marginal.maximise import normal_grid
from discreet.results.chances import expected_scores
from discreet.scales.linking import FEWEST, usable_items
from discreet.types import BoolArray, FloatArray

#: Standard errors from the median beyond which an item does not help to find the scale at first.
FAR = 4.0
#: Larger differences between slopes are not believed: any drift between nearly equal cohorts
#: would pass for them.
LARGEST_TAU = 1.0
#: Standard deviations at which rates of change are cut off where their spread is estimated: up to
#: a third of the items may drift by any amount.
CUT = 1.5
#: Mean square of a standard normal variable that is cut off there.
CUT_SQUARE = 0.7784652
#: Logits from all difficulties within which a mean ability is looked for.
FARTHEST = 30.0


@dataclass(frozen=True, eq=False)
class PeriodTable:
    """Calibrations side by side: ``[period, item]``, NaN where there is no number.

    ``covariance`` is over the items that a calibration has, before it is brought to an origin;
    ``ability`` the mean ability of its persons on its own scale, NaN where that is not known.
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    covariance: list[FloatArray]
    degrees: FloatArray
    ability: FloatArray

    @property
    def has(self) -> BoolArray:
        """Which calibration has which item."""
        return np.isfinite(self.difficulty)

    @property
    def variance(self) -> FloatArray:
        """Variances of the difficulties, ``[period, item]``."""
        variance = np.full(self.difficulty.shape, np.nan)
        for period, covariance in enumerate(self.covariance):
            variance[period, self.has[period]] = covariance.diagonal()
        return variance


@dataclass(frozen=True, eq=False)
class PlacedTable:
    """Difficulties and their variances on one scale, ``[period, item]``.

    ``cohort_mean`` is the mean ability of each period on that scale, ``tau`` the spread of the
    items' rates of change along it; NaN and None where abilities are not known.
    """

    difficulty: FloatArray
    variance: FloatArray
    cohort_mean: FloatArray
    tau: float | None = None

    def covariance_of(self, item: int) -> FloatArray:
        """Return the covariance of an item's difficulties over the periods."""
        sampling = np.diag(self.variance[:, item])
        if self.tau is None:
            return sampling
        return np.asarray(sampling + self.tau**2 * np.outer(self.cohort_mean, self.cohort_mean))


def gather_periods(
    calibrations: list[Any], names: Sequence[str], recoded: tuple[str, ...]
) -> PeriodTable:
    """Put calibrations side by side: items that two of them have, except some."""
    tables = [usable_items(one, repr(name)) for one, name in zip(calibrations, names, strict=True)]
    times: dict[str, int] = {}
    for table in tables:
        for item in table:
            times[item] = times.get(item, 0) + 1
    items = tuple(item for item, number in times.items() if number > 1 and item not in recoded)
    difficulty = np.array([[table.get(item, (np.nan,))[0] for item in items] for table in tables])
    sources = [getattr(one, "estimate", one) for one in calibrations]
    pairs = zip(sources, tables, strict=True)
    degrees = [getattr(one, "degrees", None) for one in sources]
    return PeriodTable(
        items=items,
        difficulty=difficulty.reshape(len(tables), len(items)),
        covariance=[_covariance(one, table, items) for one, table in pairs],
        degrees=np.array([np.inf if one is None else float(one) for one in degrees]),
        ability=np.array([find_mean_ability(one) for one in sources]),
    )


def _covariance(
    estimate: Any, table: dict[str, tuple[float, float]], items: tuple[str, ...]
) -> FloatArray:
    """Return the covariance of the common items of one calibration."""
    common = [item for item in items if item in table]
    covariance = getattr(estimate, "covariance", None)
    if covariance is None:
        every = list(table)
        full_covariance = spread_errors(np.array([table[item][1] for item in every]))
    else:
        every = [estimate.items[i] for i in np.flatnonzero(estimate.estimated)]
        full_covariance = covariance
    row_of = {item: number for number, item in enumerate(every)}
    rows = [row_of[item] for item in common]
    return np.asarray(full_covariance[np.ix_(rows, rows)])


def spread_errors(se: FloatArray) -> FloatArray:
    """Return a covariance for standard errors of difficulties with mean zero.

    As if errors had been independent before the mean was taken off: then the diagonal is that of
    the standard errors, and rows add up to zero.

    Examples
    --------
    >>> spread_errors(np.array([1.0, 1.0, 1.0])).round(3).tolist()[0]
    [1.0, -0.5, -0.5]
    """
    m = len(se)
    if m < 3:
        return np.diag(se**2)
    total = float((se**2).sum()) / (1 - 1 / m)
    item_variance = np.maximum((se**2 - total / m**2) / (1 - 2 / m), 0.0)
    centre = np.eye(m) - 1 / m
    return np.asarray((centre * item_variance) @ centre)


def find_mean_ability(estimate: Any) -> float:
    """Return the mean ability of the persons behind a calibration, on its scale; else NaN.

    It is the mean of a normal distribution with standard deviation 1 that predicts as many right
    answers (points, with steps) as there were. Another standard deviation would stretch the means
    of all periods alike, and tau with them, so that no test depends on it.

    Examples
    --------
    >>> import discreet
    >>> lsat = discreet.fit(discreet.datasets.lsat())
    >>> round(find_mean_ability(lsat), 2)
    1.55
    """
    from scipy.optimize import brentq

    answers, right = (getattr(estimate, name, None) for name in ("answers", "right"))
    if answers is None or right is None:
        return float("nan")
    used = np.flatnonzero(estimate.estimated & (answers > 0))
    thresholds, total = estimate.thresholds[used], float(right[used].sum())
    nodes, log_weights = normal_grid(1.0, 1.0)
    weights = np.exp(log_weights)

    def miss(mean: float) -> float:
        return float(weights @ expected_scores(mean + nodes, thresholds) @ answers[used]) - total

    ends = np.nanmin(thresholds) - FARTHEST, np.nanmax(thresholds) + FARTHEST
    # Nobody right, or everybody: no mean predicts that.
    if not miss(ends[0]) < 0 < miss(ends[1]):
        return float("nan")
    return float(brentq(miss, *ends, xtol=1e-6))


# --- one scale --------------------------------------------------------------------------------


def find_usable(difficulty: FloatArray, variance: FloatArray) -> BoolArray:
    """Say which items are near the medians of their differences from the mean of each item."""
    change = difficulty - _average(align_medians(difficulty))
    change -= np.nanmedian(change, axis=1, keepdims=True)
    is_outlier = np.nanmax(np.abs(change) / np.sqrt(np.maximum(variance, 1e-24)), axis=0) > FAR
    enough = (~is_outlier & np.isfinite(difficulty)).sum(axis=1).min() >= FEWEST
    return ~is_outlier if enough else np.ones(len(is_outlier), dtype=bool)


def align_medians(difficulty: FloatArray) -> FloatArray:
    """Move each period by the median of its differences from those before.

    Raises
    ------
    DisconnectedItems
        If a period has no item in common with those before it.
    """
    moved = difficulty.copy()
    for period in range(1, len(moved)):
        change = _average(moved[:period]) - moved[period]
        common = change[np.isfinite(change)]
        if not len(common):
            raise DisconnectedItems(
                f"period {period + 1} in the order of time has no item in common with those before "
                "it, so that they cannot be brought to one scale. Leave it out, or begin with it"
            )
        moved[period] += np.median(common)
    return moved


def _average(values: FloatArray) -> FloatArray:
    """Return the mean of every item over the periods that have it; NaN where none has."""
    has = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(has, values, 0.0).sum(axis=0) / has.sum(axis=0))


def _place(table: PeriodTable, usable: BoolArray) -> PlacedTable:
    """Subtract from every calibration the mean of the items without drift.

    The mean is over the items that it has, with the same weights in every calibration; so that
    other items do not move it, it is that of the differences from a reference.
    """
    variance = table.variance
    weight = np.where(usable, 1 / np.maximum(_average(variance), 1e-12), 0.0)
    reference = _average(align_medians(table.difficulty))
    reference -= weight @ reference / weight.sum()
    placed, cohort_mean = table.difficulty.copy(), table.ability.copy()
    for period, covariance in enumerate(table.covariance):
        has = table.has[period]
        share = weight[has] / weight[has].sum()
        shift = share @ (table.difficulty[period, has] - reference[has])
        placed[period] -= shift
        cohort_mean[period] -= shift
        # Of (I - 1 w') C (I - 1 w')' the diagonal is all that is needed.
        along = covariance @ share
        variance[period, has] = covariance.diagonal() - 2 * along + share @ along
    return PlacedTable(placed, np.maximum(variance, 0.0), cohort_mean)


# --- the test ---------------------------------------------------------------------------------


def compare_periods(table: PeriodTable, usable: BoolArray) -> tuple[PlacedTable, FloatArray]:
    """Return the scale of the items without drift, and p-values of all items (Welch 1951).

    Of the squared differences between periods the part along the cohort means is divided by the
    larger variance that unequal slopes give it.
    """
    from scipy.special import chdtrc, fdtrc

    placed = _place(table, usable)
    has = table.has
    weight = np.where(has, 1 / np.maximum(placed.variance, 1e-24), 0.0)
    total, k = weight.sum(axis=0), has.sum(axis=0)
    values = np.where(has, placed.difficulty, 0.0)
    values = values - (weight * values).sum(axis=0) / total
    spread = (weight * values**2).sum(axis=0)
    tau, excess = _allow_for_slopes(values, weight, placed.cohort_mean)
    spread -= excess
    unsure = (np.where(has, (1 - weight / total) ** 2, 0.0) / table.degrees[:, None]).sum(axis=0)
    ratio = spread / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * unsure)
    with np.errstate(divide="ignore"):
        below = (k**2 - 1) / (3 * unsure)
    rough = fdtrc(k - 1, np.where(unsure > 0, below, 1.0), ratio)
    p = np.asarray(np.where(unsure > 0, rough, chdtrc(k - 1, spread)))
    return PlacedTable(placed.difficulty, placed.variance, placed.cohort_mean, tau), p


def _allow_for_slopes(
    values: FloatArray, weight: FloatArray, cohort_mean: FloatArray
) -> tuple[float | None, FloatArray]:
    """Return tau, and by how much it lowers the sum of squares of every item.

    Parameters
    ----------
    values, weight
        ``[period, item]``: differences from the item's weighted mean, and weights, zero where
        there is none.
    cohort_mean
        ``[period]``.
    """
    if not np.isfinite(cohort_mean).all():
        return None, np.zeros(values.shape[1])
    cohort = cohort_mean[:, None] - weight.T @ cohort_mean / weight.sum(axis=0)
    precision = (weight * cohort**2).sum(axis=0)
    rate = (weight * cohort * values).sum(axis=0) / np.maximum(precision, 1e-12)
    variance = 1 / np.maximum(precision, 1e-12)
    tau = _estimate_tau(rate, variance)
    return tau, rate**2 / variance - _square_rate(rate, variance, tau)


def _square_rate(rate: FloatArray, variance: FloatArray, tau: float) -> FloatArray:
    """Return the squared standardised rates, on the scale of chi-squared with one degree.

    Tau is an estimate from so many items. So the law is Student's, with more degrees of freedom
    where most of the variance is sampling error (Satterthwaite).
    """
    from scipy.special import chdtri, fdtrc

    square = rate**2 / (variance + tau**2)
    if tau == 0:
        return np.asarray(square)
    degrees = max(len(rate) - 1, 1) * ((variance + tau**2) / tau**2) ** 2
    return np.asarray(chdtri(1, np.maximum(fdtrc(1, degrees, square), 1e-300)))


def _estimate_tau(rate: FloatArray, variance: FloatArray) -> float:
    """Return the standard deviation of true rates: Huber's robust scale, less sampling error."""
    from scipy.optimize import brentq

    def excess(square: float) -> float:
        return float(np.minimum(rate**2 / (variance + square), CUT**2).mean()) - CUT_SQUARE

    if excess(0.0) <= 0:
        return 0.0
    if excess(LARGEST_TAU**2) >= 0:
        return LARGEST_TAU
    return float(np.sqrt(brentq(excess, 0.0, LARGEST_TAU**2, xtol=1e-10)))
