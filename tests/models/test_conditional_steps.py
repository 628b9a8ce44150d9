"""Partial credit and rating scale by conditional likelihood: definition, other programs, limits."""

import itertools

import numpy as np
import pytest
from bench.conditional import collect_steps
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import discreet
from discreet.counts.matrix import Locations
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.conditional.batches import plan_batches
from discreet.models.conditional.estimator import find_maximum, maximise_conditional
from discreet.models.conditional.moments import evaluate_conditional
from refusals import refused

MODELS = ["partial-credit", "rating-scale"]


def simulate(n, thresholds, seed, missing=0.0):
    """Draw answers with steps; thresholds ``[item, step]``, NaN beyond an item's steps."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n, 1, 1))
    odds = np.cumsum(ability - np.where(np.isnan(thresholds), np.inf, thresholds), axis=2)
    odds = np.concatenate([np.zeros((n, len(thresholds), 1)), odds], axis=2)
    chance = np.exp(odds - odds.max(axis=2, keepdims=True))
    chance /= chance.sum(axis=2, keepdims=True)
    codes = (rng.random((n, len(thresholds), 1)) > np.cumsum(chance, axis=2)).sum(axis=2)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def fit_steps(answers, model="partial-credit", *, start=None):
    """Fit a model of all items; thresholds to start from are ``[item, step]``."""
    nodes = None if start is None else start[answers.used]
    return maximise_conditional(answers, shares_steps=model == "rating-scale", start=nodes)


def log_likelihood(codes, threshold):
    """From the definition, by listing all answers with the same score."""
    steps = (~np.isnan(threshold)).sum(axis=1)
    weight = [
        np.concatenate([[0], -np.cumsum(row[:s])]) for row, s in zip(threshold, steps, strict=True)
    ]
    sums = {}
    for seen in {tuple(np.flatnonzero(row >= 0)) for row in codes}:
        for answers in itertools.product(*(range(steps[i] + 1) for i in seen)):
            log = sum(weight[i][k] for i, k in zip(seen, answers, strict=True))
            sums.setdefault((seen, sum(answers)), []).append(log)
    norm = {same: np.logaddexp.reduce(logs) for same, logs in sums.items()}
    total = 0.0
    for row in codes:
        seen = tuple(np.flatnonzero(row >= 0))
        total += sum(weight[i][row[i]] for i in seen) - norm[seen, sum(row[i] for i in seen)]
    return total


MIXED = np.array([[-1.0, 0.5, np.nan], [0.3, np.nan, np.nan], [-0.4, 0.2, 1.1]])
SCALE = np.array([-0.8, 0.4, -0.1, 0.5])[:, None] + np.array([-0.7, 0.7])


def test_partial_credit_is_the_maximum_of_the_definition():
    codes = simulate(150, MIXED, seed=1, missing=0.15)
    found = fit_steps(collect_steps(codes))
    used = ~np.isnan(MIXED)

    def place(free):
        out = np.full(MIXED.shape, np.nan)
        out[used] = np.append(free, 0.0)
        return out

    best = minimize(lambda free: -log_likelihood(codes, place(free)), np.zeros(5), tol=1e-12)
    best_threshold = place(best.x)
    best_threshold -= np.nanmean(best_threshold, axis=1).mean()
    assert found.threshold[used] == pytest.approx(best_threshold[used], abs=1e-4)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-8)
    assert found.log_likelihood == pytest.approx(log_likelihood(codes, found.threshold), abs=1e-9)
    assert found.free == 5


def test_rating_scale_is_the_maximum_of_the_definition():
    codes = simulate(120, SCALE, seed=2, missing=0.1)
    found = fit_steps(collect_steps(codes), "rating-scale")

    def place(free):
        location = np.append(free[:3], -free[:3].sum())
        return location[:, None] + np.array([-free[3], free[3]])

    best = minimize(lambda free: -log_likelihood(codes, place(free)), np.zeros(4), tol=1e-12)
    assert found.threshold == pytest.approx(place(best.x), abs=1e-4)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-8)
    distance = found.threshold - found.location[:, None]
    assert distance == pytest.approx(np.tile(distance[:1], (4, 1)), abs=1e-12)
    assert found.free == 4


@pytest.mark.parametrize("model", MODELS)
def test_one_step_is_the_rasch_model(model):
    codes = simulate(300, np.linspace(-1, 1, 7)[:, None], seed=3, missing=0.2)
    found = fit_steps(collect_steps(codes), model)
    binary = find_maximum(discreet.Responses.from_array(codes))
    assert found.threshold[:, 0] == pytest.approx(binary.location, abs=1e-10)
    assert found.covariance == pytest.approx(binary.covariance, abs=1e-10)
    assert found.log_likelihood == pytest.approx(binary.log_likelihood, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_thresholds_are_recovered_within_their_errors(model):
    rng = np.random.default_rng(4)
    truth = rng.normal(size=(12, 1)) + np.array([-1.0, 0.0, 1.0])
    found = fit_steps(collect_steps(simulate(4000, truth, seed=5, missing=0.2)), model)
    z = (found.threshold - truth + truth.mean()) / found.se
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
    assert np.abs(z).max() < 4


def test_at_the_maximum_reached_steps_are_as_expected():
    answers = collect_steps(simulate(200, MIXED, seed=6, missing=0.1))
    found = fit_steps(answers)
    threshold = np.where(np.isnan(found.threshold), np.inf, found.threshold)
    sums = evaluate_conditional(plan_batches(answers.patterns, threshold), threshold)
    assert sums.expected == pytest.approx(answers.observed, abs=1e-9)
    assert found.solution.residual < 1e-9


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_turning_all_scores_round_turns_the_thresholds_round(seed):
    codes = simulate(150, SCALE, seed=seed)
    turned = fit_steps(collect_steps(2 - codes, [2] * 4), "rating-scale")
    straight = fit_steps(collect_steps(codes, [2] * 4), "rating-scale")
    assert turned.threshold == pytest.approx(-straight.threshold[:, ::-1], abs=1e-8)
    assert turned.log_likelihood == pytest.approx(straight.log_likelihood, abs=1e-8)


def test_items_may_come_in_any_order():
    codes = simulate(200, MIXED, seed=7)
    one = fit_steps(collect_steps(codes))
    two = fit_steps(collect_steps(codes[:, ::-1]))
    assert two.threshold[::-1] == pytest.approx(one.threshold, abs=1e-9, nan_ok=True)
    assert two.se[::-1] == pytest.approx(one.se, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("model", MODELS)
def test_lowest_and_highest_scores_and_single_answers_change_nothing(model):
    codes = simulate(150, SCALE, seed=8, missing=0.1)
    more = np.full((4, 4), -1)
    more[0], more[1], more[2, 3], more[3, :2] = 2, 0, 1, 2
    one = fit_steps(collect_steps(codes), model)
    two = fit_steps(collect_steps(np.vstack([codes, more])), model)
    assert two.threshold == pytest.approx(one.threshold, abs=1e-9)
    assert two.covariance == pytest.approx(one.covariance, abs=1e-9)
    assert two.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-8)


def test_the_start_does_not_matter():
    answers = collect_steps(simulate(200, MIXED, seed=9))
    far = np.where(np.isnan(MIXED), np.nan, 3.0 * np.arange(9).reshape(3, 3) % 7 - 3)
    one, two = fit_steps(answers), fit_steps(answers, start=far)
    assert two.threshold == pytest.approx(one.threshold, abs=1e-9, nan_ok=True)


def test_locations_have_the_mean_zero_and_no_error_in_common():
    found = fit_steps(collect_steps(simulate(400, MIXED, seed=10)))
    assert found.location.mean() == pytest.approx(0, abs=1e-12)
    locations = Locations(np.nonzero(~np.isnan(found.threshold))[0], (2, 1, 3))
    covariance = locations.average(locations.average(found.covariance).T)
    assert covariance.sum() == pytest.approx(0, abs=1e-12)


def test_partial_credit_is_at_least_as_likely_as_the_rating_scale():
    answers = collect_steps(simulate(500, SCALE, seed=11))
    free, tied = fit_steps(answers), fit_steps(answers, "rating-scale")
    assert 0 < 2 * (free.log_likelihood - tied.log_likelihood) < 20
    assert free.free - tied.free == 3


# --- what is not determined ---------------------------------------------------------------------


def test_an_unused_category_is_refused_by_name_in_partial_credit():
    codes = simulate(200, SCALE, seed=12)
    codes[codes[:, 2] == 1, 2] = 2
    with refused(DisconnectedItems, "nobody_steps_around_unused", labels="item 3 category 1"):
        fit_steps(collect_steps(codes))
    codes[:, 1] = 0
    with refused(
        DisconnectedItems,
        "nobody_steps_around_unused",
        labels="item 3 category 1, item 2 (one category only)",
    ):
        fit_steps(collect_steps(codes))


def test_the_rating_scale_needs_a_category_in_some_item_only():
    codes = simulate(200, SCALE, seed=12)
    codes[codes[:, 2] == 1, 2] = 2
    found = fit_steps(collect_steps(codes), "rating-scale")
    assert np.isfinite(found.threshold).all()
    with refused(DisconnectedItems, "nobody_category_any_item", total="1"):
        fit_steps(collect_steps(np.where(codes == 1, 2, codes)), "rating-scale")


def test_a_rating_scale_has_the_same_steps_for_all_items():
    answers = collect_steps(simulate(100, MIXED, seed=13))
    with refused(
        BadUsage, "rating_scale_same_categories", n_short="2", n_steps="3", most_steps="3"
    ):
        fit_steps(answers, "rating-scale")


@pytest.mark.parametrize("model", MODELS)
def test_forms_without_a_common_item_are_refused(model):
    codes = simulate(300, np.vstack([SCALE, SCALE[:2]]), seed=14)
    codes[:150, 4:] = codes[150:, :4] = -1
    with pytest.raises(DisconnectedItems, match="item 5 step 1, item 5 step 2, item 6 step 1"):
        fit_steps(collect_steps(codes), model)


@pytest.mark.parametrize("model", MODELS)
def test_perfectly_ordered_answers_have_no_maximum(model):
    ladder = np.clip(np.arange(9)[:, None] - np.array([0, 2, 4, 6]), 0, 2)
    with refused(DisconnectedItems, "conditional_likelihood_answers_do"):
        fit_steps(collect_steps(np.repeat(ladder, 10, axis=0)), model)


def test_one_person_decides_whether_second_steps_are_tied_to_first_ones():
    # With the score 2 nobody is in the middle of both items: however low the second thresholds
    # are, nothing speaks against it.
    codes = np.repeat([[1, 0], [0, 1], [2, 0], [0, 2], [2, 1], [1, 2]], 10, axis=0)
    with pytest.raises(DisconnectedItems, match="item 1 step 2, item 2 step 2 relative"):
        fit_steps(collect_steps(codes))
    found = fit_steps(collect_steps(np.vstack([codes, [[1, 1]]])))
    # Symmetric items; of 21 persons with the score 2 one is in the middle: exp(d2 - d1) = 1 / 10.
    assert found.threshold == pytest.approx(np.array([[1, -1], [1, -1]]) * np.log(10) / 2, abs=1e-9)
    assert np.isfinite(found.se).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_intervals_cover_with_missing_answers(model):
    truth = np.linspace(-1, 1, 8)[:, None] + np.array([-0.9, 0.1, 0.8])
    inside = []
    for seed in range(200):
        found = fit_steps(collect_steps(simulate(400, truth, seed, missing=0.3)), model)
        inside.append(np.abs(found.threshold - truth + truth.mean()) < 1.96 * found.se)
    assert 0.935 < np.mean(inside) < 0.965
