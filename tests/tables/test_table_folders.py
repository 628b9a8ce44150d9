"""Folders of tables with versions hold rows that were removed: they are refused, by name."""

import shutil

import pandas as pd
import pytest

from discreet import count_pairs, fit, inspect_table, read_responses
from discreet.errors import BadUsage

FORMATS = {
    "Delta": ("_delta_log/00000000000000000000.json", "delta_scan('{}') in SQL"),
    "Iceberg": ("metadata/00000-abc.metadata.json", "iceberg_scan('{}') in SQL"),
    "Hudi": (".hoodie/hoodie.properties", "spark.read.format('hudi').load('{}')"),
}


@pytest.fixture(params=FORMATS)
def table(request, tmp_path):
    """A folder with a version of a table and what marks it; which format, and the right call."""
    mark, call = FORMATS[request.param]
    folder = tmp_path / "lake" / "answers"
    (folder / mark).parent.mkdir(parents=True)
    (folder / mark).write_text("{}")
    for number, place in enumerate(("part-0.parquet", "year=2024/part-1.parquet")):
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        rows = {"person": [f"p{number}"] * 2, "item": ["a", "b"], "response": [number, 1]}
        pd.DataFrame(rows).to_parquet(path)
    return folder, request.param, call.format(folder)


@pytest.mark.parametrize(
    "pattern", ["", "*.parquet", "part-0.parquet", "year=2024", "year=*/*.parquet", "**/*.parquet"]
)
def test_a_table_with_versions_is_refused_with_the_right_call(table, pattern):
    folder, name, call = table
    for read in (read_responses, fit, count_pairs, inspect_table):
        with pytest.raises(BadUsage, match=f"is a table of {name}") as refused:
            read(str(folder / pattern))
        assert call in str(refused.value)
        assert f"'{folder}'" in str(refused.value)


def test_patterns_into_the_folder_are_refused_from_inside_and_from_above(table, monkeypatch):
    folder, name, _ = table
    for place, pattern in (
        (folder, "*.parquet"),
        (folder / "year=2024", "*.parquet"),
        (folder.parent, "answers"),
        (folder.parent, "*/*.parquet"),
        (folder.parent, "answers/year=2024/part-1.parquet"),
    ):
        monkeypatch.chdir(place)
        for engine in ("memory", "disk"):
            with pytest.raises(BadUsage, match=f"is a table of {name}"):
                count_pairs(pattern, engine=engine)


def test_a_copy_of_a_file_and_other_files_are_read(table, tmp_path):
    folder, _, _ = table
    copy = shutil.copy(folder / "part-0.parquet", tmp_path / "copy.parquet")
    assert read_responses(copy).n_persons == 1
    (folder / "notes.csv").write_text("person,item,response\na,q1,1\n")
    assert read_responses(folder / "notes.csv").n_persons == 1
