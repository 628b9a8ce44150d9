"""Bundled tables have the numbers of R's packages and of an independent solver; see data/r."""

import numpy as np
import pytest
from experiments.calibration.references import (
    BUNDLED,
    DESIGN,
    compare_difficulties,
    compare_ratings,
    compare_steps,
    name_file,
    read_column,
    read_rows,
)

import discreet


def check(distances, at_least):
    distances = list(distances)
    assert len(distances) >= at_least
    assert [one for one in distances if not one.found <= one.goal] == []


@pytest.mark.parametrize(("name", "number"), [("partial_credit", 17), ("rating_scale", 21)])
def test_items_with_steps_have_the_numbers_of_other_programs(name, number):
    check(compare_steps(BUNDLED, name), number)


@pytest.mark.parametrize(("name", "model"), [("ratings", "pcm"), ("guilford", "rsm")])
def test_ratings_have_the_numbers_of_other_programs(name, model):
    check(
        compare_ratings(BUNDLED / f"{name}.csv", name_file(BUNDLED, name, f"mfrm_{model}_ref")), 3
    )


def test_booklets_have_the_numbers_of_other_programs():
    check(compare_difficulties(BUNDLED, "booklets", "own"), 2)


def test_pairwise_difficulties_of_booklets_are_near_conditional_ones():
    rows = read_rows(name_file(BUNDLED, "booklets", "difficulties"))
    found = discreet.fit(BUNDLED / "booklets.csv", method="refined").difficulty
    distance = np.abs(found - read_column(rows, "value")) / read_column(rows, "se")
    assert distance.max() < 0.6
    assert np.sqrt(np.mean(distance**2)) < 0.45
    assert np.corrcoef(found, read_column(rows, "value"))[0, 1] > 0.995


def test_weights_strata_and_clusters_give_the_numbers_of_the_survey_package():
    check(compare_difficulties(BUNDLED, "weighted", "survey", **DESIGN), 2)


def test_replicate_weights_give_the_numbers_of_the_survey_package():
    rows = read_rows(BUNDLED / "weighted.csv")
    school, weight = read_column(rows, "school"), read_column(rows, "weight")
    table = {name: [row[name] for row in rows] for name in rows[0] if name[0] in "pW"}
    left_out = {f"rep{s}": np.where(school == s, 0, weight * 20 / 19) for s in range(1, 21)}
    words = {"weight": "weight", "replicates": "rep*", "replication": "jk1"}
    found = discreet.fit(table | {"weight": weight} | left_out, method="conditional", **words)
    wanted = read_column(read_rows(name_file(BUNDLED, "weighted", "difficulties")), "jackknife_se")
    np.testing.assert_allclose(found.se, wanted, atol=1e-9)


def test_a_number_that_is_missing_or_elsewhere_is_far_away():
    from experiments.calibration.references import largest

    assert largest([1.0, np.nan], [1.5, np.nan]) == 0.5
    assert largest([1.0, np.nan], [1.0, 2.0]) == np.inf
    assert largest([1.0], [1.0, 2.0]) == np.inf
