"""SPSS, Stata and SAS: labels and declared missing codes mean what the file says."""

import gzip
import re
import sys

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from commandline import discreet
from discreet import read_responses
from discreet.errors import BadResponses, BadUsage, DiscreetWarning, MissingExtra
from discreet.tables.formats import labelled
from refusals import refused

FRAME = pd.DataFrame(
    {"id": ["a", "b", "c", "d"], "Q1": [1.0, 0.0, 1.0, np.nan], "Q2": [0.0, 1.0, 1.0, 0.0]}
)
PLAIN = [[1, 0], [0, 1], [1, 1], [-1, 0]]
WRITERS = {
    "sav": pyreadstat.write_sav,
    "zsav": lambda frame, path: pyreadstat.write_sav(frame, path, compress=True),
    "dta": pyreadstat.write_dta,
    "xpt": pyreadstat.write_xport,
}


def write(folder, kind="sav", frame=FRAME, **options):
    path = folder / f"answers.{kind}"
    WRITERS[kind](frame, str(path), **options)
    return path


@pytest.mark.parametrize("kind", WRITERS)
def test_plain_zeros_and_ones_are_read_without_a_word(tmp_path, kind):
    answers = read_responses(write(tmp_path, kind))
    assert answers.items == ("Q1", "Q2")
    assert answers.persons.tolist() == ["a", "b", "c", "d"]
    assert answers.to_array().tolist() == PLAIN


def test_old_stata_files_and_gzipped_ones_are_read(tmp_path):
    path = tmp_path / "old.dta"
    FRAME.to_stata(path, write_index=False, version=114)
    assert read_responses(path).to_array().tolist() == PLAIN
    packed = tmp_path / "packed.sav.gz"
    packed.write_bytes(gzip.compress(write(tmp_path).read_bytes()))
    assert read_responses(packed).to_array().tolist() == PLAIN


def test_rows_are_read_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(labelled, "_CELLS", 6)
    seen = []
    assert read_responses(write(tmp_path), progress=seen.append).to_array().tolist() == PLAIN
    assert len(seen) > 2


def test_codes_that_the_file_declares_missing_are_missing_and_counted(tmp_path):
    frame = FRAME.assign(Q1=[1.0, 9.0, 9.0, 0.0], Q2=[0.0, 97.0, 1.0, 99.0])
    ranges = {"Q1": [9], "Q2": [{"lo": 97, "hi": 99}]}
    path = write(tmp_path, frame=frame, missing_ranges=ranges)
    with pytest.warns(UserWarning, match=r"4 answers are codes .* \(9, 97, 99\).*Q1 2, Q2 2\."):
        answers = read_responses(path)
    assert answers.to_array().tolist() == [[1, 0], [-1, -1], [-1, 1], [0, -1]]
    assert "4 answers are codes" in discreet("fit", path, "--json").err


def test_marks_of_stata_are_missing_and_counted(tmp_path):
    frame = FRAME.assign(Q1=[1.0, "a", 0.0, "b"])
    path = write(tmp_path, "dta", frame, missing_user_values={"Q1": ["a", "b"]})
    with pytest.warns(UserWarning, match=r"2 answers are codes .* \(a, b\)"):
        assert read_responses(path).to_array()[:, 0].tolist() == [1, -1, 0, -1]


@pytest.mark.parametrize(
    ("right", "wrong"), [("correct", "incorrect"), ("Richtig", "Falsch"), ("yes", "no")]
)
def test_labels_of_right_and_wrong_decide_whatever_the_codes(tmp_path, right, wrong):
    frame = FRAME.assign(Q1=[1.0, 2.0, 9.0, np.nan], Q2=[0.0, 1.0, 1.0, 0.0])
    labels = {"Q1": {1.0: right, 2.0: wrong, 9.0: "omitted"}, "Q2": {0.0: right, 1.0: wrong}}
    path = write(tmp_path, frame=frame, variable_value_labels=labels, missing_ranges={"Q1": [9]})
    meaning = re.escape(f"1 ('{right}') is right, 2 ('{wrong}') is wrong")
    with (
        pytest.warns(UserWarning, match=meaning),
        pytest.warns(UserWarning, match="declares missing"),
    ):
        answers = read_responses(path)
    assert answers.to_array().tolist() == [[1, 1], [0, 0], [-1, 0], [-1, 1]]


def test_labels_that_say_what_numbers_say_need_no_word(tmp_path):
    labels = {name: {0.0: "wrong", 1.0: "right"} for name in ("Q1", "Q2")}
    path = write(tmp_path, variable_value_labels=labels)
    assert read_responses(path).to_array().tolist() == PLAIN


def test_a_code_beside_labels_of_right_and_wrong_is_refused_by_its_label(tmp_path):
    frame = FRAME.assign(Q1=[1.0, 2.0, 0.0, 1.0])
    labels = {"Q1": {1.0: "correct", 2.0: "incorrect", 0.0: "not reached"}}
    path = write(tmp_path, frame=frame, variable_value_labels=labels)
    refusal = {"where": "answers.sav, row 3", "column": "Q1", "value": "'not reached'"}
    with pytest.warns(DiscreetWarning), refused(BadResponses, "bad_answer", **refusal):
        read_responses(path)
    with pytest.warns(UserWarning, match="value labels"):
        answers = read_responses(path, missing="not reached")
    assert answers.to_array()[:, 0].tolist() == [1, 0, -1, 1]
    del labels["Q1"][0.0]
    path = write(tmp_path, frame=frame, variable_value_labels=labels)
    refusal = {"value": "'0 (without a label)'"}
    with pytest.warns(DiscreetWarning), refused(BadResponses, "bad_answer", **refusal):
        read_responses(path)


def test_labels_are_left_alone_where_the_user_says_what_codes_mean(tmp_path):
    labels = {"Q1": {0.0: "correct", 1.0: "incorrect"}, "Q2": {0.0: "correct", 1.0: "incorrect"}}
    path = write(tmp_path, variable_value_labels=labels)
    flipped = read_responses(path, one_means="wrong").to_array().tolist()
    assert flipped == [[0, 1], [1, 0], [0, 0], [-1, 1]]
    with pytest.warns(UserWarning, match="value labels"):
        assert read_responses(path).to_array().tolist() == flipped


def test_three_kinds_of_answers_stay_codes_for_a_threshold(tmp_path):
    frame = FRAME.assign(Q1=[2.0, 1.0, 0.0, 2.0])
    labels = {"Q1": {0.0: "wrong", 1.0: "partly", 2.0: "right"}}
    path = write(tmp_path, frame=frame, variable_value_labels=labels)
    with refused(BadResponses, "bad_answer", column="Q1", value="2.0") as caught:
        read_responses(path)
    assert {"model": "partial-credit"} in [one.options for one in caught.value.remedies]
    assert read_responses(path, model="partial-credit", ignore="Q2").steps[0] == 2
    answers = read_responses(path, at_least=1, ignore="Q2")
    assert answers.to_array()[:, 0].tolist() == [1, 1, 0, 1]


def test_groups_are_called_by_their_labels(tmp_path):
    frame = FRAME.assign(form=[1.0, 2.0, 1.0, 2.0])
    path = write(tmp_path, frame=frame, variable_value_labels={"form": {1.0: "yes", 2.0: "no"}})
    answers = read_responses(path, group="form")
    assert answers.groups["form"].tolist() == ["yes", "no", "yes", "no"]


def test_a_key_may_name_options_by_their_labels_or_by_their_codes(tmp_path):
    frame = FRAME.assign(Q1=[1.0, 2.0, 3.0, 9.0], Q2=[1.0, 2.0, 3.0, 3.0])
    options = {1.0: "Rome", 2.0: "Paris", 3.0: "Bonn"}
    path = write(
        tmp_path, frame=frame, variable_value_labels={"Q1": options}, missing_ranges={"Q1": [9]}
    )
    for right in ("paris", 2):
        with pytest.warns(UserWarning, match="1 answers are codes"):
            answers = read_responses(path, key={"Q1": right, "Q2": [1, 3]})
        assert answers.to_array().tolist() == [[0, 1], [1, 0], [0, 1], [-1, 1]]


@pytest.mark.parametrize(("kind", "share"), [("sav", 0.3), ("sav", 0.99), ("dta", 0.5)])
def test_a_damaged_file_is_one_clear_line(tmp_path, kind, share):
    path = write(tmp_path, kind)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    ended = discreet("fit", path)
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended.err
    assert "damaged or cut off" in ended.err


def test_a_file_with_the_wrong_name_or_an_incredible_size_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.sav"
    path.write_text("id,Q1\na,1\n")
    with refused(
        BadResponses,
        "named_like_not_one",
        description="a file of a statistical program (SPSS, Stata, SAS)",
    ):
        read_responses(path)
    monkeypatch.setattr(labelled, "MOST_CELLS", 10)
    with refused(BadResponses, "says_holds_rows_columns", n_rows="4", n_names="3"):
        read_responses(write(tmp_path))


def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch):
    path = write(tmp_path)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with refused(
        MissingExtra,
        "needs_optional_dependency_group",
        feature="answers.sav is a file of SPSS; reading it",
        extra="files",
    ):
        read_responses(path)
    assert discreet("fit", path).code == 2


def test_names_are_part_of_the_file(tmp_path):
    with refused(BadUsage, "names_columns_itself_leave"):
        read_responses(write(tmp_path), header=False)


def test_the_engine_for_any_size_reads_them_alike(tmp_path):
    path = write(tmp_path)
    there, here = (
        discreet(
            "table", "counts", path, "--out", tmp_path / engine, "--engine", engine, "--json"
        ).document
        for engine in ("disk", "memory")
    )
    assert {**there, "out": ""} == {**here, "out": ""}
