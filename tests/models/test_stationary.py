from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, diags_array

from discreet.errors import DisconnectedItems, NotConverged
from discreet.models import laplacian, spectral
from discreet.models.connectivity import build_chain
from discreet.models.laplacian import Hierarchy
from discreet.models.spectral import (
    iterate_jump_chain,
    solve_by_elimination,
    solve_in_band,
    solve_stationary,
)
from discreet.results.estimate import Solution
from refusals import refused


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
    monkeypatch.setattr(spectral, "PLAIN_LIMIT", 20)
    monkeypatch.setattr(spectral, "PANEL", 7)
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
    monkeypatch.setattr(spectral, "SPARSE_ROUNDS", 50)
    Y = two_forms(np.random.default_rng(1), 60, bridge=1)
    log_weights, solution = solve_stationary(csr_array(Y))
    assert solution.solver.startswith("elimination")
    assert np.abs(log_weights - solve_by_elimination(Y)[0]).max() < 1e-14


def sparse_counts(rng, persons, m, answers, window):
    """Pair counts of persons who each answer a few items near each other."""
    from discreet.answers.pack import build_rows
    from discreet.counts.pairs import count_compressed

    first = rng.integers(0, m - window + 1, (persons, 1))
    item = first + np.argsort(rng.random((persons, window)), axis=1)[:, :answers]
    b, ability = rng.normal(size=m), rng.normal(size=(persons, 1))
    right = rng.random(item.shape) < 1 / (1 + np.exp(b[item] - ability))
    person = np.repeat(np.arange(persons), answers)
    rows = build_rows(person, item.ravel(), right.ravel(), persons, m)
    counts = SimpleNamespace(
        items=tuple(map(str, range(m))),
        right_wrong=count_compressed(rows, None, 10**9),
        persons=persons,
    )
    counts.answers, counts.right = rows.item_totals()
    return build_chain(counts).rates


def two_sparse_forms(rng, m, bridge):
    """Two forms of a thousand and more items, each well linked, joined by a few persons."""
    halves = [sparse_counts(rng, 4000, m // 2, 20, m // 2) for _ in range(2)]
    size = halves[0].shape[0]
    Y = block_diag(halves, format="lil")
    for _ in range(bridge):
        Y[rng.integers(size), rng.integers(size, Y.shape[0])] += 1
        Y[rng.integers(size, Y.shape[0]), rng.integers(size)] += 1
    return csr_array(Y)


@pytest.fixture(scope="module")
def slow_chain():
    return two_sparse_forms(np.random.default_rng(0), 800, bridge=2)


@pytest.mark.parametrize(("persons", "answers", "window"), [(4000, 15, 40), (3000, 8, 20)])
def test_items_compared_with_near_ones_only_are_eliminated_in_a_band(persons, answers, window):
    Y = sparse_counts(np.random.default_rng(1), persons, 1000, answers, window)
    log_weights, solution = solve_in_band(Y)
    assert "band" in solution.solver
    assert np.abs(log_weights - solve_by_elimination(Y.toarray())[0]).max() < 1e-10


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 10**6))
def test_elimination_in_a_band_is_elimination(m, width, seed):
    rng = np.random.default_rng(seed)
    near = np.abs(np.arange(m)[:, None] - np.arange(m)) <= width
    Y = rng.poisson(1.0, size=(m, m)) * near * 1.0
    step = np.arange(m - 1)
    Y[step, step + 1] += 1
    Y[step + 1, step] += 1
    order = rng.permutation(m)
    Y = Y[np.ix_(order, order)]
    log_weights, _ = solve_in_band(csr_array(Y))
    assert log_weights == pytest.approx(solve_by_elimination(Y)[0], abs=1e-11)


def test_a_band_of_far_apart_weights_does_not_leave_the_range_of_doubles():
    b = np.linspace(-2000, 2000, 4001)
    Y = diags_array([np.full(4000, np.exp(0.5)), np.full(4000, np.exp(-0.5))], offsets=[1, -1])
    log_weights, _ = solve_in_band(csr_array(Y))
    assert np.abs(log_weights - b).max() < 1e-7


def test_no_band_is_built_where_no_order_is_narrow(monkeypatch):
    monkeypatch.setattr(spectral, "BAND_STEPS", 1e4)
    assert solve_in_band(csr_array(np.ones((60, 60)))) is None


def test_slow_forms_without_a_narrow_order_are_corrected_to_the_answer(slow_chain, monkeypatch):
    monkeypatch.setattr(spectral, "SMALL_SPARSE", 10)
    monkeypatch.setattr(spectral, "BAND_STEPS", 1.0)
    monkeypatch.setattr(laplacian, "COARSEST", 20)
    log_weights, solution = solve_stationary(slow_chain)
    assert solution.solver.startswith("corrections")
    assert 0 < solution.residual < 1e-7
    assert np.abs(log_weights - solve_by_elimination(slow_chain.toarray())[0]).max() < 1e-7


def test_a_slow_chain_that_cannot_be_solved_is_an_error_with_a_name(slow_chain, monkeypatch):
    monkeypatch.setattr(spectral, "SMALL_SPARSE", 10)
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 10)
    monkeypatch.setattr(spectral, "BAND_STEPS", 1.0)
    monkeypatch.setattr(spectral, "CORRECTIONS", 2)
    with refused(NotConverged, "after_rounds_over_items"):
        solve_stationary(slow_chain)


def test_groups_follow_the_strong_links_and_leave_the_weak_ones_for_last(monkeypatch):
    monkeypatch.setattr(laplacian, "COARSEST", 2)
    weights = np.zeros((40, 40))
    for form in (slice(0, 20), slice(20, 40)):
        weights[form, form] = np.random.default_rng(0).random((20, 20)) + 1
    weights[3, 30] = 1e-6
    upper = csr_array(np.triu(weights, 1))
    groups = Hierarchy(upper)
    assert groups.sizes[0] == 40
    assert groups.sizes[-1] == 2
    # A difference between the forms is what the weak link makes expensive, and exactly so.
    rhs = np.repeat([1.0, -1.0], 20)
    found = groups.apply(rhs)
    assert found[0] - found[-1] == pytest.approx(20 / 1e-6, rel=1e-3)


@pytest.mark.parametrize(
    "Y", [np.zeros((3, 3)), np.array([[0, 1], [0, 0]]), np.zeros((1, 1)), np.eye(4)]
)
def test_an_unlinked_chain_has_no_stationary_vector(Y):
    with refused(DisconnectedItems, "chain_over_items_not"):
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


@pytest.mark.parametrize("gap", [2e-7, 1e-4, 0.05])
def test_corrected_starts_that_end_apart_are_not_accepted(slow_chain, monkeypatch, gap):
    """Plant corrections that end a little apart: only elimination can then vouch for an answer."""
    for name, value in (("SMALL_SPARSE", 10), ("BAND_STEPS", 1.0), ("SPARSE_ROUNDS", 4)):
        monkeypatch.setattr(spectral, name, value)
    exact = solve_by_elimination(slow_chain.toarray())[0]
    wrong = exact + np.linspace(-gap, gap, len(exact))
    monkeypatch.setattr(
        spectral, "correct_from_two_starts", lambda *_: (wrong, Solution("planted", 1, gap))
    )
    found, solution = solve_stationary(slow_chain)
    assert solution.solver.startswith("elimination")
    assert np.abs(found - exact).max() < 1e-9
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 10)
    with refused(NotConverged, "after_rounds_over_items"):
        solve_stationary(slow_chain)


def test_corrected_starts_that_agree_are_accepted(slow_chain, monkeypatch):
    for name, value in (("SMALL_SPARSE", 10), ("BAND_STEPS", 1.0), ("SPARSE_ROUNDS", 4)):
        monkeypatch.setattr(spectral, name, value)
    planted = np.zeros(slow_chain.shape[0]), Solution("planted", 1, 9e-8)
    monkeypatch.setattr(spectral, "correct_from_two_starts", lambda *_: planted)
    assert solve_stationary(slow_chain)[1].solver == "planted"
