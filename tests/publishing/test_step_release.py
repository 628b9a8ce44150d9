"""Releases of items with steps: what is published, read back, typed, and resumed."""

import csv
import hashlib
import json
import re

import numpy as np
import pytest

import discreet
from commandline import discreet as typed
from discreet import Budget, PrivateRasch
from discreet.errors import BadResponses, BadUsage
from discreet.publishing.bundle import seal_record
from discreet.report.public import write_registry_entry
from discreet.report.statement import make_statement
from refusals import refused

STEPS = {"a": 3, "b": 3, "c": 2, "d": 1, "e": 3}
BUDGET = Budget(epsilon=3.0, delta=1e-6)


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(3)
    ability = rng.normal(size=(400, 1))
    codes = np.zeros((400, len(STEPS)), dtype=np.int8)
    for column, most in enumerate(STEPS.values()):
        for step in range(most):
            codes[:, column] += (ability[:, 0] + rng.logistic(size=400) > step - 1).astype(np.int8)
    return discreet.Responses.from_array(codes, list(STEPS), steps=dict(STEPS))


@pytest.fixture(scope="module")
def released(answers):
    return discreet.release(answers, BUDGET, items=STEPS, design="complete")


def test_a_release_has_thresholds_with_errors(released):
    estimate = released.estimate
    assert estimate.steps == tuple(STEPS.values())
    assert estimate.model == "partial-credit"
    inside = np.arange(3) < np.array(estimate.steps)[:, None]
    assert np.isfinite(estimate.thresholds[inside]).all()
    assert (estimate.threshold_se[inside] > 0).all()
    assert np.isnan(estimate.thresholds[~inside]).all()
    assert np.allclose(estimate.difficulty, np.nanmean(estimate.thresholds, axis=1))
    assert abs(estimate.difficulty.mean()) < 1e-9
    assert released.record["choice"] == ("auto: totals, because some items have more than one step")


def test_a_bundle_with_thresholds_comes_back(released, tmp_path):
    released.save(tmp_path / "release")
    discreet.verify(tmp_path / "release")
    back = discreet.read_release(tmp_path / "release").estimate
    assert np.allclose(back.thresholds, released.estimate.thresholds, atol=1e-6, equal_nan=True)
    assert np.allclose(back.threshold_se, released.estimate.threshold_se, atol=1e-6, equal_nan=True)
    assert (back.steps, back.model) == (released.estimate.steps, "partial-credit")
    assert np.array_equal(back.threshold_covariance, released.estimate.threshold_covariance)
    assert np.array_equal(back.covariance, released.estimate.covariance)
    again = discreet.refit(tmp_path / "release")
    assert np.array_equal(again.thresholds, released.estimate.thresholds, equal_nan=True)
    text = (tmp_path / "release" / "thresholds.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == sum(STEPS.values())
    assert list(rows[0]) == ["item", "step", "threshold", "se", "lower", "upper", "status"]


def test_persons_are_scored_with_a_released_scale(released, answers):
    scored = discreet.score(answers, released)
    total = answers.to_array().sum(axis=1)
    assert np.corrcoef(total, scored.ability)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda rows: rows[:-1], "one row for each step"),
        (lambda rows: [*rows[:2], rows[2].replace("a,2", "a,1"), *rows[3:]], "one row for each"),
        (lambda rows: ["item,step", *rows[1:]], "is no table with the columns"),
    ],
)
def test_a_table_of_thresholds_that_no_release_wrote_is_refused(
    released, tmp_path, damage, message
):
    """Also where whoever changed it changed the checksums too."""
    folder = tmp_path / "release"
    released.save(folder)
    table = folder / "thresholds.csv"
    table.write_text("\n".join(damage(table.read_text().splitlines())) + "\n")
    with refused(BadResponses, "not_whole_release_bundle", problem="thresholds.csv was changed"):
        discreet.verify(folder)
    record = json.loads((folder / "privacy.json").read_text())
    files = record.pop("files")
    record.pop("record_sha256")
    files["thresholds.csv"] = hashlib.sha256(table.read_bytes()).hexdigest()
    (folder / "privacy.json").write_text(seal_record(record, files))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.verify(folder)
    assert message in caught.value.facts["problem"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", [3, 3, 2, 1]), ("steps", [0, 3, 2, 1, 3]), ("model", "other"), ("design", "none")],
)
def test_a_record_that_no_release_wrote_is_refused(released, tmp_path, name, value):
    folder = tmp_path / "release"
    released.save(folder)
    record = json.loads((folder / "privacy.json").read_text())
    files = record.pop("files")
    record.pop("record_sha256")
    (folder / "privacy.json").write_text(seal_record({**record, name: value}, files))
    with refused(BadResponses, "not_whole_release_bundle"):
        discreet.verify(folder)


def test_what_is_said_about_a_release_with_steps(released):
    statement = make_statement(released.record)
    assert (
        "the thresholds of all steps and the difficulties (their means) of 5 items"
        in (statement.promise[0])
    )
    assert statement.facts["who answered what, as stated in advance"].startswith("everybody")
    entry = write_registry_entry(released.record)
    assert "in ordered categories" in entry
    assert "how many steps each item has" in entry
    assert "partial credit model" in entry


def test_the_page_shows_every_threshold(released, tmp_path):
    released.save(tmp_path / "release")
    page = (tmp_path / "release" / "report.html").read_text()
    assert "Where each step is" in page
    assert "svg .node" in page  # circles have their style
    assert page.count("from category") == 2 * sum(STEPS.values())
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))  # one filter, one sortable table


def test_right_and_wrong_answers_have_no_table_of_thresholds(tmp_path):
    lsat = discreet.datasets.lsat()
    discreet.release(lsat, BUDGET, items=list(lsat.items), out=tmp_path / "release")
    assert not (tmp_path / "release" / "thresholds.csv").exists()
    assert "Where each step is" not in (tmp_path / "release" / "report.html").read_text()


@pytest.fixture
def survey(tmp_path, answers):
    """Answers from 1, a list with steps, and a ledger."""
    rows = answers.to_array() + 1
    lines = [",".join(STEPS), *(",".join(map(str, row)) for row in rows.tolist())]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    listed = [f"{item},{step}" for item, step in STEPS.items()]
    (tmp_path / "items.csv").write_text("\n".join(["item,steps", *listed]) + "\n")
    typed("ledger", "create", tmp_path / "spent.db", "--epsilon", 10)
    return tmp_path


def terms(survey, out="release"):
    return (
        *("--items", survey / "items.csv", "--epsilon", 3, "--delta", "1e-6"),
        *("--ledger", survey / "spent.db", "--out", survey / out),
    )


def test_a_survey_is_released_as_typed(survey):
    run = typed(
        *("release", survey / "survey.csv", *terms(survey)),
        *("--lowest", 1, "--item-selection", "complete", "--json"),
    )
    assert run.code == 0, run.err
    document = json.loads(run.out)
    assert document["mechanism"] == "totals"
    assert document["model"] == "partial-credit"
    assert [len(row["thresholds"]) for row in document["items"]] == list(STEPS.values())
    assert typed("verify", survey / "release").code == 0


def test_thresholds_are_printed_with_three_decimals(survey):
    run = typed(
        *("release", survey / "survey.csv", *terms(survey)),
        *("--lowest", 1, "--item-selection", "complete"),
    )
    numbers = re.findall(r"-?[0-9]+\.[0-9]+", run.out)
    assert len(numbers) >= 4 * sum(STEPS.values())
    assert {len(number.partition(".")[2]) for number in numbers} == {3}


def test_codes_that_the_list_does_not_have_are_refused_and_cost_nothing(survey):
    run = typed("release", survey / "survey.csv", *terms(survey))
    assert run.code == 3
    assert "The categories of this item are 0, 1" in run.err
    assert json.loads(typed("ledger", "show", survey / "spent.db", "--json").out)["releases"] == []


def test_a_rating_scale_is_fitted_where_items_have_the_same_steps(answers):
    same = answers.select(["a", "b", "e"])
    steps = dict.fromkeys(same.items, 3)
    found = discreet.release(same, BUDGET, items=steps, model="rating-scale", design="complete")
    assert found.estimate.model == "rating-scale"
    around = found.estimate.thresholds - found.estimate.difficulty[:, None]
    assert np.allclose(around, around[0], atol=0.02)


def test_other_mechanisms_say_that_they_have_no_steps(answers):
    with refused(BadUsage, "mechanism_right_wrong_answers"):
        discreet.release(answers, BUDGET, items=STEPS, mechanism="margins")


def test_an_estimator_releases_columns_with_steps(answers):
    X = answers.to_array().astype(float) + 1
    model = PrivateRasch(epsilon=3.0, steps=list(STEPS.values()), lowest=1, design="complete")
    with pytest.warns(UserWarning, match="without a ledger"):
        model.fit(X)
    assert model.thresholds_.shape == (5, 3)
    assert np.isfinite(model.transform(X)).all()
    with refused(BadResponses, "correct_init"):
        PrivateRasch(epsilon=3.0, steps=3, lowest=2).fit(X)


def test_a_release_with_steps_that_stopped_is_resumed_from_the_same_answers(survey, monkeypatch):
    """It died after the charge, before its values were stored."""
    from discreet.privacy.ledger import LedgerSafe

    def die(self, parts):
        raise KeyboardInterrupt

    book = discreet.Ledger.open(survey / "spent.db")
    asked = {"items": STEPS, "lowest": 1, "design": "complete", "ledger": book}
    with monkeypatch.context() as patch:
        patch.setattr(LedgerSafe, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            discreet.release(survey / "survey.csv", BUDGET, **asked)
    back = discreet.resume_release(book, 1, survey / "survey.csv", out=survey / "late")
    assert back.estimate.steps == tuple(STEPS.values())
    assert back.record["lowest"] == 1
    discreet.verify(survey / "late")
    assert back.estimate.model == "partial-credit"
