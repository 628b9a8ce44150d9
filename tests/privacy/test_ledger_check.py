"""A ledger compared with what was published: copies and old ledgers are found."""

import json
import shutil
import sqlite3

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.errors import BadResponses, BadUsage, LedgerError
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger import file as ledger_file
from discreet.privacy.ledger.balance import publish_head
from discreet.privacy.ledger.file import read_events
from discreet.privacy.noise import ExactNoise
from discreet.publishing.bundle import hash_record
from refusals import refused


@pytest.fixture
def answers():
    return library.datasets.lsat()


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "spent.db", 10.0, 1e-5)


@pytest.fixture
def bundles(tmp_path):
    (tmp_path / "bundles").mkdir()
    return tmp_path / "bundles"


def publish(answers, ledger, out, **more):
    told = {"items": LSAT_ITEMS, "ledger": ledger, "out": out, **more}
    return library.release(answers, library.Budget(0.3), **told)


def refuse(ledger, bundles):
    """Return what the function and the command say, which is the same."""
    with pytest.raises(BadResponses) as caught:
        library.check_ledger(ledger, bundles)
    ended = discreet("ledger", "check", ledger.path, "--bundles", bundles)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == f"Error: {caught.value}\n"
    assert caught.value.code == "not_account_all_bundles"
    return "{lines} {advice}".format_map(caught.value.facts)


def test_a_ledger_knows_its_bundles_whatever_their_language(answers, ledger, bundles):
    publish(answers, ledger, bundles / "one")
    publish(answers, ledger, bundles / "deep" / "two", mechanism="margins")
    library.read_release(bundles / "one").save(bundles / "eins", language="de")
    publish(answers, None, bundles / "without")
    publish(answers, ledger, bundles.parent / "elsewhere")
    found = library.check_ledger(ledger.path, bundles)
    assert {one.path.name: one.release for one in found} == {
        "one": 1,
        "two": 2,
        "eins": 1,
        "without": None,
    }
    shown = discreet("ledger", "check", ledger.path, "--bundles", bundles)
    assert shown.code == 0
    assert "charged to no ledger" in shown.out
    assert "Releases without a bundle here: 3." in shown.out
    document = discreet("ledger", "check", ledger.path, "--bundles", bundles, "--json").document
    assert document["without_bundle"] == [3]
    assert len(document["bundles"]) == 4


@pytest.mark.parametrize("mechanism", ["randomized-response", "sparse-pairs", "totals"])
def test_every_kind_of_values_is_known_again(answers, ledger, bundles, mechanism):
    budget = library.Budget(0.3, 0.0 if mechanism == "randomized-response" else 1e-6)
    told = {"items": LSAT_ITEMS, "ledger": ledger, "mechanism": mechanism}
    library.release(answers, budget, **told, out=bundles / "one")
    assert [one.release for one in library.check_ledger(ledger, bundles)] == [1]


def test_a_ledger_from_before_a_release_is_refused(answers, ledger, bundles, tmp_path):
    publish(answers, ledger, bundles / "one")
    shutil.copy(ledger.path, tmp_path / "backup.db")
    publish(answers, ledger, bundles / "two")
    old = Ledger.open(tmp_path / "backup.db")
    told = refuse(old, bundles)
    assert f"{bundles / 'two'}: it is release 2, which the ledger does not have" in told
    assert str(bundles / "one") not in told
    publish(answers, old, bundles / "another")
    told = refuse(old, bundles)
    assert "is not in the ledger's history" in told
    pair = f"{bundles / 'another'} and {bundles / 'two'} are both release 2"
    assert pair in told
    assert pair in refuse(ledger, bundles)


def test_a_copy_between_charge_and_values_is_refused_and_both_bundles_are_named(
    answers, ledger, bundles, tmp_path, monkeypatch
):
    real = Ledger.store

    def copy_first(self, reservation, parts):
        shutil.copy(self.path, tmp_path / "copy.db")
        return real(self, reservation, parts)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", copy_first)
        publish(answers, ledger, bundles / "one")
    copy = Ledger.open(tmp_path / "copy.db")
    library.resume_release(copy, 1, answers, out=bundles / "two")
    values = [library.read_release(bundles / name).noisy.values for name in ("one", "two")]
    assert not np.array_equal(*(one["right_wrong"] for one in values))
    for book in (ledger, copy):
        told = refuse(book, bundles)
        assert f"{bundles / 'one'} and {bundles / 'two'} are both release 1" in told


def change(bundle, edit):
    """Change the record as somebody would who also mends its checksum."""
    record = json.loads((bundle / "privacy.json").read_text())
    edit(record)
    record["record_sha256"] = hash_record(record)
    (bundle / "privacy.json").write_text(json.dumps(record))


def test_other_values_under_a_known_head_are_found(answers, ledger, bundles):
    publish(answers, ledger, bundles / "one")
    publish(answers, ledger, bundles / "two")
    charge = json.loads((bundles / "one" / "privacy.json").read_text())["charge"]
    shutil.rmtree(bundles / "one")
    shutil.copytree(bundles / "two", bundles / "one")
    change(bundles / "one", lambda record: record.update(charge=charge))
    library.verify(bundles / "one")
    assert "are not those that the ledger has for release 1" in refuse(ledger, bundles)


@pytest.mark.parametrize("name", ["head", "values"])
def test_a_changed_charge_is_found(answers, ledger, bundles, name):
    publish(answers, ledger, bundles / "one")
    change(bundles / "one", lambda record: record["charge"].update({name: "0" * 64}))
    assert str(bundles / "one") in refuse(ledger, bundles)


def test_a_damaged_bundle_is_named(answers, ledger, bundles):
    publish(answers, ledger, bundles / "one")
    (bundles / "one" / "statement.md").write_text("All is well.")
    assert "statement.md was changed" in refuse(ledger, bundles)


def test_bundles_of_other_ledgers_are_listed(answers, ledger, bundles, tmp_path):
    other = Ledger.create(tmp_path / "other.db", 1.0)
    publish(answers, other, bundles / "other")
    (found,) = library.check_ledger(ledger, bundles)
    assert (found.release, found.finding) == (None, f"charged to another ledger, {other.id}")


@pytest.mark.parametrize(("charge", "payer"), [(None, "its own"), ({}, None)])
def test_a_charge_without_its_ledger_or_the_reverse_is_refused(
    answers, ledger, bundles, charge, payer
):
    """Otherwise a bundle could drop its charge, and no ledger would be asked about it."""
    publish(answers, ledger, bundles / "one")

    def spoil(record):
        record["charge"] = None if charge is None else record["charge"]
        record["guarantee"]["ledger"] = payer and record["guarantee"]["ledger"]

    change(bundles / "one", spoil)
    assert "names a ledger without a charge, or the reverse" in refuse(ledger, bundles)


def plant(path):
    """Plant a trigger that takes a charge back as soon as its release is delivered."""
    connection = sqlite3.connect(path)
    (head,) = connection.execute("SELECT head FROM ledger").fetchone()
    with connection:
        connection.execute(
            "CREATE TRIGGER forget AFTER UPDATE OF head ON ledger "  # noqa: S608
            "WHEN EXISTS (SELECT 1 FROM events WHERE kind = 'completed') BEGIN "
            f"DELETE FROM events; UPDATE ledger SET head = '{head}'; END"
        )
    connection.close()


def test_a_trigger_that_takes_charges_back_delivers_nothing(answers, ledger, bundles):
    plant(ledger.path)
    for number in range(2):
        with refused(
            LedgerError,
            "ledger_damaged_what_spent",
            damage="its trigger 'forget' is not as this library makes ledgers",
        ):
            publish(answers, ledger, bundles / str(number))
    ended = discreet("ledger", "check", ledger.path, "--bundles", bundles)
    assert (ended.code, "trigger 'forget'" in ended.err) == (1, True)
    assert list(bundles.iterdir()) == []


def test_a_trigger_planted_while_noise_is_drawn_delivers_nothing(answers, ledger, bundles):
    class Planting(ExactNoise):
        def gaussian(self, sigma, size):
            if size:
                plant(ledger.path)
            return super().gaussian(sigma, size)

    with refused(
        LedgerError,
        "ledger_damaged_what_spent",
        damage="its trigger 'forget' is not as this library makes ledgers",
    ):
        publish(answers, ledger, bundles / "one", noise=Planting())
    assert list(bundles.iterdir()) == []


def test_a_delivery_that_the_ledger_forgot_gives_no_bundle(answers, ledger, bundles, monkeypatch):
    """The last safeguard alone: the note is read back before anybody sees a value."""
    monkeypatch.setattr(ledger_file, "_restrain", lambda _: None)
    monkeypatch.setattr(ledger_file, "check_schema", lambda *_: None)
    plant(ledger.path)
    with refused(LedgerError, "no_reservation_ledger_complete"):
        publish(answers, ledger, bundles / "one")
    with refused(LedgerError, "no_reservation_ledger_complete"):
        publish(answers, ledger, None)
    assert ledger.spent() == (0.0, 0.0)  # it has forgotten everything
    assert list(bundles.iterdir()) == []


def test_bundles_of_a_ledger_that_forgot_them_are_named(answers, ledger, bundles):
    """As if a trigger had worked, and was taken away again."""
    empty = ledger.path.read_bytes()
    publish(answers, ledger, bundles / "one")
    ledger.path.write_bytes(empty)
    assert "it is release 1, which the ledger does not have" in refuse(ledger, bundles)


def test_a_folder_without_bundles_is_wrong_usage(ledger, bundles, tmp_path):
    for folder, code in (
        (bundles, "holds_no_bundle_find_bundles"),
        (tmp_path / "no", "not_folder_give_one"),
    ):
        with refused(BadUsage, code):
            library.check_ledger(ledger, folder)
        assert discreet("ledger", "check", ledger.path, "--bundles", folder).code == 2


def test_what_a_bundle_shows_of_the_ledger_is_keyed(answers, ledger, bundles):
    """Neither a seal of the chain, nor the fingerprint of the answers, nor a plain digest."""
    publish(answers, ledger, bundles / "one")
    connection = sqlite3.connect(ledger.path)
    events = read_events(connection, ledger.path, ledger.key)
    connection.close()
    (entry,) = ledger.releases()
    charge = json.loads((bundles / "one" / "privacy.json").read_text())["charge"]
    assert charge["head"] == publish_head(ledger.key, events[1].tag)
    assert charge["head"] != publish_head(bytes(32), events[1].tag)
    secret = {ledger.key.hex(), entry.fingerprint, entry.stored["sha256"]}
    secret |= {event.tag for event in events}
    for path in (bundles / "one").iterdir():
        content = path.read_bytes()
        assert not [one for one in secret if one.encode() in content]
