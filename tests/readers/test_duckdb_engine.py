"""Out of core: the counts of the memory engine, to the last integer, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers.protocol import PersonTotals
from discreet.api.counting import count_pairs
from discreet.coding.reading import Reading
from discreet.counts import PairCounts
from discreet.errors import BadResponses, BadUsage, DiscreetWarning
from discreet.readers import batches
from discreet.readers import batches as buckets
from discreet.readers import rows as blocks
from discreet.readers.answers import read_responses
from discreet.readers.opening import open_answers
from discreet.readers.streamed import counting as checkpoint
from discreet.readers.streamed.counting import count_source, count_stream
from discreet.secure import SeededSource
from discreet.tables import dataset
from discreet.tables.resources import Progress, Resources
from real_data import find_log, find_timss, simulate_booklets
from refusals import refused
from streams import stream_responses


@pytest.fixture(params=["NumPy", "compiled"])
def way(request, monkeypatch):
    """Force one way through the rows, with many small batches and buckets."""
    compiled = request.param == "compiled"
    for module in (batches, blocks):
        monkeypatch.setattr(module, "worth_compiling", lambda _: compiled)
    make_small(monkeypatch)
    return request.param


@pytest.fixture
def small(monkeypatch):
    make_small(monkeypatch)


def make_small(monkeypatch):
    monkeypatch.setattr(batches, "TARGET_ROWS", 7)
    monkeypatch.setattr(buckets, "BYTES_A_ROW", 1 << 26)
    monkeypatch.setattr(buckets, "MOST_BITS", 3)
    monkeypatch.setattr(buckets, "SLAB_ROWS", 11)


def same(ours: PairCounts, theirs: PairCounts) -> bool:
    return (
        ours.items == theirs.items
        and ours.persons == theirs.persons
        and ours.is_sparse == theirs.is_sparse
        and (ours.right_wrong != theirs.right_wrong).sum() == 0
        and np.array_equal(ours.answers, theirs.answers)
        and np.array_equal(ours.right, theirs.right)
    )


def write(folder: Path, rows, kind: str, files: int, names=("person", "item", "response")) -> Path:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, part in enumerate(np.array_split(np.arange(len(rows)), files)):
        columns = {name: [rows[r][c] for r in part] for c, name in enumerate(names)}
        if not len(part):
            continue
        if kind == "parquet":
            pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=5)
        else:
            lines = [",".join("" if v is None else str(v) for v in rows[r]) for r in part]
            text = "\n".join([",".join(names), *lines]) + "\n"
            (folder / f"{number}.csv").write_text(text)
    return folder


def spell(number: int, style: str):
    return {"int": number, "text": f"p{number}", "zeros": f"{number:04}"}[style]


@st.composite
def long_tables(draw):
    persons, items = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    cells = [(p, i) for p in range(persons) for i in range(items)]
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=60, unique=True))
    if draw(st.booleans()):
        chosen = sorted(chosen)
    style = draw(st.sampled_from(["int", "text", "zeros"]))
    item = draw(st.sampled_from(["int", "text"]))
    values = draw(st.lists(st.sampled_from([0, 1, 1, 0, None]), min_size=60, max_size=60))
    return [(spell(p, style), spell(i, item), v) for (p, i), v in zip(chosen, values, strict=False)]


def test_long_counts_equal_the_memory_engine(way, tmp_path):
    @settings(max_examples=30, deadline=None)
    @given(rows=long_tables(), kind=st.sampled_from(["csv", "parquet"]), files=st.integers(1, 3))
    def check(rows, kind, files):
        folder = write(tmp_path / "answers", rows, kind, min(files, len(rows)))
        expected = count_pairs(folder, engine="memory")
        assert same(count_pairs(folder, engine="duckdb"), expected)
        streamed = list(stream_responses(folder, items=expected.items))
        seen = sorted(person for batch in streamed for person in batch.persons)
        assert seen == sorted(read_responses(folder).persons)
        assert same(count_stream(streamed, items=expected.items), expected)

    check()


def weigh(answered, right):
    return 3 * answered + right


def test_weighted_counts_equal_the_memory_engine(way, tmp_path):
    @settings(max_examples=15, deadline=None)
    @given(rows=long_tables())
    def check(rows):
        folder = write(tmp_path / "answers", rows, "parquet", 1)
        expected = count_pairs(folder, engine="memory", weighting=weigh)
        assert same(count_pairs(folder, engine="duckdb", weighting=weigh), expected)

    check()


@st.composite
def wide_tables(draw):
    items = draw(st.integers(1, 5))
    persons = draw(st.lists(st.integers(0, 30), min_size=1, max_size=25, unique=True))
    cell = st.sampled_from([0, 1, None])
    rows = draw(st.lists(st.tuples(*[cell] * items), min_size=len(persons), max_size=len(persons)))
    return [(f"p{p}", *row) for p, row in zip(persons, rows, strict=True)]


@pytest.mark.filterwarnings("ignore:Rows without any entry")
def test_wide_counts_equal_the_memory_engine(small, tmp_path):
    @settings(max_examples=30, deadline=None)
    @given(rows=wide_tables(), kind=st.sampled_from(["csv", "parquet"]), named=st.booleans())
    def check(rows, kind, named):
        rows = rows if named else [row[1:] for row in rows]
        items = [f"q{j}" for j in range(len(rows[0]) - named)]
        names = ["person", *items] if named else items
        folder = write(tmp_path / "answers", rows, kind, min(2, len(rows)), names)
        try:
            expected = count_pairs(folder, engine="memory")
        except BadResponses:
            with pytest.raises(BadResponses):
                count_pairs(folder, engine="duckdb")
            return
        assert same(count_pairs(folder, engine="duckdb"), expected)
        streamed = stream_responses(folder, items=expected.items)
        assert same(count_stream(streamed, items=expected.items), expected)

    check()


@pytest.mark.parametrize("one_means", ["right", "wrong"])
def test_wide_persons_who_come_back_with_other_items_are_joined(small, tmp_path, one_means):
    (tmp_path / "a.csv").write_text("person,q1,q2\nann,1,0\nbob,0,1\ncay,,\n")
    (tmp_path / "b.csv").write_text("person,q3,q2\nbob,1,\ndan,0,1\nann,0,\n")
    reading = Reading(one_means=one_means)
    answers = read_responses(tmp_path, one_means=one_means)
    assert same(count_source(tmp_path, reading=reading), count_pairs(answers))
    assert same(count_stream(stream_responses(tmp_path, reading=reading)), count_pairs(answers))


def test_a_wide_person_with_two_answers_to_an_item_is_refused_with_both_places(small, tmp_path):
    (tmp_path / "a.csv").write_text("person,q1,q2\nann,1,0\nbob,0,1\n")
    (tmp_path / "b.csv").write_text("person,q1,q2\ncay,1,0\nann,1,\n")
    facts = {"person": "ann", "item": "q1", "first": "a.csv, line 2", "second": "b.csv, line 3"}
    with refused(BadResponses, "person_answered_item_more", **facts):
        count_pairs(tmp_path, engine="duckdb")


REPEATED = [
    [("1", "q1", 1), ("1", "q2", 0), ("1", "q1", 0), ("2", "q1", 1)],
    [("2", "q1", 1), ("1", "q2", 0), ("1", "q1", None), ("1", "q1", 0), ("2", "q1", 1)],
]


@pytest.mark.parametrize("rows", REPEATED, ids=["ordered", "shuffled"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_repeated_answers_are_refused_in_the_words_of_the_memory_engine(way, tmp_path, rows, kind):
    folder = write(tmp_path / "answers", rows, kind, 2)
    with pytest.raises(BadResponses) as found:
        count_pairs(folder, engine="memory")
    assert found.value.facts
    with refused(BadResponses, found.value.code, **found.value.facts):
        count_pairs(folder, engine="duckdb")


@pytest.mark.parametrize("rows", REPEATED, ids=["ordered", "shuffled"])
@pytest.mark.parametrize("repeats", ["first", "last"])
@pytest.mark.parametrize("one_means", ["right", "wrong"])
def test_repeats_and_direction_are_settled_as_in_memory(way, tmp_path, rows, repeats, one_means):
    folder = write(tmp_path / "answers", rows, "parquet", 1)
    expected = count_pairs(read_responses(folder, repeats=repeats, one_means=one_means))
    found = count_source(folder, reading=Reading(repeats=repeats, one_means=one_means))
    assert same(found, expected)


@pytest.mark.parametrize(
    "text",
    [
        "person,item,response\n1,q1,1\n1,q2,7\n",
        "person,item,response\n1,q1,1\n,q2,0\n",
        "person,item,response\n1,q1,1\n2,NA,0\n",
        "person,item,response\n1,q1,yes\n",
        "person,item,response\n",
        "person,q1,q2\nann,1,0\nbob,2,0\n",
        "person,q1,q2\nann,1,0\n,1,0\n",
    ],
)
def test_bad_data_is_refused_in_the_words_of_the_memory_engine(tmp_path, text):
    file = tmp_path / "answers.csv"
    file.write_text(text)
    with pytest.raises(BadResponses) as found:
        count_pairs(file, engine="memory")
    assert found.value.facts
    with refused(BadResponses, found.value.code, **found.value.facts):
        count_pairs(file, engine="duckdb")


def test_scores_and_column_names_are_read_as_in_memory(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("who,what,points\na,x,3\na,y,1\nb,x,0\nb,y,2.5\n")
    words = {"person": "who", "item": "what", "response": "points", "at_least": 2.0}
    assert same(
        count_source(file, reading=Reading(**words)), count_pairs(read_responses(file, **words))
    )


def test_a_file_that_stops_being_utf8_is_read_again(tmp_path, monkeypatch):
    from discreet.tables import paths as opening

    monkeypatch.setattr(opening, "_HEAD", 40)
    file = tmp_path / "answers.csv"
    lines = [
        "person,item,response",
        *["ann,q1,1" for _ in range(1)],
        *[f"p{i},q2,0" for i in range(9)],
    ]
    file.write_bytes("\n".join(lines).encode() + b"\nzo\xeb,q1,0\n")
    with pytest.warns(UserWarning, match="not UTF-8"):
        counts = count_pairs(file, engine="duckdb")
    assert counts.persons == 11


# -- databases and queries -------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "answers.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE answers AS SELECT hash(i) % 40 AS person, i % 7 AS item, "
            "(hash(i * 3) % 2)::BOOLEAN AS response FROM range(400) t(i)"
        )
        connection.execute(
            "CREATE OR REPLACE TABLE answers AS "
            "SELECT person, item, any_value(response) AS response FROM answers GROUP BY ALL"
        )
    return path


def expected_of(path, query="SELECT * FROM answers"):
    from discreet.answers.responses import Responses

    with duckdb.connect(str(path), read_only=True) as connection:
        return count_pairs(Responses.from_dataframe(connection.sql(query).to_arrow_table()))


def test_a_database_is_counted_by_its_only_table(small, database):
    assert same(count_pairs(database, engine="duckdb"), expected_of(database))
    assert same(count_pairs(database), expected_of(database))  # auto


def test_a_table_or_a_query_within_a_database_is_counted(database):
    with duckdb.connect(str(database)) as connection:
        connection.execute('CREATE TABLE "odd "" name" AS SELECT * FROM answers WHERE item < 3')
    for wanted, query in [
        ('odd " name', 'SELECT * FROM "odd "" name"'),
        ("SELECT * FROM answers WHERE item > 2 ORDER BY person;",
         "SELECT * FROM answers WHERE item > 2 ORDER BY person"),
    ]:  # fmt: skip
        found = count_pairs(f"{database}::{wanted}", engine="duckdb")
        assert same(found, expected_of(database, query))
    with refused(BadUsage, "tables_say_one_holds", n_rows="2"):
        count_pairs(database, engine="duckdb")
    with refused(BadUsage, "no_table_tables_find_table", table="nonsense"):
        count_pairs(f"{database}::nonsense", engine="duckdb")


def test_a_query_over_files_is_counted(tmp_path):
    rows = [(p, i, (p + i) % 2) for p in range(9) for i in range(4)]
    folder = write(tmp_path / "answers", rows, "parquet", 2)
    query = f"SELECT person AS user_id, item, response AS correct FROM '{folder}/*.parquet'"  # noqa: S608
    assert same(count_pairs(query), count_pairs(folder, engine="memory"))


def test_a_query_that_cannot_run_says_why():
    with refused(BadUsage, "duckdb_cannot_run_explain_query", name="the query"):
        count_pairs("SELECT person, item, response FROM no_such_table", engine="duckdb")


def test_answers_in_memory_are_counted_where_they_are():
    from discreet import datasets

    assert same(count_pairs(datasets.lsat(), engine="duckdb"), count_pairs(datasets.lsat()))


def test_item_names_that_look_alike_are_warned_of_out_of_memory_too(tmp_path):
    rows = [(p, item, p % 2) for p in range(5) for item in ("caf\u00e9", "cafe\u0301")]
    folder = write(tmp_path / "answers", rows, "csv", 1)
    with pytest.warns(DiscreetWarning, match="1 of them"):
        assert len(count_source(folder).items) == 2


# -- stopping and going on -------------------------------------------------------------------


class Stop(Exception):
    pass


def stop_after(rows: int):
    def progress(now: Progress) -> None:
        if now.rows >= rows:
            raise Stop

    return progress


@pytest.fixture
def eager(monkeypatch):
    """Checkpoint and report after every batch."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    from discreet.tables import resources as limits

    monkeypatch.setattr(limits, "REPORT_INTERVAL", 0.0)
    make_small(monkeypatch)


def table(order: str, persons=40, items=6):
    rows = [(p, i, (p * i + p) % 3 % 2) for p in range(persons) for i in range(items)]
    if order == "shuffled":
        np.random.default_rng(1).shuffle(rows)
    return rows


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
@pytest.mark.parametrize("ids", ["int", "text"])
def test_a_run_that_stops_anywhere_goes_on_without_counting_twice(eager, tmp_path, order, ids):
    rows = [(spell(p + 100, ids), i, v) for p, i, v in map(tuple, table(order))]
    folder = write(tmp_path / "answers", rows, "parquet", 3)
    expected = count_pairs(folder, engine="memory")
    kept = tmp_path / "kept"
    for rows_before in (3, 60, 100, 200, 300, 400):
        try:
            found = count_source(folder, checkpoint=kept, progress=stop_after(rows_before))
        except Stop:
            continue
        assert same(found, expected)
        break
    found = count_source(folder, checkpoint=kept)
    assert same(found, expected)
    assert not kept.exists()


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
def test_a_run_that_stops_goes_on_with_the_steps_that_it_found(eager, tmp_path, order):
    rows = [(p, i, (p * i + p + i) % 3) for p, i, _ in map(tuple, table(order))]
    folder = write(tmp_path / "answers", rows, "parquet", 3)
    expected = count_pairs(folder, engine="memory")
    assert expected.steps == (2,) * 6
    for rows_before in (3, 60, 150, 200, 300, 400):
        kept = tmp_path / f"kept-{rows_before}"
        with suppress(Stop):
            count_source(folder, checkpoint=kept, progress=stop_after(rows_before))
        assert same(count_source(folder, checkpoint=kept), expected)
        assert not kept.exists()


def test_going_on_really_skips_what_was_counted(eager, tmp_path):
    folder = write(tmp_path / "answers", table("ordered"), "parquet", 3)
    kept = tmp_path / "kept"
    with pytest.raises(Stop):
        count_source(folder, checkpoint=kept, progress=stop_after(150))
    state = PairCounts.load(kept / "counts.npz")
    assert 0 < state.persons < 40
    seen = []
    count_source(folder, checkpoint=kept, progress=lambda now: seen.append(now.rows))
    assert seen[0] > 100


def test_answers_of_wide_rows_of_one_person_have_an_order_out_of_memory_too(tmp_path):
    rows = [("p1", 1, 1, 3), ("p2", 0, 1, 1), ("p1", 0, "", 2), ("p2", 1, 0, 4), ("p3", 1, 0, 9)]
    file = write(tmp_path / "answers", rows, "csv", 2, ["person", "q1", "q2", "time"])
    reading = Reading(person="person", repeats="last", order_by="time")
    counts = count_source(file, reading=reading)
    answers = read_responses(file, person="person", repeats="last", order_by="time")
    assert answers.to_array().tolist() == [[1, 1], [1, 0], [1, 0]]
    assert same(counts, count_pairs(answers))


def test_a_wide_run_goes_on_without_counting_twice(eager, tmp_path, monkeypatch):
    from discreet.readers import rows as wide

    monkeypatch.setattr(wide, "CELLS", 1)
    names = ["person", "q1", "q2", "q3"]
    rows = [(f"p{p}", p % 2, (p // 2) % 2, (p // 4) % 2) for p in range(30)]
    folder = write(tmp_path / "answers", rows, "parquet", 3, names)
    kept = tmp_path / "kept"
    with pytest.raises(Stop):
        count_source(folder, checkpoint=kept, progress=stop_after(12))
    assert PairCounts.load(kept / "counts.npz").persons > 0
    assert same(count_source(folder, checkpoint=kept), count_pairs(folder, engine="memory"))


def test_a_query_with_a_checkpoint_goes_on_from_its_own_copy_of_the_rows(eager, database):
    kept = database.parent / "kept"
    query = f"{database}::SELECT * FROM answers ORDER BY person"  # noqa: S608
    with pytest.raises(Stop):
        count_source(query, checkpoint=kept, progress=stop_after(300))
    assert same(count_source(query, checkpoint=kept), expected_of(database, query.split("::")[1]))


def test_a_checkpoint_of_other_data_or_options_is_refused(eager, tmp_path):
    folder = write(tmp_path / "answers", table("ordered"), "csv", 2)
    kept = tmp_path / "kept"
    with pytest.raises(Stop):
        count_source(folder, checkpoint=kept, progress=stop_after(100))
    for options in ({"reading": Reading(one_means="wrong")}, {"weighting": weigh}):
        with refused(BadUsage, "checkpoint_belongs_other_data"):
            count_source(folder, checkpoint=kept, **options)
    with (folder / "1.csv").open("a") as file:
        file.write("999,0,1\n")
    with refused(BadUsage, "checkpoint_belongs_other_data"):
        count_source(folder, checkpoint=kept)


def test_a_damaged_bucket_is_noticed(eager, tmp_path):
    folder = write(tmp_path / "answers", table("shuffled"), "parquet", 1)
    kept = tmp_path / "kept"
    with pytest.raises(Stop):
        count_source(folder, checkpoint=kept, progress=stop_after(290))
    for file in (kept / "rows").iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with refused(BadUsage, "not_hold_rows_written"):
        count_source(folder, checkpoint=kept)


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
def test_ctrl_c_leaves_nothing_behind(small, tmp_path, order):
    folder = write(tmp_path / "answers", table(order), "parquet", 2)
    spill = tmp_path / "spill"

    def interrupt(_now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_source(folder, resources=Resources(spill=spill), progress=interrupt)
    assert not spill.exists() or not list(spill.iterdir())


KILLED = """
import sys, time
from discreet.readers import batches
from discreet.readers.streamed import counting as checkpoint
from discreet.readers.streamed.counting import count_source
from discreet.tables import resources as settings
checkpoint.INTERVAL = 0.0
settings.REPORT_INTERVAL = 0.0
batches.TARGET_ROWS, batches.BYTES_A_ROW, batches.MOST_BITS, batches.SLAB_ROWS = 7, 1 << 26, 3, 11
def progress(now):
    print(now.rows, flush=True)
    time.sleep(0 if now.rows < int(sys.argv[3]) else 600)  # until it is killed
count_source(sys.argv[1], checkpoint=sys.argv[2], progress=progress)
"""


@pytest.mark.parametrize(("order", "kill_at"), [("ordered", 120), ("shuffled", 300)])
def test_kill_9_in_the_middle_then_the_same_counts(eager, tmp_path, order, kill_at):
    folder = write(tmp_path / "answers", table(order), "parquet", 3)
    kept = tmp_path / "kept"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(kept), str(kill_at)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout:
            if int(line) >= kill_at:
                os.kill(process.pid, signal.SIGKILL)
                break
        process.wait(timeout=600)
    assert process.returncode == -signal.SIGKILL
    assert PairCounts.load(kept / "counts.npz").items
    assert same(count_source(folder, checkpoint=kept), count_pairs(folder, engine="memory"))


def test_progress_says_rows_rate_and_time_left():
    now = Progress(rows=50, total=200, seconds=2.0)
    assert (now.rate, now.seconds_left) == (25.0, 6.0)
    assert Progress(0, 10, 0.0).seconds_left == float("inf")


def test_too_little_memory_is_refused():
    with refused(BadUsage, "memory_must_least_bytes"):
        Resources(memory=1000)


# -- caps, and the choice of the engine ------------------------------------------------------


def test_capped_batches_keep_at_most_the_cap_of_every_person(small, tmp_path):
    folder = write(tmp_path / "answers", table("shuffled"), "parquet", 1)
    source = SeededSource(3)
    items = [str(i) for i in range(6)]
    capped = [batch.cap(2, source) for batch in stream_responses(folder, items=items)]
    answered = np.concatenate([batch.store.person_totals()[0] for batch in capped])
    assert answered.tolist() == [2] * 40
    assert count_stream(capped).answers.sum() == 80


def test_auto_takes_memory_for_small_files_and_disk_for_large_ones(tmp_path, monkeypatch):
    folder = write(tmp_path / "answers", table("ordered"), "parquet", 1)
    assert not dataset.is_too_large(folder)
    monkeypatch.setattr(dataset, "SURELY_SMALL", 0)
    assert not dataset.is_too_large(folder)
    monkeypatch.setattr(dataset, "available_memory", lambda: 2 * 9 * 240 - 2)
    assert dataset.is_too_large(folder)
    monkeypatch.setattr(dataset, "available_memory", lambda: 2 * 9 * 240)
    assert not dataset.is_too_large(folder)
    assert dataset.is_too_large("SELECT 1 AS person")
    assert not dataset.is_too_large(tmp_path / "nothing.csv")


# -- real data -------------------------------------------------------------------------------


FILES = [
    (simulate_booklets, 1000),
    (find_timss, 1000),
    (find_log, 400),
    pytest.param(find_log, 100_000, marks=pytest.mark.slow),  # a matrix of 2 GB
]


@pytest.mark.parametrize(("source", "most_items"), FILES)
def test_large_files_give_the_same_counts(source, most_items, tmp_path, monkeypatch):
    file = source(tmp_path)
    make_small(monkeypatch)
    monkeypatch.setattr(buckets, "SLAB_ROWS", 1 << 16)
    monkeypatch.setattr(batches, "TARGET_ROWS", 1 << 14)
    orders = {"sorted": "person", "shuffled": "random()"}
    names = "SELECT item FROM source GROUP BY item ORDER BY count(*) DESC, item LIMIT ?"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute("CREATE TABLE source AS SELECT * FROM read_csv(?)", [str(file)])
        connection.execute(f"CREATE TABLE listed AS {names}", [most_items])
        connection.execute("DELETE FROM source WHERE item NOT IN (FROM listed)")
        for order, key in orders.items():
            copy = tmp_path / f"{order}.parquet"
            connection.execute(f"COPY (SELECT * FROM source ORDER BY {key}) TO '{copy}'")  # noqa: S608
    for order in orders:
        copy = tmp_path / f"{order}.parquet"
        expected = count_pairs(copy, engine="memory")
        assert expected.persons > 1000
        assert same(count_pairs(copy, engine="duckdb"), expected)


# -- fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("method", ["refined", "spectral", "conditional"])
def test_fit_out_of_core_finds_what_fit_in_memory_finds(small, tmp_path, order, method):
    from discreet.api.calibrating import fit
    from discreet.simulation import simulate

    rng = np.random.default_rng(4)
    answers = simulate(persons=400, items=6, answered=0.6, rng=rng).responses
    cells = answers.to_array()
    rows = [(int(p), f"q{i}", int(cells[p, i])) for p, i in np.argwhere(cells >= 0)]
    if order == "shuffled":
        rng.shuffle(rows)
        rows = [(int(p), str(i), int(v)) for p, i, v in rows]
    folder = write(tmp_path / "answers", rows, "parquet", 2)
    ours, theirs = (fit(folder, engine=engine, method=method) for engine in ("duckdb", "memory"))
    assert ours.items == theirs.items
    np.testing.assert_allclose(ours.difficulty, theirs.difficulty, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.se, theirs.se, rtol=1e-9)
    assert ours.persons == theirs.persons


def test_rows_of_a_stream_can_be_asked_for_again(small, tmp_path):
    folder = write(tmp_path / "answers", table("shuffled"), "parquet", 1)
    with open_answers(folder, "disk") as answers:
        whole, again = (
            np.concatenate([batch.to_array() for batch in answers.batches()]) for _ in "ab"
        )
        answered, right = answers.reduce(PersonTotals())
    assert whole.shape == (40, 6)
    assert np.array_equal(again, whole)
    assert np.array_equal(answered, (whole >= 0).sum(axis=1))
    assert np.array_equal(right, (whole == 1).sum(axis=1))
