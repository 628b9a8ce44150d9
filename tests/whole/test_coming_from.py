"""docs/coming-from.md keeps its word: commands run, names are there, numbers are the same."""

import csv
import re
import runpy
import shlex
from contextlib import chdir
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from experiments.joint_ml import joint_ml

import discreet as library
from commandline import discreet
from discreet.analysis import measure_alpha, measure_fit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()
DATA = ROOT / "tests" / "data"
TYPED = "| what you typed |"
IFILE = "\n".join([
    ";ENTRY MEASURE ST COUNT SCORE MODLSE NAME",
    *(f"{entry} {b} 1 1000 {right} 0.1 Item{entry}"
      for entry, (b, right) in enumerate([(-1.3, 924), (0.5, 709), (1.2, 553)], start=1)),
]) + "\n"  # fmt: skip
"""What Winsteps wrote of an earlier calibration."""


def tables(heading):
    """The rows, as lists of cells, of every table whose first line starts so."""
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.M):
        lines = block.splitlines()
        if lines[0].startswith(heading):
            yield [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def numbers(heading):
    (rows,) = tables(heading)
    return np.array([[float(cell) for cell in row[1:]] for row in rows])


def known(name, *columns):
    with (DATA / name).open() as file:
        rows = list(csv.DictReader(file))
    return [np.array([float(row[column]) for row in rows]) for column in columns]


def typed():
    """What the second columns of the tables say to type, each once, in order."""
    cells = [row[1] for rows in tables(TYPED) for row in rows]
    commands = [code for cell in cells for code in re.findall(r"`(discreet [^`]+)`", cell)]
    return list(dict.fromkeys(commands))


def named_columns():
    """Every table of ours that the page names, with the columns that it names."""
    cells = [row[2] for rows in tables(TYPED) for row in rows]
    cells += [row[0] for rows in tables("| here |") for row in rows]
    for part in "; ".join(cells).split(";"):
        table, colon, columns = part.partition(":")
        for column in re.findall(r"`([^`]+)`", columns) if colon else []:
            yield table.strip("` "), column


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder where the page's Python was run, what it defined, and how its commands ended."""
    folder = tmp_path_factory.mktemp("page")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
    (folder / "page.py").write_text(code)
    (folder / "ifile.txt").write_text(IFILE)
    with chdir(folder):
        defined = runpy.run_path("page.py")
        ended = {one: discreet(*shlex.split(one)[1:]) for one in typed()}
    return folder, defined, ended


@pytest.fixture(scope="module")
def answers():
    return library.datasets.lsat()


def test_every_command_in_a_table_runs(place):
    _, _, ended = place
    assert len(ended) >= 15
    assert not [(one, end.err) for one, end in ended.items() if end.code != 0]


def test_the_example_is_what_the_program_prints(place):
    (shown,) = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.S)
    assert place[2][shown[0]].out == shown[1]


def test_every_table_and_column_that_is_named_is_written(place):
    written = set()
    for path in place[0].glob("*/*.confidential.csv"):
        with path.open() as file:
            columns = next(csv.reader(file))
        written |= {(path.name.partition(".")[0], column) for column in columns}
    named = set(named_columns())
    assert len(named) >= 40
    assert named <= written


def test_conditional_estimates_and_fit_are_those_of_erm(answers):
    estimate = library.fit(answers)
    fit = measure_fit(answers, estimate).items
    shown = numbers("| item | eRm")
    difficulty, se, *theirs = known(
        "erm_lsat6_items.csv", *("difficulty", "se", "infit", "infit_t", "outfit", "outfit_t")
    )
    (psychotools,) = known("reference_lsat6.csv", "psychotools_difficulty")
    ours = [fit.infit, fit.infit_t, fit.outfit, fit.outfit_t]
    first = [-difficulty, se, psychotools, estimate.difficulty, estimate.se]
    assert shown[:, :5] == pytest.approx(np.column_stack(first), abs=0.51e-4)
    assert shown[:, 5:] == pytest.approx(np.column_stack([*theirs, *ours]), abs=0.51e-3)


def test_abilities_by_maximum_likelihood_are_those_of_erm(answers):
    scores = library.score(answers, library.fit(answers), method="ml")
    row = [np.flatnonzero(scores.score == score)[0] for score in range(1, 5)]
    theirs = known("erm_lsat6_persons.csv", "theta", "se")
    expected = np.column_stack([*theirs, scores.ability[row], scores.se[row]])
    assert numbers("| score | eRm") == pytest.approx(expected, abs=0.51e-3)


def test_joint_estimates_spread_as_the_page_says(answers):
    joint = joint_ml(answers.to_array())
    expected = np.column_stack([joint, joint * 4 / 5, library.fit(answers).difficulty])
    assert numbers("| item | JMLE") == pytest.approx(expected, abs=0.51e-3)


def test_warms_abilities_are_those_of_the_winsteps_manual(place):
    shown = numbers("| score | Winsteps")
    assert shown[:, 0] == pytest.approx(shown[:, 1])
    assert shown[:, 1] == pytest.approx(place[1]["fischer"].ability, abs=0.51e-2)


def test_marginal_estimates_are_those_of_ltm_in_other_terms(place):
    defined = place[1]
    b, delta, sd = known("reference_lsat6_mml.csv", "mml_1pl_b", "mml_rasch_delta", "latent_sd")
    ours = [defined["marginal"].difficulty, defined["xsi"]]
    expected = np.column_stack([b, delta, -delta, *ours])
    assert numbers("| item | ltm") == pytest.approx(expected, abs=0.51e-4)
    assert defined["d"] == pytest.approx(-delta, abs=1e-5)
    assert defined["dffclt"] == pytest.approx(b, abs=1e-4)
    assert defined["prior"].sd == pytest.approx(sd[0], abs=1e-5)
    assert defined["prior"].mean == pytest.approx(1.4749, abs=0.51e-4)
    assert defined["prior"].sd ** 2 == pytest.approx(0.5702, abs=0.51e-4)


def test_numbers_in_sentences_are_ours(answers):
    assert "is 0.295 (alpha" in PAGE
    assert "0.2949972" in PAGE
    assert measure_alpha(answers).alpha == pytest.approx(0.2949972, abs=1e-6)


def test_every_section_of_a_program_has_a_table_of_commands():
    heads = [match.start() for match in re.finditer(r"^## ", PAGE, re.M)]
    parts = [PAGE[a:b] for a, b in pairwise([*heads, len(PAGE)])]
    with_commands = [part.splitlines()[0] for part in parts if TYPED in part]
    assert with_commands == ["## eRm", "## Winsteps", "## TAM, mirt, ltm"]
