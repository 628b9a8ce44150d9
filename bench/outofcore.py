"""Counting out of core against DuckDB's own work on the same files, in one run.

Each task runs in a process of its own and reports wall time, processor time and peak memory;
tasks take turns, and the smallest of the rounds counts. Run with::

    python -m bench.outofcore --folder /tmp/outofcore

The folder keeps the generated Parquet files (about 0.8 GB for the default 100 million rows), so
that a second run starts at once; delete it afterwards. A billion rows, counting alone::

    python -m bench.outofcore --folder /tmp/billion --persons 10000000 --rounds 1 --only count
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np

BLOCK_PERSONS = 1_000_000
"""Persons that are made, and shuffled, together."""
FILES = 10
"""Files of each block in person order; the shuffled rows of every block go into as many."""

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
    """Write Rasch answers in person order, and the same rows shuffled.

    Rows are shuffled within blocks of a million persons, and every file holds a share of every
    block, so that each person's rows are all over the files.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (folder / "done").exists():
        return
    for order in ("sorted", "shuffled"):
        (folder / order).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=items).astype(np.float32)
    schema = pa.schema([("person", pa.int64()), ("item", pa.int32()), ("response", pa.int8())])
    places = [folder / "shuffled" / f"{number:03}.parquet" for number in range(FILES)]
    with ExitStack() as stack:
        mixed = [stack.enter_context(pq.ParquetWriter(place, schema)) for place in places]
        for block, first in enumerate(range(0, persons, BLOCK_PERSONS)):
            who = np.arange(first, min(first + BLOCK_PERSONS, persons))
            columns = answer(who, difficulty, answers, rng)
            for number, part in enumerate(split(columns, schema)):
                pq.write_table(part, folder / "sorted" / f"{FILES * block + number:03}.parquet")
            shuffle = rng.permutation(len(columns[0]))
            for writer, part in zip(
                mixed, split([c[shuffle] for c in columns], schema), strict=True
            ):
                writer.write_table(part)
    (folder / "done").touch()


def answer(who, difficulty, answers, rng):
    """Return the columns of the persons' answers, in person order."""
    items = len(difficulty)
    person = np.repeat(who, answers)
    item, response = np.empty(len(person), dtype=np.int32), np.empty(len(person), dtype=np.int8)
    for first in range(0, len(who), 25_000):
        size = min(25_000, len(who) - first)
        keys = rng.random((size, items), dtype=np.float32)
        chosen = np.argpartition(keys, answers - 1, axis=1)[:, :answers]
        ability = rng.normal(size=(size, 1)).astype(np.float32)
        chance = 1 / (1 + np.exp(difficulty[chosen] - ability))
        here = slice(first * answers, (first + size) * answers)
        item[here] = chosen.ravel()
        response[here] = (rng.random(chosen.shape, dtype=np.float32) < chance).ravel()
    return person, item, response


def split(columns, schema):
    """Yield as many tables as there are files, of about the same length."""
    import pyarrow as pa

    edges = np.linspace(0, len(columns[0]), FILES + 1).astype(int)
    for low, high in pairwise(edges):
        yield pa.table([column[low:high] for column in columns], schema=schema)


def peak_memory() -> int:
    """Return the peak of this process alone; getrusage would inherit that of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status).group(1))


def run_task(task: str, files: str, spill: str) -> dict[str, object]:
    """Do one task in this process and measure it."""
    began, used = time.perf_counter(), time.process_time()
    if task == "count":
        from discreet.readers.streamed.counting import count_source
        from discreet.tables.resources import Resources

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


def choose_tasks(folder: Path, only: str | None, *, sort: bool) -> dict[tuple[str, str], str]:
    """Return what to run on which files."""
    orders = {order: str(folder / order / "*.parquet") for order in ("sorted", "shuffled")}
    names = [only] if only else ["group", "count", *(["sort"] if sort else [])]
    tasks = {(name, order): files for name in names for order, files in orders.items()}
    if not only:
        tasks["join", "a part"] = str(folder / "sorted" / "000.parquet")
    return tasks


def compare(folder: Path, rounds: int, only: str | None, *, sort: bool) -> None:
    found: dict[tuple[str, str], list[dict[str, object]]] = {}
    with tempfile.TemporaryDirectory(dir=folder) as spill:
        for _ in range(rounds):
            for key, files in choose_tasks(folder, only, sort=sort).items():
                found.setdefault(key, []).append(measure(key[0], files, spill))
                one = found[key][-1]
                times = f"wall {one['wall']:7.2f} s  processor {one['processor']:7.2f} s"
                memory = f"peak {one['memory'] / 1e9:5.2f} GB"
                print(f"  {key[0]:6} {key[1]:9} {times}  {memory}", flush=True)
    results = {key: best(runs) for key, runs in found.items()}
    if not only:
        print_ratios(results, len(list((folder / "sorted").iterdir())))
    if ("count", "sorted") in results:
        first, again = (results["count", order]["result"] for order in ("sorted", "shuffled"))
        print(f"same counts sorted and shuffled: {first == again} {first}")


def print_ratios(results: dict[tuple[str, str], dict[str, object]], parts: int) -> None:
    join = results["join", "a part"]
    for order in ("sorted", "shuffled"):
        ours, theirs = results["count", order], results["group", order]
        print(f"{order}: counting / grouping by person: wall {ours['wall'] / theirs['wall']:.1f}, "
              f"processor {ours['processor'] / theirs['processor']:.1f}; "
              f"peak {ours['memory'] / 1e9:.2f} GB")  # fmt: skip
        print(f"{order}: self-join (one part of {parts}, scaled) / counting: "
              f"wall {parts * join['wall'] / ours['wall']:.0f}, "
              f"processor {parts * join['processor'] / ours['processor']:.0f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "outofcore")
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sort", action="store_true", help="also time sorting with DuckDB")
    parser.add_argument("--only", choices=["group", "count", "sort"], help="just this task")
    parser.add_argument("--task", choices=["group", "join", "count", "sort"])
    parser.add_argument("--files")
    parser.add_argument("--spill")
    options = parser.parse_args()
    if options.task is not None:
        print(json.dumps(run_task(options.task, options.files, options.spill)))
        return
    generate(options.folder, options.persons, options.items, options.answers)
    compare(options.folder, options.rounds, options.only, sort=options.sort)


if __name__ == "__main__":
    main()
