"""Exact conditional likelihood of ratings given each person's total, for small data.

In: ratings and a linear structure. Out: its maximum and information. The law of a person's
ratings given their sum has no ability in it; its moments come from a convolution over the
ratings.
"""

from __future__ import annotations

import numpy as np

from discreet.answers.ratings import Ratings
from discreet.errors import BadUsage
from discreet.models.facets import kernels
from discreet.models.facets.solve import DENSE_PARAMETERS, PairSolution, maximise_pairs
from discreet.models.facets.structure import FacetDesign
from discreet.types import FloatArray

#: Additions per step: about five minutes.
MOST_WORK = 2e11


def maximise_given_totals(design: FacetDesign, ratings: Ratings) -> PairSolution:
    """Find the maximum of the conditional likelihood."""
    structure = design.whole_structure()
    # Ratings of levels and items without a number do not count.
    is_whole = np.logical_and.reduceat(design.keeps_node, design.first_node[:-1])
    chosen = is_whole[ratings.item] & design.keeps[design.find_levels(ratings)].all(axis=1)
    data = TotalsGiven(design, ratings.select(np.flatnonzero(chosen)))
    if data.work > MOST_WORK or structure.basis.shape[1] > DENSE_PARAMETERS:
        raise BadUsage(
            f"method='conditional' would need {data.work:.1g} additions per step for "
            f"{ratings.n_persons:,} persons and {design.n_columns:,} steps and levels (the limit "
            f"is {MOST_WORK:.0e}). Leave out method=: pairwise estimation takes any size, at 10 to "
            "15% more variance."
        )
    return maximise_pairs([data], structure)


class TotalsGiven:
    """Ratings given each person's total, with the sums that :class:`RatingPairs` has of pairs."""

    def __init__(self, design: FacetDesign, ratings: Ratings) -> None:
        first = design.first_node[ratings.item].astype(np.int32)
        most = np.asarray(design.steps, np.int32)[ratings.item]
        self._columns = first, design.find_levels(ratings), most, design.recode(ratings)
        self._start = np.append(np.flatnonzero(np.diff(ratings.person, prepend=-1)), len(first))
        self._thresholds = np.zeros(0)
        per_person = float((np.diff(self._start) ** 2.0).sum())
        self.work = per_person * max(design.steps) ** 2 * design.n_columns**2

    def score(self, thresholds: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood and its gradient."""
        size = len(thresholds)
        self._thresholds, self._derivatives = thresholds, (np.zeros(size), np.zeros((size, size)))
        likelihood = kernels.condition_persons(
            self._start, self._columns, np.eye(size), thresholds, self._derivatives
        )
        return float(likelihood), self._derivatives[0]

    def second_derivatives(self, thresholds: FloatArray, size: int) -> FloatArray:
        """Return minus the second derivatives between the first ``size`` columns."""
        if self._thresholds is not thresholds:
            self.score(thresholds)
        return self._derivatives[1][:size, :size]
