"""Fit tens and hundreds of thousands of items: time, memory and how far two solvers agree.

Answers are simulated in two designs: everybody answers random items (well linked), or items out
of a window of neighbours (badly linked: the ends of the list are joined by a long chain of
persons only). Each task runs in a process of its own and reports processor seconds and peak
memory, less what the interpreter and its libraries take. Run with::

    python -m bench.manyitems                       # 50,000 items, about ten minutes
    python -m bench.manyitems --items 200000 --persons 1000000
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from discreet.answers.responses import Responses
from discreet.counts.planes import SparseRows

DESIGNS = {"random": 0, "window of 2000": 2000, "window of 100": 100}
TASKS = ["count", "spectral", "refined", "refined with standard errors"]


def simulate(persons: int, items: int, answers: int, window: int) -> tuple[Responses, np.ndarray]:
    """Draw Rasch answers; a window of 0 means all items."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=items)
    indptr, chosen, right = [np.zeros(1, dtype=np.int64)], [], []
    for first in range(0, persons, 50_000):
        size = min(50_000, persons - first)
        start = rng.integers(0, items - window + 1, (size, 1)) if window else 0
        # An item that is drawn twice counts once, so a few persons answer fewer.
        item = np.sort(start + rng.integers(0, window or items, (size, answers)), axis=1)
        new = np.diff(item, axis=1, prepend=-1) > 0
        chance = 1 / (1 + np.exp(difficulty[item] - rng.normal(size=(size, 1))))
        answered = rng.random(item.shape) < chance
        indptr.append(indptr[-1][-1] + np.cumsum(new.sum(axis=1)))
        chosen.append(item[new].astype(np.uint16 if items <= 1 << 16 else np.int32))
        right.append(answered[new])
    rows = SparseRows(np.concatenate(indptr), np.concatenate(chosen), np.concatenate(right), items)
    return Responses.from_store(rows), difficulty


def memory(field: str) -> int:
    """Return this process's own memory; getrusage would inherit the peak of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", status).group(1))


def run_task(task: str, window: int, persons: int, items: int, answers: int) -> dict[str, object]:
    """Do one task in this process and measure it."""
    from discreet.api.calibrating import fit
    from discreet.api.counting import count_pairs
    from discreet.jit import load_kernels

    load_kernels()
    fit(simulate(2000, 3000, 20, 0)[0], standard_errors=False)  # compile before the clock starts
    responses, difficulty = simulate(persons, items, answers, window)
    before, used, began = memory("VmRSS"), time.process_time(), time.perf_counter()
    if task == "count":
        counts = count_pairs(responses)
        found: dict[str, object] = {"pairs": int(counts.right_wrong.nnz), "form": "sparse"}
    else:
        errors = task.endswith("errors")
        estimate = fit(responses, method=task.split()[0], standard_errors=errors)
        known = estimate.estimated
        off = estimate.difficulty[known] - difficulty[known]
        found = {
            "solver": estimate.solution.solver,
            "rounds": estimate.solution.iterations,
            "residual": estimate.solution.residual,
            "items": int(known.sum()),
            "error": float(np.std(off)),
            "notes": estimate.solution.notes,
        }
        if errors:
            ratio = (off - off.mean()) / estimate.se[known]
            found["error / se"] = float(np.sqrt(np.mean(ratio**2)))
    seconds = {"processor": time.process_time() - used, "wall": time.perf_counter() - began}
    return {**found, **seconds, "memory": memory("VmHWM") - before, "before": before}


def measure(task: str, window: int, options: argparse.Namespace) -> dict[str, object]:
    sizes = [f"--{name}={getattr(options, name)}" for name in ("persons", "items", "answers")]
    command = [sys.executable, "-m", "bench.manyitems", "--task", task, "--window", str(window)]
    done = subprocess.run([*command, *sizes], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def compare(options: argparse.Namespace) -> None:
    print(f"{options.persons:,} persons, {options.items:,} items, {options.answers} answers each")
    for design in options.designs:
        pairs = 0
        for task in options.tasks:
            found = measure(task, DESIGNS[design], options)
            if "failed" in found:
                print(f"  {design:15} {task:28} {found['failed']}", flush=True)
                continue
            pairs = int(found.get("pairs", pairs))
            per_pair = f"{found['memory'] / pairs:5.0f} bytes a pair" if pairs else ""
            rest = {k: v for k, v in found.items() if k not in ("processor", "memory", "form")}
            print(f"  {design:15} {task:28} processor {found['processor']:7.1f} s  peak "
                  f"{found['memory'] / 1e9:5.2f} GB  {per_pair}  {rest}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=300_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--designs", nargs="*", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=TASKS)
    parser.add_argument("--task", choices=TASKS)
    parser.add_argument("--window", type=int)
    options = parser.parse_args()
    if options.task is None:
        compare(options)
        return
    sizes = options.persons, options.items, options.answers
    print(json.dumps(run_task(options.task, options.window, *sizes)))


if __name__ == "__main__":
    main()
