"""Thresholds from released totals, with standard errors that include the noise.

In: released values of one or more forms. Out: a :class:`TotalsFit`. The loop is in
:mod:`~discreet.models.noisy.totals.iterate`, the bootstrap in
:mod:`~discreet.models.noisy.totals.bootstrap`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.errors import BadUsage
from discreet.models.noisy.totals import FormTotals, TotalsFit
from discreet.models.noisy.totals.bootstrap import bootstrap_covariance
from discreet.models.noisy.totals.iterate import pose_problem, settle, start_state
from discreet.models.noisy.totals.simulate import Measure
from discreet.types import ScaleModel


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
        covariance, inflation = bootstrap_covariance(problem, state, _need(measure))
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


def _need(measure: Measure | None) -> Measure:
    if measure is None:
        raise BadUsage(
            "standard errors need `measure`, which computes the statistics of simulated persons; "
            "pass it, or ask for no standard errors"
        )
    return measure
