"""A page with sliders that a steward can show to a committee, offline.

In: a plan, whose fixed parts (delta, relation, assumptions) hold for the page. Out: one HTML file.
Its numbers are a table made by this library, which the page interpolates; how far that is off is
measured when the page is made and written on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import log

import numpy as np

from discreet.analysis.planning.plans import (
    ACCURACY,
    HOPELESS,
    LARGE_EPSILON,
    Plan,
    order_probability,
)
from discreet.analysis.planning.table import (
    CHECKED_POINTS,
    WITHOUT,
    Grid,
    measure_interpolation,
    tabulate,
)
from discreet.markup import write_page
from discreet.privacy.accounting.belief import (
    show_chance,
    show_share,
    surest_belief,
    tail_probability,
)
from discreet.privacy.accounting.gaussian import GaussianBound, largest_mu

SHOWN_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Budgets for which the page says what they promise."""


def make_page(
    plan: Plan,
    *,
    grid: Grid | None = None,
    progress: Callable[[int, int], None] | None = None,
    checked: int = CHECKED_POINTS,
) -> str:
    """Return the page; its sliders start at ``plan``."""
    table = tabulate(plan.setting, grid or Grid(), progress)
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
    facts = {**_facts(plan, off), "beliefs": _believe(plan), "data": data}
    return write_page("plan.html", facts, style="plan.css", script="plan.js")


def _facts(plan: Plan, off: tuple[float, float, float]) -> Mapping[str, str]:
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


def _believe(plan: Plan) -> list[tuple[str, str, str]]:
    """Say for some epsilons how sure somebody can become, and except with which probability."""
    rows = []
    for epsilon in sorted({*SHOWN_EPSILONS, plan.epsilon}):
        sure, beyond = surest_belief(epsilon, plan.neighbours), "cannot be had"
        if plan.delta > 0:
            curve = GaussianBound(Fraction(largest_mu(epsilon, plan.delta)) ** 2)
            beyond = show_chance(tail_probability(curve, epsilon, plan.neighbours))
        rows.append((f"{epsilon:g}", show_share(sure), beyond))
    return rows
