"""A release that is paid for arrives, whatever stops it, and without paying again."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage, DiscreetError, LedgerError
from discreet.privacy.ledger.file import Vault, find_vault, open_vault
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs, SparsePairs
from discreet.privacy.noise import ExactNoise
from discreet.publishing.delivery import BUNDLE_BYTES, ITEM_BYTES, Delivery
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons

MECHANISMS = mechanisms_for("answers")

DRIVER = Path(__file__).with_name("delivery_driver.py")
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
    np.testing.assert_array_equal(one.estimate.difficulty, other.estimate.difficulty)
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
    assert not lost.stored.exists()


def test_stored_values_are_private_and_go_when_the_bundle_is_on_disk(answers, ledger, tmp_path):
    old = os.umask(0)
    try:
        made = publish(answers, ledger)
    finally:
        os.umask(old)
    assert made.stored.stat().st_mode & 0o777 == 0o600
    assert made.stored.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(BadUsage):
        made.save(ledger.path)  # a file: the values stay
    assert made.stored.exists()
    made.save(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "spent.db"]


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
    with pytest.raises(BadUsage, match="has arrived") as refused:
        library.resume_release(ledger, 1, answers)
    assert not hasattr(refused.value, "__notes__")


def test_one_name_is_charged_once_and_its_values_stay_as_they_are(answers, ledger, monkeypatch):
    name = ledger.name_reservation()
    first = publish(answers, ledger, reservation=name)
    vault = find_vault(ledger.path, name)
    stored = vault.read_bytes()
    with pytest.raises(LedgerError, match="was charged before"):
        publish(answers, ledger, reservation=name)
    assert vault.read_bytes() == stored
    assert [one.reservation for one in ledger.releases()] == [name]
    same_values(first, library.resume_release(ledger, name))
    # Without the check the room for the second release is made where the values are.
    monkeypatch.setattr(Delivery, "_check_uncharged", lambda _: None)
    with pytest.raises(LedgerError):
        publish(answers, ledger, reservation=name)
    assert vault.read_bytes() != stored
    assert len(ledger.releases()) == 1


def test_noise_is_not_drawn_again_where_stored_values_were_lost(answers, ledger, monkeypatch):
    monkeypatch.setattr(Delivery, "deliver", cut)
    with pytest.raises(PowerCut):
        publish(answers, ledger)
    monkeypatch.undo()
    find_vault(ledger.path, ledger.releases()[0].reservation).unlink()
    with pytest.raises(LedgerError, match="Noise is drawn once for one charge"):
        library.resume_release(ledger, 1, answers)


def cut(*given, **named):
    raise PowerCut


def test_half_stored_values_are_as_good_as_none(tmp_path):
    whole = [b"values", b" in parts"]
    with open_vault(tmp_path / "spent.db", "r") as vault:
        vault.make_room(100)
        assert vault.read() is None
        vault.keep(whole)
        assert vault.read() == b"values in parts"
        content = vault.path.read_bytes()
        for size in range(len(content) - (100 - len(b"".join(whole)))):
            vault.path.write_bytes(content[:size])
            assert vault.read() is None
        for place in range(0, 71, 7):
            vault.path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
            assert vault.read() is None


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
    monkeypatch.setattr(Vault, "keep", cut)
    with pytest.raises(PowerCut):
        publish(answers, ledger, mechanism.name, mechanism=mechanism)
    monkeypatch.undo()
    spent = ledger.spent()
    with pytest.raises(BadUsage, match="needs the answers again"):
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
    with pytest.raises(BadResponses, match="not the answers"):
        library.resume_release(ledger, 1, Responses.from_array(other, items=LSAT_ITEMS))
    library.resume_release(ledger, 1, answers)


def test_resumed_noise_says_where_it_came_from(answers, ledger):
    with pytest.raises(PowerCut):
        publish(answers, ledger, noise=Broken())
    seeded = ExactNoise(SeededSource(1))
    assert not library.resume_release(ledger, 1, answers, noise=seeded).guarantee.is_private
    assert not library.resume_release(ledger, 1).guarantee.is_private


def test_two_cannot_resume_one_release_at_once(answers, ledger):
    with pytest.raises(PowerCut):
        publish(answers, ledger, noise=Broken())
    with (
        open_vault(ledger.path, ledger.releases()[0].reservation),
        pytest.raises(LedgerError, match="another process is just finishing"),
    ):
        library.resume_release(ledger, 1, answers)


def test_a_release_of_an_earlier_version_is_named_as_one(ledger):
    spend = (
        DensePairs()
        .calibrate(
            library.privacy.protocol.Public(tuple(LSAT_ITEMS), 5, "replace-one", 10),
            library.Budget(0.1),
            ExactNoise().source,
        )
        .spend
    )
    ledger.reserve(spend, fingerprint="f", description="")
    with pytest.raises(BadUsage, match="did not record what was asked for"):
        library.resume_release(ledger, 1)


@pytest.mark.parametrize("name", ["7", "zz", ""])
def test_a_release_that_is_not_there_is_wrong_usage(answers, ledger, name, monkeypatch):
    # The beginning of a reservation is a name too, and one in sixteen begins with a 7.
    monkeypatch.setattr(type(ledger), "name_reservation", staticmethod(lambda: "ab" * 16))
    publish(answers, ledger)
    with pytest.raises(BadUsage, match="no release is called"):
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
        monkeypatch.setattr("discreet.atomic.Place.fill", fail)
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
    "no estimator": (library.datasets.lsat, {"mechanism": Unknown()}, "no estimator"),
    "unusable scale": (
        library.datasets.lsat,
        {"mechanism": Unusable()},
        "the scale of the noise on right_wrong",
    ),
    "nobody": (nobody, {"mechanism": "pairs"}, "nobody"),
    "nobody's margins": (nobody, {"mechanism": "margins"}, "nobody"),
    "nothing answered": (nothing, {"mechanism": "randomized-response"}, "every answer here is"),
    "below a file": (library.datasets.lsat, {"out": __file__ + "/out"}, "nothing can be written"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_be_refused_is_refused_before_the_charge(ledger, tmp_path, what):
    make, settings, words = REFUSED[what]
    with pytest.raises(DiscreetError, match=words) as refused:
        publish(make(), ledger, **settings)
    assert not hasattr(refused.value, "__notes__")
    assert ledger.releases() == ()
    assert [path.name for path in tmp_path.iterdir()] == ["spent.db"]


@pytest.mark.filterwarnings("ignore:epsilon")
def test_an_epsilon_that_no_coin_has_is_refused_before_the_charge(answers, tmp_path):
    ledger = library.Ledger.create(tmp_path / "large.db", 1e7, 1e-5)
    with pytest.raises(BadUsage, match="needs epsilon from 0 to"):
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


@pytest.mark.parametrize("step", ["make_room", "reserve"])
def test_a_full_disk_before_the_charge_costs_nothing(answers, ledger, tmp_path, monkeypatch, step):
    def full(*given, **named):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(Vault if step == "make_room" else library.Ledger, step, full)
    with pytest.raises(OSError, match="No space left"):
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
        monkeypatch.setattr(Vault, "keep", fail)
    else:
        monkeypatch.setattr("discreet.atomic.Place.fill", fail)
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
    monkeypatch.setattr(Vault, "keep", cut)
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

    monkeypatch.setattr("discreet.atomic.Place.fill", full)
    ended = release(desk)
    assert ended.code == 1
    assert "the disk is full" in ended.err
    assert "run the command again" not in ended.err
    assert "ledger resume" in ended.err


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
    found = drive("kill_at_every_step", tmp_path, 17)
    assert found["troubles"] == []
    assert found["charged"] >= 2


def test_a_few_releases_at_once_are_all_delivered_or_refused(tmp_path):
    found = drive("compete", tmp_path / "own", 3, 3)
    assert found == {"troubles": [], "charged": 3, "codes": [0]}
    found = drive("compete", tmp_path / "same", 3, 1)
    assert found == {"troubles": [], "charged": 1, "codes": [0, 2]}


def test_a_nearly_full_disk_costs_nothing_or_delivers(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("a small disk can be mounted by root only")
    found = drive("lack_room", tmp_path, "both", 4, 20, 400)
    assert found == {"troubles": [], "charged": 1, "refused": 2}


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
def test_every_kilobyte_of_a_full_disk_costs_nothing_or_delivers(tmp_path, what):
    if not can_mount(tmp_path):
        pytest.skip("a small disk can be mounted by root only")
    found = drive("lack_room", tmp_path, what, *range(65))
    assert found["troubles"] == []
    assert found["refused"] >= 1
