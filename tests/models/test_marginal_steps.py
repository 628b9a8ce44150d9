"""Marginal likelihood of items with steps: definition, right and wrong answers, conditional."""

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.answers.pack import store_codes
from discreet.counts.matrix import item_of_nodes
from discreet.errors import BadUsage, WarningKind
from discreet.models.categories import category_totals
from discreet.models.conditional import group_patterns
from discreet.models.marginal import (
    Mixture,
    evaluate_mixture,
    find_chances,
    information_about_difficulty,
)
from discreet.models.marginal.estimator import expand_patterns
from discreet.models.routing import look_for_routing
from refusals import refused
from stepped import chances, draw_answers, draw_thresholds, hold

STEPS = (1, 3, 2)


@pytest.fixture(scope="module")
def mixture():
    """Answers with steps and missing ones, at the true thresholds."""
    answers, thresholds = hold(1, 200, STEPS, missing=0.2)
    patterns = expand_patterns(group_patterns(answers.store, np.arange(3)), np.array(STEPS))
    totals = category_totals(answers.store)
    reached = np.concatenate(
        [totals[i, 1 : k + 1][::-1].cumsum()[::-1] for i, k in enumerate(STEPS)]
    )
    nodes = np.linspace(-6, 6, 61)
    weights = -(nodes**2) / 2 - np.log(np.exp(-(nodes**2) / 2).sum())
    node = thresholds[~np.isnan(thresholds)]
    made = Mixture(patterns, reached, node, 1.1, nodes, weights, item_of_nodes(STEPS))
    return answers, thresholds, made


def test_the_likelihood_is_that_of_the_definition(mixture):
    answers, thresholds, made = mixture
    total = 0.0
    for row in answers.to_array():
        likelihood = np.ones(len(made.nodes))
        for item, code in enumerate(row):
            if code >= 0:
                likelihood *= chances(made.abilities, thresholds[item, : STEPS[item]])[:, code]
        total += np.log(likelihood @ np.exp(made.log_weights))
    assert evaluate_mixture(made).log_likelihood == pytest.approx(total, rel=1e-12)


def test_gradient_and_information_are_its_derivatives(mixture):
    made, h = mixture[2], 1e-4

    def look(place, move):
        if place == len(made.difficulty):
            return evaluate_mixture(replace(made, sd=made.sd + move))
        difficulty = made.difficulty + move * (np.arange(len(made.difficulty)) == place)
        return evaluate_mixture(replace(made, difficulty=difficulty))

    sums = evaluate_mixture(made)
    information = information_about_difficulty(made, sums)
    for place, slope in enumerate([*sums.gradient, sums.gradient_sd]):
        low, high = look(place, -h), look(place, h)
        assert (high.log_likelihood - low.log_likelihood) / (2 * h) == pytest.approx(
            slope, abs=1e-5
        )
        ends = (np.append(one.gradient, one.gradient_sd) for one in (low, high))
        np.testing.assert_allclose(np.subtract(*ends) / (2 * h), information[place], atol=1e-5)


def test_one_step_is_right_and_wrong():
    """The quick way for one step finds what the general way finds beside an item of two steps."""
    abilities, b = np.linspace(-3, 3, 7), np.array([0.4, -1.0, 0.7])
    chance, load = find_chances(abilities, b, np.array([0, 1, 1]))
    quick = find_chances(abilities, b[:1], np.array([0]))
    np.testing.assert_allclose(quick[0][0], chance[0], rtol=1e-13)
    np.testing.assert_allclose(quick[1][0], load[0], rtol=1e-13)
    np.testing.assert_allclose(chance[0], 1 / (1 + np.exp(0.4 - abilities)), rtol=1e-13)


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_free_weights_reproduce_conditional_likelihood_on_complete_answers(model):
    answers, _ = hold(3, 600, (2,) * 4, common=True)
    wanted = discreet.fit(answers, method="conditional", model=model)
    found = discreet.fit(answers, method="marginal", ability="empirical", model=model)
    away = np.abs(found.thresholds - wanted.thresholds) / wanted.threshold_se
    assert away.max() < 0.1
    np.testing.assert_allclose(found.threshold_se, wanted.threshold_se, rtol=0.03)
    np.testing.assert_allclose(found.se, wanted.se, rtol=0.03)


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
@pytest.mark.parametrize("ability", ["normal", "empirical"])
def test_thresholds_and_their_errors_are_right_where_the_model_holds(model, ability):
    errors = []
    thresholds = draw_thresholds(np.random.default_rng(4), (3,) * 8, common=True)
    for seed in range(6):
        codes = draw_answers(np.random.default_rng(seed), 500, thresholds, missing=0.3)
        answers = discreet.Responses.from_store(store_codes(codes, (3,) * 8))
        found = discreet.fit(answers, method="marginal", ability=ability, model=model)
        assert found.model == model
        errors.append((found.thresholds - thresholds) / found.threshold_se)
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.25


def test_the_scale_has_mean_location_zero_and_the_notes_speak_of_it():
    rng = np.random.default_rng(5)
    thresholds = draw_thresholds(rng, (1, 4, 2, 3, 1, 2))
    codes = draw_answers(rng, 2000, thresholds + 0.7, spread=1.3)
    answers = discreet.Responses.from_store(store_codes(codes, (1, 4, 2, 3, 1, 2)))
    found = discreet.fit(answers, method="marginal")
    assert found.difficulty.mean() == pytest.approx(0, abs=1e-12)
    mean, sd = (float(word) for word in found.solution.notes[-1].split() if word[-1].isdigit())
    assert mean == pytest.approx(-0.7, abs=0.12)
    assert sd == pytest.approx(1.3, abs=0.1)


def test_a_rating_scale_shares_its_distances():
    answers, _ = hold(6, 400, (3,) * 5, common=True)
    found = discreet.fit(answers, method="marginal", model="rating-scale")
    distance = found.thresholds - found.difficulty[:, None]
    np.testing.assert_allclose(distance, np.broadcast_to(distance[0], distance.shape), atol=1e-12)
    assert np.isfinite(found.threshold_se).all()


def test_unused_categories_and_items_that_say_nothing_are_left_out():
    answers, _ = hold(7, 400, (2, 3, 2, 2))
    codes = answers.to_array()
    codes[codes[:, 1] == 1, 1] = 2
    codes[:, 3] = 0
    answers = discreet.Responses.from_store(store_codes(codes, (2, 3, 2, 2)))
    found = discreet.fit(answers, method="marginal")
    assert found.steps[:3] == (2, 2, 2)
    assert found.ladder.kept[1] == (0, 2, 3)
    assert np.isfinite(found.difficulty[:3]).all()
    assert np.isnan(found.difficulty[3])
    rest = discreet.fit(answers.select(["0", "1", "2"]), method="marginal")
    np.testing.assert_allclose(found.thresholds[:3], rest.thresholds, atol=1e-6)


def test_an_unknown_distribution_is_refused():
    answers, _ = hold(8, 50, (2, 2))
    with refused(BadUsage, "ability_must_one_found", distributions="normal, empirical"):
        discreet.fit(answers, method="marginal", ability="uniform")


def test_few_items_leave_empirical_standard_errors_near_the_conditional_ones():
    # Nine scores, sixty-one weights: most of them go to zero, and must not count as free.
    thresholds = np.array([[-1.4, 0.9], [-0.7, 0.7], [-3.6, -0.7], [-2.2, -0.4]])
    for seed in range(8):
        codes = draw_answers(np.random.default_rng(seed), 300, thresholds, spread=2.0)
        answers = discreet.Responses.from_array(codes)
        free = discreet.fit(answers, method="marginal", ability="empirical")
        exact = discreet.fit(answers, method="conditional")
        np.testing.assert_allclose(free.threshold_se, exact.threshold_se, rtol=0.1)


def draw_stages(*, by_score):
    """Six common items, then easier or harder ones: by the score on the first, or by ability."""
    rng = np.random.default_rng(4)
    where = np.linspace(-2, 2, 30)
    drawn = discreet.simulate(3000, 30, 1.0, difficulty=where, steps=(3,) * 30, rng=rng)
    codes = drawn.responses.to_array().astype(float)
    score = codes[:, 10:16].sum(axis=1)
    guess = drawn.ability + rng.normal(0, 0.5, len(codes))
    is_up = score > np.median(score) if by_score else guess > 0
    codes[is_up, :10] = np.nan
    codes[~is_up, 16:] = np.nan
    return discreet.Responses.from_array(codes), drawn.thresholds


def test_items_with_steps_that_the_score_chose_look_routed():
    answers, thresholds = draw_stages(by_score=True)
    assert look_for_routing(answers, np.arange(30), thresholds).core_p_value < 1e-10
    for method in ("conditional", "spectral"):
        warnings = discreet.fit(answers, method=method).warnings
        assert [one.kind for one in warnings] == [WarningKind.ROUTED]


def test_items_with_steps_that_were_targeted_by_ability_do_not_look_routed():
    answers, thresholds = draw_stages(by_score=False)
    assert not look_for_routing(answers, np.arange(30), thresholds).looks_routed
    assert not discreet.fit(answers, method="refined").warnings
