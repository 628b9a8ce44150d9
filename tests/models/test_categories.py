"""Probabilities of categories, and answers brought to the categories of an estimate."""

import numpy as np
import pytest
from scipy.special import expit

import discreet
from discreet.answers.pack import store_codes
from discreet.errors import BadResponses
from discreet.models.item_parameters import match_categories
from discreet.results.thresholds import (
    category_chances,
    expected_scores,
    score_moments,
    score_variances,
)
from stepped import chances, draw_codes, draw_thresholds

STEPS = (1, 3, 2, 4)


def hold_codes(codes, steps, items=None):
    return discreet.Responses.from_store(store_codes(codes, steps), items)


def test_chances_are_those_of_the_partial_credit_model():
    thresholds = draw_thresholds(np.random.default_rng(1), STEPS)
    ability = np.linspace(-4, 4, 9)
    found = category_chances(ability, thresholds)
    for item, most in enumerate(STEPS):
        direct = chances(ability, thresholds[item, :most])
        np.testing.assert_allclose(found[:, item, : most + 1], direct, rtol=1e-13)
        assert (found[:, item, most + 1 :] == 0).all()


def test_one_step_is_the_logistic_curve_however_far_away():
    ability, b = np.array([-700.0, -40, -1, 0, 2, 40, 700]), np.array([-0.5, 1.0])
    away = ability[:, None] - b
    np.testing.assert_allclose(expected_scores(ability, b[:, None]), expit(away), rtol=1e-13)
    variance = expit(away) * expit(-away)
    np.testing.assert_allclose(score_variances(ability, b[:, None]), variance, rtol=1e-9)


def test_moments_are_the_derivatives_of_the_mean():
    thresholds = draw_thresholds(np.random.default_rng(2), STEPS)
    ability, h = np.linspace(-3, 3, 13), 1e-5
    low, here, high = (score_moments(ability + move, thresholds) for move in (-h, 0, h))
    np.testing.assert_allclose((high.mean - low.mean) / (2 * h), here.variance, atol=1e-9)
    np.testing.assert_allclose((high.variance - low.variance) / (2 * h), here.third, atol=1e-8)
    fourth = here.fourth - 3 * here.variance**2
    np.testing.assert_allclose((high.third - low.third) / (2 * h), fourth, atol=1e-8)


def test_an_item_without_thresholds_has_no_numbers():
    thresholds = np.array([[0.0, 1.0], [np.nan, np.nan]])
    assert np.isnan(category_chances([0.0], thresholds)[0, 1]).all()


def test_persons_may_have_items_of_their_own():
    thresholds = draw_thresholds(np.random.default_rng(3), STEPS)
    ability = np.array([-1.0, 0.5])
    own = thresholds[np.array([[0, 2], [3, 1]])]
    all_items = expected_scores(ability, thresholds)
    found = expected_scores(ability, own)
    np.testing.assert_allclose(found, [all_items[0, [0, 2]], all_items[1, [3, 1]]], rtol=1e-14)


def test_answers_lose_the_categories_that_the_estimate_has_not():
    codes = draw_codes(4, 400, (3, 3, 3))
    codes[codes[:, 1] == 1, 1] = 2
    answers = hold_codes(codes, (3, 3, 3))
    estimate = discreet.fit(answers)
    assert estimate.steps == (3, 2, 3)
    matched = match_categories(answers, estimate)
    expected = codes.copy()
    expected[:, 1] = np.array([0, -1, 1, 2])[codes[:, 1]]
    assert matched.steps == estimate.steps
    np.testing.assert_array_equal(matched.to_array(), expected)


def test_answers_below_the_top_get_the_steps_of_the_estimate():
    estimate = discreet.fit(hold_codes(draw_codes(5, 400, STEPS), STEPS))
    few = np.array([[0, 1, 1, 1], [1, 0, 0, -1], [-1, 1, 1, 0]])
    matched = match_categories(hold_codes(few, (1, 1, 1, 1)), estimate)
    assert matched.steps == STEPS
    np.testing.assert_array_equal(matched.to_array(), few)


def test_items_are_matched_by_name_and_others_are_left_alone():
    estimate = discreet.fit(hold_codes(draw_codes(5, 400, STEPS), STEPS, "abcd"))
    codes = np.array([[5, 2, 0], [0, 1, 1]])
    matched = match_categories(hold_codes(codes, (5, 2, 1), "xba"), estimate)
    assert matched.steps == (5, 3, 1)
    np.testing.assert_array_equal(matched.to_array(), codes)


def test_a_category_that_the_estimate_never_saw_is_refused():
    estimate = discreet.fit(hold_codes(draw_codes(5, 400, (2, 2, 2)), (2, 2, 2)))
    codes = np.array([[0, 3, 1], [1, 3, 0]])
    with pytest.raises(BadResponses, match=r"'1' has 2 answers in category 3, .* 0, 1, 2 only"):
        match_categories(hold_codes(codes, (1, 3, 1)), estimate)


def test_scores_are_refused_by_an_estimate_of_right_and_wrong():
    estimate = discreet.fit(hold_codes(draw_codes(6, 400, (1, 1, 1)), (1, 1, 1)))
    with pytest.raises(BadResponses, match="knows its categories 0, 1 only"):
        match_categories(hold_codes(np.array([[0, 2, 1]]), (1, 2, 1)), estimate)


def test_right_and_wrong_answers_are_returned_as_they_are():
    answers = hold_codes(draw_codes(6, 400, (1, 1, 1)), (1, 1, 1))
    assert match_categories(answers, discreet.fit(answers)) is answers
