"""Solve a plan for the one quantity that was left out.

In: a function from a quantity to the predicted error. Out: the value that meets the target, or an
error that says the best that can be had.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, log, log10

from discreet.analysis.planning.predict import predict_rmse
from discreet.analysis.planning.setting import Setting
from discreet.errors import BadUsage

MOST_PERSONS = 10**9
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-3, 50.0
MOST_ITEMS = 1000
CLOSE = 1e-3
"""Relative error of a solution, far below that of the prediction itself."""


def solve_persons(setting_with: Callable[[int], Setting], target: float) -> int:
    """Fewest persons with which the predicted error is at most ``target``."""

    def error_at(persons: float) -> float:
        return predict_rmse(setting_with(round(persons)))

    if error_at(MOST_PERSONS) > target:
        raise _unreachable(target, error_at(MOST_PERSONS), f"{MOST_PERSONS:,} persons")
    return ceil(_first_below(error_at, target, 10.0, float(MOST_PERSONS)))


def solve_epsilon(setting_with: Callable[[float], Setting], target: float) -> float:
    """Smallest epsilon with which the predicted error is at most ``target``."""

    def error_at(epsilon: float) -> float:
        return predict_rmse(setting_with(epsilon))

    if error_at(LARGEST_EPSILON) > target:
        raise _unreachable(
            target,
            error_at(LARGEST_EPSILON),
            f"epsilon {LARGEST_EPSILON:g}; more persons or more answers are needed",
        )
    found = _first_below(error_at, target, SMALLEST_EPSILON, LARGEST_EPSILON)
    digits = 2 - ceil(log10(found))
    return min(round(ceil(found * 10.0**digits) / 10.0**digits, 12), LARGEST_EPSILON)


def solve_answers(setting_with: Callable[[int], Setting], items: int, target: float) -> int:
    """Fewest answers per person with which the predicted error is at most ``target``."""
    grid = _grid(2, items)
    errors = [predict_rmse(setting_with(answers)) for answers in grid]
    good = [place for place, error in enumerate(errors) if error <= target]
    if not good:
        best = min(range(len(grid)), key=errors.__getitem__)
        raise _unreachable(target, errors[best], f"{grid[best]} answers per person")
    if good[0] == 0:
        return grid[0]
    low, high = grid[good[0] - 1], grid[good[0]]
    while high - low > 1:
        middle = (low + high) // 2
        if predict_rmse(setting_with(middle)) <= target:
            high = middle
        else:
            low = middle
    return high


def solve_items(setting_with: Callable[[int], Setting], fewest: int, target: float) -> int:
    """Most items with which the predicted error is at most ``target``."""
    grid = _grid(fewest, MOST_ITEMS)
    errors = [predict_rmse(setting_with(items)) for items in grid]
    good = [place for place, error in enumerate(errors) if error <= target]
    if not good:
        best = min(range(len(grid)), key=errors.__getitem__)
        raise _unreachable(target, errors[best], f"{grid[best]} items")
    if good[-1] == len(grid) - 1:
        return grid[-1]
    low, high = grid[good[-1]], grid[good[-1] + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if predict_rmse(setting_with(middle)) <= target:
            low = middle
        else:
            high = middle
    return low


def _grid(low: int, high: int, points: int = 10) -> list[int]:
    """Whole numbers from low to high in equal ratios."""
    ratio = (high / low) ** (1 / (points - 1))
    return sorted({min(high, round(low * ratio**k)) for k in range(points)} | {low, high})


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


def _unreachable(target: float, best: float, how: str) -> BadUsage:
    return BadUsage(
        f"a root mean square error of {target:g} logits cannot be reached: the best is "
        f"{best:.3g}, with {how}. Ask for less precision, or change what was held fixed"
    )
