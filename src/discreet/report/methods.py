"""The methods section of a paper, written from what was done.

In: a diagnosis. Out: one paragraph in the past tense, with the references that it names.
"""

from __future__ import annotations

from discreet import __version__
from discreet.models.methods import METHOD_WORDS, OTHER_WORDS
from discreet.report.findings.diagnosis import Diagnosis
from discreet.report.findings.steps import words_for
from discreet.report.summary import Diagnostics
from discreet.results.estimate import Estimate, Status
from discreet.results.limits import DEPENDENT, DEPENDENT_NEGLIGIBLE, say_reliability
from discreet.text import count_of, minus, name_some

MOST_NAMED = 20
"""Items that a test left out which the text names."""

MEAN_ZERO = ", and the items' locations (means of their thresholds) have mean zero"


def write_methods(test: Diagnosis, about: str = "") -> str:
    """Return one paragraph in the past tense, with the references it names."""
    estimate = test.estimate
    words = METHOD_WORDS.get(estimate.method, OTHER_WORDS)
    left_out = int((~test.known).sum())
    sentences = [
        _describe_data(estimate),
        f"{words_for(estimate).model} were estimated by "
        f"{words.how.format(name=estimate.method)}, with discreet {__version__}; they are in "
        f"logits{'' if about else _describe_scale(estimate)}.",
        about,
        estimate.se_method or f"{words.errors}.",
        _describe_left_out(estimate) if left_out else "",
    ]
    if test.statistics is not None:
        sentences.append(_describe_persons(test.statistics))
        sentences += _describe_checks(test.statistics, test.dependent_pairs)
    return " ".join(sentence for sentence in sentences if sentence)


REASONS = {
    Status.NOT_CONNECTED: "not linked to the others",
    Status.ALWAYS_RIGHT: "always in the highest category",
    Status.ALWAYS_WRONG: "always in the lowest category",
    Status.NO_ANSWERS: "without answers",
}
"""Why an item has no difficulty, as a paper would say."""


def _describe_left_out(estimate: Estimate) -> str:
    """Name the items without a difficulty, by the reason."""
    parts = []
    for status, reason in REASONS.items():
        names = [
            item for item, one in zip(estimate.items, estimate.status, strict=True) if one == status
        ]
        if names:
            parts.append(f"{name_some(names, MOST_NAMED)} ({reason})")
    count = int((~estimate.estimated).sum())
    listed = f": {'; '.join(parts)}" if parts else ""
    return f"{count} of the {len(estimate.items)} items had no estimable difficulty{listed}."


def _describe_persons(diagnostics: Diagnostics) -> str:
    """Say how many persons took no part in fit and tests, and why."""
    total = diagnostics.measured + diagnostics.extreme + diagnostics.empty
    parts = [
        (diagnostics.extreme, f"had {diagnostics.words.extremes}"),
        (diagnostics.empty, "answered no item with a difficulty"),
    ]
    exclusions = [f"{number:,} who {why}" for number, why in parts if number]
    sampled = (
        f" Fit and tests are those of {diagnostics.sampled:,} evenly chosen persons."
        if diagnostics.sampled is not None
        else ""
    )
    if not exclusions:
        return sampled.strip()
    return f"Of {total:,} persons, fit was assessed without {' and '.join(exclusions)}.{sampled}"


def say_chance(p_value: float) -> str:
    """Write a p-value as papers do."""
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def _say_left_out(diagnostics: Diagnostics) -> str:
    """Name the items that Andersen's test left out, and why."""
    items = diagnostics.left_out.get("Andersen", ())
    lacked = "a category" if diagnostics.shares else "a right or a wrong answer"
    why = f"which lacked {lacked} in one of the groups"
    return f", without {name_some(items, MOST_NAMED)}, {why}" if items else ""


def _describe_scale(estimate: Estimate) -> str:
    anchors = sum(status == Status.ANCHORED for status in estimate.status)
    if anchors:
        return f" and on the scale of {anchors} anchored items"
    return MEAN_ZERO if estimate.has_steps else " and have mean zero"


def _describe_data(estimate: Estimate) -> str:
    if estimate.answers is None or estimate.persons is None:
        return f"The analysis covers {len(estimate.items)} items."
    answers = int(estimate.answers.sum())
    share = answers / max(estimate.persons * len(estimate.items), 1)
    coverage = "all cells" if share == 1 else f"{100 * share:.1f}% of all cells; others are missing"
    return (
        f"The analysis covers {answers:,} answers of {estimate.persons:,} persons to "
        f"{len(estimate.items):,} items ({coverage})."
    )


def _describe_checks(diagnostics: Diagnostics, pairs: int) -> list[str]:
    mean, sd = minus(f"{diagnostics.ability_mean:.2f}"), f"{diagnostics.ability_sd:.2f}"
    has_steps = bool(diagnostics.shares)
    held = "thresholds" if has_steps else "difficulties"
    extremes = diagnostics.words.extremes if has_steps else "everything right or wrong"
    sentences = [
        f"Abilities were estimated by weighted likelihood (Warm, 1989) with the {held} held fixed "
        f"(mean {mean}, SD {sd}).",
        "Fit was assessed by infit and outfit mean squares (Wright & Masters, 1982) at maximum "
        f"likelihood abilities, without persons who had {extremes}.",
    ]
    if diagnostics.andersen is not None:
        statistic, degrees, p_value = diagnostics.andersen
        sentences.append(
            "Andersen's (1973) likelihood ratio test, with persons split at the "
            f"{diagnostics.andersen_split or 'mean score'}, gave "
            f"chi-squared({degrees}) = {statistic:.2f}, {say_chance(p_value)}"
            f"{_say_left_out(diagnostics)}."
        )
    if diagnostics.martin_loef is not None:
        statistic, degrees, p_value = diagnostics.martin_loef
        left_out = diagnostics.left_out.get("Martin-Löf", ())
        without = f", without {name_some(left_out, MOST_NAMED)}" if left_out else ""
        sentences.append(
            "Martin-Löf's (1973) test of the easier against the harder half of the items, of "
            f"persons who answered all of them, gave chi-squared({degrees}) = {statistic:.2f}, "
            f"{say_chance(p_value)}{without}."
        )
    if diagnostics.step_models is not None:
        statistic, degrees, p_value = diagnostics.step_models
        left_out = diagnostics.left_out.get("steps", ())
        without = f", without {name_some(left_out, MOST_NAMED)}" if left_out else ""
        sentences.append(
            "Partial credit against rating scale gave "
            f"chi-squared({degrees}) = {statistic:.2f}, {say_chance(p_value)}{without}."
        )
    if diagnostics.reliability is not None:
        sentences.append(
            f"Person separation reliability was {say_reliability(diagnostics.reliability)}."
        )
    if diagnostics.alpha is not None:
        sentences.append(
            f"Cronbach's alpha{'' if has_steps else ' (KR-20)'} of raw scores was "
            f"{say_reliability(diagnostics.alpha)}."
        )
    if (dimensions := diagnostics.dimensionality) is not None:
        sentences.append(
            f"The first component of the standardised residuals had an eigenvalue of "
            f"{dimensions.eigenvalue[0]:.2f}; the 95% point of {dimensions.simulations} sets of "
            f"answers simulated from the fitted model, given the scores, was "
            f"{dimensions.limit[0]:.2f} (parallel analysis; Horn, 1965)."
        )
    if diagnostics.replications:
        sentences.append(
            f"Limits of infit, outfit, Q3 and person fit came from {diagnostics.replications:,} "
            "sets of answers simulated from the fitted model, given answered items and total "
            "scores (parametric bootstrap), with one error rate of 5% for all of them together."
        )
    if diagnostics.dependent is not None:
        least = DEPENDENT_NEGLIGIBLE if diagnostics.replications else DEPENDENT
        sentences.append(
            f"Residual correlations (Q3; Yen, 1984) exceeded their mean by more than {least:g} "
            f"and more than chance for {count_of(pairs, 'pair')} of items."
        )
    return sentences
