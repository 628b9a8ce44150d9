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

RELATION = {
    "replace-one": "if any one {person}'s {answers} had been replaced by others (the number of "
    "{person}s in the data is public, so that somebody is in the data at all is not protected)",
    "fixed number": "if any one {person}'s {answers} had been replaced by others, or by none (the "
    "number of {person}s is public and was fixed in advance)",
    "add-remove": "if any one {person} had not taken part",
}

WORDS = {
    "answers": {
        "published": "difficulties",
        "items": "items",
        "list": "item list",
        "answers": "answers",
        "person": "person",
    },
    "comparisons": {
        "published": "strengths",
        "items": "objects",
        "list": "list of objects",
        "answers": "comparisons",
        "person": "judge",
    },
}
"""How a release speaks of its data, by the record's ``kind``."""


def explain_promise(record: Mapping[str, Any]) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee = Guarantee.from_dict(record["guarantee"])
    if not guarantee.is_private:
        return "It promises nothing to anybody, because its noise can be drawn again."
    words = WORDS[record.get("kind", "answers")]
    return explain_belief(guarantee, person=words["person"], answers=words["answers"])


def write_statement(record: Mapping[str, Any]) -> str:
    """Return the statement as Markdown."""
    guarantee, words = record["guarantee"], WORDS[record.get("kind", "answers")]
    parts = [
        "# Privacy statement",
        _warning(guarantee),
        f"This release publishes the {words['published']} of {len(record['items'])} "
        f"{words['items']}. {_compare(record, words)}{explain_promise(record)}",
        "| | |\n|---|---|\n"
        + "\n".join(f"| {name} | {value} |" for name, value in _statement_facts(record)),
        *guarantee["conditions"],
        guarantee["ledger_note"],
        f"The {words['list']}, the cap on {words['answers']}, epsilon, delta and the mechanism "
        "have to be chosen without looking at the data. Choosing any of them after looking voids "
        "this promise.",
        f"Standard errors and intervals include both the sampling of {words['person']}s and the "
        "privacy noise. They were computed from the noisy values alone.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compare(record: Mapping[str, Any], words: Mapping[str, str]) -> str:
    if not record["guarantee"]["is_private"]:
        return ""
    fixed = record.get("number_fixed")
    relation = RELATION["fixed number" if fixed else record["guarantee"]["neighbours"]]
    return (
        "It was made with differential privacy: nothing in it would look much different "
        f"{relation.format_map(words)}. "
    )


def _warning(guarantee: Mapping[str, Any]) -> str:
    if guarantee["is_private"]:
        return ""
    return "**NOT PRIVATE.** The noise came from a seeded source, which exists for tests only."


def _statement_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    guarantee, words = record["guarantee"], WORDS[record.get("kind", "answers")]
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
        (
            f"{words['answers']} counted per {words['person']}",
            f"at most {record['max_' + words['answers']]}",
        ),
    ]
    people = f"{words['person']}s"
    if record[people] is not None:
        facts.append((people, str(record[people])))
    return facts


# The public page of a release: one HTML file that works offline.
#
# In: the estimate of a release and its privacy record. Out: HTML. It shows released values and
# public parameters only; it cannot show more, because it is given no more.

TITLE = "Item difficulties, released with differential privacy"
TEST_TITLE = "Item difficulties, not private: made with noise for tests"
COLUMNS = ("item", "difficulty", "se", "lower", "upper")


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page."""
    guarantee = record["guarantee"]
    warning = "" if guarantee["is_private"] else "Not private: made with a seeded source for tests."
    title = TEST_TITLE if warning else TITLE
    body = fill(
        "public.html",
        {
            "title": title,
            "warning": f'<p class="alarm">{warning}</p>' if warning else "",
            "summary": escape(_summarise(estimate, record)),
            "facts": fact_boxes(_facts(record)),
            "picture": difficulty_picture(estimate),
            "table": item_table(_columns(estimate)),
            "promise": _promise(record),
            "method": escape(_method(estimate, record)),
        },
    )
    return wrap_page(title, body)


def _summarise(estimate: Estimate, record: Mapping[str, Any]) -> str:
    known = estimate.estimated
    if not known.any():
        return "The noise leaves nothing to say about these items."
    hardest = estimate.items[int(np.nanargmax(estimate.difficulty))]
    easiest = estimate.items[int(np.nanargmin(estimate.difficulty))]
    return (
        f"{len(estimate.items)} items. Hardest by estimate: {hardest}; easiest: {easiest}. "
        f"The typical standard error is {np.nanmedian(estimate.se):.2f} logits. "
        f"{explain_promise(record)}"
    )


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee = record["guarantee"]
    return {
        "epsilon": f"{guarantee['epsilon']:g}",
        "delta": f"{guarantee['delta']:g}",
        "neighbours": guarantee["neighbours"],
        "mechanism": record["mechanism"],
        "answers per person": f"at most {record['max_answers']}",
    }


def _columns(estimate: Estimate) -> list[HtmlColumn]:
    columns = estimate.to_dict()
    return [HtmlColumn(name, columns[name]) for name in COLUMNS]


def _promise(record: Mapping[str, Any]) -> str:
    """Show the statement's sentences; its table is on the page already."""
    parts = write_statement(record).split("\n\n")[1:]
    shown = [part for part in parts if not part.startswith(("|", "**", "#"))]
    return "".join(f"<p>{escape(part.strip())}</p>" for part in shown)


def _method(estimate: Estimate, record: Mapping[str, Any]) -> str:
    return (
        f"Rasch difficulties estimated from noisy values only, with full knowledge of the noise "
        f"(estimator: {estimate.method}). {record['guarantee']['noise'].capitalize()}. "
        f"{record['software']}."
    )
