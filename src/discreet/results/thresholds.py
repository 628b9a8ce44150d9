"""Thresholds of items with steps: where each step is as likely to be taken as not.

In: numbers of an estimator, node by node (an item's step is a node). Out: a frozen value, which an
:class:`~discreet.Estimate` carries. Right and wrong answers are one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.schema import Count
from discreet.tabular import Columns
from discreet.types import BoolArray, FloatArray, Int64Array

#: The column of the categories that an item's steps lie between, as in "0 1 2".
CATEGORIES = "categories"


#: Of a table of thresholds.
THRESHOLD_COLUMNS = ("item", "step", "threshold", "se", "lower", "upper", "status")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Thresholds in logits.

    Attributes
    ----------
    value, se
        ``[item, step]``; NaN beyond an item's steps and where a step has no number.
    status
        Why each step has a number or none, ``[item][step]``.
    covariance
        Of the steps that have a number, item after item; None where it was not computed.
    categories
        ``[item, category]``: persons in each category, from 0; None in a release.
    kept
        Per item, the categories of the answers that the model has: all, or those that somebody
        used. Category c of the model is ``kept[item][c]`` of the answers.
    lowest
        What the data call the lowest category, where that is not 0: it was taken off every answer.
    labels
        Per item, what the data call the categories of the model.
    """

    value: FloatArray
    se: FloatArray
    status: tuple[tuple[str, ...], ...]
    covariance: FloatArray | None = None
    categories: Int64Array | None = None
    kept: tuple[tuple[Count, ...], ...] = ()
    lowest: int = 0
    labels: tuple[tuple[int, ...], ...] = field(init=False)

    @property
    def shown(self) -> FloatArray:
        """The values, NaN for steps beside a category that nobody is in: they have no place."""
        value = self.value.copy()
        for row, statuses in zip(value, self.status, strict=True):
            row[: len(statuses)][[one == "unused_category" for one in statuses]] = np.nan
        return value

    def find_contradiction(self) -> str:
        """Return what does not belong together; empty if everything does."""
        widest = max(self.steps, default=0)
        shape = (len(self.status), widest)
        if self.value.shape != shape or self.se.shape != shape or 0 in self.steps:
            return "the thresholds do not have one number for each step"
        if tuple(map(len, self.kept)) != tuple(step + 1 for step in self.steps):
            return "the categories do not fit the steps"
        if any(sorted(set(own)) != list(own) for own in self.kept):
            return "the categories of an item do not rise"
        if self.categories is not None and self.categories.shape != (shape[0], widest + 1):
            return "the answers in the categories do not fit the steps"
        n_known = int(self.known.sum())
        if self.covariance is not None and self.covariance.shape != (n_known, n_known):
            return "the covariance is not one of the thresholds that have a number"
        return ""

    def __post_init__(self) -> None:
        if not self.kept:
            every = tuple(tuple(range(step + 1)) for step in self.steps)
            object.__setattr__(self, "kept", every)
        labels = self.kept
        if self.lowest:
            labels = tuple(tuple(category + self.lowest for category in own) for own in self.kept)
        object.__setattr__(self, "labels", labels)
        for array in (self.value, self.se, self.covariance, self.categories):
            if array is not None:
                array.setflags(write=False)

    @property
    def steps(self) -> tuple[int, ...]:
        """Per item, its highest category."""
        return tuple(len(own) for own in self.status)

    @property
    def known(self) -> BoolArray:
        """Which steps have a number, ``[item, step]``."""
        return ~np.isnan(self.value)

    def to_columns(self) -> Columns:
        """Return a row for every item: its categories, and every threshold with its error."""
        columns: Columns = {CATEGORIES: [" ".join(map(str, own)) for own in self.kept]}
        for step, (value, se) in enumerate(zip(self.value.T, self.se.T, strict=True), start=1):
            columns[f"threshold_{step}"] = value.tolist()
            columns[f"threshold_{step}_se"] = se.tolist()
        return columns

    def move(self, shift: float, error: float = 0.0) -> Thresholds:
        """Return the same thresholds with the origin of the scale elsewhere.

        ``error`` is the standard error of the shift, which all of them have in common.
        """
        spread = None if self.covariance is None else self.covariance + error**2
        se = np.sqrt(self.se**2 + error**2)
        return replace(self, value=self.value + shift, se=se, covariance=spread)

    def select(self, columns: npt.ArrayLike) -> Thresholds:
        """Return the thresholds of some items, without their covariance."""
        chosen = np.asarray(columns, dtype=np.intp)
        counts = None if self.categories is None else self.categories[chosen]
        status = tuple(self.status[column] for column in chosen.tolist())
        kept_categories = tuple(self.kept[column] for column in chosen.tolist())
        numbers = self.value[chosen], self.se[chosen]
        return Thresholds(*numbers, status, None, counts, kept_categories, self.lowest)


def make_one_step(source: Any) -> Thresholds:
    """Return the thresholds of a calibration of right and wrong answers: its difficulties.

    They share their memory, and the covariance, with the calibration.
    """
    step_status = {status: (str(status),) for status in set(source.status)}
    answers, right = (getattr(source, name, None) for name in ("answers", "right"))
    counts = None
    if answers is not None and right is not None:
        counts = np.column_stack([answers - right, right])
    return Thresholds(
        source.difficulty[:, None],
        source.se[:, None],
        tuple(step_status[status] for status in source.status),
        getattr(source, "covariance", None),
        counts,
        ((0, 1),) * len(source.status),
    )


def pad_steps(rows: Sequence[Sequence[float] | FloatArray]) -> FloatArray:
    """Return numbers of every item's steps as ``[item, step]``, NaN beyond them."""
    out = np.full((len(rows), max(map(len, rows), default=1)), np.nan)
    for row, values in zip(out, rows, strict=True):
        row[: len(values)] = values
    return out


def join_ladders(parts: Sequence[Thresholds]) -> Thresholds:
    """Return the thresholds of all items of the parts, without their covariance."""
    widest = max(part.value.shape[1] for part in parts)

    def widen(values: FloatArray) -> FloatArray:
        room = ((0, 0), (0, widest - values.shape[1]))
        return np.pad(values, room, constant_values=np.nan)

    return Thresholds(
        np.concatenate([widen(part.value) for part in parts]),
        np.concatenate([widen(part.se) for part in parts]),
        tuple(own for part in parts for own in part.status),
        kept=tuple(own for part in parts for own in part.kept),
        lowest=min(part.lowest for part in parts),
    )
