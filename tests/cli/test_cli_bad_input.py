"""Every bad input that a user can bring: a clear sentence, the right exit code, nothing else."""

import gzip

import pytest

from commandline import discreet

LONG = "person,item,response\n"


@pytest.fixture
def bring(tmp_path):
    """Write a file and calibrate it."""

    def run(content, *options, name="answers.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return discreet("fit", path, "--json", *options)

    return run


def check_refused(ended, code, *words):
    assert ended.code == code, ended.err
    assert ended.out == ""
    assert ended.err.startswith("Error: ")
    assert "Traceback" not in ended.err
    assert "inside discreet" not in ended.err
    for word in words:
        assert word in ended.err


def test_an_empty_file(bring):
    check_refused(bring(""), 3, "answers.csv")


def test_a_file_of_zero_bytes_in_every_format(bring):
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz"):
        check_refused(bring(b"", name=name), 3, name)


def test_a_header_without_rows(bring):
    check_refused(bring(LONG), 3, "answers.csv")
    check_refused(bring("a,b,c\n"), 3, "answers.csv")


def test_a_named_column_that_is_not_there(bring):
    ended = bring(LONG + "1,a,1\n2,a,0\n", "--item", "question")
    check_refused(ended, 2, "question")


def test_a_two_among_zeros_and_ones(bring):
    ended = bring(LONG + "1,a,1\n1,b,2\n2,a,0\n")
    check_refused(ended, 3, "answers.csv", "line 3", "response", "2", "--model partial-credit")


def test_codes_for_missing_answers_can_be_named_and_are_advised_first(bring):
    table = "x,y\n1,0\n0,1\n1,9\n-1,0\n0,omit\n"
    check_refused(bring(table), 3, "line 4", "--missing 9)")
    check_refused(bring(table, "--missing", "9"), 3, "line 5", "--missing -1)")
    ended = bring(table, "--missing", "9,-1, Omit")
    assert [row["answers"] for row in ended.document["items"]] == [4, 3]
    assert bring("x,y\n1,0\n0,1\n-1,0\n", "--missing", "-1").code == 0
    check_refused(bring(table, "--missing", "9,0"), 2, "names an answer")


def test_a_two_in_a_wide_table_names_line_and_column(bring):
    check_refused(bring("a,b\n1,0\n0,2\n"), 3, "line 3", "'b'", "2")


def test_a_word_among_the_answers(bring):
    check_refused(bring(LONG + "1,a,1\n1,b,yes\n"), 3, "yes", "line 3")


def test_a_person_who_answered_an_item_twice(bring):
    check_refused(bring(LONG + "1,a,1\n1,b,0\n1,a,0\n2,a,1\n"), 3, "a", "--repeats")


def test_a_byte_order_mark_is_no_part_of_the_first_name(bring):
    ended = bring(b"\xef\xbb\xbfa,b\n1,0\n0,1\n")
    assert ended.code == 0
    assert ended.document["items"][0]["item"] == "a"


def test_latin_1_is_read_with_a_warning(bring):
    ended = bring("größe,b\n1,0\n0,1\n".encode("latin-1"))
    assert ended.code == 0
    assert ended.document["items"][0]["item"] == "größe"
    assert "UTF-8" in ended.err


def test_windows_line_ends_are_no_part_of_the_last_column(bring):
    ended = bring(b"a,b\r\n1,0\r\n0,1\r\n")
    assert [item["item"] for item in ended.document["items"]] == ["a", "b"]


def test_a_truncated_gzip(bring):
    whole = gzip.compress((LONG + "".join(f"{k},a,{k % 2}\n" for k in range(9999))).encode())
    check_refused(bring(whole[: len(whole) // 2], name="answers.csv.gz"), 3, "answers.csv.gz")


def test_a_file_that_is_something_else(bring):
    check_refused(bring(b"\x00\x01\x02\xff" * 100, name="answers.parquet"), 3, "answers.parquet")


def test_ragged_rows(bring):
    check_refused(bring("a,b\n1,0\n0,1,1\n"), 3, "answers.csv")


def test_one_item_cannot_be_compared(bring):
    check_refused(bring("a\n1\n0\n"), 5)


def test_one_person_cannot_link_items_both_ways(bring):
    check_refused(bring("a,b\n1,0\n"), 5)


def test_everyone_right(bring):
    check_refused(bring("a,b\n1,1\n1,1\n"), 5)


def test_an_item_nobody_answered_keeps_its_row(bring):
    ended = bring("a,b,c\n1,0,\n0,1,\n")
    assert ended.code == 0
    assert ended.document["items"][2] == {
        "item": "c",
        "difficulty": None,
        "se": None,
        "status": "no_answers",
        "answers": 0,
        "right": 0,
    }
    assert "nobody answered" in ended.err


def test_two_forms_with_no_common_item_are_never_put_on_one_scale(bring):
    ended = bring("a,b,c,d\n" + "1,0,,\n0,1,,\n" * 3 + ",,1,0\n,,0,1\n")
    assert ended.code == 0
    status = [item["status"] for item in ended.document["items"]]
    assert status == ["estimated", "estimated", "not_connected", "not_connected"]
    assert "do not link" in ended.err


def test_ten_thousand_columns(bring):
    names = ",".join(f"q{k}" for k in range(10_000))
    blank = "," * 9_996
    ended = bring(f"{names}\n1,0,1,{blank}\n0,1,0,{blank}\n1,0,0,{blank}\n")
    assert ended.code == 0
    assert len(ended.document["items"]) == 10_000
    assert ended.document["items"][-1]["status"] == "no_answers"


def test_ids_that_look_like_numbers_stay_as_they_are(bring):
    ended = bring(LONG + "007,01,1\n007,1,0\n7,01,0\n7,1,1\n")
    assert ended.code == 0
    assert ended.document["persons"] == 2
    assert [item["item"] for item in ended.document["items"]] == ["01", "1"]


def test_a_file_that_is_not_there(tmp_path):
    check_refused(discreet("fit", tmp_path / "nowhere.csv", "--json"), 2, "nowhere.csv")
    check_refused(discreet("top", tmp_path / "nowhere.csv", "-k", "1"), 2, "nowhere.csv")


def test_a_folder_instead_of_a_file(tmp_path):
    check_refused(discreet("fit", tmp_path, "--json"), 2, str(tmp_path))


@pytest.mark.parametrize("command", ["fit", "simulate", "demo"])
def test_an_output_folder_that_cannot_be_written(tmp_path, command):
    (tmp_path / "file").write_text("not a folder")
    out = tmp_path / "file" / "out"
    answers = tmp_path / "answers.csv"
    answers.write_text("a,b\n1,0\n0,1\n")
    arguments = {
        "fit": ["fit", answers, "--out", out],
        "simulate": ["simulate", "--persons", 9, "--items", 3, "--out", out / "answers.csv"],
        "demo": ["demo", "--out", out],
    }
    check_refused(discreet(*arguments[command]), 2, "--out", "file")


def test_the_output_is_checked_before_the_answers_are_read(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    ended = discreet("fit", tmp_path / "nowhere.csv", "--out", tmp_path / "file" / "out")
    check_refused(ended, 2, "--out")
