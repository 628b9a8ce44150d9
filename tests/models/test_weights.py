"""Sampling weights: the same numbers as repeated persons, as R's survey, as written formulas."""

import pickle
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import discreet
from commandline import discreet as run
from discreet.analysis import (
    compare_step_models,
    correlate_residuals,
    find_dimensions,
    find_group_means,
    measure_fit,
    run_andersen,
    run_martin_loef,
    simulate_cutoffs,
)
from discreet.answers.responses import Responses
from discreet.answers.survey import Replication
from discreet.errors import BadResponses, BadUsage, NotConverged, WarningKind
from discreet.items.fit import MEAN_SQUARES, SLOPES
from discreet.secure import SystemSource
from refusals import refused

METHODS = ["conditional", "refined", "spectral", "marginal"]


def draw_answers(seed=7, persons=120, items=6, steps=1, missing=0.15):
    """Unequal items, some answers missing; schools in three strata of different sizes."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0.3, 1.4, persons)
    threshold = np.linspace(-0.5, 1.2, items)[:, None] + np.linspace(-0.6, 0.8, steps)
    if steps == 1:
        threshold = np.linspace(-1.1, 1.4, items)[:, None]
    points = np.cumsum(ability[:, None, None] - threshold, axis=2)
    weight = np.exp(np.concatenate([np.zeros((persons, items, 1)), points], axis=2))
    chance = np.cumsum(weight / weight.sum(axis=2, keepdims=True), axis=2)
    cells = (rng.random((persons, items, 1)) > chance[:, :, :-1]).sum(axis=2)
    cells = cells.astype(object)
    cells[rng.random((persons, items)) < missing] = None
    return cells


def make_table(cells, **columns):
    answers = {f"q{i}": list(column) for i, column in enumerate(cells.T)}
    return pa.table({"id": [f"p{i}" for i in range(len(cells))], **columns, **answers})


def describe_schools(persons):
    school = np.arange(persons) // 6
    return {"s": (np.arange(persons) % 7 > 2).astype(int) + 1, "school": school}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("steps", "model"), [(1, "auto"), (3, "partial-credit"), (3, "rating-scale")]
)
def test_whole_weights_are_repeated_persons(method, steps, model):
    cells = draw_answers(steps=steps)
    weight = np.random.default_rng(1).integers(0, 5, len(cells))
    again = np.repeat(np.arange(len(cells)), weight)
    weighted = discreet.fit(make_table(cells, w=weight), weight="w", method=method, model=model)
    plain = discreet.fit(
        make_table(cells[again], of=again), method=method, model=model, ignore="of"
    )
    np.testing.assert_allclose(weighted.thresholds, plain.thresholds, atol=1e-8)
    repeated = discreet.fit(
        make_table(cells[again], of=again, w=np.ones(len(again))),
        **{"weight": "w", "cluster": "of", "method": method, "model": model},
    )
    # The persons of weight zero are PSUs too; the factor n / (n - 1) tells the two apart.
    n, inside = len(cells), int((weight > 0).sum())
    factor = np.sqrt(n / (n - 1) / (inside / (inside - 1)))
    # The scores of a spectral rating scale, a projection, do not add up to zero.
    tolerance = 2e-3 if (method, model) == ("spectral", "rating-scale") else 1e-6
    np.testing.assert_allclose(
        weighted.threshold_se, factor * repeated.threshold_se, rtol=tolerance
    )
    assert (weighted.degrees, repeated.degrees) == (n - 1, inside - 1)


@pytest.mark.parametrize("method", METHODS)
def test_weights_work_beside_anchors(method):
    cells = draw_answers()
    weight = np.random.default_rng(2).integers(1, 4, len(cells))
    again = np.repeat(np.arange(len(cells)), weight)
    anchors = {"q1": -0.5, "q4": 0.7}
    options = {"method": method, "anchors": anchors}
    weighted = discreet.fit(make_table(cells, w=weight), weight="w", **options)
    plain = discreet.fit(make_table(cells[again]), **options)
    np.testing.assert_allclose(weighted.difficulty, plain.difficulty, atol=1e-8)
    assert weighted.difficulty[1] == -0.5
    assert weighted.se[1] == 0
    assert weighted.se[0] > 0
    np.testing.assert_allclose(weighted.displacement, plain.displacement, atol=1e-6)
    free = discreet.fit(make_table(cells, w=weight), weight="w", method=method, anchors={"q4": 0.7})
    np.testing.assert_allclose(weighted.displacement[1], free.difficulty[1] + 0.5, atol=1e-8)
    np.testing.assert_allclose(weighted.displacement_se[1], free.se[1], rtol=1e-8)


def test_an_anchor_without_a_displacement_says_why():
    cells = draw_answers()
    n = len(cells)
    table = make_table(cells, w=[1.0] * n, r1=[2.0] * n, r2=[0.5] * n)
    design = {"weight": "w", "replicates": ["r1", "r2"], "replication": "jk1"}
    fitted = discreet.fit(table, anchors={"q1": -0.5, "q4": 0.7}, **design)
    assert np.isnan(fitted.displacement).all()
    assert fitted.displacement_reason[1] == "not computed with replicate weights"


def test_empirical_abilities_are_refused_with_weights():
    table = make_table(draw_answers(), w=[1.0] * 120)
    with refused(BadUsage, "weights_abilities_marginal_normal"):
        discreet.fit(table, weight="w", method="marginal", ability="empirical")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [1, 3])
def test_linearised_errors_are_those_of_small_changes_of_weights(method, steps):
    cells = draw_answers(persons=60, steps=steps, missing=0.1)
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.5, 3.0, len(cells))
    design = describe_schools(len(cells))
    options = {"method": method, "model": "partial-credit" if steps > 1 else "auto"}

    def find(weights):
        return discreet.fit(make_table(cells, w=weights), weight="w", **options).difficulty

    def move(school, step=1e-4):
        """Return what the weights of a school's persons move, for one part of them all."""
        inside = weight * (design["s"] == school[0]) * (design["school"] == school[1])
        return (find(weight + step * inside) - find(weight - step * inside)) / (2 * step)

    variance, units = 0.0, 0
    for stratum in np.unique(design["s"]):
        schools = np.unique(design["school"][design["s"] == stratum])
        totals = np.stack([move((stratum, school)) for school in schools])
        n = len(schools)
        units += n
        variance += n / (n - 1) * ((totals - totals.mean(axis=0)) ** 2).sum(axis=0)
    table = make_table(cells, w=weight, **design)
    found = discreet.fit(table, weight="w", strata="s", cluster="school", **options)
    np.testing.assert_allclose(found.se, np.sqrt(variance), rtol=2e-4)
    assert found.degrees == units - 2


@pytest.mark.parametrize(
    ("name", "factor", "degrees"),
    [
        ("jk1", 0.75, 3),
        ("JK2", 1.0, 4),
        ("brr", 0.25, 4),
        ("fay:0.5", 1.0, 4),
        ("Fay:0.3", 1 / 1.96, 4),
    ],
)
def test_replicate_weights_have_the_factor_of_their_method(name, factor, degrees):
    cells = draw_answers()
    rng = np.random.default_rng(5)
    weight = rng.uniform(0.5, 2.0, len(cells))
    copies = {f"rep{i}": weight * rng.uniform(0.2, 2.0, len(cells)) for i in range(1, 5)}
    table = make_table(cells, w=weight, **copies)
    found = discreet.fit(
        table, weight="w", replicates="rep*", replication=name, method="conditional"
    )
    ignored = ["w", *copies]
    alone = [
        discreet.fit(
            table.select([*table.column_names]), weight=column, method="conditional",
            ignore=[name for name in ignored if name != column],
        ).difficulty
        for column in ignored
    ]  # fmt: skip
    deviation = np.stack(alone[1:]) - alone[0]
    np.testing.assert_allclose(found.difficulty, alone[0], atol=1e-9)
    np.testing.assert_allclose(found.se, np.sqrt(factor * (deviation**2).sum(axis=0)), rtol=1e-6)
    assert found.degrees == degrees
    assert f"4 replicate weights ({name.lower()}; {degrees} degrees" in found.se_method


def test_equal_weights_without_a_design_have_a_design_effect_of_one():
    found = discreet.fit(make_table(draw_answers(), w=[2.5] * 120), weight="w", method="refined")
    np.testing.assert_allclose(found.design_effect, 1.0, rtol=1e-6)


def test_doubled_persons_in_clusters_have_a_design_effect_of_two():
    cells = np.repeat(draw_answers(), 2, axis=0)
    table = make_table(cells, w=[1.0] * 240, pair=np.repeat(np.arange(120), 2))
    found = discreet.fit(table, weight="w", cluster="pair", method="conditional")
    np.testing.assert_allclose(found.design_effect, 2.0, rtol=0.01)
    assert "design_effect" in found.to_dict()
    assert "120 primary sampling units in 1 stratum; 119 degrees" in found.se_method


def test_units_outside_the_domain_still_count():
    cells, design = draw_answers(), describe_schools(120)
    weight = np.where(np.arange(120) < 60, 1.5, 0.0)
    table = make_table(cells, w=weight, **design)
    found = discreet.fit(table, weight="w", cluster="school", ignore="s")
    assert found.persons == 60
    assert found.degrees == 19


def test_the_same_cluster_name_in_two_strata_is_two_clusters():
    table = make_table(
        draw_answers(), w=[1.0] * 120, s=[1, 2] * 60, c=[i // 2 % 5 for i in range(120)]
    )
    assert discreet.fit(table, weight="w", strata="s", cluster="c").degrees == 10 - 2


LEFT = {"ignore": ["s", "school"]}


def spoil(**changes):
    table = {"w": [1.0] * 120, "s": ["a", "b"] * 60, "school": [i // 4 for i in range(120)]}
    for name, (row, value) in changes.items():
        table[name] = [*table[name][:row], value, *table[name][row + 1 :]]
    return make_table(draw_answers(), **table)


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        (
            {"w": (3, None)},
            "row_column_person_weight",
            {"row": "4", "name": "w", "row_2": "p3", "more": "no weight"},
        ),
        ({"w": (5, -0.5)}, "row_column_person_weight", {"row": "6", "name": "w", "row_2": "p5"}),
        (
            {"w": (5, float("inf"))},
            "row_column_person_weight",
            {"row_2": "p5", "more": "the weight 'inf'"},
        ),
        ({"s": (9, "c")}, "strata_one_primary_sampling", {"listed": "'c'"}),
        ({"s": (9, None)}, "row_column_person_no", {"row": "10", "name": "s", "row_2": "p9"}),
        (
            {"school": (2, None)},
            "row_column_person_no",
            {"row": "3", "name": "school", "row_2": "p2"},
        ),
    ],
)
def test_bad_designs_are_refused_with_row_and_column(changes, code, facts):
    with refused(BadResponses, code, **facts):
        discreet.fit(spoil(**changes), weight="w", strata="s", cluster="school")


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        ({"strata": "s", "ignore": ["w", "school"]}, "needs_column_weights_too", {}),
        (
            {"weight": "w", "replicates": "rep*", "replication": "jk1"},
            "asks_columns_check_column",
            {"how_often": "data frame has no column", "name": "rep*"},
        ),
        (
            {"weight": "w", "replication": "jk1", **LEFT},
            "replicates_replicates_needs_replication",
            {},
        ),
        ({"weight": "w", "regularisation": 1.0, **LEFT}, "regularisation_adds_whole_persons", {}),
    ],
)
def test_bad_options_are_refused(options, code, facts):
    with refused(BadUsage, code, **facts):
        discreet.fit(spoil(), **options)


def test_a_replication_that_nobody_knows_is_refused():
    with refused(BadUsage, "replication_must_one_below"):
        Replication.parse("bootstrap")
    with refused(BadUsage, "replication_must_one_below"):
        Replication.parse("fay:1")


def weigh(cells):
    table = make_table(cells, w=np.linspace(0.5, 2.0, len(cells)))
    return Responses.from_dataframe(table, group="w").weigh(weight="w")


def repeat_persons(persons=240, steps=1, seed=8):
    """Return answers with whole weights and groups, and the same with repeated persons.

    In both, what a person stands for is one cluster. Nobody has the weight zero, so that both
    designs have the same clusters.
    """
    cells = draw_answers(persons=persons, steps=steps)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, persons)
    again = np.repeat(np.arange(persons), weight)
    about = {"g": np.array(["a", "b", "c"])[np.arange(persons) % 3], "c": np.arange(persons) // 4}
    parts = []
    for rows, weights in ((np.arange(persons), weight), (again, np.ones(len(again)))):
        columns = {name: values[rows] for name, values in about.items()}
        table = make_table(cells[rows], w=weights, **columns)
        answers = Responses.from_dataframe(table, group=["w", "g", "c"])
        parts.append(answers.weigh(weight="w", cluster="c"))
    return parts


@pytest.mark.parametrize("steps", [1, 3])
def test_whole_weights_are_repeated_persons_in_tests_of_groups(steps):
    weighted, repeated = repeat_persons(steps=steps)
    first, second = (discreet.find_dif(answers, "g") for answers in (weighted, repeated))
    for name in ("difference", "se", "p_value"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-8)
    np.testing.assert_allclose(first.omnibus.p_value, second.omnibus.p_value, atol=1e-8)
    bounds = [
        discreet.find_dif(answers, "g", anchors=["q0", "q1", "q2"]).largest
        for answers in (weighted, repeated)
    ]
    np.testing.assert_allclose(*bounds, rtol=1e-6)
    for split in ("g", "mean score", "median score"):
        tests = [run_andersen(answers, split) for answers in (weighted, repeated)]
        np.testing.assert_allclose(tests[0].difficulty, tests[1].difficulty, atol=1e-8)
        np.testing.assert_allclose(tests[0].p_value, tests[1].p_value, atol=1e-8)
        assert tests[0].degrees == tests[1].degrees
    if steps > 1:
        models = [compare_step_models(answers) for answers in (weighted, repeated)]
        np.testing.assert_allclose(models[0].p_value, models[1].p_value, atol=1e-8)
        assert models[0].degrees == 10


def name_choices(test):
    """Return what a comparison chose, so that another one is made alike."""
    anchors = [item for item, kept in zip(test.item, test.anchor, strict=True) if kept]
    anchors = list(dict.fromkeys(anchors))
    return {"reference": test.reference, "anchors": anchors}


@pytest.mark.parametrize("steps", [1, 3])
def test_whole_weights_are_repeated_persons_at_equal_scores(steps):
    tests = [
        discreet.find_dif(answers, "g", test="mantel-haenszel")
        for answers in repeat_persons(steps=steps)
    ]
    for name in ("difference", "se", "p_value"):
        np.testing.assert_allclose(*(getattr(test, name) for test in tests), atol=1e-8)
    np.testing.assert_allclose(*(test.omnibus.p_value for test in tests), atol=1e-8)
    repeated = repeat_persons(steps=steps)[1]
    plain = Responses(repeated.items, None, repeated.store, groups=repeated.groups)
    without = discreet.find_dif(plain, "g", test="mantel-haenszel", **name_choices(tests[1]))
    np.testing.assert_allclose(tests[0].difference, without.difference, atol=1e-8)


@pytest.mark.parametrize(
    ("steps", "model"), [(1, "auto"), (3, "partial-credit"), (3, "rating-scale")]
)
@pytest.mark.parametrize("anchors", [None, ["q0", "q1", "q2"]])
def test_whole_weights_are_repeated_persons_where_an_item_is_split(steps, model, anchors):
    options = {"test": "likelihood-ratio", "anchors": anchors, "model": model}
    weighted, repeated = repeat_persons(steps=steps)
    tests = [discreet.find_dif(answers, "g", **options) for answers in (weighted, repeated)]
    for name in ("difference", "se", "p_value"):
        np.testing.assert_allclose(*(getattr(test, name) for test in tests), atol=1e-8)
    np.testing.assert_allclose(*(test.omnibus.p_value for test in tests), atol=1e-8)
    plain = Responses(repeated.items, None, repeated.store, groups=repeated.groups)
    without = discreet.find_dif(plain, "g", **options | name_choices(tests[1]))
    np.testing.assert_allclose(tests[0].difference, without.difference, atol=1e-8)
    np.testing.assert_array_equal(tests[0].omnibus.degrees, without.omnibus.degrees)


PARTS = [
    "median difficulty",
    ["q0", "q3"],
    {"q0": "a", "q1": "a", "q2": "b", "q3": "b", "q4": "c", "q5": "c"},
]


@pytest.mark.parametrize(
    ("steps", "model"), [(1, "auto"), (2, "partial-credit"), (2, "rating-scale")]
)
@pytest.mark.parametrize("split", PARTS)
def test_whole_weights_are_repeated_persons_in_tests_of_parts(steps, model, split):
    weighted, repeated = repeat_persons(steps=steps)
    tests = [run_martin_loef(part, split, model=model) for part in (weighted, repeated)]
    for name in ("statistic", "p_value", "difficulty", "apart"):
        np.testing.assert_allclose(*(getattr(test, name) for test in tests), atol=1e-8)
    plain = run_martin_loef(Responses(repeated.items, None, repeated.store), split, model=model)
    np.testing.assert_allclose(tests[0].apart, plain.apart, atol=1e-8)
    np.testing.assert_allclose(tests[0].difficulty, plain.difficulty, atol=1e-8)
    # The spread of every part, and the slopes of all but one.
    parts = len(set(plain.part))
    assert (tests[0].degrees, tests[0].part) == (2 if parts == 2 else 2 * parts - 1, plain.part)


def find_score_test(cells, part):
    """Rao's score test of one ability, from all patterns of answers: spread and slope of a part."""
    difficulty = discreet.fit(cells, method="conditional").difficulty
    patterns = np.array(list(product([0, 1], repeat=cells.shape[1])))
    chance = np.exp(-patterns @ difficulty)
    value, covariance = np.zeros(2), 0.0
    for total in range(1, cells.shape[1]):
        same = patterns[patterns.sum(axis=1) == total]
        weight = chance[patterns.sum(axis=1) == total]
        weight = weight / weight.sum()
        score = same[:, part].sum(axis=1)
        distance = score - weight @ score
        skew = (weight @ distance**3) / (weight @ distance**2)
        numbers = np.stack([distance**2 - skew * distance, distance * total], axis=1)
        numbers -= weight @ numbers
        persons = cells[cells.sum(axis=1) == total]
        place = [int(np.flatnonzero((same == row).all(axis=1))[0]) for row in persons]
        value += numbers[place].sum(axis=0)
        both = np.hstack([numbers, same - weight @ same])
        covariance = covariance + len(persons) * (both * weight[:, None]).T @ both
    nuisance = covariance[:2, 2:] @ np.linalg.pinv(covariance[2:, 2:]) @ covariance[2:, :2]
    return float(value @ np.linalg.solve(covariance[:2, :2] - nuisance, value))


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_a_simple_sample_have_the_score_test_of_one_ability(seed):
    cells, others = (draw_answers(seed + more, 4000, missing=0.0) for more in (0, 10))
    if seed % 2:  # an item that measures something else
        cells[:, 2] = others[:, 2]
    answers = Responses.from_dataframe(make_table(cells, w=[1.0] * 4000), group=["w"])
    test = run_martin_loef(answers.weigh(weight="w"), ["q0", "q1", "q2"])
    expected = find_score_test(cells.astype(int), [0, 1, 2])
    assert test.statistic == pytest.approx(expected, rel=0.1, abs=0.1)
    assert test.degrees == 2


@pytest.mark.parametrize("steps", [1, 2])
def test_tests_of_a_simple_sample_are_nearly_likelihood_ratios(steps):
    cells = draw_answers(persons=6000, steps=steps, missing=0.0)
    table = make_table(cells, w=[1.0] * 6000, g=["a", "b", "c"] * 2000)
    plain = Responses.from_dataframe(table, group=["w", "g"])
    weighted = plain.weigh(weight="w")
    options = {"groups": "g", "test": "likelihood-ratio"}
    first, second = (discreet.find_dif(answers, **options) for answers in (plain, weighted))
    statistics = second.omnibus.statistic, first.omnibus.statistic
    np.testing.assert_allclose(*statistics, rtol=0.1, atol=0.1)


def test_parts_that_measure_two_things_are_found_with_weights():
    first, second = (draw_answers(seed, 400, 4, missing=0.0) for seed in (1, 2))
    answers = weigh(np.hstack([first, second]))
    assert run_martin_loef(answers, ["q0", "q1", "q2", "q3"]).p_value < 1e-8
    assert run_martin_loef(answers, ["q0", "q2", "q4", "q6"]).p_value > 0.01
    one = weigh(draw_answers(1, 400, 8, missing=0.0))
    assert run_martin_loef(one, ["q0", "q1", "q2", "q3"]).p_value > 0.05
    assert run_martin_loef(one, ["q0", "q2", "q4", "q6"]).p_value > 0.05


def test_many_parts_are_compared_with_weights():
    answers = weigh(draw_answers(persons=60, items=10, steps=3, missing=0.0))
    parts = {f"q{i}": "abcde"[i // 2] for i in range(10)}
    assert run_martin_loef(answers, parts).degrees == 9


@pytest.mark.parametrize("steps", [1, 3])
def test_errors_at_equal_scores_are_those_of_small_changes_of_weights(steps):
    cells, step = draw_answers(persons=60, steps=steps, missing=0.0), 1e-4
    weight = np.random.default_rng(4).uniform(0.5, 3.0, len(cells))

    def find(weights):
        table = make_table(cells, w=weights, g=["a", "b", "c"] * 20)
        answers = Responses.from_dataframe(table, group=["w", "g"]).weigh(weight="w")
        return discreet.find_dif(answers, "g", test="mantel-haenszel", reference="a")

    influence = np.stack(
        [
            weight[i] * (find(weight + e).difference - find(weight - e).difference) / (2 * step)
            for i, e in enumerate(step * np.eye(len(cells)))
        ]
    )
    n = len(cells)
    variance = n / (n - 1) * ((influence - influence.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(find(weight).se, np.sqrt(variance), rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 3])
def test_whole_weights_are_repeated_persons_in_fit(steps):
    weighted, repeated = repeat_persons(steps=steps)
    calibration = discreet.fit(weighted)
    first, second = (measure_fit(answers, calibration) for answers in (weighted, repeated))
    named = [*MEAN_SQUARES, *SLOPES]
    for name in named:
        np.testing.assert_allclose(
            *(getattr(fit.items, name) for fit in (first, second)), atol=1e-8, err_msg=name
        )
    plain = measure_fit(Responses(repeated.items, None, repeated.store), calibration)
    for name in ("infit", "outfit", *SLOPES):
        value = getattr(plain.items, name)
        np.testing.assert_allclose(getattr(first.items, name), value, atol=1e-8, err_msg=name)
    assert first.person_reliability.mse == pytest.approx(plain.person_reliability.mse, abs=1e-8)
    used = np.isfinite(first.persons.infit)
    assert first.items.answers.tolist() == (weighted.to_array()[used] >= 0).sum(axis=0).tolist()
    q3 = [
        correlate_residuals(answers, calibration).q3
        for answers in (weighted, Responses(repeated.items, None, repeated.store))
    ]
    np.testing.assert_allclose(*q3, atol=1e-8)
    if steps > 1:
        for name in ("share", "mean_ability", "expected_ability", "infit", "outfit"):
            np.testing.assert_allclose(
                getattr(first.categories, name), getattr(plain.categories, name), atol=1e-8
            )


def test_errors_of_mean_squares_are_those_of_small_changes_of_weights():
    cells, step = draw_answers(persons=40, steps=3, missing=0.1), 1e-4
    weight = np.random.default_rng(4).uniform(0.5, 3.0, len(cells))
    calibration = discreet.fit(make_table(cells, w=weight), weight="w")

    def find(weights):
        answers = Responses.from_dataframe(make_table(cells, w=weights), group="w")
        return measure_fit(answers.weigh(weight="w"), calibration).items

    found, n = find(weight), len(cells)
    moved = [(find(weight + e), find(weight - e)) for e in step * np.eye(n)]
    for name in ("infit", "outfit"):
        slopes = [(getattr(up, name) - getattr(down, name)) / (2 * step) for up, down in moved]
        influence = weight[:, None] * np.stack(slopes)
        variance = n / (n - 1) * ((influence - influence.mean(axis=0)) ** 2).sum(axis=0)
        value, sd = getattr(found, name), np.sqrt(variance)
        t = (np.cbrt(value) - 1) * 3 / sd + sd / 3
        np.testing.assert_allclose(getattr(found, f"{name}_t"), t, rtol=1e-5)


def test_persons_of_weight_zero_are_outside_fit():
    cells = draw_answers(persons=200)
    weight = np.where(np.arange(200) < 150, 2.0, 0.0)
    answers = Responses.from_dataframe(make_table(cells, w=weight), group="w").weigh(weight="w")
    calibration = discreet.fit(answers)
    inside = Responses.from_dataframe(make_table(cells[:150]))
    first, second = measure_fit(answers, calibration), measure_fit(inside, calibration)
    np.testing.assert_allclose(first.items.infit, second.items.infit, atol=1e-12)
    assert len(first.persons) == 150
    assert first.items.outfit_without_one == pytest.approx(second.items.outfit_without_one)


def test_limits_of_weighted_fit_are_wider_and_those_of_equal_weights_the_same():
    cells = draw_answers(persons=300, missing=0.0)
    uneven = np.where(np.arange(300) % 10 == 0, 20.0, 1.0)
    limits = []
    for weight in (None, np.full(300, 2.0), uneven):
        table = make_table(cells, **({} if weight is None else {"w": weight}))
        answers = Responses.from_dataframe(table, group=() if weight is None else "w")
        answers = answers if weight is None else answers.weigh(weight="w")
        calibration = discreet.fit(answers, method="conditional")
        limits.append(simulate_cutoffs(answers, calibration, replications=199))
    plain, equal, wide = limits
    np.testing.assert_allclose(equal.infit, plain.infit, rtol=1e-4)
    np.testing.assert_allclose(equal.q3, plain.q3, atol=1e-4)
    assert (np.diff(wide.infit) > 1.3 * np.diff(plain.infit)).all()


def test_groups_that_share_schools_are_not_independent():
    """Two groups with nearly the same answers in the same schools hardly differ."""
    cells = np.repeat(draw_answers(), 2, axis=0)
    cells[:20] = draw_answers(seed=9, persons=20)
    table = make_table(cells, w=[1.0] * 240, g=["a", "b"] * 120, c=np.arange(240) // 8)
    answers = Responses.from_dataframe(table, group=["w", "g", "c"])
    answers = answers.weigh(weight="w", cluster="c")
    together = discreet.find_dif(answers, "g", anchors=["q0", "q1"])
    alone = answers.weigh(weight="w")  # every person a unit
    assert (together.se < 0.7 * discreet.find_dif(alone, "g", anchors=["q0", "q1"]).se).all()


def test_equal_weights_test_as_without_weights_where_the_model_holds():
    cells = draw_answers(persons=2000, steps=2, missing=0.0)
    table = make_table(cells, w=[1.0] * 2000, g=["a", "b"] * 1000)
    answers = Responses.from_dataframe(table, group=["w", "g"])
    weighted = answers.weigh(weight="w")
    for test in (lambda part: run_andersen(part, "g"), compare_step_models):
        plain, corrected = test(answers), test(weighted)
        assert plain.degrees == corrected.degrees
        np.testing.assert_allclose(corrected.statistic, plain.statistic, rtol=0.1)
        np.testing.assert_allclose(corrected.p_value, plain.p_value, atol=0.05)


def test_group_means_are_those_of_repeated_persons():
    weighted, repeated = repeat_persons(steps=2)
    calibration = discreet.fit(weighted)
    means = [find_group_means(part, calibration, "g") for part in (weighted, repeated)]
    for name in ("mean", "se", "share", "covariance"):
        np.testing.assert_allclose(*(getattr(one, name) for one in means), atol=1e-8)
    assert means[0].degrees == 59


R_MEANS = [-0.21016304118067, 0.41029988682322, 0.03217035262892]
R_MEAN_SE = [0.2297147913492, 0.2831861474332, 0.2203983109019]
R_DIFFERENCE = [0.6204629280039, 0.3320911735756]
"""R 4.2.2, survey 4.1.1, on the abilities that this library wrote:
``svyby(~ability, ~g, svydesign(~school, strata = ~s, weights = ~w, nest = TRUE), svymean, covmat =
TRUE)`` and ``svycontrast(means, c(-1, 1, 0))``."""


def test_group_means_have_the_numbers_of_the_survey_package():
    cells, weight = draw_answers(), 1 + np.arange(120) % 5 * 0.75
    table = make_table(cells, w=weight, g=["a", "b", "c"] * 40, **describe_schools(120))
    answers = Responses.from_dataframe(table, group=["w", "g", "s", "school"])
    answers = answers.weigh(weight="w", strata="s", cluster="school")
    calibration = {f"q{i}": b for i, b in enumerate(np.linspace(-1.1, 1.4, 6))}
    means = find_group_means(answers, calibration, "g")
    np.testing.assert_allclose(means.mean, R_MEANS, atol=1e-8)
    np.testing.assert_allclose(means.se, R_MEAN_SE, rtol=1e-7)
    np.testing.assert_allclose(means.compare("a", "b")[:2], R_DIFFERENCE, rtol=1e-7)
    assert means.test.degrees == 2
    with refused(BadUsage, "no_group_choose_among", label="d"):
        means.compare("a", "d")


def test_statistics_without_a_weighted_form_are_refused():
    answers = weigh(draw_answers())
    calibration = discreet.fit(answers)
    with refused(BadUsage, "refused_where_persons_weights_would"):
        find_dimensions(answers, calibration)
    with refused(BadUsage, "refused_where_persons_weights", feature="counting pairs"):
        discreet.count_pairs(answers)


def test_a_regression_of_abilities_is_that_of_repeated_persons():
    weighted, repeated = repeat_persons(steps=2)
    calibration = discreet.fit(weighted)
    assert len(discreet.score(weighted, calibration).ability) == len(weighted.persons)
    first, second = (
        discreet.score(part, calibration, regress="g", plausible=2).regression
        for part in (weighted, repeated)
    )
    np.testing.assert_allclose(first.coefficient, second.coefficient, atol=1e-8)
    np.testing.assert_allclose(first.se, second.se, atol=1e-8)
    np.testing.assert_allclose(
        [first.sd, first.sd_se, first.explained], [second.sd, second.sd_se, second.explained],
        atol=1e-8,
    )  # fmt: skip


def test_errors_of_a_regression_are_those_of_small_changes_of_weights():
    """Of the coefficients, and of the standard deviation by its logarithm."""
    cells, step = draw_answers(persons=60, missing=0.1), 1e-3
    rng = np.random.default_rng(4)
    weight, school = rng.uniform(0.5, 3.0, 60), np.arange(60) // 4
    known = {f"q{item}": b for item, b in enumerate(np.linspace(-1.1, 1.4, 6))}

    def regress(weights):
        table = make_table(cells, w=weights, c=school, g=["a", "b", "b"] * 20)
        answers = Responses.from_dataframe(table, group=["w", "c", "g"])
        answers = answers.weigh(weight="w", cluster="c")
        return discreet.score(answers, known, regress="g").regression

    def numbers(weights):
        found = regress(weights)
        return np.append(found.coefficient, np.log(found.sd))

    moves = [step * weight * (school == one) for one in range(15)]
    total = np.stack([numbers(weight + e) - numbers(weight - e) for e in moves]) / (2 * step)
    found = regress(weight)
    error = np.sqrt(15 * total.var(axis=0, ddof=1))
    np.testing.assert_allclose([*found.se, found.sd_se / found.sd], error, rtol=0.01)


def test_a_release_refuses_weights_with_the_reason():
    cells, budget = draw_answers(), discreet.Budget(epsilon=1.0, delta=1e-6)
    items = [f"q{i}" for i in range(6)]
    with refused(BadUsage, "refused_where_persons_weights", feature="a release"):
        discreet.release(weigh(cells), budget, items=items)
    table = make_table(cells, w=[1.0] * 120)
    with refused(BadUsage, "release_refused_where_persons"):
        discreet.release(table, budget, items=items, weight="w")
    with refused(BadUsage, "refused_where_persons_weights", feature="a release"):
        discreet.release(weigh(cells).select(items[:3]).cap(2, SystemSource()), budget, items=items)


def test_parts_of_answers_keep_their_weights():
    answers = weigh(draw_answers())
    chosen = answers.select_persons([5, 3]).select(["q2", "q1"]).cap(1, SystemSource())
    assert chosen.sample.weight.tolist() == answers.sample.weight[[5, 3]].tolist()
    assert chosen.sample.degrees == 119
    again = pickle.loads(pickle.dumps(answers))  # noqa: S301
    assert again.sample.weight.tolist() == answers.sample.weight.tolist()
    with refused(BadUsage, "refused_where_persons_weights", feature="putting answers together"):
        Responses.concat([answers, answers])


def test_frames_with_a_method_called_sample_are_counted():
    frame = make_table(draw_answers(missing=0.0)).to_pandas().set_index("id")
    assert discreet.count_pairs(frame).persons == 120


def test_other_functions_say_where_weights_are_stated():
    with refused(
        BadUsage,
        "no_keyword_reading_answers",
        hint="Weights are keywords of fit, or of answers: answers.weigh(weight=...)",
    ):
        discreet.count_pairs(make_table(draw_answers(), w=[1.0] * 120), weight="w")


def test_the_command_line_weighs_persons(tmp_path):
    cells, rng = draw_answers(), np.random.default_rng(6)
    copies = {f"rep{i}": rng.uniform(0.5, 2.0, 120) for i in range(1, 6)}
    table = make_table(cells, w=rng.uniform(0.5, 2.0, 120), **copies)
    path = tmp_path / "survey.csv"
    csv.write_csv(table, path)
    options = ["--weight", "w", "--replicates", "rep*", "--replication", "jk1"]
    document = run("fit", str(path), *options, "--json").document
    direct = discreet.fit(path, weight="w", replicates="rep*", replication="jk1")
    errors = [row["se"] for row in document["items"]]
    np.testing.assert_allclose(errors, direct.se, rtol=1e-6)
    assert not np.allclose(direct.difficulty, discreet.fit(path, ignore=["w", *copies]).difficulty)


def test_the_command_line_compares_groups_with_weights(tmp_path):
    cells, rng = draw_answers(persons=240), np.random.default_rng(6)
    about = {"w": rng.uniform(0.5, 2.0, 240), "g": ["a", "b"] * 120, "c": np.arange(240) // 6}
    path, results = tmp_path / "survey.csv", tmp_path / "results"
    csv.write_csv(make_table(cells, **about), path)
    design = ["--weight", "w", "--cluster", "c"]
    answers = discreet.read_responses(path, group=["w", "g", "c"]).weigh(weight="w", cluster="c")
    document = run("dif", str(path), "--group", "g", *design, "--json").document
    found = discreet.find_dif(answers, "g").se
    np.testing.assert_allclose([row["se"] for row in document["items"]], found, rtol=1e-6)
    run("fit", str(path), "--group", "g", *design, "--out", str(results))
    options = ["--with", str(results), "--means", "g", *design, "--json"]
    document = run("score", str(path), *options).document
    means = find_group_means(answers, discreet.fit(answers), "g")
    rows = document["means"]["groups"]
    np.testing.assert_allclose([row["se"] for row in rows], means.se, rtol=1e-6)
    refused = run("dif", str(path), "--group", "g", "--cluster", "c", "--ignore", "w")
    assert "say --weight COL" in refused.err


R_DIFFICULTY = [
    *[-1.303426103611, -0.738939393713, -0.251814650795],
    *[0.351239111486, 0.707759023023, 1.235182013610],
]
R_LINEARISED = [
    *[0.267562060009, 0.233726160491, 0.194759289389],
    *[0.247482068013, 0.270585164601, 0.253150817030],
]
R_JACKKNIFE = [
    *[0.187857604073, 0.389986398973, 0.112203602276],
    *[0.417047434054, 0.144605971095, 0.224061805393],
]
"""R 4.2.2, survey 4.1.1. The refined method is a logistic regression of which item of a discordant
pair is right on the difference of the items, with the weight of the person over its number of
answers: ``svyglm(y ~ 0 + x1 + ... + x5, design, family = quasibinomial())`` on all such pairs, with
``svydesign(~school, strata = ~s, weights = ~w, nest = TRUE)`` and
``svrepdesign(type = "JK1", mse = TRUE)``; coefficients and covariance were centred."""


def test_refined_has_the_numbers_of_the_survey_package():
    cells, weight = draw_answers(), 1 + np.arange(120) % 5 * 0.75
    design = describe_schools(120)
    table = make_table(cells, w=weight, **design)
    found = discreet.fit(table, weight="w", strata="s", cluster="school", method="refined")
    np.testing.assert_allclose(found.difficulty, R_DIFFICULTY, atol=1e-8)
    # The largest relative difference from R was 1.1e-8.
    np.testing.assert_allclose(found.se, R_LINEARISED, rtol=1e-7)
    assert found.degrees == 38
    fifth = design["school"] % 5
    copies = {f"rep{i}": np.where(fifth == i, 0.0, weight * 5 / 4) for i in range(5)}
    table = make_table(cells, w=weight, **copies)
    options = {"replicates": "rep*", "replication": "jk1", "method": "refined"}
    np.testing.assert_allclose(
        discreet.fit(table, weight="w", **options).se, R_JACKKNIFE, rtol=1e-7
    )


R_FIT = [
    *[(0.749993655827, 0.124438337166, 0.729040963413, 0.108065786179)],
    *[(1.022300401442, 0.128254810859, 1.252202547244, 0.212988208560)],
    *[(0.840759814554, 0.110827790856, 0.702987702944, 0.093306538052)],
    *[(0.873766417925, 0.131444602368, 0.902261520292, 0.171549781791)],
    *[(0.855346300657, 0.141871648664, 0.747144490356, 0.131782602427)],
    *[(0.732225957945, 0.116930926927, 0.757396138188, 0.180913958858)],
]
"""R 4.2.2, survey 4.1.1: infit, its error, outfit, its error of each item. Squared residuals,
variances and squared standardised residuals at the thresholds and maximum likelihood abilities were
computed anew, zero where there is no answer or an extreme score; then ``svyratio(~y, ~v, design)``
and ``svyratio(~z, ~answered, design)`` with ``svydesign(~school, strata = ~s, weights = ~w, nest =
TRUE)``."""


def test_mean_squares_have_the_numbers_of_the_survey_package():
    cells, weight = draw_answers(steps=3), 1 + np.arange(120) % 5 * 0.75
    table = make_table(cells, w=weight, **describe_schools(120))
    answers = Responses.from_dataframe(table, group=["w", "s", "school"])
    answers = answers.weigh(weight="w", strata="s", cluster="school")
    found = measure_fit(answers, discreet.fit(answers, method="conditional")).items
    infit, infit_se, outfit, outfit_se = np.array(R_FIT).T
    for name, value, se in (("infit", infit, infit_se), ("outfit", outfit, outfit_se)):
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-8)
        t = (np.cbrt(value) - 1) * 3 / se + se / 3
        np.testing.assert_allclose(getattr(found, f"{name}_t"), t, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_the_unit_of_the_weights_does_not_matter(method, steps):
    cells = draw_answers(steps=steps)
    weight = np.random.default_rng(2).uniform(0.5, 3, len(cells))
    first = discreet.fit(make_table(cells, w=weight), weight="w", method=method)
    for unit in (1e-300, 1e-20, 1e-10, 1e-8, 1e12, 1e300):
        other = discreet.fit(make_table(cells, w=weight * unit), weight="w", method=method)
        assert other.thresholds == pytest.approx(first.thresholds, abs=1e-9, nan_ok=True)
        assert other.se == pytest.approx(first.se, rel=1e-7)
        assert not other.warnings
    equal = make_table(cells, w=np.ones(len(cells)))
    smallest = make_table(cells, w=np.full(len(cells), 1e-320))
    one, two = (discreet.fit(table, weight="w", method=method) for table in (equal, smallest))
    assert two.thresholds == pytest.approx(one.thresholds, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("largest", [1e12, 1e300])
@pytest.mark.parametrize("method", METHODS)
def test_one_person_with_nearly_all_of_the_weight_is_told_with_the_number(method, largest):
    cells, weight = draw_answers(), np.ones(120)
    weight[3] = largest
    try:
        estimate = discreet.fit(make_table(cells, w=weight), weight="w", method=method)
    except NotConverged as error:
        found = str(error)
    else:
        (found,) = estimate.warnings
        assert found.kind is WarningKind.UNEQUAL_WEIGHTS
        assert np.isnan(estimate.se).all()
    assert "effective sample size (Kish 1965) is 1.0" in found
    assert "120 times their mean" in found


def test_moderately_unequal_weights_are_no_reason_for_a_warning():
    cells, weight = draw_answers(), np.random.default_rng(0).lognormal(0, 1, 120)
    estimate = discreet.fit(make_table(cells, w=weight), weight="w")
    assert not estimate.warnings
    assert np.isfinite(estimate.se).all()


@pytest.mark.parametrize("method", METHODS[:3])
def test_items_that_few_link_have_no_standard_errors_with_weights(method):
    cells, weight = draw_answers(persons=600, items=30, missing=0), np.ones(600)
    cells[5:, 29] = None
    rare = discreet.fit(make_table(cells, w=weight), weight="w", method=method)
    assert np.flatnonzero(np.isnan(rare.se)).tolist() == [29]
    (found,) = (one for one in rare.warnings if one.kind is WarningKind.WEAK_LINK)
    assert found.items == ("q29",)
    cells[3:300, 15:] = None
    cells[300:, :15] = None
    halves = discreet.fit(make_table(cells, w=weight), weight="w", method=method)
    assert np.isnan(halves.se).all()
    assert halves.covariance is None
