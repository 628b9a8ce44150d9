"""Categories of items with steps: who is in them, and whether that is as the model says.

In: residuals of answers, chunk by chunk. Out: one row per category. Confidential.

Of those in category k, ``y = k - E`` is the residual. Infit is the sum of ``y^2`` over them, over
what the model expects of it, ``sum P_k (k - E)^2`` over everybody; outfit is the same with ``y^2 /
w``. Both are 1 on average when the model holds, and an item's infit is the mean of its categories',
weighted by what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.item_parameters import category_totals
from discreet.results.thresholds import category_chances, count_item_steps
from discreet.tabular import Tabular, brief_repr, list_field_columns
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.items.residuals import Prepared, ResidualChunk


@dataclass(frozen=True, eq=False)
class CategoryFit(Tabular):
    """Every category of every item, the lowest first. Confidential.

    Attributes
    ----------
    item, category
        The category as the data call it.
    answers, share
        All answers in it, and their share of all answers to the item.
    answers_without_extremes
        Those of persons with neither the lowest nor the highest score. The columns that follow
        are about them.
    mean_ability, expected_ability
        Of these persons, and what it is when the model holds. It should rise from category to
        category.
    infit, outfit
        Mean squares; 1 is expected.
    threshold, se
        Of the step into the category; NaN for the lowest.
    """

    item: tuple[str, ...]
    category: Int64Array
    answers: Int64Array
    share: FloatArray
    mean_ability: FloatArray
    expected_ability: FloatArray
    infit: FloatArray
    outfit: FloatArray
    threshold: FloatArray
    se: FloatArray
    answers_without_extremes: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        if self.answers_without_extremes.size == 0:
            # A result saved by version 0.2.0 counts these alone.
            object.__setattr__(self, "answers_without_extremes", self.answers)

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        return {"item": list(self.item), **list_field_columns(self, *COLUMNS)}


COLUMNS = (
    *("category", "answers", "share", "answers_without_extremes", "mean_ability"),
    *("expected_ability", "infit", "outfit", "threshold", "se"),
)


@dataclass(eq=False)
class CategorySums:
    """Running sums over persons, ``[item, category]``: observed, and expected by the model."""

    answers: FloatArray
    ability: FloatArray
    squared: FloatArray
    standardised: FloatArray
    expected: FloatArray
    expected_ability: FloatArray
    expected_squared: FloatArray
    expected_standardised: FloatArray

    @classmethod
    def start(cls, thresholds: FloatArray) -> CategorySums | None:
        """Return empty sums; None where all answers are right or wrong."""
        items, steps = thresholds.shape
        return None if steps == 1 else cls(*np.zeros((8, items, steps + 1)))

    def add(self, chunk: ResidualChunk, ability: FloatArray, thresholds: FloatArray) -> None:
        """Add the persons of a chunk."""
        category = np.arange(self.answers.shape[1])
        answered = chunk.answered[..., None]
        share = np.where(answered, category_chances(ability, thresholds), 0.0)
        observed = (chunk.code[..., None] == category) & answered
        mean = share @ category.astype(np.float64)
        squared = (category - mean[..., None]) ** 2
        scale = np.where(chunk.answered, chunk.variance, 1.0)[..., None]
        theta = ability[:, None, None]
        for name, weight in (("", observed), ("expected_", share)):
            parts = (weight, weight * theta, weight * squared, weight * squared / scale)
            names = ("answers", "ability", "squared", "standardised")
            for sum_name, part in zip(names, parts, strict=True):
                key = "expected" if name and sum_name == "answers" else name + sum_name
                setattr(self, key, getattr(self, key) + part.sum(axis=0))


def describe_categories(
    prepared: Prepared, sums: CategorySums | None, calibration: Any
) -> CategoryFit | None:
    """Return the categories of all items that have numbers; None of right and wrong answers."""
    if sums is None:
        return None
    steps = count_item_steps(prepared.thresholds)
    item, category = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    cells: CategorySums = CategorySums(*(value[item, category] for value in vars(sums).values()))
    totals = category_totals(prepared.responses.store)
    codes, lowest = prepared.item_parameters.kept, prepared.item_parameters.lowest
    with np.errstate(invalid="ignore", divide="ignore"):
        return CategoryFit(
            item=tuple(prepared.item_parameters.items[i] for i in item),
            category=np.array([codes[i][k] for i, k in zip(item, category, strict=True)]) + lowest,
            answers=totals[item, category],
            share=totals[item, category] / totals.sum(axis=1)[item],
            answers_without_extremes=cells.answers.astype(np.int64),
            mean_ability=cells.ability / cells.answers,
            expected_ability=cells.expected_ability / cells.expected,
            infit=cells.squared / cells.expected_squared,
            outfit=cells.standardised / cells.expected_standardised,
            threshold=_into(prepared.thresholds)[item, category],
            se=_into(_errors(prepared, calibration))[item, category],
        )


def _into(step: FloatArray) -> FloatArray:
    """Return values of steps at the category that they lead to."""
    return np.column_stack([np.full(len(step), np.nan), step])


def _errors(prepared: Prepared, calibration: Any) -> FloatArray:
    """Return standard errors of the thresholds; NaN where the calibration has none."""
    source = getattr(calibration, "estimate", calibration)
    ladder = getattr(source, "ladder", None)
    if ladder is None:
        return np.full(prepared.thresholds.shape, np.nan)
    row_of = {name: row for row, name in enumerate(source.items)}
    return np.asarray(ladder.se[[row_of[name] for name in prepared.item_parameters.items]])
