"""Findings about items with steps: thresholds, rare categories, averages; and their words.

In: an estimate with thresholds and, for averages, the table of categories. Out: findings, for
``findings.py`` to gather.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.results.estimate import Estimate
from discreet.results.limits import FEW_IN_CATEGORY, NAMED, SURE_T, Finding, Severity
from discreet.text import count_of, minus, name_some
from discreet.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from discreet.report.summary import Diagnostics


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
    items, misfits
        What the tables of items and of persons with unexpected answers are about.
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
    items: str
    misfits: str
    model: str
    alpha: str


RIGHT_WRONG = AnswerWords(
    number="difficulty",
    numbers="difficulties",
    extremes="everything right or everything wrong",
    measured="persons with right and wrong answers",
    noise="Look for guessing, unclear wording, a wrong key or a second skill.",
    direction="Check the answer key first: a wrong key makes it negative.",
    items="Difficulties in logits, harder is larger; infit and outfit are 1 and the discrimination "
    "is 1 where the model holds.",
    misfits="Wrong where they should be right, or right where they should be wrong: look for "
    "guessing, carelessness, copied or lost answers.",
    model="Item difficulties of the Rasch model (Rasch, 1960)",
    alpha="KR-20 (alpha)",
)
PARTIAL_CREDIT = AnswerWords(
    number="location",
    numbers="locations",
    extremes="the lowest or the highest score",
    measured="persons with neither the lowest nor the highest score",
    noise="Look for unclear wording, categories that are understood differently, wrong coding or a "
    "second skill.",
    direction="Check the coding first: an item that is worded the other way round makes it "
    "negative (--reverse).",
    items="The difficulty is the item's location in logits, the mean of its thresholds, harder is "
    "larger; the score is the sum of the answers; infit and outfit are 1 and the discrimination is "
    "1 where the model holds.",
    misfits="Low where they should be high, or high where they should be low: look for "
    "carelessness, answers all in one column, copied or lost answers.",
    model="Thresholds of the partial credit model (Masters, 1982)",
    alpha="Cronbach's alpha",
)
MODEL_WORDS = {
    "rasch": RIGHT_WRONG,
    "partial-credit": PARTIAL_CREDIT,
    "rating-scale": AnswerWords(
        **vars(PARTIAL_CREDIT) | {"model": "Thresholds of the rating scale model (Andrich, 1978)"}
    ),
}


def words_for(estimate: Estimate) -> AnswerWords:
    """Return the words for an estimate."""
    return MODEL_WORDS[estimate.model] if estimate.has_steps else RIGHT_WRONG


def check_threshold_order(estimate: Estimate) -> Iterator[Finding]:
    """Say which thresholds are in the wrong order, and what that means."""
    wrong = list_disordered(estimate)
    if not wrong:
        return
    sure = sum(row[3] for row in wrong)
    beyond = f" {_many(sure, len(wrong))} beyond chance." if np.isfinite(estimate.se).any() else ""
    items = len({row[0] for row in wrong})
    title, names = f"{count_of(items)} with thresholds in the wrong order", _name(wrong, estimate)
    if estimate.model == "rating-scale":  # they are at the same distances in every item
        title = "The thresholds of the rating scale are in the wrong order"
        called = estimate.ladder.labels[0]
        names = [
            f"category {called[row[1]]} (by {row[2]:.2f} logits)" for row in wrong if not row[0]
        ]
        beyond = ""
    yield Finding(
        Severity.LOOK,
        title,
        f"Around {name_some(names, NAMED)}.{beyond} The category between two such thresholds is "
        "nowhere the most likely one: wherever it is likely, a neighbour is likelier.",
        "That alone is no fault: it says that few persons are in the category, not that the "
        "categories are in the wrong order or that the item does not fit. Look whether the mean "
        "ability rises from category to category and whether the curves fit. If they do, leave it; "
        "if not, ask whether persons can tell the category from its neighbours, and compare the "
        "fit with the two merged (--merge ITEM:A+B).",
    )


Disordered = tuple[int, int, float, bool]
"""Item, category between the two thresholds, how far they are apart, whether beyond chance."""


def list_disordered(estimate: Estimate) -> list[Disordered]:
    """Return every pair of neighbouring thresholds in the wrong order, item after item."""
    value = estimate.thresholds
    with np.errstate(invalid="ignore"):
        falls = np.diff(value, axis=1)
        item, step = np.nonzero(falls < 0)
        sure = falls / _difference_errors(estimate) < -SURE_T
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


def _name(wrong: list[Disordered], estimate: Estimate) -> list[str]:
    labels = estimate.ladder.labels
    return [
        f"category {labels[item][category]} of {estimate.items[item]} (by {apart:.2f} logits)"
        for item, category, apart, _ in wrong
    ]


def check_rare(estimate: Estimate) -> Iterator[Finding]:
    """Say which categories too few persons are in."""
    rows = sorted(list_rare(estimate))
    if not rows:
        return
    rare = [
        f"category {label} of {estimate.items[item]} ({count_of(count, 'answer')})"
        for count, item, label in rows
    ]
    yield Finding(
        Severity.LOOK,
        f"{_count(len(rare))} with fewer than {FEW_IN_CATEGORY} answers",
        f"Few are in {name_some(rare, NAMED)}. The thresholds beside a category rest on the "
        "persons in it, and are known only roughly.",
        "Collect answers of persons who would choose it, or merge it with a neighbour of similar "
        "meaning (--merge ITEM:A+B) and compare the fit.",
    )


def list_rare(estimate: Estimate) -> list[tuple[int, int, int]]:
    """Return categories with few answers: how many, which item, what the category is called."""
    ladder = estimate.ladder
    if not estimate.has_steps or ladder.categories is None:
        return []
    return [
        (int(ladder.categories[item, category]), item, label)
        for item, labels in enumerate(ladder.labels)
        for category, label in enumerate(labels)
        if estimate.estimated[item] and ladder.categories[item, category] < FEW_IN_CATEGORY
    ]


def check_averages(diagnostics: Diagnostics) -> Iterator[Finding]:
    """Say which categories have persons who are no abler than those in the category below."""
    table = diagnostics.find_table("categories")
    falls = [] if table is None else list_falls(table.columns)
    if not falls:
        return
    names = [
        f"category {above} of {item} ({minus(f'{high:.2f}')}; category {below} has "
        f"{minus(f'{low:.2f}')})"
        for item, below, above, low, high, _ in falls
    ]
    yield Finding(
        Severity.SERIOUS if any(fall[-1] for fall in falls) else Severity.LOOK,
        f"{_count(len(falls))} with persons no abler than those one category lower",
        f"Mean ability in logits: {name_some(names, NAMED)}.",
        "A higher category should stand for more of what is measured. Check the coding first (an "
        "item that is worded the other way round needs --reverse), then whether persons understand "
        "the categories as meant. Where few are in a category it may be chance; otherwise merge "
        "the two (--merge ITEM:A+B) and compare the fit.",
    )


Fall = tuple[str, Any, Any, float, float, bool]
"""Item, the lower category, the upper one, the mean abilities of those in them, and whether enough
persons are in both."""


def list_falls(columns: Mapping[str, list[Any]]) -> list[Fall]:
    """Return categories whose mean ability is not above that of the next lower one with answers."""
    behind = columns.get("answers_without_extremes", columns["answers"])  # absent in older files
    rows = [
        row
        for row in zip(
            *(columns[name] for name in ("item", "category", "mean_ability")), behind, strict=True
        )
        if row[2] is not None and np.isfinite(row[2])
    ]
    return [
        (low[0], low[1], high[1], low[2], high[2], min(low[3], high[3]) >= FEW_IN_CATEGORY)
        for low, high in pairwise(rows)
        if low[0] == high[0] and high[2] <= low[2]
    ]


def _count(categories: int) -> str:
    return f"{categories:,} categor{'y' if categories == 1 else 'ies'}"
