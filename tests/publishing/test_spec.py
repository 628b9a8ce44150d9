"""One specification: keywords, a file and a request state the same."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.errors import BadUsage
from discreet.privacy.ledger.request import make_request
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.protocol import Public
from discreet.publishing.spec import ReleaseSpec, make_spec, read_spec
from refusals import refused

ITEMS = ["Item1", "Item2", "Item3", "Item4", "Item5"]
STATED = {
    "items": {"a": 3, "b": 1, "c": 2},
    "lowest": 1,
    "forms": {"A": ["a", "b"], "B": ["b", "c"]},
    "design": "random",
    "model": "rating-scale",
    "max_answers": 2,
    "persons": 500,
    "population": "north",
    "looked": True,
    "about": {"title": "Reading", "version": "2", "supersedes": "1", "reason": "A wrong key."},
    "reading": {"person": "pupil", "missing": {"*": [9]}, "reverse": ["b"]},
}


def test_a_specification_has_four_parts():
    assert [part.name for part in fields(ReleaseSpec)] == [
        *("public", "budget", "reading", "identity")
    ]


def test_a_request_holds_the_specification_and_gives_it_back():
    spec = make_spec(discreet.Budget(0.1, 1e-7), **STATED).name_mechanism()
    again = ReleaseSpec.from_dict(spec.to_dict())
    assert (again.public, again.budget, again.identity) == (spec.public, spec.budget, spec.identity)
    assert again.to_dict() == spec.to_dict()
    request = make_request("release", "0" * 32, {**spec.to_dict(), "ledger_file": "spent.db"})
    assert ReleaseSpec.from_dict(request.body) == again


@given(
    st.fixed_dictionaries(
        {"items": st.lists(st.text("abxyzäß0", min_size=1), min_size=2, max_size=9, unique=True)},
        optional={
            "max_answers": st.integers(2, 20),
            "persons": st.integers(1, 10**9),
            "mechanism": st.sampled_from(["auto", "margins", "pairs", "laplace-pairs"]),
            "design": st.sampled_from(["complete", "random", "unknown"]),
            "population": st.text("nsew", min_size=1),
            "looked": st.booleans(),
        },
    ),
    st.floats(1e-6, 100),
    st.sampled_from(["replace-one", "add-remove"]),
)
def test_what_is_signed_is_what_was_stated(words, epsilon, relation):
    spec = make_spec(discreet.Budget(epsilon, 1e-6, relation), **words).name_mechanism()
    assert ReleaseSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_file_states_what_keywords_state(tmp_path, ending):
    (tmp_path / "items.csv").write_text("item,steps\na,3\nb,1\nc,2\n")
    (tmp_path / "forms.csv").write_text("form,item\nA,a\nA,b\nB,b\nB,c\n")
    words = {**STATED, "items": "items.csv", "forms": "forms.csv", "epsilon": 0.1, "delta": 1e-7}
    tables = {name: words.pop(name) for name in ("about", "reading")}
    file = tmp_path / f"release.{ending}"
    lines = [f"{name} = {json.dumps(value)}" for name, value in words.items()]
    for name, table in tables.items():
        inside = [
            f"{key} = {json.dumps(value)}" for key, value in table.items() if key != "missing"
        ]
        lines += [f"[{name}]", *inside]
    toml = "\n".join([*lines, "missing = {'*' = [9]}"])
    file.write_text(toml if ending == "toml" else json.dumps({**words, **tables}))
    spec = read_spec({}, file=file)
    assert spec == make_spec(discreet.Budget(0.1, 1e-7), **STATED)
    louder = read_spec({"persons": 7, "epsilon": 0.2}, file=file)
    assert louder.public.persons == 7
    assert louder.budget == discreet.Budget(0.2, 1e-7)


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("max_answer = 3", "release_no_refuse_unknown", {"hint": "did you mean max_answers?"}),
        ("max_comparisons = 3", "release_no_refuse_unknown", {"name": "max_comparisons"}),
        ("items = [", "no_file_read_word_file", {"is_json": "TOML"}),
        ("items = ['a', 'b']", "missing_option_epsilon_release", {}),
        (
            "items = ['a', 'b']\nepsilon = 1.0\n[about]\ncolour = 'red'",
            "release_no_refuse_unknown",
            {"name": "colour"},
        ),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, text, code, facts):
    file = tmp_path / "release.toml"
    file.write_text(text)
    with refused(BadUsage, code, **facts):
        read_spec({}, file=file)


def test_what_cannot_be_written_down_is_not_signed():
    budget = discreet.Budget(1.0)
    with refused(BadUsage, "request_names_mechanism_one"):
        make_spec(budget, items=ITEMS, mechanism=Margins()).to_dict()
    with refused(BadUsage, "request_names_number_persons"):
        make_spec(budget, items=ITEMS, persons=["ann", "bob"]).to_dict()


def test_a_list_of_persons_does_not_pass_the_wall(tmp_path):
    names = [f"pupil-{number}" for number in range(400)]
    answers = discreet.Responses.from_array(
        np.random.default_rng(0).integers(0, 2, (300, 5)), ITEMS, persons=names[:300]
    )
    released = discreet.release(
        answers, epsilon=1.0, items=ITEMS, persons=names, out=tmp_path / "release"
    )
    assert released.noisy.public.roster == ()
    assert released.record["persons"] == 400
    for file in (tmp_path / "release").iterdir():
        assert b"pupil-" not in file.read_bytes()
    with refused(discreet.errors.BadResponses, "data_not_list_example"):
        discreet.release(answers, epsilon=1.0, items=ITEMS, persons=names[:299])


def test_public_parameters_in_files_name_the_data_and_nothing_else():
    spec = make_spec(discreet.Budget(1.0), items=ITEMS, persons=["ann", "bob"], mechanism="pairs")
    written = spec.public.to_dict()
    assert "roster" not in written
    assert Public.from_dict(written, mechanism="pairs") == replace(spec.public, roster=())


def test_a_budget_is_given_whole_or_by_its_numbers():
    answers = discreet.datasets.lsat()
    released = discreet.release(answers, epsilon=0.5, delta=1e-7, items=ITEMS)
    assert (released.guarantee.epsilon, released.guarantee.delta) == (0.5, 1e-7)
    assert str(released.guarantee.neighbours) == "replace-one"
    with refused(BadUsage, "release_one_budget_give"):
        discreet.release(answers, discreet.Budget(1.0), epsilon=1.0, items=ITEMS)
    with refused(BadUsage, "release_needs_budget_epsilon"):
        discreet.release(answers, items=ITEMS)
    with refused(BadUsage, "release_one_budget_give"):
        discreet.release(answers, delta=1e-6, items=ITEMS)


def test_a_release_shows_the_numbers_of_its_estimate():
    released = discreet.release(discreet.datasets.lsat(), epsilon=1.0, items=ITEMS)
    assert released.difficulty is released.estimate.difficulty
    assert released.se is released.estimate.se
    assert released.to_dataframe()["item"].tolist() == ITEMS


def test_options_of_zero_are_stated(tmp_path):
    """Zero is a value: it must not be taken for an option that nobody gave."""
    from discreet.cli.release import ReleaseStudy, ReleaseTerms, state_release

    (tmp_path / "items.txt").write_text("\n".join(ITEMS))
    terms = ReleaseTerms(items=tmp_path / "items.txt", epsilon=1.0, delta=0.0)
    from discreet.cli.answers import ReleaseReading

    spec = state_release(terms, ReleaseStudy(), ReleaseReading(at_least=0.0))
    assert spec.budget.delta == 0
    assert spec.reading == {"at_least": 0.0}


def test_a_reading_that_is_no_mapping_of_keywords_is_refused(tmp_path):
    """Also the proposal of an inspection, which was found in the data."""
    path = tmp_path / "answers.csv"
    path.write_text("id,q1,q2\na,1,0\nb,0,1\n")
    proposal = discreet.inspect_table(path).proposal
    ledger = discreet.Ledger.create(tmp_path / "spent.db", epsilon=1.0)
    for reading in (proposal, ["missing"], "missing=9"):
        with refused(
            BadUsage,
            "must_found_nothing_read",
            place="reading=",
            wanted="a mapping from names to values or None",
        ):
            discreet.propose(epsilon=0.5, items=["q1", "q2"], ledger=ledger, reading=reading)


AUDIT = {
    "mechanism": "pairs", "claimed_epsilon": 0.1, "lower_bound": 0.05, "verdict": "not refuted",
    "runs": 2000, "items": 5, "max_answers": 5,
}  # fmt: skip


@pytest.mark.parametrize("form", ["a file", "a table"])
def test_a_file_holds_an_audit_or_names_its_file(tmp_path, form):
    printed = {**AUDIT, "power": 0.9}
    (tmp_path / "audit.json").write_text(json.dumps(printed))
    words = {"items": ITEMS, "epsilon": 0.1, "mechanism": "pairs"}
    words["audit"] = "audit.json" if form == "a file" else printed
    (tmp_path / "release.json").write_text(json.dumps(words))
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 1.0)
    spec = read_spec({}, file=tmp_path / "release.json")
    assert spec.identity.audit == AUDIT
    request = discreet.propose(
        epsilon=0.1, mechanism="pairs", items=ITEMS, ledger=ledger, audit=AUDIT
    )
    assert ReleaseSpec.from_dict(request.body).identity.audit == AUDIT
    released = discreet.release(
        discreet.datasets.lsat(),
        epsilon=0.1,
        mechanism="pairs",
        items=ITEMS,
        audit=AUDIT if form == "a table" else tmp_path / "audit.json",
        out=tmp_path / "out",
    )
    assert released.record["audit"] == AUDIT
    assert "the attacks prove epsilon 0.05" in (tmp_path / "out" / "statement.md").read_text()


@pytest.mark.parametrize(
    ("table", "code", "facts"),
    [
        (
            '[audit]\nmechanism = "pairs"',
            "not_what_discreet_audit",
            {"place": "the table audit", "why": " (the audit lacks the field 'claimed_epsilon')"},
        ),
        ("[audit]", "not_what_discreet_audit", {"place": "the table audit"}),
        ("audit = 3", "must_found_nothing_read", {"place": "audit=", "found": "3 (int)"}),
        ("about = 3", "must_found_nothing_read", {"place": "about="}),
        (
            "max_answers = 'x'",
            "must_found_nothing_read",
            {"place": "max_answers=", "wanted": "a whole number or None", "found": "'x' (str)"},
        ),
        (
            "looked = 'no'",
            "must_found_nothing_read",
            {
                "place": "looked=",
                "wanted": "True or False (Python takes a text or a number for true)",
            },
        ),
        ("[forms]\na = 1", "must_found_nothing_read", {"place": "forms['a']", "wanted": "a list"}),
    ],
)
def test_a_file_with_a_value_of_another_kind_is_refused(tmp_path, table, code, facts):
    file = tmp_path / "release.toml"
    file.write_text(f"items = ['a', 'b']\nepsilon = 1.0\n{table}\n")
    with refused(BadUsage, code, **facts):
        read_spec({}, file=file)
