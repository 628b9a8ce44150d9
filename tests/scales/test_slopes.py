"""Marginal likelihood with slopes and groups: every formula against sums written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from discreet.scales.slopes import (
    PRIOR,
    GroupAnswers,
    GroupModel,
    evaluate_groups,
    find_origin,
    fit_groups,
    free_item,
    shift_item,
)

STEPS = np.array([1, 2, 1])
CODES = (
    np.array([[1, 2, 0], [0, 1, 0], [1, 0, -1], [0, -1, 1]], dtype=np.int8),
    np.array([[1, 2, 1], [1, 1, 0], [-1, 2, 1], [0, 0, 0], [1, -1, 1]], dtype=np.int8),
    np.array([[0, 0, 0], [1, 1, -1], [0, 2, 1]], dtype=np.int8),
)
MODEL = GroupModel(
    intercept=np.repeat([[0.3, -0.7, 0.9, -0.4]], 3, axis=0),
    slope=np.array([0.6, 1.4, 2.1]),
    mean=np.array([0.0, 0.8, -0.5]),
    log_sd=np.array([0.0, 0.4, -0.3]),
)
GRID = np.linspace(-8, 8, 321)


def category_weights(ability, slope, intercepts):
    """The chance of every category of one item, written out."""
    weights = [
        np.exp(category * slope * ability - sum(intercepts[:category]))
        for category in range(len(intercepts) + 1)
    ]
    return [one / sum(weights) for one in weights]


def log_likelihood(row, vector, group, steps=STEPS, groups=3):
    """The log-likelihood of one person, from all parameters of all groups in one vector."""
    nodes, items = int(steps.sum()), len(steps)
    intercept, slope = vector[:nodes], vector[nodes : nodes + items]
    mean = np.append(0.0, vector[nodes + items : nodes + items + groups - 1])[group]
    sd = np.exp(np.append(0.0, vector[nodes + items + groups - 1 :])[group])
    ability = mean + sd * GRID
    density = np.exp(-(GRID**2) / 2)
    chance, first = density / density.sum(), 0
    for item, most in enumerate(steps):
        if row[item] >= 0:
            own = intercept[first : first + most]
            chance = chance * category_weights(ability, slope[item], own)[row[item]]
        first += most
    return np.log(chance.sum())


def flatten(model):
    return np.concatenate([model.intercept[0], model.slope, model.mean[1:], model.log_sd[1:]])


def derive(function, at, step=1e-5):
    """Central differences of a function of a vector."""
    ways = np.eye(len(at)) * step
    return np.array([(function(at + way) - function(at - way)) / (2 * step) for way in ways])


def score_rows(codes, vector, steps=STEPS):
    """Every person's score by all parameters, by differences; and the person's group."""
    rows = [(row, group) for group, part in enumerate(codes) for row in part]
    scores = [
        derive(lambda v, r=row, g=group: log_likelihood(r, v, g, steps, len(codes)), vector)
        for row, group in rows
    ]
    return np.array(scores), np.array([group for _, group in rows])


def test_likelihood_and_scores_are_those_of_sums_written_out():
    answers, vector = GroupAnswers(CODES, STEPS), flatten(MODEL)
    fit = evaluate_groups(answers, MODEL)
    persons = [(row, group) for group, codes in enumerate(CODES) for row in codes]
    expected = sum(log_likelihood(row, vector, group) for row, group in persons)
    prior = PRIOR / 2 * (((MODEL.slope - 1) ** 2).sum() + (MODEL.log_sd**2).sum())
    assert fit.value == pytest.approx(expected - prior, rel=1e-8)
    scores, _ = score_rows(CODES, vector)
    total = scores.sum(axis=0)
    total[4:7] -= PRIOR * (MODEL.slope - 1)
    total[-2:] -= PRIOR * MODEL.log_sd[1:]
    assert fit.total == pytest.approx(total, abs=1e-6)


def test_outer_products_have_the_information_of_steps_on_the_diagonal():
    fit, vector = evaluate_groups(GroupAnswers(CODES, STEPS), MODEL), flatten(MODEL)
    scores, group = score_rows(CODES, vector)
    fewer = more = 0
    for number, codes in enumerate(CODES):
        raw = scores[group == number].T @ scores[group == number]

        def value(v, codes=codes, number=number):
            return sum(log_likelihood(row, v, number) for row in codes)

        for step in range(4):
            way = np.eye(len(vector))[step] * 1e-3
            second = (value(vector + way) - 2 * value(vector) + value(vector - way)) / 1e-6
            found = fit.products[number, step]
            assert found[step] == pytest.approx(-second, rel=1e-4, abs=1e-5)
            # Products with a slope: scaled down where answers were more than expected.
            scale = min(1.0, np.sqrt(-second / raw[step, step]))
            assert found[4:7] == pytest.approx(scale * raw[step, 4:7], abs=1e-4)
            fewer, more = fewer + (scale == 1), more + (scale < 1)
    assert fewer
    assert more


def draw(seed, persons, intercept, slope, means, shifts=None, answered=1.0):
    """Right and wrong answers of groups; ``shifts[group]`` are added to the intercepts."""
    rng = np.random.default_rng(seed)
    found = []
    for group, mean in enumerate(means):
        now = intercept if shifts is None else intercept + shifts[group]
        logit = slope * rng.normal(mean, size=(persons, 1)) - now
        codes = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(np.int8)
        codes[rng.random(codes.shape) > answered] = -1
        found.append(codes)
    return GroupAnswers(tuple(found), np.ones(len(slope), dtype=np.int64))


INTERCEPT = np.array([-1.0, 0.2, 0.9, -0.3])
SLOPE = np.array([0.7, 1.5, 1.0, 1.3])


def test_a_fit_is_the_maximum_of_the_likelihood_written_out():
    answers = draw(5, 50, INTERCEPT, SLOPE, [0.0, 0.9], answered=0.9)
    ones = np.ones(4, dtype=int)

    def value(vector):
        prior = PRIOR / 2 * (((vector[4:8] - 1) ** 2).sum() + (vector[9:] ** 2).sum())
        rows = [(row, group) for group, codes in enumerate(answers.codes) for row in codes]
        return sum(log_likelihood(row, vector, group, ones, 2) for row, group in rows) - prior

    fit = fit_groups(answers)
    vector, error = flatten(fit.model), np.sqrt(fit.inverse.diagonal())
    highest, rng = value(vector), np.random.default_rng(1)
    for _ in range(10):
        assert value(vector + rng.normal(0, 0.1, len(vector)) * error) < highest
    assert np.abs(derive(value, vector) * error).max() < 0.02


def test_the_score_test_is_that_of_persons_scores_without_what_nuisance_explains():
    answers = draw(6, 60, INTERCEPT, SLOPE, [0.0, 0.9, 0.4], answered=0.85)
    fit = fit_groups(answers)
    item, ones = 2, np.ones(4, dtype=int)
    scores, group = score_rows(answers.codes, flatten(fit.model), ones)
    persons, parameters = scores.shape
    extra, whose = [], []
    for number in range(3):  # as information goes, not as rare answers happened to come
        mine = np.ix_(group == number, range(4))
        square, wanted = (scores[mine] ** 2).sum(axis=0), fit.products[number].diagonal()[:4]
        scores[mine] *= np.sqrt(np.minimum(wanted / square, 1.0))
        # A pretended person, whose score is what the squares lack, goes with nothing else.
        lacking = np.sqrt(np.maximum(wanted - square, 0.0))
        extra.append(np.hstack([np.diag(lacking), np.zeros((4, parameters - 4))]))
        whose += [number] * 4
    scores, group = np.vstack([scores, *extra]), np.append(group, whose)
    shifted = np.where(group[:, None] == np.arange(2), scores[:, [item]], 0.0)
    rows = np.diag(np.concatenate([np.zeros(4), np.ones(4), np.zeros(2), np.ones(2)])) ** 0.5
    stacked = np.vstack([scores, rows * PRIOR**0.5])
    padded = np.vstack([shifted, np.zeros((len(rows), 2))])
    explained = np.linalg.lstsq(stacked, padded, rcond=None)[0]
    left = padded - stacked @ explained
    efficient = np.array([fit.gradient[g, item] for g in range(2)]) - explained.T @ fit.total
    spread = padded.T @ left
    expected = efficient @ np.linalg.solve(spread, efficient) * (1 - parameters / persons)
    found = shift_item(fit, item, np.ones(4, dtype=bool))
    assert found.degrees == 2
    assert found.statistic == pytest.approx(expected, rel=1e-3)


def test_the_score_test_agrees_with_the_likelihood_ratio_of_a_freed_item():
    shifts = np.zeros((3, 4))
    shifts[1, 1], shifts[2, 1] = 0.35, -0.15
    answers = draw(7, 900, INTERCEPT, SLOPE, [0.0, 0.9, 0.4], shifts)
    fit = fit_groups(answers)
    found = shift_item(fit, 1, np.ones(4, dtype=bool))

    def lose(vector):
        freed = fit.model.move(vector[: len(fit.total)])
        freed.intercept[:2, 1] += vector[len(fit.total) :]
        point = evaluate_groups(answers, freed)
        gradient = np.append(point.total, point.gradient[:2, 1])
        return -point.value, -gradient

    start = np.zeros(len(fit.total) + 2)
    best = minimize(lose, start, jac=True, method="BFGS", options={"gtol": 0.05})
    ratio = 2 * (-best.fun - fit.value)
    assert chi2.sf(ratio, 2) < 0.01
    assert found.statistic == pytest.approx(ratio, rel=0.1)
    change = best.x[len(fit.total) :]
    assert found.location[:2] - found.location[2] == pytest.approx(change, abs=0.06)
    exact = free_item(fit, 1, np.arange(4) != 1)
    assert exact.location[:2] - exact.location[2] == pytest.approx(change, abs=0.005)
    assert exact.statistic == pytest.approx(found.statistic)


def test_locations_of_equal_items_have_mean_zero_at_the_origin():
    fit = fit_groups(draw(8, 400, INTERCEPT, SLOPE, [0.0, 0.6]))
    origin = np.array([True, True, False, True])
    location = fit.model.intercept[0] - fit.model.slope * find_origin(fit, origin)
    assert location[origin].sum() == pytest.approx(0.0, abs=1e-12)


def test_a_group_without_an_item_has_no_location_and_takes_one_degree_less():
    answers = draw(9, 300, INTERCEPT, SLOPE, [0.0, 0.5, 1.0])
    answers.codes[1][:, 2] = -1
    found = shift_item(fit_groups(answers), 2, np.ones(4, dtype=bool))
    assert found.degrees == 1
    assert np.isnan(found.location).tolist() == [False, True, False]
    assert np.isfinite(found.covariance[np.ix_([0, 2], [0, 2])]).all()


def test_a_start_from_some_persons_ends_where_all_persons_end(monkeypatch):
    answers = draw(10, 500, INTERCEPT, SLOPE, [0.0, 0.6])
    whole = fit_groups(answers)
    monkeypatch.setattr("discreet.scales.slopes.THIN", 200)
    again = fit_groups(answers)
    assert flatten(again.model) == pytest.approx(flatten(whole.model), abs=2e-3)
