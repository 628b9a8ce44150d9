"""Old module names: every one still leads to what it held, and says where that is now."""

import subprocess
import sys

import pytest

from discreet._moved import MOVED


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_every_old_module_is_found_with_a_warning():
    code = f"""
import importlib, warnings
for old in {sorted(MOVED)!r}:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.import_module(f"discreet.{{old}}")
    assert any("has moved" in str(one.message) for one in caught), old
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "from discreet.itemfit import measure_fit, find_dif, run_andersen",
        "from discreet.plots import wright_plot",
        "from discreet.formats.winsteps import read_item_file",
        "from discreet.formats import pyirt, warehouse",
        "from discreet.responses import Responses, read_responses",
        "from discreet.engines import count_pairs",
        "from discreet.engines.outofcore import Resources, count_source, open_persons",
        "from discreet.engines.sql import write_query",
        "from discreet.comparisons import Comparisons, rank_comparisons, release_comparisons",
        "from discreet.linking import link_calibrations, create_bank, fit_anchored",
        "from discreet.persons import score, tabulate_scores",
        "from discreet.planning import plan, Plan",
        "from discreet.estimate import Estimate",
        "from discreet.calibrate import fit",
        "from discreet.topk import rank",
        "from discreet.publish import release",
        "from discreet.rasch import SpectralRasch",
        "from discreet.chain import Status",
        "import discreet; discreet.plots.wright_plot",
    ],
)
def test_what_users_imported_is_still_there(line):
    done = run(f"import warnings; warnings.simplefilter('ignore'); {line}")
    assert done.returncode == 0, done.stderr


def test_an_unknown_module_is_unknown():
    assert "No module named" in run("import discreet.nonsense").stderr
