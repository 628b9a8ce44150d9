"""A release is told which values are which categories, and never looks for them."""

import json

import numpy as np
import pytest

import discreet
from discreet import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.accounting import Neighbours
from discreet.privacy.protocol import Public
from discreet.publishing.delivery import DataSource, check_lowest, open_listed
from discreet.publishing.spec import make_spec
from discreet.tables.lists import read_form_list, read_items
from refusals import refused

ITEMS = {"a": 2, "b": 2, "c": 1}
ROWS = ["person,a,b,c", "1,1,3,2", "2,2,,1", "3,3,1,1"]
CODES = [[0, 2, 1], [1, -1, 0], [2, 0, 0]]


def write(tmp_path, rows, name="survey.csv"):
    path = tmp_path / name
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def tell(items, **more):
    return make_spec(discreet.Budget(1.0), items=items, **more).public


def read(source, public, engine="auto", **words):
    with open_listed(DataSource(source, engine), words, public) as answers:
        if engine == "disk":
            assert answers.n_persons == 3
            return answers.steps
        return answers.to_array().tolist()


def test_values_become_the_categories_that_were_listed(tmp_path):
    told = tell(ITEMS, lowest=1)
    path = write(tmp_path, ROWS)
    assert read(path, told) == CODES
    assert read(path, told, "disk") == (2, 2, 1)
    frame = discreet.read_responses(path, lowest=1).to_dataframe("wide")
    assert frame["a"].tolist() == [0, 1, 2]


def test_a_matrix_is_read_as_listed():
    told = tell({"0": 2, "1": 2}, lowest=1)
    assert read(np.array([[1, 3], [2, 2]]), told) == [[0, 2], [1, 1]]
    with refused(BadResponses, "correct_init") as caught:
        read(np.array([[1, 4], [2, 2]]), told)
    assert "item '1' has the answer 4" in caught.value.facts["reason"]
    assert read(np.array([[1, 3, 7], [2, 2, -5]]), told) == [[0, 2], [1, 1]]


def test_a_scale_without_its_lowest_value_is_not_shifted(tmp_path):
    """The answers are 1 and 2 of a scale from 0 to 2: nobody chose 0, and 1 stays 1."""
    path = write(tmp_path, ["a,b", "1,2", "2,1", "1,1"])
    assert read(path, tell({"a": 2, "b": 2})) == [[1, 2], [2, 1], [1, 1]]


def test_a_scale_that_runs_the_other_way_is_turned(tmp_path):
    path = write(tmp_path, ROWS)
    turned = read(path, tell(ITEMS, lowest=1), reverse="b")
    assert [row[1] for row in turned] == [0, -1, 2]
    with refused(BadUsage, "reverse_reverse_names_not", unlisted="z"):
        read(path, tell(ITEMS, lowest=1), reverse="z")


def test_a_value_beyond_the_list_is_refused_where_it_stands(tmp_path):
    path = write(tmp_path, [*ROWS, "4,4,1,1"])
    for engine in ("memory", "disk"):
        with refused(BadResponses, "bad_answer", where="survey.csv, line 5"):
            read(path, tell(ITEMS, lowest=1), engine)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"at_least": 2}, "make answers right and wrong"),
        ({"one_means": "wrong"}, "make answers right and wrong"),
    ],
)
def test_words_that_contradict_the_list_are_refused(tmp_path, words, message):
    with refused(BadUsage, "least_least_one_means_one"):
        read(write(tmp_path, ROWS), tell(ITEMS, lowest=1), **words)


@pytest.mark.filterwarnings("ignore:Answers from 1")
def test_answers_that_a_reader_shifted_by_itself_are_not_released():
    """Whether anybody chose 0 would decide how everybody's answers are read."""
    answers = Responses.from_array([[1, 3], [2, 2], [3, 1]], ["a", "b"])
    assert answers.lowest == 1
    assert answers.select(["a"]).lowest == 1
    assert answers.select_persons([0, 1]).lowest == 1
    with refused(BadResponses, "these_answers_read_lowest", lowest="1"):
        check_lowest(tell({"a": 2, "b": 2}), answers)
    check_lowest(tell({"a": 2, "b": 2}, lowest=1), answers)


@pytest.mark.filterwarnings("ignore:Answers from 1")
def test_answers_with_different_lowest_categories_are_not_put_together():
    one = Responses.from_array([[1, 3], [2, 2]], ["a", "b"], persons=["x", "y"])
    other = Responses.from_array([[0, 2], [2, 1]], ["a", "b"], persons=["u", "v"])
    with refused(BadResponses, "some_these_answers_read"):
        Responses.concat([one, other])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("b\na\n", ["b", "a"]),
        ("item,steps\nb,4\na,1\n", {"b": 4, "a": 1}),
        ("Steps;Item\n4;b\n1;a\n", {"b": 4, "a": 1}),
        ("item\nsteps\n", ["item", "steps"]),
    ],
)
def test_a_list_of_items_may_name_steps(tmp_path, text, found):
    assert read_items(write(tmp_path, text.splitlines(), "items.csv")) == found


@pytest.mark.parametrize(
    ("rows", "code", "facts"),
    [
        (["item,steps", "a,4", "a,3"], "line_item_list_already", {"number": "3", "name": "a"}),
        (
            ["item,steps", "a,four"],
            "line_item_steps_must",
            {"number": "2", "name": "a", "step": "four"},
        ),
        (["item,steps", "a,1.5"], "line_item_steps_must", {"number": "2", "name": "a"}),
        (["item,steps", ",4"], "line_no_item_read_items", {"number": "2"}),
    ],
)
def test_a_list_of_steps_is_checked_line_by_line(tmp_path, rows, code, facts):
    with refused(BadUsage, code, **facts):
        read_items(write(tmp_path, rows, "items.csv"))


def test_forms_are_a_table(tmp_path):
    path = write(tmp_path, ["form,item", "A,q1", "A,q2", "B,q2", "B,q3"], "forms.csv")
    assert read_form_list(path) == {"A": ["q1", "q2"], "B": ["q2", "q3"]}


def public(**more):
    return Public(("a", "b", "c"), 3, Neighbours.REPLACE_ONE, 10, **more)


def test_a_list_without_steps_is_of_right_and_wrong_answers():
    assert public().steps == (1, 1, 1)
    assert not public().has_steps
    assert public(steps=(2, 1, 1)).has_steps


@pytest.mark.parametrize(
    ("more", "code", "facts"),
    [
        ({"steps": (1, 2)}, "items_need_numbers_steps", {"n_items": "3", "n_items_2": "3"}),
        ({"steps": (0, 1, 1)}, "item_said_steps_must", {}),
        ({"steps": (10, 1, 1)}, "item_said_steps_must", {"most_steps": "9"}),
        ({"forms": (("a", "b"),)}, "listed_items_no_form", {"n_missed": "1", "missed": "c"}),
        ({"forms": (("a", "b"), ("c", "z"))}, "form_names_not_item", {"unknown": "z"}),
        ({"forms": (("a", "b"), ("c", "c"))}, "form_must_name_least", {}),
        (
            {"design": "none"},
            "must_one_found_check_choice",
            {"name": "design", "choices": "complete, random, unknown"},
        ),
        ({"model": "rasch"}, "must_one_found_check_choice", {"name": "model"}),
    ],
)
def test_what_is_public_is_checked(more, code, facts):
    with refused(BadUsage, code, **facts):
        public(**more)


def test_the_cap_is_at_most_the_longest_form():
    assert public(forms=(("a", "b"), ("b", "c"))).max_answers == 2


def test_public_parameters_are_the_same_when_they_are_read_again():
    forms = {"A": ["a", "b"], "B": ["b", "c"]}
    told = tell(ITEMS, forms=forms, design="complete", lowest=1, model="rating-scale", persons=5)
    assert Public.from_dict(json.loads(json.dumps(told.to_dict()))) == told
    assert told.to_dict()["forms"] == [["a", "b"], ["b", "c"]]


@pytest.mark.parametrize(
    ("items", "more", "code", "facts"),
    [
        ("abc", {}, "items_must_list_item", {"type_name": "one string"}),
        ({"a": "4", "b": 1}, {}, "steps_item_must_whole", {}),
        (["a", "b"], {"lowest": 0.5}, "lowest_must_whole_number", {}),
        (["a", "b"], {"model": "partial-credit"}, "model_items_steps_list", {}),
        ({"a": 2, "b": 2}, {"model": "rasch"}, "model_rasch_right_wrong_answers", {}),
        (
            ["a", "b"],
            {"model": "other"},
            "no_called_one_check_choice_name",
            {"subject": "model", "name": "other"},
        ),
        (["a", "b"], {"forms": ["ab"]}, "form_must_list_items", {}),
        (["a", "b"], {"forms": 3}, "forms_must_lists_items", {}),
    ],
)
def test_what_is_said_about_items_is_checked(items, more, code, facts):
    with refused(BadUsage, code, **facts):
        tell(items, **more)
