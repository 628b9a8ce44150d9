"""Find the quantity of a plan that was left out: where the predicted error meets a target.

In: the predicted error as a function of it, and a target. Out: the fewest persons or answers,
the smallest epsilon or the most items with which it is met, or an error that says the best that can
be had.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, log, log10
from typing import Any

from discreet.errors import BadUsage

MOST_PERSONS = 10**9
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-3, 50.0
MOST_ITEMS = 1000
GRID_POINTS = 10
CLOSE = 1e-3
"""Relative error of a solution, far below that of the prediction itself."""

ErrorAt = Callable[[Any], float]
"""The predicted error at a value of the quantity that is solved for."""


def solve_persons(error_at: ErrorAt, target: float) -> int:
    """Fewest persons with which the predicted error is at most ``target``."""
    _check_reachable(target, error_at(MOST_PERSONS), f"{MOST_PERSONS:,} persons")
    return ceil(_first_below(lambda n: error_at(round(n)), target, 10.0, float(MOST_PERSONS)))


def solve_epsilon(error_at: ErrorAt, target: float) -> float:
    """Smallest epsilon with which the predicted error is at most ``target``."""
    condition = f"epsilon {LARGEST_EPSILON:g}; more persons or more answers are needed"
    _check_reachable(target, error_at(LARGEST_EPSILON), condition)
    epsilon = _first_below(error_at, target, SMALLEST_EPSILON, LARGEST_EPSILON)
    digits = 2 - ceil(log10(epsilon))
    return min(round(ceil(epsilon * 10.0**digits) / 10.0**digits, 12), LARGEST_EPSILON)


def solve_answers(error_at: ErrorAt, target: float, *, highest: int) -> int:
    """Fewest answers per person with which the predicted error is at most ``target``."""
    return _solve_whole(error_at, target, _grid(2, highest), "answers per person")


def solve_items(error_at: ErrorAt, target: float, *, fewest: int) -> int:
    """Most items with which the predicted error is at most ``target``."""
    return _solve_whole(error_at, target, _grid(fewest, MOST_ITEMS)[::-1], "items")


def _solve_whole(error_at: ErrorAt, target: float, grid: list[int], noun: str) -> int:
    """Return the first number along the grid that meets the target, to the last unit."""
    errors = [error_at(number) for number in grid]
    best = min(errors)
    _check_reachable(target, best, f"{grid[errors.index(best)]} {noun}")
    first = next(index for index, error in enumerate(errors) if error <= target)
    missed, met = grid[max(first - 1, 0)], grid[first]
    while abs(met - missed) > 1:
        middle = (missed + met) // 2
        missed, met = (missed, middle) if error_at(middle) <= target else (middle, met)
    return met


def _grid(low: int, high: int) -> list[int]:
    """Whole numbers from low to high in equal ratios."""
    ratio = (high / low) ** (1 / (GRID_POINTS - 1))
    return sorted({min(high, round(low * ratio**k)) for k in range(GRID_POINTS)} | {low, high})


def _first_below(
    error_at: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Where a falling curve reaches the target; regula falsi in logarithms (Illinois rule)."""
    left, right = log(low), log(high)
    at_left, at_right = log(error_at(low) / target), log(error_at(high) / target)
    if at_left <= 0:
        return low
    for _ in range(60):
        if right - left < CLOSE or at_right == 0:
            break
        # The curve is flat where the noise drowns everything; halving gets out of there.
        middle = (left * at_right - right * at_left) / (at_right - at_left)
        middle = min(max(middle, left + 0.02 * (right - left)), right - 0.02 * (right - left))
        value = log(error_at(exp(middle)) / target)
        if abs(value) < CLOSE / 4:
            return exp(middle)
        if value <= 0:
            right, at_right, at_left = middle, value, at_left / 2
        else:
            left, at_left, at_right = middle, value, at_right / 2
    return exp(right)


def _check_reachable(target: float, best: float, condition: str) -> None:
    if best > target:
        raise BadUsage(
            f"a root mean square error of {target:g} logits cannot be reached: the best is "
            f"{best:.3g}, with {condition}. Ask for less precision, or change what was held fixed"
        )
