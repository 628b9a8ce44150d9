"""Plan: what privacy will cost, from sizes that the steward types in.

Nothing here reads answers: the page is made from its own address, and knows no opened file.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.remedies import spell_command
from discreet.errors import BadUsage
from discreet.html import HtmlColumn
from discreet.planning.plan import CLEARLY, ORDERED_GAP, Plan, list_beliefs, plan, plannable
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms import MECHANISMS
from discreet.report.drawings import draw_epsilons
from discreet.studio.forms import (
    NUMBER,
    WHOLE,
    FieldKind,
    check_needed,
    load_fields,
    read_fields,
    read_number,
    write_fields,
)
from discreet.studio.frame import Same, Secrecy, go, session_of, show, write_call
from discreet.studio.language import tell
from discreet.text import show_predicted_share

MOST_ITEMS = 1000
MOST_PERSONS = 10**9
#: Logits: items that must lie farther apart to be told apart are never told apart.
FAR = 10.0

#: Where sliders begin and end; one ends where another field says.
SLIDERS = {
    "persons": (50, 1_000_000),
    "items": (5, 500),
    "answers": (2, "items"),
    "epsilon": (0.05, 10),
}

#: The study and its promise.
STUDY = load_fields(
    "study",
    persons=WHOLE,
    items=WHOLE,
    answers=WHOLE,
    epsilon=NUMBER,
    delta=FieldKind(read_number, lambda value: f"{value:.12f}".rstrip("0").rstrip(".")),
    steps=FieldKind(int),
    mechanism=FieldKind(
        choices={name: MECHANISMS[name].help for name in plannable(Neighbours.REPLACE_ONE)}
    ),
)

SPREADS = dict.fromkeys(("difficulty_spread", "ability_spread", "ability_mean"), NUMBER)
#: What else can be said.
MORE = load_fields("assumptions", target_rmse=NUMBER, top=WHOLE, **SPREADS)

FIELDS = (*STUDY, *MORE)
#: What stands in the fields at first.
BEGIN = {"persons": 1000, "items": 30, "epsilon": 1.0, "delta": 1e-6}


def show_plan(request: Request) -> Response:
    """Show the fields, and what is predicted for what stands in them."""
    sent = {part.name: request.query_params.get(part.name, "").strip() for part in FIELDS}
    form_values = sent if any(sent.values()) else write_fields(FIELDS, BEGIN)
    values = {
        "study": STUDY,
        "more": MORE,
        "said": form_values,
        "is_more_said": any(form_values[part.name] for part in MORE),
        "sliders": SLIDERS,
        "made": None,
    }
    try:
        values |= _predict(read_fields(FIELDS, form_values))
    except BadUsage as error:
        values["problem"] = str(error)
    return show("plan.html", values, Secrecy.PUBLIC)


def _predict(keywords: PlainMapping) -> PlainDict:
    _check(keywords)
    plan_keywords = {name: value for name, value in keywords.items() if name != "top"}
    study = plan(**plan_keywords)
    top = keywords.get("top")
    plans = study.compare()
    taken = {study.mechanism: tell("{mechanism} (taken)", mechanism=study.mechanism)}
    worth = [each.equivalent_persons for each in plans.values()]
    return {
        "made": study,
        "facts": dict(_list_facts(study, top)),
        "curve": draw_epsilons(study),
        "compared": [
            HtmlColumn(tell("mechanism"), [taken.get(name, name) for name in plans]),
            HtmlColumn(tell("typical error"), [each.rmse for each in plans.values()]),
            HtmlColumn(tell("worth, in persons"), worth),
            HtmlColumn(tell("what it does"), [tell.term(MECHANISMS[name].help) for name in plans]),
        ],
        "beliefs": list_beliefs(study),
        "wrong": study.wrong_assumptions(),
        "release": f"/release?{urlencode(_carry(study))}",
        "same": _write_same(plan_keywords, top),
    }


def _check(keywords: PlainMapping) -> None:
    """Refuse what is not enough for a plan, or too much for a page that answers at once."""
    needed = ("persons", "items", "epsilon")
    if "target_rmse" not in keywords:
        words = tell(
            "nothing was typed. Type a number; or type a wanted error below, and one blank field "
            "is computed from it."
        )
        check_needed(STUDY, needed, keywords, words)
    for name, limit in (("items", MOST_ITEMS), ("persons", MOST_PERSONS)):
        if keywords.get(name, 0) > limit:
            part = next(part for part in STUDY if part.name == name)
            raise part.refuse(
                tell(
                    "This page plans up to {limit}, found {number}. For more, plan on the command "
                    "line, which may take minutes.",
                    limit=tell.number(limit),
                    number=tell.number(keywords[name]),
                )
            )


def _list_facts(study: Plan, top: int | None) -> Iterator[tuple[str, str]]:
    """Yield what a plan predicts: its name, and the number as it is shown."""
    yield tell("Mechanism that would be taken"), study.mechanism
    yield tell("Typical error of a released difficulty"), _say_logits(study.rmse)
    if study.threshold_rmse is not None:
        yield tell("The same of its thresholds"), _say_logits(study.threshold_rmse)
    yield tell("The same without privacy"), _say_logits(study.rmse_without_privacy)
    yield tell("95% intervals reach"), f"± {_say_logits(study.half_width, 2)}"
    worth, persons = (tell.number(n) for n in (study.equivalent_persons, study.persons))
    words = tell("{worth} of {count} persons", worth=worth, count=persons)
    yield tell("Worth as much as, without privacy"), words
    right = tell.term(show_predicted_share(study.order_probability))
    apart = tell(
        "Two items {distance} logits apart come out in the right order", distance=f"{ORDERED_GAP:g}"
    )
    yield apart, right
    gap = _say_logits(study.clear_gap, 2) if study.clear_gap < FAR else tell("no distance")
    clearly = tell(
        "In the right order {share} of the time from a distance of", share=f"{CLEARLY:.0%}"
    )
    yield clearly, gap
    if top is not None:
        share = tell.term(show_predicted_share(study.top_overlap(top)))
        yield tell("Of the {count} hardest items are found", count=tell.number(top)), share


def _say_logits(number: float, digits: int = 3) -> str:
    return tell("{number} logits", number=f"{number:.{digits}f}")


def _carry(study: Plan) -> PlainDict:
    """Return what a release of this plan is asked for, under the names that it has there."""
    return {
        "epsilon": f"{study.epsilon:g}",
        "delta": f"{study.delta:g}",
        "neighbours": str(study.neighbours),
        "mechanism": study.mechanism,
        "max_answers": study.answers,
        "persons": study.persons,
    }


def _write_same(plan_keywords: PlainMapping, top: int | None) -> Same:
    usual = {parameter.name: parameter.default for parameter in signature(plan).parameters.values()}
    changed = {name: value for name, value in plan_keywords.items() if usual[name] != value}
    lines = ["import discreet", "", f"study = {write_call('discreet.plan', **changed)}"]
    lines += ["print(study.rmse, study.half_width, study.clear_gap)"]
    lines += [f"print(study.top_overlap({top}))"] * (top is not None)
    typed = changed if top is None else {**changed, "top": top}
    return Same("\n".join([*lines, ""]), " ".join(["discreet", "plan", *spell_command(typed)]))


def choose_work(request: Request) -> Response:
    """Take a plan to the release of the answers that are open; ask which, where it is not clear."""
    works = list(session_of(request).works.values())
    query = f"?{request.url.query}" if request.url.query else ""
    if len(works) == 1:
        return go(f"/release/{works[0].name}{query}")
    values = {"works": works, "said": query}
    return show("choose.html", values, Secrecy.OWN if works else Secrecy.PUBLIC)


ROUTES = (Route("/plan", show_plan), Route("/release", choose_work))
