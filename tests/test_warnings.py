"""Warnings of results: values with a kind, the items concerned and a sentence."""

import copy
import json

import numpy as np

import discreet
from discreet.results.estimate import Kind, Notice


def test_a_fit_says_which_items_it_left_out_and_why():
    answers = np.array([[1, 0, 1, -1], [0, 1, 1, -1], [1, 0, 1, -1]])
    found = {one.kind: one for one in discreet.fit(answers).warnings}
    assert set(found) == {Kind.LEFT_OUT}
    every = [item for one in discreet.fit(answers).warnings for item in one.items]
    assert every == ["3", "2"]


def test_items_that_nothing_links_have_a_kind_of_their_own():
    left = [[1, 0, -1, -1], [0, 1, -1, -1]] * 3
    right = [[-1, -1, 1, 0], [-1, -1, 0, 1]]
    kinds = {one.kind for one in discreet.fit(np.array(left + right)).warnings}
    assert kinds == {Kind.NOT_LINKED, Kind.SEVERAL_SETS}


def test_a_warning_prints_and_travels_as_its_sentence():
    notice = Notice(Kind.DRIFTED, "one item drifted: q1", ["q1"])
    assert json.loads(json.dumps([notice])) == ["one item drifted: q1"]
    assert f"{notice}" == "one item drifted: q1"
    again = copy.deepcopy(notice)
    assert (again, again.kind, again.items) == (notice, Kind.DRIFTED, ("q1",))
