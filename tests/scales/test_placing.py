"""Calibrations of several periods: cohort means, and what unequal slopes may do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, t
from test_drift import draw_cohorts, draw_steps

from discreet.models.calibrate import fit
from discreet.scales.placing import (
    _allow_for_slopes,
    _estimate_tau,
    _square_rate,
    find_mean_ability,
    spread_errors,
)


def test_errors_are_spread_so_that_they_stay_what_they_were():
    se = np.array([0.1, 0.2, 0.15, 0.3, 0.1, 0.12])
    covariance = spread_errors(se)
    assert np.sqrt(covariance.diagonal()) == pytest.approx(se)
    assert covariance.sum(axis=1) == pytest.approx(0, abs=1e-15)


def test_mean_ability_is_that_which_predicts_as_many_points():
    days = draw_cohorts(6)
    estimate = fit(days[2])
    mean = find_mean_ability(estimate)
    ability = mean + np.linspace(-8, 8, 2001)
    density = np.exp(-((ability - mean) ** 2) / 2)
    chance = 1 / (1 + np.exp(estimate.difficulty - ability[:, None]))
    predicted = (density @ chance) / density.sum() @ estimate.answers
    assert predicted == pytest.approx(estimate.right.sum(), rel=1e-5)
    assert mean == pytest.approx(0.8, abs=0.15)
    steps = fit(draw_steps(1, np.linspace(-1, 1, 8), 0.7, 1.0))
    assert find_mean_ability(steps) == pytest.approx(0.7, abs=0.15)
    assert np.isnan(find_mean_ability(replace(estimate, right=None)))


def test_the_sum_of_squares_is_that_of_a_covariance_with_tau_along_the_cohorts():
    rng = np.random.default_rng(1)
    variance, cohort = rng.uniform(0.01, 0.03, (4, 40)), np.array([0.0, 0.3, 0.6, 1.0])
    values = rng.normal(0, np.sqrt(variance)) + np.outer(cohort, rng.normal(0, 0.4, 40))
    weight = 1 / variance
    weight[2, 7] = 0.0
    centred = values - (weight * values).sum(axis=0) / weight.sum(axis=0)
    tau, less = _allow_for_slopes(centred, weight, cohort)
    assert tau > 0.2
    for item in (0, 7, 19):
        has = weight[:, item] > 0
        y, c = values[has, item], cohort[has]
        inverse = np.linalg.inv(np.diag(1 / weight[has, item]) + tau**2 * np.outer(c, c))
        ones = np.ones(len(y))
        mean = ones @ inverse @ y / (ones @ inverse @ ones)
        expected = (y - mean) @ inverse @ (y - mean)
        plain = (weight[:, item] * centred[:, item] ** 2).sum()
        # Tau is an estimate: what lies along the cohorts counts a little less than a known one.
        assert plain - less[item] <= expected + 1e-9
        rate, precision = _find_rate(y, c, weight[has, item])
        known = plain - rate**2 * precision + rate**2 / (1 / precision + tau**2)
        assert known == pytest.approx(expected)


def _find_rate(y, c, weight):
    away = c - weight @ c / weight.sum()
    precision = weight @ away**2
    return weight @ (away * y) / precision, precision


def test_tau_is_the_spread_of_true_rates_whatever_a_fifth_of_the_items_does():
    rng = np.random.default_rng(2)
    variance = rng.uniform(0.005, 0.02, 2000)
    rate = rng.normal(0, np.sqrt(variance + 0.3**2))
    assert _estimate_tau(rate, variance) == pytest.approx(0.3, rel=0.05)
    rate[:400] += 50
    assert 0.3 < _estimate_tau(rate, variance) < 0.5
    assert _estimate_tau(rng.normal(0, np.sqrt(0.5 * variance)), variance) == 0.0


def test_a_rate_is_judged_by_student_where_tau_matters_and_by_normal_where_not():
    square = _square_rate(np.array([1.0]), np.array([1e-9]), 0.3)[0]
    assert chi2.sf(square, 1) == pytest.approx(2 * t.sf(1 / 0.3, 1), rel=1e-4)
    many = np.full(25, 1.0)
    assert chi2.sf(_square_rate(many, many * 1e-9, 0.3)[0], 1) == pytest.approx(
        2 * t.sf(1 / 0.3, 24), rel=1e-4
    )
    assert _square_rate(many, many, 0.01)[0] == pytest.approx(1 / (1 + 1e-4), rel=1e-6)
