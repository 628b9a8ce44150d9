"""Checks of the test as a whole, from what the answers showed.

In: diagnostics. Out: findings. To add a check: a function and a line in ``TEST_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from discreet.analysis.diagnostics import Diagnostics
from discreet.analysis.finding import (
    DEPENDENT,
    EXTREME_SHARE,
    RELIABILITY_GOOD,
    RELIABILITY_LOW,
    ROUGH_SE,
    Finding,
    Severity,
    count_of,
    name_some,
)
from discreet.analysis.item_findings import ESTIMATE_CHECKS, ITEM_CHECKS, fit_remarks, weak_items
from discreet.markup import minus
from discreet.results.estimate import Estimate, Status

MANY_TIMES = 10
"""A test this many times as long is beyond what the formula can promise."""


def _check_reliability(diagnostics: Diagnostics) -> list[Finding]:
    value = diagnostics.reliability
    if value is None or value >= RELIABILITY_GOOD:
        return []
    poor = value < RELIABILITY_LOW
    return [
        Finding(
            Severity.SERIOUS if poor else Severity.LOOK,
            f"Persons are told apart {'poorly' if poor else 'only moderately'}",
            f"Person reliability is {minus(f'{value:.2f}')} with {diagnostics.answered:g} answers "
            "per person (median).",
            f"Report groups rather than single persons, or give each person "
            f"{_wanted_answers(value, diagnostics.answered)}. Difficulties are not affected.",
        )
    ]


def _wanted_answers(reliability: float, answered: float) -> str:
    """Say how many items reach a good reliability (Spearman and Brown 1910), if it says much."""
    good = RELIABILITY_GOOD
    times = good * (1 - reliability) / (max(reliability, 1e-9) * (1 - good))
    if times > MANY_TIMES:
        return "many more items"
    return f"about {ceil(times * answered)} items for {good:g}"


def _check_extreme_persons(diagnostics: Diagnostics) -> list[Finding]:
    total = diagnostics.measured + diagnostics.extreme
    share = diagnostics.extreme / max(total, 1)
    if share <= EXTREME_SHARE:
        return []
    return [
        Finding(
            Severity.LOOK,
            f"{share:.0%} of the persons have everything right or everything wrong",
            f"{diagnostics.extreme:,} of {total:,} persons. They say nothing about the items, and "
            "the test says little about them.",
            "Give longer tests, or easier and harder items.",
        )
    ]


def _check_dependence(diagnostics: Diagnostics) -> list[Finding]:
    count = diagnostics.dependent_pairs
    if not count or diagnostics.dependent is None:
        return []
    worst = diagnostics.dependent[: min(count, 3)]
    names = [f"{first} with {second} ({excess:.2f})" for first, second, excess, _ in worst]
    more = f" and {count - 3:,} more" if count > 3 else ""
    return [
        Finding(
            Severity.LOOK,
            f"{count_of(count, 'pair')} of items {'depends' if count == 1 else 'depend'} "
            "on each other",
            f"Residual correlation more than {DEPENDENT:g} above the mean: "
            f"{', '.join(names)}{more}.",
            "Items on one text, or one that gives the other away, count twice: errors look "
            "smaller than they are. Drop one of each pair, or score the pair as one item.",
        )
    ]


def _check_groups(diagnostics: Diagnostics) -> list[Finding]:
    rows = diagnostics.differing or ()
    if not rows:
        return []
    names = [
        f"{item} ({abs(size):.2f} logits {'harder' if size > 0 else 'easier'} for {group})"
        for item, _, group, _, size, _ in rows
    ]
    items = len({row[0] for row in rows})
    return [
        Finding(
            Severity.SERIOUS if any(row[5] == "C" for row in rows) else Severity.LOOK,
            f"{count_of(items)} {'works' if items == 1 else 'work'} differently in groups of equal "
            "ability",
            f"Differential item functioning: {name_some(names)}.",
            "Read these items for wording or content that only one group knows. Comparisons of "
            "the groups should do without them.",
        )
    ]


TEST_CHECKS: dict[str, Callable[[Diagnostics], list[Finding]]] = {
    "reliability": _check_reliability,
    "groups": _check_groups,
    "dependent items": _check_dependence,
    "extreme persons": _check_extreme_persons,
}

# What is wrong with a test: every check run, and the remarks about each item.
#
# In: an estimate and, where the answers were at hand, diagnostics. Out: findings, the most serious
# first, and the names of the checks that found nothing.

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
