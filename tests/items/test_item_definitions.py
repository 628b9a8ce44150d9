"""Errors, p-values and levels of analyses of items, each against its definition written anew.

The answers have unequal items, gaps, weights and schools of unequal size, so that no mistake
cancels.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import discreet
from discreet.analysis import (
    analyse_distractors,
    find_group_means,
    measure_alpha,
    measure_fit,
    run_wald,
)
from discreet.errors import BadUsage
from discreet.items import curves, dimensionality, mislabelled
from discreet.items.dif import _classify
from discreet.items.distractors import _is_abler
from discreet.items.fit import compare_spread
from discreet.items.group_differences import Contrasts, Points, contrast, purify
from discreet.items.groups import split_groups
from discreet.items.mantel_haenszel import match_scores
from discreet.items.martin_loef import _score_terms
from discreet.items.raters import _compare_raters, _Scores
from discreet.items.residuals import (
    describe_persons,
    log_likelihood,
    predict_categories,
    smooth_categories,
)
from discreet.persons.measures import NormalPrior
from refusals import refused
from stepped import chances

STEPS = (1, 2, 3, 1, 2)
THRESHOLDS = [[-0.8], [-0.6, 0.9], [-1.2, 0.1, 1.0], [0.7], [0.2, 1.3]]
KNOWN = {f"q{item}": own for item, own in enumerate(THRESHOLDS)}
PERSONS = 70


def make_answers(weighted=True, missing=0.15):
    """Return answers with weights and schools in two strata, and their codes, -1 missing."""
    rng = np.random.default_rng(41)
    ability = rng.normal(0.2, 1.2, PERSONS)
    codes = np.stack(
        [(rng.random((PERSONS, 1)) > chances(ability, np.array(own)).cumsum(axis=1)).sum(axis=1)
         for own in THRESHOLDS], axis=1)  # fmt: skip
    codes[rng.random(codes.shape) < missing] = -1
    school = np.minimum((np.arange(PERSONS) ** 1.2 / 9).astype(int), 16)
    columns = {f"q{i}": [None if x < 0 else x for x in one] for i, one in enumerate(codes.T)}
    weight = rng.uniform(0.5, 3.0, PERSONS)
    about = {
        "w": weight, "school": school, "stratum": school // 9,
        "g": np.array(list("abc"))[(np.arange(PERSONS) * 5) % 7 % 3],
    }  # fmt: skip
    table = pd.DataFrame({**about, **{name: pd.array(c, "Int64") for name, c in columns.items()}})
    answers = discreet.Responses.from_dataframe(table, group=list(about))
    if weighted:
        answers = answers.weigh(weight="w", strata="stratum", cluster="school")
    return answers, codes, about


def deviate(moves, about):
    """Return deviations of schools' totals from the mean of their stratum, times n / (n - 1)."""
    schools = np.unique(about["school"])
    totals = np.array([moves[about["school"] == school].sum(axis=0) for school in schools])
    out = np.zeros_like(totals)
    for stratum in (0, 1):
        mine = schools // 9 == stratum
        n = mine.sum()
        out[mine] = np.sqrt(n / (n - 1)) * (totals[mine] - totals[mine].mean(axis=0))
    return out, len(schools) - 2


def moments_of(ability, own):
    share, category = chances(ability, np.array(own)), np.arange(len(own) + 1)
    mean = share @ category
    central = [((share * (category - mean[:, None]) ** power).sum(axis=1)) for power in (2, 4)]
    return mean, central[0], central[1]


# -- fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_standardised_mean_squares_are_those_of_wilson_and_hilferty(weighted):
    """Of items; the variance is the model's, or with weights that of the design."""
    answers, codes, about = make_answers(weighted)
    found = measure_fit(answers, KNOWN)
    scores = discreet.score(answers, KNOWN, method="ml")
    used = scores.status == "measured"
    weight = about["w"] if weighted else np.ones(PERSONS)
    for item, own in enumerate(THRESHOLDS):
        given = np.flatnonzero(used & (codes[:, item] >= 0))
        mean, variance, fourth = moments_of(scores.ability[given], own)
        square, w = (codes[given, item] - mean) ** 2, weight[given]
        infit = (w * square).sum() / (w * variance).sum()
        outfit = (w * square / variance).sum() / w.sum()
        if weighted:
            moves = np.zeros((PERSONS, 2))
            moves[given, 0] = w * (square - infit * variance) / (w * variance).sum()
            moves[given, 1] = w * (square / variance - outfit) / w.sum()
            spread = np.sqrt((deviate(moves, about)[0] ** 2).sum(axis=0))
        else:
            n = len(given)
            spread = (
                np.sqrt((fourth - variance**2).sum()) / variance.sum(),
                np.sqrt((fourth / variance**2).sum() / n**2 - 1 / n),
            )
        for name, value, sd in zip(("infit", "outfit"), (infit, outfit), spread, strict=True):
            t = (np.cbrt(value) - 1) * 3 / sd + sd / 3
            assert getattr(found.items, name)[item] == pytest.approx(value)
            assert getattr(found.items, f"{name}_t")[item] == pytest.approx(t)


def test_mean_squares_of_persons_are_over_their_own_answers():
    answers, codes, _ = make_answers(False)
    found = measure_fit(answers, KNOWN).persons
    person = int(np.flatnonzero((codes >= 0).all(axis=1) & np.isfinite(found.infit))[3])
    parts = [moments_of(found.scores.ability[[person]], own) for own in THRESHOLDS]
    mean, variance, fourth = (np.concatenate(part) for part in zip(*parts, strict=True))
    square = (codes[person] - mean) ** 2
    infit, outfit = square.sum() / variance.sum(), (square / variance).mean()
    spread = (
        np.sqrt((fourth - variance**2).sum()) / variance.sum(),
        np.sqrt((fourth / variance**2).sum() / 25 - 1 / 5),
    )
    for name, value, sd in zip(("infit", "outfit"), (infit, outfit), spread, strict=True):
        t = (np.cbrt(value) - 1) * 3 / sd + sd / 3
        assert getattr(found, name)[person] == pytest.approx(value)
        assert getattr(found, f"{name}_t")[person] == pytest.approx(t)


def test_correlations_with_ability_are_weighted_and_over_those_who_answered():
    answers, codes, about = make_answers()
    found = measure_fit(answers, KNOWN).items
    scores = discreet.score(answers, KNOWN, method="ml")
    for item in range(5):
        given = (scores.status == "measured") & (codes[:, item] >= 0)
        together = np.cov(scores.ability[given], codes[given, item], aweights=about["w"][given])
        expected = together[0, 1] / np.sqrt(together[0, 0] * together[1, 1])
        assert found.point_measure[item] == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_reliability_is_the_spread_beyond_the_errors(weighted):
    value, se = np.array([0.2, 1.5, -0.7, 0.9]), np.array([0.3, 0.5, 0.2, 0.4])
    weight = np.array([1.0, 2.0, 0.5, 3.0]) if weighted else np.ones(4)
    found = compare_spread(value, se, weight if weighted else None)
    mean = (weight * value).sum() / weight.sum()
    variance = (weight * (value - mean) ** 2).sum() / weight.sum() * 4 / 3
    error = (weight * se**2).sum() / weight.sum()
    assert (found.variance, found.mse) == pytest.approx((variance, error))
    assert found.reliability == pytest.approx((variance - error) / variance)
    assert found.separation == pytest.approx(np.sqrt((variance - error) / error))
    assert np.isnan(compare_spread(value[:1], se[:1]).reliability)
    assert compare_spread(value[:2], se[:2]).variance == pytest.approx(0.845)


def test_alpha_has_the_weights_of_the_persons_who_answered_everything():
    answers, codes, about = make_answers()
    complete = (codes >= 0).all(axis=1)
    weight = about["w"][complete]
    variance = np.cov(codes[complete].T, aweights=weight, bias=True)
    expected = 5 / 4 * (1 - np.trace(variance) / variance.sum())
    found = measure_alpha(answers)
    assert (found.alpha, found.persons) == pytest.approx((expected, complete.sum()))


# -- groups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_groups_have_the_errors_of_ratios_of_totals(weighted):
    answers, _, about = make_answers(weighted)
    found = find_group_means(answers, KNOWN, "g")
    ability = discreet.score(answers, KNOWN).ability
    inside = (about["g"][:, None] == np.array(list("abc"))) & np.isfinite(ability)[:, None]
    weight = inside * (about["w"] if weighted else np.ones(PERSONS))[:, None]
    value = np.nan_to_num(ability)
    mean = value @ weight / weight.sum(axis=0)
    moves = weight * (value[:, None] - mean) / weight.sum(axis=0)
    if weighted:
        deviation, degrees = deviate(moves, about)
    else:
        centred = moves - moves.mean(axis=0)
        deviation, degrees = np.sqrt(PERSONS / (PERSONS - 1)) * centred, PERSONS - 1
    covariance = deviation.T @ deviation
    persons = inside.sum(axis=0)
    variance = (moves * (value[:, None] - mean)).sum(axis=0) * persons / (persons - 1)
    assert found.mean == pytest.approx(mean)
    assert found.covariance == pytest.approx(covariance)
    assert found.sd == pytest.approx(np.sqrt(variance))
    assert found.share == pytest.approx(weight.sum(axis=0) / weight.sum())
    half = stats.t.isf(0.025, degrees) * np.sqrt(covariance.diagonal())
    assert found.degrees == degrees
    assert found.lower == pytest.approx(mean - half)
    assert found.upper == pytest.approx(mean + half)
    difference, se, p = found.compare("c", "a")
    expected = covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2]
    assert (difference, se) == pytest.approx((mean[0] - mean[2], expected**0.5))
    assert p == pytest.approx(2 * stats.t.sf(abs(difference) / se, degrees))
    # All groups together: Rao and Scott's correction of the sum of squares.
    apart = (mean - mean[0])[1:]
    moved = deviation[:, 1:] - deviation[:, [0]]
    working = np.diag((variance / persons)[1:]) + (variance / persons)[0]
    weights = np.linalg.eigvals(np.linalg.solve(working, moved.T @ moved)).real
    freedom = weights.sum() ** 2 / (weights**2).sum()
    ratio = apart @ np.linalg.solve(working, apart) / weights.sum()
    assert found.test.p_value == pytest.approx(stats.f.sf(ratio, freedom, freedom * degrees))


@pytest.mark.parametrize("split", ["mean score", "median score"])
def test_persons_are_split_at_the_weighted_middle_of_their_shares_of_points(split):
    answers, codes, about = make_answers()
    points = (codes >= 0) @ np.array(STEPS)
    share = np.maximum(codes, 0).sum(axis=1) / points
    order = np.argsort(share)
    if split == "mean score":
        middle = np.average(share, weights=about["w"])
    else:
        below = np.cumsum(about["w"][order])
        middle = share[order][np.searchsorted(below, below[-1] / 2)]
    assert split_groups(answers, split).number.tolist() == (share > middle).astype(int).tolist()


def test_a_median_between_two_scores_is_their_mean_and_unscored_persons_have_no_group():
    rows = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [np.nan] * 4])
    answers = discreet.Responses.from_array(rows)
    assert split_groups(answers, "median score").number.tolist() == [0, 0, 1, 1, -1]


def make_points(label, value, seed, deviation=None, degrees=0):
    root = np.random.default_rng(seed).normal(0, 0.2, (len(value), len(value)))
    covariance = root @ root.T
    status = tuple("estimated" if np.isfinite(one) else "no_answers" for one in value)
    words = {} if deviation is None else {"deviation": deviation, "degrees": degrees}
    return Points(label, np.array(value), covariance, status, **words)


def test_contrasts_have_normal_p_values_and_with_a_design_those_of_student():
    rng = np.random.default_rng(2)
    values = [-1.0, 0.2, 0.4, 1.1], [-0.6, 0.1, np.nan, 1.6]
    anchor = np.array([True, True, True, False])
    plain, status = contrast(*(make_points("xy"[i], v, i) for i, v in enumerate(values)), anchor)
    assert status == ("compared", "compared", "no_answers in y", "compared")
    z = plain.difference / plain.se
    assert plain.p_value == pytest.approx(2 * stats.norm.sf(np.abs(z)), nan_ok=True)
    deviations = rng.normal(0, 0.2, (2, 9, 4))
    groups = [make_points("xy"[i], v, i, deviations[i], 7) for i, v in enumerate(values)]
    found, _ = contrast(*groups, anchor)
    used = np.array([True, True, False, False])
    centred = [part - part[:, used].mean(axis=1, keepdims=True) for part in deviations]
    se = np.sqrt(((centred[1] - centred[0]) ** 2).sum(axis=0))
    known = [0, 1, 3]
    assert found.se[known] == pytest.approx(se[known])
    t = found.difference[known] / se[known]
    assert found.p_value[known] == pytest.approx(2 * stats.t.sf(np.abs(t), 7))


def test_purification_begins_with_the_half_nearest_to_the_median_and_ends_where_nothing_changes():
    """Nine items, one off by much and one by little; a fourth of the items must stay."""
    base = np.zeros(9)
    focal = np.array([0.0, 0.02, -0.03, 0.05, -0.01, 0.04, 0.3, -0.02, 3.0])
    covariance = 0.02 * np.eye(9)
    groups = [Points(label, value, covariance, ("estimated",) * 9)
              for label, value in (("x", base), ("y", focal))]  # fmt: skip
    found, _ = purify(*groups, 0.05)
    anchor = np.abs(focal - np.median(focal)) <= np.median(np.abs(focal - np.median(focal)))
    while True:
        expected, _ = contrast(*groups, anchor)
        again = expected.p_value >= 0.05
        if (again == anchor).all():
            break
        anchor = again
    assert found.anchor.tolist() == anchor.tolist()
    assert not found.anchor[8]
    assert found.difference == pytest.approx(expected.difference)
    # Where all but one item differ for sure, the first anchors stay.
    apart = Points("y", np.arange(9.0) ** 2, 1e-6 * np.eye(9), ("estimated",) * 9)
    kept, _ = purify(groups[0], apart, 0.05)
    assert kept.anchor.sum() == 5


def test_purification_goes_on_while_a_fourth_of_the_items_is_left():
    """Eleven items: two are a fourth, rounded down. Two stay here, and are enough."""
    rng = np.random.default_rng(0)
    value, variance = rng.normal(0, 1, 11), np.exp(rng.normal(-5, 1.5, 11))
    groups = (
        Points("x", np.zeros(11), 1e-6 * np.eye(11), ("estimated",) * 11),
        Points("y", value, np.diag(variance), ("estimated",) * 11),
    )
    found, _ = purify(*groups, 0.05)
    assert found.anchor.sum() == 2
    assert (found.p_value >= 0.05).tolist() == found.anchor.tolist()


def test_wald_tests_are_the_differences_over_their_errors():
    answers, _, about = make_answers(False, missing=0.0)
    groups = np.where(about["g"] == "a", "x", "y")
    found = run_wald(answers, groups)
    fits = [discreet.fit(answers.select_persons(np.flatnonzero(groups == g))) for g in "xy"]
    difference = fits[1].difficulty - fits[0].difficulty
    se = np.sqrt(fits[0].covariance.diagonal() + fits[1].covariance.diagonal())
    assert found.z == pytest.approx(difference / se, rel=1e-6)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(np.abs(difference / se)), rel=1e-5)


def test_weighted_odds_have_students_p_values():
    answers, _, about = make_answers(missing=0.0)
    group = np.searchsorted(["a", "b", "c"], about["g"])
    for item in match_scores(answers, group, np.arange(5)):
        log_odds, se, p = item.compare([0, 1])
        if np.isfinite(se) and se > 0:
            assert p == pytest.approx(2 * stats.t.sf(abs(log_odds) / se, 15))


def test_the_classes_of_differences_have_the_p_value_of_the_test():
    tested = np.array([0.049, 0.05, 0.051])
    contrasts = Contrasts(np.full(3, 0.5), np.full(3, 0.1), np.ones(3, dtype=bool), tested)
    assert _classify(contrasts) == ["B", "A", "A"]


# -- parts of a test, options, labels -----------------------------------------------------------


def test_the_law_of_scores_of_parts_is_that_of_multinomial_counts():
    """n log n over combinations of scores, less that over their sums; zeros count nothing."""
    scores = [np.array([0, 1, 1, 2, 2, 2, 0]), np.array([1, 0, 0, 0, 1, 1, 3])]
    pairs = dict.fromkeys(zip(*scores, strict=True), 0)
    sums = {a + b: 0 for a, b in zip(*scores, strict=True)}
    for a, b in zip(*scores, strict=True):
        pairs[a, b] += 1
        sums[a + b] += 1
    terms = [sum(n * np.log(n) for n in counts.values()) for counts in (pairs, sums)]
    assert _score_terms(scores) == pytest.approx(terms[0] - terms[1])


@pytest.mark.parametrize(
    ("correlation", "chosen", "answered", "is_abler"),
    [
        (0.1645, 5, 100, True),  # 1.645 standard errors
        (0.1644, 5, 100, False),
        (0.9, 4, 100, False),  # so few choosers say nothing
        (float("nan"), 50, 100, False),
    ],
)
def test_an_option_attracts_abler_persons_beyond_the_one_sided_point(
    correlation, chosen, answered, is_abler
):
    assert bool(_is_abler(correlation, chosen, answered)) is is_abler


def test_an_item_that_nobody_answered_has_options_without_numbers():
    letters = np.array([["A", "B"], ["B", "A"], ["A", "A"], ["B", "B"]] * 6, dtype=object)
    table = pd.DataFrame({"q0": letters[:, 0], "q1": letters[:, 1], "q2": ["C", *[""] * 23]})
    answers = discreet.Responses.from_dataframe(table, key="ABC")
    estimate = discreet.fit(answers)
    alone = answers.select_persons(np.arange(1, 24))
    found = analyse_distractors(alone, estimate)
    row = found.item.index("q2")
    assert found.chosen[row] == 0
    assert np.isnan([found.share[row], found.ability[row], found.point_biserial[row]]).all()
    assert found.curve[row] == ()


def test_options_are_traced_in_fifths_of_those_who_answered():
    rng = np.random.default_rng(7)
    columns = {f"q{i}": np.array(list("AB"))[(rng.random(63) < 0.5).astype(int)] for i in range(7)}
    columns["q0"][:4] = ""
    answers = discreet.Responses.from_dataframe(pd.DataFrame(columns), key="A" * 7)
    found = analyse_distractors(answers)
    ability = discreet.score(answers, discreet.fit(answers)).ability
    given = (columns["q0"] != "") & np.isfinite(ability)
    group = np.searchsorted(np.quantile(ability[given], [0.2, 0.4, 0.6, 0.8]), ability[given])
    took = columns["q0"][given] == "B"
    row = [(i, o) for i, o in zip(found.item, found.option, strict=True)].index(("q0", "B"))
    expected = [
        (ability[given][group == g].mean(), took[group == g].mean(), (group == g).sum())
        for g in range(5)
        if (group == g).any()
    ]
    assert np.array(found.curve[row]) == pytest.approx(np.array(expected))
    assert found.share[row] == pytest.approx(took.mean())
    assert found.ability[row] == pytest.approx(ability[given][took].mean())


def test_slopes_have_the_mean_and_spread_of_their_weights():
    rng = np.random.default_rng(8)
    weight = rng.random((2, len(mislabelled.LOG_SLOPES), 3))
    weight /= weight.sum(axis=(0, 1))
    mean, sd = mislabelled._moments(weight)
    slope = np.concatenate([np.exp(mislabelled.LOG_SLOPES), -np.exp(mislabelled.LOG_SLOPES)])
    for item in range(3):
        own = weight[:, :, item].ravel()
        assert mean[item] == pytest.approx(own @ slope)
        assert sd[item] == pytest.approx(np.sqrt(own @ (slope - own @ slope) ** 2))


def test_the_share_and_the_spread_of_slopes_are_where_another_round_changes_nothing():
    """Few items and a prior worth some more; the end of the rounds is a fixed point."""
    rng = np.random.default_rng(9)
    logs = rng.normal(0, 3, (2, len(mislabelled.LOG_SLOPES), 6))
    weight, share = mislabelled._weigh_slopes(logs)
    m, log_slope = 6, mislabelled.LOG_SLOPES
    slopes = weight.sum(axis=(0, 2))
    prior = mislabelled.MISLABELLED + mislabelled.SOUND
    assert share == pytest.approx((weight[1].sum() + mislabelled.MISLABELLED) / (m + prior))
    few = mislabelled.FEWEST_ITEMS
    centre = slopes @ log_slope / (m + few)
    around = slopes @ (log_slope - centre) ** 2 + few * mislabelled.USUAL_SPREAD**2
    density = np.exp(-((log_slope - centre) ** 2) / (2 * around / (m + few)))
    before = np.outer([1 - share, share], density / density.sum())
    expected = np.exp(logs) * before[:, :, None]
    expected /= expected.sum(axis=(0, 1))
    assert weight == pytest.approx(expected, abs=1e-6)


# -- curves ------------------------------------------------------------------------------------


def make_curve(thresholds, points, shares=()):
    line = np.linspace(-1, 1, 3)
    return curves.ItemCurve("q", np.array(thresholds), (0, 1), points, line, line, shares)


def test_observed_shares_have_the_interval_of_agresti_and_coull():
    points = ((-1.0, 0.25, 8), (0.3, 1.0, 5), (0.9, 0.0, 3))
    _, mean, lower, upper = make_curve([0.1], points).observe()
    for place, (_, share, n) in enumerate(points):
        centre = (share * n + 2) / (n + 4)
        half = 1.96 * np.sqrt(centre * (1 - centre) / (n + 4))
        assert mean[place] == share
        assert lower[place] == pytest.approx(max(centre - half, 0))
        assert upper[place] == pytest.approx(min(centre + half, 1))


def test_observed_scores_of_steps_have_two_answers_added_at_either_end():
    shares = ((0.2, 0.3, 0.5), (0.0, 0.0, 1.0))
    points = ((-0.5, 1.3, 10), (0.8, 2.0, 6))
    _, mean, lower, upper = make_curve([-0.4, 0.6], points, shares).observe()
    for place, (_, _, n) in enumerate(points):
        answers = np.repeat([0, 1, 2], np.rint(np.array(shares[place]) * n).astype(int))
        answers = np.concatenate([answers, [0, 0, 2, 2]])
        half = 1.96 * np.sqrt(answers.var() / len(answers))
        assert mean[place] == points[place][1]
        assert lower[place] == pytest.approx(max(answers.mean() - half, 0))
        assert upper[place] == pytest.approx(min(answers.mean() + half, 2))


def test_abilities_are_binned_by_quarters_of_a_logit():
    starts, counts = curves.bin_abilities(np.array([-0.51, -0.5, -0.26, 0.0, 0.24, 0.25]))
    assert starts.tolist() == [-0.75, -0.5, -0.25, 0.0, 0.25]
    assert counts.tolist() == [1, 2, 0, 2, 1]


# -- raters ------------------------------------------------------------------------------------


def test_agreement_is_counted_pair_by_pair_on_the_same_person_and_item():
    rng = np.random.default_rng(10)
    drawn = discreet.simulate_ratings(40, 3, 4, rng=rng, marks=3).ratings
    kept = drawn.select(np.flatnonzero(rng.random(drawn.n_ratings) < 0.85))
    estimate = discreet.fit(kept)
    study = discreet.analysis.study_ratings(kept, estimate)
    sums = _compare_raters(_Scores(kept, estimate), study.persons.measure)["rater"]
    severity, rater = estimate.facets["rater"].measure, kept.codes["rater"]
    expected = np.zeros((4, 4))
    for a in range(kept.n_ratings):
        for b in range(kept.n_ratings):
            same = kept.person[a] == kept.person[b] and kept.item[a] == kept.item[b]
            if not same or rater[a] == rater[b]:
                continue
            ability = study.persons.measure[[kept.person[a]]]
            own = estimate.thresholds[kept.item[a]]
            equal = float(
                (chances(ability, own + severity[rater[a]])
                 * chances(ability, own + severity[rater[b]])).sum()
            )  # fmt: skip
            is_equal = kept.score[a] == kept.score[b]
            expected[rater[a]] += [1, is_equal, equal, equal * (1 - equal)]
    assert sums == pytest.approx(expected)
    fit = study.facets["rater"]
    pairs, equal, mean, variance = expected.T
    assert fit.agreement == pytest.approx(equal / pairs)
    assert fit.expected == pytest.approx(mean / pairs)
    assert fit.agreement_z == pytest.approx((equal - mean) / np.sqrt(variance))


def test_an_unknown_group_is_named_beside_those_there_are():
    answers, _, _ = make_answers()
    with refused(BadUsage, "no_group_choose_among", label="z", group="a, b, c"):
        find_group_means(answers, KNOWN, "g").compare("a", "z")


# -- predictions -------------------------------------------------------------------------------


def test_answers_are_predicted_from_the_other_answers_of_the_person():
    """By integration over abilities; an item without thresholds has its shares."""
    thresholds = np.array([[-0.8, np.nan], [-0.6, 0.9], [np.nan, np.nan], [0.2, 1.3]])
    codes = np.array([[1, 2, 0, -1], [0, -1, 1, 1], [-1, -1, -1, -1]], dtype=np.int8)
    share = np.tile([0.5, 0.3, 0.2], (4, 1))
    prior = NormalPrior(0.4, 1.3)
    found = predict_categories(codes, thresholds, prior, share)
    grid = np.linspace(-12, 12, 4801)
    tables = [chances(grid, own[np.isfinite(own)]) for own in thresholds]
    for person, row in enumerate(codes):
        for item in (0, 1, 3):
            density = stats.norm.pdf(grid, prior.mean, prior.sd)
            for other in (0, 1, 3):
                if other != item and row[other] >= 0:
                    density = density * tables[other][:, row[other]]
            expected = density @ tables[item] / density.sum()
            assert found[person, item, : len(expected)] == pytest.approx(expected, abs=1e-3)
        assert found[person, 2].tolist() == share[2].tolist()
    total, answers = log_likelihood(codes, found)
    cells = [(p, i) for p, i in np.ndindex(codes.shape) if codes[p, i] >= 0]
    assert answers == len(cells)
    assert total == pytest.approx(sum(np.log(found[p, i, codes[p, i]]) for p, i in cells))


def test_without_answers_abilities_are_standard_normal_and_shares_equal():
    answers = discreet.Responses.from_array(np.full((3, 2), np.nan))
    assert describe_persons(answers, np.array([0.0, 1.0])) == NormalPrior(0.0, 1.0)
    found = smooth_categories(np.array([[3, 0, 1], [5, 2, 0]]), [2, 1])
    assert found == pytest.approx(
        np.array([[3.5 / 5.5, 0.5 / 5.5, 1.5 / 5.5], [5.5 / 8, 2.5 / 8, 0]])
    )
    assert smooth_categories(None, [2, 1]) == pytest.approx(np.array([[1 / 3] * 3, [0.5, 0.5, 0]]))


def test_mean_squares_and_fair_averages_of_raters_are_those_of_their_ratings():
    rng = np.random.default_rng(11)
    drawn = discreet.simulate_ratings(50, 3, 4, rng=rng, marks=3, severity_sd=0.9).ratings
    kept = drawn.select(np.flatnonzero(rng.random(drawn.n_ratings) < 0.85))
    estimate = discreet.fit(kept)
    study = discreet.analysis.study_ratings(kept, estimate)
    severity, rater = estimate.facets["rater"].measure, kept.codes["rater"]
    ability = study.persons.measure
    square, variance = np.zeros(kept.n_ratings), np.zeros(kept.n_ratings)
    for row in range(kept.n_ratings):
        own = estimate.thresholds[kept.item[row]] + severity[rater[row]]
        share = chances(ability[[kept.person[row]]], own)[0]
        category = np.arange(len(share))
        mean = share @ category
        square[row] = (kept.score[row] - mean) ** 2
        variance[row] = share @ (category - mean) ** 2
    fit = study.facets["rater"]
    centre = ability.mean()

    def expect(level):
        """The mean score over all items."""
        return np.mean([
            chances(np.array([level]), own)[0] @ np.arange(4) for own in estimate.thresholds
        ])  # fmt: skip

    for one in range(4):
        mine = rater == one
        assert fit.ratings[one] == mine.sum()
        assert fit.observed[one] == pytest.approx(kept.score[mine].mean())
        assert fit.infit[one] == pytest.approx(square[mine].sum() / variance[mine].sum())
        assert fit.outfit[one] == pytest.approx((square[mine] / variance[mine]).mean())
        assert fit.fair[one] == pytest.approx(expect(centre - severity[one]))
    for person in (0, 7, 31):
        mine = kept.person == person
        assert study.persons.observed[person] == pytest.approx(kept.score[mine].mean())
        assert study.persons.fair[person] == pytest.approx(expect(ability[person]))


def test_components_are_held_against_those_of_simulated_answers(monkeypatch):
    """Nineteen sets, their largest eigenvalues 1 to 19: the 95% point and p of 17.5 are known."""
    answers, _, _ = make_answers(False)
    sets = iter(range(1, 20))
    monkeypatch.setattr(
        dimensionality, "_eigenvalues", lambda residual: np.full(5, float(next(sets)))
    )
    monkeypatch.setattr(
        dimensionality, "_split_components",
        lambda residual: (np.array([17.5, 1.0]), np.linspace(0.5, -0.5, residual.shape[1])),
    )  # fmt: skip
    found = dimensionality.find_dimensions(answers, KNOWN, simulations=19)
    assert found.expected == (10.0, 10.0)
    assert found.limit == (19.0, 19.0)
    # 18 and 19 are as large, and so are the real answers themselves.
    assert found.p_value == pytest.approx((3 / 20, 1.0))
    assert (found.simulations, found.excess, found.beyond_chance) == (19, 7.5, 0)
