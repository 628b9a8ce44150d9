"""Ranks as far as they are sure, items that cannot be told apart, two items compared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

import discreet
from discreet.api.ranks import compare_items, rank_ranges
from discreet.errors import BadUsage
from discreet.persons.scoring import PersonScores
from discreet.results import differences
from discreet.results.differences import Bars, count_sure, draw_law, find_differences
from discreet.results.estimate import Estimate, Solution, Status
from refusals import refused


def make(difficulty, se=0.1, covariance=None, degrees=None):
    b = np.asarray(difficulty, dtype=float)
    known = ~np.isnan(b)
    if covariance is not None:
        se = np.sqrt(covariance.diagonal())
    errors = np.full(len(b), np.nan)
    errors[known] = se
    return Estimate(
        items=tuple(f"q{number}" for number in range(len(b))),
        difficulty=b,
        se=errors,
        status=tuple(Status.ESTIMATED if one else Status.NO_ANSWERS for one in known),
        method="refined",
        solution=Solution("given", 0, 0.0),
        covariance=covariance,
        degrees=degrees,
    )


def correlated(m, rng, se=0.2):
    """A covariance with unequal variances and groups of items that err together."""
    own = np.diag((se * np.exp(0.3 * rng.normal(size=m))) ** 2)
    common = rng.normal(size=(m, 2)) * 0.6 * se
    centre = np.eye(m) - 1 / m
    return centre @ (own + common @ common.T) @ centre


def draw(covariance, rng):
    values, vectors = np.linalg.eigh(covariance)
    return vectors @ (np.sqrt(np.maximum(values, 0)) * rng.normal(size=len(values)))


def true_ranks(truth):
    return np.array([(truth > own).sum() + 1 for own in truth])


def test_items_far_apart_have_one_rank_each_and_equal_ones_share_theirs():
    found = rank_ranges(make([3.0, -3.0, 0.01, 0.0]))
    assert found.items == ("q0", "q2", "q3", "q1")
    assert found.first.tolist() == [1, 2, 2, 4]
    assert found.last.tolist() == [1, 3, 3, 4]
    assert found.groups == (("q0",), ("q2", "q3"), ("q1",))
    assert found.sure == ("q0",)


def test_ranks_count_from_the_easiest_on_request():
    hardest, easiest = (rank_ranges(make([3.0, -3.0, 0.0]), easiest=one) for one in (False, True))
    assert hardest.items == easiest.items[::-1] == ("q0", "q2", "q1")
    assert easiest.first.tolist() == [1, 2, 3]


def test_groups_overlap_where_only_the_ends_can_be_told_apart():
    found = rank_ranges(make([0.4, 0.2, 0.0]), level=0.9)
    assert found.groups == (("q0", "q1"), ("q1", "q2"))
    assert found.first.tolist() == [1, 1, 2]
    assert found.last.tolist() == [2, 3, 3]


def test_without_standard_errors_every_rank_is_possible():
    found = rank_ranges(make([5.0, 0.0, -5.0], np.nan))
    assert found.first.tolist() == [1, 1, 1]
    assert found.last.tolist() == [3, 3, 3]
    assert found.groups == (("q0", "q1", "q2"),)


def test_items_without_a_number_are_named_and_have_no_rank():
    found = rank_ranges(make([np.nan, 1.0, -1.0]))
    assert found.excluded == ("q0",)
    assert found.items == ("q1", "q2")


def test_one_item_and_none_are_defined():
    assert rank_ranges(make([0.0])).groups == (("q0",),)
    assert rank_ranges(make([np.nan, np.nan])).groups == ()


@pytest.mark.parametrize("degrees", [None, 31])
def test_the_quantile_is_that_of_all_pairs_of_all_draws(degrees):
    covariance = correlated(25, np.random.default_rng(1))
    known = find_differences(make(np.zeros(25), covariance=covariance, degrees=degrees))
    errors = draw_law(known, known.covariance, None).errors.astype(float)
    apart = np.abs(errors[:, :, None] - errors[:, None, :])
    off = ~np.eye(25, dtype=bool)
    largest = (apart[:, off] / known.errors()[off]).max(axis=1)
    bar = Bars(known, 0.95).interval
    if degrees is not None:  # Student's law exceeds the bar as rarely as the normal one, per pair
        bar = norm.isf(t.sf(bar, degrees))
    assert np.mean(largest <= bar) == pytest.approx(0.95, abs=2e-4)


def test_the_bar_of_one_order_of_each_pair_is_that_of_these_differences():
    covariance = correlated(15, np.random.default_rng(2))
    known = find_differences(make(np.zeros(15), covariance=covariance))
    counted = np.triu(np.ones((15, 15), dtype=bool), 1)
    errors = draw_law(known, known.covariance, None).errors.astype(float)
    scaled = (errors[:, :, None] - errors[:, None, :])[:, counted] / known.errors()[counted]
    both = np.concatenate([scaled.max(axis=1), (-scaled).max(axis=1)])
    assert np.mean(both <= Bars(known, 0.95)._bar(counted)) == pytest.approx(0.95, abs=2e-4)


def test_what_is_claimed_lowers_the_bar_for_the_rest():
    covariance = correlated(30, np.random.default_rng(3))
    known = find_differences(make(np.linspace(6, -6, 30), covariance=covariance))
    bars = Bars(known, 0.95)
    wide = known.exceeded(0.05 / (30 * 29))
    assert bars.order < bars.interval < wide
    assert bars.top(3) < wide


def test_without_a_covariance_holms_inequality_counts_what_is_left():
    known = find_differences(make(np.linspace(6, -6, 30), 0.01))
    bars = Bars(known, 0.95)
    assert bars.interval == pytest.approx(known.exceeded(0.05 / (30 * 29)))
    assert bars.order == pytest.approx(known.exceeded(0.05 / (30 * 29 / 2)))


def test_more_items_than_draws_are_made_for_are_compared_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(differences, "EXACT_ITEMS", 10)
    monkeypatch.setattr(differences, "BLOCK_CELLS", 50)
    rng = np.random.default_rng(4)
    estimate = make(rng.normal(size=12), covariance=correlated(12, rng))
    found = rank_ranges(estimate)
    assert found.bar == found.quantile
    assert found.bar == pytest.approx(find_differences(estimate).exceeded(0.05 / (12 * 11)))
    assert (found.first <= np.arange(1, 13)).all()
    assert (found.last >= np.arange(1, 13)).all()


def test_the_same_estimate_has_the_same_ranges_wherever_its_items_stand():
    rng = np.random.default_rng(5)
    estimate = make(rng.normal(size=20), covariance=correlated(20, rng))
    turned = replace(
        estimate,
        items=estimate.items[::-1],
        difficulty=estimate.difficulty[::-1].copy(),
        se=estimate.se[::-1].copy(),
        covariance=estimate.covariance[::-1, ::-1].copy(),
    )
    one, other = rank_ranges(estimate), rank_ranges(turned)
    assert one.items == other.items
    assert one.first.tolist() == other.first.tolist()
    assert one.groups == other.groups


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.integers(0, 3))
def test_ranges_and_groups_fit_together(values, seed):
    rng = np.random.default_rng(seed)
    covariance = correlated(len(values), rng) if len(values) > 2 else None
    found = rank_ranges(make(np.array(values) / 2.0, 0.2, covariance))
    place = np.arange(1, len(values) + 1)
    assert (found.first <= place).all()
    assert (place <= found.last).all()
    assert {name for group in found.groups for name in group} == set(found.items)
    starts = [found.items.index(group[0]) for group in found.groups]
    assert starts == sorted(set(starts))
    for group, start in zip(found.groups, starts, strict=True):
        assert group == found.items[start : start + len(group)]


@pytest.mark.parametrize("times", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_ranges_and_tops_are_rarely_wrong(spread, times, monkeypatch):
    monkeypatch.setattr(differences, "ERROR_DRAWS", 2000)
    rng = np.random.default_rng(6)
    covariance, missed, false_tops = correlated(12, rng), 0, 0
    for _ in range(times):
        truth = spread * rng.normal(size=12)
        estimate = make(truth + draw(covariance, rng), covariance=covariance)
        found = rank_ranges(estimate)
        order = [estimate.items.index(name) for name in found.items]
        own = truth[order]
        # An item with equals has every rank among them.
        lowest, highest = true_ranks(own), 13 - true_ranks(-own)
        missed += bool(((found.first > highest) | (found.last < lowest)).any())
        best = {estimate.items[i] for i in np.argsort(-truth)[:3]}
        ranking = discreet.rank(estimate, top=3)
        sure, possible = set(ranking.surely_in), set(ranking.possibly_in)
        false_tops += bool(sure - best or (spread and best - possible))
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)
    assert missed / times <= limit
    assert false_tops / times <= limit


def test_intervals_of_all_differences_hold_together_as_often_as_they_say(monkeypatch):
    monkeypatch.setattr(differences, "ERROR_DRAWS", 4000)
    rng = np.random.default_rng(7)
    covariance = correlated(20, rng)
    bar = Bars(find_differences(make(np.zeros(20), covariance=covariance)), 0.9).interval
    known = find_differences(make(np.zeros(20), covariance=covariance)).errors()
    held, times = 0, 2000
    for _ in range(times):
        error = draw(covariance, rng)
        held += bool((np.abs(error[:, None] - error[None, :]) <= bar * known + 1e-12).all())
    assert held / times == pytest.approx(0.9, abs=3 * np.sqrt(0.09 / times) + 0.01)


def test_anchored_items_are_known_and_compared_with_the_others():
    covariance = np.diag([0.0, 0.0, 0.04, 0.04])
    found = rank_ranges(make([1.0, 0.5, 0.9, -3.0], covariance=covariance))
    assert found.items == ("q0", "q2", "q1", "q3")
    assert found.first.tolist() == [1, 1, 2, 4]
    assert found.last.tolist() == [2, 3, 3, 4]


def test_two_items_are_compared_with_the_error_of_their_difference():
    covariance = np.array([[0.05, 0.03, 0.0], [0.03, 0.05, 0.0], [0.0, 0.0, 0.02]])
    found = compare_items(make([0.5, 0.2, -0.7], covariance=covariance), "q0", "q1")
    assert found.difference == pytest.approx(0.3)
    assert found.se == pytest.approx(0.2)
    assert (found.lower, found.upper) == pytest.approx((0.3 - 0.392, 0.3 + 0.392), abs=1e-4)
    assert found.probability == pytest.approx(0.9332, abs=1e-4)


def test_a_comparison_turned_round_says_the_same():
    estimate = make([0.5, 0.2, -0.7])
    one, other = compare_items(estimate, "q0", "q2"), compare_items(estimate, "q2", "q0")
    assert one.difference == -other.difference
    assert (one.lower, one.upper) == (-other.upper, -other.lower)
    assert one.probability == pytest.approx(1 - other.probability)


def test_an_interval_for_all_pairs_is_wider():
    estimate = make(np.linspace(-1, 1, 12), covariance=correlated(12, np.random.default_rng(8)))
    own = compare_items(estimate, "q0", "q9")
    every = compare_items(estimate, "q0", "q9", simultaneous=True)
    assert every.lower < own.lower
    assert every.probability == own.probability
    bar = rank_ranges(estimate).quantile
    assert every.upper == pytest.approx(every.difference + bar * every.se)


def test_nothing_known_about_an_error_makes_either_order_as_likely():
    found = compare_items(make([5.0, -5.0], np.nan), "q0", "q1")
    assert found.probability == 0.5
    assert found.lower == -np.inf


@pytest.mark.parametrize(
    ("pair", "code", "facts"),
    [
        (("q0", "q9"), "no_item_among_calibration", {"name": "q9", "n_items": "3"}),
        (("q0", "q2"), "no_number_here_cannot", {"name": "q2"}),
        (("q0", "q0"), "compared_itself_name_two", {}),
    ],
)
def test_items_that_cannot_be_compared_are_refused(pair, code, facts):
    with refused(BadUsage, code, **facts):
        compare_items(make([1.0, 0.0, np.nan]), *pair)


def test_strengths_of_compared_objects_have_ranks_too():
    votes = discreet.simulate_comparisons(400, 8, 6, rng=np.random.default_rng(9)).comparisons
    strengths = discreet.rank_comparisons(votes)
    found = rank_ranges(strengths)
    assert found.items == discreet.rank(strengths, 8).top
    assert compare_items(strengths, found.items[0], found.items[-1]).difference > 0


def test_ranges_and_comparisons_come_back_from_their_files(tmp_path):
    estimate = make([1.0, 0.0, -1.0])
    found, pair = rank_ranges(estimate), compare_items(estimate, "q0", "q1")
    found.save(tmp_path / "ranges.json")
    pair.save(tmp_path / "pair.json")
    again = discreet.RankRanges.load(tmp_path / "ranges.json")
    assert again.groups == found.groups
    assert again.last.tolist() == found.last.tolist()
    assert discreet.ItemComparison.load(tmp_path / "pair.json") == pair


def test_sure_differences_are_those_beyond_the_bar():
    known = find_differences(make([1.0, 0.5, 0.0], 0.1))
    above, below, first = count_sure(known, 3.0)
    assert above.tolist() == [0, 0, 1]
    assert below.tolist() == [1, 0, 0]
    assert first.tolist() == [2, 3, 3]


def make_scores(ability, se):
    ability, se = np.asarray(ability, dtype=float), np.asarray(se, dtype=float)
    counts = np.ones(len(ability), dtype=np.int64)
    names = np.array([f"p{number}" for number in range(len(ability))], dtype=object)
    status = np.full(len(ability), "measured", dtype=object)
    return PersonScores(names, ability, se, counts, counts, status, "warm", ("q",))


def test_persons_are_ranked_by_their_abilities_in_words_of_persons():
    scores = make_scores([-2.0, 1.0, np.nan, 1.3, 4.0], [0.5, 0.3, np.nan, 0.4, 0.6])
    found = rank_ranges(scores)
    assert found.items == ("p4", "p3", "p1", "p0")
    assert found.first.tolist() == [1, 2, 2, 4]
    assert found.last.tolist() == [1, 3, 3, 4]
    assert found.excluded == ("p2",)
    assert list(found.to_dict()) == ["person", "ability", "first", "last"]
    assert found.describe() == [
        "4 persons, 3 groups that cannot be told apart within, ablest first, 95% for all ranks "
        "together"
    ]
    assert rank_ranges(scores, easiest=True).items == found.items[::-1]
    top = discreet.rank(scores, 1)
    assert (top.top, top.surely_in, next(iter(top.to_dict()))) == (("p4",), ("p4",), "person")


def test_two_persons_differ_with_independent_errors():
    scores = make_scores([-2.0, 1.0, 1.3], [0.5, 0.3, 0.4])
    pair = compare_items(scores, "p2", "p0")
    assert pair.difference == pytest.approx(3.3)
    assert pair.se == pytest.approx(np.hypot(0.4, 0.5))
    with refused(BadUsage, "no_item_among_calibration", noun="person", name="p9"):
        compare_items(scores, "p9", "p0")


def test_objects_are_ranked_in_words_of_objects():
    votes = discreet.Comparisons.from_codes(
        judge=range(7), winner=[0, 0, 0, 0, 0, 1, 0], loser=[1] * 5 + [0, 1], items=["ash", "elm"]
    )
    found = rank_ranges(discreet.rank_comparisons(votes))
    assert list(found.to_dict()) == ["object", "strength", "first", "last"]
    assert found.items[0] == "ash"
    assert "strongest first" in found.describe()[0]


def test_beside_ranks_nothing_is_surely_in_the_top_that_may_rank_below_it():
    """Three items lie 3.4 standard errors above the others: enough for the top, not for ranks."""
    estimate = make([*[3.4 * 0.1 * np.sqrt(2 * 30 / 29)] * 3, *[0.0] * 27])
    alone, ranges = discreet.rank(estimate, 3), discreet.rank_ranges(estimate)
    assert alone.bar < 3.4 < ranges.bar
    assert len(alone.surely_in) == 3
    both = ranges.narrow(alone)
    assert both.surely_in == ()
    assert set(both.possibly_in) == set(ranges.items)
    apart = make([5.0, 2.0, 0.0])
    assert discreet.rank_ranges(apart).narrow(discreet.rank(apart, 2)).surely_in == ("q0", "q1")


@pytest.fixture(scope="module")
def ranked():
    """Everything that has an order, by what it is about."""
    rng = np.random.default_rng(31)
    answers = discreet.simulate(200, 6, rng=rng).responses
    votes = discreet.simulate_comparisons(300, 6, 8, rng=rng).comparisons
    estimate = discreet.fit(answers)
    released = discreet.release(answers, epsilon=5.0, items=list(answers.items))
    about = {"items": list(votes.items), "max_comparisons": 8}
    return {
        "estimate": (estimate, "item"),
        "frame": (estimate.to_dataframe(), "item"),
        "bank": (discreet.create_bank(estimate, scale="s", source="a"), "item"),
        "release": (released, "item"),
        "scores": (discreet.score(answers, estimate), "person"),
        "strengths": (discreet.rank_comparisons(votes), "object"),
        "released": (
            discreet.release_comparisons(votes, discreet.Budget(5.0, 1e-6), **about),
            "object",
        ),
        "board": (discreet.leaderboard(answers.select_persons(slice(0, 9))), "model"),
    }


KINDS = ["estimate", "frame", "bank", "release", "scores", "strengths", "released", "board"]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_has_an_order_is_ranked_and_compared_in_its_own_words(ranked, kind):
    result, noun = ranked[kind]
    ranges, top = discreet.rank_ranges(result), discreet.rank(result, 1)
    assert (ranges.noun, top.noun) == (noun, noun)
    assert ranges.items[:1] == top.top
    pair = discreet.compare_items(result, *ranges.items[:2])
    assert pair.difference == pytest.approx(ranges.difficulty[0] - ranges.difficulty[1])
    assert noun in str(ranges.describe()[0])


@pytest.mark.parametrize("kind", ["strengths", "released", "board"])
def test_what_is_no_difficulty_of_items_is_taken_for_none(ranked, kind):
    result, noun = ranked[kind]
    answers = np.array([[0, 1], [1, 0], [1, 1], [0, 1]])
    for call in (
        lambda: discreet.score(answers, result),
        lambda: discreet.create_bank(result, scale="s", source="a"),
        lambda: discreet.link_calibrations(result, result),
        lambda: discreet.item_information(result, [0.0]),
        lambda: discreet.fit(answers, anchors=result),
        lambda: discreet.release(answers, epsilon=1.0, items=["0", "1"], mechanism="residuals",
                                 centre=result, max_answers=2),
    ):  # fmt: skip
        with refused(BadUsage, "found_each_here_each", noun_2=noun):
            call()
