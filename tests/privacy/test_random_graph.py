"""Counts on a random graph: the averaged curve holds for every neighbour and every graph."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadBudget, BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_counts, counts_bound, counts_delta
from discreet.privacy.accounting.amplification import (
    MISSED_SHARE,
    GraphSensitivity,
    _Curve,
    binomial_tail,
    calibrate_graph,
    graph_bound,
    graph_delta,
    graph_epsilon,
    graph_spend,
)
from discreet.privacy.accounting.spend import (
    GaussianAllowance,
    GaussianBound,
    Spend,
    gaussian_delta,
)
from discreet.privacy.mechanisms.pairs import (
    FRESH_GRAPH_CONDITION,
    SparsePairs,
    connection_probability,
    draw_connected_graph,
    graph_sensitivity,
    is_connected,
    round_probability,
)
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource
from refusals import refused

LOST = 1e-14


def public_of(items, cap, relation=Neighbours.REPLACE_ONE):
    persons = 10 if relation is Neighbours.REPLACE_ONE else None
    return Public(tuple(map(str, range(items))), cap, relation, persons)


# --- brute force: every graph, every two neighbours, exact delta --------------------------------


def touched_pairs(items, cap, relation):
    """For every two neighbours, how many counts move on each pair of items; without repeats."""
    first, second = np.triu_indices(items, 1)
    rows = [row for row in product((1, 0, -1), repeat=items) if sum(x >= 0 for x in row) <= cap]
    counts = []
    for row in np.array(rows):
        cells = np.outer(row == 1, row == 0).astype(int)
        counts.append(np.concatenate([cells[first, second], cells[second, first]]))
    counts = np.unique(np.array(counts), axis=0)
    others = counts if relation is Neighbours.REPLACE_ONE else 0 * counts[:1]
    moves = np.abs(counts[:, None] - others[None]).reshape(-1, counts.shape[1])
    return np.unique(moves[:, : len(first)] + moves[:, len(first) :], axis=0)


def connected_graphs(items, chance):
    """Every connected graph as a row of 0 and 1, with its probability given that it is."""
    first, second = np.triu_indices(items, 1)
    graphs, weights = [], []
    for chosen in product((0, 1), repeat=len(first)):
        here = np.array(chosen, dtype=bool)
        if is_connected(np.column_stack([first[here], second[here]]), items):
            graphs.append(chosen)
            weights.append(chance ** sum(chosen) * (1 - chance) ** (len(first) - sum(chosen)))
    return np.array(graphs), np.array(weights) / sum(weights)


def exact_delta(moved, sigma, epsilon):
    """Sum over the lattice with the discrete Gaussian itself: no bound, no idealisation."""
    if moved == 0:
        return 0.0
    reach = math.ceil(14 * sigma)
    noise = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    law = np.ones(1)
    for _ in range(moved):
        law = np.convolve(law, noise / noise.sum())
    pad = np.zeros(moved)
    return float(np.maximum(np.r_[law, pad] - math.exp(epsilon) * np.r_[pad, law], 0).sum())


def worst_average(items, cap, relation, chance, sigma, epsilon):
    """The exact delta of the whole release: the largest over neighbours, averaged over graphs."""
    graphs, weights = connected_graphs(items, chance)
    moved = touched_pairs(items, cap, relation) @ graphs.T
    table = np.array([exact_delta(k, sigma, epsilon) for k in range(moved.max() + 1)])
    return float((table[moved] @ weights).max())


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), [(3, 3), (4, 2), (4, 4), (5, 3), (5, 5)])
@pytest.mark.parametrize(("chance", "epsilon"), [(0.5, 1.0), (0.25, 0.3), (0.75, 3.0)])
def test_the_curve_bounds_the_worst_neighbours_of_all(items, cap, relation, chance, epsilon):
    moves = graph_sensitivity(public_of(items, cap, relation), chance)
    for sigma in (Fraction(2), Fraction(5)):
        exact = worst_average(items, cap, relation, chance, float(sigma), epsilon)
        bound = graph_delta(moves, sigma, epsilon, lost=LOST)
        assert exact <= bound + 1e-40  # the lattice ends at 14 sigma
    assert bound <= 10 * exact or chance == 0.25  # where few graphs are connected


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), [(4, 4), (5, 3), (5, 5)])
def test_calibrated_noise_keeps_its_promise_by_brute_force(items, cap, relation):
    budget = Budget(1.0, 1e-4, relation)
    made = SparsePairs(0.5).calibrate(public_of(items, cap, relation), budget, SeededSource(1))
    sigma = float(made.laws["right_wrong"].scale)
    assert worst_average(items, cap, relation, 0.5, sigma, 1.0) <= 1e-4
    assert worst_average(items, cap, relation, 0.5, 0.85 * sigma, 1.0) > 1e-4


def test_a_graph_chosen_to_suit_the_answers_would_break_the_promise():
    """Why the graph must be fresh: given the worst graph, delta is above what was promised."""
    budget = Budget(1.0, 1e-4)
    made = SparsePairs(0.5).calibrate(public_of(6, 6), budget, SeededSource(1))
    assert counts_delta(18, made.laws["right_wrong"].scale, 1.0) > 2e-4


# --- the steps of the proof -------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 120), st.sampled_from([1, 2]), st.floats(0.05, 8), st.integers(2 * 16, 60 * 16)
)
def test_the_curve_is_convex_and_above_exact_accounting(touched, step, epsilon, sixteenths):
    moves = GraphSensitivity(touched, step, Fraction(1, 2))
    sigma = Fraction(sixteenths, 16)
    curve = _Curve(moves, sigma, epsilon)
    values = np.array([curve.at(k) for k in range(moves.most + 1)])
    assert np.all(np.diff(values) >= 0)
    bent = np.diff(values, 2)
    assert np.all(bent >= -1e-9 * values[2:])
    for moved in {1, touched, moves.most}:
        # 2e-9: counts_delta grants itself a relative rounding error of that order.
        assert counts_delta(moved, sigma, epsilon) <= values[moved] * (1 + 2e-9) + 1e-250


def test_two_single_moves_are_less_dangerous_than_one_double_move():
    """The convex order behind the bound, on every mix of single and double moves."""
    chance, touched = 0.3, 12
    curve = _Curve(GraphSensitivity(touched, 2, Fraction(3, 10)), Fraction(8), 1.0)
    coin = np.array([1 - chance, chance])
    averages = []
    for doubles in range(touched + 1):
        law = np.ones(1)
        for _ in range(doubles):
            law = np.convolve(law, [1 - chance, 0, chance])
        for _ in range(2 * (touched - doubles)):
            law = np.convolve(law, coin)
        averages.append(law @ [curve.at(k) for k in range(len(law))])
    assert np.all(np.diff(averages) > 0)


@pytest.mark.parametrize("items", [2, 3, 4, 5])
@pytest.mark.parametrize("chance", [0.05, 0.2, 0.5, 0.9])
def test_the_probability_of_a_connected_graph_is_that_of_all_graphs(items, chance):
    pairs = list(combinations(range(items), 2))
    total = 0.0
    for chosen in product((0, 1), repeat=len(pairs)):
        edges = np.array([pair for pair, here in zip(pairs, chosen, strict=True) if here])
        if is_connected(edges.reshape(-1, 2), items):
            total += chance ** sum(chosen) * (1 - chance) ** (len(pairs) - sum(chosen))
    found = connection_probability(items, Fraction(chance))
    assert found <= total
    assert found == pytest.approx(total, abs=2e-8)


def test_the_probability_of_a_connected_graph_of_many_items_is_that_of_no_lone_item():
    chance = 1.1 * math.log2(500) / 500
    lone = 500 * (1 - chance) ** 499
    assert connection_probability(500, Fraction(chance)) == pytest.approx(math.exp(-lone), abs=2e-3)
    assert connection_probability(30, Fraction(1)) == 1.0


@pytest.mark.parametrize("items", [25, 100, 1000, 4000, 20_000])
def test_the_bound_for_many_items_loses_little_where_graphs_are_used(items):
    chance = 1.1 * math.log2(items) / items
    lone = math.exp(-items * (1 - chance) ** (items - 1))
    assert lone - 0.03 < connection_probability(items, Fraction(chance)) < lone + 0.03


@pytest.mark.parametrize(("items", "share"), [(20, 0.3), (100, 0.5), (400, 0.5), (1000, 0.7)])
def test_graphs_that_are_hardly_ever_connected_are_not_overrated(items, share):
    """In floating point the recursion gave 5e106 for 400 items."""
    chance = share * math.log(items) / items
    assert 0 <= connection_probability(items, Fraction(chance)) < 0.02


def test_a_graph_that_may_never_be_connected_is_refused_with_a_way_out():
    public = Public(tuple(map(str, range(400))), 400, Neighbours.REPLACE_ONE, 1000)
    with refused(BadUsage, "random_graph_items_edge", items="0.022"):
        graph_sensitivity(public, 0.0075)


def test_the_coin_of_an_edge_has_the_probability_that_the_accountant_sees():
    assert round_probability(1.0) == 1
    assert round_probability(1e-12) > 0
    chance = round_probability(0.3)
    edges = sum(len(draw_connected_graph(40, 0.3, SeededSource(s))) for s in range(200))
    mean = 200 * 780 * float(chance)
    assert abs(edges - mean) < 4 * math.sqrt(mean * 0.7)
    assert len(draw_connected_graph(40, 1.0, SeededSource(0))) == 780


# --- limits and monotony ------------------------------------------------------------------------


def test_with_all_edges_the_noise_is_that_of_all_pairs():
    averaged = calibrate_graph(GraphSensitivity(2500, 2, Fraction(1)), 1.0, 1e-4)
    assert averaged == calibrate_counts(5000, Budget(1.0, 1e-4))[0]


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 400), st.floats(0.05, 0.95), st.floats(0.1, 5))
def test_more_edges_more_answers_and_rarer_graphs_need_more_noise(touched, chance, epsilon):
    def noise(**changes):
        base = GraphSensitivity(touched, 2, Fraction(chance))
        return calibrate_graph(replace(base, **changes), epsilon, 1e-5)

    here = noise()
    slack = Fraction(1001, 1000)  # the grid
    assert here <= noise(edge_probability=Fraction(chance) * Fraction(52, 50)) * slack
    assert here <= noise(touched=touched + 1) * slack
    assert here <= noise(accepted=0.5) * slack
    assert noise(step=1) <= here * slack
    assert here <= calibrate_counts(2 * touched, Budget(epsilon, 1e-5))[0] * Fraction(115, 100)


def test_epsilon_is_the_inverse_of_delta():
    moves = GraphSensitivity(400, 2, Fraction(1, 10), 0.9)
    sigma = calibrate_graph(moves, 1.0, 1e-5)
    assert graph_epsilon(moves, sigma, 1e-5) == pytest.approx(1.0, rel=2e-3)
    assert graph_epsilon(moves, sigma / 2, 1e-5) > 1.9


def test_blocks_of_the_window_cost_almost_nothing(monkeypatch):
    from discreet.privacy.accounting import amplification

    moves = GraphSensitivity(250_000, 2, Fraction(1, 3))
    coarse = graph_delta(moves, Fraction(1300), 1.0, lost=1e-10)
    monkeypatch.setattr(amplification, "MOST_POINTS", 10**6)
    fine = graph_delta(moves, Fraction(1300), 1.0, lost=1e-10)
    assert fine <= coarse <= 1.001 * fine


@pytest.mark.parametrize(
    "wrong",
    [
        {"touched": 0},
        {"step": 3},
        {"edge_probability": Fraction(0)},
        {"edge_probability": Fraction(2)},
        {"accepted": 0.0},
    ],
)
def test_moves_that_mean_nothing_are_refused(wrong):
    with pytest.raises(BadBudget):
        GraphSensitivity(**{"touched": 4, "step": 2, "edge_probability": Fraction(1, 2), **wrong})


# --- composition --------------------------------------------------------------------------------


def test_the_tail_of_the_touched_edges_is_a_bound():
    for trials, chance, least in [(50, 0.1, 12), (156, 0.2, 66), (9, 0.5, 9), (9, 0.5, 3)]:
        tail = sum(
            math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
            for k in range(least, trials + 1)
        )
        assert tail <= binomial_tail(trials, chance, least) * (1 + 1e-12)
    assert binomial_tail(9, 0.5, 10) == 0.0


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap", "chance"), [(4, 4, 0.5), (5, 3, 0.3), (5, 4, 0.6)])
def test_no_person_moves_more_counts_than_the_ledger_charges(items, cap, chance, relation):
    """Every graph and every two neighbours: the counts beyond the charge are as rare as said."""
    check_charges(items, cap, chance, relation)


def test_an_odd_number_of_counts_can_move_when_answers_are_replaced():
    """A pair that only one of two sets of answers touches moves one count."""
    graphs, weights = connected_graphs(5, 0.6)
    moved = touched_pairs(5, 5, Neighbours.REPLACE_ONE) @ graphs.T
    truth = ((moved > 10) @ weights).max()
    assert truth == pytest.approx(0.0708, abs=5e-5)
    of_the_binomial = 0.6**6 / connection_probability(5, Fraction(6, 10))
    assert of_the_binomial == pytest.approx(0.0536, abs=5e-5)
    check_charges(5, 5, 0.6, Neighbours.REPLACE_ONE)


def check_charges(items, cap, chance, relation):
    moves = graph_sensitivity(public_of(items, cap, relation), chance)
    graphs, weights = connected_graphs(items, float(moves.edge_probability))
    moved = touched_pairs(items, cap, relation) @ graphs.T
    for missed in (Fraction(k, 100) for k in range(1, 100)):
        bound = graph_bound(moves, Fraction(8), missed)
        charged = [k for k in range(1, moves.most + 1)
                   if counts_bound(k, Fraction(8)).mu_squared == bound.mu_squared]  # fmt: skip
        rare = ((moved > charged[0]) @ weights).max()
        assert rare <= bound.extra_delta * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_what_the_ledger_adds_dominates_the_release_at_every_epsilon(epsilon):
    moves = GraphSensitivity(156, 2, Fraction(1, 5), 0.9)
    sigma = calibrate_graph(moves, 1.0, 1e-4)
    bound = graph_bound(moves, sigma, Fraction(1, 10**8))
    law = np.array([math.comb(156, k) * 0.2**k * 0.8 ** (156 - k) for k in range(157)])
    exact = law @ [gaussian_delta(math.sqrt(2 * k) / float(sigma), epsilon) for k in range(157)]
    assert exact <= bound.delta(epsilon)
    assert 0 < bound.extra_delta <= Fraction(1, 10**8)


def test_with_few_pairs_the_ledger_counts_them_all_and_no_extra_delta():
    moves = GraphSensitivity(4, 2, Fraction(1, 2), 0.7)
    assert graph_bound(moves, Fraction(8), Fraction(1, 10**8)).extra_delta == 0


def calibrate(items, cap, seed, **changes):
    mechanism = SparsePairs(**changes)
    return mechanism.calibrate(public_of(items, cap), Budget(1.0, 1e-4), SeededSource(seed))


def test_neither_the_noise_nor_the_spend_depends_on_the_drawn_graph():
    """A ledger that accepted by the graph would undo the average."""
    first, second = (calibrate(25, 25, seed) for seed in (1, 2))
    assert first.settings["edges"] != second.settings["edges"]
    assert first.laws == second.laws
    assert replace(first.spend, rho=None) == replace(second.spend, rho=None)
    assert first.conditions == (FRESH_GRAPH_CONDITION,)


def test_noise_for_the_drawn_graph_holds_given_the_graph():
    made = calibrate(25, 25, 1, noise_for="the drawn graph")
    touched = len(made.settings["edges"])
    assert counts_delta(2 * touched, made.laws["right_wrong"].scale, 1.0) <= 1e-4
    assert made.conditions == ()
    assert made.settings["noise_for"] == "the drawn graph"


@pytest.mark.parametrize(
    ("items", "cap", "share"), [(25, 25, 0.82), (100, 100, 0.74), (100, 30, 0.4)]
)
def test_a_random_graph_needs_less_noise_than_the_drawn_one(items, cap, share):
    averaged, given = (
        float(calibrate(items, cap, 1, noise_for=word).laws["right_wrong"].scale)
        for word in ("a random graph", "the drawn graph")
    )
    assert averaged < share * given


def test_a_ledger_takes_several_releases_on_random_graphs():
    budget = Budget(0.4, 1e-7)
    allowance = GaussianAllowance(Budget(2.0, 1e-6))
    spend = SparsePairs().calibrate(public_of(100, 100), budget, SeededSource(3)).spend
    assert spend.bound.extra_delta > 0
    spends = []
    while allowance.accepts(spends, spend):
        spends.append(spend)
    assert 5 <= len(spends) < 30
    assert allowance.spent(spends) <= 2.0


def test_unlucky_graphs_cannot_use_more_than_their_share_of_delta():
    extra = Fraction(1e-6) * MISSED_SHARE
    bound = GaussianBound(Fraction(1, 10**9), extra_delta=extra)
    spend = Spend("sparse-pairs", Neighbours.REPLACE_ONE, 0.01, 1e-6, bound)
    allowance = GaussianAllowance(Budget(5.0, 1e-6))
    spends = []
    while allowance.accepts(spends, spend):
        spends.append(spend)
    assert 9 <= len(spends) <= 10
    assert allowance.cap.delta(5.0) <= 1e-6


def test_too_little_noise_is_refused_before_any_is_drawn():
    moves = graph_sensitivity(public_of(25, 25), 0.2)
    sigma = calibrate_graph(moves, 1.0, 1e-4)
    with refused(BadBudget, "gives_delta_epsilon_above"):
        graph_spend(
            moves, sigma * Fraction(99, 100), Budget(1.0, 1e-4), mechanism="x", rho=Fraction(1)
        )


def test_an_unknown_kind_of_noise_is_refused():
    with refused(
        BadUsage, "noise_must_found_post_init", choices="'a random graph' or 'the drawn graph'"
    ):
        SparsePairs(noise_for="averaged")
