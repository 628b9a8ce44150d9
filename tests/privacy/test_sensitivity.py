"""Sensitivity of what a mechanism publishes: brute force over all neighbours."""

from itertools import product

import numpy as np
import pytest

from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms.pairs import count_sensitivity, cut_bound, draw_connected_graph
from discreet.secure import SeededSource


def patterns(items, cap):
    """Every set of answers that one person can give after the cap: 1, 0 or missing."""
    for row in product([1.0, 0.0, np.nan], repeat=items):
        if np.isfinite(row).sum() <= cap:
            yield np.array(row)


def pair_counts(row):
    right, wrong = (row == 1).astype(int), (row == 0).astype(int)
    return np.outer(right, wrong)


def farthest(statistics, relation):
    """The largest squared move, the largest L1 move and the largest single step."""
    stack = np.array([np.ravel(one) for one in statistics])
    others = stack if relation is Neighbours.REPLACE_ONE else np.zeros((1, stack.shape[1]), int)
    moves = [np.abs(stack - other) for other in others]
    return (
        max(int((move**2).sum(axis=1).max()) for move in moves),
        max(int(move.sum(axis=1).max()) for move in moves),
        max(int(move.max()) for move in moves),
    )


CASES = [(items, cap) for items in (2, 3, 4, 5) for cap in range(2, items + 1)] + [(6, 3), (6, 6)]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), CASES)
def test_pair_counts_move_as_far_as_the_formula_says(items, cap, relation):
    squared, absolute, step = farthest([pair_counts(r) for r in patterns(items, cap)], relation)
    claimed = count_sensitivity(cap**2 // 4, relation)
    assert squared == claimed
    assert absolute == claimed
    assert step == 1


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), [(4, 4), (5, 3), (5, 5), (6, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_counts_on_a_graph_move_as_far_as_the_largest_cut(items, cap, relation, seed):
    edges = draw_connected_graph(items, 0.5, SeededSource(seed))
    first, second = edges.T

    def on_graph(row):
        counts = pair_counts(row)
        return np.concatenate([counts[first, second], counts[second, first]])

    squared, absolute, step = farthest([on_graph(r) for r in patterns(items, cap)], relation)
    claimed = count_sensitivity(cut_bound(edges, items, cap), relation)
    assert squared == absolute == claimed
    assert step == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_eigenvalue_bound_is_never_below_the_largest_cut(seed, monkeypatch):
    from discreet.privacy.mechanisms import pairs as graphs

    edges = draw_connected_graph(10, 0.3, SeededSource(seed))
    exact = cut_bound(edges, 10, 10)
    monkeypatch.setattr(graphs, "EXACT_CUT_ITEMS", 0)
    assert exact <= cut_bound(edges, 10, 10) <= len(edges)


def test_the_counted_statistic_is_the_one_that_was_brute_forced():
    rows = np.array(list(patterns(3, 3)))
    counted = count_pairs(Responses.from_array(rows)).right_wrong
    assert (counted == sum(pair_counts(row) for row in rows)).all()
