"""Items that drift: compare several periods, days or months apart, and raise an alarm.

In: the answers of every period, or a calibration of every period with standard errors (estimates,
counts with folds, releases), in the order of time. Out: for every item a p-value of so much change
without drift, and an alarm with a stated rate of false alarms.

Real items have unequal slopes, and real cohorts differ. Then the difficulties of the Rasch model
change from cohort to cohort although no item drifts: an item with a steep slope looks easier to an
abler cohort. Both tests allow for that.

From answers: a marginal fit with a slope for every item, and mean and standard deviation of the
abilities in every period; each item then has the score test of its shifts
(:mod:`discreet.scales.slopes`). From calibrations: Welch's analysis of variance, which allows for
standard errors that are estimates themselves (from folds), with a variance added along the cohort
means, as large as the spread of the items' changes along them says. The alarm is Holm's, over all
items. The scale is that of the items without drift. They are first found against medians, which up
to half of the items cannot move, then by the test itself, until the same items are found again. Of
items with steps the locations are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.coding.agreement import check_alike, find_reading
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind, warn_of_dropped
from discreet.items.groups import adjust
from discreet.models.categories import leave_unused
from discreet.privacy.accounting import Guarantee
from discreet.privacy.accounting.spend import compose_guarantees
from discreet.results.calibrated import Calibration
from discreet.scales.linking import FEWEST, differ_in_steps, find_guarantee, tell_other_steps
from discreet.scales.placing import align_medians, compare_periods, find_usable, gather_periods
from discreet.scales.slopes import (
    LEAST,
    GroupAnswers,
    GroupFit,
    GroupModel,
    ItemShift,
    find_origin,
    fit_groups,
    free_item,
    shift_item,
)
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import count_of, name_some
from discreet.types import BoolArray, FloatArray, IndexArray

#: Items whose change is less likely than this without drift do not help to find the scale.
STILL_AT = 0.01
#: Bytes that the outer products of the persons' scores may take.
MEMORY = 2e9

ANSWERS, CALIBRATIONS = "answers", "calibrations"

Test = TypeVar("Test")


@dataclass(frozen=True, eq=False)
class Drift(Tabular):
    """Which items drifted between several periods.

    Attributes
    ----------
    items
        The items that at least two periods have.
    periods
        The names of the periods.
    difficulty, se
        ``[period, item]``, in logits on one scale: the items without drift have mean zero. NaN
        where a period does not have the item. From answers it is the logit of a wrong answer
        for a person at the origin of the scale.
    change, change_se
        The latest difficulty minus the mean of all earlier ones. From calibrations the standard
        error includes what unequal slopes may do (``tau``).
    p_value, p_adjusted
        The probability of so much change over all periods without drift; adjusted for the number
        of items (Holm).
    moved
        Which items raise the alarm: ``p_adjusted`` below ``level``.
    level
        The rate of false alarms when no item drifts.
    warnings
        What to look at.
    guarantee
        What holds for these numbers: that of all releases together, or None.
    test, choice
        ``"answers"`` or ``"calibrations"``: which test was used; and a sentence that says why.
    cohort_mean
        Mean ability of every period on the same scale, ``[period]``; None where it is not known.
    tau
        From calibrations: standard deviation of the items' changes per logit of cohort mean that
        is not sampling error, as unequal slopes make it; None where cohort means are not known,
        and from answers, where every item has its own slope.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> drift = discreet.find_drift(estimate, estimate)
    >>> drift.alarm, drift.test
    (False, 'calibrations')
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
    warnings: tuple[FitWarning, ...] = ()
    guarantee: Guarantee | None = None
    test: str = CALIBRATIONS
    choice: str = ""
    cohort_mean: FloatArray | None = None
    tau: float | None = None

    @property
    def alarm(self) -> bool:
        """Whether an item drifted."""
        return bool(self.moved.any())

    @property
    def moved_items(self) -> tuple[str, ...]:
        """Names of the items that drifted."""
        return tuple(self.items[i] for i in np.flatnonzero(self.moved))

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with."""
        moved = int(self.moved.sum()) or "none"
        about = f"{count_of(len(self.items))} in {len(self.periods)} periods, {moved} moved"
        return [about, *([self.choice] if self.choice else [])]

    def to_dict(self) -> Columns:
        """One list per column: item, change, se, p_value, p_adjusted, moved, and each period."""
        columns = list_field_columns(
            self, "items", "change", "change_se", "p_value", "p_adjusted", "moved"
        )
        names = {"items": "item", "change_se": "se"}
        table = {names.get(name, name): values for name, values in columns.items()}
        return table | dict(zip(self.periods, self.difficulty.tolist(), strict=True))


def detect_drift(
    parts: Sequence[Responses] | Sequence[Calibration],
    *,
    periods: Sequence[str] | None = None,
    level: float = 0.05,
) -> Drift:
    """Test which items change between periods, of answers or of calibrations.

    What can be asked for is said at :func:`discreet.find_drift`.
    """
    names = _name_periods(parts, periods, level)
    answers = [part for part in parts if isinstance(part, Responses)]
    if len(answers) == len(parts):
        drift = _compare_answers(answers, names, level)
    else:
        drift = _compare_calibrations(list(parts), names, level)
    drift = replace(drift, warnings=(*drift.warnings, *_warn(drift)))
    warn_of_dropped(drift.warnings)
    return drift


def _name_periods(
    parts: Sequence[object], periods: Sequence[str] | None, level: float
) -> tuple[str, ...]:
    """Return the names of the periods; refuse what cannot be compared."""
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.05 for 5%")
    if len(parts) < 2:
        raise BadUsage(
            f"drift shows between two periods or more, found {len(parts)}; give the answers or a "
            "calibration of each day, week or month, in the order of time"
        )
    names = tuple(map(str, range(1, len(parts) + 1) if periods is None else periods))
    if len(names) != len(parts) or len(set(names)) < len(names):
        raise BadUsage(
            f"{len(parts)} periods need as many different names, found {name_some(list(names))}"
        )
    return names


def _settle(
    usable: BoolArray, has: BoolArray, test: Callable[[BoolArray], tuple[Test, FloatArray]]
) -> tuple[Test, FloatArray]:
    """Repeat a test on the scale of the items that it finds without drift.

    Parameters
    ----------
    usable
        The items without drift, to begin with.
    has
        Which period has which item.
    test
        Takes the items without drift; returns what it found, and the p-values of all items.
    """
    rounds = set()
    while True:
        rounds.add(usable.tobytes())
        comparison, p = test(usable)
        usable = p >= STILL_AT
        # Where nearly every item drifts there is no scale but that of the last round.
        if usable.tobytes() in rounds or (usable & has).sum(axis=1).min() < FEWEST:
            return comparison, p


def _check_links(has: BoolArray, names: tuple[str, ...]) -> None:
    """Refuse periods that share too few items with the others."""
    for name, number in zip(names, has.sum(axis=1).tolist(), strict=True):
        if number < FEWEST:
            raise DisconnectedItems(
                f"period {name} has {count_of(number)} in common with the others that can be "
                f"compared; at least {FEWEST} are needed. Items are matched by name"
            )


def _compare_latest(values: FloatArray, covariance: FloatArray) -> tuple[float, float]:
    """Return the latest difficulty of an item minus the mean of those before, and its error."""
    *before, last = np.flatnonzero(np.isfinite(values)).tolist()
    precision = 1 / np.maximum(covariance.diagonal()[before], 1e-24)
    weight = np.append(-precision / precision.sum(), 1.0)
    periods = [*before, last]
    variance = weight @ covariance[np.ix_(periods, periods)] @ weight
    return float(weight @ values[periods]), float(np.sqrt(variance))


# --- from answers -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shifts:
    """The items' shifts, in the order of the tested items, and the fit without drifted items."""

    base: GroupFit
    origin: BoolArray
    items: list[ItemShift]


def _compare_answers(parts: list[Responses], names: tuple[str, ...], level: float) -> Drift:
    """Test every item for drift from the answers of the periods."""
    items, answers = _gather_answers(parts)
    tested = np.flatnonzero(answers.compared.sum(axis=0) > 1)
    has = answers.compared[:, tested]
    _check_size(answers)
    _check_links(has, names)
    align_medians(np.where(has, 0.0, np.nan))
    first = _test_shifts(answers, tested, np.ones(len(tested), dtype=bool))
    start = first[0].base.model
    final, p = _settle(
        find_usable(*_list_locations(first[0].items)),
        has,
        lambda usable: first if usable.all() else _test_shifts(answers, tested, usable, start),
    )
    location, variance = _list_locations(final.items)
    change = np.array([_compare_latest(shift.location, shift.covariance) for shift in final.items])
    ability = final.base.model.mean - find_origin(final.base, final.origin)
    adjusted = adjust(p, "holm")
    return Drift(
        items=tuple(items[i] for i in tested),
        periods=names,
        difficulty=location,
        se=np.sqrt(variance),
        change=change[:, 0],
        change_se=change[:, 1],
        p_value=p,
        p_adjusted=adjusted,
        moved=adjusted < level,
        level=level,
        test=ANSWERS,
        choice=(
            "Score test from the answers: every item has its own slope, and every period its own "
            "mean and SD of abilities."
        ),
        cohort_mean=final.base.model.slope[final.origin].mean() * ability,
        warnings=_tell_rare(items, answers),
    )


def _gather_answers(parts: list[Responses]) -> tuple[tuple[str, ...], GroupAnswers]:
    """Return the items that somebody answered otherwise than somebody else, and all answers.

    Persons count as different ones in every period.
    """
    for part in parts:
        refuse_routing(part.routing, "drift from answers")
    unnamed = [Responses(part.items, None, part.store, reading=part.reading) for part in parts]
    pooled = leave_unused(Responses.concat(unnamed))
    codes = pooled.to_array()
    lowest = np.where(codes < 0, np.iinfo(codes.dtype).max, codes).min(axis=0, initial=127)
    varied = np.flatnonzero(codes.max(axis=0, initial=-1) > lowest)
    ends = np.cumsum([part.n_persons for part in parts])[:-1]
    steps = np.array(pooled.steps, dtype=np.int64)[varied]
    items = tuple(pooled.items[i] for i in varied)
    return items, GroupAnswers(tuple(np.split(codes[:, varied], ends)), steps)


def _tell_rare(items: tuple[str, ...], answers: GroupAnswers) -> tuple[FitWarning, ...]:
    """Warn of items that several periods have, but with too few right or wrong answers."""
    is_repeated = (answers.answered > 0).sum(axis=0) > 1
    rare = [items[i] for i in np.flatnonzero(is_repeated & (answers.compared.sum(axis=0) < 2))]
    if not rare:
        return ()
    sentence = (
        f"{count_of(len(rare))} not compared: {name_some(rare)}. A test needs {LEAST:.0f} right "
        f"and {LEAST:.0f} wrong answers in each of two periods. Join periods to have more"
    )
    return (FitWarning(WarningKind.NOT_COMPARED, sentence, rare),)


def _check_size(answers: GroupAnswers) -> None:
    """Refuse more parameters than persons, or than fit into memory."""
    groups, size = len(answers.codes), int(answers.steps.sum()) + len(answers.steps) + 2
    needed = 8 * groups * size**2
    if needed > MEMORY:
        raise BadUsage(
            f"the test from answers needs {needed / 1e9:.0f} GB for {len(answers.steps):,} items "
            f"in {groups} periods; the limit is {MEMORY / 1e9:.0f} GB. Calibrate each period with "
            "fit and compare the calibrations, or give fewer items or periods"
        )
    parameters = size + 2 * groups
    if answers.persons <= parameters:
        raise BadUsage(
            f"the test from answers estimates {parameters:,} numbers and needs more persons than "
            f"that, found {answers.persons:,}. Calibrate each period with fit and compare the "
            "calibrations"
        )


def _test_shifts(
    answers: GroupAnswers, tested: IndexArray, usable: BoolArray, start: GroupModel | None = None
) -> tuple[_Shifts, FloatArray]:
    """Test the shifts of every item, with ability measured by it and the items without drift.

    ``start`` are parameters of all items, where some are known.
    """
    from scipy.special import chdtrc

    used = np.setdiff1d(np.arange(len(answers.steps)), tested[~usable])
    base = _fit_items(answers, used, start)
    start = start and start.put(used, answers.steps_of(used), base.model)
    origin = np.isin(used, tested)
    shifts = [
        shift_item(base, int(np.searchsorted(used, item)), origin)
        if sound
        else free_item(
            _fit_items(answers, np.append(used, item), start), len(used), np.append(origin, False)
        )
        for item, sound in zip(tested, usable, strict=True)
    ]
    p = [float(chdtrc(shift.degrees, max(shift.statistic, 0.0))) for shift in shifts]
    return _Shifts(base, origin, shifts), np.array(p)


def _fit_items(answers: GroupAnswers, items: IndexArray, start: GroupModel | None) -> GroupFit:
    """Fit some of the items."""
    begin = start and start.take(items, answers.steps_of(items))
    return fit_groups(answers.take(items), begin)


def _list_locations(shifts: list[ItemShift]) -> tuple[FloatArray, FloatArray]:
    """Return locations and their variances, ``[period, item]``."""
    location = np.array([shift.location for shift in shifts]).T
    return location, np.array([shift.covariance.diagonal() for shift in shifts]).T


# --- from calibrations ------------------------------------------------------------------------


def _compare_calibrations(calibrations: list[Any], names: tuple[str, ...], level: float) -> Drift:
    """Test every item for drift from calibrations of the periods."""
    recoded = differ_in_steps(calibrations)
    table = gather_periods(calibrations, names, recoded)
    for pair in combinations(map(find_reading, calibrations), 2):
        check_alike(*pair, table.items)
    _check_links(table.has, names)
    usable = find_usable(table.difficulty, table.variance)
    placed, p = _settle(usable, table.has, lambda usable: compare_periods(table, usable))
    change = np.array(
        [
            _compare_latest(values, placed.covariance_of(item))
            for item, values in enumerate(placed.difficulty.T)
        ]
    )
    guarantee = find_guarantee(calibrations[0])
    for calibration in calibrations[1:]:
        guarantee = compose_guarantees(guarantee, find_guarantee(calibration))
    adjusted = adjust(p, "holm")
    return Drift(
        items=table.items,
        periods=names,
        difficulty=placed.difficulty,
        se=np.sqrt(placed.variance),
        change=change[:, 0],
        change_se=change[:, 1],
        p_value=p,
        p_adjusted=adjusted,
        moved=adjusted < level,
        level=level,
        test=CALIBRATIONS,
        choice=_explain_tau(placed.tau, len(names)),
        cohort_mean=None if placed.tau is None else placed.cohort_mean,
        tau=placed.tau,
        warnings=tell_other_steps(recoded),
        guarantee=guarantee,
    )


def _explain_tau(tau: float | None, periods: int) -> str:
    """Say which test was used, and how it allows for unequal slopes."""
    start = "Test from calibrations, because no answers were given"
    if tau is None:
        return (
            f"{start}. Cohort means are not known, so it takes slopes as equal: where cohorts "
            "differ, unequal slopes may look like drift."
        )
    text = f"{start}; unequal slopes may change an item by {tau:.2f} per logit of cohort mean (SD)."
    if periods > 2:
        return text
    return (
        f"{text} With two periods only the size of a change tells drift from an unequal slope; "
        "give the answers to tell them apart."
    )


def _warn(drift: Drift) -> tuple[FitWarning, ...]:
    if not drift.alarm:
        return ()
    names = drift.moved_items
    sentence = (
        f"{len(names)} of {len(drift.items)} items moved: {name_some(list(names))}. Look at what "
        "changed: wording, position, key, teaching, or that the item became known"
    )
    if drift.test == CALIBRATIONS and drift.tau is None:
        sentence += ". Or cohorts differ and slopes are unequal, which was not allowed for here"
    return (FitWarning(WarningKind.DRIFTED, sentence, names),)
