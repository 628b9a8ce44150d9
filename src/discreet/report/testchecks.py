"""Checks of the test as a whole, from what the answers showed.

In: diagnostics. Out: findings. To add a check: a function and a line in ``TEST_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from discreet.report.diagnostics import Diagnostics
from discreet.report.drawing import minus
from discreet.report.finding import Finding, Severity, count_of, name_some
from discreet.report.thresholds import (
    DEPENDENT,
    EXTREME_SHARE,
    RELIABILITY_GOOD,
    RELIABILITY_LOW,
)

__all__ = ["TEST_CHECKS"]

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
