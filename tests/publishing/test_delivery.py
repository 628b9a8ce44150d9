"""A release that is paid for arrives, whatever stops it, and without paying again."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet, environment
from discreet import atomic
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage, DiscreetError, LedgerError
from discreet.privacy.ledger import values as ledger_values
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs, SparsePairs
from discreet.privacy.noise import ExactNoise
from discreet.privacy.wall import pack_release
from discreet.publishing.delivery import BUNDLE_BYTES, ITEM_BYTES, Delivery
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons
from refusals import disk_full, refused

MECHANISMS = mechanisms_for("answers")

DRIVER = Path(__file__).parents[1] / "delivery_driver.py"
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}


@pytest.fixture
def answers():
    return library.datasets.lsat()


@pytest.fixture
def ledger(tmp_path):
    return library.Ledger.create(tmp_path / "spent.db", 10.0, 1e-5)


def publish(answers, ledger, name="pairs", **settings):
    budget = library.Budget(1.0, 0.0 if name in PURE else 1e-6)
    settings = {"items": LSAT_ITEMS, "mechanism": name, "ledger": ledger, **settings}
    return library.release(answers, budget, **settings)


def votes():
    return simulate_comparisons(200, 6, 5, rng=np.random.default_rng(1)).comparisons


def publish_votes(ledger, name="net-wins", **settings):
    data = votes()
    settings = {"items": data.items, "max_comparisons": 5, "mechanism": name, **settings}
    return library.release_comparisons(data, library.Budget(1.0), ledger=ledger, **settings)


def same_values(one, other):
    # The table of a bundle has six decimals.
    np.testing.assert_allclose(one.estimate.difficulty, other.estimate.difficulty, atol=1e-6)
    assert (one.noisy is None) == (other.noisy is None)
    if one.noisy is None:  # they show who answered what
        return
    assert set(one.noisy.values) == set(other.noisy.values)
    for name, array in one.noisy.values.items():
        np.testing.assert_array_equal(array, other.noisy.values[name])


class PowerCut(BaseException):
    """Not an Exception: as Ctrl-C and a signal are not."""


class Broken(ExactNoise):
    """Noise that fails when it is drawn, and not when it is tried."""

    error = PowerCut

    def gaussian(self, sigma, size):
        if size:
            raise self.error("the power is gone")
        return super().gaussian(sigma, size)


# --- stored values ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_release_that_was_never_saved_is_had_again_from_its_stored_values(answers, ledger, name):
    lost = publish(answers, ledger, name)
    found = library.resume_release(ledger, 1)
    same_values(found, lost)
    assert found.record == lost.record
    assert found.guarantee == lost.guarantee
    np.testing.assert_array_equal(found.estimate.difficulty, lost.estimate.difficulty)
    assert len(ledger.releases()) == 1


@pytest.mark.parametrize("name", ["net-wins", "win-pairs"])
def test_a_ranking_that_was_never_saved_is_had_again_too(ledger, name, tmp_path):
    lost = publish_votes(ledger, name)
    found = library.resume_release(ledger.path, ledger.releases()[0].reservation[:8])
    same_values(found, lost)
    assert found.record == lost.record
    found.save(tmp_path / "out")
    library.verify(tmp_path / "out")
    assert not ledger.releases()[0].has_values


@pytest.mark.parametrize("inside", [True, False])
def test_stored_values_are_private_and_go_when_the_bundle_is_on_disk(
    answers, ledger, tmp_path, monkeypatch, inside
):
    if not inside:  # as if they were large
        monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10)
    old = os.umask(0)
    try:
        made = publish(answers, ledger)
    finally:
        os.umask(old)
    beside = tmp_path / "spent.db.values"
    assert beside.exists() != inside
    for path in [beside, *beside.iterdir()] if beside.exists() else []:
        assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(BadUsage):
        made.save(ledger.path)  # a file: the values stay
    assert ledger.releases()[0].has_values
    same_values(made, library.resume_release(ledger, 1))
    made.save(tmp_path / "out")
    assert not ledger.releases()[0].has_values
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "spent.db"]
    made.save(tmp_path / "again")  # the same values once more
    same_values(library.read_release(tmp_path / "again"), made)


def test_a_release_with_a_place_leaves_its_bundle_and_nothing_else(answers, ledger, tmp_path):
    made = publish(answers, ledger, out=tmp_path / "out")
    assert made.stored is None
    library.verify(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "spent.db"]
    assert ledger.releases()[0].completed_at is not None


def test_without_a_ledger_nothing_is_stored(answers, tmp_path):
    assert publish(answers, None, out=tmp_path / "out").stored is None
    assert publish(answers, None).stored is None
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_release_that_has_arrived_is_not_drawn_again(answers, ledger, tmp_path):
    publish(answers, ledger, out=tmp_path / "out")
    with refused(BadUsage, "release_arrived_values_removed") as caught:
        library.resume_release(ledger, 1, answers)
    assert not hasattr(caught.value, "__notes__")


def test_one_name_is_charged_once_and_its_values_stay_as_they_are(answers, ledger):
    name = ledger.name_reservation()
    first = publish(answers, ledger, reservation=name)
    stored = ledger.fetch(name)
    with refused(LedgerError, "reservation_charged_before_nothing"):
        publish(answers, ledger, reservation=name)
    assert ledger.fetch(name) == stored
    assert [one.reservation for one in ledger.releases()] == [name]
    same_values(first, library.resume_release(ledger, name))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("harm", ["removed", "changed"])
def test_a_release_whose_values_are_lost_is_void_and_never_drawn_again(
    answers, ledger, monkeypatch, inside, harm
):
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10**6 if inside else 10)
    with monkeypatch.context() as patch:
        patch.setattr(Delivery, "deliver", cut)
        with pytest.raises(PowerCut):
            publish(answers, ledger)
    spent = ledger.spent()
    if inside:
        change = {"removed": "DELETE FROM noisy", "changed": "UPDATE noisy SET content = x'00'"}
        connection = sqlite3.connect(ledger.path)
        with connection:
            connection.execute(change[harm])
        connection.close()
    else:
        (path,) = ledger.path.with_name("spent.db.values").iterdir()
        path.unlink() if harm == "removed" else path.write_bytes(b"other values" * 100)
    for _ in range(2):
        with refused(LedgerError, "release_void_values_drawn"):
            library.resume_release(ledger, 1, answers)
    assert [one.state for one in ledger.releases()] == ["void"]
    assert ledger.spent() == spent
    shown = discreet("ledger", "show", ledger.path).out
    assert "void" in shown
    assert "resume" not in shown


def cut(*given, **named):
    raise PowerCut


# --- died before values were stored -----------------------------------------------------------


MADE = [
    *((MECHANISMS[name](), "answers") for name in sorted(MECHANISMS)),
    (Margins(booklets=(("Item1", "Item2"), ("Item3", "Item4", "Item5")), clip=0.9), "answers"),
    (SparsePairs(edge_probability=1.0, noise_for="the drawn graph"), "answers"),
]


@pytest.mark.parametrize("mechanism", [made for made, _ in MADE], ids=lambda made: made.name)
def test_a_release_that_died_before_its_noise_is_made_from_the_answers(
    answers, ledger, mechanism, monkeypatch
):
    monkeypatch.setattr(library.Ledger, "store", cut)
    with pytest.raises(PowerCut):
        publish(answers, ledger, mechanism.name, mechanism=mechanism)
    monkeypatch.undo()
    spent = ledger.spent()
    with refused(BadUsage, "release_stopped_before_values"):
        library.resume_release(ledger, 1)
    found = library.resume_release(ledger, 1, answers)
    assert ledger.spent() == spent
    assert [entry.completed_at is not None for entry in ledger.releases()] == [True]
    entry = ledger.releases()[0]
    assert found.record["settings"] == json.loads(json.dumps(found.record["settings"]))
    assert found.guarantee.epsilon == entry.spend.epsilon
    assert {name: law["scale"] for name, law in found.record["noise"].items()} == {
        name: scale for name, (_, scale) in entry.order["laws"].items()
    }
    same_values(library.resume_release(ledger, 1, answers), found)


def test_a_ranking_that_died_before_its_noise_is_made_from_the_comparisons(ledger, tmp_path):
    with pytest.raises(PowerCut):
        publish_votes(ledger, noise=Broken())
    library.resume_release(ledger, 1, votes(), out=tmp_path / "out")
    made = library.read_released_ranking(tmp_path / "out")
    assert made.guarantee.unit == "one judge's whole set of comparisons"
    assert made.guarantee.ledger == ledger.id


def test_other_answers_are_refused_and_the_right_ones_still_taken(answers, ledger):
    with pytest.raises(PowerCut):
        publish(answers, ledger, noise=Broken())
    other = answers.to_array()
    other[0, 0] = 1 - other[0, 0]
    with refused(BadResponses, "these_not_answers_release"):
        library.resume_release(ledger, 1, Responses.from_array(other, items=LSAT_ITEMS))
    library.resume_release(ledger, 1, answers)


def test_resumed_noise_says_where_it_came_from(answers, ledger):
    with pytest.raises(PowerCut):
        publish(answers, ledger, noise=Broken())
    seeded = ExactNoise(SeededSource(1))
    assert not library.resume_release(ledger, 1, answers, noise=seeded).guarantee.is_private
    assert not library.resume_release(ledger, 1).guarantee.is_private


class Meanwhile(ExactNoise):
    """While this noise is drawn, something else happens."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def gaussian(self, sigma, size):
        if size and self.action is not None:
            action, self.action = self.action, None
            action()
        return super().gaussian(sigma, size)


def test_whoever_commits_first_decides_the_values_for_everybody(answers, ledger, tmp_path):
    others = []

    def resume():
        others.append(library.resume_release(ledger, 1, answers))

    slow = publish(answers, ledger, noise=Meanwhile(resume), out=tmp_path / "out")
    (fast,) = others
    same_values(slow, fast)
    same_values(library.read_release(tmp_path / "out"), fast)
    assert [one.state for one in ledger.releases()] == ["completed"]


def test_the_noise_of_whoever_was_first_says_whether_it_is_private(answers, ledger):
    seeded = ExactNoise(SeededSource(1))
    made = publish(
        answers,
        ledger,
        noise=Meanwhile(lambda: library.resume_release(ledger, 1, answers, noise=seeded)),
    )
    assert not made.guarantee.is_private
    assert not made.record["guarantee"]["is_private"]


def remove_everything_beside(ledger):
    """As somebody would who tidies up, or wants a second draw."""
    for path in ledger.path.parent.glob(f"{ledger.path.name}.*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_removing_what_lies_beside_the_ledger_gives_no_second_draw(answers, ledger, tmp_path):
    def tidy_up_and_resume():
        remove_everything_beside(ledger)
        library.resume_release(ledger, 1, answers, out=tmp_path / "second")

    made = []
    with contextlib.suppress(LedgerError):  # the first comes too late, and has nothing to show
        made.append(
            publish(answers, ledger, noise=Meanwhile(tidy_up_and_resume), out=tmp_path / "first")
        )
    made += [library.read_release(path) for path in tmp_path.iterdir() if path.is_dir()]
    assert len(ledger.releases()) == 1
    for one in made:
        same_values(one, made[0])


def test_a_release_killed_after_its_draw_and_tidied_up_is_not_drawn_again(answers, ledger):
    """Whatever was committed when the process died is delivered; what was not, nobody has seen."""
    drawn = []
    real = library.Ledger.store

    def die(self, reservation, parts):
        drawn.append(real(self, reservation, parts))
        raise PowerCut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library.Ledger, "store", die)
        with pytest.raises(PowerCut):
            publish(answers, ledger)
    remove_everything_beside(ledger)
    found = library.resume_release(ledger, 1, answers)
    assert b"".join(pack_release(found.noisy)) == drawn[0]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE releases SET stored_at = NULL, completed_at = NULL",
        "UPDATE events SET kind = 'void' WHERE kind = 'stored'",
        "DELETE FROM events WHERE kind = 'completed'",
        "DELETE FROM events WHERE kind IN ('stored', 'completed')",
        "UPDATE events SET body = replace(body, 'stored', 'void') WHERE kind = 'stored'",
        "UPDATE ledger SET head = (SELECT tag FROM events WHERE kind = 'charged')",
        "DELETE FROM events WHERE number = 3; "
        "UPDATE ledger SET head = (SELECT tag FROM events ORDER BY number DESC LIMIT 1)",
    ],
)
def test_a_finished_release_is_not_reopened_by_sql(answers, ledger, tmp_path, statement):
    publish(answers, ledger, out=tmp_path / "out")
    connection = sqlite3.connect(ledger.path)
    with contextlib.suppress(sqlite3.OperationalError), connection:  # no table of that name
        connection.executescript(statement)
    connection.close()
    with pytest.raises((LedgerError, BadUsage)) as caught:
        library.resume_release(ledger.path, 1, answers)
    assert caught.value.code in ("ledger_damaged_what_spent", "release_arrived_values_removed")


@pytest.mark.parametrize("name", ["../../evil", "..", "", "a/b", "-x", "a b", "x" * 65, "a\n"])
def test_a_reservation_is_a_name_and_no_path(answers, ledger, tmp_path, name):
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    inner = library.Ledger.create(folder / "spent.db", 10.0, 1e-5)
    with refused(BadUsage, "reservation_named_letters_digits"):
        publish(answers, inner, reservation=name)
    spend = pairs_spend()
    with refused(BadUsage, "reservation_named_letters_digits"):
        inner.reserve(spend, fingerprint="f", description="", reservation=name)
    assert inner.releases() == ()
    assert [path.name for path in folder.iterdir()] == ["spent.db"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "spent.db"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_draw_that_came_after_the_delivery_is_dropped(
    answers, ledger, tmp_path, monkeypatch, inside
):
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10**6 if inside else 10)

    def resume():
        library.resume_release(ledger, 1, answers, out=tmp_path / "fast")

    with refused(LedgerError, "release_delivered_another_process") as caught:
        publish(answers, ledger, noise=Meanwhile(resume), out=tmp_path / "slow")
    assert not hasattr(caught.value, "__notes__")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fast", "spent.db"]
    assert [one.state for one in ledger.releases()] == ["completed"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_draw_that_never_counted_goes_with_the_next_commit(
    answers, ledger, tmp_path, monkeypatch, inside
):
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10**6 if inside else 10)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.privacy.ledger.settle_draw", cut)
        with pytest.raises(PowerCut):
            publish(answers, ledger)
    (left,) = (tmp_path / "spent.db.values").iterdir()
    assert not any(left.read_bytes()[: ledger_values.KEY_BYTES])
    assert [one.state for one in ledger.releases()] == ["charged"]
    made = library.resume_release(ledger, 1, answers)
    assert not left.exists()
    assert (tmp_path / "spent.db.values").exists() != inside
    same_values(library.resume_release(ledger, 1), made)
    made.save(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "spent.db"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_draw_that_could_be_read_is_the_one_that_counts(
    answers, ledger, tmp_path, monkeypatch, inside
):
    """Died between the key and the commit: the ledger knows of no values, and the draw counts."""
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10**6 if inside else 10)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.privacy.ledger.write_inside", cut)
        with pytest.raises(PowerCut):
            publish(answers, ledger)
    (entry,) = ledger.releases()
    assert entry.state == "charged"
    read = ledger_values.read_draw(ledger.path, entry.reservation)
    made = library.resume_release(ledger, 1, answers, out=tmp_path / "out")
    assert b"".join(pack_release(made.noisy)) == read
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "spent.db"]


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (5 << 20) + 3])
def test_a_draw_is_read_back_as_it_was_and_only_with_its_key(ledger, monkeypatch, size):
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10)
    values = SeededSource(1).words(size // 8 + 1).tobytes()[:size]
    parts = [values[:7], values[7:], b""]
    path, key = ledger_values.write_draw(ledger.path, "mine", parts)
    assert path.stat().st_size == ledger_values.KEY_BYTES + size
    assert ledger_values.read_draw(ledger.path, "mine") is None
    other, _ = ledger_values.write_draw(ledger.path, "mine", [b"another draw"])
    assert ledger_values.settle_draw(ledger.path, "mine", path, key, parts) is parts
    assert ledger_values.settle_draw(ledger.path, "mine", other, key, [b"late"]) == [values]
    content = bytearray(path.read_bytes())
    for place in (0, ledger_values.KEY_BYTES, len(content) - 1):  # a flipped bit anywhere
        if place < len(content):
            path.write_bytes(bytes([*content[:place], content[place] ^ 1, *content[place + 1 :]]))
            assert ledger_values.read_draw(ledger.path, "mine") is None
    path.write_bytes(content)
    assert ledger_values.read_draw(ledger.path, "mine") == values
    ledger_values.remove_beside(ledger.path, "mine", keep_readable=True)
    assert list(path.parent.iterdir()) == [path]
    handle = path.open("rb")  # as if somebody could still read what was removed
    ledger_values.remove_beside(ledger.path, "mine")
    assert not any(handle.read(ledger_values.KEY_BYTES))
    handle.close()
    assert not path.parent.exists()


def test_two_draws_of_the_same_values_look_unlike_and_unlike_the_values(ledger):
    values = bytes(100_000)  # all zero, so that the files show the keystream itself
    files = [ledger_values.write_draw(ledger.path, "mine", [values])[0] for _ in range(2)]
    one, other = (np.frombuffer(path.read_bytes(), np.uint8)[32:] for path in files)
    assert len({path.name for path in files}) == 2
    for bits in (one, other, one ^ other):  # 800,000 fair coins: within five standard errors
        assert abs(np.unpackbits(bits).mean() - 0.5) < 5 * 0.5 / np.sqrt(8 * bits.size)


def test_delivered_values_are_overwritten_in_the_ledger(answers, ledger, tmp_path):
    made = publish(answers, ledger, "randomized-response")
    content = ledger.fetch(ledger.releases()[0].reservation)
    assert content in ledger.path.read_bytes()
    made.save(tmp_path / "out")
    assert content[-80:] not in ledger.path.read_bytes()


def pairs_spend():
    public = library.privacy.protocol.Public(tuple(LSAT_ITEMS), 5, "replace-one", 10)
    return DensePairs().calibrate(public, library.Budget(0.1), ExactNoise().source).spend


def test_a_charge_without_what_was_asked_for_is_not_resumed(ledger):
    ledger.reserve(pairs_spend(), fingerprint="f", description="")
    with refused(BadUsage, "release_charged_without_what"):
        library.resume_release(ledger, 1)


@pytest.mark.parametrize("name", ["7", "zz", ""])
def test_a_release_that_is_not_there_is_wrong_usage(answers, ledger, name, monkeypatch):
    # The beginning of a reservation is a name too, and one in sixteen begins with a 7.
    monkeypatch.setattr(type(ledger), "name_reservation", staticmethod(lambda: "ab" * 16))
    publish(answers, ledger)
    with refused(BadUsage, "called_releases_numbers_find", release="no release is"):
        library.resume_release(ledger, name)


# --- what an error after the charge says ------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyError, MemoryError, OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("moment", ["noise", "estimate", "bundle"])
def test_whatever_stops_a_paid_release_says_what_is_spent_and_what_to_do(
    answers, ledger, tmp_path, monkeypatch, kind, moment
):
    def fail(*given, **named):
        raise kind("something odd")

    class Odd(Broken):
        error = kind

    if moment == "estimate":
        monkeypatch.setattr("discreet.publishing.delivery.estimate_release", fail)
    if moment == "bundle":
        monkeypatch.setattr("discreet.atomic.StagedFolder.fill", fail)
    noise = Odd() if moment == "noise" else ExactNoise()
    with pytest.raises(kind) as stopped:
        publish(answers, ledger, noise=noise, out=tmp_path / "out")
    monkeypatch.undo()
    (note,) = stopped.value.__notes__
    assert "The budget is spent" in note
    assert "release 1 (pairs, epsilon 1, delta 1e-06)" in note
    assert f"discreet ledger resume {ledger.path} 1 --out DIR" in note
    assert note.endswith("--answers FILE") == (moment == "noise")
    library.resume_release(ledger, 1, answers, out=tmp_path / "out")
    library.verify(tmp_path / "out")


@pytest.mark.parametrize("moment", ["sync", "ledger", "unlock"])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_failure_after_the_bundle_appeared_says_that_it_is_there(
    answers, ledger, tmp_path, monkeypatch, kind, moment
):
    out = tmp_path / "out"
    if moment == "unlock" and kind is OSError and atomic.fcntl is None:
        pytest.skip("Windows leaves the file of a lock where it cannot be removed, and goes on")

    def fail_late(real):
        def wrapped(*given, **named):
            if (out / "privacy.json").exists():
                raise kind("something odd")
            return real(*given, **named)

        return wrapped

    if moment == "sync":
        monkeypatch.setattr("discreet.atomic.sync_folder", fail_late(atomic.sync_folder))
    if moment == "ledger":
        late = fail_late(library.Ledger.remove_values)
        monkeypatch.setattr(library.Ledger, "remove_values", late)
    if moment == "unlock":
        monkeypatch.setattr(Path, "unlink", fail_late(Path.unlink))
    with pytest.raises(kind) as stopped:
        publish(answers, ledger, out=out)
    monkeypatch.undo()
    told = " ".join(stopped.value.__notes__)
    assert f"{out} is complete" in told
    assert "was charged for release 1 (pairs, epsilon 1, delta 1e-06), once" in told
    assert "Do not run the release again" in told
    assert "did not arrive" not in told
    library.verify(out)
    if moment != "unlock":  # what the ledger could not note is had again, and is the same
        found = library.resume_release(ledger, 1, out=tmp_path / "again")
        same_values(found, library.read_release(out))


def test_a_bundle_that_was_saved_is_there_even_if_its_ledger_is_not(answers, ledger, tmp_path):
    made = publish(answers, ledger)
    ledger.path.rename(tmp_path / "elsewhere.db")
    with refused(LedgerError, "no_ledger_here_make") as stopped:
        made.save(tmp_path / "out")
    assert stopped.value.__notes__ == [
        f"This came after the bundle was written: {tmp_path / 'out'} is complete."
    ]
    library.verify(tmp_path / "out")


def test_an_interruption_inside_the_charge_is_explained_if_it_came_too_late(
    answers, ledger, monkeypatch
):
    real = library.Ledger.reserve

    def late(self, *given, **named):
        real(self, *given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(library.Ledger, "reserve", late)
    with pytest.raises(KeyboardInterrupt) as stopped:
        publish(answers, ledger)
    assert "The budget is spent" in stopped.value.__notes__[0]


def test_where_the_ledger_cannot_be_read_the_budget_may_be_spent(answers, ledger, monkeypatch):
    class Gone(Broken):
        def gaussian(self, sigma, size):
            if size:
                ledger.path.rename(ledger.path.with_name("elsewhere.db"))
            return super().gaussian(sigma, size)

    with pytest.raises(PowerCut) as stopped:
        publish(answers, ledger, noise=Gone())
    assert "may be spent" in stopped.value.__notes__[0]


# --- everything that can be refused is refused before the charge ------------------------------


@dataclass(frozen=True)
class Unknown(DensePairs):
    name: str = "unknown"


@dataclass(frozen=True)
class Unusable(DensePairs):
    """Its noise has a scale that no sampler takes."""

    def calibrate(self, public, budget, source):
        from dataclasses import replace
        from fractions import Fraction

        made = super().calibrate(public, budget, source)
        (law,) = made.laws.values()
        return replace(made, laws={"right_wrong": replace(law, scale=Fraction(2) ** 60)})


def nobody():
    return Responses.from_array(np.zeros((0, 5)), items=LSAT_ITEMS)


def nothing():
    return Responses.from_array(np.full((9, 5), np.nan), items=LSAT_ITEMS)


REFUSED = {
    "no estimator": (
        library.datasets.lsat,
        {"mechanism": Unknown()},
        "no_estimator_known_mechanism",
    ),
    "unusable scale": (
        library.datasets.lsat,
        {"mechanism": Unusable()},
        "must_rational_above_most",
    ),
    "nobody": (nobody, {"mechanism": "pairs"}, "nobody_data_nothing_release"),
    "nobody's margins": (nobody, {"mechanism": "margins"}, "nobody_data_nothing_release"),
    "nothing answered": (
        nothing,
        {"mechanism": "randomized-response"},
        "randomized_response_flips_answers",
    ),
    "below a file": (
        library.datasets.lsat,
        {"out": __file__ + "/out"},
        "nothing_written_choose_another",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_be_refused_is_refused_before_the_charge(ledger, tmp_path, what):
    make, settings, code = REFUSED[what]
    with refused(DiscreetError, code) as caught:
        publish(make(), ledger, **settings)
    assert not hasattr(caught.value, "__notes__")
    assert ledger.releases() == ()
    assert [path.name for path in tmp_path.iterdir()] == ["spent.db"]


@pytest.mark.filterwarnings("ignore:epsilon")
def test_an_epsilon_that_no_coin_has_is_refused_before_the_charge(answers, tmp_path):
    ledger = library.Ledger.create(tmp_path / "large.db", 1e7, 1e-5)
    with refused(BadUsage, "randomized_response_needs_epsilon"):
        library.release(
            answers,
            library.Budget(1e6, 0.0),
            items=LSAT_ITEMS,
            mechanism="randomized-response",
            ledger=ledger,
        )
    assert ledger.releases() == ()


@pytest.mark.filterwarnings("error:epsilon")
def test_a_warning_that_is_an_error_comes_before_the_charge(answers, tmp_path):
    ledger = library.Ledger.create(tmp_path / "large.db", 100.0, 1e-5)
    with pytest.raises(UserWarning, match="near-certain"):
        library.release(answers, library.Budget(8.0), items=LSAT_ITEMS, ledger=ledger)
    assert ledger.releases() == ()


def test_answers_that_cannot_be_counted_cost_nothing(answers, ledger, monkeypatch):
    def fail(*given, **named):
        raise ConnectionError("the server went away")

    monkeypatch.setattr("discreet.privacy.mechanisms.pairs.DensePairs.cells", fail)
    with pytest.raises(ConnectionError):
        publish(answers, ledger)
    assert ledger.releases() == ()


def test_answers_of_one_item_each_can_be_released(tmp_path):
    ledger = library.Ledger.create(tmp_path / "large.db", 100.0, 1e-5)
    cells = np.full((10, 5), np.nan)
    cells[np.arange(10), np.arange(10) % 5] = 1
    for number, name in enumerate(sorted(MECHANISMS), start=1):
        made = publish(Responses.from_array(cells, items=LSAT_ITEMS), ledger, name)
        assert np.isfinite(made.estimate.difficulty).all()
        assert len(ledger.releases()) == number


def test_room_for_the_values_is_taken_in_the_ledger_before_the_charge(ledger):
    ledger.make_room(1_000_000)
    roomy = ledger.path.stat().st_size
    assert roomy > 1_000_000
    name = ledger.reserve(pairs_spend(), fingerprint="f", description="")
    assert ledger.store(name, [bytes(1_000_000)]) == bytes(1_000_000)
    assert ledger.path.stat().st_size == roomy


def test_large_values_are_refused_before_the_charge_where_the_disk_has_no_room(
    answers, ledger, monkeypatch
):
    monkeypatch.setattr(ledger_values, "INSIDE_BYTES", 10)
    full = shutil.disk_usage(ledger.path.parent)._replace(free=100)
    monkeypatch.setattr("shutil.disk_usage", lambda _: full)
    with disk_full():
        publish(answers, ledger)
    assert ledger.releases() == ()


@pytest.mark.parametrize("step", ["make_room", "reserve"])
def test_a_full_disk_before_the_charge_costs_nothing(answers, ledger, tmp_path, monkeypatch, step):
    def full(*given, **named):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(library.Ledger, step, full)
    with disk_full():
        publish(answers, ledger, out=tmp_path / "out")
    assert ledger.releases() == ()
    assert [path.name for path in tmp_path.iterdir()] == ["spent.db"]


@pytest.mark.parametrize(("items", "name"), [(5, "pairs"), (60, "pairs"), (400, "sparse-pairs")])
def test_the_room_set_aside_is_enough_for_a_bundle(items, name, tmp_path, monkeypatch):
    names = [f"an item with a long name {number:04d}" for number in range(items)]
    cells = np.random.default_rng(0).integers(0, 2, (50, items))
    rooms = []
    from discreet import atomic

    real = atomic.fill_with_zeros
    monkeypatch.setattr(
        atomic, "fill_with_zeros", lambda handle, size: (rooms.append(size), real(handle, size))
    )
    library.release(
        Responses.from_array(cells, items=names),
        library.Budget(1.0),
        items=names,
        mechanism=name,
        out=tmp_path / "out",
    )
    assert rooms[0] >= BUNDLE_BYTES + items * ITEM_BYTES
    assert sum(rooms) >= sum(path.stat().st_size for path in (tmp_path / "out").iterdir())


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    rows = library.datasets.lsat().store.rows(0, 1000).tolist()
    lines = [",".join(LSAT_ITEMS), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    assert discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", 1).code == 0
    return tmp_path


def release(desk, *options, out="release"):
    return discreet("release", desk / "answers.csv", "--items", desk / "items.txt",
                    "--epsilon", 0.5, "--ledger", desk / "spent.db", "--out", desk / out,
                    *options)  # fmt: skip


@pytest.mark.parametrize("moment", ["noise", "bundle"])
@pytest.mark.parametrize(
    ("kind", "code"), [(KeyError, 1), (KeyboardInterrupt, 130), (MemoryError, 1)]
)
def test_the_command_line_says_how_to_resume_and_resumes(desk, monkeypatch, kind, code, moment):
    def fail(*given, **named):
        raise kind

    if moment == "noise":
        monkeypatch.setattr(library.Ledger, "store", fail)
    else:
        monkeypatch.setattr("discreet.atomic.StagedFolder.fill", fail)
    ended = release(desk)
    monkeypatch.undo()
    assert (ended.code, ended.out) == (code, "")
    assert "The budget is spent" in ended.err
    assert not (desk / "release").exists()
    shown = discreet("ledger", "show", desk / "spent.db").out
    typed = f"discreet ledger resume {desk / 'spent.db'} 1 --out DIR"
    assert typed in ended.err
    assert typed in shown
    again = ["--answers", desk / "answers.csv"] if moment == "noise" else []
    assert shown.rstrip().endswith("--answers FILE") == bool(again)
    resumed = discreet("ledger", "resume", desk / "spent.db", 1, "--out", desk / "release", *again)
    assert resumed.code == 0, resumed.err
    assert "epsilon 0.5" in resumed.out
    library.verify(desk / "release")
    assert "resume" not in discreet("ledger", "show", desk / "spent.db").out
    (entry,) = discreet("ledger", "show", desk / "spent.db", "--json").document["releases"]
    assert entry["completed_at"]


def test_a_ranking_is_resumed_on_the_command_line_too(tmp_path, monkeypatch):
    data = votes()
    made = zip(data.judge, data.winner, data.loser, strict=True)
    rows = [f"{judge},{data.items[won]},{data.items[lost]}" for judge, won, lost in made]
    (tmp_path / "votes.csv").write_text("\n".join(["who,better,worse", *rows]))
    (tmp_path / "items.txt").write_text("\n".join(data.items))
    discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", 1)
    names = ["--judge", "who", "--winner", "better", "--loser", "worse"]
    monkeypatch.setattr(library.Ledger, "store", cut)
    with pytest.raises(PowerCut):
        discreet("compare", "release", tmp_path / "votes.csv", "--items", tmp_path / "items.txt",
                 "--max-comparisons", 5, "--epsilon", 0.5, "--ledger", tmp_path / "spent.db",
                 "--out", tmp_path / "out", *names)  # fmt: skip
    monkeypatch.undo()
    resumed = discreet("ledger", "resume", tmp_path / "spent.db", 1, "--out", tmp_path / "out",
                       "--answers", tmp_path / "votes.csv", "--json", *names)  # fmt: skip
    assert resumed.code == 0, resumed.err
    assert [row["item"] for row in resumed.document["items"]] == list(data.items)
    library.verify(tmp_path / "out")


def test_a_full_disk_after_the_charge_does_not_advise_to_pay_again(desk, monkeypatch):
    def full(*given, **named):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr("discreet.atomic.StagedFolder.fill", full)
    ended = release(desk)
    assert ended.code == 1
    assert "the disk is full" in ended.err
    assert "run the command again" not in ended.err
    assert "ledger resume" in ended.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("command", "more"),
    [("release", []), ("release", ["--json"]), ("resume", []), ("resume", ["--quiet"])],
)
def test_a_delivered_release_that_cannot_be_shown_is_not_paid_for_again(
    desk, command, more, monkeypatch
):
    typed = ["release", desk / "answers.csv", "--items", desk / "items.txt", "--epsilon", 0.5,
             "--ledger", desk / "spent.db", "--out", desk / "out"]  # fmt: skip
    if command == "resume":
        with monkeypatch.context() as patch:
            patch.setattr("discreet.atomic.StagedFolder.fill", cut)
            with pytest.raises(PowerCut):
                discreet(*typed)
        typed = ["ledger", "resume", desk / "spent.db", 1, "--out", desk / "out"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *map(str, typed), *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "run the command again" not in done.stderr
    assert f"{desk / 'out'} holds the bundle" in done.stderr
    assert "the ledger was charged for release 1" in done.stderr
    assert "Do not run the release again" in done.stderr
    library.verify(desk / "out")
    (entry,) = library.Ledger.open(desk / "spent.db").releases()
    assert entry.state == "completed"


@pytest.mark.parametrize("where", ["dangling", "dangling/out", "bundle-link", "n" * 256])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_place_that_cannot_be_filled_costs_nothing(desk, where, force):
    (desk / "dangling").symlink_to(desk / "nowhere")
    assert release(desk, out="bundle").code == 0
    (desk / "bundle-link").symlink_to(desk / "bundle")
    ended = release(desk, *force, out=where)
    assert ended.code == 2
    assert len(library.Ledger.open(desk / "spent.db").releases()) == 1


# --- killed, competing, without room ----------------------------------------------------------


def drive(*arguments):
    done = subprocess.run(
        [sys.executable, str(DRIVER), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def can_mount(tmp_path):
    place = tmp_path / "try"
    place.mkdir()
    tried = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if tried.returncode == 0:
        subprocess.run(["umount", str(place)], check=True)
    return tried.returncode == 0


def test_a_release_killed_at_some_steps_is_never_lost(tmp_path):
    found = drive("kill_at_every_step", tmp_path, 60)
    assert found["troubles"] == []
    assert found["charged"] >= 2


def test_a_few_releases_at_once_are_all_delivered_or_refused(tmp_path):
    found = drive("compete", tmp_path / "own", 3, 3)
    assert found == {"troubles": [], "charged": 3, "codes": [0]}
    found = drive("compete", tmp_path / "same", 3, 1)
    assert found == {"troubles": [], "charged": 1, "codes": [0, 2]}


WITH_LITTLE_MEMORY = """
import resource, sys
import numba, scipy.linalg, scipy.stats
import discreet, discreet.publishing.release
answers = discreet.datasets.lsat()
ledger = discreet.Ledger.open("spent.db")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 1_000_000,) * 2)
try:
    discreet.release(answers, epsilon=0.1, items=list(answers.items), ledger=ledger)
except discreet.errors.OutOfReach as error:
    print(error)
"""


@pytest.mark.posix
@pytest.mark.parametrize(("megabytes", "count"), [(20, 0), (120, 0), (900, 1)])
def test_a_process_with_little_memory_is_refused_before_the_charge_or_delivers(
    tmp_path, megabytes, count
):
    ledger = library.Ledger.create(tmp_path / "spent.db", 1.0)
    done = subprocess.run(
        [sys.executable, "-c", WITH_LITTLE_MEMORY, str(megabytes)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ("Nothing was charged. Raise the limit (ulimit -v" in done.stdout) == (count == 0)
    assert [entry.state for entry in ledger.releases()] == ["completed"] * count


def test_a_release_that_needs_more_memory_than_there_is_costs_nothing(ledger, monkeypatch):
    names = [f"item{number}" for number in range(400)]
    cells = np.random.default_rng(0).integers(0, 2, (50, 400))
    monkeypatch.setattr("discreet.resources.available_memory", lambda: 200 << 20)
    monkeypatch.setattr("discreet.publishing.delivery.SQUARE_BYTES", 2000)
    with refused(BadUsage, "release_needs_about_mb", needed="320", free="210"):
        publish(Responses.from_array(cells, items=names), ledger, "margins", items=names)
    assert ledger.releases() == ()


def test_a_nearly_full_disk_costs_nothing_or_delivers(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("a small disk can be mounted by root only")
    found = drive("lack_room", tmp_path, "both", 4, 72, 400)
    assert found == {"troubles": [], "charged": 1, "refused": 2}


def test_kills_deletions_and_copies_at_random_moments_give_no_second_draw(tmp_path):
    found = drive("rounds", tmp_path, 4)
    assert found["troubles"] == []
    assert found["bundles"] >= 2


#: Values in the ledger, in a file beside it, and so many that SQLite writes them before its commit.
SIZES = [(8_000, 10**6), (8_000, 10), pytest.param(8_000_000, 10**8, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("size", "inside"), SIZES)
def test_a_draw_that_can_be_read_at_any_kill_is_the_one_that_counts(tmp_path, size, inside):
    found = drive("peek", tmp_path, size, inside, "none")
    assert found["troubles"] == []
    assert found["readable before the commit"] >= 3


@pytest.mark.parametrize("fault", ["no cipher", "the last draw counts"])
def test_a_lost_safeguard_of_the_draw_is_found(tmp_path, fault):
    assert drive("peek", tmp_path, 8_000, 10, fault)["troubles"]


@pytest.mark.slow
def test_200_kills_deletions_and_copies_at_random_moments_give_no_second_draw(tmp_path):
    found = drive("rounds", tmp_path, 200)
    assert found["troubles"] == []
    assert found["bundles"] >= 150
    assert found["void"] >= 5
    assert found["second draws"] >= 2  # of restored copies, and `ledger check` named each


@pytest.mark.slow
def test_a_release_killed_at_every_step_is_never_lost(tmp_path):
    found = drive("kill_at_every_step", tmp_path, 1)
    assert found["troubles"] == []
    assert found["charged"] >= 30


@pytest.mark.slow
def test_200_kills_at_random_moments_lose_nothing(tmp_path):
    found = drive("kill_at_random", tmp_path, 200)
    assert found["troubles"] == []
    assert found["charged"] >= 20


@pytest.mark.slow
@pytest.mark.parametrize("places", [50, 5, 1])
def test_50_concurrent_releases_are_all_delivered_or_refused(tmp_path, places):
    found = drive("compete", tmp_path, 50, places)
    assert found["troubles"] == []
    assert 1 <= found["charged"] < 50
    assert set(found["codes"]) <= {0, 2, 4}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["both", "ledger", "bundle"])
def test_every_third_kilobyte_of_a_full_disk_costs_nothing_or_delivers(tmp_path, what):
    if not can_mount(tmp_path):
        pytest.skip("a small disk can be mounted by root only")
    found = drive("lack_room", tmp_path, what, *range(0, 220, 3))
    assert found["troubles"] == []
    assert found["refused"] >= 1
