"""Sensitivity of the margins: brute force over all neighbours, and planted faults."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.models.noisy.released import fill_symmetric
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import margins
from discreet.privacy.mechanisms.margins import (
    Margins,
    PersonWeights,
    margins_l1_sensitivity,
    margins_l2_sensitivity,
)
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource
from refusals import refused

BOTH = list(Neighbours)
RATIOS = (0, 1, 2, 5, 20)


def summaries(items, cap, weighting):
    """Totals and disagreements of every person that can exist, one row each."""
    totals, disagreements = [], []
    for row in product([1, 0, -1], repeat=items):
        row = np.array(row)
        answered, right = (row >= 0).sum(), (row == 1).sum()
        if answered <= cap:
            weight = int(weighting(np.array([answered]), np.array([right]))[0])
            pairs = weight * np.outer(row == 1, row == 0).astype(np.int64)
            totals.append(pairs.sum(axis=1) - pairs.sum(axis=0))
            disagreements.append((pairs + pairs.T)[np.triu_indices(items, 1)])
    return np.array(totals), np.array(disagreements)


def brute_moves(items, cap, weighting, neighbours):
    totals, disagreements = summaries(items, cap, weighting)
    if neighbours is Neighbours.ADD_REMOVE:
        return (totals**2).sum(axis=1), (disagreements**2).sum(axis=1)
    return tuple(((s[:, None] - s[None]) ** 2).sum(axis=2).ravel() for s in (totals, disagreements))


def largest(totals, disagreements, ratio):
    return int((np.asarray(totals) + ratio * np.asarray(disagreements)).max())


def table_weighting(values):
    table = np.array(values).reshape(8, 8)

    def weighting(answered, right):
        return table[answered, right].astype(np.int64)

    return weighting


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(
    ("items", "cap"), [(2, 2), (3, 2), (3, 3), (4, 3), (4, 4), (5, 2), (5, 4), (5, 5)]
)
@pytest.mark.parametrize("clip", [0.4, 0.7, 10.0])
def test_short_lists_move_exactly_as_far_as_brute_force(items, cap, clip, neighbours):
    weights = PersonWeights(840, clip * np.sqrt(cap) / 2)
    found = np.array(
        margins_l2_sensitivity(weights, items=items, max_answers=cap, neighbours=neighbours)
    ).T
    brute = brute_moves(items, cap, weights, neighbours)
    for ratio in RATIOS:
        assert largest(*found, ratio) == largest(*brute, ratio)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=64, max_size=64), st.sampled_from([(3, 3), (4, 3)]))
def test_any_weights_are_bounded_exactly_on_short_lists(values, shape):
    items, cap = shape
    weighting = table_weighting(values)
    for neighbours in BOTH:
        found = np.array(
            margins_l2_sensitivity(weighting, items=items, max_answers=cap, neighbours=neighbours)
        ).T
        brute = brute_moves(items, cap, weighting, neighbours)
        for ratio in RATIOS:
            assert largest(*found, ratio) == largest(*brute, ratio)


@pytest.mark.parametrize(("items", "cap", "slack"), [(4, 2, 1.001), (6, 3, 1.001), (5, 5, 1.6)])
def test_long_lists_are_bounded_by_the_paired_moves(items, cap, slack, monkeypatch):
    monkeypatch.setattr(margins, "EXACT_ITEMS", 0)
    weights = PersonWeights(840, 0.7 * np.sqrt(cap) / 2)
    found = np.array(
        margins_l2_sensitivity(
            weights, items=items, max_answers=cap, neighbours=Neighbours.REPLACE_ONE
        )
    ).T
    brute = brute_moves(items, cap, weights, Neighbours.REPLACE_ONE)
    for ratio in RATIOS:
        truth = largest(*brute, ratio)
        assert truth <= largest(*found, ratio) <= slack * truth


@pytest.mark.parametrize("cap", [5, 20, 60])
def test_very_large_caps_use_a_bound_that_is_never_smaller(cap, monkeypatch):
    weights = PersonWeights(2**20, 0.7 * np.sqrt(cap) / 2)
    public = {"items": 500, "max_answers": cap, "neighbours": Neighbours.REPLACE_ONE}
    paired = np.array(margins_l2_sensitivity(weights, **public)).T
    monkeypatch.setattr(margins, "LARGEST_PAIRED_CAP", 0)
    simple = np.array(margins_l2_sensitivity(weights, **public)).T
    for ratio in (0, 1, cap / 4, cap):
        exact, bound = (int((m[0] + ratio * m[1]).max()) for m in (paired, simple))
        assert exact <= bound <= 1.6 * exact


def test_coarse_grids_move_farther_than_the_ideal_and_are_caught():
    weights = PersonWeights(64, np.inf)  # 1 / 40 becomes 2 / 64, 1 / 39 as well: 25% too long
    moves = margins_l2_sensitivity(
        weights, items=100, max_answers=40, neighbours=Neighbours.ADD_REMOVE
    )
    assert max(t for t, _ in moves) / 64**2 == pytest.approx(15.6, abs=0.1)


@pytest.mark.parametrize("clip", [0.7, 10.0])
def test_disagreements_are_free_up_to_a_share(clip):
    weights = PersonWeights(2**20, clip * np.sqrt(40) / 2)
    moves = np.array(
        margins_l2_sensitivity(
            weights, items=100, max_answers=40, neighbours=Neighbours.REPLACE_ONE
        ),
        dtype=float,
    ).T
    free = {0.7: 0.15, 10.0: 0.46}[clip]
    assert (moves[0] + free * 40 * moves[1]).max() == pytest.approx(moves[0].max(), rel=0.002)
    assert (moves[0] + 2 * free * 40 * moves[1]).max() > 1.05 * moves[0].max()


def test_the_longest_absolute_move_is_that_of_brute_force():
    weights = PersonWeights(840, 0.6, norm="absolute")
    totals, disagreements = summaries(4, 4, weights)
    assert margins_l1_sensitivity(weights, max_answers=4) == (
        np.abs(totals).sum(axis=1).max(),
        disagreements.sum(axis=1).max(),
    )


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("items", [4, 30])
def test_the_calibrated_noise_keeps_the_budget_over_every_move(items, family, neighbours):
    public = Public(tuple(map(str, range(items))), items, neighbours, 100)
    budget = Budget(1.0, 1e-6, neighbours)
    mechanism = Margins(family=family)
    calibration = mechanism.calibrate(public, budget, SeededSource(0))
    total, disagreement = (calibration.laws[n].scale for n in ("total", "disagreement"))
    weights = mechanism.weighting(public, calibration)
    if family == "laplace":
        t, d = margins_l1_sensitivity(weights, max_answers=items)
        persons = 2 if neighbours is Neighbours.REPLACE_ONE else 1
        spent = persons * (t / total + d / disagreement)
        assert 0.999 < spent <= 1
        return
    moves = margins_l2_sensitivity(weights, items=items, max_answers=items, neighbours=neighbours)
    worst = max(Fraction(t) / total**2 + Fraction(d) / disagreement**2 for t, d in moves)
    bound = calibration.spend.bound
    assert bound is not None
    assert worst <= bound.mu_squared
    assert float(worst / bound.mu_squared) == pytest.approx(1, abs=1e-4)
    assert 0.99e-6 < float(bound.delta(1.0)) <= 1e-6


def test_less_noise_than_calibrated_breaks_the_budget():
    public = Public(tuple("abcdef"), 6, Neighbours.REPLACE_ONE, 100)
    calibration = Margins().calibrate(public, Budget(1.0, 1e-6), SeededSource(0))
    bound = calibration.spend.bound
    assert bound is not None
    from discreet.privacy.accounting.additive_noise import bound_sensitivity

    moves = margins_l2_sensitivity(
        Margins().weighting(public, calibration),
        items=6,
        max_answers=6,
        neighbours=Neighbours.REPLACE_ONE,
    )
    total, disagreement = (calibration.laws[n].scale for n in ("total", "disagreement"))
    short = [[(t, total * 5 / 7), (d, disagreement * 5 / 7)] for t, d in moves]
    assert float(bound_sensitivity(short, coordinates=21).delta(1.0)) > 1e-6


def test_cells_are_the_totals_and_disagreements_of_the_weighted_counts():
    weighted = np.array([[0, 5, 1], [2, 0, 0], [4, 3, 0]])
    counts = PairCounts(
        ("a", "b", "c"), weighted, answers=np.full(3, 9), right=np.full(3, 5), persons=9
    )
    public = Public(("a", "b", "c"), 3, Neighbours.REPLACE_ONE, 9)
    calibration = Margins().calibrate(public, Budget(1.0, 1e-6), SeededSource(0))
    cells = Margins().cells(counts, calibration)
    assert cells["total"].tolist() == [0, -6, 6]
    assert cells["total"].sum() == 0
    assert fill_symmetric(cells["disagreement"], 3).tolist() == [[0, 7, 5], [7, 0, 3], [5, 3, 0]]


def test_unknown_typical_answers_are_refused():
    with refused(BadUsage, "answers_typical_number_answers"):
        Margins(answers=1)
    with refused(BadUsage, "must_positive_found_post_init", name="clip"):
        Margins(clip=0.0)
