"""Groups of persons, calibrated apart and compared item by item: Wald tests.

In: answers and groups of persons. Out: a calibration of each group; differences between groups
with errors, and tests of all groups together. Points of separate calibrations (locations of items,
or their steps) are centred on the anchors: the points that do not differ. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import chdtrc, ndtr, stdtr

from discreet.answers.responses import Responses
from discreet.answers.survey import apply_rao_scott
from discreet.choices import Method, Model
from discreet.errors import (
    BadUsage,
    DisconnectedItems,
    FitWarning,
    WarningKind,
    saying_it_otherwise,
)
from discreet.items.groups import FEW_PERSONS, Split, split_groups, warn_of_small_groups
from discreet.models.calibrate import calibrate
from discreet.models.methods import FitRequest, choose_keeping
from discreet.results.estimate import Estimate, Status, draw_errors
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

if TYPE_CHECKING:
    from discreet.models.weighted import DesignFit

#: Variances below are rounding errors: that of the only anchor, say.
SMALLEST = 1e-12
#: Rounds of choosing anchors; two or three are usual.
ROUNDS = 10


def request_groups(method: str, model: str, keep_categories: bool) -> FitRequest:
    """Return how groups are calibrated."""
    request = FitRequest(method, model=model)
    return choose_keeping(request, has_anchors=False) if keep_categories else request


@dataclass(frozen=True, eq=False)
class GroupCalibration:
    """The calibration of a group; with weights, how its persons move it."""

    estimate: Estimate
    design: DesignFit | None = None


def calibrate_groups(split: Split, request: FitRequest) -> list[GroupCalibration]:
    """Calibrate the groups apart, all by one method."""
    fits = _fit_each(split, request)
    methods = {group_fit.estimate.method for group_fit in fits}
    if len(methods) == 1:
        return fits
    # Left alone, each group found its own method: take the one that serves them all.
    choice = next(one.estimate.choice for one in fits if one.estimate.method == "refined")
    return [
        replace(group_fit, estimate=replace(group_fit.estimate, choice=choice))
        for group_fit in _fit_each(split, replace(request, method="refined"))
    ]


def fit_group(part: Responses, request: FitRequest) -> GroupCalibration:
    """Calibrate the answers of one group."""
    if part.sample is None:
        method, model = cast("Method", request.method), cast("Model", request.model)
        return GroupCalibration(
            calibrate(part, method=method, model=model, keep_categories=request.keep_categories)
        )
    from discreet.models.weighted import fit_weighted  # loads SciPy

    fitted = fit_weighted(part, request)
    return GroupCalibration(fitted.estimate, fitted)


def _fit_each(split: Split, request: FitRequest) -> list[GroupCalibration]:
    fits = []
    for label, part in zip(split.labels, split.parts, strict=True):
        try:
            with saying_it_otherwise():
                fits.append(fit_group(part, request))
        except DisconnectedItems as error:
            raise DisconnectedItems(
                f"the group {label!r} ({part.n_persons} persons) cannot be calibrated on its "
                f"own: {error}. A group needs some {FEW_PERSONS} persons: join small groups, or "
                "leave their labels blank"
            ) from error
    return fits


@dataclass(frozen=True, eq=False)
class Points:
    """What is compared: the locations of a group's items, or all of their steps.

    Attributes
    ----------
    label
        The group.
    value
        NaN where there is no number.
    covariance
        Of all points, zero where there is no number; their variances alone where the calibration
        of very many items has no covariance, and errors are taken as independent.
    status
        Why a point has a number, or none.
    deviation
        With weights, ``[PSU, point]``: what the covariance of two groups is made of. Groups of one
        sample share PSUs, so that they are not independent.
    degrees
        With weights, the degrees of freedom of the design.
    """

    label: str
    value: FloatArray
    covariance: FloatArray
    status: tuple[str, ...]
    deviation: FloatArray | None = None
    degrees: int = 0

    @property
    def known(self) -> BoolArray:
        return np.isfinite(self.value)

    def centre_deviation(self, anchors: BoolArray) -> FloatArray:
        """Return the deviations of the points less the mean of the anchors."""
        if self.deviation is None:
            raise BadUsage("these points have no design")
        return np.asarray(self.deviation - self.deviation[:, anchors].mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Difficulty in the focal group minus difficulty in the reference group, by item or step."""

    difference: FloatArray
    se: FloatArray
    anchor: BoolArray
    #: P-values, where they do not come from z.
    tested: FloatArray | None = None

    @property
    def z(self) -> FloatArray:
        return np.asarray(self.difference / self.se)

    @property
    def p_value(self) -> FloatArray:
        if self.tested is not None:
            return self.tested
        return np.asarray(2 * ndtr(-np.abs(self.z)))


@dataclass(frozen=True)
class Places:
    """Of every point, its item, and its step where steps are compared."""

    item: IndexArray
    step: tuple[int, ...] = ()


def list_compared_points(
    fits: list[GroupCalibration], split: Split, by_step: bool
) -> tuple[Places, list[Points]]:
    """Return what is compared, in every group."""
    estimates = [group_fit.estimate for group_fit in fits]
    lacking = [_find_lacking(estimate, estimates) for estimate in estimates]
    grouped = list(zip(split.labels, fits, lacking, strict=True))
    if not by_step:
        item = np.arange(len(estimates[0].items))
        return Places(item), [_locate(*group) for group in grouped]
    # Where groups differ in an item's categories, none of its steps is compared.
    steps = [max(sizes) for sizes in zip(*(estimate.steps for estimate in estimates), strict=True)]
    item = np.repeat(np.arange(len(steps)), steps)
    step = np.concatenate([np.arange(1, item_steps + 1) for item_steps in steps])
    places = Places(item, tuple(step.tolist()))
    return places, [_spread_steps(*group, item, step) for group in grouped]


def _find_lacking(estimate: Estimate, all_groups: list[Estimate]) -> list[str]:
    """Say of each item which of the categories that some group has this group lacks."""
    every = zip(*(one.ladder.kept for one in all_groups), strict=True)
    missing = [
        sorted(set().union(*categories) - set(own))
        for own, categories in zip(estimate.ladder.kept, every, strict=True)
    ]
    return [
        f"no answers in category {' or '.join(map(str, own))}" if own else "" for own in missing
    ]


def _locate(label: str, fitted: GroupCalibration, lacking: list[str]) -> Points:
    estimate, design = fitted.estimate, fitted.design
    usable = estimate.estimated & np.array([not one for one in lacking])
    covariance = _spread_covariance(estimate.covariance, estimate.se, estimate.estimated)
    status = [_explain(one, word) for one, word in zip(estimate.status, lacking, strict=True)]
    value = np.where(usable, estimate.difficulty, np.nan)
    points = Points(label, value, covariance, tuple(status))
    return points if design is None else _add(points, design, design.location, estimate.estimated)


def _spread_steps(
    label: str, fitted: GroupCalibration, lacking: list[str], item: IndexArray, step: Any
) -> Points:
    """Put thresholds at their points; an item that lacks a category has none."""
    estimate, design = fitted.estimate, fitted.design
    inside = step <= np.array(estimate.steps)[item]
    value = np.full(len(item), np.nan)
    value[inside] = estimate.thresholds[item[inside], step[inside] - 1]
    has_number = np.isfinite(value)
    errors = np.full(len(item), np.nan)
    errors[inside] = estimate.threshold_se[item[inside], step[inside] - 1]
    covariance = _spread_covariance(estimate.threshold_covariance, errors, has_number)
    status = [
        _explain(estimate.ladder.status[i][k - 1] if is_inside else Status.ESTIMATED, lacking[i])
        for i, k, is_inside in zip(item, step, inside, strict=True)
    ]
    unusable = [
        bool(lacking[i]) or word == Status.UNUSED for i, word in zip(item, status, strict=True)
    ]
    value[unusable] = np.nan
    points = Points(label, value, covariance, tuple(status))
    return points if design is None else _add(points, design, design.threshold, has_number)


def _add(points: Points, design: DesignFit, moves: FloatArray, has_number: BoolArray) -> Points:
    """Add what the design says of the points that have a number."""
    deviation = design.sample.deviate(moves)
    full = np.zeros((len(deviation), len(has_number)))
    full[:, has_number] = deviation
    return replace(points, deviation=full, degrees=max(design.sample.degrees, 1))


def _explain(status: str, lacking: str) -> str:
    return lacking if lacking and status in (Status.ESTIMATED, Status.ANCHORED) else str(status)


def _spread_covariance(
    covariance: FloatArray | None, errors: FloatArray, estimated: BoolArray
) -> FloatArray:
    """Return the covariance over all points, zero where there is no number; else variances."""
    if covariance is None and np.isnan(errors[estimated]).any():
        raise BadUsage(
            f"the calibration of a group has no standard errors for its {len(errors)} items, which "
            "a comparison of groups needs; use fewer items, or larger groups"
        )
    if covariance is None:
        return np.where(estimated, errors, 0.0) ** 2
    full = np.zeros((len(estimated), len(estimated)))
    full[np.ix_(estimated, estimated)] = covariance
    return full


def tell_independent(points: Sequence[Points]) -> tuple[FitWarning, ...]:
    """Say that errors count as independent, where items are too many for a covariance."""
    if all(group.covariance.ndim == 2 for group in points):
        return ()
    sentence = (
        f"with {len(points[0].value):,} items there is no covariance of the difficulties, so that "
        "the errors of different items count as independent; intervals of all items together are "
        "Bonferroni's"
    )
    return (FitWarning(WarningKind.INDEPENDENT, sentence),)


def _find_anchors(points: Sequence[Points], anchor: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the points that all groups have, and the anchors among them: all, where under two."""
    common = np.logical_and.reduce([group.known for group in points])
    anchors = anchor & common
    return common, anchors if anchors.sum() >= 2 else common


def contrast(first: Points, second: Points, anchor: BoolArray) -> tuple[Contrasts, tuple[str, ...]]:
    """Second minus first, each group centred on the anchors that both have."""
    common, anchors = _find_anchors([first, second], anchor)
    if common.sum() < 2:
        raise DisconnectedItems(
            f"the groups {first.label!r} and {second.label!r} have {int(common.sum())} items "
            "with a difficulty in common; a comparison needs two or more"
        )
    difference = np.zeros(len(common))
    for points, sign in ((second, 1.0), (first, -1.0)):
        b = np.where(common, points.value, 0.0)
        difference += sign * (b - b[anchors].mean())
    difference[~common] = np.nan
    with np.errstate(invalid="ignore"):
        se = np.where(common, np.sqrt(_find_variance(first, second, anchors)), np.nan)
    contrasts = Contrasts(difference, se, anchors)
    if first.deviation is not None:
        tested = 2 * stdtr(first.degrees, -np.abs(contrasts.z))
        contrasts = replace(contrasts, tested=np.asarray(tested))
    return contrasts, _statuses(first, second)


def _find_variance(first: Points, second: Points, anchors: BoolArray) -> FloatArray:
    """Return variances of differences; without weights groups are other persons, independent."""
    if first.deviation is not None:
        moved = second.centre_deviation(anchors) - first.centre_deviation(anchors)
        return np.asarray((moved**2).sum(axis=0))
    variances = [_centred_variance(points.covariance, anchors) for points in (second, first)]
    return np.asarray(variances[0] + variances[1])


def compare_points(
    points: list[Points], anchor: BoolArray
) -> tuple[FloatArray, Int64Array, FloatArray]:
    """Test equal points in all groups, each centred on the anchors: chi-squared, degrees, p-values.

    Groups are other persons, so that their estimates are independent. With weights that is not so:
    the statistic is then corrected for the design.
    """
    common, anchors = _find_anchors(points, anchor)
    value = np.stack([np.where(common, group.value, 0.0) for group in points])
    value -= value[:, anchors].mean(axis=1, keepdims=True)
    if points[0].deviation is not None:
        return _compare_by_design(points, value, common, anchors)
    variance = np.stack([_centred_variance(group.covariance, anchors) for group in points])
    weight = 1 / np.where(common, np.maximum(variance, SMALLEST), 1.0)
    mean = (weight * value).sum(axis=0) / weight.sum(axis=0)
    statistic = (weight * (value - mean) ** 2).sum(axis=0)
    statistic = np.where(common, statistic, np.nan)
    degrees = np.where(common, len(points) - 1, 0)
    return statistic, degrees, chdtrc(len(points) - 1, statistic)


def _compare_by_design(
    points: list[Points], value: FloatArray, common: BoolArray, anchors: BoolArray
) -> tuple[FloatArray, Int64Array, FloatArray]:
    """Test every point for equal numbers in all groups under the sampling design."""
    deviation = np.stack([group.centre_deviation(anchors) for group in points])
    moved = deviation[1:] - deviation[0]
    tests = []
    for point in range(len(common)):
        spread = np.maximum((deviation[:, :, point] ** 2).sum(axis=1), SMALLEST)
        working = np.diag(spread[1:]) + spread[0]
        difference = value[1:, point] - value[0, point]
        test = apply_rao_scott(difference, moved[:, :, point].T, working, points[0].degrees)
        tests.append(astuple(test) if common[point] else (np.nan, 0, np.nan))
    statistic, degrees, p_value = np.array(tests).T
    return statistic, degrees.astype(np.int64), p_value


def find_largest_error(points: list[Points], base: int, anchor: BoolArray, level: float) -> float:
    """Return how many errors wide intervals of all contrasts are that hold together (max-t).

    Infinite where errors count as independent: then the number of contrasts decides (Bonferroni).
    """
    if any(group.covariance.ndim == 1 for group in points):
        return float("inf")
    common, anchors = _find_anchors(points, anchor)
    if points[0].deviation is not None:
        deviation = np.stack([group.centre_deviation(anchors)[:, common] for group in points])
        moved = np.hstack(list(np.delete(deviation, base, axis=0) - deviation[base]))
        errors = draw_errors(moved.T @ moved, np.random.default_rng(0), points[0].degrees)
        spread = np.maximum(np.sqrt((moved**2).sum(axis=0)), np.sqrt(SMALLEST))
        return float(np.quantile(np.abs(errors / spread).max(axis=1), 1 - level))
    centring = np.eye(len(common))[common]
    centring[:, anchors] -= 1 / anchors.sum()
    by_group = [
        draw_errors(centring @ group.covariance @ centring.T, np.random.default_rng(number))
        for number, group in enumerate(points)
    ]
    largest = np.zeros(len(by_group[base]))
    for number, group_errors in enumerate(by_group):
        if number != base:
            difference = group_errors - by_group[base]
            spread = np.maximum(difference.std(axis=0), np.sqrt(SMALLEST))
            largest = np.maximum(largest, np.abs(difference / spread).max(axis=1))
    return float(np.quantile(largest, 1 - level))


def _centred_variance(covariance: FloatArray, anchors: BoolArray) -> FloatArray:
    """Variances of the difficulties less the mean of the anchors."""
    if covariance.ndim == 1:
        share = anchors / anchors.sum()
        return np.asarray(covariance * (1 - 2 * share) + share**2 @ covariance)
    with_mean = covariance[:, anchors].mean(axis=1)
    of_mean = covariance[np.ix_(anchors, anchors)].mean()
    return np.asarray(covariance.diagonal() - 2 * with_mean + of_mean)


def _statuses(first: Points, second: Points) -> tuple[str, ...]:
    """Say ``compared``, or in which group an item has no number and why."""
    out = []
    for statuses in zip(first.status, second.status, strict=True):
        reasons = [
            f"{status} in {points.label}"
            for status, points in zip(statuses, (first, second), strict=True)
            if status not in (Status.ESTIMATED, Status.ANCHORED)
        ]
        out.append(", ".join(reasons) or "compared")
    return tuple(out)


def purify(base: Points, focal: Points, level: float) -> tuple[Contrasts, tuple[str, ...]]:
    """Repeat the comparison with the items that showed no difference as anchors.

    The first anchors are the half of the items nearest to the median difference, which up to
    half of the items can differ without moving far.
    """
    common = base.known & focal.known
    raw = np.where(common, focal.value - base.value, np.nan)
    deviation = np.abs(raw - np.nanmedian(raw)) if common.any() else raw
    anchor = common & (deviation <= np.nanmedian(deviation)) if common.any() else common
    smallest = max(2, int(common.sum()) // 4)
    for _ in range(ROUNDS):
        contrasts, status = contrast(base, focal, anchor)
        new = common & ~(contrasts.p_value < level)
        if (new == anchor).all() or new.sum() < smallest:
            break
        anchor = new
    return contrasts, status


@dataclass(frozen=True, eq=False)
class WaldTest(Tabular):
    """A z-test for every item between two groups, both centred at zero. Confidential.

    ``z`` is positive where the item is harder for ``groups[1]``. Items without a number in one
    of the groups have NaN and a ``status`` that names the group and the reason. ``method`` is the
    estimator of the difficulties; ``choice`` says why, where that was left open. By step, there is
    a row for each of an item's steps, whose numbers are in ``step``.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> test = analysis.run_wald(discreet.datasets.lsat())
    >>> test.groups, test.persons
    (('low score', 'high score'), (345, 655))
    """

    groups: tuple[str, str]
    persons: tuple[int, int]
    items: tuple[str, ...]
    difficulty: FloatArray
    z: FloatArray
    p_value: FloatArray
    status: tuple[str, ...]
    warnings: tuple[FitWarning, ...] = ()
    method: str = ""
    choice: str = ""
    step: tuple[int, ...] = ()

    def to_dict(self) -> Columns:
        """One list per column."""
        difficulties = dict(zip(self.groups, self.difficulty.tolist(), strict=True))
        columns = list_field_columns(self, "z", "p_value", "status")
        return {"item": list(self.items), **list_steps(self.step), **difficulties, **columns}


def list_steps(step: tuple[int, ...]) -> dict[str, list[int]]:
    """Return the column of the steps, where steps are compared."""
    return {"step": list(step)} if step else {}


def run_wald(
    responses: Responses,
    groups: object = "mean score",
    *,
    items: Sequence[str] | None = None,
    method: Method = "auto",
    model: Model = "auto",
    by_step: bool = False,
    keep_categories: bool = False,
) -> WaldTest:
    """Test every item for equal difficulty in two groups. Confidential.

    Parameters
    ----------
    responses, groups, reading
        As for :func:`discreet.items.likelihood_ratios.run_andersen`, with exactly two groups.
    items
        The items to calibrate and compare; all by default. Persons are split by their scores on
        all items either way.
    method, model
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.
    by_step
        Whether to test every step of the items instead of their locations.
    keep_categories
        As in :func:`discreet.fit`.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> test = analysis.run_wald(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> test.z.round(1).tolist()
    [0.2, 0.1, 0.2, -0.1, -0.3]
    """
    split = split_groups(responses, groups)
    if items is not None:
        split, responses = split.select(items), responses.select(items)
    if len(split.labels) != 2:
        raise BadUsage(
            f"Wald tests compare two groups, found {len(split.labels)} "
            f"({', '.join(split.labels)}); find_dif compares several"
        )
    fits = calibrate_groups(split, request_groups(method, model, keep_categories))
    places, points = list_compared_points(fits, split, by_step)
    everything = np.ones(len(places.item), dtype=bool)
    contrasts, status = contrast(points[0], points[1], everything)
    first = fits[0].estimate
    return WaldTest(
        groups=(split.labels[0], split.labels[1]),
        persons=(split.parts[0].n_persons, split.parts[1].n_persons),
        items=tuple(responses.items[i] for i in places.item),
        difficulty=np.stack([group_points.value for group_points in points]),
        z=contrasts.z,
        p_value=contrasts.p_value,
        status=status,
        warnings=(*split.warnings, *warn_of_small_groups(split), *tell_independent(points)),
        method=first.method,
        choice=first.choice,
        step=places.step,
    )
