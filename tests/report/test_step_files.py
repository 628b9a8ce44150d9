"""Structure files of Winsteps."""

import numpy as np
import pytest

import discreet
from discreet.errors import BadResponses, BadUsage
from discreet.readers.winsteps import read_item_file, read_structure_file
from refusals import refused

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
    ("text", "code", "facts"),
    [
        ("1 0 0\n2 0\n", "all_lines_structure_file", {}),
        ("", "all_lines_structure_file", {"listed_widths": "no lines"}),
        ("1 one 0\n", "line_not_line_structure", {}),
        ("9 0 0\n", "line_items_line_entry", {"items": "6"}),
    ],
)
def test_what_is_no_structure_file_is_refused(tmp_path, text, code, facts):
    (tmp_path / "steps.txt").write_text(text)
    with refused(BadResponses, code, **facts):
        read_structure_file(tmp_path / "steps.txt", fitted()[0])


def test_a_scale_that_makes_no_sense_is_refused(tmp_path):
    estimate, _ = fitted()
    (tmp_path / "steps.txt").write_text("1 0 0\n1 1 .5\n")
    with refused(BadUsage, "user_scale_must_number"):
        read_structure_file(tmp_path / "steps.txt", estimate, user_scale=0)
