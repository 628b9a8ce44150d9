"""Points of two groups side by side: locations of items, or their steps, and how they differ.

In: an estimate for each group. Out: differences between the groups with errors, centred on the
points that do not differ. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.groups import Split
from discreet.results.estimate import Estimate, Status, draw_errors
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

SMALLEST = 1e-12
"""Variances below are rounding errors: that of the only anchor, say."""
ROUNDS = 10
"""Rounds of choosing anchors; two or three are usual."""


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
        Of all points, zero where there is no number.
    status
        Why a point has a number, or none.
    """

    label: str
    value: FloatArray
    covariance: FloatArray
    status: tuple[str, ...]

    @property
    def known(self) -> BoolArray:
        return np.isfinite(self.value)


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Difficulty in the focal group minus difficulty in the reference group, by item or step."""

    difference: FloatArray
    se: FloatArray
    anchor: BoolArray
    tested: FloatArray | None = None
    """P-values, where they do not come from z."""

    @property
    def z(self) -> FloatArray:
        return np.asarray(self.difference / self.se)

    @property
    def p_value(self) -> FloatArray:
        from scipy.special import ndtr

        if self.tested is not None:
            return self.tested
        return np.asarray(2 * ndtr(-np.abs(self.z)))


@dataclass(frozen=True)
class Places:
    """Of every point, its item, and its step where steps are compared."""

    item: IndexArray
    step: tuple[int, ...] = ()


def list_compared_points(
    estimates: list[Estimate], split: Split, by_step: bool
) -> tuple[Places, list[Points]]:
    """Return what is compared, in every group."""
    lacking = [_find_lacking(estimate, estimates) for estimate in estimates]
    grouped = list(zip(split.labels, estimates, lacking, strict=True))
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


def _locate(label: str, estimate: Estimate, lacking: list[str]) -> Points:
    usable = estimate.estimated & np.array([not one for one in lacking])
    covariance = _spread_covariance(estimate, estimate.covariance, estimate.estimated)
    status = [_explain(one, word) for one, word in zip(estimate.status, lacking, strict=True)]
    return Points(label, np.where(usable, estimate.difficulty, np.nan), covariance, tuple(status))


def _spread_steps(
    label: str, estimate: Estimate, lacking: list[str], item: IndexArray, step: Any
) -> Points:
    """Put thresholds at their points; an item that lacks a category has none."""
    inside = step <= np.array(estimate.steps)[item]
    value = np.full(len(item), np.nan)
    value[inside] = estimate.thresholds[item[inside], step[inside] - 1]
    covariance = _spread_covariance(estimate, estimate.threshold_covariance, np.isfinite(value))
    status = [
        _explain(estimate.ladder.status[i][k - 1] if is_inside else Status.ESTIMATED, lacking[i])
        for i, k, is_inside in zip(item, step, inside, strict=True)
    ]
    value[[bool(lacking[i]) for i in item]] = np.nan
    return Points(label, value, covariance, tuple(status))


def _explain(status: str, lacking: str) -> str:
    return lacking if lacking and status in (Status.ESTIMATED, Status.ANCHORED) else str(status)


def _spread_covariance(
    estimate: Estimate, covariance: FloatArray | None, estimated: BoolArray
) -> FloatArray:
    """Return the covariance over all points, zero where there is no number."""
    if covariance is None:
        raise BadUsage(
            f"the method {estimate.method!r} gave no covariance for {len(estimate.items)} items, "
            "which a comparison of groups needs; use fewer items"
        )
    full = np.zeros((len(estimated), len(estimated)))
    full[np.ix_(estimated, estimated)] = covariance
    return full


def contrast(first: Points, second: Points, anchor: BoolArray) -> tuple[Contrasts, tuple[str, ...]]:
    """Second minus first, each group centred on the anchors that both have."""
    common = first.known & second.known
    if common.sum() < 2:
        raise DisconnectedItems(
            f"the groups {first.label!r} and {second.label!r} have {int(common.sum())} items "
            "with a difficulty in common; a comparison needs two or more"
        )
    anchors = anchor & common
    anchors = anchors if anchors.sum() >= 2 else common
    difference = np.zeros(len(common))
    variance = np.zeros(len(common))
    for points, sign in ((second, 1.0), (first, -1.0)):
        b = np.where(common, points.value, 0.0)
        difference += sign * (b - b[anchors].mean())
        variance += _centred_variance(points.covariance, anchors)
    difference[~common] = np.nan
    with np.errstate(invalid="ignore"):
        se = np.where(common, np.sqrt(variance), np.nan)
    return Contrasts(difference, se, anchors), _statuses(first, second)


def compare_points(points: list[Points], anchor: BoolArray) -> tuple[FloatArray, Int64Array]:
    """Return chi-squared of equal points in all groups, each centred on the anchors, and degrees.

    Groups are other persons, so that their estimates are independent.
    """
    common = np.logical_and.reduce([group.known for group in points])
    anchors = anchor & common if (anchor & common).sum() >= 2 else common
    value = np.stack([np.where(common, group.value, 0.0) for group in points])
    value -= value[:, anchors].mean(axis=1, keepdims=True)
    variance = np.stack([_centred_variance(group.covariance, anchors) for group in points])
    weight = 1 / np.where(common, np.maximum(variance, SMALLEST), 1.0)
    mean = (weight * value).sum(axis=0) / weight.sum(axis=0)
    statistic = (weight * (value - mean) ** 2).sum(axis=0)
    degrees = np.full(len(common), len(points) - 1)
    return np.where(common, statistic, np.nan), np.where(common, degrees, 0)


def find_largest_error(points: list[Points], base: int, anchor: BoolArray, level: float) -> float:
    """Return how many errors wide intervals of all contrasts are that hold together (max-t)."""
    common = np.logical_and.reduce([group.known for group in points])
    anchors = anchor & common if (anchor & common).sum() >= 2 else common
    places = np.flatnonzero(common)
    centring = np.eye(len(common))[places]
    centring[:, anchors] -= 1 / anchors.sum()
    errors = [
        draw_errors(centring @ group.covariance @ centring.T, np.random.default_rng(number))
        for number, group in enumerate(points)
    ]
    largest = np.zeros(len(errors[base]))
    for number, group_errors in enumerate(errors):
        if number != base:
            difference = group_errors - errors[base]
            spread = np.maximum(difference.std(axis=0), np.sqrt(SMALLEST))
            largest = np.maximum(largest, np.abs(difference / spread).max(axis=1))
    return float(np.quantile(largest, 1 - level))


def _centred_variance(covariance: FloatArray, anchors: BoolArray) -> FloatArray:
    """Variances of the difficulties less the mean of the anchors."""
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
