"""Saved calibrations are read; estimates and other results sum themselves up."""

import json
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.analysis import find_dif, measure_fit
from discreet.atomic import CALIBRATION_FILE
from discreet.cli.calibrations import read_calibration
from discreet.datasets import lsat
from discreet.items.study import diagnose
from discreet.report.calibration import analyse_calibration
from discreet.simulation import simulate

ANCHOR_COLUMNS = {"displacement", "displacement_se"}


@pytest.mark.everywhere
def test_a_calibration_keeps_method_choice_thresholds_and_covariance(tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text("a,b,c\n1,0,1\n0,1,1\n1,1,0\n1,0,0\n0,1,0\n")
    assert discreet("fit", answers, "--out", tmp_path / "out").code == 0
    path = tmp_path / "out" / CALIBRATION_FILE
    document = json.loads(path.read_text())
    assert document["version"] == 1
    fitted, found = library.fit(answers), read_calibration(path)
    assert document["items"][0]["difficulty"] == fitted.difficulty[0]
    for name in ("method", "choice", "model", "steps", "status"):
        assert getattr(found, name) == getattr(fitted, name)
    assert found.covariance == pytest.approx(fitted.covariance, abs=1e-12)
    assert fitted.choice in (tmp_path / "out" / "report.confidential.html").read_text()
    scored = [discreet("score", answers, "--with", one, "--json").document for one in (path,)]
    assert len(scored[0]["persons"]) == 5


@pytest.mark.parametrize(
    ("options", "words", "columns"),
    [
        (("--anchors", "anchors.csv"), {"anchors": {"a": -0.5, "c": 0.5}}, ANCHOR_COLUMNS),
        (("--weight", "w"), {"weight": "w"}, {"design_effect"}),
    ],
)
def test_a_folder_of_a_calibration_is_loaded_with_what_anchors_or_weights_add(
    tmp_path, monkeypatch, options, words, columns
):
    monkeypatch.chdir(tmp_path)
    cells = simulate(120, 5, rng=np.random.default_rng(6)).responses.to_array()
    rows = [",".join(map(str, [*row, 1 + person % 3])) for person, row in enumerate(cells)]
    ignored = ("--ignore", "w") if "weight" not in words else ()
    Path("answers.csv").write_text("\n".join(["a,b,c,d,e,w", *rows]) + "\n")
    Path("anchors.csv").write_text("item,difficulty\na,-0.5\nc,0.5\n")
    assert discreet("fit", "answers.csv", *options, *ignored, "--out", "out").code == 0
    fitted = library.fit("answers.csv", **words, **({"ignore": "w"} if ignored else {}))
    for path in ("out", f"out/{CALIBRATION_FILE}"):
        found = library.load(path)
        for name in (*columns, "difficulty", "covariance"):
            assert np.array_equal(getattr(found, name), getattr(fitted, name), equal_nan=True)
    assert columns <= set(Path("out/items.confidential.csv").read_text().split("\n")[0].split(","))
    if ignored:
        assert "displacement" in Path("out/report.confidential.html").read_text()


def test_a_large_calibration_is_kept_without_its_covariance(tmp_path):
    answers = simulate(60, 101, rng=np.random.default_rng(7)).responses
    estimate = library.fit(answers, method="refined")
    analyse_calibration(estimate).write(tmp_path)
    found = library.load(tmp_path)
    assert found.covariance is None is found.threshold_covariance
    assert np.array_equal(found.difficulty, estimate.difficulty)


@pytest.mark.parametrize(
    ("part", "told", "code", "words"),
    [
        ("model", "graded", 3, "its estimate says otherwise than model"),
        ("version", 2, 2, "has version 2; this version of discreet reads 1"),
        ("estimate", None, 3, "estimate"),
    ],
)
def test_a_calibration_that_cannot_be_understood_is_refused(tmp_path, part, told, code, words):
    estimate = library.fit(simulate(60, 4, rng=np.random.default_rng(7)).responses)
    analyse_calibration(estimate).write(tmp_path)
    path = tmp_path / CALIBRATION_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {part: told}))
    ended = discreet("result", "report", path)
    assert ended.code == code
    assert words in ended.err


def test_the_report_has_the_fit_statistics_of_the_library():
    answers = simulate(300, 8, 0.8, rng=np.random.default_rng(4)).responses
    estimate = library.fit(answers)
    shown, fit = diagnose(answers, estimate), measure_fit(answers, estimate)
    for name in ("infit", "infit_t", "outfit", "outfit_t", "point_measure"):
        assert getattr(shown.fit, name).tolist() == getattr(fit.items, name).tolist()
    assert shown.reliability == fit.person_reliability


# --- summaries ------------------------------------------------------------------------------------


def test_an_estimate_sums_itself_up():
    estimate = library.fit(lsat())
    lines = estimate.summary().splitlines()
    assert lines[0] == "rasch model: 5 items, 1,000 persons, conditional, confidential"
    assert lines[1:3] == [estimate.choice, estimate.se_method]
    assert "easiest Item1 (-1.256 logits), hardest Item3 (1.236 logits)" in lines
    assert lines[6].split()[:3] == ["item", "difficulty", "se"]
    assert lines[7].split()[:3] == ["Item1", "-1.256", "0.104"]
    assert repr(estimate) == "<Estimate: 5 items, 1,000 persons, conditional, confidential>"
    fit = measure_fit(lsat(), estimate)
    assert estimate.item_reliability == pytest.approx(fit.item_reliability.reliability)


def test_a_summary_tells_warnings_and_what_it_leaves_out():
    answers = np.insert(
        simulate(100, 20, rng=np.random.default_rng(1)).responses.to_array(), 0, 1, 1
    )
    text = library.fit(answers.astype(float)).summary()
    assert "1 items without a difficulty" not in text
    assert "1 item without a difficulty" in text
    assert "... and 9 more rows" in text
    assert "Warning: no difficulty for 1 item" in text


def test_every_table_of_an_analysis_sums_itself_up():
    answers = lsat()
    estimate = library.fit(answers)
    labels = ["a"] * 500 + ["b"] * 500
    for result in (
        library.score(answers, estimate),
        measure_fit(answers, estimate).items,
        find_dif(answers, labels),
    ):
        lines = result.summary().splitlines()
        assert lines[0].startswith(type(result).__name__)
        assert next(iter(result.to_dict())) in [line.split()[0] for line in lines if line.strip()]
