"""Items that move over time: several calibrations, days or months apart, and an alarm.

In: calibrations with standard errors (estimates, counts with folds, releases), in the order of
time. Out: for every item the chance of so much movement if it stood still, and an alarm that
sounds falsely in at most the given share of runs. Nothing here sees a person.

Every calibration has its own origin, so all are first brought to one: the mean of the items that
stand still. These are found against medians, which up to half of the items cannot move, and then
by the test itself, until the same items are found twice. An item is tested by Welch's analysis of
variance, which allows for standard errors that are estimates themselves (from folds); the alarm is
Holm's, over all items. Of items with steps the locations are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.analysis.equate import (
    FEWEST,
    differ_in_steps,
    find_guarantee,
    tell_other_steps,
    usable_items,
)
from discreet.counts import PairCounts
from discreet.errors import BadUsage, DisconnectedItems
from discreet.markup import Tabular, brief_repr, list_columns, name_some
from discreet.models.calibrate import fit
from discreet.privacy.accounting import Guarantee
from discreet.privacy.accounting.spend import compose_guarantees
from discreet.results.calibrated import read_calibration
from discreet.results.dropped import warn_of_dropped
from discreet.results.estimate import Kind, Notice
from discreet.types import BoolArray, FloatArray

STILL_AT = 0.01
"""Items whose movement is less likely than this by chance do not help to find the origin."""
FAR = 4.0
"""Standard errors from the median beyond which an item does not help in the first round."""
ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Drift(Tabular):
    """What moved between several calibrations.

    Attributes
    ----------
    items
        The items with a difficulty and a standard error in at least two calibrations.
    periods
        The names of the calibrations.
    difficulty, se
        ``[period, item]``, on one scale: the items that stand still have mean zero in each. NaN
        where a calibration does not have the item.
    change, change_se
        The latest difficulty minus the mean of all earlier ones.
    p_value, p_adjusted
        The chance of so much movement over all periods if the item stood still; adjusted for
        having looked at all items (Holm).
    moved
        Which items sound the alarm: ``p_adjusted`` below ``level``.
    level
        The share of runs with a false alarm, at most, if nothing moves.
    warnings
        What to look at.
    guarantee
        What holds for these numbers: that of all releases together, or None.
    """

    items: tuple[str, ...]
    periods: tuple[str, ...]
    difficulty: FloatArray
    se: FloatArray
    change: FloatArray
    change_se: FloatArray
    p_value: FloatArray
    p_adjusted: FloatArray
    moved: BoolArray
    level: float
    warnings: tuple[Notice, ...] = ()
    guarantee: Guarantee | None = None

    __repr__ = brief_repr

    @property
    def alarm(self) -> bool:
        """Whether anything moved."""
        return bool(self.moved.any())

    @property
    def moved_items(self) -> tuple[str, ...]:
        """Names of the items that moved."""
        return tuple(self.items[i] for i in np.flatnonzero(self.moved))

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, change, se, p_value, p_adjusted, moved, and each period."""
        columns = list_columns(
            self, "items", "change", "change_se", "p_value", "p_adjusted", "moved"
        )
        names = {"items": "item", "change_se": "se"}
        found = {names.get(name, name): values for name, values in columns.items()}
        return found | dict(zip(self.periods, self.difficulty.tolist(), strict=True))


def find_drift(
    calibrations: Sequence[Any], *, periods: Sequence[str] | None = None, level: float = 0.05
) -> Drift:
    """Find the items that moved between calibrations, given in the order of time.

    Parameters
    ----------
    calibrations
        Two or more estimates, counts with folds, releases or banks of different persons. Items
        are matched by name.
    periods
        Their names; by default "1", "2", ...
    level
        Largest share of runs with a false alarm, if nothing moves.

    Raises
    ------
    DisconnectedItems
        If a calibration has fewer than two items in common with the others.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> rng = np.random.default_rng(0)
    >>> monday, tuesday = (discreet.simulate(persons=500, items=8, rng=rng, difficulty=np.arange(8))
    ...                    for _ in range(2))
    >>> find_drift([discreet.fit(monday.responses), discreet.fit(tuesday.responses)]).moved_items
    ()
    """
    names = _check(calibrations, periods, level)
    known = [
        fit(one) if isinstance(one, PairCounts) else read_calibration(one) for one in calibrations
    ]
    other = differ_in_steps(known)
    table = _gather(known, names, other)
    table.check_links(names)
    place, p = _find_origin(table)
    change, change_se = _compare_latest(place.difficulty, place.variance)
    adjusted = adjust_holm(p)
    moved = adjusted < level
    guarantee = find_guarantee(known[0])
    for one in known[1:]:
        guarantee = compose_guarantees(guarantee, find_guarantee(one))
    warnings = (*tell_other_steps(other), *_warn(table.items, moved))
    warn_of_dropped(warnings)
    return Drift(
        items=table.items,
        periods=names,
        difficulty=place.difficulty,
        se=np.sqrt(place.variance),
        change=change,
        change_se=change_se,
        p_value=p,
        p_adjusted=adjusted,
        moved=moved,
        level=level,
        warnings=warnings,
        guarantee=guarantee,
    )


def _check(
    calibrations: Sequence[Any], periods: Sequence[str] | None, level: float
) -> tuple[str, ...]:
    """Return the names of the calibrations; refuse what cannot be compared."""
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.05 for 5%")
    if len(calibrations) < 2:
        raise BadUsage(
            f"drift shows between two calibrations or more, found {len(calibrations)}; give one "
            "for each day, week or month, in the order of time"
        )
    names = tuple(map(str, range(1, len(calibrations) + 1) if periods is None else periods))
    if len(names) != len(calibrations) or len(set(names)) < len(names):
        raise BadUsage(
            f"{len(calibrations)} calibrations need as many different names, found "
            f"{name_some(list(names))}"
        )
    return names


@dataclass(frozen=True, eq=False)
class _Table:
    """Calibrations side by side: ``[period, item]``, NaN where there is no number.

    ``covariance`` is over the items that a calibration has, before it is brought to an origin.
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    covariance: list[FloatArray]
    degrees: FloatArray

    @property
    def has(self) -> BoolArray:
        """Which calibration has which item."""
        return np.isfinite(self.difficulty)

    def check_links(self, names: tuple[str, ...]) -> None:
        """Refuse calibrations that share too few items with the others."""
        for name, own in zip(names, self.has.sum(axis=1), strict=True):
            if own < FEWEST:
                raise DisconnectedItems(
                    f"calibration {name} has {own} items with a difficulty and a standard error in "
                    f"common with the others; at least {FEWEST} are needed. Items are matched by "
                    "name"
                )


@dataclass(frozen=True, eq=False)
class _Placed:
    """Difficulties and their variances on one scale, ``[period, item]``."""

    difficulty: FloatArray
    variance: FloatArray


def _gather(calibrations: list[Any], names: tuple[str, ...], other: tuple[str, ...]) -> _Table:
    """Put calibrations side by side: the items that at least two of them have, but for some."""
    tables = [usable_items(one, repr(name)) for one, name in zip(calibrations, names, strict=True)]
    times: dict[str, int] = {}
    for table in tables:
        for item in table:
            times[item] = times.get(item, 0) + 1
    items = tuple(item for item, number in times.items() if number > 1 and item not in other)
    difficulty = np.array([[table.get(item, (np.nan,))[0] for item in items] for table in tables])
    covariance = [
        _covariance(getattr(one, "estimate", one), table, items)
        for one, table in zip(calibrations, tables, strict=True)
    ]
    degrees = [getattr(getattr(one, "estimate", one), "degrees", None) for one in calibrations]
    known = np.array([np.inf if one is None else float(one) for one in degrees])
    return _Table(items, difficulty.reshape(len(tables), len(items)), covariance, known)


def _covariance(
    estimate: Any, table: dict[str, tuple[float, float]], items: tuple[str, ...]
) -> FloatArray:
    """Return the covariance of the common items of one calibration."""
    wanted = [item for item in items if item in table]
    covariance = getattr(estimate, "covariance", None)
    if covariance is None:
        every = list(table)
        whole = spread_errors(np.array([table[item][1] for item in every]))
    else:
        every = [estimate.items[i] for i in np.flatnonzero(estimate.estimated)]
        whole = covariance
    place = {item: number for number, item in enumerate(every)}
    rows = [place[item] for item in wanted]
    return np.asarray(whole[np.ix_(rows, rows)])


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
    own = np.maximum((se**2 - total / m**2) / (1 - 2 / m), 0.0)
    centre = np.eye(m) - 1 / m
    return np.asarray((centre * own) @ centre)


def _find_origin(table: _Table) -> tuple[_Placed, FloatArray]:
    """Bring all calibrations to the items that stand still; return the test of every item too."""
    still = _look_for_still(table)
    for _ in range(ROUNDS):
        placed = _place(table, still)
        p = _test(placed, table.degrees)
        again = p >= STILL_AT
        # Where nearly everything moves there is no origin but all of it.
        if (again == still).all() or (again & table.has).sum(axis=1).min() < FEWEST:
            break
        still = again
    return placed, p


def _look_for_still(table: _Table) -> BoolArray:
    """Say which items are near the medians of their differences from the mean of each item."""
    reference = _average(_step(table.difficulty))
    moved = table.difficulty - reference
    moved -= np.nanmedian(moved, axis=1, keepdims=True)
    error = np.sqrt(_spread_variances(table))
    far = np.nanmax(np.abs(moved) / np.maximum(error, 1e-12), axis=0) > FAR
    enough = (~far & table.has).sum(axis=1).min() >= FEWEST
    return ~far if enough else np.ones(len(far), dtype=bool)


def _step(difficulty: FloatArray) -> FloatArray:
    """Move each calibration by the median of its differences from those before."""
    moved = difficulty.copy()
    for period in range(1, len(moved)):
        gone = _average(moved[:period]) - moved[period]
        common = gone[np.isfinite(gone)]
        if not len(common):
            raise DisconnectedItems(
                f"calibration {period + 1} in the order of time has no item in common with those "
                "before it, so that they cannot be brought to one scale. Leave it out, or begin "
                "with it"
            )
        moved[period] += np.median(common)
    return moved


def _average(values: FloatArray) -> FloatArray:
    """Return the mean of every item over the periods that have it; NaN where none has."""
    has = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(has, values, 0.0).sum(axis=0) / has.sum(axis=0))


def _spread_variances(table: _Table) -> FloatArray:
    variance = np.full(table.difficulty.shape, np.nan)
    for period, covariance in enumerate(table.covariance):
        variance[period, table.has[period]] = covariance.diagonal()
    return variance


def _place(table: _Table, still: BoolArray) -> _Placed:
    """Subtract from every calibration the mean of the items that stand still.

    The mean is over the items that it has, with the same weights in every calibration; so that
    other items do not move it, it is that of the differences from a reference.
    """
    variance = _spread_variances(table)
    weight = np.where(still, 1 / np.maximum(_average(variance), 1e-12), 0.0)
    reference = _average(_step(table.difficulty))
    reference -= weight @ reference / weight.sum()
    placed = np.full(table.difficulty.shape, np.nan)
    for period, covariance in enumerate(table.covariance):
        has = table.has[period]
        own = weight[has] / weight[has].sum()
        gone = table.difficulty[period, has] - reference[has]
        placed[period, has] = reference[has] + gone - own @ gone
        # Of (I - 1 w') C (I - 1 w')' the diagonal is all that is needed.
        along = covariance @ own
        variance[period, has] = covariance.diagonal() - 2 * along + own @ along
    return _Placed(placed, np.maximum(variance, 0.0))


def _test(placed: _Placed, degrees: FloatArray) -> FloatArray:
    """Return for every item the chance of so much movement (Welch 1951)."""
    from scipy.special import chdtrc, fdtrc

    has = np.isfinite(placed.difficulty)
    weight = np.where(has, 1 / np.maximum(placed.variance, 1e-24), 0.0)
    values = np.where(has, placed.difficulty, 0.0)
    total, k = weight.sum(axis=0), has.sum(axis=0)
    mean = (weight * values).sum(axis=0) / total
    spread = (weight * (values - mean) ** 2).sum(axis=0)
    unsure = (np.where(has, (1 - weight / total) ** 2, 0.0) / degrees[:, None]).sum(axis=0)
    ratio = spread / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * unsure)
    with np.errstate(divide="ignore"):
        below = (k**2 - 1) / (3 * unsure)
    rough = fdtrc(k - 1, np.where(unsure > 0, below, 1.0), ratio)
    return np.asarray(np.where(unsure > 0, rough, chdtrc(k - 1, spread)))


def adjust_holm(p: FloatArray) -> FloatArray:
    """Return p-values adjusted for having looked at all of them (Holm 1979).

    Examples
    --------
    >>> adjust_holm(np.array([0.04, 0.001, 0.03])).round(3).tolist()
    [0.06, 0.003, 0.06]
    """
    order = np.argsort(p)
    raised = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def _compare_latest(difficulty: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the latest difficulty of each item minus the mean of those before, and its error."""
    change, error = np.full((2, difficulty.shape[1]), np.nan)
    for item, (values, squares) in enumerate(zip(difficulty.T, variance.T, strict=True)):
        *before, last = np.flatnonzero(np.isfinite(values))
        weight = 1 / np.maximum(squares[before], 1e-24)
        change[item] = values[last] - weight @ values[before] / weight.sum()
        error[item] = np.sqrt(squares[last] + 1 / weight.sum())
    return change, error


def _warn(items: tuple[str, ...], moved: BoolArray) -> tuple[Notice, ...]:
    if not moved.any():
        return ()
    names = [items[i] for i in np.flatnonzero(moved)]
    sentence = (
        f"{len(names)} of {len(items)} items moved: {name_some(names)}. Look at what changed: "
        "wording, position, key, teaching, or that the item became known"
    )
    return (Notice(Kind.DRIFTED, sentence, names),)
