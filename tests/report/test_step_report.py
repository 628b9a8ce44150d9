"""Findings, tables, report and files of items with steps."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet
from browser import needs_browser, visit
from commandline import discreet as run
from discreet.analysis import check_model, measure_alpha
from discreet.answers.pack import store_codes
from discreet.api.calibrating import fit
from discreet.atomic import CALIBRATION_FILE
from discreet.cli.calibrations import read_calibration, write_calibration
from discreet.errors import BadResponses, BadUsage
from discreet.items.curves import threshold_rows
from discreet.items.study import diagnose
from discreet.report.diagnosis import compare_fit, diagnose_test
from discreet.report.findings import STEP_CHECKS, find_problems
from discreet.report.formats import list_calibration
from discreet.report.model_findings import Severity
from discreet.report.page import write_diagnosis
from discreet.results.limits import FEW_IN_CATEGORY
from discreet.saving import read_value, write_value
from refusals import refused
from stepped import chances, draw_codes, hold


def hold_codes(codes, steps):
    return discreet.Responses.from_store(store_codes(codes, steps))


def draw(thresholds, persons=1500, seed=0):
    """Return answers of persons to items with these thresholds."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.2, persons)
    shares = [chances(ability, own) for own in thresholds]
    codes = [(rng.random((persons, 1)) > one.cumsum(axis=1)).sum(axis=1) for one in shares]
    return hold_codes(np.stack(codes, axis=1), [len(own) for own in thresholds])


def titles(responses, **options):
    estimate = fit(responses, **options)
    return {one.title: one for one in find_problems(estimate, diagnose(responses, estimate))[0]}


@pytest.fixture(scope="module")
def made():
    responses, _ = hold(3, 400, (3, 2, 3, 1, 3), missing=0.1)
    estimate = fit(responses)
    return responses, estimate, diagnose(responses, estimate)


# ---- findings


def test_a_scale_in_order_has_none_of_these_findings():
    sound = draw([[-1.0 + place, 0.0 + place, 1.0 + place] for place in (-1, -0.5, 0, 0.5, 1)])
    estimate = fit(sound)
    findings, fine = find_problems(estimate, diagnose(sound, estimate))
    assert set(STEP_CHECKS) <= set(fine)
    assert not any("categor" in one.title or "threshold" in one.title for one in findings)


def test_thresholds_in_the_wrong_order_are_named_with_what_that_means():
    found = titles(draw([[-1, 0, 1], [-0.5, 0.5, 1], [0.8, -0.8, 1.0], [-1, 0.3, 1.2]]))
    finding = found["1 item with thresholds in the wrong order"]
    assert finding.severity is Severity.NOTE
    assert "category 1 of 2 (by 1." in finding.found
    assert "That is beyond chance" in finding.found
    assert "nowhere the most likely one" in finding.found
    assert "not that the categories are in the wrong order" in finding.advice
    assert "--merge" in finding.advice


def test_a_rating_scale_in_the_wrong_order_is_one_finding():
    wrong = draw([[0.6 + place, -0.6 + place, 1 + place] for place in (-1, -0.3, 0, 0.3, 1)])
    found = titles(wrong, model="rating-scale")
    finding = found["The thresholds of the rating scale are in the wrong order"]
    assert finding.found.count("category 1") == 1


def test_rare_categories_are_counted():
    codes = draw_codes(1, 600, (2, 2, 2, 2))
    codes[codes[:, 1] == 2, 1] = 1
    codes[: FEW_IN_CATEGORY - 3, 1] = 2
    found = titles(hold_codes(codes, (2, 2, 2, 2)))
    finding = found["1 category with fewer than 10 answers"]
    assert "category 2 of 1 (7 answers)" in finding.found
    codes[:FEW_IN_CATEGORY, 1] = 2
    codes[FEW_IN_CATEGORY:, 1] = np.minimum(codes[FEW_IN_CATEGORY:, 1], 1)
    assert not any("fewer than" in title for title in titles(hold_codes(codes, (2, 2, 2, 2))))


def test_an_item_coded_the_other_way_round_has_averages_that_fall():
    codes = draw_codes(2, 800, (3, 3, 3, 3, 3, 3))
    codes[:, 4] = 3 - codes[:, 4]
    found = titles(hold_codes(codes, (3,) * 6))
    (cause,) = [one for title, one in found.items() if "1 item runs against the others" in title]
    (finding,) = [one for one in cause.consequences if "no abler" in one.title]
    assert finding.severity is Severity.SERIOUS
    assert "of 4 (" in finding.found
    assert "--reverse" in finding.advice


def test_right_and_wrong_answers_are_never_checked_for_steps():
    responses = discreet.datasets.lsat()
    estimate = fit(responses)
    _, fine = find_problems(estimate, diagnose(responses, estimate))
    assert not set(STEP_CHECKS) & set(fine)


# ---- numbers behind the report


def test_alpha_is_that_of_the_item_variances():
    codes = draw_codes(4, 300, (3, 2, 4))
    expected = 1.5 * (1 - codes.var(axis=0).sum() / codes.sum(axis=1).var())
    assert np.isclose(measure_alpha(hold_codes(codes, (3, 2, 4))).alpha, expected)


def test_tables_of_thresholds_and_categories_say_what_the_estimate_says(made):
    responses, estimate, study = made
    tables = diagnose_test(estimate, study).tables
    thresholds, categories = tables["thresholds"].columns, tables["categories"].columns
    assert len(thresholds["item"]) == sum(estimate.steps)
    assert thresholds["threshold"][:3] == estimate.thresholds[0].tolist()
    assert set(thresholds["status"]) == {"estimated"}
    codes = responses.to_array()
    seen = [(codes[:, i] == k).sum() for i, most in enumerate(estimate.steps)
            for k in range(most + 1)]  # fmt: skip
    assert categories["answers"] == seen
    own = [share for item, share in zip(categories["item"], categories["share"], strict=True)
           if item == "2"]  # fmt: skip
    assert np.isclose(sum(own), 1)
    assert "score" in tables["items"].columns
    assert "right" not in tables["items"].columns


def test_a_category_that_nobody_used_keeps_the_names_of_the_others():
    codes = draw_codes(6, 500, (3, 3, 3))
    codes[codes[:, 1] == 1, 1] = 2
    responses = hold_codes(codes, (3, 3, 3))
    estimate = fit(responses)
    columns = diagnose_test(estimate, diagnose(responses, estimate)).tables["categories"].columns
    rows = zip(columns["item"], columns["category"], columns["answers"], strict=True)
    assert {k: n for item, k, n in rows if item == "1"} == {
        k: int((codes[:, 1] == k).sum()) for k in (0, 2, 3)
    }


def test_categories_are_called_what_the_data_call_them(tmp_path):
    codes = draw_codes(6, 500, (3, 3, 3))
    codes[codes[:, 1] == 1, 1] = 2
    plain = fit(codes)
    answers = discreet.Responses.from_array(codes + 1)
    estimate = fit(answers)
    assert np.array_equal(estimate.thresholds, plain.thresholds, equal_nan=True)
    assert estimate.warnings == (
        "nobody is in category 2 of item '1': left out, and those above move down (3 to 2, 4 to 3)",
    )
    study = diagnose(answers, estimate)
    columns = diagnose_test(estimate, study).tables["categories"].columns
    rows = zip(columns["item"], columns["category"], columns["answers"], strict=True)
    assert {k: n for item, k, n in rows if item == "1"} == {
        k + 1: int((codes[:, 1] == k).sum()) for k in (0, 2, 3)
    }
    write_calibration(tmp_path / "out", estimate, answers)
    found = read_calibration(tmp_path / "out")
    assert found.ladder.labels == estimate.ladder.labels == ((1, 2, 3, 4), (1, 3, 4), (1, 2, 3, 4))
    assert threshold_rows(found).take(np.arange(1)).labels[0][0] == 1
    others = discreet.Responses.from_array(draw_codes(6, 90, (3, 3, 3)) + 1, lowest=1)
    with refused(
        BadResponses, "item_category_calibration_knows", category_2="2", categories="1, 3, 4"
    ):
        discreet.score(others, estimate)


def test_rare_and_disordered_categories_from_one_on_are_called_so():
    codes = draw([[-1.0, 1.0, 0.0], [0.0, 0.5, 1.0], [-1.0, 0.0, 1.0]], persons=900).to_array()
    codes[codes[:, 2] == 3, 2] = 2
    codes[:5, 2] = 3
    answers = discreet.Responses.from_array(codes + 1, lowest=1)
    found = titles(answers)
    (order,) = (one for title, one in found.items() if "wrong order" in title)
    assert "category 3 of 0" in order.found
    (rare,) = (one for title, one in found.items() if "fewer than" in title)
    assert "category 4 of 2 (5 answers)" in rare.found
    scale = titles(answers, model="rating-scale")
    assert not any("category 0" in one.found for one in scale.values())


# ---- the page


def test_the_report_speaks_of_steps(made):
    _, estimate, study = made
    page = write_diagnosis(diagnose_test(estimate, study))
    for words in (
        "Threshold map",
        "A location is typically known",
        "partial credit model (Masters, 1982)",
        "Cronbach&#39;s alpha",
        "mean score",
        "Mean score against ability",
        "thresholds to the right",
        "Categories, every item",
        "were left out",
        "svg .node",
    ):
        assert words in page, words
    for words in ("% right", "KR-20", "Rasch model (Rasch", "Share right", "mislabelled?"):
        assert words not in page, words


def test_a_rating_scale_is_called_one():
    responses, _ = hold(5, 400, (3,) * 5, common=True)
    estimate = fit(responses, model="rating-scale")
    page = write_diagnosis(diagnose_test(estimate, diagnose(responses, estimate)))
    assert "rating scale model (Andrich, 1978)" in page
    assert "partial credit model (Masters" not in page


def test_a_page_without_answers_shows_the_thresholds(made):
    page = write_diagnosis(diagnose_test(made[1]))
    assert "Threshold map" in page
    assert "How hard each item is" not in page


def test_nothing_about_steps_reaches_a_page_of_right_and_wrong_answers():
    responses = discreet.datasets.lsat()
    estimate = fit(responses)
    page = write_diagnosis(diagnose_test(estimate, diagnose(responses, estimate)))
    for words in ("hreshold", "svg .node", "location"):
        assert words not in page, words


@needs_browser
def test_the_page_fits_a_phone_and_has_no_errors(made, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(write_diagnosis(diagnose_test(*made[1:])))
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for width in (400, 1400):
        overflow, _, console = visit(path, tmp_path, wide, width)
        assert overflow == "0"
        assert console == ""
    number, _, _ = visit(path, tmp_path, "return document.querySelectorAll('.node').length")
    assert int(number) == sum(made[1].steps)


# ---- files


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    place = tmp_path_factory.mktemp("steps") / "out"
    write_calibration(place, made[1], made[0], title="a questionnaire")
    return place


def test_a_calibration_keeps_thresholds_and_is_read_again(made, folder):
    found, estimate = read_calibration(folder), made[1]
    for name in ("model", "steps", "status", "method"):
        assert getattr(found, name) == getattr(estimate, name)
    for name in ("thresholds", "threshold_se", "threshold_covariance", "difficulty", "covariance"):
        assert np.array_equal(getattr(found, name), getattr(estimate, name), equal_nan=True)
    assert found.ladder.kept == estimate.ladder.kept
    assert np.array_equal(found.ladder.categories, estimate.ladder.categories)
    assert found.ladder.status == estimate.ladder.status


def test_a_report_is_made_again_from_the_calibration_alone(folder, tmp_path):
    first = (folder / "report.confidential.html").read_text()
    assert run("result", "report", folder, "--out", tmp_path).code == 0
    again = (tmp_path / "report.confidential.html").read_text()
    assert again == first


def test_a_study_keeps_the_shares_of_categories(made):
    again = read_value(json.loads(json.dumps(write_value(made[2]))))
    for item in made[1].items:
        assert again.observed.trace_shares(item) == made[2].observed.trace_shares(item)
        assert again.observed.trace_curve(item) == made[2].observed.trace_curve(item)


def test_every_table_is_a_file_and_a_sheet(folder):
    for name in ("items", "thresholds", "categories", "raw_scores"):
        assert (folder / f"{name}.confidential.csv").exists()
    assert not (folder / "labels.confidential.csv").exists()
    sheets = (
        pytest.importorskip("python_calamine")
        .CalamineWorkbook.from_path(folder / "analysis.confidential.xlsx")
        .sheet_names
    )
    assert {"thresholds", "categories"} <= set(sheets)


def test_json_has_the_model_and_the_thresholds_of_every_item(made):
    document = list_calibration(made[1])
    assert document["model"] == "partial-credit"
    row = document["items"][1]
    assert row["thresholds"] == made[1].thresholds[1, :2].tolist()
    assert len(row["threshold_se"]) == 2
    assert np.isclose(np.mean(row["thresholds"]), row["difficulty"])


def test_an_estimate_of_right_and_wrong_items_has_no_ladder_in_its_file(tmp_path):
    estimate = fit(discreet.datasets.lsat())
    write_calibration(tmp_path / "out", estimate)
    document = json.loads((tmp_path / "out" / CALIBRATION_FILE).read_text())
    assert set(document["items"][0]) == {"item", "difficulty", "se", "status", "answers", "right"}
    assert document["estimate"]["Estimate"]["ladder"] is None


def test_items_always_in_one_category_are_called_so():
    codes = draw_codes(7, 300, (2, 2, 2, 2))
    codes[:, 3] = 2
    found = titles(hold_codes(codes, (2, 2, 2, 2)), method="refined")
    assert "1 item always answered in the same category" in found


# ---- merged categories


def test_merging_two_categories_is_told_before_and_after():
    codes = draw_codes(8, 600, (3, 3, 3, 3))
    merged = codes.copy()
    merged[:, 2] = np.array([0, 1, 1, 2])[codes[:, 2]]
    before, after = (
        check_model(hold_codes(codes, (3, 3, 3, 3))),
        check_model(hold_codes(merged, (3, 3, 2, 3))),
    )
    rows = {
        name: (one, two)
        for name, one, two in zip(*compare_fit(before, after).to_dict().values(), strict=True)
    }
    infit = [check.study.fit.conditional_infit[2] for check in (before, after)]
    assert rows["infit of 2"] == (infit[0], infit[1])
    assert not any("of 1" in name for name in rows)
    assert rows["person reliability"][1] == after.study.reliability.reliability
    with refused(BadUsage, "no_item_other_categories"):
        compare_fit(before, before)


# ---- the command line


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    codes = draw_codes(9, 300, (3, 3, 3, 3, 3))
    rows = [",".join(f"q{i}" for i in range(5)), *(",".join(map(str, row)) for row in codes)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_fit_prints_locations_and_thresholds(survey):
    done = run("fit", survey, "--model", "rating-scale")
    assert done.code == 0
    head, _, titles = done.out.splitlines()[:3]
    assert head == "5 items, 300 persons, conditional, rating-scale"
    for title in ("location", "threshold 1", "threshold 3", "score"):
        assert title in titles
    document = run("fit", survey, "--json").document
    assert document["model"] == "partial-credit"
    estimate = discreet.fit(survey)
    found = [row["thresholds"] for row in document["items"]]
    assert np.allclose(found, estimate.thresholds)


def test_a_report_of_answers_takes_the_model_that_was_named(survey, tmp_path):
    assert run("result", "report", survey, "--model", "rating-scale", "--out", tmp_path).code == 0
    assert "rating scale model" in (tmp_path / "report.confidential.html").read_text()


def test_check_shows_the_fit_before_and_after_merging(survey):
    done = run("check", survey, "--merge", "q1:1+2", "--json")
    assert done.code == 0
    rows = {row["name"]: row for row in done.document["merged"]}
    alone = run("check", survey, "--json").document
    assert "merged" not in alone
    assert rows["infit of q1"]["before"] != rows["infit of q1"]["after"]
    assert "Before and after merging" in run("check", survey, "--merge", "q1:1+2").out


def test_a_page_has_no_empty_column_and_calls_the_ends_of_a_scale_scores(made):
    _, estimate, study = made
    test = diagnose_test(estimate, replace(study, is_weighted=True))
    page = write_diagnosis(test)
    assert "Persons count by their sampling weights." in page
    assert "lowest score" in page
    assert "all wrong" not in page


def test_sums_are_those_of_the_file(tmp_path):
    """Answers go from 2 to 4; the second item is turned round, nobody takes 2 in the last."""
    rng = np.random.default_rng(5)
    away = rng.normal(0, 1.5, (300, 1)) + rng.normal(size=(300, 4))
    codes = 2 + (away > -0.7).astype(int) + (away > 0.7)
    codes[:, 3] = np.maximum(codes[:, 3], 3)
    told = codes.copy()
    told[:, 1] = 6 - told[:, 1]
    place = tmp_path / "told.csv"
    place.write_text("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in told.tolist()))
    answers = discreet.read_responses(place, lowest=2, steps=2, reverse=["b"])
    estimate = discreet.fit(answers)
    assert discreet.score(answers, estimate).score.tolist() == codes.sum(axis=1).tolist()
    tables = diagnose_test(estimate, diagnose(answers, estimate)).tables
    assert tables["items"].columns["score"] == codes.sum(axis=0).tolist()
    scores = tables["raw_scores"].columns["score"]
    assert (scores[0], scores[-1]) == (2 + 2 + 2 + 3, 4 * 4)
    assert tables["raw_scores"].about.endswith("turned round, from 9 to 16.")
