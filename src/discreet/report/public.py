"""The public page of a release: one HTML file that works offline.

In: the estimate of a release and its privacy record. Out: HTML. It shows released values and
public parameters only; it cannot show more, because it is given no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from discreet.estimate import Estimate
from discreet.report.statement import explain_epsilon, write_statement

__all__ = ["write_public_page"]

PICTURE_ITEMS = 60
"""More items than this would make the picture longer than anyone scrolls."""

COLUMNS = ("item", "difficulty", "se", "lower", "upper")


def write_public_page(estimate: Estimate, record: Mapping[str, Any]) -> str:
    """Return the page."""
    page = Template(files("discreet.report").joinpath("public.html").read_text(encoding="utf-8"))
    guarantee = record["guarantee"]
    warning = "" if guarantee["is_private"] else "Not private: made with a seeded source for tests."
    return page.substitute(
        warning=f'<p class="alarm">{warning}</p>' if warning else "",
        summary=escape(_summarise(estimate, record)),
        facts=_facts(record),
        picture=_picture(estimate),
        columns="".join(f'<th scope="col"><button>{name}</button></th>' for name in COLUMNS),
        rows="\n".join(_row(values) for values in _table(estimate)),
        promise=_promise(record),
        method=escape(_method(estimate, record)),
    )


def _summarise(estimate: Estimate, record: Mapping[str, Any]) -> str:
    guarantee = record["guarantee"]
    known = estimate.estimated
    if not known.any():
        return "The noise leaves nothing to say about these items."
    hardest = estimate.items[int(np.nanargmax(estimate.difficulty))]
    easiest = estimate.items[int(np.nanargmin(estimate.difficulty))]
    return (
        f"{len(estimate.items)} items. Hardest by estimate: {hardest}; easiest: {easiest}. "
        f"The typical standard error is {np.nanmedian(estimate.se):.2f} logits. "
        f"{explain_epsilon(guarantee['epsilon'])}."
    )


def _facts(record: Mapping[str, Any]) -> str:
    guarantee = record["guarantee"]
    facts = {
        "epsilon": f"{guarantee['epsilon']:g}",
        "delta": f"{guarantee['delta']:g}",
        "neighbours": guarantee["neighbours"],
        "mechanism": record["mechanism"],
        "answers per person": f"at most {record['max_answers']}",
    }
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
    )


def _table(estimate: Estimate) -> list[tuple[str, list[float]]]:
    interval = estimate.interval()
    numbers = np.column_stack([estimate.difficulty, estimate.se, interval])
    return list(zip(estimate.items, numbers.tolist(), strict=True))


def _row(entry: tuple[str, list[float]]) -> str:
    item, numbers = entry
    cells = "".join(
        f'<td data-value="{number:.6f}">{number:.3f}</td>' if np.isfinite(number) else "<td>–</td>"
        for number in numbers
    )
    return f"<tr><td>{escape(item)}</td>{cells}</tr>"


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


def _picture(estimate: Estimate) -> str:
    """Draw items in order of difficulty with their intervals, as inline SVG."""
    known = np.flatnonzero(estimate.estimated)
    if not known.size:
        return ""
    order = known[np.argsort(estimate.difficulty[known])]
    note = ""
    if order.size > PICTURE_ITEMS:
        keep = np.linspace(0, order.size - 1, PICTURE_ITEMS).round().astype(int)
        note = f'<p class="note">{PICTURE_ITEMS} of {order.size} items, evenly chosen by rank.</p>'
        order = order[keep]
    return note + _draw(estimate, order)


def _draw(estimate: Estimate, order: Any) -> str:
    interval = estimate.interval()[order]
    low, high = float(np.floor(np.min(interval))), float(np.ceil(np.max(interval)))
    left, width, step = 150, 530, 18
    height = step * len(order) + 34

    def across(logit: float) -> float:
        return left + width * (logit - low) / (high - low)

    ticks = np.linspace(low, high, 1 + int(min(max(high - low, 1), 8)))
    marks = [
        f'<line class="grid" x1="{across(t):.1f}" x2="{across(t):.1f}" y1="4" y2="{height - 24}"/>'
        f'<text x="{across(t):.1f}" y="{height - 8}" text-anchor="middle">{t:g}</text>'
        for t in ticks.round(2)
    ]
    for place, index in enumerate(order):
        y = 14 + step * place
        name = estimate.items[index]
        shown = name if len(name) <= 20 else name[:19] + "…"
        ends = [across(end) for end in interval[place]]
        marks.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(shown)}</text>'
            f'<line class="bar" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot" cx="{across(estimate.difficulty[index]):.1f}" cy="{y}" r="4"/>'
        )
    return (
        f'<svg viewBox="0 0 {left + width + 20} {height}" role="img" '
        f'aria-label="Item difficulties with 95% intervals; the table below has the numbers">'
        f"{''.join(marks)}</svg>"
    )
