"""Files of other programs with steps: Winsteps, the warehouse."""

import numpy as np
import pytest

import discreet
from discreet.errors import BadResponses, BadUsage
from discreet.report.formats import read_warehouse, write_warehouse
from discreet.report.winsteps import (
    read_item_file,
    read_structure_file,
    write_item_file,
    write_structure_file,
)

STEPS = (3, 1, 2, 3, 3, 2)


def fitted(model="partial-credit", steps=STEPS):
    rng = np.random.default_rng(1)
    where = np.linspace(-1, 1, 6)
    drawn = discreet.simulate(500, 6, difficulty=where, steps=steps, rng=rng)
    return discreet.fit(drawn.responses, model=model), drawn.responses


@pytest.mark.parametrize(("model", "steps"), [("partial-credit", STEPS), ("rating-scale", 3)])
def test_an_estimate_with_steps_survives_item_and_structure_files(tmp_path, model, steps):
    estimate, answers = fitted(model, steps)
    write_item_file(tmp_path / "items.txt", estimate, decimals=8)
    write_structure_file(tmp_path / "steps.txt", estimate, decimals=8)
    again = read_structure_file(tmp_path / "steps.txt", read_item_file(tmp_path / "items.txt"))
    assert again.thresholds == pytest.approx(estimate.thresholds, abs=1e-6, nan_ok=True)
    assert (again.steps, again.model) == (estimate.steps, model)
    expected = discreet.score(answers, estimate).ability
    assert discreet.score(answers, again).ability == pytest.approx(expected, abs=1e-5)


def test_a_structure_file_is_what_winsteps_writes(tmp_path):
    estimate, _ = fitted()
    write_structure_file(tmp_path / "steps.txt", estimate, decimals=2)
    lines = (tmp_path / "steps.txt").read_text().splitlines()
    assert lines[0].startswith(";")
    assert [line.split()[:2] for line in lines[1:5]] == [["1", str(k)] for k in range(4)]
    assert float(lines[1].split()[2]) == 0
    assert sum(float(line.split()[2]) for line in lines[1:5]) == pytest.approx(0, abs=0.02)
    scale, _ = fitted("rating-scale", 3)
    write_structure_file(tmp_path / "scale.txt", scale)
    assert [line.split()[0] for line in (tmp_path / "scale.txt").read_text().splitlines()[1:]] == [
        *"0123"
    ]


def test_thresholds_without_a_line_for_the_lowest_category_are_read_too(tmp_path):
    (tmp_path / "items.csv").write_text("ENTRY,MEASURE,STTS,NAME\n1,0.5,1,a\n2,-0.5,1,b\n")
    items = read_item_file(tmp_path / "items.csv")
    (tmp_path / "steps.txt").write_text("; anchors\n1 -1.8\n2 1.8\n*\n")
    found = read_structure_file(tmp_path / "steps.txt", items)
    assert found.thresholds == pytest.approx(np.array([[-1.3, 2.3], [-2.3, 1.3]]))
    assert found.ladder.kept == ((0, 1, 2), (0, 1, 2))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 0 0\n2 0\n", "two fields"),
        ("", "no lines"),
        ("1 one 0\n", "not a line of a structure file"),
        ("9 0 0\n", "there are 6 items"),
    ],
)
def test_what_is_no_structure_file_is_refused(tmp_path, text, words):
    (tmp_path / "steps.txt").write_text(text)
    with pytest.raises(BadResponses, match=words):
        read_structure_file(tmp_path / "steps.txt", fitted()[0])


def test_a_scale_or_decimals_that_make_no_sense_are_refused(tmp_path):
    estimate, _ = fitted()
    with pytest.raises(BadUsage, match="decimals"):
        write_structure_file(tmp_path / "steps.txt", estimate, decimals=20)
    write_structure_file(tmp_path / "steps.txt", estimate)
    with pytest.raises(BadUsage, match="user_scale"):
        read_structure_file(tmp_path / "steps.txt", estimate, user_scale=0)


@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet"])
def test_answers_with_steps_survive_the_warehouse(tmp_path, name):
    _, answers = fitted()
    write_warehouse(tmp_path / name, answers)
    again = read_warehouse(tmp_path / name, steps=dict(zip(answers.items, STEPS, strict=True)))
    assert again.steps == answers.steps
    assert again.items == answers.items
    assert again.to_array().tolist() == answers.to_array().tolist()
