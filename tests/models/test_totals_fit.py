"""Thresholds from noisy totals: what the fit recovers, and what it admits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.errors import BadUsage
from discreet.models.noisy.totals.bootstrap import Shared, draw_normal
from discreet.models.noisy.totals.fit import assume_thresholds, fit_totals, forecast_totals
from discreet.models.noisy.totals.moments import count_takers, describe_items, elementary_sums
from discreet.models.noisy.totals.solve import (
    SHAPE_SPREAD,
    _take_step,
    linearise,
    pose_problem,
    prior_of_shapes,
    settle,
    start_state,
)
from discreet.models.noisy.totals.takers import Shifts, Slope
from refusals import refused
from totals_statistics import (
    add_noise,
    blank_form,
    draw_codes,
    expect_statistics,
    mean_products,
    measure_codes,
)

ABILITY, WEIGHT = np.polynomial.hermite_e.hermegauss(61)
WEIGHT = WEIGHT / WEIGHT.sum()
MANY = 1e9
NAN = float("nan")


def some_thresholds(rng, items, steps):
    pattern = np.linspace(-1, 1, steps) if steps > 1 else np.zeros(1)
    own = rng.uniform(-1.5, 1.5, (items, 1)) + pattern + rng.normal(0, 0.2, (items, steps))
    return own - own.mean()


def release(thresholds, persons, deviation, seed, **public):
    """Simulate persons with standard normal abilities; return noisy values and their measure."""
    rng = np.random.default_rng(seed)
    steps = (~np.isnan(thresholds)).sum(axis=1)
    form = blank_form(range(len(thresholds)), thresholds.shape[1], 3, **public)
    codes = draw_codes(thresholds, rng.normal(size=persons), rng)
    exact = measure_codes(codes, steps, form)

    def measure(drawn, number):
        assert number == 0
        return measure_codes(drawn, steps, form)

    return add_noise(exact, steps, deviation, rng), steps, measure


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("spread", [0.7, 1.0, 1.5])
def test_expected_totals_of_many_persons_give_the_thresholds_back(steps, spread):
    truth = some_thresholds(np.random.default_rng(steps), 8, steps)
    form = expect_statistics(truth, 0.3 + spread * ABILITY, WEIGHT, range(8), MANY)
    fit = fit_totals([form], [steps] * 8, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.01)
    np.testing.assert_allclose(fit.ability_mean, 0.3, atol=0.02)
    np.testing.assert_allclose(fit.ability_spread, spread, atol=0.02)


def test_items_may_have_different_numbers_of_steps():
    truth = np.array(
        [[-0.8, NAN, NAN], [0.5, NAN, NAN], [-1.0, 0.6, NAN], [-0.2, 0.9, NAN], [-1.2, 0.1, 1.4]]
    )
    truth -= np.nanmean(truth, axis=1).mean()
    form = expect_statistics(truth, ABILITY, WEIGHT, range(5), MANY)
    fit = fit_totals([form], [1, 1, 2, 2, 3], standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.01)
    assert abs(fit.difficulty.mean()) < 1e-12


def test_forms_are_linked_through_the_items_they_share():
    truth = some_thresholds(np.random.default_rng(3), 9, 2)
    first = expect_statistics(truth, ABILITY - 0.6, WEIGHT, range(6), MANY)
    second = expect_statistics(truth, 1.3 * ABILITY + 0.8, WEIGHT, range(3, 9), MANY)
    fit = fit_totals([first, second], [2] * 9, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.01)
    np.testing.assert_allclose(fit.ability_mean, [-0.6, 0.8], atol=0.02)
    np.testing.assert_allclose(fit.ability_spread, [1.0, 1.3], atol=0.02)


def test_missing_answers_at_random_change_nothing_in_expectation():
    truth = some_thresholds(np.random.default_rng(5), 8, 3)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(8), MANY, share=0.6)
    fit = fit_totals([form], [3] * 8, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.015)


@pytest.mark.parametrize(("items", "moments"), [(2, 1), (3, 2)])
def test_short_tests_have_fewer_moments(items, moments):
    truth = some_thresholds(np.random.default_rng(items), items, 2)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(items), MANY, moments)
    fit = fit_totals([form], [2] * items, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.02)


def test_a_form_without_moments_is_fitted_with_usual_abilities():
    truth = some_thresholds(np.random.default_rng(8), 5, 2)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(5), MANY)
    bare = replace(form, moment=np.zeros(0), moment_noise=np.zeros(0))
    fit = fit_totals([bare], [2] * 5, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.02)


def test_a_rating_scale_gives_all_items_the_same_steps():
    location = np.array([-1.0, -0.4, 0.2, 0.4, 0.8])
    truth = location[:, None] + np.array([-0.9, -0.1, 1.0])
    form = expect_statistics(truth, ABILITY, WEIGHT, range(5), MANY)
    fit = fit_totals([form], [3] * 5, model="rating-scale", standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.01)
    steps = fit.thresholds - fit.difficulty[:, None]
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-3)


def test_a_rating_scale_of_items_with_different_steps_is_refused():
    form = blank_form([0, 1], 3, 1)
    with refused(BadUsage, "rating_scale_gives_all", steps="2, 3"):
        fit_totals([form], [2, 3], model="rating-scale", standard_errors=False)


def test_standard_errors_need_a_way_to_measure_simulated_persons():
    truth = some_thresholds(np.random.default_rng(1), 4, 2)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(4), 1000.0)
    with refused(BadUsage, "standard_errors_need_measure"):
        fit_totals([form], [2] * 4)


def test_sums_over_all_sets_of_items_are_those_of_the_definition():
    values = np.random.default_rng(2).normal(size=(7, 5))
    means = mean_products(values.T, 4)
    sums = elementary_sums(values, 4)
    for r, ways in enumerate((7, 21, 35, 35), start=1):
        np.testing.assert_allclose(sums[r] / ways, means[:, r - 1], atol=1e-12)


def test_shapes_of_forms_are_alike_a_priori_but_not_the_same():
    """Scale, skewness and kurtosis of each form: what all share, and a quarter of it apart."""
    tightness = np.array([1.0, 0.5])
    precision = prior_of_shapes(2, tightness)
    covariance = np.zeros((6, 6))
    for (f, i), (g, j) in itertools.product(itertools.product(range(2), range(3)), repeat=2):
        spread = [SHAPE_SPREAD[k] * (tightness[h] if k else 1.0) for h, k in ((f, i), (g, j))]
        covariance[3 * f + i, 3 * g + j] = (
            (i == j) * spread[0] * spread[1] * (1.25 if f == g else 1)
        )
    np.testing.assert_allclose(precision @ covariance, np.eye(6), atol=1e-9)
    alone = prior_of_shapes(1, np.ones(1))
    np.testing.assert_allclose(alone, np.diag(SHAPE_SPREAD**-2.0))


def test_a_step_leaves_the_distances_of_items_and_abilities_and_centres_the_items():
    """Items with unequal steps move by 0.25 on average, abilities by 0.4; both then go back."""
    rng = np.random.default_rng(4)
    steps = [1, 3, 2]
    form = blank_form(range(3), 3, 3)
    problem = pose_problem([form], steps, "partial-credit")
    state = start_state(problem)
    step = np.where(problem.ladders.open, 0.25 + rng.normal(0, 0.1, (3, 3)), 0.0)
    coefficients = len(state.pattern)
    inner = SimpleNamespace(
        step=step, by_outer=np.zeros((3, 3, 3)), common_by_outer=np.zeros((1 + coefficients, 3)),
        common_step=np.concatenate([[0.4], rng.normal(0, 0.1, coefficients)]),
    )  # fmt: skip
    outer = SimpleNamespace(step=np.array([0.1, -0.2, 0.05]))
    found = _take_step(problem, state, inner, outer)
    moved = state.thresholds + step
    shift = np.mean([moved[i, :own].mean() for i, own in enumerate(steps)])
    assert abs(shift) > 0.1
    expected = np.where(problem.ladders.open, moved - shift, 0.0)
    np.testing.assert_allclose(found.thresholds, expected)
    np.testing.assert_allclose(found.shapes[0], [0.4 - shift, 0.1, -0.2, 0.05])
    np.testing.assert_allclose(found.pattern, state.pattern + inner.common_step[1:])
    # A step is shortened as a whole: no threshold moves by more than a logit, no shape by a half.
    far = SimpleNamespace(**{**vars(inner), "step": step * [[1.0], [1.0], [30.0]]})
    part = 1 / np.abs(problem.ladders.centre(far.step)[0]).max()
    shorter = _take_step(problem, state, far, SimpleNamespace(step=np.array([0.0, 2.0, 0.0])))
    np.testing.assert_allclose(shorter.pattern - state.pattern, part * inner.common_step[1:])
    np.testing.assert_allclose(shorter.shapes[0, 2], part * 0.5)


def test_slopes_are_the_derivatives_of_what_is_expected():
    rng = np.random.default_rng(4)
    truth = some_thresholds(rng, 6, 3)
    form = expect_statistics(truth, 1.2 * ABILITY, WEIGHT, range(6), 500.0)
    problem = pose_problem([form], [3] * 6, "partial-credit")
    state, _ = settle(problem, start_state(problem), 2)
    here = linearise(problem, state).moments[0]
    step = 1e-5
    for place in range(1, 4):
        shapes = state.shapes.copy()
        shapes[0, place] += step
        there = linearise(problem, replace(state, shapes=shapes)).moments[0]
        np.testing.assert_allclose(
            (there.mean - here.mean) / step, here.by_shape[:, place], atol=1e-4
        )
    moved = state.thresholds.copy()
    moved[2, 1] += step
    there = linearise(problem, replace(state, thresholds=moved)).moments[0]
    np.testing.assert_allclose(
        (there.mean - here.mean) / step, here.by_threshold[:, 2, 1], atol=1e-4
    )


def test_standard_errors_leave_the_thresholds_alone_and_are_reproducible():
    truth = some_thresholds(np.random.default_rng(6), 6, 2)
    form, steps, measure = release(truth, 400, 20.0, 6)
    bare = fit_totals([form], steps, standard_errors=False)
    full, again = (fit_totals([form], steps, measure=measure) for _ in range(2))
    np.testing.assert_array_equal(bare.thresholds, full.thresholds)
    np.testing.assert_array_equal(full.threshold_covariance, again.threshold_covariance)
    assert np.isnan(bare.se).all()
    assert bare.covariance is None


def test_locations_are_the_means_of_thresholds_also_in_their_covariance():
    truth = some_thresholds(np.random.default_rng(7), 5, 3)
    form, steps, measure = release(truth, 500, 15.0, 7)
    fit = fit_totals([form], steps, measure=measure)
    covariance = fit.threshold_covariance
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    mean = np.kron(np.eye(5), np.full(3, 1 / 3))
    np.testing.assert_allclose(fit.covariance, mean @ covariance @ mean.T)
    np.testing.assert_allclose(fit.threshold_se.ravel(), np.sqrt(np.diag(covariance)))
    ladder = fit.ladder("estimated")
    assert ladder.steps == (3,) * 5
    np.testing.assert_array_equal(ladder.value, fit.thresholds)


def test_covariances_in_parts_are_those_of_the_full_matrix():
    rng = np.random.default_rng(14)
    ladders = describe_items([2, 1, 3])
    there = ladders.open[:, :, None] & ladders.open[:, None, :]
    root, loads = rng.normal(size=(3, 3, 3)) * there, rng.normal(size=(3, 3, 2))
    loads *= ladders.open[:, :, None]
    shared = Shared(root @ root.transpose(0, 2, 1), loads, np.array([[2.0, 0.5], [0.5, 1.0]]))
    full = shared.fill(ladders)
    np.testing.assert_allclose(np.diag(full), shared.variances()[ladders.open])
    weight = np.repeat([1 / 2, 1 / 1, 1 / 3], [2, 1, 3]) / 3
    centring = np.eye(6) - weight
    centred = shared.centre(ladders)
    np.testing.assert_allclose(centred.fill(ladders), centring @ full @ centring.T, atol=1e-12)
    away = np.where(ladders.open, rng.normal(size=(3, 3)), 0.0)
    more = np.outer(away[ladders.open], away[ladders.open])
    np.testing.assert_allclose(shared.add(away, 4.0).fill(ladders), full + 4 * more)


def test_noise_that_drowns_everything_leaves_small_thresholds_and_wide_intervals():
    truth = some_thresholds(np.random.default_rng(9), 8, 2)
    form, steps, measure = release(truth, 300, 3000.0, 9)
    fit = fit_totals([form], steps, measure=measure)
    pattern = fit.thresholds - fit.difficulty[:, None]
    assert np.abs(fit.difficulty).max() < 0.5
    assert np.abs(pattern).max() < 1.5
    assert fit.se.min() > 0.7


def test_the_number_of_persons_is_pooled_with_what_the_totals_say():
    truth = some_thresholds(np.random.default_rng(10), 6, 2)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(6), 1000.0)
    noisy = add_noise(form, [2] * 6, 3.0, np.random.default_rng(0))
    far = replace(noisy, persons=1400.0, persons_noise=200.0**2)
    assert count_takers(far).persons == pytest.approx(1000.0, abs=10)
    fit = fit_totals([far], [2] * 6, standard_errors=False)
    np.testing.assert_allclose(fit.thresholds, truth, atol=0.15)


def test_large_forms_are_simulated_in_part():
    truth = some_thresholds(np.random.default_rng(11), 6, 2)
    errors = []
    for persons in (2_000, 2_000_000):
        factor = persons / 2000
        form, steps, measure = release(truth, 2000, 0.0, 11)
        big = replace(
            form,
            category=factor * form.category,
            moment=factor * form.moment,
            contributing=float(persons),
            persons=float(persons),
            category_noise=form.category_noise + 1e-6 * np.eye(3),
        )
        errors.append(fit_totals([big], steps, measure=measure).threshold_se.mean())
    assert errors[0] / errors[1] == pytest.approx(1000**0.5, rel=0.25)


def test_units_that_were_released_are_pooled_with_the_totals_where_both_agree():
    truth = some_thresholds(np.random.default_rng(12), 8, 2)
    form = expect_statistics(truth, ABILITY, WEIGHT, range(8), 1000.0, share=0.5)
    noisy = replace(add_noise(form, [2] * 8, 1.0, np.random.default_rng(0)), contributing_noise=900)
    near = count_takers(replace(noisy, contributing=525.0))
    assert near.contributing == pytest.approx(500.0, abs=15)
    assert near.contributing_variance < 500
    far = count_takers(replace(noisy, contributing=250.0))
    assert far.contributing == pytest.approx(250.0, abs=5)


def forecast(persons, deviation, steps=2, items=8):
    thresholds = assume_thresholds([steps] * items)
    form = replace(blank_form(range(items), steps, 3), persons=persons)
    noisy = add_noise(form, [steps] * items, deviation, np.random.default_rng(0))
    return forecast_totals([noisy], thresholds)


def test_forecasts_fall_with_persons_and_rise_with_noise_up_to_the_spread_of_items():
    usual = forecast(1000.0, 20.0)
    assert forecast(4000.0, 20.0).threshold < 0.6 * usual.threshold
    assert forecast(1000.0, 60.0).threshold > 1.5 * usual.threshold
    assert usual.location < usual.threshold
    assert 0.8 < forecast(100.0, 1e6).location <= 1.0


def test_forecasts_without_noise_fall_with_the_root_of_persons():
    few, many = forecast(4_000.0, 1e-3), forecast(400_000.0, 1e-3)
    assert few.threshold / many.threshold == pytest.approx(10, rel=0.1)


def test_forecasts_know_items_without_steps_and_answers_that_are_missing():
    thresholds = assume_thresholds([1, 1, 2, 3, 2, 1])
    form = replace(blank_form(range(6), 3, 3, complete=False), persons=1000.0)
    noisy = add_noise(form, [1, 1, 2, 3, 2, 1], 10.0, np.random.default_rng(0))
    all_answers = forecast_totals([noisy], thresholds)
    half = forecast_totals([noisy], thresholds, answers=3.0)
    assert half.threshold > 1.2 * all_answers.threshold


def test_takers_who_follow_difficulty_widen_all_intervals():
    rng = np.random.default_rng(13)
    truth = some_thresholds(rng, 30, 2)
    form = blank_form(range(30), 2, 3, complete=False, max_answers=10, typical=10.0)
    form = replace(form, takers=np.zeros(30))
    ability = rng.normal(size=3000)
    near = -1.5 * np.abs(ability[:, None] - truth.mean(axis=1)) + rng.gumbel(size=(3000, 30))
    codes = draw_codes(truth, ability, rng)
    codes[np.argsort(np.argsort(-near, axis=1), axis=1) >= 10] = -1
    released = add_noise(measure_codes(codes, [2] * 30, form), [2] * 30, 3.0, rng)
    blind = fit_totals([replace(released, takers=None)], [2] * 30, standard_errors=False)
    measure = lambda drawn, _: measure_codes(drawn, [2] * 30, form)  # noqa: E731
    seeing = fit_totals([released], [2] * 30, measure=measure)
    far, near = (np.sqrt(np.mean((one.thresholds - truth) ** 2)) for one in (blind, seeing))
    assert near < 0.6 * far
    assert np.sqrt(np.mean(seeing.threshold_se**2)) > 0.7 * near


def test_a_slope_that_noise_hides_widens_all_intervals_and_a_sure_one_hardly_any():
    sure = Slope(0.0, 0.0, 1e-6).stretch_locations()
    assert sure == pytest.approx((1.0, 0.0), abs=1e-6)
    factors = [Slope(0.0, 0.0, variance).stretch_locations() for variance in (0.01, 0.1, 1.0, 1e9)]
    assert all(np.greater(later, earlier).all() for earlier, later in itertools.pairwise(factors))
    assert factors[-1][0] > 3


def test_a_slope_that_is_taken_for_smaller_than_seen_is_made_up_for():
    # Where takers make up for half of the difficulty, locations are twice as far from each other.
    wider, longer = Slope(0.0, 0.5, 1e-6).stretch_locations()
    assert wider == pytest.approx(4.0, rel=0.01)
    assert longer == pytest.approx(1.0 + (0.35 * 0.5) ** 2, rel=0.01)


def test_moments_are_finite_where_the_ablest_were_all_given_one_item():
    form = blank_form(range(70), 1, 3, complete=False, max_answers=20, typical=20.0)
    form = replace(form, takers=np.zeros(70), persons=3000.0, category=np.full((70, 2), 400.0))
    problem = pose_problem([form], [1] * 70, "partial-credit")
    alone = np.r_[2.5, np.zeros(69)]
    light_tails = np.array([[0.0, 0.1, -0.6, -2.6]])
    state = replace(start_state(problem), shapes=light_tails, shifts=(Shifts(alone),))
    (view,) = linearise(problem, state).moments
    assert np.isfinite(view.mean).all()
    assert np.isfinite(view.by_threshold).all()
    assert np.abs(view.mean).max() <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("persons", "deviation"), [(400, 8.0), (1000, 40.0)])
def test_intervals_hold_the_truth_as_often_as_they_say(persons, deviation):
    inside = []
    for seed in range(40):
        truth = some_thresholds(np.random.default_rng(seed), 10, 2)
        form, steps, measure = release(truth, persons, deviation, 100 + seed)
        fit = fit_totals([form], steps, measure=measure)
        inside.append(np.mean(np.abs(fit.thresholds - truth) <= 1.96 * fit.threshold_se))
    assert 0.92 <= np.mean(inside) <= 0.985


def test_draws_do_not_hang_on_which_eigenvectors_are_found():
    alike = np.eye(3) + 0.5  # two of its eigenvalues are equal
    nudge = 1e-9 * np.array([[0.0, 1, 2], [1, 0, -1], [2, -1, 3]])
    covariance = np.array([alike, alike + nudge, alike - nudge])
    first, *others = (draw_normal(one, np.random.default_rng(1)) for one in covariance)
    np.testing.assert_allclose(others, [first, first], atol=1e-8)
    drawn = draw_normal(np.tile(alike, (20_000, 1, 1)), np.random.default_rng(2))
    np.testing.assert_allclose(np.cov(drawn.T), alike, atol=0.05)
