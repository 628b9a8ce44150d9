"""What ratings say about raters: fit, fair averages, agreement, bias, drift, persons."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.analysis import study_ratings
from discreet.answers.ratings import Ratings
from discreet.errors import BadUsage
from discreet.items.raters import BiasTable, _measure_persons, _Scores, judging
from discreet.items.raters.judging import take_rarest
from discreet.items.raters.laws import RatingLaws
from discreet.items.raters.surprise import AbilityLaw, find_shrinkage
from discreet.models.facets.refit import Refit
from discreet.report.raters import draw_ruler, find_rater_problems, write_rater_page
from refusals import refused
from sizes import is_chance, is_chance_by_study


def draw_study(seed=0, **words):
    sizes = {"steps": 3, "marks": 3} | words
    drawn = discreet.simulate_ratings(400, 4, 8, rng=np.random.default_rng(seed), **sizes)
    return drawn, study_ratings(drawn.ratings, discreet.fit(drawn.ratings))


def change(ratings, score=None, **facets):
    """The same ratings with other scores, or with further facets."""
    return Ratings.from_codes(
        ratings.person,
        ratings.item,
        ratings.score if score is None else score,
        facets={**ratings.codes, **facets},
        items=ratings.items,
        levels=ratings.facets,
    )


def test_measures_of_persons_solve_the_score_equation_of_their_raters():
    # Warm's estimate: score - expected + skewness / (2 information) = 0, written out for a person.
    drawn, study = draw_study()
    ratings, estimate = drawn.ratings, study.estimate
    severity = estimate.facets["rater"].measure
    for person in (0, 57, 399):
        rows = np.flatnonzero(ratings.person == person)
        total, information, skew = 0.0, 0.0, 0.0
        for row in rows:
            difficulty = (
                estimate.thresholds[ratings.item[row]] + severity[ratings.codes["rater"][row]]
            )
            logits = np.concatenate([[0], np.cumsum(study.persons.measure[person] - difficulty)])
            chance = np.exp(logits) / np.exp(logits).sum()
            mean = chance @ np.arange(4)
            total += ratings.score[row] - mean
            information += chance @ (np.arange(4) - mean) ** 2
            skew += chance @ (np.arange(4) - mean) ** 3
        assert total + skew / (2 * information) == pytest.approx(0, abs=1e-4)
        assert study.persons.se[person] == pytest.approx(information**-0.5, rel=1e-3)


def test_scores_above_a_step_without_a_number_do_not_send_persons_to_infinity():
    drawn, study = draw_study()
    value, se = study.estimate.thresholds.copy(), study.estimate.threshold_se.copy()
    value[1, 2] = se[1, 2] = np.nan
    ladder = replace(study.estimate.ladder, value=value, se=se, covariance=None)
    found = study_ratings(drawn.ratings, replace(study.estimate, ladder=ladder))
    top = (drawn.ratings.item == 1) & (drawn.ratings.score == 3)
    assert top.sum() > 50
    others = study_ratings(drawn.ratings.select(np.flatnonzero(~top)), found.estimate)
    assert found.persons.measure == pytest.approx(others.persons.measure, abs=1e-6)
    assert np.abs(found.persons.measure).max() < 6


def test_persons_with_severe_raters_are_raised():
    drawn, study = draw_study(severity_sd=1.5)
    ratings, persons = drawn.ratings, study.persons
    severity = study.estimate.facets["rater"].measure[ratings.codes["rater"]]
    mean_severity = np.bincount(ratings.person, severity) / persons.ratings
    raised = persons.fair - persons.observed
    assert np.corrcoef(mean_severity, raised)[0, 1] > 0.8


def test_mean_squares_are_one_where_the_model_holds():
    _, study = draw_study()
    for fit in study.facets.values():
        np.testing.assert_allclose(fit.infit, 1, atol=0.2)
    assert np.isnan(study.facets["item"].agreement).all()


def test_a_rater_who_rolls_dice_has_a_high_infit_and_one_in_the_middle_a_low_one():
    drawn, _ = draw_study()
    score = drawn.ratings.score.copy()
    rng = np.random.default_rng(1)
    rater = drawn.ratings.codes["rater"]
    score[rater == 2] = rng.integers(0, 4, int((rater == 2).sum()))
    score[rater == 5] = np.where(rng.random(int((rater == 5).sum())) < 0.9, 1, 2)
    ratings = change(drawn.ratings, score)
    fit = study_ratings(ratings, discreet.fit(ratings)).facets["rater"]
    assert fit.infit.argmax() == 2
    assert fit.infit.argmin() == 5


def list_laws(study, person):
    """All ways to rate a person, with the product of the odds of the steps that are reached."""
    ratings, estimate = study.ratings, study.estimate
    rows = np.flatnonzero(ratings.person == person)
    severity = estimate.facets["rater"].measure[ratings.codes["rater"][rows]]
    steps = estimate.thresholds[ratings.item[rows]] + severity[:, None]
    reached = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)
    ways = np.array(list(itertools.product(range(steps.shape[1] + 1), repeat=len(rows))))
    return rows, ways, -reached[np.arange(len(rows)), ways].sum(axis=1), steps


def test_mean_squares_and_expected_ratings_are_those_of_all_ways_to_the_same_total():
    drawn = discreet.simulate_ratings(40, 2, 5, steps=2, rng=np.random.default_rng(2)).ratings
    study = study_ratings(drawn, discreet.fit(drawn))
    mean, variance = np.zeros((2, drawn.n_ratings))
    for person in range(40):
        rows, ways, odds, _ = list_laws(study, person)
        ways_there = ways.sum(axis=1) == drawn.score[rows].sum()
        chance = np.exp(odds[ways_there]) / np.exp(odds[ways_there]).sum()
        mean[rows] = chance @ ways[ways_there]
        variance[rows] = chance @ (ways[ways_there] - mean[rows]) ** 2
    says = variance > 1e-9
    squares = np.where(says, (drawn.score - mean) ** 2, 0)
    rater = drawn.codes["rater"]
    infit = np.bincount(rater, squares) / np.bincount(rater, variance)
    np.testing.assert_allclose(study.facets["rater"].conditional_infit, infit)
    ratio = np.where(says, squares / np.where(says, variance, 1), 0)
    outfit = np.bincount(rater, ratio) / np.bincount(rater, says)
    np.testing.assert_allclose(study.facets["rater"].conditional_outfit, outfit)
    sums = [np.bincount(drawn.person, one) for one in (squares, variance)]
    known = sums[1] > 1e-9
    np.testing.assert_allclose(study.persons.infit[known], sums[0][known] / sums[1][known])
    assert np.isnan(study.persons.infit[~known]).all()
    z = np.where(says, (drawn.score - mean) / np.sqrt(np.where(says, variance, 1)), 0)
    worst = np.argmax(np.abs(z))
    assert study.unexpected.z[0] == pytest.approx(z[worst])
    assert study.unexpected.expected[0] == pytest.approx(mean[worst])
    assert study.unexpected.observed[0] == drawn.score[worst]
    assert study.unexpected.facets["rater"][0] == drawn.facets["rater"][rater[worst]]


def draw_laws():
    """A small study with a person rated twice by one rater; its drawings, and chances by hand.

    The chances are ``[rating, node]`` on a grid that is finer and goes farther out.
    """
    drawn = discreet.simulate_ratings(30, 2, 4, steps=2, rng=np.random.default_rng(1)).ratings
    study = study_ratings(drawn, discreet.fit(drawn))
    model = _Scores(drawn, study.estimate)
    known = RatingLaws.of(model, *_measure_persons(model))
    drawings = judging._Drawings.of(drawn, study.estimate, known)
    node = np.linspace(-14, 14, 2001)
    own = np.zeros((drawn.n_ratings, len(node)))
    for person in range(30):
        rows, _, _, steps = list_laws(study, person)
        for row, step in zip(rows, steps, strict=True):
            logits = np.cumsum(np.pad(node[:, None] - step, ((0, 0), (1, 0))), axis=1)
            own[row] = logits[:, drawn.score[row]] - np.log(np.exp(logits).sum(axis=1))
    return drawn, known, drawings, node, own


def test_surprise_is_the_predictive_probability_of_a_levels_ratings_written_out():
    drawn, known, drawings, node, own = draw_laws()
    mean, variance = np.linspace(-1, 2, 30), 0.7
    law = AbilityLaw(mean, np.zeros(6), variance, 0.0)
    table = drawings._tabulate(drawings.refit, drawings.surprise.node)
    found = drawings.surprise.measure(known.score, table, law)

    def chance(person, rows):
        weight = stats.norm.pdf(node, mean[person], variance**0.5)
        return np.log(np.exp(own[rows].sum(axis=0)) @ weight / weight.sum())

    levels = [drawn.codes["rater"] == rater for rater in range(4)]
    levels += [drawn.item == item for item in range(2)]
    for level, surprise in zip(levels, found, strict=True):
        total = 0.0
        for person in np.unique(drawn.person[level]):
            whole = drawn.person == person
            total += chance(person, whole & ~level) - chance(person, whole)
        assert surprise == pytest.approx(total / level.sum(), rel=1e-4)


@pytest.mark.parametrize("shrinkage", [0.001, 7.0, 1e12])
def test_the_law_of_abilities_is_where_the_posterior_law_repeats_it(shrinkage):
    """Residual means of each level's persons are those of the effects' own normal law."""
    drawn, known, drawings, node, own = draw_laws()
    surprise = replace(drawings.surprise, shrinkages=(shrinkage, 1e12))
    table = drawings._tabulate(drawings.refit, surprise.node)
    law = surprise.fit_law(known.score, table, surprise.begin_law(), 3000)
    moments = np.zeros((30, 2))
    for person in range(30):
        weight = stats.norm.pdf(node, law.mean[person], law.variance**0.5)
        weight = weight * np.exp(own[drawn.person == person].sum(axis=0))
        apart = node - law.mean[person]
        moments[person] = weight @ np.column_stack([apart, apart**2]) / weight.sum()
    assert moments[drawn.person, 0].mean() == pytest.approx(0, abs=2e-3)
    for level in range(4):
        mine = drawn.person[drawn.codes["rater"] == level]
        if shrinkage < 1e12:
            back = shrinkage * (law.effect[level] - law.centre)
            assert moments[mine, 0].sum() == pytest.approx(back, abs=0.03)
    assert np.ptp(law.effect[:4]) > 0.1 if shrinkage < 1e12 else np.ptp(law.effect) < 1e-9
    assert moments[:, 1].mean() == pytest.approx(law.variance, rel=1e-3)
    effects = law.effect[np.column_stack([drawn.codes["rater"], 4 + drawn.item])].mean(axis=1)
    by_hand = np.bincount(drawn.person, effects) / np.bincount(drawn.person)
    np.testing.assert_allclose(law.mean, by_hand)


def test_effects_shrink_by_the_variance_between_levels_and_vanish_where_these_do_not_differ():
    rng = np.random.default_rng(0)
    code = np.repeat([0, 1, 2, 3], [10, 30, 30, 50])
    noise = rng.normal(size=120)
    assert find_shrinkage(code, noise) == 1e12
    ability = noise + np.array([-1.0, 0.0, 0.5, 1.0])[code]
    groups = [ability[code == level] for level in range(4)]
    test = stats.f_oneway(*groups)
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / 116
    expected = within / ((test.statistic - 1) * within / 30)
    assert find_shrinkage(code, ability) == pytest.approx(expected)


def test_a_refit_moves_by_a_newton_step_and_not_at_all_with_the_same_scores():
    drawn = discreet.simulate_ratings(400, 2, 5, rng=np.random.default_rng(2)).ratings
    estimate = discreet.fit(drawn, within=None)
    refit = Refit.of(drawn, estimate)
    same = refit.draw(drawn.score)
    np.testing.assert_allclose(same.thresholds, refit.thresholds, atol=1e-8)
    se = estimate.facets["rater"].se * np.sqrt(1 - 1 / estimate.facets["rater"].persons)
    np.testing.assert_allclose(refit.find_errors()[6:11], se)
    rng = np.random.default_rng(0)
    half = rng.random(drawn.n_ratings) < 0.03
    score = np.where(half, rng.permutation(drawn.score), drawn.score).astype(np.int32)
    full = discreet.fit(change(drawn, score), within=None)
    moved = refit.draw(score)
    values = np.concatenate([full.thresholds.ravel(), full.facets["rater"].measure])
    size = np.abs(values - refit.thresholds).max()
    assert np.abs(moved.thresholds - values).max() < size / 8
    np.testing.assert_allclose(moved.find_errors()[6:] / refit.find_errors()[6:], 1, atol=0.1)


def test_a_limit_is_exceeded_by_its_share_of_the_sets():
    largest = np.random.default_rng(0).permutation(np.arange(200.0))
    assert (largest > take_rarest(largest, 0.03)).sum() == 6
    assert (largest > take_rarest(largest, 0.01)).sum() == 2
    assert (largest[:100] > take_rarest(largest[:100], 0.01)).sum() == 1


def roll_dice(ratings, level, seed=0):
    dice = np.random.default_rng(seed).integers(0, 4, ratings.n_ratings)
    return change(ratings, np.where(ratings.codes["rater"] == level, dice, ratings.score))


def test_the_worst_rater_is_named_first_and_then_judged_no_longer():
    drawn = discreet.simulate_ratings(600, 2, 6, rng=np.random.default_rng(5)).ratings
    both = roll_dice(roll_dice(drawn, 2), 4, seed=1)
    study = study_ratings(both, discreet.fit(both))
    assert {one.levels for one in study.misfits} == {("R3",), ("R5",)}
    assert all(one.z > study.limits[1] > 0 and one.infit > 1.2 for one in study.misfits)
    (finding,) = [one for one in find_rater_problems(study) if "erratic" in one.title]
    assert "R3" in finding.title
    assert "R5" in finding.title


def test_of_very_many_ratings_infit_is_held_against_a_rule_of_thumb(monkeypatch):
    monkeypatch.setattr(judging, "MOST_RATINGS", 3999)
    drawn = discreet.simulate_ratings(400, 5, 8, rng=np.random.default_rng(5)).ratings
    spoiled = roll_dice(drawn, 2)
    study = study_ratings(spoiled, discreet.fit(spoiled))
    infit = study.facets["rater"].conditional_infit
    beyond = np.flatnonzero((infit > 1.3) | (infit < 0.7))
    assert {one.levels[0] for one in study.misfits} == {f"R{row + 1}" for row in beyond} >= {"R3"}
    assert np.isnan(study.facets["rater"].surprise).all()
    assert np.isnan(study.persons.p).all()
    assert study.unexpected_persons is None
    assert study.sets == 0
    assert "none are drawn again" in write_rater_page(study)
    # Who is far from the mean is said by Student's t and Bonferroni's inequality.
    facet = study.estimate.facets["rater"]
    p = 8 * 2 * stats.t.sf(np.abs(facet.measure / facet.se), facet.degrees)
    np.testing.assert_allclose(study.facets["rater"].far_p, np.minimum(p, 1))


def test_a_rater_at_random_is_named_and_no_sound_one_beside():
    """Two ratings a person, whose residuals are equal and opposite."""
    found, others = 0, 0
    for seed in range(12):
        drawn = discreet.simulate_ratings(600, 1, 6, rng=np.random.default_rng(seed)).ratings
        spoiled = roll_dice(drawn, seed % 6, seed)
        misfits = study_ratings(spoiled, discreet.fit(spoiled, standard_errors=False)).misfits
        named = {level for one in misfits for level in one.levels}
        found += f"R{seed % 6 + 1}" in named
        others += bool(named - {f"R{seed % 6 + 1}"})
    assert found >= 11
    assert others <= 2


def test_raters_of_better_persons_are_not_erratic_for_it():
    """Half of the raters mark persons who are 3 logits better; one person in ten is of both."""
    rng = np.random.default_rng(1)
    persons = np.arange(400)
    half = persons % 2
    order = (
        rng.random((400, 8)) + 2 * (np.arange(8) % 2 == half[:, None]) * (persons % 10 > 1)[:, None]
    )
    rater = np.argsort(order, axis=1)[:, :2].ravel()
    ability = (rng.normal(0, 0.5, 400) + 3 * half)[persons.repeat(2)]
    logits = np.cumsum(ability[:, None] - np.array([0.0, 1.0, 2.0]), axis=1)
    score = (np.insert(logits, 0, 0, axis=1) + rng.gumbel(size=(800, 4))).argmax(axis=1)
    ratings = Ratings.from_codes(persons.repeat(2), np.zeros(800), score, facets={"rater": rater})
    study = study_ratings(ratings, discreet.fit(ratings))
    assert study.misfits == ()
    assert abs(study.facets["rater"].surprise.mean()) < 1


def test_a_rater_far_from_the_mean_has_the_chance_of_the_largest_distance():
    drawn = discreet.simulate_ratings(300, 1, 6, severity_sd=0.0, rng=np.random.default_rng(0))
    harsh = drawn.ratings.codes["rater"] == 2
    score = np.where(harsh, np.maximum(drawn.ratings.score - 1, 0), drawn.ratings.score)
    ratings = change(drawn.ratings, score)
    estimate = discreet.fit(ratings)
    study, facet = study_ratings(ratings, estimate), estimate.facets["rater"]
    p = study.facets["rater"].far_p
    assert p[2] == 1 / 200
    order = np.argsort(-np.abs(facet.measure / facet.se))
    assert (np.diff(p[order]) >= 0).all()
    assert np.isnan(study.facets["item"].far_p).all()


def test_of_three_raters_the_pair_is_named():
    drawn = discreet.simulate_ratings(900, 2, 3, rng=np.random.default_rng(5)).ratings
    spoiled = roll_dice(drawn, 1)
    (misfit,) = study_ratings(spoiled, discreet.fit(spoiled)).misfits
    assert len(misfit.levels) == 2
    assert "R2" in misfit.levels


def test_sound_ratings_of_equal_raters_alarm_as_often_as_the_level_says(monkeypatch):
    """On both sides of 5%: fit of levels and persons together; somebody severe or lenient.

    Measures correlate, and their errors from few persons vary.
    """
    monkeypatch.setattr(judging, "FEW", 99)
    fit, far = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        drawn = discreet.simulate_ratings(100, 1, 5, steps=2, severity_sd=0.0, rng=rng).ratings
        study = study_ratings(drawn, discreet.fit(drawn))
        fit += bool(study.misfits) or study.unexpected_persons.is_beyond
        far += bool((study.facets["rater"].far_p <= 0.05).any())
    assert is_chance(fit, 200)
    assert is_chance(far, 200)


def test_categories_have_the_mean_levels_of_their_ratings():
    drawn, study = draw_study()
    ratings, table = drawn.ratings, study.categories
    severity = study.estimate.facets["rater"].measure[ratings.codes["rater"]]
    level = study.persons.measure[ratings.person] - severity
    total = np.bincount(ratings.person, ratings.score)[ratings.person]
    used = (total > 0) & (total < 3 * np.bincount(ratings.person)[ratings.person])
    for row in (1, 6):
        item = ratings.items.index(table.item[row])
        mine = (ratings.item == item) & (ratings.score == table.category[row])
        assert table.answers[row] == mine.sum()
        assert table.share[row] == pytest.approx(mine.sum() / (ratings.item == item).sum())
        assert table.mean_ability[row] == pytest.approx(level[mine & used].mean())
        assert table.threshold[row] == study.estimate.thresholds[item, table.category[row] - 1]
        logits = np.cumsum(
            np.pad(level[:, None] - study.estimate.thresholds[item], ((0, 0), (1, 0))), axis=1
        )
        chance = np.exp(logits[:, table.category[row]]) / np.exp(logits).sum(axis=1)
        there = used & (ratings.item == item)
        expected = (chance * level)[there].sum() / chance[there].sum()
        assert table.expected_ability[row] == pytest.approx(expected)


def test_raters_who_copy_agree_too_well():
    drawn, _ = draw_study()
    score = drawn.ratings.score.copy()
    rater, person, item = (
        drawn.ratings.codes["rater"], drawn.ratings.person, drawn.ratings.item,
    )  # fmt: skip
    given = {(p, i): s for p, i, r, s in zip(person, item, rater, score, strict=True) if r == 0}
    for row in np.flatnonzero(rater == 1):
        score[row] = given.get((person[row], item[row]), score[row])
    ratings = change(drawn.ratings, score)
    study = study_ratings(ratings, discreet.fit(ratings))
    fit = study.facets["rater"]
    assert set(np.argsort(-fit.agreement_z)[:2].tolist()) == {0, 1}
    titles = [finding.title for finding in find_rater_problems(study)]
    assert any("too much agreement" in title and "R1" in title for title in titles)


def test_bias_of_one_rater_on_one_item_is_found_and_nothing_else():
    drawn, _ = draw_study()
    rater, item = drawn.ratings.codes["rater"], drawn.ratings.item
    harsh = (rater == 3) & (item == 1)
    score = np.where(harsh, np.maximum(drawn.ratings.score - 1, 0), drawn.ratings.score)
    ratings = change(drawn.ratings, score)
    table = study_ratings(ratings, discreet.fit(ratings)).find_bias("rater", "item")
    flagged = table.flagged(0.01)
    assert (flagged.first[0], flagged.second[0]) == ("R4", "I2")
    assert flagged.bias[0] > 0.5
    assert len(table.bias) == 32
    assert (table.adjusted >= table.p).all()


def bias_by_hand(study, names):
    """Bias, error and p-value of every pair, person by person, from the definition.

    A person's part in a pair is the sum of residuals there, less what the sums of both levels
    foretell of it (least squares with the information as weights).
    """
    ratings, estimate = study.ratings, study.estimate
    codes = [ratings.item if name == "item" else ratings.codes[name] for name in names]
    residual, variance = np.zeros(ratings.n_ratings), np.zeros(ratings.n_ratings)
    for row in range(ratings.n_ratings):
        step = study.persons.measure[ratings.person[row]] - estimate.thresholds[ratings.item[row]]
        for name, facet in estimate.facets.items():
            step = step - facet.measure[ratings.codes[name][row]]
        chance = np.exp(np.concatenate([[0], np.cumsum(step)]))
        chance /= chance.sum()
        mean = chance @ np.arange(len(chance))
        residual[row] = ratings.score[row] - mean
        variance[row] = chance @ (np.arange(len(chance)) - mean) ** 2
    rows = []
    for first, second in sorted(set(zip(*codes, strict=True))):
        a, b = codes[0] == first, codes[1] == second
        columns = [part for name, part in zip(names, (a, b), strict=True)
                   if name == "item" or name in estimate.facets]  # fmt: skip
        design = np.array(columns, dtype=float).T
        foretold = np.linalg.lstsq(
            design * variance[:, None] ** 0.5, (a & b) * variance**0.5, rcond=None
        )[0]
        part = residual * ((a & b) - design @ foretold)
        present = np.unique(ratings.person[a & b])
        # Persons whom a level has elsewhere enter with each level by itself.
        square = sum(part[ratings.person == person].sum() ** 2 for person in present)
        for person in np.setdiff1d(np.unique(ratings.person), present):
            own = ratings.person == person
            square += sum((share * residual[own & column].sum()) ** 2
                          for share, column in zip(foretold, columns, strict=True))  # fmt: skip
        n, information = len(present), variance[a & b].sum()
        bias, se = -residual[a & b].sum() / information, np.sqrt(square * n / (n - 1)) / information
        rows.append((bias, se, 2 * stats.t.sf(abs(bias / se), n - 1)))
    return np.array(rows).T


@pytest.mark.parametrize("names", [("rater", "item"), ("rater", "month"), ("month", "item")])
def test_bias_and_its_error_are_those_of_the_definition(names):
    """Persons have unequally many ratings in a pair, and some have a level in other pairs only."""
    rng = np.random.default_rng(1)
    drawn = discreet.simulate_ratings(60, 3, 4, rng=rng, marks=3, severity_sd=0.8).ratings
    # Some ratings are missing, and some stand there two or three times.
    kept = drawn.select(np.repeat(np.arange(drawn.n_ratings), rng.integers(0, 4, drawn.n_ratings)))
    ratings = change(kept, month=rng.integers(0, 3, kept.n_ratings) // 2)
    study = study_ratings(ratings, discreet.fit(ratings, facets=["rater"]))
    table = study.find_bias(*names)
    bias, se, p = bias_by_hand(study, names)
    assert table.bias == pytest.approx(bias, rel=1e-6)
    assert table.se == pytest.approx(se, rel=1e-6)
    assert table.p == pytest.approx(p, rel=1e-5)


def test_false_alarms_of_bias_are_as_frequent_as_promised():
    """Of 40 studies; the error of their mean is found from the studies, whose tests depend."""
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = discreet.simulate_ratings(120, 4, 6, rng=rng, marks=3).ratings
        p = study_ratings(drawn, discreet.fit(drawn)).find_bias("rater", "item").p
        shares.append((p < 0.05).mean())
    assert is_chance_by_study(shares)
    assert np.mean(shares) == pytest.approx(0.05, abs=0.02)


def test_the_only_pair_of_a_level_has_no_bias_of_its_own():
    rng = np.random.default_rng(0)
    drawn = discreet.simulate_ratings(100, 1, 4, rng=rng, marks=2).ratings
    table = study_ratings(drawn, discreet.fit(drawn)).find_bias("rater", "item")
    assert np.isnan(table.se).all()
    assert np.isnan(table.adjusted).all()
    assert len(table.flagged().bias) == 0


def test_a_rater_who_becomes_severe_is_found_by_drift():
    drawn, _ = draw_study()
    time = (drawn.ratings.person % 2).astype(np.int32)
    late = (drawn.ratings.codes["rater"] == 6) & (time == 1)
    score = np.where(late, np.maximum(drawn.ratings.score - 1, 0), drawn.ratings.score)
    ratings = change(drawn.ratings, score, month=time)
    study = study_ratings(ratings, discreet.fit(ratings, facets=["rater"]))
    flagged = study.find_bias("rater", "month").flagged(0.01)
    assert flagged.first[:2] == ("R7", "R7")
    assert np.abs(flagged.bias[:2]).min() > 2 * np.abs(flagged.bias[2:]).max(initial=0.1)
    with refused(BadUsage, "ratings_no_facet_they", name="year"):
        study.find_bias("rater", "year")


def test_fair_averages_are_expected_scores_of_the_mean_person():
    _, study = draw_study(severity_sd=1.0)
    fit = study.facets["rater"]
    order = np.argsort(fit.measure)
    assert (np.diff(fit.fair[order]) < 0).all()
    mean = study.facets["item"].fair.mean()
    assert fit.fair.min() < mean < fit.fair.max()


def test_findings_name_the_severe_rater_and_the_points_lost():
    drawn, _ = draw_study()
    score = np.where(
        drawn.ratings.codes["rater"] == 6,
        np.maximum(drawn.ratings.score - 1, 0),
        drawn.ratings.score,
    )
    ratings = change(drawn.ratings, score)
    study = study_ratings(ratings, discreet.fit(ratings))
    finding = next(f for f in find_rater_problems(study) if "severe" in f.title)
    assert "R7 is" in finding.title
    assert "points" in finding.found


def test_the_page_names_raters_and_escapes_their_names():
    drawn, _ = draw_study()
    names = ["<b>Eve</b>", *drawn.ratings.facets["rater"][1:]]
    ratings = Ratings.from_codes(
        drawn.ratings.person, drawn.ratings.item, drawn.ratings.score,
        facets=drawn.ratings.codes, levels={"rater": names},
    )  # fmt: skip
    study = study_ratings(ratings, discreet.fit(ratings))
    page = write_rater_page(study, [study.find_bias("rater", "item")], title="Essays")
    assert "&lt;b&gt;Eve&lt;/b&gt;" in page
    assert "<b>Eve</b>" not in page
    assert "Confidential" in page
    assert "Vertical ruler" in draw_ruler(study).description


def test_flagged_pairs_come_largest_first():
    columns = [np.array(values) for values in ([5, 5, 5], [0.2, -1.0, 3.0], [0.1] * 3)]
    p = np.array([0.01, 0.02, 0.9])
    table = BiasTable(("a", "b"), ("x", "y", "z"), ("u", "v", "w"), *columns, p, p)
    assert table.flagged(0.05).first == ("y", "x")
