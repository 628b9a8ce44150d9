"""Where items stand among each other, as pages say it."""

import numpy as np
import pytest

import discreet
from discreet.results.estimate import Estimate, Solution, Status
from discreet.scales import ranks as made
from discreet.scales.ranks import find_standing, list_groups, say_extremes, show_ranks
from discreet.words import ENGLISH, KINDS


def make(difficulty, se=0.1, covariance=None):
    b = np.asarray(difficulty, dtype=float)
    return Estimate(
        items=tuple(f"q{number}" for number in range(len(b))),
        difficulty=b,
        se=np.full(len(b), se),
        status=(Status.ESTIMATED,) * len(b),
        method="refined",
        solution=Solution("given", 0, 0.0),
        covariance=covariance,
    )


def test_the_extremes_are_named_only_as_far_as_they_are_sure():
    clear = find_standing(make([3.0, 0.0, -3.0])).ranges
    assert say_extremes(clear) == "Hardest: q0. Easiest: q2."
    close = find_standing(make([3.0, 2.95, -3.0])).ranges
    assert say_extremes(close, ENGLISH.about(KINDS["comparisons"])) == (
        "Which object is strongest is not sure: 2 may be it (q0, q1). Weakest: q2."
    )


def test_ranks_and_groups_are_written_as_ranges():
    ranges = find_standing(make([3.0, 2.95, -3.0])).ranges
    assert show_ranks(ranges, "-") == {"q0": "1-2", "q1": "1-2", "q2": "3"}
    assert list_groups(ranges) == {"places": ["1\N{EN DASH}2"], "items": ["q0, q1"]}


def test_neighbours_are_compared_as_any_two_items_are():
    covariance = np.array([[0.05, 0.03, 0.0], [0.03, 0.05, 0.0], [0.0, 0.0, 0.02]])
    estimate = make([0.2, 0.5, -0.7], covariance=covariance)
    near = find_standing(estimate).neighbours
    assert (near["above"], near["below"]) == (["q1", "q0"], ["q0", "q2"])
    for place, pair in enumerate([("q1", "q0"), ("q0", "q2")]):
        own = discreet.compare_items(estimate, *pair)
        for name in ("difference", "lower", "upper", "probability"):
            assert near[name][place] == pytest.approx(getattr(own, name))


def test_a_page_holds_errors_of_all_pairs_in_the_order_of_the_ranks():
    covariance = np.diag([0.01, 0.04, 0.09])
    pairs = find_standing(make([0.0, 1.0, -1.0], covariance=covariance)).pairs
    assert pairs["items"] == ["q1", "q0", "q2"]
    assert pairs["errors"] == pytest.approx(np.sqrt([0.05, 0.13, 0.10]), rel=1e-4)


def test_without_a_covariance_variances_are_enough():
    pairs = find_standing(make([0.0, 1.0, -1.0])).pairs
    assert pairs["variances"] == pytest.approx([0.015] * 3)
    assert "errors" not in pairs


def test_too_many_pairs_for_a_page_are_left_to_the_command_line(monkeypatch):
    monkeypatch.setattr(made, "PAIRED_ITEMS", 2)
    found = find_standing(make([0.0, 1.0, -1.0], covariance=np.eye(3) / 100))
    assert found.pairs is None
    assert len(found.neighbours["above"]) == 2
