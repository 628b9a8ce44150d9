"""What is wrong with a test: every check run, and the remarks about each item.

In: an estimate and, where the answers were at hand, diagnostics. Out: findings, the most serious
first, and the names of the checks that found nothing.
"""

from __future__ import annotations

from discreet.estimate import Estimate, Status
from discreet.report.diagnostics import Diagnostics
from discreet.report.finding import Finding
from discreet.report.itemchecks import ESTIMATE_CHECKS, ITEM_CHECKS, fit_remarks, weak_items
from discreet.report.testchecks import TEST_CHECKS
from discreet.report.thresholds import ROUGH_SE

__all__ = ["find_problems", "remarks_on_items"]

WORDS = {
    Status.NOT_CONNECTED: "not linked",
    Status.ALWAYS_RIGHT: "always right",
    Status.ALWAYS_WRONG: "always wrong",
    Status.NO_ANSWERS: "no answers",
}


def find_problems(
    estimate: Estimate, diagnostics: Diagnostics | None
) -> tuple[list[Finding], list[str]]:
    """Run every check: the findings, most serious first, and the checks that found nothing."""
    found = {name: check(estimate) for name, check in ESTIMATE_CHECKS.items()}
    if diagnostics is not None:
        found |= {name: check(estimate, diagnostics) for name, check in ITEM_CHECKS.items()}
        found |= {name: check(diagnostics) for name, check in TEST_CHECKS.items()}
        if diagnostics.differing is None:
            del found["groups"]
    findings = [finding for some in found.values() for finding in some]
    fine = [name for name, some in found.items() if not some]
    return sorted(findings, key=lambda finding: finding.severity), fine


def remarks_on_items(estimate: Estimate, diagnostics: Diagnostics | None) -> list[list[str]]:
    """Say what is remarkable about each item, in few words; empty lists where nothing is."""
    remarks: list[list[str]] = [[] for _ in estimate.items]
    for index, status in enumerate(estimate.status):
        if status in WORDS:
            remarks[index].append(WORDS[status])
        elif estimate.se[index] > ROUGH_SE:
            remarks[index].append("few answers")
    if diagnostics is not None:
        for index in range(len(estimate.items)):
            remarks[index] += fit_remarks(diagnostics, index)
        for index, value in weak_items(estimate, diagnostics).items():
            remarks[index].append("wrong direction?" if value < 0 else "hardly discriminates")
        for row in diagnostics.differing or ():
            remarks[estimate.items.index(row[0])].append(f"differs by {row[1]}")
        for index in (k for k, pairs in enumerate(diagnostics.dependencies) if pairs):
            remarks[index].append("dependent")
    return [list(dict.fromkeys(one)) for one in remarks]
