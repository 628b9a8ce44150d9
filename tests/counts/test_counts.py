"""Counts as values and as files: saved, loaded, brought to one item list, added."""

from __future__ import annotations

import json
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commandline import discreet
from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts, merge_counts
from discreet.errors import BadResponses, BadUsage
from refusals import disk_full, refused


def count(cells, items=None):
    return count_pairs(Responses.from_array(np.array(cells), items=items))


def same(ours, theirs):
    return (
        ours.items == theirs.items
        and ours.persons == theirs.persons
        and np.array_equal(ours.right_wrong, theirs.right_wrong)
        and np.array_equal(ours.answers, theirs.answers)
        and np.array_equal(ours.right, theirs.right)
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), persons=st.integers(2, 30), cut=st.integers(1, 29))
def test_counts_of_shards_add_up_to_the_counts_of_all(seed, persons, cut):
    cells = np.random.default_rng(seed).integers(-1, 2, (persons, 4))
    cut = min(cut, persons - 1)
    assert same(count(cells[:cut]) + count(cells[cut:]), count(cells))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations("abcd"))
def test_shards_with_other_orders_and_other_items_merge(seed, order):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(-1, 2, (6, 2)), rng.integers(-1, 2, (5, 4))
    whole = np.full((11, 4), -1)
    whole[:6, :2] = first
    whole[6:, ["abcd".index(name) for name in order]] = second
    merged = merge_counts([count(first, ["a", "b"]), count(second, list(order))])
    assert same(merged.select("abcd"), count(whole, list("abcd")))


def test_a_file_comes_back_as_it_was_and_is_marked_confidential(tmp_path):
    path = tmp_path / "counts.npz"
    counts = count([[1, 0, -1], [0, 1, 1]], ["größe", "b", "c"])
    counts.save(path, note={"day": 3})
    back = PairCounts.load(path)
    assert same(back, counts)
    assert back.note == {"day": 3}
    with np.load(path) as file:
        assert "confidential" in json.loads(str(file["header"]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["counts.npz"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "counts.npz"
    old = count([[1, 0]])
    old.save(path)

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.atomic.os.fsync", fail)
    with disk_full():
        count([[1, 1]]).save(path)
    assert same(PairCounts.load(path), old)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("other", [["b", "a"], ["a", "c"], ["a", "b", "c"]])
def test_counts_of_other_items_are_added_by_name(other):
    ours, theirs = count([[1, 0]], ["a", "b"]), count([[1] + [0] * (len(other) - 1)], other)
    total = ours + theirs
    assert total.items == tuple(dict.fromkeys(["a", "b", *other]))
    assert same(total, merge_counts([ours, theirs]))
    assert total.answers[total.items.index(other[0])] == 1 + (other[0] in "ab")


def test_selecting_never_drops_answers():
    counts = count([[1, 0, -1]], ["a", "b", "c"])
    assert counts.select(["b", "new", "a"]).right_wrong.tolist() == [
        [0, 0, 0],
        [0, 0, 0],
        [1, 0, 0],
    ]
    with refused(BadUsage, "items_persons_answered_not", lost="b"):
        counts.select(["a", "c"])
    with refused(BadUsage, "item_stands_twice_list"):
        counts.select(["a", "a", "b"])


def test_sums_beyond_64_bits_are_refused():
    big = np.array([[0, 1 << 62], [0, 0]])
    ones = np.ones(2, dtype=np.int64)
    counts = PairCounts(("a", "b"), big, ones, ones.copy(), 1)
    with refused(BadResponses, "sum_these_counts_not"):
        _ = counts + counts


def tampered(counts, **changes):
    fields = {name: getattr(counts, name) for name in ("right_wrong", "answers", "right")}
    values = {**fields, "items": counts.items, "persons": counts.persons, **changes}
    return PairCounts(**values)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"persons": 1}, "holds_numbers_cannot_pair"),
        ({"answers": np.array([2, -1])}, "holds_numbers_cannot_pair"),
        ({"right": np.array([9, 0])}, "holds_numbers_cannot_pair"),
        ({"right_wrong": np.array([[1, 0], [0, 0]])}, "holds_numbers_cannot_pair"),
        ({"right_wrong": np.array([[0, -1], [0, 0]])}, "holds_numbers_cannot_pair"),
        ({"right_wrong": np.array([[0.0, 0.5], [0.0, 0.0]])}, "cannot_read_file_pair"),
        ({"items": ("a", "a")}, "cannot_read_file_pair"),
    ],
)
def test_numbers_that_cannot_be_counts_are_refused(tmp_path, changes, code):
    path = tmp_path / "counts.npz"
    tampered(count([[1, 0], [1, 1]], ["a", "b"]), **changes).save(path)
    with refused(BadUsage, code):
        PairCounts.load(path)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut off"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "counts.npz"
    path.write_bytes(content)
    with refused(BadUsage, "cannot_read_file_pair"):
        PairCounts.load(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "counts.npz"
    count(np.random.default_rng(0).integers(0, 2, (50, 20))).save(path)
    path.write_bytes(path.read_bytes()[:-300])
    with refused(BadUsage, "cannot_read_file_pair"):
        PairCounts.load(path)


def test_a_missing_file_and_no_files_are_wrong_usage(tmp_path):
    with refused(BadUsage, "no_file_check_path"):
        PairCounts.load(tmp_path / "nothing.npz")
    with refused(BadUsage, "no_counts_merge_give"):
        merge_counts([])


# -- the commands ----------------------------------------------------------------------------


@pytest.fixture
def days(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.csv").write_text("person,item,response\na,q1,1\na,q2,0\nb,q2,1\n")
    (tmp_path / "tuesday.csv").write_text("person,item,response\nc,q2,1\nc,q1,0\nc,q3,1\n")
    return tmp_path


@pytest.mark.parametrize("engine", ["memory", "duckdb", "auto"])
def test_nightly_counts_are_saved_and_merged(days, engine):
    for day in ("monday", "tuesday"):
        ended = discreet("table", "counts", f"{day}.csv", "--out", f"{day}.npz", "--engine", engine)
        assert ended.code == 0, ended.err
        assert "confidential" in ended.err
    ended = discreet("table", "merge", "monday.npz", "tuesday.npz", "--out", "all.npz", "--json")
    assert ended.document == {
        "persons": 3, "items": 3, "answers": 6, "pairs": 3, "folds": 0, "repeated": 0,
        "out": "all.npz",
    }  # fmt: skip
    whole = days / "all.csv"
    whole.write_text(
        (days / "monday.csv").read_text() + (days / "tuesday.csv").read_text().split("\n", 1)[1]
    )
    assert same(PairCounts.load("all.npz"), count_pairs(whole))


def test_counts_from_a_query_and_with_a_checkpoint(days):
    query = "SELECT person, item, response FROM 'monday.csv'"
    ended = discreet("table", "counts", query, "--out", "counts.npz", "--checkpoint", "kept")
    assert ended.code == 0, ended.err
    assert same(PairCounts.load("counts.npz"), count_pairs(days / "monday.csv"))
    assert not (days / "kept").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["table", "counts", "nothing.csv", "--out", "x.npz"], 2, "nothing.csv"),
        (
            ["table", "counts", "monday.csv", "--out", "x.npz", "--engine", "abacus"],
            2,
            "no engine 'abacus'",
        ),
        (["table", "counts", "monday.csv", "--out", "monday.csv"], 2, "exists already"),
        (["table", "counts", "SELECT nonsense", "--out", "x.npz"], 2, "DuckDB cannot run"),
        (
            ["table", "merge", "monday.csv", "--out", "x.npz"],
            2,
            "cannot be read as a file of pair counts",
        ),
        (["table", "merge", "a.npz", "a.npz", "--out", "x.npz"], 2, "named twice"),
        (["table", "merge", "a.npz", "--out", "x.npz"], 2, "There is no file 'a.npz'"),
    ],
)
def test_mistakes_end_with_a_sentence(days, arguments, code, words):
    ended = discreet(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert "Traceback" not in ended.err
