"""Plan: what privacy will cost, from sizes that the steward types in.

Nothing here reads answers: the page is made from its own address, and knows no opened file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.markup import HtmlColumn, show_predicted_share
from discreet.planning.plan import CLEARLY, ORDERED_GAP, Plan, plan, plannable
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms import MECHANISMS
from discreet.report.pages import list_beliefs
from discreet.report.svg import draw_epsilons
from discreet.studio.commands import Same
from discreet.studio.forms import (
    Field,
    read_fields,
    read_number,
    read_whole,
    write_fields,
    write_number,
)
from discreet.studio.frame import Secrecy, go, session_of, show
from discreet.tables.remedies import spell_command

MOST_ITEMS = 1000
MOST_PERSONS = 10**9
FAR = 10.0
"""Logits: items that must lie farther apart to be told apart are never told apart."""

SLIDERS = {
    "persons": (50, 1_000_000),
    "items": (5, 500),
    "answers": (2, "items"),
    "epsilon": (0.05, 10),
}
"""Where sliders begin and end; one ends where another field says."""

STUDY = (
    Field(
        "persons",
        "Persons",
        "How many persons answer. A number that is public or that you plan for, not one that you "
        "counted in the answers.",
        read=read_whole,
    ),
    Field(
        "items",
        "Items",
        "How many items are on the list that you will release.",
        read=read_whole,
    ),
    Field(
        "answers",
        "Answers per person",
        "The cap: how many answers of each person count at most. A lower one needs less noise, and "
        "leaves answers unused. Blank: everybody answers every item.",
        read=read_whole,
    ),
    Field(
        "epsilon",
        "Epsilon",
        "How much one person's answers may change what readers can conclude: the smaller, the "
        "stronger the promise and the larger the error. 1 is a good start; above 5 means little.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "delta",
        "Delta",
        "What a probability may change by beyond epsilon. Keep it far below one divided by the "
        "number of persons; 0 needs a mechanism with Laplace noise.",
        read=read_number,
        write=lambda value: f"{value:.12f}".rstrip("0").rstrip("."),
    ),
    Field(
        "neighbours",
        "What is protected",
        "Replaced: nobody can tell what a person answered; how many took part is public. Taken "
        "out: nobody can tell whether a person took part at all.",
        {"": "a person's answers may be replaced", "add-remove": "a person may be taken out"},
    ),
    Field(
        "mechanism",
        "Mechanism",
        "How noise is added. The table below shows what each would give for this study; if in "
        "doubt, leave it.",
        {"": "the usual one"} | {name: name for name in plannable(Neighbours.REPLACE_ONE)},
    ),
    Field(
        "steps",
        "Steps of an item",
        "Right and wrong is one step. A question from never to always in five categories has four.",
        {"": "right and wrong"} | {str(n): f"{n} steps, scored 0 to {n}" for n in range(2, 10)},
        read=int,
    ),
    Field(
        "design",
        "Who answers which items",
        "Only where nobody answers all of them. Booklets: each person gets two neighbouring blocks "
        "of items.",
        {"": "items drawn at random", "booklets": "booklets"},
    ),
)
"""The study and its promise."""

MORE = (
    Field(
        "target_rmse",
        "Wanted error, in logits",
        "Instead of predicting the error: say which one you need, such as 0.2, and leave persons, "
        "items or epsilon blank. That one is then computed.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "top",
        "Hardest items to find",
        "Where readers will look at the hardest ones: how many. The plan then says how many of "
        "them the release finds.",
        read=read_whole,
    ),
    Field(
        "difficulty_spread",
        "Spread of the difficulties",
        "What you expect from similar tests: the standard deviation of the difficulties in logits. "
        "Blank: 1.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "ability_spread",
        "Spread of the abilities",
        "The standard deviation of the persons' abilities in logits. Blank: 1.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "ability_mean",
        "Persons above the items",
        "How far the average person is above the average item, in logits; below 0 for a test that "
        "is too hard. Blank: 0.",
        read=read_number,
        write=write_number,
    ),
)
"""What else can be said."""

FIELDS = (*STUDY, *MORE)
BEGIN = {"persons": 1000, "items": 30, "epsilon": 1.0, "delta": 1e-6}
"""What stands in the fields at first."""


def show_plan(request: Request) -> Response:
    """Show the fields, and what is predicted for what stands in them."""
    sent = {one.name: request.query_params.get(one.name, "").strip() for one in FIELDS}
    said = sent if any(sent.values()) else write_fields(FIELDS, BEGIN)
    problem, told = "", {"made": None}
    try:
        told = _predict(read_fields(FIELDS, said))
    except BadUsage as error:
        problem = str(error)
    return show(
        "plan.html",
        {
            "problem": problem,
            "study": STUDY,
            "more": MORE,
            "said": said,
            "is_more_said": any(said[one.name] for one in MORE),
            "sliders": SLIDERS,
            **told,
        },
        title="What privacy will cost",
        secrecy=Secrecy.PUBLIC,
        here="plan",
        status=400 if problem else 200,
    )


def _predict(said: Mapping[str, Any]) -> dict[str, Any]:
    _check(said)
    asked = {name: value for name, value in said.items() if name != "top"}
    made = plan(**asked)
    top = said.get("top")
    return {
        "made": made,
        "facts": dict(_list_facts(made, top)),
        "curve": draw_epsilons(made),
        "compared": _compare(made),
        "beliefs": list_beliefs(made),
        "wrong": made.wrong_assumptions(),
        "release": f"/release?{urlencode(_carry(made))}",
        "same": _write_same(asked, top),
    }


def _check(said: Mapping[str, Any]) -> None:
    """Refuse what is not enough for a plan, or too much for a page that answers at once."""
    blank = [one.label for one in STUDY if one.name in ("persons", "items", "epsilon")
             and one.name not in said]  # fmt: skip
    if blank and "target_rmse" not in said:
        raise BadUsage(
            f"{' and '.join(blank)}: nothing was typed. Type a number; or type a wanted error "
            "below, and one blank field is computed from it."
        )
    for name, most in (("items", MOST_ITEMS), ("persons", MOST_PERSONS)):
        if said.get(name, 0) > most:
            raise BadUsage(
                f"This page plans up to {most:,} {name}, found {said[name]:,}. For more, use "
                "discreet plan on the command line, which may take minutes."
            )


def _list_facts(made: Plan, top: int | None) -> Iterator[tuple[str, str]]:
    """Yield what a plan predicts: its name, and the number as it is shown."""
    yield "Typical error of a released difficulty", f"{made.rmse:.3f} logits"
    if made.threshold_rmse is not None:
        yield "The same of its thresholds", f"{made.threshold_rmse:.3f} logits"
    yield "The same without privacy", f"{made.rmse_without_privacy:.3f} logits"
    yield "95% intervals reach", f"± {made.half_width:.2f} logits"
    worth = f"{made.equivalent_persons:,} of {made.persons:,} persons"
    yield "Worth as much as, without privacy", worth
    right = show_predicted_share(made.order_probability)
    yield f"Two items {ORDERED_GAP:g} logits apart come out in the right order", right
    gap = f"{made.clear_gap:.2f} logits" if made.clear_gap < FAR else "no distance"
    yield f"In the right order {CLEARLY:.0%} of the time from a distance of", gap
    if top is not None:
        yield f"Of the {top:,} hardest items are found", show_predicted_share(made.top_overlap(top))


def _compare(made: Plan) -> list[HtmlColumn]:
    plans = made.compare()
    return [
        HtmlColumn("mechanism", list(plans)),
        HtmlColumn("typical error", [one.rmse for one in plans.values()], 3),
        HtmlColumn("worth, in persons", [one.equivalent_persons for one in plans.values()]),
        HtmlColumn("what it does", [MECHANISMS[name].help for name in plans]),
    ]


def _carry(made: Plan) -> dict[str, Any]:
    """Return what a release of this plan is asked for, under the names that it has there."""
    return {
        "epsilon": f"{made.epsilon:g}",
        "delta": f"{made.delta:g}",
        "neighbours": str(made.neighbours),
        "mechanism": made.mechanism,
        "max_answers": made.answers,
        "persons": made.persons,
    }


def _write_same(asked: Mapping[str, Any], top: int | None) -> Same:
    usual = {one.name: one.default for one in signature(plan).parameters.values()}
    said = {name: value for name, value in asked.items() if usual[name] != value}
    inside = ", ".join(f"{name}={value!r}" for name, value in said.items())
    lines = ["import discreet", "", f"study = discreet.plan({inside})"]
    lines += ["print(study.rmse, study.half_width, study.clear_gap)"]
    lines += [f"print(study.top_overlap({top}))"] * (top is not None)
    typed = said if top is None else {**said, "top": top}
    return Same("\n".join([*lines, ""]), " ".join(["discreet", "plan", *spell_command(typed)]))


def choose_work(request: Request) -> Response:
    """Take a plan to the release of the answers that are open; ask which, where it is not clear."""
    works = list(session_of(request).works.values())
    said = f"?{request.url.query}" if request.url.query else ""
    if len(works) == 1:
        return go(f"/release/{works[0].name}{said}")
    return show(
        "choose.html",
        {"works": works, "said": said},
        title="Which answers shall be released?",
        secrecy=Secrecy.OWN if works else Secrecy.PUBLIC,
        here="plan",
    )


ROUTES = (Route("/plan", show_plan), Route("/release", choose_work))
