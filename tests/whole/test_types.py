"""Types of the public functions: words that are chosen from are named, results are not Any."""

import importlib
import inspect
import pkgutil
from typing import Any, get_args, get_type_hints

import pytest

import discreet
from discreet import adaptive, analysis, choices, datasets, figures
from discreet.coding.reading import ReadingWords
from discreet.models.methods import AUTO, METHODS, PAIR_METHODS
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms import mechanisms_for
from discreet.readers.opening import ENGINES, SYNONYMS
from discreet.simulation.designs import DESIGNS

CHOSEN = {
    *("adjustment", "design", "engine", "layout", "mechanism", "method"),
    *("neighbours", "one_means", "repeats", "ties", "weighting"),
}
"""Parameters that take one of a few words."""


def list_public():
    """Every public function and method, and properties too, by name."""
    found = {}
    for module in (discreet, analysis, adaptive, datasets, figures):
        for name in getattr(module, "__all__", None) or own_names(module):
            value = getattr(module, name)
            if inspect.isfunction(value):
                found[f"{module.__name__}.{name}"] = value
            elif inspect.isclass(value):
                found |= {f"{name}.{own}": one for own, one in list_methods(value)}
    return {name: one for name, one in found.items() if one.__module__.startswith("discreet")}


def own_names(module):
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def list_methods(kind):
    for name, value in inspect.getmembers(kind):
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield name, function


PUBLIC = list_public()


@pytest.fixture(scope="module")
def every_name():
    """What modules import for type checkers only, by name."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    names = {"pd": pd, "pl": pl, "pa": pa, "Axes": Axes}
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if not module.name.endswith("__main__"):
            names = {**vars(importlib.import_module(module.name)), **names}
    return names


def find_types(function, every_name):
    """Return the types of a function; of names that are imported for checkers only, too."""
    more = {}
    while True:
        try:
            return get_type_hints(function, localns=more)
        except NameError as missing:
            more[missing.name] = every_name[missing.name]


def test_the_walk_meets_the_functions_that_are_meant():
    assert {"discreet.fit", "Estimate.to_dataframe", "Responses.to_array", "Scale.apply"} <= set(
        PUBLIC
    )
    assert len(PUBLIC) > 200


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_no_public_function_returns_just_anything(name, every_name):
    found = find_types(PUBLIC[name], every_name)
    assert "return" in found, f"{name} does not say what it returns"
    assert found["return"] is not Any, f"{name} returns Any"


def takes_any_text(kind):
    """Say whether a type admits every text."""
    return kind is str or any(takes_any_text(one) for one in get_args(kind))


def test_words_that_are_chosen_from_are_named_in_the_types(every_name):
    asked = 0
    for name, function in PUBLIC.items():
        if name in FOR_MESSAGES or (name.endswith("__init__") and name not in MADE_BY_USERS):
            continue
        for parameter, kind in find_types(function, every_name).items():
            if parameter in CHOSEN:
                assert not takes_any_text(kind), (name, parameter)
                asked += 1
    assert asked > 20
    assert find_types(discreet.fit, every_name)["ability"] == choices.Ability
    words = get_type_hints(ReadingWords)
    assert not any(takes_any_text(words[name]) for name in CHOSEN & words.keys())
    assert takes_any_text(words["person"])


MADE_BY_USERS = {"PrivateRasch.__init__", "Rasch.__init__"}
"""Other classes are results, which hold what was chosen."""
FOR_MESSAGES = {"Budget.require_delta"}


def test_the_words_in_the_types_are_those_that_functions_know():
    assert set(get_args(choices.Method)) == {AUTO, *METHODS}
    assert set(get_args(choices.PairMethod)) == set(PAIR_METHODS)
    assert set(get_args(choices.Engine)) == {"auto", *ENGINES, *SYNONYMS}
    assert set(get_args(choices.DesignName)) == set(DESIGNS)
    assert set(get_args(choices.Relation)) == set(Neighbours)
    assert set(get_args(choices.NamedMechanism)) == set(mechanisms_for("answers"))
    assert set(get_args(choices.AnswerMechanism)) == {"auto", *mechanisms_for("answers")}
    assert set(get_args(choices.ComparisonMechanism)) == {"auto", *mechanisms_for("comparisons")}
