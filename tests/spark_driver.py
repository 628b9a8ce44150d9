"""Sessions that need a process of their own: a cluster with a victim, and Spark Connect.

Run by test_spark.py as ``python spark_driver.py cluster FOLDER`` or ``... connect``. Prints one
line of JSON with what was found.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet
from discreet.answers.responses import Responses
from discreet.errors import BadResponses
from discreet.readers.spark import open_frame
from discreet.readers.spark import rows as layout
from discreet.secure import SeededSource

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
os.environ["PYSPARK_PYTHON"] = sys.executable

PERSONS, ITEMS = 400, 12
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def make_answers() -> pa.Table:
    rng = np.random.default_rng(5)
    person, item = np.nonzero(rng.random((PERSONS, ITEMS)) < 0.8)
    order = rng.permutation(len(person))
    right = rng.integers(0, 2, len(person))
    names = [f"q{number}" for number in item[order]]
    return pa.table({"person": person[order], "item": names, "response": right})


class SlowWeight:
    """One for everybody; leaves a note that a task has started, and takes its time."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds

    def __call__(self, answered, right):
        from pyspark import TaskContext

        context = TaskContext.get()
        name = f"{context.partitionId()}-{context.taskAttemptId()}-{os.getpid()}-{os.getppid()}"
        (Path(self.folder) / name).touch()
        time.sleep(self.seconds)
        return np.ones_like(answered)


def same(ours, theirs) -> bool:
    return bool(
        ours.items == theirs.items
        and ours.persons == theirs.persons
        and np.array_equal(ours.right_wrong, theirs.right_wrong)
        and np.array_equal(ours.answers, theirs.answers)
        and np.array_equal(ours.right, theirs.right)
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def executor_of(worker: int) -> int:
    """Return the Java process, below this one, that a Python worker belongs to."""
    pid = worker
    while "CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_text():
        pid = parent_of(pid)
    above = pid
    while above != os.getpid():  # never anything that this process did not start
        above = parent_of(above)
    return pid


def count_while_killing(answers, folder: Path, victim: str) -> dict[str, object]:
    """Count, and kill a worker or its executor when the first task has started."""
    folder.mkdir()
    found: dict[str, object] = {}

    def count() -> None:
        found["counts"] = answers.count(SlowWeight(str(folder), 2.0))

    thread = threading.Thread(target=count)
    thread.start()
    deadline = time.monotonic() + 300
    while not any(folder.iterdir()) and time.monotonic() < deadline and thread.is_alive():
        time.sleep(0.02)
    started = sorted(path.name for path in folder.iterdir())
    worker = int(started[0].split("-")[2])
    os.kill(worker if victim == "worker" else executor_of(worker), signal.SIGKILL)
    running = thread.is_alive() and "counts" not in found
    thread.join()
    notes = [path.name.split("-") for path in folder.iterdir()]
    return {
        "counts": found["counts"],
        "running": running,
        "tasks": len({note[0] for note in notes}),
        "attempts": len(notes),
    }


def run_cluster(folder: Path) -> dict[str, object]:
    from pyspark.sql import SparkSession

    layout.TASK_CELLS = 500  # several tasks
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")  # not beside the installed package
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.executor.memory", "512m").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    table = make_answers()
    # Parquet, so that a lost executor takes no rows with it but shuffle blocks.
    session.createDataFrame(table).write.parquet(str(folder / "answers"))
    frame = session.read.parquet(str(folder / "answers"))
    answers = open_frame(frame)
    memory = Responses.from_dataframe(table).select(answers.items)
    plain = discreet.count_pairs(memory)
    capped = answers.cap(5, SeededSource(1))
    before = capped.count()
    report: dict[str, object] = {
        "executors": session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
        "same": same(answers.count(), plain),
    }
    for victim in ("worker", "executor"):
        for name, rows, expected in (("plain", answers, plain), ("capped", capped, before)):
            seen = count_while_killing(rows, folder / f"{victim}-{name}", victim)
            seen["same"] = same(seen.pop("counts"), expected)
            report[f"{victim} {name}"] = seen
    session.stop()
    return report


def run_connect() -> dict[str, object]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    table = make_answers()
    frame = session.createDataFrame(table)
    counts = discreet.count_pairs(frame)
    memory = Responses.from_dataframe(table).select(counts.items)
    frame.createOrReplaceTempView("answers")
    ours, theirs = discreet.fit(frame), discreet.fit(memory, method="refined")
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    published = discreet.release(frame, budget, items=counts.items, max_answers=5)
    report: dict[str, object] = {
        "module": type(frame).__module__,
        "same": same(counts, discreet.count_pairs(memory)),
        "table": same(discreet.count_pairs("answers", engine="spark"), counts),
        "difficulty": float(np.abs(ours.difficulty - theirs.difficulty).max()),
        "se": float(np.abs(ours.se - theirs.se).max()),
        "epsilon": published.guarantee.epsilon,
    }
    try:
        discreet.count_pairs(frame.union(frame.limit(1)))
    except BadResponses as error:
        report["refused"] = str(error)
    session.stop()
    return report


if __name__ == "__main__":
    kind, place = sys.argv[1], Path(sys.argv[2])
    print(json.dumps(run_cluster(place) if kind == "cluster" else run_connect()))
