"""The public page of a release: one HTML file that works offline.

In: the estimate of a release and its privacy record. Out: HTML. It shows released values and
public parameters only; it cannot show more, because it is given no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from discreet.estimate import Estimate
from discreet.markup import HtmlColumn
from discreet.report.page import fact_boxes, fill, item_table, wrap_page
from discreet.report.pictures import difficulty_picture
from discreet.report.statement import explain_promise, write_statement

__all__ = ["write_public_page"]

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
