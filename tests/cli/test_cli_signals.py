"""Commands that are told to end: nothing about persons stays behind."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commandline import discreet, environment
from discreet.tables.resources import explain_query

# A real process of the command line, made slow where rows have just been put aside.
SLOW = """
import os, sys, time
from discreet.cli import main
from discreet.readers.batches import Buckets

flush = Buckets._flush

def flush_slowly(self):
    flush(self)
    assert any(file.stat().st_size > 1000 for file in self.folder.iterdir())
    os.mkdir("ready")
    for _ in range(60_000):  # shortly, because another thread may be the one that a signal wakes
        time.sleep(0.01)

Buckets._flush = flush_slowly
sys.exit(main())
"""


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """Answers whose persons come back, so that rows have to be put aside."""
    path = tmp_path_factory.mktemp("shuffled") / "answers.csv"
    cells = np.random.default_rng(1).permutation(400_000)
    rows = [f"{cell // 8},q{cell % 8},{cell % 3 % 2}" for cell in cells.tolist()]
    path.write_text("person,item,response\n" + "\n".join(rows))
    return path


def start(folder, *arguments, before=""):
    return subprocess.Popen(
        [sys.executable, "-c", f"{before}\n{SLOW}", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
        # Whoever runs the tests may have told their processes to ignore signals.
        preexec_fn=heed_signals,
    )


def heed_signals():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


OUT_OF_CORE = ("--engine", "duckdb", "--memory", "0.017", "--spill", "spill")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.posix
def test_a_count_that_is_ended_leaves_no_rows_behind(tmp_path, shuffled, number):
    process = start(tmp_path, "table", "counts", shuffled, "--out", "counts.npz", *OUT_OF_CORE)
    wait_for(tmp_path / "ready", process)
    assert list(tmp_path.glob("spill/*/rows/bucket-*.arrows"))
    process.send_signal(number)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert out == ""
    assert err.splitlines() == ["Interrupted. No output file was left half-written."]
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["ready", "spill"]


@pytest.mark.posix
def test_a_release_that_is_ended_leaves_no_rows_behind(tmp_path, shuffled):
    (tmp_path / "items").write_text("\n".join(f"q{number}" for number in range(8)))
    assert discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", "2").code == 0
    process = start(
        tmp_path, "release", shuffled, "--items", "items", "--max-answers", "8", "--epsilon", "1",
        "--ledger", "spent.db", "--out", "out", *OUT_OF_CORE,
    )  # fmt: skip
    wait_for(tmp_path / "ready", process)
    assert list(tmp_path.glob("spill/*/rows/bucket-*.arrows"))
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)  # as a system that shuts down does
    process.communicate(timeout=600)
    assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    left = sorted(one.name for one in tmp_path.rglob("*"))
    assert left == ["items", "ready", "spent.db", "spill"]


@pytest.mark.posix
def test_a_program_that_was_started_to_outlive_its_terminal_does(tmp_path, shuffled):
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    arguments = ("table", "counts", shuffled, "--out", "counts.npz", *OUT_OF_CORE)
    process = start(tmp_path, *arguments, before=ignoring)
    wait_for(tmp_path / "ready", process)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM


def test_an_interrupt_that_duckdb_hides_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt), explain_query("a query"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError), explain_query("a query"):
        raise RuntimeError("other")
