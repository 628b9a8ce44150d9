"""Two ways to compare items between groups: by calibrations, and by likelihoods.

In: an estimate of each group, or answers and the group of each person. Out: differences between
the groups with errors, and tests of all groups together. Confidential.

Points of separate calibrations (locations of items, or their steps) are centred on the anchors: the
points that do not differ.

A conditional likelihood ratio tests an item by item split: each group has a column of its own for
it, empty for the others; all other items are the same for everybody, and hold the scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtr, stdtr

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.answers.survey import DesignTest, apply_rao_scott
from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.items.groups import (
    GroupCalibration,
    Split,
    calibrate_groups,
    chi_squared_tail,
    fit_group,
)
from discreet.models.conditional.estimator import find_maximum
from discreet.models.conditional.maximise import ConditionalFit
from discreet.models.item_parameters import RASCH
from discreet.models.standard_errors.sandwich import COVARIANCE_LIMIT
from discreet.results.estimate import Estimate, Status, draw_errors
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array, Model

if TYPE_CHECKING:
    from discreet.models.weighted import DesignFit, WeightedMaximum

#: Variances below are rounding errors: that of the only anchor, say.
SMALLEST = 1e-12
#: Combinations of scores with a smaller share of the mean expectation count as having this.
RARE = 0.02
#: Rounds of choosing anchors; two or three are usual.
ROUNDS = 10


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
    covariance = _spread_covariance(estimate, estimate.covariance, estimate.estimated)
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
    covariance = _spread_covariance(estimate, estimate.threshold_covariance, has_number)
    status = [
        _explain(estimate.ladder.status[i][k - 1] if is_inside else Status.ESTIMATED, lacking[i])
        for i, k, is_inside in zip(item, step, inside, strict=True)
    ]
    value[[bool(lacking[i]) for i in item]] = np.nan
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
) -> tuple[FloatArray, Int64Array, FloatArray | None]:
    """Return chi-squared of equal points in all groups, each centred on the anchors, and degrees.

    Groups are other persons, so that their estimates are independent. With weights that is not so:
    the statistic is then corrected for the design, and its p-values are the third result.
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
    degrees = np.full(len(common), len(points) - 1)
    return np.where(common, statistic, np.nan), np.where(common, degrees, 0), None


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
    """Return how many errors wide intervals of all contrasts are that hold together (max-t)."""
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
class ItemSplit:
    """One item with thresholds of its own in every group.

    ``location`` has one number per group, ``covariance`` is theirs, and ``test`` is of equal
    thresholds in all groups.
    """

    location: FloatArray
    covariance: FloatArray
    test: DesignTest


def split_item(
    responses: Responses, group: IndexArray, item: int, *, free: BoolArray, model: str
) -> ItemSplit | str:
    """Test one item for equal thresholds in all groups; return why not where it is impossible.

    Parameters
    ----------
    responses, group
        Answers, and the number of each person's group.
    item
        Its position.
    free
        Which other items are split too, on both sides of the test: those that are no anchors.
    model
        As for :func:`discreet.fit`.

    References
    ----------
    Andersen, E. B. (1973). A goodness of fit test for the Rasch model. Psychometrika 38(1),
    123-140. Thissen, D., Steinberg, L. and Wainer, H. (1993). Detection of differential item
    functioning using the parameters of item response models. In P. W. Holland and H. Wainer (eds.),
    Differential item functioning. Erlbaum.
    """
    groups = int(group.max()) + 1
    others = free.copy()
    others[item] = False
    lacking = _name_unused_category(responses, group, item)
    if lacking:
        return lacking
    split = _split_columns(responses, group, [*np.flatnonzero(others), item])
    try:
        if responses.sample is not None:
            return _compare_columns(split, groups, model)
        apart = _maximise_split(split, model)
        unsplit = _split_columns(responses, group, list(np.flatnonzero(others)))
        together = _maximise_split(unsplit, model)
    except (DisconnectedItems, NotConverged) as error:
        return f"not determined: {error}"
    last = slice(len(apart.location) - groups, None)
    statistic = 2 * (apart.log_likelihood - together.log_likelihood)
    test = judge_gain(statistic, apart.free - together.free)
    return ItemSplit(apart.location[last], _location_covariance(apart)[last, last], test)


def judge_gain(statistic: float, degrees: int) -> DesignTest:
    """Return the test of twice the gain of a likelihood."""
    return DesignTest(statistic, degrees, chi_squared_tail(statistic, degrees))


def _name_unused_category(responses: Responses, group: IndexArray, item: int) -> str:
    """Say which category of an item some group does not use."""
    cells = responses.rows(0, responses.n_persons)[:, item]
    for label in range(int(group.max()) + 1):
        used = set(cells[(group == label) & (cells >= 0)].tolist())
        missing = sorted(set(range(responses.steps[item] + 1)) - used)
        if missing:
            return f"no answers in category {' or '.join(map(str, missing))} in one group"
    return ""


def _split_columns(responses: Responses, group: IndexArray, items: list[int]) -> Responses:
    """Split some items; the columns of each stand together, the last item's last."""
    cells = responses.rows(0, responses.n_persons)
    common = [column for column in range(responses.n_items) if column not in set(items)]
    parts, steps = [cells[:, common]], [responses.steps[column] for column in common]
    groups = int(group.max()) + 1
    for item in items:
        column = np.where(group[:, None] == np.arange(groups), cells[:, [item]], -1)
        parts.append(column)
        steps += [responses.steps[item]] * groups
    names, store = map(str, range(len(steps))), store_codes(np.concatenate(parts, axis=1), steps)
    return Responses(tuple(names), None, store, sample=responses.sample)


def _maximise_split(split: Responses, model: str) -> ConditionalFit:
    maximum = find_maximum(split, model)
    if len(maximum.location) < split.n_items:
        raise DisconnectedItems("the answers of the groups do not link all items")
    return maximum


def _compare_columns(split: Responses, groups: int, model: str) -> ItemSplit:
    """Compare the thresholds of the last columns under the sampling design."""
    from discreet.models.weighted import find_weighted_maximum

    fitted = find_weighted_maximum(split, model)
    last = slice(len(fitted.value) - groups * split.steps[-1], None)
    value = fitted.value[last].reshape(groups, -1)

    def subtract_first(nodes: FloatArray) -> FloatArray:
        table = nodes[:, last].reshape(len(nodes), groups, -1)
        return np.asarray(table[:, 1:] - table[:, :1]).reshape(len(nodes), -1)

    scores = subtract_first(fitted.moves / np.sqrt(fitted.sample.weight)[:, None])
    deviation = fitted.sample.deviate(fitted.moves)
    test = apply_rao_scott(
        (value[1:] - value[0]).ravel(),
        subtract_first(deviation),
        scores.T @ scores,
        max(fitted.sample.degrees, 1),
    )
    moved = deviation[:, last].reshape(len(deviation), groups, -1).mean(axis=2)
    return ItemSplit(value.mean(axis=1), moved.T @ moved, test)


def _location_covariance(maximum: ConditionalFit) -> FloatArray:
    """Return the covariance of the means of the items' thresholds."""
    used = np.isfinite(maximum.threshold)
    mine = np.arange(len(used))[:, None] == np.nonzero(used)[0]
    weight = mine / used.sum(axis=1, keepdims=True)
    return np.asarray(weight @ maximum.covariance @ weight.T)


def compare_thresholds(split: Split, model: str) -> dict[str, Any]:
    """Test that all groups have the same thresholds; there are no likelihoods.

    The items have numbers in all groups, and the same categories.
    """
    name: Model = "auto" if model == RASCH else cast("Model", model)
    fits = [_take_design(one) for one in calibrate_groups(split, "conditional", name)]
    value = [fit.estimate.thresholds[np.isfinite(fit.estimate.thresholds)] for fit in fits]
    deviation = [fit.sample.deviate(fit.threshold) for fit in fits]
    first, *others = [_weigh_scores(fit).T @ _weigh_scores(fit) for fit in fits]
    test = apply_rao_scott(
        np.concatenate([part - value[0] for part in value[1:]]),
        np.hstack([part - deviation[0] for part in deviation[1:]]),
        np.tile(first, (len(others), len(others))) + block_diag(*others),
        fits[0].estimate.degrees or 1,
    )
    nothing = float("nan")
    likelihoods = {"log_likelihood": nothing, "log_likelihoods": (nothing,) * len(fits)}
    difficulty = np.stack([fit.estimate.difficulty for fit in fits])
    return {**vars(test), **likelihoods, "difficulty": difficulty}


def compare_step_distances(answers: Responses) -> dict[str, Any]:
    """Test that all items have the same distances of steps, as in a rating scale."""
    fitted = _take_design(fit_group(answers, "conditional", "partial-credit"))
    items, steps = answers.n_items, answers.steps[0]

    def leave_distances(nodes: FloatArray) -> FloatArray:
        table = nodes.reshape(-1, items, steps)
        table = table - table.mean(axis=2, keepdims=True)
        return np.asarray(table - table.mean(axis=1, keepdims=True)).reshape(len(table), -1)

    scores = leave_distances(_weigh_scores(fitted))
    test = apply_rao_scott(
        leave_distances(fitted.estimate.thresholds.reshape(1, -1))[0],
        leave_distances(fitted.sample.deviate(fitted.threshold)),
        scores.T @ scores,
        fitted.estimate.degrees or 1,
    )
    free = items * steps - 1, items - 1 + steps - 1
    return {**vars(test), "log_likelihoods": (float("nan"),) * 2, "free": free}


def compare_parts(
    parts: Sequence[Responses], whole: Responses, model: str, degrees: int
) -> dict[str, Any]:
    """Test that parts of the items measure the same, under the sampling design.

    Parameters
    ----------
    parts, whole
        Answers of persons who answered everything: to the items of each part, and to all of them
        in this order.
    model
        As for :func:`discreet.fit`.
    degrees
        How many numbers are free.

    Notes
    -----
    Martin-Löf's likelihood ratio has two sources: how persons with one total score spread over
    the scores of the parts, and how the thresholds of a part alone differ from those of all items
    together. Its score form is the sum of Pearson's statistic of the first and a quadratic form of
    the second; both are linear in persons, so that the design corrects them as Rao and Scott say.
    Pearson's denominators are at least ``RARE`` times their mean, or one person in a rare
    combination would outweigh all others. That changes the metric and not the level.
    """
    from discreet.models.weighted import find_weighted_maximum

    together = find_weighted_maximum(whole, model)
    apart = [find_weighted_maximum(part, model) for part in parts]
    value, moves, metric = _spread_scores(parts, together)
    first = 0
    for part in apart:
        nodes = slice(first, first := first + len(part.value))
        centring = np.eye(len(part.value)) - 1 / len(part.value)
        scores = part.moves / np.sqrt(part.sample.weight)[:, None] @ centring
        value = np.append(value, centring @ (part.value - together.value[nodes]))
        moves = np.hstack([moves, (part.moves - together.moves[:, nodes]) @ centring])
        metric = block_diag(metric, scores.T @ scores)
    sample = together.sample
    test = apply_rao_scott(value, sample.deviate(moves), metric, max(sample.degrees, 1), degrees)
    difficulty, *alone = (np.nanmean(fit.threshold, axis=1) for fit in (together, *apart))
    return {**vars(test), "difficulty": difficulty, "apart": np.concatenate(alone)}


def _spread_scores(
    parts: Sequence[Responses], together: WeightedMaximum
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return observed less expected weights by scores of the parts, their moves and metric."""
    from discreet.models.weighted import describe_scores

    weight = together.sample.weight
    ends = np.cumsum([part.n_items for part in parts])[:-1]
    described = [describe_scores(table) for table in np.split(together.threshold, ends)]
    sizes = [len(logs) for logs, _ in described]
    if np.prod(sizes) > COVARIANCE_LIMIT:
        raise BadUsage(
            f"with weights this test keeps the covariance of all combinations of the parts' scores "
            f"and stops at {COVARIANCE_LIMIT:,}, found {np.prod(sizes):,}; compare fewer items or "
            "parts"
        )
    scores = [part.store.person_totals()[1] for part in parts]
    cell, person_total = np.ravel_multi_index(scores, sizes), np.sum(scores, axis=0)
    grid = np.indices(sizes).reshape(len(sizes), -1)
    total = grid.sum(axis=0)
    has_total = np.arange(total.max() + 1)[:, None] == total
    placed = list(zip(described, grid, strict=True))
    logs = np.sum([logs[score] for (logs, _), score in placed], axis=0)
    reached = np.hstack([reached[score] for (_, reached), score in placed])
    chance = np.exp(logs - np.array([np.logaddexp.reduce(logs[row]) for row in has_total])[total])
    expected = np.bincount(person_total, weight, len(has_total))[total] * chance
    slope = expected[:, None] * (reached - ((has_total * chance) @ reached)[total])
    own = (np.arange(len(chance)) == cell[:, None]) - chance * has_total[person_total]
    moves = own * weight[:, None] + together.moves @ slope.T
    observed = np.bincount(cell, weight, len(chance))
    return observed - expected, moves, np.diag(np.maximum(expected, RARE * expected.mean()))


def _take_design(fitted: GroupCalibration) -> DesignFit:
    if fitted.design is None:
        raise BadUsage("these answers have no weights")
    return fitted.design


def _weigh_scores(fitted: DesignFit) -> FloatArray:
    """Return the metric of a test: persons are independent; its scale cancels."""
    return np.asarray(fitted.threshold / np.sqrt(fitted.sample.weight)[:, None])
