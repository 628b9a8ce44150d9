"""Addresses of servers, also misspelt ones: no message repeats their password."""

import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as library
from commandline import discreet
from discreet.errors import DiscreetError, hide_passwords, looks_like_address

SHAPES = [
    "postgresql+psycopg2://ann:{}@host/db",
    "postgresql+psycopg2://ann:{}@host/db::answers",
    "POSTGRES+ASYNCPG://ann:{}@host/db",
    "postgres:/ann:{}@host/db",
    "postgresql//ann:{}@host/db",
    "postgres:ann:{}@host/db",
    "postgresql;//ann:{}@host/db",
    "mysql://ann:{}@host/db",
    "jdbc:postgresql://ann:{}@host/db",
    "jdbc:postgresql://host/db?user=ann&password={}",
    "host=host user=ann password={} dbname=db",
    "Driver={{PostgreSQL}};Server=host;Uid=ann;Pwd={};",
    "https://ann:{}@host/answers.csv",
    "ann:{}@host/db",
]
COMMANDS = [
    ["fit", "{}"],
    ["fit", "{}", "--json"],
    ["fit", "{}", "--out", "{}"],
    ["fit", "ANSWERS", "--anchors", "{}"],
    ["fit", "ANSWERS", "--out", "{}"],
    ["fit", "ANSWERS", "{}"],
    ["top", "{}"],
    ["top", "ANSWERS", "-k", "{}"],
    ["result", "report", "{}"],
    ["score", "{}", "--with", "ANSWERS"],
    ["score", "ANSWERS", "--with", "{}"],
    ["score", "ANSWERS", "--with={}"],
    ["dif", "{}", "--group", "a"],
    ["link", "{}", "{}"],
    ["bank", "create", "{}", "{}", "--scale", "s"],
    ["bank", "add", "{}", "{}"],
    ["bank", "show", "{}"],
    ["compare", "rank", "{}"],
    ["table", "counts", "{}", "--out", "c.npz"],
    ["table", "counts", "{}", "--out", "c.npz", "--engine", "duckdb"],
    ["table", "counts", "ANSWERS", "--out", "{}"],
    ["table", "counts", "ANSWERS", "--out", "c.npz", "--checkpoint", "{}", "--engine", "duckdb"],
    ["table", "counts", "ANSWERS", "--out", "c.npz", "--spill", "{}", "--engine", "duckdb"],
    ["table", "merge", "{}", "--out", "c.npz"],
    ["release", "ANSWERS", "--items", "{}", "--max-answers", "2", "--epsilon", "1",
     "--ledger", "{}", "--out", "{}"],
    ["ledger", "create", "{}", "--epsilon", "1"],
    ["ledger", "show", "{}"],
    ["simulate", "--persons", "2", "--items", "2", "--out", "{}"],
    ["demo", "--out", "{}"],
    ["{}"],
]  # fmt: skip

# Long enough not to occur by chance, with every sign that may upset a pattern.
signs = string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]^_`|~"
passwords = st.text(signs, min_size=9, max_size=16).filter(lambda word: "//" not in word)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).integers(0, 2, (30, 3)).tolist()
    Path("answers.csv").write_text("a,b,c\n" + "\n".join(",".join(map(str, r)) for r in rows))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_repeats_the_password_of_an_address(folder, command):
    rng = np.random.default_rng(len(" ".join(command)))
    for shape in SHAPES:
        password = "".join(rng.choice(list(signs.replace("/", "")), 12))
        address = shape.format(password)
        typed = [part.replace("ANSWERS", "answers.csv").replace("{}", address) for part in command]
        ended = discreet(*typed)
        assert ended.code == 2, (typed, ended)
        assert password not in ended.out + ended.err, (typed, ended)
        assert "fault of the program" not in ended.err
    assert [one.name for one in folder.iterdir()] == ["answers.csv"]


@settings(max_examples=60, deadline=None)
@given(password=passwords, shape=st.sampled_from(SHAPES))
def test_no_function_repeats_the_password_of_an_address(password, shape):
    address = shape.format(password)
    assert looks_like_address(address)
    for read in (
        library.read_responses,
        library.count_pairs,
        library.fit,
        library.read_comparisons,
        lambda path: library.count_pairs(path, engine="duckdb"),
        lambda path: library.score(path, {"a": 0.0}),
        lambda path: library.release(path, library.Budget(1.0), items=["a", "b"]),
    ):
        with pytest.raises((DiscreetError, TypeError, OSError)) as caught:
            read(address)
        assert password not in str(caught.value)


@pytest.mark.parametrize("shape", [one for one in SHAPES if "/ann:" in one or "=" in one])
def test_a_message_that_repeats_an_address_hides_its_password(shape):
    message = f"There is no file '{shape.format('S3cret')}'. Check it."
    assert "S3cret" not in hide_passwords(message)
    assert "S3cret" not in str(DiscreetError(message))
    assert hide_passwords(message).endswith("Check it.")


def test_what_holds_no_password_is_left_alone():
    for text in (
        "There is no file 'data/answers.csv'. Check the path.",
        "postgresql://ann@[::1]:5433/school::answers has no table 'x'.",
        "a.csv, row 3: the answer is '7@8'",
    ):
        assert hide_passwords(text) == text
    for name in ("answers.csv", "data/*.csv", "C:answers.csv", Path("a@b.csv")):
        assert not looks_like_address(name)


@pytest.mark.posix  # Windows has no files with such names
def test_a_file_that_is_called_like_an_address_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("12:30@home.csv").write_text("a,b\n0,1\n1,0\n")
    assert library.read_responses("12:30@home.csv").n_persons == 2
