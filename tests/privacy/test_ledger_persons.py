"""A ledger that remembers persons refuses what their ids contradict, and shows nothing of them."""

import sqlite3
from functools import cache

import numpy as np
import pytest
from test_ledger import run_sql

from commandline import LSAT_ITEMS, discreet
from discreet.answers.comparisons import Comparisons
from discreet.answers.protocol import Answers
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, LedgerError, OutOfReach
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.readers.opening import open_answers
from refusals import refused


@cache
def spend_of(epsilon: float) -> Spend:
    return calibrate_counts(500, Budget(epsilon, 1e-6))[1]


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "spent.db", epsilon=2.0, remember_persons=True)


def answers_of(*persons: str) -> Responses:
    """Answers of these persons, which differ from one call to the next by who gave them."""
    cells = np.array([[len(who) % 2, 1, n % 2] for n, who in enumerate(persons)], dtype=float)
    return Responses.from_array(cells, items=["a", "b", "c"], persons=list(persons))


def charge(ledger: Ledger, population: str, *persons: str) -> str:
    data = answers_of(*persons)
    return ledger.reserve(
        spend_of(0.1),
        fingerprint=" ".join((population, *persons)),
        description="",
        population=population,
        ids=ledger.remember(data),
    )


def test_a_release_about_somebody_of_a_disjoint_population_is_refused(ledger):
    ledger.declare("north")
    ledger.declare("south", disjoint=["north"])
    charge(ledger, "north", "ann", "bob")
    charge(ledger, "south", "cid", "dora")
    with refused(LedgerError, "declared_disjoint_somebody_data") as refusal:
        charge(ledger, "south", "eve", "bob")
    assert "bob" not in str(refusal.value)
    assert len(ledger.releases()) == 2
    charge(ledger, EVERYONE, "ann", "dora")
    charge(ledger, "north", "bob")


def test_a_disjointness_that_follows_is_checked_as_one_that_is_said(ledger):
    for name in ("isle", "north", "south"):
        ledger.declare(name)
    charge(ledger, "isle", "ann")
    charge(ledger, "south", "ann")
    ledger.declare("north", contains=["isle"])
    with refused(
        LedgerError, "would_disjoint_somebody_data", population="isle", population_2="south"
    ) as refusal:
        ledger.declare("south", disjoint=["north"])
    assert "ann" not in str(refusal.value)
    assert ledger.populations().apart_from("south") == []


def test_a_declaration_that_nobody_contradicts_is_accepted(ledger):
    ledger.declare("north")
    ledger.declare("south")
    charge(ledger, "north", "ann")
    charge(ledger, "south", "bob")
    ledger.declare("south", disjoint=["north"])
    assert ledger.populations().apart_from("south") == ["north"]


def test_what_is_shown_never_depends_on_who_is_in_the_data(tmp_path):
    shown = []
    for number, second in enumerate(("ann", "bob")):
        ledger = Ledger.create(tmp_path / f"{number}.db", 2.0, remember_persons=True)
        ledger.declare("north")
        ledger.declare("south")
        charge(ledger, "north", "ann")
        charge(ledger, "south", second)
        document = discreet("ledger", "show", ledger.path, "--json").document
        for entry in document["releases"]:
            del entry["reserved_at"]
        shown.append(document)
        assert ledger.releases()[0].ids not in repr(ledger.releases()[0])
    assert shown[0] == shown[1]


def test_answers_without_ids_are_refused_with_advice(ledger):
    numbered = Responses.from_array(np.eye(3))
    with refused(BadUsage, "ledger_remembers_persons_their"):
        ledger.remember(numbered)
    with refused(BadUsage, "give_ids_ledger_remember"):
        ledger.reserve(spend_of(0.1), fingerprint="f", description="")


def test_a_ledger_that_remembers_nobody_asks_for_no_ids(tmp_path):
    ledger = Ledger.create(tmp_path / "plain.db", 1.0)
    assert not ledger.remembers_persons
    assert ledger.remember(Responses.from_array(np.eye(3))) is None
    with refused(BadUsage, "give_ids_ledger_remember"):
        ledger.reserve(spend_of(0.1), fingerprint="f", description="", ids=b"")


def test_answers_elsewhere_are_out_of_reach(ledger):
    with refused(OutOfReach, "ledger_remembers_persons_their_ids"):
        ledger.remember(Answers())


def test_ids_are_the_same_from_memory_and_from_disk_and_as_numbers(ledger, tmp_path):
    rows = ["person,item,response", *(f"{who},{item},1" for who in (7, 12, 3) for item in "ab")]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(rows))
    marks = set()
    for engine in ("memory", "disk"):
        with open_answers(path, engine=engine) as answers:
            marks.add(ledger.remember(answers))
    cells = np.ones((3, 2))
    marks.add(ledger.remember(Responses.from_array(cells, persons=["12", "3", "7"])))
    marks.add(ledger.remember(Responses.from_array(cells, persons=[3, 7, 12])))
    assert len(marks) == 1
    assert len(marks.pop()) == 3 * 16
    wide = tmp_path / "wide.csv"
    wide.write_text("a,b\n1,0\n0,1\n")
    for engine in ("memory", "disk"):
        with (
            open_answers(wide, engine=engine) as answers,
            refused(BadUsage, "ledger_remembers_persons_their"),
        ):
            ledger.remember(answers)


def test_judges_are_remembered_by_their_ids_and_not_by_their_numbers(ledger):
    named = Comparisons.from_codes([0, 1], [0, 1], [1, 0], items=["x", "y"], judges=["ann", "bob"])
    assert ledger.remember(named) == ledger.remember(answers_of("bob", "ann"))
    assert ledger.remember(named.select(["y", "x"])) == ledger.remember(named)
    numbered = Comparisons.from_codes([0, 1], [0, 1], [1, 0], items=["x", "y"])
    for one in (numbered, numbered.select(["y", "x"])):
        with refused(BadUsage, "ledger_remembers_persons_their"):
            ledger.remember(one)


def test_digests_of_two_ledgers_cannot_be_compared(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.db", 1.0, remember_persons=True)
    data = answers_of("ann")
    assert ledger.remember(data) != other.remember(data)


@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM persons WHERE release = 2",
        "DELETE FROM persons",
        "INSERT INTO persons VALUES (9, x'00')",
        "UPDATE persons SET release = 3 WHERE release = 2",
        "DROP TABLE persons",
    ],
)
def test_persons_who_were_taken_out_are_missed(ledger, tampering):
    charge(ledger, EVERYONE, "ann")
    charge(ledger, EVERYONE, "bob")
    run_sql(ledger.path, tampering)
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(ledger.path)
    with refused(LedgerError, "ledger_damaged_what_spent"):
        charge(ledger, EVERYONE, "cid")


@pytest.mark.parametrize("digests", ["x''", "x'00112233445566778899aabbccddeeff'", "'text'"])
def test_digests_that_were_changed_are_found_where_they_are_needed(ledger, digests):
    ledger.declare("north")
    ledger.declare("south", disjoint=["north"])
    ledger.declare("west")
    charge(ledger, "north", "ann")
    charge(ledger, "west", "ann")
    connection = sqlite3.connect(ledger.path)
    with connection:
        connection.execute(f"UPDATE persons SET digests = {digests} WHERE release = 1")  # noqa: S608
    connection.close()
    with refused(LedgerError, "ledger_damaged_what_spent"):
        charge(ledger, "south", "ann")
    with refused(LedgerError, "ledger_damaged_what_spent"):
        ledger.declare("west", disjoint=["north"])


def release(folder, file: str, population: str, *options: object):
    return discreet(
        "release", folder / file, "--items", folder / "items.txt", "--epsilon", "0.2",
        "--ledger", folder / "spent.db", "--population", population,
        "--out", folder / f"{file}-{population}", *options,
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_command_line_remembers_and_refuses(tmp_path, engine):
    path = tmp_path / "spent.db"
    made = discreet("ledger", "create", path, "--epsilon", 1, "--remember-persons")
    assert made.code == 0
    assert "remembers" in made.out
    discreet("ledger", "population", path, "north")
    discreet("ledger", "population", path, "south", "--disjoint", "north")
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    rng = np.random.default_rng(1)
    for file, start in (("one.csv", 0), ("two.csv", 400), ("both.csv", 200)):
        rows = (
            f"p{who},{item},{rng.integers(2)}"
            for who in range(start, start + 300)
            for item in LSAT_ITEMS
        )
        (tmp_path / file).write_text("\n".join(["person,item,response", *rows]))
    assert release(tmp_path, "one.csv", "north", "--engine", engine).code == 0
    refused = release(tmp_path, "both.csv", "south", "--engine", engine)
    assert (refused.code, refused.out) == (1, "")
    assert "somebody in this data is also in data" in refused.err
    assert release(tmp_path, "two.csv", "south", "--engine", engine).code == 0
    assert len(Ledger.open(path).releases()) == 2
