"""Warm's weighted likelihood against values found another way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from discreet.errors import BadResponses, BadUsage
from discreet.persons import abilities


def log_posterior(theta: float, right: int, b: np.ndarray) -> float:
    """Weighted likelihood is the likelihood times the root of the information (Warm 1989)."""
    p = 1 / (1 + np.exp(-(theta - b)))
    likelihood = right * theta - np.log1p(np.exp(theta - b)).sum()
    return float(likelihood + 0.5 * np.log((p * (1 - p)).sum()))


def test_equal_items_have_a_closed_form():
    # With k equal items Warm's equation is right - k P + (1 - 2 P) / 2 = 0.
    answers = np.tril(np.ones((6, 5)), k=-1)
    right = answers.sum(axis=1)
    expected = 0.7 + np.log((right + 0.5) / (5.5 - right))
    assert abilities(answers, np.full(5, 0.7)).ability == pytest.approx(expected, abs=1e-9)


def test_abilities_maximise_the_weighted_likelihood():
    rng = np.random.default_rng(3)
    b = rng.normal(size=12)
    answers = np.where(rng.random((40, 12)) < 0.4, np.nan, rng.integers(0, 2, (40, 12)))
    found = abilities(answers, b).ability
    for row, ability in zip(answers, found, strict=True):
        seen = ~np.isnan(row)
        best = minimize_scalar(
            lambda t, r, d: -log_posterior(t, r, d),
            args=(row[seen].sum(), b[seen]),
            bounds=(-12, 12),
            options={"xatol": 1e-9},
            method="bounded",
        ).x
        assert ability == pytest.approx(best, abs=1e-5)


def test_standard_error_is_the_root_of_the_inverse_information():
    result = abilities([[1, 0, 1, 0]], [0.0, 0.0, 0.0, 0.0])
    assert result.ability[0] == pytest.approx(0, abs=1e-9)
    assert result.se[0] == pytest.approx(1.0)


def test_minus_one_and_nan_both_mean_missing():
    b = [0.3, -0.2, 1.0]
    marked = abilities(np.array([[1, -1, 0]], dtype=np.int8), b)
    blank = abilities([[1, np.nan, 0]], b)
    fewer = abilities([[1, 0]], [0.3, 1.0])
    assert marked.ability[0] == blank.ability[0] == pytest.approx(fewer.ability[0])


def test_items_without_a_difficulty_do_not_count():
    assert abilities([[1, 1, 0]], [0.3, np.nan, 1.0]).ability[0] == pytest.approx(
        abilities([[1, 0]], [0.3, 1.0]).ability[0]
    )


def test_nobody_without_answers_gets_an_ability():
    result = abilities([[np.nan, np.nan], [1, 0]], [0.0, 0.0])
    assert np.isnan(result.ability).tolist() == [True, False]
    assert np.isnan(abilities([[1, 0]], [np.nan, np.nan]).se).all()


def test_no_persons_give_no_abilities():
    assert abilities(np.zeros((0, 3)), [0.0, 1.0, 2.0]).ability.shape == (0,)


def test_a_two_is_refused_with_its_place():
    with pytest.raises(BadResponses, match="person 1 to item 0 is 2"):
        abilities([[1, 0], [2, 0]], [0.0, 0.0])


def test_shapes_that_do_not_match_are_refused():
    with pytest.raises(BadUsage, match="one difficulty for each item"):
        abilities([[1, 0]], [0.0, 0.0, 0.0])


@given(
    b=st.lists(st.floats(-30, 30), min_size=1, max_size=15),
    data=st.data(),
)
def test_abilities_are_finite_and_rise_with_the_score(b, data):
    order = data.draw(st.permutations(range(len(b))))
    answers = np.zeros((len(b) + 1, len(b)))
    for row in range(len(b)):
        answers[row + 1 :, order[row]] = 1
    found = abilities(answers, b).ability
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
