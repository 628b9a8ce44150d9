"""The confidential report of a calibration: what is wrong with the test, and every item.

In: an estimate and, where the answers were at hand, diagnostics. Out: one HTML file that works
offline. It says at the top that it must not be passed on.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape

import numpy as np

from discreet import __version__
from discreet.analysis.diagnostics import Diagnostics
from discreet.analysis.finding import Finding, Severity
from discreet.analysis.findings import find_problems, remarks_on_items
from discreet.markup import HtmlColumn, html_table, minus
from discreet.output.pages.methods import write_methods
from discreet.output.pages.page import fact_boxes, fill, item_table, wrap_page
from discreet.output.pages.pictures import (
    curve_picture,
    difficulty_picture,
    fit_picture,
    information_picture,
    wright_picture,
)
from discreet.results.estimate import Estimate

CURVES = 12
"""Item curves shown: those of the items that fit worst."""


def write_steward_page(
    estimate: Estimate, diagnostics: Diagnostics | None = None, *, name: str = ""
) -> str:
    """Return the confidential report.

    Parameters
    ----------
    estimate
        The calibration.
    diagnostics
        From :func:`discreet.analysis.diagnostics.diagnose`; without it the report says nothing
        about persons and fit.
    name
        What was calibrated, for the title.
    """
    findings, fine = find_problems(estimate, diagnostics)
    title = f"Calibration of {name}" if name else "Calibration"
    body = fill(
        "steward.html",
        {
            "title": escape(title),
            "summary": escape(_summarise(estimate)),
            "verdict": escape(judge(findings)),
            "findings": _list_findings(findings),
            "checked": escape(_say_checked(fine, diagnostics)),
            "facts": fact_boxes(_facts(estimate, diagnostics)),
            "pictures": _pictures(estimate, diagnostics),
            "table": _item_table(estimate, diagnostics),
            "pairs": _pair_table(diagnostics),
            "methods": escape(write_methods(estimate, diagnostics)),
            "computed": fact_boxes(_computed(estimate)),
            "notes": _notes(estimate, diagnostics),
        },
    )
    return wrap_page(f"Confidential: {title}", body)


def _summarise(estimate: Estimate) -> str:
    known = int(estimate.estimated.sum())
    hardest = estimate.items[int(np.nanargmax(estimate.difficulty))]
    easiest = estimate.items[int(np.nanargmin(estimate.difficulty))]
    persons = "" if estimate.persons is None else f" answered by {estimate.persons:,} persons"
    spread = float(np.nanmax(estimate.difficulty) - np.nanmin(estimate.difficulty))
    text = (
        f"{len(estimate.items):,} items{persons}; {known:,} of them have a difficulty. Hardest: "
        f"{hardest}, easiest: {easiest}, {spread:.1f} logits apart."
    )
    if np.isfinite(estimate.se).any():
        text += (
            f" A difficulty is typically known to ±{1.96 * np.nanmedian(estimate.se):.2f} logits."
        )
    return text


def judge(findings: Sequence[Finding]) -> str:
    """Return the headline over the findings."""
    serious = sum(finding.severity is Severity.SERIOUS for finding in findings)
    if not findings:
        return "Nothing wrong was found"
    others = len(findings) - serious
    parts = [f"{serious} serious"] if serious else []
    if others:
        parts.append(f"{others} to look at")
    noun = "problem" if len(findings) == 1 else "problems"
    return f"What is wrong with this test: {len(findings)} {noun} ({', '.join(parts)})"


def _list_findings(findings: Sequence[Finding]) -> str:
    entries = []
    for finding in findings:
        serious = finding.severity is Severity.SERIOUS
        kind, word = ("serious", "serious") if serious else ("look", "worth a look")
        advice = f"<p><b>What to do:</b> {escape(finding.advice)}</p>" if finding.advice else ""
        entries.append(
            f'<li class="{kind}"><h3><span class="word">{word}</span>{escape(finding.title)}</h3>'
            f"<p>{escape(finding.found)}</p>{advice}</li>"
        )
    return f'<ul class="findings">{"".join(entries)}</ul>' if entries else ""


def _say_checked(fine: Sequence[str], diagnostics: Diagnostics | None) -> str:
    text = f"Checked, nothing found: {', '.join(fine)}." if fine else ""
    if diagnostics is None:
        text += (
            " Not checked, because the answers were not at hand: fit, reliability, targeting, "
            "dependent items, design."
        )
    elif diagnostics.dependent is None:
        text += " Not checked, because there are too many items and persons: dependent items."
    if diagnostics is not None and diagnostics.differing is None:
        text += " Not checked, because no groups were named (--group COL): groups."
    return text.strip()


def _facts(estimate: Estimate, diagnostics: Diagnostics | None) -> dict[str, str]:
    facts = {"items": f"{len(estimate.items):,}"}
    if estimate.persons is not None:
        facts["persons"] = f"{estimate.persons:,}"
    if estimate.answers is not None:
        facts["answers"] = f"{int(estimate.answers.sum()):,}"
    if diagnostics is not None:
        facts["answers per person (median)"] = f"{diagnostics.answered:g}"
        facts["mean ability"] = minus(f"{diagnostics.ability_mean:.2f}")
        facts["SD of abilities"] = f"{diagnostics.ability_sd:.2f}"
        for label, value in (
            ("person reliability", diagnostics.reliability),
            ("item reliability", diagnostics.item_reliability),
        ):
            facts[label] = "–" if value is None else minus(f"{value:.2f}")
    return facts


def _pictures(estimate: Estimate, diagnostics: Diagnostics | None) -> str:
    if diagnostics is None:
        return (
            '<div class="pictures">'
            + _figure(
                "How hard each item is", "Bars are 95% intervals.", difficulty_picture(estimate)
            )
            + _figure("Precision", PRECISION, information_picture(estimate))
            + "</div>"
        )
    figures = [
        _figure("Wright map", WRIGHT, wright_picture(estimate, diagnostics)),
        _figure("Precision", PRECISION, information_picture(estimate)),
        _figure(
            "Infit",
            INFIT,
            fit_picture(estimate, diagnostics.infit, "infit"),
        ),
        _figure(
            "Outfit",
            OUTFIT,
            fit_picture(estimate, diagnostics.outfit, "outfit"),
        ),
    ]
    return f'<div class="pictures">{"".join(figures)}</div>{_curves(estimate, diagnostics)}'


WRIGHT = (
    "Persons above, items below, on one scale. A person has an even chance at items straight "
    "below. Where persons have no items below them, they are measured poorly."
)
PRECISION = (
    "Standard error of an ability for somebody who answers every item. Low is good; it rises "
    "where there are no items."
)
INFIT = (
    "How well answers follow the model where the item is neither easy nor hard for a person. 1 is "
    "expected, the grey band (0.7 to 1.3) usual; above it answers are noisier than the model says."
)
OUTFIT = (
    "The same, dominated by unexpected answers to items that are much too easy or too hard: "
    "careless slips, lucky guesses. Larger circles are less sure."
)


def _figure(title: str, caption: str, picture: str) -> str:
    words = f"<b>{escape(title)}</b>{escape(caption)}"
    return f"<figure><figcaption>{words}</figcaption>{picture}</figure>"


def _curves(estimate: Estimate, diagnostics: Diagnostics) -> str:
    """Show the curves of the items that fit worst."""
    place = {name: i for i, name in enumerate(estimate.items)}

    def distance(name: str) -> float:
        squares = (diagnostics.infit[place[name]], diagnostics.outfit[place[name]])
        return max((abs(float(np.log(v))) for v in squares if v), default=0.0)

    worst = sorted(diagnostics.curves, key=distance, reverse=True)[:CURVES]
    figures = "".join(
        f"<figure><figcaption><b>{escape(name)}</b></figcaption>"
        f"{curve_picture(name, float(estimate.difficulty[place[name]]), diagnostics.curves[name])}"
        "</figure>"
        for name in worst
    )
    some = f"the {len(worst)} items that fit worst" if len(worst) < len(place) else "every item"
    return (
        f'<h3>Expected and observed, {some}</h3><p class="note">Share right against ability. '
        "Lines are what the model expects, points are groups of persons of similar ability. Points "
        "flatter than the line: noise or guessing; steeper: too predictable.</p>"
        f'<div class="small pictures">{figures}</div>'
    )


def _item_table(estimate: Estimate, diagnostics: Diagnostics | None) -> str:
    columns = estimate.to_dict()
    remarks = remarks_on_items(estimate, diagnostics)
    shown = [
        HtmlColumn("item", columns["item"]),
        HtmlColumn("difficulty", columns["difficulty"], 2, "logits; harder is larger"),
        HtmlColumn("se", columns["se"], 2, "standard error of the difficulty"),
        HtmlColumn("95% from", columns["lower"], 2),
        HtmlColumn("to", columns["upper"], 2),
    ]
    if "answers" in columns:
        share = [
            100 * r / a if a else None
            for r, a in zip(columns["right"], columns["answers"], strict=True)
        ]
        shown.append(HtmlColumn("answers", columns["answers"]))
        shown.append(HtmlColumn("% right", share, 1))
    if diagnostics is not None:
        shown.append(HtmlColumn("infit", diagnostics.infit, 2, "mean square; 1 is expected"))
        shown.append(HtmlColumn("outfit", diagnostics.outfit, 2, "mean square; 1 is expected"))
        shown.append(
            HtmlColumn("corr.", diagnostics.point_measure, 2, "of the answer with ability")
        )
    shown.append(HtmlColumn("status", [one.replace("_", " ") for one in columns["status"]]))
    shown.append(HtmlColumn("remarks", [", ".join(one) for one in remarks]))
    known = estimate.estimated
    tags = [
        " ".join(["remark"] * bool(one) + ["number" if known[i] else "none"])
        for i, one in enumerate(remarks)
    ]
    kinds = {"remark": "items with a remark"}
    if not known.all():
        kinds |= {"none": "items without a number", "number": "items with a number"}
    return item_table(shown, kinds=kinds, tags=tags)


def _pair_table(diagnostics: Diagnostics | None) -> str:
    if diagnostics is None or not diagnostics.dependent:
        return ""
    pairs = diagnostics.dependent[:12]
    first, second, excess, persons = zip(*pairs, strict=True)
    table = html_table(
        [
            HtmlColumn("item", first),
            HtmlColumn("other item", second),
            HtmlColumn("residual correlation above the mean", excess, 2),
            HtmlColumn("persons", persons),
        ],
        caption="Pairs of items with the largest residual correlations",
    )
    return (
        "<h2>Pairs that depend most on each other</h2>"
        '<p class="note">Correlation of what the model leaves unexplained (Q3), less its mean. '
        "Above 0.2 a pair deserves a look.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of dependent pairs">'
        f"{table}</div>"
    )


def _computed(estimate: Estimate) -> dict[str, str]:
    return {
        "program": f"discreet {__version__}",
        "method": estimate.method,
        "solver": estimate.solution.solver,
        "iterations": f"{estimate.solution.iterations:,}",
        "residual": f"{estimate.solution.residual:.2g}",
        "Python, numpy": f"{platform.python_version()}, {np.__version__}",
    }


def _notes(estimate: Estimate, diagnostics: Diagnostics | None) -> str:
    notes = [*estimate.warnings, *estimate.solution.notes]
    if diagnostics is not None and diagnostics.sampled is not None:
        notes.append(
            f"abilities, fit and curves are those of {diagnostics.sampled:,} evenly chosen persons"
        )
    if diagnostics is not None:
        notes += diagnostics.notes
    if not notes:
        return ""
    entries = "".join(f"<li>{escape(note[:1].upper() + note[1:])}</li>" for note in notes)
    return f"<ul>{entries}</ul>"
