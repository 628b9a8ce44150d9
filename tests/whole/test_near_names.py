"""Names that are nearly right: the error says which choice, keyword or public name was meant."""

import numpy as np
import pytest

import discreet
from commandline import discreet as type_line
from discreet.choices import MODELS
from discreet.errors import BadUsage
from discreet.hints import SYNONYMS, find_choice
from discreet.items.dif import DIF_TESTS
from discreet.models.methods import METHODS
from discreet.persons.scoring import SCORINGS
from refusals import refused

CELLS = discreet.simulate(60, 4, rng=np.random.default_rng(1)).responses.to_array()
CHOICES = (MODELS, METHODS, SCORINGS, DIF_TESTS)


def test_every_synonym_is_one_of_a_choice_that_there_is():
    for word, choice in SYNONYMS.items():
        (choices,) = (each for each in CHOICES if choice in each)
        assert find_choice(word.upper(), choices) == choice
    assert find_choice("nothing like it", METHODS) == ""


@pytest.mark.parametrize(
    ("act", "code", "facts"),
    [
        (
            lambda: discreet.fit(CELLS, model="PCM"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'partial-credit'? Choose"},
        ),
        (
            lambda: discreet.fit(CELLS, model="rating_scale"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'rating-scale'? Choose"},
        ),
        (
            lambda: discreet.fit(CELLS, method="cml"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'conditional'? Choose"},
        ),
        (
            lambda: discreet.fit(CELLS, method="refind"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'refined'? Choose"},
        ),
        (
            lambda: discreet.score(CELLS, discreet.fit(CELLS), method="wle"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'warm'? Choose"},
        ),
        (
            lambda: discreet.find_dif(CELLS, ["a", "b"] * 30, test="mh"),
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'mantel-haenszel'? Choose"},
        ),
        (
            lambda: discreet.fit(CELLS, mising=9),
            "no_keyword_reading_answers",
            {"hint": "Did you mean missing?"},
        ),
        (
            lambda: discreet.fit(CELLS, person_col="user"),
            "no_keyword_reading_answers",
            {"keywords": "person_col"},
        ),
        (
            lambda: discreet.fit(CELLS, weights="w"),
            "no_keyword_reading_answers",
            {"keywords": "weights"},
        ),
    ],
)
def test_a_choice_or_a_keyword_that_is_nearly_right_is_named(act, code, facts):
    with refused(BadUsage, code, **facts):
        act()


def test_a_public_name_that_is_nearly_right_is_named():
    for name, words in (
        ("scores", "Did you mean score"),
        ("measure_fit", r"Use discreet\.analysis\.measure_fit\."),
        ("BadUsage", r"Use discreet\.errors\.BadUsage\."),
        ("zzz", "There is Bank, Budget"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(discreet, name)


def test_an_unknown_attribute_is_the_error_that_python_makes():
    estimate = discreet.fit(CELLS)
    assert not hasattr(estimate, "difficulties")
    assert not hasattr(type(estimate), "read")
    with pytest.raises(AttributeError) as caught:
        _ = estimate.difficulties
    assert (caught.value.name, caught.value.obj) == ("difficulties", estimate)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("relase", "Did you mean 'release'"),
        ("ledger shw a.db", "Did you mean 'show'"),
        ("fit a.csv --methd refined", "--method"),
        ("fit a.csv --model pcm", "Did you mean 'partial-credit'?"),
        ("dif a.csv --group g --test mh", "Did you mean 'mantel-haenszel'?"),
    ],
)
def test_a_command_an_option_or_a_choice_that_is_nearly_right_is_named(line, meant):
    ended = type_line(*line.split())
    assert ended.code == 2
    assert meant in " ".join(ended.err.split())
