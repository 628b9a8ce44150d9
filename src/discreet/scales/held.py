"""Conditional likelihood with some difficulties held, and what any method finds with anchors.

In: patterns of answers, which items are held, and difficulties to start from. Out: the maximum over
the others, and how far each held item would move if it alone were free. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import NotConverged
from discreet.models.conditional.maximise import Structure, Surface
from discreet.models.conditional.patterns import Patterns
from discreet.results.estimate import FitWarning, Solution
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

STEP_TOL = 1e-9
"""Logits; Newton squares what is left."""
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class AnchoredSolution:
    """What one method found beside the anchors.

    Attributes
    ----------
    used, anchored
        Positions of the items with a difficulty among all items, and which of them are anchors.
    difficulty, covariance
        Of the used items.
    moved, moved_se
        Per anchor, how far it would move if it alone were free; NaN where nothing says.
    """

    used: IndexArray
    anchored: BoolArray
    method: str
    difficulty: FloatArray
    covariance: FloatArray
    moved: FloatArray
    moved_se: FloatArray
    solution: Solution
    choice: str = ""
    warnings: tuple[FitWarning, ...] = ()

    @property
    def free(self) -> IndexArray:
        """Positions of the estimated items among all items."""
        return self.used[~self.anchored]


@dataclass(frozen=True, eq=False)
class HeldFit:
    """The maximum with the held items where they are.

    Attributes
    ----------
    difficulty, information
        Of all items that were looked at; the information is that of the maximum.
    steps, step
        Newton steps taken, and the size of the last.
    """

    surface: Surface
    held: BoolArray
    difficulty: FloatArray
    information: FloatArray
    steps: int
    step: float

    @property
    def covariance(self) -> FloatArray:
        """Of the free items; zero where an item is held."""
        free = np.flatnonzero(~self.held)
        out = np.zeros_like(self.information)
        out[np.ix_(free, free)] = np.linalg.inv(self.information[np.ix_(free, free)])
        return out

    def release(self, places: Sequence[int]) -> tuple[float, float]:
        """Free one held item, or all of its steps: how far it moves on average, and its error."""
        held = self.held.copy()
        held[places] = False
        moved = climb_held(self.surface, held, self.difficulty)
        free = np.flatnonzero(~held)
        inverse = np.linalg.inv(self.information[np.ix_(free, free)])
        mean = np.isin(free, places) / len(places)
        away = float((moved.difficulty - self.difficulty)[places].mean())
        return away, float(np.sqrt(mean @ inverse @ mean))


def maximise_held(
    patterns: Patterns, right: Int64Array, held: BoolArray, start: FloatArray
) -> HeldFit:
    """Climb to the maximum over the items that are not held.

    Parameters
    ----------
    patterns
        The persons' answered items and scores.
    right
        Right answers per item, all persons.
    held, start
        Which items stay where ``start`` has them, and where the others begin.
    """
    observed = right - patterns.item_sums(patterns.perfect)
    structure = Structure(np.ones((patterns.n_items, 1), dtype=bool))
    return climb_held(Surface(patterns, observed[:, None], structure), held, start)


def climb_held(surface: Surface, held: BoolArray, start: FloatArray) -> HeldFit:
    """Climb by Newton steps in the parameters that are not held."""
    free = np.flatnonzero(~held)
    point = surface.look(start, information=True)
    for done in range(1, ROUNDS + 1):
        matrix = surface.information(point)
        step = np.zeros(len(held))
        step[free] = np.linalg.solve(matrix[np.ix_(free, free)], surface.gradient(point)[free])
        size = float(np.abs(step).max(initial=0.0))
        if size <= STEP_TOL:
            return HeldFit(surface, held, point.parameter, matrix, done, size)
        slack = 1e-12 * abs(point.value)
        while (new := surface.look(point.parameter + step, point.plan)).value < point.value - slack:
            step = step / 2
            if not np.abs(step).max() > STEP_TOL:
                break
        point = surface.look(new.parameter, new.plan, information=True)
    raise NotConverged(
        f"conditional likelihood with anchors: the last of {ROUNDS} steps still moved an item by "
        f"{size:.1e} logits; remove items that very few answers link to the anchors, or use the "
        "method 'refined'"
    )
