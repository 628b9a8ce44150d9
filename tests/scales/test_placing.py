"""Calibrations of several periods: cohort means, and what unequal slopes may do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, f, norm, t
from test_drift import draw_cohorts, draw_steps

from discreet.api.calibrating import fit
from discreet.errors import DisconnectedItems
from discreet.scales.placing import (
    CUT,
    CUT_SQUARE,
    LARGEST_TAU,
    PeriodTable,
    _allow_for_slopes,
    _estimate_tau,
    _place,
    _square_rate,
    align_medians,
    compare_periods,
    find_mean_ability,
    find_usable,
    spread_errors,
)
from refusals import refused


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


# --- one scale, number by number ----------------------------------------------------------------


def make_table(degrees=(np.inf, 20.0, 9.0), ability=(0.2, -0.4, 0.9)):
    """Three periods on scales of their own, far apart; two items are missing in one of them."""
    rng = np.random.default_rng(3)
    truth = np.array([-1.2, -0.3, 0.1, 0.8, 1.6])
    difficulty = truth + np.array([[3.0], [-2.0], [0.5]]) + rng.normal(0, 0.2, (3, 5))
    difficulty[1, 4] = difficulty[2, 0] = np.nan
    covariance = []
    for row in difficulty:
        root = rng.normal(0, 0.12, (np.isfinite(row).sum(),) * 2)
        covariance.append(root @ root.T + 0.01 * np.eye(len(root)))
    return PeriodTable(
        tuple("abcde"), difficulty, covariance, np.array(degrees), np.array(ability, dtype=float)
    )


def align_by_hand(difficulty):
    moved = difficulty.copy()
    for period in range(1, len(moved)):
        apart = []
        for item in range(moved.shape[1]):
            before = [moved[k, item] for k in range(period) if np.isfinite(moved[k, item])]
            if before and np.isfinite(moved[period, item]):
                apart.append(np.mean(before) - moved[period, item])
        moved[period] += np.median(apart)
    return moved


def test_periods_are_moved_by_the_medians_of_their_differences_from_those_before():
    table = make_table()
    moved = align_medians(table.difficulty)
    assert moved == pytest.approx(align_by_hand(table.difficulty), nan_ok=True)
    assert np.nanmax(np.ptp(moved, axis=0)) < 1.5 < np.nanmax(np.ptp(table.difficulty, axis=0))
    apart = np.array([[0.0, 1.0, np.nan], [np.nan, np.nan, 2.0]])
    with refused(DisconnectedItems, "period_order_time_no", period="2"):
        align_medians(apart)


@pytest.mark.parametrize(("away", "is_usable"), [(0.39, True), (0.41, False)])
def test_an_item_helps_to_find_the_scale_up_to_four_errors_from_the_median(away, is_usable):
    """Four items with errors of 0.1 agree; the fifth is off by twice as much, once a side."""
    difficulty = np.array([[0.0, 1.0, 2.0, 3.0, 4.0 - away], [0.0, 1.0, 2.0, 3.0, 4.0 + away]])
    found = find_usable(difficulty, np.full((2, 5), 0.01))
    assert found.tolist() == [True] * 4 + [is_usable]


def test_where_too_few_items_would_be_left_all_of_them_begin():
    difficulty = np.array([[0.0, 0.0, 0.0, 5.0], [0.0, 1.0, 2.0, 8.0]])
    assert find_usable(difficulty, np.full((2, 4), 1e-4)).all()


def test_every_period_is_less_the_weighted_mean_of_the_items_without_drift():
    table = make_table()
    usable = np.array([True, False, True, True, True])
    placed = _place(table, usable)
    reference = np.nanmean(align_by_hand(table.difficulty), axis=0)
    weight = usable / np.nanmean(table.variance, axis=0)
    reference = reference - weight @ reference / weight.sum()
    for period, covariance in enumerate(table.covariance):
        has = np.isfinite(table.difficulty[period])
        share = weight[has] / weight[has].sum()
        shift = (share * (table.difficulty[period] - reference)[has]).sum()
        assert placed.difficulty[period, has] == pytest.approx(
            table.difficulty[period, has] - shift
        )
        assert placed.cohort_mean[period] == pytest.approx(table.ability[period] - shift)
        centring = np.eye(has.sum()) - share
        variance = (centring @ covariance @ centring.T).diagonal()
        assert placed.variance[period, has] == pytest.approx(variance)


@pytest.mark.parametrize("degrees", [(np.inf, 20.0, 9.0), (np.inf,) * 3])
def test_equal_difficulties_in_all_periods_have_welchs_test(degrees):
    """Without abilities no slopes are allowed for. Welch (1951), item by item."""
    table = make_table(degrees, (0.2, np.nan, 0.9))
    usable = np.ones(5, dtype=bool)
    placed, p = compare_periods(table, usable)
    assert placed.tau is None
    for item in range(5):
        has = np.isfinite(placed.difficulty[:, item])
        value, weight = placed.difficulty[has, item], 1 / placed.variance[has, item]
        k, total = has.sum(), weight.sum()
        mean = (weight * value).sum() / total
        spread = (weight * (value - mean) ** 2).sum() / (k - 1)
        unsure = ((1 - weight / total) ** 2 / np.array(degrees)[has]).sum()
        if unsure == 0:
            expected = chi2.sf((k - 1) * spread, k - 1)
        else:
            statistic = spread / (1 + 2 * (k - 2) / (k**2 - 1) * unsure)
            expected = f.sf(statistic, k - 1, (k**2 - 1) / (3 * unsure))
        assert p[item] == pytest.approx(expected, rel=1e-9)
        assert placed.covariance_of(item)[np.ix_(has, has)] == pytest.approx(np.diag(1 / weight))


def test_with_abilities_the_covariance_of_an_item_has_tau_along_the_cohorts():
    placed, _ = compare_periods(make_table(), np.ones(5, dtype=bool))
    placed = replace(placed, tau=0.3)
    expected = np.diag(placed.variance[:, 2]) + 0.09 * np.outer(*[placed.cohort_mean] * 2)
    assert placed.covariance_of(2) == pytest.approx(expected)


def test_tau_solves_its_equation_between_zero_and_the_largest_that_is_believed():
    node, weight = np.polynomial.legendre.leggauss(200)
    cut = node * CUT
    density = np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    inside = (weight * CUT * cut**2 * density).sum()
    assert inside + 2 * norm.sf(CUT) * CUT**2 == pytest.approx(CUT_SQUARE, abs=1e-6)
    rng = np.random.default_rng(5)
    variance = rng.uniform(0.01, 0.05, 60)
    rate = rng.normal(0, np.sqrt(variance + 0.3**2))
    tau = _estimate_tau(rate, variance)
    square = np.minimum(rate**2 / (variance + tau**2), CUT**2).mean()
    assert 0.15 < tau < 0.45
    assert square == pytest.approx(CUT_SQUARE, abs=1e-6)
    assert _estimate_tau(0.1 * np.sqrt(variance), variance) == 0.0
    assert _estimate_tau(100 * rate, variance) == LARGEST_TAU
    # Just below and just above what chance makes of the rates.
    for scale, is_zero in ((0.99, True), (1.01, False)):
        flat = np.sqrt(CUT_SQUARE * variance) * scale
        assert (_estimate_tau(flat, variance) == 0) is is_zero
    for scale, is_largest in ((0.99, False), (1.01, True)):
        flat = np.sqrt(CUT_SQUARE * (variance + LARGEST_TAU**2)) * scale
        assert (_estimate_tau(flat, variance) == LARGEST_TAU) is is_largest


def test_students_law_has_more_freedom_where_sampling_errors_are_most_of_the_variance():
    """Satterthwaite: with three rates, half of the variance from sampling, 2 x 2^2 degrees."""
    square = _square_rate(np.array([0.9, 0.1, -0.2]), np.full(3, 0.09), 0.3)[0]
    assert chi2.sf(square, 1) == pytest.approx(2 * t.sf(0.9 / np.sqrt(0.18), 8), rel=1e-6)
    assert _square_rate(np.array([0.9]), np.array([0.09]), 0.0)[0] == pytest.approx(9.0)
