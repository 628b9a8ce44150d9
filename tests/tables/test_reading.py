"""One declaration of how a table becomes answers: all other lists of options agree with it."""

from dataclasses import fields, replace

import numpy as np
import pytest

import discreet
from discreet import Reading, read_responses
from discreet.cli.answers import ReadingOptions, ReleaseReading, TableOptions, list_words
from discreet.coding.reading import (
    READING_DEFAULTS,
    FitWords,
    ListedWords,
    ReadingWords,
    StepWords,
    join_words,
)
from discreet.errors import BadResponses, BadUsage
from discreet.studio.inspecting import FIELDS
from discreet.tables.options import READING_FIELDS
from refusals import refused

NAMES = set(READING_FIELDS)
RELEASED = {name for name, entry in READING_FIELDS.items() if entry.release}
TOLD = {"model", "lowest"}
"""What a release asks for itself, with another meaning."""
RARE = {"skip_rows", "filter"}
"""What the command takes from --spec FILE, to keep its help short."""


def test_every_list_of_options_has_the_fields_of_a_reading():
    assert set(READING_DEFAULTS) == NAMES
    assert set(ReadingWords.__annotations__) == NAMES | {"reading"}
    assert set(FitWords.__annotations__) == NAMES - {"model"} | {"reading"}
    assert set(ListedWords.__annotations__) == RELEASED
    assert set(StepWords.__annotations__) <= NAMES
    assert {entry.name for entry in fields(ReadingOptions)} == NAMES
    assert {entry.name for entry in fields(ReleaseReading)} == RELEASED - RARE | TOLD
    assert {entry.name for entry in fields(TableOptions)} <= NAMES
    assert {entry.name for entry in FIELDS} <= NAMES


def test_the_command_line_without_options_states_nothing():
    assert Reading(**list_words(ReadingOptions())) == Reading()
    assert Reading().stated == {}


def test_every_field_says_what_it_is():
    for name, entry in READING_FIELDS.items():
        assert entry.about.endswith("."), name
        assert f"    {name}" in Reading.__doc__ or f", {name}" in Reading.__doc__


STATED = {
    "layout": "wide",
    "person": "who",
    "ignore": ["note"],
    "group": "class",
    "repeats": "last",
    "missing": {"*": 9, "q1": [98]},
    "key": {"q1": "B"},
    "delimiter": "semicolon",
    "header": False,
    "order_by": "when",
    "steps": {"q2": 3},
    "reverse": "q2",
}


def test_a_reading_is_its_stated_fields():
    reading = Reading(**STATED)
    assert set(reading.stated) == set(STATED)
    assert Reading(**reading.stated) == reading
    assert replace(reading) == reading
    assert join_words({"reading": reading}) == reading
    assert join_words({"reading": reading, "person": "id"}) == replace(reading, person="id")


def test_answers_are_read_by_one_value_or_by_keywords(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("name,age,q1,q2\nann,30,1,9\nbob,40,0,1\n")
    words = {"person": "name", "ignore": "age", "missing": 9}
    reading = Reading(**words)
    assert read_responses(path, reading=reading) == read_responses(path, **words)
    assert discreet.count_pairs(path, reading=reading).items == ("q1", "q2")
    with refused(BadUsage, "must_found_nothing_read", wanted="of the type Reading"):
        read_responses(path, reading=words)
    with refused(BadUsage, "no_keyword_reading_answers", hint="Did you mean ignore?"):
        read_responses(path, ignored="age")


def write_ticks(path, *, layout):
    """Write ticks of ten children to four tasks; what is not ticked is blank."""
    ticks = [(child * 7 + task * 3) % 5 < 3 - task % 2 for child in range(10) for task in range(4)]
    cells = np.array(ticks).reshape(10, 4)
    words = np.where(cells, "x", "")
    if layout == "wide":
        rows = [["id", "a", "b", "c", "d"], *[[f"c{n}", *row] for n, row in enumerate(words)]]
    else:
        pairs = [(f"c{n}", "abcd"[m], words[n, m]) for n in range(10) for m in range(4)]
        rows = [["person", "item", "response"], *pairs]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return cells.astype(int)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_blank_is_wrong_where_that_is_stated_in_every_engine(tmp_path, layout):
    path = tmp_path / "ticks.csv"
    cells = write_ticks(path, layout=layout)
    words = {"blank": "wrong", "key": dict.fromkeys("abcd", "x")}
    answers = discreet.read_responses(path, **words)
    np.testing.assert_array_equal(answers.to_array(), cells)
    counts = [discreet.count_pairs(path, engine=one, **words) for one in ("memory", "disk")]
    np.testing.assert_array_equal(counts[0].right_wrong, counts[1].right_wrong)
    np.testing.assert_array_equal(counts[0].right_wrong, cells.T @ (1 - cells))


def test_names_in_two_rows_are_joined(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("Name,Task 1,,Sum\n,a),b),\nann,1,0,1\nbob,0,1,1\n")
    answers = discreet.read_responses(path, header_rows=2, person="Name", ignore="Sum")
    assert answers.items == ("Task 1 a)", "Task 1 b)")
    assert answers.to_array().tolist() == [[1, 0], [0, 1]]
    path.write_text("Name,Task 1,\n,a),b)\nann,oops,0\nbob,0,1\n")
    with refused(BadResponses, "bad_answer", where="two.csv, line 3", column="Task 1 a)"):
        discreet.read_responses(path, header_rows=2, person="Name")
    with refused(BadUsage, "must_found_check_choice", name="header_rows", allowed="1 or 2"):
        discreet.read_responses(path, header_rows=3)


@pytest.mark.parametrize("words", [{"blank": "wrong"}, {"header_rows": 2}])
def test_a_release_reads_blanks_and_names_by_its_fixed_rules(words):
    with refused(BadUsage, "release_reads_every_row"):
        discreet.Reading(**words, listed=frozenset("ab"))
