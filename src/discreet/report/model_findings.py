"""Findings of the tests of the model: direction of items, one ability, equal difficulties, errors.

In: an estimate and its study. Out: findings, for ``findings.py`` to gather. What they say stands in
``findings.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from discreet.results import limits
from discreet.results.estimate import Estimate
from discreet.text import count_of, minus, name_some, show_apart
from discreet.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from discreet.items.dimensionality import Dimensionality
    from discreet.items.likelihood_ratios import AndersenTest, StepModelTest
    from discreet.items.martin_loef import MartinLoefTest
    from discreet.items.mislabelled import Suspect
    from discreet.items.study import Study

    #: A test of all items together.
    ChiSquared: TypeAlias = AndersenTest | MartinLoefTest | StepModelTest


class Severity(IntEnum):
    """How much a finding matters, and the word that a page has for it."""

    ALARM = 0, "alarm"
    SERIOUS = 1, "serious"
    LOOK = 2, "worth a look"
    NOTE = 3, "note"
    word: str

    def __new__(cls, rank: int, word: str) -> Self:
        self = int.__new__(cls, rank)
        self._value_, self.word = rank, word
        return self


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: what was found and what to do.

    ``consequences`` are other findings that this one may explain.
    """

    severity: Severity
    title: str
    found: str
    advice: str
    consequences: tuple[Finding, ...] = ()


TEXTS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))


def make_finding(
    name: str,
    facts: Mapping[str, object],
    severity: Severity | None = None,
    *,
    count: int = 1,
    noun: str = "item",
) -> Finding:
    """Return a finding with its texts, in which these facts are put.

    ``count`` is how many things of the noun it is about.
    """
    texts, (s, are) = TEXTS[name], ("s", "is") if count == 1 else ("", "are")
    about = {**facts, "count": count_of(count, noun), "s": s, "are": are}
    parts = (texts[part].format(**about) for part in ("title", "found", "advice"))
    return Finding(Severity[texts["severity"]] if severity is None else severity, *parts)


def say_reliability(value: float) -> str:
    """Write a reliability; below 0, where errors exceed the differences, it says no more than 0."""
    if np.isnan(value):
        return "–"
    return f"{value:.2f}" if value >= 0 else "0 (errors exceed the differences)"


def say_test(test: ChiSquared) -> str:
    """Write a chi-squared test as findings do."""
    chance = "below 0.0001" if test.p_value < 1e-4 else f"{test.p_value:.4f}"
    return f"chi-squared {test.statistic:.1f} with {test.degrees} degrees of freedom, p {chance}"


#: What a report on few persons begins with.
DESCRIPTION = "A description of"


def check_enough_persons(estimate: Estimate, study: Study | None) -> Iterator[Finding]:
    """Say that few persons allow a description, and no test of the model."""
    persons = estimate.persons if study is None else study.abilities.measured
    if persons is None or persons >= limits.FEWEST_PERSONS:
        return
    measured = "persons" if study is None else words_for(estimate).measured
    about = {"persons": persons, "measured": measured, "fewest": limits.FEWEST_PERSONS}
    yield make_finding("few-persons", about)


def list_suspects(study: Study) -> tuple[Suspect, ...]:
    """Return the items that abler persons get wrong, the surest first."""
    return () if study.mislabelled is None else study.mislabelled.list_suspects()


def check_labels(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say in plain words which items look mislabelled, if any do."""
    suspects = list_suspects(study)
    if not suspects:
        return
    names = [f"{item} ({minus(f'{slope:.1f}')} ± {se:.1f})" for item, slope, se, _ in suspects]
    false = sum(1 - probability for *_, probability in suspects)
    shown = name_some(names, limits.NAMED)
    yield make_finding("mislabelled", {"names": shown, "false": false}, count=len(suspects))


def weak_items(estimate: Estimate, study: Study) -> dict[int, float]:
    """Items that hardly correlate with ability, although enough persons answered them.

    Those that look mislabelled are told of apart.
    """
    suspects = {row[0] for row in list_suspects(study)}
    return {
        index: value
        for index, value in enumerate(study.fit.point_measure.tolist())
        if value < limits.WEAK_CORRELATION
        and estimate.items[index] not in suspects
        and (estimate.answers is None or estimate.answers[index] >= limits.ENOUGH_ANSWERS)
    }


def list_reversed(estimate: Estimate, study: Study) -> dict[int, float]:
    """Return items whose answers fall with ability by more than chance, and the correlations."""
    answers = estimate.answers
    return {
        index: value
        for index, value in weak_items(estimate, study).items()
        if value
        < -limits.SURE_T / (study.abilities.measured if answers is None else answers[index]) ** 0.5
    }


def has_many_reversed(estimate: Estimate, study: Study) -> bool:
    """Say whether so many items run against the others that every ability is distorted."""
    number = len(list_reversed(estimate, study)) + len(list_suspects(study))
    return number >= limits.REVERSED_SHARE * max(int(estimate.estimated.sum()), 1)


def check_reversed(estimate: Estimate, study: Study) -> Iterator[Finding]:
    """Say which items run against the others; those that look mislabelled are told apart."""
    pairs = sorted(list_reversed(estimate, study).items(), key=lambda pair: pair[1])
    if not pairs:
        return
    names = [estimate.items[index] for index, _ in pairs]
    labels = [f"{estimate.items[index]} ({minus(f'{value:.2f}')})" for index, value in pairs]
    about = {"names": name_some(labels, limits.NAMED), "items": ",".join(names)}
    about["first"] = "coding" if estimate.has_steps else "answer key"
    yield make_finding("reversed", about, count=len(names))


def _judge_dimensions(dimensions: Dimensionality) -> Severity | None:
    """Say how much the first component matters; None where chance explains it."""
    if dimensions.eigenvalue[0] <= dimensions.limit[0]:
        return None
    times, together = dimensions.eigenvalue[0] / dimensions.expected[0], dimensions.correlation
    if together is None:  # the size alone has to say it
        far, alarm = times >= limits.CONTRAST_FAR, times >= limits.CONTRAST_ALARM
    else:
        believed = times >= limits.CONTRAST_SEEN
        far = believed and together < limits.ENDS_DIFFER
        alarm = believed and together < limits.ENDS_APART
    return Severity.ALARM if alarm else Severity.SERIOUS if far else Severity.LOOK


def check_dimensions(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say whether the residuals share more than chance makes them share."""
    dimensions = study.dimensionality
    severity = None if dimensions is None else _judge_dimensions(dimensions)
    if dimensions is None or severity is None:
        return
    small, together = _is_small(dimensions), dimensions.correlation
    value = "" if together is None else minus(f"{together:.2f}")
    words = f" Abilities on the two ends correlate at {value}, corrected for their errors."
    about = {
        "component": say_component(dimensions),
        "size": " That is beyond chance, but small." if small else "",
        "together": words if value else "",
        "read": _read_ends(dimensions),
        "advice": _advise(dimensions, severity),
    }
    yield make_finding(f"dimensions-{severity.name}", about, severity)


def _is_small(dimensions: Dimensionality) -> bool:
    return dimensions.eigenvalue[0] / dimensions.expected[0] < limits.CONTRAST_CLEAR


def _advise(dimensions: Dimensionality, severity: Severity) -> str:
    """Say whether one score will do: the correlation decides, without one the size."""
    if severity is not Severity.LOOK:
        return "If these are two skills, calibrate and report them apart."
    if _is_small(dimensions) or dimensions.correlation is not None:
        return "One score will do for most purposes; such items often have a text or words alike."
    return "If these are two skills, see whether persons' scores on them differ."


def say_component(dimensions: Dimensionality) -> str:
    """Write the first component beside what chance gives."""
    value, chance, limit = show_apart(
        dimensions.eigenvalue[0], dimensions.expected[0], dimensions.limit[0]
    )
    return (
        f"What one ability leaves unexplained shares a component worth {value} of "
        f"{len(dimensions.items)} items; chance gives {chance} (95% point {limit})."
    )


def _read_ends(dimensions: Dimensionality) -> str:
    """Say which items to read: up to three of each end, of those with a clear loading."""
    pairs = list(zip(dimensions.items, dimensions.loading, strict=True))
    first = [item for item, loading in pairs if loading >= limits.LOADING][:3]
    second = [item for item, loading in reversed(pairs) if loading <= -limits.LOADING][:3]
    if len(first) < 2 and not second:
        return ""
    differ = f" {'and how' if len(first) > 1 else 'how'} {', '.join(second)} differ from "
    differ += "them" if len(first) > 1 else ", ".join(first) or "the others"
    common = f" what {', '.join(first)} have in common" if len(first) > 1 else ""
    return f"Read{common}{differ if second else ''}. "


def check_errors(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say whether easier and harder items disagree on abilities, and what that does to errors."""
    halves = study.halves
    if halves is not None and halves.is_found:
        severity = Severity.SERIOUS if halves.is_large else Severity.LOOK
        yield Finding(severity, halves.title, *halves.explain())


def check_equal(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say whether persons with low and high scores find the same items hard."""
    test = study.andersen
    if test is not None and test.p_value < limits.ANDERSEN_LEVEL:
        yield make_finding("andersen", {"test": say_test(test), "halves": say_halves(test)})


def say_halves(test: AndersenTest) -> str:
    """Say how much the halves differ, where persons were split, and which items were left out."""
    apart = np.diff(test.difficulty, axis=0)
    size = ""
    if len(apart) == 1 and apart.size:
        largest = int(np.abs(apart[0]).argmax())
        place = f"{abs(apart[0, largest]):.2f} ({test.items[largest]})"
        size = (
            f" Difficulties in the halves differ by {np.sqrt(np.mean(apart**2)):.2f} logits (root "
            f"mean square, with errors), at most by {place}."
        )
    return f"{size} Persons were split at the {test.split}.{say_left_out(test)}"


def say_left_out(test: ChiSquared) -> str:
    """Say which items a test could not compare; empty where it compared all."""
    items = name_some(test.excluded, limits.NAMED)
    return f" The test is without {items}." if test.excluded else ""


def check_halves(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say whether the easier and the harder half measure the same."""
    test = study.martin_loef
    if test is not None and test.p_value < limits.ANDERSEN_LEVEL:
        about = {"test": say_test(test), "left_out": say_left_out(test)}
        yield make_finding("martin-loef", about)


def check_distances(estimate: Estimate, study: Study) -> Iterator[Finding]:
    """Say of a rating scale whether items share the distances between their steps."""
    test = study.step_models
    if estimate.model != "rating-scale" or test is None or test.p_value >= limits.ANDERSEN_LEVEL:
        return
    yield make_finding("distances", {"test": say_test(test)})


def check_misfits(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say whether more persons answered unexpectedly than they do where the model holds."""
    count, measured = study.abilities.unexpected, study.abilities.measured
    small = study.small_chances
    share = count / max(measured, 1)
    if share > limits.MISFIT_SHARE if small is None else small.is_beyond:
        about = {"persons": say_persons(study)}
        yield make_finding("unexpected-persons", about, count=count, noun="person")


def say_persons(study: Study) -> str:
    """Say how many persons answered unexpectedly, and how many do where the model holds."""
    small, count, measured = (
        study.small_chances,
        study.abilities.unexpected,
        study.abilities.measured,
    )
    if small is None:
        return (
            f"Infit or outfit of {count:,} of {measured:,} persons ({count / max(measured, 1):.1%})"
            f" is above {limits.FIT_HIGH:g} by more than chance."
        )
    return (
        f"{small.share:.1%} of the persons gave answers with a chance of {small.chance:.0%} or "
        f"less, given their items and total score; where the model holds {small.expected:.1%} do, "
        f"and up to {small.limit:.1%} by chance."
    )


@dataclass(frozen=True)
class AnswerWords:
    """How answers of one kind are spoken of.

    Attributes
    ----------
    number, numbers
        What is known of each item.
    extremes, measured
        What persons have whose answers say little, and who the others are.
    noise
        What to look for in items that are answered unpredictably.
    direction
        What to do first about an item that does not go along with the ability.
    model
        What was estimated, and who proposed it.
    alpha
        What Cronbach's coefficient is called.
    """

    number: str
    numbers: str
    extremes: str
    measured: str
    noise: str
    direction: str
    model: str
    alpha: str


def _read_words(model: str) -> AnswerWords:
    plain = TEXTS["words"]["rasch" if model == "rasch" else "partial-credit"]
    return AnswerWords(**plain | TEXTS["words"][model])


def words_for(estimate: Estimate) -> AnswerWords:
    """Return the words for an estimate."""
    return _read_words(estimate.model if estimate.has_steps else "rasch")


def check_threshold_order(estimate: Estimate) -> Iterator[Finding]:
    """Say which thresholds are in the wrong order, and what that means."""
    wrong = list_disordered(estimate)
    if not wrong:
        return
    sure = sum(row[3] for row in wrong)
    beyond = f" {_many(sure, len(wrong))} beyond chance." if np.isfinite(estimate.se).any() else ""
    items = len({row[0] for row in wrong})
    title, labels = f"{count_of(items)} with thresholds in the wrong order", estimate.ladder.labels
    names = [
        f"category {labels[item][category]} of {estimate.items[item]} (by {apart:.2f} logits)"
        for item, category, apart, _ in wrong
    ]
    if estimate.model == "rating-scale":  # they are at the same distances in every item
        title = "The thresholds of the rating scale are in the wrong order"
        names = [
            f"category {labels[0][row[1]]} (by {row[2]:.2f} logits)" for row in wrong if not row[0]
        ]
        beyond = ""
    about = {"what": title, "names": name_some(names, limits.NAMED), "beyond": beyond}
    yield make_finding("threshold-order", about)


#: Item, category between the two thresholds, how far they are apart, whether beyond chance.
Disordered = tuple[int, int, float, bool]


def list_disordered(estimate: Estimate) -> list[Disordered]:
    """Return every pair of neighbouring thresholds in the wrong order, item after item."""
    with np.errstate(invalid="ignore", divide="ignore"):
        falls = np.diff(estimate.ladder.shown, axis=1)
        item, step = np.nonzero(falls < 0)
        sure = falls / _difference_errors(estimate) < -limits.SURE_T
    return [
        (i, k + 1, float(-falls[i, k]), bool(sure[i, k]))
        for i, k in zip(item.tolist(), step.tolist(), strict=True)
    ]


def _difference_errors(estimate: Estimate) -> FloatArray:
    """Return standard errors of differences of neighbouring thresholds, ``[item, step - 1]``."""
    covariance, se = estimate.threshold_covariance, estimate.threshold_se
    if covariance is None:  # as if they were independent
        return np.asarray(np.sqrt(se[:, 1:] ** 2 + se[:, :-1] ** 2))
    has_value = ~np.isnan(estimate.thresholds)
    index = np.full(has_value.shape, -1)
    index[has_value] = np.arange(has_value.sum())
    first, second = index[:, :-1], index[:, 1:]
    spread = covariance.diagonal()
    square = spread[first] + spread[second] - 2 * covariance[first, second]
    has_both: BoolArray = has_value[:, 1:] & has_value[:, :-1]
    return np.where(has_both, np.sqrt(np.maximum(square, 0)), np.nan)


def _many(count: int, total: int) -> str:
    if total == 1:
        return "That is" if count else "That is not"
    return {0: "None is", total: "All are"}.get(count, f"{count} of {total} are")


def check_rare(estimate: Estimate) -> Iterator[Finding]:
    """Say which categories too few persons are in."""
    rows = sorted(list_rare(estimate))
    if not rows:
        return
    rare = [
        f"category {label} of {estimate.items[item]} ({count_of(count, 'answer')})"
        for count, item, label in rows
    ]
    about = {"names": name_some(rare, limits.NAMED), "categories": _count(len(rare))}
    yield make_finding("rare-categories", {**about, "few": limits.FEW_IN_CATEGORY})


def list_rare(estimate: Estimate) -> list[tuple[int, int, int]]:
    """Return categories with few answers: how many, which item, what the category is called."""
    ladder = estimate.ladder
    if not estimate.has_steps or ladder.categories is None:
        return []
    return [
        (int(ladder.categories[item, category]), item, label)
        for item, labels in enumerate(ladder.labels)
        for category, label in enumerate(labels)
        if estimate.estimated[item] and ladder.categories[item, category] < limits.FEW_IN_CATEGORY
    ]


def check_averages(_: Estimate, study: Study) -> Iterator[Finding]:
    """Say which categories have persons who are no abler than those in the category below."""
    falls = list_falls(study)
    if not falls:
        return
    names = [
        f"category {above} of {item} ({minus(f'{high:.2f}')}; category {below} has "
        f"{minus(f'{low:.2f}')})"
        for item, below, above, low, high, _ in falls
    ]
    severity = Severity.SERIOUS if any(fall[-1] for fall in falls) else Severity.LOOK
    about = {"names": name_some(names, limits.NAMED), "categories": _count(len(falls))}
    yield make_finding("category-averages", about, severity)


#: Item, the lower category, the upper one, the mean abilities of those in them, and whether enough
#: persons are in both.
Fall = tuple[str, Any, Any, float, float, bool]


def list_falls(study: Study) -> list[Fall]:
    """Return categories whose mean ability is not above that of the next lower one with answers."""
    if study.categories is None:
        return []
    columns = study.categories.to_dict()
    names = ("item", "category", "mean_ability", "answers_without_extremes")
    cells = zip(*(columns[name] for name in names), strict=True)
    rows = [row for row in cells if np.isfinite(row[2])]
    return [
        (low[0], low[1], high[1], low[2], high[2], min(low[3], high[3]) >= limits.FEW_IN_CATEGORY)
        for low, high in pairwise(rows)
        if low[0] == high[0] and high[2] <= low[2]
    ]


def _count(categories: int) -> str:
    return f"{categories:,} categor{'y' if categories == 1 else 'ies'}"
