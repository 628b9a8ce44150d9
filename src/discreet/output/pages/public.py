"""The privacy statement of a release, in plain words.

In: the privacy record. Out: Markdown that a steward can sign and a reader can understand.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from discreet.markup import HtmlColumn
from discreet.output.pages.page import fact_boxes, fill, item_table, wrap_page
from discreet.output.pages.pictures import difficulty_picture
from discreet.privacy.accounting.belief import explain_belief
from discreet.privacy.accounting.budget import Guarantee
from discreet.results.estimate import Estimate
from discreet.results.kinds import Kind, find_kind

RELATION = {
    "replace-one": "if any one {person}'s {answers} had been replaced by others (the number of "
    "{person}s in the data is public, so that somebody is in the data at all is not protected)",
    "fixed number": "if any one {person}'s {answers} had been replaced by others, or by none (the "
    "number of {person}s is public and was fixed in advance)",
    "add-remove": "if any one {person} had not taken part",
}


def explain_promise(record: Mapping[str, Any]) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee = Guarantee.from_dict(record["guarantee"])
    if not guarantee.is_private:
        return "It promises nothing to anybody, because its noise can be drawn again."
    kind = find_kind(record)
    return explain_belief(guarantee, person=kind.person, answers=kind.answers)


def write_statement(record: Mapping[str, Any]) -> str:
    """Return the statement as Markdown."""
    guarantee, kind = record["guarantee"], find_kind(record)
    parts = [
        "# Privacy statement",
        _warning(guarantee),
        f"This release publishes the {kind.numbers} of {len(record['items'])} {kind.items}. "
        f"{_compare(record, kind)}{explain_promise(record)}",
        "| | |\n|---|---|\n"
        + "\n".join(f"| {name} | {value} |" for name, value in _statement_facts(record)),
        *guarantee["conditions"],
        guarantee["ledger_note"],
        f"The {kind.listed}, the cap on {kind.answers}, epsilon, delta and the mechanism "
        "have to be chosen without looking at the data. Choosing any of them after looking voids "
        "this promise.",
        f"Standard errors and intervals include both the sampling of {kind.persons} and the "
        "privacy noise. They were computed from the noisy values alone.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compare(record: Mapping[str, Any], kind: Kind) -> str:
    if not record["guarantee"]["is_private"]:
        return ""
    fixed = record.get("number_fixed")
    relation = RELATION["fixed number" if fixed else record["guarantee"]["neighbours"]]
    return (
        "It was made with differential privacy: nothing in it would look much different "
        f"{relation.format_map(vars(kind))}. "
    )


def _warning(guarantee: Mapping[str, Any]) -> str:
    if guarantee["is_private"]:
        return ""
    return "**NOT PRIVATE.** The noise came from a seeded source, which exists for tests only."


def _statement_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    guarantee, kind = record["guarantee"], find_kind(record)
    facts = [
        ("protected", guarantee["unit"]),
        ("neighbouring data sets", guarantee["neighbours"]),
        ("epsilon", f"{guarantee['epsilon']:g}"),
        ("delta", f"{guarantee['delta']:g}"),
    ]
    if guarantee["rho"] is not None:
        facts.append(("rho (zero-concentrated)", f"{guarantee['rho']:.4g}"))
    facts += [
        ("mechanism", record["mechanism"]),
        ("noise", guarantee["noise"]),
        (f"{kind.answers} counted per {kind.person}", f"at most {record[kind.cap]}"),
    ]
    if record[kind.persons] is not None:
        facts.append((kind.persons, str(record[kind.persons])))
    return facts


# The public page of a release: one HTML file that works offline.
#
# In: the estimate of a release and its privacy record. Out: HTML. It shows released values and
# public parameters only; it cannot show more, because it is given no more.

PRIVATE, FOR_TESTS = "released with differential privacy", "not private: made with noise for tests"


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page."""
    kind, is_private = find_kind(record), record["guarantee"]["is_private"]
    warning = '<p class="alarm">Not private: made with a seeded source for tests.</p>'
    title = f"{kind.title}, {PRIVATE if is_private else FOR_TESTS}"
    body = fill(
        "public.html",
        {
            "title": title,
            "warning": "" if is_private else warning,
            "summary": escape(_summarise(estimate, record)),
            "facts": fact_boxes(_facts(record)),
            "question": kind.question,
            "note": f"{kind.number.capitalize()} in logits; {kind.scale} {kind.items}",
            "picture": difficulty_picture(estimate, kind),
            "items": kind.items,
            "table": item_table(_columns(estimate, kind), items=kind.items),
            "promise": _promise(record),
            "method": escape(_method(estimate, record)),
        },
    )
    return wrap_page(title, body)


def _summarise(estimate: Estimate, record: Mapping[str, Any]) -> str:
    kind, known = find_kind(record), estimate.estimated
    if not known.any():
        return f"The noise leaves nothing to say about these {kind.items}."
    highest = estimate.items[int(np.nanargmax(estimate.difficulty))]
    lowest = estimate.items[int(np.nanargmin(estimate.difficulty))]
    return (
        f"{len(estimate.items)} {kind.items}. {kind.most.capitalize()} by estimate: {highest}; "
        f"{kind.least}: {lowest}. "
        f"The typical standard error is {np.nanmedian(estimate.se):.2f} logits. "
        f"{explain_promise(record)}"
    )


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee, kind = record["guarantee"], find_kind(record)
    return {
        "epsilon": f"{guarantee['epsilon']:g}",
        "delta": f"{guarantee['delta']:g}",
        "neighbours": guarantee["neighbours"],
        "mechanism": record["mechanism"],
        f"{kind.answers} per {kind.person}": f"at most {record[kind.cap]}",
    }


def _columns(estimate: Estimate, kind: Kind) -> list[HtmlColumn]:
    columns = estimate.to_dict()
    titles = {"item": "item", "difficulty": kind.number, "se": "se"}
    titles |= {"lower": "lower", "upper": "upper"}
    return [HtmlColumn(title, columns[name]) for name, title in titles.items()]


def _promise(record: Mapping[str, Any]) -> str:
    """Show the statement's sentences; its table is on the page already."""
    parts = write_statement(record).split("\n\n")[1:]
    shown = [part for part in parts if not part.startswith(("|", "**", "#"))]
    return "".join(f"<p>{escape(part.strip())}</p>" for part in shown)


def _method(estimate: Estimate, record: Mapping[str, Any]) -> str:
    return (
        f"{find_kind(record).model} estimated from noisy values only, with full knowledge of the "
        f"noise (estimator: {estimate.method}). {record['guarantee']['noise'].capitalize()}. "
        f"{record['software']}."
    )
