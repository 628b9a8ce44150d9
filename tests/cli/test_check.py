"""Whether the model holds: the tests, as typed and in Python."""

import csv

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.analysis import ModelCheck, check_model


@pytest.fixture(scope="module")
def lsat(tmp_path_factory):
    place = tmp_path_factory.mktemp("check") / "lsat.csv"
    with place.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(LSAT_ITEMS)
        writer.writerows(library.datasets.lsat().to_array().tolist())
    return place


@pytest.fixture(scope="module")
def broken():
    """A test of two skills, with a copied item and a random one."""
    rng = np.random.default_rng(5)
    ability, difficulty = rng.normal(size=(800, 2)), np.linspace(-1, 1, 20)
    chance = 1 / (1 + np.exp(difficulty - ability[:, np.arange(20) % 2]))
    rows = (rng.random(chance.shape) < chance).astype(int)
    rows[:, 19] = rng.integers(0, 2, 800)
    rows[:, 1] = rows[:, 3]
    return rows


def test_lsat_fits_and_has_andersens_statistic_of_erm(lsat):
    ended = discreet("check", lsat, "--method", "conditional", "--json")
    assert ended.code == 0
    document = ended.document
    assert (document["persons"], document["items"], document["method"]) == (1000, 5, "conditional")
    tests = {test["name"]: test for test in document["tests"]}
    assert list(tests) == [
        *("Andersen", "Martin-Löf", "dimensionality", "dependence", "item fit", "person fit")
    ]
    assert {test["verdict"] for test in tests.values()} == {"holds"}
    assert tests["Andersen"]["statistic"] == pytest.approx(0.1681, abs=1e-4)
    assert tests["Andersen"]["degrees"] == 4
    assert all(test["found"] and test["asks"].endswith("?") for test in tests.values())


def test_words_say_what_each_number_means(lsat):
    ended = discreet("check", lsat, "--method", "conditional")
    assert ended.code == 0
    assert "Andersen            0.168   4  0.9967  holds" in ended.out
    assert "Do the items measure one thing?" in ended.out
    assert "What to do" not in ended.out


def test_a_test_that_does_not_hold_is_told_with_advice_and_exit_code_zero(broken, tmp_path):
    place = tmp_path / "broken.csv"
    np.savetxt(place, broken, "%d", ",", header=",".join(f"q{n}" for n in range(20)), comments="")
    ended = discreet("check", place, "--keep", "q1", "--keep", "q3")
    assert ended.code == 0
    assert "What to do: " in ended.out
    found = check_model(place, keep=["q1", "q3"])
    verdicts = {test.name: test.verdict for test in found.tests}
    assert verdicts["dimensionality"] in ("serious", "alarm")
    assert verdicts["dependence"] == "worth a look"
    assert "q1 with q3" in {test.name: test for test in found.tests}["dependence"].found
    for test in found.tests:
        assert bool(test.advice) == (test.verdict != "holds")
        if test.advice:
            assert f"  What to do: {test.advice}" in ended.out


def test_persons_with_low_and_high_scores_that_differ_are_seen():
    rng = np.random.default_rng(6)
    ability, difficulty = rng.normal(size=(1500, 1)), np.linspace(-1, 1, 12)
    slope = np.where(np.arange(12) < 6, 0.4, 2.0)
    chance = 1 / (1 + np.exp(-slope * (ability - difficulty)))
    found = check_model((rng.random(chance.shape) < chance).astype(int))
    first = found.tests[0]
    assert first.p_value < 1e-4
    assert first.verdict == "worth a look"
    assert "Wald" in first.advice


def test_groups_are_tested_where_there_are_some(tmp_path):
    sim = library.simulate(persons=400, items=8, rng=np.random.default_rng(7))
    rows = sim.responses.to_array()
    lines = [",".join(["sex", *(f"q{n}" for n in range(8))])]
    lines += [",".join(["fm"[n % 2], *map(str, row)]) for n, row in enumerate(rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    ended = discreet("check", tmp_path / "answers.csv", "--group", "sex", "--json")
    assert ended.document["tests"][-1]["name"] == "groups"


def test_the_result_is_a_table_and_says_the_same_as_the_report(broken):
    estimate = library.fit(broken)
    found = check_model(broken, estimate)
    assert isinstance(found, ModelCheck)
    assert found.estimate is estimate
    assert found.to_dataframe()["verdict"].tolist() == [test.verdict for test in found.tests]


def test_answers_that_test_nothing_are_refused(tmp_path):
    (tmp_path / "same.csv").write_text("a,b\n1,1\n0,0\n1,1\n")
    ended = discreet("check", tmp_path / "same.csv")
    assert ended.code in (2, 3, 5)
    assert ended.out == ""
    assert "Error" in ended.err
