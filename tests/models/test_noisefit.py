"""The noise-aware fit: limits, invariances, calibration, both kinds of release."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadUsage
from discreet.models.noisy import (
    TRIDIAGONAL_ITEMS,
    LinearView,
    laplacian,
    mean_variance,
    posterior_spread,
    solve_posterior,
    tanh_differences,
)
from discreet.models.noisy.disagreements import (
    PairLayout,
    denoise_disagreements,
    disagreement_probability,
    keep_eigenvectors,
)
from discreet.models.noisy.margins import MarginsNoise, fit_margins
from discreet.models.noisy.pairs import fit_noisy_pairs
from discreet.models.noisy.released import estimate_release
from discreet.privacy.mechanisms import mechanisms_for
from refusals import refused


def simulate(persons, items, rng, answered=1.0):
    """Difficulties, totals, disagreements and pair counts of simulated answers, weight 1/r."""
    difficulty = rng.uniform(-2, 2, items)
    difficulty -= difficulty.mean()
    chance = 1 / (1 + np.exp(difficulty - rng.normal(size=(persons, 1))))
    right = rng.random((persons, items)) < chance
    seen = rng.random((persons, items)) < answered
    weight = 1 / np.maximum(seen.sum(axis=1), 1)
    counts = (right & seen).T.astype(float) @ (~right & seen)
    weighted = ((right & seen) * weight[:, None]).T @ (~right & seen)
    return difficulty, weighted, counts


def margins_of(weighted):
    return weighted.sum(axis=1) - weighted.sum(axis=0), weighted + weighted.T


def solve_refined(weighted):
    """The refined estimate by plain Newton steps: the non-private reference."""
    total, both = margins_of(weighted)
    m = len(total)
    difficulty = np.zeros(m)
    for _ in range(50):
        tanh = tanh_differences(difficulty)
        weight = both * (1 - tanh**2) / 2
        laplacian = np.diag(weight.sum(axis=1)) - weight + 1 / m
        difficulty = difficulty - np.linalg.solve(laplacian, total - (both * tanh).sum(axis=1))
    return difficulty - difficulty.mean()


def noisy(weighted, sigma_total, sigma_disagreement, rng):
    total, both = margins_of(weighted)
    m = len(total)
    upper = np.triu(sigma_disagreement * rng.standard_normal((m, m)), 1)
    return total + sigma_total * rng.standard_normal(m), both + upper + upper.T


def rmse(estimate, truth):
    return float(np.sqrt(np.mean((estimate - truth) ** 2)))


@pytest.mark.parametrize(("items", "answered"), [(3, 1.0), (20, 1.0), (30, 0.4)])
def test_without_noise_the_fit_is_the_refined_estimate(items, answered):
    rng = np.random.default_rng(items)
    _, weighted, _ = simulate(2000, items, rng, answered)
    noise = MarginsNoise(1e-3, 1e-3, np.sqrt(items) / 2, 2000, items)
    fit = fit_margins(*margins_of(weighted), noise=noise)
    assert fit.difficulty == pytest.approx(solve_refined(weighted), abs=2e-3)


@pytest.mark.parametrize("persons", [1000, None])
@pytest.mark.parametrize("items", [2, 3, 12, 40])
def test_when_noise_drowns_everything_the_answer_is_zero_with_wide_intervals(items, persons):
    rng = np.random.default_rng(5)
    noise = MarginsNoise(1e6, 1e5, np.sqrt(items) / 2, persons, items)
    fit = fit_margins(*noisy(np.zeros((items, items)), 1e6, 1e5, rng), noise=noise)
    assert np.abs(fit.difficulty).max() < 0.25
    assert np.all(fit.se > 0.6)
    assert np.all(fit.se < 3)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.floats(-2, 4), st.integers(2, 9))
def test_the_fit_is_finite_centred_and_has_a_covariance_at_any_noise(seed, power, items):
    rng = np.random.default_rng(seed)
    _, weighted, _ = simulate(200, items, rng)
    sigma = 10.0**power
    noise = MarginsNoise(sigma, sigma / 2, np.sqrt(items) / 2, 200, items)
    fit = fit_margins(*noisy(weighted, sigma, sigma / 2, rng), noise=noise)
    assert np.all(np.isfinite(fit.difficulty))
    assert fit.difficulty.mean() == pytest.approx(0, abs=1e-9)
    assert np.linalg.eigvalsh(fit.covariance).min() > -1e-9
    assert np.all(np.isfinite(fit.se))
    assert np.all(fit.se > 0)


def test_the_order_of_the_items_does_not_matter():
    rng = np.random.default_rng(3)
    _, weighted, _ = simulate(800, 15, rng)
    total, both = noisy(weighted, 5.0, 1.0, rng)
    order = rng.permutation(15)
    noise = MarginsNoise(5.0, 1.0, 2.0, 800, 15)
    first = fit_margins(total, both, noise=noise)
    second = fit_margins(total[order], both[np.ix_(order, order)], noise=noise)
    assert second.difficulty == pytest.approx(first.difficulty[order], abs=1e-6)


def test_the_same_release_gives_the_same_intervals():
    rng = np.random.default_rng(4)
    _, weighted, _ = simulate(500, 10, rng)
    total, both = noisy(weighted, 5.0, 1.0, rng)
    noise = MarginsNoise(5.0, 1.0, 1.5, 500, 10)
    first, second = (fit_margins(total, both, noise=noise) for _ in range(2))
    assert np.array_equal(first.se, second.se)


def test_intervals_cover_at_a_moderate_budget():
    rng = np.random.default_rng(6)
    covered, errors = [], []
    for _ in range(12):
        truth, weighted, _ = simulate(1000, 30, rng)
        noise = MarginsNoise(17.0, 5.0, np.sqrt(30) / 2, 1000, 30)
        fit = fit_margins(*noisy(weighted, 17.0, 5.0, rng), noise=noise)
        covered.append(np.abs(fit.difficulty - truth) < 1.96 * fit.se)
        errors.append(rmse(fit.difficulty, truth))
    assert 0.90 < np.mean(covered) < 0.99
    assert np.mean(errors) < 0.2


def test_a_public_design_helps_where_pairs_were_never_offered_together():
    rng = np.random.default_rng(8)
    items, persons = 40, 4000
    difficulty = rng.uniform(-2, 2, items)
    difficulty -= difficulty.mean()
    block = np.arange(items) % 4
    shift = rng.integers(4, size=persons)[:, None]
    seen = (block == shift) | (block == (shift + 1) % 4)
    right = rng.random((persons, items)) < 1 / (
        1 + np.exp(difficulty - rng.normal(size=(persons, 1)))
    )
    weighted = (right & seen).T.astype(float) @ (~right & seen) / 20
    gap = np.abs(block[:, None] - block)
    design = np.select([gap == 0, gap % 2 == 1], [2.0, 1.0], 0.0)
    noise = MarginsNoise(60.0, 20.0, np.sqrt(20) / 2, persons, 20)
    pair = [[], []]
    for _ in range(4):
        total, both = noisy(weighted, 60.0, 20.0, rng)
        for known, errors in zip((None, design), pair, strict=True):
            fit = fit_margins(total, both, noise=noise, design=known)
            errors.append(rmse(fit.difficulty, difficulty))
    assert np.mean(pair[1]) < np.mean(pair[0])


def test_raw_disagreements_win_where_the_model_is_wrong_and_the_signal_strong():
    truth = np.array([[0, 5, 90.0], [5, 0, 80], [90, 80, 0]])
    layout = PairLayout(1.0 - np.eye(3), sigma=2.0, ceiling=None)
    found = denoise_disagreements(truth, np.zeros(3), layout)
    assert found.values == pytest.approx(truth, abs=4)
    drowned = denoise_disagreements(truth, np.zeros(3), PairLayout(1.0 - np.eye(3), 500.0, None))
    assert np.ptp(drowned.values[np.triu_indices(3, 1)]) < 5


def test_disagreement_probabilities_are_those_of_the_rasch_model():
    rng = np.random.default_rng(2)
    difficulty = np.array([-1.0, 0.5, 2.0])
    chance = 1 / (1 + np.exp(difficulty - rng.normal(0.3, 1.5, size=(400_000, 1))))
    right = rng.random(chance.shape) < chance
    differ = np.mean(right[:, :, None] != right[:, None, :], axis=0)
    assert disagreement_probability(difficulty, 0.3, 1.5) == pytest.approx(differ, abs=3e-3)


def test_denoised_disagreements_stay_below_what_the_persons_can_make():
    rng = np.random.default_rng(9)
    upper = np.triu(1e4 * rng.standard_normal((20, 20)), 1)
    found = denoise_disagreements(
        upper + upper.T, rng.normal(size=20), PairLayout(1.0 - np.eye(20), 1e4, ceiling=1000.0)
    )
    assert found.values.sum() / 2 <= 1000.0 + 1e-6
    assert found.values.min() >= 0


def test_the_posterior_shrinks_to_the_prior_without_data():
    posterior = solve_posterior(LinearView(np.zeros((4, 4)), np.zeros(4)))
    assert np.array_equal(posterior.mean, np.zeros(4))
    assert 0.5 < posterior.spread < 2


def test_noisy_pairs_without_noise_are_the_refined_estimate():
    rng = np.random.default_rng(10)
    _, _, counts = simulate(3000, 12, rng)
    fit = fit_noisy_pairs(counts, variance=1e-4, persons=3000)
    assert fit.difficulty == pytest.approx(solve_refined(counts), abs=0.02)


def test_noisy_pairs_beat_all_zero_where_clipping_would_not():
    rng = np.random.default_rng(11)
    errors = []
    for _ in range(4):
        truth, _, counts = simulate(1000, 40, rng)
        noise = 90.0 * rng.standard_normal((40, 40))
        fit = fit_noisy_pairs(counts + noise, variance=8100.0, persons=1000)
        errors.append(rmse(fit.difficulty, truth) / rmse(0 * truth, truth))
    assert np.mean(errors) < 0.3


def test_pairs_on_a_graph_use_only_its_edges():
    rng = np.random.default_rng(12)
    truth, _, counts = simulate(4000, 25, rng)
    mask = np.triu(rng.random((25, 25)) < 0.3, 1) | np.eye(25, k=1, dtype=bool)
    mask = mask | mask.T
    observed = np.where(mask, counts + 5 * rng.standard_normal(counts.shape), 1e9)
    fit = fit_noisy_pairs(observed, variance=25.0, mask=mask, persons=4000)
    assert rmse(fit.difficulty, truth) < 0.2


def test_matrices_of_the_wrong_shape_are_refused():
    noise = MarginsNoise(1.0, 1.0, 1.0, 10, 3)
    with refused(BadUsage, "matrix_expected_items_found", m="3", m_2="3"):
        fit_margins(np.zeros(3), np.zeros((4, 4)), noise=noise)
    with refused(BadUsage, "matrix_expected_items_found", m="3", m_2="3", m_3="3", shape="3 x 4"):
        fit_noisy_pairs(np.zeros((3, 4)), variance=1.0)


@pytest.mark.parametrize(("mechanism", "seed"), [("pairs", 18), ("margins", 5)])
def test_the_fit_never_feeds_on_noise_alone(mechanism, seed):
    """These releases ended 28% and 51% above the all-zero error before runaway fits were caught."""
    import discreet
    from discreet.privacy.noise import ExactNoise
    from discreet.secure import SeededSource

    sim = discreet.simulate(persons=200, items=200, rng=np.random.default_rng(seed))
    made = discreet.release(
        sim.responses,
        discreet.Budget(0.1, 1e-4),
        items=sim.responses.items,
        mechanism=mechanism,
        noise=ExactNoise(SeededSource(seed)),
    )
    miss = np.linalg.norm(made.estimate.difficulty - sim.difficulty)
    assert miss < 1.02 * np.linalg.norm(sim.difficulty)


# --- without standard errors ----------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", sorted(mechanisms_for("answers")))
def test_difficulties_are_the_same_bit_for_bit_without_standard_errors(mechanism):
    import discreet
    from discreet.privacy.mechanisms.response import RandomizedResponse
    from discreet.privacy.noise import ExactNoise
    from discreet.secure import SeededSource

    sim = discreet.simulate(persons=300, items=14, rng=np.random.default_rng(1))
    shown = RandomizedResponse(public_pattern=True)
    made = discreet.release(
        sim.responses,
        discreet.Budget(2.0, 0 if mechanism.startswith("laplace") else 1e-4),
        items=sim.responses.items,
        mechanism=shown if mechanism == shown.name else mechanism,
        noise=ExactNoise(SeededSource(1)),
    )
    bare = estimate_release(made.noisy, standard_errors=False)
    assert np.array_equal(bare.difficulty, made.estimate.difficulty)
    assert np.isfinite(made.estimate.se).all()
    assert np.isnan(bare.se).all()
    assert bare.covariance is None
    assert made.estimate.covariance is not None


# --- the cheaper linear algebra is the same algebra -----------------------------------------------


def random_view(m, size, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.exponential(size, (m, m)), 1)
    precision = laplacian(weights + weights.T)
    truth = rng.normal(size=m)
    error = np.linalg.cholesky(precision + 1e-9 * np.eye(m) * size) @ rng.normal(size=m)
    return LinearView(precision, precision @ truth + error - error.mean())


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3, 2e4])
def test_the_spread_without_eigenvectors_is_that_of_the_posterior(size):
    view = random_view(TRIDIAGONAL_ITEMS + 3, size, seed=1)
    assert posterior_spread(view) == pytest.approx(solve_posterior(view).spread, rel=1e-7)


def test_the_spread_survives_counts_beyond_the_precision_of_floats():
    view = random_view(TRIDIAGONAL_ITEMS, 1e16, seed=2)
    assert posterior_spread(view) == pytest.approx(solve_posterior(view).spread, rel=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("m", [2, 3, 40])
def test_the_mean_variance_is_that_of_the_eigenvalues(m, size):
    view = random_view(m, size, seed=3)
    values = np.maximum(np.linalg.eigvalsh(view.precision)[1:], 0.0)
    expected = np.mean(1 / (values + 1 / 0.9**2))
    assert mean_variance(view, 0.9) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("signs", [(), (1,), (-1,), (1, -1)])
def test_eigenvectors_are_kept_on_the_side_where_they_stand_out(signs):
    rng = np.random.default_rng(4)
    m, edge = 40, 2 * np.sqrt(40)
    upper = np.triu(rng.standard_normal((m, m)), 1)
    noise = 0.2 * (upper + upper.T)
    patterns = np.linalg.qr(rng.standard_normal((m, 2)))[0]
    signal = sum(
        (s * 4 * edge * np.outer(v, v) for s, v in zip(signs, patterns.T, strict=False)), 0 * noise
    )
    kept, freedom = keep_eigenvectors(noise + signal - np.diag(np.diag(signal)), 1.0)
    assert freedom == pytest.approx(0.7 * m * len(signs))
    off = ~np.eye(m, dtype=bool)
    assert np.linalg.norm((kept - signal)[off]) <= 0.3 * np.linalg.norm(signal[off])
