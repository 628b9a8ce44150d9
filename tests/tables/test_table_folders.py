"""Folders of tables with versions hold rows that were removed: they are refused, by name."""

import shutil

import pandas as pd
import pytest

from discreet import count_pairs, fit, inspect_table, read_responses
from discreet.errors import BadResponses, BadUsage
from refusals import refused

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
        with refused(BadUsage, "table_folder_keeps_rows", kind=name) as caught:
            read(str(folder / pattern))
        assert call in str(caught.value)
        assert caught.value.facts["folder"] == str(folder)


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
            with refused(BadUsage, "table_folder_keeps_rows", kind=name):
                count_pairs(pattern, engine=engine)


def test_a_copy_of_a_file_and_other_files_are_read(table, tmp_path):
    folder, _, _ = table
    copy = shutil.copy(folder / "part-0.parquet", tmp_path / "copy.parquet")
    assert read_responses(copy).n_persons == 1
    (folder / "notes.csv").write_text("person,item,response\na,q1,1\n")
    assert read_responses(folder / "notes.csv").n_persons == 1


# -- folders that say what is in them --------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_what_folders_say_is_a_column(tmp_path, engine):
    wide = pd.DataFrame({"id": list("abcdefghij"), "q1": [0, 1] * 5, "q2": [0, 0, 1, 1, 1] * 2})
    for year in (2023, 2024):
        folder = tmp_path / "wide" / f"year={year}" / "term=__HIVE_DEFAULT_PARTITION__"
        folder.mkdir(parents=True)
        wide.assign(id=wide["id"] + str(year)).to_parquet(folder / "part.parquet")
    counts = count_pairs(tmp_path / "wide", engine=engine)
    assert (counts.persons, counts.items) == (20, ("q1", "q2"))
    for item in wide.columns[1:]:
        folder = tmp_path / "long" / f"item={item}"
        folder.mkdir(parents=True)
        rows = {"person": wide["id"], "response": wide[item]}
        pd.DataFrame(rows).to_csv(folder / "part.csv", index=False)
    found = count_pairs(tmp_path / "long", engine=engine)
    assert found.right_wrong.tolist() == count_pairs(wide).right_wrong.tolist()
    answers = read_responses(tmp_path / "wide", group=["year", "term"])
    assert sorted({*answers.groups["year"]}) == ["2023", "2024"]
    assert {*answers.groups["term"]} == {""}


def test_a_row_of_a_part_is_found_in_its_file(tmp_path):
    (tmp_path / "year=1").mkdir()
    (tmp_path / "year=1" / "part.csv").write_text("id,q1,q2\na,1,0\nb,x,1\n")
    with refused(BadResponses, "bad_answer", where="part.csv, line 3", column="q1"):
        read_responses(tmp_path)
