"""Refits of a facets model to scores that are drawn again, by one Newton step from the estimate.

In: ratings and their estimate; then drawn scores. Out: thresholds of all columns for each drawing,
and standard errors of these from persons. All pairs of a person's ratings serve, whatever pairs the
estimate comes from: under the model these have nearly the same errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.ratings import Ratings
from discreet.models.facets.solve import LONGEST_STEP, NormalEquations, PairSolution
from discreet.models.facets.standard_errors import Centring, Stage, find_covariance
from discreet.models.facets.structure import FacetDesign, PairedBatches, recall_design
from discreet.results.estimate import Estimate
from discreet.types import FloatArray


@dataclass(frozen=True, eq=False)
class Refit:
    """Thresholds of some ratings, and the equations of the estimate they are near to."""

    design: FacetDesign
    ratings: Ratings
    stage: Stage

    @classmethod
    def of(cls, ratings: Ratings, estimate: Estimate) -> Refit:
        """Set the equations up at the estimate; steps and levels without a number have zero."""
        design, thresholds = recall_design(ratings, estimate)
        batches, structure = PairedBatches(design, (ratings,), None), design.whole_structure()
        equations = NormalEquations(batches, thresholds, structure)
        solution = PairSolution(thresholds, equations, np.nan, np.nan, 0)
        return cls(design, ratings, Stage(batches, structure, solution))

    @property
    def thresholds(self) -> FloatArray:
        """Of all columns."""
        return self.stage.solution.thresholds

    def draw(self, score: Any) -> Refit:
        """Return the refit to other scores."""
        drawn = replace(self.ratings, score=score)
        batches = PairedBatches(self.design, (drawn,), None)
        (pairs,) = batches
        basis, solution = self.stage.structure.basis, self.stage.solution
        gradient = basis.T @ pairs.score(solution.thresholds)[1]
        moves = basis @ solution.equations.solve(gradient[:, None])[:, 0]
        moves = Centring(self.design).columns(np.clip(moves, -LONGEST_STEP, LONGEST_STEP))
        solution = replace(solution, thresholds=solution.thresholds + moves)
        return replace(
            self, ratings=drawn, stage=replace(self.stage, batches=batches, solution=solution)
        )

    def find_errors(self) -> FloatArray | None:
        """Return the errors of all columns, then of items; None where there are too many."""
        covariance = find_covariance([self.stage], Centring(self.design), self.ratings.n_persons)
        return None if covariance is None else np.sqrt(covariance.diagonal())
