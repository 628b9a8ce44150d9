"""The one seam: every place where answers can be is asked the same, and answers alike."""

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.answers.protocol import (
    ItemTotals,
    Job,
    PersonTotals,
    choose_persons,
    fold_blocks,
    refuse_travel,
)
from discreet.api.counting import count_pairs
from discreet.counts.folds import PersonWeight
from discreet.errors import BadUsage, OutOfReach
from discreet.models.conditional import GroupPatterns, group_patterns
from discreet.models.routing import LookForRouting
from discreet.privacy.mechanisms.response import CountFlipped
from discreet.readers import batches
from discreet.readers.opening import check_engine, open_answers
from discreet.tables.inspection import inspect_table, rows
from discreet.tables.sources import ParquetSource
from refusals import refused

ITEMS = 8


def draw(persons=300, answered=0.7, seed=3):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2, (persons, ITEMS), dtype=np.int8)
    cells[rng.random(cells.shape) > answered] = -1
    cells[cells.max(axis=1) < 0, 0] = 1  # a long table knows nobody without answers
    return discreet.Responses.from_array(cells, items=[f"q{i}" for i in range(ITEMS)])


def write(path, answers, *, order="sorted"):
    cells = answers.to_array()
    person, item = np.nonzero(cells >= -1)
    value = cells[person, item].astype(float)
    value[value < 0] = np.nan
    rows = np.arange(len(person))
    if order == "shuffled":
        rows = np.concatenate([rows[:ITEMS], np.random.default_rng(1).permutation(rows[ITEMS:])])
    table = {"person": person, "item": [f"q{i}" for i in item], "response": value}
    pq.write_table(pa.table(table).take(rows), path)
    return path


@pytest.fixture
def small(monkeypatch):
    """Make batches of a few persons, so that a small table has many."""
    monkeypatch.setattr(batches, "TARGET_ROWS", 200)


@pytest.fixture(params=["memory", "sorted", "shuffled"])
def place(request, tmp_path, small):
    """The same answers in several places."""
    answers = draw()
    if request.param == "memory":
        yield answers
    else:
        with open_answers(
            write(tmp_path / "a.parquet", answers, order=request.param), "disk"
        ) as it:
            yield it


def in_any_order(totals):
    return totals[:, np.lexsort(totals[::-1])]


@pytest.mark.filterwarnings("ignore:.*counted in memory instead")
def test_every_place_gives_the_same_answers_to_the_same_questions(place):
    expected = draw()
    assert place.lasts
    assert (place.items, place.n_persons) == (expected.items, expected.n_persons)
    assert place.n_answers == expected.n_answers
    assert place.steps == (1,) * ITEMS
    assert place.digest(b"k") == expected.digest(b"k")
    for weighting in (None, PersonWeight()):
        ours, theirs = place.count(weighting), expected.count(weighting)
        assert np.array_equal(ours.right_wrong, theirs.right_wrong)
        assert ours.weighting == theirs.weighting
    totals = place.reduce(ItemTotals())
    assert np.array_equal(totals[:, :-1], np.stack(expected.store.item_totals()))
    assert totals[0, -1] == expected.n_persons
    persons = np.stack(expected.store.person_totals())
    assert np.array_equal(in_any_order(place.reduce(PersonTotals())), in_any_order(persons))
    chosen = place.select(["q3", "new", "q0"])
    assert chosen.steps == (1, 1, 1)
    assert np.array_equal(
        chosen.count().right_wrong, expected.select(["q3", "new", "q0"]).count().right_wrong
    )


@pytest.mark.filterwarnings("ignore:.*counted in memory instead")
def test_patterns_found_block_by_block_are_those_of_all_persons(place):
    kept = np.array([0, 2, 3, 5, 7])
    job = GroupPatterns(kept)
    ours, theirs = job.collect(place.reduce(job)), group_patterns(draw().store, kept)
    for name in ("indptr", "item", "pattern", "score", "persons"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.n_items == theirs.n_items == 5
    assert np.array_equal(np.bincount(ours.entry), np.bincount(theirs.entry))


@pytest.mark.parametrize("method", ["refined", "spectral", "conditional", "marginal"])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_every_method_fits_a_stream_as_it_fits_memory(tmp_path, small, method, order):
    answers = draw()
    path = write(tmp_path / "a.parquet", answers, order=order)
    ours, theirs = (
        discreet.fit(path, method=method, engine="disk"),
        discreet.fit(answers, method=method),
    )
    assert ours.difficulty == pytest.approx(theirs.difficulty, abs=1e-9)
    assert ours.se == pytest.approx(theirs.se, abs=1e-9)


# -- how often a source is read ----------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Count how often each file is gone through, but for the look at its first rows."""
    seen = Counter()
    real, look = ParquetSource.batches, rows._grid_of

    def counted(self, columns):
        seen[self.name] += 1
        return real(self, columns)

    def look_uncounted(source, kind):
        with pytest.MonkeyPatch.context() as uncounted:
            uncounted.setattr(ParquetSource, "batches", real)
            return look(source, kind)

    monkeypatch.setattr(rows, "_grid_of", look_uncounted)
    monkeypatch.setattr(ParquetSource, "batches", counted)
    return seen


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_fit_with_standard_errors_and_missing_answers_reads_its_source_twice(
    tmp_path, small, reads, order
):
    path = write(tmp_path / "a.parquet", draw(), order=order)
    estimate = discreet.fit(path, engine="disk", method="refined")
    assert np.isfinite(estimate.se).all()
    assert list(reads.values()) == [2]


def test_a_fit_without_standard_errors_and_a_count_read_their_source_once(tmp_path, small, reads):
    path = write(tmp_path / "a.parquet", draw())
    discreet.fit(path, engine="disk", method="refined", standard_errors=False)
    assert list(reads.values()) == [1]
    count_pairs(path, engine="duckdb")
    assert list(reads.values()) == [2]


def test_a_look_before_a_table_is_read_stops_after_its_first_rows(tmp_path, monkeypatch):
    path, events = write(tmp_path / "a.parquet", draw()), []
    real = ParquetSource.batches

    def watched(self, columns):
        events.append("begin")
        yield from real(self, columns)
        events.append("end")

    monkeypatch.setattr(ParquetSource, "batches", watched)
    monkeypatch.setattr(rows, "MOST_ROWS", 50)
    inspect_table(path)
    assert events == ["begin"]


def test_a_release_reads_its_source_three_times(tmp_path, small, reads):
    path = write(tmp_path / "a.parquet", draw())
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 5.0, 1e-5)
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    items = [f"q{i}" for i in range(ITEMS)]
    discreet.release(path, budget, items=items, max_answers=4, engine="disk", ledger=ledger)
    assert list(reads.values()) == [3]  # items and persons, the fingerprint, the counts


# -- jobs ----------------------------------------------------------------------------------------


def test_a_sample_is_one_block_of_the_same_persons_however_blocks_are_cut():
    class Look(Job):
        sample = 80

        def block(self, store):
            return store.rows(0, store.n_persons)

    cells = draw(1000, seed=5).to_array()
    blocks = [
        (discreet.Responses.from_array(part).store, None)
        for part in np.split(cells, [130, 131, 700])
    ]
    (found,) = fold_blocks(blocks, 1000, [Look()])
    assert len(found) == 80
    assert np.array_equal(found, cells[choose_persons(1000, 80)])
    (few,) = fold_blocks(blocks[:1], 70, [Look()])
    assert np.array_equal(few, cells[:70])


def test_jobs_that_travel_can_be_pickled():
    kept, difficulty = np.arange(3), np.zeros(3)
    for job in (ItemTotals(), PersonTotals(), LookForRouting(kept, difficulty)):
        refuse_travel(job)
        again = pickle.loads(pickle.dumps(job.block))  # noqa: S301
        assert type(again.__self__) is type(job)


def test_a_job_out_of_reach_has_one_error_that_says_what_to_do():
    with refused(OutOfReach, "these_answers_stay_where"):
        refuse_travel(CountFlipped(1, None))


# -- weights, names, steps -----------------------------------------------------------------------


def test_persons_of_one_weight_are_counted_by_the_plain_kernels_and_divided_exactly():
    answers = draw(answered=1.1)
    weighted, plain = answers.count(PersonWeight()), answers.count()
    weight = int(PersonWeight()(np.array([ITEMS]), np.array([0]))[0])
    assert np.array_equal(weighted.right_wrong, weight * plain.right_wrong)
    divided = weighted.divide(weight)
    assert np.array_equal(divided.right_wrong, plain.right_wrong)
    assert divided.weighting == plain.weighting


def test_the_engine_for_data_of_any_size_has_two_names(tmp_path):
    path = write(tmp_path / "a.parquet", draw())
    assert check_engine("duckdb") == check_engine("disk") == "disk"
    counts = [count_pairs(path, engine=name).right_wrong for name in ("disk", "duckdb", "memory")]
    assert np.array_equal(counts[0], counts[1])
    assert np.array_equal(counts[0], counts[2])
    with refused(BadUsage, "no_engine_called_choose", name="abacus"):
        count_pairs(path, engine="abacus")
