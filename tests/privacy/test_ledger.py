"""The ledger under competition, kills, damage and wrong use."""

import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.answers.protocol import digest_rows
from discreet.answers.responses import Responses
from discreet.errors import BadBudget, BadUsage, BudgetExceeded, LedgerError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import (
    calibrate_counts,
    calibrate_laplace,
    pure_spend,
)
from discreet.privacy.accounting.spend import GaussianAllowance, Spend
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.balance import seal_digest
from discreet.privacy.ledger.file import MissingLedger, open_ledger_file
from refusals import refused

DRIVER = Path(__file__).parents[1] / "ledger_driver.py"


def drive(*arguments: str | Path) -> Any:
    """Run the driver in its own single-threaded process; see ledger_driver.py."""
    finished = subprocess.run(
        [sys.executable, str(DRIVER), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@cache
def spend_of(epsilon: float, neighbours: str = "replace-one", delta: float = 1e-6) -> Spend:
    return calibrate_counts(500, Budget(epsilon, delta, neighbours))[1]


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "spent.db", epsilon=1.0, delta=1e-6)


def charge(ledger: Ledger, epsilon: float, **options: str) -> str:
    options.setdefault("fingerprint", "f")
    return ledger.reserve(spend_of(epsilon), description="a test", **options)


# ---------------------------------------------------------------- spending


def test_a_new_ledger_is_empty_private_and_has_its_own_id(tmp_path, ledger):
    other = Ledger.create(tmp_path / "other.db", epsilon=1.0)
    assert ledger.id != other.id
    assert ledger.key != other.key
    assert repr(ledger.key) not in repr(ledger)
    assert ledger.spent() == (0.0, 0.0)
    assert ledger.left() == (1.0, 1e-6)
    assert ledger.releases() == ()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "spent.db"]


def test_a_first_release_at_exactly_the_limit_is_accepted_and_the_next_refused(ledger):
    charge(ledger, 1.0)
    assert ledger.spent() == (pytest.approx(1.0, rel=1e-3), 1e-6)
    with refused(BudgetExceeded, "release_asks_epsilon_delta", population_3="0") as refusal:
        charge(ledger, 0.1)
    assert refusal.value.exit_code == 4
    assert len(ledger.releases()) == 1


def test_a_refusal_says_what_is_left_and_that_much_is_then_accepted(ledger):
    charge(ledger, 0.7)
    left, delta = ledger.left()
    with refused(BudgetExceeded, "release_asks_epsilon_delta"):
        charge(ledger, 0.9)
    ledger.reserve(
        calibrate_counts(500, Budget(left, delta))[1], fingerprint="f", description="the rest"
    )
    assert ledger.spent()[0] <= 1.0


def test_a_reservation_counts_as_spent_without_being_completed(ledger):
    first = charge(ledger, 0.5)
    before = ledger.spent()
    ledger.complete(first)
    assert ledger.spent() == before
    (entry,) = Ledger.open(ledger.path).releases()
    assert entry.completed_at is not None
    assert entry.spend == spend_of(0.5)
    with refused(LedgerError, "no_reservation_ledger_complete"):
        ledger.complete("somebody else's")


def test_the_history_is_plain_and_holds_no_fingerprint(ledger):
    charge(ledger, 0.5, fingerprint="deadbeef")
    (entry,) = ledger.releases()
    shown = json.dumps(entry.to_dict())
    assert "deadbeef" not in shown + repr(entry)
    assert entry.to_dict()["epsilon"] == 0.5
    assert entry.to_dict()["mechanism"] == "discrete Gaussian noise"


def test_the_relation_is_fixed_by_the_first_release_or_by_the_steward(ledger, tmp_path):
    charge(ledger, 0.1)
    with refused(LedgerError, "ledger_counts_under_release", fixed="replace-one"):
        ledger.reserve(spend_of(0.1, "add-remove"), fingerprint="f", description="")
    strict = Ledger.create(tmp_path / "strict.db", 1.0, neighbours="add-remove")
    assert strict.neighbours is Neighbours.ADD_REMOVE
    with refused(LedgerError, "ledger_counts_under_release", fixed="add-remove"):
        charge(strict, 0.1)


def test_pure_releases_suit_the_basic_rule(tmp_path):
    ledger = Ledger.create(tmp_path / "pure.db", 1.0, 0, rule="basic")
    half = pure_spend(0.5, Neighbours.REPLACE_ONE, mechanism="laplace-pairs")
    for _ in range(2):
        ledger.reserve(half, fingerprint="f", description="")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(half, fingerprint="f", description="")
    assert ledger.spent()[0] == 1.0


def test_a_first_laplace_release_at_the_limit_is_accepted_by_the_default_rule(ledger):
    _, spend = calibrate_laplace(12, Budget(1.0))
    ledger.reserve(spend, fingerprint="f", description="")
    assert ledger.spent() == (1.0, 1e-6)
    assert ledger.left() == (0.0, 0.0)


# ---------------------------------------------------------------- populations


def test_different_data_is_charged_together_unless_declared_disjoint(ledger):
    ledger.declare("this year")
    ledger.declare("next year")
    charge(ledger, 0.9, fingerprint="one", population="this year")
    for name in ("this year", "next year"):
        with pytest.raises(BudgetExceeded):
            charge(ledger, 0.9, fingerprint="two", population=name)
    ledger.declare("next year", disjoint=["this year"])
    charge(ledger, 0.8, fingerprint="two", population="next year")
    assert ledger.spent("this year")[0] == pytest.approx(0.9, rel=1e-3)
    assert ledger.spent("next year")[0] == pytest.approx(0.8, rel=1e-3)
    assert ledger.spent() == ledger.spent("this year")
    with pytest.raises(BudgetExceeded):
        charge(ledger, 0.9, fingerprint="three", population="next year")


def test_everyone_counts_against_every_population(ledger):
    charge(ledger, 1.0, fingerprint="all")
    for name in ("grade 8", "x"):  # a part of everyone, or all but one person
        ledger.declare(name)
        with refused(BudgetExceeded, "release_asks_epsilon_delta"):
            charge(ledger, 0.1, fingerprint=name, population=name)
        assert ledger.left(name) == (0.0, 0.0)
        assert ledger.spent(name) == ledger.spent()
    assert len(ledger.releases()) == 1


@pytest.fixture
def grades(ledger) -> Ledger:
    """Three grades, and nobody is in two of them."""
    for grade in (7, 8, 9):
        ledger.declare(f"grade {grade}", disjoint=[f"grade {other}" for other in range(7, grade)])
    return ledger


def test_every_population_counts_against_everyone(grades):
    charge(grades, 0.3, population="grade 7", fingerprint="7")
    charge(grades, 0.9, population="grade 8", fingerprint="8")
    with refused(BudgetExceeded, "release_asks_epsilon_delta", population="0.8999"):
        charge(grades, 0.5, fingerprint="all")
    assert grades.spent() == grades.spent("grade 8")
    assert grades.left() == grades.left("grade 8")
    assert grades.left()[0] < grades.left("grade 7")[0] < grades.left("grade 9")[0] == 1.0
    charge(grades, 0.1, fingerprint="all")
    allowance = GaussianAllowance(grades.limit)
    expected = allowance.spent([spend_of(0.9), spend_of(0.1)])
    assert grades.spent() == grades.spent("grade 8") == (expected, 1e-6)
    assert grades.spent("grade 9")[0] == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("population", [EVERYONE, "grade 7", "grade 8", "grade 9"])
def test_what_is_left_is_accepted_and_more_is_not_in_every_population(grades, population):
    charge(grades, 0.2, fingerprint="all")
    charge(grades, 0.5, population="grade 7", fingerprint="7")
    charge(grades, 0.8, population="grade 8", fingerprint="8")
    left, delta = grades.left(population)
    more = calibrate_counts(500, Budget(left * 1.01, delta))[1]
    with refused(BudgetExceeded, "release_asks_epsilon_delta", population_3=f"{left:.4g}"):
        grades.reserve(more, fingerprint="p", description="", population=population)
    rest = calibrate_counts(500, Budget(left, delta))[1]
    grades.reserve(rest, fingerprint="p", description="", population=population)
    assert grades.spent(population)[0] <= 1.0


def test_the_same_data_is_not_charged_to_disjoint_populations(grades):
    charge(grades, 0.1, fingerprint="one", population="grade 7")
    with refused(LedgerError, "these_very_answers_already"):
        charge(grades, 0.1, fingerprint="one", population="grade 8")
    assert len(grades.releases()) == 1


def test_the_same_data_is_simply_charged_where_populations_overlap(ledger):
    ledger.declare("spring")
    charge(ledger, 0.1, fingerprint="one")
    charge(ledger, 0.1, fingerprint="one", population="spring")
    charge(ledger, 0.1, fingerprint="one")
    allowance = GaussianAllowance(ledger.limit)
    assert ledger.spent("spring") == (allowance.spent([spend_of(0.1)] * 3), 1e-6)


def fingerprint_rows(key, rows):
    return seal_digest(key, *digest_rows(key, rows))


def test_a_fingerprint_ignores_order_and_sees_everything_else():
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 2, (200, 7)).astype(np.int8)
    mark = fingerprint_rows(b"key", rows)
    assert mark == fingerprint_rows(b"key", rows[rng.permutation(200)])
    changed = rows.copy()
    changed[3, 2] = 1 if changed[3, 2] != 1 else 0
    others = [changed, rows[:-1], np.vstack([rows, rows[:1]])]
    marks = {fingerprint_rows(b"key", other) for other in others} | {mark}
    assert len(marks) == 4
    assert fingerprint_rows(b"other key", rows) != mark


def test_fingerprints_of_two_ledgers_cannot_be_compared(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.db", 1.0)
    answers = Responses.from_array([[1, 0], [0, 1]])
    assert ledger.recognise(answers) != other.recognise(answers)


# ---------------------------------------------------------------- wrong use and damage


def test_an_existing_file_is_never_overwritten(ledger):
    before = ledger.path.read_bytes()
    with refused(BadUsage, "exists_already_ledger_never"):
        Ledger.create(ledger.path, 100.0)
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"epsilon": float("nan")}, {"delta": 1}, {"delta": 0}, {"rule": "best"}],
)
def test_a_limit_that_means_nothing_is_refused_and_leaves_no_file(tmp_path, wrong):
    with pytest.raises(BadUsage):
        Ledger.create(tmp_path / "spent.db", **{"epsilon": 1.0, **wrong})
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_relation_is_refused(tmp_path):
    with refused(BadBudget, "neighbours_must_one_found"):
        Ledger.create(tmp_path / "spent.db", 1.0, neighbours="friends")


def test_a_missing_ledger_is_wrong_usage_and_is_not_made(tmp_path, ledger):
    with refused(MissingLedger, "no_ledger_here_make") as refusal:
        Ledger.open(tmp_path / "nowhere.db")
    assert refusal.value.exit_code == 2
    assert isinstance(refusal.value, LedgerError)
    ledger.path.unlink()
    with pytest.raises(MissingLedger):
        charge(ledger, 0.1)
    assert not ledger.path.exists()


def test_a_ledger_cannot_be_made_in_a_folder_that_is_not_there(tmp_path):
    with refused(LedgerError, "ledger_cannot_made_folder"):
        Ledger.create(tmp_path / "no" / "spent.db", 1.0)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "not_ledger_library_point"),
        (b"just text, no database at all" * 100, "not_ledger_library_damaged"),
    ],
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path, content, code):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with refused(LedgerError, code):
        Ledger.open(path)
    assert path.read_bytes() == content
    with refused(LedgerError, "not_file_cannot_ledger"):
        Ledger.open(tmp_path)


def run_sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_another_programs_database_and_another_schema_are_refused(tmp_path, ledger):
    foreign = tmp_path / "foreign.db"
    run_sql(foreign, "CREATE TABLE ledger (settings TEXT)")
    with refused(LedgerError, "not_ledger_library_point"):
        Ledger.open(foreign)
    run_sql(ledger.path, "PRAGMA user_version = 99")
    with refused(LedgerError, "ledger_schema_version_version", version="99"):
        Ledger.open(ledger.path)


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_a_ledger_of_another_schema_version_is_refused_and_not_touched(ledger, version):
    run_sql(ledger.path, f"PRAGMA user_version = {version}")
    before = ledger.path.read_bytes()
    with refused(
        LedgerError, "ledger_schema_version_version", version=f"{version}", schema_version="1"
    ):
        Ledger.open(ledger.path)
    assert ledger.path.read_bytes() == before


PLANTED = {
    "a trigger": (
        "CREATE TRIGGER forget AFTER UPDATE OF head ON ledger BEGIN DELETE FROM events; END",
        "trigger 'forget'",
    ),
    "a trigger that drops values": (
        "CREATE TRIGGER drop_it BEFORE INSERT ON noisy BEGIN SELECT RAISE(IGNORE); END",
        "trigger 'drop_it'",
    ),
    "a view": ("CREATE VIEW charged AS SELECT * FROM events", "view 'charged'"),
    "a table": ("CREATE TABLE more (name TEXT)", "table 'more'"),
    "an index": ("CREATE INDEX by_kind ON events (kind)", "index 'by_kind'"),
    "a column": ("ALTER TABLE events ADD COLUMN more TEXT", "table 'events'"),
    "a lost table": ("DROP TABLE noisy", "index 'sqlite_autoindex_noisy_1'"),
    "a name that hides": ('CREATE TABLE "\n\x1b[2K" (name TEXT)', r"table '\n\x1b[2K'"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_ledger_with_anything_planted_in_it_is_refused(ledger, planted):
    """Word for word: what runs inside the file could take charges back, and no seal shows it."""
    statement, name = PLANTED[planted]
    run_sql(ledger.path, statement)
    for use in (Ledger.open, lambda _: charge(ledger, 0.1), lambda _: ledger.make_room(100)):
        with refused(LedgerError, "ledger_damaged_what_spent") as caught:
            use(ledger.path)
        damage = f"its {name} is not as this library makes ledgers"
        assert caught.value.facts["damage"] == damage


def test_a_rule_that_was_taken_out_of_the_schema_is_missed(ledger):
    """With `writable_schema` the text of a table can be changed without changing the table."""
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'kind TEXT NOT NULL', 'kind')")
    connection.commit()
    connection.close()
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(ledger.path)


def test_nothing_stored_in_a_ledger_runs(ledger):
    """The second safeguard: triggers and views are off, where this Python can switch them off."""
    if sys.version_info < (3, 12):
        pytest.skip("sqlite3 of Python 3.12 can switch triggers off")
    run_sql(ledger.path, PLANTED["a trigger"][0])
    with open_ledger_file(ledger.path, 1.0) as connection:
        connection.execute("INSERT INTO events VALUES (1, 'r', 'charged', '', '')")
        connection.execute("UPDATE ledger SET head = 'x'")
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE events SET body = replace(body, '0.5', '0.1') WHERE number = 1",
        "DELETE FROM events WHERE number = 2",
        "DELETE FROM events WHERE number = 1",
        "DELETE FROM events",
        "UPDATE ledger SET settings = replace(settings, '1.0', '9.0')",
        "UPDATE ledger SET head = 'x'",
        "DELETE FROM ledger",
        "DROP TABLE events",
        "UPDATE ledger SET settings = 'no json'",
    ],
)
def test_a_changed_history_is_found_and_nothing_can_be_charged(ledger, tampering):
    charge(ledger, 0.5)
    charge(ledger, 0.3)
    run_sql(ledger.path, tampering)
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(ledger.path)
    if "DELETE FROM ledger" not in tampering:
        with refused(LedgerError, "ledger_damaged_what_spent"):
            charge(ledger, 0.01)


def test_random_damage_is_refused_or_changes_nothing(ledger):
    for number in range(4):
        ledger.declare(f"group {number}", disjoint=[f"group {other}" for other in range(number)])
        charge(ledger, 0.1)
    whole, history = ledger.path.read_bytes(), ledger.history()
    rng = random.Random(5)
    refused = 0
    for _ in range(60):
        broken = bytearray(whole)
        start = rng.randrange(len(broken))
        for at in range(start, min(len(broken), start + rng.choice([1, 1, 30, 3000]))):
            broken[at] ^= rng.randrange(1, 256)
        ledger.path.write_bytes(broken)
        try:
            survived = Ledger.open(ledger.path)
            found = survived.history()
        except LedgerError:
            refused += 1
            continue
        assert survived.limit == ledger.limit
        assert found.populations == history.populations
        assert [one.spend for one in found.entries] == [one.spend for one in history.entries]
    assert refused > 20


def test_a_truncated_ledger_is_refused(ledger):
    charge(ledger, 0.5)
    whole = ledger.path.read_bytes()
    for keep in (len(whole) // 2, 4096, 100, 10):
        ledger.path.write_bytes(whole[:keep])
        with pytest.raises(LedgerError):
            Ledger.open(ledger.path)


def test_a_locked_ledger_says_so_and_charges_nothing(ledger):
    waiting = Ledger.open(ledger.path, timeout=0.2)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with refused(LedgerError, "ledger_stayed_locked_another"):
            charge(waiting, 0.5)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert ledger.releases() == ()
    charge(waiting, 0.5)


def test_a_read_only_ledger_or_folder_charges_nothing():
    # pytest's own folders are closed to other users, so this one lies beside them
    with tempfile.TemporaryDirectory() as name:
        ledger = Ledger.create(Path(name) / "spent.db", 1.0)
        answers = drive("lack_rights", ledger.path)
        assert len(answers) == 3
        for answer in answers:
            assert answer.startswith("LedgerError")
            assert "cannot be opened or written" in answer
        assert ledger.releases() == ()


def test_a_full_disk_charges_nothing_and_breaks_nothing(ledger):
    charge(ledger, 0.1)
    answer = drive("fill_disk", ledger.path)
    assert answer.startswith("LedgerError")
    assert "disk" in answer
    assert len(Ledger.open(ledger.path).releases()) == 1
    charge(ledger, 0.1)


# ---------------------------------------------------------------- competition and kills


def test_fifty_processes_at_once_never_overspend(ledger):
    alone = GaussianAllowance(ledger.limit)
    fit = 0
    while alone.accepts([spend_of(0.2)] * fit, spend_of(0.2)):
        fit += 1
    answers = drive("compete", ledger.path, 50)
    granted = [answer for answer in answers if answer]
    assert len(answers) == 50
    assert len(granted) == fit > 10
    assert {entry.reservation for entry in ledger.releases()} == set(granted)
    assert ledger.spent()[0] <= 1.0


def test_readers_never_take_a_growing_ledger_for_a_damaged_one(ledger):
    assert drive("watch", ledger.path, 2, 2, 10) == ["whole"] * 4
    assert len(ledger.releases()) == 20


@pytest.mark.slow
def test_many_readers_never_take_a_growing_ledger_for_a_damaged_one(ledger):
    assert drive("watch", ledger.path, 4, 8, 50) == ["whole"] * 12
    assert len(ledger.releases()) == 200


@pytest.mark.parametrize("read", [Ledger.releases, lambda one: Ledger.open(one.path)])
def test_no_charge_comes_between_the_two_halves_of_a_read(ledger, monkeypatch, read):
    from discreet.privacy.ledger import file

    charge(ledger, 0.1)
    competitor = Ledger.open(ledger.path, timeout=0.05)
    whole, refusals = file.seal, []

    def compete(key, text):  # the head is read, the entries are not
        monkeypatch.setattr(file, "seal", whole)
        with refused(LedgerError, "ledger_stayed_locked_another") as refusal:
            charge(competitor, 0.1)
        refusals.append(refusal)
        return whole(key, text)

    monkeypatch.setattr(file, "seal", compete)
    read(ledger)
    assert len(refusals) == 1
    charge(competitor, 0.1)
    assert len(ledger.releases()) == 2


def test_a_kill_at_any_moment_loses_no_spend(tmp_path):
    result = drive("kill", tmp_path, 10)
    assert result["lost"] == 0
    assert result["acknowledged"] > 0
    assert result["unacknowledged"] <= 10


@pytest.mark.slow
def test_two_hundred_kills_lose_no_spend(tmp_path):
    result = drive("kill", tmp_path, 200)
    assert result["lost"] == 0
    assert result["acknowledged"] > 100
    assert 0 < result["unacknowledged"] <= 200  # some kills did hit between charge and word
