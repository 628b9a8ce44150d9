"""Columns of tables that follow from other columns: z, p-values and their adjustment, errors."""

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet import analysis
from discreet.items import curves, mislabelled
from discreet.scales import drift
from discreet.simulation import simulate


def adjust_by_hand(p, method):
    """Benjamini and Hochberg's, or Holm's, one p-value after another."""
    p = np.asarray(p)
    order, n = np.argsort(p), len(p)
    out = np.empty(n)
    if method == "holm":
        least = 0.0
        for rank, place in enumerate(order):
            out[place] = least = min(1.0, max(least, (n - rank) * p[place]))
    else:
        least = 1.0
        for rank, place in reversed(list(enumerate(order, start=1))):
            out[place] = least = min(least, p[place] * n / rank)
    return out


@pytest.fixture(scope="module")
def answers():
    """600 persons in three groups of unequal size, and an item that moved for one of them."""
    rng = np.random.default_rng(5)
    group = np.array(["a", "b", "c"])[rng.choice(3, 600, p=[0.5, 0.3, 0.2])]
    drawn = simulate(600, 7, answered=0.85, rng=rng).responses.to_array().astype(float)
    drawn[drawn < 0] = np.nan
    drawn[(group == "b") & (rng.random(600) < 0.4) & (drawn[:, 2] > 0), 2] = 0
    return drawn, group


@pytest.mark.parametrize("adjustment", ["benjamini-hochberg", "holm"])
@pytest.mark.parametrize("test", ["wald", "mantel-haenszel", "likelihood-ratio"])
def test_columns_of_differences_follow_from_difference_and_error(test, adjustment, answers):
    drawn, group = answers
    table = discreet.find_dif(drawn, group, test=test, adjustment=adjustment)
    z = table.difference / table.se
    assert np.isfinite(z).all()
    assert table.z == pytest.approx(z)
    if test != "mantel-haenszel":  # its own chi-squared has a correction for continuity
        assert table.p_value == pytest.approx(2 * stats.norm.sf(np.abs(z)))
    assert 1e-6 < table.p_value.min() < 0.05 < table.p_value.max()
    assert table.p_adjusted == pytest.approx(adjust_by_hand(table.p_value, adjustment))
    assert table.flagged.tolist() == (table.p_value < 0.05).tolist()
    assert table.confirmed.tolist() == (table.p_adjusted < 0.05).tolist()
    together = table.omnibus
    expected = stats.chi2.sf(together.statistic, together.degrees)
    assert together.p_value == pytest.approx(expected)
    assert together.p_adjusted == pytest.approx(adjust_by_hand(expected, adjustment))


def test_the_likelihood_ratio_of_two_groups_is_the_p_value_of_their_rows(answers):
    drawn, group = answers
    table = discreet.find_dif(drawn, np.where(group == "c", "b", group), test="likelihood-ratio")
    assert table.p_value == pytest.approx(table.omnibus.p_value)
    assert table.z == pytest.approx(table.difference / table.se)


def test_errors_of_group_means_are_roots_of_their_variances(answers):
    drawn, group = answers
    found = analysis.find_group_means(drawn, discreet.fit(drawn), group)
    assert found.se == pytest.approx(np.sqrt(found.covariance.diagonal()))


def test_two_step_models_differ_by_their_numbers_of_distances():
    """Partial credit has a distance for every item and step but the first of each."""
    codes = simulate(400, 5, steps=3, rng=np.random.default_rng(6)).responses
    found = analysis.compare_step_models(codes)
    assert found.degrees == (5 - 1) * (3 - 1)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, found.degrees))


def test_reliabilities_with_testlets_are_those_of_two_fits():
    answers = simulate(300, 6, rng=np.random.default_rng(7)).responses
    pairs = {str(item): f"t{item // 2}" for item in range(6)}
    found = analysis.measure_testlets(answers, pairs)
    joined = analysis.combine_testlets(answers, pairs)
    for place, data in enumerate((answers, joined)):
        scores = discreet.score(data, discreet.fit(data), method="ml")
        kept = np.isfinite(scores.ability)
        spread = scores.ability[kept].var(ddof=1)
        expected = 1 - np.mean(scores.se[kept] ** 2) / spread
        assert found.reliability[place] == pytest.approx(expected, rel=1e-4)
    assert found.overstated == pytest.approx(found.reliability[0] - found.reliability[1])


def test_the_p_value_of_parts_is_that_of_chi_squared():
    answers = simulate(300, 6, rng=np.random.default_rng(8)).responses
    found = analysis.run_martin_loef(answers, list(answers.items[:2]))
    assert found.degrees == 2 * 4 - 1
    assert 0.01 < found.p_value < 0.99
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, found.degrees))


def test_the_error_of_a_slope_is_the_spread_of_its_posterior(monkeypatch):
    """Mean and spread of weights have a test of their own."""
    real, seen = mislabelled._moments, []
    monkeypatch.setattr(
        mislabelled, "_moments", lambda weight: seen.append(real(weight)) or seen[-1]
    )
    answers = simulate(200, 8, rng=np.random.default_rng(9)).responses
    found = analysis.find_mislabelled(answers, discreet.fit(answers))
    assert found.discrimination.tolist() == seen[-1][0].tolist()
    assert found.se.tolist() == seen[-1][1].tolist()


def test_tables_of_raters_repeat_the_errors_of_the_calibration():
    drawn = discreet.simulate_ratings(80, 3, 5, rng=np.random.default_rng(10), marks=2).ratings
    estimate = discreet.fit(drawn, facets=["rater"])
    found = analysis.study_ratings(drawn, estimate).facets["rater"]
    known = estimate.facets["rater"]
    assert found.measure.tolist() == known.measure.tolist()
    assert found.se.tolist() == known.se.tolist()


def test_the_error_of_an_ability_is_the_root_of_one_over_the_information():
    known = {"a": -0.5, "b": 0.3, "c": 1.1}
    curve = analysis.trace_information(known, [-1.0, 0.0, 2.0])
    chance = 1 / (1 + np.exp(np.array([*known.values()]) - np.array([[-1.0], [0.0], [2.0]])))
    assert curve.information == pytest.approx((chance * (1 - chance)).sum(axis=1))
    assert curve.se == pytest.approx(1 / np.sqrt(curve.information))


def test_errors_of_thresholds_are_roots_of_their_variances_and_pictures_show_them():
    estimate = discreet.fit(simulate(300, 4, steps=2, rng=np.random.default_rng(11)).responses)
    se = np.sqrt(estimate.ladder.covariance.diagonal()).reshape(4, 2)
    assert estimate.threshold_se == pytest.approx(se)
    rows = curves.threshold_rows(estimate)
    place = [estimate.items.index(item) for item in rows.items]
    half = stats.norm.isf(0.025) * se[place]
    assert rows.lower == pytest.approx(estimate.thresholds[place] - half)
    assert rows.upper == pytest.approx(estimate.thresholds[place] + half)


def test_columns_of_drift_are_those_of_its_comparisons(monkeypatch):
    """What one comparison is has a test of its own."""
    real, seen = drift._compare_latest, []

    def note(*given):
        seen.append(real(*given))
        return seen[-1]

    monkeypatch.setattr(drift, "_compare_latest", note)
    rng = np.random.default_rng(12)
    fits = [discreet.fit(simulate(300, 6, rng=rng).responses) for _ in range(3)]
    found = discreet.find_drift(fits)
    change, se = np.transpose(seen[-6:])
    assert found.change.tolist() == change.tolist()
    assert found.change_se.tolist() == se.tolist()
    assert found.p_adjusted == pytest.approx(adjust_by_hand(found.p_value, "holm"))
    assert len(set(found.p_adjusted)) > 1
