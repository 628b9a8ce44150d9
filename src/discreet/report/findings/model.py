"""Findings of the tests of the model: direction of items, one ability, equal difficulties, errors.

In: diagnostics. Out: findings, for ``findings.py`` to gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.items.mislabelled import weak_items
from discreet.persons.measures import HalvesTest
from discreet.results.limits import (
    ANDERSEN_LEVEL,
    CONTRAST_ALARM,
    CONTRAST_CLEAR,
    CONTRAST_FAR,
    CONTRAST_SEEN,
    ENDS_APART,
    ENDS_DIFFER,
    FEWEST_PERSONS,
    FIT_HIGH,
    MISFIT_SHARE,
    NAMED,
    REVERSED_SHARE,
    SURE_T,
    Finding,
    Severity,
    say_test,
)
from discreet.text import count_of, minus, name_some

if TYPE_CHECKING:
    from discreet.items.dimensionality import Dimensionality
    from discreet.report.summary import Diagnostics
    from discreet.results.estimate import Estimate


def check_enough_persons(estimate: Estimate, diagnostics: Diagnostics | None) -> Iterator[Finding]:
    """Say whether there are too few persons for any test of the model."""
    persons = estimate.persons if diagnostics is None else diagnostics.measured
    if persons is None or persons >= FEWEST_PERSONS:
        return
    counted = "persons" if diagnostics is None else diagnostics.words.measured
    yield Finding(
        Severity.ALARM,
        f"Too few persons to judge: {persons}",
        f"Number of {counted}: {persons}. Below {FEWEST_PERSONS} a test of the model misses almost "
        "everything, so that nothing here means that the model holds.",
        f"Collect answers of at least {FEWEST_PERSONS} persons, better of 100, before you rely on "
        "these items.",
    )


def list_reversed(estimate: Estimate, diagnostics: Diagnostics) -> dict[int, float]:
    """Return items whose answers fall with ability by more than chance, and the correlations."""
    answers = estimate.answers
    return {
        index: value
        for index, value in weak_items(estimate, diagnostics).items()
        if value < -SURE_T / (diagnostics.measured if answers is None else answers[index]) ** 0.5
    }


def has_many_reversed(estimate: Estimate, diagnostics: Diagnostics) -> bool:
    """Say whether so many items run against the others that every ability is distorted."""
    number = len(list_reversed(estimate, diagnostics)) + len(diagnostics.mislabelled)
    return number >= REVERSED_SHARE * max(int(estimate.estimated.sum()), 1)


def check_reversed(estimate: Estimate, diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say which items run against the others; those that look mislabelled are told apart."""
    pairs = sorted(list_reversed(estimate, diagnostics).items(), key=lambda pair: pair[1])
    if not pairs:
        return
    names = [estimate.items[index] for index, _ in pairs]
    labels = [f"{estimate.items[index]} ({minus(f'{value:.2f}')})" for index, value in pairs]
    verb = "runs" if len(names) == 1 else "run"
    first = "coding" if estimate.has_steps else "answer key"
    yield Finding(
        Severity.SERIOUS,
        f"{count_of(len(names))} {verb} against the others: probably worded the other way round",
        f"Their answers correlate negatively with ability: {name_some(labels, NAMED)}.",
        f"Check the {first} and the wording first. Turn such items round (--reverse "
        f"{','.join(names)}) and calibrate again. Until then they distort every ability and every "
        "other test.",
    )


def _judge_dimensions(dimensions: Dimensionality) -> Severity | None:
    """Say how much the first component matters; None where chance explains it."""
    if not dimensions.beyond_chance:
        return None
    times = dimensions.eigenvalue[0] / dimensions.expected[0]
    believed = dimensions.correlation is not None and times >= CONTRAST_SEEN
    together = dimensions.correlation if believed and dimensions.correlation is not None else 1.0
    if times >= CONTRAST_ALARM or together < ENDS_APART:
        return Severity.ALARM
    return Severity.SERIOUS if times >= CONTRAST_FAR or together < ENDS_DIFFER else Severity.LOOK


DIMENSION_TITLES = {
    Severity.ALARM: "These items do not measure one thing",
    Severity.SERIOUS: "The items seem to measure more than one thing",
    Severity.LOOK: "Some items share more than the ability",
}


def check_dimensions(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether the residuals share more than chance makes them share."""
    dimensions = diagnostics.dimensionality
    severity = None if dimensions is None else _judge_dimensions(dimensions)
    if dimensions is None or severity is None:
        return
    small = dimensions.eigenvalue[0] / dimensions.expected[0] < CONTRAST_CLEAR
    remarks = [
        " That is beyond chance, but small: one score will do for most purposes." if small else "",
        ""
        if dimensions.correlation is None
        else " Abilities on the two ends correlate at "
        f"{minus(f'{dimensions.correlation:.2f}')}, corrected for their errors.",
        " No score, difficulty or error on this page can be trusted as it stands."
        if severity is Severity.ALARM
        else "",
    ]
    yield Finding(
        severity,
        DIMENSION_TITLES[severity],
        f"{say_component(dimensions)}{''.join(remarks)}",
        f"{_read_ends(dimensions)} If these are two skills, calibrate and report them apart.",
    )


def say_component(dimensions: Dimensionality) -> str:
    """Write the first component beside what chance gives."""
    value, chance, limit = (
        f"{number:.1f}" if number >= 10 else f"{number:.2f}"
        for number in (dimensions.eigenvalue[0], dimensions.expected[0], dimensions.limit[0])
    )
    return (
        f"What one ability leaves unexplained shares a component worth {value} of "
        f"{len(dimensions.items)} items; chance gives {chance} (95% point {limit})."
    )


def _read_ends(dimensions: Dimensionality) -> str:
    """Say which items to read: up to three of each end, none of both."""
    pairs = list(zip(dimensions.items, dimensions.loading, strict=True))
    first = [item for item, loading in pairs if loading > 0][:3]
    second = [item for item, loading in reversed(pairs) if loading <= 0][:3]
    differ = f", and how {', '.join(second)} differ from them" if second else ""
    return f"Read what {', '.join(first)} have in common{differ}."


def check_errors(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether easier and harder items disagree on abilities, and what that does to errors."""
    if diagnostics.ability_errors is None:
        return
    halves = HalvesTest(*diagnostics.ability_errors)
    if halves.is_found:
        severity = Severity.SERIOUS if halves.is_large else Severity.LOOK
        yield Finding(severity, halves.title, *halves.explain())


def check_equal(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether persons with low and high scores find the same items hard."""
    if diagnostics.andersen is None or diagnostics.andersen[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "Items are not equally hard for persons with low and with high scores",
        f"Andersen's test: {say_test(*diagnostics.andersen)}.{say_split(diagnostics)}",
        "With many persons small differences are enough. See in the Wald tests which items "
        "differ, and by how much; these often discriminate more or less than the others.",
    )


def say_split(diagnostics: Diagnostics) -> str:
    """Say where persons were split for Andersen's test, and which items it left out."""
    split = diagnostics.andersen_split
    return f" Persons were split at the {split}." * bool(split) + say_left_out(
        diagnostics, "Andersen"
    )


def say_left_out(diagnostics: Diagnostics, test: str) -> str:
    """Say which items a test could not compare; empty where it compared all."""
    items = diagnostics.left_out.get(test, ())
    return f" The test is without {name_some(items, NAMED)}." if items else ""


def check_halves(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether the easier and the harder half measure the same."""
    if diagnostics.martin_loef is None or diagnostics.martin_loef[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "The easier and the harder half of the items do not measure quite the same",
        f"Martin-Löf's test: {say_test(*diagnostics.martin_loef)}."
        f"{say_left_out(diagnostics, 'Martin-Löf')}",
        "Ask whether hard items need something that easy ones do not, and look at the components.",
    )


def check_distances(estimate: Estimate, diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say of a rating scale whether items share the distances between their steps."""
    test = diagnostics.step_models
    if estimate.model != "rating-scale" or test is None or test[2] >= ANDERSEN_LEVEL:
        return
    yield Finding(
        Severity.LOOK,
        "Items do not share the distances between their steps",
        f"Partial credit describes the answers better than a rating scale: {say_test(*test)}.",
        "With many persons small differences are enough. Compare the thresholds of a fit by "
        "partial credit (--model partial-credit), and take that where they differ clearly.",
    )


def check_misfits(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say whether persons answered unexpectedly: anybody beyond simulated limits, else many."""
    count = diagnostics.misfitting or 0
    share = count / max(diagnostics.measured, 1)
    simulated = bool(diagnostics.replications)
    if share <= (0 if simulated else MISFIT_SHARE):
        return
    limit = "its simulated limit" if simulated else f"{FIT_HIGH:g} by more than chance"
    yield Finding(
        Severity.LOOK,
        f"{count_of(count, 'person')} answered unexpectedly",
        f"{'Infit' if simulated else 'Infit or outfit'} of {count:,} of {diagnostics.measured:,} "
        f"persons ({share:.1%}) is above {limit}.",
        "Look at the table of persons for guessing, carelessness, copied or lost answers, and "
        "for a second skill that some have.",
    )
