"""Files of answers: every format, every layout, and every way in which a file can be bad."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.readers.answers import read_responses
from refusals import refused

LONG = "person,item,response\n"


#: What is said of a line that may have one.
OPEN_QUOTE = " A quotation mark that is opened and not closed can cause this."


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into an empty folder that is the current one, so that messages are short."""
    monkeypatch.chdir(tmp_path)

    def to_file(content, name="a.csv"):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return to_file


# -- what is read ----------------------------------------------------------------------------


def test_a_long_file_is_read(write):
    answers = read_responses(write(LONG + "ann,q1,1\nbob,q2,0\nann,q2,\n"))
    assert answers.items == ("q1", "q2")
    assert answers.persons.tolist() == ["ann", "bob"]
    assert answers.to_array().tolist() == [[1, -1], [-1, 0]]


def test_a_wide_file_is_read(write):
    answers = read_responses(write("Student_ID,q1,q2\nann,1,\nbob,FALSE,true\n"))
    assert answers.items == ("q1", "q2")
    assert answers.persons.tolist() == ["ann", "bob"]
    assert answers.to_array().tolist() == [[1, -1], [0, 1]]


def test_a_wide_file_without_persons_numbers_them(write):
    answers = read_responses(write("q1,q2\n1,0\n0,1\n"))
    assert answers.persons.tolist() == ["0", "1"]


def test_an_unnamed_first_column_holds_the_persons(write):
    assert read_responses(write(",q1\nr1,1\nr2,0\n")).persons.tolist() == ["r1", "r2"]


@pytest.mark.parametrize(
    "header",
    [
        "person,item,response",
        "id,item,resp",
        "Subject_ID,Question,Correct",
        "user_id,problem_id,score",
        "STUDENT,QUESTION_ID,ANSWER",
        " userid , item id , answer ",
    ],
)
def test_long_columns_are_found_by_their_names(write, header):
    answers = read_responses(write(f"when,{header}\nnoon,p,i,1\n"))
    assert (answers.items, answers.persons.tolist()) == (("i",), ["p"])


@pytest.mark.parametrize("word", ["", "NA", "na", "NaN", ".", "null", "NULL", "  "])
def test_every_spelling_of_missing_is_missing(write, word):
    answers = read_responses(write(f"id,q1,q2\na,1,{word}\n"))
    assert answers.to_array().tolist() == [[1, -1]]


@pytest.mark.parametrize(
    ("word", "value"),
    [("0", 0), ("1", 1), ("true", 1), ("FALSE", 0), ("1.0", 1), ("0.0", 0), (" 1", 1), ('"1"', 1)],
)
def test_every_spelling_of_an_answer_is_read(write, word, value):
    assert read_responses(write(f"id,q1\na,{word}\n")).to_array().tolist() == [[value]]


@pytest.mark.filterwarnings("ignore:.*differ only by a final")
def test_ids_that_look_like_numbers_stay_as_written(write):
    answers = read_responses(write(LONG + "007,01,1\n7,1,0\n7.0,1.0,1\n"))
    assert answers.persons.tolist() == ["007", "7", "7.0"]
    assert answers.items == ("01", "1", "1.0")


def test_blanks_around_an_id_do_not_make_another_person(write):
    assert read_responses(write(LONG + "a,x,1\n a,y ,0\na ,z,0\n")).persons.tolist() == ["a"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(write):
    assert read_responses(write("\ufeff" + LONG + "a,x,1\n")).persons.tolist() == ["a"]


def test_windows_line_ends_are_read(write):
    answers = read_responses(write("id,q1,q2\r\na,1,0\r\nb,,1\r\n"))
    assert answers.to_array().tolist() == [[1, 0], [-1, 1]]


def test_a_file_that_is_not_utf8_is_read_as_latin1_with_a_warning(write):
    path = write((LONG + "Jürg,Straße,1\n").encode("latin-1"))
    with pytest.warns(UserWarning, match="not UTF-8") as caught:
        answers = read_responses(path)
    assert [str(warning.message) for warning in caught] == [
        "a.csv is not UTF-8; it is read as Windows-1252 (Latin-1). If names look wrong, save the "
        "file as UTF-8."
    ]
    assert (answers.items, answers.persons.tolist()) == (("Straße",), ["Jürg"])


def test_latin1_far_into_a_file_is_found_too(write):
    rows = "".join(f"p{k},an item with a long name {k % 9},1\n" for k in range(150_000))
    path = write((LONG + rows + "Jürg,x,1\n").encode("latin-1"))
    with pytest.warns(UserWarning, match=r"a\.csv is not UTF-8"):
        answers = read_responses(path)
    assert answers.persons[-1] == "Jürg"
    assert answers.n_answers == 150_001


def test_bytes_in_no_known_encoding_are_refused(write):
    path = write((LONG + "a\x81,x,1\n").encode("latin-1"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(BadResponses, match="neither UTF-8 nor Windows-1252"):
            read_responses(path)


def test_utf16_from_a_spreadsheet_is_read(write):
    path = write("id\tq1\nJürg\t1\nÉva\t0\n".encode("utf-16"), "a.txt")
    assert read_responses(path).persons.tolist() == ["Jürg", "Éva"]


@pytest.mark.parametrize(("mark", "name"), [(";", "a.csv"), ("\t", "a.csv"), ("\t", "a.tsv")])
def test_the_delimiter_is_found(write, mark, name):
    text = "id,q1,q2\nann,1,0\n".replace(",", mark)
    assert read_responses(write(text, name)).items == ("q1", "q2")


def test_gzip_is_known_by_its_bytes_not_its_name(write):
    packed = gzip.compress((LONG + "a,x,1\n").encode())
    assert read_responses(write(packed, "a.csv.gz")) == read_responses(write(packed, "b.csv"))


def test_group_columns_are_kept_beside_the_answers(write):
    wide = read_responses(write("id,sex,q1\na,F,1\nb,,0\n"), group="sex")
    assert wide.items == ("q1",)
    assert wide.groups["sex"].tolist() == ["F", ""]
    path = write("id,item,resp,sex\na,x,1,F\nb,x,0,M\na,y,1,\n")
    assert read_responses(path, group=["sex"]).groups["sex"].tolist() == ["F", "M"]


def test_a_person_in_two_groups_is_refused(write):
    path = write("id,item,resp,sex\na,x,1,F\nb,x,0,M\na,y,1,M\n")
    with refused(
        BadResponses,
        "column_person_belongs_group",
        row="a.csv, line 4",
        name="sex",
        row_2="a",
        row_3="M",
        row_4="F",
    ):
        read_responses(path, group="sex")


def test_at_least_turns_marks_into_right_and_wrong(write):
    answers = read_responses(write("id,q1,q2\na,3,2.5\nb,4.5,NA\n"), at_least=3)
    assert answers.to_array().tolist() == [[1, 0], [1, -1]]


def test_one_means_wrong_turns_answers_around(write):
    for text in ("id,q1,q2\na,1,\nb,0,1\n", LONG + "a,q1,1\nb,q1,0\nb,q2,1\n"):
        answers = read_responses(write(text), one_means="wrong")
        assert answers.to_array().tolist() == [[0, -1], [1, 0]]


@pytest.mark.parametrize(("repeats", "value"), [("first", 1), ("last", 0)])
def test_repeated_answers_are_settled_as_asked(write, repeats, value):
    answers = read_responses(write(LONG + "a,x,1\nb,x,1\na,x,\na,x,0\n"), repeats=repeats)
    assert answers.to_array().tolist() == [[value], [1]]
    with pytest.warns(
        UserWarning, match=r"'a' \(a.csv, line 2 and a.csv, line 4 and a.csv, line 5"
    ):
        answers = read_responses(write("id,x\na,1\nb,1\na,\na,0\n"), repeats=repeats)
    assert answers.to_array().tolist() == [[value], [1]]


def test_a_person_may_continue_in_another_row_or_file(write, tmp_path):
    assert read_responses(write("id,q1,q2\na,1,\na,,0\n")).to_array().tolist() == [[1, 0]]
    Path("logs").mkdir()
    write("id,q1,q2\na,1,0\n", "logs/1.csv")
    write("id,q3,q2\nb,1,0\na,0,\n", "logs/2.csv")
    write("not answers", "logs/README.md")
    answers = read_responses("logs")
    assert answers.items == ("q1", "q2", "q3")
    assert answers.to_array().tolist() == [[1, 0, 0], [-1, 0, 1]]
    assert answers == read_responses("logs/*.csv")


def test_a_repeat_in_another_file_is_found_there(write):
    write(LONG + "a,x,1\nb,x,1\n", "1.csv")
    write("person;item;response\nb;y;1\na;x;0\n", "2.csv")
    with refused(
        BadResponses,
        "person_answered_item_more",
        person="a",
        item="x",
        first="1.csv, line 2",
        second="2.csv, line 3",
    ):
        read_responses("*.csv")


def test_an_item_nobody_answered_stays_an_item(write):
    assert read_responses(write("id,q1,q2\na,1,\nb,0,\n")).items == ("q1", "q2")
    answers = read_responses(write(LONG + "a,q1,1\nb,q2,NA\n"))
    assert (answers.items, answers.n_persons, answers.n_answers) == (("q1", "q2"), 2, 1)


def test_one_item_one_person_and_everyone_right_are_read(write):
    assert read_responses(write(LONG + "a,x,1\n")).to_array().tolist() == [[1]]
    with pytest.warns(UserWarning, match="count as persons, 1 of them: a.csv, line 3"):
        assert read_responses(write("q1\n1\n\n0\n")).to_array().tolist() == [[1], [-1], [0]]
    assert read_responses(write("q1,q2\n1,1\n1,1\n")).n_answers == 4


def test_ten_thousand_columns_are_read(write):
    names = ",".join(f"item{j}" for j in range(10_000))
    row = ",".join(["1", "0", "NA", ""] * 2_500)
    answers = read_responses(write(f"id,{names}\nann,{row}\nbob,{row}\n"))
    assert (answers.n_items, answers.n_answers) == (10_000, 10_000)
    assert answers.rows(1, 2)[0, :4].tolist() == [1, 0, -1, -1]


def test_wide_files_of_several_blocks_keep_every_answer(write):
    rng = np.random.default_rng(3)
    for filled in (0.9, 0.02):
        cells = np.where(rng.random((40_001, 5)) < filled, rng.integers(0, 2, (40_001, 5)), -1)
        lines = "\n".join(",".join("" if c < 0 else str(c) for c in row) for row in cells.tolist())
        answers = read_responses(write(f"a,b,c,d,e\n{lines}\n"))
        assert answers == Responses.from_array(cells, items=list("abcde"))


def test_progress_tells_the_bytes_read(write):
    path = write(LONG + "".join(f"p{k},x,1\n" for k in range(400_000)))
    seen = []
    read_responses(path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == Path(path).stat().st_size
    assert len(seen) > 2


@pytest.mark.parametrize("text", [LONG + "a,x,1\n", "id,q1\na,1\n"])
def test_a_small_file_waits_for_neither_pandas_nor_a_compiler(write, text):
    code = (
        "import sys; from discreet import read_responses; read_responses('a.csv');"
        "print(sorted({'pandas', 'numba', 'polars', 'duckdb', 'narwhals'} & set(sys.modules)))"
    )
    write(text)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# -- Parquet and JSON lines ------------------------------------------------------------------


def test_parquet_is_read_long_and_wide(write):
    long = pa.table({"user": [7, 7, 8], "item": ["x", "y", "x"], "correct": [True, None, False]})
    pq.write_table(long, "long.parquet")
    answers = read_responses("long.parquet")
    assert answers.persons.tolist() == ["7", "8"]
    assert answers.to_array().tolist() == [[1, -1], [0, -1]]
    wide = pa.table({"id": [7.0, 8.0], "q1": pa.array([1, None], pa.int8()), "q2": [0.0, np.nan]})
    pq.write_table(wide, "wide.parquet")
    answers = read_responses("wide.parquet")
    assert answers.persons.tolist() == ["7", "8"]
    assert answers.to_array().tolist() == [[1, 0], [-1, -1]]
    write(gzip.compress(Path("wide.parquet").read_bytes()), "wide.parquet.gz")
    assert read_responses("wide.parquet.gz") == answers


def test_ids_that_no_row_uses_are_not_persons(write):
    users = pa.DictionaryArray.from_arrays([2, 0], ["a", "b", "c"])
    pq.write_table(pa.table({"user": users, "item": ["x", "x"], "score": [1, 0]}), "a.parquet")
    assert read_responses("a.parquet").persons.tolist() == ["c", "a"]


def test_a_bad_value_in_parquet_is_named_with_its_row(write):
    pq.write_table(pa.table({"id": ["a", "b"], "q1": [1, 5]}), "a.parquet")
    with refused(BadResponses, "bad_answer", where="a.parquet, row 2", column="q1", value="5"):
        read_responses("a.parquet")


def test_damaged_parquet_is_refused(write):
    pq.write_table(pa.table({"id": ["a", "b"], "q1": [1, 0]}), "a.parquet")
    path = write(Path("a.parquet").read_bytes()[:-30], "cut.parquet")
    with refused(
        BadResponses, "damaged_cut_off_cannot_read_parquet", path="cut.parquet", kind="Parquet"
    ):
        read_responses(path)


@pytest.mark.parametrize(
    "lines",
    [
        [
            '{"subject_id": 7, "responses": {"x": 1, "y": 0}}',
            '{"subject_id": "b", "responses": {}}',
        ],
        ['{"id": 7.0, "x": true, "y": 0}', '{"id": "b", "y": null}'],
        [
            '{"person": 7, "item": "x", "response": 1}',
            "",
            '{"person": "7", "item": "y", "response": "0"}',
            '{"person": "b", "item": "y", "response": null}',
        ],
    ],
)
def test_json_lines_are_read_in_three_forms(write, lines):
    text = "\n".join(lines) + "\n"
    answers = read_responses(write(text, "a.jsonl"))
    assert (answers.items, answers.persons.tolist()) == (("x", "y"), ["7", "b"])
    assert answers.to_array().tolist() == [[1, 0], [-1, -1]]
    assert read_responses(write(gzip.compress(text.encode()), "a.jsonl.gz")) == answers


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        (
            '{"id": 1, "q1": 1}\n{"id": 2,\n',
            "line_not_valid_json",
            {"path": "a.jsonl", "line": "2", "pos": "10"},
        ),
        ("[1]\n", "line_found_where_object", {"path": "a.jsonl", "line": "1", "record": "a list"}),
        (
            '{"id": 1, "q1": 1}\n\n{"id": 2, "q1": 3}\n',
            "bad_answer",
            {"where": "a.jsonl, line 3", "column": "q1", "value": "'3'"},
        ),
        (
            '{"person": "a", "item": "x", "response": 1}\n{"person": "a", "item": "y"}\n',
            "line_record_no_first",
            {"path": "a.jsonl", "line": "2", "key": "response"},
        ),
        (
            '{"subject_id": "a", "responses": {"x": 1}}\n{"subject_id": "b", "responses": 1}\n',
            "line_responses_must_object",
            {"path": "a.jsonl", "line": "2", "answers": "a number"},
        ),
        (
            '{"subject_id": "a", "responses": {"x": 1}}\n{"subject_id": "", "responses": {}}\n',
            "column_id_missing_without",
            {"row": "a.jsonl, line 2", "name": "subject_id", "role": "person"},
        ),
        (
            '{"responses": {"x": 1}}\n',
            "first_record_responses_no",
            {"path": "a.jsonl", "first": "'responses'"},
        ),
        (
            '{"person": null, "item": "x", "response": 1}\n',
            "column_id_missing_without",
            {"row": "a.jsonl, line 1", "name": "person", "role": "person"},
        ),
    ],
)
def test_bad_json_lines_are_refused_with_their_line(write, text, code, facts):
    with refused(BadResponses, code, **facts):
        read_responses(write(text, "a.jsonl"))


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("", "empty_file_answers_first", {"path": "a.csv"}),
        ("\n \n", "empty_file_answers_first", {"path": "a.csv"}),
        ("\ufeff", "empty_file_answers_first", {"path": "a.csv"}),
        (LONG, "column_names_no_rows_below", {"name": "a.csv"}),
        ("id,q1,q2", "column_names_no_rows_below", {"name": "a.csv"}),
        (
            "person,item\na,x\n",
            "cannot_tell_whether_long",
            {"where": "a.csv", "column": "item", "present": "item", "value": "'person', 'item'"},
        ),
        (
            "item,response\nx,1\n",
            "no_column_found_columns",
            {"where": "a.csv", "meaning": "person", "value": "'item', 'response'"},
        ),
        (
            "id,user,item,response\n1,2,x,1\n",
            "could_each_column_say",
            {"location": "a.csv", "listed": "'id' and 'user'", "meaning": "person"},
        ),
        (
            LONG + "a,x,1\na,y,2\n",
            "bad_answer",
            {"where": "a.csv, line 3", "column": "response", "value": "'2'"},
        ),
        (
            "id,q1,q2\na,1,0\n\nb,0,2\n",
            "bad_answer",
            {"where": "a.csv, line 4", "column": "q2", "value": "'2'"},
        ),
        (
            "id,q1,sex\na,1,F\n",
            "bad_answer",
            {"where": "a.csv, line 2", "column": "sex", "value": "'F'"},
        ),
        (
            LONG + "a,x,-1\n",
            "bad_answer",
            {"where": "a.csv, line 2", "column": "response", "value": "'-1'"},
        ),
        (
            LONG + '"a\nb",x,1\r\n\r\na,x,1\r\n"a\nb",x,0\r\n',
            "person_answered_item_more",
            {"person": "a\\nb", "item": "x", "first": "a.csv, line 2", "second": "a.csv, line 6"},
        ),
        (
            "id,q1,q2\na,1,\nb,1,1\na,0,0\n",
            "person_answered_item_more",
            {"person": "a", "item": "q1", "first": "a.csv, line 2", "second": "a.csv, line 4"},
        ),
        (
            LONG + "a,x,1\n,x,0\n",
            "column_id_missing_without",
            {"row": "a.csv, line 3", "name": "person", "role": "person"},
        ),
        (
            LONG + "a,x,1\nb,NA,0\n",
            "column_id_missing_without",
            {"row": "a.csv, line 3", "name": "item", "role": "item"},
        ),
        (
            LONG + "a,x,1\na,y\n",
            "line_found_first_row",
            {
                "path": "a.csv",
                "line": "3",
                "n_fields": "2 fields",
                "n_names": "3",
                "delimiter": "a comma",
            },
        ),
        (
            LONG + 'a,x,1\n"a,y,1\nb,y,1\n',
            "line_found_first_row",
            {
                "path": "a.csv",
                "open_quote": OPEN_QUOTE,
                "line": "3",
                "n_fields": "1 field",
                "n_names": "3",
                "delimiter": "a comma",
            },
        ),
        (
            "id,q1,q1\na,1,0\n",
            "columns_both_called_items",
            {"where": "a.csv", "name": "2", "number": "3"},
        ),
        ("id,q1,\na,1,\n", "column_no_name_item", {"where": "a.csv", "number": "3"}),
        ("id\na\n", "no_item_columns_columns", {"where": "a.csv", "value": "'id'"}),
    ],
)
def test_bad_files_are_refused_with_place_reason_and_remedy(write, text, code, facts):
    with refused(BadResponses, code, **facts):
        read_responses(write(text))


def test_a_late_bad_value_is_found_at_its_line(write):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(600_000))
    path = write(LONG + rows + "q,x,yes\n")
    with refused(BadResponses, "bad_answer", where="a.csv, line 600002", value="'yes'"):
        read_responses(path)


def test_an_open_quotation_mark_early_in_a_long_file_is_found(write):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(600_000))
    path = write(LONG + 'a,x,1\n"b,x,1\n' + rows)
    with refused(
        BadResponses, "line_found_first_row", line="3", n_fields="1 field", open_quote=OPEN_QUOTE
    ):
        read_responses(path)


def test_truth_values_are_refused_where_marks_are_expected(write):
    with refused(
        BadResponses, "bad_answer", where="a.csv, line 3", column="response", value="'true'"
    ):
        read_responses(write(LONG + "a,x,4\na,y,true\n"), at_least=3)


@pytest.mark.parametrize("size", [40, -300, -4])
def test_a_cut_off_gzip_file_is_refused(write, size):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(500_000))
    packed = gzip.compress((LONG + rows).encode(), 1)
    with pytest.raises(BadResponses, match=r"^a\.csv\.gz is a damaged or cut-off packed file"):
        read_responses(write(packed[:size], "a.csv.gz"))


@pytest.mark.parametrize(
    ("content", "name", "code", "facts"),
    [
        (b"id,q1\na,1\n", "a.csv.gz", "named_like_gzip_file", {"path": "a.csv.gz"}),
        (b"PK\x03\x04....", "a.csv", "zip_file_not_looked", {"path": "a.csv"}),
        (b"id,q1\na,1\n", "a.parquet", "named_like_parquet_file", {"path": "a.parquet"}),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(write, content, name, code, facts):
    with refused(BadResponses, code, **facts):
        read_responses(write(content, name))


def test_long_and_wide_files_do_not_mix(write):
    write("id,q1\na,1\n", "1.csv")
    write(LONG + "b,q1,1\n", "2.csv")
    with refused(
        BadResponses, "table_one_read_them", name="2.csv", ours="long", first="1.csv", theirs="wide"
    ):
        read_responses("*.csv")


def test_files_with_and_without_persons_do_not_mix(write):
    write("id,q1\na,1\n", "1.csv")
    write("q1\n1\n", "2.csv")
    with refused(
        BadResponses,
        "person_column_files_before",
        name="2.csv",
        is_numbered="no",
        is_numbered_2="one",
    ):
        read_responses("*.csv")


def test_paths_without_a_file_are_wrong_usage(write):
    with refused(BadUsage, "no_file_check_path_folder", text="none.csv"):
        read_responses("none.csv")
    with refused(BadUsage, "no_file_matches_check", text="*.nothing"):
        read_responses("*.nothing")
    Path("folder").mkdir()
    with refused(BadUsage, "folder_holds_no_file", folder="folder", packed_ends=".gz, .bz2, .zst"):
        read_responses("folder")
    os.mkfifo("pipe")
    with refused(BadUsage, "not_regular_file_files", location="pipe"):
        read_responses("pipe")
    with refused(BadUsage, "no_file_name_too"):
        read_responses("x" * 300)
    assert (BadUsage.exit_code, BadResponses.exit_code) == (2, 3)


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        (
            {"person": "nobody"},
            "asks_columns_check_column",
            {
                "location": "a.csv",
                "how_often": "has no column",
                "name": "nobody",
                "names": "'person', 'item', 'response'",
            },
        ),
        ({"layout": "tall"}, "must_found_check_choice", {"name": "layout", "value": "tall"}),
        ({"repeats": "all"}, "must_found_check_choice", {"name": "repeats", "value": "all"}),
        ({"one_means": "yes"}, "must_found_check_choice", {"name": "one_means", "value": "yes"}),
        ({"at_least": float("nan")}, "least_must_finite_number", {"at_least": "nan"}),
        (
            {"person": "item"},
            "person_item_response_must",
            {"where": "a.csv", "person": "item", "item": "item", "response": "response"},
        ),
        ({"layout": "wide", "item": "item"}, "item_response_name_columns", {}),
    ],
)
def test_wrong_options_are_wrong_usage(write, options, code, facts):
    with refused(BadUsage, code, **facts):
        read_responses(write(LONG + "a,x,1\n"), **options)


def test_a_square_bracket_in_a_name_is_no_pattern(write):
    assert read_responses(write("id,q1\na,1\n", "a[1].csv")).n_answers == 1


# -- all ways in agree -----------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.sampled_from([1, 0, -1]), min_size=3, max_size=3), min_size=1))
def test_long_wide_and_json_files_say_the_same(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("same")
    words = {1: "1", 0: "0", -1: ""}
    rows = [",".join([f"p{i}", *(words[c] for c in row)]) for i, row in enumerate(cells)]
    (folder / "wide.csv").write_text("id,a,b,c\n" + "\n".join(rows) + "\n")
    flat = [(f"p{i}", n, c) for i, row in enumerate(cells) for n, c in zip("abc", row, strict=True)]
    (folder / "long.csv").write_text(LONG + "".join(f"{p},{n},{words[c]}\n" for p, n, c in flat))
    records = [
        {
            "subject_id": f"p{i}",
            "responses": {n: None if c < 0 else c for n, c in zip("abc", row, strict=True)},
        }
        for i, row in enumerate(cells)
    ]
    (folder / "pyirt.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    expected = Responses.from_array(
        np.array(cells), items=list("abc"), persons=[f"p{i}" for i in range(len(cells))]
    )
    for name in ("wide.csv", "long.csv", "pyirt.jsonl"):
        assert read_responses(folder / name) == expected
