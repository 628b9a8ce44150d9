import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.api.calibrating import fit
from discreet.models import paper
from discreet.models.spectral import SpectralScoring, balance, solve_stationary


def answers(seed, n=60, m=5, given=1.0):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=m)
    X = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(float)
    X[rng.random((n, m)) > given] = np.nan
    return X


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_estimate_is_that_of_the_printed_algorithm_where_it_converges(seed, share):
    X = answers(seed, given=share)
    printed = paper.estimate(X)
    assert fit(X, method="spectral").difficulty == pytest.approx(printed, abs=1e-10)


def test_the_printed_counts_are_those_of_the_equation():
    X = answers(3, n=20, given=0.7)
    Y = paper.count_differential_measurements(X)
    for i in range(5):
        for j in range(5):
            persons = [row for row in X if i != j and row[i] == 1 and row[j] == 0]
            assert Y[i, j] == len(persons)


@settings(max_examples=40, deadline=None)
@given(
    persons=st.integers(40, 80),
    items=st.integers(2, 6),
    share=st.sampled_from([0.6, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_the_engine_agrees_with_the_printed_algorithm_on_any_answers(persons, items, share, seed):
    X = answers(seed, persons, items, share)
    Y = paper.count_differential_measurements(X)
    assume(((Y + np.eye(items)) > 0).all())
    printed = paper.estimate(X, tolerance=1e-16)
    assert fit(X, method="spectral").difficulty == pytest.approx(printed, abs=1e-9)


def test_each_step_of_the_printed_algorithm_is_the_same():
    X = answers(9, given=0.7)
    Y, d = paper.count_differential_measurements(X), paper.bound_row_sums(X)
    M = paper.build_markov_chain(Y, d)
    assert M.min() >= 0
    assert M.sum(axis=1) == pytest.approx(np.ones(5))
    difficulty, _ = solve_stationary(Y)
    pi = np.exp(difficulty) / np.exp(difficulty).sum()
    assert pi @ M == pytest.approx(pi, abs=1e-14)
    assert solve_stationary(Y / d)[0] == pytest.approx(difficulty, abs=1e-13), "d cancels"


def test_a_thousand_printed_rounds_are_far_from_the_answer_on_badly_linked_forms():
    X = np.full((2406, 8), np.nan)
    X[:1200, :4] = answers(1, 1200, 4)
    X[1200:2400, 4:] = answers(2, 1200, 4)
    X[2400:2405, [0, 4]] = [1, 0]
    X[2405, [0, 4]] = [0, 1]
    printed = paper.estimate(X, rounds=1000, tolerance=1e-5)
    exact = fit(X, method="spectral").difficulty
    assert np.abs(printed - exact).max() > 0.2
    # The two forms differ by the log odds of the six persons who link them.
    assert exact[4] - exact[0] == pytest.approx(np.log(5), abs=1e-12)


def test_the_laplacian_is_the_derivative_of_the_balance_equations():
    rng = np.random.default_rng(0)
    b = rng.normal(size=6)
    symmetric = rng.random((6, 6))
    Y = (symmetric + symmetric.T) * np.exp(-b)[:, None]
    np.fill_diagonal(Y, 0)

    def net_flow(b):
        flow = np.exp(b - b.max())[:, None] * Y
        return flow.sum(axis=1) - flow.sum(axis=0)

    def derivative(k):
        step = np.zeros(6)
        step[k] = 1e-6
        top = b.max()
        flow = [np.exp(b + s - top)[:, None] * Y for s in (step, -step)]
        return (flow[0].sum(1) - flow[0].sum(0) - flow[1].sum(1) + flow[1].sum(0)) / 2e-6

    assert net_flow(b) == pytest.approx(np.zeros(6), abs=1e-12)
    laplacian = balance(Y, b)
    for k in range(6):
        assert laplacian.apply(np.eye(6)[k]) == pytest.approx(derivative(k), abs=1e-7)


def test_scores_use_the_difficulty_of_the_right_item_only():
    scoring = SpectralScoring(top=1.0)
    flow = scoring.residual(np.array([[1.0], [0.0]]), np.array([[5.0, -5.0]]))
    assert flow == pytest.approx(np.array([[1.0, 1.0], [np.exp(-1), np.exp(-1)]]))
