"""The bundled tables say what was published."""

import numpy as np
import pytest

import wellbeing
from discreet import datasets
from discreet.api.calibrating import fit
from discreet.errors import BadUsage
from refusals import refused

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
    loaders = {name for name in datasets.__all__ if name in datasets.CITATIONS}
    assert loaders == set(datasets.CITATIONS) == {*SHAPES, "wellbeing"}


def test_an_unknown_data_set_is_refused_with_the_names():
    with refused(
        BadUsage, "no_data_set_choose", citations="lsat, three_grades, uci_student, wellbeing"
    ):
        datasets.citation("lsat7")


def test_the_questionnaire_is_what_its_maker_draws_and_its_texts_fit():
    answers = datasets.wellbeing()
    table = wellbeing.draw_table()
    assert answers.items == tuple(datasets.WELLBEING_TEXTS)
    assert answers.persons.tolist() == [row[0] for row in table]
    assert answers.groups["age"].tolist() == [row[1] for row in table]
    codes = [[int(cell or -1) for cell in row[2:]] for row in table]
    assert answers.to_array().tolist() == codes
    assert set(answers.steps) == {len(datasets.WELLBEING_ANSWERS) - 1}


def test_the_questionnaire_has_the_faults_that_it_tells_of():
    answers = datasets.wellbeing()
    fitted = fit(answers, method="conditional")
    disordered = np.diff(fitted.thresholds, axis=1).min(axis=1) < 0
    assert [item for item, bad in zip(answers.items, disordered, strict=True) if bad] == ["proud"]
