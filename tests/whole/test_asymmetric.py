"""Formulas on cases where no two numbers are equal, so that no mistake cancels.

Every test here holds a result against its definition, written out in another way.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg, stats

import discreet
from discreet.adaptive import Exposure
from discreet.answers.responses import Responses
from discreet.answers.survey import SurveyDesign, apply_rao_scott
from discreet.api.counting import count_pairs
from discreet.api.ranks import rank
from discreet.api.scales import link_calibrations
from discreet.counts.folds import FoldCounts
from discreet.items import mislabelled
from discreet.items.dif import LARGE, NEGLIGIBLE, _classify
from discreet.items.group_differences import Contrasts, Points, contrast
from discreet.models import routing
from discreet.models import standard_errors as person_scores
from discreet.models.anchors import tell_displaced
from discreet.models.noisy import released
from discreet.models.refined import solve_refined
from discreet.models.standard_errors import folds
from discreet.models.standard_errors.complete import match_abilities
from discreet.persons import plausible
from discreet.planning.forecast import _scatter
from discreet.results.estimate import Estimate, Solution, Status, draw_errors
from discreet.scales.drift import _compare_latest
from discreet.scales.linking import _test_agreement
from discreet.scales.ranks import find_probability


def make_estimate(difficulty, se, covariance=None):
    m = len(difficulty)
    return Estimate(
        items=tuple(f"q{number}" for number in range(m)),
        difficulty=np.array(difficulty, dtype=float),
        se=np.array(se, dtype=float),
        status=(Status.ESTIMATED,) * m,
        method="refined",
        solution=Solution("made for a test", 0, 0.0),
        covariance=None if covariance is None else np.array(covariance, dtype=float),
    )


# -- links -------------------------------------------------------------------------------------


def link_by_hand(differences, variances):
    """Shift, standard error and scatter by DerSimonian and Laird, number by number."""
    weights = [1 / variance for variance in variances]
    pairs = list(zip(weights, differences, strict=True))
    mean = sum(w * d for w, d in pairs) / sum(weights)
    misfit = sum(w * (d - mean) ** 2 for w, d in pairs)
    room = sum(weights) - sum(w * w for w in weights) / sum(weights)
    scatter = max(0.0, (misfit - (len(weights) - 1)) / room)
    weights = [1 / (variance + scatter) for variance in variances]
    shift = sum(w * d for w, d in zip(weights, differences, strict=True)) / sum(weights)
    return shift, sum(weights) ** -0.5, scatter**0.5


@pytest.mark.parametrize(
    ("differences", "base_se", "new_se"),
    [
        ([0.0, 0.02, 0.35], [0.06, 0.09, 0.12], [0.05, 0.07, 0.10]),
        ([0.3, 0.31, 0.29, 0.3, 0.55, 0.08], [0.1] * 6, [0.05, 0.06, 0.07, 0.08, 0.09, 0.04]),
    ],
)
def test_the_error_of_a_link_includes_what_items_disagree(differences, base_se, new_se):
    """The middle items agree, so that the robust scatter is zero and only the misfit speaks."""
    new = np.linspace(-1, 1, len(differences))
    link = link_calibrations(
        make_estimate(new + differences, base_se), make_estimate(new, new_se), flag_at=4.0
    )
    variances = (np.array(base_se) ** 2 + np.array(new_se) ** 2).tolist()
    shift, se, scatter = link_by_hand(differences, variances)
    assert not link.flagged.any()
    assert scatter > 0.05
    assert (link.shift, link.se, link.scatter) == pytest.approx((shift, se, scatter))
    assert (link.shift_all, link.se_all) == pytest.approx((shift, se))
    assert link.drift_se == pytest.approx(np.sqrt(variances))
    assert link.z == pytest.approx(
        np.subtract(differences, shift) / np.hypot(link.drift_se, scatter)
    )
    without = sum(1 / variance for variance in variances) ** -0.5
    assert link.se > 1.1 * without


def compare_units_by_hand(first, second, first_se, second_se):
    """Slope of differences on means, less what errors in both make of it; what it leaves over."""
    m = len(first)
    a, b = np.array(first_se) ** 2, np.array(second_se) ** 2
    apart, centre = np.subtract(first, second), np.add(first, second) / 2
    apart, centre = apart - apart.mean(), centre - centre.mean()
    # An error of the first side moves the difference by itself and the mean by a half.
    shared = [(m - 1) / m * (own - other) / 2 for own, other in zip(a, b, strict=True)]
    room = (centre**2).sum() - (m - 1) / m * (a + b).sum() / 4
    slope = ((apart * centre).sum() - sum(shared)) / room
    misfit = sum((d - slope * c) ** 2 / v for d, c, v in zip(apart, centre, a + b, strict=True))
    scatter = max(misfit - (m - 2), 0) / (1 / (a + b)).sum()
    spread = (centre**2 * (a + b + scatter)).sum() + sum(part**2 for part in shared)
    return 2 * stats.norm.sf(abs(slope * room) / spread**0.5), stats.chi2.sf(misfit, m - 2)


@pytest.mark.parametrize("scatter", [0.0, 0.4])
@pytest.mark.parametrize("errors", [(0.30, 0.02), (0.02, 0.30), (0.15, 0.15)])
def test_units_are_compared_without_the_errors_that_both_sides_share(errors, scatter):
    rng = np.random.default_rng(2)
    first = np.array([-1.1, -0.6, -0.1, 0.2, 0.5, 1.3, 1.7])
    second = 1.2 * first + scatter * rng.normal(size=7) + 0.05 * rng.normal(size=7)
    first_se, second_se = errors[0] * np.linspace(0.6, 1.4, 7), errors[1] * np.linspace(1.5, 0.5, 7)
    used = np.ones(8, dtype=bool)
    used[3] = False
    found = _test_agreement(
        *((np.insert(b, 3, 9.0), np.insert(se, 3, 0.01))
          for b, se in ((first, first_se), (second, second_se))), used)  # fmt: skip
    unit, rest = compare_units_by_hand(first, second, first_se, second_se)
    assert 1e-12 < unit < 0.999
    assert (found.unit, found.scatter) == pytest.approx((unit, rest), rel=1e-9)


def test_the_latest_change_has_the_covariance_of_all_periods_in_it():
    values = np.array([0.2, np.nan, -0.1, 0.7])
    root = np.array([[0.3, 0.1, 0.0, 0.2], [0.0, 0.2, 0.1, 0.0], [0.1, 0.0, 0.4, 0.1],
                     [0.2, 0.3, 0.1, 0.5]])  # fmt: skip
    covariance = root @ root.T
    change, se = _compare_latest(values, covariance)
    weights = 1 / covariance[0, 0], 1 / covariance[2, 2]
    first, third = (weight / sum(weights) for weight in weights)
    assert first != pytest.approx(third, abs=0.1)
    assert change == pytest.approx(0.7 - first * 0.2 + third * 0.1)
    move = np.array([-first, 0.0, -third, 1.0])
    variance = sum(move[i] * move[j] * covariance[i, j] for i in range(4) for j in range(4))
    assert se == pytest.approx(variance**0.5)


# -- ranks -------------------------------------------------------------------------------------


def test_the_interval_of_a_gap_has_the_error_of_its_own_two_items():
    difficulty = [2.0, -1.0, 0.7, 0.1]
    covariance = np.array(
        [[0.09, 0.02, 0.01, 0.0], [0.02, 0.04, -0.01, 0.0], [0.01, -0.01, 0.16, 0.05],
         [0.0, 0.0, 0.05, 0.25]]
    )  # fmt: skip
    estimate = make_estimate(difficulty, np.sqrt(covariance.diagonal()), covariance)
    order = [0, 2, 3, 1]
    for top in (1, 2, 3):
        last, following = order[top - 1], order[top]
        ranking = rank(estimate, top)
        variance = covariance[last, last] + covariance[following, following]
        error = np.sqrt(variance - 2 * covariance[last, following])
        lower, upper = ranking.gap_interval
        assert ranking.gap == pytest.approx(difficulty[last] - difficulty[following])
        assert upper - lower == pytest.approx(2 * ranking.quantile * error)
        assert (upper + lower) / 2 == pytest.approx(ranking.gap)


# -- differential functioning ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "se", "letter"),
    [
        (0.70, 0.10, "C"),  # 0.70 - 0.43 is beyond 1.645 x 0.10
        (-0.70, 0.10, "C"),
        (0.70, 0.20, "B"),  # significant and large, but perhaps negligible
        (-0.70, 0.17, "B"),
        (0.70, 0.16, "C"),
        (0.63, 0.01, "B"),  # surely not negligible, but not large
        (0.64, 0.01, "C"),
        (0.43, 0.01, "B"),
        (0.42, 0.01, "A"),
        (0.70, 0.40, "A"),  # not significant
        (float("nan"), 0.1, ""),
    ],
)
def test_a_large_difference_is_of_class_c_only_if_it_is_surely_not_negligible(
    difference, se, letter
):
    assert pytest.approx((0.4255, 0.6383), abs=1e-4) == (NEGLIGIBLE, LARGE)
    contrasts = Contrasts(np.array([difference]), np.array([se]), np.array([True]))
    assert _classify(contrasts) == [letter]


# -- randomized response -----------------------------------------------------------------------


@pytest.mark.parametrize("share", [Fraction(1, 5), Fraction(2), Fraction(12)])
def test_flips_are_undone_exactly_on_average(monkeypatch, share):
    """With the expected counts of flipped answers the fit sees the counts of the true ones."""
    rng = np.random.default_rng(0)
    answers = (rng.random((40, 4)) < [0.9, 0.6, 0.3, 0.2]).astype(float)
    given = rng.random((40, 4)) < [1.0, 0.8, 0.7, 0.5]
    flip = 1 / (1 + np.exp(float(share)))
    seen_right = np.where(answers == 1, 1 - flip, flip) * given
    seen_wrong = given - seen_right
    both, one, none = (
        seen_right.T @ seen_right,
        seen_right.T @ seen_wrong,
        seen_wrong.T @ seen_wrong,
    )
    for matrix, diagonal in ((both, seen_right), (one, None), (none, seen_wrong)):
        np.fill_diagonal(matrix, 0.0 if diagonal is None else diagonal.sum(axis=0))
    fitted = {}

    def keep(total, disagreement, *, noise, standard_errors):
        fitted.update(total=total, disagreement=disagreement, noise=noise)

    monkeypatch.setattr(released, "fit_margins", keep)
    release = SimpleNamespace(
        settings={"answer_epsilon": share},
        values={"right_right": both, "right_wrong": one, "wrong_wrong": none},
        public=SimpleNamespace(persons=40, max_answers=4),
    )
    released.fit_flipped_answers(release, standard_errors=False)
    right, wrong = answers * given, (1 - answers) * given
    true = right.T @ wrong
    length = given.sum(axis=1)
    mean_length = 1 + (length * (length - 1)).sum() / length.sum()
    assert fitted["total"] == pytest.approx((true - true.T).sum(axis=1) / mean_length, abs=1e-9)
    assert fitted["disagreement"] == pytest.approx((true + true.T) / mean_length, abs=1e-9)
    variance = flip * (1 - flip) / (1 - 2 * flip) ** 2
    takers = (length * (length - 1)).sum() / 4 / (mean_length - 1)
    assert fitted["noise"].sigma_total == pytest.approx(np.sqrt(variance * takers))


# -- standard errors ---------------------------------------------------------------------------


def test_abilities_are_matched_to_the_mean_and_the_variance_of_scores():
    """Expected counts of N(0.4, 1.3) abilities, by quadrature, give that mean and spread back."""
    difficulty = np.array([-1.5, -0.2, 0.3, 0.9, 2.0])
    node, weight = np.polynomial.hermite_e.hermegauss(81)
    weight = weight / weight.sum()
    chance = 1 / (1 + np.exp(difficulty - (0.4 + 1.3 * node)[:, None]))
    right_wrong = (chance * weight[:, None]).T @ (1 - chance)
    np.fill_diagonal(right_wrong, 0.0)
    counts = SimpleNamespace(
        persons=1, items=tuple("abcde"), right=weight @ chance, right_wrong=right_wrong
    )
    assert match_abilities(counts, difficulty) == pytest.approx((0.4, 1.3), abs=1e-3)


def test_a_score_is_corrected_by_the_leverage_of_each_direction_that_a_person_informs():
    trace, answered = np.array([0.6, 0.6, 0.1, 5.0]), np.array([4.0, 2.0, 11.0, 3.0])
    expected = [1 / (1 - 0.2), 1 / (1 - 0.5), 1 / (1 - 0.01), 1 / (1 - 0.5)]
    assert person_scores._correction(trace, answered) == pytest.approx(expected)


# -- sampling designs --------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [3, 40])
def test_numbers_are_tested_by_the_two_moments_of_their_weighted_chi_squares(degrees):
    """Rao and Scott's second order: a sum of chi-squares with unequal weights, by Satterthwaite."""
    rng = np.random.default_rng(3)
    value, deviation = np.array([0.5, -0.3, 0.8]), rng.normal(size=(12, 3)) * [0.3, 0.1, 0.9]
    root = rng.normal(size=(3, 3))
    working = root @ root.T
    weight = linalg.eigvals(np.linalg.solve(working, deviation.T @ deviation)).real
    statistic = value @ np.linalg.solve(working, value)
    freedom = weight.sum() ** 2 / (weight**2).sum()
    assert freedom < 2.6
    found = apply_rao_scott(value, deviation, working, degrees)
    p = stats.f.sf(statistic / weight.sum(), freedom, freedom * degrees)
    assert (found.statistic, found.p_value) == pytest.approx((3 * statistic / weight.sum(), p))
    assert found.degrees == 3
    # A number that says what another one says counts once.
    twice = np.column_stack([deviation, deviation[:, 0]])
    working = np.pad(working, (0, 1), mode="wrap")
    again = apply_rao_scott(np.append(value, value[0]), twice, working, degrees)
    assert (again.degrees, again.p_value) == pytest.approx((3, p))


def test_a_design_has_the_variance_of_totals_about_the_means_of_their_strata():
    rng = np.random.default_rng(4)
    unit = np.array([0, 0, 0, 1, 2, 2, 3, 3, 4, 5, 5, 6])
    stratum_of = np.array([0, 0, 1, 1, 1, 2, 2])
    moves = rng.normal(loc=[1.0, 0.0], size=(12, 2))
    design = SurveyDesign(rng.uniform(0.5, 3, 12), unit, stratum_of)
    variance = np.zeros((2, 2))
    for stratum in range(3):
        totals = np.array(
            [moves[unit == psu].sum(axis=0) for psu in np.flatnonzero(stratum_of == stratum)]
        )
        n = len(totals)
        variance += n * np.cov(totals.T)  # n / (n - 1) times the sum of squares
    assert design.linearise(moves) == pytest.approx(variance)
    assert design.degrees == 7 - 3


def test_a_simple_sample_of_weights_has_the_variance_of_a_weighted_total():
    rng = np.random.default_rng(5)
    weight = np.array([2.0, 0.0, 1.0, 5.0, 3.0, 0.5])
    design = SurveyDesign(weight, np.arange(6), np.zeros(6, dtype=int))
    score = rng.normal(size=(6, 2)) + 0.7
    found = design.take_as_simple(weight[:, None] * score)
    some = weight > 0
    variance = np.cov(score[some].T, aweights=weight[some], bias=True) * weight.sum() ** 2 / (5 - 1)
    assert found.T @ found == pytest.approx(variance)


# -- plausible values --------------------------------------------------------------------------


def test_plausible_values_lie_evenly_around_the_nodes_of_the_grid():
    """Two kinds of persons whose posteriors are one node each: draws fill its cell."""
    nodes = np.array([-2.0, 0.0, 2.0])
    sure = np.where(np.eye(3, dtype=bool), 0.0, -1e4)
    grid = plausible._Grid(
        nodes=nodes,
        spacing=2.0,
        log_likelihood=sure,
        entry=np.array([1, 2]),
        design=np.ones((2, 1)),
        persons=np.array([2000, 4000]),
        kind=np.repeat([0, 1, 1], 2000),
    )
    drawn = plausible._draw(grid, np.zeros(1), 1.0, np.random.default_rng(0))
    for kind, centre in ((0, 0.0), (1, 2.0)):
        own = drawn[grid.kind == kind] - centre
        assert -1 <= own.min() < -0.95
        assert 0.95 < own.max() <= 1
        assert own.mean() == pytest.approx(0.0, abs=0.06)


def test_every_draw_has_its_own_coefficients_and_its_own_standard_deviation():
    covariance = np.array([[0.04, 0.01, 0.01], [0.01, 0.09, -0.02], [0.01, -0.02, 0.16]])
    rng = np.random.default_rng(1)
    drawn = [plausible._vary(np.array([1.0, -2.0]), 0.5, covariance, 0.1, rng)
             for _ in range(20_000)]  # fmt: skip
    moves = np.array([[*(beta - [1.0, -2.0]), np.log(sd / 0.5)] for beta, sd in drawn])
    # The smallest standard deviation cuts off what is below log(0.1 / 0.5).
    assert moves[:, 2].min() == pytest.approx(np.log(0.2))
    inside = moves[moves[:, 2] > np.log(0.2)]
    assert np.cov(inside.T) == pytest.approx(covariance, abs=0.01)
    assert moves.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.01)


def test_the_moments_of_a_posterior_are_those_of_its_nodes():
    """Two kinds; everything else of the regression is made of these moments."""
    rng = np.random.default_rng(2)
    nodes = np.linspace(-3, 3, 7)
    grid = plausible._Grid(
        nodes=nodes,
        spacing=1.0,
        log_likelihood=rng.normal(size=(2, 7)),
        entry=np.array([1, 0]),
        design=np.array([[1.0, 0.0], [1.0, 2.0]]),
        persons=np.array([3, 5]),
        kind=np.array([0, 1]),
    )
    beta, sd = np.array([0.3, -0.4]), 1.3
    found = plausible._moments(grid, beta, sd, 4)
    for kind in range(2):
        mean = grid.design[kind] @ beta
        chance = np.exp(grid.log_likelihood[grid.entry[kind]]) * stats.norm.pdf(nodes, mean, sd)
        chance /= chance.sum()
        expected = [chance @ (nodes - mean) ** power for power in (1, 2, 3, 4)]
        assert found[:, kind] == pytest.approx(expected)


# -- folds -------------------------------------------------------------------------------------


def test_folds_of_unequal_size_count_by_the_share_of_persons_who_are_left(monkeypatch):
    """One fold has most of the persons: its move counts least, as one minus its share says."""
    rng = np.random.default_rng(4)
    answers = (rng.normal(size=(600, 1)) > rng.normal(size=(600, 5))).astype(float)
    whole = count_pairs(Responses.from_array(answers), folds=16).folds
    parts = [np.arange(10), np.array([10]), np.array([11, 12]), np.array([13, 14, 15])]

    def join(values):
        return np.stack([values[part].sum(axis=0) for part in parts])

    unequal = FoldCounts(
        4, join(whole.right_wrong), join(whole.answers), join(whole.persons), whole.weighting
    )
    monkeypatch.setattr(folds, "FEWEST_FOLDS", 2)
    counts = replace(count_pairs(Responses.from_array(answers)), folds=unequal)
    estimate = discreet.fit(counts, method="refined")
    moves = []
    for fold in unequal.right_wrong:
        rest = (unequal.right_wrong.sum(axis=0) - fold).astype(float)
        moves.append(solve_refined(rest)[0] - estimate.difficulty)
    left = 1 - unequal.persons / unequal.persons.sum()
    assert left.min() < 0.5 < 0.9 < left.max()
    anew = np.sqrt((left[:, None] * np.array(moves) ** 2).sum(axis=0))
    assert estimate.se == pytest.approx(anew, rel=0.03)


# -- groups ------------------------------------------------------------------------------------


def test_a_difference_between_groups_has_the_variance_of_items_less_their_anchors():
    rng = np.random.default_rng(5)
    anchors = np.array([True, False, True, True])
    points, variance = [], np.zeros(4)
    centring = np.eye(4) - anchors / anchors.sum()
    for label in ("first", "second"):
        root = rng.normal(size=(4, 4))
        points.append(Points(label, rng.normal(size=4), root @ root.T, ("estimated",) * 4))
        variance += (centring @ points[-1].covariance @ centring.T).diagonal()
    contrasts, _ = contrast(*points, anchors)
    centred = [centring @ group.value for group in points]
    assert contrasts.difference == pytest.approx(centred[1] - centred[0])
    assert contrasts.se == pytest.approx(np.sqrt(variance))


# -- adaptive tests ----------------------------------------------------------------------------


def test_an_item_rests_as_soon_as_it_was_given_to_its_share_of_persons():
    exposure = Exposure(rate=0.25, sessions=8, given={"rested": 1, "due": 2, "often": 3})
    assert [exposure.allows(item) for item in ("new", "rested", "due", "often")] == [
        *(True, True),
        *(False, False),
    ]
    assert exposure.after(["rested"]).given == {"rested": 2, "due": 2, "often": 3}
    assert exposure.after([]).allows("due")  # 2 of 9 persons are less than a quarter


# -- moved calibrations, bars of rankings ------------------------------------------------------


def test_a_moved_calibration_has_the_error_of_the_link_in_common():
    covariance = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, -0.02], [0.0, -0.02, 0.16]])
    base = make_estimate([0.5, 0.1, -0.9], [0.1, 0.2, 0.3])
    new = make_estimate([0.2, 0.0, -1.0], np.sqrt(covariance.diagonal()), covariance)
    link = link_calibrations(base, new)
    moved = link.move(new)
    assert moved.covariance == pytest.approx(covariance + link.se**2)
    assert moved.se == pytest.approx(np.sqrt(covariance.diagonal() + link.se**2))
    # A difference between two moved items is as sure as before.
    apart = moved.covariance[0, 0] + moved.covariance[1, 1] - 2 * moved.covariance[0, 1]
    assert apart == pytest.approx(0.04 + 0.09 - 0.02)


@pytest.mark.parametrize(("top", "comparisons"), [(1, 8), (2, 14), (4, 20), (7, 14)])
def test_a_top_needs_as_much_as_the_comparisons_across_its_line(top, comparisons):
    estimate = make_estimate(np.linspace(2, -2, 9), np.linspace(0.1, 0.3, 9))
    bar = NormalDist().inv_cdf(1 - 0.05 / comparisons)
    assert rank(estimate, top).bar == pytest.approx(bar)


# -- routing -----------------------------------------------------------------------------------


def test_the_dispersion_of_scores_has_the_freedom_that_the_features_leave():
    rng = np.random.default_rng(6)
    difficulty = rng.normal(size=30)
    chosen = [np.sort(rng.choice(30, rng.integers(6, 12), replace=False)) for _ in range(40)]
    starts = np.concatenate([[0], np.cumsum([len(items) for items in chosen])])
    rows = routing._Rows(starts, np.concatenate(chosen), rng.random(starts[-1]) < 0.5)
    thresholds = difficulty[:, None]
    ratio, error = routing._measure_dispersion(rows, thresholds)
    b, answered = difficulty[rows.item], np.diff(starts)
    score = rows.sums(rows.score)
    spread = np.sqrt(routing._score_variance(rows, thresholds, answered, score))
    design = routing._describe_items(rows, b, answered) / spread[:, None]
    rank_ = np.linalg.matrix_rank(design)
    left = score / spread - design @ np.linalg.pinv(design) @ (score / spread)
    assert 40 - rank_ <= 32
    assert ratio == pytest.approx((left**2).sum() / (40 - rank_))
    assert error == pytest.approx((left**2).std() / np.sqrt(40 - rank_))


def test_the_smallest_of_several_p_values_is_multiplied_by_their_number(monkeypatch):
    """Everybody answers three items; a third also easier, a third also harder ones."""
    person = np.repeat(np.arange(300), np.repeat([3, 4, 4], 100))
    others = np.repeat([3, 4], 100)
    extra = iter(others.tolist())
    item = [[0, 1, 2]] * 100 + [[0, 1, 2, next(extra)] for _ in range(200)]
    starts = np.concatenate([[0], np.cumsum(np.bincount(person))])
    rows = routing._Rows(starts, np.concatenate(item), np.arange(starts[-1]) % 2 == 0)
    found = iter([0.2, 0.03, 0.5])
    monkeypatch.setattr(routing, "_test_mixture", lambda *_: next(found))
    thresholds = np.array([0.0, 0.1, 0.2, -1.0, 1.0])[:, None]
    assert routing._test_core(rows, thresholds) == pytest.approx(0.09)


# -- probabilities and draws with degrees of freedom -------------------------------------------


def test_the_probability_of_an_order_is_students_where_errors_have_degrees_of_freedom():
    from scipy.stats import t

    for degrees in (2, 7, 31):
        found = find_probability(0.6, 0.4, degrees)
        assert found == pytest.approx(t.cdf(1.5, degrees), rel=1e-9)
        assert find_probability(-0.6, 0.4, degrees) == pytest.approx(1 - found)
    assert find_probability(0.6, 0.4, 2) < find_probability(0.6, 0.4, 31) < 0.9333


def test_students_errors_of_all_items_have_one_denominator():
    """Errors of independent items are large together: the folds that say so are the same."""
    draws = draw_errors(np.diag([1.0, 4.0]), None, degrees=2)
    size = np.log(np.abs(draws))
    # trigamma(1) / 4 of pi^2 / 8 + trigamma(1) / 4; without a common denominator zero.
    assert np.corrcoef(size.T)[0, 1] == pytest.approx(0.25, abs=0.03)


def test_the_reliability_of_items_is_what_squared_errors_leave_of_their_variance():
    estimate = make_estimate([1.0, 0.2, -0.4, -0.8], [0.1, 0.2, 0.3, 0.5])
    variance = sum((value - 0.0) ** 2 for value in (1.0, 0.2, -0.4, -0.8)) / 3
    error = (0.01 + 0.04 + 0.09 + 0.25) / 4
    assert estimate.item_reliability == pytest.approx(1 - error / variance)


# -- plans -------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [3, 6, 20])
def test_items_of_equal_difficulty_scatter_as_their_slope_says(answers):
    """Two pairs of one item share half of their variance, whatever the ability."""
    node = np.array([-1.0, 0.2, 1.7])
    right = np.tile(1 / (1 + np.exp(0.3 - node)), (5, 1))
    weight = np.array([0.2, 0.5, 0.3])
    assert _scatter(np.full(5, 0.3), right, 1 - right, weight, answers) == pytest.approx(np.ones(5))


def test_unequal_difficulties_scatter_as_enumerated_answers_do():
    """Three items and one ability: all eight patterns, each with its probability."""
    difficulty, ability = np.array([-0.8, 0.1, 1.3]), 0.4
    chance = 1 / (1 + np.exp(difficulty - ability))
    tanh = np.tanh((difficulty[None, :] - difficulty[:, None]) / 2)
    total, slope = np.zeros((2, 3))
    for pattern in product((0, 1), repeat=3):
        x = np.array(pattern)
        share = np.prod(np.where(x == 1, chance, 1 - chance))
        for i in range(3):
            own = [
                (1 - tanh[i, j]) * x[i] * (1 - x[j]) - (1 + tanh[i, j]) * x[j] * (1 - x[i])
                for j in range(3)
                if j != i
            ]
            total[i] += share * np.mean(own) ** 2
            apart = [(1 - tanh[i, j] ** 2) * (x[i] != x[j]) for j in range(3) if j != i]
            slope[i] += share * np.mean(apart) / 2
    # A person's mean over two other items has 2 / 3 of the weight that the ratio is about.
    expected = total / slope * 2 / 3
    found = _scatter(difficulty, chance[:, None], 1 - chance[:, None], np.ones(1), 3)
    assert found == pytest.approx(expected, rel=0.02)


# -- mislabelled items -------------------------------------------------------------------------


def test_slopes_are_weighed_by_likelihoods_with_the_intercept_integrated_out():
    rng = np.random.default_rng(7)
    ability = rng.normal(size=(24, 1))
    half = 12
    n = rng.integers(1, 4, size=(24, 1)).astype(float)
    right = n.copy()
    right[half:] = 0
    found = np.array(mislabelled._trace_slopes(ability, n, right, 1.0))[:, 0]
    grid = np.linspace(-12, 12, 4001)
    exact = []
    for slope in np.exp(mislabelled.LOG_SLOPES):
        lean = slope * ability + grid
        log = (right * lean).sum(axis=0) - (n * np.logaddexp(0, lean)).sum(axis=0)
        log -= (grid / mislabelled.INTERCEPT_SD) ** 2 / 2
        exact.append(np.log(np.exp(log - log.max()).sum()) + log.max())
    apart = (found - found[0]) - (np.array(exact) - exact[0])
    assert np.abs(apart).max() < 0.06


def test_suspects_are_flagged_while_the_mean_chance_of_a_false_alarm_is_small():
    probability = np.array([0.90, 0.2, 0.99, 0.84, 0.55])
    # Chances of being sound, the surest first: .01, .10, .16; means .01, .055, .09.
    assert mislabelled._flag(probability, 0.06).tolist() == [True, False, True, False, False]
    assert mislabelled._flag(probability, 0.095).tolist() == [True, False, True, True, False]
    assert mislabelled._flag(probability, 0.9).tolist() == [True, False, True, True, True]


# -- anchors -----------------------------------------------------------------------------------


def test_an_anchor_is_displaced_if_it_is_far_off_and_surely_so():
    moved, error = np.array([0.6, 0.6, -0.9, 0.4, np.nan]), np.array([0.1, 0.3, 0.2, 0.01, 0.1])
    (notice,) = tell_displaced(tuple("abcde"), moved, error)
    assert notice.items == ("a", "c")


def test_the_scores_of_anchors_vary_about_their_mean(monkeypatch):
    """Anchors that the answers disagree with pull all one way; that is no variance."""
    monkeypatch.setattr(person_scores, "MAX_LEVERAGE", 0.0)
    rng = np.random.default_rng(8)
    answers = (rng.normal(size=(80, 1)) > [-1.0, -0.3, 0.2, 1.1]).astype(float)
    answers = np.abs(answers - (rng.random((80, 4)) < 0.2))
    responses = Responses.from_array(answers)
    anchors = {"0": 1.0, "1": -1.0}
    anchored = discreet.fit(responses, anchors=anchors, method="refined")
    b = anchored.difficulty
    scores = np.zeros((80, 4))
    for person, row in enumerate(answers):
        for i in np.flatnonzero(row == 1):
            for j in np.flatnonzero(row == 0):
                pull = 1 / (1 + np.exp(b[j] - b[i]))
                scores[person, i] += pull
                scores[person, j] -= pull
    centred = scores - scores.mean(axis=0)
    assert np.abs(scores.sum(axis=0)[:2]).min() > 5
    both = count_pairs(responses).right_wrong
    chance = 1 / (1 + np.exp(b[:, None] - b))
    weight = (both + both.T) * chance * chance.T
    curvature = np.diag(weight.sum(axis=1)) - weight
    free = [0, 2, 3]
    along = np.linalg.inv(curvature[np.ix_(free, free)])[0]
    variance = along @ (centred.T @ centred)[np.ix_(free, free)] @ along
    assert anchored.displacement_se[0] == pytest.approx(np.sqrt(variance), rel=1e-9)
