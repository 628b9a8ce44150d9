"""Probabilities of categories, and answers brought to the categories of an estimate."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from scipy.optimize import minimize
from scipy.special import expit

import discreet
from commandline import discreet as run
from discreet.analysis import run_andersen
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.models.categories import match_categories
from discreet.results.chances import (
    category_chances,
    expected_scores,
    score_moments,
    score_variances,
)
from refusals import refused
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
    with refused(
        BadResponses,
        "item_category_calibration_knows",
        item="1",
        category="2 answers",
        category_2="3",
        categories="0, 1, 2",
    ):
        match_categories(hold_codes(codes, (1, 3, 1)), estimate)


def test_scores_are_refused_by_an_estimate_of_right_and_wrong():
    estimate = discreet.fit(hold_codes(draw_codes(6, 400, (1, 1, 1)), (1, 1, 1)))
    with refused(BadResponses, "item_category_calibration_knows", categories="0, 1"):
        match_categories(hold_codes(np.array([[0, 2, 1]]), (1, 2, 1)), estimate)


def test_right_and_wrong_answers_are_returned_as_they_are():
    answers = hold_codes(draw_codes(6, 400, (1, 1, 1)), (1, 1, 1))
    assert match_categories(answers, discreet.fit(answers)) is answers


# -- categories that are kept although nobody is in them -----------------------------------------


def draw_with_gap(gap=(2,), persons=400, seed=1):
    """Four items in categories 0 to 4; nobody is in some categories of the second."""
    rng = np.random.default_rng(seed)
    ability, location = rng.normal(0, 1, persons), np.array([-0.4, 0.1, 0.0, 0.3])
    threshold = location[:, None] + np.array([-1.2, -0.3, 0.4, 1.1])
    weight = np.exp(np.cumsum(ability[:, None, None] - threshold, axis=2))
    chance = np.concatenate([np.ones((persons, 4, 1)), weight], axis=2)
    chance = np.cumsum(chance / chance.sum(axis=2, keepdims=True), axis=2)
    codes = (rng.random((persons, 4, 1)) > chance[:, :, :-1]).sum(axis=2)
    for category in sorted(gap, reverse=True):
        codes[codes[:, 1] == category, 1] = min(gap) - 1
    return codes


def log_likelihood_with_gap(free, codes, gap):
    """Conditional log-likelihood, written again: the generating function has no such terms."""
    polynomials = []
    for item, row in enumerate(np.split(free, np.cumsum([4, 4 - len(gap), 4]))):
        used = [k for k in range(5) if item != 1 or k not in gap]
        own = row if item < 3 else np.append(row, 0.0)
        polynomial = np.zeros(5)
        polynomial[used] = np.exp(-np.append(0.0, np.cumsum(own)))
        polynomials.append(polynomial)
    total = np.ones(1)
    for polynomial in polynomials:
        total = np.convolve(total, polynomial)
    chosen = sum(np.log(polynomials[i][codes[:, i]]) for i in range(4))
    return float((chosen - np.log(total[codes.sum(axis=1)])).sum())


@pytest.mark.parametrize("gap", [(2,), (2, 3), (1,)])
def test_a_kept_category_has_the_likelihood_of_an_item_without_it(gap):
    codes = draw_with_gap(gap)
    estimate = discreet.fit(codes, keep_categories=True)
    size = 4 + (4 - len(gap)) + 4 + 3
    best = minimize(
        lambda free: -log_likelihood_with_gap(free, codes, gap),
        np.zeros(size),
        options={"gtol": 1e-8},
    )
    parts = np.split(best.x, np.cumsum([4, 4 - len(gap), 4]))
    parts[3] = np.append(parts[3], 0.0)
    location = np.array([part.sum() / 4 for part in parts])
    np.testing.assert_allclose(estimate.difficulty, location - location.mean(), atol=1e-5)
    around = slice(min(gap) - 1, max(gap) + 1)
    step = parts[1][min(gap) - 1] - (len(gap) + 1) * location.mean()
    assert estimate.thresholds[1, around].sum() == pytest.approx(step, abs=1e-5)
    assert estimate.status[1] == "estimated"
    assert estimate.ladder.status[1][around] == ("unused_category",) * (len(gap) + 1)
    assert set(estimate.ladder.status[0]) == {"estimated"}
    assert [warning.kind for warning in estimate.warnings] == ["kept_category"]
    assert np.isfinite(estimate.threshold_se).all()


def test_categories_that_are_kept_keep_their_scores():
    codes = draw_with_gap()
    kept, left = (
        discreet.fit(codes, keep_categories=True),
        discreet.fit(codes, method="conditional"),
    )
    assert kept.ladder.kept[1] == (0, 1, 2, 3, 4)
    assert left.ladder.kept[1] == (0, 1, 3, 4)
    assert not np.allclose(kept.difficulty, left.difficulty, atol=0.01)
    chance = kept.predict_proba(0.0, "1")
    assert chance[2] < 1e-8
    assert chance.sum() == pytest.approx(1.0)
    # What nobody keeps: the ends of an item, which no finite threshold describes.
    top = np.minimum(codes, [[4, 4, 3, 4]])
    ends = discreet.fit(top, keep_categories=True, steps=4)
    assert ends.ladder.kept[2] == (0, 1, 2, 3)
    same = draw_with_gap(gap=())
    plain = discreet.fit(same, method="conditional").thresholds
    np.testing.assert_array_equal(discreet.fit(same, keep_categories=True).thresholds, plain)


def test_kept_categories_work_with_weights_and_not_with_pairs_or_anchors():
    codes = draw_with_gap()
    weight = np.random.default_rng(0).integers(1, 4, len(codes))
    table = pa.table({"w": weight, **{f"q{i}": codes[:, i] for i in range(4)}})
    weighted = discreet.fit(table, weight="w", keep_categories=True)
    again = discreet.fit(np.repeat(codes, weight, axis=0), keep_categories=True)
    np.testing.assert_allclose(weighted.thresholds, again.thresholds, atol=1e-8)
    with refused(BadUsage, "keep_categories_keep_categories"):
        discreet.fit(codes, keep_categories=True, anchors={"0": [-1.0, 0.0, 0.5, 1.0]})
    with refused(BadUsage, "keep_categories_keep_categories_method"):
        discreet.fit(codes, keep_categories=True, method="refined")


def test_kept_categories_are_scored_reported_and_saved(tmp_path):
    codes = draw_with_gap()
    path, results = tmp_path / "answers.csv", tmp_path / "results"
    frame = pa.table({f"q{i}": codes[:, i] for i in range(4)})
    csv.write_csv(frame, path)
    document = run("fit", str(path), "--keep-categories", "--out", str(results), "--json").document
    estimate = discreet.fit(codes, keep_categories=True)
    found = [row["difficulty"] for row in document["items"]]
    np.testing.assert_allclose(found, estimate.difficulty, atol=1e-6)
    scores = run("score", str(path), "--with", str(results), "--json").document
    expected = discreet.score(codes, estimate).ability
    np.testing.assert_allclose([row["ability"] for row in scores["persons"]], expected, atol=1e-4)
    page = (results / "report.confidential.html").read_text()
    assert "20.9" not in page.split("All items")[0]  # pictures stay where persons are
    estimate.save(tmp_path / "estimate.json")
    loaded = discreet.load(tmp_path / "estimate.json")
    assert loaded.ladder.status == estimate.ladder.status


def test_groups_are_compared_with_the_categories_that_the_fit_keeps():
    codes = draw_with_gap()
    groups = np.array(["a", "b"])[np.arange(len(codes)) % 2]
    keep, parts = {"keep_categories": True}, [codes[groups == label] for label in "ab"]
    fits = [discreet.fit(part, **keep) for part in parts]
    table = discreet.find_dif(codes, groups, anchors=["0", "2"], reference="a", **keep)
    difference = fits[1].difficulty - fits[0].difficulty
    expected = difference - difference[[0, 2]].mean()
    np.testing.assert_allclose(table.difference, expected, atol=1e-9)
    assert set(table.status) == {"compared"}

    def best(part):
        start = np.zeros(4 + 3 + 4 + 3)
        return -minimize(lambda free: -log_likelihood_with_gap(free, part, (2,)), start).fun

    andersen = run_andersen(codes, groups, **keep)
    gain = sum(map(best, parts)) - best(codes)
    assert andersen.statistic == pytest.approx(2 * gain, abs=1e-4)
    assert andersen.degrees == 4 + 3 + 4 + 3
    renumbered = run_andersen(codes, groups)
    assert (renumbered.degrees, renumbered.items) == (andersen.degrees, andersen.items)
    assert abs(renumbered.statistic - andersen.statistic) > 0.01
    split = discreet.find_dif(codes, groups, test="likelihood-ratio", **keep)
    assert split.omnibus.degrees.tolist() == [4, 3, 4, 4]
    assert set(split.status) == {"compared"}
    steps = discreet.find_dif(codes, groups, by_step=True, **keep)
    named = dict(zip(zip(steps.item, steps.step, strict=True), steps.status, strict=True))
    assert named["1", 2] == "unused_category in a, unused_category in b"
    assert named["1", 1] == "compared"
    with refused(BadUsage, "keep_categories_keep_categories_method"):
        discreet.find_dif(codes, groups, method="refined", **keep)


def test_a_group_that_lacks_a_category_has_a_location_where_it_is_kept(tmp_path):
    codes = draw_with_gap(gap=())
    groups = np.array(["a", "b"])[np.arange(len(codes)) % 2]
    lacking = (groups == "b") & (codes[:, 1] == 2)
    codes, groups = codes[~lacking], groups[~lacking]
    left = discreet.find_dif(codes, groups)
    assert left.status[1] == "no answers in category 2 in b"
    kept = discreet.find_dif(codes, groups, keep_categories=True)
    assert kept.status[1] == "compared"
    assert np.isfinite(kept.difference[1])
    frame = pa.table({"g": groups, **{f"q{i}": codes[:, i] for i in range(4)}})
    csv.write_csv(frame, tmp_path / "answers.csv")
    printed = run(
        *("dif", str(tmp_path / "answers.csv"), "--group", "g", "--keep-categories", "--json")
    )
    rows = printed.document["items"]
    np.testing.assert_allclose([row["difference"] for row in rows], kept.difference, atol=1e-6)
    weighted = pa.table({"w": [1.0] * len(codes), **{n: frame[n] for n in frame.column_names}})
    answers = Responses.from_dataframe(weighted, group=["w", "g"]).weigh(weight="w")
    design = discreet.find_dif(answers, "g", keep_categories=True)
    same = np.array(design.anchor == kept.anchor).all()
    assert same
    np.testing.assert_allclose(design.difference, kept.difference, atol=1e-8)
    test = run_andersen(answers, "g", keep_categories=True)
    assert "q1" in test.excluded
    assert np.isfinite(test.p_value)
