"""What counts as a calibration: items with known difficulties.

In: an estimate, a release, a table. Out: item names and difficulties without gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from discreet.errors import BadUsage
from discreet.types import FloatArray

FAR = 50.0
"""Logits beyond which no answer can ever be surprising in floating point, so that nothing can be
estimated against them: they are on another scale."""


class Calibration(Protocol):
    """Anything with item names and a difficulty for each: an Estimate, an item bank."""

    @property
    def items(self) -> tuple[str, ...]: ...
    @property
    def difficulty(self) -> FloatArray: ...


def known_difficulties(calibration: Any) -> tuple[tuple[str, ...], FloatArray]:
    """Return the items that have a difficulty, and their difficulties.

    Parameters
    ----------
    calibration
        An :class:`~discreet.Estimate`, anything with ``items`` and ``difficulty``, a published
        release (its ``estimate`` is used), or a mapping from item to difficulty.

    Raises
    ------
    BadUsage
        If it is none of these, or no item has a difficulty.
    """
    if isinstance(calibration, Mapping):
        names, values = tuple(map(str, calibration)), list(calibration.values())
    else:
        source = getattr(calibration, "estimate", calibration)
        if not (hasattr(source, "items") and hasattr(source, "difficulty")):
            raise BadUsage(
                f"a calibration has items and a difficulty for each, found "
                f"{type(calibration).__name__}; use the result of fit, a release, or a "
                "dictionary from item to difficulty"
            )
        names, values = tuple(source.items), source.difficulty
    difficulty = np.asarray(values, dtype=np.float64)
    if difficulty.shape != (len(names),):
        raise BadUsage(
            f"a calibration needs one difficulty for each of its {len(names)} items, found "
            f"shape {difficulty.shape}"
        )
    known = np.flatnonzero(np.isfinite(difficulty))
    if not len(known):
        raise BadUsage(f"none of the {len(names)} items of the calibration has a difficulty")
    largest = known[np.argmax(np.abs(difficulty[known]))]
    check_logits(names[largest], difficulty[largest])
    return tuple(names[i] for i in known), difficulty[known]


def check_logits(item: str, difficulty: float) -> None:
    """Refuse a difficulty that cannot be in logits."""
    if abs(difficulty) > FAR:
        raise BadUsage(
            f"item '{item}' has the difficulty {difficulty:g}, but difficulties are in logits, "
            f"from -{FAR:g} to {FAR:g}. Numbers on another scale (mean 500, for example) must be "
            "turned back into logits first"
        )
