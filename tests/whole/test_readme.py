"""Every command that the README names runs; those that take minutes run on little data."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import xlsxwriter
from experiments.calibration.references import compare_bundled

import discreet
from commandline import LSAT_ITEMS, environment
from commandline import discreet as typed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
NAMED = dict.fromkeys(re.findall(r"`((?:make|python -m|pip install|discreet) ?[^`]*)`", README))
SMALL = "--panels 'm=25, n=200' --trials 1 --quick --out {}"
MEASURED = {
    "python -m experiments.calibration.rating_scales references": ("", "thresholds, psychotools"),
    "python -m experiments synthetic": (SMALL, "randomized-response"),
    "python -m experiments ablation --panels 'm=200, n=1000'": (SMALL, "square error of an item"),
    "python -m bench.felt": ("--scale 0.001 --only 'complete: fit auto'", "300k x 200, complete"),
}
"""Commands that measure; what makes them quick, and words that they print."""
PLAIN = (
    *("make demo", "make studio", "make test"),
    *("pip install .", "pip install '.[files,report,studio]'"),
    *("discreet", "discreet check answers.xlsx", "discreet fit answers.xlsx --out results"),
    "discreet plan --persons 5000 --items 40 --epsilon 1",
    "discreet release answers.xlsx ...",
)


def test_every_command_of_the_readme_is_tried_here():
    assert set(NAMED) == {*MEASURED, *PLAIN}


@pytest.mark.parametrize("command", MEASURED)
def test_a_command_that_measures_runs(command, tmp_path):
    quick, printed = MEASURED[command]
    words = shlex.split(f"{command} {quick.format(tmp_path)}")
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=ROOT,
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "MISSED" not in done.stdout
    assert printed in " ".join(done.stdout.split())


def test_estimates_are_as_near_to_psychotools_as_the_readme_says():
    (stated,) = re.findall(r"psychotools within (\S+) logits", README)
    away = [one for one in compare_bundled() if one.program == "psychotools"]
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
