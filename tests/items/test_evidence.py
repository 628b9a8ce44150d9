"""Evidence about a test: Martin-Löf's test, alpha."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet
from discreet.analysis import measure_alpha, run_martin_loef
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.study import diagnose
from discreet.report.diagnosis import diagnose_test
from discreet.report.page import write_diagnosis
from refusals import refused


def draw(persons, items, seed, second=None):
    """Answers of persons with one ability, or with another one for the second half."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(persons, 1))
    other = ability if second is None else rng.normal(size=(persons, 1))
    half = np.arange(items) < items // 2
    away = np.where(half, ability, other) - np.resize(np.linspace(-1, 1, items // 2), items)
    return (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(int)


# --- Martin-Löf -------------------------------------------------------------------------------


def conditional(b, answers):
    """Return the conditional log-likelihood, by listing all rows of answers."""
    rows = np.array(list(product((0, 1), repeat=answers.shape[1])))
    weight, score = np.exp(-rows @ b), rows.sum(axis=1)
    norm = np.log([weight[score == r].sum() for r in range(answers.shape[1] + 1)])
    return float((-answers @ b - norm[answers.sum(axis=1)]).sum())


def maximum(answers):
    free = minimize(lambda b: -conditional(np.append(b, 0), answers), np.zeros(len(answers[0]) - 1))
    return -free.fun


def multinomial(counts):
    """Return the log-likelihood of counts at their own shares."""
    counts = np.array(counts)
    return float((counts * np.log(counts / counts.sum())).sum())


def test_the_statistic_is_that_of_its_definition():
    """The law of the scores and of the answers given the scores, with one ability and with two."""
    answers = draw(300, 6, 1)
    first, second = answers[:, :3], answers[:, 3:]
    pairs = np.unique(first.sum(1) * 10 + second.sum(1), return_counts=True)[1]
    sums = np.unique(answers.sum(1), return_counts=True)[1]
    apart = multinomial(pairs) + maximum(first) + maximum(second)
    together = multinomial(sums) + maximum(answers)
    found = run_martin_loef(answers, ["0", "1", "2"])
    assert found.statistic == pytest.approx(2 * (apart - together), abs=1e-3)
    assert found.degrees == 8
    assert found.to_dict()["part"] == ["named"] * 3 + ["others"] * 3


def test_halves_that_measure_two_things_are_found():
    assert run_martin_loef(draw(500, 8, 2, second=1), ["0", "1", "2", "3"]).p_value < 1e-6


def test_the_median_splits_into_easier_and_harder_items():
    found = run_martin_loef(draw(400, 8, 3))
    easier = [b for b, part in zip(found.difficulty, found.part, strict=True) if part == "easier"]
    assert len(easier) == 4
    assert max(easier) <= min(set(found.difficulty) - set(easier))


@pytest.mark.slow
def test_the_test_alarms_as_often_as_it_may_when_one_ability_is_behind_both_halves():
    p_values = [run_martin_loef(draw(1000, 8, seed), list("0123")).p_value for seed in range(400)]
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.09


def test_persons_with_missing_answers_and_items_without_spread_are_left_out_and_counted():
    answers = draw(400, 7, 4).astype(float)
    answers[:30, 2] = np.nan
    answers[:, 6] = 1
    found = run_martin_loef(answers)
    assert found.persons == 370
    assert found.excluded == ("6",)
    kinds = [str(one.kind) for one in found.warnings]
    assert kinds == ["incomplete", "not_compared"]


def test_few_persons_for_the_degrees_of_freedom_are_told():
    found = run_martin_loef(draw(200, 20, 5))
    assert [str(one.kind) for one in found.warnings] == ["rough"]
    assert "200 persons are few for 99 degrees" in found.warnings[0]


@pytest.mark.parametrize(
    ("split", "code", "facts"),
    [
        ("mean", "split_names_items_one", {"median": "median difficulty"}),
        (["0"], "two_parts_need_two", {"sizes": "1 and 5"}),
        (["0", "x"], "answers_no_item_items", {"unknown": "x"}),
    ],
)
def test_a_split_that_cannot_be_is_refused(split, code, facts):
    with refused(BadUsage, code, **facts):
        run_martin_loef(draw(50, 6, 6), split)


def test_nobody_with_all_answers_is_refused():
    answers = draw(50, 6, 7).astype(float)
    answers[::2, :3] = np.nan
    answers[1::2, 3:] = np.nan
    with refused(BadUsage, "persons_answered_all_items", complete="0", n_persons="50", n_items="6"):
        run_martin_loef(answers)


def test_an_item_without_spread_among_those_who_answered_everything_is_named():
    answers = draw(60, 6, 8).astype(float)
    answers[:, 0] = 1
    answers[:3, 0] = 0
    answers[:3, 1] = np.nan
    with refused(DisconnectedItems, "among_persons_who_answered", constant="0"):
        run_martin_loef(answers)


# --- alpha ------------------------------------------------------------------------------------


def test_alpha_is_that_of_the_covariances_of_the_items():
    answers = draw(300, 10, 9)
    covariance = np.cov(answers.T)
    expected = 10 / 9 * (1 - np.trace(covariance) / covariance.sum())
    found = measure_alpha(answers)
    assert found.alpha == pytest.approx(expected)
    assert found.to_dict() == {"alpha": found.alpha, "persons": 300, "items": 10}


def test_alpha_takes_persons_with_all_answers_and_is_nan_without():
    answers = draw(300, 10, 10).astype(float)
    answers[:100, 0] = np.nan
    assert measure_alpha(answers).alpha == pytest.approx(measure_alpha(answers[100:]).alpha)
    answers[:, 0] = np.nan
    assert np.isnan(measure_alpha(answers).alpha)


def test_the_report_of_a_small_test_shows_its_alpha():
    answers = discreet.datasets.lsat()
    estimate = discreet.fit(answers)
    page = write_diagnosis(diagnose_test(estimate, diagnose(answers, estimate)))
    assert "KR-20 (alpha)" in page


def test_a_reliability_below_zero_is_shown_as_zero_with_the_remark():
    rng = np.random.default_rng(12)
    answers = discreet.Responses.from_array((rng.random((200, 6)) < 0.5).astype(int))
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    assert study.reliability.reliability < 0
    page = write_diagnosis(diagnose_test(estimate, study))
    assert "Person reliability is 0 (errors exceed the differences)" in page
    assert "<dt>person reliability</dt><dd>0</dd>" in page
    assert page.count("A reliability of 0 means that errors exceed the differences") == 1


def test_what_cannot_be_computed_has_no_box():
    table = draw(300, 6, 13).astype(float)
    table[np.arange(300), np.arange(300) % 6] = np.nan
    answers = discreet.Responses.from_array(table)
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    assert np.isnan(study.alpha.alpha)
    page = write_diagnosis(diagnose_test(estimate, study))
    assert "<dt>person reliability</dt>" in page
    assert "KR-20" not in page
    assert "A reliability of 0" not in page
