"""No release is made of ratings, or with weights, and the refusal says why."""

import numpy as np
import pytest

import discreet as library
from commandline import discreet as typed
from discreet.errors import BadUsage
from refusals import refused

ITEMS = ["a", "b", "c"]
RATED = "a mixture over raters, not the thresholds of items; and raters are persons too"
RAKED = "one person changes the weights of everybody"


@pytest.fixture
def table(tmp_path):
    """Write one score of each person on each item, the rater beside it."""
    rng, path = np.random.default_rng(3), tmp_path / "scores.csv"
    rows = [
        f"p{person},{item},r{rng.integers(4)},{rng.integers(2)}"
        for person in range(30)
        for item in ITEMS
    ]
    path.write_text("\n".join(["person,item,rater,score", *rows]) + "\n")
    return path


@pytest.fixture
def ledger(tmp_path):
    return library.Ledger.create(tmp_path / "spent.db", 9.0)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_table_with_a_column_of_raters_is_refused_with_the_reason(table, ledger, engine):
    with refused(BadUsage, "column_names_raters_release", raters="rater"):
        library.release(table, epsilon=1, items=ITEMS, ledger=ledger, engine=engine)
    assert not ledger.releases()


def test_a_column_that_only_looks_like_raters_can_be_left_out(table):
    released = library.release(table, epsilon=1, items=ITEMS, ignore=["rater"])
    assert released.estimate.items == tuple(ITEMS)


def test_answers_without_raters_are_not_taken_for_ratings(table):
    table.write_text(table.read_text().replace("rater", "room"))
    assert library.release(table, epsilon=1, items=ITEMS).difficulty.shape == (3,)


def test_ratings_are_refused_with_the_reason():
    ratings = library.simulate_ratings(20, 3, 4, rng=np.random.default_rng(1)).ratings
    with refused(BadUsage, "found_ratings_whose_raters"):
        library.release(ratings, epsilon=1, items=ITEMS)


WORDS = {
    "weight": ({"weight": "w"}, "release_refused_where_persons"),
    "strata": ({"strata": "s"}, "release_refused_where_persons"),
    "facets": ({"facets": ["rater"]}, "release_ratings_refused_refuse_reading"),
    "rater": ({"rater": "rater"}, "release_ratings_refused_refuse_reading"),
}


@pytest.mark.parametrize(("words", "code"), WORDS.values(), ids=WORDS)
def test_keywords_of_weights_and_raters_are_refused_with_the_reason(table, ledger, words, code):
    with refused(BadUsage, code):
        library.release(table, epsilon=1, items=ITEMS, **words)
    with refused(BadUsage, code):
        library.propose(epsilon=1, items=ITEMS, ledger=ledger, reading=words)


@pytest.mark.parametrize(
    ("options", "reason"), [(["--rater", "rater"], RATED), (["--weight", "w"], RAKED), ([], RATED)]
)
def test_the_command_line_gives_the_same_reasons(table, ledger, tmp_path, options, reason):
    items = tmp_path / "items.txt"
    items.write_text("\n".join(ITEMS))
    places = ("--items", items, "--ledger", ledger.path, "--out", tmp_path / "out")
    ended = typed("release", table, "--epsilon", 1, *places, *options)
    assert ended.code == 2
    assert reason in ended.err
    assert not (tmp_path / "out").exists()
    assert not ledger.releases()
