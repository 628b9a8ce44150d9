"""Spark: the counts of the memory engine, to the last integer, also when machines die."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import discreet
from discreet.answers.protocol import Answers, ItemTotals, PersonTotals
from discreet.answers.responses import Responses
from discreet.api.counting import count_pairs
from discreet.coding.reading import Reading
from discreet.counts import PairCounts
from discreet.errors import BadResponses, BadUsage, MissingExtra, OutOfReach
from discreet.models import standard_errors as person_scores
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.residuals import Residuals, make_job
from discreet.privacy.mechanisms.totals import Totals
from discreet.privacy.protocol import Public
from discreet.readers import opening as engines
from discreet.readers.spark import open_frame, tasks
from discreet.readers.spark import rows as layout
from discreet.readers.spark import tasks as capping
from discreet.readers.spark.rows import RowLayout, is_spark_frame, sort_naturally
from discreet.readers.spark.tasks import (
    BLOCK,
    FAILURE,
    CapAnswers,
    SelectItems,
    SumUp,
    View,
    count_vector,
    encode_failure,
    encode_vector,
)
from discreet.secure import SeededSource, SystemSource
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.ids import encode_ids
from discreet.threads import set_threads
from odd_columns import COLUMNS, end, make_odd
from real_data import need
from refusals import refused
from source_kinds import COUNTED, TYPED, Kind, compare, count_and_check, make_arrow
from stepped import draw_codes

HAS_PYSPARK = importlib.util.find_spec("pyspark") is not None

# Narrow on purpose: this one sentence of PySpark 4.3, nothing else.
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)


@pytest.fixture(autouse=True)
def threads_of_its_own():
    """A task uses one thread of its process; here that is the process of the tests."""
    yield
    set_threads(None)


needs_pyspark = pytest.mark.skipif(not HAS_PYSPARK, reason="PySpark is not installed")


def same(ours: PairCounts, theirs: PairCounts) -> bool:
    return (
        ours.items == theirs.items
        and ours.persons == theirs.persons
        and np.array_equal(ours.right_wrong, theirs.right_wrong)
        and np.array_equal(ours.answers, theirs.answers)
        and np.array_equal(ours.right, theirs.right)
    )


# -- without a cluster -----------------------------------------------------------------------


def test_a_table_without_pyspark_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with refused(MissingExtra, "needs_optional_dependency_group", extra="spark"):
        count_pairs("main.school.answers", engine="spark")


def test_the_engine_is_imported_without_pyspark():
    code = (
        "import sys; sys.modules['pyspark'] = None; import discreet.readers.spark; "
        "import discreet; discreet.count_pairs"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_pyspark
def test_a_table_needs_a_session():
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        pytest.skip("another test has started a session")
    with refused(BadUsage, "engine_spark_asked_table"):
        count_pairs("main.school.answers", engine="spark")


def make_fake(module: str):
    """Make a frame that, as Spark's do, has an attribute for each of its columns."""
    kind = type("DataFrame", (), {"engine": "a column", "store": "a column"})
    kind.__module__ = module
    return kind()


@pytest.mark.parametrize(
    "module", ["pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe"]
)
def test_frames_are_recognised_by_name_also_with_columns_that_look_like_ours(module):
    frame = make_fake(module)
    assert is_spark_frame(frame)
    assert engines._choose_engine(frame, None) == "spark"
    assert not isinstance(frame, Answers)


def test_other_sources_are_refused_with_advice():
    with refused(BadUsage, "engine_spark_takes_spark"):
        count_pairs(make_fake("pyspark.pandas.frame"))
    with refused(BadUsage, "engine_spark_takes_spark_dataframe"):
        count_pairs(Path("answers.parquet"), engine="spark")


def test_answers_in_memory_stay_there():
    answers = Responses.from_array(np.array([[1, 0], [0, 1], [1, 1]]))
    assert same(count_pairs(answers, engine="spark"), count_pairs(answers))


def test_the_first_of_repeated_answers_has_no_meaning_without_an_order():
    reading = Reading(None, None, None, None, (), None, "first", "right", None)
    with refused(BadResponses, "repeats_asks_order_rows"):
        open_frame(make_fake("pyspark.sql.classic.dataframe"), reading=reading)


def test_names_are_sorted_with_numbers_by_size():
    assert sort_naturally(["q10", "q9", "b", "q010", "10", "9", ""]) == (
        "", "9", "10", "b", "q9", "q010", "q10",
    )  # fmt: skip


@given(st.lists(st.text(alphabet="aq019é ", max_size=5), unique=True))
def test_the_natural_order_does_not_depend_on_the_order_before(names):
    assert sort_naturally(names) == sort_naturally(names[::-1])
    assert sorted(sort_naturally(names)) == sorted(names)


def test_the_shuffle_takes_off_all_blanks_that_readers_take_off():
    characters = [chr(n) for n in range(sys.maxunicode + 1) if not 0xD800 <= n < 0xE000]
    trimmed = pc.utf8_trim_whitespace(pa.array([f"{c}x{c}" for c in characters]))
    taken = {c for c, left in zip(characters, trimmed.to_pylist(), strict=True) if left == "x"}
    assert len(taken) > 10
    assert taken <= set(layout.BLANKS)


# -- partial sums ----------------------------------------------------------------------------


def add(*parts):
    return list(tasks._add_blocks(iter([batch for part in parts for batch in part])))


def put_together(batches, length, dtype):
    total = np.zeros(length, dtype=dtype)
    for batch in batches:
        block, payload = batch.column("block")[0].as_py(), batch.column("payload")[0].as_py()
        numbers = tasks._unpack(payload)
        total[block * BLOCK : block * BLOCK + len(numbers)] += numbers
    return total


@pytest.mark.parametrize("top", [1, 255, 256, 1 << 31, (1 << 62) - 1])
def test_blocks_of_whole_numbers_add_up_exactly(top):
    rng = np.random.default_rng(top % 1000)
    vectors = [rng.integers(0, top, 2 * BLOCK + 7, endpoint=True) // 2 for _ in range(2)]
    vectors.append(np.zeros(2 * BLOCK + 7, dtype=np.int64))
    sums = add(*(encode_vector(0, vector) for vector in vectors))
    assert np.array_equal(put_together(sums, 2 * BLOCK + 7, np.int64), vectors[0] + vectors[1])


def test_small_counts_travel_in_one_byte_each_and_zeros_not_at_all():
    vector = np.zeros(3 * BLOCK, dtype=np.int64)
    vector[BLOCK] = 200
    (batch,) = encode_vector(0, vector)
    assert batch.column("block").to_pylist() == [1]
    assert len(batch.column("payload")[0].as_py()) == BLOCK + 3


def test_negative_numbers_and_fractions_survive():
    for vector in (np.array([-3, 5, 0]), np.array([0.1, -2.5, 1e300])):
        (batch,) = encode_vector(0, vector)
        assert np.array_equal(put_together([batch], 3, vector.dtype), vector)


def test_a_failure_is_passed_on_instead_of_any_sum():
    sums = encode_vector(0, np.array([1, 2]))
    words = [encode_failure(part, BadResponses(text)) for part, text in ((3, "b"), (1, "a"))]
    (left,) = add(sums, words, encode_vector(1, np.array([3, 4])))
    assert left.column("block").to_pylist() == [FAILURE]
    name, _, told = left.column("payload")[0].as_py().split(b"\n")
    assert (name, told) == (b"BadResponses", b"a")


# -- the cap ---------------------------------------------------------------------------------


def some_store(persons: int, items: int, share: float = 1.0):
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 2, (persons, items)).astype(np.int8)
    cells[rng.random(cells.shape) >= share] = -1
    return Responses.from_array(cells).store


def names_of(persons: int) -> list[bytes]:
    return [str(person).encode() for person in range(persons)]


def subset_statistic(kept, items: int, most: int) -> tuple[float, float]:
    """Return chi-square of the kept sets against equal frequencies, and its critical value."""
    seen = Counter(tuple(np.flatnonzero(row >= 0)) for row in kept)
    sets = list(itertools.combinations(range(items), most))
    expected = len(kept) / len(sets)
    statistic = sum((seen[one] - expected) ** 2 / expected for one in sets)
    return statistic, float(chi2.isf(1e-6, len(sets) - 1))


def test_every_set_of_answers_is_kept_equally_often():
    store = some_store(20_000, 6)
    cap = capping.draw_cap(3, SystemSource())
    kept = capping.cap_store(store, names_of(20_000), cap).rows(0, 20_000)
    statistic, critical = subset_statistic(kept, 6, 3)
    assert statistic < critical


def test_the_test_of_equal_frequencies_would_notice_a_small_preference(monkeypatch):
    whole = capping._expand

    def lean(key, attempt, person, size):
        keys = np.frombuffer(whole(key, attempt, person, size), dtype=np.uint32).copy()
        keys[0] = keys[0] // 8 * 7  # the first answer stays a little more often
        return keys.tobytes()

    monkeypatch.setattr(capping, "_expand", lean)
    cap = capping.draw_cap(3, SystemSource())
    kept = capping.cap_store(some_store(20_000, 6), names_of(20_000), cap).rows(0, 20_000)
    statistic, critical = subset_statistic(kept, 6, 3)
    assert statistic > critical


def test_two_persons_keep_independent_sets():
    cap = capping.draw_cap(1, SystemSource())
    kept = capping.cap_store(some_store(20_000, 4), names_of(20_000), cap).rows(0, 20_000)
    chosen = (kept >= 0).argmax(axis=1).reshape(-1, 2)
    table = np.zeros((4, 4))
    np.add.at(table, (chosen[:, 0], chosen[:, 1]), 1)
    expected = len(chosen) / 16
    assert ((table - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 15)


@given(
    persons=st.integers(1, 30),
    items=st.integers(1, 9),
    share=st.floats(0, 1),
    most=st.integers(1, 9),
)
@settings(max_examples=60)
def test_a_cap_keeps_as_many_as_it_may_and_changes_no_answer(persons, items, share, most):
    store = some_store(persons, items, share)
    cap = capping.draw_cap(most, SeededSource(items))
    kept = capping.cap_store(store, names_of(persons), cap).rows(0, persons)
    before = store.rows(0, persons)
    assert np.array_equal((kept >= 0).sum(axis=1), np.minimum((before >= 0).sum(axis=1), most))
    assert np.array_equal(kept[kept >= 0], before[kept >= 0])


@given(st.permutations(range(12)))
@settings(max_examples=30)
def test_what_a_person_keeps_depends_on_the_key_and_the_person_alone(order):
    store, names = some_store(12, 8, 0.9), names_of(12)
    cap = capping.draw_cap(3, SeededSource(0))
    expected = capping.cap_store(store, names, cap).rows(0, 12)
    moved = Responses.from_array(store.rows(0, 12)[order]).store
    again = capping.cap_store(moved, [names[one] for one in order], cap).rows(0, 12)
    assert np.array_equal(again, expected[order])


def test_another_key_keeps_other_answers():
    store, names = some_store(200, 8), names_of(200)
    one, two = (
        capping.cap_store(store, names, capping.draw_cap(3, SystemSource())).rows(0, 200)
        for _ in range(2)
    )
    differ = (one != two).any(axis=1).mean()
    assert differ > 0.9  # two of 56 sets are equal in 2% of persons


def test_a_cap_does_not_show_its_key():
    cap = capping.draw_cap(3, SystemSource())
    assert len(cap.key) == 32
    assert "key" not in repr(CapAnswers(cap))


def test_keys_that_do_not_decide_are_drawn_again(monkeypatch):
    whole, asked = capping._expand, []

    def stuck(key, attempt, person, size):
        asked.append(attempt)
        return bytes(size) if attempt < 2 else whole(key, attempt, person, size)

    monkeypatch.setattr(capping, "_expand", stuck)
    kept = capping.cap_store(some_store(5, 6), names_of(5), capping.draw_cap(2, SystemSource()))
    assert set(np.diff(kept.indptr)) == {2}
    assert sorted(asked) == [0] * 5 + [1] * 5 + [2] * 5


ROW = st.tuples(*[st.integers(-1, 1)] * 3)


@given(rows=st.lists(ROW, min_size=1, max_size=12), new=ROW, data=st.data())
def test_another_person_without_an_id_changes_one_name_only(rows, new, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    other = [*rows[:place], new, *rows[place + 1 :]]

    def names(cells):
        store = Responses.from_array(np.array(cells, dtype=np.int8)).store
        return Counter(capping.make_row_names(store, None, {}))

    before, after = names(rows), names(other)
    assert max(before.values()) == 1
    assert sum((before - after).values()) <= 1


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([5, -9])), min_size=1, max_size=12)
)
def test_names_of_rows_do_not_depend_on_the_number_of_tasks(rows):
    """The same answers in two spellings, which have two marks, in one task or in two."""

    def names(some):
        if not some:
            return Counter()
        store = Responses.from_array(np.array([[row - 1] for row, _ in some], dtype=np.int8)).store
        return Counter(capping.make_row_names(store, np.array([mark for _, mark in some]), {}))

    apart = [[row for row in rows if row[1] == mark] for mark in (5, -9)]
    assert names(rows) == names(apart[0]) + names(apart[1])


# -- a task, without Spark around it ---------------------------------------------------------


def long_layout(
    items: tuple[str, ...], *, as_text: bool = False, reading: Reading | None = None
) -> RowLayout:
    said = reading or Reading()
    return RowLayout(
        names=("person", "item", "response", *said.ordering),
        plan=LongPlan(0, 1, 2, (), tuple(range(3, 3 + len(said.ordering)))),
        items=items,
        reading=said,
        as_text=as_text,
        whole_rows=False,
        many=False,
    )


def run_task(task, table, sizes=(1000,)):
    batches, start = [], 0
    for size in itertools.cycle(sizes):
        if start >= table.num_rows:
            break
        batches += table.slice(start, size).combine_chunks().to_batches()
        start += size
    return list(task(iter(batches)))


@st.composite
def long_tables(draw):
    """Long rows of few persons and items, no answer twice, some of them missing."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), unique=True, min_size=1,
            max_size=n * m,
        )
    )  # fmt: skip
    values = draw(st.lists(st.sampled_from([0, 1, None]), min_size=len(pairs), max_size=len(pairs)))
    kind = draw(st.sampled_from(["numbers", "texts"]))
    persons = [who - 3 for who, _ in pairs]
    if kind == "texts":
        blanks = draw(st.lists(st.sampled_from(["", " ", "\t", "\u2003"]), min_size=len(pairs),
                               max_size=len(pairs)))  # fmt: skip
        persons = [f"{blank}s{who}{blank}" for blank, who in zip(blanks, persons, strict=True)]
    items = [f"q{number}" for _, number in pairs]
    columns = {"person": persons, "item": items, "response": pa.array(values, pa.int8())}
    return pa.table(columns)


@needs_pyspark
@given(table=long_tables(), sizes=st.lists(st.integers(1, 7), min_size=1, max_size=3))
@settings(max_examples=60)
def test_a_task_counts_as_memory_does_however_its_rows_come(table, sizes):
    memory = Responses.from_dataframe(table)
    items = sort_naturally(memory.items)
    as_text = pa.types.is_string(table.schema.field("person").type)
    task = SumUp(
        View(long_layout(items, as_text=as_text)), lambda persons: count_vector(persons.store, None)
    )
    m = len(items)
    total = put_together(run_task(task, table, sizes), m * m + 2 * m + 1, np.int64)
    expected = count_vector(memory.select(items).store, None)
    assert np.array_equal(total, expected)


@needs_pyspark
@given(
    order=st.permutations(range(40)),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    which=st.sampled_from(["first", "last"]),
    as_text=st.booleans(),
)
@settings(max_examples=30)
def test_a_task_keeps_the_last_answer_by_a_column_however_its_rows_come(
    order, sizes, which, as_text
):
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "person": [str(n % 5) if as_text else n % 5 for n in range(40)],
            "item": [f"q{n // 5 % 3}" for n in range(40)],
            "response": [None if n % 9 == 0 else int(n % 3 == 1) for n in range(40)],
            "time": rng.permutation(40) + 2**55,
        }
    )
    words = {"repeats": which, "order_by": "time"}
    memory = Responses.from_dataframe(table, **words).select(["q0", "q1", "q2"])
    layout = long_layout(memory.items, as_text=as_text, reading=Reading(**words))
    task = SumUp(View(layout), lambda persons: count_vector(persons.store, None))
    total = put_together(run_task(task, table.take(order), sizes), 16, np.int64)
    assert np.array_equal(total, count_vector(memory.store, None))


@needs_pyspark
def test_different_answers_of_one_time_are_refused_in_a_task_and_equal_ones_are_not():
    columns = {"person": ["a", "a"], "item": ["x", "x"], "time": [1, 1]}
    layout = long_layout(("x",), as_text=True, reading=Reading(repeats="last", order_by="time"))
    task = SumUp(View(layout), lambda persons: count_vector(persons.store, None))
    for answers, wrong in (([1, 0], True), ([1, 1], False), ([1, None], False)):
        made = pa.table({**columns, "response": answers})
        sent = run_task(task, made.select(["person", "item", "response", "time"]))
        if wrong:
            (batch,) = sent
            assert batch.column("block").to_pylist() == [FAILURE]
            said = batch.column("payload")[0].as_py().decode()
            assert "person 'a' answered item 'x' differently" in said
        else:
            assert put_together(sent, 4, np.int64).tolist() == [0, 1, 1, 1]


@needs_pyspark
@given(order=st.permutations(range(40)), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3))
@settings(max_examples=30)
def test_a_task_that_runs_again_keeps_the_same_answers(order, sizes):
    table = pa.table(
        {
            "person": [f"p{n // 8}" for n in range(40)],
            "item": [f"q{n % 8}" for n in range(40)],
            "response": [n % 3 % 2 for n in range(40)],
        }
    )
    items = tuple(f"q{n}" for n in range(8))
    cap = CapAnswers(capping.draw_cap(3, SeededSource(2)))
    view = View(long_layout(items, as_text=True), (SelectItems(np.arange(6)), cap))
    task = SumUp(view, lambda persons: count_vector(persons.store, None))
    first = put_together(run_task(task, table), 49, np.int64)
    again = put_together(run_task(task, table.take(order), sizes), 49, np.int64)
    assert np.array_equal(first, again)
    assert first[36:42].sum() == 5 * 3


@needs_pyspark
def test_plain_random_draws_would_have_been_noticed(monkeypatch):
    monkeypatch.setattr(capping, "_expand", lambda key, attempt, person, size: os.urandom(size))
    with pytest.raises(AssertionError):
        test_a_task_that_runs_again_keeps_the_same_answers()


@needs_pyspark
def test_rows_without_ids_are_capped_alike_in_any_order():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2, (300, 4))  # 16 kinds of rows, each many times
    items = tuple(f"q{n}" for n in range(4))
    shape = RowLayout(items, WidePlan(None, (0, 1, 2, 3), ()), items, Reading(), True, True, False)
    view = View(shape, (CapAnswers(capping.draw_cap(2, SeededSource(3))),))
    task = SumUp(view, lambda persons: count_vector(persons.store, None))

    def count(rows):
        marks = rows @ np.array([1, 2, 4, 8])  # what the shuffle adds
        table = pa.table({**{name: rows[:, n] for n, name in enumerate(items)}, "key": marks})
        return put_together(run_task(task, table, (37,)), 25, np.int64)

    first = count(cells)
    assert np.array_equal(first, count(cells[rng.permutation(300)]))
    assert first[16:20].sum() == 600
    # Equal rows do not all keep the same two answers: of each kind every pair of items occurs.
    same_rows = count(np.ones((300, 4), dtype=np.int64))
    assert (same_rows[16:20] > 100).all()


@needs_pyspark
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(1, "a", 1), (1, "a", 0)], "Person '1' answered item 'a' more than once"),
        ([(1, "a", 1), (1, "a", 0)], "Only one answer can count. Remove one of them, for example"),
        ([(1, "a", 2)], "row of person 1 and item 'a', column 'response': found 2"),
        ([(None, "a", 1)], "the person id is missing"),
        ([(1, "c", 1)], "not on the item list"),
    ],
)
def test_a_task_reports_what_is_wrong_instead_of_failing(rows, words):
    table = pa.table({name: [row[n] for row in rows] for n, name in enumerate(("p", "i", "r"))})
    task = SumUp(View(long_layout(("a", "b"))), lambda persons: count_vector(persons.store, None))
    (batch,) = run_task(task, table)
    assert batch.column("block").to_pylist() == [FAILURE]
    assert words in batch.column("payload")[0].as_py().decode()


def test_ids_are_bytes_of_the_text_that_readers_give():
    numbers = tasks.Persons(some_store(2, 2), pa.array([7, -1]))
    ids = encode_ids(pa.array([7, -1])).dictionary.to_pylist()
    assert numbers.names() == [name.encode() for name in ids]


# -- in a session ----------------------------------------------------------------------------

slow = pytest.mark.slow


def need_spark() -> None:
    if not HAS_PYSPARK:
        pytest.skip("PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no java on the path")


@pytest.fixture(scope="module")
def spark():
    """One session for all tests, as starting one takes long."""
    need_spark()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        # Queries run once and on few rows: compiling them well takes longer than running them.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def many_tasks(monkeypatch):
    """Make tasks small, so that there are a few of them."""
    monkeypatch.setattr(layout, "TASK_CELLS", 80)


def in_memory(table, items) -> Responses:
    return Responses.from_dataframe(table).select(items)


def answers_table(persons, items, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(persons, 1)), rng.normal(size=items)
    right = rng.random((persons, items)) < 1 / (1 + np.exp(difficulty - ability))
    person, item = np.nonzero(rng.random((persons, items)) < share)
    order = rng.permutation(len(person))
    person, item = person[order], item[order]
    names = [f"q{number}" for number in item]
    return pa.table({"person": person, "item": names, "response": right[person, item].astype(int)})


def test_steps_that_are_named_are_counted_and_estimated_as_in_memory(spark, many_tasks):
    codes = draw_codes(5, 300, (4, 3, 2, 1), missing=0.2)
    person, item = np.nonzero(codes >= 0)
    cells = {"person": person, "item": [f"q{i}" for i in item], "response": codes[person, item] + 1}
    wide = pa.table({f"q{i}": codes[:, i] for i in range(4)})
    wide = pa.table({"id": np.arange(300), **{
        name: pc.if_else(pc.less(wide[name], 0), None, wide[name]) for name in wide.column_names
    }})  # fmt: skip
    for table, lowest in ((pa.table(cells), 1), (wide, None)):
        frame, words = spark.createDataFrame(table), {"model": "partial-credit", "lowest": lowest}
        local = Responses.from_dataframe(table, **words).select([f"q{i}" for i in range(4)])
        counts = count_pairs(frame, folds=8, **words)
        assert counts.steps == (4, 3, 2, 1)
        assert same(counts, count_pairs(local))
        found = discreet.fit(frame, model="partial-credit", method="refined", lowest=lowest)
        expected = discreet.fit(local, method="refined")
        assert found.thresholds == pytest.approx(expected.thresholds, abs=1e-12, nan_ok=True)
        assert found.threshold_se == pytest.approx(expected.threshold_se, rel=1e-9, nan_ok=True)
    answers = open_frame(spark.createDataFrame(wide), reading=Reading(model="partial-credit"))
    assert answers.digest(b"key") == Responses.from_dataframe(wide).digest(b"key")
    assert answers.cap(2, SeededSource(1)).count().categories.sum() <= 600


def test_steps_that_nobody_named_are_found_as_in_memory(spark, many_tasks):
    codes = draw_codes(5, 300, (4, 3, 2, 1), missing=0.2)
    person, item = np.nonzero(codes >= 0)
    long = {"person": person, "item": [f"q{i}" for i in item], "response": codes[person, item]}
    wide = {
        "id": np.arange(300),
        **{f"q{i}": pa.array(own, mask=own < 0) for i, own in enumerate(codes.T)},
    }
    for cells in (long, wide):
        local = Responses.from_dataframe(pa.table(cells)).select([f"q{i}" for i in range(4)])
        counts = count_pairs(spark.createDataFrame(pa.table(cells)))
        assert counts.steps == (4, 3, 2, 1)
        assert same(counts, count_pairs(local))


def test_one_stray_two_is_refused_unless_the_model_is_named(spark):
    table = pa.table(
        {"id": range(40), "a": [0, 1] * 20, "b": [1, 0] * 20, "c": [0, 1, 1, 0] * 9 + [0, 1, 1, 2]}
    )
    frame = spark.createDataFrame(table)
    with pytest.raises(
        BadResponses, match="Item 'c' has the answer 2, and all other items are right"
    ):
        count_pairs(frame)
    assert count_pairs(frame, model="partial-credit").steps == (1, 1, 2)


def test_totals_of_categories_are_the_integers_of_memory(spark, many_tasks):
    steps, items = (4, 3, 2, 1), tuple(f"q{i}" for i in range(4))
    codes = draw_codes(6, 300, steps, missing=0.2)
    codes[codes.max(axis=1) < 0, 0] = 1
    person, item = np.nonzero(codes >= 0)
    names = [items[i] for i in item]
    table = pa.table({"person": person, "item": names, "response": codes[person, item]})
    words = {"model": "partial-credit"}
    local = Responses.from_dataframe(table, **words).select(items)
    away = open_frame(spark.createDataFrame(table), reading=Reading(**words)).select(items)
    for neighbours in Neighbours:
        persons = 300 if neighbours is Neighbours.REPLACE_ONE else None
        public = Public(items, 3, neighbours, persons, steps=steps)
        mechanism = Totals(answers=2)
        budget = Budget(1.0, 1e-6, neighbours)
        job = mechanism.job(public, mechanism.calibrate(public, budget, SeededSource(1)))
        assert np.array_equal(away.reduce(job), local.reduce(job))


def test_residuals_around_any_centre_are_the_integers_of_memory(spark, many_tasks):
    items = tuple(f"q{i}" for i in range(6))
    codes = draw_codes(3, 300, (1,) * 6, missing=0.3)
    codes[codes.max(axis=1) < 0, 0] = 1
    person, item = np.nonzero(codes >= 0)
    names = [items[i] for i in item]
    table = pa.table({"person": person, "item": names, "response": codes[person, item]})
    local = Responses.from_dataframe(table).select(items)
    away = open_frame(spark.createDataFrame(table)).select(items)
    public = Public(items, 6, Neighbours.REPLACE_ONE, 300)
    told = Residuals().calibrate(public, Budget(1.0, 1e-6), SeededSource(1)).settings
    for centre in ([0] * 6, [900, -20480, 0, 20480, 77, -3]):
        job = make_job(public, told, np.array(centre))
        assert np.array_equal(away.reduce(job), local.reduce(job))


@given(table=long_tables())
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_generated_long_frames_are_counted_as_in_memory(spark, table):
    counts = count_pairs(spark.createDataFrame(table))
    assert same(counts, count_pairs(in_memory(table, counts.items)))
    assert counts.items == sort_naturally(counts.items)


@st.composite
def wide_tables(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["int", "float", "bool", "text"]))
    values = {
        "int": [0, 1, None],
        "float": [0.0, 1.0, float("nan"), None],
        "bool": [True, False, None],
        "text": ["0", "1", "true", "FALSE", "NA", "", " 1 ", None],
    }[kind]
    types = {"int": pa.int32(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    columns = {
        f"item {j}.x": pa.array(
            draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)), types[kind]
        )
        for j in range(m)
    }
    if draw(st.booleans()):
        columns = {"student_id": pa.array([f"s{row}" for row in range(n)]), **columns}
    return pa.table(columns)


@given(table=wide_tables())
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_generated_wide_frames_are_counted_as_in_memory(spark, table):
    counts = count_pairs(spark.createDataFrame(table))
    assert same(counts, count_pairs(Responses.from_dataframe(table)))


def test_many_tasks_sorted_and_shuffled_and_weighted_rows_give_one_result(spark, monkeypatch):
    monkeypatch.setattr(layout, "TASK_CELLS", 20)
    table = answers_table(120, 10)
    assert table.num_rows > 20 * tasks.FAN  # more tasks than are added directly
    shuffled = spark.createDataFrame(table)
    counts = count_pairs(shuffled)
    memory = in_memory(table, counts.items)
    assert same(counts, count_pairs(memory))
    assert same(count_pairs(shuffled.orderBy("person", "item")), counts)
    weighted = count_pairs(shuffled, weighting=weigh)
    expected = count_pairs(memory, weighting=weigh)
    assert same(weighted, expected)
    assert weighted.weighting == expected.weighting


def test_folds_and_the_sketch_are_those_of_memory(spark, many_tasks):
    table = answers_table(120, 6)
    ours = count_pairs(spark.createDataFrame(table), folds=8)
    theirs = count_pairs(in_memory(table, ours.items), folds=8)
    assert same(ours, theirs)
    assert np.array_equal(ours.sketch, theirs.sketch)
    for name in ("right_wrong", "answers", "persons"):
        assert np.array_equal(getattr(ours.folds, name), getattr(theirs.folds, name)), name
    assert (ours.folds.asked, ours.folds.weighting) == (8, theirs.folds.weighting)


def test_folds_of_rows_without_ids_are_refused(spark):
    frame = spark.createDataFrame([(1, 0), (0, 1)], "q1 int, q2 int")
    with refused(BadUsage, "no_column_person_ids"):
        count_pairs(frame, folds=8)
    assert count_pairs(frame, folds=0).sketch is None


def make_weighting():
    """Make a function that is sent whole: executors cannot import this file."""

    def weigh(answered, right):
        return 1000 // np.maximum(answered, 1) + right

    return weigh


weigh = make_weighting()


@slow
@pytest.mark.parametrize(
    ("name", "most"), [("timss2011_aut_math_long", 10_000), ("assist2009_long", 300)]
)
def test_real_data_is_counted_as_in_memory(spark, name, most):
    (path,) = need(f"{name}.csv.gz")
    memory = discreet.read_responses(path)
    answers, _ = memory.store.item_totals()
    kept = [memory.items[j] for j in np.sort(np.argsort(-answers, kind="stable")[:most])]
    frame = spark.read.csv(str(path), header=True, inferSchema=True)
    frame = frame.filter(frame["item"].cast("string").isin(kept)).repartition(3)
    counts = count_pairs(frame)
    ours = Responses.from_dataframe(frame.toArrow()).select(counts.items)
    assert set(counts.items) == set(kept)
    assert same(counts, count_pairs(ours))


def test_ids_that_differ_by_blanks_are_one_person(spark, many_tasks):
    rows = [
        (f"{' ' * (j % 3)}s{i}\u2003", f"q{j} ", (i + j) % 2) for i in range(20) for j in range(5)
    ]
    table = pa.table(
        {name: [row[n] for row in rows] for n, name in enumerate(("id", "item", "score"))}
    )
    counts = count_pairs(spark.createDataFrame(table))
    assert counts.persons == 20
    assert same(counts, count_pairs(in_memory(table, counts.items)))


def test_fractional_ids_are_those_of_the_readers(spark, many_tasks):
    persons = [float(n // 4) if n // 4 else (-0.0 if n % 2 else 0.0) for n in range(40)]
    table = pa.table(
        {"person": persons, "item": [n % 4 for n in range(40)], "response": [1, 0] * 20}
    )
    counts = count_pairs(spark.createDataFrame(table))
    assert counts.persons == 10
    assert same(counts, count_pairs(in_memory(table, counts.items)))


def test_what_memory_refuses_is_refused(spark, many_tasks):
    table = answers_table(60, 6)
    frame = spark.createDataFrame(table)
    with refused(BadResponses, "remove_one_them_example"):
        count_pairs(frame.union(frame.limit(1)))
    two = frame.selectExpr("person", "item", "IF(person = 7, 7, response) AS response")
    with pytest.raises(BadResponses, match=r"person 7 and item 'q\d'.*found 7 where an answer"):
        count_pairs(two)
    with pytest.raises(BadResponses, match="person id is missing"):
        count_pairs(frame.selectExpr("nullif(person, 7) AS person", "item", "response"))
    with refused(BadResponses, "column_id_missing_without", role="item"):
        count_pairs(frame.selectExpr("person", "nullif(item, 'q1') AS item", "response"))
    with refused(BadResponses, "columns_no_rows_no"):
        count_pairs(frame.limit(0))
    with refused(BadResponses, "cannot_tell_whether_long"):
        count_pairs(frame.selectExpr("person", "item", "response AS x"))
    with pytest.raises(BadUsage, match="whole number per person"):
        count_pairs(frame, weighting=lambda answered, right: answered / 2)


def weigh_from_this_file(answered, right):
    return answered + right


def test_what_executors_cannot_import_is_named(spark):
    frame = spark.createDataFrame(answers_table(20, 3))
    with refused(BadUsage, "spark_executors_cannot_import", missing="test_spark"):
        count_pairs(frame, weighting=weigh_from_this_file)


def test_wide_persons_who_come_back_are_put_together_or_refused(spark):
    first = pa.table({"id": ["a", "b", "a"], "x": [1, 0, None], "y": [None, 1, 0]})
    counts = count_pairs(spark.createDataFrame(first))
    assert counts.persons == 2
    assert same(counts, count_pairs(Responses.from_dataframe(first, person="id")))
    again = pa.table({"id": ["a", "b", "a"], "x": [1, 0, 1], "y": [None, 1, 0]})
    with refused(BadResponses, "remove_one_them_example"):
        count_pairs(spark.createDataFrame(again))
    with pytest.raises(BadResponses, match="found 3 where an answer"):
        count_pairs(spark.createDataFrame(pa.table({"id": ["a", "b"], "x": [1, 3]})))


def test_options_of_reading_hold_in_tasks(spark):
    table = pa.table({"who": ["a", "a", "b", "b"], "task": ["x", "y"] * 2, "points": [3, 1, 0, 2]})
    reading = Reading(None, "who", "task", "points", (), None, "error", "wrong", 2)
    memory = Responses.from_dataframe(
        table, person="who", item="task", response="points", one_means="wrong", at_least=2
    )
    answers = open_frame(spark.createDataFrame(table), reading=reading)
    assert same(answers.count(), count_pairs(memory))


def test_the_last_answer_by_a_column_is_kept_as_in_memory(spark, many_tasks):
    first = answers_table(60, 6)
    again = answers_table(60, 6, seed=1)
    rows = pa.concat_tables([first, again]).append_column(
        "day", pa.array(np.random.default_rng(2).permutation(len(first) + len(again)))
    )
    words = {"repeats": "last", "order_by": "day"}
    frame = spark.createDataFrame(rows)
    dates = frame.selectExpr(
        "person", "item", "response", "date_add('2024-05-01', int(day)) AS day"
    )
    for one in (frame, dates):
        counts = count_pairs(one, **words)
        memory = Responses.from_dataframe(rows, **words).select(counts.items)
        assert same(counts, count_pairs(memory))
    with refused(BadResponses, "repeats_asks_order_rows"):
        count_pairs(frame, repeats="last", ignore="day")
    with pytest.raises(BadResponses, match=r"differently at one and the same time.*'day'"):
        count_pairs(frame.selectExpr("person", "item", "response", "1 AS day"), **words)


def test_wide_rows_that_come_back_have_no_order_in_a_cluster(spark):
    wide = pa.table({"id": ["a", "b"], "x": [1, 0], "y": [0, 1], "day": [1, 2]})
    frame, words = spark.createDataFrame(wide), {"repeats": "last", "order_by": "day"}
    assert same(count_pairs(frame, **words), count_pairs(wide, **words))
    with refused(OutOfReach, "wide_persons_come_back"):
        count_pairs(frame.union(frame), **words)


def test_items_that_are_numbers_come_back_as_numbers_from_a_cluster(spark):
    table = answers_table(40, 4)
    numbers = [int(name[1:]) for name in table["item"].to_pylist()]
    frame = spark.createDataFrame(table.set_column(1, "item", pa.array(numbers)))
    found = discreet.fit(frame, method="spectral", standard_errors=False).to_dataframe()
    assert found["item"].tolist() == [0, 1, 2, 3]
    words = discreet.fit(spark.createDataFrame(table), method="spectral", standard_errors=False)
    assert words.to_dataframe()["item"].tolist() == ["q0", "q1", "q2", "q3"]


def test_a_table_is_found_by_its_name(spark):
    table = answers_table(50, 5)
    spark.createDataFrame(table).createOrReplaceTempView("school_answers")
    counts = count_pairs("school_answers", engine="spark")
    assert same(counts, count_pairs(in_memory(table, counts.items)))


def test_an_opened_frame_selects_caps_and_digests_as_memory_does(spark, many_tasks):
    table = answers_table(60, 8)
    answers = open_frame(spark.createDataFrame(table))
    memory = in_memory(table, answers.items)
    key = b"k" * 32
    assert answers.digest(key) == memory.digest(key)
    listed = ["q3", "new", "q1", "q7"]
    chosen, expected = answers.select(listed), memory.select(listed)
    assert chosen.items == expected.items
    assert same(chosen.count(), count_pairs(expected))
    assert same(count_pairs(chosen, weighting=weigh), count_pairs(expected, weighting=weigh))
    # With a column that nobody answered, and persons without answers.
    assert chosen.digest(key) == expected.digest(key)
    assert (chosen.n_persons, chosen.n_answers) == (expected.n_persons, expected.n_answers)
    totals = np.array(expected.store.person_totals())
    found = chosen.reduce(PersonTotals())
    found, totals = (both[:, np.lexsort(both[::-1])] for both in (found, totals))
    assert np.array_equal(found, totals)
    capped = chosen.cap(2, SystemSource())
    answered, _ = capped.reduce(PersonTotals())
    assert np.array_equal(np.sort(np.minimum(totals[0], 2)), np.sort(answered))
    assert capped.n_answers == capped.reduce(ItemTotals())[0, :-1].sum() == answered.sum()
    # All that is asked of one cap comes from one draw, whichever job asks.
    assert same(capped._count(None), capped.count())
    assert capped.cap(2, SystemSource()).digest(key) == capped.digest(key)
    assert chosen.cap(4, SystemSource()) is chosen


def test_rows_without_ids_are_capped_once(spark, many_tasks):
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 2, (60, 5))
    table = pa.table({f"q{j}": cells[:, j] for j in range(5)})
    capped = open_frame(spark.createDataFrame(table).repartition(3)).cap(2, SystemSource())
    counts = capped.count()
    assert counts.answers.sum() == 120
    assert same(capped._count(None), counts)


def test_a_frame_with_other_rows_the_second_time_is_refused(spark):
    table = answers_table(40, 5)
    answers = open_frame(spark.createDataFrame(table))
    answers.n_persons += 1
    with refused(BadResponses, "had_persons_when_opened", first="41", n_persons="40"):
        answers.count(weigh)
    with refused(BadResponses, "had_persons_when_opened"):
        answers.digest(b"k")


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_fit_equals_memory(spark, many_tasks, method):
    table = answers_table(100, 6)
    frame = spark.createDataFrame(table)
    ours = discreet.fit(frame, method=method)
    theirs = discreet.fit(in_memory(table, ours.items), method=method)
    np.testing.assert_allclose(ours.difficulty, theirs.difficulty, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.se, theirs.se, rtol=0, atol=1e-9)


def test_standard_errors_come_from_the_sample_of_memory(spark, monkeypatch):
    monkeypatch.setattr(person_scores, "ENOUGH", 200)
    table = answers_table(1500, 5)
    ours = discreet.fit(spark.createDataFrame(table).repartition(3), method="refined")
    theirs = discreet.fit(in_memory(table, ours.items), method="refined")
    assert "a sample of the 1,499 persons" in ours.se_method
    np.testing.assert_allclose(ours.se, theirs.se, rtol=1e-9)


def test_without_ids_everybody_is_scored(spark, monkeypatch):
    cells = np.random.default_rng(5).integers(0, 2, (1500, 4))
    table = pa.table({f"q{j}": cells[:, j] for j in range(4)})
    theirs = discreet.fit(cells, method="refined")
    monkeypatch.setattr(person_scores, "ENOUGH", 200)
    ours = discreet.fit(spark.createDataFrame(table), method="refined")
    assert ours.se_method.endswith("over all 1,500 persons.")
    np.testing.assert_allclose(ours.se, theirs.se, rtol=1e-9)


def test_a_method_that_needs_all_persons_says_so(spark):
    frame = spark.createDataFrame(answers_table(40, 5))
    with refused(BadUsage, "these_answers_stay_where"):
        discreet.fit(frame, method="conditional")


def test_a_release_is_made_from_a_frame_and_charged_to_the_same_data(spark, tmp_path):
    table = answers_table(200, 6)
    frame = spark.createDataFrame(table)
    items = [f"q{number}" for number in range(6)]
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    ledger = discreet.Ledger.create(tmp_path / "ledger.db", epsilon=5.0, delta=1e-5)
    published = discreet.release(frame, budget, items=items, max_answers=4, ledger=ledger)
    assert published.guarantee.epsilon == 1.0
    assert published.estimate.items == tuple(items)
    assert ledger.recognise(open_frame(frame)) == ledger.recognise(in_memory(table, items))
    part = discreet.release(frame, budget, items=items[1:], max_answers=4)
    assert part.estimate.items == tuple(items[1:])
    assert part.record["persons"] == published.record["persons"]


# -- sessions in a process of their own ------------------------------------------------------


def run_driver(kind: str, folder: Path) -> dict:
    need_spark()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "spark_driver.py"), kind, str(folder)],
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@slow
def test_a_cluster_with_killed_workers_and_executors_counts_everybody_once(tmp_path):
    report = run_driver("cluster", tmp_path)
    assert report["executors"] == 2
    assert report["same"]
    for victim, name in itertools.product(("worker", "executor"), ("plain", "capped")):
        seen = report[f"{victim} {name}"]
        assert seen["running"], "the job was over before anything was killed"
        assert seen["attempts"] > seen["tasks"] > 2, "nothing had to be done again"
        assert seen["same"], (victim, name)


def test_spark_connect_gives_the_same(tmp_path):
    for package in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        try:
            importlib.import_module(package)
        except ImportError:
            pytest.skip(f"Spark Connect needs {package}, which is not installed")
    report = run_driver("connect", tmp_path)
    assert report["module"] == "pyspark.sql.connect.dataframe"
    assert report["same"]
    assert report["table"]
    assert report["difficulty"] < 1e-9
    assert report["se"] < 1e-9
    assert report["epsilon"] == 1.0
    assert "more than once" in report["refused"]


# -- one id's rows -------------------------------------------------------------------------------


def compare_rows(spark, number, folder):
    def write(folder, table, lines):
        return spark.createDataFrame(make_arrow(folder, table, lines))

    ended = compare(Kind(write, COUNTED, TYPED), "spark", number, folder, count_and_check)
    print(f"Spark: {dict(ended)}")
    assert ended["compared"] >= 0.35 * number


def test_rows_of_one_id_in_a_frame_change_nobody_elses_answers(spark, tmp_path):
    compare_rows(spark, 12, tmp_path)


@pytest.mark.slow
def test_many_rows_of_one_id_in_a_frame_change_nobody_elses_answers(spark, tmp_path):
    compare_rows(spark, 150, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "ids of 64 bits"])
def test_an_odd_column_of_a_frame_ends_as_in_memory(spark, name):
    table = make_odd(name)
    assert end(spark.createDataFrame(table), "spark") == end(table)
