"""What a release will cost and say, in the words of an office, before anything is spent.

In: terms, and a preview of the release. Out: predicted errors, and sentences. Public parameters
only; the one thing that is said about the answers is whether somebody has looked at them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from discreet.errors import DiscreetError
from discreet.html import HtmlColumn
from discreet.planning.plan import Plan, make_plan, plan, plannable
from discreet.planning.study import Setting
from discreet.privacy.accounting import Neighbours
from discreet.privacy.protocol import Order
from discreet.studio.session import StudioSession, Work
from discreet.studio.terms import ReleaseForm
from discreet.text import count_of, show_predicted_share

OTHER = {
    Neighbours.REPLACE_ONE: (Neighbours.ADD_REMOVE, "hide whether somebody took part"),
    Neighbours.ADD_REMOVE: (Neighbours.REPLACE_ONE, "hide what somebody answered"),
}


def predict(terms: ReleaseForm, order: Order) -> Plan | None:
    """Return the forecast for a release; ``None`` where its mechanism has none."""
    public, steps = order.public, max(order.public.steps)
    if order.name not in plannable(public.neighbours, steps):
        return None
    try:
        return plan(
            terms.expected,
            len(public.items),
            public.max_answers,
            terms.spec.budget.epsilon,
            terms.spec.budget.delta,
            steps=steps,
            mechanism=order.name,  # type: ignore[arg-type]
            neighbours=str(public.neighbours),  # type: ignore[arg-type]
        )
    except DiscreetError:
        return None


def list_costs(study: Plan) -> list[HtmlColumn]:
    """Return predicted errors: of the release, and of what it would be with one thing changed."""
    rows = [("this release", study.epsilon, study.rmse)]
    for name, setting in _vary(study.setting):
        try:
            rows.append((name, setting.epsilon, make_plan(setting).rmse))
        except DiscreetError:
            continue  # what cannot be had is not offered
    return [
        HtmlColumn("what", [row[0] for row in rows]),
        HtmlColumn("epsilon", [f"{row[1]:g}" for row in rows]),
        HtmlColumn("typical standard error, logits", [row[2] for row in rows], 3),
    ]


def _vary(setting: Setting) -> Iterator[tuple[str, Setting]]:
    yield "half of the epsilon", replace(setting, epsilon=setting.epsilon / 2)
    yield "twice the epsilon", replace(setting, epsilon=setting.epsilon * 2)
    if setting.answers >= 4:
        cap = setting.answers // 2
        yield f"at most {cap} answers of each person", replace(setting, answers=cap)
    yield "twice as many persons", replace(setting, persons=2 * setting.persons)
    relation, words = OTHER[setting.neighbours]
    yield words, replace(setting, neighbours=relation)


def say_costs(study: Plan) -> str:
    """Say what privacy costs in this release."""
    lost = study.persons - study.equivalent_persons
    return (
        f"The published numbers will typically be off by {study.rmse:.2f} logits; without "
        f"privacy it would be {study.rmse_without_privacy:.2f}. That is as if {lost:,} of the "
        f"{study.persons:,} persons had not answered. Two items half a logit apart come out "
        f"in the right order {show_predicted_share(study.order_probability)} of the time."
    )


def say_looked(session: StudioSession, work: Work) -> Mapping[str, Any]:
    """Say what has been seen of the answers in this studio, and what follows for the promise."""
    seen_work, was_refused = session.find_seen(work), session.was_refused(work)
    if seen_work is None:
        return {"looked": was_refused, "words": REFUSED if was_refused else UNSEEN}
    words = "You have looked at these answers in this studio"
    if seen_work.runs:
        words += f" and calibrated them {count_of(len(seen_work.runs), 'time')}"
    return {"looked": True, "words": f"{words}. {SEEN}"}


UNSEEN = (
    "Nobody has looked at these answers in this studio. Keep it so until the release is made: then "
    "nobody can have chosen anything by what stands in them."
)
REFUSED = (
    "Nobody has looked at these answers in this studio, but a release of them was refused, and the "
    "refusal told something about them. Readers will be told that the answers were looked at. "
    "Change only what your own papers say was wrong."
)
SEEN = (
    "Readers will be told that the answers were looked at before the list of items, the cap, "
    "epsilon, delta and the mechanism were set. So all that you type here has to come from "
    "somewhere else: the test plan, the questionnaire, a decision of your office. If something was "
    "chosen because of what you saw, the promise does not hold: do not release. What reads the "
    "file (the key, codes for missing answers, which column is what) has to be what the code book "
    "says. And what you saw stays confidential: publishing it beside the release undoes the "
    "protection."
)
