"""``release``, ``ledger`` and ``audit`` as a steward types them."""

import gzip
import json
import re
import warnings
from math import inf

import pytest

from commandline import LSAT_ITEMS, discreet
from discreet.datasets import lsat
from discreet.errors import BadUsage
from discreet.planning.audit import AuditReport
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.spend import GaussianAllowance
from discreet.privacy.ledger import Ledger
from discreet.tables.lists import read_list
from refusals import refused

BUNDLE = [
    *("difficulties.csv", "noisy.npz", "privacy.json", "registry.yaml", "report.html"),
    "statement.md",
]


@pytest.fixture
def desk(tmp_path):
    """A steward's folder: answers, half of them, an item list, a ledger with a limit of 1."""
    rows = lsat().store.rows(0, 1000).tolist()
    lines = [",".join(LSAT_ITEMS), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    (tmp_path / "half.csv").write_text("\n".join(lines[:501]))
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    assert discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", 1).code == 0
    return tmp_path


def release(desk, *options, file="answers.csv", **changes):
    """Release with ordinary parameters, some of them changed; None leaves one out."""
    arguments = {
        "items": desk / "items.txt",
        "max_answers": 5,
        "epsilon": 0.5,
        "delta": 1e-6,
        "ledger": desk / "spent.db",
        "out": desk / "release",
        "mechanism": "pairs",
        **changes,
    }
    typed = [
        part
        for name, value in arguments.items()
        if value is not None
        for part in (f"--{name.replace('_', '-')}", value)
    ]
    return discreet("release", desk / file, *typed, *options)


def spent(desk):
    return discreet("ledger", "show", desk / "spent.db", "--json").document


@pytest.mark.everywhere
def test_a_release_prints_the_contract_and_writes_the_whole_bundle(desk):
    ended = release(desk, "--json")
    assert ended.code == 0, ended.err
    document = ended.document
    assert list(document) == ["mechanism", "epsilon", "delta", "rho", "neighbours", "items"]
    assert document["mechanism"] == "pairs"
    assert document["epsilon"] == 0.5
    assert document["delta"] == 1e-6
    assert document["neighbours"] == "replace-one"
    assert [item["item"] for item in document["items"]] == LSAT_ITEMS
    keys = ["item", "difficulty", "se", "lower", "upper"]
    assert all(list(item) == keys for item in document["items"])
    assert sorted(path.name for path in (desk / "release").iterdir()) == BUNDLE


def test_a_release_prints_a_table_and_its_guarantee(desk):
    ended = release(desk)
    assert ended.code == 0, ended.err
    assert "epsilon 0.5" in ended.out
    assert "replace-one" in ended.out
    for item in LSAT_ITEMS:
        assert item in ended.out
    assert "release" in ended.err


def test_delta_and_the_cap_have_defaults(desk):
    assert release(desk, "--json", delta=None, max_answers=None).document["delta"] == 1e-6


def test_the_relation_is_the_one_asked_for(desk):
    document = release(desk, "--json", neighbours="add-remove").document
    assert document["neighbours"] == "add-remove"


def test_a_public_number_of_persons_is_published_and_binds(desk):
    ended = release(desk, persons=999)
    assert (ended.code, spent(desk)["releases"]) == (3, [])
    assert "1,000 people, more than the 999" in ended.err
    assert release(desk, persons=1200).code == 0
    record = json.loads((desk / "release" / "privacy.json").read_text())
    assert (record["persons"], record["number_fixed"]) == (1200, True)


def declare(desk, name, *options):
    return discreet("ledger", "population", desk / "spent.db", name, *options)


def test_the_ledger_shows_what_is_spent_and_left_in_every_population(desk):
    for name, options in (
        ("north", []),
        ("south", ["--disjoint", "north"]),
        ("nation", ["--contains", "north, south"]),
    ):
        assert declare(desk, name, *options).code == 0
    release(desk, epsilon=0.3, population="north")
    assert release(desk, epsilon=0.4, population="nation", out=desk / "second").code == 0
    shown = discreet("ledger", "show", desk / "spent.db").out
    north, nation = (entry.spend for entry in Ledger.open(desk / "spent.db").releases())
    allowance = GaussianAllowance(Budget(1.0, 1e-6))
    both = [f"{count([north, nation]):.4f}" for count in (allowance.spent, allowance.left)]
    one = [f"{count([nation]):.4f}" for count in (allowance.spent, allowance.left)]
    pattern = rf"^Spent  epsilon {both[0]} at .* on one person, in north and nation$"
    assert re.search(pattern, shown, re.M)
    rows = {line.split()[0]: line.split()[1:4] for line in shown.splitlines() if line.strip()}
    assert rows["everyone"] == [*both, "0"]
    assert rows["north"] == rows["nation"] == [*both, "1"]
    assert rows["south"] == [*one, "0"]
    ended = release(desk, file="half.csv", epsilon=1, population="south", out=desk / "third")
    assert ended.code == 4
    assert "whatever is not declared disjoint from 'south' counts" in ended.err


def test_an_undeclared_population_is_refused_before_the_answers_are_read(desk):
    (desk / "answers.csv").write_text("no answers at all")
    ended = release(desk, population="grade 8")
    assert (ended.code, ended.out) == (2, "")
    assert f"discreet ledger population {desk / 'spent.db'} 'grade 8'" in ended.err


def test_a_declaration_says_what_it_means_and_a_contradiction_is_wrong_usage(desk):
    assert "may overlap with all" in declare(desk, "north").out
    ended = declare(desk, "south", "--disjoint", "north")
    assert "disjoint from north" in ended.out
    assert "the one who replaces a person is in the same populations" in ended.out
    refused = declare(desk, "south", "--overlaps", "north")
    assert (refused.code, refused.out) == (2, "")
    assert "--correct" in refused.err
    ended = declare(desk, "south", "--overlaps", "north", "--correct")
    assert (ended.code, "disjoint" in ended.out) == (0, False)


def test_a_correction_that_shows_an_excess_warns(desk):
    declare(desk, "north")
    declare(desk, "nation", "--disjoint", "north")
    release(desk, epsilon=0.9, population="north")
    second = release(desk, file="half.csv", epsilon=0.8, population="nation", out=desk / "second")
    assert second.code == 0, second.err
    ended = declare(desk, "nation", "--contains", "north", "--correct")
    assert ended.code == 0
    assert "above the limit of epsilon 1" in ended.err


def test_the_ledger_is_charged_once_per_release(desk):
    release(desk)
    document = spent(desk)
    facts = ["spent", "limit", "largest", "populations", "releases"]
    assert list(document) == [*facts, "policy", "approvals", "approvers"]
    assert document["largest"]["epsilon"] == document["spent"]["epsilon"]
    (row,) = document["populations"]
    assert row["population"] == "everyone"
    assert row["spent"] + row["left"] > 1
    assert document["limit"] == {"epsilon": 1.0, "delta": 1e-6}
    assert document["spent"]["epsilon"] == pytest.approx(0.5, rel=1e-6)
    (entry,) = document["releases"]
    assert entry["mechanism"] == "pairs"
    assert entry["completed_at"]
    shown = discreet("ledger", "show", desk / "spent.db").out
    assert "Spent" in shown
    assert "left" in shown
    assert "pairs" in shown


def test_more_than_the_limit_is_refused_with_what_is_left(desk):
    ended = release(desk, "--json", epsilon=1.5)
    assert (ended.code, ended.out) == (4, "")
    assert "left" in ended.err
    assert spent(desk)["releases"] == []
    assert not (desk / "release").exists()


def test_an_existing_folder_is_refused_before_anything_is_spent(desk):
    (desk / "release").mkdir()
    (desk / "release" / "mine.txt").write_text("mine")
    ended = release(desk)
    assert ended.code == 2
    assert "--force" in ended.err
    assert spent(desk)["releases"] == []
    assert (desk / "release" / "mine.txt").read_text() == "mine"


def test_force_replaces_an_existing_bundle(desk):
    assert release(desk, epsilon=0.3).code == 0
    assert release(desk, "--force", epsilon=0.4).code == 0
    record = json.loads((desk / "release" / "privacy.json").read_text())
    assert "0.4" in json.dumps(record)


@pytest.mark.parametrize("where", ["folder", "file", "here"])
def test_force_never_deletes_what_is_not_a_release(desk, monkeypatch, where):
    folder = desk / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    out = {"folder": folder, "file": folder / "thesis.txt", "here": "."}[where]
    monkeypatch.chdir(folder)
    ended = release(desk, "--force", out=out)
    assert ended.code == 2
    assert (folder / "thesis.txt").read_text() == "years of work"
    assert spent(desk)["releases"] == []


@pytest.mark.parametrize("name", ["items", "epsilon", "ledger", "out"])
def test_what_must_be_said_must_be_said(desk, name):
    ended = release(desk, **{name: None})
    assert ended.code == 2
    assert f"--{name}" in ended.err


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"epsilon": "inf"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"max_answers": 0}, "0"),
        ({"max_answers": 1}, "1"),
        ({"mechanism": "magic"}, "magic"),
        ({"neighbours": "friends"}, "--neighbours"),
    ],
)
def test_parameters_that_mean_nothing_spend_nothing(desk, changes, word):
    ended = release(desk, "--json", **changes)
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert word in ended.err
    assert spent(desk)["releases"] == []
    assert not (desk / "release").exists()


def test_an_item_outside_the_list_is_ignored(desk):
    (desk / "items.txt").write_text("\n".join(LSAT_ITEMS[:-1]))
    ended = release(desk, "--json", max_answers=4)
    assert ended.code == 0, ended.err
    assert [row["item"] for row in ended.document["items"]] == LSAT_ITEMS[:-1]


def test_a_list_of_other_items_is_refused(desk):
    (desk / "items.txt").write_text("Frage 1\nFrage 2\n")
    ended = release(desk, "--json")
    assert (ended.code, ended.out) == (3, "")
    assert "none of the listed items" in ended.err
    assert not (desk / "release").exists()


def test_an_item_that_nobody_answered_is_released_like_any_other(desk):
    (desk / "items.txt").write_text("\n".join([*LSAT_ITEMS, "Item6"]))
    ended = release(desk, "--json")
    assert ended.code in (0, 5), ended.err
    if ended.code == 0:
        assert [item["item"] for item in ended.document["items"]] == [*LSAT_ITEMS, "Item6"]


def test_bad_answers_are_refused_before_anything_is_spent(desk):
    (desk / "bad.csv").write_text("Item1,Item2\n1,2\n")
    assert release(desk, file="bad.csv").code == 3
    assert release(desk, file="nowhere.csv").code == 2
    assert spent(desk)["releases"] == []


def test_a_missing_ledger_says_how_to_make_one(desk):
    ended = release(desk, ledger=desk / "none.db")
    assert ended.code == 2
    assert "discreet ledger create" in ended.err


def test_a_damaged_ledger_is_never_charged(desk):
    (desk / "spent.db").write_bytes(b"this is no ledger" * 100)
    ended = release(desk)
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert not (desk / "release").exists()


def test_an_interruption_says_that_the_budget_is_spent(desk, monkeypatch):
    def interrupt(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.atomic.StagedFolder.fill", interrupt)
    ended = release(desk)
    assert ended.code == 130
    assert "The budget is spent" in ended.err
    assert "ledger resume" in ended.err
    assert len(spent(desk)["releases"]) == 1
    assert not (desk / "release").exists()


def test_a_weak_promise_warns_unless_quiet(desk):
    Ledger.create(desk / "large.db", 100.0, 1e-6)
    loud = release(desk, ledger=desk / "large.db", epsilon=8)
    assert "Warning: epsilon 8" in loud.err
    quiet = release(desk, "--quiet", "--force", ledger=desk / "large.db", epsilon=8)
    assert quiet.err == ""


# --- the item list ----------------------------------------------------------------------------


def test_the_item_list_keeps_its_order_and_skips_empty_lines(tmp_path):
    path = tmp_path / "items.txt"
    path.write_bytes("\ufeffb\r\n\r\n a \n#3\n".encode())
    assert read_list(path) == ["b", "a", "#3"]


@pytest.mark.parametrize(
    ("content", "code", "facts"),
    [
        (b"a\nb\na\n", "line_item_list_already_line", {"number": "3"}),
        (b"\n \n", "names_no_item_must", {}),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path, content, code, facts):
    path = tmp_path / "items.txt"
    path.write_bytes(content)
    with refused(BadUsage, code, **facts):
        read_list(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_list_is_read_in_the_encodings_and_packings_of_answers(tmp_path, encoding, pack):
    path = tmp_path / "items.txt"
    path.write_bytes(pack("höhe\ngröße".encode(encoding)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert read_list(path) == ["höhe", "größe"]
    assert ["not UTF-8" in str(one.message) for one in said] == [True] * (encoding == "latin-1")


def test_a_missing_item_list_is_wrong_usage(desk):
    ended = release(desk, items=desk / "nowhere.txt")
    assert ended.code == 2
    assert "nowhere.txt" in ended.err


# --- the ledger -------------------------------------------------------------------------------


def test_a_new_ledger_is_empty(desk):
    document = spent(desk)
    assert document["spent"] == {"epsilon": 0.0, "delta": 0.0}
    assert document["releases"] == []
    assert "No release yet" in discreet("ledger", "show", desk / "spent.db").out


def test_a_ledger_is_never_overwritten(desk):
    before = (desk / "spent.db").read_bytes()
    ended = discreet("ledger", "create", desk / "spent.db", "--epsilon", 9)
    assert ended.code == 2
    assert (desk / "spent.db").read_bytes() == before


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "many"])
def test_a_limit_that_means_nothing_makes_no_ledger(tmp_path, epsilon):
    ended = discreet("ledger", "create", tmp_path / "new.db", "--epsilon", epsilon)
    assert ended.code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_is_not_there(tmp_path):
    ended = discreet("ledger", "show", tmp_path / "none.db", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "none.db" in ended.err


def test_a_ledger_in_a_folder_that_is_not_there(tmp_path):
    ended = discreet("ledger", "create", tmp_path / "no" / "new.db", "--epsilon", 1)
    assert ended.code in (1, 2)
    assert "Traceback" not in ended.err


# --- the audit --------------------------------------------------------------------------------


CONTRACT = [
    "mechanism", "claimed_epsilon", "lower_bound", "passed", "verdict", "detectable_factor",
    "detectable_epsilon", "power", "runs", "items", "max_answers", "forms", "design", "attack",
    "typical_answers",
]  # fmt: skip


def test_an_audit_with_few_runs_is_inconclusive_and_says_what_it_could_have_shown():
    arguments = ["audit", "--mechanism", "win-pairs", "--epsilon", 1, "--runs", 100]
    ended = discreet(*arguments, "--items", 12, "--max-answers", 5, "--json")
    assert ended.code == 0, ended.err
    assert list(ended.document) == CONTRACT
    assert ended.document["claimed_epsilon"] == 1.0
    assert ended.document["verdict"] == "inconclusive"
    assert ended.document["passed"] is False
    assert 1.3 < ended.document["detectable_factor"] < 3
    assert (ended.document["items"], ended.document["max_answers"]) == (12, 5)


@pytest.mark.parametrize(
    ("bound", "factor", "verdict", "code"),
    [(7.0, 1.1, "refuted", 1), (0.9, 1.1, "consistent", 0), (0.9, inf, "inconclusive", 0)],
)
def test_the_verdict_decides_the_exit_code(monkeypatch, bound, factor, verdict, code):
    def judge(mechanism, budget, *, size, runs, power):
        assert (size.items, size.cap, runs, power) == (20, 10, None, 0.9)
        sharp = (factor, factor * budget.epsilon, power)
        return AuditReport(mechanism.name, budget.epsilon, 1e-6, 20, 10, bound, *sharp, 9, "x")

    monkeypatch.setattr("discreet.planning.audit.audit_mechanism", judge)
    arguments = ["audit", "--mechanism", "pairs", "--epsilon", 1]
    ended = discreet(*arguments, "--json")
    assert ended.code == code
    assert ended.document["verdict"] == verdict
    assert ended.document["passed"] is (verdict == "consistent")
    assert ended.document["detectable_factor"] == (None if factor == inf else factor)
    shown = discreet(*arguments).out
    assert f"at most 10 answers each: {verdict}" in shown
    assert ("no fault in the noise" if factor == inf else "noise too small by 1.1 (") in shown


def test_an_audit_of_nothing_is_wrong_usage():
    assert discreet("audit", "--mechanism", "magic", "--epsilon", 1).code == 2
    assert discreet("audit", "--mechanism", "pairs", "--epsilon", 0).code == 2
    assert discreet("audit", "--mechanism", "pairs", "--epsilon", 1, "--power", 1).code == 2
    endless = discreet("audit", "--mechanism", "pairs", "--epsilon", 1, "--runs", 10**20)
    assert endless.code == 2
    assert "at most 1,000,000 releases" in endless.err
