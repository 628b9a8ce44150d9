"""Releasing answers that do not fit into memory: the same numbers, the same promise."""

from __future__ import annotations

import json
import stat
from fractions import Fraction
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commandline
import discreet
from discreet.answers.protocol import Answers, PersonTotals, add_digests, digest_rows, refuse_travel
from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts
from discreet.errors import BadResponses, BadUsage, DiscreetError, LedgerError
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.publishing import delivery
from discreet.readers import batches
from discreet.readers import batches as buckets
from discreet.readers import rows as wide
from discreet.readers import streamed as persons
from discreet.readers.answers import read_responses
from discreet.readers.opening import open_answers
from discreet.readers.streamed import open_stream, passes
from discreet.secure import SeededSource, SystemSource
from discreet.tables import dataset
from discreet.tables.resources import Resources
from refusals import refused

MECHANISMS = mechanisms_for("answers")

BUDGET = discreet.Budget(1.0, 1e-6)
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}
COUNTED = sorted(set(MECHANISMS) - {"randomized-response"})
OPEN = RandomizedResponse(public_pattern=True)
"""Shows its counts, from which it follows who answered what."""


class NoNoise(ExactNoise):
    """Adds nothing, so that a test sees the exact statistics behind a release."""

    def gaussian(self, sigma, size):
        return np.zeros(size, dtype=np.int64)

    def laplace(self, scale, size):
        return np.zeros(size, dtype=np.int64)


def silent(seed=1):
    return NoNoise(SeededSource(seed))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many small batches and buckets, on disk."""
    monkeypatch.setattr(batches, "TARGET_ROWS", 7)
    monkeypatch.setattr(buckets, "BYTES_A_ROW", 1 << 26)
    monkeypatch.setattr(buckets, "MOST_BITS", 3)
    monkeypatch.setattr(buckets, "SLAB_ROWS", 11)
    monkeypatch.setattr(wide, "CELLS", 16)


@pytest.fixture(autouse=True)
def unestimated(monkeypatch):
    """Leave out what comes after the wall: it does not know where the answers were."""
    monkeypatch.setattr(delivery, "estimate_release", lambda _released, **_how: None)
    monkeypatch.setattr(delivery, "describe_release", lambda *_facts: {})


def write(folder, rows, names=("person", "item", "response"), files=2):
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, part in enumerate(np.array_split(np.arange(len(rows)), min(files, len(rows)))):
        columns = {name: [rows[r][c] for r in part] for c, name in enumerate(names)}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=5)
    return folder


def table(n_persons=40, n_items=6, order="shuffled", answered=1.0, seed=1):
    rng = np.random.default_rng(seed)
    cells = [(p, i) for p in range(n_persons) for i in range(n_items)]
    rows = [(p, f"q{i}", int(rng.random() < 0.5)) for p, i in cells if rng.random() < answered]
    if order == "shuffled":
        rows = [rows[k] for k in rng.permutation(len(rows))]
    return rows


def values_of(source, name="pairs", *, engine="auto", items=None, noise=None, **settings):
    budget = discreet.Budget(1.0, 0.0 if name in PURE else 1e-6)
    made = discreet.release(
        source,
        budget,
        items=items or [f"q{i}" for i in range(6)],
        mechanism=OPEN if name == OPEN.name else name,
        engine=engine,
        noise=noise or silent(),
        **settings,
    )
    return made.noisy.values


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[k], theirs[k]) for k in ours)


# -- the same statistics as in memory --------------------------------------------------------


def spell(number, style):
    return {"int": number, "text": f"p{number}", "zeros": f"{number:04}"}[style]


@st.composite
def long_tables(draw):
    cells = [(p, i) for p in range(draw(st.integers(1, 12))) for i in range(4)]
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=40, unique=True))
    if draw(st.booleans()):
        chosen = sorted(chosen)
    style = draw(st.sampled_from(["int", "text", "zeros"]))
    values = draw(st.lists(st.sampled_from([0, 1, 1, 0, None]), min_size=40, max_size=40))
    return [(spell(p, style), f"q{i}", v) for (p, i), v in zip(chosen, values, strict=False)]


@st.composite
def wide_tables(draw):
    ids = draw(st.lists(st.integers(0, 12), min_size=1, max_size=15, unique=True))
    cell = st.sampled_from([0, 1, None])
    rows = draw(st.lists(st.tuples(*[cell] * 4), min_size=len(ids), max_size=len(ids)))
    return [(f"p{p}", *row) for p, row in zip(ids, rows, strict=True)]


def agree(folder, ledger, mechanism):
    """Compare a release and its fingerprint from a stream with those from memory."""
    items = ["q2", "never", "q0", "q3", "q1"]
    ours, theirs = (
        values_of(folder, mechanism, engine=engine, items=items) for engine in ("duckdb", "memory")
    )
    assert same(ours, theirs)
    with open_answers(folder, "duckdb") as answers:
        memory = read_responses(folder)
        assert ledger.recognise(answers) == ledger.recognise(memory)


@pytest.fixture
def ledger(tmp_path):
    return discreet.Ledger.create(tmp_path / "spent.db", 50.0, 1e-5)


def test_long_answers_give_the_statistics_and_the_fingerprint_of_memory(tmp_path, ledger):
    @settings(max_examples=15, deadline=None)
    @given(rows=long_tables(), mechanism=st.sampled_from(COUNTED))
    def check(rows, mechanism):
        agree(write(tmp_path / "answers", rows), ledger, mechanism)

    check()


def test_wide_answers_give_the_statistics_and_the_fingerprint_of_memory(tmp_path, ledger):
    @settings(max_examples=15, deadline=None)
    @given(rows=wide_tables(), mechanism=st.sampled_from(COUNTED), named=st.booleans())
    def check(rows, mechanism, named):
        names = ["person", *(f"q{j}" for j in range(4))]
        if not named:
            rows, names = [row[1:] for row in rows], names[1:]
        folder = write(tmp_path / "answers", rows, names)
        try:
            read_responses(folder)
        except BadResponses:  # a column without any answer has no type
            return
        agree(folder, ledger, mechanism)

    check()


def test_wide_persons_who_come_back_are_joined_before_the_release(tmp_path, ledger):
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "a.csv").write_text("person,q0,q1\nann,1,0\nbob,0,1\ncay,,\n")
    (tmp_path / "answers" / "b.csv").write_text("person,q2,q3\nbob,1,\ndan,0,1\nann,0,\n")
    agree(tmp_path / "answers", ledger, "margins")


def test_a_database_a_query_and_a_pattern_are_released(tmp_path):
    folder = write(tmp_path / "answers", table())
    path = tmp_path / "answers.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE kept AS FROM '{folder}/*.parquet'")
    expected = values_of(folder, engine="memory")
    query = f"SELECT * FROM '{folder}/*.parquet'"  # noqa: S608
    inner = f"{path}::SELECT * FROM kept"  # noqa: S608
    for source in (f"{folder}/*.parquet", path, f"{path}::kept", query, inner):
        for engine in ("auto", "duckdb"):
            assert same(values_of(source, engine=engine), expected), source


def test_json_lines_are_released(tmp_path, ledger):
    file = tmp_path / "answers.jsonl"
    cells = {}
    for person, item, value in table(n_persons=20, answered=0.7):
        cells.setdefault(person, {})[item] = value
    file.write_text(
        "".join(
            json.dumps({"subject_id": f"p{p}", "responses": own}) + "\n" for p, own in cells.items()
        )
    )
    assert same(values_of(file, engine="duckdb"), values_of(file, engine="memory"))
    with open_answers(file, "duckdb") as answers:
        assert ledger.recognise(answers) == ledger.recognise(read_responses(file))


def test_large_files_go_out_of_core_by_themselves(tmp_path, monkeypatch):
    folder = write(tmp_path / "answers", table())
    expected = values_of(folder)
    monkeypatch.setattr(dataset, "SURELY_SMALL", 0)
    monkeypatch.setattr(dataset, "available_memory", lambda: 100)

    def refuse(*_arguments, **_settings):
        raise AssertionError("read into memory")

    monkeypatch.setattr("discreet.readers.answers.read_responses", refuse)
    assert same(values_of(folder), expected)


def test_answers_that_fit_opened_are_released_as_well(tmp_path):
    folder = write(tmp_path / "answers", table())
    opened = persons.open_stream(folder)
    assert same(values_of(opened), values_of(folder, engine="memory"))
    assert same(values_of(opened, "margins"), values_of(folder, "margins", engine="memory"))


def test_counts_are_refused_because_they_cannot_be_capped(tmp_path):
    counts = count_pairs(write(tmp_path / "answers", table()))
    with refused(BadUsage, "release_needs_answers_themselves"):
        values_of(counts)


def test_what_was_read_of_a_parquet_file_is_not_kept(tmp_path):
    """Arrow can keep every byte it read until the file is closed: then memory has no bound."""
    from discreet.tables.sources import ParquetSource

    noise = np.random.default_rng(0).integers(0, 1 << 62, 1_000_000)
    pq.write_table(pa.table({"person": noise}), tmp_path / "large.parquet", row_group_size=1 << 16)
    source = ParquetSource(tmp_path / "large.parquet")
    before = pa.total_allocated_bytes()
    assert sum(len(batch[0]) for batch in source.batches([0])) == 1_000_000
    assert pa.total_allocated_bytes() - before < 2_000_000


# -- the fingerprint -------------------------------------------------------------------------


@given(rows=st.lists(st.binary(max_size=4), max_size=12), cut=st.integers(0, 12))
def test_digests_of_parts_add_up_to_that_of_the_whole(rows, cut):
    key = b"key"
    parts = [digest_rows(key, rows[cut:]), digest_rows(key, rows[:cut])]
    assert add_digests(parts) == digest_rows(key, rows)


def test_the_ledger_recognises_answers_wherever_they_come_from(tmp_path, ledger):
    folder = write(tmp_path / "answers", table(answered=0.6))
    ordered = write(tmp_path / "ordered", sorted(table(answered=0.6)))
    ledger.declare("spring")
    ledger.declare("autumn", disjoint=["spring"])
    values_of(folder, engine="memory", ledger=ledger, population="spring")
    for source in (folder, ordered):
        with refused(LedgerError, "these_very_answers_already", population="spring"):
            values_of(source, engine="duckdb", ledger=ledger, population="autumn")
    values_of(ordered, engine="duckdb", ledger=ledger, population="spring")
    first, second = ledger.releases()
    assert first.fingerprint == second.fingerprint


# -- the order of things ---------------------------------------------------------------------


class Watched(NoNoise):
    """Notes how many releases were charged whenever randomness is drawn."""

    def __init__(self, ledger):
        super().__init__(WatchedSource(ledger))

    def gaussian(self, sigma, size):
        self.source.note("noise")
        return super().gaussian(sigma, size)


class WatchedSource(SeededSource):
    def __init__(self, ledger):
        super().__init__(4)
        self.ledger, self.seen = ledger, []

    def note(self, what):
        self.seen.append((what, len(self.ledger.releases())))

    def words(self, count):
        self.note("words")
        return super().words(count)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_stream_is_charged_before_the_noise_and_counted_before_the_charge(
    tmp_path, ledger, order
):
    folder = write(tmp_path / "answers", table(order=order))
    noise = Watched(ledger)
    values_of(folder, engine="duckdb", ledger=ledger, max_answers=3, noise=noise)
    seen = noise.source.seen
    assert seen[0] == ("words", 0)  # the cap: what can go wrong with counting costs nothing
    first = seen.index(("noise", 1))
    assert all(charged == 1 for _, charged in seen[first:])
    assert all(what == "words" and charged == 0 for what, charged in seen[:first])


def test_the_watch_would_notice_noise_before_the_charge(tmp_path, ledger, monkeypatch):
    folder = write(tmp_path / "answers", table())
    noise = Watched(ledger)
    real = delivery.check_answers

    def eager(answers, public, mechanism):
        noise.gaussian(Fraction(2), 3)
        real(answers, public, mechanism)

    monkeypatch.setattr(delivery, "check_answers", eager)
    values_of(folder, engine="duckdb", ledger=ledger, max_answers=3, noise=noise)
    assert ("noise", 0) in noise.source.seen


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([*table(), (3, "q1", 1)], "person_answered_item_more"),
        ([*table(), (41, "q1", 5)], "bad_answer"),
    ],
)
def test_a_mistake_in_a_stream_charges_nothing(tmp_path, ledger, rows, code):
    folder = write(tmp_path / "answers", rows)
    with refused(BadResponses, code):
        values_of(folder, engine="duckdb", ledger=ledger)
    assert ledger.releases() == ()


# -- the cap ---------------------------------------------------------------------------------

PATTERN = {"a": 1, "b": 0, "c": 1}
"""Of two kept answers out of these, those to b are exactly the pairs of right and wrong."""


def capped_counts(folder, monkeypatch=None, weighting=None):
    with open_answers(folder, "duckdb") as answers:
        capped = answers.select(sorted(PATTERN)).cap(2, SeededSource(8))
        return count_pairs(capped, weighting=weighting)


def pattern_folder(tmp_path, n_persons=400, order="shuffled"):
    rows = [(p, item, value) for p in range(n_persons) for item, value in PATTERN.items()]
    if order == "shuffled":
        rows = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))]
    return write(tmp_path / "pattern", rows)


def keeps_the_cap(counts, n_persons=400):
    """Whether exactly these persons gave exactly two answers each, all from one draw."""
    return (
        counts.persons == n_persons
        and counts.answers.sum() == 2 * n_persons
        and counts.right_wrong[:, 1].sum() == counts.answers[1]
        and counts.right_wrong[1].sum() == 0
    )


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_streamed_cap_holds_for_every_person_and_comes_from_one_draw(tmp_path, order):
    assert keeps_the_cap(capped_counts(pattern_folder(tmp_path, order=order)))


def test_the_check_of_the_cap_notices_a_stream_that_ignores_it(tmp_path, monkeypatch):
    monkeypatch.setattr(persons.StreamedCap, "begin", lambda _self: lambda batch: batch)
    assert not keeps_the_cap(capped_counts(pattern_folder(tmp_path)))


def test_the_check_of_the_cap_notices_persons_split_over_buckets(tmp_path, monkeypatch):
    def by_row(_self, person):
        return (np.arange(len(person)) % 8).astype(np.uint16)

    monkeypatch.setattr(buckets.Buckets, "_spread", by_row)
    assert not keeps_the_cap(capped_counts(pattern_folder(tmp_path)))


def test_the_check_of_the_cap_notices_persons_split_over_batches(tmp_path, monkeypatch):
    """Rows in no order, cut as if they were in order: every run of one id counts as a person."""
    folder = pattern_folder(tmp_path, order="sorted")
    with open_stream(folder) as answers, monkeypatch.context() as patch:
        assert answers.n_persons == 400
        pattern_folder(tmp_path)
        patch.setattr(passes.Passes, "_check_unchanged", lambda _self: None)
        with refused(BadUsage, "changed_while_being_read"):  # the cutter looks again by itself
            answers.select(sorted(PATTERN)).count(None)

    def cut_anywhere(rows, place):
        for batch in real(rows, place):
            store = batch.store
            middle = store.rows(0, store.n_persons)
            halves = np.where(np.arange(3) < 2, middle, -1), np.where(np.arange(3) < 2, -1, middle)
            for half in halves:
                answers = Responses.from_array(half, items=batch.items)
                yield batches.PersonBatch(batch.items, None, answers.store, batch.rows)

    real = batches.ordered_batches
    monkeypatch.setattr(passes.batches, "ordered_batches", cut_anywhere)
    assert not keeps_the_cap(capped_counts(pattern_folder(tmp_path, order="sorted")))


def test_the_check_of_the_cap_notices_cells_from_a_second_draw(tmp_path, monkeypatch):
    folder = pattern_folder(tmp_path)
    with open_answers(folder, "duckdb") as answers:
        source = SeededSource(8)
        first, second = (answers.select(sorted(PATTERN)).cap(2, source).count(None) for _ in "ab")
    mixed = PairCounts(first.items, first.right_wrong, second.answers, second.right, first.persons)
    assert keeps_the_cap(first)
    assert keeps_the_cap(second)
    assert not keeps_the_cap(mixed)


def test_capped_answers_keep_the_same_in_every_pass(tmp_path):
    with open_answers(pattern_folder(tmp_path), "duckdb") as answers:
        capped = answers.cap(2, SystemSource())
        rows = [np.vstack([one.to_array() for one in capped.batches()]) for _ in range(3)]
        for again in rows[1:]:
            assert np.array_equal(rows[0], again, equal_nan=True)
        others = np.vstack([one.to_array() for one in answers.cap(2, SystemSource()).batches()])
        assert not np.array_equal(rows[0], others, equal_nan=True)
        # Passes that go on at the same time do not disturb each other.
        pairs = list(zip(capped.batches(), capped.batches(), strict=True))
        assert all(np.array_equal(a.to_array(), b.to_array(), equal_nan=True) for a, b in pairs)
        picked = capped.select(["b", "a"])
        total = capped.reduce(PersonTotals())
        assert total[0].max() == 2
        assert picked.reduce(PersonTotals())[0].max() <= 2
        with refused(DiscreetError, "how_many_answers_cap"):
            _ = capped.n_answers
        assert answers.cap(2, SeededSource(1)).count(None).answers.sum() == 800


def test_answers_that_were_capped_before_are_refused_before_the_ledger_is_charged(tmp_path, ledger):
    with open_answers(pattern_folder(tmp_path), "duckdb") as answers:
        capped = answers.cap(2, SeededSource(1))
        with refused(BadUsage, "these_answers_capped_already"):
            values_of(capped, items=sorted(PATTERN), ledger=ledger)
        assert ledger.releases() == ()
        assert capped.count(None).answers.sum() == 800  # the one pass is still there


def test_a_cap_that_cuts_nothing_draws_nothing(tmp_path):
    class Untouchable(SeededSource):
        def words(self, count):
            raise AssertionError("drawn without need")

    with open_answers(pattern_folder(tmp_path), "duckdb") as answers:
        capped = answers.cap(3, Untouchable(1))
        assert capped.count(None).answers.sum() == capped.count(None).answers.sum() == 1200
        with refused(BadUsage, "must_whole_number_least"):
            answers.cap(0, SeededSource(1))


def test_weights_are_those_of_what_the_cap_left(tmp_path):
    def weigh(answered, right):
        assert (answered == 2).all()
        return 10 * answered + right

    counts = capped_counts(pattern_folder(tmp_path), weighting=weigh)
    # Whoever keeps b keeps one right and one wrong answer: a weight of 21 for each.
    assert counts.right_wrong.sum() == 21 * counts.answers[1]


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_every_part_of_a_persons_answers_is_equally_likely_on_a_stream(
    tmp_path, order, monkeypatch
):
    monkeypatch.setattr(batches, "TARGET_ROWS", 1000)
    monkeypatch.setattr(buckets, "SLAB_ROWS", 10_000)
    n_persons, n_items = 6000, 5
    rng = np.random.default_rng(2)
    person, item = np.divmod(np.arange(n_persons * n_items), n_items)
    if order == "shuffled":
        mixed = rng.permutation(len(person))
        person, item = person[mixed], item[mixed]
    pq.write_table(
        pa.table({"person": person, "item": item, "response": item % 2}), tmp_path / "all.parquet"
    )
    with open_answers(tmp_path / "all.parquet", "duckdb") as answers:
        capped = answers.select([str(i) for i in range(n_items)]).cap(2, SeededSource(21))
        kept = np.concatenate([one.to_array() for one in capped.batches()]) >= 0
    found = np.bincount(kept @ (1 << np.arange(n_items)), minlength=32)
    expected = n_persons / 10
    masks = [(1 << i) + (1 << j) for i, j in combinations(range(n_items), 2)]
    assert found[masks].sum() == n_persons
    chi_square = ((found[masks] - expected) ** 2 / expected).sum()
    assert chi_square < 27.9  # 9 degrees of freedom, one in a thousand


# -- rows that are not the same twice --------------------------------------------------------

RESTLESS = """
    SELECT {id} AS person, 'q' || item AS item, (random() < 0.5)::INT AS response
    FROM range(60) a(p), range(6) b(item) WHERE random() < 0.7 ORDER BY {order}
"""
CELLS = ", ".join(f"(random() < 0.5)::INT AS q{i}" for i in range(6))
RESTLESS_WIDE = f"SELECT {{id}} {CELLS} FROM range((40 + 20 * random())::INT) a(p)"  # noqa: S608


def looks_steady(source):
    """Whether all passes over a source see the same rows."""
    with open_answers(source, "duckdb") as answers:
        try:
            digests = {answers.digest(b"key") for _ in range(3)}
            counts = answers.count(None)
            answered, right = answers.totals.answers, answers.totals.right
        except BadUsage:
            return False
    same_totals = np.array_equal(counts.answers, answered) and np.array_equal(counts.right, right)
    return len(digests) == 1 and same_totals


RESTLESS_SOURCES = {
    "in order": RESTLESS.format(id="p", order="p"),
    "text in order": RESTLESS.format(id="'p' || (p + 100)", order="1"),
    "wide": RESTLESS_WIDE.format(id="'p' || p AS person,"),
    "numbered": RESTLESS_WIDE.format(id=""),
}
SHUFFLED = RESTLESS.format(id="p", order="random()")


@pytest.mark.parametrize("query", [*RESTLESS_SOURCES.values(), SHUFFLED])
def test_a_query_with_other_rows_every_time_is_run_once(query):
    assert looks_steady(query)


@pytest.mark.parametrize("kind", sorted(RESTLESS_SOURCES))
def test_the_check_notices_a_query_that_is_run_again(kind, monkeypatch):
    real = dataset._open_query

    def pretend(query, resources):
        found = real(query, resources)
        return dataset.Dataset(found.shards, steady=True)

    monkeypatch.setattr(dataset, "_open_query", pretend)
    assert not looks_steady(RESTLESS_SOURCES[kind])


def test_a_view_is_as_restless_as_the_query_behind_it(tmp_path):
    path = tmp_path / "views.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW answers AS {RESTLESS_SOURCES['in order']}")
    assert looks_steady(path)


def test_a_query_whose_persons_come_back_is_joined_from_one_run():
    query = """
        SELECT 'p' || (p % 30) AS person,
               CASE WHEN p < 30 THEN (random() < 0.5)::INT END AS q0,
               CASE WHEN p >= 30 THEN (random() < 0.5)::INT END AS q1
        FROM range(60) a(p) ORDER BY random()
    """
    assert looks_steady(query)
    with open_answers(query, "duckdb") as answers:
        assert answers.n_persons == 30


def test_a_query_is_refused_in_the_words_of_its_own_rows():
    query = "SELECT * FROM (VALUES ('a', 'q0', 1), ('a', 'q1', 7)) AS t(person, item, response)"
    with refused(BadResponses, "bad_answer", where="the query, row 2 of its result"):
        values_of(query)
    with refused(BadResponses, "column_names_no_rows_below"):
        values_of("SELECT 1 AS person, 'q0' AS item, 1 AS response WHERE false")


def test_copies_are_for_their_owner_only_and_go_with_the_release(tmp_path):
    spill = tmp_path / "spill"
    with open_stream(SHUFFLED, resources=Resources(spill=spill)) as answers:
        assert answers.n_persons
        (folder,) = [one for one in spill.iterdir() if one.name.startswith("discreet-rows-")]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(folder.rglob("*.arrow"))
        values_of(answers)
    assert not folder.exists()
    with refused(BadUsage, "closed_open_again_go"):
        answers.count(None)


@pytest.mark.posix
def test_what_duckdb_spills_is_for_its_owner_only(tmp_path):
    connection = Resources(spill=tmp_path).connect(None)
    connection.execute("SET memory_limit = '40MB'")
    connection.execute("SET threads = 1")
    connection.execute(
        "CREATE TABLE big AS SELECT hash(i), hash(-i), hash(i * i) FROM range(2000000) t(i)"
    )
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.tmp"))
    del connection
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", ["query", "shuffled"])
def test_a_failed_release_leaves_no_copy_behind(tmp_path, monkeypatch, source):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    data = SHUFFLED if source == "query" else write(tmp_path / "answers", table())

    class Broken(NoNoise):
        def gaussian(self, sigma, size):
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        values_of(data, engine="duckdb", noise=Broken(SeededSource(1)))
    with pytest.raises(BadResponses):
        values_of(data, engine="duckdb", items=["p0", "p1"])
    assert not list((tmp_path / "temporary").glob("discreet-rows-*"))


# -- sources that change while they are read -------------------------------------------------


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_a_file_that_changes_between_passes_is_not_released(tmp_path, ledger, layout):
    folder = tmp_path / "answers"
    if layout == "long":
        write(folder, table(order="sorted"))
        more = "person,item,response\n99,q1,1\n"
    else:
        names = ["person", *(f"q{i}" for i in range(6))]
        write(folder, [(f"p{p}", *[p % 2] * 6) for p in range(20)], names)
        more = "person,q1\np99,1\n"

    class Meddling(NoNoise):
        @property
        def source(self):
            (folder / "9.csv").write_text(more)
            return SeededSource(1)

        @source.setter
        def source(self, value):
            pass

    with refused(BadUsage, "changed_while_being_read"):
        values_of(folder, engine="duckdb", ledger=ledger, max_answers=3, noise=Meddling())


@pytest.mark.posix  # Windows removes no file that is read
def test_rows_distributed_once_do_not_care_about_later_changes(tmp_path):
    folder = write(tmp_path / "answers", table())
    expected = values_of(folder, engine="memory")
    with open_answers(folder, "duckdb") as answers:
        assert answers.n_persons == 40
        for file in folder.iterdir():
            file.unlink()
        assert same(values_of(answers), expected)


def test_the_wall_refuses_another_number_of_persons_than_it_was_prepared_for(tmp_path):
    answers = read_responses(write(tmp_path / "answers", table()))

    class Fewer(Answers):
        items, n_persons, steps = answers.items, answers.n_persons, answers.steps
        detected = ()

        def select(self, items):
            return self

        def cap(self, most, source):
            return discreet.Responses.from_array(answers.to_array()[1:], items=answers.items)

        def digest(self, key):
            return answers.digest(key)

    with refused(DiscreetError, "release_prepared_persons_counted", expected="40", counted="39"):
        values_of(Fewer())


def test_a_stream_takes_a_public_number_of_persons_and_cannot_compare_ids(tmp_path):
    folder = write(tmp_path / "answers", table())
    with_number = values_of(folder, engine="duckdb", persons=50)
    assert same(with_number, values_of(folder, engine="memory", persons=50))
    with refused(BadResponses, "data_people_more_than", n_persons="40", persons="39"):
        values_of(folder, engine="duckdb", persons=39)
    with refused(BadUsage, "list_needs_answers_memory", word_2="persons"):
        values_of(folder, engine="duckdb", persons=["a", "b"])


# -- randomized response ---------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_randomized_response_flips_a_stream_batch_by_batch(tmp_path, order):
    folder = write(tmp_path / "answers", table(order=order, answered=0.6))
    values = values_of(folder, "randomized-response", engine="duckdb")
    together = values["right_right"] + values["wrong_wrong"]
    together = together + values["right_wrong"] + values["right_wrong"].T
    items = [f"q{i}" for i in range(6)]
    present = (read_responses(folder).select(items).to_array() >= 0).astype(int)
    off = ~np.eye(6, dtype=bool)
    assert (together[off] == (present.T @ present)[off]).all()


def test_randomized_response_on_a_stream_keeps_the_cap(tmp_path):
    folder = write(tmp_path / "answers", table())
    values = values_of(folder, "randomized-response", engine="duckdb", max_answers=2)
    off = ~np.eye(6, dtype=bool)
    pairs = values["right_right"][off].sum() / 2 + values["wrong_wrong"][off].sum() / 2
    assert pairs + values["right_wrong"][off].sum() == 40


@pytest.mark.filterwarnings("ignore:epsilon 500")
def test_randomized_response_with_almost_no_flips_counts_what_memory_counts(tmp_path):
    folder = write(tmp_path / "answers", table(answered=0.8))
    items = [f"q{i}" for i in range(6)]
    found = [
        discreet.release(
            folder, discreet.Budget(500.0, 0.0), items=items, engine=engine, noise=silent(),
            mechanism=OPEN,
        ).noisy.values
        for engine in ("duckdb", "memory")
    ]  # fmt: skip
    assert same(*found)


def test_shuffling_on_a_stream_needs_complete_answers(tmp_path, ledger):
    shuffled = RandomizedResponse(shuffler="trusted")
    folder = write(tmp_path / "answers", table(answered=0.9))
    with refused(BadResponses, "amplification_shuffling_holds_when"):
        discreet.release(
            folder, BUDGET, items=[f"q{i}" for i in range(6)], mechanism=shuffled,
            engine="duckdb", ledger=ledger,
        )  # fmt: skip
    assert ledger.releases() == ()


def test_randomized_response_refuses_answers_whose_rows_are_out_of_reach(tmp_path, ledger):
    answers = read_responses(write(tmp_path / "answers", table()))

    class Remote(Answers):
        items, n_persons, n_answers, steps = answers.items, 40, 240, answers.steps
        detected = ()
        admit = staticmethod(refuse_travel)

        def select(self, items):
            return self

    with refused(BadUsage, "these_answers_stay_where"):
        values_of(Remote(), "randomized-response", ledger=ledger)
    assert ledger.releases() == ()


# -- the whole way, as a user goes it --------------------------------------------------------


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A steward's folder: shuffled Parquet files, a database, an item list and a ledger."""
    monkeypatch.undo()  # estimates are wanted here
    folder = write(tmp_path / "answers", table(n_persons=300))
    with duckdb.connect(str(tmp_path / "answers.duckdb")) as connection:
        connection.execute(f"CREATE TABLE kept AS FROM '{folder}/*.parquet'")
    (tmp_path / "items.txt").write_text("\n".join(f"q{i}" for i in range(6)))
    assert commandline.discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", 9).code == 0
    return tmp_path


def type_release(desk, source, *options):
    return commandline.discreet(
        "release", source, "--items", desk / "items.txt", "--max-answers", 3, "--epsilon", 1,
        "--ledger", desk / "spent.db", "--out", desk / "release", "--json", *options,
    )  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "answers",
        "answers/*.parquet",
        "answers.duckdb",
        "answers.duckdb::kept",
        "answers.duckdb::SELECT * FROM kept ORDER BY random()",
    ],
)
def test_the_command_releases_folders_patterns_databases_and_queries(desk, source):
    ended = type_release(desk, f"{desk}/{source}", "--engine", "duckdb", "--spill", desk / "spill")
    assert ended.code == 0, ended.err
    assert [item["item"] for item in ended.document["items"]] == [f"q{i}" for i in range(6)]
    assert ended.document["mechanism"] == "margins"
    record = (desk / "release" / "privacy.json").read_text()
    assert '"persons": 300' in record
    assert "duckdb" not in record
    assert not list((desk / "spill").glob("discreet-rows-*"))


def test_the_command_refuses_a_wrong_engine_and_a_wrong_memory(desk):
    for option, value in (("--engine", "abacus"), ("--memory", "0"), ("--memory", "nan")):
        ended = type_release(desk, desk / "answers", "--engine", "duckdb", option, value)
        assert ended.code == 2, ended.err
        assert option.strip("-") in ended.err
    assert not (desk / "release").exists()


def test_items_outside_the_list_are_ignored_in_a_stream(desk):
    (desk / "items.txt").write_text("q0\nq1\n")
    ended = type_release(desk, desk / "answers", "--engine", "duckdb")
    assert ended.code == 0, ended.err
    assert [row["item"] for row in json.loads(ended.out)["items"]] == ["q0", "q1"]


def test_a_list_without_an_item_of_the_stream_is_bad_data_and_charges_nothing(desk):
    (desk / "items.txt").write_text("p0\np1\n")
    ended = type_release(desk, desk / "answers", "--engine", "duckdb")
    assert (ended.code, ended.out) == (3, "")
    assert "none of the listed items is in the data" in ended.err
    assert discreet.Ledger.open(desk / "spent.db").releases() == ()


def test_progress_is_told_anew_for_every_pass(desk):
    seen = []
    with open_stream(desk / "answers", progress=seen.append) as answers:
        assert answers.n_persons
        first = len(seen)
        answers.digest(b"key")
    assert first >= 1
    assert len(seen) > first
    # The rows were distributed before they were counted: all of them were gone through twice.
    assert seen[first - 1].rows == seen[first - 1].total == 3600
    assert seen[-1].rows == 1800


def test_python_releases_a_folder_with_estimates(desk):
    items = [f"q{i}" for i in range(6)]
    made = discreet.release(desk / "answers", BUDGET, items=items, engine="duckdb")
    assert np.isfinite(made.estimate.difficulty).all()
    assert made.estimate.persons == 300
    assert made.guarantee.is_private
