"""The command line as a user types it: options, results, exit codes, files."""

import csv
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, Ended, discreet, environment, program
from discreet.cli import output
from discreet.cli.options import THREAD_VARIABLES
from discreet.datasets import WELLBEING_TEXTS, lsat


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The LSAT answers as a wide CSV file."""
    path = tmp_path_factory.mktemp("answers") / "lsat.csv"
    rows = lsat().store.rows(0, 1000)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(LSAT_ITEMS)
        writer.writerows(rows.tolist())
    return path


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def own_environment(monkeypatch):
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


# --- the frame --------------------------------------------------------------------------------


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from discreet.cli import main; main(['--help']);"
        "print(sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for heavy in ("numpy", "scipy", "numba", "pyarrow", "duckdb", "rich", "sqlite3", "pandas"):
        assert f"'{heavy}'" not in done.stderr


def test_a_small_calibration_never_waits_for_the_compiler(answers):
    code = (
        "import sys; from discreet.cli import main; code = main(sys.argv[1:]);"
        "print([m for m in ('numba', 'duckdb', 'sklearn', 'rich') if m in sys.modules],"
        " file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", answers], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["--version"], ["fit", "--version"], ["demo", "--version"]])
def test_version_works_everywhere(arguments):
    assert discreet(*arguments) == Ended(0, f"discreet {library.__version__}\n", "")


def test_no_command_shows_the_help_and_counts_as_wrong_usage():
    ended = discreet()
    assert ended.code == 2
    assert {"Options:", "Analyse:"} <= set((ended.out + ended.err).splitlines())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "nonsense"),
        (["fit"], "FILE"),
        (["fit", "x.csv", "--nonsense"], "--nonsense"),
        (["fit", "x.csv", "--layout", "round"], "--layout"),
        (["fit", "x.csv", "--repeats", "all"], "--repeats"),
        (["fit", "x.csv", "--threads", "0"], "--threads"),
        (["fit", "x.csv", "--regularisation", "-1"], "--regularisation"),
        (["top", "x.csv"], "-k"),
        (["top", "x.csv", "-k", "-1"], "-k"),
        (["top", "x.csv", "-k", "three"], "-k"),
        (["simulate", "--persons", "0", "--items", "5", "--out", "x.csv"], "--persons"),
        (["simulate", "--persons", "5", "--items", "5"], "--out"),
    ],
)
def test_wrong_usage_is_exit_2_and_names_what_is_wrong(arguments, named):
    ended = discreet(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert named in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.everywhere
def test_python_dash_m_discreet_is_the_command():
    ended = program("fit", "--help")
    assert ended.code == 0
    assert ended.out.startswith("Usage: discreet fit")


@pytest.mark.parametrize("before", [True, False])
def test_quiet_silences_notes_before_and_after_the_command(tmp_path, before):
    path = tmp_path / "answers.csv"
    path.write_text("a,b,c\n1,0,1\n0,1,1\n1,0,1\n0,1,1\n")
    loud = discreet("fit", path)
    assert "everybody who answered had right: c" in loud.err
    arguments = ["--quiet", "fit", path] if before else ["fit", path, "-q"]
    assert discreet(*arguments) == Ended(0, loud.out, "")


@pytest.mark.parametrize("before", [True, False])
def test_threads_reach_every_library(own_environment, before):
    version = ["fit", "missing.csv"]
    arguments = ["--threads", "3", *version] if before else [*version, "--threads", "3"]
    discreet(*arguments)
    heard = set(THREAD_VARIABLES) - {"NUMBA_NUM_THREADS"}  # only where numba is not loaded yet
    assert {os.environ[name] for name in heard} == {"3"}


# --- fit --------------------------------------------------------------------------------------


def test_fit_prints_the_item_table(answers):
    ended = discreet("fit", answers)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "5 items, 1,000 persons, conditional"
    assert lines[2].split() == [
        *["item", "difficulty", "se", "95%", "from", "to", "answers", "right", "status"]
    ]
    assert [line.split()[0] for line in lines[3:]] == LSAT_ITEMS
    assert lines[3].split()[-3:] == ["1,000", "924", "estimated"]


def test_fit_json_is_the_contract_and_nothing_else(answers):
    ended = discreet("fit", answers, "--json")
    document = ended.document
    assert list(document) == ["persons", "method", "choice", "model", "se_method", "items"]
    assert document["persons"] == 1000
    assert document["method"] == "conditional"
    assert document["model"] == "rasch"
    assert document["choice"].startswith("The method is conditional: ")
    assert document["choice"] in ended.err
    assert [item["item"] for item in document["items"]] == LSAT_ITEMS
    keys = ["item", "difficulty", "se", "status", "answers", "right"]
    assert all(list(item) == keys for item in document["items"])
    estimate = library.fit(lsat())
    assert [item["difficulty"] for item in document["items"]] == estimate.difficulty.tolist()


def test_fit_takes_the_method_of_the_paper(answers):
    document = discreet("fit", answers, "--method", "spectral", "--json").document
    assert document["method"] == "spectral"
    assert document["choice"] == ""
    assert document["se_method"].endswith("over all 1,000 persons.")
    expected = library.fit(lsat(), method="spectral").difficulty
    np.testing.assert_allclose([item["difficulty"] for item in document["items"]], expected)


def test_an_unknown_method_is_wrong_usage(answers):
    ended = discreet("fit", answers, "--method", "magic", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "magic" in ended.err
    assert "refined" in ended.err


def test_json_has_null_where_there_is_no_number(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("a,b,c\n1,0,1\n0,1,1\n1,0,1\n")
    ended = discreet("fit", path, "--json")
    last = ended.document["items"][-1]
    assert last["difficulty"] is None
    assert last["se"] is None
    assert last["status"] == "always_right"


@pytest.mark.everywhere
def test_fit_writes_confidential_files_that_say_so(answers, tmp_path):
    out = tmp_path / "new" / "results"
    ended = discreet("fit", answers, "--out", out)
    assert ended.code == 0
    names = {path.name for path in out.iterdir()}
    assert all("confidential" in name for name in names)
    assert {
        "calibration.confidential.json",
        "items.confidential.csv",
        "report.confidential.html",
    } <= names
    with (out / "items.confidential.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["access"] for row in rows} == {"confidential"}
    expected = library.fit(lsat())
    assert [float(row["difficulty"]) for row in rows] == expected.difficulty.tolist()
    document = json.loads((out / "calibration.confidential.json").read_text())
    assert document["access"].startswith("confidential")
    assert document["persons"] == 1000
    assert "items.confidential.csv" in ended.err


def test_fit_refuses_to_overwrite_unless_forced(answers, tmp_path):
    assert discreet("fit", answers, "--out", tmp_path).code == 0
    mine = tmp_path / "items.confidential.csv"
    mine.write_text("mine")
    refused = discreet("fit", answers, "--out", tmp_path)
    assert refused.code == 2
    assert "--force" in refused.err
    assert mine.read_text() == "mine"
    assert discreet("fit", answers, "--out", tmp_path, "--force").code == 0
    assert mine.read_text() != "mine"


def test_reading_options_reach_the_reader(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(
        "who,what,got\n"
        + "".join(f"p{k},{'xyz'[k % 3]},{k % 4}\n" for k in range(24))
        + "".join(f"p{k},{'xyz'[(k + 1) % 3]},{(k + 2) % 4}\n" for k in range(24))
    )
    options = ["--layout", "long", "--person", "who", "--item", "what", "--response", "got"]
    document = discreet("fit", path, *options, "--at-least", "2", "--json").document
    right = {item["item"]: item["right"] for item in document["items"]}
    flipped = discreet(
        "fit", path, *options, "--at-least", "2", "--one-means", "wrong", "--json"
    ).document
    answered = {item["item"]: item["answers"] for item in flipped["items"]}
    assert {item["item"]: item["right"] for item in flipped["items"]} == {
        name: answered[name] - right[name] for name in right
    }


def test_ignored_and_group_columns_are_not_items(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("sex,note,a,b\nf,7,1,0\nm,8,0,1\nf,9,1,0\n")
    document = discreet("fit", path, "--ignore", "note", "--group", "sex", "--json").document
    assert [item["item"] for item in document["items"]] == ["a", "b"]


def test_repeats_are_settled_as_asked(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("person,item,response\n1,a,1\n1,a,0\n1,b,0\n2,a,0\n2,b,1\n3,a,1\n3,b,0\n")
    kept = {}
    for choice in ("first", "last"):
        document = discreet("fit", path, "--repeats", choice, "--json").document
        kept[choice] = document["items"][0]["right"]
    assert kept == {"first": 2, "last": 1}


# --- top --------------------------------------------------------------------------------------


def test_top_json_is_the_contract(answers):
    document = discreet("top", answers, "-k", "2", "--json").document
    known = ["top", "surely_in", "possibly_in", "gap", "method", "choice", "ranks"]
    assert list(document) == known
    assert document["top"] == ["Item3", "Item2"]
    assert set(document["surely_in"]) <= set(document["top"]) <= set(document["possibly_in"])


def test_top_takes_the_easiest_when_asked(answers):
    document = discreet("top", answers, "-k", "1", "--easiest", "--json").document
    assert document["top"] == ["Item1"]


def test_top_prints_rivals_and_the_gap(answers):
    ended = discreet("top", answers, "-k", "2")
    assert ended.code == 0
    assert ended.out.startswith("The 2 hardest of 5 items")
    assert "Item3" in ended.out
    assert "logits" in ended.out


@pytest.mark.parametrize("k", [0, 5])
def test_top_of_nothing_and_of_everything_are_defined(answers, k):
    assert len(discreet("top", answers, "-k", k, "--json").document["top"]) == k
    assert discreet("top", answers, "-k", k).code == 0


def test_top_of_more_items_than_there_are_is_wrong_usage(answers):
    ended = discreet("top", answers, "-k", "6", "--json")
    assert (ended.code, ended.out) == (2, "")


# --- simulate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["long", "wide"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_simulated_answers_can_be_read_back(tmp_path, suffix, layout):
    out = tmp_path / f"answers{suffix}"
    arguments = ["--persons", 200, "--items", 6, "--answered", 0.7, "--seed", 1]
    ended = discreet("simulate", *arguments, "--layout", layout, "--out", out)
    assert ended.code == 0
    read = library.read_responses(out)
    rng = np.random.default_rng(1)
    drawn = library.simulate(persons=200, items=6, answered=0.7, rng=rng)
    assert read.n_answers == drawn.responses.n_answers
    truth = json.loads((tmp_path / "answers.truth.json").read_text())
    assert truth["seed"] == 1
    assert list(truth["difficulty"].values()) == drawn.difficulty.tolist()
    assert list(truth["ability"].values()) == drawn.ability.tolist()
    assert set(truth["difficulty"]) == set(read.items)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, suffix):
    for name in ("one", "two"):
        arguments = ["--persons", 50, "--items", 5, "--seed", 3]
        assert discreet("simulate", *arguments, "--out", tmp_path / f"{name}{suffix}").code == 0
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_simulated_tables_larger_than_a_chunk_are_complete(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.cli.simulate.CHUNK_CELLS", 35)
    out = tmp_path / "answers.csv"
    discreet("simulate", "--persons", 20, "--items", 5, "--seed", 1, "--out", out)
    assert len(out.read_text().splitlines()) == 1 + 20 * 5


def test_simulate_says_where_as_json_too(tmp_path):
    out = tmp_path / "answers.csv"
    ended = discreet("simulate", "--persons", 20, "--items", 5, "--out", out, "--json")
    assert ended.document["answers"] == str(out)
    assert Path(ended.document["truth"]).exists()
    assert ended.document["n_answers"] == 100


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--out", "answers.xlsx"], ".parquet"),
        (["--answered", "0", "--out", "answers.csv"], "answered"),
        (["--answered", "nan", "--out", "answers.csv"], "answered"),
        (["--design", "chaos", "--out", "answers.csv"], "uniform"),
    ],
)
def test_impossible_simulations_are_wrong_usage(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    ended = discreet("simulate", "--persons", 20, "--items", 5, *arguments)
    assert ended.code == 2
    assert named in ended.err
    assert list(tmp_path.iterdir()) == []


def test_simulate_never_overwrites_unless_forced(tmp_path):
    truth = tmp_path / "answers.truth.json"
    truth.write_text("mine")
    arguments = ["simulate", "--persons", 20, "--items", 5, "--out", tmp_path / "answers.csv"]
    assert discreet(*arguments).code == 2
    assert truth.read_text() == "mine"
    assert not (tmp_path / "answers.csv").exists()
    assert discreet(*arguments, "--force").code == 0
    assert truth.read_text() != "mine"


# --- demo -------------------------------------------------------------------------------------


@pytest.mark.everywhere
def test_the_demo_prints_the_tables_and_says_which_files_to_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = discreet("demo")
    assert ended.code == 0
    assert ended.out.startswith("wellbeing")
    exact, private = ended.out.split("2. With privacy")
    for item in WELLBEING_TEXTS:
        assert f"\n{item} " in exact
        assert f"\n{item} " in private
    assert "Wrote demo/items.confidential.csv" in exact
    assert "Wrote demo/release/difficulties.csv" in private
    opened = re.findall(r"^Open (\S+)", ended.out, re.M)
    assert opened == ["demo/report.confidential.html", "demo/release/report.html"]
    assert all((tmp_path / page).exists() for page in opened)
    assert discreet("demo").code == 2
    assert discreet("demo", "--force").code == 0


def test_the_report_of_the_demo_is_worth_opening(tmp_path):
    assert discreet("demo", "--out", tmp_path / "demo").code == 0
    page = (tmp_path / "demo" / "report.confidential.html").read_text("utf-8")
    assert "exercised (1.00 logits easier for below 40)" in page
    assert re.search(r"person reliability</dt>\s*<dd>0\.90", page)
    assert "Wright map" in page


def test_the_demo_never_touches_a_ledger_of_another_name(tmp_path):
    (tmp_path / "ledger.db").write_text("real")
    (tmp_path / "demo-ledger.db").write_text("demo")
    assert discreet("demo", "--out", tmp_path).code == 2
    assert discreet("demo", "--out", tmp_path, "--force").code == 0
    assert (tmp_path / "ledger.db").read_text() == "real"


# --- what goes where --------------------------------------------------------------------------


def test_tables_on_a_terminal_are_cut_and_say_so(monkeypatch):
    column = output.TableColumn("item", [f"i{k}" for k in range(output.TERMINAL_ROWS + 7)])
    out = capture(lambda: output.print_table([column]), monkeypatch, Terminal())
    assert f"i{output.TERMINAL_ROWS - 1}" in out
    assert f"i{output.TERMINAL_ROWS}\n" not in out
    assert "7 more" in out


def test_tables_through_a_pipe_are_complete_and_plain(monkeypatch):
    names = [f"i{k}" for k in range(500)] + ["x" * 300]
    out = capture(lambda: output.print_table([output.TableColumn("item", names)]), monkeypatch)
    assert out.split() == ["item", *names]
    assert "\x1b" not in out


def test_json_has_one_line_per_entry_and_no_number_that_is_not_json():
    document = {"a": float("nan"), "b": [{"c": float("inf"), "d": "ä"}, {"c": 1.5}], "e": []}
    text = output.json_text(document)
    assert json.loads(text) == {"a": None, "b": [{"c": None, "d": "ä"}, {"c": 1.5}], "e": []}
    assert len(text.splitlines()) == 8
    assert output.json_text({"d": "ä"}, ascii_only=True).isascii()


def test_names_cannot_tear_a_table_apart(monkeypatch):
    names = ["a\nb", "[bold]c[/bold]", "\x1b[31mred"]
    out = capture(lambda: output.print_table([output.TableColumn("item", names)]), monkeypatch)
    assert out.splitlines()[1:] == ["a\\nb", "[bold]c[/bold]", "\\x1b[31mred"]


def test_markup_in_names_is_shown_as_it_is_on_a_terminal(monkeypatch):
    column = output.TableColumn("item", ["[red]x[/red]"])
    out = capture(lambda: output.print_table([column]), monkeypatch, Terminal())
    assert "[red]x[/red]" in out


def capture(action, monkeypatch, stream=None):
    stream = stream or io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    action()
    return stream.getvalue()


def test_short_work_shows_no_progress(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "PATIENCE_SECONDS", 3600.0)
    with output.working("Thinking"), output.counting_bytes("Reading", lambda: 100) as bar:
        bar(50)
    assert capsys.readouterr().err == ""


def test_long_work_shows_progress_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for shows_progress in (output.working, partial(output.counting_bytes, measure=lambda: 100)):
        shown = ""
        with shows_progress("Thinking") as bar:
            if bar is not None:
                bar(50)
            while "Thinking" not in shown:
                time.sleep(0.01)
                seen = capsys.readouterr()
                assert seen.out == ""
                shown += seen.err
    capsys.readouterr()  # how the bar ends
    with output.speaking():
        output.be_quiet()
        with output.working("Thinking"), output.counting_bytes("R", lambda: 9) as bar:
            bar(5)
    assert capsys.readouterr().err == ""


def test_no_colour_reaches_a_pipe_or_an_ascii_terminal(answers):
    ended = program("fit", answers, PYTHONIOENCODING="ascii", FORCE_COLOR="1")
    assert ended.code == 0
    assert "\x1b" not in ended.out


def test_names_outside_the_terminals_alphabet_do_not_stop_a_result(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("größe,b\n1,0\n0,1\n1,0\n", encoding="utf-8")
    ended = program("fit", path, PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert "gr\\xf6\\xdfe" in ended.out


# --- when things go wrong ---------------------------------------------------------------------


def explode(error):
    def fail(*arguments, **named):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (MemoryError(), 1, "memory"),
        (RuntimeError("a bug"), 1, "DISCREET_DEBUG=1"),
        (OSError(errno.ENOSPC, "No space left on device", "x.csv"), 1, "disk is full"),
        (OSError(errno.EIO, "Input/output error", "x.csv"), 1, "Input/output error"),
        (PermissionError(errno.EACCES, "Permission denied", "x.csv"), 2, "permission"),
        (library.errors.BudgetExceeded("0.1 is left"), 4, "0.1 is left"),
        (library.errors.DisconnectedItems("two forms"), 5, "two forms"),
        (library.errors.NotConverged("no end"), 1, "no end"),
    ],
)
def test_every_failure_has_its_code_its_sentence_and_no_traceback(
    answers, tmp_path, monkeypatch, error, code, words
):
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    monkeypatch.setattr("discreet.fit", explode(error))
    ended = discreet("fit", answers, "--json", "--out", tmp_path / "out")
    assert ended.code == code
    assert ended.out == ""
    assert words in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()


def test_a_text_that_is_not_utf_8_is_wrong_usage(answers, tmp_path):
    ended = program("fit", answers, "--title", os.fsdecode(b"a\xff"), "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (2, "")
    assert "holds bytes that are not UTF-8 and cannot be written" in ended.err
    assert "a\\udcff" in ended.err
    assert not (tmp_path / "out").exists()


def test_debugging_shows_the_traceback(answers, monkeypatch):
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    monkeypatch.setattr("discreet.fit", explode(RuntimeError("a bug")))
    assert "Traceback" in discreet("fit", answers).err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full", "x")])
def test_a_failure_while_writing_leaves_nothing_behind(answers, tmp_path, monkeypatch, error):
    monkeypatch.setattr("discreet.report.calibration.describe_calibration", explode(error))
    out = tmp_path / "out"
    ended = discreet("fit", answers, "--out", out)
    assert ended.code in (130, 1)
    assert ended.out == ""
    assert not out.exists()


def test_a_failure_while_replacing_keeps_the_old_files(answers, tmp_path, monkeypatch):
    discreet("fit", answers, "--out", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(
        "discreet.report.calibration.describe_calibration", explode(KeyboardInterrupt())
    )
    assert discreet("fit", answers, "--out", tmp_path, "--force").code == 130
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_warnings_are_one_sentence_on_standard_error(answers, monkeypatch):
    import warnings

    def warn(*arguments, **named):
        warnings.warn("something to know", UserWarning, stacklevel=1)
        return estimate

    estimate = library.fit(lsat(), method="conditional")
    monkeypatch.setattr("discreet.fit", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = discreet("fit", answers, "--json")
    assert ended.err == "Warning: something to know\n"
    assert ended.document["persons"] == 1000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_sentence(answers):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "discreet", "fit", answers],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
    assert done.returncode == 1
    assert "disk is full" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["fit", "{}"], ["--help"], ["fit", "{}", "--json"]])
def test_a_closed_pipe_is_quiet(answers, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *(a.format(answers) for a in arguments)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


# A real process of the command line that waits between the files that it writes.
WAITING = """
import os, sys, time
from discreet.cli import main, simulate

write = simulate._write_truth

def write_later(path, *rest):
    assert os.path.exists(path.with_name("a.csv.gz"))
    os.mkdir("ready")
    while os.path.exists("ready"):
        time.sleep(0.01)
    write(path, *rest)

simulate._write_truth = write_later
sys.exit(main())
"""


def interrupt_simulation(tmp_path, at_start):
    """Send SIGINT while files are being written, and say how the program ended.

    ``at_start`` is what the signal does in a program that has just been started: whoever runs
    the tests may have it ignored, as a shell does for what it runs in the background.
    """
    arguments = ["--persons", "20", "--items", "10", "--out", "a.csv.gz"]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "simulate", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, at_start),
    )
    while not (tmp_path / "ready").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    (tmp_path / "ready").rmdir()
    out, err = process.communicate(timeout=600)
    return Ended(process.returncode, out, err)


def test_control_c_ends_cleanly_and_leaves_no_file(tmp_path):
    ended = interrupt_simulation(tmp_path, signal.SIG_DFL)
    assert ended.code == 130
    assert ended.out == ""
    assert ended.err.splitlines() == ["Interrupted. No output file was left half-written."]
    assert list(tmp_path.iterdir()) == []


def test_control_c_does_not_stop_what_was_started_to_ignore_it(tmp_path):
    ended = interrupt_simulation(tmp_path, signal.SIG_IGN)
    assert ended.code == 0
    assert "a.csv.gz" in {path.name for path in tmp_path.iterdir()}
