"""Values, ids and files that no reader may take for something else, whatever holds them."""

import errno
import gzip
import json
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commandline import Ended, discreet, environment
from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.cli.output import describe
from discreet.coding.reading import Reading
from discreet.errors import BadResponses, BadUsage
from discreet.readers.answers import read_responses
from discreet.readers.batches import Buckets
from discreet.readers.comparisons import read_comparisons
from discreet.readers.spark.rows import sort_naturally
from discreet.readers.streamed.counting import Checkpoint, count_source
from discreet.sklearn import Rasch
from discreet.tables import paths as opening
from discreet.tables import sources as delimited
from discreet.threads import set_threads, thread_count
from refusals import disk_full, refused

RIGHT = ["1", " 1 ", "1.0", "1.00", "TRUE", "True", "1e0", "+1", "01", "1.", "10e-1"]
WRONG = ["0", "0.0", "false", "-0", "00", "0e5", ".0"]
NO_ANSWERS = [
    "\uff11", "0.99999999999999999", "1e-400", "1_0", "inf", "\u0661", "1e9999999999",
]  # fmt: skip


def write_csv(folder: Path, word: str) -> Path:
    file = folder / "answers.csv"
    file.write_text(f"person,item,response\na,x,{word}\nb,x,0\n", encoding="utf-8")
    return file


def write_jsonl(folder: Path, word: str) -> Path:
    file = folder / "answers.jsonl"
    rows = [{"person": "a", "item": "x", "response": word}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def write_parquet(folder: Path, word: object) -> Path:
    file = folder / "answers.parquet"
    pq.write_table(pa.table({"person": ["a"], "item": ["x"], "response": [word]}), file)
    return file


def read_as_frame(word: str) -> Responses:
    return Responses.from_dataframe(pd.DataFrame({"person": ["a"], "x": [word]}))


def count_query(word: str):
    return count_source(f"SELECT 'a' AS person, 'x' AS item, '{word}' AS response")


def readers(folder: Path, word: str):
    """Return every way into the library for one answer that is text."""
    files = [make(folder, word) for make in (write_csv, write_jsonl, write_parquet)]
    reads = [lambda file=file: read_responses(file) for file in files]
    counts = [lambda file=file: count_source(file) for file in files]
    return [*reads, *counts, lambda: read_as_frame(word), lambda: count_query(word)]


@pytest.mark.parametrize("word", NO_ANSWERS)
def test_no_reader_takes_another_number_for_an_answer(tmp_path, word):
    for read in readers(tmp_path, word):
        with refused(BadResponses, "bad_answer"):
            read()


@pytest.mark.parametrize("word", RIGHT + WRONG)
def test_all_readers_agree_on_the_spellings_that_are_answers(tmp_path, word):
    found = [read() for read in readers(tmp_path, word)]
    right = [
        int(r.to_array()[0, 0]) if isinstance(r, Responses) else int(r.right[0]) for r in found
    ]
    assert right == [int(word in RIGHT)] * len(found)


@pytest.mark.parametrize("number", ["1e1", "0.99999999999999999", "1e-400", "1.0000000000000001"])
def test_numbers_of_json_are_not_rounded_to_an_answer(tmp_path, number):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"person": 7.0, "item": "x", "response": ' + number + "}\n")
    with refused(BadResponses, "bad_answer", value=repr(number)):
        read_responses(file)
    file.write_text('{"person": 7.0, "item": "x", "response": 1.0}\n')
    assert read_responses(file).persons.tolist() == ["7"]


def test_decimals_are_compared_exactly(tmp_path):
    almost = Decimal("0.99999999999999999")
    with refused(BadResponses, "bad_answer"):
        read_responses(write_parquet(tmp_path, almost))
    file = write_parquet(tmp_path, Decimal("1.00"))
    assert read_responses(file).to_array().tolist() == [[1]]
    text = tmp_path / "text.csv"
    text.write_text("person,x\na,0.99999999999999999\nb,1\nc,0.1\n")
    assert read_responses(text, at_least=1).to_array().tolist() == [[0], [1], [0]]
    assert read_responses(text, at_least=0.1).to_array().tolist() == [[1], [1], [1]]


# -- codes for a missing answer --------------------------------------------------------------

NINES = [["a", "9", 1], ["b", "0", 9], ["c", 1, 99], ["d", 0, 0]]
EXPECTED = [[-1, 1], [0, -1], [1, -1], [0, 0]]


def write_wide(folder: Path, kind: str) -> Path:
    rows = [[person, int(one), two] for person, one, two in NINES]
    file = folder / f"answers.{kind}"
    if kind == "csv":
        text = "".join(f"{person},{one}, {two}.0\n" for person, one, two in rows)
        file.write_text(f"person,x,y\n{text}")
    elif kind == "parquet":
        columns = dict(zip(("person", "x", "y"), zip(*rows, strict=True), strict=True))
        columns["y"] = pa.array(columns["y"], pa.float32())
        pq.write_table(pa.table(columns), file)
    else:
        records = [{"person": person, "x": one, "y": float(two)} for person, one, two in rows]
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("codes", [(9, 99), ["9", 99.0], (" 9.0", "99")])
def test_codes_for_missing_answers_are_missing_in_every_file_and_engine(tmp_path, kind, codes):
    file = write_wide(tmp_path, kind)
    answers = read_responses(file, missing=codes)
    assert answers.to_array().tolist() == EXPECTED
    plan = Reading(None, None, None, None, (), None, "error", "right", None, codes)
    counted = count_source(file, reading=plan)
    assert (counted.right_wrong == count_pairs(answers).right_wrong).all()
    assert counted.answers.tolist() == [3, 2]


def test_codes_for_missing_answers_in_long_tables_frames_and_estimators(tmp_path):
    file = write_csv(tmp_path, "9.0")
    assert read_responses(file, missing=9).to_array().tolist() == [[-1], [0]]
    frame = pd.DataFrame({"x": [1, 9, 0], "y": [9.0, 1.0, 0.0]})
    assert Responses.from_dataframe(frame, missing=9).to_array().tolist() == [
        [1, -1],
        [-1, 1],
        [0, 0],
    ]
    warehouse = tmp_path / "warehouse.csv"
    warehouse.write_text("id,item,resp\na,x,-9\na,y,3\n")
    assert read_responses(warehouse, at_least=2, missing=-9).to_array().tolist() == [[-1, 1]]
    X = np.array([[1, 0, 9], [0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 9]])
    known = Rasch().fit(np.where(X == 9, np.nan, X))
    assert np.array_equal(Rasch(missing=9).fit(X).difficulty_, known.difficulty_)


def test_codes_come_before_the_threshold_and_are_never_the_key(tmp_path):
    file = tmp_path / "survey.csv"
    file.write_text("person,x\na,9\nb,3\nc,1\nd,Omitted\n")
    answers = read_responses(file, missing=[9, "omitted"], at_least=3)
    assert answers.to_array().tolist() == [[-1], [1], [0], [-1]]
    with refused(BadUsage, "missing_missing_names_answer"):
        read_responses(file, missing=[9, 0])


@pytest.mark.parametrize("code", ["9", "99", "-9", "2"])
def test_a_lone_code_is_never_advised_as_the_key(tmp_path, code):
    with pytest.raises(BadResponses) as found:
        read_responses(write_csv(tmp_path, code))
    message = str(found.value)
    assert f"--missing {code}" in message
    # Behind 0 and 1 a 2 is more likely the next step.
    assert (message.index("--missing") < message.index("--at-least SCORE")) == (code != "2")
    assert f"at_least={code}" not in message
    assert f"--at-least {code}" not in message


# -- ids -------------------------------------------------------------------------------------

BAD_IDS = {
    "lists": pa.array([["a"], ["b"]]),
    "objects": pa.array([{"a": 1}, {"a": 2}]),
    "bytes": pa.array([b"ann", b"\xff\xfe"]),
}


@pytest.mark.parametrize("kind", BAD_IDS)
@pytest.mark.parametrize(
    ("read", "column"),
    [
        *((read_responses, column) for column in ("person", "item", "group")),
        *((count_source, column) for column in ("person", "item")),
    ],
)
def test_ids_of_parquet_that_are_no_text_are_refused(tmp_path, kind, column, read):
    plain = pa.array(["a", "b"])
    columns = {"person": plain, "item": plain, "group": plain, column: BAD_IDS[kind]}
    pq.write_table(pa.table({**columns, "response": [1, 0]}), tmp_path / "answers.parquet")
    row = 2 if kind == "bytes" else 1
    options = {"group": "group"} if read is read_responses else {}
    where = f"answers.parquet, row {row}"
    with refused(BadResponses, "column_found_cannot_id", row=where, name=column):
        read(tmp_path / "answers.parquet", **options)


def test_ids_of_frames_and_comparisons_that_are_no_text_are_refused(tmp_path):
    wide = pa.table({"person": BAD_IDS["lists"], "x": [1, 0], "y": [0, 1]})
    with refused(
        BadResponses,
        "column_found_cannot_id",
        row="The data frame, row 0 (counted from 0)",
        name="person",
        role="person",
    ):
        Responses.from_dataframe(wide)
    votes = pa.table({"judge": BAD_IDS["bytes"], "winner": ["a", "b"], "loser": ["b", "a"]})
    pq.write_table(votes, tmp_path / "votes.parquet")
    with refused(BadResponses, "column_found_cannot_id", row="votes.parquet, row 2", name="judge"):
        read_comparisons(tmp_path / "votes.parquet")


def test_numbers_of_any_length_in_names_can_be_sorted():
    long = "q" + "1" * 5000
    assert sort_naturally([long, "q2", "q010"]) == ("q2", "q010", long)


# -- JSON lines ------------------------------------------------------------------------------

RECORD = '{"person": %s, "item": %s, "response": %s}'
BAD_RECORDS = {
    "deep": RECORD % ('"a"', '"x"', "[" * 100_000 + "]" * 100_000),
    "deep enough to be read": RECORD % ('"a"', '"x"', "[" * 300 + "]" * 300),
    "digits": RECORD % ('"a"', '"x"', "1" * 5000),
    "digits in an id": RECORD % ("1" * 5000, '"x"', "1"),
    "half a character": RECORD % ('"\\ud800"', '"x"', "1"),
    "half an item": RECORD % ('"a"', '"\\udfff"', "1"),
    "a list for a person": RECORD % ('["a"]', '"x"', "1"),
    "an object for an item": RECORD % ('"a"', '{"x": 1}', "1"),
    "an object for an answer": RECORD % ('"a"', '"x"', '{"right": 1}'),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
@pytest.mark.parametrize("read", [read_responses, count_source])
def test_records_that_cannot_be_answers_are_refused_in_one_line(tmp_path, name, read):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"person": "b", "item": "x", "response": 1}\n' + BAD_RECORDS[name] + "\n")
    with pytest.raises(BadResponses) as found:
        read(file)
    facts = found.value.facts
    assert facts.get("line") == "2" or facts["where"] == f"{file}, line 2"
    assert len(str(found.value)) < 600


def test_characters_outside_the_basic_plane_are_ids_like_others(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(RECORD % ('"\\ud83d\\ude00"', '"x"', "1") + "\n")
    assert read_responses(file).persons.tolist() == ["\U0001f600"]


# -- numbers and places beyond all measure ---------------------------------------------------

TABLE = "person,x,y\na,1,0\nb,0,1\nc,1,1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["table", "counts", "--engine", "duckdb", "--memory", "1e308", "--out", "c.npz"],
            "--memory",
        ),
        (
            ["table", "counts", "--engine", "duckdb", "--memory", "1e200", "--out", "c.npz"],
            "memory must be",
        ),
        (["fit", "--threads", "2147483648"], "--threads"),
        (["fit", "--anchors", "anchors.csv"], "logits"),
        (["score", "--with", "far.json"], "logits"),
        (["simulate", "--persons", "9" * 20, "--items", "3", "--out", "s.csv"], "persons"),
        (["simulate", "--persons", "3", "--items", "9" * 20, "--out", "s.csv"], "items"),
    ],
)
def test_numbers_beyond_all_measure_are_wrong_usage(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(TABLE)
    (tmp_path / "anchors.csv").write_text("item,difficulty\nx,700\n")
    (tmp_path / "fitted.csv").write_text(f"{TABLE}d,1,0\n")
    assert discreet("fit", "fitted.csv", "--out", "fitted").code == 0
    fitted = (tmp_path / "fitted" / "calibration.confidential.json").read_text()
    difficulty = json.loads(fitted)["items"][1]["difficulty"]
    (tmp_path / "far.json").write_text(fitted.replace(repr(difficulty), "700"))
    file = [] if words[0] == "simulate" else ["answers.csv"]
    command, options = (words[:2], words[2:]) if words[0] == "table" else (words[:1], words[1:])
    ended = discreet(*command, *file, *options)
    assert ended.code == 2, ended.err
    assert said in ended.err
    assert "inside discreet" not in ended.err


def test_more_threads_than_can_be_started_are_refused_everywhere(monkeypatch):
    with refused(BadUsage, "number_threads_must_found"):
        set_threads(2**31)
    monkeypatch.setenv("DISCREET_THREADS", "9" * 5000)
    with refused(BadUsage, "environment_variable_must_whole", variable="DISCREET_THREADS"):
        thread_count()


def run_in_shell(command: str, folder: Path) -> Ended:
    line = f"{shlex.quote(sys.executable)} -m discreet {command}"
    done = subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, env=environment(), check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_a_closed_standard_output_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "answers.csv").write_text(TABLE)
    ended = run_in_shell("fit answers.csv --out out >&-", tmp_path)
    assert ended.code == 2
    assert ended.err.startswith("Error: standard output is closed")
    assert not (tmp_path / "out").exists()
    ended = run_in_shell("fit answers.csv --json 2>&-", tmp_path)
    assert ended.code == 0
    assert len(ended.document["items"]) == 2
    assert run_in_shell("fit answers.csv >&- 2>&-", tmp_path).code == 2


def test_a_file_that_cannot_grow_is_named(tmp_path):
    (tmp_path / "answers.csv").write_text(TABLE)
    # The kernel refuses to write past a limit in the same way as on a full disk.
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
    code += "from discreet.cli import main; raise SystemExit(main())"
    for words in (
        "table counts answers.csv --out some.npz",
        "simulate --persons 99 --items 9 --out a.csv",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "standard output or a file" not in done.stderr
        assert "some.npz" in done.stderr or "Error: ." in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv"]


def test_rows_that_cannot_be_distributed_name_the_folder(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "answers.csv"
    file.write_text("person,item,response\nb,x,1\na,x,0\n")
    monkeypatch.setattr(Buckets, "_flush", refuse)
    with disk_full() as found:
        count_source(file, checkpoint=tmp_path / "kept")
    assert found.value.filename == str(tmp_path / "kept" / "rows")
    assert describe(found.value)[1].startswith(f"{tmp_path}/kept/rows: the disk is full")


def test_a_second_process_on_one_checkpoint_is_refused(tmp_path):
    file = write_csv(tmp_path, "1")
    kept = tmp_path / "kept"
    with Checkpoint(kept, "").lock(), refused(BadUsage, "checkpoint_use_another_process"):
        count_source(file, checkpoint=kept)
    assert count_source(file, checkpoint=kept).persons == 2
    assert not kept.exists()


# -- large and packed files ------------------------------------------------------------------


def test_headers_longer_than_what_is_looked_at_first_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "_HEAD", 1 << 10)
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", (1 << 10, 1 << 11))
    names = [f"item number {i}" for i in range(1000)]
    file = tmp_path / "wide.csv"
    rows = [",".join(["a", *"10" * 500]), ",".join(["b", *"01" * 500])]
    file.write_text("\n".join([",".join(["person", *names]), *rows]) + "\n")
    answers = read_responses(file)
    assert answers.items == tuple(names)
    assert answers.to_array()[0].tolist() == [1, 0] * 500
    assert count_source(file).items == answers.items


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("line.csv.gz", b"person,item,response\na,x,1\n"),
        ("header.csv.gz", b"person"),
        ("record.jsonl.gz", b'{"person": "a", "item": "x", "response": 1}\n'),
    ],
)
def test_a_gzip_file_that_inflates_a_thousandfold_is_read_with_bounded_memory(
    tmp_path, name, start
):
    file = tmp_path / name
    with gzip.open(file, "wb") as stream:
        stream.write(start)
        for _ in range(300):
            stream.write(b"0" * (1 << 20))
    code = (
        "import resource, sys; from discreet.readers.answers import read_responses\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_responses(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    refused, kilobytes = done.stdout.split()
    assert refused == "BadResponses"
    assert int(kilobytes) < 250_000  # the file has 300 MB; a line of 64 MB is held a few times


def test_what_a_gzip_file_unpacks_to_decides_where_it_is_read(tmp_path):
    file = tmp_path / "answers.csv.gz"
    file.write_bytes(gzip.compress(b"a" * 50_000_000))
    assert file.stat().st_size < 100_000
    assert opening.unpacked_size(file) == 50_000_000


def test_a_latin_letter_far_into_a_file_of_comparisons_is_read_with_a_warning(tmp_path):
    file = tmp_path / "votes.csv"
    rows = "".join(f"judge number {number},ash,elm\n" for number in range(180_000))
    file.write_bytes(b"judge,winner,loser\n" + rows.encode() + b"Ren\xe9,elm,ash\n")
    with pytest.warns(UserWarning, match="not UTF-8"):
        votes = read_comparisons(file)
    assert votes.n_judges == 180_001


def test_a_number_of_five_thousand_digits_is_refused_without_repeating_it(tmp_path):
    (tmp_path / "long.csv").write_text(f"person,a,b\n1,1,0\n2,-{'9' * 5000},1\n3,0,2\n")
    ended = discreet("check", tmp_path / "long.csv")
    assert ended.code == 3
    assert "line 3, column 'a'" in ended.err
    assert len(ended.err) < 2000
