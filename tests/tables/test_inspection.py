"""What the inspection proposes and what it asks; the tables themselves are in test_corpus."""

import json
import shlex
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from owners import TABLES, describe, load_expectations

import discreet
from commandline import discreet as typed
from discreet import Reading, inspect_table, read_responses
from discreet.errors import AssumedReading, BadResponses, BadUsage
from discreet.tables.columns import plan_columns
from discreet.tables.inspection.answers import find_reversed
from refusals import refused

EXPECTED, MORE = load_expectations(TABLES), TABLES / "more"


def read_proposed(name):
    """Read a table as proposed, with what only its owner knows."""
    inspection = inspect_table(TABLES / name)
    words = {**inspection.options, **EXPECTED.get(name, {}).get("supply", {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return inspection, read_responses(TABLES / name, **words)


@pytest.mark.filterwarnings("ignore")
def test_a_proposal_is_a_reading_and_a_refusal_refers_to_it():
    path = MORE / "two parts.csv"
    with refused(BadResponses, "columns_both_called_items", name_2="1") as caught:
        read_responses(path)
    note = " ".join(caught.value.__notes__)
    assert "5 columns have the name of a column before them" in note
    assert "reading=discreet.inspect_table(path).proposal" in note
    answers = read_responses(path, reading=inspect_table(path).proposal)
    assert answers.items[5] == "1 (column H)"


def test_value_labels_are_shown_and_order_texts(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    seen = inspect_table(TABLES / "befragung.sav")
    assert any(" = " in cell for row in seen.preview.rows for cell in row)
    words = {"z": "low", "m": "medium", "a": "high"}
    cells = {f"q{n}": [["z", "m", "a"][(k + n) % 3] for k in range(30)] for n in range(4)}
    frame = pd.DataFrame({"id": [f"p{n}" for n in range(30)], **cells})
    labels = dict.fromkeys(cells, words)
    pyreadstat.write_sav(frame, tmp_path / "a.sav", variable_value_labels=labels)
    assert inspect_table(tmp_path / "a.sav").options["categories"] == [["z", "m", "a"]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["Umfrage.csv", "class test with key row.csv", "drei Klassen.xlsx", "Einstufungstest.xlsx",
     "more/reading screening.csv", "more/OMR export.xlsx", "more/halbe Punkte.csv",
     "more/Photosynthesis quiz.csv", "more/events_2025_01.csv", "more/times tables check.xlsx",
     "more/neps_auszug.csv",
     "more/tutor_log.csv", "more/Science year 8.xlsx"],
)  # fmt: skip
def test_the_command_of_the_proposal_gives_the_numbers_of_the_proposal(name):
    inspection, answers = read_proposed(name)
    command = shlex.split(inspection.command.replace(str(TABLES / name), "FILE"))
    ended = typed("fit", TABLES / name, *command[3:], "--json")
    assert ended.code == 0, ended.err
    assert [row["answers"] for row in ended.document["items"]] == describe(answers)["answers"]


@pytest.mark.filterwarnings("ignore")
def test_there_is_no_command_to_copy_where_nothing_is_proposed():
    seen = inspect_table(MORE / "household.csv")
    assert "What is district" in " ".join(one.question for one in seen.questions)
    assert seen.command == ""
    ended = typed("check", MORE / "household.csv")
    assert "To state all of it" not in ended.out
    assert "--group district" in ended.out


def test_fit_asks_everything_at_once_and_says_the_command():
    ended = typed("fit", TABLES / "Umfrage.csv")
    assert (ended.code, ended.out) == (3, "")
    assert "2 things are not clear" in ended.err
    assert "--missing 9 --delimiter ';' --lowest 1 --reverse f02,f05,f09" in ended.err
    with refused(BadResponses, "not_clear_refuse_questions", count="2 things are") as caught:
        discreet.fit(TABLES / "Umfrage.csv")
    assert {"missing", "reverse"} <= {name for one in caught.value.remedies for name in one.options}


def test_fit_goes_ahead_where_all_is_clear_and_says_what_it_assumed():
    with pytest.warns(AssumedReading, match="The row 'Summe' is no person"):
        estimate = discreet.fit(TABLES / "Klassenarbeit 7a.xlsx")
    assert estimate.persons == EXPECTED["Klassenarbeit 7a.xlsx"]["persons"]


def test_check_prints_the_proposal_and_the_same_as_json():
    ended = typed("check", TABLES / "quiz export.csv")
    assert ended.code == 3
    assert "multiple-choice test of 12 items" in ended.out
    document = typed("check", TABLES / "quiz export.csv", "--json").document
    assert document["findings"][0]["answers"][0]["asks"] == "key"
    assert document["command"].endswith("--key KEY")
    read = typed("check", TABLES / "with totals.csv", "--json").document
    assert {"proposal", "findings", "command", "tests", "persons"} <= read.keys()


def test_check_names_the_separator_and_leaves_an_unknown_order_to_the_user(tmp_path):
    rows = [f"{n};{'xyz'[n % 3]};{'xyz'[n // 3 % 3]}" for n in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["id;Q1;Q2", *rows]))
    ended = typed("check", tmp_path / "a.csv")
    assert "Fields are separated by a semicolon." in ended.out
    assert "--key key.csv" in ended.out
    (command,) = [line for line in ended.out.splitlines() if "discreet fit" in line]
    assert command.endswith("--delimiter ';' --categories TEXTS")
    assert command.count("--categories") == 1


def test_an_answer_is_a_change_of_the_reading():
    inspection = inspect_table(TABLES / "quiz export.csv")
    words = inspection.answer(inspection.questions[0], reply="CABDDBACABDC")
    answers = read_responses(TABLES / "quiz export.csv", reading=Reading(**words))
    assert describe(answers)["scores"] == EXPECTED["quiz export.csv"]["scores"]


def test_a_release_takes_nothing_that_an_inspection_decided(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [f"pupil {n},{n % 2},{n // 2 % 2},{n % 3 % 2}" for n in range(20)]
    path.write_text("\n".join(["Nachname,q1,q2,q3", *rows, "Summe,10,10,7"]) + "\n")
    proposal = inspect_table(path).proposal
    assert {one.option for one in proposal.assumed} == {"person", "drop_rows"}
    with pytest.raises(BadResponses):
        discreet.release(path, discreet.Budget(1.0), items=["q1", "q2", "q3"])
    with refused(BadUsage, "release_reads_every_row"):
        discreet.release(
            path,
            discreet.Budget(1.0),
            items=["q1", "q2", "q3"],
            drop_rows="Summe",
            person="Nachname",
        )


@pytest.mark.filterwarnings("ignore")
def test_a_release_does_not_take_a_proposal_as_a_statement(tmp_path):
    """One person's 9s decide whether an inspection proposes a code for missing answers."""
    path = tmp_path / "answers.csv"
    rows = [f"{n},{9 if n < 3 else n % 2},{n // 2 % 2},{n % 3 % 2}" for n in range(40)]
    path.write_text("\n".join(["id,q1,q2,q3", *rows]) + "\n")
    proposal, listed = inspect_table(path).proposal, {"items": ["q1", "q2", "q3"]}
    assert proposal.codes == {"*": ("9",)}
    for source, words in (
        (path, {"reading": proposal}),
        (read_responses(path, reading=proposal), {}),
    ):
        with refused(BadResponses, "release_reads_answers_stated") as caught:
            discreet.release(source, discreet.Budget(1.0), **listed, **words)
        assert "missing=[9]" in caught.value.facts["advice"]
    stated = read_responses(path, reading=proposal, missing=9)
    assert discreet.release(stated, discreet.Budget(1.0), **listed).record["persons"] == 40


def test_a_plain_table_needs_no_decision(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,q1,q2\na,1,0\nb,0,1\nc,1,1\n")
    inspection = inspect_table(path)
    assert (inspection.proposal.assumed, inspection.questions, inspection.notes) == ((), (), ())
    assert inspection.preview.roles == ("person", "item", "item")


def test_reversed_items_are_the_smaller_part():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(200, 1)) + rng.normal(size=(200, 6))
    assert find_reversed(scores) == []
    scores[:, [1, 4]] *= -1
    assert find_reversed(scores) == [1, 4]
    assert find_reversed(-scores) == [1, 4]


@pytest.mark.parametrize("ends", [("1 - never", "5 - always"), ("1 (nie)", "5 (immer)")])
@pytest.mark.parametrize("spread", [4, 2.6])  # the ends are common or rare
def test_numbers_whose_ends_alone_have_words_are_one_scale(tmp_path, ends, spread):
    ability, noise = np.random.default_rng(5).normal(size=(2, 80, 6)) * [[[0.8]], [[0.5]]]
    codes = np.clip(np.round(2 + spread / 3 * (ability[:, :1] + noise)), 0, 4).astype(int)
    words = np.array([ends[0], "2", "3", "4", ends[1]])
    path = tmp_path / "a.csv"
    pd.DataFrame(words[codes], columns=[f"q{item}" for item in range(6)]).to_csv(path, index=False)
    seen = inspect_table(path)
    assert seen.is_sure
    answers = discreet.read_responses(path, reading=seen.proposal)
    assert answers.steps == (4,) * 6
    assert answers.to_array().tolist() == codes.tolist()


def test_a_column_of_raters_may_be_one(tmp_path):
    path, rng = tmp_path / "a.csv", np.random.default_rng(6)
    frame = pd.DataFrame(rng.integers(1, 6, (60, 4)), columns=["content", "style", "words", "form"])
    frame.insert(0, "rater", [f"r{number % 5}" for number in range(60)])
    frame.to_csv(path, index=False)
    answers = [str(one) for question in inspect_table(path).questions for one in question.answers]
    assert sum("single ratings with --rater rater" in answer for answer in answers) == 1


def test_items_of_another_scale_do_not_run_the_other_way():
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(300, 1)) + rng.normal(size=(300, 6)) for _ in range(2))
    assert find_reversed(np.hstack([first, second])) == []
    assert find_reversed(np.hstack([first, -first[:, :2] + rng.normal(size=(300, 2))])) == [6, 7]


def test_a_value_that_is_no_answer_may_be_read_as_missing(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,q1,q2\na,1,0\nb,x,1\nc,1,7\n")
    assert read_responses(path, invalid="missing", model="rasch").to_array().tolist() == [
        [1, 0],
        [-1, 1],
        [1, -1],
    ]
    frame = pd.read_csv(path)
    expected = read_responses(path, invalid="missing", model="rasch")
    assert discreet.Responses.from_dataframe(frame, invalid="missing", model="rasch") == expected
    budget = discreet.Budget(1.0, 1e-6)
    released = discreet.release(path, budget, items=["q1", "q2"], invalid="missing")
    assert released.estimate.items == ("q1", "q2")


def test_a_blank_person_is_refused_however_few_the_rows(tmp_path):
    (tmp_path / "a.csv").write_text("person,q1,q2\nann,1,0\n,1,0\n")
    inspection = inspect_table(tmp_path / "a.csv")
    assert inspection.options == {"person": "person"}
    with refused(BadResponses, "column_id_missing_without", row="a.csv, line 3"):
        discreet.read_responses(tmp_path / "a.csv")


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 5000, "1e999999", "-1e999999"])
def test_a_number_without_bounds_is_no_code_and_no_question(tmp_path, number):
    (tmp_path / "a.csv").write_text(f"person,a,b\n1,1,0\n2,{number},1\n3,0,1\n")
    assert inspect_table(tmp_path / "a.csv").is_sure
    with refused(BadResponses, "bad_answer", where="a.csv, line 3", column="a"):
        discreet.read_responses(tmp_path / "a.csv")


def test_a_preview_has_the_rows_above_the_names_and_says_which_rows_are_left_out():
    preview = inspect_table(TABLES / "Klassenarbeit 7a.xlsx").preview
    assert [row[0] for row in preview.above[:2]] == [
        "Klassenarbeit Nr. 2: Bruchrechnung",
        "Klasse 7a",
    ]
    assert dict(zip(preview.numbers, preview.row_roles, strict=True))[26] == "left out"
    assert "key" not in preview.row_roles


@pytest.mark.filterwarnings("ignore")
def test_a_metric_for_each_task_of_a_folder_of_the_harness():
    words = ["--filter", "flexible-extract", "--response", "gsm8k:exact_match,arc_easy:acc_norm"]
    ended = typed("fit", TABLES / "harness results", *words, "--json")
    assert ended.code == 0, ended.err
    assert ended.document["persons"] == 4
    inspection = inspect_table(
        TABLES / "harness results", filter="flexible-extract", response=words[3]
    )
    assert inspection.is_sure


def test_a_failed_run_of_inspect_is_a_person_without_answers(tmp_path):
    for number, status in enumerate(["success", "success", "success", "error"]):
        scores = [{"scorer": {"value": "CI"[(number + n) % 2]}} for n in range(6)]
        samples = [{"id": n, "epoch": 1, "scores": score} for n, score in enumerate(scores)]
        log = {
            "version": 2,
            "status": status,
            "eval": {"task": "math", "model": f"lab/m{number}"},
            "samples": samples if status == "success" else [],
        }
        (tmp_path / f"2026-01-0{number + 1}_math.json").write_text(json.dumps(log))
    assert inspect_table(tmp_path).is_sure
    with pytest.warns(UserWarning, match=r"2026-01-04_math.json holds no samples"):
        answers = read_responses(tmp_path)
    assert answers.persons.tolist() == [f"lab/m{number}" for number in range(4)]
    assert (answers.to_array()[3] == -1).all()


def test_the_key_of_a_winsteps_control_file_is_applied(tmp_path):
    head = '&INST\nNI=4\nITEM1=6\nNAME1=1\nNAMLEN=4\nCODES="ABCD"\nKEY1="BADC"\n&END\n'
    names = "w\nx\ny\nz\nEND NAMES\n"
    (tmp_path / "test.con").write_text(f"{head}{names}p001 BADC\np002 BBD \np003 AADX\n")
    answers = read_responses(tmp_path / "test.con")
    assert answers.to_array().tolist() == [[1, 1, 1, 1], [1, 0, 1, -1], [0, 1, 1, -1]]
    assert inspect_table(tmp_path / "test.con").is_sure
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        discreet.release(tmp_path / "test.con", discreet.Budget(1.0), items=list("wxyz"))
    assert "KEY1=" in caught.value.facts["advice"]
    (tmp_path / "test.con").write_text(f"{head.replace('BADC', 'BAD')}{names}p001 BADC\n")
    with refused(BadResponses, "key_right_answers_items", n_key="3", n_names="4"):
        read_responses(tmp_path / "test.con")


def test_many_blank_columns_are_one_finding(tmp_path):
    """A far cell in a spreadsheet makes thousands of columns without a name."""
    table = tmp_path / "far.csv"
    rows = ["person,a,b", "1,0,1", "2,1,0", "3,1,1", "4,0,1"]
    table.write_text("".join(row + "," * 3000 + "\n" for row in rows))
    seen = discreet.inspect_table(table)
    (blank,) = [finding for finding in seen.findings if finding.field == "ignore"]
    assert "3,000 columns" in blank.question
    assert len(seen.proposal.ignore) == 3000
    assert discreet.read_responses(table, reading=seen.proposal).items == ("a", "b")


def test_a_table_with_items_in_its_rows_is_asked_about():
    names = ["Ann", "Ben", "Eve", "Jim", "Kim", "Leo", "Mia", "Noa", "Pam"]
    cells = {name: [(n + k) % 3 % 2 for k in range(12)] for n, name in enumerate(names)}
    seen = inspect_table(pd.DataFrame({"Question": [f"Q{n}" for n in range(12)], **cells}))
    assert [finding.field for finding in seen.questions] == ["layout"]
    assert seen.options == {"layout": "transposed", "item": "Question", "person": "person"}
    answers = seen.questions[0].answers
    assert Reading(**seen.answer(seen.questions[0], 1)).layout == "wide"
    assert "every row is a person" in answers[1].words


def test_rows_shorter_than_the_names_are_left_out_only_where_that_is_stated(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,q1,q2\na,1,0\nb,0,1\nnote\nc,1,1\n", encoding="utf-8")
    stated = Reading(drop_rows="short")
    assert read_responses(path, reading=stated).persons.tolist() == ["a", "b", "c"]
    with refused(BadResponses, "line_found_first_row", line="4", n_fields="1 field"):
        read_responses(path)
    path.write_text("id,q1,q2\na,1,0\nb,0,1\nnote\nc,1,A\n", encoding="utf-8")
    with refused(BadResponses, "bad_answer", where="a.csv, line 5", column="q2"):
        read_responses(path, reading=stated)
    path.write_text("id,q1,q2\na,1,0\nb,0,1,1\nnote\n", encoding="utf-8")
    with refused(BadResponses, "line_found_first_row", line="3", n_fields="4 fields"):
        read_responses(path, reading=stated)


def test_check_says_how_it_reads_what_is_not_looked_at_first(tmp_path):
    path = tmp_path / "a.jsonl"
    pairs = [(person, item) for person in range(9) for item in range(4)]
    rows = [{"person": p, "item": f"q{i}", "response": int((p + i) % 3 > 0)} for p, i in pairs]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    document = typed("check", path, "--json").document
    assert (document["proposal"], document["findings"]) == ({}, [])
    assert document["command"] == f"discreet fit {path}"


@pytest.fixture
def transposed(tmp_path):
    """Write a table with a row for each of twelve items, a number and a sum beside them."""
    path = tmp_path / "transposed.csv"
    names = [f"Pupil {n}" for n in range(1, 10)]
    cells = [[(n * n + n * k + k) % 5 % 2 for n in range(9)] for k in range(12)]
    rows = [[k + 1, f"Task {k + 1}", *row, sum(row)] for k, row in enumerate(cells)]
    lines = [["No.", "Item", *names, "Sum"], *rows]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path, names, np.array(cells).T


def test_a_table_with_items_in_rows_is_read_the_other_way_round(transposed):
    path, names, cells = transposed
    seen = inspect_table(path)
    assert seen.options["ignore"] == ["No.", "Sum"]
    answers = read_responses(path, reading=seen.proposal)
    assert answers.persons.tolist() == names
    assert answers.items[0] == "Task 1"
    np.testing.assert_array_equal(answers.to_array(), cells)
    stated = inspect_table(path, layout="transposed", item="Item", ignore=["No.", "Sum"])
    assert stated.is_sure
    command = shlex.split(seen.command)[3:]
    assert typed("fit", path, *command, "--json").document["persons"] == 9


def test_items_in_rows_are_read_in_memory_and_never_released(transposed):
    path, _, _ = transposed
    words = {"layout": "transposed", "item": "Item", "ignore": ["No.", "Sum"]}
    with refused(BadUsage, "table_items_rows_read"):
        discreet.count_pairs(path, engine="disk", **words)
    with refused(BadUsage, "release_reads_every_row"):
        discreet.release(path, discreet.Budget(1.0), items=["Task 1", "Task 2"], **words)
    answers = read_responses(path, **words)
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        discreet.release(answers, discreet.Budget(1.0), items=["Task 1", "Task 2"])
    assert "turned round" in caught.value.facts["advice"]
    with refused(BadResponses, "two_rows_called_name", twice="0"):
        read_responses(path, layout="transposed", item="Pupil 1")


def test_strings_of_answers_are_named_with_what_to_do(tmp_path):
    path = tmp_path / "strings.dat"
    path.write_text("".join(f"{n:03d} {n * 37 % 256:08b}\n" for n in range(30)))
    seen = inspect_table(path)
    assert "a string of 8 signs (01)" in seen.questions[0].question
    assert seen.command == ""
    assert "discreet fit" not in typed("check", path).out


def test_numbers_beyond_categories_are_asked_about(tmp_path):
    path = tmp_path / "vas.csv"
    rows = [f"p{n},{n * 7 % 101},{n * 31 % 97},{n * 53 % 101}" for n in range(30)]
    path.write_text("\n".join(["id,day1,day2,day3", *rows]))
    seen = inspect_table(path)
    assert [one.field for one in seen.questions] == ["at_least"]
    assert seen.command.endswith("--at-least SCORE")
    assert read_responses(path, **seen.answer(seen.questions[0], reply=50)).n_items == 3


def test_ratings_and_parts_of_a_test_are_told_from_attempts(tmp_path):
    path = tmp_path / "long.csv"
    cells = [(p, part, i) for p in range(8) for part in "ab" for i in range(9)]
    rows = [f"essay {p},{part},{i},{(p * i + p) % 3}" for p, part, i in cells]
    path.write_text("\n".join(["script,rater,criterion,score", *rows]))
    seen = inspect_table(path)
    assert [one.field for one in seen.questions] == ["layout", "repeats"]
    assert (seen.raters, seen.questions[1].marked) == ("rater", None)
    assert "--rater rater" in seen.questions[1].answers[0].words
    path.write_text("\n".join(["model_name,task,example_id,exact_match", *rows]))
    seen = inspect_table(path)
    assert "'task' and 'example_id' name an item together" in seen.questions[1].question


def test_labels_of_their_own_make_a_column_no_item(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    cells = {f"q{n}": [float((k * n + k // 3) % 7 % 2) for k in range(40)] for n in range(1, 6)}
    frame = pd.DataFrame({"id": range(40), "v4": [1.0 + k % 2 for k in range(40)], **cells})
    credit = {name: {0.0: "No credit", 1.0: "Full credit", 9.0: "Missing"} for name in cells}
    labels = {"v4": {1.0: "Female", 2.0: "Male", 9.0: "Missing"}, **credit}
    pyreadstat.write_sav(frame, tmp_path / "a.sav", variable_value_labels=labels)
    seen = inspect_table(tmp_path / "a.sav")
    assert [one.cells for one in seen.questions] == [("v4",)]


def test_pain_from_0_to_10_has_eleven_categories(tmp_path):
    path = tmp_path / "pain.csv"
    rows = [f"{n},{n % 11},{n * 3 % 11},{n * 5 % 11}" for n in range(44)]
    path.write_text("\n".join(["id,rest,walk,sleep", *rows]))
    assert inspect_table(path).is_sure
    assert read_responses(path).steps == (10, 10, 10)
    with refused(BadUsage, "item_said_steps_must", most_steps="9"):
        discreet.release(path, discreet.Budget(1.0), items={"rest": 10, "walk": 10, "sleep": 10})


@pytest.fixture
def trial():
    """A frame with a condition that looks like an item."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.integers(0, 2, (60, 6)), columns=[f"q{n}" for n in range(1, 7)])
    frame.insert(0, "treated", rng.integers(0, 2, 60))
    return frame


@pytest.mark.parametrize(
    "convert",
    [pd.DataFrame, pa.Table.from_pandas, pl.from_pandas, lambda frame: frame.to_dict("records"),
     lambda frame: frame.to_dict("list"), lambda frame: duckdb.sql("SELECT * FROM frame")],
    ids=["pandas", "arrow", "polars", "records", "dict", "relation"],
)  # fmt: skip
def test_frames_are_asked_about_as_files_are(trial, convert):
    for read in (discreet.fit, discreet.Responses.from_dataframe):
        with refused(
            BadResponses,
            "not_clear_refuse_questions",
            listed="(1) What is treated (0 to 1)? The items are 'q1' to 'q6' (0 to 1).",
        ) as caught:
            read(convert(trial))
        assert {"group": ["treated"]} in [one.options for one in caught.value.remedies]
        read(convert(trial), group="treated")


def test_numbers_of_filtered_rows_are_no_persons_beside_ids(trial):
    frame = trial.drop(columns="treated").assign(id=[f"p{n}" for n in range(60)])
    some = frame[frame["q1"] == 1].sort_values("q2")
    answers = discreet.Responses.from_dataframe(some)
    assert answers.persons.tolist() == some["id"].tolist()
    assert answers.n_items == 6


def test_arrays_are_matrices_of_items_and_never_asked_about(trial):
    assert discreet.Responses.from_array(trial.to_numpy()).n_items == 7
    assert len(discreet.Rasch().fit(trial.to_numpy()).difficulty_) == 7
    assert discreet.fit(trial.to_numpy()).items[0] == "0"


def test_columns_that_a_key_or_steps_name_are_items(trial):
    names = [f"q{n}" for n in range(1, 7)]
    trial["q1"] = 1
    seen = inspect_table(trial, steps=dict.fromkeys(names, 1))
    assert [one.cells for one in seen.questions] == [("treated",)]
    assert seen.preview.roles.count("item") == 6
    seen = inspect_table(trial, keep=names)
    assert [one.cells for one in seen.questions] == [("treated",)]
    for words in ({"reverse": "treated"}, {"merge": {"treated": "2+3"}, "reverse": "q2"}):
        assert "treated" not in {cell for one in inspect_table(trial + 1, **words).questions
                                 for cell in one.cells}  # fmt: skip


def test_an_attention_check_inside_a_questionnaire_is_left_out():
    codes = discreet.simulate(80, 6, steps=4, rng=np.random.default_rng(2)).responses.to_array() + 1
    table = pd.DataFrame(codes, columns=[f"AUT{n}" for n in range(1, 7)])
    table.insert(3, "CHECK", 4)
    assert inspect_table(table).options["ignore"] == ["CHECK"]
    assert "ignore" not in inspect_table(table.rename(columns={"CHECK": "AUT9"})).options


@pytest.mark.parametrize("name", ["id", "subject"])
def test_a_column_of_models_in_a_wide_table_is_not_the_person(name):
    assert plan_columns([name, "model", "q1", "q2"], Reading(), "a table").person == 0
    assert plan_columns([name, "model", "question", "correct"], Reading(), "a table").person == 1


def test_a_proposal_with_open_questions_is_no_reading(trial):
    seen = inspect_table(trial)
    assert seen.command == ""
    with refused(
        BadResponses,
        "not_clear_refuse_questions",
        listed="(1) What is treated (0 to 1)? The items are 'q1' to 'q6' (0 to 1).",
    ):
        discreet.fit(trial, reading=seen.proposal)
    estimate = discreet.fit(trial, reading=seen.proposal, ignore="treated")
    assert estimate.items == tuple(f"q{n}" for n in range(1, 7))


def test_other_scales_of_a_table_are_readings_of_their_own():
    path = TABLES / "exports" / "panel scales.csv"
    seen = inspect_table(path)
    named = [one.question for one in seen.questions if "'swl1' to 'swl5' (1 to 7)" in one.question]
    assert len(named) == 1
    scales = [read_responses(path, reading=block, person="case").items for block in seen.blocks]
    assert scales == [tuple(f"swl{n}" for n in range(1, 6)), tuple(f"ev{n}" for n in range(1, 5))]
