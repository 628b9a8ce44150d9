"""PostgreSQL: the counts of the memory engine from a real server, and no password anywhere."""

# ruff: noqa: S106, S608 (planted passwords; statements for a throwaway server)
from __future__ import annotations

import gc
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_duckdb_engine import Stop, long_tables, make_small, same, stop_after, weigh, wide_tables

from commandline import discreet
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.coding.reading import Reading
from discreet.errors import BadResponses, BadUsage, DiscreetError, MissingExtra
from discreet.publishing.release import release
from discreet.readers.answers import read_planned, read_responses
from discreet.readers.streamed import counting as checkpoint
from discreet.readers.streamed.counting import count_source, count_stream
from discreet.simulation import simulate
from discreet.tables import resources as limits
from discreet.tables.dataset import is_too_large, open_dataset
from discreet.tables.formats import postgres
from discreet.tables.formats.postgres import parse_address
from discreet.tables.resources import Resources
from odd_columns import COLUMNS, end, make_odd
from postgres_server import ENCODED, PASSWORD, running_server
from real_data import simulate_booklets
from refusals import refused
from source_kinds import ANSWERED, TYPED, Kind, check_whole, compare, make_arrow
from streams import stream_responses

DEAD = f"postgresql://ann:{ENCODED}@127.0.0.1:1/school::answers"


def holds_password(text: str | bytes) -> bool:
    data = text.encode() if isinstance(text, str) else text
    return PASSWORD.encode() in data or ENCODED.encode() in data


# -- addresses: no server needed -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "uri", "place", "wanted"),
    [
        ("postgresql://h/db", "postgresql://h/db", "postgresql://h/db", ""),
        ("postgres://h/db::t", "postgres://h/db", "postgres://h/db", "t"),
        ("postgresql://u@h:5/db::s.t", "postgresql://u@h:5/db", "postgresql://u@h:5/db", "s.t"),
        (
            "postgresql://u:pw@[::1]:5/db::t",
            "postgresql://u:pw@[::1]:5/db",
            "postgresql://u@[::1]:5/db",
            "t",
        ),
        (
            "postgresql://u:p::w@h,i:5/db::SELECT a::text,\n'u@h' FROM t",
            "postgresql://u:p::w@h,i:5/db",
            "postgresql://u@h,i:5/db",
            "SELECT a::text,\n'u@h' FROM t",
        ),
        (
            "postgresql:///db?host=/run/pg&password=pw&user=u::t",
            "postgresql:///db?host=/run/pg&password=pw&user=u",
            "postgresql:///db?host=/run/pg&password=***&user=u",
            "t",
        ),
        ("postgresql://::t", "postgresql://", "postgresql://", "t"),
        ("postgresql://h::SELECT 1/2", "postgresql://h", "postgresql://h", "SELECT 1/2"),
        ("postgresql://h?sslpassword=x&sslmode=require", None,
         "postgresql://h?sslpassword=***&sslmode=require", ""),
    ],
)  # fmt: skip
def test_an_address_is_taken_apart(text, uri, place, wanted):
    address = parse_address(text)
    assert (address.uri, address.place, address.wanted) == (uri or text, place, wanted)


NOT_ENCODED = ["s3/cret", "s3?cret", "s3#cret", "s3 cret", "s3@cret", "s3::/cret", "s3/x::cret"]


@pytest.mark.parametrize("secret", NOT_ENCODED)
@pytest.mark.parametrize("start", ["postgresql://", "postgresql:/", "POSTGRES:/"])
def test_an_address_that_is_none_is_refused_without_being_repeated(start, secret):
    with pytest.raises(BadUsage, match="cannot be understood") as found:
        count_pairs(f"{start}ann:{secret}@127.0.0.1:1/db::answers", engine="duckdb")
    assert "cret" not in str(found.value).replace("secret", "")
    assert "s3" not in str(found.value)


@given(
    st.text(st.characters(codec="ascii", exclude_characters="/?#@", min_codepoint=33), min_size=4)
)
@example("lace")  # part of a word that is shown anyway
@example("place")
@settings(max_examples=50)
def test_no_password_is_shown(secret):
    shown = [parse_address(f"postgresql://u:{one}@h/db::t") for one in (secret, "S3cret")]
    assert len({(one.name, repr(one)) for one in shown}) == 1
    assert secret in shown[0].secrets
    assert shown[0].hide(f"\n{secret}\n").strip("*\n") == ""


def test_servers_are_left_to_the_engine_that_reads_them():
    assert is_too_large(DEAD)
    for source in (DEAD, Path(DEAD)):
        with refused(BadUsage, "file_needed_here_found") as found:
            read_responses(source)
        assert not holds_password(str(found.value))


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    monkeypatch.delitem(sys.modules, "adbc_driver_postgresql.dbapi", raising=False)
    with refused(MissingExtra, "needs_optional_dependency_group", extra="postgres"):
        count_pairs(DEAD)


def test_a_server_that_is_not_there_is_reported_without_the_password():
    pytest.importorskip("adbc_driver_postgresql")
    place = "postgresql://ann@127.0.0.1:1/school"
    with pytest.raises(BadUsage) as found:
        count_pairs(DEAD)
    assert (found.value.code, found.value.facts["place"]) == ("postgresql_not_let_us", place)
    assert "refused" in found.value.facts["error"]
    assert not holds_password("".join(traceback.format_exception(found.value)))


@pytest.mark.parametrize(
    "name", ["table counts", "fit", "score", "top", "result report", "release", "dif"]
)
def test_no_command_prints_the_password(tmp_path, name, monkeypatch):
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    (tmp_path / "items").write_text("q1\n")
    more = {
        "table counts": ["--out", tmp_path / "counts.npz"],
        "release": ["--items", tmp_path / "items", "--epsilon", 1, "--out", tmp_path / "out",
                    "--ledger", tmp_path / "ledger.json"],
        "dif": ["--group", "g"],
        "top": ["3"],
    }  # fmt: skip
    if name == "release":
        discreet("ledger", "create", tmp_path / "ledger.json", "--epsilon", 5, "--delta", 1e-5)
    for source in (DEAD, DEAD.replace("//", "/"), f"{DEAD} nonsense"):
        ended = discreet(*name.split(), source, *more.get(name, []))
        assert ended.code == 2
        assert not holds_password(ended.out + ended.err)


# -- a real server ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("adbc_driver_postgresql")
    with running_server() as running:
        yield running


@pytest.fixture
def small(monkeypatch):
    make_small(monkeypatch)
    monkeypatch.setattr(postgres, "BATCH_BYTES", 200)


def as_table(rows, names=("person", "item", "response")):
    columns = [list(column) for column in zip(*rows, strict=True)]
    types = [None, *[pa.int16() if set(c) <= {0, 1, None} else None for c in columns[1:]]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))


def same_folds(ours, theirs):
    assert np.array_equal(ours.sketch, theirs.sketch)
    for name in ("right_wrong", "answers", "persons"):
        assert np.array_equal(getattr(ours.folds, name), getattr(theirs.folds, name)), name
    return True


def test_long_tables_are_counted_as_in_memory(server, small):
    @settings(max_examples=8, deadline=None)
    @given(rows=long_tables())
    def check(rows):
        table = as_table(rows)
        server.load("answers", table)
        expected = count_pairs(Responses.from_dataframe(table))
        assert same(count_pairs(server.address("answers")), expected)
        weighted = count_pairs(Responses.from_dataframe(table), weighting=weigh)
        assert same(count_pairs(server.address("answers"), weighting=weigh), weighted)
        streamed = list(stream_responses(server.address("answers"), items=expected.items))
        assert same(count_stream(streamed, items=expected.items), expected)
        assert read_planned(server.address("answers")) == Responses.from_dataframe(table)
        folded = count_pairs(Responses.from_dataframe(table), folds=8)
        assert same_folds(count_pairs(server.address("answers"), folds=8), folded)

    check()


def test_wide_tables_are_counted_as_in_memory(server, small):
    @settings(max_examples=6, deadline=None)
    @given(rows=wide_tables(), named=st.booleans())
    def check(rows, named):
        items = [f"q{j}" for j in range(len(rows[0]) - 1)]
        table = as_table(rows, ["person", *items])
        table = table if named else table.drop_columns("person")
        server.load("wide", table)
        expected = count_pairs(Responses.from_dataframe(table))
        assert same(count_pairs(server.address("wide")), expected)

    check()


KINDS = {
    "smallint": ("smallint", "smallint", "smallint"),
    "bigint": ("bigint", "integer", "bigint"),
    "boolean answers": ("integer", "integer", "boolean"),
    "text": ("text", "varchar(20)", "text"),
    "padded": ("char(20)", "char(8)", "char(3)"),
    "numeric": ("numeric", "numeric(10,2)", "numeric(5,1)"),
    "float": ("double precision", "real", "real"),
    "name and oid": ("name", "oid", "smallint"),
}


@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("order", ["p, i", "i, p"])
def test_ids_and_answers_of_every_type_are_read_alike(server, small, kinds, order):
    person, item, response = kinds
    answer = "(p * i % 3 > 0)" if response == "boolean" else "(p * i % 3 > 0)::int"
    server.run(
        "DROP TABLE IF EXISTS typed",
        f"CREATE TABLE typed (person {person}, item {item}, response {response})",
        f"INSERT INTO typed SELECT p, i, CASE WHEN (p + i) % 5 > 0 THEN {answer} END "
        f"FROM generate_series(1, 40) p, generate_series(1, 6) i ORDER BY {order}",
    )
    cells = [(p, i) for p in range(1, 41) for i in range(1, 7)]
    cells.sort(key=lambda cell: cell if order == "p, i" else cell[::-1])
    rows = [(p, i, int(p * i % 3 > 0) if (p + i) % 5 else None) for p, i in cells]
    expected = count_pairs(Responses.from_dataframe(as_table(rows)))
    assert same(count_pairs(server.address("typed")), expected)


def test_uuids_and_enumerations_are_ids_and_equal_numbers_one_person(server):
    server.run(
        "DROP TABLE IF EXISTS odd_ids", "DROP TYPE IF EXISTS question",
        "CREATE TYPE question AS ENUM ('late', 'early')",
        "CREATE TABLE odd_ids (person uuid, item question, response boolean, number numeric)",
        "INSERT INTO odd_ids VALUES "
        "('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'early', true, 7), "
        "('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'late', false, 7.00)",
    )  # fmt: skip
    query = "SELECT person, item, response FROM odd_ids"
    (batch,) = stream_responses(server.address(query))
    assert batch.persons.tolist() == ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]
    assert batch.items == ("early", "late")
    assert batch.to_array().tolist() == [[1, 0]]
    query = "SELECT number AS person, item, response FROM odd_ids -- the end"
    (batch,) = stream_responses(server.address(query))
    assert batch.persons.tolist() == ["7"]


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_fit_finds_what_fit_in_memory_finds(server, small, order, method):
    rng = np.random.default_rng(4)
    cells = simulate(persons=400, items=6, answered=0.6, rng=rng).responses.to_array()
    rows = [(int(p), f"q{i}", int(cells[p, i])) for p, i in np.argwhere(cells >= 0)]
    if order == "shuffled":
        rows = [rows[number] for number in rng.permutation(len(rows))]
    table = as_table(rows)
    server.load("fitted", table)
    ours = fit(server.address("fitted"), method=method)
    theirs = fit(Responses.from_dataframe(table), method=method)
    assert ours.items == theirs.items
    np.testing.assert_allclose(ours.difficulty, theirs.difficulty, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.se, theirs.se, rtol=1e-9)


def test_release_reads_a_server(server, tmp_path):
    from discreet.privacy.accounting import Budget
    from discreet.privacy.ledger import Ledger

    answers = simulate(persons=300, items=4, rng=np.random.default_rng(1)).responses
    cells = answers.to_array()
    rows = [(int(p), f"q{i}", int(cells[p, i])) for p, i in np.argwhere(cells >= 0)]
    server.load("released", as_table(rows))
    items = [f"q{i}" for i in range(4)]
    for wanted in ("released", "SELECT * FROM released WHERE person < 200"):
        book = Ledger.create(tmp_path / f"{len(wanted)}.json", epsilon=5.0, delta=1e-5)
        budget = Budget(2.0, 1e-6)
        found = release(server.address(wanted), budget, items=items, max_answers=4, ledger=book)
        assert found.estimate.items == tuple(items)
        for file in filter(Path.is_file, tmp_path.rglob("*")):
            assert not holds_password(file.read_bytes())


REFUSED = {
    "a repeated answer": (
        "(1, 'q1', 0)",
        "person_answered_item_more",
        {"person": "1", "item": "q1"},
    ),
    "a two": ("(9, 'q1', 2)", "bad_answer", {"value": "2"}),
    "no person": ("(NULL, 'q1', 1)", "column_id_missing_without", {"role": "person"}),
    "no item": ("(9, NULL, 1)", "column_id_missing_without", {"role": "item"}),
}


@pytest.mark.parametrize(("row", "code", "facts"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("order", ["person", "person DESC"])
def test_what_other_readers_refuse_is_refused_with_its_row(server, small, row, code, facts, order):
    server.run(
        "DROP TABLE IF EXISTS wrong",
        "CREATE TABLE wrong (person int, item text, response int)",
        "INSERT INTO wrong VALUES (1, 'q1', 1), (1, 'q2', 0), (2, 'q1', 0)",
        f"INSERT INTO wrong VALUES {row}",
    )
    query = f"SELECT * FROM wrong ORDER BY {order}"
    for wanted in ("wrong", query):
        with refused(BadResponses, code, **facts) as found:
            count_pairs(server.address(wanted))
        assert "row " in str(found.value)
        assert not holds_password(str(found.value))
    with refused(BadResponses, code, **facts) as found:
        count_pairs(server.address("wrong"))
    assert any("row 4 of its result" in str(fact) for fact in found.value.facts.values())


ODD = 'odd "name"; DROP TABLE precious; --'


def test_names_can_be_nothing_but_names(server):
    quoted = '"' + ODD.replace('"', '""') + '"'
    server.run(
        "DROP TABLE IF EXISTS precious", f"DROP SCHEMA IF EXISTS {quoted} CASCADE",
        "CREATE TABLE precious AS SELECT 1 AS person, 'q1' AS item, 1 AS response",
        f"CREATE SCHEMA {quoted}", f"CREATE TABLE {quoted}.{quoted} AS "
        f"SELECT 'p;' AS person, 'q1' AS {quoted}, true AS response",
    )  # fmt: skip
    reading = Reading(item=ODD)
    for wanted in (f"{ODD}.{ODD}", f"{quoted}.{quoted}"):
        assert count_source(server.address(wanted), reading=reading).persons == 1
    for wanted in (ODD, "precious; DROP TABLE precious", "precious) x; DROP TABLE precious; --"):
        with refused(BadUsage, "no_table_user_tables"):
            count_pairs(server.address(wanted))
    stacked = "SELECT * FROM precious) AS x; COMMIT; DROP TABLE precious; SELECT * FROM (SELECT 1"
    writing = "WITH gone AS (DELETE FROM precious RETURNING *) SELECT * FROM gone"
    for query in (stacked, writing, "SELECT nextval('pg_catalog.nothing')"):
        with refused(BadUsage, "postgresql_cannot_read_explain"):
            count_pairs(server.address(query))
    assert count_pairs(server.address("precious")).persons == 1


def test_tables_are_found_in_schemas_views_and_partitions(server):
    server.run(
        "DROP SCHEMA IF EXISTS a CASCADE", "DROP SCHEMA IF EXISTS b CASCADE",
        "CREATE SCHEMA a", "CREATE SCHEMA b",
        "CREATE TABLE a.shared AS SELECT 1 AS person, 'q' AS item, 1 AS response",
        'CREATE TABLE a."dot.ted" AS SELECT * FROM a.shared',
        "CREATE VIEW b.seen AS SELECT * FROM a.shared",
        "CREATE MATERIALIZED VIEW b.kept AS SELECT * FROM a.shared",
        "CREATE TABLE b.cut (person int, item text, response int) PARTITION BY RANGE (person)",
        "CREATE TABLE b.cut_low PARTITION OF b.cut FOR VALUES FROM (0) TO (5)",
        "CREATE TABLE b.cut_high PARTITION OF b.cut FOR VALUES FROM (5) TO (9)",
        "INSERT INTO b.cut SELECT p, 'q', 1 FROM generate_series(1, 8) p",
    )  # fmt: skip
    steady = {"a.shared": True, "a.dot.ted": True, "b.seen": False, "b.kept": True, "b.cut": True}
    for wanted, is_steady in steady.items():
        dataset = open_dataset(server.address(wanted), {}, Resources())
        assert (dataset.steady, dataset.lasting) == (is_steady, False)
        assert count_pairs(server.address(wanted)).persons == (8 if wanted == "b.cut" else 1)
    with refused(BadUsage, "no_table_user_tables", wanted="shared"):
        count_pairs(server.address("shared"))
    with refused(BadUsage, "tables_say_one_holds_answers"):
        count_pairs(server.address())
    server.run('CREATE SCHEMA IF NOT EXISTS "a.dot"', 'CREATE TABLE "a.dot".ted AS TABLE a.shared')
    with refused(BadUsage, "mean_write_one_meant", choices='"a"."dot.ted" and "a.dot"."ted"'):
        count_pairs(server.address("a.dot.ted"))
    server.run('DROP SCHEMA "a.dot" CASCADE')


NOT_LET_IN, CANNOT_READ = "postgresql_not_let_us", "postgresql_cannot_read_explain"


def test_what_the_server_refuses_is_told_in_its_words_and_without_the_password(server):
    cases = [
        (server.address("t", password="wrong-s3cret"), NOT_LET_IN, {}),
        (server.address("t").replace("/postgres::", "/nowhere::"), NOT_LET_IN, {}),
        (
            server.address("SELECT * FROM nowhere"),
            CANNOT_READ,
            {"words": 'relation "nowhere" does not exist.'},
        ),
        (
            server.address("SELECT 1 / 0 AS person, 1 AS item, 1 AS response"),
            CANNOT_READ,
            {"words": "division by zero."},
        ),
        (server.address("SELECT FROM pg_class"), "no_columns_no_answers_read", {}),
        (
            server.address("t").replace("/postgres", "/postgres?nonsense=1"),
            NOT_LET_IN,
            {"error": 'invalid URI query parameter: "nonsense".'},
        ),
    ]
    for source, code, facts in cases:
        with refused(BadUsage, code, **facts) as found:
            count_pairs(source)
        shown = "".join(traceback.format_exception(found.value))
        assert not holds_password(shown)
        assert "wrong-s3cret" not in shown
        assert "\n" not in str(found.value)


# -- tables that change ----------------------------------------------------------------------


def grow(server) -> None:
    server.run(
        "DROP TABLE IF EXISTS growing",
        "CREATE TABLE growing AS "
        "SELECT p AS person, i AS item, ((p * 7 + i * 5) % 11 > 4)::int AS response "
        "FROM generate_series(1, 50) p, generate_series(1, 6) i ORDER BY i, p",
    )


def test_all_passes_see_one_moment_whoever_writes_meanwhile(server, small):
    from discreet.readers.streamed import open_stream

    grow(server)
    expected = read_planned(server.address("growing"))
    with open_stream(server.address("growing")) as answers:
        assert answers.n_persons == 50
        server.run("DELETE FROM growing WHERE person < 9", "INSERT INTO growing VALUES (99, 1, 1)")
        assert same(answers.count(weigh), count_pairs(expected, weighting=weigh))
        rows = np.concatenate([batch.to_array() for batch in answers.batches()])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, expected.to_array()))
    assert count_pairs(server.address("growing")).persons == 43


def test_a_pass_over_ids_alone_does_not_follow_an_index(server, small):
    # The index holds the ids in order, the table does not: the planner would take the index.
    server.run(
        "DROP TABLE IF EXISTS indexed",
        "CREATE TABLE indexed (person int, item int, response int, filler text)",
        "INSERT INTO indexed SELECT p, i, (p * i) % 2, repeat(md5(p::text), 20) "
        "FROM generate_series(1, 300) p, generate_series(1, 4) i ORDER BY i, p",
        "CREATE INDEX ON indexed (person)", "VACUUM ANALYZE indexed",
    )  # fmt: skip
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        cursor.execute("EXPLAIN SELECT person FROM indexed")
        assert "Index Only Scan" in cursor.fetchone()[0]
    source = server.address("indexed")
    streamed = count_stream(stream_responses(source))
    assert same(streamed, count_pairs(read_planned(source)))


def test_connections_are_given_back(server, small):
    grow(server)

    def others() -> int:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid <> pg_backend_pid()"
            )
            return cursor.fetchone()[0]

    def settle() -> int:
        """Return how many are left once the server has noticed who went."""
        for _ in range(3000):
            if others() == before:
                break
            threading.Event().wait(0.1)
        return others()

    gc.collect()
    before = others()
    count_pairs(server.address("growing"))
    fit(server.address("growing"))
    fit(server.address("SELECT * FROM growing"))
    discreet("fit", server.address("growing"))
    read_planned(server.address("growing"))
    with pytest.raises(BadUsage):
        count_pairs(server.address("nowhere"))
    assert settle() == before
    next(stream_responses(server.address("growing")))  # and no more: the rest is not wanted
    gc.collect()
    assert settle() == before


def test_a_checkpoint_goes_on_with_the_rows_it_copied_and_holds_no_password(
    server, small, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(limits, "REPORT_INTERVAL", 0.0)
    grow(server)
    source, kept = server.address("growing"), tmp_path / "kept"
    expected = count_pairs(source)
    with pytest.raises(Stop):
        count_source(source, checkpoint=kept, progress=stop_after(400))
    files = [file for file in kept.rglob("*") if file.is_file()]
    assert files
    assert not any(holds_password(file.read_bytes()) for file in files)
    # A changed password is no other source; the copied rows are those of the first run.
    server.run("DELETE FROM growing WHERE person < 9", "ALTER USER owner PASSWORD 'another'")
    try:
        other = server.address("growing", password="another")
        assert same(count_source(other, checkpoint=kept), expected)
    finally:
        with server.connect(password="another") as connection, connection.cursor() as cursor:
            cursor.execute(f"ALTER USER owner PASSWORD '{PASSWORD}'")


def test_identities_hold_no_password(server):
    grow(server)
    (shard,) = open_dataset(server.address("growing"), {}, Resources()).shards
    assert not holds_password(pickle.dumps(shard.identity) + shard.name.encode())


def test_a_server_that_goes_away_in_the_middle_is_reported(server, monkeypatch):
    monkeypatch.setattr(postgres, "BATCH_BYTES", 1 << 16)
    query = (
        "SELECT p AS person, i AS item, 1 AS response "
        "FROM generate_series(1, 300000) p, generate_series(1, 10) i"
    )
    source = postgres.open_server(server.address(query)).shards[0].open()
    batches = source.batches((0, 1, 2))
    next(batches)
    server.stop()
    try:
        with refused(DiscreetError, "connection_lost_no_result") as found:
            for _ in batches:
                pass
        assert not isinstance(found.value, BadUsage)
        assert not holds_password("".join(traceback.format_exception(found.value)))
        with pytest.raises(DiscreetError):
            next(source.batches((0, 1, 2)))
    finally:
        server.start()


def test_ctrl_c_stops_a_query_that_takes_long(server, tmp_path):
    query = "SELECT 1 AS person, 1 AS item, 1 AS response FROM pg_sleep(3600)"
    command = ["table", "counts", server.address(query), "--out", str(tmp_path / "counts.npz")]
    running = subprocess.Popen(
        [sys.executable, "-m", "discreet", *command], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with server.connect() as connection, connection.cursor() as cursor:

        def is_asleep() -> bool:
            cursor.execute(asleep)
            return cursor.fetchone()[0] > 0

        for wanted in (True, False):
            for _ in range(3000):
                if is_asleep() == wanted:
                    break
                threading.Event().wait(0.1)
            if wanted:
                running.send_signal(signal.SIGINT)
        assert not is_asleep()
    assert running.wait(600) == 130
    assert "Interrupted" in running.stderr.read()
    running.stderr.close()


# -- size ------------------------------------------------------------------------------------

PEAK = """
import resource, sys
import adbc_driver_postgresql.dbapi
from discreet.tables.formats.postgres import open_server

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

dataset = open_server(sys.argv[1])
before = peak()
rows = sum(len(batch[0]) for batch in dataset.shards[0].open().batches((0, 1, 2)))
print(rows, peak() - before)
dataset.close()
"""


def test_rows_are_read_as_they_arrive(server):
    rows = 1_000_000
    server.run(
        "DROP TABLE IF EXISTS large",
        "CREATE TABLE large AS SELECT p AS person, repeat('x', 200) AS item, 1 AS response "
        f"FROM generate_series(1, {rows}) p",
    )
    command = [sys.executable, "-c", PEAK, server.address("large")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, grown = map(int, done.stdout.split())
    assert found == rows
    # The rows are 200 MB, a batch is 4.
    assert grown < 40e6


# -- the command line, and real data -----------------------------------------------------------


def test_commands_read_a_server(server, tmp_path):
    grow(server)
    source, out = server.address("growing"), tmp_path / "counts.npz"
    ended = discreet("table", "counts", source, "--out", out, "--json")
    assert (ended.code, ended.document["persons"]) == (0, 50)
    query = server.address("SELECT person AS who, item, response FROM growing ORDER BY person")
    # A report needs the answers in memory, where another method would be chosen.
    alike = ("--json", "--method", "refined")
    found = [
        discreet("fit", source, *alike),
        discreet("fit", query, *alike, "--person", "who", "--out", tmp_path / "fit"),
        discreet("fit", query, *alike, "--person", "who"),
    ]
    assert [ended.code for ended in found] == [0, 0, 0]
    first, second, third = (ended.document["items"] for ended in found)
    difficulty = [
        {row["item"]: row["difficulty"] for row in rows} for rows in (first, second, third)
    ]
    for item, value in difficulty[0].items():
        assert difficulty[1][item] == pytest.approx(value, abs=1e-9)
        assert difficulty[2][item] == pytest.approx(value, abs=1e-9)
    with_fit = tmp_path / "fit" / "calibration.confidential.json"
    scored = discreet("score", source, "--with", with_fit, "--out", tmp_path / "scores.csv")
    assert scored.code == 0, scored.err
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 5
    assert not any(map(holds_password, written))
    assert not any(holds_password(ended.out + ended.err) for ended in found)


def test_large_tables_give_the_same_counts_in_any_order(server, tmp_path):
    file = simulate_booklets(tmp_path)
    server.load("booklets", pacsv.read_csv(file))
    expected = count_pairs(file, engine="memory")
    assert expected.persons > 1000
    for order in ("person", "md5(person::text || item)"):
        found = count_pairs(server.address(f"SELECT * FROM booklets ORDER BY {order}"))
        assert same(found.select(expected.items), expected)
    found = count_pairs(server.address("booklets"))
    assert same(found.select(expected.items), expected)


# -- one id's rows -------------------------------------------------------------------------------


def compare_rows(server, number, folder):
    def write(folder, table, lines):
        server.load("someone", make_arrow(folder, table, lines))
        return server.address("someone")

    kind = Kind(write, ANSWERED, TYPED)
    check_whole(kind, folder)
    ended = compare(kind, "postgresql", number, folder)
    print(f"PostgreSQL: {dict(ended)}")
    assert ended["compared"] >= 0.35 * number


@pytest.mark.filterwarnings("ignore")
def test_rows_of_one_id_on_a_server_change_nobody_elses_answers(server, tmp_path):
    compare_rows(server, 30, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_rows_of_one_id_on_a_server_change_nobody_elses_answers(server, tmp_path):
    compare_rows(server, 500, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COLUMNS)
def test_an_odd_column_on_a_server_ends_as_in_memory(server, name):
    server.load("odd", make_odd(name))
    assert end(server.address("odd")) == end(make_odd(name))
