"""Ledgers of schema 1: taken over whole, or left as they are."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from discreet.answers.protocol import CELLS, ROWS
from discreet.answers.responses import Responses
from discreet.errors import BudgetExceeded, LedgerError
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.file import read_events, seal, seal_head, start_events

SCHEMA_1 = Path(__file__).parents[1] / "data" / "ledger-schema-1.sql"
ITEMS = ["b", "a", "d", "c"]
CELLS_OF_A = [[1, 0, 1, None], [0, 0, 1, 1], [1, 1, None, 0], [None] * 4]
A = np.array(CELLS_OF_A, dtype=float)
B = 1 - A
SPENDS = [calibrate_counts(500, Budget(epsilon, 1e-6))[1] for epsilon in (0.75, 0.5, 0.25)]


@pytest.fixture
def old(tmp_path) -> Path:
    """A file as version 0.1 left it."""
    path = tmp_path / "spent.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA_1.read_text(encoding="utf-8"))
    connection.close()
    return path


def look(path: Path, question: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    found = connection.execute(question).fetchall()
    connection.close()
    return found


def answers(cells=B, items=ITEMS) -> Responses:
    return Responses.from_array(cells, items=items)


def charge(ledger: Ledger, data: Responses, epsilon: float, population: str = EVERYONE) -> str:
    fingerprint, former = ledger.recognise(data)
    return ledger.reserve(
        calibrate_counts(500, Budget(epsilon, 1e-6))[1],
        fingerprint=fingerprint,
        former=former,
        description="a test",
        population=population,
    )


def test_every_spend_is_kept_and_every_entry_keeps_its_text(old):
    settings = "SELECT settings, key FROM ledger"
    before = look(old, "SELECT reservation, body FROM releases"), look(old, settings)
    ledger = Ledger.open(old)
    assert look(old, "PRAGMA user_version") == [(4,)]
    charged = look(old, "SELECT reservation, body FROM events WHERE kind = 'charged'")
    assert (charged, look(old, settings)) == before
    entries = ledger.releases()
    assert [entry.spend for entry in entries] == SPENDS
    assert [entry.population for entry in entries] == [EVERYONE, "grade 8", "grade 8"]
    assert [entry.state for entry in entries] == ["completed", "completed", "charged"]
    assert {entry.stored_at for entry in entries} == {None}
    assert {entry.recognised_by for entry in entries} == {ROWS}


def test_what_everyone_and_a_population_spent_before_now_adds_up(old):
    ledger = Ledger.open(old)
    ledger.declare("grade 7", disjoint=["grade 8"])
    assert ledger.spent()[0] > ledger.spent("grade 7")[0] == pytest.approx(0.75, rel=1e-3)
    assert ledger.spent("grade 8") == ledger.spent()
    with pytest.raises(BudgetExceeded):
        charge(ledger, answers(), 0.75, "grade 8")


def test_old_entries_are_recognised_by_the_old_rule(old):
    ledger = Ledger.open(old)
    ledger.declare("grade 9", disjoint=["grade 8"])
    ledger.declare("grade 10", disjoint=["grade 8", "grade 9"])
    with pytest.raises(LedgerError, match="already charged to population 'grade 8'"):
        charge(ledger, answers(), 0.1, "grade 9")
    charge(ledger, answers(A), 0.1, "grade 9")  # charged to everyone before, so it adds up
    wider = answers(np.column_stack([B, np.full(4, np.nan)]), [*ITEMS, "e"])
    charge(ledger, wider, 0.1, "grade 10")  # the old rule does not see through an empty column
    assert [entry.recognised_by for entry in ledger.releases()] == [ROWS] * 3 + [CELLS] * 2
    Ledger.open(old)  # one seal runs through old and new entries


def test_new_entries_are_recognised_through_empty_columns_and_empty_rows(old):
    ledger = Ledger.open(old)
    ledger.declare("grade 9", disjoint=["grade 8"])
    ledger.declare("grade 10", disjoint=["grade 9"])
    charge(ledger, answers(A), 0.1, "grade 9")
    disguised = np.column_stack([np.full(4, np.nan), A])[:3]
    with pytest.raises(LedgerError, match="already charged to population 'grade 9'"):
        charge(ledger, answers(disguised, ["new", *ITEMS]), 0.1, "grade 10")


def test_a_ledger_without_old_entries_asks_for_one_digest_only(tmp_path):
    ledger = Ledger.create(tmp_path / "new.db", 1.0)
    assert ledger.recognise(answers())[1] is None
    charge(ledger, answers(), 0.1)
    assert ledger.recognise(answers()) == (ledger.releases()[0].fingerprint, None)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE releases SET body = replace(body, '0.75', '0.05') WHERE number = 1",
        "DELETE FROM releases WHERE number = 3",
        "UPDATE ledger SET settings = replace(settings, '1.0', '9.0')",
        "UPDATE ledger SET settings = CAST(settings AS BLOB)",
        "DELETE FROM ledger",
    ],
)
def test_a_damaged_old_ledger_is_refused_and_not_touched(old, tampering):
    connection = sqlite3.connect(old)
    with connection:
        connection.execute(tampering)
    connection.close()
    before = old.read_bytes()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(old)
    assert old.read_bytes() == before


@pytest.mark.parametrize("tampering", ["DELETE FROM events", "UPDATE ledger SET head = 'x'"])
def test_damage_after_the_take_over_is_found(old, tampering):
    ledger = Ledger.open(old)
    connection = sqlite3.connect(old)
    with connection:
        connection.execute(tampering)
    connection.close()
    with pytest.raises(LedgerError, match="damaged"):
        ledger.releases()


def test_a_take_over_that_fails_leaves_schema_1(old, monkeypatch):
    def die(*anything):
        raise KeyboardInterrupt

    before = old.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("discreet.privacy.ledger.file._follow", die)
        with pytest.raises(KeyboardInterrupt):
            Ledger.open(old)
    assert old.read_bytes() == before
    assert len(Ledger.open(old).releases()) == 3


def test_keys_of_an_entry_that_this_version_does_not_know_are_kept_and_sealed(tmp_path):
    ledger = Ledger.create(tmp_path / "spent.db", 1.0)
    charge(ledger, answers(), 0.1)
    connection = sqlite3.connect(ledger.path)
    with connection:
        (event,) = read_events(connection, ledger.path, ledger.key)
        body = json.dumps({**event.facts, "of a later version": [1, 2]})
        (settings,) = connection.execute("SELECT settings FROM ledger").fetchone()
        tag = seal(ledger.key, start_events(ledger.key, settings) + body)
        connection.execute("UPDATE events SET body = ?, tag = ?", (body, tag))
        connection.execute("UPDATE ledger SET head = ?", (seal_head(ledger.key, tag),))
    connection.close()
    charge(ledger, answers(), 0.1)
    assert len(Ledger.open(ledger.path).releases()) == 2
    assert look(ledger.path, "SELECT body FROM events WHERE number = 1") == [(body,)]
