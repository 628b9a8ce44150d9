"""Pages to show: the public page of a release, and the page with sliders for a committee.

Each is one HTML file that works offline. The page of a release is given its estimate and privacy
record, and cannot show more. The page of a plan holds a table made by this library, which it
interpolates; how far that is off is measured when the page is made and written on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import log
from typing import Any

import numpy as np

from discreet.analysis.curves import threshold_rows
from discreet.analysis.figures import difficulty_rows, summarise_items
from discreet.analysis.plan_table import (
    CHECKED_POINTS,
    WITHOUT,
    Grid,
    measure_interpolation,
    tabulate,
)
from discreet.analysis.planning import (
    ACCURACY,
    HOPELESS,
    LARGE_EPSILON,
    Plan,
    order_probability,
)
from discreet.analysis.standing import (
    Standing,
    find_standing,
    list_groups,
    say_extremes,
    show_ranks,
)
from discreet.markup import HtmlColumn, show_probability, write_page
from discreet.output.curves import draw_thresholds
from discreet.output.points import has_steps, list_identity, list_points, name_edition
from discreet.output.statement import explain_promise, make_statement
from discreet.output.svg import draw_difficulties
from discreet.privacy.accounting.gaussian import (
    GaussianBound,
    largest_mu,
    show_chance,
    show_share,
    surest_belief,
    tail_probability,
)
from discreet.results.estimate import Estimate
from discreet.results.kinds import find_kind

PRIVATE, FOR_TESTS = "released with differential privacy", "not private: made with noise for tests"


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page."""
    kind, is_private = find_kind(record), record["guarantee"]["is_private"]
    said, access = record.get("identity", {}), PRIVATE if is_private else FOR_TESTS
    columns = estimate.to_dict()
    has_numbers = bool(estimate.estimated.any())
    shown = difficulty_rows(estimate) if has_numbers else None
    standing = find_standing(estimate) if has_numbers else None
    ranks = {} if standing is None else show_ranks(standing.ranges)
    return write_page(
        "public.html",
        {
            "title": said.get("title") or f"{kind.title}, {access}",
            "about": list_identity(record),
            "edition": name_edition(record),
            "access": access if "title" in said else "",
            "points": list_points(record),
            "warning": "" if is_private else "Not private: made with a seeded source for tests.",
            "summary": _summarise(estimate, record, standing),
            "boxes": _public_facts(record),
            "kind": kind,
            "picture": shown and draw_difficulties(shown, kind),
            "thresholds": _show_thresholds(estimate),
            "columns": [
                HtmlColumn("item", columns["item"]),
                HtmlColumn(kind.number, columns["difficulty"]),
                HtmlColumn("possible ranks", [ranks.get(item) for item in estimate.items]),
                *(HtmlColumn(name, columns[name]) for name in ("se", "lower", "upper")),
            ],
            **_describe_standing(standing),
            "promise": make_statement(record).promise,
            "method": _method(estimate, record),
        },
        styles=["style.css", *(["steps.css"] if estimate.ladder else [])],
        scripts=["table.js", "compare.js"],
    )


def _show_thresholds(estimate: Estimate) -> Mapping[str, Any] | None:
    """Return the picture and the table of thresholds; None where items have one step each."""
    if estimate.ladder is None or not estimate.estimated.any():
        return None
    columns = estimate.thresholds_to_dict()
    names = ("item", "step", "threshold", "se", "lower", "upper")
    return {
        "picture": draw_thresholds(threshold_rows(estimate)),
        "columns": [HtmlColumn(name, columns[name]) for name in names],
    }


def _describe_standing(standing: Standing | None) -> dict[str, Any]:
    """Return tables of groups and of neighbours, and what the comparison of two items needs."""
    if standing is None:
        return {"groups": None, "more_groups": 0, "neighbours": None, "pairs": None}
    groups, near = list_groups(standing.ranges), standing.neighbours
    several = sum(len(group) > 1 for group in standing.ranges.groups)
    chances = [show_probability(one) for one in near["probability"]]
    told = ["yes" if one else "no" for one in near["told_apart"]]
    return {
        "groups": [HtmlColumn("places", groups["places"]), HtmlColumn("items", groups["items"])],
        "more_groups": several - len(groups["places"]),
        "neighbours": [
            HtmlColumn("item", near["above"]),
            HtmlColumn("next", near["below"]),
            *(HtmlColumn(name, near[name]) for name in ("difference", "lower", "upper")),
            HtmlColumn("probability of the order", chances),
            HtmlColumn("told apart", told),
        ],
        "pairs": standing.pairs,
    }


def _summarise(estimate: Estimate, record: Mapping[str, Any], standing: Standing | None) -> str:
    kind = find_kind(record)
    if standing is None:
        return f"The noise leaves nothing to say about these {kind.items}."
    found = summarise_items(estimate)
    return (
        f"{len(estimate.items)} {kind.items}. {say_extremes(standing.ranges, kind)} The typical "
        f"standard error is {found.typical_se:.2f} logits. {explain_promise(record)}"
    )


def _public_facts(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee, kind = record["guarantee"], find_kind(record)
    return {
        "epsilon": f"{guarantee['epsilon']:g}",
        "delta": f"{guarantee['delta']:g}",
        "neighbours": guarantee["neighbours"],
        "mechanism": record["mechanism"],
        f"{kind.answers} per {kind.person}": f"at most {record[kind.cap]}",
    }


def _method(estimate: Estimate, record: Mapping[str, Any]) -> str:
    return (
        f"{_name_model(record)} estimated from noisy values only, with full knowledge of the "
        f"noise (estimator: {estimate.method}). {record['guarantee']['noise'].capitalize()}. "
        f"{record['software']}."
    )


def _name_model(record: Mapping[str, Any]) -> str:
    if not has_steps(record):
        return find_kind(record).model
    return f"Thresholds of the {record['model'].replace('-', ' ')} model"


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
        rows.append((f"{epsilon:g}", show_share(sure), beyond))
    return rows
