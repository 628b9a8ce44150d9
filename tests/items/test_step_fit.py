"""How well items with steps, their categories and persons fit."""

import warnings

import numpy as np
import pytest

import discreet
from discreet.analysis import (
    check_model,
    compare_step_models,
    correlate_residuals,
    find_dimensions,
    find_mislabelled,
    measure_alpha,
    measure_fit,
    run_andersen,
)
from discreet.answers.pack import store_codes
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.residuals import prepare
from discreet.items.study import diagnose
from discreet.items.tables import list_study_tables
from discreet.results.chances import category_chances, score_moments, slope_terms
from refusals import refused
from stepped import draw_answers, draw_thresholds, hold

STEPS = (1, 3, 2, 4)


@pytest.fixture(scope="module")
def true():
    """Many persons who answer as the model says, and the truth about the items."""
    rng = np.random.default_rng(11)
    steps = (1, 3, 2, 4, 3, 2) * 8
    thresholds = draw_thresholds(rng, steps)
    codes = draw_answers(rng, 1500, thresholds, missing=0.1)
    answers = discreet.Responses.from_store(store_codes(codes, steps))
    rows = ([value for value in row if not np.isnan(value)] for row in thresholds.tolist())
    return answers, {str(item): row for item, row in enumerate(rows)}


def test_residuals_have_mean_zero_and_the_variance_of_the_model(true):
    answers, known = true
    total, square, variance, count = 0.0, 0.0, 0.0, 0.0
    for chunk in prepare(answers, known, "warm").chunks():
        total += chunk.residual.sum(axis=0)
        square += (chunk.residual**2).sum(axis=0)
        variance += chunk.variance.sum(axis=0)
        count += chunk.answered.sum(axis=0)
    assert (np.abs(total) < 4 * np.sqrt(variance)).all()
    assert (np.abs(square / variance - 1) < 0.15).all()
    assert (square / variance).mean() < 1  # abilities are fitted to the same answers


def test_mean_squares_are_near_one_where_the_model_holds(true):
    answers, known = true
    fit = measure_fit(answers, known)
    for name in ("infit", "outfit", "discrimination"):
        assert np.quantile(np.abs(getattr(fit.items, name) - 1), 0.9) < 0.2
    for name in ("infit", "outfit"):
        assert np.nanmedian(getattr(fit.persons, name)) == pytest.approx(1, abs=0.1)
    difference = fit.items.point_measure - fit.items.point_measure_expected
    assert (np.abs(difference) < 0.05).all()


def test_categories_are_as_expected_where_the_model_holds(true):
    answers, known = true
    table = measure_fit(answers, known).categories
    assert table.item == tuple(item for item, row in known.items() for _ in range(len(row) + 1))
    assert (np.abs(table.mean_ability - table.expected_ability) < 0.25).all()
    for square in (table.infit, table.outfit):
        assert np.median(square) == pytest.approx(1, abs=0.05)
        assert np.quantile(np.abs(square - 1), 0.9) < 0.25
    by_item = np.split(table.mean_ability, np.flatnonzero(table.category == 0)[1:])
    assert all((np.diff(one) > 0).all() for one in by_item)
    assert np.isnan(table.threshold[table.category == 0]).all()
    assert np.array_equal(table.threshold[table.category > 0], np.concatenate([*known.values()]))


def test_categories_are_those_of_the_definition():
    answers, _ = hold(12, 300, STEPS, missing=0.2)
    estimate = discreet.fit(answers)
    prepared = prepare(answers, estimate, "ml")
    found = measure_fit(answers, estimate).categories
    used, codes = prepared.used, answers.to_array()
    ability = prepared.scores.ability[used]
    for item, most in enumerate(STEPS):
        code = codes[used, item]
        given, theta = code[code >= 0], ability[code >= 0]
        share = category_chances(theta, estimate.thresholds[item : item + 1])[:, 0]
        moments = score_moments(theta, estimate.thresholds[item : item + 1])
        mean, variance = moments.mean[:, 0], moments.variance[:, 0]
        for category in range(most + 1):
            row = found.item.index(str(item)) + category
            squared = (category - mean) ** 2
            inside = given == category
            everybody = codes[codes[:, item] >= 0, item] == category
            assert found.answers[row] == everybody.sum()
            assert found.share[row] == pytest.approx(everybody.mean())
            assert found.answers_without_extremes[row] == inside.sum()
            assert found.mean_ability[row] == pytest.approx(theta[inside].mean())
            expected = theta @ share[:, category] / share[:, category].sum()
            assert found.expected_ability[row] == pytest.approx(expected)
            infit = squared[inside].sum() / (squared @ share[:, category])
            assert found.infit[row] == pytest.approx(infit)
            ratio = squared / variance
            outfit = ratio[inside].sum() / (ratio @ share[:, category])
            assert found.outfit[row] == pytest.approx(outfit)
    known = ~np.isnan(estimate.threshold_se)
    np.testing.assert_array_equal(found.se[~np.isnan(found.se)], estimate.threshold_se[known])


def test_left_out_categories_keep_their_numbers_in_the_table():
    answers, _ = hold(13, 300, (3, 3, 3))
    codes = answers.to_array()
    codes[codes[:, 1] == 1, 1] = 2
    answers = discreet.Responses.from_store(store_codes(codes, (3, 3, 3)))
    table = measure_fit(answers, discreet.fit(answers)).categories
    assert table.category.tolist() == [0, 1, 2, 3, 0, 2, 3, 0, 1, 2, 3]


def test_one_step_is_right_and_wrong():
    answers, _ = hold(14, 300, (1,) * 6, missing=0.1)
    known = dict(zip(answers.items, discreet.fit(answers).difficulty.tolist(), strict=True))
    codes = np.column_stack([answers.to_array(), np.full(300, -1)])
    wider = discreet.Responses.from_store(store_codes(codes, (*(1,) * 6, 2)))
    one, other = measure_fit(answers, known), measure_fit(wider, known | {"6": [-0.5, 0.5]})
    assert one.categories is None
    for name in ("infit", "infit_t", "outfit_t", "point_measure_expected", "discrimination"):
        wanted, found = getattr(one.items, name), getattr(other.items, name)
        np.testing.assert_allclose(found[:-1], wanted, atol=1e-9)
    np.testing.assert_allclose(other.persons.outfit, one.persons.outfit, atol=1e-9)
    q3 = [correlate_residuals(*pair).q3 for pair in ((answers, known), (wider, known | {"6": [0]}))]
    np.testing.assert_allclose(q3[0], q3[1][:-1, :-1], atol=1e-9)


def test_the_slope_is_the_derivative_of_the_likelihood():
    thresholds = draw_thresholds(np.random.default_rng(15), STEPS)
    ability, code, h = np.array([-1.0, 0.7]), np.array([[0, 3, 1, 2], [1, 0, 2, 4]]), 1e-5

    def look(slope):
        chance = category_chances(slope * ability, slope * thresholds)
        return np.log(np.take_along_axis(chance, code[..., None], axis=-1)[..., 0])

    pull, information = slope_terms(ability, thresholds, code)
    np.testing.assert_allclose(pull, (look(1 + h) - look(1 - h)) / (2 * h), atol=1e-8)
    second = (look(1 + 1e-4) - 2 * look(1) + look(1 - 1e-4)) / 1e-8
    np.testing.assert_allclose(information, -second, atol=1e-5)


def test_answers_that_depend_on_each_other_correlate(true):
    answers, _ = true
    codes = answers.to_array()
    copy = np.where(np.random.default_rng(1).random(len(codes)) < 0.5, codes[:, 4], codes[:, 6])
    codes[:, 6] = copy
    copied = discreet.Responses.from_store(store_codes(codes, answers.steps))
    rows = correlate_residuals(copied, discreet.fit(copied)).to_dict()
    assert {rows["item"][0], rows["other"][0]} == {"4", "6"}
    assert rows["excess"][0] > 0.15


def test_one_dimension_is_within_chance_and_two_are_not():
    rng = np.random.default_rng(16)
    thresholds = draw_thresholds(rng, (3,) * 12)
    one = draw_answers(rng, 800, thresholds)
    two = np.column_stack([one[:, :6], draw_answers(rng, 800, thresholds)[:, 6:]])
    for codes, several in ((one, False), (two, True)):
        answers = discreet.Responses.from_store(store_codes(codes, (3,) * 12))
        found = find_dimensions(answers, discreet.fit(answers), simulations=39)
        assert (found.beyond_chance > 0) is several
    assert {item for item, load in zip(found.items, found.loading, strict=True) if load > 0} in (
        set(map(str, range(6))),
        set(map(str, range(6, 12))),
    )
    assert found.correlation < 0.4


def test_andersen_leaves_out_items_that_lack_a_category_in_one_group():
    answers, _ = hold(20, 400, (2, 2, 2, 2))
    group = np.arange(400) % 2
    codes = answers.to_array()
    codes[(group == 1) & (codes[:, 2] == 2), 2] = 1
    answers = discreet.Responses.from_store(store_codes(codes, (2, 2, 2, 2)))
    with pytest.warns(UserWarning, match="lack a category: 2"):
        test = run_andersen(answers, group.astype(str))
    assert test.excluded == ("2",)
    assert test.degrees == 5
    rest = run_andersen(answers.select(["0", "1", "3"]), group.astype(str))
    assert test.statistic == pytest.approx(rest.statistic)


def test_andersen_names_the_items_that_a_group_does_not_determine():
    # With the score 2 nobody of the first group is in the middle of both items.
    loose = np.repeat([[1, 0], [0, 1], [2, 0], [0, 2], [2, 1], [1, 2]], 10, axis=0)
    tied = np.vstack([loose, [[1, 1]]])
    answers = discreet.Responses.from_array(np.vstack([loose, tied]), ["calm", "glad"])
    groups = np.repeat(["a", "b"], [len(loose), len(tied)])
    with refused(DisconnectedItems, "group_persons_use_larger", label="a") as caught:
        run_andersen(answers, groups)
    assert "item 'calm' step 2, item 'glad' step 2 relative" in caught.value.facts["error"]


def test_andersen_of_one_step_is_that_of_right_and_wrong():
    answers, _ = hold(21, 500, (1, 1, 1, 1))
    plain = run_andersen(answers)
    assert plain.degrees == 3
    assert run_andersen(answers, model="partial-credit").statistic == plain.statistic


def draw_rating_scales(times, persons):
    """Yield answers to five items that share the distances between steps."""
    thresholds = np.array([-0.8, -0.4, 0.0, 0.4, 0.8])[:, None] + [-0.7, 0.7]
    for seed in range(times):
        codes = draw_answers(np.random.default_rng(seed), persons, thresholds)
        yield discreet.Responses.from_store(store_codes(codes, (2,) * 5))


def test_andersen_has_its_law_where_the_model_holds():
    p_values = {"partial-credit": [], "rating-scale": []}
    for answers in draw_rating_scales(60, 400):
        for model, found in p_values.items():
            found.append(run_andersen(answers, np.arange(400) % 2, model=model).p_value)
    for found in p_values.values():
        assert abs(np.mean(found) - 0.5) < 4 * np.sqrt(1 / 12 / 60)
    degrees = run_andersen(answers, model="rating-scale").degrees
    assert degrees == 5  # four locations and one distance


def test_models_of_steps_differ_by_more_than_chance_only_where_they_do():
    p_values = [compare_step_models(one).p_value for one in draw_rating_scales(60, 300)]
    assert abs(np.mean(p_values) - 0.5) < 4 * np.sqrt(1 / 12 / 60)
    thresholds = np.array([[-1.5, 1.5], [-0.3, 0.3], [-1.0, 1.0], [0.2, -0.2]])
    codes = draw_answers(np.random.default_rng(1), 1000, thresholds)
    answers = discreet.Responses.from_store(store_codes(codes, (2,) * 4))
    assert compare_step_models(answers).p_value < 1e-6


def test_models_of_steps_need_steps_and_answers_in_all_categories():
    answers, _ = hold(1, 100, (1, 1, 1))
    with refused(BadUsage, "partial_credit_rating_scale"):
        compare_step_models(answers)
    answers, _ = hold(2, 400, (2, 2, 2))
    codes = answers.to_array()
    codes[codes[:, 1] == 2, 1] = 1
    answers = discreet.Responses.from_store(store_codes(codes, (2, 2, 2)))
    with pytest.warns(UserWarning, match="nobody is in one of their categories: 1"):
        assert compare_step_models(answers).items == ("0", "2")


def test_alpha_is_that_of_the_definition():
    answers, _ = hold(22, 200, STEPS, missing=0.05)
    codes = answers.to_array()
    codes = codes[(codes >= 0).all(axis=1)]
    inside = codes.var(axis=0).sum() / codes.sum(axis=1).var()
    found = measure_alpha(answers)
    assert found.alpha == pytest.approx(len(STEPS) / (len(STEPS) - 1) * (1 - inside))
    assert found.persons == len(codes)


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_a_check_of_steps_tests_all_that_makes_sense(model):
    answers, _ = hold(23, 400, (3,) * 8)
    with warnings.catch_warnings(action="ignore"):
        found = check_model(answers, discreet.fit(answers, model=model))
    verdicts = {test.name: test.verdict for test in found.tests}
    # 12 points in each half: 143 degrees of freedom are too many for 400 persons.
    assert verdicts["Martin-Löf"] == "not tested"
    wanted = "partial credit needed" if model == "partial-credit" else "worth a look"
    assert verdicts["steps"] == wanted
    assert verdicts["Andersen"] != "not tested"
    assert verdicts["dimensionality"] == "holds"
    assert found.study.alpha.alpha > 0.5


def test_a_study_of_steps_has_a_table_of_categories_and_none_of_labels():
    answers, _ = hold(24, 300, STEPS, missing=0.1)
    estimate = discreet.fit(answers)
    tables = {
        table.name: table for table in list_study_tables(estimate, diagnose(answers, estimate))
    }
    assert "labels" not in tables
    table = tables["categories"]
    assert table.rows == sum(STEPS) + len(STEPS)
    columns = ["item", "category", "answers", "share", "answers_without_extremes", "mean_ability"]
    assert list(table.columns)[:6] == columns


def test_what_is_for_right_and_wrong_answers_says_so():
    answers, _ = hold(25, 60, (2, 2, 2, 2))
    with refused(BadUsage, "right_wrong_answers_found"):
        find_mislabelled(answers, {})
