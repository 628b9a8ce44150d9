"""Whether items measure one thing: components of residuals against simulated chance."""

import numpy as np
import pytest
from experiments.calibration.dimensions import count_alarms

import discreet
from discreet.analysis import find_dimensions
from discreet.errors import BadUsage
from discreet.items.study import diagnose
from discreet.report.diagnosis import diagnose_test
from discreet.report.findings import find_problems
from discreet.report.model_findings import Severity
from discreet.report.page import judge, write_diagnosis
from discreet.saving import read_value, write_value
from refusals import refused


def draw_two(persons, items, correlation, seed, missing=0.0):
    """Answers of persons with two abilities, each asked for by every other item."""
    rng = np.random.default_rng(seed)
    first, other = rng.normal(size=(2, persons))
    second = correlation * first + np.sqrt(1 - correlation**2) * other
    ability = np.where(np.arange(items) % 2, first[:, None], second[:, None])
    away = ability - np.linspace(-1.5, 1.5, items)
    answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    answers[rng.random(away.shape) < missing] = np.nan
    names = [f"{'odd' if i % 2 else 'even'}{i}" for i in range(items)]
    return discreet.Responses.from_array(answers, items=names)


def calibrate(answers):
    return discreet.fit(answers, method="refined")


def look(answers, **options):
    return find_dimensions(answers, calibrate(answers), **options)


def test_eigenvalues_are_those_of_the_correlations_of_standardised_residuals():
    answers = draw_two(200, 8, 0.5, 3)
    calibration = calibrate(answers)
    found = find_dimensions(answers, calibration, simulations=1)
    scores = discreet.score(answers, calibration, method="ml")
    used = np.isfinite(scores.ability)
    chance = 1 / (1 + np.exp(calibration.difficulty - scores.ability[used, None]))
    residual = (answers.to_array()[used] - chance) / np.sqrt(chance * (1 - chance))
    values = np.linalg.eigvalsh(np.corrcoef(residual.T))[::-1]
    np.testing.assert_allclose(found.eigenvalue, values[:5], rtol=1e-9)
    assert found.persons == used.sum()


def test_more_items_than_persons_give_the_same_components_either_way():
    from discreet.items.dimensionality import _eigenvalues, _split_components

    wide = np.random.default_rng(2).normal(size=(20, 50))
    values, loading = _split_components(wide)
    whole, vectors = np.linalg.eigh(wide.T @ wide / 20)
    np.testing.assert_allclose(values, whole[::-1][:5], rtol=1e-9)
    np.testing.assert_allclose(_eigenvalues(wide), values, rtol=1e-9)
    np.testing.assert_allclose(np.abs(loading), np.abs(vectors[:, -1]) * np.sqrt(whole[-1]))


def test_two_abilities_are_found_and_their_items_told_apart():
    found = look(draw_two(400, 20, 0.0, 1))
    assert found.p_value[0] == pytest.approx(1 / (1 + found.simulations))
    assert found.beyond_chance == 1
    assert found.excess > 0.5
    assert abs(found.correlation) < 0.25
    ends = {item[:3]: set() for item in found.items}
    for item, end in zip(found.items, found.contrast.to_dict()["end"], strict=True):
        ends[item[:3]].add(end)
    assert all(len(end) == 1 for end in ends.values())


def test_abilities_on_both_ends_agree_as_much_as_the_two_abilities_do():
    found = look(draw_two(3000, 30, 0.6, 4), simulations=1)
    assert found.correlation == pytest.approx(0.6, abs=0.07)


def test_one_ability_with_scattered_missing_answers_is_no_alarm():
    found = look(draw_two(500, 20, 1.0, 2, missing=0.3))
    assert found.p_value[0] > 0.05


def test_the_same_answers_give_the_same_result_again():
    answers = draw_two(100, 6, 0.5, 5)
    assert look(answers) == look(answers)


def test_many_persons_are_sampled_and_the_result_says_so():
    answers = draw_two(60_000, 5, 0.9, 6)
    found = look(answers, simulations=2)
    assert found.sampled
    assert found.persons == 50_000
    assert str(found.warnings[0]) == "dimensionality is that of 50,000 evenly chosen persons"


def test_too_few_items_are_refused_with_what_was_found():
    with refused(BadUsage, "dimensionality_needs_items_persons", n_columns="2", n_used="2"):
        find_dimensions(np.array([[1, 0], [0, 1]]), {"0": 0.0, "1": 0.0})
    with refused(BadUsage, "simulations_must_more_found", simulations="0"):
        find_dimensions(np.eye(4), {str(i): 0.0 for i in range(4)}, simulations=0)


def test_roll_calls_of_two_camps_are_an_alarm_first_in_the_report():
    """100 members, 300 votes, two camps: half of the votes split one way, half another."""
    answers = draw_two(100, 300, 0.0, 7, missing=0.1)
    estimate = calibrate(answers)
    study = diagnose(answers, estimate)
    findings, _ = find_problems(estimate, study)
    assert findings[0].severity is Severity.ALARM
    assert findings[0].title == "These items do not measure one thing"
    assert f"{study.dimensionality.eigenvalue[0]:.2f} of 300 items" in findings[0].found
    assert judge(findings).startswith("Stop: these items do not measure one thing.")
    page = write_diagnosis(diagnose_test(estimate, study))
    assert page.index("These items do not measure one thing") < page.index("Wright map")
    assert "Whether the items measure one thing" in page


def test_a_sound_test_has_dimensionality_among_what_was_checked():
    answers = draw_two(500, 20, 1.0, 2)
    estimate = calibrate(answers)
    study = diagnose(answers, estimate)
    assert "dimensionality" in find_problems(estimate, study)[1]
    again = read_value(write_value(study))
    assert again.dimensionality == study.dimensionality


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rasch_answers_alarm_as_often_as_a_test_at_5_percent_may(missing):
    """400 sets: the standard error of a share of 5% is 1.1%."""
    assert 0.03 <= count_alarms(400, missing=missing) <= 0.07
