"""Two pairs of eyes: what approvers signed is released, exactly that, once, and nothing else."""

import inspect
import json
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet
from commandline import LSAT_ITEMS
from commandline import discreet as run
from discreet.coding.reading import ListedWords
from discreet.datasets import lsat
from discreet.errors import BadResponses, BadUsage, LedgerError, MissingExtra, NotAllowed
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.policy import Approver, propose_change
from discreet.privacy.ledger.request import (
    READING,
    Request,
    Signature,
    check_public,
    make_fingerprint,
    pack,
    read_public,
    unpack,
    write_decimal,
    write_key,
)
from discreet.privacy.mechanisms import MECHANISMS
from discreet.privacy.noise import ExactNoise
from discreet.publishing import delivery
from discreet.publishing.bundle import seal_record
from discreet.publishing.delivery import resume_release
from discreet.publishing.notices import withdrawal_notice
from discreet.publishing.requests import describe_request
from discreet.publishing.spec import make_spec
from refusals import refused

pytest.importorskip("cryptography", reason="the extra approvals is not installed")


class Trap:
    """Data that must not be looked at."""

    def __getattr__(self, name):
        raise AssertionError(f"the data was asked for {name}")


@pytest.fixture
def desk(tmp_path):
    """A folder with a ledger that asks for two approvals, and the keys of three people."""
    ledger = Ledger.create(tmp_path / "spent.db", 2.0, approvals=2)
    for name in ("ada", "bob", "eve"):
        public = write_key(tmp_path / f"{name}.key")
        if name != "eve":
            ledger.change_approvers(Approver(name, public))
    return tmp_path


def book(desk):
    return Ledger.open(desk / "spent.db")


def ask(desk, **more):
    about = {"title": "A test"}
    told = {"items": LSAT_ITEMS, "ledger": book(desk), "about": about, **more}
    return discreet.propose(Budget(0.5, 1e-6), **told)


def signed(desk, *names, request=None, **more):
    found = request or ask(desk, **more)
    for name in names:
        found = discreet.approve(found, desk / f"{name}.key")
    return found


def release(desk, request, source=None, **more):
    source = Trap() if source is None else source
    return discreet.release_request(source, request, ledger=book(desk), **more)


def test_what_two_approvers_signed_is_released_and_says_who_they_were(desk):
    request = signed(desk, "ada", "bob", persons=1000, max_answers=4)
    released = release(desk, request, lsat(), out=desk / "out")
    approval = released.record["approval"]
    assert [one["name"] for one in approval["approvers"]] == ["ada", "bob"]
    assert approval["approvers"][0]["key"] == make_fingerprint(read_public(desk / "ada.key"))
    assert approval["sha256"] == request.digest
    assert released.record["identity"]["title"] == "A test"
    assert (released.guarantee.epsilon, released.guarantee.delta) == (0.5, 1e-6)
    assert (released.record["max_answers"], released.record["persons"]) == (4, 1000)
    (entry,) = book(desk).releases()
    assert [one["name"] for one in entry.approved_by] == ["ada", "bob"]
    assert Request.from_dict(entry.request) == request
    discreet.verify(desk / "out")
    assert discreet.read_release(desk / "out").record["approval"] == approval


def test_page_statement_and_notice_name_whoever_approved(desk):
    release(desk, signed(desk, "ada", "bob"), lsat(), out=desk / "out")
    keys = [make_fingerprint(read_public(desk / f"{name}.key")) for name in ("ada", "bob")]
    named = f"ada (key {keys[0]}), bob (key {keys[1]})"
    page = (desk / "out" / "report.html").read_text()
    assert f"<dt>approved by</dt><dd>{named}</dd>" in page
    assert page.index("approved by ada, bob</p>") < page.index('class="lead"')
    assert f"| approved by | {named} |" in (desk / "out" / "statement.md").read_text()
    assert f"| approved by | {named} |" in withdrawal_notice(desk / "out", "A key was wrong.")


def test_a_release_that_nobody_approved_names_nobody(tmp_path):
    discreet.release(lsat(), Budget(0.5), items=LSAT_ITEMS, out=tmp_path / "out")
    for name in ("report.html", "statement.md"):
        assert "approved by" not in (tmp_path / "out" / name).read_text()


def test_a_bundle_whose_approvers_are_no_approvers_is_refused(desk):
    release(desk, signed(desk, "ada", "bob"), lsat(), out=desk / "out")
    place = desk / "out" / "privacy.json"
    record = json.loads(place.read_text())
    for wrong in ("ada", {"approvers": ["ada"]}, {**record["approval"], "approvers": ["ada"]}):
        place.write_text(seal_record({**record, "approval": wrong}, record["files"]))
        with refused(BadResponses, "not_whole_release_bundle") as caught:
            discreet.verify(desk / "out")
        assert "has the approval" in caught.value.facts["problem"]


def other_ledger(desk):
    other = Ledger.create(desk / "other.db", 2.0, approvals=2)
    return signed(desk, "ada", "bob", ledger=other)


def changed(desk):
    found = signed(desk, "ada", "bob")
    return replace(found, body={**found.body, "epsilon": "1.5"})


def forged(desk):
    found = signed(desk, "ada")
    fake = Signature(read_public(desk / "bob.key"), found.signatures[0].signature)
    return replace(found, signatures=(*found.signatures, fake))


def twice(desk):
    found = signed(desk, "ada")
    return replace(found, signatures=found.signatures * 2)


def used(desk):
    found = signed(desk, "ada", "bob")
    release(desk, found, lsat())
    return found


FAULTS = {
    other_ledger: ("request_ledger_check_signed", {}),
    changed: ("signature_not_fit_request", {"name": "ada"}),
    forged: ("signature_not_fit_request", {"name": "bob"}),
    twice: ("key_signed_request_twice", {}),
    used: ("request_carried_out_already", {}),
    lambda desk: signed(desk, "ada", "eve"): ("request_signed_key_belongs", {}),
    lambda desk: signed(desk, "ada", "bob", "eve"): ("request_signed_key_belongs", {}),
    lambda desk: signed(desk, "ada"): ("ledger_asks_approval_signed", {"n_signers": "1"}),
    ask: ("ledger_asks_approval_signed", {"n_signers": "0"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_other_request_is_refused_before_the_data_is_opened(desk, fault):
    request = fault(desk)
    before = book(desk).releases()
    code, facts = FAULTS[fault]
    with refused(NotAllowed, code, **facts):
        release(desk, request)
    assert book(desk).releases() == before


@pytest.mark.parametrize("fault", FAULTS)
def test_the_ledger_itself_refuses_every_other_request(desk, fault):
    request = fault(desk)
    before = book(desk).releases()
    _, spend = calibrate_counts(12, Budget(0.5, 1e-6))
    code, facts = FAULTS[fault]
    with refused(NotAllowed, code, **facts):
        book(desk).reserve(spend, fingerprint="x", description="aside", request=request)
    assert book(desk).releases() == before


def test_nobody_signs_twice(desk):
    with refused(NotAllowed, "key_signed_request_already"):
        signed(desk, "ada", "ada")


def test_a_ledger_that_asks_for_approvals_takes_nothing_else(desk):
    budget = Budget(0.5, 1e-6)
    with refused(NotAllowed, "ledger_takes_releases_approved", needed="2 approvers"):
        discreet.release(Trap(), budget, items=LSAT_ITEMS, ledger=book(desk))
    with refused(NotAllowed, "ledger_takes_releases_approved", needed="2 approvers"):
        discreet.release_comparisons(
            Trap(), budget, items=["a", "b"], max_comparisons=1, ledger=book(desk)
        )
    _, spend = calibrate_counts(12, budget)
    with refused(NotAllowed, "ledger_takes_releases_approved"):
        book(desk).reserve(spend, fingerprint="x", description="aside")
    assert not book(desk).releases()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"budget": Budget(0.6, 1e-6)}, "epsilon"),
        ({"budget": Budget(0.5, 1e-5)}, "delta"),
        ({"budget": Budget(0.5, 1e-6, "add-remove")}, "neighbours"),
        ({"mechanism": "pairs "}, "mechanism"),
        ({"population": "north"}, "population"),
        ({"persons": 5}, "persons"),
    ],
)
def test_the_ledger_is_not_charged_for_another_release_than_the_signed_one(desk, change, name):
    book(desk).declare("north")
    request = signed(desk, "ada", "bob")
    told = {"budget": Budget(0.5, 1e-6), "mechanism": "pairs", "population": "everyone", **change}
    _, spend = calibrate_counts(12, told.pop("budget"), mechanism=told.pop("mechanism"))
    with refused(NotAllowed, "request_another_release_another", others=name):
        book(desk).reserve(spend, fingerprint="x", description="y", request=request, **told)


@pytest.mark.parametrize("name", [name for name, one in MECHANISMS.items() if one.kind != "groups"])
def test_every_mechanism_spends_under_its_own_name(name):
    entry = MECHANISMS[name]
    items = {"a": 1, "b": 2, "c": 1} if name == "totals" else ["a", "b", "c"]
    told = {"items": items, "max_answers": 3, "persons": 1000, "mechanism": name}
    spec = make_spec(Budget(0.5, 1e-6), kind=entry.kind, **told)
    spend = entry().calibrate(spec.public, spec.budget, ExactNoise().source).spend
    assert spend.mechanism == name
    assert (spend.epsilon, spend.delta) <= (0.5, 1e-6)


def test_the_same_request_at_once_spends_once(desk):
    request = signed(desk, "ada", "bob")

    def attempt(number):
        try:
            return release(desk, request, lsat(), out=desk / f"out{number}")
        except NotAllowed as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(attempt, range(4)))
    assert sum(isinstance(one, discreet.Published) for one in results) == 1
    refused = [one for one in results if isinstance(one, NotAllowed)]
    assert len(refused) == 3
    assert all("carried out already" in str(one) for one in refused)
    assert len(book(desk).releases()) == 1
    assert len([one for one in desk.iterdir() if one.name.startswith("out")]) == 1


def test_a_release_that_stopped_is_resumed_with_its_approvals(desk, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    request = signed(desk, "ada", "bob")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", stop)
        with pytest.raises(KeyboardInterrupt):
            release(desk, request, lsat())
    (entry,) = book(desk).releases()
    assert entry.completed_at is None
    resumed = resume_release(book(desk), entry.number, lsat(), out=desk / "out")
    assert len(resumed.record["approval"]["approvers"]) == 2
    assert len(book(desk).releases()) == 1


def test_comparisons_are_proposed_and_released_alike(desk):
    votes = discreet.simulate_comparisons(300, 4, 3, rng=np.random.default_rng(1)).comparisons
    told = {"items": sorted(votes.items), "kind": "comparisons", "max_answers": 3}
    request = signed(desk, "ada", "bob", **told)
    assert isinstance(release(desk, request, votes), discreet.PublishedRanking)


def test_steps_forms_and_design_are_part_of_a_request(desk):
    items = {"Q1": 3, "Q2": 2, "Q3": 2}
    told = {"forms": [["Q1", "Q2"], ["Q2", "Q3"]], "design": "random", "model": "rating-scale"}
    body = ask(desk, items=items, lowest=1, **told).body
    assert (body["items"], body["steps"], body["lowest"]) == (["Q1", "Q2", "Q3"], [3, 2, 2], 1)
    assert (body["forms"], body["design"], body["model"]) == (*told.values(),)
    assert (body["mechanism"], body["max_answers"]) == ("totals", 2)


def test_a_proposal_obeys_the_policy_and_the_declared_populations(tmp_path):
    ledger = Ledger.create(tmp_path / "spent.db", 2.0, policy={"max_epsilon": 0.4})
    with refused(NotAllowed, "ledger_policy_allows_epsilon", max_epsilon="0.4"):
        ask(tmp_path)
    with refused(BadUsage, "population_not_declared_ledger"):
        discreet.propose(Budget(0.1), items=LSAT_ITEMS, ledger=ledger, population="north")
    with refused(
        BadUsage, "must_found_nothing_read", place="persons=", wanted="a whole number or None"
    ):
        discreet.propose(Budget(0.1), items=LSAT_ITEMS, ledger=ledger, persons=["a", "b"])


def test_a_ledger_without_approvals_takes_a_request_too(tmp_path):
    Ledger.create(tmp_path / "spent.db", 2.0)
    assert release(tmp_path, ask(tmp_path), lsat()).record["approval"]["approvers"] == []


def test_what_is_signed_has_one_form(desk):
    request = signed(desk, "ada", "bob", about={"title": "größe"})
    assert request.content.startswith(b'discreet request 1\n{"about":{"identity":{"title":"gr\xc3')
    assert b'"delta":"0.000001"' in request.content
    assert b"1e-06" not in request.content
    request.save(desk / "request.json")
    again = Request.load(desk / "request.json")
    assert again == request
    mixed = dict(reversed(request.body.items()))
    assert replace(request, body=mixed).content == request.content
    release(desk, desk / "request.json", lsat())


@pytest.mark.parametrize("number", [1.0, 1e-6, 0.1, 123.456, 5e-324, 0.5, 1e22])
def test_a_number_is_written_exactly(number):
    assert float(write_decimal(number)) == number
    assert "e" not in write_decimal(number).lower()
    assert unpack(pack({"a": [number, {"b": number}], "c": 3})) == {
        "a": [number, {"b": number}],
        "c": 3,
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('"0.5"', "0.5"), "floating-point number 0.5"),
        (
            lambda text: text.replace('"lowest": 0', '"lowest": true'),
            "lowest is true, not a whole number",
        ),
        (lambda text: text.replace('"lowest"', '"lowesd"'), "lowesd"),
        (lambda text: text.replace('"nonce"', '"nonce": "a", "nonce"'), "stands there twice"),
        (lambda text: text.replace("request 1", "request 9"), "format"),
        (lambda text: text.replace('"release"', '"cake"'), "no request is for"),
        (lambda text: text.replace('"A test"', r'"\ud800"'), "is no text"),
        (lambda text: text.replace('"signatures"', '"names"'), "and nothing else"),
        (lambda text: text[:-20], "not a request"),
        (lambda text: "[]", "not a request"),
    ],
)
def test_a_file_that_is_no_request_is_refused(desk, change, words):
    path = desk / "request.json"
    ask(desk).save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(BadUsage, match=words):
        Request.load(path)


def test_a_key_is_for_its_owner_and_never_overwritten(tmp_path):
    public = write_key(tmp_path / "my.key")
    assert stat.S_IMODE((tmp_path / "my.key").stat().st_mode) == 0o600
    assert check_public(public) == read_public(tmp_path / "my.key") == public
    with refused(BadUsage, "exists_already_key_never"):
        write_key(tmp_path / "my.key")
    for text in ("nonsense", ""):
        (tmp_path / "bad.key").write_text(text)
        with refused(BadUsage, "holds_no_signing_key"):
            read_public(tmp_path / "bad.key")
    with refused(BadUsage, "holds_no_signing_key"):
        read_public(tmp_path / "nowhere.key")


@pytest.mark.parametrize("failing", ["my.key", "my.key.pub"])
def test_a_key_on_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, failing):
    """Neither an empty key, which would never be overwritten, nor one without its public key."""
    real = Path.open

    def full(self, mode="r", *given, **named):
        opened = real(self, mode, *given, **named)
        if "w" in mode and (failing == "my.key") != (self.name == "my.key.pub"):
            opened.close()
            raise OSError(28, "No space left on device")
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        ended = run("steward", "key", tmp_path / "my.key")
    assert ended.code == 1
    assert "the disk is full" in ended.err
    assert list(tmp_path.iterdir()) == []
    assert run("steward", "key", tmp_path / "my.key").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.key", "my.key.pub"]


def test_a_key_on_a_disk_without_links_is_whole_and_never_overwritten(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    public = write_key(tmp_path / "my.key")
    assert read_public(tmp_path / "my.key") == public
    assert stat.S_IMODE((tmp_path / "my.key").stat().st_mode) == 0o600
    with refused(BadUsage, "exists_already_key_never"):
        write_key(tmp_path / "my.key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.key", "my.key.pub"]


def test_without_the_extra_the_error_names_it(desk, monkeypatch):
    request = signed(desk, "ada", "bob")
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    for attempt in (
        lambda: write_key(desk / "new.key"),
        lambda: request.sign(desk / "eve.key"),
        lambda: release(desk, request),
    ):
        with refused(MissingExtra, "needs_optional_dependency_group", extra="approvals"):
            attempt()
    assert not (desk / "new.key").exists()


def public(desk, name):
    return read_public(desk / f"{name}.key")


def test_another_key_needs_the_approval_of_those_who_approve(desk):
    with refused(NotAllowed, "ledger_another_key_needs"):
        book(desk).change_approvers(Approver("eve", public(desk, "eve")))
    change = propose_change(book(desk).board(), "eve", public(desk, "eve"))
    for names, code in (
        ((), "ledger_asks_approval_signed"),
        (("ada",), "ledger_asks_approval_signed"),
        (("ada", "eve"), "request_signed_key_belongs"),
    ):
        with refused(NotAllowed, code):
            book(desk).change_approvers(signed(desk, *names, request=change))
    approved = signed(desk, "ada", "bob", request=change)
    entered = book(desk).change_approvers(approved)
    assert entered.name == "eve"
    assert [one.name for one in book(desk).board().approvers] == ["ada", "bob", "eve"]
    with refused(BadUsage, "approver_called_already_retire"):
        book(desk).change_approvers(approved)
    release(desk, signed(desk, "eve", "bob"), lsat())


def test_a_retired_key_approves_nothing_any_more(desk):
    board = book(desk).board()
    with refused(NotAllowed, "without_fewer_than_would"):
        propose_change(board, "bob", retire=True)
    enter = propose_change(board, "eve", public(desk, "eve"))
    enter = signed(desk, "ada", "bob", request=enter)
    book(desk).change_approvers(enter)
    leave = propose_change(book(desk).board(), "bob", retire=True)
    leave = signed(desk, "ada", "eve", request=leave)
    book(desk).change_approvers(leave)
    with refused(NotAllowed, "request_signed_key_belongs"):
        release(desk, signed(desk, "ada", "bob"))
    key = public(desk, "eve")
    other = key[:-1] + ("1" if key.endswith("0") else "0")
    back = propose_change(book(desk).board(), "ada 2", other)
    with refused(NotAllowed, "request_signed_key_belongs"):
        book(desk).change_approvers(signed(desk, "ada", "bob", request=back))
    with refused(BadUsage, "no_approver_ledger_called"):
        book(desk).change_approvers(leave)
    with refused(NotAllowed, "request_carried_out_already"):
        book(desk).board().check_signed(enter, "approver")


@pytest.mark.parametrize(
    ("name", "key", "code", "facts"),
    [
        ("ada", "bob", "approver_called_already_retire", {"name": "ada"}),
        ("cy", "ada", "key_entered_before_everybody", {}),
        (" ", "eve", "approver_needs_name_printable", {}),
    ],
)
def test_names_and_keys_are_entered_once(tmp_path, name, key, code, facts):
    ledger = Ledger.create(tmp_path / "spent.db", 2.0, approvals=3)
    for one in ("ada", "bob", "eve"):
        write_key(tmp_path / f"{one}.key")
    ledger.change_approvers(Approver("ada", public(tmp_path, "ada")))
    with refused(BadUsage, code, **facts):
        ledger.change_approvers(Approver(name, public(tmp_path, key)))


def test_a_request_for_a_key_releases_nothing_and_the_other_way_round(desk):
    change = propose_change(book(desk).board(), "eve", public(desk, "eve"))
    with refused(BadUsage, "request_about_approver_enter"):
        release(desk, signed(desk, "ada", "bob", request=change))
    with refused(NotAllowed, "request_another_purpose_read_change"):
        book(desk).change_approvers(signed(desk, "ada", "bob"))


def test_a_key_that_was_slipped_into_the_file_is_damage(desk):
    with closing(sqlite3.connect(desk / "spent.db")) as connection, connection:
        rows = connection.execute("SELECT number, body FROM declarations").fetchall()
        number, body = rows[0]
        slipped = {**json.loads(body), "public_key": public(desk, "eve")}
        connection.execute(
            "UPDATE declarations SET body = ? WHERE number = ?", (json.dumps(slipped), number)
        )
    with refused(LedgerError, "ledger_damaged_what_spent"):
        book(desk)


@pytest.mark.parametrize("number", [-1, 1.5, True, "2"])
def test_a_number_of_approvals_is_a_whole_number(tmp_path, number):
    code = "approvals_must_whole_number" if number == -1 else "must_found_nothing_read"
    with refused(BadUsage, code):
        Ledger.create(tmp_path / "spent.db", 1.0, approvals=number)


@pytest.fixture
def office(desk):
    (desk / "items.txt").write_text("\n".join(LSAT_ITEMS))
    rows = lsat().store.rows(0, 1000).tolist()
    lines = [",".join(LSAT_ITEMS), *(",".join(map(str, row)) for row in rows)]
    (desk / "answers.csv").write_text("\n".join(lines))
    asked = ["--items", desk / "items.txt", "--epsilon", 0.5, "--ledger", desk / "spent.db"]
    made = run("steward", "propose", *asked, "--title", "A test", "--out", desk / "request.json")
    assert made.code == 0, made.err
    return desk


def test_the_command_line_proposes_approves_and_releases(office):
    request = office / "request.json"
    shown = run("steward", "approve", request)
    assert shown.code == 0
    assert "epsilon      0.5" in shown.out
    assert "Nothing was signed" in shown.out
    early = run("release", office / "nowhere.csv", "--request", request, "--out", office / "out")
    assert early.code == 2
    assert "0 signed this request" in early.err
    for name in ("ada", "bob"):
        assert run("steward", "approve", request, "--signing-key", office / f"{name}.key").code == 0
    again = run("steward", "approve", request, "--signing-key", office / "bob.key")
    assert again.code == 2
    done = run("release", office / "answers.csv", "--request", request, "--out", office / "out")
    assert done.code == 0, done.err
    record = json.loads((office / "out" / "privacy.json").read_text())
    assert [one["name"] for one in record["approval"]["approvers"]] == ["ada", "bob"]
    twice = run("release", office / "nowhere.csv", "--request", request, "--out", office / "out2")
    assert twice.code == 2
    assert "carried out already" in twice.err
    document = run("ledger", "show", office / "spent.db", "--json").document
    assert document["approvals"] == 2
    assert [one["name"] for one in document["releases"][0]["approved_by"]] == ["ada", "bob"]
    assert "Approvals needed: 2; approvers: ada (" in run("ledger", "show", office / "spent.db").out


@pytest.mark.parametrize(
    "option",
    [
        ("--items", "items.txt"),
        ("--epsilon", 0.5),
        ("--delta", 1e-6),
        ("--persons", 5),
        ("--lowest", 0),
        ("--population", "everyone"),
        ("--title", "Another"),
        ("--mechanism", "auto"),
        ("--at-least", 2),
        ("--missing", 9),
        ("--key", "ABCDA"),
        ("--one-means", "wrong"),
        ("--ignore", "Item1"),
        ("--repeats", "last"),
        ("--layout", "wide"),
        ("--no-header",),
    ],
)
def test_nothing_public_stands_beside_a_request(office, option):
    asked = ["--request", office / "request.json", "--out", office / "out"]
    ended = run("release", office / "nowhere.csv", *asked, *option)
    assert ended.code == 2
    assert f"{option[0]} cannot be given with --request" in ended.err


SCORES = {"persons": 400, "items": 5, "steps": 4, "seed": 3}


@pytest.fixture
def scores(desk):
    """Answers from 0 to 4, of which it depends on the reading what is right."""
    (desk / "items.txt").write_text("0\n1\n2\n3\n4\n")
    given = [one for name, value in SCORES.items() for one in (f"--{name}", value)]
    made = run("simulate", *given, "--out", desk / "scores.csv", "--layout", "wide")
    assert made.code == 0, made.err
    return desk


def proposed(desk, *reading):
    request = desk / "reading.json"
    asked = ["--items", desk / "items.txt", "--epsilon", 1, "--ledger", desk / "spent.db"]
    made = run("steward", "propose", *asked, *reading, "--out", request)
    assert made.code == 0, made.err
    for name in ("ada", "bob"):
        assert run("steward", "approve", request, "--signing-key", desk / f"{name}.key").code == 0
    return request, made.out


def exact_counts(monkeypatch):
    """Look at what is counted before the noise."""
    seen, made = [], delivery.Delivery.draw

    def draw(self, data, noise):
        seen.append(data.count().right_wrong)
        return made(self, data, noise)

    monkeypatch.setattr(delivery.Delivery, "draw", draw)
    return seen


def test_answers_are_read_as_approved_and_not_as_whoever_releases_likes(scores, monkeypatch):
    request, shown = proposed(scores, "--at-least", 3, "--missing", "9,2:4", "--person", "person")
    lines = ['reading      person: "person"', "at_least: 3", 'missing: {"*": ["9"], 2: ["4"]}']
    assert f"\n{' ' * 13}".join(lines) in shown
    asked = ["--request", request, "--out", scores / "out"]
    for other in (["--at-least", 1], ["--missing", ""], ["--key", "43210"], ["--ignore", "4"]):
        ended = run("release", scores / "scores.csv", *asked, *other)
        assert ended.code == 2
        assert "cannot be given with --request" in ended.err
    seen = exact_counts(monkeypatch)
    assert run("release", scores / "scores.csv", *asked).code == 0
    words = {"at_least": 3, "missing": {"*": 9, "2": 4}}
    wanted = discreet.read_responses(scores / "scores.csv", **words)
    assert np.array_equal(seen[0], wanted.count().right_wrong)
    assert not np.array_equal(
        seen[0], discreet.read_responses(scores / "scores.csv", at_least=1).count().right_wrong
    )


def test_the_library_reads_a_table_as_approved_too(scores, monkeypatch):
    told = {"at_least": 3, "missing": {"2": [4]}}
    request = signed(scores, "ada", "bob", items=["0", "1", "2", "3", "4"], reading=told)
    seen = exact_counts(monkeypatch)
    release(scores, request, scores / "scores.csv")
    wanted = discreet.read_responses(scores / "scores.csv", **told)
    assert np.array_equal(seen[0], wanted.count().right_wrong)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_request_holds_the_key_and_not_the_file_that_held_it(scores, monkeypatch, in_order):
    monkeypatch.chdir(scores)
    key = "43210" if in_order else "key.csv"
    (scores / "key.csv").write_text("item,answer\n0,4\n1,3\n2,2\n3,1\n4,0\n")
    request, shown = proposed(scores, "--key", key)
    assert "key: " in shown
    # A file with another key, of the very name that was given.
    (scores / key).write_text("item,answer\n0,0\n1,0\n2,0\n3,0\n4,0\n")
    seen = exact_counts(monkeypatch)
    ended = run("release", scores / "scores.csv", "--request", request, "--out", scores / "out")
    assert ended.code == 0, ended.err
    right = dict(zip("01234", "43210", strict=True))
    wanted = discreet.read_responses(scores / "scores.csv", key=right).count().right_wrong
    assert np.array_equal(seen[0], wanted)


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (["--steps", 4], "No such option: --steps"),
        (["--merge", "0:2+3"], "No such option: --merge"),
        (["--reverse", "0"], "for items with steps"),
        (["--order-by", "when"], "repeats='last'"),
        (["--key", "nowhere.csv"], "no file"),
    ],
)
def test_a_reading_that_no_release_could_have_is_not_proposed(scores, reading, why):
    asked = ["--items", scores / "items.txt", "--epsilon", 1, "--ledger", scores / "spent.db"]
    ended = run("steward", "propose", *asked, *reading, "--out", scores / "reading.json")
    assert ended.code == 2
    assert why in ended.err
    assert not (scores / "reading.json").exists()


def test_comparisons_are_read_as_approved(desk, monkeypatch):
    rows = "".join(f"{judge},A,B,{'A' if judge % 3 else 'tie'}\n" for judge in range(60))
    (desk / "votes.csv").write_text(f"who,one,two,best\n{rows}")
    (desk / "items.txt").write_text("A\nB\n")
    told = ["--judge", "who", "--left", "one", "--right", "two", "--outcome", "best"]
    asked = ["--items", desk / "items.txt", "--epsilon", 1, "--ledger", desk / "spent.db"]
    request = desk / "votes.json"
    made = run("compare", "propose", *asked, "--max-comparisons", 1, *told, "--ties", "drop",
               "--out", request)  # fmt: skip
    assert made.code == 0, made.err
    columns = ['reading      judge: "who"', 'left: "one"', 'right: "two"', 'outcome: "best"']
    lines = [*columns, 'ties: "drop"']
    assert f"\n{' ' * 13}".join(lines) in made.out
    for name in ("ada", "bob"):
        run("steward", "approve", request, "--signing-key", desk / f"{name}.key")
    asked = [desk / "votes.csv", "--request", request, "--out", desk / "out"]
    ended = run("compare", "release", *asked, "--winner", "two")
    assert ended.code == 2
    assert "--winner cannot be given with --request" in ended.err
    assert run("compare", "release", *asked).code == 0
    words = {"judge": "who", "left": "one", "right": "two", "outcome": "best", "ties": "drop"}
    told = {"kind": "comparisons", "items": ["A", "B"], "max_answers": 1, "reading": words}
    again = signed(desk, "ada", "bob", **told)
    assert release(desk, again, desk / "votes.csv").strengths.items == ("A", "B")


def test_a_request_that_says_otherwise_how_it_is_read_is_none(desk):
    with refused(BadUsage, "request_not_say_how", name="colour"):
        ask(desk, reading={"colour": "red"})
    body = ask(desk).body
    with pytest.raises(BadUsage, match=r"its reading\.key is 'ABC', not an object"):
        Request({**body, "reading": {"key": "ABC"}})


#: What a reader would take for something else than an approver sees, or has two forms.
MISREAD = [
    ("answers", {"header": "False"}, r"reading\.header is 'False', not true or false"),
    ("answers", {"header": 0}, r"reading\.header is 0, not true or false"),
    ("answers", {"skip_rows": True}, r"reading\.skip_rows is true, not a whole number"),
    ("answers", {"skip_rows": "1"}, r"reading\.skip_rows is '1', not a whole number"),
    ("answers", {"at_least": "3"}, r"reading\.at_least is '3', which does not belong there"),
    ("answers", {"person": 7}, r"reading\.person is 7, not a text"),
    ("answers", {"reverse": "Q1"}, r"reading\.reverse is 'Q1', not a list"),
    ("answers", {"missing": {"*": [9]}}, r"reading\.missing\['\*'\]\[0\] is 9, not a text"),
    ("answers", {"repeats": None}, r"reading\.repeats is null, not one of"),
    ("answers", {"invalid": "no"}, r"reading\.invalid is 'no', not one of"),
    ("answers", {"ties": "drop"}, r"field 'ties', which does not belong there"),
    ("comparisons", {"header": "False"}, r"reading\.header is 'False', not true or false"),
    ("comparisons", {"ties": True}, r"reading\.ties is true, not one of"),
    ("comparisons", {"at_least": 3}, r"field 'at_least', which does not belong there"),
]


@pytest.mark.parametrize(("kind", "reading", "words"), MISREAD)
def test_how_a_table_is_read_has_the_declared_types(desk, kind, reading, words):
    body = ask(desk).body
    with pytest.raises(BadUsage, match=words):
        Request({**body, "kind": kind, "reading": reading})


def test_a_text_is_shown_in_quotes_and_a_value_is_not(desk):
    words = {"header": False, "person": "False", "at_least": 2.5, "ignore": "3", "filter": "null"}
    shown = describe_request(ask(desk, reading=words))["reading"]
    expected = ['person: "False"', 'ignore: ["3"]', "at_least: 2.5", "header: false"]
    assert shown == [*expected, 'filter: "null"']


def test_every_keyword_of_a_reader_has_a_type_in_requests():
    """A new keyword cannot be signed before somebody says what form it has."""
    votes = inspect.signature(discreet.read_comparisons).parameters
    assert READING["answers"].keys() == ListedWords.__annotations__.keys()
    # No release counts covariates.
    assert READING["comparisons"].keys() == votes.keys() - {"path", "covariates"}


def test_the_command_line_refuses_a_release_without_a_request_before_the_file_is_opened(office):
    asked = ["--items", office / "items.txt", "--epsilon", 0.5, "--ledger", office / "spent.db"]
    ended = run("release", office / "nowhere.csv", *asked, "--out", office / "out")
    assert ended.code == 2
    assert "only releases approved by 2 approvers" in ended.err
    missing = run("release", office / "nowhere.csv", "--out", office / "out")
    assert missing.code == 2
    assert "Missing option '--items'" in missing.err


def test_a_request_is_for_its_own_command_and_is_not_overwritten(office):
    request = office / "request.json"
    asked = ["--items", office / "items.txt", "--epsilon", 0.5, "--ledger", office / "spent.db"]
    again = run("steward", "propose", *asked, "--out", request)
    assert again.code == 2
    assert "never overwritten" in again.err
    votes = run("compare", "release", "nowhere.csv", "--request", request, "--out", office / "out")
    assert votes.code == 2
    assert "use 'discreet release'" in votes.err
    ranking = office / "ranking.json"
    made = run("compare", "propose", *asked, "--max-comparisons", 3, "--out", ranking)
    assert made.code == 0, made.err
    ended = run("release", "nowhere.csv", "--request", ranking, "--out", office / "out")
    assert "use 'discreet compare release'" in ended.err


def test_a_key_with_a_passphrase_signs_with_it_alone(office):
    for name, word in (("secret", "correct horse"), ("wrong", "a donkey"), ("empty", "")):
        (office / name).write_text(f"{word}\nsecond line\n")
    given, key = ["--passphrase-file"], office / "cy.key"
    assert run("steward", "key", key, *given, office / "empty").code == 2
    assert run("steward", "key", key, *given, office / "secret").code == 0
    assert b"ENCRYPTED" in key.read_bytes()
    asked = ["steward", "approve", office / "request.json", "--signing-key"]
    refused = {"empty": "has a passphrase", "wrong": "not the passphrase", "none": "none"}
    for name, why in refused.items():
        ended = run(*asked, key, *given, office / name)
        assert ended.code == 2
        assert why in ended.err
    assert "has a passphrase" in run(*asked, key).err
    (office / "picture").write_bytes(b"\xff\xfe")
    assert "holds no passphrase" in run(*asked, key, *given, office / "picture").err
    assert run(*asked, key, *given, office / "secret").code == 0
    shown = run("steward", "key", key, "--show", *given, office / "secret").out.split()[-1]
    assert f"signed by    {shown}" in run("steward", "approve", office / "request.json").out
    assert run(*asked, office / "ada.key", *given, office / "secret").code == 0


def test_keys_are_made_entered_and_retired_on_the_command_line(office):
    made = run("steward", "key", office / "cy.key")
    assert made.code == 0
    key, fingerprint, _ = made.out.splitlines()
    assert run("steward", "key", office / "cy.key", "--show").out == f"{key}\n{fingerprint}\n"
    assert run("steward", "key", office / "cy.key").code == 2
    ledger, change = office / "spent.db", office / "change.json"
    enter = ["ledger", "approver", ledger, "cy", "--public-key", key]
    alone = run(*enter)
    assert alone.code == 2
    assert "another key needs their approval" in alone.err
    enter[-1] = office / "cy.key.pub"
    assert run(*enter, "--propose", change).code == 0
    for name in ("ada", "bob"):
        run("steward", "approve", change, "--signing-key", office / f"{name}.key")
    done = run("ledger", "approver", ledger, "--request", change)
    assert done.code == 0, done.err
    assert f"Entered cy, key {fingerprint.split()[1]}." in done.out
    assert run("ledger", "approver", ledger, "cy", "--retire").code == 2
    leave = office / "leave.json"
    assert run("ledger", "approver", ledger, "cy", "--retire", "--propose", leave).code == 0
    for name in ("ada", "cy"):
        run("steward", "approve", leave, "--signing-key", office / f"{name}.key")
    assert "Retired cy" in run("ledger", "approver", ledger, "--request", leave).out
    for wrong in ([], ["cy"], ["cy", "--request", leave], ["cy", "--public-key", "ada"]):
        assert run("ledger", "approver", ledger, *wrong).code == 2
