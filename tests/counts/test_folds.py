"""Counts that know their persons: folds, standard errors from them, and a sketch of ids."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from commandline import discreet as command
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.coding.reading import Reading
from discreet.counts import PairCounts, folds, merge_counts
from discreet.counts.folds import (
    PersonWeight,
    Tally,
    afford_folds,
    count_common,
    deal_persons,
    hash_persons,
    sketch_persons,
)
from discreet.errors import BadResponses, BadUsage, WarningKind
from discreet.models.connectivity import build_chain
from discreet.models.methods import PAIR_METHODS
from discreet.readers import batches, streamed
from discreet.readers.opening import open_answers
from discreet.readers.streamed import counting
from discreet.readers.streamed.counting import count_source
from refusals import refused

FOLDS = 32


def draw(persons=400, items=8, answered=0.7, seed=3, first=0):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.standard_normal((persons, 1)), np.linspace(-1, 1, items)
    cells = (rng.random((persons, items)) < 1 / (1 + np.exp(difficulty - ability))).astype(np.int8)
    cells[rng.random(cells.shape) > answered] = -1
    cells[cells.max(axis=1) < 0, 0] = 1
    ids = [f"p{number:05}" for number in range(first, first + persons)]
    return Responses.from_array(cells, [f"q{i}" for i in range(items)], ids)


def take(responses, rows):
    cells = responses.to_array()[rows]
    return Responses.from_array(cells, responses.items, responses.persons[rows])


def write(path, responses, *, shuffled=False):
    cells = responses.to_array()
    person, item = np.nonzero(cells >= 0)
    table = {
        "person": responses.persons[person],
        "item": [responses.items[i] for i in item],
        "response": cells[person, item],
    }
    rows = np.arange(len(person))
    if shuffled:
        # The first person answered the items in order, so that items appear in order.
        rows = np.random.default_rng(1).permutation(rows)
    pq.write_table(pa.table(table).take(rows), path)
    return path


def same(ours, theirs):
    ours, theirs = (one.select(sorted(one.items)) for one in (ours, theirs))
    assert ours.items == theirs.items
    assert np.array_equal(ours.right_wrong, theirs.right_wrong)
    assert (ours.persons, ours.repeated) == (theirs.persons, theirs.repeated)
    assert np.array_equal(ours.sketch, theirs.sketch)
    for name in ("asked", "weighting"):
        assert getattr(ours.folds, name) == getattr(theirs.folds, name)
    for name in ("right_wrong", "answers", "persons"):
        assert np.array_equal(getattr(ours.folds, name), getattr(theirs.folds, name)), name
    return True


# -- folds are the persons whose ids say so ----------------------------------------------------


def test_a_fold_is_decided_by_the_text_of_the_id_alone():
    texts = ["7", "ann", "größe", ""]
    expected = [int(hashlib.md5(text.encode()).hexdigest()[:4], 16) % 32 for text in texts]  # noqa: S324
    assert deal_persons(hash_persons(np.array(texts, dtype=object)), 32).tolist() == expected
    assert deal_persons(hash_persons(pa.array(texts)), 32).tolist() == expected
    numbers = deal_persons(hash_persons(np.array([7, 12])), 32)
    assert numbers.tolist() == deal_persons(hash_persons(pa.array(["7", "12"])), 32).tolist()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), answered=st.sampled_from([0.15, 0.6, 1.0]))
def test_every_fold_holds_the_weighted_counts_of_its_persons(seed, answered):
    responses = draw(persons=60, items=6, answered=answered, seed=seed)
    counts = count_pairs(responses, folds=8)
    fold = deal_persons(hash_persons(responses.person_ids), 8)
    for number in range(8):
        part = take(responses, np.flatnonzero(fold == number)).count(PersonWeight())
        assert np.array_equal(counts.folds.right_wrong[number], part.right_wrong)
        assert np.array_equal(counts.folds.answers[number], part.answers)
        assert counts.folds.persons[number] == part.persons
    assert np.array_equal(counts.right_wrong, count_pairs(responses).right_wrong)


def test_dense_and_sparse_answers_fall_into_the_same_folds():
    responses = draw(persons=3000, items=40, answered=0.5)
    rows = responses.store.take(np.arange(3000))
    sparse = Responses(responses.items, responses.person_ids, rows)
    assert type(responses.store) is not type(sparse.store)
    assert same(count_pairs(responses, folds=FOLDS), count_pairs(sparse, folds=FOLDS))


@pytest.mark.parametrize("shuffled", [False, True])
def test_disk_and_memory_give_the_same_folds_and_sketch(tmp_path, monkeypatch, shuffled):
    monkeypatch.setattr(batches, "TARGET_ROWS", 200)
    path = write(tmp_path / "a.parquet", draw(), shuffled=shuffled)
    expected = count_pairs(path, engine="memory", folds=FOLDS)
    assert same(count_pairs(path, engine="disk", folds=FOLDS), expected)
    with open_answers(path, "disk") as stream:
        chosen = stream.select(["q3", "q1", "new"])
        ours = count_pairs(chosen, folds=FOLDS)
    assert same(ours, count_pairs(draw().select(["q3", "q1", "new"]), folds=FOLDS))


def test_ids_that_are_numbers_fall_where_their_text_falls(tmp_path):
    table = pa.table({"person": [7, 7, 12, 12], "item": ["a", "b"] * 2, "response": [1, 0, 0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    expected = count_pairs(
        Responses.from_array(np.array([[1, 0], [0, 1]]), ["a", "b"], ["7", "12"]), folds=8
    )
    for engine in ("memory", "disk"):
        assert same(count_pairs(tmp_path / "a.parquet", engine=engine, folds=8), expected)


def test_persons_without_ids_are_numbered_and_have_no_sketch(tmp_path):
    rows = draw().to_array()
    expected = count_pairs(Responses.from_array(rows), folds=8)
    assert expected.sketch is None
    names = [str(i) for i in range(rows.shape[1])]
    lines = [",".join("" if cell < 0 else str(cell) for cell in row) for row in rows.tolist()]
    (tmp_path / "a.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    with open_answers(tmp_path / "a.csv", "disk", reading=Reading(layout="wide")) as stream:
        ours = stream.count(tally=Tally(8))
    assert ours.sketch is None
    assert np.array_equal(ours.folds.right_wrong, expected.folds.right_wrong)


def test_a_run_that_was_stopped_goes_on_with_its_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "TARGET_ROWS", 200)
    monkeypatch.setattr(counting, "INTERVAL", 0.0)
    path = tmp_path / "days"
    path.mkdir()
    for day in range(6):
        write(path / f"{day}.parquet", draw(persons=60, seed=day, first=60 * day))
    expected = count_source(path, tally=Tally(FOLDS))
    keep, left = counting.Checkpoint.save, [3]

    def stop_after_some(self, counts, place, scale):
        keep(self, counts, place, scale)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(counting.Checkpoint, "save", stop_after_some)
    with pytest.raises(KeyboardInterrupt):
        count_source(path, tally=Tally(FOLDS), checkpoint=tmp_path / "kept")
    monkeypatch.setattr(counting.Checkpoint, "save", keep)
    with refused(BadUsage, "checkpoint_belongs_other_data"):
        count_source(path, checkpoint=tmp_path / "kept")
    assert same(count_source(path, tally=Tally(FOLDS), checkpoint=tmp_path / "kept"), expected)


# -- adding ------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 199))
def test_days_add_up_to_all_answers_at_once(seed, cut):
    responses = draw(persons=200, seed=seed)
    days = [take(responses, slice(0, cut)), take(responses, slice(cut, None))]
    week = sum(count_pairs(day, folds=8) for day in days)
    assert same(week, count_pairs(responses, folds=8))
    assert week.repeated == 0


def test_days_with_other_items_add_up_by_name():
    monday, tuesday = draw(), draw(seed=4, first=1000).select(["q7", "q2", "new"])
    counts = [count_pairs(day, folds=8) for day in (monday, tuesday)]
    assert same(sum(counts), merge_counts(counts))
    assert sum(counts).items == (*monday.items, "new")


def test_counts_with_other_folds_or_weights_are_not_added():
    monday, tuesday = draw(), draw(first=1000)
    counts = count_pairs(monday, folds=32)
    for other in ({"folds": 16}, {"folds": 32, "weighting": "none"}):
        with refused(BadResponses, "these_counts_different_folds"):
            _ = counts + count_pairs(tuesday, **other)
    assert (counts + count_pairs(tuesday)).folds is None


def test_only_counts_are_added_to_counts():
    with pytest.raises(TypeError):
        _ = count_pairs(draw()) + 1


@pytest.mark.parametrize("number", [1, 7, 2000])
def test_a_number_of_folds_that_says_nothing_is_refused(number):
    with refused(BadUsage, "number_folds_must_none", folds=number):
        count_pairs(draw(), folds=number)


def test_a_weighting_that_does_not_exist_is_refused():
    with refused(BadUsage, "weighting_must_refined_none", weighting="refind"):
        count_pairs(draw(), weighting="refind")


def test_a_weighting_may_be_named():
    named, given_ = count_pairs(draw(), weighting="refined"), draw().count(PersonWeight())
    assert np.array_equal(named.right_wrong, given_.right_wrong)
    assert named.weighting == given_.weighting


# -- folds of many items -----------------------------------------------------------------------


def test_folds_that_do_not_fit_into_memory_are_fewer_or_none_and_that_is_said(monkeypatch):
    responses = draw(items=8)
    monkeypatch.setattr(folds, "FOLD_BYTES", 16 * 8 * 8 * 8)
    with pytest.warns(UserWarning, match="16 folds were kept"):
        half = count_pairs(responses, folds=32)
    whole = deal_persons(hash_persons(responses.person_ids), 32)
    assert half.folds.persons.tolist() == np.bincount(whole % 16, minlength=16).tolist()
    assert fit(half).degrees == 15
    monkeypatch.setattr(folds, "FOLD_BYTES", 8)
    with pytest.warns(UserWarning, match="no folds were kept"):
        none = count_pairs(responses, folds=32)
    assert none.folds is None
    assert none.sketch is not None
    (warning,) = fit(none).warnings
    assert warning.kind is WarningKind.NO_STANDARD_ERRORS


def test_a_day_with_fewer_folds_for_want_of_memory_is_still_added(monkeypatch):
    monday = count_pairs(draw(), folds=32)
    more = draw(items=10, first=1000)
    monkeypatch.setattr(folds, "FOLD_BYTES", 16 * 8 * 10 * 10)
    with pytest.warns(UserWarning, match="16 folds"):
        week = monday + count_pairs(more, folds=32)
    assert (week.folds.number, week.folds.asked) == (16, 32)
    assert week.folds.persons.sum() == 800


def test_items_that_appear_later_find_room_in_the_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "TARGET_ROWS", 50)
    responses = draw(persons=120)
    cells = responses.to_array().copy()
    cells[:60, 4:] = -1
    cells[:60, 0] = 1
    late = Responses.from_array(cells, responses.items, responses.persons)
    path = write(tmp_path / "a.parquet", late)
    assert same(count_pairs(path, engine="disk", folds=8), count_pairs(late, folds=8))


@given(asked=st.integers(8, 1024), items=st.integers(1, 10_000))
def test_what_is_kept_is_a_part_of_what_was_asked_and_fits(asked, items):
    kept = afford_folds(asked, items)
    assert kept == 0 or (asked % kept == 0 and 8 * kept * items**2 <= folds.FOLD_BYTES)


# -- standard errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [0.5, 1.0])
@pytest.mark.parametrize(("method", "weighting"), [("refined", None), ("spectral", "none")])
def test_the_estimate_from_counts_is_that_from_answers(answered, method, weighting):
    responses = draw(persons=2000, answered=answered)
    days = [take(responses, slice(0, 900)), take(responses, slice(900, None))]
    week = sum(count_pairs(day, folds=FOLDS, weighting=weighting) for day in days)
    ours, theirs = fit(week, method=method), fit(responses, method=method)
    assert np.array_equal(ours.difficulty, theirs.difficulty)
    assert np.median(ours.se / theirs.se) == pytest.approx(1, abs=0.15)
    assert np.allclose(np.sqrt(ours.covariance.diagonal()), ours.se)
    assert ours.degrees == 31
    assert "one of 32 folds" in ours.solution.notes[-1]
    assert not ours.warnings


def test_one_newton_step_finds_what_fitting_anew_finds():
    responses = draw(persons=1500, answered=0.6)
    counts = count_pairs(responses, folds=FOLDS)
    method = PAIR_METHODS["refined"]
    total = counts.folds.right_wrong.sum(axis=0)
    whole = fit(counts)
    moves = []
    for fold in counts.folds.right_wrong:
        left = PairCounts(counts.items, total - fold, counts.answers, counts.right, counts.persons)
        moves.append(method.solve(build_chain(left).rates)[0] - whole.difficulty)
    share = counts.folds.persons / counts.persons
    anew = np.sqrt(((1 - share)[:, None] * np.array(moves) ** 2).sum(axis=0))
    assert whole.se == pytest.approx(anew, rel=0.01)


def test_intervals_have_students_quantiles():
    estimate = fit(count_pairs(draw(), folds=FOLDS))
    half = (estimate.interval()[:, 1] - estimate.difficulty) / estimate.se
    assert half == pytest.approx(2.0395134, abs=1e-6)  # 97.5% point for 31 degrees of freedom
    wide = estimate.simultaneous_interval()[:, 1] - estimate.difficulty
    assert (wide > half * estimate.se).all()


def test_an_item_of_too_few_folds_has_a_difficulty_and_no_standard_error():
    cells = draw().to_array().copy()
    cells[:, 7] = -1
    cells[:6, :] = [[1, 0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]] * 3
    responses = Responses.from_array(cells, draw().items, draw().persons)
    estimate = fit(count_pairs(responses, folds=FOLDS))
    assert np.isfinite(estimate.difficulty).all()
    assert np.isnan(estimate.se).tolist() == [False] * 7 + [True]
    (warning,) = estimate.warnings
    assert (warning.kind, warning.items) == (WarningKind.NO_STANDARD_ERRORS, ("q7",))
    assert estimate.covariance is None


@pytest.mark.parametrize(("items", "is_mean_known"), [(8, False), (30, True)])
def test_an_item_that_one_fold_alone_links_has_no_standard_error(monkeypatch, items, is_mean_known):
    """Where it is an eighth of the items, neither is the mean known that all are measured from."""
    monkeypatch.setattr("discreet.models.standard_errors.folds.FEWEST_FOLDS", 1)
    answers = draw(items=items)
    cells = answers.to_array().copy()
    fold = deal_persons(hash_persons(answers.person_ids), FOLDS)
    cells[fold != 5, -1] = -1
    responses = Responses.from_array(cells, answers.items, answers.persons)
    estimate = fit(count_pairs(responses, folds=FOLDS))
    assert np.isfinite(estimate.se).tolist() == [is_mean_known] * (items - 1) + [False]


def test_a_query_that_comes_once_has_standard_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "COPIED_ROWS", 0)
    path = write(tmp_path / "a.parquet", draw())
    query = f"SELECT * FROM '{path}'"  # noqa: S608 - a path of our own
    ours, theirs = fit(query), fit(path, engine="memory", method="refined")
    order = [ours.items.index(name) for name in theirs.items]
    assert ours.difficulty[order] == pytest.approx(theirs.difficulty, abs=1e-12)
    assert ours.degrees == 31
    assert np.isfinite(ours.se).all()


def test_folds_of_another_method_say_what_to_do():
    estimate = fit(count_pairs(draw(), folds=FOLDS), method="spectral")
    assert "weighting 'none'" in str(estimate.warnings[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("persons", "items", "answered"), [(1000, 30, 0.5), (600, 20, 1.0), (2000, 40, 0.2)]
)
def test_standard_errors_from_folds_hold_what_they_promise(persons, items, answered):
    ratios, inside = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        sim = discreet.simulate(persons=persons, items=items, answered=answered, rng=rng)
        estimate = fit(count_pairs(sim.responses, folds=FOLDS))
        ratios.append(np.median(estimate.se / fit(sim.responses, method="refined").se))
        truth = sim.difficulty - sim.difficulty.mean()
        low, high = estimate.interval().T
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert np.median(ratios) == pytest.approx(1, abs=0.05)
    assert 0.93 <= np.mean(inside) <= 0.97


# -- the sketch --------------------------------------------------------------------------------


@pytest.mark.parametrize("common", [0, 300, 4000])
def test_persons_in_common_are_counted_about_right(common):
    ids = np.array([f"p{number}" for number in range(10_000)], dtype=object)
    ours, theirs = hash_persons(ids[:5000]), hash_persons(ids[5000 - common : 10_000 - common])
    found = count_common(sketch_persons(ours), sketch_persons(theirs), 5000, 5000)
    assert found == pytest.approx(common, abs=0.2 * common)


def test_adding_counts_of_the_same_persons_is_said():
    monday = count_pairs(draw(), folds=FOLDS)
    with pytest.warns(UserWarning, match="more than one of the counts"):
        twice = monday + count_pairs(draw(seed=9), folds=FOLDS)
    assert twice.repeated == 400
    (warning,) = fit(twice).warnings
    assert warning.kind is WarningKind.COUNTED_TWICE
    assert "about 400 of the 800 persons" in warning


def test_a_sketch_alone_is_kept_with_no_folds():
    counts = count_pairs(draw(), folds=0)
    assert counts.folds is None
    assert len(counts.sketch) == 400
    assert count_pairs(draw()).sketch is None


def test_a_sketch_stays_small():
    counts = count_pairs(draw(persons=3000), folds=0)
    assert len(counts.sketch) == folds.SKETCH_SIZE
    more = counts + count_pairs(draw(persons=3000, first=5000), folds=0)
    assert len(more.sketch) == folds.SKETCH_SIZE
    assert more.repeated == 0


# -- files and the command line ----------------------------------------------------------------


def test_a_file_keeps_folds_weighting_and_sketch(tmp_path):
    with pytest.warns(UserWarning, match="more than one"):
        counts = count_pairs(draw(), folds=FOLDS) + count_pairs(draw(), folds=FOLDS)
    counts.save(tmp_path / "c.npz")
    assert same(PairCounts.load(tmp_path / "c.npz"), counts)
    assert np.array_equal(fit(tmp_path / "c.npz").se, fit(counts).se)


def test_a_file_without_folds_is_read_as_before(tmp_path):
    counts = count_pairs(draw())
    counts.save(tmp_path / "c.npz")
    back = PairCounts.load(tmp_path / "c.npz")
    assert (back.folds, back.sketch, back.repeated) == (None, None, 0)


def test_folds_that_cannot_be_are_refused(tmp_path):
    counts = count_pairs(draw(), folds=FOLDS)
    from dataclasses import replace

    fewer = replace(counts.folds, persons=counts.folds.persons * 2)
    replace(counts, folds=fewer).save(tmp_path / "c.npz")
    with refused(BadUsage, "holds_numbers_cannot_pair"):
        PairCounts.load(tmp_path / "c.npz")


def test_the_command_line_counts_merges_and_fits(tmp_path):
    responses = draw(persons=600)
    for name, rows in (("mon", slice(0, 300)), ("tue", slice(300, None))):
        path = write(tmp_path / f"{name}.parquet", take(responses, rows))
        done = command("table", "counts", path, "--folds", "32", "--out", tmp_path / f"{name}.npz")
        assert "in 32 folds" in done.out
    days = [tmp_path / "mon.npz", tmp_path / "tue.npz"]
    command("table", "merge", *days, "--out", tmp_path / "week.npz")
    found = command("fit", tmp_path / "week.npz", "--json", "--out", tmp_path / "out").document
    expected = fit(responses, method="refined")
    by_name = {row["item"]: row for row in found["items"]}
    assert [by_name[name]["difficulty"] for name in expected.items] == pytest.approx(
        expected.difficulty
    )
    assert all(row["se"] > 0 for row in found["items"])
    again = command("fit", tmp_path / "week.npz")
    assert again.code == 0
    assert (tmp_path / "out" / "report.confidential.html").exists()


def test_the_command_line_says_that_persons_are_in_both_files(tmp_path):
    for name, seed in (("mon", 1), ("tue", 2)):
        path = write(tmp_path / f"{name}.parquet", draw(seed=seed))
        command("table", "counts", path, "--out", tmp_path / f"{name}.npz")
    days = [tmp_path / "mon.npz", tmp_path / "tue.npz"]
    done = command("table", "merge", *days, "--out", tmp_path / "week.npz")
    assert "About 400 persons are in more than one of the counts" in done.out
    assert "Warning: some persons" in done.err


def test_a_release_of_counts_is_refused(tmp_path):
    count_pairs(draw(), folds=FOLDS).save(tmp_path / "c.npz")
    (tmp_path / "items.txt").write_text("q0\nq1\n")
    command("ledger", "create", tmp_path / "l.db", "--epsilon", "5", "--delta", "1e-5")
    done = command(
        "release", tmp_path / "c.npz", "--items", tmp_path / "items.txt", "--max-answers", "2",
        "--epsilon", "1", "--delta", "1e-6", "--ledger", tmp_path / "l.db",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 2
    assert "needs the answers themselves" in done.err
