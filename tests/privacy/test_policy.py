"""A ledger's policy: obeyed before anybody looks at the data, and never changed by it."""

import json
import sqlite3
from contextlib import closing

import pytest

import discreet
from commandline import LSAT_ITEMS
from commandline import discreet as run
from discreet.datasets import lsat
from discreet.errors import BadUsage, LedgerError, NotAllowed
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.policy import Policy, make_policy, read_policy
from discreet.privacy.ledger.request import Asked
from discreet.privacy.mechanisms.pairs import DensePairs
from refusals import refused

ASKED = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "neighbours": "replace-one",
    "mechanism": "pairs",
    "persons": 10_000,
}
RULES = {
    "max_epsilon": 1.0,
    "max_delta_share": 0.01,
    "min_persons": 100,
    "relations": ["replace-one"],
    "mechanisms": ["pairs", "margins"],
}
TOML = """
about = "Decided by the board."
max_epsilon = 1
max_delta_share = 0.01
min_persons = 100
relations = ["replace-one"]
mechanisms = ["pairs", "margins"]
"""


class Trap:
    """Data that must not be looked at."""

    def __getattr__(self, name):
        raise AssertionError(f"the data was asked for {name}")


def make_ledger(tmp_path, **rules):
    return Ledger.create(tmp_path / "spent.db", 5.0, 0.01, policy=rules or RULES)


def release(ledger, source=None, *, epsilon=0.5, delta=1e-6, neighbours="replace-one", **more):
    budget = discreet.Budget(epsilon, delta, neighbours)
    source = Trap() if source is None else source
    return discreet.release(source, budget, items=LSAT_ITEMS, ledger=ledger, **more)


def test_what_keeps_every_rule_is_allowed():
    Policy(**RULES).check(Asked(**ASKED))


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"epsilon": 1.01}, "ledger_policy_allows_epsilon", {"max_epsilon": "1"}),
        (
            {"delta": 1e-3},
            "ledger_policy_allows_delta",
            {"persons": "10,000", "persons_2": "1e-06", "delta": "0.001"},
        ),
        ({"delta": 1.0001e-6}, "ledger_policy_allows_delta", {"delta": "1.0001e-06"}),
        (
            {"persons": 99, "delta": 0.0},
            "ledger_policy_allows_releases",
            {"min_persons": "100", "persons": "99"},
        ),
        ({"persons": None}, "ledger_policy_needs_number", {}),
        (
            {"neighbours": "add-remove"},
            "ledger_policy_not_allow",
            {"kind": "relation", "choice": "add-remove"},
        ),
        (
            {"mechanism": "laplace-pairs"},
            "ledger_policy_not_allow",
            {"kind": "mechanism", "choice": "laplace-pairs", "allowed": "pairs, margins"},
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(change, code, facts):
    with refused(NotAllowed, code, **facts):
        Policy(**RULES).check(Asked(**{**ASKED, **change}))


def test_delta_is_compared_as_it_is_written():
    policy = Policy(max_delta_share=0.3)
    policy.check(Asked(1.0, 0.1, "replace-one", "pairs", 3))  # as floats 0.1 * 3 is above 0.3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_epsilom = 1", "no rule of a policy called 'max_epsilom'; did you mean 'max_epsilon'"),
        ("colour = 'red'", "no rule of a policy called 'colour'; choose one of: max_epsilon"),
        ("max_epsilon = -1", "max_epsilon is -1, which is not above 0"),
        ("max_epsilon = 0", "max_epsilon is 0, which is not above 0"),
        ("max_epsilon = inf", "max_epsilon is inf, which is not above 0"),
        ("max_delta_share = true", "max_delta_share is true, not a number"),
        ("min_persons = 1.5", "min_persons is 1.5, not a whole number"),
        ("min_persons = 0", "min_persons is 0, which is not from 1 to"),
        ("relations = 'replace-one'", "relations is 'replace-one', not a list"),
        ("relations = ['replace']", r"\[0\] is 'replace', not one of 'replace-one', 'add-remove'"),
        ("mechanisms = ['auto']", r"\[0\] is 'auto', not one of 'margins'"),
        ("mechanisms = []", "mechanisms is a list of 0 entries, which has fewer than 1"),
        ("about = 'nothing'", "must have a rule"),
        ("about = 3\nmax_epsilon = 1", "about is 3, not a text"),
        ("max_epsilon = ", "is not a TOML file"),
    ],
)
def test_a_policy_that_says_something_else_is_refused(tmp_path, text, words):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(BadUsage, match=words) as caught:
        Ledger.create(tmp_path / "spent.db", 1.0, policy=path)
    assert str(path) in str(caught.value)
    assert not (tmp_path / "spent.db").exists()


def test_a_policy_that_is_not_there_is_refused(tmp_path):
    with refused(BadUsage, "policy_cannot_read_read_policy"):
        read_policy(tmp_path / "policy.toml")


def test_the_ledger_keeps_the_policy_itself(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(TOML)
    Ledger.create(tmp_path / "spent.db", 1.0, policy=path)
    path.unlink()
    kept = Ledger.open(tmp_path / "spent.db").policy
    assert kept == make_policy({**RULES, "about": "Decided by the board."})
    assert kept.max_delta_share == 0.01


def test_a_policy_that_was_changed_in_the_file_is_damage(tmp_path):
    make_ledger(tmp_path)
    with closing(sqlite3.connect(tmp_path / "spent.db")) as connection, connection:
        (text,) = connection.execute("SELECT settings FROM ledger").fetchone()
        loose = {**json.loads(text), "policy": {"max_epsilon": 100.0}}
        connection.execute("UPDATE ledger SET settings = ?", (json.dumps(loose),))
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(tmp_path / "spent.db")


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"epsilon": 1.5}, "ledger_policy_allows_epsilon", {"max_epsilon": "1"}),
        ({"delta": 1e-3}, "ledger_policy_allows_delta", {}),
        ({"persons": None}, "ledger_policy_needs_number", {}),
        ({"persons": 99}, "ledger_policy_allows_releases", {"persons": "99"}),
        ({"persons": range(99)}, "ledger_policy_allows_releases", {"persons": "99"}),
        ({"neighbours": "add-remove"}, "ledger_policy_not_allow", {"choice": "add-remove"}),
        ({"mechanism": "laplace-pairs"}, "ledger_policy_not_allow", {"choice": "laplace-pairs"}),
        (
            {"mechanism": DensePairs(name="laplace-pairs")},
            "ledger_policy_not_allow",
            {"choice": "laplace-pairs"},
        ),
    ],
)
def test_a_release_obeys_before_the_data_is_opened(tmp_path, change, code, facts):
    ledger = make_ledger(tmp_path)
    with refused(NotAllowed, code, **facts):
        release(ledger, **{"persons": 10_000, **change})
    assert not ledger.releases()


def test_a_release_that_is_allowed_does_open_the_data(tmp_path):
    ledger = make_ledger(tmp_path)
    with pytest.raises(AssertionError):
        release(ledger, persons=10_000)
    release(ledger, lsat(), persons=1_000)
    assert len(ledger.releases()) == 1


def test_the_mechanism_that_auto_takes_is_held_against_the_policy(tmp_path):
    ledger = make_ledger(tmp_path, mechanisms=["margins"])
    with refused(
        NotAllowed, "ledger_policy_not_allow", kind="mechanism", choice="pairs", allowed="margins"
    ):
        release(ledger)
    release(ledger, lsat(), mechanism="margins")


def test_somebody_elses_mechanism_does_not_pass_under_a_name_of_the_library(tmp_path):
    class Loud(DensePairs):
        pass

    with refused(NotAllowed, "ledger_policy_allows_library", name_2="Loud"):
        release(make_ledger(tmp_path, mechanisms=["pairs"]), mechanism=Loud())


def test_under_add_remove_the_declared_number_serves_the_policy_alone(tmp_path):
    ledger = make_ledger(tmp_path, max_delta_share=0.01)
    told = {"neighbours": "add-remove", "persons": 1_000}
    with refused(NotAllowed, "ledger_policy_allows_delta"):
        release(ledger, delta=1e-4, **told)
    released = release(ledger, lsat(), **told)
    assert released.record["persons"] is None
    free = Ledger.create(tmp_path / "free.db", 1.0)
    with refused(BadUsage, "named_replace_one_under"):
        release(free, lsat(), **told)


def test_comparisons_obey_too(tmp_path):
    ledger = make_ledger(tmp_path, min_persons=50)
    asked = {"items": ["a", "b", "c"], "max_comparisons": 2, "ledger": ledger}
    for judges in (None, 49):
        with pytest.raises(NotAllowed):
            discreet.release_comparisons(Trap(), discreet.Budget(0.5), judges=judges, **asked)


def test_the_ledger_itself_refuses_what_its_policy_does_not_allow(tmp_path):
    ledger = make_ledger(tmp_path, max_epsilon=0.5, min_persons=10)
    _, spend = calibrate_counts(12, discreet.Budget(1.0))
    with refused(NotAllowed, "ledger_policy_allows_epsilon", max_epsilon="0.5"):
        ledger.reserve(spend, fingerprint="x", description="around the release", persons=10)
    _, spend = calibrate_counts(12, discreet.Budget(0.5))
    with refused(NotAllowed, "ledger_policy_needs_number"):
        ledger.reserve(spend, fingerprint="x", description="around the release")
    assert not ledger.releases()


@pytest.fixture
def desk(tmp_path):
    (tmp_path / "policy.toml").write_text(TOML)
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    made = run(
        *("ledger", "create", tmp_path / "spent.db", "--epsilon", 2),
        *("--policy", tmp_path / "policy.toml"),
    )
    assert made.code == 0
    return tmp_path


def test_the_command_line_refuses_before_the_file_is_opened(desk):
    nowhere = desk / "nowhere.csv"
    asked = ["--items", desk / "items.txt", "--ledger", desk / "spent.db", "--out", desk / "out"]
    loud = run("release", nowhere, *asked, "--epsilon", 1.5, "--persons", 1000)
    assert (loud.code, loud.out) == (2, "")
    assert "epsilon of 1 per release" in loud.err
    silent = run("release", nowhere, *asked, "--epsilon", 1)
    assert silent.code == 2
    assert "declared in advance" in silent.err
    votes = [*asked, "--max-comparisons", 3, "--epsilon", 0.5, "--judges", 50]
    few = run("compare", "release", nowhere, *votes, "--mechanism", "net-wins")
    assert few.code == 2
    assert "does not allow the mechanism 'net-wins'" in few.err
    missing = run("release", nowhere, *asked, "--epsilon", 0.5, "--persons", 1000)
    assert missing.code == 2
    assert "nowhere.csv" in missing.err


def test_the_command_line_shows_the_policy(desk):
    shown = run("ledger", "show", desk / "spent.db")
    assert "Policy epsilon per release at most 1; delta per release at most 0.01" in shown.out
    assert "Decided by the board." in shown.out
    document = run("ledger", "show", desk / "spent.db", "--json").document
    assert document["policy"]["mechanisms"] == ["pairs", "margins"]


def test_a_misspelt_rule_is_an_error_of_usage(desk):
    (desk / "policy.toml").write_text("min_person = 3")
    made = run(
        *("ledger", "create", desk / "other.db", "--epsilon", 2),
        *("--policy", desk / "policy.toml"),
    )
    assert made.code == 2
    assert "did you mean 'min_persons'" in made.err
