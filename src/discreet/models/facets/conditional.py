"""Exact conditional likelihood of ratings given each person's total, for small data.

In: ratings and a linear structure. Out: its maximum and information. The law of a person's ratings
given their sum has no ability in it; its moments come from a convolution over the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as linalg

from discreet.answers.ratings import Ratings
from discreet.errors import BadUsage, NotConverged
from discreet.models.facets import kernels
from discreet.models.facets.structure import FacetDesign
from discreet.types import FloatArray

MOST_WORK = 2e11
"""Additions per step: about five minutes."""
STEPS = 100
LONGEST_STEP = 2.0


@dataclass(frozen=True, eq=False)
class ConditionalSolution:
    """The maximum of the conditional likelihood."""

    thresholds: FloatArray
    covariance: FloatArray
    likelihood: float
    gradient: float
    steps: int


def maximise_given_totals(design: FacetDesign, ratings: Ratings) -> ConditionalSolution:
    """Find the maximum of the conditional likelihood."""
    structure = design.whole_structure()
    chosen = _keep_ratings(design, ratings)
    _check_work(chosen, design, structure.basis.shape[1])
    data = _Persons(design, chosen)
    basis = np.ascontiguousarray(structure.basis.toarray())
    gauges = structure.gauges.toarray()
    parameters = np.zeros(basis.shape[1])
    likelihood, gradient, information = data.derive(basis, basis @ parameters)
    for number in range(STEPS):
        full = information + gauges.T @ gauges * max(information.diagonal().mean(), 1e-9)
        step = linalg.solve(full, gradient, assume_a="pos")
        length = float(np.abs(step).max(initial=0.0))
        if length < 1e-10:
            covariance = basis @ _invert(full, gauges) @ basis.T
            size = float(np.abs(gradient).max(initial=0.0))
            thresholds = basis @ parameters
            return ConditionalSolution(thresholds, covariance, likelihood, size, number)
        step *= min(1.0, LONGEST_STEP / length)
        value, slope, curve = data.derive(basis, basis @ (parameters + step))
        while value < likelihood - 1e-9 * abs(likelihood) and np.abs(step).max() > 1e-12:
            step = step / 2
            value, slope, curve = data.derive(basis, basis @ (parameters + step))
        parameters = parameters + step
        likelihood, gradient, information = value, slope, curve
    raise NotConverged(
        f"the conditional likelihood still rose after {STEPS} steps: the ratings do not determine "
        "a finite value of some parameter. Leave out raters or steps with very few ratings."
    )


def _invert(full: FloatArray, gauges: FloatArray) -> FloatArray:
    """Return the inverse without its part along what the constraints hold at zero."""
    inverse = linalg.inv(full)
    null = inverse @ gauges.T
    return np.asarray(inverse - null @ linalg.pinv(gauges @ null) @ null.T)


class _Persons:
    """Ratings in the form that the compiled loops want."""

    def __init__(self, design: FacetDesign, ratings: Ratings) -> None:
        first = design.first_node[ratings.item].astype(np.int32)
        most = np.asarray(design.steps, np.int32)[ratings.item]
        self._columns = first, design.find_levels(ratings), most, design.recode(ratings)
        self._start = np.append(np.flatnonzero(np.diff(ratings.person, prepend=-1)), len(first))

    def derive(
        self, basis: FloatArray, thresholds: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return log-likelihood, gradient and information."""
        size = basis.shape[1]
        derivatives = np.zeros(size), np.zeros((size, size))
        likelihood = kernels.condition_persons(
            self._start, self._columns, basis, thresholds, derivatives
        )
        return float(likelihood), *derivatives


def _keep_ratings(design: FacetDesign, ratings: Ratings) -> Ratings:
    """Leave out ratings of levels and items without a number."""
    keeps = np.concatenate([design.keeps_node, *(term.keeps for term in design.terms)])
    whole = np.logical_and.reduceat(design.keeps_node, design.first_node[:-1])
    chosen = whole[ratings.item] & keeps[design.find_levels(ratings)].all(axis=1)
    return ratings.select(np.flatnonzero(chosen))


def _check_work(ratings: Ratings, design: FacetDesign, size: int) -> None:
    per_person = np.bincount(ratings.person)
    widest = max(design.steps)
    work = float((per_person**2.0).sum()) * widest**2 * size**2
    if work > MOST_WORK:
        raise BadUsage(
            f"method='conditional' would need {work:.1g} additions per step for "
            f"{len(per_person):,} persons and {size:,} parameters (the limit is {MOST_WORK:.0e}). "
            "Leave out method=: pairwise estimation takes any size, at 10 to 15% more variance."
        )
