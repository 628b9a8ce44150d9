"""The drawing of faults finds the signs that matter, and plants one at a time."""

import random

import pytest

import planted

SOURCE = '''"""Not 1 + 1 in a docstring."""

from typing import Annotated

#: A comment with 2 * 3.
LEVEL: Annotated[float, 7] = 0.05


def error(n: int = 4) -> float:
    """Return 1 / 2."""
    if n < 2 or n == 9:
        raise ValueError(f"needs {n + 1}: " + "more")
    total = values.sum(axis=1)[0] - n
    total += (first
              * second)
    return "é" + name[:3] if n else -total
'''


def test_every_sign_that_matters_is_found_and_no_other():
    lines = SOURCE.splitlines()
    found = sorted(set(planted.find_signs(SOURCE, random.Random(0))))
    shown = [(line, lines[line - 1][start:end]) for (line, start, end), _ in found]
    assert shown == [
        (6, "0.05"), (9, "4"), (11, "<"), (11, "2"), (11, "=="), (11, "9"), (13, "-"), (14, "+="),
        (15, "*"), (16, "3"),
    ]  # fmt: skip
    new = dict(zip(shown, (sign for _, sign in found), strict=True))
    assert new[11, "<"] == "<="
    assert new[13, "-"] == "+"
    assert new[6, "0.05"] in ("0.025", "0.1")
    assert new[9, "4"] in ("3", "5")


def test_a_fault_is_planted_where_its_line_is_now_and_taken_out_again(tmp_path):
    place = tmp_path / "src" / "discreet" / "m.py"
    place.parent.mkdir(parents=True)
    before = "a = b - 1\n\n\nc = d\na = b - 1\n"
    place.write_text(before)
    row = {"number": "7", "file": "m.py", "line": "6", "old": "a = b - 1", "new": "a = b + 1"}
    assert planted.plant(tmp_path, row) == before
    assert place.read_text() == "a = b - 1\n\n\nc = d\na = b + 1\n"
    assert planted.plant(tmp_path, {**row, "old": "gone"}) is None
    assert planted.plant(tmp_path, {**row, "file": "other.py"}) is None


def test_drawing_again_gives_the_same_faults():
    first, second = planted.draw_faults(), planted.draw_faults()
    assert first == second
    assert len(set(first)) == planted.FAULTS + planted.RESERVE


def test_equivalent_faults_are_named_and_replaced():
    rows = planted.read_list()
    chosen = planted.choose(rows)
    assert len(chosen) == planted.FAULTS
    assert not any(row["why"].startswith("equivalent") for row in chosen)
    assert all(len(row["why"]) > 40 for row in rows if row["why"])


@pytest.mark.parametrize("ended", ["caught", "slow"])
def test_tests_that_fail_without_a_fault_catch_nothing(ended, tmp_path, monkeypatch):
    """Where golden numbers had moved, every fault would have been called caught."""
    monkeypatch.setattr(planted, "copy_tree", lambda _: planted.ROOT)
    monkeypatch.setattr(planted, "try_fault", None)  # a call would fail
    monkeypatch.setattr(planted, "run_tests", lambda *_: ended)
    with pytest.raises(SystemExit):
        planted.run("after", ["1"])
