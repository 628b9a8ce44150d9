"""Tables that are opened in a spreadsheet: no name in them is run as a formula."""

import csv

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import discreet as library
from commandline import discreet
from discreet.text import read_cell, spreadsheet_cell

FORMULAS = ["=1+1", "+A1", "-x", "@SUM(A1)", '=HYPERLINK("http://x","y")', "'=1", "-5"]


@given(st.text(alphabet="'=+-@ \t\r\n1.e\uff1dx"))
@example("'=x")
def test_every_name_comes_back(name):
    assert read_cell(spreadsheet_cell(name)) == name


@pytest.mark.parametrize("name", ["=1", "+a", "-a", "@a", "\tx", "\rx", " =1", "\uff1d1", "-1-1"])
def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(name):
    assert spreadsheet_cell(name) == f"'{name}"


@pytest.mark.parametrize("value", ["-5", "+1.5e3", "-.5", "Item1", "a=b", "'quoted'", -2.5, None])
def test_numbers_and_plain_names_stay_as_they_are(value):
    assert spreadsheet_cell(value) == value


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A calibration, abilities, a bank and a release of items with dangerous names."""
    place = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(2)
    with (place / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "item", "response"])
        for number in range(60):
            answers = rng.integers(0, 2, len(FORMULAS)).tolist()
            writer.writerows([f"@{number}", *one] for one in zip(FORMULAS, answers, strict=True))
    assert discreet("fit", place / "answers.csv", "--out", place).code == 0
    assert discreet("score", place / "answers.csv", "--with", place, "--out", place).code == 0
    assert discreet("bank", "create", place / "bank.csv", place, "--scale", "=s").code == 0
    answers = library.read_responses(place / "answers.csv")
    library.release(answers, library.Budget(1.0), items=FORMULAS).save(place / "release")
    return place


@pytest.mark.parametrize(
    "name",
    [
        "items.confidential.csv",
        "abilities.confidential.csv",
        "score_table.confidential.csv",
        "bank.csv",
        "release/difficulties.csv",
    ],
)
def test_no_table_holds_a_formula(folder, name):
    with (folder / name).open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert cells
    assert [cell for cell in cells if spreadsheet_cell(cell) != cell and cell[0] != "'"] == []


def test_what_is_read_again_has_its_names_back(folder):
    assert list(library.read_bank(folder / "bank.csv").items) == FORMULAS
    assert list(library.read_release(folder / "release").estimate.items) == FORMULAS
    anchors = folder / "items.confidential.csv"
    ended = discreet("fit", folder / "answers.csv", "--anchors", anchors, "--json")
    assert ended.code == 0, ended.err
    assert {row["status"] for row in ended.document["items"]} == {"anchored"}
