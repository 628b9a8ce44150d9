"""Pictures of items with steps: what they show is what the result says."""

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.errors import BadUsage
from discreet.figures import category_plot, curve_plot, threshold_plot
from discreet.items.curves import bin_answers, item_curves, mark_disordered, threshold_rows
from discreet.report.drawings import draw_categories, draw_curve, draw_thresholds, draw_wright
from discreet.report.pictures import PICTURE_ITEMS, wright_map
from refusals import refused
from stepped import chances, hold


@pytest.fixture(scope="module")
def made():
    responses, _ = hold(3, 800, (3, 2, 3, 1, 3))
    return responses, discreet.fit(responses)


def disorder(estimate, item=0):
    """Return the estimate with the first two thresholds of an item in the wrong order."""
    value = estimate.thresholds.copy()
    value[item, :2] = sorted(value[item, :2], reverse=True)
    return replace(estimate, ladder=replace(estimate.ladder, value=value))


def test_groups_of_persons_are_counted_category_by_category():
    responses, _ = hold(5, 300, (2, 3), missing=0.2)
    codes, ability = responses.to_array(), np.random.default_rng(0).normal(size=300)
    binned = bin_answers(responses, ability, 3)
    order = np.searchsorted(np.quantile(ability, [1 / 3, 2 / 3]), ability)
    for group in range(3):
        mine = codes[order == group]
        for item in range(2):
            own = mine[:, item][mine[:, item] >= 0]
            assert binned.chosen[group, item].tolist() == np.bincount(own, minlength=4).tolist()
            assert binned.trace_curve(str(item))[group][1] == own.mean()
            share = np.bincount(own, minlength=4) / len(own)
            assert np.allclose(binned.trace_shares(str(item))[group], share)


def test_curves_are_those_of_the_model(made):
    _, estimate = made
    (curve,) = item_curves(estimate, ["2"])
    ability = np.linspace(-3, 3, 7)
    expected = chances(ability, estimate.thresholds[2])
    assert np.allclose(curve.expect_categories(ability), expected)
    assert np.allclose(curve.expect(ability), expected @ np.arange(4))
    assert np.isclose(curve.difficulty, estimate.difficulty[2])


def test_an_interval_of_a_mean_score_has_a_width_where_all_answer_alike():
    responses, _ = hold(3, 800, (3, 3))
    (curve,) = item_curves(discreet.fit(responses), ["1"])
    seen = replace(curve, points=((0.0, 3.0, 20),), shares=((0.0, 0.0, 0.0, 1.0),))
    _, mean, lower, upper = seen.observe()
    assert mean[0] == 3
    assert 2 < lower[0] < 3
    assert upper[0] == 3


def test_curves_of_neighbours_cross_at_the_threshold(made):
    _, estimate = made
    axes = category_plot(estimate, "2")
    lines = [line for line in axes.lines if line.get_label() in "0123"]
    for step, threshold in enumerate(estimate.thresholds[2]):
        below, above = (np.interp(threshold, *one.get_data()) for one in lines[step : step + 2])
        assert abs(below - above) < 0.01


def test_expected_scores_reach_up_to_the_highest_category(made):
    _, estimate = made
    axes = curve_plot(estimate, ["0", "3"])
    assert axes.get_ylim()[1] > 3
    assert axes.lines[0].get_ydata().max() > 2.8
    assert axes.lines[1].get_ydata().max() <= 1
    assert axes.get_ylabel() == "expected score"


def test_every_threshold_stands_in_its_items_row_with_its_interval(made):
    _, estimate = made
    axes = threshold_plot(estimate, level=0.8)
    order = np.argsort(-estimate.difficulty)
    assert [one.get_text() for one in axes.get_yticklabels()] == [estimate.items[i] for i in order]
    marked = [one for one in axes.lines if len(one.get_xdata())]
    drawn = {(int(y), float(x)) for line in marked for x, y in zip(*line.get_data(), strict=True)}
    expected = {
        (row, float(value))
        for row, i in enumerate(order)
        for value in estimate.thresholds[i]
        if not np.isnan(value)
    }
    assert drawn == expected
    rows = threshold_rows(estimate, 0.8)
    interval = estimate.threshold_interval(0.8)[order]
    assert np.array_equal(rows.upper, interval[:, :, 1], equal_nan=True)


def test_thresholds_in_the_wrong_order_are_marked_and_no_others(made):
    _, estimate = made
    rows = threshold_rows(disorder(estimate))
    marks = dict(zip(rows.items, rows.disordered, strict=True))
    assert marks["0"] == (True, True, False)
    own = estimate.thresholds
    assert all(any(marks[str(i)]) == bool((np.diff(own[i]) < 0).any()) for i in range(1, 5))
    assert mark_disordered(np.array([1.0, np.nan])) == (False, False)
    sheet = draw_thresholds(rows)
    flagged = [one for one in sheet.marks if one.attributes.get("class") == "node flag"]
    assert len(flagged) == sum(map(sum, rows.disordered))


def test_a_page_shows_no_more_items_than_anyone_scrolls(made):
    _, estimate = made
    rows = threshold_rows(estimate)
    many = rows.take(np.arange(len(rows.items)).repeat(20))
    sheet = draw_thresholds(many)
    assert sheet.note == f"{PICTURE_ITEMS} of 100 items, evenly chosen by rank."


def test_the_wright_map_shows_every_threshold_by_name_and_step(made):
    _, estimate = made
    shown = wright_map(estimate, [-0.25, 0], [10, 20], persons=30, mean=0.1)
    assert len(shown.names) == sum(estimate.steps)
    own = dict(zip(shown.names, shown.difficulty, strict=True))
    assert own["2.3"] == estimate.thresholds[2, 2]
    assert own["3.1"] == estimate.thresholds[3, 0]
    sheet = draw_wright(shown)
    assert "thresholds of 5 items" in sheet.description
    assert any(mark.words == "12 thresholds" for mark in sheet.marks)


def test_a_long_name_on_the_wright_map_keeps_its_step(made):
    _, estimate = made
    names = tuple(f"a very long question about everything, number {i}" for i in range(5))
    shown = wright_map(replace(estimate, items=names), [0], [9], persons=9, mean=0)
    words = [mark.words for mark in draw_wright(shown).marks if "very" in mark.words]
    assert words
    assert all("…." in one for one in words)


def test_small_pictures_have_a_line_for_every_category(made):
    _, estimate = made
    (curve,) = item_curves(estimate, ["2"])
    lines = [one for one in draw_categories(curve).marks if one.tag == "polyline"]
    assert len(lines) == 4
    assert draw_curve(curve).y == (0, 3)


def test_an_item_without_a_number_has_no_curve(made):
    _, estimate = made
    with refused(BadUsage, "no_item_estimate_items", unknown="x"):
        category_plot(estimate, "x")


def test_observed_shares_are_those_of_groups_of_persons_of_similar_ability(made):
    responses, estimate = made
    scores = discreet.score(responses, estimate)
    axes = category_plot(estimate, "2", responses=responses, scores=scores, groups=4)
    ability = np.where(scores.extreme, np.nan, scores.ability)
    known = np.isfinite(ability)
    cuts = np.quantile(ability[known], [0.25, 0.5, 0.75])
    group = np.searchsorted(cuts, ability[known])
    codes = responses.to_array()[known, 2]
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    for category, line in enumerate(points):
        shares = [(codes[group == one] == category).mean() for one in range(4)]
        assert np.allclose(line.get_ydata(), shares)
    (curve,) = item_curves(estimate, ["2"], responses, scores, 4)
    expected = curve.expect(np.array([point[0] for point in curve.points]))
    assert np.abs([point[1] for point in curve.points] - expected).max() < 0.2
