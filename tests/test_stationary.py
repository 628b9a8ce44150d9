import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from discreet import stationary
from discreet.errors import DisconnectedItems, NotConverged
from discreet.stationary import iterate_jump_chain, solve_by_elimination, solve_stationary


def two_forms(rng, m, bridge=3, within=500):
    """Counts of two forms joined by a few persons: the chain that misleads other solvers."""
    b, half = rng.normal(size=m), m // 2
    Y = np.zeros((m, m))
    for form in (slice(0, half), slice(half, m)):
        e = np.exp(b[form])
        Y[form, form] = rng.poisson(within * e / (e[:, None] + e))
    np.fill_diagonal(Y, 0)
    for _ in range(bridge):
        Y[rng.integers(half), rng.integers(half, m)] += 1
        Y[rng.integers(half, m), rng.integers(half)] += 1
    return Y


def solve_in_high_precision(Y):
    """Solve the balance equations with 60 digits, by elimination on the Laplacian."""
    m = len(Y)
    with mpmath.workdps(60):
        A = mpmath.matrix(m, m)
        for i in range(m):
            for j in range(m):
                if i != j:
                    A[j, i] = mpmath.mpf(float(Y[i, j]))
            A[i, i] = -mpmath.mpf(float(Y[i].sum()))
        for k in range(m):
            A[m - 1, k] = 1
        rhs = mpmath.matrix(m, 1)
        rhs[m - 1] = 1
        logs = [mpmath.log(x) for x in mpmath.lu_solve(A, rhs)]
        mean = mpmath.fsum(logs) / m
        return np.array([float(x - mean) for x in logs])


def reversible(b, weight):
    """Rates with detailed balance: the stationary vector is exp(b), known exactly."""
    weight = weight + weight.T
    return weight * np.exp((b[None, :] - b[:, None]) / 2)


def test_two_items_have_the_log_of_the_ratio_between_them():
    log_weights, _ = solve_stationary(np.array([[0, 2], [6, 0]]))
    assert log_weights == pytest.approx([np.log(3) / 2, -np.log(3) / 2], abs=1e-15)


@pytest.mark.parametrize("seed", [0, 1])
def test_badly_linked_forms_agree_with_high_precision(seed):
    Y = two_forms(np.random.default_rng(seed), 30, bridge=1)
    assert np.abs(solve_by_elimination(Y)[0] - solve_in_high_precision(Y)).max() < 1e-12


def test_panels_agree_with_high_precision_on_badly_linked_forms(monkeypatch):
    monkeypatch.setattr(stationary, "PLAIN_LIMIT", 20)
    monkeypatch.setattr(stationary, "PANEL", 7)
    Y = two_forms(np.random.default_rng(5), 40, bridge=1)
    log_weights, solution = solve_by_elimination(Y)
    assert "panels" in solution.solver
    assert np.abs(log_weights - solve_in_high_precision(Y)).max() < 1e-12


def test_a_thousand_badly_linked_items_are_solved_to_ten_digits():
    rng = np.random.default_rng(3)
    b = rng.normal(size=1000) * 1.5
    half = np.arange(1000) < 500
    weight = np.where(half[:, None] == half, rng.random((1000, 1000)), 0.0)
    weight[0, 999] = weight[3, 700] = 1e-6
    log_weights, solution = solve_stationary(reversible(b, weight))
    assert "panels" in solution.solver, "the jump chain must not be accepted here"
    assert np.abs(log_weights - (b - b.mean())).max() < 1e-10


def test_the_two_starts_of_the_jump_chain_disagree_on_badly_linked_forms():
    _, solution = iterate_jump_chain(two_forms(np.random.default_rng(0), 600), rounds=100)
    assert solution.residual > 1.0


def test_many_well_linked_items_need_a_few_rounds_and_match_elimination():
    Y = np.random.default_rng(2).poisson(20, size=(600, 600)).astype(float)
    log_weights, solution = solve_stationary(Y)
    assert solution.solver.startswith("jump chain")
    assert solution.iterations < 40
    assert np.abs(log_weights - solve_by_elimination(Y)[0]).max() < 1e-12


@pytest.mark.parametrize("spread", [6, 40, 300, 2000])
def test_difficulties_far_apart_neither_overflow_nor_underflow(spread):
    b = np.linspace(-spread, spread, 60)
    chain = np.diag(np.ones(59), 1)
    step = b[1] - b[0]
    weight = chain * np.exp(step / 2) + chain.T * np.exp(-step / 2)
    log_weights, _ = solve_by_elimination(weight)
    assert np.abs(log_weights - b).max() < 1e-10 * max(1, spread)


def test_sparse_rates_are_solved_like_dense_ones():
    Y = np.random.default_rng(7).poisson(0.3, size=(80, 80))
    np.fill_diagonal(Y, 0)
    Y[np.arange(80), (np.arange(80) + 1) % 80] += 1
    sparse, solution = solve_stationary(csr_array(Y))
    assert solution.solver.startswith("jump chain")
    assert np.abs(sparse - solve_stationary(Y)[0]).max() < 1e-10


def test_sparse_rates_that_mix_slowly_fall_back_to_elimination(monkeypatch):
    monkeypatch.setattr(stationary, "SPARSE_ROUNDS", 50)
    Y = two_forms(np.random.default_rng(1), 60, bridge=1)
    log_weights, solution = solve_stationary(csr_array(Y))
    assert solution.solver.startswith("elimination")
    assert np.abs(log_weights - solve_by_elimination(Y)[0]).max() < 1e-14


def test_a_slow_chain_too_large_to_eliminate_is_an_error_with_a_name(monkeypatch):
    monkeypatch.setattr(stationary, "SPARSE_ROUNDS", 50)
    monkeypatch.setattr(stationary, "DENSE_LIMIT", 10)
    with pytest.raises(NotConverged, match="still differ"):
        solve_stationary(csr_array(two_forms(np.random.default_rng(1), 60, bridge=1)))


@pytest.mark.parametrize(
    "Y", [np.zeros((3, 3)), np.array([[0, 1], [0, 0]]), np.zeros((1, 1)), np.eye(4)]
)
def test_an_unlinked_chain_has_no_stationary_vector(Y):
    with pytest.raises(DisconnectedItems, match="not strongly connected"):
        solve_stationary(Y)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_the_result_balances_the_flow_of_every_item(m, seed):
    rng = np.random.default_rng(seed)
    Y = rng.poisson(1.0, size=(m, m)).astype(float)
    Y[np.arange(m), (np.arange(m) + 1) % m] += 1
    np.fill_diagonal(Y, 0)
    log_weights, _ = solve_stationary(Y)
    flow = np.exp(log_weights)[:, None] * Y
    assert flow.sum(axis=0) == pytest.approx(flow.sum(axis=1), rel=1e-12)
    assert log_weights.mean() == pytest.approx(0, abs=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_the_order_of_items_and_the_scale_do_not_matter(m, seed):
    rng = np.random.default_rng(seed)
    Y = rng.poisson(2.0, size=(m, m)) + (np.roll(np.eye(m), 1, axis=1) > 0)
    order = rng.permutation(m)
    log_weights, _ = solve_stationary(Y)
    moved, _ = solve_stationary(1000.0 * Y[np.ix_(order, order)])
    assert moved == pytest.approx(log_weights[order], abs=1e-12)
