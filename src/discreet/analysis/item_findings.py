"""Checks of items that need the estimate, or the estimate and the answers behind it.

In: an estimate and diagnostics. Out: findings. To add a check: a function and a line in
``ESTIMATE_CHECKS`` or ``ITEM_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.analysis.diagnostics import Diagnostics
from discreet.analysis.finding import (
    ENOUGH_ANSWERS,
    FIT_BAD,
    FIT_HIGH,
    FIT_LOW,
    MATCHED,
    OFF_TARGET,
    ROUGH_SE,
    SURE_T,
    WEAK_CORRELATION,
    Finding,
    Severity,
    count_of,
    name_some,
)
from discreet.results.estimate import Estimate, Status
from discreet.results.warnings import Kind


def _with_status(estimate: Estimate, status: Status) -> list[str]:
    return [
        name for name, one in zip(estimate.items, estimate.status, strict=True) if one == status
    ]


def _check_links(estimate: Estimate) -> list[Finding]:
    names = _with_status(estimate, Status.NOT_CONNECTED)
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    return [
        Finding(
            Severity.SERIOUS,
            f"{count_of(len(names))} {verb} not linked to the rest",
            f"No chain of shared persons compares {name_some(names)} with the other items, so no "
            "difficulty exists on the common scale.",
            "Give some persons items from both parts (a few common items are enough), or "
            "calibrate the parts apart and do not compare them.",
        )
    ]


def _check_extreme_items(estimate: Estimate) -> list[Finding]:
    findings = []
    texts = {
        Status.ALWAYS_RIGHT: ("always answered right", "too easy for everyone who got it"),
        Status.ALWAYS_WRONG: (
            "never answered right",
            "too hard for everyone who got it, or keyed wrongly",
        ),
    }
    for status, (what, why) in texts.items():
        names = _with_status(estimate, status)
        if names:
            findings.append(
                Finding(
                    Severity.LOOK if status == Status.ALWAYS_RIGHT else Severity.SERIOUS,
                    f"{count_of(len(names))} {what}",
                    f"{name_some(names)}: {why}. Such answers measure nobody.",
                    "Check the answer key and the wording. If both are right, replace the item or "
                    "give it to a group it suits.",
                )
            )
    return findings


def _check_unanswered(estimate: Estimate) -> list[Finding]:
    names = _with_status(estimate, Status.NO_ANSWERS)
    if not names:
        return []
    return [
        Finding(
            Severity.LOOK,
            f"{count_of(len(names))} nobody answered",
            f"{name_some(names)}.",
            "Check that the item names in the answers and in the item list agree.",
        )
    ]


def _check_precision(estimate: Estimate) -> list[Finding]:
    rough = np.flatnonzero(estimate.se > ROUGH_SE)
    if not len(rough):
        return []
    worst = rough[np.argsort(-estimate.se[rough], kind="stable")]
    return [
        Finding(
            Severity.LOOK,
            f"{count_of(len(rough))} known only roughly",
            f"The standard error exceeds {ROUGH_SE:g} logits for "
            f"{name_some([estimate.items[i] for i in worst])}.",
            "Collect more answers to these items, or do not rely on their order.",
        )
    ]


def _check_warnings(estimate: Estimate) -> list[Finding]:
    """Show the fit's own warnings, except those that another check tells."""
    return [
        Finding(Severity.LOOK, "The estimation says", f"{text[:1].upper()}{text[1:]}.", "")
        for text in estimate.warnings
        if text.kind not in (Kind.LEFT_OUT, Kind.NOT_LINKED, Kind.ROUTED)
    ]


def fit_remarks(diagnostics: Diagnostics, index: int) -> list[str]:
    """Say whether one item is noisy or too predictable."""
    high, low = _surprising(diagnostics, index)
    if high > FIT_HIGH:
        return ["noisy"]
    return ["too predictable"] if low < FIT_LOW else []


def _surprising(diagnostics: Diagnostics, index: int) -> tuple[float, float]:
    """Largest and smallest mean square of an item that chance alone does not explain; else 1."""
    pairs = (
        (diagnostics.infit[index], diagnostics.infit_t[index]),
        (diagnostics.outfit[index], diagnostics.outfit_t[index]),
    )
    sure = [v for v, t in pairs if v is not None and t is not None and abs(t) > SURE_T]
    return max([1.0, *sure]), min([1.0, *sure])


def weak_items(estimate: Estimate, diagnostics: Diagnostics) -> dict[int, float]:
    """Items that hardly correlate with ability, although enough persons answered them."""
    return {
        index: value
        for index, value in enumerate(diagnostics.point_measure)
        if value is not None
        and value < WEAK_CORRELATION
        and (estimate.answers is None or estimate.answers[index] >= ENOUGH_ANSWERS)
    }


def _check_fit(estimate: Estimate, diagnostics: Diagnostics) -> list[Finding]:
    high = np.array([_surprising(diagnostics, i)[0] for i in range(len(estimate.items))])
    noisy = np.argsort(-high, kind="stable")[: int((high > FIT_HIGH).sum())]
    findings = []
    if len(noisy):
        bad = int((high > FIT_BAD).sum())
        share = f" ({bad} above {FIT_BAD:g})" if bad else ""
        names = [f"{estimate.items[i]} ({high[i]:.2f})" for i in noisy]
        findings.append(
            Finding(
                Severity.SERIOUS if bad else Severity.LOOK,
                f"{count_of(len(noisy))} answered less predictably than the model expects",
                f"Largest of infit and outfit above {FIT_HIGH:g}{share}: {name_some(names)}.",
                "Look for guessing, unclear wording, a wrong key or a second skill. Without these "
                "items, see whether the other difficulties change.",
            )
        )
    low = [
        estimate.items[i]
        for i in range(len(estimate.items))
        if "too predictable" in fit_remarks(diagnostics, i)
    ]
    if len(low) > max(2, len(estimate.items) // 20):
        findings.append(
            Finding(
                Severity.LOOK,
                f"{count_of(len(low))} answered more predictably than the model expects",
                f"Infit or outfit below {FIT_LOW:g}: {name_some(low)}.",
                "No harm to measurement, but errors are understated. Often items that repeat "
                "each other; see the dependent pairs.",
            )
        )
    return findings


def _check_direction(estimate: Estimate, diagnostics: Diagnostics) -> list[Finding]:
    weak = sorted(weak_items(estimate, diagnostics).items(), key=lambda pair: pair[1])
    if not weak:
        return []
    names = [f"{estimate.items[index]} ({value:.2f})" for index, value in weak]
    negative = weak[0][1] < 0
    return [
        Finding(
            Severity.SERIOUS if negative else Severity.LOOK,
            f"{count_of(len(names))} hardly {'tells' if len(names) == 1 else 'tell'} persons apart",
            f"Correlation of answer and ability below {WEAK_CORRELATION:g}: {name_some(names)}.",
            "Check the answer key first: a wrong key makes it negative. Then the wording.",
        )
    ]


def _check_routing(estimate: Estimate) -> list[Finding]:
    return [
        Finding(
            Severity.SERIOUS,
            "The test looks routed, so these difficulties are biased",
            f"{text[:1].upper()}{text[1:]}.",
            "If items were chosen from the same person's earlier answers (adaptive test, stages, "
            "stopping rule), calibrate with --method marginal.",
        )
        for text in estimate.warnings
        if text.kind is Kind.ROUTED
    ]


def _check_design(estimate: Estimate, diagnostics: Diagnostics) -> list[Finding]:
    value = diagnostics.matching
    routed = any(one.kind is Kind.ROUTED for one in estimate.warnings)
    if value is None or value <= MATCHED or routed or estimate.method == "marginal":
        return []
    return [
        Finding(
            Severity.LOOK,
            "Abler persons got harder items",
            f"Ability and the difficulty of the items a person got correlate at {value:.2f}.",
            "Nothing is wrong if items were assigned beforehand (grade, form). If they were chosen "
            "from the same person's earlier answers, use --method marginal.",
        )
    ]


def _check_targeting(estimate: Estimate, diagnostics: Diagnostics) -> list[Finding]:
    away = diagnostics.ability_mean - float(np.nanmean(estimate.difficulty))
    if abs(away) <= OFF_TARGET:
        return []
    easy = away > 0
    return [
        Finding(
            Severity.SERIOUS if abs(away) > 2 * OFF_TARGET else Severity.LOOK,
            f"The test is too {'easy' if easy else 'hard'} for these persons",
            f"Their mean ability lies {abs(away):.1f} logits {'above' if easy else 'below'} the "
            "mean difficulty.",
            f"Add {'harder' if easy else 'easier'} items; the Wright map shows where persons have "
            "no items.",
        )
    ]


ESTIMATE_CHECKS: dict[str, Callable[[Estimate], list[Finding]]] = {
    "links between items": _check_links,
    "routing": _check_routing,
    "items always right or wrong": _check_extreme_items,
    "items without answers": _check_unanswered,
    "precision of items": _check_precision,
    "warnings of the fit": _check_warnings,
}

ITEM_CHECKS: dict[str, Callable[[Estimate, Diagnostics], list[Finding]]] = {
    "item fit": _check_fit,
    "direction of items": _check_direction,
    "design": _check_design,
    "targeting": _check_targeting,
}
