"""Releasing from a stream against releasing from memory, and `residuals` against `margins`.

Each release runs in a process of its own, with a ledger, a cap below what people answered, and
the margins mechanism. Run with::

    python -m bench.release --folder /tmp/release --persons 300000

The folder keeps the generated Parquet files (about 0.3 GB); delete it afterwards. Mechanisms, in
turn on the same answers of 20,000 persons to 200 items, each in a process of its own::

    python -m bench.release --mechanisms --rounds 5
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.outofcore import generate, peak_memory

CAP = 80
GIGABYTE = 1e9
STREAMS = {"stream, 1 GB": 1.0, "stream, 0.2 GB": 0.2}


def run_release(source: str, items: int, memory: float) -> dict[str, float]:
    """Release in this process and measure it; no memory limit means in memory."""
    import discreet
    from discreet.readers.streamed import open_stream
    from discreet.tables.resources import Resources

    budget = discreet.Budget(1.0, 1e-6)
    names = [str(number) for number in range(items)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = discreet.Ledger.create(Path(folder) / "spent.db", 2.0, 1e-6)
        settings = {"items": names, "max_answers": CAP, "mechanism": "margins", "ledger": ledger}
        began, used = time.perf_counter(), time.process_time()
        if memory:
            limits = Resources(memory=int(memory * GIGABYTE), spill=folder)
            with open_stream(source, resources=limits) as answers:
                discreet.release(answers, budget, **settings)
        else:
            discreet.release(source, budget, engine="memory", **settings)
        wall, processor = time.perf_counter() - began, time.process_time() - used
    return {"wall": wall, "processor": processor, "memory": peak_memory()}


def measure(source: Path, items: int, memory: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.release", "--source", str(source)]
    done = subprocess.run(
        [*command, "--items", str(items), "--memory", str(memory)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def compare(folder: Path, items: int, rounds: int) -> None:
    for order in ("sorted", "shuffled"):
        for way, memory in {**STREAMS, "memory": 0.0}.items():
            runs = [measure(folder / order, items, memory) for _ in range(rounds)]
            wall, processor = (min(run[key] for run in runs) for key in ("wall", "processor"))
            peak = max(run["memory"] for run in runs) / GIGABYTE
            print(f"{order:9} {way:15} wall {wall:6.1f} s  processor {processor:6.1f} s  "
                  f"peak {peak:5.2f} GB", flush=True)  # fmt: skip


def run_mechanism(mechanism: str, design: str) -> dict[str, float]:
    """Release simulated answers in memory in this process and measure it."""
    import numpy as np

    import discreet

    items = [str(number) for number in range(200)]
    rng = np.random.default_rng(1)
    share = 1.0 if design == "complete" else 0.1
    answers = discreet.simulate(20_000, 200, answered=share, rng=rng).responses
    cap = {} if design == "complete" else {"max_answers": 30}
    settings = {"items": items, "mechanism": mechanism, "design": design, **cap}
    discreet.release(answers, discreet.Budget(1.0, 1e-6), **settings)  # compiles what is compiled
    began, used = time.perf_counter(), time.process_time()
    discreet.release(answers, discreet.Budget(1.0, 1e-6), **settings)
    wall, processor = time.perf_counter() - began, time.process_time() - used
    return {"wall": wall, "processor": processor, "memory": peak_memory()}


def compare_mechanisms(rounds: int) -> None:
    """Print the median ratio of `residuals` to `margins`, in turn, in two designs."""
    command = [sys.executable, "-m", "bench.release", "--mechanism"]
    for design in ("complete", "random"):
        runs: dict[str, list[dict[str, float]]] = {"margins": [], "residuals": []}
        for _ in range(rounds):
            for mechanism, measured in runs.items():
                done = subprocess.run(
                    [*command, mechanism, design], capture_output=True, text=True, check=True
                )
                measured.append(json.loads(done.stdout))
        for what in ("processor", "memory"):
            low, own = (sorted(run[what] for run in runs[name])[rounds // 2] for name in runs)
            print(f"{design:9} {what:10} margins {low:.3g}  residuals {own:.3g}  "
                  f"ratio {own / low:.2f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "release")
    parser.add_argument("--persons", type=int, default=300_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--mechanisms", action="store_true", help="residuals beside margins")
    parser.add_argument("--mechanism", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.mechanism:
        print(json.dumps(run_mechanism(*asked.mechanism)))
        return
    if asked.mechanisms:
        compare_mechanisms(asked.rounds)
        return
    if asked.source:
        print(json.dumps(run_release(asked.source, asked.items, asked.memory)))
        return
    generate(asked.folder, asked.persons, asked.items, asked.answers)
    compare(asked.folder, asked.items, asked.rounds)


if __name__ == "__main__":
    main()
