"""One declaration of how a table becomes answers: all other lists of options agree with it."""

from dataclasses import fields, replace

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
from discreet.errors import BadUsage
from discreet.studio.inspecting import FIELDS
from discreet.tables.options import READING_FIELDS

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
    with pytest.raises(BadUsage, match="must be of the type Reading; found"):
        read_responses(path, reading=words)
    with pytest.raises(BadUsage, match=r"Did you mean ignore\?"):
        read_responses(path, ignored="age")
