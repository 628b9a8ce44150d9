"""Pages to show: the public page of a release, and the page with sliders for a committee.

Each is one HTML file that works offline. The page of a release is given its estimate and privacy
record, and cannot show more. The page of a plan holds a table made by this library, which it
interpolates; how far that is off is measured when the page is made and written on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import log
from typing import Any

import numpy as np

from discreet.html import HtmlColumn, write_page
from discreet.items.curves import threshold_rows
from discreet.planning.plan import (
    ACCURACY,
    HOPELESS,
    LARGE_EPSILON,
    Plan,
    order_probability,
)
from discreet.planning.table import (
    CHECKED_POINTS,
    WITHOUT,
    Grid,
    measure_interpolation,
    tabulate,
)
from discreet.privacy.accounting.gaussian import (
    GaussianBound,
    largest_mu,
    show_chance,
    show_probability_bound,
    surest_belief,
    tail_probability,
)
from discreet.report.curve_figures import draw_thresholds
from discreet.report.pictures import difficulty_rows, summarise_items
from discreet.report.statement import explain_promise, make_statement, name_access, warn
from discreet.report.statement_points import (
    explain_floor,
    has_errors,
    has_step_items,
    list_identity,
    list_nist_points,
    name_edition,
)
from discreet.report.svg import draw_difficulties
from discreet.results.estimate import Estimate
from discreet.results.ranks import (
    ItemOrder,
    find_standing,
    list_groups,
    say_extremes,
    show_ranks,
)
from discreet.text import show_probability
from discreet.words import Language, find_kind, mark, speak


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page, in the language of the record."""
    kind, tell = find_kind(record), speak(record)
    identity = record.get("identity", {})
    has_numbers = bool(estimate.estimated.any())
    rows = difficulty_rows(estimate) if has_numbers else None
    standing = find_standing(estimate) if has_numbers and has_errors(record) else None
    return write_page(
        "public.html",
        {
            "tell": tell,
            "title": identity.get("title") or name_access(record),
            "about": list_identity(record),
            "edition": name_edition(record),
            "access": name_access(record) if "title" in identity else "",
            "points": list_nist_points(record),
            "warning": warn(record),
            "own": {
                name: identity.get(name, "") for name in ("logo", "body", "introduction", "footer")
            },
            "summary": _summarise(estimate, record, standing),
            "boxes": _public_facts(record),
            "kind": kind,
            "has_errors": has_errors(record),
            "picture": rows and draw_difficulties(rows, kind, tell),
            "thresholds": _show_thresholds(estimate, tell),
            "columns": _list_items(estimate, record, standing),
            **_describe_standing(standing, record),
            "promise": make_statement(record).promise,
            "method": _method(estimate, record),
        },
        styles=["style.css", *(["steps.css"] if estimate.has_steps else [])],
        scripts=["table.js", "compare.js"],
        images="logo" in identity,
    )


def _list_items(
    estimate: Estimate, record: Mapping[str, Any], standing: ItemOrder | None
) -> list[HtmlColumn]:
    """Return the table of items."""
    columns, tell = estimate.to_dict(), speak(record)
    ranks = {} if standing is None else show_ranks(standing.ranges)
    numbers = [
        HtmlColumn(tell("item"), columns["item"]),
        HtmlColumn(tell.of(find_kind(record), "{number}"), columns["difficulty"]),
    ]
    if not has_errors(record):
        return numbers
    return [
        *numbers,
        HtmlColumn(tell("possible ranks"), [ranks.get(item) for item in estimate.items]),
        HtmlColumn(tell("se"), columns["se"]),
        HtmlColumn(tell("lower"), columns["lower"]),
        HtmlColumn(tell("upper"), columns["upper"]),
    ]


def _show_thresholds(estimate: Estimate, tell: Language) -> Mapping[str, Any] | None:
    """Return the picture and the table of thresholds; None where items have one step each."""
    if not estimate.has_steps or not estimate.estimated.any():
        return None
    columns = estimate.thresholds_to_dict()
    return {
        "picture": draw_thresholds(threshold_rows(estimate), tell),
        "columns": [
            HtmlColumn(tell("item"), columns["item"]),
            HtmlColumn(tell("step"), columns["step"]),
            HtmlColumn(tell("threshold"), columns["threshold"]),
            HtmlColumn(tell("se"), columns["se"]),
            HtmlColumn(tell("lower"), columns["lower"]),
            HtmlColumn(tell("upper"), columns["upper"]),
        ],
    }


def _describe_standing(standing: ItemOrder | None, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables of groups and of neighbours, and what the comparison of two items needs."""
    if standing is None:
        return {"groups": None, "more_groups": "", "neighbours": None, "pairs": None}
    tell, ranges = speak(record), standing.ranges
    groups = list_groups(ranges, tell)
    more = sum(len(group) > 1 for group in ranges.groups) - len(groups["places"])
    remainder = tell.count(more, "… and {number} more group.", "… and {number} more groups.")
    return {
        "groups": [
            HtmlColumn(tell("places"), groups["places"]),
            HtmlColumn(tell("items"), groups["items"]),
        ],
        "more_groups": remainder if more else "",
        "neighbours": _list_neighbours(standing.neighbours, tell),
        "pairs": standing.pairs and {**standing.pairs, "words": _word_comparison(record)},
    }


def _list_neighbours(neighbours: Mapping[str, list[Any]], tell: Language) -> list[HtmlColumn]:
    chances = [show_probability(one, tell) for one in neighbours["probability"]]
    verdicts = [tell("yes") if one else tell("no") for one in neighbours["told_apart"]]
    return [
        HtmlColumn(tell("item"), neighbours["above"]),
        HtmlColumn(tell("next"), neighbours["below"]),
        HtmlColumn(tell("difference"), neighbours["difference"]),
        HtmlColumn(tell("lower"), neighbours["lower"]),
        HtmlColumn(tell("upper"), neighbours["upper"]),
        HtmlColumn(tell("probability of the order"), chances),
        HtmlColumn(tell("told apart"), verdicts),
    ]


def _word_comparison(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences of a comparison; the script puts in what stands in braces."""
    kind, tell = find_kind(record), speak(record)
    return {
        "same": tell.of(kind, "Choose two different {items}."),
        "told": tell.of(
            kind,
            "{first} less {second}: {difference} logits (standard error {se}). 95% interval of "
            "this pair alone: {alone}; of all pairs at once: {together}. Probability that {first} "
            "is the {scale} one, for this pair alone: {chance}.",
            **{
                name: f"{{{name}}}"
                for name in ("first", "second", "difference", "se", "alone", "together", "chance")
            },
        ),
        "apart": tell.of(kind, "Among all {items}, the two can be told apart at 95%."),
        "alike": tell.of(kind, "Among all {items}, the two cannot be told apart at 95%."),
        "range": tell("{low} to {high}", low="{low}", high="{high}"),
        "over": tell("over 99.9%"),
        "under": tell("under 0.1%"),
        "percent": tell("{percent}%", percent="{percent}"),
    }


def _summarise(estimate: Estimate, record: Mapping[str, Any], standing: ItemOrder | None) -> str:
    kind, tell = find_kind(record), speak(record)
    count = tell.of(kind, "{count} {items}.", count=len(estimate.items))
    if not has_errors(record):
        return " ".join([count, *explain_floor(record), explain_promise(record)])
    if standing is None:
        return tell.of(kind, "The noise leaves nothing to say about these {items}.")
    typical = f"{summarise_items(estimate).typical_se:.2f}"
    return " ".join(
        [
            count,
            say_extremes(standing.ranges, kind, tell),
            tell("The typical standard error is {se} logits.", se=typical),
            explain_promise(record),
        ]
    )


def _public_facts(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee, kind, tell = record["guarantee"], find_kind(record), speak(record)
    counted = tell.of(kind, "{answers} per {person}")
    return {
        tell("epsilon"): f"{guarantee['epsilon']:g}",
        tell("delta"): f"{guarantee['delta']:g}",
        tell("neighbours"): tell.term(guarantee["neighbours"]),
        tell("mechanism"): record["mechanism"],
        counted: tell("at most {cap}", cap=record[kind.cap]),
    }


def _method(estimate: Estimate, record: Mapping[str, Any]) -> str:
    tell = speak(record)
    noise = tell.term(record["guarantee"]["noise"])
    if "floor" in record:
        return tell(
            "{model} read off the stationary vector of a Markov chain on noisy counts, which are "
            "raised to 1 where they are below (estimator: {estimator}; Nguyen and Zhang 2023, "
            "Algorithm 2). {noise}. {software}.",
            model=_name_model(record),
            estimator=estimate.method,
            noise=noise[:1].upper() + noise[1:],
            software=record["software"],
        )
    return tell(
        "{model} estimated from noisy values only, with full knowledge of the noise (estimator: "
        "{estimator}). {noise}. {software}.",
        model=_name_model(record),
        estimator=estimate.method,
        noise=noise[:1].upper() + noise[1:],
        software=record["software"],
    )


MODELS = {
    "partial-credit": mark("Thresholds of the partial credit model"),
    "rating-scale": mark("Thresholds of the rating scale model"),
}


def _name_model(record: Mapping[str, Any]) -> str:
    tell = speak(record)
    if has_step_items(record):
        return tell.term(MODELS[record["model"]])
    return tell.of(find_kind(record), "{model}")


SHOWN_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Budgets for which the page says what they promise."""


def make_page(
    plan: Plan,
    *,
    grid: Grid | None = None,
    checked: int = CHECKED_POINTS,
) -> str:
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
