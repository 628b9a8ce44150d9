"""Checks of the test as a whole, from what the answers showed.

In: diagnostics. Out: findings. To add a check: a function and a line in ``TEST_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.report.diagnostics import Diagnostics
from discreet.report.finding import Finding, Severity, count_of
from discreet.report.thresholds import (
    DEPENDENT,
    EXTREME_SHARE,
    RELIABILITY_GOOD,
    RELIABILITY_LOW,
)

__all__ = ["TEST_CHECKS", "dependent_pairs"]


def dependent_pairs(diagnostics: Diagnostics) -> list[tuple[str, str, float, int]]:
    """Return the pairs whose residuals correlate so much that it matters."""
    return [pair for pair in diagnostics.dependent or () if pair[2] > DEPENDENT]


def _check_reliability(diagnostics: Diagnostics) -> list[Finding]:
    value = diagnostics.reliability
    if value is None or value >= RELIABILITY_GOOD:
        return []
    # Spearman and Brown: how many times as many answers reach the wanted reliability.
    shown = max(value, 0.05)
    times = RELIABILITY_GOOD * (1 - shown) / (shown * (1 - RELIABILITY_GOOD))
    wanted = int(np.ceil(times * diagnostics.answered))
    return [
        Finding(
            Severity.SERIOUS if value < RELIABILITY_LOW else Severity.LOOK,
            f"Persons are told apart {'poorly' if value < RELIABILITY_LOW else 'only moderately'}",
            f"Person reliability is {value:.2f} with {diagnostics.answered:g} answers per person "
            "(median).",
            f"Report groups rather than single persons, or give each person about {wanted} items "
            f"for {RELIABILITY_GOOD:g}. Difficulties are not affected.",
        )
    ]


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
    pairs = dependent_pairs(diagnostics)
    if not pairs:
        return []
    names = [f"{first} with {second} ({excess:.2f})" for first, second, excess, _ in pairs[:3]]
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return [
        Finding(
            Severity.LOOK,
            f"{count_of(len(pairs), 'pair')} of items {'depends' if len(pairs) == 1 else 'depend'} "
            "on each other",
            f"Residual correlation more than {DEPENDENT:g} above the mean: "
            f"{', '.join(names)}{more}.",
            "Items on one text, or one that gives the other away, count twice: errors look "
            "smaller than they are. Drop one of each pair, or score the pair as one item.",
        )
    ]


TEST_CHECKS: dict[str, Callable[[Diagnostics], list[Finding]]] = {
    "reliability": _check_reliability,
    "dependent items": _check_dependence,
    "extreme persons": _check_extreme_persons,
}
