"""The package where modules, names and habits of Linux are missing: Windows, a browser."""

import json
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

from discreet.atomic import is_refused_by_windows, refuse_name
from discreet.errors import BadUsage, looks_like_address, name_source, spell_install
from discreet.tables.paths import find_files
from refusals import refused

HERE = Path(__file__).parents[1]
SUBSET = [
    "test_atomic.py",
    "publishing/test_place.py",
    "-k",
    "not command and not demo and not writer",
]
"""What the fast suite runs as on Windows; ``make windows`` runs everything."""


def run_on_windows(*arguments, **keywords):
    """Start Python with tests/whole/windows in front, which pretends."""
    places = [str(HERE / "whole" / "windows"), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=variables, **keywords
    )


def test_files_locks_and_places_work_without_what_windows_lacks():
    done = run_on_windows("-m", "pytest", "-p", "no:cacheprovider", *SUBSET, cwd=HERE)
    assert done.returncode == 0, done.stdout[-3000:]


LOCKED = """
import sys, pathlib
from discreet.atomic import fcntl, hold_lock, write_text
from discreet.errors import BadUsage
assert fcntl is None
folder = pathlib.Path(sys.argv[1])
with hold_lock(folder / "lock", BadUsage("busy"), remove=True):
    try:
        with hold_lock(folder / "lock", BadUsage("busy")):
            print("held twice")
    except BadUsage as error:
        print(error)
print(sorted(path.name for path in folder.iterdir()))
write_text(folder / "table.csv", "old")
with (folder / "table.csv").open(encoding="utf-8"):
    try:
        write_text(folder / "table.csv", "new")
    except BadUsage as error:
        print(error)
write_text(folder / "table.csv", "newer")
print((folder / "table.csv").read_text("utf-8"), len(list(folder.iterdir())))
"""


def test_a_lock_excludes_and_an_open_file_is_named_as_on_windows(tmp_path):
    done = run_on_windows("-c", LOCKED, str(tmp_path))
    assert done.returncode == 0, done.stderr
    held, left, refused, written = done.stdout.splitlines()
    assert held == "busy"
    assert left == "[]"
    assert "table.csv" in refused
    assert "another program has it open" in refused
    assert written == "newer 1"


def test_the_pretence_notices_what_windows_would_refuse(tmp_path):
    script = (
        "import os, sys, pathlib\n"
        "path = pathlib.Path(sys.argv[1]) / 'open'\n"
        "file = path.open('w', encoding='utf-8')\n"
        "for act in (path.unlink, lambda: path.rename(path.with_name('new')),\n"
        "            lambda: os.open(path.parent, os.O_RDONLY), path.with_name('a:b').touch):\n"
        "    try:\n        act()\n    except OSError as error:\n        print(error.errno)\n"
        "exec('import fcntl', {'__name__': 'discreet.x'})\n"
    )
    done = run_on_windows("-c", script, str(tmp_path))
    assert done.stdout.split() == ["13", "13", "13", "22"]
    assert "No module named 'fcntl'" in done.stderr


@pytest.mark.parametrize("name", ["CON", "nul.csv", "com1", "LPT9.txt", "a:b", "a?", "end.", "x "])
def test_names_that_windows_refuses_are_refused_before_anything_is_written(name):
    assert is_refused_by_windows(name)
    with refused(BadUsage, "no_name_file_windows"):
        refuse_name(PureWindowsPath("C:/data") / name / "release")
    refuse_name(Path("data") / name)  # here it is a name like any other


@pytest.mark.parametrize(
    "path", [r"C:\data\release", r"..\release", r"\\server\share\a b", "console", "COM10.csv"]
)
def test_paths_of_windows_are_paths(path):
    refuse_name(PureWindowsPath(path))
    assert not looks_like_address(path)
    with refused(BadUsage, "no_file_check_path_folder"):
        find_files(path)


def test_a_drive_is_not_taken_for_an_address():
    assert name_source(r"C:\answers\may.csv") == r"C:\answers\may.csv"
    assert not looks_like_address(r"d:\me@work\may.csv")
    assert looks_like_address("mysql://me:pass@host/db")
    assert looks_like_address(r"C:\db?password=x")


def test_a_console_of_windows_shows_names_that_it_cannot_write(tmp_path):
    rows = ["größe,≥ 1,naïve\r\n", *("1,0,1\r\n", "0,1,1\r\n", "1,1,0\r\n", "0,0,1\r\n")]
    (tmp_path / "answers.csv").write_bytes("".join(rows).encode())
    command = [sys.executable, "-m", "discreet", "fit", str(tmp_path / "answers.csv")]
    console = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    shown = subprocess.run(command, capture_output=True, env=console, check=True).stdout
    assert rb"\u2265 1" in shown
    assert "größe" in shown.decode("cp1252")
    document = subprocess.run([*command, "--json"], capture_output=True, env=console).stdout
    names = {item["item"] for item in json.loads(document.decode("ascii"))["items"]}
    assert names == {"größe", "≥ 1", "naïve"}


BROWSER = """
import sys, tempfile, threading
sys.modules["numba"] = sys.modules["duckdb"] = None
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
import numpy as np
import discreet
from discreet import analysis
from discreet.threads import thread_count
assert thread_count() == 1
sim = discreet.simulate(1000, 20, answered=0.5, rng=np.random.default_rng(0))
items = sim.responses.items
for method in ("conditional", "refined", "spectral", "marginal"):
    estimate = discreet.fit(sim.responses, method=method)
    assert np.corrcoef(estimate.difficulty, sim.difficulty)[0, 1] > 0.95
budget = discreet.Budget(epsilon=5.0, delta=1e-6)
for mechanism in ("margins", "pairs", "totals"):
    discreet.release(sim.responses, budget, items=items, max_answers=10, mechanism=mechanism)
discreet.score(sim.responses, discreet.fit(sim.responses))
with tempfile.TemporaryDirectory() as folder:
    for layout in ("long", "wide"):
        sim.responses.to_dataframe(layout).to_csv(f"{folder}/answers.csv", index=False)
        read = discreet.read_responses(f"{folder}/answers.csv")
        assert read.n_answers == sim.responses.n_answers
rng = np.random.default_rng(1)
discreet.fit(discreet.simulate(300, 6, steps=3, rng=rng).responses)
discreet.fit(discreet.count_pairs(sim.responses, folds=8))
many = discreet.simulate(200, 2100, answered=0.02, rng=rng).responses
assert discreet.count_pairs(many).is_sparse
discreet.fit(discreet.simulate_ratings(100, 3, 6, rng=rng).ratings, facets=["rater"])
discreet.rank_comparisons(discreet.simulate_comparisons(100, 6, 5, rng=rng).comparisons)
discreet.find_dif(sim.responses, np.repeat(["a", "b"], 500))
analysis.measure_fit(sim.responses, estimate)
discreet.plan(persons=1000, items=50, answers=20, epsilon=1.0, delta=1e-6)
try:
    discreet.fit("SELECT * FROM answers")
except discreet.errors.BadUsage as error:
    print(error)
"""


def test_without_numba_duckdb_and_threads_everything_in_memory_works():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BROWSER], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "need the package duckdb" in done.stdout


@pytest.mark.parametrize(
    ("record", "mark", "command"),
    [
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, "", '-e "/a b[files]"'),
        ({"url": "https://x/y", "vcs_info": {"vcs": "git"}}, "", "[files] @ git+https://x/y"),
        (None, "", '-m pip install "discreet[files]"'),
        (None, "pipx_metadata.json", 'pipx install --force "discreet[files]"'),
        (None, "uv-receipt.toml", 'uv tool install --force "discreet[files]"'),
    ],
)  # fmt: skip
def test_a_missing_extra_is_installed_as_the_package_was(
    tmp_path, monkeypatch, record, mark, command
):
    from importlib import metadata

    class Installed:
        def read_text(self, name):
            return record and json.dumps(record)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if mark:
        (tmp_path / mark).touch()
    assert command in spell_install("files")
