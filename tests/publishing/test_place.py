"""The place of a release: proved by writing there, held by one process, filled whole."""

import os
from pathlib import Path

import pytest

from discreet.atomic import check_place, hold_place
from discreet.errors import BadUsage
from refusals import disk_full, refused

TEXTS = {"privacy.json": "{}\n", "statement.md": "words\n"}


def fill(folder, **settings):
    with hold_place(folder, **settings) as place:
        place.fill(TEXTS)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_filled_place_holds_the_files_for_everyone_to_read_and_nothing_is_left_beside_it(
    tmp_path,
):
    old = os.umask(0o077)
    try:
        fill(tmp_path / "deep" / "er" / "out", room=10_000)
    finally:
        os.umask(old)
    out = tmp_path / "deep" / "er" / "out"
    assert names(out) == sorted(TEXTS)
    assert out.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o644}
    assert names(out.parent) == ["out"]


def test_what_is_not_filled_leaves_no_trace(tmp_path):
    check_place(tmp_path / "a" / "b" / "out")
    with hold_place(tmp_path / "a" / "out") as place:
        assert place.stage.stat().st_mode & 0o077 == 0
    assert names(tmp_path) == []


def test_a_name_of_250_characters_is_as_good_as_any(tmp_path):
    fill(tmp_path / ("n" * 250))
    assert names(tmp_path) == ["n" * 250]


def links(tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    fill(tmp_path / "bundle")
    (tmp_path / "link").symlink_to(tmp_path / "bundle")
    (tmp_path / "file").write_text("mine")
    return {
        "a dangling link": ("dangling", LINK, {"target": "dangling"}),
        "below a dangling link": (
            "dangling/out",
            NO_PLACE,
            {"reason": "dangling is a file or a dangling link, not a folder"},
        ),
        "a link to a bundle": ("link", LINK, {"target": "link"}),
        "a link to itself": ("round", LINK, {"target": "round"}),
        "below a file": (
            "file/out",
            NO_PLACE,
            {"reason": "file is a file or a dangling link, not a folder"},
        ),
        "a file": ("file", "not_earlier_release_not", {"target_2": "a file"}),
        "a name too long": ("n" * 256, NO_PLACE, {"reason": "File name too long"}),
        "below a name too long": ("n" * 256 + "/out", NO_PLACE, {"reason": "File name too long"}),
    }


LINK, NO_PLACE = "symbolic_link_release_folder", "nothing_written_choose_another"


@pytest.mark.parametrize(
    "what",
    [
        "a dangling link",
        "below a dangling link",
        "a link to a bundle",
        "a link to itself",
        "below a file",
        "a file",
        "a name too long",
        "below a name too long",
    ],
)
def test_what_cannot_become_a_folder_is_refused_with_its_reason(tmp_path, what):
    name, code, facts = links(tmp_path)[what]
    before = names(tmp_path)
    with refused(BadUsage, code, **facts):
        check_place(tmp_path / name, force=True)
    assert names(tmp_path) == before


def test_a_folder_below_a_link_to_a_real_folder_is_fine(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fill(tmp_path / "link" / "out")
    assert names(tmp_path / "real") == ["out"]


def test_the_second_process_at_one_place_is_refused(tmp_path):
    with (
        hold_place(tmp_path / "out") as place,
        refused(BadUsage, "another_process_writing_release"),
        hold_place(tmp_path / "out", force=True),
    ):
        raise AssertionError("two hold one place")
    del place
    fill(tmp_path / "out")


def test_two_places_side_by_side_do_not_wait_for_each_other(tmp_path):
    with hold_place(tmp_path / "one") as one, hold_place(tmp_path / "two") as two:
        one.fill(TEXTS)
        two.fill(TEXTS)
    assert names(tmp_path) == ["one", "two"]


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    held = hold_place(tmp_path / "out", room=5000)
    place = held.__enter__()
    left = {path.name for path in tmp_path.iterdir()}
    assert left
    kept = [(path, path.is_dir()) for path in tmp_path.iterdir()]
    held.__exit__(None, None, None)
    for path, is_folder in kept:  # as a kill would leave them: files, and nobody who holds them
        path.mkdir() if is_folder else path.touch()
    (place.stage / "difficulties.csv").write_text("half")
    fill(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == sorted(TEXTS)


def test_a_release_that_a_killed_process_had_moved_away_comes_back(tmp_path):
    fill(tmp_path / "out")
    with hold_place(tmp_path / "out", force=True) as place:
        old = place.old
    (tmp_path / "out").rename(old)
    with refused(BadUsage, "exists_already_choose_another"):
        check_place(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == sorted(TEXTS)


# --- force ------------------------------------------------------------------------------------


def test_force_replaces_a_release_and_an_empty_folder(tmp_path):
    (tmp_path / "out").mkdir()
    with refused(BadUsage, "exists_already_choose_another"):
        fill(tmp_path / "out")
    fill(tmp_path / "out", force=True)
    (tmp_path / "out" / "statement.md").write_text("old")
    fill(tmp_path / "out", force=True)
    assert (tmp_path / "out" / "statement.md").read_text() == "words\n"
    assert names(tmp_path) == ["out"]


def add_file(out):
    (out / "notes.txt").write_text("mine")


def add_hidden(out):
    (out / ".git").mkdir()


def add_folder(out):
    (out / "report.html").mkdir()
    (out / "report.html" / "thesis.txt").write_text("years of work")


def add_link(out):
    (out / "report.html").symlink_to(out / "statement.md")


def lose_the_record(out):
    (out / "privacy.json").unlink()


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        (add_file, "holds_not_part_release", {"content": "'notes.txt', which is"}),
        (add_hidden, "holds_not_part_release", {"content": "'.git', which is"}),
        (add_folder, "holds_not_part_release", {"content": "'report.html', which is"}),
        (add_link, "holds_not_part_release", {"content": "'report.html', which is"}),
        (lose_the_record, "holds_not_part_release", {"content": "no privacy.json, so it is"}),
    ],
)
def test_force_names_and_spares_what_is_not_part_of_a_release(tmp_path, change, code, facts):
    out = tmp_path / "out"
    fill(out)
    change(out)
    before = sorted(out.rglob("*"))
    with refused(BadUsage, code, **facts):
        fill(out, force=True)
    assert sorted(out.rglob("*")) == before
    assert names(tmp_path) == ["out"]


def test_force_does_not_replace_the_folder_where_one_stands(tmp_path, monkeypatch):
    fill(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    for here in (".", tmp_path / "out", Path("..") / "out"):
        with refused(BadUsage, "not_earlier_release_not", target_2="where you are"):
            check_place(here, force=True)
    assert names(tmp_path / "out") == sorted(TEXTS)


def test_a_full_disk_names_the_folder_that_was_asked_for(tmp_path, monkeypatch):
    def write(handle, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", write)
    with disk_full() as caught:
        fill(tmp_path / "out", room=5000)
    assert caught.value.filename == str(tmp_path / "out")
    assert names(tmp_path) == []
