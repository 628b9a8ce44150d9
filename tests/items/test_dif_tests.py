"""Mantel-Haenszel, likelihood ratio and Wald tests of single items, several groups, bounds.

Textbook formulas are written here once more, stratum by stratum, from their sources.
"""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

import discreet
from commandline import discreet as run
from discreet.analysis import find_dif
from discreet.errors import BadUsage
from discreet.items import dif
from discreet.items.group_differences import Points, find_largest_error
from discreet.items.mantel_haenszel import compare_all, compare_two, match_scores
from discreet.results.estimate import two_sided_quantile
from refusals import refused
from sizes import is_chance, is_chance_by_study
from stepped import chances

UNEQUAL = np.array(
    [[[5, 9], [7, 2]], [[3, 14], [6, 11]], [[1, 8], [4, 3]], [[2, 0], [1, 3]], [[0, 4], [0, 2]]],
    dtype=float,
)
"""Strata of [reference, focal] by [wrong, right]; the last has nobody wrong."""


def draw_groups(persons, steps, seed, shift=0.0, impact=0.0, groups=2, missing=0.0):
    """Return answers of equally large groups; item 2 is harder for the second group."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(groups), persons)
    ability = rng.normal(size=len(label)) + impact * (label == 1)
    columns = []
    for item, most in enumerate(steps):
        own = np.linspace(-1, 1, len(steps))[item] + 0.6 * (np.arange(most) - (most - 1) / 2)
        column = np.zeros(len(label))
        for group in range(groups):
            mine = label == group
            moved = own + shift * (item == 2 and group == 1)
            share = chances(ability[mine], moved).cumsum(axis=1)
            column[mine] = (rng.random((mine.sum(), 1)) > share[:, :-1]).sum(axis=1)
        columns.append(column)
    table = np.stack(columns, axis=1)
    table[rng.random(table.shape) < missing] = np.nan
    return table, np.array(["a", "b", "c", "d"])[label]


# --- Mantel-Haenszel from a table of strata ------------------------------------------------------


def textbook_mantel_haenszel(table):
    """Holland and Thayer (1988): alpha, its error (Phillips and Holland 1987), chi-squared."""
    above = below = right = expected = variance = sum_pr = sum_mixed = sum_qs = 0.0
    for (b, a), (d, c) in table:  # wrong and right: reference a right, focal c right
        n = a + b + c + d
        if a + b == 0 or c + d == 0:
            continue
        above += a * d / n
        below += b * c / n
        right += a
        expected += (a + b) * (a + c) / n
        variance += (a + b) * (c + d) * (a + c) * (b + d) / (n**2 * (n - 1))
        p, q, r, s = (a + d) / n, (b + c) / n, a * d / n, b * c / n
        sum_pr, sum_mixed, sum_qs = sum_pr + p * r, sum_mixed + p * s + q * r, sum_qs + q * s
    error = sum_pr / (2 * above**2) + sum_mixed / (2 * above * below) + sum_qs / (2 * below**2)
    return log(above / below), sqrt(error), (abs(right - expected) - 0.5) ** 2 / variance


def test_two_groups_right_and_wrong_are_the_textbook_formulas():
    odds = compare_two(UNEQUAL)
    log_odds, se, statistic = textbook_mantel_haenszel(UNEQUAL)
    assert odds.log_odds == pytest.approx(log_odds, rel=1e-12)
    assert odds.se == pytest.approx(se, rel=1e-12)
    assert odds.statistic == pytest.approx(statistic, rel=1e-12)
    assert odds.log_odds > 0  # harder for the second group


def test_the_groups_in_the_other_order_turn_the_sign_only():
    odds, turned = compare_two(UNEQUAL), compare_two(UNEQUAL[:, ::-1])
    assert turned.log_odds == pytest.approx(-odds.log_odds)
    assert turned.se == pytest.approx(odds.se)
    assert turned.statistic == pytest.approx(odds.statistic)


def test_mantels_test_of_steps_is_the_textbook_formula():
    """Mantel (1963): sum of the focal scores against its mean and variance given the margins."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 7, (6, 2, 4)).astype(float)
    observed = expected = variance = 0.0
    for reference, focal in table:
        margin, score = reference + focal, np.arange(4)
        n, size = margin.sum(), focal.sum()
        observed += (score * focal).sum()
        expected += size * (score * margin).sum() / n
        inner = n * (score**2 * margin).sum() - (score * margin).sum() ** 2
        variance += reference.sum() * size / (n**2 * (n - 1)) * inner
    assert compare_two(table).statistic == pytest.approx((observed - expected) ** 2 / variance)


@pytest.mark.parametrize("shape", [(5, 2, 2), (6, 3, 2), (4, 2, 4), (7, 3, 3)])
def test_the_generalised_test_is_the_textbook_formula(shape):
    """Somes (1986): the multivariate hypergeometric law, cell by cell."""
    table = np.random.default_rng(sum(shape)).integers(1, 8, shape).astype(float)
    cells = [(g, c) for g in range(shape[1] - 1) for c in range(shape[2] - 1)]
    distance, covariance = np.zeros(len(cells)), np.zeros((len(cells), len(cells)))
    for stratum in table:
        n, rows, columns = stratum.sum(), stratum.sum(axis=1), stratum.sum(axis=0)
        for one, (g, c) in enumerate(cells):
            distance[one] += stratum[g, c] - rows[g] * columns[c] / n
            for two, (h, d) in enumerate(cells):
                left = rows[g] * (n * (g == h) - rows[h])
                right = columns[c] * (n * (c == d) - columns[d])
                covariance[one, two] += left * right / (n**2 * (n - 1))
    statistic, degrees = compare_all(table)
    assert degrees == (shape[1] - 1) * (shape[2] - 1)
    assert statistic == pytest.approx(distance @ np.linalg.solve(covariance, distance))


def test_a_category_that_nobody_is_in_costs_a_degree_of_freedom():
    table = np.random.default_rng(4).integers(1, 8, (5, 3, 4)).astype(float)
    table[:, :, 2] = 0
    assert compare_all(table)[1] == 2 * 2


def test_the_odds_ratio_of_steps_and_its_error_are_right_in_small_and_large_strata():
    """Thresholds shifted by 0.7: the estimate is near, and spreads as its error says."""
    rng = np.random.default_rng(2)
    for strata, size, runs in ((400, 3, 150), (4, 300, 150)):
        estimates = []
        for _ in range(runs):
            ability = rng.normal(size=strata)
            table = np.zeros((strata, 2, 4))
            for group, move in enumerate((0.0, 0.7)):
                share = chances(ability, np.array([-0.5, 0.1, 0.8]) + move)
                table[:, group] = rng.multinomial(size, share)
            estimates.append(compare_two(table))
        values = np.array([odds.log_odds for odds in estimates])
        errors = np.array([odds.se for odds in estimates])
        assert values.mean() == pytest.approx(0.7, abs=4 * values.std() / sqrt(runs) + 0.01)
        assert errors.mean() / values.std() == pytest.approx(1, abs=0.2)


def test_strata_are_the_answered_items_and_the_score_with_the_item():
    rows = np.array([[1, 0, 1], [0, 1, 1], [1, 1, np.nan], [1, 0, np.nan], [0, 1, np.nan]])
    answers = discreet.Responses.from_array(rows)
    group = np.array([0, 1, 0, 1, 0])
    first, _, third = (item.table for item in match_scores(answers, group, np.arange(3)))
    assert sorted(table.tolist() for table in first) == sorted(
        [[[0, 1], [1, 0]], [[0, 1], [0, 0]], [[1, 0], [0, 1]]]
    )
    assert third.shape == (1, 2, 2)
    # Only the second item counts beside the item itself.
    (alone,) = [
        table
        for table in next(match_scores(answers, group, np.array([1]))).table
        if table.sum() == 4
    ]
    assert alone.tolist() == [[1, 1], [1, 1]]


def test_groups_that_never_meet_are_not_compared():
    odds = compare_two(np.array([[[3.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 4.0]]]))
    assert np.isnan([odds.log_odds, odds.se, odds.statistic]).all()


# --- find_dif ------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(1,) * 8, (2,) * 8, (1, 3, 2, 1, 2, 3, 1, 2)])
def test_the_three_tests_find_the_same_item_and_about_the_same_difference(steps):
    rows, labels = draw_groups(500, steps, 3, shift=0.8, impact=0.4)
    for test in ("wald", "mantel-haenszel", "likelihood-ratio"):
        table = discreet.find_dif(rows, labels, test=test, reference="a", adjustment="holm")
        assert table.test == test
        assert table.confirmed[2]
        assert table.difference[2] == pytest.approx(0.9, abs=0.35)
        assert table.omnibus.p_value[2] < 1e-4
        assert table.ets[2] in ("B", "C")


@pytest.mark.parametrize("steps", [(1,) * 6, (2, 1, 3, 2, 1, 2)])
def test_the_likelihood_ratio_is_that_of_fits_with_the_item_split(steps):
    """Two fits by hand, of answers in which each group has a column of its own."""
    rows, labels = draw_groups(200, steps, 4, shift=0.5, groups=3)
    table = discreet.find_dif(rows, labels, test="likelihood-ratio", reference="b")
    apart = [np.where(labels == label, rows[:, 2], np.nan) for label in "abc"]
    split = np.column_stack([np.delete(rows, 2, axis=1), *apart])
    whole, parts = (discreet.Responses.from_array(one) for one in (rows, split))
    likelihood = [conditional_likelihood(one) for one in (whole, parts)]
    assert table.omnibus.statistic[2] == pytest.approx(
        2 * (likelihood[1] - likelihood[0]), rel=1e-6
    )
    assert table.omnibus.degrees[2] == 2 * steps[2]
    fitted = discreet.fit(parts, method="conditional")
    a, b, c = len(steps) - 1, len(steps), len(steps) + 1
    focal_a = [row for row, label in enumerate(table.focal) if label == "a"]
    assert table.difference[focal_a][2] == pytest.approx(
        fitted.difficulty[a] - fitted.difficulty[b], abs=1e-6
    )
    weight = np.zeros(len(fitted.items))
    weight[c], weight[b] = 1, -1
    se = sqrt(weight @ fitted.covariance @ weight)
    focal_c = [row for row, label in enumerate(table.focal) if label == "c"]
    assert table.se[focal_c][2] == pytest.approx(se, rel=1e-5)


def conditional_likelihood(answers):
    """Return the largest conditional likelihood, of all ways to get each person's score."""
    estimate = discreet.fit(answers, method="conditional")
    thresholds, cells = estimate.thresholds, answers.to_array()
    total = 0.0
    for row in cells:
        polynomial, own = np.ones(1), 0.0
        for steps, code in zip(thresholds, row, strict=True):
            if code < 0:
                continue
            weight = np.exp(-np.concatenate([[0.0], np.cumsum(steps[~np.isnan(steps)])]))
            polynomial = np.convolve(polynomial, weight)
            own += log(weight[code])
        total += own - log(polynomial[int(np.maximum(row, 0).sum())])
    return total


@pytest.mark.parametrize("test", ["wald", "mantel-haenszel", "likelihood-ratio"])
def test_several_groups_are_compared_jointly_and_in_pairs(test):
    rows, labels = draw_groups(300, (1,) * 7, 5, shift=1.0, groups=4)
    table = discreet.find_dif(rows, labels, test=test, reference="c")
    assert sorted(set(table.focal)) == ["a", "b", "d"]
    assert len(table.item) == 3 * 7
    assert set(table.omnibus.degrees.tolist()) == {3}
    assert np.argmin(table.omnibus.p_value) == 2
    pair = {focal: table.difference[row] for row, (item, focal) in
            enumerate(zip(table.item, table.focal, strict=True)) if item == "2"}  # fmt: skip
    assert pair["b"] > 0.6 > max(abs(pair["a"]), abs(pair["d"]))


def test_wald_of_all_groups_is_the_chi_squared_of_equal_locations():
    rows, labels = draw_groups(250, (1,) * 6, 6, groups=3)
    anchors = ["0", "3", "4"]
    table = discreet.find_dif(rows, labels, anchors=anchors)
    chosen = [0, 3, 4]
    values, errors = [], []
    for label in "abc":
        fitted = discreet.fit(discreet.Responses.from_array(rows[labels == label]))
        weight = np.eye(6)[1]
        weight[chosen] -= 1 / 3
        values.append(weight @ fitted.difficulty)
        errors.append(weight @ fitted.covariance @ weight)
    values, weight = np.array(values), 1 / np.array(errors)
    mean = (weight * values).sum() / weight.sum()
    assert table.omnibus.statistic[1] == pytest.approx((weight * (values - mean) ** 2).sum())
    assert table.omnibus.p_value[1] == pytest.approx(
        stats.chi2.sf(table.omnibus.statistic[1], 2), rel=1e-6
    )


@pytest.mark.parametrize(
    ("test", "studies", "size"), [("likelihood-ratio", 60, 0.05), ("mantel-haenszel", 250, 0.035)]
)
def test_sound_items_are_flagged_as_often_as_the_level_says(test, studies, size):
    """The continuity correction of Mantel-Haenszel makes it cautious: 3 to 4% instead of 5%."""
    shares = [
        discreet.find_dif(
            *draw_groups(200, (1,) * 10, 100 + seed, impact=0.5), test=test
        ).flagged.mean()
        for seed in range(studies)
    ]
    assert is_chance_by_study(shares, size)


def test_missing_answers_and_unlabelled_persons_are_allowed():
    rows, labels = draw_groups(300, (2, 1, 2, 1, 2, 1), 7, shift=1.2, missing=0.3)
    labels = labels.astype(object)
    labels[::10] = None
    for test in ("mantel-haenszel", "likelihood-ratio"):
        table = discreet.find_dif(rows, labels, test=test)
        assert int(np.nanargmax(np.abs(table.difference))) == 2
        assert sum(table.persons.values()) == 540


def test_an_item_that_one_group_always_gets_right_is_not_compared_by_its_thresholds():
    rows, labels = draw_groups(100, (1,) * 5, 8)
    rows[labels == "b", 1] = 1
    table = discreet.find_dif(rows, labels, test="likelihood-ratio")
    assert table.status[1] == "no answers in category 0 in one group"
    assert np.isnan(table.omnibus.statistic[1])
    assert table.status[0] == "compared"


# --- bounds, anchors, words ----------------------------------------------------------------------


def test_intervals_hold_for_all_items_together_where_anchors_are_stated():
    covered = []
    for seed in range(200):
        rows, labels = draw_groups(200, (1,) * 8, 200 + seed)
        table = discreet.find_dif(rows, labels, anchors=["0", "1", "6", "7"])
        covered.append(bool(((table.lower <= 0) & (table.upper >= 0)).all()))
        assert table.largest == np.maximum(-table.lower, table.upper).max()
    assert is_chance(200 - sum(covered), 200)


def test_the_width_lies_between_one_interval_and_bonferroni():
    rows, labels = draw_groups(200, (1,) * 8, 9, groups=3)
    table = discreet.find_dif(rows, labels, anchors=["0", "1", "6", "7"])
    factor = (table.upper - table.difference) / table.se
    assert np.ptp(factor) < 1e-9
    assert two_sided_quantile(0.05) < factor[0] < two_sided_quantile(0.05 / 16)


@pytest.mark.parametrize("level", [0.05, 0.2])
@pytest.mark.parametrize("degrees", [0, 5])
def test_one_contrast_is_as_wide_as_one_interval(level, degrees):
    """Of three items two are known exactly; with a design the law is Student's."""
    covariance = np.diag([0.04, 1e-14, 1e-14])
    points = [Points(label, np.zeros(3), covariance, ("estimated",) * 3) for label in "ab"]
    if degrees:
        deviation = np.random.default_rng(1).normal(size=(9, 3)) * [0.2, 1e-7, 1e-7]
        points = [replace(points[0], deviation=deviation, degrees=degrees),
                  replace(points[1], deviation=-deviation, degrees=degrees)]  # fmt: skip
    factor = find_largest_error(points, 0, np.array([False, True, True]), level)
    law = stats.t(degrees) if degrees else stats.norm()
    # From drawn errors: that of a quantile is about 2%.
    assert factor == pytest.approx(law.isf(level / 2), rel=0.07)


def test_chosen_anchors_give_no_bound_and_say_why():
    rows, labels = draw_groups(150, (1,) * 6, 10)
    chosen = discreet.find_dif(rows, labels)
    assert np.isnan(chosen.largest)
    assert "error rate of all rows together is not kept" in " ".join(chosen.describe())
    stated = discreet.find_dif(rows, labels, anchors=["0", "1", "2"])
    assert stated.caveats == ()
    assert "no item differs by more than" in " ".join(stated.describe())
    matched = discreet.find_dif(rows, labels, test="mantel-haenszel")
    assert np.isnan(matched.largest)
    assert "error rate of all rows together is not kept" in matched.caveats[0]
    assert "differ in slope" in matched.caveats[1]
    everything = discreet.find_dif(
        rows, labels, test="likelihood-ratio", anchors=[str(i) for i in range(6)]
    )
    assert "relative to the mean of all items" in everything.caveats[0]


#: p-values of R's mantelhaen.test and its log odds ratios, then twice the gain of eRm's RM() with
#: the item as two columns (eRm 1.0-2): of all items, and of items 0 and 4 without item 2.
REFERENCE = {
    "p": [0.0550762508809, 0.0344981875266, 0.000217879369476, 0.507960799914, 0.915109664456,
          0.391328303103, 0.00264763959828, 0.380841911992],
    "log_odds": [-0.581921122914, 0.58134687633, 0.965446802365, -0.198706050617, -0.053786645298,
                 -0.238804158596, -0.72701922817, 0.251587717734],
    "gain": [2.95274941238, 6.83134948483, 15.0421979434, 1.13830266489, 0.0357227026457,
             1.25272101161, 8.64420986911, 0.30205723943],
    "without 2": {"p": [0.301811575195, 0.762270176031],
                  "log_odds": [-0.323628836404, 0.103226718495],
                  "gain": [1.50739316905, 0.176355578167]},
}  # fmt: skip


def test_both_tests_are_those_of_r_with_all_items_and_without_one():
    rows, labels = draw_groups(200, (1,) * 8, 21, shift=0.9, impact=0.4)
    for anchors, checked, known in (
        (list("01234567"), slice(None), REFERENCE),
        (list("0134567"), [0, 4], REFERENCE["without 2"]),
    ):
        about = {"reference": "a", "anchors": anchors}
        matched = discreet.find_dif(rows, labels, test="mantel-haenszel", **about)
        assert matched.p_value[checked] == pytest.approx(known["p"], rel=1e-9)
        assert matched.difference[checked] == pytest.approx(known["log_odds"], rel=1e-9)
        split = discreet.find_dif(rows, labels, test="likelihood-ratio", **about)
        assert split.omnibus.statistic[checked] == pytest.approx(known["gain"], abs=1e-6)


@pytest.mark.parametrize("test", ["mantel-haenszel", "likelihood-ratio"])
def test_purified_tests_leave_out_what_differs_and_are_those_of_the_anchors_they_name(test):
    """Items 2, 5 and 8 of 13 are harder by 1.2: relative to all items, the others seem easier."""
    rng = np.random.default_rng(3)
    labels, moved = np.repeat(["a", "b"], 400), np.zeros(13)
    moved[[2, 5, 8]] = 1.2
    away = rng.normal(size=(800, 1)) - np.linspace(-1.5, 1.5, 13) - moved * (labels == "b")[:, None]
    rows = (rng.random((800, 13)) < 1 / (1 + np.exp(-away))).astype(float)
    found = discreet.find_dif(rows, labels, test=test, reference="a")
    assert np.flatnonzero(found.confirmed).tolist() == [2, 5, 8]
    assert not found.anchor[[2, 5, 8]].any()
    assert found.anchor.sum() >= 8
    assert abs(found.difference[moved == 0].mean()) < 0.06
    named = [found.item[i] for i in np.flatnonzero(found.anchor)]
    stated = discreet.find_dif(rows, labels, test=test, reference="a", anchors=named)
    np.testing.assert_array_equal(found.p_value, stated.p_value)
    everything = discreet.find_dif(rows, labels, test=test, reference="a", anchors=found.item)
    assert everything.difference[moved == 0].mean() == pytest.approx(-1.2 * 3 / 13, abs=0.1)
    assert "without 2, 5, 8" in found.name_anchors() or found.anchor.sum() < 10


@pytest.mark.parametrize("test", ["mantel-haenszel", "likelihood-ratio"])
def test_purification_keeps_a_quarter_of_the_items_and_four_at_least(test):
    """Every item differs, half of them one way: what is left are those that differ least."""
    rng = np.random.default_rng(5)
    labels, moved = np.repeat(["a", "b"], 300), np.tile([2.0, -2.0], 4)
    away = rng.normal(size=(600, 1)) - moved * (labels == "b")[:, None]
    rows = (rng.random((600, 8)) < 1 / (1 + np.exp(-away))).astype(float)
    assert discreet.find_dif(rows, labels, test=test).anchor.sum() == 4


def test_stated_anchors_make_the_score_of_mantel_haenszel():
    rows, labels = draw_groups(300, (1,) * 6, 11, shift=1.5)
    everything = discreet.find_dif(
        rows, labels, test="mantel-haenszel", reference="a", anchors=list("012345")
    )
    sound = discreet.find_dif(
        rows, labels, test="mantel-haenszel", reference="a", anchors=["0", "1", "3", "4", "5"]
    )
    others = [0, 1, 3, 4, 5]
    assert everything.difference[others].mean() < -0.15
    assert abs(sound.difference[others].mean()) < 0.1


def test_ets_classes_follow_the_size_and_both_tests():
    """C: |D| at least 1.5 and significantly above 1; A: below 1, or not significant."""
    from discreet.items.dif import DELTA, _classify
    from discreet.items.group_differences import Contrasts

    delta = np.array([0.9, 1.2, 1.2, 1.6, 1.6, -1.6, 2.5])
    errors = np.array([0.1, 0.1, 1.0, 0.2, 0.4, 0.2, 2.0])
    contrasts = Contrasts(delta / DELTA, errors / DELTA, np.ones(7, dtype=bool))
    assert _classify(contrasts) == ["A", "B", "A", "C", "B", "C", "A"]


def test_groups_are_a_mapping_from_person_too():
    rows, labels = draw_groups(60, (1,) * 5, 12)
    answers = discreet.Responses.from_array(rows)
    mapping = dict(zip(answers.persons.tolist(), labels, strict=True))
    by_name = discreet.find_dif(answers, mapping)
    np.testing.assert_array_equal(by_name.z, discreet.find_dif(answers, labels).z)
    with refused(BadUsage, "answers_no_person_groups", unknown="nobody"):
        discreet.find_dif(answers, {**mapping, "nobody": "a"})
    del mapping[answers.persons[0]]
    assert sum(discreet.find_dif(answers, mapping).persons.values()) == 119


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        (
            {"test": "logistic"},
            "no_called_one_check_choice_name",
            {
                "subject": "test",
                "name": "logistic",
                "ask": "choose",
                "listed": "wald, mantel-haenszel, likelihood-ratio",
            },
        ),
        ({"anchors": ["0", "x"]}, "answers_no_item_anchors", {"unknown": "x"}),
        ({"anchors": ["0"]}, "anchors_two_items_more", {"n_anchor_items": "1"}),
        ({"test": "mantel-haenszel", "by_step": True}, "single_steps_compared_test", {}),
    ],
)
def test_wrong_options_are_refused(options, code, facts):
    rows, labels = draw_groups(30, (1,) * 4, 13)
    with refused(BadUsage, code, **facts):
        discreet.find_dif(rows, labels, **options)


def test_the_command_has_the_tests_the_anchors_and_the_bound(tmp_path):
    rows, labels = draw_groups(150, (1,) * 5, 14, shift=1.5, groups=3)
    lines = ["group," + ",".join(f"q{i}" for i in range(5))]
    lines += [",".join([label, *(str(int(x)) for x in row)]) for label, row in
              zip(labels, rows, strict=True)]  # fmt: skip
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(lines))
    words = ["dif", path, "--group", "group", "--test", "mantel-haenszel", "--json"]
    result = run(*words, "--anchors", "q0,q1,q3,q4").document
    assert result["test"] == "mantel-haenszel"
    assert result["largest"] > 0.5
    assert "differ in slope" in result["caveats"][0]
    worst = min(result["omnibus"], key=lambda row: row["p_value"])
    assert (worst["item"], worst["degrees"]) == ("q2", 2)
    words = ["dif", path, "--group", "group", "--test", "likelihood-ratio", "--out", tmp_path]
    printed = run(*words, "--anchors", "q0,q1,q3,q4")
    assert "All groups together:" in printed.out
    assert "Anchors: 4 of 5 items; without q2." in printed.out
    assert "No item differs by more than" in printed.out
    assert (tmp_path / "dif_omnibus.confidential.csv").exists()


@pytest.mark.parametrize("test", ["mantel-haenszel", "likelihood-ratio"])
def test_bounds_of_other_tests_allow_for_the_number_of_compared_rows(test):
    """Bonferroni: two focal groups and seven items, one without a number in one of them or both."""
    rows, labels = draw_groups(120, (1,) * 7, 15, groups=3)
    rows[labels != "c", 4] = 1
    table = discreet.find_dif(
        rows, labels, test=test, level=0.1, reference="a", anchors=list("0123456")
    )
    number = np.isfinite(table.se).sum()
    assert number in (12, 13)
    half = stats.norm.isf(0.1 / number / 2) * table.se
    assert table.upper == pytest.approx(table.difference + half, nan_ok=True)
    assert table.lower == pytest.approx(table.difference - half, nan_ok=True)
    assert table.largest == pytest.approx(np.nanmax(np.abs(table.difference) + half))


def test_likelihood_ratios_that_would_take_hours_are_refused_before_they_begin(monkeypatch):
    monkeypatch.setattr(dif, "SPLIT_SECONDS", 0.0)
    with refused(BadUsage, "likelihood_ratios_split_each", n_items="5"):
        find_dif(discreet.datasets.lsat(), ["a", "b"] * 500, test="likelihood-ratio")
