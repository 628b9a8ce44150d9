"""Files: whole or not at all, and confidential ones readable by their owner alone."""

import os
import stat
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.atomic import make_folder, make_temporary, staged, write_text
from discreet.coding.reading import Reading
from discreet.readers.streamed.counting import count_source
from discreet.report.formats import write_table
from discreet.tables.resources import Resources

UMASKS = [0o000, 0o022, 0o077, 0o777]


@contextmanager
def umask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder):
    """Every file and folder below a folder, with its mode."""
    found = Path(folder).rglob("*")
    return {str(one.relative_to(folder)): stat.S_IMODE(one.stat().st_mode) for one in found}


def private(folder):
    found = modes(folder)
    return found and all(mode & 0o077 == 0 for mode in found.values())


@pytest.mark.parametrize("mask", UMASKS)
@pytest.mark.posix
def test_what_is_confidential_is_its_owners_whatever_the_umask(tmp_path, mask):
    with umask(mask):
        write_text(tmp_path / "new" / "deep" / "table.csv", "a\r\nb\n")
    assert modes(tmp_path) == {"new": 0o700, "new/deep": 0o700, "new/deep/table.csv": 0o600}
    assert (tmp_path / "new/deep/table.csv").read_bytes() == b"a\r\nb\n"


@pytest.mark.parametrize("mask", UMASKS)
@pytest.mark.posix
def test_what_is_public_can_be_read_by_everybody_whatever_the_umask(tmp_path, mask):
    with umask(mask):
        write_text(tmp_path / "new" / "page.html", "", private=False)
    assert modes(tmp_path) == {"new": 0o755, "new/page.html": 0o644}


@pytest.mark.posix
def test_a_file_that_others_could_read_is_replaced_by_one_that_they_cannot(tmp_path):
    old = tmp_path / "table.csv"
    old.write_text("old")
    old.chmod(0o666)
    tmp_path.chmod(0o755)
    with old.open() as held:
        write_text(old, "confidential")
        assert held.read() == "old"  # whoever had it open sees nothing of the new one
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_file_is_its_owners_from_the_first_byte(tmp_path):
    with (
        umask(0),
        staged(tmp_path, ["table.csv"]) as stage,
        (stage / "table.csv").open("w") as file,
    ):
        assert private(tmp_path)
        file.write("row")
        file.flush()
        assert private(tmp_path)
    assert private(tmp_path)


def fail_half_way(folder, *names):
    with staged(folder, names) as stage:
        (stage / names[0]).write_text("half")
        raise RuntimeError


def test_what_fails_leaves_neither_files_nor_folders(tmp_path):
    with pytest.raises(RuntimeError):
        fail_half_way(tmp_path / "a" / "b", "one", "two")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_leaves_the_old_file(tmp_path):
    (tmp_path / "one").write_text("old")
    with pytest.raises(RuntimeError):
        fail_half_way(tmp_path, "one")
    assert (tmp_path / "one").read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["one"]


def test_a_folder_that_exists_stays_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    assert make_folder(tmp_path) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    with umask(0o777):
        assert modes(make_temporary(tmp_path / "spill", "rows-").parent.parent).values()
    assert set(modes(tmp_path).values()) == {0o700}


@pytest.fixture(scope="module")
def answers():
    return library.simulate(200, 5, rng=np.random.default_rng(3)).responses


@pytest.mark.posix
def test_every_writer_of_the_library_keeps_its_file_private(tmp_path, answers):
    estimate = library.fit(answers)
    tmp_path.chmod(0o755)
    with umask(0):
        for name in ("estimate.csv", "estimate.parquet"):
            write_table(tmp_path / name, estimate)
        library.count_pairs(answers).save(tmp_path / "counts.npz")
        bank = library.create_bank(estimate, scale="s", source="first")
        library.write_bank(tmp_path / "bank.csv", bank)
    assert len(modes(tmp_path)) == 4
    assert private(tmp_path)


@pytest.fixture
def table(tmp_path_factory, answers):
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    rows = ["sex,person,q1,q2,q3,q4,q5"]
    for person, row in enumerate(answers.rows(0, 200).tolist()):
        rows.append(",".join(map(str, ["mf"[person % 2], f"p{person}", *row])))
    path.write_text("\n".join(rows))
    return path


def test_every_command_keeps_what_is_confidential_private(tmp_path, table):
    reading = ("--person", "person", "--group", "sex")
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    with umask(0):
        for out in (there, tmp_path / "new" / "deep"):
            assert discreet("fit", table, *reading, "--out", out).code == 0
            assert discreet("dif", table, *reading, "--out", out).code == 0
            assert discreet("score", table, *reading, "--with", out, "--out", out).code == 0
            linked = out / "linked"
            assert discreet("link", out, out, "--out", linked).code == 0
            assert discreet("result", "report", table, *reading, "--out", out / "report").code == 0
            assert (
                discreet("table", "counts", table, *reading, "--out", out / "counts.npz").code == 0
            )
            merged = out / "merged.npz"
            assert discreet("table", "merge", out / "counts.npz", "--out", merged).code == 0
            bank = out / "bank.csv"
            assert discreet("bank", "create", bank, out, "--scale", "s").code == 0
            again = discreet("fit", table, *reading, "--out", out, "--force")
            assert again.code == 0
    found = modes(tmp_path)
    assert found.pop("there") == 0o755
    assert len(found) >= 2 * 16 + 2
    assert all(mode & 0o077 == 0 for mode in found.values()), found


def test_the_demo_leaves_nothing_confidential_to_others(tmp_path):
    with umask(0):
        assert discreet("demo", "--out", tmp_path / "demo").code == 0
    found = modes(tmp_path)
    assert sum("confidential" in name for name in found) >= 3
    assert not [name for name in found if "confidential" in name and found[name] & 0o077]
    assert found["demo"] == 0o700


def test_rows_that_are_put_aside_are_private(tmp_path):
    source = tmp_path / "answers.csv"
    rng = np.random.default_rng(1)
    rows = [f"{p},q{i},{a}" for p, i, a in rng.integers(0, [60_000, 9, 2], (400_000, 3))]
    source.write_text("person,item,response\n" + "\n".join(rows))
    seen = {}
    kept = tmp_path / "kept"

    def look(_):
        for place in (kept, tmp_path / "spill"):
            seen.update(modes(place))

    with umask(0):
        for checkpoint in (None, kept):
            (tmp_path / "spill").mkdir(exist_ok=True)
            count_source(
                source,
                reading=replace(Reading(), repeats="first"),
                resources=Resources(memory=1 << 24, spill=tmp_path / "spill"),
                checkpoint=checkpoint,
                progress=look,
            )
    assert sum("bucket" in name for name in seen) >= 2
    assert "counts.npz" in seen or "rows" in seen
    assert all(mode & 0o077 == 0 for mode in seen.values()), seen
