"""Keys turn what persons chose into right and wrong; codes for missing answers by column."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from commandline import discreet
from discreet import Responses, read_responses
from discreet.coding.reading import Reading
from discreet.errors import BadResponses, BadUsage
from discreet.readers.streamed.counting import count_source
from refusals import refused

WIDE = "id,Q1,Q2,Q3\na,A,b,C\nb,C,B,\nc,A,D,9\n"
LONG = "person,item,response\na,Q1,A\na,Q2,b\na,Q3,C\nb,Q1,C\nb,Q2,B\nc,Q1,A\nc,Q2,D\nc,Q3,9\n"
RIGHT = [[1, 1, 1], [0, 1, -1], [1, 0, 0]]
KEY = {"Q1": "A", "Q2": "B", "Q3": ["C", "D"]}


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="answers.csv"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return to_file


KEYS = {
    "rows": "item,answer\nQ1,A\nQ2,B\nQ3,C\nQ3,D\n",
    "other names": "Question;Key\nQ1;a\nQ2; b \nQ3;C|D\n",
    "no names": 'Q1,A\nQ2,B\nQ3,"C,D"\n',
    "one row": "Q1,Q2,Q3\nA,B,C|D\n",
}


@pytest.mark.parametrize("table", [WIDE, LONG])
@pytest.mark.parametrize("kind", ["mapping", *KEYS])
def test_a_key_says_what_is_right_in_long_and_wide_tables(write, table, kind):
    key = KEY if kind == "mapping" else write(KEYS[kind], "key.csv")
    answers = read_responses(write(table), key=key)
    assert answers.to_array().tolist() == RIGHT


def test_letters_stand_in_the_order_of_the_columns(write):
    path = write(WIDE)
    assert read_responses(path, key="ABC").to_array().tolist() == RIGHT
    assert read_responses(path, key="A,B,C|D").to_array().tolist() == RIGHT
    ended = discreet("fit", path, "--key", "abc", "--json")
    assert [row["right"] for row in ended.document["items"]] == [2, 2, 1]


def test_letters_that_do_not_fit_the_columns_are_refused(write):
    with refused(BadUsage, "key_answers_item_columns", n_letters="4", n_items="3"):
        read_responses(write(WIDE), key="ABCD")
    with refused(BadUsage, "long_table_whose_items"):
        read_responses(write(LONG), key="ABC")


def test_data_frames_and_the_engine_for_any_size_take_keys_too(write):
    path = write(WIDE)
    frame = pd.read_csv(path)
    for key in (KEY, "ABC"):
        assert Responses.from_dataframe(frame, key=key).to_array().tolist() == RIGHT
    for table in (WIDE, LONG):
        path = write(table)
        reading = Reading(None, None, None, None, (), None, "error", "right", None, key=KEY)
        there = count_source(path, reading=reading)
        assert (there.right_wrong == read_responses(path, key=KEY).count().right_wrong).all()


def test_json_lines_take_keys_too(write):
    lines = '{"id": "a", "Q1": "A", "Q2": "C"}\n{"id": "b", "Q1": "B", "Q2": null}\n'
    answers = read_responses(write(lines, "a.jsonl"), key={"Q1": "A", "Q2": "D"})
    assert answers.to_array().tolist() == [[1, 0], [0, -1]]


def test_codes_for_missing_answers_come_before_the_key(write):
    answers = read_responses(write(WIDE), key=KEY, missing={"Q3": 9})
    assert answers.to_array()[:, 2].tolist() == [1, -1, -1]


def test_items_without_a_key_must_be_scored_already(write):
    path = write("id,Q1,open\na,A,1\nb,C,0\n")
    assert read_responses(path, key={"Q1": "A"}).to_array().tolist() == [[1, 1], [0, 0]]
    for table, column in ((WIDE, "Q2"), (LONG, "response")):
        with refused(BadResponses, "bad_answer", column=column, value="'b'") as caught:
            read_responses(write(table), key={"Q1": "A", "Q3": "C"})
        assert "key has no right answer for item 'Q2'" in str(caught.value)


def test_a_key_for_items_that_are_not_there_is_said_or_refused(write):
    path = write(WIDE)
    with pytest.warns(UserWarning, match="The key names 'Q9', which nobody answered"):
        read_responses(path, key={**KEY, "Q9": "A"})
    with refused(BadUsage, "none_items_key_among", strange="'x'", items="'Q1', 'Q2', 'Q3'"):
        read_responses(write("id,Q1,Q2,Q3\na,1,0,1\nb,0,1,1\n"), key={"x": "A"})


@pytest.mark.parametrize(
    ("key", "code", "facts"),
    [
        ("nokey.csv", "no_file_key_read_key", {}),
        ({"Q1": ""}, "no_right_answer_item", {"item": "Q1"}),
        ({}, "names_no_item_check_key", {}),
        (7, "must_found_nothing_read", {"found": "7 (int)"}),
    ],
)
def test_what_is_no_key_is_refused(write, key, code, facts):
    with refused(BadUsage, code, **facts):
        read_responses(write(WIDE), key=key)


def test_a_key_and_a_reversed_meaning_contradict_each_other(write):
    ended = discreet("fit", write(WIDE), "--key", "ABC", "--one-means", "wrong")
    assert (ended.code, "Leave out one or the other" in ended.err) == (2, True)


# -- codes by column -------------------------------------------------------------------------

CODED = "id,Q1,Q2\na,9,1\nb,1,99\nc,0,1\nd,1,0\n"
DROPPED = [[-1, 1], [1, -1], [0, 1], [1, 0]]


def test_codes_can_be_named_for_single_columns(write):
    path = write(CODED)
    assert read_responses(path, missing={"Q1": 9, "Q2": [98, 99]}).to_array().tolist() == DROPPED
    ended = discreet("fit", path, "--missing", "Q1:9,Q2:99", "--json")
    assert [row["answers"] for row in ended.document["items"]] == [3, 3]
    assert discreet("fit", path, "--missing", "9,Q2:99").code == 0
    ended = discreet("fit", path, "--missing", "Q2:9,Q2:99")
    assert (ended.code, "column 'Q1': found '9'" in ended.err) == (3, True)
    ended = discreet("fit", path, "--missing", "9,99,Q7:5")
    assert (ended.code, "'Q7'" in ended.err) == (2, True)


def test_codes_by_item_work_in_long_tables(write):
    path = write("person,item,response\na,Q1,9\na,Q2,1\nb,Q1,1\nb,Q2,0\n")
    answers = read_responses(path, missing={"Q1": 9})
    assert answers.to_array().tolist() == [[-1, 1], [1, 0]]
    with refused(BadResponses, "bad_answer", value="'9'"):
        read_responses(path, missing={"Q2": 9})


def test_arrays_take_codes_too():
    X = np.array([[9, 1], [1, 99], [0, 1], [1, 0]])
    for given in (X, X.astype(float), X.astype(object), X.astype(str), X.tolist()):
        assert Responses.from_array(given, missing=[9, 99]).to_array().tolist() == DROPPED
        made = Responses.from_array(given, ["a", "b"], missing={"a": 9, "b": "99"})
        assert made.to_array().tolist() == DROPPED
    masked = np.ma.MaskedArray(X, X == 99)
    assert Responses.from_array(masked, missing=9).to_array().tolist() == DROPPED
    held = scipy.sparse.coo_array((X.ravel(), np.nonzero(np.ones(X.shape))), shape=X.shape)
    assert Responses.from_array(held, missing={"0": 9, "1": 99}).to_array().tolist() == DROPPED
    with pytest.raises(BadResponses):
        Responses.from_array(X, missing={"0": 99, "1": 9})
    with refused(BadUsage, "missing_names_codes_item", unknown="c"):
        Responses.from_array(X, ["a", "b"], missing={"c": 9})
