"""Every result as a table: CSV files, one workbook, and the report show the same numbers."""

import csv
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.atomic import TABLE_FILES
from discreet.items.study import diagnose
from discreet.items.tables import tabulate_items
from discreet.report.calibration import read_document
from discreet.report.diagnosis import diagnose_test
from discreet.report.formats import write_workbook
from discreet.report.paper import write_word_tables
from discreet.tabular import AnalysisTable
from refusals import disk_full

DATA = Path(__file__).parents[1] / "data"
FULL = Path("/dev/full")
STEPS = {"thresholds", "categories"}
ALWAYS = {*TABLE_FILES} - {"groups", "group_curves", "persons_sample", "options"} - STEPS


def save(place, rows, items, groups=None):
    heads = ["person", *(["sex"] if groups else []), *items]
    with place.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        for number, row in enumerate(rows):
            label = [groups[number]] if groups else []
            writer.writerow([f"p{number}", *label, *row])
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The analysis of the LSAT answers, as typed."""
    place = tmp_path_factory.mktemp("tables")
    answers = save(place / "answers.csv", library.datasets.lsat().to_array(), LSAT_ITEMS)
    ended = discreet("fit", answers, "--method", "conditional", "--out", place / "out")
    assert ended.code == 0
    return place / "out"


def rows_of(folder, name):
    with (folder / TABLE_FILES[name]).open(newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows, column):
    return [float(row[column]) if row[column] else np.nan for row in rows]


def read_sheets(path):
    calamine = pytest.importorskip("python_calamine")
    book = calamine.CalamineWorkbook.from_path(str(path))
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def test_every_table_is_a_private_file_and_a_sheet(folder):
    pytest.importorskip("xlsxwriter")
    found = {path.name for path in folder.iterdir()}
    files = {TABLE_FILES[name] for name in ALWAYS}
    assert found == files | {
        "analysis.confidential.xlsx",
        "calibration.confidential.json",
        "report.confidential.html",
    }
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sheets = read_sheets(folder / "analysis.confidential.xlsx")
    assert set(sheets) == ALWAYS | {"about"}
    assert sheets["about"][1][1].startswith("Confidential: ")
    for name in ALWAYS:
        rows = rows_of(folder, name)
        assert {row["access"] for row in rows} == {"confidential"}
        assert [*sheets[name][0], "access"] == list(rows[0])
        assert len(sheets[name]) == len(rows) + 1


def test_items_have_the_fit_of_erm(folder):
    rows = rows_of(folder, "items")
    with (DATA / "erm_lsat6_items.csv").open() as file:
        known = list(csv.DictReader(file))
    for column in ("difficulty", "se", "infit", "outfit", "infit_t", "outfit_t"):
        assert numbers(rows, column) == pytest.approx(numbers(known, column), abs=2e-4), column
    assert numbers(rows_of(folder, "wald"), "z") == pytest.approx(
        numbers(known, "wald_z"), abs=2e-4
    )
    assert all(0 < value < 1 for value in numbers(rows, "point_measure_expected"))
    assert all(0.5 < value < 1.5 for value in numbers(rows, "discrimination"))


def test_tests_have_andersens_statistic_of_erm(folder):
    first = rows_of(folder, "tests")[0]
    assert first["name"] == "Andersen"
    assert float(first["statistic"]) == pytest.approx(0.1681, abs=1e-4)
    assert (first["degrees"], first["verdict"]) == ("4", "holds")


def test_persons_and_raw_scores_agree(folder):
    persons, table = rows_of(folder, "persons"), rows_of(folder, "raw_scores")
    ability = {row["score"]: row["ability"] for row in table}
    assert len(persons) == 1000
    assert len(table) == 6
    assert all(row["ability"] == ability[row["score"]] for row in persons)
    extreme = [row for row in persons if row["status"] != "measured"]
    assert len(extreme) == 301
    assert {row["infit"] for row in extreme} == {""}
    assert {row["flag"] for row in persons} <= {"", "unexpected answers"}


def test_the_tables_are_those_of_the_python_interface(folder):
    answers = library.datasets.lsat()
    estimate = library.fit(answers, method="conditional")
    study = diagnose(answers, estimate)
    pairs = library.analysis.correlate_residuals(answers, estimate).to_dict()
    assert numbers(rows_of(folder, "pairs"), "q3") == pairs["q3"]
    found = study.dimensionality.to_dict()
    assert numbers(rows_of(folder, "dimensions"), "eigenvalue") == pytest.approx(
        found["eigenvalue"]
    )
    assert numbers(rows_of(folder, "andersen"), "low score") == pytest.approx(
        study.andersen.difficulty[0].tolist()
    )


def test_the_report_uses_the_same_fit_as_the_interface(folder):
    study = read_document(folder / "calibration.confidential.json").study
    answers = library.datasets.lsat()
    found = library.analysis.measure_fit(answers, library.fit(answers, method="conditional"))
    assert study.fit.infit.tolist() == pytest.approx(found.items.infit.tolist())
    assert study.reliability.reliability == pytest.approx(found.person_reliability.reliability)
    assert numbers(rows_of(folder, "items"), "infit") == pytest.approx(study.fit.infit.tolist())


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """Answers in which item q3 is two logits harder for one of two groups."""
    place = tmp_path_factory.mktemp("groups")
    rng = np.random.default_rng(3)
    groups = ["girl", "boy"] * 400
    ability, difficulty = rng.normal(size=(800, 1)), np.linspace(-3, 3, 8)
    shift = np.zeros((800, 8))
    shift[1::2, 3] = 2.0
    chance = 1 / (1 + np.exp(difficulty + shift - ability))
    rows = (rng.random(chance.shape) < chance).astype(int)
    rows[:15] = np.arange(8) >= 4  # wrong on the easy items and right on the hard ones
    answers = save(place / "answers.csv", rows, [f"q{n}" for n in range(8)], groups)
    ended = discreet("fit", answers, "--group", "sex", "--out", place / "out")
    assert ended.code == 0
    return place


def test_groups_are_compared_in_table_report_and_picture(grouped):
    rows = rows_of(grouped / "out", "groups")
    assert len(rows) == 8
    worst = max(rows, key=lambda row: abs(float(row["difference"])))
    assert (worst["item"], worst["ets"], worst["group"]) == ("q3", "C", "sex")
    page = (grouped / "out" / "report.confidential.html").read_text()
    assert "Differences between groups of persons" in page
    assert "Differences between girl and boy" in page or "Differences between boy and girl" in page


def test_the_least_expected_persons_stand_in_the_report(grouped):
    flagged = [
        row["person"]
        for row in rows_of(grouped / "out", "persons")
        if row["flag"] == "unexpected answers"
    ]
    assert {f"p{number}" for number in range(15)} <= set(flagged)
    page = (grouped / "out" / "report.confidential.html").read_text()
    assert "The most unexpected persons" in page
    assert "The most unexpected answers" in page
    assert '<th scope="row">p3</th>' in page
    assert "From raw score to ability" in page


def test_a_report_made_again_shows_the_same_tables(grouped):
    before = (grouped / "out" / "report.confidential.html").read_text()
    assert discreet("result", "report", grouped / "out").code == 0
    after = (grouped / "out" / "report.confidential.html").read_text()
    for words in ("Tests of the model", "Differences between groups", "unexpected answers"):
        assert words in before
        assert after.count(words) == before.count(words)


def test_tables_of_an_earlier_calibration_do_not_stay_beside_new_ones(grouped, tmp_path):
    answers = grouped / "answers.csv"
    assert discreet("fit", answers, "--group", "sex", "--out", tmp_path).code == 0
    assert (tmp_path / TABLE_FILES["groups"]).exists()
    (tmp_path / "mine.csv").write_text("mine")
    assert discreet("fit", answers, "--ignore", "sex", "--out", tmp_path, "--force").code == 0
    assert not (tmp_path / TABLE_FILES["groups"]).exists()
    assert (tmp_path / "mine.csv").exists()


def test_a_table_that_is_there_already_is_not_replaced(grouped, tmp_path):
    (tmp_path / TABLE_FILES["wald"]).write_text("mine")
    ended = discreet("fit", grouped / "answers.csv", "--ignore", "sex", "--out", tmp_path)
    assert ended.code == 2
    assert "wald.confidential.csv" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["wald.confidential.csv"]


def test_without_the_extra_there_are_csv_files_and_a_note_that_names_it(
    grouped, tmp_path, monkeypatch
):
    monkeypatch.setattr("discreet.report.calibration.can_write_workbooks", lambda: False)
    ended = discreet("fit", grouped / "answers.csv", "--group", "sex", "--out", tmp_path)
    assert ended.code == 0
    assert "[files]" in ended.err
    assert not (tmp_path / "analysis.confidential.xlsx").exists()
    assert (tmp_path / TABLE_FILES["persons"]).exists()


def test_a_workbook_runs_nothing_and_keeps_names_that_look_like_numbers(tmp_path):
    pytest.importorskip("xlsxwriter")
    names = ["=1+1", "007", "-5", "@SUM(A1)", "http://example.org", "{=A1}", "+A1"]
    table = AnalysisTable(
        "items", "Items", "", {"item": names, "se": [0.5, None, np.nan, 1, 2.0, 3, 4]}
    )
    path = tmp_path / "book.xlsx"
    write_workbook(path, [table], warning="Confidential")
    sheet = read_sheets(path)["items"]
    assert [row[0] for row in sheet[1:]] == names
    assert [row[1] for row in sheet[1:]] == [0.5, "", "", 1, 2, 3, 4]
    with zipfile.ZipFile(path) as parts:
        for part in parts.namelist():
            if "worksheets" in part:
                text = parts.read(part).decode()
                assert "<f>" not in text
                assert "<hyperlink" not in text
        assert 'quotePrefix="1"' in parts.read("xl/styles.xml").decode()


def write_book(path):
    pytest.importorskip("xlsxwriter")
    write_workbook(path, [AnalysisTable("items", "Items", "", {"item": ["a"]})], warning="")


def write_word(path):
    pytest.importorskip("docx")
    write_word_tables(path, diagnose_test(library.fit(library.datasets.lsat())))


@pytest.mark.posix
@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("write", [write_book, write_word])
def test_a_full_disk_is_that_and_no_error_of_the_package_that_writes(write):
    with disk_full():
        write(FULL)


def test_an_estimate_without_answers_has_the_tables_that_it_can_have(folder):
    estimate = library.fit(library.datasets.lsat())
    test = diagnose_test(estimate)
    assert set(test.tables) == {"items", "raw_scores"}
    assert "infit" not in test.tables["items"].columns
    frame = tabulate_items(estimate, None).to_dataframe()
    assert frame["difficulty"].tolist() == estimate.difficulty.tolist()


def test_what_the_answers_do_not_allow_is_left_out_with_a_note(tmp_path):
    rows = [[1, 0], [0, 1], [1, 0], [1, 1]]
    answers = save(tmp_path / "answers.csv", rows, ["a", "b"])
    ended = discreet("check", answers, "--json")
    assert ended.code == 0
    tests = {test["name"]: test for test in ended.document["tests"]}
    assert tests["dimensionality"]["verdict"] == "not tested"
    assert any("dimensionality was not checked" in note for note in ended.document["notes"])
