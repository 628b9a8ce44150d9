"""Items that move over time: found, and not found where nothing moves."""

from __future__ import annotations

from dataclasses import replace
from inspect import unwrap

import numpy as np
import pytest
from scipy.stats import ttest_ind_from_stats

import discreet
from commandline import discreet as command
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.api.drift import find_drift
from discreet.errors import BadUsage, DisconnectedItems, ItemsLeftOut, WarningKind
from discreet.items.groups import adjust
from discreet.results.estimate import Estimate, Solution, Status
from discreet.scales.drift import Drift
from refusals import refused
from sizes import is_chance


def draw(seed, difficulty, persons=800, answered=0.7, mean=0.0, slope=1.0):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(slope * (difficulty - rng.normal(mean, size=(persons, 1)))))
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


def keep(day):
    """Answers are compared as they are."""
    return day


@pytest.mark.parametrize("prepare", [keep, fit, lambda day: count_pairs(day, folds=32)])
def test_an_item_that_becomes_easier_is_found_and_no_other(prepare):
    days = [draw(1, FLAT), draw(2, FLAT, mean=0.4), draw(3, easier(1.0), mean=-0.3)]
    found = find_drift([prepare(day) for day in days], periods=["may", "june", "july"])
    assert found.alarm
    assert found.moved_items == ("q11",)
    assert found.change[-1] == pytest.approx(-1.0, abs=3 * found.change_se[-1])
    (warning,) = found.warnings
    assert (warning.kind, warning.items) == (WarningKind.DRIFTED, ("q11",))


@pytest.mark.parametrize("prepare", [keep, fit])
def test_nothing_is_found_where_nothing_moves(prepare):
    found = find_drift([prepare(draw(seed, FLAT, mean=seed / 10)) for seed in range(4)])
    assert not found.alarm
    assert found.warnings == ()
    assert found.periods == ("1", "2", "3", "4")


@pytest.mark.parametrize("prepare", [keep, fit])
def test_items_that_move_do_not_push_the_others(prepare):
    many = FLAT.copy()
    many[:4] -= 1.5
    days = draw(1, FLAT, persons=3000), draw(2, many, persons=3000)
    found = find_drift([prepare(day) for day in days])
    assert found.moved_items == ("q0", "q1", "q2", "q3")
    assert found.change[:4] == pytest.approx(-1.5, abs=0.3)
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


def test_holm_adjusts_as_it_should():
    assert adjust(np.array([0.01, 0.04, 0.03, 0.005]), "holm") == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )


def test_what_cannot_be_compared_is_refused():
    one = make([0, 1, 2], [0.1] * 3)
    with refused(BadUsage, "drift_shows_between_two", n_parts="1"):
        find_drift([one])
    with refused(BadUsage, "level_must_lie_between_name_periods"):
        find_drift([one, one], level=2)
    with refused(BadUsage, "periods_need_many_different"):
        find_drift([one, one], periods=["a", "a"])
    with refused(DisconnectedItems, "period_common_others_compared", fewest="2"):
        find_drift([one, make([0, 1], [0.1] * 2, ["q0", "new"])])
    apart = make([0, 1, 2], [0.1] * 3, ["a", "b", "c"])
    with refused(DisconnectedItems, "period_order_time_no"):
        find_drift([one, one, apart, apart])
    with refused(BadUsage, "calibration_no_standard_errors"):
        find_drift([one, make([0, 1, 2], [np.nan] * 3)])


def test_drift_is_a_table_for_other_programs():
    found = find_drift([make([0, 1, 2], [0.1] * 3)] * 2, periods=["may", "june"])
    assert isinstance(found, Drift)
    frame = found.to_dataframe()
    columns = ["item", "change", "se", "p_value", "p_adjusted", "moved", "may", "june"]
    assert list(frame.columns) == columns
    assert unwrap(discreet.find_drift) is find_drift


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
    assert is_chance(alarms, 200)


# --- unequal slopes and changing cohorts ------------------------------------------------------

COHORTS = (0.0, 0.4, 0.8, 1.2)


def draw_cohorts(seed, easier=0.0, persons=800, spread=0.4, cohorts=COHORTS):
    """Twelve items with unequal slopes in abler and abler cohorts; the first drifts at the end."""
    rng = np.random.default_rng(seed)
    difficulty = rng.permutation(np.linspace(-1.5, 1.5, 12))
    slope = np.exp(rng.normal(0, spread, 12))
    days = []
    for number, mean in enumerate(cohorts):
        now = difficulty.copy()
        now[0] -= easier * (number == len(cohorts) - 1)
        key = 100 * seed + number
        days.append(draw(key, now, persons, answered=1.0, mean=mean, slope=slope))
    return days


@pytest.mark.parametrize("prepare", [keep, lambda day: fit(day, method="refined")])
def test_unequal_slopes_of_changing_cohorts_are_no_drift(prepare):
    runs = [find_drift([prepare(day) for day in draw_cohorts(seed)]) for seed in range(20)]
    assert sum(run.alarm for run in runs) <= 3  # the test with equal slopes alarms in all 20


@pytest.mark.parametrize(
    ("prepare", "fewest"), [(keep, 10), (lambda day: fit(day, method="refined"), 7)]
)
def test_drift_beside_unequal_slopes_is_found(prepare, fewest):
    runs = [find_drift([prepare(day) for day in draw_cohorts(s, easier=1.0)]) for s in range(10)]
    assert sum("q0" in run.moved_items for run in runs) >= fewest


def test_an_item_that_everybody_knows_in_the_end_is_found():
    days = draw_cohorts(1)
    cells = days[-1].to_array()
    cells[:, 0] = 1
    last = Responses.from_array(cells, days[-1].items)
    found = find_drift(*days[:-1], last)
    assert found.moved_items == ("q0",)
    assert np.isfinite(found.difficulty).all()
    assert found.change[0] < -3


def test_an_item_that_hardly_anybody_has_right_is_not_compared_and_said():
    days = draw_cohorts(2)[:2]
    cells = [day.to_array() for day in days]
    for some in cells:
        some[:, 3] = 0
    cells[0][:4, 3] = 1
    with pytest.warns(ItemsLeftOut, match="1 item not compared: 3"):
        found = find_drift(*cells)
    assert "3" not in found.items
    assert not found.alarm


def test_the_result_says_which_test_was_used_and_what_it_allowed_for(tmp_path):
    days = draw_cohorts(3)
    known = [fit(day, method="refined") for day in days]
    answers, calibrations = find_drift(days), find_drift(known)
    assert (answers.test, answers.tau) == ("answers", None)
    assert "own slope" in answers.choice
    assert calibrations.test == "calibrations"
    assert 0.1 < calibrations.tau < 0.6
    assert f"{calibrations.tau:.2f}" in calibrations.choice
    for found in (answers, calibrations):
        assert np.diff(found.cohort_mean) == pytest.approx(0.4, abs=0.2)
        assert found.choice in found.summary()
        found.save(tmp_path / "drift.json")
        assert Drift.load(tmp_path / "drift.json").cohort_mean == pytest.approx(found.cohort_mean)


def test_with_two_periods_the_result_says_what_tells_drift_from_slopes():
    pair = draw_cohorts(3, cohorts=(0.0, 0.8))
    found = find_drift([fit(day) for day in pair])
    assert "only the size of a change tells drift from an unequal slope" in found.choice
    assert "only the size" not in find_drift([fit(day) for day in draw_cohorts(3)]).choice


def test_periods_come_as_a_list_or_one_by_one():
    days = draw_cohorts(4)[:2]
    one, other = find_drift(days), find_drift(*days)
    assert one.p_value.tolist() == other.p_value.tolist()
    frames = [day.to_dataframe("wide").drop(columns="person") for day in days]
    assert find_drift(*frames).p_value == pytest.approx(one.p_value)
    assert find_drift(*(day.to_array() for day in days)).p_value == pytest.approx(one.p_value)
    columns = {"person": "user", "item": "prompt", "response": "correct"}
    long = [day.to_dataframe().rename(columns=columns) for day in days]
    named = find_drift(*long, **columns)
    assert (named.items, named.p_value.tolist()) == (one.items, pytest.approx(one.p_value))


def test_answers_beside_a_calibration_are_refused():
    day, other = draw_cohorts(4)[:2]
    with refused(BadUsage, "period_holds_answers_period", true="1", lacking="2"):
        find_drift(day, fit(other))


def test_too_few_persons_and_too_many_items_are_refused_with_a_remedy(monkeypatch):
    days = draw_cohorts(4)[:2]
    few = [day.select_persons(slice(0, 10)) for day in days]
    with refused(BadUsage, "test_answers_estimates_numbers", persons="20"):
        find_drift(few)
    monkeypatch.setattr("discreet.scales.drift.MEMORY", 1e3)
    with refused(BadUsage, "test_answers_needs_gb"):
        find_drift(days)


def test_periods_without_common_items_are_refused_from_answers_too():
    day = draw_cohorts(4)[0]
    other = Responses.from_array(day.to_array(), [f"x{i}" for i in range(12)])
    with refused(DisconnectedItems, "period_common_others_compared", fewest="2"):
        find_drift(day, other)
    with refused(DisconnectedItems, "period_order_time_no"):
        find_drift(day, day, other, other)


def test_an_item_that_some_periods_lack_is_tested_in_the_others():
    days = draw_cohorts(6, easier=1.2)
    days[1] = days[1].select([item for item in days[1].items if item != "q0"])
    found = find_drift(days)
    place = found.items.index("q0")
    assert np.isnan(found.difficulty[:, place]).tolist() == [False, True, False, False]
    assert found.moved_items == ("q0",)


def draw_steps(seed, location, mean, slope):
    """Answers 0, 1, 2 with thresholds half a logit below and above the location."""
    rng = np.random.default_rng(seed)
    away = slope * (rng.normal(mean, size=(1000, 1)) - location)
    weight = np.exp(np.stack([0 * away, away + 0.5, 2 * away]))
    share = np.cumsum(weight / weight.sum(axis=0), axis=0)
    return Responses.from_array((rng.random(away.shape) > share[:2]).sum(axis=0))


@pytest.mark.parametrize("prepare", [keep, fit])
def test_items_with_steps_are_tested_by_their_locations(prepare):
    rng = np.random.default_rng(0)
    location, slope = np.linspace(-1, 1, 8), np.exp(rng.normal(0, 0.3, 8))
    quiet = [draw_steps(k, location, 0.3 * k, slope) for k in range(4)]
    assert not find_drift([prepare(day) for day in quiet]).alarm
    moved = location - 0.8 * (np.arange(8) == 5)
    loud = [*quiet[:-1], draw_steps(9, moved, 0.9, slope)]
    assert find_drift([prepare(day) for day in loud]).moved_items == ("5",)


def test_a_saved_calibration_and_its_table_give_the_same_test(tmp_path):
    known = [fit(day, method="refined") for day in draw_cohorts(7)]
    wanted = find_drift(known)
    for number, one in enumerate(known):
        one.save(tmp_path / f"{number}.json")
    loaded = [Estimate.load(tmp_path / f"{number}.json") for number in range(4)]
    assert find_drift(loaded).p_value.tolist() == wanted.p_value.tolist()
    frames = find_drift([one.to_dataframe() for one in known])
    assert frames.cohort_mean == pytest.approx(wanted.cohort_mean)
    assert frames.tau == pytest.approx(wanted.tau, abs=0.02)  # without covariances


def test_without_cohort_means_the_result_says_that_slopes_were_taken_as_equal():
    known = [replace(fit(day), answers=None) for day in draw_cohorts(0)]
    found = find_drift(known)
    assert found.alarm
    assert (found.tau, found.cohort_mean) == (None, None)
    assert "takes slopes as equal" in found.choice
    assert "slopes are unequal, which was not allowed for" in found.warnings[-1]


def test_the_command_line_finds_drift_in_files_of_answers(tmp_path):
    paths = []
    for number, day in enumerate(draw_cohorts(8, easier=1.2)):
        paths.append(tmp_path / f"week{number}.csv")
        day.to_dataframe().to_csv(paths[-1], index=False)
    done = command("drift", *paths, "--json")
    assert done.code == 0, done.err
    keys = ["periods", "level", "alarm", "test", "choice", "tau", "cohort_means", "items"]
    assert list(done.document) == keys
    assert done.document["test"] == "answers"
    assert [row["item"] for row in done.document["items"] if row["moved"]] == ["q0"]
    done = command("drift", *paths, "--person", "person")
    assert "12 items in 4 periods, 1 moved" in done.out
    assert "Score test from the answers" in done.err


def test_the_command_line_refuses_answers_beside_counts(tmp_path):
    first, second = draw_cohorts(8)[:2]
    count_pairs(first, folds=32).save(tmp_path / "may.npz")
    second.to_dataframe().to_csv(tmp_path / "june.csv", index=False)
    done = command("drift", tmp_path / "may.npz", tmp_path / "june.csv")
    assert done.code == 2
    assert "period june holds answers, but period may does not (PairCounts)" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize("cohorts", [(0.0, 0.3, 0.6, 1.0), (0.0, 0.5)])
def test_both_tests_keep_their_rates_of_false_alarms_with_unequal_slopes(spread, cohorts):
    false = np.zeros(2)
    for run in range(150):
        rng = np.random.default_rng(run)
        difficulty, slope = rng.normal(size=25), np.exp(rng.normal(0, spread, 25))
        days = [
            draw(10 * run + k, difficulty, 1500, answered=1.0, mean=mean, slope=slope)
            for k, mean in enumerate(cohorts)
        ]
        false += find_drift(days).alarm, find_drift([fit(day) for day in days]).alarm
    assert all(is_chance(alarms, 150) for alarms in false)
