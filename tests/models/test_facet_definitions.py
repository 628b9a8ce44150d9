"""Pairs of ratings, their links and errors, each against its definition written anew."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.answers.ratings import Ratings
from discreet.models.facets import kernels
from discreet.models.facets.draws import draw_model_variances, redraw_ratings
from discreet.models.facets.existence import SAME_MOVE, _keep_largest, _take_pairs
from discreet.models.facets.given_totals import maximise_given_totals
from discreet.models.facets.standard_errors import _control
from discreet.models.facets.structure import (
    PairedBatches,
    _combine,
    describe_structure,
    plan_design,
)


def draw_ratings(persons=30, seed=61):
    """Ratings with gaps, so that groups have unequal sizes; three items, four raters."""
    rng = np.random.default_rng(seed)
    drawn = discreet.simulate_ratings(persons, 3, 4, rng=rng, marks=3, steps=2).ratings
    return drawn.select(np.flatnonzero(rng.random(drawn.n_ratings) < 0.8))


def plan(ratings, within=None):
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    (pairs,) = PairedBatches(design, ratings.batches(), within)
    return design, pairs


def list_by_hand(design, ratings, within):
    """Yield a and b where a passed a step and b failed one, of the same group."""
    score = design.recode(ratings)
    group = [(p, i) if within else p for p, i in zip(ratings.person, ratings.item, strict=True)]
    for a, b in itertools.permutations(range(ratings.n_ratings), 2):
        if group[a] == group[b] and score[a] > 0 and score[b] < design.steps[ratings.item[b]]:
            yield a, b


@pytest.mark.parametrize("within", [None, "item"])
def test_the_rows_of_the_linear_programme_are_those_of_all_pairs(within):
    ratings = draw_ratings()
    design, pairs = plan(ratings, within)
    score, levels = design.recode(ratings), design.find_levels(ratings)[:, 0]
    first = design.first_node[ratings.item]
    expected = {
        (first[a] + score[a] - 1, levels[a], first[b] + score[b], levels[b])
        for a, b in list_by_hand(design, ratings, within)
    }
    assert {tuple(row) for row in _take_pairs(pairs).tolist()} == expected


@pytest.mark.parametrize("most", [1, 3, 1 << 30])
def test_links_are_the_first_from_and_to_each_and_no_more_than_that(most):
    ratings = draw_ratings()
    design, pairs = plan(ratings)
    codes, labels = (pairs.passed, pairs.failed), np.arange(design.n_nodes) // 2
    expected = []
    leaving, arriving = np.zeros((2, design.n_nodes), int)
    for a, b in list_by_hand(design, ratings, None):
        u, v = pairs.passed[a], pairs.failed[b]
        if labels[u] != labels[v] and (leaving[u] < most or arriving[v] < most):
            leaving[u] += 1
            arriving[v] += 1
            expected.append((u, v))
    links = np.empty((2, 10_000), np.int32)
    n = kernels.list_links(pairs.groups.start, codes, labels, most, links)
    assert n == len(expected)
    assert [tuple(link) for link in links[:, :n].T] == expected
    # Where there is no room for all, those that fit are written and all are counted.
    few = np.full((2, 2), -1, np.int32)
    assert kernels.list_links(pairs.groups.start, codes, labels, most, few) == n
    assert few.T.tolist() == [list(link) for link in expected[:2]]


def test_a_rating_without_a_step_has_no_columns_and_no_score():
    ratings = draw_ratings()
    design, _ = plan(ratings)
    keeps = np.ones(design.n_nodes, bool)
    keeps[design.first_node[1] : design.first_node[2]] = False
    held = design.held[: design.n_columns - (~keeps).sum()]
    smaller = type(design)(**vars_of(design) | {"keeps_node": keeps, "held": held})
    pairs = smaller.pair(ratings, None)
    table = pairs.stack_columns()
    left_out = ratings.item == 1
    assert (table[left_out] == -1).all()
    assert (table[~left_out, 2] >= 0).all()
    thresholds = np.random.default_rng(1).normal(size=design.n_columns)
    scores = pairs.score_ratings(thresholds)
    assert (scores[left_out] == 0).all()
    signs = np.random.default_rng(2).choice([-1, 1], (ratings.n_persons, 5)).astype(np.int8)
    each = pairs.person_scores(scores).toarray()
    assert pairs.sum_persons(scores, signs) == pytest.approx(each.T @ signs)
    assert each.sum(axis=0) == pytest.approx(pairs.score(thresholds)[1])


def vars_of(design):
    names = ("description", "items", "kept", "terms", "keeps_node", "feature_values")
    return {name: getattr(design, name) for name in names}


def test_combinations_of_facets_are_numbered_like_digits():
    ratings = draw_ratings(5)
    codes = _combine(ratings, ("item", "rater"))
    assert codes.tolist() == (ratings.item * 4 + ratings.codes["rater"]).tolist()


def test_what_moves_as_most_do_is_kept():
    moves = np.array([0.0, 0.3, 0.3, 0.3 + SAME_MOVE / 10, -1.0])
    assert _keep_largest(moves).tolist() == [False, True, True, True, False]
    assert _keep_largest(np.array([0.1, 0.2])).tolist() == [False, False]
    assert _keep_largest(np.array([0.7])).tolist() == [True]


# -- laws --------------------------------------------------------------------------------------


def test_drawn_scores_have_the_law_of_all_scores_with_the_same_total():
    """Two items with two and one steps by two raters: every pattern of a total of 3, counted."""
    n = 20_000
    block = [(0, 0, 2), (0, 1, 0), (1, 0, 1), (1, 1, 0)]
    rows = np.array([(p, *row) for p in range(n) for row in block])
    rows[4:6, 3] = 1  # one person has two ones instead, so that all categories occur
    ratings = Ratings.from_codes(*rows.T[[0, 1, 3]], facets={"rater": rows[:, 2]})
    design = plan_design(ratings.batches(), describe_structure(None, ["rater"]))
    thresholds = np.array([-0.6, 0.9, 0.2, 0.5, -0.4])  # three steps, two raters
    assert design.n_columns == 5
    drawn = redraw_ratings(design, ratings, thresholds, np.random.default_rng(3))
    weights = {}
    for scores in itertools.product(range(3), range(3), range(2), range(2)):
        if sum(scores) == 3:
            exponent = 0.0
            for (item, rater, _), score in zip(block, scores, strict=True):
                for step in range(score):
                    exponent -= thresholds[design.first_node[item] + step] + thresholds[3 + rater]
            weights[scores] = np.exp(exponent)
    total = sum(weights.values())
    found = drawn.score.reshape(n, 4)
    patterns, counts = np.unique(found, axis=0, return_counts=True)
    assert len(patterns) == len(weights)
    expected = [n * weights[tuple(pattern)] / total for pattern in patterns.tolist()]
    assert stats.chisquare(counts, expected).pvalue > 0.001


def test_conditional_errors_are_those_of_the_curvature_of_the_likelihood():
    """Second derivatives by differences of the gradient, inverted where parameters are free."""
    ratings = draw_ratings(60)
    estimate = discreet.fit(ratings, method="conditional")
    design, _ = plan(ratings)
    solution = maximise_given_totals(design, ratings)
    columns = design.first_node[ratings.item].astype(np.int32), design.find_levels(ratings)
    most = np.asarray(design.steps, np.int32)[ratings.item]
    start = np.searchsorted(ratings.person, np.arange(ratings.n_persons + 1))
    facts = (*columns, most, design.recode(ratings))
    size = design.n_columns

    def gradient(thresholds):
        found = np.zeros(size), np.zeros((size, size))
        kernels.condition_persons(start, facts, np.eye(size), thresholds, found)
        return found[0]

    step = 1e-5 * np.eye(size)
    at = solution.thresholds
    ends = [gradient(at + move) - gradient(at - move) for move in step]
    curvature = -np.array(ends) / 2e-5
    inverse = np.linalg.pinv((curvature + curvature.T) / 2, rcond=1e-6)
    # Steps less the mean location, severities less their mean.
    locate = np.array([(design.node_item == i) / design.steps[i] for i in range(3)])
    centre = np.zeros((size, size))
    centre[: design.n_nodes, : design.n_nodes] = np.eye(design.n_nodes) - locate.mean(axis=0)
    centre[design.n_nodes :, design.n_nodes :] = np.eye(4) - 1 / 4
    variance = (centre @ inverse @ centre.T).diagonal()
    errors = np.concatenate([estimate.threshold_se.ravel(), estimate.facets["rater"].se])
    assert errors == pytest.approx(np.sqrt(variance), rel=1e-4)


@pytest.mark.parametrize("within", [None, "item"])
def test_robust_errors_are_the_sums_over_persons_of_what_each_one_moves(within):
    """The sandwich in matrices; within items the locations follow with the first stage held."""
    ratings = draw_ratings(60)
    estimate = discreet.fit(ratings, within=within)
    design, all_pairs = plan(ratings)
    size, nodes = design.n_columns, design.n_nodes
    locate = np.zeros((3, size))
    for item in range(3):
        locate[item, :nodes] = (design.node_item == item) / design.steps[item]
    at = np.concatenate([estimate.thresholds.ravel(), estimate.facets["rater"].measure])

    def invert(curvature, free):
        basis = np.linalg.qr(free)[0]
        return basis @ np.linalg.pinv(basis.T @ curvature @ basis, rcond=1e-9) @ basis.T

    outer = all_pairs.second_derivatives(at, size)
    score = all_pairs.person_scores(all_pairs.score_ratings(at)).toarray().T
    if within is None:
        moves = invert(outer, np.eye(size)) @ score
    else:
        _, pairs = plan(ratings, "item")
        # Within an item steps add up to nothing, and so do severities.
        spacing = np.eye(size) - np.linalg.pinv(locate) @ locate
        first = invert(pairs.second_derivatives(at, size), spacing)
        moves = first @ pairs.person_scores(pairs.score_ratings(at)).toarray().T
        whole = np.zeros((size, 3))
        whole[:nodes] = design.node_item[:, None] == np.arange(3)
        moves = moves + invert(outer, whole) @ (score - outer @ moves)
    moves[:nodes] -= (locate @ moves).mean(axis=0)
    moves[nodes:] -= moves[nodes:].mean(axis=0)
    n = ratings.n_persons
    error = np.sqrt(n / (n - 1) * (moves**2).sum(axis=1))
    # A level of few persons has too small a sum of squares: once more by its own persons.
    persons = estimate.facets["rater"].persons
    error[nodes:] *= np.sqrt(persons / (persons - 1))
    errors = np.concatenate([estimate.threshold_se.ravel(), estimate.facets["rater"].se])
    assert errors == pytest.approx(error, rel=1e-5)
    assert estimate.se == pytest.approx(
        np.sqrt(n / (n - 1) * ((locate @ moves) ** 2).sum(axis=1)), rel=1e-5
    )


def test_draws_are_steadied_by_scores_whose_variances_are_known():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(3, 400)) * [[1.0], [2.0], [0.5]]
    moved = 0.3 * scores + rng.normal(0, [[0.01], [0.02], [1.0]], (3, 400))
    squares = np.array([1.1, 3.9, 0.25])
    found = _control(moved, scores, squares)
    for row in (0, 1):  # the draws follow the scores
        ratio = (moved[row] ** 2).mean() / (scores[row] ** 2).mean()
        assert found[row] == pytest.approx(ratio * squares[row])
    assert found[2] == pytest.approx((moved[2] ** 2).mean())
    assert _control(np.zeros((1, 5)), np.zeros((1, 5)), np.zeros(1)).tolist() == [0.0]


@pytest.mark.parametrize(("persons", "degrees"), [(4, 0), (5, 4)])
def test_levels_of_fewer_than_five_persons_have_errors_of_the_model(persons, degrees):
    ratings = draw_ratings(80)
    rater = ratings.codes["rater"].copy()
    mine = np.unique(ratings.person[rater == 3])[:persons]
    rater[(rater == 3) & np.isin(ratings.person, mine)] = 4
    some = Ratings.from_codes(ratings.person, ratings.item, ratings.score, facets={"rater": rater})
    facet = discreet.fit(some, within=None).facets["rater"]
    assert (facet.persons[4], facet.degrees[4]) == (persons, degrees)
    half = (stats.t(degrees) if degrees else stats.norm()).isf(0.025) * facet.se[4]
    assert facet.interval()[4] == pytest.approx(facet.measure[4] + np.array([-half, half]))


def test_drawn_variances_are_those_of_the_mean_of_squares():
    """With one draw whose scores are known, the variance is what these move, squared."""
    ratings = draw_ratings(40)
    design, pairs = plan(ratings)
    seen = {}

    def solve(vectors, accuracy):
        seen["sums"] = vectors
        return 2 * vectors

    solution = SimpleNamespace(
        thresholds=np.zeros(design.n_columns), equations=SimpleNamespace(solve=solve)
    )
    stage = SimpleNamespace(
        batches=[pairs], structure=SimpleNamespace(basis=np.eye(design.n_columns)),
        solution=solution,
    )  # fmt: skip
    few = np.zeros(design.n_columns, bool)
    few[-1] = True
    variance = draw_model_variances(stage, design, ratings, None, few)
    assert seen["sums"].shape == (design.n_columns, 64)
    assert variance == pytest.approx(4 * (seen["sums"] ** 2).mean(axis=1))
    # Persons of the level are drawn by the model, the others enter with signs: both vary.
    exact = pairs.person_scores(pairs.score_ratings(np.zeros(design.n_columns))).toarray()
    drawn = np.unique(ratings.person[ratings.codes["rater"] == 3])
    others = np.setdiff1d(np.arange(ratings.n_persons), drawn)
    without = exact[others]
    assert len(others) > 5
    assert (seen["sums"] ** 2).mean() > 0.6 * (without**2).sum(axis=0).mean()
