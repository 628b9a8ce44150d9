"""Thresholds of items with steps: where each step is as likely to be taken as not.

In: numbers of an estimator, node by node (an item's step is a node). Out: a frozen value, which an
:class:`~discreet.Estimate` carries where some item has more than one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.types import BoolArray, FloatArray, Int64Array


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
    """

    value: FloatArray
    se: FloatArray
    status: tuple[tuple[str, ...], ...]
    covariance: FloatArray | None = None
    categories: Int64Array | None = None
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.kept:
            every = tuple(tuple(range(step + 1)) for step in self.steps)
            object.__setattr__(self, "kept", every)
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

    def move(self, shift: float) -> Thresholds:
        """Return the same thresholds with the origin of the scale elsewhere."""
        return replace(self, value=self.value + shift)

    def select(self, columns: npt.ArrayLike) -> Thresholds:
        """Return the thresholds of some items, without their covariance."""
        chosen = np.asarray(columns, dtype=np.intp)
        counts = None if self.categories is None else self.categories[chosen]
        status = tuple(self.status[column] for column in chosen.tolist())
        kept = tuple(self.kept[column] for column in chosen.tolist())
        return Thresholds(self.value[chosen], self.se[chosen], status, None, counts, kept)
