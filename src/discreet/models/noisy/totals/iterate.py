"""The loop of the fit: linearise, learn how far items differ, step.

In: released values of one or more forms. Out: the state where the loop comes to rest. Abilities
follow a density with four numbers per form (mean, scale, lean, bunching) on a grid; each round
linearises the model around the present state, learns how far items differ, and takes the step of
:mod:`~discreet.models.noisy.totals.linear`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.errors import BadUsage
from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.equations import (
    ExpectedMoments,
    Numbers,
    count_takers,
    expect_form,
    view_totals,
)
from discreet.models.noisy.totals.linear import (
    Inner,
    Outer,
    System,
    add_prior,
    gather,
    inner_places,
    outer_places,
    prior_of_shapes,
    solve_inner,
    solve_outer,
)
from discreet.models.noisy.totals.model import SHAPE_SIZE, Ladders, describe_items
from discreet.models.noisy.totals.moments import MomentsView, view_moments
from discreet.models.noisy.totals.takers import (
    NO_STEP_SPREAD,
    Shifts,
    Spreads,
    learn_spreads,
    shift_takers,
)
from discreet.types import FloatArray, ScaleModel

ROUNDS = 40
SETTLED = 1e-3
"""The loop rests when nothing moves by more than this."""
LONGEST_STEP, LONGEST_SHAPE_STEP = 1.0, 0.5
FURTHEST = 9.0
LOWEST_SHAPE = np.array([-4.0, -2.5, -2.0, -6.0])
HIGHEST_SHAPE = np.array([4.0, 1.3, 2.0, 0.1])
TAKERS_WAIT = 3
"""Rounds before the shifts of takers begin to move."""


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
        around.system,
        problem.ladders,
        spreads,
        state.thresholds,
        state.pattern,
        state.shapes[:, 0],
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
