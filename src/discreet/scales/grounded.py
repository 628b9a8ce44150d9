"""The pairwise likelihood with some difficulties held: a Laplacian grounded at the anchors.

In: pair counts, which items are held and where. Out: the difficulties of the items that the
answers link to the anchors, and what persons' scores add up to. With steps, an item's step stands
where an item does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import Answers
from discreet.counts.folds import PersonWeight
from discreet.errors import NotConverged
from discreet.models.refined import EXP_RANGE, RefinedScoring, logistic
from discreet.models.standard_errors.person_scores import ScorePlan
from discreet.models.standard_errors.sandwich import SumProducts
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray, IndexArray

STEP_TOL = 1e-9
"""Logits; Newton squares what is left."""
ROUNDS = 200
CHORD_ROUNDS = 40
FULL_STEP = 1.0
"""Logits below which a step is taken in full; longer ones are damped as in the refined method."""


@dataclass(frozen=True, eq=False)
class GroundedFit:
    """The solution, on the linked items only.

    Attributes
    ----------
    used
        Positions, among all items, of the anchored items and the items linked to them.
    anchored
        Which of the used items are anchored.
    counts
        Pair counts among the used items.
    difficulty, residual
        Of the used items; the residual (observed minus expected number right) is zero where
        the item was free.
    curvature
        Minus the second derivative over all used items.
    iterations, step
        Newton steps taken and the size of the last.
    """

    used: IndexArray
    anchored: BoolArray
    counts: FloatArray
    difficulty: FloatArray
    residual: FloatArray
    curvature: FloatArray
    iterations: int
    step: float

    @property
    def free(self) -> IndexArray:
        """Positions of the estimated items among all items."""
        return self.used[~self.anchored]

    @property
    def anchors(self) -> IndexArray:
        """Positions of the anchored items among all items."""
        return self.used[self.anchored]

    @cached_property
    def _both(self) -> FloatArray:
        """Comparisons of two items, whichever was right."""
        return np.asarray(self.counts + self.counts.T)

    def spread_inverse(self) -> FloatArray:
        """Inverse of the curvature of the free items, with zeros at the anchors."""
        free = np.flatnonzero(~self.anchored)
        inverse = np.zeros_like(self.curvature)
        inverse[np.ix_(free, free)] = np.linalg.inv(self.curvature[np.ix_(free, free)])
        return inverse

    def release_anchors(self, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Free each anchor in turn, the others held: how far it moves, with standard errors.

        The variance is that of the sandwich formula with the scores at the anchored solution.
        """
        anchors = np.flatnonzero(self.anchored)
        moved, se = (np.full(len(anchors), np.nan) for _ in range(2))
        inverse = self.spread_inverse()
        for number, anchor in enumerate(anchors):
            others = self.anchored.copy()
            others[anchor] = False
            if not self._is_tied(anchor, others):
                continue
            border = -inverse @ self.curvature[:, anchor]
            border[anchor] = 1.0
            left = float(self.curvature[anchor] @ border)
            moved[number] = self._release(anchor, others, inverse, border, left)
            # The border over what is left is this anchor's row of the new inverse curvature.
            se[number] = np.sqrt(max(float(border @ products @ border), 0.0)) / left
        return moved, se

    def release_item(self, places: IndexArray, products: FloatArray) -> tuple[float, float]:
        """Free all steps of one anchor: how far its location moves, and its standard error.

        NaN where its steps are not linked to the other anchors.
        """
        others = self.anchored.copy()
        others[places] = False
        if not others.any() or not np.isin(places, _linked(self.counts, others)).all():
            return np.nan, np.nan
        solved = _maximise(self.counts, others, self.difficulty)[0]
        free = np.flatnonzero(~others)
        inverse = np.linalg.inv(self.curvature[np.ix_(free, free)])
        mean = np.isin(free, places) / len(places)
        along = inverse @ mean
        variance = float(along @ products[np.ix_(free, free)] @ along)
        moved = float((solved - self.difficulty)[places].mean())
        return moved, float(np.sqrt(max(variance, 0.0)))

    def _is_tied(self, anchor: np.intp, others: BoolArray) -> bool:
        """Whether an anchor is linked to the others when it is free; mostly directly."""
        if not others.any():
            return False
        if self.counts[anchor, others].any() and self.counts[others, anchor].any():
            return True
        return bool(anchor in _linked(self.counts, others))

    def _release(
        self,
        anchor: np.intp,
        others: BoolArray,
        inverse: FloatArray,
        border: FloatArray,
        left: float,
    ) -> float:
        """Solve with one anchor free, by steps with the curvature of the anchored solution.

        These cost a matrix product each. Where they do not shrink at once (an anchor that is
        far off), Newton's method does the work.
        """
        pair_totals, right = self._both, self.counts.sum(axis=1)
        difficulty, last = self.difficulty.copy(), np.inf
        for _ in range(CHORD_ROUNDS):
            residual = right - (pair_totals * _chances(difficulty)).sum(axis=1)
            step = inverse @ residual + border * (float(border @ residual) / left)
            size = float(np.abs(step).max())
            if not size < last / 2:
                break
            difficulty -= step
            last = size
            if size <= STEP_TOL:
                return float(difficulty[anchor] - self.difficulty[anchor])
        solved = _maximise(self.counts, others, self.difficulty)[0]
        return float(solved[anchor] - self.difficulty[anchor])


def solve_grounded(
    right_wrong: npt.NDArray[np.int64], held: BoolArray, value: FloatArray
) -> GroundedFit:
    """Maximise the pairwise conditional likelihood over the items that are not held.

    An item has a finite estimate when paths of "right where the other was wrong" lead from the
    anchors to it and back; all anchors count as one place, because they are tied to each other.
    """
    used = np.union1d(_linked(right_wrong, held), np.flatnonzero(held)).astype(np.intp)
    counts = right_wrong[np.ix_(used, used)].astype(np.float64)
    anchored = held[used]
    start = np.where(anchored, value[used], value[held].mean())
    return GroundedFit(used, anchored, counts, *_maximise(counts, anchored, start))


def _linked(right_wrong: npt.NDArray[Any], held: BoolArray) -> IndexArray:
    """Positions that are linked in both directions to the anchors taken as one place."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    m = len(held)
    links = np.zeros((m + 1, m + 1), dtype=np.int8)
    links[:m, :m] = right_wrong > 0
    # Place m stands for all anchors together: it leads to each of them and back.
    links[m, :m] = links[:m, m] = held
    reach = [
        breadth_first_order(csr_array(side), m, directed=True, return_predecessors=False)
        for side in (links, links.T)
    ]
    linked = np.intersect1d(*reach)
    return np.asarray(linked[linked < m], dtype=np.intp)


def _maximise(
    counts: FloatArray, held: BoolArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, int, float]:
    """Newton's method on the free items; returns difficulty, residual, curvature, rounds, step."""
    pair_totals, right = counts + counts.T, counts.sum(axis=1)
    free = np.flatnonzero(~held)
    difficulty, size = start.copy(), 0.0
    for done in range(1, ROUNDS + 1):
        residual, curvature = _evaluate(pair_totals, right, difficulty)
        if not len(free):
            return difficulty, residual, curvature, done, 0.0
        step = np.linalg.solve(curvature[np.ix_(free, free)], residual[free])
        size = float(np.abs(step).max())
        if size <= STEP_TOL:
            return difficulty, residual, curvature, done, size
        # Anchors do not move, so the range of the step includes zero.
        spread = max(float(step.max()), 0.0) - min(float(step.min()), 0.0)
        difficulty[free] -= step * (1.0 if spread <= FULL_STEP else np.log1p(spread) / spread)
        if not np.isfinite(size):
            break
    raise NotConverged(
        f"Newton's method with anchors stopped with steps of {size:.1e} logits; some of the "
        f"{len(free)} items are linked to the anchors by far too few answers: remove them"
    )


def _evaluate(
    pair_totals: FloatArray, right: FloatArray, difficulty: FloatArray
) -> tuple[FloatArray, FloatArray]:
    chance = _chances(difficulty)
    expected = pair_totals * chance
    weights = expected * chance.T
    np.fill_diagonal(weights, 0.0)
    return right - expected.sum(axis=1), np.diag(weights.sum(axis=1)) - weights


def _chances(difficulty: FloatArray) -> FloatArray:
    """Return ``chance[i, j]`` that item i is the one that is right, given that one is."""
    if np.ptp(difficulty) > EXP_RANGE:
        return logistic(difficulty[None, :] - difficulty[:, None])
    odds = np.exp(difficulty - difficulty.mean())
    return np.asarray(odds[None, :] / (odds[:, None] + odds[None, :]))


def sum_score_products(
    responses: Answers,
    fitted: GroundedFit,
    weighting: PersonWeight | None,
    item_of: IndexArray | None = None,
) -> FloatArray:
    """Sum of products of the persons' scores, over the linked and the anchored items.

    ``item_of`` are the items of used nodes, where items have steps.
    """
    inverse = fitted.spread_inverse()
    diagonal = inverse.diagonal()
    resistance = diagonal[:, None] + diagonal[None, :] - 2 * inverse
    scoring = RefinedScoring()
    plan = ScorePlan(
        fitted.difficulty, fitted.used, scoring, resistance, weighting, item_of=item_of
    )
    products = responses.reduce(SumProducts(plan))
    # At the solution the scores of free items add up to zero; those of anchors do not, and
    # their variance is about their mean.
    pull = fitted.residual / np.sqrt(max(responses.n_persons, 1))
    return np.asarray(products - np.outer(pull, pull))


def explain_unlinked(items: Sequence[str], held: BoolArray) -> str:
    """Say that nothing links the other items to the anchors, and what would."""
    names = [name for name, is_anchor in zip(items, held, strict=True) if is_anchor]
    return (
        f"the answers link none of the {int((~held).sum())} other items to the "
        f"{len(names)} anchors ({name_some(names)}), so their difficulties on the scale of the "
        "anchors are not determined. An item is linked when some persons have it right and an "
        "anchor wrong and others the reverse, directly or through further items; anchor items "
        "that the same persons answered"
    )
