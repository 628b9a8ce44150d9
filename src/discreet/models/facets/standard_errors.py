"""Standard errors of a facets model, from persons.

In: solved stages. Out: standard errors of all columns. Persons are independent, so the covariance
is the sum over persons of what each one moves the estimate, squared: exactly where there are few
parameters, by random signs where there are many (relative error 1/sqrt(2 draws), less with the
control below). A second stage that holds the first one's values passes their errors on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sparse

from discreet.models.facets.pairs import RatingPairs
from discreet.models.facets.solve import (
    DENSE_PARAMETERS,
    LinearStructure,
    PairSolution,
    SecondDerivatives,
)
from discreet.models.facets.structure import FacetDesign
from discreet.results.facets import ItemEffectTest
from discreet.types import FloatArray, IndexArray

#: Random signs per person.
DRAWS = 64
#: Persons x parameters^2 up to which the covariance is summed exactly.
EXACT_WORK = 1e11
PERSONS_AT_ONCE = 20_000
#: Relative accuracy of a solution for a draw, which is random anyway.
SOLVED = 1e-3


class Centring:
    """Takes the mean item location off all steps, and reads out the locations of items."""

    def __init__(self, design: FacetDesign) -> None:
        self._design = design
        left_out = np.bincount(design.node_item, ~design.keeps_node, len(design.items))
        self._is_whole = left_out == 0
        self._count = np.asarray(design.steps, float)

    def columns(self, moved: FloatArray) -> FloatArray:
        """Return moves of all columns, centred."""
        centred = moved.copy()
        if self._design.has_held_items or not self._is_whole.any():
            return centred
        centred[: self._design.n_nodes] -= self._locate(moved)[self._is_whole].mean(axis=0)
        return centred

    def __call__(self, moved: FloatArray) -> FloatArray:
        """Return moves of all columns, then of the item locations."""
        centred = self.columns(moved)
        return np.concatenate([centred, self._locate(centred)])

    def locations(self, weights: FloatArray) -> Any:
        """Return the locations as weighted sums of columns, ``[item, column]``."""
        design = self._design
        values = weights[: design.n_nodes] / self._count[design.node_item]
        cells = design.node_item, np.arange(design.n_nodes)
        return sparse.csr_array((values, cells), shape=(len(design.items), design.n_columns))

    def _locate(self, moved: FloatArray) -> FloatArray:
        nodes = moved[: self._design.n_nodes]
        sums = np.add.reduceat(nodes, self._design.first_node[:-1], axis=0)
        return np.asarray(sums / (self._count[:, None] if sums.ndim > 1 else self._count))


@dataclass(frozen=True, eq=False)
class Stage:
    """One solved set of equations."""

    batches: Iterable[RatingPairs]
    structure: LinearStructure
    solution: PairSolution


def find_covariance(stages: Sequence[Stage], read: Centring, n_persons: int) -> FloatArray | None:
    """Return the covariance of what is read out, or None where there are too many columns."""
    n_columns = len(stages[0].solution.thresholds)
    if n_columns > DENSE_PARAMETERS or n_persons * n_columns**2 > EXACT_WORK:
        return None
    total: Any = 0.0
    thresholds = stages[-1].solution.thresholds
    size = n_columns if len(stages) > 1 else 0
    coupling = SecondDerivatives(stages[-1].batches, thresholds, size)
    for parts in zip(*(stage.batches for stage in stages), strict=True):
        scores = [pairs.person_scores(pairs.score_ratings(thresholds)) for pairs in parts]
        for low in range(0, scores[0].shape[0], PERSONS_AT_ONCE):
            rows = slice(low, low + PERSONS_AT_ONCE)
            moved = _pass_on(stages, coupling, [score[rows].T.toarray() for score in scores])
            effect = read(moved)
            total += effect @ effect.T
    return np.asarray(total * (n_persons / max(n_persons - 1, 1)))


def compare_stages(
    inside: Stage, everything: Stage, columns: IndexArray, n_persons: int
) -> ItemEffectTest | None:
    """Test whether columns differ between two fits to the same persons (Hausman's test).

    The covariance of the differences is summed over what each person moves them.
    """
    stages = inside, everything
    covariance: Any = 0.0
    for parts in zip(inside.batches, everything.batches, strict=True):
        moves = []
        for stage, pairs in zip(stages, parts, strict=True):
            basis, solution = stage.structure.basis, stage.solution
            scores = pairs.person_scores(pairs.score_ratings(solution.thresholds))
            moves.append(basis @ solution.equations.solve((scores @ basis).T.toarray()))
        effect = (moves[0] - moves[1])[columns]
        covariance += effect @ effect.T
    first, second = (stage.solution.thresholds[columns] for stage in stages)
    covariance *= n_persons / max(n_persons - 1, 1)
    slope = float(first @ second / (first @ first))
    return ItemEffectTest.of(first - second, covariance, n_persons, slope=slope)


def draw_variances(stages: Sequence[Stage], read: Centring, rng: np.random.Generator) -> FloatArray:
    """Return the variances of what is read out, from random signs of persons."""
    thresholds = stages[-1].solution.thresholds
    coupling = SecondDerivatives(stages[-1].batches, thresholds, 0)
    # Scores of columns, then of item locations, as combinations of columns' scores.
    stage = stages[0]
    information = stage.structure.basis @ stage.solution.equations.information
    share = read.locations(1 / np.maximum(information, 1e-12))
    controls = sparse.vstack([sparse.eye_array(len(information)), share]).tocsr()
    sums = [np.zeros((len(thresholds), DRAWS)) for _ in stages]
    squares = np.zeros(controls.shape[0])
    for parts in zip(*(stage.batches for stage in stages), strict=True):
        signs = rng.integers(0, 2, (int(parts[0].person[-1]) + 1, DRAWS), dtype=np.int8)
        factors = np.asarray(2 * signs - 1, np.int8)
        for number, pairs in enumerate(parts):
            scores = pairs.score_ratings(thresholds)
            sums[number] += pairs.sum_persons(scores, factors)
            if number == 0:
                # The sum of the squared scores of persons, for each control.
                changes = np.flatnonzero(np.diff(pairs.person, prepend=-1))
                for low, high in pairwise(
                    [*changes[::PERSONS_AT_ONCE].tolist(), len(pairs.person)]
                ):
                    combined = pairs.person_scores(scores, slice(low, high)) @ controls.T
                    squares += np.asarray((combined**2).sum(axis=0)).ravel()
    moved = read(_pass_on(stages, coupling, sums, SOLVED))
    return _control(moved, controls @ sums[0], squares)


def _control(moved: FloatArray, scores: FloatArray, squares: FloatArray) -> FloatArray:
    """Return variances of draws, steadied by the scores, whose variances are known exactly.

    What a column moves is mostly its own score over its own information. Where the draws follow
    the scores that closely, the ratio of variances is far less random than the variance.
    """
    variance = (moved**2).mean(axis=1)
    spread = (scores**2).mean(axis=1)
    product = (moved * scores).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        close = product**2 > 0.5 * variance * spread
        steady = np.where(close & (spread > 0), variance * squares / spread, variance)
    return np.asarray(steady)


def _pass_on(
    stages: Sequence[Stage],
    coupling: SecondDerivatives,
    scores: Sequence[FloatArray],
    accuracy: float = 1e-8,
) -> FloatArray:
    """Return how far scores ``[column, draw]`` move the thresholds, stage after stage.

    ``coupling`` says how the gradient of the last stage moves with the thresholds of all columns.
    """
    moved = np.zeros_like(scores[0])
    for number, (stage, score) in enumerate(zip(stages, scores, strict=True)):
        basis = stage.structure.basis
        remaining = score if number == 0 else score - coupling.multiply(moved)
        step = stage.solution.equations.solve(np.asarray(basis.T @ remaining), accuracy)
        moved = moved + basis @ step
    return moved
