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

LONG = "person,item,response\n"
ACCEPTED = (
    "Answers must be 0, 1, true or false, steps (whole numbers from 0 or 1 with at most eleven "
    "categories and no gap), or missing (blank, NA, NaN, '.' or null)."
)
NO_ANSWER = (
    "If {0} stands for a missing answer{1}, say so with missing=[{0}] (--missing {0}); otherwise "
    "correct the cell."
)
SCALE = (
    "are steps of a rating scale or points, say from which score on they count as right with "
    "at_least=SCORE (--at-least SCORE); codes for missing answers must be named too, or they count "
    "as right."
)
SCORES = (
    "If answers are scores, say from which score on they count as right with at_least=SCORE "
    "(--at-least SCORE)."
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into an empty folder that is the current one, so that messages are short."""
    monkeypatch.chdir(tmp_path)

    def to_file(content, name="a.csv"):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return to_file


def refusal(error, path, **options) -> str:
    with pytest.raises(error) as caught:
        read_responses(path, **options)
    return str(caught.value)


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
        message = refusal(BadResponses, path)
    assert message == (
        "a.csv is neither UTF-8 nor Windows-1252 (Latin-1) text, so its names cannot be read. "
        "Save it as UTF-8."
    )


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
    assert refusal(BadResponses, path, group="sex") == (
        "a.csv, line 4, column 'sex': person 'a' belongs to group 'M' here but to 'F' before. A "
        "person can be in one group only. Correct the column, or leave it out with "
        "ignore=['sex'] (--ignore)."
    )


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
    assert refusal(BadResponses, "*.csv") == (
        "Person 'a' answered item 'x' more than once: 1.csv, line 2 and 2.csv, line 3. Only one "
        "answer can count. Remove one, or keep the first or the last of them with repeats='first' "
        "or repeats='last' (--repeats first, --repeats last)."
    )


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
    assert refusal(BadResponses, "a.parquet").startswith(
        f"a.parquet, row 2, column 'q1': found 5 where an answer should be. {ACCEPTED} If "
    )


def test_damaged_parquet_is_refused(write):
    pq.write_table(pa.table({"id": ["a", "b"], "q1": [1, 0]}), "a.parquet")
    path = write(Path("a.parquet").read_bytes()[:-30], "cut.parquet")
    assert refusal(BadResponses, path).startswith(
        "cut.parquet is damaged or cut off and cannot be read as Parquet: "
    )


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
    ("text", "message"),
    [
        (
            '{"id": 1, "q1": 1}\n{"id": 2,\n',
            "a.jsonl, line 2: not valid JSON (Expecting property name enclosed in double quotes at "
            "character 10). Each line must be one JSON object; correct the line or write the file "
            "again.",
        ),
        (
            "[1]\n",
            "a.jsonl, line 1: found a list where an object should be. Each line must be one JSON "
            'object, such as {"person": "p1", "item": "i1", "response": 1}.',
        ),
        (
            '{"id": 1, "q1": 1}\n\n{"id": 2, "q1": 3}\n',
            f"a.jsonl, line 3, column 'q1': found 3 where an answer should be. {ACCEPTED} If 1 "
            f"to 3 {SCALE} {NO_ANSWER.format(3, '')} If 'q1' is not an item, leave it out with "
            "ignore=['q1'] (--ignore q1).",
        ),
        (
            '{"person": "a", "item": "x", "response": 1}\n{"person": "a", "item": "y"}\n',
            "a.jsonl, line 2: the record has no 'response', which the first record has. Add it "
            "(null where there is no answer) or remove the line.",
        ),
        (
            '{"subject_id": "a", "responses": {"x": 1}}\n{"subject_id": "b", "responses": 1}\n',
            "a.jsonl, line 2: 'responses' must be an object from items to answers, as in the first "
            "record; found a number.",
        ),
        (
            '{"subject_id": "a", "responses": {"x": 1}}\n{"subject_id": "", "responses": {}}\n',
            "a.jsonl, line 2: the person id is missing. Fill it in, or remove the line.",
        ),
        (
            '{"responses": {"x": 1}}\n',
            "a.jsonl: the first record has 'responses' but no person; its keys are 'responses'. "
            "Name the person's key with person=NAME (--person NAME).",
        ),
        (
            '{"person": null, "item": "x", "response": 1}\n',
            "a.jsonl, line 1, column 'person': the person id is missing. Without it the row "
            "belongs to no person. Fill it in, or remove the row.",
        ),
    ],
)
def test_bad_json_lines_are_refused_with_their_line(write, text, message):
    assert refusal(BadResponses, write(text, "a.jsonl")) == message


# -- what is refused -------------------------------------------------------------------------

EMPTY = (
    "a.csv is empty. A file of answers has a first row of column names and then one row per "
    "person, or per person and item."
)
NO_ROWS = (
    "a.csv has column names but no rows below them, so there are no answers to read. Check that "
    "it was written completely."
)
UNCLEAR = (
    "a.csv: cannot tell whether this is a long or a wide table. Column 'item' looks like the item "
    "column of a long table, but no column looks like its answer column; the columns are 'person', "
    "'item'. If it is long, name the answer column with response=NAME (--response NAME); if it has "
    "one column per item, say layout='wide' (--layout wide)."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", EMPTY),
        ("\n \n", EMPTY),
        ("\ufeff", EMPTY),
        (LONG, NO_ROWS),
        ("id,q1,q2", NO_ROWS),
        ("person,item\na,x\n", UNCLEAR),
        (
            "item,response\nx,1\n",
            "a.csv: no person column found; the columns are 'item', 'response'. A long table needs "
            "a person, an item and an answer column. Name this one with person=NAME (--person "
            "NAME), or say layout='wide' (--layout wide) if there is one column per item.",
        ),
        (
            "id,user,item,response\n1,2,x,1\n",
            "a.csv: 'id' and 'user' could each be the person column. Say which one is meant with "
            "person=NAME (--person NAME).",
        ),
        (
            LONG + "a,x,1\na,y,2\n",
            f"a.csv, line 3, column 'response': found '2' where an answer should be. {ACCEPTED} "
            f"If 1 to 2 {SCALE} {NO_ANSWER.format(2, ' (1 of 2 answers looked at)')}",
        ),
        (
            "id,q1,q2\na,1,0\n\nb,0,2\n",
            "a.csv, line 4, column 'q2': found '2' where an answer should be. Item 'q2' has the "
            "answer 2, and all other items are right or wrong (0 or 1). If 2 stands for a missing "
            "answer, say missing=[2] (--missing 2). If it is meant, name the model: "
            "model='partial-credit' (--model partial-credit). Otherwise correct it.",
        ),
        (
            "id,q1,sex\na,1,F\n",
            f"a.csv, line 2, column 'sex': found 'F' where an answer should be. {ACCEPTED} If "
            "'sex' groups the persons, say group='sex' (--group sex). If 'sex' is not an item, "
            "leave it out with ignore=['sex'] (--ignore sex). Correct the cell, or leave it blank.",
        ),
        (
            LONG + "a,x,-1\n",
            f"a.csv, line 2, column 'response': found '-1' where an answer should be. {ACCEPTED} "
            f"{NO_ANSWER.format(-1, ' (1 of 1 answers looked at)')} {SCORES}",
        ),
        (
            LONG + '"a\nb",x,1\r\n\r\na,x,1\r\n"a\nb",x,0\r\n',
            "Person 'a\\nb' answered item 'x' more than once: a.csv, line 2 and a.csv, line 6. "
            "Only one answer can count. Remove one, or keep the first or the last of them with "
            "repeats='first' or repeats='last' (--repeats first, --repeats last).",
        ),
        (
            "id,q1,q2\na,1,\nb,1,1\na,0,0\n",
            "Person 'a' answered item 'q1' more than once: a.csv, line 2 and a.csv, line 4. Only "
            "one answer can count. If these are two persons, number the rows with ignore=['id'] "
            "(--ignore id). Remove one, or keep the first or the last of them with "
            "repeats='first' or repeats='last' (--repeats first, --repeats last).",
        ),
        (
            LONG + "a,x,1\n,x,0\n",
            "a.csv, line 3, column 'person': the person id is missing. Without it the row "
            "belongs to no person. Fill it in, or remove the row.",
        ),
        (
            LONG + "a,x,1\nb,NA,0\n",
            "a.csv, line 3, column 'item': the item id is missing. Without it the row belongs "
            "to no item. Fill it in, or remove the row.",
        ),
        (
            LONG + "a,x,1\na,y\n",
            "a.csv, line 3: found 2 fields, but the first row has 3 column names, so it is not "
            "clear which answer is which. Correct the line (the delimiter is a comma).",
        ),
        (
            LONG + 'a,x,1\n"a,y,1\nb,y,1\n',
            "a.csv, line 3: found 1 field, but the first row has 3 column names, so it is not "
            "clear which answer is which. Correct the line (the delimiter is a comma). A quotation "
            "mark that is opened and not closed can cause this.",
        ),
        (
            "id,q1,q1\na,1,0\n",
            "a.csv: columns 2 and 3 are both called 'q1'. Items must have different names; rename "
            "or remove one.",
        ),
        (
            "id,q1,\na,1,\n",
            "a.csv: column 3 has no name, so its item would have none. Name the column in the "
            "first row, or remove it.",
        ),
        (
            "id\na\n",
            "a.csv has no item columns; the columns are 'id'. A wide table needs one column of "
            "answers per item.",
        ),
    ],
)
def test_bad_files_are_refused_with_place_reason_and_remedy(write, text, message):
    assert refusal(BadResponses, write(text)) == message


def test_a_late_bad_value_is_found_at_its_line(write):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(600_000))
    message = refusal(BadResponses, write(LONG + rows + "q,x,yes\n"))
    assert message.startswith("a.csv, line 600002, column 'response': found 'yes'")


def test_an_open_quotation_mark_early_in_a_long_file_is_found(write):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(600_000))
    message = refusal(BadResponses, write(LONG + 'a,x,1\n"b,x,1\n' + rows))
    assert message.startswith("a.csv, line 3: found 1 field")
    assert message.endswith("A quotation mark that is opened and not closed can cause this.")


def test_truth_values_are_refused_where_marks_are_expected(write):
    assert refusal(BadResponses, write(LONG + "a,x,4\na,y,true\n"), at_least=3) == (
        "a.csv, line 3, column 'response': found 'true' where an answer should be. With at_least=3 "
        "every answer must be a number or missing (blank, NA, NaN, '.' or null). Correct the cell, "
        "or leave it blank."
    )


@pytest.mark.parametrize("size", [40, -300, -4])
def test_a_cut_off_gzip_file_is_refused(write, size):
    rows = "".join(f"p{k},x,{k % 2}\n" for k in range(500_000))
    packed = gzip.compress((LONG + rows).encode(), 1)
    assert refusal(BadResponses, write(packed[:size], "a.csv.gz")) == (
        "a.csv.gz is a damaged or cut-off packed file: the compressed data ends early or does not "
        "match its checksum, so answers would be lost. Copy or download the file again."
    )


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (
            b"id,q1\na,1\n",
            "a.csv.gz",
            "a.csv.gz is named like a gzip file but is not one. Rename it without .gz, or pack it.",
        ),
        (
            b"PK\x03\x04....",
            "a.csv",
            "a.csv is a zip file, which is not looked into. Unpack it and give the file inside.",
        ),
        (
            b"id,q1\na,1\n",
            "a.parquet",
            "a.parquet is named like a Parquet file but is not one (it does not begin with PAR1). "
            "It may be cut off, or another format; name it after what it is.",
        ),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(write, content, name, message):
    assert refusal(BadResponses, write(content, name)) == message


def test_long_and_wide_files_do_not_mix(write):
    write("id,q1\na,1\n", "1.csv")
    write(LONG + "b,q1,1\n", "2.csv")
    assert refusal(BadResponses, "*.csv") == (
        "2.csv is a long table but 1.csv is a wide one. Read them one by one, or say layout='long' "
        "or layout='wide' (--layout) if this is a mistake."
    )


def test_files_with_and_without_persons_do_not_mix(write):
    write("id,q1\na,1\n", "1.csv")
    write("q1\n1\n", "2.csv")
    assert refusal(BadResponses, "*.csv") == (
        "2.csv has no person column, but the files before it have one. Give all files a person "
        "column, or none."
    )


def test_paths_without_a_file_are_wrong_usage(write):
    assert refusal(BadUsage, "none.csv") == (
        "There is no file 'none.csv'. Check the path and the folder you are in."
    )
    assert refusal(BadUsage, "*.nothing") == (
        "No file matches '*.nothing'. Check the pattern and the folder you are in."
    )
    Path("folder").mkdir()
    assert refusal(BadUsage, "folder") == (
        "The folder 'folder' holds no file of answers. Looked for names that end in .csv, .tsv, "
        ".parquet, .pq, .feather, .arrow, .jsonl, .ndjson, .xlsx, .xlsm, .xlsb, .xls, .ods, .sav, "
        ".zsav, .dta, .xpt, .sas7bdat, .eval, .json, each also with .gz, .bz2, .zst."
    )
    os.mkfifo("pipe")
    assert refusal(BadUsage, "pipe") == (
        "'pipe' is not a regular file. Files are looked at more than once, which a pipe or device "
        "does not allow; write the data to a file first."
    )
    assert refusal(BadUsage, "x" * 300).endswith("': the name is too long for one.")
    assert (BadUsage.exit_code, BadResponses.exit_code) == (2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"person": "nobody"},
            "a.csv has no column 'nobody', which person= (--person) asks for. Its columns are "
            "'person', 'item', 'response'.",
        ),
        (
            {"layout": "tall"},
            "layout must be None or 'long' or 'wide' or 'transposed'; found 'tall'.",
        ),
        ({"repeats": "all"}, "repeats must be 'error' or 'first' or 'last' or 'sum'; found 'all'."),
        ({"one_means": "yes"}, "one_means must be 'right' or 'wrong'; found 'yes'."),
        ({"at_least": float("nan")}, "at_least must be a finite number; found nan."),
        (
            {"person": "item"},
            "a.csv: person, item and response must be three different columns; found 'item', "
            "'item' and 'response'.",
        ),
        (
            {"layout": "wide", "item": "item"},
            "item= and response= name columns of a long table, but layout='wide' was given. Leave "
            "out one or the other.",
        ),
    ],
)
def test_wrong_options_are_wrong_usage(write, options, message):
    assert refusal(BadUsage, write(LONG + "a,x,1\n"), **options) == message


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
