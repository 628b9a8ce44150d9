"""The small formulas behind guarantees and rankings, each held against its definition.

Larger tests reach these too, but only through results in which a wrong digit hides.
"""

import math
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.api.ranks import rank
from discreet.privacy import noise
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting import additive_noise as moves
from discreet.privacy.accounting.additive_noise import search_scale
from discreet.privacy.accounting.amplification import (
    GraphSensitivity,
    _Curve,
    calibrate_local,
    graph_bound,
)
from discreet.privacy.accounting.spend import (
    STORED_BITS,
    GaussianBound,
    Spend,
    gaussian_delta,
    round_up,
)
from discreet.privacy.mechanisms import pairs as graphs
from discreet.privacy.mechanisms.comparisons import NetWins
from discreet.privacy.mechanisms.margins import Margins, _upper_hull
from discreet.privacy.mechanisms.pairs import cut_bound
from discreet.privacy.protocol import ComparedPublic, NoiseLaw, Public
from discreet.results.estimate import Estimate, Solution, Status, two_sided_quantile
from discreet.scales.linking import _robust_centre
from discreet.secure import SeededSource
from reference_accounting import bound_rounded_move, shuffled_epsilon_closed_form


def test_the_coarser_bound_of_a_move_adds_up_over_the_coordinates_that_move():
    bound = bound_rounded_move([3, 0, -2], [Fraction(5), Fraction(7), Fraction(11)])
    assert bound.mu_squared == Fraction(9, 25) + Fraction(4, 121)
    assert bound.eta == Fraction(3, 50) + Fraction(2, 242)
    assert bound.exponent == Fraction(1, 24 * 25) + Fraction(1, 24 * 121)
    assert bound.extra_delta == 0


@pytest.mark.parametrize("kernel", ["KERNEL", "UNIT_KERNEL"])
def test_the_error_of_the_kernel_is_what_its_variance_leaves(kernel):
    variance = float(getattr(moves, f"{kernel}_VARIANCE"))
    left = 5 * mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(str(variance)))
    assert left <= float(getattr(moves, f"{kernel}_ERROR")) < 15 * left


@pytest.mark.parametrize("moved", [2, 3, 51, 52, 400])
def test_a_sum_of_discrete_gaussians_is_one_up_to_the_published_error(moved):
    rate = -2 * mpmath.pi**2 * 4
    true = 10 * mpmath.fsum(mpmath.exp(rate * k / (k + 1)) for k in range(1, moved))
    bound = moves._sum_error(moved, Fraction(2))
    assert true <= bound
    # Beyond 50 terms the rest is counted at its largest, e^(rate 51/52).
    assert bound <= true * (1 + 1e-6) + 10 * moved * mpmath.exp(rate * 51 / 52) * (moved > 51)


@pytest.mark.parametrize("numerator", range(1, 40))
def test_a_scale_that_was_searched_for_keeps_the_promise_and_lies_on_the_grid(numerator):
    edge = Fraction(numerator * 7, 3)
    found = search_scale(lambda scale: scale >= edge, "p", smallest=Fraction(7, 3), bits=6)
    assert edge <= found <= max(edge, Fraction(7, 3)) * (1 + Fraction(1, 2**5))
    assert found == Fraction(7, 3) or found == round_up(found, 6)


@pytest.mark.parametrize(("sigma", "epsilon"), [(3, 0.2), (10, 1.0), (40, 4.0), (200, 0.01)])
def test_the_curve_for_random_graphs_bends_where_the_gaussian_curve_stops_being_convex(
    sigma, epsilon
):
    curve = _Curve(GraphSensitivity(1000, 2, Fraction(1, 2)), Fraction(sigma), epsilon)
    assert curve.epsilon < epsilon  # what rounding may cost is taken from epsilon, never added

    def delta(v):
        mu = mpmath.sqrt(v)
        tails = mpmath.ncdf(mu / 2 - curve.epsilon / mu), mpmath.ncdf(-mu / 2 - curve.epsilon / mu)
        return tails[0] - mpmath.exp(curve.epsilon) * tails[1]

    with mpmath.workdps(50):
        bend = mpmath.mpf(curve.bend)
        assert mpmath.diff(delta, bend * 0.999, 2) > 0 > mpmath.diff(delta, bend * 1.001, 2)
        slope = float(mpmath.diff(delta, bend))
        assert slope <= curve.slope <= slope * (1 + 2e-6)
    assert curve.at_bend == pytest.approx(gaussian_delta(math.sqrt(curve.bend), curve.epsilon))


def test_without_epsilon_the_curve_for_random_graphs_is_straight_from_the_start():
    assert _Curve(GraphSensitivity(10, 1, Fraction(1, 2)), Fraction(50), 0.0).bend == 0


@pytest.mark.parametrize("sigma", [2, 3, 30])
def test_the_curve_for_random_graphs_lies_at_no_number_of_moves_below_that_of_counts(sigma):
    curve = _Curve(GraphSensitivity(100, 2, Fraction(1, 2)), Fraction(sigma), 1.0)
    for moved in range(1, 201):
        of_counts = moves.counts_bound(moved, Fraction(sigma)).mu_squared
        assert moved * curve.per_count + curve.base >= of_counts
    one = moves.counts_bound(1, Fraction(sigma)).mu_squared
    assert curve.per_count + curve.base == one


@pytest.mark.parametrize("probability", [Fraction(1, 4), Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("m", [2, 3, 7, 12])
def test_the_bound_for_connected_graphs_of_many_items_is_one_for_few_too(
    m, probability, monkeypatch
):
    exact = graphs._connect_exactly(m, probability)
    monkeypatch.setattr(graphs, "EXACT_ITEMS", 0)
    bound = graphs.connection_probability(m, probability)
    assert bound <= exact
    if probability > Fraction(1, 2) and m > 3:
        # Two sets without an edge to the others at once are rare here.
        assert 1 - bound == pytest.approx(float(1 - exact), rel=0.05)


def test_a_spend_is_stored_rounded_up_and_short():
    third = Fraction(1, 3)
    parts = GaussianBound(third, third / 7, third / 11, third / 13)
    spend = Spend("noise", Neighbours.REPLACE_ONE, 1.0, 1e-6, parts, rho=third)
    stored = spend.bound
    for name in ("mu_squared", "eta", "exponent", "extra_delta"):
        assert getattr(stored, name) == round_up(getattr(parts, name), STORED_BITS)
    assert spend.rho == round_up(third, STORED_BITS) > third


def test_one_edge_is_all_that_counts_where_two_are_too_rare():
    rare = GraphSensitivity(5, 1, Fraction(1, 10**9))
    bound = graph_bound(rare, Fraction(10), Fraction(1, 10**9))
    assert bound.mu_squared == moves.counts_bound(1, Fraction(10)).mu_squared


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12))
def test_the_hull_of_moves_holds_the_best_for_every_weighting_and_nothing_else(points):
    hull = _upper_hull(*np.array(points).T)
    assert set(hull) <= set(points)
    # Slopes between two points of the square, and between those slopes.
    weights = [(a, b) for a in range(1, 62) for b in range(1, 62)]
    best = {weight: max(weight[0] * t + weight[1] * d for t, d in points) for weight in weights}
    for (a, b), value in best.items():
        assert max(a * t + b * d for t, d in hull) == value
    for t, d in hull:
        assert any(a * t + b * d == value for (a, b), value in best.items())


def largest_cut(edges, m, most):
    """Try every pattern of right, wrong and not answered with at most ``most`` answers."""
    patterns = (p for p in product((-1, 0, 1), repeat=m) if sum(x >= 0 for x in p) <= most)
    return max(sum({p[i], p[j]} == {0, 1} for i, j in edges) for p in patterns)


@pytest.mark.parametrize("most", [2, 4, 6])
def test_the_cut_of_two_joined_triangles_is_found(most):
    edges = [*combinations(range(3), 2), *combinations(range(3, 6), 2), (2, 3)]
    assert cut_bound(np.array(edges), 6, most) == largest_cut(edges, 6, most)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_the_variance_of_discrete_laplace_noise_is_the_sum_over_its_values(scale):
    mass = [math.exp(-abs(k) / scale) for k in range(-2000, 2001)]
    true = sum(p * k * k for p, k in zip(mass, range(-2000, 2001), strict=True)) / sum(mass)
    assert NoiseLaw("laplace", scale).variance == pytest.approx(true)
    assert NoiseLaw("gaussian", scale).variance == pytest.approx(float(scale) ** 2)


def test_candidates_for_gaussian_noise_are_kept_with_the_exact_ratio(monkeypatch):
    asked = []

    def coins(digits, exact, source):
        asked.append([exact(at) for at in range(len(digits))])
        return np.ones(len(digits), dtype=bool)

    monkeypatch.setattr(noise, "exponential_coins", coins)
    blocks = np.array([0, 2], dtype=np.uint8)
    above = np.array([3, 5], dtype=np.uint64)
    noise._keep_gaussian(noise._Candidates(blocks, above, above, 7), None)
    first, second = asked
    assert [Fraction(*ratio) for ratio in first] == [Fraction(9, 98), Fraction(25, 98)]
    assert [Fraction(*ratio) for ratio in second] == [Fraction(5, 7)] * 2


def test_shuffling_claims_nothing_beyond_the_reach_of_the_closed_form():
    persons, delta = 10**6, 1e-6
    reach = math.log(persons / (16 * math.log(2 / delta)))
    assert shuffled_epsilon_closed_form(reach * 1.0001, persons, delta) == reach * 1.0001
    local = reach * 0.9999
    clones = 8 * math.sqrt(math.exp(local) * math.log(4 / delta) / persons)
    clones += 8 * math.exp(local) / persons
    claimed = math.log1p(math.tanh(local / 2) * clones)
    assert shuffled_epsilon_closed_form(local, persons, delta) == pytest.approx(claimed)
    assert claimed < local


def plain_estimate(difficulty, se):
    m = len(difficulty)
    return Estimate(
        items=tuple(map(str, range(m))),
        difficulty=np.array(difficulty, dtype=float),
        se=np.array(se, dtype=float),
        status=(Status.ESTIMATED,) * m,
        method="refined",
        solution=Solution("none", 0, 0.0),
    )


def test_two_items_without_a_covariance_are_compared_at_the_plain_quantile():
    ranking = rank(plain_estimate([1.0, -1.0], [0.3, 0.3]), top=1)
    assert ranking.quantile == pytest.approx(two_sided_quantile(0.05))


def test_without_a_covariance_differences_are_widened_for_the_mean_that_was_taken_out():
    # m difficulties x_i - mean with independent x_i: var(x_i - x_j) = 2 s^2, and the variance
    # that each difficulty shows is s^2 (m - 1) / m.
    m, spread = 4, 0.5
    shown = spread * math.sqrt((m - 1) / m)
    ranking = rank(plain_estimate([3.0, 1.0, -1.0, -3.0], [shown] * m), top=1)
    half = (ranking.gap_interval[1] - ranking.gap_interval[0]) / 2
    assert half == pytest.approx(ranking.quantile * spread * math.sqrt(2))
    assert ranking.quantile == pytest.approx(two_sided_quantile(0.05 / 6))


def test_the_robust_scatter_of_a_link_is_corrected_for_few_items():
    # Deviations from the median 2 are 2, 1, 0, 1, 8, and their median is 1.
    middle, scatter = _robust_centre(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), np.zeros(5))
    assert middle == 2.0
    assert scatter == pytest.approx(1.4826 * 5 / 4.2)
    # The errors of the two calibrations explain a part of it.
    _, beyond = _robust_centre(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), np.full(5, 0.5))
    assert beyond == pytest.approx(math.sqrt(scatter**2 - 0.5))


def test_a_single_answer_gets_the_whole_epsilon_of_its_row():
    share, spend = calibrate_local(1, Budget(1.0, delta=0))
    assert 1 - Fraction(1, 1000) < share <= 1
    assert spend.epsilon == 1.0


@pytest.mark.parametrize("mechanism", [NetWins(), Margins()])
def test_the_rounding_of_every_released_number_is_paid_for(mechanism):
    items = tuple(map(str, range(12)))
    kind = ComparedPublic if isinstance(mechanism, NetWins) else Public
    public = kind(items, 5, Neighbours.REPLACE_ONE, 100)
    spend = mechanism.calibrate(public, Budget(1.0, 1e-6), SeededSource(1)).spend
    # One total an item, and one number a pair of them.
    assert spend.bound.exponent >= (12 + 66) * moves.KERNEL_ERROR
    assert spend.bound.eta >= 2 * (12 + 66) * moves.KERNEL_ERROR
