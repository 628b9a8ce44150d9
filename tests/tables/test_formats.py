"""Other programs' files: what goes out comes back, and odd files are refused with a reason."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

import discreet
from discreet.errors import BadResponses, BadUsage, DiscreetWarning
from discreet.persons.scoring import PersonStatus
from discreet.readers.winsteps import read_item_file, read_person_file
from discreet.report.formats import write_table
from discreet.results.estimate import Status
from refusals import refused

# The layout of Winsteps: two heading lines, a semicolon before what has no ordinary measure,
# numbers without a leading zero. Made up, after the manual's pages on IFILE= and PFILE=.
IFILE = """\
; ITEM  control.txt  Nov 15 2026
;ENTRY MEASURE ST   COUNT   SCORE MODLSE IN.MSQ IN.ZST OUTMSQ OUTZST  DISPL PTMA WEIGHT NAME
      1    -.50  1   200.0   140.0    .15    .93   -.54    .88   -.56    .00  .47   1.00 2 + 2
      2    1.25  2   200.0    60.0    .17   1.09    .35   1.05    .27   -.12  .41   1.00 3 x 4
;     3    5.10  0   200.0      .0   1.83   1.00    .00   1.00    .00    .00  .00   1.00 proof
;     4   -5.10 -1   200.0   200.0   1.83   1.00    .00   1.00    .00    .00  .00   1.00 1 + 1
;     5 9999.00 -2      .0      .0    .00   1.00    .00   1.00    .00    .00  .00   1.00 spare
;     6 9999.00 -3      .0      .0    .00   1.00    .00   1.00    .00    .00  .00   1.00 gone
"""


def saved(tmp_path, text, name="items.txt"):
    path = tmp_path / name
    path.write_text(text)
    return path


def extremes():
    answers = np.array(
        [[1, 0, 1, 0, np.nan], [0, 1, 1, 0, np.nan], [1, 0, 1, 0, np.nan], [0, 1, 1, 0, np.nan]]
    )
    return discreet.Responses.from_array(answers, items=["a", "b c", "easy", "hard", "new"])


# --- Winsteps ---------------------------------------------------------------------------------


def test_an_item_file_of_winsteps_is_read(tmp_path):
    estimate = read_item_file(saved(tmp_path, IFILE))
    assert estimate.items == ("2 + 2", "3 x 4", "proof", "1 + 1", "spare", "gone")
    assert estimate.difficulty[:2].tolist() == [-0.5, 1.25]
    assert estimate.se[:2].tolist() == [0.15, 0.17]
    assert np.isnan(estimate.difficulty[2:]).all()
    assert [str(one) for one in estimate.status] == [
        "estimated",
        "anchored",
        "always_wrong",
        "always_right",
        "no_answers",
        "no_answers",
    ]
    assert estimate.answers.tolist() == [200, 200, 200, 200, 0, 0]


def test_the_raw_score_tells_extreme_items_apart_where_manuals_disagree(tmp_path):
    # Older manuals have 0 for the easiest and -1 for the hardest item.
    older = IFILE.replace("5.10  0 ", "5.10 -1 ").replace("-5.10 -1 ", "-5.10  0 ")
    estimate = read_item_file(saved(tmp_path, older))
    assert estimate.status[2] is Status.ALWAYS_WRONG
    assert estimate.status[3] is Status.ALWAYS_RIGHT


def test_without_scores_the_present_manual_decides(tmp_path):
    text = "ENTRY,MEASURE,STTS,NAME\n1,0.5,1,a\n2,5,0,b\n3,-5,-1,c\n4,9999,-6,d\n"
    estimate = read_item_file(saved(tmp_path, text, "items.csv"))
    assert [str(one) for one in estimate.status] == [
        "estimated",
        "always_wrong",
        "always_right",
        "not_connected",
    ]
    assert estimate.answers is None


def test_rescaled_measures_are_refused_until_the_user_says_how(tmp_path):
    text = "ENTRY,MEASURE,ST,MODLSE,NAME\n1,450,1,10,a\n2,550,1,10,b\n"
    path = saved(tmp_path, text, "items.csv")
    with refused(BadUsage, "measure_cannot_logits_say"):
        read_item_file(path)
    estimate = read_item_file(path, user_mean=500, user_scale=100)
    assert estimate.difficulty.tolist() == [-0.5, 0.5]
    assert estimate.se.tolist() == [0.1, 0.1]


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("", "no_line_begins_entry", {}),
        ("person,item,response\n", "no_line_begins_entry", {}),
        (
            ";ENTRY MEASURE ST NAME\n1 0.5 1 a\n2 0.6 1 a\n",
            "two_items_called_items",
            {"twice": "a"},
        ),
        (
            ";ENTRY MEASURE ST NAME\n1 hard 1 a\n",
            "entry_no_number_name",
            {"label": "MEASURE", "text": "hard"},
        ),
        (
            ";ENTRY MEASURE ST COUNT SCORE NAME\n1 0.5\n",
            "line_blank_lines_not_counted",
            {"n_fields": "2"},
        ),
    ],
)
def test_a_file_that_is_no_item_file_is_refused(tmp_path, text, code, facts):
    with refused(BadResponses, code, **facts):
        read_item_file(saved(tmp_path, text))


PFILE = """\
; PERSON  control.txt  Nov 15 2026
;ENTRY MEASURE ST   COUNT   SCORE MODLSE NAME
;     1    1.80  0     2.0     2.0   1.83 001
;     2   -1.80 -1     2.0      .0   1.83 b b
      3     .25  1     2.0     1.0   1.41 c
;     4 9999.00 -2      .0      .0    .00 d
"""


def test_a_person_file_of_winsteps_is_read(tmp_path):
    scores = read_person_file(saved(tmp_path, PFILE, "persons.txt"))
    assert scores.persons.tolist() == ["001", "b b", "c", "d"]
    assert scores.status.tolist() == [
        PersonStatus.ALL_RIGHT,
        PersonStatus.ALL_WRONG,
        PersonStatus.MEASURED,
        PersonStatus.NO_ANSWERS,
    ]
    assert scores.ability.tolist()[:3] == [1.8, -1.8, 0.25]
    assert np.isnan(scores.ability[3])
    assert scores.score.tolist() == [2, 0, 1, 0]


# --- the Item Response Warehouse ----------------------------------------------------------------


def test_ratings_of_the_warehouse_become_right_and_wrong_when_asked(tmp_path):
    path = saved(tmp_path, "id,item,resp,rt\n1,a,3,9.5\n1,b,1,2.0\n2,a,2,1.0\n", "a.csv")
    columns = {"person": "id", "item": "item", "response": "resp"}
    answers = discreet.read_responses(path, **columns)
    assert answers.to_array().tolist() == [[2, 0], [1, -1]]
    answers = discreet.read_responses(path, at_least=2, **columns)
    assert answers.to_array().tolist() == [[1, 0], [1, -1]]


# --- tables -------------------------------------------------------------------------------------


def test_an_estimate_is_written_as_csv_and_parquet(tmp_path):
    import pyarrow.parquet as pq

    estimate = discreet.fit(extremes())
    for ending in ("csv", "parquet"):
        write_table(tmp_path / f"e.{ending}", estimate)
    table = pq.read_table(tmp_path / "e.parquet")
    assert table["item"].to_pylist() == list(estimate.items)
    assert table["difficulty"].to_pylist()[2] is None
    lines = (tmp_path / "e.csv").read_text().splitlines()
    assert lines[0].startswith("item,difficulty,se")
    assert lines[3].startswith("easy,,,")
    with refused(BadUsage, "ending_says_how_write"):
        write_table(tmp_path / "e.doc", estimate)


# -- formats by their first bytes ------------------------------------------------------------------

TABLE = pd.DataFrame({"id": list("abcdefghij"), "q1": [0, 1] * 5, "q2": [0.0, 0, 1, 1, 1] * 2})


def pack(codec):
    def write(path):
        with pa.CompressedOutputStream(str(path), codec) as file:
            file.write(TABLE.to_csv(index=False).encode())

    return write


def write_stream(path):
    table = pa.Table.from_pandas(TABLE)
    with pa.ipc.new_stream(str(path), table.schema) as file:
        file.write(table)


def write_sqlite(path, *names):
    with closing(sqlite3.connect(path)) as file:
        for name in names or ('the "answers"',):
            TABLE.to_sql(name, file, index=False)


WRITERS = {
    "answers.csv.zst": pack("zstd"), "answers.csv.bz2": pack("bz2"), "packed by gzip": pack("gzip"),
    "answers.feather": lambda path: feather.write_feather(TABLE, str(path)), "stream": write_stream,
    "answers.sqlite": write_sqlite,
    "answers.json": lambda path: TABLE.to_json(path, orient="records"),
    "answers.parquet.zst": lambda path: path.write_bytes(pa.compress(
        TABLE.to_parquet(), codec="zstd", asbytes=True)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_format_is_known_by_its_first_bytes_whatever_its_name(tmp_path, name, engine):
    expected = discreet.count_pairs(TABLE)
    for path in (tmp_path / name, tmp_path / "answers"):
        WRITERS[name](path)
        counts = discreet.count_pairs(path, engine=engine)
        assert (counts.persons, counts.items) == (10, ("q1", "q2"))
        assert np.array_equal(counts.right_wrong, expected.right_wrong)


@pytest.mark.parametrize("name", ["answers.feather", "answers.sqlite", "answers.json", "stream"])
def test_a_damaged_file_is_refused(tmp_path, name):
    WRITERS[name](tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    with refused(BadResponses, "damaged_cut_off_cannot_read_parquet"):
        discreet.read_responses(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "description"),
    [(b"\xfd7zXZ\0 ", "an xz file"), (b"%PDF-1.7", "a PDF"), (b"ORC ", "an ORC file")],
)
def test_a_format_that_is_not_read_is_named(tmp_path, content, description):
    path = tmp_path / ("answers.orc" if content.startswith(b"ORC") else "answers.csv")
    path.write_bytes(content)
    with refused(BadResponses, "not_read_here_save", other=description):
        discreet.read_responses(path)


def test_of_several_tables_one_must_be_named(tmp_path):
    write_sqlite(tmp_path / "answers.sqlite", "one", "two")
    with refused(BadUsage, "tables_one_read_read"):
        discreet.read_responses(tmp_path / "answers.sqlite")
    (tmp_path / "answers.json").write_text('[{"id": 1}, 2]')
    with refused(BadResponses, "no_list_records_each"):
        discreet.read_responses(tmp_path / "answers.json")


def test_ids_that_people_take_for_one_are_warned_about_once():
    ids = ["\xe9", "e\u0301", "7", "7.0", "z", "z\u200b", "y"]
    rows = pd.DataFrame({"person": ids, "item": "q1", "response": [1, 0, 1, 0, 1, 0, 1]})
    with pytest.warns(DiscreetWarning, match="Persons whose ids .* 3 of them") as told:
        assert discreet.Responses.from_dataframe(rows).n_persons == 7
    assert len(told) == 1
    discreet.Responses.from_dataframe(rows.iloc[[0, 2, 4, 6]])  # no warning: pytest would fail
