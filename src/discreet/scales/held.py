"""Conditional likelihood with some difficulties held, and what any method finds with anchors.

In: patterns of answers, which items are held, and difficulties to start from. Out: the maximum over
the others, and how far each held item would move if it alone were free. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.conditional.maximise import Structure, Surface
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.marginal import (
    SMALL_SD,
    begin_normal,
    check_patterns,
    climb_normal,
    normal_information,
    warn_flat,
)
from discreet.models.mixture import Mixture, Sums
from discreet.results.estimate import FitWarning, Solution, WarningKind
from discreet.scales.grounded import GroundedFit
from discreet.text import name_some
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
        shift = float((moved.difficulty - self.difficulty)[places].mean())
        return shift, float(np.sqrt(mean @ inverse @ mean))


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


def hold_marginal(responses: Answers, counts: PairCounts, start: GroundedFit) -> AnchoredSolution:
    """Maximise the marginal likelihood over the items that are not anchored.

    Parameters
    ----------
    responses, counts
        The answers and their counts.
    start
        The solution by pairs: the anchors, and where the items that are linked to them begin.

    Raises
    ------
    DisconnectedItems
        If the anchors were never right, or never wrong: then nothing says where the abilities are.
    """
    used = _choose(counts, start)
    anchored = np.isin(used, start.anchors)
    _check_anchors(counts, start.anchors)
    job = GroupPatterns(used)
    patterns = job.collect(responses.reduce(job))
    check_patterns(patterns, counts)
    begin = _begin(counts, used, start)
    centre = float(begin[anchored].mean())
    climbed = climb_normal(
        begin_normal(patterns, counts.right[used], begin - centre), _ways(anchored)
    )
    maximum = _Maximum(anchored, begin, *climbed)
    moved, moved_se = _release_all(maximum, counts, start.anchors, used)
    return AnchoredSolution(
        used,
        anchored,
        "marginal",
        maximum.difficulty,
        maximum.covariance,
        moved,
        moved_se,
        maximum.solution,
        warnings=(*_warn(counts, used, start), *warn_flat(maximum.mixture.sd)),
    )


@dataclass(frozen=True, eq=False)
class _Maximum:
    """The maximum with the held items where ``start`` has them."""

    held: BoolArray
    start: FloatArray
    mixture: Mixture
    sums: Sums
    steps: int

    @property
    def mean(self) -> float:
        """Of the abilities."""
        return float((self.start - self.mixture.difficulty)[self.held].mean())

    @property
    def difficulty(self) -> FloatArray:
        return np.where(self.held, self.start, self.mixture.difficulty + self.mean)

    @cached_property
    def information(self) -> FloatArray:
        return normal_information(self.mixture, self.sums, _ways(self.held))

    @property
    def covariance(self) -> FloatArray:
        """Of the free items; zero where an item is held."""
        free = np.flatnonzero(~self.held)
        out = np.zeros((len(self.held), len(self.held)))
        out[np.ix_(free, free)] = self._invert(self.held)[: len(free), : len(free)]
        return out

    @property
    def solution(self) -> Solution:
        residual = float(np.abs(self.sums.gradient[~self.held]).max(initial=0.0))
        note = f"abilities are normal with mean {self.mean:.4f} and SD {self.mixture.sd:.4f}"
        solver = "marginal likelihood, Newton steps, anchors held"
        return Solution(solver, self.steps, residual, (note,))

    def release(self, anchor: int) -> tuple[float, float]:
        """Free one held item beside those that are free: how far it moves, and its error."""
        held = self.held.copy()
        held[anchor] = False
        freed = _Maximum(
            held, self.start, *climb_normal(self.mixture, _ways(held), self.information)
        )
        index = int((~held[:anchor]).sum())
        variance = self._invert(held)[index, index]
        return float(freed.difficulty[anchor] - self.start[anchor]), float(np.sqrt(variance))

    def _invert(self, held: BoolArray) -> FloatArray:
        """Covariance of the free items, the mean and, unless it is near zero, the spread."""
        ways = _ways(held)
        # At the boundary, where persons do not differ, the spread does not vary.
        ways = ways[:, :-1] if self.mixture.sd < SMALL_SD else ways
        return np.asarray(np.linalg.inv(ways.T @ self.information @ ways))


def _ways(held: BoolArray) -> FloatArray:
    """How difficulties less the mean ability, and the spread (last), move with what is free.

    One column for every free item, one for the mean, which lowers all of them, one for the spread.
    """
    m = len(held)
    free = np.eye(m + 1)[:, :m][:, ~held]
    mean = -np.ones((m + 1, 1))
    mean[m] = 0.0
    return np.hstack([free, mean, np.eye(m + 1)[:, m:]])


def _is_mixed(counts: PairCounts) -> BoolArray:
    return np.asarray((counts.right > 0) & (counts.right < counts.answers))


def _choose(counts: PairCounts, start: GroundedFit) -> IndexArray:
    """Positions of the anchors and of all items with right and wrong answers."""
    return np.union1d(start.anchors, np.flatnonzero(_is_mixed(counts))).astype(np.intp)


def _begin(counts: PairCounts, used: IndexArray, start: GroundedFit) -> FloatArray:
    """Where pairs have the linked items; the others at the logit of wrong answers beside them."""
    answers, right = counts.answers[used], counts.right[used]
    rough = np.log((answers - right + 0.5) / (right + 0.5))
    positions = np.searchsorted(used, start.used)
    begin = rough + (start.difficulty - rough[positions]).mean()
    begin[positions] = start.difficulty
    return np.asarray(begin)


def _says_level(counts: PairCounts, anchors: IndexArray) -> bool:
    """Whether some answers to these anchors are right and some wrong."""
    right = int(counts.right[anchors].sum())
    return 0 < right < int(counts.answers[anchors].sum())


def _check_anchors(counts: PairCounts, anchors: IndexArray) -> None:
    if _says_level(counts, anchors):
        return
    names = [counts.items[i] for i in anchors]
    answers = int(counts.answers[anchors].sum())
    raise DisconnectedItems(
        f"the anchors ({name_some(names)}) have {int(counts.right[anchors].sum())} right among "
        f"{answers} answers, so nothing says where the abilities are on their scale; anchor "
        "items that some persons had right and some wrong"
    )


def _release_all(
    maximum: _Maximum, counts: PairCounts, anchors: IndexArray, used: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Free each anchor in turn, where its own answers and the other anchors determine it."""
    moved, se = (np.full(len(anchors), np.nan) for _ in range(2))
    mixed = _is_mixed(counts)
    for number, anchor in enumerate(anchors):
        if mixed[anchor] and _says_level(counts, anchors[anchors != anchor]):
            index = int(np.searchsorted(used, anchor))
            moved[number], se[number] = maximum.release(index)
    return moved, se


def _warn(counts: PairCounts, used: IndexArray, start: GroundedFit) -> tuple[FitWarning, ...]:
    apart = [counts.items[i] for i in np.setdiff1d(used, start.used)]
    if not apart:
        return ()
    sentence = (
        f"the answers themselves do not link {len(apart)} of {len(used)} items to the anchors: "
        f"{name_some(apart)}; marginal likelihood compares them only by assuming that all persons "
        "come from one ability distribution"
    )
    return (FitWarning(WarningKind.LINKED_BY_ASSUMPTION, sentence, apart),)
