"""The noisy values and the covariance in a bundle: published, reproducible, read back."""

import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest

import discreet
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.privacy.wall import Release
from discreet.publishing import bundle as bundles
from discreet.publishing import bundle as noisy
from discreet.publishing.bundle import hash_content, noisy_bytes, read_noisy, seal_record
from discreet.secure import SeededSource
from refusals import refused

ITEMS = ("Item1", "Item2", "Item3", "Item4", "Item5")
HIDING = [
    name for name, entry in mechanisms_for("answers").items() if entry().hides_pattern
]  # fmt: skip


def publish(mechanism="pairs", *, epsilon=1.0, delta=1e-6, **how):
    return discreet.release(
        discreet.datasets.lsat(),
        discreet.Budget(epsilon, delta),
        items=ITEMS,
        mechanism=mechanism,
        noise=ExactNoise(SeededSource(5)),
        **how,
    )


def rewrite(folder, content):
    """Replace the archive and mend the checksums, as somebody would who means harm."""
    (folder / "noisy.npz").write_bytes(content)
    record = json.loads((folder / "privacy.json").read_text())
    files = {**record["files"], "noisy.npz": hash_content(content)}
    (folder / "privacy.json").write_text(seal_record(record, files))


@pytest.mark.parametrize("mechanism", HIDING)
def test_a_bundle_holds_the_values_and_a_fit_of_them_gives_the_same_numbers(mechanism, tmp_path):
    delta = 0.0 if mechanism == "laplace-pairs" else 1e-6
    made = publish(mechanism, delta=delta)
    made.save(tmp_path / "out")
    again = discreet.read_release(tmp_path / "out")
    assert isinstance(again.noisy, Release)
    assert set(again.noisy.values) == set(made.noisy.values)
    for name, values in made.noisy.values.items():
        np.testing.assert_array_equal(again.noisy.values[name], values)
    assert dict(again.noisy.laws) == dict(made.noisy.laws)
    assert dict(again.noisy.settings) == dict(made.noisy.settings)
    assert again.noisy.public == made.noisy.public
    assert again.noisy.guarantee == made.guarantee
    np.testing.assert_array_equal(again.estimate.covariance, made.estimate.covariance)
    refitted = discreet.refit(tmp_path / "out")
    np.testing.assert_array_equal(refitted.difficulty, made.estimate.difficulty)
    np.testing.assert_array_equal(refitted.covariance, made.estimate.covariance)


def test_a_release_of_comparisons_is_refitted_too(tmp_path):
    votes = discreet.simulate_comparisons(300, 8, 5, rng=np.random.default_rng(1)).comparisons
    objects = [f"object {number}" for number in range(8)]
    made = discreet.release_comparisons(
        votes, discreet.Budget(2.0), items=objects, max_comparisons=5, out=tmp_path / "out"
    )
    refitted = discreet.refit(tmp_path / "out")
    np.testing.assert_array_equal(refitted.difficulty, made.estimate.difficulty)
    assert discreet.read_released_ranking(tmp_path / "out").noisy.public == made.noisy.public


def test_the_bundle_written_again_is_the_same_byte_for_byte(tmp_path):
    publish().save(tmp_path / "one")
    publish().save(tmp_path / "other")
    discreet.read_release(tmp_path / "one").save(tmp_path / "again")
    for path in (tmp_path / "one").iterdir():
        for folder in ("other", "again"):
            assert (tmp_path / folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_any_program_that_knows_numpy_reads_the_archive(tmp_path):
    made = publish()
    made.save(tmp_path / "out")
    with np.load(tmp_path / "out" / "noisy.npz", allow_pickle=False) as found:
        assert sorted(found) == ["covariance", "laws", "public", "settings", "value/right_wrong"]
        assert found["covariance"].dtype == np.float64
        assert found["value/right_wrong"].dtype == np.int64
        (law,) = made.noisy.laws.values()
        laws = json.loads(found["laws"].item())
        assert laws == {"right_wrong": ["gaussian", str(law.scale)]}


def test_nothing_but_noisy_values_and_public_facts_is_in_the_archive():
    made = publish()
    with zipfile.ZipFile(io.BytesIO(noisy_bytes(made.noisy, made.estimate))) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert all(not entry.comment and not entry.extra for entry in archive.infolist())
        assert archive.comment == b""
        facts = json.loads(archive.read("public.npy").partition(b"\n")[2])
    assert facts["persons"] == made.record["persons"]
    assert facts["items"] == list(ITEMS)


def test_randomised_counts_with_an_undeclared_pattern_stay_out(tmp_path):
    publish("randomized-response", delta=0.0).save(tmp_path / "out")
    assert not (tmp_path / "out" / "noisy.npz").exists()
    again = discreet.read_release(tmp_path / "out")
    assert again.noisy is None
    assert again.estimate.covariance is None
    with refused(BadUsage, "holds_no_noisy_values", noisy_file="noisy.npz"):
        discreet.refit(tmp_path / "out")


def hold_anywhere(value, depth=6):
    """Yield every array that can be reached from a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif depth and isinstance(value, dict):
        for one in value.values():
            yield from hold_anywhere(one, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for one in value:
            yield from hold_anywhere(one, depth - 1)
    elif depth and hasattr(value, "__dict__"):
        yield from hold_anywhere(vars(value), depth - 1)


@pytest.mark.parametrize("resumed", [False, True])
def test_what_everybody_may_see_of_randomized_response_holds_no_pattern(resumed, tmp_path):
    """Counts of flipped answers show exactly how many answered two items together."""
    rows = discreet.datasets.lsat().to_array().astype(float)
    rows[np.random.default_rng(2).random(rows.shape) < 0.3] = np.nan
    answers = discreet.Responses.from_array(rows, items=ITEMS)
    book = discreet.Ledger.create(tmp_path / "spent.db", 3.0)
    told = {"items": ITEMS, "mechanism": "randomized-response", "ledger": book}
    made = discreet.release(answers, discreet.Budget(1.0, 0.0), **told)
    if resumed:
        made = discreet.resume_release(book, 1)
    assert made.noisy is None
    assert made.estimate.covariance is None
    there = (~np.isnan(rows)).astype(int)
    together = there.T @ there
    pairs = [value for value in hold_anywhere(made) if value.shape == together.shape]
    assert not any((value == together).all() for value in pairs)
    assert not pairs
    made.save(tmp_path / "out")
    assert discreet.read_release(tmp_path / "out").noisy is None


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [(RandomizedResponse(public_pattern=True), 0.0), (RandomizedResponse("trusted"), 1e-6)],
)
def test_randomised_counts_with_a_pattern_that_is_known_are_published(mechanism, delta, tmp_path):
    made = publish(mechanism, delta=delta)
    made.save(tmp_path / "out")
    np.testing.assert_array_equal(
        discreet.refit(tmp_path / "out").difficulty, made.estimate.difficulty
    )


def test_many_items_have_their_values_published_and_no_covariance(tmp_path, monkeypatch):
    for module in (noisy, bundles):
        monkeypatch.setattr(module, "COVARIANCE_ITEMS", 4)
    made = publish()
    made.save(tmp_path / "out")
    again = discreet.read_release(tmp_path / "out")
    assert again.estimate.covariance is None
    np.testing.assert_array_equal(
        discreet.refit(tmp_path / "out").covariance, made.estimate.covariance
    )


def test_a_bundle_of_an_earlier_version_has_no_values(tmp_path):
    made = publish()
    dataclasses.replace(made, noisy=None).save(tmp_path / "out")
    discreet.verify(tmp_path / "out")
    assert discreet.read_release(tmp_path / "out").noisy is None


def spoil_covariance(made):
    from dataclasses import replace

    return replace(made.estimate, covariance=made.estimate.covariance * 4)


def compressed(content):
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as found,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in found.namelist():
            made.writestr(name, found.read(name))
    return file.getvalue()


def without(content, left_out):
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as found, zipfile.ZipFile(file, "w") as made:
        for name in found.namelist():
            if name != left_out:
                made.writestr(name, found.read(name))
    return file.getvalue()


def huge(content):
    """An array that claims to be larger than any memory."""
    file = io.BytesIO()
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000), }"
    array = b"\x93NUMPY\x01\x00" + (len(head) + 1).to_bytes(2, "little") + head + b"\n"
    with zipfile.ZipFile(io.BytesIO(content)) as found, zipfile.ZipFile(file, "w") as made:
        for name in found.namelist():
            made.writestr(name, array if name == "covariance.npy" else found.read(name))
    return file.getvalue()


SPOILT = {
    "nothing": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "compressed": compressed,
    "no laws": lambda content: without(content, "laws.npy"),
    "no public": lambda content: without(content, "public.npy"),
    "huge": huge,
}


@pytest.mark.parametrize("what", SPOILT)
def test_an_archive_that_no_release_wrote_is_refused_even_with_mended_checksums(what, tmp_path):
    folder = tmp_path / "out"
    publish().save(folder)
    rewrite(folder, SPOILT[what]((folder / "noisy.npz").read_bytes()))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.verify(folder)
    assert caught.value.facts["problem"].startswith("noisy.npz cannot be read")


def test_a_covariance_that_does_not_fit_the_table_is_refused(tmp_path):
    made = publish()
    made.save(tmp_path / "out")
    rewrite(tmp_path / "out", noisy_bytes(made.noisy, spoil_covariance(made)))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.read_release(tmp_path / "out")
    assert "does not fit the standard errors" in caught.value.facts["problem"]


def test_values_of_another_release_are_refused():
    made = publish()
    content = noisy_bytes(made.noisy, made.estimate)
    other = {**made.record, "items": ["a", "b", "c", "d", "e"]}
    with pytest.raises(ValueError, match="other items"):
        read_noisy(content, other, made.estimate)


def test_a_place_without_room_for_the_values_is_refused_before_the_charge(tmp_path, monkeypatch):
    from discreet.atomic import StagedFolder

    ledger = discreet.Ledger.create(tmp_path / "spent.db", 1.0)
    real = StagedFolder.make_room
    asked = []

    def make_room(self, size):
        asked.append(size)
        if len(asked) > 1:
            raise OSError(28, "No space left on device")
        real(self, size)

    monkeypatch.setattr(StagedFolder, "make_room", make_room)
    with pytest.raises((OSError, DiscreetError)):
        publish(ledger=ledger, out=tmp_path / "out")
    assert asked[1] >= 8 * (5 * 4 + 5 * 5)
    assert ledger.releases() == ()
