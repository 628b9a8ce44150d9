"""Estimates, analyses and releases stay what they were, number by number."""

import json
import warnings

import pytest

import golden

pytestmark = pytest.mark.everywhere


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
    golden.check(path, computed[path], WRITTEN[path])
