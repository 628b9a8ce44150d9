"""Findings of the tests of the model: equal difficulties, one ability, expected persons.

In: diagnostics. Out: findings, for ``findings.py`` to gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.analysis.rules import (
    ANDERSEN_LEVEL,
    FIT_HIGH,
    MISFIT_SHARE,
    Finding,
    Severity,
    say_test,
)

if TYPE_CHECKING:
    from discreet.analysis.diagnostics import Diagnostics
    from discreet.results.estimate import Estimate


def check_equal(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether persons with low and high scores find the same items hard."""
    if diagnostics.andersen is None or diagnostics.andersen[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "Items are not equally hard for persons with low and with high scores",
        f"Andersen's test: {say_test(*diagnostics.andersen)}.",
        "With many persons small differences are enough. See in the Wald tests which items "
        "differ, and by how much; these often discriminate more or less than the others.",
    )


def check_halves(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether the easier and the harder half measure the same."""
    if diagnostics.martin_loef is None or diagnostics.martin_loef[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "The easier and the harder half of the items do not measure quite the same",
        f"Martin-Löf's test: {say_test(*diagnostics.martin_loef)}.",
        "Ask whether hard items need something that easy ones do not, and look at the components.",
    )


def check_distances(estimate: Estimate, diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say of a rating scale whether items share the distances between their steps."""
    found = diagnostics.step_models
    if estimate.model != "rating-scale" or found is None or found[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "Items do not share the distances between their steps",
        f"Partial credit describes the answers better than a rating scale: {say_test(*found)}.",
        "With many persons small differences are enough. Compare the thresholds of a fit by "
        "partial credit (--model partial-credit), and take that where they differ clearly.",
    )


def check_misfits(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether many persons answered unexpectedly."""
    count = diagnostics.misfitting or 0
    share = count / max(diagnostics.measured, 1)
    if share <= MISFIT_SHARE:
        return
    yield Finding(
        Severity.LOOK,
        f"{share:.0%} of the persons answered unexpectedly",
        f"Infit or outfit of {count:,} of {diagnostics.measured:,} persons is above {FIT_HIGH:g} "
        "by more than chance.",
        "Look at the table of persons for guessing, carelessness, copied or lost answers, and "
        "for a second skill that some have.",
    )
