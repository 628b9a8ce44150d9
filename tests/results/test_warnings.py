"""Warnings of results: values with a kind, the items concerned and a sentence."""

import copy
import json
import warnings

import numpy as np
import pytest

import discreet
from commandline import discreet as run_command
from discreet import analysis
from discreet.errors import FitWarning, ItemsLeftOut, WarningKind


def test_a_fit_says_which_items_it_left_out_and_why():
    answers = np.array([[1, 0, 1, -1], [0, 1, 1, -1], [1, 0, 1, -1]] * 4)
    found = {one.kind: one for one in discreet.fit(answers).warnings}
    assert set(found) == {WarningKind.LEFT_OUT}
    every = [item for one in discreet.fit(answers).warnings for item in one.items]
    assert every == ["3", "2"]


def test_items_that_nothing_links_have_a_kind_of_their_own():
    left = [[1, 0, -1, -1], [0, 1, -1, -1]] * 7
    right = [[-1, -1, 1, 0], [-1, -1, 0, 1]] * 5
    kinds = {one.kind for one in discreet.fit(np.array(left + right)).warnings}
    assert kinds == {WarningKind.NOT_LINKED, WarningKind.SEVERAL_SETS}


def test_a_warning_prints_and_travels_as_its_sentence():
    notice = FitWarning(WarningKind.DRIFTED, "one item drifted: q1", ["q1"])
    assert json.loads(json.dumps([notice])) == ["one item drifted: q1"]
    assert f"{notice}" == "one item drifted: q1"
    again = copy.deepcopy(notice)
    assert (again, again.kind, again.items) == (notice, WarningKind.DRIFTED, ("q1",))


# -- Python's own warnings -------------------------------------------------------------------------

UNANSWERED = np.array([[1, 0, -1, 1], [0, 1, -1, 1], [1, 0, -1, 0], [0, 1, -1, 0]] * 30)
"""Nobody answered the third item."""


def found_when(act):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        act()
    return [one for one in found if one.category is ItemsLeftOut]


def test_an_item_that_was_left_out_is_a_python_warning_too_with_the_users_line():
    (said,) = found_when(lambda: discreet.fit(UNANSWERED))
    assert str(said.message) == str(discreet.fit(UNANSWERED).warnings[0])
    assert said.filename == __file__


@pytest.mark.parametrize(
    "act",
    [
        lambda: discreet.fit(discreet.count_pairs(UNANSWERED)),
        lambda: discreet.fit(UNANSWERED, method="conditional"),
        lambda: discreet.fit(UNANSWERED, method="marginal"),
        lambda: discreet.fit(UNANSWERED, anchors={"0": 0.0, "1": 0.2}),
        lambda: discreet.score(UNANSWERED, {"0": 0.0, "1": 0.2}),
        lambda: discreet.Rasch().fit(np.where(UNANSWERED < 0, np.nan, UNANSWERED)),
        lambda: analysis.run_andersen(UNANSWERED, ["a"] * 60 + ["b"] * 60),
        lambda: discreet.rank_comparisons(
            discreet.Comparisons.from_codes(
                [0, 1, 2], [0, 1, 0], [1, 0, 1], items=["a", "b", "nobody compared"]
            )
        ),
    ],
)
def test_whatever_leaves_items_out_of_answers_warns_once_for_each_reason(act):
    said = [str(one.message) for one in found_when(act)]
    assert said
    assert len(set(said)) == len(said)
    assert {one.filename for one in found_when(act)} == {__file__}


def test_items_with_other_categories_take_no_part_in_a_link_and_are_warned_of():
    first = discreet.simulate(400, 5, rng=np.random.default_rng(1))
    other = discreet.simulate(400, 5, steps=[1, 1, 1, 1, 3], rng=np.random.default_rng(2))
    known = [discreet.fit(one.responses) for one in (first, other)]
    for act in (lambda: discreet.link_calibrations(*known), lambda: discreet.find_drift(known)):
        (said,) = found_when(act)
        assert "other categories" in str(said.message)
        assert said.filename == __file__


def test_nothing_is_warned_of_where_every_item_has_its_number():
    assert not found_when(lambda: discreet.fit(UNANSWERED[:, [0, 1, 3]]))


def test_the_warning_can_be_turned_into_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", discreet.errors.ItemsLeftOut)
        with pytest.raises(ItemsLeftOut):
            discreet.fit(UNANSWERED)


def test_groups_that_are_calibrated_apart_tell_their_items_in_the_table():
    assert not found_when(lambda: analysis.find_dif(UNANSWERED, ["a"] * 60 + ["b"] * 60))


def test_a_release_warns_of_no_item_whatever_the_answers_are():
    budget = discreet.Budget(epsilon=1.0)
    items = ["0", "1", "2", "3"]
    assert not found_when(lambda: discreet.release(UNANSWERED, budget, items=items))
    private = discreet.PrivateRasch(max_answers=4)
    assert not found_when(lambda: private.fit(np.where(UNANSWERED < 0, np.nan, UNANSWERED)))


def test_the_command_line_says_it_once(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [",".join("" if one < 0 else str(one) for one in row) for row in UNANSWERED.tolist()]
    path.write_text("a,b,c,d\n" + "\n".join(rows))
    done = run_command("fit", path, "--keep", "a", "--keep", "b")
    assert done.code == 0
    assert done.err.count("that nobody answered") == 1
