"""Estimates, analyses and releases stay what they were, number by number."""

import json
import warnings

import numpy as np
import pytest

import golden

pytestmark = pytest.mark.everywhere
EXACT = {"values", "charge", "rank_first", "rank_last"}


def flatten(tree, path=""):
    """Return every list of numbers with its dotted path."""
    flat = {}
    for name, branch in tree.items():
        if isinstance(branch, dict):
            flat |= flatten(branch, f"{path}{name}.")
        else:
            flat[path + name] = branch
    return flat


WRITTEN = flatten(json.loads(golden.FILE.read_text()))


@pytest.fixture(scope="module")
def computed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flatten(golden.compute())


def test_every_golden_number_is_computed(computed):
    assert list(computed) == list(WRITTEN)


@pytest.mark.parametrize("path", list(WRITTEN))
def test_a_golden_number_has_not_moved(computed, path):
    names = path.split(".")
    if EXACT & set(names):
        assert computed[path] == WRITTEN[path]
        return
    is_difficulty, is_result = names[-1] == "difficulty", names[0] == "results"
    np.testing.assert_allclose(
        np.array(computed[path], dtype=float),
        np.array(WRITTEN[path], dtype=float),
        atol=1e-9 if is_result else 1e-11 if is_difficulty else 1e-12,
        rtol=1e-6 if is_result else 0.0 if is_difficulty else 1e-9,
    )
