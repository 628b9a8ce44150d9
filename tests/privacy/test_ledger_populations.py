"""Whom a ledger is about: declared populations, and the largest spend of any person."""

import json
import sqlite3
import warnings
from functools import cache
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ledger import drive, run_sql

from discreet.errors import BadUsage, BudgetExceeded, LedgerError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_counts, pure_spend
from discreet.privacy.accounting.spend import BasicAllowance, GaussianAllowance, Spend
from discreet.privacy.ledger import EVERYONE, Ledger, populations
from discreet.privacy.ledger.balance import History, LedgerEntry
from discreet.privacy.ledger.file import seal
from discreet.privacy.ledger.populations import Declaration, read_declarations
from refusals import refused


@cache
def spend_of(epsilon: float) -> Spend:
    return calibrate_counts(500, Budget(epsilon, 1e-6))[1]


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "spent.db", epsilon=1.0, delta=1e-6)


@pytest.fixture
def nation(ledger) -> Ledger:
    """Two regions that share nobody, and the nation that has both."""
    ledger.declare("north")
    ledger.declare("south", disjoint=["north"])
    ledger.declare("nation", contains=["north", "south"])
    return ledger


def charge(ledger: Ledger, epsilon: float, population: str = EVERYONE, mark: str = "") -> str:
    return ledger.reserve(
        spend_of(epsilon),
        fingerprint=mark or population,
        description="a test",
        population=population,
    )


# ---------------------------------------------------------------- the largest spend of any person

NAMES = ("a", "b", "c", "d", "e")
SPENDS = [
    *(spend_of(epsilon) for epsilon in (0.1, 0.3, 0.6)),
    pure_spend(0.2, Neighbours.REPLACE_ONE, mechanism="pure"),
    pure_spend(0.9, Neighbours.REPLACE_ONE, mechanism="pure"),
]
RULES = {
    "gaussian": GaussianAllowance(Budget(1.0, 1e-6)),
    "set aside": GaussianAllowance(Budget(1.0, 1e-6), set_aside=4e-7),
    "basic": BasicAllowance(Budget(1.0, 3e-6)),
}


@st.composite
def structures(draw):
    """Some declarations about five populations; a wrong one is left out."""
    said = [Declaration(name) for name in NAMES]
    pairs = st.tuples(*[st.sampled_from(NAMES)] * 2).filter(lambda pair: pair[0] != pair[1])
    kinds = st.sampled_from(["contains", "disjoint", "disjoint", "overlaps"])
    for kind, (one, other) in draw(st.lists(st.tuples(kinds, pairs), max_size=9)):
        more = [*said, Declaration(one, **{kind: (other,)})]
        try:
            read_declarations(more)
        except BadUsage:
            continue
        said = more
    return said


def may_be_one_person(said: list[Declaration], members: set[str]) -> bool:
    """Whether declarations, taken by their words, allow somebody to be in just these."""
    for one in said:
        for part in one.contains:
            if part in members and one.name not in members:
                return False
        if one.name in members and members & {*one.disjoint}:
            return False
    return True


def all_persons(said: list[Declaration], population: str) -> list[set[str]]:
    """Every membership pattern that a person of a population can have."""
    subsets = chain.from_iterable(combinations(NAMES, size) for size in range(len(NAMES) + 1))
    found = [{*members, EVERYONE} for members in subsets]
    return [one for one in found if population in one and may_be_one_person(said, one)]


def make_history(said, charged, rule) -> History:
    entries = tuple(
        LedgerEntry(number, f"r{number}", population, "", SPENDS[place], "", None, f"f{number}")
        for number, (population, place) in enumerate(charged, 1)
    )
    limit = RULES[rule].limit
    return History(Path("x"), entries, limit, RULES[rule], None, read_declarations(said))


charges = st.lists(
    st.tuples(st.sampled_from([*NAMES, EVERYONE]), st.integers(0, len(SPENDS) - 1)), max_size=7
)


@pytest.mark.parametrize("rule", RULES)
@given(said=structures(), charged=charges, where=st.sampled_from([*NAMES, EVERYONE]))
def test_spent_left_and_accepted_are_those_of_the_worst_person_there_can_be(
    rule, said, charged, where
):
    history, allowance = make_history(said, charged, rule), RULES[rule]
    persons = all_persons(said, where)
    assert persons
    lists = [
        [entry.spend for entry in history.entries if entry.population in one] for one in persons
    ]
    most = max(map(allowance.spent, lists))
    assert history.spent(where)[0] == most
    assert history.left(where)[0] == min(map(allowance.left, lists))
    standing = history.standing(where)
    assert standing.epsilon == most
    assert {EVERYONE, *standing.together} <= set().union(*persons)
    for new in SPENDS:
        fits = all(allowance.accepts(spends, new) for spends in lists)
        accepted = all(allowance.accepts(spends, new) for spends in history.charges(where))
        assert accepted == fits


@pytest.mark.parametrize("rule", RULES)
@given(said=structures(), charged=charges, where=st.sampled_from([*NAMES, EVERYONE]))
def test_where_there_are_too_many_kinds_of_persons_a_bound_takes_the_place_of_the_largest(
    rule, said, charged, where
):
    history, allowance = make_history(said, charged, rule), RULES[rule]
    exact = history.standing(where)
    assert exact.is_exact
    every = history.charges(where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(populations, "STEPS", 0)
        bound = history.standing(where)
        (heavy,) = history.charges(where)
    assert not bound.is_exact
    assert bound.together == ()
    for spends in every:
        pairs = zip(allowance.weigh(spends), allowance.weigh(heavy), strict=True)
        assert all(small <= large for small, large in pairs)
        for new in SPENDS:
            assert allowance.accepts(spends, new) or not allowance.accepts(heavy, new)


def test_the_bound_is_exact_where_populations_are_cut_in_several_ways():
    said = [
        Declaration(f"{way}{part}", disjoint=tuple(f"{way}{other}" for other in range(part)))
        for way in range(12)
        for part in range(3)
    ]
    history = make_history(said, [(one.name, place % 3) for place, one in enumerate(said)], "basic")
    standing = history.standing()
    assert not standing.is_exact  # 3^12 kinds of persons
    assert standing.epsilon == pytest.approx(12 * 0.6)


def test_a_part_counts_with_its_whole_and_not_with_another_part(nation):
    charge(nation, 0.5, "north")
    charge(nation, 0.7, "south")
    charge(nation, 0.4, "nation")
    allowance = GaussianAllowance(nation.limit)
    southern = allowance.spent([spend_of(0.7), spend_of(0.4)])
    assert nation.spent("north")[0] == allowance.spent([spend_of(0.5), spend_of(0.4)])
    assert nation.spent("south")[0] == nation.spent("nation")[0] == southern
    assert nation.spent()[0] == southern
    assert nation.history().standing().together == ("south", "nation")


def test_a_whole_after_its_parts_is_refused_where_it_would_exceed_a_part(nation):
    charge(nation, 0.96, "north")
    charge(nation, 0.5, "south")
    with refused(BudgetExceeded, "release_asks_epsilon_delta", population="0.9599"):
        charge(nation, 0.7, "nation")
    left = nation.left("nation")[0]
    assert left == nation.left("north")[0] < nation.left("south")[0]
    rest = calibrate_counts(500, Budget(left, 1e-6))[1]
    nation.reserve(rest, fingerprint="n", description="", population="nation")
    assert nation.spent()[0] <= 1.0


def test_cohorts_that_overlap_add_and_those_that_do_not_do_not(ledger):
    for name, others in (("2024", []), ("2025", []), ("2026", ["2024"])):
        ledger.declare(name, disjoint=others)
        charge(ledger, 0.5, name)
    allowance = GaussianAllowance(ledger.limit)
    two = allowance.spent([spend_of(0.5)] * 2)
    assert [ledger.spent(name)[0] for name in ("2024", "2025", "2026", EVERYONE)] == [two] * 4


# ---------------------------------------------------------------- declarations


def test_an_undeclared_name_is_refused_with_the_commands_that_declare_it(ledger):
    ledger.declare("north")
    with refused(BadUsage, "population_not_declared_ledger", population="the nation") as refusal:
        charge(ledger, 0.1, "the nation")
    assert refusal.value.exit_code == 2
    said = str(refusal.value)
    assert f"discreet ledger population {ledger.path} 'the nation'" in said
    for word in ("'north'", "--contains A,B", "--disjoint A,B", "ledger.declare('the nation'"):
        assert word in said
    with refused(BadUsage, "population_not_declared_ledger"):
        ledger.left("the nation")
    assert ledger.releases() == ()


@pytest.mark.parametrize(
    ("wrong", "code", "facts"),
    [
        (
            ("nation", {"disjoint": ["north"]}),
            "contains_two_declared_disjoint",
            {"container": "nation", "part": "north"},
        ),
        (
            ("north", {"disjoint": ["nation"]}),
            "contains_two_declared_disjoint",
            {"container": "nation", "part": "north"},
        ),
        (("north", {"contains": ["nation"]}), "would_contain_itself_populations", {}),
        (
            ("north", {"contains": ["south"]}),
            "contains_two_declared_disjoint",
            {"container": "north", "part": "south"},
        ),
        (("north", {"overlaps": ["south"]}), "declared_overlap_parts_disjoint", {}),
        (
            ("abroad", {"disjoint": ["nation"], "contains": ["south"]}),
            "declared_disjoint_both_contain",
            {"name": "south"},
        ),
        (
            ("abroad", {"disjoint": ["nation"], "overlaps": ["south"]}),
            "declared_overlap_parts_disjoint",
            {},
        ),
        (
            ("isle", {"contains": ["nation"], "disjoint": ["north"]}),
            "contains_two_declared_disjoint",
            {"container": "isle", "part": "north"},
        ),
        (("isle", {"contains": ["isle"]}), "cannot_declared_related_itself", {}),
        (
            ("isle", {"contains": ["nort"]}),
            "population_not_declared_declared",
            {"missing": "nort", "names": "'north', 'south', 'nation'"},
        ),
        (("isle", {"contains": ["everyone"]}), "contains_every_population_disjoint", {}),
        (("everyone", {}), "contains_every_population_disjoint", {}),
        (("a,b", {}), "name_population_no_comma", {}),
        (("--a", {}), "name_population_no_comma", {}),
        ((" a", {}), "population_needs_name_printable", {}),
        (("", {}), "population_needs_name_printable", {}),
        (("a\nb", {}), "population_needs_name_printable", {}),
        (
            ("isle", {"contains": "north"}),
            "must_found_nothing_read",
            {"place": "contains=", "wanted": "a list"},
        ),
    ],
)
def test_a_declaration_that_contradicts_others_or_itself_is_refused(nation, wrong, code, facts):
    name, said = wrong
    before = nation.populations()
    with refused(BadUsage, code, **facts):
        nation.declare(name, **said)
    assert nation.populations() == before


def test_what_follows_from_a_declaration_holds_without_being_said(nation):
    nation.declare("abroad", disjoint=["nation"])
    nation.declare("isle")
    nation.declare("north", contains=["isle"])
    known = nation.populations()
    assert known.parts_of("nation") == ["north", "south", "isle"]
    assert known.parts_of(EVERYONE) == list(known.names)
    assert known.apart_from("isle") == ["south", "abroad"]
    assert known.apart_from("abroad") == ["north", "south", "nation", "isle"]
    assert known.apart_from(EVERYONE) == []


def test_saying_the_same_again_changes_nothing(nation):
    before = nation.path.read_bytes()
    nation.declare("nation", contains=["south"])
    nation.declare("north")
    assert nation.path.read_bytes() == before


def test_the_same_answers_are_not_declared_disjoint_from_themselves(ledger):
    ledger.declare("spring")
    ledger.declare("autumn")
    charge(ledger, 0.1, "spring", "f")
    charge(ledger, 0.1, "autumn", "f")
    with refused(LedgerError, "would_disjoint_very_same"):
        ledger.declare("autumn", disjoint=["spring"])
    assert ledger.populations().apart_from("autumn") == []


def test_declaring_more_never_makes_anybodys_spend_larger(ledger):
    for name in ("a", "b", "c"):
        ledger.declare(name)
        charge(ledger, 0.3, name)
    spent = ledger.spent()[0]
    for said in (("a", {"contains": ["b"]}), ("c", {"overlaps": ["a"]}), ("b", {"disjoint": "c"})):
        ledger.declare(said[0], **{kind: list(names) for kind, names in said[1].items()})
        assert ledger.spent()[0] <= spent
        spent = ledger.spent()[0]
    assert spent == GaussianAllowance(ledger.limit).spent([spend_of(0.3)] * 2)


# ---------------------------------------------------------------- corrections


def test_a_correction_replaces_what_was_said_about_two_populations(nation):
    nation.declare("north", overlaps=["south"], correct=True)
    assert nation.populations().apart_from("north") == []
    nation.declare("north", disjoint=["south"], correct=True)
    assert nation.populations().apart_from("north") == ["south"]
    nation.declare("abroad", disjoint=["nation"])
    with refused(BadUsage, "declared_overlap_parts_disjoint"):  # it is the nation that is wrong
        nation.declare("abroad", overlaps=["north"], correct=True)
    nation.declare("nation", disjoint=["north"], correct=True)
    assert nation.populations().parts_of("nation") == ["south"]


def test_a_correction_that_shows_an_excess_is_kept_and_says_so_and_ends_releases(ledger):
    ledger.declare("north")
    ledger.declare("nation", disjoint=["north"])
    charge(ledger, 0.96, "north")
    charge(ledger, 0.7, "nation")
    assert ledger.history().keeps_limit()
    with refused(BadUsage, "contains_two_declared_disjoint"):
        ledger.declare("nation", contains=["north"])
    with pytest.warns(UserWarning, match=r"epsilon 1\.218 was spent .* 'north' and 'nation'"):
        ledger.declare("nation", contains=["north"], correct=True)
    assert ledger.spent()[0] == pytest.approx(1.2184, rel=1e-4)
    assert ledger.left("north") == ledger.left("nation") == ledger.left() == (0.0, 0.0)
    for name in ("north", "nation", EVERYONE):
        with pytest.raises(BudgetExceeded):
            charge(ledger, 0.01, name)
    ledger.declare("abroad", disjoint=["nation"])
    charge(ledger, 0.9, "abroad")  # about others


def test_a_correction_within_the_limit_is_silent(nation):
    charge(nation, 0.2, "north")
    charge(nation, 0.2, "south")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nation.declare("north", overlaps=["south"], correct=True)
    assert nation.spent()[0] > 0.2


# ---------------------------------------------------------------- damage, age, competition


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE declarations SET body = replace(body, 'north', 'norht') WHERE number = 2",
        "UPDATE declarations SET body = replace(body, 'disjoint', 'overlaps') WHERE number = 2",
        "DELETE FROM declarations WHERE number = 1",
        "DELETE FROM declarations WHERE number = 3",
        "DELETE FROM declarations",
        "UPDATE ledger SET declared = 'x'",
        "UPDATE ledger SET declared = ''",
        "UPDATE ledger SET declared = head",
        "DROP TABLE declarations",
        "UPDATE declarations SET body = 'no json' WHERE number = 3",
        "INSERT INTO declarations (body, tag) SELECT body, tag FROM declarations WHERE number = 2",
    ],
)
def test_a_changed_declaration_is_found_and_nothing_can_be_charged(nation, tampering):
    charge(nation, 0.2, "north")
    run_sql(nation.path, tampering)
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(nation.path)
    for name in ("north", EVERYONE):
        with refused(LedgerError, "ledger_damaged_what_spent"):
            charge(nation, 0.1, name)
    with refused(LedgerError, "ledger_damaged_what_spent"):
        nation.declare("isle")


def test_an_end_that_was_cut_off_with_its_seal_is_found_by_the_releases_after_it(nation):
    charge(nation, 0.2, "north")
    run_sql(nation.path, "DELETE FROM declarations WHERE number = 3")
    second = "UPDATE ledger SET declared = (SELECT tag FROM declarations WHERE number = 2)"
    run_sql(nation.path, second)
    with refused(
        LedgerError,
        "ledger_damaged_what_spent",
        damage="its history and its declarations are not of the same time",
    ):
        Ledger.open(nation.path)


def test_a_release_that_was_cut_off_with_its_seal_is_found_by_the_declarations_after_it(nation):
    charge(nation, 0.2, "north")
    connection = sqlite3.connect(nation.path)
    (head,) = connection.execute("SELECT head FROM ledger").fetchone()
    connection.close()
    charge(nation, 0.2, "south")
    nation.declare("isle")
    run_sql(nation.path, "DELETE FROM events WHERE number = 2")
    run_sql(nation.path, "UPDATE ledger SET head = (SELECT tag FROM events WHERE number = 1)")
    with refused(
        LedgerError, "ledger_damaged_what_spent", damage="its history does not match its seal"
    ):
        Ledger.open(nation.path)
    connection = sqlite3.connect(nation.path)
    with connection:
        connection.execute("UPDATE ledger SET head = ?", (head,))  # of an old copy
    connection.close()
    with refused(
        LedgerError,
        "ledger_damaged_what_spent",
        damage="its history and its declarations are not of the same time",
    ):
        Ledger.open(nation.path)


def test_a_sealed_structure_that_contradicts_itself_is_called_damaged(nation):
    connection = sqlite3.connect(nation.path)
    with connection:
        (head,) = connection.execute("SELECT declared FROM ledger").fetchone()
        body = json.dumps(Declaration("nation", disjoint=("north",)).to_dict())
        tag = seal(nation.key, head + body)
        connection.execute("INSERT INTO declarations (body, tag) VALUES (?, ?)", (body, tag))
        connection.execute("UPDATE ledger SET declared = ?", (tag,))
    connection.close()
    with refused(LedgerError, "ledger_damaged_what_spent"):
        Ledger.open(nation.path)


def test_processes_that_declare_and_release_at_once_never_overspend(ledger):
    ledger.declare("all")
    answers = drive("declare", ledger.path, 12)
    assert len(answers) == 24
    assert not [answer for answer in answers if answer.startswith(("Ledger", "unexpected"))]
    known = Ledger.open(ledger.path).populations()
    assert known.parts_of("all") == [name for name in known.names if name != "all"]
    granted = {entry.population for entry in ledger.releases()}
    assert granted == {answer for answer in answers if answer.startswith("school")}
    assert granted
    assert ledger.spent()[0] <= 1.0
