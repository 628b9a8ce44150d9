"""What the engine accepts as a calibration: an estimate, what holds one, a bank, a mapping.

In: whatever a caller has. Out: an :class:`~discreet.Estimate`, and what its
numbers are about, since persons and objects are ranked like items. Data frames are read by
:mod:`discreet.readers.calibrations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from discreet.choices import PlainMapping
from discreet.coding.ids import check_items
from discreet.errors import BadUsage
from discreet.results.estimate import Estimate, Solution, Status
from discreet.types import FloatArray, Texts


class Calibrated(Protocol):
    """Anything with items and a difficulty for each, a bank for example."""

    @property
    def items(self) -> tuple[str, ...]: ...

    @property
    def difficulty(self) -> FloatArray: ...


class HoldsEstimate(Protocol):
    """Anything with an estimate, a release for example."""

    @property
    def estimate(self) -> Estimate: ...


@runtime_checkable
class Scored(Protocol):
    """Anything with persons and an ability for each."""

    @property
    def persons(self) -> Texts: ...

    @property
    def ability(self) -> FloatArray: ...

    @property
    def se(self) -> FloatArray: ...


#: Where the difficulties of items come from; a mapping may hold a list of thresholds for an item.
Calibration: TypeAlias = Estimate | Calibrated | HoldsEstimate | PlainMapping

#: What has an order. Its ``noun`` says what it is about, of a calibration items.
CalibrationOrScores: TypeAlias = Calibration | Scored

#: The number of each kind, and what is said of the largest and the smallest.
RANK_WORDS = {
    "item": ("difficulty", "hardest", "easiest"),
    "person": ("ability", "ablest", "least able"),
    "object": ("strength", "strongest", "weakest"),
    "model": ("measure", "best", "worst"),
}


def find_source(calibration: Calibration) -> Any:
    """Return what holds the numbers: the estimate of a release, or the calibration itself."""
    noun = getattr(calibration, "noun", "item")
    if noun in ("object", "model"):
        raise BadUsage(
            f"found a {RANK_WORDS[noun][0]} of each {noun}, and here each item needs a difficulty. "
            f"Fit answers; or, if what is hard has a high {RANK_WORDS[noun][0]}, give numbers by "
            "name: {item: number}"
        )
    return getattr(calibration, "estimate", calibration)


def as_estimate(calibration: Calibration, purpose: str) -> Estimate:
    """Return a calibration as an estimate, or say what is needed for the purpose."""
    source = find_source(calibration)
    if isinstance(source, Estimate):
        return source
    if isinstance(source, Mapping) and source:
        return make_estimate(source.keys(), list(source.values()), [None] * len(source))
    if all(hasattr(source, name) for name in ("items", "difficulty", "se")):
        return make_estimate(source.items, source.difficulty, source.se)
    raise BadUsage(
        f"{purpose} needs a calibration: the result of fit, a release, a bank, or a data frame "
        f"with the columns item, difficulty and se; found {type(calibration).__name__}. Fit "
        "answers first, as in fit(answers)."
    )


def make_estimate(items: Any, difficulty: Any, se: Any) -> Estimate:
    """Return the estimate of difficulties that somebody gave; what is None has no number."""
    names = check_items(list(items), len(items))
    values = list_numbers(difficulty, "difficulty")
    return Estimate(
        items=names,
        difficulty=values,
        se=list_numbers(se, "se"),
        status=tuple(Status.NO_ANSWERS if np.isnan(one) else Status.ESTIMATED for one in values),
        method="given",
        solution=Solution(solver="given by the caller", iterations=0, residual=0.0),
    )


def list_numbers(cells: Any, column: str) -> FloatArray:
    """Return cells as numbers, NaN where one is blank."""
    blank = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in blank])
    except (TypeError, ValueError):
        raise BadUsage(
            f"the column '{column}' of a calibration holds something that is no number; leave "
            "cells blank where an item has none"
        ) from None
