"""Every command that the README names runs; those that take minutes run on little data."""

import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import xlsxwriter
from experiments.calibration import references

import discreet
from commandline import LSAT_ITEMS
from commandline import discreet as typed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
NAMED = dict.fromkeys(re.findall(r"`((?:make|python -m|pip install|discreet) ?[^`]*)`", README))
SMALL = "--panels 'm=25, n=200' --trials 1 --quick --out {}"
FELT = "--scale 0.001 --only '300k x 200, complete: fit auto without'"
MEASURED = {
    "python -m experiments.calibration.rating_scales references": ("", "thresholds, psychotools"),
    "python -m experiments synthetic": (SMALL, "randomized-response"),
    "python -m bench.felt": (FELT, "300k x 200, complete"),
}
"""Commands that measure; what makes them quick, and words that they print."""
PLAIN = (
    "python -m experiments ablation --panels 'm=200, n=1000'",  # run in tests/experiments
    *("make demo", "make studio", "make test"),
    *("pip install .", "pip install '.[files,report,studio]'"),
    *("discreet", "discreet check answers.xlsx", "discreet fit answers.xlsx --out results"),
    "discreet plan --persons 5000 --items 40 --epsilon 1",
    "discreet release answers.xlsx ...",
)


def test_every_command_of_the_readme_is_tried_here():
    assert set(NAMED) == {*MEASURED, *PLAIN}


@pytest.fixture(scope="module")
def distances():
    return list(references.compare_bundled())


@pytest.mark.parametrize("command", MEASURED)
def test_a_command_that_measures_runs(command, tmp_path, monkeypatch, capfd, distances):
    quick, printed = MEASURED[command]
    words = shlex.split(f"{command} {quick.format(tmp_path)}")
    assert words[:2] == ["python", "-m"]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", words[2:])
    for module in (words[2], f"{words[2]}.__main__"):  # as in a process of its own
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(references, "compare_bundled", lambda: distances)  # measured once
    code = 0
    try:
        runpy.run_module(words[2], run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    assert not code
    shown = capfd.readouterr().out
    assert "MISSED" not in shown
    assert printed in " ".join(shown.split())


def test_estimates_are_as_near_to_psychotools_as_the_readme_says(distances):
    (stated,) = re.findall(r"psychotools within (\S+) logits", README)
    away = [one for one in distances if one.program == "psychotools"]
    assert len([one for one in away if "thresholds" in one.what]) == 3
    assert max(one.found for one in away) <= float(stated)


@pytest.mark.parametrize("target", ["demo", "studio", "test"])
def test_make_knows_what_to_do(target):
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wanted = {"demo": "discreet demo", "studio": "discreet studio", "test": "-m pytest"}
    assert wanted[target] in done.stdout


def test_the_extras_to_install_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (asked,) = re.findall(r"pip install '\.\[(.+)\]'", README)
    assert set(asked.split(",")) <= set(project["optional-dependencies"])


def write_workbook(path):
    answers = discreet.datasets.lsat()
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ("person", *answers.items))
        for number, row in enumerate(answers.to_array().tolist(), 1):
            sheet.write_row(number, 0, (f"p{number}", *row))


def test_the_commands_run_on_a_workbook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_workbook("answers.xlsx")
    Path("items.txt").write_text("\n".join(LSAT_ITEMS))
    assert typed("ledger", "create", "ledger.db", "--epsilon", 1, "--delta", 1e-6).code == 0
    told = "--items items.txt --epsilon 1 --ledger ledger.db --out released"
    for command in PLAIN[-4:]:
        ended = typed(*shlex.split(command.replace("...", told))[1:])
        assert ended.code == 0, (command, ended.err)
    for page in ("results/report.confidential.html", "released/report.html"):
        assert Path(page).exists()
