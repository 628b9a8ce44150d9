import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from discreet.counts.folds import PersonWeight
from discreet.errors import NotConverged
from discreet.models import refined
from discreet.models.laplacian import build_laplacian, factorise, invert, solve
from discreet.models.refined import curvature, solve_refined
from refusals import refused


def linked_counts(seed, m=6, mean=2.0):
    rng = np.random.default_rng(seed)
    Y = rng.poisson(mean, size=(m, m)) + np.roll(np.eye(m), 1, axis=1)
    np.fill_diagonal(Y, 0)
    return Y


def log_likelihood(Y, b):
    return -(Y * np.logaddexp(0, b[:, None] - b[None, :])).sum()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10**6))
def test_the_estimate_solves_the_equations_of_the_method(m, seed):
    Y = linked_counts(seed, m)
    b, solution = solve_refined(Y)
    chance = 1 / (1 + np.exp(b[:, None] - b[None, :]))
    assert (Y - (Y + Y.T) * chance).sum(axis=1) == pytest.approx(np.zeros(m), abs=1e-8)
    assert b.mean() == pytest.approx(0, abs=1e-13)
    assert solution.residual <= 1e-9


def test_the_estimate_maximises_the_pairwise_likelihood():
    Y = linked_counts(1)
    found = minimize(lambda b: -log_likelihood(Y, b), np.zeros(6), method="BFGS", tol=1e-9).x
    assert solve_refined(Y)[0] == pytest.approx(found - found.mean(), abs=1e-5)


@pytest.mark.parametrize("start", [-30.0, 30.0])
def test_newton_arrives_from_a_start_that_is_far_off(monkeypatch, start):
    Y = linked_counts(4)
    right, _ = solve_refined(Y)
    monkeypatch.setattr(refined, "_start", lambda rates: np.linspace(-start, start, len(rates)) / 3)
    assert solve_refined(Y)[0] == pytest.approx(right, abs=1e-9)


def test_every_damped_step_increases_the_likelihood():
    Y = linked_counts(8, m=7, mean=0.5)
    pairs = refined._DensePairs(Y)
    b = np.linspace(-3, 3, 7)
    for _ in range(15):
        residual, laplacian = pairs.evaluate(b)
        step = solve(laplacian, residual)
        if np.abs(step).max() < 1e-8:
            break
        following = b - refined._damping(step) * step
        assert log_likelihood(Y, following) > log_likelihood(Y, b)
        b = following


def test_sparse_counts_give_the_estimate_of_dense_ones():
    Y = linked_counts(3, m=40, mean=0.3)
    sparse, dense = solve_refined(csr_array(Y))[0], solve_refined(Y)[0]
    assert sparse == pytest.approx(dense, abs=1e-9)
    laplacian = curvature(csr_array(Y), dense)
    assert invert(laplacian) == pytest.approx(invert(curvature(Y, dense)), abs=1e-9)


def test_not_converging_is_an_error_with_a_name(monkeypatch):
    monkeypatch.setattr(refined, "NEWTON_ROUNDS", 1)
    with refused(NotConverged, "newton_method_pairwise_likelihood"):
        solve_refined(linked_counts(2))


def test_difficulties_forty_logits_apart_are_found():
    b = np.array([-20.0, -19.0, 0.0, 19.0, 20.0])
    Y = 1e9 / (1 + np.exp(b[:, None] - b[None, :]))
    np.fill_diagonal(Y, 0)
    assert solve_refined(Y)[0] == pytest.approx(b, abs=1e-6)


def test_the_pseudo_inverse_is_that_of_the_laplacian():
    weights = np.random.default_rng(0).random((7, 7))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    full = np.diag(weights.sum(axis=1)) - weights
    assert invert(build_laplacian(weights)) == pytest.approx(np.linalg.pinv(full), abs=1e-10)


def test_links_too_uneven_for_double_precision_are_an_error_with_a_name():
    weights = np.diag([1e20, 1e-20, 1e20], 1)
    with refused(NotConverged, "links_between_items_too"):
        factorise(build_laplacian(-(weights + weights.T)))


@given(st.integers(0, 10_000))
def test_a_persons_weight_is_close_to_one_over_the_answers(answered):
    (weight,) = PersonWeight()(np.array([answered]), np.array([0]))
    assert weight >= 1
    if 0 < answered <= 1000:
        assert weight * answered / 27_720 == pytest.approx(1, abs=0.02)
