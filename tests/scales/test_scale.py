"""Reported scales: logits as other numbers, in Python and as typed on the command line."""

import csv
import json

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.analysis import tabulate_scores
from discreet.errors import BadUsage
from discreet.scales.reported import ScaleTarget, parse_scale
from refusals import refused


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    place = tmp_path_factory.mktemp("scale") / "answers.csv"
    rows = library.datasets.lsat().to_array()
    lines = [",".join(["person", *LSAT_ITEMS])]
    lines += [f"p{n}," + ",".join(map(str, row)) for n, row in enumerate(rows)]
    place.write_text("\n".join(lines) + "\n")
    return place


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_two_points_fix_a_scale_and_errors_are_stretched_but_not_moved():
    scale = library.Scale.from_points({-1: 400, 1: 600})
    assert scale == library.Scale(100.0, 500.0)
    assert scale.apply([0.0, 0.5]).tolist() == [500.0, 550.0]
    assert scale.apply_error([0.25]).tolist() == [25.0]
    assert np.isnan(scale.apply(np.nan))


def test_persons_get_the_wanted_mean_and_standard_deviation():
    ability = np.append(np.random.default_rng(1).normal(0.7, 1.3, 500), np.nan)
    scaled = library.Scale.from_persons(ability, mean=500, sd=100).apply(ability)
    assert np.nanmean(scaled) == pytest.approx(500)
    assert np.nanstd(scaled, ddof=1) == pytest.approx(100)
    assert np.argsort(scaled[:-1]).tolist() == np.argsort(ability[:-1]).tolist()


@pytest.mark.parametrize(
    "text", ["500", "500,100,1", "a,b", "0=500,1=", "0=1,b=2", "", "0=500,100"]
)
def test_what_is_no_scale_is_refused_with_two_examples(text):
    with refused(BadUsage, "scale_scale_mean_standard"):
        parse_scale(text)


@pytest.mark.parametrize("text", ["500,0", "500,-1", "inf,1", "0=600,1=500", "0=5,0=6", "0=5,1=5"])
def test_a_scale_that_would_turn_persons_round_or_make_them_equal_is_refused(text):
    with pytest.raises(BadUsage):
        parse_scale(text)


def test_persons_of_one_ability_have_no_scale():
    with refused(BadUsage, "no_scale_give_these"):
        ScaleTarget(500, 100).settle([0.3, 0.3, np.nan])


@pytest.mark.parametrize(("slope", "digits"), [(1, 3), (10, 2), (100, 1), (5000, 0)])
def test_shown_digits_say_as_much_as_three_do_in_logits(slope, digits):
    assert library.Scale(slope, 0).digits == digits


def test_fit_prints_and_writes_difficulties_on_the_scale_beside_logits(answers, tmp_path):
    ended = discreet(
        "fit", answers, "--method", "conditional", "--scale", "0=500,1=600", "--out", tmp_path
    )
    assert ended.code == 0
    assert "Scale: 100 x logits + 500" in ended.out
    assert "374.4" in ended.out  # Item1: -1.256128 logits
    first = rows_of(tmp_path / "items.confidential.csv")[0]
    assert float(first["difficulty"]) == pytest.approx(-1.256128, abs=1e-5)
    assert float(first["scaled_difficulty"]) == pytest.approx(374.3872, abs=1e-3)
    assert float(first["scaled_se"]) == pytest.approx(10.441, abs=1e-2)
    document = json.loads((tmp_path / "calibration.confidential.json").read_text())
    assert document["scale"] == {"slope": 100.0, "intercept": 500.0}
    assert document["items"][0]["difficulty"] == pytest.approx(-1.256128, abs=1e-5)


def test_a_mean_and_sd_are_those_of_the_persons(answers, tmp_path):
    ended = discreet("fit", answers, "--scale", "500,100", "--json", "--out", tmp_path / "fit")
    assert ended.code == 0
    scale = library.Scale(**ended.document["scale"])
    row = ended.document["items"][0]
    assert row["scaled_difficulty"] == pytest.approx(scale.apply(row["difficulty"]))
    scored = discreet(
        "score", answers, "--with", tmp_path / "fit", "--out", tmp_path / "scores", "--json"
    )
    assert scored.document["scale"] == ended.document["scale"]
    abilities = [
        float(row["scaled_ability"])
        for row in rows_of(tmp_path / "scores" / "abilities.confidential.csv")
    ]
    assert np.mean(abilities) == pytest.approx(500)
    assert np.std(abilities, ddof=1) == pytest.approx(100)
    # The raw-score conversion table is on the same scale.
    table = rows_of(tmp_path / "scores" / "score_table.confidential.csv")
    known = {one["item"]: one["difficulty"] for one in ended.document["items"]}
    wanted = scale.apply(tabulate_scores(known).ability)
    assert [float(row["scaled_ability"]) for row in table] == pytest.approx(wanted.tolist())


def test_score_takes_another_scale_than_that_of_the_calibration(answers, tmp_path):
    assert discreet("fit", answers, "--scale", "500,100", "--out", tmp_path).code == 0
    ended = discreet("score", answers, "--with", tmp_path, "--scale", "0=50,1=60")
    assert "Scale: 10 x logits + 50" in ended.out
    plain = discreet("score", answers, "--with", tmp_path)
    assert "Scale: " in plain.out
    assert "Scale: 10 x" not in plain.out


def test_without_a_scale_nothing_is_scaled(answers, tmp_path):
    ended = discreet("fit", answers, "--out", tmp_path, "--json")
    assert "scale" not in ended.document
    assert "scaled_difficulty" not in rows_of(tmp_path / "items.confidential.csv")[0]
    assert "scale" not in discreet("score", answers, "--with", tmp_path, "--json").document


def test_the_report_says_which_scale(answers, tmp_path):
    assert discreet("fit", answers, "--scale", "0=500,1=600", "--out", tmp_path).code == 0
    page = (tmp_path / "report.confidential.html").read_text()
    assert "100 x logits + 500" in page
    assert discreet("result", "report", tmp_path, "--scale", "0=50,1=60").code == 0
    assert "10 x logits + 50" in (tmp_path / "report.confidential.html").read_text()
    assert discreet("result", "report", tmp_path, "--scale", "500,100").code == 0
    assert (
        discreet("result", "report", answers, "--scale", "500,100", "--out", tmp_path / "two").code
        == 0
    )
    first, second = (
        (place / "report.confidential.html").read_text() for place in (tmp_path, tmp_path / "two")
    )
    said = [line for line in first.splitlines() if "x logits" in line]
    assert said
    assert all(line in second for line in said)


def test_a_bad_scale_is_refused_before_anything_is_read():
    ended = discreet("fit", "nowhere.csv", "--scale", "high")
    assert ended.code == 2
    assert "such as 500,100" in ended.err
    assert discreet("score", "nowhere.csv", "--with", "x", "--scale", "500,0").code == 2


def test_the_page_of_a_release_stays_in_logits(tmp_path):
    answers = library.datasets.lsat()
    library.release(answers, library.Budget(1.0), items=LSAT_ITEMS).save(tmp_path / "release")
    ended = discreet("result", "report", tmp_path / "release", "--scale", "0=500,1=600")
    assert ended.code == 2
    assert "release" in ended.err


@pytest.mark.parametrize("ability", [[], [0.3], [0.3, np.nan], [0.3, 0.3]])
def test_a_mean_and_sd_need_two_persons_who_differ(ability):
    with refused(BadUsage, "no_scale_give_these"):
        library.Scale.from_persons(np.array(ability, dtype=float), mean=500, sd=100)


def test_two_persons_are_enough_for_a_scale():
    scale = library.Scale.from_persons(np.array([-1.0, np.nan, 1.0]), mean=500, sd=100)
    assert (scale.slope, scale.intercept) == pytest.approx((100 / np.sqrt(2), 500))
