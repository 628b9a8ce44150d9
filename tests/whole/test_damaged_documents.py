"""What was edited, damaged or named oddly is refused in words, or read; it is never a fault."""

import json
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Annotated

import pytest

from commandline import Ended, discreet, environment
from discreet.schema import Along, Count, SchemaError, Within, read_as
from spreadsheet_files import write_xlsx

ANSWERS = "q1,q2,q3\n" + "1,0,1\n0,1,0\n1,1,0\n0,0,1\n1,0,0\n" * 9
EDITS = [
    (("persons",), "many", "persons"),
    (("persons",), -1, "persons"),
    (("items", 0, "difficulty"), "hard", "difficulty"),
    (("items", 0, "difficulty"), 1e308, "difficulty"),
    (("items", 0, "status"), "fine", "status"),
    (("items",), [], "items"),
    (("items", 0, "difficulty"), 0.125, "items[0].difficulty"),
    (("items", 0, "se"), None, "items[0].se"),
    (("estimate",), None, "estimate"),
    (("estimate",), {"Solution": {"solver": "", "iterations": 0, "residual": 0.0}}, "estimate"),
    (("estimate", "Estimate", "items"), ["q1", "q2", "q4"], "items"),
    (("estimate", "Estimate", "warnings"), 7, "warnings"),
    (("estimate", "Estimate", "solution"), None, "solution"),
    (("study",), {"Solution": {"solver": "", "iterations": 0, "residual": 0.0}}, "study"),
    (("study", "Study", "fit", "ItemFit", "infit"), {"array": ["float64", [1], [1.0]]}, "infit"),
    (("study", "Study", "fit", "ItemFit", "items"), ["q1", "q2", "q4"], "'q3'"),
    (("study", "Study", "abilities", "AbilitySummary", "counts"), {"x": 1}, "kind x"),
    (("study", "Study", "abilities", "AbilitySummary", "counts"), [1], "counts"),
    (("study", "Study", "observed", "BinnedAnswers", "items"), ["q1", "q2", "nobody"], "nobody"),
    (("study", "Study", "unheard"), 1, "unheard"),
]


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(ANSWERS)
    assert discreet("fit", "answers.csv", "--out", "fitted").code == 0
    return tmp_path / "fitted" / "calibration.confidential.json"


@pytest.mark.parametrize(("place", "value", "words"), EDITS)
def test_an_edited_calibration_is_refused_with_the_field(fitted, place, value, words):
    document = json.loads(fitted.read_text())
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    fitted.write_text(json.dumps(document))
    ended = discreet("result", "report", "fitted", "--force")
    assert ended.code == 3
    assert "is damaged" in ended.err
    assert words in ended.err
    assert "inside discreet" not in ended.err


def test_a_document_is_read_as_its_declared_type_and_nothing_else():
    scores = Annotated[tuple[Count, ...], Along("items")]
    assert read_as(scores, [1, 2], "scores", items=("a", "b")) == (1, 2)
    for wrong in ([1], [1, -2], [1, "2"], [1, True], [1, 2.5], {"a": 1}, "12", None, [1, 10**30]):
        with pytest.raises(SchemaError, match="scores"):
            read_as(scores, wrong, "scores", items=("a", "b"))
    with pytest.raises(SchemaError, match="not from 0 to 1"):
        read_as(Annotated[float, Within(0, 1)], float("nan"), "share")


def run_with_little_memory(*words) -> Ended:
    """Run as a program of its own that gets 4 GB."""
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_a_workbook_with_one_far_cell_does_not_take_all_memory(tmp_path):
    path = write_xlsx(tmp_path / "far.xlsx", {"s": [["q1", "q2"], [1, 0], [0, 1], [1, 1]]})
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    (sheet,) = (name for name in parts if name.endswith("sheet1.xml"))
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    parts[sheet] = parts[sheet].replace(b"</sheetData>", far)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    assert path.stat().st_size < 10_000
    ended = run_with_little_memory("fit", path)
    assert ended.code == 3
    assert "far.xlsx" in ended.err
    assert "inside discreet" not in ended.err


def test_a_name_that_is_not_utf_8_and_a_loop_of_links(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.csv")
    Path(name).write_text(ANSWERS)
    assert discreet("fit", name, "--out", "fitted").code == 0
    Path("loop").symlink_to("loop")
    for words in (["fit", "loop"], ["fit", name, "--out", "loop"], ["result", "report", "loop"]):
        ended = discreet(*words)
        assert ended.code == 2
        assert "inside discreet" not in ended.err


@pytest.mark.parametrize("spread", ["0.001", "3", "5"])
def test_a_plan_takes_every_spread_that_it_allows(spread):
    words = ["--persons", "1000", "--items", "20", "--epsilon", "1", "--compare"]
    for option in ("--ability-spread", "--difficulty-spread"):
        assert discreet("plan", *words, option, spread).code == 0


@pytest.mark.parametrize("epsilon", ["1e-320", "1e-100"])
def test_an_epsilon_next_to_nothing_is_refused(epsilon):
    words = ["--persons", "100", "--items", "5", "--epsilon", epsilon, "--compare"]
    ended = discreet("plan", *words)
    assert ended.code in (2, 4)
    assert "epsilon must be at least 1e-09" in ended.err
