"""Counting out of core against DuckDB's own work on the same files, in one run.

Each task runs in a process of its own and reports wall time, processor time and peak memory;
tasks take turns, and the smallest of the rounds counts. Run with::

    python -m bench.outofcore --folder /tmp/outofcore

The folder keeps the generated Parquet files (about 0.8 GB for the default 100 million rows), so
that a second run starts at once; delete it afterwards.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FILES = 10
SAMPLE_FILES = 1
"""Files of the sorted folder that the self-join gets: a tenth of the persons, scaled by ten."""

GROUP = (
    "SELECT count(*), sum(n), sum(s), sum(m) FROM (SELECT person, count(*) AS n, "
    "sum(response) AS s, max(item) AS m FROM '{files}' GROUP BY person)"
)
JOIN = (
    "SELECT a.item, b.item, count(*) FROM '{files}' a JOIN '{files}' b ON a.person = b.person "
    "WHERE a.response = 1 AND b.response = 0 GROUP BY a.item, b.item"
)
SORT = "SELECT person, item, response FROM '{files}' ORDER BY person"


def generate(folder: Path, persons: int, items: int, answers: int) -> None:
    """Write Rasch answers in person order, and the same rows shuffled."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (folder / "done").exists():
        return
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=items).astype(np.float32)
    rows = persons * answers
    person, item = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
    response = np.empty(rows, dtype=np.int8)
    for first in range(0, persons, 25_000):
        who = np.arange(first, min(first + 25_000, persons), dtype=np.int32)
        keys = rng.random((len(who), items), dtype=np.float32)
        chosen = np.argpartition(keys, answers - 1, axis=1)[:, :answers]
        ability = rng.normal(size=(len(who), 1)).astype(np.float32)
        chance = 1 / (1 + np.exp(difficulty[chosen] - ability))
        here = slice(first * answers, (first + len(who)) * answers)
        person[here], item[here] = np.repeat(who, answers), chosen.ravel()
        response[here] = (rng.random(chosen.shape, dtype=np.float32) < chance).ravel()
    for order in ("sorted", "shuffled"):
        if order == "shuffled":
            shuffle = rng.permutation(rows)
            person, item, response = person[shuffle], item[shuffle], response[shuffle]
        (folder / order).mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
            span = slice(part[0], part[-1] + 1)
            columns = {
                "person": person[span].astype(np.int64),
                "item": item[span],
                "response": response[span],
            }
            pq.write_table(pa.table(columns), folder / order / f"{number:03}.parquet")
    (folder / "done").touch()


def peak_memory() -> int:
    """Return the peak of this process alone; getrusage would inherit that of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status).group(1))


def run_task(task: str, files: str, spill: str) -> dict[str, object]:
    """Do one task in this process and measure it."""
    began, used = time.perf_counter(), time.process_time()
    if task == "count":
        from discreet.engines.outofcore import Resources, count_source

        counts = count_source(files, resources=Resources(spill=spill))
        result: object = [counts.persons, int(counts.right_wrong.sum())]
    else:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET temp_directory = ?", [spill])
        query = {"group": GROUP, "join": JOIN, "sort": SORT}[task].format(files=files)
        if task == "sort":
            # The alternative to buckets, under the same limit of memory.
            connection.execute("SET memory_limit = '1GB'")
            batches = connection.sql(query).to_arrow_reader(1 << 17)
            result = sum(batch.num_rows for batch in batches)
        elif task == "join":
            result = sum(row[2] for row in connection.execute(query).fetchall())
        else:
            result = [int(value) for value in connection.execute(query).fetchone()]
    return {
        "wall": time.perf_counter() - began,
        "processor": time.process_time() - used,
        "memory": peak_memory(),
        "result": result,
    }


def measure(task: str, files: str, spill: str) -> dict[str, object]:
    command = [sys.executable, "-m", "bench.outofcore", "--task", task]
    done = subprocess.run(
        [*command, "--files", files, "--spill", spill], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def best(rounds: list[dict[str, object]]) -> dict[str, object]:
    smallest = {key: min(one[key] for one in rounds) for key in ("wall", "processor")}
    largest = max(one["memory"] for one in rounds)
    return {**smallest, "memory": largest, "result": rounds[0]["result"]}


def compare(folder: Path, rounds: int, *, sort: bool) -> None:
    sample = str(folder / "sorted" / f"00[0-{SAMPLE_FILES - 1}].parquet")
    tasks = {
        ("group", order): str(folder / order / "*.parquet") for order in ("sorted", "shuffled")
    }
    tasks |= {("count", order): files for (_, order), files in tasks.items()}
    tasks[("join", "a tenth")] = sample
    if sort:
        tasks |= {("sort", order): tasks["group", order] for order in ("sorted", "shuffled")}
    found: dict[tuple[str, str], list[dict[str, object]]] = {}
    with tempfile.TemporaryDirectory(dir=folder) as spill:
        for _ in range(rounds):
            for key, files in tasks.items():
                found.setdefault(key, []).append(measure(key[0], files, spill))
                one = found[key][-1]
                times = f"wall {one['wall']:7.2f} s  processor {one['processor']:7.2f} s"
                memory = f"peak {one['memory'] / 1e9:5.2f} GB"
                print(f"  {key[0]:6} {key[1]:9} {times}  {memory}", flush=True)
    results = {key: best(runs) for key, runs in found.items()}
    for order in ("sorted", "shuffled"):
        ours, theirs = results["count", order], results["group", order]
        print(f"{order}: counting / grouping by person: wall {ours['wall'] / theirs['wall']:.1f}, "
              f"processor {ours['processor'] / theirs['processor']:.1f}; "
              f"peak {ours['memory'] / 1e9:.2f} GB")  # fmt: skip
    join, scale = results["join", "a tenth"], FILES / SAMPLE_FILES
    for order in ("sorted", "shuffled"):
        ours = results["count", order]
        print(f"{order}: self-join (a tenth, scaled) / counting: "
              f"wall {scale * join['wall'] / ours['wall']:.0f}, "
              f"processor {scale * join['processor'] / ours['processor']:.0f}")  # fmt: skip
    same = results["count", "sorted"]["result"] == results["count", "shuffled"]["result"]
    print(f"same counts sorted and shuffled: {same} {results['count', 'sorted']['result']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "outofcore")
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sort", action="store_true", help="also time sorting with DuckDB")
    parser.add_argument("--task", choices=["group", "join", "count", "sort"])
    parser.add_argument("--files")
    parser.add_argument("--spill")
    options = parser.parse_args()
    if options.task is not None:
        print(json.dumps(run_task(options.task, options.files, options.spill)))
        return
    generate(options.folder, options.persons, options.items, options.answers)
    compare(options.folder, options.rounds, sort=options.sort)


if __name__ == "__main__":
    main()
