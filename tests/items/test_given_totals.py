"""Mean squares given the total, against formulas written anew by enumeration."""

from itertools import product

import numpy as np
import pytest

import discreet
from discreet.analysis import measure_fit
from discreet.answers.survey import SurveyDesign
from discreet.items.given_totals import (
    LISTED,
    GroupedAnswers,
    ThinnedAnswers,
    _find_largest,
    condition_on_totals,
    judge_outfit,
    leave_one_out,
    weigh_loads,
)
from discreet.items.residuals import prepare
from sizes import is_chance

#: Items of 1, 3, 2 and 1 steps, and categories of six persons; -1 is missing.
THRESHOLDS = [[-0.7], [0.4, -1.1, 2.3], [1.9, 0.2], [0.9]]
ROWS = np.array([
    [1, 2, 0, 0], [0, 3, 1, 1], [1, -1, 2, 0], [0, 1, 1, -1], [1, 3, 2, 1], [-1, 2, -1, -1],
])  # fmt: skip
WEIGHT = np.array([1.0, 2.5, 0.5, 4.0, 3.0, 1.5])


def list_laws(answered, total):
    """Return the chance of every pattern with this total: thresholds only, no ability."""
    steps = [[0.0, *np.cumsum(THRESHOLDS[item])] for item in answered]
    patterns = [x for x in product(*(range(len(one)) for one in steps)) if sum(x) == total]
    weight = np.array([np.exp(-sum(one[k] for one, k in zip(steps, x, strict=True)))
                       for x in patterns])  # fmt: skip
    return np.array(patterns), weight / weight.sum()


def moments_of(row):
    """Return items, means and variances of a person's answers given the total."""
    answered = np.flatnonzero(row >= 0)
    patterns, chance = list_laws(answered, row[answered].sum())
    mean = chance @ patterns
    return answered, mean, chance @ (patterns - mean) ** 2


def as_calibration():
    return {f"i{k}": steps if len(steps) > 1 else steps[0] for k, steps in enumerate(THRESHOLDS)}


def as_responses(rows):
    table = np.where(rows < 0, np.nan, rows).astype(float)
    return discreet.Responses.from_array(table, items=[f"i{k}" for k in range(4)])


def test_mean_and_variance_given_the_total_are_those_of_all_patterns():
    padded = np.full((4, 3), np.nan)
    for row, steps in zip(padded, THRESHOLDS, strict=True):
        row[: len(steps)] = steps
    start, thresholds, scores, mean, variance = [0], [], [], [], []
    for row in ROWS:
        answered, expected, spread = moments_of(row)
        start.append(start[-1] + len(answered))
        thresholds.append(padded[answered])
        scores.append(row[answered].sum())
        mean.append(expected)
        variance.append(spread)
    for ability in (-4.0, 0.3, 5.0):  # drops out
        found = condition_on_totals(
            np.array(start), np.concatenate(thresholds), np.full(6, ability), np.array(scores)
        )
        np.testing.assert_allclose(found[0], np.concatenate(mean), rtol=1e-12)
        np.testing.assert_allclose(found[1], np.concatenate(variance), atol=1e-12)


@pytest.mark.parametrize("ability", [0.4, 2.4])  # at which 240 of 400 are likely, and hardly so
def test_moments_of_long_tests_are_those_of_all_scores(ability):
    difficulty = np.random.default_rng(6).normal(0.0, 1.0, 400)
    chance = 1 / (1 + np.exp(difficulty - 0.4))

    def law_without(left_out):
        law = np.ones(1)
        for one in np.delete(chance, left_out):
            law = np.convolve(law, [1 - one, one])
        return law

    found = condition_on_totals(
        np.array([0, 400]), difficulty[:, None], np.array([ability]), np.array([240])
    )
    for item in (0, 17, 250, 399):
        law = law_without(item)
        right, wrong = chance[item] * law[239], (1 - chance[item]) * law[240]
        expected = right / (right + wrong)
        np.testing.assert_allclose(
            found[:, item], [expected, expected * (1 - expected)], rtol=1e-11
        )


def test_interpolated_moments_are_nearly_those_of_every_total():
    rng = np.random.default_rng(8)
    rows = rng.random((900, 300)) < 1 / (
        1 + np.exp(rng.normal(size=300) - rng.normal(size=(900, 1)))
    )
    table = np.where(
        np.arange(300) < np.where(np.arange(900) < 500, 300, 200)[:, None], rows, np.nan
    )
    answers = discreet.Responses.from_array(table)
    prepared = prepare(answers, discreet.fit(answers, method="refined"), "ml")
    used = np.flatnonzero(prepared.used)
    patterns = prepared.group(used)
    ability = prepared.scores.ability[used][np.unique(patterns.entry, return_index=True)[1]]
    thin = ThinnedAnswers.thin(patterns, ability)
    assert len(thin.runs) == 2
    assert 3 * thin.known.sum() < 2 * len(thin.known)
    exact = GroupedAnswers.of(patterns).condition(prepared.thresholds, ability)
    found = thin.condition(prepared.thresholds, ability)
    np.testing.assert_allclose(found, exact, rtol=1e-4)
    assert np.abs(found - exact).max() > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_conditional_mean_squares_are_those_of_the_formula(weighted):
    answers = as_responses(ROWS)
    weight = WEIGHT if weighted else np.ones(6)
    if weighted:
        design = SurveyDesign(WEIGHT, np.arange(6), np.zeros(6, dtype=int))
        answers = discreet.Responses(answers.items, None, answers.store, sample=design)
    sums, largest = np.zeros((4, 4)), np.zeros((2, 4))
    persons = np.full((6, 2), np.nan)
    for number, row in enumerate(ROWS[:4]):  # the others have the top or one answer
        answered, mean, variance = moments_of(row)
        square = (row[answered] - mean) ** 2
        parts = np.stack([square, variance, square / variance, np.ones(len(mean))])
        sums[:, answered] += weight[number] * parts
        more = parts[2] > largest[0, answered]
        both = np.stack([parts[2], np.full(len(mean), weight[number])])
        largest[:, answered] = np.where(more, both, largest[:, answered])
        persons[number] = square.sum() / variance.sum(), (square / variance).mean()
    fit = measure_fit(answers, as_calibration())
    np.testing.assert_allclose(fit.items.conditional_infit, sums[0] / sums[1], rtol=1e-12)
    np.testing.assert_allclose(fit.items.conditional_outfit, sums[2] / sums[3], rtol=1e-12)
    rest = (sums[2] - largest.prod(axis=0)) / (sums[3] - largest[1])
    np.testing.assert_allclose(fit.items.outfit_without_one, rest, rtol=1e-12)
    found = np.column_stack([fit.persons.conditional_infit, fit.persons.conditional_outfit])
    np.testing.assert_allclose(found, persons, rtol=1e-12)


def test_the_most_unexpected_answers_are_listed_as_the_data_call_them():
    fit = measure_fit(as_responses(ROWS), as_calibration())
    all_of_them = []
    for number, row in enumerate(ROWS):
        answered, mean, variance = moments_of(row)
        for item, expected, spread in zip(answered, mean, variance, strict=True):
            if spread > 1e-9:
                z = (row[item] - expected) / spread**0.5
                all_of_them.append((f"i{item}", int(row[item]), expected, z, number))
    all_of_them.sort(key=lambda one: -abs(one[3]))
    found = fit.unexpected
    listed, known = found.to_dict(), len(all_of_them)
    assert known <= len(found.z) <= 20
    assert listed["person"][:known] == [str(one[4]) for one in all_of_them]
    np.testing.assert_allclose(found.z[:known], [one[3] for one in all_of_them], rtol=1e-9)
    assert listed["item"][:known] == [one[0] for one in all_of_them]
    assert listed["observed"][:known] == [one[1] for one in all_of_them]
    np.testing.assert_allclose(found.expected[:known], [one[2] for one in all_of_them], rtol=1e-9)


def draw_rows(rng, slope=1.0):
    """Draw answers of 1000 persons to five items of four steps, the first with another slope."""
    slopes = np.array([slope, 1, 1, 1, 1])[:, None]
    location = np.array([-0.8, 0.3, 0.9, -0.1, 0.5])[:, None]
    steps = location + np.array([-1.4, -0.3, 0.4, 1.3])
    reach = np.cumsum(slopes * (rng.normal(size=(1000, 1, 1)) - steps), axis=2)
    chance = np.exp(np.concatenate([np.zeros((1000, 5, 1)), reach], axis=2))
    share = np.cumsum(chance / chance.sum(axis=2, keepdims=True), axis=2)
    return (rng.random((1000, 5, 1)) > share[..., :-1]).sum(axis=2).astype(float)


def test_short_tests_have_mean_squares_of_one_and_a_low_slope_shows():
    rng = np.random.default_rng(5)
    sound, flat = [], []
    for _ in range(12):
        for rows, out in ((draw_rows(rng), sound), (draw_rows(rng, 0.65), flat)):
            answers = discreet.Responses.from_array(rows)
            fit = measure_fit(answers, discreet.fit(answers)).items
            out.append([fit.conditional_infit[0], fit.infit[0], fit.conditional_outfit[0]])
    conditional, usual, outfit = np.mean(sound, axis=0)
    assert abs(conditional - 1) < 0.03
    assert abs(outfit - 1) < 0.04
    assert usual < 0.88  # about 1 - 1/5
    assert min(row[0] for row in flat) > 1.05


@pytest.mark.slow
def test_each_family_has_its_share_of_the_level():
    from experiments.calibration.cutoffs import draw_answers, find_alarms

    rng = np.random.default_rng(9)
    alarms = [find_alarms(draw_answers(100, 6, rng), rng, 99) for _ in range(300)]
    for kind in ("items", "pairs", "persons"):
        assert sum(one[kind] for one in alarms) <= 0.05 * 300
    assert is_chance(sum(max(one[k] for k in ("items", "pairs", "persons")) for one in alarms), 300)


def test_fit_statistics_of_items_are_reached_directly():
    answers = discreet.datasets.lsat()
    fit = measure_fit(answers, discreet.fit(answers))
    for name in ("infit", "outfit", "conditional_infit", "conditional_outfit"):
        assert getattr(fit, name) is getattr(fit.items, name)


def test_the_largest_of_many_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    for size in (1, LISTED, 200):
        values = np.round(rng.normal(size=size) ** 2, 1)  # with ties
        order = np.argsort(-values, kind="stable")[:LISTED]
        assert _find_largest(values).tolist() == order.tolist()


@pytest.mark.parametrize("total", range(1, 8))
def test_sums_of_thresholds_have_the_mean_and_variance_of_all_answers_with_the_total(total):
    threshold = np.array([[0.4, -0.3, 1.1], [-1.0, 0.2, 0.9], [0.7, np.nan, np.nan]])
    steps = np.isfinite(threshold).sum(axis=1)
    rows = [row for row in product(*(range(n + 1) for n in steps)) if sum(row) == total]
    load = np.array([sum(threshold[i, :x].sum() for i, x in enumerate(row)) for row in rows])
    weight = np.exp(-load) / np.exp(-load).sum()
    mean = weight @ load
    found = weigh_loads(np.array([0, 3]), threshold, np.array([0.3]), np.array([total]))[:, 0]
    np.testing.assert_allclose(found, [mean, weight @ (load - mean) ** 2], rtol=1e-10, atol=1e-12)


def test_an_outfit_that_one_answer_makes_large_counts_without_it():
    sums = np.array([[0.0], [0.0], [13.0], [8.0], [6.0], [2.0]])  # the largest 6 has weight 2
    assert leave_one_out(sums) == pytest.approx([1 / 6])
    outfit = np.array([1.5, 1.5, 1.5, 0.9, 1.2])
    without = np.array([1.2, 1.45, 0.8, 0.7, 0.95])
    assert judge_outfit(outfit, without) == pytest.approx([1.2, 1.5, 1.0, 0.9, 1.0])
