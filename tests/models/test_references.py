"""Bundled tables have the numbers of R's packages and of an independent solver; see data/r."""

import numpy as np
import pytest

import discreet
from references import (
    BUNDLED,
    RATINGS,
    SETS,
    check_andersen,
    check_fit,
    check_likelihoods,
    check_persons,
    check_ratings,
    check_thresholds,
    read_rows,
)

CHECKS = (check_thresholds, check_likelihoods, check_fit, check_persons)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SETS)
def test_items_with_steps_have_the_numbers_of_other_programs(name, check):
    check(name)


def test_andersen_with_steps_is_that_of_another_program():
    check_andersen("partial_credit")


@pytest.mark.parametrize("name", RATINGS)
def test_ratings_have_the_numbers_of_other_programs(name):
    reference = BUNDLED / "ref" / f"{name}_{RATINGS[name]}.csv"
    check_ratings(BUNDLED / f"{name}.csv", reference, RATINGS[name], within=1e-9)


def read_difficulties(name, column):
    rows = read_rows(BUNDLED / "ref" / f"{name}.csv")
    return tuple(np.array([float(row[cell]) for row in rows]) for cell in (column, "se"))


def test_booklets_have_the_numbers_of_other_programs():
    answers = discreet.read_responses(BUNDLED / "booklets.csv")
    assert answers.n_answers == 200 * 8
    wanted, error = read_difficulties("booklets", "cml_difficulty_centered")
    exact = discreet.fit(answers, method="conditional")
    np.testing.assert_allclose(exact.difficulty, wanted, atol=1e-9)
    np.testing.assert_allclose(exact.se, error, atol=1e-9)
    by_pairs = discreet.fit(answers, method="refined").difficulty
    distance = np.abs(by_pairs - wanted) / error
    assert distance.max() < 0.6
    assert np.sqrt(np.mean(distance**2)) < 0.45
    assert np.corrcoef(by_pairs, wanted)[0, 1] > 0.995


def test_weights_strata_and_clusters_give_the_numbers_of_the_survey_package():
    words = {"strata": "stratum", "cluster": "school"}
    found = discreet.fit(BUNDLED / "weighted.csv", weight="weight", method="conditional", **words)
    wanted, error = read_difficulties("weighted", "value")
    np.testing.assert_allclose(found.difficulty, wanted, atol=1e-9)
    np.testing.assert_allclose(found.se, error, atol=1e-9)


def test_replicate_weights_give_the_numbers_of_the_survey_package():
    rows = read_rows(BUNDLED / "weighted.csv")
    school, weight = (np.array([float(row[name]) for row in rows]) for name in ("school", "weight"))
    table = {name: [row[name] for row in rows] for name in rows[0] if name[0] in "pW"}
    left_out = {f"rep{s}": np.where(school == s, 0, weight * 20 / 19) for s in range(1, 21)}
    words = {"weight": "weight", "replicates": "rep*", "replication": "jk1"}
    found = discreet.fit(table | {"weight": weight} | left_out, method="conditional", **words)
    wanted, _ = read_difficulties("weighted", "jackknife_se")
    np.testing.assert_allclose(found.se, wanted, atol=1e-9)
