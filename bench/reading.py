"""How long reading a large file takes, how much memory it needs, and what is kept of it.

    python bench/reading.py [--rows 10000000]

Writes a long CSV file with text ids (100,000 persons, 1,000 items, shuffled) into a temporary
folder and reads it in a fresh process. Prints time, peak memory (Linux) and bytes per answer held.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

READ = """
import json, re, sys, time
from pathlib import Path
from discreet.readers.answers import read_responses

def peak():
    # Not getrusage: its maximum is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status).group(1))

before, start, cpu = peak(), time.perf_counter(), time.process_time()
responses = read_responses(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu,
                  "peak": peak(), "imports": before, "held": responses.nbytes,
                  "answers": responses.n_answers, "text": repr(responses)}))
"""


def write_long(path: Path, rows: int, persons: int, items: int) -> None:
    """Write distinct (person, item) pairs in random order, a part at a time."""
    rng = np.random.default_rng(0)
    cells = rng.choice(persons * items, size=rows, replace=False)
    schema = pa.schema([("person", pa.string()), ("item", pa.string()), ("response", pa.int8())])
    with pacsv.CSVWriter(path, schema) as out:
        for start in range(0, rows, 1 << 20):
            person, item = np.divmod(cells[start : start + (1 << 20)], items)
            names = [f"u{p:07d}" for p in person.tolist()], [f"item{i:04d}" for i in item.tolist()]
            answers = rng.integers(0, 2, len(person), dtype=np.int8)
            out.write(pa.record_batch([*map(pa.array, (*names, answers))], schema=schema))


def measure(path: Path) -> dict[str, float]:
    """Read a file in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answers.csv")
        write_long(path, options.rows, options.persons, options.items)
        print(f"file: {path.stat().st_size / 1e6:.0f} MB, {options.rows:,} rows")
        runs = [measure(path) for _ in range(options.repeat)]
    best = min(runs, key=lambda run: run["seconds"])
    print(best["text"])
    times = ", ".join(f"{run['seconds']:.1f}" for run in runs)
    print(f"time: {best['seconds']:.1f} s (of {times})")
    print(f"CPU time, all threads: {min(run['cpu'] for run in runs):.1f} s")
    print(f"peak memory: {max(r['peak'] for r in runs) / 1e6:.0f} MB")
    print(f"  of which Python and imports: {best['imports'] / 1e6:.0f} MB")
    print(f"held: {best['held'] / best['answers']:.2f} bytes per answer")


if __name__ == "__main__":
    main()
