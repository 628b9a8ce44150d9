"""Codes and facts of errors; the logger of services: what is done and how many, nothing else."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tools.messages import LIST, Site, list_messages, write_messages

import discreet
from discreet.errors import (
    BadBudget,
    BadUsage,
    DiscreetError,
    Sentence,
    list_sentences,
    name_source,
    read_sentences,
)
from refusals import refused

CELLS = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]] * 25)


def frame(cells=CELLS):
    table = pd.DataFrame(cells, columns=["confidential q1", "q2", "q3"])
    table.insert(0, "person", [f"secret {n}" for n in range(len(cells))])
    return table


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG)
    return lambda: [one.getMessage() for one in caplog.records if one.name == "discreet"]


def test_reading_counting_fitting_and_scoring_are_told_with_numbers(lines, tmp_path):
    path = tmp_path / "answers.csv"
    frame().to_csv(path, index=False)
    answers = discreet.read_responses(path)
    estimate = discreet.fit(discreet.count_pairs(answers))
    discreet.score(frame(), estimate)
    assert lines() == [
        f"reading answers of {path}",
        "read 100 persons, 3 items, 300 answers",
        "counting pairs of discreet Responses, engine auto",
        "counted pairs of 3 items, 100 persons",
        "fitting items of discreet PairCounts, method auto",
        "fitted 3 of 3 items, 100 persons, method refined",
        "reading answers of pandas DataFrame",
        "read 100 persons, 3 items, 300 answers",
        "scored 100 persons on 3 items, method warm",
    ]


def test_no_id_no_name_of_an_item_and_no_query_is_in_a_line(lines):
    table = frame()
    assert len(table) == 100
    discreet.fit(table)
    discreet.fit("SELECT * FROM (VALUES ('secret', 'q', 1), ('secret', 'r', 0), ('b', 'q', 0), "
                 "('b', 'r', 1)) AS t(person, item, response)")  # fmt: skip
    told = "\n".join(lines())
    assert "fitted 2 of 2 items, 2 persons" in told
    assert "secret" not in told
    assert "confidential" not in told


@pytest.mark.parametrize("ledger", [False, True])
def test_the_lines_of_a_release_are_the_same_whatever_the_answers_are(
    lines, caplog, tmp_path, ledger
):
    told = []
    for number, cells in enumerate((CELLS, np.vstack([CELLS, [[1, -1, -1]] * 7]))):
        path = tmp_path / f"{number}.csv"
        frame(cells).replace(-1, np.nan).to_csv(path, index=False)
        book = None
        if ledger:
            book = discreet.Ledger.create(tmp_path / f"{number}.db", 3.0)
        budget = discreet.Budget(epsilon=1.0, neighbours="add-remove")
        caplog.clear()
        discreet.release(path, budget, items=["confidential q1", "q2", "q3"], ledger=book)
        told.append(lines())
    assert told[0] == told[1]
    assert told[0][0].startswith("release: ")
    assert "charged" in told[0][1] or not ledger
    assert told[0][-1] == "release: estimated and delivered"
    assert not any("persons" in line for line in told[0])


def test_nothing_is_written_unless_somebody_listens():
    code = "import numpy as np, discreet\ndiscreet.fit(np.array([[1, 0], [0, 1], [1, 1]]))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    heard = "import logging; logging.basicConfig(level='INFO')\n" + code
    done = subprocess.run([sys.executable, "-c", heard], capture_output=True, text=True, check=True)
    assert "INFO:discreet:fitted 2 of 2 items, 3 persons" in done.stderr


def test_addresses_are_not_repeated():
    for source in (
        "postgresql://ann:pw@host/db::t",
        "mysql://ann:pw@host/db",
        "FROM 'answers.parquet'",
        "host=h password=pw",
    ):
        assert name_source(source) == "a database or query"
    assert name_source("logs/*.csv") == "logs/*.csv"
    assert name_source(CELLS) == "numpy ndarray"


# --- codes and facts ------------------------------------------------------------------------------


def test_the_list_of_messages_is_current_and_every_code_stands_for_one_statement():
    written = LIST.read_text(encoding="utf-8")
    assert write_messages() == written, "run python -m tools.messages"
    codes = [sentence.code for sentence in read_sentences(written)]
    assert len(codes) == len(set(codes)) > 800


def test_an_error_knows_its_code_and_what_its_message_names():
    with refused(BadBudget, "delta_must_lie_between", delta=2.0):
        discreet.Budget(1.0, 2.0)
    with refused(BadUsage, "no_data_set_choose", name="lsta"):
        discreet.datasets.citation("lsta")


@pytest.mark.parametrize("code", ["bad_usage", "no_such_data_set"])
def test_another_code_is_noticed(code):
    with pytest.raises(AssertionError), refused(BadUsage, code):
        discreet.datasets.citation("lsta")
    with pytest.raises(AssertionError), refused(BadUsage, "no_data_set_choose", name="lsat"):
        discreet.datasets.citation("lsta")


def repeat_a_refusal():
    try:
        discreet.Budget(1.0, 2.0)
    except BadBudget as error:
        raise DiscreetError(f"request.json: {error}") from error


def test_an_error_that_repeats_another_has_its_code_and_others_that_of_their_class():
    with refused(DiscreetError, "delta_must_lie_between", delta=2.0):
        repeat_a_refusal()
    assert BadBudget("not made by the library").code == "bad_budget"
    assert BadBudget("not made by the library").facts == {}


def test_a_code_stays_when_its_sentence_is_reworded_or_moves():
    text = "no item is called {name!r} in this list"
    old = [Sentence("no_item_called", "a.find", text), Sentence("second", "a.find", "of {n} rows")]
    for place, now in (
        ("a.find", "there is no item called {name!r} in this list"),
        ("b.look", text),
    ):
        found = list_messages([Site(place, now), Site("a.find", "of {n} rows")], old)
        assert [one.code for one in found] == ["no_item_called", "second"]
    new = list_messages([Site("a.find", "a table without any columns")], old)
    assert new[0].code == "table_without_any_columns"


def test_the_longest_sentence_that_fits_is_the_one():
    assert Sentence("", "", "{_}no row {row} in").read("a.csv: no row 7 in") == {"row": "7"}
    assert Sentence("", "", "no row {row}, {why}").read("no row 7, it ended") == {
        "row": "7",
        "why": "it ended",
    }
    assert Sentence("", "", "no row {row}").read("no column 7") is None
    assert all(
        sentence.place == place
        for place in list_sentences()
        for sentence in list_sentences()[place]
    )
