"""Conditional maximum likelihood against brute force, high precision and other programs."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.conditional import group_patterns
from discreet.models.conditional.estimator import find_maximum
from refusals import refused

DATA = Path(__file__).parents[1] / "data"


def table(path):
    with path.open() as file:
        return {row["item"]: row for row in csv.DictReader(file)}


def brute_symmetric(b, order):
    return sum(np.exp(-sum(chosen)) for chosen in itertools.combinations(b, order))


def log_likelihood(answers, b):
    """Conditional log-likelihood from its definition, by listing all subsets."""
    total = 0.0
    for row in answers:
        seen = row >= 0
        score = int((row == 1).sum())
        total -= b[row == 1].sum() + np.log(brute_symmetric(b[seen], score))
    return total


def with_gaps(rng, n, m, share):
    b = rng.normal(size=m)
    answers = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(np.int8)
    answers[rng.random((n, m)) < share] = -1
    return answers


# --- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
def test_patterns_hold_every_person_once(share):
    answers = with_gaps(np.random.default_rng(2), 300, 40, share)
    responses = discreet.Responses.from_array(answers)
    kept = np.arange(3, 37)
    patterns = group_patterns(responses.store, kept)
    assert patterns.persons.sum() == 300
    for person in range(300):
        entry = patterns.entry[person]
        g = patterns.pattern[entry]
        items = patterns.item[patterns.indptr[g] : patterns.indptr[g + 1]]
        row = answers[person, kept]
        assert items.tolist() == np.flatnonzero(row >= 0).tolist()
        assert patterns.score[entry] == (row == 1).sum()


def test_sparse_and_dense_answers_have_the_same_patterns():
    answers = with_gaps(np.random.default_rng(3), 200, 30, 0.8)
    from discreet.answers.pack import build_rows, pack_rows

    person, item = np.nonzero(answers >= 0)
    rows = build_rows(person, item, answers[person, item] == 1, 200, 30)
    one = group_patterns(pack_rows(answers), np.arange(5, 30))
    two = group_patterns(rows, np.arange(5, 30))
    for name in ("indptr", "item", "pattern", "score", "persons", "entry"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()


# --- estimates ----------------------------------------------------------------------------------


def test_lsat_equals_the_reference():
    reference = table(DATA / "reference_lsat6.csv")
    estimate = discreet.fit(discreet.datasets.lsat(), method="conditional")
    for item, b, se in zip(estimate.items, estimate.difficulty, estimate.se, strict=True):
        assert b == pytest.approx(float(reference[item]["cml_difficulty_centered"]), abs=1e-6)
        assert se == pytest.approx(float(reference[item]["se"]), abs=1e-6)


def test_a_simulated_set_equals_erm():
    reference = table(DATA / "erm_simulated_300x12_items.csv")
    answers = discreet.read_responses(DATA / "simulated_300x12.csv", group="group")
    estimate = discreet.fit(answers, method="conditional")
    for item, b, se in zip(estimate.items, estimate.difficulty, estimate.se, strict=True):
        assert b == pytest.approx(float(reference[item]["difficulty"]), abs=1e-4)
        assert se == pytest.approx(float(reference[item]["se"]), abs=1e-4)


def test_missing_answers_give_the_maximum_of_the_definition():
    answers = with_gaps(np.random.default_rng(5), 150, 6, 0.3)
    found = discreet.fit(answers, method="conditional")
    best = minimize(
        lambda free: -log_likelihood(answers, np.append(free, -free.sum())), np.zeros(5), tol=1e-12
    )
    assert found.difficulty[:5] == pytest.approx(best.x, abs=1e-4)
    fit = find_maximum(discreet.Responses.from_array(answers))
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-8)


def test_two_items_have_a_closed_form():
    answers = np.array([[1, 0]] * 30 + [[0, 1]] * 10 + [[1, 1]] * 7 + [[0, 0]] * 5)
    found = discreet.fit(answers, method="conditional")
    assert found.difficulty[1] - found.difficulty[0] == pytest.approx(np.log(3))
    assert found.se[0] == pytest.approx(np.sqrt(1 / 30 + 1 / 10) / 2)


def test_persons_with_extreme_scores_or_one_answer_change_nothing():
    answers = with_gaps(np.random.default_rng(6), 200, 8, 0.2).astype(float)
    answers[answers < 0] = np.nan
    more = np.full((6, 8), np.nan)
    more[0], more[1], more[2, 3], more[3, 4] = 1, 0, 1, 0
    one = discreet.fit(answers, method="conditional")
    two = discreet.fit(np.vstack([answers, more]), method="conditional")
    assert two.difficulty == pytest.approx(one.difficulty, abs=1e-9)
    assert two.se == pytest.approx(one.se, abs=1e-9)


def test_items_without_a_number_say_why():
    answers = with_gaps(np.random.default_rng(7), 100, 5, 0.0)
    extra = np.column_stack([np.ones(100), np.zeros(100), np.full(100, -1)])
    found = discreet.fit(np.hstack([answers, extra]), method="conditional")
    assert found.status[5:] == ("always_right", "always_wrong", "no_answers")
    assert np.isnan(found.difficulty[5:]).all()
    alone = discreet.fit(answers, method="conditional")
    assert found.difficulty[:5] == pytest.approx(alone.difficulty, abs=1e-9)


def test_unlinked_answers_are_an_error():
    with pytest.raises(DisconnectedItems):
        discreet.fit(np.array([[1, 0], [1, 0]]), method="conditional")


def test_counts_regularisation_and_abilities_are_refused():
    answers = discreet.datasets.lsat()
    with refused(BadUsage, "method_needs_answers_themselves"):
        discreet.fit(discreet.count_pairs(answers), method="conditional")
    with refused(BadUsage, "regularisation_belongs_methods_none"):
        discreet.fit(answers, method="conditional", regularisation=1.0)
    with refused(BadUsage, "method_conditional_assumes_nothing"):
        discreet.fit(answers, method="conditional", ability="empirical")


@pytest.mark.parametrize("seed", range(20))
def test_conditional_and_refined_agree_within_their_errors(seed):
    """Two good estimators of the same answers; rarely they differ by 1.2 standard errors."""
    answers = with_gaps(np.random.default_rng(seed), 400, 10, 0.2)
    one = discreet.fit(answers, method="conditional")
    two = discreet.fit(answers, method="refined")
    assert np.nanmax(np.abs(one.difficulty - two.difficulty) / one.se) < 2.0


@pytest.mark.slow
def test_intervals_cover_in_a_sparse_design():
    rng = np.random.default_rng(8)
    inside = []
    for _ in range(200):
        sim = discreet.simulate(400, 30, 0.4, rng=rng)
        found = discreet.fit(sim.responses, method="conditional")
        inside.append(np.abs(found.difficulty - sim.difficulty) < 1.96 * found.se)
    assert 0.935 < np.mean(inside) < 0.965
