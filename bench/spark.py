"""Counting on Spark against Spark's own shuffle of the same rows, in one run.

Local mode, one session, tasks in turns; the smallest of the rounds counts, in wall time and in
processor time of Java and the Python workers, which says more on a busy machine. The measure is
``repartition(person)`` followed by a ``mapInArrow`` that only counts rows: what any work on whole
persons must pay for. Run with::

    python -m bench.spark --folder /tmp/spark

The folder keeps the generated Parquet files (about 160 MB for the default 20 million rows), so
that a second run starts at once; delete it afterwards.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

FILES = 10


def generate(folder: Path, persons: int, items: int, answers: int) -> None:
    """Write Rasch answers in person order, and the same rows shuffled."""
    import pyarrow.parquet as pq

    if (folder / "done").exists():
        return
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=items)
    person = np.repeat(np.arange(persons, dtype=np.int64), answers)
    ability = np.repeat(rng.normal(size=persons), answers)
    item = np.empty((persons, answers), dtype=np.int32)
    for first in range(0, persons, 10_000):
        here = slice(first, min(first + 10_000, persons))
        keys = rng.random((here.stop - first, items), dtype=np.float32)
        item[here] = np.argpartition(keys, answers - 1, axis=1)[:, :answers]
    item = item.ravel()
    right = rng.random(len(item)) < 1 / (1 + np.exp(difficulty[item] - ability))
    rows = pa.table({"person": person, "item": item, "response": right.astype(np.int8)})
    size = -(-rows.num_rows // FILES)
    for order in ("sorted", "shuffled"):
        (folder / order).mkdir(parents=True, exist_ok=True)
        if order == "shuffled":
            rows = rows.take(rng.permutation(rows.num_rows))
        for number in range(FILES):
            part = rows.slice(number * size, size)
            pq.write_table(part, folder / order / f"{number:03}.parquet")
    (folder / "done").touch()


def start_session(cores: int) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def count_rows(batches: Iterator[Any]) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch([pa.array([rows], pa.int64())], names=["n"])


def shuffle_rows(frame: Any) -> int:
    """Do what is compared with: whole persons to tasks, and nothing else."""
    parts = frame.repartition("person").mapInArrow(count_rows, "n long").collect()
    return sum(part.n for part in parts)


def used_time() -> float:
    """Return the processor seconds of all processes below this one, also of those that ended."""
    parents, used = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        pid = int(place.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used[pid] for pid in below) / os.sysconf("SC_CLK_TCK")


def compare(session: Any, folder: Path, orders: list[str], rounds: int) -> None:
    frame = {order: session.read.parquet(str(folder / order)) for order in orders}
    tasks = {"shuffle": shuffle_rows, "count": lambda rows: discreet.count_pairs(rows)}
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    counts: dict[str, Any] = {}
    for number in range(rounds + 1):
        for order, rows in frame.items():
            for name, task in tasks.items():
                began, used = time.perf_counter(), used_time()
                result = task(rows)
                took = time.perf_counter() - began, used_time() - used
                note = "" if number else "  (first round: not counted)"
                words = f"wall {took[0]:6.1f} s  processor {took[1]:6.1f} s"
                print(f"  {order:8} {name:7} {words}{note}", flush=True)
                if number:
                    times.setdefault((order, name), []).append(took)
                if name == "count":
                    counts[order] = result
    for order in frame:
        for kind, what in enumerate(("wall", "processor")):
            ours = [took[kind] for took in times[order, "count"]]
            theirs = [took[kind] for took in times[order, "shuffle"]]
            within = ", ".join(f"{a / b:.2f}" for a, b in zip(ours, theirs, strict=True))
            print(f"{order}: counting / shuffling, {what}: {min(ours) / min(theirs):.2f} "
                  f"({min(ours):.1f} s / {min(theirs):.1f} s; by round {within})")  # fmt: skip
    for order, found in counts.items():
        check(folder / order, found)


def check(folder: Path, found: Any) -> None:
    began = time.perf_counter()
    memory = discreet.count_pairs(discreet.read_responses(folder).select(found.items))
    same = np.array_equal(memory.right_wrong, found.right_wrong) and memory.persons == found.persons
    took = time.perf_counter() - began
    print(f"{folder.name}: same counts as the memory engine: {same} ({took:.1f} s in memory)")
    assert same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "spark")
    parser.add_argument("--persons", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--orders", nargs="+", default=["sorted", "shuffled"])
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    # PySpark 4.3 warns about pandas 3, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    generate(options.folder, options.persons, options.items, options.answers)
    session = start_session(options.cores)
    try:
        compare(session, options.folder, options.orders, options.rounds)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
