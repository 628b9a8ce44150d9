import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.api.calibrating import fit
from discreet.api.ranks import rank
from discreet.errors import BadUsage
from discreet.results import differences
from discreet.results.estimate import Estimate, Solution, Status
from refusals import refused


def make(difficulty, se=0.1, covariance=None):
    b = np.asarray(difficulty, dtype=float)
    known = ~np.isnan(b)
    return Estimate(
        items=tuple("abcdefghijklmnopqrstuvwxyz"[: len(b)]),
        difficulty=b,
        se=np.where(known, se, np.nan),
        status=tuple(Status.ESTIMATED if k else Status.NO_ANSWERS for k in known),
        method="refined",
        solution=Solution("given", 0, 0.0),
        covariance=covariance,
    )


def centred(se, m):
    return se**2 * (np.eye(m) - 1 / m)


def test_the_hardest_items_come_first_and_the_easiest_on_request():
    known = make([0.5, -2.0, 1.5, 0.0])
    assert rank(known, 2).top == ("c", "a")
    assert rank(known, 2, easiest=True).top == ("b", "d")


def test_well_separated_items_are_surely_in_and_no_other_is_possible():
    ranking = rank(make([3.0, -3.0, 2.0, -2.0], 0.1), 2)
    assert ranking.surely_in == ranking.possibly_in == ("a", "c")
    assert ranking.gap == pytest.approx(4.0)
    assert 3 < ranking.gap_interval[0] < 4 < ranking.gap_interval[1] < 5


def test_close_items_are_possible_but_not_sure():
    ranking = rank(make([3.0, 0.01, 0.0, -3.0], 0.1), 2)
    assert ranking.top == ("a", "b")
    assert ranking.surely_in == ("a",)
    assert ranking.possibly_in == ("a", "b", "c")
    assert ranking.gap_interval[0] < 0 < ranking.gap_interval[1]


def test_no_item_and_all_items_are_defined():
    known = make([1.0, 0.0, -1.0])
    none, every = rank(known, 0), rank(known, 3)
    assert none.top == none.surely_in == none.possibly_in == none.tied == ()
    assert every.top == every.surely_in == every.possibly_in == ("a", "b", "c")
    assert np.isnan([none.gap, every.gap, *none.gap_interval]).all()


@pytest.mark.parametrize(
    ("top", "code"),
    [
        (-1, "top_must_lie_between_number"),
        (4, "top_must_lie_between_number"),
        (2.5, "must_found_nothing_read"),
        ("2", "must_found_nothing_read"),
    ],
)
def test_a_number_of_items_that_means_nothing_is_refused(top, code):
    with refused(BadUsage, code):
        discreet.rank(make([1.0, 0.0, np.nan, -1.0]), top)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_that_means_nothing_is_refused(level):
    with refused(BadUsage, "level_must_lie_between_found_use"):
        rank(make([1.0, 0.0]), 1, level=level)


def test_ties_keep_the_order_of_the_input_and_are_listed():
    ranking = rank(make([0.0, 1.0, 1.0, 1.0]), 2)
    assert ranking.top == ("b", "c")
    assert ranking.tied == ("d",)
    assert ranking.gap == 0
    assert ranking.surely_in == ()


def test_items_without_a_number_are_listed_and_not_ranked():
    ranking = rank(make([np.nan, 1.0, -1.0]), 1)
    assert ranking.excluded == ("a",)
    assert ranking.top == ("b",)


def test_without_standard_errors_nothing_is_sure():
    ranking = rank(make([5.0, 0.0, -5.0], np.nan), 1)
    assert ranking.surely_in == ()
    assert ranking.possibly_in == ("a", "b", "c")


def test_a_covariance_makes_the_same_statements_as_equal_independent_errors():
    b = [3.0, 0.5, 0.2, -1.0, -2.7]
    ours = rank(make(b, 0.1, centred(0.1, 5)), 2)
    plain = rank(make(b, 0.1 * np.sqrt(4 / 5)), 2)
    assert ours.surely_in == plain.surely_in
    assert ours.quantile == pytest.approx(plain.quantile, rel=0.04)
    # Five equal independent means: the studentised range has the 95% point 3.858 (tables).
    assert ours.quantile * np.sqrt(2) == pytest.approx(3.858, rel=0.02)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_without_a_covariance_differences_of_centred_items_keep_their_full_error(m):
    # Centring m independent errors of 0.1 leaves each item 0.1 sqrt((m - 1) / m), but every
    # difference between two of them 0.1 sqrt(2).
    b = np.linspace(1.0, -1.0, m)
    for known in (make(b, 0.1 * np.sqrt((m - 1) / m)), make(b, 0.1, centred(0.1, m))):
        ranking = rank(known, 1)
        low, high = ranking.gap_interval
        assert (high - low) / 2 == pytest.approx(0.1 * np.sqrt(2) * ranking.quantile)


def test_a_single_item_is_surely_its_own_top_one():
    assert rank(make([0.0]), 1).surely_in == ("a",)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8), st.integers(0, 8), st.booleans())
def test_the_sure_set_is_in_the_top_and_the_top_in_the_possible_set(values, top, easiest):
    top = min(top, len(values))
    ranking = rank(make(np.array(values) / 2.0, 0.2), top, easiest=easiest)
    assert set(ranking.surely_in) <= set(ranking.top) <= set(ranking.possibly_in)
    assert len(ranking.top) == top


def test_the_ranking_of_a_calibration_is_repeatable():
    rng = np.random.default_rng(0)
    b = np.linspace(-2, 2, 9)
    X = (rng.random((800, 9)) < 1 / (1 + np.exp(b - rng.normal(size=(800, 1))))).astype(int)
    fitted = fit(X)
    assert rank(fitted, 3) == rank(fitted, 3)
    assert rank(fitted, 3).top == ("8", "7", "6")


def test_surely_in_is_rarely_wrong_even_when_all_items_are_equal(monkeypatch):
    monkeypatch.setattr(differences, "ERROR_DRAWS", 2000)
    rng = np.random.default_rng(4)
    m = 8
    covariance = centred(0.2, m)
    wrong = 0
    for _ in range(400):
        noise = rng.normal(size=m) * 0.2
        wrong += bool(rank(make(noise - noise.mean(), 0.2, covariance), 3).surely_in)
    assert wrong / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_few_items_at_a_time_give_the_same_ranking(monkeypatch):
    rng = np.random.default_rng(3)
    b = rng.normal(size=30)
    answers = rng.random((600, 30)) < 1 / (1 + np.exp(b - rng.normal(size=(600, 1))))
    estimate = fit(answers.astype(np.int8))
    whole = rank(estimate, top=5)
    monkeypatch.setattr(differences, "BLOCK_CELLS", 70)
    assert rank(estimate, top=5) == whole
    assert 0 < len(whole.surely_in) <= 5 <= len(whole.possibly_in)
