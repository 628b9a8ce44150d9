"""The ways that `totals` is compared with do what they say and keep the promise they claim."""

from itertools import product

import numpy as np
import pytest
from experiments.calibration._alternatives import (
    NODES,
    WEIGHTS,
    Gradients,
    Responses,
    Shares,
    count_categories,
    fit_shares,
    local_epsilon,
    randomize,
    reach_chances,
    response_delta,
    sum_clipped,
)

THRESHOLDS = np.array([[-1.2, 0.1, 0.9], [-0.4, -0.6, 0.5], [0.2, 0.3, 0.2]])
THRESHOLDS -= THRESHOLDS.mean()


def draw_codes(persons, seed=0):
    rng = np.random.default_rng(seed)
    reached, _ = reach_chances(THRESHOLDS, rng.normal(size=persons))
    return (rng.random((3, 1, persons)) < reached).sum(axis=1).T


def list_steps(codes):
    return (codes[:, :, None] >= np.arange(1, 4)).reshape(len(codes), -1).astype(float)


def test_shares_of_the_model_give_its_thresholds_back():
    reached = reach_chances(THRESHOLDS)[0] @ WEIGHTS
    whole = np.column_stack([np.ones(3), reached, np.zeros(3)])
    assert fit_shares(whole[:, :-1] - whole[:, 1:]) == pytest.approx(THRESHOLDS, abs=1e-9)


@pytest.mark.parametrize(
    "way", [Shares(0.02), Responses(0, 0.02), Responses(1, 0.02), Gradients(0.6, 50, 8, 0)]
)
def test_every_way_finds_the_thresholds_where_privacy_costs_nothing(way):
    codes = draw_codes(60_000)
    found = way(codes, 3, 30.0, 1e-4, np.random.default_rng(1))
    assert np.abs(found - THRESHOLDS).max() < 0.1


def test_a_replaced_person_moves_counts_by_no_more_than_two_for_each_item():
    every = np.array(list(product(range(4), repeat=3)))
    counts = np.array([count_categories(person[None], 3).ravel() for person in every])
    apart = ((counts[:, None] - counts[None]) ** 2).sum(axis=2)
    assert apart.max() == 2 * 3


@pytest.mark.parametrize(
    ("answers", "categories", "local"), [(1, 3, 0.7), (3, 4, 0.4), (4, 2, 1.1)]
)
def test_the_delta_of_responses_is_that_of_all_outcomes(answers, categories, local):
    one = np.full((categories, categories), 1.0) + np.diag(np.full(categories, np.expm1(local)))
    one /= one.sum(axis=1)
    here, there = np.zeros(answers, int), np.ones(answers, int)
    outcomes = list(product(range(categories), repeat=answers))
    first = np.array([np.prod(one[here, out]) for out in outcomes])
    second = np.array([np.prod(one[there, out]) for out in outcomes])
    for epsilon in (0.2, 1.0):
        expected = np.maximum(first - np.exp(epsilon) * second, 0).sum()
        assert response_delta(answers, categories, local, epsilon) == pytest.approx(expected)


def test_the_budget_of_responses_is_used_up_and_not_exceeded():
    local = local_epsilon(20, 4, 1.0, 1e-4)
    assert response_delta(20, 4, local, 1.0) <= 1e-4
    assert response_delta(20, 4, 1.001 * local, 1.0) > 1e-4
    assert local > 1.0 / 20  # better than adding up epsilons


def test_an_answer_is_kept_as_often_as_its_epsilon_says():
    codes = np.zeros((1, 200_000), dtype=int)
    said = randomize(np.random.default_rng(2), codes, 4, 0.8)
    share = np.bincount(said[0], minlength=4) / said.size
    assert share[0] / share[1:].mean() == pytest.approx(np.exp(0.8), rel=0.02)
    assert np.ptp(share[1:]) < 0.01


def log_likelihood(thresholds, codes):
    _, log_whole = reach_chances(thresholds)
    paid = np.column_stack([np.zeros(3), np.cumsum(thresholds, axis=1)])
    log = codes.sum(axis=1)[:, None] * NODES - log_whole.sum(axis=0)
    log -= paid[np.arange(3), codes].sum(axis=1)[:, None]
    return np.log(np.exp(log) @ WEIGHTS).sum()


def test_gradients_are_those_of_the_marginal_likelihood():
    codes = draw_codes(40)
    found = sum_clipped(THRESHOLDS, list_steps(codes), codes.sum(axis=1), np.inf)
    for place in np.ndindex(THRESHOLDS.shape):
        shift = np.zeros_like(THRESHOLDS)
        shift[place] = 1e-5
        rise = log_likelihood(THRESHOLDS + shift, codes) - log_likelihood(THRESHOLDS - shift, codes)
        assert found[place] == pytest.approx(rise / 2e-5, abs=1e-5)


def test_a_replaced_person_moves_clipped_gradients_by_no_more_than_twice_the_clip():
    every = np.array(list(product(range(4), repeat=3)))
    sums = np.array(
        [
            sum_clipped(THRESHOLDS, list_steps(p[None]), p[None].sum(axis=1), 0.5).ravel()
            for p in every
        ]
    )
    assert np.sqrt((sums**2).sum(axis=1)).max() == pytest.approx(0.5)
    apart = np.sqrt(((sums[:, None] - sums[None]) ** 2).sum(axis=2))
    assert 0.9 < apart.max() <= 1.0 + 1e-9
