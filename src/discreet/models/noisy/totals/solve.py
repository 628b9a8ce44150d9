"""The loop of the fit: linear steps over all forms until nothing moves.

In: released values of all forms. Out: the state at which the loop rests, and the linearised
posterior of one step. The totals decide about thresholds, the mean ability of each form and the
common pattern of steps; scale, skewness and kurtosis come from the moments only, with what they do
to all the rest taken into account. A joint maximum would let the shrinkage of thresholds shrink
the abilities too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.choices import ScaleModel
from discreet.errors import BadUsage
from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.moments import (
    SHAPE_SIZE,
    ExpectedMoments,
    Ladders,
    MomentsView,
    Numbers,
    TotalsView,
    count_takers,
    describe_items,
    expect_form,
    view_moments,
    view_totals,
)
from discreet.models.noisy.totals.takers import (
    NO_STEP_SPREAD,
    Shifts,
    Spreads,
    learn_spreads,
    shift_takers,
)
from discreet.types import FloatArray, IndexArray

#: Prior standard deviation of the contrasts of the common pattern around the usual one.
PATTERN_SPREAD = 0.8

#: Prior standard deviations of log scale, skewness and kurtosis.
SHAPE_SPREAD = np.array([0.25, 0.4, 0.8])

#: By how much those of one form deviate from those of all, in units of the same.
FORMS_DIFFER = np.array([0.5, 0.5, 0.5])

#: The same for the mean abilities of forms, in logits.
MEANS_DIFFER = 1.0

#: Beyond, the density climbs again at the ends of the grid.
LARGEST_KURTOSIS = 0.1


@dataclass(frozen=True, eq=False)
class System:
    """Normal equations of all forms; ``common`` are means of abilities and the pattern.

    Attributes
    ----------
    information, score
        Of the thresholds, prior excluded, ``[item, step, step]`` and ``[item, step]``.
    cross
        ``[item, step, parameter]``: four of each form, then the pattern.
    common_information, common_score
        Of these parameters.
    """

    information: FloatArray
    score: FloatArray
    cross: FloatArray
    common_information: FloatArray
    common_score: FloatArray


@dataclass(frozen=True, eq=False)
class Inner:
    """Thresholds, mean abilities and pattern as linear functions of the outer parameters.

    ``block`` is the posterior covariance of the thresholds of each item given the inner common
    parameters, whose covariance is ``common``; ``lever`` says how thresholds move with them.
    """

    step: FloatArray
    by_outer: FloatArray
    common_step: FloatArray
    common_by_outer: FloatArray
    block: FloatArray
    common: FloatArray
    lever: FloatArray


@dataclass(frozen=True, eq=False)
class Outer:
    """Step of the outer parameters, their covariance, and how inner errors enter them."""

    step: FloatArray
    covariance: FloatArray
    by_threshold: FloatArray
    by_common: FloatArray


def inner_places(forms: int, pattern: int) -> IndexArray:
    """Places of the mean abilities and the pattern among the common parameters."""
    mean_positions = np.arange(forms) * SHAPE_SIZE
    return np.concatenate([mean_positions, SHAPE_SIZE * forms + np.arange(pattern)]).astype(np.intp)


def outer_places(forms: int) -> IndexArray:
    """Places of log scale, skewness and kurtosis of each form."""
    places = np.arange(forms * SHAPE_SIZE, dtype=np.intp)
    return places[places % SHAPE_SIZE > 0]


def gather(ladders: Ladders, forms: Sequence[FormTotals], views: Sequence[TotalsView]) -> System:
    """Add up the equations of all forms; the pattern's places stay empty."""
    m, widest, coefficients = ladders.pattern.shape
    size = SHAPE_SIZE * len(forms) + coefficients
    information, score = np.zeros((m, widest, widest)), np.zeros((m, widest))
    cross, common, target = np.zeros((m, widest, size)), np.zeros((size, size)), np.zeros(size)
    for number, (form, view) in enumerate(zip(forms, views, strict=True)):
        span = slice(SHAPE_SIZE * number, SHAPE_SIZE * (number + 1))
        information[form.columns] += view.information
        score[form.columns] += view.score
        cross[form.columns, :, span] += view.cross
        common[span, span] = view.shape_information
        target[span] = view.shape_score
    return System(information, score, cross, common, target)


def add_prior(
    system: System,
    ladders: Ladders,
    spreads: Spreads,
    thresholds: FloatArray,
    pattern: FloatArray,
    means: FloatArray,
) -> System:
    """Add the prior of thresholds around the pattern, of the pattern, and between the forms."""
    precision = ladders.precision(spreads.location, spreads.step)
    deviation = thresholds - ladders.pattern @ pattern
    pulled = precision @ ladders.pattern
    cross, common = system.cross.copy(), system.common_information.copy()
    target = system.common_score.copy()
    places = slice(SHAPE_SIZE * len(means), None)
    cross[:, :, places] = -pulled
    common[places, places] = np.tensordot(ladders.pattern, pulled, axes=((0, 1), (0, 1)))
    common[places, places] += np.eye(len(pattern)) / PATTERN_SPREAD**2
    target[places] = np.einsum("ija,ij->a", pulled, deviation)
    target[places] -= (pattern - ladders.usual) / PATTERN_SPREAD**2
    forms = np.arange(len(means)) * SHAPE_SIZE
    common[np.ix_(forms, forms)] += (np.eye(len(means)) - 1 / len(means)) / MEANS_DIFFER**2
    target[forms] -= (means - means.mean()) / MEANS_DIFFER**2
    score = system.score - np.einsum("iab,ib->ia", precision, deviation)
    information = system.information + precision + ladders.beyond
    return System(information, score, cross, common, target)


def solve_inner(system: System, inner: IndexArray, outer: IndexArray) -> Inner:
    """Eliminate the thresholds, then mean abilities and pattern."""
    block: FloatArray = np.asarray(np.linalg.inv(system.information))
    block_step = np.einsum("iab,ib->ia", block, system.score)
    lever = block @ system.cross
    left = system.common_information - np.tensordot(system.cross, lever, axes=((0, 1), (0, 1)))
    score = system.common_score - np.einsum("iac,ia->c", system.cross, block_step)
    common: FloatArray = np.asarray(np.linalg.inv(left[np.ix_(inner, inner)]))
    common_step = common @ score[inner]
    common_by_outer = -common @ left[np.ix_(inner, outer)]
    by_common = -lever[:, :, inner]
    return Inner(
        block_step + by_common @ common_step,
        by_common @ common_by_outer - lever[:, :, outer],
        common_step,
        common_by_outer,
        block,
        common,
        by_common,
    )


def prior_of_shapes(forms: int, tightness: FloatArray) -> FloatArray:
    """Prior precision of the outer parameters; ``tightness`` divides their spread, per form."""
    spread = np.concatenate([SHAPE_SPREAD * np.array([1.0, t, t]) for t in tightness])
    same = np.kron(np.ones((forms, forms)), np.eye(len(SHAPE_SPREAD)))
    between_forms = np.eye(len(spread)) * np.tile(FORMS_DIFFER**2, forms) if forms > 1 else 0.0
    return np.asarray(np.linalg.inv((same + between_forms) * np.outer(spread, spread)))


def solve_outer(
    forms: Sequence[FormTotals],
    views: Sequence[MomentsView],
    inner: Inner,
    shapes: FloatArray,
    prior: FloatArray,
) -> Outer:
    """Solve for scale, skewness and kurtosis of each form from the moments of all."""
    surprise = np.concatenate([view.surprise for view in views])
    by_threshold, by_shape, noise = _stack_moments(forms, views, inner.block.shape[:2])
    means = np.arange(len(forms)) * SHAPE_SIZE
    by_mean = np.zeros((len(surprise), len(inner.common)))
    by_mean[:, : len(forms)] = by_shape[:, means]
    slope = by_shape[:, outer_places(len(forms))] + by_mean @ inner.common_by_outer
    slope += np.tensordot(by_threshold, inner.by_outer, axes=2)
    surprise = surprise - np.tensordot(by_threshold, inner.step, axes=2)
    surprise -= by_mean @ inner.common_step
    by_common = by_mean + np.tensordot(by_threshold, inner.lever, axes=2)
    surprise_covariance = noise + by_common @ inner.common @ by_common.T
    spread = np.einsum("iab,rib->ria", inner.block, by_threshold)
    surprise_covariance += np.tensordot(by_threshold, spread, axes=((1, 2), (1, 2)))
    gain = np.linalg.solve(surprise_covariance, slope).T
    value = shapes[:, 1:].ravel()
    precision = gain @ slope + prior
    step = _bounded_step(precision, gain @ surprise - prior @ value, value)
    covariance: FloatArray = np.asarray(np.linalg.inv(precision))
    back = -covariance @ gain
    return Outer(step, covariance, np.tensordot(back, by_threshold, axes=1), back @ by_common)


def _stack_moments(
    forms: Sequence[FormTotals], views: Sequence[MomentsView], size: tuple[int, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Put the moments of all forms below each other, over all thresholds and shapes."""
    rows = sum(len(view.surprise) for view in views)
    by_threshold, noise = np.zeros((rows, *size)), np.zeros((rows, rows))
    by_shape = np.zeros((rows, SHAPE_SIZE * len(forms)))
    first = 0
    for number, (form, view) in enumerate(zip(forms, views, strict=True)):
        span = slice(first, first + len(view.surprise))
        by_threshold[span, form.columns] = view.by_threshold
        by_shape[span, SHAPE_SIZE * number : SHAPE_SIZE * (number + 1)] = view.by_shape
        noise[span, span] = view.noise
        first = span.stop
    return by_threshold, by_shape, noise


def _bounded_step(precision: FloatArray, score: FloatArray, value: FloatArray) -> FloatArray:
    """Solve, and hold the kurtosis of those forms at its bound that would go beyond."""
    step = np.linalg.solve(precision, score)
    bound = np.where(np.arange(len(value)) % 3 == 2, LARGEST_KURTOSIS, np.inf)
    held = value + step > bound
    if not held.any():
        return np.asarray(step)
    step[held] = bound[held] - value[held]
    free = ~held
    free_score = score[free] - precision[np.ix_(free, held)] @ step[held]
    step[free] = np.linalg.solve(precision[np.ix_(free, free)], free_score)
    return np.asarray(step)


# --- the loop ------------------------------------------------------------------------------------


ROUNDS = 40
#: The loop rests when nothing moves by more than this.
SETTLED = 1e-3
LONGEST_STEP, LONGEST_SHAPE_STEP = 1.0, 0.5
FURTHEST = 9.0
LOWEST_SHAPE = np.array([-4.0, -2.5, -2.0, -6.0])
HIGHEST_SHAPE = np.array([4.0, 1.3, 2.0, 0.1])
#: Rounds before the shifts of takers begin to move.
TAKERS_WAIT = 3


@dataclass(frozen=True, eq=False)
class TotalsProblem:
    """All that does not change from round to round."""

    forms: tuple[FormTotals, ...]
    numbers: tuple[Numbers, ...]
    ladders: Ladders
    rating_scale: bool


@dataclass(frozen=True, eq=False)
class TotalsState:
    """Where the loop stands.

    Attributes
    ----------
    thresholds
        ``[item, step]``, 0 beyond an item's steps; mean location zero.
    pattern
        Coefficients of the common pattern of steps.
    shapes
        ``[form, 4]``.
    shifts
        One per form; None where standings were not released.
    spreads
        Of locations and steps.
    """

    thresholds: FloatArray
    pattern: FloatArray
    shapes: FloatArray
    shifts: tuple[Shifts | None, ...]
    spreads: Spreads


@dataclass(frozen=True, eq=False)
class Linearised:
    """Everything that is known around a state."""

    system: System
    moments: tuple[MomentsView, ...]
    expected: tuple[ExpectedMoments, ...]


def pose_problem(
    forms: Sequence[FormTotals], steps: Sequence[int], model: ScaleModel
) -> TotalsProblem:
    """Check what was given, and gather what stays as it is."""
    if model == "rating-scale" and len(set(steps)) > 1:
        raise BadUsage(
            "a rating scale gives all items the same steps, but the items have "
            f"{', '.join(map(str, sorted(set(steps))))} of them; use the model partial-credit"
        )
    ladders = describe_items(steps)
    return TotalsProblem(
        tuple(forms), tuple(map(count_takers, forms)), ladders, model == "rating-scale"
    )


def start_state(problem: TotalsProblem) -> TotalsState:
    """Equal items with the usual steps, standard normal abilities."""
    ladders = problem.ladders
    thresholds = ladders.pattern @ ladders.usual
    shifts = tuple(
        None if form.takers is None else Shifts(np.zeros(len(form.columns)))
        for form in problem.forms
    )
    shapes = np.zeros((len(problem.forms), SHAPE_SIZE))
    step = NO_STEP_SPREAD if problem.rating_scale else 0.25
    return TotalsState(thresholds, ladders.usual, shapes, shifts, Spreads(0.9, step))


def linearise(problem: TotalsProblem, state: TotalsState) -> Linearised:
    """Look at all forms around a state."""
    totals, moments, everything = [], [], []
    for number, (form, numbers) in enumerate(zip(problem.forms, problem.numbers, strict=True)):
        shape, shifts = state.shapes[number], state.shifts[number]
        shift = None if shifts is None else shifts.value
        expected = expect_form(form, numbers, problem.ladders, state.thresholds, shape, shift)
        steps = problem.ladders.steps[form.columns]
        totals.append(view_totals(form, numbers, expected, shape))
        moments.append(view_moments(form, numbers, expected, steps, shape))
        everything.append(expected)
    system = gather(problem.ladders, problem.forms, totals)
    return Linearised(system, tuple(moments), tuple(everything))


def spreads_around(problem: TotalsProblem, state: TotalsState, system: System) -> Spreads:
    """Learn how far items differ, around the present pattern."""
    deviation = state.thresholds - problem.ladders.pattern @ state.pattern
    target = system.score + np.einsum("iab,ib->ia", system.information, deviation)
    return learn_spreads(
        problem.ladders, system.information, target, rating_scale=problem.rating_scale
    )


def solve_step(
    problem: TotalsProblem, state: TotalsState, around: Linearised, spreads: Spreads
) -> tuple[Inner, Outer]:
    """Solve the linear problem around a state for given spreads."""
    forms = len(problem.forms)
    system = add_prior(
        around.system, problem.ladders, spreads, state.thresholds, state.pattern, state.shapes[:, 0]
    )
    inner = solve_inner(system, inner_places(forms, len(state.pattern)), outer_places(forms))
    tightness = np.array([1.0 if one is None else one.tightness for one in state.shifts])
    prior = prior_of_shapes(forms, tightness)
    return inner, solve_outer(problem.forms, around.moments, inner, state.shapes, prior)


def settle(
    problem: TotalsProblem, state: TotalsState, rounds: int = ROUNDS
) -> tuple[TotalsState, int]:
    """Step until nothing moves, or for so many rounds."""
    done, moved = 0, np.inf
    while done < rounds and moved > SETTLED:
        done += 1
        around = linearise(problem, state)
        spreads = spreads_around(problem, state, around.system)
        inner, outer = solve_step(problem, state, around, spreads)
        new = _take_step(problem, replace(state, spreads=spreads), inner, outer)
        if done > TAKERS_WAIT or rounds < ROUNDS:
            new = replace(new, shifts=_shift_all(problem, new))
        moved, state = _distance(state, new), new
    return state, done


def _take_step(
    problem: TotalsProblem, state: TotalsState, inner: Inner, outer: Outer
) -> TotalsState:
    """Move by the solved step, but no further than the model is about linear."""
    limit = LONGEST_SHAPE_STEP / max(float(np.abs(outer.step).max(initial=0.0)), 1e-12)
    rho = outer.step * min(1.0, limit)
    step = inner.step + inner.by_outer @ rho
    common = inner.common_step + inner.common_by_outer @ rho
    centred, _ = problem.ladders.centre(step)
    part = min(1.0, LONGEST_STEP / max(float(np.abs(centred).max()), 1e-12))
    forms = len(problem.forms)
    shapes = state.shapes + part * np.column_stack([common[:forms], rho.reshape(forms, -1)])
    thresholds, shift = problem.ladders.centre(state.thresholds + part * step)
    shapes[:, 0] -= shift
    return replace(
        state,
        thresholds=np.clip(thresholds, -FURTHEST, FURTHEST),
        pattern=state.pattern + part * common[forms:],
        shapes=np.clip(shapes, LOWEST_SHAPE, HIGHEST_SHAPE),
    )


def _shift_all(problem: TotalsProblem, state: TotalsState) -> tuple[Shifts | None, ...]:
    """Move the shifts of takers of all forms that have them."""
    ladders = problem.ladders
    location = state.thresholds.sum(axis=1) / ladders.steps
    out: list[Shifts | None] = []
    for number, (form, numbers) in enumerate(zip(problem.forms, problem.numbers, strict=True)):
        old, shape = state.shifts[number], state.shapes[number]
        if old is None:
            out.append(None)
            continue
        expected = expect_form(form, numbers, ladders, state.thresholds, shape, old.value)
        columns = form.columns
        out.append(
            shift_takers(form, numbers, expected, ladders.steps[columns], location[columns], old)
        )
    return tuple(out)


def _distance(old: TotalsState, new: TotalsState) -> float:
    """How far the state moved: thresholds, shapes without their means, and shifts."""
    moves = [np.abs(old.thresholds - new.thresholds), np.abs(old.shapes - new.shapes)[:, 1:]]
    moves += [
        np.abs(one.value - other.value)
        for one, other in zip(old.shifts, new.shifts, strict=True)
        if one is not None and other is not None
    ]
    return max(float(move.max(initial=0.0)) for move in moves)
