"""The public page of a release: one HTML file that works offline.

In: the estimate of a release and its privacy record. Out: HTML. It shows released values and
public parameters only; it cannot show more, because it is given no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.analysis.figures import difficulty_rows, summarise_items
from discreet.markup import HtmlColumn, write_page
from discreet.output.pages.svg import draw_difficulties
from discreet.output.statement import explain_promise, make_statement
from discreet.results.estimate import Estimate
from discreet.results.kinds import find_kind

PRIVATE, FOR_TESTS = "released with differential privacy", "not private: made with noise for tests"


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page."""
    kind, is_private = find_kind(record), record["guarantee"]["is_private"]
    columns = estimate.to_dict()
    titles = {"item": "item", "difficulty": kind.number, "se": "se", "lower": "lower"}
    shown = difficulty_rows(estimate) if estimate.estimated.any() else None
    return write_page(
        "public.html",
        {
            "title": f"{kind.title}, {PRIVATE if is_private else FOR_TESTS}",
            "warning": "" if is_private else "Not private: made with a seeded source for tests.",
            "summary": _summarise(estimate, record),
            "boxes": _facts(record),
            "kind": kind,
            "picture": shown and draw_difficulties(shown, kind),
            "columns": [
                HtmlColumn(title, columns[name])
                for name, title in {**titles, "upper": "upper"}.items()
            ],
            "promise": make_statement(record).promise,
            "method": _method(estimate, record),
        },
    )


def _summarise(estimate: Estimate, record: Mapping[str, Any]) -> str:
    kind = find_kind(record)
    if not estimate.estimated.any():
        return f"The noise leaves nothing to say about these {kind.items}."
    found = summarise_items(estimate)
    return (
        f"{len(estimate.items)} {kind.items}. {kind.most.capitalize()} by estimate: "
        f"{found.hardest}; {kind.least}: {found.easiest}. The typical standard error is "
        f"{found.typical_se:.2f} logits. {explain_promise(record)}"
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


def _method(estimate: Estimate, record: Mapping[str, Any]) -> str:
    return (
        f"{find_kind(record).model} estimated from noisy values only, with full knowledge of the "
        f"noise (estimator: {estimate.method}). {record['guarantee']['noise'].capitalize()}. "
        f"{record['software']}."
    )
