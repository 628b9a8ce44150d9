"""The page with sliders for a committee: a table of predicted errors that it interpolates.

In: a plan, whose fixed parts (delta, relation, assumptions) stay. Out: one HTML file that works
offline. Errors are computed at the points of a grid; how far interpolation is off is measured when
the page is made and written on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp, log
from typing import Any

import numpy as np

from discreet.html import write_page
from discreet.planning.forecast import predict_rmse, predict_rmse_without_privacy
from discreet.planning.plan import (
    ACCURACY,
    HOPELESS,
    LARGE_EPSILON,
    Plan,
    order_probability,
    plannable,
)
from discreet.planning.study import Setting
from discreet.privacy.accounting import surest_belief
from discreet.privacy.accounting.spend import GaussianBound, largest_mu, tail_probability
from discreet.privacy.mechanisms import mechanisms_for
from discreet.text import show_chance, show_probability_bound

WITHOUT = "without privacy"
CHECKED_POINTS = 120


@dataclass(frozen=True)
class Grid:
    """Where the table is computed; persons and epsilon in equal ratios, for cubic interpolation.

    Answers go from 2 to all items in ``steps`` steps of about equal ratio. ``totals``, which is for
    items with steps, is left out: its errors take ten times as long.
    """

    persons: tuple[float, ...] = tuple(100 * 10 ** (k / 3) for k in range(13))
    items: tuple[int, ...] = (5, 7, 10, 11, 22, 45, 90, 180, 320, 500)
    steps: int = 5
    epsilons: tuple[float, ...] = tuple(0.05 * 200 ** (k / 7) for k in range(8))
    mechanisms: tuple[str, ...] = tuple(n for n in mechanisms_for("answers") if n != "totals")

    def answers(self, items: int) -> list[int]:
        """Return the numbers of answers at which a list of that length is computed."""
        others = items - 1
        return sorted({1 + round(others ** (k / self.steps)) for k in range(self.steps + 1)})


@dataclass(frozen=True)
class PlanTable:
    """Logarithms of errors: ``errors[name][item place][answer place][person][epsilon]``."""

    grid: Grid
    answers: list[list[int]]
    errors: dict[str, list[Any]]

    def interpolate(
        self, name: str, persons: float, items: float, answers: float, epsilon: float
    ) -> float:
        """Return the error between the points of the grid, as the page does it."""
        # An answer counts by what it is compared with: one less than all answers.
        fill = log(answers - 1) / log(items - 1)
        along_persons = cubic_weights([log(p) for p in self.grid.persons], log(persons))
        along_epsilon = cubic_weights([log(e) for e in self.grid.epsilons], log(epsilon))
        if name == WITHOUT:
            along_epsilon = [(0, 1.0)]
        total = 0.0
        for row, share in linear_weights([log(m) for m in self.grid.items], log(items)):
            axis = [log(a - 1) for a in self.answers[row]]
            for column, part in linear_weights(axis, fill * axis[-1]):
                block = self.errors[name][row][column]
                for (i, v), (k, w) in product(along_persons, along_epsilon):
                    total += share * part * v * w * block[i][k]
        return exp(total)


def linear_weights(axis: Sequence[float], at: float) -> list[tuple[int, float]]:
    """Weights of the two neighbours on an axis; beyond its ends the end counts."""
    at = min(max(at, axis[0]), axis[-1])
    left = min(max(bisect_right(axis, at) - 1, 0), max(len(axis) - 2, 0))
    if len(axis) == 1:
        return [(0, 1.0)]
    part = (at - axis[left]) / (axis[left + 1] - axis[left])
    return [(left, 1 - part), (left + 1, part)]


def cubic_weights(axis: Sequence[float], at: float) -> list[tuple[int, float]]:
    """Catmull-Rom weights on an even axis; beyond its ends it goes on straight."""
    (left, _), (right, t) = linear_weights(axis, at)
    around = [
        (left - 1, (-t + 2 * t**2 - t**3) / 2),
        (left, (2 - 5 * t**2 + 3 * t**3) / 2),
        (right, (t + 4 * t**2 - 3 * t**3) / 2),
        (right + 1, (t**3 - t**2) / 2),
    ]
    weights = [0.0] * len(axis)
    for index, weight in around:
        if index < 0:
            weights[0] += 2 * weight
            weights[1] -= weight
        elif index >= len(axis):
            weights[-1] += 2 * weight
            weights[-2] -= weight
        else:
            weights[index] += weight
    return [(index, weight) for index, weight in enumerate(weights) if weight]


def tabulate(setting: Setting, grid: Grid) -> PlanTable:
    """Compute the errors at every point of the grid; all else as in ``setting``."""
    answers = [grid.answers(items) for items in grid.items]
    possible = plannable(setting.neighbours)
    names = [name for name in grid.mechanisms if name in possible]
    errors: dict[str, list[Any]] = {}
    for name in [WITHOUT, *names]:
        errors[name] = []
        for items, numbers in zip(grid.items, answers, strict=True):
            errors[name].append([])
            for number in numbers:
                here = replace(setting, items=items, answers=number)
                errors[name][-1].append(list(_block(name, here, grid)))
    return PlanTable(grid, answers, errors)


def _block(name: str, setting: Setting, grid: Grid) -> Iterator[list[float]]:
    for persons in grid.persons:
        here = replace(setting, persons=round(persons))
        if name == WITHOUT:
            yield [round(log(predict_rmse_without_privacy(here)), 4)]
        else:
            settings = (replace(here, mechanism=name, epsilon=e) for e in grid.epsilons)
            yield [round(log(predict_rmse(study)), 4) for study in settings]


def measure_interpolation(
    table: PlanTable, setting: Setting, points: int
) -> tuple[float, float, float]:
    """Relative difference between interpolated and computed errors at random points.

    Half of the points, nine in ten of them and all of them lie within the three numbers.
    """
    rng = np.random.default_rng(1)
    grid = table.grid
    off = []
    names = [name for name in table.errors if name != WITHOUT]
    for _ in range(points):
        persons = round(exp(rng.uniform(log(grid.persons[0]), log(grid.persons[-1]))))
        epsilon = exp(rng.uniform(log(grid.epsilons[0]), log(grid.epsilons[-1])))
        items = round(exp(rng.uniform(log(grid.items[0]), log(grid.items[-1]))))
        answers = 1 + round((items - 1) ** rng.uniform(0, 1))
        name = names[int(rng.integers(len(names)))]
        here = replace(
            setting, persons=persons, items=items, answers=answers, epsilon=epsilon, mechanism=name
        )
        guess = table.interpolate(name, persons, items, answers, epsilon)
        off.append(abs(log(guess / predict_rmse(here))))
    median, ninth_decile, worst = np.quantile(off, [0.5, 0.9, 1.0])
    return float(median), float(ninth_decile), float(worst)


#: Budgets for which the page says what they promise.
SHOWN_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


def make_page(plan: Plan, *, grid: Grid | None = None, checked: int = CHECKED_POINTS) -> str:
    """Return the page; its sliders start at ``plan``."""
    table = tabulate(plan.setting, grid or Grid())
    off = measure_interpolation(table, plan.setting, checked)
    spread = plan.setting.assumptions.difficulty_spread
    curve = np.linspace(0.005, 1.0, 200)
    data = {
        "persons": [log(value) for value in table.grid.persons],
        "items": [log(value) for value in table.grid.items],
        "epsilons": [log(value) for value in table.grid.epsilons],
        "answers": table.answers,
        "errors": table.errors,
        "without": WITHOUT,
        "spread": spread,
        "hopeless": HOPELESS,
        "large_epsilon": LARGE_EPSILON,
        "delta": plan.delta,
        "order": [round(order_probability(float(x) * spread, spread), 4) for x in curve],
        "order_at": [float(curve[0]), float(curve[-1])],
        "start": {
            "persons": plan.persons,
            "items": plan.items,
            "answers": plan.answers,
            "epsilon": plan.epsilon,
            "mechanism": plan.mechanism,
        },
    }
    facts = {**_plan_facts(plan, off), "beliefs": list_beliefs(plan), "data": data}
    return write_page("plan.html", facts, styles=["plan.css"], scripts=["plan.js"])


def _plan_facts(plan: Plan, off: tuple[float, float, float]) -> Mapping[str, str]:
    assumed = plan.setting.assumptions
    return {
        "delta": f"{plan.delta:g}",
        "neighbours": str(plan.neighbours),
        "difficulty_spread": f"{assumed.difficulty_spread:g}",
        "ability_spread": f"{assumed.ability_spread:g}",
        "ability_mean": f"{assumed.ability_mean:g}",
        "accuracy": ACCURACY,
        "interpolation_half": f"{100 * off[0]:.1f}%",
        "interpolation_most": f"{100 * off[1]:.1f}%",
        "interpolation_worst": f"{100 * off[2]:.1f}%",
    }


def list_beliefs(plan: Plan) -> list[tuple[str, str, str]]:
    """Say for some epsilons how sure somebody can become, and except with which probability."""
    rows = []
    for epsilon in sorted({*SHOWN_EPSILONS, plan.epsilon}):
        sure, beyond = surest_belief(epsilon, plan.neighbours), "cannot be had"
        if plan.delta > 0:
            curve = GaussianBound(Fraction(largest_mu(epsilon, plan.delta)) ** 2)
            beyond = show_chance(tail_probability(curve, epsilon, plan.neighbours))
        rows.append((f"{epsilon:g}", show_probability_bound(sure), beyond))
    return rows
