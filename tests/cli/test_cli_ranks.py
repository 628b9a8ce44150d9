"""``discreet top`` and ``compare-items`` on answers, calibrations, banks and releases."""

import json

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    lsat = library.datasets.lsat()
    budget = library.Budget(4.0, 1e-6)
    noise = ExactNoise(SeededSource(1))
    library.release(lsat, budget, items=lsat.items, noise=noise, out=folder / "release")
    votes = library.simulate_comparisons(300, 6, 8, rng=np.random.default_rng(1)).comparisons
    objects = [f"object {number}" for number in range(6)]
    library.release_comparisons(
        votes, budget, items=objects, max_comparisons=8, noise=noise, out=folder / "ranking"
    )
    (folder / "answers.csv").write_text(
        "\n".join(",".join(map(str, row)) for row in [lsat.items, *lsat.to_array().tolist()])
    )
    library.fit(lsat).save(folder / "estimate.json")
    assert discreet("fit", folder / "answers.csv", "--out", folder / "fit", "-q").code == 0
    library.write_bank(
        folder / "bank.csv", library.create_bank(library.fit(lsat), scale="s", source="x")
    )
    return folder


@pytest.mark.parametrize("place", ["answers.csv", "fit", "estimate.json", "bank.csv", "release"])
def test_top_takes_whatever_holds_difficulties(desk, place):
    ended = discreet("top", desk / place, "-k", 1, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["top"] == found["surely_in"] == ["Item3"]
    assert found["ranks"][0] == {"item": "Item3", "first": 1, "last": 1}
    assert len(found["ranks"]) == 5


def test_top_of_a_release_says_what_the_library_says(desk):
    estimate = library.read_release(desk / "release").estimate
    assert estimate.covariance is not None
    found = json.loads(discreet("top", desk / "release", "-k", 2, "--json").out)
    ranking, ranges = library.rank(estimate, 2), library.rank_ranges(estimate)
    assert found["possibly_in"] == list(ranking.possibly_in)
    assert [row["last"] for row in found["ranks"]] == ranges.last.tolist()


def test_top_of_a_ranking_speaks_of_objects(desk):
    ended = discreet("top", desk / "ranking", "-k", 2)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("The 2 strongest of 6 objects, at 95% confidence")
    assert "difficulty" not in ended.out


def test_options_for_answers_are_refused_with_a_release(desk):
    for more in (["--person", "id"], ["--method", "spectral"], ["--regularisation", "0.5"]):
        ended = discreet("top", desk / "release", "-k", 1, *more)
        assert ended.code == 2
        assert "estimated already" in ended.err


def test_two_items_of_a_release_are_compared(desk):
    ended = discreet("result", "compare", desk / "release", "Item3", "Item1")
    assert ended.code == 0, ended.err
    assert "Item3 less Item1: +" in ended.out
    assert "is the harder one, for this pair alone: over 99.9%" in ended.out
    assert "can be told apart at 95%" in ended.out
    found = json.loads(
        discreet("result", "compare", desk / "release", "Item3", "Item1", "--json").out
    )
    own = library.compare_items(library.read_release(desk / "release"), "Item3", "Item1")
    assert found["difference"] == own.difference
    every = library.compare_items(
        library.read_release(desk / "release"), "Item3", "Item1", simultaneous=True
    )
    assert found["for_all_pairs"] == pytest.approx({"lower": every.lower, "upper": every.upper})
    assert found["told_apart"] is True


def test_close_items_cannot_be_told_apart(desk):
    ended = discreet("result", "compare", desk / "release", "Item2", "Item4", "--level", "0.99")
    assert "99% from" in ended.out
    assert "cannot be told apart at 99%" in ended.out


def test_two_objects_of_a_ranking_are_compared(desk):
    ended = discreet("result", "compare", desk / "ranking", "object 0", "object 5")
    assert ended.code == 0, ended.err
    assert "is the stronger one" in ended.out
    assert "Among all objects" in ended.out


@pytest.mark.parametrize(
    ("place", "items", "words"),
    [
        ("release", ("Item3", "Item9"), "there is no item 'Item9'"),
        ("release", ("Item3", "Item3"), "compared with itself"),
        ("answers.csv", ("Item3", "Item1"), "is no calibration"),
        ("nowhere", ("Item3", "Item1"), "is no calibration"),
    ],
)
def test_what_cannot_be_compared_is_refused(desk, place, items, words):
    ended = discreet("result", "compare", desk / place, *items)
    assert ended.code == 2
    assert words in ended.err
