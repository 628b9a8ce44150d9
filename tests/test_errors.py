"""The logger of services: what is done and how many, and nothing else."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.errors import name_source

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
