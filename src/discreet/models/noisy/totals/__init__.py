"""Thresholds from noisy totals: how often each category was chosen, and how scores spread.

In: released values of one or more forms, with the covariance of their noise. Out: a
:class:`TotalsFit`, which holds nothing confidential as long as the fit was given released values
only. Here stand both values; the fit itself is in :mod:`discreet.models.noisy.totals.fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.results.thresholds import Thresholds
from discreet.types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class FormTotals:
    """Released values of one form, in units of one answer, and the covariance of their noise.

    Attributes
    ----------
    columns
        The items of the form, as places in the list of all items.
    category
        ``[own item, category]``: weighted number of answers; 0 beyond an item's steps. As many
        columns as the item with the most steps (of all forms) has categories.
    category_noise
        ``[own item, category, category]``: covariance of the noise; 0 beyond an item's steps.
    moment
        Sums over persons with enough answers of u times T2, T3, T4 of their scores, with the
        constants of these polynomials; one or two entries where tests are short, none where
        nobody can have two answers.
    moment_noise
        Variances.
    contributing, contributing_noise
        Sum of u over the same persons, and the variance of its noise; 0 where it is public.
    takers, takers_noise
        ``[own item]``: sum over takers of weight times (share of the best score - 1/2), without
        any factor; and the variance of the noise of one. None where it was not released.
    persons, persons_noise
        Number of persons, public or noisy, and the variance of its noise.
    max_answers, typical
        Cap on answers of a person, and number of answers up to which a weight is 1.
    complete
        Whether everybody answered every item of the form, as a public statement.
    least_answers
        Fewest answers with which a person enters the moments.
    """

    columns: IndexArray
    category: FloatArray
    category_noise: FloatArray
    moment: FloatArray
    moment_noise: FloatArray
    contributing: float
    contributing_noise: float
    takers: FloatArray | None
    takers_noise: float
    persons: float
    persons_noise: float
    max_answers: int
    typical: float
    complete: bool
    least_answers: int


@dataclass(frozen=True, eq=False)
class TotalsFit:
    """Thresholds in logits, the mean location zero, and how sure they are.

    ``difficulty``, ``covariance``, ``se`` and ``rounds`` say about locations of items what those
    of a :class:`~discreet.models.noisy.NoiseFit` say about difficulties.

    Attributes
    ----------
    thresholds
        ``[item, step]``; NaN beyond an item's steps.
    threshold_covariance
        Of all thresholds, item after item. None where standard errors were not asked for.
    steps
        Per item, its highest category.
    location_spread, step_spread
        Standard deviations of the locations, and of steps around their common pattern, that the
        fit settled on.
    ability_mean, ability_spread
        Of each form.
    inflation
        Mean ratio of the bootstrap variance to that of the linearised posterior; NaN without
        standard errors.
    rounds
        Iterations done.
    """

    thresholds: FloatArray
    threshold_covariance: FloatArray | None
    steps: tuple[int, ...]
    location_spread: float
    step_spread: float
    ability_mean: FloatArray
    ability_spread: FloatArray
    inflation: float
    rounds: int

    @property
    def difficulty(self) -> FloatArray:
        """Location of each item: the mean of its thresholds."""
        return np.asarray(np.nanmean(self.thresholds, axis=1))

    @property
    def covariance(self) -> FloatArray | None:
        """Covariance of the locations."""
        if self.threshold_covariance is None:
            return None
        first = np.cumsum((0, *self.steps[:-1]), dtype=np.intp)
        rows = np.add.reduceat(self.threshold_covariance, first, axis=0)
        sums = np.add.reduceat(rows, first, axis=1)
        return np.asarray(sums / np.outer(self.steps, self.steps))

    @property
    def se(self) -> FloatArray:
        """Standard error of each location; NaN where they were not asked for."""
        covariance = self.covariance
        if covariance is None:
            return np.full(len(self.steps), np.nan)
        return np.sqrt(np.diag(covariance))

    @property
    def threshold_se(self) -> FloatArray:
        """Standard error of each threshold, ``[item, step]``; NaN beyond an item's steps."""
        out = np.full(self.thresholds.shape, np.nan)
        if self.threshold_covariance is not None:
            out[~np.isnan(self.thresholds)] = np.sqrt(np.diag(self.threshold_covariance))
        return out

    def ladder(self, status: str) -> Thresholds:
        """Return the thresholds as a result, every one with the same status."""
        statuses = tuple((status,) * step for step in self.steps)
        return Thresholds(self.thresholds, self.threshold_se, statuses, self.threshold_covariance)
