"""Thresholds from released totals with standard errors, and a forecast of these errors.

In: released values of one or more forms. Out: a :class:`TotalsFit`, which holds nothing
confidential as long as the fit was given released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from discreet.choices import ScaleModel
from discreet.errors import BadUsage
from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.bootstrap import (
    Measure,
    bootstrap_covariance,
    location_part,
    posterior_around,
)
from discreet.models.noisy.totals.moments import (
    NODES,
    Ladders,
    ability_density,
    category_node_probabilities,
)
from discreet.models.noisy.totals.solve import (
    TotalsProblem,
    TotalsState,
    linearise,
    pose_problem,
    prior_of_shapes,
    settle,
    start_state,
)
from discreet.models.noisy.totals.takers import NO_STEP_SPREAD, Spreads
from discreet.results.thresholds import Thresholds
from discreet.types import FloatArray


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


def fit_totals(
    forms: Sequence[FormTotals],
    steps: Sequence[int],
    *,
    model: ScaleModel = "partial-credit",
    standard_errors: bool = True,
    measure: Measure | None = None,
) -> TotalsFit:
    """Fit thresholds to noisy totals of categories and moments of scores.

    Parameters
    ----------
    forms
        Released values, form by form.
    steps
        Per item, its highest category.
    model
        ``"rating-scale"`` gives every item the same steps around its location.
    standard_errors
        Whether to bootstrap them; the thresholds are the same bit for bit without.
    measure
        How statistics of simulated persons are computed, for the bootstrap.
    """
    problem = pose_problem(forms, steps, model)
    state, rounds = settle(problem, start_state(problem))
    covariance, inflation = None, float("nan")
    if standard_errors:
        if measure is None:
            raise BadUsage(
                "standard errors need `measure`, which computes the statistics of simulated "
                "persons; pass it, or ask for no standard errors"
            )
        covariance, inflation = bootstrap_covariance(problem, state, measure)
    return TotalsFit(
        thresholds=np.where(problem.ladders.open, state.thresholds, np.nan),
        threshold_covariance=covariance,
        steps=tuple(int(step) for step in steps),
        location_spread=state.spreads.location,
        step_spread=state.spreads.step,
        ability_mean=state.shapes[:, 0],
        ability_spread=np.exp(state.shapes[:, 1]),
        inflation=inflation,
        rounds=rounds,
    )


#: Assumed standard deviation of steps around their pattern.
STEP_SCATTER = 0.2

SMALLEST_SPREAD = 0.05


@dataclass(frozen=True)
class TotalsForecast:
    """Root mean square errors to expect, in logits."""

    threshold: float
    location: float


def assume_thresholds(steps: Sequence[int], location_spread: float = 1.0) -> FloatArray:
    """Return thresholds of a usual test: normal locations, steps from -1 to 1 around them.

    Examples
    --------
    >>> assume_thresholds([1, 1, 1]).round(2).ravel().tolist()
    [-1.22, 0.0, 1.22]
    """
    count = np.asarray(steps)[:, None]
    quantile = np.array([NormalDist().inv_cdf((k + 0.5) / len(steps)) for k in range(len(steps))])
    location = quantile * location_spread / max(sqrt(float(np.mean(quantile**2))), 1e-300)
    step_index = np.arange(max(steps))
    angle = np.add.outer(2.4 * np.arange(len(steps)), 1.7 * step_index)
    around = 2 * step_index / np.maximum(count - 1, 1) - 1 + sqrt(2) * STEP_SCATTER * np.sin(angle)
    values = location[:, None] + np.where(count > 1, around, 0.0)
    return np.where(step_index < count, values, np.nan)


def forecast_totals(
    forms: Sequence[FormTotals],
    thresholds: FloatArray,
    *,
    answers: float | None = None,
    ability_mean: float = 0.0,
    ability_spread: float = 1.0,
) -> TotalsForecast:
    """Predict the errors of a partial credit fit, from public numbers, noise and assumptions.

    Parameters
    ----------
    forms
        Public numbers and noise of each form; released values in them are not looked at.
    thresholds
        ``[item, step]``, NaN beyond an item's steps; see :func:`assume_thresholds`.
    answers
        Mean number of answers per person where a form is not complete; by default the typical
        number.
    ability_mean, ability_spread
        Of normal abilities, relative to the mean location.
    """
    steps = (~np.isnan(thresholds)).sum(axis=1)
    shape = np.array([ability_mean, np.log(ability_spread), 0.0, 0.0])
    expected = [_expect_totals(form, thresholds, shape, answers) for form in forms]
    problem = pose_problem(expected, steps.tolist(), "partial-credit")
    # The state in which the assumptions are true, with the spreads that they have.
    ladders = problem.ladders
    centred, shift = ladders.centre(np.where(ladders.open, thresholds, 0.0))
    pattern = np.einsum("ija,ij->a", ladders.pattern, centred)
    pattern /= np.maximum((ladders.pattern**2).sum(axis=(0, 1)), 1e-300)
    shapes = np.tile(shape - np.array([shift, 0, 0, 0]), (len(problem.forms), 1))
    spreads = _spreads_of(problem, centred - ladders.pattern @ pattern)
    start = start_state(problem)
    state = replace(start, thresholds=centred, pattern=pattern, shapes=shapes, spreads=spreads)
    around = linearise(problem, state)
    expected_forms = tuple(
        replace(form, moment=form.contributing * view.mean)
        for form, view in zip(problem.forms, around.moments, strict=True)
    )
    return _expected_errors(replace(problem, forms=expected_forms), state)


def _expect_totals(
    form: FormTotals, thresholds: FloatArray, shape: FloatArray, answers: float | None
) -> FormTotals:
    """Put what is released about categories at its expectation."""
    form_thresholds = thresholds[form.columns]
    ability = shape[0] + np.exp(shape[1]) * NODES
    share = (
        category_node_probabilities(form_thresholds, ~np.isnan(form_thresholds), ability)
        @ ability_density(shape)[0]
    )
    if form.complete:
        return replace(form, category=form.persons * share, contributing=form.persons)
    typical = min(form.typical, form.max_answers) if answers is None else answers
    weight = min(1.0, sqrt(form.typical / typical))
    max_units = form.max_answers * min(1.0, sqrt(form.typical / form.max_answers))
    takers = form.persons * weight * typical / len(form_thresholds)
    contributing = form.persons * min(1.0, weight * typical / max_units)
    return replace(form, category=takers * share, contributing=contributing)


def _spreads_of(problem: TotalsProblem, deviation: FloatArray) -> Spreads:
    """Return how far locations, and steps around the pattern, spread."""
    ladders: Ladders = problem.ladders
    location = deviation.sum(axis=1) / ladders.steps
    spread = max(sqrt(float(np.mean(location**2))), SMALLEST_SPREAD)
    free = int((ladders.steps - 1).sum())
    if problem.rating_scale or not free:
        return Spreads(spread, NO_STEP_SPREAD if problem.rating_scale else SMALLEST_SPREAD)
    step_deviation = np.where(ladders.open, deviation - location[:, None], 0.0)
    return Spreads(spread, max(sqrt(float((step_deviation**2).sum()) / free), SMALLEST_SPREAD))


def _expected_errors(problem: TotalsProblem, state: TotalsState) -> TotalsForecast:
    """Mean square errors of the linearised fit; the prior of abilities is taken to be right."""
    posterior = posterior_around(problem, state, state.spreads)
    forms = len(problem.forms)
    prior = prior_of_shapes(forms, np.ones(forms))
    outer = posterior.outer.covariance
    sampled = replace(posterior.outer, covariance=outer - outer @ prior @ outer)
    ladders = problem.ladders
    covariance = replace(posterior, outer=sampled).covariance(ladders)
    location = covariance.turn(location_part(ladders)).variances()[:, 0]
    threshold = covariance.variances()[ladders.open]
    return TotalsForecast(sqrt(float(threshold.mean())), sqrt(float(location.mean())))
