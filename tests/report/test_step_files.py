"""Structure files of Winsteps."""

import numpy as np
import pytest

import discreet
from discreet.errors import BadResponses, BadUsage
from discreet.readers.winsteps import read_item_file, read_structure_file

STEPS = (3, 1, 2, 3, 3, 2)


def fitted(model="partial-credit", steps=STEPS):
    rng = np.random.default_rng(1)
    where = np.linspace(-1, 1, 6)
    drawn = discreet.simulate(500, 6, difficulty=where, steps=steps, rng=rng)
    return discreet.fit(drawn.responses, model=model), drawn.responses


@pytest.mark.parametrize("entry", ["1", ""])
def test_thresholds_lie_around_the_measure_of_their_item(tmp_path, entry):
    (tmp_path / "items.csv").write_text("ENTRY,MEASURE,STTS,NAME\n1,50,1,a\n")
    items = read_item_file(tmp_path / "items.csv", user_scale=100)
    lines = [f"{entry} {category} {value}" for category, value in enumerate((0, -80, -20, 100))]
    (tmp_path / "steps.txt").write_text("\n".join(["; STRUCTURE MEASURES", *lines]))
    found = read_structure_file(tmp_path / "steps.txt", items, user_scale=100)
    assert found.thresholds == pytest.approx(np.array([[-0.3, 0.3, 1.5]]))
    assert found.model == ("partial-credit" if entry else "rating-scale")


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


def test_a_scale_that_makes_no_sense_is_refused(tmp_path):
    estimate, _ = fitted()
    (tmp_path / "steps.txt").write_text("1 0 0\n1 1 .5\n")
    with pytest.raises(BadUsage, match="user_scale"):
        read_structure_file(tmp_path / "steps.txt", estimate, user_scale=0)
