"""The public surface: every promised name is there, documented, and loads lazily."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import discreet

# The contract: names that users and other programs rely on.
PROMISED = {
    "Budget",
    "PrivateRasch",
    "Responses",
    "SpectralRasch",
    "count_pairs",
    "datasets",
    "errors",
    "fit",
    "rank",
    "read_release",
    "read_responses",
    "release",
    "score",
    "simulate",
}


def test_every_promised_name_is_public():
    assert set(discreet.__all__) >= PROMISED


@pytest.mark.parametrize("name", sorted(set(discreet.__all__) - {"__version__"}))
def test_every_public_name_loads_and_is_documented(name):
    value = getattr(discreet, name)
    assert inspect.getdoc(value), f"discreet.{name} has no docstring"


def test_every_public_name_has_a_home_and_nothing_else_has():
    assert set(discreet._HOME) == set(discreet.__all__) - {"__version__"}


def test_dir_lists_the_public_names():
    assert set(dir(discreet)) >= set(discreet.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = discreet.nonsense


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, discreet; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("numpy", "scipy", "numba", "pyarrow", "duckdb", "sklearn", "matplotlib"):
        assert f"'{heavy}'" not in loaded


def modules():
    return [m.name for m in pkgutil.walk_packages(discreet.__path__, "discreet.")]


@pytest.mark.parametrize("name", [n for n in modules() if not n.endswith("__main__")])
def test_every_module_says_what_it_is_for(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), f"{name}.__all__ names {public}, which is not there"
