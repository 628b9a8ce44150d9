"""The worked examples of CONTRIBUTING.md: a new analysis, and where an option of reading is."""

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from discreet import items
from discreet.api.opening import opens
from discreet.tables.options import READING_FIELDS

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def read_example(title):
    return CONTRIBUTING.read_text().partition(f"### {title}")[2].partition("\n### ")[0]


@pytest.fixture
def omissions(tmp_path, monkeypatch):
    (module,) = re.findall(r"```python\n(.*?)```", read_example("A new analysis"), re.S)
    (tmp_path / "omissions.py").write_text(module)
    monkeypatch.setattr(items, "__path__", [*items.__path__, str(tmp_path)])
    yield import_module("discreet.items.omissions")
    sys.modules.pop("discreet.items.omissions")


def test_the_new_analysis_is_a_table_and_comes_back_from_a_file(omissions, tmp_path):
    answers = np.array([[1, 0, np.nan], [1, np.nan, np.nan], [0, 1, 1], [0, 0, np.nan]])
    result = opens(omissions.measure_omissions)(answers)
    assert result.to_dict()["share"] == [0, 0.25, 0.75]
    assert len(result.to_dataframe()) == 3
    assert "Omissions, 3 rows" in result.summary()
    result.save(tmp_path / "omissions.json")
    again = omissions.Omissions.load(tmp_path / "omissions.json")
    assert again.to_dict() == result.to_dict()


def test_an_option_of_reading_is_declared_in_the_files_that_the_page_names():
    example = read_example("A new option of reading")
    (option,) = re.findall(r"the option `(\w+)`", example)
    assert option in READING_FIELDS
    named = re.findall(r"^\| `([\w/]+\.(?:py|txt))` \|", example, re.M)
    assert len(named) == 4
    package = CONTRIBUTING.parent / "src" / "discreet"
    for path in named:
        assert re.search(rf"\b{option}\b", (package / path).read_text()), path
