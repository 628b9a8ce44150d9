"""Fit statistics and tests between groups against eRm and against their definitions."""

import csv
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.analysis import (
    correlate_residuals,
    measure_fit,
    run_andersen,
    run_wald,
    trace_information,
)
from discreet.answers.responses import Responses
from discreet.api.persons import score
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items import residuals
from refusals import refused
from sizes import is_chance

DATA = Path(__file__).parents[1] / "data"


def lsat():
    return discreet.datasets.lsat()


def simulated():
    return discreet.read_responses(DATA / "simulated_300x12.csv", group="group")


SETS = [("lsat6", lsat), ("simulated_300x12", simulated)]


def column(name, field, kind="items"):
    with (DATA / f"erm_{name}_{kind}.csv").open() as file:
        return np.array([float(row[field]) for row in csv.DictReader(file)])


@pytest.mark.parametrize(("name", "load"), SETS)
def test_item_fit_equals_erm(name, load):
    answers = load()
    found = measure_fit(answers, discreet.fit(answers, method="conditional")).items
    assert found.infit == pytest.approx(column(name, "infit"), abs=2e-5)
    assert found.outfit == pytest.approx(column(name, "outfit"), abs=2e-5)
    assert found.infit_t == pytest.approx(column(name, "infit_t"), abs=2e-4)
    assert found.outfit_t == pytest.approx(column(name, "outfit_t"), abs=2e-4)
    assert set(found.status) == {"measured"}


def test_person_fit_equals_erm():
    answers, name = simulated(), "simulated_300x12"
    found = measure_fit(answers, discreet.fit(answers, method="conditional")).persons
    who = column(name, "person", "personfit").astype(int)
    for field in ("infit", "outfit", "infit_t", "outfit_t"):
        assert getattr(found, field)[who] == pytest.approx(
            column(name, field, "personfit"), abs=2e-4
        )


@pytest.mark.parametrize(
    ("load", "variance", "mse", "reliability"),
    # SepRel of eRm 1.0.2.
    [(lsat, 0.718995, 1.196885, -0.664665), (simulated, 1.631095, 0.553672, 0.660552)],
)
def test_person_reliability_equals_erm(load, variance, mse, reliability):
    answers = load()
    found = measure_fit(answers, discreet.fit(answers, method="conditional")).person_reliability
    assert found.variance == pytest.approx(variance, abs=1e-4)
    assert found.mse == pytest.approx(mse, abs=1e-4)
    assert found.reliability == pytest.approx(reliability, abs=2e-4)
    assert found.separation == pytest.approx(
        np.sqrt(max(reliability, 0) / (1 - max(reliability, 0))), abs=1e-3
    )


@pytest.mark.parametrize(
    ("load", "groups", "statistic", "degrees", "p_value"),
    # LRtest of eRm 1.0.2.
    [
        (lsat, "mean score", 0.168072, 4, 0.996661),
        (simulated, "mean score", 6.139752, 11, 0.863879),
        (simulated, "group", 20.094728, 11, 0.044058),
    ],
)
def test_andersens_test_equals_erm(load, groups, statistic, degrees, p_value):
    found = run_andersen(load(), groups)
    assert found.statistic == pytest.approx(statistic, abs=1e-5)
    assert found.degrees == degrees
    assert found.p_value == pytest.approx(p_value, abs=1e-5)


def test_andersens_test_by_every_score_equals_erm():
    answers = lsat()
    scores = answers.to_array().sum(axis=1)
    labels = [str(s) if 0 < s < 5 else None for s in scores]
    found = run_andersen(answers, labels)
    assert found.statistic == pytest.approx(3.136059, abs=1e-5)
    assert found.degrees == 12
    assert any("301 persons without a group label" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("name", "load", "groups", "field"),
    [
        ("lsat6", lsat, "mean score", "wald_z"),
        ("simulated_300x12", simulated, "mean score", "wald_z"),
        ("simulated_300x12", simulated, "group", "wald_group"),
    ],
)
def test_wald_tests_equal_erm(name, load, groups, field):
    found = run_wald(load(), groups)
    assert found.z == pytest.approx(column(name, field), abs=2e-4)
    assert set(found.status) == {"compared"}


def test_mean_squares_are_their_definition():
    rng = np.random.default_rng(1)
    sim = discreet.simulate(80, 9, 0.7, rng=rng)
    truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    found = measure_fit(sim.responses, truth)
    scores = score(sim.responses, truth, method="ml")
    x = sim.responses.to_array().astype(float)
    x[x < 0] = np.nan
    x[scores.status != "measured"] = np.nan
    p = 1 / (1 + np.exp(sim.difficulty - scores.ability[:, None]))
    y, w = x - p, np.where(np.isnan(x), np.nan, p * (1 - p))
    for axis, part in ((0, found.items), (1, found.persons)):
        used = ~np.isnan(x).all(axis=axis)
        outfit = np.nanmean((y**2 / w)[used] if axis else (y**2 / w)[:, used], axis=axis)
        infit = np.nansum(y**2, axis=axis)[used] / np.nansum(w, axis=axis)[used]
        assert part.outfit[used] == pytest.approx(outfit)
        assert part.infit[used] == pytest.approx(infit)
    item = 3
    seen = ~np.isnan(x[:, item])
    expected = np.corrcoef(x[seen, item], scores.ability[seen])[0, 1]
    assert found.items.point_measure[item] == pytest.approx(expected)
    ability, chance = scores.ability[seen], p[seen, item]
    spread = chance.var() + (chance * (1 - chance)).mean()
    expected = np.cov(ability, chance, ddof=0)[0, 1] / np.sqrt(ability.var() * spread)
    assert found.items.point_measure_expected[item] == pytest.approx(expected)
    away = ability - sim.difficulty[item]
    slope = 1 + (y[seen, item] * away).sum() / (w[seen, item] * away**2).sum()
    assert found.items.discrimination[item] == pytest.approx(slope)


def test_expected_correlations_and_discriminations_tell_steep_items_from_flat_ones():
    rng = np.random.default_rng(8)
    ability, difficulty = rng.normal(size=(4000, 1)), np.linspace(-1, 1, 20)
    slope = np.where(np.arange(20) == 4, 2.0, np.where(np.arange(20) == 15, 0.3, 1.0))
    chance = 1 / (1 + np.exp(-slope * (ability - difficulty)))
    answers = (rng.random(chance.shape) < chance).astype(int)
    found = measure_fit(answers, discreet.fit(answers, method="conditional")).items
    assert np.argmax(found.discrimination) == 4
    assert np.argmin(found.discrimination) == 15
    assert found.discrimination[15] < 0.5
    assert found.discrimination[4] > 1.3
    others = np.isin(np.arange(20), [4, 15], invert=True)
    assert found.discrimination[others] == pytest.approx(1, abs=0.2)
    away = found.point_measure - found.point_measure_expected
    assert away[4] > 0.05
    assert away[15] < -0.1
    assert np.abs(away[others]).max() < 0.06


def test_standardised_fit_is_standard_normal_under_the_model():
    rng = np.random.default_rng(2)
    values = []
    for _ in range(10):
        sim = discreet.simulate(400, 40, rng=rng)
        truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
        values.append(measure_fit(sim.responses, truth).items.infit_t)
    values = np.concatenate(values)
    assert abs(values.mean()) < 0.5
    assert 0.7 < values.std() < 1.2


def test_a_random_item_misfits_and_a_copied_one_shows_in_the_residuals():
    rng = np.random.default_rng(3)
    sim = discreet.simulate(1000, 20, rng=rng)
    answers = sim.responses.to_array()
    answers[:, 0] = rng.integers(0, 2, 1000)
    answers[:, 2] = np.where(rng.random(1000) < 0.8, answers[:, 1], answers[:, 2])
    calibration = discreet.fit(answers, method="conditional")
    found = measure_fit(answers, calibration).items
    assert np.argmax(found.infit_t) == 0
    assert found.infit_t[0] > 4
    assert np.argmin(found.point_measure) == 0
    pairs = correlate_residuals(answers, calibration)
    top = pairs.to_dict()
    assert {top["item"][0], top["other"][0]} == {"1", "2"}
    assert set(np.argsort(-np.abs(pairs.loading))[:2]) == {1, 2}
    assert pairs.eigenvalue > 1.5


def test_residual_correlations_are_their_definition():
    sim = discreet.simulate(200, 6, rng=np.random.default_rng(4))
    truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    found = correlate_residuals(sim.responses, truth)
    scores = score(sim.responses, truth, method="ml")
    used = scores.status == "measured"
    p = 1 / (1 + np.exp(sim.difficulty - scores.ability[used, None]))
    expected = np.corrcoef((sim.responses.to_array()[used] - p).T)
    assert found.q3 == pytest.approx(expected, abs=1e-12)
    values = np.linalg.eigvalsh(expected)
    assert found.eigenvalue == pytest.approx(values[-1])
    assert found.loading @ found.loading == pytest.approx(values[-1])
    assert found.mean == pytest.approx(expected[np.triu_indices(6, 1)].mean())


def test_pairs_that_nobody_answered_together_have_no_correlation_but_a_count():
    answers = np.full((60, 3), -1)
    rng = np.random.default_rng(5)
    answers[:, 0] = rng.integers(0, 2, 60)
    answers[:30, 1] = rng.integers(0, 2, 30)
    answers[30:, 2] = rng.integers(0, 2, 30)
    found = correlate_residuals(answers, {"0": 0.0, "1": 0.1, "2": -0.1})
    assert np.isnan(found.q3[1, 2])
    assert found.together[1, 2] == 0
    assert np.isfinite([found.mean, found.eigenvalue]).all()


def test_information_is_the_sum_of_the_items():
    curve = trace_information({"a": -1.0, "b": 2.0}, [0.0, 0.5])
    p = 1 / (1 + np.exp(np.array([[-1.0, 2.0]]) - np.array([[0.0], [0.5]])))
    assert curve.information == pytest.approx((p * (1 - p)).sum(axis=1))
    assert curve.expected_score == pytest.approx(p.sum(axis=1))
    assert curve.se == pytest.approx(curve.information**-0.5)
    assert len(trace_information({"a": 0.0}).ability) == 121


def test_items_without_a_number_have_a_status_beside_the_nan():
    sim = discreet.simulate(100, 4, rng=np.random.default_rng(6))
    extra = np.column_stack([np.ones(100), np.full(100, -1)])
    answers = np.hstack([sim.responses.to_array(), extra])
    truth = {str(i): 0.1 * i for i in range(4)} | {"5": 0.0}
    found = measure_fit(answers, truth)
    assert found.items.status[4:] == ("no_difficulty", "no_answers")
    assert np.isnan(found.items.infit[4:]).all()
    assert any("ignored" in text for text in found.warnings)
    always = measure_fit(np.hstack([sim.responses.to_array(), extra[:, :1]]), truth | {"4": -4.0})
    assert always.items.status[4] == "no_variance"
    assert np.isnan(always.items.point_measure[4])
    assert np.isfinite(always.items.infit[4])


def test_extreme_persons_have_a_status_beside_the_nan():
    answers = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0], [-1, -1, -1], [-1, 1, -1]])
    found = measure_fit(answers, {"0": 0.0, "1": 0.5, "2": -0.5}).persons
    assert found.scores.status.tolist() == [
        "all_right", "measured", "measured", "no_answers", "all_right",
    ]  # fmt: skip
    assert np.isnan(found.infit).tolist() == [True, False, False, True, True]


def test_nobody_with_right_and_wrong_answers_is_an_error():
    with refused(BadUsage, "none_persons_both_right"):
        measure_fit(np.array([[1, 1], [0, 0]]), {"0": 0.0, "1": 0.0})


def test_items_without_variance_in_a_group_are_left_out_of_the_test_and_named():
    sim = discreet.simulate(400, 8, rng=np.random.default_rng(7))
    answers = sim.responses.to_array()
    groups = np.repeat(["x", "y"], 200)
    answers[:200, 2] = 1
    found = run_andersen(answers, groups)
    assert found.excluded == ("2",)
    assert found.degrees == 6
    assert any("2" in text for text in found.warnings)
    wald = run_wald(answers, groups)
    assert wald.status[2] == "always_right in x"
    assert np.isnan(wald.z[2])
    assert np.isfinite(np.delete(wald.z, 2)).all()


def test_a_group_too_small_to_calibrate_is_named():
    sim = discreet.simulate(100, 5, rng=np.random.default_rng(8))
    groups = ["tiny"] + ["rest"] * 99
    with refused(DisconnectedItems, "group_persons_no_two", label="tiny"):
        run_andersen(sim.responses, groups)
    with refused(DisconnectedItems, "group_persons_cannot_calibrated", label="tiny"):
        run_wald(sim.responses, groups)


def test_andersens_test_keeps_its_level_with_missing_answers():
    rng = np.random.default_rng(9)
    values = []
    for _ in range(160):
        sim = discreet.simulate(200, 6, 0.7, rng=rng)
        values.append(run_andersen(sim.responses, rng.integers(0, 2, 200)).p_value)
    assert 0.35 < np.median(values) < 0.65
    assert is_chance(np.sum(np.array(values) < 0.05), 160)


def test_score_splits_work_with_missing_answers():
    sim = discreet.simulate(600, 10, 0.6, rng=np.random.default_rng(10))
    found = run_andersen(sim.responses, "median score")
    assert found.groups == ("low score", "high score")
    assert found.p_value > 1e-4


def test_few_answers_of_many_items_have_the_correlations_of_the_whole_table(monkeypatch):
    sim = discreet.simulate(300, 12, answered=0.4, rng=np.random.default_rng(3))
    weights = np.random.default_rng(5).choice([0.5, 1.0, 2.0], 300)
    truth = dict(zip(sim.responses.items, sim.difficulty.tolist(), strict=True))
    store, items = sim.responses.store, sim.responses.items
    weighted = Responses(items, None, store, {"w": weights.astype(str)}).weigh(weight="w")
    for answers in (sim.responses, weighted):
        whole = correlate_residuals(answers, truth)
        with monkeypatch.context() as patched:
            patched.setattr(residuals, "SPARSE", 1.0)
            patched.setattr(residuals, "DIRECT", 5)
            found = correlate_residuals(answers, truth)
        assert found.q3 == pytest.approx(whole.q3, abs=1e-12, nan_ok=True)
        assert found.eigenvalue == pytest.approx(whole.eigenvalue, abs=1e-10)
        assert found.loading == pytest.approx(whole.loading, abs=1e-8)
