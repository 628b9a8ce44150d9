"""Ratings in tables with a column for every rater, or a row for every person and rater."""

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as command
from discreet.errors import BadResponses, BadUsage
from refusals import refused

CRITERIA = ["Content", "Style"]
RATERS = ["A", "B", "C"]


@pytest.fixture(scope="module")
def scores():
    """Return scores from 1 to 4, a row for each: essay, rater, criterion, score."""
    rng = np.random.default_rng(5)
    ability = rng.normal(0, 1.5, 80)
    rows = []
    for essay, level in enumerate(ability):
        for rater, severity in zip(RATERS, (-0.8, 0.1, 0.7), strict=True):
            for criterion in CRITERIA:
                cumulated = np.cumsum([0, *(level - severity - np.array([-1.5, 0, 1.5]))])
                chance = np.exp(cumulated - cumulated.max())
                score = 1 + int(rng.choice(4, p=chance / chance.sum()))
                rows.append((f"e{essay}", rater, criterion, score))
    return pd.DataFrame(rows, columns=["essay", "rater", "criterion", "score"])


def spread(scores, name):
    """Return a column for every criterion of every rater."""
    labels = [name.format(rater=r, criterion=c) for r, c in scores[["rater", "criterion"]].values]
    wide = scores.assign(label=labels).pivot(index="essay", columns="label", values="score")
    return wide[sorted(wide.columns)].reset_index()


def severities(estimate):
    return estimate.facets["rater"].measure


@pytest.mark.parametrize(
    "name", ["{criterion} Rater {rater}", "{criterion}_Rater{rater}", "Rater {rater}: {criterion}"]
)
def test_columns_of_raters_are_asked_about_and_read_as_ratings_once_said(scores, name):
    wide = spread(scores, name)
    with refused(BadResponses, "not_clear_refuse_questions"):
        discreet.fit(wide)
    asked = discreet.inspect_table(wide).questions
    assert [set(one.cells) for one in asked] == [set(wide.columns[1:])]
    assert asked[0].marked is None
    long = discreet.fit(scores, facets=["rater"])
    estimate = discreet.fit(wide, facets=["rater"])
    assert severities(estimate) == pytest.approx(severities(long), abs=1e-9)
    assert [one[-1] for one in estimate.facets["rater"].levels] == RATERS


def test_columns_called_after_raters_alone_are_ratings_of_one_thing(scores, tmp_path):
    one = scores[scores.criterion == "Style"]
    wide = spread(one, "Rater {rater}")
    question = discreet.inspect_table(wide).questions[0]
    assert "after raters" in question.question
    wide.to_csv(tmp_path / "marks.csv", index=False)
    long = discreet.fit(one.drop(columns="criterion"), facets=["rater"])
    estimate = discreet.fit(tmp_path / "marks.csv", facets=["rater"])
    assert severities(estimate) == pytest.approx(severities(long), abs=1e-9)
    made = command("fit", tmp_path / "marks.csv", "--rater", "rater")
    assert made.code == 0, made.err
    assert "Rater C" in made.out
    stated = {"keep": ["Rater A", "Rater B", "Rater C"], "person": "essay", "lowest": 1}
    as_items = discreet.fit(tmp_path / "marks.csv", **stated)
    assert len(as_items.items) == 3


def test_a_row_for_every_essay_and_rater_is_read_as_ratings(scores):
    rows = scores.pivot(index=["essay", "rater"], columns="criterion", values="score").reset_index()
    rows.columns.name = None
    long = discreet.fit(scores, facets=["rater"])
    assert severities(discreet.fit(rows, facets=["rater"])) == pytest.approx(
        severities(long), abs=1e-9
    )
    paper = rows.rename(columns={"essay": "paper"})
    with refused(BadResponses, "holds_raters_no_column"):
        discreet.fit(paper, facets=["rater"])
    named = discreet.fit(paper, facets=["rater"], person="paper")
    assert severities(named) == pytest.approx(severities(long), abs=1e-9)


def test_a_table_without_raters_is_refused_as_before(scores):
    with refused(BadUsage, "asks_columns_check_column"):
        discreet.fit(pd.DataFrame({"T1": [1, 2], "T2": [2, 1]}), facets=["rater"])
    with refused(BadUsage, "no_meaning_ratings_whose"):
        discreet.fit(scores, facets=["rater"], keep=["score"])


@pytest.mark.parametrize("names", [["q1pre", "q2pre", "q1post", "q2post"]])
def test_times_written_onto_names_are_asked_about(names):
    table = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (40, 4)), columns=names)
    assert discreet.inspect_table(table).questions[0].field == "ignore"
