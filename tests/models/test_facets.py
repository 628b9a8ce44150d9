"""Facets models: severities of raters, by pairs and by conditional likelihood."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

import discreet
from discreet.answers.ratings import Ratings
from discreet.errors import (
    BadResponses,
    BadUsage,
    DisconnectedItems,
    ItemsLeftOut,
    OutOfReach,
    WarningKind,
)
from discreet.models.facets import existence
from discreet.models.facets.draws import redraw_ratings
from discreet.models.facets.given_totals import maximise_given_totals
from discreet.models.facets.standard_errors import compare_stages
from discreet.models.facets.structure import PairedBatches, describe_structure, plan_design
from discreet.report.raters import find_rater_problems
from refusals import refused
from sizes import is_chance


def simulate_ratings(seed, persons=60, items=3, raters=5, marks=2, steps=3, effect=0.0):
    """Ratings of essays, each by ``marks`` raters on all items, with their true severities."""
    rng = np.random.default_rng(seed)
    severity = np.linspace(-1, 1, raters)
    threshold = np.linspace(-0.5, 0.5, items)[:, None] + np.linspace(-1, 1, steps)
    person = np.repeat(np.arange(persons), items * marks)
    item = np.tile(np.repeat(np.arange(items), marks), persons)
    order = rng.permuted(np.tile(np.arange(raters), (persons, 1)), axis=1)[:, :marks]
    rater = np.repeat(order[:, None, :], items, axis=1).ravel()
    strength = rng.normal(size=(persons, items)) * effect
    ability = rng.normal(size=persons)[person] + strength[person, item]
    logits = np.cumsum(ability[:, None] - threshold[item] - severity[rater][:, None], axis=1)
    draws = rng.gumbel(size=(len(person), steps + 1))
    draws[:, 1:] += logits
    score = draws.argmax(axis=1)
    return Ratings.from_codes(person, item, score, facets={"rater": rater}), severity, threshold


def frame_of(rows, columns=("person", "item", "rater", "score")):
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_two_raters_of_one_question_differ_by_the_log_of_their_disagreements():
    # Ann passes where Bob fails 3 times, the other way round once: severity(Bob) - severity(Ann)
    # is log 3, as in a paired comparison.
    verdicts = [(1, 0)] * 3 + [(0, 1)] + [(1, 1)] * 5 + [(0, 0)] * 2
    rows = [
        (f"e{n}", "q", rater, score)
        for n, scores in enumerate(verdicts)
        for rater, score in zip(("ann", "bob"), scores, strict=True)
    ]
    estimate = discreet.fit(frame_of(rows), facets=["rater"])
    facet = estimate.facets["rater"]
    assert facet.levels == ("ann", "bob")
    assert facet.measure[1] - facet.measure[0] == pytest.approx(math.log(3), abs=1e-9)
    assert facet.status == ("estimated", "estimated")
    assert estimate.model == "rasch"


@pytest.mark.parametrize("within", [None, "item"])
def test_score_and_second_derivatives_are_those_of_the_pairs_written_out(within):
    ratings, _, _ = simulate_ratings(1, persons=12)
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    (pairs,) = PairedBatches(design, ratings.batches(), within)
    thresholds = np.random.default_rng(0).normal(size=design.n_columns)
    likelihood, gradient = 0.0, np.zeros(design.n_columns)
    curvature = np.zeros((design.n_columns, design.n_columns))
    n = ratings.n_ratings
    score, levels = design.recode(ratings), design.find_levels(ratings)

    def row(o, step):
        z = np.zeros(design.n_columns)
        z[design.first_node[ratings.item[o]] + step - 1] = 1
        z[levels[o]] = 1
        return z

    def block(o):
        return (ratings.person[o], ratings.item[o]) if within else ratings.person[o]

    sizes = {key: sum(block(o) == key for o in range(n)) for key in map(block, range(n))}
    for a, b in itertools.permutations(range(n), 2):
        top = design.steps[ratings.item[b]]
        if block(a) != block(b) or score[a] == 0 or score[b] == top:
            continue
        difference = row(b, score[b] + 1) - row(a, score[a])
        q = 1 / (1 + math.exp(difference @ thresholds))
        weight = 1 / sizes[block(a)]
        likelihood += weight * math.log(1 - q)
        gradient += weight * q * difference
        curvature += weight * q * (1 - q) * np.outer(difference, difference)
    value, slope = pairs.score(thresholds)
    assert value == pytest.approx(likelihood, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, atol=1e-12)
    n_columns = design.n_columns
    matrix = pairs.second_derivatives(thresholds, n_columns)
    np.testing.assert_allclose(matrix, curvature, atol=1e-12)
    np.testing.assert_allclose(
        pairs.second_derivatives(thresholds, 5), curvature[:5, :5], atol=1e-12
    )
    np.testing.assert_allclose(pairs.diagonal(thresholds), curvature.diagonal(), atol=1e-12)
    for n_vectors in (2, 40):  # threads share the groups, or the vectors
        vectors = np.random.default_rng(1).normal(size=(n_columns, n_vectors))
        product = pairs.multiply(thresholds, vectors)
        np.testing.assert_allclose(product, curvature @ vectors, atol=1e-11)


def test_conditional_likelihood_is_that_of_all_ratings_with_the_same_total():
    ratings, _, _ = simulate_ratings(2, persons=25, items=2, raters=3, marks=2, steps=2)
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    solution = maximise_given_totals(design, ratings)
    total = 0.0
    levels, score = design.find_levels(ratings), design.recode(ratings)
    starts = np.searchsorted(ratings.person, np.arange(ratings.n_persons + 1))
    for low, high in itertools.pairwise(starts):
        marks = range(low, high)

        def exponent(scores, marks=marks):
            return -sum(
                solution.thresholds[design.first_node[ratings.item[o]] + k]
                + solution.thresholds[levels[o, 0]]
                for o, x in zip(marks, scores, strict=True)
                for k in range(x)
            )

        seen = score[low:high]
        others = [s for s in itertools.product(range(3), repeat=len(seen)) if sum(s) == sum(seen)]
        total += exponent(seen) - math.log(sum(math.exp(exponent(s)) for s in others))
    assert solution.likelihood == pytest.approx(total, rel=1e-10)
    assert solution.gradient < 1e-8


def test_raters_at_the_ends_and_subsets_are_named_and_have_no_number():
    rng = np.random.default_rng(3)
    rows = []
    for n in range(60):
        pool = ("ann", "bob", "cid") if n < 40 else ("dan", "eve")
        for rater in pool:
            rows += [(f"e{n}", item, rater, int(rng.integers(0, 3))) for item in ("q1", "q2")]
        if n < 20:
            rows += [(f"e{n}", item, "floor", 0) for item in ("q1", "q2")]
            rows += [(f"e{n}", item, "top", 2) for item in ("q1", "q2")]
    with pytest.warns(ItemsLeftOut, match="floor"):
        estimate = discreet.fit(frame_of(rows), facets=["rater"])
    facet = estimate.facets["rater"]
    status = dict(zip(facet.levels, facet.status, strict=True))
    assert status["floor"] == "always_lowest"
    assert status["top"] == "always_highest"
    assert status["dan"] == status["eve"] == "not_connected"
    subset = dict(zip(facet.levels, facet.subset.tolist(), strict=True))
    assert subset["ann"] == subset["floor"] == 1
    assert subset["dan"] == subset["eve"] == 2
    has_number = dict(zip(facet.levels, np.isfinite(facet.measure), strict=True))
    assert {name for name, number in has_number.items() if number} == {"ann", "bob", "cid"}
    assert np.isnan(facet.se[~np.isfinite(facet.measure)]).all()
    assert {kind.items for kind in estimate.warnings} >= {("floor",), ("top",), ("dan", "eve")}


def plant_mixed_direction():
    """Rater 3 and item 3 move apart without end, though comparisons link both both ways.

    Rater 3 on item 3 is compared with the others in both directions; on other items rater 3 gives
    zeros only, and item 3 gets ones only from the other raters.
    """
    rng, rows = np.random.default_rng(0), []
    for person in range(200):
        for item in range(3):
            pool = rng.choice(3, 2, replace=False)
            rows += [(person, item, rater, rng.integers(2)) for rater in pool]
        extra = [(3, 3, rng.integers(2)), (3, rng.integers(3), 1), (rng.integers(3), 3, 0)]
        rows += [(person, *cells) for cells in extra[person % 4 : person % 4 + 1]]
    person, item, rater, score = np.array(rows).T
    return Ratings.from_codes(person, item, score, facets={"rater": rater})


@pytest.mark.parametrize("most_pairs", [existence.MOST_PAIRS, 0])
def test_a_direction_over_items_and_raters_without_a_maximum_is_found(most_pairs, monkeypatch):
    ratings = plant_mixed_direction()
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    assert existence.drop_unlinked(design, ratings.batches(), None).keeps.all()
    monkeypatch.setattr(existence, "MOST_PAIRS", most_pairs)
    with pytest.warns(ItemsLeftOut, match="no bound"):
        estimate = discreet.fit(ratings, within=None)
    assert list(estimate.facets["rater"].status) == [*["estimated"] * 3, "unbounded"]
    assert list(np.isfinite(estimate.difficulty)) == [True, True, True, False]
    assert np.nanmax(np.abs(estimate.facets["rater"].measure)) < 1
    study = discreet.analysis.study_ratings(ratings, estimate)
    titles = [finding.title for finding in find_rater_problems(study)]
    assert any("do not bound" in title for title in titles)


def test_the_linear_programme_adds_rows_until_they_suffice(monkeypatch):
    monkeypatch.setattr(existence, "ROWS_AT_ONCE", 10)
    ratings, _, _ = simulate_ratings(15)
    assert (np.array(discreet.fit(ratings).facets["rater"].status) == "estimated").all()
    with pytest.warns(ItemsLeftOut):
        status = discreet.fit(plant_mixed_direction(), within=None).facets["rater"].status
    assert list(status) == [*["estimated"] * 3, "unbounded"]


def test_raters_whom_nothing_compares_are_refused():
    rows = [("e1", "q", "ann", 1), ("e2", "q", "bob", 0)]
    with refused(DisconnectedItems, "ratings_do_not_link", subject="the facet 'rater'"):
        discreet.fit(frame_of(rows), facets=["rater"])


def test_same_item_pairs_keep_severities_apart_where_persons_have_strengths():
    ratings, severity, _ = simulate_ratings(4, persons=1500, marks=3, effect=1.5)
    inside = discreet.fit(ratings)
    across = discreet.fit(ratings, within=None)
    slopes = [
        fit.facets["rater"].measure @ severity / (severity @ severity) for fit in (inside, across)
    ]
    assert slopes[0] == pytest.approx(1, abs=0.06)
    assert slopes[1] < 0.75
    assert "same person on the same item" in inside.choice
    assert across.choice == ""


@pytest.mark.slow
def test_persons_who_do_not_differ_by_item_are_said_to_as_often_as_the_level_says():
    p = [discreet.fit(simulate_ratings(seed, persons=150)[0]).item_effect.p for seed in range(300)]
    assert is_chance(np.sum(np.array(p) < 0.05), 300)


def test_persons_who_differ_by_item_are_found():
    ratings, _, _ = simulate_ratings(4, persons=600, marks=3, effect=1.5)
    estimate = discreet.fit(ratings)
    test = estimate.item_effect
    assert test.p < 1e-6
    assert test.degrees == (4, 596)
    assert test.slope < 0.75
    study = discreet.analysis.study_ratings(ratings, estimate)
    titles = [finding.title for finding in find_rater_problems(study)]
    assert any("Persons differ by item" in title for title in titles)
    assert discreet.fit(ratings, within=None).item_effect is None


class MadeStage:
    """A stage of known moves: four columns, persons in two batches, nothing to solve."""

    def __init__(self, thresholds, moves):
        self.batches = [MadePairs(part) for part in np.split(moves, [7])]
        self.structure = SimpleNamespace(basis=sparse.eye_array(moves.shape[1]).tocsr())
        equations = SimpleNamespace(solve=lambda scores: scores)
        self.solution = SimpleNamespace(thresholds=thresholds, equations=equations)


class MadePairs:
    def __init__(self, moves):
        self.moves = moves

    def score_ratings(self, thresholds):
        return self.moves

    def person_scores(self, scores):
        return sparse.csr_array(scores)


@pytest.mark.parametrize("persons", [15, 16, 40])
def test_the_item_effect_has_the_law_of_hotellings_statistic(persons):
    """Three free differences among four columns that sum to zero; few persons cost freedom."""
    rng = np.random.default_rng(persons)
    columns = np.array([0, 1, 3, 4])
    centring = np.eye(5)
    centring[np.ix_(columns, columns)] -= 1 / 4
    inside, everything = (rng.normal(size=(persons, 5)) * scale @ centring for scale in (0.3, 0.2))
    first, second = (centring @ rng.normal(size=5) for _ in range(2))
    found = compare_stages(
        MadeStage(first, inside), MadeStage(second, everything), columns, persons
    )
    moves = (inside - everything)[:, columns]
    covariance = persons / (persons - 1) * moves.T @ moves
    apart = (first - second)[columns]
    squared = apart @ np.linalg.pinv(covariance, rcond=1e-10) @ apart
    statistic = squared * (persons - 3) / (3 * (persons - 1))
    assert found.degrees == (3, persons - 3)
    assert found.statistic == pytest.approx(statistic)
    assert found.p == pytest.approx(stats.f.sf(statistic, 3, persons - 3))
    a, b = first[columns], second[columns]
    assert found.slope == pytest.approx((a * b).sum() / (a * a).sum())


def test_the_item_effect_is_not_tested_with_fewer_than_five_persons_for_a_difference():
    rng = np.random.default_rng(0)
    stages = [MadeStage(rng.normal(size=3), rng.normal(size=(14, 3))) for _ in range(2)]
    assert compare_stages(*stages, np.arange(3), 14) is None
    alone = [MadeStage(rng.normal(size=3), rng.normal(size=(1, 3))) for _ in range(2)]
    for stage in alone:
        stage.batches = stage.batches[:1]
    assert compare_stages(*alone, np.arange(3), 1) is None
    # A number that no person moves is no difference.
    stages[0].batches = [MadePairs(pairs.moves * [1, 1, 0]) for pairs in stages[0].batches]
    stages[1].batches = [MadePairs(pairs.moves * [1, 1, 0]) for pairs in stages[1].batches]
    assert compare_stages(*stages, np.arange(3), 14).degrees == (2, 12)


def test_the_covariance_of_the_differences_is_that_of_leaving_out_persons():
    ratings, _, _ = simulate_ratings(16, persons=120, raters=2)
    inside = discreet.fit(ratings)
    moves = []
    for number in range(ratings.n_persons):
        rest = ratings.select(np.flatnonzero(ratings.person != number))
        parts = [discreet.fit(rest, within=w, standard_errors=False) for w in ("item", None)]
        severities = [part.facets["rater"].measure[0] for part in parts]
        moves.append(severities[0] - severities[1])
    everything = discreet.fit(ratings, within=None).facets["rater"].measure[0]
    difference = inside.facets["rater"].measure[0] - everything
    error = np.sqrt(np.sum((moves - np.mean(moves)) ** 2))
    assert inside.item_effect.degrees[0] == 1
    assert inside.item_effect.statistic == pytest.approx((difference / error) ** 2, rel=0.12)


def test_all_pairs_serve_where_raters_mark_different_items():
    # Each rater marks one item only: no two ratings of a person are on the same item.
    rng = np.random.default_rng(5)
    rows = [
        (f"e{n}", f"q{item}", f"r{(item + n) % 3}", int(rng.integers(0, 2)))
        for n in range(80)
        for item in range(3)
    ]
    estimate = discreet.fit(frame_of(rows), facets=["rater"])
    assert "all pairs" in estimate.choice
    with pytest.raises(DisconnectedItems):
        discreet.fit(frame_of(rows), facets=["rater"], within="item")


ANCHORS = {"rater": {"0": -0.9}, "item": {"1": [-1.1, 0.1, 0.8]}}


@pytest.mark.parametrize(
    "words", [{"within": None}, {"within": "item"}, {"within": "item", "anchors": ANCHORS}]
)
def test_standard_errors_are_those_of_leaving_out_persons(words):
    ratings, _, _ = simulate_ratings(6, persons=90)
    whole = discreet.fit(ratings, **words)
    moves = []
    for number in range(ratings.n_persons):
        rest = ratings.select(np.flatnonzero(ratings.person != number))
        part = discreet.fit(rest, **words, standard_errors=False)
        moves.append(np.concatenate([part.facets["rater"].measure, part.thresholds.ravel()]))
    jackknife = np.sqrt(np.sum((moves - np.mean(moves, axis=0)) ** 2, axis=0))
    errors = np.concatenate([whole.facets["rater"].se, whole.threshold_se.ravel()])
    np.testing.assert_allclose(errors, jackknife, rtol=0.12, atol=1e-9)
    assert (errors == 0).sum() == (0 if "anchors" not in words else 4)


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
@pytest.mark.parametrize("words", [{"within": None}, {"within": "item"}, {"method": "conditional"}])
def test_anchors_at_the_values_of_a_free_fit_change_no_number(words, model):
    ratings, _, _ = simulate_ratings(8)
    free = discreet.fit(ratings, **words, model=model)
    raters = free.facets["rater"]
    some = {"rater": {"1": raters.measure[1], "4": raters.measure[4]}}
    for anchors in (some, {"2": free.thresholds[2]}, {**some, "item": {"0": free.thresholds[0]}}):
        held = discreet.fit(ratings, **words, model=model, anchors=anchors)
        np.testing.assert_allclose(held.thresholds, free.thresholds, atol=1e-8)
        np.testing.assert_allclose(held.facets["rater"].measure, raters.measure, atol=1e-8)
        known = np.array(held.facets["rater"].status) == "anchored"
        assert known.tolist() == [name in anchors.get("rater", ()) for name in raters.levels]
        assert ((held.facets["rater"].se == 0) == known).all()


@pytest.mark.parametrize("words", [{"within": None}, {"within": "item"}, {"method": "conditional"}])
def test_displacements_are_those_of_fits_with_one_anchor_less(words):
    ratings, _, _ = simulate_ratings(8)
    free = discreet.fit(ratings, **words)
    raters = free.facets["rater"]
    anchors = {
        "rater": {name: raters.measure[int(name)] + shift
                  for name, shift in (("0", 0.0), ("1", 0.7), ("4", -0.2))},
        "0": free.thresholds[0] + 0.4, "2": free.thresholds[2],
    }  # fmt: skip
    held = discreet.fit(ratings, anchors=anchors, **words)
    moved, se = held.facets["rater"].displacement, held.facets["rater"].displacement_se
    assert (
        np.isfinite(moved).tolist() == np.isfinite(se).tolist() == [True, True, False, False, True]
    )
    for name in ("0", "1", "4"):
        rest = {**anchors, "rater": {k: v for k, v in anchors["rater"].items() if k != name}}
        less = discreet.fit(ratings, anchors=rest, **words).facets["rater"]
        row = int(name)
        assert moved[row] == pytest.approx(less.measure[row] - anchors["rater"][name])
        assert se[row] == pytest.approx(less.se[row])
    assert moved[1] < -0.4
    less = discreet.fit(ratings, anchors={k: v for k, v in anchors.items() if k != "0"}, **words)
    assert held.displacement[0] == pytest.approx(less.difficulty[0] - anchors["0"].mean())
    assert held.displacement_se[0] == pytest.approx(less.se[0])
    assert np.isnan(held.displacement[1])
    assert held.facets["rater"].to_dict()["displacement"][0] == moved[0]


def test_a_single_anchor_has_no_displacement_and_a_wrong_one_is_told():
    ratings, _, _ = simulate_ratings(9, persons=200)
    free = discreet.fit(ratings).facets["rater"].measure
    held = discreet.fit(ratings, anchors={"rater": {"0": free[0], "1": free[1] + 2, "2": free[2]}})
    (told,) = [one for one in held.warnings if one.kind is WarningKind.DISPLACED]
    assert "1" in told.items
    assert held.facets["rater"].displacement[1] < -1.5
    alone = discreet.fit(ratings, anchors={"0": discreet.fit(ratings).thresholds[0]})
    assert np.isnan(alone.displacement).all()
    assert alone.displacement_reason[0] == "it is the only anchor"
    assert alone.facets["rater"].displacement is None


def test_crossed_facets_are_held_at_the_values_of_a_free_fit():
    ratings, _, _ = simulate_ratings(8, persons=120)
    month = ((ratings.person + ratings.item) % 2).astype(np.int32)
    timed = Ratings.from_codes(
        ratings.person, ratings.item, ratings.score, facets={**ratings.codes, "month": month}
    )
    words = {"structure": "item:step + rater + rater:month", "within": None}
    free = discreet.fit(timed, **words)
    drift = free.facets["rater:month"]
    some = {level: drift.measure[drift.levels.index(level)] for level in ("0:0", "3:1")}
    held = discreet.fit(timed, anchors={"rater:month": some, "rater": {
        "2": free.facets["rater"].measure[2]}}, **words)  # fmt: skip
    np.testing.assert_allclose(held.facets["rater:month"].measure, drift.measure, atol=1e-8)
    np.testing.assert_allclose(
        held.facets["rater"].measure, free.facets["rater"].measure, atol=1e-8
    )
    whole = {"rater:month": dict(zip(drift.levels, drift.measure, strict=True))}
    again = discreet.fit(timed, anchors=whole, **words)
    assert set(again.facets["rater:month"].status) == {"anchored"}
    np.testing.assert_allclose(
        again.facets["rater"].measure, free.facets["rater"].measure, atol=1e-8
    )


def test_what_is_anchored_puts_the_others_on_its_scale(tmp_path):
    # Moving the anchors of a facet moves that facet, and nothing else.
    ratings, _, _ = simulate_ratings(9)
    free = discreet.fit(ratings)
    moved = {"rater": {"0": free.facets["rater"].measure[0] + 2}}
    held = discreet.fit(ratings, anchors=moved)
    np.testing.assert_allclose(held.facets["rater"].measure, free.facets["rater"].measure + 2)
    np.testing.assert_allclose(held.difficulty, free.difficulty, atol=1e-8)
    # Of an earlier fit, or its file, what occurs in both is held: others keep their distances.
    rows = np.flatnonzero(ratings.codes["rater"] != 3)
    earlier = discreet.fit(ratings.select(rows))
    earlier.save(tmp_path / "earlier.json")
    later = discreet.fit(ratings, anchors=tmp_path / "earlier.json")
    assert list(later.facets["rater"].status) == [*["anchored"] * 3, "estimated", "anchored"]
    np.testing.assert_array_equal(later.thresholds, earlier.thresholds)


def test_an_anchored_rater_needs_no_estimate_and_others_need_a_way_to_the_anchors():
    ratings, _, _ = simulate_ratings(10)
    score = np.where(ratings.codes["rater"] == 0, 0, ratings.score)
    kept = Ratings.from_codes(ratings.person, ratings.item, score, facets=ratings.codes)
    held = discreet.fit(kept, within=None, anchors={"rater": {"0": 3.0, "1": -0.5}})
    assert list(held.facets["rater"].status) == [*["anchored"] * 2, *["estimated"] * 3]
    # Persons 0 to 29 are rated by raters 0 and 1, the others by 2 to 4.
    apart = np.where(
        ratings.person < 30, ratings.codes["rater"] % 2, ratings.codes["rater"] % 3 + 2
    )
    split = Ratings.from_codes(ratings.person, ratings.item, ratings.score, facets={"rater": apart})
    with pytest.warns(ItemsLeftOut):
        held = discreet.fit(split, within=None, anchors={"rater": {"1": -0.5}})
    assert list(np.isfinite(held.facets["rater"].measure)) == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("anchors", "words"),
    [
        ({"task": {"a": 0.0}}, {}),
        ({"rater": {"nobody": 0.0}}, {}),
        ({"rater": {"0": np.nan}}, {}),
        ({"item": {"0": 0.3}}, {}),
        ({}, {}),
        ({"rater": {"0": 0.3}}, {"refits": 1}),
    ],
)
def test_anchors_that_mean_nothing_are_refused(anchors, words):
    with pytest.raises(BadUsage):
        discreet.fit(simulate_ratings(8)[0], anchors=anchors, **words)


def test_equal_levels_are_tested_with_the_covariance_of_their_measures():
    # Hotelling's statistic of differences to the first rater, from the jackknife of persons.
    ratings, _, _ = simulate_ratings(6, persons=90)
    whole = discreet.fit(ratings, within=None).facets["rater"]
    moves = []
    for number in range(90):
        rest = ratings.select(np.flatnonzero(ratings.person != number))
        part = discreet.fit(rest, within=None, standard_errors=False).facets["rater"].measure
        moves.append(part[1:] - part[0])
    centred = np.array(moves) - np.mean(moves, axis=0)
    difference = whole.measure[1:] - whole.measure[0]
    wald = difference @ np.linalg.solve(centred.T @ centred, difference)
    statistic = wald / 4 * 86 / 89
    assert whole.equal.degrees == (4, 86)
    assert whole.equal.statistic == pytest.approx(statistic, rel=0.2)
    tail = stats.f.sf(whole.equal.statistic, 4, 86)
    assert whole.equal.p == pytest.approx(tail)
    exact = discreet.fit(ratings, method="conditional").facets["rater"].equal
    assert exact.p == pytest.approx(stats.chi2.sf(exact.statistic * 4, 4))


def test_separation_and_strata_are_those_of_spread_and_error():
    facet = discreet.fit(simulate_ratings(6)[0]).facets["rater"]
    error = np.mean(facet.se**2)
    true = np.var(facet.measure, ddof=1) - error
    assert facet.separation == pytest.approx(np.sqrt(true / error))
    assert facet.strata == pytest.approx((4 * np.sqrt(true / error) + 1) / 3)
    assert facet.reliability == pytest.approx(true / (true + error))
    # Each rater has degrees of freedom of its own.
    alone = stats.t.ppf(0.975, facet.degrees) * facet.se
    assert (facet.differ() == (np.abs(facet.measure) > alone)).all()


@pytest.mark.parametrize("within", [None, "item"])
def test_random_signs_and_conjugate_gradients_give_what_matrices_give(within, monkeypatch):
    ratings, _, _ = simulate_ratings(7, persons=400, raters=30)
    exact = discreet.fit(ratings, within=within)
    for module in ("solve", "standard_errors"):
        monkeypatch.setattr(f"discreet.models.facets.{module}.DENSE_PARAMETERS", 0)
    drawn = discreet.fit(ratings, within=within)
    facet, rough = exact.facets["rater"], drawn.facets["rater"]
    np.testing.assert_allclose(rough.measure, facet.measure, atol=1e-6)
    np.testing.assert_allclose(drawn.thresholds, exact.thresholds, atol=1e-6)
    ratio = rough.se / facet.se
    assert ratio.mean() == pytest.approx(1, abs=0.05)
    assert ratio.std() < 0.15


def test_ratings_on_disk_give_what_ratings_in_memory_give(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.readers.ratings.BATCH_RATINGS", 100)
    ratings, _, _ = simulate_ratings(8)
    rows = np.column_stack([ratings.person, ratings.item, ratings.codes["rater"], ratings.score])
    path = tmp_path / "marks.csv"
    shuffled = np.random.default_rng(0).permutation(rows)
    lines = ["person,item,rater,score", *(",".join(map(str, row)) for row in shuffled)]
    path.write_text("\n".join(lines))
    memory = discreet.fit(path, facets=["rater"])
    disk = discreet.fit(path, facets=["rater"], engine="disk")
    assert disk.facets["rater"].levels == memory.facets["rater"].levels
    np.testing.assert_allclose(
        disk.facets["rater"].measure, memory.facets["rater"].measure, atol=1e-9
    )
    np.testing.assert_allclose(disk.facets["rater"].se, memory.facets["rater"].se, atol=1e-9)
    np.testing.assert_allclose(disk.thresholds, memory.thresholds, atol=1e-9)


def test_features_that_tell_all_items_apart_give_the_rating_scale_model():
    ratings, _, _ = simulate_ratings(9, persons=300)
    scale = discreet.fit(ratings, structure="item + step + rater")
    features = {"item": ["0", "1", "2"], "first": [1, 0, 0], "second": [0, 1, 0]}
    linear = discreet.fit(ratings, features=features)
    np.testing.assert_allclose(linear.difficulty, scale.difficulty, atol=1e-7)
    np.testing.assert_allclose(linear.facets["rater"].measure, scale.facets["rater"].measure)


def test_scores_from_one_are_shifted_and_missing_codes_left_out():
    rng = np.random.default_rng(10)
    rows = [
        (f"e{n}", "q", rater, int(rng.integers(1, 5))) for n in range(50) for rater in ("a", "b")
    ]
    plain = discreet.fit(frame_of(rows), facets="rater")
    coded = discreet.fit(frame_of([*rows, ("e1", "q", "c", 99)]), facets="rater", missing=99)
    assert plain.ladder.lowest == 1
    np.testing.assert_allclose(
        plain.facets["rater"].measure, coded.facets["rater"].measure[:2], atol=1e-12
    )


@pytest.mark.parametrize(
    ("structure", "code", "facts"),
    [
        ("item:step + judge", "structure_names_neither_item", {"name": "judge"}),
        ("rater", "structure_must_say_how", {}),
        ("item:step + step + rater", "structure_must_say_how", {}),
        ("item:step + rater:step", "structure_crosses_steps_facet", {}),
    ],
)
def test_a_structure_that_means_nothing_is_refused(structure, code, facts):
    with refused(BadUsage, code, **facts):
        describe_structure(structure, ["rater"])


def test_a_score_that_is_no_whole_number_is_named_with_its_row():
    with refused(BadResponses, "column_found_no_score", name="score", word="'two'"):
        discreet.fit(frame_of([("e1", "q", "a", "1"), ("e1", "q", "b", "two")]), facets="rater")


def test_drift_sums_to_zero_over_the_times_of_each_rater():
    ratings, _, _ = simulate_ratings(11, persons=400, raters=4)
    time = (ratings.person % 2).astype(np.int32)
    timed = Ratings.from_codes(
        ratings.person,
        ratings.item,
        ratings.score,
        facets={"rater": ratings.codes["rater"], "time": time},
    )
    estimate = discreet.fit(timed, structure="item:step + rater + rater:time")
    drift = estimate.facets["rater:time"]
    by_rater = {name.split(":")[0]: 0.0 for name in drift.levels}
    for name, value in zip(drift.levels, drift.measure, strict=True):
        by_rater[name.split(":")[0]] += value
    np.testing.assert_allclose(list(by_rater.values()), 0, atol=1e-8)
    # No severity changed: all drifts lie within their errors.
    assert (np.abs(drift.measure) < 4 * drift.se).all()


def test_drawn_scores_keep_every_total():
    ratings, _, _ = simulate_ratings(12)
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    drawn = redraw_ratings(design, ratings, np.zeros(design.n_columns), np.random.default_rng(0))
    totals = [np.bincount(r.person, r.score) for r in (ratings, drawn)]
    np.testing.assert_array_equal(*totals)
    assert (drawn.score != ratings.score).any()


def test_drawn_scores_follow_the_law_given_the_total():
    # Two ratings of one person, total 1: the odds that the first has the point are exp(d2 - d1).
    n = 4000
    person, rater = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    ratings = Ratings.from_codes(
        person, np.zeros(2 * n, int), np.tile([0, 1], n), facets={"rater": rater}
    )
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    thresholds = np.array([0.0, -0.7, 0.4])
    drawn = redraw_ratings(design, ratings, thresholds, np.random.default_rng(0))
    share = drawn.score[::2].mean()
    expected = 1 / (1 + math.exp(-0.7 - 0.4))
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))


@pytest.mark.parametrize("within", [None, "item"])
def test_raters_of_few_persons_have_model_based_errors(within):
    drawn = discreet.simulate_ratings(300, 3, 6, rng=np.random.default_rng(1), marks=3, steps=2)
    ratings = drawn.ratings
    rater = ratings.codes["rater"].copy()
    persons = np.unique(ratings.person[rater == 5])[:3]
    rater[(rater == 5) & np.isin(ratings.person, persons)] = 6
    few = Ratings.from_codes(ratings.person, ratings.item, ratings.score, facets={"rater": rater})
    facet = discreet.fit(few, within=within).facets["rater"]
    assert facet.persons[6] == 3
    assert facet.degrees[6] == 0
    assert facet.degrees[0] == facet.persons[0] - 1
    exact = discreet.fit(few, method="conditional").facets["rater"]
    assert facet.se[6] == pytest.approx(exact.se[6], rel=0.35)


def test_refits_draw_thresholds_of_very_many_raters_together():
    drawn = discreet.simulate_ratings(
        1500, 2, 700, rng=np.random.default_rng(2), marks=3, steps=3, severity_sd=1.0
    )
    truth = drawn.thresholds - drawn.thresholds.mean(axis=1, keepdims=True)

    def slope(estimate):
        spacing = estimate.thresholds - estimate.thresholds.mean(axis=1, keepdims=True)
        return (spacing * truth).sum() / (truth**2).sum()

    plain = discreet.fit(drawn.ratings, standard_errors=False)
    corrected = discreet.fit(drawn.ratings, standard_errors=False, refits=2)
    assert slope(plain) > 1.04
    assert abs(slope(corrected) - 1) < abs(slope(plain) - 1) / 2


def test_a_release_of_ratings_is_refused_with_its_reasons():
    ratings, _, _ = simulate_ratings(13)
    budget = discreet.Budget(epsilon=1.0)
    with refused(BadUsage, "found_ratings_whose_raters"):
        discreet.release(ratings, budget, items=["0", "1", "2"])


def test_an_estimate_with_facets_is_saved_and_read_back(tmp_path):
    ratings, _, _ = simulate_ratings(14)
    estimate = discreet.fit(ratings)
    estimate.save(tmp_path / "estimate.json")
    again = discreet.Estimate.load(tmp_path / "estimate.json")
    np.testing.assert_array_equal(again.facets["rater"].measure, estimate.facets["rater"].measure)
    assert again.facets["rater"].status == estimate.facets["rater"].status
    assert again.item_effect == estimate.item_effect


def test_a_long_table_whose_pairs_do_not_fit_into_memory_takes_the_sparse_solver(
    tmp_path, monkeypatch
):
    drawn = discreet.simulate_ratings(300, 6, 1, rng=np.random.default_rng(3), marks=1, steps=3)
    ratings, path = drawn.ratings, tmp_path / "answers.csv"
    rows = np.column_stack([ratings.person, ratings.item, ratings.score])
    path.write_text("person,item,response\n" + "\n".join(",".join(map(str, row)) for row in rows))
    plain = discreet.fit(path, method="refined")
    monkeypatch.setattr("discreet.counts.matrix.SPARSE_ITEMS", 1)
    monkeypatch.setattr("discreet.counts.SPARSE_ITEMS", 1, raising=False)
    monkeypatch.setattr("discreet.counts.matrix.available_memory", lambda: 0)
    estimate = discreet.fit(path)
    assert "sparse solver" in estimate.choice
    order = [estimate.items.index(item) for item in plain.items]
    np.testing.assert_allclose(estimate.thresholds[order], plain.thresholds, atol=0.05)
    with pytest.raises(OutOfReach):
        discreet.fit(path, method="spectral")
