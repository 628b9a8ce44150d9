"""Items that move over time: found, and not found where nothing moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_ind_from_stats

import discreet
from commandline import discreet as command
from discreet.analysis.drift import Drift, adjust_holm, find_drift
from discreet.analysis.placing import spread_errors
from discreet.answers.opening import count_pairs
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.calibrate import fit
from discreet.results.estimate import Estimate, Kind, Solution, Status


def draw(seed, difficulty, persons=800, answered=0.7, mean=0.0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(difficulty - rng.normal(mean, size=(persons, 1))))
    cells = (rng.random(chance.shape) < chance).astype(np.int8)
    cells[rng.random(chance.shape) > answered] = -1
    return Responses.from_array(
        cells, [f"q{i}" for i in range(len(difficulty))], [f"{seed}-{p}" for p in range(persons)]
    )


def make(difficulty, se, items=None, degrees=None):
    m = len(difficulty)
    return Estimate(
        items=tuple(items or (f"q{i}" for i in range(m))),
        difficulty=np.array(difficulty, dtype=float),
        se=np.array(se, dtype=float),
        status=(Status.ESTIMATED,) * m,
        method="refined",
        solution=Solution("made", 0, 0.0),
        degrees=degrees,
    )


FLAT = np.linspace(-1, 1, 12)


def easier(by, item=-1):
    moved = FLAT.copy()
    moved[item] -= by
    return moved


@pytest.mark.parametrize("prepare", [fit, lambda day: count_pairs(day, folds=32)])
def test_an_item_that_becomes_easier_is_found_and_no_other(prepare):
    days = [draw(1, FLAT), draw(2, FLAT, mean=0.4), draw(3, easier(1.0), mean=-0.3)]
    found = find_drift([prepare(day) for day in days], periods=["may", "june", "july"])
    assert found.alarm
    assert found.moved_items == ("q11",)
    assert found.change[-1] == pytest.approx(-1.0, abs=3 * found.change_se[-1])
    (warning,) = found.warnings
    assert (warning.kind, warning.items) == (Kind.DRIFTED, ("q11",))


def test_nothing_is_found_where_nothing_moves():
    found = find_drift([fit(draw(seed, FLAT, mean=seed / 10)) for seed in range(4)])
    assert not found.alarm
    assert found.warnings == ()
    assert found.periods == ("1", "2", "3", "4")


def test_items_that_move_do_not_push_the_others():
    many = FLAT.copy()
    many[:4] -= 1.5
    found = find_drift([fit(draw(1, FLAT, persons=3000)), fit(draw(2, many, persons=3000))])
    assert found.moved_items == ("q0", "q1", "q2", "q3")
    assert found.change[4:] == pytest.approx(0, abs=0.3)


def test_two_periods_are_compared_by_welchs_t_test():
    b, se = np.array([0.0, 1.0, -1.0, 0.5, -0.5]), np.full(5, 0.1)
    other = b.copy()
    other[0] += 0.3
    found = find_drift([make(b, se, degrees=31), make(other, se, degrees=15)])
    error = found.se[:, 0]
    expected = ttest_ind_from_stats(
        *(found.difficulty[0, 0], error[0] * np.sqrt(32), 32),
        *(found.difficulty[1, 0], error[1] * np.sqrt(16), 16),
        equal_var=False,
    )
    assert found.p_value[0] == pytest.approx(expected.pvalue, rel=1e-6)
    exact = find_drift([make(b, se), make(other, se)])
    assert exact.p_value[0] < found.p_value[0]


def test_a_shift_of_all_items_is_no_drift():
    b, se = np.linspace(-1, 1, 6), np.full(6, 0.1)
    found = find_drift([make(b, se), make(b + 5, se), make(b - 2, se)])
    assert found.p_value == pytest.approx(1.0)
    assert found.difficulty.mean(axis=1) == pytest.approx(0.0)


def test_items_that_only_some_periods_have_are_compared_where_they_are():
    b, se = np.linspace(-1, 1, 8), np.full(8, 0.05)
    first = make(b[:6], se[:6], [f"q{i}" for i in range(6)])
    second = make(b[1:7] + 0.7, se[1:7], [f"q{i}" for i in range(1, 7)])
    late = b[2:].copy()
    late[0] += 1.0
    third = make(late - 0.2, se[2:], [f"q{i}" for i in range(2, 8)])
    found = find_drift([first, second, third])
    assert found.items == tuple(f"q{i}" for i in range(1, 7))
    assert found.moved_items == ("q2",)
    assert np.isnan(found.difficulty[2, 0])


def test_the_covariance_is_used_where_it_is_known():
    days = [fit(draw(seed, FLAT)) for seed in (1, 2)]
    known = find_drift(days)
    guessed = find_drift([replace(day, covariance=None) for day in days])
    assert guessed.p_value == pytest.approx(known.p_value, abs=0.05)


def test_errors_are_spread_so_that_they_stay_what_they_were():
    se = np.array([0.1, 0.2, 0.15, 0.3, 0.1, 0.12])
    covariance = spread_errors(se)
    assert np.sqrt(covariance.diagonal()) == pytest.approx(se)
    assert covariance.sum(axis=1) == pytest.approx(0, abs=1e-15)


def test_holm_adjusts_as_it_should():
    assert adjust_holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )


def test_what_cannot_be_compared_is_refused():
    one = make([0, 1, 2], [0.1] * 3)
    with pytest.raises(BadUsage, match="found 1"):
        find_drift([one])
    with pytest.raises(BadUsage, match="level"):
        find_drift([one, one], level=2)
    with pytest.raises(BadUsage, match="different names"):
        find_drift([one, one], periods=["a", "a"])
    with pytest.raises(DisconnectedItems, match="at least 2"):
        find_drift([one, make([0, 1], [0.1] * 2, ["q0", "new"])])
    apart = make([0, 1, 2], [0.1] * 3, ["a", "b", "c"])
    with pytest.raises(DisconnectedItems, match="no item in common"):
        find_drift([one, one, apart, apart])
    with pytest.raises(BadUsage, match="standard errors"):
        find_drift([one, make([0, 1, 2], [np.nan] * 3)])


def test_drift_is_a_table_for_other_programs():
    found = find_drift([make([0, 1, 2], [0.1] * 3)] * 2, periods=["may", "june"])
    assert isinstance(found, Drift)
    frame = found.to_dataframe()
    columns = ["item", "change", "se", "p_value", "p_adjusted", "moved", "may", "june"]
    assert list(frame.columns) == columns
    assert discreet.find_drift is find_drift


def test_the_command_line_finds_drift_in_counts_and_calibrations(tmp_path):
    for name, difficulty, seed in (("may", FLAT, 1), ("june", easier(1.2), 2)):
        count_pairs(draw(seed, difficulty), folds=32).save(tmp_path / f"{name}.npz")
        command("fit", tmp_path / f"{name}.npz", "--out", tmp_path / name)
    for files in (("may.npz", "june.npz"), ("may", "june")):
        done = command("drift", *(tmp_path / file for file in files), "--json")
        assert done.code == 0, done.err
        assert done.document["alarm"] is True
        assert done.document["periods"] == ["may", "june"]
        moved = [row["item"] for row in done.document["items"] if row["moved"]]
        assert moved == ["q11"]
    done = command("drift", tmp_path / "may.npz", tmp_path / "june.npz", "--out", tmp_path / "d")
    assert "1 moved" in done.out
    assert "1 of 12 items moved: q11" in done.err
    assert (tmp_path / "d" / "drift.confidential.csv").exists()


def test_counts_without_folds_say_what_they_lack(tmp_path):
    for name, seed in (("may", 1), ("june", 2)):
        count_pairs(draw(seed, FLAT)).save(tmp_path / f"{name}.npz")
    done = command("drift", tmp_path / "may.npz", tmp_path / "june.npz")
    assert done.code == 2
    assert "standard errors" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("periods", "persons"), [(2, 400), (6, 400)])
def test_the_alarm_keeps_its_rate_of_false_alarms(counted, periods, persons):
    alarms = 0
    for run in range(200):
        days = [
            draw(1000 * run + period, FLAT, persons=persons, mean=0.2 * period)
            for period in range(periods)
        ]
        known = [count_pairs(day, folds=32) if counted else fit(day) for day in days]
        alarms += find_drift(known).alarm
    assert alarms <= 20  # 5% of 200 is 10; more than 20 has a chance of 0.001
