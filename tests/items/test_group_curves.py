"""Curves of groups: the test of group times ability against its definition, its size, a report."""

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.analysis import check_model
from discreet.items.group_curves import measure_interaction, trace_groups
from discreet.items.residuals import prepare
from discreet.report.diagnosis import diagnose_test
from discreet.report.findings import find_problems
from discreet.report.page import write_diagnosis
from discreet.saving import read_value, write_value
from sizes import is_chance


def draw(persons, seed, slope=1.0):
    """Return answers of two groups; the first of 12 items has another slope in the second."""
    rng = np.random.default_rng(seed)
    focal = np.arange(persons) % 3 == 1
    slopes = np.ones((persons, 12))
    slopes[focal, 0] = slope
    difficulty = np.roll(np.linspace(-1.5, 1.5, 12), 6)
    away = slopes * (rng.normal(0, 1.5, (persons, 1)) - difficulty)
    cells = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    plain = discreet.Responses.from_array(cells)
    names = {"sex": np.where(focal, "f", "m")}
    return discreet.Responses(plain.items, None, plain.store, groups=names), focal


def test_the_test_is_the_f_of_two_linear_models():
    """Residuals on classes and group, with and without group times the mean ability of a class."""
    answers, focal = draw(400, 1, 0.4)
    estimate = discreet.fit(answers)
    found = trace_groups(answers, estimate, "sex")
    prepared = prepare(answers, estimate, "ml")
    used, ability = prepared.used, prepared.scores.ability
    (chunk,) = prepared.chunks()
    classes = found.ability.shape[1]
    cuts = np.quantile(ability[used], np.arange(1, classes) / classes)
    level = np.searchsorted(cuts, ability[used])
    middle = np.array([ability[used][level == k].mean() for k in range(classes)])[level]
    group = ~focal[used]
    additive = np.column_stack([np.eye(classes)[level], group])
    for item in (0, 5):
        z = chunk.residual[used, item] / np.sqrt(chunk.variance[used, item])
        spread = [
            ((z - design @ np.linalg.lstsq(design, z, rcond=None)[0]) ** 2).sum()
            for design in (additive, np.column_stack([additive, group * middle]))
        ]
        left = len(z) - classes - 2
        value = (spread[0] - spread[1]) / (spread[1] / left)
        assert found.statistic[item] == pytest.approx(value)
        assert (found.degrees[item], found.error_degrees[item]) == (1, left)
        assert found.p_value[item] == pytest.approx(stats.f.sf(value, 1, left))


def test_sound_items_are_found_as_often_as_the_level_says():
    alarms = 0
    for seed in range(40):
        answers, _ = draw(300, seed)
        alarms += int((trace_groups(answers, discreet.fit(answers), "sex").p_value < 0.05).sum())
    assert is_chance(alarms, 40 * 12)


def test_one_class_has_no_interaction():
    sums = np.array([[9.0, 8.0], [1.0, -1.0], [9.0, 8.0], [4.0, 4.0], [1.0, 1.0]])
    assert np.isnan(measure_interaction(sums, 2)[0])


def test_a_curve_that_is_flat_in_one_group_is_told_and_drawn():
    answers, _ = draw(1500, 4, 0.2)
    found = check_model(answers)
    findings, _ = find_problems(found.estimate, found.study)
    (finding,) = [one for one in findings if "by more or less with ability" in one.title]
    assert "0 (by sex)" in finding.found
    page = write_diagnosis(diagnose_test(found.estimate, found.study))
    assert "Curves of groups" in page
    assert "Expected curve of 0 and mean scores of f, m" in page
    kept = read_value(write_value(found.study)).group_curves["sex"]
    assert kept.statistic == pytest.approx(found.study.group_curves["sex"].statistic)
