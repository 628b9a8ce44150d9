"""What is known of items: difficulties and thresholds of a calibration, a release or a bank.

In: anything that has items with numbers. Out: names, difficulties and thresholds of those items
that have some, checked to be in logits.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.answers.responses import Responses
from discreet.choices import PlainMapping
from discreet.errors import BadUsage
from discreet.models.categories import match_known
from discreet.results.calibrated import Calibration, find_source
from discreet.results.thresholds import pad_steps
from discreet.types import FloatArray, Int64Array

#: Logits beyond which no answer can ever be surprising in floating point, so that nothing can be
#: estimated against them: they are on another scale.
FAR = 50.0


def known_difficulties(calibration: Calibration) -> tuple[tuple[str, ...], FloatArray]:
    """Return the items that have a difficulty, and their difficulties.

    Parameters
    ----------
    calibration
        An :class:`~discreet.Estimate`, anything with ``items`` and ``difficulty``, a published
        release (its ``estimate`` is used), or a mapping from item to difficulty. The difficulty of
        an item with steps is its location, the mean of its thresholds.

    Raises
    ------
    BadUsage
        If it is none of these, or no item has a difficulty.
    """
    if isinstance(calibration, Mapping):
        names = tuple(map(str, calibration))
        values: Any = [_locate(item, value) for item, value in calibration.items()]
    else:
        source = find_source(calibration)
        if not (hasattr(source, "items") and hasattr(source, "difficulty")):
            raise BadUsage(
                f"a calibration has items and a difficulty for each, found "
                f"{type(calibration).__name__}; use the result of fit, a release, a "
                "dictionary from item to difficulty, or a data frame with these two columns"
            )
        names, values = tuple(source.items), source.difficulty
    difficulty = np.asarray(values, dtype=np.float64)
    if difficulty.shape != (len(names),):
        raise BadUsage(
            f"a calibration needs one difficulty for each of its {len(names)} items, found "
            f"shape {difficulty.shape}"
        )
    positions = np.flatnonzero(np.isfinite(difficulty))
    if not len(positions):
        raise BadUsage(f"none of the {len(names)} items of the calibration has a difficulty")
    largest = positions[np.argmax(np.abs(difficulty[positions]))]
    check_logits(names[largest], difficulty[largest])
    return tuple(names[i] for i in positions), difficulty[positions]


@dataclass(frozen=True, eq=False)
class KnownItems:
    """Items that have numbers: their thresholds, and which answers these are about.

    Attributes
    ----------
    items
        Names.
    thresholds
        ``[item, step]``, NaN beyond an item's steps; of right/wrong items the difficulty.
    kept
        Per item, the categories of the answers that the steps lie between.
    se
        Standard errors of the items' difficulties (locations); NaN where there are none.
    lowest
        What the data of the calibration call the lowest category.
    """

    items: tuple[str, ...]
    thresholds: FloatArray
    kept: tuple[tuple[int, ...], ...]
    se: FloatArray
    lowest: int = 0

    def __post_init__(self) -> None:
        for item, step in np.argwhere(np.abs(self.thresholds) > FAR)[:1]:
            check_logits(self.items[item], self.thresholds[item, step])

    @property
    def labels(self) -> Int64Array:
        """What the data call the categories, ``[item, category]``; zero beyond an item's own."""
        table = pad_steps(self.kept) + self.lowest
        return np.nan_to_num(table).astype(np.int64)

    @property
    def lowest_sum(self) -> int | None:
        """What the data add up to at a score of zero; None where the two do not go together."""
        if any(own[-1] - own[0] >= len(own) for own in self.kept):
            return None
        return int(self.labels[:, 0].sum())

    def select(self, selection: Container[str]) -> KnownItems:
        """Return those of the items that are wanted."""
        use = [i for i, name in enumerate(self.items) if name in selection]
        names, categories = tuple(self.items[i] for i in use), tuple(self.kept[i] for i in use)
        return KnownItems(names, self.thresholds[use], categories, self.se[use], self.lowest)

    def match(self, responses: Responses) -> Responses:
        """Return answers in the categories of the thresholds."""
        return match_known(responses, dict(zip(self.items, self.kept, strict=True)))


def known_thresholds(calibration: Calibration) -> KnownItems:
    """Return the items that have numbers, and their thresholds.

    Parameters
    ----------
    calibration
        As for :func:`known_difficulties`; a mapping may hold a list of thresholds for an item.
    """
    names, b = known_difficulties(calibration)
    source = find_source(calibration)
    ladder = None if isinstance(source, Mapping) else getattr(source, "ladder", None)
    if ladder is not None:
        row_of = {name: row for row, name in enumerate(source.items)}
        rows = [row_of[name] for name in names]
        categories, se = tuple(ladder.kept[row] for row in rows), _find_errors(source, names)
        return KnownItems(names, ladder.value[rows], categories, se, ladder.lowest)
    if isinstance(source, Mapping) and any(np.ndim(value) for value in source.values()):
        return _list_thresholds({str(name): value for name, value in source.items()}, names)
    return KnownItems(names, b[:, None], ((0, 1),) * len(names), _find_errors(source, names))


def _find_errors(source: Any, names: tuple[str, ...]) -> FloatArray:
    """Return the standard errors of items; NaN where a calibration has none."""
    se = None if isinstance(source, Mapping) else getattr(source, "se", None)
    if se is None:
        return np.full(len(names), np.nan)
    se_of = dict(zip(source.items, np.asarray(se, dtype=np.float64), strict=True))
    return np.array([se_of[name] for name in names])


def _locate(item: object, value: Any) -> Any:
    """Return a difficulty, or the mean of a list of thresholds."""
    if not np.ndim(value):
        return value
    if np.ndim(value) > 1 or not len(value) or not np.isfinite(value).all():
        raise BadUsage(
            f"item '{item}' has the thresholds {value}; an item with steps needs a list with a "
            "number for each step"
        )
    return np.mean(value)


def _list_thresholds(values: PlainMapping, names: tuple[str, ...]) -> KnownItems:
    """Put thresholds of a mapping side by side."""
    rows = [np.atleast_1d(np.asarray(values[name], dtype=np.float64)) for name in names]
    categories = tuple(tuple(range(len(value) + 1)) for value in rows)
    padded = pad_steps([row.tolist() for row in rows])
    return KnownItems(names, padded, categories, np.full(len(names), np.nan))


def check_logits(item: str, number: float) -> None:
    """Refuse a difficulty or a threshold that cannot be in logits."""
    if abs(number) > FAR:
        raise BadUsage(
            f"item '{item}' has the number {number:g}, but difficulties and thresholds are in "
            f"logits, from -{FAR:g} to {FAR:g}. Numbers on another scale (mean 500, for example) "
            "must be turned back into logits first"
        )
