"""The bundled tables say what was published."""

import numpy as np
import pytest

from discreet import datasets
from discreet.errors import BadUsage

SHAPES = {"lsat": (1000, 5), "three_grades": (649, 3), "uci_student": (131, 4)}


@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_is_complete_and_has_its_published_size(name):
    responses = getattr(datasets, name)()
    persons, items = SHAPES[name]
    assert (responses.n_persons, responses.n_items) == (persons, items)
    assert responses.n_answers == persons * items


def test_lsat_totals_are_those_of_bock_and_lieberman():
    answers, right = datasets.lsat().store.item_totals()
    assert answers.tolist() == [1000] * 5
    assert right.tolist() == [924, 709, 553, 763, 870]


def test_lsat_score_distribution_is_the_published_one():
    _, right = datasets.lsat().store.person_totals()
    assert np.bincount(right).tolist() == [3, 20, 85, 237, 357, 298]


def test_item_names_are_the_columns_of_the_source():
    assert datasets.three_grades().items == ("G1", "G2", "G3")
    assert datasets.uci_student().items == ("tnp", "twp", "iap", "esp")


@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_has_a_citation_which_its_docstring_gives_too(name):
    author = datasets.citation(name).split(",")[0]
    assert author in getattr(datasets, name).__doc__


def test_citations_and_loaders_name_the_same_data_sets():
    assert set(datasets.CITATIONS) == set(SHAPES)
    assert set(datasets.__all__) == {*SHAPES, "CITATIONS", "citation"}


def test_an_unknown_data_set_is_refused_with_the_names():
    with pytest.raises(BadUsage, match="lsat, three_grades, uci_student"):
        datasets.citation("lsat7")
