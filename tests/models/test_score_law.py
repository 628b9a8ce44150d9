"""The law of answers given the score, against exact arithmetic on whole fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.models.conditional import batches as groups
from discreet.models.conditional import group_patterns, moments
from discreet.models.conditional.batches import conditional_work, find_tilt, plan_batches
from discreet.models.conditional.moments import (
    AbilityBatch,
    ConditionalSums,
    add_batch,
    evaluate_conditional,
)

ROUTES = ["shared", "alone", "narrow"]


def multiply(one, other):
    out = [Fraction(0)] * (len(one) + len(other) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(one), enumerate(other)):
        out[i + j] += a * b
    return out


def polynomial(thresholds):
    """Weights of the categories of one item, exact for its thresholds as doubles of exp."""
    weights = [Fraction(1)]
    for d in thresholds[np.isfinite(thresholds)]:
        weights.append(weights[-1] * Fraction(float(np.exp(-d))))
    return weights


def log_of(fraction):
    shift = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    return np.log(float(fraction / Fraction(2) ** shift)) + shift * np.log(2)


def exact_law(threshold, score):
    """Logarithm of the coefficient, P(node), and P(both nodes) of different items."""
    m, steps = threshold.shape
    items = [polynomial(row) for row in threshold]

    def coefficient(chosen):
        product = [Fraction(1)]
        for i, weights in enumerate(items):
            low = chosen.get(i, 0)
            product = multiply(product, [Fraction(0)] * low + weights[low:])
        return product[score] if score < len(product) else Fraction(0)

    norm = coefficient({})
    first, both = np.zeros((m, steps)), np.zeros((m, steps, m, steps))
    for i, k in itertools.product(range(m), range(steps)):
        first[i, k] = coefficient({i: k + 1}) / norm
        for j, n in itertools.product(range(i), range(steps)):
            both[i, k, j, n] = both[j, n, i, k] = coefficient({i: k + 1, j: n + 1}) / norm
    return log_of(norm), first, both


def expected_information(first, both):
    """Covariances of all nodes; those of one item follow from its own probabilities."""
    m, steps = first.shape
    for i, k, n in itertools.product(range(m), range(steps), range(steps)):
        both[i, k, i, n] = first[i, max(k, n)]
    flat = first.ravel()
    return both.reshape(m * steps, -1) - np.outer(flat, flat)


def batch_of(route, threshold, scores):
    """Everybody answered everything; one person for each score."""
    m, scores = len(threshold), np.array(scores, dtype=float)
    rows = np.broadcast_to(threshold, (len(scores), *threshold.shape))
    tilt, _ = find_tilt(rows, scores)
    column = np.arange(m)[None, :]
    if route == "shared":
        answered = np.ones((1, len(scores), m), dtype=bool)
        return AbilityBatch(column, answered, scores[None], np.ones((1, len(scores))), tilt[:1])
    answered = np.ones((len(scores), 1, m), dtype=bool) if route == "alone" else None
    column = np.broadcast_to(column, (len(scores), m))
    return AbilityBatch(column, answered, scores[:, None], np.ones((len(scores), 1)), tilt)


def sums_of(batch, threshold):
    sums = ConditionalSums.zeros(*threshold.shape)
    add_batch(sums, batch, threshold)
    return sums


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(2, 7), st.integers(1, 3), st.sampled_from([0.5, 2.0, 8.0])
)
def test_moments_equal_exact_arithmetic(route, seed, m, steps, spread):
    rng = np.random.default_rng(seed)
    threshold = rng.normal(size=(m, steps)) * spread
    threshold[rng.random(m) < 0.3, steps - 1 :] = np.inf if steps > 1 else 0.0
    score = int(rng.integers(1, np.isfinite(threshold).sum()))
    log_norm, first, both = exact_law(threshold, score)
    sums = sums_of(batch_of(route, threshold, [score]), threshold)
    assert sums.log_norm == pytest.approx(log_norm, abs=1e-10, rel=1e-12)
    assert sums.expected == pytest.approx(first, abs=1e-12)
    assert sums.information() == pytest.approx(expected_information(first, both), abs=1e-12)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("spread", [1.0, 8.0, 40.0])
def test_many_unequal_items_equal_exact_arithmetic_at_every_score(route, spread):
    b = np.random.default_rng(1).normal(size=(60, 1)) * spread
    exact = [Fraction(1)]
    for row in b:
        exact = multiply(exact, polynomial(row))
    for score in range(1, 60):
        sums = sums_of(batch_of(route, b, [score]), b)
        # exp(-b) as a double is itself off by half a unit in the last place.
        assert sums.log_norm == pytest.approx(log_of(exact[score]), rel=1e-11, abs=1e-9)
        assert sums.expected.sum() == pytest.approx(score, abs=1e-11)
        assert np.linalg.eigvalsh(sums.information()).min() > -1e-12


@pytest.mark.parametrize("route", ROUTES)
def test_a_score_in_a_wide_gap_keeps_the_digits_of_its_links(route):
    # To have an easy item wrong and a hard one right has probability 3e-13.
    b = np.array([[-15.0], [-14.0], [14.0], [15.0]])
    _, first, both = exact_law(b, 2)
    sums = sums_of(batch_of(route, b, [2]), b)
    exact = expected_information(first, both)
    off = ~np.eye(4, dtype=bool)
    away = np.abs(sums.information() - exact)[off]
    assert (away < 1e-16 + 1e-3 * np.abs(exact[off])).all()
    assert away[np.abs(exact[off]) > 1e-14].max() < 1e-9


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_several_scores_from_one_ability_equal_each_from_its_own(steps):
    rng = np.random.default_rng(2)
    threshold = rng.normal(size=(30, steps))
    scores = [14 * steps, 15 * steps, 16 * steps]
    one = sums_of(batch_of("shared", threshold, scores), threshold)
    two = sums_of(batch_of("narrow", threshold, scores), threshold)
    assert one.log_norm == pytest.approx(two.log_norm, abs=1e-11)
    assert one.expected == pytest.approx(two.expected, abs=1e-11)
    assert one.information() == pytest.approx(two.information(), abs=1e-11)


def test_an_item_with_equal_categories_vanishes_at_an_angle_without_harm():
    # With three categories of equal weight the factor is zero at a third of the circle.
    threshold = np.zeros((4, 2))
    for score in range(1, 8):
        _, first, both = exact_law(threshold, score)
        sums = sums_of(batch_of("narrow", threshold, [score]), threshold)
        assert sums.expected == pytest.approx(first, abs=1e-13)
        assert sums.information() == pytest.approx(expected_information(first, both), abs=1e-12)


def test_the_tilt_makes_the_score_expected():
    rng = np.random.default_rng(3)
    for spread in (0.1, 3.0, 30.0):
        threshold = rng.normal(size=(200, 12, 3)) * spread
        score = rng.integers(1, 36, size=200).astype(float)
        tilt, deviation = find_tilt(threshold, score)
        odds = np.cumsum(tilt[:, None, None] - threshold, axis=2)
        odds = np.concatenate([np.zeros((200, 12, 1)), odds], axis=2)
        chance = np.exp(odds - odds.max(axis=2, keepdims=True))
        chance /= chance.sum(axis=2, keepdims=True)
        off = np.abs((chance @ np.arange(4)).sum(axis=1) - score)
        assert (off <= 0.1 * deviation + 1e-9).all()


# --- groups of persons --------------------------------------------------------------------------


def answers_with_gaps(n, m, share, seed):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=(m, 1)) * 1.5
    answers = (rng.random((n, m)) < 1 / (1 + np.exp(b[:, 0] - rng.normal(size=(n, 1))))) * 1
    answers[rng.random((n, m)) < share] = -1
    return b, group_patterns(discreet.Responses.from_array(answers).store, np.arange(m))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.8])
def test_all_ways_of_grouping_persons_give_the_same_sums(share, monkeypatch):
    b, patterns = answers_with_gaps(150, 25, share, seed=4)
    found = []
    for wide, sharing in ((True, 2), (True, 10**9), (False, 2)):
        monkeypatch.setattr(
            groups, "_is_wide", lambda p, _, wide=wide: np.full(len(p.lengths), wide)
        )
        monkeypatch.setattr(groups, "WORTH_SHARING", sharing)
        found.append(evaluate_conditional(plan_batches(patterns, b), b))
    for other in found[1:]:
        assert other.log_norm == pytest.approx(found[0].log_norm, abs=1e-9)
        assert other.expected == pytest.approx(found[0].expected, abs=1e-10)
        assert other.information() == pytest.approx(found[0].information(), abs=1e-10)


def test_a_plan_serves_near_the_place_it_was_made_for():
    b, patterns = answers_with_gaps(100, 40, 0.1, seed=5)
    plan = plan_batches(patterns, b)
    near = b + np.random.default_rng(6).uniform(-0.2, 0.2, b.shape)
    assert plan.serves(near)
    assert not plan.serves(b * 3)
    here = evaluate_conditional(plan, near)
    there = evaluate_conditional(plan_batches(patterns, near), near)
    assert here.log_norm == pytest.approx(there.log_norm, rel=1e-12)
    assert here.information() == pytest.approx(there.information(), abs=1e-10)


def test_threads_change_nothing_but_rounding(monkeypatch):
    monkeypatch.setattr(groups, "BATCH_CELLS", 1 << 14)
    monkeypatch.setattr(moments, "CHEAP_PAIRS", 0)
    b, patterns = answers_with_gaps(400, 30, 0.3, seed=7)
    plan = plan_batches(patterns, b)
    assert len(plan.batches) > 3
    monkeypatch.setenv("DISCREET_THREADS", "1")
    one = evaluate_conditional(plan, b)
    monkeypatch.setenv("DISCREET_THREADS", "3")
    three = evaluate_conditional(plan, b)
    assert three.log_norm == pytest.approx(one.log_norm, rel=1e-13)
    assert three.information() == pytest.approx(one.information(), abs=1e-11)


def test_work_is_foretold_from_patterns_and_grows_with_them():
    few = conditional_work(answers_with_gaps(100, 20, 0.0, seed=8)[1])
    more = conditional_work(answers_with_gaps(100, 20, 0.2, seed=8)[1])
    most = conditional_work(answers_with_gaps(1000, 20, 0.2, seed=8)[1])
    assert 0 < few < more < most < 2.0


def test_work_counts_score_groups_not_persons():
    _, patterns = answers_with_gaps(5000, 20, 0.0, seed=9)
    assert conditional_work(patterns) < 0.1
