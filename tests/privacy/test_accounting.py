"""Accounting against independent computations: brute force, mpmath, dp-accounting, OpenDP."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadBudget
from discreet.privacy.accounting import NO_LEDGER, Budget, Guarantee, Neighbours
from discreet.privacy.accounting.additive_noise import (
    blocks_spend,
    bound_sensitivity,
    calibrate_counts,
    calibrate_laplace,
    calibrate_scale,
    counts_bound,
    counts_delta,
    counts_spend,
    laplace_spend,
    pure_mu_squared,
    pure_spend,
    sensitivity_rho,
)
from discreet.privacy.accounting.amplification import (
    calibrate_local,
    largest_local_epsilon,
    shuffled_delta,
)
from discreet.privacy.accounting.spend import (
    BasicAllowance,
    GaussianAllowance,
    GaussianBound,
    Spend,
    compose_guarantees,
    float_down,
    float_up,
    gaussian_delta,
    gaussian_epsilon,
    grid_step,
    largest_mu,
    round_up,
    sqrt_up,
)
from reference_accounting import (
    bound_rounded_move,
    largest_rho,
    rho_delta,
    rho_epsilon,
    shuffled_epsilon,
    shuffled_epsilon_closed_form,
)
from refusals import refused

LONG = np.longdouble

# ---------------------------------------------------------------- independent computations


def noise_pmf(sigma: Fraction, reach: float = 14.0) -> np.ndarray:
    """Discrete Gaussian on -r..r in extended precision, normalised by its own sum."""
    half = int(reach * float(sigma)) + 2
    x = np.arange(-half, half + 1).astype(LONG)
    square = LONG(sigma.numerator) ** 2 / LONG(sigma.denominator) ** 2
    p = np.exp(-x * x / (2 * square))
    return p / p.sum()


def power_of(pmf: np.ndarray, times: int) -> np.ndarray:
    """Convolve a symmetric pmf with itself; positive sums keep relative accuracy in the tails."""
    result = np.ones(1, dtype=LONG)
    while times:
        if times & 1:
            result = without_dust(np.convolve(result, pmf))
        times >>= 1
        if times:
            pmf = without_dust(np.convolve(pmf, pmf))
    return result


def without_dust(pmf: np.ndarray) -> np.ndarray:
    """Cut a symmetric pmf where it is below 1e-45."""
    ends = int(np.argmax(pmf > 1e-45))
    return pmf[ends : len(pmf) - ends]


def brute_counts_delta(moved: int, sigma: Fraction, epsilon: float) -> float:
    """Delta from the true law of the sum of `moved` noises against its shift."""
    p = power_of(noise_pmf(sigma), moved)
    first = np.concatenate([p, np.zeros(moved, dtype=LONG)])
    second = np.concatenate([np.zeros(moved, dtype=LONG), p])
    return float(np.maximum(first - np.exp(LONG(epsilon)) * second, 0).sum())


def lattice_counts_delta(moved: int, sigma: Fraction, epsilon: float) -> float:
    """The same from one discrete Gaussian of the summed variance, where brute force is too big."""
    square = LONG(sigma.numerator) ** 2 / LONG(sigma.denominator) ** 2
    variance = moved * square
    low = int(LONG(epsilon) * square - LONG(moved) / 2) - 2
    low = max(low, -int(12 * float(variance) ** 0.5))
    high = int(math.sqrt(max(low, 0) ** 2 + 144 * float(variance)))
    total = LONG(0)
    for start in range(low, high, 1 << 18):  # in pieces, for memory
        s = np.arange(start, min(start + (1 << 18), high)).astype(LONG)
        p = np.exp(-s * s / (2 * variance))
        q = np.exp(-((s + moved) ** 2) / (2 * variance) + LONG(epsilon))
        total += np.maximum(p - q, 0).sum()
    return float(total / np.sqrt(2 * LONG(np.pi) * variance))


def brute_move_delta(move: list[int], sigmas: list[Fraction], epsilon: float) -> float:
    """Delta of a general move, from the joint law of all coordinates."""
    first = np.ones(1, dtype=LONG)
    second = np.ones(1, dtype=LONG)
    for a, sigma in zip(move, sigmas, strict=True):
        p = noise_pmf(sigma, reach=12)
        pad = np.zeros(abs(a), dtype=LONG)
        first = np.multiply.outer(first, np.concatenate([p, pad])).ravel()
        second = np.multiply.outer(second, np.concatenate([pad, p])).ravel()
    return float(np.maximum(first - np.exp(LONG(epsilon)) * second, 0).sum())


def precise_gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        return tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)


# ---------------------------------------------------------------- budgets and guarantees


@pytest.mark.parametrize(
    ("epsilon", "code"),
    [
        *((value, "must_finite_number_above") for value in (0, -1, math.nan, math.inf, -math.inf)),
        *((value, "must_least_found_below") for value in (1e-320, 9e-10)),
        *((value, "must_number_above_found") for value in ("much", None)),
    ],
)
def test_an_epsilon_that_means_nothing_is_refused(epsilon, code):
    with refused(BadBudget, code, name="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, math.inf, 1e-250, "small"])
def test_a_delta_that_means_nothing_is_refused(delta):
    code = "delta_must_number_below" if delta == "small" else "delta_must_lie_between"
    with refused(BadBudget, code):
        Budget(1.0, delta)


def test_an_unknown_relation_is_refused_with_the_known_ones():
    with refused(BadBudget, "neighbours_must_one_found", choices="'replace-one', 'add-remove'"):
        Budget(1.0, 1e-6, "same")


def test_a_budget_may_hold_delta_zero_but_gaussian_calibration_refuses_it():
    pure = Budget(1.0, 0)
    calibrate_laplace(12, pure)
    for calibrate in (
        lambda: calibrate_counts(12, pure),
        lambda: calibrate_scale(lambda s: counts_bound(12, s), pure),
        lambda: calibrate_local(12, pure, shuffled_persons=1000),
        lambda: GaussianAllowance(pure),
    ):
        with pytest.raises(BadBudget) as caught:
            calibrate()
        assert caught.value.code in ("delta_no_pure_guarantee", "shuffling_amplifies_delta_between")


def test_a_guarantee_survives_json_and_says_what_it_is():
    spend = pure_spend(1.0, Neighbours.REPLACE_ONE, mechanism="laplace-pairs")
    guarantee = spend.guarantee(is_private=True, conditions=("given the pattern",))
    plain = json.loads(json.dumps(guarantee.to_dict()))
    assert Guarantee.from_dict(plain) == guarantee
    assert plain["unit"] == "one person's whole set of answers"
    assert plain["neighbours"] == "replace-one"
    assert plain["ledger"] is None
    assert plain["ledger_note"] == NO_LEDGER
    assert "not private" not in plain["noise"]
    with refused(BadBudget, "not_guarantee_version_writes"):
        Guarantee.from_dict({**plain, "surprise": 1})


def test_a_seeded_source_is_called_not_private_and_a_file_cannot_say_otherwise():
    spend = pure_spend(1.0, Neighbours.REPLACE_ONE, mechanism="m")
    plain = spend.guarantee(is_private=False, ledger="abc").to_dict()
    assert "not private" in plain["noise"]
    forged = Guarantee.from_dict({**plain, "noise": "private, really"})
    assert "not private" in forged.noise
    assert "abc" in forged.ledger_note


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 2), st.floats(0.05, 2))
def test_numbers_from_two_releases_have_both_guarantees_together(seed, first, second):
    """Two random pairs of laws, and the product of them: what a person in both has."""
    rng = np.random.default_rng(seed)
    pairs = [rng.dirichlet(np.full(5, 0.7), size=2) for _ in range(2)]

    def delta(laws, epsilon):
        return np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum()

    releases = [
        Guarantee(epsilon, delta(laws, epsilon), 0.1, Neighbours.REPLACE_ONE, "pairs")
        for laws, epsilon in zip(pairs, (first, second), strict=True)
    ]
    both = compose_guarantees(*releases)
    together = [np.outer(*sides).ravel() for sides in zip(*pairs, strict=True)]
    assert delta(together, both.epsilon) <= both.delta * (1 + 1e-12) + 1e-15
    assert both.rho >= 0.2


def test_where_one_side_is_no_release_there_is_no_guarantee():
    one = pure_spend(1.0, Neighbours.REPLACE_ONE, mechanism="m").guarantee(is_private=True)
    seeded = replace(one, is_private=False, ledger="abc", rho=None, conditions=("given",))
    assert compose_guarantees(one, None) is None
    assert compose_guarantees(None, one) is None
    assert compose_guarantees(one, replace(one, unit="one judge")) is None
    assert compose_guarantees(one, replace(one, neighbours=Neighbours.ADD_REMOVE)) is None
    both = compose_guarantees(one, seeded)
    assert (both.is_private, both.ledger, both.rho) == (False, None, None)
    assert both.conditions == ("given",)


def test_a_spend_survives_json_exactly_and_is_rounded_up_only():
    sigma, spend = calibrate_counts(5000, Budget(0.7, 1e-6, "add-remove"))
    assert Spend.from_dict(json.loads(json.dumps(spend.to_dict()))) == spend
    exact = counts_bound(5000, sigma)
    assert exact.mu_squared <= spend.bound.mu_squared <= exact.mu_squared * (1 + Fraction(1, 2**59))
    assert spend.rho >= Fraction(5000) / (2 * sigma**2)
    assert spend.neighbours is Neighbours.ADD_REMOVE


def test_a_negative_spend_is_refused():
    with refused(BadBudget, "spend_cannot_negative_would"):
        Spend("m", Neighbours.REPLACE_ONE, 1.0, 1e-6, GaussianBound(Fraction(-1)))


# ---------------------------------------------------------------- rounding


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30), st.integers(1, 60))
def test_rounding_goes_the_promised_way(value, bits):
    assert Fraction(float_down(value)) <= value <= Fraction(float_up(value))
    assert Fraction(sqrt_up(value)) ** 2 >= value
    rounded = round_up(value, bits)
    assert value <= rounded <= value * (1 + Fraction(1, 2**bits))
    assert 2**bits <= value / grid_step(value, bits) < 2 ** (bits + 1)
    assert round_up(rounded, bits) == rounded


# ---------------------------------------------------------------- the Gaussian curve


def test_the_gaussian_curve_is_an_upper_bound_and_tight_against_mpmath():
    rng = np.random.default_rng(1)
    for _ in range(400):
        epsilon = 10 ** rng.uniform(-3, 2)
        delta = 10 ** rng.uniform(-150, -0.5)
        mu = largest_mu(epsilon, delta) * rng.uniform(0.5, 1.5)
        exact = precise_gaussian_delta(mu, epsilon)
        computed = gaussian_delta(mu, epsilon)
        assert computed >= exact
        assert computed <= exact * (1 + (1e-6 if exact > 1e-15 else 1e-3)) + 1.1e-300


def test_the_gaussian_curve_holds_at_negative_epsilon_and_at_the_ends():
    for mu, epsilon in [(0.5, -0.3), (2.0, -1.0), (0.01, -1e-4), (5.0, 0.0)]:
        exact = precise_gaussian_delta(mu, epsilon)
        assert exact <= gaussian_delta(mu, epsilon) <= exact * 1.000001
    assert gaussian_delta(100.0, 1.0) == 1.0
    assert 0 < gaussian_delta(0.01, 50.0) <= 1e-290
    assert gaussian_delta(0.0, 1.0) <= 1e-300


def test_epsilon_and_delta_of_the_gaussian_curve_invert_each_other():
    for epsilon, delta in product([0.01, 0.5, 1, 8], [1e-10, 1e-6, 1e-3]):
        mu = largest_mu(epsilon, delta)
        assert gaussian_delta(mu, epsilon) <= delta
        assert gaussian_delta(mu * (1 + 1e-9), epsilon) > delta
        assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_epsilon(1e-5, 0.1) == 0.0
    assert GaussianBound(Fraction(1), extra_delta=Fraction(1, 10)).epsilon(0.05) == math.inf


# ---------------------------------------------------------------- counts that move by one


@pytest.mark.parametrize(
    ("epsilon", "delta", "bun_steinke", "conversion", "exact"),
    [
        (1, 1e-4, 4.405, 3.508, 3.186),
        (0.1, 1e-6, 52.66, 39.46, 36.30),
        (10, 1e-4, 0.525, 0.486, 0.455),
        (0.01, 1e-4, 429, 204, 172.6),
    ],
)
def test_the_table_of_scales_is_reproduced(epsilon, delta, bun_steinke, conversion, exact):
    moved = 10_000  # large enough that sigma >= 2 does not bind
    sigma, _ = calibrate_counts(moved, Budget(epsilon, delta), bits=16)
    assert float(sigma) / 100 == pytest.approx(exact, rel=5e-4 if epsilon == 10 else 2e-4, abs=5e-4)
    rho = largest_rho(epsilon, delta)
    assert (2 * rho) ** -0.5 == pytest.approx(conversion, rel=1e-3)
    # Bun and Steinke: epsilon = rho + 2 sqrt(rho ln(1/delta)); not in the library.
    log = math.log(1 / delta)
    loose = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    assert (2 * loose) ** -0.5 == pytest.approx(bun_steinke, rel=1e-3)


def test_the_published_calibration_at_epsilon_ten_is_refused():
    # epsilon / sqrt(2 ln(1/delta)) as in the paper: 0.429 sqrt(K), too little above epsilon 7.5.
    moved = 10_000
    sigma = Fraction(math.sqrt(moved) * math.sqrt(2 * math.log(1e4)) / 10)
    with refused(BadBudget, "gives_delta_epsilon_above"):
        counts_spend(moved, sigma, Budget(10, 1e-4), mechanism="pairs")


def test_a_hundred_items_all_answered_need_sigma_225():
    moved = 2 * (100**2 // 4)
    sigma, spend = calibrate_counts(moved, Budget(1.0, 1e-4))
    assert 225 < sigma < 225.5
    assert sigma.denominator <= 64
    assert float(spend.rho) == pytest.approx(0.0493, abs=1e-4)


def test_a_sigma_one_percent_too_small_is_refused():
    budget = Budget(1.0, 1e-4)
    for moved in (1, 12, 5000, 500_000):
        sigma, _ = calibrate_counts(moved, budget)
        if sigma > 2.1:
            with refused(BadBudget, "gives_delta_epsilon_above"):
                counts_spend(moved, sigma * Fraction(99, 100), budget, mechanism="pairs")


def test_a_sigma_below_two_and_no_moved_count_are_refused():
    with refused(BadBudget, "sigma_must_least_found", smallest_sigma="2"):
        counts_delta(4, Fraction(199, 100), 1.0)
    with refused(BadBudget, "least_one_count_must"):
        calibrate_counts(0, Budget(1.0))


def test_few_counts_at_a_large_epsilon_get_the_smallest_sigma():
    sigma, spend = calibrate_counts(1, Budget(10.0, 1e-4))
    assert sigma == 2
    assert counts_delta(1, sigma, 10.0) <= spend.delta


def test_counts_delta_is_exact_against_brute_force_convolution():
    rng = np.random.default_rng(2)
    for _ in range(60):
        moved = int(rng.integers(1, 40))
        sigma = Fraction(int(rng.integers(16, 64)), 8)
        epsilon = float(rng.uniform(0.05, 6))
        exact = brute_counts_delta(moved, sigma, epsilon)
        computed = counts_delta(moved, sigma, epsilon)
        assert exact <= computed
        if exact > 1e-30:
            assert computed <= exact * (1 + 1e-8) + 1e-14 * math.exp(-epsilon)


def test_the_bound_for_large_counts_stays_above_the_lattice_sum_and_close(monkeypatch):
    from discreet.privacy.accounting import additive_noise

    cases = [(5000, Fraction(226), 1.0), (12, Fraction(11), 1.0), (300, Fraction(5), 4.0)]
    cases += [(40, Fraction(3), 0.1), (2000, Fraction(1000), 0.2), (7, Fraction(5, 2), 3.0)]
    for moved, sigma, epsilon in cases:
        exact = lattice_counts_delta(moved, sigma, epsilon)
        with monkeypatch.context() as patch:
            patch.setattr(additive_noise, "LARGEST_SUMMED", 0.0)
            bound = counts_delta(moved, sigma, epsilon)
        assert exact <= bound <= exact * (1 + 20 / (float(sigma) * math.sqrt(moved)))


def never_optimistic(cases: int, seed: int, widest: float, most: float) -> int:
    """Calibrate random budgets and hold each sigma against an independent delta."""
    rng = np.random.default_rng(seed)
    convolved = 0
    for _ in range(cases):
        moved = int(np.ceil(10 ** rng.uniform(0, most)))
        epsilon, delta = float(10 ** rng.uniform(-1.3, 1)), float(10 ** rng.uniform(-12, -2))
        sigma, spend = calibrate_counts(moved, Budget(epsilon, delta))
        if float(sigma) * math.sqrt(moved) <= widest:
            exact = brute_counts_delta(moved, sigma, epsilon)
            convolved += 1
        else:
            exact = lattice_counts_delta(moved, sigma, epsilon)
        assert exact <= delta
        assert exact <= spend.bound.delta(epsilon)
        assert exact <= rho_delta(float_up(spend.rho), epsilon)
    return convolved


def test_calibration_is_never_optimistic_on_a_small_grid():
    assert never_optimistic(60, seed=3, widest=30, most=2) > 5


@pytest.mark.slow
def test_calibration_is_never_optimistic_on_a_thousand_parameter_sets():
    assert never_optimistic(1000, seed=4, widest=150, most=3.5) > 100


# ---------------------------------------------------------------- general moves


def random_move(rng) -> tuple[list[int], list[Fraction], float]:
    size = int(rng.integers(1, 4))
    move = [int(a) for a in rng.integers(-4, 5, size)]
    if not any(move):
        move[0] = 1
    sigmas = [Fraction(int(n), 4) for n in rng.integers(8, 17, size)]
    return move, sigmas, float(rng.uniform(0, 5))


def check_general_bounds(cases: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        move, sigmas, epsilon = random_move(rng)
        exact = brute_move_delta(move, sigmas, epsilon) - 1e-28  # what cutting the tails adds
        blocks = [(a * a, sigma) for a, sigma in zip(move, sigmas, strict=True)]
        assert exact <= bound_sensitivity([blocks], coordinates=len(move)).delta(epsilon)
        assert exact <= bound_rounded_move(move, sigmas).delta(epsilon)


def test_both_general_bounds_hold_against_brute_force():
    check_general_bounds(60, seed=5)


@pytest.mark.slow
def test_both_general_bounds_hold_against_brute_force_on_many_cases():
    check_general_bounds(600, seed=6)


def test_without_the_kernel_variance_or_the_rounding_slack_the_bounds_would_be_wrong():
    # The planted fault: the plain Gaussian curve is below the truth at some epsilon.
    move, sigmas = [1], [Fraction(2)]
    plain = GaussianBound(Fraction(1, 4))
    grid = np.linspace(0.0, 3.0, 121)
    below = [e for e in grid if brute_move_delta(move, sigmas, e) > plain.delta(e)]
    assert below
    for epsilon in grid:
        exact = brute_move_delta(move, sigmas, epsilon)
        assert exact <= bound_sensitivity([[(1, Fraction(2))]], coordinates=1).delta(epsilon)
        assert exact <= counts_bound(1, Fraction(2)).delta(epsilon)


def test_the_kernel_bound_is_far_tighter_than_the_rounding_bound():
    sigma = Fraction(226)
    kernel = bound_sensitivity([[(5000, sigma)]], coordinates=9900).epsilon(1e-4)
    rounding = bound_rounded_move([1] * 5000, [sigma] * 5000).epsilon(1e-4)
    exact = gaussian_epsilon(float(Fraction(5000) / sigma**2) ** 0.5, 1e-4)
    assert kernel / exact - 1 < 1e-4
    assert rounding / exact - 1 > 1e-2


def test_a_scale_for_extreme_moves_keeps_the_worst_of_them():
    budget = Budget(1.0, 1e-6)

    def moves(scale):
        return [[(40, scale), (0, scale / 2)], [(0, scale), (15, scale / 2)]]

    def bound_at(scale):
        return bound_sensitivity(moves(scale), coordinates=100)

    scale = calibrate_scale(bound_at, budget, smallest=Fraction(4))
    assert bound_at(scale).delta(1.0) <= 1e-6
    assert bound_at(scale * Fraction(999, 1000)).delta(1.0) > 1e-6
    # the second move has 15 * 4 = 60 at the same scale, more than the first's 40
    assert float(scale) == pytest.approx(math.sqrt(60) / largest_mu(1.0, 1e-6), rel=1e-2)
    rho = sensitivity_rho(moves(scale))
    assert rho == Fraction(60) / (2 * scale**2)
    spend = blocks_spend(bound_at(scale), rho=rho, budget=budget, mechanism="margins")
    assert (spend.epsilon, spend.delta) == (1.0, 1e-6)
    smaller = bound_at(scale * Fraction(99, 100))
    with refused(BadBudget, "gives_delta_epsilon_above"):
        blocks_spend(smaller, rho=rho, budget=budget, mechanism="margins")


def test_a_bound_that_never_falls_and_a_small_sigma_are_refused():
    with refused(BadBudget, "no_scale_keeps_bound"):
        calibrate_scale(lambda scale: GaussianBound(Fraction(10)), Budget(1.0))
    with refused(BadBudget, "sigma_must_least_found_bound", smallest_sigma="2"):
        bound_sensitivity([[(1, Fraction(1))]], coordinates=1)
    with refused(BadBudget, "sigma_must_least_found_bound", smallest_sigma="2"):
        bound_rounded_move([1], [Fraction(1)])


def test_a_scale_of_a_fine_grid_costs_nothing_and_stays_short():
    squared = 40 * 2**40
    scale = calibrate_scale(
        lambda s: bound_sensitivity([[(squared, s)]], coordinates=10**6), Budget(1.0)
    )
    ideal = math.sqrt(squared) / largest_mu(1.0, 1e-6)
    assert 1 <= float(scale) / ideal <= 1 + 2**-11
    assert scale.denominator == 1


# ---------------------------------------------------------------- other libraries


@pytest.mark.parametrize(
    ("moved", "sigma", "epsilon"), [(1, 4, 0.5), (12, 11, 1.0), (40, 15, 2.0), (6, 3, 4.0)]
)
def test_dp_accounting_agrees(moved, sigma, epsilon):
    from dp_accounting.pld import privacy_loss_distribution as pld

    def build(pessimistic):
        one = pld.from_discrete_gaussian_mechanism(
            sigma,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-4,
            use_connect_dots=pessimistic,
        )
        return one.self_compose(moved).get_delta_for_epsilon(epsilon)

    ours = counts_delta(moved, Fraction(sigma), epsilon)
    assert ours == pytest.approx(build(True), rel=2e-3)
    assert ours >= build(False) * (1 - 1e-9)


def test_a_history_composes_to_what_dp_accounting_finds():
    from dp_accounting.pld import privacy_loss_distribution as pld

    sigmas = [20, 30, 40]
    spends = [
        Spend("m", Neighbours.REPLACE_ONE, 5.0, 1e-6, counts_bound(12, Fraction(sigma)))
        for sigma in sigmas
    ]
    parts = [
        pld.from_discrete_gaussian_mechanism(sigma, use_connect_dots=True).self_compose(12)
        for sigma in sigmas
    ]
    oracle = parts[0].compose(parts[1]).compose(parts[2]).get_epsilon_for_delta(1e-6)
    ours = GaussianAllowance(Budget(5.0, 1e-6)).spent(spends)
    assert ours == pytest.approx(oracle, rel=2e-3)


def test_opendp_converts_rho_alike():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    for sigma, delta in [(3.508, 1e-4), (39.46, 1e-6), (0.486, 1e-4), (2.0, 1e-9)]:
        noise = dp.m.make_gaussian(*space, scale=sigma)
        profile = dp.c.make_zCDP_to_approxDP(noise).map(1)
        rho = noise.map(1)
        assert rho_epsilon(rho, delta) == pytest.approx(profile.epsilon(delta), rel=1e-5)


# ---------------------------------------------------------------- zero-concentrated privacy


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 20), st.floats(1e-12, 0.1))
def test_the_conversion_inverts_and_is_looser_than_the_exact_curve(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert rho_epsilon(rho, delta) <= epsilon
    assert rho_epsilon(rho * 1.001, delta) > epsilon
    assert rho_delta(rho, epsilon) == pytest.approx(delta, rel=1e-3)
    assert math.sqrt(2 * rho) <= largest_mu(epsilon, delta) * (1 + 1e-9)


def test_the_conversion_refuses_delta_zero():
    with pytest.raises(BadBudget, match="delta"):
        rho_epsilon(0.1, 0.0)
    assert rho_epsilon(0.0, 1e-6) == 0.0


# ---------------------------------------------------------------- pure epsilon


@settings(max_examples=60)
@given(st.integers(1, 10**7), st.floats(1e-3, 50))
def test_laplace_scales_keep_epsilon_exactly_and_barely(l1, epsilon):
    scale, spend = calibrate_laplace(l1, Budget(epsilon, 0))
    assert Fraction(l1) / scale <= Fraction(epsilon)
    assert Fraction(l1) / scale >= Fraction(epsilon) * (1 - Fraction(1, 4096))
    assert spend.is_pure
    with refused(BadBudget, "laplace_scale_sensitivity_not"):
        laplace_spend(l1, scale * Fraction(99, 100), Budget(epsilon, 0), mechanism="m")


def test_the_gaussian_curve_of_a_pure_release_dominates_it():
    for epsilon in (0.01, 0.3, 1.0, 4.0, 20.0):
        bound = GaussianBound(pure_mu_squared(epsilon))
        growth = math.exp(epsilon)
        for at in np.linspace(0, epsilon, 21):
            # delta of the worst epsilon-private pair, randomized response
            exact = max(0.0, (growth - math.exp(at)) / (1 + growth))
            assert exact <= bound.delta(float(at))
        # tight at 0: both curves give the total variation of the same coin
        assert bound.delta(0.0) == pytest.approx((growth - 1) / (1 + growth), rel=1e-6)


def test_answers_share_epsilon_by_the_public_cap():
    share, spend = calibrate_local(10, Budget(1.0, 0))
    assert 10 * share <= Fraction(1)
    assert float(share) == pytest.approx(0.1, rel=1e-6)
    assert share.denominator < 2**30
    assert (spend.epsilon, spend.delta, float(spend.rho)) == (1.0, 0.0, 0.5)


def test_randomized_response_refuses_add_remove_and_an_empty_cap():
    with refused(BadBudget, "randomized_response_protects_under"):
        calibrate_local(10, Budget(1.0, 0, "add-remove"))
    with refused(BadBudget, "cap_answers_must_least"):
        calibrate_local(0, Budget(1.0, 0))


# ---------------------------------------------------------------- shuffling


def histogram_law(rows: list[dict[tuple[int, ...], float]]) -> Counter:
    """Exact law of the multiset of reports, for a few persons."""
    law: Counter = Counter({(): 1.0})
    for row in rows:
        following: Counter = Counter()
        for seen, chance in law.items():
            for report, probability in row.items():
                following[tuple(sorted((*seen, report)))] += chance * probability
        law = following
    return law


def response_row(truth: tuple[int, ...], share: float) -> dict[tuple[int, ...], float]:
    lie = 1 / (1 + math.exp(share))
    return {
        report: math.prod(1 - lie if a == b else lie for a, b in zip(truth, report, strict=True))
        for report in product((0, 1), repeat=len(truth))
    }


@pytest.mark.parametrize("answers", [1, 2])
def test_the_shuffle_bound_holds_on_every_small_data_set(answers):
    persons, local = 5, 1.0
    share = local / answers
    rows = {truth: response_row(truth, share) for truth in product((0, 1), repeat=answers)}
    truths = list(rows)
    others_choices = [[t] * (persons - 1) for t in truths] + [
        [truths[i % len(truths)] for i in range(persons - 1)]
    ]
    tightest = math.inf
    for others, first, second in product(others_choices, truths, truths):
        rest = [rows[t] for t in others]
        p = histogram_law([rows[first], *rest])
        q = histogram_law([rows[second], *rest])
        for epsilon in (0.0, 0.2, 0.5, 0.9):
            exact = sum(max(0.0, p[x] - math.exp(epsilon) * q[x]) for x in p)
            bound = shuffled_delta(local, persons, epsilon, lost=1e-9)
            assert exact <= bound
            if exact > 0:
                tightest = min(tightest, bound / exact)
    assert tightest < 3  # the bound is about something


def clone_delta(local: float, persons: int, epsilon: float) -> mpmath.mpf:
    """The clone pair by definition, in high precision."""
    with mpmath.workdps(40):
        chance = mpmath.exp(-mpmath.mpf(local))
        p = 1 / (1 + chance)
        growth = mpmath.exp(mpmath.mpf(epsilon))
        total = mpmath.mpf(0)
        for c in range(persons):
            weight = mpmath.binomial(persons - 1, c) * chance**c * (1 - chance) ** (persons - 1 - c)
            half = [mpmath.binomial(c, a) / mpmath.mpf(2) ** c for a in range(c + 1)]
            inside = mpmath.mpf(0)
            for a in range(c + 2):
                before = half[a - 1] if a >= 1 else 0
                here = half[a] if a <= c else 0
                gap = p * before + (1 - p) * here - growth * ((1 - p) * before + p * here)
                inside += max(gap, 0)
            total += weight * inside
        return total


@pytest.mark.parametrize(
    ("local", "persons", "epsilon"),
    [(0.5, 40, 0.1), (1.0, 60, 0.3), (3.0, 60, 1.0), (2.0, 1, 0.5), (0.1, 30, 0.0)],
)
def test_the_clone_pair_is_evaluated_correctly(local, persons, epsilon):
    exact = clone_delta(local, persons, epsilon)
    computed = shuffled_delta(local, persons, epsilon, lost=1e-14)
    assert exact <= computed <= exact * 1.00001 + 1e-13


def test_the_tails_that_shuffling_needs_are_accurate_for_many_persons():
    from discreet.privacy.accounting.amplification import BETAINC_ERROR, _half_tail

    for count in (1000, 100_000, 3_000_000):
        for deviations in (0.0, 2.0, 6.0):
            least = int(count / 2 + deviations * math.sqrt(count) / 2)
            with mpmath.workdps(40):
                term = mpmath.binomial(count, least) / mpmath.mpf(2) ** count
                total, k = mpmath.mpf(0), least
                while term > total * mpmath.mpf("1e-25") and k <= count:
                    total += term
                    term = term * (count - k) / (k + 1)
                    k += 1
            computed = _half_tail(np.array([float(count)]), np.array([float(least)]))[0]
            assert abs(computed / total - 1) < BETAINC_ERROR / 10


def test_clone_weights_are_upper_bounds_and_accurate():
    from discreet.privacy.accounting.amplification import binomial_weights, binomial_window

    persons, local = 100_000, 1.3
    low, high = binomial_window(persons - 1, math.exp(-local), 1e-12)
    weights = binomial_weights(persons - 1, 1 / math.expm1(local), low, high)
    with mpmath.workdps(40):
        chance = mpmath.exp(-mpmath.mpf(local))
        for c in (low, (low + high) // 2, high, low + 1000):
            exact = mpmath.binomial(persons - 1, c) * chance**c
            exact *= (1 - chance) ** (persons - 1 - c)
            assert abs(weights[c - low] / exact - 1) < 1e-8


def test_the_numerical_bound_is_three_times_tighter_and_never_worse_than_nothing():
    for local, persons in [(1.0, 10_000), (2.0, 100_000), (0.5, 1000), (4.0, 100), (600.0, 50)]:
        numerical = shuffled_epsilon(local, persons, 1e-6)
        closed = shuffled_epsilon_closed_form(local, persons, 1e-6)
        assert numerical <= closed <= local
        if closed < local:
            assert numerical < closed / 2.5


def test_the_closed_form_has_its_second_term_and_its_condition():
    persons, delta, local = 10_000, 1e-6, 1.0
    growth = math.e
    bracket = 8 * math.sqrt(growth * math.log(4e6)) / 100 + 8 * growth / persons
    expected = math.log(1 + (growth - 1) / (growth + 1) * bracket)
    assert shuffled_epsilon_closed_form(local, persons, delta) == pytest.approx(expected)
    edge = math.log(persons / (16 * math.log(2 / delta)))
    assert shuffled_epsilon_closed_form(edge * 1.001, persons, delta) == edge * 1.001


def test_the_local_epsilon_that_shuffling_allows_is_the_largest():
    for epsilon, persons in [(0.5, 1000), (1.0, 10_000), (1.0, 10), (0.01, 100)]:
        local = largest_local_epsilon(epsilon, persons, 1e-6)
        assert local >= epsilon
        assert shuffled_delta(local, persons, epsilon, lost=1e-10) <= 1e-6
        assert shuffled_delta(local * 1.001, persons, epsilon, lost=1e-10) > 1e-6
    assert largest_local_epsilon(1.0, 10, 1e-6) < 1.01


def test_shuffled_answers_spend_their_delta():
    share, spend = calibrate_local(5, Budget(1.0, 1e-6), shuffled_persons=10_000)
    alone, _ = calibrate_local(5, Budget(1.0, 1e-6))
    assert share > 3 * alone
    assert Fraction(1e-6) <= spend.bound.extra_delta < Fraction(1.001e-6)
    assert spend.rho is None
    with refused(BadBudget, "number_persons_must_least"):
        calibrate_local(5, Budget(1.0, 1e-6), shuffled_persons=0)


# ---------------------------------------------------------------- composition


@cache
def counts_at(epsilon: float, delta: float = 1e-6, moved: int = 500) -> Spend:
    return calibrate_counts(moved, Budget(epsilon, delta))[1]


@pytest.mark.parametrize("limit", [Budget(0.1, 1e-6), Budget(1.0, 1e-4), Budget(10.0, 1e-9)])
@pytest.mark.parametrize("moved", [1, 12, 5000, 500_000])
def test_a_first_release_at_exactly_the_limit_is_accepted_and_a_second_is_not(limit, moved):
    allowance = GaussianAllowance(limit)
    spend = counts_at(limit.epsilon, limit.delta, moved)
    assert allowance.accepts([], spend)
    assert allowance.spent([spend]) <= limit.epsilon
    if moved >= 12:
        assert not allowance.accepts([spend], counts_at(limit.epsilon / 3, limit.delta, moved))


def test_first_releases_of_every_kind_at_exactly_the_limit_are_accepted():
    limit = Budget(1.0, 1e-6)
    allowance = GaussianAllowance(limit)
    _, laplace = calibrate_laplace(12, limit)
    _, shuffled = calibrate_local(5, limit, shuffled_persons=10_000)
    for spend in (laplace, shuffled):
        assert allowance.accepts([], spend)
        assert allowance.spent([spend]) == 1.0
        assert allowance.left([spend]) == 0.0
        assert not allowance.accepts([spend], counts_at(0.01))


def test_a_release_above_the_limit_is_refused_even_first():
    allowance = GaussianAllowance(Budget(1.0, 1e-6))
    assert not allowance.accepts([], counts_at(1.001))
    assert not allowance.accepts([], pure_spend(1.001, Neighbours.REPLACE_ONE, mechanism="m"))


def test_the_caps_reached_together_just_keep_the_limit():
    for limit in (Budget(0.01, 1e-4), Budget(1.0, 1e-6), Budget(10.0, 1e-9)):
        cap = GaussianAllowance(limit).cap
        assert cap.delta(limit.epsilon) <= limit.delta
        assert cap.delta(limit.epsilon) >= limit.delta * (1 - 1e-6)
        slightly_more = GaussianBound(cap.mu_squared * Fraction(1001, 1000), cap.eta, cap.exponent)
        assert slightly_more.delta(limit.epsilon) > limit.delta


def test_gaussian_releases_add_like_squares_and_what_is_left_can_be_spent():
    allowance = GaussianAllowance(Budget(1.0, 1e-6))
    spends: list[Spend] = []
    while allowance.accepts(spends, counts_at(0.2)):
        spends.append(counts_at(0.2))
        assert allowance.spent(spends) <= 1.0
    assert len(spends) == int(largest_mu(1.0, 1e-6) ** 2 / largest_mu(0.2, 1e-6) ** 2)
    half = [counts_at(0.5)]
    left = allowance.left(half)
    assert 0.8 < left < 1.0
    rest = counts_at(left)
    assert allowance.accepts(half, rest)
    assert not allowance.accepts([*half, rest], counts_at(0.05))


def test_an_added_delta_needs_room_that_was_set_aside_in_advance():
    # Trading delta against mu after seeing results is not covered by the proof, so a joint
    # bound that happens to fit must not be enough.
    limit = Budget(2.0, 1e-6)
    small = counts_at(0.01, 1e-6)
    leaky = Spend(
        "m", Neighbours.REPLACE_ONE, 0.01, 1e-8,
        GaussianBound(pure_mu_squared(0.01), extra_delta=Fraction(1, 10**8)),
    )  # fmt: skip
    assert (small.bound + leaky.bound).delta(2.0) < 1e-6
    assert not GaussianAllowance(limit).accepts([small], leaky)
    assert GaussianAllowance(limit, set_aside=1e-7).accepts([small], leaky)
    assert not GaussianAllowance(limit, set_aside=1e-9).accepts([small], leaky)
    with refused(BadBudget, "delta_set_aside_must"):
        GaussianAllowance(limit, set_aside=1e-6)


def test_a_bound_with_a_coarse_slack_does_not_slip_in():
    allowance = GaussianAllowance(Budget(1.0, 1e-6))
    coarse = Spend(
        "m", Neighbours.REPLACE_ONE, 0.1, 1e-6,
        bound_rounded_move([1] * 10, [Fraction(400)] * 10),
    )  # fmt: skip
    assert not allowance.accepts([counts_at(0.1)], coarse)


def test_the_basic_rule_adds_epsilons_exactly():
    allowance = BasicAllowance(Budget(1.0, 1e-6))
    tenth = pure_spend(0.125, Neighbours.REPLACE_ONE, mechanism="m")
    spends = [tenth] * 7
    assert allowance.accepts(spends, tenth)
    assert not allowance.accepts([*spends, tenth], tenth)
    assert allowance.left(spends) == 0.125
    assert allowance.spent([*spends, tenth]) == 1.0
    assert not allowance.accepts([counts_at(0.1)], counts_at(0.1))  # deltas add as well


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.02, 0.9), min_size=1, max_size=6))
def test_accepted_histories_never_exceed_the_limit_and_order_does_not_matter(epsilons):
    limit = Budget(1.0, 1e-6)
    allowance = GaussianAllowance(limit)
    spends: list[Spend] = []
    for epsilon in epsilons:
        spend = counts_at(epsilon)
        if allowance.accepts(spends, spend):
            spends.append(spend)
    assert allowance.spent(spends) <= limit.epsilon
    assert allowance.spent(spends) == pytest.approx(allowance.spent(spends[::-1]))
    grown = [allowance.spent(spends[:k]) for k in range(len(spends) + 1)]
    assert all(a <= b * (1 + 1e-3) for a, b in pairwise(grown))
