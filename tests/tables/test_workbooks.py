"""Excel and OpenDocument: the same answers as from CSV, and plain words where that cannot be."""

import gzip
import sys
from datetime import date

import pytest

from commandline import discreet
from discreet import fit, read_comparisons, read_responses
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.tables.formats import workbook
from discreet.tables.lists import read_list
from refusals import refused
from spreadsheet_files import write_ods, write_xlsx

HEAD = ["id", "Q1", "Q2", "Q3"]
ROWS = [HEAD, [7, 1, True, "1"], ["008", 0, False, "0.0"], [date(2024, 5, 1), None, 1.0, "NA"]]
PLAIN = [["person", "a", "b"], ["x", 1, 0], ["y", 0, 1], ["z", 1, 1]]


def book(folder, sheets, kind="xlsx"):
    write = {"xlsx": write_xlsx, "ods": write_ods}[kind]
    return write(folder / f"answers.{kind}", sheets)


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_numbers_truth_values_text_and_dates_in_cells_are_read_as_a_person_sees_them(
    tmp_path, kind
):
    answers = read_responses(book(tmp_path, {"data": ROWS}, kind))
    assert answers.items == ("Q1", "Q2", "Q3")
    assert answers.persons.tolist() == ["7", "008", "2024-05-01"]
    assert answers.to_array().tolist() == [[1, 1, 1], [0, 0, 0], [-1, 1, -1]]


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_a_workbook_gives_what_the_same_csv_gives(tmp_path, kind):
    rows = [["person", "item", "response"], ["a", "x", 1], ["a", "y", 0], ["b", "x", 0]]
    plain = tmp_path / "answers.csv"
    plain.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    assert read_responses(book(tmp_path, {"long": rows}, kind)) == read_responses(plain)


def test_a_workbook_is_known_by_what_it_holds_and_may_be_gzipped(tmp_path):
    path = book(tmp_path, {"data": PLAIN})
    packed = tmp_path / "packed.xlsx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    renamed = tmp_path / "renamed.csv"
    renamed.write_bytes(path.read_bytes())
    assert read_responses(packed) == read_responses(renamed) == read_responses(path)


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_the_only_sheet_with_data_is_taken_and_several_are_listed(tmp_path, kind):
    one = book(tmp_path, {"notes": [], "form A": PLAIN}, kind)
    assert read_responses(one).n_persons == 3
    two = book(tmp_path, {"form A": PLAIN, "form B": PLAIN[:3], "empty": []}, kind)
    with pytest.raises(BadUsage) as caught:
        read_responses(two)
    facts = caught.value.facts
    assert (facts["shown"], facts["first"]) == ("'form A' (4 x 3), 'form B' (3 x 3)", "form A")
    assert read_responses(two, sheet="form B").n_persons == 2
    ended = discreet("fit", two, "--sheet", "form A", "--json")
    assert ended.document["persons"] == 3
    joined = discreet("fit", two, "--json").document  # the same columns: one table
    assert (joined["persons"], len(joined["items"])) == (5, 2)
    absent = discreet("fit", two, "--sheet", "C")
    assert (absent.code, "'form A', 'form B', 'empty'" in absent.err) == (2, True)
    assert discreet("fit", two, "--sheet", "empty").code == 3


def test_hidden_sheets_are_not_guessed_but_can_be_named(tmp_path):
    path = write_xlsx(tmp_path / "a.xlsx", {"data": PLAIN, "lists": [["x"]]}, hidden=("lists",))
    assert read_responses(path).n_persons == 3
    with pytest.raises(BadResponses):
        read_responses(path, sheet="lists")


def test_titles_above_the_names_are_found_and_said(tmp_path):
    rows = [[None] * 3, ["Spring test"], [None], *PLAIN]
    path = write_xlsx(tmp_path / "a.xlsx", {"s": rows}, merged=(("s", "A1:C1", "School 7"),))
    with pytest.warns(UserWarning, match="in row 4 stands 'School 7', 'Spring test'"):
        answers = read_responses(path)
    assert answers.to_array().tolist() == [[1, 0], [0, 1], [1, 1]]
    bad = [*rows, ["w", 5, 0]]
    path = write_xlsx(tmp_path / "b.xlsx", {"s": bad}, merged=(("s", "A1:C1", "School 7"),))
    with (
        pytest.warns(UserWarning, match="title"),
        refused(
            BadResponses, "bad_answer", where="b.xlsx, sheet 's', row 8", column="a", value="5.0"
        ),
    ):
        read_responses(path)


def test_merged_headings_over_the_names_are_titles_too(tmp_path):
    rows = [[None] * 5, ["id", "q1", "q2", "q3", "q4"], ["a", 1, 0, 1, 0], ["b", 0, 1, 1, 1]]
    merged = (("s", "B1:C1", "Part 1"), ("s", "D1:E1", "Part 2"))
    path = write_xlsx(tmp_path / "a.xlsx", {"s": rows}, merged=merged)
    with pytest.warns(UserWarning, match="'Part 1', 'Part 2'"):
        assert read_responses(path).items == ("q1", "q2", "q3", "q4")


def test_a_merged_cell_among_the_answers_is_refused(tmp_path):
    path = write_xlsx(tmp_path / "a.xlsx", {"s": PLAIN}, merged=(("s", "B5:C5", "1"),))
    with refused(BadResponses, "cells_merged_first_them", top="B5", bottom="C5"):
        read_responses(path)


def test_cells_with_an_error_are_missing_and_counted(tmp_path):
    import xlsxwriter

    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(path) as made:
        sheet = made.add_worksheet()
        for number, row in enumerate(PLAIN):
            sheet.write_row(number, 0, row)
        sheet.write_formula(1, 1, "=1/0", None, "#DIV/0!")
    with pytest.warns(UserWarning, match="it has 1"):
        assert read_responses(path).to_array()[0].tolist() == [-1, 0]


def test_empty_rows_and_columns_at_the_end_do_not_count(tmp_path):
    rows = [[*row, None, None] for row in PLAIN] + [[None] * 5] * 3
    answers = read_responses(book(tmp_path, {"s": rows}, "ods"))
    assert (answers.n_persons, answers.items) == (3, ("a", "b"))


def test_a_sheet_without_names_is_recognised(tmp_path):
    path = book(tmp_path, {"s": [[1, 0, 1], [0, 1, 1], [1, 1, 0]]})
    with refused(BadResponses, "first_row_looks_like"):
        read_responses(path)
    assert read_responses(path, header=False).items == ("1", "2", "3")


def protected(folder):
    """The container in which Excel keeps an encrypted workbook, as far as anyone looks."""
    path = folder / "secret.xlsx"
    name = "EncryptedPackage".encode("utf-16-le")
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + name + bytes(2000))
    return path


def test_a_password_or_damage_is_one_clear_line(tmp_path):
    ended = discreet("fit", protected(tmp_path))
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "protected by a password" in ended.err
    path = book(tmp_path, {"s": PLAIN})
    whole = path.read_bytes()
    for cut in (whole[: len(whole) // 2], whole[:40], b"\xd0\xcf\x11\xe0" + bytes(3000)):
        path.write_bytes(cut)
        ended = discreet("fit", path)
        assert (ended.code, ended.err.count("\n")) == (3, 1), ended.err
        assert "damaged or cut off" in ended.err


def test_a_byte_that_changed_on_the_way_is_damage_and_no_fault_of_the_program(tmp_path):
    path = book(tmp_path, {"s": PLAIN})
    whole = path.read_bytes()
    codes = set()
    for place in range(0, len(whole), max(len(whole) // 150, 1)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        ended = discreet("fit", path)
        assert "inside discreet" not in ended.err, (place, ended.err)
        codes.add(ended.code)
    assert 3 in codes


def test_a_file_that_is_no_workbook_is_named(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_text("person,a,b\nx,1,0\n")
    with refused(BadResponses, "named_like_not_one", description="a workbook"):
        read_responses(path)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = book(tmp_path, {"s": PLAIN})
    monkeypatch.setattr(workbook, "MOST_UNPACKED", 1000)
    with refused(BadResponses, "unpacks_gb_no_sheet"):
        read_responses(path)


def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch):
    path = book(tmp_path, {"s": PLAIN})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with refused(MissingExtra, "needs_optional_dependency_group", extra="files"):
        read_responses(path)
    ended = discreet("fit", path)
    assert (ended.code, ended.err.count("\n")) == (2, 1)


def test_sheet_and_delimiter_are_refused_where_they_mean_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("person,a,b\nx,1,0\ny,0,1\n")
    with refused(BadUsage, "no_workbook_no_sheet"):
        read_responses(path, sheet="s")
    with refused(BadUsage, "no_text_file_nothing"):
        read_responses(book(tmp_path, {"s": PLAIN}), delimiter=";")


def test_comparisons_anchors_and_item_lists_are_read_from_workbooks_too(tmp_path):
    votes = write_xlsx(
        tmp_path / "votes.xlsx",
        {"notes": [["x"]], "votes": [["judge", "winner", "loser"], ["a", "x", "y"]]},
    )
    assert read_comparisons(votes, sheet="votes").n_comparisons == 1
    listed = write_xlsx(tmp_path / "items.xlsx", {"s": [["a"], ["b"], [7]]})
    assert read_list(listed) == ["a", "b", "7"]
    answers = read_responses(book(tmp_path, {"s": PLAIN}))
    anchors = write_ods(tmp_path / "anchors.ods", {"s": [["item", "difficulty"], ["a", -0.25]]})
    assert fit(answers, anchors=anchors).difficulty[0] == -0.25
    assert discreet("fit", tmp_path / "answers.xlsx", "--anchors", anchors).code == 0
