"""Published answers that may not be distributed: run where they lie beside the repository.

What is asked here is asked of bundled and simulated answers too, in the files about each subject.
"""

import warnings

import numpy as np
import pytest
from experiments.calibration.references import compare_ratings, compare_steps, load_table, read_rows

import discreet
from discreet.analysis import run_andersen
from discreet.errors import DisconnectedItems
from discreet.items.study import diagnose
from discreet.models.conditional import group_patterns
from discreet.models.conditional.batches import plan_batches
from discreet.models.conditional.moments import evaluate_conditional
from discreet.report.findings import find_problems
from real_data import TIMSS, need

SIZES = {
    "assist2009_long.csv.gz": (4150, 16_891, 270_449),
    TIMSS: (4668, 174, 115_983),
    "ml_latest_small_long.csv.gz": (610, 9724, 100_836),
}


STEPS = ("verbal_aggression", "pcmdat", "pcmdat2", "rsmdat")
RATINGS = ("ratings1", "ratings2", "cqc03", "cqc04")


def test_items_with_steps_have_the_numbers_of_other_programs():
    (folder,) = need("polytomous")
    distances = [one for name in STEPS for one in compare_steps(folder, name)]
    assert [one for one in distances if not one.found <= one.goal] == []
    assert sum("Andersen" in one.what for one in distances) == 5
    with warnings.catch_warnings(action="ignore"), pytest.raises(DisconnectedItems) as caught:
        run_andersen(load_table(folder, "rsmdat"))
    assert caught.value.facts["label"] == "low score"
    check_findings(load_table(folder, "verbal_aggression"))


def check_findings(answers):
    estimate = discreet.fit(answers)
    problems, _ = find_problems(estimate, diagnose(answers, estimate))
    found = {finding.title: finding.found for finding in problems}
    rare = found["1 category with fewer than 10 answers"]
    assert "category 2 of S3DoShout (4 answers)" in rare
    assert "category 1 of S2DoShout" in found["1 item with thresholds in the wrong order"]


def test_ratings_have_the_numbers_of_other_programs():
    (folder,) = need("raters")
    pairs = [(folder / f"{name}.csv", folder / f"{name}_mfrm_pcm_ref.csv") for name in RATINGS]
    distances = [one for pair in pairs for one in compare_ratings(*pair)]
    assert [one for one in distances if not one.found <= one.goal] == []


def test_rotated_booklets_have_the_numbers_of_other_programs():
    answers, table = need(TIMSS, "reference_timss2011_aut_math.csv")
    known = {row["item"]: row for row in read_rows(table)}
    responses = discreet.read_responses(answers)
    b = np.array([float(known[item]["cml_difficulty_centered"]) for item in responses.items])
    se = np.array([float(known[item]["se"]) for item in responses.items])
    check_conditional(responses, b, se)
    by_pairs = discreet.fit(responses, method="refined").difficulty
    distance = np.abs(by_pairs - b) / se
    assert np.abs(by_pairs - b).max() < 0.25
    assert np.sqrt(np.mean(distance**2)) < 0.45
    assert np.corrcoef(by_pairs, b)[0, 1] > 0.999
    assert (distance < 1).sum() == 170


def check_conditional(responses, b, se):
    estimate = discreet.fit(responses, method="conditional")
    away = np.abs(estimate.difficulty - b)
    # In the reference one item stopped 1.8e-4 before the maximum: it has the same answers and
    # right answers, from the same persons, as M031009, but another difficulty.
    assert {estimate.items[i] for i in np.flatnonzero(away > 1e-4)} <= {"M031004"}
    assert away.max() < 2e-4
    assert np.abs(estimate.se - se).max() < 1e-4
    patterns = group_patterns(responses.store, np.arange(len(b)))
    all_right = patterns.score == patterns.lengths[patterns.pattern]
    observed = estimate.right - patterns.item_sums(all_right & (patterns.score > 0))

    def look(where):
        where = where[:, None]
        return evaluate_conditional(plan_batches(patterns, where), where, information=False)

    def value(where):
        return -(observed @ where) - look(where).log_norm

    assert value(estimate.difficulty) > value(b)
    assert np.abs(look(estimate.difficulty).expected[:, 0] - observed).max() < 1e-8


def test_real_files_are_read_in_their_published_sizes():
    for path, size in zip(need(*SIZES), SIZES.values(), strict=True):
        answers = discreet.read_responses(path)
        assert (answers.n_persons, answers.n_items, answers.n_answers) == size
        assert answers.nbytes <= 10 * answers.n_answers


@pytest.mark.slow
def test_a_very_sparse_log_is_estimated_on_its_connected_part():
    (path,) = need("assist2009_long.csv.gz")
    estimate = discreet.fit(path, standard_errors=False)
    assert len(estimate.items) == 16_891
    assert int(estimate.estimated.sum()) == 12_299
    assert len(estimate.warnings) == 3
