"""Answers are chosen by person, put together and handed on as tables."""

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.errors import BadResponses, BadUsage
from discreet.simulation import simulate
from refusals import refused


def answers(filled=0.7, persons=300, items=9, seed=3):
    codes = simulate(persons, items, filled, rng=np.random.default_rng(seed)).responses.to_array()
    frame = {"person": [f"p{n}" for n in range(persons)], "sex": ["f", "m", ""] * (persons // 3)}
    frame |= {f"q{n}": np.ma.masked_less(column, 0) for n, column in enumerate(codes.T)}
    table = pa.table({name: pa.array(column) for name, column in frame.items()})
    return discreet.Responses.from_dataframe(table, group="sex")


@pytest.mark.parametrize("filled", [0.9, 0.02])  # bit planes, sparse rows
def test_persons_are_chosen_by_slice_mask_position_and_id(filled):
    X = answers(filled, items=60)
    where = np.random.default_rng(1).permutation(300)[:120]
    for rows in (where, where.tolist(), [f"p{n}" for n in where]):
        some = X.select_persons(rows)
        assert np.array_equal(some.to_array(), X.to_array()[where])
        assert some.persons.tolist() == [f"p{n}" for n in where]
        assert some.groups["sex"].tolist() == X.groups["sex"][where].tolist()
    mask = X.to_array()[:, 0] == 1
    assert np.array_equal(X.select_persons(mask).to_array(), X.to_array()[mask])
    assert X.select_persons(slice(None)) == X
    assert X.select_persons([]).n_persons == 0


def test_numbered_persons_keep_their_numbers():
    X = discreet.Responses.from_array(np.eye(4))
    assert X.select_persons([2, 0]).persons.tolist() == ["2", "0"]


@pytest.mark.parametrize(
    ("rows", "code", "facts"),
    [
        ([0, 0], "person_chosen_twice_ids", {}),
        ([300], "no_person_position_positions", {"outside": "300"}),
        ([-1], "no_person_position_positions", {"outside": "-1"}),
        (["nobody"], "no_answers_ids_texts", {"unknown": "nobody"}),
        ([True, False], "truth_values_given_persons", {"n_choice": "2"}),
        (3, "persons_chosen_list_positions", {}),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(rows, code, facts):
    with refused(BadUsage, code, **facts):
        answers().select_persons(rows)


def test_what_was_chosen_goes_with_its_person():
    table = pa.table({"person": ["a", "b", "c"], "x": ["A", "B", "C"], "y": ["A", "A", "D"]})
    X = discreet.Responses.from_dataframe(table, key={"x": "A", "y": "A"})
    assert np.array_equal(X.select_persons([2, 0]).choices.chosen, X.choices.chosen[[2, 0]])


def test_parts_of_answers_put_together_are_the_answers():
    X = answers()
    assert discreet.Responses.concat([X.select_persons(slice(0, 100)),
                                      X.select_persons(slice(100, 300))]) == X  # fmt: skip


def chosen(persons, answers, key, **columns):
    table = pa.table({"person": persons, "x": answers, **columns})
    return discreet.Responses.from_dataframe(table, key=key)


def test_what_was_chosen_is_put_together_too():
    one = chosen(["a", "b"], ["A", "B"], {"x": "A", "y": "C"}, y=["C", "D"])
    two = chosen(["c", "d", "e"], ["c", "b", None], {"x": "A"})
    three = discreet.Responses.from_array([[1, 0]], items=["x", "z"], persons=["f"])
    both = discreet.Responses.concat([one, two, three])
    assert both.items == ("x", "y", "z")
    assert both.choices.items == ("x", "y")
    assert both.choices.options == (("A", "B", "C"), ("C", "D"))
    assert both.choices.right == ((True, False, False), (True, False))
    options, codes = both.choices.options[0], both.choices.chosen[:, 0]
    assert [options[code] if code >= 0 else None for code in codes] == [
        "A", "B", "C", "B", None, None
    ]  # fmt: skip
    assert both.choices.chosen[:, 1].tolist() == [0, 1, -1, -1, -1, -1]
    assert discreet.Responses.concat([three]).choices is None


def test_answers_that_two_keys_judge_differently_are_not_put_together():
    parts = [chosen(["a"], ["A"], {"x": "A"}), chosen(["b"], ["A"], {"x": "B"})]
    with refused(BadResponses, "keys_parts_disagree_answer", option="A", item="x"):
        discreet.Responses.concat(parts)


def test_of_very_many_different_answers_the_rarer_parts_share_a_name():
    words = [f"word {number}" for number in range(90)]
    one = chosen([f"a{n}" for n in range(90)], words, {"x": "word 0"})
    two = chosen([f"b{n}" for n in range(90)], [f"other {n}" for n in range(90)], {"x": "word 0"})
    both = discreet.Responses.concat([one, two]).choices
    assert len(both.options[0]) <= 101
    assert "word 0" in both.options[0]
    assert (both.chosen >= 0).all()
    last = both.options[0][both.chosen[-1, 0]]
    assert last == "(other)"


def test_an_item_that_a_part_lacks_is_unanswered_there():
    one = discreet.Responses.from_array([[1, 0]], items=["a", "b"])
    two = discreet.Responses.from_array([[0, 1]], items=["c", "b"])
    both = discreet.Responses.concat([one, two])
    assert both.items == ("a", "b", "c")
    assert both.to_array().tolist() == [[1, 0, -1], [-1, 1, 0]]
    assert both.persons.tolist() == ["0", "1"]


def test_a_person_in_two_parts_is_refused():
    X = answers()
    with refused(BadResponses, "persons_occur_more_than", n_repeated="1", repeated="p5"):
        discreet.Responses.concat([X.select_persons([5, 6]), X.select_persons([7, 5])])
    with refused(BadResponses, "nothing_put_together_give"):
        discreet.Responses.concat([])


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_a_table_of_answers_reads_back_as_the_answers(layout):
    X = answers()
    again = discreet.Responses.from_dataframe(X.to_dataframe(layout), group="sex")
    assert again.select(X.items).select_persons(X.persons) == X


def test_a_table_that_would_be_ambiguous_is_refused():
    X = discreet.Responses.from_array([[1, 0]], items=["person", "b"])
    with refused(BadUsage, "wide_table_would_two", taken="person"):
        X.to_dataframe("wide")
    with refused(BadUsage, "layout_must_long_wide"):
        X.to_dataframe("tall")
